"""What an agent's start takes over from the one before it: what was said, and what of our environment it may see.

    earlier(engine, job, start)    what the agent printed when it was interrupted; "" where there is nothing to go on with
    names_for(agent, outer)        the variables that this kind of agent needs; their values are never written down
    errors(directory)              the end of what it wrote to standard error

Whether and how it goes on is the adapter's affair. In a work tree of its own nothing is taken over: the files that the
earlier attempt spoke of are not there. Neither from another kind of agent: it could not read it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

from tenuto.drivers.jobs import Job

_TAIL = 4000


def earlier(engine: Any, job: Job, start: int) -> str:
    """Of the starts before this one, the latest first, then of the attempt that this one follows, and so on."""
    for number in range(start - 1, 0, -1):
        said = read(f"{engine.folder}/{job.name}/{number}/stdout")
        if said:
            return said
    attempts, name = job.run["attempts"], job.attempt["extra"].get("follows", "")
    while name in attempts and not job.isolated and _kind(attempts[name]) == _kind(job.attempt):
        said = read(f"{engine.directory(name)}/stdout")
        if said:
            return said
        name = attempts[name]["extra"].get("follows", "")
    return ""


def _kind(attempt: Any) -> str:
    return str(attempt["agent"]).partition(":")[0]


def names_for(agent: Any, outer: Mapping[str, str]) -> list[str]:
    patterns = getattr(agent, "environment", ())
    barred = getattr(agent, "barred", ())
    return [
        name for name in outer
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in barred)
    ]  # fmt: skip


def errors(directory: str) -> str:
    return read(f"{directory}/stderr")[-_TAIL:]


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
