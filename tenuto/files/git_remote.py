"""Git and other machines: what a repository's remotes are, a push, and the files of one commit.

    remotes(root)                         names and addresses, as a push takes them
    push(root, remote, branch)            one branch to the same name there; never forced
    commit_there(root, remote, branch)    the commit that it has there; "" where there is none
    resolve(address, name)                the commit that a branch, a tag or HEAD of an address names
    fetch_files(address, commit, folder)  the files of a commit, in a folder of their own, read-only, without .git

The calls are started as every other one (git_start.py): no hook, no setting of the repository, no program that an agent
could have named. Addresses are https, ssh or files; whatever else git could start for an address is switched off. Who
needs a credential helper, a proxy or another ssh writes that into a file of their own (git_start.REMOTES). A helper
that a caller names (`helper`: gh, glab) is asked for that one host only.

Files are checked out as they are stored: no filter, no link (a link is a small file with its target in it).
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from typing import NamedTuple

from tenuto.errors import Refused
from tenuto.files import git, git_start

_SECONDS = 600.0


class Credentials(NamedTuple):
    """A program that knows the credentials for a host."""

    host: str
    command: str  # as a shell reads it


def remotes(root: str) -> dict[str, str]:
    """In git's order; empty without git."""
    names = git.ask(root, "remote").out.split()
    asked = {name: git.ask(root, "remote", "get-url", "--push", "--", name) for name in names}
    return {name: answer.out.strip() for name, answer in asked.items() if answer.status == 0}


def push(root: str, remote: str, branch: str, helper: Credentials | None = None) -> None:
    ref = f"refs/heads/{branch}"
    _tell(root, "push", "--porcelain", "--", remote, f"{ref}:{ref}", helper=helper)


def commit_there(root: str, remote: str, branch: str, helper: Credentials | None = None) -> str:
    said = _tell(root, "ls-remote", "--", remote, f"refs/heads/{branch}", helper=helper)
    return said.split()[0] if said.split() else ""


def fetch_branch(root: str, remote: str, branch: str, helper: Credentials | None = None) -> str:
    """The commit that the branch has there, with everything that it needs; "" where it is not there."""
    commit = commit_there(root, remote, branch, helper)
    if commit and not git.exists(root, commit):
        _tell(root, "fetch", "--quiet", "--no-tags", "--", remote, f"refs/heads/{branch}", helper=helper)
    return commit


def resolve(address: str, name: str) -> str:
    folder = tempfile.mkdtemp(prefix="tenuto-git-")
    try:
        _new(folder)
        said = _tell(folder, "ls-remote", "--", address, name, f"{name}^{{}}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = {ref: commit for commit, mark, ref in (line.partition("\t") for line in said.splitlines()) if mark}
    for wanted in (f"refs/tags/{name}^{{}}", name, f"refs/heads/{name}", f"refs/tags/{name}"):
        if wanted in found:
            return found[wanted]
    raise Refused("no-such-commit", f"{address} has no {name!r}", "a branch, a tag, or a commit in full")


def fetch_files(address: str, commit: str, folder: str) -> None:
    """Whole or not at all. What is there already stays."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    beside = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(folder))
    try:
        _new(beside)
        whole = ("-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags")
        one = _ask(beside, *whole, "--depth=1", "--", address, commit)
        if one.status != 0:  # a server may serve branches and tags only
            _tell(beside, *whole, "--", address, "+refs/heads/*:refs/b/*", "+refs/tags/*:refs/t/*")
        if not git.exists(beside, commit):
            raise Refused("no-such-commit", f"{address} has no commit {commit}", "is it pushed?")
        git.tell(
            beside, "-c", "core.symlinks=false", "-c", "core.autocrlf=false", "checkout", "--quiet", "--detach", commit
        )
        shutil.rmtree(f"{beside}/.git")
        _make_read_only(beside)
        if not os.path.isdir(folder):
            os.rename(beside, folder)
    finally:
        _remove(beside)


def _new(folder: str) -> None:
    answer = git_start.make_repository(folder)
    if answer.status != 0:
        raise Refused("git-failed", f"git made no repository in {folder}: {answer.errors}", "tenuto doctor")


def _make_read_only(folder: str) -> None:
    for where, _, names in os.walk(folder):
        for name in names:
            os.chmod(f"{where}/{name}", 0o444)
        os.chmod(where, stat.S_IRWXU)  # of its owner, who can remove it again


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _tell(root: str, *words: str, helper: Credentials | None = None) -> str:
    answer = _ask(root, *words, helper=helper)
    if answer.status != 0:
        verb = next(word for word in words if word in ("push", "fetch", "ls-remote"))
        reason = answer.errors or answer.out.strip() or f"exit status {answer.status}"
        hint = f"credentials, a proxy, another ssh: {git_start.remotes_file()} (docs/howto/open-a-pull-request.md)"
        raise Refused("git-failed", f"git {verb} failed: {reason}", hint)
    return answer.out


def _ask(root: str, *words: str, helper: Credentials | None = None) -> git.Answer:
    more: list[str] = []
    if helper is not None:
        more += ["-c", f"credential.https://{helper.host}.helper=!{helper.command}"]
    asked = (*more, *git_start.remote_words(root), *words)
    return git.transfer(root, *asked, seconds=_SECONDS)
