"""What SQLite's errors mean to somebody who has a run to finish. Loaded only when there is one.

Told apart by SQLite's own words: they have been the same for many years, and in Python 3.11
some of its errors come without a number.
"""

from __future__ import annotations

import os

from tenuto.errors import Conflict, Damaged, SchemaSkew, TenutoError, Unwritable
from tenuto.stores.engine import DatabaseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Json

_RESTORE = "tenuto doctor; a backup is read back into an empty journal with: tenuto import FILE"


def fault(error: BaseException, path: str) -> TenutoError:
    words = str(error)
    if "decode to UTF-8" in words or isinstance(error, UnicodeDecodeError):  # SQLite quotes the text; it may be long, and it may be secret
        words = "a text in it is not UTF-8 any more"
        return Damaged("journal-damaged", f"{path} is damaged: {words}", "tenuto verify", path=path)
    if any(sign in words for sign in ("malformed", "not a database", "no such table", "no such column")):
        return Damaged("journal-damaged", f"{path} is damaged: {words}", _RESTORE, path=path)
    if "is full" in words:
        return Unwritable(
            "disk-full",
            f"no space left on the disk that holds {path}; nothing was written",
            "make room, then repeat the command",
            path=path,
        )
    if "readonly" in words or "unable to open" in words or "not authorized" in words:
        return Unwritable(
            "not-allowed",
            f"{path} cannot be opened: {words}",
            "check who owns its folder, and that its disk may be written to",
            path=path,
        )
    if "is locked" in words or "busy" in words:
        return Conflict("busy", f"{path} is in use by another program: {words}", "try again; tenuto doctor names it")
    if "disk I/O" in words:
        return Damaged("disk-error", f"{path}: the disk reported an error: {words}", "tenuto doctor", path=path)
    return TenutoError("journal-failed", f"{path}: {words}", "tenuto doctor", path=path)


def not_flushed(error: OSError, path: str) -> TenutoError:
    """After a flush that failed, the honest answer is that nobody knows. It is not tried again: the kernel forgets."""
    message = f"{path}: the disk reported an error ({error.strerror}); whether what was just recorded will last, nobody can tell"
    return Damaged("disk-error", message, "tenuto verify; look at the disk, then repeat what is not there", path=path)


def not_as_written(what: str, path: str) -> Damaged:
    return Damaged("journal-damaged", f"{what} in {path} is not what was written", "tenuto verify", path=path)

_ANEW = "put it back; or move {path} and {path}-wal away, then: tenuto import FILE, or begin anew"


def emptied(path: str) -> Damaged:
    message = f"{path} is empty, and it was not: something cut it off"
    return Damaged("journal-damaged", message, _ANEW.format(path=path), path=path)


def gone(path: str) -> Damaged:
    """Its log alone tells nothing, and a new journal would throw it away."""
    return Damaged("journal-damaged", f"{path} is gone, and its log {path}-wal is there", _ANEW.format(path=path), path=path)


def missing_events(run: str, recorded: int | None, found: int, path: str) -> Damaged:
    message = f"run {run} in {path} has {found} events that can be found, and {recorded or 'no'} were recorded"
    return Damaged("journal-damaged", message, "tenuto verify", path=path)


def unknown_event(run: str, event: Json, missing: KeyError) -> BaseException:
    """`missing`: what folding the event did not find. Its type means a newer Tenuto; anything else is a bug."""
    if missing.args != (event["type"],):
        return missing
    message = f"run {run} holds an event {event['type']}, which this tenuto does not know"
    return SchemaSkew("event-newer", message, "upgrade tenuto on this machine", run=run)


def look_only(opened: Callable[[str, bool], tuple[Any, bool]], path: str, error: BaseException) -> tuple[Any, bool]:
    """In a folder that may not be written to, and where nobody left anything unfinished, a look is still possible."""
    uri = may_only_look(path)
    if not uri:
        raise fault(error, path) from error
    try:
        return opened(uri, True)
    except DatabaseError as again:
        raise fault(again, path) from again


def may_only_look(path: str) -> str:
    """How SQLite opens a journal that nobody can be writing to: its folder is read-only, and no log is left over.

    Empty where that is not so. Then its last events may be in the log, and must not be passed over.
    """
    try:
        unfinished = os.stat(path + "-wal").st_size
    except OSError:
        unfinished = 0
    if unfinished or not os.path.exists(path) or os.access(os.path.dirname(path), os.W_OK):
        return ""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?mode=ro&immutable=1"
