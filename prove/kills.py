"""Every command of every scene, killed with SIGKILL at every system call that writes, names or flushes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from prove.frame import Amount, Result, alone, dice, environment, merged, place, spread
from prove.looking import Heads, heads, read_tree, reopen, state_folder, write_tree
from prove.scenes import BY_NAME, SCENES, Command, begin, play, words

CALLS = "pwrite64,write,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,openat,flock"  # noqa: E501
SAMPLE = 4  # of a command

Tree = dict[str, bytes | None]


def prove(amount: Amount) -> Result:
    jobs = [(scene.name, amount.full) for scene in SCENES if amount.full or scene.name in ("context", "staged")]
    return merged(spread(_scene, jobs, amount.jobs))


def _scene(job: tuple[str, bool]) -> Result:
    name, full = job
    scene, found = BY_NAME[name], list[Result]()
    with alone(), place() as work:
        root = work / "repository"
        begin(root, scene)
        for command in scene.commands if full else scene.commands[:3]:
            before = read_tree(root)
            points = count_calls(root, command, work / "trace")
            if not full:
                points = dice("kills", name, command).sample(points, min(SAMPLE, len(points)))
            after = heads(state_folder(root))
            tree = read_tree(root)
            found.append(_kill_all(root, before, after, command, points))
            _put(root, tree)
    return merged(found)


def count_calls(root: Path, command: Command, log: Path, calls: str = CALLS) -> list[tuple[str, int]]:
    """(call, nth) of every call that touches the repository, in a run that nobody disturbs."""
    arguments, text = words(command)
    strace = ["strace", "--seccomp-bpf", "-f", "-y", "-o", str(log), "-e", f"trace={calls}"]
    subprocess.run([*strace, *arguments], cwd=root, input=text, capture_output=True, check=False, env=environment())
    counted: dict[str, int] = {}
    points = []
    for line in log.read_text(errors="replace").splitlines():
        call = re.match(r"(?:\d+ +)?([a-z0-9_]+)\(", line)
        if call is None:
            continue
        counted[call[1]] = counted.get(call[1], 0) + 1
        touches = str(root) in line and (call[1] != "openat" or "O_CREAT" in line) and "-shm" not in line
        if touches or (call[1] == "write" and "(1<" in line):
            points.append((call[1], counted[call[1]]))
    return points


def _kill_all(root: Path, before: Tree, after: Heads, command: Command, points: list[tuple[str, int]]) -> Result:
    violations = []
    _put(root, before)
    had = _counts(heads(state_folder(root))) if (root / ".git/tenuto/journal.db").exists() else {}
    for call, nth in points:
        _put(root, before)
        status, output = kill_at(root, command, call, nth)
        label = f"{' '.join(command)[:60]!r} killed at {call} {nth}"
        seen = reopen(root)
        now = _counts(seen.heads)
        answered = status == 0
        if not is_whole(command, had, now, _counts(after)) or (answered and now != _counts(after)):
            violations.append(f"{label}: {now} after {had}, whole it is {_counts(after)} ({output[:80]!r})")
        violations += [f"{label}: {problem}" for problem in seen.problems]
        play(root, command)
        if not _counts(after).items() <= _counts(heads(state_folder(root))).items():
            violations += _not_repeated(root, after, label)
    return Result(len(points), violations, {"kills at a system call": f"{len(points):,}"})


def is_whole(command: Command, had: dict[str, int], now: dict[str, int], after: dict[str, int]) -> bool:
    """All of it or nothing. What the engine does on the way to its next rest are several turns, each whole."""
    if command[0] in ("next", "report", "run"):
        return all(had.get(run, 0) <= now.get(run, 0) <= count for run, count in after.items())
    return now in (had, after)


def _not_repeated(root: Path, after: Heads, label: str) -> list[str]:
    """Repeated after its death, a command has either happened before or happens now; it may also happen once more."""
    now = _counts(heads(state_folder(root)))
    behind = {run: count for run, count in _counts(after).items() if now.get(run, 0) < count}
    return [f"{label}: repeated, and still not there: {now}, not {behind}"] if behind else []


def kill_at(root: Path, command: Command, call: str, nth: int) -> tuple[int, bytes]:
    arguments, text = words(command)
    inject = f"inject={call}:signal=SIGKILL:when={nth}"
    strace = ["strace", "--seccomp-bpf", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
    done = subprocess.run(
        [*strace, *arguments], cwd=root, input=text, capture_output=True, check=False, env=environment()
    )
    return done.returncode, done.stdout


def _counts(found: Heads) -> dict[str, int]:
    return {run: seq for run, seq, _ in found}


def _put(root: Path, tree: Tree) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    write_tree(root, tree)
