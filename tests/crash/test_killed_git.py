"""A git that was killed leaves its lock behind. The run goes on without anybody's help, and nobody's living lock is
touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tenuto.errors import Refused
from tenuto.files import git
from tests.acceptance.grounds import Ground, merges


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def leave(lock: Path) -> Path:
    """As a git leaves it that was killed before this process began."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(b"DIRC")
    os.utime(lock, (1_700_000_000, 1_700_000_000))
    return lock


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/tenuto/add-dark-mode.lock"])
def test_a_run_goes_on_over_the_lock_of_a_killed_git(ground: Ground, name: str) -> None:
    run = ground.start(_01="echo a > a.txt", _02="echo b > b.txt")
    lock = leave(ground.root / ".git" / name)
    assert ground.drive(run)["status"] == "completed"
    assert merges(ground) == ["01-a", "02-b"] and not lock.exists()
    assert (ground.root / "shared.txt").read_text() == "one\ntwo\nthree\n"


def test_a_run_begins_over_the_lock_of_a_killed_git(ground: Ground) -> None:
    leave(ground.root / ".git/index.lock")
    assert ground.drive(ground.start(_01="echo a > a.txt", _02="echo b > b.txt"))["status"] == "completed"


@pytest.mark.parametrize("name", ["index.lock", "refs/heads/main.lock"])
def test_a_lock_is_found_whatever_the_repository_is_called(tmp_path: Path, name: str) -> None:
    """Git's message shows other signs in the place of some."""
    ground = Ground(tmp_path / os.fsdecode(b"\r\n \xff'\"\\$\t\x01 \r\n"))
    lock = leave(ground.root / ".git" / name)
    (ground.root / "shared.txt").write_text("changed\n")
    assert git.commit(str(ground.root), ["shared.txt"], "changed") and not lock.exists()


def test_a_lock_from_before_the_clock_was_set_back_is_old(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock it is yet to come, and would be in the way until then."""
    monkeypatch.setattr(git, "_PATIENCE", 0.2)
    lock = leave(ground.root / ".git/index.lock")
    os.utime(lock, (4_000_000_000, 4_000_000_000))
    git.tell(str(ground.root), "reset", "--quiet")
    assert not lock.exists()


def test_a_run_goes_on_over_the_lock_that_its_own_agent_left(ground: Ground) -> None:
    """A git that is ended together with its agent, at a time limit, leaves its lock while the engine goes on."""
    left = "touch $(git rev-parse --git-path index.lock)"
    assert ground.drive(ground.start(_01=f"echo a > a.txt; {left}", _02="echo b > b.txt"))["status"] == "completed"
    assert merges(ground) == ["01-a", "02-b"]


def test_the_lock_of_a_git_at_work_stays(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`git commit` with its editor open holds the index for as long as somebody thinks; the lock may be older than
    we are."""
    monkeypatch.setattr(git, "_PATIENCE", 0.2)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    os.mkfifo(ours)
    os.mkfifo(theirs)
    (ground.root / "shared.txt").write_text("changed\n")
    editor = f"core.editor=sh -c 'echo open > {theirs}; read x < {ours}; echo said > \"$1\"' editor"
    words = ["git", "-c", "user.name=u", "-c", "user.email=u@localhost", "-c", editor, "commit", "--all"]
    person = subprocess.Popen(words, cwd=ground.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    theirs.read_text()  # the editor is open
    lock = ground.root / ".git/index.lock"
    os.utime(lock, (1_700_000_000, 1_700_000_000))
    with pytest.raises(Refused, match=r"index\.lock"):
        git.tell(str(ground.root), "reset", "--quiet")
    assert lock.exists()
    ours.write_text("done\n")
    assert person.wait() == 0 and ground.git("log", "-1", "--format=%s") == "said"
    git.tell(str(ground.root), "reset", "--quiet")


def test_a_lock_that_has_just_appeared_stays(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose it is cannot be told yet."""
    monkeypatch.setattr(git, "_PATIENCE", 0.2)
    lock = ground.root / ".git/index.lock"
    lock.write_bytes(b"")
    with pytest.raises(Refused, match=r"index\.lock"):
        git.tell(str(ground.root), "reset", "--quiet")
    assert lock.exists()


def test_a_lock_elsewhere_is_no_business_of_ours(ground: Ground, tmp_path: Path) -> None:
    """Git repeats names of files, and an agent may name a file as it likes."""
    lock = leave(tmp_path / "other" / "uv.lock")
    told = f"error: The following files would be overwritten:\n\tUnable to create '{lock}': File exists"
    assert git.named(told) == str(lock)
    assert not git.is_gone(str(lock), str(ground.root / ".git")) and lock.exists()
    through = f"{ground.root}/.git/../../other/uv.lock"
    assert not git.is_gone(through, str(ground.root / ".git")) and lock.exists()
