"""A worker: claims what its pool has to do, carries it out on this machine, hands in what came of it.

    worker = Worker(address, Place(home, pool, slots, labels), tell)
    worker.work()                  until it is told to stop
    worker.work(one_of=...)        one attempt, and it ends: for Kubernetes Jobs, SLURM, a shell

It starts again where it was: its folder says what it has claimed. What runs still is taken up, what never began is
given back, what has ended meanwhile is reported. Agents outlive it, as long as their leases do.

SIGTERM, SIGINT: takes nothing more, and ends when all that is under way has ended. Once more: it ends at once, and its
agents go on until their leases are over, or until the next worker in this folder takes them up.

Rules. A beat names every attempt that it renews. The moment of a lease is taken before it is asked for, so that ours
always ends before the database's. A beat that cannot go on ends the worker: then the leases run out, as they should.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tenuto.cluster.board import Held, WorkerBoard
from tenuto.cluster.database import Line
from tenuto.cluster.dispatch import POLL, Intake, Polling
from tenuto.cluster.work import Work, folder_of
from tenuto.encoding import loads
from tenuto.errors import Refused, TenutoError
from tenuto.supervise.records import FileLock, lease_clock, make_directory, publish, read

if TYPE_CHECKING:
    from tenuto.cluster.records import Report, TaskSpec

    Tell = Callable[[str], None]
    MakeIntake = Callable[[Line, WorkerBoard, int], Intake]

_BEATS = 6  # in the time of a lease
_PAUSE = 30.0  # seconds before something that this worker could not begin is offered again
_TRY_AGAIN = 2.0
_PUSHES = 120  # that are tried for one result


class Place(NamedTuple):
    home: str
    pool: str
    slots: int
    labels: tuple[str, ...] = ()
    software: str = ""  # of which version it is, for people


def polling(line: Line, board: WorkerBoard, slots: int) -> Intake:
    return Polling(line, board)


class Worker:
    def __init__(self, address: str, place: Place, tell: Tell, intake: MakeIntake = polling) -> None:
        self.place = place
        self.tell = tell
        make_directory(place.home)
        self.name = self._name()
        self._beats = WorkerBoard(Line(address), self.name)
        self._calls = WorkerBoard(Line(address), self.name)
        self._address, self._intake = address, intake
        self._at_work: dict[str, Work] = {}
        self._threads: list[threading.Thread] = []
        self._changing = threading.Lock()
        self._woken = threading.Event()
        self._draining = False
        self._seconds = 0.0

    def _name(self) -> str:
        """The same after a restart in this folder: then it knows what it has claimed."""
        path = f"{self.place.home}/worker.json"
        known = read(path)
        if known is None:
            known = {"id": f"{socket.gethostname()}-{os.urandom(4).hex()}"}
            publish(path, known)
        return str(known["id"])

    # ---- the whole of it

    def work(self, one_of: Callable[[str], bool] | None = None) -> int:
        """How many attempts it has carried out. `one_of`: the first of these, and no other."""
        with FileLock(f"{self.place.home}/worker.lock", wait=False) as ours:
            if not ours:
                message = f"another worker is at work in {self.place.home}"
                raise Refused("worker-there", message, "--home FOLDER for a second one on this machine")
            self._until_answered(self._register)
            line = Line(self._address)
            intake = self._intake(line, WorkerBoard(line, self.name), self.place.slots)
            try:
                self._until_answered(self._take_up)
                beating = threading.Thread(target=self._beat, name="beat", daemon=True)
                beating.start()
                done = self._loop(intake, one_of)
                self._safely(lambda: self._calls.leave(True))
                return done
            finally:
                intake.close()
                self._calls.line.close()

    def drain(self) -> None:
        self._draining = True
        self._woken.set()

    def _register(self) -> None:
        place, host = self.place, socket.gethostname()
        self._seconds = self._calls.register(place.pool, place.slots, place.labels, place.software, host)
        self.tell(f"worker {self.name}: pool {place.pool}, {place.slots} slots, leases of {self._seconds:g} s")

    def _loop(self, intake: Intake, one_of: Callable[[str], bool] | None) -> int:
        done, told = 0, False
        while True:
            for task in self._collect():
                intake.done(task)
                done += 1
            if self._draining and not told:
                told = True
                self._safely(lambda: self._calls.leave(False))
                self.tell(f"draining: {len(self._at_work)} under way, nothing more is taken")
            if (self._draining or (one_of and done)) and not self._at_work:
                return done
            free = self.place.slots - len(self._at_work)
            if free > 0 and not self._draining and not (one_of and self._at_work):
                self._safely(lambda free=free: self._take(intake, free, one_of))  # type: ignore[misc]
            self._wait(intake, idle=free > 0 and not self._draining)

    def _wait(self, intake: Intake, idle: bool) -> None:
        """Until something may be ready, or something has ended."""
        if idle:
            intake.wait(POLL)
        else:
            self._woken.wait(POLL)
        self._woken.clear()

    def _safely(self, act: Callable[[], object]) -> None:
        """A database that is away is no reason to end: agents go on until their leases are over."""
        try:
            act()
        except TenutoError as problem:
            self.tell(f"{problem.message}; trying again")
            time.sleep(_TRY_AGAIN)

    # ---- claims

    def _take(self, intake: Intake, free: int, one_of: Callable[[str], bool] | None) -> None:
        for task in intake.ready(free if one_of is None else 100):
            if one_of is not None and (self._at_work or not one_of(task)):
                continue
            if task in self._at_work or len(self._at_work) >= self.place.slots:
                continue
            asked = lease_clock()
            claim = self._calls.claim(task)
            if claim.answer not in ("claimed", "yours"):
                intake.done(task)
                continue
            work = Work(folder_of(self.place.home, task), self.place.home)
            spec: TaskSpec = loads(claim.spec)
            if work.is_known:  # of an epoch before this one, which ended elsewhere
                work.end()
                work.clear()
            work.note(Held(task, claim.epoch), spec)
            work.extend(asked, claim.seconds)
            self._start(work)

    def _take_up(self) -> None:
        """What a worker before this one left in the folder, and what it claimed and never wrote down."""
        known = [Work(f"{self.place.home}/attempts/{name}", self.place.home) for name in self._folders()]
        there = {work.held: work for work in known if work.is_known}
        asked = lease_clock()
        answers = self._calls.beat(list(there)) if there else {}
        for held in self._calls.held():
            if held not in there:
                self._calls.give_back(held)
        for held, work in there.items():
            if held.task in self._at_work:  # this was asked before, and the database went away in between
                continue
            if not work.began:
                if answers.get(held.task) == "on":
                    self._calls.give_back(held)
                work.clear()
                continue
            if answers.get(held.task) == "on":
                work.extend(asked, self._seconds)
                self.tell(f"taken up: {held.task}")
            else:
                work.end()
            self._start(work)
        for work in known:
            if not work.is_known:
                work.clear()

    def _folders(self) -> list[str]:
        folder = f"{self.place.home}/attempts"
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    # ---- beats

    def _beat(self) -> None:
        try:
            while True:
                time.sleep(self._seconds / _BEATS)
                self._beat_once()
        except BaseException:  # noqa: BLE001  # nobody would renew a lease any more, and nobody would know it
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def _beat_once(self) -> None:
        with self._changing:
            works = {work.held: work for work in self._at_work.values()}
        asked = lease_clock()
        try:
            answers = self._beats.beat(list(works))
        except TenutoError as problem:
            self.tell(f"no beat: {problem.message}")
            return
        for held, work in works.items():
            answer = answers.get(held.task, "over")
            if answer == "on":
                work.extend(asked, self._seconds)
            else:
                if answer == "cancel":
                    work.extend(asked, self._seconds)
                work.end()

    # ---- attempts

    def _start(self, work: Work) -> None:
        with self._changing:
            self._at_work[work.held.task] = work
        thread = threading.Thread(target=self._carry, args=(work,), name=work.held.task)
        self._threads.append(thread)
        thread.daemon = True
        thread.start()

    def _collect(self) -> Iterator[str]:
        for thread in [thread for thread in self._threads if not thread.is_alive()]:
            thread.join()
            self._threads.remove(thread)
            with self._changing:
                self._at_work.pop(thread.name, None)
            yield thread.name

    def _carry(self, work: Work) -> None:
        held = work.held
        try:
            if not self._prepare(work):
                return
            report = self._report_of(work)
            answer = self._hand_in(work, report)
            said = report["verdict"] if report["kind"] == "ended" else "lost"
            self.tell(f"{held.task}: {said}, {answer}")
            work.clear()
        finally:
            self._woken.set()

    def _prepare(self, work: Work) -> bool:
        """False where it cannot be begun here: then it is given back."""
        held = work.held
        try:
            work.refuse_what_is_missing()
            work.unpack(lambda sha: self._calls.content(held, sha))
            work.make_hands()
            return True
        except Exception as problem:  # noqa: BLE001  # whatever it is, another worker may do better
            if work.began:
                return True
            reason = problem.message if isinstance(problem, TenutoError) else f"{type(problem).__name__}: {problem}"
            self.tell(f"{held.task}: given back: {reason}")
            self._until_answered(lambda: self._calls.give_back(held, reason, _PAUSE))
            work.clear()
            return False

    def _report_of(self, work: Work) -> Report:
        try:
            return work.carry()
        except Exception as problem:  # noqa: BLE001  # an attempt whose outcome is not known is labelled, never dropped
            traceback.print_exc()
            work.end()
            return {"kind": "lost", "reason": f"its worker could not go on: {problem}", "ran": work.began}

    def _hand_in(self, work: Work, report: Report) -> str:
        for number in range(_PUSHES):
            try:
                body = work.hand_in(report)
                break
            except TenutoError as problem:
                self.tell(f"{work.held.task}: {problem.message}; trying again")
                if number + 1 == _PUSHES or work.is_over:
                    lost: Report = {
                        "kind": "lost",
                        "reason": f"its result could not be sent: {problem.message}",
                        "ran": True,
                    }
                    body = work.hand_in(lost)
                    break
                time.sleep(_TRY_AGAIN * 2)
        found: list[str] = []
        self._until_answered(lambda: found.append(self._calls.report(work.held, body)))
        return found[0]

    def _until_answered(self, call: Callable[[], object]) -> None:
        while True:
            try:
                call()
                return
            except TenutoError as problem:
                if problem.code != "database-away":
                    raise
                self.tell(f"{problem.message}; trying again")
                time.sleep(_TRY_AGAIN)


def stop_on_signals(worker: Worker) -> None:
    def stop(number: int, frame: object) -> None:
        if worker._draining:
            os._exit(128 + number)
        worker.drain()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
