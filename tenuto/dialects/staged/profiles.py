"""The three profiles of a staged run: its phases, its gates, and what each phase leaves behind.

Literal data in the words of state.json. The pipelines staged-minimal, staged-standard and staged-thorough
say the same for the engine; tests/unit/staged/test_profiles.py holds both together.
"""

from __future__ import annotations

from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Evidence, Json, ScheduledStep

STAGES = ("EXPLORE", "PLAN", "IMPLEMENT", "TEST", "FINAL")
COMPLETE = "COMPLETE"
PHASES = (
    ("0", "EXPLORE", "Explore", "dispatch"),
    ("1.1", "PLAN", "Brainstorm", "subagent"),
    ("1.2", "PLAN", "Plan", "dispatch"),
    ("1.3", "PLAN", "Plan Review", "review"),
    ("2.1", "IMPLEMENT", "Task Execution", "dispatch"),
    ("2.2", "IMPLEMENT", "Simplify", "subagent"),
    ("2.3", "IMPLEMENT", "Implementation Review", "review"),
    ("3.1", "TEST", "Run Tests & Analyze", "subagent"),
    ("3.2", "TEST", "Analyze Failures", "subagent"),
    ("3.3", "TEST", "Develop Tests", "subagent"),
    ("3.4", "TEST", "Test Dev Review", "review"),
    ("3.5", "TEST", "Test Review", "review"),
    ("4.1", "FINAL", "Documentation", "subagent"),
    ("4.2", "FINAL", "Final Review", "review"),
    ("4.3", "FINAL", "Completion", "subagent"),
)
OUTPUTS = {
    "0": "0-explore.md",
    "1.1": "1.1-brainstorm.md",
    "1.2": "1.2-plan.md",
    "1.3": "1.3-plan-review.json",
    "2.1": "2.1-tasks.json",
    "2.2": "2.2-simplify.md",
    "2.3": "2.3-impl-review.json",
    "3.1": "3.1-test-results.json",
    "3.2": "3.2-analysis.md",
    "3.3": "3.3-test-dev.json",
    "3.4": "3.4-test-dev-review.json",
    "3.5": "3.5-test-review.json",
    "4.1": "4.1-docs.md",
    "4.2": "4.2-final-review.json",
    "4.3": "4.3-completion.md",
}
PROFILES: dict[str, tuple[str, ...]] = {
    "minimal": ("0", "2.1", "2.3", "4.2", "4.3"),
    "standard": ("0", "1.1", "1.2", "1.3", "2.1", "2.3", "3.1", "3.3", "3.4", "3.5", "4.1", "4.2", "4.3"),
    "thorough": tuple(phase for phase, _, _, _ in PHASES),
}
COMPLEXITY = {"simple": "minimal", "medium": "standard", "complex": "thorough"}
# What a stage must have left behind before the next may begin, and the phase that completes it.
_EVIDENCE = {
    "EXPLORE": (("0",), "0"),
    "PLAN": (("1.2", "1.3"), "1.3"),
    "IMPLEMENT": (("2.1", "2.3"), "2.3"),
    "TEST": (("3.1", "3.3", "3.5"), "3.5"),
    "FINAL": (("4.2",), "4.2"),
}
_COVERAGE = {"3.5": {"back_to": "3.3", "at_most": 20}}


def known_profile(profile: object) -> str:
    """The profile of a file or a setting; the whole, where there is none of this name."""
    return profile if isinstance(profile, str) and profile in PROFILES else "thorough"


def profile_of(profile: object, complexity: object) -> str:
    """The profile that was asked for, else the one for this complexity, else the whole."""
    if profile is not None:
        if not isinstance(profile, str) or profile not in PROFILES:
            raise BadInput("bad-profile", f"there is no profile {profile!r}", f"one of {', '.join(PROFILES)}")
        return profile
    if complexity is None:
        return "thorough"
    if not isinstance(complexity, str) or complexity not in COMPLEXITY:
        raise BadInput("bad-complexity", f"there is no complexity {complexity!r}", f"one of {', '.join(COMPLEXITY)}")
    return COMPLEXITY[complexity]


def schedule_of(profile: str, tests: bool = True) -> list[ScheduledStep]:
    made: list[ScheduledStep] = []
    for phase, stage, name, kind in PHASES:
        if phase in PROFILES[profile] and (tests or stage != "TEST"):
            entry: ScheduledStep = {"step": phase, "stage": stage, "name": name, "type": kind}
            if phase in _COVERAGE:
                entry["coverage"] = dict(_COVERAGE[phase])
            made.append(entry)
    return made


def evidence_of(schedule: list[ScheduledStep]) -> dict[str, Evidence]:
    stages = list(dict.fromkeys(entry["stage"] for entry in schedule))
    gates: dict[str, Evidence] = {}
    for stage, following in zip(stages, [*stages[1:], COMPLETE], strict=True):
        phases, last = _EVIDENCE[stage]
        gates[f"{stage}->{following}"] = {"required": [OUTPUTS[phase] for phase in phases], "step": last}
    return gates


def phase_of_file(name: str) -> str:
    """1.3-plan-review.json -> 1.3"""
    return name.partition("-")[0]


def with_coverage(schedule: list[ScheduledStep]) -> list[ScheduledStep]:
    """A schedule as a file tells it, with the loop that the file does not tell."""
    steps = [entry["step"] for entry in schedule]
    for entry in schedule:
        loop: Json = _COVERAGE.get(entry["step"], {})
        if loop and loop["back_to"] in steps:
            entry["coverage"] = dict(loop)
    return schedule


def agents(codex: bool) -> dict[str, Any]:
    """Who does what, with and without the second program."""
    reviewer = "subagents:codex-reviewer" if codex else "subagents:claude-reviewer"
    prefix = "subagents:codex-" if codex else "subagents:"
    return {
        "reviewer": reviewer,
        "failureAnalyzer": f"{prefix}failure-analyzer",
        "difficultyEstimator": f"{prefix}difficulty-estimator",
        "testDeveloper": f"{prefix}test-developer",
        "docUpdater": f"{prefix}doc-updater",
    }


DEFAULTS: Json = {
    "codexTimeout": {
        "reviewPhases": 300000, "finalReviewPhases": None, "implementPhases": 1800000, "testPhases": 600000,
        "explorePhases": 600000, "maxRetries": 2,
    },
    "supplementaryPolicy": "on-issues",
    "coverageThreshold": 90,
    "webSearch": True,
    "reviewPolicy": {"minBlockSeverity": "LOW", "maxFixAttempts": 10, "maxStageRestarts": 3},
}  # fmt: skip
