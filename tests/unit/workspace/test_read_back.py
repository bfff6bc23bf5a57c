"""A backup that is read back into another clone brings the state files with it: there, they never were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tenuto
from tenuto.encoding import dumps
from tenuto.workspace.backup import export, import_lines
from tenuto.workspace.checkup import examine


def repository(root: Path) -> tenuto.Repository:
    (root / ".git/tenuto").mkdir(parents=True)
    return tenuto.open(str(root))


@pytest.fixture
def here(tmp_path: Path) -> tenuto.Repository:
    return repository(tmp_path / "here")


@pytest.fixture
def elsewhere(tmp_path: Path) -> tenuto.Repository:
    return repository(tmp_path / "elsewhere")


def backup(workspace: tenuto.Repository) -> Iterator[bytes]:
    return (dumps(record).encode() + b"\n" for record in export(workspace, "0"))


def test_a_state_file_is_written_also_where_a_missing_one_is_refused(
    here: tenuto.Repository, elsewhere: tenuto.Repository
) -> None:
    """A feature's file that somebody removed stays away until he is asked; nobody has removed this one."""
    here.feature_state.start("OAuth login", "Sign in")
    import_lines(elsewhere, backup(here))
    written = Path(elsewhere.root, ".feature-state.json")
    assert written.read_bytes() == Path(here.root, ".feature-state.json").read_bytes()
    assert examine(elsewhere)["findings"] == []
    elsewhere.feature_state.answer({"problem": "Nobody can sign in"})


def test_a_file_that_stands_there_is_left_as_it_is(here: tenuto.Repository, elsewhere: tenuto.Repository) -> None:
    here.feature_state.start("OAuth login", "Sign in")
    Path(elsewhere.root, ".feature-state.json").write_text("theirs")
    import_lines(elsewhere, backup(here))
    assert Path(elsewhere.root, ".feature-state.json").read_text() == "theirs"


def test_what_stands_in_its_way_is_told_and_the_backup_is_taken(
    here: tenuto.Repository, elsewhere: tenuto.Repository, tmp_path: Path
) -> None:
    here.flow.initialize_workflow("T-1")
    (tmp_path / "theirs").mkdir()
    Path(elsewhere.root, ".ai-workspace").symlink_to(tmp_path / "theirs")
    assert "t-1" in import_lines(elsewhere, backup(here)).runs
    assert any("flow-state.json is not written" in line for line in elsewhere.warnings)
    assert not any((tmp_path / "theirs").iterdir())
