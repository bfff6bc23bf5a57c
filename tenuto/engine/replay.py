"""What an edited pipeline would have made of a run that is over: recorded answers, no agent, nothing written.

    replay(pipeline, run, events) -> what happened then, what would happen now, where they part

Each attempt that the edited pipeline asks for is given the recorded answer of the same attempt; where there is none, of
the same place in another visit, in order; where that place never existed, DONE is assumed and said. Decisions of
persons are given by the name of their gate; one that was never decided ends the replay there, as it would end the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.pipeline.check import documents_of
from tenuto.core.pipeline.records import Pipeline
from tenuto.core.records.run import Run
from tenuto.core.todo import todo
from tenuto.encoding import dumps, loads
from tenuto.errors import Refused

if TYPE_CHECKING:
    from tenuto.core.records.action import Action, Dispatch
    from tenuto.core.records.commands import Command, FinishAttempt
    from tenuto.core.records.events import Event, ItemsPlanned, StepEnded

_MOST = 100_000  # steps of a replay; a checked pipeline ends long before


class Trace(TypedDict):
    status: str
    why: str
    visits: list[tuple[str, str]]  # step, verdict
    attempts: list[str]
    routes: dict[str, int]


class Replay(TypedDict):
    then: Trace
    now: Trace
    assumed: list[str]  # attempts without a recorded answer
    unused: list[str]  # recorded attempts that are not asked for any more
    differences: list[str]


def replay(pipeline: Pipeline, run: Run, events: Iterable[Event]) -> Replay:
    recorded = list(events)
    player = _Player(pipeline, run, recorded)
    player.play()
    then, now = _trace(run, recorded), _trace(player.run, player.events)
    if player.stopped:
        now["why"] = player.stopped
    return {
        "then": then,
        "now": now,
        "assumed": player.assumed,
        "unused": [name for name in run["attempts"] if name not in player.used],
        "differences": _differences(then, now),
    }


class _Player:
    def __init__(self, pipeline: Pipeline, run: Run, events: list[Event]) -> None:
        self.pipeline = pipeline
        self.recorded = run
        self.run: Run = new_run()
        self.repo = new_repo()
        self.events: list[Event] = []
        self.plans = _plans(events)
        self.decisions = list(run["decisions"])
        self.used: list[str] = []
        self.assumed: list[str] = []
        self.stopped = ""
        self._ticks = 0
        self._begun = False
        self.say(
            {
                "do": "StartRun",
                "run": run["id"],
                "name": run["name"],
                "request": run["request"],
                "driver": "engine",
                "mode": run["mode"],
                "pipeline": run["pipeline"],
                "order": "strict",
                "settings": loads(dumps(run["settings"])),
            }
        )
        if pipeline["starts_from"] == "poc-complete":
            self.say({"do": "Finish", "outcome": "poc-complete"})
        self.say({"do": "Engage", "pipeline": run["pipeline"], "switches": _known(run["switches"], pipeline)})

    def say(self, command: Command) -> None:
        """Times are the recorded run's own end: nothing of what is shown depends on them."""
        command["at"], command["by"] = self.recorded["updated_at"], "replay"
        for event in decide(self.pipeline, self.repo, self.run if self._begun else None, command):
            apply(self.run, event)
            self.events.append(event)
        self._begun = True

    def play(self) -> None:
        while not self.stopped and self._ticks < _MOST:
            self._ticks += 1
            actions = todo(self.pipeline, self.run)
            if not actions:
                return
            for action in actions:
                self.perform(action)

    def perform(self, action: Action) -> None:
        match action["act"]:
            case "begin":
                self.say({"do": "BeginVisit"})
            case "conclude":
                self.say({"do": "Conclude"})
            case "do":
                self.say({"do": "RecordAction", "action": action["as"]})
                if action["action"] == "choose-review-tier":
                    self.say({"do": "SetFlags", "flags": self.recorded["flags"]})
            case "plan":
                self._plan(action["step"])
            case "ask":
                self._decide(action["step"])
            case "dispatch":
                self._answer(action)
            case other:
                self.stopped = f"it would {other} in {action['step']}"

    def _plan(self, step: str) -> None:
        """What was read in this visit; in a visit that never was, what was read last before it."""
        visit = self.run["current_visit"]["visit"] if self.run["current_visit"] else 1
        known = [self.plans[step, number] for number in range(visit, 0, -1) if (step, number) in self.plans]
        plan = next(iter(known or self.plans.values()), None)
        if plan is None:
            self.stopped = f"no plan is recorded for {step}"
            return
        if plan["type"] == "StepEnded":
            self.say({"do": "PlanVisit", "items": [], "problem": plan["summary"]})
            return
        items = [item["extra"] for item in plan["items"].values()]
        chosen = [name for group in plan["groups"] for name in group]
        self.say({"do": "PlanVisit", "items": items, "findings": [{"text": f"task {name}"} for name in chosen]})

    def _decide(self, step: str) -> None:
        """A gate that was never decided stays open, as it is in a run that waits there."""
        found = next((one for one in self.decisions if one["step"] == step or one["name"] == step), None)
        gate = next(one["gate"] for one in self.pipeline["steps"] if one["id"] == step and one["kind"] == "gate")
        self.say(
            {
                "do": "OpenGate",
                "name": gate["name"],
                "prompt": gate["prompt"],
                "options": [*gate["options"]],
                "fields": gate.get("fields", {}),
            }
        )
        if found is None:
            self.stopped = f"it would wait for a person in {step}: no decision is recorded"
            return
        self.decisions.remove(found)
        self.say(
            {
                "do": "DecideGate",
                "decision": found["decision"],
                "feedback": found["feedback"],
                "who": found["who"],
                "answers": found.get("answers", {}),
            }
        )

    def _answer(self, action: Dispatch) -> None:
        name, current_visit = action["attempt"], self.run["current_visit"]
        self.say(
            {
                "do": "DispatchAttempt",
                "attempt": name,
                "step": action["step"],
                "role": action["seat"]["role"],
                "item": action["item"],
                "number": action["number"],
                "extra": {"seat": action["key"]},
                "iteration": current_visit["visit"] if current_visit else 1,
            }
        )
        found = self._recorded(action)
        if found is None:
            self.assumed.append(name)
            self.say(
                {"do": "FinishAttempt", "attempt": name, "status": "completed", "verdict": "DONE", "summary": "assumed"}
            )
            self._keep(action, [])
            return
        attempt = self.recorded["attempts"][found]
        self.used.append(found)
        if attempt["verdict"] == "DONE":
            self._keep(action, list(attempt["receipt"].get("outputs", {})))
        if attempt["status"] == "lost":
            self.say({"do": "LoseAttempt", "attempt": name, "reason": attempt["summary"]})
            return
        verdict = "ERROR" if attempt["verdict"] in (None, "QUESTION", "PARKED") else attempt["verdict"]
        ended: FinishAttempt = {
            "do": "FinishAttempt",
            "attempt": name,
            "status": "completed",
            "verdict": verdict,
            "summary": attempt["summary"],
            "receipt": attempt["receipt"],
            "usage": attempt["usage"],
        }
        if attempt["status"] in ("failed", "blocked"):
            ended["status"] = attempt["status"]
        self.say(ended)

    def _recorded(self, action: Dispatch) -> str | None:
        open_ones = {
            name: one
            for name, one in self.recorded["attempts"].items()
            if name not in self.used and one["ended_at"] and one["verdict"] not in ("QUESTION", "PARKED")
        }
        if action["attempt"] in open_ones:
            return action["attempt"]
        for name, one in open_ones.items():
            if one["step"] == action["step"] and one["extra"].get("seat") == action["key"]:
                return name
        return None

    def _keep(self, action: Dispatch, outputs: list[str]) -> None:
        """What a stage must leave behind counts as made by the attempt that answered DONE."""
        folder = documents_of(self.pipeline, self.run)
        step = next(one for one in self.pipeline["steps"] if one["id"] == action["step"])
        for path in [*outputs, *(f"{folder}/{name}" for name in step["evidence_for_next"])]:
            self.say({"do": "StoreArtifact", "name": path, "path": path, "sha256": str(self._ticks), "size": 1})


def _plans(events: list[Event]) -> dict[tuple[str, int], ItemsPlanned | StepEnded]:
    """By step and visit: what was planned there (perhaps that nothing was due), or the end of a visit whose plan
    could not be carried out."""
    found: dict[tuple[str, int], ItemsPlanned | StepEnded] = {}
    here: tuple[str, int] | None = None
    for event in events:
        if event["type"] == "StepStarted" and event["leg"]:
            here = (event["step"], event["iteration"])
        elif event["type"] == "ItemsPlanned" and here:
            found[here] = event
        elif event["type"] == "StepEnded":
            if here and here not in found and event["verdict"] == "NEEDS_REVISION" and event["summary"]:
                found[here] = event
            here = None
    return found


def _known(switches: dict[str, bool], pipeline: Pipeline) -> dict[str, bool]:
    return {name: on for name, on in switches.items() if name in pipeline["switches"]}


def _trace(run: Run, events: Iterable[Event]) -> Trace:
    why = run["failure"]["error"] if run["failure"] else run["pause"]["reason"] if run["pause"] else ""
    visits = [(event["step"], str(event["verdict"])) for event in events if event["type"] == "StepEnded"]
    return {
        "status": run["status"],
        "why": why,
        "visits": visits,
        "attempts": list(run["attempts"]),
        "routes": dict(run["routes"]),
    }


def _differences(then: Trace, now: Trace) -> list[str]:
    found = []
    if then["status"] != now["status"]:
        found.append(f"the run was {then['status']}; it would be {now['status']}")
    for step in dict.fromkeys(step for step, _ in [*then["visits"], *now["visits"]]):
        old = [verdict for one, verdict in then["visits"] if one == step]
        new = [verdict for one, verdict in now["visits"] if one == step]
        if old != new:
            found.append(f"{step}: {', '.join(old) or 'never'}; now {', '.join(new) or 'never'}")
    for route in dict.fromkeys([*then["routes"], *now["routes"]]):
        old_count, new_count = then["routes"].get(route, 0), now["routes"].get(route, 0)
        if old_count != new_count:
            found.append(f"{route} was taken {old_count} times; now {new_count}")
    return found


def refuse_unreplayable(run: Run) -> None:
    if not run["attempts"]:
        raise Refused(
            "nothing-recorded", f"run {run['id']} has no recorded answers", "replay a run that an engine drove"
        )
