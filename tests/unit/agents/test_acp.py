"""Agents over the Agent Client Protocol: how they are spelled and started, and what came of the conversation.

The lines are those of our own program, talking with the real ones.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.agents.acp import PROGRAMS, AcpAgent
from tenuto.core.records.action import Reply
from tenuto.errors import BadInput
from tests.unit.agents.jobs import ended, job, recorded

NAMES = {
    "codex": "codex-acp",
    "claude": "claude-agent-acp",
    "gemini": "gemini",
    "opencode": "opencode",
    "copilot": "copilot",
}


def read(name: str, exit_code: int | None = 0, errors: str = "", spelling: str = "", **more: Any) -> Reply:
    program = spelling or NAMES[name.split("-")[1]]
    return AcpAgent(program).reply(job(errors=errors), ended(exit_code, **more), recorded(name))


def told_by(*lines: dict[str, Any]) -> Reply:
    return AcpAgent("x").reply(job(), ended(), "\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(
    ("program", "usage"),
    [
        ("codex", {"tokens": 15612}),
        ("claude", {"tokens": 5216, "micro_usd": 22120}),
        ("gemini", {"tokens": 381}),
        ("copilot", {"tokens": 99}),
        ("opencode", {}),
    ],
)
def test_a_turn_that_ended_by_itself_has_its_last_message_as_reply(program: str, usage: dict[str, int]) -> None:
    """OpenCode tells the tokens of its last request only: nothing is charged as if that were all."""
    told = read(f"acp-{program}-done")
    assert (told["verdict"], told["summary"], told["text"]) == ("DONE", "acp", "Fine.\n\nDONE: acp")
    assert told["usage"] == usage
    assert set(usage) == set(PROGRAMS[NAMES[program]].reports)


@pytest.mark.parametrize("stop", ["max_tokens", "max_turn_requests", "refusal", "cancelled", "something new", ""])
def test_a_turn_that_was_cut_is_an_error_whatever_was_said(stop: str) -> None:
    told = told_by({"type": "end", "stop": stop, "text": "DONE: half of it", "usage": {"tokens": 5}, "rejected": []})
    assert (told["verdict"], told["usage"]) == ("ERROR", {"tokens": 5})


def test_what_was_rejected_is_told_with_the_error() -> None:
    told = read("acp-opencode-rejected")
    assert told["verdict"] == "ERROR"
    assert told["summary"].endswith("[permit=edits rejected a request: echo hi > sh.txt]")


def test_a_limit_that_a_bridge_hands_on_as_a_message_is_one() -> None:
    told = read("acp-codex-rate-limit")
    assert (told["verdict"], told["transient"]) == ("ERROR", True)
    assert "429" in told["summary"]


def test_an_agent_that_talks_about_limits_and_has_a_verdict_is_taken_by_its_word() -> None:
    said = "The rate limit of the API is 429 now.\n\nDONE: limited"
    assert told_by({"type": "end", "stop": "end_turn", "text": said})["verdict"] == "DONE"


def test_a_refused_request_is_an_error() -> None:
    told = read("acp-claude-bad-request")
    assert (told["verdict"], told["transient"]) == ("ERROR", False)
    assert "400" in told["summary"]


def test_a_login_that_is_missing_is_named() -> None:
    told = told_by({"type": "error", "where": "session/new", "code": -32000, "text": "Authentication required"})
    assert "wants a login" in told["summary"]
    assert not told["transient"]


def test_a_program_that_is_not_there_is_not_tried_again() -> None:
    told = told_by(
        {"type": "error", "where": "start", "code": None, "text": "cannot start 'x': No such file or directory"}
    )
    assert "could not be started" in told["summary"]
    assert not told["transient"]


def test_what_it_said_on_standard_error_explains_its_death() -> None:
    line = {"type": "error", "where": "session/new", "code": None, "text": "it ended with exit status 1"}
    told = AcpAgent("x").reply(job(errors="a\nno such model"), ended(), json.dumps(line))
    assert told["summary"] == "x, at session/new: it ended with exit status 1: no such model"


def test_killed_from_outside_it_may_go_on() -> None:
    assert read("acp-gemini-killed", None, signal=9)["transient"]


def test_a_cancel_is_one_even_where_the_turn_ended_well() -> None:
    assert "cancelled" in read("acp-codex-cancelled", cancelled=True)["summary"]
    assert "cancelled" in read("acp-codex-done", cancelled=True)["summary"]
    assert "time limit" in read("acp-codex-done", timed_out=True)["summary"]


@given(st.integers(0, len(recorded("acp-codex-done"))))
def test_a_conversation_that_is_cut_anywhere_is_never_done(cut: int) -> None:
    text = recorded("acp-codex-done")
    told = AcpAgent("codex-acp").reply(job(), ended(), text[:cut])
    assert (told["verdict"] == "DONE") == (cut >= len(text.rstrip()))


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)), lambda x: st.lists(x, max_size=2)
    )
)
def test_odd_values_in_the_last_line_are_no_verdict(odd: Any) -> None:
    for kind in ("end", "error"):
        line = {
            "type": kind,
            "stop": odd,
            "text": odd,
            "usage": odd,
            "rejected": odd,
            "code": odd,
            "data": odd,
            "where": odd,
        }
        assert told_by(line)["verdict"] == "ERROR"


def asked(agent: AcpAgent, job: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(agent.launch(job)["argv"][-1])
    return told


def test_known_programs_get_the_words_they_need_and_others_are_left_alone() -> None:
    assert AcpAgent("gemini").argv == ["gemini", "--acp"]
    assert AcpAgent("gemini --experimental-acp -m x").argv == ["gemini", "--experimental-acp", "-m", "x"]
    assert AcpAgent("./bin/opencode").argv == ["./bin/opencode", "acp"]
    assert AcpAgent("./mine --speak acp").argv == ["./mine", "--speak", "acp"]


def test_options_stand_before_the_command() -> None:
    agent = AcpAgent("permit=all model=m1 mode=plan ./mine --key=value")
    told = asked(agent, job())
    assert told == {
        "permit": "all",
        "model": "m1",
        "mode": "plan",
        "argv": ["./mine", "--key=value"],
        "follows": "",
        "again": 0,
    }
    assert agent.launch(job())["stdin"] == "do it"
    assert asked(AcpAgent("./mine"), job())["permit"] == "edits"


def test_a_role_says_the_model_and_more_where_it_names_this_agent() -> None:
    plan = job()
    plan.role = {"file": "r.md", "model": "gemini-3-pro", "extra": {"agent": "acp:gemini", "permit": "all"}}
    told = asked(AcpAgent("gemini"), plan)
    assert (told["model"], told["permit"]) == ("gemini-3-pro", "all")
    assert asked(AcpAgent("permit=none gemini"), plan)["permit"] == "none", "what is spelled out counts more"
    plan.role = {"file": "r.md", "model": "gemini-3-pro", "extra": {"permit": "all"}}
    told = asked(AcpAgent("gemini"), plan)
    assert (told["model"], told["permit"]) == ("gemini-3-pro", "edits"), "one that names nobody: the model alone"
    plan.role = {"file": "r.md", "model": "opus", "extra": {}}
    assert "model" not in asked(AcpAgent("gemini"), plan), "a name that only Claude Code knows"
    plan.role = {"file": "r.md", "model": "", "extra": {"agent": "acp:gemini", "permit": "everything"}}
    with pytest.raises(BadInput):
        AcpAgent("gemini").check(plan.role)


@pytest.mark.parametrize(
    "words", ["", "permit=all", "permit=some gemini", "permti=all gemini", "PATH=x gemini", "'unclosed"]
)
def test_a_spelling_that_cannot_be_meant_is_refused(words: str) -> None:
    with pytest.raises(BadInput) as problem:
        AcpAgent(words)
    assert problem.value.hint


def test_an_interrupted_attempt_goes_on_in_its_session_and_brings_the_whole_prompt_along() -> None:
    """Whether the session is still there only the agent knows."""
    earlier = recorded("acp-gemini-killed")
    told = asked(AcpAgent("gemini"), job(earlier))
    assert (told["follows"], told["again"]) == (json.loads(earlier.splitlines()[0])["id"], len("go on"))
    assert AcpAgent("gemini").launch(job(earlier))["stdin"] == "go ondo it"


def test_another_program_s_session_is_not_taken_up() -> None:
    assert asked(AcpAgent("opencode"), job(recorded("acp-gemini-killed")))["follows"] == ""
