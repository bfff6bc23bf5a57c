"""Items in work trees of their own: made, filled, judged, merged in order, kept where they were not merged.

    trees = Trees(workspace, run_id)
    trees.prepare(job, setup)       a work tree on a branch of its own, with what its agent needs; what went wrong, in
                                    words
    trees.take_up(job)              the tree of an interrupted attempt, as its agent left it
    trees.merge(job, changed)       into the run's branch, as one commit with a trailer; or the conflict, in words
    trees.keep(job)                 what was not merged becomes a commit on the attempt's branch, and the tree stays
    trees.clear(run)                trees and branches of merged attempts go
    remove_tree(root, path)         a work tree goes: in one step, also where this process is killed meanwhile
    locked(path)                    did its user say that it stays (git worktree lock)?

A merge names its attempt in a `Tenuto-Attempt:` trailer: an engine that died between the merge and the journal finds it
there and does not merge again. Nothing is removed that is not merged. Documents of the run are no part of a merge: they
are copied in before and, where the attempt may write them, out afterwards.

Work trees and branches of attempts that are over: what is left of them, and what may go.

    found = look(workspace, "dark-mode")    every tree and branch of its attempts, with what becomes of it and why
    sweep(workspace, found)                 removes those that may go

Rules. A work tree goes when everything that was done in it lies on a branch, or when no agent ever started in it. A
branch goes when another branch, that is not an attempt's, has everything that is on it. What is under way stays, so
does a tree in which an interrupted agent may go on, and so does whatever cannot be understood. Nothing is ever removed
that is not merged or recorded: what else should go, its user removes, with git.

Files that git ignores (dependencies, build results) go with their tree, as they do when an item is merged.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import NamedTuple, TypedDict

from tenuto.core.pipeline.records import Step
from tenuto.core.records.action import Definition
from tenuto.core.records.run import Run
from tenuto.core.status import ENDED
from tenuto.core.visit import unfinished
from tenuto.encoding import digest
from tenuto.engine.attempt import AttemptPlan, definition_of, existing
from tenuto.engine.boundary import ChangeWatch
from tenuto.errors import Refused, TenutoError
from tenuto.files import copies, git
from tenuto.files.git_links import git_directory, path_in
from tenuto.names import as_glob, check_path, slug, without_dots
from tenuto.workspace.locate import main_root
from tenuto.workspace.workspace import Workspace

TRAILER = "Tenuto-Attempt"
UNMERGED = "Tenuto-Unmerged"
GOING = ".going-"  # how the name of a work tree begins whose removal has begun
_LONGEST_CONFLICT = 20_000  # characters of a conflict that are kept as its finding


def isolated(run: Run, step: Step) -> bool:
    """Does this step's work happen in work trees? Items do, where the run was started so; everything else works in
    the run's own."""
    return bool(run["settings"].get("workspace") == "worktree" and step["kind"] == "waves")


def tree_name(attempt: str) -> str:
    """A name for folder and branch: readable, and never the same for two attempts."""
    return f"{slug(attempt)[:80].strip('-')}-{digest(attempt.encode())[:8]}"


def place_of(workspace: Workspace) -> str:
    """Where the work trees of all runs lie: not below .git, where programs like Claude Code refuse to write."""
    return f"{main_root(workspace.root, workspace.tree, workspace.state) or workspace.root}/.tenuto/trees"


class Merge(NamedTuple):
    commit: str | None  # "": no code changed; None: there was a conflict
    conflict: str = ""


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

    def _branch_of(self, plan: AttemptPlan) -> str:
        return self.branch(plan.attempt["extra"]["tree"])

    def stands(self, tree: str) -> bool:
        return os.path.isdir(self.path(tree)) and self._is_ours(self.path(tree))

    # ---- before the agent

    def prepare(self, plan: AttemptPlan, copied: list[str]) -> str:
        """The base commit, with the tree standing on it. A tree that is there already (a second start) is left as it
        is."""
        path, base = plan.workdir, git.head(self.root)
        if not os.path.isdir(path):
            self.make(plan, base)
            self._fill(plan, path, copied)
        git.settle_tree(self.root, path)
        return base

    def make(self, plan: AttemptPlan, base: str) -> None:
        self._make_room()
        git.refuse_filters(self.root)
        git.tell(self.root, "worktree", "prune")
        git.add_tree(self.root, plan.workdir, "-B", self._branch_of(plan), base)

    def _make_room(self) -> None:
        """The folder of this run's trees. Git does not look into it: what lies there is no change."""
        home = self.folder.removesuffix(f"/.tenuto/trees/{self.run}")
        copies.make_folder(home, f".tenuto/trees/{self.run}")
        if not os.path.lexists(f"{home}/.tenuto/trees/.gitignore"):
            copies.put(home, ".tenuto/trees/.gitignore", b"*\n")

    def _fill(self, plan: AttemptPlan, path: str, copied: list[str]) -> None:
        documents = [*plan.inputs(self.root), *(p for name in plan.deliverables for p in existing(self.root, name))]
        for name in dict.fromkeys(documents):
            copies.copy(f"{self.root}/{name}", path, name)
        if plan.seat["memory"] != "write" and os.path.isfile(f"{path}/{plan.path('memory.md')}"):
            copies.keep_from_writing(
                path, plan.path("memory.md")
            )  # a reader's copy; a change of it is found all the same
        for pattern in copied:
            for name in matching(self.root, pattern):
                if not os.path.lexists(f"{path}/{name}"):
                    copies.copy(f"{self.root}/{name}", path, name)

    def take_up(self, plan: AttemptPlan) -> None:
        """What was kept of an interrupted attempt is no commit any more: the agent that goes on finds its files as
        it left them."""
        kept = git.ask(plan.workdir, "log", "-1", f"--format=%(trailers:key={UNMERGED},valueonly)").out.strip()
        if kept.startswith(f"{self.run}/"):
            git.tell(plan.workdir, "reset", "--quiet", "HEAD~1")

    # ---- after it

    def damage(self, plan: AttemptPlan, changed: list[str]) -> str:
        """Why nothing of this tree can be taken over, in words: it is not ours any more, or holds a repository of
        its own."""
        path = plan.workdir
        if not self._is_ours(path):
            return "its work tree is no work tree of this repository any more (.git was changed)"
        nested = [name.rstrip("/") for name in changed if os.path.lexists(f"{path}/{name.rstrip('/')}/.git")]
        return f"it made a git repository of its own, which cannot be merged: {', '.join(nested)}" if nested else ""

    def _is_ours(self, path: str) -> bool:
        """Its .git leads to our repository, and from there back: no command of ours acts on another tree."""
        place = git_directory(path)
        back = path_in(f"{place}/gitdir") if place else ""
        inside = os.path.realpath(os.path.dirname(self.state)) + "/worktrees/"
        leads_back = bool(back) and os.path.realpath(os.path.join(place, back)) == os.path.realpath(f"{path}/.git")
        return leads_back and os.path.realpath(place).startswith(inside)

    def merged(self, plan: AttemptPlan) -> str:
        """The commit that merged this attempt, if one did."""
        return git.trailers(self.root, plan.run["settings"].get("base_commit", ""), TRAILER).get(self._mark(plan), "")

    def merge(self, plan: AttemptPlan, base: str, changed: list[str], summary: str) -> Merge:
        """The run's own tree is as before after a conflict."""
        known = self.merged(plan)
        if known:
            return Merge(known)
        self._refuse_other_branch(plan)
        self._refuse_moved_back(plan)
        self._deliver(plan, changed)
        path, branch = plan.workdir, self._branch_of(plan)
        code = [name for name in changed if not plan.is_document(name)]
        git.tell(path, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
        about = f"{plan.attempt['item'] or plan.name}: {plan.item['title'] if plan.item else summary}"[:100]
        if not git.commit(path, code, about, base):
            return Merge("")
        message = f"Merge {about}\n\n{summary}\n\n{TRAILER}: {self._mark(plan)}"
        answer = git.ask(
            self.root, *git.author(self.root), "merge", "--no-ff", "--no-verify", "--quiet", "-m", message, branch
        )
        if answer.status == 0:
            return Merge(git.head(self.root))
        return Merge(None, self._conflict(answer))

    def _conflict(self, answer: git.Answer) -> str:
        """What does not fit together, for the next attempt; then everything is taken back."""
        if not git.exists(self.root, "MERGE_HEAD"):
            raise Refused(
                "cannot-merge",
                f"git merge failed: {answer.errors or answer.out.strip()}",
                "correct that, then: tenuto run",
            )
        names = git.ask(self.root, "diff", "--name-only", "--diff-filter=U", "-z").out.split("\0")
        shown = git.ask(self.root, "diff", "--no-ext-diff", "--no-textconv").out[:_LONGEST_CONFLICT]
        git.tell(self.root, "merge", "--abort")
        return f"merge conflict with what was merged before it, in {', '.join(filter(None, names))}\n{shown}"

    def _deliver(self, plan: AttemptPlan, changed: list[str]) -> None:
        for name in changed:
            if plan.is_document(name) and os.path.isfile(f"{plan.workdir}/{name}"):
                copies.copy(f"{plan.workdir}/{name}", self.root, name)

    def keep(self, plan: AttemptPlan, changed: list[str], reason: str) -> str:
        """What an attempt left that is not merged, as a commit on its branch. The tree stays where it is. Returns
        the branch."""
        path = plan.workdir
        if not os.path.isdir(path) or self.damage(plan, changed):
            return ""
        git.commit(path, changed, f"{plan.name}: not merged\n\n{reason[:2000]}\n\n{UNMERGED}: {self._mark(plan)}")
        return self._branch_of(plan)

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

    def _refuse_moved_back(self, plan: AttemptPlan) -> None:
        """The run's branch only grows. Where it does not have what was merged last, it was moved."""
        merged = [one["receipt"]["merged"] for one in plan.run["attempts"].values() if one["receipt"].get("merged")]
        for sha in [*merged[-1:], plan.run["settings"].get("base_commit", "")]:
            if sha and git.ask(self.root, "merge-base", "--is-ancestor", sha, "HEAD").status != 0:
                message = f"the branch of run {self.run} was moved: it does not have {sha[:12]} any more"
                raise Refused("branch-moved", message, f"git merge {sha[:12]}   (or: git reflog), then: tenuto run")

    def _mark(self, plan: AttemptPlan) -> str:
        return f"{self.run}/{plan.name}"

    def _refuse_other_branch(self, plan: AttemptPlan) -> None:
        wanted = plan.run["settings"].get("branch", "")
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
    """Out of its place in one step, and then to pieces: git takes a tree apart where it stands, and one that lost
    half of its files to a git that was killed looks like one that an agent works in. `path`: the tree, or what is
    left of it."""
    folder, name = os.path.split(path)
    name = name.removeprefix(GOING)
    place, going = f"{folder}/{name}", f"{folder}/{GOING}{name}"
    try:
        if path == place:
            if os.path.isdir(going):
                shutil.rmtree(going)
            os.rename(place, going)
        if not os.path.lexists(place):
            answer = git.ask(root, "worktree", "remove", "--force", place)
            if answer.status != 0 and "is not a working tree" not in answer.errors:
                raise Refused(
                    "git-failed",
                    f"git worktree remove failed: {answer.errors or answer.status}",
                    "correct that, and run again",
                )
            # A git that was killed at that left an entry without a place. Trees of others may only be away: theirs
            # stay.
            git.tell(root, "worktree", "prune", "--expire=3.months.ago")
        shutil.rmtree(going)
    except FileNotFoundError:
        return  # another process does the same
    except OSError as error:
        message = f"{path} cannot be removed: {error.filename}: {error.strerror}"
        raise Refused("cannot-remove", message, "correct that, and run again") from None


def locked(path: str) -> bool:
    answer = (
        git.ask(path, "rev-parse", "--path-format=absolute", "--git-path", "locked") if os.path.isdir(path) else None
    )
    return answer is not None and answer.status == 0 and os.path.exists(answer.out.removesuffix("\n"))


def matching(root: str, pattern: str) -> list[str]:
    """Files and folders: `.env`, `node_modules`, `config/*.local`."""
    import glob

    inside = check_path(without_dots(pattern.rstrip("/")), "path to copy")
    return sorted(glob.glob(as_glob(inside), root_dir=root, recursive=True, include_hidden=True))


# ---- leftovers ------------------------------------------------------------


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
    """Of one run, or of every run. Trees are listed before runs are read: an attempt is recorded before its tree is
    made."""
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
        self.boundary = ChangeWatch(workspace, f"{workspace.state}/attempts/{name}")
        self.run, self.definition = _known(workspace, name)
        attempts = self.run["attempts"] if self.run else {}
        of_tree = {name: one["extra"].get("tree") or tree_name(name) for name, one in attempts.items()}
        self.attempts = {of_tree[name]: name for name in attempts}  # of several, the one that worked there last
        self.in_flight = [of_tree[name] for name in list(self.run["in_flight"])] if self.run else []

    def tree(self, short: str) -> Leftover:
        goes, why = self._fate(short)
        return self._leftover("tree", f"{self.trees.folder}/{short}", short, goes, why)

    def branch(self, short: str, sha: str, standing: bool) -> Leftover:
        name = f"tenuto-attempts/{self.name}/{short}"
        if short in self.in_flight:
            return self._leftover("branch", name, short, False, "its attempt is under way", sha)
        if standing:
            return self._leftover("branch", name, short, False, "its work tree stays", sha)
        others = git.ask(
            self.root,
            "for-each-ref",
            "--contains",
            sha,
            "--format=%(refname)",
            "refs/heads",
            "refs/remotes",
            "refs/tags",
        ).out.split()
        other = next((ref for ref in others if not ref.startswith(_BRANCHES)), "")
        if other:
            return self._leftover(
                "branch", name, short, True, f"all of it is on {other.partition('/')[2].partition('/')[2]}", sha
            )
        return self._leftover(
            "branch", name, short, False, f"not merged anywhere{self._outcome(short)}; git branch -D {name}", sha
        )

    def _fate(self, short: str) -> tuple[bool, str]:
        path, branch = f"{self.trees.folder}/{short}", f"refs/heads/tenuto-attempts/{self.name}/{short}"
        if short.startswith(GOING) and os.path.isdir(path) and not os.path.islink(path):
            return True, "its removal had begun"
        if short in self.in_flight:
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
        nested = [
            line.partition("\t")[2]
            for line in git.ask(path, "ls-files", "-s").out.splitlines()
            if line.startswith("160000 ")
        ]
        own = [name for name in nested if os.path.lexists(f"{path}/{name}/.git")]
        if own:
            return False, f"it holds a git repository of its own: {', '.join(own)}"
        left, why = self._left(short, changes)
        if left:
            more = f" and {len(left) - 5} more" if len(left) > 5 else ""
            return (
                False,
                f"on no branch: {', '.join(left[:5])}{more}; commit them there, or: git worktree remove --force {path}",
            )
        return True, why

    def _is_waited_for(self, short: str) -> bool:
        """Its attempt was interrupted, the run has not ended, and no attempt has gone on with it yet."""
        run, name = self.run, self.attempts.get(short, "")
        if run is None or run["status"] in ENDED or not unfinished(run, name):
            return False
        return not any(one["extra"].get("follows") == name for one in run["attempts"].values())

    def _left(self, short: str, changes: dict[str, str]) -> tuple[list[str], str]:
        """What was done in the tree and lies on no branch; why there is nothing, in words."""
        plan = self._job(short)
        if plan is None:
            return list(changes), "all of it is on its branch"
        if not self.boundary.base(plan):  # what lies here untracked was put here by the set-up
            return [path for path, state in changes.items() if state != "??"], "no agent started in it"
        merged = plan.attempt["receipt"].get("merged") is not None
        done = self.boundary.changed(plan)
        left = [path for path in changes if path in done and not (merged and plan.is_document(path))]
        return left, "merged" if merged else "all of it is on its branch"

    def _job(self, short: str) -> AttemptPlan | None:
        attempt = self.attempts.get(short)
        if self.run is None or attempt is None or self.definition is None:
            return None
        return AttemptPlan(self.root, self.run, self.definition, attempt, self.trees.folder)

    def _outcome(self, short: str) -> str:
        attempt = self.run["attempts"].get(self.attempts.get(short, "")) if self.run else None
        said = (attempt["verdict"] or attempt["status"]) if attempt else ""
        return f" ({said}: {' '.join(attempt['summary'].split())[:100]})" if attempt else ""

    def _leftover(self, kind: str, name: str, short: str, goes: bool, why: str, sha: str = "") -> Leftover:
        attempt = self.attempts.get(short, "")
        item = (self.run["attempts"][attempt]["item"] or "") if self.run and attempt else ""
        return {
            "kind": kind,
            "name": name,
            "run": self.name,
            "attempt": attempt,
            "item": item,
            "goes": goes,
            "why": why,
            "commit": sha,
        }


def _known(workspace: Workspace, name: str) -> tuple[Run | None, Definition | None]:
    with workspace.journal.read() as reader:
        run = reader.load(name)
        try:
            return run, definition_of(reader, run) if run else None
        except TenutoError:
            return run, None


def _branches(root: str, run: str) -> list[tuple[str, str, str]]:
    """(run, tree name, commit) of every branch of attempts."""
    answer = git.ask(
        root, "for-each-ref", "--format=%(refname) %(objectname)", f"{_BRANCHES}{run + '/' if run else ''}"
    )
    found = []
    for line in answer.out.splitlines():
        name, _, sha = line.rpartition(" ")
        of, _, short = name.removeprefix(_BRANCHES).rpartition("/")
        found.append((of, short, sha))
    return found


def _changes(path: str) -> dict[str, str] | None:
    """What is not committed there, with git's two letters for it; None where this is no work tree of its own."""
    top = git.ask(path, "rev-parse", "--show-toplevel")
    if top.status != 0 or os.path.realpath(top.out.removesuffix("\n")) != os.path.realpath(path):
        return None
    answer = git.ask(path, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    return {line[3:]: line[:2] for line in answer.out.split("\0") if line} if answer.status == 0 else None


def _remove_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass
