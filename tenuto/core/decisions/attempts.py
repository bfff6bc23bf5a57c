"""Attempts and items: what agents are asked to do, and what came of it.

Dispatched, then started, then exactly one end: finished or lost. Never more in flight than
the cap, never more promised than the budget has left: what is in flight counts with what
was set aside for it. The one who keeps the state is not an agent, whatever its spelling.
"""

from __future__ import annotations

from tenuto.core.decisions import new_event
from tenuto.core.status import ACTIVE, ANSWERS
from tenuto.core.times import between
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict

    from tenuto.core.decide import Case
    from tenuto.core.items import Dependent
    from tenuto.core.pipeline.records import Seat
    from tenuto.core.records import commands
    from tenuto.core.records.action import Dispatch
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Amounts, Json, Run, SeatState, StepStatus

_STATE_KEEPERS = ("contextmanager", "statekeeper", "flowstate", "statemgr")


def in_flight(run: Run) -> list[str]:
    return list(run["in_flight"])


def dispatch_attempt(case: Case, c: commands.DispatchAttempt) -> list[Event]:
    run, attempt = case.run, c["attempt"]
    if _keeps_state(c["role"]):
        raise Refused(
            "not-an-agent",
            f"{c['role']!r} keeps the state; it is not recorded as an agent",
            "record the agent that does the work",
            role=c["role"],
        )
    if run["status"] not in ACTIVE:
        raise Refused(
            "not-running",
            f"cannot dispatch {c['role']} in run {run['id']}: it is {run['status']}",
            f"tenuto status {run['id']}",
            status=run["status"],
        )
    if attempt in run["attempts"]:
        raise Refused("attempt-exists", f"attempt {attempt} was dispatched before", attempt=attempt)
    cap = case.pipeline["cap"] if case.pipeline is not None else None
    if cap is not None and len(in_flight(run)) >= cap:
        raise Refused(
            "cap-reached",
            f"{cap} attempts of run {run['id']} are in flight, and {cap} is the cap",
            "wait for one to end",
            cap=cap,
        )
    reserved, step = c.get("reserved", {}), c.get("step") or run["position"] or ""
    follows = c.get("extra", {}).get("follows", "")
    if run["current_visit"] is not None and case.pipeline is not None:
        action = _action(case, _asked(case), c)
        reserved, follows = action["reserved"], action["follows"]
    if run["budget"]["limits"] or run["budget"]["steps"]:
        _refuse_over_budget(case, step, reserved)
    return [_dispatched(case, c, step, reserved, follows)]


def _dispatched(
    case: Case, c: commands.DispatchAttempt | commands.Dispatched, step: str, reserved: Amounts, follows: str
) -> Event:
    """`follows`: the attempt before it whose work was not finished; an agent that can goes on with it."""
    extra = c.get("extra", {})
    return new_event.attempt_dispatched(
        case.command,
        attempt=c["attempt"],
        step=step,
        role=c["role"],
        agent=c.get("agent", ""),
        task=c.get("task", ""),
        item=c.get("item"),
        iteration=c.get("iteration", 1),
        number=c.get("number", 1),
        summary=c.get("summary", ""),
        reserved=reserved,
        extra={**extra, "follows": follows} if follows else extra,
    )


def dispatch_attempts(case: Case, c: commands.DispatchAttempts) -> list[Event]:
    """Several at once, of those that todo() asks for: together they fit the cap and the budget."""
    asked = _asked(case)
    actions = [_action(case, asked, one) for one in c["attempts"]]
    return [
        _dispatched(case, one, action["step"], action["reserved"], action["follows"])
        for one, action in zip(c["attempts"], actions, strict=True)
    ]


def _asked(case: Case) -> dict[str, Dispatch]:
    return {action["attempt"]: action for action in case.asked() if action["act"] == "dispatch"}


def _action(case: Case, asked: dict[str, Dispatch], one: commands.DispatchAttempt | commands.Dispatched) -> Dispatch:
    """An engine-driven run starts what todo() asks for, and nothing else: two drivers cannot start it twice."""
    if one["attempt"] not in asked:
        message = f"run {case.run['id']} does not ask for attempt {one['attempt']} now"
        raise Refused("not-asked", message, "ask again what is to be done")
    return asked[one["attempt"]]


def start_attempt(case: Case, c: commands.StartAttempt) -> list[Event]:
    _require_open(case.run, c["attempt"])
    return [new_event.attempt_started(case.command, attempt=c["attempt"], extra=c.get("extra", {}))]


def finish_attempt(case: Case, c: commands.FinishAttempt) -> list[Event]:
    _require_open(case.run, c["attempt"])
    if c.get("verdict") == "QUESTION" and not _may_ask(case, c["attempt"]):
        c = {
            **c,
            "said": c.get("said") or {"verdict": "QUESTION", "summary": c.get("summary", "")},
            "status": "failed",
            "verdict": "ERROR",
            "summary": f"it asked a person, which it may not: {c.get('summary', '')}",
        }
    c = _with_result(case, c)
    # What is not reported is charged as it was set aside: a limit never waits for an agent's word.
    usage = {**case.run["attempts"][c["attempt"]]["reserved"], **c.get("usage", {})}
    finished: list[Event] = [
        new_event.attempt_finished(
            case.command,
            attempt=c["attempt"],
            status=c["status"],
            verdict=c.get("verdict"),
            summary=c.get("summary", ""),
            said=c.get("said") or {"verdict": c.get("verdict"), "summary": c.get("summary", "")},
            found={"verdict": c.get("verdict"), "problem": c.get("receipt", {}).get("problem", "")},
            receipt=c.get("receipt", {}),
            usage=usage,
            extra={**_with_time(c), **_lasted(case.run, c)},
        )
    ]
    if c.get("verdict") == "QUESTION" and case.run["status"] in ACTIVE:
        finished.append(
            new_event.paused(
                case.command,
                kind="question",
                reason=c.get("summary", ""),
                step=case.run["position"],
                feedback="",
                question_of=c["attempt"],
                recommendations=["answer"],
            )
        )
    if c.get("verdict") == "PARKED":
        return finished if c.get("others") else finished + _parked(case, c)
    return finished + _item_ends(case, c["attempt"], c.get("verdict") or "ERROR")


def _may_ask(case: Case, attempt: str) -> bool:
    """As often as its place in the pipeline says; whoever leads a run by hand hears every question."""
    seat, state = _place(case, attempt)
    return seat is None or state is None or state["results"].count("QUESTION") < seat["questions"]


def _with_result(case: Case, c: commands.FinishAttempt) -> commands.FinishAttempt:
    """Whoever drives the run: what counts has the result that its place in the pipeline asks for."""
    seat, _ = _place(case, c["attempt"])
    if seat is None or seat["result"] is None or c.get("verdict") not in ANSWERS:
        return c
    from tenuto.core.pipeline.results import problems

    receipt = c.get("receipt", {})
    found = problems(seat["result"], receipt["result"]) if "result" in receipt else ["it hands in no result"]
    if not found:
        return c
    problem = f"its result does not fit: {'; '.join(found)}" if "result" in receipt else found[0]
    return {
        **c,
        "said": c.get("said") or {"verdict": c.get("verdict"), "summary": c.get("summary", "")},
        "status": "failed",
        "verdict": "ERROR",
        "summary": f"claimed {c.get('verdict')}, but {problem}",
        "receipt": {**receipt, "problem": problem},
    }


def _place(case: Case, attempt: str) -> tuple[Seat | None, SeatState | None]:
    """Its place in the current visit; none where a person leads the run, or where it is another visit's."""
    current_visit, key = case.run["current_visit"], case.run["attempts"][attempt]["extra"].get("seat")
    if current_visit is None or case.pipeline is None or key not in current_visit["seats"]:
        return None, None
    from tenuto.core.visit import seat_at, step_of

    return seat_at(step_of(case.pipeline, current_visit["step"]), current_visit, key), current_visit["seats"][key]


def _with_time(c: commands.FinishAttempt) -> Json:
    """Until when this agent may not work: budget.parked_agents finds it here."""
    until, extra = c.get("parked_until"), c.get("extra", {})
    return {**extra, "parked_until": until} if until and c.get("verdict") == "PARKED" else extra


def _lasted(run: Run, c: commands.FinishAttempt) -> Json:
    """A clock that was set back meanwhile would give the run's time back: then what the supervisor measured counts."""
    took = c.get("receipt", {}).get("duration_ms")
    return {"lasted_ms": took} if type(took) is int and took > between(run["budget"]["busy_since"], c["at"]) else {}


def _parked(case: Case, c: commands.FinishAttempt) -> list[Event]:
    """The run waits until the stated time; of several times, until the last of them."""
    from tenuto.core.decisions.runs import too_early

    until, run = c.get("parked_until"), case.run
    if not until or run["status"] not in (*ACTIVE, "parked"):
        return []
    if run["status"] == "parked" and run["pause"] and not too_early(until, run["pause"]["until"]):
        return []
    return [new_event.parked(case.command, until=until, reason=c.get("summary", ""))]


def lose_attempt(case: Case, c: commands.LoseAttempt) -> list[Event]:
    _require_open(case.run, c["attempt"])
    ran = c.get("ran", True)
    lost = new_event.attempt_lost(case.command, attempt=c["attempt"], reason=c["reason"], ran=ran)
    return [lost, *(_item_ends(case, c["attempt"], "LOST") if ran else [])]


def _item_ends(case: Case, attempt: str, result: str) -> list[Event]:
    """With the last word of its last seat an item ends, and takes along what depends on it where the step says so."""
    current_visit, found = case.run["current_visit"], case.run["attempts"][attempt]
    item = found["item"]
    if current_visit is None or case.pipeline is None or item is None or item not in current_visit["left"]:
        return []
    from tenuto.core.visit import item_word, seats_for, step_of

    step = step_of(case.pipeline, current_visit["step"])
    if step["kind"] != "waves":
        return []
    seat = current_visit["seats"][found["extra"]["seat"]]
    after: SeatState = {**seat, "results": [*seat["results"], result], "open": None}
    word = item_word(step, case.run, current_visit, item, (found["extra"]["seat"], after))
    if word is None:
        return []
    harmless = all(seat["weight"] == "never-blocks" for seat in seats_for(step, case.run["items"][item]))
    status: StepStatus = "completed" if word == "DONE" else "failed"
    events: list[Event] = [new_event.item_changed(case.command, item=item, status=status, files=[], harmless=harmless)]
    if status == "failed" and not harmless and step["waves"]["on_item_error"] == "skip-dependents":
        from tenuto.core.items import skipped

        known: list[Dependent] = [
            {"id": name, "depends_on": one["depends_on"]} for name, one in case.run["items"].items()
        ]
        for name in skipped(known, [item]):
            if name in current_visit["left"]:
                events.append(
                    new_event.item_changed(case.command, item=name, status="skipped", files=[], harmless=True)
                )
    return events


def plan_items(case: Case, c: commands.PlanItems) -> list[Event]:
    return [new_event.items_planned(case.command, items=c["items"], waves=c.get("waves", []), groups=[], notes=[])]


def change_item(case: Case, c: commands.ChangeItem) -> list[Event]:
    run, item = case.run, c["item"]
    if item not in run["items"]:
        known = ", ".join(run["items"]) or "none"
        raise Refused("no-such-item", f"run {run['id']} has no item {item!r}; it has: {known}", item=item)
    fresh = [path for path in c.get("files", []) if path not in run["items"][item]["files"]]
    if run["items"][item]["status"] == c["status"] and not fresh:
        return []
    return [new_event.item_changed(case.command, item=item, status=c["status"], files=fresh, harmless=False)]


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


def _refuse_over_budget(case: Case, step: str, wanted: Amounts) -> None:
    from tenuto.core.budget import in_words, shortage

    short = shortage(case.run, step, wanted)
    if short is not None:
        raise Refused(
            "over-budget", f"run {case.run['id']}: {in_words(short)}", "raise the limit or stop here", **short
        )


def _keeps_state(role: str) -> bool:
    """The state manager, whatever its spelling: State Manager, orchestrator-state-manager,
    plugin:state_manager_agent."""
    if not role.isascii():
        from unicodedata import normalize

        # Letters of other alphabets that look like those of the name.
        alike = str.maketrans("\u0455\u0442\u03c4\u0430\u03b1\u0435\u03b5\u043c\u0578\u0261\u0433", "sttaaeemngr")
        role = normalize("NFKC", role).lower().translate(alike)
    plain = "".join(c for c in role.rpartition(":")[2].lower() if c.isalnum())
    return "statemanager" in plain or plain in _STATE_KEEPERS


if TYPE_CHECKING:

    class Deciders(TypedDict):
        DispatchAttempt: Callable[[Case, commands.DispatchAttempt], list[Event]]
        DispatchAttempts: Callable[[Case, commands.DispatchAttempts], list[Event]]
        StartAttempt: Callable[[Case, commands.StartAttempt], list[Event]]
        FinishAttempt: Callable[[Case, commands.FinishAttempt], list[Event]]
        LoseAttempt: Callable[[Case, commands.LoseAttempt], list[Event]]
        PlanItems: Callable[[Case, commands.PlanItems], list[Event]]
        ChangeItem: Callable[[Case, commands.ChangeItem], list[Event]]


DECIDERS: Deciders = {
    "DispatchAttempt": dispatch_attempt,
    "DispatchAttempts": dispatch_attempts,
    "StartAttempt": start_attempt,
    "FinishAttempt": finish_attempt,
    "LoseAttempt": lose_attempt,
    "PlanItems": plan_items,
    "ChangeItem": change_item,
}
