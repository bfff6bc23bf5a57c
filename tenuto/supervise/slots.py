"""At most `cap` agents per pool, across processes and restarts.

A pool is a directory with one file per slot. Whoever holds the lock on the file has the slot;
the kernel takes the lock back when the holder dies. The file says who holds it, and is emptied
when that supervisor's tree is proven empty. So:

    locked                  held
    not locked, empty       free
    not locked, not empty   unproven: the holder was killed, and its tree may live

An unproven slot is used again only after what is left of that tree was ended and proven gone;
where that cannot be proven it stays blocked. Slot files are never unlinked: two processes would
then hold locks on two files of the same name.

Pools may be used with different caps at once; then never more than the largest are held. Slots
are taken from the top, so that those with the smaller cap find theirs free.
"""

from __future__ import annotations

import fcntl
import os

from tenuto.encoding import NotJson, dumps, loads
from tenuto.supervise import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.supervise.shapes import Hold, Identity, SlotState

_UNREADABLE = "unreadable"
_PATIENCE = 0.5


class Slot:
    __slots__ = ("descriptor", "number")

    def __init__(self, number: int, descriptor: int) -> None:
        self.number = number
        self.descriptor = descriptor


def take(pool: str, cap: int, hold: Hold) -> Slot | None:
    """A free slot, now the caller's; None where all are held or unproven."""
    for number in reversed(range(cap)):
        descriptor = _open(pool, number)
        if _lock(descriptor) and _proven(_read(descriptor)):
            _write(descriptor, dumps(hold).encode())
            return Slot(number, descriptor)
        os.close(descriptor)
    return None


def release(slot: Slot) -> None:
    """The caller's tree is empty: the next one may have the slot."""
    os.ftruncate(slot.descriptor, 0)
    os.close(slot.descriptor)


def holders(pool: str, cap: int) -> list[Identity] | None:
    """The supervisors to wait for; None where a slot has no holder that is known and alive."""
    found: list[Identity] = []
    for number in range(cap):
        descriptor = _open(pool, number)
        hold = _read(descriptor)
        os.close(descriptor)
        supervisor = hold["claim"]["supervisor"] if isinstance(hold, dict) else None
        if supervisor is None or not identity.alive(supervisor):
            return None
        found.append(supervisor)
    return found


def survey(pool: str) -> list[SlotState]:
    """Who holds what, for people; the pool is not changed."""
    found: list[SlotState] = []
    numbers = sorted(int(name[5:]) for name in os.listdir(pool) if name.startswith("slot-") and name[5:].isdigit())
    for number in numbers:
        descriptor = os.open(_path(pool, number), os.O_RDONLY | os.O_CLOEXEC)
        try:
            hold = _read(descriptor)
            held = not _lock(descriptor, shared=True)
        finally:
            os.close(descriptor)
        known = hold if isinstance(hold, dict) else None
        found.append(
            {
                "slot": number,
                "state": "held" if held else "free" if hold is None else "unproven",
                "attempt": known["claim"]["attempt"] if known else None,
                "directory": known["directory"] if known else None,
                "supervisor": known["claim"]["supervisor"] if known else None,
            }
        )
    return found


def _proven(hold: Hold | str | None) -> bool:
    if hold is None:
        return True
    if isinstance(hold, str):
        return False  # who held it cannot be known, so neither can what it left
    from tenuto.supervise import orphans  # seldom needed, and every agent's start would pay for it

    return not identity.PROC or orphans.end([hold["claim"]], _PATIENCE)[0].proven


def _path(pool: str, number: int) -> str:
    return os.path.join(pool, f"slot-{number}")


def _open(pool: str, number: int) -> int:
    return os.open(_path(pool, number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(descriptor: int, shared: bool = False) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(descriptor: int) -> Hold | str | None:
    text = os.pread(descriptor, 1 << 16, 0)
    if not text:
        return None
    try:
        hold: Hold = loads(text)
        return hold if hold["claim"]["attempt"] and hold["directory"] else _UNREADABLE
    except (NotJson, UnicodeDecodeError, KeyError, TypeError):
        return _UNREADABLE


def _write(descriptor: int, text: bytes) -> None:
    os.ftruncate(descriptor, 0)
    if os.pwrite(descriptor, text, 0) != len(text):
        os.ftruncate(descriptor, 0)
        raise OSError(28, "no space for the slot's record")
