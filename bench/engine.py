"""The engine beside the least that could do the same work, and beside the peers.

    chain      200 steps whose agents do nothing, one after the other, each durable before the next begins
               beside: a bare asyncio loop with one SQLite FULL commit per step
    queue      1,000 attempts with dependencies, four at a time, in rolling order; a start is durable before it happens
               beside: a bare ready queue with group commit, which does the same
    rolling    agents of fixed length, with dependencies, as supervised processes
               beside: the critical path, which nobody can beat

Agents of chain and queue are coroutines (drivers/inside.py): what is measured is deciding, folding and writing down, not
starting programs.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenuto
from bench.environments import KNOWN, Peer, Unavailable, program, title
from bench.measured import (
    ROOT,
    Bars,
    Figure,
    Section,
    Table,
    Times,
    folder,
    in_folder,
    interleave,
    median_ms,
    number,
    ratio,
)
from bench.peers.answering import ATTEMPTS, CAP, STEPS, followers, graph
from tenuto.agents.crew import Crew
from tenuto.drivers.inside import Inside, Result, Work, drive
from tenuto.drivers.local import Engine
from tenuto.drivers.start import start

CHAIN_ROUNDS, QUEUE_ROUNDS, ROLLING_ROUNDS = 9, 5, 3

# Item, length in seconds, what it waits for. The longest chain is a-d-g: 18 seconds; wave by wave it would take 20.
LENGTHS: dict[str, tuple[float, list[str]]] = {
    "01-a": (6, []), "02-b": (2, []), "03-c": (4, []), "04-d": (6, ["01-a"]), "05-e": (2, ["02-b"]),
    "06-f": (8, ["02-b", "03-c"]), "07-g": (6, ["04-d"]), "08-h": (4, ["05-e"]),
}  # fmt: skip
AGENT = 'case "$TENUTO_ITEM" in {cases} esac; echo "DONE: waited"'


def measure() -> Section:
    missing: list[str] = []
    peers = started_peers(missing)
    try:
        chains = interleave(works("chain", bare_chain, chain, peers), CHAIN_ROUNDS)
        queues = interleave(works("queue", bare_queue, queue, peers), QUEUE_ROUNDS)
    finally:
        for peer in peers:
            peer.close()
    flushed = flushes([peer.name for peer in peers], missing)
    walls = statistics.median(in_folder(rolling) for _ in range(ROLLING_ROUNDS))
    figures = [Figure("a durable chain of 200 steps", ratio(chains, "Tenuto", "bare"), 2.0, "x", "a bare loop")]
    if "langgraph" in chains:
        figures.append(
            Figure("the same chain, beside LangGraph", ratio(chains, "Tenuto", "langgraph"), 1.0, "x", "LangGraph")
        )
    figures += [
        Figure(
            "1,000 attempts with dependencies, four at a time",
            ratio(queues, "Tenuto", "bare"),
            2.0,
            "x",
            "a bare queue",
        ),
        Figure("wall clock, rolling order", walls / critical_path(), 1.02, "x", "the critical path"),
    ]
    tables = [
        told(f"A durable chain of {STEPS} steps", chains, STEPS, "bare asyncio loop, one commit per step", flushed),
        told(
            f"{ATTEMPTS:,} attempts, {CAP} at a time",
            queues,
            ATTEMPTS,
            "bare ready queue, group commit",
            {},
            QUEUE_NOTE,
        ),
        wall_clock(walls),
    ]
    plots: list[Any] = [
        Bars("chain.svg", f"A durable chain of {STEPS} no-op steps, to a bare loop", bars(chains), 2.0),
        Bars("queue.svg", f"{ATTEMPTS:,} attempts, {CAP} at a time, to a bare queue", bars(queues), 2.0),
    ]
    return Section("The engine", TEXT, figures, tables, plots, missing)


TEXT = (
    "What an orchestrator adds to the work itself. Agents that do nothing leave only deciding, recording and flushing; everything is "
    "on the same disk, with SQLite's `synchronous=FULL`, and durable before what depends on it begins. Tenuto's two commits say what began "
    "and what came of it, with retries, budgets and gates decided in between; the bare loop writes one row."
)
QUEUE_NOTE = (
    "LangGraph runs the same graph, step by step of what is ready. DBOS runs batches of four. Burr has no dependencies: "
    "its thousand are one fan-out."
)


def started_peers(missing: list[str]) -> list[Peer]:
    peers = []
    for name in KNOWN:
        try:
            peer = Peer(name)
            peer.ask("chain")
            peers.append(peer)
        except (Unavailable, OSError) as reason:
            missing.append(f"{KNOWN[name].title}: {reason}")
    return peers


def works(
    work: str, bare: Callable[[Path], float], ours: Callable[[Path], float], peers: list[Peer]
) -> dict[str, Callable[[], float]]:
    made: dict[str, Callable[[], float]] = {"bare": lambda: in_folder(bare), "Tenuto": lambda: in_folder(ours)}
    return made | {peer.name: lambda peer=peer: peer.ask(work) for peer in peers}  # type: ignore[misc]


def told(name: str, times: Times, each: int, bare: str, flushed: dict[str, float], note: str = "") -> Table:
    rows = []
    for who in times:
        label = bare if who == "bare" else title(who) if who in KNOWN else who
        counted = [f"{flushed[who]:.1f}" if who in flushed else ""] if flushed else []
        rows.append([label, number(median_ms(times, who) / each, "ms"), number(ratio(times, who, "bare")), *counted])
    return Table(name, ["", "each", "to bare", *(["flushes each"] if flushed else [])], rows, note)


COUNTED = (
    "import sys; sys.path.insert(0, sys.argv[1]); from bench import engine as e; e.in_folder(getattr(e, sys.argv[2]))"
)


def flushes(peers: list[str], missing: list[str]) -> dict[str, float]:
    """Per step of the chain, with what a start and an end take: a number that no other work on the machine moves."""
    if not shutil.which("strace"):
        missing.append("flushes: there is no strace here")
        return {}
    ours = [sys.executable, "-c", COUNTED, str(ROOT)]
    programs = {"bare": [*ours, "bare_chain"], "Tenuto": [*ours, "chain"]} | {name: program(name) for name in peers}
    found = {}
    for who, words in programs.items():
        with folder() as made:
            strace = ["strace", "-f", "-qq", "-o", str(made / "trace"), "-e", "trace=fsync,fdatasync"]
            asked = f"chain {made}\n" if who in KNOWN else ""
            subprocess.run([*strace, *words], check=True, input=asked, text=True, capture_output=True)
            found[who] = (made / "trace").read_text().count("sync(") / STEPS
    return found


def bars(times: Times) -> list[tuple[str, float]]:
    return [
        (
            "bare" if who == "bare" else KNOWN[who].title.partition(",")[0] if who in KNOWN else who,
            ratio(times, who, "bare"),
        )
        for who in times
    ]


def wall_clock(walls: float) -> Table:
    path = critical_path()
    rows = [
        ["critical path", f"{path:.2f} s", "1"],
        ["Tenuto, rolling order", f"{walls:.2f} s", f"{walls / path:.3f}"],
        ["wave by wave, computed", f"{wave_by_wave():.2f} s", f"{wave_by_wave() / path:.3f}"],
    ]
    return Table(f"{len(LENGTHS)} agents of fixed length, as supervised processes", ["", "wall clock", "to path"], rows)


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
        for place in range(STEPS):
            result = await done(place)
            journal.execute("BEGIN IMMEDIATE")
            journal.execute("INSERT INTO event VALUES(?,?,?)", ("run", place, note("ended", place, result.verdict)))
            journal.execute("COMMIT")

    begun = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - begun


def chain(folder: Path) -> float:
    steps = [f"  - {{id: step-{place}, agent: {{role: implementer}}}}" for place in range(STEPS)]
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


def bare_queue(folder: Path) -> float:
    journal, items = database(folder), graph()
    waits = {name: len(before) for name, before in items.items()}
    after = followers(items)

    async def loop() -> None:
        ready, tasks, seq, ended = [name for name in items if not waits[name]], {}, 0, set()
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
    assert ended["status"] == "completed" and len(ended["attempts"]) == ATTEMPTS, (
        ended["status"],
        len(ended["attempts"]),
    )
    return taken


# ---- fixed lengths ---------------------------------------------------------------------------------


def critical_path() -> float:
    until: dict[str, float] = {}
    for name, (length, before) in LENGTHS.items():
        until[name] = length + max((until[one] for one in before), default=0.0)
    return max(until.values())


def wave_by_wave() -> float:
    """What a barrier between the waves would make of it, with nothing lost on the way."""
    wave: dict[str, int] = {}
    for name, (_, before) in LENGTHS.items():
        wave[name] = 1 + max((wave[one] for one in before), default=0)
    return sum(max(LENGTHS[name][0] for name in wave if wave[name] == one) for one in set(wave.values()))


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
