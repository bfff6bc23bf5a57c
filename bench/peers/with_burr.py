"""Burr: an action per step, the state saved to SQLite after each (SQLitePersister as it comes).

A fan-out has four threads, and each item is an application of its own whose state is saved. There is no order of
dependencies to run by: it takes no part in the queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from answering import ATTEMPTS, CAP, STEPS, answer
from burr.core import ApplicationBuilder, ApplicationContext, State, action
from burr.core.parallelism import MapStates
from burr.core.persistence import SQLitePersister


@action(reads=["done"], writes=["done"])
def step(state: State) -> State:
    return state.update(done=state["done"] + 1)


class Persister(SQLitePersister):
    """The same, for several threads: one connection, one at a time."""

    lock = threading.RLock()

    def save(self, *told: Any, **more: Any) -> None:
        with self.lock:
            super().save(*told, **more)

    def load(self, *told: Any, **more: Any) -> Any:
        with self.lock:
            return super().load(*told, **more)

    def copy(self) -> Any:
        return self


class Fan(MapStates):
    def states(self, state: State, context: ApplicationContext, inputs: dict[str, Any]) -> Generator[State, None, None]:
        for _ in range(ATTEMPTS):
            yield state.update(done=0)

    def action(self, state: State, inputs: dict[str, Any]) -> Any:
        return step

    def reduce(self, state: State, states: Generator[State, None, None]) -> State:
        return state.update(total=sum(one["done"] for one in states))

    @property
    def reads(self) -> list[str]:
        return ["done"]

    @property
    def writes(self) -> list[str]:
        return ["total"]


def persister(folder: Path) -> Persister:
    made = Persister(db_path=str(folder / "burr.db"), table_name="bench", connect_kwargs={"check_same_thread": False})
    made.initialize()
    return made


def chain(folder: Path) -> float:
    last = f"step_{STEPS - 1}"
    made = (
        ApplicationBuilder()
        .with_actions(**{f"step_{number}": step for number in range(STEPS)})
        .with_transitions(*((f"step_{number}", f"step_{number + 1}") for number in range(STEPS - 1)))
        .with_state(done=0)
        .with_entrypoint("step_0")
        .with_identifiers(app_id="bench")
        .with_state_persister(persister(folder))
        .build()
    )
    begun = time.perf_counter()
    _, _, state = made.run(halt_after=[last])
    taken = time.perf_counter() - begun
    assert state["done"] == STEPS
    return taken


def fan_out(folder: Path) -> float:
    made = (
        ApplicationBuilder()
        .with_actions(fan=Fan())
        .with_transitions()
        .with_state(done=0)
        .with_entrypoint("fan")
        .with_identifiers(app_id="bench")
        .with_parallel_executor(lambda: ThreadPoolExecutor(CAP))
        .with_state_persister(persister(folder))
        .build()
    )
    begun = time.perf_counter()
    _, _, state = made.run(halt_after=["fan"])
    taken = time.perf_counter() - begun
    assert state["total"] == ATTEMPTS, state
    return taken


answer({"chain": chain, "fan_out": fan_out})
