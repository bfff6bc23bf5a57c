"""A run that commands are put to one after the other, without any pipeline: what core answers, and what comes of it."""

from __future__ import annotations

from typing import Any

from tenuto.core.decide import decide
from tenuto.core.fold import apply, new_repo, new_run
from tenuto.errors import TenutoError

BEGUN: Any = {
    "do": "StartRun", "run": "x", "name": "x", "request": "", "summary": "", "mode": "", "driver": "manual",
    "pipeline": {"name": "p", "hash": None}, "dialects": {}, "order": "any", "schedule": [], "settings": {},
}  # fmt: skip


class Asked:
    def __init__(self, pipeline: Any = None, **begun: Any) -> None:
        self.pipeline, self.run, self.seconds = pipeline, new_run(), 0
        self.do(**{**BEGUN, **begun})

    def do(self, do: str, **more: Any) -> list[str]:
        """The types of the events that came of it."""
        self.seconds += 1
        at = f"2026-11-15T{10 + self.seconds // 3600:02d}:{self.seconds // 60 % 60:02d}:{self.seconds % 60:02d}.000Z"
        asked: Any = {"at": at, "by": "ada", "do": do, **more}
        events = decide(self.pipeline, new_repo(), self.run if self.run["version"] else None, asked)
        for event in events:
            apply(self.run, event)
        return [event["type"] for event in events]

    def refused(self, do: str, **more: Any) -> str:
        """The code of the refusal; the run is as it was."""
        version = self.run["version"]
        try:
            self.do(do, **more)
        except TenutoError as refusal:
            assert self.run["version"] == version
            return refusal.code
        raise AssertionError(f"{do} was not refused")

    def dispatch(self, attempt: str, **more: Any) -> list[str]:
        return self.do("DispatchAttempt", attempt=attempt, role="worker", **more)
