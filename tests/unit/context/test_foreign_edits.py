"""Edits of a task's files by other programs: absorbed where a command could have said the same, else named and left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenuto.encoding import digest
from tenuto.workspace.objects import stored_version
from tests.unit.context.conftest import TASKS, Repository

PATH = f"{TASKS}/t/manifest.json"
CURRENT = "docs/orchestrator/context/current-task.md"
HISTORY = "docs/orchestrator/context/history.md"


@pytest.fixture
def task(repository: Repository) -> Repository:
    repository.must("INIT task: t", "START_PHASE phase: architect")
    repository.wait(1000)
    repository.must("END_PHASE phase: architect status: success")
    repository.wait(1000)
    return repository


def test_keys_that_others_add_survive_every_command(task: Repository) -> None:
    task.edit("t", owner="ada", links={"ticket": 7})
    told = task.manifest("t")
    told["metrics"]["cost"] = 3
    told["waves"]["note"] = "x"
    task.write(PATH, json.dumps(told))
    task.must(
        "START_PHASE phase: spec", "END_PHASE phase: spec status: failed", "PAUSE reason: x", "RESUME decision: retry"
    )
    told = task.manifest("t")
    assert (told["owner"], told["links"], told["metrics"]["cost"], told["waves"]["note"]) == (
        "ada",
        {"ticket": 7},
        3,
        "x",
    )


def test_keys_of_others_may_be_changed_emptied_and_taken_out_again(task: Repository) -> None:
    task.edit("t", links={"a": 1, "b": 2}, owner="ada", nothing=None)
    task.must("SUMMARY")
    assert task.manifest("t")["nothing"] is None
    task.edit("t", links={"a": 1}, owner="bob")
    task.must("SUMMARY")
    told = task.manifest("t")
    assert (told["links"], told["owner"]) == ({"a": 1}, "bob")
    del told["owner"], told["nothing"]
    told["metrics"]["cost"] = 3
    task.write(PATH, json.dumps(told))
    task.must("SUMMARY")
    told = task.manifest("t")
    assert "owner" not in told
    told["metrics"]["cost"] = 4
    task.write(PATH, json.dumps(told))
    task.must("SUMMARY")
    assert task.manifest("t")["metrics"]["cost"] == 4


def test_a_phase_begun_and_ended_by_hand(task: Repository) -> None:
    told = task.manifest("t")
    told["running_phases"] = [{"phase": "spec", "started_at": "2026-01-01T00:00:00Z", "agent": "opus"}]
    told["current_phase"] = "spec"
    task.write(PATH, json.dumps(told, indent=2))
    task.must("SUMMARY")
    told = task.manifest("t")
    assert [(entry["phase"], entry["agent"]) for entry in told["running_phases"]] == [("spec", "opus")]
    done = {"phase": "spec", "status": "success", "started_at": "a", "ended_at": "b", "duration_ms": 5, "retries": 0}
    told["running_phases"], told["current_phase"] = [], None
    told["completed_phases"].append(done)
    task.write(PATH, json.dumps(told, indent=2))
    task.must("START_PHASE phase: implementer")
    assert task.manifest("t")["completed_phases"][1] == done
    assert task.workspace.load("t")["visits"][1]["status"] == "success"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        (
            {"status": "paused", "failure_context": {"phase": "spec", "reason": "by hand", "recommendations": ["a"]}},
            "paused",
        ),
        (
            {"status": "waiting_gate", "gate_context": {"gate": "design", "prompt": "ok?", "artifacts": ["a.md"]}},
            "waiting_gate",
        ),
        ({"status": "failed"}, "failed"),
        ({"status": "completed"}, "completed"),
    ],
)
def test_a_status_that_a_command_could_have_set(task: Repository, changes: dict[str, Any], status: str) -> None:
    task.edit("t", **changes)
    said = task.say("START_PHASE phase: x")
    assert said.startswith("STATUS: error\nERROR: Cannot start phase")
    task.must("SUMMARY")
    assert task.manifest("t")["status"] == status
    assert task.workspace.load("t")["status"] == status


def test_an_absorbed_edit_is_in_the_history_and_readable_by_its_hash(task: Repository) -> None:
    task.edit("t", owner="ada")
    theirs = task.read(PATH).encode()
    task.must("SUMMARY")
    assert "- External Edit\n" in task.read(HISTORY).replace("Z - ", "Z\n- ")
    assert stored_version(task.workspace, digest(theirs)) == theirs


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"mode": "poc"},
        {"created_at": "2020-01-01T00:00:00Z"},
        {"completed_phases": []},
        {"completed_phases": [{"phase": "architect", "status": "failed"}]},
        {"metrics": {"total_retries": 9}},
        {"metrics": None},
        {"status": "graduated"},
        {"status": "poc-complete"},
        {"status": "dancing"},
        {"status": None},
        {"running_phases": "x"},
        {"waves": {"task_breakdown": {"tasks": [{"id": 1, "dependencies": [1]}]}, "execution": []}},
        {"workflow": ""},
        {"waves": {"task_breakdown": 7, "execution": []}},
        {"waves": {"task_breakdown": None, "execution": [1]}},
        {"waves": 1},
        {"status": "waiting_gate", "gate_context": {"gate": "lunch"}},
        {"failure_context": {"reason": "not paused"}},
    ],
)
def test_what_no_command_could_have_said_is_named_and_left(task: Repository, changes: dict[str, Any]) -> None:
    task.edit("t", **changes)
    theirs = task.read(PATH)
    for command in ("START_PHASE phase: x", "SUMMARY", "STORE phase: spec content: x"):
        assert task.say(command).startswith(f"STATUS: error\nERROR: {PATH} was changed by another program"), changes
    assert task.read(PATH) == theirs


@pytest.mark.parametrize("text", ["{broken", "[]", '{"a": 1, "a": 1}', "not json at all"])
def test_a_manifest_that_cannot_be_read_is_named_and_left(task: Repository, text: str) -> None:
    task.write(PATH, text)
    assert task.say("START_PHASE phase: x").startswith(f"STATUS: error\nERROR: {PATH} was changed by another program")
    assert task.read(PATH) == text


@pytest.mark.parametrize("damage", ["deleted", "emptied", "zeroed"])
def test_a_manifest_that_is_gone_empty_or_zeroed_is_written_anew(task: Repository, damage: str) -> None:
    before = task.manifest("t")
    if damage == "deleted":
        (task.root / PATH).unlink()
    else:
        task.write(PATH, b"" if damage == "emptied" else b"\0" * 500)
    task.must("START_PHASE phase: x")
    assert task.manifest("t")["completed_phases"] == before["completed_phases"]
    assert any(PATH in warning for warning in task.warnings())


# ---- the other files -------------------------------------------------------------------------------


def test_notes_in_current_task_md_are_kept(task: Repository) -> None:
    task.write(CURRENT, task.read(CURRENT) + "\nRemember the milk.\n\n- and the bread\n")
    task.must("START_PHASE phase: spec")
    text = task.read(CURRENT)
    assert "**Task:** t" in text
    assert "## Notes\n\nRemember the milk.\n\n- and the bread\n" in text
    task.must("END_PHASE phase: spec status: success")
    assert "Remember the milk." in task.read(CURRENT)


def test_pointing_current_task_md_at_another_task_chooses_it(task: Repository) -> None:
    task.must("INIT task: other")
    task.write(CURRENT, task.read(CURRENT).replace("**Task:** other", "**Task:** t"))
    assert "TASK: t\n" in task.say("START_PHASE phase: spec")
    assert "**Task:** t" in task.read(CURRENT)
    assert task.manifest("other")["running_phases"] == []


def test_pointing_it_at_a_folder_that_was_never_seen_adopts_it(task: Repository) -> None:
    task.write(f"{TASKS}/theirs/manifest.json", '{"name": "theirs", "status": "running"}')
    task.write(CURRENT, "Task: theirs\n")
    assert "TASK: theirs\n" in task.say("START_PHASE phase: spec")


def test_pointing_it_nowhere_is_refused(task: Repository) -> None:
    task.write(CURRENT, "**Task:** nobody\n")
    assert task.say("START_PHASE phase: spec").startswith(
        f"STATUS: error\nERROR: {CURRENT} was changed by another program"
    )
    assert task.read(CURRENT) == "**Task:** nobody\n"


def test_a_deleted_pointer_is_written_anew(task: Repository) -> None:
    (task.root / CURRENT).unlink()
    assert "TASK: t\n" in task.say("START_PHASE phase: spec")
    assert "**Task:** t" in task.read(CURRENT)


def test_text_that_others_append_to_the_history_stays_where_it_is(task: Repository) -> None:
    task.write(HISTORY, task.read(HISTORY) + "\n## by hand\nsomething\n")
    before = task.read(HISTORY)
    task.must("START_PHASE phase: spec")
    assert task.read(HISTORY).startswith(before)
    assert task.read(HISTORY).endswith("START_PHASE phase: spec\n- **Status:** running\n")


def test_a_rewritten_history_stays_as_rewritten_and_ours_follows(task: Repository) -> None:
    ours = task.read(HISTORY)
    task.write(HISTORY, "# Started over\n")
    task.must("START_PHASE phase: spec")
    assert task.read(HISTORY).startswith("# Started over\n")
    assert stored_version(task.workspace, digest(ours.encode())) == ours.encode()
    assert any(HISTORY in warning for warning in task.warnings())


def test_figures_in_a_metrics_file_follow_from_the_phases(task: Repository) -> None:
    path = ".claude/orchestrator/metrics/t.json"
    told = json.loads(task.read(path))
    task.write(path, json.dumps({**told, "dashboard": "x"}))
    task.must("START_PHASE phase: spec")
    assert json.loads(task.read(path))["dashboard"] == "x"
    told["metrics"]["total_retries"] = 99
    task.write(path, json.dumps(told))
    assert task.say("SUMMARY").startswith(f"STATUS: error\nERROR: {path} was changed by another program")


def test_an_edited_debt_document_is_what_graduates(repository: Repository) -> None:
    repository.must("INIT task: t mode: poc", "STORE phase: debt content: ---\na: 1\n---\n")
    repository.write(f"{TASKS}/t/debt.md", "---\na: 2\n---\n\nmore\n")
    repository.must("STORE phase: graduate-complete")
    assert repository.read(f"{TASKS}/t/debt.md") == f'---\na: 2\ngraduated_at: "{repository.time}"\n---\n\nmore\n'
