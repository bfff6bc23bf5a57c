"""Events of older shapes, read as if they had been written today.

    upgrade(event, run) -> event     of the version that fold() and everybody else knows
    replay(records, run, state)      the same for many, folded into the state

The journal keeps every event word for word, for ever. When the shape of an event type changes, its number in
VERSIONS goes up, and a function keyed by (type, old version) says how the old one reads in the next version. A journal
of any age is thus folded by one fold(), which knows one shape of each event.

Rule 1: an upgrade adds nothing that the old event did not tell: no clock, no guess. It gets a record of its own
to change, and raises `v` by one.

Rule 2: an event of a newer version than this program knows is refused by name. To read it as an older one
would be a guess.

Version 2, of every type: the time that a sender gave is called `reported_at` (it was `told`).
    StepStarted        `leg` was `hop`, and is None where a person leads the run (it was an empty object)
    Paused, Adopted    of a pause, `last_feedback` is feedback, the time it ends (`until`) or the attempt that asks
                       (`question_of`): each has a field of its own
    AttemptFinished    `found` is what the receipt left of the agent's word; what the agent said was not kept then

Version 3 of Engaged: with the parameters of the pipeline, which there were none of before.
"""

from __future__ import annotations

from tenuto.core.fold import apply, apply_repo
from tenuto.errors import SchemaSkew

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.records.run import Json, Repo, Run

EVERY = 2  # the version that every type has reached
VERSIONS: dict[str, int] = {"Engaged": 3}
"""Only types whose shape has changed since then; all others are at EVERY."""


def upgrade_all(records: list[Json], run: str) -> list[Json]:
    return [upgrade(record, run) for record in records]


def version_of(type_: str) -> int:
    return VERSIONS.get(type_, EVERY)


def upgrade(event: Json, run: str) -> Json:
    """`run`: whose event it is, for the refusal."""
    known = version_of(event["type"])
    if event["v"] > known:
        message = f"run {run} holds an event {event['type']} of version {event['v']}; this tenuto knows {known}"
        raise SchemaSkew("event-newer", message, "upgrade tenuto on this machine", run=run)
    while event["v"] < known:
        key = (event["type"], event["v"])
        change = _second if event["v"] == 1 and key not in UPGRADES else UPGRADES[key]
        event = change(event)
    return event


def _second(event: Json) -> Json:
    """Version 1 -> 2 of a type with no field of its own that changed."""
    event = {**event, "v": 2}
    if "told" in event:
        event["reported_at"] = event.pop("told")
    return event


def _step_started(event: Json) -> Json:
    event = _second(event)
    event["leg"] = event.pop("hop") or None
    return event


def _paused(event: Json) -> Json:
    event = _second(event)
    last_feedback = event.pop("last_feedback")
    asks = event["kind"] == "question"
    event["feedback"] = "" if asks else last_feedback
    event["question_of"] = last_feedback if asks else ""
    return event


def _adopted(event: Json) -> Json:
    event = _second(event)
    pause = event["state"].get("pause")
    if pause:
        pause = {**pause, "feedback": pause["last_feedback"], "until": "", "question_of": ""}
        del pause["last_feedback"]
        event["state"] = {**event["state"], "pause": pause}
    visits = event["state"].get("visits")
    if visits:  # of one kind of file the order in which visits ended was not kept
        whole = [{"closed": 0 if visit["ended_at"] else None, **visit} for visit in visits]
        event["state"] = {**event["state"], "visits": whole}
    attempts = event["state"].get("attempts")
    if attempts:
        event["state"] = {
            **event["state"],
            "attempts": {name: {**attempt, "said": None, "found": None} for name, attempt in attempts.items()},
        }
    return event


def _attempt_finished(event: Json) -> Json:
    event = _second(event)
    event["said"] = None
    event["found"] = {"verdict": event["verdict"], "problem": event["receipt"].get("problem", "")}
    return event


def _engaged(event: Json) -> Json:
    return {**event, "v": 3, "params": {}}


UPGRADES: dict[tuple[str, int], Callable[[Json], Json]] = {
    ("StepStarted", 1): _step_started,
    ("Paused", 1): _paused,
    ("Adopted", 1): _adopted,
    ("AttemptFinished", 1): _attempt_finished,
    ("Engaged", 2): _engaged,
}
"""By type and old version. A type that has none for version 1 changed in what all events share."""


def replay(records: list[Json], run: str, state: Run | Repo) -> None:
    """Fold stored events into the state. One of a type that fold does not know is a newer Tenuto's; anything else is
    a bug."""
    for record in records:
        event = upgrade(record, run)
        try:
            if "id" in state:
                apply(state, event)  # type: ignore[arg-type]  # only a run has an id
            else:
                apply_repo(state, event)
        except KeyError as missing:
            if missing.args != (event["type"],):
                raise
            message = f"run {run} holds an event {event['type']}, which this tenuto does not know"
            raise SchemaSkew("event-newer", message, "upgrade tenuto on this machine", run=run) from None
