"""Real Claude Code leads a run through `tenuto mcp`, its hooks tell what its agents did, and no way leads around a
gate.

The model is a script; the program, its tools, its agents, its hooks and its compaction are the real ones.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.engine.gates import decide_gate
from tests.acceptance.rehearsing import repository
from tests.real.conftest import Lab
from tests.real.model import Asked

ROOT = Path(__file__).resolve().parents[2]
TENUTO = f"{shlex.quote(sys.executable)} -m tenuto"
PIPELINE = """\
name: small
documents: docs/{slug}
cap: 2
steps:
  - id: look
    cluster:
      members:
        - {role: researcher, mode: focused, focus: architecture, out: a.md}
        - {role: researcher, mode: focused, focus: impact, out: b.md}
      quorum: 1
  - id: agree
    gate: {prompt: "Go on with this?", show: [a.md, b.md]}
  - id: write
    agent: {role: designer, in: [a.md, b.md], out: design.md}
"""
EVENTS = ("SessionStart", "PreCompact", "SubagentStart", "SubagentStop", "Stop")
A, B, WRITE = "look-1-researcher-architecture-1", "look-1-researcher-impact-1", "write-1-designer-1"
SESSION = "11111111-2222-4333-8444-555555555555"
_COMPACTION = "create a detailed summary"


def named(text: str) -> str | None:
    if _COMPACTION in text.lower():
        return "compaction"
    found = re.findall(r"\[\[script:([\w.-]+)\]\]", text)
    return found[-1] if found else None


class Claude:
    def __init__(self, folder: Path, lab: Lab, program: str) -> None:
        self.root = repository(folder)
        (self.root / ".tenuto" / "pipelines").mkdir(parents=True)
        (self.root / ".tenuto" / "pipelines" / "small.yaml").write_text(PIPELINE)
        hook = shlex.join([sys.executable, "-I", "-S", str(ROOT / "tenuto/entrypoints/hook.py")])
        hooks = {event: [{"hooks": [{"type": "command", "command": f"{hook} {event}"}]}] for event in EVENTS}
        server = {"command": sys.executable, "args": ["-m", "tenuto", "mcp"], "env": {"PYTHONPATH": str(ROOT)}}
        self.words = [
            program,
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
            "--settings",
            json.dumps({"hooks": hooks}),
            "--mcp-config",
            json.dumps({"mcpServers": {"tenuto": server}}),
            "--strict-mcp-config",
        ]
        self.lab = lab

    def say(self, text: str, *words: str) -> str:
        """One call of the program, to its end; the last thing it said."""
        around = self.lab.environment("claude") | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*self.words, *words, text],
            cwd=self.root,
            env=around,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=280,
            check=False,
        )
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        results = [one["result"] for one in told if one["type"] == "result"]
        assert results, (done.stdout[-3000:], done.stderr[-3000:])
        return str(results[-1])

    @property
    def run(self) -> Any:
        return tenuto.open(str(self.root)).load("r")


@pytest.fixture
def claude(tmp_path: Path, lab: Lab, program: Callable[[str], str]) -> Claude:
    return Claude(tmp_path, lab, program("claude"))


def tool(name: str, /, **given: Any) -> dict[str, Any]:
    return {"tool": f"mcp__tenuto__{name}", "input": given}


def bash(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command, "description": "in a shell"}}


def last(asked: Asked) -> Any:
    """What the latest tool answered; where that was an error, no work, and the test sees it."""
    try:
        return json.loads(asked.results[-1])
    except ValueError:
        return {"work": [], "said": asked.results[-1]}


def delegate(work: Any) -> dict[str, Any]:
    """What a model does with a piece of work: an agent, given the prompt word for word."""
    given = {"description": work["role"], "subagent_type": "general-purpose", "run_in_background": False}
    return {"tool": "Agent", "input": {**given, "prompt": f"{work['prompt']}\n[[script:work]]"}}


def working(asked: Asked) -> Any:
    """An agent: it writes what its prompt names as output, and says so."""
    if asked.turn == 0:
        name = re.findall(r"docs/r/\w+\.md", asked.text)[-1]
        return [bash(f"mkdir -p docs/r && echo '# Found' > {name}")]
    return ["All done.\n\nDONE: wrote it"]


def test_a_run_is_led_and_no_surface_opens_its_gate(claude: Claude, lab: Lab) -> None:
    """MCP, the command line in every spelling, the settings, the journal's files: the model tries, and the run still
    waits."""
    ways = [
        tool("approve", run="r", decision="approve"),
        bash(f"{TENUTO} approve r"),
        bash(f"{TENUTO} revise r --feedback 'fine as it is'"),
        bash(f"echo 'answers: []' > answers.yaml; {TENUTO} run --no-input approve --agent scripted:answers.yaml"),
        bash(f"{TENUTO} release r"),
        bash(f"{TENUTO} run --run r --at write --start-only"),
        bash(f"{TENUTO} retry r write"),
        bash(f"{TENUTO} mcp --approve on && {TENUTO} approve r"),
        tool("approve", run="r", decision="approve"),
        tool("report", run="r", attempt=WRITE, verdict="DONE", summary="skipped ahead"),
        bash(f"echo yes | {TENUTO} report r {WRITE} --reply -"),
    ]

    def lead(asked: Asked) -> Any:
        match asked.turn:
            case 0:
                return [tool("start", request="Add dark mode", pipeline="small", name="r")]
            case 1:
                return [tool("next")]
            case 2:
                return [delegate(work) for work in last(asked)["work"]] or ["ERROR: no work"]
            case 3:
                return [
                    tool("report", run="r", attempt=A),
                    tool("report", run="r", attempt=B, verdict="DONE", summary="looked"),
                ]
            case 4:
                return [tool("next")]
            case 5:
                return ways
        return ["The run waits for you at the gate 'agree'."]

    model = lab.model({"lead": lead, "work": working}, choose=named)
    claude.say("Lead the run. [[script:lead]]", "--session-id", SESSION)
    run = claude.run
    assert run["status"] == "waiting_gate" and not run["decisions"] and run["driver"] == "guided"
    said = model.wait_for("lead", 6).asked.results
    refusals = said[-len(ways) :]
    unlisted = "No such tool available: mcp__tenuto__approve"
    codes = [unlisted, *["agent-decides"] * 7, unlisted, "no-such-attempt", "no-such-attempt"]
    assert [code in told for code, told in zip(codes, refusals, strict=True)] == [True] * len(ways), list(
        zip(codes, refusals, strict=True)
    )

    # Its agents were recorded in the attempts that were handed out, once each.
    assert list(run["attempts"]) == [A, B] and SESSION in run["sessions"]
    for attempt in run["attempts"].values():
        assert (
            attempt["verdict"] == "DONE"
            and attempt["extra"]["host"] == "claude"
            and attempt["extra"]["said"]["verdict"] == "DONE"
        )
    assert run["attempts"][A]["summary"] == "wrote it", "an empty report: what the agent itself said"


def test_a_compaction_in_the_middle_forgets_nothing(claude: Claude, lab: Lab) -> None:
    """The context is full while work is out: saved before, handed back after, and the run goes on to its end."""

    def lead(asked: Asked) -> Any:
        match asked.turn:
            case 0:
                return [tool("start", request="Add dark mode", pipeline="small", name="r")]
            case 1:
                return {"say": [tool("next")], "usage": {"input_tokens": 990_000, "output_tokens": 10}}
        return ["ERROR: the context was not compacted"]

    def after(asked: Asked) -> Any:
        match asked.turn:
            case 0:
                return [tool("next")]
            case 1:
                return [delegate(work) for work in last(asked)["work"]] or ["ERROR: no work"]
            case 2:
                return [tool("report", run="r", attempt=A), tool("report", run="r", attempt=B)]
            case 3:
                return [tool("next")]
        return ["The run waits for you."]

    def finish(asked: Asked) -> Any:
        match asked.turn:
            case 0:
                return [tool("next")]
            case 1:
                return [delegate(work) for work in last(asked)["work"]] or ["ERROR: no work"]
            case 2:
                return [tool("report", run="r", attempt=WRITE)]
            case 3:
                return [tool("next")]
        return ["All is done."]

    summary = "<analysis>I led a run.</analysis>\n<summary>I led a run. [[script:after]]</summary>"
    scripts = {"lead": lead, "work": working, "compaction": [[summary]], "after": after, "finish": finish}
    model = lab.model(scripts, choose=named)
    claude.say("Lead the run. [[script:lead]]", "--session-id", SESSION)
    told = json.dumps(next(one.body for one in model.requests if one.asked.script == "after"))
    assert all(f"- {name} (researcher): no agent is known to work on it" in told for name in (A, B))
    run = claude.run
    assert run["resume"]["restored_at"] and run["status"] == "waiting_gate" and list(run["attempts"]) == [A, B]

    decide_gate(tenuto.open(str(claude.root)), "r", "approve", "", {})
    assert claude.say("Go on. [[script:finish]]", "--resume", SESSION) == "All is done."
    run = claude.run
    assert run["status"] == "completed" and list(run["attempts"]) == [A, B, WRITE]
    assert [attempt["verdict"] for attempt in run["attempts"].values()] == ["DONE"] * 3
