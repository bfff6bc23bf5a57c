"""One waves step at work, by the rules that the engine uses: check, decide, fold, todo. No agent, no file.

work = WavesAtWork(items, order="barrier", cap=4)
work.startable()       the items that may start now, as todo() asks for them
work.start(names)      they do
work.end("a")          its agent says DONE; end("a", well=False): ERROR, and no try is left
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.pipeline.check import check
from tenuto.core.records.run import PlannedItem
from tenuto.core.todo import todo


class WavesAtWork:
    def __init__(
        self,
        items: Sequence[PlannedItem],
        *,
        order: str,
        cap: int = 4,
        on_item_error: str = "stop",
        never_stops: Iterable[str] = (),
    ) -> None:
        """`never_stops`: items whose agent may fail without stopping anything."""
        seats = [{"role": "worker"}, {"role": "writer", "weight": "never-blocks"}]
        step = {
            "id": "work",
            "waves": {
                "plan": "plan.md",
                "roles": seats,
                "order": order,
                "on_item_error": on_item_error,
                "per_item": "named",
                "each": None,
                "cluster": None,
                "quorum": "",
                "default": "worker",
            },
            "on": {"NEEDS_REVISION": "halt", "ERROR": "halt"},
        }
        found, problems = check({"name": "trial", "cap": cap, "existing": ["plan.md"], "steps": [step]})
        assert found is not None, problems
        self.pipeline: Any = found
        self.run = new_run()
        self._begun = False
        quiet = list(never_stops)
        plan = [{**item, "agent": "writer" if item["id"] in quiet else "worker"} for item in items]
        ref = {"name": "trial", "hash": "h"}
        self.say({"do": "StartRun", "run": "r", "name": "r", "pipeline": ref, "driver": "engine"})
        self.say({"do": "Engage", "pipeline": ref})
        self.say({"do": "BeginVisit"})
        self.say({"do": "PlanVisit", "items": plan})

    def say(self, command: Any) -> None:
        stamped: Any = {**command, "at": "2026-11-15T10:00:00.000Z", "by": "ada"}
        for event in decide(self.pipeline, new_repo(), self.run if self._begun else None, stamped):
            apply(self.run, event)
        self._begun = True

    def startable(self) -> list[str]:
        return [action["item"] for action in self._asked()]

    def _asked(self) -> list[Any]:
        return [action for action in todo(self.pipeline, self.run) if action["act"] == "dispatch"]

    def start(self, names: Iterable[str]) -> None:
        wanted = list(names)
        for action in [action for action in self._asked() if action["item"] in wanted]:
            sent = {
                "do": "DispatchAttempt",
                "attempt": action["attempt"],
                "role": action["seat"]["role"],
                "step": "work",
            }
            self.say({**sent, "item": action["item"], "extra": {"seat": action["key"]}})

    def end(self, name: str, *, well: bool = True) -> None:
        attempt = next(one for one in self.run["in_flight"] if self.run["attempts"][one]["item"] == name)
        status, verdict = ("completed", "DONE") if well else ("failed", "ERROR")
        self.say({"do": "FinishAttempt", "attempt": attempt, "status": status, "verdict": verdict})

    def after(self, done: str = "", running: str = "", failed: str = "") -> str:
        """The items that may start once these have ended well, ended badly, or are at work."""
        waiting = [*done, *failed, *running]
        while waiting:
            ready = [name for name in self.startable() if name in waiting]
            if not ready:
                raise AssertionError(f"{waiting} cannot start; {self.startable()} can")
            self.start(ready)
            waiting = [name for name in waiting if name not in ready]
            for name in ready:
                if name not in running:
                    self.end(name, well=name in done)
        return "".join(self.startable())
