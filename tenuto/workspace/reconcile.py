"""Look at a run's files before changing anything: what did others do to them?

    bytes equal to the newest render      ours, nothing to do
    bytes equal to an older render        ours, but stale (a crash, a restored copy): written anew
    nothing, empty, NULs                  written anew from the journal (a damaged one is kept in quarantine),
                                          or refused where the dialect says so
    anything else                         somebody's edit: the dialect says it in commands, and decide() judges

An edit that cannot be understood or is not allowed stops the turn: it is named, and left as it is.
"""

from __future__ import annotations

import posix as os  # the part of it that is C; all of os costs a hook a fifth of the interpreter's start

from tenuto.encoding import digest, loads
from tenuto.errors import Refused
from tenuto.files.exchange import beside, is_written, look, look_when_quiet
from tenuto.files.places import place, read_all
from tenuto.workspace.publish import Publication, key_of, shelf, shelf_name, wait_for_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.ports import Dialect
    from tenuto.workspace.turn import Turn

_ABANDONED_STEPS = 20  # of 10 ms: somebody may be between closing a file and renaming it
_NOTHING = b"\0 \t\r\n"
_KIND, _PLAIN_FILE = 0o170000, 0o100000
_LATELY = 1 << 16  # bytes of an append-only file: what the kernel may not have written yet
_SMALL = 1 << 18  # bytes; larger artifacts lie in objects/, outside the database


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
    unproven = turn.unproven[run["id"]] = turn.tx.note(f"unproven:{run['id']}")
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
    found = turn.seen[key] = _read(root, path)
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
    _look_at_shelf(turn, run, dialect, key, root, path, renders, found)
    if found is not None and digest(found) == renders[0][0]:
        return
    from tenuto.workspace.foreign import absorb, known

    if found is not None and not known(turn, key, found, _without_secrets(turn, found, path)):
        found = turn.seen[key] = wait_for_whole(path, found, lambda: _read(root, path, quiet=True))
    if found is None or not found.strip(_NOTHING):
        _damaged(turn, run, dialect, key, root, path, found)
        return
    clean = _without_secrets(turn, found, path)  # what stands there is replaced, since it was seen with them
    if not known(turn, key, found, clean):
        absorb(turn, run, dialect, path, key, clean, found)


def _without_secrets(turn: Turn, text: bytes, path: str = "") -> bytes:
    secrecy = turn.workspace.secrecy
    return text if secrecy is None else secrecy.masked(text, path)


def _read(root: str, path: str, quiet: bool = False) -> bytes | None:
    spot = place(root, path, create=False)
    if spot is None:
        return None
    with spot:
        return look_when_quiet(spot.fd, spot.name) if quiet else spot.read()


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


def absorb_artifact(turn: Turn, run: Run, path: str, incoming: str = "", artifact: str = "") -> None:
    """Somebody edited an artifact's file, or wrote one: theirs becomes the artifact before it is replaced or read."""
    known = next((item for item in run["artifacts"].items() if item[1]["path"] == path), None)
    root = turn.workspace.root_of(tree_of(run))
    spot = place(root, path, create=False) if root else None
    if spot is None:
        return
    with spot:
        try:
            file = os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=spot.fd)
        except FileNotFoundError:
            return
        except OSError:
            raise Refused("bad-file", f"{path} is not a plain file", "move it away", path=path) from None
    from tenuto.workspace.objects import hash_file, import_open_file

    key = key_of(tree_of(run), path)
    try:
        if os.fstat(file).st_mode & _KIND != _PLAIN_FILE:
            raise Refused("bad-file", f"{path} is not a plain file", "move it away", path=path)
        sha, size = hash_file(file)
        if not size or sha == incoming or sha in [render[0] for render in turn.tx.renders(key)]:
            return
        if size <= _SMALL:
            os.lseek(file, 0, 0)
            body = read_all(file)
            sha, size = digest(body), len(body)
            if turn.workspace.secrecy is not None:
                turn.workspace.secrecy.refuse(body, path)
            if b"\0" in body and known and _show_again(turn, run, path, known[1]["sha256"], body):
                return
            turn.tx.put_blob(sha, body)
        else:
            sha, size, _ = import_open_file(turn.workspace.state, file, turn.workspace.secrecy, path)
    finally:
        os.close(file)
    name = known[0] if known else artifact or path
    turn.do(
        run["id"], {"do": "StoreArtifact", "name": name, "path": path, "sha256": sha, "size": size, "by": "external"}
    )
    turn.tx.remember(key, (sha, None, run["id"], run["version"]))


def _show_again(turn: Turn, run: Run, path: str, sha: str, found: bytes) -> bool:
    """A text that holds NULs now is nobody's edit: a crash of the machine blanked it. False where it held some before."""
    ours = turn.tx.blob(sha)
    if ours is None or b"\0" in ours:
        return False
    quarantine(turn, path, found, "it held NULs")
    turn.artifacts[path] = (run["id"], sha, ours)
    return True


def check_logs(turn: Turn, texts: dict[str, bytes]) -> list[Publication]:
    """Append-only files: whatever stands there stays there, what a crash cut off or blanked is completed, ours follows."""
    lengths = dict(turn.tx.logs())
    if turn.workspace.secrecy is not None:
        turn.shelved |= dict.fromkeys(map(shelf_name, lengths))  # nobody looks at what was there before a log
    made = []
    for path in [*texts, *(path for path in lengths if path not in texts)]:
        damaged = None
        if not _log_stands(turn, path, lengths.get(path)):
            damaged = _log_differs(turn, path)
        elif path not in texts:
            continue
        if path in texts:
            turn.tx.append_log(path, texts[path])
        made.append(Publication("", path, damaged, texts.get(path, b""), "", "log", True))
    return made


def _log_stands(turn: Turn, path: str, length: int | None) -> bool:
    """As far as a look at its size and its end can tell: a crash of the machine blanks what was written lately.

    `length`: what we wrote; None: nothing so far. A file that is gone is written again without a word.
    """
    spot = place(turn.workspace.root, path, create=False)
    if spot is None:
        return not length
    with spot:
        try:
            file = os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=spot.fd)
        except FileNotFoundError:
            return not length
        except OSError:
            return False
    try:
        if os.fstat(file).st_size != (length or 0):
            return False
        lately = os.pread(file, _LATELY, max(0, (length or 0) - _LATELY))
        return lately.endswith(turn.tx.log_end(path)[-_LATELY:]) and b"\0" not in lately
    finally:
        os.close(file)


def _log_differs(turn: Turn, path: str) -> bytes | None:
    """What others added is taken in. Returns the bytes that stand there when they are damaged or hold a secret, to be replaced by ours."""
    spot = place(turn.workspace.root, path, create=False)
    if spot is None:
        return None
    with spot:
        found = spot.read() or b""
    ours = b"".join(turn.tx.log_text(path))
    if ours.startswith(found):
        return None  # cut short by a crash: publishing completes it
    added = found[len(ours) :] if found.startswith(ours) else b""
    if b"\0" in found:
        quarantine(turn, path, found, "it held NULs")
        if added.strip(b"\0"):
            turn.tx.append_log(path, _without_secrets(turn, added.replace(b"\0", b"")))
        return found
    if added:
        kept = _without_secrets(turn, added)
        turn.tx.append_log(path, kept)
        return None if kept == added else found
    kept = _without_secrets(turn, found)
    if kept != found and (ours.startswith(kept) or kept.startswith(ours)):  # taken in before, and not replaced yet
        if kept[len(ours) :]:
            turn.tx.append_log(path, kept[len(ours) :])
        return found
    turn.workspace.warn(f"{path} was rewritten by another program; their text stays, ours follows it")
    ours = _without_secrets(turn, ours)
    turn.tx.put_blob(digest(ours), ours)
    turn.tx.reset_log(path, kept)
    return None if kept == found else found


def _look_at_shelf(
    turn: Turn, run: Run, dialect: Dialect, key: str, root: str, path: str, renders: list[Any], found: bytes | None
) -> None:
    """What the last publication displaced: somebody who held it open may have written to it since."""
    late = _on_shelf(turn, key, root, path)
    if late is None or late == found or not late.strip(_NOTHING):
        return
    clean = _without_secrets(turn, late, path)
    if clean != late:
        turn.shelved[shelf_name(key)] = late
    # The beginning of a render of ours is what a crash left of a file that was never published.
    if any(digest(late) == sha or (body and body.startswith(late)) for sha, body, _, _ in renders):
        return
    from tenuto.workspace.foreign import absorb, absorbed_before, known

    if known(turn, key, late, clean) or absorbed_before(turn, key, late):
        return
    try:
        absorb(turn, run, dialect, path, key, clean, late, late=True)
        turn.workspace.warn(f"{path}: a write to the file that was there before came late; it is absorbed")
    except Refused as refusal:
        quarantine(turn, path, late, refusal.message)


def _on_shelf(turn: Turn, key: str, root: str, path: str) -> bytes | None:
    fd = shelf(turn.workspace.state, create=False)
    if fd is None:
        return None
    try:
        late = look(fd, shelf_name(key))
    finally:
        os.close(fd)
    if late is None:  # nothing was displaced, or the shelf lies on another file system
        folder, _, name = path.rpartition("/")
        late = _read(root, f"{folder}/{beside(name)}" if folder else beside(name))
    return late


def _damaged(
    turn: Turn, run: Run, dialect: Dialect, key: str, root: str, path: str, found: bytes | None
) -> None:
    if found is None and _absorb_stand_in(turn, run, dialect, key, root, path):
        return
    if dialect.missing == "refuse":
        if found is None:
            raise Refused("state-missing", f"{path} is not there", f"tenuto repair --restore {path}", path=path)
        raise Refused("state-damaged", f"{path} is empty or full of NULs", f"tenuto repair --restore {path}", path=path)
    if found:
        quarantine(turn, path, found, "it held nothing but blanks and NULs")
    else:
        turn.workspace.warn(f"{path} was {'gone' if found is None else 'empty'}; it is written anew")


def _absorb_stand_in(turn: Turn, run: Run, dialect: Dialect, key: str, root: str, path: str) -> bool:
    """A writer of the file died before its rename: what it had written aside is its edit. One that lives is left alone."""
    stand_in = getattr(dialect, "stand_in", {}).get(path)
    text = _abandoned(root, path, stand_in) if stand_in else None
    if text is None:
        return False
    from tenuto.workspace.foreign import absorb, known

    clean = _without_secrets(turn, text, path)
    if not known(turn, key, text, clean):
        absorb(turn, run, dialect, path, key, clean, text)
    turn.workspace.warn(f"{path} was gone; {stand_in}, which its last writer left behind, was taken in its place")
    turn.used_up.append(f"{root}/{stand_in}")
    return True


def _abandoned(root: str, path: str, stand_in: str) -> bytes | None:
    """What was left aside, when nobody renames it within a moment."""
    from time import sleep

    for _ in range(_ABANDONED_STEPS):
        text = _read(root, stand_in, quiet=True)
        if text is None or _read(root, path) is not None:
            return None
        sleep(0.01)
    spot = place(root, stand_in, create=False)
    if spot is None:
        return None
    with spot:
        return None if is_written(spot.fd, spot.name) else text


def quarantine(turn: Turn, path: str, found: bytes, why: str) -> None:
    """Kept for ever, and whole but for secrets, before anything else takes its place."""
    from tenuto.workspace.objects import keep_aside

    found = _without_secrets(turn, found)
    kept = f"{turn.workspace.state}/quarantine/{digest(path.encode())[:8]}-{digest(found)[:16]}"
    if not keep_aside(turn.workspace.state, kept, found):
        return  # the same was found, kept and said before
    turn.workspace.warn(f"{path} was damaged ({why}); what stood there is kept as {kept}")
