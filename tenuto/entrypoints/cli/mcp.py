"""`tenuto mcp`"""

from __future__ import annotations

from importlib.util import find_spec

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.errors import Refused


@click.command(
    "mcp",
    cls=Command,
    examples=[
        ("claude mcp add tenuto -- tenuto mcp", "let Claude Code use it, in this project"),
        ("tenuto -C ~/project mcp", "for another repository than the current folder's"),
        ("tenuto mcp --approve on", "from now on a model may pass on what you decide at a gate; serves nothing"),
    ],
)
@click.option("--approve", type=click.Choice(["on", "off"]), help="Serve nothing; switch for this repository whether `approve` is among the tools.")
def command(approve: str | None) -> Answer:
    """Serve the runs of this repository over the Model Context Protocol, on standard input and output.

    For programs: they start it themselves and speak JSON-RPC with it until they close its input. It needs the extra `mcp`.

    Gates are opened by persons. `--approve on` lets a model pass on what a person told it to decide; only a person can switch that.
    """
    if approve is not None:
        return _switch(approve == "on")
    if find_spec("mcp") is None:
        raise Refused("extra-missing", "the MCP server needs the extra 'mcp', which is not installed", "pip install '.[mcp]' in a checkout of Tenuto")
    from tenuto.entrypoints.mcp.server import serve

    serve()
    return Answer(None)


def _switch(on: bool) -> Answer:
    from tenuto.drivers.persons import let_pass_on

    let_pass_on(open_here(), "mcp", on)
    told = "a model may pass on what you decide at a gate; servers that run already list `approve` when they start again"
    return Answer({"approve": on}, [told if on else "over MCP no gate is opened any more"])
