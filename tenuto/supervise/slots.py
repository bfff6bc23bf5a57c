"""At most `cap` agents per pool, across processes and restarts; and the proof that a slot's tree is gone.

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

What a killed supervisor left behind is found, ended, and proven gone. Its agent died with it (parent-death signal);
the agent's children may live. They are the members of the attempt's cgroup, the processes that carry the attempt's
mark in their environment, and everything below either. Gone is proven when two walks in a row find nothing
and the kernel calls the cgroup empty. Who forks and ends all the time is in no table that took
time to read: such a one is ended with its cgroup, or met among the processes started last.

    Never ended: a process older than the dead supervisor; a process below a living supervisor
    whose attempt has the same name (in another repository); this process and its ancestors,
    which count as left.

Not found: a process that has left the tree, emptied its environment, and is in no cgroup.
Where there is no /proc nothing is found at all.

A cgroup (v2, where this user may make one) is a tree that nothing leaves by forking or daemonising. It is chosen by
name before it is made, so that the name can be on record first and a crash leaves at most an empty directory. It adds
to the walk over the process table and never replaces it: a process that could not be put into its cgroup is found the
other way.
"""

from __future__ import annotations

import fcntl
import os
import time

from tenuto.encoding import NotJson, dumps, loads
from tenuto.errors import Damaged
from tenuto.supervise import processes, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from tenuto.supervise.processes import Process, Table
    from tenuto.supervise.records import Claim, Hold, Identity, SlotState
else:
    import _signal as signal


def choose() -> str | None:
    """The path of a new cgroup below our own; None where there is no cgroup v2 or no right to make one."""
    mount, root = _mount()
    own = _own()
    if mount is None or own is None:
        return None
    if root != "/" and (own + "/").startswith(root + "/"):
        own = own[len(root) :]
    home = os.path.join(mount, own.lstrip("/"))
    if not os.access(home, os.W_OK) or not os.access(os.path.join(home, "cgroup.procs"), os.W_OK):
        return None
    return os.path.join(home, f"tenuto-{os.urandom(6).hex()}")


def _mount() -> tuple[str | None, str]:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                if after.startswith("cgroup2 "):
                    root, mount = before.split()[3:5]
                    return mount.replace("\\040", " "), root
    except OSError:
        pass
    return None, "/"


def _own() -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                if line.startswith("0::"):
                    return line[3:].rstrip("\n")
    except OSError:
        pass
    return None


def make(path: str | None) -> bool:
    if path is None:
        return False
    try:
        os.mkdir(path)
    except OSError:
        return False
    if os.path.exists(os.path.join(path, "cgroup.kill")):
        return True
    remove(path)  # a kernel before 5.14: it could hold the tree but not end it
    return False


def fork_into(path: str) -> int:
    """os.fork, with the child in the cgroup; OSError where the kernel does not do it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return processes.fork_into(descriptor, signal.SIGCHLD)
    finally:
        os.close(descriptor)


def cgroup_members(path: str | None) -> list[int]:
    """The processes in the cgroup and in those below it."""
    if path is None:
        return []
    found: list[int] = []
    for folder, _, _ in os.walk(path):
        try:
            with open(os.path.join(folder, "cgroup.procs"), "rb") as file:
                found += [int(pid) for pid in file.read().split()]
        except OSError:
            continue
    return found


def populated(path: str | None) -> bool:
    """Does anything in it live? The kernel knows, also where who is listed is gone before anybody can look."""
    if path is None:
        return False
    try:
        with open(os.path.join(path, "cgroup.events"), "rb") as file:
            return b"populated 1" in file.read()
    except OSError:
        return False


def kill(path: str | None) -> None:
    """End all of it at once; even a process that is forking right now does not get away."""
    if path is None:
        return
    try:
        descriptor = os.open(os.path.join(path, "cgroup.kill"), os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(descriptor, b"1")
    except OSError:
        pass
    finally:
        os.close(descriptor)


def remove(path: str | None) -> None:
    if path is None:
        return
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            pass


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
        if supervisor is None or not processes.alive(supervisor):
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
    # seldom needed, and every agent's start would pay for it

    return not processes.PROC or end([hold["claim"]], _PATIENCE)[0].proven


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


PATIENCE = 2.0
_FEWEST_WALKS = 5  # on a busy machine one walk can take longer than the patience: the clock alone ends nothing
_BETWEEN_WALKS = 0.02
_LOOKS = 40


class Ended:
    """What came of one claim: whom we ended, and whether nothing is left."""

    __slots__ = ("processes", "proven")

    def __init__(self) -> None:
        self.processes: dict[tuple[int, str], Process] = {}
        self.proven = False


def end(claims: Sequence[Claim], patience: float = PATIENCE) -> list[Ended]:
    """End what is left of the trees of these dead supervisors; one answer per claim, in order."""
    answers = [Ended() for _ in claims]
    judged = [index for index, claim in enumerate(claims) if _can_judge(claim)]
    ours = {os.getpid(), *processes.ancestors(processes.table(), os.getpid())} if judged else set()
    deadline = time.monotonic() + patience
    clean = dict.fromkeys(judged, 0)
    walks = 0
    while judged:
        walks += 1
        found = find([claims[index] for index in judged])
        for index, members in zip(list(judged), found, strict=True):
            cgroup = claims[index]["cgroup"]
            left = bool(members) or populated(cgroup) or _met(claims[index], ours, answers[index])
            clean[index] = 0 if left else clean[index] + 1
            if clean[index] == 2:
                answers[index].proven = True
                remove(cgroup)
                judged.remove(index)
            elif left:
                if ours.isdisjoint({*(process.pid for process in members), *cgroup_members(cgroup)}):
                    kill(cgroup)
                for process in members:
                    if process.pid not in ours and processes.send(process, signal.SIGKILL):
                        answers[index].processes[process.pid, process.start] = process
        if walks >= _FEWEST_WALKS and time.monotonic() > deadline:
            judged = [index for index in judged if clean[index]]  # what was gone just now is looked for once more
        _await_end([process for members in found for process in members])
    return answers


def _met(claim: Claim, ours: set[int], answer: Ended) -> bool:
    """One of the tree among those started last, signalled as soon as it is seen. Not asked where a cgroup holds the
    tree."""
    met = False
    supervisor, held = claim["supervisor"], claim["cgroup"] is not None and os.path.isdir(claim["cgroup"])
    elsewhere = supervisor is None or supervisor["boot"] != processes.boot()  # the machine has been started since
    for _ in range(0 if held or elsewhere else _LOOKS):
        for process in processes.newest():
            young = not process.dead and process.pid not in ours and int(process.start) >= _ticks(claim)
            if (
                young
                and processes.mark_of(process.pid) == claim["attempt"]
                and not _is_anothers(processes.line(process), process, claim)
            ):
                met = True
                if processes.send(process, signal.SIGKILL):
                    answer.processes[process.pid, process.start] = process
    return met


def _can_judge(claim: Claim) -> bool:
    supervisor = claim["supervisor"]
    return supervisor is not None and processes.visible(supervisor) and not processes.alive(supervisor)


def find(claims: Sequence[Claim]) -> list[list[Process]]:
    """The living processes of each claim's tree, from one walk."""
    known = processes.table()
    wanted: dict[str, list[int]] = {}
    found: list[dict[int, Process]] = [{} for _ in claims]
    here = processes.boot()
    for index, claim in enumerate(claims):
        if claim["supervisor"] is None or claim["supervisor"]["boot"] != here:
            continue  # the machine has been started since: nothing can be left
        wanted.setdefault(claim["attempt"], []).append(index)
        for pid in cgroup_members(claim["cgroup"]):
            if pid in known and not known[pid].dead:
                found[index][pid] = known[pid]
    oldest = min((_ticks(claims[index]) for indexes in wanted.values() for index in indexes), default=None)
    if oldest is not None and processes.PROC:
        for process in known.values():
            if process.dead or process.kernel or int(process.start) < oldest:
                continue
            for index in wanted.get(processes.mark_of(process.pid) or "", ()):
                if int(process.start) >= _ticks(claims[index]) and not _is_anothers(known, process, claims[index]):
                    found[index][process.pid] = process
    for members in found:
        members.update({process.pid: process for process in processes.descendants(known, members)})
    return [[process for _, process in sorted(members.items())] for members in found]


def _ticks(claim: Claim) -> int:
    supervisor = claim["supervisor"]
    return int(supervisor["start"]) if supervisor is not None and supervisor["start"].isdigit() else 0


def _is_anothers(known: Table, process: Process, claim: Claim) -> bool:
    for pid in processes.ancestors(known, process.pid):
        directory = processes.supervised_directory(pid)
        if directory is not None:
            try:
                other: Claim | None = records.read(os.path.join(directory, "claim"))
            except (Damaged, OSError):
                return True
            if other is None or other["attempt"] == claim["attempt"]:
                return True
    return False


def _await_end(signalled: Sequence[Process]) -> None:
    import select

    poll = select.poll()
    opened: list[int] = []
    for process in signalled:
        try:
            opened.append(os.pidfd_open(process.pid))
            poll.register(opened[-1], select.POLLIN)
        except (AttributeError, OSError):
            continue
    if signalled:
        poll.poll(_BETWEEN_WALKS * 1000)
    for descriptor in opened:
        os.close(descriptor)
