"""Steps begin and end, in the order the run has.

    any      no schedule: any step name, several at once (a person or another program drives)
    open     a schedule that may be entered anywhere, but never past an approval nobody gave
    strict   a schedule with one way forward: Advance, from each step to the next

Between two stages of a strict schedule stands evidence: files that must exist, hold something,
parse, and have been recorded; a review among them must be approved. What is missing blocks the run; a later check that
passes unblocks it. A file nobody told us about counts as missing: evidence never fails open. A step that is a review is
left with an approved one only.
"""

from __future__ import annotations

from tenuto.core.decisions import new_event
from tenuto.core.fold import running_visits
from tenuto.core.status import ACTIVE, FINAL, UNDONE
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypedDict

    from tenuto.core.decide import Case
    from tenuto.core.records import commands
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Json, Run, ScheduledStep

    Facts = Mapping[str, Json]  # per required file: exists, filled, parses, recorded

COMPLETE = "COMPLETE"  # the stage behind the last one


def start_step(case: Case, c: commands.StartStep) -> list[Event]:
    run, step, item = case.run, c["step"], c.get("item")
    _refuse_resting(run, step)
    if run["order"] == "strict" and run["driver"] == "manual":
        raise Refused(
            "strict-order",
            f"run {run['id']} has a fixed order; {step!r} is reached by advancing",
            "advance instead",
            step=step,
        )
    refuse_engine(run)
    if any(visit["step"] == step and visit["item"] == item for visit in running_visits(run)):
        raise Refused("step-running", f"{step!r} is running already in run {run['id']}", "end it first", step=step)
    if run["order"] == "open":
        _refuse_unapproved_before(run, step)
    state = run["steps"].get(step)
    return [
        new_event.step_started(
            case.command,
            step=step,
            item=item,
            leg=None,
            iteration=c.get("iteration") or (state["iteration"] if state else 0) + 1,
        )
    ]


def refuse_engine(run: Run) -> None:
    """What the engine drives is not led by hand at the same time."""
    if run["driver"] != "manual" and run["pipeline"]["hash"] and (run["current_visit"] is not None or run["queue"]):
        ahead = run["current_visit"]["step"] if run["current_visit"] else run["queue"][0]["step"]
        message = f"run {run['id']} is driven by the engine, which is to do {ahead!r} next"
        raise Refused("engine-driven", message, f"lead it by hand with: tenuto release {run['id']}", step=ahead)


def end_step(case: Case, c: commands.EndStep) -> list[Event]:
    run, step, item = case.run, c["step"], c.get("item")
    if not any(visit["step"] == step and visit["item"] == item for visit in running_visits(run)):
        raise Refused(
            "step-not-running", f"{step!r} is not running in run {run['id']}", f"tenuto status {run['id']}", step=step
        )
    if run["order"] == "open" and c["status"] == "success":
        _refuse_unapproved(run, entry_of(run, step))
    return [
        new_event.step_ended(
            case.command,
            step=step,
            item=item,
            status=c["status"],
            verdict=c.get("verdict"),
            summary=c.get("summary", ""),
            because=[],
        )
    ]


def skip_step(case: Case, c: commands.SkipStep) -> list[Event]:
    run, step = case.run, c["step"]
    refuse_engine(run)
    entry = entry_of(run, step)
    if entry is None:
        known = ", ".join(e["step"] for e in run["schedule"]) or "none"
        raise Refused("unknown-step", f"run {run['id']} has no step {step!r} to leave out; it has: {known}", step=step)
    if entry.get("approval"):
        message = f"{step!r} of run {run['id']} needs a person's approval; it cannot be left out"
        raise Refused("not-approved", message, "a person approves it", step=step)
    status = run["steps"][step]["status"]
    if status == "skipped":
        return []
    if status not in UNDONE:
        raise Refused(
            "step-begun", f"{step!r} of run {run['id']} is {status}; only what has not begun is left out", step=step
        )
    return [new_event.step_skipped(case.command, step=step, reason=c.get("reason", ""))]


def advance(case: Case, c: commands.Advance) -> list[Event]:
    refuse_engine(case.run)
    return go_on(case, c.get("to"), c.get("facts", {}), approval=False)


def go_on(case: Case, to: str | None, facts: Facts, approval: bool) -> list[Event]:
    """From the current step to the next. `approval`: a person approves leaving it with this very command."""
    run = case.run
    here, ahead = _here(run), next_step(run)
    if not run["schedule"] or (here is None and run["position"] is not None):
        message = f"run {run['id']} has no order to go on in from {run['position']!r}"
        raise Refused("no-order", message, "start the step that comes next", position=run["position"])
    if to is not None and here is not None and to == here["step"]:
        return []  # already there: an approval led here before
    if to == COMPLETE and run["status"] == "completed":
        return []
    if to is not None and to != (ahead["step"] if ahead else COMPLETE):
        expected = ahead["step"] if ahead else COMPLETE
        raise Refused(
            "step-skipped",
            f"run {run['id']} goes on to {expected!r}, not to {to!r}",
            f"advance to {expected}",
            step=to,
            next=expected,
        )
    if not _waits_for_evidence(run):
        _refuse_resting(run, to or "the next step")
    events: list[Event] = []
    if here is not None:
        if not approval:
            _refuse_unapproved(run, here)
        blocked = _evidence_events(case, here, ahead, facts)
        if any(event["type"] == "Blocked" for event in blocked):
            return blocked
        _refuse_unreviewed(run, here)
        events += blocked
        if run["status"] == "blocked" and not blocked:  # on to a step before the gate: it is checked again there
            events.append(new_event.unblocked(case.command, stage=here.get("stage")))
        if any(visit["step"] == here["step"] for visit in running_visits(run)):
            events.append(
                new_event.step_ended(
                    case.command, step=here["step"], item=None, status="success", verdict=None, summary="", because=[]
                )
            )
    if ahead is None:
        return [*events, new_event.finished(case.command, outcome="completed")]
    state = run["steps"].get(ahead["step"])
    iteration = (state["iteration"] if state else 0) + 1
    return [*events, new_event.step_started(case.command, step=ahead["step"], item=None, iteration=iteration, leg=None)]


def check_evidence(case: Case, c: commands.CheckEvidence) -> list[Event]:
    run, gate = case.run, c["gate"]
    if not isinstance(gate, str) or gate not in run["evidence"]:
        known = ", ".join(run["evidence"]) or "none"
        raise Refused(
            "unknown-gate", f"run {run['id']} has no gate {gate!r}; it has: {known}", "use one of those", gate=gate
        )
    here = _here(run)
    stage = here.get("stage") if here else None
    if gate.partition("->")[0] != stage:
        raise Refused(
            "wrong-stage", f"gate {gate!r} does not lead out of stage {stage}, where run {run['id']} is", gate=gate
        )
    if not _waits_for_evidence(run):
        _refuse_resting(run, gate)
    return _check(case, gate, stage, c["facts"])


def restart_stage(case: Case, c: commands.RestartStage) -> list[Event]:
    run, stage = case.run, c["stage"]
    refuse_engine(run)
    stages = [_stage(entry) for entry in run["schedule"]]
    if stage is None or stage not in stages:
        raise Refused("unknown-stage", f"run {run['id']} has no stage {stage!r}", stage=stage)
    if run["status"] in FINAL:
        raise Refused(
            "run-ended", f"cannot restart {stage} of run {run['id']}: it is {run['status']}", status=run["status"]
        )
    here = _here(run)
    if here is None or stages.index(stage) > stages.index(_stage(here)):
        raise Refused("stage-ahead", f"run {run['id']} has not reached {stage}; it cannot be restarted", stage=stage)
    _refuse_exhausted(run, stage)
    return restarted(case, stage, c["reason"], c.get("extra"))


def restarted(case: Case, stage: str, reason: str, extra: Json | None = None) -> list[Event]:
    """A stage begins again; fold() voids what it and the stages behind it had."""
    run = case.run
    first = next(entry["step"] for entry in run["schedule"] if _stage(entry) == stage)
    told = {"fromPhase": run["position"], "toPhase": first, "maxRestarts": _most_restarts(run)}
    return [
        new_event.stage_restarted(case.command, stage=stage, reason=reason, to=first, extra={**told, **(extra or {})}),
        new_event.step_started(case.command, step=first, item=None, iteration=1, leg=None),
    ]


def _stage(entry: ScheduledStep) -> str:
    """Where an order has no stages, each step is one."""
    return entry.get("stage") or entry["step"]


def _most_restarts(run: Run) -> int | None:
    """None: there is no limit."""
    policy = run["settings"].get("reviewPolicy")
    most = policy.get("maxStageRestarts") if isinstance(policy, dict) else None
    return most if type(most) is int else None


def _refuse_exhausted(run: Run, stage: str) -> None:
    most = _most_restarts(run)
    count = sum(1 for restart in run["restarts"] if restart["stage"] == stage)
    if most is not None and count >= most:
        message = f"{stage} of run {run['id']} was restarted {count} times, and {most} is the limit"
        raise Refused("restarts-exhausted", message, "look at it, then raise the limit or stop", stage=stage)


def next_step(run: Run) -> ScheduledStep | None:
    """The entry behind the current one (the first, before anything began); None behind the last."""
    schedule = run["schedule"]
    if run["position"] is None:
        return schedule[0] if schedule else None
    for index, entry in enumerate(schedule):
        if entry["step"] == run["position"]:
            return schedule[index + 1] if index + 1 < len(schedule) else None
    return None


def approved(run: Run, step: str) -> bool:
    """Did a person approve leaving this step, since it was last entered? The latest word counts; an approval that stays
    is one of what was done so far."""
    entered = max((visit["started_at"] for visit in run["visits"] if visit["step"] == step), default="")
    words = [d for d in run["decisions"] if step in (d["step"], d["name"]) and d["at"] >= entered]
    return bool(words) and words[-1]["approved"] and not words[-1].get("stays")


def _here(run: Run) -> ScheduledStep | None:
    return entry_of(run, run["position"])


def entry_of(run: Run, step: object) -> ScheduledStep | None:
    return next((entry for entry in run["schedule"] if entry["step"] == step), None)


def _evidence_events(case: Case, here: ScheduledStep, ahead: ScheduledStep | None, facts: Facts) -> list[Event]:
    stage, following = here.get("stage"), ahead.get("stage") if ahead else COMPLETE
    if stage is None or stage == following:
        return []
    gate = f"{stage}->{following}"
    if gate not in case.run["evidence"]:
        if not case.run["evidence"]:
            return []
        raise Refused("unknown-gate", f"run {case.run['id']} has no gate {gate!r} to leave {stage} by", gate=gate)
    return _check(case, gate, stage, facts)


def _check(case: Case, gate: str, stage: str | None, facts: Facts) -> list[Event]:
    required = case.run["evidence"][gate]["required"]
    missing = [name for name in required if not _present(case.run, facts.get(name))]
    if missing:
        return [new_event.blocked(case.command, reason=gate, stage=stage, missing=missing)]
    return [new_event.unblocked(case.command, stage=stage)] if case.run["status"] == "blocked" else []


def _present(run: Run, fact: object) -> bool:
    if not isinstance(fact, dict) or not all(fact.get(p) is True for p in ("exists", "filled", "parses", "recorded")):
        return False
    entry = entry_of(run, fact.get("step"))
    return entry is None or entry.get("type") != "review" or reviewed(run, entry["step"])


def reviewed(run: Run, step: str) -> bool:
    """Was this step's review approved, during its last stay?"""
    review = run["reviews"].get(step, {})
    return bool(review.get("approved")) and review.get("visit") == run["steps"][step]["iteration"]


def _waits_for_evidence(run: Run) -> bool:
    """Blocked by a gate, which a later check may open. Whatever else blocks a run is a person's to end."""
    return run["status"] == "blocked" and bool(run["blocked"] and run["blocked"]["missing"])


def _refuse_resting(run: Run, step: str) -> None:
    status = run["status"]
    if status in ACTIVE:
        return
    hints = {"paused": "resume it first", "waiting_gate": "decide the gate first"}
    if status == "failed" and run["order"] == "strict" and run["driver"] == "manual":
        hints["failed"] = f"tenuto resume {run['id']}"
    message = f"cannot start {step!r} in run {run['id']}: it is {status}"
    raise Refused("not-running", message, hints.get(status, f"tenuto status {run['id']}"), status=status, step=step)


def _refuse_unapproved(run: Run, entry: ScheduledStep | None) -> None:
    if entry is not None and entry.get("approval") and not approved(run, entry["step"]):
        message = f"run {run['id']} cannot leave {entry['step']!r}: nobody has approved it"
        raise Refused("not-approved", message, "record a person's approval first", step=entry["step"])


def _refuse_unreviewed(run: Run, entry: ScheduledStep) -> None:
    if entry.get("type") != "review" or reviewed(run, entry["step"]):
        return
    said = run["reviews"].get(entry["step"], {})
    why = f"its review is not approved: {said['reason']}" if said.get("reason") else "its review is not recorded"
    message = f"run {run['id']} cannot leave {entry['step']!r}: {why}"
    raise Refused(
        "not-reviewed", message, "record an approved review first", step=entry["step"], next=said.get("next", "")
    )


def _refuse_unapproved_before(run: Run, step: str) -> None:
    for entry in run["schedule"]:
        if entry["step"] == step:
            return
        if entry.get("approval") and not approved(run, entry["step"]):
            message = f"cannot start {step!r} in run {run['id']}: {entry['step']!r} is not approved"
            raise Refused("not-approved", message, "a person approves it first", step=entry["step"])


if TYPE_CHECKING:

    class Deciders(TypedDict):
        StartStep: Callable[[Case, commands.StartStep], list[Event]]
        EndStep: Callable[[Case, commands.EndStep], list[Event]]
        SkipStep: Callable[[Case, commands.SkipStep], list[Event]]
        Advance: Callable[[Case, commands.Advance], list[Event]]
        CheckEvidence: Callable[[Case, commands.CheckEvidence], list[Event]]
        RestartStage: Callable[[Case, commands.RestartStage], list[Event]]


DECIDERS: Deciders = {
    "StartStep": start_step,
    "EndStep": end_step,
    "SkipStep": skip_step,
    "Advance": advance,
    "CheckEvidence": check_evidence,
    "RestartStage": restart_stage,
}
