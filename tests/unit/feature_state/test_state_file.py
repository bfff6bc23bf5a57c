"""The file: what it shows, what happens when others change it, when it is gone, broken, or not ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.parts import new_run
from tenuto.errors import Damaged, NotFound, Refused, TenutoError
from tenuto.views.feature_state import FILE, PHASES, document, name, read, schedule
from tenuto.workspace.objects import Surroundings

STOP = {"agentName": "spec-writer", "completedPhase": "spec", "nextPhase": "plan", "timestamp": "2025-11-29T14:30:00Z"}
STRUCTURE = {
    "currentFeature": ["name", "description", "phase", "specFile", "planFile", "testFile", "startedAt", "updatedAt"],
    "phases": list(PHASES),
    "resumeContext": ["lastAction", "currentTask", "nextSteps", "filesInProgress"],
    "discoveryAnswers": ["problem", "users", "outcome", "constraints", "successCriteria"],
}


def test_the_structure_is_always_complete(started: Any) -> None:
    state = started.state
    assert list(state) == ["currentFeature", "phases", "tasks", "resumeContext", "discoveryAnswers"]
    for section, fields in STRUCTURE.items():
        assert list(state[section]) == fields
    assert state["currentFeature"]["name"] == "oauth-login"


STATUSES = (
    "created",
    "running",
    "paused",
    "waiting_gate",
    "parked",
    "stopped",
    "blocked",
    "restarting",
    "completed",
    "failed",
    "cancelled",
    "poc-complete",
    "graduated",
)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("step", ["pending", "running", "completed", "failed", "skipped"])
def test_every_status_is_shown_in_the_files_own_words(status: str, step: str) -> None:
    run: Any = new_run() | {
        "id": "x",
        "status": status,
        "dialects": {name: {}},
        "schedule": schedule(),
        "order": "open",
        "items": {"1": {"title": "t", "files": [], "depends_on": [], "agent": "", "status": step, "extra": {}}},
        "steps": {phase: {"status": step, "iteration": 1, "verdict": None} for phase in PHASES},
    }
    shown = document(run)
    for phase, said in shown["phases"].items():
        allowed = {"completed", "in_progress", "pending"} | ({"skipped"} if phase in ("discovery", "test") else set())
        assert said in allowed
    assert shown["currentFeature"]["phase"] in PHASES
    assert shown["tasks"][0]["status"] in ("completed", "in_progress", "pending")
    assert shown["currentFeature"].get("pauseReason", "user_request") in ("context_limit", "user_request")


def test_edits_by_hand_are_taken_over(started: Any) -> None:
    started.feature.plan(["Provider", "Token storage"])
    state = started.state
    state["phases"]["spec"] = "completed"
    state["phases"]["plan"] = "in_progress"
    state["currentFeature"]["phase"] = "plan"
    state["currentFeature"]["specFile"] = "docs/s.md"
    state["currentFeature"]["description"] = "Better words"
    state["tasks"][0]["status"] = "completed"
    state["tasks"].append({"id": 3, "description": "Sign out", "status": "in_progress", "owner": "ada"})
    state["discoveryAnswers"]["problem"] = "Forgotten passwords"
    started.write(state)
    started.feature.answer({"users": "everybody"})
    shown = started.state
    assert shown["phases"] == state["phases"]
    assert shown["tasks"] == state["tasks"]
    assert shown["currentFeature"]["specFile"] == "docs/s.md"
    assert shown["currentFeature"]["description"] == "Better words"
    assert shown["discoveryAnswers"] == state["discoveryAnswers"] | {"users": "everybody"}
    run = started.workspace.load("oauth-login")
    assert run["steps"]["spec"]["status"] == "completed"
    assert run["items"]["3"]["status"] == "running"


def test_keys_nobody_knows_are_kept_and_may_go_again(started: Any) -> None:
    state = started.state | {"plugin": {"version": 2}}
    state["currentFeature"]["branch"] = "feature/oauth"
    state["phases"]["review"] = "pending"
    state["resumeContext"]["mood"] = None
    started.write(state)
    started.feature.report(STOP)
    shown = started.state
    assert (shown["plugin"], shown["phases"]["review"]) == ({"version": 2}, "pending")
    assert (shown["currentFeature"]["branch"], shown["resumeContext"]["mood"]) == ("feature/oauth", None)
    del shown["currentFeature"]["branch"]
    shown["plugin"] = {"other": 1}
    started.write(shown)
    started.feature.answer({"users": "all"})
    assert started.state["plugin"] == {"other": 1}
    assert "branch" not in started.state["currentFeature"]


def test_a_task_taken_away_stays_away(started: Any) -> None:
    started.feature.plan(["Provider", "Token storage"])
    state = started.state
    del state["tasks"][0]
    started.write(state)
    started.feature.answer({"users": "all"})
    assert [task["description"] for task in started.state["tasks"]] == ["Token storage"]


@pytest.mark.parametrize("section", ["tasks", "resumeContext", "discoveryAnswers"])
def test_a_base_without_a_section_is_understood(section: str) -> None:
    """Somebody's earlier text, adopted or absorbed, may be what their next edit started from."""
    run = new_run() | {"dialects": {name: {"tree": ""}}, "schedule": schedule()}
    whole = document(run)
    base = json.dumps({key: value for key, value in whole.items() if key != section}).encode()
    assert read(run, FILE, base, json.dumps({**whole, "ours": 1}).encode(), Surroundings(None))


def test_a_pause_by_hand_and_its_end(started: Any) -> None:
    state = started.state
    state["currentFeature"] |= {"pausedAt": "2025-11-29T15:45:00Z", "pauseReason": "user_request"}
    state["resumeContext"]["lastAction"] = "Went home"
    started.write(state)
    started.feature.answer({"users": "all"})
    assert started.state["currentFeature"]["pausedAt"] == "2025-11-29T15:45:00Z"
    assert started.state["resumeContext"]["lastAction"] == "Went home"
    assert "Went home" in started.feature.resume()["context"]
    assert "pausedAt" not in started.state["currentFeature"]


def test_nobody_approves_by_editing_the_file(started: Any) -> None:
    """Nobody knows who made an edit: it is named, refused, and left as it is."""
    started.feature.phase("spec")
    started.feature.phase("plan")
    state = started.state
    state["phases"]["approval"] = "completed"
    started.write(state)
    before = started.file.read_bytes()
    with pytest.raises(Refused, match="approval"):
        started.feature.answer({"users": "all"})
    assert started.file.read_bytes() == before
    state["phases"]["approval"] = "in_progress"
    started.write(state)
    started.feature.answer({"users": "all"})


def test_a_file_that_is_gone_is_not_made_anew(started: Any) -> None:
    started.file.unlink()
    with pytest.raises(NotFound, match=r"^State file not found\. Cannot update state\.$"):
        started.feature.report(STOP)
    assert not started.file.exists()


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\0" * 400,
        b"   \n",
        b"{",
        b'{"currentFeature": {"name": "x"',
        b"[]",
        b"null",
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b'{"currentFeature": NaN}',
        b"\xff\xfe",
        b'{"currentFeature": [], "phases": {}}',
        b'{"currentFeature": {}, "phases": {"spec": "finished-ish"}}',
        b'{"currentFeature": {}, "phases": {}, "tasks": [1]}',
        b'{"currentFeature": {}, "phases": {}, "tasks": [{"id": 1, "status": {}}]}',
    ],
    ids=range(15),
)
def test_a_broken_file_is_named_and_left_alone(started: Any, broken: bytes) -> None:
    started.file.write_bytes(broken)
    with pytest.raises(Damaged, match=r"^State file corrupted\. Manual intervention required\.$"):
        started.feature.report(STOP)
    assert started.file.read_bytes() == broken


def test_half_a_file_is_broken(started: Any) -> None:
    whole = started.file.read_bytes()
    started.file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Damaged):
        started.feature.report(STOP)
    started.file.write_bytes(whole)
    started.feature.report(STOP)
    assert started.state["phases"]["spec"] == "completed"


def test_without_a_feature_nothing_is_made(repository: Any) -> None:
    with pytest.raises(NotFound, match="State file not found"):
        repository.feature.report(STOP)
    assert list(repository.root.iterdir()) in ([], [repository.root / ".tenuto"])
    assert not repository.file.exists()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["completed", "pending", "in_progress", "spec", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "status", "a", *PHASES]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(["phases", "tasks", "resumeContext", "discoveryAnswers", "other"]), VALUES),
    st.dictionaries(st.sampled_from(["phase", "name", "pausedAt", "specFile", "odd"]), VALUES),
)
def test_whatever_stands_there_is_understood_or_refused(sections: Any, feature: Any) -> None:
    """An edit becomes commands or a refusal, never an error of ours."""
    run: Any = new_run() | {"id": "x", "dialects": {name: {}}, "schedule": schedule(), "order": "open"}
    before = document(run)
    after = before | sections | {"currentFeature": before["currentFeature"] | feature}
    try:
        commands = read(run, FILE, json.dumps(before).encode(), json.dumps(after).encode(), Surroundings(None))
    except TenutoError:
        return
    assert commands[-1]["do"] == "AbsorbEdit"
