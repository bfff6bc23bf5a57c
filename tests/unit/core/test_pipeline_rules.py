"""What a pipeline's words mean when it runs: retries, questions, items, routes, limits, ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.present import present
from tests.unit.core.by_command import Driven

R = "role: researcher, mode: focused, focus"


def steps(*lines: str, cap: int = 4, more: str = "") -> str:
    return f"documents: docs/{{slug}}\ncap: {cap}\nexisting: [plan.md, 'tasks/*.md']\n{more}steps:\n" + "".join(
        f"  - {{{line}}}\n" for line in lines
    )


def one(name: str = "work", more: str = "") -> str:
    return f"id: {name}, agent: {{{R}: x}}{more and ', ' + more}"


def item(name: str, *before: str, agent: str | None = None) -> Any:
    return {
        "id": name,
        "title": name,
        "files": [],
        "depends_on": list(before),
        "agent": agent,
        "wave": None,
        "description": "",
        "effort": None,
        "lines": None,
    }


SEAT = "researcher-x"


def test_one_after_the_other_to_the_end() -> None:
    run = Driven(steps(one("a"), one("b")))
    assert run.start() == [SEAT] and run.run["position"] == "a"
    run.say(SEAT)
    assert run.all_say() == [SEAT] and run.run["position"] == "b"
    assert run.start() == [] and run.run["status"] == "completed"
    assert [visit["step"] for visit in run.run["visits"]] == ["a", "b"]


def test_an_engine_starts_what_is_asked_for_and_nothing_else() -> None:
    run = Driven(steps(one()))
    run.asked()
    extra = {"seat": SEAT}
    told = {"attempt": "work-1-researcher-x-2", "role": "researcher", "item": None, "number": 2, "extra": extra}
    assert run.refused("DispatchAttempts", attempts=[told]) == "not-asked"
    assert run.refused("DispatchAttempt", **told) == "not-asked"
    run.start()
    again = {**told, "attempt": "work-1-researcher-x-1", "number": 1}
    assert run.refused("DispatchAttempts", attempts=[again]) == "not-asked", "another driver started it already"


@pytest.mark.parametrize(
    "words", [("ERROR", "ERROR", "DONE"), ("LOST", "ERROR", "LOST", "DONE"), ("NEEDS_REVISION", "DONE")]
)
def test_retries_are_counted_per_kind(words: tuple[str, ...]) -> None:
    seat = f"{R}: x, verdicts: [DONE, NEEDS_REVISION, ERROR]"
    run = Driven(
        steps(
            f"id: work, agent: {{{seat}}}, retry: {{ERROR: 2, LOST: 2, NEEDS_REVISION: 1}}, on: "
            f"{{NEEDS_REVISION: halt, ERROR: halt}}"
        )
    )
    for number, word in enumerate(words, 1):
        assert run.start() == [SEAT]
        assert list(run.run["attempts"])[-1] == f"work-1-{SEAT}-{number}"
        run.say(SEAT, word)
    assert run.start() == [] and run.run["status"] == "completed"


@pytest.mark.parametrize("words", [("ERROR",) * 3, ("LOST",) * 2 + ("ERROR",) * 2 + ("LOST",)])
def test_where_no_try_is_left_the_step_ends_as_its_table_says(words: tuple[str, ...]) -> None:
    run = Driven(steps(one(more="retry: {ERROR: 2, LOST: 2}, on: {ERROR: halt}")))
    for word in words:
        assert run.start() == [SEAT], run.run["status"]
        run.say(SEAT, word, **({"summary": "it is hard"} if word == "ERROR" else {}))
    assert run.start() == [] and run.run["status"] in ("paused", "failed")


def paused_for(run: Driven) -> str:
    return present(run.run["pause"])["reason"] if run.run["status"] == "paused" else ""


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (("LOST",), "paused"),
        (("ERROR", "LOST"), "paused"),
        (("LOST", "ERROR"), "paused"),
        (("ERROR", "ERROR"), "failed"),
        (("LOST", "NEEDS_REVISION"), "failed"),
    ],
)
def test_no_run_fails_because_its_machine_did(words: tuple[str, ...], ends: str) -> None:
    """Where errors alone would have left another try it waits, and whoever resumes it has the same step tried again."""
    retry = "{ERROR: 1}" if len(words) > 1 else "{}"
    seat = f"{R}: x, verdicts: [DONE, NEEDS_REVISION, ERROR]"
    run = Driven(steps(f"id: work, agent: {{{seat}}}, retry: {retry}, on: {{NEEDS_REVISION: halt, ERROR: halt}}"))
    for word in words:
        assert run.start() == [SEAT]
        run.say(SEAT, word)
    assert run.start() == [] and run.run["status"] == ends
    if ends == "paused":
        assert paused_for(run) == f"work: interrupted too often, and nobody knows what came of it: {SEAT}"
        assert present(run.run["pause"])["recommendations"][0] == f"tenuto resume {run.run['id']}"
        run.do("Resume")
        assert run.start() == [SEAT], "with all its tries"
        run.say(SEAT, "ERROR" if len(words) > 1 else "DONE")
        assert run.start() == ([SEAT] if len(words) > 1 else [])


def test_what_the_others_delivered_stays_when_a_group_was_interrupted() -> None:
    members = ", ".join(f"{{id: {name}, {R}: x}}" for name in "abc")
    run = Driven(steps(f"id: work, cluster: {{members: [{members}], quorum: 3}}, on: {{ERROR: halt}}"))
    assert run.start() == ["a", "b", "c"]
    for name, word in (("a", "DONE"), ("b", "LOST"), ("c", "LOST")):
        run.say(name, word)
    assert run.start() == [] and paused_for(run).endswith(": b, c")
    run.do("Resume")
    assert run.all_say() == ["b", "c"], "what is finished is not done again"
    assert run.start() == [] and run.run["status"] == "completed"


def test_an_item_that_was_interrupted_is_made_again_and_those_that_are_done_are_not() -> None:
    run = Driven(steps(waves("retry: {ERROR: 0}, on: {ERROR: halt}")), [item("1"), item("2")])
    assert run.start() == [f"{SEAT}@1", f"{SEAT}@2"]
    run.say(f"{SEAT}@1")
    run.say(f"{SEAT}@2", "LOST")
    assert run.start() == [] and paused_for(run).endswith(f": {SEAT} for 2")
    run.do("Resume")
    assert run.start() == [f"{SEAT}@2"]


def test_what_was_never_started_uses_no_try() -> None:
    run = Driven(steps(one(more="retry: {ERROR: 0, LOST: 0}, on: {ERROR: halt}")))
    for _ in range(3):
        assert run.start() == [SEAT]
        run.say(SEAT, "LOST", ran=False)
    run.all_say()
    assert run.start() == [] and run.run["status"] == "completed"


def test_a_question_as_often_as_the_seat_may_ask() -> None:
    run = Driven(steps(f"id: work, agent: {{{R}: x, questions: 1}}, retry: {{ERROR: 1}}, on: {{ERROR: halt}}"))
    run.start()
    assert run.say(SEAT, "QUESTION", status="completed", summary="which?") == ["AttemptFinished", "Paused"]
    run.do("Resume")
    run.start()
    assert run.say(SEAT, "QUESTION", status="completed", summary="and which?") == ["AttemptFinished"]
    last = list(run.run["attempts"].values())[-1]
    assert (last["verdict"], last["status"]) == ("ERROR", "failed") and "which it may not: and which?" in last[
        "summary"
    ]
    assert run.all_say() == [SEAT], "an error, and tried again as one"
    assert run.start() == [] and run.run["status"] == "completed"


def test_never_more_than_the_cap() -> None:
    members = ", ".join(f"{{id: m{n}, {R}: x}}" for n in range(5))
    run = Driven(steps(f"id: work, cluster: {{members: [{members}], quorum: 5}}, on: {{ERROR: halt}}", cap=2))
    assert run.start() == ["m0", "m1"] and run.start() == []
    run.say("m1")
    assert run.start() == ["m2"]
    for seat in ("m0", "m2"):
        run.say(seat)
    assert run.start() == ["m3", "m4"]
    run.say("m3")
    assert (run.asked(), run.run["status"]) == ([], "running"), "the last one is under way"
    run.say("m4")
    assert (run.start(), run.run["status"]) == ([], "completed")


def test_a_limit_admits_what_fits_and_then_pauses() -> None:
    run = Driven(
        steps(f"id: work, cluster: {{members: [{{id: a, {R}: x}}, {{id: b, {R}: x}}, {{id: c, {R}: x}}], quorum: 3}}")
    )
    run.do("ChangeBudget", limits={"attempts": 2})
    assert run.start() == ["a", "b"]
    assert run.asked() == [], "two are under way: nothing is said yet"
    run.say("a")
    run.say("b")
    [pause] = run.asked()
    assert (pause["act"], pause["unit"], pause["short"]["held"]) == ("pause", "attempts", 2)
    run.do("ChangeBudget", limits={"attempts": 3})
    assert run.all_say() == ["c"]
    assert run.start() == [] and run.run["status"] == "completed"


def test_a_gate_waits_for_a_person() -> None:
    text = steps(one("a"), "id: g, gate: {prompt: 'Go on?', revise: a}", one("b"))
    run = Driven(text)
    run.all_say()
    assert run.asked() == [] and run.run["status"] == "waiting_gate"
    run.do("DecideGate", decision="revise", who="ada")
    assert run.start() == [SEAT] and run.run["position"] == "a"
    run.say(SEAT)
    assert run.asked() == [] and present(run.run["gate"])["id"] == "gate-2"
    run.do("DecideGate", decision="approve", who="ada")
    assert run.start() == [SEAT] and run.run["position"] == "b"
    rejected = Driven(text)
    rejected.all_say()
    rejected.asked()
    rejected.do("DecideGate", decision="reject", who="ada")
    assert rejected.asked() == [] and rejected.run["status"] == "failed"


def test_a_way_back_is_taken_as_often_as_it_may() -> None:
    text = steps(one("a"), one("b", "on: {NEEDS_REVISION: {route: [a, b], at_most: 2, then: {go_on: c}}}"), one("c"))
    run = Driven(text)
    for _ in range(2):
        assert run.all_say() == [SEAT] and run.run["position"] == "a"
        assert run.all_say("NEEDS_REVISION") == [SEAT] and run.run["position"] == "b"
    run.all_say()
    run.all_say("NEEDS_REVISION")
    assert run.start() == [SEAT] and run.run["position"] == "c", "the third time, what is said for then"
    assert list(run.run["routes"].values()) == [2]
    run.say(SEAT)
    assert run.start() == [] and run.run["status"] == "completed"


def test_whoever_restarts_a_stage_decides_again_also_aside() -> None:
    mend = one("m", "stage: S, aside: true, on: {ERROR: {restart: S, at_most: 1}}")
    run = Driven(
        steps(one("a", "stage: S"), mend, one("b", "stage: S, on: {NEEDS_REVISION: {route: [m], at_most: 1}}"))
    )
    for word in ("DONE", "NEEDS_REVISION", "ERROR", "DONE", "DONE", "DONE"):
        assert run.all_say(word) == [SEAT]
    assert run.start() == [] and run.run["status"] == "completed"
    assert [visit["step"] for visit in run.run["visits"]] == ["a", "b", "m", "a", "m", "b"], (
        "what it could not do before, it has done now"
    )


def test_a_step_that_is_never_done_fails_the_run_or_rests_it() -> None:
    failing = Driven(steps(one(more="on: {ERROR: fail}")))
    failing.all_say("ERROR")
    assert (
        failing.start() == [] and failing.run["status"] == "failed" and SEAT in present(failing.run["failure"])["error"]
    )
    pausing = Driven(steps(one(more="on: {ERROR: {pause: look at it}}"), one("b")))
    pausing.all_say("ERROR")
    assert (
        pausing.start() == []
        and pausing.run["status"] == "paused"
        and "look at it" in present(pausing.run["pause"])["reason"]
    )
    pausing.do("Resume")
    assert pausing.all_say() == [SEAT] and pausing.run["position"] == "work", "the step that took it runs again"
    assert pausing.start() == [SEAT] and pausing.run["position"] == "b"
    given_up = Driven(steps(one(more="on: {ERROR: {pause: look at it}}")))
    given_up.all_say("ERROR")
    given_up.start()
    given_up.do("Resume", decision="reject")
    assert given_up.start() == [] and given_up.run["status"] == "failed"


def waves(more: str = "", per: str = "") -> str:
    return (
        "id: work, waves: "
        f"{{plan: plan.md, items: 'tasks/*.md', roles: [{{{R}: x}}], default: researcher-x{per and ', ' + per}}}{more and ', ' + more}"  # noqa: E501
    )


PLAN = [item("1"), item("2"), item("3", "1"), item("4", "2"), item("5", "3")]


def test_items_in_waves() -> None:
    run = Driven(steps(waves("on: {ERROR: halt}")), PLAN)
    assert run.start() == [f"{SEAT}@1", f"{SEAT}@2"]
    run.say(f"{SEAT}@1")
    assert run.start() == [], "a wave waits for all of the one before"
    run.say(f"{SEAT}@2")
    assert run.all_say() == [f"{SEAT}@3", f"{SEAT}@4"] and run.all_say() == [f"{SEAT}@5"]
    assert run.start() == [] and run.run["status"] == "completed"
    assert {one["status"] for one in run.run["items"].values()} == {"completed"}


def test_a_failed_item_stops_the_waves_behind_it() -> None:
    run = Driven(steps(waves("on: {ERROR: {pause: look}}", "on_item_error: stop")), PLAN)
    run.start()
    run.say(f"{SEAT}@1", "ERROR")
    run.say(f"{SEAT}@2")
    assert run.start() == [] and run.run["status"] == "paused"
    assert {name: one["status"] for name, one in run.run["items"].items()} == {
        "1": "failed",
        "2": "completed",
        "3": "pending",
        "4": "pending",
        "5": "pending",
    }


def test_a_failed_item_takes_along_what_depends_on_it() -> None:
    run = Driven(steps(waves("on: {ERROR: {pause: look}}", "on_item_error: skip-dependents")), PLAN)
    run.start()
    run.say(f"{SEAT}@1", "ERROR")
    run.say(f"{SEAT}@2")
    assert run.all_say() == [f"{SEAT}@4"]
    assert run.start() == [] and run.run["status"] == "paused"
    assert {name: one["status"] for name, one in run.run["items"].items()} == {
        "1": "failed",
        "2": "completed",
        "3": "skipped",
        "4": "completed",
        "5": "skipped",
    }


def test_an_item_whose_seat_never_blocks_holds_up_nobody() -> None:
    """It has failed, and what depends on it runs; one of several seats that blocks is enough to stop."""
    quiet = waves("on: {ERROR: {pause: look}}", "on_item_error: skip-dependents").replace(
        f"{{{R}: x}}", f"{{{R}: x, weight: never-blocks}}"
    )
    run = Driven(steps(quiet), [item("1"), item("2", "1")])
    run.start()
    run.say(f"{SEAT}@1", "ERROR")
    assert (run.run["items"]["1"]["status"], run.run["items"]["2"]["status"]) == ("failed", "pending")
    assert run.all_say() == [f"{SEAT}@2"]
    both = waves("on: {ERROR: {pause: look}}", "per_item: side-by-side, on_item_error: skip-dependents").replace(
        f"[{{{R}: x}}], default: researcher-x", f"[{{{R}: x}}, {{id: q, {R}: y, weight: never-blocks}}]"
    )
    mixed = Driven(steps(both), [item("1"), item("2", "1")])
    mixed.start()
    mixed.say(f"{SEAT}@1", "ERROR")
    mixed.say("q@1")
    assert mixed.run["items"]["2"]["status"] == "skipped"


def test_the_next_attempt_names_the_one_it_goes_on_with() -> None:
    run = Driven(steps(one(more="retry: {LOST: 1, ERROR: 1}, on: {ERROR: halt}")))
    run.start()
    run.say(SEAT, "LOST")
    run.start()
    run.say(SEAT, "ERROR")
    run.start()
    first, second, third = run.run["attempts"].values()
    assert (
        "follows" not in first["extra"]
        and second["extra"]["follows"] == f"work-1-{SEAT}-1"
        and "follows" not in third["extra"]
    )


def test_what_is_set_aside_is_the_pipelines_word_and_not_the_callers() -> None:
    run = Driven(steps(one()))
    run.do("ChangeBudget", limits={"tokens": 100})
    run.asked()
    run.do(
        "DispatchAttempt", attempt=f"work-1-{SEAT}-1", role="researcher", reserved={"tokens": 0}, extra={"seat": SEAT}
    )
    assert run.run["budget"]["reserved"] == {"attempts": 1, "tokens": 5}


def test_a_run_that_asks_for_no_agent_is_given_none() -> None:
    run = Driven(steps(one()))
    run.do("ChangeBudget", limits={"attempts": 0})
    assert [action["act"] for action in run.asked()] == ["pause"]
    told = {"attempt": f"work-1-{SEAT}-1", "role": "researcher", "item": None, "number": 1, "extra": {"seat": SEAT}}
    assert run.refused("DispatchAttempts", attempts=[told]) == "not-asked"


def test_what_is_told_without_the_pipeline_at_hand_is_recorded_and_nothing_is_concluded_from_it() -> None:
    """A hook that only knows the run: no seat is counted, no item ends."""
    run = Driven(steps(waves("on: {ERROR: halt}")), [item("1")])
    run.start()
    whole, run.pipeline = run.pipeline, None
    assert run.dispatch("heard of") == ["AttemptDispatched"]
    assert run.say(f"{SEAT}@1") == ["AttemptFinished"] and run.run["items"]["1"]["status"] == "running"
    run.pipeline = whole
    assert run.do("FinishAttempt", attempt="heard of", status="completed", verdict="QUESTION", summary="?") == [
        "AttemptFinished",
        "Paused",
    ]
    other = Driven(steps(one()))
    other.start()
    other.pipeline = None
    assert other.say(SEAT, "QUESTION", status="completed", summary="?") == ["AttemptFinished", "Paused"]


def test_an_item_that_somebody_declares_failed_stops_what_lies_behind_it() -> None:
    run = Driven(steps(waves("on: {ERROR: {pause: look}}", "on_item_error: stop")), PLAN)
    run.start()
    run.do("ChangeItem", item="1", status="failed")
    assert present(run.run["current_visit"])["stopped_by"] == ["1"] and present(run.run["current_visit"])["left"] == [
        "2",
        "3",
        "4",
        "5",
    ]


def test_rolling_order_waits_for_nobody_else() -> None:
    run = Driven(steps(waves("on: {ERROR: halt}", "order: rolling")), PLAN)
    assert run.start() == [f"{SEAT}@1", f"{SEAT}@2"]
    run.say(f"{SEAT}@2")
    assert run.start() == [f"{SEAT}@4"]
    run.say(f"{SEAT}@1")
    assert run.start() == [f"{SEAT}@3"]


def test_an_item_that_is_lost_and_has_no_try_left_has_failed() -> None:
    run = Driven(steps(waves("retry: {ERROR: 0, LOST: 1}, on: {ERROR: {pause: look}}")), [item("1")])
    run.start()
    assert run.say(f"{SEAT}@1", "LOST") == ["AttemptLost"]
    run.start()
    assert (
        run.say(f"{SEAT}@1", "LOST") == ["AttemptLost", "ItemChanged"] and run.run["items"]["1"]["status"] == "failed"
    )
    assert run.start() == [] and run.run["status"] == "paused"


def test_a_parked_run_is_woken_when_nobody_is_under_way() -> None:
    run = Driven(steps(f"id: work, cluster: {{members: [{{id: a, {R}: x}}, {{id: b, {R}: x}}], quorum: 2}}"))
    run.start()
    run.say("a", "PARKED", parked_until="2026-11-16T10:00:00.000Z")
    assert run.run["status"] == "parked" and run.asked() == [], "b is under way"
    run.say("b")
    [wake] = run.asked()
    assert (wake["act"], wake["at"]) == ("wake", "2026-11-16T10:00:00.000Z")
    run.do("Resume", early=True)
    assert run.start() == ["a"], "no try was used up"


@pytest.mark.parametrize("rest", [{"do": "Pause", "reason": "x", "kind": "person"}, {"do": "Stop"}, {"do": "Cancel"}])
def test_a_run_that_rests_asks_for_nothing(rest: dict[str, str]) -> None:
    run = Driven(steps(one()))
    run.asked()
    run.do(**rest)
    assert run.asked() == []
