"""How every command answers, and how every failure is told.

    {"schema_version": 1, "ok": true, "data": ...}
    {"schema_version": 1, "ok": false, "error": {"code", "message", "hint", "retryable"}}

`--json` prints one of the two on standard output, on one line. Without it, data is printed for
people, and a failure goes to standard error as what, why and what now:

    refused [not-ready]: cannot start 'tests' in run dark-mode
      it waits for 'build'
      try: tenuto status dark-mode

Light enough for commands that run as hooks: nothing heavy is imported here.
"""

from __future__ import annotations

from tenuto.encoding import dumps
from tenuto.entrypoints.inert import inert, inert_json
from tenuto.errors import BadInput, Conflict, Damaged, NotFound, Refused, SchemaSkew, TenutoError, Unwritable, Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA_VERSION = 1
INTERRUPTED = 130

# The first word says whose move it is. The first class that fits counts.
_WORDS = (
    (BadInput, "usage"),
    (NotFound, "not found"),
    (Refused, "refused"),
    (Waiting, "waiting"),
    (SchemaSkew, "too new"),
    (Conflict, "conflict"),
    (Damaged, "damaged"),
    (Unwritable, "not written"),
)
_FULL = (28, 122)  # ENOSPC, EDQUOT
_FORBIDDEN = (1, 13, 30)  # EPERM, EACCES, EROFS


class Interrupted(TenutoError):
    exit_code = INTERRUPTED
    retryable = True


def success(data: Any) -> str:
    return inert_json(dumps({"schema_version": SCHEMA_VERSION, "ok": True, "data": data}))


def failure(error: TenutoError) -> str:
    told: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }
    if error.details:
        told["details"] = error.details
    try:
        return inert_json(dumps({"schema_version": SCHEMA_VERSION, "ok": False, "error": told}))
    except (TypeError, ValueError):  # a detail that is not JSON must not hide the error itself
        del told["details"]
        return inert_json(dumps({"schema_version": SCHEMA_VERSION, "ok": False, "error": told}))


def explain(error: TenutoError) -> str:
    """What, why, what now, in lines for people."""
    what, *why = error.message.splitlines() or [""]
    lines = [f"{word_for(error)} [{error.code}]: {inert(what)}", *(f"  {inert(line.strip())}" for line in why)]
    if error.hint:
        lines.append(f"  try: {inert(error.hint)}")
    return "\n".join(lines) + "\n"


def word_for(error: TenutoError) -> str:
    return next((word for kind, word in _WORDS if isinstance(error, kind)), "failed")


def understand(error: BaseException) -> TenutoError:
    """Any exception as an error with a code, a reason and something to do about it."""
    if isinstance(error, TenutoError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted", "stopped by you; what was answered before is kept")
    if isinstance(error, OSError):
        return _of_the_system(error)
    if type(error).__module__ in ("sqlite3", "_sqlite3"):
        from tenuto.stores.faults import fault

        return fault(error, "the journal")
    told = str(error) or "no reason given"
    return TenutoError(
        "unexpected", f"{type(error).__name__}: {told}", "tenuto doctor; TENUTO_DEBUG=1 shows where it happened"
    )


def _of_the_system(error: OSError) -> TenutoError:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _FULL:
        return Unwritable("disk-full", f"{where}no space left on the device", "make room, then repeat the command")
    if error.errno in _FORBIDDEN:
        return Unwritable(
            "not-allowed", f"{where}{error.strerror}", "check who owns it, and that its disk may be written to"
        )
    return TenutoError("system-error", f"{where}{error.strerror or error}", "tenuto doctor")
