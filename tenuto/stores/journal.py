"""What every store does in the same way: the block of one writer, the summary of a run, the hashes of logs.

`with journal.write() as transaction:` all of it or nothing, durable when the block has ended. The lock is let go
between commit and flush, so that many writers share one flush: it takes along all that stands in the log by then, and
another writer does not wait for a disk. A writer is answered after its own flush, and that covers everything that it
built upon. What was committed and not flushed yet can be seen by others; a loss of power at that moment takes it back,
and no answer said that it is there.

A turn cannot do this. It shows in files what it committed, and no file may tell of what the journal could still lose.
"""

from __future__ import annotations

import fcntl
import posix
from time import monotonic, sleep

from tenuto.core.status import ENDED, LONGEST_LINE, count_open_ends, waits_in_short
from tenuto.encoding import HASHING
from tenuto.errors import Conflict, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, ClassVar, Protocol, Self, TypeVar

    from typing_extensions import TypeIs

    from tenuto.core.records.run import Repo, Run
    from tenuto.ports import Finding, Journal, Progress, RunSummary, SearchHit, Transaction

    Row = tuple[str, str, int, bytes, str, str, str | None]  # of the table `run`, in the order of ROW

    Record = Any  # a row as a database gives it, or None: what each column holds is looked at before it is used

    class Cursor(Protocol):
        def fetchone(self) -> Record: ...
        def fetchall(self) -> list[Record]: ...
        def fetchmany(self, size: int, /) -> list[Record]: ...
        def __iter__(self) -> Iterator[Record]: ...

    Db_contra = TypeVar("Db_contra", contravariant=True)

    class PassageIndex(Protocol[Db_contra]):
        """The searchable text of one kind of database: a module, which is given the database."""

        def replace(
            self, db: Db_contra, run: str, source: str, path: str, passages: Iterable[tuple[str, str]], /
        ) -> None: ...
        def add(self, db: Db_contra, run: str, source: str, path: str, heading: str, body: str, /) -> None: ...
        def search(self, db: Db_contra, words: str, limit: int, /) -> list[SearchHit]: ...
        def index_is_whole(self, db: Db_contra, /) -> bool: ...
        def rebuild_index(self, db: Db_contra, /) -> None: ...

    class Database(Protocol):
        """A connection to the tables of a journal. Placeholders are `?`; rows are tuples; a hash is bytes."""

        Duplicate: ClassVar[type[Exception]]
        """What it raises where a key is there already."""
        NotStorable: ClassVar[tuple[type[Exception], ...]]
        """What it raises for a value that no column can hold."""
        body_as_bytes: ClassVar[str]
        """Of the text of an event, also where it is no UTF-8 any more."""

        def execute(self, query: str, values: Sequence[object] = (), /) -> Cursor: ...
        def each(self, query: str, values: Sequence[object] = (), /) -> Iterator[Record]:
            """The rows of a long answer, which is never in memory as a whole."""

        def executemany(self, query: str, rows: Sequence[Sequence[object]], /) -> object: ...
        @property
        def passages(self) -> PassageIndex[Self]: ...
        def indexed_runs(self) -> int:
            """How many runs there are, by the pages of their index."""

        def own_check(self) -> Iterator[Finding]:
            """Does the database itself find its data whole?"""


REPO = "@"  # the repository's own stream; no slug can be this
EMPTY_CHAIN = bytes(32)
MOVED = "moved"  # the marker that says where a journal is kept now
KEEP_BODIES = 8  # renders of a file, from the newest on, whose text is kept


_LOOK_AGAIN = 0.02


def wait_for(file: int, longest: float | None, location: str) -> None:
    """The lock of a file. The kernel wakes who waits without a limit; who has one looks again and again."""
    if longest is None:
        fcntl.flock(file, fcntl.LOCK_EX)
        return
    until = monotonic() + longest
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if monotonic() >= until:
                message = f"another program has been writing to {location} for {longest:g} s"
                raise Conflict("journal-busy", message, "tenuto doctor names it", path=location) from None
        sleep(_LOOK_AGAIN)


def stand_in_line(lock: int, queue: int, longest: float | None, location: str) -> None:
    """Who waits holds the queue: a process that just wrote cannot overtake it, however fast it comes again."""
    wait_for(queue, longest, location)
    try:
        wait_for(lock, longest, location)
    finally:
        fcntl.flock(queue, fcntl.LOCK_UN)


class Writing:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __enter__(self) -> Transaction:
        return self._journal.begin(durable=False, lock=True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._journal.commit()
            else:
                self._journal.rollback(error)
        finally:
            self._journal.unlock()
        if kind is None:
            self._journal.flush()


def summarize(run: Run) -> RunSummary:
    ended, spent = run["status"] in ENDED, run["budget"]["spent"]
    return {
        "id": run["id"],
        "name": run["name"],
        "mode": run["mode"],
        "status": run["status"],
        "pipeline": run["pipeline"],
        "created_at": run["created_at"],
        "updated_at": run["updated_at"],
        "graduated_at": run["graduated_at"],
        "position": run["position"],
        "summary": run["summary"],
        "driver": run["driver"],
        "dialects": run["dialects"],
        "open_in": None if ended else _tree_of(run),
        "figures": {
            "attempts": len(run["attempts"]),
            "refuted": run["refuted"],
            "micro_usd": spent.get("micro_usd"),
            "tokens": spent.get("tokens"),
            "busy_ms": run["budget"]["busy_ms"],
        },
        "waits": waits_in_short(run),
        "progress": _progress(run),
        "error": run["failure"]["error"].strip().partition("\n")[0][:LONGEST_LINE] if run["failure"] else "",
        "open_ends": count_open_ends(run),
    }


def _tree_of(run: Run) -> str:
    """As workspace.edits.tree_of has it."""
    shown = next((str(kept.get("tree", "")) for kept in run["dialects"].values()), "")
    return shown or str(run["settings"].get("work_tree", ""))


LATER = ("figures", "waits", "progress", "error", "open_ends")
"""What summaries of earlier versions do not have."""


def _progress(run: Run) -> Progress | None:
    visit = run["current_visit"]
    if visit is None or not visit["wave_of"]:
        return None
    left, waves = visit["left"], len(run["waves"])
    return {
        "wave": visit["wave_of"][left[0]] + 1 if left else waves,
        "waves": waves,
        "items": len(visit["wave_of"]),
        "items_ended": len(visit["wave_of"]) - len(left),
    }


def is_run(state: Run | Repo) -> TypeIs[Run]:
    """The other one is the repository's own stream, which no list shows."""
    return "id" in state


def hashed(data: bytes) -> bytes:
    """SHA-256: of a short text by the part of Python that is there already, of a long one by the fastest there is."""
    return (HASHING.long if len(data) > HASHING.limit else HASHING.short)(data).digest()


def home_of(folder: str) -> str:
    """The checkout that a journal's folder belongs to, as other machines may read it."""
    return f"{posix.uname().nodename}:{folder}"


def object_path(folder: str, sha: str) -> str:
    """Where a large stored file lies beside the journal."""
    return f"{folder}/objects/{sha[:2]}/{sha}"


def log_digest(path: str, before: bytes | None, part: bytes) -> bytes:
    """The hash over the parts of an append-only file, one part on."""
    return hashed((before or path.encode()) + hashed(part))


# ---- hashes that stand beside what they are of, and statements that several modules make


ROW = "id, created, seq, chain, dialects, card, open_in"
PUT_BLOB = "INSERT INTO blob VALUES(?,?) ON CONFLICT DO NOTHING"
KEEP_STATE = (
    "INSERT INTO state VALUES(?,?,?,?,?) ON CONFLICT(run) DO UPDATE"
    " SET seq=excluded.seq, fold=excluded.fold, body=excluded.body, digest=excluded.digest"
)


def hash_of(text: object) -> bytes:
    """Of a text as it was read; empty, which no hash is, where a damaged row holds something else in its place."""
    return hashed(text.encode()) if type(text) is str else b""


def put_marker(db: Database, name: str, value: str) -> None:
    query = (
        "INSERT INTO note VALUES(?,?,?) ON CONFLICT(name) DO UPDATE SET value=excluded.value, digest=excluded.digest"
    )
    db.execute(query, (name, value, hash_of(value)))


def moved(db: Database, path: str) -> Refused:
    """Who opens a journal that is kept elsewhere now."""
    row = db.execute("SELECT value FROM note WHERE name=?", (MOVED,)).fetchone()
    where = row[0] if row else "another place"
    message = f"the journal {path} was moved to {where}, and is neither read nor written here any more"
    return Refused("journal-moved", message, f"tenuto join {where}", path=path)


def seal(row: Row) -> bytes:
    """The hash of a row of `run`, in the order of ROW."""
    name, created, seq, chain, dialects, shown, open_in = row
    return hashed(f"{name}\n{created}\n{seq}\n{dialects}\n{open_in}\n{shown}\n".encode() + chain)


def sign(row: tuple[object, ...]) -> bytes:
    """The hash of a passage: run, source, path, heading, text."""
    return hashed("\n".join(map(str, row)).encode())
