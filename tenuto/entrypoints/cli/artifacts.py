"""`tenuto artifacts`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import load, open_existing, run_argument
from tenuto.entrypoints.cli.terminal import Part, Table
from tenuto.errors import NotFound

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace


@click.command(
    "artifacts",
    cls=Command,
    examples=[
        ("tenuto artifacts", "what the current run has made: name, path, hash, step, attempt"),
        ("tenuto artifacts dark-mode --cat design.md", "one of them, as its attempt delivered it"),
    ],
)
@run_argument
@click.option("--cat", "name", default=None, metavar="NAME", help="Print this one, by its name or its path.")
def command(run: str | None, name: str | None) -> Answer:
    """What a run has made, and which attempt made it."""
    workspace = open_existing()
    found = load(workspace, run)
    if name is not None:
        return _cat(workspace, found, name)
    rows = [
        (one, artifact["path"], artifact["sha256"][:12], str(artifact["size"]), artifact["step"] or "-", artifact["attempt"] or artifact["by"])
        for one, artifact in found["artifacts"].items()
    ]
    parts: list[Part] = [Table(("NAME", "PATH", "SHA256", "SIZE", "STEP", "BY"), rows)] if rows else [f"{found['id']} has made nothing yet"]
    return Answer({"run": found["id"], "artifacts": found["artifacts"]}, parts)


def _cat(workspace: Workspace, run: Run, name: str) -> Answer:
    from tenuto.workspace.versions import stored_version

    matches = {one: artifact for one, artifact in run["artifacts"].items() if name in (one, artifact["path"])}
    if not matches:
        known = ", ".join(run["artifacts"]) or "none"
        raise NotFound("no-such-artifact", f"run {run['id']} has no artifact {name!r}", f"it has: {known}", artifact=name)
    one, artifact = next(iter(matches.items()))
    body = stored_version(workspace, artifact["sha256"])
    data: dict[str, Any] = {"name": one, **artifact, "text": body.decode("utf-8", "replace")}
    return Answer(data, raw=body)
