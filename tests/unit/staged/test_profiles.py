"""The profiles of the state file and the pipelines of the engine say the same."""

from __future__ import annotations

import pytest

from tenuto.core.pipeline.check import stage_gates
from tenuto.knowledge import definitions
from tenuto.views.staged_document import DEFAULTS, OUTPUTS, PROFILES, evidence_of, profile_of, schedule_of

SEED_GATES = {
    "EXPLORE->PLAN": {"required": ["0-explore.md"], "step": "0"},
    "PLAN->IMPLEMENT": {"required": ["1.2-plan.md", "1.3-plan-review.json"], "step": "1.3"},
    "IMPLEMENT->TEST": {"required": ["2.1-tasks.json", "2.3-impl-review.json"], "step": "2.3"},
    "TEST->FINAL": {
        "required": ["3.1-test-results.json", "3.3-test-dev.json", "3.5-test-review.json"],
        "step": "3.5",
    },
    "FINAL->COMPLETE": {"required": ["4.2-final-review.json"], "step": "4.2"},
}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_and_its_pipeline_have_the_same_phases_gates_and_settings(profile: str) -> None:
    pipeline = definitions.load(f"staged-{profile}")
    schedule = schedule_of(profile)
    assert [(entry["step"], entry["stage"], entry["name"], entry["type"]) for entry in schedule] == [
        (step["id"], step["stage"], step["name"], step["type"]) for step in pipeline["steps"]
    ]
    gates = {
        f"{gate['stage']}->{gate['next']}": {"required": gate["required"], "step": gate["step"]}
        for gate in stage_gates(pipeline)
    }
    assert evidence_of(schedule) == gates
    assert pipeline["settings"] == {"pipelineProfile": profile, **DEFAULTS}
    for step in pipeline["steps"]:
        if step["kind"] == "agent":
            assert step["agent"]["out"] == [OUTPUTS[step["id"]]]


@pytest.mark.parametrize("profile", ["standard", "thorough"])
def test_the_coverage_loop_is_the_pipelines(profile: str) -> None:
    step = next(step for step in definitions.load(f"staged-{profile}")["steps"] if step["id"] == "3.5")
    route = step["on"]["LOW_COVERAGE"]
    entry = next(entry for entry in schedule_of(profile) if entry["step"] == "3.5")
    assert route["do"] == "route"
    assert entry["coverage"] == {"back_to": route["route"][0]["step"], "at_most": route["at_most"]}


def test_the_thorough_gates_are_the_seeds() -> None:
    assert evidence_of(schedule_of("thorough")) == SEED_GATES


def test_the_minimal_profile_has_three_gates() -> None:
    assert [entry["step"] for entry in schedule_of("minimal")] == ["0", "2.1", "2.3", "4.2", "4.3"]
    assert evidence_of(schedule_of("minimal")) == {
        "EXPLORE->IMPLEMENT": {"required": ["0-explore.md"], "step": "0"},
        "IMPLEMENT->FINAL": {"required": ["2.1-tasks.json", "2.3-impl-review.json"], "step": "2.3"},
        "FINAL->COMPLETE": {"required": ["4.2-final-review.json"], "step": "4.2"},
    }


def test_the_standard_profile_leaves_out_two_phases() -> None:
    assert sorted(set(PROFILES["thorough"]) - set(PROFILES["standard"])) == ["2.2", "3.2"]
    assert len(PROFILES["standard"]) == 13


@pytest.mark.parametrize("profile", ["standard", "thorough"])
def test_without_tests_implementation_leads_to_the_final_stage(profile: str) -> None:
    schedule = schedule_of(profile, tests=False)
    assert not [entry for entry in schedule if entry["stage"] == "TEST"]
    assert evidence_of(schedule)["IMPLEMENT->FINAL"]["required"] == ["2.1-tasks.json", "2.3-impl-review.json"]
    assert "IMPLEMENT->TEST" not in evidence_of(schedule)


def test_without_a_profile_the_engine_and_init_take_the_same() -> None:
    """All fifteen phases, as the seed's own schedule has them."""
    assert definitions.load("staged")["name"] == f"staged-{profile_of(None, None)}" == "staged-thorough"
