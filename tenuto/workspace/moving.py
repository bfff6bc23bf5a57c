"""Moving the journal of a repository to a server and back, and joining one that is there: a person's decision."""

from __future__ import annotations

from tenuto.errors import NotFound
from tenuto.names import slug
from tenuto.stores.moving import join, move_back, move_to_server, set_up_project
from tenuto.workspace.guard import require_person
from tenuto.workspace.objects import bring_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.ports import Reader
    from tenuto.stores.moving import Moved
    from tenuto.workspace.workspace import Workspace

_LONGEST = 40


def project_of(workspace: Workspace) -> str:
    """What a repository is called in a database where nothing is said: like its folder."""
    name = "".join(sign for sign in slug(workspace.root.rpartition("/")[2]) if sign.isascii())[:_LONGEST]
    return name.lstrip("-0123456789").rstrip("-") or "project"


def set_up(workspace: Workspace, address: str, project: str) -> list[str]:
    require_person(workspace.caller, "set up a database", f"tenuto cluster init {address}")
    return set_up_project(workspace.state, address, project)


def to_server(workspace: Workspace, address: str, project: str) -> Moved:
    """Where the project has no tables yet, they are made: its owner needs no other command."""
    require_person(workspace.caller, "move the journal", f"tenuto move --to {address}")
    try:
        return move_to_server(workspace.state, address, project)
    except NotFound as refusal:
        if refusal.code != "no-project":
            raise
    set_up_project(workspace.state, address, project)
    return move_to_server(workspace.state, address, project)


def join_server(workspace: Workspace, address: str, project: str) -> Moved:
    require_person(workspace.caller, "join a journal", f"tenuto join {address}")
    return join(workspace.state, address, project)


def back(workspace: Workspace) -> Moved:
    require_person(workspace.caller, "move the journal", "tenuto move --back")

    def bring(reader: Reader) -> None:
        for sha in reader.large_contents():
            bring_object(workspace.state, reader, sha)

    return move_back(workspace.state, bring)
