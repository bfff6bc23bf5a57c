"""What was done of a step's items before an engine took over: each rule of core/by_hand.py."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.decisions.engine import covered, made
from tenuto.core.parts import new_run

T = [f"2026-11-15T10:00:0{second}.000Z" for second in range(10)]


def seat(name: str, role: str = "") -> Any:
    return {"id": name, "role": role or name, "out": []}


def step(name: str, kind: str = "agent", out: str = "") -> Any:
    return {
        "id": name,
        "kind": kind,
        "agent": {**seat("planner"), "out": [out] if out else []},
        "modes": {},
        "aggregate": None,
    }


def waves(per_item: str = "side-by-side", *seats: Any) -> Any:
    told = {
        "seats": list(seats) or [seat("coder"), seat("tester")],
        "per_item": per_item,
        "each": None,
        "cluster": None,
        "quorum": "",
        "default": "coder",
        "plan": ["plan.md"],
    }
    return {"id": "work", "kind": "waves", "waves": told}


def item(name: str, title: str = "", agent: str | None = None) -> Any:
    return {"id": name, "title": title or f"the {name}", "files": [], "depends_on": [], "agent": agent, "wave": None}


ITEMS = [item("1"), item("2")]
STEPS = [step("plan", out="plan.md"), {"id": "gate", "kind": "gate"}, waves(), step("later")]


def visit(name: str, ended: int | None, status: str = "success", item: str | None = None) -> Any:
    return {"step": name, "item": item, "status": status, "ended_at": None if ended is None else T[ended]}


def attempt(
    role: str,
    ended: int | None,
    status: str = "completed",
    verdict: str | None = None,
    item: str | None = None,
    task: str = "",
    step: str = "work",
    **extra: Any,
) -> Any:
    return {
        "role": role,
        "item": item,
        "task": task,
        "status": status,
        "verdict": verdict,
        "ended_at": None if ended is None else T[ended],
        "extra": extra,
        "step": step,
    }


def commit(name: str, at: int) -> Any:
    return {"step": name, "at": T[at]}


def found(
    visits: Any = (),
    attempts: Any = (),
    commits: Any = (),
    items: Any = None,
    plan: Any = ITEMS,
    at: Any = None,
    steps: Any = None,
) -> list[str]:
    run: Any = new_run()
    run.update(
        visits=list(visits),
        attempts={str(number): one for number, one in enumerate(attempts)},
        commits=list(commits),
        items=items or {},
    )
    pipeline: Any = {"steps": steps or STEPS}
    return made(pipeline, run, at or waves(), plan)


def test_nothing_was_done() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("visits", "keys"),
    [
        ([visit("coder:1", 1)], ["coder@1"]),
        ([visit("coder:task-1", 1)], ["coder@1"]),
        ([visit("coder", 1)], ["coder@1", "coder@2"]),
        ([visit("tester", 1, item="2")], ["tester@2"]),
        ([visit("coder:9", 1)], []),
        ([visit("nobody:1", 1)], []),
        ([visit("coder:1", 1, "failed")], []),
        ([visit("coder:1", None, "running")], []),
        ([visit("coder:1", 1), visit("coder:1", 2, "failed")], []),
        ([visit("coder:1", 1, "failed"), visit("coder:1", 2)], ["coder@1"]),
        ([visit("coder:1", 2), visit("coder:1", 1, "failed")], ["coder@1"]),
        ([visit("coder:1", 1), visit("tester:1", 2, "failed")], []),
        ([visit("coder:1", 1), visit("tester:1", 2)], ["coder@1", "tester@1"]),
        ([visit("coder:1", 1), visit("coder:2", 2, "failed")], ["coder@1"]),
        ([visit("Plugin:CODER", 1)], []),
        ([visit("plugin:x", 1)], []),
        ([visit("coder:1", None), visit("tester:1", 1)], ["coder@1", "tester@1"]),
        ([visit("coder:1", 1), visit("coder:1", 2, "skipped")], ["coder@1"]),
        ([visit("work", 1)], []),
        ([visit("plan", 1)], []),
        ([visit("later", 1)], []),
    ],
)
def test_phases_that_say_so(visits: Any, keys: list[str]) -> None:
    assert found(visits) == keys


@pytest.mark.parametrize(
    ("attempts", "keys"),
    [
        ([attempt("coder", 1, item="1")], ["coder@1"]),
        ([attempt("coder", 1, task="task-2")], ["coder@2"]),
        ([attempt("CODER", 1, task="implement_step_1_middleware")], ["coder@1"]),
        ([attempt("p:coder", 1, item="1")], ["coder@1"]),
        ([attempt("coder", 1, task="item_2_parser")], ["coder@2"]),
        ([attempt("coder", 1)], []),
        ([attempt("coder", None, item="1")], []),
        ([attempt("coder", 1, "failed", item="1")], []),
        ([attempt("coder", 1, verdict="DONE", item="1")], ["coder@1"]),
        ([attempt("coder", 1, verdict="NEEDS_REVISION", item="1")], []),
        ([attempt("coder", 1, item="1", seat="coder@1")], []),
        ([attempt("coder", 1, task="all of it")], []),
        ([attempt("coder", 1, item="1", task="task-2")], ["coder@1"]),
        ([attempt("coder", 1, item="1"), attempt("coder", 2, "failed", item="1")], []),
    ],
)
def test_attempts_that_say_so(attempts: Any, keys: list[str]) -> None:
    assert found(attempts=attempts) == keys


def test_a_seat_is_known_by_its_name_or_its_role() -> None:
    two = waves("side-by-side", seat("first", "some_coder"), seat("second", "other"))
    assert found([visit("some-coder:1", 1)], at=two) == ["first@1"] and found([visit("second:1", 1)], at=two) == [
        "second@1"
    ]
    named = waves("named")
    assert found([visit("tester:1", 1)], plan=[item("1", agent="tester"), item("2")], at=named) == ["tester@1"]
    assert found([visit("tester:2", 1)], plan=[item("1", agent="tester"), item("2")], at=named) == [], (
        "that one is the default's"
    )


def test_work_counts_while_what_it_was_made_from_stands() -> None:
    assert (
        found([visit("plan", 1), visit("coder:1", 2)]) == ["coder@1"]
        and found([visit("coder:1", 1), visit("plan", 2)]) == []
    )
    assert found([visit("plan", 1), visit("coder:1", 2), visit("plan", 3)]) == [], "after the last of it"
    assert found([visit("plan", 2), visit("coder:1", 2)]) == ["coder@1"], "at the same moment"
    assert found([visit("coder:1", 1), visit("plan", 2, "failed")]) == ["coder@1"], "what failed changed nothing"
    assert found([visit("coder:1", 1), visit("gate", 2)]) == ["coder@1"] and found(
        [visit("coder:1", 1), visit("later", 2)]
    ) == ["coder@1"]
    assert found([visit("coder:1", 1), visit("plan", None)]) == ["coder@1"]
    for kind in ("agent", "cluster", "waves"):
        steps = [{**STEPS[0], "kind": kind}, *STEPS[1:]]
        assert found([visit("coder:1", 1), visit("plan", 2)], steps=steps) == [], kind


def test_a_commit_stands_for_everybody_who_works_on_the_item() -> None:
    assert found(commits=[commit("step_1", 1)]) == ["coder@1", "tester@1"]
    assert found([visit("plan", 2)], commits=[commit("step_1", 1)]) == []
    engine = attempt("coder", 3, item="1", seat="coder@1")
    assert (
        found(attempts=[engine], commits=[commit("step_1", 2)])
        == []
        == found(attempts=[engine], commits=[commit("step_1", 3)])
    ), "the engine's own"
    assert found(attempts=[engine], commits=[commit("step_1", 4)]) == ["coder@1", "tester@1"]
    assert found(attempts=[attempt("coder", None, item="1", seat="coder@1")], commits=[commit("step_1", 9)]) == [], (
        "it is still under way"
    )
    assert found(attempts=[engine], commits=[commit("step_2", 2)]) == ["coder@2", "tester@2"]
    assert found(attempts=[attempt("coder", 3, item="1")], commits=[commit("step_1", 2)]) == ["coder@1", "tester@1"], (
        "what a person's agent did later takes nothing away"
    )
    assert found([visit("coder:1", 2)], [engine]) == ["coder@1"], "a phase of a person counts whenever it ended"
    assert found([visit("tester:1", 2, "failed")], commits=[commit("step_1", 1)]) == [], "the last word of each counts"


def known(title: str = "the 1", status: str = "completed", **extra: Any) -> Any:
    return {"1": {"title": title, "status": status, "extra": extra}}


def test_items_that_were_marked_as_done() -> None:
    assert found(items=known()) == ["coder@1", "tester@1"]
    assert found(items=known(status="failed")) == [] == found(items=known(id="1")), "not done, or an engine's own"
    assert found(items={"9": {"title": "nine", "status": "completed", "extra": {}}}) == []
    assert found([visit("tester:1", 2, "failed")], items=known()) == ["coder@1", "tester@1"], (
        "who marks it means all of it"
    )
    wrote = attempt("planner", 2, step="plan", seat="planner")
    assert (
        found(attempts=[wrote], items=known()) == ["coder@1", "tester@1"]
        and found(attempts=[wrote], items=known("another")) == []
    ), "an engine's agent wrote the plan since"
    assert found(items=known("another")) == ["coder@1", "tester@1"]
    for harmless in (
        attempt("planner", 2, step="later", seat="planner"),
        attempt("planner", 2, "failed", step="plan", seat="planner"),
        attempt("planner", 2, step="gone", seat="x"),
        attempt("planner", 2, step="plan"),
    ):
        assert found(attempts=[harmless], items=known("another")) == ["coder@1", "tester@1"], harmless


def test_a_name_that_fits_two_items_fits_none() -> None:
    two = [item("a", "same"), item("b", "same")]
    assert (
        found([visit("coder:same", 1)], plan=two)
        == []
        == found(items={"same": {"title": "", "status": "completed", "extra": {}}}, plan=two)
    )


@pytest.mark.parametrize(
    ("visits", "since", "done"),
    [
        ([], "", False),
        ([visit("coder:1", 1), visit("coder:2", 2)], "", True),
        ([visit("coder:1", 1)], "", False),
        ([visit("coder:1", 1), visit("coder:2", 2, "failed")], "", False),
        ([visit("coder:1", 1), visit("coder:2", 2)], T[2], False),
        ([visit("coder:1", 2), visit("coder:2", 2)], T[2], True),
        ([visit("tester:1", 1), visit("tester:2", 2)], "", False),
        ([visit("coder", 1)], "", False),
        ([visit("coder:1", 1), visit("coder:2", 2), visit("coder:1", 3, "failed")], "", False),
        ([visit("coder:1", 1), visit("coder:2", None)], T[0], False),
    ],
)
def test_a_step_whose_work_was_done_item_by_item(visits: Any, since: str, done: bool) -> None:
    run: Any = {**new_run(), "visits": visits, "items": {"1": {"title": "one"}, "2": {"title": "two"}}}
    assert covered(run, step("coder"), since) is done
    itemless: Any = {**run, "items": {}}
    assert covered(itemless, step("coder"), since) is False, "of no items nothing is done"
    rows: Any = {**waves(), "id": "coder"}
    assert covered(run, rows, since) is False, "one with items of its own knows better"
