"""Look at a run's files before changing anything: what did others do to them?

    bytes equal to the newest render      ours, nothing to do
    bytes equal to an older render        ours, but stale (a crash, a restored copy): written anew
    nothing, empty, NULs                  written anew from the journal (a damaged one is kept in quarantine),
                                          or refused where the dialect says so
    anything else                         somebody's edit: the dialect says it in commands, and decide() judges

An edit that cannot be understood or is not allowed stops the turn: it is named, and left as it is.
"""

from __future__ import annotations

import os

from tenuto.encoding import NotJson, digest
from tenuto.errors import Refused, TenutoError
from tenuto.files.exchange import look
from tenuto.files.places import place
from tenuto.workspace.publish import Publication, key_of, shelf, shelf_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.ports import Dialect
    from tenuto.workspace.turn import Turn


def tree_of(run: Run) -> str:
    return next((place.get("tree", "") for place in run["dialects"].values()), "")


def reconcile(turn: Turn, run: Run) -> None:
    for name, where in list(run["dialects"].items()):
        dialect = turn.workspace.dialects.get(name)
        if dialect is None:
            continue
        root = turn.workspace.root_of(where.get("tree", ""))
        if root is None:
            continue  # the work tree is gone; the journal is not
        for path in dialect.paths(run, turn.repo):
            _look_at(turn, run, dialect, root, path, where.get("tree", ""))


def _look_at(turn: Turn, run: Run, dialect: Dialect, root: str, path: str, tree: str) -> None:
    key = key_of(tree, path)
    spot = place(root, path, create=False)
    found = None
    if spot is not None:
        with spot:
            found = spot.read()
    turn.seen[key] = found
    renders = turn.tx.renders(key)
    if not renders:
        if found is not None:
            raise Refused(
                "foreign-file",
                f"{path} is there, but not from run {run['id']}",
                "move it away, or: tenuto adopt",
                path=path,
            )
        return
    known = [render[0] for render in renders]
    _look_at_shelf(turn, run, dialect, key, path, [*known, turn.tx.note(f"shelf:{key}")])
    if found is not None and digest(found) in known:
        return
    if found is None or not found.strip(b"\0 \t\r\n"):
        _damaged(turn, dialect, path, found)
        return
    absorb(turn, run, dialect, path, renders, found)


def look_before_first_write(turn: Turn, run: Run, tree: str, path: str) -> bytes | None:
    """A run is about to show itself in a file for the first time: only nothing, or our own old text, may stand there."""
    root = turn.workspace.root_of(tree)
    spot = place(root, path, create=False) if root else None
    if spot is None:
        return None
    with spot:
        found = spot.read()
    if found is not None and digest(found) not in [render[0] for render in turn.tx.renders(key_of(tree, path))]:
        raise Refused(
            "foreign-file", f"{path} is there already, and not from Tenuto", "move it away, or: tenuto adopt", path=path
        )
    return found


def absorb(
    turn: Turn, run: Run, dialect: Dialect, path: str, renders: list[Any], found: bytes, late: bool = False
) -> None:
    """Turn somebody's edit into commands, and those into events."""
    from tenuto.workspace.foreign import nearest

    extra: Any = {}
    base = nearest([body for _, body, _, _ in renders if body is not None], found)
    try:
        for command in dialect.read(run, path, base, found):
            if command["do"] == "AbsorbEdit":
                extra = command["extra"]
            else:
                turn.do(run["id"], command | {"by": "external"})
    except (TenutoError, NotJson) as refusal:
        raise Refused(
            "foreign-edit", f"{path} was changed by another program, and that is not allowed: {refusal}",
            f"undo the change, or: tenuto repair --restore {path}",
            path=path, reason=getattr(refusal, "code", "not-json"), said=str(refusal),
        ) from None  # fmt: skip
    absorbed: Any = {
        "do": "AbsorbEdit",
        "dialect": dialect.name,
        "path": path,
        "sha256": digest(found),
        "extra": extra,
        "by": "external",
    }
    if late:
        absorbed["key"] = f"late:{digest(found)}"
    turn.do(run["id"], absorbed)


def absorb_artifact(turn: Turn, run: Run, path: str) -> None:
    """Somebody edited an artifact's file: their version becomes the artifact before it is replaced or read."""
    known = next((item for item in run["artifacts"].items() if item[1]["path"] == path), None)
    root = turn.workspace.root_of(tree_of(run))
    spot = place(root, path, create=False) if root else None
    if spot is None:
        return
    with spot:
        try:
            file = os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.fd)
        except FileNotFoundError:
            return
        except OSError:
            raise Refused("bad-file", f"{path} is not a plain file", "move it away", path=path) from None
    from tenuto.workspace.objects import hash_file, import_open_file

    key = key_of(tree_of(run), path)
    try:
        sha, size = hash_file(file)
        if not size or sha in [render[0] for render in turn.tx.renders(key)]:
            return
        import_open_file(turn.workspace.state, file)
    finally:
        os.close(file)
    name = known[0] if known else path
    turn.do(
        run["id"], {"do": "StoreArtifact", "name": name, "path": path, "sha256": sha, "size": size, "by": "external"}
    )
    turn.tx.remember(key, (sha, None, run["id"], run["version"]))


def check_log(turn: Turn, path: str, text: bytes) -> Publication:
    """An append-only file: whatever stands there stays there, and ours follows it."""
    expected = turn.tx.log_length(path)
    spot = place(turn.workspace.root, path, create=False)
    size = -1
    if spot is not None:
        with spot:
            try:
                size = os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False).st_size
            except FileNotFoundError:
                pass
            if size not in (-1, expected):
                _log_differs(turn, path, spot.read() or b"")
    turn.tx.append_log(path, text)
    return Publication("", path, None, text, "", "log", True)


def _log_differs(turn: Turn, path: str, found: bytes) -> None:
    ours = b"".join(turn.tx.log_text(path))
    if ours.startswith(found):
        return  # cut short by a crash: publishing completes it
    if found.startswith(ours) and b"\0" not in found[len(ours) :]:
        turn.tx.append_log(path, found[len(ours) :])
        return
    if b"\0" in found:
        quarantine(turn, path, found)
        return
    turn.workspace.warn(f"{path} was rewritten by another program; their text stays, ours follows it")
    turn.tx.put_blob(digest(ours), ours)
    turn.tx.reset_log(path, found)


def _look_at_shelf(turn: Turn, run: Run, dialect: Dialect, key: str, path: str, known: list[str | None]) -> None:
    """What the last publication displaced: somebody who held it open may have written to it since."""
    fd = shelf(turn.workspace.state, create=False)
    if fd is None:
        return
    try:
        late = look(fd, shelf_name(key))
    finally:
        os.close(fd)
    if late is not None and digest(late) not in known and not turn.tx.has_key(run["id"], f"late:{digest(late)}"):
        turn.workspace.warn(f"{path}: a write to the file that was there before came late; it is absorbed")
        absorb(turn, run, dialect, path, turn.tx.renders(key), late, late=True)


def _damaged(turn: Turn, dialect: Dialect, path: str, found: bytes | None) -> None:
    if dialect.missing == "refuse":
        if found is None:
            raise Refused("state-missing", f"{path} is not there", f"tenuto repair --restore {path}", path=path)
        raise Refused("state-damaged", f"{path} is empty or full of NULs", f"tenuto repair --restore {path}", path=path)
    if found:
        quarantine(turn, path, found)
    else:
        turn.workspace.warn(f"{path} was {'gone' if found is None else 'empty'}; it is written anew")


def quarantine(turn: Turn, path: str, found: bytes) -> None:
    folder = turn.workspace.state + "/quarantine"
    os.makedirs(folder, exist_ok=True)
    kept = f"{folder}/{digest(path.encode())[:8]}-{digest(found)[:16]}"
    with open(kept, "wb") as file:
        file.write(found)
    turn.workspace.warn(f"{path} was damaged; what stood there is kept as {kept}, and it is written anew")
