"""LangGraph: a node per step, a checkpoint in SQLite before the next one begins (durability="sync")."""

from __future__ import annotations

import operator
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from answering import ATTEMPTS, CAP, STEPS, answer, fan, graph
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    done: Annotated[int, operator.add]


def step(state: State) -> dict[str, int]:
    return {"done": 1}


def timed(made: Any, folder: Path, expected: int) -> float:
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        saver.setup()
        compiled = made.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "bench"}, "recursion_limit": expected + 10, "max_concurrency": CAP}
        begun = time.perf_counter()
        ended = compiled.invoke({"done": 0}, config, durability="sync")
        taken = time.perf_counter() - begun
    assert ended["done"] == expected, ended
    return taken


def chain(folder: Path) -> float:
    made = StateGraph(State)
    before = START
    for number in range(STEPS):
        made.add_node(f"step-{number}", step)
        made.add_edge(before, f"step-{number}")
        before = f"step-{number}"
    made.add_edge(before, END)
    return timed(made, folder, STEPS)


def fan_out(folder: Path) -> float:
    made = StateGraph(State)
    made.add_node("work", step)
    made.add_conditional_edges(START, lambda state: [Send("work", {"done": 0}) for _ in fan()], ["work"])
    return timed(made, folder, ATTEMPTS)


def queue(folder: Path) -> float:
    made, items = StateGraph(State), graph()
    for name in items:
        made.add_node(name, step)
    for name, before in items.items():
        made.add_edge(before or START, name)
    return timed(made, folder, len(items))


answer({"chain": chain, "fan_out": fan_out, "queue": queue})
