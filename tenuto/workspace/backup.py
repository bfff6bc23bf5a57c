"""A backup of a repository's journal: written as lines, read back whole or not at all.

The journal gives and takes the records (ports.Reader.records, ports.Importer); here are the large objects that lie
beside it, the head and the end of the copy, and the transaction around reading one back.
"""

from __future__ import annotations

import os
from contextlib import suppress

from tenuto.encoding import NotJson, dumps, loads, sha256
from tenuto.errors import NotFound, SchemaSkew, TenutoError
from tenuto.files.exchange import LARGEST
from tenuto.stores.journal import object_path
from tenuto.stores.records import FORMAT, NOT_WHOLE, SCHEMA, damaged, head, packed, unpacked
from tenuto.workspace.checkup import read_at, restore
from tenuto.workspace.guard import require_person
from tenuto.workspace.objects import bring_object, hash_file, import_open_file, make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO, Self

    from tenuto.core.records.run import Json
    from tenuto.ports import Importer, Reader
    from tenuto.workspace.workspace import Workspace

_PART = 1 << 20
_LONGEST_LINE = 2 * LARGEST  # the largest file that is shown, as base64


def export(workspace: Workspace, version: str, run: str | None = None) -> Iterator[Json]:
    """The records of a backup, as one look at the journal; of one run or of everything."""
    with workspace.journal.read() as reader:
        if run is not None and not reader.version(run):
            raise NotFound("no-such-run", f"there is no run {run!r}", "tenuto list", run=run)
        count, hashed = 0, sha256()
        for record in _all(workspace, reader, version, run):
            count += 1
            _refuse_secrets(workspace, record)
            hashed.update(dumps(record).encode() + b"\n")
            yield record
        yield {"kind": "end", "lines": count, "sha256": hashed.hexdigest()}


def _all(workspace: Workspace, reader: Reader, version: str, run: str | None) -> Iterator[Json]:
    yield head(version)
    yield from reader.records(run)
    for sha in reader.stored_by([run] if run is not None else reader.names()):
        path = object_path(workspace.state, sha)
        if reader.blob(sha) is None and bring_object(workspace.state, reader, sha):
            yield from _parts(workspace, path, sha)


def _refuse_secrets(workspace: Workspace, record: Json) -> None:
    """Digests are over all of it: a backup is whole, or it is none."""
    if workspace.secrets:
        workspace.secrets.refuse(dumps(record).encode("utf-8", "surrogatepass"), "the backup")
        if "base64" in record:
            workspace.secrets.refuse(unpacked(record), "the backup")


def _parts(workspace: Workspace, path: str, sha: str) -> Iterator[Json]:
    with open(path, "rb") as file:
        workspace.secrets.refuse_file(file.fileno(), "the backup")
        body = file.read(_PART)
        while body:
            after = file.read(_PART)
            yield {"kind": "object", "sha256": sha, "last": not after, **packed(body)}
            body = after


def import_lines(workspace: Workspace, lines: Iterable[bytes]) -> Importer:
    """Read a backup back. Whatever is wrong with it: nothing was taken.

    It tells of decisions that persons made, and nothing in it proves that they did: so a person has to vouch for it.
    """
    require_person(workspace.caller, "read a backup back", "tenuto import FILE")
    journal = workspace.journal
    journal.lock()
    try:
        with _Objects(workspace) as objects:
            transaction = journal.begin()
            try:
                taking = transaction.importing()
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
            raise damaged("a line does not end")
        yield line


def _show(workspace: Workspace, taking: Importer) -> None:
    """Write state files that are not here. Later, a missing one may be somebody's wish; here it never was."""
    for path in sorted(taking.shown):
        try:
            if "//" not in path and read_at(workspace.root, path) is None:
                restore(workspace, path)
        except (
            TenutoError
        ) as error:  # a link in its way, a full disk: what was taken is taken, and the rest is for `tenuto repair`
            workspace.warn(f"{path} is not written: {error.message}")


def _take_all(workspace: Workspace, records: Iterable[Json], taking: Importer, objects: _Objects) -> None:
    for record in records:
        try:
            _refuse_secrets(workspace, record)
            if record["kind"] == "object":
                objects.take(record)
            else:
                taking.take(record)
        except NOT_WHOLE as error:
            raise damaged(f"a record of kind {record['kind']!r} is not whole: {error!r}") from None
    objects.finish()
    taking.finish()


class _Objects:
    """Large stored files, part by part. Unless all goes well, the commit included, no new one is kept."""

    def __init__(self, workspace: Workspace) -> None:
        self._state = workspace.state
        self._secrets = workspace.secrets
        self._parts = f"{self._state}/import-{os.getpid()}"
        self._open: tuple[str, IO[bytes]] | None = None  # whose parts are coming in, and the file that they go to
        self._made: list[str] = []

    def take(self, record: Json) -> None:
        sha = record["sha256"]
        if self._open is None:
            make_folder(self._state)  # the journal comes with the commit
            self._open = (sha, open(self._parts, "wb"))  # noqa: SIM115  # until its last part
        named, file = self._open
        if sha != named:
            raise damaged(f"the stored file {named} is not whole: {sha} comes before its last part")
        file.write(unpacked(record))
        if record["last"]:
            self._keep(sha)

    def _keep(self, sha: str) -> None:
        self._close()
        with open(self._parts, "rb") as file:
            if hash_file(file.fileno())[0] != sha:
                raise damaged(f"the stored file {sha} is not what was stored")
            if not os.path.exists(object_path(self._state, sha)):
                self._made.append(object_path(self._state, sha))
                import_open_file(self._state, file.fileno(), self._secrets, "the backup")

    def finish(self) -> None:
        if self._open is not None:
            raise damaged(f"the last part of the stored file {self._open[0]} is missing")

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
            with suppress(OSError):  # a folder that holds something stays
                os.removedirs(os.path.dirname(path))


def _checked(lines: Iterable[bytes]) -> Iterator[Json]:
    """The records between head and end; both are looked at here."""
    count, hashed, ended = 0, sha256(), False
    for number, line in enumerate(lines, 1):
        record = _record(number, line)
        if ended:
            raise damaged(f"line {number} comes after the end")
        if number == 1:
            _check_head(record)
        if record["kind"] == "end":
            if (record.get("lines"), record.get("sha256")) != (count, hashed.hexdigest()):
                raise damaged("lines are missing, or were changed")
            ended = True
            continue
        count += 1
        hashed.update(dumps(record).encode() + b"\n")
        if number > 1:
            yield record
    if not ended:
        raise damaged("it is cut off: there is no end line")


def _record(number: int, line: bytes) -> Json:
    try:
        record = loads(line)
        if isinstance(record, dict) and isinstance(record.get("kind"), str):
            return record
    except (NotJson, UnicodeDecodeError):
        pass
    raise damaged(f"line {number} is no record of a backup")


def _check_head(record: Json) -> None:
    if record["kind"] != "tenuto-journal":
        raise damaged("it does not begin like a backup of Tenuto")
    if not isinstance(record.get("format"), int) or not isinstance(record.get("schema"), int):
        raise damaged("its first line does not say which Tenuto can read it")
    if record["format"] > FORMAT or record["schema"] > SCHEMA:
        raise SchemaSkew(
            "backup-newer", f"the backup was written by tenuto {record.get('version')}, a newer one", "upgrade tenuto"
        )
