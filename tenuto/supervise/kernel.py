"""The Linux calls that Python has no function for: prctl, inotify, fallocate, clone3.

They go through `_ctypes`, the C half of ctypes: importing the Python half costs as much
as starting the interpreter, and a supervisor starts with every agent. A call the system
does not have raises OSError, like one that failed.
"""

from __future__ import annotations

import errno
import os
import sys

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
