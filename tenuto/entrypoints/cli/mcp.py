"""`tenuto mcp`"""

from __future__ import annotations

from importlib.util import find_spec

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.errors import Refused


@click.command(
    "mcp",
    cls=Command,
    examples=[
        ("claude mcp add tenuto -- tenuto mcp", "let Claude Code use it, in this project"),
        ("tenuto -C ~/project mcp", "for another repository than the current folder's"),
    ],
)
def command() -> Answer:
    """Serve the runs of this repository over the Model Context Protocol, on standard input and output.

    For programs: they start it themselves and speak JSON-RPC with it until they close its input. It needs the extra `mcp`.
    """
    if find_spec("mcp") is None:
        raise Refused("extra-missing", "the MCP server needs the extra 'mcp', which is not installed", "pip install '.[mcp]' in a checkout of Tenuto")
    from tenuto.entrypoints.mcp.server import serve

    serve()
    return Answer(None)
