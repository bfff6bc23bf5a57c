"""Which processes are a dead supervisor's, and which are never touched."""

from __future__ import annotations

import os
import subprocess
import sys

from tenuto.supervise import identity, orphans, processes
from tenuto.supervise.shapes import Claim, Identity
from tests.unit.supervise.marked import marked


def claim(attempt: str, supervisor: Identity) -> Claim:
    return {"state": "claimed", "attempt": attempt, "at": "", "supervisor": supervisor, "cgroup": None}


def supervisor(start: int) -> Identity:
    """One that is dead, and was started at this time of this boot."""
    me = identity.identify(os.getpid())
    assert me is not None
    return {**me, "start": str(start)}


def test_each_claim_gets_its_own_processes_and_none_that_are_older_than_its_supervisor() -> None:
    """Several supervisors died at different times; one walk looks for what all of them left."""
    names = [f"orphan-{os.urandom(4).hex()}" for _ in range(2)]
    children = [marked(name) for name in names]
    started = [identity.identify(child.pid) for child in children]
    assert started[0] is not None and started[1] is not None
    before, after = int(started[0]["start"]) - 1, int(started[1]["start"]) + 1
    claims = [
        claim(names[0], supervisor(before)),
        claim(names[1], supervisor(before)),
        claim(names[1], supervisor(after)),
        claim("nobody", supervisor(before)),
    ]
    found = [[process.pid for process in members] for members in orphans.find(claims)]
    assert found == [[children[0].pid], [children[1].pid], [], []]
    for child in children:
        child.communicate()


def test_after_a_restart_of_the_machine_nothing_is_left_and_nothing_is_ended() -> None:
    name = f"orphan-{os.urandom(4).hex()}"
    child = marked(name)
    [answer] = orphans.end([claim(name, {**supervisor(0), "boot": "another"})])
    assert answer.proven and not answer.processes
    child.communicate()
    assert child.returncode == 0


def test_whoever_sweeps_does_not_end_itself_and_does_not_call_its_own_tree_gone() -> None:
    """An orchestrator inside an orphaned attempt is itself what is left of it."""
    name = f"orphan-{os.urandom(4).hex()}"
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(orphans.__file__))))
    source = f"""
import sys
sys.path.insert(0, {root!r})
from tenuto.supervise import identity, orphans
me = identity.identify(__import__("os").getpid())
me["start"] = str(int(me["start"]) - 1)
claim = {{"state": "claimed", "attempt": {name!r}, "at": "", "supervisor": me, "cgroup": None}}
print(orphans.end([claim], 0.1)[0].proven)
"""
    command = [sys.executable, "-I", "-S", "-c", source]
    done = subprocess.run(command, env={processes.MARK: name}, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_living_supervisor_has_no_orphans() -> None:
    me = identity.identify(os.getpid())
    assert me is not None
    [answer] = orphans.end([claim("mine", me)])
    assert not answer.proven and not answer.processes
