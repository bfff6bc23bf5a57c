"""What to go on with: saved before a compaction, handed back after it.

saved(turn, run, payload, changed)   PreCompact: what was done, what is under way, what comes next
words(run)                           the same as text for an agent that starts with an empty memory
notice(...)                          what the user is told when it is saved
"""

from __future__ import annotations

from tenuto.dialects.feature_state import FILE, MOST_FILES, PHASES, name, phase_of, resume_context, tasks
from tenuto.dialects.feature_state.progress import told_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run

_NOTICE = """\
⚠️ Context limit approaching. Progress saved to {file}

Feature: {name}
Current phase: {phase} (in_progress)
Last completed: {last}
In progress: {task}

Please run /clear to continue with fresh context.
When ready, run /feature-dev-plus to resume.
"""


def saved(turn: Any, run: Run, reason: str, changed: list[str], told: Json, last: str = "", task: str = "") -> str:
    """Save the context; returns the notice. `changed`: files with changes that are not committed."""
    now = live(run)
    last, task = last or now["lastAction"], task or now["currentTask"]
    context = {
        "lastAction": last,
        "currentTask": task,
        "nextSteps": [step for step in now["nextSteps"] if not step.endswith(f": {task}")],
        "filesInProgress": list(dict.fromkeys([*now["filesInProgress"], *changed]))[:MOST_FILES],
    }
    turn.do(run["id"], {"do": "SaveContext", "context": context, "reason": reason, **told})
    return notice(run, phase_of(run), last, task)


def saved_payload(turn: Any, run: Run, payload: Json, changed: list[str]) -> str:
    """The PreCompact payload as its users write it."""
    told, reason = told_time(turn, payload), payload.get("reason")
    if not isinstance(reason, str) or not reason:
        reason = "context_limit"
        turn.workspace.warn(f"PreCompact: no reason; taken as {reason}")
    last, task = _text(payload.get("lastAction")), _task_text(payload.get("currentTask"))
    for field, given in (("lastAction", last), ("currentTask", task)):
        if not given:
            turn.workspace.warn(f"PreCompact: no {field}; taken from the run")
    saved(turn, run, reason, changed, told, last, task)
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


def _listed(value: Any) -> list[str]:
    """Others write one thing where a list belongs."""
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def _task_text(task: Any) -> str:
    return _text(task.get("description")) if isinstance(task, dict) else _text(task)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
