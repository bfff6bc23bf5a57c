"""Bring everything that can be made from the journal back in line with it.

    caches           folded anew
    files behind     written
    files edited     taken in as events where the rules allow it; otherwise named, and left as they are
    restore(path)    ours again, whatever stands there; theirs is moved to quarantine first

A damaged event cannot be made from anything: it is named, and left for a backup.
"""

from __future__ import annotations

import os

from tenuto.encoding import digest
from tenuto.errors import NotFound, Refused, TenutoError
from tenuto.files.places import place, write_all
from tenuto.stores.passages import rebuild_index
from tenuto.stores.verify import rebuild
from tenuto.workspace.compare import read_at
from tenuto.workspace.examine import examine
from tenuto.workspace.objects import content_of, copy_to, hash_at
from tenuto.workspace.publish import key_of
from tenuto.workspace.reconcile import absorb_artifact, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from tenuto.core.records import Run
    from tenuto.files.places import Place
    from tenuto.ports import Reader
    from tenuto.stores.verify import Finding
    from tenuto.workspace.turn import Turn, Workspace

    class Repaired(TypedDict):
        mended: list[Finding]  # what was wrong and is right now
        refused: list[TenutoError]  # edits that the rules do not allow
        left: list[Finding]


_CACHES = ("state", "card")
_EVENTS = ("event ", "end", "fold")


def repair(workspace: Workspace) -> Repaired:
    before = examine(workspace)["findings"]
    for found in before:
        if found["where"] in _CACHES:
            with workspace.journal.write():
                rebuild(workspace.journal.connection(), found["run"] or "")  # type: ignore[attr-defined]
    if any(found["where"] == "index" for found in before):
        with workspace.journal.write():
            rebuild_index(workspace.journal.connection())  # type: ignore[attr-defined]
    refused: list[TenutoError] = []
    # A damaged run is left alone: what its files should be is not known.
    damaged = [found["run"] for found in before if found["where"].startswith(_EVENTS)]
    for run in dict.fromkeys(found["run"] for found in before if found["run"] and found["run"] not in damaged):
        try:
            with workspace.turn() as turn:
                _mend_run(turn, run)
        except TenutoError as error:
            refused.append(error)
    if any(found["run"] is None for found in before):
        _mend_logs(workspace)
    left = examine(workspace)["findings"]
    still = [(found["run"], found["where"]) for found in left]
    return {
        "mended": [found for found in before if (found["run"], found["where"]) not in still],
        "refused": refused,
        "left": left,
    }


def restore(workspace: Workspace, path: str) -> str | None:
    """Our version of a file again. Returns where theirs is kept; None where nothing stood there."""
    workspace.journal.lock()
    try:
        with workspace.journal.read() as reader:
            ours = _ours(workspace, reader, path)
        spot = place(workspace.root, path)
        assert spot is not None
        with spot:
            theirs = _look(spot)
            if isinstance(ours, bytes) and theirs == ours:
                return None
            kept = _move_away(workspace, spot, theirs)
            if kept and workspace.secrecy is not None:
                workspace.secrecy.scrub(kept)
            _put(spot, ours)
        return kept
    finally:
        workspace.journal.unlock()


def _mend_run(turn: Turn, name: str) -> None:
    run = turn.run(name)
    if run is None:
        return
    root = turn.workspace.root_of(tree_of(run))
    if root is None:
        return
    for artifact in list(run["artifacts"].values()):
        _mend_artifact(turn, run, root, artifact)


def _mend_artifact(turn: Turn, run: Run, root: str, artifact: Any) -> None:
    path, sha = artifact["path"], artifact["sha256"]
    found = hash_at(root, path)
    if found == sha:
        return
    known = [render[0] for render in turn.tx.renders(key_of(tree_of(run), path))]
    if found is None or found in known:
        turn.artifacts[path] = (run["id"], sha, content_of(turn.workspace.state, turn.tx, sha))
    else:
        absorb_artifact(turn, run, path)


def _mend_logs(workspace: Workspace) -> None:
    """A turn completes what was cut off and takes in what was added; what is gone or full of NULs is written whole."""
    with workspace.journal.read() as reader:
        paths = [path for path, _ in reader.logs()]
    for path in paths:
        found = read_at(workspace.root, path)
        if found is None or b"\0" in found:
            kept = restore(workspace, path)
            if kept:
                workspace.warn(f"{path} was damaged; what stood there is kept as {kept}")
    with workspace.turn() as turn:
        turn.run("")


def _ours(workspace: Workspace, reader: Reader, path: str) -> bytes | str:
    if path in [log for log, _ in reader.logs()]:
        return b"".join(reader.log_text(path))
    renders = reader.renders(key_of(workspace.tree, path))
    if not renders:
        raise NotFound(
            "not-ours", f"{path} was never written by Tenuto", "tenuto verify names the files that were", path=path
        )
    sha, body, _, _ = renders[0]
    return body if body is not None else content_of(workspace.state, reader, sha)


def _look(spot: Place) -> bytes | None:
    try:
        return spot.read()
    except Refused:
        return b""  # a link or a folder: moved as it is, never followed


def _move_away(workspace: Workspace, spot: Place, found: bytes | None) -> str | None:
    """Theirs goes to quarantine in one step: a program that has it open goes on writing to it there."""
    if found is None:
        return None
    folder = workspace.state + "/quarantine"
    os.makedirs(folder, exist_ok=True)
    name = f"{digest(spot.path.encode())[:8]}-{digest(found)[:16]}"
    kept, number = f"{folder}/{name}", 1
    while os.path.lexists(kept):
        number += 1
        kept = f"{folder}/{name}-{number}"
    try:
        os.rename(spot.name, kept, src_dir_fd=spot.fd)
    except OSError:  # on another file system
        with open(kept, "xb") as file:
            file.write(found)
        os.unlink(spot.name, dir_fd=spot.fd)
    return kept


def _put(spot: Place, ours: bytes | str) -> None:
    if isinstance(ours, str):
        copy_to(ours, spot.fd, spot.name)
        return
    file = os.open(
        spot.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=spot.fd
    )
    try:
        write_all(file, ours)
    finally:
        os.close(file)
