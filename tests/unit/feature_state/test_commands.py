"""`tenuto feature`: a feature from its start to its commit, by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import loads
from tenuto.engine.begin import start
from tenuto.engine.gates import command
from tenuto.entrypoints.launch import answer
from tenuto.errors import Refused

Tell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tell:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = answer(["feature", *words])
        return status, *capsys.readouterr()

    return call


def state() -> Any:
    return json.loads(Path(".feature-state.json").read_text())


def test_a_feature_from_start_to_commit(tell: Tell) -> None:
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "before"]):
        subprocess.run(["git", *words], check=True)
    assert tell("start", "OAuth login", "Let people in")[0] == 0
    for key in ("problem", "users", "outcome", "constraints", "successCriteria"):
        assert tell("answer", key, "because", "of", key)[0] == 0
    assert state()["phases"]["discovery"] == "completed"
    assert tell("done", "spec")[0] == 0
    assert tell("done", "plan")[0] == 0
    assert tell("task", "add", "Provider", "Tokens")[0] == 0
    status, _, said = tell("done", "implementation")
    assert (status, "not approved" in said) == (4, True)
    assert tell("answer", "approval", "--approve")[0] == 0
    assert tell("task", "1", "completed", "--next", "2", "--file", "src/a.py")[0] == 0
    assert [task["status"] for task in state()["tasks"]] == ["completed", "in_progress"]
    assert tell("task", "2", "completed")[0] == 0
    assert tell("done", "implementation")[0] == 0
    assert tell("skip", "test")[0] == 0
    Path("a.txt").write_text("x")
    subprocess.run(["git", "add", "a.txt"], check=True)
    status, out, _ = tell("commit", "-m", "Sign in with a provider", "--json")
    assert status == 0
    assert loads(out)["data"]["status"] == "completed"
    head = subprocess.run(["git", "log", "-1", "--format=%s"], check=True, capture_output=True, text=True).stdout
    assert head == "Sign in with a provider\n"
    assert state()["phases"]["commit"] == "completed"
    assert tell("task", "1", "completed")[0] == 4
    assert tell("start", "Next one")[0] == 0
    assert state()["currentFeature"]["name"] == "next-one"


def test_nothing_is_committed_before_the_approval(tell: Tell) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    tell("start", "OAuth login")
    Path("a.txt").write_text("x")
    subprocess.run(["git", "add", "a.txt"], check=True)
    status, _, said = tell("commit", "-m", "too early")
    assert (status, "not approved" in said) == (4, True)
    assert subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD"], check=False, capture_output=True).returncode


def test_a_revision_takes_the_plan_up_again(tell: Tell) -> None:
    tell("start", "OAuth login", "--skip", "discovery")
    tell("done", "spec")
    tell("done", "plan")
    assert tell("answer", "approval", "--revise", "more detail")[0] == 0
    assert state()["currentFeature"]["phase"] == "plan"
    tell("done", "plan")
    assert state()["phases"]["approval"] == "in_progress"
    tell("answer", "approval", "--approve")
    assert state()["currentFeature"]["phase"] == "implementation"


@pytest.mark.parametrize("agent", ["CLAUDECODE", "TENUTO_ATTEMPT", "GEMINI_CLI"])
def test_an_agent_does_not_approve(tell: Tell, monkeypatch: pytest.MonkeyPatch, agent: str) -> None:
    tell("start", "OAuth login", "--skip", "discovery")
    tell("done", "spec")
    tell("done", "plan")
    monkeypatch.setenv(agent, "1")
    status, _, said = tell("answer", "approval", "--approve")
    assert (status, "person" in said) == (4, True)
    assert state()["phases"]["approval"] == "in_progress"


def test_an_agent_does_not_approve_through_the_library(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is not the only door: one line of Python opens the workspace, too."""
    tell("start", "OAuth login", "--skip", "discovery")
    tell("done", "spec")
    tell("done", "plan")
    feature: Any = tenuto.open(".").feature_state
    ways: list[Callable[[], Any]] = [lambda: feature.approve("ada"), lambda: feature.revise("ada", "more")]
    with monkeypatch.context() as inside:
        inside.setenv("TENUTO_ATTEMPT", "x.work-1.1")
        for decide in ways:
            with pytest.raises(Refused) as refusal:
                decide()
            assert refusal.value.code == "agent-decides"
    assert state()["phases"]["approval"] == "in_progress"
    feature.approve("ada")
    assert state()["phases"]["approval"] == "completed"


def test_where_decisions_are_signed_a_word_is_no_approval(tell: Tell) -> None:
    tell("start", "OAuth login", "--skip", "discovery")
    tell("done", "spec")
    tell("done", "plan")
    Path(".tenuto").mkdir(exist_ok=True)
    Path(".tenuto/config.yaml").write_text("gates: signed\n")
    status, _, said = tell("answer", "approval", "--approve")
    assert (status, "not-signed" in said) == (4, True)
    assert state()["phases"]["approval"] == "in_progress"


def test_a_run_that_an_engine_drives_leaves_nothing_out_by_hand_and_one_with_other_steps_is_understood(
    tell: Tell,
) -> None:
    Path(".tenuto/pipelines").mkdir(parents=True, exist_ok=True)
    steps = "  - {id: discovery, agent: {role: researcher}}\n  - {id: other, agent: {role: researcher}}\n"
    Path(".tenuto/pipelines/own.yaml").write_text(
        f"name: own\ndocuments: docs\nshown_as: feature_state\nsteps:\n{steps}"
    )
    start(tenuto.open("."), "Dark mode", "own", name="r")
    for words in (("skip", "discovery"), ("done", "discovery")):
        status, _, said = tell(*words)
        assert status == 4 and "driven by the engine" in said, words
    command(tenuto.open("."), "r", {"do": "ChangeDriver", "driver": "manual"})
    later = (("skip", "discovery"), ("done", "spec"), ("answer", "approval", "--approve"))
    for line in later:
        status, _, said = tell(*line)
        assert status in (0, 4) and "unexpected" not in said, line


def test_one_feature_at_a_time(tell: Tell) -> None:
    tell("start", "One")
    status, _, said = tell("start", "Two")
    assert (status, "feature-active" in said) == (4, True)
    assert tell("cancel", "not needed")[0] == 0
    assert state()["currentFeature"]["pauseReason"] == "user_request"
    assert tell("start", "Two")[0] == 0


def test_the_same_name_again_is_another_run(tell: Tell) -> None:
    tell("start", "One")
    tell("cancel")
    status, out, _ = tell("start", "One", "--json")
    assert status == 0
    assert loads(out)["data"]["run"] == "one-2"
    assert state()["currentFeature"]["name"] == "one"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), 2),
        (("dance",), 2),
        (("start",), 2),
        (("status",), 3),
        (("resume",), 3),
        (("task", "1", "completed"), 3),
        (("start", "x", "--skip", "plan"), 2),
        (("start", "x", "--gate", "maybe"), 2),
        (("start", "--wrong"), 2),
        (("--help",), 0),
    ],
)
def test_wrong_words_get_an_answer(tell: Tell, words: tuple[str, ...], status: int) -> None:
    got, out, err = tell(*words)
    assert got == status
    assert out if status == 0 else err
    assert not Path(".feature-state.json").exists()


def test_a_payload_on_standard_input(tell: Tell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell("start", "One")
    tell("task", "add", "a")
    (tmp_path / "payload").write_text(
        '{"type": "task_update", "taskId": 1, "newStatus": "completed", "timestamp": "T1"}'
    )
    with (tmp_path / "payload").open() as payload:
        monkeypatch.setattr("sys.stdin", payload)
        assert tell("task", "-")[0] == 0
    assert state()["tasks"][0]["status"] == "completed"
