"""What an adapter sees of an attempt, without an engine around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

STREAMS = Path(__file__).parents[2] / "data/streams"


class _Job:
    role: Any = None
    start = 1
    workdir = "/repository"
    files: tuple[str, ...] = ()

    def __init__(self, earlier: str = "", errors: str = "") -> None:
        self.earlier = earlier
        self.errors = errors

    def boundary(self) -> dict[str, Any]:
        return {"files": list(self.files)}

    def prompt(self) -> str:
        return "do it"

    def going_on(self) -> str:
        return "go on"


def job(earlier: str = "", errors: str = "") -> Any:
    """As much of an attempt as an adapter looks at."""
    return _Job(earlier, errors)


def recorded(name: str) -> str:
    """What a real program printed."""
    return (STREAMS / f"{name}.jsonl").read_text(encoding="utf-8")


def ended(exit_code: int | None = 0, **more: Any) -> Any:
    """How a program ended, as much as an adapter looks at."""
    return {
        "exit_code": exit_code,
        "signal": None,
        "timed_out": False,
        "cancelled": False,
        "error": None,
        "ended": "2026-11-15T11:44:30.000Z",
        **more,
    }
