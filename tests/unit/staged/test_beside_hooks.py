"""Shell hooks of the system that this state comes from lead the task beside us: they move on when an output lies in
phases/, write nothing into `files`, delete reviews that failed, and begin the next task in the same file."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest

from tenuto.errors import Refused
from tenuto.views.staged_document import OUTPUTS, PROFILES
from tests.unit.staged.conftest import APPROVED, REJECTED, Repository


def agent_writes(repository: Repository, phase: str, content: Any = None) -> None:
    """An agent puts its output into phases/ and tells nobody."""
    name = OUTPUTS[phase]
    usual: Any = APPROVED if "review" in name else {"done": True}
    text = json.dumps(content or usual) if name.endswith(".json") else f"# {phase}\n"
    (repository.phases / name).write_text(text)


def hook_moves_on(repository: Repository) -> None:
    """What the hook does behind every agent: the output is there, so the next phase begins."""
    state = repository.state
    here = next(entry for entry in state["schedule"] if entry["phase"] == state["currentPhase"])
    assert (repository.phases / OUTPUTS[here["phase"]]).exists()
    state["stages"][here["stage"]].setdefault("phases", {}).setdefault(here["phase"], {})["status"] = "completed"
    at = state["schedule"].index(here)
    if at + 1 < len(state["schedule"]):
        following = state["schedule"][at + 1]
        state |= {"currentPhase": following["phase"], "currentStage": following["stage"]}
    else:
        state["status"] = "completed"
    repository.write({**state, "updatedAt": "2026-01-29T10:15:00Z"})


def walk_as_hook(repository: Repository, phase: str) -> None:
    while repository.state["currentPhase"] != phase:
        agent_writes(repository, repository.state["currentPhase"])
        hook_moves_on(repository)


def refused(repository: Repository) -> Refused:
    before = repository.file.read_bytes()
    with pytest.raises(Refused) as refusal:
        repository.staged.read()
    assert refusal.value.code == "foreign-edit" and repository.file.read_bytes() == before
    return refusal.value


# ---- they move on --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_hooks_that_record_nothing_cross_every_stage(repository: Repository, profile: str) -> None:
    repository.staged.init("task", pipelineProfile=profile)
    for phase in PROFILES[profile]:
        assert repository.staged.read()["currentPhase"] == phase
        agent_writes(repository, phase)
        hook_moves_on(repository)
    state = repository.staged.read()
    assert state["status"] == "completed"
    asked = {name for gate in state["gates"].values() for name in gate["required"]}
    assert {path.rpartition("/")[2] for path in state["files"].values()} >= asked


@pytest.mark.parametrize("profile", PROFILES)
def test_a_whole_task_that_hooks_led_is_taken_in_at_once(repository: Repository, profile: str) -> None:
    repository.staged.init("task", pipelineProfile=profile)
    while repository.state["status"] != "completed":
        agent_writes(repository, repository.state["currentPhase"])
        hook_moves_on(repository)
    assert repository.staged.read()["status"] == "completed"


def test_an_output_that_is_missing_is_recorded_afterwards_and_mends_the_move(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    walk_as_hook(repository, "2.1")
    (repository.phases / "0-explore.md").unlink()
    refusal = refused(repository)
    assert "missing 0-explore.md" in refusal.message
    assert "tenuto staged record-output 0" in refusal.hint and "tenuto repair --restore" in refusal.hint
    with pytest.raises(Refused):
        repository.staged.record_output("2.1", {"not": "this one"})
    assert repository.staged.record_output("0", "# found\n")["phase"] == "0"
    assert repository.staged.read()["currentPhase"] == "2.1"


def test_a_review_that_counts_for_the_hook_only_is_refused_by_name_and_a_clear_one_mends_it(
    repository: Repository,
) -> None:
    """`approved` with an issue at minBlockSeverity."""
    repository.staged.init("task", pipelineProfile="minimal")
    walk_as_hook(repository, "2.3")
    agent_writes(repository, "2.3", {"status": "approved", "issues": [{"severity": "LOW", "issue": "a name"}]})
    hook_moves_on(repository)
    refusal = refused(repository)
    assert "phase 2.3" in refusal.message and "LOW or worse" in refusal.message
    assert "tenuto staged record-output 2.3" in refusal.hint
    assert repository.staged.record_output("2.3", APPROVED)["phase"] == "2.3"
    assert repository.staged.read()["currentPhase"] == "4.2"


def test_the_review_that_mended_a_move_is_none_of_the_phase_that_it_led_to(repository: Repository) -> None:
    """The hook's text lies in the file of 2.3 while the task stands in 4.2: it is still the output of 2.3."""
    repository.staged.init("task", pipelineProfile="minimal")
    walk_as_hook(repository, "2.3")
    agent_writes(repository, "2.3", {"status": "approved", "issues": [{"severity": "LOW", "issue": "a name"}]})
    hook_moves_on(repository)
    repository.staged.record_output("2.3", APPROVED)
    assert "4.2" not in repository.staged.read()["files"]
    with pytest.raises(Refused, match="review"):
        repository.staged.advance()
    assert repository.staged.read()["currentPhase"] == "4.2"


def test_a_review_that_is_recorded_before_its_phase_lets_no_hook_pass(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    for phase in ("0", "2.1", "2.3"):
        repository.output(phase)
    repository.edit(currentPhase="4.2", currentStage="FINAL")
    assert "2.3-impl-review.json was recorded before phase 2.3 began" in refused(repository).message
    agent_writes(repository, "2.3", {**APPROVED, "summary": "of this code"})
    assert repository.staged.read()["currentPhase"] == "4.2"


def test_a_review_that_is_older_than_the_work_lets_no_hook_pass(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    agent_writes(repository, "2.3")
    long_ago = time.time() - 60
    os.utime(repository.phases / OUTPUTS["2.3"], (long_ago, long_ago))
    walk_as_hook(repository, "2.3")
    hook_moves_on(repository)
    assert "2.3-impl-review.json is older than 2.1-tasks.json" in refused(repository).message


def test_after_our_restart_no_hook_passes_on_what_was_there_before(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    repository.go_to("4.2")
    repository.staged.restart("IMPLEMENT", "the code is wrong")
    assert repository.state["currentPhase"] == "2.1"
    assert os.listdir(repository.phases) == ["0-explore.md"]


def test_a_restart_by_a_hook_is_counted_and_its_numbers_are_kept(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    walk_as_hook(repository, "2.3")
    for phase in ("2.1", "2.3"):
        (repository.phases / OUTPUTS[phase]).unlink(missing_ok=True)
    state = repository.state
    state["stages"]["IMPLEMENT"] |= {"stageRestarts": 1, "phases": {"2.1": {}, "2.3": {}}}
    entry = {"stage": "IMPLEMENT", "fromPhase": "2.3", "toPhase": "2.1", "restart": 1, "maxRestarts": 3, "reason": "no"}
    repository.write({**state, "currentPhase": "2.1", "restartHistory": [{**entry, "at": "2026-01-29T10:15:00Z"}]})
    shown = repository.staged.read()
    assert shown["currentPhase"] == "2.1" and shown["stages"]["IMPLEMENT"]["stageRestarts"] == 1
    assert shown["restartHistory"][0].items() >= {**entry}.items()


# ---- they delete ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("edited", [True, False])
def test_a_review_that_they_delete_stays_deleted(repository: Repository, edited: bool) -> None:
    repository.staged.init("task", pipelineProfile="minimal", supplementaryPolicy="never")
    repository.go_to("2.3")
    repository.output("2.3", REJECTED)
    (repository.phases / OUTPUTS["2.3"]).unlink()
    if edited:
        repository.edit(supplementaryRun={"2.3": True})
    repository.staged.read()
    repository.staged.update({"webSearch": False})
    assert not (repository.phases / OUTPUTS["2.3"]).exists()
    assert repository.staged.advance() == {"passed": False, "missing": ["2.3-impl-review.json"]}


# ---- they read our decisions ---------------------------------------------------------------------------


def test_what_we_decide_about_a_review_is_written_as_the_hooks_write_it(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal", reviewPolicy={"maxFixAttempts": 1})
    repository.go_to("2.3")
    answer = repository.output("2.3", REJECTED)
    assert answer["review"]["next"] == "supplementary" and repository.state["supplementaryRun"] == {"2.3": True}
    assert not (repository.phases / OUTPUTS["2.3"]).exists(), "the hook must not take it for the second review"
    assert json.loads((repository.root / answer["setAside"] / OUTPUTS["2.3"]).read_text()) == REJECTED
    repository.output("2.3", REJECTED)
    assert repository.state["reviewFix"] == {
        "phase": "2.3",
        "stage": "IMPLEMENT",
        "attempt": 1,
        "maxAttempts": 1,
        "issues": REJECTED["issues"],
    }
    assert repository.output("2.3", REJECTED)["review"]["next"] == "restart"
    state = repository.state
    assert state["stages"]["IMPLEMENT"]["stageRestarts"] == 1
    assert "reviewFix" not in state and "supplementaryRun" not in state
    assert state["restartHistory"][0].items() >= {"fromPhase": "2.3", "toPhase": "2.1", "maxRestarts": 3}.items()
    repository.go_to("4.2")
    assert repository.state.get("supplementaryRun", {}) == {}


def test_our_coverage_rounds_are_counted_as_the_hooks_count_them(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="standard")
    repository.go_to("3.5")
    repository.output("3.5", {**APPROVED, "coverage": {"current": 71, "threshold": 90, "met": False}})
    state = repository.state
    assert state["currentPhase"] == "3.3"
    loop = {"currentCoverage": 71.0, "threshold": 90, "iteration": 1, "maxIterations": 20}
    assert state["coverageLoop"].items() >= loop.items()
    assert not any((repository.phases / OUTPUTS[phase]).exists() for phase in ("3.3", "3.4", "3.5"))


# ---- failures, and the next task -----------------------------------------------------------------------


def test_a_retry_of_the_failed_phase_by_others_goes_on(started: Repository) -> None:
    started.staged.record_failure("agent died")
    started.edit(status="in_progress", failure=None)
    state = started.staged.read()
    assert (state["status"], state["failure"], state["currentPhase"]) == ("in_progress", None, "0")


def test_times_that_others_give_are_kept(started: Repository) -> None:
    failure = {"phase": "0", "error": "died", "failedAt": "2026-01-29T10:15:00Z", "context": None}
    started.edit(status="failed", failure=failure)
    assert started.staged.read()["failure"] == failure
    started.edit(status="in_progress", failure=None)
    started.staged.read()
    started.edit(status="stopped", stoppedAt="2026-01-30T08:00:00Z")
    assert started.staged.read()["stoppedAt"] == "2026-01-30T08:00:00Z"


NEXT: Any = {
    "version": 2,
    "plugin": "subagents",
    "task": "The next task",
    "status": "in_progress",
    "currentStage": "EXPLORE",
    "currentPhase": "0",
    "pipelineProfile": "minimal",
    "schedule": [{"phase": "0", "stage": "EXPLORE", "name": "Explore", "type": "dispatch"}],
    "stages": {"EXPLORE": {"status": "in_progress", "phases": {}}},
    "startedAt": "2026-02-01T08:00:00Z",
}


@pytest.mark.parametrize("end", ["completed", "failed"])
def test_a_task_that_others_begin_after_the_last_one_ended_is_taken_over(repository: Repository, end: str) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    if end == "completed":
        while repository.state["status"] == "in_progress":
            repository.output(repository.state["currentPhase"])
            repository.staged.advance()
    else:
        repository.staged.record_failure("no")
    repository.write(NEXT)
    state = repository.staged.update({"webSearch": False})
    assert (state["task"], state["status"], state["currentPhase"]) == ("The next task", "in_progress", "0")
    assert state["files"] == {} and state["restartHistory"] == []
    with pytest.raises(Refused) as refusal:
        repository.staged.init("Another")
    assert refusal.value.code == "unfinished" and "The next task" in refusal.value.message


def test_a_task_that_others_begin_over_an_unfinished_one_is_refused_by_name(started: Repository) -> None:
    started.write(NEXT)
    refusal = refused(started)
    assert "another task, 'The next task'" in refusal.message and "'Add dark mode' is in_progress" in refusal.message
