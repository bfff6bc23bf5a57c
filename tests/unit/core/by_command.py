"""A run that commands are put to one after the other, without any pipeline: what core answers, and what comes of it."""

from __future__ import annotations

import copy
import functools
from typing import Any

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.todo import todo
from tenuto.errors import TenutoError

BEGUN: Any = {
    "do": "StartRun",
    "run": "x",
    "name": "x",
    "request": "",
    "summary": "",
    "mode": "",
    "driver": "manual",
    "pipeline": {"name": "p", "hash": None},
    "dialects": {},
    "order": "any",
    "schedule": [],
    "settings": {},
}


@functools.cache
def _checked(text: str) -> Any:
    from prove.matrix import definition

    return definition(text)["pipeline"]


def pipeline_of(text: str) -> Any:
    """A small pipeline (YAML, without its name), read and checked once."""
    return copy.deepcopy(_checked(text))


class Asked:
    def __init__(self, pipeline: Any = None, pipeline_name: str = "p", **begun: Any) -> None:
        self.pipeline, self.repo, self.run, self.seconds = pipeline, new_repo(), new_run(), 0
        self.do(**{**BEGUN, "pipeline": {"name": pipeline_name, "hash": None}, **begun})

    def do(self, do: str, **more: Any) -> list[str]:
        """The types of the events that came of it."""
        self.seconds += 1
        at = f"2026-11-15T{10 + self.seconds // 3600:02d}:{self.seconds // 60 % 60:02d}:{self.seconds % 60:02d}.000Z"
        asked: Any = {"at": at, "by": "ada", "do": do, **more}
        events = decide(self.pipeline, self.repo, self.run if self.run["version"] else None, asked)
        for event in events:
            apply(self.run, event)
        self.last: list[Any] = list(events)
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


class Adopted(Asked):
    """A run that was taken over from a file, in whatever state it was found."""

    def __init__(self, **state: Any) -> None:
        self.pipeline, self.repo, self.run, self.seconds = None, new_repo(), new_run(), 0
        self.do("Adopt", dialect="staged", path="state.json", sha256="s", state={"id": "x", **state})


class Driven(Asked):
    """A run of a small pipeline (YAML, without its name): the engine's own actions are done, agents wait for their
    words."""

    def __init__(self, text: str, items: Any = (), **switches: bool) -> None:
        self.items = list(items)
        super().__init__(pipeline_of(text), pipeline_={"name": "tiny", "hash": "h"}, switches=switches)

    def do(self, do: str, **more: Any) -> list[str]:
        if do != "StartRun":
            return super().do(do, **more)
        switches, ref = more.pop("switches"), more.pop("pipeline_")
        super().do(do, **{**more, "driver": "engine", "pipeline": ref, "order": "strict"})
        return super().do("Engage", pipeline=ref, switches=switches)

    def asked(self) -> list[Any]:
        """What is to be done next, after everything that needs no agent and no person."""
        while True:
            actions: list[Any] = list(todo(self.pipeline, self.run))
            act = actions[0]["act"] if actions else ""
            if act == "begin":
                self.do("BeginVisit")
            elif act == "do":
                self.do("RecordAction", action=actions[0]["as"])
            elif act == "plan":
                self.do("PlanVisit", items=self.items, findings=[])
            elif act == "conclude":
                self.do("Conclude")
            elif act == "ask":
                self.do("OpenGate", name=actions[0]["step"], prompt="?")
            else:
                return actions

    def start(self, *only: str) -> list[str]:
        """Everything that is asked for now is dispatched; their seats."""
        wanted = [
            action for action in self.asked() if action["act"] == "dispatch" and (not only or action["key"] in only)
        ]
        told = [
            {
                "attempt": one["attempt"],
                "role": one["seat"]["role"],
                "item": one["item"],
                "number": one["number"],
                "extra": {"seat": one["key"]},
            }
            for one in wanted
        ]
        if told:
            self.do("DispatchAttempts", attempts=told)
        return [one["key"] for one in wanted]

    def say(self, seat: str, verdict: str = "DONE", **more: Any) -> list[str]:
        """The attempt of this seat that is under way ends with this word."""
        name = next(one for one in self.run["in_flight"] if self.run["attempts"][one]["extra"]["seat"] == seat)
        if verdict == "LOST":
            return self.do("LoseAttempt", attempt=name, reason="killed", **more)
        told = {
            "status": "completed" if verdict == "DONE" else "failed",
            "verdict": verdict,
            "receipt": {"severities": [], "answer": None},
            **more,
        }
        return self.do("FinishAttempt", attempt=name, **told)

    def all_say(self, verdict: str = "DONE") -> list[str]:
        seats = self.start()
        for seat in seats:
            self.say(seat, verdict)
        return seats
