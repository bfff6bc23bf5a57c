"""`tenuto ui`: the pages of this repository's runs, for a browser on this machine."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_existing
from tenuto.errors import BadInput, Refused


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
