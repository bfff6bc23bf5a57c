"""Who plays which role, and who takes over: one order, and nobody is chosen who may not work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenuto.agents.roster import INSTALLED, Roster
from tenuto.core.budget import later, parked_agents
from tenuto.errors import BadInput

PLAIN = "command:./plain"


def seat(program: str = "", role: str = "designer") -> Any:
    """As much of a seat as a roster looks at."""
    return {"program": program, "role": role, "command": None}


def role(agent: Any = "") -> Any:
    """As much of a role as a roster looks at."""
    return {"file": "designer.md", "tools": [], "model": "", "extra": {"agent": agent} if agent else {}}


def test_whoever_is_named_nearest_to_the_work_gets_it() -> None:
    """The pipeline's seat, the command line and settings, the role's own front matter, the run's agent."""
    roster = Roster(PLAIN, {"designer": "claude:model=opus"})
    assert roster.choose(seat("command:./seat"), role("codex")).name == "command:./seat"
    assert roster.choose(seat(), role("codex")).name == "claude:model=opus"
    assert roster.choose(seat(role="planner"), role("codex")).name == "codex"
    assert roster.choose(seat(role="planner"), role()).name == PLAIN


def test_a_fallback_is_asked_only_where_the_first_may_not_work() -> None:
    roster = Roster("claude", fallback={"claude": "codex", "codex": PLAIN})
    assert roster.choose(seat()).name == "claude"
    assert roster.choose(seat(), None, {"claude": "2030-01-01T00:00:00Z"}).name == "codex"
    assert roster.choose(seat(), None, {"claude": "", "codex": ""}).name == PLAIN
    assert roster.choose(seat(), None, {"claude": "", "codex": "", PLAIN: ""}).name == "claude", (
        "nobody may: it waits for its own"
    )


def test_a_name_stands_for_all_its_spellings_and_a_spelling_for_itself() -> None:
    roster = Roster("claude:model=opus", fallback={"claude": "codex", "claude:model=opus": "claude:model=sonnet"})
    assert [agent.name for agent in roster.candidates(seat())] == ["claude:model=opus", "claude:model=sonnet", "codex"]


def test_agents_that_fall_back_on_each_other_do_not_go_round_for_ever() -> None:
    roster = Roster("claude", fallback={"claude": "codex", "codex": "claude"})
    assert [agent.name for agent in roster.candidates(seat())] == ["claude", "codex"]


@pytest.mark.parametrize(
    "words", [("nobody",), ("claude", {"designer": "clade"}), ("claude", None, {"claude": "codeks:x"})]
)
def test_an_agent_that_nobody_knows_is_refused_wherever_it_is_named(words: tuple[Any, ...]) -> None:
    with pytest.raises(BadInput, match="there is no agent"):
        Roster(*words)


def test_a_misspelled_agent_gets_a_hint() -> None:
    with pytest.raises(BadInput) as refused:
        Roster("clude:model=opus")
    assert refused.value.hint == "did you mean 'claude'?"


def test_a_role_whose_agent_is_no_text_is_refused() -> None:
    with pytest.raises(BadInput, match=r"designer\.md"):
        Roster(PLAIN).choose(seat(), role({"claude": "opus"}))


@pytest.mark.parametrize("program", INSTALLED)
def test_auto_is_what_is_installed(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / program).write_text("#!/bin/sh\n")
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Roster("auto").default == Roster("auto").choose(seat()).name == INSTALLED[program]


def test_auto_prefers_the_first_and_says_what_to_do_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput) as refused:
        Roster("auto")
    assert "claude" in refused.value.message and "command:" in refused.value.hint
    for program in ("codex", "claude"):
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    assert Roster("auto").default == "claude"


def run(*attempts: tuple[str, str, str]) -> Any:
    rows = [
        {"agent": agent, "verdict": verdict, "extra": {"parked_until": until} if until else {}}
        for agent, verdict, until in attempts
    ]
    return {"attempts": dict(enumerate(rows))}


def test_an_agent_is_parked_until_the_time_that_its_attempt_was_told() -> None:
    now = "2026-11-15T12:00:00.000Z"
    found = run(
        ("claude", "PARKED", "2026-11-15T13:00:00.000Z"),
        ("codex", "PARKED", "2026-11-15T11:00:00.000Z"),
        ("x", "DONE", ""),
        ("y", "PARKED", ""),
    )
    assert parked_agents(found, now) == {"claude": "2026-11-15T13:00:00.000Z"}
    assert parked_agents(found, "2026-11-15T13:00:00.000Z") == {}


def test_a_limit_without_a_time_is_waited_for_a_while() -> None:
    assert later("2026-11-15T12:00:00.000Z") == "2026-11-15T12:05:00.000Z"
