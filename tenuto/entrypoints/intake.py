"""Commands on standard input, one per line, with content of any size.

A `content:` takes everything to the end of the input, or to its closing word. Content is never held in
memory: what is longer than a screen or two goes to a file beside the journal, which is gone when the command
has been carried out.
"""

from __future__ import annotations

import os

from tenuto.dialects.context.language import after_key, closing_word, find_content
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import BinaryIO, Self

_LONGEST = 1 << 16  # bytes of a command without its content
_SMALL = 1 << 16  # bytes of content that travel inside the command
_CHUNK = 1 << 20


def read_commands(stream: BinaryIO, state: str) -> Iterator[tuple[str, str]]:
    """(command, the file that holds its content; empty where the command does)."""
    while True:
        line = stream.readline(_LONGEST)
        if not line:
            return
        text = line.decode("utf-8", "surrogateescape").lstrip("\ufeff")
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        try:
            head, found = find_content(text)
        except BadInput:
            yield text, ""  # whoever carries it out says what is wrong with it
            continue
        if found:
            yield from _with_content(stream, state, head, text[len(head) :], line.endswith(b"\n"))
        elif not line.endswith(b"\n") and len(line) == _LONGEST:
            raise BadInput("bad-command", f"A command is longer than {_LONGEST} bytes: {text[:60]}...")
        else:
            yield text.rstrip("\r\n"), ""


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
        self.path = f"{state}/spool-{os.getpid()}"
        self._state = state
        self._file = -1

    def __enter__(self) -> Self:
        os.makedirs(self._state, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        return self

    def write(self, piece: bytes) -> None:
        view = memoryview(piece)
        while view:
            view = view[os.write(self._file, view) :]

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        os.unlink(self.path)
