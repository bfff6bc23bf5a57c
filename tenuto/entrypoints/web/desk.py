"""The one thread that looks at the journal, the one that decides, and what the rest of the server knows of both.

    desk.look(function, ...)      on the reading thread: function(workspace, ...); a look writes nothing
    desk.act(caller, function)    on the deciding thread, as this caller: function(workspace)
    desk.mask                     what takes declared secrets out of every answer

Two threads, each with a journal of its own: a decision that waits for the lock or for ssh-keygen holds up no page.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from tenuto.errors import TenutoError
from tenuto.secrets import NO_SECRETS, mask, spellings
from tenuto.workspace.workspace import open_workspace

if TYPE_CHECKING:
    from tenuto.secrets import Secrets
    from tenuto.workspace.guard import Caller
    from tenuto.workspace.workspace import Workspace

Answer = TypeVar("Answer")


class Desk:
    def __init__(self, root: str) -> None:
        self.root = root
        self._reading = ThreadPoolExecutor(1, "tenuto-looks")
        self._deciding = ThreadPoolExecutor(1, "tenuto-decides")
        self._reader: Workspace | None = None
        self._decider: Workspace | None = None
        self.mask = Mask(NO_SECRETS)
        self._settings_at: tuple[int, int] | None = None

    async def open(self) -> None:
        """Each thread opens the journal that it will use. Secrets that cannot be told apart stop the server here."""
        self._reader = await self._on(self._reading, lambda: open_workspace(self.root, by="web"))
        self._decider = await self._on(self._deciding, lambda: open_workspace(self.root, by="web"))
        await self._declare_secrets(self._reader)

    async def refresh(self) -> None:
        """Settings that have changed may declare other secrets. Where they cannot be read, what was known counts."""
        reader = self._reader
        if reader is not None and self._settings_at != _stamp(self.root):
            with suppress(TenutoError):
                await self._declare_secrets(reader)

    async def _declare_secrets(self, reader: Workspace) -> None:
        self._settings_at = _stamp(self.root)

        def declare() -> Secrets:
            reader.forget_secrets()
            return reader.secrets

        self.mask = Mask(await self._on(self._reading, declare))

    async def look(self, function: Callable[[Workspace], Answer]) -> Answer:
        reader = self._reader
        assert reader is not None
        return await self._on(self._reading, lambda: function(reader))

    async def act(self, caller: Caller, function: Callable[[Workspace], Answer]) -> Answer:
        """The workspace is given this caller: engine/gates.py asks it whether a person decides."""
        decider = self._decider
        assert decider is not None

        def decide() -> Answer:
            decider.door = lambda: caller
            decider.forget_secrets()
            try:
                return function(decider)
            finally:
                decider.door = _nobody
                decider.warnings.clear()

        return await self._on(self._deciding, decide)

    async def beside(self, function: Callable[[], Answer]) -> Answer:
        """Something slow that belongs to a decision, on its thread."""
        return await self._on(self._deciding, function)

    async def _on(self, thread: ThreadPoolExecutor, function: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(thread, function)

    def close(self) -> None:
        for thread, workspace in ((self._reading, self._reader), (self._deciding, self._decider)):
            if workspace is not None:
                thread.submit(workspace.journal.close)
            thread.shutdown(wait=False, cancel_futures=False)


def _nobody() -> Caller:
    raise TenutoError("no-caller", "a decision without anybody who decides", "this is a fault of Tenuto's")


def _stamp(root: str) -> tuple[int, int]:
    try:
        found = os.stat(f"{root}/.tenuto/config.yaml")
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


class Mask:
    """Declared secrets, as HTML, JSON, addresses and plain text spell them."""

    def __init__(self, secrets: Secrets) -> None:
        plain = [form.decode("utf-8", "surrogateescape") for form in secrets.forms]
        forms = {form for text in plain for spelled in _in_pages(text) for form in spellings(spelled)}
        self.forms = sorted(forms, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self.forms)

    def whole(self, body: bytes) -> bytes:
        return mask(body, self.forms)

    def cut(self, held: bytes) -> tuple[bytes, bytes]:
        """Of a stream: what may go out now, and what is held back because a secret may begin in it."""
        end = held.rfind(b"\n") + 1
        if not end and len(held) < 1 << 16:
            return b"", held
        if not end:
            end = max(len(held) - len(self.forms[0]), 0)
        return mask(held[:end], self.forms), held[end:]


def _in_pages(text: str) -> list[str]:
    escaped = escape(text, quote=False)
    return [text, escaped, escaped.replace('"', "&#34;").replace("'", "&#39;"), escape(text), quote(text, safe="")]
