"""RETRIEVE through the real command: condensed, complete, within its budget, with receipts that add up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.encoding import digest
from tenuto.knowledge.tokens import estimate_tokens
from tests.unit.context.conftest import Repository, error

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "retrieve"
ARTIFACTS = sorted(path for path in SAMPLES.iterdir() if path.is_file() and not path.name.endswith(".must.txt"))
# Shorter texts have little besides their contract, and none of that may be left out.
ORDINARY_LINES = 150


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def plain(text: str) -> str:
    return " ".join(text.split())


def test_packs_hold_every_signature_type_and_edge_case_in_two_fifths_of_the_tokens(repository: Repository) -> None:
    """Over artifacts of many heading styles and programming languages, one of them without any heading."""
    full = packed = ordinary = 0
    for path in ARTIFACTS:
        text = path.read_text()
        repository.must(f"INIT task: {path.stem}", f"STORE phase: spec content: {text}")
        record = repository.ask("RETRIEVE needs: spec-signatures for_phase: implementation")
        if len(text.splitlines()) >= ORDINARY_LINES:
            ordinary += 1
            full += estimate_tokens(text)
            packed += estimate_tokens(record["data"])
        held = plain(record["data"])
        wanted = path.with_suffix("").with_suffix(".must.txt").read_text().splitlines()
        lost = [line for line in wanted if line.strip() and line[0] != "#" and plain(line) not in held]
        assert not lost, f"{path.name} lost {lost}"
    assert ordinary >= 6
    assert packed <= 0.4 * full, f"{packed} of {full} tokens"


def test_a_receipt_for_each_artifact(repository: Repository) -> None:
    text = (SAMPLES / "rate_limiter.md").read_text()
    repository.must("INIT task: t", f"STORE phase: spec content: {text}")
    said = repository.say("RETRIEVE for_phase: implementation")
    block, receipts = said.split("\nFILES_TOUCHED: []\n")
    assert block.startswith("STATUS: success\nTASK: t\nDATA:\n")
    assert receipts.startswith(f"RECEIPT: spec.md sha256:{digest(text.encode())} tokens in: ")
    record = repository.ask("RETRIEVE for_phase: implementation")
    receipt = record["receipts"][0]
    assert receipt["tokens_in"] + receipt["tokens_left_out"] == estimate_tokens(text)


@pytest.mark.parametrize("budget", [40, 200, 1000])
def test_a_budget_is_kept_and_what_was_dropped_is_said(repository: Repository, budget: int) -> None:
    text = (SAMPLES / "shift_planner.md").read_text()
    repository.must("INIT task: t", f"STORE phase: spec content: {text}")
    record = repository.ask(f"RETRIEVE for_phase: implementation max_tokens: {budget}")
    whole = repository.ask("RETRIEVE for_phase: implementation")
    assert estimate_tokens(record["data"]) <= budget
    assert "DROPPED for max_tokens" in record["data"] or record["data"] == whole["data"]


def test_full_parts_ignore_a_budget(repository: Repository) -> None:
    text = (SAMPLES / "shift_planner.md").read_text()
    repository.must("INIT task: t", f"STORE phase: architect content: {text}")
    assert text.strip() in repository.ask("RETRIEVE for_phase: design-audit max_tokens: 50")["data"]


def test_the_latest_revision_stands_for_the_original(repository: Repository) -> None:
    repository.must("INIT task: t", "STORE phase: architect content: # First\n\nold\n")
    for number in (1, 2, 10):
        repository.must(f"STORE phase: architect-revision iteration: {number} content: # Revision {number}\n\ntext\n")
    said = repository.say("RETRIEVE needs: architect for_phase: design-audit")
    assert "# Revision 10" in said
    assert "old" not in said


def test_an_auditor_gets_the_previous_feedback_from_the_second_iteration_on(repository: Repository) -> None:
    repository.must("INIT task: t", "STORE phase: architect content: # Design\n\nall\n")
    assert "design-audit" not in repository.say("RETRIEVE for_phase: design-audit").split("NOT STORED YET")[0]
    repository.must("STORE phase: design-audit content: # Audit\n\n- [MAJOR] split the service\n")
    assert "split the service" in repository.say("RETRIEVE for_phase: design-audit")


def test_a_reviser_gets_what_to_fix_and_what_to_preserve(repository: Repository) -> None:
    audit = (
        '{"audit_type": "design", "verdict": "DESIGN_FLAW", "issues": [{"severity": "major", "description": "god object"}],'
        ' "kickback_context": {"issues_to_fix": ["split UserService"], "preserve": ["the schema"]}}'
    )
    repository.must("INIT task: t", "STORE phase: architect content: # Design\n\nall\n", f"STORE phase: design-audit content: {audit}")
    said = repository.say("RETRIEVE needs: design-audit-feedback,architect-output for_phase: revision")
    for part in ("all", "split UserService", "the schema"):
        assert part in said


def test_a_fixer_gets_the_implementation_the_feedback_and_the_tests(repository: Repository) -> None:
    repository.must(
        "INIT task: t",
        "STORE phase: implementation content: # Task 1\n\nchanged src/db.ts\n",
        "STORE phase: impl-audit content: # Audit\n\n## Issues\n\n- [CRITICAL] src/db.ts:45 injection\n",
        "STORE phase: tests content: # Tests\n\n## Test Files\n\n- test/db.test.ts\n",
    )
    said = repository.say("RETRIEVE needs: impl-audit-feedback,implementation for_phase: fix")
    assert "src/db.ts:45 injection" in said
    assert "changed src/db.ts" in said
    assert "test/db.test.ts" in repository.say("RETRIEVE for_phase: fix")


def test_an_implementation_auditor_gets_everything(repository: Repository) -> None:
    parts = {"architect": "the design", "spec": "the spec", "test-results": "the results"}
    repository.must("INIT task: t", *(f"STORE phase: {phase} content: # X\n\n{text}\n" for phase, text in parts.items()))
    repository.must(*(f"STORE phase: implementation content: part {n}\n" for n in (1, 2)), "STORE phase: tests content: some tests\n")
    repository.must("STORE phase: implementation-fix iteration: 1 content: a fix\n")
    said = repository.say("RETRIEVE needs: all for_phase: impl-audit")
    for text in (*parts.values(), "part 1", "part 2", "some tests", "a fix"):
        assert text in said
    only = repository.say("RETRIEVE needs: implementation for_phase: impl-audit task_id: 2")
    assert "part 2" in only
    assert "part 1" not in only


def test_unknown_phases_and_needs_name_the_known_ones(repository: Repository) -> None:
    repository.must("INIT task: t")
    assert repository.say("RETRIEVE needs: spec for_phase: lunch").startswith(
        "STATUS: error\nERROR: Unknown phase: lunch. Use design-audit, spec, implementation"
    )
    assert repository.say("RETRIEVE needs: gossip for_phase: spec").startswith(
        "STATUS: error\nERROR: Unknown need: gossip for phase spec. Use architect"
    )
    assert repository.say("RETRIEVE needs: spec").startswith("STATUS: error\nERROR: Missing required parameter: for_phase")
    assert repository.say("RETRIEVE for_phase: spec max_tokens: lots") == error("Invalid max_tokens: lots. Use a number from 1")


def test_what_is_not_stored_yet_is_said(repository: Repository) -> None:
    repository.must("INIT task: t")
    assert "NOT STORED YET: architect" in repository.say("RETRIEVE for_phase: spec")
