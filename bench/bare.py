"""The least that could do the engine's work as durably: the limits of chain, fan-out and queue."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections import deque
from pathlib import Path
from typing import Any

from bench.peers.answering import CAP, STEPS, fan, followers, graph
from tenuto.engine.in_process import Result

LAID_OUT = 200 * (4096 + 24)  # bytes of log that are there before anything is written, as an engine of Tenuto has it


async def done(work: Any) -> Result:
    return Result("DONE", "nothing to do")


def database(folder: Path) -> sqlite3.Connection:
    made = sqlite3.connect(folder / "bare.db", isolation_level=None)
    made.execute("PRAGMA journal_mode=WAL")
    made.execute("PRAGMA synchronous=FULL")
    made.execute("CREATE TABLE event(run TEXT, seq INTEGER, body TEXT, PRIMARY KEY(run, seq))")
    return made


def note(what: str, name: object, word: str) -> str:
    """The least that a journal has to say of a step: what, which, when, and what came of it."""
    return json.dumps({"type": what, "at": time.time(), "name": name, "word": word})


def chain(folder: Path) -> float:
    return _chain(database(folder))


def chain_laid_out(folder: Path) -> float:
    """The same with a log that is written over, not one that grows: a flush of blocks that are there already takes
    less."""
    journal = database(folder)
    journal.execute("PRAGMA wal_autocheckpoint=200")
    with open(folder / "bare.db-wal", "ab") as log:
        log.write(bytes(LAID_OUT))
        log.flush()
        os.fsync(log.fileno())
    return _chain(journal)


def _chain(journal: sqlite3.Connection) -> float:
    async def loop() -> None:
        for place in range(STEPS):
            result = await done(place)
            journal.execute("BEGIN IMMEDIATE")
            journal.execute("INSERT INTO event VALUES(?,?,?)", ("run", place, note("ended", place, result.verdict)))
            journal.execute("COMMIT")

    begun = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - begun


def fan_out(folder: Path) -> float:
    return _queue(database(folder), fan())


def queue(folder: Path) -> float:
    return _queue(database(folder), graph())


def _queue(journal: sqlite3.Connection, items: dict[str, list[str]]) -> float:
    waits = {name: len(before) for name, before in items.items()}
    after = followers(items)

    async def loop() -> None:
        ready, seq = deque(name for name in items if not waits[name]), 0
        tasks: dict[asyncio.Future[Result], str] = {}
        ended: set[asyncio.Future[Result]] = set()
        while ready or tasks:
            journal.execute("BEGIN IMMEDIATE")
            for task in ended:
                name, seq = tasks.pop(task), seq + 1
                journal.execute(
                    "INSERT INTO event VALUES(?,?,?)", ("run", seq, note("ended", name, task.result().verdict))
                )
                for one in after[name]:
                    waits[one] -= 1
                    if not waits[one]:
                        ready.append(one)
            starting = [ready.popleft() for _ in range(min(len(ready), CAP - len(tasks)))]
            for name in starting:
                seq += 1
                journal.execute("INSERT INTO event VALUES(?,?,?)", ("run", seq, note("started", name, "")))
            journal.execute("COMMIT")
            for name in starting:
                tasks[asyncio.ensure_future(done(name))] = name
            if tasks:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert seq == 2 * len(items)

    begun = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - begun
