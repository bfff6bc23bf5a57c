"""What a hook process loads, module by module: this list is why a hook is fast.

A module more is a decision. Each of ours costs about a hundredth of a bare start, `os` a fifth, `re` and
`json` most of one. If this test is red, make the new import lazy, or defend it here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto

ROOT = Path(__file__).resolve().parents[2]

LISTENING = {
    "tenuto",
    "tenuto.hooks",
    "tenuto.hooks.call",
    "tenuto.hooks.parse",
    "tenuto.encoding",
    "tenuto.errors",
    "tenuto.stores",  # says whether there is a journal, without loading one
    "tenuto.workspace",
    "tenuto.workspace.locate",
    "__future__",
    "_json",
    "_sha2",
}
WORKSPACE = {
    "tenuto.core.decisions",
    "tenuto.core.decisions.new_event",
    "tenuto.core.parts",
    "tenuto.workspace.workspace",
    "tenuto.workspace.publish",
    "tenuto.workspace.edits",
    "tenuto.files",
    "tenuto.files.exchange",
    "tenuto.names",
    "tenuto.views",
    "tenuto.core",
    "tenuto.core.times",
    "tenuto.core.decide",
    "tenuto.core.fold",
    "tenuto.core.status",
    "tenuto.core.upgrade",
    "tenuto.stores.sqlite",
    "tenuto.stores.database",
    "tenuto.stores.journal",
    "tenuto.stores.tables",
    "_sqlite3",
    "_functools",
    "fcntl",
}
RECORDING = {
    "tenuto.agents",
    "tenuto.agents.reply",
    "tenuto.hooks.delegations",
    "tenuto.core.decisions.attempts",
    "tenuto.views.feature_state",
    "_ctypes",
}
COMPLETING = {"tenuto.dialects", "tenuto.dialects.feature_progress", "tenuto.core.decisions.steps"}
ASKING = {"tenuto.hooks.gates", "tenuto.core.approvals"}

LOCATING = {"tenuto.workspace", "tenuto.workspace.locate"}

WATCH = """
import sys
before = set(sys.modules)
sys.path.append(sys.argv[1])
from tenuto.hooks.call import call
call([sys.argv[2]])
loaded = {"_sha2" if name == "_sha256" else name for name in set(sys.modules) - before}
print(*sorted(loaded))
"""


def loaded_by(root: Path, event: str, payload: dict[str, Any]) -> set[str]:
    command = [sys.executable, "-I", "-S", "-c", WATCH, str(ROOT), event]
    text = json.dumps({"session_id": "s", "cwd": str(root), "hook_event_name": event, **payload})
    done = subprocess.run(command, input=text, cwd=root, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    workspace = tenuto.open(str(tmp_path))
    workspace.feature_state.start("Hot", session="s", skip=["discovery"])
    with workspace.turn() as turn:
        for name in ("one", "two"):
            turn.do("hot", {"do": "DispatchAttempt", "attempt": name, "role": "worker"})
    return tmp_path


STOP = {"agent_id": "one", "agent_type": "kit:worker", "last_assistant_message": "DONE: it"}


def test_a_stop_that_is_recorded(repository: Path) -> None:
    assert loaded_by(repository, "SubagentStop", STOP) == LISTENING | WORKSPACE | RECORDING


def test_a_stop_that_completes_a_phase(repository: Path) -> None:
    stop = STOP | {"agent_type": "feature-dev-plus:spec-writer"}
    assert loaded_by(repository, "SubagentStop", stop) == LISTENING | WORKSPACE | RECORDING | COMPLETING


def test_a_tool_nobody_asks_about(repository: Path) -> None:
    """Every command of the shell comes by here: not even the journal is opened."""
    bash = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert loaded_by(repository, "PreToolUse", bash) == LISTENING - LOCATING


def test_a_call_that_is_asked_about(repository: Path) -> None:
    call = {"tool_name": "Agent", "tool_input": {"subagent_type": "worker"}}
    assert loaded_by(repository, "PreToolUse", call) == LISTENING | WORKSPACE | ASKING


def test_where_tenuto_is_not_used(tmp_path: Path) -> None:
    assert loaded_by(tmp_path, "PreToolUse", {"tool_name": "Agent", "tool_input": {}}) == LISTENING
    assert loaded_by(tmp_path, "MessageDisplay", {}) == LISTENING - LOCATING
