"""Is a journal what was written? Recomputes what can be recomputed and names the first thing that is wrong.

    database      the database's own check of its pages
    events        numbers without a gap; each text hashes to its digest (a redacted one to the digest that
                  was noted when it was redacted); each link of the chain follows from the one before
    end           count and head are kept apart from the events: a cut tail is seen
    caches        the kept state and the summary are what folding the events gives; rebuild() makes them anew
    contents      stored files, remembered renders and searchable passages hash to what was noted

It reads only, and goes on after the first bad event of a run with the next run. It proves damage, not
honesty: a program that may write to the tables can write a new chain.
"""

from __future__ import annotations

from tenuto.core.fold import FOLD_VERSION
from tenuto.core.parts import new_repo, new_run
from tenuto.core.upgrade import replay
from tenuto.encoding import dumps, loads, sha256
from tenuto.errors import Damaged, SchemaSkew
from tenuto.stores.journal import KEEP_STATE, LATER, REPO, ROW, hash_of, is_run, seal, sign, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.core.records.run import Json, Repo, Run
    from tenuto.ports import Finding
    from tenuto.stores.journal import Database


def not_as_written(what: str, path: str) -> Damaged:
    return Damaged("journal-damaged", f"{what} in {path} is not what was written", "tenuto verify", path=path)


def missing_events(run: str, recorded: int | None, found: int, path: str) -> Damaged:
    message = f"run {run} in {path} has {found} events that can be found, and {recorded or 'no'} were recorded"
    return Damaged("journal-damaged", message, "tenuto verify", path=path)


BACKUP = "restore a backup: tenuto import FILE"
DOES_NOT_FOLD = (KeyError, TypeError, IndexError, AttributeError, ValueError)
"""What folding an event raises that decide() can never have made."""


def finding(severity: str, run: str | None, where: str, message: str, fix: str) -> Finding:
    return {"severity": severity, "run": run, "where": where, "message": message, "fix": fix}


def run_names(db: Database) -> list[str]:
    """Every run there is any trace of, the repository's own stream last."""
    rows = db.execute("SELECT id FROM run UNION SELECT DISTINCT run FROM event ORDER BY 1")
    return sorted(
        (name if isinstance(name, str) else repr(name) for (name,) in rows), key=lambda name: (name == REPO, name)
    )


def verify_run(db: Database, run: str) -> Iterator[Finding]:
    bad = _first_bad_event(db, run) or _bad_end(db, run)
    if bad is not None:
        yield bad
    else:
        yield from _stale_caches(db, run)


def verify_contents(db: Database) -> Iterator[Finding]:
    for name, body in db.each("SELECT sha256, body FROM blob"):
        if sha256(body).hexdigest() != name:
            yield finding("damage", None, f"content {name}", "the stored file is not what was stored", BACKUP)
    for path, run, n, name, body in db.each("SELECT path, run, n, sha256, body FROM render WHERE body IS NOT NULL"):
        if sha256(body).hexdigest() != name:
            yield finding("damage", run, path, f"version {n} is not what was written", BACKUP)
    for path, written, recorded in db.execute(
        "SELECT path, length, (SELECT coalesce(sum(length(body)), 0) FROM log WHERE log.path=logged.path) FROM logged"
    ):
        if written != recorded:
            yield finding("damage", None, path, f"{recorded} bytes of it are recorded, {written} were written", BACKUP)

    for path, heading in _damaged_passages(db):
        yield finding(
            "damage",
            None,
            "index",
            f"the searchable text of {path} ({heading}) is not what was stored",
            "tenuto repair",
        )
    if not db.passages.index_is_whole(db):
        yield finding("damage", None, "index", "the search index does not fit the searchable text", "tenuto repair")


def _first_bad_event(db: Database, run: str) -> Finding | None:
    chain, expected = bytes(32), 1
    # As bytes: a text that is no UTF-8 any more is to be named, not to stop the search.
    for seq, body, digest, link, redacted in db.each(
        f"SELECT seq, {db.body_as_bytes}, digest, chain, redacted FROM event WHERE run=? ORDER BY seq", (run,)
    ):
        problem = ""
        if seq != expected:
            return finding("damage", run, f"event {expected}", f"it is missing; event {seq} comes next", BACKUP)
        if sha256(body or b"").digest() != digest and not _is_redacted(body, redacted):
            problem = "its text is not what was written"
        chain = sha256(chain + digest).digest()
        if link != chain:
            problem = problem or "it does not follow from the event before it"
        if problem:
            return finding("damage", run, f"event {seq}", problem, BACKUP)
        expected += 1
    return None


def _is_redacted(body: bytes, redacted: str | None) -> bool:
    noted = _read(redacted)
    return isinstance(noted, dict) and noted.get("sha256") == sha256(body).hexdigest()


def _read(text: str | None) -> object:
    """What was kept, or None where it is not even JSON."""
    try:
        return None if text is None else loads(text)
    except ValueError:
        return None


def _bad_end(db: Database, run: str) -> Finding | None:
    count, chain = db.execute(
        "SELECT count(*), (SELECT chain FROM event WHERE run=? ORDER BY seq DESC LIMIT 1) FROM event WHERE run=?",
        (run, run),
    ).fetchone()
    head = db.execute("SELECT seq, chain FROM run WHERE id=?", (run,)).fetchone()
    if head is None:
        return finding("damage", run, "end", f"{count} events are there, but no record of how many there were", BACKUP)
    if head[0] > count:
        return finding("damage", run, f"event {count + 1}", f"the tail is cut: {count} of {head[0]} are left", BACKUP)
    if head[0] < count:
        return finding("damage", run, f"event {head[0] + 1}", f"it came after the recorded end, {head[0]}", BACKUP)
    if count and head[1] != chain:
        return finding("damage", run, "end", "the recorded head is not the last event's", BACKUP)
    return None


def _stale_caches(db: Database, run: str) -> Iterator[Finding]:
    row = db.execute("SELECT seq, fold, body, digest FROM state WHERE run=?", (run,)).fetchone()
    try:
        kept, latest = _folded(db, run, row[0] if row else 0)
    except SchemaSkew as newer:
        yield finding("newer", run, "fold", newer.message, newer.hint)
        return
    except DOES_NOT_FOLD as error:
        yield finding("damage", run, "fold", f"its events do not fold: {type(error).__name__} {error}", BACKUP)
        return
    if row and row[1] == FOLD_VERSION and (_read(row[2]) != kept or hash_of(row[2]) != row[3]):
        yield finding("damage", run, "state", "the kept state is not what its events give", "tenuto repair")
    shown, open_in = db.execute("SELECT card, open_in FROM run WHERE id=?", (run,)).fetchone()
    expected = _summary(latest)
    sealed = _is_sealed(db, run)
    if not _is_summary(_read(shown), loads(dumps(expected))) or open_in != expected.get("open_in") or not sealed:
        yield finding("damage", run, "card", "what a list shows is not what its events give", "tenuto repair")


def _is_summary(shown: object, expected: Json) -> bool:
    """One that an earlier version wrote has fewer fields."""
    if not isinstance(shown, dict):
        return False
    missing = [name for name in LATER if name not in shown]
    return shown == {name: value for name, value in expected.items() if name not in missing}


def _summary(state: Run | Repo) -> Json:
    """What the row of the run keeps; of the repository's own stream nothing."""
    return dict(summarize(state)) if is_run(state) else {}


def _folded(db: Database, run: str, at: int) -> tuple[object, Run | Repo]:
    """The run as it was at event `at`, as JSON keeps it, and as it is."""
    state: Run | Repo = new_repo() if run == REPO else new_run()
    kept: object = None
    for seq, body in db.each("SELECT seq, body FROM event WHERE run=? ORDER BY seq", (run,)):
        replay([loads(body)], run, state)
        if seq == at:
            kept = loads(dumps(state))
    return kept, state


def rebuild(db: Database, run: str) -> None:
    """Inside a transaction: state and the run's row as the events give them."""
    _, state = _folded(db, run, 0)
    text = dumps(state)
    kept = (run, state["version"], FOLD_VERSION, text, sha256(text.encode()).digest())
    db.execute(KEEP_STATE, kept)
    shown = _summary(state)
    db.execute(
        "UPDATE run SET tail=0, kept=?, created=?, dialects=?, card=?, open_in=? WHERE id=?",
        (
            len(text),
            state["created_at"] if is_run(state) else "",
            f",{','.join(state['dialects'] if is_run(state) else ())},",
            dumps(shown),
            shown.get("open_in"),
            run,
        ),
    )
    _seal_anew(db, run)


def _damaged_passages(db: Database) -> Iterator[tuple[str, str]]:
    """(path, heading) of passages that are not what was stored."""
    for path, heading, *row, digest in db.each(
        "SELECT path, heading, run, source, path, heading, body, digest FROM passage"
    ):
        if sign(tuple(row)) != digest:
            yield path, heading


def _is_sealed(db: Database, run: str) -> bool:
    row = db.execute(f"SELECT {ROW}, digest FROM run WHERE id=?", (run,)).fetchone()
    return row is not None and type(row[3]) is bytes and bool(seal(row[:7]) == row[7])


def _seal_anew(db: Database, run: str) -> None:
    """After a change of the row that did not come with its hash."""
    row = db.execute(f"SELECT {ROW} FROM run WHERE id=?", (run,)).fetchone()
    db.execute("UPDATE run SET digest=? WHERE id=?", (seal(row), run))
