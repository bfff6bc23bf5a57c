"""What can be asked of a run: one TypedDict per command, told apart by `do`.

Imported under TYPE_CHECKING only (see records.py). `at` (the caller's clock) and `by` are
stamped on by whoever sends the command; core/ reads no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict

from tenuto.core.records.run import (
    Amounts,
    Done,
    Driver,
    Ended,
    Evidence,
    IndexEntry,
    Json,
    Limits,
    MemoryEntry,
    Order,
    Param,
    ParamValue,
    PipelineRef,
    PlannedItem,
    Receipt,
    Said,
    ScheduledStep,
    Shown,
    StepStatus,
    Usage,
    Wanted,
)


class Asked(TypedDict):
    at: NotRequired[str]
    by: NotRequired[str]
    key: NotRequired[str]  # the same key again is the same request again: answered, not repeated
    reported_at: NotRequired[str]  # when it happened, as its sender says; shown, never reckoned with


class StartRun(Asked):
    do: Literal["StartRun"]
    run: str
    name: str
    pipeline: PipelineRef
    request: NotRequired[str]
    summary: NotRequired[str]
    mode: NotRequired[str]
    driver: NotRequired[Driver]
    dialects: NotRequired[dict[str, Json]]
    order: NotRequired[Order]
    schedule: NotRequired[list[ScheduledStep]]
    evidence: NotRequired[dict[str, Evidence]]
    settings: NotRequired[Json]


class Adopt(Asked):
    do: Literal["Adopt"]
    dialect: str
    path: str
    sha256: str
    state: Json


class StartStep(Asked):
    do: Literal["StartStep"]
    step: str
    item: NotRequired[str | None]
    iteration: NotRequired[int]


class EndStep(Asked):
    do: Literal["EndStep"]
    step: str
    item: NotRequired[str | None]
    status: Literal["success", "failed"]
    verdict: NotRequired[str | None]
    summary: NotRequired[str]


class SkipStep(Asked):
    """Leave a step of the schedule out. One that needs a person's approval is never left out."""

    do: Literal["SkipStep"]
    step: str
    reason: NotRequired[str]


class Advance(Asked):
    """Leave the current step of a run that has an order, for the next one (the only way forward)."""

    do: Literal["Advance"]
    to: NotRequired[str | None]  # where the caller thinks this leads; another step is refused
    facts: NotRequired[dict[str, Json]]  # per required file: exists, empty, parses, recorded
    skip: NotRequired[list[str]]  # steps that this run leaves out


class CheckEvidence(Asked):
    """Is there what the next stage needs? A failed check blocks the run."""

    do: Literal["CheckEvidence"]
    gate: str
    facts: dict[str, Json]


class DispatchAttempt(Asked):
    do: Literal["DispatchAttempt"]
    attempt: str
    step: NotRequired[str]
    role: str
    task: NotRequired[str]
    agent: NotRequired[str]
    item: NotRequired[str | None]
    iteration: NotRequired[int]
    number: NotRequired[int]
    summary: NotRequired[str]
    reserved: NotRequired[Amounts]
    extra: NotRequired[Json]


class Dispatched(TypedDict):
    """One attempt of DispatchAttempts: what DispatchAttempt says of it."""

    attempt: str
    role: str
    step: NotRequired[str]
    task: NotRequired[str]
    agent: NotRequired[str]
    item: NotRequired[str | None]
    iteration: NotRequired[int]
    number: NotRequired[int]
    summary: NotRequired[str]
    extra: NotRequired[Json]


class DispatchAttempts(Asked):
    """Several that todo() asks for at the same moment; each as in DispatchAttempt."""

    do: Literal["DispatchAttempts"]
    attempts: list[Dispatched]


class StartAttempt(Asked):
    do: Literal["StartAttempt"]
    attempt: str
    extra: NotRequired[Json]


class FinishAttempt(Asked):
    do: Literal["FinishAttempt"]
    attempt: str
    status: Ended
    verdict: NotRequired[str | None]
    summary: NotRequired[str]
    said: NotRequired[Said]  # the agent's own word, where another verdict counts; verdict and summary otherwise
    receipt: NotRequired[Receipt]
    usage: NotRequired[Usage]
    extra: NotRequired[Json]
    parked_until: NotRequired[str]  # verdict PARKED: the agent may not work before then; no try is used up
    others: NotRequired[bool]  # verdict PARKED: another agent takes over, and the run does not wait


class LoseAttempt(Asked):
    do: Literal["LoseAttempt"]
    attempt: str
    reason: str
    ran: NotRequired[bool]


class PlanItems(Asked):
    do: Literal["PlanItems"]
    items: dict[str, Json]
    waves: NotRequired[list[list[str]]]


class ChangeItem(Asked):
    do: Literal["ChangeItem"]
    item: str
    status: StepStatus
    files: NotRequired[list[str]]


class OpenGate(Asked):
    do: Literal["OpenGate"]
    name: str
    prompt: str
    options: NotRequired[list[str]]
    shown: NotRequired[list[Shown]]
    completes: NotRequired[bool]
    fields: NotRequired[dict[str, Param]]


class DecideGate(Asked):
    do: Literal["DecideGate"]
    decision: str  # approve, reject, revise
    who: str
    gate: NotRequired[str]  # the one that was seen; another one by now voids the decision
    feedback: NotRequired[str]
    answers: NotRequired[Mapping[str, object]]  # by field, of an approval; decide() checks them
    shown: NotRequired[list[Shown]]  # what the artifacts are now; another hash, or none, voids an approval
    proof: NotRequired[Json]


class Checkpoint(Asked):
    """A person's word on the current step of a run that has an order: an approval leads to the next step, or stays."""

    do: Literal["Checkpoint"]
    step: str
    approved: bool
    who: str
    stays: NotRequired[
        bool | None
    ]  # an approval of what was done so far; None: it stays while steps of the work are open
    facts: NotRequired[dict[str, Json]]  # as in Advance
    feedback: NotRequired[str]
    proof: NotRequired[Json]


class Pause(Asked):
    do: Literal["Pause"]
    reason: str
    kind: NotRequired[str]
    step: NotRequired[str | None]
    feedback: NotRequired[str]
    recommendations: NotRequired[list[str]]


class Resume(Asked):
    do: Literal["Resume"]
    decision: NotRequired[str]  # retry, reject
    early: NotRequired[bool]  # a parked run, before its time


class Park(Asked):
    do: Literal["Park"]
    until: str
    reason: str


class Fail(Asked):
    do: Literal["Fail"]
    error: str
    step: NotRequired[str | None]
    context: NotRequired[object]


class Finish(Asked):
    do: Literal["Finish"]
    outcome: NotRequired[Done]


class Cancel(Asked):
    do: Literal["Cancel"]
    reason: NotRequired[str]


class Stop(Asked):
    do: Literal["Stop"]
    reason: NotRequired[str]


class PickUp(Asked):
    do: Literal["PickUp"]
    session: NotRequired[str]


class Block(Asked):
    do: Literal["Block"]
    reason: str
    stage: NotRequired[str | None]


class Unblock(Asked):
    do: Literal["Unblock"]


class RecordReview(Asked):
    """A review's answer on a step; the policy decides: on, fix, restart the stage, or blocked."""

    do: Literal["RecordReview"]
    step: str
    review: object  # as the reviewer wrote it
    sha256: NotRequired[str]  # of the file it stands in


class CountReview(Asked):
    do: Literal["CountReview"]
    step: str
    fix_attempts: NotRequired[int]
    dispatch_retries: NotRequired[int]


class RecordCoverage(Asked):
    do: Literal["RecordCoverage"]
    step: str
    percent: float | None  # None: no figure, which is below every threshold
    met: NotRequired[bool]  # False: not enough, by somebody's word


class RestartStage(Asked):
    do: Literal["RestartStage"]
    stage: str
    reason: str
    extra: NotRequired[Json]


class StoreArtifact(Asked):
    do: Literal["StoreArtifact"]
    name: str
    path: str
    sha256: str
    size: int
    step: NotRequired[str | None]
    attempt: NotRequired[str | None]


class WriteMemory(Asked):
    do: Literal["WriteMemory"]
    kind: Literal["decisions", "lessons", "updates"]
    entries: list[MemoryEntry]


class WriteIndex(Asked):
    """Memory's list of artifacts: the same command, with entries of its own."""

    do: Literal["WriteMemory"]
    kind: Literal["index"]
    entries: list[IndexEntry]


class PruneMemory(Asked):
    do: Literal["PruneMemory"]
    keep: list[str]


class InvalidateMemory(Asked):
    do: Literal["InvalidateMemory"]
    steps: list[str]
    reason: str


class CleanMemory(Asked):
    do: Literal["CleanMemory"]


class SetFlags(Asked):
    do: Literal["SetFlags"]
    flags: Json


class RecordCommit(Asked):
    do: Literal["RecordCommit"]
    step: str
    hash: str
    message: str
    extra: NotRequired[Json]


class SaveContext(Asked):
    do: Literal["SaveContext"]
    context: Json
    reason: NotRequired[str]


class RestoreContext(Asked):
    do: Literal["RestoreContext"]
    session: NotRequired[str]


class RecordAnswers(Asked):
    do: Literal["RecordAnswers"]
    answers: Json


class ChangeSettings(Asked):
    do: Literal["ChangeSettings"]
    changes: Json


class ChangeBudget(Asked):
    do: Literal["ChangeBudget"]
    limits: Limits
    steps: NotRequired[dict[str, Limits]]


class ChangeDriver(Asked):
    do: Literal["ChangeDriver"]
    driver: Driver
    pipeline: NotRequired[PipelineRef]


class ShowIn(Asked):
    do: Literal["ShowIn"]
    dialect: str
    place: Json


class BindSession(Asked):
    do: Literal["BindSession"]
    session: str


class AbsorbEdit(Asked):
    do: Literal["AbsorbEdit"]
    dialect: str
    path: str
    sha256: str
    extra: NotRequired[Json]
    drop: NotRequired[list[list[str]]]


class Note(Asked):
    do: Literal["Note"]
    text: str
    extra: NotRequired[Json]


class MakeCurrent(Asked):
    do: Literal["MakeCurrent"]
    run: str | None


class OwnFile(Asked):
    do: Literal["OwnFile"]
    path: str
    run: str | None


class Engage(Asked):
    """Bind a checked pipeline (handed to decide) to the run, and let todo() say what is to be done."""

    do: Literal["Engage"]
    pipeline: PipelineRef
    driver: NotRequired[Literal["engine", "guided"]]
    switches: NotRequired[dict[str, bool]]
    params: NotRequired[dict[str, ParamValue]]
    start_at: NotRequired[str]
    approved: NotRequired[list[str]]  # with start_at: the gates that stand approved (approvals.standing)
    settings: NotRequired[Json]


class BeginVisit(Asked):
    do: Literal["BeginVisit"]
    files: NotRequired[dict[str, bool]]  # what the step's condition asks about files (conditions.files)


class RecordAction(Asked):
    do: Literal["RecordAction"]
    action: str
    detail: NotRequired[Json]


class Finding(TypedDict):
    """What a reviewer or a person wants changed; `file`: where, if it says so."""

    text: str
    file: NotRequired[str | None]


class PlanVisit(Asked):
    """What the plan says, as read: core chooses the items of this visit and arranges them."""

    do: Literal["PlanVisit"]
    items: list[PlannedItem]
    findings: NotRequired[list[Finding]]
    problem: NotRequired[str]  # the plan cannot be read or carried out
    notes: NotRequired[list[str]]  # what was not understood, left out or dropped when it was read


class Conclude(Asked):
    """Everything in this visit has ended: decide its outcome and what follows."""

    do: Literal["Conclude"]
    files: NotRequired[dict[str, bool]]  # what conditions of its routes ask about
    changed: NotRequired[list[str]]  # at a gate: what is another by now than what was decided on


class RetryStep(Asked):
    """A person asks for a step again: the run goes back to it and on from there."""

    do: Literal["RetryStep"]
    step: str
    approved: NotRequired[list[str]]  # the gates that stand approved (approvals.standing)


class Fork(Asked):
    """This new run goes on from a step of another: what lies before it counts as done."""

    do: Literal["Fork"]
    source: str
    at_step: str
    at_version: int
    approved: list[str]  # the gates that stand approved in the source, and are carried over
    answers: NotRequired[dict[str, dict[str, ParamValue]]]  # of these, by the ids of their steps


Command = (
    StartRun
    | Adopt
    | StartStep
    | EndStep
    | SkipStep
    | Advance
    | CheckEvidence
    | DispatchAttempt
    | DispatchAttempts
    | StartAttempt
    | FinishAttempt
    | LoseAttempt
    | PlanItems
    | ChangeItem
    | OpenGate
    | DecideGate
    | Checkpoint
    | Pause
    | Resume
    | Park
    | Fail
    | Finish
    | Cancel
    | Stop
    | PickUp
    | Block
    | Unblock
    | RecordReview
    | CountReview
    | RecordCoverage
    | RestartStage
    | StoreArtifact
    | WriteMemory
    | WriteIndex
    | PruneMemory
    | InvalidateMemory
    | CleanMemory
    | SetFlags
    | RecordCommit
    | SaveContext
    | RestoreContext
    | RecordAnswers
    | Engage
    | BeginVisit
    | RecordAction
    | PlanVisit
    | Conclude
    | RetryStep
    | Fork
    | ChangeSettings
    | ChangeBudget
    | ChangeDriver
    | ShowIn
    | BindSession
    | AbsorbEdit
    | Note
)


class QueueRequest(Asked):
    """`schedule` and `due`: a schedule asks for it at this time. The same time is never queued twice."""

    do: Literal["QueueRequest"]
    wanted: Wanted
    schedule: NotRequired[str]
    due: NotRequired[str]


class BeginRequest(Asked):
    do: Literal["BeginRequest"]
    entry: str
    run: str


class RefuseRequest(Asked):
    do: Literal["RefuseRequest"]
    entry: str
    why: str
    version: NotRequired[int]  # of the run that it began


class RenewRequest(Asked):
    do: Literal["RenewRequest"]
    entry: str


class EndRequest(Asked):
    do: Literal["EndRequest"]
    entry: str
    status: str


class DropRequest(Asked):
    do: Literal["DropRequest"]
    entry: str
    reason: NotRequired[str]


class KeepSchedule(Asked):
    """A schedule as the settings have it now; a new or changed one counts from `at` on."""

    do: Literal["KeepSchedule"]
    schedule: str
    every: str
    zone: str


class DropSchedule(Asked):
    do: Literal["DropSchedule"]
    schedule: str


QueueCommand = (
    QueueRequest | BeginRequest | RefuseRequest | RenewRequest | EndRequest | DropRequest | KeepSchedule | DropSchedule
)
RepoCommand = MakeCurrent | OwnFile | ChangeSettings | QueueCommand
