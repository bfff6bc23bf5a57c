"""How long a run took: each rule of core/durations.py."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.times import elapsed, item_of, plain, totals, wave_numbers


def at(seconds: int | None) -> str | None:
    return None if seconds is None else f"2026-11-15T10:00:{seconds:02d}.000Z"


def visit(
    start: int | None, end: int | None, step: str = "s", noted: int | None = None, item: str | None = None
) -> Any:
    spent = noted if noted is not None or start is None or end is None else (end - start) * 1000
    return {"step": step, "item": item, "started_at": at(start), "ended_at": at(end), "duration_ms": spent}


def test_side_by_side_the_longest_counts() -> None:
    visits = [visit(0, 2), visit(2, 6), visit(2, 5), visit(6, 7), visit(7, 9), visit(7, 8)]
    assert totals(visits, [None, 1, 1, None, 2, 2]) == {
        "total": 9000,
        "sequential": 13000,
        "parallel": 9000,
        "savings": 4000,
        "percent": 31,
    }
    assert totals(visits[:2], [None, None]) == {
        "total": 6000,
        "sequential": 6000,
        "parallel": 6000,
        "savings": 0,
        "percent": 0,
    }
    assert totals([], []) == {"total": 0, "sequential": 0, "parallel": 0, "savings": 0, "percent": 0}
    assert totals([visit(None, None)], [1])["sequential"] == totals([visit(None, None)], [1])["parallel"] == 0, (
        "one that nobody timed"
    )
    with pytest.raises(ValueError):
        totals(visits, [None])


@pytest.mark.parametrize(
    ("lengths", "percent"),
    [((100, 100), 50), ((2, 1), 33), ((1, 2), 33), ((3, 5), 38), ((1, 7), 13), ((1, 199), 1), ((1, 200), 0)],
)
def test_a_percentage_is_rounded(lengths: tuple[int, int], percent: int) -> None:
    assert totals([visit(None, None, noted=length) for length in lengths], [1, 1])["percent"] == percent


@pytest.mark.parametrize(
    ("visits", "total"),
    [
        ([visit(0, 5), visit(2, 3)], 5),
        ([visit(0, 5), visit(5, 6)], 6),
        ([visit(0, 1), visit(3, 4)], 2),
        ([visit(3, 4), visit(0, 1)], 2),
        ([visit(0, 5), visit(2, 3), visit(4, 7)], 7),
        ([visit(5, 2, noted=4000)], 4),
        ([visit(None, 2, noted=4000), visit(0, 1)], 5),
        ([visit(0, None, noted=3000)], 3),
        ([visit(2, 2, noted=9000)], 0),
        ([visit(None, None)], 0),
    ],
)
def test_the_clock_sees_the_union_of_the_intervals(visits: Any, total: int) -> None:
    assert elapsed(visits) == total * 1000


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("task-003", "3"),
        ("TASK-3", "3"),
        ("003", "3"),
        ("3", "3"),
        ("0", "0"),
        ("task-0", "0"),
        ("tasks-3", "tasks-3"),
        ("parser", "parser"),
    ],
)
def test_one_item_has_many_names(name: str, bare: str) -> None:
    assert plain(name) == bare


@pytest.mark.parametrize(
    ("one", "item"),
    [
        (visit(0, 1, "coder:task-03"), "3"),
        (visit(0, 1, "coder:TASK-3"), "3"),
        (visit(0, 1, "coder:other"), ""),
        (visit(0, 1, "coder"), ""),
        (visit(0, 1, "task-3"), ""),
        (visit(0, 1, "coder:task-3", item="07"), "7"),
        (visit(0, 1, "coder", item="task-2"), "2"),
    ],
)
def test_the_item_that_a_visit_was_for(one: Any, item: str) -> None:
    assert item_of(one) == item


def test_planned_waves_number_the_visits() -> None:
    visits = [
        visit(0, 1, "plan"),
        visit(1, 2, "c:task-1"),
        visit(1, 2, "c:task-02"),
        visit(2, 3, "c", item="3"),
        visit(2, 3, "c:task-9"),
    ]
    assert wave_numbers(visits, [["1", "task-2"], ["3"]]) == [None, 1, 1, 2, None]


def test_without_planned_waves_those_that_overlap_form_one() -> None:
    def numbers(*spans: tuple[int, int], step: str = "c:task-1") -> list[int | None]:
        return wave_numbers([visit(start, end, step) for start, end in spans], [])

    assert numbers((0, 2), (1, 3)) == [1, 1] and numbers((0, 2), (2, 3)) == [None, None] and numbers((0, 1)) == [None]
    assert numbers((0, 9), (1, 2), (3, 4)) == [1, 1, 1], "one that lasts holds them together"
    assert numbers((5, 7), (0, 2), (1, 3), (6, 8)) == [2, 1, 1, 2]
    assert numbers((0, 2), (1, 3), (4, 5), (6, 8), (7, 9)) == [1, 1, None, 2, 2]
    assert numbers((0, 2), (1, 3), step="plan") == [None, None], "only those of items"
    assert wave_numbers([visit(None, 2, "c:task-1"), visit(1, 3, "c:task-2"), visit(1, 3, "c:task-3")], []) == [
        None,
        1,
        1,
    ]
