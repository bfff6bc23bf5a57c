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

    from tenuto.ports import SearchHit
    from tenuto.stores.database import Connection

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
    counted = [_counted(db, term) for term in _terms(words)]
    known = sorted((entry for entry in counted if entry[0]), key=lambda entry: entry[0])
    if not known:
        return []
    found: dict[int, SearchHit] = {}
    if len(known) == len(counted):
        _add(db, found, " AND ".join(term for _, term in known), limit, ranked=known[0][0] <= _RANK_AT_MOST)
    rare = [term for count, term in known if count <= _RANK_AT_MOST]
    if len(found) < limit and (len(known) > 1 or not found):
        _add(db, found, " OR ".join(rare or [term for _, term in known]), limit, ranked=bool(rare))
    return list(found.values())[:limit]


def _terms(words: str) -> list[str]:
    """Each word once, as FTS5 takes it; common ones only where there is nothing else."""
    plain = "".join(c if c.isalnum() else " " for c in words).split()
    distinct = list(dict.fromkeys(word.lower() for word in plain))
    telling = [word for word in distinct if word not in _COMMON] or distinct
    return [f'"{word}"' for word in telling[:_MOST_TERMS]]


def _counted(db: Connection, term: str) -> tuple[int, str]:
    """In how many passages, as far as it matters. A word that is in none becomes the beginning of a word."""
    count = _count(db, term)
    if not count and len(term) >= _SHORTEST_BEGINNING + 2:
        term += "*"
        count = _count(db, term)
    return count, term


def _count(db: Connection, term: str) -> int:
    row = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM passage_text WHERE passage_text MATCH ? LIMIT ?)",
        (term, _RANK_AT_MOST + 1),
    ).fetchone()
    return int(row[0])


def _add(db: Connection, found: dict[int, SearchHit], query: str, limit: int, ranked: bool) -> None:
    order = "bm25(passage_text, 4.0, 1.0)" if ranked else "-rowid"
    rows = db.execute(
        "SELECT p.id, p.run, p.source, p.path, p.heading, p.body, p.digest, m.score FROM"
        f" (SELECT rowid AS id, {order} AS score FROM passage_text WHERE passage_text MATCH ? ORDER BY score LIMIT ?) m"
        " JOIN passage p ON p.id=m.id ORDER BY m.score, p.id",
        (query, limit + len(found)),
    )
    for number, run, source, path, heading, body, digest, score in rows:
        if sign((run, source, path, heading, body)) != digest:
            raise Damaged(
                "index-damaged", f"the searchable text of {path} is not what was stored", "tenuto repair", path=path
            )
        found.setdefault(
            number,
            {
                "run": run,
                "source": source,
                "path": path,
                "heading": heading,
                "text": body,
                "score": -score if ranked else 0.0,
            },
        )
