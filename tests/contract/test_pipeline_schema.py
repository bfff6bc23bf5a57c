"""The published JSON Schema and `check` tell the same story: an editor never refuses what would run."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import tenuto
from tenuto.core.pipeline import check as core
from tenuto.core.pipeline import each, groups, nested, routes, steps
from tenuto.core.pipeline.check import check
from tenuto.core.status import VERDICTS
from tenuto.knowledge import definitions, plain_data

SCHEMA = json.loads((Path(tenuto.__file__).parent / "schemas" / "pipeline.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
RAW = {name: plain_data.source_of(definitions.find(name)).data for name in definitions.shipped()}


def plain(**more: Any) -> dict[str, Any]:
    return {"name": "trial", "steps": [{"id": "a", "agent": "worker", **more}, {"id": "b", "agent": "worker"}]}


def last(**more: Any) -> dict[str, Any]:
    return {"name": "trial", "steps": [{"id": "a", "agent": "worker"}, {"id": "b", "agent": "worker", **more}]}


def seat(**more: Any) -> dict[str, Any]:
    return {"name": "trial", "steps": [{"id": "a", "agent": {"role": "worker", **more}}]}


def only(**step: Any) -> dict[str, Any]:
    return {"name": "trial", "steps": [{"id": "a", **step}]}


GOOD = [
    plain(),
    seat(out="a.md"),
    seat(out=["a.md", "b/*.md"]),
    seat(retry={"ERROR": 2}),
    seat(question=True),
    seat(questions=2),
    seat(checks=["tests", {"name": "lint", "run": "make lint", "time_limit": "5m"}]),
    seat(verdicts=["DONE", "ERROR"]),
    last(on={"ERROR": "halt"}),
    last(on={"ERROR": {"pause": "why", "recommendations": ["retry"]}}),
    last(on={"ERROR": "pause"}),
    last(on={"ERROR": {"block": "why"}}),
    last(on={"NOT_DONE": {"route": ["a"], "at_most": 1}}),
    last(on={"ERROR": {"route": "a", "at_most": 1, "then": "pause"}}),
    plain(on={"ERROR": {"go_on": "b", "carry": "findings"}}),
    last(on={"ERROR": {"route": [{"a": "again"}], "at_most": 2}}),
    last(on={"DONE": {"finish": "completed"}}),
    last(on={"ERROR": {"route": [{"step": "a", "mode": "again"}], "at_most": 2, "then": {"fail": "no"}}}),
    plain(stage="S", on={"ERROR": {"restart": "S", "at_most": 1, "then": {"halt": True}}}),
    last(rule="audit", on={"DESIGN_FLAW": {"route": ["a"], "at_most": 1}}),
    only(cluster=["x", "y"]),
    only(cluster=["x", {"role": "y", "when": {"exists": "x.md"}}]),
    last(on={"ERROR": {"route": "a", "at_most": 1, "when": {"exists": "x.md"}, "otherwise": "pause"}}),
    only(cluster={"first": "z", "members": ["x", "y"], "quorum": 1}, aggregate={"role": "s", "rule": "v"}),
    only(waves={"roles": "x"}),
    only(waves={"seats": [{"role": "x"}], "per_item": "in-turn", "limits": {"effort": "Low"}}),
    only(each={"files": "src/*.py", "quorum": "80%"}, agent={"role": "x", "out": "a-{item}.md"}),
    only(each={"lines": ["ls"], "cap": 2, "on_error": "stop"}, command=["echo", "{each.value}"]),
    only(each={"files": "*.md", "when": {"element": "stem", "is": "x"}, "max": 10}, cluster=["x", "y"]),
    only(waves={"each": {"files": "*.py"}, "roles": "x", "quorum": 2}),
    only(each={"files": "*.py"}, in_turn=[{"role": "x", "out": "{item}.md"}, {"role": "y", "id": "z"}]),
    only(gate={}),
    only(gate={"when": "approval", "prompt": "Go on?"}),
    only(action="prune-memory"),
    only(action=["prune-memory"]),
    {
        **plain(),
        "cap": 1,
        "budget": {"money": "1.50", "wall_clock": "2h"},
        "defaults": {"time_limit": 60},
        "shown_as": ["flow"],
    },
    {**plain(when="docs"), "switches": {"docs": True}, "documents": ".", "settings": {"any": ["thing"]}},
    {**plain(), "description": None, "budget": None},
    {**plain(), "mode": "poc", "finish": "poc-complete"},
]

# What a schema can see. `check` refuses more (unknown steps, bounds, reach); see tests/unit/test_pipeline.py.
BAD: list[Any] = [
    [],
    "text",
    None,
    {},
    {"name": "x"},
    {"name": "x", "steps": []},
    {"steps": [{"id": "a", "agent": "w"}]},
    {**plain(), "nmae": 1},
    {**plain(), "cap": 0},
    {**plain(), "cap": "4"},
    {**plain(), "cap": True},
    {**plain(), "shown_as": "web"},
    {**plain(), "language": 4},
    {**plain(), "switches": {"always": True}},
    {**plain(), "budget": {"attempts": 0}},
    {**plain(), "budget": {"money": "much"}},
    {**plain(), "documents": "../up"},
    {**plain(), "defaults": {"out": "a.md"}},
    plain(colour="red"),
    plain(id=1.3),
    plain(id="-a"),
    plain(gate={}),
    plain(aside="yes"),
    plain(when=3),
    plain(time_limit="soon"),
    plain(time_limit=0),
    plain(retry={"DONE": 1}),
    plain(retry=1),
    plain(rule="vote"),
    plain(on={"FINE": "fail"}),
    plain(on={"ERROR": "hold"}),
    plain(on={"ERROR": {"at_most": 1}}),
    plain(on=[]),
    plain(on={"ERROR": {"route": [], "at_most": 1}}),
    plain(on={"ERROR": {"route": ["a"], "at_most": "twice"}}),
    plain(on={"ERROR": {"route": ["a"], "at_most": 1, "until": "x"}}),
    plain(on={"ERROR": {"pause": "x", "block": "y"}}),
    seat(out="/etc/passwd"),
    seat(out="../a.md"),
    seat(out="a\\b"),
    seat(memory="maybe"),
    seat(weight=3),
    seat(context=["x"]),
    seat(verdicts=["DONE"]),
    seat(role=None),
    seat(speed="fast"),
    seat(transient=99),
    seat(checks=[{"run": "make"}]),
    only(),
    only(cluster={"members": []}),
    only(cluster={"members": ["x"], "size": 1}),
    only(cluster="x"),
    only(waves={}),
    only(in_turn=["x"]),
    only(waves={"roles": ["x"], "order": "any"}),
    only(waves={"roles": ["x"], "limits": {"hours": 1}}),
    only(gate={"options": ["maybe"]}),
    only(each={"files": "*.py", "max": 100000}, agent="x"),
    only(each={"files": "*.py", "quorum": "most"}, agent="x"),
    only(each={"files": "*.py", "sort": True}, agent="x"),
    only(each={"files": "*.py"}, gate={}),
    only(gate={"shows": []}),
    only(action=["dance"]),
    only(action={}),
    {"name": "trial", "steps": {"a": 1}},
    {"name": "trial", "steps": ["a"]},
    {**plain(), "settings": []},
]


def accepted(raw: Any) -> bool:
    return bool(VALIDATOR.is_valid(raw))


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", RAW)
def test_every_shipped_pipeline_is_valid_as_written_and_as_checked(name: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(RAW[name])] == []
    assert [error.message for error in VALIDATOR.iter_errors(definitions.load(name))] == []


@pytest.mark.parametrize("raw", GOOD, ids=range(len(GOOD)))
def test_both_accept_a_good_pipeline(raw: Any) -> None:
    assert check(raw)[1] == []
    assert [error.message for error in VALIDATOR.iter_errors(raw)] == []
    assert accepted(check(raw)[0])


@pytest.mark.parametrize("raw", BAD, ids=range(len(BAD)))
def test_both_refuse_a_bad_pipeline(raw: Any) -> None:
    assert check(raw)[1] != []
    assert not accepted(raw)


def test_the_schema_knows_exactly_the_keys_that_check_knows() -> None:
    defs = SCHEMA["$defs"]
    assert set(SCHEMA["properties"]) == set(core._KEYS)
    assert set(defs["seat"]["anyOf"][1]["properties"]) == set(steps.KEYS)
    assert set(defs["budget"]["properties"]) == set(steps._BUDGET)
    assert set(defs["on"]["properties"]) == {*VERDICTS, *routes.AUDIT, "NOT_DONE", "LOW_COVERAGE"}
    for kind in steps.KINDS:
        over = {"each", "between"} if kind in steps.EACH_OVER else set()
        assert set(defs[f"{kind}_step"]["properties"]) == {*steps._COMMON, *steps._KEYS[kind], *over}
    assert set(defs["each"]["properties"]) == {*each.KEYS, *groups._EACH}
    assert set(defs["in_turn_step"]["properties"]) == {*steps._COMMON, *steps._KEYS["in_turn"]}
    assert set(defs["pipeline_step"]["properties"]) == set(nested.KEYS)


NESTED = [
    {"pipeline": "quick"},
    {"pipeline": "quick", "params": {"target": [1]}, "switches": {"tests": False}, "documents": "parts"},
    {"pipeline": "quick", "on": {"ERROR": {"route": ["a"], "at_most": 1}}, "when": {"exists": "x"}, "aside": True},
    {"pipeline": "quick", "each": {"files": "*.py"}, "between": "prune-memory"},
]


@pytest.mark.parametrize("words", NESTED, ids=range(len(NESTED)))
def test_an_editor_accepts_a_pipeline_as_a_step(words: Any) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(only(**words))] == []
    assert not accepted(only(**words, retry={"ERROR": 1}))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in inside for place in places(entry, (*path, key)))]


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2000),
    st.floats(-1, 2),
    st.text(max_size=6),
    st.just([]),
    st.just({}),
    st.sampled_from(["..", "/a", "a", "fail", "30m", "only x", "DONE", "{slug}.md", "{other}"]),
    st.just({"role": "w"}),
    st.just([1]),
)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_is_broken_in_a_pipeline_the_schema_is_never_stricter_than_check(data: st.DataObject) -> None:
    """Replace, remove or add one thing anywhere: what `check` lets run, the editor must not mark as wrong.
    And `check` answers everything; it never raises."""
    raw: Any = copy.deepcopy(RAW[data.draw(st.sampled_from(sorted(RAW)))])
    place = data.draw(st.sampled_from(places(raw)[1:]))
    holder = raw
    for key in place[:-1]:
        holder = holder[key]
    match data.draw(st.sampled_from(["replace", "remove", "add"])):
        case "replace":
            holder[place[-1]] = data.draw(JUNK)
        case "remove":
            del holder[place[-1]]
        case _ if isinstance(holder, dict):
            holder[data.draw(st.sampled_from(["x", "id", "do", "route", "agent", "retry", "mode"]))] = data.draw(JUNK)
    found, problems = check(raw)
    assert (found is None) == bool(problems)
    if found is not None:
        assert [error.message for error in VALIDATOR.iter_errors(raw)] == []
        assert check(found)[0] == found
