"""Whatever goes wrong inside, the host of a hook hears of no failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.entrypoints.launch import answer
from tenuto.hooks import call

from .conftest import Repository


@pytest.mark.parametrize(
    "error", [KeyError("a bug"), OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_an_error_while_an_error_is_told_is_no_failure_of_the_host(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`tenuto hook EVENT` ends with 0 even where the way to say so is broken."""

    def broken(*_: object) -> None:
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(call, "read_payload", broken)
    monkeypatch.setattr(call.HookProcess, "fail", broken)
    assert answer(["hook", "Stop"]) == 0
    assert "Traceback" not in capfd.readouterr().err


def test_a_person_who_declares_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tenuto hook declare` is no hook: what is wrong with it is a failure."""
    monkeypatch.chdir(tmp_path)
    for pair in ("no-such-key=1", "verdicts=maybe", "gate=perhaps"):
        assert answer(["hook", "declare", pair]) != 0


def test_a_journal_that_another_program_does_not_let_go_of_is_said_and_not_waited_for(
    started: Repository, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A host gives up on a hook that does not answer."""
    payload = started.payload("claude-2.1.325/SubagentStart")
    monkeypatch.chdir(started.root)
    monkeypatch.setattr(call, "LONGEST_WAIT", 0.05)
    monkeypatch.setattr(call, "read_payload", lambda: payload)
    before = started.run()
    started.workspace.journal.lock()
    try:
        assert answer(["hook", "SubagentStart"]) == 0
    finally:
        started.workspace.journal.unlock()
    assert "another program has been writing" in capfd.readouterr().err
    assert started.run() == before
    assert answer(["hook", "SubagentStart"]) == 0
    assert started.run() != before
