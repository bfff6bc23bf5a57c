"""The plugin: in step with the program, and harmless where the program is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.hooks.parse import DISPATCH, EDIT, EVENTS
from tenuto.hooks.setup import EVENTS as SETTINGS
from tenuto.knowledge import plain_data
from tenuto.knowledge.roles import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugin"
COMMANDS = {"run", "poc", "graduate", "resume", "status", "approve", "revise", "reject"}
DECISIONS = {"approve", "revise", "reject"}


def front_matter(path: Path) -> dict[str, Any]:
    _, head, _ = path.read_text().split("---\n", 2)
    found = plain_data.read_yaml(head, str(path)).data
    assert isinstance(found, dict)
    return found


def test_agents_are_the_roles() -> None:
    """After a change of a role: plugin/write-agents"""
    made = subprocess.run(
        [sys.executable, PLUGIN / "write-agents", "--check"], capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stdout) == (0, ""), "run: plugin/write-agents"
    assert {path.stem for path in (PLUGIN / "agents").glob("*.md")} == {path.stem for path in SHIPPED.glob("*.md")}
    for path in (PLUGIN / "agents").glob("*.md"):
        told = front_matter(path)
        assert told["name"] == path.stem and told["description"] and told["tools"]


def test_one_version_everywhere() -> None:
    told = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())
    assert (
        told["version"]
        == tenuto.__version__
        == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    )
    [listed] = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())["plugins"]
    assert (listed["name"], (ROOT / listed["source"]).resolve()) == (told["name"], PLUGIN)


def test_hooks_are_those_of_setup_and_are_understood() -> None:
    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
    assert {event: groups[0].get("matcher") for event, groups in hooks.items()} == SETTINGS["claude"]
    assert set(hooks) <= set(EVENTS)
    for event, [group] in hooks.items():
        assert group["hooks"][0]["command"] == f'exec sh "${{CLAUDE_PLUGIN_ROOT}}/scripts/hook" {event}'


@pytest.mark.parametrize("host", SETTINGS)
def test_hooks_are_called_for_the_tools_that_matter_and_no_others(host: str) -> None:
    for event, matcher in SETTINGS[host].items():
        assert set((matcher or "").split("|")) - {""} <= {*DISPATCH, *EDIT}, event
        assert event in EVENTS


def test_a_model_can_neither_call_a_decision_nor_is_it_let() -> None:
    """Commands for decisions are the user's only, and no command permits one to the model."""
    found = {path.stem: front_matter(path) for path in (PLUGIN / "commands").glob("*.md")}
    assert set(found) == COMMANDS
    for name, told in found.items():
        assert told["description"] and (told.get("disable-model-invocation") is True) == (name in DECISIONS)
        permitted = [word.strip() for word in str(told.get("allowed-tools", "")).split(",") if word.strip()]
        assert all(
            word.startswith("Bash(tenuto ") and word.split()[1].split(":")[0] not in DECISIONS for word in permitted
        )
        assert not (name in DECISIONS and permitted)
        # `tenuto run --agent command:...` starts any program: unasked, a model may only have a run recorded.
        assert [word for word in permitted if word.startswith("Bash(tenuto run")] in (
            [],
            ["Bash(tenuto run --start-only:*)"],
        )


def call(script: str, *words: str, path: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": str(home)}
    return subprocess.run(
        ["/bin/sh", str(PLUGIN / "scripts" / script), *words],
        input="{}",
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def program(folder: Path, first_line: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tenuto"
    path.write_text(f"#!{first_line}\nimport sys\nprint('program', *sys.argv[1:])\n")
    path.chmod(0o755)
    return path


def test_without_the_program_everything_passes(tmp_path: Path) -> None:
    """It says so once, when a session begins; after that not a word, and never a status that forbids."""
    nowhere = str(tmp_path / "bin")
    said = call("hook", "SessionStart", path=nowhere, home=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert "not installed" in json.loads(said.stdout)["systemMessage"]
    for event in ("PreToolUse", "Stop"):
        said = call("hook", event, path=nowhere, home=tmp_path)
        assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    assert call("mcp", path=nowhere, home=tmp_path).returncode == 1


@pytest.mark.parametrize("line", ["/nowhere/bin/python", "", "relative/python"])
def test_a_broken_installation_is_no_installation(line: str, tmp_path: Path) -> None:
    program(tmp_path / "bin", line)
    said = call("hook", "PreToolUse", path=str(tmp_path / "bin"), home=tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


def test_the_program_is_found_and_the_fast_way_is_taken(tmp_path: Path) -> None:
    """A virtual environment has the fast file where the script expects it; else the program itself is asked."""
    python = tmp_path / "venv/bin/python3"
    program(tmp_path / "venv/bin", str(python))
    python.symlink_to(sys.executable)
    said = call("hook", "Stop", path=f"{tmp_path}/venv/bin", home=tmp_path)
    assert said.stdout == "program hook Stop\n"
    fast = tmp_path / "venv/lib/python3.99/site-packages/tenuto/entrypoints/hook.py"
    fast.parent.mkdir(parents=True)
    fast.write_text("import sys\nprint('fast', *sys.argv[1:], sys.flags.isolated, sys.flags.no_site)\n")
    assert call("hook", "Stop", path=f"{tmp_path}/venv/bin", home=tmp_path).stdout == "fast Stop 1 1\n"
    (tmp_path / ".local/bin").mkdir(parents=True)
    (tmp_path / ".local/bin/tenuto").symlink_to(tmp_path / "venv/bin/tenuto")
    assert call("hook", "Stop", path=os.defpath, home=tmp_path).stdout == "fast Stop 1 1\n", (
        "off the PATH, as pipx puts it"
    )


def test_a_first_line_that_is_a_detour_is_left_to_the_program(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "/bin/sh")
    path.write_text('#!/bin/sh\necho program "$@"\n')
    assert call("hook", "Stop", path=f"{tmp_path}/bin", home=tmp_path).stdout == "program hook Stop\n"
    path.write_text('#!/usr/bin/env sh\necho program "$@"\n')
    assert call("hook", "Stop", path=f"{tmp_path}/bin:{os.defpath}", home=tmp_path).stdout == "program hook Stop\n"
