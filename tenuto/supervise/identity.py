"""Who a process is: (pid, start time, boot id). A bare pid is reused and proves nothing.

A process that has ended but was not yet collected by its parent (a zombie) is dead here:
it runs nothing and holds nothing. An identity from another PID namespace cannot be judged
from this one; `visible` says so, and callers must not take silence for death.

Where there is no /proc, `ps` tells parent, state and start.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.supervise.shapes import Identity

PROC = os.path.exists("/proc/self/stat")
_told: dict[str, str] = {}  # what the system says once and for all
_KERNEL_THREAD = 0x00200000


class Process:
    """One line of the process table."""

    __slots__ = ("kernel", "name", "parent", "pid", "start", "state")

    def __init__(self, pid: int, parent: int, state: str, start: str, name: str, kernel: bool = False) -> None:
        self.pid = pid
        self.parent = parent
        self.state = state
        self.start = start
        self.name = name
        self.kernel = kernel

    @property
    def dead(self) -> bool:
        return self.state in "ZXx"


def look(pid: int) -> Process | None:
    """The process as it is now, None where there is none."""
    if not PROC:
        return next(list_with_ps("-p", str(pid)), None)
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read(4096)
    except OSError:
        return None
    # The name stands in parentheses and may itself hold spaces and parentheses.
    opening, closing = text.find(b"("), text.rfind(b")")
    if closing < 0:
        return None
    fields = text[closing + 2 :].split()
    name = text[opening + 1 : closing].decode(errors="replace")
    kernel = bool(int(fields[6]) & _KERNEL_THREAD)
    return Process(pid, int(fields[1]), fields[0].decode(), fields[19].decode(), name, kernel)


def list_with_ps(*selection: str) -> Iterator[Process]:
    import subprocess

    columns = "pid=,ppid=,stat=,lstart=,comm="
    table = subprocess.run(["ps", *selection, "-o", columns], capture_output=True, text=True, check=False).stdout
    for line in table.splitlines():
        fields = line.split(None, 8)
        if len(fields) == 9:
            pid, parent, state, *start, name = fields
            yield Process(int(pid), int(parent), state[0], " ".join(start), name)


def boot() -> str:
    """Which start of the machine this is; empty where the system does not say."""
    if "boot" not in _told:
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as file:
                _told["boot"] = file.read().decode().strip()
        except OSError:
            _told["boot"] = ""
    return _told["boot"]


def space() -> str:
    if "space" not in _told:
        try:
            _told["space"] = os.readlink("/proc/self/ns/pid")
        except OSError:
            _told["space"] = ""
    return _told["space"]


def identify(pid: int) -> Identity | None:
    process = look(pid)
    if process is None or process.dead:
        return None
    return {"pid": pid, "start": process.start, "boot": boot(), "space": space()}


def visible(identity: Identity) -> bool:
    """Can this process tell whether that one lives? Not across PID namespaces of the same boot."""
    return identity["boot"] != boot() or identity["space"] == space()


def alive(identity: Identity | None) -> bool:
    if identity is None or identity["boot"] != boot() or identity["space"] != space():
        return False
    process = look(identity["pid"])
    return process is not None and process.start == identity["start"] and not process.dead


def open_pidfd(identity: Identity) -> int | None:
    """A descriptor that becomes readable when exactly this process ends; None where it is not alive."""
    try:
        descriptor = os.pidfd_open(identity["pid"])
    except (AttributeError, OSError):
        return None
    # The pid was pinned by opening it; only now is the comparison worth something.
    if alive(identity):
        return descriptor
    os.close(descriptor)
    return None
