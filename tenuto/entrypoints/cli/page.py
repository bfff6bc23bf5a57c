"""`tenuto page`: a run as one file, for a pull request or an archive."""

from __future__ import annotations

from pathlib import Path

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_existing, run_argument
from tenuto.errors import BadInput, Refused
from tenuto.show.runs import chosen

_MORE = ("logs", "diffs")


@click.command(
    "page",
    cls=Command,
    examples=[
        ("tenuto page -o run.html", "the current run: its score, claims, decisions, documents, history"),
        ("tenuto page dark-mode -o run.html --with logs,diffs", "with what agents printed, and what the run changed"),
        ("tenuto page dark-mode > run.html", "the same, to standard output"),
    ],
)
@run_argument
@click.option("-o", "--output", default="", metavar="FILE", help="Where it is written; standard output otherwise.")
@click.option("--with", "more", default="", metavar="logs,diffs", help="What else it holds.")
def page(run: str | None, output: str, more: str) -> Answer:
    """A run as one file: no script, nothing to load, secrets masked. Its foot says how to check it."""
    from tenuto.pages.static_page import static_page
    from tenuto.show.changes import export_view

    wanted = [word.strip() for word in more.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in _MORE]
    if unknown:
        raise BadInput("bad-usage", f"a page holds no {', '.join(unknown)}", f"--with {','.join(_MORE)}")
    workspace = open_existing()
    name = chosen(workspace, run)
    view = export_view(workspace, name, "logs" in wanted, "diffs" in wanted)
    body = static_page(view).encode("utf-8", "replace")
    seal = view["page"]["seal"]
    data = {"run": name, "file": output, "bytes": len(body), "events": seal["events"], "head": seal["head"]}
    if not output:
        return Answer(data, raw=body)
    try:
        Path(output).write_bytes(body)
    except OSError as error:
        raise Refused("not-written", f"{output} cannot be written: {error.strerror}", "name another file") from None
    return Answer(data, [f"{output}: run {name}, {seal['events']} events, {len(body):,} bytes"])
