"""Which workflow is meant: by its ticket, by the beginning of its folder's name, or because there is only one.

    TICKET-123                      the ticket alone
    TICKET-123-description          a ticket with a few words
    task-description-YYYY-MM-DD     no ticket

A folder from before Tenuto is taken over when it is first asked for.
"""

from __future__ import annotations

from tenuto.core.names import check, slug
from tenuto.dialects.flow import FOLDER, folder_of, name, path_of
from tenuto.errors import BadInput, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OVER = ("completed", "failed", "cancelled", "graduated", "poc-complete")


def new_folder(ticket: str, description: str, at: str) -> str:
    if ticket:
        made = f"{ticket}-{slug(description)}" if description else ticket
    elif description:
        words = slug(description)
        made = f"{words if words.startswith('task-') else 'task-' + words}-{at[:10]}"
    else:
        raise BadInput("no-ticket", "a workflow needs a ticket or a description", "tenuto flow initialize_workflow TICKET-123")
    return check(made, "workspace")


def find(turn: Any, ticket: str) -> str:
    """The id of the run; a file from before Tenuto becomes one."""
    found = find_known(turn, ticket) or _adopt(turn, ticket)
    if found is None:
        if ticket:
            raise NotFound(
                "no-workflow", f"there is no workflow {ticket!r}", f"tenuto flow initialize_workflow {ticket}", ticket=ticket
            )
        raise NotFound("no-workflow", "there is no workflow under way", "tenuto flow initialize_workflow TICKET-123")
    return found


def find_known(turn: Any, ticket: str) -> str | None:
    cards = turn.tx.runs(dialect=name)
    if not ticket:
        under_way = [card["id"] for card in cards if card["status"] not in OVER]
        if len(under_way) > 1 and turn.repo["current"] in under_way:
            return str(turn.repo["current"])
        return _only(under_way, "under way")
    exact = find_named(turn, ticket)
    if exact is not None:
        return exact
    begin = [card["id"] for card in cards if card["id"].startswith(slug(ticket) + "-")]
    return _only(begin, f"that begin with {ticket!r}")


def find_named(turn: Any, folder: str) -> str | None:
    """The run of exactly this workspace."""
    run = turn.tx.load(slug(folder))
    return run["id"] if run is not None and name in run["dialects"] else None


def _adopt(turn: Any, ticket: str) -> str | None:
    """From the files: the folder of this name, or the only one that begins so."""
    files, taken = turn.workspace.files(), _folders(turn)
    names = [one for one in files.names(FOLDER) if one not in taken and files.read(path_of(one)) is not None]
    named = [one for one in names if not ticket or one == ticket] or [one for one in names if one.startswith(f"{ticket}-")]
    folder = _only(named, f"in {FOLDER}")
    if folder is None:
        return None
    from tenuto.dialects.flow.adoption import adopt

    return adopt(turn, path_of(folder), files.read(path_of(folder)))


def _folders(turn: Any) -> list[str]:
    runs = [turn.tx.load(card["id"]) for card in turn.tx.runs(dialect=name)]
    return [folder_of(run) for run in runs if run is not None]


def _only(names: list[str], where: str) -> str | None:
    if len(names) > 1:
        raise BadInput("which-workflow", f"there are several workflows {where}: {', '.join(names)}", "name one of them")
    return names[0] if names else None


def describe(folder: str) -> str:
    """The ticket in a folder's name: TICKET-123-description -> TICKET-123; without one, the whole name."""
    head, _, rest = folder.partition("-")
    number = rest.partition("-")[0]
    return f"{head}-{number}" if head.isalpha() and head.isupper() and number.isdecimal() else folder
