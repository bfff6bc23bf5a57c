"""Runs of whole pipelines with scripted agents, in one new repository, and every projected file held against its seed.

    stage = Stage(folder, ANSWERS)
    run = stage.play("Add dark mode", "orchestrate")      to the end; gates are approved
    stage.seen                                            what each state file showed on the way, oldest first

After every turn of the engine each file of the run is read and validated: a file that is wrong for a moment is wrong.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.begin import engage, start
from tenuto.engine.rest import drive_until_rest

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
# The seeds' files, below a repository; {slug} is the run.
FILES = {
    "context": {
        "docs/orchestrator/context/tasks/{slug}/manifest.json": "context-manifest",
        "docs/orchestrator/context/tasks/{slug}/audit-history.json": "context-audit-history",
        ".claude/orchestrator/metrics/{slug}.json": "context-metrics",
    },
    "flow": {".ai-workspace/{slug}/flow-state.json": "flow-state"},
    "staged": {".agents/tmp/state.json": "staged-state"},
    "feature_state": {".feature-state.json": "feature-state"},
    "feature_docs": {},
}
PASSED = '{"audit_type": "audit", "verdict": "PASS", "iteration": 1, "issues": []}'
APPROVED = '{"status": "approved", "issues": [], "summary": "good", "coverage": 97}'
DISCOVERED = """Found out.
```json
{"discoveryAnswers": {"problem": "eyes hurt", "users": "all", "outcome": "dark", "constraints": "none", "successCriteria": "it toggles"}}
```
DONE: known
"""  # noqa: E501
TWO_ITEMS = "# Plan\n\n## Tasks\n\n- 1: Theme (depends_on: none)\n- 2: Toggle (depends_on: 1)\n"
COMMIT = "git add -- '*.py' && git commit -q -m 'Step '$TENUTO_ITEM"
# What every role answers unless a test says otherwise: the shape its pipeline needs, and DONE.
ORDINARY: list[dict[str, Any]] = [
    {"for": {"role": "*-auditor"}, "files": {"{out}": PASSED}},
    {"for": {"role": "*-reviewer"}, "files": {"{out}": APPROVED}},
    {"for": {"role": "test-runner", "step": "3.1"}, "files": {"{out}": '{"passed": 3, "failed": 0}'}},
    {
        "for": {"role": "test-developer"},
        "run": 'printf \'{"by": "%s"}\' $TENUTO_ATTEMPT > $TENUTO_OUTPUTS',
        "files": {},
    },
    {"for": {"role": "discovery-guide"}, "reply": DISCOVERED},
    {
        "for": {"role": "planner", "step": "planning"},
        "run": "mkdir -p docs/feature/$TENUTO_RUN/tasks && echo '# Theme' > docs/feature/$TENUTO_RUN/tasks/1.md",
        "files": {"docs/feature/{run}/plan.md": TWO_ITEMS},
    },
    {"for": {"role": "planner"}, "files": {"{out}": TWO_ITEMS}},
    {"for": {"role": "spec-writer", "step": "spec-writer"}, "files": {"{out}": TWO_ITEMS}},
    {"for": {"role": "code-architect"}, "files": {"{out}": TWO_ITEMS}},
    {"for": {"role": "planning_agent"}, "files": {"{out}": TWO_ITEMS}},
    {"for": {"role": "test-designer"}, "files": {"tests/unit/{run}.test.ts": "test('dark')"}},
    {"for": {"role": "execution_agent"}, "run": "echo $TENUTO_ITEM > step$TENUTO_ITEM.py"},
    {"for": {"role": "commit_changes"}, "run": COMMIT},
]


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def validate(value: Any, name: str) -> None:
    jsonschema.Draft202012Validator(schema(name)).validate(value)


def repository(folder: Path) -> Path:
    made = folder / "repository"
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    # Agents see little of our environment: whoever commits needs a name in the repository.
    for key, value in (("user.name", "Ada Tester"), ("user.email", "ada@example.org")):
        subprocess.run(["git", "-C", str(made), "config", key, value], check=True)
    (made / "README.md").write_text("hello\n")
    subprocess.run(["git", "-C", str(made), "add", "."], check=True)
    subprocess.run(["git", "-C", str(made), "commit", "-q", "-m", "begin"], check=True)
    return made


class Stage:
    def __init__(self, folder: Path, answers: list[dict[str, Any]] | None = None) -> None:
        self.root = repository(folder)
        self.script = folder / "answers.yaml"
        self.workspace = tenuto.open(str(self.root))
        self.seen: dict[str, list[Any]] = {}
        self.answer(answers or [])

    def answer(self, answers: list[dict[str, Any]], run: str = "add-dark-mode") -> None:
        """Before the ordinary answers. JSON is YAML."""
        text = json.dumps({"answers": [{"reply": "DONE: did its part", **one} for one in (*answers, *ORDINARY)]})
        self.script.write_text(text.replace("{run}", run))

    def play(self, request: str, pipeline: str, *, in_advance: str = "approve", **how: Any) -> Any:
        run = start(self.workspace, request, pipeline, **how)
        return self.drive(run["id"], in_advance)

    def take_over(self, name: str, pipeline: str = "", *, in_advance: str = "approve", **how: Any) -> Any:
        run = engage(self.workspace, name, pipeline, **how)
        return self.drive(run["id"], in_advance)

    def drive(self, run: str, in_advance: str = "approve") -> Any:
        roster = Roster(f"scripted:{self.script}")
        rested = drive_until_rest(self.workspace, run, roster, {}, watcher=self.look, in_advance=in_advance)
        self.look(rested, [])
        return self.workspace.load(run)

    def look(self, run: Any, fresh: Any) -> None:
        for dialect in run["dialects"]:
            for path, name in FILES[dialect].items():
                file = self.root / path.replace("{slug}", run["id"])
                if file.exists():
                    value = json.loads(file.read_text())
                    validate(value, name)
                    self.seen.setdefault(name, []).append(value)

    def last(self, name: str) -> Any:
        return self.seen[name][-1]

    def text(self, path: str) -> str:
        return (self.root / path).read_text()
