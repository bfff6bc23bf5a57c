"""`tenuto init`"""

from __future__ import annotations

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_here


@click.command(
    "init",
    cls=Command,
    examples=[("tenuto init", "start a journal in this repository"), ("tenuto -C ../other init", "in another one")],
)
def command() -> Answer:
    """Start a journal in this repository.

    Makes .tenuto/ for your own pipelines and roles (commit it), and the journal in the git
    directory, where `git clean` does not reach it. What is there already stays as it is.
    """
    from tenuto.workspace.settle import settle

    workspace = open_here()
    made = settle(workspace)
    data = {"root": workspace.root, "journal": workspace.state + "/journal.db", "created": made}
    fresh = [path for path in made if path != "journal"]
    lines = [
        f"journal   {data['journal']}" + ("" if "journal" in made else "  (was there already)"),
        f"settings  {workspace.root}/.tenuto/" + (f"  (made {', '.join(fresh)})" if fresh else "  (as it was)"),
    ]
    return Answer(data, lines)
