"""Figures over runs: what they cost, how long they took, what did not stand, and what is usual here.

    figures_view(workspace)          totals, and by pipeline and week, from the summaries of all runs; by role and
                                     agent, with retries and waiting for people, from the latest runs, read whole
    figures_csv(workspace)           a line for each run, for a spreadsheet
    costs_view(workspace, by, since) what attempts of all runs have used, by day, week, pipeline, role, model, ...
    costs_csv(view)                  the same, for a spreadsheet
    compare_view(workspace, a, b)    two runs side by side
    replay_view(workspace, run, ...) a run against a pipeline as its file is now (engine/replay.py)
    fork_view(workspace, run, step)  what a fork there would take over, and what would be done again
    sizes_of_pipelines(workspace)    how large the runs of each pipeline are, for people who choose one
    machine_view, verify_view        this machine, its settings, and whether everything is as it was written

A figure that nothing is known about is None, never zero. A run of an earlier version that has no figures is counted as
such.
"""

from __future__ import annotations

import csv
import io
import platform
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from tenuto.core.budget import fewest, worst_case
from tenuto.core.parts import is_refuted
from tenuto.core.status import WELL
from tenuto.core.times import between, iso, milliseconds
from tenuto.errors import TenutoError, assert_never
from tenuto.metrics import Forecast, figures, forecast, history
from tenuto.show.inbox import LeftView, budget_view
from tenuto.show.measures import amount
from tenuto.show.runs import listed_run, load, past_runs, recorded
from tenuto.show.views import run_view

if TYPE_CHECKING:
    from tenuto.core.records.run import Attempt, Run
    from tenuto.engine.replay import Replay
    from tenuto.ports import Check, RunSummary
    from tenuto.workspace.checkup import Report
    from tenuto.workspace.workspace import Workspace

_ITEMS = 3  # that a plan is taken to make, where pipelines are compared
_RUNS = 50  # of the past, that are read whole
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would take a cell that begins so for a formula


class GroupView(TypedDict):
    name: str
    runs: int
    unknown: int  # of these, runs without figures
    well: int
    failed: int
    attempts: int
    refuted: int
    micro_usd: float | None
    tokens: float | None
    busy_ms: int
    latest: int  # of these, runs that were read whole for what follows
    retries: int
    waited_ms: int  # for people


class WorkerView(TypedDict):
    """A role or an agent, over the latest runs."""

    name: str
    attempts: int
    retries: int
    refuted: int
    micro_usd: float | None
    tokens: float | None
    ms: int
    median_ms: int | None


class WaitingForPeople(TypedDict):
    decisions: int
    median_ms: int | None
    longest_ms: int
    total_ms: int


class ForecastView(TypedDict):
    pipeline: str
    runs: int  # of which it was reckoned
    likely: dict[str, float | None]
    worst: dict[str, float | None]


class FiguresView(TypedDict):
    all: GroupView
    by_pipeline: list[GroupView]  # the most used first
    by_week: list[GroupView]  # the newest first; named by their Monday
    latest: int  # how many runs were read whole for what follows
    by_role: list[WorkerView]
    by_agent: list[WorkerView]
    waiting: WaitingForPeople
    forecasts: list[ForecastView]


def figures_view(workspace: Workspace) -> FiguresView:
    summaries = _summaries(workspace)
    latest = list(past_runs(workspace, _RUNS))
    known = {run["id"]: run for run in latest}
    by_pipeline = _groups(summaries, known, lambda one: one["pipeline"]["name"])
    by_week = _groups(summaries, known, lambda one: _week(one["created_at"]))
    return {
        "all": _group("", summaries, known),
        "by_pipeline": sorted(by_pipeline, key=lambda one: -one["runs"]),
        "by_week": sorted(by_week, key=_name, reverse=True),
        "latest": len(latest),
        "by_role": _workers(latest, lambda attempt: attempt["role"]),
        "by_agent": _workers(latest, lambda attempt: attempt["agent"]),
        "waiting": _waiting(latest),
        "forecasts": list(_forecasts(workspace, latest)),
    }


def _summaries(workspace: Workspace) -> list[RunSummary]:
    if not workspace.journal.exists():
        return []
    with workspace.journal.read() as reader:
        return reader.runs()


def _name(group: GroupView) -> str:
    return group["name"]


def _week(at: str) -> str:
    """The Monday of the week."""
    try:
        day = date.fromisoformat(at[:10])
    except ValueError:
        return ""
    return (day - timedelta(days=day.weekday())).isoformat()


def _groups(
    summaries: Sequence[RunSummary], whole: Mapping[str, Run], key: Callable[[RunSummary], str]
) -> list[GroupView]:
    found: dict[str, list[RunSummary]] = {}
    for one in summaries:
        found.setdefault(key(one), []).append(one)
    return [_group(name, mine, whole) for name, mine in found.items()]


def _group(name: str, mine: Sequence[RunSummary], whole: Mapping[str, Run]) -> GroupView:
    """`whole`: the latest runs, by name."""
    known = [one["figures"] for one in mine if "figures" in one]
    latest = [whole[one["id"]] for one in mine if one["id"] in whole]
    return {
        "name": name,
        "runs": len(mine),
        "unknown": len(mine) - len(known),
        "well": sum(1 for one in mine if listed_run(one)["status"] in WELL),
        "failed": sum(1 for one in mine if one["status"] == "failed"),
        "attempts": sum(one["attempts"] for one in known),
        "refuted": sum(one["refuted"] for one in known),
        "micro_usd": _sum([one["micro_usd"] for one in known]),
        "tokens": _sum([one["tokens"] for one in known]),
        "busy_ms": sum(one["busy_ms"] for one in known),
        "latest": len(latest),
        "retries": sum(1 for run in latest for one in run["attempts"].values() if one["number"] > 1),
        "waited_ms": _waiting(latest)["total_ms"],
    }


def _sum(found: Sequence[float | None]) -> float | None:
    known = [one for one in found if one is not None]
    return sum(known) if known else None


def _workers(runs: Sequence[Run], key: Callable[[Attempt], str]) -> list[WorkerView]:
    """The dearest first; where nothing is known of cost, who worked longest."""
    found: dict[str, list[Attempt]] = {}
    for run in runs:
        for attempt in run["attempts"].values():
            found.setdefault(key(attempt), []).append(attempt)
    workers = [_worker(name, mine) for name, mine in found.items()]
    return sorted(workers, key=lambda one: (-(one["micro_usd"] or 0), -one["ms"]))


def _worker(name: str, mine: Sequence[Attempt]) -> WorkerView:
    took = [between(one["started_at"], one["ended_at"]) for one in mine if one["ended_at"]]
    return {
        "name": name,
        "attempts": len(mine),
        "retries": sum(1 for one in mine if one["number"] > 1),
        "refuted": sum(is_refuted(one["said"], one["found"]) for one in mine),
        "micro_usd": _sum([_used(one, "micro_usd") for one in mine]),
        "tokens": _sum([_used(one, "tokens") for one in mine]),
        "ms": sum(took),
        "median_ms": round(statistics.median(took)) if took else None,
    }


def _used(attempt: Attempt, unit: str) -> float | None:
    value = attempt["usage"].get(unit)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _waiting(runs: Sequence[Run]) -> WaitingForPeople:
    """From the beginning of a gate's visit to the decision."""
    waits: list[int] = []
    for run in runs:
        begun: dict[str, list[str]] = {}
        for visit in run["visits"]:
            begun.setdefault(visit["step"], []).append(visit["started_at"])
        for decision in run["decisions"]:
            earlier = [at for at in begun.get(decision["step"] or "", ()) if at <= decision["at"]]
            if earlier:
                waits.append(between(earlier[-1], decision["at"]))
    return {
        "decisions": len(waits),
        "median_ms": round(statistics.median(waits)) if waits else None,
        "longest_ms": max(waits, default=0),
        "total_ms": sum(waits),
    }


def _forecasts(workspace: Workspace, latest: Sequence[Run]) -> Iterator[ForecastView]:
    """Of every pipeline that was used lately, and that is there still."""
    from tenuto.knowledge import definitions

    used = dict.fromkeys(run["pipeline"]["name"] for run in latest if run["attempts"])
    known = {one["name"] for one in definitions.available(Path(workspace.root)) if not one["problems"]}
    for name in used:
        if name in known:
            pipeline = definitions.load(name, Path(workspace.root))
            past = history(latest, name)
            found: Forecast = forecast(pipeline, worst_case(pipeline, _ITEMS), past)
            yield {"pipeline": name, "runs": len(past["whole"]), "likely": found["likely"], "worst": found["worst"]}


# ---- for a spreadsheet

_PLAIN = ("attempts", "refuted", "micro_usd", "tokens", "busy_ms")


def figures_csv(workspace: Workspace) -> str:
    """The newest first. What is not known is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(("run", "name", "pipeline", "status", "created_at", "updated_at", *_PLAIN))
    for one in _summaries(workspace):
        status = listed_run(one)["status"]
        told = (one["id"], one["name"], one["pipeline"]["name"], status, one["created_at"], one["updated_at"])
        known: Mapping[str, object] = {**one["figures"]} if "figures" in one else {}
        writer.writerow([*map(_cell, told), *("" if known.get(field) is None else known[field] for field in _PLAIN)])
    return text.getvalue()


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


# ---- what was spent

CostsBy = Literal["day", "week", "pipeline", "role", "agent", "model", "run"]
BY: tuple[CostsBy, ...] = ("week", "day", "pipeline", "role", "agent", "model", "run")


class CostView(TypedDict):
    name: str  # "": nobody said it
    runs: int
    attempts: int
    unreported: int  # of these, attempts whose agent did not say what they cost
    micro_usd: float | None  # None: none of them said it
    tokens: float | None
    ms: int


class CostsView(TypedDict):
    by: CostsBy
    since: str
    zone: str  # that a day and a week are meant in
    rows: list[CostView]  # days and weeks: the newest first; else the dearest first
    all: CostView
    budget: list[LeftView]  # what all runs together may use, and have used


def costs_view(workspace: Workspace, by: CostsBy = "week", since: str = "") -> CostsView:
    """Of every attempt that has ended since that day, in every run. An attempt counts in the day in which it ended, as
    the budget of a day has it."""
    from tenuto.engine.many.timetable import offset_of, zone_name
    from tenuto.workspace.settings import read_settings

    zone = read_settings(workspace.root, workspace.state).get("zone", "")
    offset = offset_of(zone)

    def day_of(at: str | None) -> str:
        then = milliseconds(at) or 0
        return iso(then + offset(then))[:10]

    found: dict[str, list[tuple[str, Attempt]]] = {}
    for run in past_runs(workspace, -1):
        for attempt in run["attempts"].values():
            day = day_of(attempt["ended_at"]) if attempt["ended_at"] else ""
            if day and day >= since:
                found.setdefault(_kind_of_cost(by, run, attempt, day), []).append((run["id"], attempt))
    rows = [_cost(name, mine) for name, mine in found.items()]
    if by in ("day", "week"):
        rows.sort(key=lambda one: one["name"], reverse=True)
    else:
        rows.sort(key=lambda one: (-(one["micro_usd"] or 0), -(one["tokens"] or 0), one["name"]))
    return {
        "by": by,
        "since": since,
        "zone": zone_name(zone),
        "rows": rows,
        "all": _cost("", [one for mine in found.values() for one in mine]),
        "budget": budget_view(workspace) if workspace.journal.exists() else [],
    }


def _kind_of_cost(by: CostsBy, run: Run, attempt: Attempt, day: str) -> str:
    match by:
        case "day":
            return day
        case "week":
            return _week(day)
        case "pipeline":
            return run["pipeline"]["name"]
        case "role":
            return attempt["role"]
        case "agent":
            return attempt["agent"]
        case "model":
            return _model(attempt)
        case "run":
            return run["id"]
        case unknown:
            assert_never(unknown)


def _model(attempt: Attempt) -> str:
    """As it was asked for, in the agent's spelling; "": its program chose one."""
    words = attempt["agent"].replace(":", ",").split(",")
    return next((word.removeprefix("model=") for word in words if word.startswith("model=")), "")


def _cost(name: str, mine: Sequence[tuple[str, Attempt]]) -> CostView:
    attempts = [attempt for _, attempt in mine]
    reported = [_used(attempt, "micro_usd") for attempt in attempts]
    return {
        "name": name,
        "runs": len(dict.fromkeys(run for run, _ in mine)),
        "attempts": len(attempts),
        "unreported": sum(1 for one in reported if one is None),
        "micro_usd": _sum(reported),
        "tokens": _sum([_used(attempt, "tokens") for attempt in attempts]),
        "ms": sum(between(one["started_at"], one["ended_at"]) for one in attempts),
    }


def costs_csv(view: CostsView) -> str:
    """What is not known is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow((view["by"], "runs", "attempts", "unreported", "micro_usd", "tokens", "ms"))
    for one in view["rows"]:
        known = (one["micro_usd"], one["tokens"])
        cells = ("" if value is None else value for value in known)
        writer.writerow([_cell(one["name"]), one["runs"], one["attempts"], one["unreported"], *cells, one["ms"]])
    return text.getvalue()


# ---- two runs, or two ways of one


class SideView(TypedDict):
    run: str
    status: str
    pipeline: str
    attempts: int
    retries: int
    refuted: int
    total_ms: int
    micro_usd: float | None
    tokens: float | None


class StepOfBoth(TypedDict):
    """A step, as it went in each: verdicts of its visits, attempts, time, cost."""

    step: str
    verdicts: tuple[list[str], list[str]]
    attempts: tuple[int, int]
    ms: tuple[int, int]
    micro_usd: tuple[float | None, float | None]


class CompareView(TypedDict):
    sides: tuple[SideView, SideView]
    steps: list[StepOfBoth]
    params: list[tuple[str, str, str]]  # name, there, here: those that differ
    artifacts: list[tuple[str, str, str]]  # name and hashes: those that differ; empty: it has none


def compare_view(workspace: Workspace, first: str, second: str) -> CompareView:
    a, b = load(workspace, first), load(workspace, second)
    order = dict.fromkeys([*a["steps"], *b["steps"]])
    halves = _steps_of(a), _steps_of(b)
    given: tuple[Mapping[str, object], Mapping[str, object]] = (a["params"], b["params"])
    hashes = tuple({name: one["sha256"] for name, one in run["artifacts"].items()} for run in (a, b))
    return {
        "sides": (_side(a), _side(b)),
        "steps": [_of_both(step, halves[0].get(step), halves[1].get(step)) for step in order],
        "params": _differing(*({name: str(value) for name, value in one.items()} for one in given)),
        "artifacts": _differing(*hashes),
    }


def _differing(a: Mapping[str, str], b: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [(name, a.get(name, ""), b.get(name, "")) for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]


def _side(run: Run) -> SideView:
    found = figures(run)
    return {
        "run": run["id"],
        "status": run_view(run)["status"],
        "pipeline": run["pipeline"]["name"],
        "attempts": found["attempts"],
        "retries": found["retries"],
        "refuted": run["refuted"],
        "total_ms": found["total_ms"],
        "micro_usd": found["usage"].get("micro_usd"),
        "tokens": found["usage"].get("tokens"),
    }


class _Half(NamedTuple):
    verdicts: list[str]
    attempts: int
    ms: int
    micro_usd: float | None


def _steps_of(run: Run) -> dict[str, _Half]:
    """A visit's verdict is kept for the latest alone; of the others, how they ended."""
    visits: dict[str, list[str]] = {}
    for visit in run["visits"]:
        if visit["item"] is None:
            visits.setdefault(visit["step"], []).append(visit["status"])
    for step, state in run["steps"].items():
        if state["verdict"] and visits.get(step):
            visits[step][-1] = state["verdict"]
    used = {one["step"]: one for one in figures(run)["steps"]}
    return {
        step: _Half(
            visits.get(step, []),
            used[step]["attempts"] if step in used else 0,
            used[step]["duration_ms"] if step in used else 0,
            used[step]["usage"].get("micro_usd") if step in used else None,
        )
        for step in run["steps"]
    }


def _of_both(step: str, a: _Half | None, b: _Half | None) -> StepOfBoth:
    first, second = a or _Half([], 0, 0, None), b or _Half([], 0, 0, None)
    return {
        "step": step,
        "verdicts": (first.verdicts, second.verdicts),
        "attempts": (first.attempts, second.attempts),
        "ms": (first.ms, second.ms),
        "micro_usd": (first.micro_usd, second.micro_usd),
    }


def replay_view(workspace: Workspace, name: str, pipeline: str = "") -> Replay:
    """Against its own pipeline as the file is now, or another one. No agent is started, nothing is written."""
    from tenuto.engine.attempt import define
    from tenuto.engine.replay import refuse_unreplayable, replay

    run = load(workspace, name)
    refuse_unreplayable(run)
    events = [entry["event"] for entry in recorded(workspace, name)["events"]]
    return replay(define(pipeline or run["pipeline"]["name"], workspace.root)["pipeline"], run, events)


class ForkPreview(TypedDict):
    run: str
    step: str
    steps: list[str]  # where a fork may begin
    kept: list[str]  # documents that it takes over
    again: list[str]  # steps that are done again
    attempts: int  # that these took
    micro_usd: float | None  # that these cost
    command: str


def fork_view(workspace: Workspace, name: str, step: str) -> ForkPreview:
    """What a fork at a step would take over, and what doing the rest again took the last time."""
    from tenuto.engine.begin import would_hand_over

    run, known, kept = would_hand_over(workspace, name, step)
    again = known[known.index(step) :]
    mine = [attempt for attempt in run["attempts"].values() if attempt["step"] in again]
    return {
        "run": name,
        "step": step,
        "steps": known,
        "kept": kept,
        "again": again,
        "attempts": len(mine),
        "micro_usd": _sum([_used(one, "micro_usd") for one in mine]),
        "command": f"tenuto fork {name} --at {step}",
    }


# ---- how large runs are


class Size(NamedTuple):
    name: str
    agents: int  # when all goes well
    description: str
    cost: str  # what such runs are likely to cost, by what was spent here; "" where nothing is known


def sizes_of_pipelines(workspace: Workspace) -> Iterator[Size]:
    """Of those that a new run can take."""
    from tenuto.knowledge import definitions

    past = list(past_runs(workspace, _RUNS))
    every = history(past, "")
    for listed in definitions.available(Path(workspace.root)):
        if listed["problems"]:
            continue
        pipeline = definitions.load(listed["name"], Path(workspace.root))
        if pipeline["starts_from"] != "new":
            continue
        known = forecast(pipeline, worst_case(pipeline, _ITEMS), history(past, pipeline["name"]))["likely"]["micro_usd"]
        likely = known or _mean(every["by_role"]) * fewest(pipeline, _ITEMS)
        cost = f" (likely about {amount('micro_usd', likely)}, by what was spent here)" if likely else ""
        yield Size(pipeline["name"], fewest(pipeline, _ITEMS), " ".join(pipeline["description"].split()), cost)


def _mean(by_role: Mapping[str, Mapping[str, list[float]]]) -> int:
    """What an attempt has cost here, whoever made it; 0 where nobody reported it."""
    found = [cost for used in by_role.values() for cost in used.get("micro_usd", ())]
    return round(sum(found) / len(found)) if found else 0


# ---- the machine


class SettingView(TypedDict):
    name: str
    value: object  # None: it is not set
    shape: str  # what it may be, in words
    example: str


class MachineView(TypedDict):
    version: str
    python: str
    system: str
    journal: str
    gates: str
    checks: list[Check]  # of `tenuto doctor`
    settings: list[SettingView]
    problem: str  # why the settings cannot be read


def machine_view(workspace: Workspace, version: str) -> MachineView:
    """`version`: of the program that shows it."""
    from tenuto.workspace.checkup import diagnose
    from tenuto.workspace.settings import SETTINGS, read_settings

    given: Mapping[str, object] = {}
    problem = ""
    try:
        given = {**read_settings(workspace.root)}
    except TenutoError as error:
        problem = f"{error.message}: {error.hint}" if error.hint else error.message
    return {
        "version": version,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "journal": workspace.journal.location,
        "gates": str(given.get("gates", "guarded")),
        "checks": diagnose(workspace),
        "settings": [
            {"name": name, "value": given.get(name), "shape": setting.shape, "example": setting.example}
            for name, setting in SETTINGS.items()
        ],
        "problem": problem,
    }


def verify_view(workspace: Workspace, run: str | None = None) -> Report:
    """Is everything as it was written? It reads all of it, which takes a while for a long journal."""
    from tenuto.workspace.checkup import examine

    return examine(workspace, run)
