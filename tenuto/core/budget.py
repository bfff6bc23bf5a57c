"""What may still be spent: attempts, tokens, money and time, by the run and by each of its steps.

    reservation(pipeline, run, step)   what one attempt sets aside before it starts
    shortage(run, step, wanted, ...)   the first limit that it would pass; None: it is admitted
    untouched(run, step, used)         may the same attempt start its program once more?
    time_left(run, step, now)          of the wall clock, in milliseconds; None: no limit
    unmetered(pipeline, limits, ...)   a limit that nobody could hold, because an agent does not report what it uses

Rule 1: an attempt is admitted when what is spent, what is set aside for those under way and what it sets aside
itself fit the limit together. So the limit holds whatever they report, up to what was set aside for them.

Rule 2: an attempt sets aside itself and the figures the pipeline gives (attempt_tokens, attempt_micro_usd). Where a
limit has no such figure: what the dearest attempt of the run has used so far, and at least a twentieth of the limit.

Rule 3: it is charged what it reports. What it does not report, and a lost attempt as a whole, is charged as set aside.

Rule 4: the wall clock runs while at least one attempt is under way: waiting for a person costs nothing. Where it is set back
meanwhile, what the attempt took by its supervisor's measure counts.

Rule 5: an attempt sets aside once, however often its program is started. Where a limit is in what the program used, or does not
tell, it is not started again in the same attempt: the next attempt is admitted like any other.

Nothing is ever given back or reset. The way on is a person who raises the limit.
"""

from __future__ import annotations

from tenuto.core.times import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from tenuto.core.pipeline_records import Pipeline, Seat
    from tenuto.core.records import Run

UNITS = ("attempts", "tokens", "micro_usd", "wall_clock")
_FIGURES = {"tokens": "attempt_tokens", "micro_usd": "attempt_micro_usd"}
_SHARE = 20


def reservation(pipeline: Pipeline, run: Run, step: Any) -> dict[str, int]:
    amounts = {"attempts": 1}
    for unit, figure in _FIGURES.items():
        amount: Any = step["budget"][figure] or pipeline["budget"][figure]  # type: ignore[literal-required]
        amount = amount or _usual(run, step["id"], unit)
        if amount:
            amounts[unit] = amount
    return amounts


def _usual(run: Run, step: str, unit: str) -> int:
    limits = [account["limits"].get(unit) for _, account in _accounts(run, step)]
    shares = [max(1, limit // _SHARE) for limit in limits if limit is not None]
    return max([run["budget"]["dearest"].get(unit, 0), *shares]) if shares else 0


def shortage(run: Run, step: str, wanted: Mapping[str, int], more: Mapping[str, int] | None = None) -> Any:
    """`more`: what the same answer has promised already."""
    for name, account in _accounts(run, step):
        for unit, limit in account["limits"].items():
            if limit is None or unit == "wall_clock":
                continue
            held = account["spent"].get(unit, 0) + account["reserved"].get(unit, 0) + (more or {}).get(unit, 0)
            if held + wanted.get(unit, 0) > limit:
                return {"unit": unit, "step": name, "limit": limit, "held": held, "wanted": wanted.get(unit, 0)}
    return None


def untouched(run: Run, step: str, used: Mapping[str, int]) -> bool:
    """Is all that an attempt of this step set aside still there, as far as there are limits?"""
    return all(
        used.get(unit) == 0
        for _, account in _accounts(run, step)
        for unit, limit in account["limits"].items()
        if limit is not None and unit in _FIGURES
    )


def time_left(run: Run, step: str, now: str) -> int | None:
    left: int | None = None
    for _, account in _accounts(run, step):
        limit = account["limits"].get("wall_clock")
        if limit is not None:
            rest = limit * 1000 - _busy(run, account, now)
            left = rest if left is None else min(left, rest)
    return left


def _busy(run: Run, account: Any, now: str) -> int:
    since = run["budget"]["busy_since"]
    return int(account["busy_ms"]) + (between(since, now) if since else 0)


def time_is_up(run: Run, step: str, now: str) -> Any:
    """The shortage of time; None while there is some left."""
    for name, account in _accounts(run, step):
        limit = account["limits"].get("wall_clock")
        if limit is not None:
            held = _busy(run, account, now) // 1000
            if held >= limit:
                return {"unit": "wall_clock", "step": name, "limit": limit, "held": held, "wanted": 0}
    return None


def _accounts(run: Run, step: str) -> list[tuple[str, Any]]:
    budget = run["budget"]
    own = budget["steps"].get(step)
    return [("", budget), (step, own)] if own is not None else [("", budget)]


def in_words(short: Any) -> str:
    """Why nothing more is admitted."""
    who = f"step {short['step']}" if short["step"] else "the run"
    noun = "seconds" if short["unit"] == "wall_clock" else short["unit"]
    more = f", and the next attempt needs {short['wanted']}" if short["wanted"] else ""
    return f"{who} may use {short['limit']} {noun}: {short['held']} are used or promised{more}"


def limit_name(short: Any) -> str:
    """As it is given on the command line: attempts, or attempts@design."""
    return f"{short['unit']}@{short['step']}" if short["step"] else str(short["unit"])


def limits_of(pipeline: Pipeline) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """The pipeline's own limits: of the run, and of its steps."""
    return _limits(pipeline["budget"]), {
        step["id"]: limits for step in pipeline["steps"] if (limits := _limits(step["budget"]))
    }


def _limits(budget: Any) -> dict[str, int]:
    return {unit: budget[unit] for unit in UNITS if budget[unit] is not None}


def unmetered(
    pipeline: Pipeline, limits: Mapping[str, Any], of_steps: Mapping[str, Any], reports: Callable[[Seat], Collection[str]]
) -> Any:
    """The first seat whose agent does not report a unit that a limit is in."""
    from tenuto.core.definition.graph import seats

    for step in pipeline["steps"]:
        for unit in _FIGURES:
            limit = of_steps.get(step["id"], {}).get(unit, limits.get(unit))
            if limit is None:
                continue
            for seat in seats(step):
                if unit not in reports(seat):
                    return {"unit": unit, "limit": limit, "step": step["id"], "seat": seat}
    return None
