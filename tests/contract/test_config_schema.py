"""The published schema of settings, the template and the program tell the same story."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tenuto.knowledge.plain_data import read_yaml
from tenuto.workspace.config_file import SCHEMA, TEMPLATE
from tenuto.workspace.settings import SETTINGS, problem_of

PUBLISHED = json.loads(SCHEMA.read_text())
VALIDATOR = Draft202012Validator(PUBLISHED)
TEXT = TEMPLATE.read_text()
COMMIT = "0" * 40
VALUES: list[object] = [
    *(
        "",
        " ",
        "x",
        "auto",
        "eight-step",
        "shared",
        "worktree",
        "signed",
        "open",
        "90m",
        "2h",
        "unlimited",
        "soon",
        "2 h",
    ),
    *(0, 1, 90, -3, True, False, 1.5, [], ["a"], ["a b"], [1], [""], {}, {"a": "b"}, {"a": 1}, {"a": ""}),
    *({"run": ["x"]}, {"copy": [".env"]}, {"run": "x"}, {"install": ["x"]}, {"command": "x"}, {"url": "https://x"}),
    *({"url": "file:///x"}, {"command": ""}, {"mail": "x"}, "0", "007", "10d"),
    *(f"github.com/o/r@{COMMIT}", [f"https://example.org/o/r@{COMMIT}"], "github.com/o/r@main", ["github.com/o/r"]),
]


def accepted(name: str, value: object) -> bool:
    return problem_of("repository", "config.yaml", name, value) is None


def test_every_setting_is_in_the_schema_and_nothing_else() -> None:
    Draft202012Validator.check_schema(PUBLISHED)
    assert list(PUBLISHED["properties"]) == list(SETTINGS)
    assert all(one.get("description") for one in PUBLISHED["properties"].values())


@pytest.mark.parametrize("name", SETTINGS)
def test_an_editor_accepts_what_the_program_accepts_and_marks_the_rest(name: str) -> None:
    example = read_yaml(SETTINGS[name].example).data
    apart = [value for value in [*VALUES, example] if VALIDATOR.is_valid({name: value}) != accepted(name, value)]
    assert apart == []


def test_the_template_has_every_setting_as_a_comment_and_sets_nothing() -> None:
    assert read_yaml(TEXT).data is None
    commented = re.findall(r"^#([a-z_]+:.*)$", TEXT, re.MULTILINE)
    data: Any = read_yaml("\n".join(commented)).data
    assert sorted(data) == sorted(SETTINGS)
    assert [name for name, value in data.items() if not accepted(name, value)] == []
    assert VALIDATOR.is_valid(data)


def test_the_template_tells_an_editor_where_the_schema_is() -> None:
    assert TEXT.splitlines()[0] == f"# yaml-language-server: $schema={Path(SCHEMA).name}"
