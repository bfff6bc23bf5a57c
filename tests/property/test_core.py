"""Whatever is asked of a run, in whatever order: the core accepts whole or refuses whole."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.decide import _FAMILY_OF, decide
from tenuto.core.fold import _APPLY, apply, fold, running_visits
from tenuto.core.parts import new_repo, new_run
from tenuto.core.records import commands, events
from tenuto.encoding import dumps, loads
from tenuto.errors import TenutoError

STEPS = st.sampled_from(["plan", "build", "test"])
FILES = ["a.md", "b.json"]
FACTS = st.dictionaries(
    st.sampled_from(FILES),
    st.fixed_dictionaries({part: st.booleans() for part in ("exists", "filled", "parses", "recorded")}),
)
ATTEMPTS = st.sampled_from(["a1", "a2", "a3", "a4", "a5"])
WORD = st.sampled_from(["", "x", "because"])


def asked(do: str, **fields: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"do": st.just(do), **fields})


ASKED = st.one_of(
    asked("StartStep", step=STEPS),
    asked("EndStep", step=STEPS, status=st.sampled_from(["success", "failed"])),
    asked("Advance", to=st.none() | STEPS, facts=FACTS),
    asked("CheckEvidence", gate=st.sampled_from(["ONE->TWO", "x"]), facts=FACTS),
    asked("RestartStage", stage=st.sampled_from(["ONE", "TWO", "x"]), reason=WORD),
    asked(
        "DispatchAttempt",
        attempt=ATTEMPTS,
        role=st.sampled_from(["worker", "State-Manager"]),
        reserved=st.fixed_dictionaries({"usd": st.integers(0, 3)}),
    ),
    asked("StartAttempt", attempt=ATTEMPTS),
    asked("LoseAttempt", attempt=ATTEMPTS, reason=WORD),
    asked(
        "FinishAttempt",
        attempt=ATTEMPTS,
        status=st.sampled_from(["completed", "failed"]),
        usage=st.fixed_dictionaries({"usd": st.integers(0, 3)}),
    ),
    asked("OpenGate", name=WORD, prompt=WORD, completes=st.booleans()),
    asked("DecideGate", decision=st.sampled_from(["approve", "reject", "revise", "maybe"]), who=WORD),
    asked("Checkpoint", step=STEPS, approved=st.booleans(), who=WORD),
    asked("Pause", reason=WORD),
    asked("Resume", decision=st.sampled_from(["retry", "reject", "x"])),
    asked("Stop"),
    asked("Park", until=st.just("2026-11-16T00:00:00.000Z"), reason=WORD),
    asked("Unblock"),
    asked("Fail", error=WORD),
    asked("Finish", outcome=st.sampled_from(["completed", "poc-complete", "graduated"])),
    asked("Cancel"),
    asked("SetFlags", flags=st.dictionaries(WORD, st.booleans())),
    asked("SaveContext", context=st.just({"lastAction": "x"})),
    asked("RestoreContext"),
    asked("ChangeSettings", changes=st.just({"a": {"b": 1}})),
    asked("BindSession", session=WORD),
    asked("PlanItems", items=st.just({"1": {"title": "one"}}), waves=st.just([["1"]])),
    asked("ChangeItem", item=st.sampled_from(["1", "2"]), status=st.sampled_from(["pending", "completed"])),
    asked("ChangeBudget", limits=st.fixed_dictionaries({"usd": st.integers(0, 6)})),
    asked("Note", text=WORD),
    asked(
        "WriteMemory",
        kind=st.just("lessons"),
        entries=st.just([{"who": "x", "step": "plan", "text": "t", "invalidated": None}]),
    ),
    asked("RecordCommit", step=WORD, hash=WORD, message=WORD),
    asked("CleanMemory"),
    asked("PruneMemory", keep=st.just(["plan"])),
    asked("InvalidateMemory", steps=st.just(["plan"]), reason=WORD),
    asked("RecordAnswers", answers=st.just({"problem": "p"})),
    asked("StoreArtifact", name=WORD, path=st.just("p"), sha256=WORD, size=st.just(1)),
    asked("ShowIn", dialect=WORD, place=st.just({})),
    asked("ChangeDriver", driver=st.sampled_from(["manual", "engine"])),
    asked("AbsorbEdit", dialect=WORD, path=WORD, sha256=WORD),
)
ORDERS: dict[str, Any] = {
    "any": {},
    "open": {"order": "open", "schedule": [{"step": "plan", "approval": True}, {"step": "build"}, {"step": "test"}]},
    "strict": {
        "order": "strict",
        "schedule": [
            {"step": "plan", "stage": "ONE", "approval": True},
            {"step": "build", "stage": "TWO"},
            {"step": "test", "stage": "TWO"},
        ],
        "evidence": {
            "ONE->TWO": {"required": FILES, "step": "plan"},
            "TWO->COMPLETE": {"required": ["a.md"], "step": "test"},
        },
    },
}
ENDED = ("completed", "failed", "cancelled", "graduated")


def drive(order: str, script: list[Any], cap: int = 2) -> tuple[list[Any], list[Any]]:
    """Play the script; returns (journal, the run after each event)."""
    repo, journal, states = new_repo(), [], []
    run: Any = None
    bounded: Any = {"cap": cap}
    start: dict[str, Any] = {
        "do": "StartRun",
        "run": "r",
        "name": "r",
        "pipeline": {"name": "p", "hash": None},
        "mode": "poc",
        **ORDERS[order],
    }
    for number, command in enumerate([start, *script]):
        stamped: Any = {**command, "at": f"2026-11-15T10:{number // 60:02d}:{number % 60:02d}.000Z", "by": "test"}
        before = dumps(run)
        try:
            made: list[Any] = decide(bounded, repo, run, stamped)
        except TenutoError as refusal:
            assert dumps(run) == before, "a refusal changed the run"
            assert refusal.code and refusal.message
            continue
        assert dumps(run) == before, "decide changed the run; only fold may"
        if run is None:
            run = new_run()
        for event in made:
            apply(run, loads(dumps(event)))
            journal.append(event)
            states.append(deepcopy(run))
    return journal, states


SCRIPTS = st.lists(ASKED, max_size=40)


@settings(max_examples=400)
@given(st.sampled_from(list(ORDERS)), SCRIPTS)
def test_folding_any_prefix_of_the_journal_gives_the_state_of_that_moment(order: str, script: list[Any]) -> None:
    journal, states = drive(order, script)
    for length, state in enumerate(states, 1):
        if length % 7 == 0 or length == len(states):
            assert fold(loads(dumps(journal[:length]))) == state
            assert state["version"] == length


@settings(max_examples=400)
@given(st.sampled_from(list(ORDERS)), SCRIPTS)
def test_caps_budgets_gates_and_ends_hold_whatever_is_asked(order: str, script: list[Any]) -> None:
    """At most `cap` in flight; nothing admitted past a limit; an end is final; a gate stops everything behind it."""
    journal, states = drive(order, script)
    before = new_run()
    for event, state in zip(journal, states, strict=True):
        open_attempts = [a for a in state["attempts"].values() if a["status"] in ("dispatched", "running")]
        assert len(open_attempts) <= 2
        if event["type"] == "AttemptDispatched":
            for unit, limit in state["budget"]["limits"].items():
                assert state["budget"]["spent"].get(unit, 0) + state["budget"]["reserved"].get(unit, 0) <= limit
        if before["status"] in ENDED and (before["mode"], state["status"]) != ("poc", "poc-complete"):
            assert state["status"] == before["status"], event["type"]
        if before["gate"] is not None:
            assert event["type"] not in ("StepStarted", "AttemptDispatched", "Finished", "Paused", "GateOpened"), event[
                "type"
            ]
        assert (state["gate"] is not None) == (state["status"] == "waiting_gate")
        before = state


@settings(max_examples=400)
@given(SCRIPTS)
def test_a_strict_run_never_skips_a_step_an_approval_or_its_evidence(script: list[Any]) -> None:
    journal, states = drive("strict", script)
    order = [entry["step"] for entry in ORDERS["strict"]["schedule"]]
    passed = 0
    for event, state in zip(journal, states, strict=True):
        if event["type"] == "StepStarted":
            index = order.index(event["step"])
            assert index <= passed, "a step was skipped"
            passed = max(passed, index + 1)
            if index == 1:
                assert any(d["approved"] and d["step"] == "plan" for d in state["decisions"])
        assert len(running_visits(state)) <= 1


@settings(max_examples=100)
@given(st.sampled_from(list(ORDERS)), SCRIPTS)
def test_the_same_commands_give_the_same_journal_byte_for_byte(order: str, script: list[Any]) -> None:
    assert dumps(drive(order, script)[0]) == dumps(drive(order, script)[0])


def declared(union: Any) -> dict[str, Any]:
    tag = {events.Event: "type", commands.Command: "do"}[union]
    return {get_args(get_type_hints(shape)[tag])[0]: shape for shape in get_args(union)}


@settings(max_examples=300)
@given(st.sampled_from(list(ORDERS)), SCRIPTS)
def test_every_event_has_exactly_the_fields_it_declares(order: str, script: list[Any]) -> None:
    shapes = declared(events.Event)
    for event in drive(order, script)[0]:
        fields = get_type_hints(shapes[event["type"]], include_extras=True)
        needed = {name for name, hint in fields.items() if get_origin(hint) is not NotRequired}
        assert needed <= {*event} <= {*fields}, event


def test_fold_knows_every_event_and_decide_every_command() -> None:
    assert set(_APPLY) == set(declared(events.Event))
    assert set(_FAMILY_OF) == set(declared(commands.Command))


@pytest.mark.parametrize("name", sorted(set(_FAMILY_OF) - {"RecordReview", "RecordCoverage"}))
def test_every_family_decides_the_commands_it_names(name: str) -> None:
    module = __import__(f"tenuto.core.decisions.{_FAMILY_OF[name]}", fromlist=[name])
    assert name in module.DECIDERS
