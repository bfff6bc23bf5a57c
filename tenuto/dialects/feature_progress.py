"""What hooks and agents report about a feature, as commands to the run; and what to go on with after a compaction.

    completed(...)       SubagentStop: a phase is done, the next one begins, files were created
    task_changed(...)    an implementer's word on a task
    saved(...)           PreCompact: what was done, what is under way, what comes next; returns a notice for the user
    words(run)           the same as text for an agent that starts with an empty memory

Reports may come twice, late, and from two sides: what already holds is not done again. No report completes
`approval`; a report that would go past it leads up to it and no further. What is missing is taken from the pipeline and
the clock, and said in a warning.
"""

from __future__ import annotations

from tenuto.core.status import BEGUN, PASSED
from tenuto.errors import Refused, TenutoError
from tenuto.views.feature_state import (
    FILE,
    MOST_FILES,
    PHASES,
    name,
    phase_of,
    phase_of_agent,
    resume_context,
    shown_status,
    task_status,
    tasks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Json, Run
    from tenuto.workspace.workspace import Turn

_NOTICE = """\
⚠️ Context limit approaching. Progress saved to {file}

Feature: {name}
Current phase: {phase} (in_progress)
Last completed: {last}
In progress: {task}

Please run /clear to continue with fresh context.
When ready, run /feature-dev-plus to resume.
"""


def completed(turn: Turn, run: Run, payload: Json) -> None:
    """The SubagentStop payload as its users write it."""
    reported = reported_time(turn, payload)
    agent, phase = payload.get("agentName"), payload.get("completedPhase")
    if phase not in PHASES:
        phase = phase_of_agent(run, str(agent))
        turn.workspace.warn(f"SubagentStop: no completedPhase; taken from agentName: {phase or 'nothing to complete'}")
    if phase is None:
        return
    following = payload.get("nextPhase")
    if following not in PHASES:
        following = next_phase(run, phase)
        turn.workspace.warn(f"SubagentStop: no nextPhase; after {phase} comes {following or 'nothing'}")
    note_files(turn, run, payload, phase, reported)
    complete(turn, run, phase, following, reported)


def complete(turn: Turn, run: Run, phase: str, following: str | None, reported: str) -> None:
    if phase == "approval" and status_of(run, "approval") != "completed":
        turn.workspace.warn("approval is completed by a person: tenuto feature answer approval --approve")
        return
    status = status_of(run, phase)
    try:
        if status not in BEGUN:
            turn.do(run["id"], {"do": "StartStep", "step": phase, "reported_at": reported})
        if status != "completed":
            turn.do(run["id"], {"do": "EndStep", "step": phase, "status": "success", "reported_at": reported})
    except Refused as refusal:
        turn.workspace.warn(f"{phase} is not completed: {refusal.message}")
        return
    if following:
        enter(turn, run, following, reported)
    elif run["status"] == "running":
        _finish(turn, run, reported)


def enter(turn: Turn, run: Run, phase: str, reported: str) -> None:
    """Begin a phase that has not begun. In front of an approval that is missing, that approval begins."""
    if status_of(run, phase) in BEGUN:
        return
    try:
        turn.do(run["id"], {"do": "StartStep", "step": phase, "reported_at": reported})
    except Refused as refusal:
        turn.workspace.warn(f"{phase} does not begin: {refusal.message}")
        if refusal.code == "not-approved" and status_of(run, "approval") == "pending":
            turn.do(run["id"], {"do": "StartStep", "step": "approval", "reported_at": reported})


def _finish(turn: Turn, run: Run, reported: str) -> None:
    try:
        turn.do(run["id"], {"do": "Finish", "reported_at": reported})
    except Refused as refusal:
        turn.workspace.warn(refusal.message)


def status_of(run: Run, phase: str) -> str:
    """A run that began as another system's may know nothing of a phase yet."""
    step = run["steps"].get(phase)
    return step["status"] if step else "pending"


def next_phase(run: Run, phase: str) -> str | None:
    later = PHASES[PHASES.index(phase) + 1 :]
    return next((step for step in later if status_of(run, step) not in PASSED), None)


def task_changed(turn: Turn, run: Run, payload: Json) -> None:
    """`{"type": "task_update", "taskId": 2, "newStatus": "completed", "nextTaskId": 3, ...}`"""
    reported = reported_time(turn, payload)
    status = task_status(payload.get("newStatus"))
    files = _paths(turn, payload.get("filesCreated"))
    key = find_task(run, payload.get("taskId"))
    if key is None:
        turn.workspace.warn(f"task_update: there is no task {payload.get('taskId')!r}; there are {len(tasks(run))}")
    else:
        if status is None:
            status = run["items"][key]["status"]
            given = f"newStatus {payload['newStatus']!r} is no status" if "newStatus" in payload else "no newStatus"
            turn.workspace.warn(f"task_update: {given}: it stays {shown_status(status)}")
        turn.do(run["id"], {"do": "ChangeItem", "item": key, "status": status, "files": files, "reported_at": reported})
    following = find_task(run, payload["nextTaskId"]) if payload.get("nextTaskId") is not None else None
    if payload.get("nextTaskId") is not None and following is None:
        turn.workspace.warn(f"task_update: there is no task {payload['nextTaskId']!r}; there are {len(tasks(run))}")
    if following is not None and run["items"][following]["status"] != "completed":
        turn.do(run["id"], {"do": "ChangeItem", "item": following, "status": "running", "reported_at": reported})
    note_files(turn, run, payload, "implementation", reported)


def find_task(run: Run, number: object) -> str | None:
    """`tasks[taskId-1]`; by its id where ids and places differ."""
    shown = tasks(run)
    for key, item in shown:
        if item["extra"].get("id", key) == number or key == str(number):
            return key
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= len(shown):
        return shown[number - 1][0]
    return None


def note_files(turn: Turn, run: Run, payload: Json, phase: str, reported: str) -> None:
    """Created and changed files become artifacts, of the phase that first made them."""
    for path in _paths(turn, [*_list(payload.get("filesCreated")), *_list(payload.get("filesModified"))]):
        known = run["artifacts"].get(path)
        try:
            turn.keep_file(run["id"], path, path, step=known["step"] if known else phase, reported_at=reported)
        except TenutoError as refusal:
            turn.workspace.warn(f"{path} is not recorded: {refusal.message}")


def _paths(turn: Turn, given: object) -> list[str]:
    root = turn.workspace.root + "/"
    texts = [path for path in _list(given) if isinstance(path, str) and path]
    return list(dict.fromkeys(path.removeprefix(root).removeprefix("./") for path in texts))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def reported_time(turn: Turn, payload: Json) -> str:
    """When it happened, as the reporter says; "" where they do not."""
    time = payload.get("timestamp")
    if isinstance(time, str) and 0 < len(time) <= 64:
        return time
    turn.workspace.warn("no timestamp; taken from the clock")
    return ""


# ---- what to go on with ----------------------------------------------------------------------------


def saved(turn: Turn, run: Run, reason: str, changed: list[str], reported: str, last: str = "", task: str = "") -> str:
    """Save the context; returns the notice. `changed`: files with changes that are not committed."""
    now = live(run)
    last, task = last or now["lastAction"], task or now["currentTask"]
    context = {
        "lastAction": last,
        "currentTask": task,
        "nextSteps": [step for step in now["nextSteps"] if not step.endswith(f": {task}")],
        "filesInProgress": list(dict.fromkeys([*now["filesInProgress"], *changed]))[:MOST_FILES],
    }
    turn.do(run["id"], {"do": "SaveContext", "context": context, "reason": reason, "reported_at": reported})
    return notice(run, phase_of(run), last, task)


def saved_payload(turn: Turn, run: Run, payload: Json, changed: list[str]) -> str:
    """The PreCompact payload as its users write it."""
    reported, reason = reported_time(turn, payload), payload.get("reason")
    if not isinstance(reason, str) or not reason:
        reason = "context_limit"
        turn.workspace.warn(f"PreCompact: no reason; taken as {reason}")
    last, task = _text(payload.get("lastAction")), _task_text(payload.get("currentTask"))
    for field, given in (("lastAction", last), ("currentTask", task)):
        if not given:
            turn.workspace.warn(f"PreCompact: no {field}; taken from the run")
    saved(turn, run, reason, changed, reported, last, task)
    now, phase = live(run), payload.get("currentPhase")
    return notice(
        run, phase if phase in PHASES else phase_of(run), last or now["lastAction"], task or now["currentTask"]
    )


def live(run: Run) -> Json:
    """What the run itself tells, whatever was saved before."""
    return resume_context({**run, "resume": None})


def notice(run: Run, phase: str, last: str, task: str) -> str:
    called = run["dialects"][name].get("name") or run["id"]
    return _NOTICE.format(file=FILE, name=called, phase=phase, last=last or "nothing yet", task=task)


def words(run: Run) -> str:
    """For an agent that has forgotten everything else."""
    place, context = run["dialects"][name], resume_context(run)
    done = sum(1 for _, item in tasks(run) if item["status"] == "completed")
    lines = [
        f"Feature in progress: {place.get('name') or run['id']} (state: {FILE}, run: {run['id']})",
        f"Description: {place.get('description', run['request'])}",
        f"Current phase: {phase_of(run)}",
        f"Last action: {context['lastAction']}",
        f"Current task: {context['currentTask']}",
    ]
    if tasks(run):
        lines.append(f"Tasks: {done} of {len(tasks(run))} completed")
    lines += ["Next steps:", *(f"{number}. {step}" for number, step in enumerate(_listed(context["nextSteps"]), 1))]
    if context["filesInProgress"]:
        lines.append("Files in progress: " + ", ".join(_listed(context["filesInProgress"])))
    answers = [f"- {key}: {value}" for key, value in run["answers"].items() if value]
    if answers:
        lines += ["Discovery answers:", *answers]
    return "\n".join(line for line in lines if not line.endswith(": "))


def _listed(value: object) -> list[str]:
    """Others write one thing where a list belongs."""
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def _task_text(task: object) -> str:
    return _text(task.get("description")) if isinstance(task, dict) else _text(task)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
