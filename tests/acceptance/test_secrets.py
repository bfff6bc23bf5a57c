"""A value that was declared secret, in a file that an agent wrote: nothing of ours takes it over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenuto.drivers.start import Place
from tenuto.encoding import dumps
from tests.acceptance.grounds import OWN_TREES, Ground, merges

VALUE = "s3cret-5b1f-9a0c"


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("MY_TOKEN", VALUE)
    made = Ground(tmp_path)
    made.settings["secrets"] = ["MY_TOKEN"]
    return made


def summaries(run: Any) -> dict[str, str]:
    return {attempt["item"]: attempt["summary"] for attempt in run["attempts"].values() if attempt["item"]}


def committed(ground: Ground) -> str:
    """Everything that any commit holds."""
    return ground.git("log", "--all", "-p", "--format=%B")


def test_code_with_a_secret_in_it_is_neither_merged_nor_kept_as_a_commit(ground: Ground) -> None:
    name = ground.start(_01="echo fine > fine.txt", _02="printenv MY_TOKEN > code.txt; echo more > other.txt")
    run = ground.drive(name)
    assert summaries(run)["02-b"] == "claimed DONE, but the output code.txt holds the value of MY_TOKEN, which is secret"
    assert merges(ground) == ["01-a"]
    assert VALUE not in committed(ground) and "other.txt" in committed(ground)


def test_nor_where_the_agent_says_that_it_failed(ground: Ground) -> None:
    name = ground.start(_01="echo fine > fine.txt", _02="printenv MY_TOKEN > code.txt; exit 3")
    ground.drive(name)
    assert "fine.txt" in committed(ground) and VALUE not in committed(ground)


@pytest.mark.parametrize("place", [OWN_TREES, Place("shared")], ids=["worktree", "shared"])
@pytest.mark.parametrize(("plan", "why"), [("- 01-a (depends_on: none)", "holds the value of MY_TOKEN"), ("", "no item was found")])
def test_an_output_with_a_secret_in_it_is_not_taken_in(ground: Ground, place: Place, plan: str, why: str) -> None:
    """Whatever else is wrong with it."""
    name = ground.start(place=place)
    command = f"echo '## Wave 1' > plan; echo '{plan}' >> plan; printenv MY_TOKEN >> plan; mv plan docs/feature/{name}/plan.md"
    ground.script.write_text(dumps({"answers": [{"for": {"role": "planner"}, "files": {}, "run": command}]}))
    first = next(iter(ground.drive(name)["attempts"].values()))
    assert first["verdict"] == "ERROR" and why in first["summary"]
    state = ground.root / ".git" / "tenuto"
    assert [path for path in state.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()] == []


def test_a_file_that_nobody_could_read_whole_is_not_searched_for_one(ground: Ground) -> None:
    """A sparse file takes no room on the disk, and all of the memory of whoever reads it."""
    name = ground.start(_01="echo fine > fine.txt", _02="truncate -s 300G code.txt; exit 3")
    ground.drive(name)
    assert "fine.txt" in committed(ground)


def test_one_that_is_spelled_as_json_spells_it_is_found_too(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", 'with "quotes" in it')
    (tmp_path / "text").write_text(dumps({"key": 'with "quotes" in it'}))
    name = ground.start(_01="echo fine > fine.txt", _02=f"cp {tmp_path}/text code.txt")
    assert "holds the value of MY_TOKEN" in summaries(ground.drive(name))["02-b"]
