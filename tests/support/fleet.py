"""Machines that share a database and an origin: workers as programs of their own, each in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import tenuto
from tenuto.agents.roster import Roster
from tenuto.cluster.database import Line, connect, install
from tenuto.cluster.driver import ClusterEngine, remember_pool
from tests.acceptance.grounds import OWN_TREES, TWO, Ground

if TYPE_CHECKING:
    from tenuto.core.records.run import Run

REPOSITORY = Path(__file__).resolve().parents[2]
DEADLINE = 300.0  # for what must happen; reaching it is a failure, never a result


class Fleet:
    def __init__(self, folder: Path, address: str, ground: Ground) -> None:
        self.folder = folder
        self.address = address
        self.ground = ground
        self.workers: list[subprocess.Popen[str]] = []
        install(address)
        self.origin = folder / "origin.git"
        subprocess.run(["git", "init", "-q", "--bare", str(self.origin)], check=True)
        ground.git("remote", "add", "origin", str(self.origin))

    def start(self, **agents: str) -> str:
        """As `Ground.start`, for the pool `default`."""
        name = self.ground.start(TWO, OWN_TREES, **agents)
        with tenuto.open(str(self.ground.root)).turn() as turn:
            remember_pool(turn, name, "default")
        return name

    def engine(self, name: str) -> ClusterEngine:
        workspace = tenuto.open(str(self.ground.root))
        roster = Roster(f"scripted:{self.ground.script}")
        return ClusterEngine(workspace, name, roster, self.ground.settings, line=Line(self.address))

    def drive(self, name: str) -> Run:
        return self.engine(name).drive()

    def worker(self, home: str = "w", *words: str, **variables: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tenuto", "worker", "--home", str(self.folder / home), *words]
        environment = {**os.environ, "TENUTO_CLUSTER": self.address, "PYTHONPATH": str(REPOSITORY), **variables}
        with open(self.folder / f"{home}.log", "a") as log:
            worker = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log, text=True)
        self.workers.append(worker)
        return worker

    def said(self, home: str = "w") -> str:
        return (self.folder / f"{home}.log").read_text()

    def tell(self, question: str) -> None:
        with connect(self.address) as connection:
            connection.execute(question.encode())

    def ask(self, question: str) -> list[tuple[object, ...]]:
        with connect(self.address) as connection:
            return [*connection.execute(question.encode())]

    def await_(self, question: str, wanted: int = 1) -> None:
        """Until the database counts so many."""
        until = time.monotonic() + DEADLINE
        while self.ask(question) != [(wanted,)]:
            if time.monotonic() > until:
                raise TimeoutError(f"{question}: {self.ask(question)}\n{self.said()}")
            time.sleep(0.02)

    def await_file(self, path: Path) -> None:
        until = time.monotonic() + DEADLINE
        while not path.exists() or not path.read_text():
            if time.monotonic() > until:
                raise TimeoutError(f"{path} is not there\n{self.said()}")
            time.sleep(0.02)

    @contextmanager
    def driving(self, name: str) -> Iterator[list[Run]]:
        """Meanwhile; at the end of the block the run has come to its rest."""
        found: list[Run] = []
        thread = threading.Thread(target=lambda: found.append(self.drive(name)))
        thread.start()
        yield found
        thread.join(DEADLINE)
        assert found, f"it was not driven to its rest\n{self.said()}"

    def stop(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGKILL)
                worker.wait()


@contextmanager
def fleet(folder: Path, address: str, ground: Ground | None = None) -> Iterator[Fleet]:
    made = Fleet(folder, address, ground or Ground(folder))
    try:
        yield made
    finally:
        made.stop()
