"""Codex: how it is started, and what the events it printed mean. The events are those of the real program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.agents.codex import CodexAgent, follow, is_kept
from tenuto.core.records.action import Reply
from tenuto.errors import BadInput
from tests.unit.agents.jobs import ended, job, recorded

THREAD = follow(recorded("codex-killed")).name


def read(name: str, exit_code: int | None = 0, earlier: str = "", errors: str = "", **more: Any) -> Reply:
    text = recorded(name) if name else ""
    return CodexAgent("").reply(job(earlier, errors), ended(exit_code, **more), text)


def keep_thread(home: Path) -> None:
    folder = home / "sessions/2026/11/15"
    folder.mkdir(parents=True)
    (folder / f"rollout-2026-11-15T11-37-17-{THREAD}.jsonl").write_text("{}\n")


def test_a_completed_turn_has_its_last_message_as_reply_and_all_its_tokens() -> None:
    assert read("codex-done") == {
        "verdict": "DONE",
        "summary": "wrote it",
        "transient": False,
        "usage": {"tokens": 13340},
        "text": "All written.\n\nDONE: wrote it",
    }


@pytest.mark.parametrize(
    ("name", "transient", "words"),
    [
        ("codex-overloaded", True, "high demand"),
        ("codex-disconnected", True, "stream disconnected"),
        ("codex-rate-limit", True, "429 Too Many Requests"),
        ("codex-wrong-key", False, "401 Unauthorized"),
        ("codex-bad-request", False, "invalid_request_error"),
    ],
)
def test_a_failed_turn_is_an_error_that_may_or_may_not_pass(name: str, transient: bool, words: str) -> None:
    told = read(name, 1)
    assert (told["verdict"], told["transient"], told["usage"]) == ("ERROR", transient, {})
    assert words in told["summary"]
    assert "parked_until" not in told


def test_a_usage_limit_parks_until_it_ends() -> None:
    told = read("codex-usage-limit", 1)
    assert told["parked_until"] == "2026-11-16T10:45:00.000Z"  # it said 12:44 PM, and leaves the seconds out


def test_killed_from_outside_it_may_go_on() -> None:
    told = read("codex-killed", None, signal=9)
    assert (told["verdict"], told["transient"]) == ("ERROR", True)


@pytest.mark.parametrize(
    ("more", "words"),
    [({"timed_out": True, "signal": 15}, "time limit"), ({"cancelled": True, "signal": 15}, "cancelled")],
)
def test_a_time_limit_and_a_cancel_are_errors_whatever_was_said(more: Any, words: str) -> None:
    told = read("codex-done", None, **more)
    assert (told["verdict"], told["transient"]) == ("ERROR", False)
    assert words in told["summary"]


def test_what_it_said_on_standard_error_explains_a_bad_start() -> None:
    told = read("", 2, errors="WARNING: something\nerror: unexpected argument '--bogus' found\n")
    assert told["summary"].endswith("exit status 2: error: unexpected argument '--bogus' found")


@given(st.integers(0, len(recorded("codex-done"))))
def test_a_stream_that_is_cut_anywhere_is_never_done(cut: int) -> None:
    """Only turn.completed, the last line, makes the reply count."""
    text = recorded("codex-done")
    told = CodexAgent("").reply(job(), ended(), text[:cut])
    assert (told["verdict"] == "DONE") == (cut >= len(text.rstrip()))


@given(
    st.lists(
        st.one_of(
            st.text(max_size=20), st.sampled_from(["[1]", '"x"', '{"type": 7}', '{"type":"turn.failed"}', "null"])
        ),
        max_size=5,
    )
)
def test_lines_that_are_no_events_do_not_make_it_done_or_fail(noise: list[str]) -> None:
    said = recorded("codex-done").splitlines()
    told = CodexAgent("").reply(
        job(), ended(), "\n".join([*noise, *said, *[line for line in noise if "type" not in line]])
    )
    assert told["verdict"] == "DONE"
    assert CodexAgent("").reply(job(), ended(), "\n".join(noise))["verdict"] == "ERROR"


def test_a_message_without_a_completed_turn_is_no_reply() -> None:
    said = [line for line in recorded("codex-done").splitlines() if '"agent_message"' in line]
    assert CodexAgent("").reply(job(), ended(), "\n".join(said))["verdict"] == "ERROR"


def test_a_warning_on_the_way_does_not_spoil_a_completed_turn() -> None:
    warned = '{"type":"error","message":"Reconnecting... 1/5"}\n'
    told = CodexAgent("").reply(job(), ended(), warned + recorded("codex-done"))
    assert told["verdict"] == "DONE"


def test_tokens_that_an_earlier_attempt_of_the_thread_reported_are_not_charged_twice() -> None:
    asked = recorded("codex-resumed")
    later = asked.replace('"input_tokens":', '"input_tokens":1')
    before, after = (CodexAgent("").reply(job(), ended(), text)["usage"]["tokens"] for text in (asked, later))
    assert CodexAgent("").reply(job(asked), ended(), later)["usage"] == {"tokens": after - before}
    assert CodexAgent("").reply(job(recorded("codex-done")), ended(), later)["usage"] == {"tokens": after}
    assert CodexAgent("").reply(job(recorded("codex-killed")), ended(), asked)["usage"] == {"tokens": before}
    assert CodexAgent("").reply(job(later), ended(), asked)["usage"] == {"tokens": before}, (
        "0.60 counts each turn for itself"
    )


def test_events_of_a_version_that_is_too_old_are_named() -> None:
    told = CodexAgent("").reply(job(), ended(), '{"id":"0","msg":{"type":"agent_message","message":"DONE: wrote it"}}')
    assert told["verdict"] == "ERROR" and "0.60 or newer" in told["summary"]


def test_a_fresh_start_gets_the_whole_prompt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    told = CodexAgent("model=gpt-5.5,effort=high,sandbox=read-only,network=on,profile=work").launch(job())
    assert told["stdin"] == "do it"
    assert told["argv"] == [
        "codex",
        "exec",
        "-p",
        "work",
        "--json",
        "--skip-git-repo-check",
        "-m",
        "gpt-5.5",
        "-c",
        'sandbox_mode="read-only"',
        "-c",
        "sandbox_workspace_write.network_access=true",
        "-c",
        'model_reasoning_effort="high"',
        "-",
    ]


def test_an_interrupted_attempt_goes_on_in_its_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    keep_thread(tmp_path)
    told = CodexAgent("").launch(job(recorded("codex-killed")))
    assert told["stdin"] == "go on"
    assert told["argv"][-3:] == ["resume", THREAD, "-"]
    assert told["argv"][:-3] == CodexAgent("").launch(job())["argv"][:-1], "with the same options as a fresh start"


def test_a_thread_that_is_gone_is_started_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    told = CodexAgent("").launch(job(recorded("codex-killed")))
    assert told["stdin"] == "do it"
    assert "resume" not in told["argv"]


@pytest.mark.parametrize("thread", ["*", "../../x", "[a]"])
def test_a_thread_s_name_is_no_pattern(tmp_path: Path, thread: str) -> None:
    keep_thread(tmp_path)
    assert not is_kept(thread, {"CODEX_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("model", "more", "taken"),
    [
        ("gpt-5.5", {"extra": {"agent": "codex"}}, True),
        ("gpt-5.5", {}, True),
        ("opus", {}, False),
        ("sonnet[1m]", {}, False),
        ("claude-opus-5-5", {}, False),
        ("gpt-5.5", {"extra": {"agent": "claude"}}, False),
        ("gpt-5.5", {"origin": "claude"}, False),
        ("GPT-5.5 (copilot)", {"origin": "github"}, False),
        ("inherit", {}, False),
    ],
)
def test_a_role_s_model_is_taken_unless_it_is_another_agent_s(model: str, more: dict[str, Any], taken: bool) -> None:
    plan = job()
    plan.role = {"file": "r.md", "model": model, "extra": {}, **more}
    assert (model in CodexAgent("").launch(plan)["argv"]) is taken
    spelled = CodexAgent("model=gpt-6").launch(plan)["argv"]
    assert "gpt-6" in spelled and model not in spelled, "what is spelled out counts more"


def test_a_role_that_names_nobody_has_claudes_options_only() -> None:
    """`effort: max` is a word of Claude Code; Codex, which does not know it, plays the role all the same."""
    plan = job()
    plan.role = {"file": "r.md", "model": "", "extra": {"effort": "max", "sandbox": "danger-full-access"}}
    assert CodexAgent("").launch(plan)["argv"] == CodexAgent("").launch(job())["argv"]


def test_folders_that_its_sandbox_closes_are_opened_for_outputs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The staged pipelines write below .agents/, which is read-only to Codex; what the user opened stays open."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    plan = job()
    plan.files = ("docs/a.md", ".agents/tmp/phases/plan.md", ".agents/tmp/phases/*.md")
    word = 'sandbox_workspace_write.writable_roots=["/repository/.agents/tmp/phases"]'
    assert word in CodexAgent("").launch(plan)["argv"]
    (tmp_path / "config.toml").write_text('[sandbox_workspace_write]\nwritable_roots = ["/var/cache"]\n')
    assert word.replace("[", '["/var/cache", ', 1) in CodexAgent("").launch(plan)["argv"]
    (tmp_path / "config.toml").write_text("sandbox_workspace_write = 1 [")
    assert word in CodexAgent("").launch(plan)["argv"], "settings that nobody can read"
    assert word not in CodexAgent("sandbox=read-only").launch(plan)["argv"]
    plan.files = ("docs/a.md",)
    assert "writable_roots" not in " ".join(CodexAgent("").launch(plan)["argv"])


@pytest.mark.parametrize("words", ["modle=x", "sandbox=none", "model", "effort=max effort"])
def test_options_that_nobody_knows_are_refused(words: str) -> None:
    with pytest.raises(BadInput) as problem:
        CodexAgent(words)
    assert problem.value.hint


def test_the_recorded_streams_are_whole() -> None:
    assert all(json.loads(line) for line in recorded("codex-done").splitlines())
