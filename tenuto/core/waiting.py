"""When an agent may not work: until when, and whether somebody else may instead.

    parked_agents(run, now)   agents that reached a limit which has not ended yet, with the time it ends
    later(now)                until when to wait for a limit that does not say when it ends

Rule 1: a usage limit that says when it ends parks: no try is used up, and nothing is started with that agent before then.
Rule 2: one that does not say may pass by itself, so the attempt starts its program again, as often as its seat allows; after
that it waits for a few minutes like any other limit. Agents that would be turned away are not started one after another.
Rule 3: where the settings name another agent for it, that one takes over and the run goes on. Otherwise the run waits.
"""

from __future__ import annotations

from tenuto.core.times import iso, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Run

_A_WHILE = 300_000  # milliseconds


def parked_agents(run: Run, now: str) -> dict[str, str]:
    at, found = milliseconds(now) or 0, {}
    for attempt in run["attempts"].values():
        until = attempt["extra"].get("parked_until", "") if attempt["verdict"] == "PARKED" else ""
        if (milliseconds(until) or 0) > at:
            found[attempt["agent"]] = until
    return found


def later(now: str) -> str:
    return iso((milliseconds(now) or 0) + _A_WHILE)
