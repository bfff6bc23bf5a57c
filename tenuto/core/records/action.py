"""What is to be done, and what travels around one attempt at it.

Imported under TYPE_CHECKING only (see run.py). At run time every record is a plain dict.

    Action       what todo() asks a driver to do: one TypedDict per action, told apart by `act`
    Outcome      what comes of a visit
    Definition   the checked pipeline and its roles that a run is bound to
    Launch       what to start for an attempt
    Ending       how the agent's process ended
    Reply        what came of it, in the agent's own word
    Boundary     what the attempt may change
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from tenuto.core.pipeline.records import ActionName, OutcomeName, Pipeline, Role, Seat
from tenuto.core.records.run import Amounts, Usage


class Begin(TypedDict):
    act: Literal["begin"]
    step: str


_DoAs = TypedDict("_DoAs", {"as": str})


class Do(_DoAs):
    """The engine itself acts. `as`: the name under which it is recorded."""

    act: Literal["do"]
    action: ActionName
    step: str


class Plan(TypedDict):
    act: Literal["plan"]
    step: str


class Dispatch(TypedDict):
    act: Literal["dispatch"]
    step: str
    attempt: str
    key: str  # the seat, or seat@item
    seat: Seat
    item: str | None
    number: int
    reserved: Amounts
    time_left: int | None  # milliseconds
    follows: str  # the attempt that this one goes on with; "": none


class Ask(TypedDict):
    act: Literal["ask"]
    step: str


class Conclude(TypedDict):
    act: Literal["conclude"]
    step: str


class Shortage(TypedDict):
    """Which limit admits no further attempt."""

    unit: str
    step: str  # "": the run's own limit
    limit: int
    held: float  # spent, or promised to attempts under way
    wanted: float  # what the next attempt needs


class PauseForBudget(TypedDict):
    act: Literal["pause"]
    step: str
    unit: str
    short: Shortage


class Wake(TypedDict):
    act: Literal["wake"]
    step: str | None
    at: str


Action = Begin | Do | Plan | Dispatch | Ask | Conclude | PauseForBudget | Wake


class Outcome(TypedDict):
    """What came of a visit; the step's `on` table says what follows it."""

    name: OutcomeName
    because: list[str]  # the seats or items that it is about
    reason: str


class Unmetered(TypedDict):
    """A limit that cannot be held: this seat's agent does not report what it uses of it."""

    unit: str
    limit: int
    step: str
    seat: Seat


ReplyVerdict = Literal["DONE", "NEEDS_REVISION", "ERROR", "QUESTION", "PARKED"]


class Definition(TypedDict):
    pipeline: Pipeline
    roles: dict[str, Role]


class Launch(TypedDict):
    argv: list[str]
    stdin: str
    env: dict[str, str]


class Ending(TypedDict):
    """The part of a supervisor's result that an agent program looks at."""

    attempt: str
    exit_code: int | None
    signal: int | None
    timed_out: bool
    cancelled: bool
    error: str | None
    ended: str


class Reply(TypedDict):
    verdict: ReplyVerdict
    summary: str
    transient: bool  # the same attempt may start the program once more
    usage: Usage
    text: NotRequired[str]  # the agent's last message, where its output is a stream of events
    parked_until: NotRequired[str]  # it may not work before this time
    limited: NotRequired[bool]  # a limit that does not say when it ends
    denied: NotRequired[list[str]]  # what it wanted to do and was not permitted
    others: NotRequired[bool]  # another agent may take over at once


class Boundary(TypedDict):
    files: list[str]
    patterns: list[str]
    documents: str  # the folder of the run's documents; "": the repository itself
