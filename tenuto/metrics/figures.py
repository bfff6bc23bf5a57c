"""What a run took: how long, how long one after the other, what side by side saved, what was repeated, what it cost.

    spans(run)      one per attempt that ended; of a run without attempts, one per visit
    figures(run)    totals over them, and the same per step

Rule 1: attempts that were started together form a group: one for the members of a cluster, one for each wave. The
estimate for side by side takes of each group the longest (core/durations.py has the arithmetic).

Rule 2: a retry is an attempt after the first at the same place in the same visit.
"""

from __future__ import annotations

from typing import Any, TypedDict

from tenuto.core import durations
from tenuto.core.records import Run
from tenuto.core.times import between


class Span(TypedDict):
    name: str
    step: str
    visit: int
    item: str | None
    role: str
    seat: str
    started_at: str
    ended_at: str | None
    duration_ms: int
    status: str
    retries: int
    group: int | None
    wave: int | None
    usage: dict[str, Any]


class StepFigures(TypedDict):
    step: str
    visits: int
    attempts: int
    retries: int
    duration_ms: int  # what the clock saw, over all its visits
    usage: dict[str, Any]


class Figures(TypedDict):
    total_ms: int
    sequential_ms: int
    parallel_ms: int
    savings_ms: int
    savings_percent: int
    attempts: int
    retries: int
    usage: dict[str, Any]
    steps: list[StepFigures]


def spans(run: Run) -> list[Span]:
    if not run["attempts"]:
        return _visits(run)
    wave_of = {item: wave["wave"] for wave in run["waves"] for item in wave["items"]}
    numbers: dict[tuple[Any, ...], int] = {}
    found: list[Span] = []
    for name, attempt in run["attempts"].items():
        if attempt["ended_at"] is None:
            continue
        wave = wave_of.get(attempt["item"] or "")
        together = attempt["item"] is not None or attempt["extra"].get("parallel", False)
        key = (attempt["step"], attempt["iteration"], wave)
        found.append({
            "name": f"{attempt['role']}:{attempt['item']}" if attempt["item"] else _seat(attempt),
            "step": attempt["step"], "visit": attempt["iteration"], "item": attempt["item"], "role": attempt["role"],
            "seat": attempt["extra"].get("seat", name), "started_at": attempt["started_at"], "ended_at": attempt["ended_at"],
            "duration_ms": between(attempt["started_at"], attempt["ended_at"]),
            "status": {"completed": "success"}.get(attempt["status"], attempt["status"]), "retries": attempt["number"] - 1,
            "group": numbers.setdefault(key, len(numbers) + 1) if together else None, "wave": wave, "usage": attempt["usage"],
        })  # fmt: skip
    return found


def _seat(attempt: Any) -> str:
    seat = str(attempt["extra"].get("seat", ""))
    return seat if seat and attempt["role"] in seat else f"{attempt['role']}{f' ({seat})' if seat else ''}"


def _visits(run: Run) -> list[Span]:
    ended = [visit for visit in run["visits"] if visit["ended_at"] is not None]
    waves = durations.wave_numbers(ended, [wave["items"] for wave in run["waves"]])
    return [
        {
            "name": visit["step"], "step": visit["step"].partition(":")[0], "visit": visit["iteration"], "item": visit["item"],
            "role": "", "seat": visit["step"], "started_at": visit["started_at"], "ended_at": visit["ended_at"],
            "duration_ms": visit["duration_ms"] or 0, "status": visit["status"], "retries": visit["retries"],
            "group": wave, "wave": wave, "usage": {},
        }
        for visit, wave in zip(ended, waves, strict=True)
    ]  # fmt: skip


def figures(run: Run) -> Figures:
    found = spans(run)
    total = durations.totals(found, [span["group"] for span in found])
    retries = sum(1 for span in found if span["retries"]) if run["attempts"] else run["retries"]
    return {
        "total_ms": total["total"], "sequential_ms": total["sequential"], "parallel_ms": total["parallel"],
        "savings_ms": total["savings"], "savings_percent": total["percent"], "attempts": len(run["attempts"]),
        "retries": retries, "usage": _sum(found), "steps": _steps(found),
    }  # fmt: skip


def _steps(found: list[Span]) -> list[StepFigures]:
    by_step: dict[str, list[Span]] = {}
    for span in found:
        by_step.setdefault(span["step"], []).append(span)
    return [
        {
            "step": step, "visits": len({span["visit"] for span in mine}), "attempts": len(mine),
            "retries": sum(1 for span in mine if span["retries"]), "duration_ms": durations.elapsed(mine), "usage": _sum(mine),
        }
        for step, mine in by_step.items()
    ]  # fmt: skip


def _sum(found: list[Span]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for span in found:
        for unit, amount in span["usage"].items():
            if isinstance(amount, (int, float)) and not isinstance(amount, bool) and unit != "attempts":
                total[unit] = total.get(unit, 0) + amount
    return total
