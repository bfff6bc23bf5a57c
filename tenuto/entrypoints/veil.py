"""A standard stream that says [secret] where a declared secret would be said. Loaded only where there is one."""

from __future__ import annotations

from typing import Any, TextIO, cast

from tenuto.workspace.secrets import Secrecy


def veiled(stream: TextIO, secrecy: Secrecy) -> TextIO:
    return cast("TextIO", stream if isinstance(stream, _Text) else _Text(stream, secrecy))


class _Veil:
    def __init__(self, stream: Any, secrecy: Secrecy) -> None:
        self._stream = stream
        self._secrecy = secrecy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Text(_Veil):
    def write(self, text: str) -> int:
        body = text.encode("utf-8", "surrogatepass")
        made = self._secrecy.masked(body, ".json" if body[:1] == b"{" else "")
        return int(self._stream.write(text if made == body else made.decode("utf-8", "surrogatepass")))

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _Bytes:
        return _Bytes(self._stream.buffer, self._secrecy)


class _Bytes(_Veil):
    def write(self, body: bytes) -> int:
        return int(self._stream.write(self._secrecy.masked(bytes(body))))
