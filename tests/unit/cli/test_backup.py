"""export and import: a backup is complete, checked before it is taken, and taken whole or not at all."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import dumps, loads
from tenuto.errors import Damaged
from tenuto.workspace import backup

from .conftest import start, ticking
from .test_verify import change

Say = Callable[..., Any]
BIG = os.urandom((1 << 20) + 5)


@pytest.fixture
def full(workspace: tenuto.Workspace, run: str) -> str:
    """A journal with something of every kind in it."""
    with workspace.turn() as turn:
        turn.store(run, "picture", "docs/picture.bin", BIG)
        turn.store(run, "plan", "docs/plan.md", "# Grüße \x1b[31m\n".encode())
        turn.tx.index(run, "plan", "docs/plan.md", [("Grüße", "from the plan")])
        turn.tx.put_marker("adopted", "yes")
    start(workspace, "second", shown=False)
    with workspace.turn() as turn:
        turn.do("second", {"do": "Note", "text": "seen", "key": "once"})
    return run


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere/.git/tenuto").mkdir(parents=True, exist_ok=True)
    return tmp_path / "elsewhere"


def lines(path: str = "backup.jsonl") -> list[Any]:
    return [loads(line) for line in Path(path).read_bytes().splitlines()]


def test_a_backup_read_back_knows_all_that_was_known(
    say: Say, workspace: tenuto.Workspace, full: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs, stored files, renders, logs, search: and the files can be written from it."""
    told = say("export", "-o", "backup.jsonl", "--json").data
    assert (told["runs"], told["events"]) == (2, 11)
    assert os.stat("backup.jsonl").st_mode & 0o777 == 0o600
    backup = str(Path("backup.jsonl").absolute())
    before = {path.name: path.read_bytes() for path in Path("docs").iterdir()}
    seen = [say(*words, "--json").data for words in (["list"], ["status", full], ["show", "second"])]
    monkeypatch.chdir(elsewhere)
    assert say("import", backup).out == "2 runs, 11 events taken\n"
    assert [say(*words, "--json").data for words in (["list"], ["status", full], ["show", "second"])] == seen
    assert say("repair").status == 0
    assert {path.name: path.read_bytes() for path in Path("docs").iterdir()} == before
    assert say("verify").out == "sound: 2 runs, 11 events\n"
    opened = tenuto.open(".", clock=ticking())
    with opened.journal.read() as reader:
        assert [found["text"] for found in reader.search("Grüße", 5)] == ["from the plan"]
        assert reader.marker("adopted") == "yes"
        assert reader.load_repo()["current"] == "second"
        assert reader.has_key("second", "once")
    with opened.turn() as turn:
        turn.do(full, {"do": "DecideGate", "decision": "approve", "who": "ada"})
    opened.journal.close()
    assert say("verify").status == 0


def test_importing_again_takes_nothing_and_a_second_journal_can_be_merged(
    say: Say, workspace: tenuto.Workspace, full: str, elsewhere: Path
) -> None:
    assert say("export", "-o", "backup.jsonl").status == 0
    assert say("import", "backup.jsonl").out == "everything in it is here already\n"
    other = tenuto.open(str(elsewhere), clock=ticking())
    start(other, "third", shown=False)
    other.journal.close()
    assert say("-C", str(elsewhere), "import", str(Path("backup.jsonl").absolute())).status == 0


@pytest.mark.parametrize("agent", ["CLAUDECODE", "TENUTO_ATTEMPT"])
def test_an_agent_reads_no_backup_back(
    say: Say, full: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """It could have written one, with every gate approved in it."""
    assert say("export", "-o", "backup.jsonl").status == 0
    monkeypatch.setenv(agent, "1")
    told = say("-C", str(elsewhere), "import", str(Path("backup.jsonl").absolute()))
    assert told.status == 4 and "agent-decides" in told.err
    assert not (elsewhere / ".git/tenuto/journal.db").exists()


def test_one_run_can_be_taken_along(say: Say, full: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data on standard output, one JSON object a line, and with --json all of them in one envelope."""
    told = say("export", full)
    assert [loads(line)["kind"] for line in told.out.splitlines()][:3] == ["tenuto-journal", "run", "event"]
    assert "\x1b" not in told.out
    assert say("export", full, "--json").data["lines"] == [loads(line) for line in told.out.splitlines()]
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(told.out.encode())))
    assert say("import", "-", "--json").data == {"runs": [full], "events": 7}
    assert say("repair").status == 0
    assert Path("docs/picture.bin").read_bytes() == BIG


def test_a_run_that_is_here_with_other_events_is_refused_by_name(
    say: Say, workspace: tenuto.Workspace, full: str
) -> None:
    assert say("export", "-o", "backup.jsonl").status == 0
    with workspace.turn() as turn:
        turn.do(full, {"do": "Note", "text": "later"})
    refused = say("import", "backup.jsonl")
    assert refused.status == 4
    assert "run dark-mode is here already, with other events" in refused.err


def test_a_file_that_another_run_shows_here_is_refused_by_name(
    say: Say, workspace: tenuto.Workspace, full: str, elsewhere: Path
) -> None:
    assert say("export", full, "-o", "backup.jsonl").status == 0
    other = tenuto.open(str(elsewhere), clock=ticking())
    start(other, "third", shown=False)
    with other.turn() as turn:
        turn.store("third", "plan", "docs/plan.md", b"theirs")
    other.journal.close()
    refused = say("-C", str(elsewhere), "import", str(Path("backup.jsonl").absolute()))
    assert refused.status == 4
    assert "docs/plan.md is shown from run third here" in refused.err


def _resealed(records: list[Any]) -> bytes:
    """As somebody who knows the format would write it: the end fits again."""
    import hashlib

    kept = [record for record in records if record["kind"] != "end"]
    body = b"".join(dumps(record).encode() + b"\n" for record in kept)
    end = {"kind": "end", "lines": len(kept), "sha256": hashlib.sha256(body).hexdigest()}
    return body + dumps(end).encode() + b"\n"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda r: [dumps(x).encode() + b"\n" for x in r[:-1]], "cut off"),
        (lambda r: [dumps(x).encode() + b"\n" for x in r if x["kind"] != "note"], "lines are missing"),
        (lambda r: [dumps(x).encode() + b"\n" for x in r[1:]], "does not begin like a backup"),
        (lambda r: [b"\xff\n"], "line 1 is no record"),
        (lambda r: [b"{}\n"], "line 1 is no record"),
        (lambda r: _resealed([*r[:2], *r[3:]]).splitlines(True), "comes where event 1"),
        (
            lambda r: _resealed([x for x in r if x.get("seq") != 3 or x["kind"] != "event"]).splitlines(True),
            "comes where",
        ),
        (
            lambda r: _resealed([x for x in r if x.get("run") != "second" or x.get("seq") != 2]).splitlines(True),
            "a part of it",
        ),
        (
            lambda r: _resealed([x | {"digest": "00"} if x["kind"] == "event" else x for x in r]).splitlines(True),
            "not what was written",
        ),
        (
            lambda r: _resealed([x | {"text": "no"} if x["kind"] == "blob" else x for x in r]).splitlines(True),
            "not what was stored",
        ),
        (
            lambda r: _resealed([x | {"base64": "AA=="} if x["kind"] == "object" else x for x in r]).splitlines(True),
            "not what was stored",
        ),
        (
            lambda r: _resealed(
                [x | {"text": "no"} if x["kind"] == "render" and "text" in x else x for x in r]
            ).splitlines(True),
            "not what was written",
        ),
        (
            lambda r: _resealed([{k: v for k, v in x.items() if k != "path"} for x in r]).splitlines(True),
            "is not whole",
        ),
    ],
)
def test_a_damaged_backup_is_refused_and_nothing_is_taken(
    damage: Any, words: str, say: Say, full: str, elsewhere: Path
) -> None:
    assert say("export", "-o", "backup.jsonl").status == 0
    broken = elsewhere / "broken.jsonl"
    broken.write_bytes(b"".join(damage(lines())))
    refused = say("-C", str(elsewhere), "import", str(broken))
    assert refused.status == 1, refused
    assert words in refused.err
    assert say("list", "--json").data == {"runs": []}
    assert [path for path in Path(".git/tenuto").rglob("*") if path.is_file() and path.stat().st_size > 500_000] == []


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda x: {**x, "run": "../../evil"} if x["kind"] in ("run", "event") else x, 2),
        (lambda x: {**x, "path": "../../evil"} if x["kind"] in ("render", "log") else x, 2),
        (lambda x: {**x, "path": "tree///etc/evil"} if x["kind"] in ("render", "log") else x, 2),
        (lambda x: {**x, "schema": 99} if x["kind"] == "tenuto-journal" else x, 6),
        (lambda x: {**x, "kind": "hologram"} if x["kind"] == "note" else x, 6),
    ],
)
def test_a_hostile_or_newer_backup_is_refused(change: Any, status: int, say: Say, full: str, elsewhere: Path) -> None:
    assert say("export", "-o", "backup.jsonl").status == 0
    evil = elsewhere / "evil.jsonl"
    evil.write_bytes(_resealed([change(record) for record in lines()]))
    assert say("-C", str(elsewhere), "import", str(evil)).status == status
    assert say("list", "--json").data == {"runs": []}


def test_what_a_damaged_journal_holds_is_not_exported_as_if_it_were_sound(say: Say, full: str, elsewhere: Path) -> None:
    """The copy carries the recorded digests: reading it back finds the damage."""
    change("UPDATE event SET body=replace(body, 'build', 'built') WHERE seq=2 AND run='dark-mode'")
    assert say("export", "-o", "backup.jsonl").status == 0
    assert say("-C", str(elsewhere), "import", str(Path("backup.jsonl").absolute())).status == 1


def test_a_file_is_written_whole_or_not_at_all(say: Say, full: str, repository: Path) -> None:
    assert say("export", "light-mode", "-o", "backup.jsonl").status == 3
    assert say("export", "-o", "nowhere/backup.jsonl").status == 1
    assert [path.name for path in repository.iterdir() if "backup" in path.name] == []


@pytest.mark.parametrize("path", ["src/main.py", ".git/hooks/pre-commit", "README.md"])
def test_a_backup_writes_no_file_that_tenuto_would_not(path: str, workspace: tenuto.Workspace, run: str) -> None:
    """Append-only files are written wherever the journal says that they lie; a backup may come from anybody."""
    from tenuto.errors import Damaged

    with pytest.raises(Damaged, match="no file that Tenuto writes"), workspace.journal.write() as tx:
        tx.importing().take({"kind": "log", "path": path, "text": "x"})
    with workspace.turn() as turn:
        turn.run(run)
    assert not Path(path).exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "nothing"])
def test_an_export_takes_the_place_of_nothing_but_a_file(say: Say, full: str, tmp_path: Path, kind: str) -> None:
    """Of a device neither: `-o /dev/full`, said by root, made a backup of it."""
    there = tmp_path / "there"
    if kind == "pipe":
        os.mkfifo(there)
    elif kind == "folder":
        there.mkdir()
    told = say("export", "-o", "" if kind == "nothing" else str(there), "--json")
    assert (told.status, told.error["code"]) == (2, "bad-output")
    assert not there.is_file()
    assert not list(tmp_path.glob("*.part-*"))


def test_an_export_follows_a_link(say: Say, full: str, tmp_path: Path) -> None:
    link = tmp_path / "latest.jsonl"
    link.symlink_to("today.jsonl")
    assert say("export", "-o", str(link)).status == 0
    assert link.is_symlink() and (tmp_path / "today.jsonl").read_text().endswith("\n")


def test_a_line_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "_LONGEST_LINE", 64)
    assert list(backup.lines_of(io.BytesIO(b"a\nb"))) == [b"a\n", b"b"]
    with pytest.raises(Damaged, match="does not end"):
        list(backup.lines_of(io.BytesIO(b"a\n" + b"x" * 100)))
