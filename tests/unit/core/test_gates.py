"""Gates and checkpoints: each rule of core/decisions/gates.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.present import present
from tests.unit.core.by_command import Adopted, Asked


def at_a_gate(**more: object) -> Asked:
    asked = Asked()
    assert asked.do("OpenGate", name="design", prompt="good?", **more) == ["GateOpened"]
    return asked


def test_a_gate_opens_only_when_nothing_runs() -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    assert asked.refused("OpenGate", name="design", prompt="good?") == "steps-running"
    asked.do("EndStep", step="plan", status="success")
    asked.do("OpenGate", name="design", prompt="good?")
    assert (asked.run["status"], present(asked.run["gate"])["id"], present(asked.run["gate"])["options"]) == (
        "waiting_gate",
        "gate-1",
        ["approve", "reject", "revise"],
    )
    assert asked.refused("OpenGate", name="again", prompt="?") == "not-running"


@pytest.mark.parametrize(
    "end",
    [
        {"do": "Pause", "reason": "x"},
        {"do": "Cancel"},
        {"do": "Fail", "error": "x"},
        {"do": "Finish", "outcome": "completed"},
    ],
)
def test_a_run_that_does_not_go_on_has_no_gate(end: dict[str, str]) -> None:
    asked = Asked()
    asked.do(**end)
    assert asked.refused("OpenGate", name="design", prompt="?") == "not-running"


def test_a_decision_needs_a_gate_and_one_of_its_words() -> None:
    asked = Asked()
    assert asked.refused("DecideGate", decision="approve", who="ada") == "no-gate"
    asked.do("OpenGate", name="design", prompt="?", options=["approve", "reject"])
    assert asked.refused("DecideGate", decision="revise", who="ada") == "bad-decision"
    assert asked.do("DecideGate", decision="approve", who="ada", feedback="fine") == ["GateDecided"]
    decided = asked.run["decisions"][-1]
    assert (decided["decision"], decided["approved"], decided["who"], decided["feedback"]) == (
        "approve",
        True,
        "ada",
        "fine",
    )
    assert asked.refused("DecideGate", decision="approve", who="ada") == "no-gate", "once"


def test_reject_ends_the_run_and_revise_does_not() -> None:
    asked = at_a_gate()
    assert asked.do("DecideGate", decision="revise", who="ada") == ["GateDecided"]
    assert asked.run["decisions"][-1]["approved"] is False
    asked.do("OpenGate", name="design", prompt="?")
    assert present(asked.run["gate"])["id"] == "gate-2"
    assert asked.do("DecideGate", decision="reject", who="ada", feedback="no") == ["GateDecided", "Failed"]
    assert (asked.run["status"], present(asked.run["failure"])["error"]) == ("failed", "gate 'design' was rejected: no")
    assert at_a_gate().do("DecideGate", decision="reject", who="ada") == ["GateDecided", "Failed"]


def test_the_last_gate_completes_the_run_when_it_is_approved_and_only_then() -> None:
    assert at_a_gate(completes=True).do("DecideGate", decision="approve", who="ada") == ["GateDecided", "Finished"]
    assert at_a_gate(completes=True).do("DecideGate", decision="revise", who="ada") == ["GateDecided"]
    assert at_a_gate(completes=False).do("DecideGate", decision="approve", who="ada") == ["GateDecided"]
    poc = Asked(mode="poc")
    poc.do("Finish", outcome="poc-complete")
    poc.do("OpenGate", name="final", prompt="?", completes=True)
    assert poc.do("DecideGate", decision="approve", who="ada") == ["GateDecided"], (
        "a proof of concept rests, and may be graduated"
    )


def test_what_was_shown_and_what_is_there_now() -> None:
    """Only an approval is for what was shown; to reject or revise what has changed is never wrong."""
    shown = [{"path": "a.md", "sha256": "1"}, {"path": "b.md", "sha256": None}]
    for word in ("reject", "revise"):
        assert at_a_gate(shown=shown).do("DecideGate", decision=word, who="ada", shown=[])[0] == "GateDecided"
    assert (
        at_a_gate(shown=shown).refused(
            "DecideGate", decision="approve", who="ada", shown=[{"path": "a.md", "sha256": "2"}]
        )
        == "gate-stale"
    )
    now = [{"path": "a.md", "sha256": "1"}, {"path": "b.md", "sha256": "9"}]
    assert at_a_gate(shown=shown).do("DecideGate", decision="approve", who="ada", shown=now) == ["GateDecided"]


def test_a_protected_run_takes_signed_decisions_only() -> None:
    signed = {"gate_protection": {"level": "signed", "signers": "ada ssh-ed25519 AAAA"}}
    asked = Asked(settings=signed)
    asked.do("OpenGate", name="design", prompt="?")
    for proof in ({}, {"level": "guarded"}, {"level": "in advance"}):
        assert asked.refused("DecideGate", decision="approve", who="ada", proof=proof) == "not-signed"
    assert asked.do(
        "DecideGate", decision="approve", who="ada", proof={"level": "signed", "signature": "s", "signer": "ada"}
    ) == ["GateDecided"]
    other = Asked(settings={"gate_protection": {"level": "isolated", "signers": ""}})
    other.do("OpenGate", name="design", prompt="?")
    assert other.do("DecideGate", decision="approve", who="ada", proof={"level": "isolated"}) == ["GateDecided"]
    assert asked.refused("ChangeSettings", changes={"gate_protection": None}) == "protected"


def test_a_word_is_passed_on_where_the_repository_allows_it() -> None:
    """The repository's own record, that is: what a run's settings say, which a model may have written, counts for
    nothing."""
    given = {"decision": "approve", "who": "ada", "proof": {"level": "guarded", "passed_on": "mcp"}}
    several: list[Any] = [{}, {"passed_on": []}, {"passed_on": ["other"]}]
    for allowed in several:
        asked = Asked(settings={"passed_on": ["mcp"]})
        asked.repo["settings"] = allowed
        asked.do("OpenGate", name="design", prompt="?")
        assert asked.refused("DecideGate", **given) == "not-switched-on"
        assert asked.do("DecideGate", decision="approve", who="ada", proof={}) == ["GateDecided"], "said by a person"
    asked = at_a_gate()
    asked.repo["settings"] = {"passed_on": ["other", "mcp"]}
    assert asked.do("DecideGate", **given) == ["GateDecided"]


def test_a_gate_of_a_pipeline_shows_what_is_there_now_and_only_what_is_new() -> None:
    """Asked again with the same files, nothing happens; with others, the same gate is shown anew under a name of its
    own."""
    from tests.unit.core.by_command import Driven

    run = Driven(
        "documents: docs/{slug}\nsteps:\n  - {id: g, gate: {prompt: 'Go on?'}}\n  - {id: a, agent: {role: "
        "researcher, mode: focused, focus: x}}\n"
    )
    run.asked()
    assert present(run.run["gate"])["id"] == "gate-1"
    shown = [{"path": "a.md", "sha256": "1"}]
    assert run.do("OpenGate", name="g", prompt="?", shown=[]) == []
    assert run.do("OpenGate", name="g", prompt="?", shown=shown) == ["GateOpened"]
    anew = present(run.run["gate"])["id"]
    assert anew.startswith("gate-1.") and present(run.run["gate"])["shown"] == shown
    assert run.refused("OpenGate", name="other", prompt="?") == "not-running"
    assert run.refused("DecideGate", decision="approve", who="ada", gate="gate-1", shown=shown) == "gate-stale"
    assert run.do("DecideGate", decision="approve", who="ada", gate=anew, shown=shown)[0] == "GateDecided"


def test_a_gate_that_was_opened_by_hand_is_not_opened_again() -> None:
    assert (
        at_a_gate().refused("OpenGate", name="design", prompt="?", shown=[{"path": "a", "sha256": "1"}])
        == "not-running"
    )


ORDER = [{"step": "plan", "approval": True}, {"step": "build"}]


def test_a_checkpoint_is_for_the_step_the_run_is_in() -> None:
    asked = Asked(order="open", schedule=ORDER)
    asked.do("StartStep", step="plan")
    assert asked.refused("Checkpoint", step="build", approved=True, who="ada") == "wrong-checkpoint"
    assert asked.do("Checkpoint", step="plan", approved=False, who="ada", feedback="no") == ["GateDecided"]
    decided = asked.run["decisions"][-1]
    assert (decided["decision"], decided["approved"], decided["name"], decided["feedback"]) == (
        "revise",
        False,
        "plan",
        "no",
    )
    assert asked.run["position"] == "plan"
    went = asked.do("Checkpoint", step="plan", approved=True, who="ada")
    assert went[0] == "GateDecided" and len(went) > 1
    assert asked.run["decisions"][-1]["decision"] == "approve"
    assert asked.run["position"] == "build"


def test_a_blocked_run_hears_its_checkpoint_and_an_engine_needs_none() -> None:
    from tests.unit.core.by_command import Driven

    asked = Asked(order="open", schedule=ORDER)
    asked.do("StartStep", step="plan")
    asked.do("Block", reason="missing")
    assert asked.do("Checkpoint", step="plan", approved=False, who="ada") == ["GateDecided"]
    run = Driven("documents: docs/{slug}\nsteps:\n  - {id: a, agent: {role: researcher, mode: focused, focus: x}}\n")
    run.asked()
    assert "engine" in run.refused("Checkpoint", step="a", approved=True, who="ada")


@pytest.mark.parametrize("end", [{"do": "Pause", "reason": "x"}, {"do": "Cancel"}, {"do": "Fail", "error": "x"}])
def test_a_run_that_does_not_go_on_has_no_checkpoint(end: dict[str, str]) -> None:
    asked = Asked(order="open", schedule=ORDER)
    asked.do(**end)
    assert asked.refused("Checkpoint", step="plan", approved=True, who="ada") == "not-running"


def test_a_run_that_was_found_before_it_began_or_begins_a_stage_again_has_gates_and_checkpoints() -> None:
    for status in ("created", "restarting"):
        asked = Adopted(status=status, order="open", schedule=ORDER, position="plan")
        assert asked.do("Checkpoint", step="plan", approved=False, who="ada") == ["GateDecided"], status
        assert asked.do("OpenGate", name="design", prompt="?") == ["GateOpened"], status
