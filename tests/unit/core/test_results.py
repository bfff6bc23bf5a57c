"""Results in core: which schemas are carried out, what a value must be, what a definition may ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.parts import new_attempt, new_run
from tenuto.core.pipeline import schema as schemas
from tenuto.core.pipeline.check import check
from tenuto.core.pipeline.results import result_of
from tenuto.core.pipeline.schema import field_of
from tenuto.core.pipeline.values import View
from tenuto.knowledge.definitions import read

OBJECT = {
    "type": "object",
    "properties": {
        "open": {"type": "integer"},
        "worst": {"enum": ["low", "high"]},
        "by": {"type": "object", "properties": {"name": {"type": "string"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}},
        "ok": {"type": "boolean"},
        "any": {},
        "more": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}
SCAN: dict[str, Any] = {"id": "scan", "agent": {"role": "r", "result": {"schema": OBJECT}}}


def pipeline(*steps: Any) -> dict[str, Any]:
    return {"name": "trial", "steps": list(steps)}


def noted(*steps: Any) -> list[tuple[str, list[str | int]]]:
    found, problems = check(pipeline(*steps))
    assert (found is None) == bool(problems)
    return [(problem["code"], problem["path"]) for problem in problems]


def asked(schema: Any) -> list[tuple[str, list[str | int]]]:
    problems: Any = []
    schemas.check(View(schema, (), problems))
    return [(problem["code"], problem["path"]) for problem in problems]


# ---- schemas

BAD = [
    ({"pattern": "^a+$"}, "unknown-keyword", ["pattern"]),
    ({"format": "date"}, "unknown-keyword", ["format"]),
    ({"properties": {"a": {"tpye": "string"}}}, "unknown-keyword", ["properties", "a", "tpye"]),
    ({"if": {}}, "unknown-keyword", ["if"]),
    ({"x-mine": 1}, "unknown-keyword", ["x-mine"]),
    ({"type": "text"}, "unknown-value", ["type"]),
    ({"type": None}, "unknown-value", ["type"]),
    ({"type": []}, "wrong-type", ["type"]),
    ({"type": ["string", None]}, "unknown-value", ["type"]),
    ({"enum": []}, "wrong-type", ["enum"]),
    ({"enum": "a"}, "wrong-type", ["enum"]),
    ({"required": "a"}, "wrong-type", ["required"]),
    ({"required": [1]}, "wrong-type", ["required"]),
    ({"minLength": -1}, "out-of-range", ["minLength"]),
    ({"maxItems": 1.5}, "wrong-type", ["maxItems"]),
    ({"maxItems": None}, "wrong-type", ["maxItems"]),
    ({"minimum": "1"}, "wrong-type", ["minimum"]),
    ({"maximum": True}, "wrong-type", ["maximum"]),
    ({"multipleOf": 0}, "out-of-range", ["multipleOf"]),
    ({"multipleOf": 0.5}, "out-of-range", ["multipleOf"]),
    ({"uniqueItems": 1}, "wrong-type", ["uniqueItems"]),
    ({"properties": []}, "wrong-type", ["properties"]),
    ({"properties": {"a": None}}, "wrong-type", ["properties", "a"]),
    ({"items": [{}]}, "wrong-type", ["items"]),
    ({"additionalProperties": "no"}, "wrong-type", ["additionalProperties"]),
    ({"anyOf": []}, "wrong-type", ["anyOf"]),
    ({"allOf": {}}, "wrong-type", ["allOf"]),
    ({"not": 1}, "wrong-type", ["not"]),
    ({"$ref": "other.json"}, "bad-reference", ["$ref"]),
    ({"$ref": "#/$defs/a"}, "bad-reference", ["$ref"]),
    ({"$ref": "#"}, "bad-reference", ["$ref"]),
    ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "bad-reference", ["$defs", "a"]),
    ({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}, "bad-reference", ["$defs", "a"]),
    ({"$defs": {"a": {"anyOf": [{}, {"$ref": "#/$defs/a"}]}}}, "bad-reference", ["$defs", "a"]),
    ({"properties": {"a": {"$defs": {}}}}, "bad-place", ["properties", "a", "$defs"]),
]  # fmt: skip


@pytest.mark.parametrize("schema, code, path", BAD)
def test_what_would_not_be_carried_out_is_refused_by_name_and_place(schema: Any, code: str, path: Any) -> None:
    assert (code, path) in asked(schema)


def test_a_schema_that_nests_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"items": deep}
    assert [code for code, _ in asked(deep)] == ["too-deep"]


def test_a_definition_may_lead_to_itself_one_level_deeper() -> None:
    tree = {"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"left": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}}}  # noqa: E501  # fmt: skip
    assert asked(tree) == []
    assert schemas.misfits({"left": {"left": {"v": 1}}}, tree) == []
    assert schemas.misfits({"left": {"left": {"v": "x"}}}, tree) == [("left.left.v", 'an integer is needed, not "x"')]


def test_no_value_holds_up_the_engine() -> None:
    """Two ways at each level: without a bound, as many as two to the power of its depth."""
    node: Any = {"properties": {"a": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}, "x": False}}
    schema = {"$ref": "#/$defs/n", "$defs": {"n": node}}
    assert asked(schema) == []
    value: Any = {"x": 1}
    for _ in range(40):
        value = {"a": value}
    assert schemas.misfits(value, schema) == [("", "it is too large or too deeply nested to be checked")]


def test_many_misfits_are_told_in_a_few() -> None:
    found = schemas.misfits(list("abcdefghijklm"), {"items": {"type": "integer"}})
    assert len(found) == 9 and found[-1][1] == "and there is more that does not fit"


_NAMES = st.sampled_from(["a", "b", "c"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 1.5]) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_TYPES = st.sampled_from(schemas.TYPES)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    small = st.integers(0, 3)
    several = st.lists(inner, min_size=1, max_size=2)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": _TYPES | st.lists(_TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(_VALUES, min_size=1, max_size=3),
        "const": _VALUES,
        "properties": st.dictionaries(_NAMES, inner, max_size=2),
        "required": st.lists(_NAMES, max_size=2, unique=True),
        "additionalProperties": inner | st.booleans(),
        "items": inner | st.booleans(),
        "uniqueItems": st.booleans(),
        **dict.fromkeys(("minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength"), small),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), st.integers(-2, 2)),
        "multipleOf": st.integers(1, 3),
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
    }
    return st.fixed_dictionaries({}, optional=keywords)


@settings(max_examples=400, deadline=None)
@given(_VALUES, st.recursive(st.just({}) | st.builds(lambda one: {"type": one}, _TYPES), _schemas, max_leaves=5))
def test_a_value_fits_exactly_where_the_standard_says_so(value: Any, schema: Any) -> None:
    """Held against the library of reference."""
    assert asked(schema) == []
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (schemas.misfits(value, schema) == []) == expected


# ---- results of a run


def test_the_last_word_counts() -> None:
    run = new_run()

    def ended(name: str, verdict: str | None, seat: str = "r", item: str | None = None, **receipt: Any) -> None:
        attempt = new_attempt("scan", "r", "", item=item, extra={"seat": f"{seat}@{item}" if item else seat})
        attempt["verdict"], attempt["receipt"] = verdict, receipt  # type: ignore[typeddict-item]
        run["attempts"][name] = attempt

    assert result_of(run, "scan") is None
    ended("1", "DONE", result={"open": 1})
    assert result_of(run, "scan") == result_of(run, "scan/r") == {"open": 1}
    assert result_of(run, "scan/other") is result_of(run, "other") is None
    ended("2", "NEEDS_REVISION", result={"open": 2})
    assert result_of(run, "scan") == {"open": 2}
    ended("3", None)
    assert result_of(run, "scan") is None, "another attempt is under way"
    ended("3", "ERROR", result={"open": 3})
    assert result_of(run, "scan") is None, "the last attempt failed"


def test_items_have_a_result_each() -> None:
    run = new_run()
    for name, item, verdict in (("1", "a", "ERROR"), ("2", "b", "DONE"), ("3", "a", "DONE"), ("4", "c", "ERROR")):
        attempt = new_attempt("work", "r", "", item=item, extra={"seat": f"r@{item}"})
        attempt["verdict"], attempt["receipt"] = verdict, {"result": name}
        run["attempts"][name] = attempt
    assert result_of(run, "work") == result_of(run, "work/r") == {"a": "3", "b": "2"}


@pytest.mark.parametrize(
    "field, value",
    [
        ("", {"a": [{"b": 1}]}),
        ("a.0.b", 1),
        ("a.1.b", None),
        ("a.b", None),
        ("x", None),
        ("a.-1", None),
        ("a.0.b.c", None),
    ],
)
def test_a_field_is_named_by_dots(field: str, value: object) -> None:
    assert field_of({"a": [{"b": 1}]}, field) == value


# ---- what a definition asks for


def behind(when: Any) -> dict[str, Any]:
    return {"id": "mend", "agent": "r", "when": when}


@pytest.mark.parametrize(
    "when",
    [
        {"result": "scan", "field": "open", "more_than": 0},
        {"result": "scan", "field": "open", "in": [1, 2]},
        {"result": "scan", "field": "worst", "is": "high"},
        {"result": "scan", "field": "by.name", "is": "ada"},
        {"result": "scan", "field": "list.0.id", "is": "x"},
        {"result": "scan", "field": "any.thing", "is": "x"},
        {"result": "scan", "field": "more.cost", "at_most": 2.5},
        {"result": "scan", "field": "ok"},
        {"all": [{"not": {"result": "scan", "field": "ok", "is": False}}, {"outcome": "scan", "is": "DONE"}]},
    ],
)
def test_a_condition_may_ask_for_what_the_schema_has(when: Any) -> None:
    found, problems = check(pipeline(SCAN, behind(when)))
    assert problems == [] and found is not None
    assert check(json.loads(json.dumps(found))) == (found, [])


@pytest.mark.parametrize(
    "when, code, path",
    [
        ({"result": "scann", "is": 1}, "unknown-step", ["result"]),
        ({"result": "scan", "feild": "open", "is": 1}, "unknown-key", ["feild"]),
        ({"result": "scan", "field": 1, "is": 1}, "wrong-type", ["field"]),
        ({"result": "scan", "field": "open", "is": 1, "in": [1]}, "unclear-condition", []),
        ({"result": "scan", "field": "open", "more_than": "1"}, "wrong-value", ["more_than"]),
        ({"result": "scan", "field": "opne", "is": 1}, "unknown-field", []),
        ({"result": "scan", "field": "by.nmae", "is": 1}, "unknown-field", []),
        ({"result": "scan", "field": "worst", "is": "hihg"}, "wrong-value", []),
        ({"result": "scan", "field": "worst", "more_than": 1}, "wrong-value", []),
        ({"result": "scan", "field": "by.name", "at_least": 1}, "wrong-value", []),
        ({"result": "scan", "field": "open", "is": "1"}, "wrong-value", []),
        ({"result": "scan", "field": "open"}, "wrong-value", []),
        ({"result": "scan", "field": "list", "is": "x"}, "wrong-value", []),
        ({"result": "mend", "field": "open", "is": 1}, "too-early", []),
        ({"result": "last", "field": "open", "is": 1}, "too-early", []),
        ({"result": "plain", "field": "open", "is": 1}, "no-result", []),
        ({"result": "scan/other", "field": "open", "is": 1}, "unknown-member", []),
        ({"any": [{"outcome": "scan", "is": "DONE"}, {"result": "plain", "is": 1}]}, "no-result", ["any", 1]),
    ],
)
def test_a_condition_that_can_never_hold_is_refused(when: Any, code: str, path: Any) -> None:
    steps = [SCAN, {"id": "plain", "agent": "r"}, behind(when), {"id": "last", "agent": SCAN["agent"]}]
    assert noted(*steps) == [(code, ["steps", 2, "when", *path])]


CLUSTER = {
    "id": "scan",
    "cluster": [
        {"id": "lint", "command": ["lint"], "result": {"schema": OBJECT}},
        {"id": "deps", "command": ["deps"], "result": {"schema": OBJECT}},
    ],
}


def test_which_member_is_meant_must_be_clear() -> None:
    question = {"result": "scan", "field": "open", "is": 1}
    assert noted(CLUSTER, behind(question)) == [("unclear-result", ["steps", 1, "when"])]
    assert noted(CLUSTER, behind({**question, "result": "scan/lint"})) == []
    one = {"id": "scan", "cluster": [CLUSTER["cluster"][0], "r"]}
    found, _ = check(pipeline(one, behind(question)))
    assert found is not None and found["steps"][1]["when"] == {"result": "scan/lint", "field": "open", "is": 1}
    drawn = {
        **CLUSTER,
        "aggregate": {"role": "sum", "result": {"schema": OBJECT}, "context": [{"result": "scan/deps"}]},
    }
    found, problems = check(pipeline(drawn, behind(question)))
    assert found is not None, problems
    assert found["steps"][1]["when"] == {"result": "scan/sum", "field": "open", "is": 1}


def test_a_condition_does_not_ask_about_items() -> None:
    plan = {"id": "plan", "agent": {"role": "p", "out": "plan.md"}}
    work = {"id": "work", "waves": {"plan": "plan.md", "roles": [{"role": "r", "result": {"schema": OBJECT}}]}}
    assert noted(plan, work, behind({"result": "work", "field": "open", "is": 1})) == [
        ("no-result", ["steps", 2, "when"])
    ]
    assert noted(plan, work, {"id": "sum", "agent": {"role": "r", "context": {"result": "work"}}}) == []


@pytest.mark.parametrize(
    "context, code",
    [
        ([{"result": "scan"}, "git-diff", {"findings": "write"}, {"answers": "agree"}], None),
        ({"result": "scan"}, None),
        ("gitdiff", "unknown-value"),
        ([{"result": "scan"}, {"result": "scan"}], "duplicate"),
        (["item", "item"], "duplicate"),
        ([{}], "unclear-context"),
        ([{"result": "scan", "findings": "scan"}], "unclear-context"),
        ([{"resutl": "scan"}], "unknown-key"),
        ([{"result": 1}], "wrong-type"),
        ([{"result": "scann"}], "unknown-step"),
        ([{"result": "write"}], "no-result"),
        ([{"result": "last"}], "too-early"),
        ([{"result": "mend"}], "unknown-member"),
        ([{"findings": "scan"}], "no-findings"),
        ([{"findings": "last"}], "too-early"),
        ([{"findings": "agree"}], "unknown-member"),
        ([{"answers": "scan"}], "unknown-step"),
        ([{"answers": "agreee"}], "unknown-step"),
        ([{"answers": "late"}], "too-early"),
    ],
)
def test_what_an_agent_is_to_be_told_must_be_there_by_then(context: Any, code: str | None) -> None:
    steps = [
        SCAN,
        {"id": "write", "agent": {"role": "r", "out": "write.md"}},
        {"id": "agree", "gate": {}},
        {"id": "mend", "agent": {"role": "r", "context": context}},
        {"id": "last", "agent": {**SCAN["agent"], "out": "last.md"}},
        {"id": "late", "gate": {}},
    ]
    assert next((found for found, _ in noted(*steps)), None) == code


def test_a_step_that_a_route_leads_back_to_may_ask_for_what_comes_behind_it() -> None:
    review = {
        "id": "review",
        "agent": {"role": "r", "result": {"schema": OBJECT}, "out": "review.md"},
        "on": {"NEEDS_REVISION": {"route": ["write"], "at_most": 1, "then": "fail"}},
    }
    write = {"id": "write", "agent": {"role": "r", "context": [{"result": "review"}, {"findings": "review"}]}}
    assert noted(write, review) == []


@pytest.mark.parametrize(
    "seat, code",
    [
        ({"result": "scan.json"}, "wrong-type"),
        ({"result": {}}, "missing"),
        ({"result": {"schema": "scan.json"}}, "no-schema"),
        ({"result": {"schema": [1]}}, "wrong-type"),
        ({"result": {"schema": {}, "flie": "x"}}, "unknown-key"),
        ({"result": {"schema": {}, "file": "../x"}}, "bad-path"),
        ({"result": {"schema": {}, "file": "x-*.json"}}, "bad-path"),
        ({"result": {"schema": {}, "file": "x.json"}, "optional": "x.json"}, "contradiction"),
        ({"context_budget": 99}, "out-of-range"),
        ({"context_budget": "many"}, "wrong-type"),
    ],
)
def test_a_result_is_asked_for_in_one_way(seat: Any, code: str) -> None:
    assert [found for found, _ in noted({"id": "a", "agent": {"role": "r", **seat}})] == [code]


def test_a_command_step_has_its_result_beside_its_command_and_a_file_is_an_output() -> None:
    found, problems = check(
        pipeline({"id": "a", "command": ["x"], "result": {"schema": {"type": "object"}, "file": "a.json"}})
    )
    assert problems == [] and found is not None and found["steps"][0]["kind"] == "agent"
    assert found["steps"][0]["agent"]["result"] == {"schema": {"type": "object"}, "file": "a.json"}
    assert found["steps"][0]["agent"]["out"] == ["a.json"]
    assert noted({"id": "a", "command": ["x"], "context_budget": 200})[0][0] == "unknown-key"


def test_every_mistake_is_told_with_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("type: object\nproperties:\n  open: {type: whole}\n")
    (tmp_path / "trial.yaml").write_text(
        """name: trial
steps:
  - id: scan
    agent:
      role: r
      result: {schema: s.yaml}
  - id: mend
    when:
      all:
        - {result: scann, is: 1}
    agent:
      role: r
      context:
        - git-diff
        - {reslt: scan}
"""
    )
    _, problems = read(tmp_path / "trial.yaml")
    found = [(Path(one["file"]).name, one["line"], one["problem"]["code"]) for one in problems]
    assert found == [
        ("trial.yaml", 10, "unknown-step"),
        ("trial.yaml", 15, "unknown-key"),
        ("s.yaml", 3, "unknown-value"),
    ]
    (tmp_path / "s.yaml").write_text("type: object\nproperties:\n  open: {type: integer}\n")
    text = (tmp_path / "trial.yaml").read_text()
    (tmp_path / "trial.yaml").write_text(
        text.replace("scann, is", "scan, field: oepn, is").replace("reslt", "findings")
    )
    _, problems = read(tmp_path / "trial.yaml")
    found = [(Path(one["file"]).name, one["line"], one["problem"]["code"]) for one in problems]
    assert found == [("trial.yaml", 10, "unknown-field"), ("trial.yaml", 15, "no-findings")]
