"""Rolling order for long runs: the items that may start, kept up to date instead of looked for.

    frontier = Frontier(items, done=..., running=..., failed=...)
    frontier.start(cap)          what may start now; these count as running from here on
    frontier.end(name, well=True)

Says at every moment exactly what waves.rolling() says; that function is the rule, this is its
index. It holds no truth: it is rebuilt from done, running and failed whenever a process starts.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tenuto.core.waves import chain_lengths, dependents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from tenuto.core.items import PlannedItem


class Frontier:
    __slots__ = ("_after", "_never_stops", "_rank", "_ready", "_running", "_waits")

    def __init__(
        self,
        items: Sequence[PlannedItem],
        *,
        done: Container[str] = (),
        running: Container[str] = (),
        failed: Container[str] = (),
        never_stops: Container[str] = (),
    ) -> None:
        chains = chain_lengths(items)
        self._never_stops = never_stops
        self._after = dependents(items)
        # The longest chain first, then the plan's order.
        self._rank = {item["id"]: (-chains[item["id"]], at) for at, item in enumerate(items)}
        self._waits = {
            item["id"]: sum(
                1
                for before in dict.fromkeys(item["depends_on"])
                if before not in done and not (before in failed and before in never_stops)
            )
            for item in items
        }
        self._running = sum(1 for name in self._rank if name in running)
        self._ready = [
            (*self._rank[name], name)
            for name, waits in self._waits.items()
            if not waits and name not in done and name not in running and name not in failed
        ]
        heapify(self._ready)

    def start(self, cap: int) -> list[str]:
        """In the plan's order while there is room for all, else the longest chains first."""
        room = cap - self._running
        everything = len(self._ready) <= room
        taken = [heappop(self._ready) for _ in range(min(max(room, 0), len(self._ready)))]
        self._running += len(taken)
        return [name for _, _, name in (sorted(taken, key=lambda entry: entry[1]) if everything else taken)]

    def end(self, name: str, *, well: bool) -> None:
        self._running -= 1
        if not well and name not in self._never_stops:
            return
        for follower in self._after[name]:
            self._waits[follower] -= 1
            if not self._waits[follower]:
                heappush(self._ready, (*self._rank[follower], follower))
