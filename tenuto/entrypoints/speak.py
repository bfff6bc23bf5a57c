"""How every command answers, how every failure is told, and that no secret is said.

    {"schema_version": 1, "ok": true, "data": ...}
    {"schema_version": 1, "ok": false, "error": {"code", "message", "hint", "retryable"}}

`--json` prints one of the two on standard output, on one line. Without it, data is printed for
people, and a failure goes to standard error as what, why and what now:

    refused [not-ready]: cannot start 'tests' in run dark-mode
      it waits for 'build'
      try: tenuto status dark-mode

Names and summaries come from people, agents and files. A terminal obeys some of what it is shown (colours,
titles, links, deletions, reversed writing), so every such character is printed as an escape instead. What is
visible stays as it is, in any script.

`open_here` opens the repository around the current folder. From then on, standard output and standard error
print [secret] where they would print a value that the repository's settings declare secret.

Hot commands load this module, so it imports nothing heavy.
"""

from __future__ import annotations

import posix
import sys

from tenuto.encoding import dumps, escape_json, escape_terminal, pretty
from tenuto.errors import BadInput, Conflict, Damaged, NotFound, Refused, SchemaSkew, TenutoError, Unwritable, Waiting
from tenuto.workspace.workspace import open_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO, TextIO

    from tenuto.secrets import Secrets
    from tenuto.workspace.workspace import Workspace


# ---- records for programs, lines for people -------------------------------


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


def success(data: object) -> str:
    return escape_json(dumps({"schema_version": SCHEMA_VERSION, "ok": True, "data": data}))


def failure(error: TenutoError) -> str:
    record: dict[str, object] = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }
    if error.details:
        record["details"] = error.details
    try:
        return escape_json(dumps({"schema_version": SCHEMA_VERSION, "ok": False, "error": record}))
    except (TypeError, ValueError):  # a detail that is not JSON must not hide the error itself
        del record["details"]
        return escape_json(dumps({"schema_version": SCHEMA_VERSION, "ok": False, "error": record}))


def explain(error: TenutoError) -> str:
    """What, why, what now, in lines for people."""
    what, *why = error.message.splitlines() or [""]
    lines = [
        f"{word_for(error)} [{error.code}]: {escape_terminal(what)}",
        *(f"  {escape_terminal(line.strip())}" for line in why),
    ]
    if error.hint:
        lines.append(f"  try: {escape_terminal(error.hint)}")
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
    reason = str(error) or "no reason given"
    return TenutoError(
        "unexpected", f"{type(error).__name__}: {reason}", "tenuto doctor; TENUTO_DEBUG=1 shows where it happened"
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


def show(workspace: Workspace, answer: object, as_json: bool) -> None:
    for warning in workspace.warnings:
        sys.stderr.write(f"tenuto: {escape_terminal(warning)}\n")
    if as_json:
        sys.stdout.write(success(answer) + "\n")
        return
    text = pretty(answer)
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        text = escape_json(text)
    sys.stdout.write(text)


# ---- the process: its folder, its failures -------------------------------


def enter(folder: str) -> None:
    try:
        posix.chdir(folder)
    except OSError as error:
        raise BadInput("bad-folder", f"{folder}: {error.strerror}", "name a folder that is there") from None


def tell(error: BaseException, as_json: bool) -> int:
    """Say what went wrong: as JSON on standard output, otherwise to standard error."""
    import os

    _mask_streams_if_possible()
    if os.environ.get("TENUTO_DEBUG"):
        import traceback

        traceback.print_exception(error)
    understood = understand(error)
    try:
        if as_json:
            try:
                sys.stdout.write(failure(understood) + "\n")
                return understood.exit_code
            except OSError:  # the answer cannot be written there; then at least here
                drop_output()
        sys.stderr.write(_coloured(explain(understood)))
    except OSError:
        pass  # nor here; the exit status says it
    return understood.exit_code


def _mask_streams_if_possible() -> None:
    """An error may repeat what was said, and may happen before any repository was opened."""
    try:
        mask_streams_here()
    except (OSError, TenutoError):
        pass  # there is no repository here, or its settings cannot be read


def _coloured(text: str) -> str:
    import os

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
    word, bracket, rest = text.partition(" [")
    return text if plain else f"\x1b[1;31m{word}\x1b[0m{bracket}{rest}"


def tell_unheard(error: BaseException, status: int) -> int:
    """Standard output takes no answer. What the command did is done all the same: to repeat it could do it twice."""
    drop_output()
    done = "; what the command did is done" if status == 0 else ""
    message = f"the answer could not be written to standard output: {understand(error).message}{done}"
    tell(TenutoError("answer-lost", message, "look before you repeat it: tenuto list, tenuto status"), as_json=False)
    return status or 1


def close_quietly() -> int:
    """The reader went away (`tenuto list | head -1`): no message, and nothing more is written."""
    drop_output()
    return 1


def drop_output() -> None:
    posix.dup2(posix.open("/dev/null", posix.O_WRONLY), 1)


# ---- the repository, and its secrets -------------------------------------


def open_here(by: str = "user") -> Workspace:
    workspace = open_workspace(".", by=by)
    try:
        if workspace.has_secrets:
            mask_streams(workspace.secrets)
    except TenutoError:
        pass  # settings that cannot be read: a command that changes something says so, one that looks may look
    return workspace


def mask_streams_here() -> None:
    """The same for a command that has opened no repository, and may not open one any more."""
    workspace = open_workspace(".")
    if workspace.has_secrets:
        mask_streams(workspace.secrets)


def mask_streams(secrets: Secrets) -> None:
    """From here on, this process prints no secret, not even where it repeats its own arguments."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, MaskedStream):
            setattr(sys, name, MaskedStream(stream, secrets))


class MaskedStream:
    """A standard stream that prints [secret] where a declared secret would be printed."""

    def __init__(self, stream: TextIO, secrets: Secrets) -> None:
        self._stream = stream
        self._secrets = secrets

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        body = text.encode("utf-8", "surrogatepass")
        masked = self._secrets.body(body, ".json" if body[:1] == b"{" else "")
        return int(self._stream.write(text if masked == body else masked.decode("utf-8", "surrogatepass")))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> MaskedBytes:
        return MaskedBytes(self._stream.buffer, self._secrets)


class MaskedBytes:
    """The same for the bytes below a stream."""

    def __init__(self, stream: BinaryIO, secrets: Secrets) -> None:
        self._stream = stream
        self._secrets = secrets

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, body: bytes) -> int:
        return int(self._stream.write(self._secrets.body(bytes(body))))


# ---- what is piped in ------------------------------------------------------


_PATIENCE = 500  # milliseconds that a silent pipe is listened to, where nothing is missing
_TYPE, _PIPE, _FILE, _SOCKET = 0o170000, 0o010000, 0o100000, 0o140000  # of a file's mode


def is_piped() -> bool:
    """Whether something stands on standard input; it is left there."""
    if not is_fed(False):
        return False
    from io import BufferedReader

    stream = sys.stdin.buffer
    return isinstance(stream, BufferedReader) and bool(stream.peek(1).strip())


def is_fed(is_needed: bool) -> bool:
    """Whether standard input is to be read: a file or a pipe on which something comes, also only its end."""
    try:
        number = sys.stdin.fileno()
        kind = posix.fstat(number).st_mode & _TYPE
    except (OSError, ValueError):  # a stream inside this process
        return False
    if kind not in (_PIPE, _FILE, _SOCKET):
        return False
    if kind != _FILE and not is_needed:
        import select

        poll = select.poll()
        poll.register(number, select.POLLIN)
        if not poll.poll(_PATIENCE):
            sys.stderr.write("tenuto: nothing comes on standard input, so it was not read (`-` waits for it)\n")
            return False
    return True
