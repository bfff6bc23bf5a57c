"""What may still be spent: each rule of core/budget.py at its very edge."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core import budget
from tenuto.core.parts import new_run
from tenuto.core.records.action import Shortage
from tests.support.present import present

AT = "2026-11-15T10:00:00.000Z"
LATER = "2026-11-15T10:00:30.000Z"


def run(
    limits: Any = None,
    spent: Any = None,
    reserved: Any = None,
    steps: Any = None,
    busy_ms: int = 0,
    since: str | None = None,
) -> Any:
    made: Any = new_run()
    made["budget"].update(
        limits=limits or {},
        spent=spent or {},
        reserved=reserved or {},
        steps=steps or {},
        busy_ms=busy_ms,
        busy_since=since,
    )
    return made


def account(**more: Any) -> Any:
    return {"limits": {}, "spent": {}, "reserved": {}, "busy_ms": 0, **more}


def figures(tokens: int | None = None, micro_usd: int | None = None) -> Any:
    return {"budget": {"attempt_tokens": tokens, "attempt_micro_usd": micro_usd}, "id": "s"}


def test_an_attempt_sets_aside_itself_and_what_the_step_says() -> None:
    assert budget.reservation(figures(7, 8), run(), figures()) == {"attempts": 1, "tokens": 7, "micro_usd": 8}
    assert budget.reservation(figures(7, 8), run(), figures(5, 6)) == {"attempts": 1, "tokens": 5, "micro_usd": 6}
    assert budget.reservation(figures(), run(), figures(5)) == {"attempts": 1, "tokens": 5}
    assert budget.reservation(figures(), run(), figures()) == {"attempts": 1}


def test_without_a_figure_it_is_the_dearest_so_far_and_at_least_a_twentieth_of_the_limit() -> None:
    made = run({"tokens": 1000})
    assert budget.reservation(figures(), made, figures())["tokens"] == 50
    made["budget"]["dearest"] = {"tokens": 51}
    assert budget.reservation(figures(), made, figures())["tokens"] == 51
    made["budget"]["dearest"] = {"tokens": 49}
    assert budget.reservation(figures(), made, figures())["tokens"] == 50
    assert "micro_usd" not in budget.reservation(figures(), made, figures()), "nobody limits it"
    assert budget.reservation(figures(), run({"tokens": 7}), figures())["tokens"] == 1, "never nothing"
    of_step = run({"tokens": 1000}, steps={"s": account(limits={"tokens": 4000})})
    assert budget.reservation(figures(), of_step, figures())["tokens"] == 200, "the larger share"


@pytest.mark.parametrize(
    ("spent", "reserved", "more", "short"),
    [(6, 3, 0, False), (6, 3, 1, True), (7, 3, 0, True), (6, 4, 0, True), (0, 0, 9, False)],
)
def test_what_is_spent_promised_and_wanted_must_fit_together(spent: int, reserved: int, more: int, short: bool) -> None:
    made = run({"attempts": 10}, {"attempts": spent}, {"attempts": reserved})
    found = budget.shortage(made, "s", {"attempts": 1}, {"attempts": more})
    assert bool(found) is short
    if found:
        assert found == {"unit": "attempts", "step": "", "limit": 10, "held": spent + reserved + more, "wanted": 1}


def test_a_limit_of_a_step_is_its_own() -> None:
    made = run({"attempts": 10}, {"attempts": 1}, steps={"s": account(limits={"attempts": 1}, spent={"attempts": 1})})
    assert present(budget.shortage(made, "s", {"attempts": 1}))["step"] == "s"
    assert budget.shortage(made, "t", {"attempts": 1}) is None
    assert budget.shortage(made, "s", {"tokens": 99}) is None, "nobody limits tokens"


def test_a_limit_that_was_lowered_below_what_is_spent_admits_nothing() -> None:
    assert budget.shortage(run({"tokens": 5}, {"tokens": 6}), "s", {"attempts": 1}) == {
        "unit": "tokens",
        "step": "",
        "limit": 5,
        "held": 6,
        "wanted": 0,
    }


def test_no_limit_and_time_limit_nothing_here() -> None:
    made = run({"attempts": None, "wall_clock": 0, "tokens": 5})
    assert budget.shortage(made, "s", {"attempts": 99}) is None
    assert budget.shortage(made, "s", {"tokens": 5}) is None
    assert present(budget.shortage(made, "s", {"tokens": 6}))["unit"] == "tokens"


@pytest.mark.parametrize(
    ("limits", "used", "untouched"),
    [
        ({"tokens": 9}, {"tokens": 0}, True),
        ({"tokens": 9}, {"tokens": 1}, False),
        ({"tokens": 9}, {}, False),
        ({"tokens": 9}, {"tokens": 0, "micro_usd": 3}, True),
        ({"tokens": 9, "micro_usd": 9}, {"tokens": 0, "micro_usd": 3}, False),
        ({"tokens": None}, {"tokens": 1}, True),
        ({"attempts": 9, "wall_clock": 9}, {"attempts": 1}, True),
        ({}, {"tokens": 1}, True),
    ],
)
def test_what_was_set_aside_is_untouched_while_nothing_that_is_limited_was_used(
    limits: Any, used: Any, untouched: bool
) -> None:
    """What an agent does not tell may be anything. A limit of the step counts like one of the run."""
    assert budget.untouched(run(limits), "s", used) is untouched
    assert budget.untouched(run(steps={"s": account(limits=limits)}), "s", used) is untouched
    assert budget.untouched(run(steps={"t": account(limits=limits)}), "s", used)


def test_the_wall_clock_runs_while_somebody_is_at_work() -> None:
    assert budget.time_left(run(), "s", AT) is None
    assert budget.time_left(run({"wall_clock": 100}, busy_ms=20_000), "s", LATER) == 80_000
    assert budget.time_left(run({"wall_clock": 100}, busy_ms=20_000, since=AT), "s", LATER) == 50_000
    shorter = run({"wall_clock": 100}, steps={"s": account(limits={"wall_clock": 40})}, since=AT)
    assert budget.time_left(shorter, "s", LATER) == 10_000
    assert budget.time_left(shorter, "t", LATER) == 70_000
    longer = run({"wall_clock": 40}, steps={"s": account(limits={"wall_clock": 100})}, since=AT)
    assert budget.time_left(longer, "s", LATER) == 10_000


@pytest.mark.parametrize(("busy", "up"), [(39_999, False), (40_000, True), (40_001, True)])
def test_the_time_is_up_at_its_limit(busy: int, up: bool) -> None:
    found = budget.time_is_up(run({"wall_clock": 40}, busy_ms=busy), "s", AT)
    assert (found is not None) is up
    if found:
        assert found == {"unit": "wall_clock", "step": "", "limit": 40, "held": 40, "wanted": 0}
    assert budget.time_is_up(run(busy_ms=busy), "s", AT) is None
    slow = run(steps={"s": account(limits={"wall_clock": 1}, busy_ms=5000)})
    of_step = present(budget.time_is_up(slow, "s", AT))
    assert (of_step["step"], of_step["held"]) == ("s", 5)


def test_a_shortage_in_words() -> None:
    of_run: Shortage = {"unit": "attempts", "step": "", "limit": 4, "held": 4, "wanted": 1}
    of_step: Shortage = {"unit": "wall_clock", "step": "design", "limit": 60, "held": 61, "wanted": 0}
    assert budget.in_words(of_run) == "the run may use 4 attempts: 4 are used or promised, and the next attempt needs 1"
    assert budget.in_words(of_step) == "step design may use 60 seconds: 61 are used or promised"
    assert (budget.limit_name(of_run), budget.limit_name(of_step)) == ("attempts", "wall_clock@design")


def test_a_limit_that_nobody_could_hold_is_found() -> None:
    from tenuto.knowledge.definitions import load

    pipeline: Any = load("eight-step")
    silent: Any = lambda seat: ()
    assert budget.unmetered(pipeline, {"attempts": 5, "wall_clock": 9}, {}, silent) is None
    assert budget.unmetered(pipeline, {"tokens": 5}, {}, lambda seat: ("tokens",)) is None
    found = present(budget.unmetered(pipeline, {"tokens": 5}, {}, silent))
    assert (found["unit"], found["limit"], found["step"]) == ("tokens", 5, "research")
    of_step = present(budget.unmetered(pipeline, {}, {"design": {"micro_usd": 7}}, lambda seat: ("tokens",)))
    assert (of_step["unit"], of_step["limit"], of_step["step"]) == ("micro_usd", 7, "design")
    others: Any = lambda seat: () if seat["role"] == "r-security" else ("tokens",)
    only_spec = present(budget.unmetered(pipeline, {"tokens": 5}, {}, others))
    assert (only_spec["step"], only_spec["seat"]["role"]) == ("review", "r-security")


def test_the_pipelines_own_limits() -> None:
    budget_of = {
        "attempts": 5,
        "tokens": None,
        "micro_usd": None,
        "wall_clock": 60,
        "attempt_tokens": None,
        "attempt_micro_usd": None,
    }
    none = dict.fromkeys(budget_of)
    pipeline: Any = {
        "budget": budget_of,
        "steps": [{"id": "a", "budget": none}, {"id": "b", "budget": {**none, "tokens": 0}}],
    }
    assert budget.limits_of(pipeline) == ({"attempts": 5, "wall_clock": 60}, {"b": {"tokens": 0}})
