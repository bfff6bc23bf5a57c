"""What only the whole pipeline shows: each rule by itself, with the place where it is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.by_check import agent, back, checked, problems, wrong


def writes(name: str, *out: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "agent": {"role": "worker", "out": list(out)}, **more}


def gate(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "gate": more.pop("gate", {}), **more}


def waves(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "waves": {"plan": "docs/plan.md", "roles": ["worker"], **more}}


# ---- ways ------------------------------------------------------------------------------------------


def test_a_step_that_no_way_leads_to_and_how_one_would() -> None:
    [one] = problems(agent("a"), agent("b", aside=True))
    assert (one["path"], one["code"], one["hint"]) == (["steps", 1], "unreachable", "let a route name it")
    [one] = problems(agent("a", on={"DONE": {"go_on": "c"}}), agent("b"), agent("c"))
    assert (one["path"], one["hint"]) == (["steps", 1], "let an earlier step go on to it, or remove it")
    deep = back("a", then=back("b", counter="x", otherwise="fail", because="m", then={"go_on": "d"}))
    group = {"id": "c", "cluster": ["m", "n"], "on": {"DONE": "finish", "ERROR": deep}}
    assert wrong(agent("a"), agent("b", aside=True), group, agent("d")) == [], "however deep the way stands"


def test_a_run_does_not_begin_aside() -> None:
    assert wrong(agent("a", aside=True), agent("b")) == [("steps.0", "contradiction")]


@pytest.mark.parametrize(
    ("between", "problem"),
    [
        (gate("g"), [("steps.0", "past-a-gate")]),
        (gate("g", when="approval"), [("steps.0", "past-a-gate")]),
        (agent("g"), []),
        (gate("g", aside=True), []),
    ],
)
def test_no_way_leads_past_a_gate(between: Any, problem: Any) -> None:
    """One that stands aside is asked where a route leads there, and by nobody else."""
    assert wrong(agent("a", on={"ERROR": {"go_on": "b"}}), between, agent("b", on={"ERROR": back("g", "b")})) == problem


def test_two_gates_have_two_names() -> None:
    assert wrong(gate("a"), gate("b", gate={"name": "a"})) == [("steps.1.gate", "duplicate")]
    assert wrong(gate("a"), gate("b", gate={"name": "c"})) == []


# ---- counters --------------------------------------------------------------------------------------


def resets(counter: str, *others: str, **more: Any) -> dict[str, Any]:
    return back("a", counter=counter, resets=list(others), **more)


@pytest.mark.parametrize(
    ("on", "problem"),
    [
        ({"ERROR": resets("x", "y"), "NEEDS_REVISION": resets("y")}, []),
        ({"ERROR": resets("x", "nobody")}, ["unknown-counter"]),
        ({"ERROR": resets("x", "x")}, ["unbounded-route"]),
        ({"ERROR": resets("x", "y"), "NEEDS_REVISION": resets("y", "x")}, ["unbounded-route"]),
        ({"NEEDS_REVISION": resets("x", "y"), "ERROR": resets("y", "z", then=resets("z", "y"))}, ["unbounded-route"]),
        ({"ERROR": resets("x"), "NEEDS_REVISION": resets("x", at_most=2)}, ["contradiction"]),
        ({"ERROR": resets("x"), "NEEDS_REVISION": resets("x")}, []),
    ],
)
def test_counters_have_one_bound_and_never_reset_themselves(on: Any, problem: list[str]) -> None:
    assert wrong(agent("a", on=on)) == [("steps.0", code) for code in problem]


def test_a_restart_resets_the_counters_of_its_stage() -> None:
    """Not those of other stages, of a person's wishes, of coverage, or of restarts; and each once."""

    def staged(*more: Any, **restart: Any) -> Any:
        return checked(
            agent("before", stage="EARLIER", on={"ERROR": back("before")}),
            agent(
                "a",
                stage="S",
                on={
                    "ERROR": back("a", counter="shared"),
                    "NEEDS_REVISION": back("a", counter="shared", then=back("a", counter="deep")),
                },
            ),
            agent("t", stage="S", coverage={"threshold": 90, "back_to": "a", "at_most": 5}),
            agent("u", stage="S", coverage={"threshold": 90}, on={"LOW_COVERAGE": "block"}),
            gate("g", stage="S", gate={"revise": "a"}),
            agent("b", stage="S", on={"ERROR": {"restart": "S", "at_most": 1, **restart}, "NEEDS_REVISION": back("a")}),
        )["b"]["on"]["ERROR"]["resets"]

    assert staged() == ["shared", "deep", "b.NEEDS_REVISION"]
    assert staged(resets=["deep"]) == ["deep"], "unless its author says which"


# ---- files -----------------------------------------------------------------------------------------


def test_no_two_places_write_one_file() -> None:
    pair = {
        "members": [{"id": "x", "role": "worker", "out": "x.md"}, {"id": "y", "role": "worker", "optional": "x.md"}],
        "quorum": 2,
    }
    assert wrong({"id": "c", "cluster": pair}) == [("steps.0", "shared-output")]
    assert wrong(writes("a", "x.md"), writes("b", "x.md")) == [("steps.1", "shared-output")]
    assert wrong(writes("a", "x.md", modes={"again": {}}, on={"ERROR": back({"a": "again"})})) == [], (
        "a mode is the same place"
    )
    assert wrong(waves("w", record="w.json"), writes("b", "w.json"), existing=["docs/plan.md"]) == [
        ("steps.1", "shared-output")
    ]


@pytest.mark.parametrize(
    ("step", "read"),
    [
        ({"id": "r", "agent": {"role": "worker", "in": "x.md"}}, "x.md"),
        ({"id": "r", "agent": {"role": "worker", "if_present": "x.md"}}, "x.md"),
        (gate("r", gate={"show": "x.md"}), "x.md"),
        (waves("r", plan="x.md"), "x.md"),
        (waves("r", items="x/*.md"), "x/*.md"),
        ({"id": "r", "agent": {"role": "worker", "in": "*"}}, "*"),
    ],
)
def test_what_is_read_is_written_by_somebody(step: Any, read: str) -> None:
    [one] = problems(waves("w"), step, existing=["docs/plan.md"])
    assert (one["path"], one["code"]) == (
        ["steps", 1],
        "unknown-input",
    ) and f"'r' reads '{read}', which nothing writes" in one["message"]
    for top in ({"existing": ["docs/plan.md", read]}, {"existing": ["docs/plan.md"], "given": [read]}):
        assert wrong(waves("w"), step, **top) == []
    assert wrong(waves("w"), step, writes("late", read), existing=["docs/plan.md"]) == []
    assert wrong(waves("w", record=read.replace("*", "x")), step, existing=["docs/plan.md"]) == []


def test_a_way_back_that_names_no_mode_makes_none() -> None:
    assert checked(agent("a"), agent("b", on={"ERROR": back("a")}))["a"]["modes"] == {}


OUT = {"role": "worker", "out": "x.md"}


@pytest.mark.parametrize(
    "step",
    [
        {"id": "a", "agent": OUT},
        agent("a", modes={"again": OUT}, on={"ERROR": back({"a": "again"})}),
        {"id": "a", "cluster": {"first": OUT, "members": ["m"]}},
        {"id": "a", "cluster": [OUT]},
        {"id": "a", "cluster": ["m"], "aggregate": OUT},
        {"id": "a", "waves": {"plan": "docs/plan.md", "roles": [OUT]}},
    ],
)
def test_whoever_writes_in_a_step_has_written(step: Any) -> None:
    """For those who read it, as evidence, and against everybody else who would."""
    reads = {"id": "r", "agent": {"role": "worker", "in": "x.md"}, "evidence_for_next": ["x.md"]}
    assert wrong(step, reads, existing=["docs/plan.md"]) == []
    assert wrong(step, writes("b", "x.md"), existing=["docs/plan.md"]) == [("steps.1", "shared-output")]


def test_the_hint_for_an_unknown_input() -> None:
    reads = {"id": "r", "agent": {"role": "worker", "in": "spec.md"}}
    hint = (
        "list it under `existing` if it is there before the run; a file of the repository is handed in by a parameter "
        "of type file"
    )
    assert problems(reads, existing=[])[0]["hint"] == hint
    assert problems(reads, writes("a", "other.md"), existing=[])[0]["hint"] == f"{hint}; known: other.md"
    assert problems(reads, writes("a", "spce.md"), existing=[])[0]["hint"] == "did you mean 'spce.md'?"


def test_evidence_is_a_file_that_was_written_up_to_there() -> None:
    assert checked(writes("a", "x/a.md", evidence_for_next=["a.md"]))["a"]["evidence_for_next"] == ["x/a.md"]
    assert checked(writes("a", "x/a.md", "b.md", evidence_for_next=["a.md"]))["a"]["evidence_for_next"] == ["x/a.md"]
    assert (
        wrong(writes("a", "a.md", modes={"again": {}}, on={"ERROR": back({"a": "again"})}, evidence_for_next=["a.md"]))
        == []
    ), "written twice, it is one file"
    assert checked(writes("a", "x/a.md", "a.md", evidence_for_next=["a.md"]))["a"]["evidence_for_next"] == ["a.md"]
    recorded = checked(
        waves("w", record="x/w.json"), agent("b", evidence_for_next=["w.json"]), existing=["docs/plan.md"]
    )
    assert recorded["b"]["evidence_for_next"] == ["x/w.json"]
    for steps in (
        [writes("a", evidence_for_next=["b.md"]), writes("b", "b.md")],
        [writes("a", "x/b.md", "y/b.md", evidence_for_next=["b.md"])],
    ):
        assert wrong(*steps) == [("steps.0.evidence_for_next.0", "unknown-evidence")]
    [one] = problems(waves("w"), agent("b", evidence_for_next=["b.md"]), existing=["docs/plan.md"])
    assert one["hint"] == "", "nothing is written that could be meant"


# ---- stages, money, modes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ("X X Y", []),
        ("X Y X", [("steps.2.stage", "split-stage")]),
        ("X - X", [("steps.2.stage", "split-stage")]),
        ("- X -", []),
        ("X - Y", []),
        ("X (Y) X", []),
        ("X (X) Y", []),
    ],
)
def test_the_steps_of_a_stage_stand_together(stages: str, problem: Any) -> None:
    """`-` is a step without a stage, and what stands in brackets stands aside."""
    steps = [
        agent(f"s{number}", stage=None if name == "-" else name.strip("()"), aside=name[0] == "(")
        for number, name in enumerate(stages.split())
    ]
    steps[-1]["on"] = {"ERROR": back("s1", "s2")}
    assert wrong(*steps) == problem


@pytest.mark.parametrize(
    ("unit", "less", "more"),
    [("attempts", 5, 6), ("tokens", 5, 6), ("money", "0.5", "0.500001"), ("wall_clock", "59s", "1m")],
)
def test_a_step_spends_no_more_than_the_run(unit: str, less: Any, more: Any) -> None:
    assert wrong(agent("a", budget={unit: more}), budget={unit: less}) == [("steps.0.budget", "contradiction")]
    for own, whole in ((less, less), (less, more), (less, None), (None, less)):
        assert wrong(agent("a", budget={unit: own}), budget={unit: whole}) == []


def test_one_attempt_reserves_no_more_than_the_run_has() -> None:
    assert wrong(agent("a"), budget={"money": 1, "attempt_money": "1.01"}) == [("budget", "contradiction")]
    for limits in (
        {"money": 1, "attempt_money": 1},
        {"money": 2, "attempt_money": 1},
        {"attempt_money": 1},
        {"money": 1},
    ):
        assert wrong(agent("a"), budget=limits) == []


@pytest.mark.parametrize(
    ("modes", "hint"),
    [(["", "daily"], "known: daily"), (["", "nighly"], "did you mean 'nighly'?"), ([""], "it has one mode only")],
)
def test_a_mode_that_its_role_does_not_have(modes: list[str], hint: str) -> None:
    step = {"id": "a", "agent": {"role": "worker", "mode": "nightly"}}
    [one] = problems(step, roles={"worker": modes})
    assert (one["path"], one["code"], one["hint"]) == (["steps", 0], "unknown-mode", hint)
    assert problems(step, roles={"worker": ["", "nightly"]}) == []


@pytest.mark.parametrize(
    ("action", "top", "problem"),
    [
        ("write-request", {}, [("steps.0.action", "contradiction")]),
        ("initialize-memory", {}, [("steps.0.action", "contradiction")]),
        ("prune-memory", {}, []),
        ("initialize-memory", {"shown_as": "feature_docs"}, []),
        ("initialize-memory", {"shown_as": "feature_docs", "documents": "docs"}, [("steps.0.action", "contradiction")]),
        ("prune-memory", {"memory": "run"}, [("memory", "contradiction")]),
        ("prune-memory", {"memory": "run", "shown_as": "feature_docs"}, []),
    ],
)
def test_files_of_feature_docs_are_written_there_alone(action: str, top: Any, problem: Any) -> None:
    assert wrong({"id": "m", "action": action}, agent("a"), **top) == problem
