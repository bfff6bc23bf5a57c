"""Who goes on with a run: whoever it was begun with, until somebody else is asked for. And nobody starts who is not
there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.trusting import trust
from tests.unit.engine.conftest import SMALL, reopen

Say = Callable[..., Any]
GATED = SMALL.replace("name: small", "name: gated") + "  - {id: agree, gate: {show: [design.md], revise: write}}\n"


@pytest.fixture
def gated(repository: Path) -> Path:
    (repository / ".tenuto/pipelines/gated.yaml").write_text(GATED)
    return repository


def agents(repository: Path, run: str = "add-it") -> list[str]:
    return [attempt["agent"] for attempt in reopen(repository).load(run)["attempts"].values()]


def test_a_run_goes_on_with_the_agent_that_it_was_begun_with(say: Say, gated: Path, script: Any) -> None:
    """`tenuto run` alone, after a gate or a crash: the agent need not be named again, and the settings do not take
    it away."""
    agent = script()
    assert say("run", "Add it", "--pipeline", "gated", "--agent", agent).status == 5
    (gated / ".tenuto/config.yaml").write_text("agent: command:./somebody-else\n")
    trust(gated)
    say("revise", "--feedback", "again")
    told = say("run")
    assert told.status == 5, told.err
    assert f"agent: {agent} (as before)" in told.err
    assert set(agents(gated)) == {agent} and len(agents(gated)) > 2


def test_it_is_known_before_anything_has_happened(
    say: Say, gated: Path, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after the run was recorded: who was asked for was recorded with it."""
    agent = script()
    with monkeypatch.context() as killed:
        killed.setattr("tenuto.entrypoints.cli.run.drive", _dies)
        say("run", "Add it", "--pipeline", "gated", "--agent", agent, "--role-agent", f"planner={agent}")
    run = reopen(gated).load("add-it")
    assert run["settings"]["crew"] == {"agent": agent, "roles": {"planner": agent}} and not run["attempts"]
    assert say("run").status == 5
    assert set(agents(gated)) == {agent}


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt


def test_another_agent_may_take_over_and_is_remembered_in_its_place(say: Say, gated: Path, script: Any) -> None:
    first = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", first)
    other = gated / "other.sh"
    other.write_text(
        'printf "%s\\n" "$TENUTO_OUTPUTS" | while read path; do mkdir -p "$(dirname "$path")"; date +%N > '
        '"$path"; done; echo "DONE: by another"\n'
    )
    for words in (("run", "--agent", "command:sh other.sh"), ("run",)):
        say("revise", "--feedback", "again")
        assert say(*words).status == 5
    assert agents(gated)[-1] == "command:sh other.sh" and agents(gated)[0] == first


def test_a_fork_goes_on_with_the_same_agent(say: Say, gated: Path, script: Any) -> None:
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    assert say("fork", "add-it", "--at", "write", "--name", "other").status == 0
    assert say("run").status == 5
    assert set(agents(gated, "other")) == {agent}


@pytest.mark.parametrize("words", [("--role-agent", "desinger=auto"), ()], ids=["the command line", "the settings"])
def test_a_role_that_nobody_knows_is_refused(say: Say, gated: Path, script: Any, words: tuple[str, ...]) -> None:
    """A slip of the pen would else leave the role to another agent, and nobody would notice."""
    agent = script()
    if not words:
        (gated / ".tenuto/config.yaml").write_text("roles: {desinger: 'command:./other'}\n")
    given = [word.replace("auto", agent) for word in words]
    told = say("run", "Add it", "--json", "--pipeline", "gated", "--agent", agent, *given)
    assert told.error["code"] == "no-role" and "designer" in told.error["hint"]


@pytest.mark.parametrize(
    "agent",
    ["claude", "codex:model=m", "acp:gemini", "command:nowhere-at-all --flag", "claude:program=/nowhere/claude"],
)
def test_an_agent_whose_program_is_missing_begins_nothing(
    say: Say, gated: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of using up every try of every role with it."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    told = say("run", "Add it", "--json", "--pipeline", "gated", "--agent", agent)
    assert (told.status, told.error["code"]) == (2, "no-program"), told.out
    assert say("list", "--json").data["runs"] == []


def test_a_program_that_another_user_has_is_not_looked_for(say: Say, gated: Path) -> None:
    """With `isolation` agents are somebody else, whose PATH nobody here knows."""
    (gated / ".tenuto/config.yaml").write_text("isolation: [env, PATH=/nowhere, --]\n")
    trust(gated)
    told = say("run", "Add it", "--json", "--pipeline", "gated", "--agent", "command:only-there")
    assert "no-program" not in told.out
