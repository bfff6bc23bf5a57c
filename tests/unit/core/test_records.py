"""What is written down beside the steps: saying again what holds changes nothing. Each rule of
core/decisions/records.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.by_command import Asked

ENTRY = {"who": "x", "step": "plan", "text": "t", "invalidated": None}


@pytest.mark.parametrize(
    ("first", "other", "event"),
    [
        ({"do": "SetFlags", "flags": {"a": True}}, {"flags": {"a": False}}, "FlagSet"),
        ({"do": "SetFlags", "flags": {"a": None}}, {"flags": {"a": 0}}, "FlagSet"),
        ({"do": "RecordAnswers", "answers": {"a": "x"}}, {"answers": {"a": "y"}}, "AnswersRecorded"),
        ({"do": "RecordCommit", "step": "s", "hash": "h", "message": "m"}, {"hash": "g"}, "CommitRecorded"),
        ({"do": "RecordCommit", "step": "s", "hash": "h", "message": "m"}, {"step": "t"}, "CommitRecorded"),
        (
            {"do": "StoreArtifact", "name": "n", "path": "p", "sha256": "1", "size": 1},
            {"sha256": "2"},
            "ArtifactStored",
        ),
        ({"do": "StoreArtifact", "name": "n", "path": "p", "sha256": "1", "size": 1}, {"path": "q"}, "ArtifactStored"),
        ({"do": "ShowIn", "dialect": "context", "place": {"tree": ""}}, {"place": {"tree": "t"}}, "ShownIn"),
        ({"do": "BindSession", "session": "s"}, {"session": "t"}, "SessionBound"),
        ({"do": "SaveContext", "context": {"a": "x"}, "reason": "r"}, {"context": {"a": "y"}}, "ContextSaved"),
        ({"do": "SaveContext", "context": {"a": "x"}, "reason": "r"}, {"reason": "q"}, "ContextSaved"),
        ({"do": "ChangeDriver", "driver": "engine"}, {"driver": "manual"}, "DriverChanged"),
    ],
    ids=lambda one: one.get("do", "") if isinstance(one, dict) else one,
)
def test_the_same_again_changes_nothing_and_something_else_does(first: Any, other: Any, event: str) -> None:
    asked = Asked()
    assert asked.do(**first) == [event]
    assert asked.do(**first) == []
    assert asked.do(**{**first, **other}) == [event]


def test_nothing_to_say_is_not_said() -> None:
    asked = Asked()
    assert (
        asked.do("SetFlags", flags={})
        == asked.do("ChangeSettings", changes={})
        == asked.do("WriteMemory", kind="lessons", entries=[])
        == []
    )
    assert asked.do("ChangeSettings", changes={"a": 1}) == ["SettingsChanged"]
    assert asked.do("RestoreContext") == [], "nothing was saved"


def test_saved_context_is_handed_back_once() -> None:
    asked = Asked()
    asked.do("SaveContext", context={"a": "x"}, reason="r")
    assert asked.do("RestoreContext", session="s") == ["ContextRestored"]
    assert asked.do("RestoreContext", session="s") == []
    assert asked.do("SaveContext", context={"a": "x"}, reason="r") == ["ContextSaved"], (
        "it was handed back: this is a new one"
    )


def test_context_is_the_same_only_if_all_of_it_is() -> None:
    asked = Asked()
    asked.do("SaveContext", context={"a": "x", "b": "y"}, reason="r")
    assert asked.do("SaveContext", context={"a": "x", "b": "z"}, reason="r") == ["ContextSaved"]
    assert asked.do("SaveContext", context={"a": "x"}, reason="r") == [], "nothing in it is new"


def test_memory_is_written_by_whoever_works_alone() -> None:
    asked = Asked()
    asked.dispatch("a")
    assert asked.do("WriteMemory", kind="lessons", entries=[ENTRY], by="a") == ["MemoryWritten"]
    asked.dispatch("b")
    assert asked.refused("WriteMemory", kind="lessons", entries=[ENTRY], by="a") == "memory-parallel"
    assert asked.do("WriteMemory", kind="lessons", entries=[ENTRY], by="ada") == ["MemoryWritten"], (
        "a person is no attempt"
    )


@pytest.mark.parametrize(
    ("unit", "limit", "fine"),
    [
        ("attempts", 0, True),
        ("attempts", 5, True),
        ("tokens", None, True),
        ("attempts", -1, False),
        ("attempts", True, False),
        ("attempts", 1.5, False),
        ("attempts", "5", False),
        ("minutes", 5, False),
    ],
)
def test_a_limit_is_a_whole_number_of_a_known_unit(unit: str, limit: Any, fine: bool) -> None:
    for told in ({"limits": {unit: limit}}, {"limits": {}, "steps": {"plan": {unit: limit}}}):
        if fine:
            assert Asked().do("ChangeBudget", **told) == ["BudgetChanged"]
        else:
            assert Asked().refused("ChangeBudget", **told) == "bad-limit"


def test_a_limit_of_a_step_is_for_a_step_there_is() -> None:
    pipeline = {"name": "p", "cap": 2, "steps": [{"id": "plan"}]}
    assert Asked(pipeline=pipeline).do("ChangeBudget", limits={}, steps={"plan": {"attempts": 1}}) == ["BudgetChanged"]
    assert (
        Asked(pipeline=pipeline).refused("ChangeBudget", limits={}, steps={"build": {"attempts": 1}}) == "no-such-step"
    )


def test_a_driver_changes_with_its_pipeline() -> None:
    asked = Asked()
    assert asked.do("ChangeDriver", driver="manual") == []
    assert asked.do("ChangeDriver", driver="manual", pipeline={"name": "other", "hash": None}) == ["DriverChanged"]
    assert asked.run["pipeline"]["name"] == "other"


def test_flags_of_a_ticket_that_follow_from_what_happened_cannot_be_set() -> None:
    """Saying what is so anyway changes nothing; of any other run, every flag is the caller's."""
    ticket = Asked(pipeline_name="ticket")
    assert ticket.refused("SetFlags", flags={"tests_passing": True}) == "flag-follows"
    assert ticket.refused("SetFlags", flags={"step_3_complete": True, "mine": 1}) == "flag-follows"
    assert ticket.do("SetFlags", flags={"tests_passing": False}) == []
    assert ticket.do("SetFlags", flags={"tests_passing": False, "mine": 1}) == ["FlagSet"]
    assert ticket.run["flags"] == {"mine": 1}
    assert Asked().do("SetFlags", flags={"tests_passing": True}) == ["FlagSet"]


def test_an_engine_lets_go_of_a_run_between_two_agents_and_not_at_a_gate() -> None:
    from tests.unit.core.by_command import Driven

    seat = "{role: researcher, mode: focused, focus: x}"
    text = (
        f"documents: docs/{{slug}}\nsteps:\n  - {{id: a, agent: {seat}}}\n  - {{id: g, gate: {{prompt: '?'}}}}\n  "
        f"- {{id: b, agent: {seat}}}\n"
    )
    run = Driven(text)
    run.asked()
    assert run.refused("ChangeDriver", driver="manual", pipeline={"name": "other", "hash": None}) == "engine-driven"
    run.start()
    assert run.refused("ChangeDriver", driver="manual") == "attempts-in-flight"
    assert run.do("ChangeDriver", driver="guided") == ["DriverChanged"], "another driver goes on with the same agents"
    run.say("researcher-x")
    run.asked()
    assert run.refused("ChangeDriver", driver="manual") == "gate-open"
    assert run.do("ChangeDriver", driver="engine") == ["DriverChanged"]
    run.do("DecideGate", decision="approve", who="ada")
    run.asked()
    assert run.do("ChangeDriver", driver="manual") == ["DriverChanged"] and run.run["current_visit"] is None
    other = {"name": "other", "hash": None}
    assert run.do("ChangeDriver", driver="manual", pipeline=other) == ["DriverChanged"], (
        "by hand, what it follows is free"
    )
    assert Driven(text).refused("ChangeDriver", driver="manual", pipeline=other) == "engine-driven", (
        "its first step waits"
    )
    assert Asked(driver="engine").do("ChangeDriver", driver="engine", pipeline=other) == ["DriverChanged"], (
        "nothing is left to do"
    )


def test_the_step_and_the_attempt_of_an_artifact() -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    asked.do("StoreArtifact", name="n", path="p", sha256="1", size=3)
    asked.do("StoreArtifact", name="m", path="q", sha256="1", size=3, step="build", attempt="a")
    kept = asked.run["artifacts"]
    assert (kept["n"]["step"], kept["m"]["step"], kept["m"]["size"]) == ("plan", "build", 3)


def test_notes_and_edits_by_others_are_written_down() -> None:
    asked = Asked()
    assert asked.do("Note", text="seen", extra={"a": 1}) == ["Noted"] and (
        asked.last[0]["text"],
        asked.last[0]["extra"],
    ) == ("seen", {"a": 1})
    assert asked.do("AbsorbEdit", dialect="staged", path="p", sha256="s", extra={"theirs": 1}) == [
        "ForeignEditAbsorbed"
    ]
    assert (asked.last[0]["path"], asked.last[0]["extra"], asked.last[0]["drop"]) == ("p", {"theirs": 1}, [])
