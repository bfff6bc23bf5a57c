"""The searchable text: passages of artifacts, memory and history, ranked by SQLite's FTS5.

Kept in the journal's own file and changed in the same transaction as the event that brought
the text, so that a search never shows what was not stored, nor misses what was.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tenuto.core.records import Json

# A word in more passages than this is not ranked: ranking reads every match, and such a word says little.
_RANK_AT_MOST = 2000


def replace(db: Any, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
    """The passages of this source are now these (heading, text)."""
    for row in db.execute("SELECT id, heading, body FROM passage WHERE run=? AND source=?", (run, source)).fetchall():
        db.execute("INSERT INTO passage_text(passage_text, rowid, heading, body) VALUES('delete',?,?,?)", row)
        db.execute("DELETE FROM passage WHERE id=?", (row[0],))
    for heading, body in passages:
        cursor = db.execute(
            "INSERT INTO passage(run, source, path, heading, body) VALUES(?,?,?,?,?)",
            (run, source, path, heading, body),
        )
        db.execute("INSERT INTO passage_text(rowid, heading, body) VALUES(?,?,?)", (cursor.lastrowid, heading, body))


def search(db: Any, words: str, limit: int) -> list[Json]:
    """Passages that hold all the words, best first; where none does, those that hold any of them."""
    terms = ['"' + term.replace('"', '""') + '"' for term in _terms(words)]
    for joined in (" AND ".join(terms), " OR ".join(terms)) if terms else ():
        found = _matches(db, joined, limit)
        if found:
            return found
    return []


def _matches(db: Any, query: str, limit: int) -> list[Json]:
    many = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM passage_text WHERE passage_text MATCH ? LIMIT ?)",
        (query, _RANK_AT_MOST + 1),
    ).fetchone()[0]
    order = "ORDER BY rank" if many <= _RANK_AT_MOST else "ORDER BY rowid DESC"
    rows = db.execute(
        "SELECT p.run, p.source, p.path, p.heading, p.body FROM"
        f" (SELECT rowid FROM passage_text WHERE passage_text MATCH ? {order} LIMIT ?) m JOIN passage p ON p.id=m.rowid",
        (query, limit),
    )
    return [
        {"run": run, "source": source, "path": path, "heading": heading, "text": body}
        for run, source, path, heading, body in rows
    ]


def _terms(words: str) -> list[str]:
    return [
        "".join(c if c.isalnum() or c == "_" else " " for c in word).strip()
        for word in words.split()
        if any(c.isalnum() for c in word)
    ]
