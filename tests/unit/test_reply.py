"""What an agent's words amount to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.agents.reply import parse_question, parse_verdict


@pytest.mark.parametrize(
    ("text", "word", "summary"),
    [
        ("DONE: all written", "DONE", "all written"),
        ("NEEDS_REVISION: two gaps", "NEEDS_REVISION", "two gaps"),
        ("ERROR: no design.md", "ERROR", "no design.md"),
        ("I did this and that.\n\nDONE: all written\n", "DONE", "all written"),
        ("DONE: all written\n\nThank you for the clear task!", "DONE", "all written"),
        ("   DONE: indented", "DONE", "indented"),
        ("work\r\nDONE: from Windows\r\n", "DONE", "from Windows"),
        ("\x1b[32mDONE: in green\x1b[0m", "DONE", "in green"),
        ("```\nDONE: in a fence\n```", "DONE", "in a fence"),
        ("DONE:", "DONE", ""),
    ],
)
def test_the_last_line_that_starts_with_a_verdict_counts(text: str, word: str, summary: str) -> None:
    """The verdict is the agent's own word; no reason of ours is added."""
    assert parse_verdict(text) == {"verdict": word, "summary": summary}


def test_an_earlier_paragraph_is_history() -> None:
    """An agent that failed, repaired it and says so at the end is done."""
    assert parse_verdict("ERROR: the build broke\n\nI fixed the import.\n\nDONE: builds again")["verdict"] == "DONE"
    assert parse_verdict("DONE: step one\n\nERROR: step two failed")["verdict"] == "ERROR"


@pytest.mark.parametrize("text", ["", "   \n\t\n", "\ufeff\n"])
def test_an_empty_reply_is_an_error(text: str) -> None:
    """Silence is not success."""
    assert parse_verdict(text)["verdict"] == "ERROR"
    assert (parse_verdict(text)["problem"], parse_verdict(text)["summary"]) == ("empty", "the reply is empty")


@pytest.mark.parametrize(
    "text",
    [
        "I believe everything is done.",
        "Done: all written",
        "done: all written",
        "DONE all written",
        "DONE - all written",
        "The answer is DONE: all written",
        "Error: ENOENT",
        "STATUS=DONE:ok",
        "UNDONE: all written",
        "> DONE: the earlier agent wrote this",
        "NEEDS REVISION: two gaps",
        "✅ DONE: all written",
        "| DONE: | all written |",
    ],
)
def test_what_is_no_verdict_line_is_an_error(text: str) -> None:
    """Capitals, underscore and colon are part of the word; a quote is somebody else's."""
    found = parse_verdict(text)
    assert found["verdict"] == "ERROR"
    assert found["problem"] == "missing" and "no line" in found["summary"]


@pytest.mark.parametrize(
    "text",
    [
        "DONE: a\nERROR: b",
        "ERROR: b\nDONE: a",
        "End with one of:\nDONE: <summary>\nNEEDS_REVISION: <summary>\nERROR: <summary>",
        "earlier\n\nNEEDS_REVISION: gaps\nand also\nDONE: a\n\nbye",
    ],
)
def test_two_different_verdicts_in_one_paragraph_are_an_error(text: str) -> None:
    """A reply that says both is asked again, never taken at its better word."""
    found = parse_verdict(text)
    assert found["verdict"] == "ERROR"
    assert found["problem"] == "contradictory" and "contradicts itself" in found["summary"]


def test_the_same_verdict_twice_is_no_contradiction() -> None:
    """The last one has the summary."""
    assert parse_verdict("DONE: first half\nDONE: second half") == {"verdict": "DONE", "summary": "second half"}


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("**DONE:** all written", "all written"),
        ("**DONE**: all written", "all written"),
        ("**DONE: all written**", "all written"),
        ("`DONE: all written`", "all written"),
        ("`DONE:` all written", "all written"),
        ("__DONE:__ all written", "all written"),
        ("- DONE: all written", "all written"),
        ("* **DONE:** all written", "all written"),
        ("1. DONE: all written", "all written"),
        ("## DONE: all written", "all written"),
    ],
)
def test_decoration_of_the_line_is_tolerated(text: str, summary: str) -> None:
    """Agents write Markdown; the word is still their word."""
    assert parse_verdict(f"Some text.\n\n{text}\n") == {"verdict": "DONE", "summary": summary}


def test_an_escaped_underscore_is_an_underscore() -> None:
    """Markdown writers escape it."""
    assert parse_verdict("NEEDS\\_REVISION: two gaps")["verdict"] == "NEEDS_REVISION"


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: tests fail\n\n- DONE: parser\n- DONE: lexer",
        "ERROR: tests fail\n\n**DONE:** parser",
        "- ERROR: lexer\n\n- DONE: parser",
        "**ERROR:** lexer\n\nNext.\n\n**DONE:** parser",
        "DONE: parser\n\n**ERROR:** the tests do not run",
        "DONE: parser\n\nBut:\n- NEEDS_REVISION: lexer",
    ],
)
def test_a_decorated_line_never_makes_a_verdict_better(text: str) -> None:
    """Tolerance must not open a door: status lists and afterthoughts only ever make it worse."""
    assert parse_verdict(text)["verdict"] == "ERROR"


@pytest.mark.parametrize(
    ("text", "word", "summary"),
    [
        ("- ERROR: handled in parser\n- DONE: lexer\n\nDONE: both", "DONE", "both"),
        ("- ERROR: 0\n- WARN: 2\nDONE: linted", "DONE", "linted"),
        ("NEEDS_REVISION: two gaps\n\n**DONE:** the rest", "NEEDS_REVISION", "two gaps"),
        ("DONE: both\n\n- DONE: parser\n- DONE: lexer", "DONE", "both"),
    ],
)
def test_a_bare_line_decides_over_decorated_ones(text: str, word: str, summary: str) -> None:
    """A status list above it is no contradiction, below it no correction for the better."""
    assert parse_verdict(text) == {"verdict": word, "summary": summary}


@given(st.lists(st.sampled_from(["DONE: a", "ERROR: b", "NEEDS_REVISION: c", "**DONE:** d", "- ERROR: e", "text", ""])))
def test_done_is_never_read_out_of_a_reply_that_does_not_end_in_it(lines: list[str]) -> None:
    """DONE needs a line that says so, below every bare line that says something else."""
    if parse_verdict("\n".join(lines))["verdict"] == "DONE":
        bare = [line for line in lines if line.startswith(("DONE", "ERROR", "NEEDS"))]
        assert (
            (bare or [line for line in lines if "DONE" in line or "ERROR" in line])[-1].lstrip("*- ").startswith("DONE")
        )


@given(st.text())
def test_any_text_has_a_verdict(text: str) -> None:
    """No reply, however broken, stops the orchestrator."""
    found = parse_verdict(text)
    assert found["verdict"] in ("DONE", "NEEDS_REVISION", "ERROR")
    assert parse_question(text) is None or parse_question(text) != ""


# ---- questions -----------------------------------------------------------------------------


def test_a_reply_that_ends_with_a_question_asks_it() -> None:
    """The question goes to a person word for word, with the choices below it."""
    assert parse_question("I looked around.\n\nQUESTION: SQLite or PostgreSQL?\n") == "SQLite or PostgreSQL?"
    assert parse_question("**QUESTION:** which one?") == "which one?"
    assert parse_question("QUESTION: which one?\n- a\n- b") == "which one?\n- a\n- b"


@pytest.mark.parametrize(
    "text", ["", "DONE: all", "QUESTION: which?\n\nNever mind.", "QUESTION: which?\nDONE: chose one", "QUESTION:"]
)
def test_a_question_that_is_not_the_end_is_not_asked(text: str) -> None:
    """A verdict after it means that the agent went on by itself."""
    assert parse_question(text) is None
