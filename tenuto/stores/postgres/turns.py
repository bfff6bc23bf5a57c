"""What a look at the journal and a turn ask of PostgreSQL, in as few messages as there can be.

A turn: one message takes the project's lock and brings the repository's own stream, the append-only files and what is
marked; one brings a run, its newest renders and its marker; one carries all writes with the COMMIT. The questions are
those of stores/tables.py, word for word, so that its reader and writer find the answers as if they had asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.core.fold import FOLD_VERSION
from tenuto.errors import Conflict
from tenuto.stores.journal import KEEP_BODIES, REPO, log_digest
from tenuto.stores.postgres.pieces import large, large_contents, put_large, verify_pieces
from tenuto.stores.tables import (
    EVENTS,
    HEAD,
    LOGGED,
    MARKER,
    NEWEST,
    RUN,
    STATE,
    Known,
    TableReader,
    TableTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenuto.core.records.events import Event, RepoEvent
    from tenuto.core.records.run import Repo, Run
    from tenuto.ports import Finding, Importer, Redacted, Redaction, Render, Stamp
    from tenuto.stores.postgres.link import Link, Rows

    Length = tuple[int, bytes, bytes | None]  # of an append-only file: length, digest, the last part if it is short

_MARKED = ("unproven:",)  # markers of a run that every turn about it asks for
_LARGEST_END = 1 << 16  # the last part of an append-only file that is brought along unasked
_STATE_AT = "coalesce((SELECT seq FROM state WHERE run=? AND fold=?), 0)"
_EVENTS = f"SELECT seq, body, digest, redacted, chain FROM event WHERE run=? AND seq>{_STATE_AT} ORDER BY seq"
_RUN = "SELECT id, created, seq, chain, dialects, card, open_in, digest, tail, kept FROM run WHERE id=?"
_RENDERS = (
    "SELECT p.path, r.n, r.sha256, r.body, r.run, r.seq FROM"
    " (SELECT DISTINCT path FROM render WHERE run=? AND body IS NOT NULL) AS p CROSS JOIN LATERAL"
    " (SELECT n, sha256, body, run, seq FROM render WHERE path=p.path ORDER BY n DESC LIMIT ?) AS r"
    " ORDER BY p.path, r.n DESC"
)
_LOGS = (
    "SELECT path, length, digest, (SELECT CASE WHEN octet_length(body)<=? THEN body END FROM log"
    " WHERE log.path=logged.path ORDER BY pos DESC LIMIT 1) FROM logged ORDER BY path"
)


def _of_run(link: Link, run: str) -> list[str]:
    """The statements that bring what folding a run needs."""
    return [
        link.spell(STATE, (run,)),
        link.spell(_EVENTS, (run, run, FOLD_VERSION)),
        link.spell(_RUN, (run,)),
    ]


def _keep_run(link: Link, run: str, state: Rows, events: Rows, rows: Rows) -> None:
    usable = bool(state) and state[0][1] == FOLD_VERSION
    link.keep("state", (STATE, (run,)), state)
    link.keep("event", (EVENTS, (run, state[0][0] if usable else 0)), events)
    link.keep("run", (RUN, (run,)), [row[:8] for row in rows])
    link.keep("run", (HEAD, (run,)), [(row[2], row[3], row[8], row[9], row[6], row[1]) for row in rows])


class PostgresReader(TableReader):
    _db: Link

    def large_contents(self) -> list[str]:
        return large_contents(self._db)

    def large(self, sha: str) -> Iterator[bytes]:
        return large(self._db, sha)

    def verify_contents(self) -> Iterator[Finding]:
        yield from super().verify_contents()
        yield from verify_pieces(self._db)

    def load(self, run: str) -> Run | None:
        if "\0" in run:
            return None
        self._bring(run)
        return super().load(run)

    def load_repo(self) -> Repo:
        self._bring(REPO)
        return super().load_repo()

    def _bring(self, run: str) -> None:
        try:
            statements = _of_run(self._db, run)
        except UnicodeEncodeError:
            return  # no run has half a character in its name
        _keep_run(self._db, run, *self._db.send(statements))


class Memory(Known):
    """What stands in the tables, as the turns of one driver know it: more than of SQLite, which is nearer."""

    __slots__ = ("lengths", "newest", "rendered")

    def forget(self) -> None:
        super().forget()
        self.newest: dict[str, tuple[int, str] | None] = {}  # of a projected file: number and hash of the last render
        self.rendered: dict[str, list[Render]] = {}  # its last renders, newest first
        self.lengths: dict[str, Length] | None = None  # of every append-only file


class PostgresTransaction(TableTransaction):
    _db: Link
    _known: Memory

    def __init__(self, link: Link, path: str, known: Memory, folder: str) -> None:
        """`folder`: where large files lie beside the journal on this machine."""
        super().__init__(link, path, known)
        self._folder = folder
        self._brought: set[str] = set()
        self._keys: dict[tuple[str, str], bool] = {}

    # -- what is brought along

    @staticmethod
    def first_look(link: Link) -> list[str]:
        """The statements that begin a turn ask for this, too: the answers go to `look`."""
        return [*_of_run(link, REPO), link.spell(_LOGS, (_LARGEST_END,))]

    def look(self, answers: list[Rows]) -> None:
        state, events, rows, logs = answers
        _keep_run(self._db, REPO, state, events, rows)
        self._brought.add(REPO)
        self._known.lengths = {path: (length, digest, end) for path, length, digest, end in logs}

    def load(self, run: str) -> Run | None:
        if "\0" in run:
            return None
        self._bring(run)
        return super().load(run)

    def load_repo(self) -> Repo:
        self._bring(REPO)
        return super().load_repo()

    def _bring(self, run: str) -> None:
        """Once in a transaction. What it has written since is asked for anew."""
        if run in self._brought:
            return
        self._brought.add(run)
        names = [f"{kind}{run}" for kind in _MARKED]
        try:
            statements = [
                *_of_run(self._db, run),
                self._db.spell(_RENDERS, (run, KEEP_BODIES)),
                *(self._db.spell(MARKER, (name,)) for name in names),
            ]
        except UnicodeEncodeError:
            return  # no run has half a character in its name
        state, events, rows, renders, *markers = self._db.send(statements)
        _keep_run(self._db, run, state, events, rows)
        self._keep_renders(renders)
        for name, found in zip(names, markers, strict=True):
            self._db.keep("note", (MARKER, (name,)), found)

    def _keep_renders(self, rows: Rows) -> None:
        by_path: dict[str, Rows] = {}
        for path, *render in rows:
            by_path.setdefault(path, []).append(tuple(render))
        for path, renders in by_path.items():
            self._known.rendered[path] = [(sha, body, of, seq) for _, sha, body, of, seq in renders]
            self._known.newest[path] = (renders[0][0], renders[0][1])

    # -- what is known

    def has_key(self, run: str, key: str) -> bool:
        """Nobody else writes meanwhile: an answer holds until we write that key."""
        found = self._keys.get((run, key))
        if found is None:
            found = self._keys[run, key] = super().has_key(run, key)
        return found

    def renders(self, path: str, limit: int = KEEP_BODIES) -> list[Render]:
        known = self._known.rendered.get(path)
        return known[:limit] if known is not None and 0 <= limit <= KEEP_BODIES else super().renders(path, limit)

    def log_length(self, path: str) -> int:
        known = self._known.lengths
        return super().log_length(path) if known is None else known[path][0] if path in known else 0

    def log_end(self, path: str) -> bytes:
        end = (self._known.lengths or {}).get(path, (0, b"", None))[2]
        return super().log_end(path) if end is None else end

    def logs(self) -> list[tuple[str, int]]:
        known = self._known.lengths
        return super().logs() if known is None else [(path, known[path][0]) for path in sorted(known)]

    # -- writing

    def append(self, run: str, expected: int, events: Sequence[Event] | Sequence[RepoEvent], state: Run | Repo) -> None:
        self._refuse_keys(run, [event["key"] for event in events if event.get("key") is not None])
        super().append(run, expected, events, state)
        for event in events:
            if event["type"] == "ArtifactStored" and event["sha256"]:
                put_large(self._db, self._folder, event["sha256"])

    def large_contents(self) -> list[str]:
        return large_contents(self._db)

    def large(self, sha: str) -> Iterator[bytes]:
        return large(self._db, sha)

    def _refuse_keys(self, run: str, keys: list[str]) -> None:
        """What is written waits for the COMMIT: a key that is there already has to be seen before."""
        twice = len(set(keys)) < len(keys)
        if twice or any(self.has_key(run, key) for key in keys):
            named = ", ".join(map(repr, keys))
            raise Conflict("duplicate-key", f"run {run} has an event with one of these keys already: {named}")
        self._keys.update({(run, key): True for key in keys})

    def remember(self, path: str, render: Render) -> bool:
        known = self._known
        if path not in known.newest:
            known.newest[path] = self._db.execute(NEWEST, (path,)).fetchone()
        here = known.newest[path]
        self._db.keep("render", (NEWEST, (path,)), [here] if here else [])
        if not super().remember(path, render):
            return False
        known.newest[path] = ((here[0] if here else 0) + 1, render[0])
        if path in known.rendered:
            known.rendered[path] = [render, *known.rendered[path]][:KEEP_BODIES]
        return True

    def append_log(self, path: str, text: bytes) -> int:
        known = self._known.lengths
        here = known.get(path) if known is not None else None
        if known is not None:
            self._db.keep("logged", (LOGGED, (path,)), [here[:2]] if here else [])
        length = super().append_log(path, text)
        if known is not None:
            end = text if len(text) <= _LARGEST_END else None
            known[path] = (length, log_digest(path, here[1] if here else None, text), end)
        return length

    def reset_log(self, path: str, text: bytes) -> None:
        if self._known.lengths is not None:
            self._known.lengths.pop(path, None)
        super().reset_log(path, text)

    # -- rare: nothing is known any more

    def rebuild(self, run: str) -> None:
        super().rebuild(run)
        self._forget()

    def importing(self) -> Importer:
        from tenuto.stores.postgres.importing import PostgresImport

        self._forget()
        return PostgresImport(self._db, self._folder)

    def scrub_event(self, run: str, seq: int, stamp: Stamp) -> tuple[list[str], str | None]:
        self._forget()
        return super().scrub_event(run, seq, stamp)

    def redact(self, redaction: Redaction, stamp: Stamp) -> Redacted:
        self._forget()
        done = super().redact(redaction, stamp)
        for sha in large_contents(self._db):
            if (renamed := redaction.text(sha)) != sha:
                self._db.execute("DELETE FROM piece WHERE sha256=?", (sha,))
                put_large(self._db, self._folder, renamed)
        return done

    def _forget(self) -> None:
        self._known.forget()
        self._keys.clear()
        self._db.drop_known()
