"""`tenuto metrics`"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tenuto.encoding import pretty
from tenuto.entrypoints.cli.amounts import all_told, span
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import load, open_existing, run_argument

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace

_RULE = "\u2500" * 56
_CAP = 4  # where the run is driven by hand, and no pipeline says


@click.command(
    "metrics",
    cls=Command,
    examples=[
        ("tenuto metrics", "durations, savings, retries, cost and critical path of the current run"),
        ("tenuto metrics dark-mode --format detailed", "attempt by attempt, with their waves"),
        ("tenuto metrics dark-mode --format json", "for a program"),
    ],
)
@run_argument
@click.option(
    "--format", "shape", type=click.Choice(["summary", "detailed", "json"]), default="summary", help="How much, and for whom."
)
def command(run: str | None, shape: str) -> Answer:
    """How long a run took, what working side by side saved, what was repeated, and what it cost."""
    workspace = open_existing()
    found = load(workspace, run)
    data = measured(workspace, found)
    if shape == "json":
        return Answer(data, raw=pretty(data).encode())
    lines = _detailed(data) if shape == "detailed" else _summary(data)
    return Answer(data, lines)


def measured(workspace: Workspace, run: Run) -> dict[str, Any]:
    from tenuto.metrics.figures import figures, spans
    from tenuto.metrics.schedule import critical_path, rolling_gain

    found = figures(run)
    path = critical_path(run)
    gains = rolling_gain(run, _cap(workspace, run))
    return {
        "run": run["id"],
        "metrics": {
            "total_duration_ms": found["total_ms"], "sequential_estimate_ms": found["sequential_ms"],
            "parallel_estimate_ms": found["parallel_ms"], "parallelization_savings_ms": found["savings_ms"],
            "savings_percent": found["savings_percent"], "total_retries": found["retries"], "attempts": found["attempts"],
        },
        "usage": found["usage"], "steps": found["steps"], "spans": spans(run),
        "critical_path": {"total_ms": sum(link["ms"] for link in path), "links": path},
        "rolling": {"saved_ms": sum(gain["saved_ms"] for gain in gains), "visits": gains},
    }  # fmt: skip


def _cap(workspace: Workspace, run: Run) -> int:
    from tenuto.drivers.bound import pipeline_of

    if run["pipeline"]["hash"] is None:
        return _CAP
    with workspace.journal.read() as reader:
        return pipeline_of(reader, run)["cap"]


def _summary(data: Any) -> Iterator[str]:
    told = data["metrics"]
    yield f"METRICS: {data['run']}"
    yield f"{'Total Duration:':<20}{span(told['total_duration_ms'])}"
    yield f"{'Sequential Est:':<20}{span(told['sequential_estimate_ms'])}"
    yield f"{'Parallel Est:':<20}{span(told['parallel_estimate_ms'])}"
    yield f"{'Savings:':<20}{span(told['parallelization_savings_ms'])} ({told['savings_percent']}%)"
    yield f"{'Retries:':<20}{told['total_retries']}"
    yield from _more(data)


def _more(data: Any) -> Iterator[str]:
    path = data["critical_path"]
    yield f"{'Critical Path:':<20}{span(path['total_ms'])}"
    if data["rolling"]["visits"]:
        yield f"{'Rolling Order:':<20}{_gain(data['rolling']['saved_ms'])}"
    if data["usage"]:
        yield f"{'Cost:':<20}{all_told(data['usage'])}"


def _gain(saved: int) -> str:
    return f"would have saved {span(saved)}" if saved else "would have saved nothing"


def _detailed(data: Any) -> Iterator[str]:
    told = data["metrics"]
    yield f"METRICS: {data['run']}"
    yield ""
    yield "Phase                    Duration    Status    Retries"
    yield _RULE
    shown: list[int] = []
    for one in data["spans"]:
        if one["group"] is None:
            yield _row(one, "")
        elif one["group"] not in shown:
            shown.append(one["group"])
            yield f"[Wave {one['wave']}]" if one["wave"] else f"[{one['step']}]"
            yield from (_row(other, "  ") for other in data["spans"] if other["group"] == one["group"])
    yield _RULE
    yield f"{'Total:':<20}{span(told['total_duration_ms'])}"
    yield f"{'Sequential Est:':<20}{span(told['sequential_estimate_ms'])}"
    yield f"{'Savings:':<20}{span(told['parallelization_savings_ms'])} ({told['savings_percent']}%)"
    yield from _more(data)
    links = data["critical_path"]["links"]
    if links:
        yield "  " + " > ".join(f"{link['name']} {span(link['ms'])}" for link in links)


def _row(one: Any, indent: str) -> str:
    """The columns of the table; a long name pushes them to the right, never over one another."""
    name, duration = f"{indent}{one['name']}", span(one["duration_ms"])
    room = max(32 - len(name), len(duration) + 1)
    return f"{name}{duration:>{room}}     {one['status']:<9}{one['retries']:>6}"
