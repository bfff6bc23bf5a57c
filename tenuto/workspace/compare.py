"""Are the files what the journal says? Looks, changes nothing, takes no lock.

    the newest we wrote            fine, not mentioned
    an older one of ours, or none  behind: a crash or a checkout; the next command or `tenuto repair` writes it
    somebody else's                edited: the next command takes it in, or refuses and names it
    empty, NULs, no plain file     damage

Stored artifacts are looked at as well: every version that an event names must still be there, unchanged.
"""

from __future__ import annotations

import os

from tenuto.core.fold import new_repo
from tenuto.encoding import digest
from tenuto.errors import Damaged, TenutoError
from tenuto.files.places import place
from tenuto.stores.verify import finding
from tenuto.workspace.objects import hash_at, hash_file, object_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.core.records import Repo, Run
    from tenuto.ports import Dialect, Reader
    from tenuto.stores.verify import Finding
    from tenuto.workspace.turn import Workspace

_WRITE = "tenuto repair"


def compare_files(workspace: Workspace, reader: Reader, runs: set[str]) -> Iterator[Finding]:
    """State files and artifacts of these runs."""
    try:
        repo = reader.load_repo()
    except Damaged:
        repo = new_repo()  # named by whoever checked the events
    loaded: dict[str, Run | None] = {}
    for key, name, sha in reader.projected():
        if name in runs:
            if name not in loaded:
                loaded[name] = reader.load(name)
            run = loaded[name]
            if run is not None:
                yield from _compare_file(workspace, reader, repo, run, key, sha)


def compare_logs(workspace: Workspace, reader: Reader) -> Iterator[Finding]:
    for path, _ in reader.logs():
        yield from _compare_log(workspace, reader, path)


def missing_contents(workspace: Workspace, reader: Reader, run: str) -> Iterator[Finding]:
    """Every version of every artifact that this run's events name."""
    seen: set[str] = set()
    for event in reader.events(run):
        if event["type"] != "ArtifactStored":
            continue
        sha: str = event["sha256"]
        if not sha or sha in seen or _is_stored(reader, sha):  # without a hash: somebody said that they made it, and it was not there
            continue
        seen.add(sha)
        found = _hash_of_object(object_path(workspace.state, sha))
        if found != sha:
            problem = "is not stored any more" if found is None else "is not what was stored"
            yield finding(
                "damage", run, event["path"], f"the version {sha} {problem}", "restore a backup: tenuto import FILE"
            )


def _is_stored(reader: Reader, sha: str) -> bool:
    try:
        return reader.blob(sha) is not None
    except Damaged:
        return True  # it is there, and named by whoever checked the contents


def read_at(root: str, path: str) -> bytes | None:
    """A file below the repository; None where there is none."""
    spot = place(root, path, create=False)
    if spot is None:
        return None
    with spot:
        return spot.read()


def _hash_of_object(path: str) -> str | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return hash_file(file)[0]
    finally:
        os.close(file)


def _compare_file(workspace: Workspace, reader: Reader, repo: Repo, run: Run, key: str, sha: str) -> Iterator[Finding]:
    tree, _, path = key.rpartition("//")
    root = workspace.root_of(tree)
    if root is None:
        return  # the work tree is gone, and its files with it
    dialect = _shown_by(workspace, repo, run, path)
    name = run["id"]
    if dialect is None:
        if any(artifact["path"] == path for artifact in run["artifacts"].values()):
            yield from _compare_artifact(root, name, path, sha, [render[0] for render in reader.renders(key)])
        return
    try:
        found = read_at(root, path)
    except TenutoError as error:
        yield finding("damage", name, path, error.message, error.hint)
        return
    if found is not None and digest(found) == sha:
        return
    restore = f"tenuto repair --restore {path}"
    if found is None and dialect.missing != "refuse":
        yield finding("behind", name, path, "it is not there", _WRITE)
    elif found is None or not found.strip(b"\0 \t\r\n"):
        state = "not there" if found is None else "empty or full of NULs"
        yield finding("damage", name, path, f"it is {state}", restore if dialect.missing == "refuse" else _WRITE)
    elif digest(found) in [render[0] for render in reader.renders(key)]:
        yield finding("behind", name, path, "it shows an older state", _WRITE)
    else:
        yield finding("edited", name, path, "another program changed it", f"tenuto repair takes it in, or: {restore}")


def _shown_by(workspace: Workspace, repo: Repo, run: Run, path: str) -> Dialect | None:
    for name in run["dialects"]:
        dialect = workspace.dialects.get(name)
        if dialect is not None and path in dialect.paths(run, repo):
            return dialect
    return None


def _compare_artifact(root: str, run: str, path: str, sha: str, known: list[str]) -> Iterator[Finding]:
    found = hash_at(root, path)
    if found == sha:
        return
    if found is None:
        yield finding("behind", run, path, "it is not there", _WRITE)
    elif found in known:
        yield finding("behind", run, path, "it is an older version", _WRITE)
    else:
        fix = f"tenuto repair keeps both versions, or: tenuto repair --restore {path}"
        yield finding("edited", run, path, "another program changed it", fix)


def _compare_log(workspace: Workspace, reader: Reader, path: str) -> Iterator[Finding]:
    try:
        ours = b"".join(reader.log_text(path))
        found = read_at(workspace.root, path)
    except TenutoError as error:
        yield finding("damage", None, path, error.message, error.hint)
        return
    if found == ours:
        return
    if found is None:
        yield finding("behind", None, path, "it is not there", _WRITE)
    elif ours.startswith(found):
        yield finding("behind", None, path, f"its last {len(ours) - len(found)} bytes are not there", _WRITE)
    elif b"\0" in found:
        yield finding("damage", None, path, "it holds NULs", _WRITE)
    else:
        what = "added to it" if found.startswith(ours) else "rewrote it"
        yield finding("edited", None, path, f"another program {what}", f"{_WRITE} takes it in")
