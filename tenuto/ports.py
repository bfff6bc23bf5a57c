"""What the parts of Tenuto ask of each other: the Protocols. Imported under TYPE_CHECKING only.

Journal     the only truth: events per run, appended by one writer at a time (Reader, Transaction: its blocks)
View        one seed's files as a view of a run; what acts in the seed's words is a Dialect (tenuto.dialects.dialect)
Agent       a program that does the work of an attempt
Assignment  what an agent program is told about one attempt
Clock       where times come from (tests set their own)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NotRequired, Protocol, TypedDict, Unpack

from tenuto.core.pipeline.records import Pipeline, Role, Step, Verdict
from tenuto.core.records.action import Boundary, Ending, Launch, Reply
from tenuto.core.records.commands import Command
from tenuto.core.records.events import Event, RepoEvent
from tenuto.core.records.run import Attempt, Json, PipelineRef, Repo, Run, Status, Waits

Clock = Callable[[], str]
"""Now, as ISO 8601 in UTC with milliseconds."""


Render = tuple[str, bytes | None, str, int]
"""One version of a projected file that we wrote, or were about to write: SHA-256, body (None: too old
to be kept; made again from the journal), run, sequence number."""


class RunFigures(TypedDict):
    """What a run has used so far."""

    attempts: int
    refuted: int  # attempts whose DONE did not stand
    micro_usd: float | None  # None: no attempt has reported it
    tokens: float | None
    busy_ms: int


class Progress(TypedDict):
    """How far the items of the step are that the run is in."""

    wave: int
    waves: int
    items: int
    items_ended: int


class RunOutline(TypedDict):
    """What a list of runs shows of one. Summaries that an earlier version wrote have no figures: unknown, not zero."""

    id: str
    name: str
    mode: str
    pipeline: PipelineRef
    created_at: str
    updated_at: str
    graduated_at: str | None
    position: str | None
    summary: str
    driver: Literal["engine", "guided", "manual"]
    dialects: dict[str, Json]
    open_in: str | None  # the work tree of a run that has not ended; "" is the main one
    figures: NotRequired[RunFigures]
    waits: NotRequired[Waits | None]
    progress: NotRequired[Progress | None]
    error: NotRequired[str]  # of a run that failed, the first line of why
    open_ends: NotRequired[int]  # of a run that finished well: how many things were not done


class RunSummary(RunOutline):
    status: Status


class RunFilter(TypedDict, total=False):
    """Which runs a list shows; what is left out asks for nothing."""

    dialect: str
    statuses: Sequence[Status]
    words: str  # stands in its id, name, summary or pipeline, whatever the case
    after: str  # only what comes behind this run in the list


class SearchHit(TypedDict):
    """A piece of searchable text that a search found."""

    run: str
    source: str
    path: str
    heading: str
    text: str
    score: float


class Finding(TypedDict):
    """Something that is not as it should be."""

    severity: str  # damage; edited: by somebody else; behind: ours, but not the newest; newer: not known here
    run: str | None
    where: str
    message: str
    fix: str


class Check(TypedDict):
    """One answer of `tenuto doctor`."""

    status: str  # ok; note: could be better, or will matter one day; problem: is broken, or will be
    name: str
    message: str
    fix: str
    code: str  # of the error behind it, if there is one


class Stamp(TypedDict):
    """When a text was taken out, and by whom."""

    at: str
    by: str


class Redacted(TypedDict):
    """What a redaction changed: runs by name, append-only files as (text before, text now), the rest as counts."""

    runs: list[str]
    events: int
    contents: int
    renders: int
    logs: dict[str, tuple[bytes, bytes]]
    notes: int
    passages: int


class Redaction(Protocol):
    """Which texts are taken out, and what stands in their place."""

    contents: dict[str, bytes]
    """Stored files that are replaced as a whole, by hash."""

    def rename(self, old: str, new: str) -> None:
        """A stored file has another hash from now on: every record that names it names the new one."""

    def text(self, text: str) -> str: ...
    def body(self, body: bytes) -> bytes: ...
    def stands_in(self, body: bytes) -> bool: ...
    def event(self, event: Json, where: str) -> Json: ...


class Importer(Protocol):
    """Takes the records of a backup, one after the other, inside a transaction."""

    shown: set[str]
    """The keys of the state files and artifacts of the runs that were taken."""
    runs: list[str]
    events: int

    def take(self, record: Json) -> None:
        """Damaged, Refused or SchemaSkew where it cannot be taken; the caller rolls back."""

    def finish(self) -> None: ...


class Reader(Protocol):
    """A consistent look at the journal. Never waits for a writer, never makes one wait."""

    def load(self, run: str) -> Run | None: ...
    def load_repo(self) -> Repo: ...
    def version(self, run: str) -> int: ...
    def events(self, run: str, after: int = 0) -> Iterator[Json]: ...
    def has_key(self, run: str, key: str) -> bool: ...
    def runs(self, *, limit: int = -1, **which: Unpack[RunFilter]) -> list[RunSummary]:
        """Newest first; of the same moment, by name. A page of a long list: `limit`, and `after` its last run."""

    def unfinished(self) -> list[RunSummary]:
        """Every run that has not ended, in the same order."""

    def versions(self) -> dict[str, int]:
        """How many events each run has. Compared with an earlier answer: in which runs something has happened."""

    def names(self) -> list[str]:
        """Every run that there is any trace of, the repository's own stream (`@`) last."""

    def open_runs(self) -> list[tuple[str, str]]:
        """(run, work tree) of every run that has not ended."""

    def renders(self, path: str, limit: int = 8) -> list[Render]:
        """Newest first; a negative limit: all."""

    def render_of(self, sha: str) -> tuple[str, Render] | None: ...
    def projected(self) -> list[tuple[str, str, str]]:
        """(key, run, hash) of the newest render of every projected file."""

    def log_length(self, path: str) -> int: ...
    def logs(self) -> list[tuple[str, int]]: ...
    def log_text(self, path: str) -> Iterator[bytes]: ...
    def log_end(self, path: str) -> bytes: ...
    def blob(self, sha256: str) -> bytes | None: ...
    def large_contents(self) -> list[str]:
        """The hashes of large stored files that the store itself keeps: none, where objects/ is the only place."""

    def large(self, sha256: str) -> Iterator[bytes]:
        """One of these in parts; no part where it is not kept. Compared with its hash by whoever takes it."""

    def marker(self, name: str) -> str | None:
        """A small fact that somebody keeps in the journal beside the events, by name."""

    def search(self, words: str, limit: int) -> list[SearchHit]: ...

    def verify_store(self) -> Iterator[Finding]:
        """Does the store itself find its data whole?"""

    def verify_run(self, run: str) -> Iterator[Finding]:
        """Are the events of a run, their chain, its end and what is cached of it what was written?"""

    def verify_contents(self) -> Iterator[Finding]:
        """The same for stored files, renders, append-only files and searchable text."""

    def records(self, run: str | None = None) -> Iterator[Json]:
        """Everything, or all of one run, as records of a backup (stores/records.py)."""

    def stored_by(self, runs: list[str]) -> list[str]:
        """The hashes of every version of every artifact of these runs."""


class Transaction(Reader, Protocol):
    """The one writer. Everything it did is committed at the end of the block, or nothing is."""

    def append(
        self, run: str, expected: int, events: Sequence[Event] | Sequence[RepoEvent], state: Run | Repo
    ) -> None: ...
    def remember(self, path: str, render: Render) -> bool:
        """False where the newest render of this file is the same already: then nothing is kept."""

    def append_log(self, path: str, text: bytes) -> int:
        """How long the file is now."""

    def reset_log(self, path: str, text: bytes) -> None: ...
    def put_blob(self, sha256: str, body: bytes) -> None: ...
    def put_marker(self, name: str, value: str | None) -> None:
        """None takes it away."""

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None: ...

    def rebuild(self, run: str) -> None:
        """Make anew what is cached of a run: its folded state, its summary."""

    def rebuild_index(self) -> None:
        """Make the index of the searchable text anew."""

    def importing(self) -> Importer: ...

    def scrub_event(self, run: str, seq: int, stamp: Stamp) -> tuple[list[str], str | None]:
        """Take all that was said out of one event. Returns the texts, and the hash of the stored file that it names."""

    def redact(self, redaction: Redaction, stamp: Stamp) -> Redacted:
        """Take texts out of everything that is recorded; every chain still verifies."""


class Journal(Protocol):
    """The only truth of a repository. A store keeps this contract: tests/contract/test_journal.py.

    `write()` is lock, begin, commit, unlock, flush in one; a Turn shows files between commit and unlock. Every error
    of the store is raised as one of ours (tenuto/errors.py).
    """

    directory: str
    """The folder in which the workspace keeps its own files beside the journal: objects, attempts, displaced files."""
    location: str
    """Where the journal itself is, for people: a path, or an address."""
    home: str
    """This checkout, as others of the same journal know it; "" where a journal has one checkout only."""
    longest_wait: float | None
    """Seconds, after which who waits for another writer is refused by name; None: until it is done."""

    def exists(self) -> bool:
        """Is there one already? The first commit makes one; to read, or to write in vain, makes none."""

    def write(self) -> AbstractContextManager[Transaction]: ...
    def read(self) -> AbstractContextManager[Reader]: ...
    def lock(self) -> None: ...
    def unlock(self) -> None: ...
    def load(self, run: str) -> Run | None:
        """A look at one run: `read()` and `load` in one."""

    def since(self, run: str, version: int) -> tuple[Run | None, list[Json]]:
        """A run, and what has happened to it since it was at this version."""

    def written(self) -> tuple[dict[str, str], dict[str, str]]:
        """Every file that is written from the journal: append-only ones, as path -> "", and projected ones, by their
        key, with the hash of the newest render."""

    def begin(self, durable: bool = True, remember: bool = False, lock: bool = False) -> Transaction:
        """Under the lock; with `lock` it takes the lock first, and lets it go where it fails.

        `durable=False`: the commit survives a crash of the process; one of the machine only after `flush`.
        `remember`: one of many turns of a driver, which need not look again at what only they have changed.
        """

    def flush(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self, error: BaseException | None = None) -> None:
        """`error`: why. A store's own kind of error is raised again as one of ours."""

    def close(self) -> None: ...

    def hold_open(self, on: bool) -> None:
        """A driver begins to take many turns, or has ended. A store may prepare for that; no result depends on it."""

    def pulse(self) -> str:
        """Has anything been committed since? A cheap token that changes with every commit of any process.

        Compare it with an earlier one of the same opened journal, outside a read block. "" where there is no journal.
        """

    def health(self, former: str = "") -> Iterator[Check]:
        """What about the store could hurt. `former`: a folder where a journal of this repository may have been left."""

    def files(self) -> list[str]:
        """The store's own files on this machine, for a search through their bytes."""

    def logins(self) -> list[str]:
        """Files on this machine that let whoever can read one write to the journal: passwords, private keys."""

    def erase(self) -> None:
        """Under the lock, outside a transaction: nothing that was deleted is left in the store's files."""


class Surroundings(Protocol):
    """What a view may ask about the place where an edit was found."""

    def file(self, path: str) -> bytes | None:
        """The bytes of a plain file below the work tree; None where there is none."""

    def written_at(self, path: str) -> int | None:
        """When a file was last written to, in nanoseconds; None where there is none."""

    def began(self, pid: object) -> str | None:
        """When a process began; None where it has gone, or where this cannot be known."""


class View(Protocol):
    """One seed's files as a view of a run: a module of tenuto.views. It translates; every rule is in core/.

    A view is pure: it reads no file, no clock and no environment. What it needs to know, it is given.
    """

    @property
    def name(self) -> str: ...

    @property
    def missing(self) -> Literal["rewrite", "refuse"]:
        """What becomes of a state file that is gone, empty or full of NULs."""

    @property
    def stand_in(self) -> Mapping[str, str]:
        """By path of a state file: the file that its other writers write first, and then rename."""

    @property
    def dispensable(self) -> tuple[str, ...]:
        """Names of files that a run can do without: trouble with one is said, and stops nothing."""

    def paths(self, run: Run, repo: Repo) -> list[str]:
        """The state files of this run, by path below the repository."""

    def render(self, run: Run, repo: Repo) -> dict[str, bytes]:
        """What stands in them."""

    def read(self, run: Run, path: str, before: bytes, after: bytes, around: Surroundings) -> Iterable[Command]:
        """Another program changed `before` into `after`: the commands that say the same, or Refused.

        Commands are carried out one by one as they come, so that a generator sees the run that each of them led to.
        Keys that we keep but do not know travel in an AbsorbEdit.
        """

    def log(self, run: Run, events: list[Event]) -> dict[str, bytes]:
        """What these events add to append-only files."""


class ViewTable(Protocol):
    """The views by name."""

    def __getitem__(self, name: str, /) -> View: ...
    def __contains__(self, name: object, /) -> bool: ...
    def get(self, name: str, /) -> View | None: ...


class Assignment(Protocol):
    """One attempt, as its agent program sees it."""

    @property
    def name(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def workdir(self) -> str: ...
    @property
    def run(self) -> Run: ...
    @property
    def pipeline(self) -> Pipeline: ...
    @property
    def step(self) -> Step: ...
    @property
    def attempt(self) -> Attempt: ...
    @property
    def role(self) -> Role: ...
    @property
    def item_files(self) -> list[str]: ...
    @property
    def start(self) -> int:
        """The how-many-th start of the attempt."""

    @property
    def earlier(self) -> str:
        """What the agent printed when it was interrupted; "": a fresh start."""

    @property
    def errors(self) -> str:
        """The end of what it wrote to its standard error."""

    def command_line(self) -> list[str]:
        """The program of a command step and its arguments; [] where an agent works."""

    def command_environment(self) -> dict[str, str]: ...
    def verdict_of(self, status: int) -> Verdict:
        """What an exit status of that program means."""

    def prompt(self) -> str: ...
    def going_on(self) -> str:
        """The prompt for an agent that still knows what it was told."""

    def boundary(self) -> Boundary: ...
    def environment(self, outer: dict[str, str], more: list[str]) -> dict[str, str]: ...


class Agent(Protocol):
    """A program that does the work of an attempt. The engine asks nothing else of it."""

    name: str
    """Its spelling, as the journal keeps it."""
    reports: tuple[str, ...]
    """The units whose use it reports: tokens, micro_usd."""
    environment: tuple[str, ...]
    """Patterns of the variables that its program needs."""
    barred: tuple[str, ...]
    """Patterns of variables that it must not see, though `environment` names them."""

    def __init__(self, words: str) -> None:
        """`words`: what stands behind its name and the colon."""

    def program(self, role: Role | None) -> str:
        """The program that it starts."""

    def check(self, role: Role | None) -> None:
        """Refuse a role whose front matter asks for what it cannot do."""

    def can_go_on(self, earlier: str) -> bool:
        """May it take up what it said there? Where not, it starts over."""

    def launch(self, plan: Assignment) -> Launch:
        """What to start for this attempt."""

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        """What came of it. `output`: what the program printed."""

    @staticmethod
    def narrate(line: str) -> list[str]:
        """A line of its output as lines that a person can read; [] where it says nothing worth a line."""
