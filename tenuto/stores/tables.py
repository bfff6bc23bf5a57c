"""What is read from the journal's tables and written to them; when, and how durably, is sqlite.py's business.

Rule: the folded run is a cache. It is written when the events since the last one outweigh
it, so its cost per event stays constant however large the run grows.

Rule: nothing is believed because it can be read. A disk that changes a bit changes no page that SQLite would miss: so
events, runs, states and stored files carry their hash, and every reader compares it. A cache that is not what was
written is made anew; anything else is named.
"""

from __future__ import annotations

from tenuto.core.fold import FOLD_VERSION, apply, apply_repo, new_repo, new_run
from tenuto.core.upgrade import upgrade
from tenuto.encoding import dumps, loads, sha256
from tenuto.errors import Conflict
from tenuto.stores.cards import card
from tenuto.stores.engine import IntegrityError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tenuto.core.records import Json, Repo, Run
    from tenuto.ports import Render

REPO = "@"  # the repository's own stream; no slug can be this
PATIENCE = 0.5  # a state is kept again when the events since make up this share of it
_KEEP_BODIES = 8
_AT_ONCE = 200  # events that are decoded together when a run is folded: a third less time for each
_MOST = (1 << 63) - 1  # SQLite counts no further
_EMPTY_CHAIN = bytes(32)
_ROW = "id, created, seq, chain, dialects, card, open_in"


def hash_of(text: Any) -> bytes:
    """Of a text as it was read; empty, which no hash is, where a damaged row holds something else in its place."""
    return sha256(text.encode()).digest() if type(text) is str else b""


def _bytes_or_none(render: Any) -> Render:
    """A damaged row may hold a number for a body: then it has none."""
    return render if render[1] is None or type(render[1]) is bytes else (render[0], None, *render[2:])


def put_note(db: Any, name: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO note VALUES(?,?,?)", (name, value, hash_of(value)))


def log_digest(path: str, before: bytes | None, part: bytes) -> bytes:
    """The hash over the parts of an append-only file, one part on."""
    return sha256((before or path.encode()) + sha256(part).digest()).digest()


def seal(row: Any) -> bytes:
    """The hash of a row of `run`, in the order of _ROW."""
    name, created, seq, chain, dialects, shown, open_in = row
    return sha256(f"{name}\n{created}\n{seq}\n{dialects}\n{open_in}\n{shown}\n".encode() + chain).digest()


def row_is_sealed(db: Any, run: str) -> bool:
    row = db.execute(f"SELECT {_ROW}, digest FROM run WHERE id=?", (run,)).fetchone()
    return row is not None and type(row[3]) is bytes and bool(seal(row[:7]) == row[7])


def seal_run(db: Any, run: str) -> None:
    """After a change of the row that did not come with its hash."""
    row = db.execute(f"SELECT {_ROW} FROM run WHERE id=?", (run,)).fetchone()
    db.execute("UPDATE run SET digest=? WHERE id=?", (seal(row), run))


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
        try:
            row = self._db.execute("SELECT seq, fold, body, digest FROM state WHERE run=?", (run,)).fetchone()
        except UnicodeEncodeError:
            return None  # no run has half a character in its name
        seq, state = 0, new()
        if row and row[1] == FOLD_VERSION and hash_of(row[2]) == row[3]:
            seq, state = row[0], loads(row[2])  # else it is only a cache; `tenuto verify` names it
        last = b""
        for rows in self._rows(run, seq, _AT_ONCE):
            last = rows[-1][4]
            for told in loads(f"[{','.join([row[1] for row in rows])}]"):
                event = upgrade(told, run)
                try:
                    apply_event(state, event)
                except KeyError as missing:
                    from tenuto.stores.faults import unknown_event

                    raise unknown_event(run, event, missing) from None
        head = self._db.execute(f"SELECT {_ROW}, digest FROM run WHERE id=?", (run,)).fetchone()
        if head is not None:
            self._check_rows([head])
        if (head[2] if head else 0) != state["version"]:
            from tenuto.stores.faults import missing_events

            raise missing_events(run, head and head[2], state["version"], self._path)
        if last and last != head[3]:
            from tenuto.stores.faults import not_as_written

            raise not_as_written(f"event {head[2]} of run {run}", self._path)
        return state if state["version"] else None

    def _check_rows(self, rows: list[Any]) -> None:
        for row in rows:
            if type(row[3]) is not bytes or seal(row[:7]) != row[7]:
                from tenuto.stores.faults import not_as_written

                raise not_as_written(f"the record of run {row[0]}", self._path)

    def version(self, run: str) -> int:
        return int(self._value("SELECT seq FROM run WHERE id=?", run, 0))

    def events(self, run: str, after: int = 0) -> Iterator[Json]:
        for [row] in self._rows(run, after, 1):
            yield upgrade(loads(row[1]), run)

    def _rows(self, run: str, after: int, size: int) -> Iterator[list[Any]]:
        """So many at a time, each as it was written: behind the one before it, which its chain names (the last of a row)."""
        cursor = self._db.execute(
            "SELECT seq, body, digest, redacted, chain FROM event WHERE run=? AND seq>? ORDER BY seq", (run, after)
        )
        before = b"" if after else _EMPTY_CHAIN
        while rows := cursor.fetchmany(size):
            for seq, body, digest, redacted, chain in rows:
                found = hash_of(body)
                after += 1
                whole = found == digest or (found and redacted and f'"{found.hex()}"' in redacted and type(digest) is bytes)
                if not whole or seq != after or type(chain) is not bytes or (before and sha256(before + digest).digest() != chain):
                    from tenuto.stores.faults import not_as_written

                    raise not_as_written(f"event {after} of run {run}", self._path)
                before = chain
            yield rows

    def has_key(self, run: str, key: str) -> bool:
        return self._db.execute("SELECT 1 FROM event WHERE run=? AND key=?", (run, key)).fetchone() is not None

    def runs(self, *, dialect: str = "", limit: int = -1) -> list[Json]:
        """Newest first; of the same moment, by name: the order of their index."""
        query = f"SELECT {_ROW}, digest FROM run WHERE id<>'@' AND instr(dialects, ?) ORDER BY created DESC, id LIMIT ?"
        shown_in = f",{dialect}," if dialect else ","  # which stands in all of them
        rows = self._db.execute(query, (shown_in, min(limit, _MOST))).fetchall()
        self._check_rows(rows)
        if len(rows) != limit:
            self._check_count()
        return loads(f"[{','.join([row[5] for row in rows])}]")  # type: ignore[no-any-return]

    def _check_count(self) -> None:
        """A damaged page may say that it is empty, or not be found under its key. The index has pages of its own."""
        rows = self._db.execute(f"SELECT {_ROW}, digest FROM run ORDER BY id").fetchall()
        self._check_rows(rows)
        if len(rows) != self._db.execute("SELECT count(digest) FROM run INDEXED BY run_created").fetchone()[0]:
            from tenuto.stores.faults import not_as_written

            raise not_as_written("the list of runs", self._path)

    def open_runs(self) -> list[tuple[str, str]]:
        """(id, work tree) of every run that has not ended."""
        return list(self._db.execute("SELECT id, open_in FROM run WHERE open_in IS NOT NULL"))

    def renders(self, path: str, limit: int = _KEEP_BODIES) -> list[Render]:
        """Newest first. Those before the last few have no body any more."""
        query = "SELECT sha256, body, run, seq FROM render WHERE path=? ORDER BY n DESC LIMIT ?"
        return [_bytes_or_none(row) for row in self._db.execute(query, (path, limit))]

    def render_of(self, sha: str) -> tuple[str, Render] | None:
        """Any render we ever made, by its hash."""
        query = "SELECT path, sha256, body, run, seq FROM render WHERE sha256=? ORDER BY body IS NULL LIMIT 1"
        row = self._db.execute(query, (sha,)).fetchone()
        return (row[0], _bytes_or_none(row[1:])) if row else None

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
        """In parts, as they were appended. Compared with their hash at the end: whoever takes a part takes all."""
        told, found = self._value("SELECT digest FROM logged WHERE path=?", path, None), None
        for (body,) in self._db.execute("SELECT body FROM log WHERE path=? ORDER BY pos", (path,)):
            found = log_digest(path, found, body)
            yield body
        if found != told:
            from tenuto.stores.faults import not_as_written

            raise not_as_written(f"the text of {path}", self._path)

    def log_end(self, path: str) -> bytes:
        """What was appended last."""
        return bytes(self._value("SELECT body FROM log WHERE path=? ORDER BY pos DESC LIMIT 1", path, b""))

    def blob(self, sha: str) -> bytes | None:
        body: bytes | None = self._value("SELECT body FROM blob WHERE sha256=?", sha, None)
        if body is not None and (type(body) is not bytes or sha256(body).hexdigest() != sha):
            from tenuto.stores.faults import not_as_written

            raise not_as_written(f"the content {sha}", self._path)
        return body

    def note(self, name: str) -> str | None:
        row = self._db.execute("SELECT value, digest FROM note WHERE name=?", (name,)).fetchone()
        if row and hash_of(row[0]) != row[1]:
            from tenuto.stores.faults import not_as_written

            raise not_as_written(f"the note {name}", self._path)
        return row[0] if row else None

    def _value(self, query: str, key: str, otherwise: Any) -> Any:
        row = self._db.execute(query, (key,)).fetchone()
        return row[0] if row else otherwise

    def search(self, words: str, limit: int) -> list[Json]:
        from tenuto.stores.passages import search

        return search(self._db, words, limit)


class SqliteTransaction(SqliteReader):
    """The one writer of this moment."""

    patience = PATIENCE

    def __init__(self, connection: Any, path: str, known: dict[tuple[str, str], Any]) -> None:
        super().__init__(connection, path)
        self._known = known  # what stands in the tables, as it was read or written: (kind, name) -> that

    def version(self, run: str) -> int:
        row = self._head(run)
        return row[0] if row else 0

    def _head(self, run: str) -> Any:
        known = self._known.get(("head", run))
        if known is None:
            query = "SELECT seq, chain, tail, kept, open_in, created FROM run WHERE id=?"
            known = self._known["head", run] = self._db.execute(query, (run,)).fetchone()
        return known

    def note(self, name: str) -> str | None:
        if ("note", name) not in self._known:
            self._known["note", name] = super().note(name)
        known: str | None = self._known["note", name]
        return known

    def logs(self) -> list[tuple[str, int]]:
        if ("logs", "") not in self._known:
            self._known["logs", ""] = super().logs()
        known: list[tuple[str, int]] = self._known["logs", ""]
        return known

    def append(self, run: str, expected: int, events: list[Any], state: Any) -> None:
        """Events become seq expected+1 and on. `state` is the run with them folded in."""
        row = self._head(run)
        seq, chain, tail, kept, was_open_in, created = row or (0, _EMPTY_CHAIN, 0, 0, None, state.get("created_at", ""))
        if seq != expected:
            raise Conflict("stale-version", f"run {run} is at {seq}, not at {expected}", "read it again", found=seq)
        plain, named = [], []
        for event in events:
            body = dumps(event)
            digest = sha256(body.encode()).digest()
            chain = sha256(chain + digest).digest()
            seq += 1
            tail += len(body)
            # For bytes and for None, SQLite's module first looks for an adapter, which takes as long as writing them.
            told = (run, seq, body, bytearray(digest), bytearray(chain))
            if event.get("key") is None:
                plain.append(told)
            else:
                named.append((*told, event["key"]))
        if plain:
            self._db.executemany("INSERT INTO event(run, seq, body, digest, chain) VALUES(?,?,?,?,?)", plain)
        if named:
            self._append_named(run, named)
        if tail >= kept * self.patience:
            text = dumps(state)
            kept_as = (run, seq, FOLD_VERSION, text, sha256(text.encode()).digest())
            self._db.execute("INSERT OR REPLACE INTO state VALUES(?,?,?,?,?)", kept_as)
            tail, kept = 0, len(text)
        if row is None:
            self._db.execute("INSERT INTO run(id, created) VALUES(?,?)", (run, created))
        shown = card(state)
        text, dialects, open_in = dumps(shown), f",{','.join(state.get('dialects', ()))},", shown.get("open_in")
        sealed = seal((run, created, seq, chain, dialects, text, open_in))
        self._db.execute(
            "UPDATE run SET seq=?, chain=?, tail=?, kept=?, dialects=?, card=?, digest=? WHERE id=?",
            (seq, bytearray(chain), tail, kept, dialects, text, bytearray(sealed), run),
        )
        if open_in != was_open_in:
            self._db.execute("UPDATE run SET open_in=? WHERE id=?", (open_in, run))
        self._known["head", run] = (seq, chain, tail, kept, open_in, created)

    def _append_named(self, run: str, rows: list[Any]) -> None:
        try:
            self._db.executemany("INSERT INTO event(run, seq, body, digest, chain, key) VALUES(?,?,?,?,?,?)", rows)
        except IntegrityError:
            keys = ", ".join(repr(row[5]) for row in rows)
            raise Conflict("duplicate-key", f"run {run} has an event with one of these keys already: {keys}") from None

    def remember(self, path: str, render: Render) -> None:
        sha, body, run, seq = render
        n = self._value("SELECT n FROM render WHERE path=? ORDER BY n DESC LIMIT 1", path, 0) + 1
        self._db.execute("INSERT INTO render VALUES(?,?,?,?,?,?)", (path, n, run, seq, sha, body))
        self._db.execute("UPDATE render SET body=NULL WHERE path=? AND n=?", (path, n - _KEEP_BODIES))

    def append_log(self, path: str, text: bytes) -> None:
        length, digest = self._db.execute("SELECT length, digest FROM logged WHERE path=?", (path,)).fetchone() or (0, None)
        self._db.execute("INSERT INTO log VALUES(?,?,?)", (path, length, text))
        logged = (path, length + len(text), log_digest(path, digest, text))
        self._known.pop(("logs", ""), None)
        self._db.execute("INSERT OR REPLACE INTO logged VALUES(?,?,?)", logged)

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
            put_note(self._db, name, value)
        self._known["note", name] = value

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
        from tenuto.stores.passages import replace

        replace(self._db, run, source, path, passages)
