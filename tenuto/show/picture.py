"""A run at one moment, as lines: steps, waves, attempts, retries, cost, and what it waits for.

Pure: the run, its pipeline and a time in, lines out. A terminal draws them again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenuto.core.times import between
from tenuto.show.measures import amounts, span
from tenuto.show.sentences import first_line
from tenuto.show.views import AttemptView, RunView, StepView, run_view

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import Run

MARKS = {
    "completed": "\u2713",
    "success": "\u2713",
    "poc-complete": "\u2713",
    "graduated": "\u2713",
    "completed with failures": "\u2717",
    "poc-complete with failures": "\u2717",
    "graduated with failures": "\u2717",
    "failed": "\u2717",
    "lost": "\u2717",
    "running": "\u25cf",
    "dispatched": "\u25cf",
    "pending": "\u00b7",
    "skipped": "\u2013",
    "waiting_gate": "?",
    "paused": "?",
    "parked": "?",
    "blocked": "?",
    "stopped": "?",
}
PLAIN_MARKS = {"\u2713": "v", "\u2717": "x", "\u25cf": "*", "\u00b7": ".", "\u2013": "-"}
_ITEMS_SHOWN = 8


class Line(NamedTuple):
    status: str  # decides mark and colour; "" for neither
    text: str
    depth: int = 0
    aside: str = ""  # less important, behind it


def picture(run: Run, pipeline: Pipeline | None, now: str) -> Iterator[Line]:
    view = run_view(run, pipeline)
    yield Line(view["status"], f"{view['run']}: {view['status']}", 0, _head(view, now))
    width = max((len(step["step"]) for step in view["steps"]), default=0)
    for step in view["steps"]:
        yield from _step(view, step, width, now)
    yield from _waits(view)


def _head(view: RunView, now: str) -> str:
    until = view["stopped_at"] or now
    retries = sum(1 for attempt in view["attempts"] if attempt["number"] > 1)
    parts = [span(between(view["created_at"], until)), amounts({"attempts": len(view["attempts"])})]
    parts += [f"{retries} again"] if retries else []
    parts += [amounts({unit: figure for unit, figure in view["spent"].items() if unit != "attempts"})]
    return ", ".join(part for part in parts if part)


def _step(view: RunView, step: StepView, width: int, now: str) -> Iterator[Line]:
    visits = [visit for visit in view["visits"] if visit["step"] == step["step"]]
    here = any(visit["status"] == "running" for visit in visits)
    status = "running" if here else step["status"]
    if step["verdict"] in ("NEEDS_REVISION", "ERROR") and status == "completed":
        status = "failed"
    aside = [f"visit {len(visits)}"] if len(visits) > 1 else []
    aside += [str(step["verdict"])] if step["verdict"] not in (None, "DONE") and not here else []
    spent = sum(between(visit["started_at"], visit["ended_at"] or now) for visit in visits)
    aside += [span(spent)] if visits else []
    yield Line(status, step["step"].ljust(width) if aside else step["step"], 1, ", ".join(aside))
    if here:
        inner = list(_inside(view, step["step"], now))
        longest = max((len(line.text) for line in inner if line.status), default=0)
        yield from (line._replace(text=line.text.ljust(longest)) if line.aside else line for line in inner)


def _inside(view: RunView, step: str, now: str) -> Iterator[Line]:
    """The step that the run is in: its items, then the attempts at work or just ended."""
    current = view["current"]
    latest_visit = max((visit["visit"] for visit in view["visits"] if visit["step"] == step), default=1)
    visit = current["visit"] if current else latest_visit
    mine = [one for one in view["attempts"] if one["step"] == step and one["visit"] == visit]
    if current and current["items"]:
        yield Line(
            "",
            f"wave {current['wave']} of {current['waves']}: {current['items_ended']} of {current['items']} items ended",
            2,
        )
        yield from _items(view, mine, now)
        return
    latest: dict[str, AttemptView] = {}
    for attempt in mine:
        latest[attempt["place"] or attempt["attempt"]] = attempt
    for place, attempt in latest.items():
        yield _attempt(place, attempt, now)


def _attempt(label: str, attempt: AttemptView, now: str) -> Line:
    in_flight = attempt["ended_at"] is None
    aside = [span(between(attempt["started_at"], attempt["ended_at"] or now))]
    aside += [f"attempt {attempt['number']}"] if attempt["number"] > 1 else []
    result = f"{attempt['verdict'] or attempt['status']}: {first_line(attempt['summary'])}".rstrip(": ")
    aside += [] if in_flight else [result]
    status = "running" if in_flight else "completed" if attempt["verdict"] == "DONE" else "failed"
    return Line(status, label, 2, ", ".join(aside))


def _items(view: RunView, mine: Sequence[AttemptView], now: str) -> Iterator[Line]:
    titles = {item["item"]: item["title"] for item in view["items"]}
    latest = {attempt["item"]: attempt for attempt in mine if attempt["item"]}
    shown = sorted(latest, key=lambda item: latest[item]["ended_at"] is not None)[:_ITEMS_SHOWN]
    for item in shown:
        title = titles[item]
        label = f"{latest[item]['role']} {item}" + (f" {title}" if title and title != item else "")
        yield _attempt(label, latest[item], now)
    if len(latest) > len(shown):
        yield Line("", f"and {len(latest) - len(shown)} more that ended", 2)


def _waits(view: RunView) -> Iterator[Line]:
    waiting = view["waiting"]
    if waiting is None:
        if view["failure"]:
            yield Line("failed", f"failed in {view['failure']['step']}: {view['failure']['error']}", 0)
    elif waiting["kind"] == "gate":
        yield Line("waiting_gate", f"waits for you: {waiting['reason']}", 0)
        for entry in waiting["shown"]:
            yield Line("", entry["path"], 2)
        yield Line("", f"tenuto approve {view['run']}   (or: reject, revise --feedback '...')", 2)
    elif waiting["kind"] == "blocked":
        yield Line("blocked", f"blocked: {waiting['reason']} {', '.join(waiting['missing'])}".rstrip(), 0)
    else:
        yield Line(view["status"], f"{waiting['cause']}: {waiting['reason']}", 0)
        for words in waiting["recommendations"]:
            yield Line("", words, 2)
