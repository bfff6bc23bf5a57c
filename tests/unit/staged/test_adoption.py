"""A state.json from before Tenuto goes on where it is; somebody else's file is left alone; a dying writer's .tmp is
recovered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tenuto.errors import Refused, TenutoError
from tests.unit.staged.conftest import APPROVED, Repository
from tests.unit.staged.test_edits import REAL_KEYS

ADOPTED: Any = {
    "version": 2,
    "task": "Rework the login",
    "status": "in_progress",
    "currentStage": "PLAN",
    "currentPhase": "1.3",
    "pipelineProfile": "thorough",
    "codexAvailable": False,
    "ownerPpid": "4711",
    "reviewer": "subagents:claude-reviewer",
    "gates": {"PLAN->IMPLEMENT": {"required": ["1.2-plan.md", "1.3-plan-review.json"], "phase": "1.3"}},
    "stages": {
        "EXPLORE": {"status": "completed", "agentCount": 3},
        "PLAN": {
            "status": "in_progress",
            "phases": {"1.3": {"status": "in_progress", "fixAttempts": 2, "dispatchRetries": 1, "note": "kept"}},
            "restartCount": 1,
            "stageRestarts": 1,
        },
    },
    "reviewPolicy": {"minBlockSeverity": "MEDIUM", "maxFixAttempts": 3, "maxStageRestarts": 1},
    "restartHistory": [{"stage": "PLAN", "reason": "review", "restartedAt": "2026-01-28T09:00:00Z"}],
    "files": {"0": ".agents/tmp/phases/0-explore.md", "1.2": ".agents/tmp/phases/1.2-plan.md"},
    "startedAt": "2026-01-28T08:00:00Z",
    **REAL_KEYS,
}


def adopted(repository: Repository, **changes: Any) -> Repository:
    repository.phases.mkdir(parents=True)
    (repository.phases / "0-explore.md").write_text("explored\n")
    (repository.phases / "1.2-plan.md").write_text("planned\n")
    repository.write({**ADOPTED, **changes})
    return repository


def old(repository: Repository, path: Any, text: str) -> None:
    """A file that its writer left a while ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time.time() - 60, time.time() - 60))


# ---- adoption ----------------------------------------------------------------------------------------


def test_a_look_changes_nothing(repository: Repository) -> None:
    adopted(repository)
    before = repository.file.read_bytes()
    assert repository.staged.read() == ADOPTED
    assert repository.file.read_bytes() == before and sorted(os.listdir(repository.root)) == [".agents"]


def test_the_first_command_takes_the_file_over_and_loses_nothing(repository: Repository) -> None:
    adopted(repository)
    state = repository.staged.update({"webSearch": False})
    assert state == repository.state
    for key in ("task", "status", "currentStage", "currentPhase", "ownerPpid", "files", "startedAt", *REAL_KEYS):
        assert state[key] == ADOPTED[key], key
    assert state["stages"]["EXPLORE"] == {"status": "completed", "agentCount": 3}
    plan = state["stages"]["PLAN"]
    assert (plan["status"], plan["restartCount"], plan["stageRestarts"]) == ("in_progress", 1, 1)
    assert plan["phases"]["1.3"].items() >= {"fixAttempts": 2, "dispatchRetries": 1, "note": "kept"}.items()
    assert state["restartHistory"][0].items() >= ADOPTED["restartHistory"][0].items()
    assert len(state["schedule"]) == 15 and "FINAL->COMPLETE" in state["gates"]


@pytest.mark.parametrize("profile", ["huge", ["minimal"], {"minimal": 1}, None])
def test_a_profile_that_there_is_not_means_every_phase(repository: Repository, profile: Any) -> None:
    adopted(repository, pipelineProfile=profile)
    state = repository.staged.update({"webSearch": False})
    assert state["pipelineProfile"] == "thorough" and len(state["schedule"]) == 15


def test_an_adopted_task_goes_on_under_the_rules(repository: Repository) -> None:
    adopted(repository)
    assert repository.staged.advance() == {"passed": False, "missing": ["1.3-plan-review.json"]}
    repository.output("1.3", {**APPROVED, "issues": [{"severity": "LOW"}]})  # its own policy: MEDIUM blocks
    assert repository.staged.advance()["currentPhase"] == "2.1"


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("pending", "pending"),
        ("stopped", "stopped"),
        ("blocked", "blocked"),
        ("completed", "completed"),
        ("failed", "failed"),
        ("done", "completed"),
        ("in-progress", "in_progress"),
        ("restarting", "in_progress"),
    ],
)
def test_statuses_are_understood_in_the_spellings_of_real_files(
    repository: Repository, status: str, shown: str
) -> None:
    adopted(repository, status=status)
    assert repository.staged.update({"webSearch": False})["status"] == shown


def test_a_last_review_that_lies_on_disk_is_judged_again(repository: Repository) -> None:
    """The old system let it pass; the gate at the end does not."""
    adopted(repository, currentStage="FINAL", currentPhase="4.3")
    (repository.phases / "4.2-final-review.json").write_text(json.dumps({"status": "needs_revision"}))
    repository.edit(files={"4.2": ".agents/tmp/phases/4.2-final-review.json"})
    assert repository.staged.advance() == {"passed": False, "missing": ["4.2-final-review.json"]}
    assert repository.staged.restart("FINAL", "again")["currentPhase"] == "4.1"


def test_the_bytes_from_before_are_kept(repository: Repository) -> None:
    adopted(repository)
    before = repository.file.read_bytes()
    repository.staged.update({"webSearch": False})
    from tenuto.encoding import digest
    from tenuto.workspace.objects import stored_version

    assert stored_version(repository.workspace, digest(before)) == before


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"version": 4, "terraform_version": "1.5.0", "serial": 3, "resources": []}),
        json.dumps({"version": 2, "tabs": []}),
        json.dumps({**ADOPTED, "version": 1}),
        json.dumps({**ADOPTED, "version": 3}),
        json.dumps([1, 2]),
        "not json",
        '{"version": 2, "task": "a", "task": "b"}',
    ],
)
def test_somebody_elses_state_file_is_refused_by_name_and_untouched(repository: Repository, text: str) -> None:
    repository.write(text)
    acts: list[Callable[[], object]] = [
        lambda: repository.staged.read(),
        lambda: repository.staged.update({"webSearch": False}),
        lambda: repository.staged.init("task"),
    ]
    for act in acts:
        with pytest.raises(TenutoError) as refusal:
            act()
        assert ".agents/tmp/state.json" in refusal.value.message
    assert repository.file.read_text() == text


def test_init_over_an_unfinished_file_from_before_is_refused(repository: Repository) -> None:
    adopted(repository)
    before = repository.file.read_bytes()
    with pytest.raises(Refused) as refusal:
        repository.staged.init("another")
    assert refusal.value.code == "unfinished" and repository.file.read_bytes() == before


THIRTEEN: Any = [
    ("0", "EXPLORE", "dispatch"),
    ("1.2", "PLAN", "dispatch"),
    ("1.3", "PLAN", "review"),
    ("2.1", "IMPLEMENT", "dispatch"),
    ("2.3", "IMPLEMENT", "review"),
    ("3.1", "TEST", "command"),
    ("3.3", "TEST", "review"),
    ("4.2", "FINAL", "review"),
]


def drifted() -> Any:
    """An older schedule of the same system, with names of its own, and without most settings."""
    return {
        "version": 2,
        "task": "Rework the login",
        "status": "in_progress",
        "currentStage": "TEST",
        "currentPhase": "3.3",
        "schedule": [{"phase": p, "stage": s, "name": p, "type": t} for p, s, t in THIRTEEN],
        "gates": {
            "IMPLEMENT->TEST": {"required": ["2.1-tasks.json", "2.3-impl-review.json"], "phase": "2.3"},
            "TEST->FINAL": {"required": ["3.1-test-results.json", "3.3-test-review.json"], "phase": "3.3"},
            "FINAL->COMPLETE": {"required": ["4.2-final-review.json"], "phase": "4.2"},
        },
        "stages": {stage: {"status": "pending", "phases": {}} for stage in ("EXPLORE", "TEST", "FINAL")},
        "files": {},
        "startedAt": "2026-01-28T08:00:00Z",
    }


def test_an_older_schedule_keeps_its_names_and_gets_no_settings_that_it_never_had(repository: Repository) -> None:
    repository.phases.mkdir(parents=True)
    (repository.phases / "3.1-test-results.json").write_text("{}")
    repository.write(drifted())
    state = repository.staged.update({"loopIteration": 2})
    assert "pipelineProfile" not in state and "codexTimeout" not in state and "reviewer" not in state
    assert None not in [value for key, value in state.items() if key not in ("failure", "stoppedAt")]
    assert [entry["phase"] for entry in state["schedule"]] == [phase for phase, _, _ in THIRTEEN]
    assert state["stages"]["FINAL"]["phases"] == {} and state["stages"]["EXPLORE"]["phases"] == {}
    assert state["files"] == {"3.1": ".agents/tmp/phases/3.1-test-results.json"}
    assert repository.staged.record_output("3.3", APPROVED)["file"] == "3.3-test-review.json"
    assert repository.staged.advance()["currentPhase"] == "4.2"
    assert repository.staged.update({"webSearch": False})["webSearch"] is False


def test_outputs_of_phases_that_are_behind_count_and_those_ahead_do_not(repository: Repository) -> None:
    repository.phases.mkdir(parents=True)
    for name in ("2.1-tasks.json", "2.3-impl-review.json", "4.2-final-review.json"):
        (repository.phases / name).write_text(json.dumps(APPROVED))
    repository.write({**drifted(), "currentStage": "TEST", "currentPhase": "3.1"})
    assert list(repository.staged.update({"loopIteration": 1})["files"]) == ["2.1", "2.3"]


# ---- what a dying writer left ------------------------------------------------------------------------


def test_a_lone_left_over_is_put_in_its_place(repository: Repository) -> None:
    old(repository, repository.left, json.dumps(ADOPTED))
    assert repository.staged.read() == ADOPTED
    assert repository.state == ADOPTED and not repository.left.exists()


def test_a_left_over_beside_the_file_is_removed(repository: Repository) -> None:
    repository.write(ADOPTED)
    old(repository, repository.left, '{"version": 2, "ta')
    assert repository.staged.read() == ADOPTED
    assert not repository.left.exists()


def test_a_left_over_that_is_broken_is_never_promoted(repository: Repository) -> None:
    old(repository, repository.left, '{"version": 2, "ta')
    with pytest.raises(Refused):
        repository.staged.read()
    assert repository.left.exists() and not repository.file.exists()


@pytest.mark.parametrize("main", [True, False])
def test_a_live_writers_file_is_left_alone(repository: Repository, main: bool) -> None:
    """It has the file open, however long ago it last wrote to it."""
    if main:
        repository.write(ADOPTED)
    old(repository, repository.left, json.dumps(ADOPTED))
    script = "import sys; held = open(sys.argv[1], 'r+'); print('open', flush=True); input()"
    words = [sys.executable, "-c", script, str(repository.left)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        assert repository.staged.read() == (ADOPTED if main else None)
        assert repository.left.exists() and repository.file.exists() is main
        writer.communicate("\n")
    assert repository.staged.read() == ADOPTED
    assert repository.file.exists() and not repository.left.exists()


def test_where_a_journal_exists_a_lone_left_over_is_an_edit(started: Repository) -> None:
    started.file.rename(started.left)
    state = {**json.loads(started.left.read_text()), "loopIteration": 7}
    started.left.write_text(json.dumps(state))
    started.staged.update({"webSearch": False})
    assert started.state["loopIteration"] == 7 and started.state["webSearch"] is False
    assert not started.left.exists()


def test_where_a_journal_exists_a_left_over_must_be_allowed_too(started: Repository) -> None:
    started.file.rename(started.left)
    started.left.write_text(json.dumps({**json.loads(started.left.read_text()), "status": "completed"}))
    with pytest.raises(Refused):
        started.staged.update({"webSearch": False})
    assert started.left.exists() and not started.file.exists()


def test_where_a_journal_exists_a_left_over_beside_the_file_is_removed(started: Repository) -> None:
    old(started, started.left, "{half")
    started.staged.update({"webSearch": False})
    assert not started.left.exists() and started.state["webSearch"] is False
    started.left.write_text("{a writer is at work")
    started.staged.update({"webSearch": True})
    assert started.left.exists()
