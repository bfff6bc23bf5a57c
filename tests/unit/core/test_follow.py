"""What follows an outcome: each rule of core/follow.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.present import present
from tests.unit.core import test_pipeline_rules as rules
from tests.unit.core.by_command import Driven
from tests.unit.core.test_pipeline_rules import SEAT, R, item, one, waves

AGAIN = "on: {NEEDS_REVISION: {route: [a, b], at_most: 2, then: halt}}"


def steps(*lines: str, more: str = "") -> str:
    return rules.steps(*lines, more=more)


def written(name: str, out: str, more: str = "") -> str:
    return f"id: {name}, agent: {{{R}: x, out: {out}}}{more and ', ' + more}"


def ended(run: Driven, word: str = "DONE", **more: Any) -> list[Any]:
    """Whoever is asked answers with this word; what followed, behind the end of the step."""
    for seat in run.start():
        run.say(seat, word, **more)
    run.do("Conclude")
    return run.last


def taken(run: Driven) -> Any:
    return next(event for event in run.last if event["type"] == "RouteTaken")


# ---- ways back


def test_those_before_the_step_that_sends_them_are_told_what_was_found() -> None:
    run = Driven(
        steps(
            one("a"),
            one("b"),
            written("c", "review.md", "on: {NEEDS_REVISION: {route: [a, b, c], at_most: 1, then: halt}}"),
            one("d"),
        )
    )
    ended(run), ended(run)
    ended(run, "NEEDS_REVISION")
    legs = taken(run)["queue"]
    assert [leg["step"] for leg in legs] == ["a", "b", "c"]
    assert [leg.get("findings") for leg in legs] == [["review.md"], ["review.md"], None], (
        "what it wrote; and it does not tell itself"
    )
    assert [leg.get("revises", False) for leg in legs] == [True, False, False]
    assert (taken(run)["reason"], run.run["routes"]) == ("NEEDS_REVISION", {taken(run)["route"]: 1})


def test_a_step_that_runs_itself_again_is_told_too_and_revises_nothing() -> None:
    run = Driven(steps(written("a", "a.md", "on: {NEEDS_REVISION: {route: [a], at_most: 1, then: halt}}")))
    ended(run, "NEEDS_REVISION")
    [leg] = taken(run)["queue"]
    assert leg["findings"] == ["a.md"] and "revises" not in leg and "feedback" not in leg


def test_what_a_step_passes_on_may_be_named() -> None:
    run = Driven(
        steps(
            one("a"),
            written("b", "[x.md, y.md]", "on: {NEEDS_REVISION: {route: [a, b], at_most: 1, with: [y.md], then: halt}}"),
        )
    )
    ended(run)
    ended(run, "NEEDS_REVISION")
    assert taken(run)["queue"][0]["findings"] == ["y.md"]


def test_a_gate_passes_a_persons_words_on() -> None:
    run = Driven(
        steps(
            one("a"),
            "id: g, gate: {prompt: '?', revise: a}",
            one("b", "on: {NEEDS_REVISION: {route: [a, b], at_most: 1, then: halt}}"),
        )
    )
    ended(run)
    run.asked()
    run.do("DecideGate", decision="revise", who="ada", feedback="shorter")
    run.do("Conclude")
    legs = taken(run)["queue"]
    assert legs[0]["feedback"] == "shorter" and "feedback" not in legs[-1] and legs[0]["findings"] == []
    ended(run)
    run.asked()
    run.do("DecideGate", decision="approve", who="ada", feedback="fine")
    ended(run, "NEEDS_REVISION")
    assert "feedback" not in taken(run)["queue"][0], "an agent passes its own on"


def cluster(name: str, aggregate: str = "", more: str = "") -> str:
    members = f"[{{id: m, {R}: x, out: m.md}}, {{id: n, {R}: y, out: n.md}}]"
    return (
        f"id: {name}, cluster: "
        f"{{members: {members}, quorum: 2}}{aggregate and ', aggregate: ' + aggregate}{more and ', ' + more}"
    )


def test_the_outputs_of_a_cluster_are_its_aggregators_or_its_members() -> None:
    back = (
        "on: {NEEDS_REVISION: {route: [a, c], at_most: 1, then: halt}, ERROR: {route: [a, c], at_most: 1, then: halt}}"
    )
    run = Driven(steps(one("a"), cluster("c", f"{{id: z, {R}: z, out: z.md}}", back)))
    ended(run)
    run.all_say()
    ended(run, "NEEDS_REVISION")
    assert taken(run)["queue"][0]["findings"] == ["z.md"] and "again" not in taken(run)["queue"][-1], (
        "all of them, again"
    )
    bare = Driven(steps(one("a"), cluster("c", "", "on: {ERROR: {route: [a, c], at_most: 1, then: halt}}")))
    ended(bare)
    ended(bare, "ERROR")
    assert taken(bare)["queue"][0]["findings"] == ["m.md", "n.md"]


def test_waves_and_gates_have_no_outputs_of_their_own_to_pass_on() -> None:
    run = Driven(steps(one("a"), waves("on: {ERROR: {route: [a, work], at_most: 1, then: halt}}")), [item("1")])
    ended(run)
    ended(run, "ERROR")
    assert taken(run)["queue"][0]["findings"] == []


def test_some_members_again_and_then_whoever_draws_the_conclusion() -> None:
    only = "on: {NEEDS_REVISION: {route: [{c: only m}, d], at_most: 1, then: halt}}"
    run = Driven(steps(cluster("c", f"{{id: z, {R}: z, out: z.md}}"), one("d", only)))
    run.all_say()
    ended(run)
    ended(run, "NEEDS_REVISION")
    assert taken(run)["queue"][0]["again"] == ["m", "z"] and "again" not in taken(run)["queue"][1]
    assert run.all_say() == ["m"] and run.all_say() == ["z"]
    bare = Driven(steps(cluster("c"), one("d", only)))
    ended(bare)
    ended(bare, "NEEDS_REVISION")
    assert "again" not in taken(bare)["queue"][0]
    assert bare.all_say() == ["m"] and bare.start() == [SEAT]


def test_memory_of_what_is_done_again_is_no_longer_true() -> None:
    text = steps(one("a"), one("b", AGAIN), more="memory: run\nshown_as: feature_docs\n").replace(
        "docs/{slug}", "docs/feature/{slug}"
    )
    run = Driven(text)
    ended(run)
    ended(run, "NEEDS_REVISION")
    void = next(event for event in run.last if event["type"] == "MemoryInvalidated")
    numbers = [step["number"] for step in run.pipeline["steps"]]
    assert void["steps"] == numbers and [event["type"] for event in run.last][1:] == ["RouteTaken", "MemoryInvalidated"]
    plain = Driven(steps(one("a"), one("b", AGAIN)))
    ended(plain)
    assert [event["type"] for event in ended(plain, "NEEDS_REVISION")] == ["StepEnded", "RouteTaken"]


def test_a_reason_for_one_of_them_only() -> None:
    because = (
        "on: {NEEDS_REVISION: {route: [a, c], because: m, at_most: 1, then: {pause: enough}, otherwise: {go_on: "
        "d}}, ERROR: halt}"
    )
    text = steps(one("a"), cluster("c", f"{{id: z, rule: r, {R}: z, out: z.md}}", because), one("d"))
    for guilty, where in (("m", "a"), ("n", "d")):
        run = Driven(text)
        ended(run)
        for seat in run.start():
            run.say(seat, "NEEDS_REVISION" if seat == guilty else "DONE")
        ended(run)
        assert run.run["queue"][0]["step"] == where, guilty


# ---- on


def test_a_hop_that_is_done_leads_to_the_next_one_and_anything_else_to_where_it_says() -> None:
    text = steps(
        one("a", "on: {ERROR: {go_on: c}}"),
        one("b"),
        one("c", "on: {NEEDS_REVISION: {route: [a, b, c], at_most: 2, then: halt}}"),
        one("d"),
    )
    run = Driven(text)
    ended(run), ended(run)
    ended(run, "NEEDS_REVISION")
    ended(run)
    assert [leg["step"] for leg in run.run["queue"]] == ["b", "c"]
    ended(run)
    ended(run, "NEEDS_REVISION")
    ended(run, "ERROR")
    assert [leg["step"] for leg in run.run["queue"]] == ["c"], "b lies before it, and is left"
    far = Driven(
        steps(
            one("a", "on: {ERROR: {go_on: b}}"),
            one("b"),
            one("c", "on: {NEEDS_REVISION: {route: [a, c], at_most: 2, then: halt}}"),
        )
    )
    ended(far), ended(far)
    ended(far, "NEEDS_REVISION")
    ended(far, "ERROR")
    assert [leg["step"] for leg in far.run["queue"]] == ["b", "c"], "it runs next, and what waits behind it waits"


def test_what_is_carried_to_a_later_step() -> None:
    text = steps(written("a", "a.md", "on: {NEEDS_REVISION: {go_on: b, carry: doubts}}"), one("b"))
    run = Driven(text)
    ended(run, "NEEDS_REVISION")
    assert run.run["handed_over"] == {"b": {"name": "doubts", "paths": ["a.md"]}}
    ended(run)
    assert run.run["handed_over"] == {}, "once"
    plain = Driven(text)
    ended(plain)
    assert plain.run["handed_over"] == {}


# ---- rests and ends


def test_a_pause_says_what_who_and_why_and_the_step_waits() -> None:
    run = Driven(
        steps(
            one("a"), cluster("b", "", "on: {ERROR: {pause: Look at it, recommendations: [retry, reject]}}"), one("c")
        )
    )
    ended(run)
    run.start()
    run.say("m", "ERROR", summary="no\nlines")
    run.say("n")
    run.do("Conclude")
    pause = present(run.run["pause"])
    assert pause["reason"] == "Look at it (m): fewer than 2 outputs: no" and pause["recommendations"] == [
        "retry",
        "reject",
    ]
    assert (pause["kind"], pause["step"], pause["feedback"], taken(run)["queue"][0]["step"]) == (
        "outcome",
        "b",
        "fewer than 2 outputs",
        "b",
    )


def test_the_word_of_somebody_who_was_done_is_no_reason() -> None:
    run = Driven(steps(one("a", "on: {ERROR: fail}"), one("b", "on: {ERROR: fail}")))
    ended(run, summary="all is well")
    ended(run, "ERROR", summary="it broke")
    assert (
        present(run.run["failure"])["error"].endswith(f"({SEAT}): it broke")
        and present(run.run["failure"])["step"] == "b"
    )
    silent = Driven(steps(one("a", "on: {ERROR: fail}")))
    ended(silent, "ERROR")
    assert present(silent.run["failure"])["error"].endswith(f"({SEAT})")


def test_an_item_that_failed_says_why() -> None:
    run = Driven(steps(waves("on: {ERROR: {pause: Look}}")), [item("1"), item("2")])
    run.start()
    run.say(f"{SEAT}@1", "ERROR", summary="first")
    run.say(f"{SEAT}@2", summary="fine")
    run.do("Conclude")
    assert present(run.run["pause"])["reason"] == "Look (1): failed: 1: first"


@pytest.mark.parametrize(("rule", "status"), [("fail", "failed"), ("{pause: x}", "paused"), ("halt", "failed")])
def test_how_a_step_may_end_a_run(rule: str, status: str) -> None:
    run = Driven(steps(one("a", f"on: {{ERROR: {rule}}}"), one("b")))
    ended(run, "ERROR")
    assert run.run["status"] == status


def test_the_end_is_what_the_pipeline_calls_it() -> None:
    run = Driven(steps(one("a"), more="mode: poc\nfinish: poc-complete\n"))
    assert ended(run)[-1]["outcome"] == "poc-complete" and run.run["status"] == "poc-complete"


# ---- stages


def staged(name: str, stage: str, more: str = "") -> str:
    return f"id: {name}, stage: {stage}, number: '{name}', agent: {{{R}: x, out: {name}.md}}{more and ', ' + more}"


def test_a_stage_is_left_with_its_evidence_only() -> None:
    text = steps(staged("a", "ONE", "evidence_for_next: [a.md]"), staged("b", "TWO", "evidence_for_next: [b.md]"))
    run = Driven(text)
    assert [event["type"] for event in ended(run)] == ["StepEnded", "RouteTaken", "Blocked"]
    assert (run.run["status"], present(run.run["blocked"])["missing"], present(run.run["blocked"])["reason"]) == (
        "blocked",
        ["a.md"],
        "ONE->TWO",
    )
    assert run.run["queue"][0]["step"] == "a", "whoever lets it go on lets it try this step again"
    run.do("Unblock")
    run.start()
    run.do("StoreArtifact", name="a", path="docs/x/a.md", sha256="1", size=1)
    run.say(SEAT)
    run.do("Conclude")
    assert run.run["queue"][0]["step"] == "b"
    assert [event["type"] for event in ended(run)] == ["StepEnded", "RouteTaken", "Blocked"] and present(
        run.run["blocked"]
    )["reason"] == "TWO->COMPLETE"


def test_within_a_stage_and_on_a_way_back_no_proof_is_needed() -> None:
    back = "on: {NEEDS_REVISION: {route: [a, b, c], at_most: 1, then: halt}}"
    run = Driven(steps(staged("a", "ONE"), staged("b", "ONE", "evidence_for_next: [b.md]"), staged("c", "TWO", back)))
    assert ended(run)[-1]["type"] == "RouteTaken"
    run.do("StoreArtifact", name="b", path="docs/x/b.md", sha256="1", size=1)
    assert ended(run)[-1]["type"] == "RouteTaken" and run.run["queue"][0]["step"] == "c"
    ended(run, "NEEDS_REVISION")
    assert run.run["status"] == "running" and run.run["queue"][0]["step"] == "a"


# ---- each rule by itself


def case(queue: Any = (), **more: Any) -> Any:
    from tenuto.core.decide import Case
    from tenuto.core.parts import new_repo, new_run

    run: Any = {**new_run(), "id": "x", "queue": list(queue), **more}
    steps: Any = [
        {
            "id": name,
            "stage": stage,
            "number": name,
            "aggregate": None,
            "evidence_for_next": [f"{name}.md"],
            "when": "always",
        }
        for name, stage in (("a", "ONE"), ("b", "TWO"), ("c", "TWO"), ("d", ""))
    ]
    pipeline: Any = {"steps": steps, "memory": "", "documents": "docs/{slug}", "switches": {}}
    asked: Any = {"at": "2026-11-15T10:00:00.000Z", "by": "ada"}
    return Case(pipeline, new_repo(), run, asked)


def step(name: str = "b", stage: str = "", kind: str = "agent", **on: Any) -> Any:
    return {
        "id": name,
        "kind": kind,
        "stage": stage,
        "on": on,
        "agent": {"out": [], "command": None},
        "modes": {},
        "aggregate": None,
    }


def outcome(name: str = "ERROR", reason: str = "", *because: str) -> Any:
    return {"name": name, "because": list(because), "reason": reason}


def to(name: str, **more: Any) -> Any:
    return {"do": "go_on", "to": name, "carry": "", **more}


def route(*names: str, **more: Any) -> Any:
    legs = [{"step": name, "mode": "", "only": [], "items": ""} for name in names]
    return {
        "do": "route",
        "route": legs,
        "because": "",
        "when": "always",
        "otherwise": None,
        "then": None,
        "at_most": 1,
        "counter": "k",
        "with": [],
        "restart": "",
        "resets": [],
        **more,
    }


def followed(at: Any, where: Any, what: Any) -> list[Any]:
    from tenuto.core.visit import follow

    return follow(at, where, what, lambda when: bool(when == "always"))


def types(events: list[Any]) -> list[str]:
    return [event["type"] for event in events]


FAIL: Any = {"do": "fail", "reason": ""}


def test_an_outcome_that_the_table_does_not_have_is_an_error_and_without_one_the_run_fails() -> None:
    odd = outcome("ESCALATE")
    assert followed(case(), step(ERROR=to("d")), odd)[0]["queue"][0]["step"] == "d"
    assert types(followed(case(), step(DONE=to("d")), odd)) == ["Failed"]
    assert types(followed(case(), step(ERROR=FAIL, ESCALATE=to("d")), odd)) == ["RouteTaken"]


def test_a_way_back_for_another_reason() -> None:
    back = {"because": "m"}
    assert types(followed(case(), step(ERROR=route("a", "b", **back, then=to("d"))), outcome("ERROR", "", "n"))) == [
        "RouteTaken"
    ]
    assert (
        followed(case(), step(ERROR=route("a", "b", **back, then=to("d"))), outcome("ERROR", "", "n"))[0]["queue"][0][
            "step"
        ]
        == "d"
    ), "what is said for then"
    assert types(followed(case(), step(ERROR=route("a", "b", **back)), outcome("ERROR", "", "n"))) == ["Failed"]
    assert followed(case(), step(ERROR=route("a", "b", **back)), outcome("ERROR", "", "n", "m"))[0]["route"] == "k"


def test_a_block_names_the_stage_and_the_step_waits() -> None:
    for stage in ("ONE", ""):
        again, blocked = followed(
            case([{"step": "c"}]), step(stage=stage, ERROR={"do": "block", "reason": "look"}), outcome()
        )
        assert ([leg["step"] for leg in again["queue"]], blocked["reason"], blocked["stage"], blocked["missing"]) == (
            ["b", "c"],
            "look",
            stage or None,
            [],
        )


def test_a_way_back_may_begin_a_stage_again() -> None:
    done = [{"stage": "ONE"}, {"stage": "TWO"}, {"stage": "ONE"}]
    taken, restarted = followed(
        case(restarts=done), step(ERROR=route("a", "b", restart="ONE")), outcome("ERROR", "too bad")
    )
    assert (restarted["stage"], restarted["to"], restarted["reason"], taken["reason"]) == (
        "ONE",
        "a",
        "b: too bad (restart 3)",
        "too bad",
    )
    assert (
        followed(case(), step(ERROR=route("a", "b", restart="ONE")), outcome())[1]["reason"] == "b: ERROR (restart 1)"
    )
    assert types(followed(case(), step(ERROR=route("a", "b")), outcome())) == ["RouteTaken"]


def test_what_waits_and_where_it_goes_on() -> None:
    def waits(name: str, *queue: str) -> Any:
        return followed(
            case([{"step": one, "mark": 1} for one in queue]), step("a", DONE=to("c"), ERROR=to("c")), outcome(name)
        )[0]["queue"]

    assert [leg["step"] for leg in waits("DONE", "b", "d")] == ["b", "d"], "a leg that is done leads to the next leg"
    assert [leg["step"] for leg in waits("ERROR", "b", "d")] == ["c", "d"] and [
        leg["step"] for leg in waits("ERROR", "b")
    ] == ["c"]
    assert waits("ERROR", "b", "c", "d") == [{"step": "c", "mark": 1}, {"step": "d", "mark": 1}], (
        "the leg that waits for it, with what it was told"
    )
    assert [leg["step"] for leg in waits("ERROR")] == ["c"]


def test_only_a_way_forward_needs_proof() -> None:
    back = case([{"step": "a"}])
    assert (
        types(followed(back, step("b", "TWO", DONE=to("c")), outcome("DONE"))) == ["RouteTaken"]
        and back.run["status"] != "blocked"
    )


def attempt(name: str, seat: str, summary: str, verdict: str = "ERROR", item: str | None = None) -> Any:
    return {"step": name, "item": item, "summary": summary, "verdict": verdict, "extra": {"seat": seat}}


@pytest.mark.parametrize(
    ("attempts", "because", "error"),
    [
        ([attempt("b", "m", "mine"), attempt("a", "m", "another step's")], ["m"], "b ended with ERROR (m): r: mine"),
        (
            [attempt("b", "m", "first"), attempt("b", "m", "last"), attempt("b", "n", "another's")],
            ["m"],
            "b ended with ERROR (m): r: last",
        ),
        ([attempt("b", "m", "fine", "DONE")], ["m"], "b ended with ERROR (m): r"),
        ([attempt("b", "m", "x")], [], "b ended with ERROR: r"),
        ([attempt("b", "m@1", "an item's", item="1")], ["1"], "b ended with ERROR (1): r: an item's"),
        ([attempt("b", "m", "r")], ["m"], "b ended with ERROR (m): r"),
        ([attempt("b", "m", "z" * 400)], ["m"], "b ended with ERROR (m): r: " + "z" * 300),
        ([], ["m"], "b ended with ERROR (m): r"),
    ],
)
def test_what_a_failure_says(attempts: Any, because: list[str], error: str) -> None:
    at = case(attempts={str(number): one for number, one in enumerate(attempts)})
    assert followed(at, step(), outcome("ERROR", "r", *because))[0]["error"] == error


# ---- agents that were lost


def chair(name: str) -> Any:
    return {
        "id": name,
        "retry": {"ERROR": 0, "NEEDS_REVISION": 0, "LOST": 0},
        "questions": 0,
        "weight": "normal",
        "verdicts": ["DONE", "NEEDS_REVISION", "ERROR"],
        "out": [],
        "command": None,
    }


def together(aggregate: Any = None, **on: Any) -> Any:
    return {
        **step(kind="cluster", **on),
        "cluster": {"first": None, "members": [chair(name) for name in "lmno"], "quorum": 4},
        "aggregate": aggregate,
    }


def heard(**seats: list[str]) -> Any:
    states = {
        key: {"results": results, "open": None, "tries": len(results), "severities": [], "answer": None}
        for key, results in seats.items()
    }
    return {"step": "b", "leg": {"step": "b", "mode": "deep"}, "seats": states}


def test_a_run_fails_for_what_an_agent_said_and_not_for_one_that_was_lost() -> None:
    current_visit = heard(l=["LOST", "DONE"], m=["LOST"], n=["ERROR"], o=["NEEDS_REVISION"], z=["DONE"])
    where = together(chair("z"), ERROR=FAIL)
    assert types(followed(case(current_visit=current_visit), where, outcome("ERROR", "", "n"))) == ["Failed"], (
        "m was lost, and it is not about m"
    )
    again, paused = followed(case([{"step": "c"}], current_visit=current_visit), where, outcome("ERROR", "", "n", "m"))
    assert (again["type"], [leg["step"] for leg in again["queue"]], again["queue"][0]["mode"], again["reason"]) == (
        "RouteTaken",
        ["b", "c"],
        "deep",
        "LOST",
    )
    assert list(again["queue"][0]["kept"]) == ["l", "o"], (
        "what was answered is kept; whoever draws the conclusion draws it anew"
    )
    assert (paused["type"], paused["step"]) == ("Paused", "b") and paused["reason"].endswith(": m")
    told = {
        "plan": [],
        "each": None,
        "cluster": None,
        "quorum": "",
        "seats": [chair("m")],
        "per_item": "named",
        "default": "m",
    }
    items = {**step(kind="waves", ERROR=FAIL), "waves": told}
    again, paused = followed(
        case(current_visit=heard(**{"m@1": ["LOST"], "m@2": ["DONE"]})), items, outcome("ERROR", "", "1")
    )
    assert again["queue"][0]["kept"] == {} and paused["reason"].endswith(": m for 1"), (
        "items that are done are known as such"
    )
    assert types(
        followed(case(current_visit=heard(**{"m@1": ["LOST"], "m@2": ["ERROR"]})), items, outcome("ERROR", "", "2"))
    ) == ["Failed"]


def test_what_a_cluster_hands_on_is_its_aggregators_or_its_members() -> None:
    members = [{**chair(name), "out": [f"{name}.md"]} for name in "lm"]
    bare = {**together(DONE=to("d", carry="doubts")), "cluster": {"first": None, "members": members, "quorum": 2}}
    assert followed(case(), bare, outcome("DONE"))[0]["carry"] == {"d": {"name": "doubts", "paths": ["l.md", "m.md"]}}
    led = {**bare, "aggregate": {**chair("z"), "out": ["z.md"]}}
    assert followed(case(), led, outcome("DONE"))[0]["carry"]["d"]["paths"] == ["z.md"]
    assert followed(case(), {**bare, "kind": "gate"}, outcome("DONE"))[0]["carry"]["d"]["paths"] == []
