"""What a model's refusal means for the attempt: wait, try again, or give up. Programs tell it in words, each in its own.

    judge(words, at)      {"verdict": "ERROR", "summary", "transient", "usage", "parked_until"?, "limited"?}
    resets(words, at)     when it may work again, if the words say so
    is_limit(words)       a rate or usage limit, not another failure

Rule 1: a limit that says when it ends parks the run until then; one that does not may pass by itself: transient,
and `limited`, so that another agent may take over.
Rule 2: an overloaded or unreachable model is transient. Anything else (a wrong key, a refused request) is an error:
trying again would fail the same way.
Rule 3: a clock time without a date is the next such time after `at`, in this machine's zone, as the programs print it; they leave the
seconds out, so a minute is added.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tenuto.agents.ending import error
from tenuto.core.times import iso

_LIMIT = re.compile(
    r"(usage|rate|request|token|spend|session|weekly|quota)[ _-]?limit|too many requests|\b429\b|quota|resource.?exhausted|out of credits",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"high demand|overload|temporar|stream (disconnected|closed)|timed? ?out|connection|unreachable|network error|fetch failed"
    r"|econn|enotfound|eai_again|socket hang up|server error|service unavailable|bad gateway|\b(500|502|503|504|529)\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"(?:again|retry|reset(?:s|ting)?|wait|available)\D{0,12}?\b(?:in|after|for)\s+((?:[\d.]+\s*(?:days?|hours?|minutes?|seconds?|ms|[dhms])(?![a-z])[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_PIECE = re.compile(r"([\d.]+)\s*(ms|d|h|m|s)", re.IGNORECASE)
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(
    r"\b(?:at|resets?)\s+(?:(?P<month>[A-Z][a-z]{2})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[AaPp])\.?[Mm]\b\.?(?:\s*\(?(?P<zone>UTC|GMT)\)?)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def judge(words: str, at: str) -> dict[str, Any]:
    summary = " ".join(words.split())[:500] or "it failed without a word"
    if not is_limit(words):
        return error(summary, transient=bool(_PASSING.search(words)))
    when = resets(words, at)
    return error(summary, parked_until=when) if when else error(summary, transient=True, limited=True)


def is_limit(words: str) -> bool:
    return bool(_LIMIT.search(words))


def resets(words: str, at: str) -> str:
    """As an ISO time; empty where it is not told, is no time, or is over."""
    now = datetime.fromisoformat(at)
    try:
        when = _told(words, now)
        return iso(int(when.timestamp() * 1000)) if when and when.timestamp() > now.timestamp() else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _told(words: str, now: datetime) -> datetime | None:
    later = _LATER.search(words)
    if later:
        pieces = _PIECE.findall(later.group(1))
        return now + timedelta(seconds=sum(float(number) * _SECONDS[unit.lower()] for number, unit in pieces) + 1)
    stamp = _STAMP.search(words)
    if stamp:
        return datetime.fromisoformat(stamp.group())
    clock = _CLOCK.search(words)
    return _next(clock, now) if clock else None


def _next(clock: re.Match[str], now: datetime) -> datetime:
    local = now.astimezone(UTC if clock["zone"] else None)
    hour = int(clock["hour"]) % 12 + (12 if clock["half"] in "pP" else 0)
    day = local
    if clock["month"] and clock["month"].lower() in _MONTHS:
        month, number = _MONTHS.index(clock["month"].lower()) + 1, int(clock["day"])
        day = datetime(int(clock["year"] or local.year), month, number, tzinfo=local.tzinfo)
    wanted = day.replace(hour=hour % 24, minute=int(clock["minute"] or 0), second=0, microsecond=0)
    if clock["month"] is None and wanted + timedelta(minutes=1) <= local:
        wanted += timedelta(days=1)
    return wanted + timedelta(minutes=1)
