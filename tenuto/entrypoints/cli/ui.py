"""Runs as pages: `tenuto ui` for a browser on this machine, `tenuto page` as one file for a pull request."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_existing, run_argument
from tenuto.errors import BadInput, Refused
from tenuto.show.runs import chosen

_MORE = ("logs", "diffs")


@click.command(
    "ui",
    cls=Command,
    examples=[
        ("tenuto ui", "prints a link; open it in a browser on this machine"),
        ("tenuto ui --open", "opens the browser as well; it asks for the code that stands here"),
        ("tenuto ui --look-only", "shows everything, decides nothing"),
        ("tenuto ui --port 8000 --host-name devbox", "behind a tunnel, under another name"),
    ],
)
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="7411, or any that is free, otherwise.")
@click.option("--host-name", "names", multiple=True, metavar="NAME", help="A further name that browsers use for it.")
@click.option("--open", "opens", is_flag=True, help="Open a browser, which then asks for the code.")
@click.option("--look-only", is_flag=True, help="Nothing can be decided; needs no terminal.")
def ui(port: int | None, names: tuple[str, ...], opens: bool, look_only: bool) -> Answer:
    """See every run, and decide what waits for you, in a browser on this machine.

    It needs the extra `web`. A terminal shows the code that lets a browser in. Ctrl-C ends the server, and no run.
    """
    for name in names:
        if not name.isascii() or not name.replace("-", "a").replace(".", "a").isalnum():
            raise BadInput("bad-name", f"{name!r} is no name of a host", "--host-name devbox.example")
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise Refused(
            "extra-missing",
            f"the pages need the extra 'web', and {' and '.join(missing)} cannot be imported",
            "pip install '.[web]' in a checkout of Tenuto",
        )
    from tenuto.entrypoints.web.persons import why_only_look
    from tenuto.entrypoints.web.serve import Wish, serve

    workspace = open_existing()
    why = "you asked for that (--look-only)" if look_only else why_only_look()
    if not look_only and not sys.stderr.isatty():
        message = "there is no terminal to show the code at that lets a browser in"
        raise Refused("no-terminal", message, "tenuto ui --look-only   (shows, and decides nothing)")
    serve(Wish(workspace.root, port, names, opens, why))
    return Answer({"ended": True})


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
