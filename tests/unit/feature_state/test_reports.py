"""The three payloads of the state file's own users, as they write them."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.hooks.call import answer
from tenuto.hooks.parse import parse_hook

STOP = {
    "agentName": "spec-writer",
    "completedPhase": "spec",
    "nextPhase": "plan",
    "filesCreated": ["docs/specs/feature-name.md"],
    "filesModified": [],
    "timestamp": "2025-11-29T14:30:00Z",
}
COMPACT = {
    "reason": "context_limit",
    "currentPhase": "implementation",
    "currentTask": {"id": 3, "description": "Add token storage mechanism", "status": "in_progress"},
    "lastAction": "Created OAuth provider in src/auth/oauth.ts:45",
    "timestamp": "2025-11-29T15:45:00Z",
}
TASK = {
    "type": "task_update",
    "taskId": 2,
    "newStatus": "completed",
    "nextTaskId": 3,
    "filesCreated": ["src/auth/token-store.ts"],
    "timestamp": "2025-11-29T14:45:00Z",
}
NOTICE = """\
⚠️ Context limit approaching. Progress saved to .feature-state.json

Feature: oauth-login
Current phase: implementation (in_progress)
Last completed: Created OAuth provider in src/auth/oauth.ts:45
In progress: Add token storage mechanism

Please run /clear to continue with fresh context.
When ready, run /feature-dev-plus to resume."""


def hook(repository: Any, event: str, payload: Any) -> tuple[str, list[str]]:
    workspace = repository.workspace
    return answer(workspace, parse_hook(event, payload)), workspace.warnings


def test_a_completed_phase(started: Any) -> None:
    before = started.state
    assert hook(started, "SubagentStop", STOP) == ("", [])
    after = started.state
    assert after["phases"] == before["phases"] | {"spec": "completed", "plan": "in_progress"}
    assert after["currentFeature"] == before["currentFeature"] | {
        "phase": "plan",
        "updatedAt": "2025-11-29T14:30:00Z",
        "specFile": "docs/specs/feature-name.md",
    }
    assert (after["tasks"], after["discoveryAnswers"]) == (before["tasks"], before["discoveryAnswers"])


def test_times_are_shown_as_told_and_kept_by_our_clock(started: Any) -> None:
    hook(started, "SubagentStop", STOP)
    run = started.workspace.load("oauth-login")
    assert run["reported_at"] == STOP["timestamp"]
    assert run["updated_at"] > "2026"


@pytest.mark.parametrize("times", [2, 3])
def test_the_same_completion_from_two_sides_counts_once(started: Any, times: int) -> None:
    hook(started, "SubagentStop", STOP)
    version, bytes_ = started.workspace.load("oauth-login")["version"], started.file.read_bytes()
    for number in range(times):
        hook(started, "SubagentStop", STOP | {"timestamp": f"2025-11-29T14:30:0{number + 1}Z"})
    assert started.workspace.load("oauth-login")["version"] == version
    assert started.file.read_bytes() == bytes_


def test_a_late_completion_takes_nothing_back(started: Any) -> None:
    """Spec is reported again when the plan is long done: the plan stays done."""
    hook(started, "SubagentStop", STOP)
    hook(
        started,
        "SubagentStop",
        STOP | {"agentName": "code-architect", "completedPhase": "plan", "nextPhase": "approval"},
    )
    hook(started, "SubagentStop", STOP)
    assert started.state["phases"]["plan"] == "completed"
    assert started.state["currentFeature"]["phase"] == "approval"


@pytest.mark.parametrize(
    "claim",
    [
        {"completedPhase": "approval", "nextPhase": "implementation"},
        {"completedPhase": "plan", "nextPhase": "implementation"},
        {"completedPhase": "implementation", "nextPhase": "test"},
        {"completedPhase": "commit", "nextPhase": "discovery"},
    ],
)
def test_no_payload_gets_past_the_approval(started: Any, claim: Any) -> None:
    started.feature.phase("spec")
    _, warnings = hook(started, "SubagentStop", STOP | claim)
    phases = started.state["phases"]
    assert phases["approval"] != "completed"
    assert {phases[later] for later in ("implementation", "test", "commit")} == {"pending"}
    assert warnings


def test_a_plan_that_leads_past_the_approval_leads_to_it(started: Any) -> None:
    started.feature.phase("spec")
    hook(started, "SubagentStop", STOP | {"completedPhase": "plan", "nextPhase": "implementation"})
    assert started.state["phases"] | {} == started.state["phases"] | {"plan": "completed", "approval": "in_progress"}
    assert started.state["currentFeature"]["phase"] == "approval"


@pytest.mark.parametrize(
    ("missing", "warned"),
    [("nextPhase", "nextPhase"), ("completedPhase", "completedPhase"), ("timestamp", "timestamp"), ("agentName", "")],
)
def test_what_is_missing_has_a_default_and_a_warning(started: Any, missing: str, warned: str) -> None:
    payload = {key: value for key, value in STOP.items() if key != missing}
    _, warnings = hook(started, "SubagentStop", payload)
    assert started.state["phases"]["spec"] == "completed"
    assert started.state["phases"]["plan"] == "in_progress"
    assert warned in "".join(warnings)
    assert bool(warnings) == bool(warned)


def test_a_payload_that_says_nothing_completes_nothing(started: Any) -> None:
    before = started.state["phases"]
    _, warnings = hook(started, "SubagentStop", {})
    assert warnings
    assert started.state["phases"] == before


def test_created_files_become_artifacts(started: Any) -> None:
    spec = started.root / "docs" / "specs"
    spec.mkdir(parents=True)
    (spec / "feature-name.md").write_text("# Spec\n")
    hook(started, "SubagentStop", STOP)
    hook(
        started,
        "SubagentStop",
        STOP
        | {
            "completedPhase": "plan",
            "nextPhase": "approval",
            "filesCreated": ["docs/specs/feature-name-plan.md"],
            "filesModified": ["docs/specs/feature-name.md", "../outside.md", "/etc/passwd", 7],
        },
    )
    shown = started.state["currentFeature"]
    assert shown["specFile"] == "docs/specs/feature-name.md"
    assert shown["planFile"] == "docs/specs/feature-name-plan.md"
    artifacts = started.workspace.load("oauth-login")["artifacts"]
    assert list(artifacts) == ["docs/specs/feature-name.md", "docs/specs/feature-name-plan.md"]
    with started.workspace.journal.read() as reader:
        assert reader.blob(artifacts["docs/specs/feature-name.md"]["sha256"]) == b"# Spec\n"


def test_a_context_about_to_be_lost(started: Any) -> None:
    started.feature.plan(["Provider", "Callback", "Add token storage mechanism", "Sign out"])
    said, warnings = hook(started, "PreCompact", COMPACT)
    assert said == NOTICE
    assert warnings == []
    shown = started.state
    assert shown["currentFeature"]["pausedAt"] == "2025-11-29T15:45:00Z"
    assert shown["currentFeature"]["pauseReason"] == "context_limit"
    context = shown["resumeContext"]
    assert context["lastAction"] == COMPACT["lastAction"]
    assert context["currentTask"] == "Add token storage mechanism"
    assert context["nextSteps"]


def test_a_context_with_nothing_in_it_is_taken_from_the_run(started: Any) -> None:
    started.feature.plan(["Provider"])
    said, warnings = hook(started, "PreCompact", {"reason": "user_request"})
    assert "Current phase: spec (in_progress)" in said
    assert len(warnings) == 3
    assert started.state["currentFeature"]["pauseReason"] == "user_request"


def test_a_task_done_and_the_next_begun(started: Any) -> None:
    started.feature.plan(["Provider", "Token storage", "Sign out"])
    assert hook(started, "task_update", TASK) == ("", [])
    assert [task["status"] for task in started.state["tasks"]] == ["pending", "completed", "in_progress"]
    assert started.state["currentFeature"]["updatedAt"] == TASK["timestamp"]
    run = started.workspace.load("oauth-login")
    assert "src/auth/token-store.ts" in run["artifacts"]
    assert run["items"]["2"]["files"] == ["src/auth/token-store.ts"]
    before = run["version"]
    hook(started, "SubagentStop", TASK)  # under any event's name, and again
    assert started.workspace.load("oauth-login")["version"] == before


@pytest.mark.parametrize(
    "claim", [{"taskId": 9}, {"taskId": None}, {"taskId": "x"}, {"nextTaskId": 9}, {"newStatus": "odd"}]
)
def test_a_task_that_is_not_there_is_a_warning(started: Any, claim: Any) -> None:
    started.feature.plan(["Provider", "Token storage", "Sign out"])
    _, warnings = hook(started, "task_update", TASK | claim)
    assert warnings
    assert len(started.state["tasks"]) == 3
