"""Which files changed while an agent ran, and were they allowed to?

The engine takes a snapshot of the work tree when an agent starts, and looks again when it ends. What changed in between
must lie inside its boundary or, in a shared work tree, inside the boundary of another agent that ran meanwhile. Files
that Tenuto itself writes do not count.

In a shared work tree a change cannot be attributed: a person who is at the terminal is asked whether it was theirs
(judge.py). Where nobody is, or says so, a forbidden one fails every agent that was running, and all of them are
named. In a work tree of its own the agent is named, and only it fails; what changed meanwhile in the run's own tree,
where no agent works then, fails all that were running. A later agent may put back what lies outside the boundary:
that is no forbidden change. What lies outside the boundary and stands is never committed by us. The user's own
.tenuto/ is no agent's.

Where the engine starts its own agents, what was changed outside the boundary is put aside before the next one starts,
and when the run rests: the file is moved into quarantine, and stands again as the commit has it. A file that had
changes before that is left as it is, for nobody has the text that was there.

Git's own files are looked at, too (files/git_state.py): what no attempt may change there is put back where that loses
nothing, and fails every attempt that was running. That is written down before anything is put back, so that an engine
that takes over knows it.

Without git there is no snapshot, and boundaries are not checked. Files that git ignores are not seen.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, NotRequired, TypedDict

from tenuto.core.records.action import Boundary
from tenuto.encoding import digest, dumps, loads
from tenuto.engine.attempt import AttemptPlan, allows
from tenuto.errors import Refused
from tenuto.files import git, git_state
from tenuto.files.exchange import LARGEST
from tenuto.files.git_start import repository_of
from tenuto.files.planted import is_in_use, is_read_unasked, special_files
from tenuto.names import fits
from tenuto.supervise.records import FileLock, is_locked, make_directory
from tenuto.workspace.workspace import Workspace

_MOMENT = 0.5  # seconds between the writing of a file and its renaming, at most


class Member(TypedDict):
    """One agent of a group that shares a work tree, as boundary.json has it."""

    base: str  # the commit that its work tree stood on when it started
    before: git.Snapshot | None  # None: there is no git
    may: Boundary
    told: list[str]  # files of this tree that our own output goes to
    around: git.Snapshot  # of the run's own tree, for an agent in a tree of its own
    git: NotRequired[git_state.State | None]  # git's own files, when the first of the group started
    special: NotRequired[list[str]]  # pipes, sockets and devices that stood there already


Group = dict[str, Member]
Strays = dict[str, str | None]
"""Files outside the boundary -> their hash before they were changed; None: they were not there."""


class Aside(NamedTuple):
    """What became of the files that were changed outside the boundary."""

    moved: list[str]
    left: list[str]  # in words


class ChangeWatch:
    def __init__(self, workspace: Workspace, folder: str) -> None:
        self.workspace = workspace
        self.folder = folder

    def begin(self, plan: AttemptPlan, in_flight: list[str]) -> None:
        """An agent that starts beside others joins their group; the first one begins a new group."""
        special = self._special(plan)
        if self._move_special(plan, [path for path in special if is_read_unasked(path)]):
            special = self._special(plan)  # what was moved lies in a folder of ours now, which may be git's
        group = self._read(plan)
        mine = group.get(plan.name) if plan.isolated else None  # where it goes on in the tree of another one
        if not any(name in in_flight and name != plan.name for name in group):
            group = {}
        base = mine["base"] if mine else git.head(plan.workdir)
        snapshots = [member["git"] for member in group.values() if "git" in member]
        group[plan.name] = {
            "base": base,
            "before": mine["before"] if mine else self._snapshot(plan.workdir, base),
            "may": plan.boundary(),
            "told": _own_output(plan.workdir),
            "around": self._around(plan) if plan.isolated else {},
            "git": snapshots[0] if snapshots else git_state.snapshot(self.workspace.root),
            "special": special,
        }
        self._write(plan, group)

    def _snapshot(self, root: str, base: str = "") -> git.Snapshot | None:
        """None without git. Where git's own files hold the journal, and git says that there is no repository any more,
        nobody knows what changed."""
        found = git.snapshot(root, base)
        if found is None and not self.workspace.state.endswith("/.tenuto"):
            message = f"git does not take {root} for a repository any more: what changed there is not known"
            raise Refused("git-failed", message, "git status says why; then tenuto run")
        return found

    def clear_special(self, plan: AttemptPlan, in_flight: list[str], alone: bool) -> tuple[list[str], str]:
        """Pipes, sockets and devices that the agent left, put aside before anything is opened; and where they are kept.
        One that may be another agent's, at work now, stands as long as neither git nor Tenuto would open it. In git's
        own files they are named as what was changed there."""
        group = self._read(plan)
        if plan.name not in group:
            return [], ""
        before = [set(member.get("special", [])) for member in group.values()]
        known = set.intersection(*before) if before else set()
        fresh = [path for path in self._special(plan) if path not in known]
        moved = self._move_special(
            plan, [path for path in fresh if is_read_unasked(path) or (alone and not is_in_use(path))]
        )
        in_git = [f"{path} was no file any more" for path in moved if path.startswith(".git/")]
        if in_git:
            for name in dict.fromkeys([plan.name, *in_flight]):
                self._save(self._git_record(name), dict.fromkeys([*_load_strays(self._git_record(name)), *in_git]))
        return moved, self._aside(plan)

    def _special(self, plan: AttemptPlan) -> list[str]:
        """Those in git's own files as .git/NAME, wherever these lie; those in a tree of its own by their whole path."""
        root, repository = self.workspace.root, repository_of(self.workspace.root)
        found = [path for path in special_files(root) if not path.startswith(".git/")]
        if not f"{os.path.realpath(plan.workdir)}/".startswith(f"{os.path.realpath(root)}/"):
            found += [os.path.join(plan.workdir, path) for path in special_files(plan.workdir)]
        if repository is not None:
            found += [f".git/{path}" for path in special_files(repository.common)]
        return found

    def _move_special(self, plan: AttemptPlan, special: list[str]) -> list[str]:
        for path in special:
            repository = repository_of(self.workspace.root) if path.startswith(".git/") else None
            if repository is not None:
                move_aside(repository.common, path.removeprefix(".git/"), f"{self._aside(plan)}/git")
            elif path.startswith("/"):
                move_aside("/", path[1:], self._aside(plan))
            else:
                move_aside(self.workspace.root, path, self._aside(plan))
        return special

    def _aside(self, plan: AttemptPlan) -> str:
        return f"{self.workspace.state}/quarantine/special-{plan.run['id']}-{plan.name}"

    def settle_git(self, plan: AttemptPlan, in_flight: list[str]) -> str:
        """What was changed in git's own files and may not be, in words; it is put back. Empty when all is well."""
        mine = self._read(plan).get(plan.name)
        before, record = (mine.get("git") if mine else None), self._git_record(plan.name)
        root = self.workspace.root
        found = git_state.unentitled(root, before, git_state.snapshot(root)) if before else []
        if before and found:
            for name in dict.fromkeys([plan.name, *in_flight]):
                self._save(self._git_record(name), dict.fromkeys([*_load_strays(self._git_record(name)), *found]))
            left = git_state.put_back(root, before, f"{self.folder}/{plan.name}/displaced")
            self._save(record, _load_strays(record) | dict.fromkeys(left))
        changed = list(_load_strays(record))
        blame = f" ({', '.join(in_flight)} were running)" if len(in_flight) > 1 else ""
        return f"git's own files were changed: {'; '.join(changed)}{blame}" if changed else ""

    def _git_record(self, name: str) -> str:
        return f"{self.folder}/{name}/git-changes.json"

    def go_on(self, plan: AttemptPlan) -> None:
        """In the work tree of the attempts before it: what they did there, this one answers for, too."""
        attempts, name = plan.run["attempts"], plan.attempt["extra"].get("follows", "")
        while name in attempts and plan.name not in self._read(plan):
            known = _load_group(f"{self.folder}/{name}/boundary.json").get(name)
            if known:
                self._write(plan, {plan.name: known})
            name = attempts[name]["extra"].get("follows", "")

    def base(self, plan: AttemptPlan) -> str:
        """The commit the agent's work tree stood on when it started."""
        mine = self._read(plan).get(plan.name)
        return mine["base"] if mine else ""

    def is_known(self, plan: AttemptPlan) -> bool:
        """Without git it is not known what changed."""
        mine = self._read(plan).get(plan.name)
        return mine is not None and mine["before"] is not None

    def changed(self, plan: AttemptPlan) -> list[str]:
        """What changed since the agent started, by any hand."""
        mine = self._read(plan).get(plan.name)
        if mine is None or mine["before"] is None:
            return []
        return git.differences(mine["before"], self._snapshot(plan.workdir, mine["base"]) or {})

    def touched(self, plan: AttemptPlan, changed: list[str]) -> list[str]:
        """What certainly was this agent's doing: in a shared tree, beside others, only what is its own by name."""
        group = self._read(plan)
        if plan.isolated or len(group) < 2:
            ours = {} if plan.isolated else written_by_us(self.workspace)
            return [git.in_words(path) for path in changed if path not in ours]
        files = [*plan.boundary()["files"], *plan.item_patterns()]
        return [git.in_words(path) for path in changed if any(fits(name, path) for name in files)]

    def outside_boundary(self, plan: AttemptPlan, changed: list[str], in_flight: list[str]) -> str:
        """What lies outside every boundary, in words; empty when all is well."""
        group = self._read(plan)
        if plan.isolated and plan.name in group:
            before, now = group[plan.name].get("around", {}), self._around(plan)
            fresh = [path for path, sha in now.items() if before.get(path) != sha]
            if fresh:
                self._save(self._strays, self._known_strays() | {path: before.get(path) for path in fresh})
                return (
                    f"files outside its work tree were changed: {_listed(fresh)} ({', '.join(in_flight)} were running)"
                )
        if not changed:
            return ""
        ours = {} if plan.isolated else written_by_us(self.workspace)
        own_output = [path for member in group.values() for path in member.get("told", [])]
        outside = [
            path
            for path in changed
            if path not in ours
            and path not in own_output
            and not any(allows(member["may"], path) for member in group.values())
        ]
        outside = self._without_put_back(plan, self._standing(plan, outside, in_flight))
        heavy = [path for path in changed if git.size(os.path.join(plan.workdir, path)) > LARGEST]
        if heavy:
            self._save(self._strays, self._known_strays() | dict.fromkeys(heavy))
            return f"files of more than {LARGEST >> 20} MiB were written, which nobody can keep: {_listed(heavy)}"
        if not outside:
            return ""
        running = [name for name in group if name in in_flight]
        blame = f"{', '.join(running)} were running" if len(running) > 1 else plan.name
        return f"files outside the boundary were changed: {_listed(outside)} ({blame})"

    def _standing(self, plan: AttemptPlan, outside: list[str], in_flight: list[str]) -> list[str]:
        """Without those that are gone a moment later. Programs write a file beside its place and then rename it:
        where others are at work in the same tree, one of theirs may have been seen half-way.
        """
        if not outside or plan.isolated or all(name == plan.name for name in in_flight):
            return outside
        was_there = self._was_there(plan, outside)
        until = time.monotonic() + _MOMENT
        while True:
            outside = [
                path for path in outside if path in was_there or os.path.lexists(os.path.join(plan.workdir, path))
            ]
            if not outside or time.monotonic() >= until:
                return outside
            time.sleep(_MOMENT / 20)

    def _was_there(self, plan: AttemptPlan, paths: list[str]) -> set[str]:
        """A file that is gone and was there when the agent started was removed: that is a change."""
        mine = self._read(plan).get(plan.name)
        base = mine["base"] if mine else ""
        listed = git.ask(plan.workdir, "ls-tree", "-r", "-z", "--name-only", "--full-tree", base or "HEAD")
        known = set(listed.out.split("\0")) if listed.status == 0 else set(paths)
        return known | set((mine["before"] if mine else None) or {})

    def _around(self, plan: AttemptPlan) -> git.Snapshot:
        """What is not committed in the run's own tree, while items work in trees of their own."""
        folder = plan.boundary()["documents"]
        seats = plan.step["waves"]["seats"] if plan.step["kind"] == "waves" and not folder else []
        delivered = [name for seat in seats for name in (*seat["out"], *seat["optional"])]
        found = changes(self.workspace, folder)
        return {
            path: sha for path, sha in found.items() if not any(fits(plan.pattern(name), path) for name in delivered)
        }

    def put_aside(self, folder: str) -> Aside:
        """Moved to `folder`, while no agent works; repeating it changes nothing. Those that were put back by somebody
        are forgotten."""
        strays, root = self._known_strays(), self.workspace.root
        now = (git.snapshot(root) or {}) if strays else {}
        aside, left = Aside([], []), {}
        logs, projected = self.workspace.journal.written() if strays else ({}, {})
        for path, was in strays.items():
            if path in logs or path in projected:
                continue  # a file that is written from the journal: so it is, whatever stands there
            if path in now and (was is not None or not _is_movable(root, path)):
                left[path] = was
                aside.left.append(git.in_words(path))
            elif path in now:
                move_aside(root, path, folder)
                aside.moved.append(path)
        known = git.kept(root, aside.moved) if aside.moved else set()
        if known:
            git.restore(root, [path for path in aside.moved if path in known])
        if strays != left:
            self._save(self._strays, left)
        return aside

    def forgive(self, plan: AttemptPlan, changed: list[str]) -> None:
        """What an agent changed that may is the run's own now, though another one had changed it before."""
        known, may = self._known_strays(), plan.boundary()
        theirs = [path for path in changed if path in known and allows(may, path)]
        if theirs:
            self._save(self._strays, {path: was for path, was in known.items() if path not in theirs})

    def _without_put_back(self, plan: AttemptPlan, outside: list[str]) -> list[str]:
        """Those that are not as they were before; how they were is noted, for later agents."""
        if plan.isolated or not outside:
            return outside
        mine, strays = self._read(plan).get(plan.name), self._known_strays()
        before = (mine["before"] if mine else None) or {}
        now = self._snapshot(plan.workdir, mine["base"] if mine else "") or {}
        left = [path for path in outside if path not in strays or now.get(path) != strays[path]]
        fresh = {path: before.get(path) for path in left if path not in strays}
        if fresh:
            self._save(self._strays, strays | fresh)
        return left

    def strays_among(self, changed: list[str]) -> list[str]:
        """Of these, the ones that are known to lie outside the boundary."""
        known = self._known_strays()
        return [path for path in changed if path in known]

    def leave_to_person(self, plan: AttemptPlan, paths: list[str]) -> None:
        """A person changed these: no agent is to blame for them, and nobody puts them aside."""
        group = self._read(plan)
        now = git.snapshot(plan.workdir, self.base(plan)) or {}
        stand = {path: now[path] for path in paths if path in now}
        for member in group.values():
            if member["before"] is not None:
                rest = {path: sha for path, sha in member["before"].items() if path not in paths}
                member["before"] = {**rest, **stand}
        self._write(plan, group)
        self._save(self._strays, {path: was for path, was in self._known_strays().items() if path not in paths})

    def excuse(self, plan: AttemptPlan, paths: list[str]) -> None:
        """The engine's own check changed these while no agent ran: no agent is to blame for them."""
        group = self._read(plan)
        now = self._snapshot(plan.workdir, self.base(plan)) or {}
        for member in group.values():
            for path in paths:
                if member["before"] is not None and path in now:
                    member["before"][path] = now[path]
        self._write(plan, group)

    def _file(self, plan: AttemptPlan) -> str:
        return f"{self.folder}/{plan.name}/boundary.json" if plan.isolated else f"{self.folder}/boundary.json"

    def _read(self, plan: AttemptPlan) -> Group:
        return _load_group(self._file(plan))

    def _known_strays(self) -> Strays:
        return _load_strays(self._strays)

    def _write(self, plan: AttemptPlan, group: Group) -> None:
        self._save(self._file(plan), group)

    @property
    def _strays(self) -> str:
        return f"{self.folder}/strays.json"

    def _save(self, path: str, value: Group | Strays) -> None:
        """Renamed into place: a kill in the middle must not leave agents without a boundary."""
        make_directory(os.path.dirname(path), 0o777)
        with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:  # names are bytes
            file.write(dumps(value))
        os.replace(path + ".new", path)


def _is_movable(root: str, path: str) -> bool:
    """Not inside another repository, and not behind git's filters, which would have to put it back."""
    if path.endswith("/") or git.is_inside_another(root, path):
        return False
    try:
        git.refuse_filters(root, [path])
    except Refused:
        return False
    return True


def move_aside(root: str, path: str, folder: str) -> None:
    """A link as it is, whatever it leads to. One that is gone needs no place. A pipe is never opened: where it cannot
    be renamed, it is removed."""
    spot = os.path.join(root, path)
    if not os.path.lexists(spot):
        return
    make_directory(os.path.dirname(f"{folder}/{path}"))
    mode = os.lstat(spot).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
        shutil.move(spot, f"{folder}/{path}")
        return
    try:
        os.rename(spot, f"{folder}/{path}")
    except OSError:
        os.unlink(spot)


def part_from_others(path: str) -> None:
    """A file with several names becomes one of its own, with the same text and mode."""
    beside = f"{path}.tenuto-{os.getpid()}"
    try:
        shutil.copy2(path, beside, follow_symlinks=False)
        os.replace(beside, path)
    finally:
        if os.path.lexists(beside):
            os.unlink(beside)


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(git.in_words(path) for path in paths[:5]) + more


def _load_group(path: str) -> Group:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return dict(loads(file.read()))
    except (OSError, ValueError):
        return {}


def _load_strays(path: str) -> Strays:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return dict(loads(file.read()))
    except (OSError, ValueError):
        return {}


def _own_output(root: str) -> list[str]:
    """Where our own output goes, if that is a file of this tree (`tenuto run ... > run.log`)."""
    places = [os.path.realpath(f"/proc/self/fd/{stream}") for stream in (1, 2)]
    return [
        os.path.relpath(path, root)
        for path in dict.fromkeys(places)
        if path.startswith(os.path.realpath(root) + os.sep)
    ]


@contextmanager
def alone_in_tree(workspace: Workspace, run: str) -> Iterator[None]:
    """One engine per work tree: the agents of two runs would take each other's files for what may not be there."""
    path = _tree_lock(workspace)
    make_directory(os.path.dirname(path), 0o777)
    with FileLock(path, wait=False) as ours:
        if not ours:
            refuse_beside(workspace, run)
            raise Refused("tree-driven", _WHY.format(other="another run", run=run), _HINT)
        with open(path, "w", encoding="utf-8") as file:
            file.write(run)
        yield


def refuse_beside(workspace: Workspace, run: str) -> None:
    """Refused where an engine is at work on another run in this work tree."""
    path = _tree_lock(workspace)
    if not is_locked(path):
        return
    with open(path, encoding="utf-8") as file:
        other = file.read()
    if other != run:
        hint = f"tenuto watch {other} until it rests, or tenuto pause {other}; {_HINT}"
        raise Refused("tree-driven", _WHY.format(other=f"run {other}", run=run or "a second one"), hint, run=other)


def is_engine_here(workspace: Workspace) -> bool:
    """Whether an engine is at work in this work tree."""
    return is_locked(_tree_lock(workspace))


_HINT = "a tree of its own for the second: tenuto run ... --tree"
_WHY = "{other} is at work in this work tree: its agents and those of {run} would take each other's files for strays"


def _tree_lock(workspace: Workspace) -> str:
    return f"{workspace.state}/driven/{digest(os.fsencode(os.path.realpath(workspace.root)))[:16]}.lock"


def strays(folder: str) -> list[str]:
    """What agents of this run wrote where they must not."""
    return list(_load_strays(f"{folder}/strays.json"))


def changes(workspace: Workspace, folder: str) -> git.Snapshot:
    """What is not committed, the run's documents and what Tenuto writes left out."""
    ours = written_by_us(workspace)
    return {
        path: sha
        for path, sha in (git.snapshot(workspace.root) or {}).items()
        if path not in ours and not (folder not in ("", ".") and path.startswith(folder + "/"))
    }


def written_by_us(workspace: Workspace) -> dict[str, str]:
    """Projected files that hold what we wrote."""
    mine, shown = workspace.journal.written()
    for path, sha in shown.items():
        try:
            with open(os.path.join(workspace.root, path), "rb") as file:
                if digest(file.read(LARGEST)) == sha:
                    mine[path] = sha
        except OSError:
            continue
    return mine
