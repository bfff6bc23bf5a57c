"""`tenuto repair`"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import open_existing
from tenuto.entrypoints.cli.terminal import say
from tenuto.errors import Damaged, Refused, TenutoError

if TYPE_CHECKING:
    from tenuto.stores.verify import Finding
    from tenuto.workspace.repair import Repaired
    from tenuto.workspace.turn import Workspace

_DONE = {"behind": "written", "damage": "made anew", "edited": "taken in"}


@click.command(
    "repair",
    cls=Command,
    examples=[
        ("tenuto repair", "write what lags behind, take in what others changed"),
        ("tenuto repair --restore docs/plan.md", "ours again; theirs is kept in quarantine"),
    ],
)
@click.option("--restore", metavar="PATH", help="Put our version of this file back; theirs is moved to quarantine.")
def command(restore: str | None) -> Answer:
    """Bring files back in line with the journal.

    Changes that others made are taken in where the rules allow it. Where they do not, the file
    is named and left as it is; --restore PATH then puts ours back.
    """
    from tenuto.workspace import repair

    workspace = open_existing()
    if restore is not None:
        path = _below(workspace, restore)
        kept = repair.restore(workspace, path)
        told = f"{path} is ours again" + (f"; what stood there is kept as {kept}" if kept else "")
        return Answer({"restored": path, "kept": kept}, [told])
    done = repair.repair(workspace)
    lines = [f"{_DONE[found['severity']]}: {_named(found)}" for found in done["mended"]]
    problem = _problem(done)
    if problem is not None:
        for line in lines:
            say(line)
        raise problem
    return Answer({"mended": done["mended"]}, lines or ["nothing to repair"])


def _named(found: Finding) -> str:
    of_run = f" of run {found['run']}" if found["run"] and "/" not in found["where"] else ""
    return f"{found['where']}{of_run} ({found['message']})"


def _problem(done: Repaired) -> TenutoError | None:
    left = [found for found in done["left"] if found["severity"] != "behind"]
    details = {"mended": done["mended"], "left": left}
    if done["refused"]:
        first = done["refused"][0]
        told = "\n".join(error.message for error in done["refused"])
        return Refused(first.code, told, first.hint, **details)
    if left:
        told = "\n".join(f"{_named(found)}" for found in left)
        return Damaged("not-repaired", f"this cannot be made from the journal:\n{told}", left[0]["fix"], **details)
    return None


def _below(workspace: Workspace, path: str) -> str:
    """Paths are told below the repository; one that was completed by a shell is below the current folder."""
    here = os.path.relpath(os.path.abspath(path), workspace.root)
    below = here if not here.startswith("../") and os.path.lexists(path) else path
    return below.removeprefix("./")
