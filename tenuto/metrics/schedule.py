"""How long the same work would have taken in another order.

    critical_path(run)         the longest chain of attempts that had to wait for each other
    rolling_gain(run, cap)     per waves visit: in waves, rolling, and the difference

Lengths are those that were measured; what would have been is reckoned, not guessed: the same items, the same
dependencies, the same cap, and in rolling order the longest chain first, as the engine does it.
"""

from __future__ import annotations

import heapq
from typing import Any, TypedDict

from tenuto.core.records import Run
from tenuto.core.waves import chain_lengths, partition
from tenuto.metrics.figures import Span, spans


class Link(TypedDict):
    name: str
    step: str
    ms: int


class Gain(TypedDict):
    step: str
    visit: int
    waves_ms: int
    rolling_ms: int
    saved_ms: int


def critical_path(run: Run) -> list[Link]:
    path: list[Link] = []
    for mine in _by_visit(spans(run)):
        lengths = _by_place(mine)
        step = mine[0]["step"]
        if any(span["item"] for span in mine):
            links = _longest_chain(run, mine)
        else:
            beside = [place for place in lengths if any(s["group"] for s in mine if s["seat"] == place)]
            longest = max(beside, key=lambda place: lengths[place], default="")
            links = [(place, ms) for place, ms in lengths.items() if place not in beside or place == longest]
        path += [{"name": name, "step": step, "ms": ms} for name, ms in links]
    return path


def _by_visit(found: list[Span]) -> list[list[Span]]:
    visits: dict[tuple[str, int], list[Span]] = {}
    for span in found:
        visits.setdefault((span["step"], span["visit"]), []).append(span)
    return list(visits.values())


def _by_place(mine: list[Span]) -> dict[str, int]:
    """How long each place was taken, its retries included."""
    lengths: dict[str, int] = {}
    for span in mine:
        lengths[span["seat"]] = lengths.get(span["seat"], 0) + span["duration_ms"]
    return lengths


def _item_lengths(mine: list[Span]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for span in mine:
        if span["item"]:
            lengths[span["item"]] = lengths.get(span["item"], 0) + span["duration_ms"]
    return lengths


def _items(run: Run, lengths: dict[str, int]) -> list[Any]:
    """The items of this visit, as the rules of core/waves.py read them."""
    return [
        {"id": name, "depends_on": [before for before in run["items"][name]["depends_on"] if before in lengths], "wave": None}
        for name in run["items"] if name in lengths
    ]  # fmt: skip


def _longest_chain(run: Run, mine: list[Span]) -> list[tuple[str, int]]:
    lengths = _item_lengths(mine)
    items = _items(run, lengths)
    chains = chain_lengths(items, lengths)
    followers = {item["id"]: [other["id"] for other in items if item["id"] in other["depends_on"]] for item in items}
    starts = [item["id"] for item in items if not item["depends_on"]]
    path: list[tuple[str, int]] = []
    while starts:
        name = max(starts, key=lambda one: chains[one])
        path.append((name, lengths[name]))
        starts = followers[name]
    return path


def rolling_gain(run: Run, cap: int) -> list[Gain]:
    found: list[Gain] = []
    for mine in _by_visit(spans(run)):
        lengths = _item_lengths(mine)
        if not lengths:
            continue
        items = _items(run, lengths)
        waves = [[name for name in wave["items"] if name in lengths] for wave in run["waves"]]
        left_over = [name for name in lengths if not any(name in wave for wave in waves)]
        barrier = sum(max(lengths[name] for name in group) for wave in [*waves, left_over] for group in partition(wave, cap))
        rolled = _rolled(items, lengths, cap)
        found.append({
            "step": mine[0]["step"], "visit": mine[0]["visit"], "waves_ms": barrier, "rolling_ms": rolled,
            "saved_ms": max(0, barrier - rolled),
        })  # fmt: skip
    return found


def _rolled(items: list[Any], lengths: dict[str, int], cap: int) -> int:
    chains = chain_lengths(items)
    waits = {item["id"]: len(item["depends_on"]) for item in items}
    ready = sorted((name for name, count in waits.items() if not count), key=lambda name: -chains[name])
    running: list[tuple[int, str]] = []
    now = 0
    while ready or running:
        while ready and len(running) < cap:
            name = ready.pop(0)
            heapq.heappush(running, (now + lengths[name], name))
        now, ended = heapq.heappop(running)
        for item in items:
            if ended in item["depends_on"]:
                waits[item["id"]] -= 1
                if not waits[item["id"]]:
                    ready.append(item["id"])
        ready.sort(key=lambda name: -chains[name])
    return now
