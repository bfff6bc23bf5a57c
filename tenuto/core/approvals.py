"""By whose word a gate was passed: what a decision must bring along, and what a journal must show for it.

    weakness(run, proof)                why this proof does not do for this run; "" where it does
    statement(run, gate, decision, ..)  what a person signs: the run, the gate, the decision, everything that was shown
    doubts(pipeline, run, events)       what was passed, or begun, without the decision that it needs
    decided(run, events)                each decision with what had to be signed for it
    standing(pipeline, events)          the gates that are approved, and whose approval nothing has undone since
    refuse_unapproved(pipeline, ...)    Refused, where a gate on the way to this step is not among them

Rule 1: the protection that a run began with holds to its end. Settings lie where agents can write; the run's own do not.

Rule 2: behind a gate nothing begins before the gate was opened and approved. The engine keeps this by itself; here it is
read off the journal again, because whoever can write to the database can write events that nobody decided.

Rule 3: nobody is put behind a gate that was not approved: not by a retry, not by taking a run over, not by a fork. An approval
stands until the gate is asked again, or the run goes back to come through it again. A route that ends behind the gate (a replan) leaves it standing.
It is for the gate of the pipeline that was followed: in another pipeline a gate of the same name shows other things, and is asked.
"""

from __future__ import annotations

from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tenuto.core.records import Run

LEVELS = ("guarded", "signed", "isolated")
PROTECTION = "gate_protection"  # in the run's settings: {"level", "signers"}
PASSED_ON = "passed_on"  # in the repository's settings: over what a model may pass a person's decision on


def protection(run: Run) -> Any:
    return run["settings"].get(PROTECTION) or {"level": "", "signers": ""}


def weakness(run: Run, proof: Any) -> str:
    """Whether a signature is a true one is for the driver to see; that there is one is for us."""
    if protection(run)["level"] == "signed" and proof.get("level") != "signed":
        return f"run {run['id']} takes signed decisions only"
    return ""


def statement(run: str, gate: Any, decision: str, feedback: str) -> dict[str, Any]:
    """`gate`: the open gate, or the event that opened it."""
    return {
        "run": run, "gate": gate.get("id") or gate["gate"], "name": gate["name"], "decision": decision, "feedback": feedback,
        "shown": gate["shown"],
    }  # fmt: skip


def decided(run: str, events: Iterable[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """(GateDecided, what had to be signed), for every gate that was opened."""
    opened: dict[str, Any] = {}
    for event in events:
        if event["type"] == "GateOpened":
            opened[event["gate"]] = event
        elif event["type"] == "GateDecided" and event["gate"] in opened:
            yield event, statement(run, opened[event["gate"]], event["decision"], event["feedback"])


def standing(pipeline: Any, events: Iterable[Any]) -> list[str]:
    """The names of these gates. `events`: of one run, from the beginning."""
    held = _Approvals(pipeline)
    for event in events:
        held.apply(event)
    return list(held.names)


def refuse_unapproved(pipeline: Any, switches: Any, step: str, approved: Any) -> list[str]:
    """The gates on the way to this step, each of them approved."""
    order = [one["id"] for one in pipeline["steps"]]
    ahead = order[: order.index(step)]
    passed = {name: gate for gate, name in _gates(pipeline, switches).items() if gate in ahead}
    closed = [name for name in passed if name not in approved]
    if closed:
        what = f"gate {closed[0]!r}" if len(closed) == 1 else f"gates {', '.join(repr(name) for name in closed)}"
        message = f"{step} lies behind {what}, and no approval of it stands"
        raise Refused("gate-ahead", message, f"begin at {passed[closed[0]]}, or before it", step=step, gates=closed)
    return list(passed)


def _gates(pipeline: Any, switches: Any) -> dict[str, str]:
    """Step -> name, of those that are on the way and switched on."""
    return {
        step["id"]: step["gate"]["name"] for step in pipeline["steps"]
        if step["kind"] == "gate" and not step["aside"] and (step["when"] == "always" or switches.get(step["when"]))
    }  # fmt: skip


class _Approvals:
    """Rule 3, event by event."""

    def __init__(self, pipeline: Any) -> None:
        self.names: dict[str, None] = {}
        self._follows = ""
        self._order = [step["id"] for step in pipeline["steps"]]
        self._of = {step["gate"]["name"]: step["id"] for step in pipeline["steps"] if step["kind"] == "gate"}

    def apply(self, event: Any) -> None:
        if event["type"] in ("RunStarted", "Engaged", "DriverChanged"):
            self._follow(event.get("pipeline") or {})
        match event["type"]:
            case "GateDecided":
                self.names.pop(event["name"], None)
                if event["approved"]:
                    self.names[event["name"]] = None
            case "RouteTaken" | "Engaged" if event["queue"]:
                last = event["queue"][-1]["step"]
                behind = self._order[self._order.index(last) :] if last in self._order else []
                self.names = {name: None for name in self.names if self._of.get(name) not in behind}
            case "StepStarted":
                asked = [name for name in self.names if self._of.get(name) == event["step"]]
                self.names = {name: None for name in self.names if name not in asked}
            case "Forked":
                self.names.update(dict.fromkeys(event.get("approved", ())))

    def _follow(self, pipeline: Any) -> None:
        """Led by hand (no definition is bound), a run knows the gates of what it is about to follow."""
        if pipeline.get("hash"):
            if self._follows not in ("", pipeline["name"]):
                self.names = {}
            self._follows = pipeline["name"]


def doubts(pipeline: Any, run: Run, events: Iterable[Any]) -> Iterator[str]:
    order = [step["id"] for step in pipeline["steps"]]
    gates = _gates(pipeline, run["switches"])
    waiting, approved = "", _Approvals(pipeline)
    for number, event in enumerate(events, 1):
        approved.apply(event)
        match event["type"]:
            case "SettingsChanged" if PROTECTION in event["changes"]:
                yield f"event {number}: how gates are protected was changed under way"
            case "GateOpened":
                waiting = event["gate"]
            case "GateDecided":
                if event["gate"] != waiting and event["name"] in gates.values():
                    yield f"event {number}: gate {event['name']!r} was decided without being open"
                waiting = ""
            case "StepStarted" | "AttemptDispatched" if event["step"] in order:
                here = order.index(event["step"])
                if waiting:
                    yield f"event {number}: {event['step']} began while {waiting} was open"
                for step, name in gates.items():
                    if order.index(step) < here and name not in approved.names:
                        yield f"event {number}: {event['step']} began without an approval of {name!r}"
