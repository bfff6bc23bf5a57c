"""Plans that are data: a YAML or JSON document, or one in a code block, with a list of tasks.

Read only where the text itself names no item. Aliases are refused (they multiply without end), so
is anything large; a document that cannot be read is no plan, and the caller says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tenuto.encoding import NotJson, loads_strict
from tenuto.knowledge.fences import find_code
from tenuto.knowledge.plans.fields import fields_of, set_field
from tenuto.knowledge.plans.mentions import Mention

LARGEST = 200_000  # characters
_LISTS = ("tasks", "items", "work_items", "todos", "steps")
_NAMES = ("id", "task_id", "key")
_TITLES = ("title", "name", "task", "summary")


def read_records(text: str) -> list[Mention]:
    """The tasks of the first document in the text that has any."""
    for document in _documents(text):
        found = list(_mentions(document, None, 0))
        if found:
            return found
    return []


def _documents(text: str) -> Iterator[Any]:
    lines = text.split("\n")
    blocks, _ = find_code(lines)
    codes = [
        "\n".join(lines[block["first"] : block["last"]])
        for block in blocks
        if block["language"] in ("yaml", "yml", "json", "")
    ]
    for code in [*codes, text]:
        if len(code) <= LARGEST and re.search(
            r"^\W*(?:tasks|items|waves|work_items|todos|steps|task_?breakdown)\b", code, re.I | re.M
        ):
            yield _loaded(code)


def _loaded(code: str) -> Any:
    if code.lstrip().startswith("{"):
        try:
            return loads_strict(code.strip())
        except NotJson:
            return None
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent

    try:
        if any(isinstance(event, AliasEvent) for event in YAML(typ="safe", pure=True).parse(code)):
            return None
        return YAML(typ="safe", pure=True).load(code)
    except (YAMLError, ValueError, RecursionError):
        return None


def _mentions(value: Any, wave: str | None, depth: int) -> Iterator[Mention]:
    if depth > 4 or not isinstance(value, (dict, list)):
        return
    if isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict) and not any(isinstance(entry.get(name), list) for name in _LISTS):
                mention = _mention(entry, wave)
                if mention:
                    yield mention
            else:
                yield from _mentions(entry, wave, depth + 1)
        return
    label = next((str(value[name]) for name in ("wave", "number") if isinstance(value.get(name), (int, str))), wave)
    for name, entry in value.items():
        if str(name).lower() in (*_LISTS, "waves", "plan", "taskbreakdown", "task_breakdown", "phases"):
            yield from _mentions(entry, label, depth + 1)


def _mention(entry: Mapping[Any, Any], wave: str | None) -> Mention | None:
    name = next((str(entry[key]) for key in _NAMES if isinstance(entry.get(key), (int, str))), "")
    title = next((str(entry[key]) for key in _TITLES if isinstance(entry.get(key), str)), "")
    if not name and not title:
        return None
    made = Mention(name, title, "table", 1, 1, wave=wave)
    for key, value in entry.items():
        for role, _ in fields_of(f"{key}: x"):
            if role not in ("id", "title"):
                set_field(made, role, _joined(value) or ("none" if role == "depends" else ""))
    return made


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_joined(entry) for entry in value)
    if isinstance(value, dict):
        return str(next((value[key] for key in ("id", "path", "file", "name") if key in value), ""))
    return "" if value is None else str(value)
