"""What travels between a driver and a worker: what is to be carried out, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from tenuto.core.records.action import Reply, ReplyVerdict
    from tenuto.core.records.run import Receipt
    from tenuto.workspace.settings import Settings


class Crew(TypedDict):
    """The driver's roster."""

    default: str
    roles: dict[str, str]
    fallback: dict[str, str]


class TaskSpec(TypedDict):
    """One attempt, so that another machine can carry it out. Long texts stand here by their hash."""

    project: str
    attempt: str
    run: str  # the hash of the folded run
    definition: str  # the hash of the definition that it is bound to
    memory: str  # the hash of the project's memory; "": nobody asks for it
    settings: Settings
    crew: Crew
    origin: str  # the repository that code goes through
    inputs: str  # the commit to begin with: the code, and the documents that the attempt reads
    base: str  # the commit of the code alone, which it stands on
    inputs_ref: str  # where it lies in the origin
    result_ref: str  # where the result goes, with the epoch behind it


class Ended(TypedDict):
    """An attempt that came to an end of its own, judged where it ran."""

    kind: Literal["ended"]
    verdict: ReplyVerdict
    summary: str
    receipt: Receipt
    reply: Reply
    commit: str  # what it changed, on top of the inputs; "": nothing that may be kept
    notes: list[tuple[str, str]]  # text and key
    said: Said


class Said(TypedDict):
    """What is looked at afterwards: what the agent was told, and what it printed."""

    prompt: str
    stdout: str
    stderr: str
    reply: NotRequired[str]  # its last words, where it printed a stream of events


class Lost(TypedDict):
    """Nobody knows what became of it."""

    kind: Literal["lost"]
    reason: str
    ran: bool


Report = Ended | Lost
