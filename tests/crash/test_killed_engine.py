"""kill -9 of the engine at arbitrary moments: agents go on, results are collected, nothing finished runs twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tenuto
from tenuto.engine.begin import start
from tenuto.knowledge.definitions import load

ROOT = Path(__file__).resolve().parents[2]
ENGINE = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.loop import Engine
run = Engine(tenuto.open(sys.argv[2]), sys.argv[3], Roster("scripted:" + sys.argv[4]), {}).drive()
print(run["status"])
"""
# What every agent does first. After so many starts, one asks for the engine's end and works until it has come:
# on a machine of any speed, so many kills hit an engine that has an agent at work.
BEGIN = (
    'echo "$TENUTO_ATTEMPT" >> {log}; n=$(wc -l < {log}); for k in 1 3 5 8 12; do '
    "if [ $n -ge $k ] && mkdir {log}.ask-$k 2>/dev/null; "
    "then until [ -e {log}.killed-$k ]; do sleep 0.01; done; fi; done"
)
PLAN = """
answers:
  - for: {{role: planner}}
    run: {begin}
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
    run: {begin}
"""


def repository(folder: Path) -> Path:
    made = folder / "repository"
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    (made / "README.md").write_text("hello\n")
    subprocess.run(["git", "-C", str(made), "add", "."], check=True)
    subprocess.run(["git", "-C", str(made), "commit", "-q", "-m", "begin"], check=True)
    return made


def begin(folder: Path, first: str = 'echo "$TENUTO_ATTEMPT" >> {log}') -> tuple[Path, Any, list[str], Path]:
    made, log, script = repository(folder), folder / "starts.log", folder / "answers.yaml"
    workspace = tenuto.open(str(made))
    run = start(workspace, "Add dark mode", "eight-step")
    script.write_text(PLAN.format(begin=first.format(log=log), docs=f"docs/feature/{run['id']}"))
    command = [sys.executable, "-c", ENGINE, str(ROOT), str(made), run["id"], str(script)]
    return made, run, command, log


def kill_again_and_again(command: list[str], log: Path, chance: random.Random) -> tuple[int, str]:
    """How many were killed, and what the last one printed: whenever an agent asks, and at fifteen moments of chance."""
    kills = moments = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as engine:
            moment = time.monotonic() + chance.uniform(0.25, 0.9)
            asked: list[Path] = []
            while engine.poll() is None and not asked and (moments == 15 or time.monotonic() < moment):
                time.sleep(0.005)
                asked = [path for path in log.parent.glob(f"{log.name}.ask-*") if not answer(path).exists()]
            if engine.poll() is not None:
                out, errors = engine.communicate()
                assert engine.returncode == 0, errors.decode()
                return kills, out.decode().strip()
            engine.kill()
            kills, moments = kills + 1, moments + (not asked)
        for path in asked:
            answer(path).touch()


def answer(asked: Path) -> Path:
    return asked.with_name(asked.name.replace(".ask-", ".killed-"))


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
    made, run, command, log = begin(tmp_path, BEGIN)
    kills, out = kill_again_and_again(command, log, random.Random(7))
    assert kills >= 5 and out == "completed"
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
    from tenuto.engine.attempt import pipeline_of

    with workspace.journal.read() as reader:
        assert pipeline_of(reader, run) == load("eight-step")


def test_an_engine_killed_again_and_again_merges_every_item_exactly_once(tmp_path: Path) -> None:
    """In work trees of their own: whether it died before, in or after a merge, each item is on the branch once."""
    from tenuto.engine.begin import Place
    from tenuto.files import git

    made, log, script = repository(tmp_path), tmp_path / "starts.log", tmp_path / "answers.yaml"
    run = start(tenuto.open(str(made)), "Add dark mode", "eight-step", place=Place("worktree"))
    first = BEGIN.format(log=log)
    text = PLAN.format(begin=first, docs=f"docs/feature/{run['id']}")
    item = f'  - for: {{step: implementation}}\n    run: {first}; echo "$TENUTO_ITEM" > "$TENUTO_ITEM.txt"\n'
    script.write_text(text.replace('  - for: {role: "*"}', item + '  - for: {role: "*"}'))
    command = [sys.executable, "-c", ENGINE, str(ROOT), str(made), run["id"], str(script)]
    assert kill_again_and_again(command, log, random.Random(11))[0] >= 5
    judge(tenuto.open(str(made)), run, log)
    found = tenuto.open(str(made)).load(run["id"])
    merged = git.trailers(str(made), found["settings"]["base_commit"], "Tenuto-Attempt")
    log_of_merges = git.tell(str(made), "log", "--merges", "--first-parent", "--format=%s").splitlines()
    ends = {name: f"{one['verdict']}: {one['summary']}" for name, one in found["attempts"].items() if one["item"]}
    assert len(merged) == len(log_of_merges) == 6, ends
    assert {f"{name}.txt" for name in found["items"]} <= {path.name for path in made.iterdir()}
    assert git.tell(str(made), "status", "--porcelain") == ""
