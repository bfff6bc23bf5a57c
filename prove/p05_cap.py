"""Promise 5: never more than `cap` agents, across processes and restarts.

Orchestrators share a repository and its pool. Every agent takes one of `cap` seats, a lock of the kernel's that it and
its daemon hold while they live; one that finds none proves that there were too many, and says so in a file that Tenuto
does not know. Meanwhile supervisors, orchestrators and agents are killed as the dice fall; orchestrators are started
again.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import tenuto
from prove.frame import ROOT, Amount, Progress, Result, dice, place, silent
from prove.matrix import SEAT, definition
from tenuto.agents.roster import Roster
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine
from tenuto.supervise import attempts, slots

AGENT = """
import fcntl, os, signal, sys, time
world, cap = sys.argv[1], int(sys.argv[2])
name = os.environ["TENUTO_ATTEMPT"]
def say(words):
    file = os.open(world + "/witness", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, (words + "\\n").encode())
    os.close(file)
for seat in range(cap):
    held = os.open(world + "/seat-" + str(seat), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
    except OSError:
        os.close(held)
else:
    seat = "none"
say(f"{seat} {name}")
while os.path.exists(world + "/crowd") and not any(line.startswith("none ") for line in open(world + "/witness")):
    time.sleep(0.005)
number = sum(name.encode()) % 16
if number == 0 and os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)
time.sleep(number / 1000)
print("DONE: worked")
"""
SEATS = 20  # of a run
TEXT = (
    "documents: docs/feature/{slug}\ncap: %d\nsteps:\n"
    f"  - {{id: work, cluster: {{members: [{', '.join(f'{{id: m{n}, {SEAT}}}' for n in range(SEATS))}], quorum: 0}},\n"
    "     retry: {ERROR: 2, LOST: 9}, on: {ERROR: {go_on: rest}}}\n"
    f"  - {{id: rest, agent: {{{SEAT}}}, retry: {{ERROR: 2, LOST: 9}}, on: {{ERROR: halt}}}}\n"
)
UNLOCKED = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from tenuto.supervise import slots, supervisor
slots.take = lambda *_: slots.Slot(0, os.open(os.devnull, os.O_RDWR))
slots.release = lambda slot: None
os._exit(supervisor.main(sys.argv[1]))
"""


def prove(amount: Amount, tell: Progress) -> Result:
    return _try(16, 4, 5_000, tell) if amount.full else _try(4, 2, 50, tell)


def control(amount: Amount) -> Result:
    """Supervisors that do not wait for a slot, and agents that stay until one of them finds no seat."""
    return _try(4, 2, 40, silent, _unlocked)


def _unlocked() -> None:
    ordinary = attempts.start_supervisor

    def start_supervisor(directory: str, environment: dict[str, str], command: list[str]) -> None:
        ordinary(directory, environment, [sys.executable, "-I", "-S", "-c", UNLOCKED, directory])

    attempts.start_supervisor = start_supervisor


def _try(orchestrators: int, cap: int, agents: int, tell: Progress, broken: Any = None) -> Result:
    with place() as folder:
        arena = Arena(folder, orchestrators, cap, agents, broken)
        try:
            arena.play(tell)
        finally:
            arena.clear()
        lines = [line.split() for line in (folder / "witness").read_text().splitlines()]
    seats = [int(seat) for seat, _ in lines if seat != "none"]
    violations = [f"{name} found none of {cap} seats free" for seat, name in lines if seat == "none"]
    names = [name for _, name in lines]
    violations += [f"{name} was started twice" for name in set(names) if names.count(name) > 1]
    figures = {
        "peak": str(max(seats, default=-1) + 1 + bool(violations)),
        "orchestrators": str(orchestrators),
        "agents": f"{len(lines):,}",
        "kills": ", ".join(f"{count:,} of {who}s" for who, count in arena.kills.items()),
    }
    return Result(len(lines), violations, figures)


class Arena:
    def __init__(self, folder: Path, orchestrators: int, cap: int, agents: int, broken: Any) -> None:
        self.folder, self.root, self.cap, self.agents, self.broken = folder, folder / "repository", cap, agents, broken
        self.root.mkdir()
        (folder / "agent.py").write_text(AGENT)
        (folder / "witness").touch()
        if broken is not None:
            (folder / "crowd").touch()
        self.definition = definition(TEXT % cap)
        self.chance = dice("cap", orchestrators, cap, agents)
        self.lines = range(orchestrators)
        self.running: dict[int, int] = {}  # pid -> line
        self.kills = {"supervisor": 0, "orchestrator": 0, "agent": 0}
        workspace = tenuto.open(str(self.root))
        with workspace.turn():
            pass
        self.pool = f"{workspace.state}/slots"
        workspace.journal.close()

    def play(self, tell: Progress) -> None:
        rounds = -(-self.agents // (len(self.lines) * (SEATS + 1)))
        for line in self.lines:
            self._start(line, rounds)
        while self.running:
            time.sleep(self.chance.uniform(0.02, 0.12))
            self._kill_somebody(self.chance)
            for pid, line in list(self.running.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del self.running[pid]
                    if status:
                        self._start(line, rounds)
            tell(min(self.agents, self._started()), self.agents)

    def _started(self) -> int:
        return (self.folder / "witness").read_bytes().count(b"\n")

    def _start(self, line: int, rounds: int) -> None:
        pid = os.fork()
        if pid:
            self.running[pid] = line
            return
        status = 1
        try:
            os.dup2(os.open(self.folder / "errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
            if self.broken is not None:
                self.broken()
            orchestrate(
                self.root, self.folder, self.definition, self.cap, [f"run {line} {number}" for number in range(rounds)]
            )
            status = 0
        finally:
            os._exit(status)

    def _kill_somebody(self, chance: random.Random) -> None:
        who = chance.choices(("supervisor", "orchestrator", "agent", "nobody"), (4, 2, 2, 2))[0]
        if who == "orchestrator" and self.running:
            victim = chance.choice(sorted(self.running))
        elif who in ("supervisor", "agent"):
            held = [
                slot["supervisor"]["pid"] for slot in self._slots() if slot["state"] == "held" and slot["supervisor"]
            ]
            victim = chance.choice(held) if held else 0
            if who == "agent" and victim:
                victim = next(iter(_children(victim)), 0)
        else:
            return
        if victim:
            try:
                os.kill(victim, signal.SIGKILL)
                self.kills[who] += 1
            except ProcessLookupError:
                pass

    def _slots(self) -> list[Any]:
        return slots.survey(self.pool) if os.path.isdir(self.pool) else []

    def clear(self) -> None:
        """Whatever happened, nothing of it is left."""
        for pid in self.running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for slot in self._slots():
            if slot["state"] == "held" and slot["supervisor"]:
                os.kill(slot["supervisor"]["pid"], signal.SIGTERM)


def orchestrate(root: Path, folder: Path, bound: Any, cap: int, names: list[str]) -> None:
    """One run after the other; those that an orchestrator before this one has begun are gone on with."""
    workspace = tenuto.open(str(root))
    agent = f"{sys.executable} -I -S -E {folder}/agent.py {folder} {cap}"
    with workspace.journal.read() as reader:
        known = {card["name"]: card["id"] for card in reader.runs()}
    for name in names:
        run = known.get(name) or start(workspace, name, "tiny", name=name, definition=bound)["id"]
        Engine(workspace, run, Roster(f"command:{agent}"), {}).drive()


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
