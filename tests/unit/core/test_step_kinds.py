"""The five kinds of step: what an author may write, what is filled in, and where it is said to be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.by_check import agent, back, checked, problems, wrong


def group(*members: Any, **more: Any) -> dict[str, Any]:
    aggregate: dict[str, Any] = {key: more.pop(key) for key in ("aggregate", "rule", "on") if key in more}
    return {"id": "c", "cluster": {"members": list(members), **more}, **aggregate}


def waves(**more: Any) -> dict[str, Any]:
    between = {"between": more.pop("between")} if "between" in more else {}
    return {"id": "w", "waves": {"plan": "plan.md", "roles": ["worker", "tester"], **more}, **between}


def gate(on: Any = None, **more: Any) -> list[Any]:
    return [agent("a"), {"id": "g", "gate": more, "on": on}]


# ---- every step ------------------------------------------------------------------------------------


def test_a_step_says_what_runs_and_says_it_once() -> None:
    [one] = problems({"id": "a"})
    assert one["message"] == "the step does not say what runs"
    [one] = problems({"id": "a", "agent": "worker", "gate": {}})
    assert one["message"] == "the step has agent and gate" and one["code"] == "one-kind"
    assert wrong({"agent": "worker"}) == [("steps.0", "missing")]
    assert (
        wrong(agent("a", kind="gate")) == [("steps.0.kind", "contradiction")] and wrong(agent("a", kind="agent")) == []
    )


@pytest.mark.parametrize(
    ("number", "phase"),
    [(None, 2), ("3", 3), ("3b", 3), ("1.2", 1), ("x1", 2), ("12345678", 12345678), ("123456789", 2)],
)
def test_the_whole_number_in_a_number_is_its_phase(number: Any, phase: int) -> None:
    step = checked(agent("a"), agent("b", number=number))["b"]
    assert (step["number"], step["phase"]) == (number or "2", phase)


@pytest.mark.parametrize(
    "step",
    [
        {"id": "x", "gate": {}},
        {"id": "x", "action": "prune-memory"},
        {"id": "x", "waves": {"plan": "plan.md", "roles": ["worker"]}},
    ],
)
def test_only_agents_and_groups_are_judged_by_a_rule(step: Any) -> None:
    assert (
        wrong({**step, "rule": "audit"}) == [("steps.0.rule", "unknown-value")]
        and checked({**step, "rule": "word"})["x"]["rule"] == "word"
    )
    assert (
        checked(agent("x", rule="audit"))["x"]["rule"] == "audit"
        and checked({"id": "x", "cluster": ["y"], "rule": "ct"})["x"]["rule"] == "ct"
    )


@pytest.mark.parametrize(
    ("budget", "problem"),
    [
        ({"attempts": 0}, [("attempts", "out-of-range")]),
        ({"tokens": 0}, [("tokens", "out-of-range")]),
        ({"attempt_tokens": 0}, [("attempt_tokens", "out-of-range")]),
        ({"colour": 1}, [("colour", "unknown-key")]),
        ({"attempts": 1, "tokens": 1, "attempt_tokens": 1, "micro_usd": 5, "attempt_micro_usd": 5}, []),
        ({"money": 1, "attempt_money": 1}, []),
        ({"attempt_money": 1, "attempt_micro_usd": 1}, [("attempt_money", "contradiction")]),
    ],
)
def test_a_budget(budget: Any, problem: Any) -> None:
    assert wrong(agent("a", budget=budget)) == [(f"steps.0.budget.{place}", code) for place, code in problem]


# ---- agents and their modes ------------------------------------------------------------------------


def mode(changes: Any, **seat: Any) -> tuple[str, str, str]:
    step = {
        "id": "a",
        "agent": {"role": "worker", **seat},
        "modes": {"again": changes},
        "on": {"ERROR": back({"a": "again"})},
    }
    found = checked(step)["a"]["modes"]["again"]
    return found["role"], found["mode"], found["id"]


@pytest.mark.parametrize(
    ("changes", "seat", "found"),
    [
        (None, {}, ("worker", "again", "worker")),
        ({}, {"id": "own"}, ("worker", "again", "own")),
        ({"role": "worker"}, {"id": "own"}, ("worker", "again", "own")),
        ({"mode": "other"}, {}, ("worker", "other", "worker")),
        ("tester", {"id": "own"}, ("tester", "", "tester")),
        ({"role": "tester", "id": "two"}, {"id": "own"}, ("tester", "", "two")),
        ({"role": "tester", "mode": "slow"}, {"id": "own"}, ("tester", "slow", "own")),
    ],
)
def test_a_mode_is_the_same_agent_unless_it_names_another_role(changes: Any, seat: Any, found: Any) -> None:
    """Which has modes of its own, and no use for the other one's name."""
    assert mode(changes, **seat) == found


def test_what_is_no_mode() -> None:
    assert wrong(agent("a", modes=["again"])) == [("steps.0.modes", "wrong-type")]
    assert wrong(agent("a", modes={"again": 5})) == [("steps.0.modes.again", "wrong-type")]
    assert wrong({"id": "a", "agent": 5, "modes": {"again": "tester"}}) == [("steps.0.agent", "wrong-type")]


# ---- groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (group("x", colour=1), [("cluster.colour", "unknown-key")]),
        ({"id": "c", "cluster": 5}, [("cluster", "wrong-type"), ("cluster", "missing")]),
        (group(), [("cluster", "missing")]),
        (group("x", quorum=2), [("cluster.quorum", "quorum-too-large")]),
        (group("x", "x"), [("cluster", "duplicate")]),
        (group("x", first="x"), [("cluster", "duplicate")]),
        (group("x", rule="audit"), [("rule", "unknown-value")]),
        (group("x", rule="v", aggregate={"role": "s", "rule": "r"}), [("rule", "contradiction")]),
    ],
)
def test_what_is_wrong_with_a_group(step: Any, problem: Any) -> None:
    assert wrong(step) == [(f"steps.0.{place}", code) for place, code in problem]


@pytest.mark.parametrize(
    ("members", "more", "quorum"),
    [
        ("x", {}, 1),
        ("xy", {}, 2),
        ("xyz", {}, 2),
        ("xyz", {"first": "f"}, 0),
        ("xyz", {"quorum": 3}, 3),
        ("xyz", {"quorum": 0}, 0),
    ],
)
def test_how_many_members_are_enough(members: str, more: Any, quorum: int) -> None:
    assert checked(group(*members, **more))["c"]["cluster"]["quorum"] == quorum


@pytest.mark.parametrize(
    ("more", "rule", "may"),
    [
        ({}, "quorum", False),
        ({"rule": "ct"}, "ct", False),
        ({"rule": "v"}, "v", True),
        ({"rule": "r"}, "r", True),
        ({"aggregate": {"role": "s", "rule": "r"}}, "r", True),
        ({"rule": "r", "aggregate": {"role": "s", "rule": "r"}}, "r", True),
        ({"rule": "ct", "aggregate": "s"}, "ct", False),
    ],
)
def test_members_ask_for_a_revision_where_the_rule_hears_it_and_who_sums_up_always_may(
    more: Any, rule: str, may: bool
) -> None:
    step = checked(group("x", "y", first="f", **more))["c"]
    assert step["rule"] == rule and ["NEEDS_REVISION" in seat["verdicts"] for seat in step["cluster"]["members"]] == [
        may,
        may,
    ]
    assert "NEEDS_REVISION" not in step["cluster"]["first"]["verdicts"]
    assert step["aggregate"] is None or "NEEDS_REVISION" in step["aggregate"]["verdicts"]


# ---- waves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (waves(colour=1), [("waves.colour", "unknown-key")]),
        ({"id": "w", "waves": {"plan": "plan.md"}}, [("waves", "missing")]),
        (waves(seats=["x"]), [("waves.roles", "contradiction")]),
        (waves(roles=["x", "x"]), [("waves", "duplicate")]),
        (waves(default="x"), [("waves.default", "unknown-member")]),
        (waves(never_stops="x"), [("waves.never_stops", "unknown-value")]),
        (waves(at_once=0), [("waves.at_once", "out-of-range")]),
        (waves(at_once=1001), [("waves.at_once", "out-of-range")]),
        (waves(max_items=0), [("waves.max_items", "out-of-range")]),
        (waves(limits={"colour": 1}), [("waves.limits.colour", "unknown-key")]),
        (waves(limits={"effort": "Some"}), [("waves.limits.effort", "unknown-value")]),
        (waves(strict=1), [("waves.strict", "wrong-type")]),
        (waves(strict="tests"), [("waves.strict", "unknown-switch")]),
        (waves(between="dance"), [("between", "unknown-value")]),
    ],
)
def test_what_is_wrong_with_waves(step: Any, problem: Any) -> None:
    assert wrong(step) == [(f"steps.0.{place}", code) for place, code in problem]


def test_waves_as_written_and_as_filled_in() -> None:
    plain = checked(waves())["w"]["waves"]
    assert [
        plain[key]
        for key in (
            "default",
            "per_item",
            "order",
            "at_once",
            "on_item_error",
            "no_items",
            "max_items",
            "strict",
            "record",
            "items",
        )
    ] == [
        "worker",
        "named",
        "barrier",
        None,
        "stop",
        "refuse",
        None,
        False,
        "",
        "",
    ]
    assert plain["limits"] == {"files": None, "depends_on": None, "lines": None, "effort": ""}
    limits = {"files": 0, "depends_on": 2, "lines": 300, "effort": "High"}
    full = checked(
        waves(
            at_once=1000,
            max_items=1,
            limits=limits,
            strict="approval",
            default="tester",
            never_stops="tester",
            between="prune-memory",
        )
    )["w"]
    assert [full["waves"][key] for key in ("at_once", "max_items", "limits", "strict", "default")] == [
        1000,
        1,
        limits,
        "approval",
        "tester",
    ]
    assert [seat["weight"] for seat in full["waves"]["seats"]] == ["normal", "never-blocks"] and full["between"] == [
        "prune-memory"
    ]
    assert checked(waves(at_once=1, strict=True))["w"]["waves"]["strict"] is True
    assert checked({"id": "w", "waves": {"plan": "plan.md", "seats": ["worker"]}})["w"]["waves"]["default"] == "worker"


# ---- gates -----------------------------------------------------------------------------------------

BOTH, ALL = ["approve", "reject"], ["approve", "reject", "revise"]


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        (gate(), BOTH),
        (gate(options=BOTH), BOTH),
        (gate(revise="a"), ALL),
        (gate(revise="a", options=["revise", "reject", "approve"]), ALL),
        (gate(revise="a", options=BOTH), BOTH),
        (gate({"NEEDS_REVISION": back("a")}), ALL),
        (gate({"NEEDS_REVISION": back("a")}, options=ALL), ALL),
    ],
)
def test_what_a_gate_offers(steps: Any, options: list[str]) -> None:
    assert checked(*steps)["g"]["gate"]["options"] == options


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (gate(colour=1), [("gate.colour", "unknown-key")]),
        (gate(options=ALL), [("gate.options", "contradiction")]),
        (gate(options=["approve"]), [("gate.options", "contradiction")]),
        (gate(options=["reject"]), [("gate.options", "contradiction")]),
        (gate(options=[*BOTH, "later"]), [("gate.options.2", "unknown-value")]),
        (gate(when="tests"), [("gate.when", "unknown-switch")]),
    ],
)
def test_what_is_wrong_with_a_gate(steps: Any, problem: Any) -> None:
    assert wrong(*steps) == [(f"steps.1.{place}", code) for place, code in problem]


def test_a_gate_says_when_once() -> None:
    assert wrong({"id": "g", "gate": {"when": "approval"}, "when": "approval"}) == [
        ("steps.0.gate.when", "contradiction")
    ]
    for step in ({"id": "g", "gate": {"when": "approval"}}, {"id": "g", "gate": {}, "when": "approval"}):
        assert checked(step)["g"]["when"] == "approval"
    assert checked({"id": "g", "gate": {}})["g"]["gate"] == {
        "name": "g",
        "prompt": "Go on?",
        "show": [],
        "options": BOTH,
        "fields": {},
    }
