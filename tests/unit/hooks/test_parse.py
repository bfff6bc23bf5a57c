"""Four programs, one record: every captured payload is call for what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.hooks.parse import EVENTS, parse_hook

PAYLOADS = Path(__file__).resolve().parents[2] / "data" / "payloads"
NAMES = sorted(path.relative_to(PAYLOADS).as_posix().removesuffix(".json") for path in PAYLOADS.rglob("*.json"))

HOSTS = {
    "claude-2.1.197": "claude",
    "claude-2.1.325": "claude",
    "codex-0.166.0": "codex",
    "copilot-1.0.102": "copilot",
    "gemini-0.61.0": "gemini",
}


def stdin(name: str) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_text())["stdin"]


def event_of(name: str) -> str:
    return name.rpartition("/")[2].partition(".")[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_payload_is_known_for_its_program_and_session(name: str) -> None:
    payload = stdin(name)
    call = parse_hook(event_of(name), payload)
    assert call["host"] == HOSTS[name.partition("/")[0]]
    assert call["session"] == payload.get("session_id", payload.get("sessionId"))
    assert call["cwd"].startswith("$PROJECT")
    known = EVENTS.get(event_of(name), "")
    assert call["event"] in (known, "Delegation", "SubagentStop") or not call["tool"]


@pytest.mark.parametrize("name", NAMES)
def test_the_payload_alone_tells_the_event_where_it_names_it(name: str) -> None:
    payload = stdin(name)
    if "hook_event_name" in payload:
        assert parse_hook("", payload) == parse_hook(event_of(name), payload)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-2.1.325/SubagentStart", {"event": "SubagentStart", "agent": "a2d0455f7241abeb2", "role": "worker"}),
        ("claude-2.1.325/SubagentStop", {"event": "SubagentStop", "role": "worker", "text": "DONE: sub.txt written"}),
        ("claude-2.1.325/SubagentStop.compaction", {"event": "SubagentStop", "role": ""}),
        ("claude-2.1.197/SubagentStop", {"event": "SubagentStop", "role": "worker"}),
        ("claude-2.1.325/PreToolUse.Agent", {"tool": "dispatch", "role": "worker", "parent": ""}),
        ("claude-2.1.325/PreToolUse.Write", {"tool": "edit", "paths": ["$PROJECT/a.txt"]}),
        ("claude-2.1.325/PreToolUse.Bash", {"event": "", "tool": "", "paths": []}),
        ("claude-2.1.325/PreToolUse.mcp", {"event": "", "tool": "", "paths": []}),
        ("claude-2.1.325/PreToolUse.in-subagent", {"tool": "edit", "agent": "a2d0455f7241abeb2"}),
        ("claude-2.1.325/Stop", {"event": "Stop", "busy": False, "again": False}),
        ("claude-2.1.325/Stop.background-pending", {"event": "Stop", "busy": True}),
        ("claude-2.1.325/SessionStart.compact", {"event": "SessionStart", "source": "compact"}),
        ("claude-2.1.325/PreCompact.auto", {"event": "PreCompact", "source": "auto"}),
        ("claude-2.1.325/FileChanged", {"event": ""}),
        ("codex-0.166.0/SubagentStop", {"event": "SubagentStop", "role": "reviewer", "text": "DONE: sh"}),
        ("codex-0.166.0/PreToolUse.spawn_agent", {"tool": "dispatch", "role": "reviewer"}),
        ("codex-0.166.0/PreToolUse.multi_agent_v1wait_agent", {"tool": ""}),
        ("codex-0.166.0/PreToolUse.apply_patch", {"tool": "edit", "paths": ["p.txt"]}),
        (
            "copilot-1.0.102/native/subagentStop",
            {"event": "SubagentStop", "role": "reviewer", "text": "DONE: w", "reported_at": "2026-11-15T06:39:35.147Z"},
        ),
        ("copilot-1.0.102/native/preToolUse", {"tool": "dispatch", "role": "reviewer"}),
        ("copilot-1.0.102/native/preToolUse.in-subagent", {"tool": "edit", "paths": ["$PROJECT/cp.txt"]}),
        (
            "copilot-1.0.102/native/agentStop.in-subagent",
            {"event": "Stop", "agent": "68822b96-51d4-4ea0-8909-e94104658048"},
        ),
        ("copilot-1.0.102/claude-plugin-format/SubagentStart", {"event": "SubagentStart", "role": "worker"}),
        ("copilot-1.0.102/claude-plugin-format/SubagentStop", {"role": "worker", "text": "DONE: w"}),
        ("copilot-1.0.102/claude-plugin-format/PreToolUse.Agent", {"tool": "dispatch", "role": "worker"}),
        ("gemini-0.61.0/BeforeTool.invoke_agent", {"event": "Delegation", "role": "reviewer"}),
        ("gemini-0.61.0/AfterTool.invoke_agent", {"event": "SubagentStop", "role": "reviewer", "text": "DONE: gw"}),
        ("gemini-0.61.0/BeforeTool.write_file", {"event": "PreToolUse", "tool": "edit", "paths": ["$PROJECT/gs.txt"]}),
        ("gemini-0.61.0/PreCompress", {"event": "PreCompact", "source": "auto"}),
        ("gemini-0.61.0/AfterAgent", {"event": "Stop", "text": "DONE: t"}),
    ],
)
def test_what_is_said_is_heard(name: str, expected: dict[str, Any]) -> None:
    call: Any = parse_hook(event_of(name), stdin(name))
    assert {field: call[field] for field in expected} == expected


@pytest.mark.parametrize("field", ["session_id", "parent_agent_id", "agent_id"])
def test_half_a_character_names_no_session_and_no_agent(field: str) -> None:
    known = {"session_id": "session", "parent_agent_id": "parent", "agent_id": "agent"}
    call: Any = parse_hook("SubagentStop", {"hook_event_name": "SubagentStop", "session_id": "s", field: "a\ud800b"})
    assert call[known[field]] == ""


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "session_id",
                "sessionId",
                "tool_name",
                "tool_input",
                "agent_type",
                "timestamp",
                "cwd",
                "tool_response",
                "source",
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    ),
    st.sampled_from([*EVENTS, "", "Unheard"]),
)
def test_no_payload_is_too_odd_to_be_heard(payload: dict[str, Any], event: str) -> None:
    """Whatever stands in a field, hearing it raises nothing and yields texts."""
    call = parse_hook(event, payload)
    assert isinstance(call["session"], str)
    assert isinstance(call["role"], str)
    assert all(isinstance(path, str) for path in call["paths"])
