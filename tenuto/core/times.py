"""Times as ISO 8601 text and as milliseconds since 1970, without a clock and without `datetime`.

A time inside Tenuto is UTC with milliseconds and a `Z`. Times from others may have no
fraction, a longer one, or an offset; a text that is no time gives None, never a guess.

    iso(ms)  milliseconds(text)  between(start, end)  civil(days)

How long a run took, how long it would have taken one thing after the other, and what side by side saved.

    totals(visits, groups)      total, sequential, parallel, savings, percent
    wave_numbers(visits, waves) which wave each visit belongs to, from 1; None outside waves

A visit is one that has ended, or any dict with step, item, started_at, ended_at and duration_ms.

Rule 1: sequential is the sum of all durations; parallel takes of each wave the longest and adds the rest;
savings is the difference. Total is what the clock saw: the union of the intervals.

Rule 2: `<role>:task-N` belongs to item N's wave. Without planned waves, `:task-` visits that overlap form one.

Rule 3: a time that is no time, or runs backwards, is not used; the duration that was noted is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")


_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def iso(milliseconds: int) -> str:
    """1_763_194_331_000 -> 2025-11-15T08:12:11.000Z"""
    seconds, millis = divmod(milliseconds, 1000)
    days, second_of_day = divmod(seconds, 86400)
    hour, rest = divmod(second_of_day, 3600)
    minute, second = divmod(rest, 60)
    date = _dates.get(days) or _keep(_dates, days, "{:04d}-{:02d}-{:02d}".format(*civil(days)))
    text = f"{date}T{hour:02d}:{minute:02d}:{second:02d}.{millis:03d}Z"
    if _FIRST <= milliseconds <= _LAST:
        _keep(_read, text, milliseconds)  # it is about to be written down, and measured from
    return text


# The same few times are asked for again and again, and most of them are of one day.
_KEPT = 64
_read: dict[str, int | None] = {}
_dates: dict[int, str] = {}
_FIRST, _LAST = (
    -62_135_596_800_000,
    253_402_300_799_999,
)  # the years 1 to 9999: what lies outside is written, but never read


def _keep(kept: dict[Key, Value], key: Key, value: Value) -> Value:
    if len(kept) >= _KEPT:
        kept.clear()
    kept[key] = value
    return value


def milliseconds(text: object) -> int | None:
    """The reverse of `iso`, generous about fraction and offset; None where it is no time."""
    if not isinstance(text, str):
        return None
    return _read[text] if text in _read else _keep(_read, text, _milliseconds(text))


def _milliseconds(text: str) -> int | None:
    if len(text) < 19 or not text.isascii():
        return None
    date, clock, tail = text[:10], text[11:19], text[19:]
    if text[10] not in "Tt " or date[4] + date[7] + clock[2] + clock[5] != "--::":
        return None
    fields = (date[:4], date[5:7], date[8:], clock[:2], clock[3:5], clock[6:])
    if not all(field.isdigit() for field in fields):
        return None
    year, month, day, hour, minute, second = map(int, fields)
    if not (
        year and 1 <= month <= 12 and 1 <= day <= _days_in(year, month) and hour < 24 and minute < 60 and second < 61
    ):
        return None
    offset = _tail(tail)
    if offset is None:
        return None
    whole = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
    return whole * 1000 + offset


def _tail(tail: str) -> int | None:
    """Fraction and zone, as milliseconds to add."""
    millis = 0
    if tail[:1] in (".", ","):
        digits = 1
        while digits < len(tail) and tail[digits].isdigit():
            digits += 1
        if digits == 1:
            return None
        millis = int((tail[1:digits] + "000")[:3])
        tail = tail[digits:]
    if tail in ("Z", "z", ""):
        return millis
    sign, hours, minutes = tail[0], tail[1:3], tail[-2:]
    if (
        sign not in "+-"
        or not (hours + minutes).isdigit()
        or len(tail) not in (5, 6)
        or (len(tail) == 6 and tail[3] != ":")
        or int(hours) > 23
        or int(minutes) > 59
    ):
        return None
    shift = (int(hours) * 60 + int(minutes)) * 60_000
    return millis - shift if sign == "+" else millis + shift


def between(start: object, end: object) -> int:
    """Milliseconds from one time to another; 0 where either is no time or time ran backwards."""
    first, last = milliseconds(start), milliseconds(end)
    return 0 if first is None or last is None else max(0, last - first)


def _days_in(year: int, month: int) -> int:
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _MONTH_DAYS[month - 1] + leap


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; years are counted from March so that the leap day comes last."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of so many days since 1970-01-01."""
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


# ---- durations ------------------------------------------------------------


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypedDict

    Visit = Mapping[str, Any]

    class Totals(TypedDict):
        total: int
        sequential: int
        parallel: int
        savings: int
        percent: int


def totals(visits: Sequence[Visit], groups: Sequence[int | None]) -> Totals:
    sequential = parallel = 0
    longest: dict[int, int] = {}
    for visit, wave in zip(visits, groups, strict=True):
        duration = visit["duration_ms"] or 0
        sequential += duration
        if wave is None:
            parallel += duration
        else:
            longest[wave] = max(longest.get(wave, 0), duration)
    parallel += sum(longest.values())
    savings = sequential - parallel
    return {
        "total": elapsed(visits),
        "sequential": sequential,
        "parallel": parallel,
        "savings": savings,
        "percent": (200 * savings + sequential) // (2 * sequential) if sequential else 0,
    }


def elapsed(visits: Sequence[Visit]) -> int:
    """The union of the intervals; a visit without one counts by its duration."""
    total, until = 0, -1
    intervals = []
    for visit in visits:
        span = _interval(visit)
        if span is None:
            total += visit["duration_ms"] or 0
        else:
            intervals.append(span)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def wave_numbers(visits: Sequence[Visit], waves: Sequence[Sequence[str]]) -> list[int | None]:
    wave_of = {plain(item): number for number, items in enumerate(waves, 1) for item in items}
    items = [item_of(visit) for visit in visits]
    if wave_of:
        return [wave_of.get(item) if item else None for item in items]
    return _overlapping(visits, items)


def item_of(visit: Visit) -> str:
    """The item a visit was for, without prefix and leading zeros; empty when it was for none."""
    if visit.get("item"):
        return plain(str(visit["item"]))
    _, colon, rest = visit["step"].partition(":")
    return plain(rest) if colon and rest[:5].lower() == "task-" else ""


def plain(item: str) -> str:
    """`task-003`, `003` and `3` are one item."""
    bare = item[5:] if item[:5].lower() == "task-" else item
    return bare.lstrip("0") or bare


def _overlapping(visits: Sequence[Visit], items: Sequence[str]) -> list[int | None]:
    numbers: list[int | None] = [None] * len(visits)
    spans = [(span, at) for at, visit in enumerate(visits) if items[at] and (span := _interval(visit)) is not None]
    group: list[int] = []
    number, until = 0, -1
    for (start, end), at in sorted(spans):
        if start >= until:
            number += _number_group(numbers, group, number + 1)
            group = []
        group.append(at)
        until = max(until, end)
    _number_group(numbers, group, number + 1)
    return numbers


def _number_group(numbers: list[int | None], group: list[int], number: int) -> int:
    """A visit that overlaps no other is no wave."""
    if len(group) < 2:
        return 0
    for at in group:
        numbers[at] = number
    return 1


def _interval(visit: Visit) -> tuple[int, int] | None:
    start, end = milliseconds(visit["started_at"]), milliseconds(visit["ended_at"])
    return (start, end) if start is not None and end is not None and end >= start else None
