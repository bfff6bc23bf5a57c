"""A journal goes to a server, or comes back: all of it, compared record by record before anything else trusts it.

    to a server   copied into an empty project, in one transaction, under the lock of the old journal; the old one is
                  marked as moved, and nobody opens it any more; `where` names the server; the new one takes writers
    back          copied into a new file beside the old one; the server's is marked as moved, and takes no more
                  writers; the new file takes the place of the old one; `where` goes

At every moment one of the two takes writers, or none. A move that was cut off is repeated with the same command.

Rule: while an attempt is in flight nothing is moved: its end would be written to a journal that is not the one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from tenuto.encoding import dumps, sha256
from tenuto.errors import Damaged, NotFound, Refused, TenutoError
from tenuto.stores import is_elsewhere
from tenuto.stores.database import make_folder, sync_folder
from tenuto.stores.journal import MOVED, home_of
from tenuto.stores.place import open_postgres, read_place, remove_place, write_place
from tenuto.stores.sqlite import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenuto.ports import Reader, Transaction
    from tenuto.stores.postgres.journal import PostgresJournal

_ARRIVING = "on its way from "


class Moved(NamedTuple):
    where: str
    runs: int
    events: int
    digest: str  # over all records, the same on both sides


def set_up_project(location: str, address: str, project: str) -> list[str]:
    """By the owner of the database: make the schema of a project, or bring it up to date. What was done, in words."""
    there = _opened(location, address, project)
    import psycopg

    from tenuto.stores.postgres.address import connection_words
    from tenuto.stores.postgres.faults import unreachable
    from tenuto.stores.postgres.schema import set_up

    try:
        connection = psycopg.connect(connection_words(address), autocommit=True)
    except psycopg.Error as error:
        raise unreachable(error, there.location) from error
    with connection:
        return set_up(connection, there.project, there.location)


def move_to_server(location: str, address: str, project: str) -> Moved:
    """The project was set up before."""
    if is_elsewhere(location):
        if read_place(location) != (address, project):
            raise Refused(
                "already-elsewhere", f"the journal is at {read_place(location)[0]} already", "tenuto move --back"
            )
        return _arrive(location, address, project)
    here, there = SqliteJournal(location), _opened(location, address, project)
    if not here.exists():
        raise NotFound(
            "no-journal", "there is no journal here to be moved", f"tenuto join {address} --project {project}"
        )
    here.lock()
    try:
        with here.read() as reader:
            _refuse_in_flight(reader)
            moved = _copy_to_server(reader, there, location)
        here.leave(f"{address} --project {project}")
        write_place(location, address, project)
        _admit(there)
        return moved
    finally:
        here.unlock()
        here.close()
        there.close()


def _opened(location: str, address: str, project: str) -> PostgresJournal:
    """Refused where a password stands in the address, or the way is not safe."""
    there = open_postgres(location, address, project)
    from tenuto.stores.postgres.address import checked

    checked(address)
    return there


def _copy_to_server(reader: Reader, there: PostgresJournal, location: str) -> Moved:
    source = home_of(location)
    transaction = there.begin_although_moved()
    try:
        marker = transaction.marker(MOVED)
        if transaction.names():
            if marker not in (f"{_ARRIVING}{source}", home_of(location)):
                raise Refused(
                    "project-in-use", f"{there.location} has runs of its own", "name another project: --project NAME"
                )
            there.clear()  # half a move, or what was moved back from there to here
        moved = _copied(reader, transaction, there.location)
        transaction.put_marker(MOVED, f"{_ARRIVING}{source}")
        there.commit()
        return moved
    except BaseException as error:
        there.rollback(error)
        raise


def _copied(source: Reader, target: Transaction, where: str) -> Moved:
    """Inside a transaction of the target. Refused where the copy differs in anything."""
    taking = target.importing()
    before = _digest_of(_taken(source, taking.take))
    taking.finish()
    for run in source.names():  # about files that stay where they are, which a backup leaves out
        target.put_marker(f"unproven:{run}", source.marker(f"unproven:{run}"))
    after = _digest_of(target.records())
    if before != after or source.versions() != target.versions():
        raise Damaged("not-the-same", f"the copy in {where} is not what was copied; nothing was moved", "tenuto verify")
    runs = [run for run in taking.runs if run != "@"]
    return Moved(where, len(runs), taking.events, before)


def _taken(source: Reader, take: Callable[[dict[str, object]], None]) -> Iterable[object]:
    for record in source.records():
        take(record)
        yield record


def _digest_of(records: Iterable[object]) -> str:
    hashed = sha256()
    for record in records:
        hashed.update(dumps(record).encode() + b"\n")
    return hashed.hexdigest()


def _refuse_in_flight(reader: Reader) -> None:
    for summary in reader.unfinished():
        run = reader.load(summary["id"])
        if run is not None and run["in_flight"]:
            raise Refused(
                "in-flight",
                f"run {summary['id']} has attempts in flight: {', '.join(run['in_flight'])}",
                f"wait for them, or: tenuto pause {summary['id']}",
                run=summary["id"],
            )


def _admit(there: PostgresJournal) -> None:
    """The journal has arrived: it takes writers from now on."""
    there.begin_although_moved().put_marker(MOVED, None)
    there.commit()


def _arrive(location: str, address: str, project: str) -> Moved:
    """A move that was cut off after the old journal was left."""
    there = _opened(location, address, project)
    with there.read() as reader:
        marker = reader.marker(MOVED)
        moved = Moved(there.location, len(reader.versions()), sum(reader.versions().values()), "")
    if marker == f"{_ARRIVING}{home_of(location)}":
        _admit(there)
    elif marker is not None:
        on_its_way = marker.startswith(_ARRIVING)
        what = f"is {marker}, and has not arrived" if on_its_way else f"was moved to {marker}"
        raise Refused("journal-moved", f"{there.location} {what}", "end that move" if on_its_way else "use that one")
    there.close()
    return moved


def join(location: str, address: str, project: str) -> Moved:
    """This checkout uses the journal of that project from now on."""
    if is_elsewhere(location):
        if read_place(location) == (address, project):
            return _arrive(location, address, project)
        raise Refused("already-elsewhere", f"the journal is at {read_place(location)[0]} already", "tenuto move --back")
    here = SqliteJournal(location)
    try:
        if here.exists():
            with here.read() as reader:
                if reader.names():
                    hint = f"tenuto move --to {address} --project {project}"
                    raise Refused("journal-here", "this checkout has a journal with runs of its own", hint)
    except Refused as refusal:
        if refusal.code != "journal-moved" or f"{address} --project {project}" not in refusal.message:
            raise
    finally:
        here.close()
    moved = _arrive(location, address, project)
    write_place(location, address, project)
    return moved


def move_back(location: str, bring: Callable[[Reader], None]) -> Moved:
    """`bring`: large stored files that only the server has are written beside the journal."""
    address, project = read_place(location) if is_elsewhere(location) else ("", "")
    if not address:
        raise Refused("not-elsewhere", "the journal is here already", "tenuto move --to postgresql://HOST/DATABASE")
    there, home = open_postgres(location, address, project), home_of(location)
    folder = f"{location}/coming-back"
    _remove(folder)
    there.lock()
    try:
        transaction = there.begin_although_moved()
        try:
            marker = transaction.marker(MOVED)
            if marker not in (None, home):
                raise Refused("journal-moved", f"{there.location} was moved to {marker}", "use that one")
            _refuse_in_flight(transaction)
            bring(transaction)
            moved = _copied_back(transaction, folder)
            transaction.put_marker(MOVED, home)
            there.commit()
        except BaseException as error:
            there.rollback(error)
            raise
        _take_the_place(folder, location)
        return moved._replace(where=location + "/journal.db")
    finally:
        there.unlock()
        there.close()
        _remove(folder)


def _copied_back(source: Transaction, folder: str) -> Moved:
    make_folder(folder)
    here = SqliteJournal(folder)
    try:
        with here.write() as target:
            moved = _copied(source, target, here.location)
            target.put_marker(MOVED, None)
        return moved
    finally:
        here.close()  # the last connection: all of it is in one file then


def _take_the_place(folder: str, location: str) -> None:
    """The old file was left when the journal was moved: its log must not be taken for the new one's."""
    for name in ("journal.db-wal", "journal.db-shm"):
        if os.path.exists(f"{folder}/{name}") and os.path.getsize(f"{folder}/{name}"):
            raise TenutoError("still-open", f"{folder}/{name} is in use", "repeat the command")
        _unlink(f"{location}/{name}")
    sync_folder(location)
    os.rename(f"{folder}/journal.db", f"{location}/journal.db")
    sync_folder(location)
    remove_place(location)


def _remove(folder: str) -> None:
    for name in ("journal.db", "journal.db-wal", "journal.db-shm", "lock", "queue"):
        _unlink(f"{folder}/{name}")
    try:
        os.rmdir(folder)
    except OSError:
        pass


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
