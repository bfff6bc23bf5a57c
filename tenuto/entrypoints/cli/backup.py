"""`tenuto export`, `tenuto import`: a backup and back; `tenuto forget`: take a leaked text out of everything.

`tenuto move`: the journal goes to a PostgreSQL, and back; `tenuto join`: another checkout uses it, too.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from tenuto import __version__
from tenuto.encoding import dumps, escape_json
from tenuto.entrypoints.cli.frame import JSON, Answer, Command, open_existing, open_here, run_argument
from tenuto.entrypoints.cli.terminal import counted, say
from tenuto.errors import BadInput

if TYPE_CHECKING:
    from tenuto.core.records.run import Json
    from tenuto.workspace.forget import Forgotten


@click.command(
    "export",
    cls=Command,
    examples=[
        ("tenuto export -o backup.jsonl", "everything; `tenuto import` reads it back"),
        ("tenuto export dark-mode | jq .event.type", "one run, for another program"),
    ],
)
@run_argument
@click.option("--all", "everything", is_flag=True, help="All runs, logs and the search index; so without RUN.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE, whole or not at all, readable by you alone.")
@click.pass_context
def export(ctx: click.Context, run: str | None, everything: bool, output: str | None) -> Answer:
    """A backup, as JSON lines.

    Every event with its run, number and digest, and all files that belong to them. The last line
    shows whether the copy is whole.
    """
    from tenuto.workspace.backup import export

    if run is not None and everything:
        raise BadInput("bad-usage", "either a run or --all, not both", "tenuto export --help")
    records = export(open_existing(), __version__, run)
    if output is not None:
        done = _write_file(output, records)
        counts = f"{counted(done['runs'], 'run')}, {counted(done['events'], 'event')}"
        return Answer({"file": output, **done}, [f"{output}: {counts}"])
    if ctx.meta.get(JSON):
        return Answer({"lines": list(records)})
    for record in records:
        sys.stdout.write(escape_json(dumps(record)) + "\n")
    return Answer(None)


def _write_file(path: str, records: Iterable[Json]) -> dict[str, int]:
    count = {"run": 0, "event": 0, "lines": 0}
    _refuse_no_file(path)
    path = os.path.realpath(path)  # where a link leads to, not in its place
    unfinished = f"{path}.part-{os.getpid()}"
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as out:
            for record in records:
                count["lines"] += 1
                if record["kind"] == "event" or (record["kind"] == "run" and record["run"] != "@"):
                    count[record["kind"]] += 1
                out.write(dumps(record).encode() + b"\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
    return {"runs": count["run"], "events": count["event"], "lines": count["lines"]}


def _refuse_no_file(path: str) -> None:
    """A folder cannot become a file; a device or a pipe could, and its users would find a backup in its place."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        mode = stat.S_IFREG  # not there yet; or opening it says why not
    if not path or not stat.S_ISREG(mode):
        kind = "no name" if not path else "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise BadInput(
            "bad-output", f"'{path}' is {kind}", "name a file, or write to standard output: tenuto export > ..."
        )


@click.command(
    "import",
    cls=Command,
    examples=[
        ("tenuto import backup.jsonl && tenuto repair", "into this repository; then write the artifacts"),
        ("ssh box tenuto export | tenuto import -", "from another machine"),
    ],
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
def import_(file: str) -> Answer:
    """Read a backup back.

    Every digest and chain is checked first. Runs that are here with the same events are passed
    over; a run that is here with others is refused by name. All of it is taken, or nothing. Agents are refused: a
    backup tells of decisions.
    """
    from tenuto.workspace.backup import import_lines, lines_of

    workspace = open_here()
    if file == "-":
        done = import_lines(workspace, lines_of(sys.stdin.buffer))
    else:
        with open(file, "rb") as lines:
            done = import_lines(workspace, lines_of(lines))
    runs = [name for name in done.runs if name != "@"]
    line = f"{counted(len(runs), 'run')}, {counted(done.events, 'event')} taken"
    if not done.runs:
        line = "everything in it is here already"
    return Answer({"runs": runs, "events": done.events}, [line])


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
def forget(text: str | None, event: str | None, dry_run: bool) -> Answer:
    """Take a leaked secret out of everything Tenuto keeps.

    Journal, state, stored files, renders, logs, search index, projected files, quarantine and
    shelf: the text is replaced by [secret], and the bytes are gone from the database file. The
    chain still verifies. Names of runs and files stay: a text that is part of one is refused. Commits in git, backups
    and other programs' files are not Tenuto's: look there, too.
    """
    from tenuto.workspace.forget import forget

    chosen = None if event is None else _event(event)
    texts = [] if chosen is not None and text is None else [_text(text)]
    done = forget(open_existing(), texts, chosen, dry_run)
    say("commits in git, backups and other programs' files may hold it too; change the secret itself")
    return Answer(done, [("would change: " if dry_run else "forgotten: ") + _changes(done)])


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


def _changes(done: Forgotten) -> str:
    counts = [
        (len(changed) if isinstance(changed, list) else changed if isinstance(changed, int) else 0, what)
        for what, changed in done.items()
        if what != "runs"
    ]
    return ", ".join(counted(count, what.removesuffix("s")) for count, what in counts if count) or "left-over bytes"


# ---- on a server ---------------------------------------------------------------------------------------


_project = click.option("--project", default="", metavar="NAME", help="What it is called there; else like this folder.")


@click.command(
    "move",
    cls=Command,
    examples=[
        ("tenuto move --to postgresql://db.example.org/tenuto", "this repository's journal goes there"),
        ("tenuto move --to service=team --project shop", "as pg_service.conf describes it, under a name"),
        ("tenuto move --back", "it comes back into this repository"),
    ],
)
@click.option("--to", "address", default="", metavar="ADDRESS", help="To this PostgreSQL; the old journal is closed.")
@click.option("--back", "is_back", is_flag=True, help="Back into this repository; the server's is closed.")
@_project
def move(address: str, is_back: bool, project: str) -> Answer:
    """Keep the journal in a PostgreSQL, for several machines; or here again.

    All of it is copied and compared, record by record, before anything else changes. While an attempt is in flight
    nothing is moved. A move that was cut off is repeated with the same command. No password stands in an address: libpq
    reads .pgpass and pg_service.conf. Agents are refused.
    """
    from tenuto.workspace import moving

    if bool(address) == is_back:
        raise BadInput("bad-usage", "either --to ADDRESS or --back", "tenuto move --help")
    workspace = open_here()
    project = project or moving.project_of(workspace)
    moved = moving.back(workspace) if is_back else moving.to_server(workspace, address, project)
    line = f"{moved.where}: {counted(moved.runs, 'run')}, {counted(moved.events, 'event')}, compared and the same"
    hint = [] if is_back else [f"other checkouts use it with: tenuto join {address} --project {project}"]
    return Answer({**moved._asdict(), "project": project}, [line, *hint])


@click.command(
    "join",
    cls=Command,
    examples=[
        ("tenuto join postgresql://db.example.org/tenuto --project shop", "in a clone on another machine"),
        ("tenuto join --take dark-mode", "drive a run here that another checkout has driven"),
    ],
)
@click.argument("address", required=False)
@_project
@click.option("--take", default="", metavar="RUN", help="Drive this run here from now on.")
def join(address: str | None, project: str, take: str) -> Answer:
    """Use the journal that another checkout has moved to a PostgreSQL.

    This checkout must have no runs of its own. A run is driven in one checkout, where its agents, work trees and files
    are; --take makes that this one, when nothing of the run is in flight.
    """
    from tenuto.workspace import moving

    if bool(address) == bool(take):
        raise BadInput("bad-usage", "either ADDRESS or --take RUN", "tenuto join --help")
    workspace = open_here()
    if take or not address:
        moving.take(workspace, take)
        return Answer({"run": take}, [f"{take} is driven here from now on"])
    joined = moving.join_server(workspace, address, project or moving.project_of(workspace))
    return Answer(joined._asdict(), [f"{joined.where}: {counted(joined.runs, 'run')}"])
