"""What an agent may do right now: be dispatched, call another one, touch a file.

Asked before it happens, by hooks inside agent programs. Each answer is None (yes) or the reason why not.

A gate is closed while the run waits for a person: at an open gate, in a pause, or in front of an
approval that nobody gave. What belongs to a step before that approval may go on: a plan is
revised in front of its approval, not behind it.

An agent that calls agents that call agents is a loop somebody pays for: MAX_DEPTH is the end of it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run

MAX_DEPTH = 5
_WAITING = ("waiting_gate", "paused", "parked", "stopped")


def closed(run: Run, step: str | None) -> str | None:
    """Why no agent may be dispatched for `step` now."""
    if run["status"] in _WAITING:
        what = f"waits at gate {run['gate']['name']!r}" if run["gate"] else f"is {run['status']}"
        return f"run {run['id']} {what}"
    order = [entry["step"] for entry in run["schedule"]]
    if run["order"] == "open" and step in order:
        from tenuto.core.decisions.steps import approved

        for entry in run["schedule"][: order.index(step) + 1]:
            if entry.get("approval") and not approved(run, entry["step"]):
                return f"{entry['step']!r} of run {run['id']} is not approved by a person"
    return None


def depth_of(run: Run, parent: str | None) -> int:
    """How deep an agent called by attempt `parent` would stand; the session itself calls at depth 1."""
    caller = run["attempts"].get(parent or "")
    return 1 if caller is None else int(caller["extra"].get("depth", 1)) + 1


def outside(run: Run, declared: Any, path: str) -> str | None:
    """Why `path` (below the work tree) may not be edited in the step the run is in.

    `declared`: patterns, patterns by step ("*": any step), or "items" for the files of the items under way.
    """
    patterns = _patterns(run, declared)
    if patterns is None:
        return None
    from tenuto.core.definition.paths import fits

    meant = patterns
    if _declared(run, declared) == "items":
        from tenuto.core.items import meant_by

        meant = [pattern for name in patterns for pattern in meant_by(name)]
    if not path.startswith(("/", "..")) and any(fits(pattern, path) for pattern in meant):
        return None
    allowed = ", ".join(patterns) or "nothing"
    return f"{path} is outside what {run['position'] or 'this step'!r} of run {run['id']} may edit: {allowed}"


def _declared(run: Run, declared: Any) -> Any:
    return declared.get(run["position"] or "", declared.get("*")) if isinstance(declared, dict) else declared


def _patterns(run: Run, declared: Any) -> list[str] | None:
    declared = _declared(run, declared)
    if declared == "items":
        busy = [item for item in run["items"].values() if item["status"] == "running"]
        return [path for item in busy for path in item["files"]] if busy else None
    return [_below(str(pattern)) for pattern in declared] if isinstance(declared, list) else None


def _below(pattern: str) -> str:
    return pattern + "**" if pattern.endswith("/") else pattern


def settings_of(repo_settings: Json, run: Run | None) -> Json:
    """What the user declared for hooks: the run's own word counts before the repository's."""
    declared = dict(repo_settings.get("hooks") or {})
    declared.update((run["settings"].get("hooks") if run else None) or {})
    return declared
