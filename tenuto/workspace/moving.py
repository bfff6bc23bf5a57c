"""Moving the journal of a repository to a server and back, and joining one that is there: a person's decision."""

from __future__ import annotations

from tenuto.errors import NotFound, Refused
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


def take(workspace: Workspace, name: str) -> None:
    """The run is driven here from now on. Its attempts, where some are in flight, belong to the checkout before."""
    require_person(workspace.caller, "take a run over", f"tenuto join --take {name}")
    if not workspace.journal.home:
        raise Refused(
            "not-elsewhere", "this journal has one checkout: every run is driven here", f"tenuto run --run {name}"
        )
    with workspace.journal.write() as tx:
        run = tx.load(name)
        if run is None:
            raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
        at = tx.marker(f"home:{name}")
        if run["in_flight"] and at != workspace.journal.home:
            raise Refused(
                "in-flight",
                f"run {name} has attempts in flight in {at or 'another checkout'}: {', '.join(run['in_flight'])}",
                f"there: tenuto pause {name}; where that machine is gone for good: tenuto fork {name}",
                run=name,
            )
        tx.put_marker(f"home:{name}", workspace.journal.home)


def back(workspace: Workspace) -> Moved:
    require_person(workspace.caller, "move the journal", "tenuto move --back")

    def bring(reader: Reader) -> None:
        for sha in reader.large_contents():
            bring_object(workspace.state, reader, sha)

    return move_back(workspace.state, bring)
