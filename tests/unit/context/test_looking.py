"""LIST, QUERY, SUMMARY, HISTORY and project memory."""

from __future__ import annotations

import json

import pytest

from tests.unit.context.conftest import TASKS, Repository, error

DECISIONS = "docs/orchestrator/memory/decisions.md"
PATTERNS = "docs/orchestrator/memory/patterns.md"


def test_list_is_newest_first_and_can_be_cut(repository: Repository) -> None:
    for number in range(5):
        repository.must(f"INIT task: t{number}")
        repository.wait(1000)
    assert [task["task"] for task in repository.context.list(limit=2)] == ["t4", "t3"]
    assert repository.say("LIST limit: 1").count("\n") == 1
    assert len(repository.context.list()) == 5


def test_an_empty_list(repository: Repository) -> None:
    assert repository.say("LIST") == "TASKS:"


# ---- QUERY -----------------------------------------------------------------------------------------


@pytest.fixture
def stored(repository: Repository) -> Repository:
    repository.must("INIT task: alpha")
    repository.must(
        "STORE phase: architect content: # Design\n\n## Storage\n\nTokens live in a vault.\n\n## "
        "Other\n\n```sh\n# not a heading\n```\nnothing\n"
    )
    repository.must("INIT task: beta", "STORE phase: spec content: # Spec\n\nTokens are rotated daily by cron.\n")
    return repository


def test_passages_come_with_file_and_heading(stored: Repository) -> None:
    record = stored.ask("QUERY question: where do tokens live?")
    assert (record["passages"][0]["task"], record["passages"][0]["path"], record["passages"][0]["heading"]) == (
        "alpha",
        f"{TASKS}/alpha/architect.md",
        "Design > Storage",
    )
    assert stored.say("QUERY question: vault").startswith(
        f"STATUS: success\nTASK: beta\nDATA:\n[1] {TASKS}/alpha/architect.md > Design > Storage\nTokens live "
        "in a vault."
    )


def test_a_task_limits_the_search(stored: Repository) -> None:
    assert {passage["task"] for passage in stored.ask("QUERY task: beta question: tokens")["passages"]} == {"beta"}


def test_what_was_replaced_is_not_found_any_more(stored: Repository) -> None:
    stored.must("STORE phase: spec content: # Spec\n\nSomething else.\n")
    assert not stored.ask("QUERY question: cron")["passages"]
    assert stored.say("QUERY question: cron").splitlines()[2] == "DATA: No passage found for: cron"


def test_history_and_memory_are_searched(stored: Repository) -> None:
    stored.must("PAUSE reason: the flux capacitor overheated")
    assert "flux" in stored.ask("QUERY question: capacitor")["passages"][0]["text"]
    stored.context.remember("decision", "All quokkas are stored sorted.", title="Quokka order", rationale="speed")
    assert stored.ask("QUERY question: quokka")["passages"][0]["path"] == DECISIONS
    stored.write(PATTERNS, "# Code Patterns\n\n## Zebra pattern\n\nstripes first\n")
    assert stored.ask("QUERY question: stripes")["passages"][0]["heading"] == "Code Patterns > Zebra pattern"


def test_a_rewritten_history_is_indexed_anew(stored: Repository) -> None:
    stored.must("PAUSE reason: unicorn trouble")
    assert stored.ask("QUERY question: unicorn")["passages"]
    stored.write("docs/orchestrator/context/history.md", "# Context History\n\n## later\n\nonly a narwhal now\n")
    assert stored.ask("QUERY question: narwhal")["passages"]
    assert not stored.ask("QUERY question: unicorn")["passages"]


def test_the_text_of_an_artifact_outranks_its_line_in_the_history(stored: Repository) -> None:
    stored.must("STORE phase: test-results content: # Results\n\nThe walrus suite passed in full, all of the tests.\n")
    stored.must("PAUSE reason: walrus")
    assert stored.ask("QUERY question: walrus")["passages"][0]["path"].endswith("test-results.md")


def test_a_limit(stored: Repository) -> None:
    assert len(stored.ask("QUERY limit: 1 question: tokens")["passages"]) == 1
    assert stored.say("QUERY limit: many question: tokens") == error("Invalid limit: many. Use a number from 1 to 1000")


# ---- HISTORY ---------------------------------------------------------------------------------------


def test_history_is_the_file(stored: Repository) -> None:
    said = stored.say("HISTORY")
    assert stored.read("docs/orchestrator/context/history.md").strip("\n") in said


def test_history_filtered(stored: Repository) -> None:
    said = stored.say("HISTORY filter: alpha")
    assert "alpha" in said
    assert "beta" not in said.split("DATA:")[1]
    assert stored.ask("HISTORY filter: STORE phase: spec")["entries"] == 1
    assert "DATA: (no entries)" in stored.say("HISTORY filter: nothing like it")


# ---- SUMMARY ---------------------------------------------------------------------------------------


def test_summary_tells_where_a_task_stands(stored: Repository) -> None:
    stored.must("START_PHASE phase: a", "END_PHASE phase: a status: failed", "SET_GATE gate: design prompt: Look here")
    said = stored.say("SUMMARY")
    for line in (
        "Status: waiting_gate",
        "Situation: Waiting for approval of the design gate: Look here",
        "Completed phases: a (failed)",
        "Artifacts: spec",
        "Retries: 1",
    ):
        assert f"\n{line}\n" in said
    assert "Task: alpha\n" in stored.say("SUMMARY task: alpha")


# ---- project memory --------------------------------------------------------------------------------


def test_a_placeholder_stands_for_an_empty_memory(stored: Repository) -> None:
    placeholder = (
        "## Project Memory\n\n### Decisions\n[No project decisions recorded yet]\n\n"
        "### Patterns\n[No project patterns recorded yet]"
    )
    assert placeholder in stored.say("RETRIEVE needs: memory,architect-output for_phase: design-audit task: alpha")
    stored.write(DECISIONS, "# Architecture Decisions\n\n> none so far\n\n<!-- add below -->\n\n---\n")
    assert placeholder in stored.say("RETRIEVE needs: memory,architect-output for_phase: design-audit task: alpha")


def test_memory_is_injected_when_it_is_asked_for(stored: Repository) -> None:
    stored.context.remember("decision", "Use tabs.", title="Indentation", rationale="they are wider")
    stored.context.remember("pattern", "```py\nx = 1\n```", title="Assignment")
    said = stored.say("RETRIEVE needs: memory for_phase: spec")
    assert "### Decisions\n# Architecture Decisions\n\n## Indentation\n" in said
    assert "### Patterns\n# Code Patterns\n\n## Assignment\n" in said
    assert "Indentation" not in stored.say("RETRIEVE for_phase: spec")


def test_entries_have_date_task_and_rationale(stored: Repository) -> None:
    stored.context.remember("decision", "Use tabs.", title="Indentation", rationale="they are wider")
    assert stored.read(DECISIONS) == (
        "# Architecture Decisions\n\n## Indentation\n\n"
        f"**Date:** {stored.time[:10]}\n**Task:** beta\n**Decision:** Use tabs.\n**Rationale:** they are wider\n"
    )


def test_existing_memory_is_kept_and_a_title_is_added_once(stored: Repository) -> None:
    stored.write(DECISIONS, "# Ours\n\n## ADR-1: Tabs\n\nold")
    stored.context.remember("decision", "again", title="ADR-1: Tabs")
    assert stored.read(DECISIONS) == "# Ours\n\n## ADR-1: Tabs\n\nold"
    stored.context.remember("decision", "new", title="ADR-2")
    assert stored.read(DECISIONS).startswith("# Ours\n\n## ADR-1: Tabs\n\nold\n\n## ADR-2\n")


CANDIDATES = [
    {
        "type": "decision",
        "title": "Memory location",
        "content": "Memory lives in docs.",
        "source": "architect.designDecisions[0]",
    },
    {"type": "pattern", "title": "Wave execution", "content": "```\nwave 0\n```", "rationale": "faster"},
    {"type": "decision", "title": "memory location", "content": "said twice"},
    "Prefer plain text",
    {"type": "decision"},
    7,
]


def test_candidates_become_memory_when_the_final_gate_is_approved_and_not_before(stored: Repository) -> None:
    audit = {
        "audit_type": "implementation",
        "verdict": "PASS",
        "iteration": 1,
        "issues": [],
        "memory_candidates": CANDIDATES,
    }
    stored.must(
        f"STORE phase: impl-audit content: {json.dumps(audit)}",
        "SET_GATE gate: design prompt: ok?",
        "RESUME decision: approve",
    )
    assert not (stored.root / DECISIONS).exists()
    stored.must("SET_GATE gate: final prompt: ok?", "RESUME decision: approve")
    decisions, patterns = stored.read(DECISIONS), stored.read(PATTERNS)
    assert decisions.count("\n## ") == 2
    assert "**Decision:** Memory lives in docs.\n**Rationale:** from architect.designDecisions[0]\n" in decisions
    assert "## Prefer plain text\n" in decisions
    assert f"**Rationale:** faster\n**Source:** beta\n**Date:** {stored.time[:10]}\n" in patterns
    assert "Project Memory Updated" in stored.read("docs/orchestrator/context/history.md")


def test_a_rejected_gate_leaves_no_memory(stored: Repository) -> None:
    stored.must(f"STORE phase: impl-audit content: {json.dumps({'verdict': 'PASS', 'memory_candidates': CANDIDATES})}")
    stored.must("SET_GATE gate: final prompt: ok?", "RESUME decision: reject")
    assert not (stored.root / DECISIONS).exists()


def test_a_heading_without_a_text_is_no_answer_where_there_is_one(repository: Repository) -> None:
    repository.must(
        "INIT task: t", "STORE phase: architect content: # Audit\n\n## Audit of the design\n\n### Verdict\nIt holds."
    )
    passages = repository.ask("QUERY question: design audit verdict")["passages"]
    assert passages[0]["text"].strip() == "It holds." and all(passage["text"].strip() for passage in passages)
