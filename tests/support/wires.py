"""A wire between a client and a server that is cut where a test says: a proxy on the loopback address.

with Wire(server.folder + "/.s.PGSQL.5432") as wire:
    wire.cut_at(b"COMMIT", arrives=True)      # the server gets it, and its answer is lost
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class Wire:
    def __init__(self, target: str) -> None:
        """`target`: the server's Unix socket."""
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._stop, self._stopped = os.pipe()
        self._word = b""
        self._arrives = False
        self._then: Callable[[], None] = lambda: None
        self.cuts = 0
        self._threads: list[threading.Thread] = []

    def cut_at(self, word: bytes, arrives: bool, then: Callable[[], None] = lambda: None) -> None:
        """Once, where a client sends this word. `arrives`: the server gets it, and its answer is lost. `then`: what
        happens at that moment."""
        self._word, self._arrives, self._then = word, arrives, then

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._stopped)
        for thread in self._threads:
            thread.join()
        self._listener.close()
        os.close(self._stop)

    def _start(self, work: Callable[..., None], *given: object) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            if self._stop in _readable(self._listener, self._stop):
                return
            client, _ = self._listener.accept()
            self._start(self._carry, client)

    def _carry(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with client, server, suppress(OSError):  # a server that is away: the client is hung up on
            server.connect(self._target)
            self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            ready = _readable(client, server, self._stop)
            if self._stop in ready:
                return
            for source, target in ((client, server), (server, client)):
                if source not in ready:
                    continue
                data = source.recv(1 << 16)
                if not data:
                    return
                if source is client and self._word and self._word in data:
                    self._word = b""
                    self.cuts += 1
                    if self._arrives:
                        target.sendall(data)
                    self._then()
                    if self._arrives:
                        server.recv(1 << 16)  # it has answered, or has ended
                    return
                target.sendall(data)


def _readable(*files: socket.socket | int) -> list[socket.socket | int]:
    """Wait until one of them has something to read."""
    return select.select(files, [], [])[0]
