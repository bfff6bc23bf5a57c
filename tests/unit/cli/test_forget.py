"""forget: the text is gone from everything Tenuto keeps, down to the raw bytes, and the chain still verifies."""

from __future__ import annotations

import io
import resource
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import loads
from tenuto.errors import Unwritable
from tests.support.journals import database_of

from .conftest import start
from .test_verify import DATABASE

Say = Callable[..., Any]
SECRET = 'sk-"Grüße\\\t7f3a9'
SPELLINGS = [b"7f3a9", b"sk-"]


def holders(root: Path) -> list[str]:
    """Every file below the repository that holds a part of the secret, in any spelling."""
    return [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and any(part in path.read_bytes() for part in SPELLINGS)
    ]


@pytest.fixture
def leaked(workspace: tenuto.Workspace, run: str) -> str:
    """The secret in every kind of place there is."""
    with workspace.turn() as turn:
        turn.do(run, {"do": "Note", "text": f"used {SECRET} to log in", "key": f"note:{SECRET}"})
        turn.do(run, {"do": "SetFlags", "flags": {"token": SECRET, SECRET: True}})
        turn.store(run, "log", "docs/log.txt", f"export KEY={SECRET}\n".encode())
        turn.store(run, "dump", "docs/dump.bin", b"\xff" * (1 << 18) + SECRET.encode())
        turn.tx.index(run, "log", "docs/log.txt", [("Keys", f"export KEY={SECRET}")])
        turn.tx.put_marker("last", SECRET)
    for number in range(3):
        with workspace.turn() as turn:
            turn.do(run, {"do": "SetFlags", "flags": {"n": number}})
    state = Path(".git/tenuto")
    (state / "quarantine").mkdir(exist_ok=True)
    (state / "quarantine/kept").write_text(f"theirs: {SECRET}")
    (state / "hook.log").write_text(f"payload {SECRET}")
    return run


def test_the_text_is_gone_down_to_the_raw_bytes(
    say: Say, leaked: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = holders(repository)
    assert {".git/tenuto/journal.db-wal", "docs/log.txt", "docs/dump.bin", "docs/dark-mode.json"} <= set(before)
    assert any(path.startswith(".git/tenuto/shelf/") for path in before)
    assert any(path.startswith(".git/tenuto/objects/") for path in before)
    events = say("show", leaked, "--json").data["events"]
    monkeypatch.setattr(sys, "stdin", io.StringIO(SECRET + "\n"))
    done = say("forget", "-")
    assert done.status == 0
    assert "7f3a9" not in done.out + done.err
    assert "git" in done.err
    assert holders(repository) == []
    assert say("verify", "--json").data["findings"] == []
    assert [entry["seq"] for entry in say("show", leaked, "--json").data["events"]] == [
        entry["seq"] for entry in events
    ]
    assert Path("docs/log.txt").read_text() == "export KEY=[secret]\n"
    assert loads(Path("docs/dark-mode.json").read_bytes())["flags"]["token"] == "[secret]"
    assert "- Noted used [secret] to log in\n" in Path("docs/history.md").read_text()
    assert Path(".git/tenuto/quarantine/kept").read_text() == "theirs: [secret]"


def test_afterwards_the_run_goes_on_as_before(say: Say, workspace: tenuto.Workspace, leaked: str) -> None:
    """Artifacts are readable by their new hash, repeats are still recognised, search finds what is left."""
    say("forget", SECRET)
    shown = workspace.load(leaked)
    assert say("show", "--sha256", shown["artifacts"]["log"]["sha256"]).out == "export KEY=[secret]\n"
    with workspace.turn() as turn:
        assert turn.do(leaked, {"do": "Note", "text": "again", "key": "note:[secret]"}) == []
        turn.do(leaked, {"do": "DecideGate", "decision": "approve", "who": "ada"})
        assert turn.tx.search("7f3a9", 5) == []
        assert [found["text"] for found in turn.tx.search("secret", 5)] == ["export KEY=[secret]"]
    assert workspace.load(leaked)["status"] == "running"
    assert say("verify", "--json").data["findings"] == []


def test_a_backup_made_afterwards_can_be_read_back(say: Say, leaked: str, tmp_path: Path) -> None:
    """The chain is of the text as it was; the copy says which events were redacted, when and by whom."""
    say("forget", SECRET)
    say("export", "-o", "backup.jsonl")
    assert not any(part in Path("backup.jsonl").read_bytes() for part in SPELLINGS)
    (tmp_path / "new/.git/tenuto").mkdir(parents=True, exist_ok=True)
    assert say("-C", str(tmp_path / "new"), "import", str(Path("backup.jsonl").absolute())).status == 0
    assert say("verify").status in (0, 1)
    assert "damage" not in say("verify").err


def test_a_dry_run_changes_nothing(say: Say, leaked: str, repository: Path) -> None:
    before = {
        path: path.read_bytes() for path in repository.rglob("*") if path.is_file() and "journal" not in path.name
    }
    told = say("forget", SECRET, "--dry-run")
    assert told.out.startswith("would change: 4 events, 2 contents")
    assert {path: path.read_bytes() for path in before} == before
    assert say("status", "--json").data["flags"]["token"] == SECRET


def test_a_text_that_is_nowhere_is_not_found(say: Say, leaked: str) -> None:
    assert say("forget", "something else").status == 3
    say("forget", SECRET)
    assert say("forget", SECRET).status == 3


def test_bytes_that_a_crash_left_in_the_database_are_found_and_erased(
    say: Say, workspace: tenuto.Workspace, run: str, repository: Path
) -> None:
    """A row that was deleted long ago is still in the file, until somebody asks for it to be forgotten."""
    with closing(sqlite3.connect(DATABASE, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete=OFF")
        db.execute("INSERT INTO note VALUES('last', ?, x'')", (SECRET * 2000,))
        db.execute("DELETE FROM note WHERE name='last'")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert holders(repository) == [".git/tenuto/journal.db"]
    assert say("forget", SECRET).out == "forgotten: left-over bytes\n"
    assert holders(repository) == []


def test_an_unfinished_edit_of_somebody_else_is_redacted_and_stays_theirs(say: Say, leaked: str) -> None:
    path = Path("docs/dark-mode.json")
    path.write_bytes(path.read_bytes().replace(b"waiting_gate", b"completed"))
    done = say("forget", SECRET)
    assert done.status == 0
    assert "were not written anew" in done.err
    assert b"completed" in path.read_bytes()
    assert b"7f3a9" not in path.read_bytes()


@pytest.mark.parametrize("text", ["Noted", "running", "summary", "success"])
def test_a_word_of_tenutos_own_is_refused_and_nothing_is_changed(text: str, say: Say, leaked: str) -> None:
    before = say("show", leaked, "--json").data
    assert say("forget", text).status == 4
    assert say("show", leaked, "--json").data == before


def test_what_cannot_be_forgotten_is_said(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    start(workspace, "use-key-7f3a9", shown=False)
    refused = say("forget", "7f3a9")
    assert refused.status == 4
    assert "name of run 'use-key-[secret]'" in refused.err
    assert say("forget", "abc").status == 2
    assert say("forget").status == 2, "no terminal, no question"


def test_all_that_was_said_in_one_event_can_be_forgotten(say: Say, workspace: tenuto.Workspace, leaked: str) -> None:
    """Its text, and the same text wherever it was copied to; how the run is built stays."""
    before = workspace.load(leaked)
    (noted,) = [e for e in say("show", leaked, "--json").data["events"] if e["event"]["type"] == "Noted"]
    assert say("forget", "--event", f"{leaked}:{noted['seq']}").status == 0
    after = say("show", leaked, "--since", str(noted["seq"] - 1), "--json").data["events"][0]["event"]
    assert (after["text"], after["type"]) == ("[secret]", "Noted")
    assert "used" not in Path("docs/history.md").read_text()
    assert b"to log in" not in DATABASE.read_bytes()
    assert workspace.load(leaked)["status"] == before["status"]
    assert say("forget", "--event", f"{leaked}:1").status == 0
    first = say("show", leaked, "--json").data["events"][0]["event"]
    assert (first["summary"], first["pipeline"]["name"], first["run"]) == ("[secret]", "poc", leaked)
    assert say("verify", "--json").data["findings"] == []


def test_forgetting_an_artifacts_event_takes_its_content(say: Say, workspace: tenuto.Workspace, leaked: str) -> None:
    events = say("show", leaked, "--json").data["events"]
    for name in ("log", "dump"):
        (seq,) = [e["seq"] for e in events if e["event"].get("name") == name]
        assert say("forget", "--event", f"{leaked}:{seq}").status == 0
        assert Path(workspace.load(leaked)["artifacts"][name]["path"]).read_text() == "[secret]\n"
    assert say("verify", "--json").data["findings"] == []


@pytest.mark.parametrize(("words", "status"), [("dark-mode", 2), ("dark-mode:x", 2), ("dark-mode:99", 3), ("no:1", 3)])
def test_an_event_that_is_not_there_is_named(words: str, status: int, say: Say, leaked: str) -> None:
    assert say("forget", "--event", words).status == status


def test_without_room_nothing_is_forgotten_and_nothing_is_changed(say: Say, leaked: str, repository: Path) -> None:
    """Append-only files are changed before the commit. When that fails, they are again what they were."""
    before = {path: path.read_bytes() for path in repository.glob("docs/*")}
    log = Path(".git/tenuto/journal.db-wal").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log, limits[1]))
    try:
        assert say("forget", SECRET).status == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path: path.read_bytes() for path in repository.glob("docs/*")} == before
    assert say("verify").status == 0
    assert say("forget", SECRET).status == 0
    assert holders(repository) == []


def test_without_room_to_rewrite_the_file_that_is_said(workspace: tenuto.Workspace, leaked: str) -> None:
    """The text is out of every record then, and the command can be repeated."""
    db = database_of(workspace)
    db.execute("BEGIN")  # SQLite rewrites no file inside a transaction: as good a reason as a full disk
    with pytest.raises(Unwritable, match="the text is out of every record; its old bytes are still in"):
        workspace.journal.erase()
    db.execute("ROLLBACK")


def test_a_reader_in_the_way_is_named(say: Say, workspace: tenuto.Workspace, leaked: str, monkeypatch: Any) -> None:
    """While another program reads, the old bytes stay in the log: that is said, and the command can be repeated."""
    monkeypatch.setattr("tenuto.stores.sqlite._BUSY_SECONDS", 0.01)
    with workspace.journal.read() as reader:
        assert reader.version(leaked)
        answered = say("forget", SECRET, "--json")
        assert (answered.status, answered.error["code"], answered.error["retryable"]) == (1, "journal-in-use", True)
    assert say("forget", SECRET).status == 0
    assert not [path for path in Path(".git/tenuto").rglob("*") if path.is_file() and b"7f3a9" in path.read_bytes()]


def test_what_an_agent_wrote_and_a_run_took_in_is_forgotten_where_it_stands(
    say: Say, workspace: tenuto.Workspace, run: str, repository: Path
) -> None:
    """An artifact that an agent delivered was never written by Tenuto; its file is part of the run all the same."""
    path = repository / "docs/design.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"the key is {SECRET}, do not tell\n")
    with workspace.turn() as turn:
        turn.keep_file(run, "design", "docs/design.md")
    assert say("forget", SECRET).status == 0
    assert path.read_text() == "the key is [secret], do not tell\n"
    assert holders(repository) == []
    assert say("verify").status == 0
