"""Other programs write flow-state.json: what is allowed becomes part of the run, what is not is named, refused and
left there."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.errors import Refused
from tests.unit.flow.conftest import Repository

ENTRY: Any = {
    "agent": "deep_research",
    "task": "ticket_analysis",
    "status": "in_progress",
    "timestamp": "2025-06-29T10:45:00Z",
    "output_summary": "",
}
APPROVAL: Any = {
    "phase": "understanding",
    "approved": True,
    "timestamp": "2025-06-29T10:50:00Z",
    "user_feedback": "Go on",
}


def refused(repository: Repository) -> Refused:
    before = repository.file.read_bytes()
    with pytest.raises(Refused) as refusal:
        repository.flow.update_delegation(agent="ours")
    assert refusal.value.code == "foreign-edit" and "flow-state.json" in refusal.value.message
    assert repository.file.read_bytes() == before
    return refusal.value


def test_an_entry_more_is_a_delegation_and_its_end_a_completion(started: Repository) -> None:
    started.edit(agent_history=[ENTRY])
    state = started.flow.get_current_state()
    assert state["next_actions"] == ["wait_for_deep_research"] and state["current_step"] == "ticket_analysis"
    done = {**state["agent_history"][0], "status": "completed", "output_summary": "Found it", "files_modified": ["a"]}
    started.edit(agent_history=[done])
    state = started.flow.get_current_state()
    assert state["agent_history"][0].items() >= {"status": "completed", "output_summary": "Found it"}.items()
    assert state["agent_history"][0]["files_modified"] == ["a"]
    assert state["quality_gates"]["requirements_clear"] is True


def test_a_delegation_that_has_ended_by_the_time_it_is_written_counts(started: Repository) -> None:
    started.edit(agent_history=[{**ENTRY, "status": "completed", "output_summary": "done"}])
    assert started.flow.get_current_state()["agent_history"][0]["status"] == "completed"


def test_what_is_told_afterwards_is_kept(started: Repository) -> None:
    started.work("execute_step", "implement_step_1", output_summary="one")
    entry = {**started.state["agent_history"][0], "tests_added": ["t"], "output_summary": "one, and tests"}
    started.edit(agent_history=[entry])
    assert started.flow.get_current_state()["agent_history"] == [entry]


def test_a_rejection_in_the_file_is_the_users_word(started: Repository) -> None:
    started.edit(user_checkpoints=[{**APPROVAL, "approved": False, "channel": "chat"}])
    state = started.flow.get_current_state()
    assert state["phase"] == "understanding" and state["completed_phases"] == []
    assert (
        state["user_checkpoints"][0].items() >= {"approved": False, "user_feedback": "Go on", "channel": "chat"}.items()
    )


def test_an_approval_in_the_file_is_nobodys(started: Repository) -> None:
    """An agent can write it there: a checkpoint is passed with a command, which asks who says so."""
    started.edit(user_checkpoints=[APPROVAL], phase="planning")
    assert refused(started).details["reason"] == "not-a-decision"
    assert started.workspace.load("ticket-123")["decisions"] == []


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("phase", ["understanding", "planning"])
def test_a_persons_word_takes_the_place_of_an_approval_in_the_file(
    started: Repository, approved: bool, phase: str
) -> None:
    """The way out that the refusal names works, whichever way the person decides, and what else was written stays."""
    started.edit(user_checkpoints=[APPROVAL], phase=phase, team="auth")
    assert "update_user_checkpoint --phase understanding" in str(refused(started).hint)
    answer = started.flow.update_user_checkpoint(phase="understanding", approved=approved, user_feedback="so it is")
    assert answer["phase"] == ("planning" if approved else "understanding")
    assert [entry["user_feedback"] for entry in started.state["user_checkpoints"]] == ["so it is"]
    assert started.state["team"] == "auth"


def test_a_word_on_another_phase_does_not_take_its_place(started: Repository) -> None:
    started.edit(user_checkpoints=[APPROVAL], phase="planning")
    with pytest.raises(Refused):
        started.flow.update_user_checkpoint(phase="planning", approved=True)
    assert started.workspace.load("ticket-123")["decisions"] == []


def test_commits_summaries_flags_and_unknown_keys_are_absorbed(started: Repository) -> None:
    commit = {
        "step": "step_1_x",
        "commit_hash": "abc123",
        "commit_message": "m",
        "timestamp": "2025-06-29T11:20:00Z",
        "by": "me",
    }
    started.edit(
        commits_created=[commit],
        context_summary="Another",
        unknown={"a": [1]},
        quality_gates={**started.state["quality_gates"], "docs": True, "step_1_complete": True},
    )
    started.flow.update_delegation(agent="ours")
    state = started.state
    assert state["commits_created"][0].items() >= {"commit_hash": "abc123", "by": "me"}.items()
    assert (state["context_summary"], state["unknown"]) == ("Another", {"a": [1]})
    assert state["quality_gates"]["docs"] and state["quality_gates"]["step_1_complete"]


def test_a_resumption_in_the_file_is_one(started: Repository) -> None:
    started.edit(resumed_at="2025-07-01T09:00:00Z")
    assert started.flow.get_current_state()["resumed_at"] > "2025-07-01"


def test_labels_that_follow_are_ours_again(started: Repository) -> None:
    started.edit(next_actions=["celebrate"], current_step="x", completed_phases=["planning"], updated_at="1999")
    started.flow.update_delegation(agent="ours", task="t")
    state = started.state
    assert (state["next_actions"], state["current_step"], state["completed_phases"]) == (["wait_for_ours"], "t", [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"phase": "planning"}, "not-approved"),
        ({"phase": "execution"}, "step-skipped"),
        ({"phase": "complete"}, "step-skipped"),
        ({"phase": "testing"}, "no-such-phase"),
        ({"user_checkpoints": [{**APPROVAL, "approved": False, "phase": "planning"}]}, "wrong-checkpoint"),
        ({"user_checkpoints": [{**APPROVAL, "phase": "planning"}]}, "not-a-decision"),
        ({"user_checkpoints": [{**APPROVAL, "approved": "yes"}]}, "bad-entry"),
        ({"user_checkpoints": [{**APPROVAL, "approved": False}], "phase": "planning"}, "not-approved"),
        ({"user_checkpoints": [{**APPROVAL, "approved": False}], "phase": "integration"}, "step-skipped"),
        ({"user_checkpoints": "none"}, "not-a-list"),
        ({"agent_history": [{**ENTRY, "agent": "state_manager"}]}, "not-an-agent"),
        ({"agent_history": [{"task": "no agent"}]}, "bad-entry"),
        ({"agent_history": [{**ENTRY, "status": "sleeping"}]}, "bad-status"),
        ({"agent_history": [{**ENTRY, "status": {"completed": True}}]}, "bad-status"),
        ({"commits_created": [{"step": "step_1"}]}, "bad-entry"),
        ({"quality_gates": {"mr_ready": True}}, "flag-follows"),
        ({"quality_gates": {"step_2_complete": True}}, "flag-follows"),
        ({"workflow_id": "OTHER-1"}, "not-yours"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_left(started: Repository, changes: Any, reason: str) -> None:
    started.edit(**changes)
    assert refused(started).details["reason"] == reason


def test_a_status_that_is_no_word_is_refused_also_where_a_delegation_was_there(started: Repository) -> None:
    started.edit(agent_history=[{**ENTRY, "status": "in_progress"}])
    started.flow.get_current_state()
    started.edit(agent_history=[{**ENTRY, "status": {"completed": True}}])
    assert refused(started).details["reason"] == "bad-status"


def test_histories_only_grow(started: Repository) -> None:
    started.work("deep_research", "analysis")
    started.flow.update_user_checkpoint(phase="understanding", approved=True)
    state = started.state
    edits: list[dict[str, Any]] = [
        {"agent_history": []},
        {"agent_history": [{**state["agent_history"][0], "status": "in_progress"}]},
        {"agent_history": [{**state["agent_history"][0], "agent": "someone_else"}]},
        {"user_checkpoints": []},
        {"user_checkpoints": [{**state["user_checkpoints"][0], "user_feedback": "never said"}]},
    ]
    for change in edits:
        started.write({**state, **change})
        assert refused(started).details["reason"] == "history-rewritten"


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1, "a": 2}', "null"])
def test_a_broken_rewrite_is_named_refused_and_left(started: Repository, text: str) -> None:
    started.write(text)
    refused(started)


# ---- at the same time ----------------------------------------------------------------------------------


def test_entries_are_told_apart_by_what_they_are_not_by_where_they_stand(started: Repository) -> None:
    """They add a delegation to the version before ours, then end it, still without having seen ours."""
    theirs = started.state
    started.flow.update_delegation(agent="ours", task="one")
    begun = {**theirs, "agent_history": [ENTRY]}
    started.write(begun)
    started.flow.get_current_state()
    started.write({**begun, "agent_history": [{**ENTRY, "status": "completed", "output_summary": "Found it"}]})
    history = started.flow.get_current_state()["agent_history"]
    assert [(entry["agent"], entry["status"]) for entry in history] == [
        ("ours", "in_progress"),
        ("deep_research", "completed"),
    ]


def test_the_same_approval_from_two_sides_is_one(started: Repository) -> None:
    theirs = started.state
    started.flow.update_user_checkpoint(phase="understanding", approved=True)
    started.flow.update_user_checkpoint(phase="planning", approved=True)
    started.write({**theirs, "user_checkpoints": [APPROVAL], "phase": "planning", "note": "kept"})
    state = started.flow.get_current_state()
    assert (state["phase"], state["note"], len(state["user_checkpoints"])) == ("execution", "kept", 2)
