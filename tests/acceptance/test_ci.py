"""The action, the workflows and the example: accepted by GitHub's own schemas; and the action does what it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import validator_for

from tenuto.knowledge.plain_data import read_yaml
from tests.unit.engine.conftest import make_repository

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "action.yml"
EXAMPLE = ROOT / "docs/howto/run-in-ci.yml"
WORKFLOWS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), EXAMPLE]
SCRIPT = ROOT / "scripts/ci-run"


def problems(path: Path, schema: str) -> list[str]:
    """By the schemas that the package check-jsonschema keeps of GitHub's formats."""
    known = json.loads(files("check_jsonschema").joinpath(f"builtin_schemas/vendor/{schema}.json").read_text())
    validator = validator_for(known)(known)
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(data(path))]


def data(path: Path) -> Any:
    return read_yaml(path.read_text(), path.name).data


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_workflow_is_one(path: Path) -> None:
    assert problems(path, "github-workflows") == []


def test_the_action_is_one() -> None:
    assert problems(ACTION, "github-actions") == []


def test_a_broken_workflow_is_seen(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(EXAMPLE.read_text().replace("runs-on:", "runs-in:"))
    assert problems(broken, "github-workflows") != []


def test_the_example_uses_inputs_and_outputs_that_the_action_has() -> None:
    steps = data(EXAMPLE)["jobs"]["run"]["steps"]
    (used,) = [step for step in steps if "tenuto" in step.get("uses", "")]
    assert set(used["with"]) <= set(data(ACTION)["inputs"])
    page = (ROOT / "docs/howto/run-in-ci.md").read_text()
    assert [name for name in [*data(ACTION)["inputs"], *data(ACTION)["outputs"]] if f"`{name}`" not in page] == []


def test_no_input_is_a_part_of_a_script() -> None:
    """Whoever may write an issue would write shell, otherwise."""
    for step in data(ACTION)["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), step["name"]


def test_every_input_reaches_the_script_as_a_variable() -> None:
    given = {name for step in data(ACTION)["runs"]["steps"] for name in step["env"]}
    used = set(re.findall(r"\$\{?(TENUTO_[A-Z_]+)", SCRIPT.read_text() + ACTION.read_text()))
    assert given == used and len(given) == len(data(ACTION)["inputs"])


class Job:
    """What the action's last step does, in a repository, with the variables that a runner gives."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, make_repository(folder / "project")
        (folder / "answers.yaml").write_text("answers: []\n")
        self.tenuto = shutil.which("tenuto", path=str(Path(sys.executable).parent)) or "tenuto"

    def run(self, **inputs: str) -> tuple[int, str, dict[str, str]]:
        given = {"PIPELINE": "small", "AGENT": f"scripted:{self.folder}/answers.yaml", **inputs}
        environment = {**os.environ, **{f"TENUTO_{name}": value for name, value in given.items()}}
        environment |= {"GITHUB_OUTPUT": f"{self.folder}/output", "GITHUB_STEP_SUMMARY": f"{self.folder}/summary"}
        words = ["bash", str(SCRIPT), self.tenuto]
        done = subprocess.run(words, check=False, cwd=self.root, env=environment, capture_output=True, text=True)
        lines = (self.folder / "output").read_text().splitlines()
        return done.returncode, done.stdout, dict(line.split("=", 1) for line in lines)


def test_a_run_that_is_completed_ends_well_and_is_kept(tmp_path: Path) -> None:
    job = Job(tmp_path)
    code, said, output = job.run(REQUEST="Add it", PAGE="run.html", JOURNAL="journal.jsonl")
    assert code == 0 and "::notice title=Tenuto::add-it: completed" in said
    assert output == {"run": "add-it", "status": "completed", "exit-code": "0", "pull-request": ""}
    assert "add-it" in (job.root / "run.html").read_text() and (job.root / "journal.jsonl").read_text()
    assert "    add-it: completed" in (tmp_path / "summary").read_text()


def test_a_run_that_fails_fails_the_job_with_an_annotation(tmp_path: Path) -> None:
    job = Job(tmp_path)
    (tmp_path / "answers.yaml").write_text("answers: [{for: {role: designer}, reply: 'ERROR: no idea'}]\n")
    code, said, output = job.run(REQUEST="Add it")
    assert code == 1 and "::error title=Tenuto::add-it: failed" in said and output["exit-code"] == "1"


def test_a_request_is_a_request_whatever_it_holds(tmp_path: Path) -> None:
    job = Job(tmp_path)
    hostile = 'Add $(touch ran) `touch ran`; touch ran\n::error::forged\n"'
    code, said, output = job.run(REQUEST=hostile)
    assert code == 0 and not (job.root / "ran").exists()
    assert "\n::error::forged" not in said and "\n" not in output["run"]


def test_what_is_refused_is_an_annotation_too(tmp_path: Path) -> None:
    job = Job(tmp_path)
    code, said, _ = job.run(REQUEST="Add it", PIPELINE="nonsense")
    assert code == 3 and "::error title=Tenuto::no-pipeline: " in said
