"""`tenuto doctor`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.terminal import Marked, Part, when
from tenuto.errors import TenutoError

if TYPE_CHECKING:
    from tenuto.workspace.health import Check
    from tenuto.workspace.turn import Workspace

_NEWER = 6


@click.command(
    "doctor",
    cls=Command,
    examples=[
        ("tenuto doctor", "everything at a glance"),
        ("tenuto doctor --json | jq '.data.checks[] | select(.status != \"ok\")'", "what needs a look"),
    ],
)
def command() -> Answer:
    """What about this machine could hurt, and the fix.

    The journal and its place, Python and SQLite, git; values declared secret that cannot be kept so; agent programs with
    their versions and logins (nothing is asked over a network), their hook settings, the plugin, and whether all of these
    belong to the same Tenuto.
    Ends with 1 when something is broken, with 6 when the journal is a newer Tenuto's.
    """
    from tenuto.workspace.health import diagnose

    workspace = open_here()
    checks = [_check_python(), *diagnose(workspace), *_check_connections(workspace), *_check_hooks(workspace)]
    parts: list[Part] = []
    for found in checks:
        parts.append(Marked(found["status"], f"{found['name']:<10} {found['message']}"))
        if found["fix"]:
            parts.append(f"{'':<8} {'':<10} try: {found['fix']}")
    problems = [found for found in checks if found["status"] == "problem"]
    status = _NEWER if any(found["code"] == "schema-newer" for found in problems) else int(bool(problems))
    return Answer({"checks": checks, "problems": len(problems)}, parts, status)


def _check_python() -> Check:
    from tenuto import __version__
    from tenuto.workspace.health import check

    return check("ok", "tenuto", f"{__version__} on Python {sys.version.split()[0]}")


def _check_connections(workspace: Workspace) -> list[Check]:
    from tenuto.drivers.connections import survey
    from tenuto.drivers.settings import read_settings
    from tenuto.workspace.health import check

    try:
        settings = read_settings(workspace.root)
    except TenutoError as error:
        return [check("problem", "settings", error.message, error.hint, error.code), *survey(workspace, {})]
    return survey(workspace, settings)


def _check_hooks(workspace: Workspace) -> list[Check]:
    from tenuto.drivers.hooks.failing import read_log
    from tenuto.workspace.health import check

    entries = read_log(workspace.state)
    if not entries:
        return []
    last = entries[-1]
    told = f"{last.get('event')}: {last.get('message')}"
    number = f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
    fix = f"see {workspace.state}/hook.log; remove it when you have read it"
    return [check("note", "hooks", f"{number}; the last at {when(last.get('at'))}: {told}", fix)]
