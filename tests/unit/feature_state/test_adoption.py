"""A state file from before Tenuto goes on where it is; somebody else's file is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tenuto.dialects.feature import adopt
from tenuto.errors import Refused
from tenuto.views.feature_state import PHASES

STOP = {
    "agentName": "code-architect",
    "completedPhase": "plan",
    "nextPhase": "approval",
    "timestamp": "2025-11-29T14:30:00Z",
}
OLD: dict[str, Any] = {
    "currentFeature": {
        "name": "oauth-login",
        "description": "Sign in",
        "phase": "plan",
        "specFile": "docs/specs/oauth.md",
        "planFile": None,
        "startedAt": "2025-11-29T10:00:00Z",
        "updatedAt": "2025-11-29T12:00:00Z",
        "branch": "feature/oauth",
    },
    "phases": {
        "discovery": "completed",
        "spec": "completed",
        "plan": "in_progress",
        "approval": "pending",
        "implementation": "pending",
        "test": "pending",
        "commit": "pending",
    },
    "tasks": [
        {"id": 1, "description": "Provider", "status": "completed"},
        {"id": "two", "description": "Tokens", "status": "in_progress"},
        {"id": 1, "description": "Twice", "status": "pending", "note": "x"},
    ],
    "resumeContext": {
        "lastAction": "Wrote the spec",
        "currentTask": "Plan",
        "nextSteps": ["Approve"],
        "filesInProgress": ["a.ts"],
    },
    "discoveryAnswers": {"problem": "passwords", "mood": "good"},
    "pluginVersion": "1.2",
}


def test_a_first_report_takes_the_file_over(repository: Any) -> None:
    repository.write(OLD)
    repository.feature.report(STOP)
    shown = repository.state
    assert shown["phases"] == OLD["phases"] | {"plan": "completed", "approval": "in_progress"}
    assert shown["currentFeature"] == OLD["currentFeature"] | {
        "phase": "approval",
        "updatedAt": STOP["timestamp"],
        "testFile": None,
    }
    assert shown["tasks"] == OLD["tasks"]
    assert shown["resumeContext"] == OLD["resumeContext"]
    assert (
        shown["discoveryAnswers"]
        == {"users": "", "outcome": "", "constraints": "", "successCriteria": ""} | OLD["discoveryAnswers"]
    )
    assert shown["pluginVersion"] == "1.2"


def test_adopting_changes_nothing_that_was_told(repository: Any) -> None:
    repository.write(OLD)
    with repository.workspace.turn() as turn:
        run = adopt(turn, ".feature-state.json", repository.file.read_bytes())
    assert run == "oauth-login"
    shown = repository.state
    assert shown["currentFeature"]["updatedAt"] == "2025-11-29T12:00:00Z"
    assert shown["currentFeature"]["startedAt"] == "2025-11-29T10:00:00Z"
    assert {key: shown[key] for key in ("phases", "tasks", "resumeContext", "pluginVersion")} == {
        key: OLD[key] for key in ("phases", "tasks", "resumeContext", "pluginVersion")
    }
    with repository.workspace.journal.read() as reader:
        (adopted, *_) = reader.events(run)
        assert reader.blob(adopted["sha256"]) == json.dumps(OLD).encode()


def test_an_approval_from_before_counts(repository: Any) -> None:
    done = {phase: "completed" for phase in ("discovery", "spec", "plan", "approval")}
    repository.write(
        OLD
        | {
            "phases": OLD["phases"] | done | {"implementation": "in_progress"},
            "currentFeature": OLD["currentFeature"] | {"phase": "implementation"},
        }
    )
    repository.feature.report(STOP | {"completedPhase": "implementation", "nextPhase": "test"})
    assert repository.state["phases"]["test"] == "in_progress"


def test_a_pause_from_before_is_still_a_pause(repository: Any) -> None:
    paused = OLD["currentFeature"] | {"pausedAt": "2025-11-29T12:00:00Z", "pauseReason": "context_limit"}
    repository.write(OLD | {"currentFeature": paused})
    repository.feature.answer({"users": "all"})
    assert repository.state["currentFeature"]["pausedAt"] == "2025-11-29T12:00:00Z"
    assert "Wrote the spec" in repository.feature.resume()["context"]
    assert "pausedAt" not in repository.state["currentFeature"]


@pytest.mark.parametrize(
    "drift",
    [
        {"tasks": None},
        {"tasks": ["just text"]},
        {"phases": {"spec": "done"}},
        {"resumeContext": "text"},
        {"discoveryAnswers": []},
        {"currentFeature": {"name": "Ünïcode Näme", "phase": "spec"}},
        {"currentFeature": {"name": "x", "phase": "spec", "startedAt": 7, "description": None}},
    ],
    ids=range(7),
)
def test_real_files_drift_and_are_read(repository: Any, drift: Any) -> None:
    repository.write(OLD | drift)
    repository.feature.answer({"users": "all"})
    assert repository.state["discoveryAnswers"]["users"] == "all"
    assert list(repository.state["phases"])[:7] == list(PHASES)


@pytest.mark.parametrize(
    "other",
    [
        {"flags": {"dark-mode": True}},
        {"currentFeature": "dark-mode"},
        {"currentFeature": {"enabled": True}, "phases": {}},
        {"currentFeature": {"name": "x"}, "phases": {"alpha": 1, "beta": 2}},
        [],
        {"version": 2, "status": "in_progress"},
    ],
    ids=range(6),
)
def test_another_tools_file_is_refused_by_name_and_untouched(repository: Any, other: Any) -> None:
    repository.write(other)
    before = repository.file.read_bytes()
    acts: list[Callable[[], object]] = [lambda: repository.feature.report(STOP), lambda: repository.feature.start("x")]
    for act in acts:
        with pytest.raises(Refused, match=r"\.feature-state\.json"):
            act()
        assert repository.file.read_bytes() == before
    with repository.workspace.journal.read() as reader:
        assert reader.runs() == []
