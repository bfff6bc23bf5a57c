"""The journal of a project in PostgreSQL: a schema of its own, one writer at a time, for any number of machines.

Rule 1: the project's lock is taken by the first message of a turn and let go with its COMMIT, whatever becomes of the
process. Beside it, a lock file queues the writers of this checkout, until its files are shown.

Rule 2: who stands still inside a turn is cut off by the server after 15 seconds, and the next one goes on. What it had
done was not committed, and is answered as such.

Rule 3: an answer means that it is durable: a COMMIT returns when it is flushed. Where the connection breaks under a
COMMIT, the next holder of the project's lock looks whether that turn left its mark: then nobody else can be at work on
it any more. Where nobody can say, the answer is "perhaps", and says so. (The number of a transaction would not do: a
server that crashed may give it to another one.)

Rule 4: a reader takes no lock: it reads one snapshot.

Rule 5: only a commit makes a journal: a schema without one counts as none.
"""

from __future__ import annotations

import fcntl
import os
from _thread import RLock
from time import monotonic, sleep
from typing import TYPE_CHECKING

import psycopg

from tenuto.errors import Conflict, TenutoError
from tenuto.stores.journal import MOVED, Writing, home_of, stand_in_line
from tenuto.stores.postgres.address import connection_words, logins, shown
from tenuto.stores.postgres.faults import cut_off, fault, moved, unknown_outcome, unreachable
from tenuto.stores.postgres.link import Link
from tenuto.stores.postgres.schema import CONTENT, FIND_VERSION, TURNS_KEPT, check_version, project_named
from tenuto.stores.postgres.turns import Memory, PostgresReader, PostgresTransaction
from tenuto.stores.tables import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

    from tenuto.core.records.run import Json, Run
    from tenuto.ports import Check
    from tenuto.stores.database import Fetched
    from tenuto.stores.postgres.link import Row

_STILL_SECONDS = 15  # then whoever stands still inside a turn is cut off
_JUDGE_SECONDS = 60.0  # a server that restarts is waited for that long to judge a COMMIT
_LOOK_AGAIN = 0.1
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Where the server would answer before it has flushed, this transaction asks for more.
_DURABLE = "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit')='off'"
_BEGIN = f"SELECT ({FIND_VERSION}), commits, (SELECT value FROM note WHERE name='{MOVED}') FROM head"
_COMMIT = (
    "WITH counted AS (UPDATE head SET commits=commits+1 RETURNING commits)"
    f" INSERT INTO turn(slot, n, token) SELECT mod(commits, {TURNS_KEPT}), commits, '%s' FROM counted"
    " ON CONFLICT(slot) DO UPDATE SET n=excluded.n, token=excluded.token"
)


class PostgresJournal:
    def __init__(self, directory: str, address: str, project: str) -> None:
        self.directory = directory
        self.address = address
        self.project = project_named(project)
        self.location = f"{shown(address)} project {project}"
        self.home = home_of(directory)
        self.longest_wait: float | None = None
        self._link: Link | None = None
        self._mutex = RLock()
        self._writing = False
        self._token = ""  # the mark of the turn under way
        self._lock_file = self._queue_file = -1
        self._memory = Memory()
        self._memory_at: int | None = None  # how many commits there were when it was true
        self._commits = 0
        self._patience = PATIENCE

    # -- the connection

    def link(self) -> Link:
        """The connection; a new one where the last one broke."""
        if self._link is not None and not self._link.is_open:
            self._drop()
        if self._link is None:
            self._link = Link(self._connected(), self.location)
        return self._link

    def _connected(self) -> psycopg.Connection[Row]:
        try:
            return psycopg.connect(connection_words(self.address), autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            raise unreachable(error, self.location) from error

    def _drop(self) -> None:
        self._forget()
        if self._link is not None:
            self._link.close()
            self._link = None

    def first(self, statements: list[str]) -> list[Fetched]:
        """A first message: on a connection that the server closed meanwhile, it is sent once more."""
        link = self.link()
        known = link.trips > 0
        try:
            return link.send(statements)
        except TenutoError:
            if not known or link.is_open:
                raise
        self._drop()
        return self.link().send(statements)

    def close(self) -> None:
        with self._mutex:
            self._drop()
            for file in (self._lock_file, self._queue_file):
                if file >= 0:
                    os.close(file)
            self._lock_file = self._queue_file = -1

    def __del__(self) -> None:
        try:
            self.close()
        except BaseException:  # noqa: BLE001, S110  # it was only half made, or the interpreter ends
            pass

    # -- looking

    def exists(self) -> bool:
        return self._count() > 0

    def _count(self) -> int:
        schema = self.project.schema
        (((version, commits),),) = self.first(
            [f'SELECT (SELECT version FROM "{schema}".part WHERE name=\'journal\'), commits FROM "{schema}".head']
        )
        check_version(version or 0, self.location)
        return int(commits)

    def pulse(self) -> str:
        commits = self._count()
        return str(commits) if commits else ""

    def await_pulse(self, former: str, seconds: float) -> str:
        """The next pulse, as soon as it changes, or the same one when the time is over.

        The server announces each commit; what it did not announce is seen by looking again.
        """
        until = monotonic() + seconds
        try:
            with self._connected() as listener:
                listener.execute(f'LISTEN "{self.project.channel}"'.encode())
                while (pulse := self.pulse()) == former and (left := until - monotonic()) > 0:
                    for _ in listener.notifies(timeout=min(left, 1.0), stop_after=1):
                        pass
        except psycopg.Error as error:
            raise fault(error, self.location) from error
        return pulse

    def read(self) -> Reading:
        return Reading(self)

    def write(self) -> Writing:
        return Writing(self)

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

    def opening(self, kind: str) -> list[str]:
        """The statements that every block begins with."""
        return [kind, f'SET LOCAL search_path TO "{self.project.schema}", pg_catalog']

    # -- the lock of this checkout

    def lock(self) -> None:
        self._mutex.acquire()
        if self._writing:
            self._mutex.release()
            raise Conflict("nested-write", "a write began inside a write of the same process")
        try:
            if self._lock_file < 0:
                self._lock_file, self._queue_file = self._open("/lock"), self._open("/queue")
            stand_in_line(self._lock_file, self._queue_file, self.longest_wait, self.location)
        except BaseException:
            self._mutex.release()
            raise
        self._writing = True

    def _open(self, name: str) -> int:
        os.makedirs(self.directory, exist_ok=True)
        return os.open(self.directory + name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def unlock(self) -> None:
        self._writing = False
        if self._lock_file >= 0:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)
        self._mutex.release()

    # -- a turn

    def begin(self, durable: bool = True, remember: bool = False, lock: bool = False) -> PostgresTransaction:
        if not lock:
            return self._begin(remember)
        self.lock()
        try:
            return self._begin(remember)
        except BaseException:
            self.unlock()
            raise

    def _begin(self, remember: bool, even_moved: bool = False) -> PostgresTransaction:
        """One message: the project's lock, then the first look. `remember`: as long as nobody else has committed."""
        patience = 0 if self.longest_wait is None else int(self.longest_wait * 1000)
        statements = [
            *self.opening("BEGIN"),
            f"SET LOCAL idle_in_transaction_session_timeout='{_STILL_SECONDS}s'",
            f"SET LOCAL lock_timeout={patience}",
            f"SELECT pg_advisory_xact_lock({self.project.lock})",
            _DURABLE,
            _BEGIN,
        ]
        look = PostgresTransaction.first_look(self.link())
        try:
            answers = self.first([*statements, *look])
            ((version, commits, elsewhere),) = answers[len(statements) - 1]
            check_version(version or 0, self.location)
            if elsewhere is not None and not even_moved:
                raise moved(self.location, elsewhere)
        except BaseException:
            self._take_back()
            raise
        if not remember or self._memory_at != commits:
            self._memory = Memory()
        self._memory_at, self._commits = commits if remember else None, commits
        self._token = os.urandom(12).hex()
        link = self.link()
        link.drop_known()
        transaction = PostgresTransaction(link, self.location, self._memory, self.directory)
        transaction.patience = self._patience
        transaction.look(answers[len(statements) :])
        return transaction

    def begin_although_moved(self) -> PostgresTransaction:
        """For a move that is on its way, or was cut off."""
        return self._begin(False, even_moved=True)

    def clear(self) -> None:
        """Inside a transaction, by the owner of the tables: nothing is left in them."""
        self.link().send([f"TRUNCATE {', '.join(CONTENT)}"])

    def commit(self) -> None:
        """Durable when this returns."""
        link = self._link
        if link is None or not link.is_open:
            raise cut_off(self.location, "it was idle inside a turn")
        statements = [_COMMIT % self._token, f'NOTIFY "{self.project.channel}"', "COMMIT"]
        try:
            link.send(statements)
            if link.status != "COMMIT":
                raise cut_off(self.location, f"the server answered {link.status}")
        except BaseException as error:
            if not link.is_open and self._was_committed(error):
                return
            self.rollback(error)
            raise
        link.forget()
        if self._memory_at is not None:
            self._memory_at += 1

    def _was_committed(self, error: BaseException) -> bool:
        """After a COMMIT that broke. False: it was taken back; where nobody can say, an error does."""
        number, token = self._commits + 1, self._token
        question = [
            *self.opening("BEGIN"),
            f"SET LOCAL lock_timeout='{_STILL_SECONDS * 2}s'",
            f"SELECT pg_advisory_xact_lock({self.project.lock})",
            f"SELECT commits, (SELECT token FROM turn WHERE n={number}) FROM head",
            "ROLLBACK",
        ]
        until = monotonic() + _JUDGE_SECONDS
        while True:
            self._drop()
            try:
                ((commits, found),) = self.link().send(question)[-2]
                break
            except TenutoError as again:
                if monotonic() > until:
                    raise unknown_outcome(self.location, f"it cannot be asked ({again.message})") from error
            sleep(_LOOK_AGAIN)
        if commits >= number and found is None:
            raise unknown_outcome(self.location, f"{commits - number} turns came after it") from error
        return bool(found == token)

    def flush(self) -> None:
        """A commit is durable when it returns."""

    def rollback(self, error: BaseException | None = None) -> None:
        """`error`: why. One of PostgreSQL's own is raised again in our words."""
        self._take_back()
        if isinstance(error, psycopg.Error):
            self._raise(error)

    def _take_back(self) -> None:
        self._forget()
        link = self._link
        if link is None:
            return
        link.forget()
        try:
            if link.is_open:
                link.send(["ROLLBACK"])
        except TenutoError:
            pass
        if not link.is_open:
            self._drop()

    def _forget(self) -> None:
        self._memory, self._memory_at = Memory(), None

    def _raise(self, error: psycopg.Error) -> NoReturn:
        raise fault(error, self.location) from error

    def hold_open(self, on: bool) -> None:
        """A driver keeps its run in memory: states are kept less often."""
        self._patience = PATIENCE * 4 if on else PATIENCE

    # -- looking after it

    def health(self, former: str = "") -> Iterator[Check]:
        from tenuto.stores.postgres.health import diagnose

        return diagnose(self)

    def files(self) -> list[str]:
        return [f"{self.directory}/{name}" for name in ("lock", "queue")]

    def logins(self) -> list[str]:
        return logins(self.address)

    def erase(self) -> None:
        from tenuto.stores.postgres.health import erase

        erase(self.link(), self.project, self.location)


class Reading:
    """`with journal.read() as reader:` a snapshot."""

    def __init__(self, journal: PostgresJournal) -> None:
        self._journal = journal

    def __enter__(self) -> PostgresReader:
        journal = self._journal
        try:
            rows = journal.first([*journal.opening(_READ), FIND_VERSION])[-1]
            check_version(rows[0][0] if rows else 0, journal.location)
        except BaseException:
            journal.rollback()
            raise
        link = journal.link()
        link.drop_known()
        return PostgresReader(link, journal.location)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._journal.rollback(error)
