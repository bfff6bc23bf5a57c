"""fork: a new run from a step of another. replay: recorded answers against an edited pipeline."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.crew import Crew
from tenuto.drivers.local import Engine
from tenuto.drivers.start import start

from .conftest import make_repository, reopen

Say = Callable[..., Any]
PIPELINE = """\
name: tiny
shown_as: feature_docs
documents: docs/feature/{slug}
memory: run
given: [initial-request.md, memory.md]
steps:
  - {id: planning, agent: {role: planner, out: [plan.md], memory: write}}
  - {id: agreed, gate: {when: approval, prompt: "Go on?", show: [plan.md]}}
  - {id: work, waves: {plan: plan.md, roles: [{role: implementer}]}}
  - {id: verify, agent: {role: v-tests, in: [plan.md], out: report.md}}
  - {id: look, agent: {role: r-quality, in: [report.md], out: review.md}}
"""
ANSWERS = r"""answers:
  - for: {role: planner}
    run: |
      sed -i 's/^## Recent Decisions$/&\n\n- [planner, step-1] Two items./' docs/feature/r/memory.md
    files: {"{out}": "## Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: none)\n"}
    reply: "DONE: planned"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("finished")
    made = make_repository(home / "project")
    (made / ".tenuto" / "pipelines" / "tiny.yaml").write_text(PIPELINE)
    (home / "answers.yaml").write_text(ANSWERS)
    workspace = tenuto.open(str(made))
    start(workspace, "Add dark mode", "tiny", name="r")
    run = Engine(workspace, "r", Crew(f"scripted:{home / 'answers.yaml'}"), {}).drive()
    assert run["status"] == "completed", run["failure"]
    workspace.journal.close()  # type: ignore[attr-defined]
    return made


@pytest.fixture
def repository(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(finished, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def test_a_fork_carries_what_was_made_before_its_step_and_nothing_else(say: Say, repository: Path) -> None:
    told = say("fork", "r", "--at", "verify", "--name", "again", "--json").data
    assert told["id"] == "again" and told["extra"]["fork"]["source"] == "r"
    made = told["artifacts"]
    assert list(made) == ["plan.md"], "what the step and those behind it made is theirs to make again"
    assert (repository / "docs/feature/again/plan.md").read_bytes() == (repository / "docs/feature/r/plan.md").read_bytes()
    assert made["plan.md"]["path"] == "docs/feature/again/plan.md" and made["plan.md"]["attempt"] == "planning-1-planner-1"
    assert [item["status"] for item in told["items"].values()] == ["completed", "completed"]
    assert told["steps"]["work"]["status"] == "skipped" and not told["attempts"]
    assert [hop["step"] for hop in told["queue"]] == ["verify"]


def test_a_fork_remembers_and_can_be_driven_to_the_end(say: Say, repository: Path, tmp_path: Path) -> None:
    forked = say("fork", "r", "--at", "verify", "--json").data
    assert [entry["text"] for entry in forked["memory"]["decisions"]] == ["Two items."]
    (tmp_path / "answers.yaml").write_text(ANSWERS)
    told = say("run", "--agent", f"scripted:{tmp_path / 'answers.yaml'}", "--json")
    assert told.status == 0 and told.data["id"] == "r-verify" and told.data["status"] == "completed"
    assert [visit["step"] for visit in told.data["visits"]] == ["verify", "look"]
    history = say("history", "r-verify").out
    assert "forked from r at verify" in history and "work skipped: carried over from r" in history


def test_the_old_run_stays_as_it_is(say: Say, repository: Path) -> None:
    before = reopen(repository).load("r")
    say("fork", "r", "--at", "look")
    assert reopen(repository).load("r") == before


def test_a_fork_nobody_can_make_is_refused_and_nothing_is_written(say: Say, repository: Path) -> None:
    refused = say("fork", "r", "--at", "revue", "--json")
    assert refused.status == 4 and "it has: planning, agreed" in refused.error["hint"]
    assert say("fork", "nowhere", "--at", "look").status == 3
    assert say("fork", "r").status == 2
    assert [entry["id"] for entry in say("list", "--json").data["runs"]] == ["r"]


def test_replaying_against_an_edited_pipeline_shows_the_difference_and_starts_nothing(
    say: Say, repository: Path
) -> None:
    before = reopen(repository).load("r")["version"]
    same = say("replay", "r", "--exit-code")
    assert same.status == 0 and "nothing differs" in same.out
    own = repository / ".tenuto" / "pipelines" / "tiny.yaml"
    own.write_text(own.read_text().replace("when: approval", "when: always"))
    told = say("replay", "r", "--exit-code")
    assert told.status == 1
    assert "it would wait for a person in agreed: no decision is recorded" in told.out
    assert "the run was completed; it would be running" in told.out
    assert "not asked for any more: work-1-implementer.01-a-1" in told.out
    assert reopen(repository).load("r")["version"] == before


def test_replaying_what_has_no_answers_is_refused(say: Say, repository: Path) -> None:
    say("run", "Other", "--pipeline", "small", "--name", "s", "--start-only")
    assert say("replay", "s", "--json").error["code"] == "nothing-recorded"
    assert say("replay", "r", "--pipeline", "nine-step").status == 3
