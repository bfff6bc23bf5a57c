"""Refusals in the words of the seed: one table, (command, code of the refusal) -> text.

`{status}` is the status as this dialect shows it; a text per status comes first, `*` is for all others.
What is not in the table keeps the words that core/ gave it.
"""

from __future__ import annotations

from tenuto.dialects.context.places import status_of
from tenuto.errors import BadInput, NotFound, Refused, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Run

_INVALID_DECISION = "Invalid decision: {decision}. Use approve, reject, or retry"
TEXTS: dict[tuple[str, str], dict[str, str]] = {
    ("START_PHASE", "not-running"): {
        "paused": "Cannot start phase while task is paused",
        "waiting_gate": "Cannot start phase while waiting for gate approval",
        "*": "Cannot start phase on {status} task",
    },
    ("START_PHASE", "step-running"): {"*": "Phase {step} already running"},
    ("END_PHASE", "step-not-running"): {"*": "Phase {step} not currently running"},
    ("PAUSE", "steps-running"): {"*": "Cannot pause while phases are running: {steps}"},
    ("PAUSE", "gate-open"): {"*": "Cannot pause while waiting for gate approval"},
    ("PAUSE", "run-ended"): {"*": "Cannot pause {status} task"},
    ("SET_GATE", "steps-running"): {"*": "Cannot set gate while phases are running"},
    ("SET_GATE", "not-running"): {
        "paused": "Cannot set gate while task is paused",
        "waiting_gate": "Cannot set gate while waiting for gate approval",
        "*": "Cannot set gate on {status} task",
    },
    ("RESUME", "not-paused"): {
        "completed": "Task is already completed",
        "*": "Task is not paused or waiting for gate",
    },
    ("RESUME", "bad-decision"): {"*": _INVALID_DECISION},
    ("RESUME", "gate-stale"): {
        "*": "Gate artifacts changed since the gate was set: {paths}. Review them, then use revise or reject,"
        " or put back what was shown",
    },
    ("STORE", "not-running"): {
        "paused": "Cannot store debt while task is paused",
        "waiting_gate": "Cannot store debt while waiting for gate approval",
        "*": "Cannot store debt on {status} task",
    },
    ("STORE", "run-ended"): {"*": "Cannot store debt on {status} task"},
}  # fmt: skip


def in_words(command: str, refusal: TenutoError, run: Run) -> TenutoError:
    """The same refusal, saying what the seed says."""
    texts = TEXTS.get((command, refusal.code))
    if texts is None:
        return refusal
    status = status_of(run)
    said = texts.get(status) or texts["*"]
    shown = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in refusal.details.items()
    }
    message = said.format(**{**shown, "status": status})
    return Refused(refusal.code, message, refusal.hint, **{**refusal.details, "status": status, "task": run["id"]})


def wrong(text: str) -> TenutoError:
    """The caller's words are wrong."""
    return BadInput("bad-command", text)


def no_current_task() -> TenutoError:
    return NotFound("no-current-task", "No current task. Use INIT first.")


def no_task(slug: str) -> TenutoError:
    return NotFound("no-such-task", f"No task found with slug: {slug}", "tenuto context LIST", task=slug)
