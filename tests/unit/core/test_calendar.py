"""When a schedule is due: days and times on the clock of the wall, also where that is set, and what was missed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.queue.calendar import latest, midnight, next_after, next_midnight, parse
from tenuto.engine.many.timetable import offset_of
from tenuto.errors import BadInput

BERLIN, UTC_ZONE, LORD_HOWE = offset_of("Europe/Berlin"), offset_of("UTC"), offset_of("Australia/Lord_Howe")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def told(at: int | None) -> str:
    assert at is not None
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("every", "after", "due"),
    [
        ("day 02:00", "2026-11-19 00:30", "2026-11-19 01:00"),
        ("weekday 02:00", "2026-11-20 12:00", "2026-11-23 01:00"),
        ("weekend 10:30", "2026-11-19 00:00", "2026-11-21 09:30"),
        ("monday, thursday 09:30 18:00", "2026-11-19 09:00", "2026-11-19 17:00"),
        ("thu 09:30", "2026-11-19 08:30", "2026-11-26 08:30"),
        ("month 1 03:00", "2026-11-19 00:00", "2026-12-01 02:00"),
        ("6h", "2026-11-19 00:00", "2026-11-19 06:00"),
        ("30m", "2026-11-19 00:00", "2026-11-19 00:30"),
    ],
)
def test_the_next_time_in_berlin(every: str, after: str, due: str) -> None:
    assert told(next_after(parse(every), BERLIN, ms(after))) == due


@pytest.mark.parametrize(
    "text", ["", "02:00", "day", "day 24:00", "day 2:5", "noday 02:00", "month 31 03:00", "month 0 03:00", "0m", "-1h",
             "day 02:00 monday", "every day 02:00", "99999h", "02:00 day"]
)  # fmt: skip
def test_what_says_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"no time|no day"):
        parse(text)


def test_a_time_that_the_day_does_not_have_is_due_when_the_clock_jumps_over_it() -> None:
    rule = parse("day 02:30")  # on 2026-03-29 the clock goes from 02:00 to 03:00
    assert told(next_after(rule, BERLIN, ms("2026-03-28 12:00"))) == "2026-03-29 01:00"
    assert told(next_after(rule, BERLIN, ms("2026-03-29 01:00"))) == "2026-03-30 00:30"


def test_a_time_that_the_day_has_twice_is_due_once() -> None:
    rule = parse("day 02:30")  # on 2026-10-25 the clock goes back from 03:00 to 02:00
    first = next_after(rule, BERLIN, ms("2026-10-24 12:00"))
    assert told(first) == "2026-10-25 00:30"
    assert told(next_after(rule, BERLIN, first)) == "2026-10-26 01:30"
    assert latest(rule, BERLIN, first, ms("2026-10-25 01:45")) is None, "the second 02:30 of that day"


def test_a_day_begins_and_ends_at_the_midnight_of_its_zone_also_when_it_is_shorter() -> None:
    assert told(midnight(BERLIN, ms("2026-03-29 12:00"))) == "2026-03-28 23:00"
    assert told(next_midnight(BERLIN, ms("2026-03-29 12:00"))) == "2026-03-29 22:00"
    assert told(next_midnight(BERLIN, ms("2026-10-25 12:00"))) == "2026-10-25 23:00"


def test_what_was_missed_is_made_up_for_once_and_never_again() -> None:
    rule = parse("day 02:00")
    last, now = ms("2026-11-10 02:00"), ms("2026-11-19 12:00")
    assert told(latest(rule, UTC_ZONE, last, now)) == "2026-11-19 02:00"
    assert latest(rule, UTC_ZONE, ms("2026-11-19 02:00"), now) is None
    assert latest(rule, UTC_ZONE, ms("2026-11-19 02:00"), ms("2026-11-18 12:00")) is None, "the clock was set back"
    assert told(latest(parse("6h"), UTC_ZONE, last, now)) == "2026-11-19 08:00"


def test_the_machines_own_zone_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offset_of("")(ms("2026-11-19 00:00")) % 60_000 == 0
    with pytest.raises(BadInput, match="no zone"):
        offset_of("Mars/Olympus")
    with pytest.raises(BadInput, match="no zone"):
        offset_of("../../etc/passwd")


RULES = st.sampled_from(["day 00:00", "day 02:15 02:45", "weekday 02:30", "sunday 01:59", "month 28 23:59", "45m"])
MOMENTS = st.integers(ms("2026-01-01 00:00"), ms("2027-12-31 00:00"))


@given(RULES, MOMENTS, st.integers(0, 40 * 86_400_000), st.sampled_from([BERLIN, UTC_ZONE, LORD_HOWE]))
def test_who_looks_often_and_who_looks_late_agree(every: str, last: int, later: int, zone: object) -> None:
    """Going from one time to the next ends at the very time that one late look finds."""
    rule, now = parse(every), last + later
    found, at = None, next_after(rule, zone, last)  # type: ignore[arg-type]
    while at <= now:
        found, at = at, next_after(rule, zone, at)  # type: ignore[arg-type]
    assert latest(rule, zone, last, now) == found  # type: ignore[arg-type]
    assert at > now
