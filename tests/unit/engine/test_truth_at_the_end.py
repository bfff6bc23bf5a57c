"""A run in which something failed is `completed with failures` wherever somebody looks, and no exit status hides it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.grounds import PIPELINE
from tests.unit.engine.conftest import Said, reopen

Say = Callable[..., Said]
GOES_ON = PIPELINE.replace("name: small", "name: goes-on").replace(
    "on: {NOT_DONE: halt}", "on: {NOT_DONE: {finish: completed}}"
)
PLAN = """
answers:
  - for: {role: planner}
    files:
      docs/feature/add-it/plan.md: |
        ## Wave 1
        - 01-a (depends_on: none)
        - 02-b (depends_on: none)
"""
FAILING = PLAN + "  - {for: {role: implementer}, reply: 'ERROR: I could not do it'}\n"
WORDS = "completed with failures"


@pytest.fixture
def ended(repository: Path, say: Say, script: Callable[[str], str]) -> Said:
    """A run on a branch of its own whose items all failed."""
    (repository / ".tenuto/pipelines/goes-on.yaml").write_text(GOES_ON)
    return say("run", "Add it", "--pipeline", "goes-on", "--branch", "--agent", script(FAILING), "--json")


def test_a_run_in_which_every_item_failed_is_no_success_for_a_ci_job(ended: Said, say: Say, repository: Path) -> None:
    assert ended.status == 1 and ended.data["status"] == WORDS
    assert ended.data["open_ends"]["failed"] == ["01-a", "02-b"]
    assert say("status", "--exit-code").status == 1
    assert say("status", "--json").data["status"] == say("status", "--json").data["view"]["run"]["status"] == WORDS
    assert f"add-it: {WORDS}" in say("status").out
    assert reopen(repository).load("add-it")["status"] == "completed", "rules and state files keep to the pipeline"


def test_lists_and_figures_do_not_count_it_as_well_done(ended: Said, say: Say) -> None:
    assert [one["status"] for one in say("list", "--json").data["runs"]] == [WORDS]
    assert say("list", "--status", "completed", "--json").data["runs"] == []
    assert [one["id"] for one in say("list", "--status", WORDS, "--json").data["runs"]] == ["add-it"]


def test_the_pull_request_text_the_commit_and_the_page_say_it(ended: Said, say: Say, repository: Path) -> None:
    text = (repository / "docs/feature/add-it/pull-request.md").read_text()
    assert WORDS in text and "01-a" in text and "## Not done" in text
    assert "see the commits" not in text, "there are none"
    assert WORDS in (repository / "docs/feature/add-it/summary.md").read_text()
    page = say("page", "add-it").out
    assert WORDS in page


def test_a_run_in_which_everything_was_done_is_completed(
    repository: Path, say: Say, script: Callable[[str], str]
) -> None:
    (repository / ".tenuto/pipelines/goes-on.yaml").write_text(GOES_ON)
    done: Any = say("run", "Add it", "--pipeline", "goes-on", "--agent", script(PLAN), "--json")
    assert done.status == 0 and done.data["status"] == "completed"
