"""What all runs together may spend: what is spent, what is set aside, and what the next attempt sets aside fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.parts import new_attempt
from tenuto.core.queue.day import nothing, shortage, stricter, together, used

if TYPE_CHECKING:
    from tenuto.core.queue.day import Budget

NOON, TODAY = "2026-11-19T12:00:00.000Z", 1_795_046_400_000  # 2026-11-19T00:00Z


def attempt(status: str = "completed", ended: str | None = NOON, reserved: Any = None, **usage: float) -> Any:
    made: Any = new_attempt("write", "designer", NOON)
    return {**made, "status": status, "ended_at": ended, "usage": usage, "reserved": reserved or {"attempts": 1}}


def per_day(**limits: int) -> Budget:
    return {"per_day": {**limits}, "ever": {}}


def test_an_attempt_counts_in_the_day_in_which_it_ends_and_one_under_way_counts_today() -> None:
    before = attempt(ended="2026-11-18T23:59:59.000Z", micro_usd=7)
    found = used([before, attempt(micro_usd=5), attempt("running", None)], TODAY)
    assert found["spent"] == {"attempts": 1, "micro_usd": 5} and found["set_aside"] == {"attempts": 1}
    assert used([before], 0)["spent"] == {"attempts": 1, "micro_usd": 7}


def test_the_limit_holds_whatever_those_under_way_report() -> None:
    day = used([attempt("running", None), attempt("running", None)], TODAY)
    assert shortage(per_day(attempts=3), day, day, [{"attempts": 1}]) is None
    assert shortage(per_day(attempts=3), day, day, [{"attempts": 1}, {"attempts": 1}]) is not None


def test_what_sets_nothing_aside_counts_as_the_dearest_and_at_least_as_a_twentieth() -> None:
    day = used([attempt("running", None)], TODAY)
    assert shortage(per_day(micro_usd=100), day, day, [{}]) is None, "5 and 5"
    dear = used([attempt(micro_usd=60), attempt("running", None)], TODAY)
    short = shortage(per_day(micro_usd=100), dear, dear, [{}])
    assert short is not None and (short["held"], short["wanted"]) == (120, 60)


def test_a_lost_attempt_counts_as_what_was_set_aside_for_it() -> None:
    lost = used([attempt("lost", NOON, {"attempts": 1, "micro_usd": 40})], TODAY)
    assert shortage(per_day(micro_usd=50), lost, lost, [{"micro_usd": 20}]) is not None


def test_of_two_budgets_the_lower_limit_counts() -> None:
    mine: Budget = {"per_day": {"attempts": 5}, "ever": {"tokens": 9}}
    assert stricter(mine, per_day(attempts=7, tokens=3)) == {
        "per_day": {"attempts": 5, "tokens": 3},
        "ever": {"tokens": 9},
    }


AMOUNT = st.integers(0, 50)


@given(st.lists(st.tuples(AMOUNT, AMOUNT)), st.integers(1, 200))
def test_no_order_of_answers_passes_the_limit_where_nobody_uses_more_than_was_set_aside(
    asked: list[tuple[int, int]], limit: int
) -> None:
    """Each attempt sets something aside and uses at most that; admitted one after the other, all of them fit."""
    attempts: list[Any] = []
    for reserved, uses in asked:
        known = together([used(attempts, TODAY), nothing()])
        if shortage(per_day(micro_usd=limit), known, known, [{"micro_usd": reserved}]) is None:
            attempts.append(attempt("completed", NOON, {"micro_usd": reserved}, micro_usd=min(uses, reserved)))
            attempts.append(attempt("running", None, {"micro_usd": 0}))
    assert used(attempts, TODAY)["spent"].get("micro_usd", 0) <= limit
