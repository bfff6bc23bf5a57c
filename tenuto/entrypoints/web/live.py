"""Live pages: a stream that says which run changed, and nothing else. What changed, a page asks for.

The journal's pulse is felt ten times a second, half as often in quiet times, and only while a stream is open. The files
that a gate shows, and the logs of an attempt, are looked at every second, of the pages that were asked for last. There
are at most 32 streams.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from tenuto.encoding import dumps
from tenuto.errors import Refused, TenutoError
from tenuto.show.attempts import log_paths

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from tenuto.entrypoints.web.desk import Desk
    from tenuto.entrypoints.web.hall import Hall
    from tenuto.workspace.workspace import Workspace

Handler = Callable[["Request", tuple[str, ...]], Awaitable["Response"]]

BEAT = 0.1
_FILES_EVERY = 1.0  # seconds
_QUIET = 30.0  # seconds without anything, then it is felt half as often
_SILENCE = 20.0  # seconds, then a line that says nothing: a connection that is gone shows
_MOST_STREAMS = 32
_MOST_WAITING = 256
_MOST_WATCHED = 8  # pages
Told = dict[str, object]
Watched = tuple[str, str]
"""A run, and the attempt whose page is shown; "" where it is the run's own page."""


class Stream:
    """One open stream: what is to be told."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Told | None] = asyncio.Queue(_MOST_WAITING)

    def tell(self, what: Told | None) -> None:
        """Who does not read is told at last that anything may have changed."""
        try:
            self.told.put_nowait(what)
        except asyncio.QueueFull:
            while not self.told.empty():
                self.told.get_nowait()
            self.told.put_nowait(what if what is None else {"run": "", "version": 0})


class Live:
    """The open streams of one server, and the watch that they share."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._streams: set[Stream] = set()
        self._watched: dict[Watched, None] = {}
        self._feeling: asyncio.Task[None] | None = None
        self._is_closed = False

    def watch(self, run: str, attempt: str = "") -> None:
        """A page shows this: files that change it without an event are looked at."""
        page = (run, attempt)
        self._watched.pop(page, None)
        self._watched[page] = None
        while len(self._watched) > _MOST_WATCHED:
            self._watched.pop(next(iter(self._watched)))

    def open(self) -> Stream:
        if self._is_closed or len(self._streams) >= _MOST_STREAMS:
            raise Refused("too-many-streams", "too many live pages are open", "close some tabs")
        stream = Stream()
        self._streams.add(stream)
        if self._feeling is None or self._feeling.done():
            self._feeling = asyncio.get_running_loop().create_task(self._feel())
        return stream

    def leave(self, stream: Stream) -> None:
        self._streams.discard(stream)

    def close(self) -> None:
        """The server stops: every stream ends at once."""
        self._is_closed = True
        for stream in self._streams:
            stream.tell(None)

    async def _feel(self) -> None:
        """Until no stream is open. What cannot be read just now is looked at again."""
        watch, clock = _Watch(), asyncio.get_running_loop().time
        told_at, looked_at = clock(), 0.0
        while self._streams and not self._is_closed:
            with suppress(TenutoError):
                watched = list(self._watched) if clock() - looked_at >= _FILES_EVERY else []
                looked_at = clock() if watched else looked_at
                for told in await self._desk.look(partial(watch.look, watched=watched)):
                    told_at = clock()
                    for stream in self._streams:
                        stream.tell(told)
            await asyncio.sleep(BEAT if clock() - told_at < _QUIET else 2 * BEAT)


class _Watch:
    """What was seen at the last look; used on the reading thread only."""

    def __init__(self) -> None:
        self._pulse: str | None = None
        self._versions: dict[str, int] = {}
        self._gates: dict[str, tuple[int, list[str]]] = {}
        self._files: dict[Watched, list[str]] = {}

    def look(self, workspace: Workspace, watched: list[Watched]) -> list[Told]:
        """What is to be told: runs in which something happened; those of `watched` whose files changed."""
        told: list[Told] = []
        pulse = workspace.journal.pulse()
        if pulse != self._pulse:
            with workspace.journal.read() as reader:
                found = reader.versions()
            if self._pulse is not None:
                told += [{"run": run, "version": now} for run, now in found.items() if self._versions.get(run) != now]
                told = told or [
                    {"run": "", "version": 0}
                ]  # a run that is gone, a mark that somebody made, the journal itself
            self._pulse, self._versions = pulse, found
        for page in watched:
            run, attempt = page
            paths = log_paths(workspace, run, attempt) if attempt else self._shown(workspace, run)
            stamps = [_stamp(os.path.join(workspace.root, path)) for path in paths]
            if stamps and self._files.get(page) != stamps:  # also at the first look: the page is older than that
                told.append({"run": run, "files": True})
            self._files[page] = stamps
        return told

    def _shown(self, workspace: Workspace, name: str) -> list[str]:
        """The files that its gate shows; the run is read when something has happened in it."""
        version = self._versions.get(name, 0)
        known = self._gates.get(name)
        if known is None or known[0] != version:
            run = workspace.journal.load(name)
            gate = run["gate"] if run else None
            known = self._gates[name] = (version, [entry["path"] for entry in gate["shown"]] if gate else [])
            self._files.pop((name, ""), None)
        return known[1]


def _stamp(path: str) -> str:
    """Size and time: cheap, and different where somebody has written."""
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def stream(hall: Hall) -> Handler:
    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return _Telling(hall.live, hall.live.open())

    return answer


class _Telling(StreamingResponse):
    """Leaves when the connection is gone, also where nothing was sent yet."""

    def __init__(self, live: Live, opened: Stream) -> None:
        super().__init__(_lines(opened), media_type="text/event-stream")
        self._live, self._opened = live, opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.leave(self._opened)


async def _lines(opened: Stream) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    while True:
        try:
            told = await asyncio.wait_for(opened.told.get(), _SILENCE)
        except TimeoutError:
            yield b":\n\n"
            continue
        if told is None:
            return
        yield b"data: " + dumps(told).encode() + b"\n\n"
