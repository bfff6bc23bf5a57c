"""A backup of a repository's journal: written as lines, read back whole or not at all.

The database's part is in stores/backup.py; here are the large objects that lie beside it, the
head and the end of the copy, and the transaction around reading one back.
"""

from __future__ import annotations

import os

from tenuto.encoding import NotJson, dumps, loads, sha256
from tenuto.errors import Damaged, NotFound, SchemaSkew
from tenuto.stores.backup import FORMAT, Import, head, packed, records, stored_by, unpacked
from tenuto.stores.schema import SCHEMA_VERSION
from tenuto.workspace.objects import import_file, object_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tenuto.core.records import Json
    from tenuto.workspace.turn import Workspace

_PART = 1 << 20


def export(workspace: Workspace, version: str, run: str | None = None) -> Iterator[Json]:
    """The records of a backup, as one look at the journal; of one run or of everything."""
    with workspace.journal.read() as reader:
        if run is not None and not reader.version(run):
            raise NotFound("no-such-run", f"there is no run {run!r}", "tenuto list", run=run)
        db = workspace.journal.connection()  # type: ignore[attr-defined]
        count, hashed = 0, sha256()
        for record in _all(workspace, db, version, run):
            count += 1
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
            yield from _parts(path, sha)


def _parts(path: str, sha: str) -> Iterator[Json]:
    with open(path, "rb") as file:
        body = file.read(_PART)
        while body:
            after = file.read(_PART)
            yield {"kind": "object", "sha256": sha, "last": not after, **packed(body)}
            body = after


def import_lines(workspace: Workspace, lines: Iterable[bytes]) -> Import:
    """Read a backup back. Whatever is wrong with it: nothing was taken."""
    made: list[str] = []
    try:
        with workspace.journal.write():
            taking = Import(workspace.journal.connection())  # type: ignore[attr-defined]
            for record in _checked(lines):
                try:
                    if record["kind"] == "object":
                        made += _keep_part(workspace, record)
                    else:
                        taking.take(record)
                except (KeyError, TypeError, AttributeError, ValueError) as error:
                    raise _damaged(f"a record of kind {record['kind']!r} is not whole: {error!r}") from None
            taking.finish()
            return taking
    except BaseException:
        for path in made:
            os.unlink(path)
        raise


def _keep_part(workspace: Workspace, record: Json) -> list[str]:
    """One part of a large object. With the last one it is kept, if it is what it should be."""
    sha = record["sha256"]
    parts = f"{workspace.state}/import-{os.getpid()}"
    with open(parts, "ab") as file:
        file.write(unpacked(record))
    if not record["last"]:
        return []
    try:
        known = os.path.exists(object_path(workspace.state, sha))
        found, _, path = import_file(workspace.state, parts)
    finally:
        os.unlink(parts)
    if found != sha:
        os.unlink(path)
        raise _damaged(f"the stored file {sha} is not what was stored")
    return [] if known else [path]


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
            if (record["lines"], record["sha256"]) != (count, hashed.hexdigest()):
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
    if record["format"] > FORMAT or record["schema"] > SCHEMA_VERSION:
        raise SchemaSkew(
            "backup-newer", f"the backup was written by tenuto {record.get('version')}, a newer one", "upgrade tenuto"
        )


def _damaged(message: str) -> Damaged:
    return Damaged("backup-damaged", message, "nothing was taken; use another copy")
