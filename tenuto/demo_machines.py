"""`tenuto cluster demo`: the demo's project on three workers and a private PostgreSQL, and one of everything is killed.

    python -m tenuto.demo_machines [--remove]

Killed with -9, while agents work: a worker that comes back, the driver, the database server, and a worker that never
comes back. The summary is that of the demo, checked in the same way, with what was seen of each kill.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.cluster import database
from tenuto.cluster.private_postgres import PrivatePostgres
from tenuto.core.times import iso
from tenuto.demo import PACKAGE, Demo
from tenuto.encoding import loads

if TYPE_CHECKING:
    from tenuto.core.records.run import Run
    from tenuto.demo import Story
    from tenuto.show.runs import RecordedEvent

_LEASE = 15  # seconds: a demo does not wait two minutes for a machine that is gone
_WORKERS = ("anna", "bert", "cleo")
_PATIENCE = 600.0


def main(words: list[str]) -> int:
    if set(words) - {"--remove"}:
        print("python -m tenuto.demo_machines [--remove]", file=sys.stderr)
        return 2
    home = Path(tempfile.mkdtemp(prefix="tenuto-demo-"))
    try:
        with PrivatePostgres.start() as server:
            MachinesDemo(home, server).play(stays=False)
    finally:
        if "--remove" in words:
            shutil.rmtree(home, ignore_errors=True)
        else:
            print(f"\n  the project stays in {home}; its database and its workers have ended")
    return 0


class MachinesDemo(Demo):
    def __init__(self, home: Path, server: PrivatePostgres) -> None:
        super().__init__(home)
        self.server = server
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.held: list[str] = []  # by the worker that was killed for good

    def play(self, stays: bool) -> None:
        try:
            super().play(stays)
        finally:
            for worker in self.workers.values():
                worker.terminate()
            for worker in self.workers.values():
                worker.wait()

    def make_project(self, story: Story) -> None:
        super().make_project(story)
        origin = self.home / "origin.git"
        self.git("clone", "-q", "--bare", ".", str(origin))
        self.git("remote", "add", "origin", str(origin))
        os.environ[database.VARIABLE] = self.server.url()
        database.install(self.server.url())
        self._tell(f"UPDATE pool SET cap = 16, lease_seconds = {_LEASE}")
        self.title("A private PostgreSQL, a bare origin, and three workers")
        for name in _WORKERS:
            self._start(name)
        self._until(lambda: self._count("SELECT count(*) FROM worker") == len(_WORKERS), "three workers")
        print(f"  {', '.join(_WORKERS)}, two slots each; leases of {_LEASE} s", flush=True)

    def run_and_kill(self, request: str) -> None:
        limits = ("--limit", "money=20", "--limit", "attempts=120")
        driver = self.tenuto("run", request, "--on", "cluster", *limits)
        self._until(lambda: self._busy() != "", "an agent at work", driver)
        name = self._busy()
        self._kill(self.workers[name])
        self.title(f"kill -9: worker {name} is dead, its agents work on. It starts again and takes them up:")
        self._start(name)
        self._until(lambda: self.at_work("implementation") >= 2, "implementers at work", driver)
        self._kill(driver)
        self.killed_at = iso(time.time_ns() // 1_000_000)
        self.title("kill -9: the driver is dead, the workers work on. tenuto run, again:")
        driver = self.tenuto("run")
        self.server.kill()
        self.title("kill -9: the database server is dead. Everybody waits, agents work on; it starts again:")
        self.server.resume()
        self._kill_for_good(driver)
        if driver.wait() != 0:
            raise SystemExit(f"tenuto run ended with {driver.returncode}; see {self.root}")

    def _kill_for_good(self, driver: subprocess.Popen[bytes]) -> None:
        while not self.held:
            self._until(lambda: self._busy("implementation") != "", "an implementer at work", driver)
            name = self._busy("implementation")
            if not name:
                return
            self._kill(self.workers[name])
            self.held = self._leases(name)
            if not self.held:  # it had handed in everything a moment before
                self._start(name)
        del self.workers[name]
        self.title(f"kill -9: worker {name} is dead for good. Its agents end, its work is made again elsewhere:")

    def claims(self, run: Run, events: list[RecordedEvent]) -> Iterator[tuple[str, str, bool]]:
        yield from super().claims(run, events)
        lost = [name for name, one in run["attempts"].items() if one["status"] == "lost"]
        made = f"{len(self.held)}: {', '.join(run['attempts'][name]['item'] or name for name in self.held)}"
        yield "a dead worker's work was made again", made, bool(lost) and sorted(lost) == sorted(self.held)
        twice = "SELECT count(*) FROM (SELECT attempt FROM task GROUP BY run, attempt HAVING count(*) > 1) AS found"
        left = self._count("SELECT count(*) FROM task WHERE NOT recorded")
        yield "every attempt has one end", f"{left} ends are not in the journal", self._count(twice) == 0 and left == 0

    # ---- machines

    def _start(self, name: str) -> None:
        words = ("worker", "--home", str(self.home / name), "--slots", "2")
        paths = [str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
        with open(self.home / f"{name}.log", "ab") as log:
            self.workers[name] = subprocess.Popen(
                [sys.executable, "-m", "tenuto", *words],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,
            )

    def _busy(self, step: str = "") -> str:
        """A worker that has an agent at work."""
        for name in self.workers:
            for result in (self.home / name / "attempts").glob(f"*/state/attempts/*/{step}*/1/started.json"):
                if not (result.parent / "result.json").exists():
                    return name
        return ""

    def _leases(self, name: str) -> list[str]:
        worker = loads((self.home / name / "worker.json").read_text("utf-8"))["id"]
        with database.connect(self.server.url()) as connection:
            question = "SELECT t.attempt FROM lease l JOIN task t ON t.id = l.task WHERE l.worker = %s"
            return [str(attempt) for (attempt,) in connection.execute(question, [worker])]

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    def _until(self, holds: Callable[[], bool], what: str, driver: subprocess.Popen[bytes] | None = None) -> None:
        until = time.monotonic() + _PATIENCE
        while not holds():
            if time.monotonic() > until:
                raise SystemExit(f"waited in vain for {what}; see {self.home}")
            if driver is not None and driver.poll() is not None:
                return
            time.sleep(0.05)

    def _tell(self, question: str) -> None:
        with database.connect(self.server.url()) as connection:
            connection.execute(question.encode())

    def _count(self, question: str) -> int:
        with database.connect(self.server.url()) as connection:
            found = connection.execute(question.encode()).fetchone()
            assert found is not None and isinstance(found[0], int)
            return found[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
