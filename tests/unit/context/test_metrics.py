"""METRICS: the seed's layout, character by character, and the arithmetic behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.context.conftest import TASKS, Repository, error

BREAKDOWN = json.dumps(
    {
        "taskBreakdown": {
            "tasks": [
                {"id": 1, "name": "one", "files": ["a.ts"], "dependencies": [], "description": ""},
                {"id": 2, "name": "two", "files": ["a.ts"], "dependencies": [1], "description": ""},
            ]
        }
    }
)

# As printed in the seed: the columns are binding, the sums there are not.
TABLE = """\
Phase                    Duration    Status    Retries
────────────────────────────────────────────────────────
architect                    45s     success       0
design-audit                 20s     success       0
spec-writer                  30s     success       0
[Wave 1]
  implementer:task-1         60s     success       0
  test-writer:task-1         42s     success       0
[Wave 2]
  implementer:task-2         65s     success       1
test-runner                  20s     success       0
impl-audit                   35s     success       0
────────────────────────────────────────────────────────"""


def phases(repository: Repository, *entries: tuple[str, int, int]) -> None:
    """(phase, start, end) in seconds after the beginning; several may overlap."""
    moments = sorted([(start, 1, name) for name, start, _ in entries] + [(end, 0, name) for name, _, end in entries])
    begin = repository.now
    for at, starts, name in moments:
        repository.now = begin + at * 1000
        repository.must(f"START_PHASE phase: {name}" if starts else f"END_PHASE phase: {name} status: success")


def sample(repository: Repository) -> None:
    repository.must("INIT task: task-slug", f"STORE phase: architect content: ```json\n{BREAKDOWN}\n```")
    phases(repository, ("architect", 0, 45))
    phases(repository, ("design-audit", 0, 20))
    phases(repository, ("spec-writer", 0, 30))
    phases(repository, ("implementer:task-1", 0, 60), ("test-writer:task-1", 18, 60))
    phases(repository, ("implementer:task-2", 0, 65))
    phases(repository, ("test-runner", 0, 20))
    phases(repository, ("impl-audit", 0, 35))


def test_the_summary(repository: Repository) -> None:
    sample(repository)
    assert repository.say("METRICS") == (
        "METRICS: task-slug\n"
        "Total Duration:     4m 35s\n"
        "Sequential Est:     5m 17s\n"
        "Parallel Est:       4m 35s\n"
        "Savings:            42s (13%)\n"
        "Retries:            0"
    )


def test_the_detailed_table_has_the_seeds_columns(repository: Repository) -> None:
    sample(repository)
    expected = TABLE.replace("65s     success       1", "65s     success       0")
    assert repository.say("METRICS format: detailed") == (
        f"METRICS: task-slug\n\n{expected}\n"
        "Total:              4m 35s\nSequential Est:     5m 17s\nSavings:            42s (13%)"
    )


def test_a_retried_phase_shows_its_failed_visits(repository: Repository) -> None:
    repository.must("INIT task: t", "START_PHASE phase: implementer:task-2")
    repository.wait(65_000)
    repository.must("END_PHASE phase: implementer:task-2 status: failed", "START_PHASE phase: implementer:task-2")
    repository.wait(65_000)
    repository.must("END_PHASE phase: implementer:task-2 status: success")
    rows = repository.say("METRICS format: detailed").splitlines()[4:6]
    assert rows == [
        "implementer:task-2           65s     failed        0",
        "implementer:task-2           65s     success       1",
    ]


def test_a_long_name_never_runs_into_its_duration(repository: Repository) -> None:
    repository.must("INIT task: t")
    name = "a-phase-with-a-name-longer-than-its-column"
    phases(repository, (name, 0, 3600))
    assert f"\n{name} 3600s     success       0\n" in repository.say("METRICS format: detailed")


@pytest.mark.parametrize("via", ["METRICS format: json", "file"])
def test_the_json_form(repository: Repository, via: str) -> None:
    """The same object, printed raw and kept beside the task after each END_PHASE."""
    sample(repository)
    text = repository.say(via) if via != "file" else repository.read(".claude/orchestrator/metrics/task-slug.json")
    told: Any = json.loads(text)
    assert list(told) == ["task", "metrics", "waves", "completed_phases"]
    assert list(told["metrics"].items()) == [
        ("total_duration_ms", 275000),
        ("sequential_estimate_ms", 317000),
        ("parallelization_savings_ms", 42000),
        ("savings_percent", 13),
        ("total_retries", 0),
    ]
    assert told["waves"]["taskBreakdown"] == json.loads(BREAKDOWN)["taskBreakdown"]
    assert told["waves"]["waveExecutionData"] == [
        {"waveNumber": 1, "tasks": [{"id": 1, "status": "completed", "duration_ms": 60000, "retries": 0}]},
        {"waveNumber": 2, "tasks": [{"id": 2, "status": "completed", "duration_ms": 65000, "retries": 0}]},
    ]
    assert told["completed_phases"] == repository.manifest("task-slug")["completed_phases"]


def test_without_a_breakdown_overlapping_task_phases_form_a_wave(repository: Repository) -> None:
    repository.must("INIT task: t")
    phases(
        repository,
        ("implementer:task-1", 0, 60),
        ("implementer:task-2", 10, 40),
        ("implementer:task-3", 60, 100),
        ("architect", 0, 100),
    )
    detailed = repository.say("METRICS format: detailed").splitlines()
    assert "[Wave 1]" in detailed
    assert "[Wave 2]" not in detailed
    assert "implementer:task-3           40s     success       0" in detailed
    report = repository.ask("METRICS")["report"]["metrics"]
    assert report["sequential_estimate_ms"] == 60_000 + 30_000 + 40_000 + 100_000
    assert report["parallelization_savings_ms"] == 30_000
    assert report["total_duration_ms"] == 100_000


def test_what_depends_on_a_failed_item_is_skipped_and_nothing_else(repository: Repository) -> None:
    tasks = [
        {"id": 1, "name": "a", "files": ["a"], "dependencies": []},
        {"id": 2, "name": "b", "files": ["b"], "dependencies": []},
        {"id": 3, "name": "c", "files": ["c"], "dependencies": [1]},
        {"id": 4, "name": "d", "files": ["d"], "dependencies": [2]},
        {"id": 5, "name": "e", "files": ["e"], "dependencies": [3]},
    ]
    repository.must("INIT task: t", f'STORE phase: spec content: {{"taskBreakdown": {json.dumps({"tasks": tasks})}}}')
    repository.must("START_PHASE phase: implementer:task-1", "END_PHASE phase: implementer:task-1 status: failed")
    repository.must("START_PHASE phase: implementer:task-2", "END_PHASE phase: implementer:task-2 status: success")
    execution = repository.manifest("t")["waves"]["execution"]
    states = {task["id"]: task["status"] for wave in execution for task in wave["tasks"]}
    assert states == {1: "failed", 2: "completed", 3: "skipped", 4: "pending", 5: "skipped"}
    assert repository.manifest("t")["status"] == "running"


def test_filters(repository: Repository) -> None:
    """A task's slug first, then a phase of the current task."""
    sample(repository)
    repository.must("INIT task: other")
    assert repository.say("METRICS filter: task-slug").startswith("METRICS: task-slug\nTotal Duration:     4m 35s")
    repository.must("START_PHASE phase: architect")
    repository.wait(5000)
    repository.must("END_PHASE phase: architect status: success", "START_PHASE phase: spec")
    repository.wait(9000)
    repository.must("END_PHASE phase: spec status: success")
    assert "Total Duration:     5s\n" in repository.say("METRICS filter: architect")
    assert "Total Duration:     14s\n" in repository.say("METRICS")
    assert "Sequential Est:     1m 42s\n" not in repository.say("METRICS filter: implementer task: task-slug")
    assert "Sequential Est:     2m 05s\n" in repository.say("METRICS filter: implementer task: task-slug")


def test_refusals(repository: Repository) -> None:
    repository.must("INIT task: t")
    repository.write(f"{TASKS}/bare/notes.md", "no manifest here")
    assert repository.say("METRICS format: xml") == error("Invalid format: xml. Use summary, detailed, or json")
    assert repository.say("METRICS filter: nope") == error("Task not found: nope")
    assert repository.say("METRICS filter: bare") == error("Manifest not found for task: bare")


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0s"),
        (499, "0s"),
        (500, "1s"),
        (59_400, "59s"),
        (59_500, "1m 00s"),
        (307_000, "5m 07s"),
        (36_000_000, "10h 00m 00s"),
    ],
)
def test_durations_are_shown_in_seconds_minutes_and_hours(milliseconds: int, shown: str) -> None:
    from tenuto.dialects.context.phases import span

    assert span(milliseconds) == shown
