"""What a program printed, as JSON lines: one event each.

Lines that are none (a warning, the mark where a flood was cut, a tail that a kill cut off) are passed over and counted; what they
might have said is never guessed.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Stream(NamedTuple):
    events: list[dict[str, Any]]
    strange: int  # lines that are no event

    def of(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        return [one for one in self.events if one.get("type") == kind and subtype in (None, one.get("subtype"))]


def read(text: str) -> Stream:
    events, strange = [], 0
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            events.append(found)
        else:
            strange += 1
    return Stream(events, strange)
