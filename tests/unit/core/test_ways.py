"""The ways of a pipeline: each outcome with what it leads to, once; and which of them is taken."""

from __future__ import annotations

from typing import Any

from tenuto.core.pipeline import ways
from tenuto.core.pipeline.check import check


def pipeline(*steps: Any, **more: Any) -> Any:
    checked, problems = check({"name": "p", "documents": "docs/{slug}", "steps": list(steps), **more})
    assert not problems, problems
    return checked


def agent(name: str, **more: Any) -> Any:
    return {"id": name, "agent": {"role": "worker", "out": f"{name}.md"}, **more}


def keys(found: Any, written: bool = True) -> list[str]:
    return [way["key"] for way in ways.every(found) if way["written"] or not written]


BACK = {"route": ["a"], "at_most": 2, "then": {"pause": "enough"}}


def test_every_outcome_that_is_written_is_a_way_and_so_is_what_follows_its_bound() -> None:
    found = pipeline(agent("a"), agent("b", on={"NEEDS_REVISION": BACK, "ERROR": {"pause": "no"}}))
    assert keys(found) == ["a.DONE", "b.DONE", "b.NEEDS_REVISION", "b.NEEDS_REVISION.then", "b.ERROR"]
    assert keys(found, written=False) == ["a.DONE", "a.ERROR", *keys(found)[1:]]


def test_outcomes_that_lead_to_the_same_thing_are_one_way() -> None:
    found = pipeline(agent("a"), agent("b", on={"NOT_DONE": BACK}))
    both = next(way for way in ways.every(found) if way["key"] == "b.NEEDS_REVISION")
    assert both["outcomes"] == ["NEEDS_REVISION", "ERROR"]
    assert "b.ERROR" not in keys(found)
    assert ways.key_of(found["steps"][1], "ERROR", "then") == "b.NEEDS_REVISION.then"


def test_what_no_agent_of_the_step_can_answer_is_no_way() -> None:
    assert "a.NEEDS_REVISION" not in keys(pipeline(agent("a", on={"ERROR": {"pause": "no"}})), written=False)


def test_a_gate_has_its_choices_and_a_condition_two_ways() -> None:
    gate = {"id": "ok", "gate": {"when": "approval", "prompt": "?", "options": ["approve", "reject"]}}
    found = pipeline(agent("a"), gate, agent("b", when={"outcome": "a", "is": "DONE"}))
    assert keys(found) == [
        "a.DONE",
        "ok.runs",
        "ok.left-out",
        "ok.approve",
        "ok.reject",
        "b.runs",
        "b.left-out",
        "b.DONE",
    ]


def free(when: Any) -> bool:
    return bool(when == "always")


def test_the_part_that_holds_follows_from_the_counter_and_the_reasons() -> None:
    members = [{"id": one, "role": "worker", "out": f"{one}.md"} for one in ("x", "y")]
    on = {"ERROR": {**BACK, "because": "x", "otherwise": {"pause": "the other"}}}
    found = pipeline(agent("a"), {"id": "c", "cluster": {"members": members, "quorum": 2}, "on": on})
    rule = ways.rule_for(found["steps"][1], "ERROR")
    assert ways.taken(rule, ["x"], {}, free)[0] == ""
    assert ways.taken(rule, ["x"], {"c.ERROR": 1}, free)[0] == ""
    part, leads_to = ways.taken(rule, ["x"], {"c.ERROR": 2}, free)
    assert (part, leads_to["do"]) == ("then", "pause")
    assert ways.taken(rule, ["y"], {}, free)[0] == "otherwise"
    assert {"c.ERROR", "c.ERROR.then", "c.ERROR.otherwise"} <= set(keys(found))


def test_a_way_without_an_otherwise_of_its_own_is_the_then() -> None:
    members = [{"id": one, "role": "worker", "out": f"{one}.md"} for one in ("x", "y")]
    on = {"ERROR": {**BACK, "because": "x"}}
    found = pipeline(agent("a"), {"id": "c", "cluster": {"members": members, "quorum": 2}, "on": on})
    assert ways.taken(ways.rule_for(found["steps"][1], "ERROR"), ["y"], {}, free)[0] == "then"
    assert keys(found)[-2:] == ["c.ERROR", "c.ERROR.then"]


def test_a_route_whose_condition_does_not_hold_is_not_taken_and_counts_nothing() -> None:
    bound = {**BACK, "when": {"param": "hard"}, "otherwise": {"pause": "not worth it"}}
    found = pipeline(agent("a"), agent("b", on={"ERROR": bound}), params={"hard": True})
    rule = ways.rule_for(found["steps"][1], "ERROR")
    assert ways.taken(rule, [], {}, lambda when: True)[0] == ""
    assert ways.taken(rule, [], {}, lambda when: bool(when != {"param": "hard", "is": True}))[0] == "otherwise"
    assert ways.taken(rule, [], {"b.ERROR": 2}, lambda when: True)[0] == "then"
    assert rule["do"] == "route" and ways.in_words(rule) == "where hard is true"
    (way,) = [way for way in ways.every(found) if way["key"] == "b.ERROR.otherwise"]
    assert way["after"] == "not where hard is true"
