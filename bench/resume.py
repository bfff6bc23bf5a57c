"""Finding a run again: in a process that has it open, and as a new engine that goes on with it.

load       the run as a record, at its worst: as an engine leaves it that was killed just before its state would be kept
           again
           beside: reading and decoding the kept state alone, and folding every event from the first
           A copy is put by at each length, and the copies take turns.
restart    a process that finds a run of 10,000 events and goes on with it, from its first line to its next dispatch
"""

from __future__ import annotations

import asyncio
import hashlib  # noqa: F401  # a program that stays has it; Tenuto uses what is there
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tenuto
from bench.bare import done
from bench.engine import WAVES, Handed, item, repository
from bench.measured import (
    ROOT,
    Bars,
    Curves,
    Figure,
    Section,
    Table,
    folder,
    interleave,
    median_ms,
    number,
    ratio,
    timed,
)
from tenuto.core.fold import apply
from tenuto.core.parts import new_run
from tenuto.encoding import dumps, loads
from tenuto.engine.attempt import pipeline_of
from tenuto.engine.begin import start

EVENTS = (1_000, 10_000, 100_000)
ATTEMPTS = (40, 400, 4_000)
LOADS, REPLAYS = 15, 3
RESTARTED_EVENTS, RESTARTS = 10_000, 9

MORE = """\
  - {id: looked-at, gate: {when: always, prompt: "Go on?"}}
  - {id: more, agent: {role: implementer}}
"""


def measure() -> Section:
    found = {attempts: loads_at(attempts) for attempts in ATTEMPTS}
    rows = [
        [
            f"{one.events:,}",
            f"{attempts:,}",
            number(one.ours, "ms"),
            number(one.least, "ms"),
            number(one.to_least),
            number(one.replay, "ms"),
        ]
        for attempts, loaded in found.items()
        for one in loaded.values()
    ]
    middle, restarts = found[400], restarted()
    figures = [
        Figure("resume at 10,000 events, 400 attempts", middle[10_000].ours, 50, "ms"),
        Figure("the same at 100,000 events", middle[100_000].to_10_000, 1.5, "x", "as at 10,000"),
        Figure("a restart in a run of 10,000 events, back at work", restarts, 1.0, "s"),
    ]
    head = ["events", "attempts", "load", "limit: read and decode", "to limit", "replay of everything"]
    table = Table(
        "Loading a run", head, rows, "At its worst: its engine was killed just before the state would be kept again."
    )
    words = f"a new process, from its first line to its next dispatch, {RESTARTED_EVENTS:,} events"
    again = Table("A restart", ["", "median"], [[words, f"{restarts:.2f} s"]])
    series = {
        f"Tenuto, {attempts:,} attempts": [loaded[one].ours if one in loaded else 0.0 for one in EVENTS]
        for attempts, loaded in found.items()
    }
    series["limit, 400 attempts"] = [one.least for one in middle.values()]
    series["replay of everything"] = [one.replay for one in middle.values()]
    plot = Curves(
        "resume.svg", "Finding a run again", "events", "ms", [float(one) for one in EVENTS], series, 50, "400 attempts"
    )
    ratios = [
        (f"Tenuto: {one.events:,} events, {attempts:,} attempts", one.to_least)
        for attempts, loaded in found.items()
        for one in loaded.values()
    ]
    limits = Bars("resume-limit.svg", "Finding a run again, to reading and decoding its state", ratios)
    return Section("Resuming", TEXT, figures, [table, again], [plot, limits])


TEXT = (
    "The state of a run is kept beside its events, and kept again when the events since outweigh half of it; "
    "twice of it while an engine "
    "goes on, which has it in memory. So finding a run costs what its state costs, however long its history is."
)


class Loaded(NamedTuple):
    events: int
    ours: float  # milliseconds, these three
    least: float
    replay: float
    to_least: float
    to_10_000: float  # the load, to that of the run of 10,000 events


def loads_at(attempts: int) -> dict[int, Loaded]:
    """A run of 4,000 attempts has more than 10,000 events from the start; its rows say how many."""
    with folder() as made:
        workspace, runs = with_attempts(made / "grows", attempts), {}
        for events in EVENTS:
            if events > attempts:
                fill(workspace, events)
                runs[events] = put_by(workspace, made / str(events))
        works = {f"ours {events}": timed(loading(one)) for events, one in runs.items()}
        works |= {f"least {events}": timed(decoding(one)) for events, one in runs.items()}
        times = interleave(works, LOADS)
        replays = interleave({f"{events}": timed(replaying(one)) for events, one in runs.items()}, REPLAYS)
        return {
            events: Loaded(
                one.load("bench")["version"],
                median_ms(times, f"ours {events}"),
                median_ms(times, f"least {events}"),
                median_ms(replays, f"{events}"),
                ratio(times, f"ours {events}", f"least {events}"),
                ratio(times, f"ours {events}", f"ours {10_000}"),
            )
            for events, one in runs.items()
        }


def with_attempts(made: Path, attempts: int, more: str = "") -> Any:
    """A run with so many attempts behind it."""
    workspace = repository(made, WAVES + more)
    workspace.journal.connection().execute("PRAGMA synchronous=OFF")
    driver = Handed(workspace, start(workspace, "Bench", "own")["id"], done)
    driver.items = [item(f"{place:04d}", []) for place in range(attempts)]
    asyncio.run(driver.drive())
    return workspace


NOTED: Any = {"type": "Noted", "v": 2, "at": "2026-11-15T10:00:00.000Z", "by": "bench", "text": "x" * 60, "extra": {}}


def fill(workspace: Any, events: int) -> None:
    """Notes, as any number of an engine's turns would leave them, until the run is so long. Its state was kept as
    long ago as may be."""
    journal = workspace.journal
    kept = journal.connection().execute("SELECT kept FROM run WHERE id='bench'").fetchone()[0]
    journal.hold_open(True)
    tail = int(kept * journal._patience / len(dumps(NOTED))) - 1
    append(journal, workspace.load("bench"), events - tail, keep=True)
    append(journal, workspace.load("bench"), events)
    journal.hold_open(False)


def append(journal: Any, run: Any, until: int, keep: bool = False) -> None:
    while run["version"] < until:
        size = min(1000, until - run["version"])
        with journal.write() as transaction:
            if keep and run["version"] + size == until:
                transaction.patience = 0
            for _ in range(size):
                apply(run, NOTED)
            transaction.append("bench", run["version"] - size, [NOTED] * size, run)


def put_by(workspace: Any, made: Path) -> Any:
    """The repository as it is now, as another one."""
    workspace.journal.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    shutil.copytree(workspace.root, made)
    copied = tenuto.open(str(made))
    assert replaying(copied)() == copied.load("bench"), "a state that is not what its events make"
    return copied


def loading(workspace: Any) -> Callable[[], Any]:
    return lambda: workspace.load("bench")


def decoding(workspace: Any) -> Callable[[], Any]:
    database = workspace.journal.connection()
    return lambda: loads(database.execute("SELECT body FROM state WHERE run='bench'").fetchone()[0])


def replaying(workspace: Any) -> Callable[[], Any]:
    def replay() -> Any:
        run = new_run()
        with workspace.journal.read() as reader:
            for event in reader.events("bench"):
                apply(run, event)
        return run

    return replay


# ---- a restart -------------------------------------------------------------------------------------

RESTARTED = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.loop import Engine
Engine(tenuto.open(sys.argv[2]), "bench", Roster("command:true"), {}).advance()
"""


def restarted() -> float:
    with folder() as made:
        workspace = with_attempts(made, RESTARTED_EVENTS // 3, MORE)
        with workspace.turn() as turn:
            run = turn.existing("bench")
            assert run["version"] >= RESTARTED_EVENTS and run["gate"], run["version"]
            turn.do("bench", {"do": "DecideGate", "decision": "approve", "who": "bench"}, pipeline_of(turn.tx, run))
        workspace.journal.close()
        return statistics.median(restart(made) for _ in range(RESTARTS))


def restart(made: Path) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", RESTARTED, str(ROOT), str(made)], check=True)
    taken = time.perf_counter() - begun
    workspace = tenuto.open(str(made))
    flying = workspace.load("bench")["in_flight"]
    assert len(flying) == 1 and flying[0].startswith("more"), "nothing was dispatched"
    with workspace.turn() as turn:  # as it was before, for the next round
        turn.do("bench", {"do": "LoseAttempt", "attempt": flying[0], "reason": "bench", "ran": False})
    return taken
