"""The plugin in the real Claude Code: validated by it, installed by it from this repository, and at work in its
sessions.

The model is a script; validation, marketplace, commands, agents, hooks, the MCP server and the terminal are the real
ones.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tests.acceptance.rehearsing import repository
from tests.real.conftest import ROOT, Lab
from tests.real.model import Asked
from tests.support.terminal import start_at_terminal

PIPELINE = """\
name: small
documents: docs/{slug}
cap: 2
steps:
  - id: agree
    gate: {prompt: "Begin?"}
  - id: look
    agent: {role: researcher, mode: focused, focus: architecture, out: a.md}
"""
COMMANDS = ("run", "poc", "graduate", "resume", "status", "approve", "revise", "reject")
TOOL = "mcp__plugin_tenuto_tenuto__"
_PATIENCE = 280


class Claude:
    """Claude Code with the plugin."""

    def __init__(self, folder: Path, lab: Lab, program: str) -> None:
        self.root = repository(folder)
        (self.root / ".tenuto" / "pipelines").mkdir(parents=True)
        (self.root / ".tenuto" / "pipelines" / "small.yaml").write_text(PIPELINE)
        self.lab, self.program = lab, program
        self.loaded: tuple[str, ...] = ("--plugin-dir", str(ROOT / "plugin"))
        self.workspace = tenuto.open(str(self.root))

    def call(self, *words: str, **around: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *words],
            cwd=self.root,
            env=self.lab.environment("claude") | around,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=280,
            check=False,
        )

    def install(self) -> None:
        """From the marketplace that the repository is; otherwise its folder is named in every call, which is
        quicker."""
        self.loaded = ()
        for words in (("marketplace", "add", str(ROOT)), ("install", "tenuto@tenuto")):
            done = self.call("plugin", *words)
            assert done.returncode == 0, done.stdout + done.stderr

    def say(self, text: str, **around: str) -> list[Any]:
        """One call of the program, to its end; everything that it told."""
        done = self.call(
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
            *self.loaded,
            text,
            **around,
        )
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert any(one["type"] == "result" for one in told), (done.stdout[-3000:], done.stderr[-3000:])
        return told

    def type(self, text: str, shown: str) -> str:
        """Into the program at a terminal, as a person does; until `shown`, one word, is on the screen."""
        around = self.lab.environment("claude") | {"TERM": "xterm-256color"}
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        settings = Path(around["CLAUDE_CONFIG_DIR"]) / ".claude.json"
        told = json.loads(settings.read_text()) if settings.exists() else {}
        told |= {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(self.root): known}}
        told |= {"customApiKeyResponses": {"approved": [around["ANTHROPIC_API_KEY"][-20:]], "rejected": []}}
        settings.write_text(json.dumps(told))
        started, terminal = start_at_terminal([self.program, *self.loaded, text], self.root, around)
        try:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
            return _screen(terminal, shown)
        finally:
            started.kill()
            started.wait()
            os.close(terminal)

    def start(self) -> None:
        for words in (("run", "Look at it", "--name", "r", "--pipeline", "small", "--start-only"), ("next", "r")):
            subprocess.run([sys.executable, "-m", "tenuto", *words], cwd=self.root, check=False, capture_output=True)
        assert self.workspace.load("r")["gate"] is not None

    def decisions(self) -> list[Any]:
        with self.workspace.journal.read() as reader:
            return [event for event in reader.events("r") if event["type"] == "GateDecided"]


def _screen(terminal: int, shown: str) -> str:
    seen, end = b"", time.monotonic() + _PATIENCE
    ready = select.poll()  # select() knows no file above number 1023
    ready.register(terminal, select.POLLIN)
    while time.monotonic() < end:
        if ready.poll(200):
            try:
                seen += os.read(terminal, 1 << 16)
            except OSError:
                break
        if shown.encode() in seen:
            return seen.decode("utf-8", "replace")
    raise AssertionError(f"{shown!r} was never shown: {seen[-3000:]!r}")


@pytest.fixture
def claude(tmp_path: Path, lab: Lab, program: Callable[[str], str]) -> Claude:
    return Claude(tmp_path, lab, program("claude"))


def bash(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command, "description": "in a shell"}}


def test_it_is_valid_installed_and_all_there(claude: Claude, lab: Lab) -> None:
    """By the program's own validation, from the marketplace that this repository is; and an agent's work is in the
    journal."""
    lab.model(
        {
            "delegate": [
                [
                    {
                        "tool": "Agent",
                        "input": {
                            "description": "specify",
                            "subagent_type": "tenuto:spec-writer",
                            "prompt": "Specify it [[script:work]]",
                            "run_in_background": False,
                        },
                    }
                ],
                ["DONE: delegated"],
            ],
            "work": [["It is specified.\n\nDONE: specified"]],
        }
    )
    for path in (ROOT / "plugin", ROOT):
        done = claude.call("plugin", "validate", "--strict", str(path))
        assert done.returncode == 0, done.stdout + done.stderr
    claude.install()
    [listed] = json.loads(claude.call("plugin", "list", "--json").stdout)
    assert (listed["id"], listed["version"], listed["enabled"]) == ("tenuto@tenuto", tenuto.__version__, True)
    assert not listed.get("errors")

    claude.workspace.feature_state.start("OAuth login", "Let people sign in")
    told = claude.say("go [[script:delegate]]")
    begun = next(one for one in told if one["type"] == "system" and one["subtype"] == "init")
    assert {f"tenuto:{name}" for name in COMMANDS} <= set(begun["slash_commands"])
    assert {"tenuto:planner", "tenuto:spec-writer"} <= set(begun["agents"])
    assert "tenuto:lead-a-run" in begun["skills"]
    assert {server["name"]: server["status"] for server in begun["mcp_servers"]}["plugin:tenuto:tenuto"] in (
        "connected",
        "pending",
    )
    assert not begun.get("plugin_errors")

    run = claude.workspace.load("oauth-login")
    [attempt] = run["attempts"].values()
    assert (attempt["role"], attempt["status"], attempt["verdict"], attempt["summary"]) == (
        "spec-writer",
        "completed",
        "DONE",
        "specified",
    )
    assert json.loads((claude.root / ".feature-state.json").read_text())["phases"]["spec"] == "completed"


def test_a_command_leads_a_run_through_the_plugins_server(claude: Claude, lab: Lab) -> None:
    """`/tenuto:run` reaches the model with the request and the skill's name; the server's tools are the plugin's."""

    def lead(asked: Asked) -> Any:
        if asked.turn == 0:
            return [{"tool": TOOL + "start", "input": {"request": "Look at it", "name": "r", "pipeline": "small"}}]
        return [{"tool": TOOL + "next", "input": {"run": "r"}}] if asked.turn == 1 else ["It waits for you."]

    model = lab.model({"lead": lead})
    claude.say("/tenuto:run Look at it --pipeline small [[script:lead]]")
    asked = model.wait_for("lead", 0)
    assert "tenuto:lead-a-run" in asked.asked.text and "Look at it --pipeline small" in asked.asked.text
    gate = claude.workspace.load("r")["gate"]
    assert gate is not None and gate["name"] == "agree", "and there it waits for a person"


def test_a_gate_opens_for_a_person_at_the_terminal_and_for_no_model(claude: Claude, lab: Lab) -> None:
    """The model calls the command as a skill, runs the program, plays the hook, starts a session of its own; then a
    person types it."""
    plays = json.dumps({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "/tenuto:approve r"})
    ways = [
        {"tool": "Skill", "input": {"skill": "tenuto:approve", "args": "r"}},
        bash("tenuto approve r"),
        bash(f"echo '{plays}' | tenuto hook UserPromptSubmit"),
        bash(shlex.join([claude.program, *claude.loaded, "-p", "/tenuto:approve r [[script:nested]]"])),
    ]
    model = lab.model({"try": [*([way] for way in ways), ["DONE: tried"]], "nested": [["I cannot."]]})
    claude.start()
    claude.say("open it [[script:try]]")
    last = model.wait_for("try", len(ways))
    skill, shell, hook, nested = last.asked.results[-len(ways) :]
    assert "disable-model-invocation" in skill
    assert "only a person can" in shell
    assert "recorded" not in hook
    assert "I cannot." in nested
    assert "terminal of their own" in model.wait_for("nested").asked.text
    assert claude.decisions() == []

    before = len(model.requests)
    claude.type("/tenuto:approve", "recorded")
    [decided] = claude.decisions()
    assert decided["decision"] == "approve"
    assert len(model.requests) == before, "no model was asked"


def test_a_session_goes_on_where_the_program_is_missing(claude: Claude, lab: Lab) -> None:
    """Every hook runs into nothing: the user is told once, and no tool is in anybody's way."""
    lab.model(
        {
            "write": [
                [{"tool": "Write", "input": {"file_path": str(claude.root / "a.txt"), "content": "hi"}}],
                ["DONE: written"],
            ]
        }
    )
    told = claude.say("go [[script:write]]", PATH=f"{Path(claude.program).parent}:/usr/bin:/bin")
    assert next(one for one in told if one["type"] == "result")["is_error"] is False
    assert (claude.root / "a.txt").read_text() == "hi"
    hooks = [one for one in told if one.get("subtype") == "hook_response"]
    assert all(one.get("exit_code", 0) == 0 for one in hooks)


def test_copilot_loads_the_same_plugin(tmp_path: Path, lab: Lab, program: Callable[[str], str]) -> None:
    """Installed from the same marketplace: its agents are the roles, its hooks reach the journal, its server is
    there."""
    copilot, root = program("copilot"), repository(tmp_path)
    called = {
        "description": "specify",
        "name": "spec",
        "agent_type": "tenuto:spec-writer",
        "prompt": "Specify it [[script:work]]",
        "mode": "sync",
    }
    model = lab.model(
        {"delegate": [[{"tool": "task", "input": called}], ["DONE: delegated"]], "work": [["Done.\n\nDONE: specified"]]}
    )
    workspace = tenuto.open(str(root))
    workspace.feature_state.start("OAuth login", "Let people sign in")
    go = ("-p", "go [[script:delegate]]", "--allow-all-tools", "--disable-builtin-mcps", "--trust-folder")
    for words in (("plugin", "marketplace", "add", str(ROOT)), ("plugin", "install", "tenuto@tenuto"), go):
        done = subprocess.run(
            [copilot, *words],
            cwd=root,
            env=lab.environment("copilot"),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    [attempt] = workspace.load("oauth-login")["attempts"].values()
    assert (attempt["role"], attempt["agent"], attempt["verdict"], attempt["summary"]) == (
        "spec-writer",
        "copilot",
        "DONE",
        "specified",
    )
    assert any("tenuto-next" in request.asked.tools for request in model.requests)
