"""The context manager's files as a view of a run: docs/orchestrator/context/... and .claude/orchestrator/metrics/.

task        where the files lie; what a run's status and phases are called
state       run -> files                history     events -> history.md
edits       others' edits -> commands   manifest    others' manifests -> runs
breakdown   a document's plan of tasks

Pure: no workspace, no turn, no file, no clock. Each part is loaded when it is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records.commands import Command
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Repo, Run
    from tenuto.ports import Surroundings

name = "context"
missing: Literal["rewrite"] = "rewrite"
stand_in: dict[str, str] = {}
dispensable: tuple[str, ...] = ()


def paths(run: Run, repo: Repo) -> list[str]:
    from tenuto.views.context.state import paths

    return paths(run, repo)


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    from tenuto.views.context.state import render

    return render(run, repo)


def read(run: Run, path: str, before: bytes, after: bytes, around: Surroundings) -> list[Command]:
    from tenuto.views.context.edits import read

    return read(run, path, before, after)


def log(run: Run, events: list[Event]) -> dict[str, bytes]:
    from tenuto.views.context.history import log

    return log(run, events)
