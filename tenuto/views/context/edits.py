"""Another program changed a task's file: the commands that say the same.

    manifest.json      phases begun and ended, a pause, a gate, an end, unknown keys: said in commands, and core judges
    current-task.md    notes below it; pointing it at another task is followed by the next command
    metrics/*.json     unknown keys only: the figures follow from the phases

Rule 1: nothing that we know is changed by an edit except through a command. A gate is never opened by one.

Rule 2: what cannot be said in a command is refused by name, and the file is left as it is.

Rule 3: keys that we do not know are kept and shown again; an entry that others wrote is shown as they wrote it.
"""

from __future__ import annotations

from tenuto.encoding import digest, loads_strict
from tenuto.errors import Refused
from tenuto.views.context.manifest import INNER_KEYS, KEYS, phase_in, points_to
from tenuto.views.context.state import CURRENT, NAME, as_found, extra_of, manifest_of, metrics_of, visits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.commands import AbsorbEdit, Command, OpenGate, Pause
    from tenuto.core.records.run import Json, Run
    from tenuto.views.context.state import Extra

# Derived by us from what happened; what an edit puts there is replaced.
_DERIVED = ("updated_at", "current_phase")
_CONTEXTS = ("failure_context", "gate_context")
_IN_COMMANDS = (*_DERIVED, *_CONTEXTS, "status", "running_phases", "completed_phases")
_METRICS_KEYS = ("task", "metrics", "waves", "completed_phases")
_LEGACY_KEYS = ("name", "mode", "workflow", "status", "created_at", "updated_at")
_LABELS = ("**Task:**", "**Mode:**", "**Workflow:**", "**Status:**", "**Path:**", "## Notes")


class _Remainder:
    """What an edit holds that no command says: what is kept of it, and the paths of kept keys that it replaces."""

    def __init__(self) -> None:
        self.extra: Extra = {}
        self.drop: list[list[str]] = []

    def unknown(
        self, base: Json, edited: Json, ours: tuple[str, ...], path: list[str], ours_may_change: bool = False
    ) -> Json:
        """The keys that are not ours and that are new or changed; changed and missing ones are dropped.

        A change of one of ours is refused.
        """
        unknown: Json = {}
        for name in {**base, **edited}:
            if (name in base) == (name in edited) and base.get(name) == edited.get(name):
                continue
            if name in ours:
                if not ours_may_change:
                    raise _fixed(".".join([*path[1:], name]))
                continue
            self.drop.append([*path, name])
            if name in edited:
                unknown[name] = edited[name]
        return unknown

    def command(self, path: str, text: bytes) -> AbsorbEdit:
        return {
            "do": "AbsorbEdit",
            "dialect": NAME,
            "path": path,
            "sha256": digest(text),
            "extra": {key: value for key, value in self.extra.items() if value},
            "drop": self.drop,
        }


def read(run: Run, path: str, before: bytes, after: bytes) -> list[Command]:
    if path == CURRENT:
        return [_read_current(run, before, after)]
    edited: object = loads_strict(after)
    if not isinstance(edited, dict):
        raise Refused("not-an-object", "it is not a JSON object")
    base: object = loads_strict(before) if before.strip() else {}
    if not isinstance(base, dict):
        base = {}
    remainder = _Remainder()
    commands: list[Command] = []
    if path == metrics_of(run["id"]):
        remainder.extra["metrics"] = remainder.unknown(base, edited, _METRICS_KEYS, ["metrics"])
    else:
        commands = [*_take_over(run), *_read_manifest(run, base, edited, path, remainder)]
    return [*commands, remainder.command(path, after)]


def _take_over(run: Run) -> list[Command]:
    if not as_found(run):
        return []
    place = {key: value for key, value in run["dialects"][NAME].items() if key not in ("as_found", "seen")}
    return [{"do": "ShowIn", "dialect": NAME, "place": place}]


# ---- the manifest ----------------------------------------------------------------------------------


def _read_manifest(run: Run, base: Json, edited: Json, path: str, remainder: _Remainder) -> list[Command]:
    commands: list[Command] = []
    ours = KEYS if path == manifest_of(run["id"]) else _LEGACY_KEYS
    changed = [key for key in ours if base.get(key) != edited.get(key)]
    for key in changed:
        if key == "workflow":
            name = str(edited.get(key) or "")
            if not name:
                raise _fixed(key)
            commands.append({"do": "ChangeDriver", "driver": run["driver"], "pipeline": {"name": name, "hash": None}})
        elif key in INNER_KEYS:
            commands += _read_inside(key, base.get(key), edited.get(key), remainder)
        elif key not in _IN_COMMANDS:
            raise _fixed(key)
    unknown = remainder.unknown(base, edited, ours, ["manifest"], ours_may_change=True)
    if unknown:
        remainder.extra.setdefault("manifest", {}).update(unknown)
    if "running_phases" in changed or "completed_phases" in changed:
        commands += _read_phases(run, base, edited, remainder.extra)
    if "status" in changed or any(key in changed for key in _CONTEXTS):
        commands += _read_status(run, base, edited)
    return commands


def _fixed(key: str) -> Refused:
    return Refused("fixed-key", f"{key} cannot be changed by editing the file")


def _read_inside(key: str, base: object, edited: object, remainder: _Remainder) -> list[Command]:
    """metrics and waves: unknown keys, and a breakdown that was not there before."""
    if not isinstance(edited, dict):
        raise _fixed(key)
    base = base if isinstance(base, dict) else {}
    commands: list[Command] = []
    if key == "waves" and base.get("task_breakdown") != edited.get("task_breakdown"):
        breakdown = edited.get("task_breakdown")
        if not isinstance(breakdown, dict) or not breakdown:
            raise _fixed("waves.task_breakdown")
        from tenuto.views.context.manifest import as_items, plan, read_adopted

        tasks, waves = plan(breakdown) if "tasks" in breakdown else read_adopted(breakdown)
        commands.append({"do": "PlanItems", "items": as_items(tasks), "waves": waves})
        remainder.extra["breakdown"] = breakdown
        remainder.drop.append(["breakdown"])
        base, edited = {**base, "task_breakdown": None}, {**edited, "task_breakdown": None}
    unknown = remainder.unknown(base, edited, INNER_KEYS[key], ["manifest", key])
    if unknown:
        remainder.extra.setdefault("manifest", {})[key] = unknown
    return commands


# ---- phases ----------------------------------------------------------------------------------------


def _read_phases(run: Run, base: Json, edited: Json, extra: Extra) -> list[Command]:
    completed_before, completed = _entries(base, "completed_phases"), _entries(edited, "completed_phases")
    running_before, running = _entries(base, "running_phases"), _entries(edited, "running_phases")
    if completed[: len(completed_before)] != completed_before:
        raise Refused("fixed-key", "completed_phases only grows: an entry was changed or taken out")
    commands: list[Command] = []
    open_phases = [phase_in(entry) for entry in running_before]
    position = sum(1 for visit in visits_of(run) if visit["closed"] is not None)
    phases: Json = {}
    for entry in completed[len(completed_before) :]:
        name, status = phase_in(entry), str(entry.get("status") or "")
        if not name or status not in ("success", "failed"):
            raise Refused(
                "bad-phase", "an entry of completed_phases has no phase, or a status that is not success or failed"
            )
        if name in open_phases:
            open_phases.remove(name)
        else:
            commands.append({"do": "StartStep", "step": name})
        commands.append({"do": "EndStep", "step": name, "status": "success" if status == "success" else "failed"})
        phases[str(position + len(phases))] = entry
    extra["phases"] = phases
    return commands + _read_running(running, open_phases, extra)


def _read_running(running: list[Json], open_phases: list[str], extra: Extra) -> list[Command]:
    commands: list[Command] = []
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


def _entries(document: Json, key: str) -> list[Json]:
    entries = document.get(key) or []
    if not isinstance(entries, list) or any(not isinstance(entry, dict) for entry in entries):
        raise Refused("bad-phase", f"{key} is not a list of phases")
    return entries


# ---- status ----------------------------------------------------------------------------------------


def _read_status(run: Run, base: Json, edited: Json) -> list[Command]:
    before, after = str(base.get("status")), str(edited.get("status"))
    if before == after:
        if after == "paused" and base.get("failure_context") != edited.get("failure_context"):
            return [_pause(edited)]
        raise _fixed("gate_context" if base.get("gate_context") != edited.get("gate_context") else "failure_context")
    if before == "waiting_gate":
        raise Refused(
            "gate-open", "a gate is opened by a decision, not by editing the file: RESUME decision: <approve|reject>"
        )
    match after:
        case "paused":
            return [_pause(edited)]
        case "waiting_gate":
            return [_gate(edited)]
        case "failed":
            return [{"do": "Fail", "error": "set to failed in manifest.json"}]
        case "completed":
            return [{"do": "Finish", "outcome": "completed"}]
        case "graduated" | "poc-complete":
            return _finish_poc(run, before, after)
        case "running" if before == "paused":
            if run["driver"] != "manual":
                raise Refused(
                    "engine-driven",
                    f"a run that follows a pipeline goes on with a person's word: tenuto resume {run['id']}",
                )
            return [{"do": "Resume", "decision": "retry"}]
    raise Refused("bad-status", f"the status cannot be changed from {before} to {after}")


def _finish_poc(run: Run, before: str, after: str) -> list[Command]:
    if run["mode"] != "poc":
        raise Refused("not-poc", f"only a POC can be {after}")
    commands: list[Command] = []
    if after == "poc-complete" or before != "poc-complete":
        commands.append({"do": "Finish", "outcome": "poc-complete"})
    if after == "graduated":
        commands.append({"do": "Finish", "outcome": "graduated"})
    return commands


def _pause(edited: Json) -> Pause:
    context = edited.get("failure_context")
    shown = context if isinstance(context, dict) else {}
    recommendations = shown.get("recommendations")
    return {
        "do": "Pause",
        "reason": str(shown.get("reason") or "paused in manifest.json"),
        "step": shown.get("phase") if isinstance(shown.get("phase"), str) else None,
        "feedback": str(shown.get("last_feedback") or ""),
        "recommendations": [str(entry) for entry in recommendations] if isinstance(recommendations, list) else [],
    }


def _gate(edited: Json) -> OpenGate:
    context = edited.get("gate_context")
    shown = context if isinstance(context, dict) else {}
    name = str(shown.get("gate") or "unknown")  # a gate that says too little is a gate all the same
    if name not in ("design", "final", "unknown"):
        raise Refused("bad-gate", f"Invalid gate type: {name}")
    artifacts = shown.get("artifacts")
    listed = [str(path) for path in artifacts] if isinstance(artifacts, list) else []
    return {
        "do": "OpenGate",
        "name": name,
        "prompt": str(shown.get("prompt") or ""),
        "completes": name == "final",
        "shown": [{"path": path, "sha256": None} for path in listed],
    }


# ---- current-task.md -------------------------------------------------------------------------------


def _read_current(run: Run, before: bytes, after: bytes) -> AbsorbEdit:
    text = after.decode("utf-8", "replace")
    if "\0" in text:
        raise Refused("not-text", "it is not a text")
    name = points_to(text)
    if name and name != run["id"]:
        raise Refused("other-task", f"it points to the task {name}")
    notes = str(extra_of(run).get("notes") or "")
    ours = set(before.decode("utf-8", "replace").splitlines()) - set(notes.splitlines())
    theirs: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            theirs += [""] if theirs and theirs[-1] else []
        elif line not in ours and not line.startswith(_LABELS):
            theirs.append(line)
    extra: Json = {"notes": "\n".join(theirs).strip("\n")}
    return {"do": "AbsorbEdit", "dialect": NAME, "path": CURRENT, "sha256": digest(after), "extra": extra}
