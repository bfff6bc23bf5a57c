"""The worst case of small pipelines, each counted by hand: one attempt per agent, unless it says more."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.budget import attempts_of, explain, worst_case
from tenuto.core.pipeline.check import check


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "agent": {"role": "worker"}, **more}


def bound(*steps: Any, items: int = 0, given: Any = None, **more: Any) -> Any:
    pipeline, problems = check({"name": "trial", "existing": ["plan.md"], "steps": list(steps), **(given or {})})
    assert pipeline is not None, problems
    return worst_case(pipeline, items, **more)


def tried(found: Any) -> dict[str, int]:
    return {line["step"]: line["attempts"] for line in found["steps"]}


def test_only_steps_that_start_agents_and_ways_that_can_be_taken_are_listed() -> None:
    found = bound(
        step("a"),
        {"id": "g", "gate": {}},
        {"id": "c", "action": "prune-memory"},
        step("b", on={"ERROR": {"route": ["a"], "at_most": 0}}),
    )
    assert tried(found) == {"a": 1, "b": 1} and found["routes"] == {"b.ERROR": 0}
    assert [visit["because"] for line in found["steps"] for visit in line["visits"]] == ["on the way", "on the way"]


def test_the_explanation_names_every_step_and_every_reason() -> None:
    found = bound(step("a", retry={"ERROR": 1}), step("b", transient=0, on={"ERROR": {"route": ["a"], "at_most": 3}}))
    assert explain(found) == [
        "at most 12 attempts (28 starts) for 0 items",
        "  a: 8 attempts",
        "    on the way: 1 x 2",
        "    b.ERROR: 3 x 2",
        "  b: 4 attempts",
        "    on the way: 1 x 1",
        "    b.ERROR: 3 x 1",
    ]


def test_every_kind_of_retry_and_every_question_is_an_attempt() -> None:
    seat: Any = {"retry": {"ERROR": 1, "NEEDS_REVISION": 20, "LOST": 300}, "questions": 4000}
    assert (attempts_of(seat), attempts_of(seat, losses=True)) == (4022, 4322)


@pytest.mark.parametrize(
    ("switches", "listed"), [(None, "abc"), ({"tests": True}, "abc"), ({"tests": False}, "ac"), ({}, "ac")]
)
def test_a_step_whose_switch_is_off_costs_nothing_and_takes_no_way_back(switches: Any, listed: str) -> None:
    found = bound(
        step("a"),
        step("b", when="tests", on={"ERROR": {"route": ["a"], "at_most": 2}}),
        step("c"),
        given={"switches": {"tests": True}},
        switches=switches,
    )
    assert "".join(tried(found)) == listed
    assert found["attempts"] == (7 if "b" in listed else 2) and found["starts"] == 3 * found["attempts"]


SEATS = [{"role": "quick", "retry": {"ERROR": 1}, "transient": 0}, {"role": "slow", "transient": 9}]


@pytest.mark.parametrize(
    ("more", "items", "most"),
    [
        ({}, 3, (6, 30)),
        ({"per_item": "in-turn"}, 3, (9, 36)),
        ({"per_item": "side-by-side"}, 1, (3, 12)),
        ({}, 0, (0, 0)),
        ({"no_items": "one"}, 0, (2, 10)),
        ({"no_items": "one"}, 3, (6, 30)),
    ],
)
def test_each_item_takes_the_dearest_of_its_agents_or_all(more: Any, items: int, most: tuple[int, int]) -> None:
    """The one that is tried most often is not the one that is restarted most often: neither number may be too small."""
    found = bound({"id": "w", "waves": {"plan": "plan.md", "roles": SEATS, **more}}, items=items)
    assert (found["attempts"], found["starts"]) == most


def test_a_group_is_its_first_its_members_and_who_sums_up_and_a_hop_may_name_some_of_them() -> None:
    group = {
        "first": {"id": "f", "role": "worker", "retry": {"ERROR": 9}},
        "members": [{"id": "x", "role": "worker", "retry": {"ERROR": 2}}, {"id": "y", "role": "worker"}],
    }
    both = {"NEEDS_REVISION": {"route": [{"c": "only x"}], "at_most": 1}, "ERROR": {"route": ["c"], "at_most": 2}}
    [line] = bound({"id": "c", "cluster": group, "aggregate": "summer", "on": both})["steps"]
    assert [(visit["because"], visit["times"], visit["attempts"]) for visit in line["visits"]] == [
        ("on the way", 1, 15),
        ("c.NEEDS_REVISION", 1, 4),
        ("c.ERROR", 2, 15),
    ]
    assert tried(bound({"id": "c", "cluster": ["x", "y"]})) == {"c": 2}


def test_of_two_ways_forward_the_one_with_more_attempts_and_the_one_with_more_starts_count() -> None:
    """`a` goes on to `b`, or past it to `c`; both end at `d`."""
    ways = (
        step("a", on={"DONE": {"go_on": "b"}, "ERROR": {"go_on": "c"}}),
        step("b", retry={"ERROR": 4}, transient=0, on={"DONE": {"go_on": "d"}}),
        step("c", transient=9),
        step("d"),
    )
    found = bound(*ways)
    assert tried(found) == {"a": 1, "b": 5, "c": 0, "d": 1}
    assert {line["step"]: line["starts"] for line in found["steps"]} == {"a": 3, "b": 0, "c": 10, "d": 3}
    assert (found["attempts"], found["starts"]) == (7, 16)


def test_of_ways_back_that_share_a_counter_the_dearest_counts() -> None:
    back = {"at_most": 2, "counter": "again"}
    found = bound(
        step("work", on={"ERROR": {"route": ["zeal"], **back}, "NEEDS_REVISION": {"route": ["care"], **back}}),
        step("care", aside=True, retry={"ERROR": 3}),
        step("zeal", aside=True),
    )
    assert tried(found) == {"work": 3, "care": 8}


def test_a_hop_that_goes_on_drops_the_hops_before_its_target() -> None:
    """The way back leads through a, b, c and d; from `a` it may go on to `c`, which is no more than that."""
    found = bound(
        step("a", on={"ERROR": {"go_on": "c"}}),
        step("b"),
        step("c"),
        step("d", on={"ERROR": {"route": ["a"], "at_most": 1}}),
    )
    assert tried(found) == {"a": 2, "b": 2, "c": 2, "d": 2}


def test_a_hop_that_is_gone_on_to_runs_as_that_hop() -> None:
    """In the mode that the way back names, and not once more without."""
    quick = step("b", retry={"ERROR": 5}, modes={"quick": {"retry": {}}})
    found = bound(
        step("a", on={"ERROR": {"go_on": "b"}}),
        quick,
        step("d", on={"ERROR": {"route": ["a", {"b": "quick"}], "at_most": 1}}),
    )
    assert tried(found) == {"a": 2, "b": 7, "d": 2}


def test_what_follows_a_way_back_is_counted_on_the_way_alone() -> None:
    """`b`, which took it, decides again: to go on from there is what would have come anyway."""
    found = bound(
        step("a"), step("b", on={"ERROR": {"route": ["a"], "at_most": 1}, "NEEDS_REVISION": {"go_on": "c"}}), step("c")
    )
    assert tried(found) == {"a": 2, "b": 2, "c": 1}


def test_a_hop_that_goes_on_may_visit_steps_that_are_no_hops() -> None:
    """The way back leads from a to d; `a` may go on to `b`, and that to `c`."""
    found = bound(
        step("a", on={"ERROR": {"go_on": "b"}}),
        step("b", on={"ERROR": {"go_on": "c"}}),
        step("c"),
        step("d", on={"ERROR": {"route": ["a", "d"], "at_most": 1}}),
    )
    assert tried(found) == {"a": 2, "b": 2, "c": 2, "d": 2}


def test_a_hop_that_is_done_leads_to_the_next_hop_and_nowhere_else() -> None:
    found = bound(
        step("a", on={"DONE": {"go_on": "b"}}),
        step("b"),
        step("c"),
        step("d", on={"ERROR": {"route": ["a", "d"], "at_most": 1}}),
    )
    assert tried(found) == {"a": 2, "b": 1, "c": 1, "d": 2}


def test_a_hop_that_goes_on_behind_the_last_hop_is_counted_too() -> None:
    found = bound(
        step("a", on={"ERROR": {"go_on": "e"}}),
        step("d", on={"ERROR": {"route": ["a"], "at_most": 1}}),
        step("e", retry={"ERROR": 1}),
    )
    assert tried(found) == {"a": 2, "d": 1, "e": 4}


def test_a_counter_is_used_up_once_more_for_each_time_that_any_way_resets_it() -> None:
    again = {"route": ["b"], "at_most": 3, "counter": "all"}
    found = bound(
        step("a", on={"ERROR": {"route": ["a"], "at_most": 2, "counter": "own"}}),
        step("b", on={"ERROR": {**again, "resets": ["own"]}, "NEEDS_REVISION": again}),
    )
    assert found["routes"] == {"own": 8, "all": 3}
