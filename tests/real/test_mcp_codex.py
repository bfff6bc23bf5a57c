"""Another vendor's program as a client: real Codex leads a run with the server's tools, and reads its artifacts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenuto
from tests.acceptance.rehearsing import repository
from tests.real.conftest import Lab

ROOT = Path(__file__).resolve().parents[2]


PIPELINE = """\
name: small
documents: docs/{slug}
steps:
  - id: look
    agent: {role: researcher, out: a.md}
  - id: agree
    gate: {prompt: "Go on with this?", show: [a.md]}
  - id: write
    agent: {role: designer, in: [a.md], out: design.md}
"""
LOOK = "look-1-researcher-1"


def ask(root: Path, lab: Lab, codex: str, text: str) -> None:
    settings = [
        f'command="{sys.executable}"',
        'args=["-m", "tenuto", "mcp"]',
        f'env={{PYTHONPATH="{ROOT}"}}',
        "startup_timeout_sec=60",
        "required=true",
    ]
    words = [word for one in settings for word in ("-c", f"mcp_servers.tenuto.{one}")]
    command = [codex, "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", *words, text]
    subprocess.run(
        command,
        cwd=root,
        env=lab.environment("codex"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=280,
        check=True,
    )


def tool(name: str, /, **given: Any) -> dict[str, Any]:
    return {"tool": name, "namespace": "mcp__tenuto", "input": given}


def test_codex_leads_a_run_up_to_its_gate_and_no_further(
    tmp_path: Path, lab: Lab, program: Callable[[str], str]
) -> None:
    """start, next, the work, report, next: and at the gate neither a tool nor a shell gets on."""
    root = repository(tmp_path)
    (root / ".tenuto/pipelines").mkdir(parents=True)
    (root / ".tenuto/pipelines/small.yaml").write_text(PIPELINE)
    turns = [
        [{"search": "tenuto start next report"}],  # Codex shows a server's tools to a model that looks for them
        [tool("start", request="Add dark mode", pipeline="small", name="r")],
        [tool("next", run="r")],
        [{"tool": "exec_command", "input": {"cmd": "mkdir -p docs/r && echo '# Found' > docs/r/a.md"}}],
        [tool("report", run="r", attempt=LOOK, verdict="DONE", summary="looked")],
        [tool("next", run="r")],
        [tool("approve", run="r", decision="approve")],
        [{"tool": "exec_command", "input": {"cmd": f"'{sys.executable}' -m tenuto approve r"}}],
        ["It waits for you."],
    ]
    model = lab.model({"lead": turns})
    ask(root, lab, program("codex"), "Lead the run. [[script:lead]]")
    said = model.wait_for("lead", len(turns) - 1).asked.results
    assert LOOK in said[2] and "docs/r/a.md" in said[2], said
    assert "DONE" in said[4] and "a person" in said[5], said
    assert "agent-decides" in said[7], said
    run = tenuto.open(str(root)).load("r")
    assert run["status"] == "waiting_gate" and run["driver"] == "guided" and not run["decisions"]
    assert run["attempts"][LOOK]["verdict"] == "DONE"


def test_codex_lists_and_reads_artifacts(tmp_path: Path, lab: Lab, program: Callable[[str], str]) -> None:
    root = repository(tmp_path)
    context = tenuto.open(str(root)).context
    context.init("Dark mode")
    context.store("architect", "# Design\n\nMidnight chartreuse.\n")
    turns = [
        [{"tool": "list_mcp_resources", "input": {"server": "tenuto"}}],
        [{"tool": "read_mcp_resource", "input": {"server": "tenuto", "uri": "tenuto://dark-mode/architect"}}],
        ["DONE: read"],
    ]
    model = lab.model({"read": turns})
    ask(root, lab, program("codex"), "Read it. [[script:read]]")
    listed, read = model.wait_for("read", 2).asked.results
    assert "tenuto://dark-mode/architect" in listed and "Midnight chartreuse" in read
