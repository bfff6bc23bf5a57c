"""Settings of a repository: what is known, what is refused, and a reference that says the same."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tenuto.engine.attempt import ENVIRONMENT
from tenuto.errors import BadInput
from tenuto.knowledge.definitions import find
from tenuto.knowledge.sources import place_of, references
from tenuto.workspace.settings import SETTINGS, read_settings

PAGE = (Path(__file__).resolve().parents[3] / "docs/reference/settings.md").read_text()
ROW = re.compile(r"^\| \[`(\w+)`\]\(#(\w+)\) \| (.+?) \| (.+?) \|$", re.MULTILINE)
SECTION = re.compile(r"^### (\w+)\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the examples use."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place_of(references([SETTINGS["uses"].example.strip("[]")])[0]).mkdir(parents=True)


def settings(folder: Path, text: str) -> Any:
    (folder / ".tenuto").mkdir(exist_ok=True)
    (folder / ".tenuto" / "config.yaml").write_text(text)
    return read_settings(str(folder))


def test_the_reference_lists_every_setting_with_its_shape_and_default() -> None:
    rows = {name: (anchor, shape, default) for name, anchor, shape, default in ROW.findall(PAGE)}
    assert list(rows) == list(SETTINGS)
    assert {name: row[1] for name, row in rows.items()} == {name: one.shape for name, one in SETTINGS.items()}
    assert all(row[0] == name and row[2] for name, row in rows.items())


def test_the_reference_explains_every_setting_with_an_example_that_is_accepted(tmp_path: Path) -> None:
    sections = dict(SECTION.findall(PAGE))
    assert sorted(sections) == sorted(SETTINGS)
    for name, body in sections.items():
        (example,) = YAML.findall(body)
        assert list(settings(tmp_path, example)) == [name]


def test_the_whole_file_of_the_reference_is_accepted_and_has_everything_in_it(tmp_path: Path) -> None:
    assert list(settings(tmp_path, YAML.findall(PAGE)[0])) == list(SETTINGS)


def test_the_reference_names_the_whole_allow_list_of_the_environment() -> None:
    told = dict(SECTION.findall(PAGE))["environment"]
    assert [name for name in ENVIRONMENT if f"`{name}`" not in told] == []


def test_the_example_of_every_setting_is_accepted(tmp_path: Path) -> None:
    for name, one in SETTINGS.items():
        assert name in settings(tmp_path, f"{name}: {one.example}\n")


@pytest.mark.parametrize(
    "text",
    [
        "agent: [a]",
        "agent: ''",
        "roles: {designer: 3}",
        "roles: [a]",
        "checks: {tests: [make]}",
        "checks: make",
        "environment: HOME",
        "environment: [1]",
        "workspace: tree",
        "setup: {run: npm ci}",
        "setup: {install: [npm ci]}",
        "gates: open",
        "gates: [signed]",
        "signers: 1",
        "isolation: sudo",
        "notify: {mail: x}",
        "notify: {url: 'file:///etc/passwd'}",
        "notify: ./tell-me",
        "pipeline: 3",
        "time_limit: soon",
        "time_limit: 0",
        "time_limit: [2h]",
        "time_limit: true",
        "time_limit: -3",
        "time_limit: 2 h",
    ],
)
def test_a_wrong_value_is_refused_with_the_right_shape_and_an_example(tmp_path: Path, text: str) -> None:
    """Never fail open: a setting that is not understood is not taken for its default."""
    name = text.partition(":")[0]
    with pytest.raises(BadInput) as refused:
        settings(tmp_path, text)
    assert f"'{name}' must be {SETTINGS[name].shape}" in refused.value.message
    assert refused.value.hint == f"{name}: {SETTINGS[name].example}"


def test_a_setting_that_nobody_knows_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'agents' that nobody knows") as refused:
        settings(tmp_path, "agents: command:./a")
    assert "agent, roles, fallback, pipeline" in refused.value.hint


def test_without_a_file_or_with_an_empty_one_everything_has_its_default(tmp_path: Path) -> None:
    assert read_settings(str(tmp_path)) == {} == settings(tmp_path, "# nothing yet\n")


@pytest.mark.parametrize("name", [".tenuto/config.yaml", ".tenuto/pipelines/eight-step.yaml"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_what_lies_in_the_place_of_a_file_is_refused_and_not_passed_over(tmp_path: Path, name: str, kind: str) -> None:
    """Never fail open: `gates: signed`, or the gates of a pipeline of one's own, would be missing without a word."""
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            path.symlink_to("gone")
    with pytest.raises(BadInput, match=str(path)) as refused:
        read_settings(str(tmp_path)) if "config" in name else find("eight-step", tmp_path)
    assert refused.value.code == "not-a-file"
