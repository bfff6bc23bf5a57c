"""`tenuto plan`: everything that can be known before launch, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.core.budget import worst_case
from tenuto.entrypoints.cli.plan import outline
from tenuto.knowledge import definitions

Say = Callable[..., Any]
Script = Callable[..., str]
PLAN = """\
# Plan

## Wave 1

- 01-a (depends_on: none)
- 02-b (depends_on: 01-a)
"""


def test_planning_starts_and_writes_nothing(say: Say, repository: Path) -> None:
    before = sorted(path for path in repository.rglob("*"))
    told = say("plan", "Add dark mode")
    assert told.status == 0 and "nothing is known yet" in told.out
    assert sorted(path for path in repository.rglob("*")) == before


def test_the_worst_case_is_the_bound_of_the_pipeline(say: Say, repository: Path) -> None:
    data = say("plan", "--items", "3", "--json").data
    bound = worst_case(definitions.load("eight-step"), 3, switches={"approval": False})
    assert data["worst_case"] == bound
    assert (
        f"At most {bound['attempts']} attempts ({bound['starts']} starts) for 3 items"
        in say("plan", "--items", "3").out
    )


def test_a_seat_is_started_at_most_six_times(say: Say, repository: Path) -> None:
    """Two retries inside an attempt, and one of the orchestrator's own: 3 starts x 2 attempts."""
    research = say("plan", "--json").data["worst_case"]["steps"][0]
    assert (research["step"], research["attempts"], research["starts"]) == ("research", 8, 24)


def test_what_lost_attempts_can_add_is_told(say: Say, repository: Path) -> None:
    """Implementers and two aggregators are not retried when they fail, and made again when they are lost."""
    data = say("plan", "--items", "3", "--json").data
    with_losses = worst_case(definitions.load("eight-step"), 3, losses=True, switches={"approval": False})
    assert data["lost"] == with_losses["attempts"] - data["worst_case"]["attempts"] > 0
    assert f"and {data['lost']} more, if so many are lost" in say("plan", "--items", "3").out
    assert "are lost" not in say("plan", "--pipeline", "poc").out


def test_the_graph_shows_every_step_and_route(say: Say, repository: Path) -> None:
    shown = say("plan").out
    for words in (
        "o research        4 x researcher (architecture, impact, dependencies, patterns) (quorum 2)",
        (
            "- post-research   a person decides: Research is done. Go on to the specification?  (left out: "
            "approval is off)"
        ),
        "NEEDS_REVISION: back to design > design-review, at most 1 x",
        "then on to planning, findings as constraints",
        "ERROR: because of r-security: back to review (only r-security), at most 1 x",
        "r-security [blocks]",
    ):
        assert words in shown, words
    assert "? post-research" in say("plan", "--approval").out


@pytest.mark.parametrize("name", definitions.shipped())
def test_every_shipped_pipeline_can_be_drawn(name: str) -> None:
    pipeline = definitions.load(name)
    shown = "\n".join(outline(pipeline, dict.fromkeys(pipeline["switches"], True)))
    assert all(f" {step['id']} " in shown for step in pipeline["steps"])


def test_a_plan_that_exists_is_counted_and_its_oddities_are_said(say: Say, repository: Path) -> None:
    (repository / "plan.md").write_text(PLAN)
    told = say("plan", "--plan-file", "plan.md")
    assert "2 items in 2 waves\n  1: 01-a\n  2: 02-b\n" in told.out
    assert "note: 02-b cannot stay in wave 1: it waits for 01-a, so wave 2" in told.out
    (repository / "plan.md").write_text(PLAN.replace("none", "02-b"))
    assert "wait for each other: 01-a -> 02-b -> 01-a" in say("plan", "--plan-file", "plan.md").err
    assert say("plan", "--plan-file", "nowhere.md").status == 3
    assert say("plan", "--plan-file", "plan.md", "--items", "3").status == 2


def test_what_it_may_cost_comes_from_earlier_runs_of_this_repository(say: Say, script: Script) -> None:
    agent = script("answers:\n  - {for: {step: look}, usage: {tokens: 100}}\n  - {usage: {tokens: 40}}\n")
    for name in ("one", "two"):
        assert say("run", "Add dark mode", "--pipeline", "small", "--name", name, "--agent", agent).status == 0
    data = say("plan", "--pipeline", "small", "--json").data["forecast"]
    assert (data["runs"], data["attempts"]) == (2, 6)
    assert (data["likely"]["attempts"], data["likely"]["tokens"]) == (3, 240)
    assert data["worst"]["tokens"] == 4 * 100 + 2 * 40, "each attempt of the bound as dear as the dearest of its step"
    assert data["likely"]["micro_usd"] is None and data["worst"]["micro_usd"] is None, "unknown is not nothing"
    told = say("plan", "--pipeline", "small", "--limit", "attempts=5").out
    assert "from 6 attempts of 2 earlier runs" in told
    assert "limit of 5 attempts: the worst case would pause there" in told


def test_steps_that_never_ran_are_named(say: Say, script: Script) -> None:
    assert say("run", "Add dark mode", "--pipeline", "small", "--agent", script()).status == 0
    data = say("plan", "--json").data["forecast"]
    assert "research" not in data["unknown"], "its role has worked before"
    assert "planning" in data["unknown"] and "nothing is known about: spec" in say("plan").out


def test_a_wrong_definition_is_refused_with_every_problem_as_file_and_line(say: Say, repository: Path) -> None:
    own = repository / ".tenuto" / "pipelines" / "small.yaml"
    own.write_text(own.read_text().replace("role: designer", "role: desinger").replace("quorum: 1", "quorum: 5"))
    told = say("plan", "--pipeline", "small")
    assert told.status == 2
    assert "small.yaml:10:" in told.err and "small.yaml:13:" in told.err, told.err


def test_an_unknown_pipeline_or_switch_is_named(say: Say, repository: Path) -> None:
    assert say("plan", "--pipeline", "nine-step", "--json").error["code"] == "no-pipeline"
    assert "switches: approval" in say("plan", "--switch", "approvals=on").err


def test_a_plan_is_explained_line_by_line(say: Say, repository: Path) -> None:
    """Each line with what was read from it, or why nothing was; then the items. Nothing is started."""
    (repository / "plan.md").write_text(f"{PLAN}\n- 03-c depends on luck\n")
    shown = say("plan", "--plan-file", "plan.md", "--explain").out
    assert "    5  - 01-a (depends_on: none)\n         = item 01-a (wave 1)\n" in shown
    assert "         = 02-b waits for 01-a\n" in shown
    assert "    8  - 03-c depends on luck\n         - text\n" in shown
    assert "2 items in 2 waves" in shown
    data = say("plan", "--plan-file", "plan.md", "--explain", "--json").data
    assert [item["id"] for item in data["items"]] == ["01-a", "02-b"] and data["problem"] == ""
    assert data["lines"][2] == {
        "file": "",
        "line": 5,
        "text": "- 01-a (depends_on: none)",
        "read": ["item 01-a (wave 1)"],
        "ignored": "",
    }


def test_a_task_file_is_explained_by_what_was_taken_from_it(say: Say, repository: Path) -> None:
    (repository / "plan.md").write_text(PLAN)
    (repository / "tasks").mkdir()
    (repository / "tasks" / "02-b.md").write_text("# B\n\nLong story.\n\n**Files:** `src/b.py`\n")
    (repository / "tasks" / "09-old.md").write_text("# Old\n\n**Files:** `src/old.py`\n")
    told = say("plan", "--plan-file", "plan.md", "--explain").out
    assert "\ntasks/02-b.md\n    5  **Files:** `src/b.py`\n         = files of 02-b: src/b.py\n" in told
    assert "src/old.py" not in told
    assert "note: tasks/09-old.md is not listed in the plan; it is not run" in told


def test_a_plan_that_cannot_be_carried_out_is_explained_all_the_same(say: Say, repository: Path) -> None:
    """With the reason, and the exit status of a refusal."""
    (repository / "plan.md").write_text(PLAN.replace("none", "02-b"))
    told = say("plan", "--plan-file", "plan.md", "--explain")
    assert told.status == 4 and "= 01-a waits for 02-b" in told.out
    assert "this plan cannot be carried out: these items wait for each other: 01-a -> 02-b -> 01-a" in told.out
    (repository / "plan.md").write_text("# Plan\n\nWe will do it well.\n")
    told = say("plan", "--plan-file", "plan.md", "--explain")
    assert told.status == 4 and "no item was found in plan.md" in told.out
    (repository / "plan.md").write_text("```tenuto-plan\n- id: 01-a\n```\n")
    told = say("plan", "--plan-file", "plan.md", "--explain")
    assert told.status == 4 and "plan.md:2: this task has no wave; add 'wave: 1'" in told.out


def test_explain_needs_a_plan(say: Say, repository: Path) -> None:
    told = say("plan", "--explain")
    assert told.status == 2 and "add --plan-file FILE" in told.err
