"""The top of a pipeline: what may stand there, what is filled in, and where it is said to be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.pipeline.check import MOST_STEPS, check, documents_of, stage_gates


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "agent": {"role": "worker", "out": f"{name}.md"}, **more}


def checked(*steps: Any, **top: Any) -> Any:
    found, problems = check({"name": "trial", "steps": list(steps) or [agent("a")], **top})
    assert problems == []
    return found


def wrong(*steps: Any, **top: Any) -> list[tuple[str, str]]:
    """Where and what, of every problem."""
    _, problems = check({"name": "trial", "steps": list(steps) or [agent("a")], **top})
    return [(".".join(map(str, one["path"])), one["code"]) for one in problems]


@pytest.mark.parametrize(
    ("top", "problems"),
    [
        ({"defaults": {"colour": 1}}, [("defaults.colour", "unknown-key")]),
        ({"defaults": [1]}, [("defaults", "wrong-type")]),
        ({"settings": ["a"]}, [("settings", "wrong-type")]),
        ({"setup": "make"}, [("setup", "wrong-type")]),
        ({"setup": {"runs": "make"}}, [("setup.runs", "unknown-key")]),
        ({"switches": ["tests"]}, [("switches", "wrong-type")]),
        ({"switches": {"always": True}}, [("switches.always", "contradiction")]),
        ({"switches": {"tests": "yes"}}, [("switches.tests", "wrong-type")]),
        ({"cap": 1001}, [("cap", "out-of-range")]),
        ({"language": 0}, [("language", "out-of-range")]),
    ],
)
def test_what_is_wrong_at_the_top_is_said_there_and_once(top: Any, problems: Any) -> None:
    assert wrong(**top) == problems


def test_a_wrong_default_is_said_even_where_nobody_inherits_it() -> None:
    own = agent("a", transient=1)
    assert wrong(own, defaults={"transient": "twice"}) == [("defaults.transient", "wrong-type")]
    assert wrong({"id": "g", "gate": {}}, defaults={"retry": 1}) == [("defaults.retry", "wrong-type")]


def test_what_is_left_out_is_filled_in() -> None:
    plain = checked()
    assert (plain["cap"], plain["documents"], plain["workspace"], plain["memory"]) == (
        4,
        "docs/feature/{slug}",
        "shared",
        "none",
    )
    assert (plain["switches"], plain["setup"], plain["settings"]) == ({"approval": False}, {"run": [], "copy": []}, {})
    assert plain["steps"][0]["number"] == "1"
    assert checked(switches={"tests": None, "slow": True})["switches"] == {
        "approval": False,
        "tests": False,
        "slow": True,
    }
    assert checked(cap=1000)["cap"] == 1000 and checked(cap=1)["cap"] == 1


@pytest.mark.parametrize(
    ("written", "read"), [(".", "."), ("./", "."), ("./docs/", "docs"), ("docs/{slug}//", "docs/{slug}")]
)
def test_the_folder_of_the_documents(written: str, read: str) -> None:
    assert checked(documents=written)["documents"] == read


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("/", "bad-path"),
        ("/docs/", "bad-path"),
        ("docs//x", "bad-path"),
        ("", "empty"),
        (["docs"], "wrong-type"),
        ("..", "bad-path"),
    ],
)
def test_no_folder_of_documents(written: Any, code: str) -> None:
    assert wrong(documents=written) == [("documents", code)]


def test_a_pipeline_has_so_many_steps_and_no_more() -> None:
    many = [agent(f"s{number}") for number in range(MOST_STEPS + 1)]
    assert len(checked(*many[:-1])["steps"]) == MOST_STEPS == 500
    assert wrong(*many) == [("steps", "out-of-range")]
    assert wrong(*[{"id": "x"}] * (MOST_STEPS + 1)) == [("steps", "out-of-range")], (
        "nobody reads so many lines about the rest"
    )


def test_a_checked_pipeline_shares_nothing_with_what_was_read_nor_with_itself() -> None:
    settings = {"policy": {"deep": [1]}}
    found = checked(agent("a", on={"NOT_DONE": {"route": ["a"], "at_most": 1}}), settings=settings)
    settings["policy"]["deep"].append(2)
    assert found["settings"] == {"policy": {"deep": [1]}}
    on = found["steps"][0]["on"]
    on["ERROR"]["route"][0]["mode"] = "other"
    assert on["NEEDS_REVISION"]["route"][0]["mode"] == ""


def test_the_stage_that_follows_is_the_next_one_on_the_way() -> None:
    """A step without a stage is in none, and what only a way back leads to follows nothing."""
    steps = (
        agent("a", stage="ONE", evidence_for_next=["a.md"], on={"ERROR": {"route": ["m"], "at_most": 1}}),
        agent("m", stage="MEND", aside=True, evidence_for_next=["m.md"]),
        agent("b"),
        agent("c", stage="TWO", evidence_for_next=["c.md"]),
    )
    assert [(gate["stage"], gate["next"], gate["required"]) for gate in stage_gates(checked(*steps))] == [
        ("ONE", "TWO", ["a.md"]),
        ("TWO", "COMPLETE", ["c.md"]),
    ]


@pytest.mark.parametrize(
    ("switches", "required"),
    [
        (None, ["a.md", "b.md"]),
        ({}, ["a.md", "b.md"]),
        ({"tests": False}, ["a.md"]),
        ({"tests": True}, ["a.md", "b.md"]),
    ],
)
def test_a_step_that_is_left_out_proves_nothing(switches: Any, required: list[str]) -> None:
    """And the last one that does prove something answers for its stage."""
    pipeline = checked(
        agent("a", stage="ONE", evidence_for_next=["a.md"]),
        agent("b", stage="ONE", when="tests", evidence_for_next=["b.md"]),
        agent("c", stage="ONE"),
        agent("d", stage="TWO"),
        agent("e", stage="THREE", evidence_for_next=["e.md"]),
        switches={"tests": True},
    )
    assert stage_gates(pipeline, switches) == [
        {"stage": "ONE", "next": "TWO", "required": required, "step": required[-1][0]},
        {"stage": "THREE", "next": "COMPLETE", "required": ["e.md"], "step": "e"},
    ]


def test_a_run_that_was_led_by_hand_keeps_its_folder() -> None:
    pipeline, run = checked(documents="docs/{slug}/x"), {"id": "dark-mode", "settings": {}}
    told: Any = {**run, "settings": {"documents": "elsewhere"}}
    plain: Any = run
    assert (documents_of(pipeline, plain), documents_of(pipeline, told)) == ("docs/dark-mode/x", "elsewhere")


@pytest.mark.parametrize(
    ("top", "right"),
    [
        ({"mode": "poc", "finish": "poc-complete"}, True),
        ({"mode": "poc"}, True),
        ({"finish": "poc-complete"}, False),
        ({"starts_from": "poc-complete", "finish": "graduated"}, True),
        ({"starts_from": "poc-complete"}, False),
        ({"finish": "graduated"}, False),
    ],
)
def test_a_proof_of_concept_ends_as_one_and_what_graduates_began_as_one(top: Any, right: bool) -> None:
    assert wrong(**top) == ([] if right else [("finish", "contradiction")])
