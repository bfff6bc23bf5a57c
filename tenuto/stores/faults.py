"""What SQLite's errors mean to somebody who has a run to finish. Loaded only when there is one.

Told apart by SQLite's own words: they have been the same for many years, and reach Python
3.11 without the numeric code in some cases.
"""

from __future__ import annotations

from tenuto.errors import Conflict, Damaged, TenutoError, Unwritable

_RESTORE = "tenuto doctor; a backup is read back into an empty journal with: tenuto import FILE"


def fault(error: BaseException, path: str) -> TenutoError:
    words = str(error)
    if "malformed" in words or "not a database" in words:
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
            f"{path} cannot be opened for writing: {words}",
            "check who owns its folder, and that its disk may be written to",
            path=path,
        )
    if "locked" in words or "busy" in words:
        return Conflict("busy", f"{path} is in use by another program: {words}", "try again; tenuto doctor names it")
    if "disk I/O" in words:
        return Damaged("disk-error", f"{path}: the disk reported an error: {words}", "tenuto doctor", path=path)
    return Damaged("journal-unreadable", f"{path} cannot be read: {words}", _RESTORE, path=path)
