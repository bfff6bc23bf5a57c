"""`tenuto history`"""

from __future__ import annotations

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import chosen, open_existing, run_argument
from tenuto.entrypoints.cli.terminal import Table, when
from tenuto.entrypoints.sentences import sentence
from tenuto.errors import NotFound


@click.command(
    "history",
    cls=Command,
    examples=[
        ("tenuto history", "the current run, from its start"),
        ("tenuto history dark-mode --last 10", "the ten latest events of another run"),
    ],
)
@run_argument
@click.option(
    "--last", type=click.IntRange(min=0), default=0, metavar="N", help="Only the latest so many; 0 means all."
)
def command(run: str | None, last: int) -> Answer:
    """What happened in a run, when, by whom."""
    workspace = open_existing()
    name = chosen(workspace, run)
    with workspace.journal.read() as reader:
        events = list(reader.events(name))
    if not events:
        raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
    told = [
        {"seq": seq, "at": event["at"], "by": event["by"], "type": event["type"], "text": sentence(event)}
        for seq, event in enumerate(events, 1)
    ][-last:]
    rows = [(when(entry["at"]), entry["by"], entry["text"]) for entry in told]
    return Answer({"run": name, "history": told}, [Table(("WHEN", "BY", "WHAT"), rows)])
