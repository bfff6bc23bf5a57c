"""What can happen to a run: one TypedDict per event, told apart by `type`.

Imported under TYPE_CHECKING only (see records.py). An event is a fact: it is written once
and never changed. `v` is the version of its shape (core/upgrade.py reads older ones), `at` is
ISO 8601 in UTC and comes from the caller's clock, `by` is a person, an attempt, a hook, or
`external`. `key` is present where a repeat must be recognised: the journal keeps one event
per (run, key).
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from tenuto.core.engine_records import ActionDone, Engaged, Happened, RouteTaken
from tenuto.core.records import Evidence, Json, PipelineRef, ScheduledStep, Shown


class RunStarted(Happened):
    type: Literal["RunStarted"]
    run: str
    name: str
    request: str
    summary: str
    mode: str
    pipeline: PipelineRef
    driver: Literal["engine", "guided", "manual"]
    dialects: dict[str, Json]
    order: Literal["any", "open", "strict"]
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
    hop: Json  # engine-driven runs: how the step was reached, and with which findings


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
    reserved: Json
    extra: Json


class AttemptStarted(Happened):
    type: Literal["AttemptStarted"]
    attempt: str
    extra: Json


class AttemptFinished(Happened):
    type: Literal["AttemptFinished"]
    attempt: str
    status: Literal["completed", "failed", "blocked"]
    verdict: str | None
    summary: str
    receipt: Json
    usage: Json
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
    groups: list[list[str]]  # what this stay runs, in sub-waves; [] outside a stay
    notes: list[str]  # moved items, passed limits, unknown agents: what a reader of the plan should know
    made: NotRequired[list[str]]  # seats of those items that need not be taken any more: done before the engine took over


class ItemChanged(Happened):
    type: Literal["ItemChanged"]
    item: str
    status: Literal["pending", "running", "completed", "failed", "skipped"]
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


class Paused(Happened):
    type: Literal["Paused"]
    kind: str
    reason: str
    step: str | None
    last_feedback: str
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
    context: Any


class Finished(Happened):
    type: Literal["Finished"]
    outcome: Literal["completed", "poc-complete", "graduated"]


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
    extra: Json  # what whoever restarted it tells besides


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
    kind: Literal["index", "decisions", "lessons", "updates"]
    entries: list[Json]


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
    limits: Json
    steps: NotRequired[dict[str, Json]]  # limits of single steps


class DriverChanged(Happened):
    type: Literal["DriverChanged"]
    driver: Literal["engine", "guided", "manual"]
    pipeline: PipelineRef


class ShownIn(Happened):
    type: Literal["ShownIn"]
    dialect: str
    place: Json


class SessionBound(Happened):
    type: Literal["SessionBound"]
    session: str


class ForeignEditAbsorbed(Happened):
    """Someone else changed a projected file. `extra` are the keys that we keep but do not know, `drop` those that are gone."""

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


Event = (
    RunStarted | Adopted | StepStarted | StepEnded | StepSkipped | AttemptDispatched | AttemptStarted | AttemptFinished
    | AttemptLost | ItemsPlanned | ItemChanged | WaveStarted | WaveEnded | GateOpened | GateDecided | Paused | Resumed
    | Parked | Failed | Finished | Cancelled | Stopped | PickedUp | Blocked | Unblocked | StageRestarted | RouteTaken | ReviewRecorded
    | ArtifactStored | MemoryWritten | MemoryPruned | MemoryInvalidated | MemoryCleaned | FlagSet | CommitRecorded
    | ContextSaved | ContextRestored | AnswersRecorded | SettingsChanged | BudgetChanged | DriverChanged | ShownIn
    | SessionBound | ForeignEditAbsorbed | Forked | Noted | Engaged | ActionDone
)  # fmt: skip
RepoEvent = CurrentRunChanged | FileOwned | SettingsChanged
