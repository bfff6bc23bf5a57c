"""The journal in SQLite: WAL, synchronous=FULL, one writer at a time.

Rule 1: one flock, on a file that is never unlinked, covers transaction, checkpoint and
projection. It queues writers; SQLite's own busy handler only backs it up. It also keeps
checkpoints (SQLite's own, a part of the commit) away from writers, which SQLite before 3.51.3 needs (a WAL reset could corrupt).

Rule 2: who was answered is durable. A turn flushes under the lock, before it shows anything in files; `write()`
shows nothing, lets the next one in, and then flushes (writing.py).

Rule 3: a reader takes no lock: WAL gives it a snapshot.

A process on the hot path ends with os._exit: closing the last connection would checkpoint.
"""

from __future__ import annotations

import fcntl
import posix as os  # the part of it that is C; all of os costs a hook a fifth of the interpreter's start
from _thread import RLock

from tenuto.errors import Conflict
from tenuto.stores.engine import DatabaseError, OperationalError, connect
from tenuto.stores.schema import check_version, is_there, make_folder, migrate
from tenuto.stores.tables import PATIENCE, SqliteReader, SqliteTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.stores.writing import Writing

_BUSY_SECONDS = 30.0
_FRAMES = 200  # of the log, then it is written over: a flush of blocks that are there already takes half the time
_FRAME = 4096 + 24
_LARGEST_LOG = 8 << 20
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
        self._patience = PATIENCE
        self._known: dict[tuple[str, str], Any] = {}
        self._known_at: int | None = None

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

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        """A library's user lets go of a workspace, and of its files with it: also of one that was only half made, and when the
        interpreter ends and has taken its modules apart. The database closes by itself. Nobody could be told what goes wrong here.
        """
        try:
            self._let_go(close)
        except BaseException:  # noqa: BLE001, S110  # Python would print it, whoever calls
            pass

    def _let_go(self, close: Callable[[int], None]) -> None:
        for name in ("_lock_fd", "_queue_fd", "_log_fd"):
            file = getattr(self, name, -1)
            if file >= 0:
                close(file)

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
            if not is_there(self.path):
                if not self._writing:
                    return self._under_lock(self.connection)
                if is_there(self.path + "-wal"):
                    from tenuto.stores.faults import gone

                    raise gone(self.path)
                os.ftruncate(self._lock_fd, 0)  # a new journal, which nobody has written to yet
            try:
                self._connection, current = self._opened(self.path)
            except (DatabaseError, UnicodeDecodeError) as error:  # the latter: names in its schema are no text any more
                from tenuto.stores.faults import look_only

                self._connection, current = look_only(self._opened, self.path, error)
            self._forget()  # every connection counts what others commit from the same number on
            if not current:
                try:
                    self._bring_up_to_date()
                except BaseException:
                    self._connection.close()
                    self._connection = None
                    raise
        return self._connection

    def _opened(self, path: str, uri: bool = False) -> tuple[Any, bool]:
        connection = connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_FRAMES}")
            return connection, check_version(connection, self.path)
        except BaseException:
            connection.close()
            raise

    def _bring_up_to_date(self) -> None:
        if not self._writing:
            self._under_lock(self._bring_up_to_date)
            return
        if not check_version(self._connection, self.path):
            if os.fstat(self._lock_fd).st_size and not self._connection.execute("PRAGMA user_version").fetchone()[0]:
                from tenuto.stores.faults import emptied

                raise emptied(self.path)
            self._connection.execute("PRAGMA journal_mode=WAL")
            migrate(self._connection)
            # SQLite takes an empty file for a new database. Who comes after us shall know that this one was not empty.
            os.pwrite(self._lock_fd, b"1", 0)
            _sync(self._lock_fd)

    def begin(self, durable: bool = True, remember: bool = False) -> SqliteTransaction:
        """Under the lock. `durable=False`: the commit survives the process, and the machine only after `flush`.

        `remember`: it knows what such a one before it read and wrote, as long as nobody else has written since.
        """
        connection = self.connection()
        try:
            if durable != self._durable:
                connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            connection.execute("BEGIN IMMEDIATE")
            if not durable and self._log_fd < 0:
                # Before anything is written to it: the kernel tells of a failure only those who had the file open.
                self._log_fd = os.open(self.path + "-wal", os.O_RDWR | os.O_CLOEXEC)
            known = self._recall(connection) if remember else self._forget()
        except DatabaseError as error:
            self.rollback(error)
        transaction = SqliteTransaction(connection, self.path, known)
        transaction.patience = self._patience
        return transaction

    def _recall(self, connection: Any) -> dict[tuple[str, str], Any]:
        """SQLite counts what other connections commit. What this one commits is in there already, or was forgotten."""
        now = connection.execute("PRAGMA data_version").fetchone()[0]
        if now != self._known_at:
            self._known, self._known_at = {}, now
        return self._known

    def _forget(self) -> dict[tuple[str, str], Any]:
        self._known_at = None
        return {}

    def commit(self) -> None:
        """Durable when this returns."""
        try:
            self._connection.execute("COMMIT")
        except BaseException as error:
            # A commit that failed (disk full, I/O error) is taken back: answered as failed, it must not appear later.
            self.rollback(error)
            raise
        self._cut_off_if_long()

    def flush(self) -> None:
        """What was committed without being durable is durable when this returns."""
        try:
            _sync(self._log_fd)
        except OSError as error:
            from tenuto.stores.faults import not_flushed

            raise not_flushed(error, self.path) from error

    def rollback(self, error: BaseException | None = None) -> None:
        """`error`: why. One of SQLite's own is raised again in our words, with what to do about it."""
        self._forget()
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if isinstance(error, DatabaseError):
            from tenuto.stores.faults import fault

            raise fault(error, self.path) from error

    def _cut_off_if_long(self) -> None:
        """Under the lock. A log that readers let grow; one that is in the way now is not waited for, the next writer tries again."""
        try:
            size = os.fstat(self._log_fd).st_size if self._log_fd >= 0 else os.stat(self.path + "-wal").st_size
        except OSError:
            return
        if size >= _LARGEST_LOG:
            self._connection.execute("PRAGMA busy_timeout=0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except OperationalError:
                pass
            self._connection.execute(f"PRAGMA busy_timeout={int(_BUSY_SECONDS * 1000)}")

    def hold_open(self, on: bool) -> None:
        """A driver keeps the journal open, and its run in memory. Meanwhile the log is as long as it gets from the first turn on, and
        states are kept less often.
        """
        self.connection()
        try:
            if on:
                self._under_lock(self._lay_out_log)
                if self._log_fd < 0:  # asked for its length after every turn
                    self._log_fd = os.open(self.path + "-wal", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            pass  # no log yet, a full disk: whoever writes next is told, if there is something to tell
        self._patience = PATIENCE * 4 if on else PATIENCE

    def _lay_out_log(self) -> None:
        """Under the lock. Blocks for a log of ordinary length, so that it is written over from the first turn on. A frame of zeros
        is none: whoever reads the log stops there.
        """
        file = os.open(self.path + "-wal", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            missing = (_FRAMES - 1) * _FRAME - os.fstat(file).st_size
            if missing > 0:
                os.write(file, bytes(missing))
                _sync(file)
        finally:
            os.close(file)


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
