"""What a pipeline-driven run adds to events.py and commands.py: visits, routes, plans. For types only."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from tenuto.core.records import Json, PipelineRef


class Happened(TypedDict):
    v: int
    at: str
    by: str
    key: NotRequired[str]
    told: NotRequired[str]  # when it happened, as whoever reported it says


class Asked(TypedDict):
    at: NotRequired[str]
    by: NotRequired[str]
    key: NotRequired[str]  # the same key again is the same request again: answered, not repeated
    told: NotRequired[str]  # when it happened, as its sender says; shown, never reckoned with


# ---- events ----------------------------------------------------------------------------------------


class RouteTaken(Happened):
    """What follows an outcome: the hops to come. `route` is the counter that was used; "" for going on."""

    type: Literal["RouteTaken"]
    route: str
    queue: list[Json]
    resets: list[str]
    carry: dict[str, Json]
    reason: str


class Engaged(Happened):
    """A checked pipeline was bound to the run: from here todo() says what is to be done."""

    type: Literal["Engaged"]
    pipeline: PipelineRef
    driver: Literal["engine", "guided"]
    switches: dict[str, bool]
    queue: list[Json]


class ActionDone(Happened):
    """The engine itself did something: pruned memory, wrote the request, chose the review tier."""

    type: Literal["ActionDone"]
    action: str
    detail: Json


# ---- commands --------------------------------------------------------------------------------------


class Engage(Asked):
    """Bind a checked pipeline (handed to decide) to the run, and let todo() say what is to be done."""

    do: Literal["Engage"]
    pipeline: PipelineRef
    driver: NotRequired[Literal["engine", "guided"]]
    switches: NotRequired[dict[str, bool]]
    start_at: NotRequired[str]
    approved: NotRequired[list[str]]  # with start_at: the gates that stand approved (approvals.standing)
    settings: NotRequired[Json]


class BeginVisit(Asked):
    do: Literal["BeginVisit"]


class RecordAction(Asked):
    do: Literal["RecordAction"]
    action: str
    detail: NotRequired[Json]


class PlanVisit(Asked):
    """What the plan says, as read: core chooses the items of this stay and arranges them."""

    do: Literal["PlanVisit"]
    items: list[Json]
    findings: NotRequired[list[Json]]
    problem: NotRequired[str]  # the plan cannot be read or carried out


class Conclude(Asked):
    """Everything in this stay has ended: decide its outcome and what follows."""

    do: Literal["Conclude"]
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
