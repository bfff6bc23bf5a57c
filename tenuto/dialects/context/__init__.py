"""The context manager: docs/orchestrator/... as a view of a run, and its thirteen commands.

    places      where the files lie            language    text -> requests
    render      run -> files                   tasks       INIT, which task is meant
    history     events -> history.md           phases      START_PHASE, END_PHASE
    foreign     others' edits -> commands      rests       PAUSE, SET_GATE, RESUME
    adoption    folders found -> runs          storing     STORE (debt, audits, breakdown)
    wording     refusals in the seed's words   retrieving  RETRIEVE
    answers     records -> printed blocks      reports     METRICS, SUMMARY, HISTORY
    memory      project memory                 listing     LIST        querying  QUERY
    engine      a task that the engine drives
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


def find(turn: Any, name: str) -> Any:
    """A task whose folder lies there, and which no journal knows so far."""
    from tenuto.dialects.context.tasks import named
    from tenuto.errors import NotFound

    try:
        return named(turn, name)
    except NotFound:
        return None


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Any:
    return _engine().begin(run_id, begun, pipeline, tree)


def opened(turn: Any, run_id: str) -> None:
    _engine().opened(turn, run_id)


def engaged(turn: Any, run: Run, pipeline: Any) -> None:
    _engine().engaged(turn, run, pipeline)


def artifact_name(path: str) -> str:
    return _engine().artifact_name(path)  # type: ignore[no-any-return]


def collected(turn: Any, run: Run, attempt: str, artifacts: list[str], reply: str) -> None:
    _engine().collected(turn, run, attempt, artifacts)  # what it said besides is no document


def act(turn: Any, run: Run, pipeline: Any, action: str) -> Any:
    """What only this dialect can do for a pipeline; None where it is not asked to."""
    doing = _engine().ACTIONS.get(action)
    return doing(turn, run, pipeline) if doing else None


def _engine() -> Any:
    return __import__("tenuto.dialects.context.engine", fromlist=["*"])


def api(workspace: Workspace) -> Context:
    from tenuto.dialects.context.commands import Context

    return Context(workspace)
