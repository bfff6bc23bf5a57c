"""The journal against bare SQLite: durable appends, loading long runs, many writers."""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tenuto.core.fold import apply, new_run
from tenuto.stores.sqlite import SqliteJournal

ROOT = Path(__file__).resolve().parents[1]
AT = "2026-11-15T10:00:00.000Z"


def event(number: int) -> dict[str, Any]:
    return {"type": "Noted", "v": 1, "at": AT, "by": "bench", "text": f"note {number}", "extra": {}}


def started() -> dict[str, Any]:
    return {
        "type": "RunStarted", "v": 1, "at": AT, "by": "bench", "run": "a", "name": "a", "request": "", "summary": "", "mode": "standard",
        "pipeline": {"name": "p", "hash": None}, "driver": "manual", "dialects": {}, "order": "any", "schedule": [],
        "evidence": {}, "settings": {},
    }  # fmt: skip


def appends(folder: Path, rounds: int = 400) -> None:
    """One event, durable, per commit; a one-row commit of bare SQLite (WAL, FULL) in between each two."""
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode=WAL")
    bare.execute("PRAGMA synchronous=FULL")
    bare.execute("CREATE TABLE event(id INTEGER PRIMARY KEY, body TEXT)")
    journal = SqliteJournal(str(folder / "ours"))
    run: Any = new_run()
    ours, theirs = [], []
    body = str(event(0))
    for number in range(rounds):
        made = event(number) if number else started()
        before = time.perf_counter()
        with journal.write() as tx:
            apply(run, made)
            tx.append("a", run["version"] - 1, [made], run)
        middle = time.perf_counter()
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("INSERT INTO event(body) VALUES(?)", (body,))
        bare.execute("COMMIT")
        theirs.append(time.perf_counter() - middle)
        ours.append(middle - before)
    one, two = statistics.median(ours), statistics.median(theirs)
    print(
        f"durable append, in process   {one * 1e6:7.0f} us   bare one-row commit {two * 1e6:7.0f} us   ratio {one / two:.2f}   (target 1.5)"
    )


def loads(folder: Path) -> None:
    """A run of 10,000 events and 400 attempts; and the same state after ten times fewer events."""
    for events in (1_000, 10_000):
        journal = SqliteJournal(str(folder / f"load{events}"))
        run: Any = new_run()
        batch = [started()]
        for number in range(400):
            batch.append({
                "type": "AttemptDispatched", "v": 1, "at": AT, "by": "bench", "attempt": f"a{number}", "step": "s", "role": "r", "agent": "x",
                "task": "", "item": None, "iteration": 1, "number": 1, "summary": "did something", "reserved": {}, "extra": {},
            })  # fmt: skip
        batch += [event(number) for number in range(events - len(batch))]
        for at in range(0, len(batch), 100):
            part = batch[at : at + 100]
            for made in part:
                apply(run, made)
            with journal.write() as tx:
                tx.append("a", run["version"] - len(part), part, run)
        times = []
        for _ in range(30):
            before = time.perf_counter()
            with journal.read() as reader:
                reader.load("a")
            times.append(time.perf_counter() - before)
        print(
            f"load a run of {events:6d} events, 400 attempts   {statistics.median(times) * 1e3:6.1f} ms   (target 50 ms, no growth with events)"
        )


WRITER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tenuto.core.fold import apply
from tenuto.stores.sqlite import SqliteJournal
journal, slowest = SqliteJournal(sys.argv[2]), 0.0
for number in range(int(sys.argv[4])):
    before = time.monotonic()
    with journal.write() as tx:
        run = tx.load("a")
        event = {"type": "Noted", "v": 1, "at": "2026-11-15T10:00:00.000Z", "by": sys.argv[3], "text": str(number), "extra": {}}
        apply(run, event)
        tx.append("a", run["version"] - 1, [event], run)
    slowest = max(slowest, time.monotonic() - before)
print(slowest, flush=True)
import posix
posix._exit(0)  # as every command of Tenuto does: closing the journal would checkpoint it
"""


def writers(folder: Path, processes: int, each: int, slow_flushes: bool = False) -> None:
    """`slow_flushes`: 3 ms are added to every flush (strace holds the call), as on a slower disk."""
    folder = folder / f"many{slow_flushes}"
    journal = SqliteJournal(str(folder))
    run: Any = new_run()
    apply(run, started())
    with journal.write() as tx:
        tx.append("a", 0, [started()], run)
    before = time.perf_counter()
    command = [sys.executable, "-I", "-S", "-c", WRITER, str(ROOT), str(folder)]
    if slow_flushes:
        held = "inject=fsync,fdatasync:delay_exit=3000"
        command = [
            "strace",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fsync,fdatasync",
            "-e",
            held,
            *command,
        ]
    made = [subprocess.Popen([*command, f"w{n}", str(each)], stdout=subprocess.PIPE) for n in range(processes)]
    slowest = max(float(process.communicate()[0]) for process in made)
    took = time.perf_counter() - before
    with journal.read() as reader:
        found = [e for e in reader.events("a") if e["type"] == "Noted"]
        complete = reader.version("a") == processes * each + 1 and len(found) == processes * each
    slowed = ", 3 ms added to each flush" if slow_flushes else ""
    print(
        f"{processes} processes x {each} appends{slowed}   {took:5.1f} s   slowest answer {slowest:.2f} s   lost {processes * each - len(found)}   every number once: {complete}"
    )


def main() -> None:
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
    try:
        appends(folder)
        loads(folder)
        writers(folder, 64, 100)
        if shutil.which("strace"):
            writers(folder, 64, 10, slow_flushes=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
