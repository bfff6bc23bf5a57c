"""Runs begin, rest and end: each rule of core/decisions/runs.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.present import present
from tests.unit.core.by_command import BEGUN, Asked

ENDS: dict[str, Any] = {
    "completed": {"do": "Finish"},
    "failed": {"do": "Fail", "error": "x"},
    "cancelled": {"do": "Cancel"},
}
RESTS: dict[str, Any] = {
    "paused": {"do": "Pause", "reason": "a break"},
    "stopped": {"do": "Stop"},
    "waiting_gate": {"do": "OpenGate", "name": "g", "prompt": "?"},
    "parked": {"do": "Park", "until": "2026-11-16T00:00:00.000Z", "reason": "a limit"},
    "blocked": {"do": "Block", "reason": "missing"},
}


def at(status: str) -> Asked:
    asked = Asked()
    if status == "graduated":
        asked.do("Finish", outcome="poc-complete")
        asked.do("Finish", outcome="graduated")
    elif status != "running":
        asked.do(**{**ENDS, **RESTS}[status])
    if status != "running":
        assert asked.run["status"] == status
    return asked


@pytest.mark.parametrize("status", [*ENDS, "graduated"])
@pytest.mark.parametrize(
    "command",
    [
        {"do": "Pause", "reason": "x"},
        {"do": "Park", "until": "", "reason": ""},
        {"do": "Fail", "error": "x"},
        {"do": "Finish"},
        {"do": "Cancel"},
        {"do": "Stop"},
        {"do": "PickUp"},
        {"do": "Block", "reason": "x"},
    ],
    ids=lambda command: command["do"],
)
def test_whatever_ended_stays_so(status: str, command: dict[str, str]) -> None:
    assert at(status).refused(**command) == "run-ended"


@pytest.mark.parametrize("status", [*ENDS, "running", "waiting_gate", "blocked"])
def test_only_what_rests_is_resumed(status: str) -> None:
    assert at(status).refused("Resume") == "not-paused"


def test_a_run_begins_once() -> None:
    assert Asked().refused(**BEGUN) == "run-exists"
    assert Asked().refused("Adopt", dialect="context", path="p", sha256="s", state={}) == "run-exists"


def test_what_is_adopted_is_taken_as_it_stands() -> None:
    from tenuto.core.decide import decide
    from tenuto.core.parts import new_repo

    asked: Any = {
        "do": "Adopt",
        "dialect": "context",
        "path": "p",
        "sha256": "s",
        "state": {"id": "x"},
        "at": "2026-11-15T10:00:00.000Z",
        "by": "ada",
    }
    [event] = decide(None, new_repo(), None, asked)
    assert event["type"] == "Adopted"
    assert (event["dialect"], event["path"], event["sha256"], event["state"]) == (
        "context",
        "p",
        "s",
        {"id": "x"},
    )


def test_an_order_is_strict_where_nothing_else_is_said() -> None:
    from tenuto.core.decide import decide
    from tenuto.core.parts import new_repo

    def began(**more: Any) -> Any:
        bare: Any = {
            "do": "StartRun",
            "run": "x",
            "name": "x",
            "pipeline": {"name": "", "hash": None},
            "at": "2026-11-15T10:00:00.000Z",
            "by": "ada",
            **more,
        }
        [event] = decide(None, new_repo(), None, bare)
        return event

    assert (began()["order"], began()["mode"], began()["driver"]) == ("any", "standard", "manual")
    assert began(schedule=[{"step": "plan"}])["order"] == "strict"
    assert began(schedule=[{"step": "plan"}], order="open")["order"] == "open"


def test_a_pause_waits_for_running_steps_unless_a_person_wants_it() -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    assert asked.refused("Pause", reason="it failed") == "steps-running"
    assert asked.do("Pause", reason="my wish", kind="person") == ["Paused"]
    assert (present(asked.run["pause"])["kind"], present(asked.run["pause"])["step"]) == ("person", "plan")
    assert at("waiting_gate").refused("Pause", reason="x") == "gate-open"


def test_a_pause_names_the_step_it_is_about() -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    asked.do("EndStep", step="plan", status="success")
    asked.do("Pause", reason="x")
    assert present(asked.run["pause"])["step"] == "plan", "the last one, where none runs"
    other = Asked()
    other.do("Pause", reason="x", step="build", recommendations=["again"], feedback="no")
    assert (
        present(other.run["pause"])["step"],
        present(other.run["pause"])["recommendations"],
        present(other.run["pause"])["feedback"],
    ) == (
        "build",
        ["again"],
        "no",
    )
    both = Asked()
    both.do("StartStep", step="plan")
    both.do("StartStep", step="build")
    both.do("Pause", reason="x", kind="person")
    assert present(both.run["pause"])["step"] == both.run["position"] == "plan", (
        "where the run is, and not what began last"
    )
    bare = Asked()
    bare.do("Pause", reason="x")
    assert present(bare.run["pause"])["step"] is None


@pytest.mark.parametrize("status", ["paused", "stopped"])
def test_what_rests_goes_on_or_is_given_up(status: str) -> None:
    assert at(status).do("Resume") == ["Resumed"]
    assert at(status).do("Resume", decision="retry") == ["Resumed"]
    assert at(status).refused("Resume", decision="approve") == "bad-decision"
    given_up = at(status)
    assert given_up.do("Resume", decision="reject") == ["Failed"]
    if status == "paused":
        assert present(given_up.run["failure"])["error"] == "rejected: a break"
    about = Asked()
    about.do("Pause", reason="x", step="plan", feedback="2030-01-01T00:00:00.000Z")
    assert about.do("Resume") == ["Resumed"], "only what is parked waits for a time"
    about.do("Pause", reason="x", step="plan")
    about.do("Resume", decision="reject")
    assert present(about.run["failure"])["step"] == "plan"


@pytest.mark.parametrize(
    ("now", "code"),
    [("2026-11-15T23:59:59.999Z", "parked"), ("2026-11-16T00:00:00.000Z", ""), ("2026-11-16T00:00:00.001Z", "")],
)
def test_a_parked_run_goes_on_at_its_time(now: str, code: str) -> None:
    asked = at("parked")
    if code:
        assert asked.refused("Resume", at=now) == code
        assert asked.do("Resume", at=now, early=True) == ["Resumed"]
    else:
        assert asked.do("Resume", at=now) == ["Resumed"]


def test_a_time_that_cannot_be_read_is_no_reason_to_wait_for_ever() -> None:
    asked = Asked()
    asked.do("Park", until="tomorrow", reason="x")
    assert asked.do("Resume") == ["Resumed"]


@pytest.mark.parametrize("status", ["paused", "stopped", "waiting_gate", "parked", "blocked"])
def test_nothing_finishes_or_is_parked_while_it_rests(status: str) -> None:
    assert at(status).refused("Finish") == "not-running"
    assert at(status).refused("Park", until="", reason="") == "not-running"


def test_only_a_proof_of_concept_graduates() -> None:
    assert Asked().refused("Finish", outcome="graduated") == "not-poc-complete"
    asked = Asked()
    assert asked.do("Finish", outcome="poc-complete") == ["Finished"]
    assert asked.run["status"] == "poc-complete"
    assert asked.do("Finish", outcome="graduated") == ["Finished"]


def test_a_run_does_not_end_over_running_steps() -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    assert asked.refused("Finish") == "steps-running"
    assert asked.do("Finish", outcome="poc-complete") == ["Finished"]
    strict = Asked(order="strict", schedule=[{"step": "plan"}])
    strict.do("Advance", to=None, facts={})
    assert strict.run["position"] == "plan"
    assert strict.do("Finish") == ["Finished"], "the order itself says what is left there"


@pytest.mark.parametrize("status", ["waiting_gate", "paused", "stopped", "parked"])
def test_what_rests_already_is_not_stopped_again(status: str) -> None:
    assert at(status).do("Stop") == []
    assert at("running").do("Stop", reason="x") == ["Stopped"]
    assert at("blocked").do("Stop") == ["Stopped"]


def test_somebody_goes_on_with_a_run() -> None:
    asked = Asked()
    assert asked.do("PickUp", session="s") == ["PickedUp"]
    stage = Asked()
    stage.do("Block", reason="missing", stage="ONE")
    assert present(stage.run["blocked"])["stage"] == "ONE"
    assert stage.do("Unblock") == ["Unblocked"] and stage.run["blocked"] is None and stage.last[0]["stage"] == "ONE"


def test_blocked_once_and_unblocked_once() -> None:
    asked = at("blocked")
    assert asked.do("Block", reason="again") == []
    assert asked.do("Unblock") == ["Unblocked"]
    assert asked.refused("Unblock") == "not-blocked"


def test_a_failure_names_the_step_the_run_was_in() -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    asked.do("Fail", error="x")
    assert (present(asked.run["failure"])["step"], present(asked.run["failure"])["error"]) == ("plan", "x")
    other = Asked()
    other.do("Fail", error="x", step="build", context="c")
    assert (present(other.run["failure"])["step"], present(other.run["failure"])["context"]) == ("build", "c")
