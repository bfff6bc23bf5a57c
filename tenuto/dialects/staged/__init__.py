"""`.agents/tmp/state.json`, version 2: a task on its way through stages, with a gate between each two.

The file exists once in a work tree; the repository remembers which run it shows. Shell hooks share it: what they
write between two of our commands is absorbed, and judged like any other command.

    __init__    where the file lies
    document    what it shows
    profiles    phases, gates and outputs of the three profiles
    evidence    what is known about the outputs on disk
    operations  tenuto staged init, read, update, record-output, ...
    edits       somebody changed the file: the same in commands
    adoption    a file that was there before Tenuto, and what a dying writer left beside it
    owner       which session a state belongs to
    engine      a run that the engine drives

Position, statuses and gates follow from the run: `advance` is the only way forward.
"""

from __future__ import annotations

from tenuto.encoding import pretty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tenuto.core.records import Repo, Run

name = "staged"
missing = "rewrite"

FOLDER = ".agents/tmp"
FILE = f"{FOLDER}/state.json"
LEFT_OVER = f"{FILE}.tmp"
PHASES_FOLDER = f"{FOLDER}/phases"
VERSION = 2
stand_in = {FILE: LEFT_OVER}

def owner_key(tree: str) -> str:
    """The file's name in the repository's list of owners: each work tree has a file of its own."""
    return f"{tree}//{FILE}" if tree else FILE


def paths(run: Run, repo: Repo) -> list[str]:
    tree = run["dialects"][name].get("tree", "")
    return [FILE] if repo["owners"].get(owner_key(tree)) == run["id"] else []


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    if not paths(run, repo):
        return {}
    from tenuto.dialects.staged.document import document

    return {FILE: pretty(document(run)).encode()}


def log(run: Run, events: list[Any]) -> dict[str, bytes]:
    return {}


def read(run: Run, path: str, before: bytes, after: bytes) -> Iterator[Any]:
    return read_at(None, run, path, before, after)


def read_at(root: str | None, run: Run, path: str, before: bytes, after: bytes) -> Iterator[Any]:
    """`root`: where the outputs lie that gates ask for. Without it no gate passes."""
    from tenuto.dialects.staged.edits import understand

    return understand(root, run, before, after)


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Any:
    from tenuto.dialects.staged import engine

    return engine.begin(run_id, begun, pipeline, tree)


def opened(turn: Any, run_id: str) -> None:
    from tenuto.dialects.staged import engine

    engine.opened(turn, run_id)


def api(workspace: Any) -> Any:
    from tenuto.dialects.staged.operations import StagedOperations

    return StagedOperations(workspace)


def adopt(turn: Any, path: str, body: bytes) -> str:
    from tenuto.dialects.staged.adoption import adopt as take_over

    return take_over(turn, path, body)
