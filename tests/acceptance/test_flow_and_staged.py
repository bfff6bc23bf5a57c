"""`tenuto flow` and `tenuto staged` as programs: words or JSON in, JSON and an exit status out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tenuto.entrypoints.launch import main; main()"


class Said(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def tenuto(tmp_path: Path) -> Callable[..., Said]:
    def call(*words: str, given: str | None = None) -> Said:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", PROGRAM, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            input=given if given is not None else "",
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return call


def test_a_ticket_by_words_and_by_json(tenuto: Callable[..., Said], tmp_path: Path) -> None:
    assert (
        tenuto("flow", "initialize_workflow", "TICKET-123", "--context_summary", "Login").data["phase"]
        == "understanding"
    )
    assert tenuto("flow", "update_delegation", "TICKET-123", "--agent=deep_research", "--task", "analysis").status == 0
    given = {"agent": "deep_research", "output_summary": "Found it", "files_modified": ["a.py"], "step_number": 1}
    assert tenuto("flow", "update_completion", "TICKET-123", given=json.dumps(given)).data["next_actions"] == [
        "get_user_approval"
    ]
    given = {"command": "update_user_checkpoint", "ticket": "TICKET-123", "phase": "understanding", "approved": True}
    assert tenuto("flow", "-", given=json.dumps(given)).data["phase"] == "planning"
    state = tenuto("flow", "get_current_state", "TICKET-123").data
    assert state["agent_history"][0]["files_modified"] == ["a.py"]
    assert state == json.loads((tmp_path / ".ai-workspace/TICKET-123/flow-state.json").read_text())


def test_flow_refuses_with_a_status_and_says_why(tenuto: Callable[..., Said]) -> None:
    tenuto("flow", "initialize_workflow", "T-1")
    for words, status, told in (
        (["update_phase", "--phase", "planning"], 4, "not approved"),
        (["update_completion", "--agent", "x"], 4, "no delegation"),
        (["update_user_checkpoint", "--phase", "planning", "--approved", "true"], 4, "no phase 'planning' to approve"),
        (["update_delegation", "--agent", "state-manager"], 4, "state manager"),
        (["update_delegation", "--task", "t"], 2, "needs agent"),
        (["update_everything"], 2, "has no command"),
        (["update_phase", "T-1", "T-2", "--phase", "planning"], 2, "one ticket"),
        (["get_current_state", "T-9"], 3, "no workflow"),
    ):
        said = tenuto("flow", *words)
        assert (said.status, said.out) == (status, "") and told in said.err, words
        told_as_json = tenuto("flow", *words, "--json").data
        assert told_as_json["ok"] is False and told in told_as_json["error"]["message"]


def test_a_staged_task_by_json(tenuto: Callable[..., Said], tmp_path: Path) -> None:
    assert tenuto("staged", "read").data is None
    init = tenuto("staged", "init", json.dumps({"task": "Dark mode", "taskAnalysis": {"complexity": "simple"}}))
    assert init.data["pipelineProfile"] == "minimal"
    blocked = tenuto("staged", "advance")
    assert (blocked.status, blocked.data) == (4, {"passed": False, "missing": ["0-explore.md"]})
    (tmp_path / "found.md").write_text("found\n")
    assert tenuto("staged", "record-output", "0", "--content-file", "found.md").status == 0
    assert tenuto("staged", "validate-gate").data == {"passed": True}
    assert tenuto("staged", "advance").data["currentPhase"] == "2.1"
    assert tenuto("staged", "update", "-", given='{"coverageThreshold": 80}').data["coverageThreshold"] == 80
    assert tenuto("staged", "record-output", "2.1", "--file", "-", given='{"tasks": []}').status == 0
    tenuto("staged", "advance")
    review = tenuto("staged", "record-review", '{"status": "needs_revision", "issues": []}')
    assert (review.status, review.data["review"]["next"]) == (4, "supplementary")
    assert tenuto("staged", "record-review", '{"status": "approved", "issues": []}').status == 0
    assert tenuto("staged", "advance").data["currentStage"] == "FINAL"
    failed = tenuto("staged", "record-failure", '{"phase": "4.2", "error": "gone", "context": {"a": 1}}')
    assert failed.data["failure"]["error"] == "gone"
    assert tenuto("staged", "read", "--json").data["data"]["status"] == "failed"


def test_staged_refuses_with_a_status_and_says_why(tenuto: Callable[..., Said]) -> None:
    assert tenuto("staged", "advance").status == 3
    tenuto("staged", "init", "--task", "Dark mode")
    for words, status, told in (
        (["update", '{"status": "completed"}'], 4, "status is not changed by update"),
        (["init", "--task", "Another"], 4, "unfinished"),
        (["validate-gate", "A->B"], 4, "no gate"),
        (["init", "--task", "x", "--pipelineProfile", "huge"], 4, "unfinished"),
        (["update", "{broken"], 2, "not JSON"),
        (["record-output"], 2, "phase is missing"),
        (["explode"], 2, "has no operation"),
        (["restart", "TEST"], 4, "not reached"),
    ):
        said = tenuto("staged", *words)
        assert said.status == status and told in said.err, (words, said)


@pytest.mark.parametrize("command", ["flow", "staged"])
def test_help_shows_every_command(tenuto: Callable[..., Said], command: str) -> None:
    from tenuto.dialects.flow import NAMES
    from tenuto.entrypoints.staged import OPERATIONS

    said = tenuto(command, "--help")
    assert said.status == 0
    assert all(name in said.out for name in (NAMES if command == "flow" else OPERATIONS))
    assert tenuto(command).status == 2


def test_hot_commands_load_nothing_heavy(tmp_path: Path) -> None:
    """They run inside somebody's agent session, many times a day."""
    heavy = (
        "argparse",
        "click",
        "dataclasses",
        "datetime",
        "hashlib",
        "json",
        "logging",
        "pathlib",
        "re",
        "subprocess",
        "typing",
    )
    watch = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tenuto.entrypoints.launch import answer
for words in (["staged", "init", "--task", "x"], ["staged", "update", '{{"extra": {{"a": 1}}}}'], ["staged", "record-output", "0", "--content", "x"],
              ["staged", "advance"], ["flow", "initialize_workflow", "T-1"], ["flow", "update_delegation", "--agent", "x"],
              ["flow", "update_completion", "--agent", "x"], ["flow", "get_current_state"]):
    assert answer(words) == 0, words
sys.stderr.write(",".join(name for name in {heavy!r} if name in sys.modules))
"""  # noqa: E501
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", watch], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
