"""Who is at the other end of a connection: the process, its ancestors, and what guard.py says of them.

    judge(peer, port)    Person | Supervised | Host; None where the process cannot be seen from here

On Linux a connection over the loopback has both its ends in /proc: the socket's inode and user in /proc/net/tcp, the
processes that hold it in /proc/PID/fd. Every holder is judged; one that may not decide is enough to refuse. What cannot
be seen (another user, a tunnel, another machine, macOS) is nobody: the caller asks at the terminal.

A browser that another program drives (remote debugging, automation) is no person's, whoever started it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from tenuto.errors import Refused
from tenuto.workspace.guard import Person, judge_process, lineage

if TYPE_CHECKING:
    from tenuto.workspace.guard import Caller

Judge = Callable[[tuple[str, int], int], "Caller | None"]
DRIVEN = (
    b"--remote-debugging-port",
    b"--remote-debugging-pipe",
    b"--remote-debugging-address",
    b"--enable-automation",
    b"--remote-allow-origins",
    b"--marionette",
    b"-marionette",
    b"--remote-control",
)
_ESTABLISHED = "01"


def judge(peer: tuple[str, int], port: int) -> Caller | None:
    """`peer`: the address and port of the other end; `port`: ours. Refused where a program drives the browser."""
    found = _socket(peer, port)
    if found is None or found[0] != os.geteuid():
        return None
    holders = [pid for pid in _processes() if _holds(pid, found[1])]
    callers = [judge_process(pid) for pid in holders]
    if not callers or None in callers:
        return None
    caller = next((one for one in callers if not isinstance(one, Person)), Person("web"))
    if isinstance(caller, Person):
        for pid in holders:
            _refuse_driven(pid)
    return caller


def _refuse_driven(pid: int) -> None:
    for ancestor in lineage(pid):
        words = ancestor.command.split(b"\0")
        driven = next((word for word in words if word.partition(b"=")[0] in DRIVEN), None)
        if driven is not None:
            option = driven.partition(b"=")[0].decode("ascii", "replace")
            message = f"a program can drive this browser ({option}), so a click in it is nobody's decision"
            raise Refused("driven-browser", message, "decide in a browser of your own, or in a terminal")


def _socket(peer: tuple[str, int], port: int) -> tuple[int, str] | None:
    """(user, inode) of the other end."""
    wanted = [
        (f"{_four(peer[0])}:{peer[1]:04X}", f"{_four('127.0.0.1')}:{port:04X}"),
        (f"{_mapped(peer[0])}:{peer[1]:04X}", f"{_mapped('127.0.0.1')}:{port:04X}"),
    ]
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(path, encoding="ascii") as table:
            for line in table:
                words = line.split()
                if words[3:4] == [_ESTABLISHED] and (words[1], words[2]) in wanted:
                    return int(words[7]), words[9]
    return None


def _four(address: str) -> str:
    """As the kernel writes it: the number, as this machine keeps numbers."""
    number = int.from_bytes(bytes(int(part) for part in address.split(".")), sys.byteorder)
    return f"{number:08X}"


def _mapped(address: str) -> str:
    middle = int.from_bytes(b"\0\0\xff\xff", sys.byteorder)
    return f"{0:016X}{middle:08X}{_four(address)}"


def _processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            yield int(name)


def _holds(pid: int, inode: str) -> bool:
    wanted = f"socket:[{inode}]"
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        with suppress(OSError):
            if os.readlink(f"{folder}/{name}") == wanted:
                return True
    return False


def is_same_user(peer: tuple[str, int], port: int) -> bool:
    """Whether the other end is a program of the user who runs this server. What cannot be seen is not."""
    found = _socket(peer, port)
    return found is not None and found[0] == os.geteuid()
