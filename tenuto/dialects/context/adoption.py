"""Folders that another program wrote become tasks, with every key they hold, and stay as they are.

    adopt(turn, slug)          one folder: manifest.json, or a legacy metadata.json
    adopt_current(turn)        the task that somebody's current-task.md points to
    adopt_all(workspace, slugs)

Rule 1: nothing is written to an adopted folder until a command changes its task.

Rule 2: real files hold drift: `phase` or `name` as a key, unknown statuses, impossible durations, two shapes of
the breakdown. All of it is read; what it meant to others is kept word for word and shown again.

Rule 3: a file that cannot be parsed is named and left alone.
"""

from __future__ import annotations

from tenuto.core.times import between, milliseconds
from tenuto.dialects.context.places import (
    CURRENT,
    KNOWN_STATUSES,
    NAME,
    folder_of,
    legacy_of,
    manifest_of,
    metrics_of,
)
from tenuto.dialects.context.tasks import keep, keep_file
from tenuto.encoding import NotJson, digest, loads_strict
from tenuto.errors import Damaged, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import Turn, Workspace

_BATCH = 200  # folders in one transaction
_LEGACY = {"in-progress": "running", "in_progress": "running"}
KEYS = (
    "name", "mode", "workflow", "status", "current_phase", "running_phases", "completed_phases", "failure_context",
    "gate_context", "metrics", "waves", "created_at", "updated_at", "graduated_at",
)  # fmt: skip


def adopt_all(workspace: Workspace, slugs: list[str]) -> tuple[list[str], list[str]]:
    """(adopted, folders that hold no task). What cannot be read is said and skipped."""
    adopted: list[str] = []
    without: list[str] = []
    for start in range(0, len(slugs), _BATCH):
        batch: list[str] = []
        with workspace.turn() as turn:
            for slug in slugs[start : start + _BATCH]:
                (batch if _adopt_or_say(turn, slug) else without).append(slug)
        adopted += batch
    return adopted, without


def _adopt_or_say(turn: Turn, slug: str) -> bool:
    workspace = turn.workspace
    try:
        if not _is_folder(workspace.root, folder_of(slug)):
            return False
        if adopt(turn, slug) is not None:
            return True
        workspace.warn(f"{folder_of(slug)} has neither manifest.json nor metadata.json; skipped")
    except TenutoError as refusal:
        workspace.warn(f"{refusal.message}; skipped")
    return False


def _is_folder(root: str, path: str) -> bool:
    import os

    return os.path.isdir(f"{root}/{path}")


def adopt(turn: Turn, slug: str) -> Run | None:
    """The folder's task; None where it holds none. The manifest wins over the legacy file."""
    files = turn.workspace.files()
    for path in (manifest_of(slug), legacy_of(slug)):
        found = files.read(path)
        if found is not None:
            return _adopt_file(turn, slug, path, found)
    return None


def _adopt_file(turn: Turn, slug: str, path: str, found: bytes) -> Run:
    try:
        told = loads_strict(found)
    except NotJson as error:
        raise Damaged("unreadable", f"{path} cannot be parsed: {error}", "correct it, or move it away") from None
    if not isinstance(told, dict):
        raise Damaged("unreadable", f"{path} cannot be parsed: it is not a JSON object", "correct it, or move it away")
    tree = turn.workspace.tree
    files = turn.workspace.files()
    place = {"tree": tree, "as_found": path, "seen": files.changed_at(path)}
    has_debt = files.changed_at(f"{folder_of(slug)}/debt.md") is not None
    state = read_manifest(slug, told, turn.at, place, has_debt)
    turn.do(slug, {"do": "Adopt", "dialect": NAME, "path": path, "sha256": digest(found), "state": state})
    run = turn.run(slug)
    assert run is not None
    keep(turn, run, path, found)
    keep_file(turn, run, metrics_of(slug))
    from tenuto.dialects.context.retrieving import look_at_artifacts

    look_at_artifacts(turn, run)
    return run


# ---- current-task.md -------------------------------------------------------------------------------


def adopt_current(turn: Turn) -> str | None:
    """The task that current-task.md points to, made the current one; None where it points to none."""
    from tenuto.dialects.context.tasks import candidates, point_to

    found = turn.workspace.files().read(CURRENT)
    name = points_to(found.decode("utf-8", "replace")) if found else ""
    if not name or found is None:
        return None
    for slug in candidates(name):
        run = turn.run(slug) or adopt(turn, slug)
        if run is not None and NAME in run["dialects"]:
            point_to(turn, slug)
            keep(turn, run, CURRENT, found)
            return slug
    return None


def points_to(text: str) -> str:
    """The task a current-task.md names: its `Task:` line in any dress, else a path of a task's folder."""
    for line in text.splitlines():
        bare = line.replace("*", "").replace("`", "").strip(" \t-#")
        label, colon, value = bare.partition(":")
        if colon and label.strip().lower() in ("task", "current task", "active task", "slug") and value.strip():
            return value.strip()
    _, found, rest = text.partition("context/tasks/")
    if found and rest.split("/")[0].split():
        return rest.split("/")[0].split()[0]
    words = text.split()
    return words[0] if len(words) == 1 else ""  # a file with nothing but the name


# ---- what a manifest says --------------------------------------------------------------------------


def read_manifest(slug: str, told: Any, now: str, place: dict[str, Any], has_debt: bool) -> dict[str, Any]:
    """The run that a manifest tells of, and what it holds beyond that."""
    extra: dict[str, Any] = {"manifest": _others(told)}
    mode = _text(told.get("mode")) or "standard"
    status = _text(told.get("status")) or "running"
    mapped = _LEGACY.get(status.lower(), status)
    if mapped not in KNOWN_STATUSES:
        place["status"] = mapped
    if told.get("name") not in (None, slug):
        extra["name"] = told["name"]
    visits = _visits(told, extra)
    created = _time(told.get("created_at")) or _first_time(visits) or now
    state = {
        "id": slug, "name": _text(told.get("name")) or slug, "request": _text(told.get("name")) or slug,
        "mode": mode, "pipeline": {"name": _text(told.get("workflow")) or ("poc" if mode == "poc" else "orchestrate"), "hash": None},
        "driver": "manual", "dialects": {NAME: place}, "status": mapped, "created_at": created,
        "position": _text(told.get("current_phase")) or None, "visits": visits, "steps": _steps(visits),
        "retries": _retries(told, visits), "graduated_at": _time(told.get("graduated_at")),
    }  # fmt: skip
    state |= _rest(told, mapped, created, "poc-complete" if mode == "poc" and has_debt else "running", extra)
    state |= _plan(told, extra)
    state["extra"] = {NAME: {key: value for key, value in extra.items() if value}}
    return state


def _others(told: Any) -> dict[str, Any]:
    """Keys that are not ours, also inside our objects."""
    others = {key: value for key, value in told.items() if key not in KEYS}
    for key, ours in (
        ("metrics", ("total_duration_ms", "parallelization_savings_ms", "total_retries")),
        ("waves", ("task_breakdown", "execution")),
    ):
        inner = told.get(key)
        if isinstance(inner, dict):
            unknown = {name: value for name, value in inner.items() if name not in ours}
            if unknown:
                others[key] = unknown
        elif inner is not None:
            others[f"{key}_as_found"] = inner
    execution = told["waves"].get("execution") if isinstance(told.get("waves"), dict) else None
    if execution:
        others["waves"] = {**others.get("waves", {}), "execution_as_found": execution}
    return others


def _visits(told: Any, extra: dict[str, Any]) -> list[dict[str, Any]]:
    visits: list[dict[str, Any]] = []
    completed = told.get("completed_phases")
    entries = completed if isinstance(completed, list) else []
    if completed is not None and not isinstance(completed, list):
        extra["manifest"]["completed_phases_as_found"] = completed
    failures: dict[str, int] = {}
    phases: dict[str, Any] = {}
    for at, entry in enumerate(entries):
        shown = entry if isinstance(entry, dict) else {"phase": str(entry)}
        name = phase_in(shown) or f"phase-{at + 1}"
        status = "failed" if _text(shown.get("status")).lower() in ("failed", "failure", "error") else "success"
        visits.append({
            "step": name, "item": None, "iteration": 1, "status": status,
            "started_at": _text(shown.get("started_at")), "ended_at": _text(shown.get("ended_at")),
            "duration_ms": _duration(shown), "closed": at - len(entries),
            "retries": _counted(shown.get("retries"), failures.get(name, 0)),
        })  # fmt: skip
        failures[name] = failures.get(name, 0) + (status == "failed")
        phases[str(at)] = entry
    extra["phases"] = phases
    return visits + _running(told, extra, failures)


def _running(told: Any, extra: dict[str, Any], failures: dict[str, int]) -> list[dict[str, Any]]:
    running = told.get("running_phases")
    others: dict[str, Any] = {}
    visits: dict[str, dict[str, Any]] = {}
    for entry in running if isinstance(running, list) else []:
        shown = entry if isinstance(entry, dict) else {"phase": str(entry)}
        name = phase_in(shown)
        if not name or name in visits:
            continue
        visits[name] = {
            "step": name, "item": None, "iteration": 1, "status": "running",
            "started_at": _text(shown.get("started_at")), "ended_at": None, "duration_ms": None,
            "retries": failures.get(name, 0), "closed": None,
        }  # fmt: skip
        unknown = {key: value for key, value in shown.items() if key not in ("phase", "started_at")}
        if unknown:
            others[name] = unknown
    extra["running"] = others
    return list(visits.values())


def phase_in(entry: dict[str, Any]) -> str:
    return _text(entry.get("phase")) or _text(entry.get("name"))


def _duration(entry: dict[str, Any]) -> int:
    """What was noted where it can be true, else what the times say."""
    return _counted(entry.get("duration_ms"), between(entry.get("started_at"), entry.get("ended_at")))


def _counted(value: Any, otherwise: int) -> int:
    """A number that can be a count, also one in quotes; or else another."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        value = int(value.strip()[:17])
    elif isinstance(value, float) and 0 <= value < 1e15:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else otherwise


def _steps(visits: list[dict[str, Any]]) -> dict[str, Any]:
    done = {"success": "completed", "failed": "failed", "running": "running"}
    counts: dict[str, int] = {}
    steps: dict[str, Any] = {}
    for visit in visits:
        counts[visit["step"]] = counts.get(visit["step"], 0) + 1
        visit["iteration"] = counts[visit["step"]]
        steps[visit["step"]] = {
            "status": done[visit["status"]], "iteration": counts[visit["step"]], "verdict": None,
        }  # fmt: skip
    return steps


def _retries(told: Any, visits: list[dict[str, Any]]) -> int:
    inner = told.get("metrics")
    noted = inner.get("total_retries") if isinstance(inner, dict) else None
    return _counted(noted, sum(1 for visit in visits if visit["status"] == "failed"))


def _rest(told: Any, status: str, created: str, resting: str, extra: dict[str, Any]) -> dict[str, Any]:
    """The pause or the gate that the task rests in, and what it goes back to."""
    at = _time(told.get("updated_at")) or created
    rest: dict[str, Any] = {}
    for key, word, reader, ours in (
        ("failure_context", "paused", _pause, ("phase", "reason", "attempts", "last_feedback", "recommendations")),
        ("gate_context", "waiting_gate", _gate, ("gate", "prompt", "options", "artifacts")),
    ):
        context = told.get(key)
        if status == word:
            shown = context if isinstance(context, dict) else {"reason": _text(context), "gate": _text(context)}
            rest |= reader(shown, at, resting)
            unknown = {name: value for name, value in shown.items() if name not in ours}
            extra["contexts"] = {at if word == "paused" else "gate-1": unknown} if isinstance(context, dict) else {}
        elif context is not None:
            extra["manifest"][f"{key}_as_found"] = context
    return rest


def _pause(shown: Any, at: str, resting: str) -> dict[str, Any]:
    pause = {
        "kind": "failure", "reason": _text(shown.get("reason")), "step": _text(shown.get("phase")) or None,
        "attempts": _counted(shown.get("attempts"), 0), "last_feedback": _text(shown.get("last_feedback")),
        "recommendations": _texts(shown.get("recommendations")), "resting": resting,
    }  # fmt: skip
    return {"paused_at": at, "pause": pause}


def _gate(shown: Any, at: str, resting: str) -> dict[str, Any]:
    name = _text(shown.get("gate")) or "unknown"
    gate = {
        "id": "gate-1", "name": name, "prompt": _text(shown.get("prompt")),
        "options": _texts(shown.get("options")) or ["approve", "reject", "revise"],
        "shown": [{"path": path, "sha256": None} for path in _texts(shown.get("artifacts"))],
        "opened_at": at, "completes": name == "final", "resting": resting,
    }  # fmt: skip
    return {"gate": gate}


def _plan(told: Any, extra: dict[str, Any]) -> dict[str, Any]:
    inner = told.get("waves")
    breakdown = inner.get("task_breakdown") if isinstance(inner, dict) else None
    if breakdown is None:
        return {}
    from tenuto.dialects.context.breakdown import read_found

    extra["breakdown"] = breakdown
    items, waves = read_found(breakdown)
    return {
        "items": {name: {**item, "agent": "", "status": "pending"} for name, item in items.items()},
        "waves": [
            {"wave": number, "items": names, "started_at": None, "ended_at": None}
            for number, names in enumerate(waves, 1)
        ],
    }


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [_text(entry) for entry in value if entry is not None]
    return [entry.strip() for entry in _text(value).split(",") if entry.strip()]


def _time(value: Any) -> str | None:
    """A time as it was written, where it can stand among ours; another spelling of a time as we write it."""
    text = _text(value)
    known = milliseconds(text) or milliseconds(f"{text}T00:00:00Z")  # real files have days without a time
    if known is None:
        return None
    from tenuto.core.times import iso

    return text if text.endswith("Z") and text[10] == "T" else iso(known)


def _first_time(visits: list[dict[str, Any]]) -> str | None:
    times = sorted(time for visit in visits if (time := _time(visit["started_at"])))
    return times[0] if times else None
