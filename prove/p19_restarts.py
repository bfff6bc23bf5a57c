"""Promise 19: a database server that is killed, again and again, loses no event that was answered.

Journal and tables are on one private PostgreSQL. A real driver and a real worker carry runs out; the driver notes, in
this process, which version of the run its turns were told is durable. Meanwhile the server is killed with -9, all of
it, at any moment or in the moment of an answer, and started again. A driver that cannot go on is started anew, as a
service would be. In the end every version that was answered is there, event by event as it was, every attempt has one
end, and no agent has run twice.

A partition of the network, and a standby that takes over, are not tried here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import tenuto
from prove.frame import ROOT, Amount, Lacking, Progress, Result, dice, place, silent
from prove.matrix import definition
from prove.p17_dead_workers import WORKER, pipeline
from tenuto.agents.roster import Roster
from tenuto.cluster.database import VARIABLE, Line, install
from tenuto.cluster.driver import ClusterEngine, remember_pool
from tenuto.cluster.private_postgres import PrivatePostgres
from tenuto.core.records.run import Run
from tenuto.encoding import digest, dumps
from tenuto.engine.begin import Place, start
from tenuto.errors import NotFound, TenutoError
from tenuto.stores.moving import move_to_server, set_up_project
from tenuto.stores.postgres import journal

AGENT = """
import os, sys, time
file = os.open(sys.argv[1] + "/witness", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(file, (os.environ["TENUTO_ATTEMPT"] + "\\n").encode())
time.sleep(0.3)
print("DONE: worked")
"""
# The machine is not killed, only the server; one that its owner has told to answer early loses nothing of ours, either.
_FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}


def prove(amount: Amount, tell: Progress) -> Result:
    return _try(25 if amount.full else 1, 6 if amount.full else 2, tell, _FORGETFUL)


def control(amount: Amount) -> Result:
    """A server that answers before it has written anything, and a journal that lets it."""
    journal._DURABLE = "SELECT 1"
    return _try(1, 3, silent, _FORGETFUL)


def _try(runs: int, kills: int, tell: Progress, settings: dict[str, str]) -> Result:
    try:
        server = PrivatePostgres.start(settings=settings)
    except NotFound as absent:
        raise Lacking(absent.message) from None
    with server, place() as folder:
        arena = Arena(folder, server)
        try:
            for number in range(runs):
                arena.play(f"run {number}", kills)
                tell(number + 1, runs)
        finally:
            arena.clear()
    figures = {
        "kills of the server": str(arena.kills),
        "answered versions": f"{arena.answered:,}",
        "attempts": f"{arena.attempts:,}",
        "drivers": str(arena.drivers),
    }
    return Result(arena.answered, arena.violations, figures)


class Arena:
    def __init__(self, folder: Path, server: PrivatePostgres) -> None:
        self.folder, self.root, self.server = folder, folder / "repository", server
        self.chance = dice("restarts")
        self.violations: list[str] = []
        self.kills = self.answered = self.attempts = self.drivers = 0
        self.seen: dict[int, str] = {}  # version of the run -> what was told to be durable
        self.is_armed = False  # the server is killed as soon as something has been answered
        self.struck = threading.Event()
        self.worker: subprocess.Popen[bytes] | None = None
        (folder / "agent.py").write_text(AGENT)
        (folder / "witness").touch()
        self._git("init", "-q", "-b", "main", str(self.root))
        (self.root / "file").write_text("text\n")
        self._git("-C", str(self.root), "add", ".")
        self._git("-C", str(self.root), "commit", "-q", "-m", "begin")
        self._git("clone", "-q", "--bare", str(self.root), str(folder / "origin.git"))
        self._git("-C", str(self.root), "remote", "add", "origin", str(folder / "origin.git"))
        workspace = tenuto.open(str(self.root))
        with workspace.turn():
            pass
        with workspace.journal.write():
            pass
        workspace.journal.close()
        install(server.url())
        set_up_project(workspace.state, server.url(), "shop")
        move_to_server(workspace.state, server.url(), "shop")
        self._start_worker()

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], check=True, capture_output=True)

    def _start_worker(self) -> None:
        with open(self.folder / "worker.log", "ab") as log:
            self.worker = subprocess.Popen(
                [sys.executable, "-c", WORKER, "--home", str(self.folder / "home"), "--slots", "3"],
                env={**os.environ, VARIABLE: self.server.url(), "PYTHONPATH": str(ROOT)},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def play(self, name: str, kills: int) -> None:
        workspace = tenuto.open(str(self.root))
        made = start(
            workspace, name, "tiny", name=name, definition=definition(pipeline(6, 6)), place=Place("worktree")
        )["id"]
        with workspace.turn() as turn:
            remember_pool(turn, made, "default")
        workspace.journal.close()
        self.seen = {}
        done = threading.Event()
        driving = threading.Thread(target=self._drive, args=(made, done), daemon=True)
        driving.start()
        for number in range(kills):
            if not (self._at_an_answer(done) if number % 2 == 0 else self._at_any_moment(done)):
                break
            latest = max(self.seen, default=0)
            self.kills += 1
            time.sleep(self.chance.uniform(0.0, 1.0))
            self.server.resume()
            found = self._version(made)
            if found < latest:
                self.violations.append(f"{name}: version {latest} was answered, and {found} is there after a kill")
                return  # what was lost may never come to an end
        driving.join(150)
        self._judge(made)
        self._git("-C", str(self.root), "switch", "-q", "main")

    def _at_an_answer(self, done: threading.Event) -> bool:
        """Nothing else has been written since, which could have carried it to the disk."""
        self.struck.clear()
        self.is_armed = True
        while not self.struck.wait(0.05):
            if done.is_set():
                return self.struck.is_set()
        return True

    def _at_any_moment(self, done: threading.Event) -> bool:
        if done.wait(self.chance.uniform(0.5, 2.5)):
            return False
        self.server.kill()
        return True

    def _version(self, name: str) -> int:
        """Of the run, as the server has it now."""
        workspace = tenuto.open(str(self.root))
        try:
            with workspace.journal.read() as reader:
                return reader.version(name)
        finally:
            workspace.journal.close()

    def _drive(self, name: str, done: threading.Event) -> None:
        agent = f"{sys.executable} -I -S -E {self.folder}/agent.py {self.folder}"
        until = time.monotonic() + 120
        while time.monotonic() < until:
            self.drivers += 1
            try:
                workspace = tenuto.open(str(self.root))
                engine = ClusterEngine(
                    workspace, name, Roster(f"command:{agent}"), {}, self._note, line=Line(self.server.url(), 60.0)
                )
                engine.drive()
                break
            except TenutoError:
                time.sleep(0.3)
        done.set()

    def _note(self, run: Run, fresh: list[str]) -> None:
        """Shown after each turn: what it did was answered."""
        self.seen[run["version"]] = digest(dumps([*run["attempts"]]).encode())
        if self.is_armed:
            self.is_armed = False
            self.server.kill()
            self.struck.set()

    def _judge(self, name: str) -> None:
        workspace = tenuto.open(str(self.root))
        run = workspace.load(name)
        self.answered += len(self.seen)
        self.attempts += len(run["attempts"])
        latest = max(self.seen, default=0)
        if run["version"] < latest:
            self.violations.append(f"{name}: version {latest} was answered, and the journal ends with {run['version']}")
        with workspace.journal.read() as reader:
            events = [event["type"] for event in reader.events(name)]
            broken = [finding["message"] for finding in reader.verify_run(name)]
        self.violations += [f"{name}: {problem}" for problem in broken]
        ends = sum(kind in ("AttemptFinished", "AttemptLost") for kind in events)
        if run["status"] != "completed" or ends != len(run["attempts"]):
            self.violations.append(f"{name}: {run['status']}, {ends} ends of {len(run['attempts'])} attempts")
        names = (self.folder / "witness").read_text().split()
        self.violations += [f"{one} ran twice" for one in set(names) if names.count(one) > 1]
        workspace.journal.close()

    def clear(self) -> None:
        if self.worker is not None:
            self.worker.kill()
            self.worker.wait()
