"""Beside others in one tree: a file that one of them writes beside its place and renames is nobody's trespass; a
removed one is."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tenuto
from tenuto.engine.boundary import ChangeWatch

PASSING, LEFT, REMOVED = "docs/review.md.tmp.403", "stray.txt", "code.txt"


@pytest.fixture
def seen(tmp_path: Path) -> tuple[ChangeWatch, Any]:
    """What a snapshot showed a moment ago: one is renamed by now, one stands, one that was committed is removed."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / REMOVED).write_text("x\n")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "-q", "-m", "begin"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / REMOVED).unlink()
    (root / LEFT).write_text("x\n")
    job = SimpleNamespace(name="review-1-a-1", workdir=str(root), isolated=False)
    return ChangeWatch(tenuto.open(str(root)), str(tmp_path / "attempts")), job


def test_what_another_one_has_renamed_by_now_is_nobodys(seen: tuple[ChangeWatch, Any]) -> None:
    boundary, job = seen
    assert boundary._standing(job, [PASSING, LEFT, REMOVED], [job.name, "review-1-b-1"]) == [LEFT, REMOVED]


def test_alone_everything_is_its_own_doing(seen: tuple[ChangeWatch, Any]) -> None:
    boundary, job = seen
    assert boundary._standing(job, [PASSING, LEFT, REMOVED], [job.name]) == [PASSING, LEFT, REMOVED]
