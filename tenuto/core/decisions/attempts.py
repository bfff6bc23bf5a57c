"""Attempts and items: what agents are asked to do, and what came of it.

Dispatched, then started, then exactly one end: finished or lost. Never more in flight than
the cap, never more promised than the budget has left: what is in flight counts with what
was set aside for it. The one who keeps the state is not an agent, whatever its spelling.
"""

from __future__ import annotations

from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.decide import Case
    from tenuto.core.records import Run

_STATE_KEEPERS = ("statemanager", "orchestratorstatemanager", "statemanageragent", "contextmanager", "flowstatemanager")
_MAY_DISPATCH = ("created", "running", "restarting", "poc-complete")


def in_flight(run: Run) -> list[str]:
    return [name for name, attempt in run["attempts"].items() if attempt["status"] in ("dispatched", "running")]


def dispatch_attempt(case: Case, c: Any) -> list[Any]:
    run, attempt = case.run, c["attempt"]
    if _plain(c["role"]) in _STATE_KEEPERS:
        raise Refused(
            "not-an-agent",
            f"{c['role']!r} keeps the state; it is not recorded as an agent",
            "record the agent that does the work",
            role=c["role"],
        )
    if run["status"] not in _MAY_DISPATCH:
        raise Refused(
            "not-running",
            f"cannot dispatch {c['role']} in run {run['id']}: it is {run['status']}",
            f"tenuto status {run['id']}",
            status=run["status"],
        )
    if attempt in run["attempts"]:
        raise Refused("attempt-exists", f"attempt {attempt} was dispatched before", attempt=attempt)
    cap = (case.pipeline or {}).get("cap")
    if cap is not None and len(in_flight(run)) >= cap:
        raise Refused(
            "cap-reached",
            f"{cap} attempts of run {run['id']} are in flight, and {cap} is the cap",
            "wait for one to end",
            cap=cap,
        )
    _refuse_over_budget(run, c.get("reserved", {}))
    if run["stay"] is not None and case.pipeline is not None:
        _refuse_unasked(case, c)
    return [
        case.event(
            "AttemptDispatched", attempt=attempt, step=c.get("step") or run["position"] or "", role=c["role"],
            agent=c.get("agent", ""), task=c.get("task", ""), item=c.get("item"), iteration=c.get("iteration", 1),
            number=c.get("number", 1), summary=c.get("summary", ""), reserved=c.get("reserved", {}), extra=c.get("extra", {}),
        )
    ]  # fmt: skip


def _refuse_unasked(case: Case, c: Any) -> None:
    """An engine-driven run starts what todo() asks for, and nothing else: two drivers cannot start it twice."""
    from tenuto.core.todo import todo

    if not any(
        action["act"] == "dispatch" and action["attempt"] == c["attempt"] for action in todo(case.pipeline, case.run)
    ):
        raise Refused(
            "not-asked",
            f"run {case.run['id']} does not ask for attempt {c['attempt']} now",
            "ask again what is to be done",
        )


def start_attempt(case: Case, c: Any) -> list[Any]:
    _require_open(case.run, c["attempt"])
    return [case.event("AttemptStarted", attempt=c["attempt"], extra=c.get("extra", {}))]


def finish_attempt(case: Case, c: Any) -> list[Any]:
    _require_open(case.run, c["attempt"])
    finished = [
        case.event(
            "AttemptFinished", attempt=c["attempt"], status=c["status"], verdict=c.get("verdict"), summary=c.get("summary", ""),
            receipt=c.get("receipt", {}), usage=c.get("usage", {}), extra=c.get("extra", {}),
        )
    ]  # fmt: skip
    if c.get("verdict") == "QUESTION" and case.run["status"] in _MAY_DISPATCH:
        finished.append(
            case.event(
                "Paused", kind="question", reason=c.get("summary", ""), step=case.run["position"],
                last_feedback=c["attempt"], recommendations=["answer"],
            )
        )  # fmt: skip
    return finished + _item_ends(case, c["attempt"], c.get("verdict") or "ERROR")


def lose_attempt(case: Case, c: Any) -> list[Any]:
    _require_open(case.run, c["attempt"])
    ran = c.get("ran", True)
    lost = case.event("AttemptLost", attempt=c["attempt"], reason=c["reason"], ran=ran)
    return [lost, *(_item_ends(case, c["attempt"], "LOST") if ran else [])]


def _item_ends(case: Case, attempt: str, result: str) -> list[Any]:
    """With the last word of its last seat an item ends, and takes along what depends on it where the step says so."""
    stay, found = case.run["stay"], case.run["attempts"][attempt]
    item = found["item"]
    if stay is None or case.pipeline is None or item is None or item not in stay["left"]:
        return []
    from tenuto.core.visits import item_word, seats_for, step_of

    step: Any = step_of(case.pipeline, stay["step"])
    seat = stay["seats"][found["extra"]["seat"]]
    after: Any = {**seat, "results": [*seat["results"], result], "open": None}
    word = item_word(step, case.run, {**stay, "seats": {**stay["seats"], found["extra"]["seat"]: after}}, item)
    if word is None:
        return []
    harmless = all(seat["weight"] == "never-blocks" for seat in seats_for(step, case.run["items"][item]))
    status = "completed" if word == "DONE" else "failed"
    events = [case.event("ItemChanged", item=item, status=status, files=[], harmless=harmless)]
    if status == "failed" and not harmless and step["waves"]["on_item_error"] == "skip-dependents":
        from tenuto.core.waves import skipped

        known: Any = [{"id": name, "depends_on": one["depends_on"]} for name, one in case.run["items"].items()]
        for name in skipped(known, [item]):
            if name in stay["left"]:
                events.append(case.event("ItemChanged", item=name, status="skipped", files=[], harmless=True))
    return events


def plan_items(case: Case, c: Any) -> list[Any]:
    return [case.event("ItemsPlanned", items=c["items"], waves=c.get("waves", []), groups=[], notes=[])]


def change_item(case: Case, c: Any) -> list[Any]:
    run, item = case.run, c["item"]
    if item not in run["items"]:
        known = ", ".join(run["items"]) or "none"
        raise Refused("no-such-item", f"run {run['id']} has no item {item!r}; it has: {known}", item=item)
    fresh = [path for path in c.get("files", []) if path not in run["items"][item]["files"]]
    if run["items"][item]["status"] == c["status"] and not fresh:
        return []
    return [case.event("ItemChanged", item=item, status=c["status"], files=fresh, harmless=False)]


def _require_open(run: Run, attempt: str) -> None:
    found = run["attempts"].get(attempt)
    if found is None:
        raise Refused(
            "no-such-attempt",
            f"run {run['id']} dispatched no attempt {attempt!r}",
            "dispatch it first",
            attempt=attempt,
        )
    if found["status"] not in ("dispatched", "running"):
        raise Refused(
            "attempt-ended", f"attempt {attempt} of run {run['id']} is {found['status']} already", attempt=attempt
        )


def over_budget(run: Run, wanted: Any, reserved: Any = None) -> str | None:
    """The first unit whose limit this would pass, with what is in flight counted at what was set aside for it."""
    budget = run["budget"]
    held = budget["reserved"] if reserved is None else reserved
    for unit, limit in budget["limits"].items():
        if limit is not None and budget["spent"].get(unit, 0) + held.get(unit, 0) + wanted.get(unit, 0) > limit:
            return str(unit)
    return None


def _refuse_over_budget(run: Run, wanted: Any) -> None:
    unit = over_budget(run, wanted)
    if unit is not None:
        limit = run["budget"]["limits"][unit]
        held = run["budget"]["spent"].get(unit, 0) + run["budget"]["reserved"].get(unit, 0)
        message = f"run {run['id']} may spend {limit} {unit}: {held} is spent or promised, {wanted.get(unit, 0)} more was asked for"
        raise Refused("over-budget", message, "raise the limit or stop here", unit=unit, limit=limit, held=held)


def _plain(name: str) -> str:
    return "".join(c for c in name.rpartition(":")[2].lower() if c.isalnum())


DECIDERS = {
    "DispatchAttempt": dispatch_attempt, "StartAttempt": start_attempt, "FinishAttempt": finish_attempt,
    "LoseAttempt": lose_attempt, "PlanItems": plan_items, "ChangeItem": change_item,
}  # fmt: skip
