"""Parameters: declared, given, filled in."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.pipeline import params
from tenuto.core.pipeline.values import View
from tenuto.errors import BadInput


def read(raw: object) -> tuple[dict[str, Any], list[str]]:
    problems: Any = []
    declared: Any = params.read(View(raw, ("params",), problems))
    return declared, [problem["code"] for problem in problems]


def param(kind: str, default: object = None, choices: Any = (), description: str = "") -> Any:
    shape = {"type": kind, "choices": list(choices), "default": default}
    return {**shape, "required": True, "description": description}


@pytest.mark.parametrize(
    ("raw", "declared"),
    [
        ("text", param("text")),
        ("file", param("file")),
        ("list", param("list")),
        (3, param("number", 3)),
        (2.5, param("number", 2.5)),
        (False, param("flag", False)),
        (["web", "api"], param("choice", choices=["web", "api"])),
        ({"of": ["web", "api"], "default": "api"}, param("choice", "api", ["web", "api"])),
        ({"type": "list", "default": ["a", "b"]}, param("list", ["a", "b"])),
        ({"default": "x", "description": "What."}, param("text", "x", description="What.")),
    ],
)
def test_a_declaration_is_spelled_out_and_reads_to_itself(raw: object, declared: Any) -> None:
    assert read({"name": raw}) == ({"name": declared}, [])
    assert read({"name": declared}) == ({"name": declared}, [])


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ([], "wrong-type"),
        ({"name": "txt"}, "unknown-value"),
        ({"name": {"typ": "text"}}, "unknown-key"),
        ({"name": {"type": "choice"}}, "contradiction"),
        ({"name": {"type": "text", "of": ["a"]}}, "contradiction"),
        ({"name": {"type": "number", "default": "3"}}, "wrong-value"),
        ({"name": {"type": "number", "default": True}}, "wrong-value"),
        ({"name": {"of": ["a"], "default": "b"}}, "wrong-value"),
        ({"name": {"type": "list", "default": ["a", 1]}}, "wrong-value"),
        ({"9name": "text"}, "bad-id"),
        ({"na me": "text"}, "bad-id"),
        ({"näme": "text"}, "bad-id"),
        ({f"p{number}": "text" for number in range(101)}, "out-of-range"),
    ],
)
def test_a_wrong_declaration_is_refused(raw: object, code: str) -> None:
    assert code in read(raw)[1]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("number", "3", 3),
        ("number", "-2.5", -2.5),
        ("number", "3x", "3x"),
        ("number", "1e5", "1e5"),
        ("number", "٣", "٣"),
        ("flag", "Yes", True),
        ("flag", "off", False),
        ("flag", "maybe", "maybe"),
        ("list", "a, b,,c", ["a", "b", "c"]),
        ("text", "3", "3"),
        ("file", "a.md", "a.md"),
    ],
)
def test_what_is_typed_becomes_a_value_of_its_type(kind: str, text: str, value: object) -> None:
    read_as = params.from_text(param(kind), text)
    assert (read_as, type(read_as)) == (value, type(value))


DECLARED: Any = {
    "target": param("choice", choices=["web", "api"]),
    "depth": param("number", 3),
    "modules": param("list", ["a"]),
}


def test_values_are_complete_and_checked() -> None:
    assert params.values("release", DECLARED, {"target": "web"}) == {"target": "web", "depth": 3, "modules": ["a"]}
    assert params.values("release", DECLARED, {"target": "web", "depth": 4})["depth"] == 4


def test_everything_that_is_wrong_with_the_values_is_said_at_once() -> None:
    with pytest.raises(BadInput) as refused:
        params.values("release", DECLARED, {"depth": "deep", "taget": "web", "modules": [""]})
    assert refused.value.code == "bad-params"
    for words in ("no parameter 'taget'", "'target'", "'target' is missing: one of web, api", "'depth'", "'modules'"):
        assert words in refused.value.message


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 5000, 3, None, ["a"]])
def test_a_text_is_text_of_bounded_length(value: object) -> None:
    assert params.wrong(param("text"), value)


def test_values_take_the_place_of_their_names() -> None:
    raw = {"steps": [{"id": "a", "agent": {"focus": "the {params.target} one", "out": ["{params.target}.md"]}}]}
    filled, problems = params.fill(raw, DECLARED, {"target": "api", "depth": 3, "modules": []})
    assert (filled, problems) == (
        {"steps": [{"id": "a", "agent": {"focus": "the api one", "out": ["api.md"]}}]},
        [],
    )
    assert "{params.target}" in str(raw)


def test_a_value_is_not_read_again() -> None:
    declared: Any = {"a": param("text"), "b": param("text")}
    raw = {"steps": [{"focus": "{params.a}"}]}
    filled, _ = params.fill(raw, declared, {"a": "{params.b}", "b": "secret"})
    assert filled == {"steps": [{"focus": "{params.b}"}]}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ({"steps": [{"focus": "{params.taget}"}]}, "unknown-parameter"),
        ({"steps": [{"focus": "{params.target"}]}, "unknown-parameter"),
        ({"steps": [{"focus": "{params.modules}"}]}, "bad-place"),
        ({"steps": [{"id": "{params.target}"}]}, "bad-place"),
        ({"name": "{params.target}"}, "bad-place"),
        ({"params": {"x": {"description": "{params.target}"}}}, "bad-place"),
    ],
)
def test_a_name_that_cannot_stand_there_is_refused(raw: object, code: str) -> None:
    _, problems = params.fill(raw, DECLARED, params.samples(DECLARED))
    assert [problem["code"] for problem in problems] == [code]


def test_samples_are_values_of_their_types() -> None:
    declared: Any = {kind: param(kind, choices=["a"] if kind in ("choice", "several") else ()) for kind in params.TYPES}
    assert params.values("any", declared, params.samples(declared)) == params.samples(declared)


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "../x", "a/../../x", ".git/config", "a/.GIT/config"])
def test_a_file_lies_below_the_repository(path: str) -> None:
    assert params.wrong(param("file"), path) == f"'{path}' is no path below the repository"


@pytest.mark.parametrize("path", ["notes.md", "a/b c.md", "./x", "..x", ".github/x", "a/..."])
def test_a_file_of_any_name_may_be_named(path: str) -> None:
    assert params.wrong(param("file"), path) == ""


def test_a_text_that_nobody_has_said_yet_is_shown_by_its_name() -> None:
    declared, _ = read({"who": "text", "target": {"of": ["web", "api"]}})
    assert params.samples(declared) == {"who": "WHO", "target": "web"}


def test_an_optional_parameter_without_a_value_leaves_out_what_stands_for_it_alone() -> None:
    """An argument, a path or a focus that is nothing else is not there; a longer text has nothing in its place."""
    declared, _ = read({"notes": {"type": "text", "required": False}})
    raw = {"steps": [{"command": ["cat", "{params.notes}", "-n{params.notes}"], "focus": "{params.notes}"}]}
    filled, problems = params.fill(raw, declared, {})
    assert (filled, problems) == ({"steps": [{"command": ["cat", "-n"], "focus": None}]}, [])
    filled, _ = params.fill(raw, declared, {"notes": "a b"})
    assert filled == {"steps": [{"command": ["cat", "a b", "-na b"], "focus": "a b"}]}


def test_a_value_that_was_meant_as_a_default_is_told_from_a_type_that_was_mistyped() -> None:
    problems: Any = []
    params.read(View({"target": "web", "file": "flie"}, ("params",), problems))
    assert "target: {default: web} is a text with this default" in problems[0]["hint"]
    assert problems[1]["hint"] == "did you mean 'file'?"


def test_a_list_of_choices_without_any_is_refused() -> None:
    assert read({"env": {"of": []}})[1] == ["empty"]


def test_a_fixed_parameter_is_the_pipelines_own() -> None:
    declared, codes = read({"mend.depth": {"type": "number", "default": 3, "fixed": True}})
    assert codes == [] and params.values("p", declared, {}) == {"mend.depth": 3}
    assert params.values("p", declared, {"mend.depth": 3}) == {"mend.depth": 3}
    with pytest.raises(BadInput, match=r"'mend\.depth' is fixed by the pipeline: it is 3"):
        params.values("p", declared, {"mend.depth": 4})
    assert params.without_fixed(declared, {"mend.depth": 4, "other": 1}) == {"other": 1}
    assert read({"a.b": "text"})[1] == ["bad-id"]
    assert read({"a": {"fixed": True}})[1] == ["missing"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-2", -2),
        ("2.5", 2.5),
        ("2.", 2.0),
        ("1234567890.1234", 1234567890.1234),
        ("123456789012345", 123456789012345),
        ("1234567890123456", "1234567890123456"),
        (".5", ".5"),
        ("", ""),
        ("-", "-"),
        ("1e3", "1e3"),
        ("٣", "٣"),
        ("1.2.3", "1.2.3"),
        ("--1", "--1"),
    ],
)
def test_a_number_is_typed_as_people_write_it(text: str, value: object) -> None:
    found = params.from_text(param("number"), text)
    assert (found, type(found)) == (value, type(value))


def test_of_several_none_may_be_chosen_where_they_may_be_left_out() -> None:
    several: Any = param("several", choices=["a", "b"])
    assert params.wrong(several, []) == "at least one of the choices is needed"
    bare: Any = {key: value for key, value in several.items() if key != "required"}
    assert params.wrong(bare, []) == "at least one of the choices is needed"
    optional: Any = {**several, "required": False}
    assert params.wrong(optional, []) == ""


def test_what_a_pipeline_fixed_itself_is_no_value_of_the_run() -> None:
    declared: Any = {"a": param("text"), "b": {**param("text"), "fixed": True}}
    assert params.without_fixed(declared, {"a": 1, "b": 2, "c": 3}) == {"a": 1, "c": 3}


def test_who_must_be_given() -> None:
    bare = {key: value for key, value in param("text").items() if key != "required"}
    declared: Any = {"a": bare, "b": {**bare, "required": False}, "c": {**bare, "default": "x"}, "d": bare}
    assert params.missing(declared, {"d": "y"}) == ["a"]


def test_a_parameter_in_words() -> None:
    assert params.describe(param("several", choices=["a", "b"], description="Which.")) == "any of a, b; Which."
    assert params.describe(param("choice", choices=["a", "b"])) == "one of a, b"
    assert params.describe(param("flag")) == "yes or no"
    assert params.samples({"n": param("number"), "f": param("file")}) == {"n": 1, "f": "file.md"}
    assert (params.as_text(True), params.as_text(False), params.as_text(["a", "b"]), params.as_text(2.5)) == (
        "true",
        "false",
        "a, b",
        "2.5",
    )


def test_values_stand_in_steps_only_and_an_optional_one_alone_leaves_nothing() -> None:
    declared: Any = {"a": param("text"), "opt": {**param("text"), "required": False}, "l": param("list")}
    given: Any = {"a": "x", "l": ["p", "q"]}
    raw = {"focus": "{params.a}", "steps": [{"focus": "{params.a} and {params.opt}!", "in": ["{params.opt}", "b"]}]}
    filled, problems = params.fill(raw, declared, given)
    assert [one["code"] for one in problems] == ["bad-place"] and problems[0]["path"] == ["focus"]
    assert filled["steps"] == [{"focus": "x and !", "in": ["b"]}]  # type: ignore[index]
    handed: Any = {
        "steps": [{"params": {"l": "{params.l}", "t": "a {params.a}", "n": "{params.opt}", "u": "{params.z}"}}]
    }
    filled, problems = params.fill(handed, declared, given)
    assert filled["steps"][0]["params"]["l"] == ["p", "q"]  # type: ignore[index]
    assert filled["steps"][0]["params"]["t"] == "a x" and filled["steps"][0]["params"]["n"] is None  # type: ignore[index]
    assert [one["code"] for one in problems] == ["unknown-parameter"]
