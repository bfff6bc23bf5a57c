"""Reviews and coverage of a run that is led along a schedule: each rule of core/decisions/reviews.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.present import present
from tests.unit.core.by_command import Adopted, Asked

SCHEDULE = [
    {"step": "write", "stage": "ONE"},
    {"step": "review", "stage": "ONE", "type": "review"},
    {"step": "tests", "stage": "TWO", "coverage": {"back_to": "review", "at_most": 2}},
    {"step": "last", "stage": "TWO"},
]
BAD = {"status": "needs_revision", "issues": [{"severity": "HIGH"}]}


def in_review(**settings: Any) -> Asked:
    asked = Asked(order="strict", schedule=SCHEDULE, settings=settings)
    for _ in range(2):
        asked.do("Advance", facts={})
    assert asked.run["position"] == "review"
    return asked


def in_tests(at_most: Any = 2, **settings: Any) -> Asked:
    asked = in_review(**settings)
    asked.do("RecordReview", step="review", review="approved")
    asked.do("Advance", facts={})
    if at_most is None:
        asked.run["schedule"][2]["coverage"] = {"back_to": "review"}
    return asked


def reviewed(asked: Asked, answer: Any = BAD, **more: Any) -> str:
    """What it led to."""
    asked.do("RecordReview", step="review", review=answer, **more)
    return str(asked.last[0]["changes"]["next"])


# ---- reviews


@pytest.mark.parametrize(
    "answer",
    [
        "approved",
        "APPROVED",
        {"status": "approved"},
        {"approved": True},
        {"status": "approved", "approved": False},
        {"status": "approved", "issues": []},
    ],
)
def test_a_review_that_is_approved_leads_nowhere_else(answer: Any) -> None:
    asked = in_review()
    assert asked.do("RecordReview", step="review", review=answer, sha256="s") == ["ReviewRecorded"]
    kept = asked.run["reviews"]["review"]
    assert (kept["approved"], kept["visit"], kept["answer"], kept["next"], kept["sha256"]) == (True, 1, answer, "", "s")
    assert asked.do("Advance", facts={}) == ["StepEnded", "StepStarted"]


@pytest.mark.parametrize(
    "answer",
    [
        "rejected",
        "",
        None,
        1,
        [],
        {},
        {"approved": False},
        {"approved": "yes"},
        {"approved": 1},
        {"status": "no", "approved": True},
        {"status": "approved", "issues": "many"},
        {"status": "approved", "issues": [{"severity": "LOW"}]},
        {"status": "approved", "issues": [{}]},
    ],
)
def test_a_review_that_cannot_be_read_or_finds_something_is_not_approved(answer: Any) -> None:
    asked = in_review()
    assert reviewed(asked, answer) == "supplementary" and asked.run["reviews"]["review"]["approved"] is False
    assert asked.refused("Advance", facts={}) == "not-reviewed"


def test_what_blocks_is_the_policys_word() -> None:
    small = {"status": "approved", "issues": [{"severity": "LOW"}]}
    assert reviewed(in_review(reviewPolicy={"minBlockSeverity": "HIGH"}), small) == ""
    assert reviewed(in_review(reviewPolicy={"minBlockSeverity": "LOW"}), small) == "supplementary"
    for odd in ("HIGH", {"other": 1}, None):
        assert reviewed(in_review(reviewPolicy=odd), small) == "supplementary", "the default is the strictest"


def test_first_a_second_reviewer_then_fixes_then_a_restart_then_a_person() -> None:
    asked = in_review(reviewPolicy={"maxFixAttempts": 2, "maxStageRestarts": 1})
    assert reviewed(asked) == "supplementary" and asked.run["reviews"]["review"]["supplementary"] is True
    assert [reviewed(asked), reviewed(asked)] == ["fix", "fix"] and asked.run["reviews"]["review"]["fix_attempts"] == 2
    assert reviewed(asked) == "restart" and asked.run["position"] == "write" and asked.run["status"] == "running"
    assert [event["type"] for event in asked.last] == ["ReviewRecorded", "StageRestarted", "StepStarted"]
    assert asked.run["reviews"] == {}, "what the stage had is void"
    asked.do("Advance", facts={})
    assert [reviewed(asked) for _ in range(3)] == ["supplementary", "fix", "fix"]
    assert reviewed(asked) == "blocked"
    assert [event["type"] for event in asked.last] == ["ReviewRecorded", "Blocked"]
    assert (asked.run["status"], present(asked.run["blocked"])["stage"], present(asked.run["blocked"])["missing"]) == (
        "blocked",
        "ONE",
        [],
    )
    assert "after 2 fix attempts and 1 restarts" in present(asked.run["blocked"])["reason"]
    assert asked.refused("RecordReview", step="review", review="approved") == "not-running", (
        "a person has to look at it"
    )


def test_restarts_of_another_stage_are_not_counted() -> None:
    asked = in_review(supplementaryPolicy="never", reviewPolicy={"maxFixAttempts": 0, "maxStageRestarts": 1})
    asked.run["restarts"].append({"stage": "TWO", "reason": "x", "at": "", "restart": 1})
    assert reviewed(asked) == "restart"


@pytest.mark.parametrize(
    ("policy", "first"), [("on-issues", "supplementary"), ("never", "fix"), ("", "fix"), (None, "fix")]
)
def test_a_second_reviewer_only_where_the_settings_say_so(policy: Any, first: str) -> None:
    assert reviewed(in_review(supplementaryPolicy=policy)) == first


@pytest.mark.parametrize(("told", "fixes"), [(0, 0), (1, 1), (-1, 10), (True, 10), (None, 10), ("3", 10)])
def test_a_limit_that_is_no_number_is_the_default(told: Any, fixes: int) -> None:
    asked = in_review(supplementaryPolicy="never", reviewPolicy={"maxFixAttempts": told, "maxStageRestarts": 0})
    assert [reviewed(asked) for _ in range(fixes + 1)] == ["fix"] * fixes + ["blocked"]


def test_without_a_policy_ten_fixes_and_three_restarts() -> None:
    asked = in_review(supplementaryPolicy="never")
    for _ in range(3):
        assert [reviewed(asked) for _ in range(11)] == ["fix"] * 10 + ["restart"]
        asked.do("Advance", facts={})
    assert [reviewed(asked) for _ in range(11)] == ["fix"] * 10 + ["blocked"]


def test_a_step_without_a_stage_has_nothing_to_restart() -> None:
    asked = Asked(
        order="strict",
        schedule=[{"step": "review", "type": "review"}],
        settings={"supplementaryPolicy": "never", "reviewPolicy": {"maxFixAttempts": 0}},
    )
    asked.do("Advance", facts={})
    assert reviewed(asked) == "blocked" and present(asked.run["blocked"])["stage"] is None


def test_a_review_counts_for_the_step_the_run_is_in() -> None:
    asked = in_review()
    assert asked.refused("RecordReview", step="write", review="approved") == "no-review"
    assert asked.refused("RecordReview", step="elsewhere", review="approved") == "no-review"
    assert asked.refused("RecordCoverage", step="review", percent=99) == "no-coverage"
    assert asked.refused("RecordCoverage", step="tests", percent=99) == "wrong-step"
    asked.do("RecordReview", step="review", review="approved")
    asked.do("Advance", facts={})
    assert asked.refused("RecordReview", step="review", review="approved") == "wrong-step"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("created", ""),
        ("running", ""),
        ("restarting", ""),
        ("paused", "not-running"),
        ("completed", "not-running"),
        ("failed", "not-running"),
        ("poc-complete", "not-running"),
        ("stopped", "not-running"),
        ("waiting_gate", "not-running"),
    ],
)
def test_a_run_that_rests_takes_no_review(status: str, code: str) -> None:
    steps = {"review": {"status": "running", "iteration": 1, "verdict": None}}
    asked = Adopted(status=status, order="strict", schedule=SCHEDULE, position="review", steps=steps)
    if code:
        assert asked.refused("RecordReview", step="review", review="approved") == code
    else:
        assert asked.do("RecordReview", step="review", review="approved") == ["ReviewRecorded"]


def test_one_that_waits_for_evidence_does_and_one_that_waits_for_a_person_does_not() -> None:
    asked = Asked(order="strict", schedule=SCHEDULE, evidence={"ONE->TWO": {"required": ["a.md"]}})
    for _ in range(2):
        asked.do("Advance", facts={})
    assert asked.do("Advance", facts={}) == ["Blocked"]
    assert asked.do("RecordReview", step="review", review="approved") == ["ReviewRecorded"], (
        "the review may be what is missing"
    )
    asked.do("Unblock")
    asked.do("Block", reason="a person's")
    assert asked.refused("RecordReview", step="review", review="approved") == "not-running"


def test_an_engine_reviews_by_itself() -> None:
    from tests.unit.core.by_command import Driven

    run = Driven("documents: docs/{slug}\nsteps:\n  - {id: a, agent: {role: researcher, mode: focused, focus: x}}\n")
    assert run.refused("RecordReview", step="a", review="approved") == "engine-driven"


# ---- counters


def test_counters_only_grow() -> None:
    asked = in_review()
    assert asked.do("CountReview", step="review") == asked.do("CountReview", step="review", fix_attempts=0) == []
    assert asked.do("CountReview", step="review", fix_attempts=2, dispatch_retries=1) == ["ReviewRecorded"]
    assert asked.run["reviews"]["review"] == {"fix_attempts": 2, "dispatch_retries": 1}
    assert asked.do("CountReview", step="review", fix_attempts=2, dispatch_retries=3) == [
        "ReviewRecorded"
    ] and asked.last[0]["changes"] == {"dispatch_retries": 3}
    for odd in (1, -1, 2.5, "3", True):
        assert asked.refused("CountReview", step="review", fix_attempts=odd) == "counter-back"
    assert asked.do("CountReview", step="review", fix_attempts=2) == []


# ---- coverage


@pytest.mark.parametrize(
    ("percent", "settings", "enough"),
    [
        (90, {}, True),
        (89.9, {}, False),
        (89, {}, False),
        (100, {}, True),
        (80, {"coverageThreshold": 80}, True),
        (79, {"coverageThreshold": 80}, False),
        (90, {"coverageThreshold": "10"}, True),
        (89, {"coverageThreshold": "10"}, False),
        (89, {"coverageThreshold": True}, False),
        (89, {"coverageThreshold": None}, False),
        (True, {"coverageThreshold": 1}, False),
        ("95", {}, False),
        (None, {}, False),
        (float("nan"), {}, False),
        (float("inf"), {}, False),
        (1e9, {}, False),
        (-1e9, {"coverageThreshold": -1e8}, False),
        (-5, {"coverageThreshold": -10}, True),
    ],
    ids=str,
)
def test_coverage_at_its_threshold(percent: Any, settings: Any, enough: bool) -> None:
    asked = in_tests(**settings)
    went = asked.do("RecordCoverage", step="tests", percent=percent)
    if enough:
        assert (
            went == ["ReviewRecorded"]
            and asked.run["position"] == "tests"
            and "approved" not in asked.run["reviews"]["tests"]
        )
    else:
        assert went == ["ReviewRecorded", "RouteTaken", "StepEnded", "StepStarted"]
        assert asked.run["position"] == "review" and asked.run["reviews"]["tests"]["approved"] is False
        said = asked.last[1]["reason"]
        assert (said == "no coverage figure") is (type(percent) not in (int, float) or not -1e9 < percent < 1e9)


def test_below_it_the_step_that_writes_tests_is_taken_again_a_bounded_number_of_times() -> None:
    asked = in_tests()
    for number in (2, 3):
        asked.do("RecordCoverage", step="tests", percent=10)
        assert (asked.run["position"], asked.last[3]["iteration"], asked.run["steps"]["tests"]["status"]) == (
            "review",
            number,
            "failed",
        )
        assert asked.last[2]["verdict"] == "LOW_COVERAGE"
        asked.do("RecordReview", step="review", review="approved")
        asked.do("Advance", facts={})
    assert asked.do("RecordCoverage", step="tests", percent=10) == ["ReviewRecorded", "Blocked"]
    assert (
        present(asked.run["blocked"])["reason"] == "Coverage 10% is below 90% after 2 rounds"
        and present(asked.run["blocked"])["stage"] == "TWO"
    )
    assert asked.run["reviews"]["tests"]["approved"] is False


def test_twenty_rounds_where_the_order_names_no_number() -> None:
    asked = in_tests(at_most=None)
    asked.run["routes"]["tests.coverage"] = 19
    assert asked.do("RecordCoverage", step="tests") == ["ReviewRecorded", "RouteTaken", "StepEnded", "StepStarted"]
    asked = in_tests(at_most=None)
    asked.run["routes"]["tests.coverage"] = 20
    assert asked.do("RecordCoverage", step="tests") == ["ReviewRecorded", "Blocked"]
    assert present(asked.run["blocked"])["reason"] == "No coverage figure after 20 rounds"


def test_a_step_that_was_never_in_is_entered_for_the_first_time() -> None:
    asked = in_tests()
    del asked.run["steps"]["review"]
    asked.do("RecordCoverage", step="tests", percent=1)
    assert asked.last[3]["iteration"] == 1
