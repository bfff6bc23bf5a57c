"""What the provers try is a list; what Tenuto offers grows. A command that is on no list shows here."""

from __future__ import annotations

from prove import attacker
from tenuto.entrypoints.cli.program import COMMANDS, SPOKEN
from tenuto.entrypoints.feature import VERBS
from tenuto.entrypoints.staged import OPERATIONS


def tried(*first: str) -> set[str]:
    """The words that come after these, in what the attacker says."""
    said = [*attacker.WORDS, *attacker.BY_HAND]
    return {words[len(first)] for words in said if words[: len(first)] == list(first)}


def test_an_agent_tries_every_command_that_could_open_a_gate() -> None:
    assert set(COMMANDS) | set(SPOKEN) == tried() | set(attacker.HARMLESS)


def test_an_agent_tries_every_word_of_a_dialect_that_leads_on() -> None:
    """The others only look, or record what was done."""
    assert set(VERBS) - tried("feature") == {"start", "task", "status", "cancel"}
    records = {"init", "read", "owner", "stop", "record-output", "record-review", "record-coverage", "record-failure", "validate-gate"}
    assert set(OPERATIONS) - tried("staged") == records
