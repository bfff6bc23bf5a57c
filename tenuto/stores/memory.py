"""The journal in memory: the same contract as the SQLite store, for tests and rehearsals.

A verified fake: tests/contract/ runs the same suite over both. Nothing survives the process.
"""

from __future__ import annotations

from copy import deepcopy
from threading import RLock

from tenuto.core.fold import FOLD_VERSION, apply, apply_repo, new_repo, new_run
from tenuto.core.upgrade import upgrade
from tenuto.encoding import dumps, loads, sha256
from tenuto.errors import Conflict
from tenuto.stores.cards import card
from tenuto.stores.faults import unknown_event
from tenuto.stores.writing import Writing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tenuto.core.records import Json, Repo, Run
    from tenuto.ports import Render

REPO = "@"
_KEEP_BODIES = 8
_EMPTY_CHAIN = bytes(32)


class _Tables:
    def __init__(self) -> None:
        self.events: dict[str, list[tuple[str, bytes, bytes]]] = {}  # run -> (text, digest, chain)
        self.keys: set[tuple[str, str]] = set()
        self.cards: dict[str, tuple[str, str, Json]] = {}
        self.states: dict[str, tuple[int, int, str]] = {}
        self.renders: dict[str, list[Render]] = {}
        self.logs: dict[str, list[bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.notes: dict[str, str] = {}
        self.passages: dict[tuple[str, str], list[Json]] = {}


class MemoryJournal:
    def __init__(self, directory: str = "") -> None:
        self.directory = directory
        self._tables = _Tables()
        self._draft: _Tables | None = None
        self._mutex = RLock()

    def write(self) -> Writing:
        return Writing(self)

    def read(self) -> Reading:
        return Reading(self._tables)

    def lock(self) -> None:
        self._mutex.acquire()
        if self._draft is not None:
            self._mutex.release()
            raise Conflict("nested-write", "a write began inside a write of the same process")

    def unlock(self) -> None:
        self._mutex.release()

    def begin(self, durable: bool = True, remember: bool = False) -> MemoryTransaction:
        self._draft = deepcopy(self._tables)
        return MemoryTransaction(self._draft)

    def commit(self) -> None:
        if self._draft is not None:
            self._tables, self._draft = self._draft, None

    def flush(self) -> None:
        pass

    def rollback(self, error: BaseException | None = None) -> None:
        self._draft = None

    def close(self) -> None:
        pass


class MemoryReader:
    def __init__(self, tables: _Tables) -> None:
        self._t = tables

    def load(self, run: str) -> Run | None:
        return self._folded(run, new_run, apply)  # type: ignore[no-any-return]

    def load_repo(self) -> Repo:
        return self._folded(REPO, new_repo, apply_repo) or new_repo()

    def _folded(self, run: str, new: Any, apply_event: Any) -> Any:
        seq, fold, text = self._t.states.get(run, (0, 0, ""))
        seq, state = (seq, loads(text)) if fold == FOLD_VERSION else (0, new())
        for event in self.events(run, seq):
            try:
                apply_event(state, event)
            except KeyError as missing:
                raise unknown_event(run, event, missing) from None
        return state if state["version"] else None

    def version(self, run: str) -> int:
        return len(self._t.events.get(run, ()))

    def events(self, run: str, after: int = 0) -> Iterator[Json]:
        for text, _, _ in self._t.events.get(run, [])[after:]:
            yield upgrade(loads(text), run)

    def has_key(self, run: str, key: str) -> bool:
        return (run, key) in self._t.keys

    def runs(self, *, dialect: str = "", limit: int = -1) -> list[Json]:
        rows = sorted(((c, i, d, shown) for i, (c, d, shown) in self._t.cards.items() if i != REPO), key=lambda r: r[1])
        rows.sort(key=lambda r: r[0], reverse=True)
        chosen = [deepcopy(shown) for _, _, names, shown in rows if not dialect or f",{dialect}," in names]
        return chosen if limit < 0 else chosen[:limit]

    def open_runs(self) -> list[tuple[str, str]]:
        open_in = {run: shown.get("open_in") for run, (_, _, shown) in self._t.cards.items()}
        return sorted((run, tree) for run, tree in open_in.items() if tree is not None)

    def renders(self, path: str, limit: int = _KEEP_BODIES) -> list[Render]:
        return self._t.renders.get(path, [])[: -limit - 1 : -1]

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

    def blob(self, sha: str) -> bytes | None:
        return self._t.blobs.get(sha)

    def note(self, name: str) -> str | None:
        return self._t.notes.get(name)

    def search(self, words: str, limit: int) -> list[Json]:
        wanted = words.lower().split()
        every = [p for made in self._t.passages.values() for p in made]
        return [p for p in every if all(w in (p["heading"] + " " + p["text"]).lower() for w in wanted)][:limit]


class MemoryTransaction(MemoryReader):
    def append(self, run: str, expected: int, events: list[Any], state: Any) -> None:
        rows = self._t.events.setdefault(run, [])
        if len(rows) != expected:
            raise Conflict(
                "stale-version", f"run {run} is at {len(rows)}, not at {expected}", "read it again", found=len(rows)
            )
        chain = rows[-1][2] if rows else _EMPTY_CHAIN
        for event in events:
            key = event.get("key")
            if key is not None and (run, key) in self._t.keys:
                raise Conflict("duplicate-key", f"run {run} has an event with key {key!r} already")
            if key is not None:
                self._t.keys.add((run, key))
            text = dumps(event)
            digest = sha256(text.encode()).digest()
            chain = sha256(chain + digest).digest()
            rows.append((text, digest, chain))
        self._t.states[run] = (len(rows), FOLD_VERSION, dumps(state))
        created = self._t.cards[run][0] if run in self._t.cards else state.get("created_at", "")
        self._t.cards[run] = (created, f",{','.join(state.get('dialects', ()))},", card(state))

    def remember(self, path: str, render: Render) -> None:
        made = self._t.renders.setdefault(path, [])
        made.append(render)
        if len(made) > _KEEP_BODIES:
            sha, _, run, seq = made[-_KEEP_BODIES - 1]
            made[-_KEEP_BODIES - 1] = (sha, None, run, seq)

    def append_log(self, path: str, text: bytes) -> None:
        self._t.logs.setdefault(path, []).append(text)

    def reset_log(self, path: str, text: bytes) -> None:
        self._t.logs[path] = [text]

    def put_blob(self, sha: str, body: bytes) -> None:
        self._t.blobs.setdefault(sha, body)

    def put_note(self, name: str, value: str | None) -> None:
        if value is None:
            self._t.notes.pop(name, None)
        else:
            self._t.notes[name] = value

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
        self._t.passages[(run, source)] = [
            {"run": run, "source": source, "path": path, "heading": heading, "text": text} for heading, text in passages
        ]


class Reading:
    def __init__(self, tables: _Tables) -> None:
        self._tables = tables

    def __enter__(self) -> MemoryReader:
        return MemoryReader(self._tables)

    def __exit__(self, *_: object) -> None:
        pass
