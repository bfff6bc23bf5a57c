"""What a run waits for, and what would follow each answer that a person can give.

    waiting_view(run, surroundings)    what core says that it waits for (core/status.py), with every possible answer

What follows an answer is not described here: each answer is put to core as the command that it would become. decide()
accepts or refuses it, a copy of the run takes the events, and todo() says what is due then. What an engine does by
itself then is done to the copy, too: visits begin and end, and a plan is read as it lies there, which is as the gate
shows it, or the approval is refused. It ends where an agent must be started, a person asked, or something be done
that is known only once it has been done. Nothing is written.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from tenuto.core.budget import in_words
from tenuto.core.decide import decide
from tenuto.core.fold import fold
from tenuto.core.pipeline.params import samples
from tenuto.core.records.run import Waiting
from tenuto.core.status import OVER, waits_for
from tenuto.core.todo import todo
from tenuto.errors import TenutoError
from tenuto.show.sentences import sentence

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.action import Action
    from tenuto.core.records.commands import Command, DecideGate
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Account, Limits, Repo, Run, Shown

_MOST_MOVES = 40  # visits that begin and end by themselves behind an answer; a checked pipeline has far fewer


class DueView(TypedDict):
    """Something that would be due next."""

    act: str  # dispatch, ask, do, plan, pause, wake
    step: str
    what: str  # the attempt, the engine's action, the limit


class StillView(TypedDict):
    """What is left of a limit."""

    step: str  # empty: of the whole run
    unit: str
    limit: int
    left: float


class AnswerView(TypedDict):
    answer: str  # approve, reject, revise, answer, raise, resume, retry, cancel
    command: str  # what a person types for it
    refused: str  # why core would refuse it now; empty where it would not
    status: str  # the run's status behind it
    events: list[str]  # what would be recorded, as sentences
    due: list[DueView]  # what would be due then; empty: nothing, the run rests
    told: str  # all that in one line, for a button: "5 items in 3 waves, starts 01, 02"
    budget: list[StillView]  # what would be left of each limit then, less what is set aside for what is due


class WaitingView(Waiting):
    answers: list[AnswerView]


class Surroundings(NamedTuple):
    """What core needs to know besides the run."""

    pipeline: Pipeline | None
    repo: Repo
    now: str
    shown: list[Shown] | None = None
    """The gate's files as they are now; None: as they were shown."""
    approved: Sequence[str] = ()
    """The gates that stand approved (core/approvals.py)."""
    plan: Callable[[Run, str], Command] | None = None
    """What the plan of a step says (engine/actions.plan_for); None: nobody can look."""
    files: Callable[[Run, str], dict[str, bool]] | None = None
    """What the condition of a step asks about files (engine/actions.files_for)."""


# ---- what would follow


def waiting_view(run: Run, surroundings: Surroundings) -> WaitingView | None:
    waiting = waits_for(run)
    if waiting is None:
        return None
    answers = [_follow(run, surroundings, *possible) for possible in _possible(run, waiting, surroundings)]
    return {**waiting, "answers": answers}


def _possible(run: Run, waiting: Waiting, surroundings: Surroundings) -> Iterator[tuple[str, str, list[Command]]]:
    """(answer, command line, the commands that it becomes)"""
    name = run["id"]
    match waiting["kind"]:
        case "gate":
            for option in waiting["options"]:
                more = " --feedback '...'" if option == "revise" else set_words(waiting) if option == "approve" else ""
                yield option, f"tenuto {option} {name}{more}", [_decision(run, option, surroundings)]
            return
        case "question":
            place = run["attempts"][waiting["asked_by"]]["extra"]["seat"] if waiting["asked_by"] else ""
            recorded: Command = {"do": "RecordAnswers", "answers": {f"question:{place}": "..."}}
            yield "answer", f"tenuto answer {name} 'your answer'", [recorded, _RESUME]
        case "limit":
            yield (
                "raise",
                (waiting["recommendations"] or [f"tenuto resume {name} --limit ..."])[0],
                _raised(run, surroundings),
            )
            yield "resume", f"tenuto resume {name}", [_RESUME]
        case "time":
            yield "resume", f"tenuto resume {name} --now", [_RESUME_NOW]
        case "blocked":
            retry: Command = {
                "do": "RetryStep",
                "step": waiting["step"] or "",
                "approved": list(surroundings.approved),
            }
            yield "retry", f"tenuto retry {name} {waiting['step'] or 'STEP'}", [retry]
        case "pause":
            yield "resume", f"tenuto resume {name}", [_RESUME]
    cancel: Command = {"do": "Cancel"}
    yield "cancel", f"tenuto cancel {name}", [cancel]


def set_words(waiting: Waiting) -> str:
    """ " --set env=... --set why=...", for the fields of a gate that must be answered."""
    needed = [field["name"] for field in waiting["fields"] if field["required"] and field["default"] is None]
    return "".join(f" --set {name}=..." for name in needed)


_RESUME: Command = {"do": "Resume", "decision": "retry"}
_RESUME_NOW: Command = {"do": "Resume", "decision": "retry", "early": True}


def _decision(run: Run, option: str, surroundings: Surroundings) -> Command:
    """As a person would decide who brings along what the run's protection asks for; of a form, its defaults and
    something that fits for the rest."""
    gate = run["gate"]
    shown = surroundings.shown if surroundings.shown is not None else list(gate["shown"]) if gate else []
    level = run["settings"].get("gate_protection", {}).get("level", "guarded")
    command: DecideGate = {
        "do": "DecideGate",
        "decision": option,
        "who": "a person",
        "shown": shown,
        "proof": {"level": level},
    }
    fields = gate.get("fields", {}) if gate and option == "approve" else {}
    if fields:
        command["answers"] = samples(fields)
    return command


def _raised(run: Run, surroundings: Surroundings) -> list[Command]:
    """The limit that core names when the run goes on without a change, taken away."""
    if surroundings.pipeline is None:
        return [_RESUME]
    resumed, _ = _played(_copied(run), surroundings, [_RESUME])
    short = next((one["short"] for one in _due(resumed, surroundings) if one["act"] == "pause"), None)
    if short is None:
        return [_RESUME]
    lifted: Limits = {short["unit"]: None}
    steps = {short["step"]: lifted} if short["step"] else {}
    changed: Command = {"do": "ChangeBudget", "limits": {} if short["step"] else lifted, "steps": steps}
    return [changed, _RESUME]


def _follow(run: Run, surroundings: Surroundings, answer: str, command: str, asked: Sequence[Command]) -> AnswerView:
    try:
        after, events = _played(_copied(run), surroundings, asked)
        due = _due(after, surroundings)
        for _ in range(_MOST_MOVES):
            move = _move(after, surroundings, due[0]) if due else None
            if move is None:
                break
            after, more = _played(after, surroundings, [move])
            events += more
            due = _due(after, surroundings)
    except TenutoError as refusal:
        return {
            "answer": answer,
            "command": command,
            "refused": refusal.message,
            "status": run["status"],
            "events": [],
            "due": [],
            "told": "",
            "budget": [],
        }
    return {
        "answer": answer,
        "command": command,
        "refused": "",
        "status": after["status"],
        "events": [sentence(event) for event in events],
        "due": [due_view(one) for one in due],
        "told": _told(after, events, due),
        "budget": list(_still(after, due)),
    }


_WITHOUT_EFFECT = ("write-request", "initialize-memory", "prune-memory", "extract-lessons", "promote-memory")


def _move(run: Run, surroundings: Surroundings, due: Action) -> Command | None:
    """What an engine does by itself, and what comes of it is known before; None: it would have to be done first."""
    match due["act"]:
        case "begin":
            begin: Command = {"do": "BeginVisit"}
            if surroundings.files is not None:
                begin = {"do": "BeginVisit", "files": surroundings.files(run, due["step"])}
            return begin
        case "conclude":
            return {"do": "Conclude"}
        case "plan":
            return surroundings.plan(run, due["step"]) if surroundings.plan is not None else None
        case "do" if due["action"] in _WITHOUT_EFFECT:
            return {"do": "RecordAction", "action": due["as"], "detail": {}}
    return None


def _copied(run: Run) -> Run:
    """One that events can be folded into. Of what there is much of, only what fold changes is copied."""
    many = ("attempts", "visits", "artifacts", "decisions", "commits")
    copied = copy.deepcopy({key: value for key, value in run.items() if key not in many})
    attempts = {name: {**attempt, "extra": {**attempt["extra"]}} for name, attempt in run["attempts"].items()}
    rest = {"decisions": list(run["decisions"]), "commits": list(run["commits"]), "artifacts": {**run["artifacts"]}}
    whole = {**copied, **rest, "attempts": attempts, "visits": [{**visit} for visit in run["visits"]]}
    return cast("Run", {key: whole[key] for key in run})


def _played(run: Run, surroundings: Surroundings, asked: Sequence[Command]) -> tuple[Run, list[Event]]:
    """The run behind these commands, which changes it, and what was recorded."""
    recorded: list[Event] = []
    for command in asked:
        stamped = copy.copy(command)
        stamped["at"], stamped["by"] = surroundings.now, "a person"
        events = decide(surroundings.pipeline, surroundings.repo, run, stamped)
        run = fold(events, run)
        recorded += events
    return run, recorded


_NAMED = 4  # of what starts; the others are counted


def _told(run: Run, events: Sequence[Event], due: Sequence[Action]) -> str:
    """5 items in 3 waves, starts 01, 02; back to planning, starts planning-2; the run ends as failed"""
    parts: list[str] = []
    for event in events:
        if event["type"] == "RouteTaken" and event["route"] and event["queue"]:
            count = run["routes"].get(event["route"], 1)
            parts.append(f"back to {event['queue'][0]['step']} ({event['route']}, {count} so far)")
        elif event["type"] == "ItemsPlanned" and event["groups"]:
            items, waves = sum(map(len, event["groups"])), len(event["waves"])
            parts.append(f"{items} item{'s' * (items != 1)} in {waves} wave{'s' * (waves != 1)}")
    starts = [one["item"] or one["attempt"] for one in due if one["act"] == "dispatch"]
    if starts:
        more = f" and {len(starts) - _NAMED} more" if len(starts) > _NAMED else ""
        parts.append(f"starts {', '.join(starts[:_NAMED])}{more}")
    for one in due:
        if one["act"] == "pause":
            parts.append(f"pauses: {in_words(one['short'])}")
        elif one["act"] == "ask":
            parts.append(f"asks at {one['step']}")
        elif one["act"] in ("plan", "do"):
            parts.append(f"goes on with {one['step']}")
    if not due:
        parts.append(f"the run ends as {run['status']}" if run["status"] in OVER else f"the run is {run['status']}")
    return ", ".join(parts)


def _still(run: Run, due: Sequence[Action]) -> Iterator[StillView]:
    accounts: list[tuple[str, Account]] = [("", run["budget"]), *run["budget"]["steps"].items()]
    starting = [one for one in due if one["act"] == "dispatch"]
    for step, account in accounts:
        wanted = [one["reserved"] for one in starting if step in ("", one["step"])]
        for unit, limit in account["limits"].items():
            if limit is not None:
                held = account["spent"].get(unit, 0) + account["reserved"].get(unit, 0)
                held = account["busy_ms"] / 1000 if unit == "wall_clock" else held
                more = sum(one.get(unit, 0) for one in wanted)
                yield {"step": step, "unit": unit, "limit": limit, "left": limit - held - more}


def _due(run: Run, surroundings: Surroundings) -> list[Action]:
    """What todo() asks for; nothing where a run is led by hand."""
    if surroundings.pipeline is None or run["driver"] == "manual":
        return []
    return todo(surroundings.pipeline, run, surroundings.now)


def due_view(action: Action) -> DueView:
    what = ""
    if action["act"] == "dispatch":
        what = action["attempt"]
    elif action["act"] == "do":
        what = action["action"]
    elif action["act"] == "pause":
        what = action["unit"]
    elif action["act"] == "wake":
        what = action["at"]
    return {"act": action["act"], "step": action["step"] or "", "what": what}
