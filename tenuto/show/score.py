"""A run as a score: the steps of its pipeline as lanes, attempts as bars, gates as rests. Numbers only; no picture.

    score_view(run, pipeline, now)            the lanes, in the pipeline's order, those to come and left out among them
    ghost_view(run, pipeline, cap, order)     the same items under another cap or in another order, reckoned
    visits_with_items(run)                    those for which that can be reckoned

Times are milliseconds on an axis on which long idle stretches are folded: each of them takes up FOLDED of it, and is
listed with how long it was. A bar's `lane` is its row inside the step; never more rows than attempts overlapped.
The time that it takes to make grows with the number of attempts, times its logarithm, and with nothing else.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from tenuto.core.parts import is_refuted
from tenuto.core.pipeline.conditions import ALWAYS, why_not
from tenuto.core.times import between, iso, milliseconds
from tenuto.metrics import Order, Place, Slot, critical_places, reckoned
from tenuto.show.measures import CAP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenuto.core.pipeline.records import Pipeline, Step
    from tenuto.core.records.run import Attempt, Decision, Run, Visit

LaneState = Literal["done", "here", "failed", "pending", "left-out"]

FOLDED = 0.04  # of the busy time: how wide an idle stretch is drawn
_IDLE = 0.10  # of the busy time: an idle stretch longer than this is folded
_SHORTEST_IDLE = 5_000  # milliseconds; a shorter stretch is not worth a break


class BarView(TypedDict):
    attempt: str
    lane: int
    left: int
    right: int
    started_at: str
    ended_at: str | None  # None: it is under way, and reaches to now
    visit: int
    item: str | None
    place: str
    agent: str
    number: int
    status: str
    verdict: str | None
    is_refuted: bool
    is_critical: bool  # on the longest chain of attempts that had to wait for each other


class BlockView(TypedDict):
    """A visit of the step."""

    visit: int
    item: str | None
    left: int
    right: int
    status: str
    started_at: str
    ended_at: str | None


class RestView(TypedDict):
    """A gate: how long it waited, and what was decided."""

    gate: str
    left: int
    right: int
    waited_ms: int
    decision: str  # empty: it is open
    who: str
    at: str | None


class LaneView(TypedDict):
    step: str
    title: str
    kind: str  # agent, cluster, waves, gate, action; empty: nothing is known of the step
    state: LaneState
    reason: str  # why it is left out
    verdict: str | None
    visits: int
    rows: int  # at least 1
    blocks: list[BlockView]
    bars: list[BarView]
    rests: list[RestView]


class FoldView(TypedDict):
    """A stretch in which nothing was under way."""

    left: int
    right: int
    ms: int
    started_at: str
    ended_at: str


class ScoreView(TypedDict):
    started_at: str
    ended_at: str
    width: int  # of the axis
    real_ms: int
    busy_ms: int
    lanes: list[LaneView]
    folds: list[FoldView]
    critical_ms: int


class GhostBar(TypedDict):
    item: str
    lane: int
    left: int
    right: int


class GhostView(TypedDict):
    """What another cap or another order would have made of one visit."""

    step: str
    visit: int
    cap: int
    order: Order
    measured_ms: int  # what the items took
    reckoned_ms: int
    rows: int
    bars: list[GhostBar]


class Axis:
    """Moments as places on an axis without long idle stretches."""

    def __init__(self, begin: int, end: int, busy: Sequence[tuple[int, int]]) -> None:
        self.begin, self.end = begin, max(begin, end)
        joined = _joined(busy)
        self.busy_ms = sum(to - start for start, to in joined)
        self.folds: list[tuple[int, int]] = []
        at = begin
        for start, to in [*joined, (self.end, self.end)]:
            if start - at > max(_SHORTEST_IDLE, self.busy_ms * _IDLE):
                self.folds.append((at, start))
            at = max(at, to)
        self._drawn = max(1_000, int(self.busy_ms * FOLDED))
        self._starts = [start for start, _ in self.folds]
        self._saved = [0]  # up to and with each fold
        for start, to in self.folds:
            self._saved.append(self._saved[-1] + (to - start) - self._drawn)

    @property
    def width(self) -> int:
        return self.at(self.end)

    def at(self, moment: int) -> int:
        moment = min(max(moment, self.begin), self.end)
        number = bisect_right(self._starts, moment)
        if not number:
            return moment - self.begin
        start, to = self.folds[number - 1]
        if moment >= to:
            return moment - self.begin - self._saved[number]
        inside = (moment - start) * self._drawn // (to - start)
        return start - self.begin - self._saved[number - 1] + inside


class _Bars(NamedTuple):
    """What every lane is made from."""

    axis: Axis
    now: str
    visits: dict[str, list[Visit]]
    attempts: dict[str, list[tuple[str, Attempt]]]
    critical: set[tuple[str, int, str]]
    decisions: dict[str, list[Decision]]


def score_view(run: Run, pipeline: Pipeline | None, now: str) -> ScoreView:
    until = run["stopped_at"] or now
    begin = milliseconds(run["created_at"]) or 0
    chain = critical_places(run)
    visits: dict[str, list[Visit]] = {}
    for visit in run["visits"]:
        visits.setdefault(visit["step"], []).append(visit)
    attempts: dict[str, list[tuple[str, Attempt]]] = {}
    for name, attempt in run["attempts"].items():
        attempts.setdefault(attempt["step"], []).append((name, attempt))
    decisions: dict[str, list[Decision]] = {}
    for decision in run["decisions"]:
        decisions.setdefault(decision["step"] or decision["name"], []).append(decision)
    axis = Axis(begin, milliseconds(until) or begin, _busy(run, pipeline, until))
    made = _Bars(axis, until, visits, attempts, set(_critical(chain)), decisions)
    return {
        "started_at": run["created_at"],
        "ended_at": until,
        "width": axis.width,
        "real_ms": axis.end - axis.begin,
        "busy_ms": axis.busy_ms,
        "lanes": list(_lanes(run, pipeline, made)),
        "folds": [
            {
                "left": axis.at(start),
                "right": axis.at(to),
                "ms": to - start,
                "started_at": iso(start),
                "ended_at": iso(to),
            }
            for start, to in axis.folds
        ],
        "critical_ms": sum(place["ms"] for place in chain),
    }


def _critical(chain: Sequence[Place]) -> Iterator[tuple[str, int, str]]:
    for place in chain:
        yield place["step"], place["visit"], place["item"] or place["place"]


def _busy(run: Run, pipeline: Pipeline | None, now: str) -> list[tuple[int, int]]:
    """When an attempt was under way; of a run without attempts, when it was in a step that is no gate."""
    taken = [(attempt["started_at"], attempt["ended_at"] or now) for attempt in run["attempts"].values()]
    if not taken:
        gates = {step["id"] for step in pipeline["steps"] if step["kind"] == "gate"} if pipeline else set()
        taken = [(one["started_at"], one["ended_at"] or now) for one in run["visits"] if one["step"] not in gates]
    return [(start, to) for a, b in taken if (start := milliseconds(a)) is not None and (to := _ms(b, start)) >= start]


def _ms(text: str, otherwise: int) -> int:
    found = milliseconds(text)
    return otherwise if found is None else found


def _joined(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, to in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], to))
        else:
            joined.append((start, to))
    return joined


def _lanes(run: Run, pipeline: Pipeline | None, made: _Bars) -> Iterator[LaneView]:
    known = {step["id"]: step for step in pipeline["steps"]} if pipeline else {}
    planned = [name for name, step in known.items() if not step["aside"] or name in run["steps"]]
    order = [*planned, *(name for name in run["steps"] if name not in known)]
    behind = max((at for at, name in enumerate(order) if name in run["steps"]), default=-1)
    for at, name in enumerate(order):
        bars, rows = _bars(name, made)
        state, reason = _state(run, known.get(name), name, at < behind)
        yield {
            "step": name,
            "title": _title(known.get(name), name),
            "kind": known[name]["kind"] if name in known else "",
            "state": state,
            "reason": reason,
            "verdict": run["steps"][name]["verdict"] if name in run["steps"] else None,
            "visits": len({visit["iteration"] for visit in made.visits.get(name, ())}),
            "rows": rows,
            "blocks": [_block(visit, made) for visit in made.visits.get(name, ())],
            "bars": bars,
            "rests": list(_rests(run, known.get(name), name, made)),
        }


def _title(step: Step | None, name: str) -> str:
    return (step["name"] if step else "") or name


def _state(run: Run, step: Step | None, name: str, was_passed: bool) -> tuple[LaneState, str]:
    own = run["steps"].get(name)
    if own is None:
        if not was_passed and run["stopped_at"] is None:
            return "pending", ""
        return "left-out", _why_left_out(step, was_passed)
    match own["status"]:
        case "skipped":
            return "left-out", own.get("reason") or _why_left_out(step, True)
        case "failed":
            return "failed", ""
        case "completed":
            return ("here" if name == run["position"] and run["current_visit"] else "done"), ""
        case "running":
            return "here", ""
        case _:
            return "pending", ""


def _why_left_out(step: Step | None, was_passed: bool) -> str:
    if step is not None and step["when"] != ALWAYS:
        return why_not(step["when"])
    return "the run began further on" if was_passed else "the run ended before it"


def _block(visit: Visit, made: _Bars) -> BlockView:
    left, right = _place(visit["started_at"], visit["ended_at"], made)
    return {
        "visit": visit["iteration"],
        "item": visit["item"],
        "left": left,
        "right": right,
        "status": visit["status"],
        "started_at": visit["started_at"],
        "ended_at": visit["ended_at"],
    }


def _place(started_at: str, ended_at: str | None, made: _Bars) -> tuple[int, int]:
    start = _ms(started_at, made.axis.begin)
    left = made.axis.at(start)
    return left, max(left, made.axis.at(_ms(ended_at or made.now, start)))


def _bars(step: str, made: _Bars) -> tuple[list[BarView], int]:
    """In the order in which they began; each in the lowest row that is free."""
    free: list[int] = []
    busy: list[tuple[str, int]] = []
    rows = 0
    bars: list[BarView] = []
    for name, attempt in sorted(made.attempts.get(step, ()), key=lambda one: one[1]["started_at"]):
        while busy and busy[0][0] <= attempt["started_at"]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, rows)
            rows += 1
        lane = heapq.heappop(free)
        heapq.heappush(busy, (attempt["ended_at"] or made.now, lane))
        bars.append(_bar(name, attempt, lane, made))
    return bars, max(rows, 1)


def _bar(name: str, attempt: Attempt, lane: int, made: _Bars) -> BarView:
    left, right = _place(attempt["started_at"], attempt["ended_at"], made)
    place = str(attempt["extra"].get("seat", name))
    return {
        "attempt": name,
        "lane": lane,
        "left": left,
        "right": right,
        "started_at": attempt["started_at"],
        "ended_at": attempt["ended_at"],
        "visit": attempt["iteration"],
        "item": attempt["item"],
        "place": place,
        "agent": attempt["agent"],
        "number": attempt["number"],
        "status": attempt["status"],
        "verdict": attempt["verdict"],
        "is_refuted": is_refuted(attempt["said"], attempt["found"]),
        "is_critical": (attempt["step"], attempt["iteration"], attempt["item"] or place) in made.critical,
    }


def _rests(run: Run, step: Step | None, name: str, made: _Bars) -> Iterator[RestView]:
    """Of a gate step, each visit with the decision that ended it; elsewhere the decisions that name the step."""
    decided = list(made.decisions.get(name, ()))
    visits = made.visits.get(name, []) if step is not None and step["kind"] == "gate" else []
    for visit in visits:
        decision = decided.pop(0) if decided else None
        yield _rest(decision, visit["started_at"], decision["at"] if decision else None, name, made)
    for decision in decided:
        yield _rest(decision, decision["at"], decision["at"], name, made)
    gate = run["gate"]
    if gate is not None and not visits and run["position"] == name:
        yield _rest(None, gate["opened_at"], None, gate["name"], made)


def _rest(decision: Decision | None, opened_at: str, decided_at: str | None, name: str, made: _Bars) -> RestView:
    left, right = _place(opened_at, decided_at, made)
    return {
        "gate": decision["name"] if decision else name,
        "left": left,
        "right": right,
        "waited_ms": between(opened_at, decided_at or made.now),
        "decision": decision["decision"] if decision else "",
        "who": decision["who"] if decision else "",
        "at": decided_at,
    }


# ---- what another cap or order would have made of it


def ghost_view(run: Run, pipeline: Pipeline | None, step: str, visit: int, cap: int, order: Order) -> GhostView:
    slots = reckoned(run, step, visit, cap, order)
    own = pipeline["cap"] if pipeline else CAP
    measured: list[Slot] = reckoned(run, step, visit, own, order_of(pipeline, step))
    return {
        "step": step,
        "visit": visit,
        "cap": cap,
        "order": order,
        "measured_ms": max((slot["to_ms"] for slot in measured), default=0),
        "reckoned_ms": max((slot["to_ms"] for slot in slots), default=0),
        "rows": max((slot["lane"] for slot in slots), default=0) + 1,
        "bars": [
            {"item": slot["item"], "lane": slot["lane"], "left": slot["from_ms"], "right": slot["to_ms"]}
            for slot in slots
        ],
    }


def visits_with_items(run: Run) -> list[tuple[str, int]]:
    """(step, visit) in which an item has ended, in their order."""
    ended = (one for one in run["attempts"].values() if one["item"] and one["ended_at"])
    return list(dict.fromkeys((one["step"], one["iteration"]) for one in ended))


def order_of(pipeline: Pipeline | None, name: str) -> Order:
    """In which order the items of this step are started."""
    for step in pipeline["steps"] if pipeline else ():
        if step["id"] == name and step["kind"] == "waves" and step["waves"]["order"] == "rolling":
            return "rolling"
    return "waves"
