"""The view alone: a run in, bytes out; an edit in, commands out. No repository, no turn, no file, no clock."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.records.run import Repo, Run, Visit
from tenuto.errors import Refused
from tenuto.views import context as view
from tenuto.views.context.edits import read
from tenuto.views.context.manifest import artifact_at, artifacts_in, read_manifest
from tenuto.views.context.state import (
    CURRENT,
    PHASE_FILES,
    ended_visits,
    folder_of,
    manifest_of,
    metrics_of,
    phase_of,
    retries,
    visits_of,
)

AT = "2026-01-20T00:00:00.000Z"
START: dict[str, Any] = {
    "do": "StartRun",
    "run": "t",
    "name": "T",
    "pipeline": {"name": "orchestrate", "hash": None},
    "dialects": {"context": {"tree": ""}},
}


class Story:
    """A run that is told in commands, without a journal."""

    def __init__(self, **place: Any) -> None:
        self.run: Run = new_run()
        self.repo: Repo = {**new_repo(), "owners": {CURRENT: "t"}}
        self.events: list[Any] = []
        self.do({**START, "dialects": {"context": {"tree": "", **place}}}, run=None)

    def do(self, command: Any, at: str = AT, **known: Any) -> None:
        stamped: Any = {"at": at, "by": "ada", **command}
        events = decide(None, self.repo, known.get("run", self.run), stamped)
        for event in events:
            apply(self.run, event)
        self.events += events

    def phase(self, name: str, status: str = "success") -> None:
        self.do({"do": "StartStep", "step": name})
        self.do({"do": "EndStep", "step": name, "status": status}, at="2026-01-20T00:00:05.000Z")

    def files(self) -> dict[str, bytes]:
        return view.render(self.run, self.repo)

    def manifest(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.files()[manifest_of("t")])
        return shown

    def edit(self, **changes: Any) -> list[Any]:
        before = self.files()[manifest_of("t")]
        after = json.dumps({**json.loads(before), **changes}).encode()
        return list(read(self.run, manifest_of("t"), before, after))


@pytest.fixture
def story() -> Story:
    return Story()


def test_the_paths_of_a_run_are_those_of_its_files(story: Story) -> None:
    """Before the first phase has ended, after it, and when another task is the current one."""
    assert list(story.files()) == view.paths(story.run, story.repo) == [manifest_of("t"), CURRENT]
    story.phase("architect")
    assert list(story.files()) == view.paths(story.run, story.repo) == [manifest_of("t"), CURRENT, metrics_of("t")]
    story.repo["owners"][CURRENT] = "other"
    assert list(story.files()) == view.paths(story.run, story.repo) == [manifest_of("t"), metrics_of("t")]


def test_rendering_changes_nothing(story: Story) -> None:
    """The same run gives the same bytes, and is the same run after it."""
    story.phase("architect", "failed")
    story.do({"do": "AbsorbEdit", "dialect": "context", "path": "", "sha256": "", "extra": {"manifest": {"owner": 1}}})
    before = json.dumps(story.run)
    assert story.files() == story.files()
    assert json.dumps(story.run) == before
    assert story.manifest()["owner"] == 1


def test_a_task_that_was_only_found_shows_nothing_of_its_own() -> None:
    story = Story(as_found="docs/x/manifest.json")
    assert story.files() == {}
    assert view.paths(story.run, story.repo) == ["docs/x/manifest.json"]
    assert view.log(story.run, story.events) == {}


def test_an_unchanged_file_asks_for_nothing(story: Story) -> None:
    story.phase("architect")
    for path, body in story.files().items():
        (absorbed,) = read(story.run, path, body, body)
        assert absorbed["do"] == "AbsorbEdit" and not any(absorbed["extra"].values()) and not absorbed.get("drop")


def test_an_edit_is_said_in_the_commands_that_a_person_would_give(story: Story) -> None:
    story.do({"do": "StartStep", "step": "architect"})
    entry = {"phase": "architect", "status": "success"}
    *commands, absorbed = story.edit(completed_phases=[entry], running_phases=[{"phase": "spec", "by": "x"}], note="n")
    assert commands == [
        {"do": "EndStep", "step": "architect", "status": "success"},
        {"do": "StartStep", "step": "spec"},
    ]
    assert absorbed["extra"] == {
        "manifest": {"note": "n"},
        "phases": {"0": entry},
        "running": {"spec": {"by": "x"}},
    }
    assert absorbed["drop"] == [["manifest", "note"]]


@pytest.mark.parametrize(
    ("before", "after", "outcomes"),
    [
        ("running", "poc-complete", ["poc-complete"]),
        ("running", "graduated", ["poc-complete", "graduated"]),
        ("poc-complete", "graduated", ["graduated"]),
    ],
)
def test_a_poc_is_finished_step_by_step(before: str, after: str, outcomes: list[str]) -> None:
    """An edit that writes `graduated` over a running POC completes it first."""
    story = Story()
    story.run["mode"] = "poc"
    if before != "running":
        story.do({"do": "Finish", "outcome": before})
    *commands, _ = story.edit(status=after)
    assert commands == [{"do": "Finish", "outcome": outcome} for outcome in outcomes]


def test_the_first_thing_that_is_wrong_with_an_edit_is_named(story: Story) -> None:
    """Both lists are looked at before anything is compared: a list that is none is named first."""
    story.phase("architect")
    with pytest.raises(Refused, match="running_phases is not a list of phases"):
        story.edit(completed_phases=[], running_phases="architect")


@pytest.mark.parametrize("status", ["running", "paused", "waiting_gate", "completed", "in-progress", "odd"])
def test_every_visit_of_an_adopted_manifest_is_a_whole_visit(status: str) -> None:
    """Rules of core read each of these keys: one that is missing would break a run long after its adoption."""
    document = {
        "status": status,
        "completed_phases": [{"phase": "a"}, {"name": "a", "status": "error"}, "b", {}, None],
        "running_phases": [{"phase": "c", "agent": "x"}, "c", "d", {}],
        "failure_context": {"reason": "r"},
        "gate_context": {"gate": "final"},
    }
    state = read_manifest("t", document, AT, {"tree": ""}, False)
    assert [(visit["step"], visit["iteration"], visit["status"]) for visit in state["visits"]] == [
        ("a", 1, "success"),
        ("a", 2, "failed"),
        ("b", 1, "success"),
        ("phase-4", 1, "success"),
        ("None", 1, "success"),
        ("c", 1, "running"),
        ("d", 1, "running"),
    ]
    for visit in state["visits"]:
        assert set(visit) == set(Visit.__annotations__)
    assert {name: step["status"] for name, step in state["steps"].items()} == {
        "a": "failed", "b": "completed", "phase-4": "completed", "None": "completed", "c": "running", "d": "running",
    }  # fmt: skip


def test_a_place_that_was_handed_in_is_left_as_it_is() -> None:
    """An unknown status is written into the run's own place, not into the caller's."""
    place = {"tree": "", "as_found": "x"}
    state = read_manifest("t", {"status": "odd"}, AT, place, False)
    assert state["dialects"] == {"context": {"tree": "", "as_found": "x", "status": "odd"}}
    assert place == {"tree": "", "as_found": "x"}


def attempt(name: str, seat: str, **more: Any) -> dict[str, Any]:
    return {"do": "DispatchAttempt", "attempt": name, "step": "review", "role": seat, "extra": {"seat": seat}, **more}


def test_under_an_engine_each_attempt_is_a_phase_and_a_gate_is_none() -> None:
    """Roles that work side by side are shown by their names, a retry beside the attempt that failed."""
    story = Story(unseen=["approve"])
    story.do({"do": "StartStep", "step": "review"})
    story.do(attempt("one", "security"))
    story.do(attempt("two", "quality"))
    assert [phase_of(visit) for visit in visits_of(story.run)] == ["security", "quality"]
    story.do({"do": "FinishAttempt", "attempt": "one", "status": "failed"}, at="2026-01-20T00:00:05.000Z")
    story.do(attempt("three", "security", number=2), at="2026-01-20T00:00:06.000Z")
    story.do({"do": "FinishAttempt", "attempt": "three", "status": "completed"}, at="2026-01-20T00:00:08.000Z")
    story.do(
        {"do": "FinishAttempt", "attempt": "two", "status": "completed", "verdict": "QUESTION"},
        at="2026-01-20T00:00:09.000Z",
    )
    ended = [(phase_of(v), v["status"], v["duration_ms"], v["retries"]) for v in ended_visits(story.run)]
    assert ended == [("security", "failed", 5000, 0), ("security", "success", 2000, 1)]
    assert retries(story.run) == 1
    assert story.manifest()["metrics"]["total_retries"] == 1
    lines = view.log(story.run, story.events)["docs/orchestrator/context/history.md"].decode().splitlines()
    assert [line.partition(" - ")[2] for line in lines if line.startswith("## ")] == [
        "Task Initialized",
        "Review Phase Started",
        "Security Phase Started",
        "Quality Phase Started",
        "Security Phase Failed",
        "Security Phase Started",
        "Security Phase Completed",
        "Task Paused",
    ]  # an attempt that asks a question ends no phase: the run waits for its answer


NAMES = {
    "implementer:task-1.md": "implementation/task-001",
    "implementer-task-12.md": "implementation/task-012",
    "test-writer:task-1.md": "tests/task-001",
    "implementer:fix-2.md": "implementation-fix-2",
    "implementation-fix:iteration-1.md": "implementation-fix-1",
    "implementation-fix-1-task-003.md": "implementation-fix-1/task-003",
    "implementer.md": "implementation/implementer",
    "spec-writer.md": "spec",
    "impl-audit-1.md": "impl-audit",
    "impl-audit-2.md": "impl-audit-2",
    "design_audit_2.md": "design-audit-2",
    "design-audit-revision-2.md": "design-audit-3",
    "test-runner-2.md": "test-results-2",
    "test-runner-retry.md": "test-results-2",
    "architect-revision.md": "architect-revision-1",
    "architect-2.md": "architect-revision-1",
    "design-audit-resolution.md": "",
    "architecture.md": "",
    "specification.md": "",
    "debt-2.md": "",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_other_programs_give_their_files(name: str) -> None:
    """The writer's name stands for what it writes; a number counts tasks or rounds; all else is not guessed at."""
    assert artifact_at(name) == NAMES[name]


def test_of_two_files_for_one_artifact_the_layouts_own_has_its_name_and_the_other_is_kept() -> None:
    names = ["implementer:task-1.md", "implementations/task-001.md", "spec-writer.md", "spec.md", "impl-audit-2.md"]
    artifacts, others = artifacts_in([*names, "manifest.json", "audit-history.json", ".DS_Store", "notes.md", "drafts"])
    assert artifacts == {
        "implementations/task-001.md": "implementation/task-001",
        "implementer:task-1.md": "implementation/implementer:task-1",
        "spec.md": "spec",
        "spec-writer.md": "spec/spec-writer",
        "impl-audit-2.md": "impl-audit-2",
        "audit-history.json": "audit-history",
    }
    assert others == ["drafts", "notes.md"]


def test_every_file_of_the_layout_is_an_artifact_and_nothing_else_is() -> None:
    for phase, file in PHASE_FILES.items():
        match file[-1]:
            case "/":
                assert artifact_at(f"{file}task-001.md") == f"{phase}/task-001"
            case "-":
                assert artifact_at(f"{file}2.md") == f"{phase}-2"
                assert artifact_at(f"{file}x.md") == ""
            case _:
                assert artifact_at(file) == phase
    assert artifact_at("audit-history.json") == "audit-history"
    for path in ("manifest.json", "notes.md", "spec.txt", "implementations/task-001", "other/task-001.md", ""):
        assert artifact_at(path) == "", path
    assert folder_of("t") == "docs/orchestrator/context/tasks/t"
