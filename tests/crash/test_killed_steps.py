"""Every kind of step, killed before one line of Tenuto's after another: what comes of the run is what comes of it
when nobody is killed, and nothing that ended is done twice."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tenuto.engine.begin import start
from tests.acceptance.rehearsing import Stage
from tests.acceptance.test_command_steps import stage_with
from tests.support.steps_at_work import command
from tests.support.trusting import trust

KILLS = 7  # of each run
RUN = "add-dark-mode"
NOTED = '[sh, -c, \'echo "$0" >> log; echo "$0"\', %s]'
CHILD = f"""
name: child
params: {{word: {{default: hello}}}}
steps:
  - id: say
    command: {{run: {NOTED % '"say {params.word}"'}, stdout: said.txt}}
    touches: log
    retry: {{LOST: 3}}
  - id: judge
    command: [sh, -c, 'echo "{{\\"good\\": true}}"']
    retry: {{LOST: 3}}
    result: {{schema: {{type: object, properties: {{good: {{type: boolean}}}}}}}}
"""
STEPS = {
    "command": f"""
steps:
  - id: count
    command: [sh, -c, 'echo count >> log; echo "{{\\"open\\": 2}}"']
    touches: log
    result: {{schema: {{type: object, required: [open], properties: {{open: {{type: integer}}}}}}}}
  - id: fail
    command: {{run: [sh, -c, 'echo fail >> log; exit 2'], exits: {{2: NEEDS_REVISION}}, stdout: why.txt}}
    touches: log
    on: {{NEEDS_REVISION: {{go_on: alarm}}}}
  - {{id: unseen, command: [sh, -c, "echo unseen >> log"], touches: log}}
  - id: alarm
    when: {{all: [{{result: count, field: open, more_than: 1}}, {{changed: log}}]}}
    command: {{run: {NOTED % "alarm"}, stdout: alarm.txt}}
    touches: log
  - {{id: quiet, when: {{outcome: fail, is: DONE}}, command: [sh, -c, "echo quiet >> log"], touches: log}}
""",
    "each": f"""
cap: 2
params: {{who: {{type: list, default: [a, b, c]}}}}
steps:
  - id: lines
    each: {{lines: [printf, 'x\\ny\\nz\\n'], quorum: 2}}
    command: [sh, -c, 'echo "lines $0" >> log; test "$0" != y', "{{each.value}}"]
    touches: log
    retry: {{ERROR: 1}}
  - id: cluster
    each: {{param: who, when: {{element: value, in: [a, c]}}}}
    cluster:
      - {{command: {{run: {NOTED % '"one {item}"'}, stdout: "{{item}}-1.txt"}}, id: one, touches: log}}
      - {{command: {{run: {NOTED % '"two {item}"'}, stdout: "{{item}}-2.txt"}}, id: two, touches: log}}
    aggregate: {{role: implementer, in: "{{item}}-*.txt", out: "{{item}}.md"}}
""",
    "sub-pipeline": """
params: {who: {type: list, default: [a, b]}}
steps:
  - {id: part, pipeline: child, params: {word: part}, when: {not: {exists: part/said.txt}}}
  - {id: every, each: {param: who}, pipeline: child, params: {word: "{each.value}"}}
""",
    "form": f"""
steps:
  - id: agree
    gate: {{fields: {{env: {{of: [staging, prod]}}, replicas: 2}}}}
  - id: ship
    command: {{run: {NOTED % '"to {answers.agree.env} x {answers.agree.replicas}"'}, stdout: shipped.txt}}
    touches: log
  - {{id: watch, when: {{answer: agree.env, is: staging}}, agent: {{role: implementer, out: watch.md}}}}
""",
    "result": """
steps:
  - id: scan
    agent:
      role: researcher
      retry: {ERROR: 1}
      result: {schema: {type: object, required: [parts], properties: {parts: {type: array, items: {type: string}}}}}
  - id: look
    each: {result: scan, field: parts}
    agent: {role: implementer, out: "{item}.md", context: [{result: scan}]}
""",
}
ANSWERS: list[dict[str, Any]] = [
    {"for": {"step": "scan", "try": 1}, "reply": '```json\n{"parts": 3}\n```\nDONE: wrong'},
    {"for": {"step": "scan"}, "reply": '```json\n{"parts": ["x", "y"]}\n```\nDONE: right'},
    {"for": {"role": "implementer"}, "files": {"{out}": "made\n"}},  # whichever attempt it was that made it
]


def stage_of(folder: Path, kind: str) -> Stage:
    folder.mkdir()
    steps = STEPS[kind].replace("\nsteps:", "\ndefaults: {retry: {LOST: 3}}\nsteps:", 1)
    stage = stage_with(folder, steps, ANSWERS)
    (stage.root / ".tenuto" / "pipelines" / "child.yaml").write_text(CHILD)
    trust(stage.root)
    assert start(stage.workspace, "Add dark mode", "own")["id"] == RUN
    return stage


def lines_of(stage: Stage, function: str, *words: str, line: int = 0) -> int:
    """How many lines it came through; 0: it was killed."""
    ran = subprocess.run(command(line, function, str(stage.root), RUN, *words), capture_output=True, check=False)
    if ran.returncode == -signal.SIGKILL:
        return 0
    assert ran.returncode == 0, ran.stderr.decode()
    return int(ran.stderr.split()[-2])


def came_of(stage: Stage) -> dict[str, Any]:
    run = stage.workspace.load(RUN)
    log = stage.root / "log"
    ended = [one for one in run["attempts"].values() if one["verdict"] != "LOST" and one["status"] != "lost"]
    return {
        "status": (run["status"], run["failure"]),
        "steps": run["steps"],
        "visits": [(visit["step"], visit["iteration"], visit["status"]) for visit in run["visits"]],
        "items": {name: item["status"] for name, item in run["items"].items()},
        "ended": sorted((one["step"], one["item"] or "", one["verdict"], one["summary"]) for one in ended),
        "results": sorted(str(one["receipt"].get("result")) for one in ended),
        "artifacts": {name: one["sha256"] for name, one in run["artifacts"].items()},
        "answers": [one.get("answers") for one in run["decisions"]],
        "done": sorted(log.read_text().splitlines()) if log.exists() else [],
    }


@pytest.mark.parametrize("kind", STEPS)
def test_killed_anywhere_it_ends_as_if_nobody_were(tmp_path: Path, kind: str) -> None:
    chance = random.Random(kind)
    whole = stage_of(tmp_path / "whole", kind)
    lines = {"drive": lines_of(whole, "drive", str(whole.script)), "approve": 0}
    if kind == "form":
        lines["approve"] = lines_of(whole, "approve", "prod")
        lines["drive"] = max(lines["drive"], lines_of(whole, "drive", str(whole.script)))

    stage, killed = stage_of(tmp_path / "killed", kind), 0
    calls = [("drive", str(stage.script))] + [("approve", "prod"), ("drive", str(stage.script))] * (kind == "form")
    for function, words in calls:
        for _ in range(KILLS):
            killed += not lines_of(stage, function, words, line=chance.randint(1, lines[function]))
        lines_of(stage, function, words)
    assert killed >= 2
    assert came_of(whole)["status"] == ("completed", None)
    assert came_of(stage) == came_of(whole)
