"""The context manager: docs/orchestrator/... as a view of a run, and its thirteen commands.

    places      where the files lie            language    text -> requests
    render      run -> files                   tasks       INIT, which task is meant
    history     events -> history.md           phases      START_PHASE, END_PHASE
    foreign     others' edits -> commands      rests       PAUSE, SET_GATE, RESUME
    adoption    folders found -> runs          storing     STORE (debt, audits, breakdown)
    wording     refusals in the seed's words   retrieving  RETRIEVE
    answers     records -> printed blocks      reports     METRICS, SUMMARY, HISTORY
    memory      project memory                 listing     LIST        querying  QUERY
"""

from __future__ import annotations

from tenuto.dialects.context.history import log
from tenuto.dialects.context.render import paths, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.commands import Context
    from tenuto.dialects.context.shapes import Workspace

__all__ = ["api", "log", "missing", "name", "paths", "read", "render"]

name = "context"
missing = "rewrite"


def read(run: Run, path: str, before: bytes, after: bytes) -> list[Any]:
    from tenuto.dialects.context.foreign import read as read_edit

    return read_edit(run, path, before, after)


def api(workspace: Workspace) -> Context:
    from tenuto.dialects.context.commands import Context

    return Context(workspace)
