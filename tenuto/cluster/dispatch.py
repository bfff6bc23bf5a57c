"""Who tells a worker that there is something to do. Liveness, and nothing else: every rule is in cluster.sql.

    Dispatcher     a driver's side: offer, withdraw
    Intake         a worker's side: what is ready, and a wait until there may be something

A dispatcher may tell nothing, tell too late, tell twice, or tell the wrong ones: `claim` decides. What it keeps may be
dropped at any time: whatever is in flight and not leased is offered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tenuto.cluster.board import WorkerBoard
    from tenuto.cluster.database import Line

POLL = 1.0  # seconds


class Dispatcher(Protocol):
    """Called after the commit that it is about, never inside it: a broken one fails no turn of the journal."""

    def offer(self, tasks: Sequence[str], pool: str) -> None:
        """They wait in this pool. Called again for as long as that is so."""

    def withdraw(self, tasks: Sequence[str]) -> None:
        """They have ended."""


class Intake(Protocol):
    def ready(self, at_most: int) -> list[str]: ...

    def done(self, task: str) -> None:
        """This worker has nothing to do with it any more."""

    def wait(self, seconds: float) -> None: ...

    def close(self) -> None: ...


class NoDispatcher:
    """The table of tasks is the queue: workers look there by themselves."""

    def offer(self, tasks: Sequence[str], pool: str) -> None:
        return

    def withdraw(self, tasks: Sequence[str]) -> None:
        return


class Polling:
    """What waits in the table of tasks. A word on the channel wakes; looking each second is the truth behind it."""

    def __init__(self, line: Line, board: WorkerBoard) -> None:
        self.line = line
        self.board = board

    def ready(self, at_most: int) -> list[str]:
        return self.board.ready(at_most)

    def done(self, task: str) -> None:
        return

    def wait(self, seconds: float) -> None:
        self.line.wait("tenuto_worker", seconds)

    def close(self) -> None:
        self.line.close()
