"""`tenuto trust`: look at what this repository brings that would run, and say that it may.

What counts, where it is written down and who may say so: workspace/trust.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tenuto.encoding import escape_terminal
from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.terminal import Heading, Part, counted, show
from tenuto.errors import BadInput, Refused

if TYPE_CHECKING:
    from tenuto.workspace.trust import Power
    from tenuto.workspace.workspace import Workspace


@click.command(
    "trust",
    cls=Command,
    examples=[
        ("tenuto trust", "shows what this repository would run, then asks"),
        ("tenuto trust --show", "only shows it; ends with 5 while somebody has to look"),
        ("tenuto trust --pipeline ci/release.yaml", "and a pipeline that lies elsewhere in the repository"),
        ("tenuto trust --undo", "nothing of this repository runs any more"),
    ],
)
@click.option("--show", "only_look", is_flag=True, help="Only show it.")
@click.option("--yes", is_flag=True, help="Without a question: for a script of yours that sets up a machine.")
@click.option("--pipeline", default="", metavar="FILE", help="A pipeline that does not lie in .tenuto/pipelines, too.")
@click.option("--undo", is_flag=True, help="Take it back.")
def trust(only_look: bool, yes: bool, pipeline: str, undo: bool) -> Answer:
    """Look at what this repository brings that would run, and say that it may.

    Commands, programs, options of agents and variables that .tenuto/ names run only after a person has looked at them
    here, once; when they change, what is new is shown and asked for again. Prompts, gates and limits need nobody's
    word. The answer is kept in your own folder of state, not in the repository.
    """
    from tenuto.workspace import trust as trusting
    from tenuto.workspace.guard import require_person

    workspace = open_here()
    if undo:
        return _taken_back(trusting.take_back(workspace))
    waiting = _fetched(workspace, yes, only_look)
    if waiting is not None:
        return waiting
    powers = trusting.of_repository(workspace.root) + (_of_file(workspace, pipeline) if pipeline else [])
    new, gone = trusting.missing(workspace, powers), _gone(workspace, powers)
    data = {"repository": workspace.root, "powers": _named(powers), "new": _named(new), "gone": _named(gone)}
    if not new:
        line = "all of it is trusted" if powers else "this repository brings nothing that would run"
        return Answer({**data, "trusted": True}, [*(_shown(powers, "would run") if only_look else []), line])
    title = "new, would run" if len(new) < len(powers) else "would run"
    parts = [*_shown(gone, "no longer there"), *_shown(new, title)]
    if only_look:
        hint = "  try: tenuto trust"
        return Answer({**data, "trusted": False}, [*parts, "", "nobody has said yet that this may run", hint], 5)
    require_person(workspace.caller, "trust a repository", "tenuto trust")
    if not yes and not _agreed(parts):
        return Answer({**data, "trusted": False}, ["nothing was changed"], 5)
    trusting.say_so(workspace, powers)
    return Answer({**data, "trusted": True}, [f"trusted: {counted(len(powers), 'line')}, in {workspace.root}"])


def _fetched(workspace: Workspace, yes: bool, only_look: bool) -> Answer | None:
    """Shared repositories first: what they bring can be shown only when it is here. None: all of them are."""
    from tenuto.workspace import shared
    from tenuto.workspace.guard import require_person

    wanted = shared.unfetched(workspace.root)
    if not wanted:
        return None
    parts: list[Part] = [
        Heading("used here, and not fetched yet:"),
        *(f"  {escape_terminal(one.text)}" for one in wanted),
    ]
    data = {"repository": workspace.root, "trusted": False, "unfetched": [one.text for one in wanted]}
    if only_look:
        return Answer(data, [*parts, "", "what it brings is shown when it is here", "  try: tenuto trust"], 5)
    require_person(workspace.caller, "trust a repository", "tenuto trust")
    if not yes and not _agreed(parts, "Fetch it?"):
        return Answer(data, ["nothing was fetched, and nothing was changed"], 5)
    shared.fetch(wanted)
    return None


def _taken_back(was_there: bool) -> Answer:
    line = "nothing of this repository runs any more" if was_there else "nothing here was trusted"
    return Answer({"trusted": False}, [line])


def _of_file(workspace: Workspace, pipeline: str) -> list[Power]:
    from tenuto.engine.attempt import define
    from tenuto.workspace.trust import of_definition

    if "/" not in pipeline and "." not in pipeline:
        raise BadInput("bad-usage", f"'{pipeline}' is no file", "tenuto trust --pipeline ci/release.yaml")
    return of_definition(define(pipeline, workspace.root))


def _gone(workspace: Workspace, powers: list[Power]) -> list[Power]:
    from tenuto.workspace.trust import last_look

    return [one for one in last_look(workspace) if one not in powers]


def _named(powers: list[Power]) -> list[dict[str, str]]:
    return [{"kind": kind, "where": where, "what": what} for kind, where, what in powers]


def _shown(powers: list[Power], title: str) -> Iterator[Part]:
    """All of it, whatever its length: what is not shown must not be trusted."""
    if not powers:
        return
    yield Heading(f"{title}:")
    for kind, where, what in powers:
        yield f"  {kind}, {escape_terminal(where)}"
        yield from (f"      {escape_terminal(line)}" for line in what.splitlines() or [""])


def _agreed(parts: list[Part], question: str = "May this run here, as you?") -> bool:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        hint = "in a terminal: tenuto trust; in CI, on purpose: tenuto run --trust"
        raise Refused("not-confirmed", "somebody has to look at what would run, and nobody is at a terminal", hint)
    show(parts)
    return click.confirm(question, default=False, err=True)
