"""`tenuto run --param`: asked for by name, checked by type, recorded with the run, filled in."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Say = Callable[..., Any]
PIPELINE = """\
name: release
documents: docs/{slug}
params:
  target: {of: [web, api], description: What is released.}
  depth: 2
  dry: false
  modules: {type: list, default: []}
  notes: {type: file, default: notes.md}
steps:
  - id: look
    agent: {role: implementer, id: looker, focus: 'for {params.target}', out: 'look-{params.target}.md'}
  - id: deep
    agent: {role: implementer}
    when: {param: depth, more_than: 2}
  - id: last
    agent: {role: implementer}
    when: {exists: extra.md}
"""


@pytest.fixture
def released(repository: Path) -> Path:
    folder = repository / ".tenuto" / "pipelines"
    folder.mkdir(parents=True)
    (folder / "release.yaml").write_text(PIPELINE)
    (repository / "notes.md").write_text("What is new.\n")
    return repository


def run(say: Say, *words: str) -> Any:
    return say("run", "Release it", "--pipeline", "release", "--start-only", "--json", *words)


def test_parameters_are_recorded_with_the_run(say: Say, released: Path) -> None:
    words = ("--param", "target=api", "--param", "modules=a,b", "--param", "modules=c", "--param", "dry=yes")
    assert run(say, *words).status == 0
    assert say("status", "--json").data["params"] == {
        "target": "api",
        "depth": 2,
        "dry": True,
        "modules": ["a", "b", "c"],
        "notes": "notes.md",
    }


def test_a_file_of_parameters_counts_less_than_an_option(say: Say, released: Path) -> None:
    (released / "values.yaml").write_text("target: web\ndepth: 7\n")
    assert run(say, "--params-file", "values.yaml", "--param", "target=api").status == 0
    params = say("status", "--json").data["params"]
    assert (params["target"], params["depth"]) == ("api", 7)


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        ((), "bad-params", "'target' is missing: one of web, api; What is released."),
        (("--param", "target=desktop"), "bad-params", "'desktop' is none of the choices"),
        (("--param", "taget=web"), "bad-params", "did you mean 'target'?"),
        (("--param", "target=web", "--param", "depth=deep"), "bad-params", "'depth': a number is needed"),
        (("--param", "target=web", "--param", "dry=perhaps"), "bad-params", "'dry': true or false is needed"),
        (("--param", "target=web", "--param", "notes=none.md"), "no-file", "there is no file none.md"),
        (("--param", "target"), "bad-usage", "--param NAME=VALUE"),
        (("--params-file", "none.yaml"), "no-file", "there is no file none.yaml"),
    ],
)
def test_what_is_wrong_with_them_is_said_and_nothing_is_begun(
    say: Say, released: Path, words: tuple[str, ...], code: str, part: str
) -> None:
    error = run(say, *words).error
    assert error["code"] == code
    assert part in error["message"] + error["hint"]
    assert say("list", "--json").data == {"runs": []}


def test_a_file_that_is_no_mapping_is_refused(say: Say, released: Path) -> None:
    (released / "values.json").write_text("[1]")
    assert run(say, "--params-file", "values.json").error["code"] == "bad-params"


def test_parameters_belong_to_the_begin_of_a_run(say: Say, released: Path) -> None:
    assert run(say, "--param", "target=web").status == 0
    assert say("run", "--start-only", "--param", "target=api", "--json").error["code"] == "only-new-runs"


def test_a_plan_shows_what_is_left_out_and_what_only_the_run_will_show(say: Say, released: Path) -> None:
    shallow = say("plan", "--pipeline", "release", "--param", "target=web")
    assert "(left out: this does not hold: depth is more than 2)" in shallow.out
    assert "(only where extra.md exists)" in shallow.out
    deep = say("plan", "--pipeline", "release", "--param", "target=web", "--param", "depth=3")
    assert "left out" not in deep.out
    unknown = say("plan", "--pipeline", "release")
    assert "(only where depth is more than 2)" in unknown.out


def test_status_says_why_a_step_was_left_out(say: Say, released: Path) -> None:
    shutil.rmtree(released / ".git")
    subprocess.run(["git", "init", "-q", str(released)], check=True)
    (released / "answers.yaml").write_text("answers: []\n")
    words = ("--pipeline", "release", "--agent", "scripted:answers.yaml", "--param", "target=web")
    assert say("run", "Release it", *words).status == 0
    status = say("status")
    assert "deep is left out: this does not hold: depth is more than 2" in status.out
    assert "last is left out: this does not hold: extra.md exists" in status.out
    steps = say("status", "--json").data["steps"]
    assert {name: step.get("reason") for name, step in steps.items()} == {
        "look": None,
        "deep": "this does not hold: depth is more than 2",
        "last": "this does not hold: extra.md exists",
    }


def test_the_worst_case_counts_what_may_run(say: Say, released: Path) -> None:
    def attempts(*words: str) -> int:
        found: int = say("plan", "--pipeline", "release", "--json", *words).data["worst_case"]["attempts"]
        return found

    assert (
        attempts("--param", "target=web", "--param", "depth=3") == attempts() == 1 + attempts("--param", "target=web")
    )


def test_a_value_that_makes_a_path_is_checked_as_one(say: Say, released: Path) -> None:
    (released / ".tenuto" / "pipelines" / "named.yaml").write_text(
        "name: named\nparams: {name: text}\nsteps:\n"
        "  - {id: a, agent: {role: implementer, out: 'of-{params.name}.md'}}\n"
    )
    error = say("run", "It", "--pipeline", "named", "--param", "name=../../x", "--start-only", "--json").error
    assert error["code"] == "bad-pipeline"
    assert "[bad-path]" in error["message"]
    assert say("list", "--json").data == {"runs": []}
