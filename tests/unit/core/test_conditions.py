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
SCOPE = Scope(["tests"], PARAMS, ["review", "build"])


def read(raw: object) -> tuple[Any, list[str]]:
    problems: Any = []
    return conditions.read(View(raw, ("when",), problems), SCOPE), [problem["code"] for problem in problems]


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
    raw: Any = "tests"
    for _ in range(9):
        raw = {"not": raw}
    assert read(raw)[1] == ["too-deep"]


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
