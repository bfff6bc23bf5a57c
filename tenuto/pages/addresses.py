"""Where each page is: every address in a page is made here, and checked here.

What stands in an address comes from names that people, agents and files choose, so every part of it is quoted. A link
out of a document leads to http or https only; anything else is shown as its words.
"""

from __future__ import annotations

import shlex
from urllib.parse import quote, urlencode, urlsplit

INBOX, RUNS, COMPARE, FIGURES, FIGURES_CSV, MACHINE = (
    "/",
    "/runs",
    "/compare",
    "/figures",
    "/figures.csv",
    "/machine",
)


def run(name: str, **asked: object) -> str:
    return f"/runs/{_part(name)}{_query(asked)}"


def attempt(run_name: str, name: str, **asked: object) -> str:
    return f"{run(run_name)}/attempts/{_part(name)}{_query(asked)}"


def log_file(run_name: str, attempt_name: str, **asked: object) -> str:
    """All of a log, to keep."""
    return f"{attempt(run_name, attempt_name)}/log{_query(asked)}"


def artifact(run_name: str, name: str, **asked: object) -> str:
    """The name may be a path: it is one part of the address."""
    return f"{run(run_name)}/artifacts/{_part(name)}{_query(asked)}"


def raw_artifact(run_name: str, name: str, **asked: object) -> str:
    return f"{run(run_name)}/raw/{_part(name)}{_query(asked)}"


def statement(run_name: str) -> str:
    """The words that a person signs for one decision."""
    return f"{run(run_name)}/statement"


def answer(run_name: str) -> str:
    """Where the form of a card goes."""
    return f"{run(run_name)}/answer"


def runs(**asked: object) -> str:
    return RUNS + _query(asked)


def compare(**asked: object) -> str:
    return COMPARE + _query(asked)


def figures(**asked: object) -> str:
    return FIGURES + _query(asked)


def outward(address: str) -> tuple[str, str]:
    """(address, host) of a link that leaves the page; empty where it may not be followed."""
    try:
        parts = urlsplit(address.strip())
        host = parts.hostname or ""
    except ValueError:
        return "", ""
    plain = host and not parts.username and address.isprintable() and "\\" not in address
    return (parts.geturl(), host) if parts.scheme in ("http", "https") and plain else ("", "")


def shell(*words: str) -> str:
    """A command that can be copied as it stands."""
    return " ".join(shlex.quote(word) for word in words)


def _part(name: str) -> str:
    """`.` and `..` would be resolved by a browser before they are sent."""
    return quote(name, safe="", errors="replace") if name not in (".", "..") else name.replace(".", "%2E")


def _query(asked: dict[str, object]) -> str:
    given = {name: str(value) for name, value in asked.items() if value not in (None, "")}
    return "?" + urlencode(given, errors="replace") if given else ""
