"""Items in work trees of their own: made, filled, judged, merged in order, kept where they were not merged.

    trees = Trees(workspace, run_id)
    trees.prepare(job, setup)       a work tree on a branch of its own, with what its agent needs; what went wrong, in words
    trees.take_up(job)              the tree of an interrupted attempt, as its agent left it
    trees.merge(job, changed)       into the run's branch, as one commit with a trailer; or the conflict, in words
    trees.keep(job)                 what was not merged becomes a commit on the attempt's branch, and the tree stays
    trees.clear(run)                trees and branches of merged attempts go
    remove_tree(root, path)         a work tree goes: in one step, whoever is killed meanwhile
    locked(path)                    did somebody say that it stays (git worktree lock)?

A merge names its attempt in a `Tenuto-Attempt:` trailer: an engine that died between the merge and the journal finds it
there and does not merge again. Nothing is removed that is not merged. Documents of the run are no part of a merge: they
are copied in before and, where the attempt may write them, out afterwards.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import Any

from tenuto.core.definition.paths import tidy
from tenuto.core.names import check_path, slug
from tenuto.core.records import Run
from tenuto.drivers import copies, git
from tenuto.drivers.jobs import Job, existing
from tenuto.encoding import digest
from tenuto.errors import Refused
from tenuto.workspace.locate import main_root
from tenuto.workspace.turn import Workspace

TRAILER = "Tenuto-Attempt"
UNMERGED = "Tenuto-Unmerged"
GOING = ".going-"  # how the name of a work tree begins whose removal has begun
_LONGEST_CONFLICT = 20_000  # characters of a conflict that are kept as its finding


def isolated(run: Run, step: Any) -> bool:
    """Does this step's work happen in work trees? Items do, where the run was started so; everything else works in the run's own."""
    return bool(run["settings"].get("workspace") == "worktree" and step["kind"] == "waves")


def tree_name(attempt: str) -> str:
    """A name for folder and branch: readable, and never the same for two attempts."""
    return f"{slug(attempt)[:80].strip('-')}-{digest(attempt.encode())[:8]}"


def place_of(workspace: Workspace) -> str:
    """Where the work trees of all runs lie: not below .git, where programs like Claude Code let nobody write."""
    return f"{main_root(workspace.root, workspace.tree, workspace.state) or workspace.root}/.tenuto/trees"


class Trees:
    def __init__(self, workspace: Workspace, run: str) -> None:
        self.root = workspace.root
        self.run = run
        self.state = workspace.state
        self.folder = f"{place_of(workspace)}/{run}"

    def path(self, tree: str) -> str:
        return f"{self.folder}/{tree}"

    def branch(self, tree: str) -> str:
        # Not below tenuto/<run>/: git cannot have a branch and a folder of branches of one name.
        return f"tenuto-attempts/{self.run}/{tree}"

    def _branch_of(self, job: Job) -> str:
        return self.branch(job.attempt["extra"]["tree"])

    def stands(self, tree: str) -> bool:
        return os.path.isdir(self.path(tree)) and self._is_ours(self.path(tree))

    # ---- before the agent

    def prepare(self, job: Job, copied: list[str]) -> str:
        """The base commit, with the tree standing on it. A tree that is there already (a second start) is left as it is."""
        path, base = job.workdir, git.head(self.root)
        if not os.path.isdir(path):
            self._make_room()
            git.tell(self.root, "worktree", "prune")
            git.tell(self.root, "worktree", "add", "--quiet", "-B", self._branch_of(job), path, base)
            self._fill(job, path, copied)
        return base

    def _make_room(self) -> None:
        """The folder of this run's trees. Git does not look into it: what lies there is nobody's change."""
        home = self.folder.removesuffix(f"/.tenuto/trees/{self.run}")
        copies.make_folder(home, f".tenuto/trees/{self.run}")
        if not os.path.lexists(f"{home}/.tenuto/trees/.gitignore"):
            copies.put(home, ".tenuto/trees/.gitignore", b"*\n")

    def _fill(self, job: Job, path: str, copied: list[str]) -> None:
        documents = [*job.inputs(self.root), *(p for name in job.deliverables for p in existing(self.root, name))]
        for name in dict.fromkeys(documents):
            copies.copy(f"{self.root}/{name}", path, name)
        if job.seat["memory"] != "write" and os.path.isfile(f"{path}/{job.path('memory.md')}"):
            copies.keep_from_writing(path, job.path("memory.md"))  # a reader's copy; whoever changes it all the same is found out
        for pattern in copied:
            for name in _matching(self.root, pattern):
                if not os.path.lexists(f"{path}/{name}"):
                    copies.copy(f"{self.root}/{name}", path, name)

    def take_up(self, job: Job) -> None:
        """What was kept of an interrupted attempt is no commit any more: the agent that goes on finds its files as it left them."""
        kept = git.ask(job.workdir, "log", "-1", f"--format=%(trailers:key={UNMERGED},valueonly)").out.strip()
        if kept.startswith(f"{self.run}/"):
            git.tell(job.workdir, "reset", "--quiet", "HEAD~1")

    # ---- after it

    def damage(self, job: Job, changed: list[str]) -> str:
        """Why nothing of this tree can be taken over, in words: it is not ours any more, or holds a repository of its own."""
        path = job.workdir
        if not self._is_ours(path):
            return "its work tree is no work tree of this repository any more (.git was changed)"
        nested = [name.rstrip("/") for name in changed if os.path.lexists(f"{path}/{name.rstrip('/')}/.git")]
        return f"it made a git repository of its own, which cannot be merged: {', '.join(nested)}" if nested else ""

    def _is_ours(self, path: str) -> bool:
        """Its .git leads to our repository, and from there back: no command of ours acts on another tree."""
        try:
            with open(f"{path}/.git", encoding="utf-8", errors="surrogateescape") as file:  # a folder's name need not be text
                place = os.path.join(path, file.read().removeprefix("gitdir:").strip())
            with open(f"{place}/gitdir", encoding="utf-8", errors="surrogateescape") as file:
                back = os.path.join(place, file.read().strip())
            inside = os.path.realpath(os.path.dirname(self.state)) + "/worktrees/"
            leads_back = os.path.realpath(back) == os.path.realpath(f"{path}/.git")
            return leads_back and os.path.realpath(place).startswith(inside)
        except (OSError, ValueError):  # the latter: a NUL in it
            return False

    def merged(self, job: Job) -> str:
        """The commit that merged this attempt, if one did."""
        return git.trailers(self.root, job.run["settings"].get("base_commit", ""), TRAILER).get(self._mark(job), "")

    def merge(self, job: Job, base: str, changed: list[str], summary: str) -> dict[str, str]:
        """{"commit"} of the merge ("" where no code changed), or {"conflict"}. The run's own tree is as before after a conflict."""
        known = self.merged(job)
        if known:
            return {"commit": known}
        self._refuse_other_branch(job)
        self._refuse_moved_back(job)
        self._deliver(job, changed)
        path, branch = job.workdir, self._branch_of(job)
        code = [name for name in changed if not job.is_document(name)]
        git.tell(path, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
        about = f"{job.attempt['item'] or job.name}: {job.item['title'] if job.item else summary}"[:100]
        if not git.commit(path, code, about, base):
            return {"commit": ""}
        message = f"Merge {about}\n\n{summary}\n\n{TRAILER}: {self._mark(job)}"
        told = git.ask(
            self.root, *git.author(self.root), "merge", "--no-ff", "--no-verify", "--quiet", "-m", message, branch
        )
        if told.status == 0:
            return {"commit": git.head(self.root)}
        return {"conflict": self._conflict(told)}

    def _conflict(self, told: git.Told) -> str:
        """What does not fit together, for whoever does it again; then everything is taken back."""
        if not git.exists(self.root, "MERGE_HEAD"):
            raise Refused(
                "cannot-merge", f"git merge failed: {told.errors or told.out.strip()}", "correct that, then: tenuto run"
            )
        names = git.ask(self.root, "diff", "--name-only", "--diff-filter=U", "-z").out.split("\0")
        shown = git.ask(self.root, "diff", "--no-ext-diff").out[:_LONGEST_CONFLICT]
        git.tell(self.root, "merge", "--abort")
        return f"merge conflict with what was merged before it, in {', '.join(filter(None, names))}\n{shown}"

    def _deliver(self, job: Job, changed: list[str]) -> None:
        for name in changed:
            if job.is_document(name) and os.path.isfile(f"{job.workdir}/{name}"):
                copies.copy(f"{job.workdir}/{name}", self.root, name)

    def keep(self, job: Job, changed: list[str], reason: str) -> str:
        """What an attempt left that is not merged, as a commit on its branch. The tree stays where it is. Returns the branch."""
        path = job.workdir
        if not os.path.isdir(path) or self.damage(job, changed):
            return ""
        git.commit(path, changed, f"{job.name}: not merged\n\n{reason[:2000]}\n\n{UNMERGED}: {self._mark(job)}")
        return self._branch_of(job)

    def clear(self, run: Run) -> None:
        """Trees of merged attempts have nothing that is not elsewhere."""
        if not os.path.isdir(self.folder):
            return
        for attempt in run["attempts"].values():
            tree = attempt["extra"].get("tree", "")
            if tree and attempt["receipt"].get("merged") is not None:
                self.remove(tree)

    def remove(self, tree: str) -> None:
        """What cannot go now is for `tenuto clean`, which says why."""
        there = [path for path in (self.path(GOING + tree), self.path(tree)) if os.path.isdir(path)]
        if there and not locked(self.path(tree)):
            with suppress(Refused):
                for path in there:
                    remove_tree(self.root, path)
                git.ask(self.root, "branch", "--quiet", "-D", self.branch(tree))

    def _refuse_moved_back(self, job: Job) -> None:
        """The run's branch only grows. Where it does not have what was merged last, somebody moved it."""
        merged = [one["receipt"]["merged"] for one in job.run["attempts"].values() if one["receipt"].get("merged")]
        for sha in [*merged[-1:], job.run["settings"].get("base_commit", "")]:
            if sha and git.ask(self.root, "merge-base", "--is-ancestor", sha, "HEAD").status != 0:
                message = f"the branch of run {self.run} was moved: it does not have {sha[:12]} any more"
                raise Refused("branch-moved", message, f"git merge {sha[:12]}   (or: git reflog), then: tenuto run")

    def _mark(self, job: Job) -> str:
        return f"{self.run}/{job.name}"

    def _refuse_other_branch(self, job: Job) -> None:
        wanted = job.run["settings"].get("branch", "")
        found = git.branch(self.root)
        if git.exists(self.root, "MERGE_HEAD"):  # the one before us died in the middle
            git.tell(self.root, "merge", "--abort")
        if wanted and found != wanted:
            raise Refused(
                "other-branch",
                f"run {self.run} works on the branch {wanted}, and this work tree stands on {found or 'no branch'}",
                f"git switch {wanted}, then: tenuto run",
            )


def remove_tree(root: str, path: str) -> None:
    """Out of its place in one step, and then to pieces: git takes a tree apart where it stands, and one that lost half of its
    files to a git that was killed cannot be told from one that somebody works in. `path`: the tree, or what is left of it."""
    folder, name = os.path.split(path)
    name = name.removeprefix(GOING)
    place, going = f"{folder}/{name}", f"{folder}/{GOING}{name}"
    try:
        if path == place:
            if os.path.isdir(going):
                shutil.rmtree(going)
            os.rename(place, going)
        if not os.path.lexists(place):
            told = git.ask(root, "worktree", "remove", "--force", place)
            if told.status != 0 and "is not a working tree" not in told.errors:
                raise Refused("git-failed", f"git worktree remove failed: {told.errors or told.status}", "correct that, and run again")
            # A git that was killed at that left an entry without a place. Trees of others may only be away: theirs stay.
            git.tell(root, "worktree", "prune", "--expire=3.months.ago")
        shutil.rmtree(going)
    except FileNotFoundError:
        return  # somebody else does the same
    except OSError as error:
        message = f"{path} cannot be removed: {error.filename}: {error.strerror}"
        raise Refused("cannot-remove", message, "correct that, and run again") from None


def locked(path: str) -> bool:
    told = git.ask(path, "rev-parse", "--path-format=absolute", "--git-path", "locked") if os.path.isdir(path) else None
    return told is not None and told.status == 0 and os.path.exists(told.out.rstrip("\n"))


def _matching(root: str, pattern: str) -> list[str]:
    """Files and folders: `.env`, `node_modules`, `config/*.local`."""
    import glob

    inside = check_path(tidy(pattern.rstrip("/")), "path to copy")
    return sorted(glob.glob(inside, root_dir=root, recursive=True, include_hidden=True))
