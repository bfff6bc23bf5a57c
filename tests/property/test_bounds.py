"""The worst case that `tenuto plan` prints is the worst case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tenuto.core.bounds import explain, worst_case
from tenuto.core.pipeline import check

PIPELINES = Path(__file__).parents[2] / "tenuto" / "pipelines"


def shipped(name: str) -> Any:
    pipeline, problems = check(YAML(typ="safe", pure=True).load(PIPELINES / f"{name}.yaml"))
    assert problems == []
    return pipeline


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_eight_steps_worst_case_is_what_a_person_computes(n: int) -> None:
    """Every retry used, every route taken as often as it may be.

    One visit of each step (a seat that is retried once counts twice):
        research       4 x 2                    =  8
        synthesis, spec, design, planning       =  2 each
        design-review  4 x 2 + 2 (aggregator)   = 10
        implementation n x 1                    =  n
        verification   2 + 3 x 2 + 1            =  9
        review         3 x 2 + 1 + 1            =  8    (r-knowledge and the aggregator are not retried)

    On the way, each step once:                  8 + 4 x 2 + 10 + n + 9 + 8  =  43 +  n
    Design review sends back once:               2 + 10                      =  12
    Verification sends back three times:         3 x (2 + n + 9)             =  33 + 3n
    Review asks for fixes once; the fix fails,
      so verification looks at it first:         n + 9 + 8                   =  17 +  n
    Review escalates to a replan once:           2 + n + 9 + 8               =  19 +  n
    Security fails, is asked once more:          2 + 1                       =   3
    Security fails again, a replan:              2 + n + 9 + 8               =  19 +  n
                                                                             = 146 + 7n
    Each attempt may be started three times.
    """
    bound = worst_case(shipped("eight-step"), n)
    assert bound["attempts"] == 146 + 7 * n
    assert bound["starts"] == 3 * (146 + 7 * n)


def test_attempts_of_unknown_outcome_are_counted_when_asked_for() -> None:
    """Where a lost attempt is made again although a failed one is not: n per wave visit, one per aggregator visit."""
    n = 4
    eight = shipped("eight-step")
    waves, verifications, reviews = 7 * n, 7, 5
    assert worst_case(eight, n, losses=True)["attempts"] == 146 + 7 * n + waves + verifications + reviews


def test_the_explanation_adds_up() -> None:
    bound = worst_case(shipped("eight-step"), 3)
    for step in bound["steps"]:
        assert step["attempts"] == sum(visit["times"] * visit["attempts"] for visit in step["visits"])
    assert explain(bound)[0] == "at most 167 attempts (501 starts) for 3 items"


# ---- an adversary that tries everything -------------------------------------------------------------


def dearest(pipeline: Any) -> int:
    """Follow the rules of pipeline_records.py with every possible answer; the most attempts that any sequence makes."""
    steps = {step["id"]: step for step in pipeline["steps"]}
    order = {name: index for index, name in enumerate(steps)}
    memo: dict[Any, int] = {}

    def visit(name: str, pending: tuple[str, ...], used: tuple[tuple[str, int], ...]) -> int:
        key = (name, pending, used)
        if key not in memo:
            step = steps[name]
            mine = 1 + step["agent"]["retry"]["ERROR"]
            memo[key] = mine + max(follow(o, k, pending, used) for k, o in step["on"].items())
        return memo[key]

    def follow(outcome: Any, word: str, pending: tuple[str, ...], used: tuple[tuple[str, int], ...]) -> int:
        if word == "DONE" and pending:
            return visit(pending[0], pending[1:], used)
        if outcome["do"] == "go_on":
            left = tuple(pending)
            while left and order[left[0]] < order[outcome["to"]]:
                left = left[1:]
            return visit(outcome["to"], left[1:] if left[:1] == (outcome["to"],) else left, used)
        if outcome["do"] != "route":
            return 0
        counts = dict(used)
        if counts.get(outcome["counter"], 0) >= outcome["at_most"]:
            return follow(outcome["then"], word, pending, used)
        counts[outcome["counter"]] = counts.get(outcome["counter"], 0) + 1
        for reset in outcome["resets"]:
            counts.pop(reset, None)
        hops = tuple(hop["step"] for hop in outcome["route"])
        return visit(hops[0], (*hops[1:], *pending), tuple(sorted(counts.items())))

    return visit(pipeline["steps"][0]["id"], (), ())


@st.composite
def pipelines(draw: st.DrawFn, jumps: bool) -> Any:
    names = [f"s{index}" for index in range(draw(st.integers(1, 4)))]

    def outcome(here: int, depth: int) -> Any:
        kinds = ["fail", "pause", *(["route", "route"] if depth < 2 else [])]
        kinds += ["go_on"] if jumps and here + 1 < len(names) else []
        kinds += ["restart"] if jumps or here + 1 == len(names) else []  # earlier ones reset what was not yet used
        match draw(st.sampled_from(kinds)):
            case "go_on":
                return {"go_on": draw(st.sampled_from(names[here + 1 :]))}
            case "route":
                hops = draw(st.lists(st.sampled_from(names[: here + 1]), min_size=1, max_size=2))
                hops = [hop for hop in hops[:-1] if hop != names[here]] + hops[-1:]
                return {"route": hops, "at_most": draw(st.integers(0, 2)), "then": outcome(here, depth + 1)}
            case "restart":
                return {"restart": "S", "at_most": 2, "then": "block"}
            case word:
                return word

    steps = [
        {
            "id": name, "stage": "S", "agent": {"role": "worker"}, "retry": {"ERROR": draw(st.integers(0, 2))},
            "on": {word: outcome(here, 0) for word in draw(st.sets(st.sampled_from(["ERROR", "NEEDS_REVISION"])))},
        }
        for here, name in enumerate(names)
    ]  # fmt: skip
    pipeline, problems = check({"name": "trial", "steps": steps})
    assert problems == []
    return pipeline


@settings(max_examples=150, deadline=None)
@given(pipelines(jumps=False))
def test_without_jumps_the_bound_is_exactly_the_dearest_run(pipeline: Any) -> None:
    """The sum over routes equals what an exhaustive search over all answers finds, resets included."""
    assert worst_case(pipeline, 0)["attempts"] == dearest(pipeline)


@settings(max_examples=150, deadline=None)
@given(pipelines(jumps=True))
def test_no_run_ever_exceeds_the_bound(pipeline: Any) -> None:
    assert dearest(pipeline) <= worst_case(pipeline, 0)["attempts"]
