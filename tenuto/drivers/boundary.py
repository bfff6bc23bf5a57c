"""Which files changed while an agent ran, and were they allowed to?

The work tree is photographed when an agent starts, and looked at again when it ends. What changed in between must lie
inside its boundary or, in a shared work tree, inside the boundary of another agent that ran meanwhile; files that Tenuto
itself writes do not count. In a shared work tree a change cannot be attributed, so a forbidden one fails every agent that
was running, all of them named. In a work tree of its own the agent is named, and only it fails; what changed meanwhile in
the run's own tree, where nobody works then, fails all that were running. Whoever comes after may put back what strayed: that
is no forbidden change. What strayed and stands is never committed by us. The user's own .tenuto/ is no agent's.

Without git there is no photograph, and boundaries are not checked. Files that git ignores are not seen.
"""

from __future__ import annotations

import os
import time
from typing import Any

from tenuto.drivers import git
from tenuto.drivers.jobs import Job, allows, matches
from tenuto.encoding import digest, dumps, loads
from tenuto.files.places import LARGEST
from tenuto.workspace.turn import Workspace

_MOMENT = 0.5  # seconds between the writing of a file and its renaming, at most


class Boundary:
    def __init__(self, workspace: Workspace, folder: str) -> None:
        self.workspace = workspace
        self.folder = folder

    def begin(self, job: Job, flying: list[str]) -> None:
        """Whoever starts beside others joins their group; the first one begins a new group."""
        group = self._read(job)
        mine = group.get(job.name) if job.isolated else None  # where it goes on in the tree of another one
        if not any(name in flying and name != job.name for name in group):
            group = {}
        base = mine["base"] if mine else git.head(job.workdir)
        group[job.name] = {
            "base": base, "before": mine["before"] if mine else git.photograph(job.workdir, base), "may": job.boundary(), "told": _told_to(job.workdir),
            "around": self._around(job) if job.isolated else {},
        }  # fmt: skip
        self._write(job, group)

    def go_on(self, job: Job) -> None:
        """In the work tree of the attempts before it: what they did there, this one answers for, too."""
        attempts, name = job.run["attempts"], job.attempt["extra"].get("follows", "")
        while name in attempts and job.name not in self._read(job):
            known = _load(f"{self.folder}/{name}/boundary.json").get(name)
            if known:
                self._write(job, {job.name: known})
            name = attempts[name]["extra"].get("follows", "")

    def base(self, job: Job) -> str:
        """The commit the agent's work tree stood on when it started."""
        return str(self._read(job).get(job.name, {}).get("base", ""))

    def is_known(self, job: Job) -> bool:
        """Without git nobody knows what changed."""
        mine = self._read(job).get(job.name)
        return mine is not None and mine["before"] is not None

    def changed(self, job: Job) -> list[str]:
        """What changed since the agent started, whoever did it."""
        mine = self._read(job).get(job.name)
        if mine is None or mine["before"] is None:
            return []
        return git.differences(mine["before"], git.photograph(job.workdir, mine["base"]) or {})

    def touched(self, job: Job, changed: list[str]) -> list[str]:
        """What certainly was this agent's doing: in a shared tree, beside others, only what is its own by name."""
        group = self._read(job)
        if job.isolated or len(group) < 2:
            ours = {} if job.isolated else written_by_us(self.workspace)
            return [git.in_words(path) for path in changed if path not in ours]
        files = [*job.boundary()["files"], *job.item_patterns()]
        return [git.in_words(path) for path in changed if any(matches(path, name) for name in files)]

    def strayed(self, job: Job, changed: list[str], flying: list[str]) -> str:
        """What lies outside every boundary, in words; empty when all is well."""
        group = self._read(job)
        if job.isolated and job.name in group:
            before, now = group[job.name].get("around", {}), self._around(job)
            fresh = [path for path, sha in now.items() if before.get(path) != sha]
            if fresh:
                self._save(self._strays, _load(self._strays) | {path: before.get(path) for path in fresh})
                return f"files outside its work tree were changed: {_listed(fresh)} ({', '.join(flying)} were running)"
        if not changed:
            return ""
        ours = {} if job.isolated else written_by_us(self.workspace)
        told = [path for member in group.values() for path in member.get("told", [])]
        outside = [
            path
            for path in changed
            if path not in ours and path not in told and not any(allows(member["may"], path) for member in group.values())
        ]
        outside = self._without_put_back(job, self._standing(job, outside, flying))
        heavy = [path for path in changed if git.size(os.path.join(job.workdir, path)) > LARGEST]
        if heavy:
            self._save(self._strays, _load(self._strays) | dict.fromkeys(heavy))
            return f"files of more than {LARGEST >> 20} MiB were written, which nobody can keep: {_listed(heavy)}"
        if not outside:
            return ""
        running = [name for name in group if name in flying]
        blame = f"{', '.join(running)} were running" if len(running) > 1 else job.name
        return f"files outside the boundary were changed: {_listed(outside)} ({blame})"

    def _standing(self, job: Job, outside: list[str], flying: list[str]) -> list[str]:
        """Without those that are gone a moment later. Programs write a file beside its place and then rename it: where others are at
        work in the same tree, one of theirs may have been seen half-way.
        """
        if not outside or job.isolated or all(name == job.name for name in flying):
            return outside
        was_there = self._was_there(job, outside)
        until = time.monotonic() + _MOMENT
        while True:
            outside = [path for path in outside if path in was_there or os.path.lexists(os.path.join(job.workdir, path))]
            if not outside or time.monotonic() >= until:
                return outside
            time.sleep(_MOMENT / 20)

    def _was_there(self, job: Job, paths: list[str]) -> set[str]:
        """A file that is gone and was there when the agent started was removed: that is a change."""
        mine = self._read(job).get(job.name, {})
        told = git.ask(job.workdir, "ls-tree", "-r", "-z", "--name-only", "--full-tree", mine.get("base") or "HEAD")
        known = set(told.out.split("\0")) if told.status == 0 else set(paths)
        return known | set(mine.get("before") or {})

    def _around(self, job: Job) -> git.Photograph:
        """What is not committed in the run's own tree, while items work in trees of their own."""
        folder = job.boundary()["documents"]
        delivered = [] if folder else [name for seat in job.step["waves"]["seats"] for name in (*seat["out"], *seat["optional"])]
        found = changes(self.workspace, folder)
        return {path: sha for path, sha in found.items() if not any(matches(path, job.pattern(name)) for name in delivered)}

    def forgive(self, job: Job, changed: list[str]) -> None:
        """What somebody changed who may is the run's own now, whoever strayed there before."""
        known, may = _load(self._strays), job.boundary()
        theirs = [path for path in changed if path in known and allows(may, path)]
        if theirs:
            self._save(self._strays, {path: was for path, was in known.items() if path not in theirs})

    def _without_put_back(self, job: Job, outside: list[str]) -> list[str]:
        """Those that are not as they were before somebody strayed; how they were is noted, for those who come after."""
        if job.isolated or not outside:
            return outside
        mine, strays = self._read(job).get(job.name, {}), _load(self._strays)
        now = git.photograph(job.workdir, mine.get("base", "")) or {}
        left = [path for path in outside if path not in strays or now.get(path) != strays[path]]
        fresh = {path: (mine.get("before") or {}).get(path) for path in left if path not in strays}
        if fresh:
            self._save(self._strays, strays | fresh)
        return left

    def excuse(self, job: Job, paths: list[str]) -> None:
        """The engine's own check changed these while no agent ran: nobody else is to blame for them."""
        group = self._read(job)
        now = git.photograph(job.workdir, self.base(job)) or {}
        for member in group.values():
            for path in paths:
                if member["before"] is not None and path in now:
                    member["before"][path] = now[path]
        self._write(job, group)

    def _file(self, job: Job) -> str:
        return f"{self.folder}/{job.name}/boundary.json" if job.isolated else f"{self.folder}/boundary.json"

    def _read(self, job: Job) -> dict[str, Any]:
        return _load(self._file(job))

    def _write(self, job: Job, group: Any) -> None:
        self._save(self._file(job), group)

    @property
    def _strays(self) -> str:
        return f"{self.folder}/strays.json"

    def _save(self, path: str, value: Any) -> None:
        """Renamed into place: a kill in the middle must not leave agents without a boundary."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:  # names are bytes
            file.write(dumps(value))
        os.replace(path + ".new", path)


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(git.in_words(path) for path in paths[:5]) + more


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return dict(loads(file.read()))
    except (OSError, ValueError):
        return {}


def _told_to(root: str) -> list[str]:
    """Where our own output goes, if that is a file of this tree (`tenuto run ... > run.log`)."""
    places = [os.path.realpath(f"/proc/self/fd/{stream}") for stream in (1, 2)]
    return [os.path.relpath(path, root) for path in dict.fromkeys(places) if path.startswith(os.path.realpath(root) + os.sep)]


def strays(folder: str) -> list[str]:
    """What agents of this run wrote where they must not."""
    return list(_load(f"{folder}/strays.json"))


def changes(workspace: Workspace, folder: str) -> git.Photograph:
    """What is not committed, the run's documents and what Tenuto writes left out."""
    ours = written_by_us(workspace)
    return {
        path: sha
        for path, sha in (git.photograph(workspace.root) or {}).items()
        if path not in ours and not (folder not in ("", ".") and path.startswith(folder + "/"))
    }


def written_by_us(workspace: Workspace) -> dict[str, str]:
    """Projected files that hold what we wrote."""
    with workspace.journal.read() as reader:
        shown = {path: sha for path, _, sha in reader.projected()}
        mine = {path: "" for path, _ in reader.logs()}
    for path, sha in shown.items():
        try:
            with open(os.path.join(workspace.root, path), "rb") as file:
                if digest(file.read(LARGEST)) == sha:
                    mine[path] = sha
        except OSError:
            continue
    return mine
