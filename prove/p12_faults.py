"""Promise 12: disk full, read-only and I/O errors stop safely and resume.

Every command of every scene, as a process; strace lets its nth system call that writes, names or flushes fail with
ENOSPC, EIO or EROFS, for every n, and every third that reads a file of the repository with EIO. Then: the answer is
success or a named error, never a traceback; success is only said of what is recorded; the repository opens, holds all
that was answered before, and the command whole or not at all; repeated without the fault, it comes to its end.

As root also on a file system of a few hundred kilobytes: commands until it is full, which must end in a refusal by name
and lose nothing; with more room, the same command succeeds.

The broken variant believes that a commit which failed was made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from prove.frame import Amount, Progress, Result, alone, dice, environment, merged, place, require, spread
from prove.kills import count_calls, is_whole
from prove.looking import Heads, heads, read_tree, reopen, state_folder, write_tree
from prove.scenes import BY_NAME, SCENES, Command, begin, play, words

ERRORS = ("ENOSPC", "EIO", "EROFS")
READS = "pread64,read"
SAMPLE = 3  # of a command
BROKEN = (
    "import sys; from tenuto.stores import sqlite\n"
    "def commit(self):\n"
    "    try: self._connection.execute('COMMIT')\n"
    "    except Exception: self._connection.execute('ROLLBACK') if self._connection.in_transaction else None\n"
    "sqlite.SqliteJournal.commit = commit\n"
    "from tenuto.entrypoints.launch import main; main()"
)

Tree = dict[str, bytes | None]
Point = tuple[str, int, str]


def prove(amount: Amount, tell: Progress) -> Result:
    require("strace", "git")
    jobs = [(scene.name, number, amount.full, False) for scene in SCENES for number in range(len(scene.commands))]
    if not amount.full:
        jobs = [job for job in jobs if job[0] in ("context", "feature") and job[1] in (1, 3)]
    found = list(spread(_command, jobs, amount.jobs, tell, len(jobs) + 1))
    found.append(_small_disk(200 if amount.full else 12))
    tell(len(jobs) + 1, len(jobs) + 1)
    return merged(found)


def control(amount: Amount) -> Result:
    require("strace", "git")
    return _command(("context", 0, True, True))


def _command(job: tuple[str, int, bool, bool]) -> Result:
    name, number, full, broken = job
    scene = BY_NAME[name]
    command = scene.commands[number]
    with alone(), place() as work:
        root = work / "repository"
        begin(root, scene)
        for earlier in scene.commands[:number]:
            play(root, earlier)
        before = read_tree(root)
        had = _counts(_heads(root))
        _put(root, before)
        calls = [point for point in count_calls(root, command, work / "trace") if point[0] != "flock"]
        after = _counts(_heads(root))
        points = [(call, nth, error) for call, nth in calls for error in ERRORS]
        _put(root, before)
        points += [(call, nth, "EIO") for call, nth in count_calls(root, command, work / "trace", READS)[::3]]
        if not full:
            points = dice("faults", name, number).sample(points, min(SAMPLE, len(points)))
        if broken:
            points = [point for point in points if point[0] in ("pwrite64", "fdatasync")]
        violations = []
        for point in points:
            _put(root, before)
            violations += [
                f"{' '.join(command)[:50]!r}, {' '.join(map(str, point))}: {found}"
                for found in _fail(root, command, point, had, after, broken)
            ]
        return Result(len(points), violations, {"failed calls": f"{len(points):,}"})


def _fail(
    root: Path, command: Command, point: Point, had: dict[str, int], after: dict[str, int], broken: bool
) -> list[str]:
    status, said = _with_fault(root, command, point, broken)
    found = []
    if "Traceback" in said or "unexpected" in said:
        found.append(f"not by name: {said[:300]}")
    try:
        seen = reopen(root)
    except Exception as error:  # noqa: BLE001  whatever it raises, it cannot be opened
        return [*found, f"it cannot be opened any more: {error!r}"]
    found += seen.problems
    now = _counts(seen.heads)
    if not is_whole(command, had, now, after):
        found.append(f"{now} is neither {had} nor {after} ({said[:100]})")
    if status == 0 and now != after and command[0] != "hook":
        found.append(f"success was said, and it is not there: {now}, not {after}")
    if now != after:
        again = play(root, command)
        now = _counts(heads(state_folder(root)))
        if any(now.get(run, 0) < count for run, count in after.items()):
            found.append(
                f"repeated, it does not come to its end: {now}, not {after}: {(again.stdout + again.stderr)[-200:]!r}"
            )
    return found


def _with_fault(root: Path, command: Command, point: Point, broken: bool) -> tuple[int, str]:
    call, nth, error = point
    arguments, text = words(command)
    if broken:
        arguments = [sys.executable, "-c", BROKEN, *arguments[3:]]
    strace = [
        "strace",
        "--seccomp-bpf",
        "-f",
        "-o",
        "/dev/null",
        "-e",
        f"trace={call}",
        "-e",
        f"inject={call}:error={error}:when={nth}",
    ]
    done = subprocess.run(
        [*strace, *arguments], cwd=root, input=text, capture_output=True, check=False, env=environment()
    )
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def _heads(root: Path) -> Heads:
    return heads(state_folder(root)) if (root / ".git/tenuto/journal.db").exists() else ()


def _counts(found: Heads) -> dict[str, int]:
    return {run: seq for run, seq, _ in found}


def _put(root: Path, tree: Tree) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    write_tree(root, {path: text for path, text in tree.items() if not path.endswith("-shm")})


# ---- a disk that is really full ---------------------------------------------------------------------


def _small_disk(rounds: int) -> Result:
    if os.geteuid() != 0:
        return Result(0, [], {"full disks": "not tried: needs root"})
    violations: list[str] = []
    full = 0
    with alone(), place() as work:
        disk = work / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "prove", str(disk)], check=True)
        try:
            root = disk / "repository"
            begin(root, BY_NAME["staged"])
            room = 700
            for number in range(rounds):
                before = _counts(_copied_heads(root))
                command = ("staged", "update", f'{{"extra": {{"mine": {{"k{number % 7}": "{"x" * 4000}{number}"}}}}}}')
                done = play(root, command)
                said = (done.stdout + done.stderr).decode("utf-8", "replace")
                now = _counts(_copied_heads(root))
                violations += _after_a_full_disk(number, done.returncode, said, before, now)
                if done.returncode:
                    full += 1
                    room += 200
                    subprocess.run(["mount", "-o", f"remount,size={room}k", str(disk)], check=True)
                    if play(root, command).returncode:
                        violations.append(f"round {number}: with more room, it still does not work")
            violations += reopen(root).problems
        finally:
            subprocess.run(["umount", str(disk)], check=True)
    return Result(
        rounds, violations, {"commands on a small disk": f"{rounds:,}", "of them met a full disk": f"{full:,}"}
    )


def _after_a_full_disk(number: int, status: int, said: str, before: dict[str, int], now: dict[str, int]) -> list[str]:
    found = []
    if "Traceback" in said or "unexpected" in said:
        found.append(f"round {number}: not by name: {said[:300]}")
    if status and "disk-full" not in said and "no space" not in said.lower():
        found.append(f"round {number}: refused for another reason: {said[:300]}")
    if status == 0 and now == before:
        found.append(f"round {number}: success was said, and nothing is recorded")
    if any(now.get(run, 0) < count for run, count in before.items()):
        found.append(f"round {number}: something is gone: {before}, now {now}")
    return found


def _copied_heads(root: Path) -> Heads:
    """Of a copy: opening and closing it there would need room, and make some."""
    with place() as work:
        shutil.copytree(root / ".git/tenuto", work / "state")
        return heads(str(work / "state"))
