"""What state.json shows of a run, key by key in the order its users know.

Everything about position and status follows from the run. What others keep in the file and we do not know is shown again
where they put it; where both know something, ours is shown.
"""

from __future__ import annotations

from tenuto.dialects.staged import VERSION, name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Evidence, Json, Run, ScheduledStep

STATUS = {
    "created": "pending", "running": "in_progress", "paused": "stopped", "waiting_gate": "blocked", "parked": "stopped",
    "stopped": "stopped", "blocked": "blocked", "restarting": "restarting", "completed": "completed", "failed": "failed",
    "cancelled": "stopped", "poc-complete": "completed", "graduated": "completed",
}  # fmt: skip
# Kept word for word; `update` and others may change them.
SETTINGS = (
    "codexAvailable", "ownerPpid", "worktree", "reviewer", "failureAnalyzer", "difficultyEstimator", "testDeveloper",
    "docUpdater", "taskAnalysis", "codexTimeout", "supplementaryPolicy", "coverageThreshold", "webSearch", "reviewPolicy",
)  # fmt: skip
_BEFORE_SCHEDULE = 9
_STEP_SHOWN = {
    "pending": "pending", "running": "in_progress", "completed": "completed", "failed": "failed", "skipped": "skipped",
}  # fmt: skip
_STAGE_FIELDS = {
    "EXPLORE": ("status", "agentCount"),
    "PLAN": ("status", "phases", "restartCount", "blockReason"),
    "IMPLEMENT": ("status", "phases", "restartCount", "blockReason"),
    "TEST": ("status", "enabled", "restartCount", "blockReason"),
    "FINAL": ("status", "restartCount", "blockReason"),
}


def document(run: Run) -> Json:
    settings, extra = run["settings"], run["extra"].get(name, {})
    told = {key: settings.get(key) for key in SETTINGS}
    shown: Json = {
        "version": VERSION, "task": run["request"] or run["name"], "status": STATUS[run["status"]],
        "currentStage": stage_of(run), "currentPhase": phase_of(run), "pipelineProfile": profile_of_run(run),
        **{key: told[key] for key in SETTINGS[:_BEFORE_SCHEDULE]},
        "schedule": [_scheduled(entry) for entry in schedule(run)],
        "gates": {gate: {"required": e["required"], "phase": e["step"]} for gate, e in evidence(run).items()},
        "stages": {stage: _stage(run, stage, extra) for stage in _STAGE_FIELDS},
        **{key: told[key] for key in SETTINGS[_BEFORE_SCHEDULE:]},
        "restartHistory": [dict(restart) for restart in run["restarts"]],
        "files": files(run), "failure": _failure(run), "compaction": _compaction(run, extra),
        "startedAt": run["created_at"] or None, "updatedAt": run["updated_at"] or None, "stoppedAt": run["stopped_at"],
    }  # fmt: skip
    _add_unknown(shown, extra)
    return shown


# ---- where the run is ------------------------------------------------------------------------------


def profile_of_run(run: Run) -> str:
    told = run["settings"].get("pipelineProfile") or run["pipeline"]["name"].removeprefix("staged-")
    return told if told in ("minimal", "standard", "thorough") else "thorough"


def schedule(run: Run) -> list[ScheduledStep]:
    """The run's own; of a run that an engine leads, the one of its profile."""
    if run["schedule"]:
        return run["schedule"]
    from tenuto.dialects.staged.profiles import schedule_of

    return schedule_of(profile_of_run(run), run["switches"].get("tests", True))


def evidence(run: Run) -> dict[str, Evidence]:
    if run["evidence"] or run["schedule"]:
        return run["evidence"]
    from tenuto.dialects.staged.profiles import evidence_of

    return evidence_of(schedule(run))


def phase_of(run: Run) -> str:
    """The current phase. A run of another pipeline is at the beginning until it has ended."""
    steps = [entry["step"] for entry in schedule(run)]
    if run["position"] in steps:
        return str(run["position"])
    return steps[-1] if STATUS[run["status"]] == "completed" else steps[0]


def stage_of(run: Run) -> str:
    here = phase_of(run)
    return next(entry.get("stage", "") for entry in schedule(run) if entry["step"] == here)


def files(run: Run) -> Json:
    """phase -> path, of what was recorded: by our commands, and by others in the file itself."""
    shown: dict[str, Any] = {}
    for kept in run["artifacts"].values():
        step = kept["step"]
        named = kept["path"].rpartition("/")[2].startswith(f"{step}-")
        if step is not None and (named or step not in shown):
            shown[step] = kept["path"]
    told = run["extra"].get(name, {}).get("files")
    for phase, path in told.items() if isinstance(told, dict) else ():
        shown.setdefault(phase, path)
    return {phase: shown[phase] for phase in sorted(shown, key=_order)}


def block_reason(run: Run) -> str | None:
    blocked = run["blocked"]
    if blocked is None:
        return None
    gate = evidence(run).get(blocked["reason"])
    if gate is None:
        return blocked["reason"]
    lacking, following = ", ".join(blocked["missing"]), blocked["reason"].partition("->")[2]
    return (
        f"Gate check failed: missing {lacking}. Phase {gate['step']} must complete before transitioning to {following}."
    )


# ---- stages and phases -----------------------------------------------------------------------------


def _scheduled(entry: Any) -> Json:
    shown = {"phase": entry["step"]}
    for field in ("stage", "name", "type"):
        if field in entry:
            shown[field] = entry[field]
    return shown


def _stage(run: Run, stage: str, extra: Json) -> Json:
    mine = [entry["step"] for entry in schedule(run) if entry.get("stage") == stage]
    phases = {phase: _phase(run, phase) for phase in mine if _step(run, phase) != "pending"}
    here = run["blocked"] is not None and run["blocked"]["stage"] == stage
    shown: Json = {}
    for field in _STAGE_FIELDS[stage]:
        match field:
            case "status":
                shown[field] = _stage_status(run, stage, mine)
            case "agentCount":
                shown[field] = _agents(run, mine, extra, stage)
            case "phases":
                shown[field] = phases
            case "enabled":
                shown[field] = bool(mine)
            case "restartCount":
                shown[field] = sum(1 for restart in run["restarts"] if restart["stage"] == stage)
            case "blockReason":
                shown[field] = block_reason(run) if here else None
    if stage in ("TEST", "FINAL") and phases:
        shown["phases"] = phases
    if here and "blockReason" not in shown:
        shown["blockReason"] = block_reason(run)
    return shown


def _stage_status(run: Run, stage: str, mine: list[str]) -> str:
    if not mine:
        return "skipped"
    if STATUS[run["status"]] == "completed":
        return "completed"
    if stage == stage_of(run):
        return STATUS[run["status"]]
    done = all(_step(run, phase) in ("completed", "skipped") for phase in mine)
    return "completed" if done and not _ahead(run, mine[0]) else "pending"


def _agents(run: Run, mine: list[str], extra: Json, stage: str) -> int:
    """Ours, or what a hook counted, whichever is more."""
    own = sum(1 for attempt in run["attempts"].values() if attempt["step"] in mine)
    told = extra.get("stages", {}).get(stage, {}).get("agentCount", 0)
    return max(own, told) if type(told) is int else own


def _step(run: Run, phase: str) -> str:
    state = run["steps"].get(phase)
    return state["status"] if state else "pending"


def _ahead(run: Run, phase: str) -> bool:
    steps = [entry["step"] for entry in schedule(run)]
    return steps.index(phase) > steps.index(phase_of(run))


def _phase(run: Run, phase: str) -> Json:
    """What others know of a phase: a review has counters and a result, the rest a status."""
    shown: Json = {"status": "pending" if _ahead(run, phase) else _STEP_SHOWN[_step(run, phase)]}
    review = run["reviews"].get(phase)
    if review is not None:
        shown["fixAttempts"] = review.get("fix_attempts", 0)
        shown["dispatchRetries"] = review.get("dispatch_retries", 0)
        shown["reviewResult"] = review.get("answer")
    return shown


# ---- the rest --------------------------------------------------------------------------------------


def _failure(run: Run) -> Json | None:
    failed = run["failure"]
    if failed is None:
        return None
    context = failed["context"]
    if context is None and run["driver"] != "manual":
        from tenuto.dialects.staged.engine import tasks_told

        context = tasks_told(run)
    return {"phase": failed["step"] or phase_of(run), "error": failed["error"], "failedAt": failed["at"], "context": context}


def _compaction(run: Run, extra: Json) -> Json:
    shown: Json = {"lastCompactedAt": None, "history": []}
    theirs = extra.get("compaction")
    if isinstance(theirs, dict):
        shown.update(theirs)
    saved = (run["resume"] or {}).get("saved_at")
    if saved and saved > str(shown["lastCompactedAt"] or "") and isinstance(shown["history"], list):
        shown["lastCompactedAt"] = saved
        shown["history"] = [*shown["history"], {"compactedAt": saved}]
    return shown


def _add_unknown(shown: Json, extra: Json) -> None:
    for key, value in extra.items():
        if key not in shown:
            shown[key] = value
        elif isinstance(value, dict) and isinstance(shown[key], dict):
            _add_unknown(shown[key], value)


def _order(phase: str) -> tuple[float, ...]:
    return tuple(int(part) if part.isdecimal() else 999 for part in phase.split("."))
