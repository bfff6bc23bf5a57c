"""Which items run side by side, and in which order.

    arrange(items)          items -> waves; what was moved, and why
    partition(wave, cap)    a wave -> sub-waves of at most `cap`
    barrier(...)            which items may start now, wave after wave
    rolling(...)            which items may start now, as soon as what they depend on is done
    skipped(...)            which items cannot run any more because one failed

Rule 1: written waves are kept. An item is only ever moved later, past what it depends on,
never earlier, and every move is reported. Without written waves an item stands in the first
wave in which everything it depends on is done.

Rule 2: an unknown id, an id used twice and a cycle are refused, and named. Nothing is dropped.

Rule 3: under the barrier no wave starts before the one before it has ended, no sub-wave before
the sub-wave before it. After a failure the rest of the wave still runs; no later wave starts.
A failure of an agent that never stops anything stops nothing, in either order.

Rule 4: the same items in the same order give the same answer, always. `done`, `running` and
`failed` are only asked "is it in there?".
"""

from __future__ import annotations

from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from typing import Any, TypedDict

    from tenuto.core.items import PlannedItem

    class Move(TypedDict):
        """One item that could not stay where the plan has it."""

        item: str
        from_wave: int
        to_wave: int
        because: list[str]  # the dependencies that end only in the wave before

    class Arrangement(TypedDict):
        waves: list[list[str]]  # each in the plan's order; none empty
        numbers: list[int]  # what the plan calls them
        moves: list[Move]
        unwritten: list[str]  # items that the plan gives no wave, where it gives others one


class PlanRefused(Refused):
    """A plan that cannot be carried out. `names` are the ids to blame; the planner gets them as NEEDS_REVISION."""

    def __init__(self, code: str, message: str, names: Sequence[str], hint: str = "", **details: Any) -> None:
        super().__init__(code, message, hint, names=list(names), **details)
        self.names = list(names)


# ---- items -> waves --------------------------------------------------------------------------------


def arrange(items: Sequence[PlannedItem]) -> Arrangement:
    order = in_order(items)
    by_id = {item["id"]: item for item in items}
    anything_written = any(item["wave"] is not None for item in items)
    placed: dict[str, int] = {}
    moves: dict[str, Move] = {}
    for name in order:
        item = by_id[name]
        earliest = 1 + max((placed[before] for before in item["depends_on"]), default=0)
        written = item["wave"]
        placed[name] = max(earliest, written or 1)
        if written is not None and written < earliest:
            because = [before for before in item["depends_on"] if placed[before] == earliest - 1]
            moves[name] = {"item": name, "from_wave": written, "to_wave": earliest, "because": because}
    waves: dict[int, list[str]] = {}
    for item in items:
        waves.setdefault(placed[item["id"]], []).append(item["id"])
    numbers = sorted(waves)
    return {
        "waves": [waves[number] for number in numbers],
        "numbers": numbers,
        "moves": [moves[item["id"]] for item in items if item["id"] in moves],
        "unwritten": [item["id"] for item in items if anything_written and item["wave"] is None],
    }


def in_order(items: Sequence[PlannedItem]) -> list[str]:
    """Every id once, after what it depends on, otherwise as the plan has them; or PlanRefused."""
    by_id = {item["id"]: item for item in items}
    _refuse_twice(items)
    _refuse_unknown(items, by_id)
    open_counts = {item["id"]: len(dict.fromkeys(item["depends_on"])) for item in items}
    after = dependents(items)
    ready = [item["id"] for item in items if not open_counts[item["id"]]]
    order: list[str] = []
    while ready:
        order.extend(ready)
        freed: list[str] = []
        for name in ready:
            for follower in after[name]:
                open_counts[follower] -= 1
                if not open_counts[follower]:
                    freed.append(follower)
        ready = freed
    if len(order) < len(items):
        _refuse_cycle([item for item in items if open_counts[item["id"]]])
    return order


def dependents(items: Sequence[PlannedItem]) -> dict[str, list[str]]:
    """Per item those that wait for it, in the plan's order."""
    after: dict[str, list[str]] = {item["id"]: [] for item in items}
    for item in items:
        for before in dict.fromkeys(item["depends_on"]):
            if before in after:
                after[before].append(item["id"])
    return after


def _refuse_twice(items: Sequence[PlannedItem]) -> None:
    seen: dict[str, int] = {}
    for item in items:
        seen[item["id"]] = seen.get(item["id"], 0) + 1
    twice = [name for name, times in seen.items() if times > 1]
    if twice:
        raise PlanRefused(
            "item-twice",
            f"the plan has more than one item with the id {_listed(twice)}",
            twice,
            "give every item an id of its own",
        )


def _refuse_unknown(items: Sequence[PlannedItem], by_id: Mapping[str, PlannedItem]) -> None:
    missing = {item["id"]: [name for name in item["depends_on"] if name not in by_id] for item in items}
    wrong = [(name, before) for name, unknown in missing.items() for before in unknown]
    if wrong:
        said = "; ".join(f"{name} depends on '{before}'" for name, before in wrong)
        raise PlanRefused(
            "unknown-item",
            f"the plan has no such item: {said}",
            list(dict.fromkeys(before for _, before in wrong)),
            "name an item of this plan, or write 'none'",
            missing={name: unknown for name, unknown in missing.items() if unknown},
        )


def _refuse_cycle(stuck: Sequence[PlannedItem]) -> None:
    """Follow one dependency after the other among the items that never became ready, until one comes back."""
    waiting = {item["id"]: [name for name in item["depends_on"]] for item in stuck}
    path: list[str] = [stuck[0]["id"]]
    while path[-1] not in path[:-1]:
        path.append(next(name for name in waiting[path[-1]] if name in waiting))
    cycle = path[path.index(path[-1]) :]
    raise PlanRefused(
        "cycle",
        f"these items wait for each other: {' -> '.join(cycle)}",
        cycle[:-1],
        "remove one of these dependencies",
        stuck=list(waiting),
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def partition(wave: Sequence[str], cap: int) -> list[list[str]]:
    """Sub-waves of at most `cap`, in the wave's order."""
    if cap < 1:
        raise ValueError(f"a cap of {cap} lets nothing run")
    return [list(wave[start : start + cap]) for start in range(0, len(wave), cap)]


def restrict(waves: Sequence[Sequence[str]], names: Container[str]) -> list[list[str]]:
    """The waves of a whole plan, with only these items: what a fix pass runs keeps its order."""
    kept = [[name for name in wave if name in names] for wave in waves]
    return [wave for wave in kept if wave]


def shared_files(waves: Sequence[Sequence[str]], items: Sequence[PlannedItem]) -> list[tuple[str, list[str]]]:
    """Files that two items of one wave both want to change, with these items."""
    by_id = {item["id"]: item for item in items}
    found: list[tuple[str, list[str]]] = []
    for wave in waves:
        owners: dict[str, list[str]] = {}
        for name in wave:
            for file in dict.fromkeys(file.removeprefix("./") for file in by_id[name]["files"]):
                owners.setdefault(file, []).append(name)
        found.extend((file, names) for file, names in owners.items() if len(names) > 1)
    return found


# ---- what may start now ----------------------------------------------------------------------------


def barrier(
    waves: Sequence[Sequence[str]],
    *,
    done: Container[str],
    running: Container[str],
    failed: Container[str],
    cap: int,
    never_stops: Container[str] = (),
) -> list[str]:
    """The rest of the first sub-wave that has not ended; nothing once a wave with a failure has.

    `failed` holds every item that ended badly or was skipped; of these, `never_stops` stop nothing.
    """
    for wave in waves:
        for group in partition(wave, cap):
            if all(name in done or name in failed for name in group):
                continue
            return [name for name in group if name not in done and name not in failed and name not in running]
        if any(name in failed and name not in never_stops for name in wave):
            return []
    return []


def rolling(
    items: Sequence[PlannedItem],
    *,
    done: Container[str],
    running: Container[str],
    failed: Container[str],
    cap: int,
    never_stops: Container[str] = (),
) -> list[str]:
    """Items whose dependencies are done, the longest chain behind them first, as many as the cap leaves room for.

    `items` may be a part of a plan: what it depends on outside of it must be among `done`.
    """
    room = cap - sum(1 for item in items if item["id"] in running)
    if room < 1:
        return []
    ready = [
        item["id"]
        for item in items
        if item["id"] not in done
        and item["id"] not in running
        and item["id"] not in failed
        and all(before in done or (before in failed and before in never_stops) for before in item["depends_on"])
    ]
    if len(ready) <= room:
        return ready
    chains = chain_lengths(items)
    return sorted(ready, key=lambda name: -chains[name])[:room]


def chain_lengths(items: Sequence[PlannedItem], lengths: Mapping[str, int] | None = None) -> dict[str, int]:
    """Per item how long the longest chain is that it begins, in items or in the lengths given."""
    after = dependents(items)
    chains: dict[str, int] = {}
    # A fix pass runs some items of a plan; what they depend on outside of these lengthens no chain.
    inside: list[PlannedItem] = [
        {**item, "depends_on": [name for name in item["depends_on"] if name in after]} for item in items
    ]
    for name in reversed(in_order(inside)):
        own = 1 if lengths is None else lengths.get(name, 1)
        chains[name] = own + max((chains[follower] for follower in after[name]), default=0)
    return chains


def skipped(items: Sequence[PlannedItem], failed: Sequence[str]) -> list[str]:
    """Everything that depends on a failed item, directly or through others, in the plan's order."""
    lost = dict.fromkeys(_reached(dependents(items), failed))
    return [item["id"] for item in items if item["id"] in lost]


def _reached(after: Mapping[str, Sequence[str]], start: Sequence[str]) -> Iterator[str]:
    waiting, seen = list(start), dict.fromkeys(start)
    while waiting:
        for follower in after.get(waiting.pop(), ()):
            if follower not in seen:
                seen[follower] = None
                waiting.append(follower)
                yield follower
