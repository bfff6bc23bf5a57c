"""A `.feature-state.json` that was there before Tenuto: the run that it tells of.

Real files drift: sections are missing, statuses are spelled in other ways, ids are texts. All that is
read, nothing is lost (the bytes are kept by their hash), and unknown keys stay in the file. A file that
tells of no feature is somebody else's: named, refused, untouched.
"""

from __future__ import annotations

from tenuto.core.names import slug
from tenuto.dialects.feature_state import CONTEXT, FILE, OUTPUTS, PHASES, PIPELINE, name, owner_key, schedule
from tenuto.dialects.feature_state.edits import TASK_STATUSES, item_of
from tenuto.encoding import NotJson, digest, loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

_STEP_STATUS = {
    "completed": "completed", "complete": "completed", "done": "completed", "approved": "completed",
    "in_progress": "running", "in-progress": "running", "active": "running", "started": "running",
    "skipped": "skipped", "pending": "pending",
}  # fmt: skip
_ITEM_STATUS = {**TASK_STATUSES, "done": "completed", "complete": "completed", "in-progress": "running"}


def adopt(turn: Any, path: str, body: bytes) -> str:
    """The file becomes a run of its own, shown where it stands. Returns the run's id."""
    state = recognised(path, body)
    feature, sha = state["currentFeature"], digest(body)
    if path != FILE:
        raise Refused("not-its-place", f"{path} holds a feature, but a feature lies at {FILE}", f"move it to {FILE}")
    called = feature["name"]
    run: str = turn.unused(slug(called))
    tree = turn.workspace.tree
    turn.tx.put_blob(sha, body)
    place = {"tree": tree, "name": called} | {f: feature[f] for f in OUTPUTS if isinstance(feature.get(f), str)}
    told = {"told": feature["updatedAt"]} if _is_text(feature.get("updatedAt")) else {}
    turn.do(run, {
        "do": "Adopt", "dialect": name, "path": path, "sha256": sha,
        "state": _run(run, state, place, turn.at), **told,
    })  # fmt: skip
    unknown = _unknown(state)
    if unknown:
        turn.do(run, {"do": "AbsorbEdit", "dialect": name, "path": path, "sha256": sha, "extra": unknown, **told})
    turn.do_repo({"do": "OwnFile", "path": owner_key(tree), "run": run})
    turn.take_over(owner_key(tree), body)
    return run


def recognised(path: str, body: bytes) -> Json:
    """The state, or the refusal by name of what this is not."""
    try:
        state = loads_strict(body)
    except NotJson as problem:
        raise Refused("state-damaged", f"{path} is not JSON that can be read: {problem}", path=path) from None
    feature = state.get("currentFeature") if isinstance(state, dict) else None
    phases = state.get("phases", {}) if isinstance(state, dict) else None
    if not isinstance(feature, dict) or not isinstance(feature.get("name"), str) or not isinstance(phases, dict):
        raise Refused(
            "not-a-feature-state", f"{path} is not a feature's state: it has no currentFeature with a name and no phases",
            "it belongs to another tool and stays as it is; move it away to use tenuto feature here", path=path,
        )  # fmt: skip
    if feature.get("phase") not in PHASES and not any(phase in PHASES for phase in phases):
        raise Refused(
            "not-a-feature-state", f"{path} is not a feature's state: its phases are not {', '.join(PHASES)}",
            "it belongs to another tool and stays as it is", path=path,
        )  # fmt: skip
    return state  # type: ignore[no-any-return]


def _run(run: str, state: Json, place: Json, at: str) -> Json:
    feature = state["currentFeature"]
    started = feature["startedAt"] if _is_text(feature.get("startedAt")) else at
    steps = {phase: _step(state, feature, phase) for phase in PHASES}
    running = [phase for phase in PHASES if steps[phase]["status"] == "running"]
    made: Json = {
        "id": run, "name": feature["name"], "request": _text(feature.get("description")), "created_at": started,
        "pipeline": {"name": PIPELINE, "hash": None}, "driver": "manual", "dialects": {name: place},
        "status": "running", "order": "open", "schedule": schedule(), "steps": steps,
        "position": feature["phase"] if feature.get("phase") in PHASES else running[-1] if running else None,
        "visits": [_visit(phase, steps[phase]["status"], started) for phase in PHASES if steps[phase]["iteration"]],
        "items": _items(state.get("tasks")), "answers": _answers(state.get("discoveryAnswers")),
        "resume": _resume(state, feature, at),
    }  # fmt: skip
    if steps["approval"]["status"] == "completed":
        made["decisions"] = [{
            "gate": "adopted", "name": "approval", "step": "approval", "decision": "approve", "approved": True,
            "feedback": "", "who": f"{FILE}, before Tenuto", "at": at, "proof": {},
        }]  # fmt: skip
    if steps["commit"]["status"] == "completed":
        made["status"], made["stopped_at"] = "completed", at
    return made


def _step(state: Json, feature: Json, phase: str) -> Json:
    told = state.get("phases", {}).get(phase)
    status = _STEP_STATUS.get(str(told).lower(), "pending")
    if told is None and phase == feature.get("phase"):
        status = "running"
    return {"status": status, "iteration": int(status in ("running", "completed")), "verdict": None}


def _visit(phase: str, status: str, at: str) -> Json:
    ended = None if status == "running" else at
    return {
        "step": phase, "item": None, "iteration": 1, "status": "running" if ended is None else "success",
        "started_at": at, "ended_at": ended, "duration_ms": None if ended is None else 0, "retries": 0,
    }  # fmt: skip


def _items(tasks: Any) -> Json:
    made: Json = {}
    for number, task in enumerate(tasks if isinstance(tasks, list) else (), 1):
        told: Json = task if isinstance(task, dict) else {"description": str(task)}
        key = str(told.get("id", number))
        item = item_of(told)
        if key in made:  # two tasks of one id: both stay
            item["extra"]["id"], key = told.get("id"), f"{key}~{number}"
        status = _ITEM_STATUS.get(str(told.get("status", "pending")).lower(), "pending")
        made[key] = {**item, "files": [], "depends_on": [], "agent": "", "status": status}
    return made


def _answers(answers: Any) -> Json:
    return {key: value for key, value in answers.items() if value != ""} if isinstance(answers, dict) else {}


def _resume(state: Json, feature: Json, at: str) -> Json | None:
    context = state.get("resumeContext")
    paused = feature.get("pausedAt")
    if not isinstance(context, dict) and not paused:
        return None
    told = context if isinstance(context, dict) else {}
    reason = _text(feature.get("pauseReason")) or "user_request"
    kept = {field: told[field] for field in CONTEXT if field in told}
    return {**kept, "saved_at": paused if _is_text(paused) else at, "reason": reason if paused else ""}


def _unknown(state: Json) -> Json:
    sections: dict[str, tuple[str, ...]] = {
        "currentFeature": (
            "name", "description", "phase", *OUTPUTS, "startedAt", "updatedAt", "pausedAt", "pauseReason",
        ),
        "phases": PHASES, "resumeContext": CONTEXT,
    }  # fmt: skip
    known = (*sections, "tasks", "discoveryAnswers")
    extra: Json = {key: [value] for key, value in state.items() if key not in known}
    for section, fields in sections.items():
        told = state.get(section)
        inside = {key: [value] for key, value in told.items() if key not in fields} if isinstance(told, dict) else {}
        if inside:
            extra[section] = inside
    return extra


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 64


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
