"""kill -9 anywhere in a turn: what was answered is there, what was not is there whole or not at all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tests.crash.plain_dialect import PLAIN

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys, os
sys.path.insert(0, sys.argv[1])
import tenuto
from tests.crash.plain_dialect import PLAIN
workspace = tenuto.open(sys.argv[2])
workspace.views = {"plain": PLAIN}
with workspace.turn() as turn:
    if turn.run("a") is None:
        turn.do("a", {"do": "StartRun", "run": "a", "name": "a", "pipeline": {"name": "p", "hash": None}, "dialects": {"plain": {}}})
    number = len(turn.existing("a")["visits"])
    turn.do("a", {"do": "StartStep", "step": f"s{number}"})
    turn.store("a", "notes", "docs/notes.md", f"note {number}\\n".encode())
os.write(1, b"answered\\n")
os._exit(0)
"""  # noqa: E501
TRACED = "pwrite64,write,fsync,fdatasync,ftruncate,rename,renameat,renameat2,linkat,unlink,unlinkat,openat,mkdir,mkdirat,flock"  # noqa: E501


def command(repository: Path) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", SCRIPT, str(ROOT), str(repository)]


def check(repository: Path, answered: int) -> int:
    """Everything that the repository promises after a crash; returns how many steps there are."""
    workspace = tenuto.open(str(repository))
    workspace.views = {"plain": PLAIN}
    with workspace.turn() as turn:
        run = turn.run("a")
        if run is None:
            assert answered == 0
            return 0
        steps = len(run["visits"])
    assert answered <= steps <= answered + 1, "an answered update is missing, or one came twice"
    assert (repository / "docs" / "a.json").read_bytes() == PLAIN.render(run, {})["docs/a.json"]
    expected = b"".join(workspace_log(workspace))
    assert (repository / "docs" / "history.md").read_bytes() == expected
    return steps


def workspace_log(workspace: Any) -> list[bytes]:
    with workspace.journal.read() as reader:
        return list(reader.log_text("docs/history.md"))


def calls(trace: str) -> list[str]:
    return re.findall(r"^(?:\d+ +)?([a-z0-9_]+)\(", trace, re.M)


@pytest.mark.needs("strace")
def test_killed_at_every_system_call_of_a_turn(tmp_path: Path) -> None:
    """strace ends the process with SIGKILL at the nth call of each kind, for every n."""
    trace = tmp_path / "trace"
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run(["strace", "-f", "-o", str(trace), "-e", f"trace={TRACED}", *command(repository)], check=True)
    subprocess.run(["strace", "-f", "-o", str(trace), "-e", f"trace={TRACED}", *command(repository)], check=True)
    counts: dict[str, int] = {}
    for name in calls(trace.read_text()):
        counts[name] = counts.get(name, 0) + 1
    answered, kills = 2, 0
    assert check(repository, answered) == 2
    for name, times in counts.items():
        # Opening modules and probing for files happens before anything is written: the last calls are the ones that
        # matter.
        for nth in range(max(1, times - 12), times + 1):
            inject = f"inject={name}:signal=SIGKILL:when={nth}"
            done = subprocess.run(
                ["strace", "-f", "-o", "/dev/null", "-e", f"trace={name}", "-e", inject, *command(repository)],
                check=False,
                capture_output=True,
            )
            kills += done.returncode != 0
            steps = check(repository, answered + (b"answered" in done.stdout))
            answered = steps
    assert kills > 20, "the kills did not reach the turn"


def test_a_killed_writer_lets_the_next_one_in(tmp_path: Path) -> None:
    """The lock dies with its holder."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tenuto.stores.sqlite import SqliteJournal;"
        f"j = SqliteJournal({str(tmp_path / '.tenuto')!r}); j.lock(); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        holder.kill()
    with tenuto.open(str(tmp_path)).turn() as turn:
        turn.do("a", {"do": "StartRun", "run": "a", "name": "a", "pipeline": {"name": "p", "hash": None}})
