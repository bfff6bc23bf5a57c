"""Where journals are kept. This module opens one; no other module above this folder knows which store that is.

A location is a folder: its journal is SQLite's. The contract of every store is `Journal` in tenuto/ports.py.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.ports import Journal


def open_journal(location: str) -> "Journal":
    """Cheap: nothing is opened, and nothing made, before it is used."""
    from tenuto.stores.sqlite import SqliteJournal

    return SqliteJournal(location)


def journal_exists(location: str) -> bool:
    """The same answer as `open_journal(location).exists()`, without a store: a hook asks in every repository."""
    from posix import stat

    try:
        stat(location + "/journal.db")
    except (OSError, ValueError):  # ValueError: no path at all, in a host's payload
        return False
    return True
