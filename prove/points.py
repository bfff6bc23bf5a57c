"""Eighteen points between the wish for an attempt and its end, at which a process can be made to stand still.

    arm(point, nth, ear, gate)      in this process: the nth time it comes there, it says so and waits
    python -I -S .../points.py POINT NTH EAR GATE DIRECTORY      a supervisor that does

The product holds no hook for this: functions are wrapped from outside, in a process made for it. What stands still can
be killed exactly there, with any of the others; what is not killed goes on.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NamedTuple

    class Place(NamedTuple):
        owner: str  # module, or module:class
        function: str
        when: str  # before, after
        only: str = ""  # with this in its first argument


AGENT = "the agent is at work"  # it says so itself

ORCHESTRATOR: dict[str, Any] = {
    "before the intent": ("tenuto.engine.loop:Engine", "dispatch", "before", ""),
    "the intent is decided, not committed": ("tenuto.engine.loop:Engine", "dispatch", "after", ""),
    "the intent is committed, files not shown": ("tenuto.workspace.workspace", "publish_all", "before", ""),
    "the intent is shown, nothing launched": ("tenuto.engine.loop:Engine", "launch", "before", ""),
    "the specification is written, no supervisor": ("tenuto.supervise.attempts", "start_supervisor", "before", ""),
    "the supervisor has no environment yet": ("tenuto.supervise.attempts", "_hand_over", "before", ""),
    "the supervisor is on its own": ("tenuto.supervise.attempts", "start_supervisor", "after", ""),
    "the result is there, not collected": ("tenuto.engine.loop:Engine", "finish", "before", ""),
    "the end is decided, not committed": ("tenuto.engine.loop:Engine", "_record", "after", ""),
    "the end is committed": ("tenuto.engine.loop:Engine", "finish", "after", ""),
    "during a checkpoint of the journal": ("tenuto.stores.sqlite:SqliteJournal", "_cut_off_if_long", "before", ""),
}
SUPERVISOR: dict[str, Any] = {
    "before the claim": ("tenuto.supervise.records", "create_once", "before", "/claim"),
    "claimed, without a slot": ("tenuto.supervise.supervisor:Supervision", "_queue", "before", ""),
    "the slot is taken": ("tenuto.supervise.supervisor:Supervision", "_start", "before", ""),
    "between fork and exec": ("tenuto.supervise.supervisor", "_become_agent", "before", ""),
    "the agent has ended, no result": ("tenuto.supervise.supervisor:Supervision", "_end_tree", "before", ""),
    "the result is published, the slot is held": ("tenuto.supervise.slots", "release", "before", ""),
}
POINTS = (*ORCHESTRATOR, *SUPERVISOR, AGENT)


def arm(point: str, nth: int, ear: str, gate: str) -> None:
    name, function, when, only = {**ORCHESTRATOR, **SUPERVISOR}[point]
    module, _, owner = name.partition(":")
    place: Any = __import__(module, fromlist=["*"])
    place = getattr(place, owner) if owner else place
    setattr(place, function, _wrapped(getattr(place, function), when, only, nth, ear, gate))
    if point == "during a checkpoint of the journal":
        _checkpoint_always()


def _wrapped(call: Callable[..., Any], when: str, only: str, nth: int, ear: str, gate: str) -> Callable[..., Any]:
    seen = [0]

    def wrapped(*words: Any, **named: Any) -> Any:
        meant = not only or str(words[0]).endswith(only)
        seen[0] += meant
        if meant and when == "before" and seen[0] == nth:
            stand_still(ear, gate)
        answer = call(*words, **named)
        if meant and when == "after" and seen[0] == nth:
            stand_still(ear, gate)
        return answer

    return wrapped


def stand_still(ear: str, gate: str) -> None:
    said, heard = (os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in (ear, gate))
    os.write(said, f"{os.getpid()}\n".encode())
    os.read(heard, 1)
    os.close(said)
    os.close(heard)


def _checkpoint_always() -> None:
    """Every commit is long enough to be checkpointed."""
    from tenuto.stores import sqlite

    sqlite._FRAMES, sqlite._LARGEST_LOG = 1, 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from tenuto.supervise.supervisor import main

    arm(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
    os._exit(main(sys.argv[5]))
