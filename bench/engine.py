"""The engine beside the least that could do the same work, and beside the peers.

    chain      200 steps whose agents do nothing, one after the other, each durable before the next begins
               beside: a bare asyncio loop with one SQLite FULL commit per step
    fan-out    1,000 attempts that wait for nothing, four at a time
    queue      1,000 attempts with dependencies, four at a time, in rolling order; a start is durable before it happens
               beside, both: a bare ready queue with group commit (bare.py), which does the same
    each       a step for each of 1,000 elements of a list, four at a time; beside: the same bare queue
    rolling    agents of fixed length, with dependencies, as supervised processes
               beside: the critical path, which nobody can beat

Agents of chain, fan-out and queue are coroutines (engine/in_process.py): what is measured is deciding, folding and
writing down, not starting programs.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tenuto
from bench import bare
from bench.bare import done
from bench.environments import KNOWN, Peer, Unavailable, program, title
from bench.measured import (
    ROOT,
    Bars,
    Figure,
    Section,
    Table,
    Times,
    folder,
    git_repository,
    in_folder,
    interleave,
    median_ms,
    number,
    ratio,
)
from bench.peers.answering import ATTEMPTS, CAP, STEPS, fan, graph
from tenuto.agents.roster import Roster
from tenuto.engine.begin import start
from tenuto.engine.in_process import InProcess, Result, Work, drive
from tenuto.engine.loop import Engine

CHAIN_ROUNDS, QUEUE_ROUNDS, ROLLING_ROUNDS = 25, 11, 3
LAID_OUT = "laid out"
BARE = {
    "chain": ("bare asyncio loop, one commit per step", {"bare": bare.chain, LAID_OUT: bare.chain_laid_out}),
    "fan_out": ("bare ready queue, group commit", {"bare": bare.fan_out}),
    "queue": ("bare ready queue, group commit", {"bare": bare.queue}),
    "each": ("bare ready queue, group commit", {"bare": bare.fan_out}),
}
NOT_IN = {"queue": ("burr",), "each": tuple(KNOWN)}  # burr knows no dependencies; the peers fan out elsewhere

# Item, length in seconds, what it waits for. The longest chain is a-d-g: 18 seconds; wave by wave it would take 20.
LENGTHS: dict[str, tuple[float, list[str]]] = {
    "01-a": (6, []),
    "02-b": (2, []),
    "03-c": (4, []),
    "04-d": (6, ["01-a"]),
    "05-e": (2, ["02-b"]),
    "06-f": (8, ["02-b", "03-c"]),
    "07-g": (6, ["04-d"]),
    "08-h": (4, ["05-e"]),
}
AGENT = 'case "$TENUTO_ITEM" in {cases} esac; echo "DONE: waited"'


def measure() -> Section:
    missing: list[str] = []
    peers = started_peers(missing)
    try:
        chains = interleave(works("chain", chain, peers), CHAIN_ROUNDS)
        fans = interleave(works("fan_out", fan_out, peers), QUEUE_ROUNDS)
        queues = interleave(works("queue", queue, peers), QUEUE_ROUNDS)
        lists = interleave(works("each", each, []), QUEUE_ROUNDS)
    finally:
        for peer in peers:
            peer.close()
    flushed = flushes([peer.name for peer in peers], missing)
    walls = statistics.median(in_folder(rolling) for _ in range(ROLLING_ROUNDS))
    chained, queued = ratio(chains, "Tenuto", "bare"), ratio(queues, "Tenuto", "bare")
    figures = [Figure(f"a durable chain of {STEPS} steps", chained, 2.0, "x", "a bare loop")]
    figures += beside_peer("the same chain, beside LangGraph", chains)
    figures += beside_peer(f"a durable fan-out of {ATTEMPTS:,}, beside LangGraph", fans)
    figures += [
        Figure("1,000 attempts with dependencies, four at a time", queued, 2.0, "x", "a bare queue"),
        Figure("each of 1,000 elements, four at a time", ratio(lists, "Tenuto", "bare"), 2.0, "x", "a bare queue"),
        Figure("wall clock, rolling order", walls / critical_path(), 1.02, "x", "the critical path"),
    ]
    tables = [
        told("chain", f"A durable chain of {STEPS} steps", chains, STEPS, flushed),
        told("fan_out", f"{ATTEMPTS:,} attempts that wait for nothing, {CAP} at a time", fans, ATTEMPTS),
        told("queue", f"{ATTEMPTS:,} attempts with dependencies, {CAP} at a time", queues, ATTEMPTS, note=QUEUE_NOTE),
        told("each", f"A step for each of {ATTEMPTS:,} elements, {CAP} at a time", lists, ATTEMPTS),
        wall_clock(walls),
    ]
    plots: list[Any] = [
        Bars("chain.svg", f"A durable chain of {STEPS} no-op steps, to a bare loop", bars(chains), 2.0),
        Bars("fan-out.svg", f"A durable fan-out of {ATTEMPTS:,}, {CAP} at a time, to a bare queue", bars(fans)),
        Bars(
            "queue.svg", f"{ATTEMPTS:,} attempts with dependencies, {CAP} at a time, to a bare queue", bars(queues), 2.0
        ),
    ]
    return Section("The engine", TEXT, figures, tables, plots, missing)


TEXT = (
    "What an orchestrator adds to the work itself. Agents that do nothing leave only deciding, recording and "
    "flushing; everything is "
    "on the same disk, with SQLite's `synchronous=FULL`, and durable before what depends on it begins. "
    "Tenuto's commit says what came of the "
    "last step and what began after it, with retries, budgets and gates decided in between; the bare loop "
    "writes one row. An engine lays its "
    "log out before it begins, and writes over it from then on; what that is worth to the bare loop stands beside it."
)
QUEUE_NOTE = (
    "The clock runs from the first attempt: nobody's plan is read or arranged while it does. LangGraph runs "
    "the same graph, step by step of "
    "what is ready. DBOS runs batches of four. Burr knows no dependencies."
)


def beside_peer(what: str, times: Times) -> list[Figure]:
    return [Figure(what, ratio(times, "Tenuto", "langgraph"), 1.0, "x", "LangGraph")] if "langgraph" in times else []


def started_peers(missing: list[str]) -> list[Peer]:
    """Those that can do all of their work here. Each has done it once by then."""
    peers = []
    for name in KNOWN:
        peer = None
        try:
            peer = Peer(name)
            for work in BARE:
                if name not in NOT_IN.get(work, ()):
                    peer.ask(work)
            peers.append(peer)
        except (Unavailable, OSError) as reason:
            missing.append(f"{KNOWN[name].title}: {reason}")
            if peer is not None:
                peer.close()
    return peers


def works(work: str, ours: Callable[[Path], float], peers: list[Peer]) -> dict[str, Callable[[], float]]:
    least: Mapping[str, Callable[[Path], float]] = BARE[work][1]
    made: dict[str, Callable[[], float]] = {name: lambda one=one: in_folder(one) for name, one in least.items()}  # type: ignore[misc]
    made["Tenuto"] = lambda: in_folder(ours)
    taking_part = [peer for peer in peers if peer.name not in NOT_IN.get(work, ())]
    return made | {peer.name: lambda peer=peer: peer.ask(work) for peer in taking_part}


def told(
    work: str, name: str, times: Times, each: int, flushed: dict[str, float] | None = None, note: str = ""
) -> Table:
    rows = []
    labels = {"bare": BARE[work][0], LAID_OUT: "the same, its log laid out before"}
    for who in times:
        label = title(who) if who in KNOWN else labels.get(who, who)
        counted = [f"{flushed[who]:.1f}" if who in flushed else ""] if flushed else []
        rows.append([label, number(median_ms(times, who) / each, "ms"), number(ratio(times, who, "bare")), *counted])
    return Table(name, ["", "each", "to bare", *(["flushes each"] if flushed else [])], rows, note)


COUNTED = """
import sys
sys.path.insert(0, sys.argv[1])
from bench import bare, engine
engine.in_folder({"bare": bare.chain, "laid out": bare.chain_laid_out, "Tenuto": engine.chain}[sys.argv[2]])
"""


def flushes(peers: list[str], missing: list[str]) -> dict[str, float]:
    """Per step of the chain, with what a start and an end take: a number that no other work on the machine moves."""
    if not shutil.which("strace"):
        missing.append("flushes: there is no strace here")
        return {}
    ours = [sys.executable, "-c", COUNTED, str(ROOT)]
    programs = {who: [*ours, who] for who in ("bare", LAID_OUT, "Tenuto")} | {name: program(name) for name in peers}
    found = {}
    for who, words in programs.items():
        with folder() as made:
            strace = ["strace", "-f", "-qq", "-o", str(made / "trace"), "-e", "trace=fsync,fdatasync"]
            asked = f"chain {made}\n" if who in KNOWN else ""
            ran = subprocess.run([*strace, *words], check=False, input=asked, text=True, capture_output=True)
            if ran.returncode:
                why = (ran.stderr.strip().splitlines() or [f"it ended with {ran.returncode}"])[-1]
                missing.append(f"flushes of {who}: strace does not run it here ({why})")
                continue
            found[who] = (made / "trace").read_text().count("sync(") / STEPS
    return found


def bars(times: Times) -> list[tuple[str, float]]:
    labels = {LAID_OUT: "bare, log laid out"}
    return [
        (KNOWN[who].title.partition(",")[0] if who in KNOWN else labels.get(who, who), ratio(times, who, "bare"))
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
    return tenuto.open(str(git_repository(folder)))


# ---- many at a time --------------------------------------------------------------------------------


class Handed(InProcess):
    """Is handed its items, as the bare queue is: reading a plan is not what is measured."""

    items: list[Any]

    def perform(self, turn: Any, definition: Any, action: Any) -> None:
        if action["act"] == "plan":
            turn.do(self.name, {"do": "PlanVisit", "items": self.items}, definition["pipeline"])
        else:
            super().perform(turn, definition, action)


def item(name: str, before: list[str]) -> dict[str, Any]:
    return {
        "id": name,
        "title": name,
        "files": [],
        "depends_on": before,
        "agent": None,
        "wave": None,
        "description": "",
        "effort": None,
        "lines": None,
    }


WAVES = """\
name: own
documents: docs
cap: 4
existing: [plan.md]
steps:
  - id: work
    waves: {plan: plan.md, roles: [{role: implementer}], order: rolling}
"""


def fan_out(folder: Path) -> float:
    return handed(folder, fan())


def queue(folder: Path) -> float:
    return handed(folder, graph())


EACH = """\
name: own
documents: docs
cap: 4
params: {who: list}
steps:
  - id: work
    each: {param: who, max: 1000}
    agent: {role: implementer}
"""


def each(folder: Path) -> float:
    """The clock runs from the first attempt, as for the others: the list is read and arranged by then."""
    workspace = repository(folder, EACH)
    begun = 0.0

    async def agent(work: Work) -> Result:
        nonlocal begun
        begun = begun or time.perf_counter()
        return await done(work)

    run = start(workspace, "Bench", "own", params={"who": list(fan())})
    ended = asyncio.run(drive(workspace, run["id"], agent))
    taken = time.perf_counter() - begun
    assert ended["status"] == "completed" and len(ended["attempts"]) == ATTEMPTS, ended["failure"]
    return taken


def handed(folder: Path, items: dict[str, list[str]]) -> float:
    workspace = repository(folder, WAVES)
    begun = 0.0

    async def agent(work: Work) -> Result:
        nonlocal begun
        begun = begun or time.perf_counter()  # both have their items arranged by now
        return await done(work)

    driver = Handed(workspace, start(workspace, "Bench", "own")["id"], agent)
    driver.items = [item(name, before) for name, before in items.items()]
    ended = asyncio.run(driver.drive())
    taken = time.perf_counter() - begun
    assert ended["status"] == "completed" and len(ended["attempts"]) == len(items), (
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
    ended = Engine(workspace, run["id"], Roster(agent), {}).drive()
    taken = time.perf_counter() - begun
    assert ended["status"] == "completed", (ended["failure"], [a["summary"] for a in ended["attempts"].values()])
    return taken
