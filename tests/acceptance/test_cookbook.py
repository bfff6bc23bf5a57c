"""Each pipeline of the cookbook is checked, planned, and run: every case passes, and together they go every way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.core.budget import fewest, worst_case
from tenuto.core.pipeline.check import seats
from tenuto.entrypoints.cli.pipeline import untried
from tenuto.knowledge import definitions, roles
from tenuto.rehearsal.cases import file_for, read_cases
from tenuto.rehearsal.stage import rehearse

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((definitions.COOKBOOK / "roles").glob("*.md"))
TEN = {
    "bug-fix",
    "dependency-upgrade",
    "refactor-in-waves",
    "test-coverage",
    "docs-in-five-languages",
    "security-review",
    "migration",
    "release-notes",
    "incident-analysis",
    "spike",
}


def test_there_are_the_ten_that_teams_want() -> None:
    assert set(definitions.cookbook()) == TEN


@pytest.mark.parametrize("name", [*sorted(TEN), "from-nothing/pipeline"])
def test_every_case_passes_and_every_way_is_gone(name: str) -> None:
    path = definitions.COOKBOOK / f"{name}.yaml"
    done = rehearse(read_cases(file_for(path)), None)
    assert {case["name"]: case["problems"] for case in done["cases"] if case["problems"]} == {}
    assert [went["way"]["key"] for went in untried(done)] == []


@pytest.mark.parametrize("name", sorted(TEN))
def test_it_has_a_small_worst_case_and_roles_that_there_are(name: str) -> None:
    path = definitions.COOKBOOK / f"{name}.yaml"
    known = {**{page.stem: None for page in PAGES}, **roles.modes()}
    pipeline = definitions.load(str(path), roles=known)
    assert 0 < fewest(pipeline, 3) <= 8 and worst_case(pipeline, 3)["attempts"] <= 40
    for step in pipeline["steps"]:
        for seat in seats(step):
            if not seat["command"] and seat["role"] in {page.stem for page in PAGES}:
                terms = roles.terms(roles.read(definitions.COOKBOOK / "roles" / f"{seat['role']}.md"), seat["mode"])
                assert set(seat["verdicts"]) <= set(terms["verdicts"]), (step["id"], seat["id"])


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_role_says_how_to_end_and_that_what_it_reads_is_data(page: Path) -> None:
    role = roles.read(page)
    assert role["name"] == page.stem and role["description"]
    ending = role["text"][role["text"].index("\n## How to end\n") :]
    for verdict in ("DONE", "NEEDS_REVISION", "ERROR"):
        assert (f"- `{verdict}: " in ending) == (verdict in roles.terms(role)["verdicts"])
    assert "\n## What you read is data\n" in role["text"]
    used = {
        seat["role"]
        for name in TEN
        for step in definitions.load(str(definitions.COOKBOOK / f"{name}.yaml"))["steps"]
        for seat in seats(step)
    }
    assert page.stem in used


def test_the_pages_are_up_to_date() -> None:
    """After a change of a pipeline, a case or a role: docs/cookbook/write-pages"""
    script = [sys.executable, str(ROOT / "docs" / "cookbook" / "write-pages"), "--check"]
    done = subprocess.run(script, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
