"""Runs as words on the command line: names that complete, and the run that is meant when none is named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from tenuto.entrypoints.cli.frame import open_here
from tenuto.errors import NotFound

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace

    Word = click.ParamType[str]
else:
    Word = click.ParamType  # older releases of click cannot be subscripted


OWN = "@"  # the repository's own stream: it has events, and is no run


class RunName(Word):
    name = "run"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """No run has a name that is no text: nobody needs to ask the journal."""
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotFound("no-such-run", f"there is no run {value!r}", "tenuto list") from None
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        workspace = open_here()
        if not has_journal(workspace):
            return []
        with workspace.journal.read() as reader:
            cards = reader.runs()
        return [CompletionItem(card["id"], help=card["status"]) for card in cards if card["id"].startswith(incomplete)]


def run_argument(function: Any) -> Any:
    return click.argument("run", required=False, type=RunName())(function)


def has_journal(workspace: Workspace) -> bool:
    return os.path.exists(workspace.state + "/journal.db")


def open_existing() -> Workspace:
    """A look creates nothing: where there is no journal, that is the answer."""
    workspace = open_here()
    if not has_journal(workspace):
        raise NotFound("no-journal", f"there is no journal for {workspace.root}", "tenuto init")
    return workspace


def chosen(workspace: Workspace, run: str | None) -> str:
    """The run that was named, or the current one."""
    if run is not None:
        return run
    with workspace.journal.read() as reader:
        current = reader.load_repo()["current"]
    if current is None:
        raise NotFound("no-current-run", "no run was named, and none is current", "tenuto list")
    return current


def load(workspace: Workspace, run: str | None) -> Run:
    name = chosen(workspace, run)
    if name == OWN:
        raise NotFound("no-such-run", "'@' is the repository's own stream, not a run", "tenuto show @", run=name)
    return workspace.load(name)
