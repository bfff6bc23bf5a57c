"""Which pipeline a run takes where none is named: asked for at a terminal, said elsewhere."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.core.budget import fewest
from tenuto.knowledge import definitions

Say = Callable[..., Any]


def at_a_terminal(folder: Path, typed: str, *words: str) -> str:
    """`tenuto run` with somebody who types these lines: what stands on the screen in the end."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tenuto", "run", *words]
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        screen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            screen += part
        process.wait()
    os.close(ours)
    return screen.decode().replace("\r\n", "\n")


def pipeline_of(say: Say) -> str:
    name: str = say("status", "--json").data["pipeline"]["name"]
    return name


def test_without_a_terminal_the_usual_one_is_taken_and_that_is_said(say: Say, repository: Path) -> None:
    answer = say("run", "Mend a typo", "--start-only")
    assert "pipeline: eight-step (neither --pipeline nor the settings name one" in answer.err
    assert pipeline_of(say) == "eight-step"


def test_nothing_is_said_where_it_is_named(say: Say, repository: Path) -> None:
    assert "pipeline:" not in say("run", "Mend a typo", "--pipeline", "fix", "--start-only").err
    (repository / ".tenuto").mkdir()
    (repository / ".tenuto" / "config.yaml").write_text("pipeline: quick\n")
    assert "pipeline:" not in say("run", "Mend another", "--start-only").err
    assert pipeline_of(say) == "quick"


def test_at_a_terminal_the_choices_are_shown_by_size_and_the_answer_is_taken(say: Say, repository: Path) -> None:
    screen = at_a_terminal(repository, "fix\nn\n", "Mend a typo", "--start-only")
    lines = [line.split() for line in screen.splitlines() if line.startswith("  ")]
    sizes = {line[0]: int(line[1]) for line in lines if len(line) > 2 and line[1].isdecimal()}
    assert {"quick", "fix", "eight-step", "orchestrate"} <= set(sizes) and "graduate" not in sizes
    assert list(sizes.values()) == sorted(sizes.values())
    assert sizes["quick"] == 3 and sizes["eight-step"] > 20
    assert "What they cost is not known yet" in screen
    assert pipeline_of(say) == "fix"
    assert not (repository / ".tenuto" / "config.yaml").exists()


def test_the_likely_cost_is_shown_once_an_agent_has_reported_one(say: Say, repository: Path) -> None:
    """By attempts of any pipeline: 3 attempts of quick at half a dollar each, 26 of eight-step."""
    shutil.rmtree(repository / ".git")
    subprocess.run(["git", "init", "-q", "."], cwd=repository, check=True)
    script = repository / "answers.yaml"
    script.write_text("answers: [{usage: {micro_usd: 500000}}]\n")
    assert say("run", "Mend a typo", "--pipeline", "quick", "--agent", f"scripted:{script}").status == 0
    screen = at_a_terminal(repository, "fix\nn\n", "Mend another", "--start-only")
    costs = {line.split()[0]: line for line in screen.splitlines() if "likely about" in line}
    assert "$1.50" in costs["quick"] and "$1.50" in costs["fix"] and "$13.00" in costs["eight-step"]


def test_return_alone_is_the_small_one_and_it_can_be_remembered(say: Say, repository: Path) -> None:
    (repository / ".tenuto").mkdir()
    (repository / ".tenuto" / "config.yaml").write_text("agent: claude")
    screen = at_a_terminal(repository, "\ny\n", "Mend a typo", "--start-only")
    assert "remembered in" in screen
    assert (repository / ".tenuto" / "config.yaml").read_text() == "agent: claude\npipeline: quick\n"
    assert pipeline_of(say) == "quick"
    again = at_a_terminal(repository, "", "Mend another", "--start-only")
    assert "Which pipeline?" not in again


@pytest.mark.parametrize(("name", "number"), [("quick", 3), ("fix", 3), ("poc", 2)])
def test_the_fewest_attempts(name: str, number: int) -> None:
    assert fewest(definitions.load(name), 3) == number


def test_the_fewest_attempts_count_members_items_and_no_way_back() -> None:
    # 4 researchers, synthesis, spec, design, 4 critics and one more, planning, 3 items, 4 verifiers and one more,
    # 4 reviewers and one more
    assert fewest(definitions.load("eight-step"), 3) == 4 + 1 + 1 + 1 + 5 + 1 + 3 + 5 + 5
