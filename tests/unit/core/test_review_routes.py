"""`review`, `coverage` and `revise`: the routes they stand for, their bounds, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.by_check import agent, checked, wrong

AT = "steps.1"


def steps(**more: Any) -> list[Any]:
    return [agent("a", stage="S"), agent("r", stage="S", **more)]


def after(word: str, settings: Any = None, **more: Any) -> list[tuple[str, Any]]:
    """Each way that is taken in turn: its counter and its bound; at the end what stops."""
    outcome = checked(*steps(**more), settings=settings)["r"]["on"][word]
    found: list[tuple[str, Any]] = []
    while outcome["do"] == "route":
        found.append((outcome["counter"], outcome["at_most"]))
        outcome = outcome["then"]
    return [*found, (outcome["do"], outcome.get("reason"))]


END = ("block", "R does not pass")
POLICY = {"p": {"minBlockSeverity": "HIGH", "maxFixAttempts": 7, "maxStageRestarts": 2}}


@pytest.mark.parametrize(
    ("review", "ways"),
    [
        ({"fix": "a"}, [("r.fix", 10), END]),
        ({"restart": "S"}, [("restart.S", 3), END]),
        ({"supplementary": "on-issues"}, [("r.supplementary", 1), END]),
        ({"supplementary": "never"}, [END]),
        (
            {"fix": "a", "max_fix_attempts": 1000, "restart": "S", "max_stage_restarts": 0},
            [("r.fix", 1000), ("restart.S", 0), END],
        ),
        ({"fix": "a", "policy": "p"}, [("r.fix", 7), END]),
        ({"fix": "a", "restart": "S", "policy": "p", "max_fix_attempts": 1}, [("r.fix", 1), ("restart.S", 2), END]),
        ({}, [("fail", "")]),
    ],
)
def test_a_second_opinion_fixes_the_stage_again_and_then_a_person(review: Any, ways: Any) -> None:
    assert after("NEEDS_REVISION", POLICY, review=review) == ways


@pytest.mark.parametrize(
    ("review", "severity"),
    [
        ({}, "LOW"),
        ({"min_block_severity": "MEDIUM"}, "MEDIUM"),
        ({"policy": "p"}, "HIGH"),
        ({"policy": "p", "min_block_severity": "LOW"}, "LOW"),
    ],
)
def test_from_which_severity_on_an_issue_blocks(review: Any, severity: str) -> None:
    step = checked(*steps(review=review), settings=POLICY)["r"]
    assert (step["rule"], step["review"]) == ("review", {"min_block_severity": severity})


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"review": 5}, (f"{AT}.review", "wrong-type")),
        ({"review": {"colour": 1}}, (f"{AT}.review.colour", "unknown-key")),
        ({"review": {"policy": "q"}}, (f"{AT}.review.policy", "unknown-setting")),
        ({"review": {"min_block_severity": "SOME"}}, (f"{AT}.review.min_block_severity", "unknown-value")),
        ({"review": {"fix": "a", "max_fix_attempts": 1001}}, (f"{AT}.review.max_fix_attempts", "out-of-range")),
        ({"review": {"fix": "z"}}, (f"{AT}.review.route.0", "unknown-step")),
        ({"rule": "review"}, (f"{AT}.rule", "contradiction")),
        ({"review": {}, "rule": "word"}, (f"{AT}.rule", "contradiction")),
        ({"coverage": 5}, (f"{AT}.coverage", "wrong-type")),
        ({"coverage": {"threshold": 5, "colour": 1}}, (f"{AT}.coverage.colour", "unknown-key")),
        ({"coverage": {}}, (f"{AT}.coverage", "missing")),
        ({"coverage": {"threshold": 101}}, (f"{AT}.coverage.threshold", "out-of-range")),
        ({"coverage": {"threshold": "q"}}, (f"{AT}.coverage.threshold", "unknown-setting")),
        ({"coverage": {"threshold": 5, "back_to": "a"}}, (f"{AT}.coverage", "unbounded-route")),
        ({"coverage": {"threshold": "p"}}, ("settings.p", "wrong-type")),
    ],
)
def test_what_is_wrong_with_a_review_or_a_measure(more: Any, problem: Any) -> None:
    assert problem in wrong(*steps(**more), settings=POLICY)


@pytest.mark.parametrize(("threshold", "percent"), [(0, 0), (90, 90), (100, 100), ("coverageThreshold", 85)])
def test_the_threshold_is_a_number_or_a_setting(threshold: Any, percent: int) -> None:
    assert checked(*steps(coverage={"threshold": threshold}), settings={"coverageThreshold": 85})["r"]["coverage"] == {
        "threshold": percent
    }


def test_too_little_coverage_leads_back_and_then_to_a_person() -> None:
    back = {"threshold": 90, "back_to": "a", "at_most": 20}
    assert after("LOW_COVERAGE", coverage=back) == [("r.coverage", 20), ("block", "")]
    assert after("LOW_COVERAGE", coverage={**back, "then": {"pause": "look"}}) == [
        ("r.coverage", 20),
        ("pause", "look"),
    ]
    assert after("LOW_COVERAGE", coverage={"threshold": 90}) == [("pause", "LOW_COVERAGE")]
