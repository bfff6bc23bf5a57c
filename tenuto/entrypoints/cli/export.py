"""`tenuto export`"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from typing import Any

import click

from tenuto import __version__
from tenuto.encoding import dumps
from tenuto.entrypoints.cli.frame import JSON, Answer, Command
from tenuto.entrypoints.cli.runs import open_existing, run_argument
from tenuto.entrypoints.cli.terminal import counted
from tenuto.entrypoints.inert import inert_json
from tenuto.errors import BadInput


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
def command(ctx: click.Context, run: str | None, everything: bool, output: str | None) -> Answer:
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
        told = f"{counted(done['runs'], 'run')}, {counted(done['events'], 'event')}"
        return Answer({"file": output, **done}, [f"{output}: {told}"])
    if ctx.meta.get(JSON):
        return Answer({"lines": list(records)})
    for record in records:
        sys.stdout.write(inert_json(dumps(record)) + "\n")
    return Answer(None)


def _write_file(path: str, records: Iterable[dict[str, Any]]) -> dict[str, int]:
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
    """A folder cannot become a file; a device or a pipe could, and whoever uses it would find a backup in its place."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        mode = stat.S_IFREG  # not there yet; or whoever opens it says why not
    if not path or not stat.S_ISREG(mode):
        kind = "no name" if not path else "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise BadInput("bad-output", f"'{path}' is {kind}", "name a file, or write to standard output: tenuto export > ...")
