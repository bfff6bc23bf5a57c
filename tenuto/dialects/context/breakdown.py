"""The `taskBreakdown` block of a design or a specification: which items there are, and in which waves.

    find_breakdown(text) -> the object, or None       plan(breakdown) -> items, waves

    {"tasks": [{"id": 1, "name": "...", "files": ["..."], "dependencies": [ids], "description": "..."}]}

At most 8 tasks, ids that exist, no cycle, no file shared inside a wave: anything else is refused by name,
before the document is stored. Real folders also hold {"wave_0": ["Task 1: ..."], ...}; that is read, too.
"""

from __future__ import annotations

from tenuto.core.durations import plain
from tenuto.encoding import NotJson, loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST = 8
_KEY = "taskBreakdown"


def find_breakdown(text: str) -> Any:
    """The object behind the key, in a JSON document, in a code block, or labelled by it."""
    at = text.find(_KEY)
    while at != -1:
        if text.startswith(f'"{_KEY}"', at - 1) and _value_after(text, at + len(_KEY) + 1) not in ("", "{"):
            raise _refused("it is no object")
        start = text.find("{", at + len(_KEY))
        between = text[at + len(_KEY) : start] if start != -1 else ""
        if start != -1 and _is_label(between):
            body = _object_at(text, start)
            if body is None:
                raise _refused("its JSON does not end")
            try:
                found = loads_strict(body)
            except NotJson as error:
                raise _refused(str(error)) from None
            if isinstance(found, dict) and _KEY in found:
                found = found[_KEY]
            return found
        at = text.find(_KEY, at + 1)
    return None


def _value_after(text: str, at: int) -> str:
    """The first sign of the value behind a JSON key; empty where no colon follows it."""
    rest = text[at : at + 200].lstrip()
    return rest[1:].lstrip()[:1] if rest.startswith(":") else ""


def _is_label(between: str) -> bool:
    """Only what leads from a label to its object: a colon, quotes, a fence, a heading's line end."""
    bare = between.replace("json", "").replace("JSON", "")
    return not bare.strip(" \t\r\n:=`\"'*#)")


def _object_at(text: str, start: int) -> str | None:
    depth, at, inside = 0, start, False
    while at < len(text):
        sign = text[at]
        if inside:
            if sign == "\\":
                at += 1
            elif sign == '"':
                inside = False
        elif sign == '"':
            inside = True
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return text[start : at + 1]
        at += 1
    return None


def plan(breakdown: Any) -> tuple[dict[str, Any], list[list[str]]]:
    tasks = breakdown.get("tasks") if isinstance(breakdown, dict) else None
    if not isinstance(tasks, list):
        raise _refused('it has no list "tasks"')
    if len(tasks) > MOST:
        raise _refused(f"{len(tasks)} tasks, at most {MOST} are allowed")
    items: dict[str, Any] = {}
    for number, task in enumerate(tasks, 1):
        if not isinstance(task, dict) or isinstance(task.get("id"), bool) or not isinstance(task.get("id"), int | str):
            raise _refused(f"task number {number} has no id")
        name = plain(str(task["id"]).strip())
        if name in items:
            raise _refused(f"the id {task['id']} is used twice")
        items[name] = {
            "title": str(task.get("name") or ""), "files": _texts(task, "files"),
            "depends_on": [plain(entry.strip()) for entry in _texts(task, "dependencies")],
            "extra": {"description": str(task.get("description") or "")},
        }  # fmt: skip
    return items, _waves(items)


def _texts(task: Any, key: str) -> list[str]:
    value = task.get(key) or []
    if not isinstance(value, list) or any(isinstance(v, bool) or not isinstance(v, int | str) for v in value):
        raise _refused(f"{key} of task {task['id']} is not a list")
    return [str(entry) for entry in value]


def _waves(items: dict[str, Any]) -> list[list[str]]:
    """Arranged by the same rules as every plan."""
    from tenuto.core.waves import PlanRefused, arrange, shared_files

    listed: list[Any] = [{"id": name, "wave": None, **item} for name, item in items.items()]
    try:
        waves = arrange(listed)["waves"]
    except PlanRefused as refusal:
        raise _refused(refusal.message) from None
    for path, names in shared_files(waves, listed):
        raise _refused(f"tasks {' and '.join(names)} of one wave both change {path}")
    return waves


def read_found(breakdown: Any) -> tuple[dict[str, Any], list[list[str]]]:
    """What an adopted manifest holds, in either shape; nothing where it is neither. Never refused: it is history."""
    if not isinstance(breakdown, dict):
        return {}, []
    try:
        return plan(breakdown)
    except Refused:
        pass
    waves: list[list[str]] = []
    items: dict[str, Any] = {}
    for key in sorted((key for key in breakdown if key.startswith("wave")), key=_wave_number):
        entries = breakdown[key]
        names = []
        for entry in entries if isinstance(entries, list) else []:
            name = _number_in(str(entry)) or str(entry)
            items[name] = {"title": str(entry), "files": [], "depends_on": [], "extra": {}}
            names.append(name)
        waves.append(names)
    return items, waves


def _wave_number(key: str) -> int:
    digits = "".join(c for c in key if c.isascii() and c.isdigit())
    return int(digits) if digits else 0


def _number_in(entry: str) -> str:
    """`Task 3: Update ...`, `task-003` and `3` are item 3."""
    words = entry.replace("-", " ").replace(":", " ").replace(".", " ").split()
    if words and words[0].lower() == "task":
        words = words[1:]
    return plain(words[0]) if words and words[0].isascii() and words[0].isdigit() else ""


def _refused(reason: str) -> Refused:
    return Refused("bad-breakdown", f"Invalid taskBreakdown: {reason}", "correct it and STORE again")
