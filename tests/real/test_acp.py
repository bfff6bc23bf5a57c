"""What agents over the Agent Client Protocol have besides the contract: permission by rule, the model asked for.
With real programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import Lab
from tests.real.other_subjects import ClaudeAcpSubject, CodexAcpSubject, GeminiSubject, Slow
from tests.real.stage import Ran, Stage

FIRST, SECOND = "work-1-worker-1", "work-1-worker-2"


@pytest.fixture
def claude(lab: Lab, tmp_path: Path, program: Callable[[str], str]) -> ClaudeAcpSubject:
    return ClaudeAcpSubject(lab, tmp_path, program)


def ran(subject: Slow, turns: Any, spelling: str) -> tuple[Stage, Ran]:
    subject.model = subject.lab.model({"work": turns})
    stage = Stage(subject.folder, subject.environment("done"))
    return stage, stage.run("--agent", spelling)


@pytest.mark.parametrize(("permit", "runs"), [("edits", False), ("all", True)])
def test_commands_are_run_where_everything_is_permitted(claude: ClaudeAcpSubject, permit: str, runs: bool) -> None:
    """What was rejected is told to the model, and to the person who reads why the attempt failed."""
    shell = {"tool": "Bash", "input": {"command": "printf x > out.md", "description": "write it"}}
    stage, found = ran(
        claude,
        [[shell], ["DONE: ran it"] if runs else ["It was not allowed."]],
        f"acp:permit={permit} claude-agent-acp",
    )
    assert stage.output.exists() == runs
    assert found.only["verdict"] == ("DONE" if runs else "ERROR"), found.only["summary"]
    assert ("[permit=edits rejected a request: printf x > out.md]" in found.only["summary"]) != runs


def test_files_outside_of_the_work_directory_are_not_written(claude: ClaudeAcpSubject) -> None:
    outside = claude.folder / "outside.md"
    write = {"tool": "Write", "input": {"file_path": str(outside), "content": "x"}}
    _, found = ran(claude, [[write], ["ERROR: not allowed"]], "acp:claude-agent-acp")
    assert not outside.exists()
    assert found.only["verdict"] == "ERROR" and "permit=edits rejected" in found.only["summary"]


def test_with_no_permission_another_program_writes_nothing_either(
    lab: Lab, tmp_path: Path, program: Callable[[str], str]
) -> None:
    gemini = GeminiSubject(lab, tmp_path, program)
    stage, found = ran(
        gemini, [[gemini.write("out.md", "x")], ["DONE: wrote it"]], "acp:permit=none gemini --acp --skip-trust"
    )
    assert not stage.output.exists()
    assert found.only["verdict"] == "ERROR" and "out.md does not exist" in found.only["summary"]


@pytest.mark.parametrize("model", ["haiku", "no-such-model"])
def test_the_model_that_is_asked_for_is_used_and_one_that_is_not_offered_is_an_error(
    claude: ClaudeAcpSubject, model: str
) -> None:
    _, found = ran(claude, claude.turns("done"), f"acp:model={model} claude-agent-acp")
    used = {one.body["model"] for one in claude.model.requests if one.asked.tools}
    if model == "haiku":
        assert found.only["verdict"] == "DONE" and all("haiku" in name for name in used), (used, found.only["summary"])
    else:
        assert found.only["verdict"] == "ERROR" and model in found.only["summary"], found.only["summary"]
        assert not used, "nothing is asked of another model"


def test_a_session_that_is_gone_is_started_over_in_the_same_start(
    lab: Lab, tmp_path: Path, program: Callable[[str], str]
) -> None:
    codex = CodexAcpSubject(lab, tmp_path, program)
    codex.model = lab.model({"work": codex.half_way})
    stage = Stage(codex.folder, codex.environment("done"))
    with stage.begin("--agent", "acp:codex-acp") as engine:
        codex.wait_until_begun()
        engine.kill()
    stage.kill(FIRST)
    for kept in (lab.home / ".codex").rglob("*.jsonl"):
        kept.unlink()
    for kept in (lab.home / ".codex").glob("*.sqlite*"):
        kept.unlink()
    codex.model.scripts["work"] = codex.turns("done")
    found = stage.go_on("--agent", "acp:codex-acp")
    assert found.status == "completed", found.out + found.err
    assert (found.attempts[SECOND]["summary"], found.attempts[SECOND]["receipt"]["starts"]) == ("wrote it", 1)


def test_a_program_that_does_not_speak_the_protocol_is_named(lab: Lab, tmp_path: Path) -> None:
    lab.model({})
    stage = Stage(tmp_path, lab.environment("claude"))
    found = stage.run("--agent", "acp:sh -c 'echo no such option >&2; exit 2'")
    assert found.only["verdict"] == "ERROR"
    assert found.only["summary"] == "sh, at initialize: it ended with exit status 2: no such option"
