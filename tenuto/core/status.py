"""The statuses of a run, of its steps and items, and the verdicts: which there are, and the few sets they form.

Of a run:

    UNDER_WAY    work goes on
    ACTIVE       steps and attempts may start: under way, or a finished proof of concept that may graduate
    RESUMABLE    at rest until Resume, which leads back to what the run was
    WAITING      at rest until a person decides, or a stated time has come; no agent starts
    RESTING      at rest; blocked runs, too, which a person or new evidence unblocks
    FINAL        ended for good: nothing leads on from here, except from a proof of concept to its debt
    ENDED        FINAL or failed; of a failed run a step or a stage may be tried again
    WELL         what a run finishes as
    BADLY        what it ends as otherwise
    OVER         finished or ended

Of a step or an item:

    BEGUN        work on it is going on or done
    PASSED       nothing is left to do in it, as far as the run is concerned
    UNSTARTED    it was planned, and never started
    UNDONE       it may still be done

Of an attempt:

    VERDICTS     what came of it, best first; SEVERITY: how bad each is
    ANSWERS      these are answers, whether or not they are content; an ERROR is none
    REPORTED     what can be reported: a verdict, or why there is none yet

A run that its pipeline finished well may have open ends (open_ends): the engine knows of something that was not done.
Everybody is told so in the place of its status (shown_status), and no program that reads an exit status takes it for
done. Rules, the journal and state files keep to the status: the pipeline's routes led there.

    waits_for(run)    what a run waits for; None where it goes on, or has ended
    moment_of(run)    the same as one of MOMENTS, for a run that rests: when people may want to be told

FOLLOWED_BY says which status may come after which in one step. Rules elsewhere say when; no rule leads anywhere else.
The picture in docs/reference/statuses.md is drawn from this table (`picture`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records.action import ReplyVerdict
    from tenuto.core.records.run import (
        Attempt,
        Block,
        Gate,
        Moment,
        OpenEnds,
        Pause,
        Run,
        ShownStatus,
        Status,
        StepStatus,
        Verdict,
        Waiting,
        WaitingKind,
        Waits,
    )

    HandedOutState = Literal["to do", "at work", "ended"]

UNDER_WAY: tuple[Status, ...] = ("created", "running", "restarting")
ACTIVE: tuple[Status, ...] = (*UNDER_WAY, "poc-complete")
RESUMABLE: tuple[Status, ...] = ("paused", "stopped", "parked")
WAITING: tuple[Status, ...] = ("waiting_gate", *RESUMABLE)
RESTING: tuple[Status, ...] = (*WAITING, "blocked")
BADLY: tuple[Status, ...] = ("failed", "cancelled")
FINAL: tuple[Status, ...] = ("completed", "cancelled", "graduated")
ENDED: tuple[Status, ...] = (*FINAL, "failed")
WELL: tuple[Status, ...] = ("completed", "poc-complete", "graduated")
OVER: tuple[Status, ...] = (*ENDED, "poc-complete")
EVERY: tuple[Status, ...] = (*ACTIVE, *RESTING, *ENDED)

BEGUN: tuple[StepStatus, ...] = ("running", "completed")
PASSED: tuple[StepStatus, ...] = ("completed", "skipped")
UNSTARTED: tuple[StepStatus, ...] = ("pending", "skipped")
UNDONE: tuple[StepStatus, ...] = ("pending", "failed")

VERDICTS: tuple[Verdict, ...] = ("DONE", "NEEDS_REVISION", "ERROR")
SEVERITY: dict[str, int] = {verdict: rank for rank, verdict in enumerate(VERDICTS)}
ANSWERS: tuple[Verdict, ...] = ("DONE", "NEEDS_REVISION")
REPORTED: tuple[ReplyVerdict, ...] = (*VERDICTS, "QUESTION", "PARKED")

_FROM_ACTIVE: tuple[Status, ...] = ("running", "restarting", *RESTING, *WELL, *BADLY)
_FROM_REST: tuple[Status, ...] = (*ACTIVE, "blocked", *BADLY)
FOLLOWED_BY: dict[Status, tuple[Status, ...]] = {
    "created": _FROM_ACTIVE,
    "running": _FROM_ACTIVE,
    "restarting": _FROM_ACTIVE,
    "poc-complete": _FROM_ACTIVE,
    "waiting_gate": (*_FROM_REST, "completed"),
    "paused": _FROM_REST,
    "stopped": (*_FROM_REST, "paused"),
    "parked": (*_FROM_REST, "paused"),
    "blocked": ("running", "restarting", "paused", "stopped", "completed", *BADLY),
    "failed": ("running", "restarting"),
    "completed": ("poc-complete",),
    "cancelled": (),
    "graduated": (),
}


def may_follow(before: Status, after: Status) -> bool:
    return after == before or after in FOLLOWED_BY[before]


_KINDS: dict[str, WaitingKind] = {"question": "question", "budget": "limit", "parked": "time"}


def waits_for(run: Run) -> Waiting | None:
    """A gate before a pause, a pause before a block: where several are recorded, the first has to be answered first."""
    if run["gate"] is not None:
        return _at_gate(run, run["gate"])
    if run["pause"] is not None:
        return _in_pause(run, run["pause"])
    if run["blocked"] is not None:
        return blocked_view(run, run["blocked"])
    return None


LONGEST_LINE = 200  # characters of the line that stands for a longer text in a list


def waits_in_short(run: Run) -> Waits | None:
    """The same in one line, for lists: kept with every event, so it looks at nothing else."""
    gate, pause, block = run["gate"], run["pause"], run["blocked"]
    if gate is not None:
        short = _in_short("gate", gate["opened_at"], gate["prompt"])
        short["documents"], short["fields"] = len(gate["shown"]), len(gate.get("fields", {}))
        return short
    if pause is not None:
        short = _in_short(_kind_of(run, pause), run["paused_at"] or run["stopped_at"], pause["reason"])
        short["until"] = pause["until"]
        return short
    return _in_short("blocked", None, block["reason"]) if block is not None else None


def _in_short(kind: WaitingKind, since: str | None, text: str) -> Waits:
    line = text.strip().partition("\n")[0][:LONGEST_LINE]
    return {"kind": kind, "since": since, "until": "", "text": line, "documents": 0, "fields": 0}


def _kind_of(run: Run, pause: Pause) -> WaitingKind:
    return "time" if run["status"] == "parked" else _KINDS.get(pause["kind"], "pause")


def _nothing(kind: WaitingKind, reason: str, step: str | None) -> Waiting:
    return {
        "kind": kind,
        "cause": kind,
        "reason": reason,
        "step": step,
        "since": None,
        "until": "",
        "gate": "",
        "name": "",
        "options": [],
        "shown": [],
        "summaries": [],
        "fields": [],
        "asked_by": "",
        "missing": [],
        "recommendations": [],
    }


def _at_gate(run: Run, gate: Gate) -> Waiting:
    return _nothing("gate", gate["prompt"], run["position"]) | {
        "since": gate["opened_at"],
        "gate": gate["id"],
        "name": gate["name"],
        "options": list(gate["options"]),
        "shown": [{"path": entry["path"], "sha256": entry["sha256"]} for entry in gate["shown"]],
        "summaries": _summaries(run, [entry["path"] for entry in gate["shown"]]),
        "fields": [{**field, "name": name} for name, field in gate.get("fields", {}).items()],
    }


def _summaries(run: Run, paths: list[str]) -> list[str]:
    """One line for each attempt that made one of these files."""
    makers = [artifact["attempt"] for artifact in run["artifacts"].values() if artifact["path"] in paths]
    made = [run["attempts"][name] for name in dict.fromkeys(makers) if name in run["attempts"]]
    return [f"{attempt['role']}: {' '.join(attempt['summary'].split())}" for attempt in made if attempt["summary"]]


def _in_pause(run: Run, pause: Pause) -> Waiting:
    return _nothing(_kind_of(run, pause), pause["reason"], pause["step"]) | {
        "cause": pause["kind"],
        "since": run["paused_at"] or run["stopped_at"],
        "until": pause["until"],
        "asked_by": pause["question_of"],
        "recommendations": list(pause["recommendations"]),
    }


def blocked_view(run: Run, block: Block) -> Waiting:
    return _nothing("blocked", block["reason"], run["position"]) | {"missing": list(block["missing"])}


def open_ends(run: Run) -> OpenEnds:
    """Of a run that an engine led to a good end. A judgement from before the items were made is not among them: what it
    asked for was handed on to those who made them."""
    ends: OpenEnds = {"failed": [], "never_started": [], "not_done": [], "checks": []}
    if run["status"] not in WELL or run["pipeline"]["hash"] is None:
        return ends
    for name, item in run["items"].items():
        if item["status"] == "failed":
            ends["failed"].append(name)
        elif item["status"] in UNSTARTED:
            ends["never_started"].append(name)
    steps = list(run["steps"])
    made = [attempt["step"] for attempt in run["attempts"].values() if attempt["item"] and attempt["step"] in steps]
    behind = steps[max(steps.index(step) for step in made) + 1 :] if made else steps
    ends["not_done"] = [step for step in behind if run["steps"][step]["verdict"] not in (None, "", "DONE")]
    last: dict[str, str] = {}
    for attempt in run["attempts"].values():
        for check in attempt["receipt"].get("checks", ()):
            last[check["command"]] = check.get("reason", "")
    ends["checks"] = [command for command, reason in last.items() if reason]
    return ends


def count_open_ends(run: Run) -> int:
    ends = open_ends(run)
    return len(ends["failed"]) + len(ends["never_started"]) + len(ends["not_done"]) + len(ends["checks"])


_WITH_FAILURES: dict[Status, ShownStatus] = {
    "completed": "completed with failures",
    "poc-complete": "poc-complete with failures",
    "graduated": "graduated with failures",
}
SHOWN: tuple[ShownStatus, ...] = (*EVERY, *_WITH_FAILURES.values())
FAILED_IN_PART: tuple[ShownStatus, ...] = tuple(_WITH_FAILURES.values())


def shown_status(status: Status, left: int) -> ShownStatus:
    """`left`: how many open ends the run has. `completed` says that everything in it was done."""
    return _WITH_FAILURES.get(status, status) if left else status


def shown_status_of(run: Run) -> ShownStatus:
    return shown_status(run["status"], count_open_ends(run))


MOMENTS: tuple[Moment, ...] = (
    "asks",  # a person at the engine's own terminal
    "gate",
    "question",
    "limit",
    "time",
    "pause",
    "blocked",
    "completed",
    "completed with failures",
    "failed",
    "cancelled",
)


def moment_of(run: Run) -> Moment:
    waiting = waits_for(run)
    if run["status"] in BADLY:
        return "cancelled" if run["status"] == "cancelled" else "failed"
    if waiting is not None:
        return waiting["kind"]
    return "completed with failures" if count_open_ends(run) else "completed"


def picture() -> str:
    """FOLLOWED_BY as Mermaid text. Statuses that the same ones follow stand in one box."""
    boxes: dict[tuple[Status, ...], list[Status]] = {}
    for status, following in FOLLOWED_BY.items():
        boxes.setdefault(following, []).append(status)
    names = {status: statuses[0] for statuses in boxes.values() for status in statuses}
    lines = ["flowchart LR"]
    for statuses in boxes.values():
        lines.append(f'    {statuses[0]}["{"<br/>".join(statuses)}"]')
    for following, statuses in boxes.items():
        for target in dict.fromkeys(names[status] for status in following):
            if target != statuses[0]:
                lines.append(f"    {statuses[0]} --> {target}")
    return "\n".join(lines) + "\n"


# ---- attempts that were handed out (engine/guided.py) ----------------------------------------------


def handed_out_state(attempt: Attempt) -> HandedOutState:
    """What hooks know of it. `ended`: its agent has said its last word, which waits to be reported."""
    if attempt["extra"].get("said"):
        return "ended"
    return "at work" if attempt["extra"].get("agent_id") else "to do"
