"""Every shipped pipeline, each profile too, and one of a user's own run to the end and write their seeds' files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tenuto.errors import NotFound, Refused
from tests.acceptance.rehearsing import APPROVED, PASSED, TWO_ITEMS, Stage, schema, validate

TASK = "docs/orchestrator/context/tasks/add-dark-mode"
FLAWED = {
    "audit_type": "audit",
    "verdict": "DESIGN_FLAW",
    "iteration": 1,
    "issues": [{"severity": "major", "issue": "gap"}],
}


def phases(stage: Stage) -> list[str]:
    return [entry["phase"] for entry in stage.last("context-manifest")["completed_phases"]]


def front_matter(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text.split("---\n")[1])


def test_eight_step_writes_the_documentation_tree_of_its_seed(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run = stage.play("Add dark mode", "eight-step")
    assert run["status"] == "completed"
    wanted = schema("feature-docs-tree")
    folder = stage.root / "docs/feature/add-dark-mode"
    assert [name for name in wanted["files"] if not (folder / name).read_text().strip()] == []
    memory = (folder / "memory.md").read_text().splitlines()
    assert [line for line in memory if line.startswith("#")] == wanted["memory"]


def test_orchestrate_writes_the_context_managers_files(tmp_path: Path) -> None:
    """A design flaw, an implementation flaw and a failed attempt on the way: revisions, fixes, retries are all
    there."""
    kept = {
        **json.loads(PASSED),
        "memory_candidates": [{"type": "decision", "title": "Fallback", "content": "have one"}],
    }
    implementation = {
        **FLAWED,
        "verdict": "IMPLEMENTATION_FLAW",
        "issues": [{"severity": "critical", "file": "a.py:3"}],
    }
    stage = Stage(
        tmp_path,
        [
            {"for": {"role": "design-auditor", "visit": "1"}, "files": {"{out}": json.dumps(FLAWED)}},
            {"for": {"role": "design-auditor"}, "files": {"{out}": json.dumps(kept)}},
            {"for": {"role": "impl-auditor", "visit": "1"}, "files": {"{out}": json.dumps(implementation)}},
            {"for": {"role": "test-writer", "item": "2", "try": "1"}, "reply": "ERROR: no idea"},
        ],
    )
    run = stage.play("Add dark mode", "orchestrate")
    assert run["status"] == stage.last("context-manifest")["status"] == "completed"
    found = phases(stage)
    assert found[:5] == ["architect", "design-audit", "architect-revision", "design-audit", "spec-writer"]
    assert sorted(found[5:10]) == [
        "implementer:task-1",
        "implementer:task-2",
        "test-writer:task-1",
        "test-writer:task-2",
        "test-writer:task-2",
    ]
    assert found[10:] == ["test-runner", "impl-audit", "implementation-fix", "test-runner", "impl-audit"]
    shown = stage.last("context-manifest")
    assert shown["metrics"]["total_retries"] == 1
    assert [wave["tasks"][0]["id"] for wave in shown["waves"]["execution"]] == [1, 2]
    assert {gate["gate"] for s in stage.seen["context-manifest"] if (gate := s["gate_context"])} == {"design", "final"}
    assert any(len(s["running_phases"]) == 2 for s in stage.seen["context-manifest"])
    assert len(stage.last("context-audit-history")) == 4
    for name in (
        "architect-revision-1.md",
        "implementation-fix-1.md",
        "implementations/task-002.md",
        "tests/task-001.md",
        "test-results.md",
    ):
        assert stage.text(f"{TASK}/{name}").strip()
    assert "Fallback" in stage.text("docs/orchestrator/memory/decisions.md")
    assert "## Summary\n\nTask completed." in stage.text("docs/orchestrator/context/current-task.md")
    history = stage.text("docs/orchestrator/context/history.md")
    assert "END_PHASE phase: test-writer:task-2 status: failed" in history
    assert "Design Phase" not in history and "Implementation Phase" not in history


def test_a_loop_is_gone_round_twice_then_the_task_is_paused(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path, [{"for": {"role": "design-auditor"}, "run": "date +%N", "files": {"{out}": json.dumps(FLAWED)}}]
    )
    run = stage.play("Add dark mode", "orchestrate")
    assert run["status"] == stage.last("context-manifest")["status"] == "paused"
    assert phases(stage) == ["architect", *["design-audit", "architect-revision"] * 2, "design-audit"]
    told = stage.last("context-manifest")["failure_context"]
    assert told["phase"] == "design-audit" and "after two revisions" in told["reason"]
    assert told["recommendations"] == ["retry", "reject"]
    assert (stage.root / TASK / "architect-revision-2.md").exists()


def test_a_proof_of_concept_records_its_debt_and_graduates(tmp_path: Path) -> None:
    sloppy = {"for": {"role": "implementer"}, "files": {"{out}": "# Done\n\n- [Medium] Sorting is missing\n"}}
    stage = Stage(tmp_path, [sloppy])
    run = stage.play("Add dark mode", "poc")
    assert run["status"] == stage.last("context-manifest")["status"] == "poc-complete"
    debt = front_matter(stage.text(f"{TASK}/debt.md"))
    validate(debt, "context-debt")
    assert debt["known_issues"][0]["severity"] == "medium" and debt["graduated_at"] is None

    run = stage.play("Add dark mode", "graduate")
    shown = stage.last("context-manifest")
    assert run["status"] == shown["status"] == "graduated" and shown["workflow"] == "graduate"
    assert phases(stage) == [
        "architect",
        "implementer",
        "design-audit",
        "spec-writer",
        "test-writer",
        "test-runner",
        "impl-audit",
    ]
    debt = front_matter(stage.text(f"{TASK}/debt.md"))
    validate(debt, "context-debt")
    assert debt["graduated_at"] == shown["graduated_at"]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ("standard", "Cannot graduate non-POC task. Task mode is 'standard'"),
        ("running", "Task not ready for graduation, current status: 'running'"),
        ("no debt", "Missing debt.md required for graduation"),
        ("no design", "Missing architect.md required for graduation"),
        ("no code", "Missing implementation files required for graduation"),
    ],
)
def test_what_cannot_graduate_is_refused_and_not_touched(tmp_path: Path, given: str, refused: str) -> None:
    stage = Stage(tmp_path)
    context = stage.workspace.context
    context.init("Add dark mode", mode="standard" if given == "standard" else "poc")
    if given != "no design":
        context.store("architect", "# Design")
    if given != "no code":
        context.store("implementation", "# Code")
    if given == "no debt":
        with stage.workspace.turn() as turn:
            turn.do("add-dark-mode", {"do": "Finish", "outcome": "poc-complete"})
    elif given not in ("standard", "running"):
        context.store("debt", "skipped_phases: []")
    before = stage.workspace.load("add-dark-mode")
    with pytest.raises(Refused, match=refused):
        stage.play("Add dark mode", "graduate")
    assert stage.workspace.load("add-dark-mode") == before


def test_a_task_nobody_knows_cannot_graduate(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no run 'Add dark mode'"):
        Stage(tmp_path).play("Add dark mode", "graduate")


def test_ticket_writes_the_flow_state(tmp_path: Path) -> None:
    """A step that fails its validation once; each step is committed; a checkpoint after each phase."""
    doubt = {
        "for": {"role": "validation_agent", "item": "2", "visit": "1"},
        "files": {"{out}": "wrong"},
        "reply": "NEEDS_REVISION: no test",
    }
    stage = Stage(tmp_path, [doubt])
    run = stage.play("Add dark mode", "ticket")
    shown = stage.last("flow-state")
    assert run["status"] == "completed" and shown["phase"] == "complete"
    assert [entry["task"] for entry in shown["agent_history"]][:5] == [
        "ticket_analysis",
        "create_implementation_plan",
        "implement_step_1",
        "validate_step_1",
        "commit_step_1",
    ]
    assert [one["phase"] for one in shown["user_checkpoints"]] == [
        "understanding",
        "planning",
        "execution",
        "integration",
    ]
    assert [one["step"] for one in shown["commits_created"]] == ["step_1_theme", "step_2_toggle"]
    assert all(shown["quality_gates"].values())
    assert {s["phase"] for s in stage.seen["flow-state"]} == {
        "understanding",
        "planning",
        "execution",
        "integration",
        "complete",
    }
    actions = [s["next_actions"] for s in stage.seen["flow-state"]]
    assert ["wait_for_execution_agent"] in actions and ["get_user_approval"] in actions
    assert any(
        s["quality_gates"]["tests_passing"] is False
        for s in stage.seen["flow-state"]
        if s["current_step"] == "implement_step_2"
    )


@pytest.mark.parametrize(("profile", "count"), [("minimal", 5), ("standard", 13), ("thorough", 15)])
def test_each_staged_profile_writes_its_state(tmp_path: Path, profile: str, count: int) -> None:
    """The standard one with a coverage that is too low at first: back to where tests are written."""
    low = {"for": {"step": "3.5", "visit": "1"}, "files": {"{out}": APPROVED.replace("97", "60")}}
    stage = Stage(tmp_path, [low] if profile == "standard" else [])
    run = stage.play("Add dark mode", f"staged-{profile}")
    shown = stage.last("staged-state")
    assert run["status"] == shown["status"] == "completed" and shown["pipelineProfile"] == profile
    assert [entry["phase"] for entry in shown["schedule"]] == list(shown["files"]) and len(shown["files"]) == count
    for path in shown["files"].values():
        assert stage.text(path).strip()
    assert [task["status"] for task in json.loads(stage.text(shown["files"]["2.1"]))["tasks"]][:1] == ["completed"]
    assert {entry["status"] for entry in shown["stages"].values()} <= {"completed", "skipped"}
    assert shown["stages"]["IMPLEMENT"]["phases"]["2.3"]["reviewResult"]["status"] == "approved"
    on_the_way = [a["step"] for a in run["attempts"].values() if a["item"] in (None, "1")]
    again = on_the_way.index("3.5") if profile == "standard" else None
    assert on_the_way == [*on_the_way[:again], *(["3.5", "3.3", "3.4", "3.5", "4.1", "4.2", "4.3"] if again else [])]
    assert on_the_way[:again] == [entry["phase"] for entry in shown["schedule"]][:again]
    assert set(on_the_way) <= {s["currentPhase"] for s in stage.seen["staged-state"]}


def test_staged_reviews_lead_to_fixes_restarts_and_a_block(tmp_path: Path) -> None:
    """Second reviewer, one fix, one restart of the stage (all void), and then a person has to look at it."""
    rejected = '{"status": "needs_revision", "issues": [{"severity": "HIGH", "issue": "no tests"}], "summary": "no"}'
    stage = Stage(tmp_path, [{"for": {"step": "2.3"}, "files": {"{out}": rejected}}])
    policy = {"reviewPolicy": {"minBlockSeverity": "LOW", "maxFixAttempts": 1, "maxStageRestarts": 1}}
    run = stage.play("Add dark mode", "staged-minimal", settings=policy)
    shown = stage.last("staged-state")
    assert run["status"] == shown["status"] == "blocked"
    assert shown["stages"]["IMPLEMENT"]["restartCount"] == 1 and shown["stages"]["IMPLEMENT"]["blockReason"]
    assert [one["stage"] for one in shown["restartHistory"]] == ["IMPLEMENT"]
    fixes = [
        s["stages"]["IMPLEMENT"]["phases"].get("2.3", {}).get("fixAttempts", 0) for s in stage.seen["staged-state"]
    ]
    assert max(fixes) == 1
    tries = [a["role"] for a in run["attempts"].values() if a["step"] == "2.3"]
    assert tries == ["impl-reviewer", "supplementary-reviewer", "impl-reviewer"] * 2


def test_an_unfinished_task_is_never_written_over(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.workspace.staged.init("Something else")
    stage.workspace.feature_state.start("Something more")
    for pipeline, words in (
        ("staged-minimal", "unfinished task: Something else"),
        ("feature-dev", "something-more is in discovery"),
    ):
        with pytest.raises(Refused, match=words):
            stage.play("Add dark mode", pipeline)
    assert json.loads(stage.text(".agents/tmp/state.json"))["task"] == "Something else"


def test_feature_dev_writes_the_feature_state(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run = stage.play("Add dark mode", "feature-dev")
    shown = stage.last("feature-state")
    assert run["status"] == "completed"
    assert set(shown["phases"].values()) == {"completed"} and shown["currentFeature"]["phase"] == "commit"
    assert shown["currentFeature"]["specFile"] == "docs/specs/add-dark-mode.md"
    assert shown["currentFeature"]["planFile"] == "docs/specs/add-dark-mode-plan.md"
    assert shown["currentFeature"]["testFile"] == "tests/unit/add-dark-mode.test.ts"
    assert [(task["id"], task["status"]) for task in shown["tasks"]] == [(1, "completed"), (2, "completed")]
    assert shown["discoveryAnswers"]["problem"] == "eyes hurt"
    assert any(s["phases"]["approval"] == "in_progress" for s in stage.seen["feature-state"])
    assert any(task["status"] == "in_progress" for s in stage.seen["feature-state"] for task in s["tasks"])


def test_phases_that_are_switched_off_are_shown_as_skipped(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.play("Add dark mode", "feature-dev", switches={"discovery": False, "tests": False})
    shown = stage.last("feature-state")["phases"]
    assert shown["discovery"] == shown["test"] == "skipped" and shown["commit"] == "completed"


@pytest.mark.parametrize(
    ("pipeline", "first", "second"),
    [("quick", "change-planner", "changer"), ("fix", "reproducer", "changer")],
)
def test_the_small_ones_take_three_agents_and_go_back_once_a_review_finds_something(
    tmp_path: Path, pipeline: str, first: str, second: str
) -> None:
    finding = {"for": {"step": "review", "visit": 1}, "reply": "NEEDS_REVISION: an edge is missing"}
    stage = Stage(tmp_path, [finding])
    run = stage.play("Add dark mode", pipeline)
    assert run["status"] == "completed"
    assert [attempt["role"] for attempt in run["attempts"].values()] == [
        first,
        second,
        "change-reviewer",
        second,
        "change-reviewer",
    ]
    again = [name for name in run["attempts"] if name.endswith("-2-changer-1")]
    assert again, "the second round is a visit of its own"


def test_a_small_change_waits_for_an_approval_where_one_is_asked_for(tmp_path: Path) -> None:
    run = Stage(tmp_path).play("Add dark mode", "quick", in_advance="", switches={"approval": True})
    assert (run["status"], run["gate"]["name"]) == ("waiting_gate", "plan")


OWN = """
name: tiny
description: Design and code, shown as a task of the context manager.
shown_as: context
documents: docs/orchestrator/context/tasks/{slug}
steps:
  - id: architect
    agent: {role: architect, out: architect.md}
  - id: build
    waves:
      plan: architect.md
      roles: [{role: builder, out: "implementations/task-{number}.md"}]
"""
ROLE = "---\nname: builder\ndescription: Builds one item.\n---\n\nBuild the item. End with `DONE: <summary>`.\n"


def test_a_pipeline_of_ones_own_works_the_same_way(tmp_path: Path) -> None:
    """In .tenuto/pipelines, with a role of its own in .tenuto/roles."""
    stage = Stage(tmp_path, [{"for": {"role": "architect"}, "files": {"{out}": TWO_ITEMS}}])
    for path, text in ((".tenuto/pipelines/tiny.yaml", OWN), (".tenuto/roles/builder.md", ROLE)):
        (stage.root / path).parent.mkdir(parents=True, exist_ok=True)
        (stage.root / path).write_text(text)
    stage.look = lambda run, fresh: None  # type: ignore[method-assign]  # its workflow is none of the seed's
    run = stage.play("Add dark mode", "tiny")
    shown = json.loads(stage.text(f"{TASK}/manifest.json"))
    assert run["status"] == shown["status"] == "completed" and shown["workflow"] == "tiny"
    assert [entry["phase"] for entry in shown["completed_phases"]] == ["architect", "builder:task-1", "builder:task-2"]
    assert stage.text(f"{TASK}/implementations/task-002.md").strip()
