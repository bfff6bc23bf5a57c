"""DBOS: a workflow whose steps are recorded in SQLite; its queue of ready items is kept in the workflow itself.

A workflow of DBOS must start its steps in the same order whenever it is made again. Where nothing waits for another
that is so with any four at a time; with dependencies a batch of four ends before the next one starts.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from answering import ATTEMPTS, CAP, STEPS, answer, fan, followers, graph
from dbos import DBOS

home = tempfile.TemporaryDirectory(prefix="tenuto-bench-")
DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{home.name}/dbos.db",
        "run_admin_server": False,
        "log_level": "ERROR",
    }
)


@DBOS.step()
def step(name: str) -> str:
    return name


@DBOS.step()
async def step_async(name: str) -> str:
    return name


@DBOS.workflow()
def chain_workflow() -> int:
    return len([step(str(number)) for number in range(STEPS)])


@DBOS.workflow()
async def fan_workflow() -> int:
    slots = asyncio.Semaphore(CAP)

    async def one(name: str) -> str:
        async with slots:
            return await step_async(name)

    return len(await asyncio.gather(*(one(name) for name in fan())))


@DBOS.workflow()
async def queue_workflow() -> int:
    items = graph()
    waits = {name: len(before) for name, before in items.items()}
    after = followers(items)
    ready, ended = [name for name in items if not waits[name]], 0
    while ready:
        batch, ready = ready[:CAP], ready[CAP:]
        for name in await asyncio.gather(*(step_async(name) for name in batch)):
            ended += 1
            for one in after[name]:
                waits[one] -= 1
                if not waits[one]:
                    ready.append(one)
    return ended


def chain(folder: Path) -> float:
    begun = time.perf_counter()
    assert chain_workflow() == STEPS
    return time.perf_counter() - begun


def fan_out(folder: Path) -> float:
    return timed(fan_workflow)


def queue(folder: Path) -> float:
    return timed(queue_workflow)


def timed(workflow: Callable[[], Awaitable[int]]) -> float:
    async def go() -> float:
        begun = time.perf_counter()
        assert await workflow() == ATTEMPTS
        return time.perf_counter() - begun

    return loop.run_until_complete(go())


loop = asyncio.new_event_loop()  # one for all rounds: DBOS keeps the first it sees
DBOS.launch()
try:
    answer({"chain": chain, "fan_out": fan_out, "queue": queue})
finally:
    DBOS.destroy()
    home.cleanup()
