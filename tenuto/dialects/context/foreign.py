"""Somebody changed a task's file: what do they ask for?

    manifest.json      phases begun and ended, a pause, a gate, an end, unknown keys: said in commands, and core judges
    current-task.md    notes below it; pointing it at another task is followed by the next command
    metrics/*.json     unknown keys only: the figures follow from the phases

Rule 1: nothing that we know is changed by an edit except through a command. A gate is never opened by one.

Rule 2: what cannot be said in a command is refused by name, and the file is left as it is.

Rule 3: keys that we do not know are kept and shown again; an entry that others wrote is shown as they wrote it.
"""

from __future__ import annotations

from tenuto.dialects.context.adoption import phase_in, points_to
from tenuto.dialects.context.places import CURRENT, NAME, kept, manifest_of, metrics_of, visits_of
from tenuto.encoding import loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run

# Derived by us from what happened; whatever stands there is replaced.
_DERIVED = ("updated_at", "current_phase")
_INSIDE = {
    "metrics": ("total_duration_ms", "parallelization_savings_ms", "total_retries"),
    "waves": ("task_breakdown", "execution"),
}
_CONTEXTS = {"failure_context": "paused", "gate_context": "waiting_gate"}


def read(run: Run, path: str, before: bytes, after: bytes) -> list[Any]:
    if path == CURRENT:
        return _read_current(run, before, after)
    told = loads_strict(after)
    if not isinstance(told, dict):
        raise Refused("not-an-object", "it is not a JSON object")
    base = loads_strict(before) if before.strip() else {}
    if path == metrics_of(run["id"]):
        extra: dict[str, Any] = {}
        drop: list[list[str]] = []
        _read_unknown(base, told, ("task", "metrics", "waves", "completed_phases"), ["metrics"], extra, drop)
        return [_absorb(extra, drop)]
    commands = _take_over(run)
    commands += _read_manifest(run, base if isinstance(base, dict) else {}, told, path)
    return commands


def _absorb(extra: dict[str, Any], drop: list[list[str]]) -> dict[str, Any]:
    return {"do": "AbsorbEdit", "extra": {key: value for key, value in extra.items() if value}, "drop": drop}


def _take_over(run: Run) -> list[Any]:
    place = run["dialects"][NAME]
    if "as_found" not in place:
        return []
    rest = {key: value for key, value in place.items() if key not in ("as_found", "seen")}
    return [{"do": "ShowIn", "dialect": NAME, "place": rest}]


# ---- the manifest ----------------------------------------------------------------------------------


def _read_manifest(run: Run, base: Any, told: Any, path: str) -> list[Any]:
    extra: dict[str, Any] = {}
    drop: list[list[str]] = []
    commands: list[Any] = []
    ours = _known(run, path)
    changed = [key for key in ours if base.get(key) != told.get(key)]
    for key in changed:
        if key == "workflow":
            name = str(told.get(key) or "")
            if not name:
                raise _fixed(key)
            commands.append({"do": "ChangeDriver", "driver": run["driver"], "pipeline": {"name": name, "hash": None}})
        elif key in _INSIDE:
            commands += _read_inside(key, base.get(key), told.get(key), extra, drop)
        elif key not in (*_DERIVED, "status", "running_phases", "completed_phases", *_CONTEXTS):
            raise _fixed(key)
    _read_unknown(base, told, ours, ["manifest"], extra, drop, known_may_change=True)
    if {"running_phases", "completed_phases"} & set(changed):
        commands += _read_phases(run, base, told, extra)
    if "status" in changed or set(_CONTEXTS) & set(changed):
        commands += _read_status(run, base, told, extra)
    return [*commands, _absorb(extra, drop)]


def _known(run: Run, path: str) -> tuple[str, ...]:
    if path != manifest_of(run["id"]):
        return ("name", "mode", "workflow", "status", "created_at", "updated_at")
    from tenuto.dialects.context.adoption import KEYS

    return KEYS


def _fixed(key: str) -> Refused:
    return Refused("fixed-key", f"{key} cannot be changed by editing the file")


def _read_inside(key: str, base: Any, told: Any, extra: dict[str, Any], drop: list[list[str]]) -> list[Any]:
    """metrics and waves: unknown keys, and a breakdown that was not there before."""
    if not isinstance(told, dict):
        raise _fixed(key)
    base = base if isinstance(base, dict) else {}
    commands: list[Any] = []
    if key == "waves" and base.get("task_breakdown") != told.get("task_breakdown"):
        breakdown = told.get("task_breakdown")
        if not isinstance(breakdown, dict) or not breakdown:
            raise _fixed("waves.task_breakdown")
        from tenuto.dialects.context.breakdown import plan, read_found

        items, waves = plan(breakdown) if "tasks" in breakdown else read_found(breakdown)
        commands.append({"do": "PlanItems", "items": items, "waves": waves})
        extra["breakdown"] = breakdown
        drop.append(["breakdown"])
        base, told = {**base, "task_breakdown": None}, {**told, "task_breakdown": None}
    _read_unknown(base, told, _INSIDE[key], ["manifest", key], extra, drop)
    return commands


def _read_unknown(
    base: Any, told: Any, ours: tuple[str, ...], place: list[str], extra: dict[str, Any], drop: list[list[str]],
    known_may_change: bool = False,
) -> None:  # fmt: skip
    """Keys that are not ours: new, changed and gone ones. A change of one of ours is refused."""
    for name in {**base, **told}:
        if (name in base) == (name in told) and base.get(name) == told.get(name):
            continue
        if name in ours:
            if not known_may_change:
                raise _fixed(".".join([*place[1:], name]))
            continue
        drop.append([*place, name])
        if name in told:
            inner = extra
            for part in place:
                inner = inner.setdefault(part, {})
            inner[name] = told[name]


# ---- phases ----------------------------------------------------------------------------------------


def _read_phases(run: Run, base: Any, told: Any, extra: dict[str, Any]) -> list[Any]:
    completed_before, completed = _entries(base, "completed_phases"), _entries(told, "completed_phases")
    running_before, running = _entries(base, "running_phases"), _entries(told, "running_phases")
    if completed[: len(completed_before)] != completed_before:
        raise Refused("fixed-key", "completed_phases only grows: an entry was changed or taken out")
    commands: list[Any] = []
    open_phases = [phase_in(entry) for entry in running_before]
    position = sum(1 for visit in visits_of(run) if visit["closed"] is not None)
    phases: dict[str, Any] = {}
    for entry in completed[len(completed_before) :]:
        name, status = phase_in(entry), str(entry.get("status") or "")
        if not name or status not in ("success", "failed"):
            raise Refused("bad-phase", "an entry of completed_phases has no phase, or a status that is not success or failed")
        if name in open_phases:
            open_phases.remove(name)
        else:
            commands.append({"do": "StartStep", "step": name})
        commands.append({"do": "EndStep", "step": name, "status": status})
        phases[str(position + len(phases))] = entry
    extra["phases"] = phases
    names = [phase_in(entry) for entry in running]
    gone = [name for name in open_phases if name not in names]
    if gone:
        raise Refused("fixed-key", f"running_phases: {', '.join(gone)} did not end; it belongs in completed_phases")
    for entry, name in zip(running, names, strict=True):
        if not name:
            raise Refused("bad-phase", "an entry of running_phases has no phase")
        if name not in open_phases:
            commands.append({"do": "StartStep", "step": name})
            unknown = {key: value for key, value in entry.items() if key not in ("phase", "started_at")}
            if unknown:
                extra.setdefault("running", {})[name] = unknown
    return commands


def _entries(told: Any, key: str) -> list[Any]:
    value = told.get(key) or []
    if not isinstance(value, list) or any(not isinstance(entry, dict) for entry in value):
        raise Refused("bad-phase", f"{key} is not a list of phases")
    return value


# ---- status ----------------------------------------------------------------------------------------


def _read_status(run: Run, base: Any, told: Any, extra: dict[str, Any]) -> list[Any]:
    before, after = str(base.get("status")), str(told.get("status"))
    if before == after:
        if after == "paused" and base.get("failure_context") != told.get("failure_context"):
            return [_pause(told)]
        raise _fixed("gate_context" if base.get("gate_context") != told.get("gate_context") else "failure_context")
    if before == "waiting_gate":
        raise Refused("gate-open", "a gate is opened by a decision, not by editing the file: RESUME decision: <approve|reject>")
    match after:
        case "paused":
            return [_pause(told)]
        case "waiting_gate":
            return [_gate(told)]
        case "failed":
            return [{"do": "Fail", "error": "set to failed in manifest.json"}]
        case "completed":
            return [{"do": "Finish", "outcome": after}]
        case "graduated" | "poc-complete":
            if run["mode"] != "poc":
                raise Refused("not-poc", f"only a POC can be {after}")
            outcomes = [after] if after == "poc-complete" or before == "poc-complete" else ["poc-complete", after]
            return [{"do": "Finish", "outcome": outcome} for outcome in outcomes]
        case "running" if before == "paused":
            if run["driver"] != "manual":
                raise Refused("engine-driven", f"a run that follows a pipeline goes on with a person's word: tenuto resume {run['id']}")
            return [{"do": "Resume", "decision": "retry"}]
    raise Refused("bad-status", f"the status cannot be changed from {before} to {after}")


def _pause(told: Any) -> dict[str, Any]:
    context = told.get("failure_context")
    shown = context if isinstance(context, dict) else {}
    recommendations = shown.get("recommendations")
    return {
        "do": "Pause", "reason": str(shown.get("reason") or "paused in manifest.json"),
        "step": shown.get("phase") if isinstance(shown.get("phase"), str) else None,
        "last_feedback": str(shown.get("last_feedback") or ""),
        "recommendations": [str(entry) for entry in recommendations] if isinstance(recommendations, list) else [],
    }  # fmt: skip


def _gate(told: Any) -> dict[str, Any]:
    context = told.get("gate_context")
    shown = context if isinstance(context, dict) else {}
    name = str(shown.get("gate") or "unknown")  # a gate that says too little is a gate all the same
    if name not in ("design", "final", "unknown"):
        raise Refused("bad-gate", f"Invalid gate type: {name}")
    artifacts = shown.get("artifacts")
    listed = [str(path) for path in artifacts] if isinstance(artifacts, list) else []
    return {
        "do": "OpenGate", "name": name, "prompt": str(shown.get("prompt") or ""), "completes": name == "final",
        "shown": [{"path": path, "sha256": None} for path in listed],
    }  # fmt: skip


# ---- current-task.md -------------------------------------------------------------------------------


def _read_current(run: Run, before: bytes, after: bytes) -> list[Any]:
    text = after.decode("utf-8", "replace")
    if "\0" in text:
        raise Refused("not-text", "it is not a text")
    name = points_to(text)
    if name and name != run["id"]:
        raise Refused("other-task", f"it points to the task {name}")
    ours = set(before.decode("utf-8", "replace").splitlines()) - set(str(kept(run).get("notes") or "").splitlines())
    labels = ("**Task:**", "**Mode:**", "**Workflow:**", "**Status:**", "**Path:**", "## Notes")
    theirs: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            theirs += [""] if theirs and theirs[-1] else []
        elif line not in ours and not line.startswith(labels):
            theirs.append(line)
    return [{"do": "AbsorbEdit", "extra": {"notes": "\n".join(theirs).strip("\n")}}]
