"""A run that will check nothing says so, before anybody believes it; and offers the checks that it finds."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.terminal import start_at_terminal
from tests.support.trusting import trust
from tests.unit.engine.conftest import Said

Say = Callable[..., Said]
NONE = "checks: none, so neither build nor tests are run by the engine"
CHECKED = """\
name: checked
documents: docs/{slug}
steps:
  - {id: write, agent: {role: designer, out: design.md, checks: [tests]}}
"""
MAKEFILE = "test:\n\ttouch ../tested\n"


@pytest.fixture
def project(repository: Path) -> Path:
    (repository / "Makefile").write_text(MAKEFILE)
    (repository / ".tenuto/pipelines/checked.yaml").write_text(CHECKED)
    subprocess.run(["git", "add", "."], check=True)
    subprocess.run(["git", "commit", "-qm", "a project"], check=True)
    return repository


def run(say: Say, script: Callable[[str], str], *words: str) -> Said:
    return say("run", "Add it", "--pipeline", "checked", "--agent", script("answers: []\n"), *words)


def test_run_plan_status_doctor_and_the_pull_request_text_say_it(
    say: Say, script: Callable[[str], str], project: Path
) -> None:
    begun = run(say, script, "--branch")
    assert begun.status == 0 and NONE in begun.err
    assert "tenuto init --checks" in begun.err and "tests: make test" in begun.err
    for words in (("plan", "--pipeline", "checked"), ("doctor",)):
        said = say(*words)
        assert "neither build nor tests are run by the engine" in said.out and "make test" in said.out, words
    assert say("plan", "--pipeline", "checked", "--json").data["checks"] == {"commands": [], "left_out": ["tests"]}
    assert say("status", "--json").data["checks"] == {"commands": [], "left_out": ["tests"]}
    text = (project / "docs/add-it/pull-request.md").read_text()
    assert "neither build nor tests were run by the engine" in text
    assert not (project.parent / "tested").exists(), "to offer a check runs nothing"


def test_a_run_at_a_gate_says_it_in_its_status(say: Say, script: Callable[[str], str], project: Path) -> None:
    gated = CHECKED.replace("name: checked", "name: gated") + "  - {id: agreed, gate: {prompt: Good?}}\n"
    (project / ".tenuto/pipelines/gated.yaml").write_text(gated)
    assert say("run", "Add it", "--pipeline", "gated", "--agent", script("answers: []\n")).status == 5
    assert NONE in say("status").out


def test_with_checks_nothing_is_said_and_they_are_run(say: Say, script: Callable[[str], str], project: Path) -> None:
    assert say("init", "--checks").status == 0
    trust(project)
    begun = run(say, script)
    assert begun.status == 0 and "checks:" not in begun.err
    assert (project.parent / "tested").exists()
    assert "checks: make test" in say("plan", "--pipeline", "checked").out


def test_init_writes_what_a_person_agrees_to_and_it_needs_no_second_look(
    say: Say, script: Callable[[str], str], project: Path
) -> None:
    words = [shutil.which("tenuto") or "tenuto", "init"]
    program, terminal = start_at_terminal(words, project, {**os.environ, "COLUMNS": "200"})
    os.write(terminal, b"y\n")
    assert program.wait() == 0
    screen = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert "tests: make test" in screen and "Write them into .tenuto/config.yaml" in screen
    assert 'tests: "make test"' in (project / ".tenuto/config.yaml").read_text()
    assert run(say, script).status == 0 and (project.parent / "tested").exists()


def test_without_a_terminal_init_only_says_what_it_found(say: Say, project: Path) -> None:
    said = say("init", "--json").data
    assert said["checks"] == {"found": {"tests": "make test"}, "written": {}}
    assert (
        "checks"
        not in subprocess.run(
            ["grep", "-v", "^#", ".tenuto/config.yaml"], check=False, capture_output=True, text=True
        ).stdout
    )


def test_settings_that_are_there_keep_every_word(say: Say, project: Path) -> None:
    path = project / ".tenuto/config.yaml"
    path.write_text("# ours\npipeline: checked")
    assert say("init", "--checks").status == 0
    assert path.read_text() == '# ours\npipeline: checked\nchecks:\n  tests: "make test"\n'
    assert say("init", "--checks", "--json").data["checks"] == {"found": {}, "written": {}}
