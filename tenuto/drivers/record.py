"""The record of a waves step: its items and what came of each, as JSON, where the pipeline names a file for it."""

from __future__ import annotations

import os
from typing import Any

from tenuto.core.pipeline import documents_of
from tenuto.core.records import Run
from tenuto.encoding import pretty
from tenuto.workspace.turn import Turn


def write_record(turn: Turn, run: Run, pipeline: Any, step: Any) -> None:
    """When the step ends, however it ends: those behind it read from it what was done and what was not."""
    if step["kind"] != "waves" or not step["waves"]["record"] or not run["items"]:
        return
    folder = documents_of(pipeline, run)
    path = os.path.normpath(f"{folder}/{step['waves']['record']}")
    body = pretty(
        {"tasks": [_task(run, step, name) for name in run["items"]], "waves": [w["items"] for w in run["waves"]]}
    )
    turn.store(run["id"], step["waves"]["record"], path, body.encode(), step=step["id"])


def _task(run: Run, step: Any, name: str) -> dict[str, Any]:
    item = run["items"][name]
    attempts = [one for one in run["attempts"].values() if one["item"] == name and one["step"] == step["id"]]
    return {
        "id": name, "title": item["title"], "files": item["files"], "dependsOn": item["depends_on"], "status": item["status"],
        "attempts": len(attempts), "agent": attempts[-1]["role"] if attempts else "", "summary": attempts[-1]["summary"] if attempts else "",
    }  # fmt: skip
