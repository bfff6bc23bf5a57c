"""doctor: names what could hurt, with a fix for each, and waits for nobody."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.stores import faults

from .test_verify import DATABASE

Say = Callable[..., Any]


def checks(say: Say) -> dict[str, Any]:
    return {entry["name"]: entry for entry in say("doctor", "--json").data["checks"]}


def test_a_healthy_repository_gets_a_clean_bill(say: Say, run: str) -> None:
    told = say("doctor", "--json")
    assert told.status == 0
    assert told.data["problems"] == 0
    found = checks(say)
    assert {name for name, entry in found.items() if entry["status"] == "ok"} >= {
        "tenuto",
        "place",
        "journal",
        "lock",
        "git",
    }
    assert all(entry["fix"] for entry in found.values() if entry["status"] != "ok"), "each with a fix"


def test_without_a_journal_it_says_so_and_makes_none(say: Say, repository: Path) -> None:
    assert checks(say)["journal"]["fix"] == "tenuto init"
    assert [path.name for path in (repository / ".git").iterdir()] == ["HEAD"]


def test_an_old_sqlite_is_a_note(say: Say, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_SOUND_SQLITE", (99,))
    assert checks(say)["sqlite"]["status"] == "note"
    monkeypatch.setattr(faults, "_SOUND_SQLITE", (3,))
    assert checks(say)["sqlite"]["status"] == "ok"


@pytest.mark.parametrize(("kind", "status"), [("nfs4", "problem"), ("fuse.sshfs", "problem"), ("ext4", "ok")])
def test_a_network_file_system_is_a_problem(
    kind: str, status: str, say: Say, run: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = repository / "mountinfo"
    table.write_text(
        "22 1 0:20 / / rw - overlay overlay rw\n"
        f"36 22 0:31 / {repository} rw,relatime shared:1 - {kind} host:/x rw\n"
        f"37 22 0:32 / {repository}-other rw - tmpfs tmpfs rw\n"
    )
    look = faults.file_system_of
    monkeypatch.setattr(faults, "file_system_of", lambda path: look(path, str(table)))
    assert checks(say)["place"]["status"] == status
    assert say("doctor").status == (status == "problem")


def test_whoever_holds_the_lock_is_named(say: Say, run: str) -> None:
    """By process and command line, without waiting for the lock."""
    with open(DATABASE.parent / "lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert f"process {os.getpid()} (" in checks(say)["lock"]["message"]
    assert checks(say)["lock"]["status"] == "ok"


def test_a_newer_journal_and_a_damaged_one_are_problems(say: Say, run: str) -> None:
    with closing(sqlite3.connect(DATABASE)) as db:
        db.execute("PRAGMA user_version=99")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert say("doctor").status == 6
    DATABASE.write_bytes(b"no database " * 1000)
    assert say("doctor").status == 1


def test_a_journal_from_before_git_init_is_found(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`git init` moves the place of the journal; the old one is not forgotten in silence."""
    monkeypatch.chdir(tmp_path)
    say("init")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    found = checks(say)["place"]
    assert found["status"] == "problem"
    assert str(tmp_path / ".git/tenuto") in found["fix"]


def test_what_crashes_left_behind_is_named(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    with workspace.turn() as turn:
        turn.do(run, {"do": "SetFlags", "flags": {"a": 1}})
    assert "shelf" not in checks(say), "what a file displaced is kept on purpose"
    state = DATABASE.parent
    for name in ("shelf/" + "0" * 32, "objects/.new-999999999", "quarantine/kept", "import-999999999"):
        (state / name).parent.mkdir(exist_ok=True)
        (state / name).write_text("x")
    (state / "hook.log").write_text('{"at":"2025-11-15T08:12:11.000Z","event":"Stop","message":"no payload"}\n')
    found = checks(say)
    assert found["shelf"]["fix"] == f"rm {state.absolute()}/shelf/{'0' * 32}"
    assert "objects/.new-999999999" in found["objects"]["fix"]
    assert "import-999999999" in found["objects"]["fix"]
    assert found["quarantine"]["status"] == "note"
    assert "Stop: no payload" in found["hooks"]["message"]


def test_missing_bytecode_is_noted(say: Say, run: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path / "nothing"))
    found = checks(say)["bytecode"]
    assert found["status"] == "note"
    assert "compileall" in found["fix"]


def test_a_missing_or_old_git_is_noted(say: Say, run: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checks(say)["git"]["fix"] == "install git"
    (tmp_path / "git").write_text("#!/bin/sh\necho git version 2.1.4 '(Apple Git-99)'\n")
    (tmp_path / "git").chmod(0o755)
    assert "2.1.4" in checks(say)["git"]["message"]
    assert checks(say)["git"]["status"] == "note"


def test_a_full_disk_is_a_problem(say: Say, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_LEAST_ROOM", 1 << 62)
    assert checks(say)["room"]["status"] == "problem"


@pytest.mark.parametrize(
    ("value", "status", "said"),
    [
        ("4f1c-6e2a-77d0", "ok", "kept out of all that is written: A_KEY"),
        ("", "ok", "A_KEY has no value here: this process cannot know it"),
        ("4f1c-6e2a-77d0\ndiscovery", "ok", "kept out of all that is written: A_KEY"),
        ("short", "problem", "the value of A_KEY cannot be kept secret: it is shorter than 12 characters"),
        ("            ", "problem", "the value of A_KEY cannot be kept secret"),
        ("postgres-admin", "problem", "the value of A_KEY cannot be kept secret"),
    ],
)
def test_a_secret_that_cannot_be_kept_is_noted(
    value: str, status: str, said: str, say: Say, run: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".tenuto").mkdir(exist_ok=True)
    (repository / ".tenuto" / "config.yaml").write_text("secrets: [A_KEY]\n")
    monkeypatch.setenv("A_KEY", value)
    found = checks(say)["secrets"]
    assert found["status"] == status
    assert said in found["message"]
    assert bool(found["fix"]) == (status != "ok")


def test_where_nothing_is_secret_nothing_is_said_of_it(say: Say, run: str) -> None:
    assert "secrets" not in checks(say)
