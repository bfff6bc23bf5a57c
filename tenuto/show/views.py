"""A run as a flat record: what it is, where it stands, what was done in it, what it has spent.

    run_view(run)              the steps that the run knows, in the order in which it met them
    run_view(run, pipeline)    all steps of its pipeline, in the pipeline's order; those to come are pending
    attempt_view(name, ...)    one attempt, with what the agent said and what the receipt found

Pure: a run in, records out. Times are as recorded; a renderer compares them with its own clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from tenuto.core.pipeline.results import handed_in
from tenuto.core.status import RESTING, UNDER_WAY, blocked_view, open_ends, shown_status_of, waits_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import (
        Account,
        Artifact,
        Attempt,
        CurrentVisit,
        Found,
        OpenEnds,
        Run,
        Said,
        ShownStatus,
        Visit,
        Waiting,
    )

Phase = Literal["under_way", "waiting", "ended"]

_IN_FLIGHT = ("dispatched", "running")


class AttemptView(TypedDict):
    attempt: str
    step: str
    visit: int
    role: str
    agent: str
    place: str  # the agent's place in the step: researcher-architecture, implementer@03
    item: str | None
    number: int  # 1: the first try at this place in this visit
    follows: str  # the attempt whose work it goes on with
    status: str
    verdict: str | None  # as recorded: what counts
    summary: str
    said: Said | None  # the agent's own word; None: it has not ended, or its word was not kept at that time
    found: Found | None  # the verdict that counts, and the first claim that was not true; None: it has not ended
    result: object  # the structured result that counts; None where there is none
    started_at: str
    ended_at: str | None
    usage: Mapping[str, object]


class StepView(TypedDict):
    step: str
    status: str
    verdict: str | None
    visits: int
    here: bool  # the run stands in it
    reason: str  # why it is left out; empty: it is not


class VisitView(TypedDict):
    step: str
    item: str | None
    visit: int
    status: str
    started_at: str
    ended_at: str | None


class ItemView(TypedDict):
    item: str
    title: str
    status: str
    depends_on: list[str]


class CurrentView(TypedDict):
    """The visit that an engine-driven run is in."""

    step: str
    visit: int
    wave: int  # 0: the step has no waves
    waves: int
    items: int
    items_ended: int


class LimitView(TypedDict):
    """One limit with what is used or promised of it."""

    step: str  # empty: of the whole run
    unit: str
    limit: int | None  # None: it was taken away
    used: float


class ArtifactView(TypedDict):
    name: str
    path: str
    sha256: str
    size: int
    step: str | None
    by: str  # the attempt that made it, else the person or program


class ForkView(TypedDict):
    source: str
    step: str


class AgentsView(TypedDict):
    """The agents that were asked for by name, as the journal remembers them."""

    agent: str
    roles: dict[str, str]


class FailureView(TypedDict):
    step: str | None
    error: str


class RunView(TypedDict):
    run: str
    name: str
    request: str
    summary: str
    status: ShownStatus
    phase: Phase
    pipeline: str
    is_bound: bool  # to a checked definition; otherwise it is led by hand
    driver: str
    mode: str
    dialects: list[str]
    created_at: str
    updated_at: str
    stopped_at: str | None
    version: int
    fork: ForkView | None
    position: str | None
    current: CurrentView | None
    next: list[str]  # the steps that are queued behind it
    steps: list[StepView]
    visits: list[VisitView]
    items: list[ItemView]
    waves: list[list[str]]
    attempts: list[AttemptView]
    in_flight: list[str]
    routes: dict[str, int]
    artifacts: list[ArtifactView]
    commits: int
    spent: Mapping[str, object]
    limits: list[LimitView]
    agents: AgentsView
    switches: dict[str, bool]
    params: Mapping[str, object]
    waiting: Waiting | None
    blocked: Waiting | None  # recorded, and perhaps behind a gate or a pause that comes first
    failure: FailureView | None
    open_ends: OpenEnds  # of a run that finished well: what was not done
    branch: str
    pull_request: str  # its address; empty: none was opened
    stash: str


def waiting_of(run: Run) -> Waiting | None:
    """What a run waits for, without all the rest."""
    return waits_for(run)


def run_view(run: Run, pipeline: Pipeline | None = None) -> RunView:
    settings, fork, failure = run["settings"], run["extra"].get("fork"), run["failure"]
    ends = open_ends(run)
    crew = settings.get("crew", {})
    return {
        "run": run["id"],
        "name": run["name"],
        "request": run["request"],
        "summary": run["summary"],
        "status": shown_status_of(run),
        "phase": phase_of(run["status"]),
        "pipeline": run["pipeline"]["name"],
        "is_bound": run["pipeline"]["hash"] is not None,
        "driver": run["driver"],
        "mode": run["mode"],
        "dialects": list(run["dialects"]),
        "created_at": run["created_at"],
        "updated_at": run["updated_at"],
        "stopped_at": run["stopped_at"],
        "version": run["version"],
        "fork": {"source": fork["source"], "step": fork["step"]} if fork else None,
        "position": run["position"],
        "current": _current(run["current_visit"]) if run["current_visit"] else None,
        "next": [leg["step"] for leg in run["queue"]],
        "steps": _steps(run, pipeline),
        "visits": [_visit(visit) for visit in run["visits"]],
        "items": [
            {"item": name, "title": item["title"], "status": item["status"], "depends_on": item["depends_on"]}
            for name, item in run["items"].items()
        ],
        "waves": [list(wave["items"]) for wave in run["waves"]],
        "attempts": [attempt_view(name, attempt) for name, attempt in run["attempts"].items()],
        "in_flight": list(run["in_flight"]),
        "routes": dict(run["routes"]),
        "artifacts": [artifact_view(name, artifact) for name, artifact in run["artifacts"].items()],
        "commits": len(run["commits"]),
        "spent": dict(run["budget"]["spent"]),
        "limits": _limits(run),
        "agents": {"agent": crew.get("agent", ""), "roles": dict(crew.get("roles", {}))},
        "switches": dict(run["switches"]),
        "params": dict(run["params"]),
        "waiting": waits_for(run),
        "blocked": blocked_view(run, run["blocked"]) if run["blocked"] else None,
        "failure": {"step": failure["step"], "error": failure["error"]} if failure else None,
        "open_ends": ends,
        "branch": settings.get("branch", ""),
        "pull_request": (settings.get("pull_request") or {}).get("url", ""),
        "stash": settings.get("stash", ""),
    }


def phase_of(status: str) -> Phase:
    return "under_way" if status in UNDER_WAY else "waiting" if status in RESTING else "ended"


def attempt_view(name: str, attempt: Attempt) -> AttemptView:
    extra = attempt["extra"]
    return {
        "attempt": name,
        "step": attempt["step"],
        "visit": attempt["iteration"],
        "role": attempt["role"],
        "agent": attempt["agent"],
        "place": str(extra.get("seat", "")),
        "item": attempt["item"],
        "number": attempt["number"],
        "follows": str(extra.get("follows") or ""),
        "status": attempt["status"],
        "verdict": attempt["verdict"],
        "summary": attempt["summary"],
        "said": attempt["said"],
        "found": attempt["found"],
        "result": handed_in(attempt),
        "started_at": attempt["started_at"],
        "ended_at": attempt["ended_at"],
        "usage": attempt["usage"],
    }


def is_in_flight(attempt: AttemptView) -> bool:
    return attempt["status"] in _IN_FLIGHT


def artifact_view(name: str, artifact: Artifact) -> ArtifactView:
    return {
        "name": name,
        "path": artifact["path"],
        "sha256": artifact["sha256"],
        "size": artifact["size"],
        "step": artifact["step"],
        "by": artifact["attempt"] or artifact["by"],
    }


def _steps(run: Run, pipeline: Pipeline | None) -> list[StepView]:
    visits = [visit["step"] for visit in run["visits"]]
    planned = [
        step["id"]
        for step in (pipeline["steps"] if pipeline else ())
        if not step["aside"] or step["id"] in run["steps"]
    ]
    return [
        {
            "step": name,
            "status": run["steps"][name]["status"] if name in run["steps"] else "pending",
            "verdict": run["steps"][name]["verdict"] if name in run["steps"] else None,
            "visits": visits.count(name),
            "here": name == run["position"],
            "reason": run["steps"][name].get("reason", "") if name in run["steps"] else "",
        }
        for name in [*planned, *(name for name in run["steps"] if name not in planned)]
    ]


def _visit(visit: Visit) -> VisitView:
    return {
        "step": visit["step"],
        "item": visit["item"],
        "visit": visit["iteration"],
        "status": visit["status"],
        "started_at": visit["started_at"],
        "ended_at": visit["ended_at"],
    }


def _current(current: CurrentVisit) -> CurrentView:
    waves = sorted(set(current["wave_of"].values()))
    left = current["left"]
    return {
        "step": current["step"],
        "visit": current["visit"],
        "wave": waves.index(current["wave_of"][left[0]]) + 1 if left and waves else len(waves),
        "waves": len(waves),
        "items": len(current["wave_of"]),
        "items_ended": len(current["wave_of"]) - len(left) if waves else 0,
    }


def _limits(run: Run) -> list[LimitView]:
    accounts: list[tuple[str, Account]] = [("", run["budget"]), *run["budget"]["steps"].items()]
    found: list[LimitView] = []
    for step, account in accounts:
        for unit, limit in account["limits"].items():
            held = account["spent"].get(unit, 0) + account["reserved"].get(unit, 0)
            used = account["busy_ms"] / 1000 if unit == "wall_clock" else held
            found.append({"step": step, "unit": unit, "limit": limit, "used": used})
    return found
