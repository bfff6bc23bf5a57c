"""Durations, savings, critical path, and what another order would have saved: reckoned from what was measured."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.parts import new_run
from tenuto.core.times import iso
from tenuto.metrics import critical_path, figures, forecast, history, rolling_gain

START = 1_763_194_331_000


def attempt(
    step: str, seat: str, begin: int, end: int, *, item: str | None = None, parallel: bool = False, **more: Any
) -> Any:
    """Times in seconds from the start."""
    return {
        "step": step,
        "role": seat.partition("@")[0],
        "agent": "a",
        "task": "",
        "item": item,
        "iteration": 1,
        "number": 1,
        "status": "completed",
        "verdict": "DONE",
        "summary": "",
        "started_at": iso(START + 1000 * begin),
        "ended_at": iso(START + 1000 * end),
        "usage": {},
        "reserved": {},
        "receipt": {},
        "extra": {"seat": seat, "parallel": parallel},
        **more,
    }


def run_of(*attempts: Any, items: Any = None, waves: Any = ()) -> Any:
    run: Any = new_run()
    run["attempts"] = {str(number): one for number, one in enumerate(attempts)}
    run["items"] = {name: {"depends_on": before} for name, before in (items or {}).items()}
    run["waves"] = [{"wave": number, "items": wave} for number, wave in enumerate(waves, 1)]
    return run


CLUSTER = (
    attempt("review", "a", 0, 10, parallel=True),
    attempt("review", "b", 0, 4, parallel=True),
    attempt("review", "b", 4, 8, number=2),
    attempt("review", "sum", 10, 12),
)


def test_members_side_by_side_count_with_the_longest_and_the_rest_is_added() -> None:
    found = figures(run_of(*CLUSTER))
    assert (found["total_ms"], found["sequential_ms"]) == (12_000, 20_000)
    assert found["parallel_ms"] == 10_000 + 4_000 + 2_000
    assert found["retries"] == 1 and found["steps"][0]["attempts"] == 4


def test_the_critical_path_goes_through_the_longest_member_with_its_retries() -> None:
    path = critical_path(run_of(*CLUSTER))
    assert [(link["name"], link["ms"]) for link in path] == [("a", 10_000), ("sum", 2_000)]
    slow = attempt("review", "b", 4, 18, number=2)
    path = critical_path(run_of(CLUSTER[0], CLUSTER[1], slow, CLUSTER[3]))
    assert [(link["name"], link["ms"]) for link in path] == [("b", 18_000), ("sum", 2_000)]


ITEMS = {"1": [], "2": [], "3": ["1"], "4": ["2"]}
LENGTHS = {"1": 1, "2": 9, "3": 9, "4": 1}


def waved(lengths: dict[str, int], items: dict[str, list[str]], waves: list[list[str]]) -> Any:
    return run_of(
        *(attempt("work", f"i@{name}", 0, length, item=name) for name, length in lengths.items()),
        items=items,
        waves=waves,
    )


def test_rolling_order_saves_what_the_barrier_waited_for() -> None:
    """1 is short and 3 behind it long; 2 is long and 4 behind it short: in waves 9 + 9, rolling 10."""
    run = waved(LENGTHS, ITEMS, [["1", "2"], ["3", "4"]])
    (gain,) = rolling_gain(run, 4)
    assert (gain["waves_ms"], gain["rolling_ms"], gain["saved_ms"]) == (18_000, 10_000, 8_000)
    assert [link["name"] for link in critical_path(run)] in (["1", "3"], ["2", "4"])


def test_a_wave_larger_than_the_cap_is_reckoned_in_sub_waves() -> None:
    run = waved(dict.fromkeys("abcdef", 5), {name: [] for name in "abcdef"}, [list("abcdef")])
    (gain,) = rolling_gain(run, 2)
    assert (gain["waves_ms"], gain["rolling_ms"]) == (15_000, 15_000)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.sets(st.integers(0, 8), max_size=3)), min_size=1, max_size=9),
    st.integers(1, 4),
)
def test_rolling_is_never_shorter_than_the_critical_path_nor_longer_than_one_after_the_other(
    plan: Any, cap: int
) -> None:
    items = {str(at): sorted(str(before) for before in befores if before < at) for at, (_, befores) in enumerate(plan)}
    lengths = {str(at): length for at, (length, _) in enumerate(plan)}
    run = waved(lengths, items, [[name] for name in items])
    (gain,) = rolling_gain(run, cap)
    longest = sum(link["ms"] for link in critical_path(run))
    assert longest <= gain["rolling_ms"] <= 1000 * sum(lengths.values()) == gain["waves_ms"]


def test_a_run_driven_by_hand_is_measured_by_its_visits() -> None:
    run: Any = new_run()
    run["retries"] = 2
    for step, item, begin, end in (
        ("architect", None, 0, 5),
        ("implementer:task-1", None, 5, 9),
        ("implementer:task-2", None, 5, 8),
    ):
        run["visits"].append(
            {
                "step": step,
                "item": item,
                "iteration": 1,
                "status": "success",
                "started_at": iso(START + 1000 * begin),
                "ended_at": iso(START + 1000 * end),
                "duration_ms": 1000 * (end - begin),
                "retries": 0,
                "closed": 1,
            }
        )
    found = figures(run)
    assert (found["total_ms"], found["sequential_ms"], found["parallel_ms"], found["retries"]) == (
        9_000,
        12_000,
        9_000,
        2,
    )


def test_what_nothing_is_known_about_is_none_and_not_zero() -> None:
    pipeline: Any = {"steps": [{"id": "review", "kind": "agent", "agent": {"role": "a"}, "modes": {}}]}
    bound: Any = {"attempts": 3, "steps": [{"step": "review", "attempts": 3}]}
    expected = forecast(pipeline, bound, history([], "p"))
    assert expected["worst"] == {"attempts": 3, "tokens": None, "micro_usd": None, "ms": None}
    assert expected["unknown"] == ["review"]
    past = history([run_of(*CLUSTER)], "p")
    assert forecast(pipeline, bound, past)["worst"]["ms"] == 3 * 10_000, "the dearest of the role, in whatever pipeline"
