"""Events of older shapes, read as if they had been written today.

    upgrade(event, run) -> event     of the version that fold() and everybody else knows

The journal keeps every event word for word, for ever. When the shape of an event type changes, its number in
VERSIONS goes up, and a function keyed by (type, old version) says how the old one reads in the next version. A journal
of any age is thus folded by one fold(), which knows one shape of each event.

Rule 1: an upgrade adds nothing that the old event did not tell: no clock, no guess. It gets a record of its own
to change, and raises `v` by one.

Rule 2: an event of a newer version than this program knows is refused by name. To read it as an older one
would be a guess.
"""

from __future__ import annotations

from tenuto.errors import SchemaSkew

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.records import Json

VERSIONS: dict[str, int] = {}
"""Only types whose shape has changed; all others are at 1."""

UPGRADES: dict[tuple[str, int], Callable[[Json], Json]] = {}


def version_of(type_: str) -> int:
    return VERSIONS.get(type_, 1)


def upgrade(event: Json, run: str) -> Json:
    """`run`: whose event it is, for the refusal."""
    known = version_of(event["type"])
    if event["v"] > known:
        message = f"run {run} holds an event {event['type']} of version {event['v']}; this tenuto knows {known}"
        raise SchemaSkew("event-newer", message, "upgrade tenuto on this machine", run=run)
    while event["v"] < known:
        event = UPGRADES[event["type"], event["v"]](event)
    return event
