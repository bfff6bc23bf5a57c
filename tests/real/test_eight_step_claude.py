"""The eight steps with the real Claude Code: every file is written by its own Write tool, a person approves, the run
finishes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenuto
from tests.real.conftest import Lab
from tests.real.model import Asked

PLAN = "# Plan\n\n## Wave 1\n- 01-switch (depends_on: none)\n- 02-colours (depends_on: none)\n"
TASK = "---\nid: {id}\nfiles: [{file}]\n---\n# {id}\n\nWrite {file}.\n"
TASKS = {"01-switch": "src/switch.py", "02-colours": "src/colours.py"}


def wanted(prompt: str, documents: str) -> dict[str, str]:
    """The files that this attempt is told to write, with what the scripted model puts into them."""
    listed = prompt.partition("Write exactly these files:\n")[2].partition("\n\n")[0]
    paths = [line.removeprefix("- ") for line in listed.splitlines() if line != "- (none)"]
    files = {path: f"# {Path(path).stem}\n\nAll is well.\n" for path in paths if "*" not in path}
    if f"{documents}/plan.md" in files:
        files[f"{documents}/plan.md"] = PLAN
        files |= {f"{documents}/tasks/{name}.md": TASK.format(id=name, file=file) for name, file in TASKS.items()}
    item = re.search(r'<data name="item" mark="\w+">\n(\S+):', prompt)
    if item:
        files[TASKS[item.group(1)]] = "ON = True\n"
    return files


class Play:
    def __init__(self, lab: Lab, folder: Path) -> None:
        self.root = folder / "repository"
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        (self.root / "README.md").write_text("hello\n")
        subprocess.run(["git", "-C", str(self.root), "add", "."], check=True)
        subprocess.run(["git", "-C", str(self.root), "commit", "-q", "-m", "begin"], check=True)
        self.model = lab.model({"work": self.answer}, choose=lambda text: "work" if "# This attempt" in text else None)
        self.environment = lab.environment("claude")

    def answer(self, asked: Asked) -> list[Any]:
        if asked.results:
            assert "denied" not in asked.results[-1] and "error" not in asked.results[-1].lower(), asked.results
            return ["All of it is written.\n\nDONE: did its part"]
        files = wanted(asked.text, "docs/feature/dark-mode")
        calls = [
            {"tool": "Write", "input": {"file_path": str(self.root / name), "content": text}}
            for name, text in files.items()
        ]
        return calls or ["DONE: nothing to write"]

    def tenuto(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tenuto", *words]
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )


def test_from_request_to_review_with_a_gate_on_the_way(lab: Lab, tmp_path: Path, program: Callable[[str], str]) -> None:
    program("claude")
    play = Play(lab, tmp_path)
    begun = play.tenuto(
        "run", "Add dark mode", "--name", "dark-mode", "--agent", "claude", "--approval", "--limit", "money=5"
    )
    assert begun.returncode == 5, begun.stdout + begun.stderr
    workspace = tenuto.open(str(play.root))
    gates = 0
    while workspace.load("dark-mode")["status"] == "waiting_gate":
        gates += 1
        assert play.tenuto("approve", "dark-mode").returncode == 0
        went_on = play.tenuto("run", "--agent", "claude")
        assert went_on.returncode in (0, 5), went_on.stdout + went_on.stderr
    run = workspace.load("dark-mode")
    assert (run["status"], gates) == ("completed", 2), (run["failure"], run["pause"])
    for name in ("analysis.md", "feature.md", "design.md", "plan.md", "verifier.md", "review.md"):
        assert (play.root / "docs/feature/dark-mode" / name).stat().st_size, name
    assert all((play.root / file).read_text() == "ON = True\n" for file in TASKS.values())
    made = list(run["attempts"].values())
    assert {one["verdict"] for one in made} == {"DONE"} and {one["agent"] for one in made} == {"claude"}
    assert all(one["usage"]["tokens"] == 240 and one["usage"]["micro_usd"] for one in made if one["receipt"]["touched"])
    assert run["budget"]["spent"]["micro_usd"] == sum(one["usage"]["micro_usd"] for one in made)
    assert len(made) == len({session(one) for one in play.model.requests}), "each attempt is a session of its own"


def session(request: Any) -> str:
    """Claude Code names its session in every request."""
    found = re.search(
        r"session_[0-9a-f-]{36}|\"session_id\\*\":\s*\\*\"[0-9a-f-]{36}", str(request.body.get("metadata"))
    )
    assert found is not None, request.body
    return found.group()
