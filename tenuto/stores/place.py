"""The file `where` beside a journal: it names the server that keeps the journal now, and the project there.

    {"format":1,"store":"postgresql","address":"postgresql://db.example.org/tenuto","project":"shop"}

Rule: no password stands in it. Where it cannot be read, nothing is guessed: another journal must not be begun.
"""

from __future__ import annotations

import os

from tenuto.encoding import dumps, loads_strict
from tenuto.errors import Damaged, SchemaSkew, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    from tenuto.ports import Journal
    from tenuto.stores.postgres.journal import PostgresJournal

    class Place(NamedTuple):
        address: str
        project: str


_FORMAT = 1
_LARGEST = 1 << 16


def open_elsewhere(location: str) -> Journal:
    place = read_place(location)
    return open_postgres(location, place[0], place[1])


def open_postgres(location: str, address: str, project: str) -> PostgresJournal:
    """The journal of a project on a server. It needs the extra `cluster`."""
    try:
        from tenuto.stores.postgres.journal import PostgresJournal
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise TenutoError(
            "no-psycopg", "the journal is in PostgreSQL, and psycopg is not installed", "pip install 'tenuto[cluster]'"
        ) from None
    return PostgresJournal(location, address, project)


def read_place(location: str) -> tuple[str, str]:
    """(address, project)"""
    path = f"{location}/where"
    try:
        with open(path, "rb") as file:
            record = loads_strict(file.read(_LARGEST))
        if record["format"] > _FORMAT:
            message = f"{path} was written by a newer tenuto"
            raise SchemaSkew("where-newer", message, "upgrade tenuto on this machine", path=path)
        if record["store"] != "postgresql":
            raise ValueError(record["store"])
        return str(record["address"]), str(record["project"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = f"{path} says where the journal is, and cannot be read: {error}"
        raise Damaged(
            "where-damaged", message, "take it away, then: tenuto join ADDRESS --project NAME", path=path
        ) from None


def write_place(location: str, address: str, project: str) -> None:
    """Durable when this returns; whoever looks meanwhile sees all of it or nothing."""
    from tenuto.stores.database import make_folder, sync_folder

    record = {"format": _FORMAT, "store": "postgresql", "address": address, "project": project}
    make_folder(location)
    new = f"{location}/.where-{os.getpid()}"
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, dumps(record).encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(new, f"{location}/where")
    sync_folder(location)


def remove_place(location: str) -> None:
    from tenuto.stores.database import sync_folder

    os.unlink(f"{location}/where")
    sync_folder(location)
