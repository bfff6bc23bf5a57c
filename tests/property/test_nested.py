"""Sub-pipelines, drawn at random: what takes the place of a step is a pipeline like any other, and keeps its bound."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.budget import worst_case
from tenuto.core.pipeline import nested
from tenuto.core.pipeline.check import check
from tenuto.core.pipeline.values import View
from tenuto.encoding import dumps
from tests.property.rehearsal import Rehearsal

OUTCOMES: list[Any] = [
    None,
    "fail",
    {"fail": "it is no good"},
    "pause",
    {"go_on": "LATER"},
    {"route": ["FIRST"], "at_most": 2},
]


@st.composite
def pipelines(draw: st.DrawFn, name: str, steps: int = 4) -> Any:
    """Agents, clusters, gates, conditions; ways back and forward among them."""
    count, made = draw(st.integers(1, steps)), []
    for number in range(count):
        kind = draw(st.sampled_from(["agent", "agent", "cluster", "gate"]))
        step: dict[str, Any] = {"id": f"s{number}"}
        retry = {"ERROR": draw(st.integers(0, 2))}
        if kind == "agent":
            step["agent"] = {"role": "w", "out": f"{name}{number}.md", "retry": retry}
        elif kind == "cluster":
            step["cluster"] = {"members": [{"role": "a", "retry": retry}, "b"], "quorum": draw(st.integers(0, 2))}
        else:
            step["gate"] = {"when": draw(st.sampled_from(["always", "approval"]))}
        if kind != "gate":
            step["when"] = draw(st.sampled_from([None, "on", "off", {"outcome": "s0", "is": "DONE"}]))
            followed = {word: draw(st.sampled_from(OUTCOMES)) for word in ("NEEDS_REVISION", "ERROR")}
            step["on"] = {word: placed(outcome, name, number, count) for word, outcome in followed.items()}
        made.append(step)
    return {"name": name, "switches": {"on": True, "off": False}, "steps": made}


def placed(outcome: Any, name: str, here: int, count: int) -> Any:
    """A way forward leads at most to the next step, where there is one: gates are not passed by."""
    if outcome == {"go_on": "LATER"}:
        if name == "parent" and here == 0:
            return {"go_on": "sub"}
        return {"go_on": f"s{here + 1}"} if here + 1 < count else "fail"
    if isinstance(outcome, dict) and "route" in outcome:
        return {**outcome, "route": ["s0"]}
    return outcome


def embedded(parent: Any, child: Any, **words: Any) -> tuple[Any, list[Any]]:
    """The parent with the child between its steps, as `definitions` does it; and what is wrong with that."""
    checked, problems = check(child)
    assert checked is not None, problems
    step = {"id": "sub", "pipeline": child["name"], **words}
    noted: list[Any] = []
    view = View(step, ("steps", 1), noted)
    given = nested.handed_in(view, child["name"], checked["params"])
    found = nested.embed(view, checked, given, 2, View(parent, (), noted))
    if noted:
        return None, noted
    first, *others = parent["steps"]
    steps = [first, *(part["step"] for part in found["parts"]), *others]
    switches = {**parent["switches"], **found["switches"]}
    return check({**parent, "steps": copy.deepcopy(steps), "switches": switches})


WORDS = st.fixed_dictionaries(
    {},
    optional={
        "when": st.sampled_from(["on", {"outcome": "s0", "is": "DONE"}, {"exists": "x.md"}, {"not": "off"}]),
        "on": st.sampled_from([{"ERROR": "pause"}, {"ERROR": {"route": ["s0"], "at_most": 1}}]),
        "documents": st.sampled_from([".", "a/b"]),
        "switches": st.just({"off": True}),
    },
)


@settings(max_examples=200, deadline=None)
@given(pipelines("parent"), pipelines("child"), WORDS)
def test_what_takes_its_place_is_sound_and_checks_to_itself(parent: Any, child: Any, words: Any) -> None:
    pipeline, problems = embedded(parent, child, **words)
    assert pipeline is not None, problems
    again, none = check(pipeline)
    assert none == [] and dumps(again) == dumps(pipeline)
    mine = [step["id"] for step in pipeline["steps"] if step["id"].startswith("sub.")]
    assert [name for name in mine if name != "sub.begin"] == [f"sub.{step['id']}" for step in child["steps"]]


@settings(max_examples=100, deadline=None)
@given(pipelines("parent"), pipelines("child"))
def test_the_bound_of_the_whole_is_that_of_its_parts_where_nothing_of_one_leads_into_the_other(
    parent: Any, child: Any
) -> None:
    """Without a way of the parent that passes through it, a sub-pipeline costs what it costs by itself."""
    for step in parent["steps"]:
        step.pop("on", None)
    pipeline, problems = embedded(parent, child)
    assert pipeline is not None, problems
    alone: Any = check(child)[0]
    outside: Any = check(parent)[0]
    apart = worst_case(alone, 0)["attempts"] + worst_case(outside, 0)["attempts"]
    assert worst_case(pipeline, 0)["attempts"] == apart


@settings(max_examples=150, deadline=None)
@given(pipelines("parent"), pipelines("child"), WORDS, st.integers(0, 2**32))
def test_no_run_through_a_sub_pipeline_makes_more_attempts_than_its_bound(
    parent: Any, child: Any, words: Any, seed: int
) -> None:
    pipeline, problems = embedded(parent, child, **words)
    assert pipeline is not None, problems
    chance = Random(seed)
    run = Rehearsal(pipeline, answer=lambda attempt: chance.choice(["DONE", "NEEDS_REVISION", "ERROR"]))
    run.play(chance.choice)
    assert len(run.run["attempts"]) <= worst_case(pipeline, 0)["attempts"]
