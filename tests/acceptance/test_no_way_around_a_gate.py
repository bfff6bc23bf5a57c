"""A model in somebody's session (an agent program started what asks) finds no way around a gate of a run that
follows a pipeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.rehearsing import Stage

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = "docs/orchestrator/context/tasks/dark-mode/manifest.json"
WAYS = [
    ["approve", "dark-mode"],
    ["reject", "dark-mode"],
    ["revise", "dark-mode", "--feedback", "good as it is"],
    ["context", "RESUME decision: approve"],
    ["context", "RESUME decision: revise feedback: good"],
    ["run", "--no-input", "approve", "--agent", "scripted:../answers.yaml"],
    ["run", "--run", "dark-mode", "--at", "spec-writer", "--start-only"],
    ["run", "--run", "dark-mode", "--pipeline", "poc", "--start-only"],
    ["release", "dark-mode"],
    ["retry", "dark-mode", "spec-writer"],
    ["resume", "dark-mode", "--limit", "attempts=900", "--no-drive"],
    ["hook", "declare", "gate=off"],
]


def program(root: Path, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    around = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-m", "tenuto", *words], cwd=root, env=around, capture_output=True, text=True, check=False
    )


@pytest.fixture
def waiting(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    assert stage.play("Dark mode", "orchestrate", in_advance="")["status"] == "waiting_gate"
    return stage


def test_every_command_is_refused_and_nothing_is_written(waiting: Stage) -> None:
    before = waiting.workspace.load("dark-mode")["version"]
    for words in WAYS:
        done = program(waiting.root, words, CLAUDECODE="1")
        assert done.returncode in (1, 4) and "only a person can" in done.stdout + done.stderr, (words, done)
        assert "retrystep" not in done.stderr
    assert waiting.workspace.load("dark-mode")["version"] == before
    assert program(waiting.root, WAYS[3]).returncode == 0, "for a person it is one command"


def test_nor_does_an_edited_file_open_it(waiting: Stage) -> None:
    """The state file claims that the run goes on: nobody believes it."""
    file = waiting.root / MANIFEST
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "status": "running", "gate_context": None}))
    done = program(waiting.root, ["context", "START_PHASE phase: spec-writer"], CLAUDECODE="1")
    assert done.returncode == 1 and "waiting for gate approval" in done.stdout, done
    assert program(waiting.root, ["next", "--json"], CLAUDECODE="1").returncode in (4, 5)
    run = waiting.workspace.load("dark-mode")
    assert run["status"] == "waiting_gate" and not run["decisions"]


def test_nor_does_one_end_a_pause(waiting: Stage) -> None:
    waiting.workspace.context.resume("approve")
    assert program(waiting.root, ["pause", "dark-mode"]).returncode == 0
    file = waiting.root / MANIFEST
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "status": "running", "failure_context": None, "mine": 1}))
    done = program(waiting.root, ["next"], CLAUDECODE="1")
    assert done.returncode != 0 and waiting.workspace.load("dark-mode")["status"] == "paused", done


def test_stopping_is_always_allowed(waiting: Stage) -> None:
    waiting.workspace.context.resume("approve")
    assert program(waiting.root, ["pause", "dark-mode"], CLAUDECODE="1").returncode == 0
    assert program(waiting.root, ["cancel", "dark-mode"], CLAUDECODE="1").returncode == 0


def test_by_hand_a_model_passes_on_what_its_user_said(tmp_path: Path) -> None:
    """No pipeline is in force: the model is the user's clerk, as the context manager has it."""
    stage = Stage(tmp_path)
    stage.workspace.context.init("Dark mode")
    stage.workspace.context.set_gate("design", "Good?", [])
    assert program(stage.root, ["context", "RESUME decision: approve"], CLAUDECODE="1").returncode == 0
