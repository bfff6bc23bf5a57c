"""Definitions: where pipelines come from, and where in the text a problem stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.errors import BadInput, NotFound, TenutoError
from tenuto.knowledge import definitions, plain_data

MINE = """\
# a comment
name: mine
steps:
  - id: one
    agent: {role: worker, out: one.md}
"""


def put(root: Path, text: str, name: str = "mine.yaml") -> Path:
    folder = root / ".tenuto" / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def refusal(root: Path, text: str, name: str = "mine.yaml") -> str:
    put(root, text, name)
    with pytest.raises(BadInput) as refused:
        definitions.load(name.partition(".")[0], root)
    return refused.value.message


def test_a_repository_has_pipelines_of_its_own_in_yaml_and_json(tmp_path: Path) -> None:
    put(tmp_path, MINE)
    put(tmp_path, json.dumps({"name": "ours", "steps": [{"id": "a", "agent": "worker"}]}, indent="\t"), "ours.json")
    assert definitions.load("mine", tmp_path)["steps"][0]["id"] == "one"
    assert definitions.load("ours", tmp_path)["name"] == "ours"
    listed = {entry["name"]: entry["origin"] for entry in definitions.available(tmp_path)}
    assert listed["mine"] == listed["ours"] == "repository"
    assert listed["eight-step"] == "shipped"


def test_a_repository_overrides_a_shipped_pipeline(tmp_path: Path) -> None:
    put(tmp_path, MINE.replace("mine", "poc"), "poc.yaml")
    assert [step["id"] for step in definitions.load("poc", tmp_path)["steps"]] == ["one"]
    assert definitions.load("poc")["finish"] == "poc-complete"


def test_a_file_can_be_named_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MINE)
    assert definitions.load("mine.yaml", tmp_path)["name"] == "mine"
    with pytest.raises(NotFound):
        definitions.load("other.yaml", tmp_path)


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    put(tmp_path, MINE, "mine.yml")
    assert "more than once: mine.yaml, mine.yml" in refusal(tmp_path, MINE)


def test_an_unknown_name_lists_what_there_is_and_no_name_leads_outside(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as missing:
        definitions.load("nine-step", tmp_path)
    assert "eight-step" in missing.value.hint
    with pytest.raises(BadInput):
        definitions.load("../../etc/passwd", tmp_path)


def test_every_problem_is_reported_with_file_line_and_column(tmp_path: Path) -> None:
    text = MINE + "    evidnce: []\n  - id: two\n    agent: {role: worker}\n    on:\n      ERROR: hold\ncap: 0\n"
    message = refusal(tmp_path, text)
    file = str(tmp_path / ".tenuto" / "pipelines" / "mine.yaml")
    assert message.splitlines()[0] == f"the pipeline in {file} has 2 problems:"
    assert f"{file}:6:5: [unknown-key] a step with agent has no key 'evidnce'" in message
    assert f"{file}:11:1: [out-of-range] the cap is 0" in message


def test_problems_of_routes_are_found_once_the_steps_are_sound(tmp_path: Path) -> None:
    message = refusal(tmp_path, MINE + "    on:\n      ERROR: {route: [zero], at_most: 1}\n")
    assert ":7:23: [unknown-step] there is no step 'zero'" in message


def test_json_problems_have_places_too(tmp_path: Path) -> None:
    text = '{\n\t"name": "ours",\n\t"steps": [{"id": "a", "agent": "w", "colour": 1}]\n}\n'
    column = text.splitlines()[2].index('"colour"') + 1
    assert f"ours.json:3:{column}: [unknown-key]" in refusal(tmp_path, text, "ours.json")


def test_a_file_and_its_pipeline_have_one_name(tmp_path: Path) -> None:
    assert ":2:1: [other-name]" in refusal(tmp_path, MINE.replace("name: mine", "name: yours"))


def test_settings_of_a_run_reach_the_bounds(tmp_path: Path) -> None:
    """maxFixAttempts is the user's; the route's bound follows it."""
    pipeline: Any = definitions.load("staged-minimal", settings={"reviewPolicy": {"maxFixAttempts": 4}})
    review = next(step for step in pipeline["steps"] if step["id"] == "2.3")
    assert review["on"]["NEEDS_REVISION"]["then"]["at_most"] == 4
    assert review["on"]["NEEDS_REVISION"]["then"]["then"]["at_most"] == 3
    assert pipeline["settings"]["reviewPolicy"] == {
        "minBlockSeverity": "LOW",
        "maxFixAttempts": 4,
        "maxStageRestarts": 3,
    }


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: &x [1]\nb: *x\n", ":2:4: aliases are not allowed"),
        ("a: 1\nb: 2\na: 3\n", ":3:1: the key 'a' is there twice"),
        ("a: !!python/name:os.system x\n", ":1:4: the tag"),
        ("a: 1\n---\nb: 2\n", ":2:1: there is more than one document"),
        ("a: [1, 2\n", "expected"),
        ("? [a]\n: 1\n", ":1:3: a key must be text"),
        ("a: 1e999\n", ":1:4: the number 1e999 is too large"),
        ("[\n" * 20_000, ":65:1: nested deeper than 64"),
        ("a: \x00\n", "special characters are not allowed"),
        ("x" * (plain_data.LARGEST + 1), "larger than 256 KB"),
    ],
)
def test_yaml_that_could_hurt_is_refused_by_name(text: str, where: str) -> None:
    with pytest.raises(BadInput) as refused:
        plain_data.read_yaml(text, "x.yaml")
    assert where in refused.value.message


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1, "a": 2}', ":1:10: the key 'a' is there twice"),
        ("[NaN]", "NaN is no JSON number"),
        ("[1e999]", "1e999 is no JSON number"),
        ("[\n" * 20_000, "nested deeper than 64"),
        ("{'a': 1}", ":1:2: Expecting property name"),
    ],
)
def test_json_that_could_hurt_is_refused_by_name(text: str, where: str) -> None:
    with pytest.raises(BadInput) as refused:
        plain_data.read_yaml(text, "x.json")
    assert where in refused.value.message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "").write_bytes(b"name: \xff\n")
    with pytest.raises(BadInput) as refused:
        definitions.load("mine", tmp_path)
    assert "not UTF-8 at byte 6" in refused.value.message
    assert next(one for one in definitions.available(tmp_path) if one["name"] == "mine")["problems"] == 1


def test_keys_and_values_are_what_the_author_sees() -> None:
    """`on` stays a word, `1.2` as a key stays text, quoted numbers stay text."""
    data = plain_data.read_yaml('on: yes\n1.2: 1.2\nn: "3"\nm: 3\ne:\nt: true\n', "x.yaml").data
    assert data == {"on": "yes", "1.2": 1.2, "n": "3", "m": 3, "e": None, "t": True}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_any_json_is_read_back_as_it_was(value: Any) -> None:
    assert plain_data.read_yaml(json.dumps(value), "x.json").data == value


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"#, \n\t1.~?%@`"), max_size=40))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    for name in ("x.yaml", "x.json"):
        try:
            plain_data.read_yaml(text, name)
        except TenutoError as refused:
            assert refused.code and refused.message.startswith("x.")


@pytest.mark.parametrize("steps", ["", "gates: signed\n", "steps:\n", "steps: 3\n", "steps: {a: b}\n"])
def test_a_definition_without_a_list_of_steps_is_refused_by_name(tmp_path: Path, steps: str) -> None:
    assert "steps" in refusal(tmp_path, "name: mine\n" + steps)
