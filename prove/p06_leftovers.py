"""Promise 6: nothing an agent started outlives its attempt, and a time limit binds the whole tree.

Every way to escape (testing/rogues.py) is tried: to its own end, to its time limit, cancelled, and with its supervisor
killed; with a cgroup and without. What an agent starts says its pid, so that each process is looked for by itself: two
seconds after the attempt's end, none of them may live. A tree that had a limit must be gone two seconds after it. An
agent whose supervisor is killed ends at once; what it started ends when the next engine comes, or the one that is there
sees it: the kill matrix once more, with agents that leave a daemon behind.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from prove import matrix, points
from prove.frame import Amount, Progress, Result, place, spread
from tenuto.engine.receipts import GRACE
from tenuto.supervise import attempts, processes
from tenuto.supervise import processes as identity
from tenuto.supervise.processes import Process
from tests.support.sandbox import DEADLINE, Sandbox, lives

# How many processes of each kind say that they are in place. What "hide" leaves may be ended before it can say
# anything.
KINDS = {
    "obey": 1,
    "linger": 1,
    "ignore": 2,
    "stop": 1,
    "daemonise": 2,
    "daemonise_and_linger": 2,
    "hide": 0,
    "hide_below": 1,
    "breed": 39,
    "flee": 1,
    "flee_and_linger": 1,
}
ENDS_ITSELF = ("obey", "daemonise", "hide", "flee")
WAYS = ("limit", "cancel", "kill")
LIMIT, ALLOWED = 1.0, 2.0
LEAVING = matrix.AGENT.replace(
    'echo "start', 'setsid sleep 3600 < /dev/null > /dev/null 2>&1 &\necho $! >> {world}/left\necho "start', 1
)

# Nothing is tried again: the next attempt of the same slot would end what was left there, too.
ONCE = {
    name: matrix.HEAD + text.replace(matrix.RETRY, "retry: {ERROR: 0, LOST: 0}, on: {ERROR: halt}")
    for name, text in matrix.PIPELINES.items()
}


class Case(NamedTuple):
    kind: str
    way: str
    cgroup: bool
    number: int
    timed: bool  # a sample runs beside other tests, and is not judged by the clock

    def __str__(self) -> str:
        return f"{self.kind}, {self.way}, {'cgroup' if self.cgroup else 'walk'}, {self.number}"


class Seen(NamedTuple):
    processes: int
    late: float  # seconds after what should have ended it
    violations: list[str]


def prove(amount: Amount, tell: Progress) -> Result:
    numbers = range(10 if amount.full else 1)
    listed = [
        Case(kind, way, cgroup, number, amount.full)
        for number in numbers
        for kind in KINDS
        for way in WAYS
        for cgroup in (True, False)
    ]
    if not amount.full:
        listed = [case for case in listed if case.way != "limit" or case.kind in ("ignore", "daemonise_and_linger")][
            ::3
        ]
    driven = [
        matrix.Case(f"engine {number}", pipeline, (matrix.Kill(points.AGENT, 1, victims, 0.0),))
        for number in numbers
        for victims in matrix.VICTIMS
        for pipeline in matrix.PIPELINES
    ][:: 1 if amount.full else 4]
    seen = [
        *spread(_try, listed, amount.jobs, tell),
        *spread(partial(_drive, timed=amount.full), driven, amount.jobs, tell),
    ]
    violations = [words for one in seen for words in one.violations]
    figures = {
        "processes": f"{sum(one.processes for one in seen):,}",
        "alive after 2 s": str(len(violations)),
        "longest after a limit": f"{max(one.late for one in seen):.2f} s",
    }
    return Result(len(listed) + len(driven), violations, figures | {"of them in an engine": f"{len(driven)}"})


def control(amount: Amount) -> Result:
    """A supervisor that ends its agent, and not the tree; a daemon then lives on."""
    return Result(1, _without_a_supervisor().violations, {})


def _try(case: Case) -> Seen:
    with place() as folder, Sandbox(str(folder)) as sandbox:
        limit = LIMIT if case.way == "limit" else 60.0
        directory = sandbox.launch_rogue("a", case.kind, limit=limit, grace=GRACE, cgroup=case.cgroup)
        told = _hear(case, sandbox)
        tree = [process for _, process in told]
        asked = time.monotonic() + (LIMIT if case.way == "limit" else 0)
        if case.way == "cancel":
            attempts.cancel(directory)
        elif case.way == "kill":
            _kill_supervisor(directory)
        sandbox.rest(directory)
        alone: list[str] = []
        if case.way == "kill":
            agents = [
                process for name, process in told if name == "agent" and case.kind != "hide_below"
            ]  # there it is a daemon's child
            alone = [f"{case}: {words}" for words in _left(agents, case.timed)]
            asked = time.monotonic()
            attempts.sweep(sandbox.root)  # as the next engine does
        late, found = _judge(case, sandbox, tree, asked)
        return Seen(len(tree), late, [*alone, *found])


def _hear(case: Case, sandbox: Sandbox) -> list[tuple[str, Process]]:
    """Who says to be in place. A busy machine may reach the limit before all of them have."""
    told: list[tuple[str, Process]] = []
    while len(told) < KINDS[case.kind]:
        said = sandbox.hear_or_end(sandbox.latest_supervisor()) if case.way == "limit" else sandbox.hear()
        if said is None:
            break
        told.append(said)
    return told


def _allowed(timed: bool) -> float:
    """Until when they must be gone."""
    return time.monotonic() + (ALLOWED if timed else DEADLINE)


def _drive(case: matrix.Case, timed: bool) -> Seen:
    """A run whose processes are killed while an agent works, and which goes on to its end."""
    left: list[int] = []

    def judge(world: matrix.World, run: Any, events: list[Any]) -> list[str]:
        left.extend(int(line) for line in (world.folder / "left").read_text().split())
        at_most = _allowed(timed)
        while (alive := [pid for pid in left if _sleeps(pid)]) and time.monotonic() < at_most:
            time.sleep(0.01)
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
        return [f"the run has come to its rest ({run['status']}), and {pid} is alive" for pid in alive]

    violations = matrix.play(case, judge, text=ONCE[case.pipeline], agent=LEAVING)[1]
    return Seen(len(left), 0.0, violations)


def _sleeps(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\0003600\0"
    except OSError:
        return False


def _left(agents: list[Process], timed: bool) -> list[str]:
    """Its supervisor was killed, and no engine has come yet: the agent itself ends all the same."""
    at_most = _allowed(timed)
    while (alive := [*filter(lives, agents)]) and time.monotonic() < at_most:
        time.sleep(0.01)
    return [f"the agent ({process.pid}) outlives its killed supervisor" for process in alive]


def _kill_supervisor(directory: str) -> None:
    supervisor = attempts.inspect(directory).get("supervisor")
    if supervisor is not None and identity.alive(supervisor):
        os.kill(supervisor["pid"], signal.SIGKILL)


def _judge(case: Case, sandbox: Sandbox, tree: list[Process], asked: float) -> tuple[float, list[str]]:
    found: list[str] = []
    at_most = _allowed(case.timed)
    while (
        alive := {process.pid: process for process in (*filter(lives, tree), *_traces(sandbox))}
    ) and time.monotonic() < at_most:
        time.sleep(0.01)
    late = time.monotonic() - asked  # when the last one of the tree was gone
    if case.timed and case.way == "limit" and case.kind not in ENDS_ITSELF and late > ALLOWED:
        found.append(f"{case}: the last of it ended {late:.2f} s after its limit")
    found += [f"{case}: {process.name} ({process.pid}) is alive two seconds after" for process in alive.values()]
    if sandbox.is_held():
        found.append(f"{case}: one that always flees is alive two seconds after")
    return (late if case.way == "limit" and case.kind not in ENDS_ITSELF else 0.0), found


def _traces(sandbox: Sandbox) -> list[Process]:
    """Whoever carries the attempt's mark, or was started with a path of this sandbox: even without any environment."""
    return [process for process in processes.table().values() if not process.dead and sandbox._is_ours(process)]


def _without_a_supervisor() -> Seen:
    """The agent started plainly, and ended by its pid."""
    import subprocess

    from tests.support import rogues

    with place() as folder, Sandbox(str(folder)) as sandbox:
        environment: dict[str, Any] = {**os.environ, "TENUTO_ATTEMPT": f"{sandbox.prefix}a"}
        agent = subprocess.Popen(
            rogues.command("daemonise", str(Path(sandbox.fifo))), env=environment, stdout=subprocess.DEVNULL
        )
        tree = [sandbox.hear()[1] for _ in range(2)]
        agent.kill()
        agent.wait()
        return Seen(2, *_judge(Case("daemonise", "plain kill", False, 0, True), sandbox, tree, time.monotonic()))
