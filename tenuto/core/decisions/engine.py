"""Engine-driven runs: a checked pipeline is bound, visits begin and end, plans become items.

Whatever todo() asks for is decided here; whoever asks for something else, or for the same thing twice, is refused.
"""

from __future__ import annotations

from tenuto.core.approvals import refuse_unapproved
from tenuto.core.budget import limits_of
from tenuto.core.decisions.attempts import in_flight
from tenuto.core.decisions.runs import ENDED
from tenuto.core.fold import running_visits
from tenuto.core.follow import follow, hop_to
from tenuto.core.outcome import outcome
from tenuto.core.visits import key_for, seats_for, step_of
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.decide import Case

_SUCCESS = ("DONE", "NEEDS_REVISION", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "LOW_COVERAGE")


def engage(case: Case, c: Any) -> list[Any]:
    run, pipeline = case.run, _pipeline(case)
    _refuse_engaging(run, pipeline)
    refuse_switches(pipeline, {name: on for name, on in c.get("switches", {}).items() if name not in run["switches"]})
    switches = {**pipeline["switches"], **c.get("switches", {})}
    order = [step["id"] for step in pipeline["steps"] if not step["aside"]]
    first = c.get("start_at") or first_open(run, pipeline, switches)
    if first not in [step["id"] for step in pipeline["steps"]]:
        raise Refused(
            "no-such-step", f"pipeline {pipeline['name']} has no step {first!r}; it has: {', '.join(order)}", step=first
        )
    if c.get("start_at"):
        refuse_unapproved(pipeline, switches, first, c.get("approved", ()))
    ahead = [] if c.get("start_at") else run["queue"]
    queue = ahead if ahead and c["pipeline"]["name"] == run["pipeline"]["name"] else [hop_to(first)]
    driver = c.get("driver", "engine")
    events = [case.event("Engaged", pipeline=c["pipeline"], driver=driver, switches=switches, queue=queue)]
    settled = {key: value for key, value in c.get("settings", {}).items() if key not in run["settings"]}
    if settled:
        events.append(case.event("SettingsChanged", changes=settled))
    limits, of_steps = limits_of(pipeline)
    budget = run["budget"]
    fresh = {unit: limit for unit, limit in limits.items() if unit not in budget["limits"]}
    steps = {
        step: own for step, own in of_steps.items() if step not in budget["steps"] or not budget["steps"][step]["limits"]
    }
    return [*events, case.event("BudgetChanged", limits=fresh, steps=steps)] if fresh or steps else events


def refuse_switches(pipeline: Any, asked: Any) -> None:
    """A switch that switches nothing is a mistake: whoever asks for approval must not be let through without a gate."""
    for name, on in asked.items():
        if name not in pipeline["switches"]:
            known = ", ".join(pipeline["switches"])
            raise Refused("no-such-switch", f"pipeline {pipeline['name']} has no switch {name!r}; it has: {known}", switch=name)
        if name == "approval" and on and not any(step["kind"] == "gate" for step in pipeline["steps"]):
            raise Refused("no-gates", f"pipeline {pipeline['name']} has no gate where you could approve anything", "add one: docs/howto/add-a-gate.md")


def _refuse_engaging(run: Any, pipeline: Any) -> None:
    if run["stay"] is not None or in_flight(run) or (run["order"] == "any" and running_visits(run)):
        names = ", ".join(visit["step"] for visit in running_visits(run))
        raise Refused("visit-open", f"run {run['id']} is in the middle of a step: {names}", "let it end first")
    resting = run["pause"]["resting"] if run["pause"] else run["status"]
    if pipeline["starts_from"] == "poc-complete" and resting != "poc-complete":
        message = f"pipeline {pipeline['name']} goes on from a finished proof of concept; run {run['id']} is {run['status']}"
        raise Refused("not-poc-complete", message, "tenuto run --pipeline poc", status=run["status"])
    if run["status"] in (*ENDED, "waiting_gate"):
        hint = "decide the gate first" if run["status"] == "waiting_gate" else "start a new run, or fork it"
        raise Refused("run-ended", f"run {run['id']} is {run['status']}", hint, status=run["status"])


def first_open(run: Any, pipeline: Any, switches: Any) -> str:
    """Where an engine begins in a run that somebody else led so far: the first step that is not done.

    What came of a step holds for what was there: after later work on a step before it, it is to be done again.
    """
    ended = {visit["step"]: visit["ended_at"] or "" for visit in run["visits"] if visit["status"] == "success"}
    before, last = "", ""
    for step in pipeline["steps"]:
        if not step["aside"]:
            last = str(step["id"])
            if not _is_done(run, step, ended.get(last, ""), before, switches, pipeline["name"]):
                return last
        before = max(before, ended.get(step["id"], ""))
    return last


def _is_done(run: Any, step: Any, ended: str, before: str, switches: Any, follows: str) -> bool:
    """`before`: when the work on the steps before it ended. `follows`: the pipeline that is to be followed. A gate that is on was never
    skipped: another pipeline, or a switch, left it out."""
    state = run["steps"].get(step["id"])
    on = step["kind"] == "gate" and (step["when"] == "always" or switches.get(step["when"]))
    if on and run["pipeline"]["hash"] and run["pipeline"]["name"] != follows:
        return False  # what another pipeline asked for was another gate
    if state and state["status"] == "skipped":
        return not on
    if state and state["status"] == "completed" and ended >= before:
        return True
    if step["kind"] != "gate":
        from tenuto.core.by_hand import covered

        return covered(run, step, before)
    words = [decision for decision in run["decisions"] if decision["name"] == step["gate"]["name"]]
    return bool(words) and words[-1]["approved"] and words[-1]["at"] >= before


def begin_visit(case: Case, c: Any) -> list[Any]:
    run, pipeline = case.run, _pipeline(case)
    _require(case, "begin")
    hop = run["queue"][0]
    step = step_of(pipeline, hop["step"])
    if step["when"] != "always" and not run["switches"].get(step["when"]):
        skipped = case.event("StepSkipped", step=step["id"], reason=f"{step['when']} is off")
        behind: Any = {**run, "queue": run["queue"][1:]}
        beyond = follow(
            type(case)(pipeline, case.repo, behind, case.command), step, {"name": "DONE", "because": [], "reason": ""}
        )
        return [skipped, *beyond]
    visits = 1 + (sum(1 for visit in run["visits"] if visit["step"] == step["id"]) if step["id"] in run["steps"] else 0)
    return [case.event("StepStarted", step=step["id"], item=None, iteration=visits, hop=hop)]


def record_action(case: Case, c: Any) -> list[Any]:
    _pipeline(case)
    if not any(action["act"] == "do" and action["as"] == c["action"] for action in case.asked()):
        raise Refused("not-asked", f"run {case.run['id']} does not ask for {c['action']} now")
    return [case.event("ActionDone", action=c["action"], detail=c.get("detail", {}))]


def plan_visit(case: Case, c: Any) -> list[Any]:
    from tenuto.core.waves import arrange

    run, pipeline = case.run, _pipeline(case)
    _require(case, "plan")
    stay: Any = run["stay"]
    step: Any = step_of(pipeline, stay["step"])
    waves, items = step["waves"], c["items"]
    problem = c.get("problem", "") or impossible(waves, items, run["switches"])
    if problem:
        return _end(case, step, {"name": "NEEDS_REVISION", "because": [], "reason": problem})
    arrangement = arrange(items)
    notes = _plan_notes(waves, items, arrangement)
    which = stay["hop"].get("items") or "due"
    kept = _made(pipeline, run, step, items, which)
    done = [item["id"] for item in items if kept and all(key_for(seat, item["id"]) in kept for seat in seats_for(step, item))]
    chosen = [name for name in _choose(run, items, which, c.get("findings", [])) if name not in done]
    ordered = [[name for name in wave if name in chosen] for wave in arrangement["waves"]]
    groups = _groups(waves, items, ordered, min(pipeline["cap"], waves["at_once"] or pipeline["cap"]))
    planned = {item["id"]: _item(item, run) | ({"status": "completed"} if item["id"] in done else {}) for item in items}
    return [
        case.event(
            "ItemsPlanned", items=planned, waves=arrangement["waves"], groups=groups, notes=notes,
            made=[key for key in kept if key.partition("@")[2] in chosen],
        )
    ]  # fmt: skip


def _made(pipeline: Any, run: Any, step: Any, items: Any, which: str) -> list[str]:
    """Seats of items that need not be taken any more: by hand, or in a stay that was left in the middle."""
    from tenuto.core.by_hand import made
    from tenuto.core.selection import has_changed

    before = {name: one["extra"] for name, one in run["items"].items() if "id" in one["extra"]}
    same = [item["id"] for item in items if item["id"] in before and not has_changed(before[item["id"]], item)]
    left = [key for key in run["stay"]["seats"] if key.partition("@")[2] in same]
    return [*left, *made(pipeline, run, step, items)] if which == "due" else left


def impossible(waves: Any, items: Any, switches: Any) -> str:
    """Why these items cannot be carried out in this step; "" where they can."""
    from tenuto.core.waves import PlanRefused, arrange

    if waves["max_items"] and len(items) > waves["max_items"]:
        return f"the plan has {len(items)} items; at most {waves['max_items']} are allowed"
    try:
        arrange(items)
    except PlanRefused as refusal:
        return refusal.message
    strict = waves["strict"] if isinstance(waves["strict"], bool) else switches.get(waves["strict"])
    return "; ".join(_beyond_limits(waves, items)) if strict else ""


def _beyond_limits(waves: Any, items: Any) -> list[str]:
    """What `strict` makes of a warning a reason to send the plan back; moved items and unknown agents have a remedy, and stay warnings."""
    from tenuto.core.selection import passed_limits

    return [note for item in items for note in passed_limits(item, waves["limits"])]


def _choose(run: Any, items: Any, which: str, findings: Any) -> list[str]:
    """The items of this stay, as the hop says: due, failing, affected, all."""
    from tenuto.core.selection import affected, due

    found = affected(items, findings)
    named = found["items"] if len(found["unmatched"]) < len(findings) else []  # a finding that names nobody names nobody as failing
    if which == "all" or (which == "affected" and not named):
        return [item["id"] for item in items]
    if which == "affected":
        return named
    before: Any = [one["extra"] for one in run["items"].values() if "id" in one["extra"]]
    done = [name for name, one in run["items"].items() if one["status"] == "completed"]
    return due(items, before, done=done, failing=named if which == "failing" else ())


def _groups(waves: Any, items: Any, ordered: list[list[str]], cap: int) -> list[list[str]]:
    """Sub-waves under the barrier; one group, the longest chains first, when rolling."""
    from tenuto.core.waves import chain_lengths, partition

    if waves["order"] == "rolling":
        chains = chain_lengths(items)
        ready = sorted((name for wave in ordered for name in wave), key=lambda name: -chains[name])
        return [ready] if ready else []
    return [group for wave in ordered for group in partition(wave, cap)]


def _plan_notes(waves: Any, items: Any, arrangement: Any) -> list[str]:
    """What a reader of the plan should know: items that were moved, agents nobody knows, limits that were passed."""
    from tenuto.core.selection import agent_for

    notes = [
        f"item {move['item']} moved from wave {move['from_wave']} to {move['to_wave']}: it waits for {', '.join(move['because'])}"
        for move in arrangement["moves"]
    ]
    seats = [seat["id"] for seat in waves["seats"]]
    if waves["per_item"] == "named":
        notes += [agent_for(item, seats, waves["default"])[1] for item in items]
    return [note for note in [*notes, *_beyond_limits(waves, items)] if note]


def conclude(case: Case, c: Any) -> list[Any]:
    pipeline = _pipeline(case)
    stay: Any = case.run["stay"]
    _require(case, "conclude")
    step = step_of(pipeline, stay["step"])
    told = outcome(pipeline, case.run)
    if told["name"] == "DONE" and step["kind"] == "gate" and c.get("changed"):
        return _void(case, step, c["changed"])
    if told["name"] == "DONE":
        for action in step["after"]:
            if f"after:{action}" not in stay["did"]:
                raise Refused("not-asked", f"{action} comes before the end of {step['id']}")
    return _end(case, step, told)


def _void(case: Case, step: Any, changed: list[str]) -> list[Any]:
    """What was approved is not what is there: the gate is asked once more, for what is there now."""
    reason = f"what was approved has changed since: {', '.join(changed)}"
    ended = case.event(
        "StepEnded", step=step["id"], item=None, status="failed", verdict="ERROR", summary=reason, because=[],
    )  # fmt: skip
    queue = [hop_to(step["id"]), *case.run["queue"]]
    return [ended, case.event("RouteTaken", route="", queue=queue, resets=[], carry={}, reason=reason)]


def retry_step(case: Case, c: Any) -> list[Any]:
    run, pipeline = case.run, _pipeline(case)
    rests = run["status"] in ("paused", "stopped", "parked", "blocked", "failed")
    if run["status"] in ("completed", "cancelled", "graduated", "waiting_gate"):
        hint = "decide the gate: revise sends the work back" if run["status"] == "waiting_gate" else "fork it instead"
        raise Refused("run-ended", f"run {run['id']} is {run['status']}", hint, status=run["status"])
    if in_flight(run) or (run["stay"] is not None and not rests):
        raise Refused(
            "visit-open", f"run {run['id']} is in the middle of {run['position']!r}", "pause it, and let that end"
        )
    if c["step"] not in [step["id"] for step in pipeline["steps"]]:
        raise Refused("no-such-step", f"pipeline {pipeline['name']} has no step {c['step']!r}", step=c["step"])
    refuse_unapproved(pipeline, run["switches"], c["step"], c.get("approved", ()))
    queue = [hop_to(c["step"])]
    events = [case.event("RouteTaken", route="", queue=queue, resets=[], carry={}, reason="a person asked for it again")]
    if run["stay"] is not None:
        told: dict[str, Any] = {"step": run["stay"]["step"], "item": None, "status": "failed", "verdict": "ERROR", "because": []}
        events.insert(0, case.event("StepEnded", **told, summary=f"left in the middle: a person asked for {c['step']}"))
    if run["status"] in ("paused", "stopped", "parked"):
        events.append(case.event("Resumed", decision="retry"))
    elif run["status"] in ("blocked", "failed"):
        events.append(case.event("Unblocked", stage=None))
    return events


def fork(case: Case, c: Any) -> list[Any]:
    """The steps before it are not done again. Those that only a route leads to, and those behind, are as in any new run.
    A gate before it must stand approved in the source: its approval is carried over, and named in the event."""
    run, pipeline = case.run, _pipeline(case)
    if run["attempts"] or run["visits"]:
        raise Refused("run-begun", f"run {run['id']} has begun; only a new one can be a fork", "tenuto fork RUN --at STEP")
    order = [step["id"] for step in pipeline["steps"]]
    if c["at_step"] not in order:
        message = f"pipeline {pipeline['name']} has no step {c['at_step']!r}; it has: {', '.join(order)}"
        raise Refused("no-such-step", message, step=c["at_step"])
    passed = refuse_unapproved(pipeline, run["switches"], c["at_step"], c["approved"])
    before = [step["id"] for step in pipeline["steps"][: order.index(c["at_step"])] if not step["aside"]]
    told = {"source": c["source"], "at_step": c["at_step"], "at_version": c["at_version"], "approved": passed}
    forked = case.event("Forked", **told)
    reason = f"carried over from {c['source']}"
    return [forked, *(case.event("StepSkipped", step=step, reason=reason) for step in before)]


def _end(case: Case, step: Any, told: Any) -> list[Any]:
    """The visit ends with this outcome, and what follows it follows."""
    success = told["name"] in _SUCCESS
    ended = case.event(
        "StepEnded", step=step["id"], item=None, status="success" if success else "failed", verdict=told["name"],
        summary=told["reason"], because=told["because"],
    )  # fmt: skip
    cleaned = (
        [case.event("MemoryCleaned")]
        if told["name"] == "DONE" and case.run["stay"] and case.run["stay"]["hop"].get("revises")
        else []
    )
    beyond = follow(case, step, told)
    return [*_reviewed(case, step, told, beyond), ended, *cleaned, *beyond]


def _reviewed(case: Case, step: Any, told: Any, beyond: list[Any]) -> list[Any]:
    """A review's answer and what it led to, recorded as for a run that is led by hand."""
    stay = case.run["stay"]
    if step["rule"] != "review" or stay is None:
        return []
    tried = next((state for state in stay["seats"].values() if state["results"]), None)
    taken = next((event["route"] for event in beyond if event["type"] == "RouteTaken" and event["route"]), "")
    way = taken.partition(".")[0] if taken.startswith("restart.") else taken.rpartition(".")[2]
    changes = {
        "approved": told["name"] == "DONE", "visit": stay["visit"], "answer": tried["answer"] if tried else None,
        "reason": told["reason"], "sha256": "", "next": "blocked" if any(e["type"] == "Blocked" for e in beyond) else way,
        "dispatch_retries": sum(1 for result in tried["results"] if result in ("ERROR", "LOST")) if tried else 0,
    }  # fmt: skip
    if way == "fix":
        changes["fix_attempts"] = case.run["reviews"].get(step["id"], {}).get("fix_attempts", 0) + 1
    return [case.event("ReviewRecorded", step=step["id"], changes=changes)]


def _item(item: Any, run: Any) -> Any:
    known = run["items"].get(item["id"])
    return {
        "title": item["title"], "files": item["files"], "depends_on": item["depends_on"], "agent": item["agent"] or "",
        "status": known["status"] if known else "pending", "extra": item,
    }  # fmt: skip


def _pipeline(case: Case) -> Any:
    if case.pipeline is None:
        raise Refused(
            "no-pipeline",
            f"run {case.run['id']} is driven by hand; no pipeline is bound to it",
            "tenuto run --pipeline NAME",
        )
    return case.pipeline


def _require(case: Case, act: str) -> None:
    if not any(action["act"] == act for action in case.asked()):
        raise Refused("not-asked", f"run {case.run['id']} does not ask for {act!r} now", "ask again what is to be done")


DECIDERS = {
    "Engage": engage, "BeginVisit": begin_visit, "RecordAction": record_action, "PlanVisit": plan_visit,
    "Conclude": conclude, "RetryStep": retry_step, "Fork": fork,
}  # fmt: skip
