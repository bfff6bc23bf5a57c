"""Figures over what happened in runs: durations, estimates, savings, retries, cost, and what is usual here.

    spans(run)                      one per attempt that ended; of a run without attempts, one per visit
    figures(run)                    totals over them, and the same per step
    critical_path(run)              the longest chain of attempts that had to wait for each other
    rolling_gain(run, cap)          per waves visit: in waves, rolling, and the difference
    reckoned(run, step, visit, ...) when each item would begin and end under another cap or in another order
    history(runs, pipeline)         per step and role, what attempts of earlier runs used
    forecast(pipeline, bound, past) likely: the median of earlier runs of this pipeline that ended well;
                                    worst: every attempt of the bound, each as dear as the dearest so far

Rule 1: attempts that were started together form a group: one for the members of a cluster, one for each wave. The
estimate for side by side takes the longest of each group (core/times.py has the arithmetic).

Rule 2: a retry is an attempt after the first at the same place in the same visit.

Rule 3: lengths are those that were measured. What another order would have taken is reckoned from them: the same
items, dependencies and cap, and in rolling order the longest chain first, as the engine does it.

Rule 4: a figure that nothing is known about is None, never zero. Nothing here is stored, and no rule asks for it.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterable
from typing import Literal, TypedDict

from tenuto.core import times
from tenuto.core.items import chain_lengths, dependents, partition
from tenuto.core.pipeline.records import Bound, Pipeline, Step
from tenuto.core.records.run import Amounts, Attempt, PlannedItem, Run, Usage
from tenuto.core.status import WELL
from tenuto.core.times import between


class Span(TypedDict):
    name: str
    step: str
    visit: int
    item: str | None
    role: str
    seat: str
    started_at: str
    ended_at: str | None
    duration_ms: int
    status: str
    retries: int
    group: int | None
    wave: int | None
    usage: Usage


class StepFigures(TypedDict):
    step: str
    visits: int
    attempts: int
    retries: int
    duration_ms: int  # what the clock saw, over all its visits
    usage: Amounts


class Figures(TypedDict):
    total_ms: int
    sequential_ms: int
    parallel_ms: int
    savings_ms: int
    savings_percent: int
    attempts: int
    retries: int
    usage: Amounts
    steps: list[StepFigures]


def spans(run: Run) -> list[Span]:
    if not run["attempts"]:
        return _visits(run)
    wave_of = {item: wave["wave"] for wave in run["waves"] for item in wave["items"]}
    numbers: dict[tuple[str, int, int | None], int] = {}
    found: list[Span] = []
    for name, attempt in run["attempts"].items():
        if attempt["ended_at"] is None:
            continue
        wave = wave_of.get(attempt["item"] or "")
        together = attempt["item"] is not None or attempt["extra"].get("parallel", False)
        key = (attempt["step"], attempt["iteration"], wave)
        found.append(
            {
                "name": f"{attempt['role']}:{attempt['item']}" if attempt["item"] else _seat(attempt),
                "step": attempt["step"],
                "visit": attempt["iteration"],
                "item": attempt["item"],
                "role": attempt["role"],
                "seat": attempt["extra"].get("seat", name),
                "started_at": attempt["started_at"],
                "ended_at": attempt["ended_at"],
                "duration_ms": between(attempt["started_at"], attempt["ended_at"]),
                "status": {"completed": "success"}.get(attempt["status"], attempt["status"]),
                "retries": attempt["number"] - 1,
                "group": numbers.setdefault(key, len(numbers) + 1) if together else None,
                "wave": wave,
                "usage": attempt["usage"],
            }
        )
    return found


def _seat(attempt: Attempt) -> str:
    seat = str(attempt["extra"].get("seat", ""))
    return seat if seat and attempt["role"] in seat else f"{attempt['role']}{f' ({seat})' if seat else ''}"


def _visits(run: Run) -> list[Span]:
    ended = [visit for visit in run["visits"] if visit["ended_at"] is not None]
    waves = times.wave_numbers(ended, [wave["items"] for wave in run["waves"]])
    return [
        {
            "name": visit["step"],
            "step": visit["step"].partition(":")[0],
            "visit": visit["iteration"],
            "item": visit["item"],
            "role": "",
            "seat": visit["step"],
            "started_at": visit["started_at"],
            "ended_at": visit["ended_at"],
            "duration_ms": visit["duration_ms"] or 0,
            "status": visit["status"],
            "retries": visit["retries"],
            "group": wave,
            "wave": wave,
            "usage": {},
        }
        for visit, wave in zip(ended, waves, strict=True)
    ]


def figures(run: Run) -> Figures:
    found = spans(run)
    total = times.totals(found, [span["group"] for span in found])
    retries = sum(1 for span in found if span["retries"]) if run["attempts"] else run["retries"]
    return {
        "total_ms": total["total"],
        "sequential_ms": total["sequential"],
        "parallel_ms": total["parallel"],
        "savings_ms": total["savings"],
        "savings_percent": total["percent"],
        "attempts": len(run["attempts"]),
        "retries": retries,
        "usage": _sum(found),
        "steps": _steps(found),
    }


def _steps(found: list[Span]) -> list[StepFigures]:
    by_step: dict[str, list[Span]] = {}
    for span in found:
        by_step.setdefault(span["step"], []).append(span)
    return [
        {
            "step": step,
            "visits": len({span["visit"] for span in mine}),
            "attempts": len(mine),
            "retries": sum(1 for span in mine if span["retries"]),
            "duration_ms": times.elapsed(mine),
            "usage": _sum(mine),
        }
        for step, mine in by_step.items()
    ]


def _sum(found: list[Span]) -> Amounts:
    total: Amounts = {}
    for span in found:
        for unit, amount in span["usage"].items():
            if isinstance(amount, (int, float)) and not isinstance(amount, bool) and unit != "attempts":
                total[unit] = total.get(unit, 0) + amount
    return total


# ---- in another order


class Link(TypedDict):
    name: str
    step: str
    ms: int


class Place(TypedDict):
    """Where the longest chain passes: a place in a visit of a step, with all its tries."""

    step: str
    visit: int
    item: str | None  # of items, the item; then any of its places
    place: str
    ms: int


class Gain(TypedDict):
    step: str
    visit: int
    waves_ms: int
    rolling_ms: int
    saved_ms: int


Order = Literal["waves", "rolling"]


class Slot(TypedDict):
    """An item in an order that is reckoned: when it would begin and end, from the beginning of its visit."""

    item: str
    lane: int
    from_ms: int
    to_ms: int


def critical_path(run: Run) -> list[Link]:
    return [{"name": one["place"], "step": one["step"], "ms": one["ms"]} for one in critical_places(run)]


def critical_places(run: Run) -> list[Place]:
    path: list[Place] = []
    for mine in _by_visit(spans(run)):
        step, visit = mine[0]["step"], mine[0]["visit"]
        if any(span["item"] for span in mine):
            chain = _longest_chain(run, mine)
            path += [{"step": step, "visit": visit, "item": name, "place": name, "ms": ms} for name, ms in chain]
            continue
        lengths = _by_place(mine)
        beside = {span["seat"] for span in mine if span["group"]}
        longest = max((place for place in lengths if place in beside), key=lambda place: lengths[place], default="")
        path += [
            {"step": step, "visit": visit, "item": None, "place": place, "ms": ms}
            for place, ms in lengths.items()
            if place not in beside or place == longest
        ]
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


def _items(run: Run, lengths: dict[str, int]) -> list[PlannedItem]:
    """The items of this visit, as the rules of core/items.py read them."""
    return [
        {
            "id": name,
            "depends_on": [before for before in item["depends_on"] if before in lengths],
            "wave": None,
            "title": name,
            "files": [],
            "agent": None,
            "description": "",
            "effort": None,
            "lines": None,
        }
        for name, item in run["items"].items()
        if name in lengths
    ]


def _longest_chain(run: Run, mine: list[Span]) -> list[tuple[str, int]]:
    lengths = _item_lengths(mine)
    items = _items(run, lengths)
    chains, followers = chain_lengths(items, lengths), dependents(items)
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
        barrier = max((slot["to_ms"] for slot in _in_waves(run, lengths, cap)), default=0)
        rolled = max((slot["to_ms"] for slot in _rolled(_items(run, lengths), lengths, cap)), default=0)
        found.append(
            {
                "step": mine[0]["step"],
                "visit": mine[0]["visit"],
                "waves_ms": barrier,
                "rolling_ms": rolled,
                "saved_ms": max(0, barrier - rolled),
            }
        )
    return found


def reckoned(run: Run, step: str, visit: int, cap: int, order: Order) -> list[Slot]:
    """The items of one visit, with the lengths that were measured, under another cap or in another order."""
    mine = [span for span in spans(run) if (span["step"], span["visit"]) == (step, visit)]
    lengths = _item_lengths(mine)
    if order == "waves":
        return _in_waves(run, lengths, cap)
    return _rolled(_items(run, lengths), lengths, cap)


def _in_waves(run: Run, lengths: dict[str, int], cap: int) -> list[Slot]:
    """Group by group: each of at most `cap` items, and each begins when the one before it has ended."""
    waves = [[name for name in wave["items"] if name in lengths] for wave in run["waves"]]
    known = {name for wave in waves for name in wave}
    slots: list[Slot] = []
    now = 0
    for wave in [*waves, [name for name in lengths if name not in known]]:
        for group in partition(wave, cap):
            slots += [
                {"item": name, "lane": lane, "from_ms": now, "to_ms": now + lengths[name]}
                for lane, name in enumerate(group)
            ]
            now += max(lengths[name] for name in group)
    return slots


def _rolled(items: list[PlannedItem], lengths: dict[str, int], cap: int) -> list[Slot]:
    """Whatever is ready and begins the longest chain comes first; of equal ones, who was ready first."""
    chains, followers = chain_lengths(items), dependents(items)
    waits = {item["id"]: len(dict.fromkeys(item["depends_on"])) for item in items}
    ready = [(-chains[name], at, name) for at, (name, count) in enumerate(waits.items()) if not count]
    heapq.heapify(ready)
    come = len(waits)
    free = list(range(cap))
    running: list[tuple[int, str, int]] = []
    slots: list[Slot] = []
    now = 0
    while ready or running:
        while ready and len(running) < cap:
            _, _, name = heapq.heappop(ready)
            lane = heapq.heappop(free)
            slots.append({"item": name, "lane": lane, "from_ms": now, "to_ms": now + lengths[name]})
            heapq.heappush(running, (now + lengths[name], name, lane))
        now, ended, lane = heapq.heappop(running)
        heapq.heappush(free, lane)
        for follower in followers[ended]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready, (-chains[follower], come, follower))
                come += 1
    return slots


# ---- what is usual


UNITS = ("tokens", "micro_usd", "ms")


class Past(TypedDict):
    runs: int
    attempts: int
    by_step: dict[str, dict[str, list[float]]]  # step -> unit -> one figure per attempt
    by_role: dict[str, dict[str, list[float]]]
    whole: list[dict[str, float]]  # per run of this pipeline that ended well: attempts, tokens, micro_usd, ms


class Forecast(TypedDict):
    runs: int
    attempts: int
    likely: dict[str, float | None]
    worst: dict[str, float | None]
    unknown: list[str]  # steps nothing is known about: the worst case leaves them out


def history(runs: Iterable[Run], pipeline: str) -> Past:
    past: Past = {"runs": 0, "attempts": 0, "by_step": {}, "by_role": {}, "whole": []}
    for run in runs:
        if not run["attempts"]:
            continue
        past["runs"] += 1
        for attempt in run["attempts"].values():
            if attempt["ended_at"] is None:
                continue
            past["attempts"] += 1
            for unit, amount in _used(attempt).items():
                past["by_role"].setdefault(attempt["role"], {}).setdefault(unit, []).append(amount)
                if run["pipeline"]["name"] == pipeline:
                    past["by_step"].setdefault(attempt["step"], {}).setdefault(unit, []).append(amount)
        if run["pipeline"]["name"] == pipeline and run["status"] in WELL:
            past["whole"].append(
                {
                    "attempts": len(run["attempts"]),
                    "ms": run["budget"]["busy_ms"],
                    **{
                        unit: run["budget"]["spent"][unit]
                        for unit in ("tokens", "micro_usd")
                        if unit in run["budget"]["spent"]
                    },
                }
            )
    return past


def _used(attempt: Attempt) -> dict[str, float]:
    used = {"ms": float(between(attempt["started_at"], attempt["ended_at"] or attempt["started_at"]))}
    return used | {unit: attempt["usage"][unit] for unit in ("tokens", "micro_usd") if unit in attempt["usage"]}


def forecast(pipeline: Pipeline, bound: Bound, past: Past) -> Forecast:
    roles = {step["id"]: _roles(step) for step in pipeline["steps"]}
    worst: dict[str, float | None] = {"attempts": bound["attempts"], **dict.fromkeys(UNITS)}
    unknown = [line["step"] for line in bound["steps"] if not _dearest(past, line["step"], roles[line["step"]], "ms")]
    for unit in UNITS:
        each = [(line, _dearest(past, line["step"], roles[line["step"]], unit)) for line in bound["steps"]]
        known = [line["attempts"] * most for line, most in each if most is not None]
        worst[unit] = sum(known) if known else None
    likely: dict[str, float | None] = {}
    for unit in ("attempts", *UNITS):
        amounts = [whole[unit] for whole in past["whole"] if unit in whole]
        likely[unit] = statistics.median(amounts) if amounts else None
    return {"runs": past["runs"], "attempts": past["attempts"], "likely": likely, "worst": worst, "unknown": unknown}


def _dearest(past: Past, step: str, roles: list[str], unit: str) -> float | None:
    """Of this step's own attempts; where it never ran, of its roles in other pipelines."""
    own = past["by_step"].get(step, {}).get(unit, [])
    others = [amount for role in roles for amount in past["by_role"].get(role, {}).get(unit, [])]
    return max(own or others, default=None)


def _roles(step: Step) -> list[str]:
    from tenuto.core.pipeline.check import seats

    return [seat["role"] for seat in seats(step)]
