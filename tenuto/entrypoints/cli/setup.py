"""`tenuto setup`"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.terminal import Part, show
from tenuto.errors import Refused
from tenuto.hosts.settings import HOSTS

if TYPE_CHECKING:
    from tenuto.drivers.setting_up import Plan

_DONE = {"create": "made", "change": "changed", "remove": "removed", "none": "as it was"}
_AFTERWARDS = {
    "claude": ["sessions that start from now on call Tenuto; the plugin does the same, so use one of the two"],
    "codex": ["Codex asks you to review new hooks: start it and type /hooks"],
    "copilot": ["sessions that start from now on call Tenuto"],
    "gemini": ["sessions that start from now on call Tenuto; in a project, only where you trust the folder"],
}


@click.command(
    "setup",
    cls=Command,
    examples=[
        ("tenuto setup claude", "shows what would change in ~/.claude/settings.json, then asks"),
        ("tenuto setup codex --dry-run", "only shows it"),
        ("tenuto setup gemini --project --yes", "in this repository, without a question"),
        ("tenuto setup claude --undo", "takes out what setup put in, and nothing else"),
    ],
)
@click.argument("host", metavar="claude|codex|copilot|gemini", type=click.Choice(HOSTS))
@click.option("--undo", "taking_out", is_flag=True, help="Take out what setup put in.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--user/--project", "of_user", default=True, help="For all you do (default), or for this repository.")
@click.option(
    "--mcp/--no-mcp", "servers", default=None, help="The MCP server, too (default: if its extra is installed)."
)
def command(host: str, taking_out: bool, dry_run: bool, yes: bool, of_user: bool, servers: bool | None) -> Answer:
    """Let an agent program call Tenuto on its events.

    Writes hooks (and the MCP server, where the program keeps it in a file) into the program's settings, with absolute commands
    that start quickly. Entries are marked; whatever is not marked stays as it is, to the byte. Nothing is changed before you saw it.
    """
    from tenuto.drivers.setting_up import compile_bytecode, places, plan, write
    from tenuto.workspace.guard import require_person

    scope = "user" if of_user else "project"
    if servers is None:
        servers = find_spec("mcp") is not None
    plans = plan(host, scope, places(_root()), servers, taking_out)
    words = f"tenuto setup {host}{' --undo' if taking_out else ''}{'' if of_user else ' --project'}"
    changing = any(one.change != "none" for one in plans)
    asked = changing and not dry_run and not yes
    if asked:
        if not sys.stdin.isatty() or not sys.stderr.isatty():
            raise Refused(
                "not-confirmed", f"{_counted(plans)} would change", f"look: {words} --dry-run; then: {words} --yes"
            )
        show(_diffs(plans))
    written = changing and not dry_run and (yes or click.confirm("change this?", err=True))
    if written:
        require_person("change hook settings", words)
        write(plans)
        if not taking_out:
            compile_bytecode()
    data = {
        "host": host, "scope": scope, "written": written,
        "files": [{"path": one.file.path, "change": one.change, "diff": "\n".join(one.diff())} for one in plans],
    }  # fmt: skip
    last = (
        []
        if taking_out
        else [*_AFTERWARDS[host], *(_by_hand() if (host, scope, servers) == ("claude", "user", True) else [])]
    )
    return Answer(data, _told(plans, written, shown=asked, last=last))


def _by_hand() -> list[str]:
    """Claude Code keeps a user's servers in a file that it rewrites all the time: it is asked to do that itself."""
    from tenuto.drivers.setting_up import find_launch

    return [f"for the MCP server: claude mcp add --scope user tenuto -- {find_launch().python} -I -m tenuto mcp"]


def _root() -> str:
    from tenuto.workspace.locate import locate

    return locate(".")[0]


def _counted(plans: list[Plan]) -> str:
    return ", ".join(one.file.path for one in plans if one.change != "none")


def _diffs(plans: list[Plan]) -> Iterator[Part]:
    for one in plans:
        yield from one.diff()


def _told(plans: list[Plan], written: bool, shown: bool, last: list[str]) -> Iterator[Part]:
    if not shown:
        yield from _diffs(plans)
    for one in plans:
        done = _DONE[one.change] if written or one.change == "none" else f"not {_DONE[one.change]}"
        yield f"{done:<12} {one.file.path}"
        if one.file.shared and written and one.change in ("create", "change"):
            yield "             (others get it with the repository; where Tenuto is not at this place, its hooks do nothing)"
    if written:
        yield from last
        if last and shutil.which(plans[0].file.host) is None:
            yield f"({plans[0].file.host} itself is not on the PATH)"
