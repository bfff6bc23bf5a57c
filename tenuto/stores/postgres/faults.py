"""What PostgreSQL's errors mean to somebody who has a run to finish. They are told apart by their SQLSTATE.

Where a connection broke, nothing was written: what a turn did is sent with its COMMIT, and a COMMIT that broke is
judged (journal.py) before anything is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import pq

from tenuto.errors import Conflict, Damaged, NotFound, Refused, SchemaSkew, TenutoError, Unwritable

if TYPE_CHECKING:
    from tenuto.stores.postgres.link import Row

_DOCTOR = "tenuto doctor"
_INIT = "whoever owns the database sets it up: tenuto cluster init ADDRESS --project NAME"

IDLE_IN_TRANSACTION = "25P03"
_BUSY = ("55P03",)  # lock_timeout
_AGAIN = ("40001", "40P01")  # a snapshot that is too old, a deadlock: the same call may be repeated
_FULL = ("53100", "53200")
_NOT_ALLOWED = ("42501", "25006")
_NO_TABLES = ("42P01", "3F000", "42883", "42703")
_BAD_LOGIN = ("28000", "28P01")
_NO_DATABASE = ("3D000",)
_DAMAGED = ("XX001", "XX002")
_TOO_LONG = ("54000",)


def fault(error: psycopg.Error, address: str) -> TenutoError:
    state, words = error.sqlstate or "", _words(error)
    if state == IDLE_IN_TRANSACTION:
        return Conflict(
            "stood-still",
            f"this program stood still inside a turn, and {address} has let the next one in; nothing was written",
            "repeat the command",
        )
    if state in _BUSY:
        return Conflict("journal-busy", f"another program has been writing to {address}", "tenuto doctor names it")
    if state in _AGAIN:
        return Conflict("busy", f"{address}: {words}; nothing was written", "repeat the command")
    if state in _FULL:
        return Unwritable("disk-full", f"{address} has no room left: {words}; nothing was written", "make room there")
    if state in _NOT_ALLOWED:
        return Unwritable("not-allowed", f"{address}: {words}", "ask whoever owns the database for the driver's role")
    if state in _NO_TABLES:
        return NotFound("no-project", f"{address} is not set up for this project: {words}", _INIT)
    if state in _BAD_LOGIN:
        return Refused("no-login", f"{address} does not let us in: {words}", "look at pg_service.conf and .pgpass")
    if state in _NO_DATABASE:
        return NotFound("no-database", f"{address}: {words}", "name another database, or have this one made")
    if state in _DAMAGED:
        return Damaged("journal-damaged", f"{address} is damaged: {words}", "restore a backup: tenuto import FILE")
    if state in _TOO_LONG:
        return Unwritable("too-long", f"{address} cannot hold a name that long: {words}", "use a shorter one")
    if isinstance(error, psycopg.OperationalError):
        return cut_off(address, words)
    return TenutoError("journal-failed", f"{address}: {words}", _DOCTOR)


def cut_off(address: str, words: str) -> TenutoError:
    return Conflict(
        "connection-lost",
        f"the connection to {address} was lost: {words}; nothing was written",
        "repeat the command; tenuto doctor looks at the database",
    )


def unreachable(error: psycopg.Error, address: str) -> TenutoError:
    """No connection could be made."""
    words = _words(error)  # there is no SQLSTATE of a connection that was not made
    if 'database "' in words and "does not exist" in words:
        return NotFound("no-database", f"{address}: {words}", "name another database, or have this one made")
    if any(sign in words for sign in ("authentication failed", "no password", "pg_hba.conf", 'role "')):
        return Refused("no-login", f"{address} does not let us in: {words}", "look at pg_service.conf and .pgpass")
    if "certificate" in words or "SSL" in words or "host name" in words:
        return Refused(
            "not-trusted", f"{address} does not prove who it is: {words}", "sslrootcert names the CA that signed it"
        )
    if "definition of service" in words or "service file" in words:
        return NotFound("no-service", f"{address}: {words}", "describe it in pg_service.conf")
    return Conflict(
        "database-away", f"{address} cannot be reached: {words}; nothing was written", "repeat it later; tenuto doctor"
    )


def unknown_outcome(address: str, why: str) -> Damaged:
    """After a COMMIT that broke, where nobody can say what became of it: the honest answer is "perhaps"."""
    return Damaged(
        "perhaps-written",
        f"the connection to {address} broke while the turn was committed, and {why}:"
        " whether what was just recorded is there, nobody can tell",
        "tenuto verify; look at the run, then repeat what is not there",
    )


def older_schema(address: str, found: int, known: int) -> SchemaSkew:
    return SchemaSkew(
        "schema-older",
        f"the journal {address} has schema {found}; this tenuto needs {known}",
        _INIT,
        found=found,
        known=known,
    )


def newer_schema(address: str, found: int, known: int) -> SchemaSkew:
    return SchemaSkew(
        "schema-newer",
        f"the journal {address} has schema {found}; this tenuto knows {known}",
        "upgrade tenuto on this machine",
        found=found,
        known=known,
    )


def moved(address: str, where: str) -> Refused:
    return Refused(
        "journal-moved", f"the journal {address} was moved to {where}, and is not written to any more", "use that one"
    )


def is_cut_off(connection: psycopg.Connection[Row]) -> bool:
    return connection.pgconn.status != pq.ConnStatus.OK


def _words(error: psycopg.Error) -> str:
    """The first line: others quote statements, and a statement may hold what is secret."""
    primary = error.diag.message_primary
    text = primary or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
