"""What hooks and agents report about a feature, as commands to the run.

    completed(...)    SubagentStop: a phase is done, the next one begins, files were created
    task_changed(...) an implementer's word on a task

Reports may come twice, late, and from two sides: what already holds is not done again. Nothing in
a report completes `approval`; a report that would go past it leads up to it and no further.
What is missing is taken from the pipeline and the clock, and said in a warning.
"""

from __future__ import annotations

from tenuto.dialects.feature_state import AGENTS, PHASES, tasks
from tenuto.errors import Refused, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run

_TASK_STATUS = {
    "completed": "completed", "complete": "completed", "done": "completed",
    "in_progress": "running", "in-progress": "running", "running": "running", "active": "running",
    "pending": "pending", "todo": "pending", "failed": "failed", "blocked": "failed", "skipped": "skipped",
}  # fmt: skip


def completed(turn: Any, run: Run, payload: Json) -> None:
    """The SubagentStop payload as its users write it."""
    told = told_time(turn, payload)
    agent, phase = payload.get("agentName"), payload.get("completedPhase")
    if phase not in PHASES:
        phase = AGENTS.get(str(agent).rpartition(":")[2])
        turn.workspace.warn(f"SubagentStop: no completedPhase; taken from agentName: {phase or 'nothing to complete'}")
    if phase is None:
        return
    following = payload.get("nextPhase")
    if following not in PHASES:
        following = next_phase(run, phase)
        turn.workspace.warn(f"SubagentStop: no nextPhase; after {phase} comes {following or 'nothing'}")
    note_files(turn, run, payload, phase, told)
    complete(turn, run, phase, following, told)


def complete(turn: Any, run: Run, phase: str, following: str | None, told: Json) -> None:
    if phase == "approval" and status_of(run, "approval") != "completed":
        turn.workspace.warn("approval is completed by a person: tenuto feature answer approval --approve")
        return
    status = status_of(run, phase)
    try:
        if status not in ("running", "completed"):
            turn.do(run["id"], {"do": "StartStep", "step": phase, **told})
        if status != "completed":
            turn.do(run["id"], {"do": "EndStep", "step": phase, "status": "success", **told})
    except Refused as refusal:
        turn.workspace.warn(f"{phase} is not completed: {refusal.message}")
        return
    if following:
        enter(turn, run, following, told)
    elif run["status"] == "running":
        _finish(turn, run, told)


def enter(turn: Any, run: Run, phase: str, told: Json) -> None:
    """Begin a phase that has not begun. In front of an approval that is missing, that approval begins."""
    if status_of(run, phase) in ("running", "completed"):
        return
    try:
        turn.do(run["id"], {"do": "StartStep", "step": phase, **told})
    except Refused as refusal:
        turn.workspace.warn(f"{phase} does not begin: {refusal.message}")
        if refusal.code == "not-approved" and status_of(run, "approval") == "pending":
            turn.do(run["id"], {"do": "StartStep", "step": "approval", **told})


def _finish(turn: Any, run: Run, told: Json) -> None:
    try:
        turn.do(run["id"], {"do": "Finish", **told})
    except Refused as refusal:
        turn.workspace.warn(refusal.message)


def status_of(run: Run, phase: str) -> str:
    """A run that began as another system's may know nothing of a phase yet."""
    step = run["steps"].get(phase)
    return step["status"] if step else "pending"


def next_phase(run: Run, phase: str) -> str | None:
    later = PHASES[PHASES.index(phase) + 1 :]
    return next((step for step in later if status_of(run, step) not in ("completed", "skipped")), None)


def task_changed(turn: Any, run: Run, payload: Json) -> None:
    """`{"type": "task_update", "taskId": 2, "newStatus": "completed", "nextTaskId": 3, ...}`"""
    told = told_time(turn, payload)
    status = _TASK_STATUS.get(str(payload.get("newStatus", "completed")).lower())
    if status is None or "newStatus" not in payload:
        status = status or "completed"
        turn.workspace.warn(f"task_update: newStatus {payload.get('newStatus')!r} is taken as {status}")
    files = _paths(turn, payload.get("filesCreated"))
    key = _task(turn, run, payload.get("taskId"))
    if key is not None:
        turn.do(run["id"], {"do": "ChangeItem", "item": key, "status": status, "files": files, **told})
    following = _task(turn, run, payload["nextTaskId"]) if payload.get("nextTaskId") is not None else None
    if following is not None and run["items"][following]["status"] != "completed":
        turn.do(run["id"], {"do": "ChangeItem", "item": following, "status": "running", **told})
    note_files(turn, run, payload, "implementation", told)


def _task(turn: Any, run: Run, number: Any) -> str | None:
    """`tasks[taskId-1]`; by its id where ids and places differ."""
    shown = tasks(run)
    for key, item in shown:
        if item["extra"].get("id", key) == number or key == str(number):
            return key
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= len(shown):
        return shown[number - 1][0]
    turn.workspace.warn(f"task_update: there is no task {number!r}; there are {len(shown)}")
    return None


def note_files(turn: Any, run: Run, payload: Json, phase: str, told: Json) -> None:
    """Created and changed files become artifacts, of the phase that first made them."""
    for path in _paths(turn, [*_list(payload.get("filesCreated")), *_list(payload.get("filesModified"))]):
        known = run["artifacts"].get(path)
        try:
            turn.keep_file(run["id"], path, path, step=known["step"] if known else phase, **told)
        except TenutoError as refusal:
            turn.workspace.warn(f"{path} is not recorded: {refusal.message}")


def _paths(turn: Any, given: Any) -> list[str]:
    root = turn.workspace.root + "/"
    texts = [path for path in _list(given) if isinstance(path, str) and path]
    return list(dict.fromkeys(path.removeprefix(root).removeprefix("./") for path in texts))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def told_time(turn: Any, payload: Json) -> Json:
    told = payload.get("timestamp")
    if isinstance(told, str) and 0 < len(told) <= 64:
        return {"told": told}
    turn.workspace.warn("no timestamp; taken from the clock")
    return {}
