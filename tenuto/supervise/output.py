"""An agent's stdout or stderr: a file, never a pipe, and never more than its cap.

A file cannot block the agent, and a daemon that holds it open delays nobody. What is over
the cap is cut out of the middle: the beginning shows what was asked, and the end holds the
verdict. While the agent writes, the middle's blocks are given back to the file system, so a
flood fills no disk; at the end the file is put together as beginning, marker and end.
"""

from __future__ import annotations

import os

from tenuto.supervise import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.supervise.shapes import Stream

_CHUNK = 1 << 20


class Output:
    def __init__(self, path: str, cap: int) -> None:
        self.path = path
        self._head = cap - cap // 2
        self._tail = cap // 2
        self._cap = cap
        self._given_back = self._head  # up to this offset
        self._lost = 0  # bytes that an old file system could only cut off
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def trim(self) -> None:
        """Give back what will not be kept, once it is worth a call."""
        size = os.fstat(self._descriptor).st_size
        end = size - self._tail
        if end - self._given_back < max(self._cap, 1 << 16):
            return
        try:
            kernel.punch(self._descriptor, self._given_back, end - self._given_back)
            self._given_back = end
        except OSError:
            # Writers append, so they go on at the new end; the bytes cut off are counted as well as can be.
            try:
                os.ftruncate(self._descriptor, self._head)
                self._lost += size - self._head
            except OSError:
                pass  # a file that cannot be bounded is no reason to lose the attempt

    def finish(self) -> Stream:
        """Bring the file into its final form, durably. Nothing of the tree writes any more."""
        size = os.fstat(self._descriptor).st_size
        total = size + self._lost
        kept = size
        if total > self._cap or not self._in_place():
            kept = self._compose(size, total)
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        return {"bytes": total, "kept": kept, "truncated": total > self._cap}

    def _in_place(self) -> bool:
        """The agent may have removed or replaced the file under its name."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except OSError:
            return False

    def _compose(self, size: int, total: int) -> int:
        """Write the file anew under its name; the number of the agent's own bytes in it."""
        head, tail = size, 0
        if total > self._cap:
            head, tail = min(self._head, size), min(self._tail, max(0, size - self._head))
        temporary = f"{self.path}.{os.urandom(6).hex()}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600)
        try:
            self._copy(descriptor, 0, head)
            if total > self._cap:
                left_out = total - head - tail
                write_all(descriptor, f"\n[tenuto: {left_out} of {total} bytes left out here]\n".encode())
                self._copy(descriptor, size - tail, tail)
            os.rename(temporary, self.path)
        except BaseException:
            os.close(descriptor)
            os.unlink(temporary)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor
        return head + tail

    def _copy(self, to: int, offset: int, length: int) -> None:
        while length > 0:
            chunk = os.pread(self._descriptor, min(length, _CHUNK), offset)
            if not chunk:
                return
            write_all(to, chunk)
            offset += len(chunk)
            length -= len(chunk)


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
