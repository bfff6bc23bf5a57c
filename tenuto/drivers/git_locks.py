"""Lock files that a git which was killed left behind: told from those of a git at work, and taken away.

Git makes `index.lock` (HEAD.lock, refs/heads/x.lock, ...) and removes it when it is done. One that is killed leaves it there, and every
later git refuses. A run must go on after that without anybody's help. Taken for left behind is a lock only if

- git names it, and it lies in the repository's own git directory: words in a file's name are not git's word;
- it is a file of ours, and was there before this process began, or has stood there for a while: a git that we ended with its
  agent leaves one, too;
- no process has it open, and no git works in this repository (an editor of `git commit` may stand open for hours).

Whatever else is locked is waited for a moment: `git status` in another window is done soon.
"""

from __future__ import annotations

import os
import re
import stat
import time

_BEGAN = time.time()
_PATIENCE = 3.0  # seconds, for a git that is at work
_WHILE = 2.0  # seconds, after which whoever made it can be seen at work
_PAUSE = 0.1
_TOLD = re.compile(r"Unable to create '([^\n]+?\.lock)': File exists")


def named(errors: str) -> str:
    """The lock file that kept git from its work; "" where it was something else."""
    found = _TOLD.search(errors)
    return found[1] if found else ""


def is_gone(lock: str, repository: str) -> bool:
    """May git be asked again? After a wait for whoever holds the lock, or after its removal where nobody does."""
    lock = os.path.realpath(os.path.dirname(lock)) + "/" + os.path.basename(lock)
    if not lock.startswith(os.path.realpath(repository) + "/"):
        return False
    until = time.monotonic() + _PATIENCE
    while os.path.lexists(lock):
        if _is_left_behind(lock, repository):
            os.unlink(lock)
        elif time.monotonic() > until:
            return False
        else:
            time.sleep(_PAUSE)
    return True


def _is_left_behind(lock: str, repository: str) -> bool:
    try:
        found = os.lstat(lock)
    except OSError:
        return False
    ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    now = time.time()  # a lock that is yet to come is from before the clock was set back
    old = found.st_mtime < max(_BEGAN, now - _WHILE) or found.st_mtime > now + _WHILE
    return ours and old and os.path.isdir("/proc/self/fd") and not any(_holds(pid, lock, repository) for pid in _others())


def _others() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]


def _holds(pid: str, lock: str, repository: str) -> bool:
    """Has this process the lock open, or is it a git in this repository? One that we may not look into is another user's."""
    folder = f"/proc/{pid}"
    try:
        if any(_leads_to(f"{folder}/fd/{number}") == lock for number in os.listdir(f"{folder}/fd")):
            return True
        with open(f"{folder}/comm", "rb") as file:
            is_git = file.read().startswith(b"git")
        return is_git and _is_within(_leads_to(f"{folder}/cwd"), repository)
    except OSError:  # it has ended
        return False


def _is_within(place: str, repository: str) -> bool:
    """In the git directory, or in a tree that belongs to it: its own, or one of its work trees."""
    roots = [os.path.dirname(os.path.realpath(repository)), os.path.realpath(repository)]
    trees = f"{repository}/worktrees"
    for name in os.listdir(trees) if os.path.isdir(trees) else []:
        try:
            with open(f"{trees}/{name}/gitdir", encoding="utf-8", errors="surrogateescape") as file:
                roots.append(os.path.realpath(os.path.dirname(file.read().strip())))
        except OSError:
            continue
    return any(place == root or place.startswith(root + "/") for root in roots)


def _leads_to(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
