"""What happened, as entries of history.md: a heading with the time, then a line per fact.

    ## 2026-01-20T00:06:00.000Z - Implementer Phase Completed
    - **Task:** rename-commands
    - **Mode:** standard
    - **Action:** END_PHASE phase: implementer status: success
    - **Duration:** 360000ms
    - **Status:** success

Each entry begins with an empty line, so that it stands apart from whatever is there already. A text
that others wrote is put on one line: it cannot end an entry or begin another.
"""

from __future__ import annotations

from tenuto.dialects.context.places import HISTORY, NAME, phase_of, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Run

    Facts = dict[str, Any]

HEADER = b"# Context History\n"


def log(run: Run, events: list[Any]) -> dict[str, bytes]:
    if run["dialects"][NAME].get("as_found"):
        return {}
    adopted = any(event["type"] == "Adopted" for event in events)
    # What lay in an adopted folder is no news: its own history tells of it.
    told = [event for event in events if not (adopted and event["type"] == "ArtifactStored" and event["by"] == "external")]
    text = "".join(entry(run, event) for event in told)
    return {HISTORY: text.encode()} if text else {}


def entry(run: Run, event: Any) -> str:
    """Empty where an event is no news for a reader of the history."""
    heading, body = passage(run, event)
    return f"\n## {heading}\n{body}\n" if heading else ""


def passage(run: Run, event: Any) -> tuple[str, str]:
    """(heading, lines): also what a search finds."""
    teller = _TELLERS.get(event["type"])
    told = teller(run, event) if teller else None
    if told is None:
        return "", ""
    title, facts = told
    shown = {"Task": run["id"], "Mode": run["mode"], **facts}
    lines = [f"- **{name}:** {_line(value)}" for name, value in shown.items() if value not in (None, "", [])]
    return f"{event['at']} - {title}", "\n".join(lines)


def _line(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.split())


def _title(name: str) -> str:
    """`test-writer:task-1` -> `Test-Writer:task-1`, as people write it."""
    role, colon, rest = name.partition(":")
    return "-".join(word[:1].upper() + word[1:] for word in role.split("-")) + colon + rest


def _run_started(run: Run, e: Any) -> tuple[str, Facts]:
    return "Task Initialized", {"Workflow": e["pipeline"]["name"], "Action": "INIT", "Status": "running"}


def _step_started(run: Run, e: Any) -> tuple[str, Facts] | None:
    if e["hop"]:
        return None  # under an engine, phases are what its agents do
    phase = phase_of(e)
    return f"{_title(phase)} Phase Started", {"Action": f"START_PHASE phase: {phase}", "Status": "running"}


def _step_ended(run: Run, e: Any) -> tuple[str, Facts] | None:
    if "unseen" in run["dialects"][NAME]:
        from tenuto.dialects.context.engine import is_driven_step

        if is_driven_step(run, e["step"], e["at"]):
            return None
    phase, status = phase_of(e), e["status"]
    took = next(
        (v["duration_ms"] for v in reversed(run["visits"]) if v["step"] == e["step"] and v["ended_at"] == e["at"]), None
    )
    return f"{_title(phase)} Phase {'Completed' if status == 'success' else 'Failed'}", {
        "Action": f"END_PHASE phase: {phase} status: {status}",
        "Duration": None if took is None else f"{took}ms",
        "Status": status,
        "Summary": e["summary"],
    }


def _attempt(run: Run, e: Any) -> tuple[str, Facts] | None:
    if "seat" not in run["attempts"][e["attempt"]]["extra"]:
        return None
    from tenuto.dialects.context.engine import told_attempt

    phase, status, took, summary = told_attempt(run, e["attempt"])
    if e["type"] == "AttemptDispatched":
        return f"{_title(phase)} Phase Started", {"Action": f"START_PHASE phase: {phase}", "Status": "running"}
    if not status:
        return None
    return f"{_title(phase)} Phase {'Completed' if status == 'success' else 'Failed'}", {
        "Action": f"END_PHASE phase: {phase} status: {status}", "Duration": f"{took}ms", "Status": status, "Summary": summary,
    }  # fmt: skip


def _paused(run: Run, e: Any) -> tuple[str, Facts]:
    return "Task Paused", {
        "Action": "PAUSE", "Phase": e["step"], "Reason": e["reason"], "Recommendations": e["recommendations"],
        "Status": "paused",
    }  # fmt: skip


def _gate_opened(run: Run, e: Any) -> tuple[str, Facts]:
    return f"{_title(e['name'])} Gate Set", {
        "Action": f"SET_GATE gate: {e['name']}", "Prompt": e["prompt"],
        "Artifacts": [shown["path"] for shown in e["shown"]], "Status": "waiting_gate",
    }  # fmt: skip


def _gate_decided(run: Run, e: Any) -> tuple[str, Facts]:
    ending = {"approve": "Approved", "reject": "Rejected", "revise": "Sent Back"}.get(e["decision"], "Decided")
    return f"{_title(e['name'])} Gate {ending}", {
        "Action": f"RESUME decision: {e['decision']}", "Feedback": e["feedback"], "By": e["who"],
        "Status": status_of(run),
    }  # fmt: skip


def _resumed(run: Run, e: Any) -> tuple[str, Facts]:
    return "Task Resumed", {"Action": f"RESUME decision: {e['decision']}", "Status": status_of(run)}


def _failed(run: Run, e: Any) -> tuple[str, Facts]:
    return "Task Failed", {"Phase": e["step"], "Reason": e["error"], "Status": "failed"}


def _finished(run: Run, e: Any) -> tuple[str, Facts]:
    title = {"completed": "Task Completed", "poc-complete": "POC Complete", "graduated": "POC Graduated"}
    return title[e["outcome"]], {"Status": e["outcome"]}


def _cancelled(run: Run, e: Any) -> tuple[str, Facts]:
    return "Task Cancelled", {"Reason": e["reason"], "Status": status_of(run)}


def _artifact_stored(run: Run, e: Any) -> tuple[str, Facts] | None:
    if e["name"] == "audit-history":
        return None
    name, _, task = e["name"].partition("/")
    words = [f"STORE phase: {name}"]
    if task:
        words.append(f"task_id: {task}")
    if e["attempt"] and e["attempt"] not in run["attempts"]:
        words.append(f"iteration: {e['attempt'].rpartition('-')[2]}")
    return f"{_title(e['name'])} Stored", {
        "Action": " ".join(words) if e["by"] != "external" else "changed by another program",
        "File": e["path"], "Size": f"{e['size']} bytes", "SHA-256": e["sha256"],
    }  # fmt: skip


def _items_planned(run: Run, e: Any) -> tuple[str, Facts]:
    return "Tasks Planned", {"Tasks": len(e["items"]), "Waves": len(e["waves"])}


def _absorbed(run: Run, e: Any) -> tuple[str, Facts]:
    return "External Edit", {"Action": "changed by another program", "File": e["path"], "SHA-256": e["sha256"]}


def _noted(run: Run, e: Any) -> tuple[str, Facts]:
    return e["text"], e["extra"]


_TELLERS: dict[str, Callable[[Run, Any], tuple[str, Facts] | None]] = {
    "RunStarted": _run_started, "StepStarted": _step_started, "StepEnded": _step_ended, "Paused": _paused,
    "GateOpened": _gate_opened, "GateDecided": _gate_decided, "Resumed": _resumed, "Failed": _failed,
    "AttemptDispatched": _attempt, "AttemptFinished": _attempt, "AttemptLost": _attempt, "Finished": _finished, "Cancelled": _cancelled, "ArtifactStored": _artifact_stored,
    "ItemsPlanned": _items_planned, "ForeignEditAbsorbed": _absorbed, "Noted": _noted,
}  # fmt: skip
