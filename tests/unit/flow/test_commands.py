"""The seven commands: what each does to the state, what follows, and what is refused."""

from __future__ import annotations

import subprocess
from typing import Any, get_args

import pytest

from tenuto.core.records.run import Status
from tenuto.core.rules import PHASES
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.views.flow import document
from tests.unit.flow.conftest import Repository

SEED_KEYS = [
    "workflow_id",
    "phase",
    "started_at",
    "updated_at",
    "current_step",
    "completed_phases",
    "next_actions",
    "agent_history",
    "user_checkpoints",
    "commits_created",
    "context_summary",
    "quality_gates",
]
SEED_PHASES = ("understanding", "planning", "execution", "integration", "complete")
SEED_ACTIONS = {"get_user_approval", "proceed_to_next_step", "address_feedback", "retry", "skip", "abort"}


def refusal(act: Any) -> TenutoError:
    with pytest.raises(TenutoError) as caught:
        act()
    return caught.value


# ---- the state ---------------------------------------------------------------------------------------


def test_a_new_workflow_has_every_key_of_the_schema(started: Repository) -> None:
    state = started.state
    assert list(state) == SEED_KEYS
    assert (state["workflow_id"], state["phase"]) == ("TICKET-123", "understanding")
    assert state["context_summary"] == "Working on TICKET-123"
    assert (state["completed_phases"], state["agent_history"], state["next_actions"]) == (
        [],
        [],
        ["proceed_to_next_step"],
    )
    assert list(state["quality_gates"]) == [
        "requirements_clear",
        "codebase_analyzed",
        "implementation_planned",
        "tests_passing",
        "code_reviewed",
        "mr_ready",
    ]
    assert not any(state["quality_gates"].values())
    assert started.flow.get_current_state("TICKET-123") == state


def test_the_seeds_own_example_comes_out_of_the_commands(started: Repository) -> None:
    flow = started.flow
    flow.update_delegation(agent="deep_research", task="ticket_analysis")
    flow.update_completion(
        agent="deep_research", output_summary="Found authentication requirements, identified existing patterns"
    )
    flow.update_user_checkpoint(
        phase="understanding", approved=True, user_feedback="Research looks good, proceed with planning"
    )
    flow.update_delegation(agent="plan_work", task="create_implementation_plan")
    flow.update_completion(agent="plan_work", output_summary="Created 5-step implementation plan in working-doc.md")
    flow.update_user_checkpoint(
        phase="planning", approved=True, user_feedback="Implementation plan approved, start execution"
    )
    flow.update_delegation(agent="execute_step", task="implement_step_1")
    flow.update_completion(agent="execute_step", output_summary="Middleware")
    flow.update_commit(
        step="step_1_authentication_middleware",
        commit_hash="abc123def",
        commit_message="Add authentication middleware foundation",
    )
    flow.update_delegation(
        agent="execute_step", task="implement_step_2", output_summary="Currently implementing authentication middleware"
    )
    state = started.state
    assert (state["phase"], state["completed_phases"]) == ("execution", ["understanding", "planning"])
    assert state["current_step"] == "implement_step_2" and state["next_actions"] == ["wait_for_execute_step"]
    assert [(entry["agent"], entry["task"], entry["status"]) for entry in state["agent_history"]] == [
        ("deep_research", "ticket_analysis", "completed"),
        ("plan_work", "create_implementation_plan", "completed"),
        ("execute_step", "implement_step_1", "completed"),
        ("execute_step", "implement_step_2", "in_progress"),
    ]
    assert list(state["agent_history"][0]) == ["agent", "task", "status", "timestamp", "output_summary"]
    assert [list(entry) for entry in state["user_checkpoints"]] == [
        ["phase", "approved", "timestamp", "user_feedback"]
    ] * 2
    assert list(state["commits_created"][0]) == ["step", "commit_hash", "commit_message", "timestamp"]
    assert state["quality_gates"] == {
        "requirements_clear": True,
        "codebase_analyzed": True,
        "implementation_planned": True,
        "step_1_complete": True,
        "step_2_complete": False,
        "tests_passing": False,
        "code_reviewed": False,
        "mr_ready": False,
    }


def test_a_whole_ticket_ends_complete(started: Repository) -> None:
    for phase in PHASES:
        started.work(f"{phase}_agent", f"do_{phase}")
        started.flow.update_user_checkpoint(phase=phase, approved=True)
    state = started.state
    assert (state["phase"], state["completed_phases"], state["next_actions"]) == ("complete", list(PHASES), [])
    assert state["quality_gates"]["mr_ready"] is True
    assert started.flow.update_phase("TICKET-123", phase="complete")["phase"] == "complete"
    for act in (
        lambda: started.flow.update_delegation("TICKET-123", agent="late"),
        lambda: started.flow.update_user_checkpoint("TICKET-123", phase="integration", approved=True),
        lambda: started.flow.initialize_workflow("TICKET-123"),
    ):
        assert isinstance(refusal(act), Refused)


# ---- delegations and completions -----------------------------------------------------------------------


def test_a_completion_without_a_delegation_is_refused(started: Repository) -> None:
    before = started.file.read_bytes()
    assert refusal(lambda: started.flow.update_completion(agent="deep_research")).code == "no-delegation"
    assert started.file.read_bytes() == before
    started.work("deep_research", "one")
    assert refusal(lambda: started.flow.update_completion(agent="deep_research")).code == "no-delegation"
    started.flow.update_delegation(agent="deep_research", task="two")
    assert refusal(lambda: started.flow.update_completion(agent="plan_work")).code == "no-delegation"
    assert refusal(lambda: started.flow.update_completion(agent="deep_research", task="one")).code == "no-delegation"


@pytest.mark.parametrize(
    "agent",
    [
        "state_manager",
        "State Manager",
        "state-manager",
        "STATE.MANAGER",
        "stateManager",
        "orchestrator-state-manager",
        "subagents:state-manager",
        "state_manager_agent",
        "ｓｔａｔｅ＿ｍａｎａｇｅｒ",
        "Orchestrator State Manager",
    ],
)
def test_the_state_manager_is_no_agent_in_any_spelling(started: Repository, agent: str) -> None:
    assert refusal(lambda: started.flow.update_delegation(agent=agent, task="update")).code == "not-an-agent"
    assert started.state["agent_history"] == []


@pytest.mark.parametrize(
    "agent", ["deep_research", "research_agent", "anything goes", "plugin:agent", "estate_planner"]
)
def test_any_other_agent_is_accepted(started: Repository, agent: str) -> None:
    started.flow.update_delegation(agent=agent)
    assert started.state["agent_history"][0]["agent"] == agent


def test_several_delegations_to_one_agent_are_told_apart_by_their_task(started: Repository) -> None:
    for task in ("implement_step_1", "implement_step_2"):
        started.flow.update_delegation(agent="execute_step", task=task)
    assert refusal(lambda: started.flow.update_completion(agent="execute_step")).code == "which-delegation"
    started.flow.update_completion(agent="execute_step", task="implement_step_1")
    assert [entry["status"] for entry in started.state["agent_history"]] == ["completed", "in_progress"]


@pytest.mark.parametrize("status", ["completed", "failed", "blocked"])
def test_completions_have_three_ends(started: Repository, status: str) -> None:
    answer = started.work("execute_step", "implement_step_1", status=status, output_summary="so it went")
    entry = started.state["agent_history"][0]
    assert (entry["status"], entry["output_summary"]) == (status, "so it went")
    assert answer["next_actions"] == (["get_user_approval"] if status == "completed" else ["retry", "skip", "abort"])


def test_another_word_for_an_end_is_refused(started: Repository) -> None:
    started.flow.update_delegation(agent="a")
    assert isinstance(refusal(lambda: started.flow.update_completion(agent="a", status="fine")), BadInput)


def test_further_fields_of_real_histories_are_kept(started: Repository) -> None:
    execution = {
        "step_number": 3,
        "files_modified": ["a.py"],
        "tests_added": ["test_a.py"],
        "validation_passed": True,
        "ready_for_commit": True,
        "next_step_ready": False,
    }
    validation = {"validation_results": {"tests": {"passed": 12, "failed": 0}}, "blocking_issues": []}
    commit = {"commit_hash": "abc123", "commit_message": "x", "files_committed": ["a.py"]}
    started.work("execution_agent", "implement_step_3", **execution)
    started.work("validation_agent", "validate", **validation)
    started.work("commit_changes", "commit", **commit)
    history = started.state["agent_history"]
    reports: list[dict[str, Any]] = [execution, validation, commit]
    for entry, report in zip(history, reports, strict=True):
        assert entry.items() >= report.items()
    assert started.state["quality_gates"]["step_3_complete"] is False


# ---- checkpoints and phases ----------------------------------------------------------------------------


def test_an_approval_advances_and_a_following_update_phase_changes_nothing(started: Repository) -> None:
    started.flow.update_user_checkpoint(phase="understanding", approved=True)
    before = started.file.read_bytes()
    assert started.flow.update_phase(phase="planning")["phase"] == "planning"
    assert started.file.read_bytes() == before


def test_update_phase_without_an_approval_is_refused(started: Repository) -> None:
    started.work("deep_research", "analysis")
    assert refusal(lambda: started.flow.update_phase(phase="planning")).code == "not-approved"
    assert started.state["phase"] == "understanding"


def test_a_rejection_keeps_the_phase_and_asks_for_work(started: Repository) -> None:
    started.work("deep_research", "analysis")
    answer = started.flow.update_user_checkpoint(phase="understanding", approved=False, user_feedback="Look deeper")
    assert (answer["phase"], answer["next_actions"]) == ("understanding", ["address_feedback"])
    assert started.state["user_checkpoints"][0]["approved"] is False
    assert refusal(lambda: started.flow.update_phase(phase="planning")).code == "not-approved"


@pytest.mark.parametrize("here", PHASES)
@pytest.mark.parametrize("wanted", (*PHASES, "complete"))
def test_every_phase_from_every_phase(started: Repository, here: str, wanted: str) -> None:
    """Staying changes nothing, the next one needs an approval, everything else is a skip."""
    started.go_to(here)
    if wanted == here:
        assert started.flow.update_phase(phase=wanted)["phase"] == here
        return
    following = SEED_PHASES[SEED_PHASES.index(here) + 1]
    expected = "not-approved" if wanted == following else "step-skipped"
    assert refusal(lambda: started.flow.update_phase(phase=wanted)).code == expected
    assert started.state["phase"] == here


@pytest.mark.parametrize("here", PHASES)
@pytest.mark.parametrize("approved", PHASES)
def test_every_approval_in_every_phase(started: Repository, here: str, approved: str) -> None:
    """Only the phase under way can be approved."""
    started.go_to(here)
    if approved == here:
        answer = started.flow.update_user_checkpoint(phase=here, approved=True)
        assert answer["phase"] == SEED_PHASES[SEED_PHASES.index(here) + 1]
        return
    error = refusal(lambda: started.flow.update_user_checkpoint(phase=approved, approved=True))
    assert error.code == "wrong-checkpoint" and approved in error.message
    assert started.state["phase"] == here


def test_an_approval_that_names_no_phase_needs_work_in_it(started: Repository) -> None:
    """The same call twice must not approve two phases."""
    started.work("deep_research", "analysis")
    started.flow.update_user_checkpoint(approved=True)
    assert refusal(lambda: started.flow.update_user_checkpoint(approved=True)).code == "nothing-to-approve"
    assert started.state["phase"] == "planning"


@pytest.mark.parametrize("approved", ["yes", 1, None, "true"])
def test_only_true_approves(started: Repository, approved: Any) -> None:
    assert isinstance(
        refusal(lambda: started.flow.update_user_checkpoint(phase="understanding", approved=approved)), BadInput
    )


def test_unknown_phases_are_refused(started: Repository) -> None:
    assert isinstance(refusal(lambda: started.flow.update_phase(phase="testing")), BadInput)
    assert isinstance(refusal(lambda: started.flow.update_user_checkpoint(phase="complete", approved=True)), BadInput)


# ---- what follows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "tests", "reviewed"),
    [
        ({}, True, True),
        ({"validation_results": {"tests_passing": True, "code_review": "passed"}}, True, True),
        ({"validation_results": {"tests": "failed", "review": "approved"}}, False, True),
        ({"validation_results": {"unit_tests": {"passed": 3, "failed": 1}}}, False, True),
        ({"validation_results": {"tests": {"failed": 0, "passed": 3}, "code_quality": {"status": "bad"}}}, True, False),
        ({"validation_results": {"tests": "who knows"}}, False, True),
        ({"validation_passed": False}, False, False),
        ({"blocking_issues": ["leak"], "validation_results": {"tests": True}}, False, False),
        ({"status": "failed"}, False, False),
        ({"status": "blocked"}, False, False),
    ],
)
def test_tests_passing_and_code_reviewed_are_what_the_validation_found(
    started: Repository, results: Any, tests: bool, reviewed: bool
) -> None:
    gates = started.work("validation_agent", "validate_step_1", **results)["quality_gates"]
    assert (gates["tests_passing"], gates["code_reviewed"]) == (tests, reviewed)


def test_the_last_validation_counts(started: Repository) -> None:
    started.work("validation_agent", "one")
    assert started.work("validation_agent", "two", status="failed")["quality_gates"]["tests_passing"] is False


def test_a_failed_research_clears_nothing(started: Repository) -> None:
    gates = started.work("deep_research", "analysis", status="failed")["quality_gates"]
    assert not gates["requirements_clear"] and not gates["codebase_analyzed"]


def test_flags_of_the_callers_own_are_kept_and_flags_that_follow_cannot_be_claimed(started: Repository) -> None:
    started.flow.update_delegation(agent="a", quality_gates={"docs_updated": True})
    assert started.state["quality_gates"]["docs_updated"] is True
    for flag in ("tests_passing", "mr_ready", "requirements_clear", "step_4_complete"):
        error = refusal(lambda flag=flag: started.flow.update_delegation(agent="b", quality_gates={flag: True}))
        assert error.code == "flag-follows" and flag in error.message
    assert len(started.state["agent_history"]) == 1


@pytest.mark.parametrize("status", get_args(Status))
def test_every_status_of_a_run_is_shown_in_the_seeds_words(started: Repository, status: Any) -> None:
    started.work("deep_research", "analysis")
    run = started.workspace.load("ticket-123")
    run["status"] = status
    state = document(run)
    assert state["phase"] in SEED_PHASES
    assert set(state["next_actions"]) <= SEED_ACTIONS
    assert {entry["status"] for entry in state["agent_history"]} <= {"in_progress", "completed", "failed", "blocked"}


# ---- commits -------------------------------------------------------------------------------------------


def test_a_commit_is_checked_against_the_repository(started: Repository) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        git = ["git", "-C", str(started.root), *words]
        return subprocess.run(git, check=True, capture_output=True, text=True)

    run("init", "-q")
    started.flow.initialize_workflow("TICKET-124")
    run("commit", "-q", "--allow-empty", "-m", "Add middleware\n\nbody")
    made = run("rev-parse", "--short", "HEAD").stdout.strip()
    started.flow.update_commit("TICKET-124", step="step_1_middleware", commit_hash=made)
    started.folder = "TICKET-124"
    commit = started.state["commits_created"][0]
    assert (commit["commit_hash"], commit["commit_message"]) == (made, "Add middleware")
    assert started.state["quality_gates"]["step_1_complete"] is True
    for wrong, code in (
        ("abcdef0", "no-such-commit"),
        ("HEAD", "bad-hash"),
        ("--all", "bad-hash"),
        ("", "missing-field"),
    ):
        error = refusal(lambda wrong=wrong: started.flow.update_commit("TICKET-124", step="step_2", commit_hash=wrong))
        assert error.code == code
    assert len(started.state["commits_created"]) == 1


def test_the_same_commit_twice_is_one_commit(started: Repository) -> None:
    for _ in range(2):
        started.flow.update_commit(step="step_1", commit_hash="abc123def", commit_message="x")
    assert len(started.state["commits_created"]) == 1


# ---- workspaces ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ticket", "description", "folder"),
    [
        ("TICKET-123", "", "TICKET-123"),
        ("TICKET-123", "User login!", "TICKET-123-user-login"),
        ("", "Fix the login", "task-fix-the-login-2026-01-29"),
        ("", "Task: tidy up", "task-tidy-up-2026-01-29"),
    ],
)
def test_workspaces_have_three_kinds_of_names(
    repository: Repository, ticket: str, description: str, folder: str
) -> None:
    import tenuto

    flow = tenuto.open(str(repository.root), clock=lambda: "2026-01-29T10:15:00.000Z").flow
    answer = flow.initialize_workflow(ticket, description=description)
    repository.folder = folder
    assert repository.state["workflow_id"] == answer["workflow_id"] == (ticket or folder)
    assert flow.get_current_state(ticket or folder) == repository.state


@pytest.mark.parametrize("ticket", ["../escape", "a/b", ".", "-x", "a\0b", ""])
def test_a_ticket_that_leads_elsewhere_is_refused(repository: Repository, ticket: str) -> None:
    assert isinstance(refusal(lambda: repository.flow.initialize_workflow(ticket)), BadInput)
    assert not (repository.root / ".ai-workspace").exists()


def test_the_ticket_may_be_left_out_where_one_workflow_is_under_way(repository: Repository) -> None:
    assert isinstance(refusal(lambda: repository.flow.get_current_state()), NotFound)
    repository.flow.initialize_workflow("A-1")
    assert repository.flow.get_current_state()["workflow_id"] == "A-1"
    repository.flow.initialize_workflow("A-2", description="second")
    assert repository.flow.get_current_state()["workflow_id"] == "A-2"  # the current one
    assert repository.flow.get_current_state("A-1")["workflow_id"] == "A-1"
    repository.flow.initialize_workflow("A-2", description="third")
    assert refusal(lambda: repository.flow.get_current_state("A-2")).code == "which-workflow"
    assert refusal(lambda: repository.flow.get_current_state("B-9")).code == "no-workflow"


def test_a_workflow_is_not_started_twice_but_resumed(started: Repository) -> None:
    assert refusal(lambda: started.flow.initialize_workflow("TICKET-123")).code == "workflow-exists"
    assert "resumed_at" not in started.state
    started.flow.resume_workflow("TICKET-123")
    first = started.state["resumed_at"]
    assert first >= started.state["started_at"]
    started.flow.initialize_workflow("TICKET-123", resume=True)
    assert started.state["resumed_at"] >= first


# ---- in the middle of the execution, and back ----------------------------------------------------------


def executing(started: Repository) -> Repository:
    """Step 1 is committed, step 2 is known and open."""
    started.go_to("execution")
    started.work("execute_step", "implement_step_1")
    started.flow.update_commit(step="step_1_middleware", commit_hash="abc123def", commit_message="x")
    started.work("execute_step", "implement_step_2")
    return started


def test_an_approval_while_known_steps_are_open_is_of_what_was_done_so_far(started: Repository) -> None:
    flow = executing(started).flow
    answer = flow.update_user_checkpoint(phase="execution", approved=True, user_feedback="go on with step 2")
    assert (answer["phase"], answer["next_actions"]) == ("execution", ["proceed_to_next_step"])
    assert started.state["user_checkpoints"][-1]["user_feedback"] == "go on with step 2"
    assert refusal(lambda: flow.update_phase(phase="integration")).code == "not-approved"
    flow.update_commit(step="2_login", commit_hash="abc123fed", commit_message="y")
    assert flow.update_user_checkpoint(phase="execution", approved=True)["phase"] == "integration"


@pytest.mark.parametrize(("stay", "phase"), [(True, "execution"), (False, "integration")])
def test_whether_an_approval_leads_on_can_be_said(started: Repository, stay: bool, phase: str) -> None:
    flow = executing(started).flow
    assert flow.update_user_checkpoint(phase="execution", approved=True, stay=stay)["phase"] == phase
    assert refusal(lambda: flow.update_user_checkpoint(phase=phase, approved=False, stay=True)).code == "bad-field"


def test_an_approval_that_stays_makes_no_merge_request_ready(started: Repository) -> None:
    started.go_to("integration")
    gates = started.flow.update_user_checkpoint(phase="integration", approved=True, stay=True)["quality_gates"]
    assert gates["mr_ready"] is False


def test_the_way_back_begins_a_phase_again_and_asks_for_another_approval(started: Repository) -> None:
    started.go_to("integration")
    error = refusal(lambda: started.flow.update_phase(phase="execution"))
    assert error.code == "step-skipped" and error.hint == "update_phase --phase execution --back"
    back = started.flow.update_phase(phase="execution", back=True)
    assert (back["phase"], started.state["completed_phases"]) == ("execution", ["understanding", "planning"])
    assert refusal(lambda: started.flow.update_phase(phase="integration")).code == "not-approved"
    assert started.flow.update_user_checkpoint(phase="execution", approved=True)["phase"] == "integration"


def test_only_what_is_behind_can_be_gone_back_to(started: Repository) -> None:
    started.go_to("planning")
    assert refusal(lambda: started.flow.update_phase(phase="execution", back=True)).code == "stage-ahead"
    before = started.file.read_bytes()
    assert started.flow.update_phase(phase="planning", back=True)["phase"] == "planning"
    assert started.file.read_bytes() == before


def test_the_same_delegation_twice_is_ended_twice_the_first_one_first(started: Repository) -> None:
    for _ in range(2):
        started.flow.update_delegation(agent="p", task="c")
    started.flow.update_completion(agent="p", task="c", output_summary="one")
    assert [entry["status"] for entry in started.state["agent_history"]] == ["completed", "in_progress"]
    answer = started.flow.update_completion(agent="p", output_summary="two")
    assert answer["next_actions"] == ["get_user_approval"]


@pytest.mark.parametrize(
    ("told", "tests", "reviewed"),
    [
        ({"validation_results": {"test_coverage": "85%", "critical": 0}, "integration_ready": True}, True, True),
        ({"validation_results": {"test_coverage": "85%", "critical": 0}, "integration_ready": False}, False, False),
        ({"validation_results": {"test_coverage": "85%", "tests": "failed"}, "integration_ready": True}, False, True),
        ({"validation_results": {"test_count": 12, "tests_failed": 0}}, True, True),
        ({"validation_results": {"test_count": 12, "tests_failed": 1}}, False, False),
        ({"validation_results": {"critical_issues": 2}, "integration_ready": True}, False, False),
        ({"validation_results": {"tests": "passed", "integration_tests": "failed"}}, False, True),
    ],
)
def test_a_measure_is_no_verdict_and_every_verdict_counts(
    started: Repository, told: Any, tests: bool, reviewed: bool
) -> None:
    gates = started.work("validation_agent", "validate", **told)["quality_gates"]
    assert (gates["tests_passing"], gates["code_reviewed"]) == (tests, reviewed)


@pytest.mark.parametrize("told", [{"step_number": "1"}, {"step_number": 1}, {"commit_checkpoint": "1_auth_middleware"}])
def test_a_step_is_known_by_its_number_however_it_is_told(started: Repository, told: Any) -> None:
    gates = started.work("execution_agent", "middleware", **told)["quality_gates"]
    assert gates["step_1_complete"] is False
    gates = started.flow.update_commit(step="1_auth_middleware", commit_hash="abc123def", commit_message="x")
    assert gates["quality_gates"]["step_1_complete"] is True


def test_workspaces_whose_names_differ_in_a_sign_are_two(repository: Repository) -> None:
    repository.flow.initialize_workflow("AB_1")
    repository.flow.initialize_workflow("AB-1")
    assert [repository.flow.get_current_state(one)["workflow_id"] for one in ("AB_1", "AB-1")] == ["AB_1", "AB-1"]


def test_a_ticket_is_found_by_its_exact_name_also_where_another_run_has_its_id(repository: Repository) -> None:
    repository.flow.initialize_workflow("T-1", description="x")
    repository.workspace.feature_state.start("T-1")
    repository.flow.initialize_workflow("T-1")
    repository.flow.update_delegation("T-1", agent="p")
    assert len(repository.flow.get_current_state("T-1")["agent_history"]) == 1


def test_rework_answers_a_rejection_whatever_the_clock_says(repository: Repository) -> None:
    import tenuto

    now = ["2026-01-29T12:00:00.000Z"]
    flow = tenuto.open(str(repository.root), clock=lambda: now[0]).flow
    flow.initialize_workflow("T-1")
    flow.update_delegation(agent="deep_research")
    flow.update_completion(agent="deep_research")
    flow.update_user_checkpoint(phase="understanding", approved=False)
    now[0] = "2026-01-29T10:00:00.000Z"
    flow.update_delegation(agent="deep_research")
    assert flow.update_completion(agent="deep_research")["next_actions"] == ["get_user_approval"]
