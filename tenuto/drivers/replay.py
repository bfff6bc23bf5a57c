"""What an edited pipeline would have made of a run that is over: recorded answers, no agent, nothing written.

    replay(pipeline, run, events) -> what happened then, what would happen now, where they part

Each attempt that the edited pipeline asks for is given the recorded answer of the same attempt; where there is none, of the
same place in another visit, in order; where that place never existed, DONE is assumed and said. Decisions of persons are
given by the name of their gate; one that was never decided ends the replay there, as it would end the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from tenuto.core.decide import decide
from tenuto.core.fold import apply, new_repo, new_run
from tenuto.core.pipeline import documents_of
from tenuto.core.pipeline_records import Pipeline
from tenuto.core.records import Run
from tenuto.core.todo import todo
from tenuto.encoding import dumps, loads
from tenuto.errors import Refused

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
    unused: list[str]  # recorded attempts that nobody asks for any more
    differences: list[str]


def replay(pipeline: Pipeline, run: Run, events: Iterable[Any]) -> Replay:
    recorded = list(events)
    player = _Player(pipeline, run, recorded)
    player.play()
    then, now = _trace(run, recorded), _trace(player.run, player.events)
    if player.stopped:
        now["why"] = player.stopped
    return {
        "then": then, "now": now, "assumed": player.assumed, "unused": [name for name in run["attempts"] if name not in player.used],
        "differences": _differences(then, now),
    }  # fmt: skip


class _Player:
    def __init__(self, pipeline: Pipeline, run: Run, events: list[Any]) -> None:
        self.pipeline = pipeline
        self.recorded = run
        self.run: Run = new_run()
        self.repo = new_repo()
        self.events: list[Any] = []
        self.plans = _plans(events)
        self.decisions = list(run["decisions"])
        self.used: list[str] = []
        self.assumed: list[str] = []
        self.stopped = ""
        self._ticks = 0
        begun: Any = {"do": "StartRun", "run": run["id"], "name": run["name"], "request": run["request"], "driver": "engine"}
        begun |= {"mode": run["mode"], "pipeline": run["pipeline"], "order": "strict", "settings": loads(dumps(run["settings"]))}
        self._begun = False
        self.say(begun)
        if pipeline["starts_from"] == "poc-complete":
            self.say({"do": "Finish", "outcome": "poc-complete"})
        self.say({"do": "Engage", "pipeline": run["pipeline"], "switches": _known(run["switches"], pipeline)})

    def say(self, command: Any) -> None:
        """Times are the recorded run's own end: nothing of what is shown depends on them."""
        stamped: Any = {"at": self.recorded["updated_at"], "by": "replay", **command}
        for event in decide(self.pipeline, self.repo, self.run if self._begun else None, stamped):
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

    def perform(self, action: Any) -> None:
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
        visit = self.run["stay"]["visit"] if self.run["stay"] else 1
        known = [self.plans[step, number] for number in range(visit, 0, -1) if (step, number) in self.plans]
        plan = next(iter(known or self.plans.values()), None)
        if plan is None:
            self.stopped = f"no plan is recorded for {step}"
            return
        if plan["type"] == "StepEnded":
            self.say({"do": "PlanVisit", "items": [], "problem": plan["summary"]})
            return
        chosen = [{"text": f"task {name}"} for group in plan["groups"] for name in group]
        self.say({"do": "PlanVisit", "items": [item["extra"] for item in plan["items"].values()], "findings": chosen})

    def _decide(self, step: str) -> None:
        found = next((one for one in self.decisions if one["step"] == step or one["name"] == step), None)
        if found is None:
            self.stopped = f"it would wait for a person in {step}: no decision is recorded"
            return
        self.decisions.remove(found)
        gate = next(one["gate"] for one in self.pipeline["steps"] if one["id"] == step and one["kind"] == "gate")
        self.say({"do": "OpenGate", "name": gate["name"], "prompt": gate["prompt"], "options": gate["options"]})
        self.say({"do": "DecideGate", "decision": found["decision"], "feedback": found["feedback"], "who": found["who"]})

    def _answer(self, action: Any) -> None:
        name = action["attempt"]
        asked = {"do": "DispatchAttempt", "attempt": name, "step": action["step"], "role": action["seat"]["role"]}
        asked |= {"item": action["item"], "number": action["number"], "extra": {"seat": action["key"]}}
        asked["iteration"] = self.run["stay"]["visit"] if self.run["stay"] else 1
        self.say(asked)
        found = self._recorded(action)
        if found is None:
            self.assumed.append(name)
            self.say({"do": "FinishAttempt", "attempt": name, "status": "completed", "verdict": "DONE", "summary": "assumed"})
            self._keep(action, {})
            return
        told = self.recorded["attempts"][found]
        self.used.append(found)
        self._keep(action, told["receipt"].get("outputs", {}) if told["verdict"] == "DONE" else None)
        if told["status"] == "lost":
            self.say({"do": "LoseAttempt", "attempt": name, "reason": told["summary"]})
        else:
            verdict = "ERROR" if told["verdict"] in (None, "QUESTION", "PARKED") else told["verdict"]
            ended = {"do": "FinishAttempt", "attempt": name, "status": told["status"], "verdict": verdict}
            self.say({**ended, "summary": told["summary"], "receipt": told["receipt"], "usage": told["usage"]})

    def _recorded(self, action: Any) -> str | None:
        open_ones = {
            name: one for name, one in self.recorded["attempts"].items()
            if name not in self.used and one["ended_at"] and one["verdict"] not in ("QUESTION", "PARKED")
        }  # fmt: skip
        if action["attempt"] in open_ones:
            return str(action["attempt"])
        for name, one in open_ones.items():
            if one["step"] == action["step"] and one["extra"].get("seat") == action["key"]:
                return name
        return None

    def _keep(self, action: Any, outputs: Any) -> None:
        """What a stage must leave behind counts as made by whoever answered DONE."""
        if outputs is None:
            return
        folder = documents_of(self.pipeline, self.run)
        step = next(one for one in self.pipeline["steps"] if one["id"] == action["step"])
        for path in [*outputs, *(f"{folder}/{name}" for name in step["evidence_for_next"])]:
            self.say({"do": "StoreArtifact", "name": path, "path": path, "sha256": str(self._ticks), "size": 1})


def _plans(events: list[Any]) -> dict[tuple[str, int], Any]:
    """By step and visit: what was planned there (perhaps that nothing was due), or the end of a visit whose plan could not be carried out."""
    found: dict[tuple[str, int], Any] = {}
    here: tuple[str, int] | None = None
    for event in events:
        if event["type"] == "StepStarted" and event["hop"]:
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


def _trace(run: Run, events: list[Any]) -> Trace:
    why = run["failure"]["error"] if run["failure"] else run["pause"]["reason"] if run["pause"] else ""
    visits = [(event["step"], str(event["verdict"])) for event in events if event["type"] == "StepEnded"]
    return {"status": run["status"], "why": why, "visits": visits, "attempts": list(run["attempts"]), "routes": dict(run["routes"])}


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
        raise Refused("nothing-recorded", f"run {run['id']} has no recorded answers", "replay a run that an engine drove")
