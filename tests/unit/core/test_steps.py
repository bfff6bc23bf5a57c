"""Steps begin and end in the order a run has: each rule of core/decisions/steps.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.by_command import Adopted, Asked

OPEN = [{"step": "plan", "approval": True}, {"step": "build"}, {"step": "ship"}]
STRICT = [{"step": "a", "stage": "ONE"}, {"step": "b", "stage": "ONE", "type": "review"}, {"step": "c", "stage": "TWO"}]
EVIDENCE = {"ONE->TWO": {"required": ["a.md"]}, "TWO->COMPLETE": {"required": []}}
FACT = {"exists": True, "filled": True, "parses": True, "recorded": True}


def led(schedule: Any = (), evidence: Any = None, **more: Any) -> Asked:
    """Along a fixed order, in its first step."""
    asked = Asked(order="strict", schedule=list(schedule or STRICT), evidence=evidence or {}, **more)
    assert asked.do("Advance", facts={}) == ["StepStarted"]
    return asked


def reviewed(asked: Asked, word: str = "approved") -> None:
    asked.do("RecordReview", step="b", review=word)


# ---- without an order


def test_a_step_runs_once_at_a_time_and_per_item() -> None:
    asked = Asked()
    assert asked.do("StartStep", step="plan") == ["StepStarted"] and asked.last[0]["iteration"] == 1
    assert asked.refused("StartStep", step="plan") == "step-running"
    assert asked.do("StartStep", step="plan", item="1") == ["StepStarted"]
    assert asked.refused("StartStep", step="plan", item="1") == "step-running"
    assert asked.do("StartStep", step="build") == ["StepStarted"], "others beside it"
    assert (
        asked.refused("EndStep", step="plan", item="2", status="success")
        == asked.refused("EndStep", step="ship", status="success")
        == "step-not-running"
    )
    assert asked.do("EndStep", step="plan", item="1", status="success", verdict="DONE", summary="s") == ["StepEnded"]
    assert (asked.last[0]["item"], asked.last[0]["verdict"], asked.last[0]["summary"]) == ("1", "DONE", "s")
    assert asked.refused("EndStep", step="plan", item="1", status="success") == "step-not-running"
    assert asked.do("EndStep", step="plan", status="success") == ["StepEnded"]
    asked.do("StartStep", step="plan")
    assert asked.last[0]["iteration"] == 3
    asked.do("EndStep", step="plan", status="failed")
    asked.do("StartStep", step="plan", iteration=9)
    assert asked.last[0]["iteration"] == 9, "whoever leads it counts as they like"


@pytest.mark.parametrize(
    "rest",
    [
        {"do": "Pause", "reason": "x"},
        {"do": "Stop"},
        {"do": "Cancel"},
        {"do": "Fail", "error": "x"},
        {"do": "Finish"},
        {"do": "Block", "reason": "x"},
        {"do": "OpenGate", "name": "g", "prompt": "?"},
        {"do": "Park", "until": "", "reason": ""},
    ],
    ids=lambda one: one["do"],
)
def test_nothing_begins_in_a_run_that_rests(rest: dict[str, str]) -> None:
    asked = Asked()
    asked.do(**rest)
    assert asked.refused("StartStep", step="plan") == "not-running"
    led = Asked(order="strict", schedule=STRICT)
    led.do(**rest)
    assert led.refused("Advance", facts={}) == "not-running"


@pytest.mark.parametrize("status", ["created", "running", "restarting", "poc-complete"])
def test_something_begins_in_a_run_that_goes_on(status: str) -> None:
    assert Adopted(status=status).do("StartStep", step="plan") == ["StepStarted"]


def test_without_an_order_nobody_advances() -> None:
    assert Asked().refused("Advance", to="plan", facts={}) == "no-order"
    lost = Adopted(status="running", order="strict", schedule=STRICT, position="elsewhere")
    assert lost.refused("Advance", facts={}) == "no-order", "the order does not have the step it is in"


def test_what_an_engine_drives_is_not_led_by_hand() -> None:
    from tests.unit.core.by_command import Driven

    text = "documents: docs/{slug}\nsteps:\n  - {id: a, agent: {role: researcher, mode: focused, focus: x}}\n"
    run = Driven(text)
    for _ in range(2):  # before its first step, and in it
        for command in (
            {"do": "StartStep", "step": "b"},
            {"do": "SkipStep", "step": "a"},
            {"do": "Advance", "facts": {}},
            {"do": "RestartStage", "stage": "ONE", "reason": "x"},
        ):
            assert run.refused(**command) == "engine-driven", command
        run.asked()
    unbound = Asked(driver="engine")
    assert unbound.do("StartStep", step="b") == ["StepStarted"], "no pipeline is bound to it, and nothing waits"
    recorded = Adopted(status="running", driver="engine", pipeline={"name": "p", "hash": None}, queue=[{"step": "a"}])
    assert recorded.do("StartStep", step="b") == ["StepStarted"], "there is no pipeline that the engine could follow"
    by_hand = Adopted(status="running", driver="manual", pipeline={"name": "p", "hash": "h"}, queue=[{"step": "a"}])
    assert by_hand.do("StartStep", step="b") == ["StepStarted"]


# ---- an order that may be entered anywhere


def test_an_open_order_is_entered_anywhere_but_not_past_an_approval_nobody_gave() -> None:
    asked = Asked(order="open", schedule=OPEN)
    assert asked.refused("StartStep", step="build") == "not-approved"
    assert asked.refused("StartStep", step="something else") == "not-approved", "whatever is not in it lies behind it"
    asked.do("StartStep", step="plan")
    assert asked.refused("EndStep", step="plan", status="success") == "not-approved"
    assert asked.do("EndStep", step="plan", status="failed") == ["StepEnded"], "who failed needs nobody's word"
    asked.do("StartStep", step="plan")
    asked.do("Checkpoint", step="plan", approved=True, who="ada")
    assert asked.run["position"] == "build" and asked.do("StartStep", step="ship") == ["StepStarted"]
    asked.do("EndStep", step="build", status="success")
    asked.do("StartStep", step="build")
    assert asked.do("StartStep", step="something else") == ["StepStarted"], "to enter another one takes nothing away"
    asked.do("EndStep", step="build", status="success")
    assert asked.do("StartStep", step="plan") == ["StepStarted"]
    assert asked.refused("EndStep", step="plan", status="success") == "not-approved", (
        "entered again, it is approved again"
    )
    free = Asked(order="any", schedule=OPEN)
    free.do("StartStep", step="plan")
    assert free.do("EndStep", step="plan", status="success") == ["StepEnded"], "only an order asks for approvals"


def test_the_latest_word_on_a_step_counts() -> None:
    asked = Asked(
        order="open",
        schedule=[{"step": "plan", "approval": True}, {"step": "build", "approval": True}, {"step": "ship"}],
    )
    asked.do("StartStep", step="plan")
    asked.do("Checkpoint", step="plan", approved=False, who="ada")
    assert asked.refused("EndStep", step="plan", status="success") == "not-approved"
    asked.do("Checkpoint", step="plan", approved=True, who="ada")
    assert asked.run["position"] == "build"
    asked.do("Checkpoint", step="build", approved=True, who="ada")
    assert asked.run["position"] == "ship", "an approval is enough to leave it"
    gated = Asked(order="open", schedule=OPEN)
    gated.do("OpenGate", name="plan", prompt="?")
    gated.do("DecideGate", decision="approve", who="ada")
    assert gated.do("StartStep", step="build") == ["StepStarted"], "a gate of the step's name does, too"


def test_an_approval_of_the_moment_in_which_it_was_entered_counts() -> None:
    asked, at = Asked(order="open", schedule=OPEN), "2026-11-15T12:00:00.000Z"
    asked.do("StartStep", step="plan", at=at)
    asked.do("Checkpoint", step="plan", approved=True, who="ada", at=at)
    assert asked.do("StartStep", step="ship", at=at) == ["StepStarted"]


def test_the_step_itself_waits_only_for_those_before_it() -> None:
    asked = Asked(order="open", schedule=[{"step": "plan"}, {"step": "build", "approval": True}])
    assert asked.do("StartStep", step="build") == ["StepStarted"], "its own approval is asked for at its end"
    aside = Asked(order="open", schedule=[{"step": "plan"}])
    aside.do("StartStep", step="not in it")
    assert aside.do("EndStep", step="not in it", status="success") == ["StepEnded"]


# ---- one way forward


def test_a_fixed_order_is_followed_step_by_step() -> None:
    asked = led()
    assert asked.refused("StartStep", step="c") == "strict-order"
    assert asked.do("Advance", to="a", facts={}) == [], "already there"
    assert asked.refused("Advance", to="c", facts={}) == "step-skipped"
    assert asked.refused("Advance", to="COMPLETE", facts={}) == "step-skipped"
    assert asked.do("Advance", to="b", facts={}) == ["StepEnded", "StepStarted"]
    assert (asked.run["position"], asked.run["steps"]["a"]["status"], asked.run["steps"]["b"]["iteration"]) == (
        "b",
        "completed",
        1,
    )
    assert asked.refused("Advance", facts={}) == "not-reviewed"
    reviewed(asked)
    assert asked.do("Advance", facts={}) == ["StepEnded", "StepStarted"] and asked.run["position"] == "c"
    assert (
        asked.do("Advance", to="COMPLETE", facts={}) == ["StepEnded", "Finished"] and asked.run["status"] == "completed"
    )
    assert asked.do("Advance", to="COMPLETE", facts={}) == [], "it is there"
    assert asked.refused("Advance", facts={}) == "not-running"


def test_a_step_that_ended_already_is_left_all_the_same() -> None:
    asked = led([{"step": "a"}, {"step": "b"}])
    asked.do("EndStep", step="a", status="success")
    assert asked.do("Advance", facts={}) == ["StepStarted"] and asked.run["position"] == "b"


def test_a_step_that_needs_an_approval_is_not_left_without() -> None:
    asked = led([{"step": "a", "approval": True}, {"step": "b"}])
    assert asked.refused("Advance", facts={}) == "not-approved"
    assert asked.do("Checkpoint", step="a", approved=True, who="ada") == ["GateDecided", "StepEnded", "StepStarted"]
    assert asked.do("Advance", to="b", facts={}) == []


def test_the_number_of_a_stay_is_one_more_than_before() -> None:
    asked = led([{"step": "a"}, {"step": "b"}])
    asked.run["steps"]["b"]["iteration"] = 4
    asked.do("Advance", facts={})
    assert asked.last[-1]["iteration"] == 5
    fresh = Adopted(status="running", order="strict", schedule=[{"step": "a"}], position=None, steps={})
    fresh.do("Advance", facts={})
    assert fresh.last[-1]["iteration"] == 1


# ---- evidence


def at_the_gate(**more: Any) -> Asked:
    asked = led(evidence=EVIDENCE, **more)
    asked.do("Advance", facts={})
    reviewed(asked)
    return asked


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"a.md": None},
        {"a.md": True},
        {"other.md": FACT},
        *({"a.md": {**FACT, part: said}} for part in FACT for said in (False, None, 1, "yes")),
        {"a.md": {part: True for part in ("exists", "filled", "parses")}},
    ],
    ids=str,
)
def test_what_is_not_all_there_blocks_the_run(facts: Any) -> None:
    asked = at_the_gate()
    assert asked.do("Advance", facts=facts) == ["Blocked"]
    assert (asked.run["position"], asked.run["status"], asked.run["blocked"]) == (
        "b",
        "blocked",
        {"reason": "ONE->TWO", "stage": "ONE", "missing": ["a.md"]},
    )
    assert asked.do("Advance", facts=facts) == ["Blocked"]
    assert (
        asked.do("Advance", facts={"a.md": FACT}) == ["Unblocked", "StepEnded", "StepStarted"]
        and asked.run["position"] == "c"
    )


def test_evidence_is_asked_for_between_two_stages_only() -> None:
    assert at_the_gate().do("Advance", facts={"a.md": FACT}) == ["StepEnded", "StepStarted"]
    asked = led(evidence=EVIDENCE)
    assert asked.do("Advance", facts={}) == ["StepEnded", "StepStarted"], "within a stage"
    unproven = at_the_gate()
    incomplete: Any = {"TWO->COMPLETE": {"required": []}}
    unproven.run["evidence"] = incomplete
    assert unproven.refused("Advance", facts={"a.md": FACT}) == "unknown-gate", (
        "other gates ask, and nobody knows what this one asks for"
    )
    unproven.run["evidence"] = {}
    assert unproven.do("Advance", facts={}) == ["StepEnded", "StepStarted"]
    stageless = Asked(order="strict", schedule=[{"step": "a"}, {"step": "b"}], evidence=EVIDENCE)
    stageless.do("Advance", facts={})
    assert stageless.do("Advance", facts={}) == ["StepEnded", "StepStarted"]


def test_the_last_stage_has_a_gate_too() -> None:
    asked = led([{"step": "c", "stage": "TWO"}], {"TWO->COMPLETE": {"required": ["a.md"]}})
    assert asked.do("Advance", facts={}) == ["Blocked"]
    assert asked.do("Advance", facts={"a.md": FACT}) == ["Unblocked", "StepEnded", "Finished"]


def test_a_review_among_the_evidence_must_be_approved_in_its_last_stay() -> None:
    schedule = [
        {"step": "b", "stage": "ONE", "type": "review"},
        {"step": "x", "stage": "ONE"},
        {"step": "c", "stage": "TWO"},
    ]
    asked = led(schedule, {"ONE->TWO": {"required": ["b.json"]}})
    reviewed(asked)
    asked.do("Advance", facts={})
    told = {"b.json": {**FACT, "step": "b"}}
    asked.run["reviews"]["b"]["approved"] = False
    assert asked.do("Advance", facts=told) == ["Blocked"]
    asked.run["reviews"]["b"]["approved"] = True
    asked.run["reviews"]["b"]["visit"] = 7
    assert asked.do("Advance", facts=told) == ["Blocked"], "of another stay"
    asked.run["reviews"]["b"]["visit"] = 1
    assert asked.do("Advance", facts=told) == ["Unblocked", "StepEnded", "StepStarted"]
    plain = led(schedule, {"ONE->TWO": {"required": ["x.md"]}})
    reviewed(plain)
    plain.do("Advance", facts={})
    assert plain.do("Advance", facts={"x.md": {**FACT, "step": "x"}}) == ["StepEnded", "StepStarted"], (
        "a step that is no review"
    )


def test_a_gate_is_checked_where_the_run_is() -> None:
    asked = at_the_gate()
    assert asked.refused("CheckEvidence", gate="ONE->NINE", facts={}) == "unknown-gate"
    assert asked.refused("CheckEvidence", gate="TWO->COMPLETE", facts={}) == "wrong-stage"
    assert asked.do("CheckEvidence", gate="ONE->TWO", facts={"a.md": FACT}) == [], "nothing to say"
    assert asked.do("CheckEvidence", gate="ONE->TWO", facts={}) == ["Blocked"]
    assert (
        asked.do("CheckEvidence", gate="ONE->TWO", facts={"a.md": FACT}) == ["Unblocked"]
        and asked.run["position"] == "b"
    )
    asked.do("Block", reason="a person's")
    assert asked.refused("CheckEvidence", gate="ONE->TWO", facts={"a.md": FACT}) == "not-running", (
        "what else blocks a run is a person's to end"
    )
    assert asked.refused("Advance", facts={"a.md": FACT}) == "not-running"
    asked.do("Unblock")
    asked.do("Stop")
    assert asked.refused("CheckEvidence", gate="ONE->TWO", facts={"a.md": FACT}) == "not-running"
    nowhere = Adopted(status="running", order="strict", schedule=STRICT, evidence=EVIDENCE, position=None)
    assert nowhere.refused("CheckEvidence", gate="ONE->TWO", facts={}) == "wrong-stage"


# ---- leaving out, beginning again


def test_only_what_has_not_begun_is_left_out() -> None:
    asked = Asked(order="open", schedule=OPEN)
    assert asked.refused("SkipStep", step="elsewhere") == "unknown-step"
    assert asked.refused("SkipStep", step="plan") == "not-approved", "a person's approval is not left out"
    assert asked.do("SkipStep", step="ship", reason="r") == ["StepSkipped"] and asked.last[0]["reason"] == "r"
    assert asked.do("SkipStep", step="ship") == []
    begun = Asked(schedule=[{"step": "a"}])
    begun.do("StartStep", step="a")
    assert begun.refused("SkipStep", step="a") == "step-begun"
    begun.do("EndStep", step="a", status="failed")
    assert begun.do("SkipStep", step="a") == ["StepSkipped"], "what failed may be left out"
    done = Asked(schedule=[{"step": "a"}])
    done.do("StartStep", step="a")
    done.do("EndStep", step="a", status="success")
    assert done.refused("SkipStep", step="a") == "step-begun"


def test_a_stage_begins_again_with_its_first_step() -> None:
    asked = at_the_gate()
    asked.do("Advance", facts={"a.md": FACT})
    assert asked.run["position"] == "c"
    assert asked.refused("RestartStage", stage="NINE", reason="x") == "unknown-stage"
    assert asked.refused("RestartStage", stage=None, reason="x") == "unknown-stage"
    assert (
        asked.do("RestartStage", stage="TWO", reason="x") == ["StageRestarted", "StepStarted"]
        and asked.last[0]["to"] == "c"
    )
    assert asked.do("RestartStage", stage="ONE", reason="x", extra={"who": "ada"}) == ["StageRestarted", "StepStarted"]
    assert (asked.last[0]["to"], asked.last[0]["extra"], asked.last[1]["step"], asked.last[1]["iteration"]) == (
        "a",
        {"fromPhase": "c", "toPhase": "a", "maxRestarts": None, "who": "ada"},
        "a",
        1,
    )
    assert (asked.run["position"], asked.run["status"], asked.run["reviews"], asked.run["steps"]["c"]["status"]) == (
        "a",
        "running",
        {},
        "pending",
    )
    assert asked.refused("RestartStage", stage="TWO", reason="x") == "stage-ahead"
    assert asked.do("RestartStage", stage="ONE", reason="x") == ["StageRestarted", "StepStarted"], "the one it is in"
    unbegun = Asked(order="strict", schedule=STRICT)
    assert unbegun.refused("RestartStage", stage="ONE", reason="x") == "stage-ahead"
    stageless = Asked(order="strict", schedule=[{"step": "a"}])
    stageless.do("Advance", facts={})
    assert stageless.refused("RestartStage", stage=None, reason="x") == "unknown-stage"


@pytest.mark.parametrize("end", [{"do": "Finish"}, {"do": "Cancel"}], ids=lambda one: one["do"])
def test_no_stage_of_a_run_that_ended_begins_again(end: dict[str, str]) -> None:
    asked = led()
    asked.do(**end)
    assert asked.refused("RestartStage", stage="ONE", reason="x") == "run-ended"


def test_a_stage_of_a_failed_run_begins_again_and_the_failure_is_history() -> None:
    asked = led()
    asked.do("Fail", error="x")
    assert asked.do("RestartStage", stage="ONE", reason="y") == ["StageRestarted", "StepStarted"]
    assert (asked.run["status"], asked.run["failure"], asked.run["stopped_at"]) == ("running", None, None)


def test_a_failed_run_with_one_way_forward_is_resumed_where_it_stands() -> None:
    asked = at_the_gate()
    here = asked.run["position"]
    asked.do("Fail", error="x")
    assert asked.do("Resume") == ["Resumed"]
    assert (asked.run["status"], asked.run["failure"], asked.run["position"]) == ("running", None, here)


def test_a_step_inside_a_stage_unblocks_a_run_that_its_gate_has_blocked() -> None:
    asked = led(evidence=EVIDENCE)
    asked.do("CheckEvidence", gate="ONE->TWO", facts={})
    assert asked.run["status"] == "blocked"
    assert asked.do("Advance", facts={})[0] == "Unblocked"
    assert (asked.run["status"], asked.run["blocked"]) == ("running", None)


def test_a_graduated_run_stays_so_and_one_that_rests_may_begin_a_stage_again() -> None:
    assert (
        Adopted(status="graduated", schedule=STRICT, position="a").refused("RestartStage", stage="ONE", reason="x")
        == "run-ended"
    )
    asked = at_the_gate()
    asked.do("Advance", facts={})
    assert asked.run["status"] == "blocked"
    assert (
        asked.do("RestartStage", stage="ONE", reason="x") == ["StageRestarted", "StepStarted"]
        and asked.run["blocked"] is None
    )


@pytest.mark.parametrize(("most", "times"), [(0, 0), (1, 1), (2, 2), (None, 3), (True, 3), ("1", 3)])
def test_a_stage_begins_again_as_often_as_the_policy_says(most: Any, times: int) -> None:
    asked = led(settings={"reviewPolicy": {"maxStageRestarts": most}})
    for _ in range(times):
        assert asked.do("RestartStage", stage="ONE", reason="x") == ["StageRestarted", "StepStarted"]
    if type(most) is int:
        assert asked.refused("RestartStage", stage="ONE", reason="x") == "restarts-exhausted"
        asked.run["restarts"] = [{**one, "stage": "TWO"} for one in asked.run["restarts"]]
        if times:
            assert asked.do("RestartStage", stage="ONE", reason="x") == ["StageRestarted", "StepStarted"], (
                "those of another stage are not counted"
            )
    odd = led(settings={"reviewPolicy": "strict"})
    assert odd.do("RestartStage", stage="ONE", reason="x") == ["StageRestarted", "StepStarted"]
