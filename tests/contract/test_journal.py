"""The contract of ports.Journal: every store keeps the same promises. SQLite's own: test_sqlite_journal.py."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenuto.core import upgrade
from tenuto.core.fold import FOLD_VERSION, fold, fold_repo
from tenuto.encoding import digest, dumps
from tenuto.errors import BadInput, Conflict, Damaged, NotFound, Refused, SchemaSkew, TenutoError
from tenuto.stores.records import Redaction
from tests.support.journals import AT, STORES, Damage, Store, append, noted, started
from tests.support.memory_journal import MemoryJournal

if TYPE_CHECKING:
    from tenuto.core.records.events import RepoEvent
    from tenuto.core.records.run import Json
    from tenuto.ports import Importer, Journal, Reader, Stamp, Transaction


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    return STORES[request.param]


@pytest.fixture
def journal(store: Store, tmp_path: Path) -> Iterator[Journal]:
    opened = store.open(str(tmp_path / "state"))
    yield opened
    opened.close()


def test_events_come_back_word_for_word_and_in_order(journal: Journal) -> None:
    """Text is stored as it was given: unicode, control characters, key order, numbers."""
    events = [started("a"), noted("ä → \u0000 \ud7ff"), noted("two", z=1, a=[1.5, None, True])]
    append(journal, "a", 0, *events)
    with journal.read() as reader:
        assert [dumps(e) for e in reader.events("a")] == [dumps(e) for e in events]
        assert [e["text"] for e in reader.events("a", 1)] == ["ä → \u0000 \ud7ff", "two"]
        assert reader.version("a") == 3


def test_half_a_character_is_stored_and_comes_back(journal: Journal) -> None:
    """Agents cut texts in the middle of an emoji: that is no UTF-8, and no reason to lose the event."""
    append(journal, "a", 0, started("a"), noted("cut \ud83d"))
    with journal.read() as reader:
        assert [e["text"] for e in reader.events("a", 1)] == ["cut \ud83d"]
        assert reader.load("a") == fold(reader.events("a"))


def test_an_old_event_is_read_as_it_would_be_written_today(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written stays as it is; who reads sees one shape. Each version is one step."""
    append(journal, "a", 0, started("a"))
    append(journal, "a", 1, noted("from then", v=1))

    def second(event: Any) -> Any:
        return {**event, "v": 2, "words": event.pop("text").split()}

    def third(event: Any) -> Any:
        return {**event, "v": 3, "text": " ".join(reversed(event["words"]))}

    monkeypatch.setitem(upgrade.VERSIONS, "Noted", 3)
    monkeypatch.setitem(upgrade.UPGRADES, ("Noted", 1), second)
    monkeypatch.setitem(upgrade.UPGRADES, ("Noted", 2), third)
    append(journal, "a", 2, noted("from today", v=3))
    with journal.read() as reader:
        assert [(e["v"], e["text"]) for e in reader.events("a", 1)] == [(3, "then from"), (3, "from today")]
        assert [e["v"] for e in reader.events("a")] == [2, 3, 3]


@pytest.mark.parametrize("newer", [noted("x", v=3), {**noted("x"), "type": "Teleported"}])
def test_an_event_of_a_newer_program_is_refused_by_name(
    journal: Journal, newer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older program does not guess what a newer one meant, and does not take its state for its own."""
    append(journal, "a", 0, started("a"))
    with monkeypatch.context() as newer_program, journal.write() as tx:
        for module in {sys.modules[kind.__module__] for kind in type(tx).__mro__}:
            if hasattr(module, "FOLD_VERSION"):
                newer_program.setattr(module, "FOLD_VERSION", FOLD_VERSION + 1)
        tx.append("a", 1, [newer], fold([started("a")]))
    with pytest.raises(SchemaSkew) as refusal, journal.read() as reader:
        reader.load("a")
    assert refusal.value.exit_code == 6
    assert "run a" in refusal.value.message and newer["type"] in refusal.value.message


def test_an_append_at_another_version_is_refused_and_changes_nothing(journal: Journal) -> None:
    append(journal, "a", 0, started("a"))
    for wrong in (0, 2):
        with pytest.raises(Conflict) as refusal:
            append(journal, "a", wrong, noted("late"))
        assert refusal.value.code == "stale-version" and refusal.value.retryable
    with journal.read() as reader:
        assert reader.version("a") == 1


def test_a_second_event_with_the_same_key_is_refused_by_the_store(journal: Journal) -> None:
    append(journal, "a", 0, started("a"), noted("first", key="k"))
    with pytest.raises(Conflict) as refusal:
        append(journal, "a", 2, noted("again", key="k"))
    assert refusal.value.code == "duplicate-key"
    append(journal, "b", 0, started("b"), noted("another run", key="k"))
    with journal.read() as reader:
        assert reader.has_key("a", "k") and not reader.has_key("a", "other")
        assert reader.version("a") == 2


def test_what_fails_inside_a_block_leaves_nothing(journal: Journal) -> None:
    append(journal, "a", 0, started("a"))
    with pytest.raises(ZeroDivisionError), journal.write() as tx:
        tx.append("a", 1, [noted("x")], fold([started("a"), noted("x")]))
        tx.put_blob("h", b"x")
        tx.append_log("history.md", b"x")
        tx.remember("p", ("sha", b"body", "a", 2))
        raise ZeroDivisionError
    with journal.read() as reader:
        assert reader.version("a") == 1
        assert reader.blob("h") is None
        assert reader.log_length("history.md") == 0
        assert reader.renders("p") == []


def test_many_appends_in_one_block_are_one_commit(journal: Journal, store: Store) -> None:
    """Group commit: all of them or none, and a reader sees none before the end."""
    with journal.write() as tx:
        for number in range(50):
            tx.append(f"r{number}", 0, [started(f"r{number}")], fold([started(f"r{number}")]))
        with store.again(journal).read() as elsewhere:
            assert elsewhere.version("r0") == 0
    with journal.read() as reader:
        assert all(reader.version(f"r{number}") == 1 for number in range(50))


def test_a_reader_is_never_in_the_way_of_the_writer(journal: Journal, store: Store) -> None:
    append(journal, "a", 0, started("a"))
    with store.again(journal).read() as reader:
        before = reader.version("a")
        append(journal, "a", 1, noted("meanwhile"))
        assert reader.version("a") == before == 1
    with journal.read() as reader:
        assert reader.version("a") == 2


def test_the_loaded_run_is_the_fold_of_its_events_at_every_version(journal: Journal) -> None:
    events = [started("a"), *(noted("n" * n) for n in range(0, 3000, 100))]
    for number, event in enumerate(events):
        append(journal, "a", number, event)
        with journal.read() as reader:
            assert reader.load("a") == fold(events[: number + 1])


def test_a_run_that_never_started_is_none(journal: Journal) -> None:
    with journal.read() as reader:
        assert reader.load("nobody") is None
        assert reader.load_repo()["current"] is None


def test_a_run_is_looked_at_in_one_call(journal: Journal) -> None:
    append(journal, "a", 0, started("a"), noted("x"))
    with journal.read() as reader:
        run = reader.load("a")
    assert journal.load("a") == run
    assert journal.load("nothing") is None


def test_what_has_happened_since_a_version_comes_with_the_run(journal: Journal) -> None:
    append(journal, "a", 0, started("a"), noted("x"), noted("y"))
    run, events = journal.since("a", 1)
    assert run == journal.load("a")
    assert [event["type"] for event in events] == ["Noted", "Noted"]
    assert journal.since("a", 3) == (run, [])
    assert journal.since("nothing", 0) == (None, [])


def test_the_files_that_are_written_from_the_journal_are_known_in_one_call(journal: Journal) -> None:
    with journal.write() as tx:
        tx.append_log("history.md", b"one\n")
        tx.remember("a.json", ("one", b"1", "a", 1))
        tx.remember("a.json", ("two", b"2", "a", 2))
        tx.remember("fix//a.json", ("three", b"3", "b", 1))
    assert journal.written() == ({"history.md": ""}, {"a.json": "two", "fix//a.json": "three"})


def test_a_transaction_takes_the_lock_and_lets_it_go_where_it_cannot_begin(journal: Journal) -> None:
    with journal.write(), pytest.raises(Conflict) as nested:
        journal.begin(lock=True)
    assert nested.value.code == "nested-write"
    tx = journal.begin(lock=True)
    tx.put_marker("m", "1")
    journal.commit()
    journal.unlock()
    with journal.write() as again:
        assert again.marker("m") == "1"


def test_runs_are_listed_newest_first_and_by_dialect(journal: Journal) -> None:
    for number in (2, 1, 3):
        append(journal, f"r{number}", 0, started(f"r{number}", f"2026-11-15T10:00:0{number}.000Z"))
    with journal.read() as reader:
        assert [card["id"] for card in reader.runs()] == ["r3", "r2", "r1"]
        assert [card["id"] for card in reader.runs(limit=1)] == ["r3"]
        assert len(reader.runs(limit=10**30)) == 3
        assert reader.runs(dialect="flow") == []
        assert len(reader.runs(dialect="context")) == 3


def test_a_long_list_is_read_in_pages_and_narrowed(journal: Journal) -> None:
    """Two runs of one moment, so that a page may end between them."""
    for number, at in ((1, 1), (2, 2), (3, 2), (4, 3)):
        begun = {**started(f"r{number}", f"2026-11-15T10:00:0{at}.000Z"), "name": f"Add 50% of {number}"}
        cancelled = {"type": "Cancelled", "v": 2, "at": AT, "by": "test", "reason": ""}
        append(journal, f"r{number}", 0, *([begun, cancelled] if number == 4 else [begun]))

    def listed(**which: Any) -> list[str]:
        with journal.read() as reader:
            return [card["id"] for card in reader.runs(**which)]

    assert listed(limit=2) == ["r4", "r2"] and listed(limit=2, after="r2") == ["r3", "r1"]
    assert listed(limit=2, after="r1") == [] and listed(after="nobody") == []
    assert listed(statuses=["cancelled"]) == ["r4"] and listed(statuses=["running", "cancelled"], limit=1) == ["r4"]
    assert listed(statuses=["running"], after="r2") == ["r3", "r1"] and listed(statuses=["completed"]) == []
    assert listed(words="of 2") == ["r2"] and listed(words="ADD") == ["r4", "r2", "r3", "r1"]
    assert listed(words="50%") == listed() and listed(words="5_%") == listed(words="%%") == []
    assert listed(words="orchestrate", dialect="flow") == [] and listed(words="R3") == ["r3"]
    with journal.read() as reader:
        assert [card["id"] for card in reader.unfinished()] == ["r2", "r3", "r1"]


def test_a_summary_holds_what_was_used_and_what_the_run_waits_for(journal: Journal) -> None:
    paused: Any = {
        "type": "Paused", "v": 2, "at": AT, "by": "test", "kind": "question", "reason": "Which one?\nA or B",
        "step": None, "feedback": "", "question_of": "", "recommendations": [],
    }  # fmt: skip
    append(journal, "r", 0, started("r"), paused)
    with journal.read() as reader:
        (card,) = reader.runs()
    assert card["figures"] == {"attempts": 0, "refuted": 0, "micro_usd": None, "tokens": None, "busy_ms": 0}
    assert card["waits"] == {
        "kind": "question", "since": AT, "until": "", "text": "Which one?", "documents": 0, "fields": 0,
    }  # fmt: skip
    assert card["error"] == "" and card["progress"] is None


def test_it_is_known_in_which_runs_something_happened(journal: Journal) -> None:
    with journal.read() as reader:
        assert reader.versions() == {}
    append(journal, "a", 0, started("a"), noted("one"))
    append(journal, "b", 0, started("b"))
    with journal.read() as reader:
        before = reader.versions()
    append(journal, "a", 2, noted("two"))
    with journal.read() as reader:
        assert {run for run, version in reader.versions().items() if before.get(run) != version} == {"a"}
        assert reader.versions() == {"a": 3, "b": 1}


def test_the_last_eight_renders_keep_their_text_and_older_ones_their_hash(journal: Journal) -> None:
    for number in range(10):
        with journal.write() as tx:
            tx.remember("p", (f"sha{number}", f"body{number}".encode(), "a", number))
    with journal.read() as reader:
        made = reader.renders("p")
        assert [render[0] for render in made] == [f"sha{n}" for n in range(9, 1, -1)]
        assert all(render[1] is not None for render in made)
        assert reader.render_of("sha0") == ("p", ("sha0", None, "a", 0))
        assert reader.projected() == [("p", "a", "sha9")]


def test_the_newest_render_is_not_kept_twice(journal: Journal) -> None:
    """A file that is as it was before has no new version; one that is again what it was has."""
    with journal.write() as tx:
        kept = [tx.remember("p", (sha, sha.encode(), "a", 1)) for sha in ("one", "one", "two", "one", "one")]
        kept.append(tx.remember("q", ("one", b"one", "a", 1)))
    assert kept == [True, False, True, True, False, True]
    with journal.read() as reader:
        assert [render[0] for render in reader.renders("p")] == ["one", "two", "one"]


def test_append_only_text_adds_up(journal: Journal) -> None:
    with journal.write() as tx:
        assert tx.append_log("h", b"one\n") == 4
        assert tx.append_log("h", b"two\n") == 8
    with journal.read() as reader:
        assert b"".join(reader.log_text("h")) == b"one\ntwo\n"
        assert (reader.log_length("h"), reader.log_end("h")) == (8, b"two\n")
        assert (reader.log_length("other"), reader.log_end("other")) == (0, b"")
    with journal.write() as tx:
        tx.reset_log("h", b"theirs\n")
        assert tx.append_log("h", b"ours\n") == 12
    with journal.read() as reader:
        assert b"".join(reader.log_text("h")) == b"theirs\nours\n"


def test_contents_and_small_facts_are_kept_by_name(journal: Journal) -> None:
    with journal.write() as tx:
        tx.put_blob(digest(b"one"), b"one")
        tx.put_blob(digest(b"one"), b"two")  # a content never changes
        tx.put_marker("n", "one")
        tx.put_marker("n", "two")
        tx.put_marker("gone", "soon")
        tx.put_marker("gone", None)
    with journal.read() as reader:
        assert (reader.blob(digest(b"one")), reader.blob("other")) == (b"one", None)
        assert (reader.marker("n"), reader.marker("gone"), reader.marker("other")) == ("two", None, None)


def test_runs_that_have_not_ended_are_known_with_their_work_tree(journal: Journal) -> None:
    here = {**started("here"), "dialects": {"context": {"tree": ""}}}
    there = {**started("there"), "dialects": {"context": {"tree": "fix"}}}
    append(journal, "here", 0, here)
    append(journal, "there", 0, there)
    append(journal, "over", 0, started("over"), {"type": "Cancelled", "v": 2, "at": AT, "by": "test", "reason": ""})
    with journal.read() as reader:
        assert sorted(reader.open_runs()) == [("here", ""), ("there", "fix")]


def test_a_passage_is_found_until_it_is_replaced(journal: Journal) -> None:
    with journal.write() as tx:
        tx.index("a", "architect", "docs/a.md", [("Storage", "tokens live in a vault"), ("Other", "nothing here")])
    with journal.read() as reader:
        assert [p["heading"] for p in reader.search("vault", 5)] == ["Storage"]
    with journal.write() as tx:
        tx.index("a", "architect", "docs/a.md", [("Storage", "tokens live in a file")])
    with journal.read() as reader:
        assert reader.search("vault", 5) == []


def test_two_writers_at_once_each_get_their_turn(journal: Journal) -> None:
    append(journal, "a", 0, started("a"))

    def write_hundred() -> None:
        for _ in range(100):
            with journal.write() as tx:
                run = tx.load("a")
                assert run is not None
                tx.append("a", run["version"], [noted("x")], fold([noted("x")], run))

    threads = [threading.Thread(target=write_hundred) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with journal.read() as reader:
        assert reader.version("a") == 201


# ---- the turns of a driver, which remember what they know ------------------------------------------


@contextmanager
def remembering(journal: Journal) -> Iterator[Transaction]:
    journal.lock()
    try:
        yield journal.begin(remember=True)
        journal.commit()
    except BaseException:
        journal.rollback()
        raise
    finally:
        journal.unlock()


def write_everything(tx: Transaction, version: int, word: str) -> None:
    tx.append("a", version, [noted(word)], fold([*tx.events("a"), noted(word)]))
    tx.append_log("log.md", word.encode())
    tx.put_marker("said", word)


def all_known(tx: Reader) -> tuple[int, list[tuple[str, int]], str | None]:
    return tx.version("a"), tx.logs(), tx.marker("said")


@pytest.mark.parametrize(
    "who", ["the same driver", "another turn", "another process", "another process, while it was closed"]
)
def test_what_was_written_between_two_turns_of_a_driver_is_known_to_the_second(
    journal: Journal, store: Store, who: str
) -> None:
    append(journal, "a", 0, started("a"))
    with remembering(journal) as tx:
        assert all_known(tx) == (1, [], None)
        write_everything(tx, 1, "one")
        assert all_known(tx) == (2, [("log.md", 3)], "one"), "and by the one who wrote it"
    if who == "the same driver":
        with remembering(journal) as tx:
            write_everything(tx, 2, "two")
    elif who == "another turn":
        with journal.write() as tx:
            write_everything(tx, 2, "two")
    else:
        if "closed" in who:
            journal.close()
        other = store.again(journal)
        with other.write() as tx:
            write_everything(tx, 2, "two")
        other.close()
    with remembering(journal) as tx:
        assert all_known(tx) == (3, [("log.md", 6)], "two")
        write_everything(tx, 3, "three")
    with journal.read() as reader:
        assert [e["text"] for e in reader.events("a", 1)] == ["one", "two", "three"]
        assert reader.load("a") == fold(list(reader.events("a")))


def test_what_a_turn_wrote_that_was_taken_back_is_known_to_nobody(journal: Journal) -> None:
    append(journal, "a", 0, started("a"))
    with remembering(journal) as tx:
        write_everything(tx, 1, "one")
    with pytest.raises(ZeroDivisionError), remembering(journal) as tx:
        write_everything(tx, 2, "two")
        raise ZeroDivisionError
    with remembering(journal) as tx:
        assert all_known(tx) == (2, [("log.md", 3)], "one")
        write_everything(tx, 2, "another")
    with journal.read() as reader:
        assert reader.load("a") == fold(list(reader.events("a")))


def test_texts_that_are_taken_out_of_a_log_change_what_a_driver_knows_of_its_length(journal: Journal) -> None:
    with remembering(journal) as tx:
        tx.append_log("log.md", b"a secret")
        assert tx.logs() == [("log.md", 8)]
    with remembering(journal) as tx:
        tx.reset_log("log.md", b"a")
        assert tx.logs() == [("log.md", 1)]
    with remembering(journal) as tx:
        assert tx.logs() == [("log.md", 1)]


# ---- is there one, has it changed, is it well -------------------------------------------------------


def test_only_a_commit_makes_a_journal(journal: Journal) -> None:
    assert not journal.exists() and journal.pulse() == "" and not journal.exists()
    with journal.read() as reader:
        assert reader.load("a") is None
    with pytest.raises(ZeroDivisionError), journal.write() as transaction:
        transaction.put_marker("a", "b")
        raise ZeroDivisionError
    assert not journal.exists() and journal.location
    append(journal, "a", 0, started("a"))
    assert journal.exists()
    with journal.read() as reader:
        assert reader.load("a") is not None


def test_the_pulse_changes_with_every_commit_of_anybody_and_with_nothing_else(journal: Journal, store: Store) -> None:
    append(journal, "a", 0, started("a"))
    pulses = [journal.pulse()]
    with journal.read() as reader:
        reader.load("a")
    with pytest.raises(ZeroDivisionError), journal.write() as tx:
        tx.put_marker("n", "taken back")
        raise ZeroDivisionError
    assert journal.pulse() == pulses[0]
    append(journal, "a", 1, noted("ours"))
    pulses.append(journal.pulse())
    other = store.again(journal)
    with other.write() as tx:
        tx.put_marker("n", "theirs")
    pulses.append(journal.pulse())
    with remembering(journal) as tx:
        tx.append_log("log.md", b"a turn of a driver")
    pulses.append(journal.pulse())
    with other.write() as tx:
        tx.rebuild("a")
    pulses.append(journal.pulse())
    assert len(set(pulses)) == 5 and journal.pulse() == pulses[-1]
    other.close()


def test_a_sound_journal_is_well(journal: Journal) -> None:
    append(journal, "a", 0, started("a"))
    checks = list(journal.health())
    assert {"journal"} <= {check["name"] for check in checks}
    assert "problem" not in {check["status"] for check in checks}


def test_what_a_driver_holds_open_is_the_same_journal(journal: Journal) -> None:
    append(journal, "a", 0, started("a"))
    journal.hold_open(True)
    append(journal, "a", 1, noted("while it is held"))
    journal.hold_open(False)
    with journal.read() as reader:
        assert reader.load("a") == fold([started("a"), noted("while it is held")])


# ---- is it what was written -------------------------------------------------------------------------


def verify(journal: Journal) -> list[tuple[str | None, str]]:
    with journal.read() as reader:
        findings = [*reader.verify_store(), *reader.verify_contents()]
        findings += [found for run in reader.names() for found in reader.verify_run(run)]
    return [(found["run"], found["where"]) for found in findings]


@pytest.mark.parametrize(
    ("what", "where"),
    [("event", "event 2"), ("link", "event 2"), ("tail", "event 3"), ("content", f"content {digest(b'kept')}")],
)
def test_what_is_not_as_it_was_written_is_named(journal: Journal, store: Store, what: Damage, where: str) -> None:
    append(journal, "a", 0, started("a"), noted("one"), noted("three"))
    append(journal, "b", 0, started("b"))
    with journal.write() as tx:
        tx.put_blob(digest(b"kept"), b"kept")
    assert verify(journal) == []
    store.damage(journal, what)
    assert verify(journal) == [(None if what == "content" else "a", where)]


def test_every_run_has_a_name_and_the_repository_comes_last(journal: Journal) -> None:
    for run in ("b", "a"):
        append(journal, run, 0, started(run))
    settings = {"type": "SettingsChanged", "v": 2, "at": AT, "by": "test", "changes": {"x": 1}}
    with journal.write() as tx:
        tx.append("@", 0, [cast("RepoEvent", settings)], fold_repo([settings]))
    with journal.read() as reader:
        assert reader.names() == ["a", "b", "@"]
        assert reader.load_repo()["settings"] == {"x": 1}
        assert [run["id"] for run in reader.runs()] == ["a", "b"]


def test_what_is_cached_of_a_run_can_be_made_anew(journal: Journal) -> None:
    append(journal, "a", 0, started("a"), noted("one"))
    with journal.read() as reader:
        before = reader.load("a"), reader.runs(), reader.open_runs()
    with journal.write() as tx:
        tx.rebuild("a")
        tx.rebuild_index()
    with journal.read() as reader:
        assert (reader.load("a"), reader.runs(), reader.open_runs()) == before


# ---- a backup ---------------------------------------------------------------------------------------


def fill(journal: Journal) -> None:
    """Something of every kind."""
    stored = {"type": "ArtifactStored", "v": 2, "at": AT, "by": "test", "name": "spec", "path": "docs/spec.md"}
    stored |= {"sha256": digest(b"# Spec"), "size": 6, "step": None, "attempt": None}
    append(journal, "a", 0, started("a"), noted("one", key="k"), stored)
    append(journal, "b", 0, started("b"), noted("two \ud83d"))
    with journal.write() as tx:
        tx.put_blob(digest(b"# Spec"), b"# Spec")
        tx.put_blob(digest(b"\xff\0"), b"\xff\0")
        for number in range(10):
            text = f"version {number}".encode()
            tx.remember("docs/a.json", (digest(text), text, "a", 3))
        tx.remember("fix//docs/a.json", (digest(b"there"), b"there", "b", 2))
        tx.append_log("docs/history.md", b"one\n")
        tx.append_log("docs/history.md", b"two\n")
        tx.put_marker("session:1", "a")
        tx.put_marker("unproven:a", "[]")
        tx.index("a", "spec", "docs/spec.md", [("Storage", "a vault")])


def take(journal: Journal, records: list[Json]) -> Importer:
    with journal.write() as tx:
        importer = tx.importing()
        for record in records:
            importer.take(record)
        importer.finish()
    return importer


def records_of(journal: Journal, run: str | None = None) -> list[Json]:
    with journal.read() as reader:
        return list(reader.records(run))


@pytest.mark.parametrize("target", STORES)
def test_a_backup_of_one_store_is_read_back_by_every_store(journal: Journal, target: str, tmp_path: Path) -> None:
    fill(journal)
    records = records_of(journal)
    other = STORES[target].open(str(tmp_path / "other"))
    importer = take(other, records)
    assert (importer.runs, importer.events) == (["a", "b"], 5)
    assert importer.shown == {"docs/a.json", "fix//docs/a.json"}
    assert records_of(other) == records and verify(other) == []
    with journal.read() as here, other.read() as there:
        assert there.load("a") == here.load("a") and there.load("b") == here.load("b")
        assert there.runs() == here.runs() and there.has_key("a", "k")
        assert there.renders("docs/a.json") == here.renders("docs/a.json")
        assert there.marker("session:1") == "a" and there.marker("unproven:a") is None, "that is about files here"
        assert [hit["heading"] for hit in there.search("vault", 5)] == ["Storage"]
        assert there.stored_by(["a", "b"]) == [digest(b"# Spec")]
    again = take(other, records)
    assert (again.runs, again.events) == ([], 0), "what is here already is passed over"
    other.close()


def test_a_backup_of_one_run_holds_what_belongs_to_it(journal: Journal) -> None:
    fill(journal)
    kinds = [(record["kind"], record.get("run")) for record in records_of(journal, "a")]
    assert kinds == [("run", "a"), *[("event", "a")] * 3, ("blob", None), *[("render", "a")] * 10, ("passage", "a")]


def changed(records: list[Json], kind: str, fields: dict[str, object]) -> list[Json]:
    first = next(record for record in records if record["kind"] == kind)
    return [{**record, **fields} if record is first else record for record in records]


@pytest.mark.parametrize(
    ("kind", "fields", "error"),
    [
        ("event", {"digest": "00" * 32}, Damaged),
        ("event", {"seq": 7}, Damaged),
        ("event", {"digest": 7}, Damaged),
        ("run", {"events": 4}, Damaged),
        ("run", {"head": "00" * 32}, Damaged),
        ("blob", {"text": "another"}, Damaged),
        ("log", {"path": "src/main.py"}, Damaged),
        ("log", {"path": "../x"}, BadInput),
        ("render", {"path": "x//../a"}, BadInput),
        ("note", {"kind": "hologram"}, SchemaSkew),
    ],
)
def test_a_backup_that_is_not_whole_is_refused_and_nothing_of_it_is_kept(
    journal: Journal, kind: str, fields: dict[str, object], error: type[TenutoError], tmp_path: Path
) -> None:
    source = MemoryJournal()
    fill(source)
    with pytest.raises(error):
        take(journal, changed(records_of(source), kind, fields))
    assert records_of(journal) == []


def test_a_run_that_is_here_with_other_events_is_not_overwritten(journal: Journal) -> None:
    source = MemoryJournal()
    fill(source)
    append(journal, "a", 0, started("a"), noted("mine"))
    before = records_of(journal)
    with pytest.raises(Refused, match="run a is here already"):
        take(journal, records_of(source))
    assert records_of(journal) == before


# ---- texts that are taken out -----------------------------------------------------------------------

STAMP: Stamp = {"at": AT, "by": "test"}


def test_a_text_that_is_taken_out_is_nowhere_and_every_chain_still_holds(journal: Journal) -> None:
    secret = "hunter2hunter2"
    body = f"# {secret}".encode()
    append(journal, "a", 0, started("a"), noted(f"the word is {secret}"), noted("another"))
    with journal.write() as tx:
        tx.put_blob(digest(body), body)
        tx.remember("docs/a.json", (digest(body), body, "a", 2))
        tx.append_log("docs/history.md", body)
        tx.put_marker("said", secret)
        tx.index("a", "spec", "docs/spec.md", [(secret, f"it is {secret}")])
    journal.lock()
    tx = journal.begin()
    done = tx.redact(Redaction([secret]), STAMP)
    journal.commit()
    journal.erase()
    journal.unlock()
    assert (done["runs"], done["events"], done["contents"], done["notes"], done["passages"]) == (["a"], 1, 1, 1, 1)
    assert done["logs"] == {"docs/history.md": (body, b"# [secret]")}
    assert secret not in dumps(records_of(journal)) and verify(journal) == []
    with journal.read() as reader:
        assert [event["text"] for event in reader.events("a", 1)] == ["the word is [secret]", "another"]
        assert reader.blob(digest(b"# [secret]")) == b"# [secret]" and reader.blob(digest(body)) is None
        assert reader.renders("docs/a.json", 1)[0][1] == b"# [secret]"
        assert reader.search("hunter2hunter2", 5) == []
    append(journal, "a", 3, noted("it goes on"))
    assert verify(journal) == []
    for path in journal.files():
        assert secret.encode() not in (Path(path).read_bytes() if Path(path).exists() else b"")


def test_all_that_was_said_in_one_event_is_taken_out(journal: Journal) -> None:
    append(journal, "a", 0, started("a"), noted("a long and telling sentence"), noted("stays"))
    with journal.write() as tx:
        assert tx.scrub_event("a", 2, STAMP) == (["a long and telling sentence"], None)
        with pytest.raises(NotFound):
            tx.scrub_event("a", 9, STAMP)
    with journal.read() as reader:
        assert [event["text"] for event in reader.events("a", 1)] == ["[secret]", "stays"]
    assert verify(journal) == []
