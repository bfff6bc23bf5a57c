"""By whose word a gate was passed: what a decision must bring along, and what a journal must show for it.

    weakness(run, proof)                why this proof does not do for this run; "" where it does
    statement(run, gate, decision, ..)  what a person signs: the run, the gate, the decision, everything that was shown
    doubts(pipeline, run, events)       what was passed, or begun, without the decision that it needs
    decided(run, events)                each decision with what had to be signed for it

Rule 1: the protection that a run began with holds to its end. Settings lie where agents can write; the run's own do not.

Rule 2: behind a gate nothing begins before the gate was opened and approved. The engine keeps this by itself; here it is
read off the journal again, because whoever can write to the database can write events that nobody decided.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tenuto.core.records import Run

LEVELS = ("guarded", "signed", "isolated")
PROTECTION = "gate_protection"  # in the run's settings: {"level", "signers"}


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


def doubts(pipeline: Any, run: Run, events: Iterable[Any]) -> Iterator[str]:
    order = [step["id"] for step in pipeline["steps"]]
    gates = {
        step["id"]: step["gate"]["name"] for step in pipeline["steps"]
        if step["kind"] == "gate" and (step["when"] == "always" or run["switches"].get(step["when"]))
    }  # fmt: skip
    first, waiting = 0, ""
    approved: set[str] = set()
    for number, event in enumerate(events, 1):
        match event["type"]:
            case "Engaged" if event["queue"]:
                # What lies before the place where an engine took over was somebody else's to decide.
                first = order.index(event["queue"][0]["step"]) if event["queue"][0]["step"] in order else 0
            case "SettingsChanged" if PROTECTION in event["changes"]:
                yield f"event {number}: how gates are protected was changed under way"
            case "GateOpened":
                waiting = event["gate"]
            case "GateDecided":
                if event["gate"] != waiting and event["name"] in gates.values():
                    yield f"event {number}: gate {event['name']!r} was decided without being open"
                if event["approved"]:
                    approved.add(event["name"])
                waiting = ""
            case "StepStarted" | "AttemptDispatched" if event["step"] in order:
                here = order.index(event["step"])
                if waiting:
                    yield f"event {number}: {event['step']} began while {waiting} was open"
                for step, name in gates.items():
                    if first <= order.index(step) < here and name not in approved:
                        yield f"event {number}: {event['step']} began without an approval of {name!r}"
