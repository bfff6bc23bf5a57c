"""The three state managers as their users meet them: what a reader of the three documents tries first.

Everything here runs the program itself, in a repository of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenuto.encoding import NotJson, loads_strict

FLOW, STAGED, FEATURE = ".ai-workspace/T-1/flow-state.json", ".agents/tmp/state.json", ".feature-state.json"
BEGIN = {
    FLOW: ["flow", "initialize_workflow", "T-1"],
    STAGED: ["staged", "init", "--task", "Dark mode"],
    FEATURE: ["feature", "start", "Dark mode"],
}
GO_ON = {
    FLOW: ["flow", "update_delegation", "T-1", "--agent", "plan_work", "--task", "plan"],
    STAGED: ["staged", "update", '{"webSearch": false}'],
    FEATURE: ["feature", "answer", "problem", "Bright screens"],
}
REFUSED = {FLOW: 4, STAGED: 4, FEATURE: 1}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def tenuto(repository: Path, *words: str, given: Any = None, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "TENUTO"))}
    return subprocess.run(
        [sys.executable, "-m", "tenuto", *words],
        cwd=repository,
        text=True,
        capture_output=True,
        check=False,
        env=inherited | environment,
        input=json.dumps(given) if given is not None else "",
    )


def state(repository: Path, path: str) -> Any:
    return json.loads((repository / path).read_text())


@pytest.mark.parametrize("path", [FLOW, STAGED, FEATURE])
@pytest.mark.parametrize("keep", [2, -40])
def test_a_truncated_file_is_refused_and_left(repository: Path, path: str, keep: int) -> None:
    """Its beginning is ours, but we never leave only that: somebody else cut it."""
    assert tenuto(repository, *BEGIN[path]).returncode == 0
    cut = (repository / path).read_bytes()[:keep]
    (repository / path).write_bytes(cut)
    answer = tenuto(repository, *GO_ON[path])
    assert answer.returncode == REFUSED[path], answer.stderr
    assert (repository / path).read_bytes() == cut


@pytest.mark.parametrize("path", [FLOW, STAGED, FEATURE])
def test_a_number_that_cannot_be_kept_is_not_json(repository: Path, path: str) -> None:
    """1e400 would be read as an infinity, which no JSON can tell of afterwards."""
    assert tenuto(repository, *BEGIN[path]).returncode == 0
    text = (repository / path).read_text().replace("{", '{"theirs": 1e400,', 1)
    (repository / path).write_text(text)
    answer = tenuto(repository, *GO_ON[path])
    assert (answer.returncode, "unexpected" in answer.stderr) == (REFUSED[path], False)
    assert (repository / path).read_text() == text
    with pytest.raises(NotJson, match="1e400"):
        loads_strict(text)


@pytest.mark.parametrize("path", [FLOW, STAGED, FEATURE])
def test_an_adopted_file_is_nobodys_late_write(repository: Path, path: str) -> None:
    """What was adopted stands aside after the first write; it must not be taken for an edit of somebody who is late."""
    there = repository / path
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text(json.dumps(FROM_BEFORE[path]))
    assert tenuto(repository, "adopt").returncode == 0
    for _ in range(2):
        answer = tenuto(repository, *GO_ON[path])
        assert answer.returncode == 0
        assert answer.stderr in ("", "tenuto: nothing was changed: webSearch had this value before\n")
    history = json.loads(tenuto(repository, "--json", "history").stdout)
    assert "EditAbsorbed" not in json.dumps(history)
    assert state(repository, path)["theirs"] == {"kept": True}


FROM_BEFORE: dict[str, Any] = {
    FLOW: {
        "workflow_id": "T-1",
        "phase": "planning",
        "started_at": "2025-06-29T10:30:00Z",
        "updated_at": "2025-06-29T11:00:00Z",
        "current_step": "execute_step_3",
        "completed_phases": ["understanding"],
        "next_actions": ["proceed_to_next_step"],
        "agent_history": [],
        "user_checkpoints": [],
        "commits_created": [],
        "context_summary": "Old",
        "quality_gates": {},
        "theirs": {"kept": True},
    },
    STAGED: {
        "version": 2,
        "task": "Old",
        "status": "in_progress",
        "currentStage": "PLAN",
        "currentPhase": "1.2",
        "pipelineProfile": "thorough",
        "stages": {"PLAN": {"status": "pending", "phases": {}}},
        "theirs": {"kept": True},
    },
    FEATURE: {
        "currentFeature": {"name": "old", "description": "Old", "phase": "spec"},
        "phases": {
            "discovery": "completed",
            "spec": "in_progress",
            "plan": "pending",
            "approval": "pending",
            "implementation": "pending",
            "test": "pending",
            "commit": "pending",
        },
        "tasks": [],
        "theirs": {"kept": True},
    },
}


def test_a_phase_that_is_no_review_takes_none(repository: Path) -> None:
    """A review of the tasks phase would be its output, and its gate's evidence."""
    tenuto(repository, *BEGIN[STAGED])
    answer = tenuto(repository, "staged", "record-review", '{"status": "approved", "issues": []}')
    assert answer.returncode == 4 and "1.3" in answer.stderr
    assert state(repository, STAGED)["files"] == {}


def test_nobody_begins_a_task_that_somebody_else_begins(repository: Path) -> None:
    """A state.json.tmp of this moment is another program's first write, on its way."""
    (repository / ".agents/tmp").mkdir(parents=True)
    (repository / f"{STAGED}.tmp").write_text(json.dumps(FROM_BEFORE[STAGED]))
    answer = tenuto(repository, *BEGIN[STAGED])
    assert answer.returncode == 4 and "state.json.tmp" in answer.stderr
    assert not (repository / STAGED).exists()


@pytest.mark.parametrize(
    "name", ["state_m\u0430nager", "St\u0430t\u0435 M\u0430n\u0430g\u0435r", "statemgr", "\uff53tate-manager"]
)
def test_the_state_manager_is_refused_in_any_spelling(repository: Path, name: str) -> None:
    tenuto(repository, *BEGIN[FLOW])
    answer = tenuto(repository, "flow", "update_delegation", "T-1", "--agent", name, "--task", "t")
    assert answer.returncode == 4
    assert state(repository, FLOW)["agent_history"] == []


def test_what_a_hook_records_has_the_fields_of_the_schema(repository: Path) -> None:
    """A delegation is told in five fields, whoever reported it; a hook's own notes stay in the journal."""
    tenuto(repository, *BEGIN[FLOW])
    told = {"session_id": "s", "cwd": str(repository), "agent_id": "a1", "agent_type": "kit:worker"}
    for event, more in (("SubagentStart", {}), ("SubagentStop", {"last_assistant_message": "DONE: written"})):
        assert tenuto(repository, "hook", event, given=told | more | {"hook_event_name": event}).returncode == 0
    (entry,) = state(repository, FLOW)["agent_history"]
    assert list(entry) == ["agent", "task", "status", "timestamp", "output_summary"]
    assert (entry["agent"], entry["status"], entry["output_summary"]) == ("worker", "completed", "written")


@pytest.mark.parametrize("path", [FLOW, STAGED, FEATURE])
def test_our_own_files_are_nobodys_work_in_progress(repository: Path, path: str) -> None:
    """After a compaction a session goes on with its files, not with the ones that Tenuto writes."""
    tenuto(repository, *BEGIN[path])
    (repository / "theirs.ts").write_text("half\n")
    told = {"session_id": "s", "cwd": str(repository), "transcript_path": "/t.jsonl"}
    tenuto(repository, "hook", "PreCompact", given=told | {"hook_event_name": "PreCompact", "trigger": "auto"})
    answer = tenuto(
        repository, "hook", "SessionStart", given=told | {"hook_event_name": "SessionStart", "source": "compact"}
    )
    context = json.loads(answer.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "Files in progress: theirs.ts" in context.splitlines()


def test_the_hook_command_has_a_help(repository: Path) -> None:
    answer = tenuto(repository, "hook", "--help")
    assert answer.returncode == 0 and "tenuto hook declare" in answer.stdout
    assert os.listdir(repository) == [".git"] and not (repository / ".git/tenuto").exists()


def test_a_link_is_called_a_link(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    tenuto(repository, *BEGIN[STAGED])
    outside = tmp_path_factory.mktemp("outside") / "state.json"
    outside.write_text("{}")
    (repository / STAGED).unlink()
    (repository / STAGED).symlink_to(outside)
    answer = tenuto(repository, *GO_ON[STAGED])
    assert answer.returncode == 4 and "is a symbolic link" in answer.stderr
    assert outside.read_text() == "{}"
