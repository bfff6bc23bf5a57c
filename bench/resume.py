"""Finding a run again: in a process that has it open, and as a new engine that goes on with it.

load       the run as a record, at its worst: just before its state is kept again
           beside: reading and decoding the kept state alone, and folding every event from the first
restart    a process that finds a run of 10,000 events and goes on with it, from its first line to its next dispatch
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import tenuto
from bench.engine import WAVES, Handed, done, item, repository
from bench.measured import ROOT, Curves, Figure, Section, Table, calls, folder, number
from tenuto.core.fold import apply, new_run
from tenuto.drivers.bound import pipeline_of
from tenuto.drivers.start import start
from tenuto.encoding import dumps, loads
from tenuto.stores.tables import PATIENCE

EVENTS = (1_000, 10_000, 100_000)
ATTEMPTS = (40, 400, 4_000)
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
            number(one.ours / one.least),
            number(one.replay, "ms"),
        ]
        for attempts, loaded in found.items()
        for one in loaded.values()
    ]
    middle, restarts = found[400], restarted()
    figures = [
        Figure("resume at 10,000 events, 400 attempts", middle[10_000].ours, 50, "ms"),
        Figure("the same at 100,000 events", middle[100_000].ours / middle[10_000].ours, 1.5, "x", "as at 10,000"),
        Figure("a restart in a run of 10,000 events, back at work", restarts, 1.0, "s"),
    ]
    head = ["events", "attempts", "load", "limit: read and decode", "to limit", "replay of everything"]
    table = Table("Loading a run", head, rows, "At its worst: just before its state is kept again.")
    words = f"a new process, from its first line to its next dispatch, {RESTARTED_EVENTS:,} events"
    again = Table("A restart", ["", "median"], [[words, f"{restarts:.2f} s"]])
    series = {
        f"Tenuto, {attempts:,} attempts": [loaded[one].ours if one in loaded else 0.0 for one in EVENTS]
        for attempts, loaded in found.items()
    }
    series["replay of everything"] = [one.replay for one in middle.values()]
    plot = Curves("resume.svg", "Finding a run again", "events", "ms", [float(one) for one in EVENTS], series)
    return Section("Resuming", TEXT, figures, [table, again], [plot])


TEXT = (
    "The state of a run is kept beside its events, and kept again when the events since outweigh half of it. So finding a run "
    "costs what its state costs, however long its history is."
)


class Loaded(NamedTuple):
    events: int
    ours: float  # milliseconds, all three
    least: float
    replay: float


def loads_at(attempts: int) -> dict[int, Loaded]:
    """A run of 4,000 attempts has more than 10,000 events from the start; its rows say how many."""
    with folder() as made:
        workspace = with_attempts(made, attempts)
        return {events: one_load(workspace, events) for events in EVENTS if events > attempts}


def with_attempts(made: Path, attempts: int, more: str = "") -> Any:
    """A run with so many attempts behind it."""
    workspace = repository(made, WAVES + more)
    workspace.journal.connection().execute("PRAGMA synchronous=OFF")
    driver = Handed(workspace, start(workspace, "Bench", "own")["id"], done)
    driver.items = [item(f"{place:04d}", []) for place in range(attempts)]
    asyncio.run(driver.drive())
    return workspace


def fill(workspace: Any, events: int) -> None:
    """Notes, as any number of turns would leave them, until the run is so long and its tail as long as it gets."""
    run = workspace.load("bench")
    noted: Any = {
        "type": "Noted",
        "v": 1,
        "at": "2026-11-15T10:00:00.000Z",
        "by": "bench",
        "text": "x" * 60,
        "extra": {},
    }
    each, tail, kept = len(dumps(noted)), 0, 0
    while run["version"] < events or kept * PATIENCE - tail > 2 * each:
        room = int((kept * PATIENCE - tail) / each) - 1  # until the state is kept again
        size = max(1, min(1000, room if run["version"] >= events else events - run["version"]))
        with workspace.journal.write() as transaction:
            for _ in range(size):
                apply(run, noted)
            transaction.append("bench", run["version"] - size, [noted] * size, run)
            tail, kept = transaction._db.execute("SELECT tail, kept FROM run WHERE id='bench'").fetchone()


def one_load(workspace: Any, events: int) -> Loaded:
    fill(workspace, events)
    database = workspace.journal.connection()

    def least() -> Any:
        return loads(database.execute("SELECT body FROM state WHERE run='bench'").fetchone()[0])

    def replay() -> Any:
        run = new_run()
        with workspace.journal.read() as reader:
            for event in reader.events("bench"):
                apply(run, event)
        return run

    run = workspace.load("bench")
    begun = time.perf_counter()
    assert replay()["version"] == run["version"] >= events
    replayed = time.perf_counter() - begun
    return Loaded(
        run["version"], calls(lambda: workspace.load("bench"), 15) * 1000, calls(least, 15) * 1000, replayed * 1000
    )


# ---- a restart -------------------------------------------------------------------------------------

RESTARTED = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.crew import Crew
from tenuto.drivers.local import Engine
Engine(tenuto.open(sys.argv[2]), "bench", Crew("command:true"), {}).settle()
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
    flying = workspace.load("bench")["flying"]
    assert len(flying) == 1 and flying[0].startswith("more"), "nothing was dispatched"
    with workspace.turn() as turn:  # as it was before, for the next round
        turn.do("bench", {"do": "LoseAttempt", "attempt": flying[0], "reason": "bench", "ran": False})
    return taken
