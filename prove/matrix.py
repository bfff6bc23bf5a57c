"""The kill matrix: a small run, processes that stand still at a point (points.py), and kill -9 of one or all of them.

    cases(prefix, amount)     every point × every victim × every pipeline, again and again with other dice
    play(case, broken)        one run from its start to its rest, killed on the way, started again
    World                     what is left of it: the journal, the attempts' directories, and the witness

The witness is a file that agents write to and Tenuto knows nothing about: what really ran stands there. Orchestrators
are processes of their own, forked from one that has loaded everything; supervisors are started as ever; agents are
shell scripts.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tenuto
from prove import points
from prove.frame import Amount, dice, place
from tenuto.agents.roster import Roster
from tenuto.core.records.action import Definition
from tenuto.engine.attempt import define
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine
from tenuto.supervise import attempts, processes, records
from tests.support.sandbox import await_end, ready

VICTIMS = ("orchestrator", "supervisor", "agent", "all")
DEADLINE = 180.0  # for what must happen; reaching it is a violation
RUN = "try-it"
AGENT = """#!/bin/sh
cat > /dev/null
echo "start $TENUTO_ATTEMPT" >> {world}/witness
if mv {world}/stand {world}/stood 2> /dev/null; then echo $$ > {world}/agent-ear; read go < {world}/agent-gate; fi
echo "end $TENUTO_ATTEMPT" >> {world}/witness
echo "DONE: worked"
"""
SEAT = "role: researcher, mode: focused, focus: x"
RETRY = "retry: {ERROR: 6, LOST: 6}, on: {ERROR: halt}"
HEAD = "documents: docs/feature/{slug}\nshown_as: feature_docs\ncap: 2\nsteps:\n"
PIPELINES = {
    "one": f"  - {{id: work, agent: {{{SEAT}}}, {RETRY}}}\n",
    "two": f"  - {{id: work, agent: {{{SEAT}}}, {RETRY}}}\n  - {{id: more, agent: {{{SEAT}}}, {RETRY}}}\n",
    "beside": (
        "  - "
        f"{{id: work, cluster: {{members: [{{id: a, {SEAT}}}, {{id: b, {SEAT}}}, {{id: c, {SEAT}}}], quorum: 3}}, {RETRY}}}\n"  # noqa: E501
    ),
}
# How often a run comes to a point: a kill at a time that never comes kills nobody.
TIMES = {"one": (1,), "two": (1, 1, 2), "beside": (1, 1, 2, 3)}


class Kill(NamedTuple):
    point: str
    nth: int
    victims: str
    late: float  # seconds that what stood still goes on before it is killed
    held: bool = False  # a supervisor nobody knows of, which stands still until the run rests, and then goes on


class Case(NamedTuple):
    name: str
    pipeline: str
    kills: tuple[Kill, ...]

    def __str__(self) -> str:
        return f"{self.name} ({self.pipeline}): " + ", then ".join(
            f"{kill.victims} killed where {kill.point} (time {kill.nth})" for kill in self.kills
        )


def cases(
    prefix: str, amount: Amount, full: int, sample: int, pipelines: tuple[str, ...] = tuple(PIPELINES)
) -> list[Case]:
    """Every cell of the matrix comes first with one kill; later rounds kill what recovers, too."""
    wanted = full if amount.full else sample
    made: list[Case] = []
    number = 0
    while len(made) < wanted:
        chance = dice(prefix, number)
        cells = [
            (point, victims) for point in points.POINTS for victims in VICTIMS if not number or _lives(point, victims)
        ]
        if not amount.full:
            chance.shuffle(cells)
        for point, victims in cells:
            pipeline = pipelines[number % len(pipelines)]
            kills = [_kill(chance, point, victims, pipeline, number)]
            while number >= len(pipelines) and chance.random() < 0.4 and len(kills) < 4:
                kills.append(_kill(chance, *chance.choice(cells), pipeline, number))
            made.append(Case(f"{prefix} {number}/{len(made)}", pipeline, tuple(kills)))
        number += 1
    return made[:wanted]


def _lives(point: str, victims: str) -> bool:
    """Is there such a process at this point? Where there is none, one round is enough."""
    with_supervisor = (
        "the supervisor has no environment yet",
        "the supervisor is on its own",
        *points.SUPERVISOR,
        points.AGENT,
    )
    chosen = {"supervisor": with_supervisor, "agent": ("between fork and exec", points.AGENT)}
    return point in chosen.get(victims, points.POINTS)


def _kill(chance: random.Random, point: str, victims: str, pipeline: str, number: int) -> Kill:
    nth = 1 if number < 3 else chance.choice(TIMES.get(pipeline, TIMES["beside"]))
    late = chance.uniform(0, 0.002) if point.startswith("during") else 0.0
    held = point == "before the claim" and victims == "orchestrator" and number % 2 == 1
    return Kill(point, nth, victims, late, held)


class World:
    def __init__(
        self, folder: Path, definition: Definition, limits: dict[str, int], roster: Callable[[str], Any]
    ) -> None:
        self.folder = folder
        self.root = folder / "repository"
        self.root.mkdir()
        for name in ("agent-ear", "agent-gate"):
            os.mkfifo(folder / name)
        self.agent = folder / "agent.sh"
        self.roster = roster
        self.killed = 0
        self._drives = 0
        self._gates: list[int] = []
        self._held: list[tuple[int, int]] = []  # supervisors that stand still, and their gates
        workspace = tenuto.open(str(self.root))
        start(workspace, "Try it", "tiny", definition=definition, limits=limits)
        workspace.journal.close()

    def write_agent(self, text: str) -> None:
        self.agent.write_text(text.replace("{world}", str(self.folder)))
        self.agent.chmod(0o755)

    # ---- one orchestrator

    def drive(self, kill: Kill | None, broken: Callable[[], None] | None = None) -> bool:
        """Until the run rests: True. Killed on the way: False."""
        self._drives += 1
        ear, gate = self._line(kill)
        pid = self._fork(kill, broken)
        ended = os.pidfd_open(pid)
        try:
            told = self._hear(ear, ended)
            if told and kill and kill.held:
                self._held.append((int(os.read(ear, 64).split()[0]), gate))
            dead = bool(told and kill) and self._strike(kill, pid, gate)  # type: ignore[arg-type]
            if not dead and not ready([ended], DEADLINE):
                raise TimeoutError("the orchestrator does not come to rest")
            _, status = os.waitpid(pid, 0)
            if not dead and status:
                raise RuntimeError(f"the orchestrator ended with {status}: {self._errors()}")
            return not dead
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        finally:
            if all(gate != held for _, held in self._held):
                os.write(gate, b"\n" * 64)  # whoever comes later, too
            for descriptor in (ended, ear):
                os.close(descriptor)
            # The gate stays open as long as the world: one who comes late must not wait for ever.
            self._gates.append(gate)

    def _line(self, kill: Kill | None) -> tuple[int, int]:
        names = [self.folder / f"{name}-{self._drives}" for name in ("ear", "gate")]
        if kill is not None and kill.point == points.AGENT:
            names = [self.folder / "agent-ear", self.folder / "agent-gate"]
            (self.folder / "stand").touch()
        else:
            for name in names:
                os.mkfifo(name)
        ear, gate = (os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) for name in names)
        for descriptor in (ear, gate):
            if ready([descriptor], 0):
                os.read(descriptor, 4096)
        return ear, gate

    def _fork(self, kill: Kill | None, broken: Callable[[], None] | None) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            log = os.open(self.folder / "errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(log, 2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            if kill is not None:
                self._arm(kill)
            if broken is not None:
                broken()
            Engine(tenuto.open(str(self.root)), RUN, self.roster(str(self.agent)), {}).drive()
            status = 0
        except BaseException:  # noqa: BLE001  whatever it is, it is told
            import traceback

            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)

    def _arm(self, kill: Kill) -> None:
        ear, gate = (str(self.folder / f"{name}-{self._drives}") for name in ("ear", "gate"))
        if kill.point in points.ORCHESTRATOR:
            points.arm(kill.point, kill.nth, ear, gate)
        elif kill.point in points.SUPERVISOR:
            _start_one_armed(kill, [str(ear), str(gate)])
            if kill.held:
                _stop_before_the_note(kill.nth)

    def _hear(self, ear: int, ended: int) -> bool:
        told = ready([ear, ended], DEADLINE)
        if not told:
            raise TimeoutError("nobody stands still, and nobody ends")
        return ear in told

    def _strike(self, kill: Kill, orchestrator: int, gate: int) -> bool:
        supervisors = _children(orchestrator)
        agents = [child for pid in supervisors for child in _children(pid)]
        victims = {"orchestrator": [orchestrator], "supervisor": supervisors, "agent": agents}
        chosen = victims.get(kill.victims, [orchestrator, *supervisors, *agents])
        if kill.late:
            os.write(gate, b"\n" * 64)
            time.sleep(kill.late)
        for pid in chosen:
            try:
                os.kill(pid, signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                pass
        if not kill.held:
            os.write(gate, b"\n" * 64)  # whoever is left goes on
        return orchestrator in chosen

    def _errors(self) -> str:
        return (self.folder / "errors").read_text()[-2000:]

    # ---- what is left

    def witnessed(self) -> list[tuple[str, str]]:
        """("start" or "end", attempt), as it happened."""
        path = self.folder / "witness"
        return [tuple(line.split()[:2]) for line in path.read_text().splitlines()] if path.exists() else []  # type: ignore[misc]

    def starts(self) -> Iterator[tuple[str, Path]]:
        """Every start of an attempt: its name, and its directory."""
        for path in sorted((self.root / ".git" if (self.root / ".git").is_dir() else self.root).rglob("spec.json")):
            yield records.read(str(path))["attempt"], path.parent

    def settle(self) -> None:
        """Supervisors that stand still go on; those that had nothing more to say may still be on their way out."""
        for pid, gate in self._held:
            os.write(gate, b"\n" * 64)
            await_end(pid)
        for _, directory in self.starts():
            claim = records.read(str(directory / "claim"))
            supervisor = claim and claim["state"] != "void" and claim["supervisor"]
            if supervisor and processes.alive(supervisor):
                await_end(supervisor["pid"])

    def close(self) -> None:
        for gate in self._gates:
            os.write(gate, b"\n" * 64)
            os.close(gate)


def _start_one_armed(kill: Kill, fifos: list[str]) -> None:
    """The nth supervisor that this orchestrator starts is one that stands still."""
    ordinary, seen = attempts.start_supervisor, [0]

    def start_supervisor(directory: str, environment: dict[str, str], command: list[str]) -> None:
        seen[0] += 1
        if seen[0] == kill.nth:
            command = [sys.executable, "-I", "-S", points.__file__, kill.point, "1", *fifos, directory]
        ordinary(directory, environment, command)

    attempts.start_supervisor = start_supervisor


def _stop_before_the_note(nth: int) -> None:
    """The nth supervisor has all that it needs; that it was started stands nowhere yet, and never will."""
    ordinary, seen = attempts._hand_over, [0]

    def hand_over(process: Any, environment: dict[str, str]) -> None:
        ordinary(process, environment)
        seen[0] += 1
        if seen[0] == nth:
            signal.pause()

    attempts._hand_over = hand_over


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ProcessLookupError):
        return []


@functools.cache
def definition(text: str) -> Definition:
    with place() as folder:
        (folder / ".tenuto" / "pipelines").mkdir(parents=True)
        (folder / ".tenuto" / "pipelines" / "tiny.yaml").write_text("name: tiny\n" + text)
        return define("tiny", str(folder))


def command_roster(agent: str) -> Any:
    return Roster(f"command:{agent}")


def play(
    case: Case,
    judge: Callable[[World, Any, list[Any]], list[str]],
    *,
    text: str = "",
    agent: str = AGENT,
    limits: dict[str, int] | None = None,
    roster: Callable[[str], Any] = command_roster,
    broken: Callable[[], None] | None = None,
) -> tuple[int, list[str]]:
    """How many processes were killed, and what was not as promised. `broken`: done to every orchestrator but the
    first."""
    with place() as folder:
        world = World(folder, definition(text or HEAD + PIPELINES[case.pipeline]), limits or {}, roster)
        world.write_agent(agent)
        try:
            for number, kill in enumerate((*case.kills, None)):
                if world.drive(kill, broken if number else None):
                    break
            world.settle()
        except (TimeoutError, RuntimeError) as problem:
            return world.killed, [f"{case}: {problem}"]
        finally:
            world.close()
        workspace = tenuto.open(str(world.root))
        with workspace.journal.read() as reader:
            events = list(reader.events(RUN))
        found = judge(world, workspace.load(RUN), events)
        workspace.journal.close()
        return world.killed, [f"{case}: {words}" for words in found]
