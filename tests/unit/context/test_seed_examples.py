"""The seed's commands and output blocks, line by line."""

from __future__ import annotations

import json

import pytest

from tests.unit.context.conftest import TASKS, Repository, error

FOLDER = f"{TASKS}/my-feature"


def test_init_writes_the_manifest_of_the_seed(repository: Repository) -> None:
    """Every key, in the seed's order, with the seed's first values."""
    said = repository.say("INIT task: My feature mode: standard workflow: orchestrate")
    assert said.splitlines()[:2] == ["STATUS: success", "TASK: my-feature"]
    assert said.splitlines()[2].startswith("DATA: ")
    assert said.splitlines()[3].startswith("FILES_TOUCHED: [")
    assert list(repository.manifest().items()) == [
        ("name", "my-feature"),
        ("mode", "standard"),
        ("workflow", "orchestrate"),
        ("status", "running"),
        ("current_phase", None),
        ("running_phases", []),
        ("completed_phases", []),
        ("failure_context", None),
        ("gate_context", None),
        ("metrics", {"total_duration_ms": None, "parallelization_savings_ms": None, "total_retries": 0}),
        ("waves", {"task_breakdown": None, "execution": []}),
        ("created_at", repository.time),
        ("updated_at", repository.time),
    ]


def test_init_points_at_the_task_and_begins_the_history(repository: Repository) -> None:
    repository.must("INIT task: My feature")
    current = repository.read("docs/orchestrator/context/current-task.md")
    assert current.startswith("# Current Task\n\n**Task:** my-feature\n")
    history = repository.read("docs/orchestrator/context/history.md")
    assert history == (
        "# Context History\n\n"
        f"## {repository.time} - Task Initialized\n"
        "- **Task:** my-feature\n- **Mode:** standard\n- **Workflow:** orchestrate\n- **Action:** INIT\n- "
        "**Status:** running\n"
    )


@pytest.mark.parametrize(
    ("text", "mode", "workflow"),
    [
        ("INIT task: my-feature", "standard", "orchestrate"),
        ("INIT task: my-feature mode: poc", "poc", "orchestrate"),
        ("INIT task: my-feature mode: poc workflow: poc", "poc", "poc"),
        ("INIT task: my-feature workflow: graduate", "standard", "graduate"),
    ],
)
def test_init_defaults(repository: Repository, text: str, mode: str, workflow: str) -> None:
    repository.must(text)
    assert (repository.manifest()["mode"], repository.manifest()["workflow"]) == (mode, workflow)


@pytest.mark.parametrize("name", ["manifest.json", "metadata.json"])
def test_init_over_an_existing_task_is_refused_and_overwrites_nothing(repository: Repository, name: str) -> None:
    repository.write(f"{FOLDER}/{name}", '{"name": "my-feature", "status": "in-progress"}')
    before = repository.files()
    assert repository.say("INIT task: my-feature") == error("Task already exists: my-feature")
    assert repository.files() == before


def test_init_twice(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    assert repository.say("INIT task: My Feature!") == error("Task already exists: my-feature")


def test_unknown_mode_and_workflow_name_the_allowed_ones(repository: Repository) -> None:
    assert repository.say("INIT task: a mode: fast") == error("Invalid mode: fast. Use standard or poc")
    assert repository.say("INIT task: a workflow: x") == error("Invalid workflow: x. Use orchestrate, poc, or graduate")


def test_start_phase(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    repository.wait(1000)
    assert repository.say("START_PHASE phase: architect") == (
        f"STATUS: success\nTASK: my-feature\nPHASE_STARTED: architect\nSTARTED_AT: {repository.time}"
    )
    told = repository.manifest()
    assert told["running_phases"] == [{"phase": "architect", "started_at": repository.time}]
    assert told["current_phase"] == "architect"
    assert told["updated_at"] == repository.time
    assert repository.say("START_PHASE phase: architect") == error("Phase architect already running")
    assert repository.manifest() == told


def test_phases_side_by_side_keep_the_current_phase_until_all_have_ended(repository: Repository) -> None:
    repository.must(
        "INIT task: my-feature", "START_PHASE phase: implementer:task-1", "START_PHASE phase: test-writer:task-1"
    )
    assert [entry["phase"] for entry in repository.manifest()["running_phases"]] == [
        "implementer:task-1",
        "test-writer:task-1",
    ]
    assert repository.manifest()["current_phase"] == "implementer:task-1"
    assert repository.say("END_PHASE phase: implementer:task-1 status: success").endswith("RUNNING_PHASES: 1")
    assert repository.manifest()["current_phase"] == "implementer:task-1"
    assert repository.say("END_PHASE phase: test-writer:task-1 status: success").endswith("RUNNING_PHASES: 0")
    assert repository.manifest()["current_phase"] is None


def test_end_phase(repository: Repository) -> None:
    repository.must("INIT task: my-feature", "START_PHASE phase: architect")
    started = repository.time
    repository.wait(45_000)
    assert repository.say("END_PHASE phase: architect status: success") == (
        "STATUS: success\nTASK: my-feature\nPHASE_ENDED: architect\nDURATION_MS: 45000\nRESULT: "
        "success\nRUNNING_PHASES: 0"
    )
    told = repository.manifest()
    assert told["running_phases"] == []
    assert [list(entry.items()) for entry in told["completed_phases"]] == [
        [
            ("phase", "architect"),
            ("status", "success"),
            ("started_at", started),
            ("ended_at", repository.time),
            ("duration_ms", 45000),
            ("retries", 0),
        ]
    ]
    assert repository.say("END_PHASE phase: architect status: success") == error(
        "Phase architect not currently running"
    )


def test_a_failed_phase_counts_as_a_retry_of_the_next_visit(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    for status in ("failed", "failed", "success"):
        repository.must("START_PHASE phase: implementer", f"END_PHASE phase: implementer status: {status}")
    told = repository.manifest()
    assert told["metrics"]["total_retries"] == 2
    assert [entry["retries"] for entry in told["completed_phases"]] == [0, 1, 2]


def test_pause(repository: Repository) -> None:
    repository.must(
        "INIT task: my-feature", "START_PHASE phase: architect", "END_PHASE phase: architect status: failed"
    )
    assert repository.say(
        "PAUSE reason: Max iterations reached for architect recommendations: Review audit feedback,Consider changes"
    ) == (
        "STATUS: success\nTASK: my-feature\nACTION: paused\nREASON: Max iterations reached for architect\n"
        "RECOMMENDATIONS: Review audit feedback, Consider changes\nRESUME_WITH: /resume my-feature"
    )
    told = repository.manifest()
    assert told["status"] == "paused"
    assert list(told["failure_context"].items()) == [
        ("phase", "architect"),
        ("reason", "Max iterations reached for architect"),
        ("attempts", 1),
        ("last_feedback", ""),
        ("recommendations", ["Review audit feedback", "Consider changes"]),
    ]


def test_pause_without_recommendations(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    assert "RECOMMENDATIONS:\n" in repository.say("PAUSE reason: Manual pause requested recommendations:")
    assert repository.manifest()["failure_context"]["recommendations"] == []
    assert repository.manifest()["failure_context"]["phase"] is None


def test_pause_while_phases_run(repository: Repository) -> None:
    repository.must("INIT task: my-feature", "START_PHASE phase: a", "START_PHASE phase: b")
    assert repository.say("PAUSE reason: x recommendations: y") == error("Cannot pause while phases are running: a, b")


def test_set_gate(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    assert repository.say("SET_GATE gate: design prompt: Review the design artifacts: a.md,docs/b.md") == (
        "STATUS: success\nTASK: my-feature\nACTION: gate_set\nGATE: design\nPROMPT: Review the design\n"
        "ARTIFACTS: a.md, docs/b.md\nRESUME_WITH: /resume my-feature"
    )
    told = repository.manifest()
    assert told["status"] == "waiting_gate"
    assert list(told["gate_context"].items()) == [
        ("gate", "design"),
        ("prompt", "Review the design"),
        ("options", ["approve", "reject", "revise"]),
        ("artifacts", ["a.md", "docs/b.md"]),
    ]


def test_set_gate_refusals(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    assert repository.say("SET_GATE gate: unknown prompt: test artifacts: test.md") == error(
        "Invalid gate type: unknown"
    )
    repository.must("START_PHASE phase: implementer")
    assert repository.say("SET_GATE gate: design prompt: test artifacts: test.md") == error(
        "Cannot set gate while phases are running"
    )


def test_resume_after_an_approved_design_gate(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    for phase in ("architect", "design-audit"):
        repository.must(f"START_PHASE phase: {phase}", f"END_PHASE phase: {phase} status: success")
    repository.must("SET_GATE gate: design prompt: ok? artifacts:")
    assert repository.say("RESUME decision: approve") == (
        "STATUS: success\nTASK: my-feature\nACTION: resumed\nPREVIOUS_STATE: waiting_gate\nDECISION: approve\n"
        "CONTINUE_FROM: spec-writer\nCOMPLETED_PHASES: architect, design-audit"
    )
    assert (repository.manifest()["status"], repository.manifest()["gate_context"]) == ("running", None)


@pytest.mark.parametrize(
    ("gate", "decision", "status", "onward"),
    [
        ("design", "approve", "running", "spec-writer"),
        ("design", "revise", "running", "architect-revision"),
        ("design", "reject", "failed", "none"),
        ("final", "approve", "completed", "none"),
        ("final", "revise", "running", "implementation-fix"),
        ("final", "reject", "failed", "none"),
    ],
)
def test_where_a_gate_leads(repository: Repository, gate: str, decision: str, status: str, onward: str) -> None:
    repository.must("INIT task: my-feature", f"SET_GATE gate: {gate} prompt: ok? artifacts: a.md")
    said = repository.say(f"RESUME decision: {decision} feedback: split it")
    assert f"CONTINUE_FROM: {onward}\n" in said
    assert (repository.manifest()["status"], repository.manifest()["gate_context"]) == (status, None)


@pytest.mark.parametrize(
    ("decision", "status", "onward"), [("retry", "running", "implementer"), ("reject", "failed", "none")]
)
def test_where_a_pause_leads(repository: Repository, decision: str, status: str, onward: str) -> None:
    repository.must(
        "INIT task: my-feature", "START_PHASE phase: implementer", "END_PHASE phase: implementer status: failed"
    )
    repository.must("PAUSE reason: stuck recommendations: a")
    assert repository.say(f"RESUME decision: {decision}") == (
        f"STATUS: success\nTASK: my-feature\nACTION: resumed\nPREVIOUS_STATE: paused\nDECISION: {decision}\n"
        f"CONTINUE_FROM: {onward}\nCOMPLETED_PHASES: implementer"
    )
    assert (repository.manifest()["status"], repository.manifest()["failure_context"]) == (status, None)


def test_invalid_decision(repository: Repository) -> None:
    repository.must("INIT task: my-feature", "SET_GATE gate: design prompt: ok?")
    for word in ("maybe", "retry"):
        assert repository.say(f"RESUME decision: {word}") == error(
            f"Invalid decision: {word}. Use approve, reject, or retry"
        )


def test_list(repository: Repository) -> None:
    repository.must("INIT task: feature-b mode: poc workflow: poc")
    older = repository.time
    repository.wait(1000)
    repository.must("INIT task: feature-a", "SET_GATE task: feature-b gate: design prompt: ok?")
    assert repository.say("LIST") == (
        "TASKS:\n"
        f"- feature-a | mode: standard | workflow: orchestrate | status: running | created: {repository.time}\n"
        f"- feature-b | mode: poc | workflow: poc | status: waiting_gate | created: {older}"
    )


def test_no_current_task(repository: Repository) -> None:
    for text in (
        "START_PHASE phase: a",
        "SUMMARY",
        "METRICS",
        "STORE phase: spec content: x",
        "RETRIEVE for_phase: spec",
    ):
        assert repository.say(text) == error("No current task. Use INIT first.")
    assert not (repository.root / "docs").exists()


def test_an_unknown_task(repository: Repository) -> None:
    repository.must("INIT task: my-feature")
    assert repository.say("RETRIEVE needs: manifest for_phase: resume task: nope") == error(
        "No task found with slug: nope"
    )
    assert repository.say("START_PHASE phase: a task: nope") == error("No task found with slug: nope")


def test_retrieve_for_resume_returns_the_manifest(repository: Repository) -> None:
    repository.must("INIT task: my-feature", "PAUSE reason: stuck recommendations: a, b")
    said = repository.say("RETRIEVE needs: manifest for_phase: resume task: my-feature")
    assert "RECEIPT" not in said
    body = said.split("DATA:\n", 1)[1].rsplit("\nFILES_TOUCHED", 1)[0]
    assert json.loads(body) == repository.manifest()
