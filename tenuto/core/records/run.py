"""What a run is: the records that `fold` yields (events.py: what can happen; commands.py: what can be asked).

Imported under TYPE_CHECKING only: `typing` costs a hook more than the interpreter's own
start. At run time every record is a plain dict, so unknown keys survive a round trip.

    Run    all events of one run, folded
    Repo   all events of the repository's own small stream, folded
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Items = Literal["", "due", "failing", "affected", "all"]
Driver = Literal["engine", "guided", "manual"]
Order = Literal["any", "open", "strict"]
Ended = Literal["completed", "failed", "blocked"]
Done = Literal["completed", "poc-complete", "graduated"]
Unit = Literal["attempts", "tokens", "micro_usd", "wall_clock"]
Status = Literal[
    "created",
    "running",
    "paused",
    "waiting_gate",
    "parked",
    "stopped",
    "blocked",
    "restarting",
    "completed",
    "failed",
    "cancelled",
    "poc-complete",
    "graduated",
]
ShownStatus = Literal[
    Status, "completed with failures", "poc-complete with failures", "graduated with failures"
]  # what everybody is told; the status itself is what rules ask for
StepStatus = Literal["pending", "running", "completed", "failed", "skipped"]
Verdict = Literal["DONE", "NEEDS_REVISION", "ERROR"]
Json = dict[str, Any]
ParamValue = str | int | float | bool | list[str]
ParamType = Literal["text", "number", "flag", "choice", "several", "file", "list"]
Amounts = dict[str, float]  # by unit; whole numbers, but for what an agent reports in a unit of its own
Limits = dict[str, int | None]  # by unit; None: no limit
Usage = dict[str, Any]  # what an attempt reports: amounts by unit, and what its agent tells besides (its model)


# ---- the run ---------------------------------------------------------------------------------------


class CoverageRounds(TypedDict):
    """Where a step goes back to when coverage is too low, and how often."""

    back_to: str
    at_most: NotRequired[int]


class ScheduledStep(TypedDict):
    """One step of a run that has an order. Without a schedule any step name is accepted."""

    step: str
    stage: NotRequired[str]
    name: NotRequired[str]
    type: NotRequired[str]
    coverage: NotRequired[CoverageRounds]
    approval: NotRequired[bool]  # leaving this step needs a person's decision


class Evidence(TypedDict):
    """What must exist before the next stage may begin."""

    required: list[str]
    step: str


class StepState(TypedDict):
    status: StepStatus
    iteration: int
    verdict: str | None
    reason: NotRequired[str]  # skipped: why


class Leg(TypedDict):
    """Where a run goes next: one step of its way, and how it is to be done there. A pipeline gives the first four."""

    step: str
    mode: str  # agent steps: which of step["modes"]; "" the plain seat
    only: list[str]  # clusters: only these seats; [] all
    items: Items  # waves: which items; "" for other kinds
    findings: NotRequired[list[str]]  # outputs of the step that sent the run here
    feedback: NotRequired[str]  # what a person wants changed
    without: NotRequired[list[str]]  # of a cluster: members whose condition did not hold when the visit began
    again: NotRequired[list[str]]  # the seats that run again, the aggregator among them
    revises: NotRequired[bool]  # the first leg of a way back
    kept: NotRequired[dict[str, SeatState]]  # by seat: answers that still count


class Visit(TypedDict):
    """One visit of one step: never merged with another, so retries and loops stay visible."""

    step: str
    item: str | None
    iteration: int
    status: Literal["running", "success", "failed", "skipped"]
    started_at: str
    ended_at: str | None
    duration_ms: int | None
    retries: int
    closed: int | None  # counts up: the order in which visits ended, whatever the clocks said


class FileState(TypedDict):
    sha256: str  # "": the file is larger than anything that can be kept
    size: int
    written: int  # nanoseconds, as the file system has it


class CheckResult(TypedDict):
    """A command of the project that the engine ran itself."""

    name: NotRequired[str]
    command: str
    exit: int | None
    reason: str  # "": it passed
    log: str
    tail: str


class Leftover(TypedDict):
    """A process that outlived its agent, and was ended."""

    pid: int
    name: str


class Receipt(TypedDict, total=False):
    """What an attempt really did. An engine fills in all that it looks at; other drivers tell what they know."""

    problem: str  # the first claim that is not true; "" where there is none
    outputs: dict[str, FileState]
    checks: list[CheckResult]
    touched: list[str]
    severities: list[str]
    answer: Json | None
    result: (
        object  # the structured result, checked against its schema; not there where none was asked for, or none fits
    )
    merged: str  # the commit; "": no code changed
    conflict: str
    kept: str  # the branch that keeps what was not merged
    starts: int
    duration_ms: int
    leftover: list[Leftover]


class Said(TypedDict):
    """What an agent says of its own work."""

    verdict: str | None
    summary: str


class Found(TypedDict):
    """What is left of it: the verdict that counts, and the first claim that was not true."""

    verdict: str | None
    problem: str


class Attempt(TypedDict):
    step: str
    role: str
    agent: str
    task: str
    item: str | None
    iteration: int
    number: int
    status: Literal["dispatched", "running", "completed", "failed", "blocked", "lost"]
    verdict: str | None
    summary: str
    started_at: str
    ended_at: str | None
    usage: Usage
    reserved: Amounts
    receipt: Receipt
    said: Said | None  # None: it has not ended, or was recorded before this was kept
    found: Found | None  # None: it has not ended
    extra: Json


class Item(TypedDict):
    title: str
    files: list[str]
    depends_on: list[str]
    agent: str
    status: Literal["pending", "running", "completed", "failed", "skipped"]
    extra: Json


class PlannedItem(TypedDict):
    """One unit of implementation work, as the plan has it."""

    id: str
    title: str
    files: list[str]
    depends_on: list[str]
    agent: str | None  # as written; None where the plan names none
    wave: int | None  # as written, from 1; None where none was written
    description: str
    effort: str | None
    lines: int | None
    file_count: NotRequired[int]  # where a plan says how many files, but not which
    source: NotRequired[str]  # the item's own file
    digest: NotRequired[str]  # of everything the plan says about it, its wave apart
    key: NotRequired[str]  # of an element of a list: what it is called in its step
    step: NotRequired[str]  # whose list it is in
    fields: NotRequired[dict[str, ParamValue]]


class Shown(TypedDict):
    path: str
    sha256: str | None


class Param(TypedDict):
    """What a run may be told besides its request, or a person at a gate."""

    type: ParamType
    choices: list[str]  # of a choice, and of several
    default: ParamValue | None  # None: somebody must say it
    required: bool  # False: there may be no value
    description: str
    fixed: NotRequired[bool]  # True: its value is the pipeline's own, and nobody can say otherwise


class AskedField(Param):
    """A field of a gate, with its name."""

    name: str


class Gate(TypedDict):
    id: str
    name: str
    prompt: str
    options: list[str]
    shown: list[Shown]
    opened_at: str
    completes: bool  # an approval ends the run
    resting: Status  # the status that an approval goes back to
    fields: NotRequired[dict[str, Param]]  # what an approval must answer; a gate without a form has none


class Decision(TypedDict):
    gate: str
    name: str
    step: str | None
    decision: str
    approved: bool
    feedback: str
    who: str
    at: str
    proof: Json
    answers: NotRequired[dict[str, ParamValue]]  # of an approval, where the gate has a form
    stays: NotRequired[bool]  # an approval of what was done so far: it leads nowhere
    attempts: NotRequired[int]  # how many attempts there were by then; an adopted decision does not know


class Pause(TypedDict):
    kind: str
    reason: str
    step: str | None
    attempts: int
    feedback: str
    until: str  # parked: the time at which it goes on; "" otherwise
    question_of: str  # the attempt that asks a person; "" where none does
    recommendations: list[str]
    resting: Status


class Failure(TypedDict):
    step: str | None
    error: str
    at: str
    context: object


class Block(TypedDict):
    reason: str
    stage: str | None
    missing: list[str]


class Restart(TypedDict):
    stage: str
    reason: str
    at: str
    restart: int


class Artifact(TypedDict):
    path: str
    sha256: str
    size: int
    step: str | None
    attempt: str | None
    at: str
    by: str
    visit: NotRequired[int]  # of a review in a schedule: the visit of its step that it was recorded in; 0: in none


class MemoryEntry(TypedDict):
    who: str
    step: str
    text: str
    invalidated: str | None


class IndexEntry(TypedDict):
    artifact: str
    sections: str
    who: str


class Memory(TypedDict):
    index: list[IndexEntry]
    decisions: list[MemoryEntry]
    lessons: list[MemoryEntry]
    updates: list[MemoryEntry]


class Commit(TypedDict):
    step: str
    hash: str
    message: str
    at: str
    extra: Json


class Account(TypedDict):
    """What may be spent, what is, and what is set aside for attempts under way; by unit (see budget.py)."""

    limits: Limits
    spent: Amounts
    reserved: Amounts
    busy_ms: int  # how long at least one attempt was under way


class Budget(Account):
    busy_since: str | None
    dearest: Amounts  # by unit, the most that one attempt has used
    steps: dict[str, Account]


class PipelineRef(TypedDict):
    name: str
    hash: str | None  # None: followed by hand, no checked definition was bound yet


class SeatState(TypedDict):
    """One agent's place in the current visit."""

    tries: int  # how often it was taken
    results: list[str]  # DONE, NEEDS_REVISION, ERROR, LOST, QUESTION: one per attempt that ended
    open: str | None  # the attempt in flight
    severities: list[str]  # of what the last attempt found
    answer: Json | None  # the JSON answer of the last attempt, where the rule needs one


class CurrentVisit(TypedDict):
    """Where an engine-driven run is: one visit of one step, and everything todo() needs to know of it."""

    step: str
    visit: int
    leg: Leg
    findings: list[str]
    done_actions: list[str]  # actions done: "before:choose-review-tier"
    seats: dict[str, SeatState]  # by seat, or seat@item
    planned: bool
    left: list[str]  # chosen items that have not ended, in the order they may start
    busy: list[str]  # of these, the ones with an attempt in flight or between two seats
    group_of: dict[str, int]  # sub-wave of each chosen item
    wave_of: dict[str, int]
    stopped_by: list[str]  # items whose failure stops later waves
    decision: str | None  # a person's word, at a gate


class Wave(TypedDict):
    wave: int
    items: list[str]
    started_at: str | None
    ended_at: str | None


class HandedOver(TypedDict):
    """Outputs that a step hands to a later one, under the name that the pipeline gives them."""

    name: str
    paths: list[str]


class Run(TypedDict):
    id: str
    name: str
    request: str
    summary: str
    created_at: str
    updated_at: str
    reported_at: str  # of the last change, as whoever reported it says; updated_at where they did not
    stopped_at: str | None
    paused_at: str | None
    resumed_at: str | None
    graduated_at: str | None
    pipeline: PipelineRef
    driver: Driver
    dialects: dict[str, Json]
    mode: str
    status: Status
    version: int
    order: Order
    schedule: list[ScheduledStep]
    evidence: dict[str, Evidence]
    position: str | None
    steps: dict[str, StepState]
    visits: list[Visit]
    attempts: dict[str, Attempt]
    items: dict[str, Item]
    waves: list[Wave]
    gate: Gate | None
    decisions: list[Decision]
    pause: Pause | None
    failure: Failure | None
    blocked: Block | None
    restarts: list[Restart]
    reviews: dict[str, Json]
    artifacts: dict[str, Artifact]
    memory: Memory
    flags: Json
    commits: list[Commit]
    resume: Json | None
    answers: Json
    routes: dict[str, int]
    retries: int
    refuted: int  # attempts whose DONE did not stand
    budget: Budget
    in_flight: list[str]  # attempts that were dispatched and have not ended
    sessions: list[str]
    switches: dict[str, bool]
    params: dict[str, ParamValue]  # what the pipeline's parameters are in this run
    files_seen: dict[str, bool]  # what conditions ask about files, as the engine saw it last
    queue: list[Leg]  # where it goes next, in this order
    current_visit: CurrentVisit | None
    last_verdicts: dict[str, dict[str, SeatState]]  # per step what its seats said last
    handed_over: dict[str, HandedOver]  # per step what an earlier one hands to it
    settings: Json
    extra: dict[str, Json]


class Wanted(TypedDict):
    """A request that waits for its turn, with what its run is to begin with. What is empty, the settings say."""

    request: str
    pipeline: str
    name: str
    agent: str
    roles: dict[str, str]
    switches: dict[str, bool]
    params: dict[str, ParamValue]
    limits: Limits
    steps: dict[str, Limits]


EntryStatus = Literal["waiting", "begun", "refused"]


class QueueEntry(TypedDict):
    """One place in the queue. It leaves the queue when its run has ended, or somebody takes it out."""

    id: str
    wanted: Wanted
    status: EntryStatus
    queued_at: str
    by: str
    schedule: str  # "": somebody asked for it
    due: str  # of a schedule: the time it was queued for
    run: str  # begun: its run
    problem: str  # why it was refused, or why nobody can drive its run
    problem_at: int  # begun: the version of its run at that time


class KeptSchedule(TypedDict):
    """What is known of a schedule besides its setting."""

    every: str
    zone: str
    last: str  # no time up to this one is due any more


class Repo(TypedDict):
    """The repository's own stream: which run is current, which run owns which singleton file, which requests wait."""

    version: int
    current: str | None
    owners: dict[str, str]
    settings: Json
    queue: dict[str, QueueEntry]
    queued: int  # how many requests were ever queued: the next one's number
    schedules: dict[str, KeptSchedule]


# ---- what follows from a run -------------------------------------------------------------------------

WaitingKind = Literal["gate", "question", "limit", "pause", "time", "blocked"]
Moment = Literal[
    "asks", WaitingKind, "completed", "completed with failures", "failed", "cancelled"
]  # when people may want to be told


class ShownFile(TypedDict):
    path: str
    sha256: str | None  # of what a person is asked to look at; None: there was nothing to read


class Waits(TypedDict):
    """What a run waits for, in one line."""

    kind: WaitingKind
    since: str | None
    until: str  # kind time: when it may go on
    text: str
    documents: int  # kind gate: how many files it shows
    fields: int  # kind gate: how many an approval may answer


class Waiting(TypedDict):
    kind: WaitingKind
    cause: str  # the recorded kind of a pause: budget, question, failure, person, stopped, ...; else as `kind`
    reason: str  # a gate's prompt, an agent's question, why it paused
    step: str | None
    since: str | None
    until: str  # kind time: when it may go on
    gate: str  # kind gate: its id
    name: str  # kind gate: its name
    options: list[str]  # kind gate: the decisions that it takes
    shown: list[ShownFile]  # kind gate: what the decision is about
    summaries: list[str]  # kind gate: what those say of it who made it
    fields: list[AskedField]  # kind gate: what an approval must answer
    asked_by: str  # kind question: the attempt that asks
    missing: list[str]  # kind blocked: what is not there
    recommendations: list[str]


class OpenEnds(TypedDict):
    """What was not done in a run that finished well. All empty: nothing is open."""

    failed: list[str]  # items
    never_started: list[str]  # items
    not_done: list[str]  # steps that judge the items, and whose last word was no DONE
    checks: list[str]  # commands that the engine ran itself, and that failed when they last ran
