"""`tenuto import`"""

from __future__ import annotations

import sys

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.terminal import counted


@click.command(
    "import",
    cls=Command,
    examples=[
        ("tenuto import backup.jsonl && tenuto repair", "into this repository; then write the artifacts"),
        ("ssh box tenuto export | tenuto import -", "from another machine"),
    ],
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
def command(file: str) -> Answer:
    """Read a backup back.

    Every digest and chain is checked first. Runs that are here with the same events are passed
    over; a run that is here with others is refused by name. All of it is taken, or nothing. Agents are refused: a backup tells of decisions.
    """
    from tenuto.workspace.backup import import_lines, lines_of

    workspace = open_here()
    if file == "-":
        done = import_lines(workspace, lines_of(sys.stdin.buffer))
    else:
        with open(file, "rb") as lines:
            done = import_lines(workspace, lines_of(lines))
    runs = [name for name in done.runs if name != "@"]
    told = f"{counted(len(runs), 'run')}, {counted(done.events, 'event')} taken"
    if not done.runs:
        told = "everything in it is here already"
    return Answer({"runs": runs, "events": done.events}, [told])
