"""The JSON task breakdown that an architect or a spec may hold.

    {"tasks": [{"id", "name", "files": [], "dependencies": [ids], "description"}]}

At most 8 tasks, acyclic, every id exists, no file shared inside a wave; anything else is refused
by name, because nobody wrote it by hand and nobody has to guess what it means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tenuto.core.items import directory
from tenuto.core.waves import PlanRefused, arrange, shared_files
from tenuto.knowledge.plans.reading import Plan, digest_of
from tenuto.knowledge.plans.references import resolve

if TYPE_CHECKING:
    from tenuto.core.items import PlannedItem

MOST_TASKS = 8


def read_breakdown(value: Any) -> Plan:
    """`{"tasks": [...]}`, also below `taskBreakdown`; or PlanRefused, naming what is wrong."""
    if isinstance(value, dict) and "tasks" not in value:
        value = value.get("taskBreakdown", value.get("task_breakdown", value))
    tasks = value.get("tasks") if isinstance(value, dict) else None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) and _id(task) for task in tasks):
        raise PlanRefused("no-tasks", 'a task breakdown is {"tasks": [{"id", ...}]}', [], "give every task an id")
    if len(tasks) > MOST_TASKS:
        over = [_id(task) for task in tasks[MOST_TASKS:]]
        raise PlanRefused(
            "too-many-tasks", f"the task breakdown has {len(tasks)} tasks; the limit is {MOST_TASKS}", over
        )
    items = [_from_task(task) for task in tasks]
    names = directory(items)
    for item in items:
        found = [resolve(text, names, [other["id"] for other in items], {}, item["id"]) for text in item["depends_on"]]
        item["depends_on"] = list(dict.fromkeys(name for one in found for name in (*one.ids, *one.unknown)))
    shared = shared_files(arrange(items)["waves"], items)
    if shared:
        said = "; ".join(f"{file} ({', '.join(owners)})" for file, owners in shared)
        raise PlanRefused(
            "shared-file",
            f"tasks of one wave change the same file: {said}",
            list(dict.fromkeys(owner for _, owners in shared for owner in owners)),
            "make one of them depend on the other",
        )
    for item in items:
        item["digest"] = digest_of(item, "")
    return {"items": items, "warnings": []}


def _id(task: Mapping[str, Any]) -> str:
    name = task.get("id")
    return str(name).strip() if isinstance(name, (str, int)) and not isinstance(name, bool) else ""


def _from_task(task: Mapping[str, Any]) -> PlannedItem:
    def texts(name: str) -> list[str]:
        value = task.get(name) or []
        return [str(entry) for entry in value] if isinstance(value, list) else [str(value)]

    return {
        "id": _id(task),
        "title": str(task.get("name") or task.get("title") or _id(task)),
        "files": texts("files"),
        "depends_on": texts("dependencies") or texts("depends_on"),
        "agent": str(task["agent"]) if task.get("agent") else None,
        "wave": None,
        "description": str(task.get("description") or ""),
        "effort": None,
        "lines": None,
    }
