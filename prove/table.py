"""docs/promises.md: the rows of the last full run of each promise, between two marks.

A promise that was not run this time keeps its row, with the day and the machine it was run on.
"""

from __future__ import annotations

import os
import platform
import time
from typing import NamedTuple

from prove.frame import ROOT, Result
from prove.promises import PROMISES, Promise

PAGE = ROOT / "docs" / "promises.md"
BEGIN, END = "<!-- rows: begin, written by make prove -->", "<!-- rows: end -->"
HEAD = "| # | promise | what is tried | wanted | tried | violations | figures | broken on purpose | when, where |"
RULE = "|---|---|---|---|---:|---:|---|---|---|"


class Outcome(NamedTuple):
    promise: Promise
    result: Result
    control: Result
    seconds: float

    @property
    def kept(self) -> bool:
        return not self.result.violations and bool(self.result.tried) and bool(self.control.violations)


def machine() -> str:
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        processor = models[0] if models else processor
    except OSError:
        pass
    return (
        f"{os.cpu_count()} × {processor}, {platform.system()} {platform.release().partition('-')[0]}, Python "
        f"{platform.python_version()}"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def row(outcome: Outcome) -> str:
    promise, result, control, seconds = outcome
    figures = "; ".join(f"{name}: {value}" for name, value in result.figures.items())
    broken = (
        f"{len(control.violations):,} violations found in {control.tried:,}"
        if control.violations
        else "**found nothing**"
    )
    day = time.strftime("%Y-%m-%d", time.gmtime())
    cells = [
        str(promise.number),
        promise.promise,
        promise.tried,
        promise.wanted,
        f"{result.tried:,}",
        f"**{len(result.violations):,}**",
        figures,
        broken,
        f"{day}, {seconds:,.0f} s, {machine()}",
    ]
    return f"| {' | '.join(map(_cell, cells))} |"


def _blank(promise: Promise) -> str:
    cells = [str(promise.number), promise.promise, promise.tried, promise.wanted, "", "", "not run yet", "", ""]
    return f"| {' | '.join(map(_cell, cells))} |"


def write(outcomes: list[Outcome]) -> None:
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    between, _, after = rest.partition(END)
    known = {line.split("|")[1].strip(): line for line in between.splitlines() if line.startswith("| ")}
    known |= {str(outcome.promise.number): row(outcome) for outcome in outcomes}
    rows = [known.get(str(promise.number)) or _blank(promise) for promise in PROMISES]
    lines = [BEGIN, HEAD, RULE, *rows, END]
    PAGE.write_text(before + "\n".join(lines) + after)
