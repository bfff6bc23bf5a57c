"""What can happen to a run: one TypedDict per event, told apart by `type`.

Imported under TYPE_CHECKING only (see records.py). An event is a fact: it is written once
and never changed. `v` is the version of its shape (core/upgrade.py reads older ones), `at` is
ISO 8601 in UTC and comes from the caller's clock, `by` is a person, an attempt, a hook, or
`external`. `key` is present where a repeat must be recognised: the journal keeps one event
per (run, key).
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from tenuto.core.records.run import (
    Amounts,
    Done,
    Driver,
    Ended,
    Evidence,
    Found,
    HandedOver,
    IndexEntry,
    Json,
    Leg,
    Limits,
    MemoryEntry,
    Order,
    Param,
    ParamValue,
    PipelineRef,
    Receipt,
    Said,
    ScheduledStep,
    Shown,
    StepStatus,
    Usage,
    Wanted,
)


class Happened(TypedDict):
    v: int
    at: str
    by: str
    key: NotRequired[str]
    reported_at: NotRequired[str]  # when it happened, as the sender says; earlier events call it `told`


class RunStarted(Happened):
    type: Literal["RunStarted"]
    run: str
    name: str
    request: str
    summary: str
    mode: str
    pipeline: PipelineRef
    driver: Driver
    dialects: dict[str, Json]
    order: Order
    schedule: list[ScheduledStep]
    evidence: dict[str, Evidence]
    settings: Json


class Adopted(Happened):
    """A file that another program wrote became a run: `state` holds the parts of the run it told."""

    type: Literal["Adopted"]
    dialect: str
    path: str
    sha256: str
    state: Json


class StepStarted(Happened):
    type: Literal["StepStarted"]
    step: str
    item: str | None
    iteration: int
    leg: Leg | None  # engine-driven runs: how the step was reached, and with which findings


class StepEnded(Happened):
    type: Literal["StepEnded"]
    step: str
    item: str | None
    status: Literal["success", "failed"]
    verdict: str | None
    summary: str
    because: list[str]  # the members that decided the outcome


class StepSkipped(Happened):
    type: Literal["StepSkipped"]
    step: str
    reason: str


class AttemptDispatched(Happened):
    type: Literal["AttemptDispatched"]
    attempt: str
    step: str
    role: str
    agent: str
    task: str
    item: str | None
    iteration: int
    number: int
    summary: str
    reserved: Amounts
    extra: Json


class AttemptStarted(Happened):
    type: Literal["AttemptStarted"]
    attempt: str
    extra: Json


class AttemptFinished(Happened):
    type: Literal["AttemptFinished"]
    attempt: str
    status: Ended
    verdict: str | None  # the one that counts
    summary: str
    said: Said | None  # the agent's own word; None: of before it was kept
    found: Found
    receipt: Receipt
    usage: Usage
    extra: Json


class AttemptLost(Happened):
    type: Literal["AttemptLost"]
    attempt: str
    reason: str
    ran: bool  # False: it is proven that nothing was started


class ItemsPlanned(Happened):
    type: Literal["ItemsPlanned"]
    items: dict[str, Json]
    waves: list[list[str]]
    groups: list[list[str]]  # what this visit runs, in sub-waves; [] outside a visit
    notes: list[str]  # moved items, passed limits, unknown agents: what a reader of the plan should know
    made: NotRequired[list[str]]  # seats of these items that were done before the engine took over
    dropped: NotRequired[list[str]]  # unfinished items of the plan before that this one does not list any more


class ItemChanged(Happened):
    type: Literal["ItemChanged"]
    item: str
    status: StepStatus
    files: list[str]
    harmless: bool  # a failure that stops nothing


class WaveStarted(Happened):
    type: Literal["WaveStarted"]
    wave: int
    items: list[str]


class WaveEnded(Happened):
    type: Literal["WaveEnded"]
    wave: int


class GateOpened(Happened):
    type: Literal["GateOpened"]
    gate: str
    name: str
    prompt: str
    options: list[str]
    shown: list[Shown]
    completes: bool
    fields: NotRequired[dict[str, Param]]  # what an approval must answer, where the gate has a form


class GateDecided(Happened):
    type: Literal["GateDecided"]
    gate: str
    name: str
    step: str | None
    decision: str
    approved: bool
    feedback: str
    who: str
    proof: Json
    answers: NotRequired[dict[str, ParamValue]]  # of an approval, where the gate has a form
    stays: NotRequired[bool]  # an approval of what was done so far: the step goes on, and ends by another one


class Paused(Happened):
    type: Literal["Paused"]
    kind: str
    reason: str
    step: str | None
    feedback: str
    question_of: str  # the attempt that asks a person; "" where none does
    recommendations: list[str]


class Resumed(Happened):
    type: Literal["Resumed"]
    decision: str


class Parked(Happened):
    type: Literal["Parked"]
    until: str
    reason: str


class Failed(Happened):
    type: Literal["Failed"]
    step: str | None
    error: str
    context: object


class Finished(Happened):
    type: Literal["Finished"]
    outcome: Done


class Cancelled(Happened):
    type: Literal["Cancelled"]
    reason: str


class Stopped(Happened):
    type: Literal["Stopped"]
    reason: str


class PickedUp(Happened):
    """Somebody goes on with a run that was not at rest."""

    type: Literal["PickedUp"]
    session: str


class Blocked(Happened):
    type: Literal["Blocked"]
    reason: str
    stage: str | None
    missing: list[str]


class Unblocked(Happened):
    type: Literal["Unblocked"]
    stage: str | None


class StageRestarted(Happened):
    type: Literal["StageRestarted"]
    stage: str
    reason: str
    to: str
    extra: NotRequired[Json]  # what its sender tells besides


class ReviewRecorded(Happened):
    """What a review of a step said, and how often it was fixed or dispatched again."""

    type: Literal["ReviewRecorded"]
    step: str
    changes: Json


class ArtifactStored(Happened):
    type: Literal["ArtifactStored"]
    name: str
    path: str
    sha256: str
    size: int
    step: str | None
    attempt: str | None


class MemoryWritten(Happened):
    type: Literal["MemoryWritten"]
    kind: Literal["decisions", "lessons", "updates"]
    entries: list[MemoryEntry]


class IndexWritten(Happened):
    """Memory's list of artifacts: the same event, with entries of its own."""

    type: Literal["MemoryWritten"]
    kind: Literal["index"]
    entries: list[IndexEntry]


class MemoryPruned(Happened):
    type: Literal["MemoryPruned"]
    keep: list[str]


class MemoryInvalidated(Happened):
    type: Literal["MemoryInvalidated"]
    steps: list[str]
    reason: str


class MemoryCleaned(Happened):
    type: Literal["MemoryCleaned"]


class FlagSet(Happened):
    type: Literal["FlagSet"]
    flags: Json


class CommitRecorded(Happened):
    type: Literal["CommitRecorded"]
    step: str
    hash: str
    message: str
    extra: Json


class ContextSaved(Happened):
    type: Literal["ContextSaved"]
    context: Json
    reason: str


class ContextRestored(Happened):
    type: Literal["ContextRestored"]
    session: str


class AnswersRecorded(Happened):
    type: Literal["AnswersRecorded"]
    answers: Json


class SettingsChanged(Happened):
    """Objects are merged deeply, everything else is replaced."""

    type: Literal["SettingsChanged"]
    changes: Json


class BudgetChanged(Happened):
    type: Literal["BudgetChanged"]
    limits: Limits
    steps: NotRequired[dict[str, Limits]]  # limits of single steps


class DriverChanged(Happened):
    type: Literal["DriverChanged"]
    driver: Driver
    pipeline: PipelineRef


class ShownIn(Happened):
    type: Literal["ShownIn"]
    dialect: str
    place: Json


class SessionBound(Happened):
    type: Literal["SessionBound"]
    session: str


class ForeignEditAbsorbed(Happened):
    """Someone else changed a projected file. `extra` are the keys that we keep but do not know, `drop` those that
    are gone."""

    type: Literal["ForeignEditAbsorbed"]
    dialect: str
    path: str
    sha256: str
    extra: Json
    drop: list[list[str]]


class Forked(Happened):
    type: Literal["Forked"]
    source: str
    at_step: str
    at_version: int
    approved: NotRequired[list[str]]  # gates whose approval in the source counts here; earlier events tell of none
    answers: NotRequired[dict[str, dict[str, ParamValue]]]  # what was answered there, by the ids of their steps


class Noted(Happened):
    """Something worth a line in the history that changes no rule's answer."""

    type: Literal["Noted"]
    text: str
    extra: Json


class CurrentRunChanged(Happened):
    type: Literal["CurrentRunChanged"]
    run: str | None


class FileOwned(Happened):
    """A file that exists once in a repository is shown from this run (None: from no run)."""

    type: Literal["FileOwned"]
    path: str
    run: str | None


class RouteTaken(Happened):
    """What follows an outcome: the legs to come. `route` is the counter that was used; "" for going on."""

    type: Literal["RouteTaken"]
    route: str
    queue: list[Leg]
    resets: list[str]
    carry: dict[str, HandedOver]
    reason: str


class Engaged(Happened):
    """A checked pipeline was bound to the run: from here todo() says what is to be done."""

    type: Literal["Engaged"]
    pipeline: PipelineRef
    driver: Literal["engine", "guided"]
    switches: dict[str, bool]
    params: dict[str, ParamValue]
    queue: list[Leg]


class FilesSeen(Happened):
    """What the condition of a step asks about files, as it was when the run reached the step."""

    type: Literal["FilesSeen"]
    files: dict[str, bool]  # "exists:PATH" or "changed:PATTERN"


class ActionDone(Happened):
    """The engine itself did something: pruned memory, wrote the request, chose the review tier."""

    type: Literal["ActionDone"]
    action: str
    detail: Json


Event = (
    RunStarted
    | Adopted
    | StepStarted
    | StepEnded
    | StepSkipped
    | AttemptDispatched
    | AttemptStarted
    | AttemptFinished
    | AttemptLost
    | ItemsPlanned
    | ItemChanged
    | WaveStarted
    | WaveEnded
    | GateOpened
    | GateDecided
    | Paused
    | Resumed
    | Parked
    | Failed
    | Finished
    | Cancelled
    | Stopped
    | PickedUp
    | Blocked
    | Unblocked
    | StageRestarted
    | RouteTaken
    | ReviewRecorded
    | ArtifactStored
    | MemoryWritten
    | IndexWritten
    | MemoryPruned
    | MemoryInvalidated
    | MemoryCleaned
    | FlagSet
    | CommitRecorded
    | ContextSaved
    | ContextRestored
    | AnswersRecorded
    | SettingsChanged
    | BudgetChanged
    | DriverChanged
    | ShownIn
    | SessionBound
    | ForeignEditAbsorbed
    | Forked
    | Noted
    | Engaged
    | FilesSeen
    | ActionDone
)


class RequestQueued(Happened):
    """A request waits for its turn. `schedule`: which one asked for it, at the time `due`; empty: somebody did."""

    type: Literal["RequestQueued"]
    entry: str
    wanted: Wanted
    schedule: str
    due: str


class RequestBegun(Happened):
    type: Literal["RequestBegun"]
    entry: str
    run: str


class RequestRefused(Happened):
    """It cannot begin, or (`version` of its run) nobody can drive its run as it stands now."""

    type: Literal["RequestRefused"]
    entry: str
    why: str
    version: int


class RequestRenewed(Happened):
    """What was refused waits for its turn again."""

    type: Literal["RequestRenewed"]
    entry: str


class RequestEnded(Happened):
    """The run that it began is over."""

    type: Literal["RequestEnded"]
    entry: str
    run: str
    status: str


class RequestDropped(Happened):
    type: Literal["RequestDropped"]
    entry: str
    reason: str


class ScheduleKept(Happened):
    """No time of this schedule up to `last` is due any more: it is new, it was changed, or it was left out."""

    type: Literal["ScheduleKept"]
    schedule: str
    every: str
    zone: str
    last: str
    reason: str


class ScheduleDropped(Happened):
    type: Literal["ScheduleDropped"]
    schedule: str


RepoEvent = (
    CurrentRunChanged
    | FileOwned
    | SettingsChanged
    | RequestQueued
    | RequestBegun
    | RequestRefused
    | RequestRenewed
    | RequestEnded
    | RequestDropped
    | ScheduleKept
    | ScheduleDropped
)
