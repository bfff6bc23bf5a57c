"""The shipped pipelines are what their seeds say: phases, names, files, routes, limits. One test per row."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.budget import worst_case
from tenuto.core.pipeline.check import check, routes, seats, stage_gates
from tenuto.knowledge import definitions
from tests.support.present import present

PIPELINES: dict[str, Any] = {name: definitions.load(name) for name in definitions.shipped()}


def step(pipeline: str, name: str) -> Any:
    return next(found for found in PIPELINES[pipeline]["steps"] if found["id"] == name)


def way(outcome: Any) -> list[str]:
    return [leg["step"] + "".join(f":{leg[key]}" for key in ("mode", "items") if leg[key]) for leg in outcome["route"]]


def seat_of(name: str) -> list[Any]:
    found = [seat for one in PIPELINES["eight-step"]["steps"] for seat in seats(one) if seat["role"] == name]
    assert found
    return found


def test_eleven_pipelines_ship() -> None:
    assert set(PIPELINES) == {
        "quick",
        "fix",
        "eight-step",
        "orchestrate",
        "poc",
        "graduate",
        "ticket",
        "staged-minimal",
        "staged-standard",
        "staged-thorough",
        "feature-dev",
    }


@pytest.mark.parametrize("name", PIPELINES)
def test_a_shipped_pipeline_checks_to_itself_and_has_a_finite_worst_case(name: str) -> None:
    assert check(PIPELINES[name]) == (PIPELINES[name], [])
    assert 0 < worst_case(PIPELINES[name], 3)["attempts"] < 3000


# ---- eight-step: global rules ------------------------------------------------------------------------


def test_eight_step_runs_its_steps_in_the_seeds_order() -> None:
    assert [(one["number"], one["id"]) for one in PIPELINES["eight-step"]["steps"]] == [
        ("0", "setup"),
        ("1.1", "research"),
        ("1.2", "synthesis"),
        ("1.2a", "post-research"),
        ("2", "spec"),
        ("3", "design"),
        ("3b", "design-review"),
        ("4", "planning"),
        ("4a", "post-planning"),
        ("5", "implementation"),
        ("6", "verification"),
        ("7", "review"),
    ]


def test_at_most_four_agents_run_at_once() -> None:
    assert PIPELINES["eight-step"]["cap"] == 4


def test_both_approval_gates_exist_only_in_approval_mode() -> None:
    gates = [one for one in PIPELINES["eight-step"]["steps"] if one["kind"] == "gate"]
    assert [(gate["id"], gate["when"]) for gate in gates] == [
        ("post-research", "approval"),
        ("post-planning", "approval"),
    ]
    assert PIPELINES["eight-step"]["switches"] == {"approval": False, "strict_plan": False}


def test_memory_is_initialised_at_step_0_pruned_after_1_2_and_2_and_4_and_lessons_are_extracted_between_waves() -> None:
    eight = PIPELINES["eight-step"]["steps"]
    assert step("eight-step", "setup")["action"] == ["write-request", "initialize-memory"]
    assert [one["number"] for one in eight if "prune-memory" in one["after"]] == ["1.2", "2", "4"]
    assert step("eight-step", "implementation")["between"] == ["extract-lessons"]


def test_a_lettered_step_counts_as_its_number_when_memory_is_pruned() -> None:
    assert step("eight-step", "design-review")["phase"] == step("eight-step", "design")["phase"] == 3


WRITERS = {
    "researcher/synthesis",
    "spec",
    "designer",
    "planner",
    "planner/replan",
    "ct-aggregator",
    "v-aggregator",
    "r-aggregator",
}


def test_only_sequential_agents_write_memory() -> None:
    found = [seat for one in PIPELINES["eight-step"]["steps"] for seat in seats(one) if seat["memory"] == "write"]
    assert {seat["role"] + (f"/{seat['mode']}" if seat["mode"] else "") for seat in found} == WRITERS


def test_every_agent_reads_the_request_and_memory() -> None:
    for one in PIPELINES["eight-step"]["steps"]:
        for seat in seats(one):
            assert seat["in"][:2] == ["initial-request.md", "memory.md"]


# ---- eight-step: expectations per agent ---------------------------------------------------------------

NOT_RETRIED = {"implementer", "documentation-writer", "r-knowledge", "v-aggregator", "r-aggregator"}
ALL = sorted({seat["role"] for one in PIPELINES["eight-step"]["steps"] for seat in seats(one)})


@pytest.mark.parametrize("role", ALL)
def test_an_agent_is_retried_once_on_error_unless_its_row_says_otherwise(role: str) -> None:
    for seat in seat_of(role):
        assert seat["retry"]["ERROR"] == (0 if role in NOT_RETRIED else 1)
        assert seat["retry"]["NEEDS_REVISION"] == 0


@pytest.mark.parametrize("role", ALL)
def test_no_agent_is_started_more_than_six_times_per_visit(role: str) -> None:
    for seat in seat_of(role):
        assert (1 + sum(seat["retry"].values())) * (1 + seat["transient"]) <= 6


@pytest.mark.parametrize("name", ["research", "synthesis", "spec", "design", "design-review", "planning"])
def test_a_persistent_error_halts(name: str) -> None:
    assert step("eight-step", name)["on"]["ERROR"] == {"do": "fail", "reason": ""}


@pytest.mark.parametrize("name", ["synthesis", "spec", "design", "planning"])
def test_a_revision_that_a_row_calls_not_applicable_is_an_error(name: str) -> None:
    one = step("eight-step", name)
    assert one["agent"]["verdicts"] == ["DONE", "ERROR"]
    assert one["on"]["NEEDS_REVISION"] == one["on"]["ERROR"]


def test_research_and_design_review_go_on_with_two_outputs() -> None:
    for name in ("research", "design-review", "review"):
        assert step("eight-step", name)["cluster"]["quorum"] == 2
        assert len(step("eight-step", name)["cluster"]["members"]) == 4


def test_ct_revision_goes_to_the_designer_once_and_then_on_with_constraints() -> None:
    """ "CT asks for revision twice": the second time, planning begins and gets the tensions as constraints."""
    one = step("eight-step", "design-review")
    route = one["on"]["NEEDS_REVISION"]
    assert (way(route), route["at_most"], route["with"]) == (
        ["design", "design-review"],
        1,
        ["design_critical_review.md"],
    )
    assert route["then"] == {"do": "go_on", "to": "planning", "carry": "constraints"}
    assert one["rule"] == "ct"


def test_implementation_errors_lead_to_verification_and_documentation_stops_nothing() -> None:
    one = step("eight-step", "implementation")
    assert one["on"]["ERROR"]["to"] == one["on"]["DONE"]["to"] == "verification"
    assert one["waves"]["on_item_error"] == "stop"
    assert {seat["role"]: seat["weight"] for seat in one["waves"]["seats"]} == {
        "implementer": "normal",
        "documentation-writer": "never-blocks",
    }
    assert (one["waves"]["default"], one["waves"]["order"], one["waves"]["per_item"]) == (
        "implementer",
        "barrier",
        "named",
    )


def test_planner_limits_per_item_are_warnings() -> None:
    waves = step("eight-step", "implementation")["waves"]
    assert waves["limits"] == {"files": 3, "depends_on": 2, "lines": 500, "effort": "Medium"}
    assert waves["strict"] == "strict_plan" and PIPELINES["eight-step"]["switches"]["strict_plan"] is False


def test_the_build_is_verified_first_and_its_error_still_reaches_the_aggregator() -> None:
    one = step("eight-step", "verification")
    assert one["cluster"]["first"]["role"] == "v-build"
    assert [seat["role"] for seat in one["cluster"]["members"]] == ["v-tests", "v-tasks", "v-feature"]
    assert (one["cluster"]["quorum"], one["aggregate"]["role"], one["rule"]) == (0, "v-aggregator", "v")


def test_verification_replans_at_most_three_times_for_revisions_and_errors_together_then_goes_on() -> None:
    on = step("eight-step", "verification")["on"]
    assert on["NEEDS_REVISION"] == on["ERROR"]
    assert way(on["ERROR"]) == ["planning:replan", "implementation:failing", "verification"]
    assert (on["ERROR"]["at_most"], on["ERROR"]["with"]) == (3, ["verifier.md"])
    assert on["ERROR"]["then"] == {"do": "go_on", "to": "review", "carry": ""}


def test_review_findings_go_to_affected_implementers_once_then_to_a_full_replan_once_then_fail() -> None:
    route = step("eight-step", "review")["on"]["NEEDS_REVISION"]
    assert (way(route), route["at_most"]) == (["implementation:affected", "review"], 1)
    replan = route["then"]
    assert (way(replan), replan["at_most"]) == (["planning:replan", "implementation:due", "verification", "review"], 1)
    assert replan["then"]["do"] == "fail"


def test_a_security_error_asks_security_once_more_then_replans_once_then_halts() -> None:
    route = step("eight-step", "review")["on"]["ERROR"]
    assert (route["because"], route["at_most"], route["route"]) == (
        "r-security",
        1,
        [{"step": "review", "mode": "", "only": ["r-security"], "items": ""}],
    )
    assert way(route["then"])[0] == "planning:replan"
    assert route["then"]["then"]["do"] == "fail"


def test_a_review_error_without_security_triggers_a_replan_at_once() -> None:
    route = step("eight-step", "review")["on"]["ERROR"]
    assert route["otherwise"] == route["then"]


def test_security_blocks_and_knowledge_never_does() -> None:
    weights = {seat["role"]: seat["weight"] for seat in step("eight-step", "review")["cluster"]["members"]}
    assert weights == {
        "r-quality": "normal",
        "r-security": "blocking",
        "r-testing": "normal",
        "r-knowledge": "never-blocks",
    }


def test_the_decision_log_is_append_only_and_suggestions_are_optional() -> None:
    (knowledge,) = seat_of("r-knowledge")
    assert knowledge["append_only"] == ["decisions.md"]
    assert knowledge["optional"] == ["review/knowledge-suggestions.md", "decisions.md"]


TREE = {
    "research/architecture.md",
    "research/impact.md",
    "research/dependencies.md",
    "research/patterns.md",
    "analysis.md",
    "feature.md",
    "design.md",
    "design_critical_review.md",
    "ct-review/ct-security.md",
    "ct-review/ct-scalability.md",
    "ct-review/ct-maintainability.md",
    "ct-review/ct-strategy.md",
    "plan.md",
    "tasks/*.md",
    "verification/v-build.md",
    "verification/v-tests.md",
    "verification/v-tasks.md",
    "verification/v-feature.md",
    "verifier.md",
    "review/r-quality.md",
    "review/r-security.md",
    "review/r-testing.md",
    "review/r-knowledge.md",
    "review/knowledge-suggestions.md",
    "review.md",
    "decisions.md",
}


def test_the_documentation_tree_is_the_seeds() -> None:
    """initial-request.md and memory.md are the engine's own."""
    eight = PIPELINES["eight-step"]
    written = {path for one in eight["steps"] for seat in seats(one) for path in [*seat["out"], *seat["optional"]]}
    assert written == TREE
    assert (eight["documents"], eight["given"]) == ("docs/feature/{slug}", ["initial-request.md", "memory.md"])


# ---- the context manager's three workflows ------------------------------------------------------------


def test_orchestrate_goes_through_the_phases_of_the_context_manager() -> None:
    found = [(one["id"], one["aside"]) for one in PIPELINES["orchestrate"]["steps"]]
    assert [name for name, aside in found if not aside] == [
        "architect",
        "design-audit",
        "design",
        "spec-writer",
        "implementation",
        "test-runner",
        "impl-audit",
        "final",
    ]
    assert [name for name, aside in found if aside] == ["architect-revision", "implementation-fix"]


def test_orchestrate_writes_the_context_managers_files() -> None:
    written = [path for one in PIPELINES["orchestrate"]["steps"] for seat in seats(one) for path in seat["out"]]
    assert written == [
        "architect.md",
        "architect-revision-{iteration}.md",
        "design-audit.md",
        "spec.md",
        "implementations/task-{number}.md",
        "tests/task-{number}.md",
        "test-results.md",
        "implementation-fix-{iteration}.md",
        "impl-audit.md",
    ]
    assert PIPELINES["orchestrate"]["documents"] == "docs/orchestrator/context/tasks/{slug}"


@pytest.mark.parametrize("pipeline", ["orchestrate", "graduate"])
def test_feedback_loops_are_gone_round_twice_and_then_pause(pipeline: str) -> None:
    for name in ("design-audit", "impl-audit"):
        for route in routes(step(pipeline, name)):
            assert (route["at_most"], present(route["then"])["do"]) == (2, "pause")
    assert way(step(pipeline, "design-audit")["on"]["DESIGN_FLAW"])[0] == "architect-revision"
    assert way(step(pipeline, "impl-audit")["on"]["IMPLEMENTATION_FLAW"])[0] == "implementation-fix"


def test_an_escalation_waits_for_a_person() -> None:
    for name in ("design-audit", "impl-audit"):
        assert step("orchestrate", name)["on"]["ESCALATE"]["do"] == "pause"


def test_the_design_gate_leads_to_the_specification_and_back_to_a_revision() -> None:
    gate = step("orchestrate", "design")
    assert (gate["gate"]["name"], gate["when"], gate["on"]["DONE"]["to"]) == ("design", "always", "spec-writer")
    assert way(gate["on"]["NEEDS_REVISION"]) == ["architect-revision", "design-audit", "design"]
    assert gate["on"]["ERROR"]["do"] == "fail"


def test_the_final_gate_completes_the_run_and_keeps_what_was_learned() -> None:
    gate = step("orchestrate", "final")
    assert (gate["gate"]["name"], gate["on"]["DONE"], gate["after"]) == (
        "final",
        {"do": "finish", "as": "completed"},
        ["promote-memory"],
    )
    assert way(gate["on"]["NEEDS_REVISION"])[0] == "implementation-fix"


def test_a_redesign_after_approval_asks_for_approval_again() -> None:
    assert "design" in way(step("orchestrate", "impl-audit")["on"]["DESIGN_FLAW"])


def test_at_most_eight_items_and_only_dependents_of_a_failed_one_are_skipped() -> None:
    waves = step("orchestrate", "implementation")["waves"]
    assert (waves["max_items"], waves["on_item_error"], waves["per_item"]) == (8, "skip-dependents", "side-by-side")
    assert [seat["role"] for seat in waves["seats"]] == ["implementer", "test-writer"]


def test_poc_records_what_it_skips_and_graduate_makes_up_for_all_of_it() -> None:
    poc, graduate = PIPELINES["poc"], PIPELINES["graduate"]
    assert poc["skips"] == ["design-audit", "spec-writer", "test-writer", "test-runner", "impl-audit"]
    assert (poc["mode"], poc["finish"], [one["id"] for one in poc["steps"]]) == (
        "poc",
        "poc-complete",
        ["architect", "implementer", "debt"],
    )
    assert set(poc["skips"]) <= {one["id"] for one in graduate["steps"]}
    assert (graduate["starts_from"], graduate["finish"]) == ("poc-complete", "graduated")
    assert graduate["steps"][0]["action"] == ["check-graduation"]
    assert "debt.md" in graduate["existing"]


# ---- ticket -------------------------------------------------------------------------------------------


def test_a_ticket_goes_through_the_flows_phases_with_a_checkpoint_after_each() -> None:
    steps = PIPELINES["ticket"]["steps"]
    assert list(dict.fromkeys(one["stage"] for one in steps)) == [
        "understanding",
        "planning",
        "execution",
        "integration",
    ]
    for stage in ("understanding", "planning", "execution", "integration"):
        last = [one for one in steps if one["stage"] == stage][-1]
        assert (last["kind"], last["when"], last["gate"]["name"]) == ("gate", "always", stage)


def test_each_step_of_a_ticket_is_executed_validated_and_committed_in_turn() -> None:
    waves = step("ticket", "execution")["waves"]
    assert [seat["role"] for seat in waves["seats"]] == ["execution_agent", "validation_agent", "commit_changes"]
    assert (waves["per_item"], waves["at_once"]) == ("in-turn", 1)


def test_a_failed_delegation_of_a_ticket_offers_retry_skip_and_abort() -> None:
    for one in PIPELINES["ticket"]["steps"]:
        if one["kind"] != "gate":
            assert one["on"]["ERROR"]["recommendations"] == ["retry", "skip", "abort"]


# ---- staged -------------------------------------------------------------------------------------------

SCHEDULE = [
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
]
PROFILES = {
    "minimal": {"0", "2.1", "2.3", "4.2", "4.3"},
    "standard": {row[0] for row in SCHEDULE} - {"2.2", "3.2"},
    "thorough": {row[0] for row in SCHEDULE},
}
FULL = [
    ("EXPLORE", "PLAN", ["0-explore.md"], "0"),
    ("PLAN", "IMPLEMENT", ["1.2-plan.md", "1.3-plan-review.json"], "1.3"),
    ("IMPLEMENT", "TEST", ["2.1-tasks.json", "2.3-impl-review.json"], "2.3"),
    ("TEST", "FINAL", ["3.1-test-results.json", "3.3-test-dev.json", "3.5-test-review.json"], "3.5"),
    ("FINAL", "COMPLETE", ["4.2-final-review.json"], "4.2"),
]
GATES = {
    "minimal": [
        ("EXPLORE", "IMPLEMENT", ["0-explore.md"], "0"),
        ("IMPLEMENT", "FINAL", ["2.1-tasks.json", "2.3-impl-review.json"], "2.3"),
        FULL[4],
    ],
    "standard": FULL,
    "thorough": FULL,
}
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


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_holds_its_phases_with_the_schedules_names_and_types(profile: str) -> None:
    found = [(one["id"], one["stage"], one["name"], one["type"]) for one in PIPELINES[f"staged-{profile}"]["steps"]]
    assert found == [row for row in SCHEDULE if row[0] in PROFILES[profile]]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_has_its_stage_gates(profile: str) -> None:
    gates = stage_gates(PIPELINES[f"staged-{profile}"])
    assert [(gate["stage"], gate["next"], gate["required"], gate["step"]) for gate in gates] == GATES[profile]


@pytest.mark.parametrize("profile", ["standard", "thorough"])
def test_without_tests_implementation_leads_to_the_final_stage(profile: str) -> None:
    gates = stage_gates(PIPELINES[f"staged-{profile}"], {"tests": False})
    assert [(gate["stage"], gate["next"]) for gate in gates][2:] == [("IMPLEMENT", "FINAL"), ("FINAL", "COMPLETE")]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_phase_writes_its_file(profile: str) -> None:
    for one in PIPELINES[f"staged-{profile}"]["steps"]:
        written = one["waves"]["record"] if one["kind"] == "waves" else one["agent"]["out"][0]
        assert written == OUTPUTS[one["id"]]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_review_asks_again_then_fixes_then_restarts_its_stage_then_blocks(profile: str) -> None:
    for one in PIPELINES[f"staged-{profile}"]["steps"]:
        if one["type"] != "review":
            continue
        second = one["on"]["NEEDS_REVISION"]
        fix, restart = second["then"], second["then"]["then"]
        assert (second["at_most"], second["route"][0]["mode"]) == (1, "supplementary")
        assert one["modes"]["supplementary"]["role"] == "supplementary-reviewer"
        assert (fix["at_most"], restart["at_most"], restart["restart"]) == (10, 3, one["stage"])
        assert {f"{one['id']}.fix", f"{one['id']}.supplementary"} <= set(restart["resets"])
        assert restart["then"]["do"] == "block"
        assert one["review"] == {"min_block_severity": "LOW"}


@pytest.mark.parametrize("profile", ["standard", "thorough"])
def test_low_coverage_leads_back_to_the_tests_twenty_times_and_then_blocks(profile: str) -> None:
    one = step(f"staged-{profile}", "3.5")
    route = one["on"]["LOW_COVERAGE"]
    assert one["coverage"] == {"threshold": 90}
    assert (way(route), route["at_most"], route["then"]["do"]) == (["3.3", "3.4", "3.5"], 20, "block")
    assert all(route["counter"] not in other["resets"] for other in routes(one))


# ---- feature-dev --------------------------------------------------------------------------------------


def test_a_feature_goes_through_the_seven_phases() -> None:
    assert [one["id"] for one in PIPELINES["feature-dev"]["steps"]] == [
        "discovery",
        "spec",
        "plan",
        "approval",
        "implementation",
        "test",
        "commit",
    ]


def test_each_feature_agent_completes_its_phase() -> None:
    """A hook knows only the agent's name; the pipeline says which phase that completes."""
    phases = {seat["role"]: one["id"] for one in PIPELINES["feature-dev"]["steps"] for seat in seats(one)}
    assert phases == {
        "discovery-guide": "discovery",
        "spec-writer": "spec",
        "code-architect": "plan",
        "implementer": "implementation",
        "test-designer": "test",
        "committer": "commit",
    }


def test_only_a_person_completes_the_approval() -> None:
    approval = step("feature-dev", "approval")
    assert (approval["kind"], approval["when"]) == ("gate", "always")


def test_specification_and_plan_lie_where_the_state_file_says() -> None:
    assert step("feature-dev", "spec")["agent"]["out"] == ["docs/specs/{slug}.md"]
    assert step("feature-dev", "plan")["agent"]["out"] == ["docs/specs/{slug}-plan.md"]
