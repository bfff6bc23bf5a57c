"""The definition a run is bound to: the checked pipeline and the text of every role it uses, by their hash.

A run never changes under an edited file: what was bound at its start is kept in the journal, word for word.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tenuto.core.definition.graph import seats
from tenuto.core.pipeline_records import Pipeline
from tenuto.core.records import Run
from tenuto.encoding import digest, dumps, hash_faster, loads
from tenuto.errors import Damaged, Refused
from tenuto.knowledge import definitions, roles
from tenuto.workspace.turn import Turn, Workspace

Definition = dict[str, Any]  # {"pipeline": Pipeline, "roles": {name: role}}


def define(name: str, root: str, settings: dict[str, Any] | None = None) -> Definition:
    """Read and check a pipeline and its roles, as the files are now."""
    pipeline = definitions.load(name, Path(root), roles.modes(Path(root)), settings)
    used = sorted({seat["role"] for step in pipeline["steps"] for seat in seats(step)})
    return {"pipeline": pipeline, "roles": {role: roles.find(role, Path(root)) for role in used}}


def bind(turn: Turn, definition: Definition) -> str:
    """Keep it in the journal; returns its hash."""
    body = dumps(definition).encode()
    sha = digest(body)
    turn.tx.put_blob(sha, body)
    return sha


_known: dict[str, Definition] = {}


def definition_of(reader: Any, run: Run) -> Definition:
    sha = run["pipeline"]["hash"]
    if sha is None:
        raise Refused(
            "no-pipeline",
            f"run {run['id']} is driven by hand",
            f"tenuto run --pipeline {run['pipeline']['name']} --run {run['id']}",
        )
    if sha not in _known:
        body = reader.blob(sha)
        if body is None or digest(body) != sha:
            raise Damaged(
                "definition-missing", f"the definition of run {run['id']} is not in the journal", "tenuto verify"
            )
        _known[sha] = loads(body)
    return _known[sha]


@contextmanager
def kept_open(workspace: Workspace) -> Iterator[None]:
    """While a driver goes on: see SqliteJournal.hold_open. Other journals have nothing to be told."""
    hash_faster()
    hold: Any = getattr(workspace.journal, "hold_open", None)
    if hold is None:
        yield
        return
    hold(True)
    try:
        yield
    finally:
        hold(False)


def pipeline_of(reader: Any, run: Run) -> Pipeline:
    return definition_of(reader, run)["pipeline"]  # type: ignore[no-any-return]
