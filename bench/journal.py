"""The journal against bare SQLite: durable appends, and many writers at once.

Every writer is a process.

    append    one event, folded and appended to one run under its lock; the flush is shared (stores/journal.py)
    turn      what every hook and command does: look at the run's file, decide, fold, append, flush, and show the file
              again, under the lock
    bare      one row inserted, with SQLite's own busy handler

They wait for a word, so that starting them is not counted; the clock stops when the last one is done.
"""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tenuto
from bench.measured import ROOT, Curves, Figure, Section, Table, Times, folder, git_repository, number, ratio
from tenuto.core.fold import apply
from tenuto.core.parts import new_run
from tenuto.core.records.events import Noted, RunStarted
from tenuto.stores.sqlite import SqliteJournal

AT = "2026-11-15T10:00:00.000Z"
APPENDS, SETTLED = 400, 1100
WRITERS, TOTAL, ROUNDS = (1, 4, 16, 64), 1280, 3


def measure() -> Section:
    with folder() as made:
        appended = appends(made)
    rows, slowest, lost = [], 0.0, 0
    found_by: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for processes in WRITERS:
        works: dict[str, list[Written]] = {name: [] for name in PROGRAMS}
        for turned in range(ROUNDS):
            for name in list(PROGRAMS)[:: -1 if turned % 2 else 1]:
                works[name].append(written(processes, name))
        speed = {name: middle(found, 0) for name, found in works.items()}
        longest = {name: middle(found, 1) for name, found in works.items()}
        missed = sum(one.lost for name in ("append", "turn") for one in works[name])
        rows.append(
            [
                str(processes),
                *(number(speed[name], "/s") for name in PROGRAMS),
                number(middle_ratio(works, "append")),
                *(number(longest[name], "s") for name in PROGRAMS),
                str(missed),
            ]
        )
        for name in PROGRAMS:
            found_by[name].append(speed[name])
        slowest, lost = max(longest["append"], longest["turn"]), lost + missed
    found = ratio(appended, "ours", "bare")
    figures = [
        Figure("a durable append, in process", found, 1.5, "x", "a bare one-row commit"),
        Figure("slowest answer to one of 64 writers", slowest, 5.0, "s"),
        Figure("updates lost by 1 to 64 writers", lost, 0, ""),
    ]
    tables = [
        Table(
            "One durable append",
            ["", "median", "to bare", "to bare, settled"],
            [
                [
                    label,
                    f"{statistics.median(appended[name]) * 1e6:.0f} us",
                    number(ratio(appended, name, "bare")),
                    number(ratio(appended, name, "settled")),
                ]
                for name, label in (
                    ("bare", "bare one-row commit"),
                    ("settled", "the same after 1,000, its log written over"),
                    ("ours", "Tenuto"),
                )
            ],
        ),
        Table(
            f"{TOTAL:,} durable updates by several processes",
            [
                "writers",
                "append",
                "turn",
                "bare SQLite",
                "append to bare",
                "slowest append",
                "slowest turn",
                "slowest bare",
                "lost",
            ],
            rows,
            (
                "A turn is what a hook or a command does: it looks at the run's file first, flushes before it lets "
                "the next one in, and shows the file again."
            ),
        ),
    ]
    plot = Curves(
        "writers.svg",
        "Durable updates per second, to one journal",
        "processes that write at once",
        "per second",
        [float(one) for one in WRITERS],
        {SHOWN[name]: found for name, found in found_by.items()},
    )
    text = (
        "Everybody who was answered is durable: SQLite's write-ahead log, `synchronous=FULL`. Tenuto's writers "
        "stand in line, so that "
        "nobody waits for long; appends share a flush."
    )
    return Section("The journal", text, figures, tables, [plot])


def event(place: int) -> Noted:
    return {"type": "Noted", "v": 2, "at": AT, "by": "bench", "text": f"note {place}", "extra": {}}


def started() -> RunStarted:
    return {
        "type": "RunStarted",
        "v": 2,
        "at": AT,
        "by": "bench",
        "run": "a",
        "name": "a",
        "request": "",
        "summary": "",
        "mode": "standard",
        "pipeline": {"name": "p", "hash": None},
        "driver": "manual",
        "dialects": {},
        "order": "any",
        "schedule": [],
        "evidence": {},
        "settings": {},
    }


def appends(made: Path) -> Times:
    """One event, durable, per commit; a one-row commit of bare SQLite (WAL, FULL) in between each two, in a new
    database and in one whose log has grown to SQLite's 1,000 pages and is written over since. Tenuto's is so after
    its first 200.
    """
    bare = bare_database(made)
    (made / "settled").mkdir()
    settled = bare_database(made / "settled")
    journal = SqliteJournal(str(made / "ours"))
    run: Any = new_run()
    times: Times = {"ours": [], "bare": [], "settled": []}
    body = str(event(0))
    for _ in range(SETTLED):
        commit(settled, body)
    for place in range(APPENDS):
        told = event(place) if place else started()
        before = time.perf_counter()
        with journal.write() as tx:
            apply(run, told)
            tx.append("a", run["version"] - 1, [told], run)
        times["ours"].append(time.perf_counter() - before)
        for name, database in (("bare", bare), ("settled", settled)):
            before = time.perf_counter()
            commit(database, body)
            times[name].append(time.perf_counter() - before)
    return times


def commit(bare: sqlite3.Connection, body: str) -> None:
    bare.execute("BEGIN IMMEDIATE")
    bare.execute("INSERT INTO event(body) VALUES(?)", (body,))
    bare.execute("COMMIT")


def bare_database(made: Path) -> sqlite3.Connection:
    bare = sqlite3.connect(made / "bare.db", isolation_level=None, timeout=600)
    bare.execute("PRAGMA journal_mode=WAL")
    bare.execute("PRAGMA synchronous=FULL")
    bare.execute("CREATE TABLE IF NOT EXISTS event(id INTEGER PRIMARY KEY, body TEXT)")
    return bare


# ---- many writers ----------------------------------------------------------------------------------

_LOOP = """
print(flush=True)
sys.stdin.readline()
slowest = 0.0
for number in range(int(sys.argv[4])):
    before = time.monotonic()
    write(number)
    slowest = max(slowest, time.monotonic() - before)
print(slowest, flush=True)
import posix
posix._exit(0)  # as every command of Tenuto does: closing the journal would checkpoint it
"""
OURS = f"""
import sys, time
sys.path.insert(0, sys.argv[1])
from tenuto.core.fold import apply
from tenuto.stores.sqlite import SqliteJournal
journal = SqliteJournal(sys.argv[2] + "/many")
def write(number):
    with journal.write() as tx:
        run = tx.load("a")
        event = {{"type": "Noted", "v": 2, "at": "{AT}", "by": sys.argv[3], "text": str(number), "extra": {{}}}}
        apply(run, event)
        tx.append("a", run["version"] - 1, [event], run)
{_LOOP}"""
BARE = f"""
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from bench.journal import bare_database, commit, event
bare = bare_database(Path(sys.argv[2]))
body = str(event(0))
def write(number):
    commit(bare, body)
{_LOOP}"""


TURN = f"""
import sys, time
sys.path.insert(0, sys.argv[1])
import tenuto
workspace = tenuto.open(sys.argv[2] + "/turns", by=sys.argv[3])
def write(number):
    with workspace.turn() as turn:
        turn.do("bench", {{"do": "Note", "text": str(number)}})
{_LOOP}"""
PROGRAMS = {"append": OURS, "turn": TURN, "bare": BARE}
SHOWN = {"append": "Tenuto, appends", "turn": "Tenuto, turns", "bare": "bare SQLite"}


class Written(NamedTuple):
    per_second: float
    slowest: float
    lost: int


def middle(found: list[Written], place: int) -> float:
    return statistics.median(one[place] for one in found)


def middle_ratio(works: dict[str, list[Written]], name: str) -> float:
    return statistics.median(
        one.per_second / bare.per_second for one, bare in zip(works[name], works["bare"], strict=True)
    )


def written(processes: int, name: str) -> Written:
    each = TOTAL // processes
    with folder() as made:
        PREPARED[name](made)
        words = [sys.executable, "-I", "-c", PROGRAMS[name], str(ROOT), str(made)]
        pipe = subprocess.PIPE
        made_ready = [subprocess.Popen([*words, f"w{n}", str(each)], stdin=pipe, stdout=pipe) for n in range(processes)]
        for one in made_ready:
            assert one.stdout and one.stdout.readline(), "a writer did not start"
        begun = time.perf_counter()
        for one in made_ready:
            assert one.stdin
            one.stdin.write(b"go\n")
            one.stdin.flush()
        slowest = max(float(one.communicate()[0]) for one in made_ready)
        taken = time.perf_counter() - begun
        return Written(TOTAL / taken, slowest, TOTAL - COUNTED[name](made))


def prepare_run(made: Path) -> None:
    journal, run = SqliteJournal(str(made / "many")), new_run()
    apply(run, started())
    with journal.write() as tx:
        tx.append("a", 0, [started()], run)


def prepare_feature(made: Path) -> None:
    """A run that is shown in a file."""
    tenuto.open(str(git_repository(made / "turns"))).feature_state.start("Bench", "Many at once")


def count_notes(journal: Any, run: str) -> int:
    """How many are there, each with a number of its own."""
    with journal.read() as reader:
        found = [one for one in reader.events(run) if one["type"] == "Noted"]
        assert reader.version(run) >= len(found) + 1
        return len({(one["by"], one["text"]) for one in found})


PREPARED: dict[str, Callable[[Path], object]] = {
    "append": prepare_run,
    "turn": prepare_feature,
    "bare": lambda made: bare_database(made).close(),
}
COUNTED: dict[str, Callable[[Path], int]] = {
    "append": lambda made: count_notes(SqliteJournal(str(made / "many")), "a"),
    "turn": lambda made: count_notes(tenuto.open(str(made / "turns")).journal, "bench"),
    "bare": lambda made: int(bare_database(made).execute("SELECT count(*) FROM event").fetchone()[0]),
}
