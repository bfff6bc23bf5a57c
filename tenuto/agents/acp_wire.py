"""JSON-RPC with a program over its standard input and output, one message per line: the wire under the Agent Client Protocol.

    peer = Peer(argv, environment, answer, hear)
    peer.call("session/new", {...})      its result, while the program's own requests are answered and its notes heard
    peer.tell("session/cancel", {...})   a note, nothing comes back
    peer.close()

One thread, no time limits: whoever supervises this process has one. A line that is no message is passed on to standard
error and counts for nothing. SIGTERM is asked for politely: `stopping` is called once, and the call in progress has
a moment left before Stopped is raised.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

NOT_FOUND, NO_METHOD, INTERNAL, REFUSED = -32002, -32601, -32603, -32602
_LONGEST = 64 << 20  # bytes of one message
_MOMENT = 1.0  # seconds for the program to wind up after it was asked to stop
_CLOSING = 0.4  # seconds for it to go by itself when its input has ended, and again when it was told to
_CHUNK = 1 << 16


class Failed(Exception):
    """The other side answered with an error, or our own answer is one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Gone(Exception):
    """The program ended, or cannot be understood any more."""


class Stopped(Exception):
    """We were asked to stop, and the program did not wind up in time."""


class Peer:
    def __init__(
        self, argv: list[str], environment: dict[str, str], answer: Callable[[str, Any], Any], hear: Callable[[str, Any], None]
    ) -> None:
        self.answer = answer
        self.hear = hear
        self.stopping: Callable[[], None] = lambda: None
        self._deadline: float | None = None  # there once we were asked to stop
        self._number = 0
        self._results: dict[int, Any] = {}
        self._arrived = b""
        self._leaving = b""
        self._asked, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake)
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._into, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._into, False)
        self._select = selectors.DefaultSelector()
        self._select.register(self._out, selectors.EVENT_READ)
        self._select.register(self._asked, selectors.EVENT_READ)

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        while number not in self._results:
            self._turn()
        reply = self._results.pop(number)
        if "error" in reply:
            raise _failure(reply["error"])
        result = reply.get("result")
        return result if isinstance(result, dict) else {}

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def close(self) -> None:
        """Its input ends, then it is told to go; what is still there then is the supervisor's."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(_CLOSING)
            except subprocess.TimeoutExpired:
                pass

    def _turn(self) -> None:
        """Wait for whatever comes next, and deal with it."""
        left = None if self._deadline is None else self._deadline - time.monotonic()
        if left is not None and left <= 0:
            raise Stopped
        for key, mask in self._select.select(left):
            if key.fd == self._asked:
                self._stop()
            elif mask & selectors.EVENT_WRITE:
                self._flush()
            elif key.fd == self._out:
                self._read()

    def _stop(self) -> None:
        if signal.SIGTERM in os.read(self._asked, 64) and self._deadline is None:
            self._deadline = time.monotonic() + _MOMENT
            self.stopping()

    def _send(self, message: dict[str, Any]) -> None:
        self._leaving += json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        """As much as the pipe takes now: the program may be waiting for us to read before it reads."""
        try:
            while self._leaving:
                self._leaving = self._leaving[os.write(self._into, self._leaving[:_CHUNK]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._leaving = b""  # it has ended, or will: reading tells
        known = self._into in self._select.get_map()
        if self._leaving and not known:
            self._select.register(self._into, selectors.EVENT_WRITE)
        elif known and not self._leaving:
            self._select.unregister(self._into)

    def _read(self) -> None:
        chunk = os.read(self._out, _CHUNK)
        if not chunk:
            raise Gone(self._ending())
        *lines, self._arrived = (self._arrived + chunk).split(b"\n")
        if len(self._arrived) > _LONGEST:
            raise Gone("it sent a line that does not end")
        for line in lines:
            self._take(line)

    def _ending(self) -> str:
        try:
            status = self.process.wait(_MOMENT)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        return f"it was ended by signal {-status}" if status < 0 else f"it ended with exit status {status}"

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            if line.strip():
                sys.stderr.buffer.write(line + b"\n")
                sys.stderr.buffer.flush()
        elif "method" not in message:
            # An error without a number is about what we asked last.
            number = message.get("id") if "error" not in message else message.get("id") or self._number
            if isinstance(number, int):
                self._results[number] = message
        elif "id" in message:
            self._send({"id": message["id"], **self._reply(message)})
        else:
            self.hear(str(message["method"]), _params(message))

    def _reply(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": self.answer(str(message["method"]), _params(message))}
        except Failed as problem:
            return {"error": {"code": problem.code, "message": problem.message}}
        except Exception as problem:  # noqa: BLE001 - a request that we cannot deal with must not end the conversation
            return {"error": {"code": INTERNAL, "message": f"it cannot be answered: {problem}"}}


def _params(message: dict[str, Any]) -> dict[str, Any]:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def _failure(error: Any) -> Failed:
    if not isinstance(error, dict):
        return Failed(INTERNAL, str(error))
    code = error.get("code")
    return Failed(code if isinstance(code, int) else INTERNAL, str(error.get("message", "")), error.get("data"))
