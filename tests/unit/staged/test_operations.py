"""The operations on state.json: what each does, and what it refuses."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.dialects.staged import owns
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.views.staged_document import OUTPUTS, PROFILES, STATUS, document
from tests.unit.staged.conftest import APPROVED, REJECTED, Repository

SEED_KEYS = [
    "version",
    "task",
    "status",
    "currentStage",
    "currentPhase",
    "pipelineProfile",
    "codexAvailable",
    "ownerPpid",
    "worktree",
    "reviewer",
    "failureAnalyzer",
    "difficultyEstimator",
    "testDeveloper",
    "docUpdater",
    "taskAnalysis",
    "schedule",
    "gates",
    "stages",
    "codexTimeout",
    "supplementaryPolicy",
    "coverageThreshold",
    "webSearch",
    "reviewPolicy",
    "restartHistory",
    "files",
    "failure",
    "compaction",
    "startedAt",
    "updatedAt",
    "stoppedAt",
]
SEED_STATUSES = {"pending", "in_progress", "stopped", "completed", "failed", "blocked", "restarting", "skipped"}


# ---- init and read -----------------------------------------------------------------------------------


def test_init_writes_every_key_of_the_schema_in_its_order_with_its_default(started: Repository) -> None:
    state = started.state
    assert list(state) == SEED_KEYS
    assert state["version"] == 2 and state["task"] == "Add dark mode"
    assert (state["status"], state["currentStage"], state["currentPhase"]) == ("in_progress", "EXPLORE", "0")
    assert state["stages"] == {
        "EXPLORE": {"status": "in_progress", "agentCount": 0},
        "PLAN": {"status": "pending", "phases": {}, "restartCount": 0, "blockReason": None},
        "IMPLEMENT": {"status": "pending", "phases": {}, "restartCount": 0, "blockReason": None},
        "TEST": {"status": "pending", "enabled": True, "restartCount": 0, "blockReason": None},
        "FINAL": {"status": "pending", "restartCount": 0, "blockReason": None},
    }
    assert state["codexTimeout"] == {
        "reviewPhases": 300000,
        "finalReviewPhases": None,
        "implementPhases": 1800000,
        "testPhases": 600000,
        "explorePhases": 600000,
        "maxRetries": 2,
    }
    assert state["reviewPolicy"] == {"minBlockSeverity": "LOW", "maxFixAttempts": 10, "maxStageRestarts": 3}
    assert (state["supplementaryPolicy"], state["coverageThreshold"], state["webSearch"]) == ("on-issues", 90, True)
    assert (state["restartHistory"], state["files"], state["failure"]) == ([], {}, None)
    assert state["compaction"] == {"lastCompactedAt": None, "history": []}
    assert state["startedAt"] == state["updatedAt"] and state["stoppedAt"] is None
    assert [entry["phase"] for entry in state["schedule"]] == list(OUTPUTS)
    assert started.staged.read() == state


@pytest.mark.parametrize(
    ("fields", "profile"),
    [
        ({"pipelineProfile": "minimal"}, "minimal"),
        ({"taskAnalysis": {"complexity": "simple"}}, "minimal"),
        ({"taskAnalysis": {"complexity": "medium"}}, "standard"),
        ({"taskAnalysis": {"complexity": "complex"}}, "thorough"),
        ({"pipelineProfile": "standard", "taskAnalysis": {"complexity": "complex"}}, "standard"),
        ({}, "thorough"),
    ],
)
def test_profile_or_complexity_selects_the_schedule(repository: Repository, fields: Any, profile: str) -> None:
    state = repository.staged.init("task", **fields)
    assert state["pipelineProfile"] == profile
    assert tuple(entry["phase"] for entry in state["schedule"]) == PROFILES[profile]


def test_stages_without_phases_are_skipped_and_tests_can_be_left_out(repository: Repository) -> None:
    state = repository.staged.init("task", pipelineProfile="standard", taskAnalysis={"needsTests": False})
    assert state["stages"]["TEST"] == {
        "status": "skipped",
        "enabled": False,
        "restartCount": 0,
        "blockReason": None,
    }
    assert "IMPLEMENT->FINAL" in state["gates"]


def test_without_codex_the_other_agents_are_named(repository: Repository) -> None:
    state = repository.staged.init("task", codexAvailable=False)
    assert state["reviewer"] == "subagents:claude-reviewer"
    assert state["failureAnalyzer"] == "subagents:failure-analyzer"


def test_init_keeps_what_it_does_not_know(repository: Repository) -> None:
    state = repository.staged.init("task", plugin="subagents", reviewPolicy={"maxFixAttempts": 2})
    assert state["plugin"] == "subagents"
    assert state["reviewPolicy"] == {"minBlockSeverity": "LOW", "maxFixAttempts": 2, "maxStageRestarts": 3}


@pytest.mark.parametrize(
    "fields",
    [
        {"pipelineProfile": "huge"},
        {"pipelineProfile": {"standard": []}},
        {"pipelineProfile": ["standard"]},
        {"taskAnalysis": {"complexity": ["simple"]}},
        {"taskAnalysis": {"complexity": "hard"}},
        {"taskAnalysis": []},
        {"taskAnalysis": {"needsTests": "no"}},
        {"status": "completed"},
        {"currentPhase": "4.3"},
        {"reviewPolicy": {"minBlockSeverity": "NONE"}},
        {"reviewPolicy": {"maxFixAttempts": -1}},
    ],
)
def test_init_refuses_what_makes_no_state_and_writes_nothing(repository: Repository, fields: Any) -> None:
    with pytest.raises(BadInput):
        repository.staged.init("task", **fields)
    assert not repository.file.exists()


def test_init_over_an_unfinished_task_is_refused_and_over_a_finished_one_is_not(started: Repository) -> None:
    before = started.file.read_bytes()
    with pytest.raises(Refused) as refusal:
        started.staged.init("Another")
    assert refusal.value.code == "unfinished" and "Add dark mode" in refusal.value.message
    assert started.file.read_bytes() == before
    started.staged.record_failure("cannot be done")
    started.edit(plugin="theirs")  # a hook's last word does not stand in the way
    assert started.staged.init("Another")["task"] == "Another"
    assert started.state["status"] == "in_progress"


def test_the_same_task_twice_becomes_two_runs(started: Repository) -> None:
    started.staged.record_failure("no")
    started.staged.init("Add dark mode")
    with started.workspace.journal.read() as reader:
        assert sorted(card["id"] for card in reader.runs()) == ["add-dark-mode", "add-dark-mode-2"]


def test_read_finds_nothing_where_there_is_nothing_and_makes_nothing(repository: Repository) -> None:
    assert repository.staged.read() is None
    assert os.listdir(repository.root) == []


def test_every_other_operation_says_that_there_is_no_state(repository: Repository) -> None:
    acts: list[Callable[[], object]] = [
        lambda: repository.staged.advance(),
        lambda: repository.staged.update({"webSearch": False}),
        lambda: repository.staged.record_output("0", "x"),
    ]
    for act in acts:
        with pytest.raises(NotFound):
            act()


# ---- update ------------------------------------------------------------------------------------------


def test_update_merges_deeply_and_replaces_arrays(started: Repository) -> None:
    started.staged.update({"codexTimeout": {"testPhases": 5}, "reviewFix": {"a": 1, "list": [1, 2]}})
    state = started.staged.update({"reviewFix": {"b": 2, "list": [3]}})
    assert state["codexTimeout"]["testPhases"] == 5 and state["codexTimeout"]["maxRetries"] == 2
    assert state["reviewFix"] == {"a": 1, "list": [3], "b": 2}
    assert started.state == state


def test_update_sets_updated_at(repository: Repository) -> None:
    clock = iter(f"2026-01-29T10:15:{second:02d}.000Z" for second in range(60))
    staged = tenuto.open(str(repository.root), clock=lambda: next(clock)).staged
    first = staged.init("task")["updatedAt"]
    assert staged.update({"webSearch": False, "updatedAt": "1999"})["updatedAt"] > first


@pytest.mark.parametrize(
    "key",
    [
        "status",
        "currentStage",
        "currentPhase",
        "stages",
        "files",
        "failure",
        "restartHistory",
        "schedule",
        "gates",
        "version",
    ],
)
def test_update_of_what_has_an_operation_is_refused_by_name(started: Repository, key: str) -> None:
    before = started.file.read_bytes()
    with pytest.raises(Refused) as refusal:
        started.staged.update({"webSearch": False, key: started.state[key]})
    assert refusal.value.code == "not-by-update" and key in refusal.value.message
    assert started.file.read_bytes() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"coverageThreshold": "high"},
        {"coverageThreshold": 900},
        {"coverageThreshold": True},
        {"reviewPolicy": {"minBlockSeverity": "CRITICAL"}},
        {"reviewPolicy": {"maxFixAttempts": -1}},
        {"reviewPolicy": 3},
        {"supplementaryPolicy": "sometimes"},
        {"supplementaryPolicy": ["never"]},
        {"webSearch": "no"},
        {"codexAvailable": 1},
        {"ownerPpid": "me"},
        {"worktree": "here"},
        {"reviewer": ""},
        {"codexTimeout": {"testPhases": "soon"}},
    ],
)
def test_a_setting_of_another_kind_is_refused(started: Repository, changes: Any) -> None:
    before = started.file.read_bytes()
    with pytest.raises(BadInput) as refusal:
        started.staged.update(changes)
    assert next(iter(changes)) in refusal.value.message and started.file.read_bytes() == before
    started.staged.record_failure("no")
    with pytest.raises(BadInput):
        started.staged.init("Another", **changes)


def test_an_update_that_changes_nothing_says_so(started: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput) as refusal:
        started.staged.update({})
    assert refusal.value.code == "empty-update"
    workspace = started.workspace
    workspace.staged.update({"webSearch": True})
    assert any("nothing was changed: webSearch" in text for text in workspace.warnings)
    workspace.staged.update({"webSearch": False})
    assert len(workspace.warnings) == 1


# ---- outputs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", OUTPUTS)
def test_every_phase_output_has_its_name(started: Repository, phase: str) -> None:
    content: Any = {"a": 1} if OUTPUTS[phase].endswith(".json") else "text\n"
    answer = started.staged.record_output(phase, content)
    path = started.root / answer["path"]
    assert path == started.phases / OUTPUTS[phase] and path.stat().st_size > 0
    assert started.state["files"] == {phase: f".agents/tmp/phases/{OUTPUTS[phase]}"}


def test_an_output_that_the_agent_wrote_itself_is_recorded_as_it_is(started: Repository) -> None:
    started.phases.mkdir(exist_ok=True)
    (started.phases / "0-explore.md").write_text("found it\n")
    started.staged.record_output("0")
    assert started.staged.validate_gate() == {"passed": True}
    assert (started.phases / "0-explore.md").read_text() == "found it\n"


def test_an_output_comes_from_a_file_too(started: Repository, tmp_path: Path) -> None:
    source = tmp_path / "elsewhere.md"
    source.write_bytes(b"x" * (5 << 20))
    assert started.staged.record_output("0", file=str(source))["size"] == 5 << 20
    assert (started.phases / "0-explore.md").stat().st_size == 5 << 20


def test_the_last_output_is_found_under_the_name_that_the_hooks_use(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    repository.go_to("4.3")
    (repository.phases / "4.3-completion.json").write_text('{"status": "done"}')
    assert repository.staged.record_output("4.3")["file"] == "4.3-completion.json"
    assert repository.state["files"]["4.3"] == ".agents/tmp/phases/4.3-completion.json"
    assert repository.staged.advance()["status"] == "completed"


def test_an_object_as_last_output_lies_where_the_hooks_look(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    for content in ({"status": "done"}, '{"status": "done"}'):
        assert repository.staged.record_output("4.3", content)["file"] == "4.3-completion.json"
    assert repository.staged.record_output("4.3", "# done\n")["file"] == "4.3-completion.md"


def test_outputs_that_cannot_be_used_are_refused(started: Repository) -> None:
    acts: list[Callable[[], object]] = [
        lambda: started.staged.record_output("0", "  \n"),
        lambda: started.staged.record_output("2.1", "{not json"),
        lambda: started.staged.record_output("9.9", "x"),
    ]
    for act in acts:
        with pytest.raises(BadInput):
            act()
    with pytest.raises(NotFound):
        started.staged.record_output("0")
    assert started.state["files"] == {}


# ---- gates -------------------------------------------------------------------------------------------


def test_a_gate_without_its_file_blocks_in_the_seeds_words_and_a_later_pass_clears_it(started: Repository) -> None:
    assert started.staged.validate_gate() == {"passed": False, "missing": ["0-explore.md"]}
    state = started.state
    assert state["status"] == "blocked"
    assert state["stages"]["EXPLORE"]["blockReason"] == (
        "Gate check failed: missing 0-explore.md. Phase 0 must complete before transitioning to PLAN."
    )
    started.output("0")
    assert started.staged.validate_gate() == {"passed": True}
    assert started.state["status"] == "in_progress"
    assert started.state["stages"]["EXPLORE"] == {"status": "in_progress", "agentCount": 0}


def test_several_missing_files_are_all_named(started: Repository) -> None:
    started.go_to("1.3")
    (started.phases / "1.2-plan.md").unlink()
    assert started.staged.advance() == {"passed": False, "missing": ["1.2-plan.md", "1.3-plan-review.json"]}
    assert started.state["stages"]["PLAN"]["blockReason"] == (
        "Gate check failed: missing 1.2-plan.md, 1.3-plan-review.json. "
        "Phase 1.3 must complete before transitioning to IMPLEMENT."
    )
    assert started.state["currentPhase"] == "1.3"


@pytest.mark.parametrize("damage", ["gone", "empty", "blank", "not json"])
def test_evidence_must_exist_hold_something_and_parse(repository: Repository, damage: str) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    repository.go_to("2.3")
    tasks = repository.phases / "2.1-tasks.json"
    repository.output("2.3")
    match damage:
        case "gone":
            tasks.unlink()
        case "empty":
            tasks.write_text("")
        case "blank":
            tasks.write_text("\n\n")
        case "not json":
            tasks.write_text("{")
    assert repository.staged.advance() == {"passed": False, "missing": ["2.1-tasks.json"]}


def test_a_file_that_nobody_recorded_is_no_evidence(started: Repository) -> None:
    started.phases.mkdir(exist_ok=True)
    (started.phases / "0-explore.md").write_text("there, but not recorded\n")
    assert started.staged.advance() == {"passed": False, "missing": ["0-explore.md"]}


def test_an_unknown_gate_is_refused_and_a_gate_of_another_stage_too(started: Repository) -> None:
    wrong: Any = (
        ("EXPLORE->FINAL", "unknown-gate"),
        ("PLAN->IMPLEMENT", "wrong-stage"),
        (["EXPLORE->PLAN"], "unknown-gate"),
    )
    for gate, code in wrong:
        with pytest.raises(Refused) as refusal:
            started.staged.validate_gate(gate)
        assert refusal.value.code == code
    assert started.state["status"] == "in_progress"


# ---- advance -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_advance_leads_through_every_phase_and_completes_behind_the_last_gate(
    repository: Repository, profile: str
) -> None:
    repository.staged.init("task", pipelineProfile=profile)
    walked = []
    while repository.state["status"] == "in_progress":
        walked.append(here := repository.state["currentPhase"])
        repository.output(here)
        answer = repository.staged.advance()
        assert answer["advanced"]
    assert tuple(walked) == PROFILES[profile]
    state = repository.state
    assert (state["status"], state["currentPhase"], state["currentStage"]) == ("completed", "4.3", "FINAL")
    assert {stage["status"] for stage in state["stages"].values()} <= {"completed", "skipped"}
    assert state["stoppedAt"] is not None
    with pytest.raises(Refused):
        repository.staged.advance()


def test_the_last_advance_validates_the_final_gate(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    repository.go_to("4.3")
    (repository.phases / "4.2-final-review.json").unlink()
    assert repository.staged.advance() == {"passed": False, "missing": ["4.2-final-review.json"]}
    assert "transitioning to COMPLETE." in repository.state["stages"]["FINAL"]["blockReason"]


@pytest.mark.parametrize("stage", ["PLAN", "IMPLEMENT"])
def test_an_advance_inside_a_stage_says_that_it_moved_whatever_a_gate_said_before(
    started: Repository, stage: str
) -> None:
    """A caller that tries again where nothing moved must skip no phase."""
    started.go_to({"PLAN": "1.1", "IMPLEMENT": "2.1"}[stage])
    phases = [entry["phase"] for entry in started.state["schedule"] if entry["stage"] == stage]
    for here, following in itertools.pairwise(phases):
        assert not started.staged.validate_gate()["passed"]
        assert started.state["status"] == "blocked" and started.state["currentPhase"] == here
        answer = started.staged.advance()
        assert answer == {
            "advanced": True,
            "status": "in_progress",
            "currentStage": stage,
            "currentPhase": following,
        }
    assert started.staged.advance()["passed"] is False
    assert started.state["currentPhase"] == phases[-1]


def test_an_advance_that_finds_a_failed_review_says_where_it_led(repository: Repository) -> None:
    policy = {"maxFixAttempts": 0}
    repository.staged.init("task", pipelineProfile="minimal", supplementaryPolicy="never", reviewPolicy=policy)
    repository.go_to("2.3")
    path = ".agents/tmp/phases/2.3-impl-review.json"
    (repository.root / path).write_text(json.dumps(REJECTED))
    repository.edit(files={**repository.state["files"], "2.3": path})
    answer = repository.staged.advance()
    assert (answer["advanced"], answer["movedBack"], answer["currentPhase"]) == (False, True, "2.1")
    assert answer["review"]["next"] == "restart"


def test_nothing_advances_past_a_phase_to_another_one(started: Repository) -> None:
    started.output("0")
    with pytest.raises(Refused) as refusal:
        started.staged.advance(to="2.1")
    assert refusal.value.code == "step-skipped"
    assert started.state["currentPhase"] == "0"


def test_a_review_phase_is_left_with_an_approved_review_only(started: Repository) -> None:
    """Also in the middle of a stage, where no gate asks for its file."""
    started.go_to("3.4")
    with pytest.raises(Refused) as refusal:
        started.staged.advance()
    assert refusal.value.code == "not-reviewed"
    started.output("3.4", REJECTED)
    with pytest.raises(Refused):
        started.staged.advance()
    started.output("3.4", APPROVED)
    assert started.staged.advance()["currentPhase"] == "3.5"


def test_a_review_that_others_recorded_is_judged_before_the_gate(started: Repository) -> None:
    started.go_to("1.3")
    (started.phases / "1.3-plan-review.json").write_text(json.dumps(REJECTED))
    started.edit(files={**started.state["files"], "1.3": ".agents/tmp/phases/1.3-plan-review.json"})
    answer = started.staged.advance()
    assert answer["advanced"] is False and answer["review"]["next"] == "supplementary"
    (started.phases / "1.3-plan-review.json").write_text(json.dumps(APPROVED))
    assert started.staged.advance()["currentPhase"] == "2.1"


# ---- failures, restarts, rests -----------------------------------------------------------------------


def test_record_failure_has_the_seeds_shape(started: Repository) -> None:
    context = {"completedTasks": ["task-1", "task-2"], "failedTask": "task-3", "pendingTasks": ["task-4", "task-5"]}
    started.staged.record_failure("Task agent timeout on task-3", "2.1", context)
    state = started.state
    assert state["status"] == "failed"
    assert list(state["failure"]) == ["phase", "error", "failedAt", "context"]
    assert state["failure"] | {"failedAt": ""} == {
        "phase": "2.1",
        "error": "Task agent timeout on task-3",
        "failedAt": "",
        "context": context,
    }
    with pytest.raises(Refused):
        started.staged.advance()


def test_a_restart_voids_what_the_stage_had(started: Repository) -> None:
    started.go_to("1.3")
    started.output("1.3")
    answer = started.staged.restart("PLAN", "the plan is wrong")
    assert (answer["currentPhase"], answer["restartCount"]) == ("1.1", 1)
    state = started.state
    assert [(entry["stage"], entry["reason"]) for entry in state["restartHistory"]] == [("PLAN", "the plan is wrong")]
    assert list(state["files"]) == ["0"]
    assert state["stages"]["PLAN"]["phases"] == {"1.1": {"status": "in_progress"}}
    for phase in ("1.1", "1.2"):
        started.output(phase)
        started.staged.advance()
    assert started.staged.advance() == {"passed": False, "missing": ["1.3-plan-review.json"]}


def test_a_restart_sets_the_old_outputs_aside_and_they_stay_readable(repository: Repository) -> None:
    repository.staged.init("task", pipelineProfile="minimal")
    repository.go_to("4.2")
    answer = repository.staged.restart("IMPLEMENT", "the code is wrong")
    assert sorted(os.listdir(repository.phases)) == ["0-explore.md"]
    assert sorted(os.listdir(repository.root / answer["setAside"])) == ["2.1-tasks.json", "2.3-impl-review.json"]
    for phase in ("2.1", "2.3"):
        with pytest.raises(NotFound):
            repository.staged.record_output(phase)
    repository.go_to("4.2")
    again = repository.staged.restart("IMPLEMENT", "still wrong")["setAside"]
    assert again != answer["setAside"] and len(os.listdir(repository.root / again)) == 2


def test_a_new_task_does_not_find_the_outputs_of_the_last_one(started: Repository) -> None:
    started.go_to("1.2")
    started.staged.record_failure("no")
    (started.phases / "notes.txt").write_text("of an agent")
    started.staged.init("Another")
    assert os.listdir(started.phases) == []
    aside = sorted(path.name for path in (started.root / ".agents/tmp/earlier").glob("*/*"))
    assert aside == ["0-explore.md", "1.1-brainstorm.md", "notes.txt"]
    with pytest.raises(NotFound):
        started.staged.record_output("0")


def test_init_makes_the_folder_for_outputs(started: Repository) -> None:
    assert os.listdir(started.phases) == []


def test_restarts_have_a_limit(repository: Repository) -> None:
    repository.staged.init("task", reviewPolicy={"maxStageRestarts": 2})
    repository.staged.restart("EXPLORE", "one")
    repository.staged.restart("EXPLORE", "two")
    with pytest.raises(Refused) as refusal:
        repository.staged.restart("EXPLORE", "three")
    assert refusal.value.code == "restarts-exhausted"


def test_a_stage_that_was_not_reached_is_not_restarted(started: Repository) -> None:
    with pytest.raises(Refused):
        started.staged.restart("TEST", "why not")


def test_stop_and_resume(started: Repository) -> None:
    assert started.staged.stop("lunch")["status"] == "stopped"
    assert started.state["stoppedAt"] is not None
    started.output("0")
    with pytest.raises(Refused):
        started.staged.advance()
    assert started.staged.resume()["status"] == "in_progress"
    assert started.state["stoppedAt"] is None
    assert started.staged.advance()["currentPhase"] == "1.1"


@pytest.mark.parametrize("way", ["resume", "restart"])
def test_a_failed_task_goes_on(started: Repository, way: str) -> None:
    started.go_to("1.2")
    started.staged.record_failure("agent died", context={"tries": 2})
    with pytest.raises(Refused) as refusal:
        started.staged.advance()
    assert "tenuto resume add-dark-mode" in refusal.value.hint
    answer = started.staged.resume() if way == "resume" else started.staged.restart("PLAN", "once more")
    assert answer["status"] == "in_progress"
    state = started.state
    assert (state["status"], state["failure"], state["stoppedAt"]) == ("in_progress", None, None)
    assert state["currentPhase"] == ("1.2" if way == "resume" else "1.1")
    started.go_to("2.1")


def test_the_time_of_a_failure_may_be_given(started: Repository) -> None:
    answer = started.staged.record_failure("died", failedAt="2026-01-29T10:15:00Z")
    assert answer["failure"]["failedAt"] == "2026-01-29T10:15:00Z"


# ---- whose it is -------------------------------------------------------------------------------------


def test_the_owner_is_a_process_not_a_number(repository: Repository) -> None:
    """A number that was given to another process since does not own the state."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as session:
        repository.staged.init("task", ownerPpid=str(session.pid))
        assert repository.staged.owner(session.pid) == {"ownerPpid": str(session.pid), "alive": True, "owns": True}
        assert repository.staged.owner(os.getpid())["owns"] is False
        workspace = repository.workspace
        run = workspace.load("task")
        session.communicate(b"\n")
    assert repository.staged.owner(session.pid) == {"ownerPpid": str(session.pid), "alive": False, "owns": False}
    run["settings"] |= {"ownerPpid": str(os.getpid()), "owner": {"pid": str(os.getpid()), "began": "1@another-boot"}}
    assert not owns(run, os.getpid())


@pytest.mark.parametrize("wrapped", ["tenuto staged init --task t", "tenuto staged init --task t; true"])
def test_the_owner_is_the_session_not_the_shell_of_one_command(repository: Repository, wrapped: str) -> None:
    """A shell that was started for one command has ended when the next hook looks for the owner."""
    command = wrapped.replace("tenuto", f"{sys.executable} -m tenuto")
    known = {key: value for key, value in os.environ.items() if key != "CLAUDE_PID"}
    for words in (["bash", "-c", command], ["sh", "-c", f"bash -c '{command}'; true"]):
        subprocess.run(words, cwd=repository.root, env=known, check=True, capture_output=True)
        assert repository.state["ownerPpid"] == str(os.getpid())
        repository.staged.record_failure("the next one")


def test_the_agent_program_says_which_process_the_session_is(repository: Repository) -> None:
    """Where it is above us; a number of somebody else is no proof."""
    command = [sys.executable, "-m", "tenuto", "staged", "init", "--task", "t"]
    for named, owner in ((os.getppid(), os.getppid()), (1 << 30, os.getpid())):
        known = {**os.environ, "CLAUDE_PID": str(named)}
        subprocess.run(command, cwd=repository.root, env=known, check=True, capture_output=True)
        assert repository.state["ownerPpid"] == str(owner)
        repository.staged.record_failure("the next one")


def test_a_linked_work_tree_has_a_state_of_its_own_and_says_which_it_is(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path / "main"), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(tmp_path / "main")], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    linked = tmp_path / "main--subagent"
    subprocess.run([*git, "worktree", "add", "-q", "-b", "subagents/dark-mode", str(linked)], check=True)
    here, there = Repository(tmp_path / "main"), Repository(linked)
    here.staged.init("In the main tree")
    there.staged.init("In the linked tree")
    assert here.state["worktree"] is None
    assert there.state["worktree"] == {
        "path": str(linked),
        "branch": "subagents/dark-mode",
        "createdAt": there.state["startedAt"],
    }
    there.staged.record_output("0", "x")
    assert there.staged.advance()["currentPhase"] == "1.1"
    assert here.state["currentPhase"] == "0"


# ---- one vocabulary ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("created", "pending"),
        ("running", "in_progress"),
        ("paused", "stopped"),
        ("waiting_gate", "blocked"),
        ("parked", "stopped"),
        ("stopped", "stopped"),
        ("blocked", "blocked"),
        ("restarting", "restarting"),
        ("completed", "completed"),
        ("failed", "failed"),
        ("cancelled", "stopped"),
        ("poc-complete", "completed"),
        ("graduated", "completed"),
    ],
)
def test_every_status_of_a_run_is_shown_in_the_seeds_words(started: Repository, status: Any, shown: str) -> None:
    run = started.workspace.load("add-dark-mode")
    run["status"] = status
    state = document(run)
    assert state["status"] == shown and shown in SEED_STATUSES
    assert {stage["status"] for stage in state["stages"].values()} <= SEED_STATUSES
    assert state["currentPhase"] in OUTPUTS and state["currentStage"] in state["stages"]


def test_no_status_is_forgotten() -> None:
    from typing import get_args

    from tenuto.core.records.run import Status

    assert set(STATUS) == set(get_args(Status))


@pytest.mark.parametrize("name", ["nowhere.md", "a\0b", "half \ud83d"])
def test_a_file_that_cannot_be_read_is_named(started: Repository, name: str) -> None:
    with pytest.raises(NotFound, match="cannot be read") as refused:
        started.staged.record_output("0", file=name)
    assert refused.value.code == "no-such-file"
