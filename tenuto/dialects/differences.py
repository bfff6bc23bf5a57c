"""What somebody changed in a JSON document, place by place.

    changes(before, after)   [(place, value before, value after)]; ABSENT where there was, or is, nothing
    nested(changes)          the values after, as an object to be merged
    dropped(changes)         the places that are gone

Objects are compared key by key, everything else as a whole: an array that differs anywhere has changed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

    Place = tuple[str, ...]
    Change = tuple[Place, Any, Any]


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Any = _Absent()


def changes(before: Json, after: Json, place: Place = ()) -> list[Change]:
    found: list[Change] = []
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name, ABSENT), after.get(name, ABSENT)
        if isinstance(new, dict) and (isinstance(old, dict) or (old is ABSENT and new)):
            found += changes(old if old is not ABSENT else {}, new, (*place, name))
        elif old != new or type(old) is not type(new):
            found.append(((*place, name), old, new))
    return found


def nested(found: list[Change]) -> Json:
    made: Json = {}
    for place, _, new in found:
        if new is not ABSENT:
            into = made
            for name in place[:-1]:
                into = into.setdefault(name, {})
            into[place[-1]] = new
    return made


def dropped(found: list[Change]) -> list[list[str]]:
    return [list(place) for place, _, new in found if new is ABSENT]


def dotted(place: Place) -> str:
    return ".".join(place)
