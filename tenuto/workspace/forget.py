"""Forget a text, everywhere Tenuto keeps one: journal, stored and projected files, logs, quarantine, displaced files.

Everything happens under the one lock. The order makes a crash harmless: first append-only files (without the commit,
theirs count as somebody's and stay); then the journal, in one transaction that remembers both versions of
each state file; then those files; then the deleted bytes. The same command, repeated after a crash, finds
what is left. At the end the raw files are searched, and what still holds the text is named.

Not ours to change: commits in git, backups, other programs' logs. The caller says so.
"""

from __future__ import annotations

import os
from functools import partial

from tenuto.encoding import digest, sha256
from tenuto.errors import Damaged, NotFound, TenutoError
from tenuto.files.exchange import place, write_all
from tenuto.names import split_file_key
from tenuto.secrets import MARK
from tenuto.stores.records import Redaction
from tenuto.workspace.edits import tree_of
from tenuto.workspace.objects import bring_object, content_of, put_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypedDict

    from tenuto.ports import Reader, Stamp, Transaction
    from tenuto.workspace.workspace import Workspace

    class Forgotten(TypedDict):
        """What was (or would be) changed: runs and files by name, the rest as counts."""

        runs: list[str]
        events: int
        contents: int
        renders: int
        notes: int
        passages: int
        logs: int
        files: list[str]


def forget(
    workspace: Workspace, texts: list[str], event: tuple[str, int] | None = None, dry_run: bool = False
) -> Forgotten:
    """`event`: all that was said in this one, besides the texts."""
    journal = workspace.journal
    journal.lock()
    try:
        transaction = journal.begin()
        try:
            done, redaction, objects, logs = _redact(workspace, transaction, texts, event, dry_run)
            if dry_run:
                journal.rollback()
                done["files"] = list(_holders(workspace, redaction))
                return _found(done, False)
            _commit_with_logs(workspace, redaction, logs)
        except BaseException as error:
            journal.rollback(error)
            raise
        for path in objects:
            os.unlink(path)
        done["files"] = _redact_files(workspace, redaction)
        raw = _raw(workspace, redaction)
        if any(done.values()) or raw:
            journal.erase()
        left = [*_raw(workspace, redaction), *_holders(workspace, redaction)]
    finally:
        journal.unlock()
    if left:
        raise Damaged("not-forgotten", f"the text is still in {', '.join(left)}", "tenuto doctor", left=left)
    _show_anew(workspace, [*done["runs"], *([event[0]] if event else [])])
    return _found(done, bool(raw))


def _redact(
    workspace: Workspace, transaction: Transaction, texts: list[str], event: tuple[str, int] | None, dry_run: bool
) -> tuple[Forgotten, Redaction, list[str], dict[str, tuple[bytes, bytes]]]:
    """Inside the transaction: what was changed, how, the objects to be removed, and append-only files (before, now)."""
    stamp: Stamp = {"at": workspace.clock(), "by": workspace.by}
    scrubbed, sha = transaction.scrub_event(*event, stamp) if event else ([], None)
    redaction = Redaction([*texts, *scrubbed])
    if sha is not None:
        redaction.contents[sha] = MARK.encode() + b"\n"
    objects = _redact_objects(workspace, transaction, redaction, dry_run)
    redacted = transaction.redact(redaction, stamp)
    done: Forgotten = {
        "runs": redacted["runs"],
        "events": redacted["events"] + (1 if event else 0),
        "contents": redacted["contents"] + len(objects),
        "renders": redacted["renders"],
        "notes": redacted["notes"],
        "passages": redacted["passages"],
        "logs": len(redacted["logs"]),
        "files": [],
    }
    return done, redaction, objects, redacted["logs"]


def _commit_with_logs(workspace: Workspace, redaction: Redaction, logs: dict[str, tuple[bytes, bytes]]) -> None:
    """Append-only files first. If the commit fails, they are again what they were: nothing was forgotten."""
    before: dict[str, bytes] = {}

    def remake(path: str, found: bytes) -> bytes:
        before[path] = found
        ours, now = logs[path]
        return now if found == ours else redaction.body(found)

    try:
        for path in logs:
            _rewrite(workspace.root, path, partial(remake, path))
        workspace.journal.commit()
    except BaseException:
        for path, found in before.items():
            _rewrite(workspace.root, path, lambda _: found)  # noqa: B023  # called at once
        raise


def _found(done: Forgotten, raw: bool) -> Forgotten:
    if not any(done.values()) and not raw:
        raise NotFound("nothing-to-forget", "the text is nowhere in what Tenuto keeps here", "check its spelling")
    return done


def _show_anew(workspace: Workspace, runs: list[str]) -> None:
    """A file may show a shortened form of the text: it is rendered from the run as it is now."""
    for run in dict.fromkeys(runs):
        if run != "@":
            try:
                with workspace.turn() as turn:
                    turn.run(run)
            except TenutoError as error:
                workspace.warn(f"files of run {run} were not written anew: {error.message}")


def _redact_objects(workspace: Workspace, transaction: Transaction, redaction: Redaction, dry_run: bool) -> list[str]:
    """Large stored files: the new version is kept at once, the old one goes when the journal names it no more."""
    old: list[str] = []
    for sha in transaction.large_contents():  # those that another machine stored
        bring_object(workspace.state, transaction, sha)
    for path in _below(workspace.state + "/objects"):
        sha = os.path.basename(path)
        if sha not in redaction.contents and not _holds(path, redaction):
            continue
        old.append(path)
        if len(sha) != 64:
            continue  # left over by a crash
        with open(path, "rb") as file:
            made = redaction.contents.get(sha) or redaction.body(file.read())
        renamed = sha256(made).hexdigest()
        if not dry_run:
            put_object(workspace.state, renamed, made)
        redaction.rename(sha, renamed)
    return old


def _redact_files(workspace: Workspace, redaction: Redaction) -> list[str]:
    changed = []
    with workspace.journal.read() as reader:
        for root, path, key in _places(workspace, reader):
            if _rewrite(root, path, lambda found: _without(workspace, reader, redaction, key, found)):  # noqa: B023  # called at once
                changed.append(path)
    for path in _own_files(workspace):
        if _holds(path, redaction):
            if os.path.dirname(path) == workspace.state + "/shelf":
                os.unlink(path)
            else:
                with open(path, "rb") as file:
                    made = redaction.body(file.read())
                _exchange(None, path, made)
            changed.append(path)
    return changed


def _without(workspace: Workspace, reader: Reader, redaction: Redaction, key: str, found: bytes) -> bytes:
    """A version of ours gives way to our newest; in anybody else's, only the text is replaced."""
    renders = reader.renders(key, -1) if key else []
    if redaction.body(found) != found and digest(found) in [render[0] for render in renders]:
        sha, body, _, _ = renders[0]
        content = body if body is not None else content_of(workspace.state, reader, sha)
        if isinstance(content, bytes):
            return content
        with open(content, "rb") as file:
            return file.read()
    return redaction.body(found)


def _rewrite(root: str, path: str, remake: Callable[[bytes], bytes]) -> bool:
    spot = place(root, path, create=False)
    if spot is None:
        return False
    with spot:
        try:
            found = spot.read()
        except TenutoError:
            return False  # no plain file
        made = found if found is None else remake(found)
        if made is None or made == found:
            return False
        _exchange(spot.fd, spot.name, made)
        return True


def _exchange(folder: int | None, name: str, made: bytes) -> None:
    """A new file in the place of the old one, with its mode."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777
    head, slash, tail = name.rpartition("/")
    beside = f"{head}{slash}.{tail}.tenuto-new"
    try:
        os.unlink(beside, dir_fd=folder)
    except FileNotFoundError:
        pass
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)
    try:
        write_all(file, made)
        os.fchmod(file, mode)
    finally:
        os.close(file)
    os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)


def _places(workspace: Workspace, reader: Reader) -> Iterator[tuple[str, str, str]]:
    """(root, path, key of its renders) of every file that was ever written from the journal and has a place, and of
    those that agents wrote and a run took in: its artifacts, its documents."""
    written = set()
    for key, _, _ in reader.projected():
        tree, path = split_file_key(key)
        root = workspace.root_of(tree)
        if root is not None:
            written.add((root, path))
            yield root, path, key
    for path, _ in reader.logs():
        yield workspace.root, path, ""
    for root, path in dict.fromkeys(_taken_in(workspace, reader)):
        if (root, path) not in written:
            yield root, path, ""


def _taken_in(workspace: Workspace, reader: Reader) -> Iterator[tuple[str, str]]:
    repo = reader.load_repo()
    for summary in reader.runs():
        run = reader.load(summary["id"])
        root = workspace.root_of(tree_of(run)) if run is not None else None
        if run is None or root is None:
            continue
        yield from ((root, artifact["path"]) for artifact in run["artifacts"].values() if artifact["path"])
        shown = [workspace.views[name] for name in run["dialects"] if name in workspace.views]
        yield from ((root, path) for view in shown for path in view.paths(run, repo))


def _holders(workspace: Workspace, redaction: Redaction) -> Iterator[str]:
    """Files that hold the text now."""
    with workspace.journal.read() as reader:
        places = list(_places(workspace, reader))
    for root, path, _ in places:
        if _holds(f"{root}/{path}", redaction):
            yield path
    for path in [*_own_files(workspace), *_below(workspace.state + "/objects")]:
        if _holds(path, redaction):
            yield path


def _own_files(workspace: Workspace) -> Iterator[str]:
    ours = workspace.journal.files()
    for path in _below(workspace.state):
        if path not in ours and not path.startswith(workspace.state + "/objects/"):
            yield path


def _raw(workspace: Workspace, redaction: Redaction) -> list[str]:
    return [path for path in workspace.journal.files() if _holds(path, redaction)]


def _below(folder: str) -> Iterator[str]:
    for where, _, names in os.walk(folder):
        yield from (f"{where}/{name}" for name in sorted(names))


def _holds(path: str, redaction: Redaction) -> bool:
    """Without reading a large file into memory, and without following a link."""
    from mmap import ACCESS_READ, mmap

    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not os.fstat(file).st_size:
            return False
        with mmap(file, 0, access=ACCESS_READ) as body:
            return redaction.stands_in(body)
    except (OSError, ValueError):
        return False  # no plain file
    finally:
        os.close(file)
