"""What all runs of a repository may spend together: in a day, and ever.

    used(attempts, since, now)            what these attempts were charged since then, and how many are under way
    shortage(budget, day, ever, wanted)   the first limit that these attempts would pass; None: they are admitted

Rule 1: what counts is what attempts reported, plus what is set aside for those under way. An attempt counts in the day
in which it ends; one under way counts today. So the limit holds whatever they report, up to what was set aside.

Rule 2: an attempt that sets nothing aside of a unit that is limited here counts as the dearest one known, and at least
as a twentieth of the limit. So does one that was lost: nobody knows what it cost.

Rule 3: where the day's limit admits no further attempt, the run is parked until the day is over. Where the limit of the
repository does, it pauses, and the way on is a person who raises it.
"""

from __future__ import annotations

from tenuto.core.times import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal, TypedDict

    from tenuto.core.records.run import Amounts, Attempt, Limits

    class Budget(TypedDict):
        """Limits of all runs together, by unit."""

        per_day: Limits
        ever: Limits

    class Used(TypedDict):
        spent: Amounts
        set_aside: Amounts  # by attempts under way, as far as they did
        open: list[Amounts]  # what each attempt under way, and each lost one, has set aside
        dearest: Amounts

    class DayShortage(TypedDict):
        span: Literal["day", "ever"]
        unit: str
        limit: int
        held: float
        wanted: float


UNITS = ("attempts", "tokens", "micro_usd")
_UNDER_WAY = ("dispatched", "running")
_SHARE = 20


def nothing() -> Used:
    return {"spent": {}, "set_aside": {}, "open": [], "dearest": {}}


def used(attempts: Iterable[Attempt], since: int) -> Used:
    """`since`: when the day began; 0: ever."""
    found = nothing()
    for attempt in attempts:
        amounts: Amounts = {unit: value for unit in UNITS if (value := _number(attempt["usage"].get(unit))) is not None}
        for unit, value in amounts.items():
            found["dearest"][unit] = max(found["dearest"].get(unit, 0), value)
        if attempt["status"] in _UNDER_WAY:
            _add(found["set_aside"], attempt["reserved"])
            found["open"].append(attempt["reserved"])
        elif (milliseconds(attempt["ended_at"]) or 0) >= since:
            if attempt["status"] == "lost":
                found["open"].append(attempt["reserved"])
            _add(found["spent"], {"attempts": 1, **amounts})
    return found


def together(several: Iterable[Used]) -> Used:
    found = nothing()
    for one in several:
        _add(found["spent"], one["spent"])
        _add(found["set_aside"], one["set_aside"])
        found["open"] += one["open"]
        for unit, value in one["dearest"].items():
            found["dearest"][unit] = max(found["dearest"].get(unit, 0), value)
    return found


def shortage(budget: Budget, day: Used, ever: Used, wanted: list[Amounts]) -> DayShortage | None:
    """`wanted`: what each attempt that is to start sets aside."""
    return _short("ever", budget["ever"], ever, ever["dearest"], wanted) or _short(
        "day", budget["per_day"], day, ever["dearest"], wanted
    )


def _short(
    span: Literal["day", "ever"], limits: Limits, known: Used, dearest: Amounts, wanted: list[Amounts]
) -> DayShortage | None:
    for unit in UNITS:
        limit = limits.get(unit)
        if limit is None:
            continue
        held = held_of(unit, limit, known, dearest)
        asked = sum(_set_aside(unit, limit, dearest, one) for one in wanted)
        if held + asked > limit:
            return {"span": span, "unit": unit, "limit": limit, "held": held, "wanted": asked}
    return None


def held_of(unit: str, limit: int, known: Used, dearest: Mapping[str, float]) -> float:
    """What is spent of it, and what is set aside."""
    if unit == "attempts":
        return known["spent"].get(unit, 0) + known["set_aside"].get(unit, 0)
    return known["spent"].get(unit, 0) + sum(_set_aside(unit, limit, dearest, one) for one in known["open"])


def _set_aside(unit: str, limit: int, dearest: Mapping[str, float], reserved: Mapping[str, float]) -> float:
    own = reserved.get(unit)
    return own if own is not None else max(dearest.get(unit, 0), limit // _SHARE, 1)


def stricter(one: Budget, other: Budget) -> Budget:
    """Of two, the lower limit of each unit: what a run began with, and what holds now."""
    return {"per_day": _lower(one["per_day"], other["per_day"]), "ever": _lower(one["ever"], other["ever"])}


def _lower(one: Limits, other: Limits) -> Limits:
    found: Limits = {}
    for unit in UNITS:
        known = [limit for limit in (one.get(unit), other.get(unit)) if limit is not None]
        if known:
            found[unit] = min(known)
    return found


def in_words(short: DayShortage) -> str:
    whose = "all runs of this repository together may use"
    span = "a day" if short["span"] == "day" else "in all"
    return (
        f"{whose} {short['limit']} {short['unit']} {span}: {short['held']:g} are used or promised, "
        f"and what is next needs {short['wanted']:g}"
    )


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _add(total: Amounts, more: Mapping[str, float]) -> None:
    for unit, value in more.items():
        total[unit] = total.get(unit, 0) + value
