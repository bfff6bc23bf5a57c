"""Who may be asked now, whose seat is exhausted, and what came of it: core/seats.py and core/visit.py, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core import seats, visit
from tenuto.core.visit import outcome


def seat(name: str = "a", error: int = 0, revision: int = 0, lost: int = 0, questions: int = 0, **more: Any) -> Any:
    return {
        "id": name,
        "retry": {"ERROR": error, "NEEDS_REVISION": revision, "LOST": lost},
        "questions": questions,
        "weight": "normal",
        "verdicts": ["DONE", "NEEDS_REVISION", "ERROR"],
        "out": [],
        **more,
    }


def state(*results: str, open: str | None = None, **more: Any) -> Any:
    return {"results": list(results), "open": open, "tries": len(results), "severities": [], "answer": None, **more}


@pytest.mark.parametrize(
    ("chair", "results", "left"),
    [
        (seat(), (), True),
        (seat(), ("DONE",), False),
        (seat(), ("ERROR",), False),
        (seat(error=1), ("ERROR",), True),
        (seat(error=1), ("ERROR", "ERROR"), False),
        (seat(error=2), ("ERROR", "ERROR"), True),
        (seat(error=1), ("ERROR", "DONE"), False),
        (seat(), ("NEEDS_REVISION",), False),
        (seat(revision=1), ("NEEDS_REVISION",), True),
        (seat(revision=1), ("NEEDS_REVISION",) * 2, False),
        (seat(error=1), ("NEEDS_REVISION",), False),
        (seat(revision=1), ("ERROR",), False),
        (seat(revision=1, error=1), ("NEEDS_REVISION", "ERROR"), True),
        (seat(), ("LOST",), False),
        (seat(lost=1), ("LOST",), True),
        (seat(lost=1), ("LOST", "LOST"), False),
        (seat(lost=1, error=1), ("LOST", "LOST"), True),
        (seat(lost=1, error=1), ("LOST", "LOST", "LOST"), False),
        (seat(lost=1, error=1), ("LOST", "LOST", "ERROR"), False),
        (seat(lost=1, error=1), ("LOST", "ERROR"), True),
        (seat(lost=1, error=1), ("ERROR", "LOST"), True),
        (seat(lost=0, error=1), ("ERROR", "LOST"), False),
        (seat(error=1), ("LOST",), True),
        (seat(), ("QUESTION",), False),
        (seat(questions=1), ("QUESTION",), True),
        (seat(questions=1), ("QUESTION", "QUESTION"), False),
        (seat(questions=1), ("QUESTION", "DONE"), False),
        (seat(error=1), ("maybe",), True),
        (seat(), ("maybe",), False),
    ],
)
def test_how_often_a_seat_is_taken(chair: Any, results: tuple[str, ...], left: bool) -> None:
    """Retries are counted per kind; a lost attempt beyond its own counts as an error; a word it may not say is one."""
    found = state(*results)
    assert seats.attempts_left(chair, found) is left
    assert seats.exhausted(chair, found) is (bool(results) and not left)
    assert seats.attempts_left(chair, state(*results, open="x")) is False, "it is under way"
    assert seats.exhausted(chair, state(*results, open="x")) is False


def test_a_seat_that_nobody_took() -> None:
    assert seats.attempts_left(seat(), None) is True
    assert (
        seats.exhausted(seat(), None) is False
        and seats.word_of(seat(), None) is None
        and seats.word_of(seat(), state()) is None
    )


@pytest.mark.parametrize(
    ("last", "word"),
    [
        ("DONE", "DONE"),
        ("NEEDS_REVISION", "NEEDS_REVISION"),
        ("ERROR", "ERROR"),
        ("LOST", "ERROR"),
        ("QUESTION", "ERROR"),
        ("maybe", "ERROR"),
    ],
)
def test_the_last_word_counts(last: str, word: str) -> None:
    assert seats.word_of(seat(), state("DONE", last)) == word
    assert seats.result_of(seat(verdicts=["DONE"]), "NEEDS_REVISION") == "ERROR"


@pytest.mark.parametrize(
    ("found", "follows"),
    [
        ({"status": "lost", "verdict": None}, True),
        ({"status": "failed", "verdict": "PARKED"}, True),
        ({"status": "completed", "verdict": "QUESTION"}, True),
        ({"status": "completed", "verdict": "DONE"}, False),
        ({"status": "failed", "verdict": "ERROR"}, False),
    ],
)
def test_what_the_next_attempt_goes_on_with(found: Any, follows: bool) -> None:
    run: Any = {"attempts": {"x": found}}
    assert visit.unfinished(run, "x") == ("x" if follows else "")
    assert visit.unfinished(run, "y") == ""


@pytest.mark.parametrize(
    ("chair", "results", "lost"),
    [
        (seat(), ("LOST",), True),
        (seat(), ("ERROR",), False),
        (seat(), ("LOST", "ERROR"), False),
        (seat(error=1), ("LOST", "ERROR", "LOST"), True),
        (seat(), ("QUESTION",), False),
        (seat(error=1), ("LOST", "DONE"), False),
        (seat(), (), False),
        (seat(error=1), ("LOST", "maybe", "ERROR"), False),
    ],
)
def test_who_failed_only_because_attempts_were_lost(chair: Any, results: tuple[str, ...], lost: bool) -> None:
    assert seats.lost_its_tries(chair, state(*results)) is lost and seats.lost_its_tries(chair, None) is False


# ---- clusters


def cluster(
    first: Any = None, aggregate: Any = None, quorum: int = 0, rule: str = "quorum", members: str = "abc"
) -> Any:
    return {
        "id": "s",
        "kind": "cluster",
        "rule": rule,
        "aggregate": aggregate,
        "modes": {},
        "review": None,
        "coverage": None,
        "cluster": {"first": first, "members": [seat(name) for name in members], "quorum": quorum},
    }


def current_visit(leg: Any = None, **seats: Any) -> Any:
    return {
        "step": "s",
        "leg": leg or {},
        "seats": seats,
        "decision": None,
        "stopped_by": [],
        "wave_of": {},
        "group_of": {},
        "left": [],
        "busy": [],
    }


def only(step: Any) -> Any:
    """As much of a pipeline as a visit looks at."""
    return {"steps": [step]}


def turn(step: Any, where: Any) -> list[str]:
    run: Any = {}
    return [key for key, _, _ in visit.ready(only(step), run, step, where, 9)]


def test_the_first_alone_then_the_members_then_the_aggregator() -> None:
    step = cluster(first=seat("f"), aggregate=seat("z"))
    assert turn(step, current_visit()) == ["f"]
    assert turn(step, current_visit(f=state(open="x"))) == []
    assert turn(step, current_visit(f=state("DONE"))) == ["a", "b", "c"]
    assert turn(step, current_visit(f=state("DONE"), a=state("DONE"), b=state(open="x"))) == ["c"]
    every = {name: state("DONE") for name in "fabc"}
    assert turn(step, current_visit(**every)) == ["z"]
    assert turn(step, current_visit(**every, z=state("DONE"))) == []
    assert turn(cluster(), current_visit(**{name: state("DONE") for name in "abc"})) == [], (
        "without an aggregator it is over"
    )


def test_an_error_of_the_first_skips_the_members() -> None:
    assert turn(cluster(first=seat("f"), aggregate=seat("z"), quorum=0), current_visit(f=state("ERROR"))) == ["z"]
    assert turn(cluster(first=seat("f"), aggregate=seat("z"), quorum=1), current_visit(f=state("ERROR"))) == [], (
        "no output, no aggregator"
    )
    assert turn(cluster(first=seat("f", error=1)), current_visit(f=state("ERROR"))) == ["f"], "after its retries"
    assert turn(cluster(first=seat("f")), current_visit(f=state("NEEDS_REVISION"))) == ["a", "b", "c"]


def test_only_those_who_are_meant() -> None:
    step = cluster(first=seat("f"), aggregate=seat("z"))
    assert turn(step, current_visit({"only": ["b"]})) == ["b"]
    assert turn(step, current_visit({"only": ["f"]})) == ["f"]
    assert turn(step, current_visit({"only": ["b"]}, b=state("DONE"))) == ["z"]


def test_members_whose_condition_did_not_hold_take_no_part() -> None:
    """Nobody waits for them, and their outputs are not counted; the first may be among them."""
    step = cluster(first=seat("f"), aggregate=seat("z"), quorum=1)
    where = {"without": ["f", "b"]}
    assert turn(step, current_visit(where)) == ["a", "c"]
    assert turn(step, current_visit(where, a=state("DONE"), c=state("DONE"))) == ["z"]
    assert turn(cluster(quorum=2), current_visit({"without": ["a", "b"]}, c=state("DONE"))) == []


@pytest.mark.parametrize(
    ("words", "outputs"),
    [(("DONE", "DONE", "DONE"), 3), (("DONE", "NEEDS_REVISION", "ERROR"), 2), (("LOST", "ERROR", "maybe"), 0)],
)
def test_an_output_is_anything_but_an_error(words: tuple[str, ...], outputs: int) -> None:
    step = cluster()
    assert (
        seats.outputs_of(
            seats.team_of(step, current_visit()), {name: state(word) for name, word in zip("abc", words, strict=True)}
        )
        == outputs
    )
    for quorum in (outputs, outputs + 1):
        judged = judge(cluster(quorum=quorum), **{name: state(word) for name, word in zip("abc", words, strict=True)})
        assert judged["name"] == ("DONE" if quorum == outputs else "ERROR")
        if quorum > outputs:
            assert judged["because"] == [
                name for name, word in zip("abc", words, strict=True) if word not in ("DONE", "NEEDS_REVISION")
            ]


def judge(step: Any, where: Any = None, settings: Any = None, **seats: Any) -> Any:
    run: Any = {"current_visit": where or current_visit(**seats), "settings": settings or {}, "items": {}}
    return outcome(only(step), run)


@pytest.mark.parametrize(
    ("said", "word"), [("DONE", "DONE"), ("NEEDS_REVISION", "NEEDS_REVISION"), ("ERROR", "ERROR"), (None, "ERROR")]
)
def test_the_word_of_an_aggregator_without_a_rule(said: str | None, word: str) -> None:
    seats = {name: state("DONE") for name in "abc"} | ({"z": state(said)} if said else {})
    assert judge(cluster(aggregate=seat("z"), rule="word"), **seats)["name"] == word


def test_an_aggregator_can_be_stricter_and_never_more_lenient() -> None:
    step = cluster(aggregate=seat("z"), rule="v")
    good = {name: state("DONE") for name in "abc"}
    assert judge(step, **good, z=state("DONE"))["name"] == "DONE"
    stricter = judge(step, **good, z=state("ERROR"))
    assert stricter["name"] != "DONE" and stricter["because"] == ["z"] and "z says ERROR" in stricter["reason"]
    assert "z says nothing" in judge(step, **good)["reason"]
    bad = {**good, "b": state("ERROR")}
    lenient = judge(step, **bad, z=state("DONE"))
    assert lenient["name"] != "DONE" and lenient["because"] == ["b"]
    assert judge(cluster(rule="v"), **bad)["because"] == ["b"]


# ---- agents and gates


def agent(rule: str = "word", coverage: Any = None, severity: str = "HIGH") -> Any:
    return {
        "id": "s",
        "kind": "agent",
        "agent": seat("a"),
        "modes": {"m": seat("m")},
        "rule": rule,
        "review": {"min_block_severity": severity},
        "coverage": coverage,
    }


@pytest.mark.parametrize(
    ("last", "name", "because"),
    [
        ("DONE", "DONE", []),
        ("NEEDS_REVISION", "NEEDS_REVISION", ["a"]),
        ("ERROR", "ERROR", ["a"]),
        ("LOST", "ERROR", ["a"]),
    ],
)
def test_the_word_of_an_agent(last: str, name: str, because: list[str]) -> None:
    found = judge(agent(), a=state(last))
    assert (found["name"], found["because"]) == (name, because)
    assert judge(agent())["name"] == "ERROR", "it never answered"
    assert judge(agent(), current_visit({"mode": "m"}, m=state(last)))["name"] == name


@pytest.mark.parametrize(
    ("decision", "name"),
    [("approve", "DONE"), ("revise", "NEEDS_REVISION"), ("reject", "ERROR"), (None, "ERROR"), ("perhaps", "ERROR")],
)
def test_the_word_of_a_gate(decision: str | None, name: str) -> None:
    where = current_visit()
    where["decision"] = decision
    assert judge({"id": "s", "kind": "gate"}, where)["name"] == name
    assert judge({"id": "s", "kind": "action"}, where)["name"] == "DONE"


def test_an_audit_that_cannot_be_read_is_never_done() -> None:
    assert judge(agent("audit"), a=state("DONE", answer={"verdict": "PASS", "issues": []}))["name"] == "DONE"
    assert (
        judge(
            agent("audit"),
            a=state(
                "DONE", answer={"verdict": "DESIGN_FLAW", "issues": [{"severity": "critical", "description": "x"}]}
            ),
        )["name"]
        == "DESIGN_FLAW"
    )
    assert judge(agent("audit"), a=state("DONE", answer=None))["name"] != "DONE"
    assert judge(agent("audit"), a=state("ERROR", answer={"verdict": "PASS", "issues": []}))["name"] == "ERROR"


def test_a_review_is_read_with_the_runs_own_severity() -> None:
    blocked = {"status": "approved", "issues": [{"severity": "LOW", "description": "x"}]}
    assert judge(agent("review"), a=state("DONE", answer=blocked))["name"] == "DONE"
    assert judge(agent("review", severity="LOW"), a=state("DONE", answer=blocked))["name"] == "NEEDS_REVISION"
    own = {"reviewPolicy": {"minBlockSeverity": "LOW"}}
    assert judge(agent("review"), settings=own, a=state("DONE", answer=blocked))["name"] == "NEEDS_REVISION"
    assert judge(agent("review"), a=state("DONE", answer=None))["name"] != "DONE"


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        (79.9, "LOW_COVERAGE"),
        (80, "DONE"),
        (80.1, "DONE"),
        (True, "LOW_COVERAGE"),
        ("80", "LOW_COVERAGE"),
        (None, "LOW_COVERAGE"),
        ({"percent": 80}, "DONE"),
        ({"lines": 80}, "DONE"),
        ({"percent": 79, "lines": 99}, "LOW_COVERAGE"),
        ({}, "LOW_COVERAGE"),
    ],
)
def test_coverage_at_its_threshold(figure: Any, name: str) -> None:
    said = {"status": "approved", "issues": [], "coverage": figure}
    assert judge(agent("review", {"threshold": 80}), a=state("DONE", answer=said))["name"] == name
    assert judge(agent("review"), a=state("DONE", answer=said))["name"] == "DONE", "nobody asked for a figure"
    if name == "DONE":
        assert (
            judge(agent("review", {"threshold": 80}), settings={"coverageThreshold": 81}, a=state("DONE", answer=said))[
                "name"
            ]
            == "LOW_COVERAGE"
        )


# ---- waves


def waves(
    per_item: str = "named",
    order: str = "barrier",
    on_error: str = "stop",
    at_once: int | None = None,
    seats: str = "ab",
) -> Any:
    told = {
        "seats": [seat(name) for name in seats],
        "per_item": per_item,
        "each": None,
        "cluster": None,
        "quorum": "",
        "default": seats[0],
        "order": order,
        "on_item_error": on_error,
        "at_once": at_once,
    }
    return {"id": "s", "kind": "waves", "waves": told, "rule": "word", "aggregate": None}


def item(status: str = "pending", agent: str = "", *before: str) -> Any:
    return {"status": status, "agent": agent, "depends_on": list(before)}


def where(left: str, busy: str = "", waves_: Any = None, stopped: str = "", groups: Any = None, **seats: Any) -> Any:
    made = current_visit(**seats)
    made.update(left=list(left), busy=list(busy), wave_of=waves_ or dict.fromkeys(left, 0), stopped_by=list(stopped))
    made["group_of"] = groups or dict(made["wave_of"])
    return made


def places(step: Any, items: Any, at: Any, most: int = 9) -> list[str]:
    run: Any = {"items": items}
    return [key for key, _, _ in visit.ready(only(step), run, step, at, most)]


def test_the_rest_of_the_current_wave_may_start() -> None:
    items = {"1": item(), "2": item(), "3": item()}
    order = {"1": 0, "2": 0, "3": 1}
    assert places(waves(), items, where("123", waves_=order)) == ["a@1", "a@2"]
    assert places(waves(), items, where("23", waves_=order, busy="2")) == ["a@2"]
    assert places(waves(), items, where("3", waves_=order)) == ["a@3"]
    assert places(waves(), items, where("", waves_=order)) == []
    assert places(waves(at_once=1), items, where("123", waves_=order)) == ["a@1"]
    assert places(waves(), items, where("123", waves_=order), most=1) == ["a@1"]
    assert places(waves(), items, where("123", waves_=order, groups={"1": 0, "2": 1, "3": 2})) == ["a@1"], (
        "a sub-wave at a time"
    )


def test_a_failed_item_stops_later_waves_where_the_step_says_so() -> None:
    items = {"1": item("failed"), "2": item(), "3": item()}
    order = {"1": 0, "2": 0, "3": 1}
    assert places(waves(), items, where("23", waves_=order, stopped="1")) == ["a@2"], "the wave's remaining items run"
    assert places(waves(), items, where("3", waves_=order, stopped="1")) == []
    assert places(waves(on_error="skip-dependents"), items, where("3", waves_=order, stopped="1")) == ["a@3"]


def test_rolling_starts_whatever_its_dependencies_let() -> None:
    step = waves(order="rolling")
    items = {"1": item(), "2": item("pending", "", "1"), "3": item("pending", "", "9")}
    assert places(step, items, where("123")) == ["a@1", "a@3"], "what is not in the plan holds nobody up"
    items["1"] = item("completed")
    assert places(step, items, where("23")) == ["a@2", "a@3"]
    items["1"] = item("failed")
    assert places(step, items, where("23", stopped="1")) == ["a@3"]
    assert places(step, items, where("23")) == ["a@2", "a@3"], "one that failed and stops nobody"
    assert places(step, items, where("23", busy="3", waves_={"2": 0, "3": 0})) == ["a@3", "a@2"]
    assert places(step, items, where("32", busy="3", waves_={"2": 0, "3": 0})) == ["a@3", "a@2"], (
        "one that is under way does not start again"
    )


def test_the_seat_that_an_item_names_or_every_seat() -> None:
    items = {"1": item("pending", "b")}
    assert places(waves(), items, where("1")) == ["b@1"]
    assert places(waves("side-by-side"), items, where("1")) == ["a@1", "b@1"]
    assert places(waves("in-turn"), items, where("1")) == ["a@1"]
    assert places(waves("in-turn"), items, where("1", **{"a@1": state(open="x")})) == []
    assert places(waves("in-turn"), items, where("1", **{"a@1": state("DONE")})) == ["b@1"]
    assert places(waves("in-turn"), items, where("1", **{"a@1": state("DONE"), "b@1": state("DONE")})) == []


@pytest.mark.parametrize(
    ("per_item", "words", "word"),
    [
        ("side-by-side", ("DONE", "DONE"), "DONE"),
        ("side-by-side", ("DONE", "ERROR"), "ERROR"),
        ("side-by-side", ("NEEDS_REVISION", "DONE"), "NEEDS_REVISION"),
        ("side-by-side", ("NEEDS_REVISION", "ERROR"), "ERROR"),
        ("side-by-side", ("DONE", None), None),
        ("side-by-side", ("ERROR", None), None),
        ("in-turn", ("ERROR", None), "ERROR"),
        ("in-turn", ("DONE", None), None),
        ("in-turn", ("DONE", "DONE"), "DONE"),
    ],
)
def test_the_word_of_an_item_is_the_worst_of_its_seats(
    per_item: str, words: tuple[str | None, ...], word: str | None
) -> None:
    seats = {f"{name}@1": state(said) for name, said in zip("ab", words, strict=True) if said}
    run: Any = {"items": {"1": item()}}
    assert visit.item_word(waves(per_item), run, where("1", **seats), "1") == word
    if words == ("DONE", "DONE"):
        assert visit.item_word(waves(per_item), run, where("1", **seats), "1", ("b@1", state("ERROR"))) == "ERROR", (
            "with this seat as given"
        )


@pytest.mark.parametrize(
    ("left", "stopped", "seats", "name"),
    [
        ("", "", {}, "DONE"),
        ("2", "", {}, "ERROR"),
        ("", "1", {"a@1": state("NEEDS_REVISION")}, "NEEDS_REVISION"),
        ("", "1", {"a@1": state("ERROR")}, "ERROR"),
        ("", "12", {"a@1": state("NEEDS_REVISION"), "a@2": state("ERROR")}, "ERROR"),
        ("", "9", {}, "DONE"),
    ],
)
def test_the_outcome_of_waves(left: str, stopped: str, seats: Any, name: str) -> None:
    at = where(left, waves_={"1": 0, "2": 0}, stopped=stopped, **seats)
    run: Any = {"current_visit": at, "settings": {}, "items": {"1": item(), "2": item()}}
    found = outcome(only(waves()), run)
    assert found["name"] == name
    assert found["because"] == ([] if name == "DONE" else [one for one in (stopped or left) if one in "12"])


def test_where_a_seat_of_a_stay_is_found() -> None:
    step = cluster(first=seat("f"), aggregate=seat("z"))
    assert [visit.seat_at(step, current_visit(), key)["id"] for key in ("f", "b", "z")] == ["f", "b", "z"]
    assert (
        visit.seat_at(agent(), current_visit(), "a")["id"] == "a"
        and visit.seat_at(agent(), current_visit({"mode": "m"}), "a")["id"] == "m"
    )
    assert visit.seat_at(waves(), current_visit(), "b@1")["id"] == "b"
    assert visit.seat_at(cluster(), current_visit(), "c")["id"] == "c"


def test_a_step_is_found_by_its_name_wherever_it_stands() -> None:
    one: Any = {"steps": [{"id": "p"}, {"id": "q"}]}
    other: Any = {"steps": [{"id": "q"}]}
    assert (
        visit.step_of(one, "q") is one["steps"][1]
        and visit.step_of(other, "q") is other["steps"][0]
        and visit.step_of(one, "q") is one["steps"][1]
    )
    with pytest.raises(KeyError):
        visit.step_of(other, "p")


def test_a_step_is_found_by_its_name_wherever_another_pipeline_had_it() -> None:
    def pipeline(*names: str) -> Any:
        return {"steps": [{"id": name} for name in names]}

    long, short, turned = pipeline("one", "two", "three"), pipeline("three"), pipeline("two", "three", "one")
    for asked in (long, short, turned, short, long):
        for step in asked["steps"]:
            assert visit.step_of(asked, step["id"]) is step
    visit.step_of(long, "three")
    for other in (short, pipeline("one", "two")):
        with pytest.raises(KeyError):
            visit.step_of(other, "two" if other is short else "three")


def test_members_are_judged_by_the_rule_of_their_step() -> None:
    """ct and r: severities count; v: the first one's error counts as such."""
    bad = state("DONE", severities=["Critical"])
    good = {name: state("DONE") for name in "abc"}
    for rule in ("ct", "r"):
        assert judge(cluster(rule=rule), **good)["name"] == "DONE"
        assert judge(cluster(rule=rule), **{**good, "b": bad})["name"] != "DONE", rule
        assert judge(cluster(rule="word"), **{**good, "b": bad})["name"] == "DONE"
    assert judge(cluster(rule="ct"), a=state("DONE"), b=state("DONE"))["name"] in ("DONE", "ERROR", "NEEDS_REVISION")


def test_the_first_of_them_is_judged_as_such() -> None:
    step = cluster(first=seat("f"), rule="v")
    good = {name: state("DONE") for name in "fabc"}
    assert (
        judge(step, **{**good, "f": state("ERROR")})["name"] == "ERROR"
        and judge(step, **{**good, "a": state("ERROR")})["name"] == "NEEDS_REVISION"
    )


def test_coverage_that_is_no_number_says_so() -> None:
    said = {"status": "approved", "issues": [], "coverage": "most of it"}
    assert judge(agent("review", {"threshold": 80}), a=state("DONE", answer=said))["reason"] == "no coverage figure"
    low = {**said, "coverage": 10}
    assert judge(agent("review", {"threshold": 80}), a=state("DONE", answer=low))["reason"] == "coverage 10 is below 80"
    assert (
        judge(agent("review", {"threshold": 1}), a=state("DONE", answer={**said, "coverage": True}))["name"]
        == "LOW_COVERAGE"
    )
