"""git's part of `tenuto feature commit`: make the commit so that it survives, or find the one that was made."""

from __future__ import annotations

import os
import subprocess

from tenuto.drivers.hooks.changes import GUARD
from tenuto.errors import NotFound, Refused, TenutoError


def commit_staged(root: str, message: str) -> str:
    """Commit what is staged, flushed to disk, and return its hash."""
    if _git(root, "diff", "--cached", "--quiet").returncode == 0:
        raise Refused("nothing-staged", "nothing is staged, so there is nothing to commit", "git add, then again")
    done = _git(root, "-c", "core.fsync=committed,index", "commit", "--quiet", "-m", message)
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise TenutoError("commit-failed", f"git did not commit: {said}", "see what git says, then again")
    return find_commit(root, "HEAD")[0]


def find_commit(root: str, name: str) -> tuple[str, str]:
    """(hash, subject) of a commit in this repository."""
    done = _git(root, "log", "-1", "--format=%H%n%s", "--end-of-options", name)
    found, _, subject = done.stdout.partition("\n")
    if done.returncode or not found:
        raise NotFound("no-such-commit", f"there is no commit {name!r} in this repository", "git log")
    return found, subject.strip()


def _git(root: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", root, *words]
    try:
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, GUARD: "1"},
        )
    except OSError as error:
        raise NotFound("no-git", f"git cannot be started: {error.strerror}", "install git") from None
