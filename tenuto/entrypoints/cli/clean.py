"""`tenuto clean`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import RunName, load, open_existing
from tenuto.entrypoints.cli.terminal import Heading, Part, counted

if TYPE_CHECKING:
    from tenuto.drivers.leftovers import Leftover


@click.command(
    "clean",
    cls=Command,
    examples=[
        ("tenuto clean --dry-run", "what attempts left behind, and what would go"),
        ("tenuto clean", "remove what is merged or recorded, of every run"),
        ("tenuto clean dark-mode", "of one run"),
    ],
)
@click.argument("run", required=False, type=RunName())
@click.option("--dry-run", is_flag=True, help="Say what would go and what would stay; remove nothing.")
def command(run: str | None, dry_run: bool) -> Answer:
    """Remove work trees and branches of attempts that are over.

    A work tree goes when everything done in it is on a branch; a branch of an attempt goes when another branch has
    everything that is on it. All else stays, with the reason: nothing is removed that is not merged or recorded.
    """
    from tenuto.drivers.leftovers import look, sweep

    workspace = open_existing()
    found = look(workspace, load(workspace, run)["id"] if run is not None else "")
    if not dry_run:
        sweep(workspace, found)
    went, stay = [one for one in found if one["goes"]], [one for one in found if not one["goes"]]
    data = {"dry_run": dry_run, "removed": [] if dry_run else went, "would_remove": went if dry_run else [], "kept": stay}
    if not found:
        return Answer(data, ["nothing is left of any attempt" if run is None else f"nothing is left of the attempts of {run}"])
    parts = [*_listed("would remove" if dry_run else "removed", went), *_listed("kept", stay)]
    return Answer(data, parts)


def _listed(what: str, entries: list[Leftover]) -> list[Part]:
    if not entries:
        return []
    lines: list[Part] = [Heading(f"{what}: {counted(len(entries), 'thing')}")]
    for one in entries:
        lines += [f"  {one['kind']} {one['name']}", f"    {one['item'] or one['attempt'] or one['run']}: {one['why']}"]
    return lines
