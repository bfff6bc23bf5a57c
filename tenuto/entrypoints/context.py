"""`tenuto context`: the context manager's commands, from arguments or standard input.

    tenuto context 'INIT task: Dark mode'              one command
    tenuto context INIT task: Dark mode                the same, words unquoted
    tenuto context -                                   commands on standard input, one per line; one that its line
                                                       leaves unfinished goes on below, up to an empty line
    tenuto context 'STORE phase: spec' --content-file spec.md
    tenuto context 'STORE phase: spec' < spec.md
    tenuto context --json LIST

Prints the seed's blocks; an error prints STATUS: error and its text, and the exit status is 1. After an error
the commands that follow are not run. Warnings go to standard error.
"""

from __future__ import annotations

import posix
import sys

from tenuto.dialects.context.commands import Context, json_answer, perform, render_answer, render_error
from tenuto.dialects.context.language import (
    COMMANDS,
    after_key,
    closing_word,
    find_content,
    goes_on,
    is_whole,
    lacks_content,
    opens_command,
    parse,
    split,
)
from tenuto.entrypoints.speak import is_piped, open_here
from tenuto.errors import BadInput, SchemaSkew, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import BinaryIO, Self

    from tenuto.workspace.workspace import Workspace


FAILED = 1
_HELP = (__doc__ or "").partition("\n\n")[2].rpartition("\n\n")[0]


def main(words: list[str]) -> int:
    try:
        words, as_json, content_file = _options(words)
    except BadInput as error:
        return _say_error(error, "--json" in words)
    if not words and is_piped():
        words = ["-"]
    if words in (["--help"], ["-h"], []):
        sys.stdout.write(
            f"{_HELP}\n\n" + "".join(f"    {usage}\n" for usage in (form["usage"] for form in COMMANDS.values()))
        )
        return 0 if words else 2
    workspace = open_here(_who())
    status = 0
    try:
        for command, file in _commands(words, content_file, workspace):
            status = _answer(workspace, command, file, as_json)
            if status and words == ["-"]:
                sys.stderr.write("note: commands are run up to the first error; what follows it was not run\n")
            if status:
                break
    except TenutoError as error:
        status = _say_error(error, as_json)
    for warning in workspace.warnings:
        sys.stderr.write(f"warning: {_escaped(warning)}\n")
    return status


def _who() -> str:
    """Decisions are recorded with a name."""
    name = posix.environ.get(b"USER") or posix.environ.get(b"LOGNAME") or b"user"
    return name.decode("utf-8", "replace")


def _answer(workspace: Workspace, command: str, content_file: str, as_json: bool) -> int:
    try:
        record = perform(Context(workspace), parse(command), content_file)
    except TenutoError as error:
        return _say_error(error, as_json)
    if as_json:
        from tenuto.entrypoints.speak import success

        sys.stdout.write(success(json_answer(record)) + "\n")
    else:
        sys.stdout.write(_escaped(render_answer(record)) + "\n")
    return 0


def _say_error(error: TenutoError, as_json: bool) -> int:
    if isinstance(error, SchemaSkew):
        raise error
    if as_json:
        from tenuto.entrypoints.speak import failure

        sys.stdout.write(failure(error) + "\n")
    else:
        sys.stdout.write(_escaped(render_error(error.message)) + "\n")
    return FAILED


def _escaped(text: str) -> str:
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from tenuto.encoding import escape_terminal

    return escape_terminal(text, keep="\n\t")


# ---- arguments -------------------------------------------------------------------------------------


_OPTIONS = ("--json", "--content-file", "--help")


def _options(words: list[str]) -> tuple[list[str], bool, str]:
    """Options stand before or after the command, never inside it: a content may well hold `--json`."""
    rest, as_json, file = list(words), False, ""
    for end in (0, -1):
        while rest:
            if rest[end] == "--json":
                as_json = True
                rest.pop(end)
            elif end == 0 and rest[0] == "--content-file" and len(rest) > 1:
                file = rest[1]
                rest = rest[2:]
            elif end == -1 and len(rest) > 1 and rest[-2] == "--content-file":
                file = rest[-1]
                rest = rest[:-2]
            elif rest[end].startswith("--content-file="):
                file = rest.pop(end).partition("=")[2]
            else:
                break
    if rest[:1] == ["--"]:
        return rest[1:], as_json, file
    if rest and rest not in (["--help"], ["-h"]):
        _refuse_option(rest)
    return rest, as_json, file


def _refuse_option(rest: list[str]) -> None:
    """An option that is none, before a command or behind one that is given as one argument."""
    behind = [word for word in rest[1:] if word.startswith("--") and " " not in word] if " " in rest[0] else []
    word = rest[0] if rest[0].startswith("--") else next(iter(behind), "")
    if rest[-1] == "--content-file":
        raise BadInput("usage", "--content-file needs a file: --content-file FILE, or - for standard input")
    if word.startswith("--") and " " not in word:
        from tenuto.core.pipeline.values import near_word

        near = near_word(word.partition("=")[0], _OPTIONS)
        meant = f"Did you mean {near}?" if near else f"Use {', '.join(_OPTIONS)}"
        raise BadInput("usage", f"Unknown option: {word}. {meant}")


def _commands(words: list[str], content_file: str, workspace: Workspace) -> Iterator[tuple[str, str]]:
    """(command, content file) one after the other; from standard input as they come."""
    if words == ["-"]:
        yield from read_commands(sys.stdin.buffer, workspace.state)
        return
    texts = words if len(words) > 1 and all(_is_command(word) for word in words) else [" ".join(words)]
    commands = [command for text in texts for command in split(text)]
    if content_file != "-" and is_piped():
        content_file = _fed(commands, content_file)
    if content_file == "-":
        with spooled(sys.stdin.buffer, workspace.state) as file:
            for command in commands or [""]:
                yield command, file
        return
    for command in commands or [""]:
        yield command, content_file


def _fed(commands: list[str], content_file: str) -> str:
    """What is piped in beside a command is the content that its STORE lacks; no other command has a use for it."""
    if len(commands) == 1 and not content_file and lacks_content(commands[0]):
        return "-"
    raise BadInput(
        "usage",
        "Standard input is read by: tenuto context -, and by one STORE without content. Nothing was done;"
        " </dev/null where it is not meant for this command",
    )


def _is_command(word: str) -> bool:
    """A whole command in one argument, beside others. A bare word is one in capitals only: `METRICS summary` is one
    command and its format."""
    bare = word.strip()
    name = bare.split(None, 1)[0] if bare else ""
    if bare == name:
        return name in ("LIST", "SUMMARY", "HISTORY", "METRICS")
    return name.upper() in COMMANDS


# ---- standard input -------------------------------------------------------
#
# A `content:` takes everything to the end of the input, or to its closing word. Content is never held in memory:
# what is longer than a screen or two goes to a file beside the journal, which is removed after the command.


_LONGEST = 1 << 16  # bytes of a command without its content
_SMALL = 1 << 16  # bytes of content that travel inside the command
_CHUNK = 1 << 20


def read_commands(stream: BinaryIO, state: str) -> Iterator[tuple[str, str]]:
    """(command, the file that holds its content; empty where the command does)."""
    below = b""  # a line that was read ahead
    while True:
        line, below = below or stream.readline(_LONGEST), b""
        if not line:
            return
        text = line.decode("utf-8", "surrogateescape").lstrip("\ufeff")
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        if not is_whole(text):
            text, line, below = _read_on(stream, text, line)
        try:
            head, found = find_content(text)
        except BadInput:
            yield text, ""  # the command itself says what is wrong with it
            continue
        if found:
            yield from _with_content(stream, state, head, text[len(head) :], line.endswith(b"\n"))
        elif not line.endswith(b"\n") and len(line) == _LONGEST:
            raise BadInput("bad-command", f"A command is longer than {_LONGEST} bytes: {text[:60]}...")
        else:
            yield text.rstrip("\r\n"), ""


def _read_on(stream: BinaryIO, text: str, line: bytes) -> tuple[str, bytes, bytes]:
    """A command that its line leaves unfinished goes on below, up to its content, an empty line, a line that is not its
    own, or the end. Returns it with its last line, and the line that was read ahead."""
    while below := stream.readline(_LONGEST):
        more = below.decode("utf-8", "surrogateescape")
        if not more.strip() or opens_command(more) or not goes_on(text, more.lstrip()):
            return text, line, below
        text, line = text + more, below
        if len(text) > _LONGEST:
            raise BadInput("bad-command", f"A command is longer than {_LONGEST} bytes: {text[:60]}...")
        if find_content(text)[1]:
            break
    return text, line, b""


def _with_content(stream: BinaryIO, state: str, head: str, rest: str, whole: bool) -> Iterator[tuple[str, str]]:
    word = closing_word(rest) if whole else ""
    first = b"" if word else after_key(rest).encode("utf-8", "surrogateescape")
    body = bytearray(first)
    for piece in _pieces(stream, word.encode()):
        body += piece
        if len(body) > _SMALL:
            with Spool(state) as spool:
                spool.write(bytes(body))
                body.clear()
                for more in _pieces(stream, word.encode()):
                    spool.write(more)
                yield head[: head.lower().rindex("content")].rstrip(), spool.path
            return
    yield f"{head}\n{body.decode('utf-8', 'surrogateescape')}", ""


def _pieces(stream: BinaryIO, word: bytes) -> Iterator[bytes]:
    """The rest of the input; with a closing word, the lines before it."""
    if not word:
        while piece := stream.read(_SMALL):
            yield piece
        return
    begins = True
    while line := stream.readline(_CHUNK):
        if begins and line.rstrip(b"\r\n") == word:
            return
        begins = line.endswith(b"\n")
        yield line
    raise BadInput("bad-command", f"content: <<{word.decode()} is not closed: there is no line {word.decode()}")


def spooled(stream: BinaryIO, state: str) -> _Spooled:
    """`with spooled(stdin, state) as path:` everything that comes, in a file."""
    return _Spooled(stream, state)


class _Spooled:
    def __init__(self, stream: BinaryIO, state: str) -> None:
        self._stream = stream
        self._spool = Spool(state)

    def __enter__(self) -> str:
        self._spool.__enter__()
        while piece := self._stream.read(_CHUNK):
            self._spool.write(piece)
        return self._spool.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.__exit__(kind, error, trace)


class Spool:
    """A file of our own, for as long as one command takes."""

    def __init__(self, state: str) -> None:
        self.path = f"{state}/spool-{posix.getpid()}"
        self._state = state
        self._file = -1

    def __enter__(self) -> Self:
        from tenuto.workspace.objects import make_folder

        make_folder(self._state)
        self._file = posix.open(self.path, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
        return self

    def write(self, piece: bytes) -> None:
        view = memoryview(piece)
        while view:
            view = view[posix.write(self._file, view) :]

    def __exit__(self, *_: object) -> None:
        posix.close(self._file)
        posix.unlink(self.path)
