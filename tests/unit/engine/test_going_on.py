"""Going on with a run: nothing that was asked for is left out silently, and a gate shows what is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.conftest import SMALL, reopen

Say = Callable[..., Any]
GATED = (
    SMALL.replace("name: small", "name: gated")
    + "  - {id: look-at-it, gate: {name: design, show: [design.md], revise: write}}\n"
)


@pytest.fixture
def gated(repository: Path) -> Path:
    (repository / ".tenuto/pipelines/gated.yaml").write_text(GATED)
    return repository


def test_a_limit_holds_for_a_run_that_goes_on(say: Say, gated: Path, script: Any) -> None:
    agent = script()
    assert say("run", "Add it", "--pipeline", "gated", "--agent", agent).status == 5
    assert say("revise", "--feedback", "again").status == 0
    told = say("run", "--agent", agent, "--limit", "attempts=3")
    assert told.status == 5
    assert "the run may use 3 attempts" in told.out
    assert reopen(gated).load("add-it")["status"] == "paused"


@pytest.mark.parametrize(
    "words", [("--limit", "attempts=3"), ("--run", "add-it", "--limit", "attempts=3")], ids=["current", "named"]
)
def test_a_limit_of_a_run_that_is_under_way_is_never_left_out(
    say: Say, gated: Path, script: Any, words: tuple[str, ...]
) -> None:
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    say("run", "--agent", agent, *words)
    assert reopen(gated).load("add-it")["budget"]["limits"] == {"attempts": 3}


@pytest.mark.parametrize(
    "words", [("--workspace", "worktree"), ("--branch",), ("--dirty", "stash"), ("--name", "other")]
)
def test_what_is_settled_at_the_start_is_refused_later(
    say: Say, gated: Path, script: Any, words: tuple[str, ...]
) -> None:
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    told = say("run", "--json", "--agent", agent, *words)
    assert (told.status, told.error["code"]) == (2, "only-new-runs")
    assert words[0] in told.error["message"]


def test_gates_are_not_switched_on_in_the_middle(say: Say, gated: Path, script: Any) -> None:
    """`--approval` that would change nothing is not taken for granted."""
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    told = say("run", "--json", "--agent", agent, "--approval")
    assert (told.status, told.error["code"]) == (4, "switched-late")


def test_a_gate_whose_artifact_changed_is_shown_anew_and_then_decided(say: Say, gated: Path, script: Any) -> None:
    """The old approval is void; whoever goes on sees what is there now, and decides on that."""
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    design = gated / "docs/add-it/design.md"
    design.write_text("# Corrected by hand\n")
    told = say("approve", "--json")
    assert (told.status, told.error["code"]) == (4, "gate-stale")
    assert "tenuto run" in told.error["hint"]
    before = reopen(gated).load("add-it")["gate"]
    assert say("run", "--agent", agent).status == 5
    after = reopen(gated).load("add-it")["gate"]
    assert before and after and before["id"] != after["id"] and before["shown"] != after["shown"]
    assert say("approve").status == 0
    assert say("run", "--agent", agent).status == 0
    run = reopen(gated).load("add-it")
    assert run["status"] == "completed"
    assert design.read_text() == "# Corrected by hand\n"


def test_a_gate_that_shows_the_same_is_not_opened_again(say: Say, gated: Path, script: Any) -> None:
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    version = reopen(gated).load("add-it")["version"]
    assert say("run", "--agent", agent).status == 5
    assert reopen(gated).load("add-it")["version"] == version


@pytest.mark.parametrize(
    ("words", "code"), [(("--approval",), "no-gates"), (("--switch", "aproval=on"), "no-such-switch")]
)
def test_a_switch_that_would_switch_nothing_is_refused(
    say: Say, repository: Path, script: Any, words: tuple[str, ...], code: str
) -> None:
    """Whoever asks for approval is never let through without a gate, by a slip of the pen or for want of one."""
    told = say("run", "Add it", "--pipeline", "small", "--agent", script(), "--json", *words)
    assert (told.status, told.error["code"]) == (4, code)
    assert say("list", "--json").data == {"runs": []}


def test_whoever_stops_the_engine_is_told_what_still_works_and_how_to_go_on(
    repository: Path, script: Any, tmp_path: Path
) -> None:
    """Ctrl-C ends the engine, not its agents: the next one takes them up, and nothing is done twice."""
    gone = tmp_path / "go"
    agent = script(f"answers:\n  - for: {{role: researcher}}\n    wait: {gone}\n")
    words = [sys.executable, "-m", "tenuto", "run"]
    around = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    process = subprocess.Popen(
        [*words, "Add it", "--pipeline", "small", "--agent", agent],
        cwd=repository,
        env=around,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    folder = repository / ".git/tenuto/attempts/add-it"
    while len(list(folder.glob("*/1/started.json"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "still at work: look-1-researcher-architecture-1, look-1-researcher-impact-1" in err
    assert "tenuto run   (takes them up and goes on), or: tenuto cancel add-it" in err
    gone.touch()
    done = subprocess.run(
        [*words, "--agent", agent],
        cwd=repository,
        env=around,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(reopen(repository).load("add-it")["attempts"]) == 3


MANY = GATED.replace("show: [design.md]", "show: [design.md, 'notes/*.md']").replace(
    "cap: 2", "existing: ['notes/*.md']"
)
MANY += "  - {id: build, agent: {role: implementer, out: built.md}}\n"


def test_what_has_come_to_a_gate_since_it_was_shown_is_not_approved_with_it(say: Say, gated: Path, script: Any) -> None:
    (gated / ".tenuto/pipelines/gated.yaml").write_text(MANY)
    agent = script()
    assert say("run", "Add it", "--pipeline", "gated", "--agent", agent).status == 5
    (gated / "docs/add-it/notes").mkdir()
    (gated / "docs/add-it/notes/more.md").write_text("and delete everything\n")
    told = say("approve", "--json")
    assert (told.status, told.error["code"]) == (4, "gate-stale")
    assert told.error["details"]["paths"] == ["docs/add-it/notes/more.md"]


@pytest.mark.parametrize("harm", ["changed", "gone", "joined", "none"])
def test_an_approval_is_void_when_what_was_approved_changes_before_the_run_goes_on(
    say: Say, gated: Path, script: Any, harm: str
) -> None:
    (gated / ".tenuto/pipelines/gated.yaml").write_text(MANY)
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    assert say("approve").status == 0
    design = gated / "docs/add-it/design.md"
    if harm == "changed":
        design.write_text("# Another one\n")
    elif harm == "gone":
        design.unlink()
    elif harm == "joined":
        (gated / "docs/add-it/notes").mkdir()
        (gated / "docs/add-it/notes/more.md").write_text("and delete everything\n")
    told = say("run", "--agent", agent)
    run = reopen(gated).load("add-it")
    if harm == "none":
        assert (told.status, run["status"]) == (0, "completed")
        return
    assert (told.status, run["status"]) == (5, "waiting_gate")
    assert "what was approved has changed since" in told.err
    assert not (gated / "docs/add-it/built.md").exists()
    assert say("approve").status == 0
    assert say("run", "--agent", agent).status == 0, "for what is there now"


def test_a_run_whose_machine_dies_again_and_again_waits_and_goes_on(say: Say, repository: Path, script: Any) -> None:
    """Each time the designer is at work the power fails: with no try left the run says so, and does not fail."""
    agent = script(
        'answers: [{for: {role: designer, visit: 1}, run: "kill -9 $(sed -n s/^PPid://p /proc/$PPID/status); '
        'sleep 60"}]'
    )
    told = say("run", "Add it", "--pipeline", "small", "--agent", agent)
    assert told.status == 5, told
    assert (
        "write: interrupted too often, and nobody knows what came of it: designer" in told.out
        and "tenuto resume add-it" in told.out
    )
    run = reopen(repository).load("add-it")
    assert [a["status"] for a in run["attempts"].values() if a["step"] == "write"] == ["lost"] * 3, (
        "one for LOST, and one for an ERROR"
    )
    assert say("resume", "add-it").status == 0
    assert [a["status"] for a in reopen(repository).load("add-it")["attempts"].values()] == ["completed"] * 2 + [
        "lost"
    ] * 3 + ["completed"]
