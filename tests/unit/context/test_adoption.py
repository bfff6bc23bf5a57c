"""Folders that another program wrote, with the drift that real ones show, become tasks without losing a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenuto.encoding import digest
from tenuto.workspace.objects import stored_version
from tests.unit.context.conftest import TASKS, Repository, error

REAL = Path(__file__).resolve().parents[2] / "data" / "manifests"
HISTORY = "docs/orchestrator/context/history.md"
CURRENT = "docs/orchestrator/context/current-task.md"


@pytest.fixture
def real(repository: Repository) -> Repository:
    """The real folder: two manifests, a legacy task, a debt document, a history of 18 KB, a pointer."""
    for name in ("context-path-migration", "hello-world-greeting"):
        repository.write(f"{TASKS}/{name}/manifest.json", (REAL / f"{name}.manifest.json").read_bytes())
    repository.write(f"{TASKS}/hello-world-greeting/debt.md", (REAL / "hello-world-greeting.debt.md").read_bytes())
    repository.write(
        f"{TASKS}/dom-perf-visualizer/metadata.json", (REAL / "dom-perf-visualizer.metadata.json").read_bytes()
    )
    repository.write(HISTORY, (REAL / "history.md").read_bytes())
    repository.write(
        CURRENT,
        (
            "# Current Task\n\n**Task:** hello-world-greeting\n**Mode:** poc\n**Status:** running\n\n## "
            "Summary\n\nIts own words.\n"
        ),
    )
    return repository


def manifest(repository: Repository, slug: str, **told: Any) -> None:
    repository.write(f"{TASKS}/{slug}/manifest.json", json.dumps({"name": slug, "mode": "standard", **told}, indent=4))


def test_list_shows_them_newest_first(real: Repository) -> None:
    assert real.say("LIST") == (
        "TASKS:\n"
        "- hello-world-greeting | mode: poc | workflow: poc | status: poc-complete | created: 2026-01-20T00:00:00Z\n"
        "- context-path-migration | mode: standard | workflow: orchestrate | status: completed | created: "
        "2026-01-19T00:00:00Z\n"
        "- dom-perf-visualizer | mode: poc | workflow: poc | status: poc-complete | created: 2026-01-19T00:00:00Z"
    )
    assert real.warnings() == []


@pytest.mark.parametrize(
    "command", ["LIST", "METRICS", "SUMMARY", "HISTORY", "QUERY question: path migration", "RETRIEVE for_phase: resume"]
)
def test_looking_changes_no_file(real: Repository, command: str) -> None:
    before = real.files()
    for _ in range(2):
        assert not real.say(command).startswith("STATUS: error")
    assert real.files() == before


def test_the_pointer_is_followed(real: Repository) -> None:
    assert "TASK: hello-world-greeting" in real.say("SUMMARY")


def test_metrics_of_a_real_task(real: Repository) -> None:
    """Impossible durations are counted as they were noted; the clock's total is the union of the intervals."""
    report = real.ask("METRICS filter: context-path-migration")["report"]
    told = json.loads((REAL / "context-path-migration.manifest.json").read_text())
    assert report["metrics"]["sequential_estimate_ms"] == sum(
        entry["duration_ms"] for entry in told["completed_phases"]
    )
    assert report["metrics"]["total_retries"] == 3
    assert report["completed_phases"] == told["completed_phases"]
    detailed = real.say("METRICS format: detailed filter: context-path-migration")
    rows = detailed.splitlines()
    assert len({len(row) for row in rows[4:] if "s     success" in row or "s     failed" in row}) == 1
    assert any(row.startswith("design-audit ") and row.endswith(" 36000s     failed        0") for row in rows)
    assert "[Wave 1]\n  implementer:task-4" in detailed


def test_metrics_of_one_phase_of_a_real_task(real: Repository) -> None:
    """Its own entries, in every form; also behind entries that others wrote."""
    told = json.loads((REAL / "context-path-migration.manifest.json").read_text())["completed_phases"]
    for phase in ("test-runner", "implementer", "design-audit-3"):
        own = [entry for entry in told if entry["phase"].partition(":")[0] == phase]
        report = real.ask(f"METRICS filter: {phase} task: context-path-migration")["report"]
        assert report["completed_phases"] == own
        assert report["metrics"]["sequential_estimate_ms"] == sum(entry["duration_ms"] for entry in own)
        tasks = [task for wave in report["waves"]["waveExecutionData"] for task in wave["tasks"]]
        assert all(task["status"] == "completed" and task["duration_ms"] for task in tasks)
        assert bool(tasks) == (phase == "implementer")
    real.must("START_PHASE phase: polish task: hello-world-greeting")
    real.wait(7000)
    real.must("END_PHASE phase: polish status: success task: hello-world-greeting")
    (entry,) = real.ask("METRICS filter: polish task: hello-world-greeting")["report"]["completed_phases"]
    assert (entry["phase"], entry["duration_ms"]) == ("polish", 7000)


def test_a_change_keeps_every_key_and_every_entry(real: Repository) -> None:
    path = f"{TASKS}/hello-world-greeting/manifest.json"
    found = json.loads(real.read(path))
    real.must("START_PHASE phase: test-writer")
    real.wait(1000)
    real.must("END_PHASE phase: test-writer status: success")
    told = real.manifest("hello-world-greeting")
    assert told["completed_phases"][:2] == found["completed_phases"]
    assert told["completed_phases"][2]["phase"] == "test-writer"
    assert {key: told[key] for key in ("name", "mode", "workflow", "status", "created_at")} == {
        key: found[key] for key in ("name", "mode", "workflow", "status", "created_at")
    }
    assert set(found) <= set(told)


def test_what_was_replaced_stays_readable_by_its_hash(real: Repository) -> None:
    before = real.files()
    real.must("START_PHASE phase: test-writer", "END_PHASE phase: test-writer status: success")
    after = real.files()
    for path, body in before.items():
        assert (
            after[path] == body or after[path].startswith(body) or stored_version(real.workspace, digest(body)) == body
        )


def test_the_history_is_kept_as_it_is_and_goes_on(real: Repository) -> None:
    real.must("START_PHASE phase: test-writer")
    old, new = (REAL / "history.md").read_bytes(), (real.root / HISTORY).read_bytes()
    assert new.startswith(old)
    assert new[len(old) :].startswith(f"\n## {real.time} - Test-Writer Phase Started\n- **Task:** hello-world".encode())


def test_documents_of_an_adopted_folder_are_found(real: Repository) -> None:
    real.write(f"{TASKS}/hello-world-greeting/architect.md", "# Design\n\n## Greeting\n\nsay aloha politely\n")
    assert real.ask("QUERY question: aloha")["passages"][0]["heading"] == "Design > Greeting"
    assert real.ask("QUERY question: wave execution lifecycle")["passages"][0]["path"] == HISTORY


def test_files_that_cannot_be_read_are_named_and_left(real: Repository, tmp_path: Path) -> None:
    """Real folders hold links, and folders in place of files."""
    folder = real.root / TASKS / "hello-world-greeting"
    (folder / "implementations").mkdir()
    (folder / "implementations/task\u202e-1.md").write_text("a mark that turns the writing around")
    (folder / "spec.md").mkdir()
    (folder / "architect.md").symlink_to(tmp_path / "elsewhere")
    (folder / "tests").write_text("a file")
    real.must("LIST", "START_PHASE phase: x task: hello-world-greeting")
    said = "\n".join(real.warnings())
    for name in ("task\u202e-1.md", "spec.md", "architect.md", "tests"):
        assert f"{name} is left alone" in said


GROWN = (
    "architect.md architect-revision-1.md design-audit.md design-audit-2.md design-audit-revision-2.md "
    "implementer:task-1.md implementer:task-2.md implementer:fix-1.md test-writer:task-1.md impl-audit-1.md "
    "impl-audit-2.md test-results.md test-runner-2.md"
).split()


@pytest.fixture
def grown(repository: Repository) -> Repository:
    """A folder as a workflow of several rounds leaves it, with two files that nobody can place."""
    manifest(repository, "t", status="running", created_at="2026-01-01T00:00:00Z")
    for name in (*GROWN, "design-audit-resolution.md", "notes.txt"):
        repository.write(f"{TASKS}/t/{name}", f"# {name.removesuffix('.md')}\n\nthe words of {name}\n")
    return repository


def test_every_file_that_a_name_tells_of_is_read_and_the_rest_is_named(grown: Repository) -> None:
    assert grown.context.adopt() == ["t"]
    artifacts = grown.workspace.load("t")["artifacts"]
    assert {record["path"].removeprefix(f"{TASKS}/t/") for record in artifacts.values()} == set(GROWN)
    assert grown.warnings() == [f"{TASKS}/t: no artifact, and not read: design-audit-resolution.md, notes.txt"]
    summary = grown.say("SUMMARY task: t")
    assert all(name in summary for name in artifacts)
    assert "\nNot read: design-audit-resolution.md, notes.txt\n" in summary


def test_retrieve_and_query_see_the_same_files(grown: Repository) -> None:
    said = grown.say("RETRIEVE needs: all for_phase: impl-audit task: t")
    for name in ("implementer:task-1.md", "implementer:task-2.md", "implementer:fix-1.md", "test-writer:task-1.md"):
        assert f"the words of {name}" in said
    for newest in ("impl-audit-2.md", "test-runner-2.md"):
        assert f"the words of {newest}" in said
    assert "the words of design-audit-revision-2.md" in grown.say(
        "RETRIEVE needs: design-audit-feedback for_phase: revision task: t"
    )
    for name in GROWN:
        passages = grown.ask(f"QUERY task: t limit: 50 question: the words of {name}")["passages"]
        assert name in [passage["path"].rpartition("/")[2] for passage in passages]


def test_the_numbers_go_on_where_the_folder_ends(grown: Repository) -> None:
    """The next implementation is the third, the next audit of the implementation, too; no file is overwritten."""
    before = grown.files()
    assert "implementations/task-003.md" in grown.say("STORE task: t phase: implementation content: x")
    grown.must('STORE task: t phase: impl-audit content: {"audit_type": "implementation", "verdict": "PASS"}')
    (entry,) = json.loads(grown.read(f"{TASKS}/t/audit-history.json"))
    assert entry["iteration"] == 3
    after = grown.files()
    assert all(after[path] == body for path, body in before.items() if not path.endswith(("manifest.json", ".md")))
    assert all(after[f"{TASKS}/t/{name}"] == before[f"{TASKS}/t/{name}"] for name in GROWN)


def test_graduation_of_a_real_poc(real: Repository) -> None:
    real.write(f"{TASKS}/hello-world-greeting/architect.md", "# Design\n\nsay hello\n")
    real.write(f"{TASKS}/hello-world-greeting/implementations/task-001.md", "src/hello.ts\n")
    said = real.say("RETRIEVE needs: implementation,architect,debt for_phase: graduate")
    assert "say hello" in said
    assert "src/hello.ts" in said
    real.must("STORE phase: graduate-complete")
    assert f'graduated_at: "{real.time}"' in real.read(f"{TASKS}/hello-world-greeting/debt.md")


def test_a_legacy_task_gets_a_manifest_when_it_is_changed(real: Repository) -> None:
    legacy = real.read(f"{TASKS}/dom-perf-visualizer/metadata.json")
    real.must("START_PHASE phase: test-writer task: dom-perf-visualizer")
    assert real.manifest("dom-perf-visualizer")["status"] == "poc-complete"
    assert real.manifest("dom-perf-visualizer")["created_at"] == "2026-01-19T00:00:00Z"
    assert real.read(f"{TASKS}/dom-perf-visualizer/metadata.json") == legacy


def test_metrics_of_a_legacy_task_are_refused_until_it_has_a_manifest(real: Repository) -> None:
    for command in ("METRICS filter: dom-perf-visualizer", "METRICS task: dom-perf-visualizer format: json"):
        assert real.say(command) == error("Manifest not found for task: dom-perf-visualizer")
    real.must("START_PHASE phase: test-writer task: dom-perf-visualizer")
    assert real.say("METRICS filter: dom-perf-visualizer").startswith("METRICS: dom-perf-visualizer\n")


def test_looking_at_an_adopted_task_shows_what_its_file_says(real: Repository) -> None:
    for slug, file in (("context-path-migration", "manifest"), ("dom-perf-visualizer", "metadata")):
        told = json.loads(real.read(f"{TASKS}/{slug}/{file}.json"))
        shown = real.say(f"RETRIEVE needs: manifest for_phase: resume task: {slug}")
        assert json.loads(shown.partition("DATA:\n")[2].rpartition("\nFILES_TOUCHED")[0]) == told
        summary = real.ask(f"SUMMARY task: {slug}")
        assert summary["manifest"] == told
        assert f"\nCreated: {told['created_at']}\nUpdated: {told['updated_at']}" in summary["data"]


@pytest.mark.parametrize("created", [None, "yesterday", 5, "2026-01-19", "2026-01-19T02:00:00+02:00"])
def test_a_time_of_creation_that_is_no_time_of_ours_is_shown_as_it_is(repository: Repository, created: object) -> None:
    """A missing or unreadable one is unknown, and not newer than every other."""
    told = {} if created is None else {"created_at": created}
    manifest(repository, "odd", status="running", **told)
    manifest(repository, "plain", status="running", created_at="2026-01-20T00:00:00Z")
    rows = repository.say("LIST").splitlines()[1:]
    shown = "unknown" if created is None else str(created)
    assert [row.split()[1] for row in rows] == ["plain", "odd"]
    assert rows[1].endswith(f"created: {shown}")
    assert f"Created: {shown}\nUpdated: unknown" in repository.say("SUMMARY task: odd")
    repository.must("START_PHASE phase: x task: odd")
    assert repository.manifest("odd")["created_at"] == created


def test_nothing_is_invented_for_an_adopted_pause_gate_or_phase(repository: Repository) -> None:
    """Also once the task's manifest is written by Tenuto: options, attempts and durations that nobody noted."""
    manifest(repository, "gated", status="waiting_gate", gate_context={"gate": "design", "prompt": "Look"})
    manifest(repository, "paused", status="paused", failure_context={"reason": "stuck"})
    manifest(repository, "timeless", status="running", completed_phases=[{"name": "architect", "status": "success"}])
    for slug in ("gated", "paused", "timeless"):
        repository.must(f"STORE task: {slug} phase: spec content: x")
    assert repository.manifest("gated")["gate_context"] == {"gate": "design", "prompt": "Look"}
    assert repository.manifest("paused")["failure_context"] == {"reason": "stuck"}
    assert repository.manifest("timeless")["metrics"]["total_duration_ms"] is None
    assert repository.say("METRICS filter: timeless").splitlines()[1:5] == [
        "Total Duration:     unknown",
        "Sequential Est:     unknown",
        "Parallel Est:       unknown",
        "Savings:            unknown",
    ]
    assert "architect                unknown     success       0" in repository.say(
        "METRICS format: detailed filter: timeless"
    )
    assert repository.ask("METRICS filter: timeless")["report"]["metrics"]["savings_percent"] is None
    repository.must("RESUME decision: approve task: gated", "RESUME decision: retry task: paused")


def test_legacy_statuses_and_workflows(repository: Repository) -> None:
    folders: dict[str, dict[str, object]] = {
        "a": {"status": "in-progress", "mode": "standard"},
        "b": {"status": "in-progress", "mode": "poc"},
        "c": {
            "status": "impl-audit-complete",
            "mode": "standard",
            "workflow": "orchestrate",
            "design_audit_iteration": 2,
        },
    }
    for slug, metadata in folders.items():
        repository.write(
            f"{TASKS}/{slug}/metadata.json",
            json.dumps({"name": slug, "created_at": f"2026-01-0{ord(slug) - 96}T00:00:00Z", **metadata}),
        )
    assert repository.say("LIST").splitlines()[1:] == [
        "- c | mode: standard | workflow: orchestrate | status: impl-audit-complete | created: 2026-01-03T00:00:00Z",
        "- b | mode: poc | workflow: poc | status: running | created: 2026-01-02T00:00:00Z",
        "- a | mode: standard | workflow: orchestrate | status: running | created: 2026-01-01T00:00:00Z",
    ]
    assert [text for text in repository.warnings() if "unknown status 'impl-audit-complete'" in text]
    assert repository.say("START_PHASE phase: x task: c") == error("Cannot start phase on impl-audit-complete task")
    repository.must("PAUSE task: c reason: no word for it", "RESUME task: c decision: retry")
    assert "- c | mode: standard | workflow: orchestrate | status: running |" in repository.say("LIST")


def test_the_manifest_wins_over_the_legacy_file(repository: Repository) -> None:
    manifest(repository, "t", status="paused", created_at="2026-01-01T00:00:00Z")
    repository.write(f"{TASKS}/t/metadata.json", '{"name": "t", "status": "in-progress"}')
    assert "status: paused" in repository.say("LIST")


@pytest.mark.parametrize("text", ["{broken", "[]", "", '{"a": 1, "a": 2}', '{"n": NaN}', "\0\0\0\0"])
def test_a_file_that_cannot_be_parsed_is_named_skipped_and_left(repository: Repository, text: str) -> None:
    repository.write(f"{TASKS}/bad/manifest.json", text)
    manifest(repository, "good", status="running", created_at="2026-01-01T00:00:00Z")
    assert repository.say("LIST").splitlines()[1:] == [
        "- good | mode: standard | workflow: orchestrate | status: running | created: 2026-01-01T00:00:00Z"
    ]
    assert any(f"{TASKS}/bad/manifest.json" in warning for warning in repository.warnings())
    assert repository.read(f"{TASKS}/bad/manifest.json") == text
    assert repository.say("START_PHASE phase: x task: bad").startswith(
        f"STATUS: error\nERROR: {TASKS}/bad/manifest.json cannot be parsed"
    )
    assert repository.say("INIT task: bad") == error("Task already exists: bad")


def test_a_folder_without_either_file_is_skipped_with_a_warning_until_it_has_one(repository: Repository) -> None:
    repository.write(f"{TASKS}/bare/architect.md", "# Design")
    repository.write(f"{TASKS}/.gitkeep", "")
    assert repository.say("LIST") == "TASKS:"
    assert repository.warnings() == [f"{TASKS}/bare has neither manifest.json nor metadata.json; skipped"]
    manifest(repository, "bare", status="running", created_at="2026-01-01T00:00:00Z")
    assert "- bare |" in repository.say("LIST")


def test_folders_that_appear_later_are_noticed(repository: Repository) -> None:
    repository.must("INIT task: ours")
    for number in range(60):
        manifest(repository, f"theirs-{number}", status="running", created_at=f"2026-01-01T00:00:{number:02d}Z")
    assert len(repository.ask("LIST")["tasks"]) == 61
    manifest(repository, "late", status="running", created_at="2026-01-02T00:00:00Z")
    assert len(repository.ask("LIST")["tasks"]) == 62
    assert len(repository.ask("LIST")["tasks"]) == 62


def test_an_edit_of_a_manifest_shows_in_the_list(repository: Repository) -> None:
    """Nobody has to touch the task first."""
    manifest(
        repository, "t", status="running", created_at="2026-01-01T00:00:00Z", running_phases=[], completed_phases=[]
    )
    assert "status: running" in repository.say("LIST")
    repository.edit("t", status="paused", failure_context={"phase": "spec", "reason": "by hand"})
    assert "status: paused" in repository.say("LIST")


@pytest.mark.parametrize("key", ["phase", "name"])
def test_both_keys_of_a_completed_phase_are_read_and_kept(repository: Repository, key: str) -> None:
    entry = {
        key: "architect",
        "status": "success",
        "started_at": "2026-01-20T21:50:33.120Z",
        "ended_at": "2026-01-20T21:52:06.017Z",
        "duration_ms": 92897,
        "notes": {"kept": True},
    }
    manifest(
        repository,
        "t",
        status="running",
        created_at="2026-01-20T00:00:00Z",
        completed_phases=[entry],
        shelf_context=None,
        metrics={"total_duration_ms": None, "cost": 3, "total_retries": 0},
    )
    assert "architect                    93s     success       0" in repository.say(
        "METRICS format: detailed filter: t"
    )
    repository.must("START_PHASE phase: spec task: t")
    told = repository.manifest("t")
    assert told["completed_phases"][0] == entry
    assert told["shelf_context"] is None
    assert told["metrics"]["cost"] == 3


@pytest.mark.parametrize(
    ("noted", "counted"),
    [(36_000_000, 36_000_000), (-5, 900_000), ("soon", 900_000), (None, 900_000), (1.5, 1), (True, 900_000)],
)
def test_impossible_durations(repository: Repository, noted: object, counted: int) -> None:
    """A number that can be a duration counts as it was noted; anything else is taken from the times."""
    entry = {
        "phase": "a",
        "status": "success",
        "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:15:00Z",
        "duration_ms": noted,
    }
    manifest(repository, "t", status="running", created_at="2026-01-01T00:00:00Z", completed_phases=[entry])
    assert repository.ask("METRICS filter: t")["report"]["metrics"]["sequential_estimate_ms"] == counted


@pytest.mark.parametrize(
    "breakdown",
    [
        {
            "tasks": [
                {"id": 1, "name": "a", "files": [], "dependencies": []},
                {"id": 2, "name": "b", "files": [], "dependencies": [1]},
            ]
        },
        {"wave_0": ["Task 1: first"], "wave_1": ["Task 2: second"]},
    ],
)
def test_both_shapes_of_the_breakdown(repository: Repository, breakdown: dict[str, Any]) -> None:
    entries = [
        {
            "name": f"implementer:task-{n}",
            "status": "success",
            "started_at": "2026-01-01T00:00:00Z",
            "ended_at": "2026-01-01T00:01:00Z",
            "duration_ms": 60000,
        }
        for n in (1, 2)
    ]
    manifest(
        repository,
        "t",
        status="running",
        created_at="2026-01-01T00:00:00Z",
        completed_phases=entries,
        waves={"task_breakdown": breakdown, "execution": []},
    )
    detailed = repository.say("METRICS format: detailed filter: t")
    assert "[Wave 1]\n  implementer:task-1" in detailed
    assert "[Wave 2]\n  implementer:task-2" in detailed
    repository.must("START_PHASE phase: x task: t")
    assert repository.manifest("t")["waves"]["task_breakdown"] == breakdown


def test_a_gate_that_was_open_can_be_decided(repository: Repository) -> None:
    manifest(
        repository,
        "t",
        status="waiting_gate",
        created_at="2026-01-20T00:00:00Z",
        completed_phases=[{"name": "architect", "status": "success"}],
        gate_context={"gate": "design", "prompt": "Look", "artifacts": ["a.md"], "set_at": "2026-01-20T00:00:00Z"},
    )
    said = repository.say("RETRIEVE needs: manifest for_phase: resume task: t")
    assert '"set_at": "2026-01-20T00:00:00Z"' in said
    assert repository.say("START_PHASE phase: x task: t") == error("Cannot start phase while waiting for gate approval")
    assert "CONTINUE_FROM: spec-writer" in repository.say("RESUME decision: approve task: t")
    assert repository.manifest("t")["gate_context"] is None


def test_a_gate_of_another_name_is_kept_and_leads_on_by_the_phases(repository: Repository) -> None:
    manifest(
        repository,
        "t",
        status="waiting_gate",
        created_at="2026-01-20T00:00:00Z",
        completed_phases=[{"name": "architect", "status": "success"}, {"name": "design-audit", "status": "success"}],
        gate_context={"gate": "investigation", "prompt": "Choose"},
    )
    assert "CONTINUE_FROM: spec-writer" in repository.say("RESUME decision: approve task: t")


def test_a_pause_can_be_resumed(repository: Repository) -> None:
    manifest(
        repository,
        "t",
        status="paused",
        created_at="2026-01-20T00:00:00Z",
        current_phase="architect",
        completed_phases=[],
        failure_context={
            "phase": "implementer",
            "reason": "Max iterations reached",
            "attempts": 2,
            "recommendations": ["a"],
            "ticket": 7,
        },
    )
    assert '"ticket": 7' in repository.say("RETRIEVE for_phase: resume task: t")
    assert "CONTINUE_FROM: implementer" in repository.say("RESUME decision: retry task: t")


def test_a_running_phase_ends_with_a_duration_from_its_noted_start(repository: Repository) -> None:
    manifest(
        repository,
        "t",
        status="running",
        created_at="2025-11-15T08:00:00.000Z",
        current_phase="architect",
        running_phases=[{"phase": "architect", "started_at": "2025-11-15T08:12:01.000Z", "agent": "opus"}],
    )
    assert "DURATION_MS: 10000\n" in repository.say("END_PHASE phase: architect status: success task: t")


def test_the_current_phase_of_a_manifest_is_the_phase_of_its_pause(repository: Repository) -> None:
    manifest(
        repository,
        "t",
        status="running",
        created_at="2026-01-01T00:00:00Z",
        current_phase="architect",
        running_phases=[],
    )
    repository.must("PAUSE task: t reason: r")
    assert repository.manifest("t")["failure_context"]["phase"] == "architect"


@pytest.mark.parametrize(
    "told",
    [
        {"status": 7, "completed_phases": "none", "running_phases": {"a": 1}, "metrics": [1], "waves": "x"},
        {"completed_phases": ["architect", None, 3], "running_phases": ["spec", "spec"]},
        {"status": None, "gate_context": "text", "failure_context": [1]},
        {"status": "waiting_gate", "gate_context": "design"},
        {"status": "paused", "failure_context": "broke"},
        {"waves": {"task_breakdown": {"tasks": [{"id": 1, "dependencies": [9]}]}, "execution": [{"wave": 1}]}},
        {"created_at": "yesterday", "updated_at": 5, "name": {"a": 1}},
        {"created_at": "2026-01-19T02:00:00+02:00"},
    ],
)
def test_nothing_in_a_manifest_makes_it_unreadable(repository: Repository, told: dict[str, Any]) -> None:
    repository.write(f"{TASKS}/t/manifest.json", json.dumps(told))
    for command in ("LIST", "SUMMARY task: t", "METRICS filter: t", "RETRIEVE for_phase: resume task: t"):
        assert not repository.say(command).startswith("STATUS: error"), command
    repository.must("STORE task: t phase: spec content: x")
    kept = json.dumps(repository.manifest("t"))
    for key, value in told.items():
        if isinstance(value, (list, dict)) and key not in ("running_phases", "waves"):
            assert json.dumps(value) in kept, f"{key} was lost"
    found = json.dumps(told).encode()
    assert stored_version(repository.workspace, digest(found)) == found


def test_a_task_of_the_same_name_in_the_folder_can_be_used_under_its_own_spelling(repository: Repository) -> None:
    manifest(repository, "Dark_Mode", status="running", created_at="2026-01-01T00:00:00Z")
    repository.must("START_PHASE phase: x task: Dark_Mode")
    assert repository.manifest("Dark_Mode")["current_phase"] == "x"


def test_metrics_files_of_another_program_are_kept(repository: Repository) -> None:
    repository.write(".claude/orchestrator/metrics/t.json", '{"theirs": 1}')
    repository.must("INIT task: t", "START_PHASE phase: a", "END_PHASE phase: a status: success")
    assert json.loads(repository.read(".claude/orchestrator/metrics/t.json"))["task"] == "t"
    assert stored_version(repository.workspace, digest(b'{"theirs": 1}')) == b'{"theirs": 1}'


def test_init_beside_somebodys_current_task_keeps_their_text(repository: Repository) -> None:
    repository.write(CURRENT, "my own notes\n")
    repository.must("INIT task: t")
    assert "**Task:** t" in repository.read(CURRENT)
    assert stored_version(repository.workspace, digest(b"my own notes\n")) == b"my own notes\n"
