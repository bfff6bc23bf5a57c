"""How long a run took, how long it would have taken one thing after the other, and what side by side saved.

    totals(visits, groups)      total, sequential, parallel, savings, percent
    wave_numbers(visits, waves) which wave each visit belongs to, from 1; None outside waves

A visit is one that has ended, or any dict with step, item, started_at, ended_at and duration_ms.

Rule 1: sequential is the sum of all durations; parallel takes of each wave the longest and adds the rest;
savings is the difference. Total is what the clock saw: the union of the intervals.

Rule 2: `<role>:task-N` belongs to item N's wave. Without planned waves, `:task-` visits that overlap form one.

Rule 3: a time that is no time, or runs backwards, is not used; the duration that was noted is.
"""

from __future__ import annotations

from tenuto.core.times import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypedDict

    Visit = Mapping[str, Any]

    class Totals(TypedDict):
        total: int
        sequential: int
        parallel: int
        savings: int
        percent: int


def totals(visits: Sequence[Visit], groups: Sequence[int | None]) -> Totals:
    sequential = parallel = 0
    longest: dict[int, int] = {}
    for visit, wave in zip(visits, groups, strict=True):
        duration = visit["duration_ms"] or 0
        sequential += duration
        if wave is None:
            parallel += duration
        else:
            longest[wave] = max(longest.get(wave, 0), duration)
    parallel += sum(longest.values())
    savings = sequential - parallel
    return {
        "total": elapsed(visits), "sequential": sequential, "parallel": parallel, "savings": savings,
        "percent": (200 * savings + sequential) // (2 * sequential) if sequential else 0,
    }  # fmt: skip


def elapsed(visits: Sequence[Visit]) -> int:
    """The union of the intervals; a visit without one counts by its duration."""
    total, until = 0, -1
    intervals = []
    for visit in visits:
        span = _interval(visit)
        if span is None:
            total += visit["duration_ms"] or 0
        else:
            intervals.append(span)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def wave_numbers(visits: Sequence[Visit], waves: Sequence[Sequence[str]]) -> list[int | None]:
    wave_of = {plain(item): number for number, items in enumerate(waves, 1) for item in items}
    items = [item_of(visit) for visit in visits]
    if wave_of:
        return [wave_of.get(item) if item else None for item in items]
    return _overlapping(visits, items)


def item_of(visit: Visit) -> str:
    """The item a visit was for, without prefix and leading zeros; empty when it was for none."""
    if visit.get("item"):
        return plain(str(visit["item"]))
    _, colon, rest = visit["step"].partition(":")
    return plain(rest) if colon and rest[:5].lower() == "task-" else ""


def plain(item: str) -> str:
    """`task-003`, `003` and `3` are one item."""
    bare = item[5:] if item[:5].lower() == "task-" else item
    return bare.lstrip("0") or bare


def _overlapping(visits: Sequence[Visit], items: Sequence[str]) -> list[int | None]:
    numbers: list[int | None] = [None] * len(visits)
    spans = [(span, at) for at, visit in enumerate(visits) if items[at] and (span := _interval(visit)) is not None]
    group: list[int] = []
    number, until = 0, -1
    for (start, end), at in sorted(spans):
        if start >= until:
            number += _number_group(numbers, group, number + 1)
            group = []
        group.append(at)
        until = max(until, end)
    _number_group(numbers, group, number + 1)
    return numbers


def _number_group(numbers: list[int | None], group: list[int], number: int) -> int:
    """A visit that overlaps no other is no wave."""
    if len(group) < 2:
        return 0
    for at in group:
        numbers[at] = number
    return 1


def _interval(visit: Visit) -> tuple[int, int] | None:
    start, end = milliseconds(visit["started_at"]), milliseconds(visit["ended_at"])
    return (start, end) if start is not None and end is not None and end >= start else None
