"""The records of a backup (records.py), read from the tables of a journal and written into them."""

from __future__ import annotations

from tenuto.core.upgrade import upgrade
from tenuto.encoding import dumps, loads, sha256
from tenuto.errors import Refused, SchemaSkew
from tenuto.names import check
from tenuto.stores.journal import EMPTY_CHAIN, PUT_BLOB, REPO, hash_of, log_digest
from tenuto.stores.records import NOT_WHOLE, ONLY_HERE, check_file_key, check_log_path, damaged, packed, unpacked
from tenuto.stores.verify import DOES_NOT_FOLD, rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenuto.core.records.run import Json
    from tenuto.stores.journal import Database


def records(db: Database, run: str | None) -> Iterator[Json]:
    """Everything that the database holds; of one run: its events, stored files and renders."""
    names = [run] if run is not None else [name for (name,) in db.execute("SELECT id FROM run ORDER BY id")]
    for name in names:
        seq, chain = db.execute("SELECT seq, chain FROM run WHERE id=?", (name,)).fetchone()
        yield {"kind": "run", "run": name, "events": seq, "head": chain.hex()}
        yield from _events(db, name)
    wanted = None if run is None else set(stored_by(db, names))
    for sha, body in db.each("SELECT sha256, body FROM blob ORDER BY sha256"):
        if wanted is None or sha in wanted:
            yield {"kind": "blob", "sha256": sha, **packed(body)}
    for path, n, owner, seq, sha, body in db.each(
        "SELECT path, n, run, seq, sha256, body FROM render ORDER BY path, n"
    ):
        if run in (None, owner):
            render = {"kind": "render", "path": path, "n": n, "run": owner, "seq": seq, "sha256": sha}
            yield render if body is None else {**render, **packed(body)}
    if run is None:
        yield from _shared(db)
    where, values = ("WHERE run=?", (run,)) if run is not None else ("", ())
    for owner, source, path, heading, text in db.each(
        f"SELECT run, source, path, heading, body FROM passage {where} ORDER BY id", values
    ):
        yield {"kind": "passage", "run": owner, "source": source, "path": path, "heading": heading, "text": text}


def stored_by(db: Database, runs: list[str]) -> list[str]:
    """The hashes of every version of every artifact of these runs."""
    found: dict[str, None] = {}
    for name in runs:
        for (body,) in db.each("SELECT body FROM event WHERE run=? ORDER BY seq", (name,)):
            event = upgrade(loads(body), name)
            if event["type"] == "ArtifactStored":
                found[event["sha256"]] = None
    return list(found)


def _events(db: Database, run: str) -> Iterator[Json]:
    for seq, body, digest, redacted in db.each(
        "SELECT seq, body, digest, redacted FROM event WHERE run=? ORDER BY seq", (run,)
    ):
        record: Json = {"kind": "event", "run": run, "seq": seq, "digest": digest.hex()}
        if redacted is not None:
            record["redacted"] = loads(redacted)
        event = loads(body)
        # The digest is over the text: where ours would be spelled differently, the text itself goes along.
        yield record | ({"event": event} if dumps(event) == body else {"text": body})


def _shared(db: Database) -> Iterator[Json]:
    for (path,) in db.execute("SELECT path FROM logged ORDER BY path").fetchall():
        parts = db.execute("SELECT body FROM log WHERE path=? ORDER BY pos", (path,))
        yield {"kind": "log", "path": path, **packed(b"".join(body for (body,) in parts))}
    for name, value in db.execute("SELECT name, value FROM note ORDER BY name"):
        if not name.startswith(ONLY_HERE):
            yield {"kind": "note", "name": name, "value": value}


class Import:
    """Takes records inside a transaction. The caller commits after `finish`, and rolls back on any error."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._run = ""
        self._expected: tuple[int, str] = (0, "")
        self._at: tuple[int, bytes] = (0, EMPTY_CHAIN)
        self._present: set[str] = set()
        self.shown: set[str] = set()  # files of the runs that were taken
        self.runs: list[str] = []
        self.events = 0
        self._takers: dict[str, Callable[[Json], None]] = {
            "run": self._take_run,
            "event": self._take_event,
            "blob": self._take_blob,
            "render": self._take_render,
            "log": self._take_log,
            "note": self._take_marker,
            "passage": self._take_passage,
        }

    def take(self, record: Json) -> None:
        kind = record["kind"]
        if kind != "event":
            self._close_run()
        take = self._takers.get(kind)
        if take is None:
            raise SchemaSkew("backup-newer", f"records of kind {kind!r} are not known here", "upgrade tenuto")
        not_whole: tuple[type[Exception], ...] = (*NOT_WHOLE, *self._db.NotStorable)
        try:
            take(record)
        except self._db.Duplicate:
            raise damaged(f"a record of kind {kind!r} stands in it twice") from None
        except not_whole as error:
            raise damaged(f"a record of kind {kind!r} is not whole: {error!r}") from None

    def finish(self) -> None:
        self._close_run()
        for run in self.runs:
            try:
                rebuild(self._db, run)
            except DOES_NOT_FOLD as error:
                raise damaged(f"the events of run {run} make no run: {error!r}") from None

    def _take_run(self, record: Json) -> None:
        name = record["run"]
        if name != REPO:
            check(name, "run")
        here = self._db.execute("SELECT seq, chain FROM run WHERE id=?", (name,)).fetchone()
        if here is None:
            self._run, self._expected, self._at = name, (record["events"], record["head"]), (0, EMPTY_CHAIN)
        elif name == REPO or (here[0], here[1].hex()) == (record["events"], record["head"]):
            self._present.add(name)  # the repository's own stream is this repository's own
        else:
            raise Refused(
                "run-exists",
                f"run {name} is here already, with other events",
                "import into an empty repository",
                run=name,
            )

    def _take_event(self, record: Json) -> None:
        name = record["run"]
        if name in self._present:
            return
        seq, chain = self._at[0] + 1, self._at[1]
        text: str = record["text"] if "text" in record else dumps(record["event"])
        digest, redacted = bytes.fromhex(record["digest"]), record.get("redacted")
        hashed = sha256(text.encode())
        if name != self._run or record["seq"] != seq:
            raise damaged(f"event {record['seq']} of run {name} comes where event {seq} of {self._run} belongs")
        if hashed.digest() != digest and (redacted is None or redacted["sha256"] != hashed.hexdigest()):
            raise damaged(f"the text of event {seq} of run {name} is not what was written")
        chain = sha256(chain + digest).digest()
        self._db.execute(
            "INSERT INTO event VALUES(?,?,?,?,?,?,?)",
            (name, seq, loads(text).get("key"), text, digest, chain, None if redacted is None else dumps(redacted)),
        )
        self._at = (seq, chain)
        self.events += 1

    def _close_run(self) -> None:
        if not self._run:
            return
        name, self._run = self._run, ""
        if (self._at[0], self._at[1].hex()) != self._expected:
            raise damaged(
                f"run {name} should have {self._expected[0]} events and another head; a part of it is missing"
            )
        self._db.execute(
            "INSERT INTO run(id, created, seq, chain) VALUES(?,'',?,?)", (name, *self._at)
        )  # sealed by `finish`
        self.runs.append(name)

    def _take_blob(self, record: Json) -> None:
        body = unpacked(record)
        if sha256(body).hexdigest() != record["sha256"]:
            raise damaged(f"the stored file {record['sha256']} is not what was stored")
        self._db.execute(PUT_BLOB, (record["sha256"], body))

    def _take_render(self, record: Json) -> None:
        if record["run"] in self._present:
            return
        path = record["path"]
        if path not in self.shown:
            check_file_key(path)
            here = self._db.execute("SELECT run FROM render WHERE path=? LIMIT 1", (path,)).fetchone()
            if here is not None:
                raise Refused("file-exists", f"{path} is shown from run {here[0]} here", "import elsewhere", path=path)
            self.shown.add(path)
        body = unpacked(record) if "text" in record or "base64" in record else None
        if body is not None and sha256(body).hexdigest() != record["sha256"]:
            raise damaged(f"version {record['n']} of {path} is not what was written")
        self._db.execute(
            "INSERT INTO render VALUES(?,?,?,?,?,?)",
            (path, record["n"], record["run"], record["seq"], record["sha256"], body),
        )

    def _take_log(self, record: Json) -> None:
        path, body = check_log_path(record["path"]), unpacked(record)
        here = b"".join(part for (part,) in self._db.execute("SELECT body FROM log WHERE path=? ORDER BY pos", (path,)))
        if here == body:
            return
        if here:
            raise Refused(
                "file-exists", f"{path} is written here already", "import into an empty repository", path=path
            )
        self._db.execute("INSERT INTO log VALUES(?,0,?)", (path, body))
        self._db.execute("INSERT INTO logged VALUES(?,?,?)", (path, len(body), log_digest(path, None, body)))

    def _take_marker(self, record: Json) -> None:
        row = (record["name"], record["value"], hash_of(record["value"]))
        self._db.execute("INSERT INTO note VALUES(?,?,?) ON CONFLICT DO NOTHING", row)

    def _take_passage(self, record: Json) -> None:
        if record["run"] in self._present:
            return
        self._db.passages.add(
            self._db, record["run"], record["source"], record["path"], record["heading"], record["text"]
        )
