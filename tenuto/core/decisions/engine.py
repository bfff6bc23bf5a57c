"""Engine-driven runs: a checked pipeline is bound, visits begin and end, plans become items.

Whatever todo() asks for is decided here; whoever asks for something else, or for the same thing twice, is refused.

What was done of a step's items before an engine took the run over: by a person, or by another program.

    made(pipeline, run, step, items)    the seats that need not be taken any more, by their keys in the stay
    covered(run, step, since)           a step without items of its own, whose work was done item by item

Whoever leads a run by hand names their work as they like. It counts as an item's when it says so: a phase called
`role:item` (or `role`, for every item), an attempt of that role whose item or task names one, a commit recorded for
one, an item marked as done. A name fits as everywhere (items.py): one that fits two items fits none.

Rule 1: work counts while what it was made from stands. After later work on a step before it, it is to be done again.
Rule 2: the last word counts. An item one of whose agents failed last is done again, as a whole.
Rule 3: what an engine did is not looked at here: its items know their own state. A commit counts where nobody but a
person can have made it: after the last attempt of an engine on that item.
"""

from __future__ import annotations

from tenuto.core.approvals import refuse_unapproved
from tenuto.core.budget import limits_of
from tenuto.core.decisions import new_event
from tenuto.core.decisions.attempts import in_flight
from tenuto.core.fold import running_visits
from tenuto.core.items import directory, key_of, look_up
from tenuto.core.pipeline import conditions, forms, results
from tenuto.core.pipeline.check import routes
from tenuto.core.pipeline.params import values, without_fixed
from tenuto.core.seats import key_for
from tenuto.core.status import ANSWERS, ENDED, FINAL, RESUMABLE
from tenuto.core.visit import follow, leg_to, members_of, outcome, seats_for, step_of
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypedDict

    from tenuto.core.decide import Case
    from tenuto.core.items import Arrangement, Directory, Named
    from tenuto.core.pipeline.conditions import Facts
    from tenuto.core.pipeline.records import Pipeline, Step, Waves, WavesStep, When
    from tenuto.core.records import commands
    from tenuto.core.records.action import Outcome
    from tenuto.core.records.commands import Finding
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Attempt, CurrentVisit, Json, PlannedItem, Run

    Work = tuple[str, str, str, bool]  # role, the item as it was named, when it ended, well?


_SUCCESS = (*ANSWERS, "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "LOW_COVERAGE")


def engage(case: Case, c: commands.Engage) -> list[Event]:
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
    queue = ahead if ahead and c["pipeline"]["name"] == run["pipeline"]["name"] else [leg_to(first)]
    driver = c.get("driver", "engine")
    before = without_fixed(pipeline["params"], run["params"])
    params = values(pipeline["name"], pipeline["params"], {**before, **c.get("params", {})})
    events: list[Event] = [
        new_event.engaged(
            case.command, pipeline=c["pipeline"], driver=driver, switches=switches, params=params, queue=queue
        )
    ]
    settled = {key: value for key, value in c.get("settings", {}).items() if key not in run["settings"]}
    if settled:
        events.append(new_event.settings_changed(case.command, changes=settled))
    limits, of_steps = limits_of(pipeline)
    budget = run["budget"]
    fresh = {unit: limit for unit, limit in limits.items() if unit not in budget["limits"]}
    steps = {
        step: own
        for step, own in of_steps.items()
        if step not in budget["steps"] or not budget["steps"][step]["limits"]
    }
    return [*events, new_event.budget_changed(case.command, limits=fresh, steps=steps)] if fresh or steps else events


def refuse_switches(pipeline: Pipeline, asked: Mapping[str, bool]) -> None:
    """A switch that switches nothing is a mistake: whoever asks for approval must not be let through without a gate."""
    for name, on in asked.items():
        if name not in pipeline["switches"]:
            known = ", ".join(pipeline["switches"])
            raise Refused(
                "no-such-switch", f"pipeline {pipeline['name']} has no switch {name!r}; it has: {known}", switch=name
            )
        if name == "approval" and on and not any(step["kind"] == "gate" for step in pipeline["steps"]):
            raise Refused(
                "no-gates",
                f"pipeline {pipeline['name']} has no gate where you could approve anything",
                "add one: docs/howto/add-a-gate.md",
            )


def _refuse_engaging(run: Run, pipeline: Pipeline) -> None:
    if run["current_visit"] is not None or in_flight(run) or (run["order"] == "any" and running_visits(run)):
        names = ", ".join(visit["step"] for visit in running_visits(run))
        raise Refused("visit-open", f"run {run['id']} is in the middle of a step: {names}", "let it end first")
    resting = run["pause"]["resting"] if run["pause"] else run["status"]
    if pipeline["starts_from"] == "poc-complete" and resting != "poc-complete":
        message = (
            f"pipeline {pipeline['name']} goes on from a finished proof of concept; run {run['id']} is {run['status']}"
        )
        raise Refused("not-poc-complete", message, "tenuto run --pipeline poc", status=run["status"])
    if run["status"] in (*ENDED, "waiting_gate"):
        hint = "decide the gate first" if run["status"] == "waiting_gate" else "start a new run, or fork it"
        raise Refused("run-ended", f"run {run['id']} is {run['status']}", hint, status=run["status"])


def first_open(run: Run, pipeline: Pipeline, switches: Mapping[str, bool]) -> str:
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


def _is_done(run: Run, step: Step, ended: str, before: str, switches: Mapping[str, bool], follows: str) -> bool:
    """`before`: when the work on the steps before it ended. `follows`: the pipeline that is to be followed. A gate
    that is on was never skipped: another pipeline, or a switch, left it out."""
    state = run["steps"].get(step["id"])
    on = step["kind"] == "gate" and conditions.decided(step["when"], switches, run["params"]) is not False
    if on and run["pipeline"]["hash"] and run["pipeline"]["name"] != follows:
        return False  # what another pipeline asked for was another gate
    if state and state["status"] == "skipped":
        return not on
    if state and state["status"] == "completed" and ended >= before:
        return True
    if step["kind"] != "gate":
        return covered(run, step, before)
    words = [decision for decision in run["decisions"] if decision["name"] == step["gate"]["name"]]
    return bool(words) and words[-1]["approved"] and words[-1]["at"] >= before


def begin_visit(case: Case, c: commands.BeginVisit) -> list[Event]:
    run, pipeline = case.run, _pipeline(case)
    _require(case, "begin")
    leg = run["queue"][0]
    step = step_of(pipeline, leg["step"])
    seen = {name: c.get("files", {}).get(name, False) for name in asked_files(step)}
    facts: list[Event] = [new_event.files_seen(case.command, files=seen)] if seen else []
    if not conditions.holds(step["when"], facts_of(run, seen, step["when"])):
        skipped = new_event.step_skipped(case.command, step=step["id"], reason=conditions.why_not(step["when"]))
        behind = type(case)(pipeline, case.repo, {**run, "queue": run["queue"][1:]}, case.command)
        done: Outcome = {"name": "DONE", "because": [], "reason": ""}
        return [*facts, skipped, *follow(behind, step, done, lambda when: when == conditions.ALWAYS)]
    leg = {**leg, "without": _members_left_out(run, step, seen)}
    if not leg["without"]:
        del leg["without"]
    visits = 1 + (sum(1 for visit in run["visits"] if visit["step"] == step["id"]) if step["id"] in run["steps"] else 0)
    return [*facts, new_event.step_started(case.command, step=step["id"], item=None, iteration=visits, leg=leg)]


def _members_left_out(run: Run, step: Step, seen: Mapping[str, bool]) -> list[str]:
    if step["kind"] != "cluster":
        return []
    return [
        seat["id"] for seat in members_of(step) if not conditions.holds(seat["when"], facts_of(run, seen, seat["when"]))
    ]


def asked_files(step: Step) -> list[str]:
    """The files that conditions ask about when the step begins: its own, those of its members, and the one for the
    elements of its list."""
    each = step["waves"]["each"] if step["kind"] == "waves" else None
    members = [seat["when"] for seat in members_of(step)] if step["kind"] == "cluster" else []
    asking = [step["when"], *members, *([each["when"]] if each else [])]
    return list(dict.fromkeys(name for when in asking for name in conditions.files(when)))


def files_behind(step: Step) -> list[str]:
    """The files that conditions of its routes ask about when the step has ended."""
    return list(dict.fromkeys(name for route in routes(step) for name in conditions.files(route["when"])))


def facts_of(run: Run, seen: Mapping[str, bool], when: When) -> Facts:
    """What conditions are asked with, from what the run has recorded."""
    ended = {name: state for name, state in run["steps"].items() if state["status"] != "skipped"}
    outcomes = {name: state["verdict"] for name, state in ended.items() if state["verdict"]}
    files = {**run["files_seen"], **seen}
    handed_in = {name: results.result_of(run, name) for name in results.names(when)}
    return {
        "switches": run["switches"],
        "params": run["params"],
        "outcomes": outcomes,
        "results": handed_in,
        "answers": forms.flat(forms.known(run)),
        "files": files,
    }


def record_action(case: Case, c: commands.RecordAction) -> list[Event]:
    _pipeline(case)
    if not any(action["act"] == "do" and action["as"] == c["action"] for action in case.asked()):
        raise Refused("not-asked", f"run {case.run['id']} does not ask for {c['action']} now")
    return [new_event.action_done(case.command, action=c["action"], detail=c.get("detail", {}))]


def plan_visit(case: Case, c: commands.PlanVisit) -> list[Event]:
    from tenuto.core.items import arrange

    run, pipeline = case.run, _pipeline(case)
    _require(case, "plan")
    current_visit, step = _current(run, pipeline)
    if step["kind"] != "waves":
        raise Refused("not-asked", f"run {run['id']} has no plan to read in {step['id']}")
    waves, items = step["waves"], c["items"]
    problem = c.get("problem", "") or impossible(waves, items, run["switches"])
    if problem:
        return _end(case, step, {"name": "NEEDS_REVISION", "because": [], "reason": problem})
    arrangement = arrange(items)
    notes = [*c.get("notes", []), *_plan_notes(waves, items, arrangement)]
    which = current_visit["leg"].get("items") or "due"
    kept = _made(pipeline, run, current_visit, step, items, which)
    before = _planned(run, step)
    done = [
        item["id"]
        for item in items
        if kept and all(key_for(seat, item["id"]) in kept for seat in seats_for(step, item))
    ]
    selected, note = _choose(run, items, before, which, c.get("findings", []))
    chosen = {name: None for name in selected if name not in done}
    notes += [note] if note else []
    ordered = [[name for name in wave if name in chosen] for wave in arrangement["waves"]]
    groups = _groups(waves, items, ordered, min(pipeline["cap"], waves["at_once"] or pipeline["cap"]))
    planned = {item["id"]: _item(item, run) | ({"status": "completed"} if item["id"] in done else {}) for item in items}
    return [
        new_event.items_planned(
            case.command,
            items=planned,
            waves=arrangement["waves"],
            groups=groups,
            notes=notes,
            made=[key for key in kept if key.partition("@")[2] in chosen],
            dropped=[n for n in before if n not in planned and run["items"][n]["status"] != "completed"],
        )
    ]


def _made(
    pipeline: Pipeline, run: Run, current_visit: CurrentVisit, step: WavesStep, items: Sequence[PlannedItem], which: str
) -> list[str]:
    """Seats of items that need not be taken any more: by hand, or in a stay that was left in the middle."""
    from tenuto.core.items import has_changed

    before = _planned(run, step)
    same = [item["id"] for item in items if item["id"] in before and not has_changed(before[item["id"]], item)]
    left = [key for key in current_visit["seats"] if key.partition("@")[2] in same]
    by_hand = which == "due" and step["waves"]["each"] is None
    return [*left, *made(pipeline, run, step, items)] if by_hand else left


def impossible(waves: Waves, items: Sequence[PlannedItem], switches: Mapping[str, bool]) -> str:
    """Why these items cannot be carried out in this step; "" where they can."""
    from tenuto.core.items import PlanRefused, arrange

    most = waves["each"]["max"] if waves["each"] else waves["max_items"]
    if most and len(items) > most:
        return f"the plan has {len(items)} items; at most {most} are allowed"
    try:
        arrange(items)
    except PlanRefused as refusal:
        return refusal.message
    strict = waves["strict"] if isinstance(waves["strict"], bool) else switches.get(waves["strict"])
    return "; ".join(_beyond_limits(waves, items)) if strict else ""


def _beyond_limits(waves: Waves, items: Sequence[PlannedItem]) -> list[str]:
    """What `strict` makes of a warning a reason to send the plan back; moved items and unknown agents have a remedy,
    and stay warnings."""
    from tenuto.core.items import passed_limits

    return [note for item in items for note in passed_limits(item, waves["limits"])]


def _choose(
    run: Run,
    items: Sequence[PlannedItem],
    before: Mapping[str, PlannedItem],
    which: str,
    findings: Sequence[Finding],
) -> tuple[list[str], str]:
    """The items of this visit, as the leg says: due, failing, affected, all. And a note, where that was not enough:
    a fix pass for which nothing is selected would have unchanged work judged again, so every item is."""
    from tenuto.core.items import affected, due

    found = affected(items, findings)
    named = (
        found["items"] if len(found["unmatched"]) < len(findings) else []
    )  # a finding that names nobody names nobody as failing
    every = [item["id"] for item in items]
    if which == "all":
        return every, ""
    if which == "affected":
        return named or every, "" if named else "the findings name no item and no file of one: every item runs again"
    done = {name: None for name, one in run["items"].items() if one["status"] == "completed"}
    chosen = due(items, list(before.values()), done=done, failing=named if which == "failing" else ())
    if which == "failing" and not chosen:
        return (
            every,
            "nothing was selected: the findings name no item, and the plan is as before; every item runs again",
        )
    return chosen, ""


def _groups(waves: Waves, items: Sequence[PlannedItem], ordered: list[list[str]], cap: int) -> list[list[str]]:
    """Sub-waves under the barrier; one group, the longest chains first, when rolling."""
    from tenuto.core.items import chain_lengths, partition

    if waves["order"] == "rolling":
        chains = chain_lengths(items)
        ready = sorted((name for wave in ordered for name in wave), key=lambda name: -chains[name])
        return [ready] if ready else []
    return [group for wave in ordered for group in partition(wave, cap)]


def _plan_notes(waves: Waves, items: Sequence[PlannedItem], arrangement: Arrangement) -> list[str]:
    """What a reader of the plan should know: items that were moved, agents nobody knows, limits that were passed."""
    from tenuto.core.items import agent_for

    notes = [
        (
            f"item {move['item']} moved from wave {move['from_wave']} to {move['to_wave']}: it waits for "
            f"{', '.join(move['because'])}"
        )
        for move in arrangement["moves"]
    ]
    seats = [seat["id"] for seat in waves["seats"]]
    if waves["per_item"] == "named":
        notes += [agent_for(item["id"], item["agent"], seats, waves["default"])[1] for item in items]
    return [note for note in [*notes, *_beyond_limits(waves, items)] if note]


def conclude(case: Case, c: commands.Conclude) -> list[Event]:
    pipeline = _pipeline(case)
    _require(case, "conclude")
    current_visit, step = _current(case.run, pipeline)
    came = outcome(pipeline, case.run)
    if came["name"] == "DONE" and step["kind"] == "gate" and c.get("changed"):
        return _void(case, step, c["changed"])
    if came["name"] == "DONE":
        for action in step["after"]:
            if f"after:{action}" not in current_visit["done_actions"]:
                raise Refused("not-asked", f"{action} comes before the end of {step['id']}")
    seen = {name: c.get("files", {}).get(name, False) for name in files_behind(step)}
    facts: list[Event] = [new_event.files_seen(case.command, files=seen)] if seen else []
    return [*facts, *_end(case, step, came, seen)]


def _void(case: Case, step: Step, changed: list[str]) -> list[Event]:
    """What was approved is not what is there: the gate is asked once more, for what is there now."""
    reason = f"what was approved has changed since: {', '.join(changed)}"
    ended = new_event.step_ended(
        case.command,
        step=step["id"],
        item=None,
        status="failed",
        verdict="ERROR",
        summary=reason,
        because=[],
    )
    queue = [leg_to(step["id"]), *case.run["queue"]]
    return [ended, new_event.route_taken(case.command, route="", queue=queue, resets=[], carry={}, reason=reason)]


def retry_step(case: Case, c: commands.RetryStep) -> list[Event]:
    run, pipeline = case.run, _pipeline(case)
    rests = run["status"] in (*RESUMABLE, "blocked", "failed")
    if run["status"] in (*FINAL, "waiting_gate"):
        hint = "decide the gate: revise sends the work back" if run["status"] == "waiting_gate" else "fork it instead"
        raise Refused("run-ended", f"run {run['id']} is {run['status']}", hint, status=run["status"])
    if in_flight(run) or (run["current_visit"] is not None and not rests):
        raise Refused(
            "visit-open", f"run {run['id']} is in the middle of {run['position']!r}", "pause it, and let that end"
        )
    if c["step"] not in [step["id"] for step in pipeline["steps"]]:
        raise Refused("no-such-step", f"pipeline {pipeline['name']} has no step {c['step']!r}", step=c["step"])
    refuse_unapproved(pipeline, run["switches"], c["step"], c.get("approved", ()))
    queue = [leg_to(c["step"])]
    events: list[Event] = [
        new_event.route_taken(
            case.command, route="", queue=queue, resets=[], carry={}, reason="a person asked for it again"
        )
    ]
    if run["current_visit"] is not None:
        left = new_event.step_ended(
            case.command,
            step=run["current_visit"]["step"],
            item=None,
            status="failed",
            verdict="ERROR",
            summary=f"left in the middle: a person asked for {c['step']}",
            because=[],
        )
        events.insert(0, left)
    if run["status"] in RESUMABLE:
        events.append(new_event.resumed(case.command, decision="retry"))
    elif run["status"] in ("blocked", "failed"):
        events.append(new_event.unblocked(case.command, stage=None))
    return events


def fork(case: Case, c: commands.Fork) -> list[Event]:
    """The steps before it are not done again. Those that only a route leads to, and those behind, are as in any new
    run. A gate before it must stand approved in the source: its approval is carried over, and named in the event."""
    run, pipeline = case.run, _pipeline(case)
    if run["attempts"] or run["visits"]:
        raise Refused(
            "run-begun", f"run {run['id']} has begun; only a new one can be a fork", "tenuto fork RUN --at STEP"
        )
    order = [step["id"] for step in pipeline["steps"]]
    if c["at_step"] not in order:
        message = f"pipeline {pipeline['name']} has no step {c['at_step']!r}; it has: {', '.join(order)}"
        raise Refused("no-such-step", message, step=c["at_step"])
    passed = refuse_unapproved(pipeline, run["switches"], c["at_step"], c["approved"])
    before = [step["id"] for step in pipeline["steps"][: order.index(c["at_step"])] if not step["aside"]]
    forked = new_event.forked(
        case.command,
        source=c["source"],
        at_step=c["at_step"],
        at_version=c["at_version"],
        approved=passed,
        answers={step: own for step, own in c.get("answers", {}).items() if step in before},
    )
    reason = f"carried over from {c['source']}"
    return [forked, *(new_event.step_skipped(case.command, step=step, reason=reason) for step in before)]


def _end(case: Case, step: Step, came: Outcome, seen: Mapping[str, bool] | None = None) -> list[Event]:
    """The visit ends with this outcome, and what follows it follows. `seen`: the files that routes ask about."""

    def holds(when: When) -> bool:
        facts = facts_of(case.run, seen or {}, when)
        return conditions.holds(when, {**facts, "outcomes": {**facts["outcomes"], step["id"]: came["name"]}})

    success = came["name"] in _SUCCESS
    ended = new_event.step_ended(
        case.command,
        step=step["id"],
        item=None,
        status="success" if success else "failed",
        verdict=came["name"],
        summary=came["reason"],
        because=came["because"],
    )
    cleaned = (
        [new_event.memory_cleaned(case.command)]
        if came["name"] == "DONE" and case.run["current_visit"] and case.run["current_visit"]["leg"].get("revises")
        else []
    )
    beyond = follow(case, step, came, holds)
    return [*_reviewed(case, step, came, beyond), ended, *cleaned, *beyond]


def _reviewed(case: Case, step: Step, came: Outcome, beyond: list[Event]) -> list[Event]:
    """A review's answer and what it led to, recorded as for a run that is led by hand."""
    current_visit = case.run["current_visit"]
    if step["rule"] != "review" or current_visit is None:
        return []
    tried = next((state for state in current_visit["seats"].values() if state["results"]), None)
    taken = next((event["route"] for event in beyond if event["type"] == "RouteTaken" and event["route"]), "")
    way = taken.partition(".")[0] if taken.startswith("restart.") else taken.rpartition(".")[2]
    changes = {
        "approved": came["name"] == "DONE",
        "visit": current_visit["visit"],
        "answer": tried["answer"] if tried else None,
        "reason": came["reason"],
        "sha256": "",
        "next": "blocked" if any(e["type"] == "Blocked" for e in beyond) else way,
        "dispatch_retries": sum(1 for result in tried["results"] if result in ("ERROR", "LOST")) if tried else 0,
    }
    if way == "fix":
        changes["fix_attempts"] = case.run["reviews"].get(step["id"], {}).get("fix_attempts", 0) + 1
    return [new_event.review_recorded(case.command, step=step["id"], changes=changes)]


def _item(item: PlannedItem, run: Run) -> Json:
    known = run["items"].get(item["id"])
    return {
        "title": item["title"],
        "files": item["files"],
        "depends_on": item["depends_on"],
        "agent": item["agent"] or "",
        "status": known["status"] if known else "pending",
        "extra": item,
    }


def _planned(run: Run, step: WavesStep) -> dict[str, PlannedItem]:
    """The items of the plan before, as it had them; of one that was planned by hand nothing is known. A step with a
    list has items of its own, whose names begin with its own."""
    own = step["id"] if step["waves"]["each"] else ""
    found = {name: one["extra"] for name, one in run["items"].items() if "id" in one["extra"]}
    return {name: one for name, one in found.items() if one.get("step", "") == own}  # type: ignore[misc]


def _current(run: Run, pipeline: Pipeline) -> tuple[CurrentVisit, Step]:
    """Where the run is. todo() has asked for something there, so it is somewhere."""
    if run["current_visit"] is None:
        raise Refused("not-asked", f"run {run['id']} is in no step now", "ask again what is to be done")
    return run["current_visit"], step_of(pipeline, run["current_visit"]["step"])


def _pipeline(case: Case) -> Pipeline:
    if case.pipeline is None:
        raise Refused(
            "no-pipeline",
            f"run {case.run['id']} is driven by hand; no pipeline is bound to it",
            f"tenuto resume {case.run['id']} ends a rest or a failure; tenuto run --pipeline NAME begins a driven run",
        )
    return case.pipeline


def _require(case: Case, act: str) -> None:
    if not any(action["act"] == act for action in case.asked()):
        raise Refused("not-asked", f"run {case.run['id']} does not ask for {act!r} now", "ask again what is to be done")


if TYPE_CHECKING:

    class Deciders(TypedDict):
        Engage: Callable[[Case, commands.Engage], list[Event]]
        BeginVisit: Callable[[Case, commands.BeginVisit], list[Event]]
        RecordAction: Callable[[Case, commands.RecordAction], list[Event]]
        PlanVisit: Callable[[Case, commands.PlanVisit], list[Event]]
        Conclude: Callable[[Case, commands.Conclude], list[Event]]
        RetryStep: Callable[[Case, commands.RetryStep], list[Event]]
        Fork: Callable[[Case, commands.Fork], list[Event]]


DECIDERS: Deciders = {
    "Engage": engage,
    "BeginVisit": begin_visit,
    "RecordAction": record_action,
    "PlanVisit": plan_visit,
    "Conclude": conclude,
    "RetryStep": retry_step,
    "Fork": fork,
}


EVERY = ""  # of roles: all that work on the item; of items: all of them
_LEADING = ("step", "task", "item")


def made(pipeline: Pipeline, run: Run, step: WavesStep, items: Sequence[PlannedItem]) -> list[str]:
    names, since = directory(items), _since(pipeline, run, step)
    last: dict[tuple[str, str], bool] = {}
    tried = {one["item"]: one["ended_at"] or "~" for one in run["attempts"].values() if "seat" in one["extra"]}
    for role, named, at, well in sorted(_work(pipeline, run), key=lambda work: work[2]):
        found = [item["id"] for item in items] if named == EVERY else _fitting(names, named)
        for item in found if at >= since else ():
            if role != EVERY or at > tried.get(item, ""):
                last[_plain(role), item] = well
    done = _marked(pipeline, run, step, items)
    found_keys: list[str] = []
    for one in items:
        said = {role: well for (role, item), well in last.items() if item == one["id"]} if last else {}
        if one["id"] in done or (said and all(said.values())):
            for seat in seats_for(step, one):
                if one["id"] in done or EVERY in said or _plain(seat["id"]) in said or _plain(seat["role"]) in said:
                    found_keys.append(key_for(seat, one["id"]))
    return found_keys


def covered(run: Run, step: Step, since: str) -> bool:
    """`implementer:task-1` and `implementer:task-2` are the step `implementer`, where the run knows these two items."""
    if step["kind"] != "agent" or not run["items"]:
        return False
    known: list[Named] = [{"id": name, "title": item["title"]} for name, item in run["items"].items()]
    names, done = directory(known), dict.fromkeys(run["items"], False)
    for visit in run["visits"]:
        role, _, item = visit["step"].partition(":")
        if item and role == step["id"] and (visit["ended_at"] or "") >= since:
            for name in _fitting(names, item):
                done[name] = visit["status"] == "success"
    return all(done.values())


def _since(pipeline: Pipeline, run: Run, step: Step) -> str:
    """When the work that this step starts from ended."""
    before: list[str] = []
    for one in pipeline["steps"]:
        if one["id"] == step["id"]:
            break
        if one["kind"] in ("agent", "cluster", "waves"):
            before.append(one["id"])
    return max(
        (v["ended_at"] or "" for v in run["visits"] if v["step"] in before and v["status"] == "success"), default=""
    )


def _work(pipeline: Pipeline, run: Run) -> Iterator[Work]:
    steps = [step["id"] for step in pipeline["steps"]]
    for visit in run["visits"]:
        if visit["step"] not in steps and visit["status"] in ("success", "failed"):
            role, _, item = visit["step"].partition(":")
            yield role, visit["item"] or item, visit["ended_at"] or "", visit["status"] == "success"
    for attempt in run["attempts"].values():
        named = attempt["item"] or attempt["task"]
        if "seat" not in attempt["extra"] and attempt["ended_at"] and named:
            well = attempt["status"] == "completed" and attempt["verdict"] in (None, "DONE")
            yield attempt["role"], named, attempt["ended_at"], well
    for commit in run["commits"]:
        yield EVERY, commit["step"], commit["at"], True


def _marked(pipeline: Pipeline, run: Run, step: WavesStep, items: Sequence[PlannedItem]) -> list[str]:
    """Items that somebody marked as done. Where an engine's agent wrote the plan since, only those that are called
    the same."""
    ours = any(
        "seat" in one["extra"] and one["status"] == "completed" and _writes_plan(pipeline, step, one)
        for one in run["attempts"].values()
    )
    names, titles = directory(items), {item["id"]: key_of(item["title"]) for item in items}
    found = []
    for name, item in run["items"].items():
        if item["status"] == "completed" and "id" not in item["extra"]:
            fits = look_up(names, name)
            if len(fits) == 1 and (not ours or key_of(item["title"]) == titles[fits[0]]):
                found.append(fits[0])
    return found


def _writes_plan(pipeline: Pipeline, step: WavesStep, attempt: Attempt) -> bool:
    from tenuto.core.pipeline.check import seats

    wrote = next((one for one in pipeline["steps"] if one["id"] == attempt["step"]), None)
    return wrote is not None and any(path in step["waves"]["plan"] for seat in seats(wrote) for path in seat["out"])


def _fitting(names: Directory, named: str) -> list[str]:
    """`task-1`, `implement_step_1`, `step_1_middleware`: the item that is meant, where it is one."""
    words = named.replace("_", "-").replace(":", "-").replace(" ", "-").split("-")
    marks = [place for place, word in enumerate(words) if word.lower() in _LEADING]
    for text in (named, "-".join(words[marks[-1] :]) if marks else ""):
        found = look_up(names, text) if text else []
        if len(found) == 1:
            return found
    return []


def _plain(role: str) -> str:
    return role.rpartition(":")[2].lower().replace("_", "-")
