"""Is the journal what was written? Recomputes what can be recomputed and names the first thing that is wrong.

    database      SQLite's own check of its pages
    events        numbers without a gap; each text hashes to its digest (a redacted one to the digest that
                  was noted when it was redacted); each link of the chain follows from the one before
    end           count and head are kept apart from the events: a cut tail is seen
    caches        the kept state and the card are what folding the events gives; rebuild() makes them anew
    contents      stored files, remembered renders and searchable passages hash to what was noted

It reads only, and goes on after the first bad event of a run with the next run. It proves damage, not
honesty: whoever may write to the file can write a new chain.
"""

from __future__ import annotations

from tenuto.core.fold import FOLD_VERSION, apply, apply_repo, new_repo, new_run
from tenuto.core.upgrade import upgrade
from tenuto.encoding import dumps, loads, sha256
from tenuto.errors import SchemaSkew
from tenuto.stores.cards import card
from tenuto.stores.faults import unknown_event
from tenuto.stores.passages import damaged_passages, index_is_whole
from tenuto.stores.tables import hash_of, row_is_sealed, seal_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypedDict

    class Finding(TypedDict):
        severity: str  # damage; edited: by somebody else; behind: ours, but not the newest; newer: not known here
        run: str | None
        where: str
        message: str
        fix: str


REPO = "@"
_BACKUP = "restore a backup: tenuto import FILE"
DOES_NOT_FOLD = (KeyError, TypeError, IndexError, AttributeError, ValueError)
"""What folding an event raises that decide() can never have made."""


def finding(severity: str, run: str | None, where: str, message: str, fix: str) -> Finding:
    return {"severity": severity, "run": run, "where": where, "message": message, "fix": fix}


def run_names(db: Any) -> list[str]:
    """Every run there is any trace of, the repository's own stream last."""
    rows = db.execute("SELECT id FROM run UNION SELECT DISTINCT run FROM event ORDER BY 1")
    return sorted((name if isinstance(name, str) else repr(name) for (name,) in rows), key=lambda name: (name == REPO, name))


def verify_database(db: Any) -> Iterator[Finding]:
    for (line,) in db.execute("PRAGMA integrity_check(5)"):
        if line != "ok":
            yield finding("damage", None, "database", f"SQLite: {line}", _BACKUP)


def verify_run(db: Any, run: str) -> Iterator[Finding]:
    bad = _first_bad_event(db, run) or _bad_end(db, run)
    if bad is not None:
        yield bad
    else:
        yield from _stale_caches(db, run)


def verify_contents(db: Any) -> Iterator[Finding]:
    for name, body in db.execute("SELECT sha256, body FROM blob"):
        if sha256(body).hexdigest() != name:
            yield finding("damage", None, f"content {name}", "the stored file is not what was stored", _BACKUP)
    for path, run, n, name, body in db.execute("SELECT path, run, n, sha256, body FROM render WHERE body IS NOT NULL"):
        if sha256(body).hexdigest() != name:
            yield finding("damage", run, path, f"version {n} is not what was written", _BACKUP)
    for path, told, found in db.execute(
        "SELECT path, length, (SELECT coalesce(sum(length(body)), 0) FROM log WHERE log.path=logged.path) FROM logged"
    ):
        if told != found:
            yield finding("damage", None, path, f"{found} bytes of it are recorded, {told} were written", _BACKUP)


    for path, heading in damaged_passages(db):
        yield finding("damage", None, "index", f"the searchable text of {path} ({heading}) is not what was stored", "tenuto repair")
    if not index_is_whole(db):
        yield finding("damage", None, "index", "the search index does not fit the searchable text", "tenuto repair")


def _first_bad_event(db: Any, run: str) -> Finding | None:
    chain, expected = bytes(32), 1
    # As bytes: a text that is no UTF-8 any more is to be named, not to stop the search.
    for seq, body, digest, link, redacted in db.execute(
        "SELECT seq, CAST(body AS BLOB), digest, chain, redacted FROM event WHERE run=? ORDER BY seq", (run,)
    ):
        problem = ""
        if seq != expected:
            return finding("damage", run, f"event {expected}", f"it is missing; event {seq} comes next", _BACKUP)
        if sha256(body or b"").digest() != digest and not _is_redacted(body, redacted):
            problem = "its text is not what was written"
        chain = sha256(chain + digest).digest()
        if link != chain:
            problem = problem or "it does not follow from the event before it"
        if problem:
            return finding("damage", run, f"event {seq}", problem, _BACKUP)
        expected += 1
    return None


def _is_redacted(body: bytes, redacted: str | None) -> bool:
    noted = _read(redacted)
    return isinstance(noted, dict) and noted.get("sha256") == sha256(body).hexdigest()


def _read(text: str | None) -> Any:
    """What was kept, or None where it is not even JSON."""
    try:
        return None if text is None else loads(text)
    except ValueError:
        return None


def _bad_end(db: Any, run: str) -> Finding | None:
    count, chain = db.execute(
        "SELECT count(*), (SELECT chain FROM event WHERE run=?1 ORDER BY seq DESC LIMIT 1) FROM event WHERE run=?1",
        (run,),
    ).fetchone()
    head = db.execute("SELECT seq, chain FROM run WHERE id=?", (run,)).fetchone()
    if head is None:
        return finding("damage", run, "end", f"{count} events are there, but no record of how many there were", _BACKUP)
    if head[0] > count:
        return finding("damage", run, f"event {count + 1}", f"the tail is cut: {count} of {head[0]} are left", _BACKUP)
    if head[0] < count:
        return finding("damage", run, f"event {head[0] + 1}", f"it came after the recorded end, {head[0]}", _BACKUP)
    if count and head[1] != chain:
        return finding("damage", run, "end", "the recorded head is not the last event's", _BACKUP)
    return None


def _stale_caches(db: Any, run: str) -> Iterator[Finding]:
    row = db.execute("SELECT seq, fold, body, digest FROM state WHERE run=?", (run,)).fetchone()
    try:
        kept, latest = _folded(db, run, row[0] if row else 0)
    except SchemaSkew as newer:
        yield finding("newer", run, "fold", newer.message, newer.hint)
        return
    except DOES_NOT_FOLD as error:
        yield finding("damage", run, "fold", f"its events do not fold: {type(error).__name__} {error}", _BACKUP)
        return
    if row and row[1] == FOLD_VERSION and (_read(row[2]) != loads(dumps(kept)) or hash_of(row[2]) != row[3]):
        yield finding("damage", run, "state", "the kept state is not what its events give", "tenuto repair")
    shown, open_in = db.execute("SELECT card, open_in FROM run WHERE id=?", (run,)).fetchone()
    expected = card(latest)
    sealed = row_is_sealed(db, run)
    if _read(shown) != loads(dumps(expected)) or open_in != expected.get("open_in") or not sealed:
        yield finding("damage", run, "card", "what a list shows is not what its events give", "tenuto repair")


def _folded(db: Any, run: str, at: int) -> tuple[Any, Any]:
    """The run as it was at event `at`, and as it is."""
    state: Any = new_repo() if run == REPO else new_run()
    step: Any = apply_repo if run == REPO else apply
    kept: Any = None
    for seq, body in db.execute("SELECT seq, body FROM event WHERE run=? ORDER BY seq", (run,)):
        event = upgrade(loads(body), run)
        try:
            step(state, event)
        except KeyError as missing:
            raise unknown_event(run, event, missing) from None
        if seq == at:
            kept = loads(dumps(state))
    return kept, state


def rebuild(db: Any, run: str) -> None:
    """Inside a transaction: state and the run's row as the events give them."""
    _, state = _folded(db, run, 0)
    text = dumps(state)
    kept = (run, state["version"], FOLD_VERSION, text, sha256(text.encode()).digest())
    db.execute("INSERT OR REPLACE INTO state VALUES(?,?,?,?,?)", kept)
    shown = card(state)
    db.execute(
        "UPDATE run SET tail=0, kept=?, created=?, dialects=?, card=?, open_in=? WHERE id=?",
        (
            len(text), state.get("created_at", ""), f",{','.join(state.get('dialects', ()))},", dumps(shown), shown.get("open_in"),
            run,
        ),
    )  # fmt: skip
    seal_run(db, run)
