"""One conversation with an agent that speaks the Agent Client Protocol, as its supervisor sees it: a process and its
lines."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenuto.agents import acp_program

PLAYER = str(Path(__file__).with_name("acp_player.py"))
PROGRAM = acp_program.__file__


def start(folder: Path, scene: str, again: str = "", **told: Any) -> subprocess.Popen[str]:
    asked = {"argv": [sys.executable, PLAYER, scene], "permit": "edits", "follows": "", "again": len(again), **told}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", PROGRAM, json.dumps(asked)],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(f"{again}the prompt")
    process.stdin.close()
    process.stdin = None
    return process


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def play(folder: Path, scene: str, **told: Any) -> list[dict[str, Any]]:
    out, errors = start(folder, scene, **told).communicate()
    assert "Traceback" not in errors, errors
    return lines(out)


def heard(folder: Path, method: str) -> list[Any]:
    messages = lines((folder / "heard.jsonl").read_text())
    return [message.get("params") for message in messages if message.get("method") == method]


def test_a_turn_gives_its_last_message_its_cost_and_what_it_wrote(tmp_path: Path) -> None:
    told = play(tmp_path, "works")
    assert told[-1] == {
        "type": "end",
        "stop": "end_turn",
        "text": "All is done.\n\nDONE: written",
        "usage": {"micro_usd": 12300, "tokens": 1234},
        "rejected": [],
    }
    assert [one["text"] for one in told if one["type"] == "message"] == ["I will write it.", told[-1]["text"]]
    assert (tmp_path / "deep/a.txt").read_text() == "written\n"
    assert heard(tmp_path, "session/prompt")[0]["prompt"] == [{"type": "text", "text": "the prompt"}]
    assert heard(tmp_path, "session/new") == [{"cwd": str(tmp_path), "mcpServers": []}]
    assert heard(tmp_path, "initialize")[0]["clientCapabilities"]["terminal"] is False


def test_what_is_said_before_and_after_a_tool_are_messages_of_their_own(tmp_path: Path) -> None:
    """A verdict stands at the beginning of a line, also where an agent gives its messages no ids."""
    told = play(tmp_path, "says")
    assert [one["text"] for one in told if one["type"] == "message"] == ["First.", "Info: looking", "DONE: seen"]
    assert told[-1]["text"] == "DONE: seen"


def test_the_session_is_told_before_anything_is_asked_of_it(tmp_path: Path) -> None:
    """Killed at any later moment, the next attempt knows what to go on with."""
    first = play(tmp_path, "works")[0]
    assert (first["type"], first["id"], first["continued"]) == ("session", "session-1", False)
    assert first["program"] == sys.executable


def test_with_no_permission_nothing_is_written_and_that_is_told(tmp_path: Path) -> None:
    told = play(tmp_path, "works", permit="none")
    assert told[-1]["rejected"] == ["Write a.txt"]
    assert not (tmp_path / "deep").exists()


def test_requests_are_answered_inside_the_work_directory_only(tmp_path: Path) -> None:
    (tmp_path / "present.txt").write_text("one\ntwo\nthree\n")
    end = play(tmp_path, "asks")[-1]
    outside, history, read, absent, terminal, command, odd = json.loads(end["text"])
    assert "outside of the work directory" in outside["error"]["message"]
    assert "error" in history
    assert read["result"] == {"content": "two\n"}
    assert absent["error"]["code"] == -32002
    assert terminal["error"]["code"] == -32601
    assert command["result"] == {"outcome": {"outcome": "selected", "optionId": "no"}}
    assert odd["result"] == {"outcome": {"outcome": "cancelled"}}
    assert end["rejected"] == ["the file /somewhere-else.txt", "the file .git/config", "rm -r src", "a tool"]
    assert not (tmp_path / ".git").exists()


def test_lines_that_are_no_messages_do_not_disturb(tmp_path: Path) -> None:
    assert play(tmp_path, "garbage")[-1]["text"] == "DONE: in spite of it"


def test_an_agent_that_dies_has_no_end(tmp_path: Path) -> None:
    told = play(tmp_path, "dies")
    assert [one["type"] for one in told] == ["session", "message", "error"]
    assert (told[-1]["where"], told[-1]["text"]) == ("session/prompt", "it ended with exit status 3")


def test_an_agent_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = play(tmp_path, "works", argv=["no-such-agent"])
    assert told == [
        {
            "type": "error",
            "where": "start",
            "code": None,
            "text": "cannot start 'no-such-agent': No such file or directory",
        }
    ]


def test_an_agent_that_wants_a_login_says_so(tmp_path: Path) -> None:
    assert play(tmp_path, "refuses")[-1]["code"] == -32000


def test_another_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    assert "speaks version 0" in play(tmp_path, "older")[-1]["text"]


def test_why_a_turn_was_cut_is_told(tmp_path: Path) -> None:
    assert play(tmp_path, "stops")[-1]["stop"] == "max_tokens"


@pytest.mark.parametrize(("scene", "last"), [("waits", "end"), ("deaf", "error")])
def test_sigterm_cancels_the_turn_and_ends_the_conversation(tmp_path: Path, scene: str, last: str) -> None:
    process = start(tmp_path, scene)
    assert process.stdout is not None
    session = process.stdout.readline()
    while not (tmp_path / "heard.jsonl").exists() or not heard(tmp_path, "session/prompt"):
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate()
    assert lines(session + rest)[-1]["type"] == last
    assert heard(tmp_path, "session/cancel") == [{"sessionId": "session-1"}]
    assert process.returncode == 0


def test_a_session_is_taken_up_and_what_was_said_before_does_not_count(tmp_path: Path) -> None:
    told = play(tmp_path, "continues", follows="session-1", again="go on")
    assert [one["type"] for one in told] == ["session", "message", "end"]
    assert told[0]["continued"]
    assert told[-1]["text"] == "DONE: now"
    assert heard(tmp_path, "session/prompt")[0]["prompt"][0]["text"] == "go on"


def test_a_session_that_is_gone_is_started_over_with_the_whole_prompt(tmp_path: Path) -> None:
    told = play(tmp_path, "continues", follows="session-0", again="go on")
    assert told[0]["type"] == "note"
    assert "no such session" in told[0]["text"]
    assert told[1]["continued"] is False
    assert heard(tmp_path, "session/prompt")[0]["prompt"][0]["text"] == "the prompt"


def test_an_agent_that_cannot_take_up_sessions_starts_over(tmp_path: Path) -> None:
    told = play(tmp_path, "works", follows="session-1", again="go on")
    assert [one["type"] for one in told[:2]] == ["note", "session"]


def test_the_mode_and_the_model_are_asked_for(tmp_path: Path) -> None:
    play(tmp_path, "chooses", mode="careful", model="m1")
    assert heard(tmp_path, "session/set_mode") == [{"sessionId": "session-1", "modeId": "careful"}]
    assert heard(tmp_path, "session/set_config_option") == [
        {"sessionId": "session-1", "configId": "the-model", "value": "m1"}
    ]


def test_big_messages_pass_both_ways(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("x" * 2_000_000)
    assert play(tmp_path, "floods")[-1]["text"] == "DONE: 2000000"
