"""By whose word a gate was passed: each rule of core/approvals.py by itself."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core import approvals
from tenuto.errors import Refused


def step(name: str, gate: str = "", when: str = "always", aside: bool = False) -> Any:
    told = {"gate": {"name": gate}} if gate else {}
    return {"id": name, "kind": "gate" if gate else "agent", "when": when, "aside": aside, **told}


# write, then a person looks at the plan, then build, then a person looks at the whole, then ship
PIPELINE: Any = {
    "steps": [
        step("write"),
        step("g1", "plan"),
        step("gx", "odd", aside=True),
        step("build"),
        step("g2", "whole", "approval"),
        step("ship"),
        step("end"),
    ]
}
ON, OFF = {"approval": True}, {"approval": False}


def opened(gate: str, name: str) -> Any:
    return {"type": "GateOpened", "gate": gate, "name": name, "shown": [{"path": "a.md", "sha256": "1"}]}


def said(gate: str, name: str, approved: bool = True) -> Any:
    return {
        "type": "GateDecided",
        "gate": gate,
        "name": name,
        "approved": approved,
        "decision": "approve" if approved else "revise",
        "feedback": "f",
    }


def began(name: str, kind: str = "StepStarted") -> Any:
    return {"type": kind, "step": name}


def way(*names: str, kind: str = "RouteTaken") -> Any:
    return {"type": kind, "queue": [{"step": name} for name in names]}


# ---- what a decision brings along


@pytest.mark.parametrize(
    ("level", "proof", "weak"),
    [
        ("signed", {}, True),
        ("signed", {"level": "guarded"}, True),
        ("signed", {"level": "signed"}, False),
        ("isolated", {}, False),
        ("guarded", {}, False),
    ],
)
def test_where_decisions_are_signed_an_unsigned_one_is_weak(level: str, proof: Any, weak: bool) -> None:
    run: Any = {"id": "x", "settings": {"gate_protection": {"level": level, "signers": "s"}}}
    assert bool(approvals.weakness(run, proof)) is weak and approvals.protection(run) == {
        "level": level,
        "signers": "s",
    }


def test_a_run_without_protection_has_none() -> None:
    run: Any = {"id": "x", "settings": {}}
    assert approvals.protection(run) == {"level": "", "signers": ""} and approvals.weakness(run, {}) == ""


def test_what_is_signed_is_the_gate_that_was_open_whether_it_still_is_or_was() -> None:
    shown = [{"path": "a.md", "sha256": "1"}]
    signed = {"run": "x", "gate": "gate-1", "name": "plan", "decision": "approve", "feedback": "f", "shown": shown}
    assert approvals.statement("x", {"id": "gate-1", "name": "plan", "shown": shown}, "approve", "f") == signed
    assert approvals.statement("x", opened("gate-1", "plan"), "approve", "f") == signed
    first, second = said("gate-1", "plan"), said("checkpoint-2", "plan")
    assert list(approvals.decided("x", [began("g1"), opened("gate-1", "plan"), first, second])) == [(first, signed)], (
        "of gates that were opened"
    )


# ---- which approvals stand


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ([], []),
        ([said("gate-1", "plan")], ["plan"]),
        ([said("gate-1", "plan"), said("gate-2", "plan", False)], []),
        ([said("gate-1", "plan", False), said("gate-2", "plan")], ["plan"]),
        ([said("gate-1", "plan"), said("gate-2", "whole")], ["plan", "whole"]),
        ([said("gate-1", "plan"), began("build")], ["plan"]),
        ([said("gate-1", "plan"), began("g1")], []),
        ([said("gate-1", "plan"), said("gate-2", "whole"), began("g1")], ["whole"]),
        ([said("gate-1", "plan"), way("build")], ["plan"]),
        ([said("gate-1", "plan"), way("g1")], []),
        ([said("gate-1", "plan"), way("write")], []),
        ([said("gate-1", "plan"), said("gate-2", "whole"), way("build")], ["plan"]),
        ([said("gate-1", "plan"), way("write", "build")], ["plan"]),
        ([said("gate-1", "plan"), way("build", "write")], []),
        ([said("gate-1", "plan"), way()], ["plan"]),
        ([said("gate-1", "plan"), way("elsewhere")], ["plan"]),
        ([said("gate-1", "plan"), way("write", kind="Engaged")], []),
        ([said("gate-1", "plan"), way("ship", kind="Engaged")], ["plan"]),
        ([said("c-1", "by hand"), way("write")], ["by hand"]),
        ([said("c-1", "by hand"), began("write")], ["by hand"]),
        ([{"type": "Forked", "approved": ["plan"]}], ["plan"]),
        ([{"type": "Forked"}, said("gate-1", "whole")], ["whole"]),
    ],
)
def test_an_approval_stands_until_the_gate_is_asked_again_or_the_run_goes_back_through_it(
    events: Any, names: list[str]
) -> None:
    assert approvals.standing(PIPELINE, events) == names


def follows(name: str, queue: str = "ship", hash_: str | None = "h", kind: str = "Engaged") -> Any:
    return {"type": kind, "pipeline": {"name": name, "hash": hash_}, "queue": [{"step": queue}]}


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ([follows("a"), said("gate-1", "plan"), follows("b")], []),
        ([follows("a"), said("gate-1", "plan"), way("of-a"), follows("b")], []),
        ([follows("a"), said("gate-1", "plan"), follows("b"), said("gate-2", "plan")], ["plan"]),
        ([follows("a"), said("gate-1", "plan"), follows("b"), follows("a")], []),
        ([follows("a"), said("gate-1", "plan"), follows("a", hash_="edited")], ["plan"]),
        ([follows("a"), said("gate-1", "plan"), follows("b", kind="DriverChanged")], []),
        ([follows("by-hand", hash_=None, kind="RunStarted"), said("gate-1", "plan"), follows("a")], ["plan"]),
        (
            [
                follows("a", kind="RunStarted"),
                said("gate-1", "plan"),
                follows("a", hash_=None, kind="DriverChanged"),
                follows("b"),
            ],
            [],
        ),
    ],
)
def test_an_approval_is_for_the_pipeline_that_asked_for_it(events: Any, names: list[str]) -> None:
    """In another one a gate of that name shows other things; and a way back in the one that was left would not be
    known there."""
    assert approvals.standing(PIPELINE, events) == names


@pytest.mark.parametrize(
    ("target", "approved", "switches", "closed"),
    [
        ("write", [], ON, None),
        ("g1", [], ON, None),
        ("build", [], ON, ["plan"]),
        ("build", ["plan"], ON, None),
        ("g2", ["plan"], ON, None),
        ("ship", ["plan"], ON, ["whole"]),
        ("ship", ["whole"], ON, ["plan"]),
        ("ship", [], ON, ["plan", "whole"]),
        ("ship", ["plan"], OFF, None),
        ("ship", ["plan"], {}, None),
        ("end", ["plan", "whole"], ON, None),
    ],
)
def test_nobody_is_put_behind_a_gate_that_is_not_approved(
    target: str, approved: list[str], switches: Any, closed: Any
) -> None:
    if closed is None:
        passed = approvals.refuse_unapproved(PIPELINE, switches, target, approved)
        assert passed == [name for name in approved if name in passed], "those on the way, each approved"
        return
    with pytest.raises(Refused) as refusal:
        approvals.refuse_unapproved(PIPELINE, switches, target, approved)
    assert (refusal.value.code, refusal.value.details["gates"]) == ("gate-ahead", closed)
    assert "begin at " + ("g1" if "plan" in closed else "g2") in refusal.value.hint
    what = f"gate {closed[0]!r}," if len(closed) == 1 else "gates 'plan', 'whole',"
    assert f"{target} lies behind {what} and no approval" in refusal.value.message


def test_the_gates_that_were_passed_are_named() -> None:
    assert approvals.refuse_unapproved(PIPELINE, ON, "ship", ["whole", "plan", "odd"]) == ["plan", "whole"]
    assert approvals.refuse_unapproved(PIPELINE, ON, "build", ["whole", "plan"]) == ["plan"]


# ---- what a journal shows


def doubts(*events: Any, switches: Any = ON) -> list[str]:
    """Each as its first word, with the number of its event behind the one that bound the run."""
    bound = {"type": "Engaged", "pipeline": {"name": "p", "hash": "1"}, "switches": switches, "params": {}, "queue": []}
    found = [one.partition(": ") for one in approvals.doubts(PIPELINE, [bound, *events])]
    return [f"{words.partition(' ')[0]}@{int(where.partition(' ')[2]) - 1}" for where, _, words in found]


def test_a_journal_in_which_everything_was_decided_raises_no_doubt() -> None:
    whole = [
        began("write"),
        began("write", "AttemptDispatched"),
        began("g1"),
        opened("gate-1", "plan"),
        said("gate-1", "plan"),
        began("build"),
        began("g2"),
        opened("gate-2", "whole"),
        said("gate-2", "whole"),
        began("ship"),
        began("ship", "AttemptDispatched"),
        {"type": "SettingsChanged", "changes": {"other": 1}},
    ]
    assert doubts(*whole) == []


def test_what_began_without_an_approval_is_named() -> None:
    plan = [opened("gate-1", "plan"), said("gate-1", "plan")]
    assert doubts(began("build")) == ["build@1"] and doubts(began("build", "AttemptDispatched")) == ["build@1"]
    assert doubts(began("write"), began("g1")) == [], "before the gate, and the gate itself"
    assert doubts(*plan, began("ship")) == ["ship@3"], "of two gates one is missing"
    assert doubts(began("ship")) == ["ship@1", "ship@1"]
    assert doubts(*plan, began("ship"), switches=OFF) == [], "the other one is switched off"
    assert doubts(opened("gate-1", "plan"), said("gate-1", "plan", False), began("build")) == ["build@3"]
    assert doubts(*plan, way("write"), began("write"), began("build")) == ["build@5"], "the way back undid it"
    assert doubts(began("elsewhere")) == [], "no step of this pipeline"


def test_a_decision_without_a_gate_that_is_open_is_named() -> None:
    assert doubts(said("gate-1", "plan")) == ["gate@1"]
    assert doubts(opened("gate-1", "plan"), said("gate-2", "plan")) == ["gate@2"]
    assert doubts(opened("gate-1", "plan"), said("gate-1", "plan"), said("gate-1", "plan")) == ["gate@3"], (
        "it is decided once"
    )
    assert doubts(said("checkpoint-1", "by hand")) == [], "a checkpoint is none of the pipeline's gates"


def test_what_began_while_a_gate_was_open_and_settings_that_were_changed_are_named() -> None:
    assert doubts(opened("gate-1", "plan"), began("write")) == ["write@2"]
    assert doubts({"type": "SettingsChanged", "changes": {approvals.PROTECTION: None}}) == ["how@1"]
    assert doubts({"type": "SettingsChanged", "changes": {approvals.BOUND: {}}}) == ["the@1"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "DriverChanged", "driver": "engine", "pipeline": {"name": "p", "hash": "2"}},
        {"type": "DriverChanged", "driver": "manual", "pipeline": {"name": "p", "hash": None}},
        {"type": "Engaged", "pipeline": {"name": "p", "hash": "2"}, "switches": ON, "params": {}, "queue": []},
        {"type": "Engaged", "pipeline": {"name": "p", "hash": "1"}, "switches": OFF, "params": {}, "queue": []},
        {"type": "Engaged", "pipeline": {"name": "p", "hash": "1"}, "switches": ON, "params": {"n": 1}, "queue": []},
    ],
)
def test_a_run_is_judged_by_what_it_was_bound_to_first(event: Any) -> None:
    """Whoever may change the definition or the switches would write the law."""
    missing = doubts(event, began("ship"))
    assert missing[0].endswith("@1") and missing[1:] == ["ship@2", "ship@2"]


def test_the_same_again_is_no_change() -> None:
    same = {"type": "DriverChanged", "driver": "manual", "pipeline": {"name": "p", "hash": "1"}}
    again = {"type": "Engaged", "pipeline": {"name": "p", "hash": "1"}, "switches": ON, "params": {}, "queue": []}
    assert doubts(same, again) == []
