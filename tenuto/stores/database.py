"""The database of a SQLite journal: how it is opened, its tables, and how an older one becomes a newer one.

    event     what happened: (run, seq) is the key, (run, key) is unique, text word for word;
              digest = SHA-256 of the text, chain = SHA-256(chain before + digest). With a rowid: rows are added at the
              end of the table, whatever their run, which writes fewer pages than between those of the same run
    run       one row a run: count and head of the chain, kept apart from the events so that a
              cut tail is seen; tail = bytes of events since the state was kept; card = the summary that a list shows;
              open_in = the work tree of a run that has not ended (beside the summary: an event seldom
              changes it, and its index need not be written then); digest = SHA-256 of all that
    state     the folded run, as a cache, with the sequence number it stands at, and its SHA-256
    render    what we wrote to projected files: hash always, body for the last few
    log       what we appended to append-only files; logged = how long each is, and the hash over its parts
    blob      artifacts by their hash (large ones lie in objects/)
    passage   the searchable text, with its full-text index
    note      markers: small facts by name, each with its SHA-256

A journal of a newer schema is refused by name (exit status 6): an older program must not guess.
"""

from __future__ import annotations

import posix
import sys

from tenuto.errors import SchemaSkew

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as _sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, ClassVar

    from tenuto.ports import Finding
    from tenuto.stores.journal import PassageIndex

    Fetched = Any  # a row as a database gives it, or None: what a column holds is looked at before it is used
else:

    def _import_lean() -> None:
        """`_sqlite3` asks functools for lru_cache, to keep compiled statements, and functools brings collections:
        together half as much as starting the interpreter. The cache itself is C code that needs neither, so a process
        that has not loaded functools yet hands `_sqlite3` that code directly. Where anything is different than
        expected, the module is imported the ordinary way.
        """
        try:
            from _functools import _lru_cache_wrapper
        except ImportError:
            return
        stand_in = type(sys)("functools")
        stand_in.lru_cache = _lru_cache(_lru_cache_wrapper)
        sys.modules["functools"] = stand_in
        try:
            __import__("_sqlite3")
        except Exception:  # noqa: BLE001  # it wants more of functools than we know of: the ordinary way
            sys.modules.pop("_sqlite3", None)
        finally:
            del sys.modules["functools"]

    def _lru_cache(wrapper: Callable[..., object]) -> Callable[[int], object]:
        def sized(maxsize: int = 128) -> Callable[[Callable[..., object]], object]:
            return lambda call: wrapper(call, maxsize, False, tuple)

        return sized

    if "functools" not in sys.modules and "_sqlite3" not in sys.modules:
        _import_lean()
    import _sqlite3

DatabaseError = _sqlite3.DatabaseError
sqlite_version: str = _sqlite3.sqlite_version
InterfaceError = _sqlite3.InterfaceError
IntegrityError = _sqlite3.IntegrityError
OperationalError = _sqlite3.OperationalError
ProgrammingError = _sqlite3.ProgrammingError


class Connection(_sqlite3.Connection):
    """A database that is closed when its holder lets go of it. Python 3.13 warns of one that ends without `close()`."""

    __slots__ = ()

    Duplicate: ClassVar[type[Exception]] = IntegrityError
    NotStorable: ClassVar[tuple[type[Exception], ...]] = (InterfaceError, ProgrammingError)
    body_as_bytes: ClassVar[str] = "CAST(body AS BLOB)"
    """Of the text of an event, also where it is no UTF-8 any more."""

    @property
    def passages(self) -> PassageIndex[Connection]:
        from tenuto.stores import search

        return search

    def each(self, query: str, values: Sequence[object] = (), /) -> Iterator[Fetched]:
        """The rows of a long answer, which is never in memory as a whole."""
        return iter(self.execute(query, values))

    def indexed_runs(self) -> int:
        """How many runs there are, by the pages of their index."""
        count: int = self.execute("SELECT count(digest) FROM run INDEXED BY run_created").fetchone()[0]
        return count

    def own_check(self) -> Iterator[Finding]:
        from tenuto.stores.verify import BACKUP, finding

        for (line,) in self.execute("PRAGMA integrity_check(5)"):
            if line != "ok":
                yield finding("damage", None, "database", f"SQLite: {line}", BACKUP)

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # noqa: BLE001, S110  # it was never opened, and Python would print that
            pass


def connect(path: str, seconds: float, uri: bool = False) -> Connection:
    """`seconds`: how long a statement waits for another program's lock."""
    return _sqlite3.connect(
        path, timeout=seconds, isolation_level=None, check_same_thread=False, factory=Connection, uri=uri
    )


# ---- tables ----------------------------------------------------------------------------------------


SCHEMA_VERSION = 1
MOVED_VERSION = (
    1_000_000_000  # of a journal that is kept elsewhere now: every Tenuto, older ones too, refuses to open it
)

_MIGRATIONS = {
    1: """
CREATE TABLE event(
  run TEXT NOT NULL, seq INTEGER NOT NULL, key TEXT, body TEXT NOT NULL,
  digest BLOB NOT NULL, chain BLOB NOT NULL, redacted TEXT,
  PRIMARY KEY(run, seq));
CREATE UNIQUE INDEX event_key ON event(run, key) WHERE key IS NOT NULL;
CREATE TABLE run(
  id TEXT PRIMARY KEY, created TEXT NOT NULL, seq INTEGER NOT NULL DEFAULT 0, chain BLOB NOT NULL DEFAULT (zeroblob(32)),
  tail INTEGER NOT NULL DEFAULT 0, kept INTEGER NOT NULL DEFAULT 0, dialects TEXT NOT NULL DEFAULT '', card TEXT NOT NULL DEFAULT '{}',
  open_in TEXT, digest BLOB) WITHOUT ROWID;
CREATE INDEX run_created ON run(created DESC);
CREATE INDEX run_open ON run(open_in) WHERE open_in IS NOT NULL;
CREATE TABLE state(
  run TEXT PRIMARY KEY, seq INTEGER NOT NULL, fold INTEGER NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE render(
  path TEXT NOT NULL, n INTEGER NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL, sha256 TEXT NOT NULL, body BLOB,
  PRIMARY KEY(path, n)) WITHOUT ROWID;
CREATE TABLE log(path TEXT NOT NULL, pos INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY(path, pos)) WITHOUT ROWID;
CREATE TABLE logged(path TEXT PRIMARY KEY, length INTEGER NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE blob(sha256 TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE passage(id INTEGER PRIMARY KEY, run TEXT, source TEXT, path TEXT, heading TEXT, body TEXT, digest BLOB);
CREATE INDEX passage_source ON passage(run, source);
CREATE VIRTUAL TABLE passage_text USING fts5(
  heading, body, content='passage', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE note(name TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
""",  # noqa: E501  # kept to the character: it stands in every journal
}


def check_version(connection: Connection, path: str) -> bool:
    """True when the tables are there as this program knows them, False when they are to be made or migrated."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == MOVED_VERSION:
        from tenuto.stores.journal import moved

        raise moved(connection, path)
    if found > SCHEMA_VERSION:
        raise SchemaSkew(
            "schema-newer",
            f"the journal {path} has schema {found}; this tenuto knows {SCHEMA_VERSION}",
            "upgrade tenuto on this machine",
            found=found,
            known=SCHEMA_VERSION,
        )
    return found == SCHEMA_VERSION


def make_folder(path: str) -> None:
    """With the folders above it; each may be there already. Those that were not survive a loss of power."""
    try:
        posix.mkdir(path)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(path.rpartition("/")[0])
        make_folder(path)
        return
    sync_folder(path.rpartition("/")[0] or "/")


def sync_folder(path: str) -> None:
    """What was made in it, or renamed into it, is there for good."""
    folder = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        posix.fsync(folder)
    finally:
        posix.close(folder)


def migrate(connection: Connection) -> None:
    """Under the lock. Each step is one transaction, so a crash leaves a whole version."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    for version in range(found + 1, SCHEMA_VERSION + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _MIGRATIONS[version].split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version={version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite may have taken it back by itself, as where the disk is full
                connection.execute("ROLLBACK")
            raise
