"""What follows an outcome: what an author may write, what it means, and where it is said to be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.by_check import agent, back, checked, problems, wrong

GROUP = {"id": "c", "cluster": ["x", "y"]}
WAVES = {"id": "w", "waves": {"plan": "plan.md", "roles": ["worker"]}}
AT = "steps.3.on.ERROR"


def error(outcome: Any, **more: Any) -> list[Any]:
    """An agent, a group, waves, and an agent whose ERROR leads to this; and one behind."""
    return [agent("a"), GROUP, WAVES, agent("b", on={"ERROR": outcome}, **more), agent("z")]


def follows(outcome: Any) -> Any:
    return checked(*error(outcome))["b"]["on"]["ERROR"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("halt", {"do": "fail", "reason": ""}),
        ("fail", {"do": "fail", "reason": ""}),
        ({"halt": "why"}, {"do": "fail", "reason": "why"}),
        ({"fail": "why"}, {"do": "fail", "reason": "why"}),
        ({"do": "fail", "reason": "why"}, {"do": "fail", "reason": "why"}),
        ("block", {"do": "block", "reason": ""}),
        ({"block": "why"}, {"do": "block", "reason": "why"}),
        ({"pause": "why", "recommendations": "look"}, {"do": "pause", "reason": "why", "recommendations": ["look"]}),
        ("go_on", {"do": "go_on", "to": "z", "carry": ""}),
        ({"go_on": "z", "carry": "limits"}, {"do": "go_on", "to": "z", "carry": "limits"}),
        ("finish", {"do": "finish", "as": "completed"}),
        (None, {"do": "fail", "reason": ""}),
    ],
)
def test_ways_to_say_what_follows(written: Any, read: Any) -> None:
    assert follows(written) == read


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("route", [(AT, "unknown-value")]),
        ("restart", [(AT, "unknown-value")]),
        ("hold", [(AT, "unknown-value")]),
        ({}, [(AT, "unclear-outcome")]),
        (7, [(AT, "unclear-outcome")]),
        ({"go_on": "z", "pause": "why"}, [(AT, "unclear-outcome")]),
        ({"go_on": "z", "at_most": 1}, [(f"{AT}.at_most", "unknown-key")]),
        ({"pause": "why", "to": "z"}, [(f"{AT}.to", "unknown-key")]),
        ({"go_on": "z", "to": "z"}, [(f"{AT}.go_on", "contradiction")]),
        ({"pause": "a", "reason": "b"}, [(f"{AT}.pause", "contradiction")]),
        ({"do": "jump"}, [(f"{AT}.do", "unknown-value")]),
        ({"go_on": "y"}, [(f"{AT}.go_on", "unknown-step")]),
        ({"go_on": "b"}, [(f"{AT}.go_on", "backward-go-on")]),
        ({"do": "route", "at_most": 1}, [(f"{AT}.route", "missing")]),
        (back("a", at_most=1001), [(f"{AT}.at_most", "out-of-range"), (AT, "unbounded-route")]),
        (back("a", otherwise="fail"), [(f"{AT}.otherwise", "contradiction")]),
        (back("a", because="x"), [(f"{AT}.because", "unknown-member")]),
        (back("nowhere", "z"), [(f"{AT}.route.0", "unknown-step"), (f"{AT}.route.1", "forward-route")]),
        (back("nowhere"), [(f"{AT}.route.0", "unknown-step")]),
        (back("b", "a"), [(f"{AT}.route.0", "contradiction")]),
        (back({"step": "a", "colour": 1}), [(f"{AT}.route.0.colour", "unknown-key")]),
        (back({}), [(f"{AT}.route.0", "wrong-type")]),
        (back({"a": "x", "w": "all"}), [(f"{AT}.route.0", "wrong-type")]),
        (back({3: "x"}), [(f"{AT}.route.0", "wrong-type")]),
        (back({"w": "some"}), [(f"{AT}.route.0.w", "unknown-value")]),
        (back({"c": "only z"}), [(f"{AT}.route.0.c.0", "unknown-value")]),
        (back({"c": "replan"}), [(f"{AT}.route.0.c", "contradiction")]),
        (back({"a": "only x"}), [(f"{AT}.route.0.a", "contradiction")]),
        (back({"step": "a", "items": "all"}), [(f"{AT}.route.0.items", "contradiction")]),
        (back({"step": "w", "mode": "x"}), [(f"{AT}.route.0.mode", "contradiction")]),
        (back({"step": "w", "only": ["x"]}), [(f"{AT}.route.0.only", "contradiction")]),
        (back({"step": "c", "items": "due"}), [(f"{AT}.route.0.items", "contradiction")]),
    ],
)
def test_what_does_not_say_what_follows(written: Any, problem: Any) -> None:
    assert wrong(*error(written)) == problem


def test_outcomes_are_a_mapping_and_said_once() -> None:
    assert wrong(agent("a", on=["ERROR"])) == [("steps.0.on", "wrong-type")]
    assert wrong(agent("a", on={"DESIGN_FLAW": "fail"})) == [("steps.0.on.DESIGN_FLAW", "unknown-key")]
    assert wrong(agent("a", on={"LOW_COVERAGE": "fail"})) == [("steps.0.on.LOW_COVERAGE", "unknown-key")]
    assert wrong(agent("a", on={"NOT_DONE": "fail", "ERROR": None})) == []
    twice = {"id": "g", "gate": {"revise": "a"}, "on": {"NEEDS_REVISION": "fail"}}
    assert wrong(agent("a"), twice) == [("steps.1.gate.revise", "contradiction")]


def test_an_audit_and_a_measured_step_have_outcomes_of_their_own() -> None:
    audit = checked(agent("a", rule="audit"))["a"]["on"]
    assert list(audit) == ["DONE", "NEEDS_REVISION", "ERROR", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE"]
    assert audit["ESCALATE"] == {"do": "pause", "reason": "ESCALATE", "recommendations": []}
    assert list(checked(agent("a", coverage={"threshold": 5}))["a"]["on"]) == [
        "DONE",
        "NEEDS_REVISION",
        "ERROR",
        "LOW_COVERAGE",
    ]


def test_a_step_that_stands_aside_is_reached_by_a_route_alone() -> None:
    aside = (agent("m", aside=True), agent("b", on={"NEEDS_REVISION": back("m")}))
    assert wrong(agent("a", on={"ERROR": {"go_on": "m"}}), *aside) == [("steps.0.on.ERROR.go_on", "contradiction")]
    assert wrong(agent("a", on={"ERROR": back("m")}), agent("m", aside=True)) == [], "wherever it is written"


# ---- legs ------------------------------------------------------------------------------------------


def legs(outcome: Any) -> list[tuple[str, str, str, str]]:
    return [(leg["step"], leg["mode"], "+".join(leg["only"]), leg["items"]) for leg in outcome["route"]]


@pytest.mark.parametrize(
    ("written", "first"),
    [
        ("a", ("a", "", "", "")),
        ({"a": "replan"}, ("a", "replan", "", "")),
        ({"step": "a", "mode": "replan"}, ("a", "replan", "", "")),
        ({"step": "a", "mode": "", "only": [], "items": ""}, ("a", "", "", "")),
        ("c", ("c", "", "", "")),
        ({"c": "only x, y"}, ("c", "", "x+y", "")),
        ({"step": "c", "only": ["y"]}, ("c", "", "y", "")),
        ({"step": "c", "mode": "", "only": "x", "items": ""}, ("c", "", "x", "")),
        ("w", ("w", "", "", "due")),
        ({"w": "failing"}, ("w", "", "", "failing")),
        ({"step": "w", "items": "all", "only": [], "mode": ""}, ("w", "", "", "all")),
        ({"step": "w"}, ("w", "", "", "due")),
    ],
)
def test_a_hop_and_its_manner(written: Any, first: Any) -> None:
    assert legs(follows(back(written)))[0] == first and legs(follows(back(written)))[-1] == ("b", "", "", "")


def test_a_step_may_be_called_like_a_manner() -> None:
    only = {**WAVES, "id": "mode"}
    assert legs(checked(only, agent("b", on={"ERROR": back({"mode": "all"})}))["b"]["on"]["ERROR"])[0] == (
        "mode",
        "",
        "",
        "all",
    )


def test_what_lies_between_is_filled_in_without_what_stands_aside() -> None:
    steps = checked(
        agent("a"),
        agent("n", aside=True),
        agent("b"),
        agent("m", aside=True, on={"ERROR": back("a")}),
        agent("c"),
        agent("d", on={"ERROR": back("a"), "NEEDS_REVISION": back("m", then=back("n", counter="n"))}),
    )
    assert [leg["step"] for leg in steps["d"]["on"]["ERROR"]["route"]] == ["a", "b", "c", "d"]
    assert [leg["step"] for leg in steps["d"]["on"]["NEEDS_REVISION"]["route"]] == ["m", "d"]
    assert [leg["step"] for leg in steps["m"]["on"]["ERROR"]["route"]] == ["a", "b", "m"], (
        "whoever takes it decides again"
    )


@pytest.mark.parametrize(
    ("revise", "first"),
    [
        ("w", "affected"),
        (["w"], "affected"),
        ([{"w": "due"}, "a"], "due"),
        ([{"w": "all"}], "all"),
        ([{"step": "w"}], "due"),
        (["a"], ""),
    ],
)
def test_what_a_person_sends_back_concerns_the_items_that_the_words_are_about(revise: Any, first: str) -> None:
    """Unless the pipeline says which."""
    steps = checked(WAVES, agent("a"), {"id": "g", "gate": {"revise": revise}})
    assert steps["g"]["on"]["NEEDS_REVISION"]["route"][0]["items"] == first


def test_a_restart_is_the_stage_up_to_the_step_that_asks_for_it() -> None:
    again = {"restart": "S", "at_most": 1}
    steps = checked(
        agent("before", stage="EARLIER"),
        agent("a", stage="S"),
        {**WAVES, "stage": "S"},
        agent("n", stage="S", aside=True),
        agent("m", stage="S", aside=True, on={"ERROR": again}),
        agent("b", stage="S", on={"ERROR": again, "NEEDS_REVISION": back("m", then=back("n", counter="n"))}),
        agent("c", stage="S"),
        agent("after", stage="LATER"),
    )
    assert legs(steps["b"]["on"]["ERROR"]) == [("a", "", "", ""), ("w", "", "", "all"), ("b", "", "", "")]
    assert [leg["step"] for leg in steps["m"]["on"]["ERROR"]["route"]] == ["a", "w", "m"], (
        "also where that stands aside"
    )
    assert (steps["b"]["on"]["ERROR"]["counter"], steps["b"]["on"]["ERROR"]["restart"]) == ("restart.S", "S")
    own = checked(agent("a", stage="S"), agent("b", stage="S", on={"ERROR": {**again, "route": ["b"]}}))["b"]["on"][
        "ERROR"
    ]
    assert [leg["step"] for leg in own["route"]] == ["b"], "a route that is written out is that route"


def test_a_stage_that_a_step_is_not_in() -> None:
    [one] = problems(agent("a"), agent("b", stage="X", on={"ERROR": {"restart": "Y", "at_most": 1}}))
    assert (one["path"], one["code"], one["hint"]) == (
        ["steps", 1, "on", "ERROR", "restart"],
        "unknown-stage",
        "did you mean 'X'?",
    )


# ---- routes ----------------------------------------------------------------------------------------


def test_a_route_is_taken_a_thousand_times_at_most() -> None:
    assert follows(back("a", at_most=1000))["at_most"] == 1000 and follows(back("a", at_most=0))["at_most"] == 0


def test_a_route_for_one_member_says_what_follows_for_the_others() -> None:
    def member(**more: Any) -> Any:
        return checked({**GROUP, "on": {"ERROR": back("c", **more)}})["c"]["on"]["ERROR"]

    block, fail = {"do": "block", "reason": ""}, {"do": "fail", "reason": ""}
    assert [member()[key] for key in ("because", "otherwise", "then")] == ["", None, fail]
    assert [member(because="y", then="block")[key] for key in ("because", "otherwise", "then")] == ["y", block, block]
    assert [member(because="y", otherwise="block")[key] for key in ("because", "otherwise", "then")] == [
        "y",
        block,
        fail,
    ]


def test_the_hops_are_handed_what_the_step_wrote() -> None:
    """Of a group, what sums it up; where nobody does, what each of its members wrote."""
    members = [{"id": name, "role": "worker", "out": f"{name}.md"} for name in "xy"]
    group = {"id": "c", "cluster": members, "on": {"ERROR": back("c")}}
    assert checked(group)["c"]["on"]["ERROR"]["with"] == ["x.md", "y.md"]
    assert checked({**group, "aggregate": {"role": "worker", "out": "sum.md"}})["c"]["on"]["ERROR"]["with"] == [
        "sum.md"
    ]
    assert checked({**WAVES, "on": {"ERROR": back("w")}})["w"]["on"]["ERROR"]["with"] == []
    assert checked({**group, "on": {"ERROR": back("c", **{"with": "x.md"})}})["c"]["on"]["ERROR"]["with"] == ["x.md"]
