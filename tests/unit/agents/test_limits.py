"""What programs say when a model does not answer: wait until then, try again, or give up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.agents.command import judge, resets
from tenuto.core.times import milliseconds

AT = "2026-11-15T11:21:40.500Z"


@pytest.mark.parametrize(
    ("words", "until"),
    [
        (
            "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 2:21 PM.",
            "2026-11-15T12:22:00.000Z",
        ),
        ("You've hit your usage limit. Try again at 1:00 AM.", "2026-11-15T23:01:00.000Z"),
        ("You've hit your usage limit. Try again at Nov 18th, 2026 3:45 PM.", "2026-11-18T13:46:00.000Z"),
        ("You've hit your usage limit. Try again in 3 days 4 hours 5 minutes.", "2026-11-18T15:26:41.500Z"),
        ("Rate limit reached for gpt-5.5: Please try again in 11.5s. Visit ...", "2026-11-15T11:21:53.000Z"),
        ("Rate limit reached: Please try again in 6m0s.", "2026-11-15T11:27:41.500Z"),
        ("You exceeded your current quota. Please retry in 34s.", "2026-11-15T11:22:15.500Z"),
        ("usage limit reached, resets 3pm (UTC)", "2026-11-15T15:01:00.000Z"),
        ("429: limit resets at 2026-11-15T14:00:00Z", "2026-11-15T14:00:00.000Z"),
    ],
)
def test_a_limit_that_says_when_it_ends_parks_until_then(words: str, until: str) -> None:
    told = judge(words, AT)
    assert (told["parked_until"], told["transient"], told["verdict"]) == (until, False, "ERROR")


@pytest.mark.parametrize(
    "words",
    [
        "exceeded retry limit, last status: 429 Too Many Requests",
        "You've hit your usage limit. Try again later.",
        "rate limit; resets at 2026-02-31T10:00:00Z",
        "rate limit; it was reset at 2026-11-15T09:00:00Z",
        "usage limit: try again in 99999999999999999999 days",
        "We’re currently experiencing high demand, which may cause temporary errors.",
        "stream disconnected before completion: stream closed before response.completed",
        "unexpected status 503 Service Unavailable",
        "connect ECONNREFUSED 127.0.0.1:1",
    ],
)
def test_what_may_pass_by_itself_is_transient(words: str) -> None:
    told = judge(words, AT)
    assert told["transient"]
    assert "parked_until" not in told


@pytest.mark.parametrize("words", ["unexpected status 401 Unauthorized", "invalid_request_error: no such model", ""])
def test_what_would_fail_the_same_way_is_an_error(words: str) -> None:
    told = judge(words, AT)
    assert (told["verdict"], told["transient"]) == ("ERROR", False)
    assert "parked_until" not in told
    assert told["summary"]


@given(st.text(alphabet="usage limit try again in at 0123456789:.TZdhmsAPMNov-+,", max_size=60))
def test_whatever_is_said_a_time_is_in_the_future_or_none(words: str) -> None:
    until = resets(words, AT)
    assert until == "" or (milliseconds(until) or 0) > (milliseconds(AT) or 0)
