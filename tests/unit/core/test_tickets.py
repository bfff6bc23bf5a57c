"""What follows from what happened in a ticket: each rule of core/tickets.py."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.parts import new_run
from tenuto.core.rules import current_step, flags, follows, next_actions, phase_of, step_number

EARLY, LATE, LATER = "2026-11-15T10:00:00.000Z", "2026-11-15T11:00:00.000Z", "2026-11-15T12:00:00.000Z"


def attempt(
    role: str = "helper",
    status: str = "completed",
    verdict: str | None = None,
    step: str = "understanding",
    task: str = "",
    at: str | None = LATE,
    **extra: Any,
) -> Any:
    return {
        "role": role,
        "status": status,
        "verdict": verdict,
        "step": step,
        "task": task,
        "ended_at": at,
        "extra": extra,
    }


def ticket(*attempts: Any, position: str | None = "understanding", status: str = "running", **more: Any) -> Any:
    run: Any = new_run()
    run.update(
        id="x",
        status=status,
        position=position,
        attempts={str(number): one for number, one in enumerate(attempts)},
        **more,
    )
    return run


def word(step: str, approved: bool, at: str = LATER, name: str = "") -> Any:
    return {"step": step, "name": name or step, "approved": approved, "at": at}


@pytest.mark.parametrize(
    ("position", "status", "schedule", "phase"),
    [
        (None, "running", [], "understanding"),
        ("planning", "running", [], "planning"),
        ("integration", "running", [], "integration"),
        ("anything", "running", [], "execution"),
        ("planning-2", "running", [], "planning"),
        ("odd-2", "running", [], "execution"),
        ("s1", "running", [{"step": "s1", "stage": "integration"}], "integration"),
        ("s1", "running", [{"step": "s1"}], "execution"),
        ("s1", "running", [{"step": "s2", "stage": "planning"}], "execution"),
        ("planning", "completed", [], "complete"),
        ("planning", "graduated", [], "complete"),
        ("planning", "poc-complete", [], "complete"),
        ("planning", "failed", [], "planning"),
    ],
)
def test_where_a_ticket_is(position: Any, status: str, schedule: Any, phase: str) -> None:
    assert phase_of(ticket(position=position, status=status, schedule=schedule)) == phase


def test_the_task_that_was_delegated_last() -> None:
    assert (
        current_step(ticket()) == ""
        and current_step(ticket(attempt("a", task="t"), attempt("b"))) == "b"
        and current_step(ticket(attempt("a", task="t"))) == "t"
    )


@pytest.mark.parametrize(
    ("run", "actions"),
    [
        *((ticket(status=status), []) for status in ("completed", "failed", "cancelled", "graduated", "poc-complete")),
        (ticket(status="waiting_gate"), ["get_user_approval"]),
        (ticket(status="paused"), ["retry", "skip", "abort"]),
        (ticket(status="blocked"), ["retry", "skip", "abort"]),
        (ticket(), ["proceed_to_next_step"]),
        (ticket(attempt()), ["get_user_approval"]),
        (
            ticket(attempt("a", "dispatched"), attempt("b", "running"), attempt("a", "running")),
            ["wait_for_a", "wait_for_b"],
        ),
        (ticket(attempt(status="failed")), ["retry", "skip", "abort"]),
        (ticket(attempt(status="lost")), ["retry", "skip", "abort"]),
        (ticket(attempt(status="failed"), attempt()), ["get_user_approval"]),
        (ticket(attempt(step="execution"), position="execution"), ["get_user_approval", "proceed_to_next_step"]),
        (ticket(attempt(step="understanding"), position="planning"), ["proceed_to_next_step"]),
        (ticket(attempt(), decisions=[word("understanding", False)]), ["address_feedback"]),
        (ticket(decisions=[word("understanding", False)]), ["address_feedback"]),
        (ticket(attempt(), decisions=[word("elsewhere", False, name="understanding")]), ["address_feedback"]),
        (ticket(attempt(), decisions=[word("understanding", False, EARLY)]), ["get_user_approval"]),
        (ticket(attempt(), decisions=[word("understanding", False, LATE)]), ["address_feedback"]),
        (ticket(attempt(), decisions=[word("understanding", True)]), ["get_user_approval"]),
        (ticket(attempt(), decisions=[word("planning", False)]), ["get_user_approval"]),
        (
            ticket(attempt(), decisions=[word("understanding", False), word("understanding", True)]),
            ["get_user_approval"],
        ),
        (ticket(attempt(at=None, status="lost"), decisions=[word("understanding", False)]), ["address_feedback"]),
        (
            ticket(attempt(step="s1"), position="s1", schedule=[{"step": "s1", "stage": "planning"}]),
            ["get_user_approval"],
        ),
        (
            ticket(
                attempt(step="s2"),
                position="s2",
                schedule=[{"step": "s1", "stage": "planning"}, {"step": "s2", "stage": "integration"}],
            ),
            ["get_user_approval"],
        ),
        (
            ticket(attempt(step="s1"), position="s1", schedule=[{"step": "s1", "stage": "elsewhere"}]),
            ["proceed_to_next_step"],
        ),
    ],
)
def test_what_is_to_be_done_now(run: Any, actions: list[str]) -> None:
    assert next_actions(run) == actions


@pytest.mark.parametrize(
    ("text", "number", "whole"),
    [
        ("implement_step_3", 3, None),
        ("step_3", 3, 3),
        ("step-3", 3, 3),
        ("Step 3", 3, 3),
        ("step_3_auth", 3, None),
        ("step3", 3, None),
        ("step", None, None),
        ("step_x", None, None),
        ("stepper_3", None, None),
        ("3", None, None),
        ("step_3_step_4", 3, None),
        ("steps 3", None, None),
        ("task3", None, None),
        (7, None, None),
    ],
)
def test_the_number_of_a_step(text: Any, number: int | None, whole: int | None) -> None:
    assert step_number(text) == number and step_number(text, whole=True) == whole


@pytest.mark.parametrize(
    ("name", "yes"),
    [
        ("tests_passing", True),
        ("mr_ready", True),
        ("step_3_complete", True),
        ("step_3", True),
        ("step_3_auth_complete", False),
        ("mine", False),
        ("step_complete", False),
    ],
)
def test_which_flags_follow(name: str, yes: bool) -> None:
    assert follows(name) is yes


NONE = dict.fromkeys(
    ("requirements_clear", "codebase_analyzed", "implementation_planned", "tests_passing", "code_reviewed", "mr_ready"),
    False,
)


def true(run: Any) -> list[str]:
    return [name for name, value in flags(run).items() if value is True]


def test_nothing_is_true_before_it_happened() -> None:
    assert flags(ticket()) == NONE


@pytest.mark.parametrize(
    ("one", "names"),
    [
        (attempt("researcher"), ["requirements_clear", "codebase_analyzed"]),
        (attempt("researcher", "failed"), []),
        (attempt("planner", step="x"), ["implementation_planned"]),
        (attempt("helper", task="analyse it", step="x"), ["requirements_clear", "codebase_analyzed"]),
        (attempt("helper", step="planning"), ["implementation_planned"]),
        (attempt("helper", step="understanding"), ["requirements_clear", "codebase_analyzed"]),
        (attempt("coder", step="understanding"), []),
        (attempt("helper", step="x"), []),
        (attempt("Plan Reviewer", step="x"), ["tests_passing", "code_reviewed"]),
        (attempt("committer", task="research", step="x"), []),
        (attempt("helper", task="research the plan", step="x"), ["requirements_clear", "codebase_analyzed"]),
    ],
)
def test_what_an_attempt_makes_true(one: Any, names: list[str]) -> None:
    assert true(ticket(one)) == names


def test_what_a_file_said_stands_where_no_event_speaks() -> None:
    told = {"requirements_clear": True, "tests_passing": True, "mine": 5, "step_2_complete": True, "mr_ready": "yes"}
    shown = flags(ticket(flags=told))
    assert (
        shown["requirements_clear"],
        shown["tests_passing"],
        shown["step_2_complete"],
        shown["mr_ready"],
        shown["mine"],
    ) == (True, True, True, False, 5)
    assert list(shown)[-1] == "mine", "those that follow, then the caller's"
    assert flags(ticket(attempt("tester", "failed"), flags=told))["tests_passing"] is False, (
        "an event counts before a file"
    )


def test_steps_are_complete_by_their_commit_alone() -> None:
    run = ticket(
        attempt("coder", task="implement_step_1", step="execution"),
        attempt("coder", step="execution", step_number=4),
        attempt("coder", step="execution", step_number=True),
        commits=[{"step": "step_3"}, {"step": "docs"}],
        flags={"step_2_complete": False, "step_9_complete_or_not": True},
    )
    shown = {name: value for name, value in flags(run).items() if name.startswith("step_")}
    assert shown == {
        "step_1_complete": False,
        "step_2_complete": False,
        "step_3_complete": True,
        "step_4_complete": False,
        "step_9_complete_or_not": True,
    }


@pytest.mark.parametrize(
    ("decisions", "ready"),
    [
        ([word("integration", True)], True),
        ([word("x", True, name="integration")], True),
        ([word("integration", False)], False),
        ([word("execution", True)], False),
        ([], False),
    ],
)
def test_integration_that_was_approved_is_ready(decisions: Any, ready: bool) -> None:
    assert flags(ticket(decisions=decisions))["mr_ready"] is ready


@pytest.mark.parametrize(
    ("extra", "status", "verdict", "tests", "reviewed"),
    [
        ({}, "completed", None, True, True),
        ({}, "completed", "DONE", True, True),
        ({}, "completed", "ERROR", False, False),
        ({}, "failed", None, False, False),
        ({"blocking_issues": ["x"]}, "completed", None, False, False),
        ({"blocking_issues": []}, "completed", None, True, True),
        ({"validation_passed": False}, "completed", None, False, False),
        ({"validation_passed": "passed"}, "completed", None, True, True),
        ({"validation_passed": "odd"}, "completed", None, False, False),
        ({"validation_results": "passed"}, "completed", None, True, True),
        ({"validation_results": False}, "completed", None, False, False),
        ({"validation_results": 5}, "completed", None, True, True),
        ({"validation_results": {"Unit Tests": "failed", "code_quality": "ok"}}, "completed", None, False, True),
        ({"validation_results": {"tests": "ok", "review": "bad"}}, "completed", None, True, False),
        ({"validation_results": {"lint": "ok"}, "validation_passed": False}, "completed", None, False, False),
        ({"validation_results": {"lint": "bad"}}, "completed", None, True, True),
    ],
)
def test_what_the_last_validation_found(extra: Any, status: str, verdict: Any, tests: bool, reviewed: bool) -> None:
    shown = flags(ticket(attempt("validator", status, verdict, step="x", **extra)))
    assert (shown["tests_passing"], shown["code_reviewed"]) == (tests, reviewed)


@pytest.mark.parametrize(
    ("value", "good"),
    [
        (True, True),
        (False, False),
        (1, False),
        (None, False),
        ("PASSED ", True),
        ("green", True),
        ("red", False),
        ({"passed": 12, "failed": 0}, True),
        ({"passed": 12, "failed": 1}, False),
        ({"passed": 0}, False),
        ({"passed": 1}, True),
        ({"Status": "ok"}, True),
        ({"status": "ok", "errors": ["x"]}, False),
        ({"status": "ok", "Failures": 2}, False),
        ({"status": "ok", "failing": 1}, False),
        ({"result": "bad"}, False),
        ({"total": 3}, True),
        ({}, False),
        ({"other": True}, False),
        ({"success": True}, True),
        ({"success": False}, False),
        ({"passing": 0, "total": 4}, False),
        ({"status": {"result": "ok"}}, True),
        (["ok"], False),
    ],
)
def test_what_counts_as_good(value: Any, good: bool) -> None:
    assert flags(ticket(attempt("validator", step="x", validation_results={"tests": value})))["tests_passing"] is good


def test_the_last_validation_that_ended_counts() -> None:
    bad, good, under_way = (
        attempt("validator", "failed", step="x"),
        attempt("validator", step="x"),
        attempt("validator", "running", step="x", at=None),
    )
    assert (
        flags(ticket(bad, good, under_way))["tests_passing"] is True
        and flags(ticket(good, bad, under_way))["tests_passing"] is False
    )


def test_a_task_that_is_no_text_says_nothing_of_its_kind() -> None:
    from tenuto.core import rules

    run: Any = {"schedule": []}
    attempt: Any = {"role": "anybody", "task": None, "step": "nowhere"}
    assert rules._kind(run, attempt) == ""
