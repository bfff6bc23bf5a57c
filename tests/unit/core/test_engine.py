"""A pipeline is bound to a run, its visits begin and end, its plans become items: each rule of
core/decisions/engine.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.present import present
from tests.unit.core import test_pipeline_rules as rules
from tests.unit.core.by_command import Asked, Driven, pipeline_of
from tests.unit.core.test_pipeline_rules import PLAN, SEAT, R, item, one, waves

REF = {"name": "tiny", "hash": "h"}
GATED = (
    one("a"),
    "id: g, gate: {name: plan, prompt: 'Go on?', revise: a}",
    one("b"),
    "id: h, gate: {name: whole, when: approval, prompt: '?', revise: b}",
    one("c"),
)


def steps(*lines: str, more: str = "", cap: int = 4) -> str:
    return rules.steps(*lines, cap=cap, more=more)


class ByHand(Asked):
    """A run that somebody led by hand so far; the pipeline is there to be bound."""

    def __init__(self, text: str, **begun: Any) -> None:
        super().__init__(pipeline_of(text), **begun)

    def engage(self, **more: Any) -> list[str]:
        return self.do("Engage", pipeline=REF, **more)

    def made(self, *names: str, status: str = "success") -> None:
        for name in names:
            self.do("StartStep", step=name)
            self.do("EndStep", step=name, status=status)


def legs(asked: Asked) -> list[str]:
    return [leg["step"] for leg in asked.run["queue"]]


# ---- binding a pipeline


def test_an_engine_takes_a_run_over_at_its_first_open_step() -> None:
    text = steps(one("a"), one("b"), one("c"))
    asked = ByHand(text)
    assert asked.engage() == ["Engaged"]
    assert (asked.run["driver"], asked.run["pipeline"], legs(asked)) == ("engine", REF, ["a"])
    later = ByHand(text)
    later.made("a")
    later.engage(driver="guided")
    assert (later.run["driver"], legs(later)) == ("guided", ["b"])
    failed = ByHand(text)
    failed.made("a")
    failed.made("b", status="failed")
    failed.engage()
    assert legs(failed) == ["b"]
    worse = ByHand(text)
    worse.made("a", "b")
    worse.made("b", status="failed")
    worse.engage()
    assert legs(worse) == ["b"], "the last time counts"
    over = ByHand(text)
    over.made("a", "b", "c")
    over.engage()
    assert legs(over) == ["c"], "where everything is done, the last one is done again"
    again = ByHand(text)
    again.made("a", "b")
    again.made("a")
    again.engage()
    assert legs(again) == ["b"], "what was made of the earlier work is to be made again"


def test_work_of_the_same_moment_counts() -> None:
    text, at = steps(*GATED), "2026-11-15T12:00:00.000Z"
    asked = ByHand(text)
    asked.made("a")
    asked.do("OpenGate", name="plan", prompt="?", at=at)
    asked.do("DecideGate", decision="approve", who="ada", at=at)
    asked.do("StartStep", step="b", at=at)
    asked.do("EndStep", step="b", status="success", at=at)
    asked.run["visits"][0]["ended_at"] = at
    asked.engage()
    assert legs(asked) == ["h"]
    found = ByHand(steps(one("a"), one("b")))
    found.run["steps"]["a"] = {"status": "completed", "iteration": 1, "verdict": None}
    found.engage()
    assert legs(found) == ["b"], "as it was found, and nobody knows since when"


def test_a_gate_of_another_pipeline_was_another_gate() -> None:
    for name, first in (("tiny", "b"), ("another", "g")):
        asked = ByHand(steps(*GATED))
        asked.made("a")
        asked.do("OpenGate", name="plan", prompt="?")
        asked.do("DecideGate", decision="approve", who="ada")
        asked.run["pipeline"] = {"name": name, "hash": "h"}
        asked.engage()
        assert legs(asked) == [first], name


def test_steps_that_are_aside_are_not_on_the_way() -> None:
    text = steps(
        one("a"),
        one("fix", "aside: true"),
        one("b", "on: {NEEDS_REVISION: {route: [fix, b], at_most: 1, then: halt}}"),
        one("c"),
    )
    asked = ByHand(text)
    asked.made("a")
    asked.engage()
    assert legs(asked) == ["b"]
    again = ByHand(text)
    again.made("a", "b", "fix")
    again.engage()
    assert legs(again) == ["b"], "what stands before it was worked on since"
    later = ByHand(text)
    later.made("a", "fix", "b")
    later.engage()
    assert legs(later) == ["c"]


def test_where_to_begin_may_be_said() -> None:
    text = steps(*GATED)
    asked = ByHand(text)
    assert asked.refused("Engage", pipeline=REF, start_at="nowhere") == "no-such-step"
    assert asked.refused("Engage", pipeline=REF, start_at="b") == "gate-ahead"
    assert (
        asked.refused("Engage", pipeline=REF, start_at="c", approved=["plan"], switches={"approval": True})
        == "gate-ahead"
    )
    assert asked.engage(start_at="b", approved=["plan"]) == ["Engaged"] and legs(asked) == ["b"]
    assert asked.engage(start_at="a") == ["Engaged"] and legs(asked) == ["a"], "what waits is left for it"


def test_what_waits_goes_on_under_the_same_pipeline_only() -> None:
    text = steps(one("a"), one("b"))
    asked = ByHand(text)
    asked.engage()
    asked.run["queue"] = [{"step": "b", "mode": "", "only": [], "items": ""}]
    asked.engage()
    assert legs(asked) == ["b"]
    asked.run["pipeline"] = {"name": "another", "hash": "g"}
    asked.engage()
    assert legs(asked) == ["a"]


def test_a_gate_counts_as_done_when_it_was_approved_since() -> None:
    text = steps(*GATED)

    def decided(decision: str, *after: str, name: str = "plan") -> list[str]:
        asked = ByHand(text)
        asked.made("a")
        asked.do("OpenGate", name=name, prompt="?")
        asked.do("DecideGate", decision=decision, who="ada")
        asked.made(*after)
        asked.engage()
        return legs(asked)

    assert decided("approve") == ["b"] and decided("revise") == ["g"] and decided("approve", "a") == ["g"], (
        "not for what came later"
    )
    assert decided("approve", name="other") == ["g"]
    bare = ByHand(text)
    bare.made("a")
    bare.engage()
    assert legs(bare) == ["g"]


def test_a_gate_that_another_pipeline_asked_for_is_asked_again() -> None:
    """It has the same name and shows other things. What is not asked for here is not waited for."""
    asked = ByHand(steps(*GATED))
    asked.made("a")
    asked.do("OpenGate", name="plan", prompt="?")
    asked.do("DecideGate", decision="approve", who="ada")
    asked.made("b")
    asked.run["pipeline"] = {"name": "another", "hash": "h"}
    asked.engage()
    assert legs(asked) == ["g"]


def test_a_gate_that_is_on_was_never_skipped() -> None:
    text = steps(*GATED)
    for step, on, first in (("g", False, "g"), ("h", True, "h"), ("h", False, "c")):
        asked = ByHand(text, schedule=[{"step": name} for name in "agbhc"])
        asked.made("a")
        if step == "h":
            asked.do("OpenGate", name="plan", prompt="?")
            asked.do("DecideGate", decision="approve", who="ada")
            asked.made("b")
        asked.do("SkipStep", step=step)
        asked.engage(switches={"approval": on})
        assert legs(asked) == [first], (step, on)
    agent = ByHand(steps(one("a"), one("b")), schedule=[{"step": "a"}, {"step": "b"}])
    agent.do("SkipStep", step="a")
    agent.engage()
    assert legs(agent) == ["b"], "any other step may be left out"


def test_a_step_that_was_done_item_by_item_is_done() -> None:
    asked = ByHand(steps(one("a"), one("b")))
    asked.do("PlanItems", items={"1": {"title": "one"}, "2": {"title": "two"}})
    asked.made("a:1")
    asked.engage()
    assert legs(asked) == ["a"]
    both = ByHand(steps(one("a"), one("b")))
    both.do("PlanItems", items={"1": {"title": "one"}, "2": {"title": "two"}})
    both.made("a:1", "a:2")
    both.engage()
    assert legs(both) == ["b"]


def test_switches_that_switch_nothing_are_refused() -> None:
    text = steps(one("a"), "id: g, gate: {when: approval, prompt: '?', revise: a}", more="switches: {fast: true}\n")
    asked = ByHand(text)
    assert asked.refused("Engage", pipeline=REF, switches={"odd": True}) == "no-such-switch"
    assert asked.engage(switches={"approval": True}) == ["Engaged"]
    assert asked.run["switches"] == {"fast": True, "approval": True}, "the pipeline's own, with what was asked for"
    asked.run["switches"]["odd"] = True
    assert asked.engage(switches={"odd": False}) == ["Engaged"], "one that the run has already is not asked for now"
    open_way = ByHand(steps(one("a"), more="switches: {approval: false}\n"))
    assert open_way.refused("Engage", pipeline=REF, switches={"approval": True}) == "no-gates"
    assert open_way.engage(switches={"approval": False}) == ["Engaged"]


def test_settings_and_limits_of_the_run_come_first() -> None:
    text = steps(one("a", "budget: {attempts: 3}"), one("b"), more="budget: {attempts: 9, tokens: 100}\n")
    asked = ByHand(text, settings={"mine": 1})
    assert asked.engage(settings={"mine": 2, "new": 3}) == ["Engaged", "SettingsChanged", "BudgetChanged"]
    assert asked.run["settings"] == {"mine": 1, "new": 3}
    assert asked.run["budget"]["limits"] == {"attempts": 9, "tokens": 100} and asked.run["budget"]["steps"]["a"][
        "limits"
    ] == {"attempts": 3}
    assert asked.engage(settings={"mine": 2}) == ["Engaged"], "nothing is new"
    other = ByHand(text)
    other.do("ChangeBudget", limits={"tokens": 5}, steps={"a": {"attempts": 1}})
    other.engage()
    assert other.run["budget"]["limits"] == {"attempts": 9, "tokens": 5} and other.run["budget"]["steps"]["a"][
        "limits"
    ] == {"attempts": 1}
    steps_only = ByHand(text)
    steps_only.do("ChangeBudget", limits={"tokens": 5, "attempts": 5})
    steps_only.engage()
    assert steps_only.run["budget"]["limits"] == {"attempts": 5, "tokens": 5} and steps_only.run["budget"]["steps"][
        "a"
    ]["limits"] == {"attempts": 3}


def test_nobody_takes_a_run_over_in_the_middle_of_a_step() -> None:
    text = steps(one("a"))
    asked = ByHand(text)
    asked.do("StartStep", step="a")
    assert asked.refused("Engage", pipeline=REF) == "visit-open"
    flying = ByHand(text)
    flying.dispatch("x")
    assert flying.refused("Engage", pipeline=REF) == "visit-open"
    driven = Driven(text)
    driven.asked()
    assert driven.refused("Engage", pipeline=REF) == "visit-open"
    led = ByHand(text, order="strict", schedule=[{"step": "a"}])
    led.do("Advance", facts={})
    assert led.engage() == ["Engaged"], "a run with an order is always in a step: the engine begins it anew"


@pytest.mark.parametrize(
    "end",
    [{"do": "Finish"}, {"do": "Fail", "error": "x"}, {"do": "Cancel"}, {"do": "OpenGate", "name": "g", "prompt": "?"}],
    ids=lambda one: one["do"],
)
def test_a_run_that_ended_or_waits_at_a_gate_is_not_taken_over(end: dict[str, str]) -> None:
    asked = ByHand(steps(one("a")))
    asked.do(**end)
    assert asked.refused("Engage", pipeline=REF) == "run-ended"


def test_graduation_goes_on_from_a_finished_proof_of_concept() -> None:
    text = steps(one("a"), more="starts_from: poc-complete\nmode: poc\nfinish: graduated\n")
    assert ByHand(text, mode="poc").refused("Engage", pipeline=REF) == "not-poc-complete"
    for rest in (None, {"do": "Pause", "reason": "x"}, {"do": "Stop"}):
        asked = ByHand(text, mode="poc")
        asked.do("Finish", outcome="poc-complete")
        if rest:
            asked.do(**rest)
        assert asked.engage() == ["Engaged"]
    paused = ByHand(text, mode="poc")
    paused.do("Pause", reason="x")
    assert paused.refused("Engage", pipeline=REF) == "not-poc-complete"


def test_without_a_pipeline_there_is_nothing_to_drive() -> None:
    for command in (
        {"do": "Engage", "pipeline": REF},
        {"do": "BeginVisit"},
        {"do": "RecordAction", "action": "x"},
        {"do": "PlanVisit", "items": []},
        {"do": "Conclude"},
    ):
        assert Asked().refused(**command) == "no-pipeline", command


# ---- visits


def test_only_what_is_asked_for_is_done() -> None:
    run = Driven(steps(one("a"), waves("on: {ERROR: halt}")), PLAN)
    assert (
        run.refused("Conclude")
        == run.refused("PlanVisit", items=PLAN)
        == run.refused("RecordAction", action="prune-memory")
        == "not-asked"
    )
    run.do("BeginVisit")
    assert run.refused("BeginVisit") == "not-asked"
    run.start()
    assert (
        run.refused("Conclude")
        == run.refused("BeginVisit")
        == run.refused("RecordAction", action="prune-memory")
        == "not-asked"
    ), "nothing is asked for now"


def test_what_waits_behind_a_step_that_is_switched_off_waits() -> None:
    back = "on: {NEEDS_REVISION: {route: [h, a, b], at_most: 1, then: halt}}"
    run = Driven(
        steps(one("a"), "id: h, gate: {when: approval, prompt: '?', revise: a}", one("b", back)), approval=False
    )
    run.all_say()
    run.all_say("NEEDS_REVISION")
    run.do("Conclude")
    assert legs(run) == ["h", "a", "b"]
    assert run.do("BeginVisit")[0] == "StepSkipped" and legs(run) == ["a", "b"]


def test_a_step_that_is_switched_off_is_skipped() -> None:
    text = steps(*GATED)
    off, on = Driven(text, approval=False), Driven(text, approval=True)
    for run, gate in ((off, ""), (on, "h")):
        run.all_say()
        run.asked()
        run.do("DecideGate", decision="approve", who="ada")
        run.all_say()
        run.asked()
        assert (run.run["gate"]["name"] if run.run["gate"] else "") == gate
    assert off.run["steps"]["h"]["status"] == "skipped" and off.run["position"] == "c"


def test_visits_of_a_step_are_numbered() -> None:
    run = Driven(steps(one("a"), one("b", "on: {NEEDS_REVISION: {route: [a, b], at_most: 2, then: halt}}")))
    for _ in range(2):
        run.all_say()
        run.all_say("NEEDS_REVISION")
    run.all_say()
    assert [(visit["step"], visit["iteration"]) for visit in run.run["visits"]] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
        ("a", 3),
    ]


@pytest.mark.parametrize(("word", "status"), [("DONE", "success"), ("NEEDS_REVISION", "success"), ("ERROR", "failed")])
def test_a_visit_that_was_answered_is_a_success_whatever_the_answer(word: str, status: str) -> None:
    run = Driven(steps(one("a", "on: {NEEDS_REVISION: {go_on: b}, ERROR: {go_on: b}}"), one("b")))
    run.all_say(word)
    run.asked()
    assert (run.run["visits"][0]["status"], run.run["steps"]["a"]["verdict"]) == (status, word)


def test_what_comes_after_a_done_comes_before_its_end() -> None:
    text = steps(one("a", "after: [prune-memory]"), one("b"), more="memory: run\nshown_as: feature_docs\n").replace(
        "docs/{slug}", "docs/feature/{slug}"
    )
    run = Driven(text)
    run.start()
    run.say(SEAT)
    assert run.refused("Conclude") == "not-asked"
    assert run.refused("RecordAction", action="after:extract-lessons") == "not-asked"
    run.do("RecordAction", action="after:prune-memory", detail={"n": 1})
    assert run.last[0]["detail"] == {"n": 1} and run.refused("RecordAction", action="after:prune-memory") == "not-asked"
    assert run.do("Conclude") == ["StepEnded", "RouteTaken"]


def test_an_approval_of_what_changed_since_is_void() -> None:
    run = Driven(steps(*GATED))
    run.all_say()
    run.asked()
    run.do("DecideGate", decision="approve", who="ada")
    assert run.do("Conclude", changed=["a.md"]) == ["StepEnded", "RouteTaken"]
    assert run.last[0]["status"] == "failed" and "a.md" in run.last[0]["summary"] and legs(run) == ["g"]
    run.asked()
    assert run.run["status"] == "waiting_gate" and present(run.run["gate"])["id"] == "gate-2", "asked once more"
    run.do("DecideGate", decision="revise", who="ada")
    run.do("Conclude", changed=["a.md"])
    assert legs(run)[0] == "a", "a revision is for whatever is there"
    plain = Driven(steps(one("a"), one("b")))
    plain.all_say()
    plain.do("Conclude", changed=["a.md"])
    assert legs(plain) == ["b"], "an agent's work is no approval"


def test_memory_is_cleaned_when_a_revision_is_done() -> None:
    run = Driven(
        steps(
            one("a", "on: {ERROR: {pause: look}}"),
            one("b", "on: {NEEDS_REVISION: {route: [a, b], at_most: 2, then: halt}}"),
        )
    )
    run.start()
    run.say(SEAT)
    assert "MemoryCleaned" not in run.do("Conclude")
    run.start()
    run.say(SEAT, "NEEDS_REVISION")
    assert "MemoryCleaned" not in run.do("Conclude")
    run.start()
    run.say(SEAT, "ERROR")
    assert "MemoryCleaned" not in run.do("Conclude"), "not done"
    again = Driven(steps(one("a"), one("b", "on: {NEEDS_REVISION: {route: [a, b], at_most: 2, then: halt}}")))
    again.all_say()
    again.all_say("NEEDS_REVISION")
    again.start()
    again.say(SEAT)
    assert again.do("Conclude") == ["StepEnded", "MemoryCleaned", "RouteTaken"]
    again.start()
    again.say(SEAT)
    assert "MemoryCleaned" not in again.do("Conclude"), "the step that asked for it revises nothing"


def test_a_review_is_recorded_with_what_it_led_to() -> None:
    policy = (
        "settings: {supplementaryPolicy: on-issues, reviewPolicy: {minBlockSeverity: LOW, maxFixAttempts: 1, "
        "maxStageRestarts: 1}}\n"
    )
    review = (
        f"id: b, stage: ONE, number: b, type: review, agent: {{{R}: x, out: b.json}}, modes: "
        f"{{supplementary: {{{R}: y, out: b.json}}}}, retry: {{ERROR: 2, LOST: 2}}, "
        "review: {policy: reviewPolicy, supplementary: on-issues, fix: a, restart: ONE}"
    )
    run = Driven(
        steps(
            f"id: a, stage: ONE, number: a, agent: {{{R}: x, out: a.md}}",
            review,
            f"id: c, stage: TWO, number: c, agent: {{{R}: x, out: c.md}}",
            more=policy,
        )
    )
    bad, good = {"status": "needs_revision", "issues": [{"severity": "HIGH"}]}, {"status": "approved", "issues": []}

    def reviewed(answer: Any, *before: str) -> Any:
        run.start()
        while run.run["position"] == "a":
            run.say(SEAT)
            run.start()
        [seat] = [run.run["attempts"][name]["extra"]["seat"] for name in run.run["in_flight"]]
        for word in before:
            run.say(seat, word)
            run.start()
        run.say(seat, receipt={"severities": [], "answer": answer})
        run.do("Conclude")
        return run.last[0]

    run.all_say()
    run.do("Conclude")
    assert run.last[0]["type"] == "StepEnded", "only a review is recorded as one"
    first = reviewed(bad, "ERROR", "LOST")
    assert (first["type"], first["step"], first["changes"]["approved"], first["changes"]["answer"]) == (
        "ReviewRecorded",
        "b",
        False,
        bad,
    )
    assert (first["changes"]["next"], first["changes"]["visit"], first["changes"]["dispatch_retries"]) == (
        "supplementary",
        1,
        2,
    ) and "fix_attempts" not in first["changes"]
    second = reviewed(bad)
    assert (
        second["changes"]["next"],
        second["changes"]["fix_attempts"],
        second["changes"]["dispatch_retries"],
        second["changes"]["visit"],
    ) == ("fix", 1, 0, 2)
    assert second["changes"]["reason"] and second["changes"]["sha256"] == ""
    assert reviewed(bad)["changes"]["next"] == "restart" and run.run["restarts"][0]["stage"] == "ONE"
    led = [reviewed(bad)["changes"]["next"] for _ in range(3)]
    assert led[-1] == "blocked" and run.run["status"] == "blocked", led
    run.do("Unblock")
    assert (
        reviewed(good)["changes"]["approved"],
        run.last[0]["changes"]["next"],
        run.last[0]["changes"]["reason"],
    ) == (True, "", "")


def test_a_review_may_be_the_last_word() -> None:
    review = f"id: b, type: review, number: b, agent: {{{R}: x, out: b.json}}, review: {{policy: reviewPolicy, fix: a}}"
    run = Driven(
        steps(
            one("a"),
            review,
            more="settings: {reviewPolicy: {minBlockSeverity: LOW, maxFixAttempts: 1, maxStageRestarts: 0}}\n",
        )
    )
    run.all_say()
    run.start()
    run.say(SEAT, receipt={"severities": [], "answer": {"status": "approved", "issues": []}})
    assert run.do("Conclude") == ["ReviewRecorded", "StepEnded", "Finished"] and run.last[0]["changes"]["next"] == ""


# ---- plans


def planned(run: Driven, **more: Any) -> Any:
    run.do("BeginVisit")
    run.do("PlanVisit", **{"items": run.items, "findings": [], **more})
    return run.last[0]


def test_a_plan_becomes_waves_under_the_cap() -> None:
    told = planned(Driven(steps(waves("on: {ERROR: halt}"), cap=1), PLAN))
    assert told["waves"] == [["1", "2"], ["3", "4"], ["5"]] and told["groups"] == [["1"], ["2"], ["3"], ["4"], ["5"]]
    assert planned(Driven(steps(waves("on: {ERROR: halt}", "at_once: 1"), cap=4), PLAN))["groups"] == [
        ["1"],
        ["2"],
        ["3"],
        ["4"],
        ["5"],
    ]
    assert planned(Driven(steps(waves("on: {ERROR: halt}"), cap=4), PLAN))["groups"] == [["1", "2"], ["3", "4"], ["5"]]
    rolling = planned(Driven(steps(waves("on: {ERROR: halt}", "order: rolling")), [item("0"), *PLAN]))
    assert rolling["groups"] == [["1", "2", "3", "0", "4", "5"]], "the longest chains first"
    assert planned(Driven(steps(waves("on: {ERROR: halt}")), [item("1", agent=SEAT)]))["items"]["1"]["agent"] == SEAT
    assert {name: one["status"] for name, one in rolling["items"].items()} == dict.fromkeys(
        "012345", "pending"
    ) and rolling["items"]["1"]["agent"] == ""


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"problem": "it cannot be read"}, "it cannot be read"),
        ({"items": [item("1", "9")]}, "9"),
        ({"items": [item("1"), item("1")]}, "1"),
        ({"items": PLAN}, "at most 4"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_goes_back(more: Any, why: str) -> None:
    run = Driven(steps(waves("on: {NEEDS_REVISION: {pause: look}, ERROR: halt}", "max_items: 4")), PLAN)
    run.do("BeginVisit")
    run.do("PlanVisit", **{"items": PLAN[:4], "findings": [], **more})
    assert (run.last[0]["type"], run.last[0]["verdict"]) == ("StepEnded", "NEEDS_REVISION") and why in run.last[0][
        "summary"
    ]
    assert run.run["status"] == "paused"
    fitting = Driven(steps(waves("on: {NEEDS_REVISION: {pause: look}, ERROR: halt}", "max_items: 4")), PLAN[:4])
    assert planned(fitting)["type"] == "ItemsPlanned", "as many as are allowed"


def big(name: str) -> Any:
    return {**item(name), "files": ["a.py", "b.py", "c.py", "d.py"]}


@pytest.mark.parametrize(
    ("strict", "switches", "back"),
    [("true", {}, True), ("false", {}, False), ("tough", {"tough": True}, True), ("tough", {"tough": False}, False)],
)
def test_a_plan_beyond_its_limits_goes_back_where_it_is_strict(strict: str, switches: Any, back: bool) -> None:
    text = steps(
        waves("on: {NEEDS_REVISION: {pause: look}, ERROR: halt}", f"limits: {{files: 3}}, strict: {strict}"),
        more="switches: {tough: false}\n",
    )
    found = planned(Driven(text, [big("1"), item("2", agent="nobody")], **switches))
    if back:
        assert (
            found["verdict"] == "NEEDS_REVISION" and found["summary"] == "item 1 has 4 production files; the limit is 3"
        ), "an agent nobody knows has a remedy"
    else:
        assert found["type"] == "ItemsPlanned" and len(found["notes"]) == 2, "it is said, and goes on"


def test_what_was_moved_is_said() -> None:
    late = {**item("2", "1"), "wave": 1}
    found = planned(Driven(steps(waves("on: {ERROR: halt}")), [{**item("1"), "wave": 1}, late]))
    assert found["notes"] == ["item 2 moved from wave 1 to 2: it waits for 1"] and found["waves"] == [["1"], ["2"]]
    both = planned(
        Driven(steps(waves("on: {ERROR: halt}")), [item("1"), item("2", "1"), {**item("3", "1", "2"), "wave": 1}])
    )
    assert both["notes"] == ["item 3 moved from wave 1 to 3: it waits for 2"], "for the last of them"


def fixed(which: str, findings: Any, plan: Any = PLAN, failed: str = "") -> Any:
    """What runs when a later step sends the items back, all of them done (or one failed)."""
    back = f"on: {{NEEDS_REVISION: {{route: [{{work: {which}}}, check], at_most: 1, then: halt}}, ERROR: halt}}"
    run = Driven(
        steps(waves("on: {ERROR: {go_on: check}}", "on_item_error: skip-dependents"), one("check", back)), PLAN
    )
    while run.run["position"] != "check":
        for seat in run.start():
            if seat != SEAT:
                run.say(seat, "ERROR" if failed and seat.endswith(f"@{failed}") else "DONE")
        if any(name.startswith("check") for name in run.run["in_flight"]):
            break
    run.say(SEAT, "NEEDS_REVISION")
    run.do("Conclude")
    run.do("BeginVisit")
    run.do("PlanVisit", items=plan, findings=findings)
    found = run.last[0]
    return [name for group in found["groups"] for name in group]


CHANGED = [*PLAN[:4], {**PLAN[4], "title": "another"}]


@pytest.mark.parametrize(
    ("which", "findings", "plan", "failed", "runs"),
    [
        ("due", [], PLAN, "", ""),
        ("due", [], CHANGED, "", "5"),
        ("due", [], [*PLAN, item("6")], "", "6"),
        ("due", [{"text": "item 3 is wrong"}], PLAN, "", ""),
        ("due", [], PLAN, "2", "24"),
        ("failing", [{"text": "item 3 is wrong"}], PLAN, "", "3"),
        ("failing", [{"text": "all is wrong"}], PLAN, "", "12345"),
        ("failing", [], CHANGED, "", "5"),
        ("failing", [{"text": "item 3 is wrong"}], CHANGED, "", "35"),
        ("affected", [{"text": "item 3 is wrong"}], PLAN, "", "3"),
        ("affected", [{"text": "all is wrong"}], PLAN, "", "12345"),
        ("affected", [], PLAN, "", "12345"),
        ("affected", [{"text": "item 3 is wrong"}], CHANGED, "", "3"),
        ("affected", [{"text": "item 3 is wrong"}, {"text": "odd"}], PLAN, "", "3"),
        ("all", [{"text": "item 3 is wrong"}], PLAN, "", "12345"),
    ],
)
def test_which_items_run_again(which: str, findings: Any, plan: Any, failed: str, runs: str) -> None:
    assert sorted(fixed(which, findings, plan, failed)) == list(runs)


def test_items_that_were_done_by_hand_are_not_done_again() -> None:
    run = ByHand(steps(waves("on: {ERROR: halt}")))
    run.do("PlanItems", items={"1": {"title": "1", "status": "completed"}, "2": {"title": "2"}})
    run.engage()
    run.do("BeginVisit")
    run.do("PlanVisit", items=PLAN, findings=[])
    found = run.last[0]
    assert (
        found["groups"] == [["2"], ["3", "4"], ["5"]]
        and found["items"]["1"]["status"] == "completed"
        and found["items"]["2"]["status"] == "pending"
    )
    assert found["made"] == [], "no seat of what still runs"


def test_what_agents_answered_before_somebody_took_over_is_kept() -> None:
    text = steps(
        waves("on: {ERROR: halt}", "per_item: in-turn").replace(
            f"[{{{R}: x}}], default: researcher-x", f"[{{{R}: x}}, {{id: q, {R}: y}}]"
        )
    )
    run = Driven(text, [item("1"), item("2")])
    run.start()
    run.say(f"{SEAT}@1")
    run.say(f"{SEAT}@2")
    run.do("ChangeDriver", driver="manual")
    assert run.run["queue"][0]["kept"].keys() == {f"{SEAT}@1", f"{SEAT}@2"}
    run.do("Engage", pipeline=run.run["pipeline"])
    run.do("BeginVisit")
    run.do("PlanVisit", items=[item("1"), {**item("2"), "title": "another"}], findings=[])
    assert run.last[0]["made"] == [f"{SEAT}@1"], "of an item that changed, nothing is kept"
    assert run.start() == ["q@1", f"{SEAT}@2"]


# ---- again, and elsewhere


def test_a_person_asks_for_a_step_again() -> None:
    text = steps(one("a"), one("b", "on: {ERROR: {pause: look}}"))
    run = Driven(text)
    run.all_say()
    run.asked()
    assert run.refused("RetryStep", step="a") == "visit-open"
    run.start()
    run.do("Pause", reason="x", kind="person")
    assert run.refused("RetryStep", step="a") == "visit-open", "an agent is under way"
    run.say(SEAT, "ERROR")
    assert run.refused("RetryStep", step="nowhere") == "no-such-step"
    assert run.do("RetryStep", step="a") == ["StepEnded", "RouteTaken", "Resumed"]
    assert (run.last[0]["step"], run.last[0]["status"], legs(run), run.run["status"]) == (
        "b",
        "failed",
        ["a"],
        "running",
    )
    between = Driven(text)
    between.all_say()
    between.do("Conclude")
    assert between.do("RetryStep", step="a") == ["RouteTaken"] and legs(between) == ["a"]


@pytest.mark.parametrize(
    ("rest", "then"),
    [
        ({"do": "Pause", "reason": "x", "kind": "person"}, "Resumed"),
        ({"do": "Stop"}, "Resumed"),
        ({"do": "Park", "until": "", "reason": ""}, "Resumed"),
        ({"do": "Block", "reason": "x"}, "Unblocked"),
        ({"do": "Fail", "error": "x"}, "Unblocked"),
    ],
    ids=lambda one: one["do"] if isinstance(one, dict) else one,
)
def test_whatever_the_run_rests_from_it_goes_on(rest: dict[str, str], then: str) -> None:
    run = Driven(steps(one("a"), one("b")))
    run.asked()
    run.do(**rest)
    assert run.do("RetryStep", step="a") == ["StepEnded", "RouteTaken", then] and run.run["status"] == "running"


@pytest.mark.parametrize("end", [{"do": "Cancel"}, {"do": "Finish"}], ids=lambda one: one["do"])
def test_what_ended_is_not_asked_for_again(end: dict[str, str]) -> None:
    run = Driven(steps(one("a"), one("b")))
    run.asked()
    run.do(**end)
    assert run.refused("RetryStep", step="a") == "run-ended"
    run.run["status"] = "graduated"
    assert run.refused("RetryStep", step="a") == "run-ended"


def test_at_a_gate_it_is_decided_and_behind_one_it_must_be_approved() -> None:
    run = Driven(steps(*GATED))
    run.all_say()
    run.asked()
    assert run.refused("RetryStep", step="a") == "run-ended"
    run.do("DecideGate", decision="approve", who="ada")
    run.start()
    run.do("Pause", reason="x", kind="person")
    run.say(SEAT)
    assert run.refused("RetryStep", step="b") == "gate-ahead"
    assert run.do("RetryStep", step="b", approved=["plan"]) == ["StepEnded", "RouteTaken", "Resumed"]


def test_a_fork_begins_behind_what_was_carried_over() -> None:
    told = {"source": "x", "at_version": 7}
    text = steps(
        GATED[0],
        one("fix", "aside: true"),
        GATED[1],
        one("b", "on: {NEEDS_REVISION: {route: [fix, b], at_most: 1, then: halt}}"),
    )
    run = ByHand(text)
    assert run.refused("Fork", at_step="nowhere", approved=[], **told) == "no-such-step"
    assert run.refused("Fork", at_step="b", approved=[], **told) == "gate-ahead"
    assert run.do("Fork", at_step="b", approved=["plan", "other"], **told) == ["Forked", "StepSkipped", "StepSkipped"]
    assert run.last[0]["approved"] == ["plan"] and [event["step"] for event in run.last[1:]] == ["a", "g"]
    assert run.run["extra"]["fork"] == {"source": "x", "step": "b", "version": 7}
    begun = ByHand(text)
    begun.do("StartStep", step="a")
    assert begun.refused("Fork", at_step="a", approved=[], **told) == "run-begun"
    tried = ByHand(text)
    tried.dispatch("x")
    assert tried.refused("Fork", at_step="a", approved=[], **told) == "run-begun"
