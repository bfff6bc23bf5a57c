"""A decision at a gate is for exactly what was shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.context.conftest import TASKS, Repository, error

ROOT = Path(__file__).resolve().parents[3]
CHANGED = (
    "Gate artifacts changed since the gate was set: {}. Review them, then use revise or reject, or put back what "
    "was shown"
)


@pytest.fixture
def gated(repository: Repository) -> Repository:
    repository.must("INIT task: t", "STORE phase: architect content: # Design\n")
    repository.must(f"SET_GATE gate: design prompt: ok? artifacts: {TASKS}/t/architect.md, later.md")
    return repository


def test_what_was_shown_can_be_approved(gated: Repository) -> None:
    assert "DECISION: approve" in gated.say("RESUME decision: approve")


@pytest.mark.parametrize("change", ["edited", "stored anew", "deleted"])
def test_a_changed_artifact_voids_an_approval(gated: Repository, change: str) -> None:
    path = gated.root / TASKS / "t/architect.md"
    match change:
        case "edited":
            path.write_text("# Another design\n")
        case "stored anew":
            gated.must("STORE phase: architect content: # Another design\n")
        case "deleted":
            path.unlink()
    assert gated.say("RESUME decision: approve") == error(CHANGED.format(f"{TASKS}/t/architect.md"))
    assert gated.manifest("t")["status"] == "waiting_gate"


@pytest.mark.parametrize("decision", ["reject", "revise"])
def test_a_changed_artifact_can_still_be_sent_back(gated: Repository, decision: str) -> None:
    (gated.root / TASKS / "t/architect.md").write_text("# Another design\n")
    assert f"DECISION: {decision}" in gated.say(f"RESUME decision: {decision}")


def test_putting_back_what_was_shown_makes_it_approvable_again(gated: Repository) -> None:
    path = gated.root / TASKS / "t/architect.md"
    path.write_text("# Another design\n")
    assert gated.say("RESUME decision: approve").startswith("STATUS: error")
    path.write_text("# Design\n")
    assert "DECISION: approve" in gated.say("RESUME decision: approve")


def test_a_file_that_did_not_exist_is_not_bound(gated: Repository) -> None:
    gated.write("later.md", "now it does")
    assert "DECISION: approve" in gated.say("RESUME decision: approve")


def test_artifacts_are_found_in_the_tasks_folder_too(repository: Repository) -> None:
    repository.must("INIT task: t", "STORE phase: spec content: spec")
    repository.must("SET_GATE gate: final prompt: ok? artifacts: spec.md")
    repository.write(f"{TASKS}/t/spec.md", "other")
    assert repository.say("RESUME decision: approve") == error(CHANGED.format("spec.md"))


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b"])
def test_a_path_outside_the_repository_is_refused(repository: Repository, path: str) -> None:
    repository.must("INIT task: t")
    assert repository.say(f"SET_GATE gate: final prompt: ok? artifacts: {path}") == error(
        f"Invalid artifact path: {path}. Use paths below the repository"
    )


def test_a_link_is_not_followed(repository: Repository, tmp_path: Path) -> None:
    repository.must("INIT task: t")
    (tmp_path / "outside").mkdir()
    (repository.root / "link").symlink_to(tmp_path / "outside")
    assert repository.say("SET_GATE gate: final prompt: ok? artifacts: link/a.md") == error(
        "Invalid artifact path: link/a.md. Use paths below the repository"
    )


def test_the_decision_is_recorded_with_who_and_feedback(gated: Repository) -> None:
    gated.must("RESUME decision: revise feedback: split the service")
    decision = gated.workspace.load("t")["decisions"][-1]
    assert (decision["who"], decision["feedback"], decision["decision"]) == ("ada", "split the service", "revise")
    history = gated.read("docs/orchestrator/context/history.md")
    assert "- **Feedback:** split the service\n- **By:** ada\n" in history


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "running", "gate_context": None},
        {"status": "completed"},
        {"status": "completed", "gate_context": None},
        {"gate_context": None},
        {"gate_context": {"gate": "design", "prompt": "other", "options": ["approve"], "artifacts": []}},
    ],
)
def test_a_gate_cannot_be_opened_by_editing_the_manifest(gated: Repository, changes: dict[str, object]) -> None:
    """The gate stays. The edit is refused by name and left alone, or, where it is no more than an older
    version of ours, taken for the stale copy that it is."""
    gated.wait(1000)
    gated.edit("t", **changes)
    edited = gated.read(f"{TASKS}/t/manifest.json")
    for command in ("START_PHASE phase: spec-writer", "PAUSE reason: x", "STORE phase: spec content: x"):
        said = gated.say(command)
        assert gated.workspace.load("t")["gate"] is not None
        if "was changed by another program" in said:
            assert gated.read(f"{TASKS}/t/manifest.json") == edited
    assert gated.workspace.load("t")["status"] == "waiting_gate"


@pytest.mark.parametrize("way", ["gate", "pause"])
def test_an_agent_cannot_decide(repository: Repository, way: str) -> None:
    """Not through the library either: what counts is the process it runs in."""
    repository.must("INIT task: t", "SET_GATE gate: final prompt: ok?" if way == "gate" else "PAUSE reason: x")
    command = "RESUME decision: approve" if way == "gate" else "RESUME decision: retry"
    script = (
        "import sys, tenuto\n"
        "from tenuto.errors import TenutoError\n"
        "try:\n    tenuto.open(sys.argv[1]).context.run(sys.argv[2])\n"
        "except TenutoError as error:\n    sys.exit(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(repository.root), command],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "TENUTO_ATTEMPT": "a1", "PYTHONPATH": str(ROOT)},
    )
    assert "agent-decides" in done.stderr
    assert repository.workspace.load("t")["status"] in ("waiting_gate", "paused")
    repository.must(command)


def test_nothing_below_a_supervisor_can_decide(repository: Repository, tmp_path: Path) -> None:
    """Whatever its environment says."""
    repository.must("INIT task: t", "SET_GATE gate: final prompt: ok?")
    above = tmp_path / "tenuto" / "supervise" / "__main__.py"
    above.parent.mkdir(parents=True)
    above.write_text("import subprocess, sys\nsys.exit(subprocess.call(sys.argv[2:]))\n")
    boot = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tenuto.entrypoints.launch import main; main()"
    agent = [sys.executable, "-I", "-S", "-c", boot, str(ROOT), "context", "RESUME decision: approve"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(above), "directory", *agent],
        check=False,
        cwd=repository.root,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (
        1,
        "STATUS: error\nERROR: An agent cannot approve a gate: only a person can\n",
    )


def test_where_decisions_are_signed_the_command_is_not_enough(repository: Repository) -> None:
    repository.must("INIT task: t", "SET_GATE gate: final prompt: ok?")
    repository.write(".tenuto/config.yaml", "# gates: guarded\ngates: signed\n")
    assert repository.say("RESUME decision: approve") == error("Decisions in this repository are signed")
    repository.write(".tenuto/config.yaml", "gates: guarded # not signed\n")
    repository.must("RESUME decision: approve")
    assert repository.workspace.load("t")["decisions"][-1]["proof"] == {"level": "guarded"}
