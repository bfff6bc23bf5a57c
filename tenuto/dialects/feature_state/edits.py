"""Somebody changed `.feature-state.json`: what they did, in commands.

Phases, tasks, answers and the resume context become the commands that say the same, and are
judged like any other: an edit that completes `approval` is refused, because nobody knows who made
it. Names, texts and files are kept as they write them. Keys we do not know are kept too.
A file that has lost its structure is corrupted: it is named and left alone.
"""

from __future__ import annotations

from tenuto.dialects.feature_state import ANSWERS, CONTEXT, FILE, OUTPUTS, PHASES, name
from tenuto.encoding import loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run

PHASE_STATUSES = ("pending", "in_progress", "completed", "skipped")
TASK_STATUSES = {"pending": "pending", "in_progress": "running", "completed": "completed"}
_KNOWN = {
    "currentFeature": (
        "name", "description", "phase", *OUTPUTS, "startedAt", "updatedAt", "pausedAt", "pauseReason",
    ),
    "phases": PHASES,
    "resumeContext": CONTEXT,
}  # fmt: skip
_SECTIONS = ("currentFeature", "phases", "tasks", "resumeContext", "discoveryAnswers")
_KEPT = ("name", "description", *OUTPUTS, "startedAt")


def understand(run: Run, before: bytes, after: bytes) -> list[Any]:
    # What they wrote before may be the base of what they write now, and they may leave sections out.
    old = {"tasks": [], "discoveryAnswers": {}, "resumeContext": {}, **loads_strict(before)}
    new = structured(loads_strict(after))
    commands: list[Any] = [
        *_placed(run, old["currentFeature"], new["currentFeature"]),
        *_tasks(old["tasks"], new.get("tasks", old["tasks"])),
        *_answers(old["discoveryAnswers"], new.get("discoveryAnswers", old["discoveryAnswers"])),
        *_phases(run, old, new),
        *_context(old, new),
    ]
    return [*commands, {"do": "AbsorbEdit", "extra": _unknown(old, new)}]


def structured(state: Any) -> Json:
    """The file as an object with its sections, or the refusal that it has lost them."""
    if not isinstance(state, dict):
        raise Refused("state-damaged", f"{FILE} holds no object")
    kinds: dict[str, type] = {section: dict for section in _SECTIONS} | {"tasks": list}
    for section, kind in kinds.items():
        if section in state and not isinstance(state[section], kind):
            raise Refused("state-damaged", f"{FILE}: {section} is not {'a list' if kind is list else 'an object'}")
    for section in ("currentFeature", "phases"):
        if section not in state:
            raise Refused("state-damaged", f"{FILE} has no {section}")
    for phase in PHASES:
        if state["phases"].get(phase, "pending") not in PHASE_STATUSES:
            raise Refused("state-damaged", f"{FILE}: phases.{phase} is {state['phases'][phase]!r}")
    if any(not isinstance(task, dict) for task in state.get("tasks", ())):
        raise Refused("state-damaged", f"{FILE}: a task is not an object")
    return state


def _placed(run: Run, old: Json, new: Json) -> list[Any]:
    changed = {field: new[field] for field in _KEPT if field in new and new[field] != old.get(field)}
    if not changed:
        return []
    for field, value in changed.items():
        if value is not None and not isinstance(value, str):
            raise Refused("state-damaged", f"{FILE}: currentFeature.{field} is not a text")
    return [{"do": "ShowIn", "dialect": name, "place": {**run["dialects"][name], **changed}}]


def _tasks(old: list[Json], new: list[Json]) -> list[Any]:
    planned: dict[str, Json] = {}
    commands: list[Any] = []
    known = {str(task.get("id")): task for task in old}
    for number, task in enumerate(new, 1):
        key = str(task.get("id", number))
        before = known.pop(key, None)
        status = TASK_STATUSES.get(str(task.get("status", "pending")))
        if status is None:
            raise Refused("state-damaged", f"{FILE}: task {key} is {task.get('status')!r}")
        words = {field: value for field, value in task.items() if field != "status"}
        if before is None or words != {field: value for field, value in before.items() if field != "status"}:
            planned[key] = item_of(task) | {"status": status}
        elif task.get("status") != before.get("status"):
            commands.append({"do": "ChangeItem", "item": key, "status": status})
    for key, task in known.items():
        gone = item_of(task)
        planned[key] = gone | {"status": "skipped", "extra": gone["extra"] | {"removed": True}}
    return [{"do": "PlanItems", "items": planned}, *commands] if planned else commands


def item_of(task: Json) -> Json:
    """A task as an item: what we do not know of it is kept."""
    number = task.get("id")
    extra = {key: value for key, value in task.items() if key not in ("id", "description", "status")}
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
        extra["id"] = number
    return {"title": str(task.get("description", "")), "extra": extra}


def _answers(old: Json, new: Json) -> list[Any]:
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    changed |= {key: "" if key in ANSWERS else None for key in old if key not in new}
    return [{"do": "RecordAnswers", "answers": changed}] if changed else []


def _phases(run: Run, old: Json, new: Json) -> list[Any]:
    commands: list[Any] = []
    begun: list[str] = []
    for phase in PHASES:
        was, now = old["phases"].get(phase, "pending"), new["phases"].get(phase, old["phases"].get(phase))
        if now == was:
            continue
        step = run["steps"].get(phase)
        start: list[Any] = [] if step and step["status"] == "running" else [{"do": "StartStep", "step": phase}]
        if now == "in_progress":
            commands += start
            begun.append(phase)
        elif now == "skipped":
            commands.append({"do": "SkipStep", "step": phase, "reason": f"{FILE} was edited"})
        else:
            status = "success" if now == "completed" else "failed"
            commands += [*start, {"do": "EndStep", "step": phase, "status": status}]
    phase = new["currentFeature"].get("phase")
    if phase != old["currentFeature"].get("phase") and phase not in begun:
        if phase not in PHASES:
            raise Refused("state-damaged", f"{FILE}: there is no phase {phase!r}")
        if new["phases"].get(phase) in ("pending", None):
            commands.append({"do": "StartStep", "step": phase})
    return commands


def _context(old: Json, new: Json) -> list[Any]:
    feature, before = new["currentFeature"], old["currentFeature"]
    context: Any = new.get("resumeContext", old["resumeContext"])
    shown = {field: context.get(field, old["resumeContext"].get(field)) for field in CONTEXT}
    was = {field: old["resumeContext"].get(field) for field in CONTEXT}
    reason = feature.get("pauseReason") or ("user_request" if feature.get("pausedAt") else "")
    if feature.get("pausedAt") and (not before.get("pausedAt") or shown != was):
        return [{"do": "SaveContext", "context": shown, "reason": str(reason), "told": str(feature["pausedAt"])}]
    commands: list[Any] = []
    if before.get("pausedAt") and not feature.get("pausedAt"):
        commands.append({"do": "RestoreContext"})
    if shown != was:
        commands.append({"do": "SaveContext", "context": shown, "reason": ""})
    return commands


def _unknown(old: Json, new: Json) -> Json:
    """Keys that are not ours: new and changed ones as [value], those taken away as []."""
    extra: Json = _differing(old, new, _SECTIONS)
    for section, known in _KNOWN.items():
        theirs: Any = new.get(section, old[section])
        inside = _differing(old[section], theirs, known)
        if inside:
            extra[section] = inside
    return extra


def _differing(old: Json, new: Json, known: tuple[str, ...]) -> Json:
    found: Json = {k: [v] for k, v in new.items() if k not in known and (k not in old or old[k] != v)}
    return found | {k: [] for k in old if k not in known and k not in new}
