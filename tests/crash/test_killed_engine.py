"""kill -9 of the engine at arbitrary moments: agents go on, results are collected, nothing finished runs twice."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import tenuto
from tenuto.drivers.start import start
from tenuto.knowledge.definitions import load

ROOT = Path(__file__).resolve().parents[2]
ENGINE = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.crew import Crew
from tenuto.drivers.local import Engine
run = Engine(tenuto.open(sys.argv[2]), sys.argv[3], Crew("scripted:" + sys.argv[4]), {}).drive()
print(run["status"])
"""
PLAN = """
answers:
  - for: {{role: planner}}
    run: echo "$TENUTO_ATTEMPT" >> {log}
    files:
      "{docs}/plan.md": |
        ## Wave 1
        - 01-a (depends_on: none)
        - 02-b (depends_on: none)
        - 03-c (depends_on: none)
        - 04-d (depends_on: none)
        - 05-e (depends_on: none)
        ## Wave 2
        - 06-f (depends_on: 01-a)
      "{docs}/tasks/01-a.md": "# A"
    reply: "DONE: planned"
  - for: {{role: "*"}}
    run: echo "$TENUTO_ATTEMPT" >> {log}
"""


def repository(folder: Path) -> Path:
    made = folder / "repository"
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    (made / "README.md").write_text("hello\n")
    subprocess.run(["git", "-C", str(made), "add", "."], check=True)
    subprocess.run(["git", "-C", str(made), "commit", "-q", "-m", "begin"], check=True)
    return made


def begin(folder: Path) -> tuple[Path, Any, list[str], Path]:
    made, log, script = repository(folder), folder / "starts.log", folder / "answers.yaml"
    workspace = tenuto.open(str(made))
    run = start(workspace, "Add dark mode", "eight-step")
    script.write_text(PLAN.format(log=log, docs=f"docs/feature/{run['id']}"))
    command = [sys.executable, "-c", ENGINE, str(ROOT), str(made), run["id"], str(script)]
    return made, run, command, log


def judge(workspace: Any, run: Any, log: Path) -> None:
    """Completed; every start was asked for once; every attempt has exactly one end."""
    found = workspace.load(run["id"])
    assert found["status"] == "completed", (found["status"], found["failure"], found["pause"])
    starts = log.read_text().split()
    assert len(starts) == len(set(starts)), "something was started twice"
    finished = [name for name, attempt in found["attempts"].items() if attempt["status"] == "completed"]
    started = {name.split(".", 1)[1].rsplit(".", 1)[0] for name in starts}
    assert set(finished) <= started, "a result without a start"
    with workspace.journal.read() as reader:
        ends = [e["attempt"] for e in reader.events(run["id"]) if e["type"] in ("AttemptFinished", "AttemptLost")]
    assert len(ends) == len(set(ends)) == len(found["attempts"])
    assert all(a["status"] in ("completed", "failed", "lost") for a in found["attempts"].values())


def test_an_engine_killed_again_and_again_finishes_the_run_without_repeating_anything(tmp_path: Path) -> None:
    chance = random.Random(7)
    made, run, command, log = begin(tmp_path)
    kills = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as engine:
            try:
                out, errors = engine.communicate(timeout=chance.uniform(0.25, 0.9) if kills < 15 else None)
            except subprocess.TimeoutExpired:
                engine.kill()
                kills += 1
                continue
        assert engine.returncode == 0, errors.decode()
        break
    assert kills >= 5 and out.decode().strip() == "completed"
    judge(tenuto.open(str(made)), run, log)


def test_two_engines_on_one_run_share_it(tmp_path: Path) -> None:
    """The second waits for the first and finds the run finished: nothing is done twice."""
    made, run, command, log = begin(tmp_path)
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as one,
        subprocess.Popen(command, stdout=subprocess.PIPE) as two,
    ):
        assert one.communicate()[0].strip() == two.communicate()[0].strip() == b"completed"
    judge(tenuto.open(str(made)), run, log)
    assert len(log.read_text().split()) == len(tenuto.open(str(made)).load(run["id"])["attempts"])


def test_a_run_is_not_changed_by_an_edited_pipeline(tmp_path: Path) -> None:
    """The definition is bound at the start: what the file says later is for later runs."""
    made = repository(tmp_path)
    folder = made / ".tenuto" / "pipelines"
    folder.mkdir(parents=True)
    text = (ROOT / "tenuto" / "pipelines" / "eight-step.yaml").read_text()
    (folder / "eight-step.yaml").write_text(text)
    workspace = tenuto.open(str(made))
    run = start(workspace, "Add dark mode", "eight-step")
    (folder / "eight-step.yaml").write_text("name: eight-step\nsteps: []\n")
    from tenuto.drivers.bound import pipeline_of

    with workspace.journal.read() as reader:
        assert pipeline_of(reader, run) == load("eight-step")


def test_an_engine_killed_again_and_again_merges_every_item_exactly_once(tmp_path: Path) -> None:
    """In work trees of their own: whether it died before, in or after a merge, each item is on the branch once."""
    from tenuto.drivers import git
    from tenuto.drivers.start import Place

    chance, made, log, script = (
        random.Random(11),
        repository(tmp_path),
        tmp_path / "starts.log",
        tmp_path / "answers.yaml",
    )
    run = start(tenuto.open(str(made)), "Add dark mode", "eight-step", place=Place("worktree"))
    text = PLAN.format(log=log, docs=f"docs/feature/{run['id']}")
    item = f'  - for: {{step: implementation}}\n    run: echo "$TENUTO_ATTEMPT" >> {log}; echo "$TENUTO_ITEM" > "$TENUTO_ITEM.txt"\n'
    script.write_text(text.replace('  - for: {role: "*"}', item + '  - for: {role: "*"}'))
    command = [sys.executable, "-c", ENGINE, str(ROOT), str(made), run["id"], str(script)]
    for kills in range(100):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as engine:
            try:
                _, errors = engine.communicate(timeout=chance.uniform(0.3, 1.0) if kills < 12 else None)
            except subprocess.TimeoutExpired:
                engine.kill()
                continue
        assert engine.returncode == 0, errors.decode()
        break
    judge(tenuto.open(str(made)), run, log)
    found = tenuto.open(str(made)).load(run["id"])
    merged = git.trailers(str(made), found["settings"]["base_commit"], "Tenuto-Attempt")
    log_of_merges = git.tell(str(made), "log", "--merges", "--first-parent", "--format=%s").splitlines()
    assert len(merged) == len(log_of_merges) == 6
    assert {f"{name}.txt" for name in found["items"]} <= {path.name for path in made.iterdir()}
    assert git.tell(str(made), "status", "--porcelain") == ""
