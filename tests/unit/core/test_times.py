"""Times are the same text on every machine."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.times import _FIRST, _KEPT, _LAST, _dates, _read, between, iso, milliseconds


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_iso_and_back_agree_with_the_standard_library(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    stamp = milliseconds(text)
    assert stamp is not None
    assert iso(stamp) == text
    assert stamp == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "year",
    [
        1,
        4,
        99,
        100,
        101,
        399,
        400,
        401,
        1600,
        1899,
        1900,
        1904,
        1969,
        1970,
        1972,
        1999,
        2000,
        2001,
        2099,
        2100,
        2400,
        9999,
    ],
)
def test_the_first_and_the_last_day_of_every_month(year: int) -> None:
    """Leap years, centuries and the years before 1970 are where calendars go wrong."""
    for month in range(1, 13):
        last = monthrange(year, month)[1]
        for moment in (datetime(year, month, 1, tzinfo=UTC), datetime(year, month, last, 23, 59, 59, 999000, UTC)):
            text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            assert milliseconds(text) == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
            assert iso(milliseconds(text) or 0) == text
        assert milliseconds(f"{year:04d}-{month:02d}-{last + 1:02d}T00:00:00Z") is None


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-01-19T00:00:00Z", "2026-01-19T00:00:00.000Z"),
        ("2026-01-19T00:00:00.1234567Z", "2026-01-19T00:00:00.123Z"),
        ("2026-01-19T02:00:00+02:00", "2026-01-19T00:00:00.000Z"),
        ("2026-01-18T19:30:00-0430", "2026-01-19T00:00:00.000Z"),
        ("2026-01-19 00:00:00", "2026-01-19T00:00:00.000Z"),
        ("2026-01-19t00:00:00z", "2026-01-19T00:00:00.000Z"),
        ("2026-01-19T00:00:00.5", "2026-01-19T00:00:00.500Z"),
        ("2026-01-19T00:00:00,05+0000", "2026-01-19T00:00:00.050Z"),
        ("2026-01-19T05:45:00.001+05:45", "2026-01-19T00:00:00.001Z"),
        ("2026-01-19T23:59:00+23:59", "2026-01-19T00:00:00.000Z"),
        ("2026-01-18T23:59:60Z", "2026-01-19T00:00:00.000Z"),
        ("2026-01-18T23:59:59-00:01", "2026-01-19T00:00:59.000Z"),
    ],
)
def test_others_write_times_in_other_ways(text: str, same: str) -> None:
    stamp = milliseconds(text)
    assert stamp is not None and iso(stamp) == same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-19T25:00:00Z",
        None,
        7,
        "2026-01-19T00:00:00+",
        "0000-01-19T00:00:00Z",
        "2026-00-19T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-19T24:00:00Z",
        "2026-01-19T00:60:00Z",
        "2026-01-19T00:00:61Z",
        "2026-01-19T00:00:0",
        "2026-01-19X00:00:00Z",
        "2026/01-19T00:00:00Z",
        "2026-01/19T00:00:00Z",
        "2026-01-19T00.00:00Z",
        "2026-01-19T00:00.00Z",
        "x026-01-19T00:00:00Z",
        "2026-01-19T00:00: 1Z",
        "2026-01-19T00:00:0٣Z",
        "2026-01-19T00:00:00.Z",
        "2026-01-19T00:00:00.",
        "2026-01-19T00:00:00X",
        "2026-01-19T00:00:00*02:00",
        "2026-01-19T00:00:00+02",
        "2026-01-19T00:00:00+020",
        "2026-01-19T00:00:00+02-00",
        "2026-01-19T00:00:00+02:0x",
        "2026-01-19T00:00:00+x2:00",
        "2026-01-19T00:00:00+02:000",
        "2026-01-19T00:00:00+24:00",
        "2026-01-19T00:00:00+02:60",
        "2026-01-19T00:00:00+99:99",
    ],
)
def test_what_is_no_time_is_not_guessed(text: object) -> None:
    assert milliseconds(text) is None


def test_time_that_runs_backwards_lasts_nothing() -> None:
    assert between("2026-01-19T10:00:00Z", "2026-01-19T00:00:00Z") == 0
    assert between("2026-01-19T00:00:00Z", "2026-01-19T00:00:00.250Z") == 250
    assert between("soon", "2026-01-19T00:00:00Z") == 0 == between("2026-01-19T00:00:00Z", None)


def test_however_many_times_are_read_each_is_read_right_and_few_are_kept() -> None:
    _read.clear()
    first, second = "1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z"
    assert (milliseconds(first), milliseconds(second)) == (1000, 2000)
    assert list(_read) == [first, second], "the same few times are asked for again and again"
    for place in range(3 * _KEPT):
        assert milliseconds(f"1970-01-01T00:{place // 60:02d}:{place % 60:02d}.000Z") == place * 1000
        assert len(_read) <= _KEPT


def test_however_many_times_are_written_few_are_kept_and_read_as_they_were_written() -> None:
    _read.clear()
    _dates.clear()
    for day in range(3 * _KEPT):
        text = iso(day * 86_400_000 + 7)
        assert text == (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).strftime("%Y-%m-%dT00:00:00.007Z")
        assert _read[text] == day * 86_400_000 + 7 and _dates[day] == text[:10]
        assert len(_read) <= _KEPT and len(_dates) <= _KEPT
    assert iso(7) == "1970-01-01T00:00:00.007Z"
    _dates[0] = "a day that is known"
    assert iso(7) == "a day that is knownT00:00:00.007Z", "it is not made again"
    _dates.clear()


@pytest.mark.parametrize(("edge", "beyond"), [(_FIRST, -1), (_LAST, 1)])
def test_a_time_that_cannot_be_read_is_not_known_because_it_was_written(edge: int, beyond: int) -> None:
    _read.clear()
    text = iso(edge)
    assert _read == {text: edge}
    _read.clear()
    assert milliseconds(text) == edge
    assert milliseconds(iso(edge + beyond)) is None
