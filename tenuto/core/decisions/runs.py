"""Runs begin, rest and end.

    running ── Pause ──▶ paused ── Resume ──▶ back to where it was
       │  └─── Stop / Park ──▶ stopped / parked ── Resume ──▶ back
       ├─ Fail ──▶ failed        ├─ Cancel ──▶ cancelled
       └─ Finish ──▶ completed, or poc-complete ── Finish ──▶ graduated

Whatever is completed, failed, cancelled or graduated stays so. poc-complete is a rest from which
graduation may go on. Nothing finishes past an open gate or a pause.
"""

from __future__ import annotations

from tenuto.core.decisions import new_event
from tenuto.core.fold import running_visits
from tenuto.core.status import ACTIVE, ENDED, RESUMABLE, WAITING
from tenuto.core.times import milliseconds
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict

    from tenuto.core.decide import Case
    from tenuto.core.records import commands
    from tenuto.core.records.events import Event


def _refuse_if_ended(case: Case, verb: str) -> None:
    status = case.run["status"]
    if status in ENDED:
        raise Refused(
            "run-ended",
            f"cannot {verb} run {case.run['id']}: it is {status}",
            "start a new run",
            status=status,
            verb=verb,
        )


def start_run(case: Case, c: commands.StartRun) -> list[Event]:
    if case.run is not None:
        raise Refused("run-exists", f"there is a run {c['run']} already", f"tenuto status {c['run']}", run=c["run"])
    return [
        new_event.run_started(
            case.command,
            run=c["run"],
            name=c["name"],
            request=c.get("request", ""),
            summary=c.get("summary", ""),
            mode=c.get("mode", "standard"),
            pipeline=c["pipeline"],
            driver=c.get("driver", "manual"),
            dialects=c.get("dialects", {}),
            order=c.get("order", "strict" if c.get("schedule") else "any"),
            schedule=c.get("schedule", []),
            evidence=c.get("evidence", {}),
            settings=c.get("settings", {}),
        )
    ]


def adopt(case: Case, c: commands.Adopt) -> list[Event]:
    if case.run is not None:
        raise Refused(
            "run-exists",
            f"there is a run {case.run['id']} already",
            f"tenuto status {case.run['id']}",
            run=case.run["id"],
        )
    return [new_event.adopted(case.command, dialect=c["dialect"], path=c["path"], sha256=c["sha256"], state=c["state"])]


def pause(case: Case, c: commands.Pause) -> list[Event]:
    run = case.run
    _refuse_if_ended(case, "pause")
    if run["status"] == "waiting_gate":
        raise Refused(
            "gate-open",
            f"cannot pause run {run['id']}: it waits for gate {_gate_name(case)}",
            "decide the gate first",
            verb="pause",
        )
    kind = c.get("kind", "failure")
    visits = running_visits(run)
    if kind == "failure" and visits:
        names = [visit["step"] for visit in visits]
        raise Refused(
            "steps-running",
            f"cannot pause run {run['id']}: {', '.join(names)} not ended",
            "end them first",
            steps=names,
        )
    step = c.get("step") or run["position"] or (run["visits"][-1]["step"] if run["visits"] else None)
    return [
        new_event.paused(
            case.command,
            kind=kind,
            reason=c["reason"],
            step=step,
            feedback=c.get("feedback", ""),
            question_of="",
            recommendations=c.get("recommendations", []),
        )
    ]


def resume(case: Case, c: commands.Resume) -> list[Event]:
    run = case.run
    if run["status"] == "failed" and run["order"] == "strict" and run["driver"] == "manual":
        return [new_event.resumed(case.command, decision="retry")]  # it stands in the step that failed
    if run["status"] not in RESUMABLE:
        raise Refused(
            "not-paused",
            f"run {run['id']} is {run['status']}, not paused",
            f"tenuto status {run['id']}",
            status=run["status"],
        )
    decision = c.get("decision", "retry")
    if decision == "reject":
        paused = run["pause"]
        reason = paused["reason"] if paused else ""
        return [
            new_event.failed(
                case.command,
                step=paused["step"] if paused else None,
                error=f"rejected: {reason}",
                context={"decision": "reject"},
            )
        ]
    if run["status"] == "parked" and not c.get("early"):
        until = run["pause"]["until"] if run["pause"] else ""
        if too_early(until, c["at"]):
            raise Refused(
                "parked", f"run {run['id']} is parked until {until}", f"tenuto resume {run['id']} --now", until=until
            )
    if decision != "retry":
        raise Refused("bad-decision", f"a pause is answered with retry or reject, not {decision!r}", decision=decision)
    return [new_event.resumed(case.command, decision=decision)]


def too_early(until: str, now: str) -> bool:
    """A time that cannot be read is no reason to wait for ever."""
    then, at = milliseconds(until), milliseconds(now)
    return then is not None and at is not None and at < then


def park(case: Case, c: commands.Park) -> list[Event]:
    _refuse_if_ended(case, "park")
    if case.run["status"] not in ACTIVE:
        raise Refused(
            "not-running", f"cannot park run {case.run['id']}: it is {case.run['status']}", status=case.run["status"]
        )
    return [new_event.parked(case.command, until=c["until"], reason=c["reason"])]


def fail(case: Case, c: commands.Fail) -> list[Event]:
    _refuse_if_ended(case, "fail")
    step = c.get("step", case.run["position"])
    return [new_event.failed(case.command, step=step, error=c["error"], context=c.get("context"))]


def finish(case: Case, c: commands.Finish) -> list[Event]:
    run, outcome = case.run, c.get("outcome", "completed")
    if outcome == "poc-complete" and run["status"] == "completed" and run["mode"] == "poc":
        return [new_event.finished(case.command, outcome=outcome)]  # its debt was written down after the last gate
    _refuse_if_ended(case, "finish")
    if outcome == "graduated" and run["status"] != "poc-complete":
        raise Refused(
            "not-poc-complete", f"run {run['id']} cannot graduate: it is {run['status']}", status=run["status"]
        )
    if run["status"] not in ACTIVE:
        raise Refused(
            "not-running",
            f"cannot finish run {run['id']}: it is {run['status']}",
            f"tenuto status {run['id']}",
            status=run["status"],
        )
    visits = running_visits(run)
    if visits and outcome == "completed" and run["order"] != "strict":
        names = [visit["step"] for visit in visits]
        raise Refused(
            "steps-running",
            f"cannot finish run {run['id']}: {', '.join(names)} not ended",
            "end them first",
            steps=names,
        )
    return [new_event.finished(case.command, outcome=outcome)]


def cancel(case: Case, c: commands.Cancel) -> list[Event]:
    _refuse_if_ended(case, "cancel")
    return [new_event.cancelled(case.command, reason=c.get("reason", ""))]


def stop(case: Case, c: commands.Stop) -> list[Event]:
    _refuse_if_ended(case, "stop")
    if case.run["status"] in WAITING:
        return []  # it rests already
    return [new_event.stopped(case.command, reason=c.get("reason", ""))]


def pick_up(case: Case, c: commands.PickUp) -> list[Event]:
    """Somebody goes on with a run that was not at rest: a new session, a new day."""
    _refuse_if_ended(case, "pick up")
    return [new_event.picked_up(case.command, session=c.get("session", ""))]


def block(case: Case, c: commands.Block) -> list[Event]:
    _refuse_if_ended(case, "block")
    if case.run["status"] == "blocked":
        return []
    return [new_event.blocked(case.command, reason=c["reason"], stage=c.get("stage"), missing=[])]


def unblock(case: Case, c: commands.Unblock) -> list[Event]:
    if case.run["status"] != "blocked":
        raise Refused(
            "not-blocked", f"run {case.run['id']} is {case.run['status']}, not blocked", status=case.run["status"]
        )
    blocked = case.run["blocked"]
    return [new_event.unblocked(case.command, stage=blocked["stage"] if blocked else None)]


def _gate_name(case: Case) -> str:
    return case.run["gate"]["name"] if case.run["gate"] else "?"


if TYPE_CHECKING:

    class Deciders(TypedDict):
        StartRun: Callable[[Case, commands.StartRun], list[Event]]
        Adopt: Callable[[Case, commands.Adopt], list[Event]]
        Pause: Callable[[Case, commands.Pause], list[Event]]
        Resume: Callable[[Case, commands.Resume], list[Event]]
        Park: Callable[[Case, commands.Park], list[Event]]
        Fail: Callable[[Case, commands.Fail], list[Event]]
        Finish: Callable[[Case, commands.Finish], list[Event]]
        Cancel: Callable[[Case, commands.Cancel], list[Event]]
        Stop: Callable[[Case, commands.Stop], list[Event]]
        PickUp: Callable[[Case, commands.PickUp], list[Event]]
        Block: Callable[[Case, commands.Block], list[Event]]
        Unblock: Callable[[Case, commands.Unblock], list[Event]]


DECIDERS: Deciders = {
    "StartRun": start_run,
    "Adopt": adopt,
    "Pause": pause,
    "Resume": resume,
    "Park": park,
    "Fail": fail,
    "Finish": finish,
    "Cancel": cancel,
    "Stop": stop,
    "PickUp": pick_up,
    "Block": block,
    "Unblock": unblock,
}
