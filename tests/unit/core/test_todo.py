"""What the engine itself does, and when: before a step, after its DONE, between two waves; and when the time is up."""

from __future__ import annotations

from typing import Any

from tenuto.core.todo import todo
from tests.support.present import present
from tests.unit.core import test_pipeline_rules as rules
from tests.unit.core.by_command import Driven
from tests.unit.core.test_pipeline_rules import PLAN, SEAT, R, item, one, waves

MEMORY = "memory: run\nshown_as: feature_docs\n"


def steps(*lines: str, cap: int = 4, more: str = "") -> str:
    return rules.steps(*lines, cap=cap, more=more).replace("docs/{slug}", "docs/feature/{slug}")


def acts(run: Driven) -> list[str]:
    """The engine's own actions until an agent or a person is needed; each is asked for once."""
    seen: list[str] = []
    while True:
        actions = todo(run.pipeline, run.run)
        if not actions or actions[0]["act"] not in ("begin", "do", "plan", "conclude"):
            return seen
        action = actions[0]
        assert len(actions) == 1
        if action["act"] == "begin":
            run.do("BeginVisit")
        elif action["act"] == "do":
            seen.append(f"{action['step']}: {action['as']}")
            run.do("RecordAction", action=action["as"])
        elif action["act"] == "plan":
            run.do("PlanVisit", items=run.items, findings=[])
        else:
            run.do("Conclude")


def test_a_step_of_actions_does_them_in_order_and_ends() -> None:
    run = Driven(steps("id: s, action: [write-request, initialize-memory]", one(), more=MEMORY))
    assert acts(run) == ["s: write-request", "s: initialize-memory"] and run.run["position"] == "work"


def test_before_a_step_and_after_its_done() -> None:
    text = steps(
        one("a", "before: [choose-review-tier], after: [prune-memory, extract-lessons], on: {ERROR: {pause: look}}"),
        one("b"),
        more=MEMORY,
    )
    run = Driven(text)
    assert acts(run) == ["a: before:choose-review-tier"]
    run.start()
    assert acts(run) == []
    run.say(SEAT)
    assert acts(run) == ["a: after:prune-memory", "a: after:extract-lessons"] and run.run["position"] == "b"
    failed = Driven(text)
    acts(failed)
    failed.start()
    failed.say(SEAT, "ERROR")
    assert acts(failed) == [] and failed.run["status"] == "paused", "after a DONE, and only then"


def test_between_two_waves() -> None:
    run = Driven(steps(waves("between: [extract-lessons], on: {ERROR: halt}"), more=MEMORY), PLAN)
    assert acts(run) == [], "not before the first"
    run.start()
    run.say(f"{SEAT}@1")
    assert acts(run) == [], "not while one is under way"
    run.say(f"{SEAT}@2")
    assert acts(run) == ["work: between:1:extract-lessons"]
    run.start()
    run.say(f"{SEAT}@3")
    run.say(f"{SEAT}@4")
    assert acts(run) == ["work: between:2:extract-lessons"]
    run.start()
    run.say(f"{SEAT}@5")
    assert acts(run) == ["work: behind:extract-lessons"], "lessons of the last wave count, too"
    assert run.run["status"] == "completed"


def test_not_while_one_of_an_earlier_wave_is_under_way() -> None:
    run = Driven(
        steps(waves("between: [extract-lessons], on: {ERROR: halt}", "order: rolling"), more=MEMORY), [item("0"), *PLAN]
    )
    acts(run)
    run.start()
    run.say(f"{SEAT}@1")
    run.say(f"{SEAT}@2")
    assert (present(run.run["current_visit"])["left"][0], present(run.run["current_visit"])["busy"]) == (
        "3",
        ["0"],
    ) and acts(run) == []


def test_not_between_waves_that_a_failed_item_keeps_from_starting() -> None:
    run = Driven(
        steps(waves("between: [extract-lessons], on: {ERROR: {pause: look}}", "on_item_error: stop"), more=MEMORY),
        [item("1"), item("2"), item("3", "1")],
    )
    acts(run)
    run.start()
    run.say(f"{SEAT}@1", "ERROR")
    run.say(f"{SEAT}@2")
    assert acts(run) == ["work: behind:extract-lessons"], "no wave follows, so this is behind the last"
    assert run.run["status"] == "paused"


def test_when_the_time_is_up_nothing_more_starts() -> None:
    members = ", ".join(f"{{id: m{n}, {R}: x}}" for n in range(2))
    run = Driven(steps(f"id: work, cluster: {{members: [{members}], quorum: 2}}, on: {{ERROR: halt}}", cap=1))
    run.do("ChangeBudget", limits={"wall_clock": 60})
    assert [action["time_left"] for action in run.asked()] == [60_000]
    run.start()
    run.seconds += 58
    run.say("m0")
    [more] = run.asked()
    assert more["act"] == "dispatch" and 0 < more["time_left"] <= 2_000
    run.run["budget"]["busy_ms"] = 59_999
    assert [action["act"] for action in run.asked()] == ["dispatch"]
    run.run["budget"]["busy_ms"] = 60_000
    [pause] = run.asked()
    assert (pause["act"], pause["unit"]) == ("pause", "wall_clock")


def test_the_callers_clock_counts_where_it_is_told() -> None:
    run = Driven(
        steps(f"id: work, cluster: {{members: [{{id: a, {R}: x}}, {{id: b, {R}: x}}], quorum: 2}}, on: {{ERROR: halt}}")
    )
    run.do("ChangeBudget", limits={"wall_clock": 60})
    run.start("a")
    since: Any = run.run["budget"]["busy_since"]
    later = since.replace("T10:", "T11:")
    assert todo(run.pipeline, run.run, later) == [], "b does not start any more, and a is under way"
    [action] = todo(run.pipeline, run.run)
    assert action["act"] == "dispatch" and action["key"] == "b", "by the last event's time there is some left"
    run.seconds += 100
    run.do("Note", text="much later")
    assert todo(run.pipeline, run.run) == [], "and by this one's there is none"
