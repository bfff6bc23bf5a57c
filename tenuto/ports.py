"""What the parts of Tenuto ask of each other: the Protocols. Imported under TYPE_CHECKING only.

Journal     the only truth: events per run, appended by one writer at a time
Dialect     one seed's files as a view of a run
Clock       where times come from (tests set their own)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tenuto.core.records import Json, Repo, Run

Clock = Callable[[], str]
"""Now, as ISO 8601 in UTC with milliseconds."""


Render = tuple[str, bytes | None, str, int]
"""One version of a projected file that we wrote, or were about to write: SHA-256, body (None: too old
to be kept; made again from the journal), run, sequence number."""


class Reader(Protocol):
    """A consistent look at the journal. Never waits for a writer, never makes one wait."""

    def load(self, run: str) -> Run | None: ...
    def load_repo(self) -> Repo: ...
    def version(self, run: str) -> int: ...
    def events(self, run: str, after: int = 0) -> Iterator[Json]: ...
    def has_key(self, run: str, key: str) -> bool: ...
    def runs(self, *, dialect: str = "", limit: int = -1) -> list[Json]: ...
    def open_runs(self) -> list[tuple[str, str]]: ...
    def renders(self, path: str, limit: int = 8) -> list[Render]: ...
    def render_of(self, sha: str) -> tuple[str, Render] | None: ...
    def projected(self) -> list[tuple[str, str, str]]: ...
    def log_length(self, path: str) -> int: ...
    def logs(self) -> list[tuple[str, int]]: ...
    def log_text(self, path: str) -> Iterator[bytes]: ...
    def log_end(self, path: str) -> bytes: ...
    def blob(self, sha256: str) -> bytes | None: ...
    def note(self, name: str) -> str | None: ...
    def search(self, words: str, limit: int) -> list[Json]: ...


class Transaction(Reader, Protocol):
    """The one writer. Everything it did is committed at the end of the block, or nothing is."""

    def append(self, run: str, expected: int, events: list[Any], state: Any) -> None: ...
    def remember(self, path: str, render: Render) -> None: ...
    def append_log(self, path: str, text: bytes) -> None: ...
    def reset_log(self, path: str, text: bytes) -> None: ...
    def put_blob(self, sha256: str, body: bytes) -> None: ...
    def put_note(self, name: str, value: str | None) -> None: ...
    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None: ...


class Journal(Protocol):
    """`write()` is lock, begin, commit, unlock, flush in one; a Turn shows files between commit and unlock."""

    directory: str

    def write(self) -> AbstractContextManager[Transaction]: ...
    def read(self) -> AbstractContextManager[Reader]: ...
    def lock(self) -> None: ...
    def unlock(self) -> None: ...
    def begin(self, durable: bool = True, remember: bool = False) -> Transaction:
        """`durable=False`: the commit survives a crash of the process; one of the machine only after `flush`.

        `remember`: one of many turns of a driver, which need not look again at what only they have changed.
        """

    def flush(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self, error: BaseException | None = None) -> None:
        """`error`: why. A store's own kind of error is raised again as one of ours."""



class Dialect(Protocol):
    """One seed's files. It translates; every rule is in core/."""

    name: str
    missing: str
    """What becomes of a state file that is gone, empty or full of NULs: `rewrite` or `refuse`."""

    def api(self, workspace: Any) -> Any:
        """The commands of this dialect on an opened repository: `workspace.<name>`."""

    def paths(self, run: Run, repo: Repo) -> list[str]:
        """The state files of this run, by path below the repository."""

    def render(self, run: Run, repo: Repo) -> dict[str, bytes]:
        """What stands in them."""

    def read(self, run: Run, path: str, before: bytes, after: bytes) -> list[Any]:
        """Someone changed `before` into `after`: the commands that say the same, or Refused.

        Keys that we keep but do not know travel in `{"do": "AbsorbEdit", "extra": {...}}`.
        """

    def log(self, run: Run, events: list[Any]) -> dict[str, bytes]:
        """What these events add to append-only files."""
