"""What a run took: figures for people and programs, each with how it was measured.

Amounts as people read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from tenuto.core.budget import money
from tenuto.metrics import Gain, Link, Span, StepFigures, critical_path, figures, rolling_gain, spans

if TYPE_CHECKING:
    from tenuto.core.records.run import Amounts, Run


CAP = 4  # agents at a time, where a run is led by hand and no pipeline says it
HOW = {
    "total_duration_ms": "the time in which at least one attempt was under way, by recorded times",
    "sequential_estimate_ms": "the lengths of all attempts, added up",
    "parallel_estimate_ms": "of the attempts that were started together the longest, the others added up",
    "parallelization_savings_ms": "the sequential estimate less the parallel one",
    "total_retries": "attempts after the first at the same place in the same visit",
    "usage": "what the agents' programs reported; what they did not report is not in it",
    "critical_path": "the longest chain of attempts that had to wait for each other",
    "rolling": "the same items, lengths, dependencies and cap, reckoned in rolling order",
}


class Totals(TypedDict):
    total_duration_ms: int
    sequential_estimate_ms: int
    parallel_estimate_ms: int
    parallelization_savings_ms: int
    savings_percent: int
    total_retries: int
    attempts: int


class CriticalPath(TypedDict):
    total_ms: int
    links: list[Link]


class Rolling(TypedDict):
    saved_ms: int
    visits: list[Gain]


class Measures(TypedDict):
    run: str
    metrics: Totals
    usage: Amounts
    steps: list[StepFigures]
    spans: list[Span]
    critical_path: CriticalPath
    rolling: Rolling


class MeasuredView(Measures):
    how: dict[str, str]


def measured(run: Run, cap: int = CAP) -> MeasuredView:
    """`cap`: how many agents the run's pipeline lets work at a time."""
    return {**measures(run, cap), "how": HOW}


def measures(run: Run, cap: int = CAP) -> Measures:
    found, path, gains = figures(run), critical_path(run), rolling_gain(run, cap)
    return {
        "run": run["id"],
        "metrics": {
            "total_duration_ms": found["total_ms"],
            "sequential_estimate_ms": found["sequential_ms"],
            "parallel_estimate_ms": found["parallel_ms"],
            "parallelization_savings_ms": found["savings_ms"],
            "savings_percent": found["savings_percent"],
            "total_retries": found["retries"],
            "attempts": found["attempts"],
        },
        "usage": found["usage"],
        "steps": found["steps"],
        "spans": spans(run),
        "critical_path": {"total_ms": sum(link["ms"] for link in path), "links": path},
        "rolling": {"saved_ms": sum(gain["saved_ms"] for gain in gains), "visits": gains},
    }


# ---- amounts ------------------------------------------------------------


def span(milliseconds: float) -> str:
    """45s, 5m 07s, 1h 02m 05s; below ten seconds 3.2s."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(int(milliseconds + 500) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m {seconds:02d}s"
    return f"{minutes}m {seconds:02d}s" if minutes else f"{seconds}s"


def number(figure: float) -> str:
    return f"{round(figure):,}"


def amount(unit: str, figure: float) -> str:
    """12,000 tokens; $1.20; 5m 07s; 26 attempts"""
    if unit == "micro_usd":
        return money(figure)
    if unit in ("ms", "wall_clock"):
        return span(figure if unit == "ms" else figure * 1000)
    return f"{number(figure)} {unit}" if figure != 1 or not unit.endswith("s") else f"1 {unit[:-1]}"


def amounts(figures: Mapping[str, object]) -> str:
    """Every figure that is a number and not zero, in one line."""
    return ", ".join(
        amount(unit, figure) for unit, figure in figures.items() if isinstance(figure, (int, float)) and figure
    )
