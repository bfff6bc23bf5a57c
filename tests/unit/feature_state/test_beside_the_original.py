"""Beside the original: its command begins features by writing the file, its agents rewrite it, its last step removes
it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.errors import NotFound, Refused, TenutoError
from tenuto.hooks.call import answer
from tenuto.hooks.parse import parse_hook

PHASES = ("discovery", "spec", "plan", "implementation", "test", "commit")  # the original knows no phase `approval`


class Place:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / ".feature-state.json"

    @property
    def workspace(self) -> Any:
        return tenuto.open(str(self.root))

    @property
    def feature(self) -> Any:
        return self.workspace.feature_state

    @property
    def state(self) -> Any:
        return json.loads(self.file.read_text())

    def hook(self, event: str, **payload: Any) -> Any:
        workspace = self.workspace
        if "session_id" in payload:  # the seed's own payloads have none
            payload |= {"cwd": str(self.root), "hook_event_name": event}
        call = parse_hook(event, payload)
        return answer(workspace, call), workspace.warnings

    def stopped(self, agent: str, agent_id: str = "a1", session: str = "s") -> Any:
        return self.hook(
            "SubagentStop",
            session_id=session,
            agent_id=agent_id,
            agent_type=f"feature-dev-plus:{agent}",
            last_assistant_message="ok",
        )

    def write(self, name: str, phase: str, statuses: dict[str, str], at: str, **more: Any) -> None:
        """As the original's command and agents write it."""
        feature = {"name": name, "description": "D", "phase": phase, "startedAt": at, "updatedAt": at}
        phases = {**dict.fromkeys(PHASES, "pending"), **statuses}
        self.file.write_text(json.dumps({"currentFeature": feature, "phases": phases, "tasks": [], **more}))

    def finish_first(self) -> None:
        self.feature.start("first", "", skip=["discovery"])
        for phase in ("spec", "plan"):
            self.feature.phase(phase)
        self.feature.approve("me")
        self.feature.phase("implementation")
        self.feature.skip("test")

    def commit(self) -> None:
        self.feature.commit("abc1234", "m")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return Place(tmp_path)


SECOND: dict[str, Any] = {
    "name": "second-feature",
    "phase": "spec",
    "statuses": {"discovery": "skipped", "spec": "in_progress"},
    "at": "2025-11-30T10:00:00Z",
}
REPORTS = {
    "claude": lambda place: place.stopped("spec-writer"),
    "seed": lambda place: place.hook("SubagentStop", agentName="spec-writer", completedPhase="spec", nextPhase="plan"),
    "compaction": lambda place: place.hook("PreCompact", session_id="s", trigger="auto"),
    "manual compaction": lambda place: place.hook("PreCompact", session_id="s", trigger="manual"),
    "seed's compaction": lambda place: place.hook("PreCompact", reason="context_limit", currentPhase="spec"),
    "task": lambda place: place.hook("task_update", type="task_update", taskId=1, newStatus="completed"),
    "status": lambda place: place.feature.status(),
    "resume": lambda place: place.feature.resume(),
}


@pytest.mark.parametrize("ended", ["committed", "removed in commit", "left in commit"])
@pytest.mark.parametrize("how", REPORTS)
def test_a_feature_that_is_begun_in_the_file_gets_nothing_of_the_one_before(place: Place, how: str, ended: str) -> None:
    place.finish_first()
    if ended == "committed":
        place.commit()
    if ended == "removed in commit":
        place.file.unlink()
    place.write(**SECOND)
    REPORTS[how](place)
    state = place.state
    assert state["currentFeature"]["name"] == "second-feature"
    assert state["phases"]["approval"] == state["phases"]["commit"] == state["phases"]["implementation"] == "pending"
    assert state["phases"]["spec"] == ("completed" if how in ("claude", "seed") else "in_progress")
    first = place.workspace.load("first")
    assert first["status"] == ("completed" if ended == "committed" else "cancelled")
    assert place.workspace.load("second-feature")["status"] == "running"


@pytest.mark.parametrize(
    "claimed",
    [{"approval": "completed"}, {"implementation": "in_progress"}, {"commit": "completed"}, {"approval": "approved"}],
)
@pytest.mark.parametrize("how", ["claude", "seed", "status"])
def test_a_feature_that_begins_with_an_approval_that_nobody_gave_is_refused(
    place: Place, how: str, claimed: dict[str, str]
) -> None:
    place.finish_first()
    place.commit()
    place.write("second-feature", "spec", {"plan": "completed", **claimed}, "2025-11-30T10:00:00Z")
    before = place.file.read_bytes()
    with pytest.raises(TenutoError, match="nobody has approved it"):
        REPORTS[how](place)
    assert place.file.read_bytes() == before
    place.write(**SECOND)  # the way out that the refusal names
    assert place.feature.status()["run"] == "second-feature"


def test_a_late_copy_of_an_earlier_feature_does_not_bring_it_back(place: Place) -> None:
    place.finish_first()
    place.commit()
    early = {**place.state, "phases": {**place.state["phases"], "approval": "pending", "implementation": "pending"}}
    early["phases"] |= {"test": "pending", "commit": "pending"}
    place.feature.start("second", "")
    place.file.write_text(json.dumps(early))
    with pytest.raises(Refused, match="again, which is run first and completed"):
        place.feature.status()


def test_another_name_alone_is_the_same_feature_renamed(place: Place) -> None:
    place.feature.start("first", "")
    state = place.state
    state["currentFeature"]["name"] = "renamed"
    place.file.write_text(json.dumps(state))
    assert place.feature.status()["run"] == "first"
    assert place.state["currentFeature"]["name"] == "renamed"


def test_the_architect_completes_the_plan_and_after_the_approval_the_implementation(place: Place) -> None:
    place.feature.start("first", "", skip=["discovery"])
    place.feature.phase("spec")
    place.stopped("code-architect", "a1")
    assert place.state["phases"]["plan"] == "completed"
    place.stopped("code-architect", "a2")  # before the approval there is nothing to implement
    assert place.state["phases"]["implementation"] == "pending"
    place.feature.approve("me")
    place.stopped("code-architect", "a1")  # told again
    assert place.state["phases"]["implementation"] == "in_progress"
    place.stopped("code-architect", "a3")
    assert (place.state["phases"]["implementation"], place.state["currentFeature"]["phase"]) == ("completed", "test")
    attempt = place.workspace.load("first")["attempts"]["a3"]
    assert attempt["step"] == "implementation"


def test_an_architect_that_was_called_for_the_plan_completes_the_plan_only(place: Place) -> None:
    place.feature.start("first", "", skip=["discovery"])
    place.feature.phase("spec")
    place.hook("SubagentStart", session_id="s", agent_id="a1", agent_type="feature-dev-plus:code-architect")
    place.feature.phase("plan")
    place.feature.approve("me")
    place.stopped("code-architect", "a1")
    assert place.state["phases"]["implementation"] == "in_progress"


def test_edits_after_a_real_approval_are_taken_in(place: Place) -> None:
    """The agents write whole files, without the sections and the phase that the original does not know."""
    at, answers = "2025-11-29T10:00:00Z", {"discoveryAnswers": {"problem": "P"}}
    place.write("o", "spec", {"discovery": "completed", "spec": "in_progress"}, at, **answers)
    place.stopped("discovery-guide", "d1")
    place.write("o", "plan", {"discovery": "completed", "spec": "completed", "plan": "in_progress"}, at)
    place.stopped("spec-writer", "s1")
    done = {"discovery": "completed", "spec": "completed", "plan": "completed", "approval": "pending"}
    tasks = [{"id": n, "description": f"T{n}", "status": "pending"} for n in (1, 2)]
    place.write("o", "approval", done, at, tasks=tasks)
    place.stopped("code-architect", "c1")
    place.feature.approve("me")
    state = place.state
    assert state["phases"]["approval"] == "completed"
    state["tasks"][0]["status"], state["tasks"][1]["status"] = "completed", "in_progress"
    state["resumeContext"] = {"lastAction": "Created a.ts", "nextSteps": ["T2"], "filesInProgress": ["b.ts"]}
    place.file.write_text(json.dumps(state))
    place.stopped("other", "x2")
    assert [task["status"] for task in place.state["tasks"]] == ["completed", "in_progress"]
    assert place.state["phases"]["approval"] == "completed"
    ends = [step for step in place.workspace.load("o")["visits"] if step["step"] == "approval"]
    assert [visit["status"] for visit in ends] == ["success"]


def test_a_file_without_the_phase_approval_begins_and_ends_none(place: Place) -> None:
    place.write("o", "spec", {"spec": "in_progress"}, "2025-11-29T10:00:00Z")
    place.feature.status()
    place.write("o", "plan", {"spec": "completed", "plan": "in_progress"}, "2025-11-29T10:00:00Z")
    place.feature.status()
    place.write("o", "plan", {"spec": "completed", "plan": "in_progress"}, "2025-11-29T10:00:00Z", mine=1)
    place.feature.status()
    assert "approval" not in [visit["step"] for visit in place.workspace.load("o")["visits"]]


def test_an_approval_is_shown_where_the_architect_wrote_it_as_pending(place: Place) -> None:
    done = {"discovery": "completed", "spec": "completed", "plan": "completed", "approval": "pending"}
    place.write("o", "approval", done, "2025-11-29T10:00:00Z")
    place.feature.approve("me")
    assert place.state["phases"]["approval"] == "completed"
    assert place.state["currentFeature"]["phase"] == "implementation"


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("completed", "completed"),
        ("in progress", "in_progress"),
        ("In-Progress", "in_progress"),
        ("error", "pending"),
        ("cancelled", "pending"),
        ("bogus", "in_progress"),
        (None, "in_progress"),
        (7, "in_progress"),
    ],
)
def test_only_a_word_for_completed_completes_a_task(place: Place, word: Any, shown: str) -> None:
    place.feature.start("first", "")
    place.feature.plan(["a", "b"])
    place.feature.task({"taskId": 1, "newStatus": "in_progress"})
    payload = {"type": "task_update", "taskId": 1, "timestamp": "2025-11-29T10:00:00Z"}
    _, warnings = place.hook("task_update", **payload, **({} if word is None else {"newStatus": word}))
    assert place.state["tasks"][0]["status"] == shown
    assert bool(warnings) == (word in ("bogus", None, 7))


@pytest.mark.parametrize(
    ("word", "shown"),
    [("done", "completed"), ("In Progress", "in_progress"), ("error", "pending"), (None, "in_progress")],
)
def test_words_for_a_tasks_status_are_understood_in_the_file(place: Place, word: Any, shown: str) -> None:
    place.feature.start("first", "")
    place.feature.plan(["a", "b"])
    place.feature.task({"taskId": 1, "newStatus": "in_progress"})
    state = place.state
    state["tasks"][0].pop("status")
    state["tasks"][0] |= {} if word is None else {"status": word}
    place.file.write_text(json.dumps(state))
    place.feature.status()
    assert place.state["tasks"][0]["status"] == shown


def test_a_word_that_is_none_is_refused_by_name_and_left(place: Place) -> None:
    place.feature.start("first", "")
    place.feature.plan(["a"])
    edited = place.file.read_text().replace('"status": "pending"', '"status": "half"')
    place.file.write_text(edited)
    with pytest.raises(Refused, match="task 1: 'half' is no status; a task is pending") as refusal:
        place.feature.status()
    assert "repair --restore" in str(refusal.value.hint)
    assert place.file.read_text() == edited


def test_a_person_is_told_of_a_task_or_a_status_that_is_none(place: Place) -> None:
    place.feature.start("first", "")
    place.feature.plan(["a"])
    before = place.file.read_bytes()
    with pytest.raises(TenutoError, match="not 'bogus'"):
        place.feature.task({"taskId": 1, "newStatus": "bogus"})
    with pytest.raises(NotFound, match="no task 9"):
        place.feature.task({"taskId": 9, "newStatus": "completed"})
    with pytest.raises(NotFound, match="no task 9"):
        place.feature.task({"taskId": 1, "newStatus": "completed", "nextTaskId": 9})
    assert place.file.read_bytes() == before


def test_a_feature_whose_file_was_removed_can_be_cancelled_and_followed_by_another(place: Place) -> None:
    place.feature.start("first", "")
    place.file.unlink()
    assert place.feature.cancel("not needed")["status"] == "cancelled"
    assert not place.file.exists()
    place.feature.start("second", "")
    place.file.unlink()
    place.feature.start("third", "")
    assert place.workspace.load("second")["status"] == "cancelled"
    assert place.state["currentFeature"]["name"] == "third"


def test_a_removed_file_is_still_missed_by_everything_else(place: Place) -> None:
    place.feature.start("first", "")
    place.file.unlink()
    for ask in (place.feature.status, lambda: place.feature.phase("discovery"), place.feature.resume):
        with pytest.raises(NotFound, match=r"State file not found\. Cannot update state\."):
            ask()
    assert not place.file.exists() and place.workspace.load("first")["status"] == "running"


def test_a_task_that_was_completed_is_the_last_action(place: Place) -> None:
    place.feature.start("first", "", skip=["discovery"])
    for phase in ("spec", "plan"):
        place.feature.phase(phase)
    place.feature.approve("me")
    place.feature.plan(["a", "b"])
    place.feature.task({"taskId": 1, "newStatus": "completed", "nextTaskId": 2})
    place.hook("PreCompact", trigger="auto")
    assert place.state["resumeContext"]["lastAction"] == "Completed task: a"
