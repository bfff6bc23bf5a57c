"""Plans in files: found, read, and checked as soon as their author says DONE.

A plan that cannot be carried out (a cycle, an unknown id, no item) is the planner's error, not the implementation's: its
DONE is false, it is told why, and asked again. What makes a plan impossible is decided in core.
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.core.decisions.engine import impossible
from tenuto.drivers.jobs import Job, existing
from tenuto.knowledge.plans import read_plan


def read_items(root: str, folder: str, slug: str, waves: Any) -> list[Any]:
    """The items of the first of the step's plans that has any."""
    files = existing(root, _pattern(folder, waves["items"], slug)) if waves["items"] else []
    texts = {os.path.relpath(path, folder): text(root, path) for path in files}
    for plan in waves["plan"]:
        for source in existing(root, _pattern(folder, plan, slug)):
            items: list[Any] = read_plan(text(root, source), texts)["items"]
            if items:
                return [_with_source(item, list(texts)) for item in items]
    return []


def _with_source(item: Any, files: list[str]) -> Any:
    """The item's own file, as a path below the documents."""
    if "source" not in item:
        return item
    return {**item, "source": next((path for path in files if os.path.basename(path) == item["source"]), item["source"])}


def plan_problem(job: Job) -> str:
    """Why the plan that this attempt wrote cannot be carried out; "" where it can, or where it wrote none."""
    for step in job.pipeline["steps"]:
        if step["kind"] == "waves" and any(name in step["waves"]["plan"] for name in job.seat["out"]):
            waves = step["waves"]
            items = read_items(job.workdir, os.path.normpath(job.documents), job.run["id"], waves)
            if not items and waves["no_items"] != "one":
                return f"no item was found in {', '.join(waves['plan'])}"
            problem = impossible(waves, items, job.run["switches"]) if items else ""
            if problem:
                return f"the plan cannot be carried out: {problem}"
    return ""


def text(root: str, path: str) -> str:
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def _pattern(folder: str, name: str, slug: str) -> str:
    return os.path.normpath(f"{folder}/{name.replace('{slug}', slug).replace('{iteration}', '*')}")
