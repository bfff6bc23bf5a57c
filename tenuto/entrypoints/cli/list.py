"""`tenuto list`"""

from __future__ import annotations

from typing import Any

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.runs import has_journal
from tenuto.entrypoints.cli.terminal import Table, say, when


@click.command(
    "list",
    cls=Command,
    examples=[
        ("tenuto list", "every run, newest first"),
        ("tenuto list --status waiting_gate", "those that wait for somebody's decision"),
        ("tenuto list --json --limit 1", "the newest, for a script"),
    ],
)
@click.option("--status", multiple=True, metavar="STATUS", help="Only runs in this status; may be given again.")
@click.option("--dialect", default="", metavar="NAME", help="Only runs shown in this dialect's files.")
@click.option("--limit", type=click.IntRange(min=0), default=0, metavar="N", help="At most so many; 0 means all.")
def command(status: tuple[str, ...], dialect: str, limit: int) -> Answer:
    """Runs, newest first."""
    workspace = open_here()
    cards: list[dict[str, Any]] = []
    if has_journal(workspace):
        with workspace.journal.read() as reader:
            # A status is looked for in all of them; otherwise the journal counts.
            cards = reader.runs(dialect=dialect, limit=-1 if status or not limit else limit)
    if status:
        cards = [card for card in cards if card["status"] in status]
    shown = cards[:limit] if limit else cards
    if not shown:
        say("no runs here" if not (status or dialect) else "no such runs here")
        return Answer({"runs": []})
    rows = [
        (card["id"], card["status"], card["position"] or "-", when(card["updated_at"]), card["summary"] or card["name"])
        for card in shown
    ]
    return Answer({"runs": shown}, [Table(("RUN", "STATUS", "STEP", "UPDATED", "SUMMARY"), rows)])
