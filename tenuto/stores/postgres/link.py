"""A connection to the schema of one project, as the tables' reader and writer see it (`Database`).

Rule 1: a message is one round trip. What belongs together travels in one simple-protocol message of several
statements: the beginning of a turn with the first look, a look at a run, all writes with their COMMIT.

Rule 2: no pipeline. Inside a transaction it disarms `idle_in_transaction_session_timeout`, and a process that is
suspended there would hold the project's lock until somebody finds it.

Rule 3: writes wait here until something is read, or the transaction ends. Each is spelled out at once, so that a value
that cannot be stored is named where it was given.

Rule 4: what was read in this transaction, and was not written since, is not asked for again: under the project's lock
nobody else can have changed it.

PostgreSQL's text holds no NUL. Where one of our texts has one, it is spelled with an escape, and comes back as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.errors import DataError, ProgrammingError, UniqueViolation

from tenuto.stores.postgres.faults import fault, is_cut_off

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import ClassVar

    from tenuto.ports import Finding
    from tenuto.stores.database import Fetched
    from tenuto.stores.journal import PassageIndex

Row = tuple[Any, ...]  # as a database gives it: what each column holds is looked at before it is used
Rows = list[Row]
Question = tuple[str, tuple[object, ...]]

_LARGEST_MESSAGE = 4 << 20  # of writes that wait
_AT_ONCE = 100  # rows of a long answer that are fetched together
_READS = ("SELECT", "WITH")


class Answer:
    """The rows of one statement."""

    __slots__ = ("_at", "_rows")

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._at = 0

    def fetchone(self) -> Fetched:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchall(self) -> Rows:
        return self.fetchmany(len(self._rows))

    def fetchmany(self, size: int, /) -> Rows:
        found = self._rows[self._at : self._at + size]
        self._at += len(found)
        return found

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())


_NOTHING = Answer([])


class Link:
    Duplicate: ClassVar[type[Exception]] = UniqueViolation
    NotStorable: ClassVar[tuple[type[Exception], ...]] = (DataError, ProgrammingError)
    body_as_bytes: ClassVar[str] = "convert_to(body, 'UTF8')"

    def __init__(self, connection: psycopg.Connection[Row], address: str) -> None:
        self.connection = connection
        self.address = address
        self.trips = 0  # messages so far
        self.status = ""  # what the last statement of the last message came to
        self._answers = 0
        self._writer = psycopg.ClientCursor(connection)
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._known: dict[Question, tuple[str, Rows]] = {}  # question -> table, answer

    @property
    def passages(self) -> PassageIndex[Link]:
        from tenuto.stores.postgres import passages

        return passages

    # -- what the tables' reader and writer ask

    def execute(self, query: str, values: Sequence[object] = (), /) -> Answer:
        if not query.startswith(_READS):
            self._write(query, self.spell(query, values))
            return _NOTHING
        known = self._known.get((query, tuple(values)))
        return Answer(known[1] if known is not None else self.send([self.spell(query, values)])[-1])

    def executemany(self, query: str, rows: Sequence[Sequence[object]], /) -> None:
        for row in rows:
            self._write(query, self.spell(query, row))

    def each(self, query: str, values: Sequence[object] = (), /) -> Iterator[Row]:
        """The rows of a long answer, which is never in memory as a whole. Inside a transaction."""
        self.send([])
        try:
            self._answers += 1
            with psycopg.ServerCursor(self.connection, f"answer_{self._answers}") as cursor:
                cursor.itersize = _AT_ONCE
                cursor.execute(_with_placeholders(query).encode(), [_storable(value) for value in values])
                for row in cursor:
                    yield _as_written(row)
        except psycopg.Error as error:
            raise fault(error, self.address) from error

    def indexed_runs(self) -> int:
        count: int = self.execute("SELECT count(*) FROM run").fetchone()[0]
        return count

    def own_check(self) -> Iterator[Finding]:
        """PostgreSQL compares the checksum of each page as it reads it, where the server was made with checksums."""
        from tenuto.stores.verify import BACKUP, finding

        query = "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname=current_database()"
        for (failures,) in self.execute(query):
            if failures:
                yield finding("damage", None, "database", f"PostgreSQL: {failures} pages are not as written", BACKUP)

    # -- messages

    def spell(self, query: str, values: Sequence[object] = ()) -> str:
        """A statement with its values in it."""
        if not values:
            return query
        return self._writer.mogrify(_with_placeholders(query).encode(), [_storable(value) for value in values])

    def send(self, statements: list[str]) -> list[Rows]:
        """One message: what waits, then these. The rows of each of these statements."""
        message = [*self._waiting, *statements]
        if not message:
            return []
        self._waiting, self._waiting_size = [], 0
        self.trips += 1
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(";".join(message).encode())
                answers = [_rows_of(cursor)]
                while cursor.nextset():
                    answers.append(_rows_of(cursor))
                self.status = cursor.statusmessage or ""
        except (UniqueViolation, DataError):
            raise
        except psycopg.Error as error:
            raise fault(error, self.address) from error
        return answers[len(message) - len(statements) :]

    def keep(self, table: str, question: Question, rows: Rows) -> None:
        """This is the answer from now on, until the table is written to."""
        self._known[question] = (table, rows)

    def drop_known(self) -> None:
        self._known.clear()

    def forget(self) -> None:
        """A transaction is over: nothing waits, and nothing is known."""
        self._waiting, self._waiting_size = [], 0
        self._known.clear()

    def _write(self, query: str, statement: str) -> None:
        self._waiting.append(statement)
        self._waiting_size += len(statement)
        if self._known:
            table = _table_of(query)
            for question in [question for question, (of, _) in self._known.items() if of == table]:
                del self._known[question]
        if self._waiting_size > _LARGEST_MESSAGE:
            self.send([])

    @property
    def is_open(self) -> bool:
        return not self.connection.closed and not is_cut_off(self.connection)

    def close(self) -> None:
        self.connection.close()


def _rows_of(cursor: psycopg.Cursor[Row]) -> Rows:
    if cursor.description is None:
        return []
    return [_as_written(row) for row in cursor.fetchall()]


_PLACEHOLDERS: dict[str, str] = {}


def _with_placeholders(query: str) -> str:
    """The tables' statements say `?`; none has a question mark or a percent sign in a literal."""
    found = _PLACEHOLDERS.get(query)
    if found is None:
        found = _PLACEHOLDERS[query] = query.replace("?", "%s")
    return found


def _table_of(query: str) -> str:
    words = query.replace("(", " ").split(None, 4)
    return words[1] if words[0] == "UPDATE" else words[2]  # INSERT INTO x, DELETE FROM x


_ESCAPE, _OURS = "\x01", "\x01\x01"
_NUL = "\x01\x02"


def _storable(value: object) -> object:
    if isinstance(value, str) and ("\0" in value or _ESCAPE in value):
        return value.replace(_ESCAPE, _OURS).replace("\0", _NUL)
    return value


def _as_written(row: Row) -> Row:
    for value in row:
        if type(value) is str and _ESCAPE in value:
            return tuple(_unescaped(cell) if type(cell) is str else cell for cell in row)
    return row


def _unescaped(text: str) -> str:
    parts = text.split(_OURS)
    return _ESCAPE.join(part.replace(_NUL, "\0") for part in parts)
