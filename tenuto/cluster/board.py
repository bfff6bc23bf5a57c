"""What is to be done, who does it, what came of it: the tables of cluster.sql as calls.

    WorkerBoard     register, ready, claim, beat, held, content, report, give_back, leave
    DriverBoard     offer, ended, recorded, cancel, expire, and who drives a run

Every rule is in cluster.sql. Nothing here remembers anything: whoever asks twice gets the answer of the database.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from tenuto.encoding import digest

if TYPE_CHECKING:
    from tenuto.cluster.database import Line

PROTOCOL = 1
"""Raised when a task or a report means something else than before: such workers and drivers do not mix."""

ClaimAnswer = Literal["claimed", "yours", "held", "full", "gone", "unfit", "version", "draining"]
BeatAnswer = Literal["on", "cancel", "over"]
ReportAnswer = Literal["accepted", "repeated", "late"]
Outcome = Literal["reported", "lost", "withdrawn", "unwanted"]


class Claim(NamedTuple):
    answer: ClaimAnswer
    epoch: int
    seconds: float  # that a beat renews it for
    spec: str


class Held(NamedTuple):
    task: str
    epoch: int


class Offer(NamedTuple):
    task: str
    project: str
    run: str
    attempt: str
    pool: str
    spec: str
    contents: list[str]
    labels: list[str]
    priority: int = 0


class End(NamedTuple):
    """How a task ended, as the database keeps it until the journal has it, too."""

    task: str
    attempt: str
    outcome: Outcome
    epoch: int
    why: str
    body: str  # of its report
    spec: str


class WorkerBoard:
    def __init__(self, line: Line, worker: str) -> None:
        self.line = line
        self.worker = worker

    def register(self, pool: str, slots: int, labels: Sequence[str], software: str, host: str) -> float:
        """For how long a lease of this pool is given, in seconds."""
        values = (self.worker, pool, slots, list(labels), PROTOCOL, software, host)
        return float(cast(float, self.line.value("SELECT register(%s, %s, %s, %s, %s, %s, %s)", *values)))

    def ready(self, at_most: int) -> list[str]:
        return [str(name) for (name,) in self.line.rows("SELECT ready(%s, %s)", self.worker, at_most)]

    def claim(self, task: str) -> Claim:
        answer, epoch, seconds, spec = self.line.row("SELECT * FROM claim(%s, %s)", self.worker, task)
        return Claim(
            cast(ClaimAnswer, answer), cast(int, epoch or 0), cast(float, seconds or 0.0), cast(str, spec or "")
        )

    def beat(self, held: Sequence[Held]) -> dict[str, BeatAnswer]:
        tasks, epochs = [one.task for one in held], [one.epoch for one in held]
        found = self.line.rows("SELECT * FROM beat(%s, %s::text[], %s::int[])", self.worker, tasks, epochs)
        return {str(task): cast(BeatAnswer, answer) for task, answer in found}

    def held(self) -> list[Held]:
        return [
            Held(cast(str, task), cast(int, epoch))
            for task, epoch in self.line.rows("SELECT * FROM held(%s)", self.worker)
        ]

    def content(self, held: Held, sha256: str) -> bytes:
        found = self.line.value("SELECT content_of(%s, %s, %s, %s)", self.worker, held.task, held.epoch, sha256)
        return zlib.decompress(cast(bytes, found))

    def report(self, held: Held, body: str) -> ReportAnswer:
        found = self.line.value("SELECT report(%s, %s, %s, %s)", self.worker, held.task, held.epoch, body)
        return cast(ReportAnswer, found)

    def give_back(self, held: Held, reason: str = "", pause: float = 0.0) -> None:
        """`reason`: why it cannot be carried out here. Without one, nothing is held against the task."""
        self.line.rows("SELECT give_back(%s, %s, %s, %s, %s)", self.worker, held.task, held.epoch, reason, pause)

    def leave(self, for_good: bool) -> None:
        self.line.rows("SELECT leave(%s, %s)", self.worker, for_good)


class DriverBoard:
    def __init__(self, line: Line, project: str) -> None:
        self.line = line
        self.project = project

    def keep(self, body: bytes) -> str:
        """A text that several tasks need, by its hash."""
        sha = digest(body)
        if not self.line.rows("UPDATE content SET kept = clock_timestamp() WHERE sha256 = %s RETURNING 1", sha):
            question = "INSERT INTO content VALUES (%s, %s) ON CONFLICT DO NOTHING"
            self.line.rows(question, sha, zlib.compress(body, 6))
        return sha

    def instance(self) -> str:
        """Which tables these are: others, where they were lost and made again."""
        return str(self.line.value("SELECT instance FROM edition"))

    def offer(self, one: Offer) -> bool:
        """False where this attempt was offered before."""
        question = "SELECT offer(%s, %s, %s, %s, %s, %s, %s::text[], %s, %s, %s::text[])"
        values = (one.task, one.project, one.run, one.attempt, one.pool, one.priority, one.labels, PROTOCOL, one.spec)
        return bool(self.line.value(question, *values, one.contents))

    def ended(self, run: str) -> list[End]:
        """What has ended and is not in the journal yet, as far as this database knows, the earliest first."""
        question = """
            SELECT t.id, t.attempt, t.outcome, t.epoch, t.why, coalesce(r.body, ''), t.spec
            FROM task t LEFT JOIN report r ON r.task = t.id
            WHERE t.project = %s AND t.run = %s AND t.state = 'ended' AND NOT t.recorded ORDER BY r.at, t.made"""
        return [
            End(*cast("tuple[str, str, Outcome, int, str, str, str]", row))
            for row in self.line.rows(question, self.project, run)
        ]

    def open(self, run: str) -> dict[str, str]:
        """The attempts of this run that were offered and are not in the journal as ended: waiting, leased, ended."""
        question = "SELECT attempt, state FROM task WHERE project = %s AND run = %s AND NOT recorded"
        return {str(attempt): str(state) for attempt, state in self.line.rows(question, self.project, run)}

    def recorded(self, task: str) -> None:
        """Its end is in the journal: what it said is not needed here any more, only that it was."""
        self.line.rows("UPDATE task SET recorded = true, spec = '', contents = '{}' WHERE id = %s", task)
        self.line.rows("DELETE FROM report WHERE task = %s", task)

    def tidy(self) -> None:
        """Texts that no task needs any more. One that was made a moment ago may be about to be needed."""
        question = """
            DELETE FROM content c WHERE kept < clock_timestamp() - interval '1 hour'
            AND NOT EXISTS (SELECT FROM task t WHERE c.sha256 = ANY (t.contents) AND NOT t.recorded)"""
        self.line.rows(question)

    def cancel(self, task: str) -> None:
        self.line.rows("SELECT cancel(%s)", task)

    def expire(self) -> list[str]:
        return [str(task) for (task,) in self.line.rows("SELECT expire(%s, %s)", self.project, self.line.sight)]

    def drive(self, run: str, holder: str, place: str, seconds: float) -> str:
        """Who drives the run: this holder, where nobody else does, or where the other's time is over."""
        question = "SELECT holder FROM drive(%s, %s, %s, %s, %s)"
        return str(self.line.value(question, self.project, run, holder, place, seconds))

    def let_go(self, run: str, holder: str) -> None:
        self.line.rows("SELECT let_go(%s, %s, %s)", self.project, run, holder)
