"""Serve until Ctrl-C: the port, the server, and the words at the terminal. On 127.0.0.1, and nowhere else.

The link with its code is said at a terminal only, and opened in no command line: /proc shows arguments to everybody.
Enter makes a new code.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import uvicorn

from tenuto.entrypoints.cli.terminal import say
from tenuto.entrypoints.web.app import application
from tenuto.entrypoints.web.desk import Desk
from tenuto.entrypoints.web.hall import Hall
from tenuto.entrypoints.web.peers import Judge, judge
from tenuto.errors import Refused

USUAL_PORT = 7411
_HOST = "127.0.0.1"
_BACKLOG = 128


class Wish(NamedTuple):
    """What the command line asks for."""

    root: str
    port: int | None = None
    names: Sequence[str] = ()
    opens: bool = False
    only_look: str = ""
    """Why nothing is decided here; "" where it is."""


def serve(wish: Wish, judged: Judge = judge) -> None:
    """`judged`: who is at the other end; tests bring their own."""
    listening = _listen(wish.port)
    at_terminal = sys.stderr.isatty()
    port = listening.getsockname()[1]
    hall = Hall(
        Desk(wish.root),
        port,
        judged,
        names=wish.names,
        only_look=wish.only_look,
        is_open_to_look=not at_terminal,
        say=say if at_terminal else None,
        repository=os.path.basename(wish.root),
    )
    server = _Server(
        uvicorn.Config(
            application(hall),
            loop="asyncio",
            http="h11",
            ws="none",
            interface="asgi3",
            lifespan="on",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nobody in between may say who asks
            timeout_keep_alive=10,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=1 << 15,
        ),
        hall.live.close,
    )
    _greet(hall, wish)
    if at_terminal and sys.stdin.isatty():
        threading.Thread(target=_renew_codes, args=(hall,), daemon=True).start()
    try:
        asyncio.run(_run(server, hall, listening))
    finally:
        listening.close()


async def _run(server: _Server, hall: Hall, listening: socket.socket) -> None:
    await hall.desk.open()
    try:
        await server.serve(sockets=[listening])
    finally:
        hall.desk.close()


class _Server(uvicorn.Server):
    """Streams that are open end before the server waits for what is under way."""

    def __init__(self, config: uvicorn.Config, close: Callable[[], None]) -> None:
        super().__init__(config)
        self._close = close

    def handle_exit(self, sig: int, frame: object) -> None:
        self._close()
        self.should_exit = True
        if sig == signal.SIGINT:
            self._captured_signals.clear()  # Ctrl-C is how this command ends: not a failure to be raised again


def _listen(port: int | None) -> socket.socket:
    """The port that was asked for; otherwise the usual one, or any that is free."""
    for number in (port,) if port is not None else (USUAL_PORT, 0):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, number or 0))
            listening.listen(_BACKLOG)
            return listening
        except OSError:
            listening.close()
    raise Refused("port-taken", f"port {port} is taken by another program", "tenuto ui --port 0   (any that is free)")


def _greet(hall: Hall, wish: Wish) -> None:
    if wish.only_look:
        say(f"this server only shows: {wish.only_look}")
    if hall.has_terminal:
        _say_code(hall)
    else:
        say(f"pages for programs of this user: {hall.address}")
    say("Ctrl-C ends it; runs go on")
    if wish.opens:
        import webbrowser

        webbrowser.open(hall.address)


def _say_code(hall: Hall) -> None:
    code = hall.codes.make()
    say(f"{hall.address}/in#{code}")
    say(f"  or open {hall.address} and type {code[:5]}-{code[5:]}; valid for five minutes, once. Enter: a new code")


def _renew_codes(hall: Hall) -> None:
    while sys.stdin.readline():
        _say_code(hall)
