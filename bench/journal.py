"""The journal against bare SQLite: durable appends, and many writers at once.

Every writer is a process. Tenuto's decide, fold and append to one run under its lock; the bare ones insert a row, with SQLite's own
busy handler. They wait for a word, so that starting them is not counted; the clock stops when the last one is done.
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

from bench.measured import ROOT, Curves, Figure, Section, Table, Times, folder, number, ratio
from tenuto.core.fold import apply, new_run
from tenuto.stores.sqlite import SqliteJournal

AT = "2026-11-15T10:00:00.000Z"
APPENDS, SETTLED = 400, 1100
WRITERS, TOTAL, ROUNDS = (1, 4, 16, 64), 1280, 3


def measure() -> Section:
    with folder() as made:
        appended = appends(made)
    rows, ours_series, bare_series, slowest = [], [], [], 0.0
    for processes in WRITERS:
        ours, bare = [], []
        for _ in range(ROUNDS):
            ours.append(written(processes, OURS, check_ours))
            bare.append(written(processes, BARE, check_bare))
        rows.append([
            str(processes), number(middle(ours, 0), "/s"), number(middle(bare, 0), "/s"), number(middle(ours, 1), "s"),
            number(middle(bare, 1), "s"), str(sum(one.lost for one in ours)),
        ])  # fmt: skip
        ours_series.append(middle(ours, 0))
        bare_series.append(middle(bare, 0))
        slowest = middle(ours, 1)
    lost = sum(int(row[-1]) for row in rows)
    found = ratio(appended, "ours", "bare")
    figures = [
        Figure("a durable append, in process", found, 1.5, "x", "a bare one-row commit"),
        Figure("slowest answer to one of 64 writers", slowest, 5.0, "s"),
        Figure("updates lost by 1 to 64 writers", lost, 0, ""),
    ]
    tables = [
        Table("One durable append", ["", "median", "to bare", "to bare, settled"], [
            [label, f"{statistics.median(appended[name]) * 1e6:.0f} us", number(ratio(appended, name, "bare")), number(ratio(appended, name, "settled"))]
            for name, label in (("bare", "bare one-row commit"), ("settled", "the same after 1,000, its log written over"), ("ours", "Tenuto"))
        ]),
        Table(f"{TOTAL:,} durable appends by several processes", ["writers", "Tenuto", "bare SQLite", "slowest answer", "bare: slowest", "lost"], rows),
    ]  # fmt: skip
    plot = Curves(
        "writers.svg", "Durable appends per second, to one journal", "processes that write at once", "per second",
        [float(one) for one in WRITERS], {"Tenuto": ours_series, "bare SQLite": bare_series},
    )  # fmt: skip
    text = (
        "Everybody who was answered is durable: SQLite's write-ahead log, `synchronous=FULL`. Tenuto's writers stand in line, so that "
        "nobody waits for long, and share a flush."
    )
    return Section("The journal", text, figures, tables, [plot])


def event(place: int) -> dict[str, Any]:
    return {"type": "Noted", "v": 1, "at": AT, "by": "bench", "text": f"note {place}", "extra": {}}


def started() -> dict[str, Any]:
    return {
        "type": "RunStarted", "v": 1, "at": AT, "by": "bench", "run": "a", "name": "a", "request": "", "summary": "", "mode": "standard",
        "pipeline": {"name": "p", "hash": None}, "driver": "manual", "dialects": {}, "order": "any", "schedule": [],
        "evidence": {}, "settings": {},
    }  # fmt: skip


def appends(made: Path) -> Times:
    """One event, durable, per commit; a one-row commit of bare SQLite (WAL, FULL) in between each two, in a new database
    and in one whose log has grown to SQLite's 1,000 pages and is written over since. Tenuto's is so after its first 200.
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
        event = {{"type": "Noted", "v": 1, "at": "{AT}", "by": sys.argv[3], "text": str(number), "extra": {{}}}}
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


class Written(NamedTuple):
    per_second: float
    slowest: float
    lost: int


def middle(found: list[Written], place: int) -> float:
    return statistics.median(one[place] for one in found)


def written(processes: int, program: str, check: Callable[[Path], int]) -> Written:
    each = TOTAL // processes
    with folder() as made:
        bare_database(made).close()
        journal = SqliteJournal(str(made / "many"))
        run: Any = new_run()
        apply(run, started())
        with journal.write() as tx:
            tx.append("a", 0, [started()], run)
        words = [sys.executable, "-I", "-c", program, str(ROOT), str(made)]
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
        return Written(TOTAL / taken, slowest, TOTAL - check(made))


def check_ours(made: Path) -> int:
    """How many are there, each with a number of its own."""
    with SqliteJournal(str(made / "many")).read() as reader:
        found = [one for one in reader.events("a") if one["type"] == "Noted"]
        assert reader.version("a") == len(found) + 1
        return len({(one["by"], one["text"]) for one in found})


def check_bare(made: Path) -> int:
    return int(bare_database(made).execute("SELECT count(*) FROM event").fetchone()[0])
