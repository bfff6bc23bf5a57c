"""The Journal contract: every store keeps the same promises."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tenuto.core import upgrade
from tenuto.core.fold import FOLD_VERSION, fold
from tenuto.encoding import digest, dumps
from tenuto.errors import Conflict, SchemaSkew
from tenuto.stores import schema
from tenuto.stores.memory import MemoryJournal
from tenuto.stores.sqlite import SqliteJournal

AT = "2026-11-15T10:00:00.000Z"


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made: Any = MemoryJournal() if request.param == "memory" else SqliteJournal(str(tmp_path / "state"))
    yield made
    made.close()


def noted(text: str, **more: Any) -> Any:
    return {"type": "Noted", "v": 1, "at": AT, "by": "test", "text": text, "extra": {}, **more}


def started(run: str, at: str = AT) -> Any:
    return {
        "type": "RunStarted", "v": 1, "at": at, "by": "test", "run": run, "name": run, "request": "", "summary": "",
        "mode": "standard", "pipeline": {"name": "orchestrate", "hash": None}, "driver": "manual", "dialects": {"context": {}},
        "order": "any", "schedule": [], "evidence": {}, "settings": {},
    }  # fmt: skip


def append(journal: Any, run: str, expected: int, *events: Any) -> None:
    with journal.write() as tx:
        before = [*tx.events(run)]
        tx.append(run, expected, list(events), fold([*before, *events]))


def test_events_come_back_word_for_word_and_in_order(journal: Any) -> None:
    """Text is stored as it was given: unicode, control characters, key order, numbers."""
    events = [started("a"), noted("ä → \u0000 \ud7ff"), noted("two", z=1, a=[1.5, None, True])]
    append(journal, "a", 0, *events)
    with journal.read() as reader:
        assert [dumps(e) for e in reader.events("a")] == [dumps(e) for e in events]
        assert [e["text"] for e in reader.events("a", 1)] == ["ä → \u0000 \ud7ff", "two"]
        assert reader.version("a") == 3


def test_half_a_character_is_stored_and_comes_back(journal: Any) -> None:
    """Agents cut texts in the middle of an emoji: that is no UTF-8, and no reason to lose the event."""
    append(journal, "a", 0, started("a"), noted("cut \ud83d"))
    with journal.read() as reader:
        assert [e["text"] for e in reader.events("a", 1)] == ["cut \ud83d"]
        assert reader.load("a") == fold(reader.events("a"))


def test_an_old_event_is_read_as_it_would_be_written_today(journal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written stays as it is; who reads sees one shape. Each version is one step."""
    append(journal, "a", 0, started("a"))
    append(journal, "a", 1, noted("from then"))

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
        assert [e["v"] for e in reader.events("a")] == [1, 3, 3]


@pytest.mark.parametrize("newer", [noted("x", v=2), {**noted("x"), "type": "Teleported"}])
def test_an_event_of_a_newer_program_is_refused_by_name(
    journal: Any, newer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older program does not guess what a newer one meant, and does not take its state for its own."""
    append(journal, "a", 0, started("a"))
    with monkeypatch.context() as newer_program, journal.write() as tx:
        newer_program.setattr(sys.modules[type(tx).__module__], "FOLD_VERSION", FOLD_VERSION + 1)
        tx.append("a", 1, [newer], fold([started("a")]))
    with pytest.raises(SchemaSkew) as refusal, journal.read() as reader:
        reader.load("a")
    assert refusal.value.exit_code == 6
    assert "run a" in refusal.value.message and newer["type"] in refusal.value.message


def test_an_append_at_another_version_is_refused_and_changes_nothing(journal: Any) -> None:
    append(journal, "a", 0, started("a"))
    for wrong in (0, 2):
        with pytest.raises(Conflict) as refusal:
            append(journal, "a", wrong, noted("late"))
        assert refusal.value.code == "stale-version" and refusal.value.retryable
    with journal.read() as reader:
        assert reader.version("a") == 1


def test_a_second_event_with_the_same_key_is_refused_by_the_store(journal: Any) -> None:
    append(journal, "a", 0, started("a"), noted("first", key="k"))
    with pytest.raises(Conflict) as refusal:
        append(journal, "a", 2, noted("again", key="k"))
    assert refusal.value.code == "duplicate-key"
    append(journal, "b", 0, started("b"), noted("another run", key="k"))
    with journal.read() as reader:
        assert reader.has_key("a", "k") and not reader.has_key("a", "other")
        assert reader.version("a") == 2


def test_what_fails_inside_a_block_leaves_nothing(journal: Any) -> None:
    append(journal, "a", 0, started("a"))
    with pytest.raises(ZeroDivisionError), journal.write() as tx:
        tx.append("a", 1, [noted("x")], tx.load("a"))
        tx.put_blob("h", b"x")
        tx.append_log("history.md", b"x")
        tx.remember("p", ("sha", b"body", "a", 2))
        raise ZeroDivisionError
    with journal.read() as reader:
        assert reader.version("a") == 1
        assert reader.blob("h") is None
        assert reader.log_length("history.md") == 0
        assert reader.renders("p") == []


def test_many_appends_in_one_block_are_one_commit(journal: Any) -> None:
    """Group commit: all of them or none, and a reader sees none before the end."""
    with journal.write() as tx:
        for number in range(50):
            tx.append(f"r{number}", 0, [started(f"r{number}")], fold([started(f"r{number}")]))
        with journal_reader_elsewhere(journal) as elsewhere:
            assert elsewhere.version("r0") == 0
    with journal.read() as reader:
        assert all(reader.version(f"r{number}") == 1 for number in range(50))


def journal_reader_elsewhere(journal: Any) -> Any:
    """A second process would open the file anew; the memory store has one reader for all."""
    return SqliteJournal(journal.directory).read() if isinstance(journal, SqliteJournal) else journal.read()


def test_a_reader_is_never_in_the_way_of_the_writer(journal: Any) -> None:
    append(journal, "a", 0, started("a"))
    with journal_reader_elsewhere(journal) as reader:
        before = reader.version("a")
        append(journal, "a", 1, noted("meanwhile"))
        assert reader.version("a") == before == 1
    with journal.read() as reader:
        assert reader.version("a") == 2


def test_the_loaded_run_is_the_fold_of_its_events_at_every_version(journal: Any) -> None:
    events = [started("a"), *(noted("n" * n) for n in range(0, 3000, 100))]
    for number, event in enumerate(events):
        append(journal, "a", number, event)
        with journal.read() as reader:
            assert reader.load("a") == fold(events[: number + 1])


def test_a_state_row_of_another_fold_is_not_used(tmp_path: Path) -> None:
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    journal.connection().execute("UPDATE state SET fold=?, body='{\"version\": 99}'", (FOLD_VERSION + 1,))
    with journal.read() as reader:
        found = reader.load("a")
    assert found is not None and found["version"] == 1 and found["name"] == "a"


def test_a_run_that_never_started_is_none(journal: Any) -> None:
    with journal.read() as reader:
        assert reader.load("nobody") is None
        assert reader.load_repo()["current"] is None


def test_runs_are_listed_newest_first_and_by_dialect(journal: Any) -> None:
    for number in (2, 1, 3):
        append(journal, f"r{number}", 0, started(f"r{number}", f"2026-11-15T10:00:0{number}.000Z"))
    with journal.read() as reader:
        assert [card["id"] for card in reader.runs()] == ["r3", "r2", "r1"]
        assert [card["id"] for card in reader.runs(limit=1)] == ["r3"]
        assert len(reader.runs(limit=10**30)) == 3
        assert reader.runs(dialect="flow") == []
        assert len(reader.runs(dialect="context")) == 3


def test_the_last_eight_renders_keep_their_text_and_older_ones_their_hash(journal: Any) -> None:
    for number in range(10):
        with journal.write() as tx:
            tx.remember("p", (f"sha{number}", f"body{number}".encode(), "a", number))
    with journal.read() as reader:
        made = reader.renders("p")
        assert [render[0] for render in made] == [f"sha{n}" for n in range(9, 1, -1)]
        assert all(render[1] is not None for render in made)
        assert reader.render_of("sha0") == ("p", ("sha0", None, "a", 0))
        assert reader.projected() == [("p", "a", "sha9")]


def test_append_only_text_adds_up(journal: Any) -> None:
    with journal.write() as tx:
        tx.append_log("h", b"one\n")
        tx.append_log("h", b"two\n")
    with journal.read() as reader:
        assert b"".join(reader.log_text("h")) == b"one\ntwo\n"
        assert (reader.log_length("h"), reader.log_end("h")) == (8, b"two\n")
        assert (reader.log_length("other"), reader.log_end("other")) == (0, b"")
    with journal.write() as tx:
        tx.reset_log("h", b"theirs\n")
        tx.append_log("h", b"ours\n")
    with journal.read() as reader:
        assert b"".join(reader.log_text("h")) == b"theirs\nours\n"


def test_contents_and_small_facts_are_kept_by_name(journal: Any) -> None:
    with journal.write() as tx:
        tx.put_blob(digest(b"one"), b"one")
        tx.put_blob(digest(b"one"), b"two")  # a content never changes
        tx.put_note("n", "one")
        tx.put_note("n", "two")
        tx.put_note("gone", "soon")
        tx.put_note("gone", None)
    with journal.read() as reader:
        assert (reader.blob(digest(b"one")), reader.blob("other")) == (b"one", None)
        assert (reader.note("n"), reader.note("gone"), reader.note("other")) == ("two", None, None)


def test_runs_that_have_not_ended_are_known_with_their_work_tree(journal: Any) -> None:
    here = {**started("here"), "dialects": {"context": {"tree": ""}}}
    there = {**started("there"), "dialects": {"context": {"tree": "fix"}}}
    append(journal, "here", 0, here)
    append(journal, "there", 0, there)
    append(journal, "over", 0, started("over"), {"type": "Cancelled", "v": 1, "at": AT, "by": "test", "reason": ""})
    with journal.read() as reader:
        assert sorted(reader.open_runs()) == [("here", ""), ("there", "fix")]


def test_a_passage_is_found_until_it_is_replaced(journal: Any) -> None:
    with journal.write() as tx:
        tx.index("a", "architect", "docs/a.md", [("Storage", "tokens live in a vault"), ("Other", "nothing here")])
    with journal.read() as reader:
        assert [p["heading"] for p in reader.search("vault", 5)] == ["Storage"]
    with journal.write() as tx:
        tx.index("a", "architect", "docs/a.md", [("Storage", "tokens live in a file")])
    with journal.read() as reader:
        assert reader.search("vault", 5) == []


def test_two_writers_at_once_each_get_their_turn(journal: Any) -> None:
    append(journal, "a", 0, started("a"))

    def write_hundred() -> None:
        for _ in range(100):
            with journal.write() as tx:
                run = tx.load("a")
                tx.append("a", run["version"], [noted("x")], fold([noted("x")], run))

    threads = [threading.Thread(target=write_hundred) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with journal.read() as reader:
        assert reader.version("a") == 201


def test_a_journal_of_a_newer_schema_is_refused_by_name(tmp_path: Path) -> None:
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    journal.connection().execute("PRAGMA user_version=99")
    journal.close()
    with pytest.raises(SchemaSkew) as refusal, SqliteJournal(str(tmp_path)).read():
        pass
    assert refusal.value.exit_code == 6 and "99" in refusal.value.message


def test_an_older_journal_is_brought_up_to_date_and_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next version of Tenuto finds a journal of this one."""
    old = SqliteJournal(str(tmp_path))
    append(old, "a", 0, started("a"), noted("from before"))
    old.close()
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 3)
    monkeypatch.setitem(schema._MIGRATIONS, 2, "ALTER TABLE run ADD COLUMN colour TEXT;\n")
    monkeypatch.setitem(schema._MIGRATIONS, 3, "UPDATE run SET colour='blue';\nCREATE INDEX run_colour ON run(colour);\n")
    new = SqliteJournal(str(tmp_path))
    append(new, "a", 2, noted("from today"))
    with new.read() as reader:
        assert [e["text"] for e in reader.events("a", 1)] == ["from before", "from today"]
    assert new.connection().execute("SELECT id, colour FROM run").fetchall() == [("a", "blue")]
    assert new.connection().execute("PRAGMA user_version").fetchone() == (3,)
    new.close()


def test_a_migration_that_fails_leaves_a_whole_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(SqliteJournal(str(tmp_path)), "a", 0, started("a"))
    with monkeypatch.context() as newer:
        newer.setattr(schema, "SCHEMA_VERSION", 2)
        newer.setitem(schema._MIGRATIONS, 2, "ALTER TABLE run ADD COLUMN colour TEXT;\nUPDATE run SET nonsense=1;\n")
        with pytest.raises(sqlite3.OperationalError), SqliteJournal(str(tmp_path)).read():
            pass
    again = SqliteJournal(str(tmp_path))
    append(again, "a", 1, noted("the old program still reads it"))
    assert "colour" not in str(again.connection().execute("SELECT sql FROM sqlite_master WHERE name='run'").fetchone())


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.core.fold import fold
from tenuto.stores.sqlite import SqliteJournal
journal, name, slowest = SqliteJournal(sys.argv[2]), sys.argv[3], 0.0
import time
for number in range(int(sys.argv[4])):
    before = time.monotonic()
    with journal.write() as tx:
        run = tx.load("a")
        event = {"type": "Noted", "v": 1, "at": "2026-11-15T10:00:00.000Z", "by": name, "text": str(number), "extra": {}}
        tx.append("a", run["version"], [event], fold([event], run))
    slowest = max(slowest, time.monotonic() - before)
print(slowest)
"""


def test_64_processes_lose_nothing_and_every_sequence_number_is_used_once(tmp_path: Path) -> None:
    """Each writer's updates are all there, in its own order, whoever else writes."""
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-I", "-S", "-c", WRITER, root, str(tmp_path)]
    writers = [
        subprocess.Popen([*command, f"w{n}", "20"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(64)
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors.decode()
    with journal.read() as reader:
        events = [e for e in reader.events("a") if e["type"] == "Noted"]
        assert reader.version("a") == 64 * 20 + 1
    for n in range(64):
        assert [e["text"] for e in events if e["by"] == f"w{n}"] == [str(i) for i in range(20)]


def test_a_log_that_was_laid_out_holds_what_was_written_and_nothing_else(tmp_path: Path) -> None:
    """A driver gives the log its blocks beforehand. Whoever finds it after a crash, at any moment, reads what was committed."""
    journal = SqliteJournal(str(tmp_path / "state"))
    append(journal, "a", 0, started("a"))
    for number in range(1, 31):
        if number % 10 == 1:
            journal.hold_open(number % 20 == 1)
        copy = SqliteJournal(str(shutil.copytree(tmp_path / "state", tmp_path / f"copy-{number}")))
        (tmp_path / f"copy-{number}" / "journal.db-shm").unlink()
        with copy.read() as reader:
            assert reader.version("a") == number == len([*reader.events("a")])
        append(copy, "a", number, noted("goes on"))
        copy.close()
        append(journal, "a", number, noted(str(number)))
    assert (tmp_path / "state" / "journal.db-wal").stat().st_size < 1 << 20, "it is written over, not made longer"


@pytest.mark.needs("strace")
def test_16_processes_on_a_slow_disk_wait_for_each_other_and_never_give_up(tmp_path: Path) -> None:
    """3 ms are added to each flush. (How long they wait: make bench ARGS=journal.)"""
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    root = str(Path(__file__).resolve().parents[2])
    slowed = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_exit=3000"]
    command = [*slowed, sys.executable, "-I", "-S", "-c", WRITER, root, str(tmp_path)]
    writers = [subprocess.Popen([*command, f"w{n}", "5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(16)]
    for writer in writers:
        _, errors = writer.communicate()
        assert (writer.returncode, errors) == (0, b""), errors.decode()
    with journal.read() as reader:
        assert reader.version("a") == 16 * 5 + 1


@pytest.mark.needs("strace")
def test_nobody_is_answered_before_their_write_is_flushed(tmp_path: Path) -> None:
    """The last thing that a process does to the journal before it answers is a flush; one that fails is no success."""
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    root, trace = str(Path(__file__).resolve().parents[2]), tmp_path / "trace"
    command = [sys.executable, "-I", "-S", "-c", WRITER, root, str(tmp_path), "w", "1"]
    watched = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=pwrite64,write,fsync,fdatasync"]
    subprocess.run([*watched, *command], check=True, capture_output=True)
    calls = [line.partition(" ")[2].strip() for line in trace.read_text().splitlines()]
    answer = next(at for at, line in enumerate(calls) if line.startswith("write(1<"))
    to_log = [line.partition("(")[0] for line in calls[:answer] if "journal.db-wal>" in line]
    assert to_log[-1] == "fdatasync" and "pwrite64" in to_log
    broken = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"]
    failed = subprocess.run([*broken, *command], check=False, capture_output=True, text=True)
    assert failed.returncode == 1 and failed.stdout == ""
    assert "nobody can tell" in failed.stderr


# ---- the turns of a driver, which remember what they know ------------------------------------------


@contextmanager
def remembering(journal: Any) -> Iterator[Any]:
    journal.lock()
    try:
        yield journal.begin(remember=True)
        journal.commit()
    except BaseException:
        journal.rollback()
        raise
    finally:
        journal.unlock()


def write_everything(tx: Any, version: int, word: str) -> None:
    tx.append("a", version, [noted(word)], fold([*tx.events("a"), noted(word)]))
    tx.append_log("log.md", word.encode())
    tx.put_note("said", word)


def all_known(tx: Any) -> tuple[int, Any, Any]:
    return tx.version("a"), tx.logs(), tx.note("said")


@pytest.mark.parametrize("who", ["the same driver", "another turn", "another process", "another process, while it was closed"])
def test_what_was_written_between_two_turns_of_a_driver_is_known_to_the_second(journal: Any, who: str) -> None:
    append(journal, "a", 0, started("a"))
    with remembering(journal) as tx:
        assert all_known(tx) == (1, [], None)
        write_everything(tx, 1, "one")
        assert all_known(tx) == (2, [("log.md", 3)], "one"), "and by the one who wrote it"
    if who == "the same driver":
        with remembering(journal) as tx:
            write_everything(tx, 2, "two")
    elif who == "another turn" or isinstance(journal, MemoryJournal):
        with journal.write() as tx:
            write_everything(tx, 2, "two")
    else:
        if "closed" in who:
            journal.close()
        other = SqliteJournal(journal.directory)
        with other.write() as tx:
            write_everything(tx, 2, "two")
        other.close()
    with remembering(journal) as tx:
        assert all_known(tx) == (3, [("log.md", 6)], "two")
        write_everything(tx, 3, "three")
    with journal.read() as reader:
        assert [e["text"] for e in reader.events("a", 1)] == ["one", "two", "three"]
        assert reader.load("a") == fold(list(reader.events("a")))


def test_what_a_turn_wrote_that_was_taken_back_is_known_to_nobody(journal: Any) -> None:
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


def test_texts_that_are_taken_out_of_a_log_change_what_a_driver_knows_of_its_length(journal: Any) -> None:
    with remembering(journal) as tx:
        tx.append_log("log.md", b"a secret")
        assert tx.logs() == [("log.md", 8)]
    with remembering(journal) as tx:
        tx.reset_log("log.md", b"a")
        assert tx.logs() == [("log.md", 1)]
    with remembering(journal) as tx:
        assert tx.logs() == [("log.md", 1)]
