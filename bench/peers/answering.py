"""How a peer's program is asked: `work folder` on a line of standard input, the seconds it took on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

STEPS, ATTEMPTS, CAP = 200, 1000, 4


def graph() -> dict[str, list[str]]:
    """Every item waits for one or two earlier ones: wide enough for four at a time, never free of dependencies."""
    return {
        f"{number:04d}": [f"{before:04d}" for before in dict.fromkeys((number // 2, number - 9)) if before > 0]
        for number in range(1, ATTEMPTS + 1)
    }


def fan() -> dict[str, list[str]]:
    """As many that wait for nothing."""
    return {f"{number:04d}": [] for number in range(1, ATTEMPTS + 1)}


def followers(items: dict[str, list[str]]) -> dict[str, list[str]]:
    after: dict[str, list[str]] = {name: [] for name in items}
    for name, before in items.items():
        for one in before:
            after[one].append(name)
    return after


def answer(works: dict[str, Callable[[Path], float]]) -> None:
    told = sys.stdout
    sys.stdout = sys.stderr  # whatever the peer prints is not an answer
    for line in sys.stdin:
        name, _, folder = line.strip().partition(" ")
        print(works[name](Path(folder)), file=told, flush=True)
