"""The review policy and the coverage loop: what follows a review, and where it ends."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.rules import coverage
from tenuto.errors import Refused
from tenuto.views.staged_document import evidence_of, schedule_of
from tests.unit.staged.conftest import APPROVED, REJECTED, Repository

DATA = Path(__file__).parent.parent.parent / "data" / "reviews"


def run_at(phase: str, **policy: Any) -> Any:
    """A run in this phase, without a repository: the rules are core's."""
    schedule = schedule_of("thorough")
    run = new_run()
    limits = {"minBlockSeverity": "LOW", "maxFixAttempts": 2, "maxStageRestarts": 1} | policy.pop("policy", {})
    ask(
        run,
        {
            "do": "StartRun",
            "run": "r",
            "name": "r",
            "pipeline": {"name": "staged-thorough", "hash": None},
            "order": "strict",
            "schedule": schedule,
            "evidence": evidence_of(schedule),
            "settings": {"reviewPolicy": limits, **policy},
        },
    )
    walk(run, phase)
    return run


def ask(run: Any, command: Any) -> list[Any]:
    stamped: Any = {"at": "2026-01-01T00:00:00.000Z", "by": "user", **command}
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
        here: Any = next((entry for entry in run["schedule"] if entry["step"] == run["position"]), {})
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
    elsewhere: list[dict[str, Any]] = [{"schedule": []}, {"position": "somewhere else"}]
    for changes in elsewhere:
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


@pytest.mark.parametrize(
    ("said", "percent", "met"),
    [
        ({"coverage": 87.3}, 87.3, True),
        ({"coverage": "87.3%"}, 87.3, True),
        ({"coverage": " 87.3 % "}, 87.3, True),
        ({"coverage": {"current": 87.3, "threshold": 90, "met": False}}, 87.3, False),
        ({"coverage": {"current": "95%", "threshold": 90, "met": True}}, 95.0, True),
        ({"coverage": {"current": 95, "met": "false"}}, 95.0, False),
        ({"coverage": {"current": 95, "met": None}}, 95.0, False),
        ({"coverage": {"percent": 71.5}}, 71.5, True),
        ({"coverage": {"total": {"lines": {"pct": 81.2}, "branches": {"pct": 60}}}}, 81.2, True),
        ({"coverage": {"lines": 88, "branches": 70}}, 88.0, True),
        ({"coverage": {"total": "92.0%"}}, 92.0, True),
        ({"coveragePercent": 40}, 40.0, True),
        ({"total_coverage": "40%"}, 40.0, True),
        ({"coverageStart": 45.2, "coverageFinal": 91.3, "threshold": 90}, 91.3, True),
        ({"lineCoverage": 95, "testCoverage": 60}, 60.0, True),
        ({"summary": {"tests": {"coverage": 55}}}, 55.0, True),
        ({"results": {"coverageMet": False}}, None, False),
        ({"coverage": {"totals": {"percent_covered": 71.3, "covered_lines": 5, "num_statements": 7}}}, 71.3, True),
        ({"coverage": {"line-rate": 0.75, "branch-rate": 1}}, 75.0, True),
        ({"coverage": {"LF": 100, "LH": 71}}, 71.0, True),
        ({"coverage": {"lines": {"total": 200, "covered": 150, "pct": 75}}}, 75.0, True),
        ({"coverage": {"lines_covered": 71, "lines_valid": 100}}, 71.0, True),
        ({"coverage": "coverage: 71.4% of statements"}, 71.4, True),
        ({"coverage": "total:\t(statements)\t71.4%"}, 71.4, True),
        ({"coverage": "a.py 10 0 100%\nb.py 10 5 50%\nTOTAL 20 5 75%"}, 75.0, True),
        ({"coverage": "71% of lines, 90% of branches"}, None, True),
        ({"coverage": "a.py 100%\nb.py 50%"}, None, True),
        ({"coverage": "fell by -5%"}, None, True),
        ({"coverage": 101}, None, True),
        ({"coverage": {"covered": 9, "total": 7}}, None, True),
        ({"coverage": "unknown"}, None, True),
        ({"coverage": None}, None, True),
        ({"coverage": {}}, None, True),
        ({"coverage": {"threshold": 90}}, None, True),
        ({"coverage": True}, None, True),
        ({"coverage": [90]}, None, True),
        ({"coverage": "NaN"}, None, True),
        ({"coverage": -3}, None, True),
    ],
)
def test_coverage_is_read_in_every_form_it_is_written_in(said: Any, percent: float | None, met: bool) -> None:
    assert coverage({"status": "approved", **said}) == {"percent": percent, "met": met}


@pytest.mark.parametrize(
    "said",
    [{}, {"coverageThreshold": 90}, {"coverageGaps": []}, {"issues": [{"coverage": 3}]}, {"summary": "coverage"}],
)
def test_a_review_may_say_nothing_about_coverage(said: Any) -> None:
    assert coverage({"status": "approved", **said}) is None


@pytest.mark.parametrize(
    "said",
    [
        {"coverage": {"current": 71, "threshold": 90, "met": False}},
        {"coverage": {"current": 95, "threshold": 99, "met": False}},
        {"coverage": {"current": 71, "met": True}},
        {"coverage": "71%"},
        {"coverage": "not measured"},
        {"coverage": {}},
        {"status": "needs_coverage", "coverage": {"current": 71, "threshold": 90, "met": False}},
        {"status": "needs_coverage"},
        {"status": "Needs-Coverage", "coverage": 95},
    ],
)
def test_an_approval_without_enough_coverage_goes_back_to_writing_tests(started: Repository, said: Any) -> None:
    """By a person's hand; no fix attempt is spent, and nothing passes the gate."""
    started.go_to("3.5")
    answer = started.output("3.5", {**APPROVED, **said})
    assert answer["review"]["approved"] is False and answer["review"]["next"] == "coverage"
    assert started.state["currentPhase"] == "3.3"
    assert started.workspace.load("add-dark-mode")["reviews"]["3.5"].get("fix_attempts", 0) == 0


def test_coverage_that_is_asked_for_beside_other_issues_is_a_failed_review() -> None:
    run = run_at("3.5")
    assert review(run, {"status": "needs_coverage", "issues": [{"severity": "HIGH"}]})["next"] == "supplementary"
    assert run["position"] == "3.5"


def test_another_program_cannot_go_past_coverage_that_is_too_low(started: Repository) -> None:
    started.go_to("3.5")
    low = {**APPROVED, "coverage": {"current": 71, "threshold": 90, "met": False}}
    (started.phases / "3.5-test-review.json").write_text(json.dumps(low))
    started.edit(currentPhase="4.1", currentStage="FINAL")
    with pytest.raises(Refused, match="below 90%"):
        started.staged.read()


def test_coverage_loops_of_hooks_keep_their_figure(started: Repository) -> None:
    started.go_to("3.5")
    started.edit(currentPhase="3.3", coverageLoop={"iteration": 1, "currentCoverage": 71.5})
    started.staged.read()
    assert started.workspace.load("add-dark-mode")["reviews"]["3.5"]["coverage"] == 71.5


# ---- of which visit ------------------------------------------------------------------------------------


def test_a_review_that_was_recorded_before_its_phase_does_not_count(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    for phase in ("0", "2.1", "2.3"):
        repository.output(phase)
    repository.staged.advance()
    repository.staged.advance()
    assert repository.staged.advance() == {"passed": False, "missing": ["2.3-impl-review.json"]}
    with pytest.raises(Refused) as refusal:
        repository.staged.record_output("2.3")
    assert refusal.value.code == "stale-review" and "recorded before phase 2.3 began" in refusal.value.message
    assert repository.staged.record_review(APPROVED)["review"]["approved"]
    assert repository.staged.advance()["currentPhase"] == "4.2"


def test_a_review_that_lay_there_before_the_work_is_not_taken(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    old = repository.phases / "2.3-impl-review.json"
    old.write_text(json.dumps(APPROVED))
    os.utime(old, (1_000_000_000, 1_000_000_000))
    repository.go_to("2.3")
    with pytest.raises(Refused, match="is older than"):
        repository.staged.record_output("2.3")
    old.write_text(json.dumps(APPROVED))
    assert repository.staged.record_output("2.3")["review"]["approved"]


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
