"""Work trees and branches of attempts that are over: what is left of them, and what may go.

    found = look(workspace, "dark-mode")    every tree and branch of its attempts, with what becomes of it and why
    sweep(workspace, found)                 removes those that may go

Rules. A work tree goes when everything that was done in it lies on a branch, or when no agent ever started in it. A branch goes
when another branch, that is not an attempt's, has everything that is on it. What is under way stays, so does a tree in which an
interrupted agent may go on, and so does whatever cannot be understood. Nothing is ever removed that is not merged or recorded: what else should go, its user removes, with git.

Files that git ignores (dependencies, build results) go with their tree, as they do when an item is merged.
"""

from __future__ import annotations

import os
from typing import Any, TypedDict

from tenuto.core.decisions.attempts import in_flight
from tenuto.core.decisions.runs import ENDED
from tenuto.core.records import Run
from tenuto.core.visits import unfinished
from tenuto.drivers import git
from tenuto.drivers.bound import definition_of
from tenuto.drivers.boundary import Boundary
from tenuto.drivers.jobs import Job
from tenuto.drivers.trees import GOING, Trees, locked, place_of, remove_tree, tree_name
from tenuto.errors import TenutoError
from tenuto.workspace.turn import Workspace

_BRANCHES = "refs/heads/tenuto-attempts/"


class Leftover(TypedDict):
    kind: str  # tree, branch
    name: str  # its path, or the branch
    run: str
    attempt: str  # "" where no attempt of the run has such a tree
    item: str
    goes: bool
    why: str
    commit: str  # where a branch stood when it was looked at


def look(workspace: Workspace, run: str = "") -> list[Leftover]:
    """Of one run, or of every run. Trees are listed before runs are read: an attempt is recorded before its tree is made."""
    root, folder = workspace.root, place_of(workspace)
    names = [run] if run else _folders(folder)
    trees = {name: sorted(os.listdir(f"{folder}/{name}")) for name in names if os.path.isdir(f"{folder}/{name}")}
    branches = _branches(root, run)
    found: list[Leftover] = []
    for name in dict.fromkeys([*trees, *(one for one, _, _ in branches)]):
        place = _Place(workspace, name)
        of_trees = [place.tree(short) for short in trees.get(name, [])]
        standing = {one["name"].rpartition("/")[2] for one in of_trees if not one["goes"]}
        of_branches = [place.branch(short, sha, short in standing) for one, short, sha in branches if one == name]
        found += [*of_trees, *of_branches]
    return found


def sweep(workspace: Workspace, found: list[Leftover]) -> None:
    for one in found:
        if one["goes"] and one["kind"] == "tree":
            remove_tree(workspace.root, one["name"])
        elif one["goes"]:  # only where it still stands at what was looked at
            git.tell(workspace.root, "update-ref", "-d", f"refs/heads/{one['name']}", one["commit"])
    for name in {one["run"] for one in found}:
        _remove_empty(f"{place_of(workspace)}/{name}")


def _folders(folder: str) -> list[str]:
    return sorted(one.name for one in os.scandir(folder) if one.is_dir()) if os.path.isdir(folder) else []


class _Place:
    """One run's trees and branches, and what the journal knows of them."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.root = workspace.root
        self.name = name
        self.trees = Trees(workspace, name)
        self.boundary = Boundary(workspace, f"{workspace.state}/attempts/{name}")
        self.run, self.definition = _known(workspace, name)
        attempts = self.run["attempts"] if self.run else {}
        of_tree = {name: one["extra"].get("tree") or tree_name(name) for name, one in attempts.items()}
        self.attempts = {of_tree[name]: name for name in attempts}  # of several, whoever worked there last
        self.flying = [of_tree[name] for name in in_flight(self.run)] if self.run else []

    def tree(self, short: str) -> Leftover:
        goes, why = self._fate(short)
        return self._leftover("tree", f"{self.trees.folder}/{short}", short, goes, why)

    def branch(self, short: str, sha: str, standing: bool) -> Leftover:
        name = f"tenuto-attempts/{self.name}/{short}"
        if short in self.flying:
            return self._leftover("branch", name, short, False, "its attempt is under way", sha)
        if standing:
            return self._leftover("branch", name, short, False, "its work tree stays", sha)
        others = git.ask(self.root, "for-each-ref", "--contains", sha, "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags").out.split()
        other = next((ref for ref in others if not ref.startswith(_BRANCHES)), "")
        if other:
            return self._leftover("branch", name, short, True, f"all of it is on {other.partition('/')[2].partition('/')[2]}", sha)
        return self._leftover("branch", name, short, False, f"not merged anywhere{self._outcome(short)}; git branch -D {name}", sha)

    def _fate(self, short: str) -> tuple[bool, str]:
        path, branch = f"{self.trees.folder}/{short}", f"refs/heads/tenuto-attempts/{self.name}/{short}"
        if short.startswith(GOING) and os.path.isdir(path) and not os.path.islink(path):
            return True, "its removal had begun"
        if short in self.flying:
            return False, "its attempt is under way"
        if self._is_waited_for(short):
            return False, "its agent may go on in it: tenuto run"
        if os.path.realpath(path) == os.path.realpath(self.root):
            return False, "you are in it"
        changes = _changes(path)
        if changes is None:
            return False, "git knows no work tree here; look at it, and remove it yourself"
        if locked(path):
            return False, f"it is locked: git worktree unlock {path}"
        if git.ask(path, "merge-base", "--is-ancestor", "HEAD", branch).status != 0:
            return False, f"it stands on something that its branch {branch[11:]} does not have"
        nested = [line.partition("\t")[2] for line in git.ask(path, "ls-files", "-s").out.splitlines() if line.startswith("160000 ")]
        own = [name for name in nested if os.path.lexists(f"{path}/{name}/.git")]
        if own:
            return False, f"it holds a git repository of its own: {', '.join(own)}"
        left, why = self._left(short, changes)
        if left:
            more = f" and {len(left) - 5} more" if len(left) > 5 else ""
            return False, f"on no branch: {', '.join(left[:5])}{more}; commit them there, or: git worktree remove --force {path}"
        return True, why

    def _is_waited_for(self, short: str) -> bool:
        """Its attempt was interrupted, the run has not ended, and nobody has gone on with it yet."""
        run, name = self.run, self.attempts.get(short, "")
        if run is None or run["status"] in ENDED or not unfinished(run, name):
            return False
        return not any(one["extra"].get("follows") == name for one in run["attempts"].values())

    def _left(self, short: str, changes: dict[str, str]) -> tuple[list[str], str]:
        """What was done in the tree and lies on no branch; why there is nothing, in words."""
        job = self._job(short)
        if job is None:
            return list(changes), "all of it is on its branch"
        if not self.boundary.base(job):  # what lies here untracked was put here by the set-up
            return [path for path, state in changes.items() if state != "??"], "no agent started in it"
        merged = job.attempt["receipt"].get("merged") is not None
        done = self.boundary.changed(job)
        left = [path for path in changes if path in done and not (merged and job.is_document(path))]
        return left, "merged" if merged else "all of it is on its branch"

    def _job(self, short: str) -> Job | None:
        attempt = self.attempts.get(short)
        if self.run is None or attempt is None or self.definition is None:
            return None
        return Job(self.root, self.run, self.definition, attempt, self.trees.folder)

    def _outcome(self, short: str) -> str:
        attempt = self.run["attempts"].get(self.attempts.get(short, "")) if self.run else None
        said = (attempt["verdict"] or attempt["status"]) if attempt else ""
        return f" ({said}: {' '.join(attempt['summary'].split())[:100]})" if attempt else ""

    def _leftover(self, kind: str, name: str, short: str, goes: bool, why: str, sha: str = "") -> Leftover:
        attempt = self.attempts.get(short, "")
        item = (self.run["attempts"][attempt]["item"] or "") if self.run and attempt else ""
        return {
            "kind": kind, "name": name, "run": self.name, "attempt": attempt, "item": item, "goes": goes, "why": why, "commit": sha,
        }  # fmt: skip


def _known(workspace: Workspace, name: str) -> tuple[Run | None, Any]:
    with workspace.journal.read() as reader:
        run = reader.load(name)
        try:
            return run, definition_of(reader, run) if run else None
        except TenutoError:
            return run, None


def _branches(root: str, run: str) -> list[tuple[str, str, str]]:
    """(run, tree name, commit) of every branch of attempts."""
    told = git.ask(root, "for-each-ref", "--format=%(refname) %(objectname)", f"{_BRANCHES}{run + '/' if run else ''}")
    found = []
    for line in told.out.splitlines():
        name, _, sha = line.rpartition(" ")
        of, _, short = name.removeprefix(_BRANCHES).rpartition("/")
        found.append((of, short, sha))
    return found


def _changes(path: str) -> dict[str, str] | None:
    """What is not committed there, with git's two letters for it; None where this is no work tree of its own."""
    top = git.ask(path, "rev-parse", "--show-toplevel")
    if top.status != 0 or os.path.realpath(top.out.rstrip("\n")) != os.path.realpath(path):
        return None
    told = git.ask(path, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    return {line[3:]: line[:2] for line in told.out.split("\0") if line} if told.status == 0 else None


def _remove_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass
