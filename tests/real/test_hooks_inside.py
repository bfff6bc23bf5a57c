"""The user's own hooks and plugin inside a Claude Code that the engine started: they are called there, and leave
every run alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenuto
from tests.real.conftest import ROOT, Lab
from tests.real.model import Asked
from tests.real.stage import Stage
from tests.real.subjects import GOES_ON, ClaudeSubject

FIRST, SECOND = "work-1-worker-1", "work-1-worker-2"


def test_an_attempt_with_helpers_killed_and_resumed_is_recorded_once_and_touches_no_other_run(
    lab: Lab, tmp_path: Path, program: Callable[[str], str]
) -> None:
    """It calls an agent, writes files, is killed and resumed: what a person's own session saved is still there for
    them."""
    claude = ClaudeSubject(lab, tmp_path, program)
    helper = {
        "tool": "Agent",
        "input": {
            "description": "help",
            "subagent_type": "general-purpose",
            "prompt": "help [[script:help]]",
            "run_in_background": False,
        },
    }

    def work(asked: Asked) -> Any:
        if GOES_ON in asked.latest:
            return ["DONE: went on"] if claude.work.joinpath("out.md").exists() else [claude.write("out.md", "x\n")]
        return {"until": claude.go, "say": ["DONE: late"]} if asked.results else [helper]

    model = claude.model = lab.model({"work": work, "help": [["It is specified.\n\nDONE: helped"]]})
    stage = Stage(
        tmp_path, claude.environment("done") | {"PYTHONPATH": str(ROOT)}, role="agent: claude:tools=default\n"
    )
    workspace = tenuto.open(str(stage.root))
    workspace.feature_state.start("OAuth login", "Let people sign in", session="a-person")
    for words, payload in (
        (("setup", "claude", "--yes", "--no-mcp"), None),
        (("hook", "declare", "stop=block", "verdicts=on"), None),
        (
            ("hook", "PreCompact"),
            {"session_id": "a-person", "hook_event_name": "PreCompact", "trigger": "auto", "cwd": str(stage.root)},
        ),
    ):
        told = json.dumps(payload) if payload else ""
        subprocess.run(
            [sys.executable, "-m", "tenuto", *words],
            cwd=stage.root,
            env=stage.environment,
            input=told,
            text=True,
            check=True,
            capture_output=True,
        )
    witness = tmp_path / "witness"
    _also(lab.home / ".claude/settings.json", f'echo "$TENUTO_ATTEMPT" >> {witness}')
    before = workspace.load("oauth-login")
    assert before["resume"] and before["resume"]["reason"] and not before["resume"].get("restored_at")

    with stage.begin("--agent", "claude") as engine:
        model.wait_until_asked(lambda one: one.asked.script == "work" and bool(one.asked.results))
        stage.kill(FIRST)
        found = engine.wait()
    assert found.status == "completed", found.out + found.err
    assert [one["status"] for one in found.attempts.values()] == ["lost", "completed"]
    assert found.attempts[SECOND]["summary"] == "went on" and not found.run["resume"] and not found.run["sessions"]
    assert set(witness.read_text().split()) == {f"task.{FIRST}.1", f"task.{SECOND}.1"}, "hooks were called in both"
    after = tenuto.open(str(stage.root)).load("oauth-login")
    assert after == before
    assert not [line for one in model.requests for line in [json.dumps(one.body)] if "oauth-login" in line], (
        "nor was anybody told of it"
    )


def test_the_plugin_inside_an_attempt_leads_nothing_and_records_nothing(
    lab: Lab, tmp_path: Path, program: Callable[[str], str]
) -> None:
    """Installed from the marketplace, as users have it: its hooks, its server and its agents are there, and the run
    is the engine's."""
    claude = ClaudeSubject(lab, tmp_path, program)
    tool = "mcp__plugin_tenuto_tenuto__"
    helper = {
        "description": "specify",
        "subagent_type": "tenuto:spec-writer",
        "prompt": "help [[script:help]]",
        "run_in_background": False,
    }
    turns = [
        [{"tool": tool + "start", "input": {"request": "Another run", "pipeline": "one"}}],
        [{"tool": tool + "next", "input": {"run": "led"}}],
        [
            {
                "tool": tool + "report",
                "input": {"run": "led", "attempt": FIRST, "verdict": "ERROR", "summary": "by somebody else"},
            }
        ],
        [{"tool": tool + "status", "input": {"run": "task"}}],
        [{"tool": "Agent", "input": helper}],
        [claude.write("out.md", "x\n")],
        ["DONE: wrote it"],
    ]
    model = claude.model = lab.model({"work": turns, "help": [["It is specified.\n\nDONE: helped"]]})
    stage = Stage(tmp_path, claude.environment("done"))
    for words in (("marketplace", "add", str(ROOT)), ("install", "tenuto@tenuto")):
        subprocess.run(
            [claude.find("claude"), "plugin", *words],
            cwd=stage.root,
            env=stage.environment,
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
    for told in (("run", "Led", "--name", "led", "--pipeline", "one", "--start-only"), ("next", "led")):
        assert stage.tenuto(*told).returncode == 0
    found = stage.run("--agent", "claude:permission-mode=bypassPermissions,tools=default")
    assert (found.only["verdict"], found.only["summary"]) == ("DONE", "wrote it"), found.out + found.err
    results = model.wait_for("work", len(turns) - 1).asked.results
    assert ["No such tool available" in said for said in results[:4]] == [True, True, True, False], results
    assert '"status":"running"' in results[3].replace(" ", ""), "it may look"
    assert "helped" in results[4], "the plugin's agents work for it"
    assert not found.run["sessions"] and not found.run["resume"]
    assert [run["id"] for run in json.loads(stage.tenuto("list", "--json").stdout)["data"]["runs"]] == ["task", "led"]
    assert [one["status"] for one in stage.load("led")["attempts"].values()] == ["dispatched"]


def _also(settings: Path, command: str) -> None:
    """One more hook, which shows that hooks are called at all."""
    told = json.loads(settings.read_text())
    for event in ("SessionStart", "SubagentStop"):
        told["hooks"][event].append({"hooks": [{"type": "command", "command": command}]})
    settings.write_text(json.dumps(told))
