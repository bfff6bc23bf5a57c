"""A hook's report shows in whatever files the run is shown in."""

from __future__ import annotations

import json
from typing import Any

SESSION = "8dd9056e-c8e9-4b44-be02-7f3be68ade4c"


def test_a_tickets_history_shows_the_delegation(repository: Any) -> None:
    repository.workspace.flow.initialize_workflow("TICKET-1", description="Sign in")
    repository.replay("claude-2.1.325/SubagentStart")
    (state,) = (repository.root / ".ai-workspace").glob("*/flow-state.json")
    (entry,) = json.loads(state.read_text())["agent_history"]
    assert (entry["agent"], entry["status"]) == ("worker", "in_progress")
    repository.replay("claude-2.1.325/SubagentStop")
    (entry,) = json.loads(state.read_text())["agent_history"]
    assert (entry["status"], entry["output_summary"]) == ("completed", "sub.txt written")


def test_a_run_shown_twice_changes_twice(repository: Any) -> None:
    """One run, the feature's file and the ticket's: one report, both files."""
    repository.feature.start("OAuth login", session=SESSION)
    with repository.workspace.turn() as turn:
        turn.do("oauth-login", {"do": "ShowIn", "dialect": "flow", "place": {"tree": "", "folder": "TICKET-2"}})
    repository.replay("claude-2.1.325/SubagentStop", agent_type="feature-dev-plus:spec-writer")
    ticket = json.loads((repository.root / ".ai-workspace" / "TICKET-2" / "flow-state.json").read_text())
    assert [(entry["agent"], entry["status"]) for entry in ticket["agent_history"]] == [("spec-writer", "completed")]
    assert repository.state["phases"]["spec"] == "completed"


def test_a_staged_tasks_context_is_saved_and_handed_back(repository: Any) -> None:
    repository.workspace.staged.init("Sign in")
    repository.replay("claude-2.1.325/SubagentStart", session_id=SESSION)
    repository.replay("claude-2.1.325/PreCompact.auto", session_id=SESSION)
    said = repository.replay("claude-2.1.325/SessionStart.compact")
    assert "Run in progress" in said["hookSpecificOutput"]["additionalContext"]
