"""Conditions of members and of routes: what a definition may say, and what comes of it in a run."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.budget import worst_case
from tenuto.core.pipeline.check import check
from tests.property.rehearsal import Rehearsal

WORD = {"type": "object", "properties": {"severe": {"type": "boolean"}}}


def cluster(*members: Any, **more: Any) -> dict[str, Any]:
    own = {"members": list(members), "quorum": 1}
    return {"id": "look", "cluster": own, **more}


def checked(*steps: Any, **more: Any) -> Any:
    pipeline, problems = check({"name": "p", "documents": "docs/{slug}", "steps": list(steps), **more})
    assert problems == []
    return pipeline


def wrong(*steps: Any, **more: Any) -> list[tuple[str, str]]:
    problems = check({"name": "p", "steps": list(steps), **more})[1]
    return [(problem["code"], ".".join(str(part) for part in problem["path"])) for problem in problems]


FIRST = {"id": "first", "agent": "w"}
SCAN = {"id": "first", "agent": {"role": "w", "result": {"schema": WORD}}}
PLAIN = {"role": "a"}


def member(when: Any) -> dict[str, Any]:
    return {"role": "b", "when": when}


def played(pipeline: Any, answers: dict[str, str] | None = None, **how: Any) -> Rehearsal:
    run = Rehearsal(pipeline, lambda attempt: (answers or {}).get(attempt["attempt"], "DONE"), **how)
    run.play()
    return run


def reason_of(run: Rehearsal) -> str:
    """Why it stands still, or failed."""
    failure, pause = run.run["failure"], run.run["pause"]
    return failure["error"] if failure else pause["reason"] if pause else ""


def test_a_member_takes_part_where_its_condition_holds() -> None:
    pipeline = checked(
        FIRST,
        cluster(PLAIN, member({"outcome": "first", "is": "DONE"}), member("off") | {"id": "c"}),
        switches={"off": False},
    )
    run = played(pipeline)
    assert run.dispatched == ["first-1-w-1", "look-1-a-1", "look-1-b-1"]
    assert run.run["status"] == "completed" and run.run["visits"][-1]["step"] == "look"
    started = [event for event in run.journal if event["type"] == "StepStarted"]
    assert started[-1]["leg"]["without"] == ["c"]


def test_the_quorum_is_as_high_as_before() -> None:
    """A condition lets nobody through with fewer opinions than its author asked for."""
    pipeline = checked(
        FIRST, {"id": "look", "cluster": {"members": [PLAIN, member("off")], "quorum": 2}}, switches={"off": False}
    )
    run = played(pipeline)
    assert run.run["status"] == "failed" and "fewer than 2 outputs" in reason_of(run)


def test_who_took_no_part_is_asked_again_at_the_next_visit() -> None:
    last = {"id": "last", "agent": "w", "on": {"ERROR": {"route": ["look"], "at_most": 1}}}
    pipeline = checked(FIRST, cluster(PLAIN, member({"outcome": "last", "is": "ERROR"})), last)
    run = played(pipeline, {"last-1-w-1": "ERROR"})
    assert run.dispatched == ["first-1-w-1", "look-1-a-1", "last-1-w-1", "look-2-a-1", "look-2-b-1", "last-2-w-1"]


def test_the_plan_leaves_out_members_that_are_known_to_take_no_part() -> None:
    pipeline = checked(cluster(PLAIN, member({"param": "n", "more_than": 2})), params={"n": 1})
    assert worst_case(pipeline, 0, params={"n": 1})["attempts"] == 1
    assert worst_case(pipeline, 0, params={"n": 3})["attempts"] == 2
    assert worst_case(pipeline, 0)["attempts"] == 2


def test_a_route_is_taken_where_its_condition_holds_and_counts_only_then() -> None:
    back = {"route": ["first"], "at_most": 1, "when": {"param": "hard"}, "otherwise": {"pause": "not worth it"}}
    steps = (FIRST, {"id": "b", "agent": "w", "on": {"ERROR": back}})
    hard = played(checked(*steps, params={"hard": True}), {"b-1-w-1": "ERROR"})
    assert hard.run["status"] == "completed" and hard.run["routes"] == {"b.ERROR": 1}
    easy = played(checked(*steps, params={"hard": False}), {"b-1-w-1": "ERROR"})
    assert easy.run["status"] == "paused" and easy.run["routes"] == {}
    assert reason_of(easy).startswith("not worth it")


def test_without_an_otherwise_what_follows_the_bound_follows() -> None:
    back = {"route": ["first"], "at_most": 1, "when": {"param": "hard"}, "then": {"block": "no more"}}
    pipeline = checked(FIRST, {"id": "b", "agent": "w", "on": {"ERROR": back}}, params={"hard": False})
    assert played(pipeline, {"b-1-w-1": "ERROR"}).run["status"] == "blocked"


def test_a_route_may_ask_how_its_own_step_ended_and_what_it_handed_in() -> None:
    back = {
        "route": ["first"],
        "at_most": 1,
        "when": {"all": [{"outcome": "b", "is": "NEEDS_REVISION"}, {"not": {"result": "b", "field": "severe"}}]},
        "otherwise": "block",
    }
    step = {"id": "b", "agent": {"role": "w", "result": {"schema": WORD}}, "on": {"NOT_DONE": back}}
    pipeline = checked(FIRST, step)
    assert played(pipeline, {"b-1-w-1": "ERROR"}).run["status"] == "blocked"


@pytest.mark.parametrize(
    ("steps", "code", "path"),
    [
        ([{"id": "a", "agent": {"role": "w", "when": {"exists": "x"}}}], "bad-place", "steps.0.agent.when"),
        ([SCAN, cluster(PLAIN, member("nowhere"))], "unknown-switch", "steps.1.cluster.members.1.when"),
        (
            [SCAN, cluster(PLAIN, member({"result": "first", "field": "sever", "is": True}))],
            "unknown-field",
            "steps.1.cluster.members.1.when",
        ),
        ([SCAN, cluster(PLAIN, aggregate={"role": "z", "when": "x"})], "bad-place", "steps.1.aggregate.when"),
        (
            [SCAN, {**cluster(PLAIN, member({"exists": "x"})), "each": {"files": "*.py"}}],
            "bad-place",
            "steps.1.cluster.members.1.when",
        ),
        (
            [SCAN, {"id": "b", "agent": "w", "on": {"ERROR": {"route": ["first"], "at_most": 1, "when": "nowhere"}}}],
            "unknown-switch",
            "steps.1.on.ERROR.when",
        ),
        (
            [
                SCAN,
                {
                    "id": "b",
                    "agent": "w",
                    "on": {"ERROR": {"route": ["first"], "at_most": 1, "when": {"result": "first", "field": "sever"}}},
                },
            ],
            "unknown-field",
            "steps.1.on.ERROR.when",
        ),
        (
            [
                SCAN,
                {"id": "b", "agent": "w", "on": {"ERROR": {"route": ["first"], "at_most": 1, "otherwise": "pause"}}},
            ],
            "contradiction",
            "steps.1.on.ERROR.otherwise",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(steps: Any, code: str, path: str) -> None:
    assert wrong(*steps) == [(code, path)]


def test_both_read_to_themselves() -> None:
    back = {"route": ["first"], "at_most": 1, "when": {"exists": "x.md"}, "otherwise": "pause"}
    pipeline = checked(FIRST, cluster(PLAIN, member({"exists": "y.md"}), on={"ERROR": back}))
    assert check(pipeline) == (pipeline, [])


def test_who_takes_no_part_is_said_in_the_history() -> None:
    from tenuto.show.sentences import sentence

    pipeline = checked(FIRST, cluster(PLAIN, member("off")), switches={"off": False})
    told = [sentence(event) for event in played(pipeline).journal if event["type"] == "StepStarted"]
    assert told == ["first started, iteration 1", "look started, iteration 1, without b"]


def test_a_mistyped_word_for_what_runs_is_told_with_the_nearest() -> None:
    problems = check({"name": "p", "steps": [{"id": "a", "pipelin": "quick"}, {"id": "b", "comand": ["true"]}]})[1]
    assert [problem["hint"] for problem in problems] == ["did you mean 'pipeline'?", "did you mean 'command'?"]
    problems = check({"name": "p", "steps": [{"id": "a"}]})[1]
    assert problems[0]["hint"].startswith("give exactly one of: agent,")
