"""The journal in SQLite: WAL, synchronous=FULL, one writer at a time.

Rule 1: one flock, on a file that is never unlinked, covers transaction, checkpoint and projection. It queues writers;
SQLite's own busy handler only backs it up. SQLite checkpoints by itself, as a part of a commit, when the log has 200
frames: only the holder of the lock commits, so only the holder checkpoints, which SQLite before 3.51.3 needs (a WAL
reset at the wrong moment could corrupt).

Rule 2: an answer means that it is durable. A turn flushes under the lock, before it shows anything in files; `write()`
shows nothing, lets the next writer in, and then flushes (journal.py).

Rule 3: a reader takes no lock: WAL gives it a snapshot.

Rule 4: an error of SQLite leaves this folder as one of ours (faults.py).

Rule 5: only a commit makes a journal. Where there is none, a reader reads an empty one in memory, and a writer works on
a draft in memory. Its lock is a file beside the folder, which it removes; who waited for that file sees that it is gone
and looks again. The commit makes the journal, takes its lock and copies the draft into it. A command that failed, or
only looked, leaves nothing.

A process on the hot path ends with os._exit: closing the last connection would checkpoint.
"""

from __future__ import annotations

import fcntl
import posix as os
from _thread import RLock

from tenuto.errors import Conflict, Refused
from tenuto.stores.database import (
    MOVED_VERSION,
    DatabaseError,
    OperationalError,
    check_version,
    connect,
    make_folder,
    migrate,
)
from tenuto.stores.journal import MOVED, Writing, put_marker, stand_in_line, wait_for
from tenuto.stores.tables import PATIENCE, Known, TableReader, TableTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn, TypeVar

    from tenuto.core.records.run import Json, Run
    from tenuto.ports import Check
    from tenuto.stores.database import Connection

    Result = TypeVar("Result")


_BUSY_SECONDS = 30.0
_FRAMES = 200  # of the log, then it is written over: a flush of blocks that are there already takes half the time
_FRAME = 4096 + 24
_LARGEST_LOG = 8 << 20
_sync = getattr(os, "fdatasync", os.fsync)


class SqliteJournal:
    """One journal file and its lock. Cheap to make; the database is opened at the first use."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.location = directory + "/journal.db"
        self.home = ""
        self.longest_wait: float | None = None
        self._connection: Connection | None = None
        self._connected = 0  # how often; every connection counts what others commit from the same number on
        self._commits = 0  # of this journal itself
        self._was_used = False  # a second block on one connection: the journal may have been moved away since
        self._lock_fd = self._queue_fd = self._log_fd = -1
        self._mutex = RLock()
        self._writing = False
        self._durable = True
        self._patience = PATIENCE
        self._known = Known()
        self._known_at: int | None = None
        self._draft_fd = -1  # the lock of a writer that may make the journal
        self._draft: Connection | None = None  # what it has written so far

    def exists(self) -> bool:
        return _is_there(self.location)

    def is_lost(self) -> bool:
        """Was there one? Its log, or its lock, lies there still."""
        return _is_there(self.location + "-wal") or _is_there(self.directory + "/lock")

    def files(self) -> list[str]:
        beside = (f"{self.directory}/{name}" for name in ("lock", "queue"))
        return [self.location, self.location + "-wal", self.location + "-shm", *beside]

    def logins(self) -> list[str]:
        return []

    def write(self) -> Writing:
        return Writing(self)

    def read(self) -> Reading:
        return Reading(self)

    def close(self) -> None:
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            for file in (self._lock_fd, self._queue_fd, self._log_fd, self._draft_fd):
                if file >= 0:
                    os.close(file)
            self._lock_fd = self._queue_fd = self._log_fd = self._draft_fd = -1

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        """A program lets go of a workspace, and of its files with it: also of one that was only half made, and when
        the interpreter ends and has taken its modules apart. A failure cannot be reported here.
        """
        try:
            self._let_go(close)
        except BaseException:  # noqa: BLE001, S110  # Python would print it
            pass

    def _let_go(self, close: Callable[[int], None]) -> None:
        for name in ("_lock_fd", "_queue_fd", "_log_fd", "_draft_fd"):
            file = getattr(self, name, -1)
            if file >= 0:
                close(file)
        # A connection and its cache of statements refer to each other: it would stay open until the next collection.
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def lock(self) -> None:
        self._mutex.acquire()
        if self._writing:
            self._mutex.release()
            raise Conflict("nested-write", "a write began inside a write of the same process")
        try:
            if self._queue_fd < 0 and (self.exists() or self.is_lost() or not self._lock_draft()):
                self._open_locks()
            if self._queue_fd >= 0:
                self._stand_in_line()
        except BaseException:
            self._mutex.release()
            raise
        self._writing = True

    def _open_locks(self) -> None:
        self._lock_fd, self._queue_fd = self._open("/lock"), self._open("/queue")

    def _lock_draft(self) -> bool:
        """Among those who find no journal, one at a time. False where another made one meanwhile, or where no lock can
        be had this way: then the journal is made at once, as its folder allows.
        """
        while self._draft_fd < 0:
            try:
                file = os.open(self._draft_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError:
                return False
            try:
                wait_for(file, self.longest_wait, self.location)
            except BaseException:
                os.close(file)
                raise
            if os.fstat(file).st_nlink:
                self._draft_fd = file
            else:  # removed by the one before
                os.close(file)
        if not self.exists():
            return True
        self._unlock_draft()
        return False

    @property
    def _draft_lock(self) -> str:
        return self.directory + ".new"

    def _unlock_draft(self) -> None:
        self._draft = None
        if self._draft_fd >= 0:
            os.unlink(self._draft_lock)
            os.close(self._draft_fd)
            self._draft_fd = -1

    def _begin_draft(self) -> TableTransaction:
        self._draft = connect(":memory:", _BUSY_SECONDS)
        migrate(self._draft)
        self._draft.execute("BEGIN IMMEDIATE")
        return TableTransaction(self._draft, self.location, Known())

    def _commit_draft(self, draft: Connection) -> None:
        """The journal that the draft becomes: all of it or nothing, and durable."""
        draft.execute("COMMIT")
        self._draft = None
        connection = self.connection()
        try:
            draft.backup(connection)
        except DatabaseError as error:
            self._raise(error)
        self._commits += 1

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.directory + name, flags, 0o644)
        except FileNotFoundError:
            make_folder(self.directory)
            return os.open(self.directory + name, flags, 0o644)

    def _stand_in_line(self) -> None:
        stand_in_line(self._lock_fd, self._queue_fd, self.longest_wait, self.location)

    def unlock(self) -> None:
        self._writing = False
        try:
            self._unlock_draft()
        finally:
            if self._lock_fd >= 0:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)
            self._mutex.release()

    def _under_lock(self, call: Callable[[], Result]) -> Result:
        self.lock()
        try:
            return call()
        finally:
            self.unlock()

    def connection(self) -> Connection:
        """The database; made and migrated under the lock when it is new or old."""
        if self._connection is not None:
            return self._connection
        if not self.exists():
            if not self._writing:
                return self._under_lock(self.connection)
            if self._queue_fd < 0:  # it is to be made now
                self._open_locks()
                self._stand_in_line()
            if _is_there(self.location + "-wal"):
                from tenuto.stores.faults import gone

                raise gone(self.location)
            os.ftruncate(self._lock_fd, 0)  # a new journal, which was never written to
        try:
            connection, current = self._opened(self.location)
        except (DatabaseError, UnicodeDecodeError) as error:  # the latter: names in its schema are no text any more
            from tenuto.stores.faults import look_only

            connection, current = look_only(self._opened, self.location, error)
        self._connected += 1
        self._forget()
        if not current:
            try:
                self._bring_up_to_date(connection)
            except BaseException as error:
                connection.close()
                if isinstance(error, DatabaseError):
                    self._raise(error)
                raise
        self._connection = connection
        return connection

    def _opened(self, path: str, uri: bool = False) -> tuple[Connection, bool]:
        connection = connect(path, _BUSY_SECONDS, uri)
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_FRAMES}")
            return connection, check_version(connection, self.location)
        except BaseException:
            connection.close()
            raise

    def _bring_up_to_date(self, connection: Connection) -> None:
        if not self._writing:
            self._under_lock(lambda: self._bring_up_to_date(connection))
            return
        if not check_version(connection, self.location):
            if os.fstat(self._lock_fd).st_size and not connection.execute("PRAGMA user_version").fetchone()[0]:
                from tenuto.stores.faults import emptied

                raise emptied(self.location)
            connection.execute("PRAGMA journal_mode=WAL")
            migrate(connection)
            # SQLite takes an empty file for a new database. The next process shall know that this one was not empty.
            os.pwrite(self._lock_fd, b"1", 0)
            _sync(self._lock_fd)

    def load(self, run: str) -> Run | None:
        with self.read() as reader:
            return reader.load(run)

    def since(self, run: str, version: int) -> tuple[Run | None, list[Json]]:
        with self.read() as reader:
            return reader.load(run), list(reader.events(run, version))

    def written(self) -> tuple[dict[str, str], dict[str, str]]:
        with self.read() as reader:
            return dict.fromkeys((path for path, _ in reader.logs()), ""), {
                key: sha for key, _, sha in reader.projected()
            }

    def begin(self, durable: bool = True, remember: bool = False, lock: bool = False) -> TableTransaction:
        if not lock:
            return self._begin(durable, remember)
        self.lock()
        try:
            return self._begin(durable, remember)
        except BaseException:
            self.unlock()
            raise

    def _begin(self, durable: bool, remember: bool) -> TableTransaction:
        """Under the lock. `durable=False`: the commit survives the process, and the machine only after `flush`.

        `remember`: it knows what such a one before it read and wrote, as long as no other writer came between.
        """
        if self._draft_fd >= 0 and self._queue_fd < 0:
            return self._begin_draft()
        connection = self.connection()
        try:
            if durable != self._durable:
                connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            connection.execute("BEGIN IMMEDIATE")
            if not durable and self._log_fd < 0:
                # Before anything is written to it: the kernel tells of a failure only those who had the file open.
                self._log_fd = os.open(self.location + "-wal", os.O_RDWR | os.O_CLOEXEC)
            self.look_for_move(connection)
            known = self._recall(connection) if remember else self._forget()
        except Refused:
            self._take_back()
            raise
        except DatabaseError as error:
            self._take_back()
            self._raise(error)
        transaction = TableTransaction(connection, self.location, known)
        transaction.patience = self._patience
        return transaction

    def _recall(self, connection: Connection) -> Known:
        """SQLite counts what other connections commit. What this one commits is in there already, or was forgotten."""
        now = _count_of_others(connection)
        if now != self._known_at:
            self._known, self._known_at = Known(), now
        return self._known

    def _forget(self) -> Known:
        self._known_at = None
        return Known()

    def commit(self) -> None:
        """Durable when this returns."""
        if self._draft is not None:
            return self._commit_draft(self._draft)
        connection = self.connection()
        try:
            connection.execute("COMMIT")
        except BaseException as error:
            # A commit that failed (disk full, I/O error) is taken back: answered as failed, it must not appear later.
            self.rollback(error)
            raise
        self._commits += 1
        self._cut_off_if_long(connection)

    def pulse(self) -> str:
        if self._connection is None and not self.exists():
            return ""
        try:
            others = _count_of_others(self.connection())
        except DatabaseError as error:
            self._raise(error)
        return f"{self._connected}.{others}.{self._commits}"

    def look_for_move(self, connection: Connection) -> None:
        """Inside a transaction, which is not the first of this connection: is this still the journal?"""
        if self._was_used:
            check_version(connection, self.location)
        self._was_used = True

    def leave(self, where: str) -> None:
        """Under the lock. The journal is kept elsewhere from now on: nobody opens this one any more."""
        connection = self.connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            put_marker(connection, MOVED, where)
            connection.execute(f"PRAGMA user_version={MOVED_VERSION}")
            connection.execute("COMMIT")
        except DatabaseError as error:
            self._take_back()
            self._raise(error)

    def flush(self) -> None:
        """What was committed without being durable is durable when this returns."""
        if self._log_fd < 0:  # a draft, which is durable with its commit
            return
        try:
            _sync(self._log_fd)
        except OSError as error:
            from tenuto.stores.faults import not_flushed

            raise not_flushed(error, self.location) from error

    def rollback(self, error: BaseException | None = None) -> None:
        """`error`: why. One of SQLite's own is raised again in our words, with what to do about it."""
        self._take_back()
        if isinstance(error, DatabaseError):
            self._raise(error)

    def _take_back(self) -> None:
        self._forget()
        self._draft = None
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _raise(self, error: DatabaseError) -> NoReturn:
        from tenuto.stores.faults import fault

        raise fault(error, self.location) from error

    def _cut_off_if_long(self, connection: Connection) -> None:
        """Under the lock. A log that readers let grow. With a reader in the way, the next writer tries again."""
        try:
            size = os.fstat(self._log_fd).st_size if self._log_fd >= 0 else os.stat(self.location + "-wal").st_size
        except OSError:
            return
        if size >= _LARGEST_LOG:
            connection.execute("PRAGMA busy_timeout=0")
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except OperationalError:
                pass
            connection.execute(f"PRAGMA busy_timeout={int(_BUSY_SECONDS * 1000)}")

    def erase(self) -> None:
        from tenuto.stores.faults import erase

        erase(self.connection(), self.location)

    def health(self, former: str = "") -> Iterator[Check]:
        from tenuto.stores.faults import diagnose

        return diagnose(self, former)

    def hold_open(self, on: bool) -> None:
        """A driver keeps the journal open, and its run in memory. Meanwhile the log has its full length from the first
        turn on, and states are kept less often.
        """
        self.connection()
        try:
            if on:
                self._under_lock(self._lay_out_log)
                if self._log_fd < 0:  # asked for its length after every turn
                    self._log_fd = os.open(self.location + "-wal", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            pass  # no log yet, a full disk: the next write says so, if it matters
        self._patience = PATIENCE * 4 if on else PATIENCE

    def _lay_out_log(self) -> None:
        """Under the lock. Blocks for a log of ordinary length, so that it is written over from the first turn on. A
        frame of zeros is none: a reader of the log stops there.
        """
        file = os.open(self.location + "-wal", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
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

    def __enter__(self) -> TableReader:
        if not self._journal.exists() and not self._journal.is_lost():
            nothing = connect(":memory:", _BUSY_SECONDS)
            migrate(nothing)
            return TableReader(nothing, self._journal.location)
        connection = self._journal.connection()
        try:
            connection.execute("BEGIN")
            self._journal.look_for_move(connection)
        except BaseException as error:
            self._journal.rollback(error)
            raise
        return TableReader(connection, self._journal.location)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._journal.rollback(error)


def _count_of_others(connection: Connection) -> int:
    """SQLite's count of what other connections have committed, as far as this one has seen it."""
    count: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return count


def _is_there(path: str) -> bool:
    try:
        os.stat(path)
    except OSError:
        return False
    return True
