"""When a schedule is due: `weekday 02:00`, `monday, thursday 09:30`, `month 1 03:00`, `6h`.

    rule = parse("weekday 02:00")                 BadInput where it is no rule
    latest(rule, offset, last, now)               the latest time that has come and was not kept yet; None: none has
    next_after(rule, offset, after)               the first time after this one
    midnight(offset, now)                         when the day began that `now` lies in
    next_midnight(offset, now)                    when it ends

Times are milliseconds since 1970. `offset` says by how many milliseconds the zone is ahead of UTC at such a time: the
zone's rules come from outside, the arithmetic stands here.

Rule 1: a time on the clock of the wall that a day does not have (in spring, when the clock is set forward) is due at
the moment at which the clock jumps over it. One that a day has twice (in autumn) is due the first time only.

Rule 2: times that passed while nobody looked are made up for once, however many they were.

Rule 3: what was kept is never due again, also where the clock was set back.
"""

from __future__ import annotations

from tenuto.core.times import civil
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypedDict

    Offset = Callable[[int], int]

    class Rule(TypedDict):
        """Either a span, or days with times."""

        span: int  # milliseconds from one time to the next; 0: by days
        weekdays: list[int]  # 0: monday; every day, where there is no day of the month
        month_day: int  # 0: by weekdays
        minutes: list[int]  # of the day, in order


_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS = {"day": [0, 1, 2, 3, 4, 5, 6], "weekday": [0, 1, 2, 3, 4], "weekend": [5, 6]}
_UNITS = {"m": _MINUTE, "h": _HOUR}
_LAST_MONTH_DAY = 28  # every month has it
_LONGEST = 62  # days from one time to the next, at most, and some more
FORM = "every: weekday 02:00, every: monday, thursday 09:30, every: month 1 03:00, or every: 6h"


def parse(text: str) -> Rule:
    words = text.lower().replace(",", " ").split()
    if len(words) == 1 and words[0][:-1].isdecimal() and words[0][-1] in _UNITS:
        span = int(words[0][:-1]) * _UNITS[words[0][-1]]
        if 0 < span <= 28 * _DAY:
            return {"span": span, "weekdays": [], "month_day": 0, "minutes": []}
    times = [word for word in words if ":" in word]
    days = [word for word in words if ":" not in word]
    minutes = [_minute(word) for word in times]
    month_day = _month_day(days)
    weekdays = [] if month_day else [number for word in days for number in _weekdays(word)]
    if not minutes or None in minutes or not (month_day or weekdays) or words != [*days, *times]:
        raise BadInput("bad-schedule", f"'{text}' says no time that comes again", FORM)
    known = sorted({minute for minute in minutes if minute is not None})
    return {"span": 0, "weekdays": sorted(set(weekdays)), "month_day": month_day, "minutes": known}


def _minute(word: str) -> int | None:
    hour, _, minute = word.partition(":")
    fits = hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and int(hour) < 24 and int(minute) < 60
    return int(hour) * 60 + int(minute) if fits else None


def _month_day(words: list[str]) -> int:
    if len(words) == 2 and words[0] == "month" and words[1].isdecimal() and 0 < int(words[1]) <= _LAST_MONTH_DAY:
        return int(words[1])
    return 0


def _weekdays(word: str) -> list[int]:
    if word in _DAYS:
        return _DAYS[word]
    found = [number for number, name in enumerate(_NAMES) if len(word) > 2 and name.startswith(word)]
    if not found:
        raise BadInput("bad-schedule", f"'{word}' is no day", FORM)
    return found


def latest(rule: Rule, offset: Offset, last: int, now: int) -> int | None:
    if rule["span"]:
        passed = (now - last) // rule["span"]
        return last + passed * rule["span"] if passed > 0 else None
    today = _day(offset, now)
    for day in range(today, today - _LONGEST, -1):
        come = [at for at in _times(rule, offset, day) if last < at <= now]
        if come:
            return come[-1]
    return None


def next_after(rule: Rule, offset: Offset, after: int) -> int:
    if rule["span"]:
        return after + rule["span"]
    today = _day(offset, after)
    return next(at for day in range(today, today + _LONGEST) for at in _times(rule, offset, day) if at > after)


def midnight(offset: Offset, now: int) -> int:
    return _moment(offset, _day(offset, now) * _DAY)


def next_midnight(offset: Offset, now: int) -> int:
    return _moment(offset, (_day(offset, now) + 1) * _DAY)


def _day(offset: Offset, at: int) -> int:
    """The day on the wall, as days since 1970."""
    return (at + offset(at)) // _DAY


def _times(rule: Rule, offset: Offset, day: int) -> Iterator[int]:
    """In order. The first of January 1970 was a thursday."""
    fits = civil(day)[2] == rule["month_day"] if rule["month_day"] else (day + 3) % 7 in rule["weekdays"]
    if fits:
        found = [_moment(offset, day * _DAY + minute * _MINUTE) for minute in rule["minutes"]]
        yield from sorted(set(found))


def _moment(offset: Offset, wall: int) -> int:
    """When the clock of the wall shows this, or jumps over it."""
    before, behind = offset(wall - _DAY), offset(wall + _DAY)
    shown = [wall - ahead for ahead in (before, behind) if offset(wall - ahead) == ahead]
    if shown:
        return min(shown)
    low, high = wall - max(before, behind) - _HOUR, wall - min(before, behind) + _HOUR
    while high - low > 1:  # where the clock passes it
        middle = (low + high) // 2
        if middle + offset(middle) >= wall:
            high = middle
        else:
            low = middle
    return high
