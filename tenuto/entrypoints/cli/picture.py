"""A run at one moment, as lines: steps, waves, attempts, retries, cost, and what waits for you.

Pure: the run, its pipeline and a time in, lines out. `live` shows them again and again, tests read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tenuto.core.records import Run
from tenuto.core.times import between
from tenuto.entrypoints.cli.amounts import all_told, span
from tenuto.entrypoints.cli.telling import first_line

MARKS = {
    "completed": "\u2713", "success": "\u2713", "failed": "\u2717", "lost": "\u2717", "running": "\u25cf", "dispatched": "\u25cf",
    "pending": "\u00b7", "skipped": "\u2013", "waiting_gate": "?", "paused": "?", "parked": "?", "blocked": "?", "stopped": "?",
}  # fmt: skip
PLAIN_MARKS = {"\u2713": "v", "\u2717": "x", "\u25cf": "*", "\u00b7": ".", "\u2013": "-"}
_ITEMS_SHOWN = 8


class Line(NamedTuple):
    status: str  # decides mark and colour; "" for neither
    text: str
    depth: int = 0
    aside: str = ""  # less important, behind it


def picture(run: Run, pipeline: Any, now: str) -> Iterator[Line]:
    yield Line(run["status"], f"{run['id']}: {run['status']}", 0, _head(run, now))
    names = _order(run, pipeline)
    for name in names:
        yield from _step(run, name, max(len(one) for one in names), now)
    yield from _waits(run)


def _head(run: Run, now: str) -> str:
    until = run["stopped_at"] or now
    retries = sum(1 for attempt in run["attempts"].values() if attempt["number"] > 1)
    parts = [span(between(run["created_at"], until)), all_told({"attempts": len(run["attempts"])})]
    parts += [f"{retries} again"] if retries else []
    parts += [all_told({unit: amount for unit, amount in run["budget"]["spent"].items() if unit != "attempts"})]
    return ", ".join(part for part in parts if part)


def _order(run: Run, pipeline: Any) -> list[str]:
    planned = [step["id"] for step in pipeline["steps"] if not step["aside"] or step["id"] in run["steps"]] if pipeline else []
    return [*planned, *(name for name in run["steps"] if name not in planned)]


def _step(run: Run, name: str, width: int, now: str) -> Iterator[Line]:
    state: Any = run["steps"].get(name) or {"status": "pending", "verdict": None}
    visits = [visit for visit in run["visits"] if visit["step"] == name]
    here = any(visit["status"] == "running" for visit in visits)
    status = "running" if here else state["status"]
    if state["verdict"] in ("NEEDS_REVISION", "ERROR") and status == "completed":
        status = "failed"
    aside = [f"visit {len(visits)}"] if len(visits) > 1 else []
    aside += [str(state["verdict"])] if state["verdict"] not in (None, "DONE") and not here else []
    spent = sum(between(visit["started_at"], visit["ended_at"] or now) for visit in visits)
    aside += [span(spent)] if visits else []
    yield Line(status, name.ljust(width) if aside else name, 1, ", ".join(aside))
    if here:
        inner = list(_inside(run, name, now))
        longest = max((len(line.text) for line in inner if line.status), default=0)
        yield from (line._replace(text=line.text.ljust(longest)) if line.aside else line for line in inner)


def _inside(run: Run, name: str, now: str) -> Iterator[Line]:
    """The step the run is in: its items, then whoever is at work or has just been."""
    stay = run["stay"]
    visit = stay["visit"] if stay else max((v["iteration"] for v in run["visits"] if v["step"] == name), default=1)
    mine = {one: a for one, a in run["attempts"].items() if a["step"] == name and a["iteration"] == visit}
    if stay and stay["wave_of"]:
        yield from _items(run, stay, mine, now)
        return
    latest: dict[str, Any] = {}
    for one, attempt in mine.items():
        latest[attempt["extra"].get("seat", one)] = attempt
    for seat, attempt in latest.items():
        yield _attempt(seat, attempt, now)


def _attempt(label: str, attempt: Any, now: str) -> Line:
    flying = attempt["ended_at"] is None
    aside = [span(between(attempt["started_at"], attempt["ended_at"] or now))]
    aside += [f"attempt {attempt['number']}"] if attempt["number"] > 1 else []
    aside += [] if flying else [f"{attempt['verdict'] or attempt['status']}: {first_line(attempt['summary'])}".rstrip(": ")]
    status = "running" if flying else "completed" if attempt["verdict"] == "DONE" else "failed"
    return Line(status, label, 2, ", ".join(aside))


def _items(run: Run, stay: Any, mine: dict[str, Any], now: str) -> Iterator[Line]:
    wave, waves = _wave(stay), len(set(stay["wave_of"].values()))
    done = len(stay["wave_of"]) - len(stay["left"])
    yield Line("", f"wave {wave} of {waves}: {done} of {len(stay['wave_of'])} items ended", 2)
    latest = {attempt["item"]: attempt for attempt in mine.values() if attempt["item"]}
    shown = sorted(latest, key=lambda item: latest[item]["ended_at"] is not None)[:_ITEMS_SHOWN]
    for item in shown:
        title = run["items"][item]["title"]
        yield _attempt(f"{latest[item]['role']} {item}" + (f" {title}" if title and title != item else ""), latest[item], now)
    if len(latest) > len(shown):
        yield Line("", f"and {len(latest) - len(shown)} more that ended", 2)


def _wave(stay: Any) -> int:
    first = stay["left"][0] if stay["left"] else None
    numbers = sorted(set(stay["wave_of"].values()))
    return numbers.index(stay["wave_of"][first]) + 1 if first else len(numbers)


def _waits(run: Run) -> Iterator[Line]:
    if run["gate"]:
        yield Line("waiting_gate", f"waits for you: {run['gate']['prompt']}", 0)
        for entry in run["gate"]["shown"]:
            yield Line("", entry["path"], 2)
        yield Line("", f"tenuto approve {run['id']}   (or: reject, revise --feedback '...')", 2)
    elif run["pause"]:
        yield Line(run["status"], f"{run['pause']['kind']}: {run['pause']['reason']}", 0)
        for words in run["pause"]["recommendations"]:
            yield Line("", words, 2)
    elif run["blocked"]:
        yield Line("blocked", f"blocked: {run['blocked']['reason']} {', '.join(run['blocked']['missing'])}".rstrip(), 0)
    elif run["failure"]:
        yield Line("failed", f"failed in {run['failure']['step']}: {run['failure']['error']}", 0)
