"""Looks at runs: what the pages ask of the journal and of the read model, at the sizes at which others give up.

inbox      the first page of 10,000 runs, and a filter that few of them fit
run        everything about a run of 2,000 attempts
past       a step of the slider in a run of 4,000 events, with the folds that are kept
log        the last part of a log of 200 megabytes, and the one before it
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tenuto
from bench.measured import Figure, Section, Table, folder, git_repository, median_ms, number
from tenuto.core.fold import fold
from tenuto.core.times import iso
from tenuto.show.attempts import log_part
from tenuto.show.inbox import inbox_view
from tenuto.show.run_page import Runs
from tenuto.workspace.workspace import Workspace

RUNS, ATTEMPTS, EVENTS, LOG = 10_000, 2_000, 4_000, 200 << 20
ROUNDS = 9
START = 1_763_194_331_000
TARGETS = {"inbox": 100.0, "filter": 100.0, "run": 300.0, "past": 60.0, "log": 100.0}
WORDS = {
    "inbox": f"the inbox, {RUNS:,} runs",
    "filter": "the same, narrowed to a status that one run has",
    "run": f"a run of {ATTEMPTS:,} attempts",
    "past": f"a step back in {EVENTS:,} events",
    "log": "64 KB of a log of 200 MB",
}


def event(kind: str, at: int, **more: Any) -> Any:
    return {"type": kind, "v": 2, "at": iso(START + at), "by": "bench", **more}


def begun(name: str, at: int) -> Any:
    return event(
        "RunStarted",
        at,
        run=name,
        name=name,
        request="",
        summary="",
        mode="standard",
        pipeline={"name": "quick", "hash": None},
        driver="manual",
        dialects={"context": {}},
        order="any",
        schedule=[],
        evidence={},
        settings={},
    )


def attempts(count: int) -> Iterator[Any]:
    for number_ in range(count):
        name = f"a-{number_}"
        yield event(
            "AttemptDispatched",
            1000 * number_,
            attempt=name,
            step="build",
            role="implementer",
            agent="none",
            task="",
            item=None,
            iteration=1,
            number=1,
            summary="",
            reserved={"attempts": 1},
            extra={"seat": name},
        )
        yield event(
            "AttemptFinished",
            1000 * number_ + 900,
            attempt=name,
            status="completed",
            verdict="DONE",
            summary="",
            said={"verdict": "DONE", "summary": ""},
            found={"verdict": "DONE", "problem": ""},
            receipt={},
            usage={"attempts": 1, "micro_usd": 10_000},
            extra={},
        )


def many(workspace: Workspace) -> None:
    with workspace.journal.write() as tx:
        for count in range(RUNS):
            ended = event("Failed" if count == 7 else "Cancelled", count, reason="", step=None, error="e", context=None)
            events = [begun(f"r{count}", count), *([ended] if count % 200 else [])]
            tx.append(f"r{count}", 0, events, fold(events))


def one(workspace: Workspace, events: list[Any]) -> None:
    with workspace.journal.write() as tx:
        tx.append("r", 0, events, fold(events))


@contextmanager
def _places() -> Iterator[dict[str, Callable[[], object]]]:
    with folder() as place:
        opened = {}
        for name in ("many", "wide", "long"):
            (place / name).mkdir()
            opened[name] = tenuto.open(str(git_repository(place / name)))
        many(opened["many"])
        one(opened["wide"], [begun("r", 0), *attempts(ATTEMPTS)])
        one(opened["long"], [begun("r", 0), *(event("Noted", at, text="n", extra={}) for at in range(1, EVENTS))])
        stdout = place / "stdout"
        log(stdout)
        wide, long, at = Runs(opened["wide"]), Runs(opened["long"]), iter(range(EVENTS - 1, 0, -37))
        long.page("r", EVENTS - 1)
        size = os.path.getsize(stdout)
        yield {
            "inbox": lambda: inbox_view(opened["many"]),
            "filter": lambda: inbox_view(opened["many"], status="failed"),
            "run": lambda: wide.page("r"),
            "past": lambda: long.page("r", next(at)),
            "log": lambda: (log_part(str(stdout)), log_part(str(stdout), size - 65_536)),
        }
        for workspace in opened.values():
            workspace.journal.close()


def log(path: Path) -> None:
    line = b"what an agent program prints while it works, eighty characters or so a line\n"
    block = line * (1 << 14)
    with path.open("wb") as file:
        for _ in range(LOG // len(block) + 1):
            file.write(block)


def measure() -> Section:
    times: dict[str, list[float]] = {name: [] for name in TARGETS}
    with _places() as works:
        for _ in range(ROUNDS):
            for name, work in works.items():
                started = time.perf_counter()
                work()
                times[name].append(time.perf_counter() - started)
    return section(times)


def section(times: dict[str, list[float]]) -> Section:
    figures = [Figure(WORDS[name], median_ms(times, name), target, "ms") for name, target in TARGETS.items()]
    rows = [[figure.what, number(figure.value, " ms"), f"{figure.target:g} ms"] for figure in figures]
    text = f"What the pages ask of the journal and of the read model, in this process; {ROUNDS} rounds."
    return Section("Looks at runs", text, figures, [Table("Looks at runs", ["what", "median", "target"], rows)])
