"""What happened, as entries of history.md: a heading with the time, then a line per fact.

    ## 2026-01-20T00:06:00.000Z - Implementer Phase Completed
    - **Task:** rename-commands
    - **Mode:** standard
    - **Action:** END_PHASE phase: implementer status: success
    - **Duration:** 360000ms
    - **Status:** success

Each entry begins with an empty line, so that it stands apart from what is there already. A text
that others wrote is put on one line: it cannot end an entry or begin another.
"""

from __future__ import annotations

from tenuto.core.times import between
from tenuto.views.context.state import (
    HISTORY,
    as_found,
    is_driven,
    is_driven_step,
    phase_name,
    phase_of_attempt,
    result_of_attempt,
    status_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.events import (
        ArtifactStored,
        AttemptDispatched,
        AttemptFinished,
        AttemptLost,
        Event,
        Failed,
        GateDecided,
        GateOpened,
        Paused,
        StepEnded,
    )
    from tenuto.core.records.run import Json, Run

    Facts = Json  # name -> value; a value that is empty is left out
    Entry = tuple[str, Facts]  # title and facts

HEADER = b"# Context History\n"
_GATE_ENDINGS = {"approve": "Approved", "reject": "Rejected", "revise": "Sent Back"}
_OUTCOMES = {"completed": "Task Completed", "poc-complete": "POC Complete", "graduated": "POC Graduated"}


def log(run: Run, events: list[Event]) -> dict[str, bytes]:
    if as_found(run):
        return {}
    adopted = any(event["type"] == "Adopted" for event in events)
    # What lay in an adopted folder is no news: its own history tells of it.
    news = [
        event for event in events if not (adopted and event["type"] == "ArtifactStored" and event["by"] == "external")
    ]
    text = "".join(_shown(run, event) for event in news)
    return {HISTORY: text.encode()} if text else {}


def _shown(run: Run, event: Event) -> str:
    """Empty where an event is no news for a reader of the history."""
    entry = _entry(run, event)
    if entry is None:
        return ""
    title, facts = entry
    named = {"Task": run["id"], "Mode": run["mode"], **facts}
    lines = [f"- **{name}:** {_line(value)}" for name, value in named.items() if value not in (None, "", [])]
    return "\n".join([f"\n## {event['at']} - {title}", *lines, ""])


def _line(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.split())


def _title(name: str) -> str:
    """`test-writer:task-1` -> `Test-Writer:task-1`, as people write it."""
    role, colon, rest = name.partition(":")
    return "-".join(word[:1].upper() + word[1:] for word in role.split("-")) + colon + rest


def _entry(run: Run, event: Event) -> Entry | None:
    match event["type"]:
        case "RunStarted":
            facts = {"Workflow": event["pipeline"]["name"], "Action": "INIT", "Status": "running"}
            return "Task Initialized", facts
        case "StepStarted":
            # Under an engine, phases are what its agents do.
            return None if event["leg"] else _phase_started(phase_name(event["step"], event["item"]))
        case "StepEnded":
            return _step_ended(run, event)
        case "AttemptDispatched" | "AttemptFinished" | "AttemptLost":
            return _attempt(run, event)
        case "Paused":
            return _paused(event)
        case "GateOpened":
            return _gate_opened(event)
        case "GateDecided":
            return _gate_decided(run, event)
        case "Resumed":
            return "Task Resumed", {"Action": f"RESUME decision: {event['decision']}", "Status": status_of(run)}
        case "Failed":
            return _failed(event)
        case "Finished":
            return _OUTCOMES[event["outcome"]], {"Status": event["outcome"]}
        case "Cancelled":
            return "Task Cancelled", {"Reason": event["reason"], "Status": status_of(run)}
        case "ArtifactStored":
            return _artifact_stored(run, event)
        case "ItemsPlanned":
            return "Tasks Planned", {"Tasks": len(event["items"]), "Waves": len(event["waves"])}
        case "ForeignEditAbsorbed":
            facts = {"Action": "changed by another program", "File": event["path"], "SHA-256": event["sha256"]}
            return "External Edit", facts
        case "Noted":
            return event["text"], event["extra"]
    return None


def _phase_started(phase: str) -> Entry:
    return f"{_title(phase)} Phase Started", {"Action": f"START_PHASE phase: {phase}", "Status": "running"}


def _phase_ended(phase: str, status: str, duration_ms: int | None, summary: str) -> Entry:
    return f"{_title(phase)} Phase {'Completed' if status == 'success' else 'Failed'}", {
        "Action": f"END_PHASE phase: {phase} status: {status}",
        "Duration": None if duration_ms is None else f"{duration_ms}ms",
        "Status": status,
        "Summary": summary,
    }


def _step_ended(run: Run, event: StepEnded) -> Entry | None:
    if is_driven(run) and is_driven_step(run, event["step"], event["at"]):
        return None
    visits = (v for v in reversed(run["visits"]) if v["step"] == event["step"] and v["ended_at"] == event["at"])
    duration_ms = next((visit["duration_ms"] for visit in visits), None)
    return _phase_ended(phase_name(event["step"], event["item"]), event["status"], duration_ms, event["summary"])


def _attempt(run: Run, event: AttemptDispatched | AttemptFinished | AttemptLost) -> Entry | None:
    attempt = run["attempts"][event["attempt"]]
    if "seat" not in attempt["extra"]:
        return None
    if event["type"] == "AttemptDispatched":
        return _phase_started(phase_of_attempt(run, attempt))
    status = result_of_attempt(attempt)
    if not status:
        return None
    duration_ms = between(attempt["started_at"], attempt["ended_at"])
    return _phase_ended(phase_of_attempt(run, attempt), status, duration_ms, attempt["summary"])


def _paused(event: Paused) -> Entry:
    return "Task Paused", {
        "Action": "PAUSE",
        "Phase": event["step"],
        "Reason": event["reason"],
        "Recommendations": event["recommendations"],
        "Status": "paused",
    }


def _gate_opened(event: GateOpened) -> Entry:
    return f"{_title(event['name'])} Gate Set", {
        "Action": f"SET_GATE gate: {event['name']}",
        "Prompt": event["prompt"],
        "Artifacts": [shown["path"] for shown in event["shown"]],
        "Status": "waiting_gate",
    }


def _gate_decided(run: Run, event: GateDecided) -> Entry:
    ending = _GATE_ENDINGS.get(event["decision"], "Decided")
    return f"{_title(event['name'])} Gate {ending}", {
        "Action": f"RESUME decision: {event['decision']}",
        "Feedback": event["feedback"],
        "By": event["who"],
        "Status": status_of(run),
    }


def _failed(event: Failed) -> Entry:
    context = event["context"]
    decision = context.get("decision") if isinstance(context, dict) else None
    return "Task Failed", {
        "Action": f"RESUME decision: {decision}" if decision else None,
        "Phase": event["step"],
        "Reason": event["error"],
        "Status": "failed",
    }


def _artifact_stored(run: Run, event: ArtifactStored) -> Entry | None:
    if event["name"] == "audit-history":
        return None
    name, _, task = event["name"].partition("/")
    words = [f"STORE phase: {name}"]
    if task:
        words.append(f"task_id: {task}")
    if event["attempt"] and event["attempt"] not in run["attempts"]:
        words.append(f"iteration: {event['attempt'].rpartition('-')[2]}")
    return f"{_title(event['name'])} Stored", {
        "Action": " ".join(words) if event["by"] != "external" else "changed by another program",
        "File": event["path"],
        "Size": f"{event['size']} bytes",
        "SHA-256": event["sha256"],
    }
