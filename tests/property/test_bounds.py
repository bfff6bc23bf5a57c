"""The worst case that `tenuto plan` prints is the worst case."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tenuto.core.budget import explain, worst_case
from tenuto.core.pipeline.check import check
from tenuto.core.pipeline.each import items_of
from tests.property.rehearsal import Rehearsal

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


def attempts(step: Any, leg: Any, items: int) -> int:
    """One visit, counted from the rules and not from bounds.py."""

    def most(seat: Any) -> int:
        return int(1 + seat["retry"]["ERROR"] + seat["retry"]["NEEDS_REVISION"] + seat["questions"])

    match step["kind"]:
        case "agent":
            return most(step["modes"].get(leg["mode"], step["agent"]))
        case "cluster":
            first = [step["cluster"]["first"]] if step["cluster"]["first"] else []
            wanted = [s for s in [*first, *step["cluster"]["members"]] if not leg["only"] or s["id"] in leg["only"]]
            return sum(map(most, wanted)) + (most(step["aggregate"]) if step["aggregate"] else 0)
        case "waves":
            each, listed = [most(seat) for seat in step["waves"]["seats"]], step["waves"]["each"]
            number = listed["max"] if listed else items
            one = max(each) if step["waves"]["per_item"] == "named" else sum(each)
            return int(number * one + (most(listed["seat"]) if listed and listed["seat"] else 0))
    return 0


def dearest(pipeline: Any, items: int = 0) -> int:
    """Follow the rules of pipeline_records.py with every possible answer; the most attempts that any sequence makes."""
    steps = {step["id"]: step for step in pipeline["steps"]}
    order = {name: index for index, name in enumerate(steps)}
    legs: dict[str, Any] = {}  # a leg as a word, so that states can be compared
    memo: dict[Any, int] = {}

    def word_for(leg: Any) -> str:
        word = f"{leg['step']} {leg['mode']} {','.join(leg['only'])}"
        legs[word] = leg
        return word

    plain = {name: word_for({"step": name, "mode": "", "only": []}) for name in steps}

    def visit(word: str, pending: tuple[str, ...], used: tuple[tuple[str, int], ...]) -> int:
        key = (word, pending, used)
        if key not in memo:
            step = steps[legs[word]["step"]]
            answers = [(k, o) for k, o in step["on"].items() if step["kind"] != "gate" or k != "NEEDS_REVISION"]
            memo[key] = attempts(step, legs[word], items) + max(follow(o, k, pending, used) for k, o in answers)
        return memo[key]

    def follow(outcome: Any, answer: str, pending: tuple[str, ...], used: tuple[tuple[str, int], ...]) -> int:
        if answer == "DONE" and pending:
            return visit(pending[0], pending[1:], used)
        if outcome["do"] == "go_on":
            left = pending
            while left and order[legs[left[0]]["step"]] < order[outcome["to"]]:
                left = left[1:]
            if left and legs[left[0]]["step"] == outcome["to"]:
                return visit(left[0], left[1:], used)
            return visit(plain[outcome["to"]], left, used)
        if outcome["do"] != "route":
            return 0
        other = follow(outcome["otherwise"], answer, pending, used) if outcome["otherwise"] else 0
        counts = dict(used)
        if counts.get(outcome["counter"], 0) >= outcome["at_most"]:
            return max(other, follow(outcome["then"], answer, pending, used))
        counts[outcome["counter"]] = counts.get(outcome["counter"], 0) + 1
        for reset in outcome["resets"]:
            counts.pop(reset, None)
        first, *rest = [word_for(leg) for leg in outcome["route"]]
        return max(other, visit(first, (*rest, *pending), tuple(sorted(counts.items()))))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        return visit(plain[pipeline["steps"][0]["id"]], (), ())
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("name", ["eight-step", "feature-dev", "graduate", "orchestrate", "poc", "ticket"])
def test_for_shipped_pipelines_a_run_exists_that_reaches_the_bound(name: str) -> None:
    assert worst_case(shipped(name), 2)["attempts"] == dearest(shipped(name), 2)


@pytest.mark.parametrize("profile", ["minimal", "standard"])
def test_for_staged_pipelines_too_with_restarts_that_reset_their_counters(profile: str) -> None:
    """With smaller bounds than the shipped ones: an exhaustive search over 20 coverage rounds takes too long."""
    raw = YAML(typ="safe", pure=True).load(PIPELINES / f"staged-{profile}.yaml")
    raw["settings"]["reviewPolicy"].update(maxFixAttempts=1, maxStageRestarts=1)
    for step in raw["steps"]:
        if "coverage" in step:
            step["coverage"]["at_most"] = 2
    pipeline, problems = check(raw)
    assert pipeline is not None and problems == []
    assert worst_case(pipeline, 2)["attempts"] == dearest(pipeline, 2)


# An agent, a command, and each of both and of a cluster.
BODIES: list[dict[str, Any]] = [
    {"agent": {"role": "worker"}},
    {"command": ["true"]},
    {"command": {"run": ["true"], "exits": {2: "NEEDS_REVISION"}}},
    {"command": ["true"], "each": {"lines": ["true"], "max": 3}},
    {"agent": "worker", "each": {"files": "*", "max": 2, "on_error": "stop"}},
    {"cluster": ["a", "b"], "aggregate": "c", "each": {"files": "*", "max": 2, "quorum": 1}},
    {"in_turn": ["a", {"command": ["true"]}], "each": {"files": "*", "max": 2}},
    {"cluster": ["a", {"role": "b", "when": {"outcome": "s0", "is": "DONE"}}], "aggregate": "c"},
]
LISTED = {"files": "*", "max": 2}
# What an exhaustive search would take too long for: several seats for every element, gates, questions, results.
MORE: list[dict[str, Any]] = [
    *(
        {"waves": {"each": LISTED, "roles": ["a", "b"], "per_item": how}}
        for how in ("named", "in-turn", "side-by-side")
    ),
    {"waves": {"each": LISTED, "roles": ["a"], "order": "barrier", "on_item_error": "halt"}},
    {"agent": {"role": "a", "questions": 2}},
    {"agent": {"role": "a", "result": {"schema": {"type": "object"}}}},
    {"command": ["true"], "each": {"param": "names", "max": 5}},
    {"gate": {"fields": {"env": {"of": ["a", "b"], "default": "a"}}}},
    {"gate": {"when": {"param": "names", "has": "x"}}},
    {"action": []},
]
WHENS: list[Any] = [
    None,
    None,
    "on",
    "off",
    {"outcome": "s0", "is": "DONE"},
    {"not": {"outcome": "s0", "is": "ERROR"}},
    {"any": [{"exists": "x.md"}, {"param": "names", "has": "y"}]},
]
# Of a route: nothing, or what only the run knows.
BOUND: list[dict[str, Any]] = [{}, {}, {"when": {"outcome": "s0", "is": "DONE"}, "otherwise": "fail"}]


@st.composite
def pipelines(draw: st.DrawFn, jumps: bool, bodies: Sequence[Any] = BODIES) -> Any:
    names = [f"s{index}" for index in range(draw(st.integers(1, 4)))]

    def outcome(here: int, depth: int) -> Any:
        kinds = ["fail", "pause", *(["route", "route"] if depth < 2 else [])]
        kinds += ["go_on"] if jumps and here + 1 < len(names) else []
        kinds += ["restart"] if jumps or here + 1 == len(names) else []  # earlier ones reset what was not yet used
        match draw(st.sampled_from(kinds)):
            case "go_on":
                return {"go_on": draw(st.sampled_from(names[here + 1 :]))}
            case "route":
                legs = draw(st.lists(st.sampled_from(names[: here + 1]), min_size=1, max_size=2))
                legs = [leg for leg in legs[:-1] if leg != names[here]] + legs[-1:]
                bound = draw(st.sampled_from(BOUND)) if jumps else {}
                return {"route": legs, "at_most": draw(st.integers(0, 2)), "then": outcome(here, depth + 1), **bound}
            case "restart":
                return {"restart": "S", "at_most": 2, "then": "block"}
            case word:
                return word

    steps: list[dict[str, Any]] = []
    for here, name in enumerate(names):
        step: dict[str, Any] = {"id": name, "stage": "S", **draw(st.sampled_from(bodies))}
        if bodies is not BODIES and here and "gate" not in step:
            step["when"] = draw(st.sampled_from(WHENS))
        if "gate" not in step and "action" not in step:
            step["retry"] = {"ERROR": draw(st.integers(0, 2))}
            words = draw(st.sets(st.sampled_from(["ERROR", "NEEDS_REVISION"])))
            step["on"] = {word: outcome(here, 0) for word in words}
        steps.append(step)
    params = {"names": {"type": "list", "default": ["x", "z"]}}
    raw = {"name": "trial", "params": params, "switches": {"on": True, "off": False}, "steps": steps}
    pipeline, problems = check(raw)
    # A way past a gate is refused: no pipeline.
    assert problems == [] or any("gate" in step for step in steps), problems
    assume(pipeline is not None)
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


@settings(max_examples=120, deadline=None)
@given(pipelines(jumps=True, bodies=[*BODIES, *MORE]), st.data())
def test_no_simulated_run_makes_more_attempts_than_the_bound(pipeline: Any, data: st.DataObject) -> None:
    """The engine's own rules, with answers and orders that nobody chose well; lists are as long as they may be."""
    play = Simulated(pipeline, data)
    while play.step(lambda options: data.draw(st.sampled_from(options))):
        assert len(play.run["attempts"]) <= worst_case(pipeline, 0)["attempts"]


class Simulated(Rehearsal):
    def __init__(self, pipeline: Any, data: st.DataObject) -> None:
        self.given = pipeline
        super().__init__(pipeline, lambda attempt: data.draw(st.sampled_from(["DONE", "ERROR", "NEEDS_REVISION"])))

    def perform(self, action: Any) -> None:
        if action["act"] != "plan":
            return super().perform(action)
        step = next(one for one in self.pipeline["steps"] if one["id"] == action["step"])
        facts: Any = {"switches": {}, "params": {}, "outcomes": {}, "files": {}}
        if step["waves"]["each"]["param"]:
            elements: Any = self.run["params"].get("names", ["x", "z"])
        else:
            elements = [{"value": f"e{n}"} for n in range(step["waves"]["each"]["max"])]
        self.say({"do": "PlanVisit", "items": items_of(step, elements, facts)["items"]})
        return None
