"""`tenuto forget`"""

from __future__ import annotations

import sys
from typing import Any

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import open_existing
from tenuto.entrypoints.cli.terminal import counted, say
from tenuto.errors import BadInput


@click.command(
    "forget",
    cls=Command,
    examples=[
        ("tenuto forget", "asks for the text without showing it"),
        ("tenuto forget - < leaked.txt", "keeps it out of the shell's history"),
        ("tenuto forget - --dry-run < leaked.txt", "says where it stands, changes nothing"),
        ("tenuto forget --event dark-mode:7", "all that was said in one event"),
    ],
)
@click.argument("text", required=False)
@click.option("--event", metavar="RUN:SEQ", help="Take out all that was said in this event, here and elsewhere.")
@click.option("--dry-run", is_flag=True, help="Say where it stands; change nothing.")
def command(text: str | None, event: str | None, dry_run: bool) -> Answer:
    """Take a leaked secret out of everything Tenuto keeps.

    Journal, state, stored files, renders, logs, search index, projected files, quarantine and
    shelf: the text is replaced by [forgotten], and the bytes are gone from the database file. The
    chain still verifies. Names of runs and files stay: a text that is part of one is refused. Commits in git, backups and other programs' files are not Tenuto's: look there, too.
    """
    from tenuto.workspace.forget import forget

    chosen = None if event is None else _event(event)
    texts = [] if chosen is not None and text is None else [_text(text)]
    done = forget(open_existing(), texts, chosen, dry_run)
    say("commits in git, backups and other programs' files may hold it too; change the secret itself")
    return Answer(done, [("would change: " if dry_run else "forgotten: ") + _told(done)])


def _text(text: str | None) -> str:
    if text == "-":
        return sys.stdin.read().removesuffix("\n")
    if text is not None:
        return text
    if not sys.stdin.isatty():
        raise BadInput("bad-usage", "which text?", "tenuto forget - < FILE")
    from getpass import getpass

    return getpass("text to forget (not shown): ")


def _event(words: str) -> tuple[str, int]:
    run, colon, number = words.rpartition(":")
    if not colon or not run or not number.isdecimal():
        raise BadInput("bad-usage", f"{words!r} names no event", "tenuto forget --event RUN:SEQ, as in dark-mode:7")
    return run, int(number)


def _told(done: dict[str, Any]) -> str:
    counts = [
        (len(found) if isinstance(found, list) else found, what) for what, found in done.items() if what != "runs"
    ]
    return ", ".join(counted(count, what.removesuffix("s")) for count, what in counts if count) or "left-over bytes"
