"""setup: shows before it writes, writes what works, and takes out what it put in."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.hooks.setup import HOSTS

Say = Callable[..., Any]
MINE = b'{\n\t"model": "opus",\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}\n}'


@pytest.fixture
def home(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def mine(home: Path) -> Path:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(MINE)
    path.chmod(0o600)
    return path


def below(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts
    )


def test_nothing_is_changed_before_it_was_seen(say: Say, mine: Path) -> None:
    told = say("setup", "claude", "--dry-run")
    assert "+" in told.out and "tenuto/entrypoints/hook.py SessionStart" in told.out and "mine" in told.out
    told = say("setup", "claude", "--json")
    assert (told.status, told.error["code"]) == (4, "not-confirmed"), "no terminal, no question, no change"
    assert mine.read_bytes() == MINE


def test_what_was_put_in_is_taken_out(say: Say, mine: Path) -> None:
    told = say("setup", "claude", "--yes", "--json").data
    assert [file["change"] for file in told["files"]] == ["change"]
    assert told["written"] is True
    done = mine.read_bytes()
    assert b"\t\t\t{" in done, "indented as the file is"
    assert mine.stat().st_mode & 0o777 == 0o600
    assert say("setup", "claude", "--yes", "--json").data["files"][0]["change"] == "none"
    assert mine.read_bytes() == done
    say("setup", "claude", "--undo", "--yes")
    assert mine.read_bytes() == MINE
    assert mine.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("scope", ["--user", "--project"])
@pytest.mark.parametrize("host", HOSTS)
def test_files_that_were_not_there_are_gone_again(
    host: str, scope: str, say: Say, home: Path, repository: Path
) -> None:
    """For every program; what is meant for one repository is in that repository, the rest in the home folder."""
    assert say("setup", host, scope, "--yes", "--mcp").status == 0
    made, empty = (home, repository) if scope == "--user" else (repository, home)
    assert below(made) and not below(empty)
    assert say("setup", host, scope, "--undo", "--yes").status == 0
    assert not below(made)


def test_a_program_may_keep_its_settings_elsewhere(say: Say, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.setenv(name, str(home / "elsewhere" / name))
    for host in ("claude", "codex", "copilot"):
        say("setup", host, "--yes", "--no-mcp")
    assert below(home / "elsewhere") == [
        "CLAUDE_CONFIG_DIR/settings.json",
        "CODEX_HOME/hooks.json",
        "COPILOT_HOME/hooks/tenuto.json",
    ]


def test_codex_waits_for_the_server_as_long_as_it_may_take(say: Say, home: Path) -> None:
    """Its own ten seconds are less than the SDK needs on a busy machine."""
    say("setup", "codex", "--yes", "--mcp")
    told = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["tenuto"]
    assert told["startup_timeout_sec"] >= 30 and told["args"][-1] == "mcp"


def test_a_link_stays_a_link(say: Say, mine: Path, home: Path) -> None:
    """People keep such files in a repository of their own."""
    kept = home / "dotfiles.json"
    mine.rename(kept)
    mine.symlink_to(kept)
    say("setup", "claude", "--yes")
    assert mine.is_symlink() and b"# tenuto setup" in kept.read_bytes()


@pytest.mark.parametrize("body", [b"{", b"", b"[]", b'{"hooks": 1}', b'{"a": "\xff"}', b"{} // note"])
def test_a_file_that_is_not_understood_is_left_alone(body: bytes, say: Say, mine: Path) -> None:
    mine.write_bytes(body)
    for words in (("--yes",), ("--undo", "--yes")):
        told = say("setup", "claude", *words, "--json")
        if told.status:
            assert str(mine) in told.error["message"] and told.error["hint"]
        assert mine.read_bytes() == body
    assert say("setup", "claude", "--yes").status == 2


def test_an_agent_does_not_change_what_watches_it(say: Say, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    told = say("setup", "claude", "--undo", "--yes", "--json")
    assert told.status == 0, "nothing to undo, nothing to forbid"
    told = say("setup", "claude", "--yes", "--json")
    assert (told.status, told.error["code"]) == (4, "agent-decides")
    assert mine.read_bytes() == MINE


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_command_works_in_any_shell_and_forbids_nothing_when_tenuto_is_gone(
    shell: str, say: Say, home: Path
) -> None:
    """Python ends with 2 when a file is missing, which to a program that calls hooks means: forbid it."""
    say("setup", "claude", "--yes")
    command = json.loads((home / ".claude/settings.json").read_text())["hooks"]["SubagentStop"][0]["hooks"][0][
        "command"
    ]
    payload = b'{"agentName": "x", "completedPhase": "spec"}'
    ran = subprocess.run([shell, "-c", command], input=payload, capture_output=True, check=False)
    assert (ran.returncode, b"State file not found" in ran.stderr) == (0, True), "it was Tenuto that answered"
    gone = command.replace("entrypoints/hook.py", "entrypoints/gone.py")
    ran = subprocess.run([shell, "-c", gone], input=payload, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
