"""Whether anything of a tree of processes still lives, asked without looking at the machine's other processes.

A leash is a FIFO. The first process of the tree opens it for writing and hands it to all that it starts; the kernel
says when the last of them has closed it, that is: has ended.
"""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path
from typing import Self

DEADLINE = 300.0  # for what must happen; reaching it is a failure, never a result


class Leash:
    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reader)

    def hear(self, started: subprocess.Popen[bytes]) -> None:
        """Until one of the tree has written a byte, which says that all of it is in place."""
        ended = os.pidfd_open(started.pid)
        try:
            poll = select.poll()
            poll.register(self._reader, select.POLLIN)
            poll.register(ended, select.POLLIN)
            poll.poll(DEADLINE * 1000)
            if os.read(self._reader, 1) == b"":
                raise AssertionError(f"it ended without a word: {started.args!r}, {started.wait()}")
        finally:
            os.close(ended)

    def is_held(self) -> bool:
        """Does a process that opened the leash for writing live now?"""
        try:
            return os.read(self._reader, 1) != b""
        except BlockingIOError:
            return True

    def is_let_go(self) -> bool:
        """The same the other way round, with time for a process that was just killed: it ends a moment later."""
        os.close(os.open(self.path, os.O_WRONLY))  # so that the kernel reports an end also where nobody had begun
        poll = select.poll()
        poll.register(self._reader, 0)  # the end of the last writer is reported without being asked for
        return bool(poll.poll(DEADLINE * 1000))
