"""Claude Code's words and figures become a verdict, a cost, a wait or a reason; what is cut or strange never becomes
a DONE."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.agents.claude import ClaudeAgent, session_for, session_of
from tenuto.core.records.action import Reply
from tenuto.errors import BadInput

SESSION = "0b6f2a52-5a0c-4d57-9a2e-0a9a5a1f7c11"
ENDED = "2026-11-15T12:00:00.000Z"
SOON = 1_794_747_600  # 2026-11-15T13:00:00Z
INIT = {"type": "system", "subtype": "init", "session_id": SESSION}
USED = {
    "opus": {
        "inputTokens": 100,
        "outputTokens": 20,
        "cacheReadInputTokens": 7,
        "cacheCreationInputTokens": 3,
        "costUSD": 0.0123456,
    }
}
GOOD = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "terminal_reason": "completed",
    "result": "DONE: it works",
    "modelUsage": USED,
}


def role(tools: list[str] | None = None, model: str = "", **extra: Any) -> Any:
    """As much of a role as an adapter looks at."""
    return {"name": "worker", "file": "worker.md", "tools": tools or [], "model": model, "extra": extra}


def job(earlier: str = "", errors: str = "", start: int = 1, name: str = "work-1-worker-1", **more: Any) -> Any:
    budget = {"attempt_micro_usd": more.pop("figure", None)}
    return SimpleNamespace(
        earlier=earlier,
        errors=errors,
        start=start,
        name=name,
        root="/repository",
        role=more.pop("role", role()),
        run={"id": "dark-mode", "created_at": "2026-11-15T10:00:00.000Z"},
        step={"budget": budget},
        pipeline={"budget": {"attempt_micro_usd": None}},
        prompt=lambda: "the prompt",
        going_on=lambda: "go on",
        **more,
    )


def result(**changes: Any) -> Any:
    """How the program ended, as much as an adapter looks at."""
    return {
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "cancelled": False,
        "error": None,
        "ended": ENDED,
        **changes,
    }


def lines(*events: Any) -> str:
    return "".join((event if isinstance(event, str) else json.dumps(event)) + "\n" for event in events)


def read(*events: Any, **how: Any) -> Reply:
    return ClaudeAgent("").reply(job(errors=how.pop("errors", "")), result(**how), lines(*events))


def failed(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "is_error": True, "terminal_reason": "api_error", "result": "API Error: 500", **changes}


def argv(words: str = "", **how: Any) -> list[str]:
    launched: list[str] = ClaudeAgent(words).launch(job(**how))["argv"]
    return launched


# ---- what came of it -------------------------------------------------------------------------------


def test_the_last_result_is_the_reply() -> None:
    """With agents in the background there are several: what was said before they ended is not the end."""
    early = {**GOOD, "result": "DONE: I only started them"}
    told = read(INIT, early, {**GOOD, "result": "NEEDS_REVISION: they found something"})
    assert (told["verdict"], told["summary"]) == ("NEEDS_REVISION", "they found something")
    assert told["text"] == "NEEDS_REVISION: they found something"


def test_neither_the_exit_status_nor_the_subtype_decides() -> None:
    assert read(INIT, {**GOOD, "subtype": "error_during_execution"}, exit_code=1)["verdict"] == "DONE"
    assert read(INIT, failed(subtype="success"), exit_code=0)["verdict"] == "ERROR"


def test_a_reply_given_while_agents_were_at_work_is_an_error() -> None:
    busy = {
        "type": "system",
        "subtype": "background_tasks_changed",
        "tasks": [{"task_id": "a1", "description": "look at the tests"}],
    }
    told = read(INIT, busy, GOOD)
    assert told["verdict"] == "ERROR" and "look at the tests" in told["summary"]
    assert read(INIT, busy, {**busy, "tasks": []}, GOOD)["verdict"] == "DONE"


def test_an_early_end_is_an_error_whatever_was_said() -> None:
    told = read(INIT, {**GOOD, "terminal_reason": "aborted_streaming"})
    assert told["verdict"] == "ERROR" and "aborted_streaming" in told["summary"]


def test_a_limit_of_its_own_in_an_older_version_is_named() -> None:
    told = read(INIT, {"type": "result", "subtype": "error_max_budget_usd", "is_error": False})
    assert told["verdict"] == "ERROR" and "error_max_budget_usd" in told["summary"]


def test_a_question_is_one() -> None:
    assert read(INIT, {**GOOD, "result": "QUESTION: which colour?"})["verdict"] == "QUESTION"


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([INIT, '{"type": "result", "is_err'], "ends without a result"),
        ([INIT, {"type": "assistant"}], "ends without a result"),
        (["Welcome!", "no JSON here"], "no stream of events"),
        ([], "said nothing"),
        ([json.dumps([GOOD]), "17", '"text"'], "no stream of events"),
    ],
)
def test_a_cut_or_strange_stream_is_an_error_that_says_so(events: list[Any], words: str) -> None:
    told = read(*events)
    assert told["verdict"] == "ERROR" and words in told["summary"] and not told["transient"]
    assert told["usage"] == {}, "what nobody told is charged as it was set aside"


def test_a_program_that_says_nothing_is_quoted_from_its_errors() -> None:
    assert "Please run /login" in read(exit_code=1, errors="Invalid API key · Please run /login\n")["summary"]


def test_strange_lines_between_events_are_passed_over() -> None:
    assert read("warning: old node", INIT, "[... 5 MB left out ...]", GOOD, "")["verdict"] == "DONE"


@pytest.mark.parametrize(("how", "words"), [({"timed_out": True}, "time limit"), ({"cancelled": True}, "cancelled")])
def test_what_was_ended_from_outside_is_no_done(how: dict[str, Any], words: str) -> None:
    """Even where it had said DONE already: nobody knows what it was doing."""
    told = read(INIT, GOOD, exit_code=143, **how)
    assert told["verdict"] == "ERROR" and words in told["summary"]
    assert told["usage"]["tokens"] == 130


def test_killed_by_somebody_it_may_go_on() -> None:
    assert read(INIT, exit_code=None, signal=9)["transient"]


def test_a_program_that_is_not_there_is_not_looked_for_again() -> None:
    told = ClaudeAgent("").reply(job(), result(exit_code=None, error="No such file or directory"), "")
    assert told["verdict"] == "ERROR" and not told["transient"]


def test_what_was_not_permitted_is_told_in_a_few_words() -> None:
    rows = [
        {"tool_name": "Bash", "tool_input": {"command": "make\nmake test", "description": "x"}},
        {"tool_name": "Write"},
        "strange",
        {"tool_name": "Write"},
    ]
    assert read(INIT, {**GOOD, "permission_denials": rows})["denied"] == ["Bash make", "Write"]
    assert read(INIT, {**GOOD, "permission_denials": 5})["denied"] == read(INIT)["denied"] == []


# ---- limits and errors of the model ----------------------------------------------------------------


def limit(at: int, status: str = "rejected") -> dict[str, Any]:
    return {
        "type": "rate_limit_event",
        "rate_limit_info": {"status": status, "resetsAt": at, "rateLimitType": "five_hour"},
    }


def test_a_usage_limit_says_until_when() -> None:
    told = read(INIT, limit(SOON), failed(api_error_status=429, result="You've hit your limit · resets 1pm (UTC)"))
    assert told["parked_until"] == "2026-11-15T13:00:00.000Z"
    assert "hit your limit" in told["summary"] and not told["transient"]


def test_the_limit_of_an_older_version_is_understood() -> None:
    assert (
        read(INIT, failed(result=f"Claude AI usage limit reached|{SOON}"))["parked_until"] == "2026-11-15T13:00:00.000Z"
    )


OLDER = {"api_error_status": None, "terminal_reason": None}


@pytest.mark.parametrize(
    ("words", "until"),
    [
        ("You've hit your limit · resets Nov 15, 2026, 1:00pm (UTC)", "2026-11-15T13:01:00.000Z"),
        ("You've hit your weekly limit · resets 1pm (UTC)", "2026-11-15T13:01:00.000Z"),
        (f"Claude AI usage limit reached|{SOON}", "2026-11-15T13:00:00.000Z"),
        ("You've hit your session limit", None),
        (f"Claude AI usage limit reached|{SOON - 7200}", None),
    ],
)
def test_limits_in_the_words_of_older_versions(words: str, until: str | None) -> None:
    told = read(INIT, failed(**{**OLDER, "result": words}))
    assert told.get("parked_until") == until
    assert until or (told["transient"] and told["limited"])


@pytest.mark.parametrize(
    ("words", "again", "limited"),
    [
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', True, False),
        (
            'API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"too many requests"}}',
            True,
            True,
        ),
        ("API Error: Request rejected (429) · too many requests", True, True),
        ('API Error: 400 {"error":{"message":"this model does not exist"}}', False, False),
        ("API Error: Connection error.", True, False),
        ("Invalid API key · Please run /login", False, False),
        ("it says 529 somewhere", False, False),
    ],
)
def test_refusals_in_the_words_of_older_versions(words: str, again: bool, limited: bool) -> None:
    told = read(INIT, failed(**{**OLDER, "result": words}))
    assert (told["verdict"], told["transient"], told.get("limited", False)) == ("ERROR", again, limited) and told[
        "summary"
    ] == words


@pytest.mark.parametrize("event", [limit(SOON - 7200), limit(SOON, "allowed_warning"), {"type": "rate_limit_event"}])
def test_a_limit_that_is_over_or_does_not_say_when_is_tried_again(event: dict[str, Any]) -> None:
    told = read(INIT, event, failed(api_error_status=429))
    assert told["transient"] and told["limited"] and "parked_until" not in told


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"api_error_status": 529}, True),
        ({"api_error_status": 500}, True),
        ({"api_error_status": 400}, False),
        ({"api_error_status": 401}, False),
        ({"api_error_status": 404}, False),
        ({"api_error_status": None, "result": "API Error: Connection to the API was lost (ECONNRESET)."}, True),
        ({"api_error_status": None, "result": "API Error: JSON Parse error: Expected '}'"}, False),
    ],
)
def test_what_may_pass_is_tried_again_and_nothing_else(changes: dict[str, Any], again: bool) -> None:
    told = read(INIT, failed(**changes))
    assert told["verdict"] == "ERROR" and told["transient"] is again and told["summary"]


@pytest.mark.parametrize("reason", ["max_turns", "budget_exhausted"])
def test_its_own_limits_are_errors_with_their_reason(reason: str) -> None:
    told = read(INIT, failed(terminal_reason=reason, result=None, errors=["Reached maximum number of turns (2)"]))
    assert told["summary"] == "Reached maximum number of turns (2)" and not told["transient"]


# ---- what it used ----------------------------------------------------------------------------------


def test_tokens_and_money_are_those_of_all_models() -> None:
    both = {**USED, "haiku": {"inputTokens": 1, "outputTokens": 1, "costUSD": 0.000001}}
    assert read(INIT, {**GOOD, "modelUsage": both})["usage"] == {"tokens": 132, "micro_usd": 12347}


def test_what_a_resumed_session_had_used_before_is_not_charged_again() -> None:
    total = {"opus": {"inputTokens": 9000, "outputTokens": 900, "costUSD": 9.0}}
    told = read(INIT, {**GOOD, "modelUsage": total, "model_usage_since_last_result": USED})
    assert told["usage"] == {"tokens": 130, "micro_usd": 12346}


def test_several_results_of_one_program_add_up() -> None:
    since = {**GOOD, "model_usage_since_last_result": USED}
    assert read(INIT, since, since)["usage"]["tokens"] == 260


@pytest.mark.parametrize("strange", [5, "text", None, {"a": 1}, [None, 3]])
@pytest.mark.parametrize(
    "field",
    [
        "errors",
        "result",
        "terminal_reason",
        "api_error_status",
        "modelUsage",
        "permission_denials",
        "model_usage_since_last_result",
    ],
)
def test_a_failure_with_strange_fields_is_still_one(field: str, strange: Any) -> None:
    assert read(INIT, {**failed(), field: strange})["verdict"] == "ERROR"


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["type", "subtype", "result", "is_error", "modelUsage", "errors", "tasks"]),
            st.one_of(
                st.none(),
                st.booleans(),
                st.integers(),
                st.text(max_size=20),
                st.sampled_from(["result", "system", "init", "DONE: x"]),
                st.lists(st.integers(), max_size=2),
                st.dictionaries(
                    st.text(max_size=3), st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=2
                ),
            ),
        ),
        max_size=5,
    )
)
def test_no_stream_makes_it_fall_over(events: list[Any]) -> None:
    """A verdict and a reason, whatever comes."""
    told = read(*events)
    assert told["verdict"] in ("DONE", "NEEDS_REVISION", "ERROR", "QUESTION") and isinstance(told["summary"], str)
    assert session_of(lines(*events)) == ""


# ---- what is started -------------------------------------------------------------------------------


def test_a_fresh_start_has_a_session_of_our_choosing_and_the_prompt_on_stdin() -> None:
    told = ClaudeAgent("").launch(job())
    assert told["stdin"] == "the prompt"
    assert told["argv"][:5] == ["claude", "-p", "--output-format", "stream-json", "--verbose"]
    assert told["argv"][5:7] == ["--session-id", session_for(job())]
    assert "--permission-mode" in told["argv"] and "acceptEdits" in told["argv"]
    assert not any("prompt" in word for word in told["argv"]), "arguments are seen by everybody on the machine"


def test_session_ids_are_the_same_after_a_restart_and_never_shared() -> None:
    assert session_for(job()) == session_for(job())
    others = [job(name="work-1-worker-2"), job(start=2)]
    assert len({session_for(one) for one in [job(), *others]}) == 3


def test_an_interrupted_session_is_resumed() -> None:
    told = ClaudeAgent("").launch(job(earlier=lines(INIT, {"type": "assistant"}, '{"type": "ass')))
    assert told["argv"][5:7] == ["--resume", SESSION] and told["stdin"] == "go on"
    assert "--session-id" not in told["argv"]


@pytest.mark.parametrize(
    "earlier",
    [
        "",
        "claude: command not found\n",
        lines(
            {
                **failed(terminal_reason=None, result=None),
                "errors": [f"No conversation found with session ID: {SESSION}"],
            }
        ),
        lines({**INIT, "session_id": "../../etc"}),
    ],
)
def test_where_there_is_no_session_it_starts_over(earlier: str) -> None:
    told = ClaudeAgent("").launch(job(earlier=earlier, start=2))
    assert "--resume" not in told["argv"] and told["stdin"] == "the prompt"


def test_a_session_that_is_gone_is_tried_afresh() -> None:
    gone = failed(terminal_reason=None, result=None, errors=[f"No conversation found with session ID: {SESSION}"])
    assert read(gone, exit_code=1)["transient"]


def test_options_come_from_the_spelling_then_from_the_role() -> None:
    own: dict[str, Any] = {"effort": "low", "permissionMode": "plan", "max-turns": 5, "color": "red"}
    asked = role(model="sonnet", **own)
    words = argv("model=opus,max-turns=40", role=asked)
    for pair in (["--model", "opus"], ["--effort", "low"], ["--permission-mode", "plan"], ["--max-turns", "40"]):
        assert pair == words[words.index(pair[0]) :][:2]
    assert "--model" not in argv(role=role(model="inherit"))
    assert "--model" not in argv(role=role(model="gpt-5.5", agent="codex")), "another agent's model"


@pytest.mark.parametrize(
    ("words", "tools", "there", "allowed"),
    [
        ("", ["read", "search", "write"], "Read,Grep,Glob,Write,Edit", ["Read", "Grep", "Glob", "Write", "Edit"]),
        ("", ["read", "run"], "Read,Bash", ["Read", "Bash"]),
        ("", ["Read", "mcp__db__query"], "Read", ["Read", "mcp__db__query"]),
        ("", [], "", []),
        ("tools=default", ["read"], "", []),
        ("tools=Read,Bash,allow=Bash(make:*)", [], "Read,Bash", ["Read", "Bash(make:*)"]),
        ("allow=Bash(make:*)", ["read", "run"], "Read,Bash", ["Read", "Bash(make:*)"]),
        (
            "tools=Read,Bash(git log,git diff),allow=Bash(make:*)",
            ["read"],
            "Read,Bash",
            ["Read", "Bash(git log,git diff)", "Bash(make:*)"],
        ),
    ],
)
def test_tools_of_the_role_are_there_and_need_no_permission(
    words: str, tools: list[str], there: str, allowed: list[str]
) -> None:
    made = argv(words, role=role(tools))
    assert (made[made.index("--tools") + 1] if "--tools" in made else "") == there
    assert (made[made.index("--allowedTools") + 1 :] if "--allowedTools" in made else []) == allowed


def test_the_lesser_amount_of_money_holds() -> None:
    assert "--max-budget-usd" not in argv()
    for words, figure, dollars in (
        ("budget=2.5", None, "2.5"),
        ("", 500_000, "0.5"),
        ("budget=2.5", 3_000_000, "2.5"),
        ("budget=4", 3_000_000, "3"),
    ):
        made = argv(words, figure=figure)
        assert made[made.index("--max-budget-usd") + 1] == dollars


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("modle=opus", "did you mean 'model'"),
        ("effort=huge", "low"),
        ("max-turns=0", "40"),
        ("budget=free", "40"),
        ("opus", "known"),
        ("model=", "leave it out"),
    ],
)
def test_options_that_mean_nothing_are_refused(words: str, hint: str) -> None:
    with pytest.raises(BadInput) as refused:
        ClaudeAgent(words)
    assert hint in refused.value.hint


def test_a_role_that_asks_for_the_impossible_is_refused_before_anything_starts() -> None:
    with pytest.raises(BadInput, match=r"worker\.md"):
        ClaudeAgent("").check(role(effort="huge"))


def test_logins_of_other_clouds_are_handed_over_only_where_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "AWS_*" not in ClaudeAgent("").environment
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    assert "AWS_*" in ClaudeAgent("").environment
