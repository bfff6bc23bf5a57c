"""What was changed in a JSON document, place by place.

    changes(before, after)   [(place, value before, value after)]; ABSENT where there was, or is, nothing
    nested(changes)          the values after, as an object to be merged
    dropped(changes)         the places that are gone
    absorbed(...)            the command that keeps what no other command says

Objects are compared key by key, everything else as a whole: an array that differs anywhere has changed.
"""

from __future__ import annotations

from tenuto.encoding import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.commands import AbsorbEdit
    from tenuto.core.records.run import Json

    Place = tuple[str, ...]
    Change = tuple[Place, object, object]


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: object = _Absent()


def changes(before: Json, after: Json, place: Place = ()) -> list[Change]:
    differing: list[Change] = []
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name, ABSENT), after.get(name, ABSENT)
        if isinstance(new, dict) and (isinstance(old, dict) or (old is ABSENT and new)):
            differing += changes(old if isinstance(old, dict) else {}, new, (*place, name))
        elif old != new or type(old) is not type(new):
            differing.append(((*place, name), old, new))
    return differing


def nested(differing: list[Change]) -> Json:
    values: Json = {}
    for place, _, new in differing:
        if new is not ABSENT:
            into = values
            for name in place[:-1]:
                into = into.setdefault(name, {})
            into[place[-1]] = new
    return values


def dropped(differing: list[Change]) -> list[list[str]]:
    return [list(place) for place, _, new in differing if new is ABSENT]


def dotted(place: Place) -> str:
    return ".".join(place)


def absorbed(dialect: str, path: str, after: bytes, extra: Json, drop: list[list[str]] | None = None) -> AbsorbEdit:
    """The last command that an edit becomes. `extra`: keys that we keep but do not know; `drop`: places that are
    gone."""
    command: AbsorbEdit = {
        "do": "AbsorbEdit",
        "dialect": dialect,
        "path": path,
        "sha256": digest(after),
        "extra": extra,
    }
    return {**command, "drop": drop} if drop else command
