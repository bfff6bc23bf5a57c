"""Links in the way of what is copied into work trees and out of them: nothing is written where they lead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tenuto.errors import TenutoError
from tests.acceptance.grounds import PIPELINE, Ground

NOTES = PIPELINE.replace(
    "roles: [{role: implementer, in: plan.md}]",
    "roles: [{role: implementer, in: plan.md, optional: [notes.md, kept/*.md]}]",
)
ONE_BY_ONE = "## Wave 1\n- 01-a (depends_on: none)\n## Wave 2\n- 02-b (depends_on: 01-a)\n"
DOCUMENTS = "docs/feature/add-dark-mode"


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "theirs").write_text("theirs\n")
    return Ground(tmp_path, NOTES)


def outside(ground: Ground) -> dict[str, Any]:
    folder = ground.root.parent / "outside"
    return {path.name: (path.is_file() and path.read_text(), oct(os.stat(path).st_mode)) for path in folder.iterdir()}


def drive(ground: Ground, name: str) -> str:
    """What was said of it: the run's failure, or why it was refused."""
    try:
        run = ground.drive(name)
    except TenutoError as refused:
        return f"{refused.code}: {refused.message}"
    return str(run["failure"] or run["status"])


def test_a_document_replaces_a_link_and_is_not_written_through_it(ground: Ground) -> None:
    write = f"rm {DOCUMENTS}/notes.md; echo mine > {DOCUMENTS}/notes.md"
    name = ground.start(_01=f"touch a; {write}", _02=f"touch b; {write}")
    notes = ground.root / DOCUMENTS / "notes.md"
    notes.symlink_to(ground.root.parent / "outside" / "theirs")
    before = outside(ground)
    drive(ground, name)
    assert outside(ground) == before
    assert not notes.is_symlink() and notes.read_text() != "theirs\n", "what an agent made stands in its place"


def test_a_link_is_no_document_and_the_agent_that_left_it_is_told(ground: Ground) -> None:
    away = ground.root.parent / "outside" / "theirs"
    name = ground.start(_01=f"touch a; ln -s {away} {DOCUMENTS}/notes.md", _02="touch b")
    run = ground.drive(name)
    said = run["attempts"]["implementation-1-implementer.01-a-1"]["summary"]
    assert said == f"claimed DONE, but the output {DOCUMENTS}/notes.md is a link, or lies behind one"
    assert not (ground.root / DOCUMENTS / "notes.md").is_symlink()


def test_a_folder_of_documents_that_is_a_link_is_refused_by_name(ground: Ground) -> None:
    before, away = outside(ground), ground.root.parent / "outside"
    name = ground.start(_01=f"touch a; mkdir -p {DOCUMENTS}/kept; echo mine > {DOCUMENTS}/kept/a.md", _02="touch b")
    (ground.root / DOCUMENTS / "kept").symlink_to(away)
    said = drive(ground, name)
    assert outside(ground) == before
    assert said.startswith(f"bad-folder: {DOCUMENTS}/kept is not a folder of this repository"), said


@pytest.mark.parametrize("where", [".tenuto/trees", ".tenuto/trees/add-dark-mode"])
def test_no_work_tree_is_made_behind_a_link(ground: Ground, where: str) -> None:
    name = ground.start(_01="touch a", _02="touch b")
    (ground.root / where).parent.mkdir(exist_ok=True)
    (ground.root / where).symlink_to(ground.root.parent / "outside")
    (ground.root / ".git" / "info" / "exclude").write_text(".tenuto/trees\n")
    before = outside(ground)
    said = drive(ground, name)
    assert outside(ground) == before
    assert said.startswith(f"bad-folder: {where} is not a folder of this repository"), said


def test_the_file_that_hides_work_trees_is_not_written_through_a_link(ground: Ground) -> None:
    name = ground.start(_01="touch a", _02="touch b")
    (ground.root / ".tenuto" / "trees").mkdir()
    (ground.root / ".tenuto" / "trees" / ".gitignore").symlink_to(ground.root.parent / "outside" / "made")
    (ground.root / ".git" / "info" / "exclude").write_text(".tenuto/trees\n")
    before = outside(ground)
    drive(ground, name)
    assert outside(ground) == before


def test_what_a_fresh_tree_gets_is_not_copied_through_a_link_of_the_commit(ground: Ground) -> None:
    """The commit that the run began at says `config` is a link; by now a folder with ignored files stands there."""
    (ground.root / "config").symlink_to(ground.root.parent / "outside")
    ground.git("add", "config")
    ground.git("commit", "-q", "-m", "a link")
    name = ground.start(_01="touch a", _02="touch b")
    ground.settings["setup"] = {"copy": ["config/*.local"]}
    ground.git("rm", "-q", "config")
    ground.git("commit", "-q", "-m", "a link no more")
    (ground.root / "config").mkdir()
    (ground.root / "config" / "x.local").write_text("mine\n")
    (ground.root / ".git" / "info" / "exclude").write_text("config/\n")
    before = outside(ground)
    drive(ground, name)
    assert outside(ground) == before


@pytest.mark.parametrize("name", ["../outside/theirs", "/etc/hostname"])
def test_what_a_fresh_tree_gets_lies_below_the_repository(ground: Ground, name: str) -> None:
    run = ground.start(_01="touch a", _02="touch b")
    ground.settings["setup"] = {"copy": [name]}
    said = drive(ground, run)
    assert not list((ground.root / ".tenuto" / "trees").glob("*/outside"))
    assert said.startswith("bad-name: "), said


def test_a_memory_that_is_a_link_changes_no_mode_elsewhere(ground: Ground) -> None:
    away = ground.root.parent / "outside" / "theirs"
    name = ground.start(_01="touch a", _02="touch b")
    (ground.root / DOCUMENTS / "memory.md").unlink()
    (ground.root / DOCUMENTS / "memory.md").symlink_to(away)
    before = outside(ground)
    drive(ground, name)
    assert outside(ground) == before
