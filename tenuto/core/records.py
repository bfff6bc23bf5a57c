"""What a run is: the records that `fold` yields (events.py: what can happen; commands.py: what can be asked).

Imported under TYPE_CHECKING only: `typing` costs a hook more than the interpreter's own
start. At run time every record is a plain dict, so unknown keys survive a round trip.

    Run    all events of one run, folded
    Repo   all events of the repository's own small stream, folded
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Status = Literal[
    "created", "running", "paused", "waiting_gate", "parked", "stopped", "blocked", "restarting",
    "completed", "failed", "cancelled", "poc-complete", "graduated",
]  # fmt: skip
StepStatus = Literal["pending", "running", "completed", "failed", "skipped"]
Verdict = Literal["DONE", "NEEDS_REVISION", "ERROR"]
Json = dict[str, Any]


# ---- the run ---------------------------------------------------------------------------------------


class ScheduledStep(TypedDict):
    """One step of a run that has an order. Without a schedule any step name is accepted."""

    step: str
    stage: NotRequired[str]
    name: NotRequired[str]
    type: NotRequired[str]
    coverage: NotRequired[Json]  # back_to, at_most: where a step goes back to when coverage is too low
    approval: NotRequired[bool]  # leaving this step needs a person's decision


class Evidence(TypedDict):
    """What must exist before the next stage may begin."""

    required: list[str]
    step: str


class StepState(TypedDict):
    status: StepStatus
    iteration: int
    verdict: str | None


class Visit(TypedDict):
    """One stay in a step: never merged with another, so retries and loops stay visible."""

    step: str
    item: str | None
    iteration: int
    status: Literal["running", "success", "failed", "skipped"]
    started_at: str
    ended_at: str | None
    duration_ms: int | None
    retries: int
    closed: int | None  # counts up: the order in which visits ended, whatever the clocks said


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
    usage: Json
    reserved: Json
    receipt: Json
    extra: Json


class Item(TypedDict):
    title: str
    files: list[str]
    depends_on: list[str]
    agent: str
    status: Literal["pending", "running", "completed", "failed", "skipped"]
    extra: Json


class Shown(TypedDict):
    path: str
    sha256: str | None


class Gate(TypedDict):
    id: str
    name: str
    prompt: str
    options: list[str]
    shown: list[Shown]
    opened_at: str
    completes: bool  # an approval ends the run
    resting: Status  # the status that an approval goes back to


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


class Pause(TypedDict):
    kind: str
    reason: str
    step: str | None
    attempts: int
    last_feedback: str
    recommendations: list[str]
    resting: Status


class Failure(TypedDict):
    step: str | None
    error: str
    at: str
    context: Any


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

    limits: Json
    spent: Json
    reserved: Json
    busy_ms: int  # how long at least one attempt was under way


class Budget(Account):
    busy_since: str | None
    dearest: Json  # by unit, the most that one attempt has used
    steps: dict[str, Account]


class PipelineRef(TypedDict):
    name: str
    hash: str | None  # None: followed by hand, no checked definition was bound yet


class SeatState(TypedDict):
    """One agent's place in the current stay."""

    tries: int  # how often it was taken
    results: list[str]  # DONE, NEEDS_REVISION, ERROR, LOST, QUESTION: one per attempt that ended
    open: str | None  # the attempt in flight
    severities: list[str]  # of what the last attempt found
    answer: Json | None  # the JSON answer of the last attempt, where the rule needs one


class Stay(TypedDict):
    """Where an engine-driven run is: one visit of one step, and everything todo() needs to know of it."""

    step: str
    visit: int
    hop: Json
    findings: list[str]
    did: list[str]  # actions done: "before:choose-review-tier"
    seats: dict[str, SeatState]  # by seat, or seat@item
    planned: bool
    left: list[str]  # chosen items that have not ended, in the order they may start
    busy: list[str]  # of these, the ones with an attempt in flight or between two seats
    group_of: dict[str, int]  # sub-wave of each chosen item
    wave_of: dict[str, int]
    stopped_by: list[str]  # items whose failure stops later waves
    decision: str | None  # a person's word, at a gate


class Run(TypedDict):
    id: str
    name: str
    request: str
    summary: str
    created_at: str
    updated_at: str
    told_at: str  # of the last change, as whoever reported it says; updated_at where they did not
    stopped_at: str | None
    paused_at: str | None
    resumed_at: str | None
    graduated_at: str | None
    pipeline: PipelineRef
    driver: Literal["engine", "guided", "manual"]
    dialects: dict[str, Json]
    mode: str
    status: Status
    version: int
    order: Literal["any", "open", "strict"]
    schedule: list[ScheduledStep]
    evidence: dict[str, Evidence]
    position: str | None
    steps: dict[str, StepState]
    visits: list[Visit]
    attempts: dict[str, Attempt]
    items: dict[str, Item]
    waves: list[Json]
    gate: Gate | None
    decisions: list[Decision]
    pause: Pause | None
    failure: Failure | None
    blocked: Block | None
    restarts: list[Restart]
    reviews: dict[str, Json]
    artifacts: dict[str, Artifact]
    memory: Memory
    flags: dict[str, Any]
    commits: list[Commit]
    resume: Json | None
    answers: Json
    routes: dict[str, int]
    retries: int
    budget: Budget
    flying: list[str]  # attempts that were dispatched and have not ended
    sessions: list[str]
    switches: dict[str, bool]
    queue: list[Json]  # hops to come
    stay: Stay | None
    words: dict[str, dict[str, SeatState]]  # per step what its seats said last
    carried: dict[str, Json]  # per step what an earlier one hands to it
    settings: Json
    extra: dict[str, Json]


class Repo(TypedDict):
    """The repository's own stream: which run is current, which run owns which singleton file."""

    version: int
    current: str | None
    owners: dict[str, str]
    settings: Json
