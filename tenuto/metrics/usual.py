"""What is usual in this repository: what attempts of a step have cost in earlier runs, and what the next run may cost.

    history(runs)                  per step and role, what its attempts used
    forecast(pipeline, bound, ...) likely: the median of earlier runs of this pipeline that ended well
                                   worst: every attempt of the bound, each as dear as the dearest so far

A figure that nothing is known about is None, never zero.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any, TypedDict

from tenuto.core.pipeline_records import Bound, Pipeline
from tenuto.core.records import Run
from tenuto.core.times import between

UNITS = ("tokens", "micro_usd", "ms")
_ENDED_WELL = ("completed", "poc-complete", "graduated")


class Past(TypedDict):
    runs: int
    attempts: int
    by_step: dict[str, dict[str, list[float]]]  # step -> unit -> one figure per attempt
    by_role: dict[str, dict[str, list[float]]]
    whole: list[dict[str, float]]  # per run of this pipeline that ended well: attempts, tokens, micro_usd, ms


class Forecast(TypedDict):
    runs: int
    attempts: int
    likely: dict[str, float | None]
    worst: dict[str, float | None]
    unknown: list[str]  # steps nothing is known about: the worst case leaves them out


def history(runs: Iterable[Run], pipeline: str) -> Past:
    past: Past = {"runs": 0, "attempts": 0, "by_step": {}, "by_role": {}, "whole": []}
    for run in runs:
        if not run["attempts"]:
            continue
        past["runs"] += 1
        for attempt in run["attempts"].values():
            if attempt["ended_at"] is None:
                continue
            past["attempts"] += 1
            for unit, amount in _used(attempt).items():
                past["by_role"].setdefault(attempt["role"], {}).setdefault(unit, []).append(amount)
                if run["pipeline"]["name"] == pipeline:
                    past["by_step"].setdefault(attempt["step"], {}).setdefault(unit, []).append(amount)
        if run["pipeline"]["name"] == pipeline and run["status"] in _ENDED_WELL:
            past["whole"].append({
                "attempts": len(run["attempts"]), "ms": run["budget"]["busy_ms"],
                **{unit: run["budget"]["spent"][unit] for unit in ("tokens", "micro_usd") if unit in run["budget"]["spent"]},
            })  # fmt: skip
    return past


def _used(attempt: Any) -> dict[str, float]:
    used = {"ms": float(between(attempt["started_at"], attempt["ended_at"]))}
    return used | {unit: attempt["usage"][unit] for unit in ("tokens", "micro_usd") if unit in attempt["usage"]}


def forecast(pipeline: Pipeline, bound: Bound, past: Past) -> Forecast:
    roles = {step["id"]: _roles(step) for step in pipeline["steps"]}
    worst: dict[str, float | None] = {"attempts": bound["attempts"], **dict.fromkeys(UNITS)}
    unknown = [line["step"] for line in bound["steps"] if not _dearest(past, line["step"], roles[line["step"]], "ms")]
    for unit in UNITS:
        each = [(line, _dearest(past, line["step"], roles[line["step"]], unit)) for line in bound["steps"]]
        known = [line["attempts"] * most for line, most in each if most is not None]
        worst[unit] = sum(known) if known else None
    likely: dict[str, float | None] = {}
    for unit in ("attempts", *UNITS):
        told = [whole[unit] for whole in past["whole"] if unit in whole]
        likely[unit] = statistics.median(told) if told else None
    return {"runs": past["runs"], "attempts": past["attempts"], "likely": likely, "worst": worst, "unknown": unknown}


def _dearest(past: Past, step: str, roles: list[str], unit: str) -> float | None:
    """Of this step's own attempts; where it never ran, of its roles in other pipelines."""
    own = past["by_step"].get(step, {}).get(unit, [])
    others = [amount for role in roles for amount in past["by_role"].get(role, {}).get(unit, [])]
    return max(own or others, default=None)


def _roles(step: Any) -> list[str]:
    from tenuto.core.definition.graph import seats

    return [seat["role"] for seat in seats(step)]
