"""What is read from a journal's tables and written to them: the same rows and rules in every database.

When, and how durably, is the business of sqlite.py and postgres.py.

Rule: every database understands what is said here. Where one needs words of its own, it is asked (`Database`).

Rule: the folded run is a cache. It is written when the events since the last one outweigh
it, so its cost per event stays constant however large the run grows.

Rule: nothing is believed because it can be read. A disk that changes a bit changes no page that SQLite would miss: so
events, runs, states and stored files carry their hash, and every reader compares it. A cache that is not what was
written is made anew; anything else is named.
"""

from __future__ import annotations

from tenuto.core.fold import FOLD_VERSION
from tenuto.core.parts import new_repo, new_run
from tenuto.core.upgrade import replay, upgrade_all
from tenuto.encoding import dumps, dumps_all, loads
from tenuto.errors import Conflict
from tenuto.stores.journal import (
    EMPTY_CHAIN,
    KEEP_BODIES,
    KEEP_STATE,
    PUT_BLOB,
    REPO,
    ROW,
    hash_of,
    hashed,
    is_run,
    log_digest,
    put_marker,
    seal,
    summarize,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from typing_extensions import Unpack

    from tenuto.core.records.events import Event, RepoEvent
    from tenuto.core.records.run import Json, Repo, Run
    from tenuto.ports import Finding, Importer, Redacted, Redaction, Render, RunFilter, RunSummary, SearchHit, Stamp
    from tenuto.stores.journal import Database

    State = TypeVar("State", Run, Repo)
    Record = tuple[Any, ...]  # a row as a database gives it: what each column holds is looked at before it is used
    Head = tuple[int, bytes, int, int, str | None, str]  # of a run: seq, chain, tail, kept, open_in, created

PATIENCE = 0.5  # a state is kept again when the events since make up this share of it
_KEEP_LENGTH = (
    "INSERT INTO logged VALUES(?,?,?) ON CONFLICT(path) DO UPDATE SET length=excluded.length, digest=excluded.digest"
)
_AT_ONCE = 200  # events that are decoded together when a run is folded: a third less time for each
_MOST = (1 << 63) - 1  # no database counts further


# What nearly every turn asks. A store that is far away asks several of these at once.
STATE = "SELECT seq, fold, body, digest FROM state WHERE run=?"
EVENTS = "SELECT seq, body, digest, redacted, chain FROM event WHERE run=? AND seq>? ORDER BY seq"
RUN = f"SELECT {ROW}, digest FROM run WHERE id=?"
HEAD = "SELECT seq, chain, tail, kept, open_in, created FROM run WHERE id=?"
RENDERS = "SELECT sha256, body, run, seq FROM render WHERE path=? ORDER BY n DESC LIMIT ?"
NEWEST = "SELECT n, sha256 FROM render WHERE path=? ORDER BY n DESC LIMIT 1"
LOGS = "SELECT path, length FROM logged ORDER BY path"
LOGGED = "SELECT length, digest FROM logged WHERE path=?"
LOG_END = "SELECT body FROM log WHERE path=? ORDER BY pos DESC LIMIT 1"
MARKER = "SELECT value, digest FROM note WHERE name=?"

_LIKE = "LIKE ? ESCAPE '!'"
_CREATED = "(SELECT created FROM run WHERE id=?)"
_AFTER = f"created<={_CREATED} AND (created<{_CREATED} OR id>?)"


def _conditions(which: RunFilter) -> tuple[list[str], list[object]]:
    """What every database can leave out by itself; `_fits` has the last word."""
    conditions, values = ["id<>'@'"], list[object]()
    if which.get("dialect"):
        conditions.append("replace(dialects, ?, '')<>dialects")
        values.append(f",{which['dialect']},")
    if which.get("statuses"):
        conditions.append(f"({' OR '.join([f'card {_LIKE}'] * len(which['statuses']))})")
        values += [f'%"status":"{_plain(status)}"%' for status in which["statuses"]]
    words = which.get("words", "")
    if words and words.isascii() and not set(words) & _ESCAPED and words.isprintable():
        conditions.append(f"lower(card) {_LIKE}")
        values.append(f"%{_plain(words.lower())}%")
    if which.get("after"):
        conditions.append(_AFTER)
        values += [which["after"]] * _AFTER.count("?")
    return conditions, values


_ESCAPED = {'"', "\\"}  # which JSON spells in another way


def _plain(words: str) -> str:
    """As LIKE reads it: none of its own signs."""
    return words.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _fits(summary: RunSummary, which: RunFilter) -> bool:
    words = which.get("words", "").lower()
    texts = (summary["id"], summary["name"], summary["summary"], summary["pipeline"]["name"])
    is_wanted = not which.get("statuses") or summary["status"] in which["statuses"]
    return is_wanted and any(words in text.lower() for text in texts)


def _summaries(rows: list[Record]) -> list[RunSummary]:
    return loads(f"[{','.join([row[5] for row in rows])}]")  # type: ignore[no-any-return]


def _bytes_or_none(render: Render) -> Render:
    """A damaged row may hold a number for a body: then it has none."""
    return render if render[1] is None or type(render[1]) is bytes else (render[0], None, *render[2:])


def _joined(rows: list[Record]) -> str:
    """Many events are decoded at once: a third less time for each."""
    return ",".join([row[1] for row in rows])


class TableReader:
    """Queries. A Reading gives them a snapshot, a Writing the transaction under way."""

    def __init__(self, database: Database, path: str) -> None:
        self._db = database
        self._path = path

    def load(self, run: str) -> Run | None:
        return self._folded(run, new_run)

    def load_repo(self) -> Repo:
        return self._folded(REPO, new_repo) or new_repo()

    def _folded(self, run: str, make: Callable[[], State]) -> State | None:
        try:
            row = self._db.execute(STATE, (run,)).fetchone()
        except UnicodeEncodeError:
            return None  # no run has half a character in its name
        kept = ""  # the state, as it was kept; one of another version is folded anew, a damaged one `verify` names
        if row and row[1] == FOLD_VERSION and hash_of(row[2]) == row[3]:
            kept = row[2]
        state: State | None = None
        last = b""
        for rows in self._rows(run, row[0] if kept else 0, _AT_ONCE):
            last = rows[-1][4]
            if state is None and kept:
                state, *events = loads(f"[{kept},{_joined(rows)}]")
            else:
                state, events = state or make(), loads(f"[{_joined(rows)}]")
            replay(events, run, state)
        if state is None and kept:
            state = loads(kept)
        version = state["version"] if state else 0
        head = self._db.execute(RUN, (run,)).fetchone()
        if head is not None:
            self._check_rows([head])
        if (head[2] if head else 0) != version:
            from tenuto.stores.verify import missing_events

            raise missing_events(run, head and head[2], version, self._path)
        if last and last != head[3]:
            from tenuto.stores.verify import not_as_written

            raise not_as_written(f"event {head[2]} of run {run}", self._path)
        return state if version else None

    def _check_rows(self, rows: Iterable[Record]) -> None:
        for row in rows:
            if type(row[3]) is not bytes or seal(row[:7]) != row[7]:
                from tenuto.stores.verify import not_as_written

                raise not_as_written(f"the record of run {row[0]}", self._path)

    def version(self, run: str) -> int:
        return self._number("SELECT seq FROM run WHERE id=?", run)

    def events(self, run: str, after: int = 0) -> Iterator[Json]:
        for rows in self._rows(run, after, _AT_ONCE):
            yield from upgrade_all(loads(f"[{_joined(rows)}]"), run)

    def _rows(self, run: str, after: int, size: int) -> Iterator[list[Record]]:
        """So many at a time, each as it was written: behind the one before it, which its chain names."""
        cursor = self._db.execute(EVENTS, (run, after))
        before = b"" if after else EMPTY_CHAIN
        while rows := cursor.fetchmany(size):
            for seq, body, digest, redacted, chain in rows:
                found = hash_of(body)
                after += 1
                whole = found == digest or (
                    found and redacted and f'"{found.hex()}"' in redacted and type(digest) is bytes
                )
                if (
                    not whole
                    or seq != after
                    or type(chain) is not bytes
                    or (before and hashed(before + digest) != chain)
                ):
                    from tenuto.stores.verify import not_as_written

                    raise not_as_written(f"event {after} of run {run}", self._path)
                before = chain
            yield rows

    def has_key(self, run: str, key: str) -> bool:
        return self._db.execute("SELECT 1 FROM event WHERE run=? AND key=?", (run, key)).fetchone() is not None

    def runs(self, *, limit: int = -1, **which: Unpack[RunFilter]) -> list[RunSummary]:
        """Newest first; of the same moment, by name: the order of their index."""
        conditions, values = _conditions(which)
        query = f"SELECT {ROW}, digest FROM run WHERE {' AND '.join(conditions)} ORDER BY created DESC, id"
        most = _MOST if limit < 0 else min(limit, _MOST)
        if not which.get("statuses") and not which.get("words"):
            rows = self._db.execute(f"{query} LIMIT ?", (*values, most)).fetchall()
            self._check_rows(rows)
            if len(rows) != limit and not which.get("after"):
                self._check_count()
            return _summaries(rows)
        found: list[RunSummary] = []
        cursor = self._db.execute(query, values)
        while len(found) < most and (rows := cursor.fetchmany(_AT_ONCE)):
            self._check_rows(rows)
            found += [one for one in _summaries(rows) if _fits(one, which)]
        return found[:most]

    def unfinished(self) -> list[RunSummary]:
        """In order here: in the database's order, all runs would be passed over to find those few."""
        rows = self._db.execute(f"SELECT {ROW}, digest FROM run WHERE open_in IS NOT NULL").fetchall()
        self._check_rows(rows)
        rows.sort(key=lambda row: row[0])
        rows.sort(key=lambda row: row[1], reverse=True)
        return _summaries(rows)

    def versions(self) -> dict[str, int]:
        return dict(self._db.execute("SELECT id, seq FROM run WHERE id<>'@'"))

    def _check_count(self) -> None:
        """A damaged page may say that it is empty, or not be found under its key. The index has pages of its own."""
        rows = self._db.execute(f"SELECT {ROW}, digest FROM run ORDER BY id").fetchall()
        self._check_rows(rows)
        if len(rows) != self._db.indexed_runs():
            from tenuto.stores.verify import not_as_written

            raise not_as_written("the list of runs", self._path)

    def open_runs(self) -> list[tuple[str, str]]:
        """(id, work tree) of every run that has not ended."""
        return list(self._db.execute("SELECT id, open_in FROM run WHERE open_in IS NOT NULL"))

    def renders(self, path: str, limit: int = KEEP_BODIES) -> list[Render]:
        """Newest first. Those before the last few have no body any more."""
        return [_bytes_or_none(row) for row in self._db.execute(RENDERS, (path, _MOST if limit < 0 else limit))]

    def render_of(self, sha: str) -> tuple[str, Render] | None:
        """Any render we ever made, by its hash."""
        query = "SELECT path, sha256, body, run, seq FROM render WHERE sha256=? ORDER BY body IS NULL LIMIT 1"
        row = self._db.execute(query, (sha,)).fetchone()
        return (row[0], _bytes_or_none(row[1:])) if row else None

    def projected(self) -> list[tuple[str, str, str]]:
        """(path, run, hash) of the newest render of every projected file."""
        return list(
            self._db.execute(
                "SELECT path, run, sha256 FROM render r"
                " WHERE n=(SELECT max(n) FROM render WHERE path=r.path) ORDER BY path"
            )
        )

    def log_length(self, path: str) -> int:
        return self._number("SELECT length FROM logged WHERE path=?", path)

    def logs(self) -> list[tuple[str, int]]:
        """Every append-only file, and how long it should be."""
        return list(self._db.execute(LOGS))

    def log_text(self, path: str) -> Iterator[bytes]:
        """In parts, as they were appended. Compared with their hash at the end: take all, or nothing."""
        digest, found = self._value("SELECT digest FROM logged WHERE path=?", path), None
        for (body,) in self._db.execute("SELECT body FROM log WHERE path=? ORDER BY pos", (path,)):
            found = log_digest(path, found, body)
            yield body
        if found != digest:
            from tenuto.stores.verify import not_as_written

            raise not_as_written(f"the text of {path}", self._path)

    def log_end(self, path: str) -> bytes:
        """What was appended last."""
        body = self._value(LOG_END, path)
        return body if isinstance(body, bytes) else b""

    def blob(self, sha: str) -> bytes | None:
        body = self._value("SELECT body FROM blob WHERE sha256=?", sha)
        if body is None or (isinstance(body, bytes) and hashed(body).hex() == sha):
            return body
        from tenuto.stores.verify import not_as_written

        raise not_as_written(f"the content {sha}", self._path)

    def large_contents(self) -> list[str]:
        return []

    def large(self, sha: str) -> Iterator[bytes]:
        return iter(())

    def marker(self, name: str) -> str | None:
        row = self._db.execute(MARKER, (name,)).fetchone()
        if row and hash_of(row[0]) != row[1]:
            from tenuto.stores.verify import not_as_written

            raise not_as_written(f"the note {name}", self._path)
        return row[0] if row else None

    def _value(self, query: str, key: str) -> object:
        """The first column of the first row; None where there is no row."""
        row = self._db.execute(query, (key,)).fetchone()
        return row[0] if row else None

    def _number(self, query: str, key: str) -> int:
        """The same for a number; 0 where there is no row."""
        value = self._value(query, key)
        return 0 if value is None else self._checked_number(value, key)

    def _checked_number(self, value: object, key: str) -> int:
        if isinstance(value, int):
            return value
        from tenuto.stores.verify import not_as_written

        raise not_as_written(f"a number about {key}", self._path)

    def search(self, words: str, limit: int) -> list[SearchHit]:
        return self._db.passages.search(self._db, words, limit)

    # -- checking and copying: rare, and loaded then

    def names(self) -> list[str]:
        from tenuto.stores.verify import run_names

        return run_names(self._db)

    def verify_store(self) -> Iterator[Finding]:
        return self._db.own_check()

    def verify_run(self, run: str) -> Iterator[Finding]:
        from tenuto.stores.verify import verify_run

        return verify_run(self._db, run)

    def verify_contents(self) -> Iterator[Finding]:
        from tenuto.stores.verify import verify_contents

        return verify_contents(self._db)

    def records(self, run: str | None = None) -> Iterator[Json]:
        from tenuto.stores.backup import records

        return records(self._db, run)

    def stored_by(self, runs: list[str]) -> list[str]:
        from tenuto.stores.backup import stored_by

        return stored_by(self._db, runs)


class Known:
    """What stands in the tables, as the transactions of one driver read it or wrote it."""

    __slots__ = ("heads", "logs", "markers")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.heads: dict[str, Head] = {}
        self.markers: dict[str, str | None] = {}
        self.logs: list[tuple[str, int]] | None = None


class TableTransaction(TableReader):
    """The one writer of this moment."""

    patience = PATIENCE

    def __init__(self, database: Database, path: str, known: Known) -> None:
        super().__init__(database, path)
        self._known = known

    def version(self, run: str) -> int:
        row = self._head(run)
        return row[0] if row else 0

    def _head(self, run: str) -> Head | None:
        head = self._known.heads.get(run)
        if head is None:
            head = self._db.execute(HEAD, (run,)).fetchone()
            if head is not None:
                self._known.heads[run] = head
        return head

    def marker(self, name: str) -> str | None:
        if name not in self._known.markers:
            self._known.markers[name] = super().marker(name)
        return self._known.markers[name]

    def logs(self) -> list[tuple[str, int]]:
        if self._known.logs is None:
            self._known.logs = super().logs()
        return self._known.logs

    def append(self, run: str, expected: int, events: Sequence[Event] | Sequence[RepoEvent], state: Run | Repo) -> None:
        """Events become seq expected+1 and on. `state` is the run with them folded in."""
        row = self._head(run)
        seq, chain, tail, kept, was_open_in, created = row or (
            *(0, EMPTY_CHAIN, 0, 0, None),
            state["created_at"] if is_run(state) else "",
        )
        if seq != expected:
            raise Conflict("stale-version", f"run {run} is at {seq}, not at {expected}", "read it again", found=seq)
        plain, named = [], []
        shown = summarize(state) if is_run(state) else None
        *bodies, summary = dumps_all([*events, shown or {}])
        for event, body in zip(events, bodies, strict=True):
            digest = hashed(body.encode())
            chain = hashed(chain + digest)
            seq += 1
            tail += len(body)
            # For bytes and for None, SQLite's module first looks for an adapter, which takes as long as writing them.
            record = (run, seq, body, bytearray(digest), bytearray(chain))
            if event.get("key") is None:
                plain.append(record)
            else:
                named.append((*record, event["key"]))
        if plain:
            self._db.executemany("INSERT INTO event(run, seq, body, digest, chain) VALUES(?,?,?,?,?)", plain)
        if named:
            self._append_named(run, named)
        if tail >= kept * self.patience:
            text = dumps(state)
            kept_as = (run, seq, FOLD_VERSION, text, hashed(text.encode()))
            self._db.execute(KEEP_STATE, kept_as)
            tail, kept = 0, len(text)
        if row is None:
            self._db.execute("INSERT INTO run(id, created) VALUES(?,?)", (run, created))
        dialects = f",{','.join(shown['dialects'] if shown else ())},"  # a list is asked for by these
        open_in = shown["open_in"] if shown else None
        sealed = seal((run, created, seq, chain, dialects, summary, open_in))
        self._db.execute(
            "UPDATE run SET seq=?, chain=?, tail=?, kept=?, dialects=?, card=?, digest=? WHERE id=?",
            (seq, bytearray(chain), tail, kept, dialects, summary, bytearray(sealed), run),
        )
        if open_in != was_open_in:
            self._db.execute("UPDATE run SET open_in=? WHERE id=?", (open_in, run))
        self._known.heads[run] = (seq, chain, tail, kept, open_in, created)

    def _append_named(self, run: str, rows: list[Record]) -> None:
        try:
            self._db.executemany("INSERT INTO event(run, seq, body, digest, chain, key) VALUES(?,?,?,?,?,?)", rows)
        except self._db.Duplicate:
            keys = ", ".join(repr(row[5]) for row in rows)
            raise Conflict("duplicate-key", f"run {run} has an event with one of these keys already: {keys}") from None

    def remember(self, path: str, render: Render) -> bool:
        sha, body, run, seq = render
        newest = self._db.execute(NEWEST, (path,)).fetchone()
        if newest and newest[1] == sha:
            return False
        n = self._checked_number(newest[0], path) + 1 if newest else 1
        self._db.execute("INSERT INTO render VALUES(?,?,?,?,?,?)", (path, n, run, seq, sha, body))
        self._db.execute("UPDATE render SET body=NULL WHERE path=? AND n=?", (path, n - KEEP_BODIES))
        return True

    def append_log(self, path: str, text: bytes) -> int:
        length, digest = self._db.execute(LOGGED, (path,)).fetchone() or (0, None)
        self._db.execute("INSERT INTO log VALUES(?,?,?)", (path, length, text))
        logged = (path, length + len(text), log_digest(path, digest, text))
        self._known.logs = None
        self._db.execute(_KEEP_LENGTH, logged)
        return logged[1]

    def reset_log(self, path: str, text: bytes) -> None:
        """The file is somebody else's text now; what follows is appended to that."""
        self._db.execute("DELETE FROM log WHERE path=?", (path,))
        self._db.execute("DELETE FROM logged WHERE path=?", (path,))
        self.append_log(path, text)

    def put_blob(self, sha: str, body: bytes) -> None:
        self._db.execute(PUT_BLOB, (sha, body))

    def put_marker(self, name: str, value: str | None) -> None:
        if value is None:
            self._db.execute("DELETE FROM note WHERE name=?", (name,))
        else:
            put_marker(self._db, name, value)
        self._known.markers[name] = value

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
        self._db.passages.replace(self._db, run, source, path, passages)

    # -- mending, reading a backup back, taking texts out: rare, and loaded then

    def rebuild(self, run: str) -> None:
        from tenuto.stores.verify import rebuild

        rebuild(self._db, run)
        self._known.forget()

    def rebuild_index(self) -> None:
        self._db.passages.rebuild_index(self._db)

    def importing(self) -> Importer:
        from tenuto.stores.backup import Import

        self._known.forget()
        return Import(self._db)

    def scrub_event(self, run: str, seq: int, stamp: Stamp) -> tuple[list[str], str | None]:
        from tenuto.stores.redact import scrub_event

        self._known.forget()
        return scrub_event(self._db, run, seq, stamp)

    def redact(self, redaction: Redaction, stamp: Stamp) -> Redacted:
        from tenuto.stores.redact import redact

        self._known.forget()
        return redact(self._db, redaction, stamp)
