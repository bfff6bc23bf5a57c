"""verify: damage is found, named and never explained away; what merely lags behind is told apart."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.core import upgrade
from tenuto.errors import TenutoError
from tests.support.journals import database_of
from tests.support.present import present

from .conftest import start

Say = Callable[..., Any]
DATABASE = Path(".git/tenuto/journal.db")


def change(*statements: str) -> None:
    with closing(sqlite3.connect(DATABASE)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount > 0, statement
        db.commit()


def findings(said: Any) -> list[tuple[str, str | None, str]]:
    report = said.error["details"]["report"] if said.status else said.data
    return [(found["severity"], found["run"], found["where"]) for found in report["findings"]]


def test_a_journal_that_nobody_touched_is_sound(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    start(workspace, "second", shown=False)
    told = say("verify")
    assert (told.status, told.out) == (0, "sound: 2 runs, 8 events\n")
    assert say("verify", "--json").data == {"runs": 2, "events": 8, "findings": []}
    assert say("verify", run, "--json").data["events"] == 5
    assert say("verify", "third").status == 3


@pytest.mark.parametrize(
    ("statement", "owner", "where"),
    [
        ("UPDATE event SET body=replace(body, 'build', 'built') WHERE seq=2", "dark-mode", "event 2"),
        ("UPDATE event SET body=CAST(x'ff00' AS TEXT) WHERE seq=3 AND run='dark-mode'", "dark-mode", "event 3"),
        ("UPDATE event SET redacted='{\"sha256\":\"00\"}', body='{}' WHERE seq=4", "dark-mode", "event 4"),
        ("UPDATE event SET chain=zeroblob(32) WHERE seq=3", "dark-mode", "event 3"),
        ("DELETE FROM event WHERE run='dark-mode' AND seq=2", "dark-mode", "event 2"),
        ("DELETE FROM event WHERE run='dark-mode' AND seq>3", "dark-mode", "event 4"),
        ("UPDATE run SET seq=4 WHERE id='dark-mode'", "dark-mode", "event 5"),
        ("UPDATE run SET chain=zeroblob(32) WHERE id='dark-mode'", "dark-mode", "end"),
        ("DELETE FROM run WHERE id='dark-mode'", "dark-mode", "end"),
        ("UPDATE event SET body=replace(body, 'dark', 'dim') WHERE run='@'", "@", "event 1"),
        ("UPDATE run SET card=replace(card, 'waiting_gate', 'completed')", "dark-mode", "card"),
        ("UPDATE render SET body=x'00' WHERE body IS NOT NULL AND n=1", "dark-mode", "docs/dark-mode.json"),
        ("UPDATE logged SET length=length+1", None, "docs/history.md"),
    ],
)
def test_the_first_bad_event_is_named(statement: str, owner: str | None, where: str, say: Say, run: str) -> None:
    """Whatever is changed behind Tenuto's back: exit status 1, and the place is named."""
    change(statement)
    answered = say("verify", "--json")
    assert answered.status == 1
    assert ("damage", owner, where) in findings(answered)
    told = say("verify")
    assert told.status == 1
    assert where in told.err


def test_a_file_that_was_never_there_is_no_damage(say: Say, run: str) -> None:
    """An agent told of a file that it wrote and removed again: that it did is on record, and nothing is missing."""
    with tenuto.open(".").turn() as turn:
        turn.keep_file(run, "notes", "notes.md")
    assert say("verify").status == 0


def test_a_kept_state_that_is_not_what_the_events_give_is_found(say: Say, run: str) -> None:
    for damage in ("body=replace(body, 'running', 'failed')", "body='{'"):
        change(f"UPDATE state SET {damage} WHERE run='dark-mode'")
        assert ("damage", run, "state") in findings(say("verify", "--json"))
    assert say("status", "--json").data["status"] == "waiting_gate", "it is only a cache"
    assert say("repair").status == 0
    assert say("verify").status == 0


def test_stored_files_are_checked_against_their_names(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    """Small ones in the database, large ones beside it, replaced versions too."""
    with workspace.turn() as turn:
        turn.store(run, "picture", "docs/picture.bin", b"x" * (1 << 19))
    change("UPDATE blob SET body=x'00'")
    (large,) = Path(".git/tenuto/objects").glob("*/*")
    large.write_bytes(b"y")
    found = findings(say("verify", "--json"))
    assert ("damage", run, "docs/picture.bin") in found
    assert any(where.startswith("content ") for _, _, where in found)
    large.unlink()
    assert ("damage", run, "docs/picture.bin") in findings(say("verify", "--json"))


def test_a_file_that_lags_behind_is_named_and_does_no_harm(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    """A crash between commit and file, or a checkout, is not damage: the next command writes it."""
    older = Path("docs/dark-mode.json").read_bytes()
    with workspace.turn() as turn:
        turn.do(run, {"do": "SetFlags", "flags": {"a": 1}})
    Path("docs/dark-mode.json").write_bytes(older)
    Path("docs/plan.md").unlink()
    Path("docs/history.md").write_bytes(Path("docs/history.md").read_bytes()[:-5])
    answered = say("verify", "--json")
    assert answered.status == 0
    assert findings(answered) == [
        ("behind", run, "docs/dark-mode.json"),
        ("behind", run, "docs/plan.md"),
        ("behind", None, "docs/history.md"),
    ]
    assert "tenuto repair" in say("verify").out


@pytest.mark.parametrize("name", ["dark-mode.json", "plan.md", "history.md"])
def test_an_edit_by_hand_is_named(name: str, say: Say, run: str) -> None:
    path = Path("docs") / name
    path.write_bytes(path.read_bytes() + b"mine\n")
    answered = say("verify", "--json")
    assert answered.status == 1
    assert [(severity, where) for severity, _, where in findings(answered)] == [("edited", f"docs/{name}")]


@pytest.mark.parametrize("text", [b"", b"\0" * 99])
def test_what_a_crash_of_the_machine_leaves_is_damage(text: bytes, say: Say, run: str) -> None:
    Path("docs/dark-mode.json").write_bytes(text)
    assert findings(say("verify", "--json")) == [("damage", run, "docs/dark-mode.json")]


@pytest.mark.parametrize("command", ["list", "status", "verify", "history"])
@pytest.mark.parametrize("damage", ["no database at all", "a page full of noise"])
def test_a_damaged_database_is_said_to_be_damaged(damage: str, command: str, say: Say, run: str) -> None:
    """Every command says so in one line with something to do, and no traceback."""
    with closing(sqlite3.connect(DATABASE)) as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    if damage == "no database at all":
        DATABASE.write_bytes(b"these are not the bytes of a database " * 100)
    else:
        body = DATABASE.read_bytes()
        DATABASE.write_bytes(body[:4096] + os.urandom(len(body) - 4096))
    answered = say(command, "--json")
    assert answered.status == 1
    assert answered.error["code"] in ("journal-damaged", "not-as-written")
    assert "tenuto import" in answered.error["hint"]


def test_a_journal_of_a_newer_tenuto_is_refused_by_name(say: Say, run: str) -> None:
    with closing(sqlite3.connect(DATABASE)) as db:
        db.execute("PRAGMA user_version=99")
    for command in ("list", "status", "history", "show", "verify", "init", "repair", "export", "forget"):
        answered = say(command, *(["some text"] if command == "forget" else []), "--json")
        assert answered.status == 6, command
        assert answered.error["code"] == "schema-newer"
        assert "schema 99" in answered.error["message"]
    assert not Path(".tenuto").exists(), "init makes nothing, either"


def test_an_event_of_a_newer_tenuto_is_refused_by_name(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    event: Any = {"type": "Teleported", "v": 1, "at": "2025-11-15T08:13:00.000Z", "by": "ada"}
    with workspace.journal.write() as tx:
        tx.append(run, 5, [event], {**present(tx.load(run)), "version": 6})
    change("DELETE FROM state WHERE run='dark-mode'")
    answered = say("status", "--json")
    assert (answered.status, answered.error["code"]) == (6, "event-newer")
    assert say("history").out.splitlines()[-1].endswith("teleported")


def test_a_newer_event_is_told_from_damage(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    event: Any = {"type": "Noted", "v": 3, "at": "2025-11-15T08:13:00.000Z", "by": "ada", "text": "", "extra": {}}
    with workspace.journal.write() as tx:
        tx.append(run, 5, [event], {**present(tx.load(run)), "version": 6})
    answered = say("verify", "--json")
    assert (answered.status, answered.error["code"]) == (6, "event-newer")
    assert "run dark-mode holds an event Noted of version 3; this tenuto knows 2" in answered.error["message"]
    assert say("repair").status == 1  # it is left for whoever knows it


def test_old_events_are_checked_as_they_are_read_today(
    say: Say, workspace: tenuto.Workspace, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new version of Tenuto reads an old event anew: what was kept of the run is made again from that."""
    with workspace.turn() as turn:
        turn.do(run, {"do": "SetFlags", "flags": {"tested": 1}})
        turn.do(run, {"do": "Note", "text": "so much that the run is kept folded" * 100})
    monkeypatch.setitem(upgrade.VERSIONS, "FlagSet", 3)
    monkeypatch.setitem(upgrade.UPGRADES, ("FlagSet", 2), lambda event: {**event, "v": 3, "flags": {"tested": "one"}})
    assert [found["where"] for found in say("verify", "--json").error["details"]["report"]["findings"]] == ["state"]
    assert say("repair").status == 0
    assert say("status", "--json").data["flags"] == {"tested": "one"}


@contextmanager
def somebody_without_rights(*folders: Path) -> Iterator[None]:
    """Folders read-only, and whoever tests is not above permissions (root is)."""
    root = os.geteuid() == 0
    for folder in folders:
        os.chmod(folder, 0o555)
    if root:
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
        for folder in folders:
            os.chmod(folder, 0o755)


@pytest.fixture
def readable(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)


def test_a_repository_that_may_not_be_written_to_can_be_looked_at(
    say: Say, workspace: tenuto.Workspace, run: str, readable: None
) -> None:
    """Reading works in a read-only folder; a command that writes says what is wrong, and nothing happens."""
    workspace.journal.close()
    expected = [say(*words, "--json").data for words in (["list"], ["status"], ["verify"])]
    again = tenuto.open(".")
    with somebody_without_rights(DATABASE.parent, Path(".git"), Path(".")):
        assert [say(*words, "--json").data for words in (["list"], ["status"], ["verify"])] == expected
        with pytest.raises((TenutoError, PermissionError)), again.turn() as turn:
            turn.do(run, {"do": "Note", "text": "no"})
    again.journal.close()
    assert say("verify").status == 0


def test_a_full_disk_is_named_and_nothing_was_written(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    db = database_of(workspace)
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(TenutoError) as told, workspace.turn() as turn:
        turn.do(run, {"do": "Note", "text": "x" * 100_000})
    assert (told.value.code, told.value.retryable) == ("disk-full", True)
    assert "nothing was written" in told.value.message
    assert say("verify", "--json").data["events"] == 6
    db.execute("PRAGMA max_page_count=1073741823")
    with workspace.turn() as turn:
        turn.do(run, {"do": "Note", "text": "room again"})
    assert say("verify").status == 0
