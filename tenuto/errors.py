"""Every error Tenuto raises on purpose, and what the caller does about each.

    TenutoError     has a stable `code`, a message (what and why), a hint (what now), an exit status
      BadInput      2  the caller's words are wrong; say them again, corrected
      NotFound      3  no such run, step, artifact
      Refused       4  a rule says no; nothing was written
      Waiting       5  a person has to decide first
      SchemaSkew    6  the journal was written by a newer Tenuto
      Conflict      1  another writer was first; the same call may be repeated
      Damaged       1  a file or the journal is not what was written; named, left as it is
      Unwritable    1  the disk is full, or writing there is not allowed; make room, repeat

An error means that nothing happened: whoever raises one has written nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Never


class TenutoError(Exception):
    exit_code = 1
    retryable = False

    def __init__(self, code: str, message: str, hint: str = "", **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details: dict[str, object] = details


class BadInput(TenutoError):
    exit_code = 2


class NotFound(TenutoError):
    exit_code = 3


class Refused(TenutoError):
    exit_code = 4


class HoldsSecret(Refused):
    """What was declared secret stands in it: it is not taken in, and left as it is."""


class Waiting(TenutoError):
    exit_code = 5


class SchemaSkew(TenutoError):
    exit_code = 6


class Conflict(TenutoError):
    retryable = True


class Damaged(TenutoError):
    pass


class Unwritable(TenutoError):
    retryable = True


def assert_never(value: Never) -> Never:
    """The end of a complete `match`: mypy sees that no value is left. One that comes all the same is an error."""
    raise KeyError(value)


def refuse_halves(error: BaseException | None) -> None:
    """JSON can spell half a character, and keeps it; no name, key or text file can hold one."""
    if isinstance(error, UnicodeEncodeError):
        half, around = ord(error.object[error.start]), ascii(error.object[max(0, error.start - 20) : error.end + 20])
        message = f"half a character (U+{half:04X}) stands in {around}: a text that was cut, or is not UTF-8"
        raise BadInput("half-character", message, "send whole characters, as UTF-8") from None
