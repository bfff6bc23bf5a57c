"""What an agent that asks first may do. Nobody sits there to answer: a rule does.

    none     nothing
    edits    read, search and change files below the work directory; no commands, no network
    all      whatever it asks for

    allowed(permit, call, root)     may this tool call be made?
    choose(options, allow)          the answer among those that the agent offers
    inside(path, root)              where a file lies that may be touched; None: it may not

Rule 1: a call is judged by its kind and by every path that it names. What names no path cannot be shown to stay inside:
a change without a path is rejected.
Rule 2: inside is where the path really leads: links are followed. The folders that hold the repository's history and
Tenuto's own settings are never inside.
Rule 3: a kind that nobody knows is rejected. Only `all` allows it.
"""

from __future__ import annotations

import os
from typing import Any

PERMITS = ("none", "edits", "all")
_CHANGES = ("edit", "delete", "move")
_LOOKS = ("read", "search", "think")
_PATHS = ("path", "file_path", "filePath", "filepath", "filename", "fileName", "absolute_path", "notebook_path")
_CLOSED = (".git", ".tenuto")


def allowed(permit: str, call: dict[str, Any], root: str) -> bool:
    if permit != "edits":
        return permit == "all"
    paths = named_paths(call)
    kind = call.get("kind")
    if kind not in _LOOKS and (kind not in _CHANGES or not paths):
        return False
    return all(inside(path, root) is not None for path in paths)


def choose(options: Any, allow: bool) -> dict[str, Any]:
    """Once, where that is offered: a later call is judged for itself."""
    wanted = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict) and option.get("kind") == kind and "optionId" in option:
                return {"outcome": "selected", "optionId": option["optionId"]}
    return {"outcome": "cancelled"}


def named_paths(call: dict[str, Any]) -> list[str]:
    """Every path of a tool call: where it says it works, what it shows as a change, what its input says."""
    found: list[Any] = [one.get("path") for one in _mappings(call.get("locations"))]
    found += [one.get("path") for one in _mappings(call.get("content")) if one.get("type") == "diff"]
    given = call.get("rawInput")
    for one in [given, *(_mappings(given.get("changes")) if isinstance(given, dict) else [])]:
        if isinstance(one, dict):
            found += [one[name] for name in _PATHS if name in one]
    if isinstance(given, dict) and isinstance(given.get("changes"), dict):
        found += list(given["changes"])
    return list(dict.fromkeys(path for path in found if isinstance(path, str) and path))


def inside(path: str, root: str) -> str | None:
    if "\0" in path:
        return None
    top = os.path.realpath(root)
    real = os.path.realpath(os.path.join(top, path))
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        return None
    if any(part.lower() in _CLOSED for part in os.path.relpath(real, top).split("/")):
        return None
    return real


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
