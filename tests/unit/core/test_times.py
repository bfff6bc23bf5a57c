"""Times are the same text on every machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.times import between, iso, milliseconds


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_iso_and_back_agree_with_the_standard_library(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    stamp = milliseconds(text)
    assert stamp is not None
    assert iso(stamp) == text
    assert stamp == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-01-19T00:00:00Z", "2026-01-19T00:00:00.000Z"),
        ("2026-01-19T00:00:00.1234567Z", "2026-01-19T00:00:00.123Z"),
        ("2026-01-19T02:00:00+02:00", "2026-01-19T00:00:00.000Z"),
        ("2026-01-18T19:30:00-0430", "2026-01-19T00:00:00.000Z"),
        ("2026-01-19 00:00:00", "2026-01-19T00:00:00.000Z"),
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
    ],
)
def test_what_is_no_time_is_not_guessed(text: object) -> None:
    assert milliseconds(text) is None


def test_time_that_runs_backwards_lasts_nothing() -> None:
    assert between("2026-01-19T10:00:00Z", "2026-01-19T00:00:00Z") == 0
