"""`/tenuto:approve`, typed by a person into an agent program, opens a gate. Said by anybody else it opens nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import dumps, loads
from tenuto.hooks.sessions import arguments, decision_of
from tests.unit.cli.conftest import start

HOOK = Path(tenuto.__file__).parent / "entrypoints" / "hook.py"
CALLED_BY_THE_PROGRAM = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_SESSION_ATTENDED": "1",
    "CLAUDE_PROJECT_DIR": "/x",
    "CLAUDE_PID": "{pid}",
}


@pytest.fixture
def waiting(tmp_path: Path) -> tenuto.Workspace:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    workspace = tenuto.open(str(tmp_path))
    start(workspace, "dark-mode", shown=False)
    with workspace.turn() as turn:
        turn.do("dark-mode", {"do": "OpenGate", "name": "design", "prompt": "Ship it?"})
    return workspace


def hook(root: str, prompt: str, environment: dict[str, str], shell: bool = False, **more: Any) -> str:
    """As the program calls it: its process is the hook's parent. Through a model's shell it is not."""
    payload = dumps({"session_id": "s", "cwd": root, "hook_event_name": "UserPromptSubmit", "prompt": prompt, **more})
    command = [sys.executable, "-I", "-S", str(HOOK), "UserPromptSubmit"]
    if shell:
        command = ["sh", "-c", '"$@"; exit 0', "sh", *command]
    told = {name: value.replace("{pid}", str(os.getpid())) for name, value in environment.items()}
    ran = subprocess.run(
        command,
        input=payload,
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={"PATH": os.environ["PATH"], **told},
    )
    return ran.stdout


def test_a_person_who_types_it_passes_the_gate(waiting: tenuto.Workspace) -> None:
    """Without a model: the prompt ends there, with what came of it."""
    said = loads(hook(waiting.root, "/tenuto:approve looks right", CALLED_BY_THE_PROGRAM))
    assert said["decision"] == "block"
    assert "dark-mode: approve recorded" in said["reason"]
    assert waiting.load("dark-mode")["gate"] is None
    with waiting.journal.read() as reader:
        [decided] = [event for event in reader.events("dark-mode") if event["type"] == "GateDecided"]
    assert (decided["decision"], decided["feedback"]) == ("approve", "looks right")


@pytest.mark.parametrize(
    ("changed", "more"),
    [
        ({"CLAUDE_CODE_SESSION_ATTENDED": "0"}, {}),
        ({"CLAUDE_CODE_SESSION_ATTENDED": ""}, {}),
        ({"CLAUDE_PID": "1"}, {}),
        ({}, {"agent_id": "a1", "agent_type": "worker"}),
        ({"TENUTO_ATTEMPT": "a"}, {}),
    ],
    ids=["nobody is there", "not told", "not called by the program", "an agent's prompt", "an agent of ours"],
)
def test_nobody_else_does(changed: dict[str, str], more: dict[str, Any], waiting: tenuto.Workspace) -> None:
    said = hook(waiting.root, "/tenuto:approve", CALLED_BY_THE_PROGRAM | changed, **more)
    assert "recorded" not in said
    assert waiting.load("dark-mode")["gate"] is not None


def test_a_model_that_plays_the_hook_does_not(waiting: tenuto.Workspace) -> None:
    """The same words to the same hook, out of a shell inside the program."""
    shell = {name: value for name, value in CALLED_BY_THE_PROGRAM.items() if name != "CLAUDE_PROJECT_DIR"}
    assert hook(waiting.root, "/tenuto:approve", shell) == ""
    assert hook(waiting.root, "/tenuto:approve", CALLED_BY_THE_PROGRAM, shell=True) == ""
    assert waiting.load("dark-mode")["gate"] is not None


@pytest.mark.parametrize(
    "text", ["approve", "/tenuto:approved", "please /tenuto:approve", "/tenuto:run x", "/other:approve", "/tenuto:"]
)
def test_other_words_decide_nothing(text: str) -> None:
    assert decision_of(text) == ("", "")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", ["b"]),
        ("a", ["a"]),
        ("a it is fine", ["a", "--feedback", "it is fine"]),
        ("don't ship", ["b", "--feedback", "don't ship"]),
        ("a --feedback 'use tabs'", ["a", "--feedback", "use tabs"]),
        ("--feedback 'half", ["b", "--feedback", "'half"]),
    ],
)
def test_the_run_comes_first_and_the_rest_is_feedback(words: str, wanted: list[str]) -> None:
    assert arguments(words, ["a", "b"], "b") == wanted
