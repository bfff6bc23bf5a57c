"""The records an attempt directory holds. Imported for types only, never at run time.

spec.json      what to run (names of the environment, never its values)
launch.json    who launched, and which supervisor process was started
claim          the one supervisor that may start the agent, or void
started.json   the agent: written without its identity before it starts, then with it
stdout stderr  the agent's output, each bounded
result.json    how it ended; written when nothing of the tree is left
swept.json     what was left by a supervisor that was killed, and is now ended
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class Identity(TypedDict):
    pid: int
    start: str  # in the kernel's ticks since boot
    boot: str
    space: str  # the PID namespace the pid counts in


class Spec(TypedDict):
    attempt: str
    argv: list[str]
    cwd: str
    stdin: str | None  # a file; None reads as empty
    env: dict[str, str]  # complete: the agent gets this, TENUTO_ATTEMPT, and nothing else
    limit: float | None  # seconds from the agent's start
    grace: float  # seconds between SIGTERM and SIGKILL
    output_cap: int  # bytes kept of stdout, and of stderr
    pool: str  # directory of the slots
    cap: int
    cgroup: NotRequired[bool]  # False: do not use one even where we may
    masked: NotRequired[list[str]]  # variables whose values are kept out of its output


class StoredSpec(TypedDict):
    attempt: str
    argv: list[str]
    cwd: str
    stdin: str | None
    env: list[str]
    limit: float | None
    grace: float
    output_cap: int
    pool: str
    cap: int
    cgroup: NotRequired[bool]
    masked: NotRequired[list[str]]


class Launch(TypedDict):
    launcher: Identity | None
    supervisor: Identity | None


class Claim(TypedDict):
    state: Literal["claimed", "void"]
    attempt: str
    at: str
    supervisor: Identity | None  # who voided, where void
    cgroup: str | None


class Hold(TypedDict):
    """What a slot file says while it is held: enough to end the holder's tree without its directory."""

    directory: str
    claim: Claim


class Started(TypedDict):
    at: str
    slot: int
    agent: Identity | None


class Stream(TypedDict):
    bytes: int
    kept: int
    truncated: bool


class Leftover(TypedDict):
    pid: int
    name: str


class Result(TypedDict):
    attempt: str
    exit_code: int | None
    signal: int | None
    timed_out: bool
    cancelled: bool
    error: str | None  # why there is no agent, or what the supervisor could not do
    claimed: str
    started: str | None
    ended: str
    duration: float  # of the agent, in seconds, from a clock that is never set
    stdout: Stream
    stderr: Stream
    leftover: list[Leftover]  # outlived the agent, ended by the supervisor
    survivors: list[Leftover]  # could not be ended; the slot stays taken until they are gone


class Status(TypedDict):
    state: Literal["absent", "launching", "queued", "running", "finished", "lost", "void"]
    directory: str
    stalled: NotRequired[bool]  # launching: nobody is left who would go on; void it or launch again
    supervisor: NotRequired[Identity | None]
    started: NotRequired[Started | None]
    may_have_run: NotRequired[bool]  # lost: False only where the agent certainly never started
    swept: NotRequired[bool]  # lost: what was left of its tree is ended
    result: NotRequired[Result]


class Swept(TypedDict):
    at: str
    ended: list[Leftover]


class Sweep(TypedDict):
    ended: dict[str, list[Leftover]]  # attempt directory -> what was still alive
    unproven: list[str]  # attempt directories with processes that could not be ended or seen


class SlotState(TypedDict):
    slot: int
    state: Literal["free", "held", "unproven"]
    attempt: str | None
    directory: str | None
    supervisor: Identity | None
