"""The searchable text: passages of artifacts, memory and history, ranked by SQLite's FTS5.

Kept in the journal's own file and changed in the same transaction as the event that brought
the text, so that a search never shows what was not stored, nor misses what was.

    1. passages that hold all the words, best first;
    2. where those are too few, passages that hold any of the rare words, best first;
    3. where no word is rare, the newest passages that hold any.

Words are compared by their stem (`sorting` finds `sorted`), without accents; a word that nothing holds is taken
as the beginning of one (`metric` finds `MetricsService`). Words like `the` and `how` are left out. A heading
counts four times as much as the text below it.
"""

from __future__ import annotations

from tenuto.errors import Damaged
from tenuto.stores.journal import sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from tenuto.ports import SearchHit
    from tenuto.stores.database import Connection

    class Finder(Protocol):
        """What the steps ask of an index. A term is a word; with a star behind it, the beginning of one."""

        def count(self, term: str, most: int, /) -> int:
            """How many passages hold it; no further than `most`."""

        def add(self, found: dict[int, SearchHit], terms: list[str], every: bool, limit: int, ranked: bool, /) -> None:
            """Passages that hold all of these terms, or any: best first, or else the newest first."""


# A word in more passages than this is not ranked: ranking reads every match, and such a word says little.
_RANK_AT_MOST = 2000
_MOST_TERMS = 24
_SHORTEST_BEGINNING = 3
_COMMON = frozenset(
    """a about after all also an and any are as at be been before between but by can could did do does done for from had
    has have how i if in into is it its just made make me more most my no not of on or our over please should show so
    some such tell than that the their them then there these they this those to under up us use used using was we were
    what when where which while who why will with would you your""".split()
)


def replace(db: Connection, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
    """The passages of this source are now these (heading, text)."""
    for row in db.execute("SELECT id, heading, body FROM passage WHERE run=? AND source=?", (run, source)).fetchall():
        db.execute("INSERT INTO passage_text(passage_text, rowid, heading, body) VALUES('delete',?,?,?)", row)
        db.execute("DELETE FROM passage WHERE id=?", (row[0],))
    for heading, body in passages:
        add(db, run, source, path, heading, body)


def add(db: Connection, run: str, source: str, path: str, heading: str, body: str) -> None:
    row = (run, source, path, heading, body)
    cursor = db.execute(
        "INSERT INTO passage(run, source, path, heading, body, digest) VALUES(?,?,?,?,?,?)", (*row, sign(row))
    )
    db.execute("INSERT INTO passage_text(rowid, heading, body) VALUES(?,?,?)", (cursor.lastrowid, heading, body))


def index_is_whole(db: Connection) -> bool:
    """SQLite's own comparison of the index with the text. It counts as a write: it is skipped in a read-only place."""
    try:
        db.execute("INSERT INTO passage_text(passage_text, rank) VALUES('integrity-check', 1)")
    except db.OperationalError:
        return True
    except db.DatabaseError:
        return False
    return True


def rebuild_index(db: Connection) -> None:
    """Inside a transaction. A passage that is not what was stored goes; the file that it came from is still kept."""
    for row, *texts, digest in db.execute(
        "SELECT id, run, source, path, heading, body, digest FROM passage"
    ).fetchall():
        if sign(tuple(texts)) != digest:
            db.execute("DELETE FROM passage WHERE id=?", (row,))
    db.execute("INSERT INTO passage_text(passage_text) VALUES('rebuild')")


def search(db: Connection, words: str, limit: int) -> list[SearchHit]:
    return found_by(_Fts5(db), words, limit)


def found_by(index: Finder, words: str, limit: int) -> list[SearchHit]:
    """The steps above, over the index of one kind of database."""
    counted = [_counted(index, term) for term in _terms(words)]
    known = sorted((entry for entry in counted if entry[0]), key=lambda entry: entry[0])
    if not known:
        return []
    found: dict[int, SearchHit] = {}
    every = [term for _, term in known]
    if len(known) == len(counted):
        index.add(found, every, True, limit, known[0][0] <= _RANK_AT_MOST)
    rare = [term for count, term in known if count <= _RANK_AT_MOST]
    if len(found) < limit and (len(known) > 1 or not found):
        index.add(found, rare or every, False, limit, bool(rare))
    return list(found.values())[:limit]


def _terms(words: str) -> list[str]:
    """Each word once; common ones only where there is nothing else."""
    plain = "".join(c if c.isalnum() else " " for c in words).split()
    distinct = list(dict.fromkeys(word.lower() for word in plain))
    telling = [word for word in distinct if word not in _COMMON] or distinct
    return telling[:_MOST_TERMS]


def _counted(index: Finder, term: str) -> tuple[int, str]:
    """In how many passages, as far as it matters. A word that is in none becomes the beginning of a word."""
    count = index.count(term, _RANK_AT_MOST + 1)
    if not count and len(term) >= _SHORTEST_BEGINNING:
        term += "*"
        count = index.count(term, _RANK_AT_MOST + 1)
    return count, term


class _Fts5:
    def __init__(self, db: Connection) -> None:
        self._db = db

    def count(self, term: str, most: int, /) -> int:
        row = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM passage_text WHERE passage_text MATCH ? LIMIT ?)",
            (_quoted(term), most),
        ).fetchone()
        return int(row[0])

    def add(self, found: dict[int, SearchHit], terms: list[str], every: bool, limit: int, ranked: bool, /) -> None:
        query = (" AND " if every else " OR ").join(_quoted(term) for term in terms)
        order = "bm25(passage_text, 4.0, 1.0)" if ranked else "-rowid"
        rows = self._db.execute(
            "SELECT p.id, p.run, p.source, p.path, p.heading, p.body, p.digest, m.score FROM (SELECT rowid AS id,"
            f" {order} AS score FROM passage_text WHERE passage_text MATCH ? ORDER BY score LIMIT ?) m"
            " JOIN passage p ON p.id=m.id ORDER BY m.score, p.id",
            (query, limit + len(found)),
        )
        for number, *texts, digest, score in rows:
            found.setdefault(number, hit_of(texts, digest, -score if ranked else 0.0))


def _quoted(term: str) -> str:
    """As FTS5 takes it; a star stands for the rest of a word."""
    return f'"{term[:-1]}"*' if term.endswith("*") else f'"{term}"'


def hit_of(texts: list[str], digest: bytes, score: float) -> SearchHit:
    """Of a passage (run, source, path, heading, text) that is what was stored."""
    run, source, path, heading, body = texts
    if sign(tuple(texts)) != digest:
        raise Damaged(
            "index-damaged", f"the searchable text of {path} is not what was stored", "tenuto repair", path=path
        )
    return {"run": run, "source": source, "path": path, "heading": heading, "text": body, "score": score}
