"""The searchable text in PostgreSQL: the same steps as in SQLite (stores/search.py), with its own index.

Words are cut, lowered and freed of accents here, so that both stores find the same passages. PostgreSQL finds their
stems, and ranks: a heading counts four times as much as the text below it. Ranks differ between stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import category, normalize

from tenuto.stores.journal import sign
from tenuto.stores.search import found_by, hit_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenuto.ports import SearchHit
    from tenuto.stores.postgres.link import Link

_LONGEST = 200_000  # characters of a passage that are indexed: an index entry of PostgreSQL ends at 1 MiB
_INDEXED = "setweight(to_tsvector('words', ?), 'A') || setweight(to_tsvector('words', ?), 'D')"
_ADD = f"INSERT INTO passage(run, source, path, heading, body, digest, found_by) VALUES(?,?,?,?,?,?,{_INDEXED})"
_AT_ONCE = 100


def replace(db: Link, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
    """The passages of this source are now these (heading, text)."""
    db.execute("DELETE FROM passage WHERE run=? AND source=?", (run, source))
    for heading, body in passages:
        add(db, run, source, path, heading, body)


def add(db: Link, run: str, source: str, path: str, heading: str, body: str) -> None:
    row = (run, source, path, heading, body)
    db.execute(_ADD, (*row, sign(row), _words(heading), _words(body)))


def index_is_whole(db: Link) -> bool:
    """Is every entry of the index what its text gives?"""
    return all(whole for _, whole in _compared(db))


def rebuild_index(db: Link) -> None:
    """Inside a transaction. A passage that is not what was stored goes; the file that it came from is still kept."""
    query = "SELECT id, run, source, path, heading, body, digest FROM passage"
    for number, run, source, path, heading, body, digest in db.execute(query).fetchall():
        if sign((run, source, path, heading, body)) != digest:
            db.execute("DELETE FROM passage WHERE id=?", (number,))
        else:
            found_by = (_words(heading), _words(body), number)
            db.execute(f"UPDATE passage SET found_by={_INDEXED} WHERE id=?", found_by)


def _compared(db: Link) -> Iterable[tuple[int, bool]]:
    rows = db.execute("SELECT id, heading, body FROM passage ORDER BY id").fetchall()
    for at in range(0, len(rows), _AT_ONCE):
        some = rows[at : at + _AT_ONCE]
        query = " UNION ALL ".join([f"SELECT id, found_by = {_INDEXED} FROM passage WHERE id=?"] * len(some))
        values = [value for number, heading, body in some for value in (_words(heading), _words(body), number)]
        yield from db.execute(query, values)


def search(db: Link, words: str, limit: int) -> list[SearchHit]:
    return found_by(_Finder(db), words, limit)


class _Finder:
    def __init__(self, db: Link) -> None:
        self._db = db

    def count(self, term: str, most: int, /) -> int:
        query = (
            "SELECT count(*) FROM (SELECT 1 FROM passage WHERE found_by @@ to_tsquery('words', ?) LIMIT ?) AS counted"
        )
        return int(self._db.execute(query, (_term(term), most)).fetchone()[0])

    def add(self, found: dict[int, SearchHit], some: list[str], every: bool, limit: int, ranked: bool, /) -> None:
        query = (" & " if every else " | ").join(_term(term) for term in some)
        score = "ts_rank('{0, 0.25, 0.5, 1}', found_by, asked)" if ranked else "id"
        rows = self._db.execute(
            f"SELECT id, run, source, path, heading, body, digest, {score} AS score FROM passage,"
            " to_tsquery('words', ?) AS asked WHERE found_by @@ asked ORDER BY score DESC, id LIMIT ?",
            (query, limit + len(found)),
        )
        for number, *texts, digest, rank in rows:
            found.setdefault(number, hit_of(texts, digest, float(rank) if ranked else 0.0))


def _term(term: str) -> str:
    """As `to_tsquery` takes it; a star stands for the rest of a word."""
    word = _words(term.removesuffix("*")).strip().replace(" ", " <-> ")
    return f"({word}:*)" if term.endswith("*") and " " not in word else f"({word})"


def _words(text: str | None) -> str:
    """Letters and digits only, without accents, in lower case."""
    text = (text or "")[:_LONGEST]
    if not text.isascii():
        text = "".join(sign for sign in normalize("NFKD", text) if category(sign) != "Mn")
    return "".join(sign if sign.isalnum() else " " for sign in text.lower())
