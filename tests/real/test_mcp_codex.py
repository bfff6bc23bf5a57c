"""Another vendor's program as a client: real Codex finds the server's resources and reads an artifact."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import tenuto
from tests.acceptance.rehearsing import repository
from tests.real.conftest import Lab

ROOT = Path(__file__).resolve().parents[2]


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
    settings = [f'command="{sys.executable}"', 'args=["-m", "tenuto", "mcp"]', f'env={{PYTHONPATH="{ROOT}"}}']
    words = [word for one in settings for word in ("-c", f"mcp_servers.tenuto.{one}")]
    command = [program("codex"), "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", *words, "Read it. [[script:read]]"]
    around = lab.environment("codex")
    subprocess.run(command, cwd=root, env=around, stdin=subprocess.DEVNULL, capture_output=True, timeout=90, check=True)
    listed, read = model.wait_for("read", 2).asked.results
    assert "tenuto://dark-mode/architect" in listed and "Midnight chartreuse" in read
