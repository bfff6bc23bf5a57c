"""Input that reached an error of Python's own once: refused by name now, and nothing is changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def say(place: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tenuto", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=place, input=given, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    assert say(tmp_path, "flow", "initialize_workflow", "T-1").returncode == 0
    assert say(tmp_path, "staged", "init", "--task", "x", "--pipelineProfile", "minimal").returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    ("words", "given", "code"),
    [
        (["flow", "get_current_state", "T-1", "--phase", "planning"], "", "usage"),
        (["flow", "resume_workflow", "T-1", "--quality_gates", "{}"], "", "usage"),
        (["flow", "initialize_workflow", "T-2", "-"], '{"description": {"a": 1}}', "bad-field"),
        (["flow", "update_delegation", "T-1", "-"], '{"agent": "x", "task": {}}', "bad-field"),
        (["flow", "update_delegation", "T-1", "-"], '{"agent": "x", "context_summary": 3}', "bad-field"),
        (["staged", "record-output", "0", '{"file": 2}'], "", "bad-file"),
        (["staged", "record-output", "0", '{"file": {"a": 1}}'], "", "bad-file"),
    ],
)
def test_a_command_with_a_value_of_the_wrong_kind(place: Path, words: list[str], given: str, code: str) -> None:
    said = say(place, *words, given=given)
    assert said.returncode == 2 and f"[{code}]" in said.stderr, said.stderr


def test_settings_that_are_no_text(place: Path) -> None:
    (place / ".tenuto").mkdir(exist_ok=True)
    (place / ".tenuto/config.yaml").write_bytes(b"\xff\xfe")
    said = say(place, "run", "x", "--agent", "command:true")
    assert said.returncode == 2 and "config.yaml is not UTF-8" in said.stderr, said.stderr
