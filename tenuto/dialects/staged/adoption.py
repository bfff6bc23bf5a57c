"""A state.json that was there before Tenuto, and what a dying writer left beside it.

Real files drift: keys are missing, statuses are spelled in other ways, a schedule was made by hand. All that is
read, nothing is lost (the bytes are kept by their hash), and unknown keys stay in the file. A file that holds no staged
task is somebody else's: named, refused, untouched.

A left-over state.json.tmp: with state.json beside it, an interrupted write, removed; alone, a write whose rename did not
come, put in its place if it is whole. A writer that is still at work is left alone. Where a journal knows the file, a lone
.tmp is an edit like any other (tenuto.workspace.reconcile).
"""

from __future__ import annotations

import os

from tenuto.core.decisions.reviews import plain
from tenuto.core.names import slug
from tenuto.core.rules import review
from tenuto.dialects.staged import FILE, LEFT_OVER, VERSION, name, owner_key
from tenuto.dialects.staged.document import SETTINGS
from tenuto.dialects.staged.evidence import review_in
from tenuto.dialects.staged.owner import identify
from tenuto.dialects.staged.profiles import (
    PHASES,
    STAGES,
    evidence_of,
    known_profile,
    phase_of_file,
    schedule_of,
    with_coverage,
)
from tenuto.encoding import NotJson, digest, loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

_STATUS = {
    "pending": "created", "in_progress": "running", "stopped": "stopped", "completed": "completed", "failed": "failed",
    "blocked": "blocked", "restarting": "running", "skipped": "stopped",
    "in-progress": "running", "running": "running", "active": "running", "paused": "stopped", "done": "completed",
    "complete": "completed",
}  # fmt: skip
_TOLD = ("currentPhase", "currentStage", "schedule", "gates", "stages", "pipelineProfile")
_SHOWN = (
    "version", "task", "status", "currentStage", "currentPhase", "pipelineProfile", *SETTINGS, "schedule", "gates",
    "stages", "restartHistory", "files", "failure", "startedAt", "updatedAt", "stoppedAt",
)  # fmt: skip
_STAGE = ("status", "phases", "restartCount", "blockReason", "enabled")
_REVIEW = ("fixAttempts", "dispatchRetries", "reviewResult")
_STILL_WRITTEN_NS = 2_000_000_000  # somebody may be between closing the .tmp and renaming it


# ---- what a dying writer left ----------------------------------------------------------------------


def recover(workspace: Any) -> bytes | None:
    """The state file's text, where no journal knows it; None where there is none."""
    folder = workspace.files()
    main, left = folder.read(FILE), folder.read(LEFT_OVER)
    if left is None or _is_live(folder, LEFT_OVER):
        return main  # type: ignore[no-any-return]
    if main is not None:
        _remove(workspace)
        return main  # type: ignore[no-any-return]
    state_in(LEFT_OVER, left)
    # A link, not a rename: whoever put a new state.json there in this moment keeps it.
    os.link(f"{workspace.root}/{LEFT_OVER}", f"{workspace.root}/{FILE}", follow_symlinks=False)
    os.unlink(f"{workspace.root}/{LEFT_OVER}")
    workspace.warn(f"{FILE} was missing; {LEFT_OVER}, which its last writer left behind, is in its place")
    return left  # type: ignore[no-any-return]


def clear_left_over(workspace: Any) -> None:
    """Beside a state file that the journal knows, it is what remains of an interrupted write."""
    folder = workspace.files()
    if folder.changed_at(FILE) is not None and not _is_live(folder, LEFT_OVER):
        _remove(workspace)


def _remove(workspace: Any) -> None:
    """Out of the way first, then looked at once more: somebody may have begun to write it in this moment."""
    left, aside = f"{workspace.root}/{LEFT_OVER}", f"{workspace.root}/{LEFT_OVER}.old"
    try:
        os.rename(left, aside)
    except FileNotFoundError:
        return  # its writer was alive, and has renamed it
    if _is_live(workspace.files(), f"{LEFT_OVER}.old"):
        try:
            os.link(aside, left, follow_symlinks=False)
        except FileExistsError:
            pass  # they have begun anew
    else:
        workspace.warn(f"{LEFT_OVER} was left over by an interrupted write; it is removed")
    os.unlink(aside)


def _is_live(folder: Any, path: str) -> bool:
    """Whether somebody writes to it, or did a moment ago and may be about to rename it."""
    from time import time_ns

    changed = folder.changed_at(path)
    return changed is None or time_ns() - changed < _STILL_WRITTEN_NS or folder.is_written(path)


# ---- whose file it is ------------------------------------------------------------------------------


def state_in(path: str, body: bytes) -> Json:
    """The state, or the refusal by name of what this is not."""
    try:
        state = loads_strict(body)
    except NotJson as problem:
        raise Refused(
            "state-damaged", f"{path} is not JSON that can be read: {problem}", "mend it, or move it away", path=path
        ) from None
    told = [key for key in _TOLD if key in state] if isinstance(state, dict) else []
    if len(told) < 2 or not isinstance(state.get("task"), str) or not isinstance(state.get("stages", {}), dict):
        raise Refused(
            "not-a-staged-state", f"{path} is not a staged task's state: it has no task with phases and stages",
            "it belongs to another tool and stays as it is; move it away to use tenuto staged here", path=path,
        )  # fmt: skip
    if state.get("version") != VERSION:
        raise Refused(
            "bad-version", f"{path} has version {state.get('version')!r}; version {VERSION} is read and written",
            "migrate it with the tool that wrote it", path=path, version=state.get("version"),
        )  # fmt: skip
    return state  # type: ignore[no-any-return]


def adopt(turn: Any, path: str, body: bytes) -> str:
    """The file becomes a run of its own, shown where it stands. Returns the run's id."""
    if path != FILE:
        raise Refused("not-its-place", f"{path} holds a staged task, but one lies at {FILE}", f"move it to {FILE}")
    state, sha, tree = state_in(path, body), digest(body), turn.workspace.tree
    run: str = turn.unused(slug(state["task"]))
    turn.tx.put_blob(sha, body)
    told = _run(run, state, {"tree": tree}, turn)
    turn.do(run, {"do": "Adopt", "dialect": name, "path": path, "sha256": sha, "state": told})
    turn.do_repo({"do": "OwnFile", "path": owner_key(tree), "run": run})
    turn.take_over(owner_key(tree), body)
    return run


def _run(run: str, state: Json, place: Json, turn: Any) -> Json:
    profile = known_profile(state.get("pipelineProfile"))
    schedule = _schedule(state, profile)
    steps = [entry["step"] for entry in schedule]
    here = str(state["currentPhase"]) if state.get("currentPhase") in steps else steps[0]
    status = _STATUS.get(str(state.get("status")), "running")
    started = _text(state.get("startedAt")) or turn.at
    settings = {key: state[key] for key in SETTINGS if key in state} | {"pipelineProfile": profile}
    artifacts = _artifacts(state, turn)
    if "ownerPpid" in settings:
        settings["owner"] = identify(settings["ownerPpid"])
    return {
        "id": run, "name": state["task"].partition("\n")[0][:200], "request": state["task"],
        "created_at": started, "stopped_at": _text(state.get("stoppedAt")) or None, "status": status,
        "pipeline": {"name": f"staged-{profile}", "hash": None}, "dialects": {name: place}, "order": "strict",
        "schedule": schedule, "evidence": _evidence(state, schedule), "position": here,
        "steps": {step: _step(state, steps, step, here, status) for step in steps},
        "visits": _visits(steps, here, status, started), "reviews": _reviews(state, steps, artifacts),
        "restarts": _restarts(state), "failure": _failure(state, here, started), "blocked": _blocked(state, status),
        "pause": _pause(status, here), "artifacts": {output: kept for output, (kept, _) in artifacts.items()}, "settings": settings,
        "extra": {name: _unknown(state)},
    }  # fmt: skip


# ---- part by part ----------------------------------------------------------------------------------


def _schedule(state: Json, profile: str) -> list[Any]:
    made: list[Any] = []
    known = {phase: (stage, called, kind) for phase, stage, called, kind in PHASES}
    entries = state.get("schedule")
    for entry in entries if isinstance(entries, list) else ():
        phase = entry.get("phase") if isinstance(entry, dict) else None
        if not isinstance(phase, str) or any(phase == kept["step"] for kept in made):
            continue
        stage, called, kind = known.get(phase, ("", phase, "subagent"))
        stage = entry.get("stage", stage)
        if stage in STAGES:
            made.append({"step": phase, "stage": stage, "name": entry.get("name", called), "type": entry.get("type", kind)})
    if made:
        return with_coverage(made)
    return schedule_of(profile, _object(state.get("taskAnalysis")).get("needsTests") is not False)


def _evidence(state: Json, schedule: list[Any]) -> Json:
    """The gates as the file has them; one that cannot be read is the profile's, never none."""
    stages = list(dict.fromkeys(entry["stage"] for entry in schedule))
    made = evidence_of(schedule)
    gates = state.get("gates")
    for gate, told in _object(gates).items():
        required = _object(told).get("required")
        if gate.partition("->")[0] in stages and isinstance(required, list) and all(isinstance(n, str) for n in required):
            made[gate] = {"required": required, "step": str(told.get("phase", ""))}
    return {gate: made[gate] for gate in made}


def _step(state: Json, steps: list[str], step: str, here: str, status: str) -> Json:
    if steps.index(step) < steps.index(here) or (step == here and status == "completed"):
        return {"status": "completed", "iteration": 1, "verdict": None}
    if step == here:
        return {"status": "failed" if status == "failed" else "running", "iteration": 1, "verdict": None}
    return {"status": "pending", "iteration": 0, "verdict": None}


def _visits(steps: list[str], here: str, status: str, started: str) -> list[Json]:
    made: list[Json] = []
    for step in steps[: steps.index(here) + 1]:
        ended = step != here or status in ("completed", "failed")
        made.append({
            "step": step, "item": None, "iteration": 1, "started_at": started, "ended_at": started if ended else None,
            "status": "running" if not ended else "failed" if step == here and status == "failed" else "success",
            "duration_ms": None, "retries": 0, "closed": 0 if ended else None,
        })  # fmt: skip
    return made


def _reviews(state: Json, steps: list[str], artifacts: Json) -> Json:
    """Counters and results as told; a review that lies on disk is judged again, whatever the file says of it."""
    made: Json = {}
    for stage in state.get("stages", {}).values():
        for phase, told in _object(_object(stage).get("phases")).items():
            if phase in steps and isinstance(told, dict) and any(key in told for key in _REVIEW):
                made[phase] = {
                    "fix_attempts": _count(told.get("fixAttempts")), "dispatch_retries": _count(told.get("dispatchRetries")),
                    "answer": told.get("reviewResult"), "approved": False, "visit": 0,
                }  # fmt: skip
    severity = str(_object(state.get("reviewPolicy")).get("minBlockSeverity", "LOW"))
    for kept, answer in artifacts.values():
        if kept["path"].endswith("-review.json"):
            said = review(plain(answer), severity)
            made[kept["step"]] = made.get(kept["step"], {}) | {
                "answer": answer, "approved": said["approved"], "reason": said["reason"], "visit": 1,
                "sha256": kept["sha256"], "next": "",
            }  # fmt: skip
    return made


def _restarts(state: Json) -> list[Json]:
    history = state.get("restartHistory")
    made: list[Json] = []
    for entry in history if isinstance(history, list) else ():
        if isinstance(entry, dict):
            count = sum(1 for kept in made if kept["stage"] == entry.get("stage")) + 1
            made.append({"stage": "", "reason": "", "at": "", "restart": count, **entry})
    return made


def _failure(state: Json, here: str, at: str) -> Json | None:
    told = _object(state.get("failure"))
    if not told:
        return None
    return {
        "step": told.get("phase", here), "error": str(told.get("error", "")), "at": _text(told.get("failedAt")) or at,
        "context": told.get("context"),
    }  # fmt: skip


def _blocked(state: Json, status: str) -> Json | None:
    if status != "blocked":
        return None
    stage = state.get("currentStage")
    reason = _object(state.get("stages", {}).get(stage)).get("blockReason")
    return {"reason": reason or "blocked", "stage": stage, "missing": []}


def _pause(status: str, here: str) -> Json | None:
    if status != "stopped":
        return None
    return {
        "kind": "stopped", "reason": "", "step": here, "attempts": 0, "last_feedback": "", "recommendations": [],
        "resting": "running",
    }  # fmt: skip


def _artifacts(state: Json, turn: Any) -> Json:
    """Outputs that are where the file says; the rest is kept as it was told."""
    told, made = state.get("files"), {}
    for phase, path in _object(told).items():
        output = str(path).rpartition("/")[2]
        text = turn.workspace.files().read(path) if _inside(path) and phase_of_file(output) == phase else None
        if text:
            sha = digest(text)
            turn.tx.put_blob(sha, text)
            kept = {
                "path": path, "sha256": sha, "size": len(text), "step": phase, "attempt": None, "at": turn.at,
                "by": "external",
            }  # fmt: skip
            made[output] = (kept, review_in(text))
    return made


def _unknown(state: Json) -> Json:
    """Every key that a run has no place for, where it stood."""
    kept = {key: value for key, value in state.items() if key not in _SHOWN}
    if state.get("files"):
        kept["files"] = _object(state["files"])
    stages: Json = {}
    for stage, told in state.get("stages", {}).items():
        rest = {key: value for key, value in _object(told).items() if key not in _STAGE}
        phases = {}
        for phase, said in _object(_object(told).get("phases")).items():
            phases[phase] = {key: value for key, value in _object(said).items() if key not in ("status", *_REVIEW)}
        if any(phases.values()):
            rest["phases"] = {phase: said for phase, said in phases.items() if said}
        if rest:
            stages[stage] = rest
    return kept | ({"stages": stages} if stages else {})


def _inside(path: object) -> bool:
    return isinstance(path, str) and not path.startswith("/") and ".." not in path.split("/")


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0
