"""Attempts: dispatched, started, exactly one end. Each rule of core/decisions/attempts.py that needs no pipeline."""

from __future__ import annotations

import pytest

from tests.support.present import present
from tests.unit.core.by_command import Asked


def finish(asked: Asked, attempt: str, **more: object) -> list[str]:
    return asked.do("FinishAttempt", attempt=attempt, **{"status": "completed", "verdict": "DONE", **more})


def test_dispatched_started_and_one_end() -> None:
    asked = Asked()
    assert asked.dispatch("a", task="t", reserved={"attempts": 1}) == ["AttemptDispatched"]
    assert (asked.run["in_flight"], asked.run["attempts"]["a"]["status"], asked.run["attempts"]["a"]["task"]) == (
        ["a"],
        "dispatched",
        "t",
    )
    assert asked.do("StartAttempt", attempt="a") == ["AttemptStarted"]
    assert finish(asked, "a", summary="s") == ["AttemptFinished"]
    assert (asked.run["in_flight"], asked.run["attempts"]["a"]["status"], asked.run["attempts"]["a"]["summary"]) == (
        [],
        "completed",
        "s",
    )
    for again in ("StartAttempt", "FinishAttempt", "LoseAttempt"):
        assert asked.refused(again, attempt="a", status="completed", reason="r") == "attempt-ended"
    assert asked.refused("DispatchAttempt", attempt="a", role="worker") == "attempt-exists"
    assert asked.refused("StartAttempt", attempt="b") == "no-such-attempt"
    asked.dispatch("c")
    assert finish(asked, "c") == ["AttemptFinished"], "an end without a start: a hook that only saw the end"


def test_an_attempt_belongs_to_the_step_the_run_is_in_unless_it_says_another() -> None:
    asked = Asked()
    asked.dispatch("a")
    assert asked.run["attempts"]["a"]["step"] == ""
    asked.do("StartStep", step="plan")
    asked.dispatch("b")
    asked.dispatch("c", step="build")
    assert (asked.run["attempts"]["b"]["step"], asked.run["attempts"]["c"]["step"]) == ("plan", "build")


@pytest.mark.parametrize("ran", [True, False])
def test_a_lost_attempt_is_labelled(ran: bool) -> None:
    asked = Asked()
    asked.dispatch("a")
    assert asked.do("LoseAttempt", attempt="a", reason="killed", ran=ran) == ["AttemptLost"]
    assert (asked.run["attempts"]["a"]["status"], asked.run["in_flight"]) == ("lost", [])


@pytest.mark.parametrize(
    ("at", "took", "busy", "said"),
    [
        ("2026-11-14T10:00:00.000Z", 50_000, 50_000, {"lasted_ms": 50_000}),  # the clock was set back by a day
        ("2026-11-15T10:00:32.000Z", 30_001, 30_001, {"lasted_ms": 30_001}),
        ("2026-11-15T10:00:32.000Z", 30_000, 30_000, {}),
        ("2026-11-15T10:00:32.000Z", None, 30_000, {}),
        ("2026-11-14T10:00:00.000Z", True, 0, {}),
        ("2026-11-14T10:00:00.000Z", "9", 0, {}),
    ],
)
def test_a_clock_that_is_set_back_gives_no_time_back(at: str, took: object, busy: int, said: object) -> None:
    """What the attempt took was measured; the wall clock's limit counts that where the clock tells less."""
    asked = Asked()
    asked.dispatch("a")  # at 10:00:02
    finish(asked, "a", at=at, receipt={"duration_ms": took})
    assert (asked.run["budget"]["busy_ms"], asked.run["budget"]["steps"][""]["busy_ms"], asked.last[0]["extra"]) == (
        busy,
        busy,
        said,
    )
    asked.dispatch("b", at=at)
    finish(asked, "b", at=at)
    assert asked.run["budget"]["busy_ms"] == busy


def test_the_cap_holds() -> None:
    asked = Asked(pipeline={"cap": 2, "steps": []})
    asked.dispatch("a")
    asked.dispatch("b")
    assert asked.refused("DispatchAttempt", attempt="c", role="worker") == "cap-reached"
    finish(asked, "a")
    assert asked.dispatch("c") == ["AttemptDispatched"]
    free = Asked()
    for number in range(20):
        free.dispatch(str(number))


@pytest.mark.parametrize(
    "rest",
    [
        {"do": "Pause", "reason": "x"},
        {"do": "Stop"},
        {"do": "OpenGate", "name": "g", "prompt": "?"},
        {"do": "Cancel"},
        {"do": "Fail", "error": "x"},
        {"do": "Finish"},
        {"do": "Block", "reason": "x"},
        {"do": "Park", "until": "", "reason": ""},
    ],
    ids=lambda rest: rest["do"],
)
def test_a_run_that_rests_dispatches_nothing(rest: dict[str, str]) -> None:
    asked = Asked()
    asked.do(**rest)
    assert asked.refused("DispatchAttempt", attempt="a", role="worker") == "not-running"


def test_a_proof_of_concept_may_go_on() -> None:
    asked = Asked()
    asked.do("Finish", outcome="poc-complete")
    assert asked.dispatch("a") == ["AttemptDispatched"]


@pytest.mark.parametrize(
    "role",
    [
        "State Manager",
        "state-manager",
        "orchestrator-state-manager",
        "plugin:state_manager_agent",
        "context-manager",
        "StateKeeper",
        "flow_state",
        "statemgr",
        "\u0455tate-manager",
        "\uff53tatemanager",
    ],
)
def test_the_one_who_keeps_the_state_is_no_agent(role: str) -> None:
    assert Asked().refused("DispatchAttempt", attempt="a", role=role) == "not-an-agent"


@pytest.mark.parametrize("role", ["state-machine-designer", "manager", "context", "r\u00e9viseur"])
def test_whose_name_only_sounds_like_it_is_one(role: str) -> None:
    assert Asked().do("DispatchAttempt", attempt="a", role=role) == ["AttemptDispatched"]


def test_what_is_not_reported_is_charged_as_it_was_set_aside() -> None:
    asked = Asked()
    asked.do("ChangeBudget", limits={"tokens": 100, "attempts": 9})
    asked.dispatch("a", reserved={"attempts": 1, "tokens": 30})
    assert asked.run["budget"]["reserved"] == {"attempts": 1, "tokens": 30}
    finish(asked, "a", usage={"tokens": 7})
    assert asked.run["budget"]["spent"] == {"attempts": 1, "tokens": 7}
    asked.dispatch("b", reserved={"attempts": 1, "tokens": 30})
    asked.do("LoseAttempt", attempt="b", reason="killed")
    assert asked.run["budget"]["spent"] == {"attempts": 2, "tokens": 37}
    assert asked.run["budget"]["reserved"] == {"attempts": 0, "tokens": 0}
    assert asked.refused("DispatchAttempt", attempt="c", role="worker", reserved={"tokens": 64}) == "over-budget"
    assert asked.dispatch("c", reserved={"tokens": 63}) == ["AttemptDispatched"]


def test_a_step_has_a_limit_of_its_own() -> None:
    asked = Asked()
    asked.do("ChangeBudget", limits={}, steps={"plan": {"attempts": 1}})
    asked.dispatch("a", step="plan", reserved={"attempts": 1})
    assert (
        asked.refused("DispatchAttempt", attempt="b", role="worker", step="plan", reserved={"attempts": 1})
        == "over-budget"
    )
    assert asked.dispatch("b", step="build", reserved={"attempts": 1}) == ["AttemptDispatched"]


def test_a_question_pauses_the_run_for_a_person() -> None:
    asked = Asked()
    asked.dispatch("a")
    assert finish(asked, "a", verdict="QUESTION", summary="which database?") == ["AttemptFinished", "Paused"]
    pause = present(asked.run["pause"])
    assert (pause["kind"], pause["reason"], pause["question_of"], pause["recommendations"]) == (
        "question",
        "which database?",
        "a",
        ["answer"],
    )
    asked.do("Resume")
    asked.dispatch("b")
    asked.do("Stop")
    assert finish(asked, "b", verdict="QUESTION") == ["AttemptFinished"], "it rests already"


def test_who_may_not_work_before_a_time_parks_the_run_until_the_last_of_them() -> None:
    asked = Asked()
    for name in "abcd":
        asked.dispatch(name)
    assert finish(asked, "a", status="failed", verdict="PARKED", parked_until="2026-11-16T10:00:00.000Z") == [
        "AttemptFinished",
        "Parked",
    ]
    assert finish(asked, "b", status="failed", verdict="PARKED", parked_until="2026-11-16T09:00:00.000Z") == [
        "AttemptFinished"
    ]
    assert finish(asked, "c", status="failed", verdict="PARKED", parked_until="2026-11-16T11:00:00.000Z") == [
        "AttemptFinished",
        "Parked",
    ]
    assert present(asked.run["pause"])["until"] == "2026-11-16T11:00:00.000Z"
    assert finish(asked, "d", status="failed", verdict="PARKED") == ["AttemptFinished"], "no time, no waiting"
    paused = Asked()
    paused.dispatch("a")
    paused.do("Pause", reason="x")
    assert finish(paused, "a", status="failed", verdict="PARKED", parked_until="2026-11-16T10:00:00.000Z") == [
        "AttemptFinished"
    ]
    others = Asked()
    others.dispatch("a")
    assert finish(
        others, "a", status="failed", verdict="PARKED", parked_until="2026-11-16T10:00:00.000Z", others=True
    ) == ["AttemptFinished"]


def test_what_an_attempt_says_of_itself() -> None:
    asked = Asked()
    asked.dispatch("a")
    assert (asked.run["attempts"]["a"]["iteration"], asked.run["attempts"]["a"]["number"]) == (1, 1)
    asked.dispatch("b", iteration=3, number=2)
    assert (asked.run["attempts"]["b"]["iteration"], asked.run["attempts"]["b"]["number"]) == (3, 2)
    until = "2026-11-16T10:00:00.000Z"
    finish(asked, "a", verdict="DONE", parked_until=until, extra={"x": 1})
    assert asked.run["attempts"]["a"]["extra"] == {"x": 1}, "only who is parked waits"
    finish(asked, "b", status="failed", verdict="PARKED", parked_until=until)
    assert asked.run["attempts"]["b"]["extra"] == {"parked_until": until}
    other = Asked()
    other.dispatch("a")
    finish(other, "a", status="failed", verdict="PARKED")
    assert other.run["attempts"]["a"]["extra"] == {}


def test_a_limit_of_nothing_admits_nothing() -> None:
    asked = Asked()
    asked.do("ChangeBudget", limits={"attempts": 0})
    assert asked.refused("DispatchAttempt", attempt="a", role="worker", reserved={"attempts": 1}) == "over-budget"


def test_whoever_leads_by_hand_hears_every_question_and_ends_items_themselves() -> None:
    """A pipeline is there, and no stay: nothing is counted for anybody."""
    asked = Asked(pipeline={"name": "p", "cap": 4, "steps": []})
    asked.do("PlanItems", items={"1": {"title": "one"}}, waves=[["1"]])
    asked.dispatch("a", item="1", extra={"seat": "s"})
    assert finish(asked, "a", verdict="QUESTION", summary="?") == ["AttemptFinished", "Paused"]
    asked.do("Resume")
    asked.dispatch("b", item="1", extra={"seat": "s"})
    assert finish(asked, "b") == ["AttemptFinished"]


def test_items_change_when_there_is_something_new() -> None:
    asked = Asked()
    asked.do("PlanItems", items={"1": {"title": "one"}}, waves=[["1"]])
    assert asked.refused("ChangeItem", item="2", status="completed") == "no-such-item"
    assert asked.do("ChangeItem", item="1", status="completed", files=["a"]) == ["ItemChanged"]
    assert asked.do("ChangeItem", item="1", status="completed", files=["a"]) == []
    assert asked.do("ChangeItem", item="1", status="completed", files=["a", "b"]) == ["ItemChanged"]
    assert asked.do("ChangeItem", item="1", status="failed") == ["ItemChanged"]
    assert asked.run["items"]["1"]["files"] == ["a", "b"]
