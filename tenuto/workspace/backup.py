"""A backup of a repository's journal: written as lines, read back whole or not at all.

The database's part is in stores/backup.py; here are the large objects that lie beside it, the
head and the end of the copy, and the transaction around reading one back.
"""

from __future__ import annotations

import os
from contextlib import suppress

from tenuto.encoding import NotJson, dumps, loads, sha256
from tenuto.errors import Damaged, NotFound, SchemaSkew, TenutoError
from tenuto.files.places import LARGEST
from tenuto.stores.backup import FORMAT, NOT_WHOLE, Import, head, packed, records, stored_by, unpacked
from tenuto.stores.schema import SCHEMA_VERSION
from tenuto.workspace.compare import read_at
from tenuto.workspace.guard import require_person
from tenuto.workspace.objects import hash_file, import_open_file, object_path
from tenuto.workspace.repair import restore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO, Any, Self

    from tenuto.core.records import Json
    from tenuto.workspace.turn import Workspace

_PART = 1 << 20
_LONGEST_LINE = 2 * LARGEST  # the largest file that is shown, as base64


def export(workspace: Workspace, version: str, run: str | None = None) -> Iterator[Json]:
    """The records of a backup, as one look at the journal; of one run or of everything."""
    with workspace.journal.read() as reader:
        if run is not None and not reader.version(run):
            raise NotFound("no-such-run", f"there is no run {run!r}", "tenuto list", run=run)
        db = workspace.journal.connection()  # type: ignore[attr-defined]
        count, hashed = 0, sha256()
        for record in _all(workspace, db, version, run):
            count += 1
            _refuse_secrets(workspace, record)
            hashed.update(dumps(record).encode() + b"\n")
            yield record
        yield {"kind": "end", "lines": count, "sha256": hashed.hexdigest()}


def _all(workspace: Workspace, db: Any, version: str, run: str | None) -> Iterator[Json]:
    yield head(version)
    yield from records(db, run)
    runs = [run] if run is not None else [name for (name,) in db.execute("SELECT id FROM run ORDER BY id")]
    for sha in stored_by(db, runs):
        path = object_path(workspace.state, sha)
        if os.path.exists(path) and db.execute("SELECT 1 FROM blob WHERE sha256=?", (sha,)).fetchone() is None:
            yield from _parts(workspace, path, sha)


def _refuse_secrets(workspace: Workspace, record: Json) -> None:
    """Digests are over all of it: a backup is whole, or it is none."""
    if workspace.secrecy is not None:
        workspace.secrecy.refuse(dumps(record).encode("utf-8", "surrogatepass"), "the backup")
        if "base64" in record:
            workspace.secrecy.refuse(unpacked(record), "the backup")


def _parts(workspace: Workspace, path: str, sha: str) -> Iterator[Json]:
    with open(path, "rb") as file:
        if workspace.secrecy is not None:
            workspace.secrecy.refuse_file(file.fileno(), "the backup")
        body = file.read(_PART)
        while body:
            after = file.read(_PART)
            yield {"kind": "object", "sha256": sha, "last": not after, **packed(body)}
            body = after


def import_lines(workspace: Workspace, lines: Iterable[bytes]) -> Import:
    """Read a backup back. Whatever is wrong with it: nothing was taken.

    It tells of decisions that persons made, and nothing in it proves that they did: so a person says that it is to be believed.
    """
    require_person("read a backup back", "tenuto import FILE")
    journal: Any = workspace.journal
    journal.lock()
    try:
        with _Objects(workspace) as objects:
            journal.begin()
            try:
                taking = Import(journal.connection())
                _take_all(workspace, _checked(lines), taking, objects)
            except BaseException as error:
                journal.rollback(error)
                raise
            journal.commit()
    finally:
        journal.unlock()
    _show(workspace, taking)
    return taking


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a backup: one that does not end (a device, something else altogether) is not waited for."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise _damaged("a line does not end")
        yield line


def _show(workspace: Workspace, taking: Import) -> None:
    """State files that are not here are written. Later, one that is missing may be somebody's wish; here it never was."""
    for path in sorted(taking.shown):
        try:
            if "//" not in path and read_at(workspace.root, path) is None:
                restore(workspace, path)
        except TenutoError as error:  # a link in its way, a full disk: what was taken is taken, and the rest is for `tenuto repair`
            workspace.warn(f"{path} is not written: {error.message}")


def _take_all(workspace: Workspace, records: Iterable[Json], taking: Import, objects: _Objects) -> None:
    for record in records:
        try:
            _refuse_secrets(workspace, record)
            if record["kind"] == "object":
                objects.take(record)
            else:
                taking.take(record)
        except NOT_WHOLE as error:
            raise _damaged(f"a record of kind {record['kind']!r} is not whole: {error!r}") from None
    objects.finish()
    taking.finish()


class _Objects:
    """Large stored files, part by part. Unless all goes well, the commit included, none is kept that was not here before."""

    def __init__(self, workspace: Workspace) -> None:
        self._state = workspace.state
        self._secrecy = workspace.secrecy
        self._parts = f"{self._state}/import-{os.getpid()}"
        self._open: tuple[str, Any] | None = None  # whose parts are coming in, and the file that they go to
        self._made: list[str] = []

    def take(self, record: Json) -> None:
        sha = record["sha256"]
        if self._open is None:
            self._open = (sha, open(self._parts, "wb"))  # noqa: SIM115  # until its last part
        named, file = self._open
        if sha != named:
            raise _damaged(f"the stored file {named} is not whole: {sha} comes before its last part")
        file.write(unpacked(record))
        if record["last"]:
            self._keep(sha)

    def _keep(self, sha: str) -> None:
        self._close()
        with open(self._parts, "rb") as file:
            if hash_file(file.fileno())[0] != sha:
                raise _damaged(f"the stored file {sha} is not what was stored")
            if not os.path.exists(object_path(self._state, sha)):
                self._made.append(object_path(self._state, sha))
                import_open_file(self._state, file.fileno(), self._secrecy, "the backup")

    def finish(self) -> None:
        if self._open is not None:
            raise _damaged(f"the last part of the stored file {self._open[0]} is missing")

    def _close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._close()
        for path in [self._parts, *(self._made if kind is not None else [])]:
            with suppress(FileNotFoundError):
                os.unlink(path)


def _checked(lines: Iterable[bytes]) -> Iterator[Json]:
    """The records between head and end; both are looked at here."""
    count, hashed, ended = 0, sha256(), False
    for number, line in enumerate(lines, 1):
        record = _record(number, line)
        if ended:
            raise _damaged(f"line {number} comes after the end")
        if number == 1:
            _check_head(record)
        if record["kind"] == "end":
            if (record.get("lines"), record.get("sha256")) != (count, hashed.hexdigest()):
                raise _damaged("lines are missing, or were changed")
            ended = True
            continue
        count += 1
        hashed.update(dumps(record).encode() + b"\n")
        if number > 1:
            yield record
    if not ended:
        raise _damaged("it is cut off: there is no end line")


def _record(number: int, line: bytes) -> Json:
    try:
        record = loads(line)
        if isinstance(record, dict) and isinstance(record.get("kind"), str):
            return record
    except (NotJson, UnicodeDecodeError):
        pass
    raise _damaged(f"line {number} is no record of a backup")


def _check_head(record: Json) -> None:
    if record["kind"] != "tenuto-journal":
        raise _damaged("it does not begin like a backup of Tenuto")
    if not isinstance(record.get("format"), int) or not isinstance(record.get("schema"), int):
        raise _damaged("its first line does not say which Tenuto can read it")
    if record["format"] > FORMAT or record["schema"] > SCHEMA_VERSION:
        raise SchemaSkew(
            "backup-newer", f"the backup was written by tenuto {record.get('version')}, a newer one", "upgrade tenuto"
        )


def _damaged(message: str) -> Damaged:
    return Damaged("backup-damaged", message, "nothing was taken; use another copy")
