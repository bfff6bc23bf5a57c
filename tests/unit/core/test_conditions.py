"""Conditions: read from a definition, asked with recorded facts, decided before the run as far as they can be."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.pipeline import conditions
from tenuto.core.pipeline.conditions import Scope
from tenuto.core.pipeline.values import View

PARAMS: Any = {
    "target": {"type": "choice", "choices": ["web", "api"], "default": None, "description": ""},
    "depth": {"type": "number", "choices": [], "default": 3, "description": ""},
    "dry": {"type": "flag", "choices": [], "default": False, "description": ""},
    "title": {"type": "text", "choices": [], "default": "", "description": ""},
    "modules": {"type": "list", "choices": [], "default": [], "description": ""},
}
ANSWERS: Any = {
    "agree.env": {"type": "choice", "choices": ["staging", "prod"], "default": None, "description": ""},
    "agree.sure": {"type": "flag", "choices": [], "default": None, "description": ""},
    "agree.regions": {"type": "several", "choices": ["eu", "us"], "default": None, "description": ""},
}
SCOPE = Scope(["tests"], PARAMS, ["review", "build"], ANSWERS)
ELEMENTS = Scope(["tests"], PARAMS, ["review"], {}, ("value", "name"))


def read(raw: object) -> tuple[Any, list[str]]:
    problems: Any = []
    return conditions.read(View(raw, ("when",), problems), SCOPE), [problem["code"] for problem in problems]


def problem_of(raw: object, scope: Scope = SCOPE) -> tuple[list[Any], str, str]:
    problems: Any = []
    assert conditions.read(View(raw, ("when",), problems), scope) == "always", "what is refused leaves nothing behind"
    (problem,) = problems
    return list(problem["path"][1:]), problem["message"], problem["hint"]


def facts(**more: Any) -> Any:
    return {"switches": {}, "params": {}, "outcomes": {}, "files": {}, **more}


@pytest.mark.parametrize(
    "raw",
    [
        "always",
        "tests",
        {"switch": "tests"},
        {"param": "target", "is": "web"},
        {"param": "target", "in": ["web", "api"]},
        {"param": "depth", "at_least": 2.5},
        {"param": "dry", "is": True},
        {"param": "modules", "has": "whatever"},
        {"answer": "agree.env", "in": ["prod"]},
        {"answer": "agree.regions", "has": "eu"},
        {"result": "review", "field": "a.b", "at_most": 2},
        {"result": "review/lint", "field": "", "is": "x"},
        {"outcome": "review", "in": ["NEEDS_REVISION", "ERROR"]},
        {"exists": "notes.md"},
        {"changed": "src/**"},
        {"not": "tests"},
        {"all": ["tests", {"any": [{"exists": "a.md"}, {"not": {"changed": "b"}}]}]},
    ],
)
def test_a_condition_reads_to_itself(raw: object) -> None:
    assert read(raw) == (raw, [])


def test_a_flag_alone_is_the_flag_that_is_true() -> None:
    assert read({"param": "dry"}) == ({"param": "dry", "is": True}, [])
    assert read({"answer": "agree.sure"}) == ({"answer": "agree.sure", "is": True}, [])
    assert read({"result": "review", "field": "good"}) == ({"result": "review", "field": "good", "is": True}, [])


@pytest.mark.parametrize(
    ("raw", "path", "message", "hint"),
    [
        (
            {},
            [],
            "this does not say one thing that `when` can ask about",
            "one of: switch, param, outcome, answer, result",
        ),
        ({"parm": 1, "is": 2}, [], "this does not say one thing", "did you mean 'param'?"),
        ({"is": 1, 3: 4}, [], "this does not say one thing", "one of: switch"),
        ({"param": "tarket", "is": 1}, ["param"], "there is no parameter 'tarket'", "did you mean 'target'?"),
        ({"outcome": "reviw", "is": "DONE"}, ["outcome"], "there is no step 'reviw'", "did you mean 'review'?"),
        ({"answer": "agree.envv", "is": 1}, ["answer"], "there is no answer 'agree.envv'", "mean 'agree.env'?"),
        ({"param": "target"}, [], "what is 'target' compared with?", "give exactly one of: is, in"),
        ({"param": "title"}, [], "what is 'title' compared with?", "give exactly one of: is, in"),
        ({"outcome": "review"}, [], "what is 'review' compared with?", "give exactly one of: is, in"),
        ({"outcome": "review", "in": ["DONE", "FAIL"]}, ["in"], "outcome 'review': no step ends as 'FAIL'", "DONE"),
        ({"outcome": "review", "more_than": 1}, ["more_than"], "cannot be compared by `more_than`", "use is, or in"),
        ({"result": "reviw", "is": 1}, ["result"], "there is no step 'reviw'", "did you mean 'review'?"),
        ({"result": "reviw/a", "is": 1}, ["result"], "there is no step 'reviw/a'", "known: build, review"),
        ({"result": "build", "is": 1, "in": [1]}, [], "what is the result of 'build' compared with?", "one of: is, in"),
        ({"result": "build", "is": None}, ["is"], "result 'build': `is` needs a value, not nothing", "is: web"),
        ({"result": "build", "in": "a"}, ["in"], "`in` needs a list of values, not the text 'a'", "in: [web, api]"),
        ({"result": "build", "in": []}, ["in"], "`in` needs a list of values", "in: [web, api]"),
        ({"result": "build", "in": ["a", []]}, ["in"], "`in` needs a list of values", "in: [web, api]"),
        ({"result": "build", "has": 1}, ["has"], "`has` needs text, not the number 1", "for example has: eu"),
        ({"result": "build", "at_least": True}, ["at_least"], "`at_least` needs a number", "for example at_least: 3"),
        ({"result": "build", "at_least": "1"}, ["at_least"], "`at_least` needs a number", "for example at_least: 3"),
        ({"param": "target", "in": ["web", "ap"]}, ["in"], "param 'target': it can never be 'ap'", "mean 'api'?"),
        ({"param": "depth", "is": "3"}, ["is"], "it is a number, and can never be '3'", ""),
        ({"param": "title", "has": "x"}, ["has"], "param 'title': a text has no parts", "use is, or in"),
        ({"param": "modules", "is": "x"}, ["is"], "a list is only asked what it has", "for example has: eu"),
        ({"param": "title", "at_most": 2}, ["at_most"], "only a number can be at most something", "use is, or in"),
        ({"answer": "agree.regions", "has": "uk"}, ["has"], "it can never have 'uk'", "did you mean 'us'?"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(raw: object, path: list[str], message: str, hint: str) -> None:
    found = problem_of(raw)
    assert found[0] == path
    assert message in found[1] and hint in found[2] and bool(hint) == bool(found[2])


def test_where_no_gate_asks_for_anything_the_hint_says_how_one_does() -> None:
    hint = "write GATE.FIELD, of a gate with `fields`"
    assert problem_of({"answer": "a", "is": 1}, ELEMENTS) == (["answer"], "there is no answer 'a'", hint)
    none = Scope([], {}, [])
    assert problem_of({"param": "a", "is": 1}, none) == (["param"], "there is no parameter 'a'", "")


def test_fields_of_elements_are_asked_about_where_there_are_elements() -> None:
    raw = {"element": "name", "is": "x"}
    assert conditions.read(View(raw, (), []), ELEMENTS) == raw
    assert problem_of({"element": "nam", "is": "x"}, ELEMENTS)[2] == "did you mean 'name'?"
    assert problem_of(raw) == (["element"], "there is no element here to have a field", "use it in `each`")


@pytest.mark.parametrize("several", ["all", "any"])
def test_a_list_of_conditions_has_some(several: str) -> None:
    for value, words in (([], "not an empty one"), ("tests", "not the text 'tests'")):
        problems: Any = []
        assert conditions.read(View({several: value}, (), problems), SCOPE) == {several: []}
        assert [(one["path"], one["message"]) for one in problems] == [
            ([several], f"a list of conditions is needed, {words}")
        ]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("test", "unknown-switch"),
        (3, "wrong-type"),
        ({}, "unclear-condition"),
        ({"parm": "target", "is": "web"}, "unclear-condition"),
        ({"param": "target", "exists": "a"}, "unclear-condition"),
        ({"param": "target"}, "unclear-condition"),
        ({"param": "target", "is": "web", "in": ["api"]}, "unclear-condition"),
        ({"param": "target", "is": "web", "because": "x"}, "unknown-key"),
        ({"param": "tarket", "is": "web"}, "unknown-parameter"),
        ({"outcome": "reviw", "is": "DONE"}, "unknown-step"),
        ({"outcome": "review", "is": "FAILED"}, "wrong-value"),
        ({"outcome": "review", "more_than": 2}, "wrong-value"),
        ({"param": "target", "is": "desktop"}, "wrong-value"),
        ({"param": "target", "more_than": 2}, "wrong-value"),
        ({"param": "depth", "is": "3"}, "wrong-value"),
        ({"param": "depth", "is": True}, "wrong-value"),
        ({"param": "dry", "is": 1}, "wrong-value"),
        ({"param": "depth", "more_than": "2"}, "wrong-value"),
        ({"param": "title", "in": "abc"}, "wrong-value"),
        ({"param": "title", "in": []}, "wrong-value"),
        ({"param": "modules", "is": "a"}, "wrong-value"),
        ({"exists": "../secret"}, "bad-path"),
        ({"changed": ["a", "b"]}, "wrong-type"),
        ({"all": []}, "wrong-type"),
        ({"any": "tests"}, "wrong-type"),
        ({"all": [{"not": "test"}]}, "unknown-switch"),
    ],
)
def test_what_cannot_be_meant_is_refused(raw: object, code: str) -> None:
    assert code in read(raw)[1]


def test_conditions_are_not_nested_without_end() -> None:
    """Whatever they are nested by. Eight are not too many."""
    for nested in (lambda raw: {"not": raw}, lambda raw: {"all": [raw]}, lambda raw: {"any": ["tests", raw]}):
        raw: Any = "tests"
        for _ in range(8):
            raw = nested(raw)
        assert read(raw) == (raw, [])
        found, problems = read(nested(raw))
        assert problems == ["too-deep"]
        while not isinstance(found, str):
            found = next(iter(found.values())) if "not" in found else next(iter(found.values()))[-1]
        assert found == "always"


@pytest.mark.parametrize(
    ("when", "known", "answer"),
    [
        ("always", {}, True),
        ("tests", {}, False),
        ("tests", {"switches": {"tests": True}}, True),
        ({"switch": "tests"}, {"switches": {"tests": True}}, True),
        ({"param": "target", "is": "web"}, {"params": {"target": "web"}}, True),
        ({"param": "target", "is": "web"}, {"params": {"target": "api"}}, False),
        ({"param": "target", "is": "web"}, {}, False),
        ({"not": {"param": "target", "is": "web"}}, {}, True),
        ({"param": "target", "in": ["web", "api"]}, {"params": {"target": "api"}}, True),
        ({"param": "depth", "is": 1}, {"params": {"depth": 1.0}}, True),
        ({"param": "depth", "is": 1}, {"params": {"depth": True}}, False),
        ({"param": "depth", "is": 1}, {"params": {"depth": "1"}}, False),
        ({"param": "depth", "more_than": 2}, {"params": {"depth": 2}}, False),
        ({"param": "depth", "more_than": 2}, {"params": {"depth": 3}}, True),
        ({"param": "depth", "less_than": 2}, {"params": {"depth": 2}}, False),
        ({"param": "depth", "less_than": 2}, {"params": {"depth": 1}}, True),
        ({"param": "depth", "at_least": 2}, {"params": {"depth": 2}}, True),
        ({"param": "depth", "at_least": 2}, {"params": {"depth": 1}}, False),
        ({"param": "depth", "at_most": 2}, {"params": {"depth": 2}}, True),
        ({"param": "depth", "at_most": 2}, {"params": {"depth": 3}}, False),
        ({"param": "depth", "at_most": 2}, {"params": {"depth": "1"}}, False),
        ({"param": "depth", "at_most": 2}, {"params": {"depth": True}}, False),
        ({"param": "depth", "at_most": 2}, {}, False),
        ({"param": "depth", "in": [1, 2]}, {"params": {"depth": 2}}, True),
        ({"param": "depth", "in": [1, 2]}, {"params": {"depth": 3}}, False),
        ({"param": "depth", "in": [True]}, {"params": {"depth": 1}}, False),
        ({"param": "depth", "at_most": True}, {"params": {"depth": 1}}, False),
        ({"param": "depth", "at_most": "2"}, {"params": {"depth": 1}}, False),
        ({"param": "modules", "has": "b"}, {"params": {"modules": ["a", "b"]}}, True),
        ({"param": "modules", "has": "c"}, {"params": {"modules": ["a", "b"]}}, False),
        ({"param": "modules", "has": "a"}, {"params": {"modules": "abc"}}, False),
        ({"param": "modules", "has": "a"}, {}, False),
        ({"result": "scan", "field": "open.0", "is": 3}, {"results": {"scan": {"open": [3]}}}, True),
        ({"result": "scan", "field": "open.1", "is": 3}, {"results": {"scan": {"open": [3]}}}, False),
        ({"result": "scan", "field": "", "is": None}, {"results": {}}, False),
        ({"answer": "agree.env", "is": "prod"}, {"answers": {"agree.env": "prod"}}, True),
        ({"answer": "agree.env", "is": "prod"}, {"answers": {}}, False),
        ({"element": "name", "is": "x"}, {"fields": {"name": "x"}}, True),
        ({"element": "name", "is": "x"}, {}, False),
        ({"outcome": "review", "is": "DONE"}, {"outcomes": {"review": "DONE"}}, True),
        ({"outcome": "review", "is": "DONE"}, {}, False),
        ({"exists": "a.md"}, {"files": {"exists:a.md": True}}, True),
        ({"exists": "a.md"}, {"files": {"changed:a.md": True}}, False),
        ({"changed": "src/**"}, {"files": {"changed:src/**": True}}, True),
        ({"changed": "src/**"}, {}, False),
        ({"all": ["tests", {"exists": "a"}]}, {"switches": {"tests": True}, "files": {"exists:a": True}}, True),
        ({"all": ["tests", {"exists": "a"}]}, {"switches": {"tests": True}}, False),
        ({"any": ["tests", {"exists": "a"}]}, {"files": {"exists:a": True}}, True),
        ({"any": ["tests", {"exists": "a"}]}, {}, False),
    ],
)
def test_what_holds(when: Any, known: Any, answer: bool) -> None:
    assert conditions.holds(when, facts(**known)) is answer


@pytest.mark.parametrize(
    ("when", "switches", "params", "answer"),
    [
        ("always", None, None, True),
        ("tests", None, None, None),
        ("tests", {}, None, False),
        ({"switch": "tests"}, {"tests": True}, None, True),
        ({"param": "target", "is": "web"}, {}, None, None),
        ({"param": "target", "is": "web"}, {}, {"target": "web"}, True),
        ({"param": "target", "is": "web"}, {}, {"target": "api"}, False),
        ({"outcome": "review", "is": "DONE"}, {}, {}, None),
        ({"exists": "a"}, {}, {}, None),
        ({"changed": "a"}, {}, {}, None),
        ({"not": {"exists": "a"}}, {}, {}, None),
        ({"not": "tests"}, {}, {}, True),
        ({"all": ["tests", {"exists": "a"}]}, {}, {}, False),
        ({"all": ["tests", {"exists": "a"}]}, {"tests": True}, {}, None),
        ({"all": ["tests", "always"]}, {"tests": True}, {}, True),
        ({"any": ["tests", {"exists": "a"}]}, {}, {}, None),
        ({"any": ["tests", {"exists": "a"}]}, {"tests": True}, {}, True),
        ({"any": ["tests", {"not": "always"}]}, {}, {}, False),
    ],
)
def test_what_is_known_before_the_run(when: Any, switches: Any, params: Any, answer: bool | None) -> None:
    assert conditions.decided(when, switches, params) is answer


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("tests", "tests is on"),
        ({"not": "tests"}, "tests is off"),
        ({"switch": "tests"}, "tests is on"),
        ({"param": "target", "in": ["web", "api"]}, "target is one of web, api"),
        ({"param": "depth", "at_least": 2}, "depth is at least 2"),
        ({"outcome": "review", "is": "DONE"}, "review is DONE"),
        ({"param": "dry", "is": True}, "dry is true"),
        ({"param": "dry", "in": [False, 1]}, "dry is one of false, 1"),
        ({"result": "scan", "field": "open", "more_than": 2}, "open of scan is more than 2"),
        ({"result": "scan", "field": "", "is": "x"}, "the result of scan is x"),
        ({"answer": "agree.regions", "has": "eu"}, "agree.regions has eu"),
        ({"element": "name", "less_than": 3}, "name is less than 3"),
        ({"any": ["tests", {"all": ["tests", "always"]}]}, "tests is on or (tests is on and always)"),
        ({"exists": "a.md"}, "a.md exists"),
        ({"not": {"changed": "src/**"}}, "not (src/** has changed)"),
        ({"all": ["tests", {"any": [{"exists": "a"}, "tests"]}]}, "tests is on and (a exists or tests is on)"),
    ],
)
def test_a_condition_in_words(when: Any, words: str) -> None:
    assert conditions.in_words(when) == words


def test_why_something_was_left_out() -> None:
    assert conditions.why_not("tests") == "tests is off"
    assert conditions.why_not({"exists": "a.md"}) == "this does not hold: a.md exists"


def test_the_files_that_must_be_looked_at() -> None:
    when: Any = {"all": ["tests", {"exists": "a"}, {"any": [{"not": {"changed": "b"}}, {"param": "dry", "is": True}]}]}
    assert list(conditions.files(when)) == ["exists:a", "changed:b"]
    assert list(conditions.files("tests")) == []
