"""What a part of the benchmark hands over, and how times are taken.

    interleave    every work once per round, in turning order: whatever else the machine does falls on all of them
    timed         a call in this process as such a work
    ratio         the median of the ratios within rounds, so that a slow minute counts for both
    folder        on a disk: where a flush costs nothing, there is nothing to compare with
    Section       figures with their targets, tables and plots: what is printed, and what page.py writes

Ratios travel between machines, milliseconds do not: a target is a ratio wherever there is something to compare with.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

Times = dict[str, list[float]]


class Figure(NamedTuple):
    """A number that has a target, at most or (with `least`) at least."""

    what: str
    value: float
    target: float
    unit: str = "x"
    against: str = ""
    least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.target if self.least else self.value <= self.target


class Table(NamedTuple):
    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


class Bars(NamedTuple):
    """Ratios to a limit, which is 1."""

    file: str
    title: str
    rows: list[tuple[str, float]]  # whoever's name begins with Tenuto stands out
    target: float | None = None
    one: str = "limit 1"


class Curves(NamedTuple):
    """How something grows; both axes are logarithmic."""

    file: str
    title: str
    across: str
    up: str
    x: list[float]
    series: dict[str, list[float]]
    target: float | None = None
    targeted: str = ""  # what the target is for


class Section(NamedTuple):
    title: str
    text: str
    figures: list[Figure]
    tables: list[Table]
    plots: list[Bars | Curves] = []  # noqa: RUF012  # never changed
    missing: list[str] = []  # noqa: RUF012  # what could not be measured here, and why


def interleave(works: dict[str, Callable[[], float]], rounds: int, seconds: float = 60) -> Times:
    """The first round fills caches and is not counted. On a slow machine there are fewer rounds, three at least."""
    times: Times = {name: [] for name in works}
    until = time.monotonic() + seconds
    for number in range(-1, rounds):
        if number >= 3 and time.monotonic() > until:
            break
        turned = list(works.items())[:: -1 if number % 2 else 1]
        for name, work in turned:
            taken = work()
            if number >= 0:
                times[name].append(taken)
    return times


def ratio(times: Times, name: str, to: str) -> float:
    return statistics.median(one / other for one, other in zip(times[name], times[to], strict=True))


def median_ms(times: Times, name: str) -> float:
    return statistics.median(times[name]) * 1000


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """The seconds that a call in this process takes."""

    def taken() -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    return taken


def process(words: list[str], folder: Path, payload: bytes = b"") -> float:
    """The seconds that a process takes, from its start to its end."""
    begun = time.perf_counter()
    done = subprocess.run(
        words,
        check=False,
        input=payload,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    taken = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)[-200:]} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return taken


IN_MEMORY = ("tmpfs", "ramfs")


def scratch() -> Path:
    """TMPDIR says on which disk. Without it the usual place; where that is kept in memory, .bench/ beside the peers."""
    usual = Path(tempfile.gettempdir())
    if os.environ.get("TMPDIR") or file_system(usual) not in IN_MEMORY:
        return usual
    made = ROOT / ".bench" / "scratch"
    made.mkdir(parents=True, exist_ok=True)
    return made


def file_system(place: Path) -> str:
    """Its kind, as the kernel calls it; empty where nobody says."""
    found, longest = "", -1
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    for line in mounts:
        _, point, kind, *_ = line.split()
        if len(point) >= longest and place.resolve().is_relative_to(point.replace("\\040", " ")):
            found, longest = kind, len(point)
    return found


@contextmanager
def folder() -> Iterator[Path]:
    """Gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="tenuto-bench-", dir=scratch()))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def git_repository(place: Path) -> Path:
    """A real one: an empty .git is none, and whoever looks for the repository would find the one around it."""
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    return place


def in_folder(work: Callable[[Path], float]) -> float:
    with folder() as made:
        return work(made)


def number(value: float, unit: str = "") -> str:
    """Three digits that mean something."""
    digits = (
        0 if value >= 100 or value == int(value) else 1 if value >= 20 else 3 if value < 0.1 or 1 < value < 1.1 else 2
    )
    return f"{value:,.{digits}f} {unit}".strip()
