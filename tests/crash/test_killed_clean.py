"""`tenuto clean`, killed while it takes a work tree apart: repeated, it comes to its end, and no half of a tree
stays."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.grounds import Ground, receipts


def clean(ground: Ground, *before: str, path: str = "") -> subprocess.CompletedProcess[str]:
    words = [*before, sys.executable, "-m", "tenuto", "-C", str(ground.root), "clean"]
    environment = {**os.environ, "PATH": path + os.environ["PATH"]}
    return subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment)


def killed_at(point: str) -> list[str]:
    call, _, nth = point.partition(" ")
    return ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={nth}"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.fixture
def kept(ground: Ground) -> str:
    """The branch of an item that failed, whose tree may go."""
    failing = "mkdir -p b/c; echo 1 > b/c/d; echo 2 > b/e; echo half > a.txt; exit 1"
    run = ground.drive(ground.start(_01=failing, _02="echo b > b.txt"))
    return str(receipts(run)["01-a"]["kept"])


def comes_to_its_end(ground: Ground, kept: str) -> None:
    again = clean(ground)
    assert again.returncode == 0, again.stderr
    assert list((ground.root / ".tenuto/trees").glob("*/*")) == []
    assert ground.git("worktree", "list", "--porcelain").count("worktree ") == 1  # git knows of no other tree
    assert ground.git("show", f"{kept}:a.txt") == "half"


@pytest.mark.parametrize("point", ["unlink 1", "unlink 2", "unlink 4", "rmdir 2"])
def test_a_tree_goes_although_the_git_that_removed_it_was_killed(
    ground: Ground, kept: str, tmp_path: Path, point: str
) -> None:
    own = tmp_path / "bin"
    own.mkdir()
    real, dies = shutil.which("git"), shlex.join(killed_at(point))
    (own / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *"worktree remove"*) exec {dies} {real} "$@";; esac\nexec {real} "$@"\n'
    )
    (own / "git").chmod(0o755)
    assert clean(ground, path=f"{own}:").returncode == 4
    comes_to_its_end(ground, kept)


def test_a_tree_goes_although_we_were_killed_when_half_of_it_was_gone(ground: Ground, kept: str) -> None:
    (tree,) = (ground.root / ".tenuto/trees").glob("*/*")
    whole = left = len(list(tree.rglob("*")))
    point = 3
    while left == whole:  # the first calls may be about other files; git's own are without `at`
        assert clean(ground, *killed_at(f"unlinkat {point}")).returncode != 0
        (tree,) = (ground.root / ".tenuto/trees").glob("*/*")
        left, point = len(list(tree.rglob("*"))), point + 1
    assert 0 < left < whole
    comes_to_its_end(ground, kept)


def test_what_is_left_of_a_merged_tree_goes_with_the_next_engine(ground: Ground) -> None:
    """An engine that was killed while it removed the tree of an item that it had merged."""
    run = ground.drive(ground.start(_01="echo a > a.txt", _02="echo b > b.txt"))
    (tree,) = [one["extra"]["tree"] for one in run["attempts"].values() if one["item"] == "01-a"]
    left = ground.root / ".tenuto/trees" / run["id"] / f".going-{tree}"
    left.mkdir(parents=True)
    (left / "a.txt").write_text("a\n")
    ground.drive(run["id"])
    assert not left.exists()


def test_a_tree_that_somebody_locked_stays_and_is_named(ground: Ground) -> None:
    """Others go all the same."""
    ground.drive(ground.start(_01="echo a > a.txt; exit 1", _02="echo b > b.txt; exit 1"))
    kept, gone = sorted((ground.root / ".tenuto/trees").glob("*/*"))
    ground.git("worktree", "lock", str(kept))
    told = clean(ground)
    assert told.returncode == 0 and f"it is locked: git worktree unlock {kept}" in told.stdout
    assert (kept / "a.txt").read_text() == "a\n" and not gone.exists()
