"""The engine beside the least that could do the same work.

    chain      200 steps whose agents do nothing, one after the other, each durable before the next begins
               beside: a bare asyncio loop with one SQLite FULL commit per step
    queue      1,000 attempts with dependencies, four at a time, in rolling order; a start is durable before it happens
               beside: a bare ready queue with group commit, which does the same
    rolling    agents of fixed length, with dependencies, as supervised processes
               beside: the critical path, which nobody can beat
    restart    a process that finds a run of 10,000 events and goes on with it, from its first line to its next dispatch

Interleaved, so that whatever else the machine does falls on all of them; medians, and ratios. Agents of chain and
queue are coroutines (drivers/inside.py): what is measured is deciding, folding and writing down, not starting programs.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tenuto
from tenuto.agents.crew import Crew
from tenuto.drivers.bound import pipeline_of
from tenuto.drivers.inside import Inside, Result, Work, drive
from tenuto.drivers.local import Engine
from tenuto.drivers.start import start

CAP = 4
STEPS, ATTEMPTS, EVENTS = 200, 1000, 10_000
LIMITS = {"chain": 2.0, "queue": 2.0, "rolling": 1.02, "restart_s": 1.0}

# Item, length in seconds, what it waits for. The longest chain is a-d-g: 18 seconds; wave by wave it would take 20.
LENGTHS: dict[str, tuple[float, list[str]]] = {
    "01-a": (6, []), "02-b": (2, []), "03-c": (4, []), "04-d": (6, ["01-a"]), "05-e": (2, ["02-b"]),
    "06-f": (8, ["02-b", "03-c"]), "07-g": (6, ["04-d"]), "08-h": (4, ["05-e"]),
}  # fmt: skip
AGENT = 'case "$TENUTO_ITEM" in {cases} esac; echo "DONE: waited"'


def main(rounds: int = 9) -> dict[str, float]:
    found = measure(rounds)
    print("\n".join(tell(found)))
    return found


def measure(rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, work in (("bare_chain", bare_chain), ("chain", chain), ("bare_queue", bare_queue), ("queue", queue)):
            times.setdefault(name, []).append(in_folder(work))
    for _ in range(max(1, rounds // 3)):
        times.setdefault("rolling", []).append(in_folder(rolling))
    with tempfile.TemporaryDirectory() as folder:
        prepare_restart(Path(folder))
        times["restart"] = [restart(Path(folder)) for _ in range(rounds)]
    median = {name: statistics.median(found) for name, found in times.items()}
    return {
        "chain": median["chain"] / median["bare_chain"], "queue": median["queue"] / median["bare_queue"],
        "rolling": median["rolling"] / critical_path(), "restart_s": median["restart"],
        "chain_ms_per_step": median["chain"] / STEPS * 1000, "bare_chain_ms_per_step": median["bare_chain"] / STEPS * 1000,
        "queue_ms_per_attempt": median["queue"] / ATTEMPTS * 1000,
        "bare_queue_ms_per_attempt": median["bare_queue"] / ATTEMPTS * 1000,
    }  # fmt: skip


def in_folder(work: Callable[[Path], float]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder))


# ---- a chain ---------------------------------------------------------------------------------------


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


def bare_chain(folder: Path) -> float:
    journal = database(folder)

    async def loop() -> None:
        for number in range(STEPS):
            result = await done(number)
            journal.execute("BEGIN IMMEDIATE")
            journal.execute("INSERT INTO event VALUES(?,?,?)", ("run", number, note("ended", number, result.verdict)))
            journal.execute("COMMIT")

    begun = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - begun


def chain(folder: Path) -> float:
    steps = [f"  - {{id: step-{number}, agent: {{role: implementer}}}}" for number in range(STEPS)]
    workspace = repository(folder, "\n".join(["name: own", "documents: docs", "steps:", *steps]))
    run = start(workspace, "Bench", "own")
    begun = time.perf_counter()
    ended = asyncio.run(drive(workspace, run["id"], done))
    taken = time.perf_counter() - begun
    assert ended["status"] == "completed" and len(ended["attempts"]) == STEPS, ended["failure"]
    return taken


def repository(folder: Path, pipeline: str) -> Any:
    own = folder / ".tenuto" / "pipelines"
    own.mkdir(parents=True)
    (own / "own.yaml").write_text(pipeline)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return tenuto.open(str(folder))


# ---- a queue ---------------------------------------------------------------------------------------


def graph() -> dict[str, list[str]]:
    """Every item waits for one or two earlier ones: wide enough for four at a time, never free of dependencies."""
    return {f"{number:04d}": [f"{before:04d}" for before in dict.fromkeys((number // 2, number - 9)) if before > 0] for number in range(1, ATTEMPTS + 1)}


def bare_queue(folder: Path) -> float:
    journal, items = database(folder), graph()
    waits = {name: len(before) for name, before in items.items()}
    after: dict[str, list[str]] = {name: [] for name in items}
    for name, before in items.items():
        for one in before:
            after[one].append(name)

    async def loop() -> None:
        ready, tasks, seq, ended = [name for name in items if not waits[name]], {}, 0, set()
        while ready or tasks:
            journal.execute("BEGIN IMMEDIATE")
            for task in ended:
                name, seq = tasks.pop(task), seq + 1
                journal.execute("INSERT INTO event VALUES(?,?,?)", ("run", seq, note("ended", name, task.result().verdict)))
                for one in after[name]:
                    waits[one] -= 1
                    if not waits[one]:
                        ready.append(one)
            starting = [ready.pop(0) for _ in range(min(len(ready), CAP - len(tasks)))]
            for name in starting:
                seq += 1
                journal.execute("INSERT INTO event VALUES(?,?,?)", ("run", seq, note("started", name, "")))
            journal.execute("COMMIT")
            for name in starting:
                tasks[asyncio.ensure_future(done(name))] = name
            if tasks:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert seq == 2 * ATTEMPTS

    begun = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - begun


class Handed(Inside):
    """Is handed its items, as the bare queue is: reading a plan is not what is measured."""

    items: list[Any]

    def perform(self, turn: Any, definition: Any, action: Any) -> None:
        if action["act"] == "plan":
            turn.do(self.name, {"do": "PlanVisit", "items": self.items}, definition["pipeline"])
        else:
            super().perform(turn, definition, action)


def item(name: str, before: list[str]) -> dict[str, Any]:
    return {
        "id": name, "title": name, "files": [], "depends_on": before, "agent": None, "wave": None, "description": "",
        "effort": None, "lines": None,
    }  # fmt: skip


WAVES = """\
name: own
documents: docs
cap: 4
existing: [plan.md]
steps:
  - id: work
    waves: {plan: plan.md, roles: [{role: implementer}], order: rolling}
"""


def queue(folder: Path) -> float:
    workspace = repository(folder, WAVES)
    begun = 0.0

    async def agent(work: Work) -> Result:
        nonlocal begun
        begun = begun or time.perf_counter()  # both have their items arranged by now
        return await done(work)

    driver = Handed(workspace, start(workspace, "Bench", "own")["id"], agent)
    driver.items = [item(name, before) for name, before in graph().items()]
    ended = asyncio.run(driver.drive())
    taken = time.perf_counter() - begun
    assert ended["status"] == "completed" and len(ended["attempts"]) == ATTEMPTS, (ended["status"], len(ended["attempts"]))
    return taken


# ---- fixed lengths ---------------------------------------------------------------------------------


def critical_path() -> float:
    until: dict[str, float] = {}
    for name, (length, before) in LENGTHS.items():
        until[name] = length + max((until[one] for one in before), default=0.0)
    return max(until.values())


def rolling(folder: Path) -> float:
    workspace = repository(folder, WAVES)
    (folder / "docs").mkdir()
    lines = [f"- {name} (depends_on: {', '.join(before) or 'none'})" for name, (_, before) in LENGTHS.items()]
    (folder / "docs" / "plan.md").write_text("# Plan\n\n## Wave 1\n\n" + "\n".join(lines) + "\n")
    run = start(workspace, "Bench", "own")
    cases = " ".join(f"{name}) sleep {length};;" for name, (length, _) in LENGTHS.items())
    agent = "command:sh -c " + shlex.quote(AGENT.format(cases=cases))
    begun = time.perf_counter()
    ended = Engine(workspace, run["id"], Crew(agent), {}).drive()
    taken = time.perf_counter() - begun
    assert ended["status"] == "completed", (ended["failure"], [a["summary"] for a in ended["attempts"].values()])
    return taken


# ---- a restart -------------------------------------------------------------------------------------

MORE = """\
  - {id: looked-at, gate: {when: always, prompt: "Go on?"}}
  - {id: more, agent: {role: implementer}}
"""
RESTARTED = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.crew import Crew
from tenuto.drivers.local import Engine
Engine(tenuto.open(sys.argv[2]), "bench", Crew("command:true"), {}).settle()
"""


def prepare_restart(folder: Path) -> None:
    """A run with thousands of attempts behind it, in the middle of its work."""
    workspace = repository(folder, WAVES + MORE)
    driver = Handed(workspace, start(workspace, "Bench", "own")["id"], done)
    driver.items = [item(f"{number:04d}", []) for number in range(EVENTS // 3)]
    asyncio.run(driver.drive())
    with workspace.turn() as turn:
        run = turn.existing("bench")
        assert run["version"] >= EVENTS and run["gate"], run["version"]
        turn.do("bench", {"do": "DecideGate", "decision": "approve", "who": "bench"}, pipeline_of(turn.tx, run))


def restart(folder: Path) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", RESTARTED, str(ROOT), str(folder)], check=True)
    taken = time.perf_counter() - begun
    workspace = tenuto.open(str(folder))
    flying = workspace.load("bench")["flying"]
    assert len(flying) == 1 and flying[0].startswith("more"), "nothing was dispatched"
    with workspace.turn() as turn:  # as it was before, for the next round
        turn.do("bench", {"do": "LoseAttempt", "attempt": flying[0], "reason": "bench", "ran": False})
    return taken


def tell(found: dict[str, float]) -> list[str]:
    lines = []
    for name, value in found.items():
        limit = LIMITS.get(name)
        held = "" if limit is None else f"   limit {limit:g}   {'holds' if value <= limit else 'MISSED'}"
        lines.append(f"{name:<28}{value:8.3f}{held}")
    return lines


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
