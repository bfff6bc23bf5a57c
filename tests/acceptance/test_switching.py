"""Any run is listed, found, measured and told of, whoever leads it; and who leads it can change in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenuto.engine.begin import engage, release, start
from tenuto.engine.gates import command, decide_gate
from tenuto.engine.guided import accept, give_up, hand_out
from tenuto.errors import Refused
from tenuto.supervise.attempts import wait_any
from tests.acceptance.rehearsing import TWO_ITEMS, Stage

ROOT = Path(__file__).resolve().parents[2]
TASK = "docs/orchestrator/context/tasks/dark-mode"


def program(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command, around = [sys.executable, "-m", "tenuto", *words], {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=root, env=around, capture_output=True, text=True, check=False)


def test_every_run_is_listed_told_of_and_found(tmp_path: Path) -> None:
    """Led by hand in each of four ways, and driven by the engine; all in one repository."""
    stage = Stage(tmp_path, [{"for": {"role": "architect"}, "files": {"{out}": "# Design\n\nMidnight chartreuse.\n"}}])
    workspace = stage.workspace
    workspace.context.init("By context")
    workspace.context.start_phase("architect")
    workspace.context.store("architect", "# Design\n\nQuiet vermilion.\n")
    workspace.context.end_phase("architect", "success")
    workspace.flow.initialize_workflow("BYFLOW-1")
    workspace.staged.init("By staged")
    workspace.feature_state.start("By feature")
    driven = stage.play("By engine", "poc")
    assert driven["status"] == "poc-complete"
    listed = {row["id"] for row in json.loads(program(stage.root, "--json", "list").stdout)["data"]["runs"]}
    assert listed == {"by-context", "byflow-1", "by-staged", "by-feature", "by-engine"}
    for run in sorted(listed):
        told = program(stage.root, "--json", "history", run)
        assert told.returncode == 0 and json.loads(told.stdout)["data"]["history"], told.stderr
    with workspace.journal.read() as reader:
        assert {hit["run"] for hit in reader.search("chartreuse", 5)} == {"by-engine"}
        assert {hit["run"] for hit in reader.search("vermilion", 5)} == {"by-context"}
    assert "chartreuse" in workspace.context.query("chartreuse", task="by-engine")["data"]
    assert workspace.context.metrics(task="by-engine")["report"]["metrics"]["total_duration_ms"]


def test_a_task_begun_by_hand_is_taken_over_by_the_engine_and_given_back(tmp_path: Path) -> None:
    """INIT and architect by hand; the engine goes on at the audit; released at a pause; the fix by hand; the engine
    ends it."""
    flawed = {"audit_type": "audit", "verdict": "ESCALATE", "iteration": 1, "issues": [{"severity": "major"}]}
    stage = Stage(tmp_path, [{"for": {"role": "impl-auditor", "visit": "1"}, "files": {"{out}": json.dumps(flawed)}}])
    context = stage.workspace.context
    context.init("Dark mode")
    context.start_phase("architect")
    with pytest.raises(Refused, match="in the middle of a step: architect"):
        stage.take_over("dark-mode", "orchestrate")
    context.store("architect", "# Design")
    context.end_phase("architect", "success")

    run = stage.take_over("dark-mode", "orchestrate")
    assert run["status"] == "paused" and run["driver"] == "engine"
    done = [entry["phase"] for entry in stage.last("context-manifest")["completed_phases"]]
    assert done[:3] == ["architect", "design-audit", "spec-writer"] and done[-1] == "impl-audit"

    with pytest.raises(Refused, match="Cannot start phase while task is paused"):
        context.start_phase("implementation-fix")
    assert release(stage.workspace, "dark-mode")["driver"] == "manual"
    context.resume("retry")
    for phase in ("implementation-fix", "impl-audit"):
        context.start_phase(phase)
        context.end_phase(phase, "success")

    run = stage.take_over("dark-mode")
    assert run["status"] == stage.last("context-manifest")["status"] == "completed"
    done = [entry["phase"] for entry in stage.last("context-manifest")["completed_phases"]]
    assert done[-3:] == ["impl-audit", "implementation-fix", "impl-audit"]
    assert [decision["name"] for decision in run["decisions"]] == ["design", "final"]


def test_what_the_engine_drives_is_not_led_by_hand_at_the_same_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run = stage.play("Dark mode", "orchestrate", in_advance="")
    assert run["status"] == "waiting_gate"
    with pytest.raises(Refused, match="waits at a gate"):
        release(stage.workspace, "dark-mode")
    stage.workspace.context.resume("approve")
    with pytest.raises(Refused, match="driven by the engine"):
        stage.workspace.context.start_phase("spec-writer")
    release(stage.workspace, "dark-mode")
    stage.workspace.context.start_phase("spec-writer")


@pytest.mark.parametrize("dialect", ["flow", "staged", "feature_state"])
def test_a_run_with_an_order_changes_hands_both_ways(tmp_path: Path, dialect: str) -> None:
    """Begun by hand, taken over by the engine, given back before a gate, and ended by the engine."""
    stage = Stage(tmp_path)
    api: Any = getattr(stage.workspace, dialect)
    if dialect == "flow":
        api.initialize_workflow("DARK-1", context_summary="Dark mode")
        api.update_delegation(agent="research_agent", task="ticket_analysis")
        api.update_completion(agent="research_agent", output_summary="known")
        api.update_user_checkpoint(approved=True, phase="understanding", user_feedback="good")
        name, pipeline, ahead = "dark-1", "ticket", "planning"
    elif dialect == "staged":
        api.init("Dark mode", pipelineProfile="minimal")
        api.record_output("0", content="# Explored")
        api.advance()
        name, pipeline, ahead = "dark-mode", "staged-minimal", "2.1"
    else:
        api.start("Dark mode", skip=["discovery"])
        name, pipeline, ahead = "dark-mode", "feature-dev", "spec"
    run = engage(stage.workspace, name, pipeline)
    assert run["queue"][0]["step"] == ahead and run["driver"] == "engine"
    run = release(stage.workspace, name)
    assert run["driver"] == "manual"
    stage.answer([], run=name)
    run = stage.take_over(name)
    assert run["status"] == "completed", (run["status"], run["pause"], run["failure"], run["blocked"])
    assert "0" not in [a["step"] for a in run["attempts"].values()]


def by_hand(context: Any, *phases: str, failed: bool = False) -> None:
    for phase in phases:
        context.start_phase(phase)
        context.end_phase(phase, "failed" if failed else "success")


def specified(stage: Stage) -> Any:
    """A task led by hand up to its specification, with two items; the design approved."""
    context = stage.workspace.context
    context.init("Dark mode")
    context.store("architect", "# Design")
    by_hand(context, "architect", "design-audit")
    context.set_gate("design", "Good?")
    context.resume("approve")
    context.store("spec", TWO_ITEMS)
    by_hand(context, "spec-writer")
    return context


def worked(run: Any, step: str = "implementation") -> list[str]:
    return sorted(f"{one['role']} {one['item']}" for one in run["attempts"].values() if one["step"] == step)


def test_items_done_by_hand_are_not_done_again(tmp_path: Path) -> None:
    """`implementer:task-1` is the implementer's part of item 1, `test-writer` the test-writer's of every item."""
    stage = Stage(tmp_path)
    by_hand(specified(stage), "implementer:task-1", "test-writer:task-1", "test-writer:task-002")
    run = stage.take_over("dark-mode", "orchestrate")
    assert run["status"] == "completed", run["pause"]
    assert worked(run) == ["implementer 2"]
    assert {name: item["status"] for name, item in run["items"].items()} == {"1": "completed", "2": "completed"}


def test_where_all_items_were_done_by_hand_the_engine_goes_on_behind_them(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    by_hand(specified(stage), "implementer", "test-writer")
    run = stage.take_over("dark-mode", "orchestrate")
    assert run["status"] == "completed", run["pause"]
    assert worked(run) == []
    assert "test-runner" in [one["step"] for one in run["attempts"].values()]


def test_an_item_that_failed_by_hand_is_done_again_as_a_whole(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    context = specified(stage)
    by_hand(context, "implementer:task-1", "implementer:task-2", "test-writer:task-2")
    by_hand(context, "test-writer:task-1", failed=True)
    run = stage.take_over("dark-mode", "orchestrate")
    assert worked(run) == ["implementer 1", "test-writer 1"]


def test_work_by_hand_counts_no_longer_once_its_specification_is_another(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    context = specified(stage)
    by_hand(context, "implementer:task-1", "test-writer:task-1", "spec-writer")
    run = stage.take_over("dark-mode", "orchestrate")
    assert worked(run) == ["implementer 1", "implementer 2", "test-writer 1", "test-writer 2"]


def test_a_step_of_a_ticket_that_was_committed_by_hand_is_not_done_again(tmp_path: Path) -> None:
    """Step 1 was delegated, validated and committed; of step 2 only the implementation was delegated."""
    stage = Stage(tmp_path)
    api: Any = stage.workspace.flow
    api.initialize_workflow("DARK-1", context_summary="Dark mode")
    (stage.root / ".ai-workspace/DARK-1/working-doc.md").write_text(TWO_ITEMS)
    for agent, task, phase in (("research_agent", "analysis", "understanding"), ("planning_agent", "plan", "planning")):
        api.update_delegation(agent=agent, task=task)
        api.update_completion(agent=agent, output_summary="known")
        api.update_user_checkpoint(approved=True, phase=phase, user_feedback="good")
    for number in (1, 2):
        api.update_delegation(agent="execution_agent", task=f"implement_step_{number}")
        api.update_completion(agent="execution_agent", output_summary="done")
    head = subprocess.run(
        ["git", "-C", str(stage.root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    api.update_commit(step="step_1_theme", commit_hash=head)
    (stage.root / "step2.py").write_text("2\n")
    stage.answer([], run="dark-1")
    run = stage.take_over("dark-1", "ticket")
    assert run["status"] == "completed", (run["status"], run["pause"])
    assert worked(run, "execution") == [
        "commit_changes 2",
        "execution_agent None",
        "execution_agent None",
        "validation_agent 2",
    ]
    assert (stage.root / ".ai-workspace/DARK-1/merge-request.md").exists(), (
        "documents stay where the ticket's state lies"
    )
    assert not (stage.root / ".ai-workspace/dark-1").exists()


def test_a_task_of_a_feature_that_was_marked_as_done_is_not_done_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    api: Any = stage.workspace.feature_state
    api.start("Dark mode", skip=["discovery"])
    (stage.root / "docs/specs").mkdir(parents=True)
    (stage.root / "docs/specs/dark-mode.md").write_text("# Spec")
    (stage.root / "docs/specs/dark-mode-plan.md").write_text(TWO_ITEMS)
    for phase in ("spec", "plan"):
        api.phase(phase)
    api.approve("ada", "good")
    api.plan(["Theme", "Toggle"])
    api.report({"type": "task_update", "taskId": 1, "newStatus": "completed", "timestamp": "2026-01-01T00:00:00Z"})
    stage.answer([], run="dark-mode")
    run = stage.take_over("dark-mode", "feature-dev")
    assert run["status"] == "completed", (run["status"], run["pause"])
    assert worked(run) == ["implementer 2"]


@pytest.mark.parametrize(
    ("pipeline", "limit", "step"), [("eight-step", 2, "research"), ("orchestrate", 4, "implementation")]
)
def test_what_was_done_in_a_step_that_was_left_in_the_middle_is_not_done_again(
    tmp_path: Path, pipeline: str, limit: int, step: str
) -> None:
    """The budget is used up in the middle of a group; released, and taken over with more: only the rest is done."""
    stage = Stage(tmp_path)
    run = stage.play("Add dark mode", pipeline, limits={"attempts": limit})
    assert (run["status"], run["position"]) == ("paused", step)
    before = worked(run, step)
    assert before
    release(stage.workspace, run["id"])
    engage(stage.workspace, run["id"], limits={"attempts": 200})
    command(stage.workspace, run["id"], {"do": "Resume", "decision": "retry"})
    run = stage.drive(run["id"])
    done = worked(run, step)
    assert run["status"] == "completed", (run["status"], run["pause"])
    assert len(done) == 4 and sorted(set(done)) == sorted(set(done) | set(before))


def guide(stage: Stage, name: str) -> Any:
    """Another orchestrator leads the run until it rests: each piece of work is carried out by a process of its own."""
    while True:
        run, works = hand_out(stage.workspace, name, {})
        if not works:
            return run
        for work in works:
            deliver(stage, work)


@pytest.mark.parametrize("first", ["guided", "engine"])
def test_whoever_leads_changes_at_every_gate(tmp_path: Path, first: str) -> None:
    """Eight steps with two gates, engine and session in turn: every step is done once, its files are valid all the
    time."""
    stage = Stage(tmp_path)
    run = start(stage.workspace, "Add dark mode", "eight-step", switches={"approval": True})
    name, leads = run["id"], [first, "engine" if first == "guided" else "guided"] * 2
    led = []
    while run["status"] in ("running", "waiting_gate"):
        led.append(leads.pop(0))
        run = guide(stage, name) if led[-1] == "guided" else stage.drive(name, in_advance="")
        assert run["driver"] == led[-1]
        if run["status"] == "waiting_gate":
            run = decide_gate(stage.workspace, name, "approve", "", {})
    assert run["status"] == "completed" and len(led) == 3, (run["status"], run["pause"], run["failure"])
    whom = {attempt["step"]: attempt["agent"].partition(":")[0] for attempt in run["attempts"].values()}
    assert set(whom.values()) == {"guided", "scripted"}
    assert whom["research"] == ("guided" if first == "guided" else "scripted") != whom["design"]
    assert all(attempt["verdict"] == "DONE" for attempt in run["attempts"].values())


def test_what_a_dead_engines_agents_finished_is_taken_in_by_whoever_asks(tmp_path: Path) -> None:
    """The engine is killed while its agent works; the agent ends; a session asks what is to be done, and gets the
    next step."""
    go, pid = tmp_path / "go", tmp_path / "pid"
    stage = Stage(tmp_path, [{"for": {"role": "architect"}, "run": f"kill -9 $(cat {pid})", "wait": str(go)}])
    command, around = (
        [
            sys.executable,
            "-m",
            "tenuto",
            "run",
            "Dark mode",
            "--pipeline",
            "poc",
            "--agent",
            f"scripted:{stage.script}",
        ],
        os.environ,
    )
    engine = subprocess.Popen(
        command,
        cwd=stage.root,
        env={**around, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pid.write_text(str(engine.pid))
    while (
        not (found := list(Path(stage.workspace.state).glob("attempts/dark-mode/*/1/claim"))) and engine.poll() is None
    ):
        pass
    go.touch()
    assert engine.wait() == -9 and found
    wait_any([str(found[0].parent)], None)
    works = hand_out(stage.workspace, "dark-mode", {})[1]
    assert [work["step"] for work in works] == ["implementer"]
    run = stage.workspace.load("dark-mode")
    assert run["driver"] == "guided" and [one["verdict"] for one in run["attempts"].values()] == ["DONE", None]


def test_a_run_that_was_released_is_not_handed_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    start(stage.workspace, "Dark mode", "poc")
    release(stage.workspace, "dark-mode")
    with pytest.raises(Refused, match="led by hand") as refused:
        hand_out(stage.workspace, "dark-mode", {})
    assert program(stage.root, *refused.value.hint.removeprefix("tenuto ").split()).returncode == 0
    assert hand_out(stage.workspace, "dark-mode", {})[1]


def test_items_that_were_handed_out_and_given_up_are_made_again(tmp_path: Path) -> None:
    """In the middle of a wave: what nobody reported is lost, and the engine goes on with it."""
    stage = Stage(tmp_path)
    start(stage.workspace, "Add dark mode", "eight-step")
    while True:
        _, works = hand_out(stage.workspace, "add-dark-mode", {})
        if works[0]["item"]:
            break
        for work in works:
            deliver(stage, work)
    lost = give_up(stage.workspace, "add-dark-mode")
    assert lost == [work["attempt"] for work in works]
    run = stage.drive("add-dark-mode")
    assert run["status"] == "completed" and all(item["status"] == "completed" for item in run["items"].values())


def deliver(stage: Stage, work: Any) -> None:
    around = {
        **os.environ,
        **work["environment"],
        "TENUTO_TRY": str(work["number"]),
        "TENUTO_VISIT": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, str(ROOT / "tenuto/agents/scripted_program.py"), str(stage.script)]
    said = subprocess.run(
        command, cwd=work["workdir"], env=around, input=work["prompt"], capture_output=True, text=True, check=True
    ).stdout
    run = work["environment"]["TENUTO_RUN"]
    verdict, summary, _ = accept(stage.workspace, run, work["attempt"], {"reply": said}, {})
    assert verdict == "DONE", summary
    stage.look(stage.workspace.load(run), [])


def test_the_command_line_takes_over_and_releases(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.workspace.context.init("Dark mode", mode="poc", workflow="poc")
    done = program(stage.root, "run", "--run", "dark-mode", "--agent", f"scripted:{stage.script}")
    assert done.returncode == 0 and "dark-mode: poc-complete" in done.stdout, done.stderr
    let_go = program(stage.root, "release", "dark-mode")
    assert let_go.returncode == 0 and "led by hand" in let_go.stdout
    assert "led by hand" in program(stage.root, "status", "dark-mode").stdout
