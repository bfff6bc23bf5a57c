"""The review policy and the coverage loop: what follows a review, and where it ends."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.decide import decide
from tenuto.core.fold import apply, new_repo, new_run
from tenuto.dialects.staged.profiles import evidence_of, schedule_of
from tenuto.errors import Refused
from tests.unit.staged.conftest import APPROVED, REJECTED, Repository

DATA = Path(__file__).parent.parent.parent / "data" / "reviews"


def run_at(phase: str, **policy: Any) -> Any:
    """A run in this phase, without a repository: the rules are core's."""
    schedule = schedule_of("thorough")
    run = new_run()
    limits = {"minBlockSeverity": "LOW", "maxFixAttempts": 2, "maxStageRestarts": 1} | policy.pop("policy", {})
    ask(run, {
        "do": "StartRun", "run": "r", "name": "r", "pipeline": {"name": "staged-thorough", "hash": None}, "order": "strict",
        "schedule": schedule, "evidence": evidence_of(schedule), "settings": {"reviewPolicy": limits, **policy},
    })  # fmt: skip
    walk(run, phase)
    return run


def ask(run: Any, command: Any) -> list[Any]:
    stamped = {"at": "2026-01-01T00:00:00.000Z", "by": "user", **command}
    events = decide(None, new_repo(), run if run["version"] else None, stamped)
    for event in events:
        apply(run, event)
    return list(events)


def everything(run: Any) -> Any:
    """The facts when every output is there."""
    facts = {"exists": True, "filled": True, "parses": True, "recorded": True}
    names = [name for gate in run["evidence"].values() for name in gate["required"]]
    return {name: facts | {"step": name.partition("-")[0]} for name in names}


def walk(run: Any, phase: str) -> None:
    while run["position"] != phase:
        here = next((entry for entry in run["schedule"] if entry["step"] == run["position"]), {})
        if here.get("type") == "review":
            review(run, APPROVED)
        ask(run, {"do": "Advance", "facts": everything(run)})


def review(run: Any, answer: Any) -> Any:
    ask(run, {"do": "RecordReview", "step": run["position"], "review": answer})
    return run["reviews"].get(run["position"], {})


# ---- what counts as approved ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "least", "approved"),
    [
        (APPROVED, "LOW", True),
        ({"status": "approved"}, "LOW", True),
        ({"status": "Approved", "issues": []}, "LOW", True),
        ({"approved": True, "issues": []}, "LOW", True),
        ("approved", "LOW", True),
        ({"status": "approved", "issues": [{"severity": "LOW"}]}, "LOW", False),
        ({"status": "approved", "issues": [{"severity": "low"}]}, "MEDIUM", True),
        ({"status": "approved", "issues": [{"severity": "Medium"}]}, "MEDIUM", False),
        ({"status": "approved", "issues": [{"severity": "medium"}]}, "HIGH", True),
        ({"status": "approved", "issues": [{"severity": "catastrophic"}]}, "HIGH", False),
        ({"status": "approved", "issues": [{}]}, "HIGH", False),
        ({"status": "approved", "issues": ["text"]}, "HIGH", False),
        ({"status": "blocked", "issues": []}, "HIGH", False),
        ({"status": "needs_revision", "issues": []}, "HIGH", False),
        ({"status": "fine"}, "LOW", False),
        ({}, "LOW", False),
        ({"approved": True, "status": "needs_revision"}, "LOW", False),
        ([], "LOW", False),
        (None, "LOW", False),
    ],
)
def test_only_a_clear_approval_without_blocking_issues_approves(answer: Any, least: str, approved: bool) -> None:
    run = run_at("1.3", policy={"minBlockSeverity": least})
    assert review(run, answer)["approved"] is approved


@pytest.mark.parametrize("name", ["review-approved", "review-multi-file-issues", "review-single-file-issues"])
def test_real_reviews_are_judged_as_they_read(name: str) -> None:
    answer = json.loads((DATA / f"{name}.json").read_text())
    assert review(run_at("1.3"), answer)["approved"] is (name == "review-approved")


# ---- what follows --------------------------------------------------------------------------------------


def test_second_opinion_then_fixes_then_restarts_then_blocked() -> None:
    """on-issues: 1 supplementary run, 2 fixes, 1 restart with counters reset, and again, then a person."""
    run, seen = run_at("1.3"), []
    while run["status"] != "blocked":
        if run["position"] != "1.3":
            walk(run, "1.3")
        before = len(run["restarts"])
        review(run, REJECTED)
        seen.append("restart" if len(run["restarts"]) > before else run["reviews"]["1.3"]["next"])
    assert seen == ["supplementary", "fix", "fix", "restart", "supplementary", "fix", "fix", "blocked"]
    assert [restart["stage"] for restart in run["restarts"]] == ["PLAN"]
    assert run["blocked"]["stage"] == "PLAN" and "1.3" in run["blocked"]["reason"]


def test_without_a_supplementary_policy_fixes_come_first() -> None:
    assert review(run_at("1.3", supplementaryPolicy="never"), REJECTED)["next"] == "fix"


def test_a_blocked_review_needs_a_person() -> None:
    run = run_at("1.3", policy={"maxFixAttempts": 0, "maxStageRestarts": 0}, supplementaryPolicy="never")
    review(run, REJECTED)
    for command in (
        {"do": "RecordReview", "step": "1.3", "review": APPROVED},
        {"do": "Advance", "facts": everything(run)},
        {"do": "CheckEvidence", "gate": "PLAN->IMPLEMENT", "facts": everything(run)},
    ):
        with pytest.raises(Refused) as refusal:
            ask(run, command)
        assert refusal.value.code == "not-running"
    ask(run, {"do": "Unblock"})
    assert review(run, APPROVED)["approved"]


def test_a_run_without_an_order_or_off_its_schedule_does_not_finish_by_advancing() -> None:
    run = run_at("1.2")
    for changes in ({"schedule": []}, {"position": "somewhere else"}):
        lost = {**run, **changes}
        with pytest.raises(Refused) as refusal:
            ask(lost, {"do": "Advance", "facts": {}})
        assert refusal.value.code == "no-order"


def test_a_run_that_the_engine_drives_is_not_led_by_hand() -> None:
    run = run_at("1.3")
    run["driver"], run["pipeline"]["hash"], run["queue"] = "engine", "0" * 64, [{"step": "1.3"}]
    for command in (
        {"do": "Advance", "facts": everything(run)},
        {"do": "RecordReview", "step": "1.3", "review": APPROVED},
        {"do": "RestartStage", "stage": "PLAN", "reason": "x"},
    ):
        with pytest.raises(Refused) as refusal:
            ask(run, command)
        assert refusal.value.code == "engine-driven"


def test_a_review_counts_for_its_own_stay_only() -> None:
    """After a coverage round the phases in between are reviewed again."""
    run = run_at("3.5")
    ask(run, {"do": "RecordCoverage", "step": "3.5", "percent": 10})
    assert run["position"] == "3.3"
    ask(run, {"do": "Advance", "facts": {}})
    with pytest.raises(Refused) as refusal:
        ask(run, {"do": "Advance", "facts": {}})
    assert refusal.value.code == "not-reviewed"


def test_a_review_of_another_phase_or_of_no_review_is_refused() -> None:
    run = run_at("1.2")
    for step, code in (("1.3", "wrong-step"), ("1.2", "no-review"), ("9", "no-review")):
        with pytest.raises(Refused) as refusal:
            ask(run, {"do": "RecordReview", "step": step, "review": APPROVED})
        assert refusal.value.code == code


@pytest.mark.parametrize("junk", ["many", -1, None, True, 1.5])
def test_a_limit_that_is_no_number_is_the_default_never_none(junk: Any) -> None:
    run = run_at("1.3", policy={"maxFixAttempts": junk}, supplementaryPolicy="never")
    for _ in range(10):
        assert review(run, REJECTED)["next"] == "fix"
    review(run, REJECTED)
    assert run["restarts"]


def test_counters_only_grow() -> None:
    run = run_at("1.3")
    ask(run, {"do": "CountReview", "step": "1.3", "fix_attempts": 2})
    for value in (1, 0, -3, "3", True):
        with pytest.raises(Refused):
            ask(run, {"do": "CountReview", "step": "1.3", "fix_attempts": value})
    assert run["reviews"]["1.3"]["fix_attempts"] == 2


# ---- coverage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("percent", "position"), [(90, "3.5"), (90.0, "3.5"), (100, "3.5"), (89.9, "3.3"), (0, "3.3")])
def test_coverage_below_the_threshold_goes_back_to_writing_tests(percent: float, position: str) -> None:
    run = run_at("3.5")
    ask(run, {"do": "RecordCoverage", "step": "3.5", "percent": percent})
    assert run["position"] == position


@pytest.mark.parametrize("percent", [None, "95", True, float("nan"), float("inf")])
def test_a_figure_that_is_none_is_below_every_threshold(percent: Any) -> None:
    run = run_at("3.5", coverageThreshold=0)
    ask(run, {"do": "RecordCoverage", "step": "3.5", "percent": percent})
    assert run["position"] == "3.3"


def test_coverage_rounds_end_after_twenty_and_a_restart_gives_none_back() -> None:
    run = run_at("3.5", policy={"maxStageRestarts": 9})
    for number in range(20):
        ask(run, {"do": "RecordCoverage", "step": "3.5", "percent": 50})
        if number == 10:
            ask(run, {"do": "RestartStage", "stage": "TEST", "reason": "why not"})
        walk(run, "3.5")
    ask(run, {"do": "RecordCoverage", "step": "3.5", "percent": 50})
    assert run["status"] == "blocked" and "50%" in run["blocked"]["reason"]
    assert run["routes"] == {"3.5.coverage": 20}


def test_a_coverage_figure_in_the_review_is_taken(started: Repository) -> None:
    started.go_to("3.5")
    answer = started.output("3.5", {**APPROVED, "coverage": {"percent": 71.5}})
    assert (answer["coverage"], answer["currentPhase"]) == (71.5, "3.3")
    started.go_to("3.5")
    answer = started.output("3.5", {**APPROVED, "coverage": 93})
    assert answer["review"]["approved"] and answer["currentPhase"] == "3.5"
    assert started.staged.record_coverage(20)["currentPhase"] == "3.3"


# ---- whatever reviewers answer ---------------------------------------------------------------------------


ANSWERS = st.one_of(
    st.sampled_from([APPROVED, REJECTED, None, {}, {"status": "approved", "issues": [{"severity": "HIGH"}]}]),
    st.dictionaries(st.sampled_from(["status", "issues", "approved"]), st.one_of(st.text(max_size=8), st.booleans())),
)


@settings(max_examples=60)
@given(st.lists(ANSWERS, min_size=1, max_size=60), st.integers(0, 3), st.integers(0, 2))
def test_whatever_reviewers_answer_no_limit_is_passed_and_nothing_unapproved_advances(
    answers: list[Any], fixes: int, restarts: int
) -> None:
    run = run_at("1.3", policy={"maxFixAttempts": fixes, "maxStageRestarts": restarts})
    for answer in answers:
        if run["status"] == "blocked" and not run["blocked"]["missing"]:
            break
        walk(run, "1.3")
        said = review(run, answer)
        assert said.get("fix_attempts", 0) <= fixes
        assert len(run["restarts"]) <= restarts
        if run["position"] == "1.3" and not said["approved"]:
            with suppress(Refused):
                ask(run, {"do": "Advance", "facts": everything(run)})
            assert run["position"] == "1.3"
