"""`tenuto move`: the journal goes to a PostgreSQL, and back; `tenuto join`: another checkout uses it, too."""

from __future__ import annotations

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.terminal import counted
from tenuto.errors import BadInput

_project = click.option("--project", default="", metavar="NAME", help="What it is called there; else like this folder.")


@click.command(
    "move",
    cls=Command,
    examples=[
        ("tenuto move --to postgresql://db.example.org/tenuto", "this repository's journal goes there"),
        ("tenuto move --to service=team --project shop", "as pg_service.conf describes it, under a name"),
        ("tenuto move --back", "it comes back into this repository"),
    ],
)
@click.option("--to", "address", default="", metavar="ADDRESS", help="To this PostgreSQL; the old journal is closed.")
@click.option("--back", "is_back", is_flag=True, help="Back into this repository; the server's is closed.")
@_project
def move(address: str, is_back: bool, project: str) -> Answer:
    """Keep the journal in a PostgreSQL, for several machines; or here again.

    All of it is copied and compared, record by record, before anything else changes. While an attempt is in flight
    nothing is moved. A move that was cut off is repeated with the same command. No password stands in an address: libpq
    reads .pgpass and pg_service.conf. Agents are refused.
    """
    from tenuto.workspace import moving

    if bool(address) == is_back:
        raise BadInput("bad-usage", "either --to ADDRESS or --back", "tenuto move --help")
    workspace = open_here()
    project = project or moving.project_of(workspace)
    moved = moving.back(workspace) if is_back else moving.to_server(workspace, address, project)
    line = f"{moved.where}: {counted(moved.runs, 'run')}, {counted(moved.events, 'event')}, compared and the same"
    hint = [] if is_back else [f"other checkouts use it with: tenuto join {address} --project {project}"]
    return Answer({**moved._asdict(), "project": project}, [line, *hint])


@click.command(
    "join",
    cls=Command,
    examples=[("tenuto join postgresql://db.example.org/tenuto --project shop", "in a clone on another machine")],
)
@click.argument("address")
@_project
def join(address: str, project: str) -> Answer:
    """Use the journal that another checkout has moved to a PostgreSQL.

    This checkout must have no runs of its own.
    """
    from tenuto.workspace import moving

    workspace = open_here()
    joined = moving.join_server(workspace, address, project or moving.project_of(workspace))
    return Answer(joined._asdict(), [f"{joined.where}: {counted(joined.runs, 'run')}"])
