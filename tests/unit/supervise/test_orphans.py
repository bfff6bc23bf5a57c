"""Which processes are a dead supervisor's, and which are never touched."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tenuto.supervise import processes, slots
from tests.unit.supervise.marked import marked

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Self

    from tenuto.supervise.records import Claim, Identity


def claim(attempt: str, supervisor: Identity) -> Claim:
    return {"state": "claimed", "attempt": attempt, "at": "", "supervisor": supervisor, "cgroup": None}


def supervisor(start: int) -> Identity:
    """One that is dead, and was started at this time of this boot."""
    me = processes.identify(os.getpid())
    assert me is not None
    return {**me, "start": str(start)}


def test_each_claim_gets_its_own_processes_and_none_that_are_older_than_its_supervisor() -> None:
    """Several supervisors died at different times; one walk looks for what all of them left."""
    names = [f"orphan-{os.urandom(4).hex()}" for _ in range(2)]
    children = [marked(name) for name in names]
    started = [processes.identify(child.pid) for child in children]
    assert started[0] is not None and started[1] is not None
    before, after = int(started[0]["start"]) - 1, int(started[1]["start"]) + 1
    claims = [
        claim(names[0], supervisor(before)),
        claim(names[1], supervisor(before)),
        claim(names[1], supervisor(after)),
        claim("nobody", supervisor(before)),
    ]
    found = [[process.pid for process in members] for members in slots.find(claims)]
    assert found == [[children[0].pid], [children[1].pid], [], []]
    for child in children:
        child.communicate()


def test_after_a_restart_of_the_machine_nothing_is_left_and_nothing_is_ended() -> None:
    name = f"orphan-{os.urandom(4).hex()}"
    child = marked(name)
    [answer] = slots.end([claim(name, {**supervisor(0), "boot": "another"})])
    assert answer.proven and not answer.processes
    child.communicate()
    assert child.returncode == 0


def test_a_machine_on_which_a_walk_takes_longer_than_the_patience_still_proves_that_nothing_is_left() -> None:
    """Two walks that find nothing are the proof, not the time they took."""
    [answer] = slots.end([claim(f"orphan-{os.urandom(4).hex()}", supervisor(0))], patience=0.0)
    assert answer.proven


class _AfterAWalk:
    """Something happens when the first look at the processes that were started last has found nothing: the first walk
    is over then."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.happens = happens
        self.walks = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _heard(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "return" and frame.f_code is slots._met.__code__:
            self.walks += 1
            if self.walks == 1:
                sys.setprofile(None)
                self.happens()
                sys.setprofile(self._heard)


def test_one_walk_that_finds_nothing_proves_nothing() -> None:
    """What forks and ends is between two processes when a walk is over: the one that it became is found, and ended,
    by a walk that comes after."""
    name = f"orphan-{os.urandom(4).hex()}"
    became: list[subprocess.Popen[bytes]] = []
    with _AfterAWalk(lambda: became.append(marked(name))) as watched:
        [answer] = slots.end([claim(name, supervisor(0))])
    assert watched.walks >= 3
    assert answer.proven and [process.pid for process in answer.processes.values()] == [became[0].pid]
    assert became[0].wait() == -9
    became[0].communicate()


def test_whoever_sweeps_does_not_end_itself_and_does_not_call_its_own_tree_gone() -> None:
    """An orchestrator inside an orphaned attempt is itself what is left of it."""
    name = f"orphan-{os.urandom(4).hex()}"
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(slots.__file__))))
    source = f"""
import sys
sys.path.insert(0, {root!r})
from tenuto.supervise import processes, slots
me = processes.identify(__import__("os").getpid())
me["start"] = str(int(me["start"]) - 1)
claim = {{"state": "claimed", "attempt": {name!r}, "at": "", "supervisor": me, "cgroup": None}}
print(slots.end([claim], 0.1)[0].proven)
"""
    command = [sys.executable, "-I", "-S", "-c", source]
    done = subprocess.run(command, env={processes.MARK: name}, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_living_supervisor_has_no_orphans() -> None:
    me = processes.identify(os.getpid())
    assert me is not None
    [answer] = slots.end([claim("mine", me)])
    assert not answer.proven and not answer.processes
