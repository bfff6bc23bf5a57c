"""Which files changed while agents ran, and were they allowed to?

The work tree is photographed when the first agent of a group starts, and looked at again when one ends. What changed
must lie inside the boundary of an agent that ran meanwhile; files that Tenuto itself writes do not count. In a shared work
tree a change cannot be attributed, so a forbidden one fails every agent that was running.

Without git there is no photograph, and boundaries are not checked: status says so.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

from tenuto.drivers.jobs import Job, matches
from tenuto.encoding import digest, dumps, loads
from tenuto.workspace.turn import Workspace


class Boundary:
    def __init__(self, workspace: Workspace, folder: str) -> None:
        self.workspace = workspace
        self.file = f"{folder}/boundary.json"

    def begin(self, job: Job, flying: list[str]) -> None:
        """A new group gets a new photograph; whoever joins a running one joins its list."""
        group = self._read()
        if group is None or not any(name in flying and name != job.name for name in group["members"]):
            group = {"before": photograph(job.workdir), "members": {}}
        group["members"][job.name] = job.may_write()
        self._write(group)

    def strayed(self, job: Job, flying: list[str]) -> str:
        """What lies outside every boundary, in words; empty when all is well."""
        group = self._read()
        if group is None or group["before"] is None:
            return ""
        after = photograph(job.workdir) or {}
        before = group["before"]
        changed = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
        ours = self._ours()
        outside = [path for path in changed if path not in ours and not _may(group["members"], path)]
        if not outside:
            return ""
        running = [name for name in group["members"] if name in flying]
        blame = f"{', '.join(running)} were running" if len(running) > 1 else job.name
        return f"files outside the boundary were changed: {', '.join(outside[:5])} ({blame})"

    def _ours(self) -> dict[str, str]:
        """Projected files that hold what we wrote."""
        with self.workspace.journal.read() as reader:
            shown = {path: sha for path, _, sha in reader.projected()}
            logs = {path: "" for path, _ in reader.logs()}
        mine = dict(logs)
        for path, sha in shown.items():
            try:
                with open(os.path.join(self.workspace.root, path), "rb") as file:
                    if digest(file.read()) == sha:
                        mine[path] = sha
            except OSError:
                continue
        return mine

    def _read(self) -> Any:
        try:
            with open(self.file, encoding="utf-8") as file:
                return loads(file.read())
        except (OSError, ValueError):
            return None

    def _write(self, group: Any) -> None:
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(dumps(group))


def _may(members: dict[str, list[str]], path: str) -> bool:
    return any(matches(path, pattern) for allowed in members.values() for pattern in allowed)


def photograph(root: str) -> dict[str, str] | None:
    """Every file that differs from the last commit, with a hash of what it holds; None without git."""
    listed = subprocess.run(
        ["git", "-c", "core.quotePath=false", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"],
        cwd=root, capture_output=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        return None
    found: dict[str, str] = {}
    for entry in listed.stdout.split(b"\0"):
        if len(entry) > 3:
            path = entry[3:].decode("utf-8", "surrogateescape")
            found[path] = _hash(os.path.join(root, path))
    return found


def _hash(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return digest(file.read())
    except OSError:
        return ""
