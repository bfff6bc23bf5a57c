"""What `tenuto setup` writes is what the real programs read: their hooks reach the journal, and a declared boundary
holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tenuto
from tests.acceptance.rehearsing import repository
from tests.real.conftest import ROOT, Lab


class Host(NamedTuple):
    words: tuple[str, ...]
    write: Callable[[str], dict[str, Any]]
    """The tool call that makes a file."""


def patched(path: str) -> dict[str, Any]:
    return {"tool": "apply_patch", "raw": f"*** Begin Patch\n*** Add File: {path}\n+hi\n*** End Patch\n"}


HOSTS = {
    "claude": Host(
        ("-p", "--permission-mode", "bypassPermissions", "--output-format", "json"),
        lambda path: {"tool": "Write", "input": {"file_path": path, "content": "hi\n"}},
    ),
    "codex": Host(
        (
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            "--dangerously-bypass-hook-trust",
        ),
        patched,
    ),
    "copilot": Host(
        ("--allow-all-tools", "--disable-builtin-mcps", "--trust-folder", "-p"),
        lambda path: {"tool": "create", "input": {"path": path, "file_text": "hi\n"}},
    ),
    "gemini": Host(
        ("-o", "json", "--yolo", "--skip-trust", "-p"),
        lambda path: {"tool": "write_file", "input": {"file_path": path, "content": "hi\n"}},
    ),
}


def below(folder: Path) -> dict[str, bytes]:
    kept = ("settings.json", "hooks.json", "config.toml", "tenuto.json", "mcp-config.json")
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.name in kept}


@pytest.mark.parametrize("name", HOSTS)
def test_its_hooks_are_called_and_its_edits_kept_inside(
    name: str, tmp_path: Path, lab: Lab, program: Callable[[str], str]
) -> None:
    found, host = program(name), HOSTS[name]
    root = repository(tmp_path)
    inside, outside = root / "src" / "a.txt", root / "b.txt"
    inside.parent.mkdir()
    model = lab.model({"write": [[host.write(str(outside))], [host.write(str(inside))], ["DONE: written"]]})
    around = lab.environment(name) | {"PYTHONPATH": str(ROOT)}
    workspace = tenuto.open(str(root))
    workspace.feature_state.start("OAuth login", "Let people sign in")
    before = below(lab.home)

    def say(*words: str) -> None:
        subprocess.run([sys.executable, "-m", "tenuto", *words], cwd=root, env=around, check=True, capture_output=True)

    say("hook", "declare", "files=src/**")
    say("setup", name, "--yes", "--mcp")
    done = subprocess.run(
        [found, *host.words, "go [[script:write]]"],
        cwd=root,
        env=around,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=280,
        check=False,
    )
    told = model.wait_for("write", 1)
    assert "outside what" in json.dumps(told.body), (done.stdout[-2000:], done.stderr[-2000:])
    assert (inside.exists(), outside.exists()) == (True, False)
    assert [found["path"] for found in workspace.load("oauth-login")["artifacts"].values()] == ["src/a.txt"]
    if name == "gemini":
        assert any("tenuto" in json.dumps(request.body.get("tools", "")) for request in model.requests), (
            "its MCP server"
        )
    elif name != "claude":  # which keeps a user's servers where only itself writes
        listed = subprocess.run(
            [found, "mcp", "list"], cwd=root, env=around, capture_output=True, text=True, timeout=280, check=True
        )
        assert "tenuto" in listed.stdout + listed.stderr
    say("setup", name, "--undo", "--yes")
    after = below(lab.home)
    assert {path: text for path, text in after.items() if b"tenuto setup" in text or b"TENUTO_SETUP" in text} == {}
    assert {path for path in before if path not in after} == set()
