"""Drive a pipeline with made-up answers and no agent: what the engine's rules alone make of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.todo import todo
from tenuto.encoding import dumps, loads
from tenuto.knowledge import definitions

Answer = Callable[[Any], Any]
"""From a dispatch action: (verdict, severities, answer), or "LOST"."""


@cache
def _read(name: str) -> str:
    return dumps(definitions.load(name))


def pipeline(name: str) -> Any:
    """One of its own for each play: some tests change it."""
    return loads(_read(name))


def item(name: str, *depends_on: str, agent: str | None = None, files: tuple[str, ...] = ()) -> Any:
    return {
        "id": name,
        "title": name,
        "files": list(files),
        "depends_on": list(depends_on),
        "agent": agent,
        "wave": None,
        "description": "",
        "effort": None,
        "lines": None,
    }


class Rehearsal:
    def __init__(
        self,
        name: Any,
        answer: Answer,
        items: Any = (),
        switches: Any = None,
        decide_gate: Any = None,
        findings: Any = (),
    ) -> None:
        """`name`: of a shipped pipeline, or a checked one."""
        self.pipeline: Any = pipeline(name) if isinstance(name, str) else name
        name = self.pipeline["name"]
        self.answer = answer
        self.items, self.findings = list(items), list(findings)
        self.decide_gate = decide_gate or (lambda gate: "approve")
        self.repo, self.run = new_repo(), new_run()
        self.journal: list[Any] = []
        self.dispatched: list[str] = []
        self.peak = 0
        self._started = False
        self.say(
            {"do": "StartRun", "run": "r", "name": "r", "pipeline": {"name": name, "hash": "h"}, "driver": "engine"}
        )
        if self.pipeline["starts_from"] == "poc-complete":
            self.say({"do": "Finish", "outcome": "poc-complete"})
        self.say({"do": "Engage", "pipeline": {"name": name, "hash": "h"}, "switches": switches or {}})

    def say(self, command: Any) -> list[Any]:
        number = len(self.journal)
        stamped: Any = {
            **command,
            "at": f"2026-11-15T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
            "by": "rehearsal",
        }
        before = dumps(self.run)
        made: list[Any] = decide(self.pipeline, self.repo, self.run if self._started else None, stamped)
        assert dumps(self.run) == before, "decide changed the run"
        self._started = True
        for event in made:
            apply(self.run, loads(dumps(event)))
            self.journal.append(event)
        return made

    def step(self, choose: Callable[[list[Any]], Any] = lambda actions: actions[0]) -> bool:
        """One thing: an action of todo(), or an attempt in flight ends. False when the run rests."""
        actions = todo(self.pipeline, self.run)
        assert actions == todo(self.pipeline, self.run), "todo is not repeatable"
        flying = [name for name, a in self.run["attempts"].items() if a["status"] == "dispatched"]
        self.peak = max(self.peak, len(flying))
        options = [*actions, *({"act": "end", "attempt": name} for name in flying)]
        if not options:
            return False
        self.perform(choose(options))
        return True

    def perform(self, action: Any) -> None:
        match action["act"]:
            case "begin":
                self.say({"do": "BeginVisit"})
            case "do":
                self.say({"do": "RecordAction", "action": action["as"]})
            case "plan":
                self.say({"do": "PlanVisit", "items": self.items, "findings": self.findings})
            case "ask":
                self.say({"do": "OpenGate", "name": action["step"], "prompt": "?"})
                self.say({"do": "DecideGate", "decision": self.decide_gate(action["step"]), "who": "p"})
            case "conclude":
                self.say({"do": "Conclude"})
            case "pause":
                self.say({"do": "Pause", "kind": "budget", "reason": action["unit"]})
            case "dispatch":
                self.dispatched.append(action["attempt"])
                self.say(
                    {
                        "do": "DispatchAttempt",
                        "attempt": action["attempt"],
                        "role": action["seat"]["role"],
                        "step": action["step"],
                        "item": action["item"],
                        "number": action["number"],
                        "reserved": action["reserved"],
                        "extra": {"seat": action["key"]},
                    }
                )
            case "end":
                self.end(action["attempt"])

    def end(self, attempt: str) -> None:
        found = self.run["attempts"][attempt]
        told = self.answer({"attempt": attempt, **found})
        if told == "LOST":
            self.say({"do": "LoseAttempt", "attempt": attempt, "reason": "killed"})
            return
        verdict, severities, answer = told if isinstance(told, tuple) else (told, [], None)
        if verdict == "DONE":
            self.record_outputs(found)
        self.say(
            {
                "do": "FinishAttempt",
                "attempt": attempt,
                "status": "completed" if verdict == "DONE" else "failed",
                "verdict": verdict,
                "receipt": {"severities": severities, "answer": answer},
                "usage": {"attempts": 1},
            }
        )

    def record_outputs(self, attempt: Any) -> None:
        """What a real attempt would have written: evidence is counted by it."""
        folder = self.pipeline["documents"].replace("{slug}", "r")
        step = next(step for step in self.pipeline["steps"] if step["id"] == attempt["step"])
        names = [*step["evidence_for_next"]]
        for name in names:
            path = f"{folder}/{name}"
            self.say({"do": "StoreArtifact", "name": name, "path": path, "sha256": f"{len(self.journal)}", "size": 1})

    def play(self, choose: Callable[[list[Any]], Any] = lambda actions: actions[0], limit: int = 20000) -> Any:
        for _ in range(limit):
            if not self.step(choose):
                return self.run
        raise AssertionError("the run did not come to rest")
