"""Whoever works in an attempt does its work: it begins no run of the repository, takes no work of another, reports
for nobody."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.conftest import reopen

Say = Callable[..., Any]
ONE = "name: one\ndocuments: docs/{slug}\nsteps:\n  - {id: write, agent: {role: designer, out: design.md}}\n"
AGENT = """\
import json, os, subprocess, sys
said = []
for words in json.load(open(sys.argv[1])):
    done = subprocess.run([sys.executable, "-m", "tenuto", *words, "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    said.append((json.loads(done.stdout).get("error") or {}).get("code", ""))
json.dump(said, open(sys.argv[2], "w"))
for path in os.environ["TENUTO_OUTPUTS"].splitlines():
    open(path, "w").write("x")
print("DONE: wrote it")
"""  # noqa: E501


@pytest.fixture
def told(repository: Path, tmp_path: Path, say: Say) -> Callable[..., list[str]]:
    """What an agent is told that types these commands."""
    (repository / ".tenuto/pipelines/one.yaml").write_text(ONE)
    (tmp_path / "agent.py").write_text(AGENT)
    words, said = tmp_path / "words", tmp_path / "said"

    def ask(*commands: tuple[str, ...]) -> list[str]:
        words.write_text(json.dumps(commands))
        done = say(
            "run",
            "Add it",
            "--pipeline",
            "one",
            "--name",
            "mine",
            "--agent",
            f"command:{sys.executable} {tmp_path}/agent.py {words} {said}",
        )
        assert done.status == 0, done.err
        found: list[str] = json.loads(said.read_text())
        return found

    return ask


def test_an_agent_leads_no_run(told: Callable[..., list[str]], repository: Path, say: Say) -> None:
    say("run", "Lead it", "--pipeline", "one", "--name", "guided", "--start-only")
    [work] = say("next", "guided", "--json").data["work"]
    commands = [
        ("run", "Another one", "--pipeline", "one", "--start-only"),
        ("run", "Another one", "--pipeline", "one", "--agent", "command:true"),
        ("run", "--run", "mine"),
        ("next", "guided"),
        ("report", "guided", work["attempt"], "--verdict", "ERROR", "--summary", "by somebody else"),
    ]
    assert told(*commands) == ["agent-leads"] * len(commands)
    assert [run["id"] for run in say("list", "--json").data["runs"]] == ["mine", "guided"]
    assert reopen(repository).load("guided")["attempts"][work["attempt"]]["status"] in ("dispatched", "running")


def test_it_may_look(told: Callable[..., list[str]]) -> None:
    assert told(("status", "mine"), ("list",), ("history", "mine")) == ["", "", ""]


def test_elsewhere_it_may_do_as_it_likes(told: Callable[..., list[str]], tmp_path: Path) -> None:
    """A project whose tests start runs, in folders of their own, is worked on like any other."""
    other = tmp_path / "other"
    (other / ".tenuto/pipelines").mkdir(parents=True)
    (other / ".tenuto/pipelines/one.yaml").write_text(ONE)
    assert told(
        ("-C", str(other), "run", "There", "--pipeline", "one", "--start-only"), ("-C", str(other), "next")
    ) == ["", ""]


def test_its_mcp_server_shows_it_what_looks_and_tells_it_no_loop(repository: Path, tmp_path: Path, say: Say) -> None:
    """Codex, Claude Code and others start the server that their user has installed, inside an attempt as well."""
    (repository / ".tenuto/pipelines/one.yaml").write_text(ONE)
    looks = f"""\
import json, os, tenuto
from tenuto.entrypoints.mcp.calls import Desk
from tenuto.errors import TenutoError
desk = Desk(tenuto.open("."))
try:
    desk.call("start", {{"request": "Another one"}})
except TenutoError as error:
    code = error.code
json.dump([[tool.name for tool in desk.tools], desk.instructions, code], open({str(tmp_path / "seen")!r}, "w"))
for path in os.environ["TENUTO_OUTPUTS"].splitlines():
    open(path, "w").write("x")
print("DONE: looked")
"""
    (tmp_path / "looks.py").write_text(looks)
    assert (
        say(
            "run",
            "Add it",
            "--pipeline",
            "one",
            "--name",
            "mine",
            "--agent",
            f"command:{sys.executable} {tmp_path}/looks.py",
        ).status
        == 0
    )
    names, instructions, code = json.loads((tmp_path / "seen").read_text())
    assert names == ["status", "query", "retrieve", "list", "metrics"] and code == "no-such-tool"
    assert "somebody else leads" in instructions and "next" not in instructions
