"""What is true for every command: one envelope, documented exit codes, data apart from talk."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click import Context
from hypothesis import given
from hypothesis import strategies as st

from tenuto.encoding import dumps, escape_json, escape_terminal, loads
from tenuto.entrypoints import launch, speak
from tenuto.entrypoints.cli.program import COMMANDS, program
from tenuto.errors import BadInput, Conflict, Damaged, NotFound, Refused, SchemaSkew, TenutoError, Unwritable, Waiting

Say = Callable[..., Any]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TenutoError, 1),
        (Conflict, 1),
        (Damaged, 1),
        (Unwritable, 1),
        (BadInput, 2),
        (NotFound, 3),
        (Refused, 4),
        (Waiting, 5),
        (SchemaSkew, 6),
        (KeyboardInterrupt, 130),
        (ZeroDivisionError, 1),
    ],
)
def test_every_failure_ends_with_its_own_status_and_is_told_in_both_ways(
    error: Any, status: int, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People get what, why, what now on standard error; scripts get the envelope on standard output."""

    def fail(words: list[str]) -> int:
        raise error("some-code", "what\nwhy", "what now") if issubclass(error, TenutoError) else error()

    monkeypatch.setattr("tenuto.entrypoints.launch.find_hot", lambda words: fail)
    told = say("context")
    assert (told.status, told.out) == (status, "")
    assert told.err.count("\n") >= 1
    assert "Traceback" not in told.err
    answered = say("context", "--json")
    assert (answered.status, answered.err) == (status, "")
    assert answered.error["code"] in ("some-code", "interrupted", "unexpected")


def test_a_refusal_says_what_why_and_what_now() -> None:
    error = Refused(
        "not-ready", "cannot start 'tests' in run dark-mode\nit waits for 'build'", "tenuto status dark-mode"
    )
    assert speak.explain(error) == (
        "refused [not-ready]: cannot start 'tests' in run dark-mode\n"
        "  it waits for 'build'\n"
        "  try: tenuto status dark-mode\n"
    )


def test_a_traceback_is_shown_only_when_asked_for(say: Say, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: list[str]) -> int:
        raise ZeroDivisionError("of no use")

    monkeypatch.setattr("tenuto.entrypoints.launch.find_hot", lambda words: fail)
    assert say("context").err == (
        "failed [unexpected]: ZeroDivisionError: of no use\n"
        "  try: tenuto doctor; TENUTO_DEBUG=1 shows where it happened\n"
    )
    monkeypatch.setenv("TENUTO_DEBUG", "1")
    assert "Traceback" in say("context").err


@pytest.mark.parametrize("words", [["nonsense"], ["list", "--nonsense"], ["list", "--limit", "x"], ["show", "a", "b"]])
def test_a_wrong_command_line_is_told_in_the_envelope_too(words: list[str], say: Say, repository: Path) -> None:
    assert say(*words).status == 2
    answered = say(*words, "--json")
    assert answered.status == 2
    assert answered.error["hint"].startswith("tenuto ")


def test_a_misspelt_command_is_answered_with_the_right_one(say: Say, repository: Path) -> None:
    assert "try: tenuto status" in say("statsu").err


@pytest.mark.parametrize("name", [*COMMANDS])
def test_help_leads_with_examples_and_every_command_takes_json(name: str, say: Say, repository: Path) -> None:
    told = say(name, "--help")
    assert told.status == 0
    assert told.out.startswith("Examples:\n  ")
    assert told.out.index("Examples:") < told.out.index("Usage: ")
    assert "--json" in told.out
    assert all(len(line) <= 80 for line in told.out.splitlines())
    assert list(repository.iterdir()) == [repository / ".git"], "help leaves no trace"


def test_every_command_of_the_table_is_there_and_says_what_it_does() -> None:
    for name, (_, line) in COMMANDS.items():
        command = program.get_command(Context(program), name)
        assert command is not None and command.name == name
        assert command.help and line.endswith((".", "?")), name


def test_help_and_version_need_no_repository(say: Say, repository: Path) -> None:
    assert say().out == say("--help").out
    assert say("--version").out.startswith("tenuto ")


def test_a_folder_can_be_named_instead_of_entered(
    say: Say, run: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert say("-C", "project", "list", "--json").data["runs"][0]["id"] == run
    assert say("-C", "nowhere", "list").status == 2


def test_json_may_stand_before_the_command(say: Say, run: str) -> None:
    assert say("--json", "list").data == say("list", "--json").data


def test_a_reader_that_goes_away_is_not_an_error_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tenuto list | head -1` prints one line and nothing else."""

    def fail(words: list[str]) -> int:
        raise BrokenPipeError

    monkeypatch.setattr("tenuto.entrypoints.launch.find_hot", lambda words: fail)
    monkeypatch.setattr("tenuto.entrypoints.launch.close_quietly", lambda: 1)
    heard = io.StringIO()
    monkeypatch.setattr(sys, "stderr", heard)
    assert launch.answer(["list"]) == 1
    assert heard.getvalue() == ""


def test_a_system_error_says_what_to_do() -> None:
    full = speak.understand(OSError(28, os.strerror(28), "journal.db"))
    assert (full.code, full.retryable) == ("disk-full", True)
    assert "make room" in full.hint
    assert speak.understand(PermissionError(13, os.strerror(13), "journal.db")).code == "not-allowed"


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_no_stored_text_can_give_orders_to_a_terminal(text: str) -> None:
    """Escape sequences, C1 controls, direction marks and lone surrogates are shown, not obeyed."""
    shown = escape_terminal(text)
    assert not any(
        ord(c) < 32
        or 0x7F <= ord(c) <= 0x9F
        or c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
        or 0xD800 <= ord(c) <= 0xDFFF
        for c in shown
    )
    shown.encode()
    packed = escape_json(dumps({"text": text}))
    packed.encode()
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        assert loads(packed) == {"text": text}
    assert all(c.isprintable() or not c.isascii() for c in packed)
    assert "\x9b" not in packed


def test_visible_text_of_any_script_stays_as_it_is() -> None:
    for text in ("Grüße, 日本語, עברית, family 👨‍👩‍👧", "plain ascii [not markup]"):
        assert escape_terminal(text) == text
