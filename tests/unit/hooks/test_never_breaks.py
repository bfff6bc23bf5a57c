"""Whatever goes wrong inside, the host of a hook hears of no failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.entrypoints import hook_call
from tenuto.entrypoints.launch import answer


@pytest.mark.parametrize("error", [KeyError("a bug"), OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
def test_an_error_while_an_error_is_told_is_no_failure_of_the_host(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`tenuto hook EVENT` ends with 0 even where the way to say so is broken."""

    def broken(*_: object) -> None:
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hook_call, "payload", broken)
    monkeypatch.setattr(hook_call.Saying, "fail", broken)
    assert answer(["hook", "Stop"]) == 0
    assert "Traceback" not in capfd.readouterr().err


def test_a_person_who_declares_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tenuto hook declare` is no hook: what is wrong with it is a failure."""
    monkeypatch.chdir(tmp_path)
    assert answer(["hook", "declare", "no-such-key=1"]) != 0
