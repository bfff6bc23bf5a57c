"""forget, import, repair and restore, killed before one line after the other: repeated, each comes to its end."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.errors import NotFound
from tenuto.workspace.backup import export
from tenuto.workspace.checkup import examine
from tests.support import chores, crashing

PACKAGE = Path(tenuto.__file__).parent
SECRET = "sk-live-7f3a9c"
RUN = "dark-mode"
POINTS = 12


@contextmanager
def opened(root: Path) -> Iterator[Any]:
    workspace = tenuto.open(str(root))
    yield workspace
    workspace.journal.close()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A run with the secret in events, a state file's history, small and large artifacts."""
    root = tmp_path / "project"
    (root / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    with opened(root) as workspace:
        workspace.context.init("Dark mode")
        with workspace.turn() as turn:
            turn.do(RUN, {"do": "Note", "text": f"logged in with {SECRET}"})
            turn.store(RUN, "log", "docs/log.txt", f"KEY={SECRET}\n".encode())
            turn.store(RUN, "dump", "docs/dump.bin", b"\xff" * (1 << 18) + SECRET.encode())
    return root


def copies(original: Path, chore: str, *words: str) -> Iterator[tuple[Path, bool]]:
    """A copy of the repository for each point of death, and whether the chore came to its end there."""
    spare = original.parent / "whole"
    shutil.copytree(original, spare)
    whole = kill(spare, 1 << 30, chore, *words)
    lines = int(whole.stderr.split("after ")[-1].split()[0])
    for number in range(1, POINTS + 1):
        copy = original.parent / f"copy-{number}"
        shutil.copytree(original, copy)
        # Most lines only load and look; what is written is written in the later ones.
        done = kill(copy, lines // 2 + lines * number // (2 * POINTS), chore, *words)
        yield copy, done.returncode == 0


def kill(root: Path, line: int, chore: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = crashing.command("kill", line, str(PACKAGE), "tests.support.chores", chore, str(root), *words)
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def damage(root: Path) -> list[Any]:
    with opened(root) as workspace:
        return [found for found in examine(workspace)["findings"] if found["severity"] == "damage"]


def holders(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_forgetting_can_be_repeated_after_any_death(repository: Path) -> None:
    """The chain stays whole, the run goes on in between, and the second try leaves no byte of the secret."""
    for number, (root, ended) in enumerate(copies(repository, "forget_text", SECRET)):
        assert damage(root) == []
        if number % 2:
            with opened(root) as workspace, workspace.turn() as turn:
                turn.do(RUN, {"do": "StartStep", "step": "architect"})
        if not ended or holders(root):
            try:
                chores.forget_text(str(root), SECRET)
            except NotFound:
                pass  # the first try had done everything but say so
        assert holders(root) == []
        with opened(root) as workspace:
            assert [found for found in examine(workspace)["findings"] if found["severity"] != "behind"] == []


def test_an_import_is_there_or_not_after_any_death(repository: Path, tmp_path: Path) -> None:
    from tenuto.encoding import dumps

    with opened(repository) as workspace:
        lines = [dumps(record) for record in export(workspace, "0")]
    backup = tmp_path / "backup.jsonl"
    backup.write_text("\n".join(lines) + "\n")
    empty = tmp_path / "empty"
    (empty / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    seen = set()
    for root, _ in copies(empty, "import_backup", str(backup)):
        assert damage(root) == []
        with opened(root) as workspace, workspace.journal.read() as reader:
            version = reader.version(RUN)
            seen.add(version)
        with opened(root) as workspace:
            assert chores.import_backup(str(root), str(backup)) == 0
        assert damage(root) == []
    assert seen <= {0, 4}


@pytest.mark.parametrize(("chore", "words"), [("repair_all", []), ("restore_file", ["docs/log.txt"])])
def test_mending_can_be_repeated_after_any_death(repository: Path, chore: str, words: list[str]) -> None:
    """Whatever stood there is still somewhere, and in the end ours is in its place."""
    log = repository / "docs/log.txt"
    whole = log.read_bytes()
    log.unlink()
    if chore == "restore_file":
        log.write_text("theirs")
    for root, _ in copies(repository, chore, *words):
        assert damage(root) == []
        if chore == "restore_file":
            kept = [path.read_bytes() for path in (root / ".git/tenuto").glob("quarantine/*")]
            assert b"theirs" in [
                *kept,
                (root / "docs/log.txt").read_bytes() if (root / "docs/log.txt").exists() else b"",
            ]
        assert getattr(chores, chore)(str(root), *words) == 0
        assert (root / "docs/log.txt").read_bytes() == whole
