"""Requests that wait for their turn, and whoever works them off: a loop that anybody may run, and kill.

    add(workspace, wanted)            behind the others; its number
    drop, renew(workspace, entry)     out of the queue; once more
    refuse(workspace, entry, why)     it cannot begin, or go on: until a person says otherwise
    up = Up(workspace, drive)         works off the queue: `drive` starts the process that begins or goes on with one
    up.step()                         one look: what has ended leaves, what is due begins; True: there may be more to do

Everything that counts stands in the journal. What is lost with a killed Up is who watches: the processes that it
started go on until their runs rest, and the next one finds each run as it is. Two at once never act: the second one
waits (alone), and takes over when the first is gone.

A process that ends before its run has moved, three times in a row, gives its request up, with its last words.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenuto.core.queue.calendar import latest, next_after
from tenuto.core.queue.entries import due
from tenuto.core.times import iso, milliseconds
from tenuto.engine.many.day import Account
from tenuto.engine.many.timetable import at_once, offset_of, schedules_of
from tenuto.engine.rest import is_driven, is_waited_for
from tenuto.supervise.records import FileLock, is_locked, make_directory
from tenuto.workspace.guard import refuse_attempts
from tenuto.workspace.settings import read_settings

if TYPE_CHECKING:
    import subprocess

    from tenuto.core.queue.entries import Move, Standing
    from tenuto.core.records.run import QueueEntry, Repo, Wanted
    from tenuto.engine.many.timetable import Scheduled
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Workspace

    Drive = Callable[[str, str], subprocess.Popen[bytes]]
    """Starts the process for an entry of the queue; its words go to the end of that file."""

_TRIES = 3
_LAST = 2000  # bytes of what a process said


def add(workspace: Workspace, wanted: Wanted) -> QueueEntry:
    refuse_attempts(workspace.caller, workspace.state, "queue a request")
    with workspace.turn() as turn:
        events = turn.do_repo({"do": "QueueRequest", "wanted": wanted})
        queued = [event["entry"] for event in events if event["type"] == "RequestQueued"]
        return turn.repo["queue"][queued[0]]


def drop(workspace: Workspace, entry: str, reason: str = "") -> None:
    refuse_attempts(workspace.caller, workspace.state, "take a request out of the queue")
    with workspace.turn() as turn:
        turn.do_repo({"do": "DropRequest", "entry": entry, "reason": reason})


def renew(workspace: Workspace, entry: str) -> None:
    refuse_attempts(workspace.caller, workspace.state, "queue a request")
    with workspace.turn() as turn:
        turn.do_repo({"do": "RenewRequest", "entry": entry})


def refuse(workspace: Workspace, entry: str, why: str) -> None:
    with workspace.turn() as turn:
        known = turn.repo["queue"].get(entry)
        if known is not None:
            version = turn.tx.version(known["run"]) if known["run"] else 0
            turn.do_repo({"do": "RefuseRequest", "entry": entry, "why": why, "version": version})


def log_of(workspace: Workspace, entry: str) -> str:
    return f"{workspace.state}/up/{entry}.log"


def is_worked_off(workspace: Workspace) -> bool:
    return is_locked(_lock(workspace))


@contextmanager
def alone(workspace: Workspace, wait: bool) -> Iterator[bool]:
    """Who works off the queue of this repository; False where another one does, and is not waited for."""
    make_directory(os.path.dirname(_lock(workspace)), 0o777)
    with FileLock(_lock(workspace), wait) as ours:
        yield ours


def _lock(workspace: Workspace) -> str:
    return f"{workspace.state}/up/lock"


class Up:
    def __init__(self, workspace: Workspace, drive: Drive, say: Callable[[str], None]) -> None:
        self.workspace = workspace
        self.drive = drive
        self.say = say
        self.ended: list[tuple[str, str]] = []  # runs that are over, with their status
        self._at_work: dict[str, subprocess.Popen[bytes]] = {}  # by entry
        self._begun: dict[str, tuple[int, int]] = {}  # by entry: where its log ended, and the version of its run, then
        self._failed: dict[str, int] = {}
        self._account = Account(workspace)
        self._held = ""

    def step(self) -> bool:
        settings = read_settings(self.workspace.root, self.workspace.state)
        queued = self._keep_schedules(settings)
        ended = self._collect()
        moves = self._due(settings)
        for move in moves:
            self._make(move)
        return bool(queued or ended or moves)

    @property
    def is_idle(self) -> bool:
        return not self._at_work

    # ---- schedules

    def _keep_schedules(self, settings: Settings) -> bool:
        wanted = schedules_of(settings)
        with self.workspace.journal.read() as reader:
            repo = reader.load_repo()
        now = milliseconds(self.workspace.clock()) or 0
        names = [one["name"] for one in wanted]
        gone = [name for name in repo["schedules"] if name not in names]
        found = [one for one in wanted if _is_another(repo, one) or _time_of(repo, one, now) is not None]
        if not gone and not found:
            return False
        with self.workspace.turn() as turn:
            for name in gone:
                turn.do_repo({"do": "DropSchedule", "schedule": name})
            for one in found:
                turn.do_repo(
                    {"do": "KeepSchedule", "schedule": one["name"], "every": one["every"], "zone": one["zone"]}
                )
                at = _time_of(turn.repo, one, now)
                if at is not None:
                    turn.do_repo(
                        {"do": "QueueRequest", "wanted": one["wanted"], "schedule": one["name"], "due": iso(at)}
                    )
        return True

    # ---- runs

    def _due(self, settings: Settings) -> list[Move]:
        with self.workspace.journal.read() as reader:
            repo = reader.load_repo()
            runs = {
                entry["run"]: run
                for entry in repo["queue"].values()
                if entry["run"] and (run := reader.load(entry["run"])) is not None
            }
            answer = self._account.admitted(reader, {}, [{"attempts": 1}])
        held = "" if answer.number else answer.until
        if held and held != self._held:
            self.say(f"nothing more begins before {held}: the budget is used up")
        self._held = held
        driven = [entry["run"] for entry in repo["queue"].values() if entry["id"] in self._at_work]
        standing: dict[str, Standing] = {
            name: {
                "status": run["status"],
                "version": run["version"],
                "driven": name in driven or is_driven(self.workspace, name) or is_waited_for(self.workspace, name),
            }
            for name, run in runs.items()
        }
        at_work = self._at_work
        starting = [entry["id"] for entry in repo["queue"].values() if not entry["run"] and entry["id"] in at_work]
        return due(repo, standing, at_once(settings), bool(held), starting)

    def _make(self, move: Move) -> None:
        entry = move["entry"]
        if move["act"] == "end":
            with self.workspace.turn() as turn:
                turn.do_repo({"do": "EndRequest", "entry": entry, "status": move["status"]})
            self.ended.append((move["run"], move["status"]))
            self.say(f"{move['run']}: {move['status']}")
            return
        path = log_of(self.workspace, entry)
        size = os.path.getsize(path) if os.path.exists(path) else 0
        self._begun[entry] = (size, self._version(move["run"]))
        self._at_work[entry] = self.drive(entry, path)
        self.say(f"{move['run']}: goes on" if move["act"] == "drive" else f"request {entry} begins")

    def _version(self, run: str) -> int:
        with self.workspace.journal.read() as reader:
            return reader.version(run) if run else 0

    def _collect(self) -> bool:
        """Processes that have ended. Whether their run has moved says the journal."""
        over = [entry for entry, process in self._at_work.items() if process.poll() is not None]
        for entry in over:
            status = self._at_work.pop(entry).returncode
            with self.workspace.journal.read() as reader:
                known = reader.load_repo()["queue"].get(entry)
                version = reader.version(known["run"]) if known is not None and known["run"] else 0
            size, before = self._begun.pop(entry)
            if known is None or known["status"] == "refused" or version != before:
                self._failed.pop(entry, None)
                continue
            self._failed[entry] = self._failed.get(entry, 0) + 1
            if self._failed[entry] >= _TRIES or status == 0:
                del self._failed[entry]
                refuse(self.workspace, entry, _words(log_of(self.workspace, entry), size) or f"exit status {status}")
        return bool(over)


def _is_another(repo: Repo, one: Scheduled) -> bool:
    kept = repo["schedules"].get(one["name"])
    return kept is None or (kept["every"], kept["zone"]) != (one["every"], one["zone"])


def _time_of(repo: Repo, one: Scheduled, now: int) -> int | None:
    """The time that has come and was not kept yet."""
    kept = repo["schedules"].get(one["name"])
    if kept is None or _is_another(repo, one):
        return None
    return latest(one["rule"], offset_of(one["zone"]), milliseconds(kept["last"]) or 0, now)


def next_time(repo: Repo, one: Scheduled, now: int) -> str:
    """When it is due next, if somebody works off the queue then."""
    kept = repo["schedules"].get(one["name"])
    last = milliseconds(kept["last"]) or 0 if kept is not None and not _is_another(repo, one) else now
    missed = latest(one["rule"], offset_of(one["zone"]), last, now)
    return iso(missed if missed is not None else next_after(one["rule"], offset_of(one["zone"]), max(last, now)))


def _words(path: str, since: int) -> str:
    """What a process said last, from there on."""
    try:
        with open(path, "rb") as log:
            log.seek(max(since, os.path.getsize(path) - _LAST))
            return log.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
