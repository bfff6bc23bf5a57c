"""doctor, on agent programs: version, login, hook settings, plugin; each with its fix, and nothing asked over a
network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.hooks.connections import OLDEST
from tenuto.hooks.setup import HOSTS

Say = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str) -> Path:
    """A home with nothing in it, on a machine with no agent program."""
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.defpath}")
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC", "OPENAI", "GOOGLE", "GH_", "GITHUB")):
            monkeypatch.delenv(name)
    return tmp_path / "home"


def install(home: Path, name: str, told: str) -> None:
    path = home.parent / "bin" / name
    path.write_text(f"#!/bin/sh\n{told}\n")
    path.chmod(0o755)


def found(say: Say, name: str) -> list[Any]:
    return [entry for entry in say("doctor", "--json").data["checks"] if entry["name"] == name]


def settings(text: str) -> None:
    Path(".tenuto").mkdir(exist_ok=True)
    Path(".tenuto/config.yaml").write_text(text)


def test_a_machine_without_agents_is_told_so(say: Say, home: Path) -> None:
    [entry] = found(say, "agents")
    assert entry["status"] == "note" and "--agent" in entry["fix"]


def test_version_and_login(say: Say, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a variable or a file of the program's own; only that it is there counts."""
    install(home, "claude", "echo 2.1.325 '(Claude Code)'")
    [entry] = found(say, "claude")
    assert (entry["status"], entry["message"]) == ("note", "2.1.325, and no login was found")
    assert "/login" in entry["fix"]
    (home / ".claude").mkdir()
    (home / ".claude/.credentials.json").write_text("not even json")
    [entry] = found(say, "claude")
    assert (entry["status"], entry["message"]) == ("ok", "2.1.325, login by ~/.claude/.credentials.json")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    [entry] = found(say, "claude")
    assert entry["message"] == "2.1.325, login by ANTHROPIC_API_KEY"


@pytest.mark.parametrize("name", OLDEST)
def test_every_program_is_known_by_its_own_words(name: str, say: Say, home: Path) -> None:
    words = {"copilot": "GitHub Copilot CLI {}.", "codex": "codex-cli {}"}.get(name, "{}").format(OLDEST[name])
    install(home, name, f"echo '{words}'")
    [entry] = found(say, name)
    assert entry["message"] == f"{OLDEST[name]}, and no login was found"


def test_a_key_that_the_program_does_not_read_is_no_login(
    say: Say, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex 0.166 sends nothing of OPENAI_API_KEY; it reads CODEX_API_KEY."""
    install(home, "codex", "echo codex-cli 0.166.0")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    [entry] = found(say, "codex")
    assert entry["message"] == "0.166.0, and no login was found" and "CODEX_API_KEY" in entry["fix"]


def test_old_programs_and_broken_ones(say: Say, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_API_KEY", "x")
    install(home, "codex", "echo codex-cli 0.9.1")
    assert [entry["fix"] for entry in found(say, "codex")] == ["update codex"]
    install(home, "codex", "echo 'no such library' >&2; exit 127")
    [entry] = found(say, "codex")
    assert (entry["status"], entry["message"]) == ("note", "it does not tell its version: ended with 127")


def test_a_program_that_takes_too_long_is_not_called_broken(
    say: Say, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.hooks.connections._PATIENCE", 0.2)
    install(home, "gemini", "exec sleep 20")
    [entry] = found(say, "gemini")
    assert "no answer within" in entry["message"] and "less to do" in entry["fix"]


def test_what_the_settings_name_must_be_there(say: Say, home: Path) -> None:
    settings("agent: claude:model=opus\nroles: {designer: 'acp:gemini --acp'}\nfallback: {claude: codex}\n")
    install(home, "gemini", "echo 0.61.0")
    assert [entry["status"] for name in ("claude", "codex", "gemini") for entry in found(say, name)] == ["problem"] * 3
    assert say("doctor").status == 1


def test_broken_settings_are_a_problem_of_their_own(say: Say, home: Path) -> None:
    settings("agnet: claude\n")
    [entry] = found(say, "settings")
    assert entry["status"] == "problem" and "agnet" in entry["message"]


def setup_of(home: Path) -> Path:
    return home / ".claude" / "settings.json"


def test_hooks_that_setup_wrote_are_in_order(say: Say, home: Path) -> None:
    assert found(say, "setup") == []
    say("setup", "claude", "--yes")
    assert [entry["status"] for entry in found(say, "setup")] == ["ok"]
    whole = json.loads(setup_of(home).read_text())
    del whole["hooks"]["PreCompact"]
    setup_of(home).write_text(json.dumps(whole))
    [entry] = found(say, "setup")
    assert (entry["status"], entry["fix"]) == ("note", "tenuto setup claude"), "an older version knew fewer events"


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("servers", ["--mcp", "--no-mcp"])
def test_what_setup_has_just_written_is_in_order(host: str, servers: str, say: Say, home: Path) -> None:
    """Also in a file that holds hooks and the server, and beside what somebody else wrote there."""
    mine = home / ".gemini" / "settings.json"
    mine.parent.mkdir()
    mine.write_text('{"theme": "x"}\n')
    say("setup", host, "--yes", servers)
    assert [entry["status"] for entry in found(say, "setup")] == ["ok"]


def test_hooks_of_another_tenuto_are_found_out(say: Say, home: Path, tmp_path: Path) -> None:
    """Gone, of another version, or without bytecode: each has its own words, and its fix."""
    say("setup", "claude", "--yes")
    own = str(Path(tenuto.__file__).parent)
    other = tmp_path / "other" / "tenuto"
    setup_of(home).write_text(setup_of(home).read_text().replace(own, str(other)))
    [entry] = found(say, "setup")
    assert (entry["status"], entry["fix"]) == ("problem", "tenuto setup claude") and "is gone" in entry["message"]
    (other / "entrypoints").mkdir(parents=True)
    (other / "entrypoints/hook.py").write_text("")
    (other / "__init__.py").write_text('"""Tenuto."""\n__version__ = "0.0.9"\n')
    [entry] = found(say, "setup")
    assert (
        entry["status"] == "problem"
        and f"start Tenuto 0.0.9 ({other}), this is {tenuto.__version__}" in entry["message"]
    )
    (other / "__init__.py").write_text(f'__version__ = "{tenuto.__version__}"\n')
    [entry] = found(say, "setup")
    assert entry["status"] == "note" and f"-m compileall -q {other}" in entry["fix"]


def test_settings_that_are_broken_now_are_named(say: Say, home: Path) -> None:
    say("setup", "claude", "--yes")
    setup_of(home).write_text(setup_of(home).read_text()[:-9])
    [entry] = found(say, "setup")
    assert entry["status"] == "note" and str(setup_of(home)) in entry["message"]


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        ({"version": tenuto.__version__, "enabled": True}, "problem", "finds no tenuto on the PATH"),
        ({"version": "0.0.9", "enabled": True}, "problem", "claude plugin update tenuto@tenuto"),
        ({"version": tenuto.__version__, "enabled": False}, "note", "claude plugin enable tenuto@tenuto"),
        (
            {"version": tenuto.__version__, "enabled": True, "errors": ["hooks.json: no such event"]},
            "problem",
            "no such event",
        ),
    ],
)
def test_the_plugin_is_asked_about(told: Any, status: str, words: str, say: Say, home: Path) -> None:
    listed = json.dumps([{"id": "tenuto@tenuto", **told}, {"id": "other@x", "version": "1"}])
    install(home, "claude", f"[ \"$1\" = plugin ] && echo '{listed}' || echo 2.1.325")
    assert found(say, "plugin") == [], "not asked where it is not installed"
    (home / ".claude/plugins").mkdir(parents=True)
    (home / ".claude/plugins/installed_plugins.json").write_text('{"plugins": {"tenuto@tenuto": []}}')
    [entry] = found(say, "plugin")
    assert entry["status"] == status and words in entry["message"] + entry["fix"]


def test_the_plugin_and_setup_are_one_too_many(say: Say, home: Path) -> None:
    install(home, "tenuto", "")
    test_the_plugin_is_asked_about({"version": tenuto.__version__, "enabled": True}, "ok", "tenuto@tenuto", say, home)
    say("setup", "claude", "--yes")
    assert [entry["fix"] for entry in found(say, "setup")] == ["", "tenuto setup claude --undo"]


def test_a_gate_that_nobody_watches_is_named(say: Say, home: Path) -> None:
    say("hook", "declare", "gate=block")
    [entry] = found(say, "setup")
    assert entry["status"] == "note" and "no program's settings call" in entry["message"]
    say("setup", "codex", "--yes")
    assert [entry["status"] for entry in found(say, "setup")] == ["ok"]
