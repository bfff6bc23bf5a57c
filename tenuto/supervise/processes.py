"""The process table: who descends from whom, who carries an attempt's mark, and signals
that reach the process that was meant and no other.

The walk sees daemons and processes that left their session or group, because a supervisor
is a subreaper: whoever loses its parent becomes the supervisor's own child. What was not
started by the tree (a service manager asked to start something) is not part of it.

Who a process is: (pid, start time, boot id). A bare pid is reused and proves nothing.

A process that has ended but was not yet collected by its parent (a zombie) is dead here:
it runs nothing and holds nothing. An identity from another PID namespace cannot be judged
from this one; `visible` says so, and callers must not take silence for death.

Where there is no /proc, `ps` tells parent, state and start.

The Linux calls that Python has no function for: prctl, inotify, fallocate, clone3.

They go through `_ctypes`, the C half of ctypes: importing the Python half costs as much
as starting the interpreter, and a supervisor starts with every agent. A call the system
does not have raises OSError, like one that failed.
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Iterator

    from tenuto.supervise.records import Identity, Leftover
else:
    import _signal as signal


PROC = os.path.exists("/proc/self/stat")
_system_facts: dict[str, str] = {}  # what the system says once and for all
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
    if "boot" not in _system_facts:
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as file:
                _system_facts["boot"] = file.read().decode().strip()
        except OSError:
            _system_facts["boot"] = ""
    return _system_facts["boot"]


def space() -> str:
    if "space" not in _system_facts:
        try:
            _system_facts["space"] = os.readlink("/proc/self/ns/pid")
        except OSError:
            _system_facts["space"] = ""
    return _system_facts["space"]


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


# ---- processes ------------------------------------------------------------


MARK = "TENUTO_ATTEMPT"
SUPERVISOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
_READS_DURING_EXEC = 5

Table = dict[int, "Process"]


def table() -> Table:
    if not PROC:
        return {process.pid: process for process in list_with_ps("-ax")}
    found: Table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = look(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def newest(count: int = 8) -> list[Process]:
    """Who was started last. A process that forks and ends all the time is among these, and in no table that took
    time to read."""
    try:
        with open("/proc/loadavg", "rb") as file:
            last = int(file.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return []
    return [process for pid in range(last, max(0, last - count), -1) if (process := look(pid)) is not None]


def line(process: Process) -> Table:
    """This process and who is above it: a table for who has no time to read all of it."""
    found: Table = {}
    above: Process | None = process
    while above is not None and above.pid not in found:
        found[above.pid] = above
        above = look(above.parent)
    return found


def descendants(processes: Table, roots: Iterable[int]) -> list[Process]:
    """Everything below the roots that still runs, without the roots themselves."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    seen = set(roots)
    waiting = list(seen)
    below: list[Process] = []
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in seen:
                seen.add(pid)
                waiting.append(pid)
                below.append(processes[pid])
    return [process for process in below if not process.dead]


def ancestors(processes: Table, pid: int) -> list[int]:
    above: list[int] = []
    while pid in processes and processes[pid].parent not in (0, pid, *above):
        pid = processes[pid].parent
        above.append(pid)
    return above


def mark_of(pid: int) -> str | None:
    """The attempt a process was started for, as its environment says; None where it has no mark.

    In the middle of an exec a process shows no environment at all, so an empty one is read again.
    """
    prefix = MARK.encode() + b"="
    for _ in range(_READS_DURING_EXEC):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                entries = file.read().split(b"\0")
        except OSError:
            return None
        for entry in entries:
            if entry.startswith(prefix):
                return entry[len(prefix) :].decode("utf-8", "surrogateescape")
        if entries != [b""]:
            return None
        os.sched_yield()
    return None


def supervised_directory(pid: int) -> str | None:
    """The attempt directory where this process is a supervisor, None where it is none."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
    except OSError:
        return None
    # python -I -S .../tenuto/supervise/__main__.py DIRECTORY
    program = os.path.join("tenuto", "supervise", "__main__.py").encode()
    if len(arguments) > 4 and arguments[3].endswith(program):
        return os.fsdecode(arguments[4])
    return None


def send(process: Process, number: int) -> bool:
    """Signal this process and no later one with its pid; False where it is gone or not ours to signal."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return _send_without_pidfd(process, number)
    try:
        now = look(process.pid)
        if now is None or now.start != process.start:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _send_without_pidfd(process: Process, number: int) -> bool:
    now = look(process.pid)
    if now is None or now.start != process.start:
        return False
    try:
        os.kill(process.pid, number)
    except OSError:
        return False
    return True


def name_all(processes: Iterable[Process], at_most: int = 50) -> list[Leftover]:
    named: list[Leftover] = [{"pid": process.pid, "name": process.name} for process in processes]
    return named[:at_most]


# ---- kernel ------------------------------------------------------------


_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_PUNCH_HOLE_AND_KEEP_SIZE = 0x02 | 0x01
_CLONE3 = 435  # the same number on every architecture
_INTO_CGROUP = 0x2_0000_0000
_CREATED = 0x100
_MOVED_IN = 0x80


def _call(name: str, *arguments: int | bytes) -> int:
    try:
        import _ctypes
    except ImportError:
        raise OSError(errno.ENOSYS, f"this Python cannot call {name}") from None

    class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]
        _type_ = "i"

    class Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
        _type_ = "l"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
        _restype_ = Int

    everything_loaded = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
    function = Function(_ctypes.dlsym(everything_loaded, name))
    # A bare int would be passed as 32 bits, and a file offset is longer.
    result: int = function(*[Long(argument) if isinstance(argument, int) else argument for argument in arguments])
    if result == -1:
        number = _ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def become_subreaper() -> bool:
    """From now on every orphan among our descendants becomes our child: none can hide from waitpid."""
    try:
        _call("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except OSError:
        return False
    return True


def die_with_parent(signal: int) -> None:
    try:
        _call("prctl", _SET_PARENT_DEATH_SIGNAL, signal, 0, 0, 0)
    except OSError:
        pass


def fork_into(cgroup: int, end_signal: int) -> int:
    """os.fork, with the child in the cgroup from its first instruction on.

    Moving a process into a cgroup later takes the kernel longer than starting Python does. Only for
    a process with one thread, and only to exec: Python is not told about the fork.
    """
    #           flags      pidfd tids  exit signal  stack and tls  set_tid  cgroup
    arguments = (_INTO_CGROUP, 0, 0, 0, end_signal, 0, 0, 0, 0, 0, cgroup)
    block = b"".join(argument.to_bytes(8, sys.byteorder) for argument in arguments)
    return _call("syscall", _CLONE3, block, len(block))


def punch(descriptor: int, offset: int, length: int) -> None:
    """Give back the blocks of a range; the file keeps its length and its writers notice nothing."""
    _call("fallocate", descriptor, _PUNCH_HOLE_AND_KEEP_SIZE, offset, length)


def watch_new_names(directories: list[str]) -> int:
    """A descriptor that becomes readable when a name appears in one of the directories."""
    descriptor = _call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        for directory in directories:
            _call("inotify_add_watch", descriptor, os.fsencode(directory) + b"\0", _CREATED | _MOVED_IN)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
