"""What a killed supervisor left behind: found, ended, and proven gone.

Its agent died with it (parent-death signal); the agent's children may live. They are the
members of the attempt's cgroup, the processes that carry the attempt's mark in their
environment, and everything below either. Gone is proven when two walks in a row find nothing
and the kernel calls the cgroup empty. Who forks and ends all the time is in no table that took
time to read: such a one is ended with its cgroup, or met among the processes started last.

    Never ended: a process older than the dead supervisor; a process below a living supervisor
    whose attempt has the same name (in another repository); this process and its ancestors,
    which count as left.

Not found: a process that has left the tree, emptied its environment, and is in no cgroup.
Where there is no /proc nothing is found at all.
"""

from __future__ import annotations

import os
import time

from tenuto.errors import Damaged
from tenuto.supervise import cgroups, identity, processes, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from tenuto.supervise.identity import Process
    from tenuto.supervise.processes import Table
    from tenuto.supervise.shapes import Claim
else:
    import _signal as signal

PATIENCE = 2.0
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
    while judged:
        found = find([claims[index] for index in judged])
        for index, members in zip(list(judged), found, strict=True):
            cgroup = claims[index]["cgroup"]
            left = bool(members) or cgroups.populated(cgroup) or _met(claims[index], ours, answers[index])
            clean[index] = 0 if left else clean[index] + 1
            if clean[index] == 2:
                answers[index].proven = True
                cgroups.remove(cgroup)
                judged.remove(index)
            elif left:
                if ours.isdisjoint({*(process.pid for process in members), *cgroups.members(cgroup)}):
                    cgroups.kill(cgroup)
                for process in members:
                    if process.pid not in ours and processes.send(process, signal.SIGKILL):
                        answers[index].processes[process.pid, process.start] = process
        if time.monotonic() > deadline:
            break
        _await_end([process for members in found for process in members])
    return answers


def _met(claim: Claim, ours: set[int], answer: Ended) -> bool:
    """One of the tree among those started last, signalled as soon as it is seen. Not asked where a cgroup holds the tree."""
    met = False
    supervisor, held = claim["supervisor"], claim["cgroup"] is not None and os.path.isdir(claim["cgroup"])
    elsewhere = supervisor is None or supervisor["boot"] != identity.boot()  # the machine has been started since
    for _ in range(0 if held or elsewhere else _LOOKS):
        for process in processes.newest():
            young = not process.dead and process.pid not in ours and int(process.start) >= _ticks(claim)
            if young and processes.mark_of(process.pid) == claim["attempt"] and not _is_anothers(processes.line(process), process, claim):
                met = True
                if processes.send(process, signal.SIGKILL):
                    answer.processes[process.pid, process.start] = process
    return met


def _can_judge(claim: Claim) -> bool:
    supervisor = claim["supervisor"]
    return supervisor is not None and identity.visible(supervisor) and not identity.alive(supervisor)


def find(claims: Sequence[Claim]) -> list[list[Process]]:
    """The living processes of each claim's tree, from one walk."""
    known = processes.table()
    wanted: dict[str, list[int]] = {}
    found: list[dict[int, Process]] = [{} for _ in claims]
    here = identity.boot()
    for index, claim in enumerate(claims):
        if claim["supervisor"] is None or claim["supervisor"]["boot"] != here:
            continue  # the machine has been started since: nothing can be left
        wanted.setdefault(claim["attempt"], []).append(index)
        for pid in cgroups.members(claim["cgroup"]):
            if pid in known and not known[pid].dead:
                found[index][pid] = known[pid]
    oldest = min((_ticks(claims[index]) for indexes in wanted.values() for index in indexes), default=None)
    if oldest is not None and identity.PROC:
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
