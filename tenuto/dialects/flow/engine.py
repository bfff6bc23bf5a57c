"""A ticket that the engine drives: its folder, its name, and what its commits are called."""

from __future__ import annotations

from tenuto.core.names import slug
from tenuto.dialects.flow import folder_of, path_of, schedule
from tenuto.dialects.flow.finding import describe
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Json:
    """`PROJ-123 Add a login` is about the ticket PROJ-123."""
    first = str(begun.get("name", "")).split(" ")[0].strip(":,")
    ticket = first if first != "" and describe(f"{first}-x") == first else run_id
    return {"place": {"tree": tree, "folder": run_id, "ticket": ticket}, "order": "strict", "schedule": schedule()}


def engaged(turn: Any, run: Run, pipeline: Any) -> None:
    """A ticket that was led by hand keeps its documents where its state lies, whatever case its name is written in."""
    folder = folder_of(run)
    if pipeline["documents"] == ".ai-workspace/{slug}" and folder != run["id"] and "documents" not in run["settings"]:
        turn.do(run["id"], {"do": "ChangeSettings", "changes": {"documents": f".ai-workspace/{folder}"}})


def opened(turn: Any, run_id: str) -> None:
    path = path_of(folder_of(turn.existing(run_id)))
    if turn.workspace.files().changed_at(path) is not None:
        raise Refused("workflow-exists", f"{path} is there already", "give the run another name: --name", path=path)


def commit_step(run: Run, attempt: Any) -> str:
    """step_1_authentication_middleware"""
    item = attempt["item"]
    if item is None:
        return str(attempt["step"])
    digits = "".join(sign for sign in item if sign.isdigit())
    words = slug(run["items"][item]["title"] or item).replace("-", "_")
    return f"step_{int(digits)}_{words}" if digits else f"step_{words}"
