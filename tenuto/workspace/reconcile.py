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

from tenuto.encoding import NotJson, digest, loads
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
    unproven = turn.tx.note(f"unproven:{run['id']}")
    if unproven:
        _prove(turn, run, loads(unproven))


def _prove(turn: Turn, run: Run, paths: list[str]) -> None:
    """Artifacts of the last turn: a crash may have come between their event and their file."""
    from tenuto.workspace.objects import content_of, hash_at

    root = turn.workspace.root_of(tree_of(run))
    if root is None:
        return
    for artifact in run["artifacts"].values():
        if artifact["path"] in paths:
            found = hash_at(root, artifact["path"])
            known = [render[0] for render in turn.tx.renders(key_of(tree_of(run), artifact["path"]))]
            if found is None or (found != artifact["sha256"] and found in known):
                content = content_of(turn.workspace.state, turn.tx, artifact["sha256"])
                turn.artifacts[artifact["path"]] = (run["id"], artifact["sha256"], content)


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
    _look_at_shelf(turn, run, dialect, key, path, renders, found)
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


def check_logs(turn: Turn, texts: dict[str, bytes]) -> list[Publication]:
    """Append-only files: whatever stands there stays there, what a crash cut off is completed, and ours follows."""
    lengths = dict(turn.tx.logs())
    made = []
    for path in [*texts, *(path for path in lengths if path not in texts)]:
        if _log_size(turn, path) not in (lengths.get(path, 0), 0 if path not in lengths else -1):
            _log_differs(turn, path)
        elif path not in texts:
            continue
        if path in texts:
            turn.tx.append_log(path, texts[path])
        made.append(Publication("", path, None, texts.get(path, b""), "", "log", True))
    return made


def _log_size(turn: Turn, path: str) -> int:
    """-1: there is no such file."""
    spot = place(turn.workspace.root, path, create=False)
    if spot is None:
        return -1
    with spot:
        try:
            return os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False).st_size
        except FileNotFoundError:
            return -1


def _log_differs(turn: Turn, path: str) -> None:
    spot = place(turn.workspace.root, path, create=False)
    if spot is None:
        return
    with spot:
        found = spot.read() or b""
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


def _look_at_shelf(
    turn: Turn, run: Run, dialect: Dialect, key: str, path: str, renders: list[Any], found: bytes | None
) -> None:
    """What the last publication displaced: somebody who held it open may have written to it since."""
    fd = shelf(turn.workspace.state, create=False)
    if fd is None:
        return
    try:
        late = look(fd, shelf_name(key))
    finally:
        os.close(fd)
    if late is None or late == found:
        return
    sha = digest(late)
    if sha in [render[0] for render in renders] or sha == turn.tx.note(f"shelf:{key}"):
        return
    # The beginning of a render of ours is what a crash left of a file that was never published.
    if any(body is not None and body.startswith(late) for _, body, _, _ in renders):
        return
    if not turn.tx.has_key(run["id"], f"late:{sha}"):
        turn.workspace.warn(f"{path}: a write to the file that was there before came late; it is absorbed")
        absorb(turn, run, dialect, path, renders, late, late=True)


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
