"""Hooks inside an agent that an engine started: the user's own settings call them there, too. Whoever started it
records it."""

from __future__ import annotations

import json
import posix
from pathlib import Path
from typing import Any

import pytest

from tenuto.hooks.call import HookProcess
from tenuto.hooks.gates import declare
from tests.unit.hooks.conftest import PAYLOADS, SESSION, Repository

EVERY = sorted(str(path.relative_to(PAYLOADS)) for path in PAYLOADS.rglob("*.json"))


@pytest.fixture
def busy(started: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A person's feature: saved before a compaction, not taken up again, with everything declared. And we are in
    another run's attempt."""
    declare(started.workspace, {"stop": "block", "verdicts": True, "gate": "block"})
    started.replay("claude-2.1.325/PreCompact.auto", session_id=SESSION)
    assert started.run()["resume"]["reason"] and not started.run()["resume"].get("restored_at")
    monkeypatch.chdir(started.root)
    monkeypatch.setitem(posix.environ, b"TENUTO_ATTEMPT", b"dark-mode.design-1-designer-1.1")
    monkeypatch.setitem(posix.environ, b"TENUTO_RUN", b"dark-mode")
    return started


def test_nothing_of_somebody_elses_run_is_recorded_saved_handed_over_or_held(
    busy: Repository, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every payload that was ever captured, in a session that the person's own run knows."""
    before = busy.run()
    for name in EVERY:
        payload = busy.payload(name.removesuffix(".json"), cwd=str(busy.root), session_id=SESSION)
        HookProcess(Path(name).name.partition(".")[0], False).answer(payload)
        assert capfd.readouterr() == ("", ""), name
        assert busy.run() == before, name


def test_what_is_declared_for_its_own_run_holds_and_anothers_does_not(
    busy: Repository, capfd: pytest.CaptureFixture[str]
) -> None:
    busy.workspace.context.init("Dark mode")
    declare(busy.workspace, {"files": ["docs/**"]}, "oauth-login")
    declare(busy.workspace, {"files": ["src/**"]}, "dark-mode")
    said = []
    for path in ("src/a.py", "docs/a.md"):
        given = busy.payload("claude-2.1.325/PreToolUse.Write", cwd=str(busy.root), session_id=SESSION)
        given["tool_input"]["file_path"] = str(busy.root / path)
        HookProcess("PreToolUse", False).answer(given)
        said.append(capfd.readouterr().out)
    assert said[0] == ""
    assert json.loads(said[1])["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_without_the_name_of_its_run_the_attempt_tells_it(busy: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenuto.hooks.call import confine
    from tenuto.hooks.parse import parse_hook

    monkeypatch.delitem(posix.environ, b"TENUTO_RUN")
    call: Any = parse_hook("Stop", {"session_id": SESSION})
    confine(call)
    assert (call["run"], call["event"]) == ("dark-mode", "")
