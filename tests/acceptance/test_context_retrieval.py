"""RETRIEVE through the real command: complete, within its budget, with receipts that add up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.encoding import digest
from tenuto.knowledge.packs import estimate_tokens
from tests.unit.context.conftest import Repository, error

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "retrieve"
ARTIFACTS = sorted(path for path in SAMPLES.iterdir() if path.is_file() and not path.name.endswith(".must.txt"))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def plain(text: str) -> str:
    return " ".join(text.split())


def test_packs_hold_every_signature_type_and_edge_case(repository: Repository) -> None:
    """Over artifacts of many heading styles and programming languages, one of them without any heading."""
    for path in ARTIFACTS:
        text = path.read_text()
        repository.must(f"INIT task: {path.stem}", f"STORE phase: spec content: {text}")
        record = repository.ask("RETRIEVE needs: spec-signatures for_phase: implementation")
        held = plain(record["data"])
        wanted = path.with_suffix("").with_suffix(".must.txt").read_text().splitlines()
        lost = [line for line in wanted if line.strip() and line[0] != "#" and plain(line) not in held]
        assert not lost, f"{path.name} lost {lost}"


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


def test_a_design_and_its_revisions_are_handed_over_together(repository: Repository) -> None:
    """A revision tells what changed; what it revises is in the pack, too, in the order in which they were written."""
    repository.must("INIT task: t", "STORE phase: architect content: # First\n\nold\n")
    for number in (1, 2, 10):
        repository.must(f"STORE phase: architect-revision iteration: {number} content: # Revision {number}\n\ntext\n")
    for phase in ("design-audit", "revision", "impl-audit", "spec", "implementation"):
        said = repository.say(f"RETRIEVE needs: architect for_phase: {phase}")
        places = [said.index(text) for text in ("# First", "# Revision 1\n", "# Revision 2\n", "# Revision 10\n")]
        assert places == sorted(places)


def test_every_stored_artifact_has_a_receipt(repository: Repository) -> None:
    """What the phase does not read is named, too; tokens in and left out are those of the artifact."""
    repository.must(
        "INIT task: t",
        "STORE phase: architect content: # Design\n\nall\n",
        "STORE phase: design-audit content: fine\n",
        *(f"STORE phase: implementation task_id: {n} content: part {n}\n" for n in (1, 2)),
    )
    receipts = repository.ask("RETRIEVE needs: architect for_phase: spec")["receipts"]
    assert {receipt["path"]: receipt["tokens_in"] for receipt in receipts} == {
        "architect.md": 4,
        "audit-history.json": 0,
        "design-audit.md": 0,
        "implementations/task-001.md": 0,
        "implementations/task-002.md": 0,
    }
    assert all(receipt["tokens_in"] or receipt["tokens_left_out"] for receipt in receipts)
    only = repository.ask("RETRIEVE for_phase: impl-audit task_id: 2")
    notes = {receipt["path"]: receipt["note"] for receipt in only["receipts"]}
    assert notes["implementations/task-001.md"] == "not for task-002"
    assert notes["implementations/task-002.md"] == "whole"


def test_an_artifact_that_is_too_large_is_named_and_counted_as_left_out(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.dialects.context.retrieving.LARGEST", 1000)
    repository.must("INIT task: t", f"STORE phase: spec content: {'long ' * 1000}")
    record = repository.ask("RETRIEVE for_phase: implementation")
    assert record["data"].startswith("NOT SHOWN: spec.md: 5000 bytes are too many to be shown; read it where it lies")
    [receipt] = record["receipts"]
    assert (receipt["tokens_in"], receipt["tokens_left_out"]) == (0, 1250)


def test_memory_is_there_for_who_resumes_and_asks_for_it(repository: Repository) -> None:
    repository.must("INIT task: t")
    alone = repository.ask("RETRIEVE needs: manifest for_phase: resume")["data"]
    both = repository.ask("RETRIEVE needs: memory,manifest for_phase: resume")["data"]
    assert both == f"{alone}\n\n" + (
        "## Project Memory\n\n### Decisions\n[No project decisions recorded yet]\n\n"
        "### Patterns\n[No project patterns recorded yet]"
    )


def test_a_poc_without_a_specification_hands_over_its_design(repository: Repository) -> None:
    design = "# Counter widget\n\nThe widget keeps a count.\n\n## Approach\n\nLocal storage, no server.\n"
    repository.must("INIT task: p mode: poc workflow: poc", f"STORE phase: architect content: {design}")
    for needs in ("needs: all ", "", "needs: architect "):
        for phase in ("implementation", "testing"):
            assert design.strip() in repository.ask(f"RETRIEVE {needs}for_phase: {phase}")["data"]


def test_an_auditor_gets_the_previous_feedback_from_the_second_iteration_on(repository: Repository) -> None:
    repository.must("INIT task: t", "STORE phase: architect content: # Design\n\nall\n")
    assert "design-audit" not in repository.say("RETRIEVE for_phase: design-audit").split("NOT STORED YET")[0]
    repository.must("STORE phase: design-audit content: # Audit\n\n- [MAJOR] split the service\n")
    assert "split the service" in repository.say("RETRIEVE for_phase: design-audit")


def test_a_reviser_gets_what_to_fix_and_what_to_preserve(repository: Repository) -> None:
    audit = (
        '{"audit_type": "design", "verdict": "DESIGN_FLAW", "issues": [{"severity": "major", "description": '
        '"god object"}],'
        ' "kickback_context": {"issues_to_fix": ["split UserService"], "preserve": ["the schema"]}}'
    )
    repository.must(
        "INIT task: t",
        "STORE phase: architect content: # Design\n\nall\n",
        f"STORE phase: design-audit content: {audit}",
    )
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
    repository.must(
        "INIT task: t", *(f"STORE phase: {phase} content: # X\n\n{text}\n" for phase, text in parts.items())
    )
    repository.must(
        *(f"STORE phase: implementation content: part {n}\n" for n in (1, 2)),
        "STORE phase: tests content: some tests\n",
    )
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
    assert repository.say("RETRIEVE needs: spec").startswith(
        "STATUS: error\nERROR: Missing required parameter: for_phase"
    )
    assert repository.say("RETRIEVE for_phase: spec max_tokens: lots") == error(
        "Invalid max_tokens: lots. Use a number from 1"
    )


def test_what_is_not_stored_yet_is_said(repository: Repository) -> None:
    repository.must("INIT task: t")
    assert "NOT STORED YET: architect" in repository.say("RETRIEVE for_phase: spec")
