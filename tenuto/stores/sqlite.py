"""The journal in SQLite: WAL, synchronous=FULL, one writer at a time.

Rule 1: one flock, on a file that is never unlinked, covers transaction, checkpoint and
projection. It queues writers; SQLite's own busy handler only backs it up. It also keeps
checkpoints away from writers, which SQLite before 3.51.3 needs (a WAL reset could corrupt).

Rule 2: who was answered is durable. A turn flushes under the lock, before it shows anything in files; `write()`
shows nothing, lets the next one in, and then flushes (writing.py).

Rule 3: a reader takes no lock: WAL gives it a snapshot.

Rule 4: the folded run is a cache. It is written when the events since the last one outweigh
it, so its cost per event stays constant however large the run grows.

A process on the hot path ends with os._exit: closing the last connection would checkpoint.
"""

from __future__ import annotations

import fcntl
import posix as os  # the part of it that is C; all of os costs a hook a fifth of the interpreter's start
from _thread import RLock

from tenuto.core.fold import FOLD_VERSION, apply, apply_repo, new_repo, new_run
from tenuto.core.upgrade import upgrade
from tenuto.encoding import dumps, loads, sha256
from tenuto.errors import Conflict, Damaged
from tenuto.stores.cards import card
from tenuto.stores.engine import DatabaseError, IntegrityError, OperationalError, connect
from tenuto.stores.schema import check_version, is_there, make_folder, migrate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from tenuto.core.records import Json, Repo, Run
    from tenuto.ports import Render
    from tenuto.stores.writing import Writing

REPO = "@"  # the repository's own stream; no slug can be this
_BUSY_SECONDS = 30.0
_PATIENCE = 0.5  # a state is kept again when the events since make up this share of it
_FRAMES = 200
_CHECKPOINT_BYTES = _FRAMES * (4096 + 24)
_LARGEST_LOG = 8 << 20
_KEEP_BODIES = 8
_EMPTY_CHAIN = bytes(32)
_sync = getattr(os, "fdatasync", os.fsync)


class SqliteJournal:
    """One journal file and its lock. Cheap to make; the database is opened at the first use."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.path = directory + "/journal.db"
        self._connection: Any = None
        self._lock_fd = self._queue_fd = self._log_fd = -1
        self._mutex = RLock()
        self._writing = False
        self._durable = True
        self._held_open = False
        self._patience = _PATIENCE

    def write(self) -> Writing:
        from tenuto.stores.writing import Writing

        return Writing(self)

    def read(self) -> Reading:
        return Reading(self)

    def close(self) -> None:
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            for file in (self._lock_fd, self._queue_fd, self._log_fd):
                if file >= 0:
                    os.close(file)
            self._lock_fd = self._queue_fd = self._log_fd = -1

    def lock(self) -> None:
        self._mutex.acquire()
        if self._writing:
            self._mutex.release()
            raise Conflict("nested-write", "a write began inside a write of the same process")
        try:
            if self._queue_fd < 0:
                self._lock_fd, self._queue_fd = self._open("/lock"), self._open("/queue")
            self._stand_in_line()
        except BaseException:
            self._mutex.release()
            raise
        self._writing = True

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.directory + name, flags, 0o644)
        except FileNotFoundError:
            make_folder(self.directory)
            return os.open(self.directory + name, flags, 0o644)

    def _stand_in_line(self) -> None:
        """Who waits holds the queue: a process that just wrote cannot overtake it, however fast it comes again."""
        fcntl.flock(self._queue_fd, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._queue_fd, fcntl.LOCK_UN)

    def unlock(self) -> None:
        self._writing = False
        fcntl.flock(self._lock_fd, fcntl.LOCK_UN)
        self._mutex.release()

    def _under_lock(self, call: Callable[[], Any]) -> Any:
        self.lock()
        try:
            return call()
        finally:
            self.unlock()

    def connection(self) -> Any:
        """The database; made and migrated under the lock when it is new or old."""
        if self._connection is None:
            if not self._writing and not is_there(self.path):
                return self._under_lock(self.connection)
            try:
                self._connection, current = self._opened(self.path)
            except DatabaseError as error:
                from tenuto.stores.faults import look_only

                self._connection, current = look_only(self._opened, self.path, error)
            if not current:
                self._bring_up_to_date()
        return self._connection

    def _opened(self, path: str, uri: bool = False) -> tuple[Any, bool]:
        connection = connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            return connection, check_version(connection, self.path)
        except BaseException:
            connection.close()
            raise

    def _bring_up_to_date(self) -> None:
        if not self._writing:
            self._under_lock(self._bring_up_to_date)
            return
        if not check_version(self._connection, self.path):
            self._connection.execute("PRAGMA journal_mode=WAL")
            migrate(self._connection)

    def begin(self, durable: bool = True) -> SqliteTransaction:
        """Under the lock. `durable=False`: the commit survives the process, and the machine only after `flush`."""
        connection = self.connection()
        try:
            if durable != self._durable:
                connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            connection.execute("BEGIN IMMEDIATE")
            if not durable and self._log_fd < 0:
                # Before anything is written to it: the kernel tells of a failure only those who had the file open.
                self._log_fd = os.open(self.path + "-wal", os.O_RDWR | os.O_CLOEXEC)
        except DatabaseError as error:
            self.rollback(error)
        transaction = SqliteTransaction(connection, self.path)
        transaction.patience = self._patience
        return transaction

    def commit(self) -> None:
        """Durable when this returns."""
        try:
            self._connection.execute("COMMIT")
        except BaseException as error:
            # A commit that failed (disk full, I/O error) is taken back: answered as failed, it must not appear later.
            self.rollback(error)
            raise
        self._checkpoint_if_long()

    def flush(self) -> None:
        """What was committed without being durable is durable when this returns."""
        try:
            _sync(self._log_fd)
        except OSError as error:
            from tenuto.stores.faults import not_flushed

            raise not_flushed(error, self.path) from error

    def rollback(self, error: BaseException | None = None) -> None:
        """`error`: why. One of SQLite's own is raised again in our words, with what to do about it."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if isinstance(error, DatabaseError):
            from tenuto.stores.faults import fault

            raise fault(error, self.path) from error

    def _checkpoint_if_long(self) -> None:
        """Under the lock. A reader in the way is not waited for; the next writer tries again."""
        try:
            size = os.fstat(self._log_fd).st_size if self._log_fd >= 0 else os.stat(self.path + "-wal").st_size
        except OSError:
            return
        if size >= (_LARGEST_LOG if self._held_open else _CHECKPOINT_BYTES):
            self._connection.execute("PRAGMA busy_timeout=0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except OperationalError:
                pass
            self._connection.execute(f"PRAGMA busy_timeout={int(_BUSY_SECONDS * 1000)}")

    def hold_open(self, on: bool) -> None:
        """A driver keeps the journal open, and its run in memory. Meanwhile the log is written over instead of being cut off and
        made anew (a flush of blocks that are there already takes half the time), and states are kept less often.

        SQLite's own checkpoint is part of the commit, and so under the lock, too.
        """
        self.connection().execute(f"PRAGMA wal_autocheckpoint={_FRAMES if on else 0}")
        self._held_open = on
        self._patience = _PATIENCE * 4 if on else _PATIENCE


class SqliteReader:
    """Queries. A Reading gives them a snapshot, a Writing the transaction under way."""

    def __init__(self, connection: Any, path: str) -> None:
        self._db = connection
        self._path = path

    def load(self, run: str) -> Run | None:
        return self._folded(run, new_run, apply)  # type: ignore[no-any-return]

    def load_repo(self) -> Repo:
        return self._folded(REPO, new_repo, apply_repo) or new_repo()

    def _folded(self, run: str, new: Any, apply_event: Any) -> Any:
        row = self._db.execute("SELECT seq, fold, body FROM state WHERE run=?", (run,)).fetchone()
        try:
            seq, state = (row[0], loads(row[2])) if row and row[1] == FOLD_VERSION else (0, new())
        except ValueError:
            seq, state = 0, new()  # it is only a cache; `tenuto verify` names it
        for event in self.events(run, seq):
            try:
                apply_event(state, event)
            except KeyError as missing:
                from tenuto.stores.faults import unknown_event

                raise unknown_event(run, event, missing) from None
        return state if state["version"] else None

    def version(self, run: str) -> int:
        return int(self._value("SELECT seq FROM run WHERE id=?", run, 0))

    def events(self, run: str, after: int = 0) -> Iterator[Json]:
        rows = self._db.execute("SELECT seq, body FROM event WHERE run=? AND seq>? ORDER BY seq", (run, after))
        for seq, body in rows:
            try:
                event = loads(body)
            except ValueError:
                message = f"event {seq} of run {run} in {self._path} is not readable"
                raise Damaged("event-damaged", message, "tenuto verify") from None
            yield upgrade(event, run)

    def has_key(self, run: str, key: str) -> bool:
        return self._db.execute("SELECT 1 FROM event WHERE run=? AND key=?", (run, key)).fetchone() is not None

    def runs(self, *, dialect: str = "", limit: int = -1) -> list[Json]:
        query = "SELECT card FROM run WHERE id<>'@' AND instr(dialects, ?) ORDER BY created DESC, id LIMIT ?"
        shown_in = f",{dialect}," if dialect else ","  # which stands in all of them
        cards = self._db.execute(query, (shown_in, limit))
        return loads(f"[{','.join(card for (card,) in cards)}]")  # type: ignore[no-any-return]

    def open_runs(self) -> list[tuple[str, str]]:
        """(id, work tree) of every run that has not ended."""
        return list(self._db.execute("SELECT id, open_in FROM run WHERE open_in IS NOT NULL"))

    def renders(self, path: str, limit: int = _KEEP_BODIES) -> list[Render]:
        """Newest first. Those before the last few have no body any more."""
        query = "SELECT sha256, body, run, seq FROM render WHERE path=? ORDER BY n DESC LIMIT ?"
        return list(self._db.execute(query, (path, limit)))

    def render_of(self, sha: str) -> tuple[str, Render] | None:
        """Any render we ever made, by its hash."""
        query = "SELECT path, sha256, body, run, seq FROM render WHERE sha256=? ORDER BY body IS NULL LIMIT 1"
        row = self._db.execute(query, (sha,)).fetchone()
        return (row[0], (row[1], row[2], row[3], row[4])) if row else None

    def projected(self) -> list[tuple[str, str, str]]:
        """(path, run, hash) of the newest render of every projected file."""
        return list(self._db.execute(
            "SELECT path, run, sha256 FROM render r WHERE n=(SELECT max(n) FROM render WHERE path=r.path) ORDER BY path"
        ))  # fmt: skip

    def log_length(self, path: str) -> int:
        return int(self._value("SELECT length FROM logged WHERE path=?", path, 0))

    def logs(self) -> list[tuple[str, int]]:
        """Every append-only file, and how long it should be."""
        return self._db.execute("SELECT path, length FROM logged ORDER BY path").fetchall()  # type: ignore[no-any-return]

    def log_text(self, path: str) -> Iterator[bytes]:
        return (body for (body,) in self._db.execute("SELECT body FROM log WHERE path=? ORDER BY pos", (path,)))

    def log_end(self, path: str) -> bytes:
        """What was appended last."""
        return bytes(self._value("SELECT body FROM log WHERE path=? ORDER BY pos DESC LIMIT 1", path, b""))

    def blob(self, sha: str) -> bytes | None:
        return self._value("SELECT body FROM blob WHERE sha256=?", sha, None)  # type: ignore[no-any-return]

    def note(self, name: str) -> str | None:
        return self._value("SELECT value FROM note WHERE name=?", name, None)  # type: ignore[no-any-return]

    def _value(self, query: str, key: str, otherwise: Any) -> Any:
        row = self._db.execute(query, (key,)).fetchone()
        return row[0] if row else otherwise

    def search(self, words: str, limit: int) -> list[Json]:
        from tenuto.stores.passages import search

        return search(self._db, words, limit)


class SqliteTransaction(SqliteReader):
    """The one writer of this moment."""

    patience = _PATIENCE

    def append(self, run: str, expected: int, events: list[Any], state: Any) -> None:
        """Events become seq expected+1 and on. `state` is the run with them folded in."""
        row = self._db.execute("SELECT seq, chain, tail, kept, open_in FROM run WHERE id=?", (run,)).fetchone()
        seq, chain, tail, kept, was_open_in = row or (0, _EMPTY_CHAIN, 0, 0, None)
        if seq != expected:
            raise Conflict("stale-version", f"run {run} is at {seq}, not at {expected}", "read it again", found=seq)
        rows = []
        for event in events:
            body = dumps(event)
            digest = sha256(body.encode()).digest()
            chain = sha256(chain + digest).digest()
            seq += 1
            tail += len(body)
            rows.append((run, seq, event.get("key"), body, digest, chain))
        try:
            self._db.executemany("INSERT INTO event VALUES(?,?,?,?,?,?,NULL)", rows)
        except IntegrityError:
            keys = ", ".join(repr(row[2]) for row in rows if row[2] is not None)
            raise Conflict("duplicate-key", f"run {run} has an event with one of these keys already: {keys}") from None
        if tail >= kept * self.patience:
            text = dumps(state)
            self._db.execute("INSERT OR REPLACE INTO state VALUES(?,?,?,?)", (run, seq, FOLD_VERSION, text))
            tail, kept = 0, len(text)
        if row is None:
            self._db.execute("INSERT INTO run(id, created) VALUES(?,?)", (run, state.get("created_at", "")))
        shown = card(state)
        self._db.execute(
            "UPDATE run SET seq=?, chain=?, tail=?, kept=?, dialects=?, card=? WHERE id=?",
            (seq, chain, tail, kept, f",{','.join(state.get('dialects', ()))},", dumps(shown), run),
        )
        if shown.get("open_in") != was_open_in:
            self._db.execute("UPDATE run SET open_in=? WHERE id=?", (shown.get("open_in"), run))

    def remember(self, path: str, render: Render) -> None:
        sha, body, run, seq = render
        n = self._value("SELECT n FROM render WHERE path=? ORDER BY n DESC LIMIT 1", path, 0) + 1
        self._db.execute("INSERT INTO render VALUES(?,?,?,?,?,?)", (path, n, run, seq, sha, body))
        self._db.execute("UPDATE render SET body=NULL WHERE path=? AND n=?", (path, n - _KEEP_BODIES))

    def append_log(self, path: str, text: bytes) -> None:
        length = self.log_length(path)
        self._db.execute("INSERT INTO log VALUES(?,?,?)", (path, length, text))
        self._db.execute("INSERT OR REPLACE INTO logged VALUES(?,?)", (path, length + len(text)))

    def reset_log(self, path: str, text: bytes) -> None:
        """The file is somebody else's text now; what follows is appended to that."""
        self._db.execute("DELETE FROM log WHERE path=?", (path,))
        self._db.execute("DELETE FROM logged WHERE path=?", (path,))
        self.append_log(path, text)

    def put_blob(self, sha: str, body: bytes) -> None:
        self._db.execute("INSERT OR IGNORE INTO blob VALUES(?,?)", (sha, body))

    def put_note(self, name: str, value: str | None) -> None:
        if value is None:
            self._db.execute("DELETE FROM note WHERE name=?", (name,))
        else:
            self._db.execute("INSERT OR REPLACE INTO note VALUES(?,?)", (name, value))

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
        from tenuto.stores.passages import replace

        replace(self._db, run, source, path, passages)


class Reading:
    """`with journal.read() as reader:` a snapshot."""

    def __init__(self, journal: SqliteJournal) -> None:
        self._journal = journal

    def __enter__(self) -> SqliteReader:
        self._db = self._journal.connection()
        self._db.execute("BEGIN")
        return SqliteReader(self._db, self._journal.path)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._journal.rollback(error)
