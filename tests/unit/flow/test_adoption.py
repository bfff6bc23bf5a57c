"""A flow-state.json from before Tenuto goes on where it is; somebody else's file is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tenuto.encoding import digest
from tenuto.errors import Refused, TenutoError
from tenuto.workspace.objects import stored_version
from tests.unit.flow.conftest import Repository

# The seed's own example, as its users have it on disk.
SEED: Any = {
    "workflow_id": "TICKET-123",
    "phase": "execution",
    "started_at": "2025-06-29T10:30:00Z",
    "updated_at": "2025-06-29T11:00:00Z",
    "current_step": "execute_step_3",
    "completed_phases": ["understanding", "planning"],
    "next_actions": ["get_user_approval", "proceed_to_next_step"],
    "agent_history": [
        {
            "agent": "deep_research",
            "task": "ticket_analysis",
            "status": "completed",
            "timestamp": "2025-06-29T10:45:00Z",
            "output_summary": "Found authentication requirements, identified existing patterns",
        },
        {
            "agent": "plan_work",
            "task": "create_implementation_plan",
            "status": "completed",
            "timestamp": "2025-06-29T11:00:00Z",
            "output_summary": "Created 5-step implementation plan in working-doc.md",
        },
        {
            "agent": "execute_step",
            "task": "implement_step_1",
            "status": "in_progress",
            "timestamp": "2025-06-29T11:15:00Z",
            "output_summary": "Currently implementing authentication middleware",
        },
    ],
    "user_checkpoints": [
        {
            "phase": "understanding",
            "approved": True,
            "timestamp": "2025-06-29T10:50:00Z",
            "user_feedback": "Research looks good, proceed with planning",
        },
        {
            "phase": "planning",
            "approved": True,
            "timestamp": "2025-06-29T11:05:00Z",
            "user_feedback": "Implementation plan approved, start execution",
        },
    ],
    "commits_created": [
        {
            "step": "step_1_authentication_middleware",
            "commit_hash": "abc123def",
            "commit_message": "Add authentication middleware foundation",
            "timestamp": "2025-06-29T11:20:00Z",
        },
    ],
    "context_summary": "Working on user authentication enhancement ticket PROJ-123",
    "quality_gates": {
        "requirements_clear": True,
        "codebase_analyzed": True,
        "implementation_planned": True,
        "step_1_complete": True,
        "step_2_complete": False,
        "tests_passing": True,
        "code_reviewed": False,
        "mr_ready": False,
    },
}


def test_the_seeds_example_is_adopted_without_loss(repository: Repository) -> None:
    repository.write({**SEED, "team": {"name": "auth"}})
    before = repository.file.read_bytes()
    state = repository.flow.get_current_state("TICKET-123")
    for key in (
        "workflow_id",
        "phase",
        "started_at",
        "updated_at",
        "current_step",
        "next_actions",
        "completed_phases",
        "agent_history",
        "user_checkpoints",
        "commits_created",
        "context_summary",
        "quality_gates",
    ):
        assert state[key] == SEED[key], key
    assert state["team"] == {"name": "auth"}
    assert stored_version(repository.workspace, digest(before)) == before
    assert repository.flow.update_delegation(agent="a", task="b")["current_step"] == "b"
    assert repository.state["next_actions"] == ["wait_for_execute_step", "wait_for_a"]


def test_an_adopted_workflow_goes_on_under_the_rules(repository: Repository) -> None:
    repository.write(SEED)
    repository.flow.update_completion(agent="execute_step", output_summary="Done")
    state = repository.state
    assert state["agent_history"][2]["status"] == "completed"
    assert state["next_actions"] == ["get_user_approval", "proceed_to_next_step"]
    with pytest.raises(Refused):
        repository.flow.update_phase(phase="integration")
    repository.work("validation_agent", "validate", status="failed")
    assert repository.state["quality_gates"]["tests_passing"] is False  # an event speaks now


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({"phase": "implementation"}, "execution"),
        ({"phase": "Research"}, "understanding"),
        ({"phase": "complete"}, "complete"),
        ({"phase": "done"}, "complete"),
        ({"agent_history": [{"agent": "x"}, {"task": "nobody"}, {"agent": "y", "status": "done-ish"}]}, "execution"),
        ({"user_checkpoints": None, "quality_gates": None, "started_at": 7}, "execution"),
        ({"commits_created": [{"hash": "no"}]}, "execution"),
    ],
)
def test_drift_of_real_files_is_read(repository: Repository, changes: Any, phase: str) -> None:
    repository.write({**SEED, **changes})
    state = repository.flow.get_current_state("TICKET-123")
    assert state["phase"] == phase
    for found, told in zip(state["agent_history"], {**SEED, **changes}["agent_history"], strict=True):
        assert found.items() >= told.items()


def test_a_folder_is_found_by_its_ticket(repository: Repository) -> None:
    repository.folder = "TICKET-123-user-login"
    repository.write(SEED)
    assert repository.flow.get_current_state("TICKET-123")["workflow_id"] == "TICKET-123"
    assert repository.flow.get_current_state()["workflow_id"] == "TICKET-123"


def test_initialize_over_a_file_from_before_is_refused_and_resume_goes_on(repository: Repository) -> None:
    repository.write(SEED)
    before = repository.file.read_bytes()
    with pytest.raises(Refused) as refusal:
        repository.flow.initialize_workflow("TICKET-123")
    assert refusal.value.code == "workflow-exists" and repository.file.read_bytes() == before
    assert repository.flow.initialize_workflow("TICKET-123", resume=True)["phase"] == "execution"
    assert repository.state["resumed_at"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        json.dumps({"phase": "execution"}),
        json.dumps({"nodes": [], "edges": []}),
        json.dumps({"phase": "boot", "agent_history": []}),
        '{"phase": "planning", "phase": "x", "agent_history": []}',
    ],
)
def test_somebody_elses_file_is_refused_by_name_and_untouched(repository: Repository, text: str) -> None:
    repository.write(text)
    acts: list[Callable[[], object]] = [
        lambda: repository.flow.get_current_state("TICKET-123"),
        lambda: repository.flow.initialize_workflow("TICKET-123"),
        lambda: repository.flow.update_delegation("TICKET-123", agent="a"),
    ]
    for act in acts:
        with pytest.raises(TenutoError) as refusal:
            act()
        assert ".ai-workspace/TICKET-123/flow-state.json" in refusal.value.message
    assert repository.file.read_text() == text
