"""Runs begin, rest and end.

    running ── Pause ──▶ paused ── Resume ──▶ back to where it was
       │  └─── Stop / Park ──▶ stopped / parked ── Resume ──▶ back
       ├─ Fail ──▶ failed        ├─ Cancel ──▶ cancelled
       └─ Finish ──▶ completed, or poc-complete ── Finish ──▶ graduated

Whatever is completed, failed, cancelled or graduated stays so. poc-complete is a rest from which
graduation may go on. Nothing finishes past an open gate or a pause.
"""

from __future__ import annotations

from tenuto.core.fold import running_visits
from tenuto.core.times import milliseconds
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.decide import Case

ENDED = ("completed", "failed", "cancelled", "graduated")
ACTIVE = ("created", "running", "restarting", "poc-complete")


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


def start_run(case: Case, c: Any) -> list[Any]:
    if case.run is not None:
        raise Refused("run-exists", f"there is a run {c['run']} already", f"tenuto status {c['run']}", run=c["run"])
    return [
        case.event(
            "RunStarted", run=c["run"], name=c["name"], request=c.get("request", ""), summary=c.get("summary", ""),
            mode=c.get("mode", "standard"), pipeline=c["pipeline"], driver=c.get("driver", "manual"),
            dialects=c.get("dialects", {}), order=c.get("order", "strict" if c.get("schedule") else "any"),
            schedule=c.get("schedule", []), evidence=c.get("evidence", {}), settings=c.get("settings", {}),
        )
    ]  # fmt: skip


def adopt(case: Case, c: Any) -> list[Any]:
    if case.run is not None:
        raise Refused(
            "run-exists",
            f"there is a run {case.run['id']} already",
            f"tenuto status {case.run['id']}",
            run=case.run["id"],
        )
    return [case.event("Adopted", dialect=c["dialect"], path=c["path"], sha256=c["sha256"], state=c["state"])]


def pause(case: Case, c: Any) -> list[Any]:
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
        case.event(
            "Paused", kind=kind, reason=c["reason"], step=step,
            last_feedback=c.get("last_feedback", ""), recommendations=c.get("recommendations", []),
        )
    ]  # fmt: skip


def resume(case: Case, c: Any) -> list[Any]:
    run = case.run
    if run["status"] not in ("paused", "stopped", "parked"):
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
            case.event("Failed", step=paused["step"] if paused else None, error=f"rejected: {reason}", context=None)
        ]
    if run["status"] == "parked" and not c.get("early"):
        until = run["pause"]["last_feedback"] if run["pause"] else ""
        if too_early(until, c["at"]):
            raise Refused(
                "parked", f"run {run['id']} is parked until {until}", f"tenuto resume {run['id']} --now", until=until
            )
    if decision != "retry":
        raise Refused("bad-decision", f"a pause is answered with retry or reject, not {decision!r}", decision=decision)
    return [case.event("Resumed", decision=decision)]


def too_early(until: str, now: str) -> bool:
    """A time that cannot be read is no reason to wait for ever."""
    then, at = milliseconds(until), milliseconds(now)
    return then is not None and at is not None and at < then


def park(case: Case, c: Any) -> list[Any]:
    _refuse_if_ended(case, "park")
    if case.run["status"] not in ACTIVE:
        raise Refused(
            "not-running", f"cannot park run {case.run['id']}: it is {case.run['status']}", status=case.run["status"]
        )
    return [case.event("Parked", until=c["until"], reason=c["reason"])]


def fail(case: Case, c: Any) -> list[Any]:
    _refuse_if_ended(case, "fail")
    step = c.get("step", case.run["position"])
    return [case.event("Failed", step=step, error=c["error"], context=c.get("context"))]


def finish(case: Case, c: Any) -> list[Any]:
    run, outcome = case.run, c.get("outcome", "completed")
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
    return [case.event("Finished", outcome=outcome)]


def cancel(case: Case, c: Any) -> list[Any]:
    _refuse_if_ended(case, "cancel")
    return [case.event("Cancelled", reason=c.get("reason", ""))]


def stop(case: Case, c: Any) -> list[Any]:
    _refuse_if_ended(case, "stop")
    if case.run["status"] in ("waiting_gate", "paused", "stopped", "parked"):
        return []  # it rests already
    return [case.event("Stopped", reason=c.get("reason", ""))]


def pick_up(case: Case, c: Any) -> list[Any]:
    """Somebody goes on with a run that was not at rest: a new session, a new day."""
    _refuse_if_ended(case, "pick up")
    return [case.event("PickedUp", session=c.get("session", ""))]


def block(case: Case, c: Any) -> list[Any]:
    _refuse_if_ended(case, "block")
    if case.run["status"] == "blocked":
        return []
    return [case.event("Blocked", reason=c["reason"], stage=c.get("stage"), missing=[])]


def unblock(case: Case, c: Any) -> list[Any]:
    if case.run["status"] != "blocked":
        raise Refused(
            "not-blocked", f"run {case.run['id']} is {case.run['status']}, not blocked", status=case.run["status"]
        )
    blocked = case.run["blocked"]
    return [case.event("Unblocked", stage=blocked["stage"] if blocked else None)]


def _gate_name(case: Case) -> str:
    return case.run["gate"]["name"] if case.run["gate"] else "?"


DECIDERS = {
    "StartRun": start_run, "Adopt": adopt, "Pause": pause, "Resume": resume, "Park": park, "Fail": fail,
    "Finish": finish, "Cancel": cancel, "Stop": stop, "PickUp": pick_up, "Block": block, "Unblock": unblock,
}  # fmt: skip
