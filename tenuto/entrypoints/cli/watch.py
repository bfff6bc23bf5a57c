"""`tenuto watch`"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tenuto.entrypoints.cli.driving import ended
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.live import Moving
from tenuto.entrypoints.cli.runs import chosen, open_existing, run_argument
from tenuto.entrypoints.cli.telling import Telling
from tenuto.entrypoints.cli.terminal import say

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace

_LOOK_AGAIN = 0.25
_UNDER_WAY = ("created", "running", "restarting")


@click.command(
    "watch",
    cls=Command,
    examples=[
        ("tenuto watch", "the current run, live: steps, waves, attempts, retries, cost, what waits for you"),
        ("tenuto watch dark-mode", "another one"),
        ("tenuto watch dark-mode > run.log 2>&1", "not a terminal: one line for each thing that happens"),
    ],
)
@run_argument
def command(run: str | None) -> Answer:
    """A run while it goes on, until it ends or waits for a person."""
    workspace = open_existing()
    name = chosen(workspace, run)
    found = workspace.load(name)
    if sys.stderr.isatty():
        with Moving(name).shown():
            found = until_rest(workspace, name, None, _pause)
    else:
        found = until_rest(workspace, name, Telling(workspace, name), _pause)
    if found["status"] in _UNDER_WAY:
        say("nobody drives this run at the moment: tenuto run goes on with it")
    return ended(found)


def _pause() -> None:
    time.sleep(_LOOK_AGAIN)


def until_rest(workspace: Workspace, name: str, telling: Telling | None, rest: Callable[[], None]) -> Run:
    while True:
        driven = is_followed(workspace, name)  # before the look: what it did last is seen
        found = workspace.load(name)
        for line in telling.lines() if telling else ():
            say(line)
        if not driven or not (found["status"] in _UNDER_WAY or found["flying"]):
            return found
        rest()


def is_followed(workspace: Workspace, name: str) -> bool:
    """Somebody moves it: an engine, or whoever is guided by it or drives it by hand."""
    from tenuto.drivers.session import is_driven

    return workspace.load(name)["driver"] != "engine" or is_driven(workspace, name)
