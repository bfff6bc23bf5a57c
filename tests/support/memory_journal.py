"""The journal in memory: the same contract as the SQLite store, for tests and rehearsals.

A verified fake: tests/contract/test_journal.py runs the same suite over both. Nothing survives the process. Events and
stored files are kept as texts with their hashes, so that a test can damage them; caches need no repair here.
"""

from __future__ import annotations

from copy import deepcopy
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

from tenuto.core.fold import FOLD_VERSION
from tenuto.core.parts import new_repo, new_run
from tenuto.core.upgrade import replay, upgrade
from tenuto.encoding import digest, dumps, loads, sha256
from tenuto.errors import Conflict, NotFound, Refused, SchemaSkew
from tenuto.names import check
from tenuto.stores.journal import EMPTY_CHAIN, KEEP_BODIES, REPO, Writing, is_run, summarize
from tenuto.stores.records import NOT_WHOLE, ONLY_HERE, check_file_key, check_log_path, damaged, packed, scrub, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Unpack

    from tenuto.core.records.events import Event, RepoEvent
    from tenuto.core.records.run import Json, Repo, Run
    from tenuto.ports import (
        Check,
        Finding,
        Importer,
        Redacted,
        Redaction,
        Render,
        RunFilter,
        RunSummary,
        SearchHit,
        Stamp,
    )

    State = TypeVar("State", Run, Repo)

_BACKUP = "restore a backup: tenuto import FILE"


class Row:
    """One event as it is kept."""

    def __init__(self, text: str, digest: bytes, chain: bytes, redacted: Json | None = None) -> None:
        self.text, self.digest, self.chain, self.redacted = text, digest, chain, redacted

    def is_whole(self) -> bool:
        hashed = sha256(self.text.encode())
        return hashed.digest() == self.digest or (
            self.redacted is not None and self.redacted["sha256"] == hashed.hexdigest()
        )


class Tables:
    def __init__(self) -> None:
        self.events: dict[str, list[Row]] = {}
        self.ends: dict[str, tuple[int, bytes]] = {}  # how many events there were, and the last link of their chain
        self.summaries: dict[str, RunSummary] = {}
        self.states: dict[str, tuple[int, int, str]] = {}
        self.renders: dict[str, list[Render]] = {}
        self.logs: dict[str, list[bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.markers: dict[str, str] = {}
        self.passages: dict[tuple[str, str], list[SearchHit]] = {}


class MemoryJournal:
    def __init__(self, directory: str = "") -> None:
        self.directory = directory
        self.home = ""
        self.location = "memory"
        self.longest_wait: float | None = None
        self.tables = Tables()
        self._draft: Tables | None = None
        self._mutex = RLock()
        self._used = False
        self._commits = 0

    def exists(self) -> bool:
        return self._used

    def write(self) -> Writing:
        return Writing(self)

    def read(self) -> Reading:
        return Reading(self.tables)

    def lock(self) -> None:
        self._mutex.acquire()
        if self._draft is not None:
            self._mutex.release()
            raise Conflict("nested-write", "a write began inside a write of the same process")

    def unlock(self) -> None:
        self._mutex.release()

    def load(self, run: str) -> Run | None:
        with self.read() as reader:
            return reader.load(run)

    def since(self, run: str, version: int) -> tuple[Run | None, list[Json]]:
        with self.read() as reader:
            return reader.load(run), list(reader.events(run, version))

    def written(self) -> tuple[dict[str, str], dict[str, str]]:
        with self.read() as reader:
            return dict.fromkeys((path for path, _ in reader.logs()), ""), {
                key: sha for key, _, sha in reader.projected()
            }

    def begin(self, durable: bool = True, remember: bool = False, lock: bool = False) -> MemoryTransaction:
        if lock:
            self.lock()
        self._draft = deepcopy(self.tables)
        return MemoryTransaction(self._draft)

    def commit(self) -> None:
        if self._draft is not None:
            self._used = True
            self.tables, self._draft = self._draft, None
            self._commits += 1

    def flush(self) -> None:
        pass

    def rollback(self, error: BaseException | None = None) -> None:
        self._draft = None

    def close(self) -> None:
        pass

    def hold_open(self, on: bool) -> None:
        pass

    def pulse(self) -> str:
        return str(self._commits) if self._used else ""

    def health(self, former: str = "") -> Iterator[Check]:
        count = len(self.tables.summaries)
        yield {"status": "ok", "name": "journal", "message": f"{count} runs in memory", "fix": "", "code": ""}

    def logins(self) -> list[str]:
        return []

    def files(self) -> list[str]:
        return []

    def erase(self) -> None:
        pass


class MemoryReader:
    def __init__(self, tables: Tables) -> None:
        self._t = tables

    def load(self, run: str) -> Run | None:
        return self._folded(run, new_run())

    def load_repo(self) -> Repo:
        return self._folded(REPO, new_repo()) or new_repo()

    def _folded(self, run: str, state: State) -> State | None:
        seq, fold, text = self._t.states.get(run, (0, 0, ""))
        if fold == FOLD_VERSION:
            state = loads(text)
        replay(list(self.events(run, seq if fold == FOLD_VERSION else 0)), run, state)
        return state if state["version"] else None

    def version(self, run: str) -> int:
        return len(self._t.events.get(run, ()))

    def events(self, run: str, after: int = 0) -> Iterator[Json]:
        for row in self._t.events.get(run, [])[after:]:
            yield upgrade(loads(row.text), run)

    def has_key(self, run: str, key: str) -> bool:
        return any(loads(row.text).get("key") == key for row in self._t.events.get(run, ()))

    def runs(self, *, limit: int = -1, **which: Unpack[RunFilter]) -> list[RunSummary]:
        listed = self._newest_first()
        if which.get("after"):
            names = [one["id"] for one in listed]
            listed = listed[names.index(which["after"]) + 1 :] if which["after"] in names else []
        chosen = [deepcopy(one) for one in listed if _fits(one, which)]
        return chosen if limit < 0 else chosen[:limit]

    def _newest_first(self) -> list[RunSummary]:
        by_name = sorted(self._t.summaries.values(), key=lambda summary: summary["id"])
        return sorted(by_name, key=lambda summary: summary["created_at"], reverse=True)

    def unfinished(self) -> list[RunSummary]:
        return [deepcopy(one) for one in self._newest_first() if one["open_in"] is not None]

    def versions(self) -> dict[str, int]:
        return {run: len(rows) for run, rows in self._t.events.items() if run != REPO}

    def names(self) -> list[str]:
        return sorted({*self._t.events, *self._t.ends}, key=lambda name: (name == REPO, name))

    def open_runs(self) -> list[tuple[str, str]]:
        open_in = {run: summary["open_in"] for run, summary in self._t.summaries.items()}
        return sorted((run, tree) for run, tree in open_in.items() if tree is not None)

    def renders(self, path: str, limit: int = KEEP_BODIES) -> list[Render]:
        newest_first = self._t.renders.get(path, [])[::-1]
        return newest_first if limit < 0 else newest_first[:limit]

    def render_of(self, sha: str) -> tuple[str, Render] | None:
        return next(((path, r) for path, made in self._t.renders.items() for r in made if r[0] == sha), None)

    def projected(self) -> list[tuple[str, str, str]]:
        return [(path, made[-1][2], made[-1][0]) for path, made in sorted(self._t.renders.items())]

    def log_length(self, path: str) -> int:
        return sum(map(len, self._t.logs.get(path, ())))

    def log_text(self, path: str) -> Iterator[bytes]:
        yield from self._t.logs.get(path, ())

    def log_end(self, path: str) -> bytes:
        return self._t.logs.get(path, [b""])[-1]

    def logs(self) -> list[tuple[str, int]]:
        return [(path, self.log_length(path)) for path in sorted(self._t.logs)]

    def large_contents(self) -> list[str]:
        return []

    def large(self, sha: str) -> Iterator[bytes]:
        return iter(())

    def blob(self, sha: str) -> bytes | None:
        return self._t.blobs.get(sha)

    def marker(self, name: str) -> str | None:
        return self._t.markers.get(name)

    def search(self, words: str, limit: int) -> list[SearchHit]:
        wanted = words.lower().split()
        every = [passage for passages in self._t.passages.values() for passage in passages]
        return [p for p in every if all(w in (p["heading"] + " " + p["text"]).lower() for w in wanted)][:limit]

    # -- checking and copying

    def verify_store(self) -> Iterator[Finding]:
        yield from ()

    def verify_run(self, run: str) -> Iterator[Finding]:
        chain = EMPTY_CHAIN
        rows = self._t.events.get(run, [])
        for seq, row in enumerate(rows, 1):
            chain = sha256(chain + row.digest).digest()
            if not row.is_whole():
                yield _damage(run, f"event {seq}", "its text is not what was written")
                return
            if row.chain != chain:
                yield _damage(run, f"event {seq}", "it does not follow from the event before it")
                return
        if self._t.ends.get(run) != (len(rows), chain):
            yield _damage(run, f"event {len(rows) + 1}", f"the tail is cut: {len(rows)} are left")

    def verify_contents(self) -> Iterator[Finding]:
        for sha, body in self._t.blobs.items():
            if digest(body) != sha:
                yield _damage(None, f"content {sha}", "the stored file is not what was stored")

    def records(self, run: str | None = None) -> Iterator[Json]:
        for name in [run] if run is not None else sorted(self._t.events):
            seq, chain = self._t.ends[name]
            yield {"kind": "run", "run": name, "events": seq, "head": chain.hex()}
            for number, row in enumerate(self._t.events[name], 1):
                record: Json = {"kind": "event", "run": name, "seq": number, "digest": row.digest.hex()}
                if row.redacted is not None:
                    record["redacted"] = row.redacted
                yield record | {"event": loads(row.text)}
        wanted = None if run is None else self.stored_by([run])
        for sha, body in sorted(self._t.blobs.items()):
            if wanted is None or sha in wanted:
                yield {"kind": "blob", "sha256": sha, **packed(body)}
        for path, made in sorted(self._t.renders.items()):
            for n, (sha, kept, owner, seq) in enumerate(made, 1):
                if run in (None, owner):
                    render = {"kind": "render", "path": path, "n": n, "run": owner, "seq": seq, "sha256": sha}
                    yield render if kept is None else {**render, **packed(kept)}
        if run is None:
            for path, parts in sorted(self._t.logs.items()):
                yield {"kind": "log", "path": path, **packed(b"".join(parts))}
            for marker, value in sorted(self._t.markers.items()):
                if not marker.startswith(ONLY_HERE):
                    yield {"kind": "note", "name": marker, "value": value}
        for passage in [one for passages in self._t.passages.values() for one in passages]:
            if run in (None, passage["run"]):
                yield {"kind": "passage", **{field: value for field, value in passage.items() if field in _PASSAGE}}

    def stored_by(self, runs: list[str]) -> list[str]:
        stored = (e for run in runs for e in self.events(run) if e["type"] == "ArtifactStored")
        return list(dict.fromkeys(event["sha256"] for event in stored))


def _fits(summary: RunSummary, which: RunFilter) -> bool:
    words = which.get("words", "").lower()
    texts = (summary["id"], summary["name"], summary["summary"], summary["pipeline"]["name"])
    return (
        (not which.get("dialect") or which["dialect"] in summary["dialects"])
        and (not which.get("statuses") or summary["status"] in which["statuses"])
        and any(words in text.lower() for text in texts)
    )


class MemoryTransaction(MemoryReader):
    def append(self, run: str, expected: int, events: Sequence[Event] | Sequence[RepoEvent], state: Run | Repo) -> None:
        rows = self._t.events.setdefault(run, [])
        if len(rows) != expected:
            raise Conflict(
                "stale-version", f"run {run} is at {len(rows)}, not at {expected}", "read it again", found=len(rows)
            )
        chain = rows[-1].chain if rows else EMPTY_CHAIN
        for event in events:
            key = event.get("key")
            if isinstance(key, str) and self.has_key(run, key):
                raise Conflict("duplicate-key", f"run {run} has an event with key {key!r} already")
            text = dumps(event)
            hashed = sha256(text.encode()).digest()
            chain = sha256(chain + hashed).digest()
            rows.append(Row(text, hashed, chain))
        self._t.ends[run] = (len(rows), chain)
        self._keep(run, state)

    def _keep(self, run: str, state: Run | Repo) -> None:
        self._t.states[run] = (len(self._t.events[run]), FOLD_VERSION, dumps(state))
        if is_run(state):
            self._t.summaries[run] = summarize(loads(dumps(state)))

    def remember(self, path: str, render: Render) -> bool:
        made = self._t.renders.setdefault(path, [])
        if made and made[-1][0] == render[0]:
            return False
        made.append(render)
        if len(made) > KEEP_BODIES:
            sha, _, run, seq = made[-KEEP_BODIES - 1]
            made[-KEEP_BODIES - 1] = (sha, None, run, seq)
        return True

    def append_log(self, path: str, text: bytes) -> int:
        parts = self._t.logs.setdefault(path, [])
        parts.append(text)
        return sum(map(len, parts))

    def reset_log(self, path: str, text: bytes) -> None:
        self._t.logs[path] = [text]

    def put_blob(self, sha: str, body: bytes) -> None:
        self._t.blobs.setdefault(sha, body)

    def put_marker(self, name: str, value: str | None) -> None:
        if value is None:
            self._t.markers.pop(name, None)
        else:
            self._t.markers[name] = value

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
        self._t.passages[(run, source)] = [_passage(run, source, path, *passage) for passage in passages]

    # -- mending, reading a backup back, taking texts out

    def rebuild(self, run: str) -> None:
        self._t.states.pop(run, None)
        self._keep(run, self.load_repo() if run == REPO else self.load(run) or new_run())

    def rebuild_index(self) -> None:
        pass

    def importing(self) -> Importer:
        return Import(self._t, self)

    def scrub_event(self, run: str, seq: int, stamp: Stamp) -> tuple[list[str], str | None]:
        rows = self._t.events.get(run, [])
        if not 1 <= seq <= len(rows):
            raise NotFound("no-such-event", f"run {run!r} has no event {seq}", f"tenuto show {run}", run=run)
        event = loads(rows[seq - 1].text)
        scrubbed, said = scrub(event)
        if scrubbed != event:
            self._replace(run, rows[seq - 1], scrubbed, stamp)
        return said, event["sha256"] if event["type"] == "ArtifactStored" else None

    def _replace(self, run: str, row: Row, event: Json, stamp: Stamp) -> None:
        row.text = dumps(event)
        row.redacted = {"sha256": digest(row.text.encode()), **stamp}
        self.rebuild(run)

    def redact(self, redaction: Redaction, stamp: Stamp) -> Redacted:
        done: Redacted = {
            "runs": [],
            "events": 0,
            "contents": 0,
            "renders": 0,
            "logs": {},
            "notes": 0,
            "passages": 0,
        }
        for sha, body in list(self._t.blobs.items()):
            clean = redaction.contents.get(sha) or redaction.body(body)
            if clean != body:
                del self._t.blobs[sha]
                self._t.blobs[digest(clean)] = clean
                redaction.rename(sha, digest(clean))
                done["contents"] += 1
        for run, rows in self._t.events.items():
            for seq, row in enumerate(rows, 1):
                event = loads(row.text)
                if (clean_event := redaction.event(event, f"event {seq} of run {run}")) != event:
                    self._replace(run, row, clean_event, stamp)
                    done["runs"] += [run] if run not in done["runs"] else []
                    done["events"] += 1
        for path, made in self._t.renders.items():
            done["renders"] += self._redact_renders(made, redaction, done["runs"])
            assert redaction.text(path) == path, "the fake does not look at names"
        for path, parts in self._t.logs.items():
            whole = b"".join(parts)
            if (clean := redaction.body(whole)) != whole:
                self._t.logs[path] = [clean]
                done["logs"][path] = (whole, clean)
        for name, value in list(self._t.markers.items()):
            if (clean_value := redaction.text(value)) != value:
                self._t.markers[name] = clean_value
                done["notes"] += 1
        for passage in [one for passages in self._t.passages.values() for one in passages]:
            heading, text = redaction.text(passage["heading"]), redaction.text(passage["text"])
            if (heading, text) != (passage["heading"], passage["text"]):
                passage["heading"], passage["text"] = heading, text
                done["passages"] += 1
        return done

    def _redact_renders(self, made: list[Render], redaction: Redaction, runs: list[str]) -> int:
        sha, body, run, seq = made[-1]
        count = 0
        clean = None if body is None else redaction.body(body)
        renamed = redaction.text(sha) if clean is None else digest(clean)
        if renamed != sha:
            made.append((renamed, clean, run, seq))
            count += 1
        for at, (sha, body, run, seq) in enumerate(made[:-1]):
            if body is not None and (run in runs or redaction.body(body) != body):
                made[at] = (sha, None, run, seq)
                count += 1
        return count


class Import:
    def __init__(self, tables: Tables, transaction: MemoryTransaction) -> None:
        self._t = tables
        self._transaction = transaction
        self._run, self._end = "", (0, "")
        self._present: set[str] = set()
        self.shown: set[str] = set()
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
        try:
            take(record)
        except NOT_WHOLE as error:
            raise damaged(f"a record of kind {kind!r} is not whole: {error!r}") from None

    def finish(self) -> None:
        self._close_run()
        for run in self.runs:
            self._transaction.rebuild(run)

    def _take_run(self, record: Json) -> None:
        name = record["run"] if record["run"] == REPO else check(record["run"], "run")
        end = self._t.ends.get(name)
        if end is None:
            self._run, self._end = name, (record["events"], record["head"])
            self._t.events[name] = []
        elif name == REPO or (end[0], end[1].hex()) == (record["events"], record["head"]):
            self._present.add(name)
        else:
            message = f"run {name} is here already, with other events"
            raise Refused("run-exists", message, "import into an empty repository", run=name)

    def _take_event(self, record: Json) -> None:
        if record["run"] in self._present:
            return
        rows = self._t.events[self._run]
        if record["run"] != self._run or record["seq"] != len(rows) + 1:
            raise damaged(f"event {record['seq']} of run {record['run']} comes where another belongs")
        chain = rows[-1].chain if rows else EMPTY_CHAIN
        hashed = bytes.fromhex(record["digest"])
        text = record["text"] if "text" in record else dumps(record["event"])
        row = Row(text, hashed, sha256(chain + hashed).digest(), record.get("redacted"))
        if not row.is_whole():
            raise damaged(f"the text of event {record['seq']} of run {self._run} is not what was written")
        rows.append(row)
        self.events += 1

    def _close_run(self) -> None:
        if not self._run:
            return
        name, self._run = self._run, ""
        rows = self._t.events[name]
        chain = rows[-1].chain if rows else EMPTY_CHAIN
        if (len(rows), chain.hex()) != self._end:
            raise damaged(f"run {name} should have {self._end[0]} events and another head; a part of it is missing")
        self._t.ends[name] = (len(rows), chain)
        self.runs.append(name)

    def _take_blob(self, record: Json) -> None:
        body = unpacked(record)
        if digest(body) != record["sha256"]:
            raise damaged(f"the stored file {record['sha256']} is not what was stored")
        self._t.blobs.setdefault(record["sha256"], body)

    def _take_render(self, record: Json) -> None:
        if record["run"] in self._present:
            return
        path = check_file_key(record["path"])
        if path not in self.shown and path in self._t.renders:
            owner = self._t.renders[path][0][2]
            raise Refused("file-exists", f"{path} is shown from run {owner} here", "import elsewhere", path=path)
        self.shown.add(path)
        body = unpacked(record) if "text" in record or "base64" in record else None
        if body is not None and digest(body) != record["sha256"]:
            raise damaged(f"version {record['n']} of {path} is not what was written")
        self._t.renders.setdefault(path, []).append((record["sha256"], body, record["run"], record["seq"]))

    def _take_log(self, record: Json) -> None:
        path, body = check_log_path(record["path"]), unpacked(record)
        here = b"".join(self._t.logs.get(path, ()))
        if here and here != body:
            raise Refused("file-exists", f"{path} is written here already", "import into an empty repository")
        self._t.logs[path] = [body]

    def _take_marker(self, record: Json) -> None:
        self._t.markers.setdefault(record["name"], record["value"])

    def _take_passage(self, record: Json) -> None:
        if record["run"] not in self._present:
            passage = _passage(*(record[field] for field in _PASSAGE))
            self._t.passages.setdefault((record["run"], record["source"]), []).append(passage)


class Reading:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __enter__(self) -> MemoryReader:
        return MemoryReader(self._tables)

    def __exit__(self, *_: object) -> None:
        pass


_PASSAGE = ("run", "source", "path", "heading", "text")


def _passage(run: str, source: str, path: str, heading: str, text: str) -> SearchHit:
    return {"run": run, "source": source, "path": path, "heading": heading, "text": text, "score": 0.0}


def _damage(run: str | None, where: str, message: str) -> Finding:
    return {"severity": "damage", "run": run, "where": where, "message": message, "fix": _BACKUP}
