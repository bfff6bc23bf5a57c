"""What the settings say about many runs: the zone of their times, schedules, places in the queue, budgets of all runs.

    offset = offset_of("Europe/Berlin")      by how many milliseconds the zone is ahead of UTC, at a time; "": this
                                             machine's own zone
    zone_name("")                            how that is called
    schedules_of(settings)                   checked: each with its rule, its zone and the request that it asks for
    budget_of(settings)                      limits of all runs together; money in micro-dollars

The settings check the shape of these values (workspace/settings.py); what a shape cannot say is checked here, before
anything is written.
"""

from __future__ import annotations

from tenuto.core.queue.calendar import parse
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.core.queue.calendar import Offset, Rule
    from tenuto.core.queue.day import Budget
    from tenuto.core.records.run import Limits, Wanted
    from tenuto.workspace.settings import Settings

    class Scheduled(TypedDict):
        name: str
        every: str
        zone: str
        rule: Rule
        wanted: Wanted


AT_ONCE = 1


def offset_of(zone: str) -> Offset:
    if not zone:
        from time import localtime

        return lambda at: localtime(at / 1000).tm_gmtoff * 1000
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    try:
        known = ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        raise _unknown(zone) from None

    def offset(at: int) -> int:
        ahead = datetime.fromtimestamp(at / 1000, UTC).astimezone(known).utcoffset()
        return int(ahead.total_seconds() * 1000) if ahead is not None else 0

    return offset


def _unknown(zone: str) -> BadInput:
    hint = "a name like Europe/Berlin or UTC; where the system has no zones: pip install tzdata"
    return BadInput("bad-zone", f"no zone is called '{zone}' here", hint)


def zone_name(zone: str) -> str:
    if zone:
        return zone
    from time import localtime

    return f"this machine's zone, now {localtime().tm_zone}"


def schedules_of(settings: Settings) -> list[Scheduled]:
    found: list[Scheduled] = []
    for name, one in settings.get("schedules", {}).items():
        zone = one.get("zone") or settings.get("zone", "")
        offset_of(zone)
        wanted: Wanted = {
            "request": one["request"],
            "pipeline": one.get("pipeline", ""),
            "name": name,
            "agent": one.get("agent", ""),
            "roles": {},
            "switches": dict(one.get("switches", {})),
            "params": dict(one.get("params", {})),
            "limits": limits_of(one.get("limits", {})),
            "steps": {},
        }
        found.append({"name": name, "every": one["every"], "zone": zone, "rule": parse(one["every"]), "wanted": wanted})
    return found


def at_once(settings: Settings) -> int:
    return settings.get("queue", {}).get("at_once", AT_ONCE)


def budget_of(settings: Settings) -> Budget:
    given = settings.get("budget", {})
    return {"per_day": limits_of(given.get("day", {})), "ever": limits_of(given.get("ever", {}))}


def limits_of(given: dict[str, float]) -> Limits:
    return {
        "micro_usd" if unit == "money" else unit: round(value * 1_000_000) if unit == "money" else int(value)
        for unit, value in given.items()
    }
