"""fork: a new run from a step of another. replay: recorded answers against an edited pipeline."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine

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
    run = Engine(workspace, "r", Roster(f"scripted:{home / 'answers.yaml'}"), {}).drive()
    assert run["status"] == "completed", run["failure"]
    workspace.journal.close()
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
    assert (repository / "docs/feature/again/plan.md").read_bytes() == (
        repository / "docs/feature/r/plan.md"
    ).read_bytes()
    assert (
        made["plan.md"]["path"] == "docs/feature/again/plan.md" and made["plan.md"]["attempt"] == "planning-1-planner-1"
    )
    assert [item["status"] for item in told["items"].values()] == ["completed", "completed"]
    assert told["steps"]["work"]["status"] == "skipped" and not told["attempts"]
    assert [leg["step"] for leg in told["queue"]] == ["verify"]


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


@pytest.fixture
def asked(say: Say, repository: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run `g`, which has its gate switched on, waits at it; the function drives it on."""
    (tmp_path / "answers.yaml").write_text(ANSWERS.replace("feature/r/", "feature/g/"))
    agent = ["--agent", f"scripted:{tmp_path / 'answers.yaml'}", "--json"]
    assert say("run", "Dark", "--pipeline", "tiny", "--name", "g", "--approval", *agent).status == 5
    return lambda *more: say("run", *agent, *more)


def test_no_fork_begins_behind_a_gate_that_nobody_approved(
    say: Say, asked: Callable[..., Any], repository: Path
) -> None:
    for step in ("work", "verify", "look"):
        refused = say("fork", "g", "--at", step, "--json")
        assert (refused.status, refused.error["code"]) == (4, "gate-ahead"), step
        assert "'agreed'" in refused.error["message"] and "begin at agreed" in refused.error["hint"]
    assert [entry["id"] for entry in say("list", "--json").data["runs"]] == ["g", "r"], "nothing was written"
    up_to_it = say("fork", "g", "--at", "agreed", "--json").data
    assert [leg["step"] for leg in up_to_it["queue"]] == ["agreed"]
    assert asked().data["gate"]["name"] == "agreed", "the fork asks for itself"


def test_a_fork_takes_an_approval_over_and_only_those_before_its_step(
    say: Say, asked: Callable[..., Any], repository: Path
) -> None:
    say("approve", "g")
    forked = say("fork", "g", "--at", "work", "--name", "h", "--json")
    assert forked.status == 0
    before = say("fork", "g", "--at", "planning", "--name", "p", "--json")
    assert before.status == 0
    with reopen(repository).journal.read() as reader:
        told = {run: next(e for e in reader.events(run) if e["type"] == "Forked")["approved"] for run in ("h", "p")}
    assert told == {"h": ["agreed"], "p": []}
    assert say("fork", "h", "--at", "verify", "--json").status == 0, "what was taken over can be taken over again"
    assert say("fork", "p", "--at", "verify", "--json").error["code"] == "gate-ahead"


def test_an_approval_ends_where_the_run_goes_back_to_come_through_its_gate_again(
    say: Say, asked: Callable[..., Any], tmp_path: Path
) -> None:
    """It was for the plan that there was: what is made now has been shown to nobody."""
    say("approve", "g")
    with (tmp_path / "answers.yaml").open("a") as answers:
        answers.write('  - for: {role: v-tests}\n    reply: "ERROR: red"\n')
    assert asked().data["status"] == "failed"
    assert say("fork", "g", "--at", "work", "--name", "h", "--json").status == 0
    assert say("retry", "g", "planning").status == 0
    assert say("fork", "g", "--at", "work", "--json").error["code"] == "gate-ahead"
    assert say("retry", "g", "work", "--json").error["code"] == "gate-ahead"


@pytest.mark.parametrize("words", [("retry", "n", "work"), ("run", "--run", "n", "--at", "verify", "--start-only")])
def test_nor_is_a_run_put_behind_its_gate_another_way(say: Say, repository: Path, words: tuple[str, ...]) -> None:
    """Paused before its gate, so that it does not wait at it."""
    say("run", "Other", "--pipeline", "tiny", "--name", "n", "--approval", "--start-only")
    say("pause", "n")
    refused = say(*words, "--json")
    assert (refused.status, refused.error["code"]) == (4, "gate-ahead")
    assert [leg["step"] for leg in reopen(repository).load("n")["queue"]] == ["planning"]


def test_an_edited_pipeline_with_a_gate_more_is_no_way_to_fork_around_it(say: Say, repository: Path) -> None:
    """In the old run the gate was off; in the new definition it is always on."""
    own = repository / ".tenuto" / "pipelines" / "tiny.yaml"
    own.write_text(own.read_text().replace("when: approval", "when: always"))
    assert say("fork", "r", "--at", "verify", "--pipeline", "tiny", "--json").error["code"] == "gate-ahead"
    assert say("fork", "r", "--at", "verify", "--json").status == 0, "with the definition that it had there is no gate"


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
    assert "the run was completed; it would be waiting_gate" in told.out
    assert "not asked for any more: work-1-implementer.01-a-1" in told.out
    assert reopen(repository).load("r")["version"] == before


def test_replaying_what_has_no_answers_is_refused(say: Say, repository: Path) -> None:
    say("run", "Other", "--pipeline", "small", "--name", "s", "--start-only")
    assert say("replay", "s", "--json").error["code"] == "nothing-recorded"
    assert say("replay", "r", "--pipeline", "nine-step").status == 3
