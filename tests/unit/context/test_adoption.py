"""Folders that another program wrote, with the drift that real ones show, become tasks without losing a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenuto.encoding import digest
from tenuto.workspace.versions import stored_version
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
    repository.write(f"{TASKS}/dom-perf-visualizer/metadata.json", (REAL / "dom-perf-visualizer.metadata.json").read_bytes())
    repository.write(HISTORY, (REAL / "history.md").read_bytes())
    repository.write(
        CURRENT,
        "# Current Task\n\n**Task:** hello-world-greeting\n**Mode:** poc\n**Status:** running\n\n## Summary\n\nIts own words.\n",
    )
    return repository


def manifest(repository: Repository, slug: str, **told: Any) -> None:
    repository.write(f"{TASKS}/{slug}/manifest.json", json.dumps({"name": slug, "mode": "standard", **told}, indent=4))


def test_list_shows_them_newest_first(real: Repository) -> None:
    assert real.say("LIST") == (
        "TASKS:\n"
        "- hello-world-greeting | mode: poc | workflow: poc | status: poc-complete | created: 2026-01-20T00:00:00Z\n"
        "- context-path-migration | mode: standard | workflow: orchestrate | status: completed | created: 2026-01-19T00:00:00Z\n"
        "- dom-perf-visualizer | mode: poc | workflow: poc | status: poc-complete | created: 2026-01-19T00:00:00Z"
    )
    assert real.warnings() == []


@pytest.mark.parametrize("command", ["LIST", "METRICS", "SUMMARY", "HISTORY", "QUERY question: path migration", "RETRIEVE for_phase: resume"])
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
    assert report["metrics"]["sequential_estimate_ms"] == sum(entry["duration_ms"] for entry in told["completed_phases"])
    assert report["metrics"]["total_retries"] == 3
    assert report["completed_phases"] == told["completed_phases"]
    detailed = real.say("METRICS format: detailed filter: context-path-migration")
    assert "design-audit              36000s     failed        0\n" in detailed
    assert "[Wave 1]\n  implementer:task-4" in detailed


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
        assert after[path] == body or after[path].startswith(body) or stored_version(real.workspace, digest(body)) == body


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
    """Real folders hold names with colons, links, folders in place of files."""
    folder = real.root / TASKS / "hello-world-greeting"
    (folder / "implementations").mkdir()
    (folder / "implementations/implementer:task-1.md").write_text("a colon")
    (folder / "implementer:fix-1.md").write_text("not in the layout")
    (folder / "spec.md").mkdir()
    (folder / "architect.md").symlink_to(tmp_path / "elsewhere")
    (folder / "tests").write_text("a file")
    real.must("LIST", "START_PHASE phase: x task: hello-world-greeting")
    said = "\n".join(real.warnings())
    for name in ("implementer:task-1.md", "spec.md", "architect.md", "tests"):
        assert f"{name} is left alone" in said


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


def test_legacy_statuses_and_workflows(repository: Repository) -> None:
    for slug, told in {
        "a": {"status": "in-progress", "mode": "standard"},
        "b": {"status": "in-progress", "mode": "poc"},
        "c": {"status": "impl-audit-complete", "mode": "standard", "workflow": "orchestrate", "design_audit_iteration": 2},
    }.items():
        repository.write(f"{TASKS}/{slug}/metadata.json", json.dumps({"name": slug, "created_at": f"2026-01-0{ord(slug) - 96}T00:00:00Z", **told}))
    assert repository.say("LIST").splitlines()[1:] == [
        "- c | mode: standard | workflow: orchestrate | status: impl-audit-complete | created: 2026-01-03T00:00:00Z",
        "- b | mode: poc | workflow: poc | status: running | created: 2026-01-02T00:00:00Z",
        "- a | mode: standard | workflow: orchestrate | status: running | created: 2026-01-01T00:00:00Z",
    ]
    assert [text for text in repository.warnings() if "unknown status 'impl-audit-complete'" in text]
    assert repository.say("START_PHASE phase: x task: c") == error("Cannot start phase on impl-audit-complete task")


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
    manifest(repository, "t", status="running", created_at="2026-01-01T00:00:00Z", running_phases=[], completed_phases=[])
    assert "status: running" in repository.say("LIST")
    repository.edit("t", status="paused", failure_context={"phase": "spec", "reason": "by hand"})
    assert "status: paused" in repository.say("LIST")


@pytest.mark.parametrize("key", ["phase", "name"])
def test_both_keys_of_a_completed_phase_are_read_and_kept(repository: Repository, key: str) -> None:
    entry = {key: "architect", "status": "success", "started_at": "2026-01-20T21:50:33.120Z",
             "ended_at": "2026-01-20T21:52:06.017Z", "duration_ms": 92897, "notes": {"kept": True}}  # fmt: skip
    manifest(repository, "t", status="running", created_at="2026-01-20T00:00:00Z", completed_phases=[entry], shelf_context=None,
             metrics={"total_duration_ms": None, "cost": 3, "total_retries": 0})  # fmt: skip
    assert "architect                    93s     success       0" in repository.say("METRICS format: detailed filter: t")
    repository.must("START_PHASE phase: spec task: t")
    told = repository.manifest("t")
    assert told["completed_phases"][0] == entry
    assert told["shelf_context"] is None
    assert told["metrics"]["cost"] == 3


@pytest.mark.parametrize(
    ("noted", "counted"), [(36_000_000, 36_000_000), (-5, 900_000), ("soon", 900_000), (None, 900_000), (1.5, 1), (True, 900_000)]
)
def test_impossible_durations(repository: Repository, noted: object, counted: int) -> None:
    """A number that can be a duration counts as it was noted; anything else is taken from the times."""
    entry = {"phase": "a", "status": "success", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:15:00Z", "duration_ms": noted}
    manifest(repository, "t", status="running", created_at="2026-01-01T00:00:00Z", completed_phases=[entry])
    assert repository.ask("METRICS filter: t")["report"]["metrics"]["sequential_estimate_ms"] == counted


@pytest.mark.parametrize(
    "breakdown",
    [
        {"tasks": [{"id": 1, "name": "a", "files": [], "dependencies": []}, {"id": 2, "name": "b", "files": [], "dependencies": [1]}]},
        {"wave_0": ["Task 1: first"], "wave_1": ["Task 2: second"]},
    ],
)
def test_both_shapes_of_the_breakdown(repository: Repository, breakdown: dict[str, Any]) -> None:
    entries = [
        {"name": f"implementer:task-{n}", "status": "success", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:01:00Z", "duration_ms": 60000}
        for n in (1, 2)
    ]
    manifest(repository, "t", status="running", created_at="2026-01-01T00:00:00Z", completed_phases=entries,
             waves={"task_breakdown": breakdown, "execution": []})  # fmt: skip
    detailed = repository.say("METRICS format: detailed filter: t")
    assert "[Wave 1]\n  implementer:task-1" in detailed
    assert "[Wave 2]\n  implementer:task-2" in detailed
    repository.must("START_PHASE phase: x task: t")
    assert repository.manifest("t")["waves"]["task_breakdown"] == breakdown


def test_a_gate_that_was_open_can_be_decided(repository: Repository) -> None:
    manifest(
        repository, "t", status="waiting_gate", created_at="2026-01-20T00:00:00Z", completed_phases=[{"name": "architect", "status": "success"}],
        gate_context={"gate": "design", "prompt": "Look", "artifacts": ["a.md"], "set_at": "2026-01-20T00:00:00Z"},
    )  # fmt: skip
    said = repository.say("RETRIEVE needs: manifest for_phase: resume task: t")
    assert '"set_at": "2026-01-20T00:00:00Z"' in said
    assert repository.say("START_PHASE phase: x task: t") == error("Cannot start phase while waiting for gate approval")
    assert "CONTINUE_FROM: spec-writer" in repository.say("RESUME decision: approve task: t")
    assert repository.manifest("t")["gate_context"] is None


def test_a_gate_of_another_name_is_kept_and_leads_on_by_the_phases(repository: Repository) -> None:
    manifest(
        repository, "t", status="waiting_gate", created_at="2026-01-20T00:00:00Z",
        completed_phases=[{"name": "architect", "status": "success"}, {"name": "design-audit", "status": "success"}],
        gate_context={"gate": "investigation", "prompt": "Choose"},
    )  # fmt: skip
    assert "CONTINUE_FROM: spec-writer" in repository.say("RESUME decision: approve task: t")


def test_a_pause_can_be_resumed(repository: Repository) -> None:
    manifest(
        repository, "t", status="paused", created_at="2026-01-20T00:00:00Z", current_phase="architect", completed_phases=[],
        failure_context={"phase": "implementer", "reason": "Max iterations reached", "attempts": 2, "recommendations": ["a"], "ticket": 7},
    )  # fmt: skip
    assert '"ticket": 7' in repository.say("RETRIEVE for_phase: resume task: t")
    assert "CONTINUE_FROM: implementer" in repository.say("RESUME decision: retry task: t")


def test_a_running_phase_ends_with_a_duration_from_its_noted_start(repository: Repository) -> None:
    manifest(
        repository, "t", status="running", created_at="2025-11-15T08:00:00.000Z", current_phase="architect",
        running_phases=[{"phase": "architect", "started_at": "2025-11-15T08:12:01.000Z", "agent": "opus"}],
    )  # fmt: skip
    assert "DURATION_MS: 10000\n" in repository.say("END_PHASE phase: architect status: success task: t")


def test_the_current_phase_of_a_manifest_is_the_phase_of_its_pause(repository: Repository) -> None:
    manifest(repository, "t", status="running", created_at="2026-01-01T00:00:00Z", current_phase="architect", running_phases=[])
    repository.must("PAUSE reason: r task: t")
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
