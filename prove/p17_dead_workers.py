"""Promise 17: a dead worker's work is back within a lease; nothing starts twice; no pool passes its cap.

A real driver, real workers as programs of their own, a private PostgreSQL and a bare origin. Every agent takes one of
as many seats as the pool's cap, a lock of the kernel's that it holds while it lives; one that finds none proves that
there were too many, and says so in a file that Tenuto does not know. Meanwhile workers are killed (some come back at
once, some after their leases), and stopped for longer than a lease, as the dice fall.

A stopped worker is a program that gets no time; its supervisors go on. A stopped supervisor runs no timer: that is not
tried, and not promised.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import tenuto
from prove.frame import ROOT, Amount, Lacking, Progress, Result, dice, place, silent
from prove.matrix import SEAT, definition
from tenuto.agents.roster import Roster
from tenuto.cluster.database import SCHEMA, VARIABLE, Line, connect, install
from tenuto.cluster.driver import ClusterEngine, remember_pool
from tenuto.cluster.private_postgres import PrivatePostgres
from tenuto.engine.begin import Place, start
from tenuto.errors import NotFound, TenutoError

LEASE = 10.0
AGENT = """
import fcntl, os, sys, time
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
crowd = world + "/crowd"
while os.path.exists(crowd) and not any(line.startswith("none ") for line in open(world + "/witness")):
    time.sleep(0.01)
time.sleep(sum(name.encode()) % 16 / 8)
print("DONE: worked")
"""


def pipeline(cap: int, seats: int) -> str:
    members = ", ".join(f"{{id: m{number}, {SEAT}}}" for number in range(seats))
    return (
        f"documents: docs/feature/{{slug}}\ncap: {cap}\nsteps:\n"
        f"  - {{id: work, cluster: {{members: [{members}], quorum: 0}},\n"
        "     retry: {ERROR: 2, LOST: 9}, on: {ERROR: {go_on: rest}}}\n"
        f"  - {{id: rest, agent: {{{SEAT}}}, retry: {{ERROR: 2, LOST: 9}}, on: {{ERROR: halt}}}}\n"
    )


WORKER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tenuto.entrypoints.launch import main
sys.argv[1:1] = ["worker"]
sys.exit(main())
"""
# Supervisors that never look at their lease.
LEASELESS = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from tenuto.supervise import attempts
ordinary = attempts.start_supervisor
source = ("import os, sys; sys.path.insert(0, {str(ROOT)!r}); from tenuto.supervise import records, supervisor; "
          "records.lease_left = lambda path: 3600.0; os._exit(supervisor.main(sys.argv[1]))")
def start_supervisor(directory, environment, command):
    ordinary(directory, environment, [sys.executable, "-I", "-S", "-c", source, directory])
attempts.start_supervisor = start_supervisor
from tenuto.entrypoints.launch import main
sys.argv[1:1] = ["worker"]
sys.exit(main())
"""


def prove(amount: Amount, tell: Progress) -> Result:
    return _try(8, 12, 40, 20, tell) if amount.full else _try(3, 4, 1, 8, tell)


def control(amount: Amount) -> Result:
    """Agents that stay until one of them finds no seat; one worker is killed, and nobody ends its agents."""
    return _try(2, 1, 1, 2, silent, LEASELESS)


def _try(workers: int, cap: int, runs: int, seats: int, tell: Progress, broken: str = "") -> Result:
    try:
        server = PrivatePostgres.start(settings={"fsync": "off"})
    except NotFound as absent:
        raise Lacking(absent.message) from None
    with server, place() as folder:
        arena = Arena(folder, server.url(), workers, cap, broken)
        arena.text = pipeline(cap * 2, seats)
        try:
            arena.play(runs, tell)
        finally:
            arena.clear()
        lines = [line.split() for line in (folder / "witness").read_text().splitlines()]
    taken = [int(seat) for seat, _ in lines if seat != "none"]
    names = [name for _, name in lines]
    violations = [f"{name} found none of {cap} seats free" for seat, name in lines if seat == "none"]
    violations += [f"back after {late:.1f} s" for late in arena.returns if runs > 1 and late > LEASE + 5]
    violations += [f"{name} was started twice" for name in set(names) if names.count(name) > 1]
    figures = {
        "peak": f"{max(taken, default=-1) + 1 + (len(taken) < len(lines))} of {cap}",
        "workers": str(workers),
        "attempts": f"{len(lines):,}",
        "faults": ", ".join(f"{count} {what}" for what, count in arena.faults.items()),
        "slowest return": f"{max(arena.returns, default=0.0):.1f} s, lease {LEASE:g} s",
    }
    return Result(len(lines), violations + arena.problems, figures)


class Arena:
    def __init__(self, folder: Path, address: str, workers: int, cap: int, broken: str) -> None:
        self.folder, self.root, self.address, self.broken, self.cap = (
            folder,
            folder / "repository",
            address,
            broken,
            cap,
        )
        self.text = ""
        self.chance = dice("dead workers", workers, cap, bool(broken))
        self.faults = {"killed": 0, "killed for good": 0, "stopped": 0}
        self.returns: list[float] = []
        self.problems: list[str] = []
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.done = threading.Event()
        self.homes = [f"w{number}" for number in range(workers)]
        install(address)
        self._say(f"UPDATE pool SET cap = {cap}, lease_seconds = {LEASE}")
        (folder / "agent.py").write_text(AGENT)
        (folder / "witness").touch()
        if broken:
            (folder / "crowd").touch()
        self._git("init", "-q", "-b", "main", str(self.root))
        (self.root / "file").write_text("text\n")
        self._git("-C", str(self.root), "add", ".")
        self._git("-C", str(self.root), "commit", "-q", "-m", "begin")
        self._git("clone", "-q", "--bare", str(self.root), str(folder / "origin.git"))
        self._git("-C", str(self.root), "remote", "add", "origin", str(folder / "origin.git"))

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], check=True, capture_output=True)

    def _say(self, question: str) -> list[tuple[object, ...]]:
        with connect(self.address) as connection:
            found = connection.execute(f"SET search_path = {SCHEMA}; {question}".encode())
            while found.nextset():
                pass
            return [*found] if found.description else []

    def play(self, runs: int, tell: Progress) -> None:
        for home in self.homes:
            self._start(home)
        driving = threading.Thread(target=self._drive, args=(runs, tell), daemon=True)
        driving.start()
        while not self.done.wait(self.chance.uniform(0.5, 2.0)):
            self._refuse_dead()
            self._fault()
        driving.join()

    def _refuse_dead(self) -> None:
        """Nobody would work, and the run would never end."""
        for home, worker in self.running.items():
            if worker.poll() is not None:
                raise RuntimeError(f"{home} ended by itself: {(self.folder / f'{home}.log').read_text()[-1000:]}")

    def _drive(self, runs: int, tell: Progress) -> None:
        try:
            for number in range(runs):
                run = self._one_run(f"run {number}")
                if run != "completed":
                    self.problems.append(f"run {number} ended as {run}")
                tell(number + 1, runs)
        except TenutoError as problem:
            self.problems.append(f"the driver could not go on: {problem.message}")
        finally:
            self.done.set()

    def _one_run(self, name: str) -> str:
        workspace = tenuto.open(str(self.root))
        bound = definition(self.text)
        made = start(workspace, name, "tiny", name=name, definition=bound, place=Place("worktree"))
        with workspace.turn() as turn:
            remember_pool(turn, made["id"], "default")
        agent = f"{sys.executable} -I -S -E {self.folder}/agent.py {self.folder} {self.cap}"
        line = Line(self.address, 600.0)
        ended = ClusterEngine(workspace, made["id"], Roster(f"command:{agent}"), {}, line=line).drive()
        workspace.journal.close()
        self._git("-C", str(self.root), "switch", "-q", "main")
        return ended["status"]

    # ---- faults

    def _fault(self) -> None:
        if self.broken and (self.faults["killed for good"] or not (self.folder / "witness").read_text()):
            return  # one is killed, as soon as an agent of its is at work
        holding = [home for home in self.homes if home in self.running and self._holds(home)]
        if not holding:
            return
        home = self.chance.choice(holding)
        kind = "killed for good" if self.broken else self.chance.choice([*self.faults])
        self.faults[kind] += 1
        worker = self.running[home]
        held = self._held(home)
        if kind == "stopped":
            worker.send_signal(signal.SIGSTOP)
            self.done.wait(LEASE * self.chance.uniform(0.5, 1.5))
            worker.send_signal(signal.SIGCONT)
            return
        worker.kill()
        worker.wait()
        del self.running[home]
        if kind == "killed for good":
            self._await_return(held)
        self._start(home)

    def _name(self, home: str) -> str:
        path = self.folder / home / "worker.json"
        text = path.read_text() if path.exists() else ""
        return text.split('"id":"')[1].split('"')[0] if '"id":"' in text else ""

    def _holds(self, home: str) -> bool:
        return bool(self._held(home))

    def _held(self, home: str) -> list[str]:
        name = self._name(home)
        return [str(task) for (task,) in self._say(f"SELECT task FROM lease WHERE worker = '{name}'")] if name else []

    def _await_return(self, held: list[str]) -> None:
        """Until what the dead one held has been ended by the driver."""
        began = time.monotonic()
        listed = ", ".join(f"'{task}'" for task in held) or "''"
        while self._say(f"SELECT 1 FROM lease WHERE task IN ({listed})") and not self.done.wait(0.2):
            if time.monotonic() - began > 10 * LEASE:
                self.problems.append(f"nobody ended the leases of a worker that was killed: {listed}")
                return
        self.returns.append(time.monotonic() - began)

    def _start(self, home: str) -> None:
        words = ["--home", str(self.folder / home), "--slots", str(self.cap)]
        with open(self.folder / f"{home}.log", "ab") as log:
            self.running[home] = subprocess.Popen(
                [sys.executable, "-c", self.broken or WORKER, *words],
                env={**os.environ, VARIABLE: self.address},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def clear(self) -> None:
        """Whatever happened, nothing of it is left."""
        (self.folder / "crowd").unlink(missing_ok=True)
        for worker in self.running.values():
            worker.send_signal(signal.SIGCONT)
            worker.kill()
            worker.wait()
        for claim in self.folder.glob("w*/attempts/*/state/attempts/*/*/*/claim"):
            text = claim.read_text()
            pid = text.split('"pid":')[1].split(",")[0] if '"pid":' in text else ""
            if pid.strip().isdigit() and not (claim.parent / "result.json").exists():
                try:
                    os.kill(int(pid), signal.SIGTERM)
                except ProcessLookupError:
                    continue
