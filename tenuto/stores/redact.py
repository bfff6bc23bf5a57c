"""Take text out of a journal as if it had never been written, and leave the chain whole.

The digest of an event stays what it was, so every chain still verifies; beside the new text stands
its own digest, when it was redacted and by whom. Stored files get a new hash, and every record that names one
names the new one. What was cached or remembered is made anew, and old renders keep only their hash.
"""

from __future__ import annotations

from tenuto.encoding import dumps, loads, sha256
from tenuto.errors import Damaged, NotFound, Refused
from tenuto.stores.journal import PUT_BLOB, log_digest, put_marker, sign
from tenuto.stores.records import scrub
from tenuto.stores.verify import DOES_NOT_FOLD, rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Json
    from tenuto.ports import Redacted, Redaction, Stamp
    from tenuto.stores.journal import Database


def redact(db: Database, redaction: Redaction, stamp: Stamp) -> Redacted:
    """Inside a transaction."""
    _refuse_names(db, redaction)
    contents = _redact_contents(db, redaction)
    changed, events = _redact_events(db, redaction, stamp)
    for run in changed:
        _fold_anew(db, run)
    _refuse_own_words(db, redaction)
    return {
        "runs": changed,
        "events": events,
        "contents": contents,
        "renders": _redact_renders(db, redaction, changed),
        "logs": _redact_logs(db, redaction),
        "notes": _redact_markers(db, redaction),
        "passages": _redact_passages(db, redaction),
    }


def scrub_event(db: Database, run: str, seq: int, stamp: Stamp) -> tuple[list[str], str | None]:
    """Inside a transaction: one event loses all that was said in it.

    Returns the texts to be looked for elsewhere, and the hash of the stored file it names.
    """
    row = db.execute("SELECT body FROM event WHERE run=? AND seq=?", (run, seq)).fetchone()
    if row is None:
        raise NotFound("no-such-event", f"run {run!r} has no event {seq}", f"tenuto show {run}", run=run)
    event = _parsed(row[0], run, seq)
    scrubbed, texts = scrub(event)
    if scrubbed != event:
        _replace_event(db, run, seq, scrubbed, stamp)
        _fold_anew(db, run)
    return texts, event["sha256"] if event["type"] == "ArtifactStored" else None


def _refuse_names(db: Database, redaction: Redaction) -> None:
    for what, name in db.execute(
        "SELECT 'run', id FROM run UNION SELECT 'file', path FROM render UNION SELECT 'file', path FROM logged"
    ):
        if redaction.text(name) != name:
            raise Refused(
                "in-a-name",
                f"the text is part of the name of {what} {redaction.text(name)!r}, and names stay",
                "name more of it; or export what you need, then remove the journal",
            )


def _refuse_own_words(db: Database, redaction: Redaction) -> None:
    """What is still in a folded run came from Tenuto, not from an event: statuses, names of fields."""
    for run, body in db.execute("SELECT run, body FROM state UNION ALL SELECT id, card FROM run"):
        if redaction.stands_in(body.encode()):
            raise Refused("own-word", f"the text is one of Tenuto's own words in run {run}", "name more of it")


def _redact_contents(db: Database, redaction: Redaction) -> int:
    count = 0
    for (sha,) in db.execute("SELECT sha256 FROM blob").fetchall():
        (body,) = db.execute("SELECT body FROM blob WHERE sha256=?", (sha,)).fetchone()
        made = redaction.contents.get(sha) or redaction.body(body)
        if made != body:
            renamed = sha256(made).hexdigest()
            db.execute("DELETE FROM blob WHERE sha256=?", (sha,))
            db.execute(PUT_BLOB, (renamed, made))
            redaction.rename(sha, renamed)
            count += 1
    return count


def _redact_events(db: Database, redaction: Redaction, stamp: Stamp) -> tuple[list[str], int]:
    changed: dict[str, None] = {}
    count = 0
    for run, seq in db.execute("SELECT run, seq FROM event ORDER BY run, seq").fetchall():
        (body,) = db.execute("SELECT body FROM event WHERE run=? AND seq=?", (run, seq)).fetchone()
        if redaction.body(body.encode()) == body.encode():
            continue
        event = _parsed(body, run, seq)
        made = redaction.event(event, f"event {seq} of run {run}")
        if made != event:
            _replace_event(db, run, seq, made, stamp)
            changed[run] = None
            count += 1
    return list(changed), count


def _replace_event(db: Database, run: str, seq: int, event: Json, stamp: Stamp) -> None:
    body = dumps(event)
    noted = dumps({"sha256": sha256(body.encode()).hexdigest(), **stamp})
    db.execute(
        "UPDATE event SET body=?, key=?, redacted=? WHERE run=? AND seq=?", (body, event.get("key"), noted, run, seq)
    )


def _parsed(body: str, run: str, seq: int) -> Json:
    try:
        event: Json = loads(body)
        return event
    except ValueError:
        raise Damaged("event-damaged", f"event {seq} of run {run} is not readable", "tenuto verify") from None


def _fold_anew(db: Database, run: str) -> None:
    before: tuple[object, ...] | None = _status(db, run)
    try:
        rebuild(db, run)
    except DOES_NOT_FOLD:
        before = None
    if before is None or _status(db, run) != before:
        raise Refused("own-word", f"without that text, run {run} would be another run", "name more of it")


def _status(db: Database, run: str) -> tuple[object, ...]:
    (card,) = db.execute("SELECT card FROM run WHERE id=?", (run,)).fetchone()
    shown = loads(card)
    return tuple(shown.get(field) for field in ("id", "status", "mode", "created_at"))


def _redact_renders(db: Database, redaction: Redaction, runs: list[str]) -> int:
    """The newest version of a file is followed by one without the text; older ones are known by hash only."""
    count = 0
    newest = "SELECT path, max(n) FROM render GROUP BY path"
    for path, n in db.execute(newest).fetchall():
        run, seq, sha, body = db.execute(
            "SELECT run, seq, sha256, body FROM render WHERE path=? AND n=?", (path, n)
        ).fetchone()
        made = None if body is None else redaction.body(body)
        renamed = redaction.text(sha) if made is None else sha256(made).hexdigest()
        if renamed != sha:
            db.execute("INSERT INTO render VALUES(?,?,?,?,?,?)", (path, n + 1, run, seq, renamed, made))
            count += 1
    for path, n, run, body in db.execute("SELECT path, n, run, body FROM render WHERE body IS NOT NULL").fetchall():
        (last,) = db.execute("SELECT max(n) FROM render WHERE path=?", (path,)).fetchone()
        if n != last and (run in runs or redaction.body(body) != body):
            # A render may have cut or folded the text in a way that no search finds.
            db.execute("UPDATE render SET body=NULL WHERE path=? AND n=?", (path, n))
            count += 1
    return count


def _redact_logs(db: Database, redaction: Redaction) -> dict[str, tuple[bytes, bytes]]:
    changed = {}
    for (path,) in db.execute("SELECT path FROM logged").fetchall():
        parts = db.execute("SELECT body FROM log WHERE path=? ORDER BY pos", (path,)).fetchall()
        whole = b"".join(body for (body,) in parts)
        made = redaction.body(whole)
        if made != whole:
            db.execute("DELETE FROM log WHERE path=?", (path,))
            db.execute("INSERT INTO log VALUES(?,0,?)", (path, made))
            digest = log_digest(path, None, made)
            db.execute("UPDATE logged SET length=?, digest=? WHERE path=?", (len(made), digest, path))
            changed[path] = (whole, made)
    return changed


def _redact_markers(db: Database, redaction: Redaction) -> int:
    count = 0
    for name, value in db.execute("SELECT name, value FROM note").fetchall():
        made = (redaction.body(name.encode()).decode(), redaction.body(value.encode()).decode())
        if made != (name, value):
            db.execute("DELETE FROM note WHERE name=?", (name,))
            put_marker(db, *made)
            count += 1
    return count


def _redact_passages(db: Database, redaction: Redaction) -> int:
    count = 0
    for row, run, *texts in db.execute("SELECT id, run, source, path, heading, body FROM passage").fetchall():
        made = [text if text is None else redaction.text(text) for text in texts]
        if made != texts:
            signed = sign((run, *made))
            db.execute(
                "UPDATE passage SET source=?, path=?, heading=?, body=?, digest=? WHERE id=?", (*made, signed, row)
            )
            count += 1
    if count:
        # The index keeps deleted words until it is merged; made anew, it holds only what is there.
        db.passages.rebuild_index(db)
    return count
