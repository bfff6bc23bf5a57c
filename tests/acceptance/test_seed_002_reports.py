"""An aggregator hears what became of every member, and reads this round's reports only; so does whoever comes after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tenuto
from tenuto.core.status import open_ends
from tenuto.engine.begin import start
from tenuto.engine.guided import Work
from tenuto.entrypoints.cli.look import ended
from tests.support.led import Answer, Led
from tests.support.trusting import trust
from tests.unit.engine.conftest import make_repository

if TYPE_CHECKING:
    from tenuto.workspace.settings import Settings

PLAN = {
    "plan.md": "## Wave 1\n- 01-alpha (depends_on: none)\n- 02-beta (depends_on: none)\n",
    "tasks/01-alpha.md": "# Alpha\n",
    "tasks/02-beta.md": "# Beta\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")


def led(
    repository: Path,
    answers: dict[str, Answer],
    files: dict[str, str] | None = None,
    at: str = "",
    settings: Settings | None = None,
) -> Led:
    workspace = tenuto.open(str(repository))
    run = start(workspace, "Add dark mode", "eight-step", at=at)
    made = Led(workspace, run["id"], answers, {**PLAN, **(files or {})}, settings or {})
    made.play()
    return made


def test_the_v_aggregator_hears_that_the_build_failed_and_that_the_others_did_not_run(repository: Path) -> None:
    run = led(repository, {"verification-1-v-build-*": "ERROR: gcc is missing"}, at="verification")
    assert run.data("verification-1-v-aggregator-1", "what the members answered").splitlines() == [
        "v-build: ERROR: gcc is missing",
        "v-tests: did not run in this round",
        "v-tasks: did not run in this round",
        "v-feature: did not run in this round",
    ]


def test_reports_of_an_earlier_round_are_not_handed_over(repository: Path) -> None:
    """Round 1 is complete, in round 2 the build fails twice: nothing of round 1 is handed over as if it were new."""
    run = led(
        repository,
        {
            "verification-1-v-aggregator-1": "NEEDS_REVISION: 01-alpha",
            "verification-2-v-build-*": "",
        },
        at="planning",
    )
    assert {"verification/v-build.md", "verification/v-tests.md"} <= set(run.inputs("verification-1-v-aggregator-1"))
    assert not [path for path in run.inputs("verification-2-v-aggregator-1") if path.startswith("verification/")]


@pytest.mark.parametrize(
    "step, member, aggregator, report",
    [
        ("design-review", "ct-security", "ct-aggregator", "ct-review/ct-security.md"),
        ("verification", "v-tests", "v-aggregator", "verification/v-tests.md"),
        ("review", "r-testing", "r-aggregator", "review/r-testing.md"),
    ],
)
def test_the_file_of_a_member_that_failed_is_not_handed_over_as_its_report(
    repository: Path, step: str, member: str, aggregator: str, report: str
) -> None:
    """It wrote its file, and ended with ERROR: the file may hold anything."""
    run = led(repository, {f"{step}-1-{member}-*": "ERROR: half done"}, at=step)
    assert report not in run.inputs(f"{step}-1-{aggregator}-1")
    assert f"{member}: ERROR: half done" in run.data(f"{step}-1-{aggregator}-1", "what the members answered")


def test_every_member_is_named_with_verdict_and_summary(repository: Path) -> None:
    run = led(repository, {"review-1-r-quality-1": "NEEDS_REVISION: one Major in src/a.py"}, at="review")
    answers = run.data("review-1-r-aggregator-1", "what the members answered").splitlines()
    assert answers[0] == "r-quality: NEEDS_REVISION: one Major in src/a.py"
    assert [line.partition(":")[0] for line in answers] == ["r-quality", "r-security", "r-testing", "r-knowledge"]


def test_synthesis_does_not_read_what_a_failed_researcher_left(repository: Path) -> None:
    run = led(repository, {"research-1-researcher-impact-*": "ERROR: it stopped in the middle"})
    assert "research/impact.md" not in run.inputs("synthesis-1-researcher-1")
    assert "research/patterns.md" in run.inputs("synthesis-1-researcher-1")
    assert "it stopped in the middle" in run.data("synthesis-1-researcher-1", "files that are left out, and why")


def test_the_planner_does_not_replan_from_the_verdict_of_an_earlier_round(repository: Path) -> None:
    """In round 2 the aggregator fails: verifier.md is still round 1's."""
    run = led(
        repository,
        {
            "verification-1-v-aggregator-1": "NEEDS_REVISION: 01-alpha",
            "verification-2-v-aggregator-1": "",
        },
        at="planning",
    )
    assert "verifier.md" in run.inputs("planning-2-planner-1")
    assert "verifier.md" not in run.inputs("planning-3-planner-1")
    assert "v-aggregator" not in run.inputs("planning-3-planner-1")
    assert "verifier.md: ERROR" in run.data("planning-3-planner-1", "files that are left out, and why")


def test_a_file_that_no_member_wrote_is_no_report(repository: Path) -> None:
    old = repository / "docs/feature/add-dark-mode/verification"
    old.mkdir(parents=True)
    (old / "v-old.md").write_text("# From somewhere else\n")
    run = led(repository, {}, at="verification")
    assert "verification/v-old.md" not in run.inputs("verification-1-v-aggregator-1")
    assert "verification/v-tasks.md" in run.inputs("verification-1-v-aggregator-1")


def test_what_the_others_said_still_counts_when_only_one_member_is_asked_again(repository: Path) -> None:
    run = led(repository, {"review-1-r-security-*": "", "review-2-r-security-1": "DONE: fine"}, at="review")
    assert "review/r-quality.md" in run.inputs("review-2-r-aggregator-1")
    assert "r-security: DONE: fine" in run.data("review-2-r-aggregator-1", "what the members answered")


# ---- which items a fix pass runs -------------------------------------------------------------------


FAILING = {
    "a list": "## Actionable Items\n\n1. Fix 01-alpha: it flickers\n",
    "a section beside a finding": "## Findings\n\n- [High] it flickers\n\n## Failing tasks\n\n01-alpha\n",
    "prose": "Task 02-beta is verified. Task 01 fails.\n",
    "states": "| Task | Status |\n|---|---|\n| 01-alpha | incomplete |\n| 02-beta | done |\n",
}


def items_of(run: Led, visit: int) -> list[str]:
    return [work["item"] or "" for name, work in run.handed.items() if name.startswith(f"implementation-{visit}-")]


@pytest.mark.parametrize("form", FAILING)
def test_a_fix_pass_runs_the_items_that_verifier_md_names_as_failing(repository: Path, form: str) -> None:
    """Whatever the form; and the plan is as before."""
    asks: dict[str, Answer] = {"verification-1-v-aggregator-1": "NEEDS_REVISION: something is wrong"}
    run = led(repository, asks, {"verifier.md": FAILING[form]}, at="planning")
    assert items_of(run, 2) == ["01-alpha"]


def test_a_fix_pass_runs_the_items_that_only_the_verdict_line_names(repository: Path) -> None:
    said = "NEEDS_REVISION: 1 tasks failed verification — task IDs: 02-beta"
    assert items_of(led(repository, {"verification-1-v-aggregator-1": said}, at="planning"), 2) == ["02-beta"]


def test_a_member_names_the_failing_item_where_the_aggregator_failed(repository: Path) -> None:
    answers: dict[str, Answer] = {
        "verification-1-v-tasks-1": "NEEDS_REVISION: task IDs: 02-beta",
        "verification-1-v-aggregator-1": "",
    }
    assert items_of(led(repository, answers, at="planning"), 2) == ["02-beta"]


def test_where_nothing_is_selected_every_item_runs_again_and_that_is_said(repository: Path) -> None:
    """Verification is not made again over unchanged work."""
    run = led(repository, {"verification-1-v-aggregator-1": "NEEDS_REVISION: it is slow"}, at="planning")
    assert items_of(run, 2) == ["01-alpha", "02-beta"]
    with run.workspace.journal.read() as reader:
        planned = [event for event in reader.events(run.name) if event["type"] == "ItemsPlanned"]
    assert any("nothing was selected" in note for note in planned[1]["notes"]) and not planned[0]["notes"]


# ---- the end ---------------------------------------------------------------------------------------


THREE = {
    "plan.md": "## Wave 1\n- 01-alpha (depends_on: none)\n- 02-beta (depends_on: none)\n\n## Wave 2\n- 03-gamma\n",
    "tasks/03-gamma.md": "# Gamma\n",
}


def test_a_run_with_items_that_failed_or_never_started_is_completed_with_failures(repository: Path) -> None:
    """V and R say DONE all the same: the engine knows better, and neither the words nor the exit status hide it."""
    run = led(repository, {"implementation-1-implementer.01-alpha-*": ""}, THREE, at="planning")
    record = run.workspace.load(run.name)
    assert record["status"] == "completed"
    assert open_ends(record) == {"failed": ["01-alpha"], "never_started": ["03-gamma"], "not_done": [], "checks": []}
    answer = ended(record)
    lines = [str(line) for line in answer.parts]
    assert answer.status == 1 and lines[0].endswith(": completed with failures")
    assert "  failed: 01-alpha" in lines and "  never started: 03-gamma" in lines


def test_a_verification_that_is_never_content_is_an_open_end_and_a_design_review_is_none(repository: Path) -> None:
    """What the design review asked for was handed on to the planner; what verification found, to nobody."""
    answers: dict[str, Answer] = {
        "design-review-*-ct-aggregator-*": "NEEDS_REVISION: it is too complex",
        "verification-*-v-aggregator-*": "NEEDS_REVISION: 01-alpha",
    }
    run = led(repository, answers, at="design")
    record = run.workspace.load(run.name)
    assert record["status"] == "completed" and open_ends(record)["not_done"] == ["verification"]


def test_a_run_in_which_everything_was_done_has_no_open_ends(repository: Path) -> None:
    run = led(repository, {}, at="planning")
    record = run.workspace.load(run.name)
    assert record["status"] == "completed" and not any(open_ends(record).values())
    assert ended(record).status == 0


def test_a_check_of_the_engine_that_fails_to_the_end_is_an_open_end(repository: Path) -> None:
    (repository / ".tenuto/config.yaml").write_text("checks:\n  tests: 'false'\n")
    trust(repository)
    run = led(repository, {}, at="planning", settings={"checks": {"tests": "false"}})
    record = run.workspace.load(run.name)
    assert record["status"] == "completed" and open_ends(record)["checks"] == ["false"]


# ---- memory and decisions --------------------------------------------------------------------------


MEMORY = "docs/feature/add-dark-mode/memory.md"


def test_a_folder_in_the_place_of_memory_md_is_moved_away_and_the_run_goes_on(repository: Path) -> None:
    (repository / MEMORY).mkdir(parents=True)
    (repository / MEMORY / "mine.txt").write_text("mine\n")

    def breaks_it(work: Work) -> str:
        (repository / MEMORY).unlink()
        (repository / MEMORY).mkdir()
        return "DONE: ok"

    run = led(repository, {"planning-1-planner-1": breaks_it}, at="planning")
    assert run.workspace.load(run.name)["status"] == "completed" and (repository / MEMORY).is_file()
    assert list(repository.glob(".git/tenuto/quarantine/*/mine.txt"))
    assert " ".join(run.workspace.warnings).count("is a folder; it is kept as") == 2


@pytest.mark.parametrize("content", [b"\x00\xff\xfe binary", b"I have forgotten everything.\n"])
def test_a_memory_that_cannot_be_read_is_kept_aside_and_said(repository: Path, content: bytes) -> None:
    def overwrites_it(work: Work) -> str:
        (repository / MEMORY).write_bytes(content)
        return "DONE: ok"

    run = led(repository, {"planning-1-planner-1": overwrites_it}, at="planning")
    assert run.workspace.load(run.name)["status"] == "completed"
    assert any(path.read_bytes() == content for path in repository.glob(".git/tenuto/quarantine/*"))
    assert "memory.md was damaged" in " ".join(run.workspace.warnings)
    assert (repository / MEMORY).read_text().startswith("# Operational Memory")


def test_lessons_of_the_last_wave_reach_memory(repository: Path) -> None:
    learned: dict[str, Answer] = {
        "implementation-1-implementer.02-beta-1": "Lesson: the build was slow → use the cache\n\nDONE: ok"
    }
    run = led(repository, learned, at="planning")
    lessons = [entry["text"] for entry in run.workspace.load(run.name)["memory"]["lessons"]]
    assert lessons == ["the build was slow → use the cache"]


def test_decisions_of_one_feature_reach_the_next(repository: Path) -> None:
    old = repository / "docs/feature/light-mode/decisions.md"
    old.parent.mkdir(parents=True)
    old.write_text("# Decisions\n\n- Colours are variables.\n")
    run = led(repository, {}, at="review")
    assert "docs/feature/light-mode/decisions.md" in run.handed["review-1-r-knowledge-1"]["inputs"]
    assert old.read_text().endswith("variables.\n")
