"""The records that the context manager answers with, and what it asks of a workspace. For types only.

Every answer has `status` and, where it is about one task, `task`. An error is an exception of tenuto.errors
whose message is the seed's text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, NotRequired, Protocol, TypedDict

    from tenuto.core.records import Json, Repo, Run
    from tenuto.ports import Journal, Reader, Transaction

    class Files(Protocol):
        root: str | None

        def read(self, path: str) -> bytes | None: ...
        def names(self, path: str) -> list[str]: ...
        def changed_at(self, path: str) -> int | None: ...
        def hash_of(self, path: str) -> str | None: ...
        def stored(self, reader: Reader, sha256: str, limit: int = -1) -> bytes: ...

    class Turn(Protocol):
        workspace: Workspace
        at: str
        tx: Transaction
        seen: dict[str, bytes | None]

        @property
        def repo(self) -> Repo: ...
        def run(self, name: str) -> Run | None: ...
        def do(self, name: str, command: Any) -> list[Any]: ...
        def do_repo(self, command: Any) -> list[Any]: ...
        def store(self, name: str, artifact: str, path: str, content: bytes, **where: Any) -> list[Any]: ...
        def store_file(self, name: str, artifact: str, path: str, source: str, **where: Any) -> list[Any]: ...
        def look(self, name: str, path: str, artifact: str = "") -> None: ...
        def log(self, path: str, text: bytes) -> None: ...

    class Workspace(Protocol):
        root: str
        tree: str
        state: str
        by: str
        journal: Journal
        warnings: list[str]

        def turn(self) -> AbstractContextManager[Turn]: ...
        def warn(self, text: str) -> None: ...
        def files(self, tree: str | None = None) -> Files: ...
        def knowledge(self, name: str) -> Any: ...
        def person(self, what: str, gate: bool, run: Run) -> Json: ...

    class Done(TypedDict):
        """INIT, STORE, RETRIEVE, QUERY, SUMMARY, HISTORY: the generic block."""

        status: str
        task: str
        data: str
        files_touched: list[str]

    class Initialized(Done):
        mode: str
        workflow: str
        created_at: str

    class Stored(Done):
        artifact: str
        path: str
        sha256: str
        size: int
        next: NotRequired[str]

    class Receipt(TypedDict):
        artifact: str
        path: str
        sha256: str
        tokens_in: int
        tokens_left_out: int

    class Retrieved(Done):
        receipts: list[Receipt]
        receipt_lines: list[str]
        missing: list[str]

    class Passage(TypedDict):
        task: str
        path: str
        heading: str
        text: str

    class Answered(Done):
        passages: list[Passage]

    class Summarized(Done):
        manifest: Json

    class History(Done):
        entries: int

    class PhaseStarted(TypedDict):
        status: str
        task: str
        phase_started: str
        started_at: str

    class PhaseEnded(TypedDict):
        status: str
        task: str
        phase_ended: str
        duration_ms: int
        result: str
        running_phases: int

    class Paused(TypedDict):
        status: str
        task: str
        action: str
        reason: str
        recommendations: list[str]
        resume_with: str

    class GateSet(TypedDict):
        status: str
        task: str
        action: str
        gate: str
        prompt: str
        artifacts: list[str]
        resume_with: str

    class Resumed(TypedDict):
        status: str
        task: str
        action: str
        previous_state: str
        decision: str
        continue_from: str
        completed_phases: list[str]

    class Task(TypedDict):
        """One line of LIST."""

        task: str
        mode: str
        workflow: str
        status: str
        created_at: str

    class Measured(TypedDict):
        """METRICS: `report` is the JSON form, `text` what the asked format prints."""

        task: str
        format: str
        report: Json
        text: str
