"""A parameter of type `file`: what steps read of it is a document of the run, as the file was when the run began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenuto.core.pipeline.records import ParamValue
from tenuto.engine.begin import fork, start
from tenuto.errors import BadInput, NotFound
from tests.acceptance.rehearsing import Stage
from tests.acceptance.test_command_steps import stage_with

STEPS = """
params: {rows: {type: file, default: data/rows.csv}, notes: {type: file, required: false}}
steps:
  - id: greet
    each: {table: "{params.rows}", key: name}
    command: {run: [echo, "{each.size}"], stdout: "sizes/{item}.txt"}
  - id: write
    agent: {role: implementer, in: ["{params.rows}", "{params.notes}"], out: report.md}
"""


def stage_of(folder: Path) -> Stage:
    stage = stage_with(folder, STEPS)
    (stage.root / "data").mkdir()
    (stage.root / "data" / "rows.csv").write_text("name,size\nann,1\nbo,2\n")
    return stage


def begun(stage: Stage, **params: ParamValue) -> Any:
    return start(stage.workspace, "Greet", "own", params=params)


def test_it_is_copied_when_the_run_begins_and_kept(tmp_path: Path) -> None:
    """Also in a fork; what becomes of the file is nothing to the run."""
    stage = stage_of(tmp_path)
    run = begun(stage)["id"]
    (stage.root / "data" / "rows.csv").unlink()
    found = stage.drive(run)
    assert found["status"] == "completed"
    assert (stage.root / f"docs/{run}/data/rows.csv").read_text() == "name,size\nann,1\nbo,2\n"
    assert (stage.root / f"docs/{run}/sizes/bo.txt").read_text() == "2\n"
    assert found["artifacts"]["data/rows.csv"]["step"] is None
    other = fork(stage.workspace, run, "write", name="other")["id"]
    assert stage.drive(other)["status"] == "completed"
    assert (stage.root / f"docs/{other}/data/rows.csv").exists()


def test_one_that_nobody_hands_in_is_not_read(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    (stage.root / "my own.md").write_text("mine\n")
    assert begun(stage)["params"] == {"rows": "data/rows.csv"}
    run = stage.drive(begun(stage, notes="my own.md")["id"])
    assert run["status"] == "completed" and "my own.md" in run["artifacts"]


@pytest.mark.parametrize(
    ("params", "problem", "part"),
    [
        ({"rows": "none.csv"}, NotFound, "'rows': there is no file none.csv in the repository"),
        ({"rows": "../rows.csv"}, BadInput, "'rows': '../rows.csv' is no path below the repository"),
        ({"rows": "data"}, NotFound, "there is no file data"),
    ],
)
def test_what_is_no_file_of_the_repository_is_refused(
    tmp_path: Path, params: dict[str, ParamValue], problem: type[Exception], part: str
) -> None:
    stage = stage_of(tmp_path)
    with pytest.raises(problem, match=part.replace(".", r"\.")):
        begun(stage, **params)
    assert not (stage.root / "docs").exists()


def test_a_default_that_steps_read_must_be_there(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    (stage.root / "data" / "rows.csv").unlink()
    with pytest.raises(NotFound, match=r"'rows': there is no file data/rows\.csv"):
        begun(stage)
