"""What follows an outcome: the next hop, a way back, a pause, an end.

    follow(case, step, outcome) -> events

The rules are in pipeline_records.py (rule 2), told by the pipeline's `on` tables; here they are carried out.
Counters are per run and route and are never reset, also when the same step is reached another way; only a
stage restart resets the counters it lists. A run leaves a stage only with the stage's evidence recorded.

No run fails because its machine did: where the table would end it, and an agent had no try left only because attempts of it
were lost, the run pauses. Whoever resumes it has those agents tried again; what the others delivered stays.
"""

from __future__ import annotations

from tenuto.core.pipeline import documents_of, stage_gates
from tenuto.core.visits import lost_its_tries, members_of, seat_at, step_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.decide import Case


def hop_to(step: str) -> Any:
    return {"step": step, "mode": "", "only": [], "items": ""}


def follow(case: Case, step: Any, outcome: Any) -> list[Any]:
    rule = step["on"].get(outcome["name"]) or step["on"].get("ERROR") or {"do": "fail", "reason": ""}
    while rule["do"] == "route":
        if rule["because"] and rule["because"] not in outcome["because"]:
            rule = rule["otherwise"] or rule["then"] or {"do": "fail", "reason": ""}
        elif rule["at_most"] is not None and case.run["routes"].get(rule["counter"], 0) >= rule["at_most"]:
            rule = rule["then"]
        else:
            return _route(case, step, outcome, rule)
    match rule["do"]:
        case "go_on":
            return _go_on(case, step, outcome, rule)
        case "pause":
            return [_again(case, step, outcome), _paused(case, step, outcome, rule)]
        case "block":
            blocked = case.event("Blocked", reason=rule["reason"], stage=step["stage"] or None, missing=[])
            return [_again(case, step, outcome), blocked]
        case "finish":
            return _leave(case, step, None) or [case.event("Finished", outcome=rule["as"])]
        case _:
            lost = _lost(case, step, outcome)
            if lost:
                return _interrupted(case, step, lost)
            return [case.event("Failed", step=step["id"], error=_said(case, step, outcome, rule["reason"]), context=None)]


def _route(case: Case, step: Any, outcome: Any, rule: Any) -> list[Any]:
    run = case.run
    hops: list[Any] = [dict(hop) for hop in rule["route"]]
    said = run["decisions"][-1]["feedback"] if step["kind"] == "gate" and run["decisions"] else ""
    for hop in hops[:-1] or hops:
        hop["findings"] = _paths(case, step, rule["with"])
        if said:
            hop["feedback"] = said
    for hop in hops:
        aggregate: Any = step_of(case.pipeline, hop["step"]).get("aggregate")
        if hop["only"] and aggregate:
            hop["again"] = [*hop["only"], aggregate["id"]]
    if len(hops) > 1:
        hops[0]["revises"] = True
    events = []
    if rule["restart"]:
        count = sum(1 for restart in run["restarts"] if restart["stage"] == rule["restart"]) + 1
        reason = f"{step['id']}: {outcome['reason'] or outcome['name']} (restart {count})"
        events.append(case.event("StageRestarted", stage=rule["restart"], reason=reason, to=hops[0]["step"]))
    if case.pipeline["memory"] == "run":
        numbers = [step_of(case.pipeline, name)["number"] for name in dict.fromkeys(hop["step"] for hop in hops)]
        events.append(case.event("MemoryInvalidated", steps=numbers, reason=f"{step['id']} asks for a revision"))
    taken = case.event(
        "RouteTaken", route=rule["counter"], queue=[*hops, *run["queue"]], resets=rule["resets"], carry={},
        reason=outcome["reason"] or outcome["name"],
    )  # fmt: skip
    return [taken, *events]


def _go_on(case: Case, step: Any, outcome: Any, rule: Any) -> list[Any]:
    queue = case.run["queue"]
    if outcome["name"] == "DONE" and queue:
        waiting = queue  # a hop that is done leads to the next hop
    elif not queue:
        waiting = [hop_to(rule["to"])]
    else:
        order = [one["id"] for one in case.pipeline["steps"]]
        behind = [hop for hop in queue if order.index(hop["step"]) >= order.index(rule["to"])]
        ahead = behind and behind[0]["step"] == rule["to"]
        waiting = behind if ahead else [hop_to(rule["to"]), *behind]
    stuck = _leave(case, step, waiting[0]["step"])
    if stuck:
        return stuck
    carry = {rule["to"]: {"name": rule["carry"], "paths": _paths(case, step, [])}} if rule["carry"] else {}
    return [case.event("RouteTaken", route="", queue=waiting, resets=[], carry=carry, reason=outcome["name"])]


def _leave(case: Case, step: Any, ahead: str | None) -> list[Any]:
    """Blocked, where the stage that is left has not recorded its evidence."""
    if not step["stage"]:
        return []
    following = step_of(case.pipeline, ahead)["stage"] if ahead else "COMPLETE"
    if step["stage"] == following:
        return []
    stages = [one["stage"] for one in case.pipeline["steps"]]
    if ahead and following in stages and stages.index(following) < stages.index(step["stage"]):
        return []  # a way back needs no proof
    for gate in stage_gates(case.pipeline, case.run["switches"]):
        if gate["stage"] == step["stage"]:
            recorded = [artifact["path"] for artifact in case.run["artifacts"].values()]
            folder = documents_of(case.pipeline, case.run)
            missing = [name for name in gate["required"] if f"{folder}/{name}" not in recorded]
            if missing:
                blocked = case.event(
                    "Blocked", reason=f"{gate['stage']}->{gate['next']}", stage=step["stage"], missing=missing
                )
                return [_again(case, step, {"name": "ERROR"}), blocked]
    return []


def _lost(case: Case, step: Any, outcome: Any) -> list[str]:
    """The agents that the outcome is about and that had too few tries, because some of these were lost."""
    stay = case.run["stay"]
    if stay is None or step["kind"] not in ("agent", "cluster", "waves"):
        return []
    named = [key for key in stay["seats"] if key in outcome["because"] or key.partition("@")[2] in outcome["because"]]
    return [key for key in named if lost_its_tries(seat_at(step, stay, key), stay["seats"][key])]


def _interrupted(case: Case, step: Any, lost: list[str]) -> list[Any]:
    """The same hop again, in the same mode. An aggregator draws its conclusion anew; items that are done are known as such."""
    run, aggregate = case.run, (step.get("aggregate") or {"id": ""})["id"]
    stay: Any = run["stay"]
    kept = {key: state for key, state in stay["seats"].items() if key != aggregate and state["results"][-1:] in (["DONE"], ["NEEDS_REVISION"])}
    hop = {**stay["hop"], "kept": {key: state for key, state in kept.items() if "@" not in key}}
    again = case.event("RouteTaken", route="", queue=[hop, *run["queue"]], resets=[], carry={}, reason="LOST")
    who = ", ".join(key.replace("@", " for ") for key in lost)
    paused = case.event(
        "Paused", kind="outcome", reason=f"{step['id']}: interrupted too often, and nobody knows what came of it: {who}", step=step["id"],
        last_feedback="", recommendations=[f"tenuto resume {run['id']}", f"tenuto cancel {run['id']}"],
    )  # fmt: skip
    return [again, paused]


def _again(case: Case, step: Any, outcome: Any) -> Any:
    """Whoever lets the run go on lets it try this step again."""
    return case.event(
        "RouteTaken",
        route="",
        queue=[hop_to(step["id"]), *case.run["queue"]],
        resets=[],
        carry={},
        reason=outcome["name"],
    )


def _paused(case: Case, step: Any, outcome: Any, rule: Any) -> Any:
    return case.event(
        "Paused", kind="outcome", reason=_said(case, step, outcome, rule["reason"]), step=step["id"],
        last_feedback=outcome.get("reason", ""), recommendations=rule["recommendations"],
    )  # fmt: skip


def _said(case: Case, step: Any, outcome: Any, reason: str) -> str:
    because = f" ({', '.join(outcome['because'])})" if outcome["because"] else ""
    told = f": {outcome['reason']}" if outcome.get("reason") else ""
    why = _why(case, step, outcome["because"])
    return f"{reason or step['id'] + ' ended with ' + outcome['name']}{because}{told}{f': {why}' if why and why not in told else ''}"


def _why(case: Case, step: Any, because: list[str]) -> str:
    """What the first of those that it failed for said last, in one line."""
    for attempt in reversed(case.run["attempts"].values()):
        seat = str(attempt["extra"].get("seat", "")).partition("@")[0]
        if attempt["step"] == step["id"] and because and because[0] in (seat, attempt["item"]):
            return str(attempt["summary"].strip().partition("\n")[0][:300]) if attempt["verdict"] != "DONE" else ""
    return ""


def _paths(case: Case, step: Any, names: list[str]) -> list[str]:
    """The step's outputs, by their paths below the documents' folder."""
    if names:
        return names
    if step["kind"] == "agent":
        seats = [step["agent"]]
    elif step["kind"] == "cluster":
        seats = [step["aggregate"]] if step["aggregate"] else members_of(step)
    else:
        return []
    return [path for seat in seats for path in seat["out"]]
