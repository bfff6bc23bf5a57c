"""Checking a pipeline: read, understood and checked, as `tenuto pipeline check` does before anything starts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench.measured import Figure, Section, Table, folder, interleave, ratio
from tenuto.knowledge import definitions

SIZES = (30, 100, 300)
MOST_MS = 300
ROUNDS = 15
_STEP = """\
  - id: step-{number}
    agent: {{role: worker, in: {before}, out: document-{number}.md, touches: "src/part-{number}/**"}}
    checks: [build, tests]
    on:
      NEEDS_REVISION: {{route: [{back}], at_most: 2, then: {{pause: Part {number} is not good enough}}}}
      ERROR: {{pause: Part {number} cannot be made}}
"""


def definition(steps: int) -> str:
    """Steps with inputs, boundaries, checks, and a bounded way back from each."""
    head = "name: many\ndocuments: docs/{slug}\nparams: {area: {type: text, default: all}}\nsteps:\n"
    first = "  - {id: step-0, agent: {role: worker, out: document-0.md}}\n"
    others = (
        _STEP.format(number=number, before=f"document-{number - 1}.md", back=f"step-{number - 1}")
        for number in range(1, steps)
    )
    return head + first + "".join(others)


def measure() -> Section:
    with folder() as made:
        works = {}
        for steps in SIZES:
            path = Path(made) / str(steps) / "many.yaml"
            path.parent.mkdir()
            path.write_text(definition(steps), encoding="utf-8")
            works[str(steps)] = _timed(path)
        times = interleave(works, ROUNDS)
    medians = {name: statistics.median(found) * 1000 for name, found in times.items()}
    rows = [[name, f"{medians[name]:.0f} ms", f"{ratio(times, name, str(SIZES[0])):.1f}"] for name in times]
    text = (
        "A definition in YAML with inputs, boundaries, checks and a bounded way back in every step: read with the "
        f"place of everything in it, understood, and checked as a whole, "
        f"in a process that runs already; {ROUNDS} rounds."
    )
    figure = Figure(f"checking a pipeline of {SIZES[-1]} steps", medians[str(SIZES[-1])], MOST_MS, "ms")
    return Section("Definitions", text, [figure], [Table("Checking", ["steps", "median", f"to {SIZES[0]}"], rows)])


def _timed(path: Path) -> Callable[[], float]:
    def once() -> float:
        begun = time.perf_counter()
        pipeline, problems = definitions.read(path)
        spent = time.perf_counter() - begun
        assert pipeline is not None, problems
        return spent

    return once
