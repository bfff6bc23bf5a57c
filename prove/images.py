"""Real ext4 on a loop device. A command is killed at a system call, and what is on the disk at that moment is kept:
the image is copied while it is mounted, so that nothing that only stood in the page cache is in the copy. The copy
is mounted (ext4 replays its own journal) and opened.

The commands before it were not flushed by anybody but themselves. At some cuts the whole file system was flushed in
between, so that older and newer files come back in other mixtures.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from prove.frame import Amount, Result, alone, dice, merged, place, spread
from prove.kills import count_calls, kill_at
from prove.looking import heads, reopen
from prove.scenes import BY_NAME, Command, begin, play

FULL, SAMPLE = 110, 3  # cuts of a scene
SIZE = 12 << 20

SCENES = ("context", "flow", "staged", "feature", "mixed")


def prove(amount: Amount) -> Result:
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4") or not _can_mount():
        return Result(0, [], {"ext4 images": "not tried: needs root, mkfs.ext4 and loop devices"})
    names = SCENES if amount.full else ("context",)
    return merged(spread(_scene, [(name, FULL if amount.full else SAMPLE) for name in names], amount.jobs))


def _can_mount() -> bool:
    with place() as work:
        try:
            _make(work / "image")
            with _mounted(work / "image", work / "here"):
                return True
        except (OSError, subprocess.SubprocessError):
            return False


def _make(image: Path) -> None:
    _remove(image)
    with image.open("wb") as file:
        file.truncate(SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)


def _remove(image: Path) -> None:
    """A program with a table of mounts of its own may keep an image mounted that was unmounted here. `mount` takes the
    device that still stands for the file, with the old content. Another file of that name gets another device."""
    image.unlink(missing_ok=True)


@contextlib.contextmanager
def _mounted(image: Path, at: Path) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(at)], check=True, capture_output=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True, capture_output=True)


def _scene(job: tuple[str, int]) -> Result:
    name, cuts = job
    scene, random = BY_NAME[name], dice("images", name)
    with alone(), place() as work:
        base = work / "base"
        _make(base)
        with _mounted(base, work / "disk") as disk:
            begin(disk / "repository", scene)
            points = [
                (number, call, nth)
                for number, command in enumerate(scene.commands)
                for call, nth in count_calls(disk / "repository", command, work / "trace")
            ]
        chosen = sorted(random.sample(points, min(cuts, len(points))))
        _make(base)
        with _mounted(base, work / "disk") as disk:
            begin(disk / "repository", scene)
        found = [_cut(work, base, scene.commands, point, random.random() < 0.3) for point in chosen]
    return merged(found)


def _cut(work: Path, base: Path, commands: tuple[Command, ...], point: tuple[int, str, int], flushed: bool) -> Result:
    number, call, nth = point
    label = f"image cut at {call} {nth} of {' '.join(commands[number])[:50]!r}"
    image, copy = work / "image", work / "copy"
    for old in (image, copy):
        _remove(old)
    shutil.copyfile(base, image)
    with _mounted(image, work / "disk") as disk:
        root = disk / "repository"
        for command in commands[:number]:
            play(root, command)
        if flushed:
            os.sync()
        answered = _counts(root)
        status, _ = kill_at(root, commands[number], call, nth)
        shutil.copyfile(image, copy)
        if status == 0:
            answered = _counts(root)
    with _mounted(copy, work / "again") as again:
        seen = reopen(again / "repository")
    now = {run: seq for run, seq, _ in seen.heads}
    violations = [f"{label}: {problem}" for problem in seen.problems]
    if behind := {run: seq for run, seq in answered.items() if now.get(run, 0) < seq}:
        violations.append(f"{label}: answered {behind}, and there is {now}")
    return Result(1, violations, {"ext4 images": "1"})


def _counts(root: Path) -> dict[str, int]:
    """Of a copy: closing a journal moves its log into the database and flushes both, which would help."""
    if not (root / ".git/tenuto/journal.db").exists():
        return {}
    with place() as work:
        shutil.copytree(root / ".git/tenuto", work / "state")
        return {run: seq for run, seq, _ in heads(str(work / "state"))}
