"""The current visit of a run: what is ready in it, what came of it, and what follows.

    ready, exhausted seats        pure questions, which todo() and the deciders ask
    answers_of(run, step)         what each seat of a step said last, and whether its outputs count
    outcome(pipeline, run)        the outcome that the step's `on` table is asked with: name, because, reason
    follow(case, step, outcome)   the events that follow: the next leg, a way back, a pause, an end

Seats. A seat is exhausted when its last result is DONE, or when no attempt is left for that kind of result. Retries are
counted per kind (ERROR, NEEDS_REVISION, LOST, QUESTION), as the seat says. A verdict that the seat may not give is an
ERROR. An attempt whose outcome nobody knows, with no LOST left, is an ERROR too, and is made again as one.

Reports. A seat's outputs are this visit's where it delivered in this visit: any word but ERROR. What lies there of a
seat that failed or did not run is of another visit, or half-written: later agents are not given it, and hear why.

Outcomes. An aggregator can be stricter than the rule over its members, never more lenient. Too few outputs, no answer,
an answer that is not what the rule needs: never DONE.

What follows. The rules are in pipeline/records.py (rule 2), told by the pipeline's `on` tables; here they are carried
out. Counters are per run and route and are never reset, also when the same step is reached another way; only a stage
restart resets the counters that it lists. A run leaves a stage only with the stage's evidence recorded.

No run fails because its machine did: where the table would end it, and an agent had no try left only because attempts
of it were lost, the run pauses. A person who resumes it has those agents tried again; what the others delivered stays.
"""

from __future__ import annotations

from tenuto.core import rules
from tenuto.core.decisions import new_event
from tenuto.core.pipeline import ways
from tenuto.core.pipeline.check import documents_of, seats, stage_gates
from tenuto.core.seats import (
    attempts_left,
    concluded,
    exhausted,
    key_for,
    lost_its_tries,
    state_of,
    team_for,
    team_of,
    told,
    turn_of,
    word_of,
)
from tenuto.errors import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypedDict

    from tenuto.core.decide import Case
    from tenuto.core.pipeline import records
    from tenuto.core.pipeline.records import (
        AgentStep,
        ClusterStep,
        OutcomeName,
        Pipeline,
        Seat,
        Step,
        Verdict,
        WavesStep,
        When,
    )
    from tenuto.core.records.action import Outcome
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import CurrentVisit, HandedOver, Item, Leg, PlannedItem, Run, SeatState

    Place = tuple[str, Seat, str | None]  # key in the visit, the seat, the item

    class SeatAnswer(TypedDict):
        seat: Seat
        word: Verdict | None  # None: it did not run
        summary: str
        outputs: list[str]  # of its last attempt, as its receipt has them


_seen_at: dict[str, int] = {}  # where a step of this name stood when it was last looked for: a hint, never an answer


def step_of(pipeline: Pipeline, name: str) -> Step:
    steps = pipeline["steps"]
    place = _seen_at.get(name, 0)
    if place < len(steps) and steps[place]["id"] == name:
        return steps[place]
    for place, step in enumerate(steps):
        if step["id"] == name:
            _seen_at[name] = place
            return step
    raise KeyError(name)


def unfinished(run: Run, attempt: str) -> str:
    """This attempt, where the next one of its seat goes on with it: nobody knows its end, it was set aside, or it
    asked something. Any other end is one that the next attempt starts over from."""
    found = run["attempts"].get(attempt)
    if found is None:
        return ""
    return attempt if found["status"] == "lost" or found["verdict"] in ("PARKED", "QUESTION") else ""


def ready(pipeline: Pipeline, run: Run, step: Step, current_visit: CurrentVisit, most: int) -> list[Place]:
    """The places that may be taken now, in order. Of a thousand items only as many are looked at as `most` asks for."""
    if step["kind"] == "agent":
        return _open_places([(agent_seat(step, current_visit), None)], current_visit)
    if step["kind"] == "cluster":
        only = current_visit["leg"].get("only", [])
        turn = turn_of(team_of(step, current_visit), current_visit["seats"], only)
        return _open_places([(seat, None) for seat in turn], current_visit)
    if step["kind"] == "waves":
        lister = lister_of(step)
        if lister is not None and not current_visit["planned"]:
            return _open_places([(lister, None)], current_visit)
        return _wave_places(step, run, current_visit, most)
    return []


def lister_of(step: WavesStep) -> Seat | None:
    """The command that prints the list of this step's items."""
    each = step["waves"]["each"]
    return each["seat"] if each else None


def is_listed(step: WavesStep, current_visit: CurrentVisit) -> bool:
    """Is there a list to read the items from? Where a command prints it, only once that has ended well."""
    lister = lister_of(step)
    return lister is None or word_of(lister, current_visit["seats"].get(lister["id"])) == "DONE"


def agent_seat(step: AgentStep, current_visit: CurrentVisit) -> Seat:
    mode = current_visit["leg"].get("mode", "")
    return step["modes"][mode] if mode else step["agent"]


def seat_at(step: Step, current_visit: CurrentVisit, key: str) -> Seat:
    """The seat of this key in the visit."""
    if step["kind"] == "agent":
        return agent_seat(step, current_visit)
    name = key.partition("@")[0]
    return next(seat for seat in seats(step) if seat["id"] == name)


def _open_places(taken: list[tuple[Seat, str | None]], current_visit: CurrentVisit) -> list[Place]:
    places = [(key_for(seat, item), seat, item) for seat, item in taken]
    return [place for place in places if attempts_left(place[1], current_visit["seats"].get(place[0]))]


def members_of(step: ClusterStep) -> list[Seat]:
    first = step["cluster"]["first"]
    return [*([first] if first else []), *step["cluster"]["members"]]


# ---- reports ---------------------------------------------------------------------------------------


def answers_of(run: Run, step: Step) -> list[SeatAnswer]:
    """Of each seat without items: in the current visit where the run is there, else in its last one. Nothing where no
    engine led the step: then nothing is known of its files."""
    here = run["current_visit"]
    states = here["seats"] if here is not None and here["step"] == step["id"] else run["last_verdicts"].get(step["id"])
    if states is None or step["kind"] not in ("agent", "cluster"):
        return []
    latest = {str(one["extra"].get("seat")): one for one in run["attempts"].values() if one["step"] == step["id"]}
    found: list[SeatAnswer] = []
    for seat in seats(step):
        word = word_of(seat, states.get(seat["id"]))
        attempt = latest.get(seat["id"]) if word is not None else None
        found.append(
            {
                "seat": seat,
                "word": word,
                "summary": attempt["summary"] if attempt else "",
                "outputs": list(attempt["receipt"].get("outputs", {})) if attempt else [],
            }
        )
    return found


# ---- waves -----------------------------------------------------------------------------------------


def seats_for(step: WavesStep, item: Item | PlannedItem) -> list[Seat]:
    """The seats that work on an item, in the order they take turns."""
    every = step["waves"]["seats"]
    if step["waves"]["per_item"] != "named":
        return every
    if not item["agent"]:
        return [seat for seat in every if seat["id"] == step["waves"]["default"]]
    from tenuto.core.items import agent_for

    name, _ = agent_for("", item["agent"], [seat["id"] for seat in every], step["waves"]["default"])
    return [seat for seat in every if seat["id"] == name]


def _wave_places(step: WavesStep, run: Run, current_visit: CurrentVisit, most: int) -> list[Place]:
    """Started items first (their next seat), then items that may start."""
    room = step["waves"]["at_once"] or len(current_visit["left"])
    started = len(current_visit["busy"])
    places: list[Place] = []
    for item in current_visit["busy"]:
        places += _item_places(step, run, current_visit, item)
    for item in _startable(step, run, current_visit):
        if started >= room or len(places) >= most:
            break
        started += 1
        places += _item_places(step, run, current_visit, item)
    return places


def _item_places(step: WavesStep, run: Run, current_visit: CurrentVisit, item: str) -> list[Place]:
    team = team_for(step, item)
    if team is not None:
        return _open_places([(seat, item) for seat in turn_of(team, current_visit["seats"], [])], current_visit)
    working = seats_for(step, run["items"][item])
    if step["waves"]["per_item"] == "in-turn":
        for seat in working:
            if not exhausted(seat, current_visit["seats"].get(key_for(seat, item))):
                return _open_places([(seat, item)], current_visit)
        return []
    return _open_places([(seat, item) for seat in working], current_visit)


def _startable(step: WavesStep, run: Run, current_visit: CurrentVisit) -> Iterator[str]:
    """Under the barrier: the rest of the current sub-wave. Rolling: whatever its dependencies let start."""
    left, busy = current_visit["left"], current_visit["busy"]
    if not left or (step["waves"]["on_item_error"] == "halt" and current_visit["stopped_by"]):
        return
    if step["waves"]["order"] == "rolling":
        items = run["items"]
        for item in left:
            if item not in busy and all(_allows(run, current_visit, before) for before in items[item]["depends_on"]):
                yield item
        return
    current, wave = current_visit["group_of"][left[0]], current_visit["wave_of"][left[0]]
    if step["waves"]["on_item_error"] == "stop" and any(
        current_visit["wave_of"][one] < wave for one in current_visit["stopped_by"]
    ):
        return
    for item in left:
        if item not in busy and current_visit["group_of"][item] == current:
            yield item


def _allows(run: Run, current_visit: CurrentVisit, before: str) -> bool:
    known = run["items"].get(before)
    if known is None or known["status"] == "completed":
        return True
    return known["status"] == "failed" and before not in current_visit["stopped_by"]


def item_word(
    step: WavesStep, run: Run, current_visit: CurrentVisit, item: str, but: tuple[str, SeatState] | None = None
) -> str | None:
    """The worst last word of the item's seats; None while one of them has a try left. `but`: with this seat as
    given."""
    from tenuto.core.rules import worse

    team = team_for(step, item)
    if team is not None:
        states = current_visit["seats"] if but is None else {**current_visit["seats"], but[0]: but[1]}
        turn = turn_of(team, states, [])
        return (
            None if any(not exhausted(s, state_of(team, states, s)) for s in turn) else concluded(team, states)["name"]
        )
    words: list[str | None] = []
    for seat in seats_for(step, run["items"][item]):
        key = key_for(seat, item)
        state = but[1] if but is not None and but[0] == key else current_visit["seats"].get(key)
        if not exhausted(seat, state):
            return None
        words.append(word_of(seat, state))
        if words[-1] != "DONE" and step["waves"]["per_item"] == "in-turn":
            break  # those behind it never start
    return worse(*words)


_GATE: dict[str, OutcomeName] = {"approve": "DONE", "revise": "NEEDS_REVISION", "reject": "ERROR"}


def outcome(pipeline: Pipeline, run: Run) -> Outcome:
    current_visit = run["current_visit"]
    if current_visit is None:
        raise ValueError("no visit, no outcome")
    step = step_of(pipeline, current_visit["step"])
    match step["kind"]:
        case "agent":
            return _agent(step, run, current_visit)
        case "cluster":
            return concluded(team_of(step, current_visit), current_visit["seats"])
        case "waves":
            return _waves(step, run, current_visit)
        case "gate":
            return told(_GATE.get(current_visit["decision"] or "", "ERROR"))
        case "action":
            return told("DONE")
        case unknown:
            assert_never(unknown)


def _agent(step: AgentStep, run: Run, current_visit: CurrentVisit) -> Outcome:
    seat = agent_seat(step, current_visit)
    state = current_visit["seats"].get(seat["id"])
    word = word_of(seat, state) or "ERROR"
    answer = state["answer"] if state else None
    if word == "ERROR" or step["rule"] == "word":
        return told(word, [seat["id"]] if word != "DONE" else [])
    if step["rule"] == "audit":
        judged = rules.audit(answer)
        return told("DONE" if judged["verdict"] == "PASS" else judged["verdict"], [seat["id"]], judged["reason"])
    own = step["review"]["min_block_severity"] if step["review"] else "LOW"
    policy = run["settings"].get("reviewPolicy", {}).get("minBlockSeverity") or own
    review = rules.review(answer, policy)
    if not review["approved"]:
        return told("NEEDS_REVISION", [seat["id"]], review["reason"])
    return _coverage(step, run, answer) or told("DONE")


def _coverage(step: AgentStep, run: Run, answer: object) -> Outcome | None:
    if step["coverage"] is None:
        return None
    wanted = run["settings"].get("coverageThreshold", step["coverage"]["threshold"])
    found = answer.get("coverage") if isinstance(answer, dict) else None
    figure = found.get("percent", found.get("lines")) if isinstance(found, dict) else found
    if isinstance(figure, (int, float)) and not isinstance(figure, bool) and figure >= wanted:
        return None
    said = "no coverage figure" if not isinstance(figure, (int, float)) else f"coverage {figure} is below {wanted}"
    return told("LOW_COVERAGE", [], said)


def _waves(step: WavesStep, run: Run, current_visit: CurrentVisit) -> Outcome:
    lister = lister_of(step)
    if lister is not None and not current_visit["planned"]:
        word = word_of(lister, current_visit["seats"].get(lister["id"])) or "ERROR"
        return told(word, [lister["id"]], "there is no list of what is to be done")
    if step["waves"]["quorum"]:
        return _by_quorum(step, run, current_visit)
    if step["waves"]["each"] and not current_visit["wave_of"]:
        return told("DONE", [], NOTHING_LISTED)
    bad = [item for item in current_visit["stopped_by"] if item in current_visit["wave_of"]]
    if not bad:
        return (
            told("DONE") if not current_visit["left"] else told("ERROR", current_visit["left"], "items never started")
        )
    words = [item_word(step, run, current_visit, item) for item in bad]
    name: OutcomeName = "NEEDS_REVISION" if all(word == "NEEDS_REVISION" for word in words) else "ERROR"
    return told(name, bad, f"failed: {', '.join(bad)}")


NOTHING_LISTED = "the list is empty: there was nothing to do"


def _by_quorum(step: WavesStep, run: Run, current_visit: CurrentVisit) -> Outcome:
    """Enough items have ended well; those that did not are named either way."""
    every, quorum = list(current_visit["wave_of"]), step["waves"]["quorum"]
    share = len(every) * int(quorum[:-1]) if isinstance(quorum, str) else 0
    needed = -(-share // 100) if isinstance(quorum, str) else quorum
    missing = [item for item in every if run["items"][item]["status"] != "completed"]
    number = f"{len(every) - len(missing)} of {len(every)} ended well"
    if len(every) - len(missing) >= needed:
        return told("DONE", [], f"{number}; not: {', '.join(missing)}" if missing else "" if every else NOTHING_LISTED)
    return told("ERROR", missing, f"{number}; {needed} must")


def _pipeline(case: Case) -> Pipeline:
    """What follows is asked of a run that has a pipeline."""
    if case.pipeline is None:
        raise ValueError("no pipeline, nothing follows")
    return case.pipeline


def leg_to(step: str) -> Leg:
    return {"step": step, "mode": "", "only": [], "items": ""}


def follow(case: Case, step: Step, outcome: Outcome, holds: Callable[[When], bool]) -> list[Event]:
    """`holds`: does this condition of a route hold now?"""
    _, rule = ways.taken(ways.rule_for(step, outcome["name"]), outcome["because"], case.run["routes"], holds)
    match rule["do"]:
        case "route":
            return _route(case, step, outcome, rule)
        case "go_on":
            return _go_on(case, step, outcome, rule)
        case "pause":
            return [_again(case, step, outcome["name"]), _paused(case, step, outcome, rule)]
        case "block":
            blocked = new_event.blocked(case.command, reason=rule["reason"], stage=step["stage"] or None, missing=[])
            return [_again(case, step, outcome["name"]), blocked]
        case "finish":
            return _leave(case, step, None) or [new_event.finished(case.command, outcome=rule["as"])]
        case "fail":
            lost = _lost(case, step, outcome)
            if lost and case.run["current_visit"] is not None:
                return _interrupted(case, step, case.run["current_visit"], lost)
            return [
                new_event.failed(
                    case.command, step=step["id"], error=_said(case, step, outcome, rule["reason"]), context=None
                )
            ]


def _route(case: Case, step: Step, outcome: Outcome, rule: records.Route) -> list[Event]:
    run, pipeline = case.run, _pipeline(case)
    legs: list[Leg] = [{**leg} for leg in rule["route"]]
    said = run["decisions"][-1]["feedback"] if step["kind"] == "gate" and run["decisions"] else ""
    for leg in legs[:-1] or legs:
        leg["findings"] = _paths(case, step, rule["with"])
        if said:
            leg["feedback"] = said
    for leg in legs:
        there = step_of(pipeline, leg["step"])
        if leg["only"] and there["kind"] == "cluster" and there["aggregate"]:
            leg["again"] = [*leg["only"], there["aggregate"]["id"]]
    if len(legs) > 1:
        legs[0]["revises"] = True
    events: list[Event] = []
    if rule["restart"]:
        count = sum(1 for restart in run["restarts"] if restart["stage"] == rule["restart"]) + 1
        reason = f"{step['id']}: {outcome['reason'] or outcome['name']} (restart {count})"
        events.append(new_event.stage_restarted(case.command, stage=rule["restart"], reason=reason, to=legs[0]["step"]))
    if pipeline["memory"] == "run":
        numbers = [step_of(pipeline, name)["number"] for name in dict.fromkeys(leg["step"] for leg in legs)]
        events.append(
            new_event.memory_invalidated(case.command, steps=numbers, reason=f"{step['id']} asks for a revision")
        )
    taken = new_event.route_taken(
        case.command,
        route=rule["counter"],
        queue=[*legs, *run["queue"]],
        resets=rule["resets"],
        carry={},
        reason=outcome["reason"] or outcome["name"],
    )
    return [taken, *events]


def _go_on(case: Case, step: Step, outcome: Outcome, rule: records.GoOn) -> list[Event]:
    queue = case.run["queue"]
    if outcome["name"] == "DONE" and queue:
        waiting = queue  # a leg that is done leads to the next leg
    elif not queue:
        waiting = [leg_to(rule["to"])]
    else:
        order = [one["id"] for one in _pipeline(case)["steps"]]
        behind = [leg for leg in queue if order.index(leg["step"]) >= order.index(rule["to"])]
        ahead = behind and behind[0]["step"] == rule["to"]
        waiting = behind if ahead else [leg_to(rule["to"]), *behind]
    stuck = _leave(case, step, waiting[0]["step"])
    if stuck:
        return stuck
    carry: dict[str, HandedOver] = (
        {rule["to"]: {"name": rule["carry"], "paths": _paths(case, step, [])}} if rule["carry"] else {}
    )
    return [
        new_event.route_taken(case.command, route="", queue=waiting, resets=[], carry=carry, reason=outcome["name"])
    ]


def _leave(case: Case, step: Step, ahead: str | None) -> list[Event]:
    """Blocked, where the stage that is left has not recorded its evidence."""
    if not step["stage"]:
        return []
    pipeline = _pipeline(case)
    following = step_of(pipeline, ahead)["stage"] if ahead else "COMPLETE"
    if step["stage"] == following:
        return []
    stages = [one["stage"] for one in pipeline["steps"]]
    if ahead and following in stages and stages.index(following) < stages.index(step["stage"]):
        return []  # a way back needs no proof
    skipped = [name for name, state in case.run["steps"].items() if state["status"] == "skipped"]
    for gate in stage_gates(pipeline, case.run["switches"], skipped):
        if gate["stage"] == step["stage"]:
            recorded = [artifact["path"] for artifact in case.run["artifacts"].values()]
            folder = documents_of(pipeline, case.run)
            missing = [name for name in gate["required"] if f"{folder}/{name}" not in recorded]
            if missing:
                blocked = new_event.blocked(
                    case.command, reason=f"{gate['stage']}->{gate['next']}", stage=step["stage"], missing=missing
                )
                return [_again(case, step, "ERROR"), blocked]
    return []


def _lost(case: Case, step: Step, outcome: Outcome) -> list[str]:
    """The agents that the outcome is about and that had too few tries, because some of these were lost."""
    current_visit = case.run["current_visit"]
    if current_visit is None or step["kind"] not in ("agent", "cluster", "waves"):
        return []
    named = [
        key
        for key in current_visit["seats"]
        if key in outcome["because"] or key.partition("@")[2] in outcome["because"]
    ]
    return [key for key in named if lost_its_tries(seat_at(step, current_visit, key), current_visit["seats"][key])]


def _interrupted(case: Case, step: Step, current_visit: CurrentVisit, lost: list[str]) -> list[Event]:
    """The same leg again, in the same mode. An aggregator draws its conclusion anew; items that are done are known
    as such."""
    run = case.run
    aggregate = step["aggregate"]["id"] if step["kind"] == "cluster" and step["aggregate"] else ""
    kept = {
        key: state
        for key, state in current_visit["seats"].items()
        if key != aggregate and state["results"][-1:] in (["DONE"], ["NEEDS_REVISION"])
    }
    leg: Leg = {**current_visit["leg"], "kept": {key: state for key, state in kept.items() if "@" not in key}}
    again = new_event.route_taken(
        case.command, route="", queue=[leg, *run["queue"]], resets=[], carry={}, reason="LOST"
    )
    who = ", ".join(key.replace("@", " for ") for key in lost)
    paused = new_event.paused(
        case.command,
        kind="outcome",
        reason=f"{step['id']}: interrupted too often, and nobody knows what came of it: {who}",
        step=step["id"],
        feedback="",
        question_of="",
        recommendations=[f"tenuto resume {run['id']}", f"tenuto cancel {run['id']}"],
    )
    return [again, paused]


def _again(case: Case, step: Step, reason: str) -> Event:
    """When the run is let go on, it tries this step again."""
    return new_event.route_taken(
        case.command,
        route="",
        queue=[leg_to(step["id"]), *case.run["queue"]],
        resets=[],
        carry={},
        reason=reason,
    )


def _paused(case: Case, step: Step, outcome: Outcome, rule: records.Pause) -> Event:
    return new_event.paused(
        case.command,
        kind="outcome",
        reason=_said(case, step, outcome, rule["reason"]),
        step=step["id"],
        feedback=outcome["reason"],
        question_of="",
        recommendations=rule["recommendations"],
    )


def _said(case: Case, step: Step, outcome: Outcome, reason: str) -> str:
    because = f" ({', '.join(outcome['because'])})" if outcome["because"] else ""
    told = f": {outcome['reason']}" if outcome["reason"] else ""
    why = _why(case, step, outcome)
    cause = reason or f"{step['id']} ended with {outcome['name']}"
    return f"{cause}{because}{told}" + (f": {why}" if why and why not in told else "")


def _why(case: Case, step: Step, outcome: Outcome) -> str:
    """What the first of those that it failed for said last, in one line."""
    because = outcome["because"]
    for attempt in reversed(case.run["attempts"].values()):
        seat = str(attempt["extra"].get("seat", "")).partition("@")[0]
        if attempt["step"] == step["id"] and because and because[0] in (seat, attempt["item"]):
            if attempt["verdict"] == "DONE":
                return ""
            refused = attempt["verdict"] == "NEEDS_REVISION" and outcome["name"] == "ERROR"
            word = "it asked for a revision, which it may not: " if refused else ""
            return word + str(attempt["summary"].strip().partition("\n")[0][:300])
    return ""


def _paths(case: Case, step: Step, names: list[str]) -> list[str]:
    """The step's outputs, by their paths below the documents' folder."""
    if names:
        return names
    if step["kind"] == "agent":
        writing = [step["agent"]]
    elif step["kind"] == "cluster":
        writing = [step["aggregate"]] if step["aggregate"] else members_of(step)
    else:
        return []
    return [path for seat in writing for path in [*seat["out"], *_printed(seat)]]


def _printed(seat: Seat) -> list[str]:
    """The document that a command's standard output becomes."""
    return [seat["command"]["stdout"]] if seat["command"] and seat["command"]["stdout"] else []
