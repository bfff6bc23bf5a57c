"""Command steps: a program of the project in an agent's place, supervised, judged by its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.errors import BadInput, NotFound
from tests.acceptance.rehearsing import Stage
from tests.support.trusting import trust

HEAD = "name: own\ndocuments: docs/{slug}\n"


def stage_with(folder: Path, steps: str, answers: list[dict[str, Any]] | None = None) -> Stage:
    stage = Stage(folder, answers)
    own = stage.root / ".tenuto" / "pipelines"
    own.mkdir(parents=True)
    (own / "own.yaml").write_text(HEAD + steps)
    trust(stage.root)
    return stage


def play(stage: Stage, **how: Any) -> Any:
    return stage.play("Add dark mode", "own", **how)


def test_exit_status_0_is_done_and_what_it_printed_is_a_document(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, "steps:\n  - {id: hello, command: {run: [echo, hello there], stdout: said.txt}}\n")
    run = play(stage)
    attempt = run["attempts"]["hello-1-echo-1"]
    assert (run["status"], attempt["verdict"], attempt["summary"]) == ("completed", "DONE", "hello there")
    assert (attempt["role"], attempt["agent"]) == ("command", "project")
    assert stage.text("docs/add-dark-mode/said.txt") == "hello there\n"
    assert "said.txt" in run["artifacts"]


def test_another_exit_status_is_an_error_and_is_tried_again_as_the_step_says(tmp_path: Path) -> None:
    stage = stage_with(
        tmp_path, "steps:\n  - {id: build, command: [sh, -c, 'echo broken >&2; exit 3'], retry: {ERROR: 1}}\n"
    )
    run = play(stage)
    assert run["status"] == "failed"
    assert [one["summary"] for one in run["attempts"].values()] == ["exit status 3: broken"] * 2


def test_an_exit_status_may_mean_something_and_its_output_goes_back_as_a_finding(tmp_path: Path) -> None:
    steps = """
steps:
  - id: write
    agent: {role: implementer, touches: "**"}
  - id: test
    command:
      run: [sh, -c, "echo one test fails; test -e mended.txt || exit 1"]
      exits: {1: NEEDS_REVISION}
      stdout: tests.txt
    on: {NEEDS_REVISION: {route: [write], at_most: 2, then: fail}}
"""
    mend = {"for": {"step": "write", "visit": 2}, "run": "cp docs/add-dark-mode/tests.txt mended.txt"}
    stage = stage_with(tmp_path, steps, [mend])
    run = play(stage)
    assert run["status"] == "completed"
    assert [one["verdict"] for one in run["attempts"].values()] == ["DONE", "NEEDS_REVISION", "DONE", "DONE"]
    prompt = (Path(stage.workspace.state) / "attempts/add-dark-mode/write-2-implementer-1/1/prompt").read_text()
    assert "docs/add-dark-mode/tests.txt" in prompt
    assert stage.text("mended.txt") == "one test fails\n"


def test_arguments_stay_arguments_whatever_a_parameter_holds(tmp_path: Path) -> None:
    steps = """
params: {title: text}
steps:
  - id: say
    command: {run: [printf, "%s|", "{params.title}", "{slug}"], env: {TITLE: "{params.title}"}, stdout: said.txt}
  - {id: env, command: {run: [printenv, TITLE], stdout: env.txt}}
"""
    stage = stage_with(tmp_path, steps)
    hostile = "a; touch stolen $(touch stolen) `touch stolen` 'x\" \n--flag"
    run = play(stage, params={"title": hostile})
    assert run["status"] == "failed"  # the second step has no TITLE: each command has an environment of its own
    assert stage.text("docs/add-dark-mode/said.txt") == f"{hostile}|add-dark-mode|"
    assert not (stage.root / "stolen").exists()


def test_a_command_gets_the_environment_that_agents_get_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "abc")
    stage = stage_with(tmp_path, "steps:\n  - {id: look, command: {run: [env], stdout: env.txt}}\n")
    play(stage)
    names = {line.partition("=")[0] for line in stage.text("docs/add-dark-mode/env.txt").splitlines()}
    assert {"PATH", "TENUTO_RUN", "TENUTO_STEP"} <= names and "MY_TOKEN" not in names


def test_a_time_limit_ends_its_whole_process_tree(tmp_path: Path) -> None:
    stage = stage_with(
        tmp_path,
        "steps:\n  - {id: slow, command: [sh, -c, 'sleep 1000 & echo $! > ../child; wait'], time_limit: 2s}\n",
    )
    run = play(stage)
    (attempt,) = run["attempts"].values()
    assert (run["status"], attempt["verdict"]) == ("failed", "ERROR")
    assert "time limit" in attempt["summary"]
    child = int((stage.root.parent / "child").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_what_it_changes_outside_its_boundary_is_an_error(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, "steps:\n  - {id: make, command: [sh, -c, 'echo x > stray.txt']}\n")
    run = play(stage)
    (attempt,) = run["attempts"].values()
    assert (run["status"], attempt["verdict"]) == ("failed", "ERROR")
    assert "stray.txt" in attempt["summary"]


def test_an_output_that_it_promises_must_be_there(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, "steps:\n  - {id: make, command: ['true', 1], out: made.md}\n")
    (attempt,) = play(stage)["attempts"].values()
    assert attempt["verdict"] == "ERROR" and "made.md" in attempt["summary"]


def test_commands_and_agents_sit_side_by_side(tmp_path: Path) -> None:
    steps = """
steps:
  - id: check
    cluster:
      members:
        - {command: {run: [sh, -c, "echo lint is clean"], stdout: lint.txt}, id: lint}
        - {role: researcher, focus: security, out: security.md}
      quorum: 2
"""
    run = play(stage_with(tmp_path, steps))
    assert run["status"] == "completed"
    assert {one["agent"].partition(":")[0] for one in run["attempts"].values()} == {"project", "scripted"}


def test_a_program_that_is_not_there_is_refused_before_anything_is_begun(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, "steps:\n  - {id: make, command: [no-such-program-here]}\n")
    from tenuto.agents.roster import Roster
    from tenuto.engine.begin import start

    with pytest.raises(BadInput) as refused:
        start(stage.workspace, "It", "own", roster=Roster(f"scripted:{stage.script}"))
    assert refused.value.code == "no-program"
    with pytest.raises(NotFound):
        stage.workspace.load("it")


DRIVE = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.rest import drive_until_rest
drive_until_rest(tenuto.open(sys.argv[2]), "add-dark-mode", Roster("command:true"), {})
"""


def test_a_command_outlives_an_engine_that_is_killed_and_runs_once(tmp_path: Path) -> None:
    """The engine is killed while the command runs. The next one finds its result; the command is not run again."""
    go, ran = tmp_path / "go", tmp_path / "ran"
    os.mkfifo(go)
    stage = stage_with(
        tmp_path, f"steps:\n  - {{id: slow, command: [sh, -c, 'echo x >> {ran}; cat {go}'], time_limit: 5m}}\n"
    )
    from tenuto.engine.begin import start

    start(stage.workspace, "Add dark mode", "own")
    package = str(Path(tenuto.__file__).parents[1])
    engine = subprocess.Popen([sys.executable, "-c", DRIVE, package, str(stage.root)])
    with open(go, "w") as file:  # opens once the command reads: it is at work
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        file.write("go on\n")
    run = stage.drive("add-dark-mode")
    assert run["status"] == "completed"
    assert ran.read_text() == "x\n"
    assert list(run["attempts"]) == ["slow-1-sh-1"]
