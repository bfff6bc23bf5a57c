"""Other programs write state.json: what is allowed becomes part of the run, what is not is named, refused and left
there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenuto.errors import Refused
from tests.unit.staged.conftest import APPROVED, REJECTED, Repository

REAL_KEYS: Any = {
    "plugin": "subagents",
    "pipeline": "subagents-dispatch",
    "loopIteration": 3,
    "reviewFix": {"phase": "1.3", "attempt": 1, "issues": [{"severity": "HIGH"}]},
    "supplementaryRun": {"1.3": True},
    "coverageLoop": {"iteration": 2, "history": [80, 85]},
    "codexFallback": {"reason": "timeout"},
    "exploreAggregator": "subagents:explore-aggregator",
    "planAggregator": "subagents:plan-aggregator",
}


def refused(repository: Repository) -> Refused:
    """The edit stands in the file, and every command says why it does not go on."""
    before, events = repository.file.read_bytes(), repository.types()
    with pytest.raises(Refused) as refusal:
        repository.staged.update({"webSearch": False})
    assert refusal.value.code == "foreign-edit" and ".agents/tmp/state.json" in refusal.value.message
    assert repository.file.read_bytes() == before and repository.types() == events
    return refusal.value


# ---- kept --------------------------------------------------------------------------------------------


def test_every_key_of_real_files_is_kept_and_shown_again(started: Repository) -> None:
    stages = started.state["stages"]
    stages["PLAN"]["stageRestarts"] = 1
    stages["IMPLEMENT"]["phases"]["2.1"] = {"taskCount": 4}
    started.edit(**REAL_KEYS, stages=stages)
    started.output("0")
    started.staged.advance()
    state = started.state
    assert {key: state[key] for key in REAL_KEYS} == REAL_KEYS
    assert state["stages"]["PLAN"]["stageRestarts"] == 1
    assert state["stages"]["IMPLEMENT"]["phases"]["2.1"] == {"taskCount": 4}
    assert state["currentPhase"] == "1.1"
    assert "ForeignEditAbsorbed" in started.types()


def test_a_key_that_they_remove_is_gone(started: Repository) -> None:
    started.edit(reviewFix={"a": 1, "b": 2}, loopIteration=1)
    started.staged.update({"webSearch": False})
    state = started.state
    del state["reviewFix"]["a"], state["loopIteration"]
    started.write(state)
    started.staged.update({"webSearch": True})
    assert started.state["reviewFix"] == {"b": 2} and "loopIteration" not in started.state


def test_settings_that_they_change_are_merged_with_ours(started: Repository) -> None:
    theirs = started.state
    started.staged.update({"codexTimeout": {"testPhases": 1}})
    theirs["codexTimeout"]["maxRetries"] = 5
    theirs["worktree"] = {"path": "/repo--subagent", "branch": "subagents/x", "createdAt": "2026-01-29T10:00:00Z"}
    started.write(theirs)
    started.staged.update({"webSearch": False})
    state = started.state
    assert (state["codexTimeout"]["testPhases"], state["codexTimeout"]["maxRetries"]) == (1, 5)
    assert state["worktree"]["branch"] == "subagents/x" and state["webSearch"] is False


def test_counts_of_hooks_are_shown(started: Repository) -> None:
    stages = started.state["stages"]
    stages["EXPLORE"]["agentCount"] = 4
    started.edit(stages=stages, compaction={"lastCompactedAt": "2026-01-29T10:00:00Z", "history": [{"phase": "0"}]})
    state = started.staged.update({"webSearch": False})
    assert state["stages"]["EXPLORE"]["agentCount"] == 4
    assert state["compaction"] == {"lastCompactedAt": "2026-01-29T10:00:00Z", "history": [{"phase": "0"}]}


def test_labels_that_follow_from_the_run_are_ours_again(started: Repository) -> None:
    stages = started.state["stages"]
    stages["PLAN"]["status"] = "completed"
    started.edit(stages=stages, updatedAt="1999-01-01T00:00:00Z")
    state = started.staged.update({"webSearch": False})
    assert state["stages"]["PLAN"]["status"] == "pending" and state["updatedAt"] > "2000"


# ---- position ----------------------------------------------------------------------------------------


def test_a_move_forward_is_absorbed_when_every_gate_on_the_way_passes(started: Repository) -> None:
    for phase in ("0", "1.1", "1.2"):
        started.output(phase)
    (started.phases / "1.3-plan-review.json").write_text(json.dumps(APPROVED))
    started.edit(currentPhase="2.1", currentStage="IMPLEMENT")
    state = started.staged.update({"webSearch": False})
    assert (state["currentPhase"], state["currentStage"]) == ("2.1", "IMPLEMENT")
    assert state["stages"]["PLAN"]["status"] == "completed"
    assert started.types().count("StepStarted") == 5


def test_what_they_recorded_and_moved_in_one_write_counts(started: Repository) -> None:
    started.phases.mkdir(exist_ok=True)
    (started.phases / "0-explore.md").write_text("found\n")
    started.edit(currentPhase="1.1", currentStage="PLAN", files={"0": ".agents/tmp/phases/0-explore.md"})
    started.staged.update({"webSearch": False})
    assert started.state["currentPhase"] == "1.1"


@pytest.mark.parametrize("missing", ["0-explore.md", "1.2-plan.md", "1.3-plan-review.json"])
def test_a_move_through_a_closed_gate_is_refused(started: Repository, missing: str) -> None:
    for phase in ("0", "1.1", "1.2"):
        started.output(phase)
    (started.phases / "1.3-plan-review.json").write_text(json.dumps(APPROVED))
    (started.phases / missing).unlink()
    started.edit(currentPhase="2.1", currentStage="IMPLEMENT")
    assert missing in refused(started).message


def test_a_move_past_a_review_that_is_not_approved_is_refused(started: Repository) -> None:
    started.go_to("1.3")
    started.output("1.3", REJECTED)
    started.edit(currentPhase="2.1", currentStage="IMPLEMENT")
    refused(started)


@pytest.mark.parametrize(
    "changes",
    [
        {"currentPhase": "9.9"},
        {"currentPhase": "0", "currentStage": "EXPLORE"},
        {"currentStage": "FINAL"},
        {"status": "completed"},
        {"status": "pending"},
        {"status": "on fire"},
        {"task": "Something else"},
        {"version": 1},
        {"version": "2"},
        {"pipelineProfile": "minimal"},
        {"schedule": []},
        {"gates": {}},
        {"failure": {"phase": "1.1", "error": "no"}},
        {"restartHistory": [{"stage": "TEST"}]},
        {"restartHistory": ["PLAN"]},
    ],
)
def test_what_is_not_theirs_to_change_is_refused_by_name(started: Repository, changes: Any) -> None:
    started.go_to("1.1")
    started.edit(**changes)
    refusal = refused(started)
    assert any(word in refusal.message for word in (*changes, "phase", "restart"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', '{"a": 1, "a": 2}', "\0" * 10 + "x", "{" * 100_000])
def test_a_broken_rewrite_is_named_refused_and_left(started: Repository, text: str) -> None:
    started.file.write_text(text)
    if not text:
        started.staged.update({"webSearch": False})  # emptied by a crash: written anew
        assert started.state["webSearch"] is False
        return
    refused(started)


def test_coverage_rounds_of_a_hook_are_counted(started: Repository) -> None:
    started.go_to("3.5")
    started.edit(currentPhase="3.3", coverageLoop={"iteration": 1})
    state = started.staged.update({"webSearch": False})
    assert state["currentPhase"] == "3.3" and state["coverageLoop"] == {"iteration": 1}
    assert started.workspace.load("add-dark-mode")["routes"] == {"3.5.coverage": 1}


def test_a_restart_by_a_hook_is_a_restart(started: Repository) -> None:
    started.go_to("1.3")
    entry = {"stage": "PLAN", "reason": "review failed", "fromPhase": "1.3"}
    started.edit(restartHistory=[entry], status="restarting", currentPhase="1.1")
    state = started.staged.update({"webSearch": False})
    assert (state["currentPhase"], state["status"]) == ("1.1", "in_progress")
    assert state["restartHistory"][0].items() >= entry.items()
    assert list(state["files"]) == ["0"] and state["stages"]["PLAN"]["restartCount"] == 1


# ---- status ------------------------------------------------------------------------------------------


def test_they_may_stop_and_go_on(started: Repository) -> None:
    started.edit(status="stopped", stoppedAt="2026-01-29T10:00:00Z")
    assert started.staged.read()["status"] == "stopped"
    started.edit(status="in_progress")
    assert started.staged.read()["status"] == "in_progress"


def test_they_may_block_and_unblock(started: Repository) -> None:
    stages = started.state["stages"]
    stages["EXPLORE"]["blockReason"] = "needs a decision"
    started.edit(status="blocked", stages=stages)
    state = started.staged.read()
    assert state["status"] == "blocked" and state["stages"]["EXPLORE"]["blockReason"] == "needs a decision"
    started.edit(status="in_progress")
    assert started.staged.read()["status"] == "in_progress"


def test_they_may_record_a_failure(started: Repository) -> None:
    failure = {"phase": "0", "error": "agent died", "failedAt": "2026-01-29T10:15:00Z", "context": {"tries": 2}}
    started.edit(status="failed", failure=failure)
    state = started.staged.read()
    assert state["status"] == "failed"
    assert (state["failure"]["error"], state["failure"]["context"]) == ("agent died", {"tries": 2})


def test_completed_counts_at_the_end_only(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    repository.go_to("4.3")
    repository.edit(status="completed")
    assert repository.staged.read()["status"] == "completed"


# ---- reviews -----------------------------------------------------------------------------------------


def test_a_review_result_of_a_hook_follows_the_policy(started: Repository) -> None:
    started.go_to("1.3")
    stages = started.state["stages"]
    stages["PLAN"]["phases"]["1.3"] = {"status": "in_progress", "fixAttempts": 3, "reviewResult": REJECTED}
    started.edit(stages=stages)
    phase = started.staged.read()["stages"]["PLAN"]["phases"]["1.3"]
    assert phase["fixAttempts"] == 3 and phase["reviewResult"] == REJECTED
    stages["PLAN"]["phases"]["1.3"] |= {"fixAttempts": 1}
    started.edit(stages=stages)
    assert refused(started).details["reason"] == "counter-back"


def test_an_approval_of_a_hook_opens_the_gate_only_with_the_file(started: Repository) -> None:
    started.go_to("1.3")
    stages = started.state["stages"]
    stages["PLAN"]["phases"]["1.3"]["reviewResult"] = APPROVED
    started.edit(stages=stages)
    assert started.staged.advance() == {"passed": False, "missing": ["1.3-plan-review.json"]}
    (started.phases / "1.3-plan-review.json").write_text(json.dumps(APPROVED))
    started.edit(files={**started.state["files"], "1.3": ".agents/tmp/phases/1.3-plan-review.json"})
    assert started.staged.advance()["currentPhase"] == "2.1"


# ---- at the same time ----------------------------------------------------------------------------------


def test_a_hook_that_moves_on_from_an_older_version_does_not_move_us_back(started: Repository) -> None:
    """It read phase 0 and writes 1.1; meanwhile two of our commands went to 1.2. Its counter counts, its move is
    old."""
    theirs = started.state
    started.go_to("1.2")
    started.write({**theirs, "currentPhase": "1.1", "currentStage": "PLAN", "loopIteration": 1})
    state = started.staged.update({"webSearch": False})
    assert (state["currentPhase"], state["loopIteration"]) == ("1.2", 1)


def test_a_hook_that_writes_after_the_end_changes_no_end(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    repository.go_to("4.3")
    theirs = repository.state
    repository.output("4.3")
    repository.staged.advance()
    repository.write({**theirs, "status": "stopped", "loopIteration": 1})
    state = repository.staged.read()
    assert (state["status"], state["loopIteration"]) == ("completed", 1)


def test_a_move_through_a_closed_gate_is_refused_from_an_older_version_too(started: Repository) -> None:
    theirs = started.state
    started.go_to("1.2")
    started.write({**theirs, "currentPhase": "2.1", "currentStage": "IMPLEMENT"})
    refused(started)
