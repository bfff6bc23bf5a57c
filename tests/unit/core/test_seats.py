"""An agent's place in a step: what an author may write there, what it means, and where it is said to be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.by_check import agent, checked, wrong

AT = "steps.0.agent"


def seat(where: Any = None, **more: Any) -> Any:
    return checked({"id": "a", "agent": {"role": "worker", **more}, **(where or {})})["a"]["agent"]


def wave_seat(**more: Any) -> Any:
    [found] = checked({"id": "w", "waves": {"plan": "plan.md", "roles": [{"role": "worker", **more}]}})["w"]["waves"][
        "seats"
    ]
    return found


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ([1], [(AT, "wrong-type")]),
        ({}, [(AT, "missing")]),
        ({"role": ""}, [(AT, "missing")]),
        ({"role": "worker", "colour": 1}, [(f"{AT}.colour", "unknown-key")]),
        ({"role": "worker", "transient": 11}, [(f"{AT}.transient", "out-of-range")]),
        ({"role": "worker", "retry": {"ERROR": 101}}, [(f"{AT}.retry.ERROR", "out-of-range")]),
        ({"role": "worker", "retry": {"DONE": 1}}, [(f"{AT}.retry.DONE", "unknown-key")]),
        ({"role": "worker", "questions": 101}, [(f"{AT}.questions", "out-of-range")]),
        ({"role": "worker", "question": "often"}, [(f"{AT}.question", "wrong-type")]),
        ({"role": "worker", "question": True, "questions": 2}, [(f"{AT}.question", "contradiction")]),
        ({"role": "worker", "verdicts": ["DONE", "FINE", "ERROR"]}, [(f"{AT}.verdicts.1", "unknown-value")]),
        ({"role": "worker", "verdicts": ["DONE"]}, [(f"{AT}.verdicts", "contradiction")]),
        ({"role": "worker", "verdicts": ["ERROR"]}, [(f"{AT}.verdicts", "contradiction")]),
        ({"role": "worker", "context": "weather"}, [(f"{AT}.context", "unknown-value")]),
        ({"role": "worker", "retry": {"NEEDS_REVISION": 1}}, [(AT, "contradiction")]),
        ({"role": "worker", "append_only": "x.md"}, [(f"{AT}.append_only", "contradiction")]),
        ({"role": "worker", "out": "x.md", "optional": "x.md"}, [(f"{AT}.optional", "contradiction")]),
        ({"role": "worker", "weight": "heavy"}, [(f"{AT}.weight", "unknown-value")]),
        ({"role": "worker", "checks": [5]}, [(f"{AT}.checks.0", "wrong-type"), (f"{AT}.checks.0", "missing")]),
        ({"role": "worker", "checks": {"run": "make"}}, [(f"{AT}.checks", "missing")]),
        ({"role": "worker", "checks": [{"name": "t", "when": 1}]}, [(f"{AT}.checks.0.when", "unknown-key")]),
        ({"role": "worker", "checks": {"name": "t", "time_limit": 0}}, [(f"{AT}.checks.time_limit", "out-of-range")]),
    ],
)
def test_what_is_wrong_with_an_agent_is_said_at_its_place_and_once(written: Any, problem: Any) -> None:
    assert wrong({"id": "a", "agent": written}) == problem


def test_what_is_left_out_is_filled_in() -> None:
    plain = seat()
    assert (
        plain["id"],
        plain["transient"],
        plain["time_limit"],
        plain["questions"],
        plain["touches"],
        plain["context"],
    ) == ("worker", 2, None, 0, [], [])
    assert (plain["retry"], plain["verdicts"], plain["memory"], plain["weight"]) == (
        {"ERROR": 0, "NEEDS_REVISION": 0, "LOST": 0},
        ["DONE", "ERROR"],
        "read",
        "normal",
    )
    assert seat(focus="impact")["id"] == "worker-impact" and seat(focus="impact", id="own")["id"] == "own"
    assert seat(focus="what breaks, and where")["id"] == "worker"  # a sentence is no name
    most = seat(transient=10, retry={"ERROR": 100, "LOST": 1}, questions=100)
    assert (most["transient"], most["retry"], most["questions"]) == (
        10,
        {"ERROR": 100, "NEEDS_REVISION": 0, "LOST": 1},
        100,
    )


@pytest.mark.parametrize("name", ["a", "A-b_c.d:e", "Ä1", "x" * 100])
def test_a_name(name: str) -> None:
    assert seat(id=name)["id"] == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "a\n", "x" * 101])
def test_no_name(name: str) -> None:
    assert wrong({"id": "a", "agent": {"role": "worker", "id": name}}) == [(f"{AT}.id", "bad-id")]
    assert wrong(agent(name)) == [("steps.0.id", "bad-id")]


@pytest.mark.parametrize(
    ("layers", "often"),
    [
        ({}, 0),
        ({"seat": {"question": True}}, 3),
        ({"seat": {"question": False}}, 0),
        ({"seat": {"questions": 1}}, 1),
        ({"step": {"question": True}}, 3),
        ({"step": {"questions": 5}}, 5),
        ({"seat": {"question": False}, "step": {"questions": 5}}, 0),
        ({"seat": {"questions": 0}, "step": {"question": True}}, 0),
        ({"step": {"questions": 5}, "top": {"question": True}}, 5),
        ({"top": {"questions": 7}}, 7),
    ],
)
def test_how_often_an_agent_may_ask(layers: Any, often: int) -> None:
    steps = checked(
        {"id": "a", "agent": {"role": "worker", **layers.get("seat", {})}, **layers.get("step", {})},
        defaults=layers.get("top"),
    )
    assert steps["a"]["agent"]["questions"] == often


def test_a_check_is_a_name_or_more() -> None:
    assert seat(checks=["tests", {"name": "lint", "run": "make lint", "time_limit": "2m"}])["checks"] == [
        {"name": "tests", "run": "", "time_limit": None},
        {"name": "lint", "run": "make lint", "time_limit": 120},
    ]


def test_documents_that_everybody_reads_come_first_and_once() -> None:
    found = checked({"id": "a", "agent": {"role": "worker", "in": ["plan.md", "given.md"]}}, given=["given.md"])
    assert found["a"]["agent"]["in"] == ["given.md", "plan.md"]


def test_who_works_on_items_gets_its_item_and_may_change_its_files() -> None:
    assert (wave_seat()["context"], wave_seat()["touches"]) == (["item"], ["@item"])
    assert wave_seat(context=["git-diff"])["context"] == ["item", "git-diff"] and wave_seat(
        context=["git-diff", "item"]
    )["context"] == ["git-diff", "item"]
    assert (
        wave_seat(touches=["src/**"])["touches"] == ["src/**"] == seat(touches="src/**")["touches"]
        and wave_seat(touches=[])["touches"] == []
    )
    assert seat(context=["git-diff"])["context"] == ["git-diff"]


@pytest.mark.parametrize(
    ("more", "may"),
    [
        ({}, False),
        ({"on": {"ERROR": "fail"}}, False),
        ({"on": {"NEEDS_REVISION": "fail"}}, True),
        ({"on": {"NOT_DONE": "fail"}}, True),
        ({"rule": "audit"}, True),
        ({"review": {}}, True),
    ],
)
def test_an_agent_may_ask_for_a_revision_where_something_follows_from_it(more: Any, may: bool) -> None:
    assert ("NEEDS_REVISION" in seat(more)["verdicts"]) is may
    assert seat(more, verdicts=["ERROR", "NEEDS_REVISION", "DONE"])["verdicts"] == [
        "DONE",
        "NEEDS_REVISION",
        "ERROR",
    ], "or where it is said"


def test_what_fits_together() -> None:
    assert seat(memory="write")["memory"] == "write", "alone it may write"
    assert seat({"on": {"NEEDS_REVISION": "fail"}}, retry={"NEEDS_REVISION": 2})["retry"]["NEEDS_REVISION"] == 2
    assert (
        seat(out="x.md", append_only="x.md")["append_only"]
        == ["x.md"]
        == seat(optional="x.md", append_only="x.md")["append_only"]
    )
    for beside in (
        {"cluster": [{"role": "worker", "memory": "write"}]},
        {"waves": {"plan": "plan.md", "roles": [{"role": "worker", "memory": "write"}]}},
    ):
        [(place, code)] = wrong({"id": "a", **beside})
        assert place.endswith(".memory") and code == "contradiction"


def test_a_layer_is_judged_even_where_every_agent_has_its_own() -> None:
    own = {"role": "worker", "transient": 1}
    assert wrong({"id": "a", "agent": own, "transient": "x"}) == [("steps.0.transient", "wrong-type")]
    assert wrong({"id": "a", "cluster": {"members": [own], "transient": "x"}}) == [
        ("steps.0.cluster.transient", "wrong-type")
    ]
    assert wrong({"id": "a", "waves": {"plan": "plan.md", "roles": [own], "transient": "x"}}) == [
        ("steps.0.waves.transient", "wrong-type")
    ]
