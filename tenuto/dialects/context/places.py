"""Where the context manager's files lie, and what it calls things.

Every path is made from a task's slug, which is a checked name; nothing here reads a file.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run

NAME = "context"
CONTEXT = "docs/orchestrator/context"
TASKS = CONTEXT + "/tasks"
CURRENT = CONTEXT + "/current-task.md"
HISTORY = CONTEXT + "/history.md"
DECISIONS = "docs/orchestrator/memory/decisions.md"
PATTERNS = "docs/orchestrator/memory/patterns.md"
METRICS = ".claude/orchestrator/metrics"

# The words of this dialect for what a run can be; all others are its own.
_STATUSES = {
    "created": "running", "restarting": "running",
    "stopped": "paused", "blocked": "paused", "parked": "paused", "cancelled": "failed",
}  # fmt: skip
KNOWN_STATUSES = ("running", "paused", "waiting_gate", "completed", "failed", "poc-complete", "graduated")


def key_of(tree: str, path: str) -> str:
    """The name of a file among the files of all work trees."""
    return f"{tree}//{path}" if tree else path


def folder_of(slug: str) -> str:
    return f"{TASKS}/{slug}"


def manifest_of(slug: str) -> str:
    return f"{TASKS}/{slug}/manifest.json"


def legacy_of(slug: str) -> str:
    return f"{TASKS}/{slug}/metadata.json"


def metrics_of(slug: str) -> str:
    return f"{METRICS}/{slug}.json"


def kept(run: Run) -> Any:
    """What this dialect keeps of a run beyond what a run is: others' keys, entries as they were found."""
    return run["extra"].get(NAME, {})


def shown_status(status: str, said: str | None = None) -> str:
    """`said`: the word that stood in an adopted file; it is shown for as long as the run has that status."""
    return status if said == status else _STATUSES.get(status, status)


def status_of(run: Run) -> str:
    return shown_status(run["status"], run["dialects"].get(NAME, {}).get("status"))


def is_current(run: Run, repo: Any) -> bool:
    """Whether the current-task.md of its work tree shows this task."""
    return bool(repo["owners"].get(key_of(run["dialects"][NAME].get("tree", ""), CURRENT)) == run["id"])


def phase_of(visit: Any) -> str:
    step: str = visit["step"]
    return step if not visit["item"] else f"{step}:{_task(visit['item'])}"


def visits_of(run: Run) -> list[Any]:
    """Its phases: visits of steps that were led by hand, attempts where an engine drives."""
    if "unseen" not in run["dialects"][NAME]:
        return run["visits"]
    from tenuto.dialects.context.engine import phases

    return phases(run)


def _task(item: str) -> str:
    return f"task-{item}" if item[:1].isdigit() else item
