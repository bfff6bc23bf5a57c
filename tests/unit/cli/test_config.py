"""`tenuto config`: which settings count, from where, and everything that is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Say = Callable[..., Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "project/.tenuto").mkdir(parents=True)
    (tmp_path / "project/.git").mkdir()
    (tmp_path / "home/.config/tenuto").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def test_each_value_is_shown_with_the_file_and_line_that_says_so(say: Say, here: Path) -> None:
    Path(".tenuto/config.yaml").write_text("# ours\npipeline: quick\nsecrets: [A_TOKEN]\n")
    own = here / "home/.config/tenuto/config.yaml"
    own.write_text("agent: claude\npipeline: ticket\nsecrets: [B_TOKEN]\n")
    rows = {one["name"]: one for one in say("config", "--json").data["settings"]}
    assert (rows["pipeline"]["value"], rows["pipeline"]["line"]) == ("quick", 2)
    assert rows["secrets"]["value"] == ["A_TOKEN", "B_TOKEN"]
    assert (rows["agent"]["value"], rows["agent"]["origin"]) == ("claude", "user")
    assert (rows["checks"]["value"], rows["checks"]["origin"]) == (None, "default")
    shown = say("config", "pipeline").out
    assert ".tenuto/config.yaml:2" in shown and "the name of a pipeline" in shown


def test_everything_that_is_wrong_is_named_with_its_place(say: Say, here: Path) -> None:
    Path(".tenuto/config.yaml").write_text("chekcs: {tests: make}\ngates: open\npipeline: quick\n")
    said = say("config", "--json")
    assert said.status == 2 and said.error["code"] == "bad-settings"
    found = [(one["line"], one["column"], one["code"]) for one in said.error["details"]["problems"]]
    assert found == [(1, 1, "bad-settings"), (2, 1, "bad-settings")]
    text = say("config", "--check").err
    assert ".tenuto/config.yaml:1:1" in text and "did you mean 'checks'?" in text
    assert ".tenuto/config.yaml:2:1" in text and "one of guarded, signed, isolated" in text


@pytest.mark.parametrize("text", ["agent: [", "- a\n- b\n", "a: *b\n", "agent: x\nagent: y\n"])
def test_a_file_that_cannot_be_read_is_named_with_its_place(say: Say, here: Path, text: str) -> None:
    Path(".tenuto/config.yaml").write_text(text)
    said = say("config", "--check", "--json")
    assert said.status == 2 and said.error["details"]["problems"][0]["line"] >= 1


def test_where_all_is_well_check_says_so(say: Say, here: Path) -> None:
    assert say("config", "--check").status == 0
    Path(".tenuto/config.yaml").write_text("pipeline: quick\n")
    assert say("config", "--check").out == "the settings are in order\n"


def test_a_setting_that_does_not_exist_is_named_with_the_nearest(say: Say, here: Path) -> None:
    said = say("config", "check", "--json")
    assert (said.status, said.error["code"]) == (3, "no-such-setting") and "checks" in said.error["hint"]


def test_schema_and_template_are_printed_for_an_editor_and_a_beginner(say: Say, here: Path) -> None:
    assert "checks" in json.loads(say("config", "--schema").out)["properties"]
    assert "#checks: " in say("config", "--template").out


def test_init_puts_both_beside_each_other(say: Say, here: Path) -> None:
    assert say("init").status == 0
    assert Path(".tenuto/config.schema.json").is_file()
    assert Path(".tenuto/config.yaml").read_text() == say("config", "--template").out
