"""metrics, logs, artifacts, memory: looks at what a run did."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.core.budget import money
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine
from tenuto.entrypoints.cli.watch import follow
from tenuto.show.measures import amount, amounts, span

from .conftest import make_repository

Say = Callable[..., Any]


ANSWERS = """\
answers:
  - {for: {role: designer, try: 1}, reply: "ERROR: no idea", usage: {tokens: 5}}
  - {usage: {tokens: 7}}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a run in it, in which the designer failed once. Made once; each test gets a copy."""
    home = tmp_path_factory.mktemp("finished")
    made = make_repository(home / "project")
    (home / "answers.yaml").write_text(ANSWERS)
    workspace = tenuto.open(str(made))
    start(workspace, "Add dark mode", "small", name="r")
    run = Engine(workspace, "r", Roster(f"scripted:{home / 'answers.yaml'}"), {}).drive()
    assert run["status"] == "completed"
    workspace.journal.close()
    return made


@pytest.fixture
def repository(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(finished, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def done(repository: Path) -> str:
    return "r"


def test_metrics_in_three_formats(say: Say, done: str) -> None:
    lines = say("metrics").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "METRICS",
        "Total Duration",
        "Sequential Est",
        "Parallel Est",
        "Savings",
        "Retries",
        "Critical Path",
        "Cost",
    ]
    assert lines[5].split() == ["Retries:", "1"] and lines[7].split() == ["Cost:", "26", "tokens"]
    detailed = say("metrics", done, "--format", "detailed").out
    assert "[look]\n  researcher-architecture" in detailed and "designer" in detailed and "failed" in detailed
    data = say("metrics", "--json").data
    assert data["metrics"]["attempts"] == 4 and data["metrics"]["total_retries"] == 1
    assert '"critical_path"' in say("metrics", "--format", "json").out
    assert say("metrics", "nowhere").status == 3


def test_artifacts_name_the_attempt_that_made_them_and_can_be_printed(say: Say, repository: Path, done: str) -> None:
    rows = [line.split() for line in say("artifacts").out.splitlines()[1:]]
    assert [(row[0], row[4], row[5]) for row in rows][-1] == ("design.md", "write", "write-1-designer-2")
    (repository / "docs" / "r" / "design.md").unlink()
    assert "Written by r.write-1-designer-2.1" in say("artifacts", "r", "--cat", "design.md").out, "as it was delivered"
    assert say("artifacts", "--cat", "docs/r/a.md").status == 0
    missing = say("artifacts", "--cat", "plan.md", "--json")
    kept = missing.error["hint"].removeprefix("it has: ").split(", ")  # two were made side by side
    assert missing.status == 3 and (sorted(kept), kept[-1]) == (["a.md", "b.md", "design.md"], "design.md")


def test_logs_show_what_an_agent_was_told_and_what_it_said(say: Say, done: str) -> None:
    listed = say("logs", "r").out
    assert "write-1-designer-1" in listed and "no idea" in listed
    assert say("logs", "r", "write-1-designer-1").out == "ERROR: no idea\n"
    assert "- run: r\n" in say("logs", "r", "write-1-designer-2", "--of", "prompt").out
    assert "nothing of its checks is kept" in say("logs", "r", "write-1-designer-1", "--of", "checks").out
    assert say("logs", "r", "look-1-researcher-a").out == "DONE: researcher did its part\n", (
        "the only one that begins so"
    )
    several = say("logs", "r", "look", "--json")
    assert several.status == 3 and "did you mean" in several.error["hint"]


def test_following_what_has_ended_prints_it_and_ends(say: Say, done: str) -> None:
    assert say("logs", "r", "write-1-designer-1", "--follow").out == "ERROR: no idea\n"
    assert say("logs", "r", "--follow").err == "nothing is under way\n"


def test_following_prints_whole_lines_as_they_come_and_the_rest_at_the_end(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_text("one\ntw")
    more = iter(["o\nthr", "ee"])
    states = iter([["a"], ["a"], []])

    def rest() -> None:
        with log.open("a") as file:
            file.write(next(more))

    seen = list(follow(lambda: next(states), lambda name: [str(log)], [], rest))
    assert seen == [("a", "one"), ("a", "two"), ("a", "three")] and not list(more)


def test_following_reads_only_what_came_since_the_last_look(tmp_path: Path) -> None:
    """What was read once is not read again: it could have been written over meanwhile, and nobody would see it."""
    log = tmp_path / "stdout"
    log.write_text("one\n" + "x" * 200_000 + "\n")
    states = iter([["a"], []])

    def rest() -> None:
        with log.open("r+") as file:
            file.write("ONE\n")
        with log.open("a") as file:
            file.write("two\n")

    seen = [line for _, line in follow(lambda: next(states), lambda name: [str(log)], [], rest)]
    assert seen[0] == "one" and seen[-1] == "two" and "ONE" not in seen
    assert "".join(seen[1:-1]) == "x" * 200_000


def test_memory_of_the_run_and_of_the_project(say: Say, repository: Path, done: str) -> None:
    assert "decisions: none yet" in say("memory").out
    added = say("memory", "add", "decision", "Colours are CSS variables", "--rationale", "one place", "--json")
    assert added.data["files_touched"] == ["docs/orchestrator/memory/decisions.md"]
    assert "Colours are CSS variables" in (repository / "docs/orchestrator/memory/decisions.md").read_text()
    assert say("memory", "add", "decision", "Colours are CSS variables").out == "decision was there already\n"
    shown = say("memory", "r").out
    assert "r remembers" in shown and "**Rationale:** one place" in shown
    assert say("memory", "--json").data["memory"]["lessons"] == []


@pytest.mark.parametrize("words", [("add",), ("add", "rumour", "x"), ("add", "decision", " "), ("one", "two")])
def test_memory_says_how_it_is_asked(words: tuple[str, ...], say: Say, done: str) -> None:
    told = say("memory", *words)
    assert told.status == 2 and "tenuto memory" in told.err


def test_amounts_as_people_read_them() -> None:
    assert [span(ms) for ms in (0, 3210, 45_000, 307_000, 3_725_000)] == ["0.0s", "3.2s", "45s", "5m 07s", "1h 02m 05s"]
    assert [money(micro) for micro in (0, 1_200_000, 5_400, 1_234_567_890_000)] == [
        "$0.00",
        "$1.20",
        "$0.0054",
        "$1,234,567.89",
    ]
    assert (amount("attempts", 1), amount("tokens", 12_000), amount("wall_clock", 90)) == (
        "1 attempt",
        "12,000 tokens",
        "1m 30s",
    )
    assert amounts({"attempts": 3, "micro_usd": 0, "note": "x"}) == "3 attempts"


def test_logs_without_a_run_are_of_the_current_one(say: Say, done: str) -> None:
    assert say("logs").out == say("logs", done).out
    assert say("logs", "write-1-designer-1").out == "ERROR: no idea\n"
    assert say("logs", "wrote-1", "--json").error["code"] == "no-such-run"


def test_who_did_what_is_told_truly(say: Say, done: str) -> None:
    """A person began the run; all that followed was the engine."""
    entries = say("history", "--json").data["history"]
    assert {entry["by"] for entry in entries if "started with pipeline" in entry["text"]} == {"user"}
    assert {entry["by"] for entry in entries if "design" in entry["text"] and "DONE" in entry["text"]} == {"engine"}


def test_a_run_is_cancelled_by_its_name_only(say: Say, done: str) -> None:
    error = say("cancel", "--json").error
    assert error["code"] == "no-run-named"
    assert error["hint"] == f"tenuto cancel {done}"


def test_a_retry_without_a_step_names_those_that_there_are(say: Say, done: str) -> None:
    error = say("retry", done, "--json").error
    assert error["code"] == "no-step-named"
    assert error["message"] == "say from which step on: look, write"
    assert error["hint"].startswith("tenuto retry r ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["retry", "r", "w"], {"write"}),
        (["fork", "r", "--at", "w"], {"write"}),
        (["logs", "r", "write-1-designer-"], {"write-1-designer-1", "write-1-designer-2"}),
        (["artifacts", "--cat", "desi"], {"design.md"}),
        (["run", "X", "--pipeline", "qui"], {"quick"}),
        (["plan", "--pipeline", "staged-m"], {"staged-minimal"}),
        (["run", "X", "--agent", "cl"], {"claude"}),
        (["logs", "gone", "w"], set()),
    ],
)
def test_the_shell_completes_what_a_run_and_a_repository_have(
    words: list[str], expected: set[str], say: Say, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TENUTO_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["tenuto", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    offered = say(*words).out.splitlines()
    assert {line.partition(",")[2] for line in offered if line} == expected
