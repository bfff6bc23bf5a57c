"""A git repository with a small pipeline whose items work in trees of their own, and agents that are shell commands."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.begin import Place, start
from tenuto.engine.loop import Engine

if TYPE_CHECKING:
    from tenuto.workspace.settings import Settings

PIPELINE = """
name: small
documents: docs/feature/{slug}
shown_as: feature_docs
memory: run
given: [initial-request.md, memory.md]
steps:
  - id: planning
    number: "1"
    agent: {role: planner, out: plan.md, memory: write}
    retry: {ERROR: 1}
    on: {ERROR: halt}
  - id: implementation
    number: "2"
    waves:
      plan: plan.md
      roles: [{role: implementer, in: plan.md}]
      default: implementer
      order: barrier
      on_item_error: skip-dependents
    retry: {ERROR: 0, NEEDS_REVISION: 1, LOST: 1}
    verdicts: [DONE, NEEDS_REVISION, ERROR]
    on: {NOT_DONE: halt}
"""
TWO = "## Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: none)\n"
OWN_TREES = Place("worktree")


class Ground:
    """A git repository with the small pipeline, and agents that are shell commands."""

    def __init__(self, folder: Path, pipeline: str = PIPELINE) -> None:
        self.root = folder / "repository"
        self.script = folder / "answers.yaml"
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        (self.root / ".tenuto" / "pipelines").mkdir(parents=True)
        (self.root / ".tenuto" / "pipelines" / "small.yaml").write_text(pipeline)
        (self.root / "shared.txt").write_text("one\ntwo\nthree\n")
        (self.root / ".gitignore").write_text(".env\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "begin")
        self.settings: Settings = {}

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=user", "-c", "user.email=user@localhost", *words],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def start(self, plan: str = TWO, place: Place = OWN_TREES, **agents: str) -> str:
        """`agents`: item (or planner) -> what it runs; the first word of the item's id names it."""
        run = start(tenuto.open(str(self.root)), "Add dark mode", "small", place=place)
        indented = "".join(f"        {line}\n" for line in plan.splitlines())
        lines = [
            "answers:",
            "  - for: {role: planner}",
            "    files:",
            f"      docs/feature/{run['id']}/plan.md: |",
            indented,
        ]
        for name, command in agents.items():
            item, _, visit = name.strip("_").partition("__")
            again = f", try: {visit}" if visit else ""
            lines += [f"  - for: {{role: implementer, item: '{item}*'{again}}}", f"    run: {command!r}"]
        self.script.write_text("\n".join(lines) + "\n")
        return str(run["id"])

    def drive(self, name: str) -> Any:
        return Engine(tenuto.open(str(self.root)), name, Roster(f"scripted:{self.script}"), self.settings).drive()


def merges(ground: Ground) -> list[str]:
    return [
        line.split(":")[0].removeprefix("Merge ")
        for line in ground.git("log", "--first-parent", "--merges", "--reverse", "--format=%s").splitlines()
    ]


def receipts(run: Any) -> dict[str, Any]:
    return {attempt["item"]: attempt["receipt"] for attempt in run["attempts"].values() if attempt["item"]}
