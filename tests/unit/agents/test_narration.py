"""What programs print while they work can be read by people; nothing of it makes the reader fall over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.agents.roster import narrate

STREAMS = Path(__file__).resolve().parents[2] / "data" / "streams"


def said(agent: str, *events: Any) -> list[str]:
    return [part for event in events for part in narrate(agent, event if isinstance(event, str) else json.dumps(event))]


def test_claudes_words_and_tools() -> None:
    words = {"type": "text", "text": "I look at it.\nThen I write."}
    tool = {"type": "tool_use", "name": "Write", "input": {"content": "x", "file_path": "out.md"}}
    helper = {
        "type": "assistant",
        "parent_tool_use_id": "t1",
        "message": {"content": [{"type": "text", "text": "helping"}]},
    }
    lines = said(
        "claude:model=opus",
        {"type": "system", "subtype": "init"},
        {"type": "assistant", "message": {"content": [words, tool]}},
        helper,
        {"type": "system", "subtype": "api_retry", "error_status": 529},
        {"type": "result", "is_error": True, "result": "API Error: 400"},
    )
    assert lines == [
        "I look at it.",
        "Then I write.",
        "[Write out.md]",
        "  helping",
        "[the model does not answer (529): asked again]",
        "[it failed: API Error: 400]",
    ]


@pytest.mark.parametrize(
    ("agent", "file"),
    [("codex", "codex-done.jsonl"), ("acp:gemini", "acp-gemini-done.jsonl"), ("acp:x", "acp-opencode-rejected.jsonl")],
)
def test_recorded_streams_become_a_few_readable_lines(agent: str, file: str) -> None:
    lines = said(agent, *(STREAMS / file).read_text().splitlines())
    assert lines and not [line for line in lines if line.startswith("{")]


def test_what_is_no_event_is_shown_as_it_is() -> None:
    assert said("claude", "warning: old version", "") == ["warning: old version"]
    assert said("command:./x", '{"type": "result"}') == ['{"type": "result"}']


@given(
    st.sampled_from(["claude", "codex", "acp:x"]),
    st.dictionaries(
        st.sampled_from(["type", "subtype", "message", "item", "error", "text", "input"]),
        st.one_of(
            st.none(),
            st.integers(),
            st.sampled_from(["assistant", "result", "item.completed", "error", "message", "tool"]),
            st.dictionaries(
                st.sampled_from(["content", "type", "text"]),
                st.one_of(st.none(), st.text(max_size=5), st.lists(st.integers(), max_size=2)),
                max_size=3,
            ),
        ),
        max_size=5,
    ),
)
def test_no_event_makes_it_fall_over(agent: str, event: dict[str, Any]) -> None:
    assert all(isinstance(line, str) for line in narrate(agent, json.dumps(event)))
