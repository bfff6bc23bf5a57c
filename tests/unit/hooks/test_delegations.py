"""Agents that are started and stopped become attempts; a feature's agents complete its phases."""

from __future__ import annotations

from typing import Any

import pytest

SESSION = "8dd9056e-c8e9-4b44-be02-7f3be68ade4c"
AGENT = "a2d0455f7241abeb2"


def test_a_start_and_a_stop_are_one_attempt(started: Any) -> None:
    assert started.replay("claude-2.1.325/SubagentStart") is None
    assert started.run()["attempts"][AGENT]["status"] == "dispatched"
    assert started.replay("claude-2.1.325/SubagentStop") is None
    attempt = started.run()["attempts"][AGENT]
    assert (attempt["status"], attempt["verdict"], attempt["summary"]) == ("completed", "DONE", "sub.txt written")
    assert (attempt["role"], attempt["agent"]) == ("worker", "claude")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_reported_again_is_recorded_once(started: Any, times: int) -> None:
    for _ in range(times):
        started.replay("claude-2.1.325/SubagentStart")
    for _ in range(times):
        started.replay("claude-2.1.325/SubagentStop")
    run = started.run()
    assert list(run["attempts"]) == [AGENT]
    before = run["version"]
    started.replay("claude-2.1.325/SubagentStop")
    assert started.run()["version"] == before


def test_a_stop_without_a_start_is_both(started: Any) -> None:
    started.replay("claude-2.1.197/SubagentStop", session_id=SESSION)
    (attempt,) = started.run()["attempts"].values()
    assert attempt["status"] == "completed"


def test_an_agent_that_is_called_again_gets_a_new_attempt(started: Any) -> None:
    for _ in range(2):
        started.replay("claude-2.1.325/SubagentStart")
        started.replay("claude-2.1.325/SubagentStop")
    assert list(started.run()["attempts"]) == [AGENT, f"{AGENT}/2"]
    assert {a["status"] for a in started.run()["attempts"].values()} == {"completed"}


def test_a_compaction_is_no_agent(started: Any) -> None:
    started.replay("claude-2.1.325/SubagentStop.compaction")
    assert started.run()["attempts"] == {}


@pytest.mark.parametrize("role", ["state-manager", "feature-dev-plus:state-manager", "StateManager"])
def test_the_keeper_of_the_state_is_no_agent(started: Any, role: str) -> None:
    """It was the agent that older hooks called at every stop, and whose own stop called them again."""
    before = started.run()["version"]
    started.replay("claude-2.1.325/SubagentStart", agent_type=role)
    started.replay("claude-2.1.325/SubagentStop", agent_type=role)
    assert started.run()["version"] == before


@pytest.mark.parametrize(
    ("agent", "phase", "following"),
    [("discovery-guide", "discovery", "spec"), ("spec-writer", "spec", "plan"), ("code-architect", "plan", "approval")],
)
def test_a_features_agent_completes_its_phase(started: Any, agent: str, phase: str, following: str) -> None:
    started.replay("claude-2.1.325/SubagentStart", agent_type=f"feature-dev-plus:{agent}")
    assert started.state["phases"][phase] == "in_progress"
    started.replay("claude-2.1.325/SubagentStop", agent_type=f"feature-dev-plus:{agent}")
    assert started.state["phases"][phase] == "completed"
    assert started.state["phases"][following] == "in_progress"
    assert started.state["currentFeature"]["phase"] == following


@pytest.mark.parametrize("reply", ["ERROR: no access", "NEEDS_REVISION: unclear", "**ERROR:** no access"])
def test_an_agent_that_did_not_finish_completes_nothing(started: Any, reply: str) -> None:
    started.replay("claude-2.1.325/SubagentStop", agent_type="spec-writer", last_assistant_message=reply)
    assert started.state["phases"]["spec"] == "pending"
    (attempt,) = started.run()["attempts"].values()
    assert attempt["verdict"] in ("ERROR", "NEEDS_REVISION")


def test_without_a_verdict_the_end_is_an_end(started: Any) -> None:
    """Most agents know nothing of verdict lines; where none is asked for, none is missed."""
    started.replay("claude-2.1.325/SubagentStop", agent_type="spec-writer", last_assistant_message="All written.")
    assert started.state["phases"]["spec"] == "completed"


def test_an_answer_without_a_verdict_is_sent_back_twice_and_then_an_error(repository: Any) -> None:
    repository.feature.start("OAuth login", session=SESSION, hooks={"verdicts": True})
    vague = {"agent_type": "spec-writer", "last_assistant_message": "I think it works"}
    repository.replay("claude-2.1.325/SubagentStart", **vague)
    for sent in (1, 2):
        said = repository.replay("claude-2.1.325/SubagentStop", **vague)
        assert said["decision"] == "block"
        assert "DONE:" in said["reason"]
        assert repository.run()["attempts"][AGENT]["extra"]["sent_back"] == sent
    assert repository.replay("claude-2.1.325/SubagentStop", **vague) is None
    attempt = repository.run()["attempts"][AGENT]
    assert (attempt["status"], attempt["verdict"]) == ("failed", "ERROR")
    assert repository.state["phases"]["spec"] != "completed"


def test_an_answer_that_was_sent_back_may_come_back_right(repository: Any) -> None:
    repository.feature.start("OAuth login", session=SESSION, hooks={"verdicts": True})
    repository.replay("claude-2.1.325/SubagentStop", agent_type="spec-writer", last_assistant_message="Hm")
    assert repository.replay("claude-2.1.325/SubagentStop", agent_type="spec-writer") is None
    assert repository.state["phases"]["spec"] == "completed"


@pytest.mark.parametrize(
    ("start", "stop", "role"),
    [
        ("codex-0.166.0/SubagentStart", "codex-0.166.0/SubagentStop", "reviewer"),
        ("copilot-1.0.102/native/subagentStart", "copilot-1.0.102/native/subagentStop", "reviewer"),
        (
            "copilot-1.0.102/claude-plugin-format/SubagentStart",
            "copilot-1.0.102/claude-plugin-format/SubagentStop",
            "worker",
        ),
        ("gemini-0.61.0/BeforeTool.invoke_agent", "gemini-0.61.0/AfterTool.invoke_agent", "reviewer"),
    ],
)
def test_every_programs_agents_are_recorded(repository: Any, start: str, stop: str, role: str) -> None:
    repository.feature.start("OAuth login")
    assert repository.replay(start) is None
    assert repository.replay(stop) is None
    (attempt,) = repository.run()["attempts"].values()
    assert (attempt["role"], attempt["status"], attempt["verdict"]) == (role, "completed", "DONE")


def test_a_call_while_the_run_is_paused_is_noted_not_lost(started: Any) -> None:
    with started.workspace.turn() as turn:
        turn.do("oauth-login", {"do": "Pause", "reason": "lunch", "kind": "user"})
    started.replay("claude-2.1.325/SubagentStart")
    with started.workspace.journal.read() as reader:
        last = list(reader.events("oauth-login"))[-1]
    assert last["type"] == "Noted"
    assert "worker" in last["text"]


def test_an_engines_run_is_left_to_the_engine(started: Any) -> None:
    """Whoever dispatches also records; a second record of the same agent would count against the cap."""
    with started.workspace.turn() as turn:
        turn.do("oauth-login", {"do": "ChangeDriver", "driver": "engine"})
    before = started.run()["version"]
    started.replay("claude-2.1.325/SubagentStart")
    started.replay("claude-2.1.325/SubagentStop")
    assert started.run()["version"] == before


def test_a_created_file_becomes_the_phases_output(started: Any) -> None:
    """What the specification's agent writes is the specFile, without anybody naming it."""
    spec = started.root / "docs" / "specs" / "oauth.md"
    spec.parent.mkdir(parents=True)
    spec.write_text("# OAuth\n")
    started.replay("claude-2.1.325/SubagentStart", agent_type="spec-writer")
    write = started.payload("claude-2.1.325/PostToolUse.in-subagent")
    write["tool_input"]["file_path"] = str(spec)
    assert started.hook("PostToolUse", write) is None
    assert started.state["currentFeature"]["specFile"] == "docs/specs/oauth.md"
    assert started.run()["artifacts"]["docs/specs/oauth.md"]["size"] == 8
