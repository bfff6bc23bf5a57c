"""`tenuto help`, `tenuto pipelines`, `tenuto roles`: what there is, for somebody who does not know its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Say = Callable[..., Any]


@pytest.mark.parametrize("words", [["run"], ["pipeline", "check"], ["context"], []])
def test_help_is_what_the_command_says_of_itself(words: list[str], say: Say, repository: Path) -> None:
    assert say("help", *words).out.strip() == say(*words, "--help").out.strip()


def test_help_for_a_command_that_there_is_not_names_the_nearest(say: Say, repository: Path) -> None:
    error = say("help", "aprove", "--json").error
    assert (error["code"], error["hint"]) == ("unknown-command", "tenuto approve")


def test_roles_are_listed_with_whose_they_are(say: Say, repository: Path) -> None:
    folder = repository / ".tenuto" / "roles"
    folder.mkdir(parents=True)
    (folder / "designer.md").write_text("---\nname: designer\ndescription: Ours.\n---\nDesign it.\n")
    roles = {role["name"]: role for role in say("roles", "--json").data["roles"]}
    assert roles["designer"]["description"] == "Ours."
    assert roles["designer"]["origin"] != roles["planner"]["origin"] == "shipped"


def test_pipelines_are_those_of_tenuto_pipeline_list(say: Say, repository: Path) -> None:
    assert say("pipelines", "--json").data == say("pipeline", "list", "--json").data
    assert "quick" in say("pipelines").out
