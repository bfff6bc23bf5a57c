"""What about a journal in PostgreSQL could hurt, and what to do about each. It looks and answers; it mends nothing.

Nothing that a driver may not see is needed: where a role must not look, that is said.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

import psycopg

from tenuto.errors import TenutoError, Unwritable
from tenuto.stores.postgres.faults import fault
from tenuto.stores.postgres.schema import CONTENT, JOURNAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.ports import Check
    from tenuto.stores.database import Fetched
    from tenuto.stores.postgres.journal import PostgresJournal
    from tenuto.stores.postgres.link import Link
    from tenuto.stores.postgres.schema import Project

_OLDEST_SERVER = 140000  # 14: the oldest that its makers still mend
_SKEW_SECONDS = 2.0
_FEW_CONNECTIONS = 10


def diagnose(journal: PostgresJournal) -> Iterator[Check]:
    try:
        link = journal.link()
        server = _row(link, "SELECT current_setting('server_version_num')::int, current_setting('server_version')")
    except TenutoError as error:
        yield _check("problem", "database", error.message, error.hint, error.code)
        return
    yield _check_server(*server)
    yield _check_way(link)
    yield _check_role(link, journal.project)
    yield _check_clock(link)
    yield from _check_durability(link)
    yield _check_connections(link)
    yield _check_room(link)
    yield from _check_journal(journal)
    yield _check_lock(link, journal.project)


def _check(status: str, name: str, message: str, fix: str = "", code: str = "") -> Check:
    return {"status": status, "name": name, "message": message, "fix": fix, "code": code}


def _row(link: Link, query: str) -> Fetched:
    return link.execute(query).fetchone()


def _check_server(number: int, words: str) -> Check:
    if number < _OLDEST_SERVER:
        return _check("problem", "database", f"PostgreSQL {words} is too old", "use PostgreSQL 14 or newer")
    return _check("ok", "database", f"PostgreSQL {words}")


def _check_way(link: Link) -> Check:
    info = link.connection.info
    if link.connection.pgconn.ssl_in_use:
        if info.get_parameters().get("sslmode") == "verify-full":
            return _check("ok", "tls", "the server proved who it is, and what is sent is encrypted")
        return _check("ok", "tls", "what is sent is encrypted; near by, the server need not prove itself")
    place = "a Unix socket" if info.host.startswith("/") else "the loopback address"
    return _check("ok", "tls", f"{place}: it needs none")


def _check_role(link: Link, project: Project) -> Check:
    owner, name, is_super = _row(
        link,
        f"SELECT coalesce(pg_has_role(n.nspowner, 'USAGE'), false), current_user, r.rolsuper FROM pg_roles AS r"
        f" LEFT JOIN pg_namespace AS n ON n.nspname='{project.schema}' WHERE r.rolname=current_user",
    )
    if is_super:
        return _check(
            "note", "role", f"{name} is a superuser: it may change everything", f"GRANT {project.role('driver')} TO ..."
        )
    if owner:
        return _check(
            "note",
            "role",
            f"{name} owns the tables: it could remove events without a trace",
            f"log in as a role of its own: GRANT {project.role('driver')} TO ...",
        )
    return _check("ok", "role", f"{name} may add events, and not remove them")


def _check_clock(link: Link) -> Check:
    before = time()
    (there,) = _row(link, "SELECT extract(epoch FROM clock_timestamp())::float8")
    after = time()
    skew = 0.0 if before <= there <= after else there - before if there < before else there - after
    if abs(skew) > _SKEW_SECONDS:
        return _check(
            "note",
            "clock",
            f"the database's clock is {skew:+.1f} s from this machine's; times in the journal come from each machine",
            "let both follow NTP",
        )
    return _check("ok", "clock", "this machine and the database agree")


def _check_durability(link: Link) -> Iterator[Check]:
    query = "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('data_checksums')"
    fsync, pages, checksums = _row(link, query)
    if (fsync, pages) != ("on", "on"):
        yield _check(
            "note",
            "durability",
            f"fsync={fsync}, full_page_writes={pages}: when its machine stops, the database may be lost",
            "set both to on, except for a server that is thrown away",
        )
    else:
        yield _check(
            "ok", "durability", "commits are flushed" + (", pages have checksums" if checksums == "on" else "")
        )


def _check_connections(link: Link) -> Check:
    used, most = _row(link, "SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity")
    message = f"{used} of {most} connections are used"
    if most - used < _FEW_CONNECTIONS:
        return _check("note", "connections", message, "raise max_connections, or end what is not needed")
    return _check("ok", "connections", message)


def _check_room(link: Link) -> Check:
    (size,) = _row(link, "SELECT pg_database_size(current_database())")
    return _check("ok", "room", f"the database takes {_amount(size)}; how much is free, its own machine knows")


def _amount(size: int) -> str:
    return f"{size >> 30} GiB" if size >> 30 else f"{size >> 20} MiB"


def _check_journal(journal: PostgresJournal) -> Iterator[Check]:
    try:
        if not journal.exists():
            yield _check("note", "journal", f"{journal.location}: nothing was recorded so far", "tenuto init")
            return
        with journal.read() as reader:
            count = len(reader.runs())
            reader.load_repo()
    except TenutoError as error:
        yield _check("problem", "journal", error.message, error.hint, error.code)
        return
    version = len(JOURNAL.steps)
    yield _check("ok", "journal", f"readable, {count} run{'' if count == 1 else 's'}, schema {version}")


def _check_lock(link: Link, project: Project) -> Check:
    number = project.lock & ((1 << 64) - 1)
    row = _row(
        link,
        "SELECT l.pid, coalesce(a.usename, '?'), coalesce(a.client_addr::text, 'here'),"
        " extract(epoch FROM now() - a.xact_start)::int FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid)"
        f" WHERE l.locktype='advisory' AND l.granted AND l.objsubid=1 AND l.classid={number >> 32}"
        f" AND l.objid={number & 0xFFFFFFFF}",
    )
    if row is None:
        return _check("ok", "lock", "nobody holds it")
    process, user, machine, seconds = row
    since = "" if seconds is None else f" for {seconds} s"
    return _check(
        "note",
        "lock",
        f"{user} from {machine} is writing{since} (its process there: {process}); others wait for it",
        f"wait a moment and look again; if it hangs: SELECT pg_terminate_backend({process})",
    )


def erase(link: Link, project: Project, address: str) -> None:
    """Outside a transaction, under the lock: the tables are written anew, without what was deleted.

    Only their owner may do that. The server's log of changes, its replicas and its backups are out of reach.
    """
    owns = _row(link, f"SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname='{project.schema}'")[0]
    names = [f'"{project.schema}".{table}' for table in CONTENT]
    command = f"VACUUM FULL {', '.join(names)}"
    if not owns:
        raise Unwritable(
            "not-erased",
            f"the text is out of every record; its old bytes are in the files of {address} until its owner has it"
            " written anew",
            f"whoever owns the tables: {command}",
        )
    try:
        link.connection.execute(command.encode())
    except psycopg.Error as error:
        raise fault(error, address) from error
