"""What the provers try is a list; what Tenuto offers grows. A command that is on no list shows here."""

from __future__ import annotations

import importlib
from pathlib import Path

from prove import attacker, fuzz, p09_secrets, p10_text, p13_hooks, p14_input
from prove.equivalent import EQUIVALENT
from tenuto.entrypoints.cli.program import COMMANDS, SECTIONS, SPOKEN
from tenuto.entrypoints.feature import VERBS
from tenuto.entrypoints.staged import OPERATIONS
from tenuto.hooks.call import HANDLERS
from tenuto.hooks.parse import EVENTS, parse_hook


def tried(*first: str) -> set[str]:
    """The words that come after these, in what the attacker says."""
    said = [*attacker.WORDS, *attacker.BY_HAND]
    return {words[len(first)] for words in said if words[: len(first)] == list(first)}


def test_an_agent_tries_every_command_that_could_open_a_gate() -> None:
    assert set(COMMANDS) | set(SPOKEN) == tried() | set(attacker.HARMLESS)


def test_an_agent_tries_every_word_of_a_dialect_that_leads_on() -> None:
    """The others only look, or record what was done."""
    assert set(VERBS) - tried("feature") == {"start", "task", "status", "cancel"}
    records = {
        "init",
        "read",
        "owner",
        "stop",
        "record-output",
        "record-review",
        "record-coverage",
        "record-failure",
        "validate-gate",
    }
    assert set(OPERATIONS) - tried("staged") == records


def test_every_command_that_looks_is_searched_for_secrets_and_for_what_a_terminal_obeys() -> None:
    for looks in (p09_secrets.LOOKS, (*p10_text.LOOKS, *p10_text.IN_TURN)):
        # tests/web looks through the pages that `ui` serves.
        assert set(SECTIONS["Look"]) - {"ui"} | {
            "plan",
            "export",
            "verify",
            "doctor",
            "adopt",
            "repair",
            "clean",
            *SPOKEN,
        } - {"hook"} <= {words[0] for words in looks}


def test_every_command_is_given_what_nobody_would_type() -> None:
    """The others wait (watch, mcp, ui, up, worker), start servers (cluster, demo), write where their user says, or have
    their own tests for what they read."""
    assert set(COMMANDS) - set(p14_input.NAMES) == {
        "watch",
        "mcp",
        "ui",
        "export",
        "import",
        "setup",
        "doctor",
        "completion",
        "up",
        "worker",
        "cluster",
        "demo",
    }
    assert set(fuzz.STAGED) == set(OPERATIONS) and set(VERBS) - set(fuzz.FEATURE) == {"commit"}
    assert {EVENTS[name] for name in fuzz.HOOKS} | {"Delegation"} == set(HANDLERS)


def test_an_error_is_forced_in_every_hook() -> None:
    call = [
        parse_hook(name.rpartition("/")[2].partition(".")[0], p13_hooks._payload(name, Path("/nowhere")))["event"]
        for name in (*p13_hooks.NAMES, *p13_hooks.OTHERS)
    ]
    assert set(call) == set(HANDLERS)


def stands(module: str, name: str) -> bool:
    """Is it defined in this module, and not only imported there?"""
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return getattr(found, "__module__", "") == module


def test_every_equivalent_mutant_is_one_of_a_function_that_there_is() -> None:
    """A function that moves or gets another name takes its mutants along."""
    named = sorted({tuple(key.split(":", 2)[:2]) for key in EQUIVALENT})
    assert [f"{module}:{name}" for module, name in named if not stands(module, name)] == []
