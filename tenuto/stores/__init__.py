"""Where journals are kept. This module opens one; no other module above this folder knows which store that is.

A location is a folder: its journal is SQLite's, unless a file `where` in it names another place (place.py). The
contract of every store is `Journal` in tenuto/ports.py.
"""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.ports import Journal


def open_journal(location: str) -> "Journal":
    """Cheap: nothing is opened, and nothing made, before it is used."""
    if is_elsewhere(location):
        from tenuto.stores.place import open_elsewhere

        return open_elsewhere(location)
    from tenuto.stores.sqlite import SqliteJournal

    return SqliteJournal(location)


def journal_exists(location: str) -> bool:
    """Is it worth opening? Without a store: a hook asks in every repository. A journal elsewhere counts as there."""
    try:
        posix.stat(location + "/journal.db")
    except (OSError, ValueError):  # ValueError: no path at all, in a host's payload
        return is_elsewhere(location)
    return True


def is_elsewhere(location: str) -> bool:
    """Is the journal of this folder kept by a server?"""
    try:
        posix.stat(location + "/where")
    except (OSError, ValueError):
        return False
    return True


def server_of(location: str) -> str:
    """The address of the server that keeps the journal of this folder; "" where it lies in the folder."""
    if not is_elsewhere(location):
        return ""
    from tenuto.stores.place import read_place

    return read_place(location)[0]
