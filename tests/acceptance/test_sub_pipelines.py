"""A pipeline as a step of another one, with real processes: one run, one journal, whatever is killed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenuto.engine.begin import fork, start
from tests.acceptance.rehearsing import Stage
from tests.acceptance.test_command_steps import play, stage_with
from tests.acceptance.test_each import ENGINE, events, keys, log
from tests.support.trusting import trust

CHILD = """
name: child
params: {word: {default: hello}, source: {type: file, required: false}}
steps:
  - id: say
    command: {run: [sh, -c, 'echo "$0" | tee -a log', "{params.word}"], stdout: said.txt}
    touches: log
  - id: judge
    command: [sh, -c, 'echo "{\\"good\\": true}"']
    result: {schema: {type: object, properties: {good: {type: boolean}}}}
"""


def stage_of(folder: Path, steps: str, child: str = CHILD) -> Stage:
    stage = stage_with(folder, steps)
    (stage.root / ".tenuto" / "pipelines" / "child.yaml").write_text(child)
    trust(stage.root)
    return stage


def visited(run: Any) -> list[str]:
    return [visit["step"] for visit in run["visits"]]


def test_its_steps_run_in_the_same_run_and_its_result_is_asked_about(tmp_path: Path) -> None:
    steps = """
steps:
  - id: part
    pipeline: child
    params: {word: good morning}
  - id: after
    command: ["true"]
    in: part/said.txt
    when: {all: [{result: part, field: good}, {outcome: part, is: DONE}]}
"""
    stage = stage_of(tmp_path, steps)
    run = play(stage)
    assert run["status"] == "completed", run["failure"]
    assert visited(run) == ["part.say", "part.judge", "part", "after"]
    assert stage.text("docs/add-dark-mode/part/said.txt") == "good morning\n"
    assert run["budget"]["spent"]["attempts"] == 3


def test_where_it_fails_the_way_back_of_the_whole_is_taken_as_often_as_it_may_be(tmp_path: Path) -> None:
    steps = """
steps:
  - {id: first, command: ["true"]}
  - id: part
    pipeline: child
    on: {ERROR: {route: [first], at_most: 2, then: {pause: it cannot be done}}}
"""
    child = "name: child\nsteps:\n  - {id: one, command: ['true']}\n  - {id: two, command: ['false']}\n"
    run = play(stage_of(tmp_path, steps, child))
    assert run["status"] == "paused" and "it cannot be done" in run["pause"]["reason"]
    assert visited(run) == ["first", "part.one", "part.two"] * 3
    assert run["routes"] == {"part.ERROR": 2}


def test_its_condition_is_asked_once_though_its_own_first_step_changes_the_answer(tmp_path: Path) -> None:
    steps = """
steps:
  - {id: first, command: ["true"]}
  - {id: part, pipeline: child, when: {not: {exists: part/said.txt}}}
  - {id: last, command: ["true"]}
"""
    stage = stage_of(tmp_path, steps)
    run = play(stage)
    assert visited(run) == ["first", "part.begin", "part.say", "part.judge", "part", "last"]
    again = fork(stage.workspace, run["id"], "first", name="again")["id"]
    (stage.root / "docs/again/part").mkdir(parents=True)
    (stage.root / "docs/again/part/said.txt").write_text("there\n")
    found = stage.drive(again)
    assert found["status"] == "completed"
    assert visited(found) == ["first", "last"], "what is left out is left out as a whole"
    assert [one["step"] for one in events(stage, again) if one["type"] == "StepSkipped"] == [
        "part.begin",
        "part.say",
        "part.judge",
        "part",
    ]


def test_one_that_is_come_to_again_and_left_out_then_stays_left_out(tmp_path: Path) -> None:
    """What its last visit came to is not what an earlier one did."""
    steps = """
steps:
  - id: first
    command: [sh, -c, 'mkdir -p docs/add-dark-mode && cd docs/add-dark-mode && echo x > x-$(ls | wc -l)']
    optional: "x-*"
  - {id: part, pipeline: child, when: {not: {exists: x-1}}}
  - id: check
    command: [sh, -c, "test -e done || { touch done; exit 2; }"]
    touches: done
    on: {ERROR: {route: [first], at_most: 1}}
"""
    run = play(stage_of(tmp_path, steps, "name: child\nsteps:\n  - {id: say, command: ['true']}\n"))
    assert run["status"] == "completed", run["failure"]
    assert visited(run) == ["first", "part.begin", "part.say", "part", "check", "first", "check"]


def test_a_gate_of_it_opens_as_any_gate_and_says_its_whole_name(tmp_path: Path) -> None:
    child = "name: child\nsteps:\n  - {id: agree, gate: {prompt: Is it right?}}\n  - {id: go, command: ['true']}\n"
    stage = stage_of(tmp_path, "steps:\n  - {id: part, pipeline: child}\n", child)
    run = play(stage)
    assert [one["name"] for one in run["decisions"]] == ["part.agree"] and visited(run)[-1] == "part"


def test_for_every_element_its_steps_run_in_turn_and_only_the_failing_ones_again(tmp_path: Path) -> None:
    steps = """
params: {who: {type: list, default: [a, b, c]}}
steps:
  - id: every
    each: {param: who, cap: 2}
    pipeline: child
    params: {word: "{each.value}"}
"""
    child = """
name: child
params: {word: text}
steps:
  - {id: one, command: {run: [sh, -c, 'echo "one $0" | tee -a log', "{params.word}"], stdout: one.txt}, touches: log}
  - id: two
    command: [sh, -c, 'echo "two $0" >> log; test "$0" != b', "{params.word}"]
    touches: log
    in: one.txt
"""
    stage = stage_of(tmp_path, steps, child)
    run = play(stage)
    assert run["status"] == "failed" and keys(run, "every") == {"a": "completed", "b": "failed", "c": "completed"}
    assert stage.text("docs/add-dark-mode/every/b/one.txt") == "one b\n"
    told = (stage.root / "log").read_text().splitlines()
    assert all(told.index(f"one {key}") < told.index(f"two {key}") for key in "abc")


@pytest.mark.parametrize("seed", [3, 5])
def test_killed_at_arbitrary_moments_each_of_its_steps_runs_once(tmp_path: Path, seed: int) -> None:
    """Before, in and behind a sub-pipeline, in one for every element, and where its condition is asked."""
    steps = """
params: {who: {type: list, default: [a, b, c]}}
defaults: {retry: {LOST: 3}}
steps:
  - {id: first, command: [sh, -c, "echo first >> log"], touches: log}
  - {id: part, pipeline: child, params: {word: part}, when: {not: {exists: part/said.txt}}}
  - {id: every, each: {param: who}, pipeline: child, params: {word: "{each.value}"}}
  - {id: twice, pipeline: child, params: {word: twice}}
  - {id: last, command: [sh, -c, "echo last >> log"], touches: log}
"""
    child = CHILD.replace("    touches: log\n", "    touches: log\n    retry: {LOST: 3}\n")
    stage = stage_of(tmp_path, steps, child)
    run, root = start(stage.workspace, "Add dark mode", "own")["id"], str(Path(__file__).resolve().parents[2])
    chance, killed = random.Random(seed), 0
    while True:
        engine = subprocess.Popen([sys.executable, "-c", ENGINE, root, str(stage.root), run], stdout=subprocess.DEVNULL)
        try:
            engine.wait(chance.uniform(0.2, 1.5) if killed < 12 else None)
            break
        except subprocess.TimeoutExpired:
            engine.kill()
            engine.wait()
            killed += 1
    found = stage.workspace.load(run)
    assert found["status"] == "completed", (found["failure"], [one["summary"] for one in found["attempts"].values()])
    assert sorted(log(stage)) == sorted(["first", "part", "a", "b", "c", "twice", "last"]), "each once"
    done = [one for one in found["attempts"].values() if one["verdict"] == "DONE"]
    assert len(done) == 2 + 2 + 2 + 2 * 3 and found["budget"]["reserved"] == {"attempts": 0}


def test_members_and_routes_ask_about_files_as_they_are_then(tmp_path: Path) -> None:
    """A member when the step begins, a route when it has ended."""
    steps = """
steps:
  - {id: first, command: [sh, -c, "mkdir -p docs/add-dark-mode && echo x > docs/add-dark-mode/a.md"], out: a.md}
  - id: look
    cluster:
      members:
        - {id: one, command: [sh, -c, "echo x > docs/add-dark-mode/b.md"], out: b.md}
        - {id: two, command: ["true"], when: {exists: a.md}}
        - {id: three, command: ["true"], when: {exists: b.md}}
      quorum: 1
    on: {DONE: {go_on: last}}
  - id: last
    command: ["false"]
    on: {ERROR: {route: [look], at_most: 3, when: {not: {exists: c.md}}, otherwise: {finish: completed}}}
    optional: c.md
"""
    stage = stage_with(tmp_path, steps)
    run = play(stage)
    assert run["routes"] == {"last.ERROR": 3}
    (stage.root / "docs/add-dark-mode/c.md").write_text("enough\n")
    assert [key for key in run["attempts"] if key.startswith("look-1")] == ["look-1-one-1", "look-1-two-1"]
    assert [key for key in run["attempts"] if key.startswith("look-2")] == [
        "look-2-one-1",
        "look-2-two-1",
        "look-2-three-1",
    ]
    again = fork(stage.workspace, run["id"], "last", name="again")["id"]
    (stage.root / "docs/again").mkdir(exist_ok=True)
    (stage.root / "docs/again/c.md").write_text("enough\n")
    assert stage.drive(again)["status"] == "completed"


def test_documents_of_the_run_are_no_files_that_have_changed(tmp_path: Path) -> None:
    """A pipeline that asks whether documentation has changed does not mean what it writes itself."""
    steps = """
steps:
  - {id: first, command: {run: [echo, x], stdout: notes.md}}
  - {id: docs, command: ["true"], when: {changed: "docs/**"}}
  - {id: write, command: [sh, -c, "echo x > docs/page.md"], touches: "docs/*"}
  - {id: again, command: ["true"], when: {changed: "docs/**"}}
"""
    assert visited(play(stage_with(tmp_path, steps))) == ["first", "write", "again"]
