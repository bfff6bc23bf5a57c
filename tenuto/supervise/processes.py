"""The process table: who descends from whom, who carries an attempt's mark, and signals
that reach the process that was meant and no other.

The walk sees daemons and processes that left their session or group, because a supervisor
is a subreaper: whoever loses its parent becomes the supervisor's own child. What was not
started by the tree (a service manager asked to start something) is not part of it.
"""

from __future__ import annotations

import os

from tenuto.supervise import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

    from tenuto.supervise.identity import Process
    from tenuto.supervise.shapes import Leftover
else:
    import _signal as signal

MARK = "TENUTO_ATTEMPT"
SUPERVISOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
_READS_DURING_EXEC = 5

Table = dict[int, "Process"]


def table() -> Table:
    if not identity.PROC:
        return {process.pid: process for process in identity.list_with_ps("-ax")}
    found: Table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = identity.look(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def newest(count: int = 8) -> list[Process]:
    """Who was started last. A process that forks and ends all the time is among these, and in no table that took time to read."""
    try:
        with open("/proc/loadavg", "rb") as file:
            last = int(file.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return []
    return [process for pid in range(last, max(0, last - count), -1) if (process := identity.look(pid)) is not None]


def line(process: Process) -> Table:
    """This process and who is above it: a table for who has no time to read all of it."""
    found: Table = {}
    above: Process | None = process
    while above is not None and above.pid not in found:
        found[above.pid] = above
        above = identity.look(above.parent)
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
        now = identity.look(process.pid)
        if now is None or now.start != process.start:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _send_without_pidfd(process: Process, number: int) -> bool:
    now = identity.look(process.pid)
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
