"""The database that machines share: how it is reached, and what is kept there.

    address(state)             where it is: $TENUTO_CLUSTER, or the server that keeps the journal
    line = Line(address)       one connection, made again when it breaks
    line.rows("SELECT ...")    a question in a transaction of its own, asked again where the connection broke
    install(address)           the schema, by its owner; once
    allow(address, login)      a login of its own for a worker, or for drivers

Rules. How a server is named, and which way to it is safe: stores/postgres/address.py. A schema of another edition is
refused by its number.

Everything that is asked here can be asked again: after a broken connection nobody knows whether it was carried out, and
the answer of the second time says it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, LiteralString, TypeAlias

from tenuto.errors import NotFound, Refused, SchemaSkew, TenutoError
from tenuto.stores import server_of

if TYPE_CHECKING:
    import psycopg

    Value: TypeAlias = "str | int | float | bool | bytes | list[str] | list[int] | None"
    Row = tuple[Value, ...]
    Connection = psycopg.Connection[Row]

VARIABLE = "TENUTO_CLUSTER"
# What was claimed or reported stays so, however the server is set up and whatever happens to it.
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
SCHEMA = "tenuto_cluster"
EDITION = 1
WORKERS, DRIVERS = "tenuto_worker", "tenuto_driver"  # roles without login, granted to those who have one
_FOR_WORKERS = ("register", "ready", "claim", "beat", "held", "content_of", "report", "give_back", "leave")
_HINT = "docs/howto/many-machines.md says how a database is prepared"


def address(state: str = "") -> str:
    """`state`: of a workspace whose journal may be on such a server. Never from the settings of a repository: whoever
    wrote those would choose who gets to see the run."""
    found = os.environ.get(VARIABLE, "")
    if not found and state:
        found = server_of(state)
    if not found:
        message = "it is not said which database the machines share"
        raise Refused("no-cluster", message, f"{VARIABLE}=postgresql://host/name ; to try it: tenuto cluster demo")
    return found


class Line:
    """`sight`: for how long, in seconds, this line has seen the database without a gap."""

    def __init__(self, address: str, patience: float = 0.0) -> None:
        """`patience`: for so many seconds a database that is away is waited for."""
        self.address = address
        self.patience = patience
        self._connection: Connection | None = None
        self._lock = threading.RLock()
        self._since = 0.0

    @property
    def sight(self) -> float:
        return time.monotonic() - self._since if self._connection is not None else 0.0

    def rows(self, question: LiteralString, *values: Value) -> list[Row]:
        until = time.monotonic() + self.patience
        while True:
            try:
                return self._ask(question, values)
            except TenutoError as problem:
                if problem.code != "database-away" or time.monotonic() >= until:
                    raise
                time.sleep(min(1.0, self.patience / 10))

    def row(self, question: LiteralString, *values: Value) -> Row:
        return self.rows(question, *values)[0]

    def value(self, question: LiteralString, *values: Value) -> Value:
        return self.row(question, *values)[0]

    def _ask(self, question: LiteralString, values: Sequence[Value]) -> list[Row]:
        import psycopg

        with self._lock:
            try:
                found = self._opened().execute(question, values)
                return found.fetchall() if found.description else []
            except psycopg.OperationalError as problem:
                self.close()
                raise _away(problem) from None
            except psycopg.errors.InsufficientPrivilege as problem:
                raise Refused("not-permitted", _said(problem), _HINT) from None
            except psycopg.errors.NoDataFound as problem:
                raise NotFound("no-pool", _said(problem), "tenuto cluster pool NAME --cap N") from None
            except psycopg.Error as problem:
                raise TenutoError("database-failed", _said(problem), _HINT) from None

    def wait(self, channel: LiteralString, seconds: float) -> bool:
        """Until somebody says something on the channel: True. Listening never is the only way to learn of it."""
        import psycopg

        with self._lock:
            try:
                connection = self._opened()
                connection.execute(f"LISTEN {channel}")  # again and again: after a break it is another connection
                return any(True for _ in connection.notifies(timeout=seconds, stop_after=1))
            except psycopg.OperationalError:
                self.close()
            except TenutoError as problem:
                if problem.code != "database-away":
                    raise
        time.sleep(min(seconds, 1.0))
        return False

    def _opened(self) -> Connection:
        if self._connection is None:
            connection = connect(self.address)
            try:
                refuse_other_edition(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._since = connection, time.monotonic()
        return self._connection

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()


def connect(where: str) -> Connection:
    import psycopg

    from tenuto.stores.postgres.address import checked, connection_words

    words = connection_words(checked(where))
    # Without prepared statements: a pooler in between may give every question to another process of the server.
    options = f"-c search_path={SCHEMA},pg_catalog -c statement_timeout=60000 -c lock_timeout=30000"
    try:
        connection = psycopg.connect(words, autocommit=True, prepare_threshold=None, options=options)
        connection.execute(_DURABLE)
        return connection
    except psycopg.OperationalError as problem:
        raise _away(problem) from None


def refuse_other_edition(connection: Connection) -> None:
    import psycopg

    try:
        found = connection.execute("SELECT number FROM edition").fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
        found = None
    if found is None:
        raise Refused("no-cluster", "this database is not prepared for Tenuto", "its owner runs: tenuto cluster init")
    if found[0] != EDITION:
        message = f"this database has edition {found[0]!r} of what machines share, and this Tenuto knows {EDITION}"
        raise SchemaSkew("other-edition", message, "use the Tenuto that the others use")


def install(address: str) -> bool:
    """False where it was there already."""
    import psycopg

    text = (files("tenuto.cluster") / "cluster.sql").read_text("utf-8")
    with connect(address) as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('tenuto_cluster'))")
        known = connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", [SCHEMA]).fetchone()
        if known and known[0]:
            refuse_other_edition(connection)
            return False
        for role in (WORKERS, DRIVERS):
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone() is None:
                connection.execute(psycopg.sql.SQL("CREATE ROLE {} NOLOGIN").format(psycopg.sql.Identifier(role)))
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(text.encode())
        _grant(connection)
        connection.execute("INSERT INTO pool (name) VALUES ('default')")
    return True


def _grant(connection: Connection) -> None:
    """A worker may call its functions, and read or write nothing else."""
    connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {WORKERS}, {DRIVERS}")
    connection.execute(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {SCHEMA} FROM PUBLIC")
    connection.execute(f"GRANT SELECT (number) ON edition TO {WORKERS}")
    connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {DRIVERS}")
    connection.execute(f"GRANT EXECUTE ON FUNCTION offer, expire, cancel, drive, let_go TO {DRIVERS}")
    names: tuple[LiteralString, ...] = _FOR_WORKERS
    for name in names:
        connection.execute(f"ALTER FUNCTION {name} SECURITY DEFINER")
        connection.execute(f"ALTER FUNCTION {name} SET search_path = {SCHEMA}, pg_temp")
        connection.execute(f"GRANT EXECUTE ON FUNCTION {name} TO {WORKERS}")


def allow(address: str, login: str, role: str) -> None:
    """A login, made where there is none; its password is set by whoever runs the database."""
    from psycopg.sql import SQL, Identifier

    with connect(address) as connection, connection.transaction():
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [login]).fetchone() is None:
            connection.execute(SQL("CREATE ROLE {} LOGIN").format(Identifier(login)))
        connection.execute(SQL("GRANT {} TO {}").format(Identifier(role), Identifier(login)))


def _away(problem: Exception) -> TenutoError:
    return TenutoError("database-away", f"the database does not answer: {_said(problem)}", "ask again in a moment")


def _said(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300]
