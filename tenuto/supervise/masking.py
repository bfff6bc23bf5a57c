"""Output of an agent that was given secrets: in memory while it runs, on disk without them.

A value that was declared secret is replaced by a mark wherever it stands, letter for letter or as JSON spells it, before anything is
written: what is read out of the JSON that agent programs print would be the value again. Other spellings of it (base64, half of it) are
another matter: nobody can know them all. Where output is cut in the middle, the half of a value that would stand next to the cut is left
out, too.

Loaded only where there is a secret: every agent's start would pay for it.
"""

from __future__ import annotations

import fcntl
import os

from tenuto.supervise.output import Output, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tenuto.supervise.shapes import Stream

MARK = b"[secret]"
SHORTEST = 6
"""A value that is shorter is no secret, and would be found in half of all words."""
_BRACKETS = b" \t{}[](),:;\"'"  # a line of nothing else stands in many secrets, and everywhere


def values(environment: Mapping[str, str], names: Iterable[str]) -> list[bytes]:
    """The longest first: one may be part of another."""
    told = {environment.get(name, "").encode("utf-8", "surrogateescape") for name in names}
    lines = {line.strip() for value in told for line in value.splitlines() if line.strip(_BRACKETS)}  # a key of many lines is quoted line by line
    spelled = {spelling for value in (*told, *lines, *(value.strip() for value in told)) if len(value) >= SHORTEST and value.strip(_BRACKETS) for spelling in (value, *_in_json(value), *_in_python(value))}
    return sorted((value for value in spelled if value not in MARK), key=len, reverse=True)


def _in_json(value: bytes) -> Iterator[bytes]:
    from _json import encode_basestring, encode_basestring_ascii  # json itself is slow to import

    text = value.decode("utf-8", "surrogateescape")
    for spell in (encode_basestring_ascii, encode_basestring):
        yield spell(text)[1:-1].encode("utf-8", "surrogateescape")


def _in_python(value: bytes) -> Iterator[bytes]:
    """As messages quote it, and as JSON spells that."""
    quoted = repr(value.decode("utf-8", "surrogateescape"))[1:-1].encode("utf-8", "surrogateescape")
    yield quoted
    yield from _in_json(quoted)


def masked(text: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in secrets:
        text = text.replace(secret, MARK)
    return text


class MaskedOutput(Output):
    def __init__(self, path: str, cap: int, secrets: list[bytes]) -> None:
        super().__init__(path, cap)
        self._secrets = secrets
        os.close(self._descriptor)  # what others look at stays empty until the end
        self._descriptor = os.memfd_create("output", os.MFD_CLOEXEC)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, os.O_APPEND)

    @property
    def descriptor(self) -> int:
        """For the agent to write to."""
        return self._descriptor

    def finish(self) -> Stream:
        size = os.fstat(self._descriptor).st_size
        total = size + self._lost
        cut = total > self._cap
        if not cut:
            made, kept = masked(self._read(0, size), self._secrets), size
        else:
            head, tail = min(self._head, size), min(self._tail, max(0, size - self._head))
            parts = [self._before_a_cut(self._read(0, head)), self._behind_a_cut(self._read(size - tail, tail))]
            kept = head + tail
            made = f"\n[tenuto: {total - kept} of {total} bytes left out here]\n".encode().join(parts)
        os.close(self._descriptor)
        self._write(made)
        return {"bytes": total, "kept": kept, "truncated": cut}

    def _before_a_cut(self, text: bytes) -> bytes:
        """Without the beginning of a value at its end."""
        text = masked(text, self._secrets)
        halves = [secret[:length] for secret in self._secrets for length in range(1, len(secret))]
        return text[: len(text) - max((len(half) for half in halves if text.endswith(half)), default=0)]

    def _behind_a_cut(self, text: bytes) -> bytes:
        """Without the end of a value at its beginning."""
        text = masked(text, self._secrets)
        halves = [secret[-length:] for secret in self._secrets for length in range(1, len(secret))]
        return text[max((len(half) for half in halves if text.startswith(half)), default=0) :]

    def _read(self, offset: int, length: int) -> bytes:
        chunks = []
        while length > 0 and (chunk := os.pread(self._descriptor, length, offset)):
            chunks.append(chunk)
            offset += len(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    def _write(self, made: bytes) -> None:
        temporary = f"{self.path}.{os.urandom(6).hex()}"
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(file, made)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, self.path)
