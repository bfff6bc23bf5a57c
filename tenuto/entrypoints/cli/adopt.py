"""`tenuto adopt`: files that other programs wrote become runs, where they stand.

ADOPTERS is the list of what can be adopted: where such files lie, and who reads them. A dialect joins with a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.errors import BadInput, NotFound, Refused, TenutoError

if TYPE_CHECKING:
    from tenuto.workspace.turn import Turn, Workspace


class Adopter(NamedTuple):
    dialect: str
    where: str
    """A path with `*` for the part that names the run."""
    take: Callable[[Turn, str, bytes], str]
    """Read the file, make a run of it, return the run's id; or refuse it by name."""


def _dialect(name: str) -> Callable[[Turn, str, bytes], str]:
    def take(turn: Turn, path: str, body: bytes) -> str:
        dialect: Any = turn.workspace.dialects[name]
        return str(dialect.adopt(turn, path, body))

    return take


def _context(turn: Turn, path: str, body: bytes) -> str:
    from tenuto.dialects.context.adoption import adopt

    slug = path.split("/")[-2]
    its_turn: Any = turn
    if adopt(its_turn, slug) is None:
        raise Refused("not-a-task", f"{path} holds no task", path=path)
    return slug


ADOPTERS = (
    Adopter("flow", ".ai-workspace/*/flow-state.json", _dialect("flow")),
    Adopter("staged", ".agents/tmp/state.json", _dialect("staged")),
    Adopter("feature_state", ".feature-state.json", _dialect("feature_state")),
    Adopter("context", "docs/orchestrator/context/tasks/*/manifest.json", _context),
    Adopter("context", "docs/orchestrator/context/tasks/*/metadata.json", _context),
)


@click.command(
    "adopt",
    cls=Command,
    examples=[
        ("tenuto adopt", "every state file in this repository that Tenuto can read"),
        ("tenuto adopt .agents/tmp/state.json", "this one"),
        ("tenuto adopt --look", "what would be adopted; no file is changed"),
    ],
)
@click.argument("paths", nargs=-1)
@click.option("--look", is_flag=True, help="Only say what is there.")
def command(paths: tuple[str, ...], look: bool) -> Answer:
    """Take over state files that were here before Tenuto.

    Each becomes a run and goes on where it is: nothing in it is lost, and its first bytes are kept by their hash. A file that
    only looks like one, but belongs to another tool, is named, refused and left as it is.
    """
    workspace = open_here()
    found = [_named(workspace, path) for path in paths] if paths else list(_all(workspace))
    rows = [_adopted(workspace, adopter, path, look) for adopter, path in found]
    lines = [f"{row['path']}  {_told(row)}" for row in rows]
    refused = any(row["state"] == "refused" for row in rows)
    return Answer({"files": rows}, lines or ["there is nothing to adopt"], Refused.exit_code if refused else 0)


def _all(workspace: Workspace) -> Iterator[tuple[Adopter, str]]:
    files = workspace.files()
    taken: set[str] = set()
    for adopter in ADOPTERS:
        before, star, after = adopter.where.partition("*")
        for name in files.names(before.rstrip("/")) if star else [""]:
            path = f"{before}{name}{after}"
            run = f"{adopter.dialect}/{name}"
            if files.changed_at(path) is not None and run not in taken:
                taken.add(run)  # where both exist, the manifest wins over the legacy file
                yield adopter, path


def _named(workspace: Workspace, path: str) -> tuple[Adopter, str]:
    import os

    inside = os.path.relpath(os.path.abspath(path), workspace.root)
    for adopter in ADOPTERS:
        before, star, after = adopter.where.partition("*")
        if inside == adopter.where or (star and inside.startswith(before) and inside.endswith(after)):
            return adopter, inside
    known = ", ".join(adopter.where for adopter in ADOPTERS)
    raise BadInput("not-a-state-file", f"{path} is none of the files that can be adopted", f"one of {known}", path=path)


def _adopted(workspace: Workspace, adopter: Adopter, path: str, look: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"path": path, "dialect": adopter.dialect}
    known = _known(workspace, path)
    if known:
        return {**row, "state": "known", "run": known}
    try:
        body = workspace.files().read(path)
        if body is None:
            raise NotFound("no-such-file", f"there is no {path}", path=path)
        with workspace.turn() as turn:
            run = adopter.take(turn, path, body)
            if look:
                raise _Looked(run)
    except _Looked as seen:
        return {**row, "state": "adoptable", "run": seen.run}
    except TenutoError as error:
        return {**row, "state": "refused", "code": error.code, "message": error.message, "hint": error.hint}
    return {**row, "state": "adopted", "run": run}


class _Looked(Exception):
    """Not an error: it takes the turn back."""

    def __init__(self, run: str) -> None:
        self.run = run


def _known(workspace: Workspace, path: str) -> str:
    """The run that shows itself in this file already; empty where none does."""
    with workspace.journal.read() as reader:
        key = f"{workspace.tree}//{path}" if workspace.tree else path
        renders = reader.renders(key, 1)
        if renders:
            return renders[0][2]
        if path.startswith("docs/orchestrator/"):
            return path.split("/")[-2] if reader.version(path.split("/")[-2]) else ""
    return ""


def _told(row: dict[str, Any]) -> str:
    match row["state"]:
        case "refused":
            return f"refused [{row['code']}]: {row['message']}"
        case "known":
            return f"is run {row['run']} already"
        case "adoptable":
            return f"can be adopted as run {row['run']}"
    return f"is run {row['run']} now"
