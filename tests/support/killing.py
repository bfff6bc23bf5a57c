"""Matrices of kills: what is killed, at which points, and what must hold after each.

    die_before_lines      a supervisor dies before one line of its own after the other
    die_after_the_agent   the same, after it stood still there until its agent was done
    cancel_before_lines   a supervisor is asked to end before one line after the other
    orphan_the_newborn    a supervisor dies while its agent is between fork and exec
    kill_while_full       many launchers, one small pool, supervisors and launchers killed at random

Each raises AssertionError at the first promise that does not hold, and returns how often it saw
which state.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter

from tenuto.supervise import attempts, processes
from tests.support import rogues
from tests.support.sandbox import Sandbox, await_end, python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenuto.supervise.records import Status

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def die_before_lines(sandbox: Sandbox, lines: Iterable[int], cgroup: bool) -> Counter[str]:
    """Each supervisor kills itself before the next line; with one slot, each inherits what the last one left."""
    seen: Counter[str] = Counter()
    for line in lines:
        directory = sandbox.launch_to_crash(f"line-{line}", "kill", line, _recording(sandbox), cgroup=cgroup)
        [status] = sandbox.rest(directory)
        sandbox.await_supervisors()
        seen[status["state"]] += 1
        # Every other time the library sweeps; in between it is left to the next in the queue.
        if line % 2 == 0 and attempts.sweep(sandbox.root)["unproven"]:
            raise AssertionError(f"line {line}: what the supervisor left could not be ended")
        _check(sandbox, line, status)
        if _reached_its_end(directory):
            break
    return seen


def die_after_the_agent(sandbox: Sandbox, lines: Iterable[int], cgroup: bool) -> Counter[str]:
    """Each supervisor stands still before the next line until its agent, where there is one, has done its
    work; then it is killed. Whatever the agent did must be on record by then."""
    seen: Counter[str] = Counter()
    for line in lines:
        directory = sandbox.launch_to_crash(f"late-{line}", sandbox.pause(), line, _recording(sandbox), cgroup=cgroup)
        supervisor = sandbox.latest_supervisor()
        paused = done = False
        while (said := sandbox.hear_or_end(supervisor)) is not None:
            paused = paused or said[0] == "paused"
            done = done or said[0] == "agent"
            if paused and (done or not _children(supervisor)):
                break
        if paused:
            os.kill(supervisor, signal.SIGKILL)
        [status] = sandbox.rest(directory)
        sandbox.await_supervisors()
        seen[status["state"]] += 1
        _check(sandbox, line, status)
        if not paused:
            break
    return seen


def cancel_before_lines(sandbox: Sandbox, lines: Iterable[int], cgroup: bool) -> Counter[str]:
    """Each supervisor gets SIGTERM before the next line: from the claim on, that is never the loss of an attempt."""
    seen: Counter[str] = Counter()
    for line in lines:
        directory = sandbox.launch_to_crash(f"term-{line}", "cancel", line, _recording(sandbox), cgroup=cgroup)
        [status] = sandbox.rest(directory)
        sandbox.await_supervisors()
        seen[status["state"]] += 1
        if status["state"] == "lost":
            raise AssertionError(f"line {line}: a cancel lost the attempt: {status}")
        if status["state"] == "finished" and not status["result"]["cancelled"]:
            _check(sandbox, line, status)
        if _reached_its_end(directory) and status["state"] == "finished" and not status["result"]["cancelled"]:
            seen["to its end"] += 1
    return seen


def orphan_the_newborn(sandbox: Sandbox, lines: Iterable[int], cgroup: bool) -> Counter[str]:
    """Each agent-to-be stands still before the next line on its way from fork to exec while its supervisor is
    killed, and then goes on: it must find out, and start nothing."""
    seen: Counter[str] = Counter()
    for line in lines:
        action = sandbox.pause("pause-child")
        directory = sandbox.launch_to_crash(f"newborn-{line}", action, line, _recording(sandbox), cgroup=cgroup)
        name, child = sandbox.hear()
        if name != "paused":
            seen["became an agent"] += 1
            sandbox.rest(directory)
            break
        os.kill(sandbox.latest_supervisor(), signal.SIGKILL)
        sandbox.await_supervisors()
        sandbox.go_on()
        await_end(child.pid)
        [status] = sandbox.rest(directory)
        seen[status["state"]] += 1
        if sandbox.prefix + f"newborn-{line}" in _lines(_log(sandbox)):
            raise AssertionError(f"line {line}: an agent started after its supervisor was killed")
    return seen


def _recording(sandbox: Sandbox) -> list[str]:
    return rogues.command("record_and_daemonise", sandbox.fifo, _log(sandbox), os.path.join(sandbox.work, "seat"))


def _log(sandbox: Sandbox) -> str:
    return os.path.join(sandbox.work, "log")


def _children(pid: int) -> list[int]:
    return [process.pid for process in processes.descendants(processes.table(), [pid])]


def _reached_its_end(directory: str) -> bool:
    return any("reached its end" in text for text in _lines(os.path.join(directory, "supervisor.log")))


def _check(sandbox: Sandbox, line: int, status: Status) -> None:
    ran = _lines(_log(sandbox))
    if "standing" in ran:
        raise AssertionError(f"line {line}: an agent started while the one before it was not gone")
    starts = ran.count(os.path.basename(status["directory"]))
    match status["state"]:
        case "finished":
            right = starts == 1 and status["result"]["exit_code"] == 0
        case "lost":
            right = starts <= 1 and (status["may_have_run"] or starts == 0)
        case "launching":
            right = starts == 0 and attempts.void(status["directory"])
        case _:
            right = False
    if not right:
        raise AssertionError(f"line {line}: the agent ran {starts} times, and this is said of it: {status}")


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def say_state(directory: str) -> int:
    state = attempts.inspect(directory)["state"]
    print(state, flush=True)
    return 0


LAUNCHER = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support.killing import launch_one_after_the_other
launch_one_after_the_other(*sys.argv[2:])
"""


def launch_one_after_the_other(root: str, prefix: str, cap: str, me: str, count: str) -> None:
    """What an orchestrator does, as a process of its own: launch, wait, launch the next."""
    with Sandbox(root, int(cap), prefix) as sandbox:
        for number in range(int(count)):
            cgroup = number % 2 == 0
            seats = os.path.join(sandbox.work, "seats")
            sandbox.rest(sandbox.launch_rogue(f"{me}-{number}", "sit", seats, cap, cgroup=cgroup))


def kill_while_full(sandbox: Sandbox, launchers: int, each: int, seed: int) -> Counter[str]:
    """Every agent takes one of `cap` seats, which it and its daemon hold while
    they live: one that finds none proves that there were more than `cap` of them. None ends before it is
    decided who is killed: whose supervisor is chosen is hit at work."""
    choice = random.Random(seed)
    free: list[int] = []
    os.makedirs(os.path.join(sandbox.work, "seats"))
    root = os.path.dirname(sandbox.root)
    orchestrators = [
        subprocess.Popen(
            python(LAUNCHER, _PACKAGE, root, sandbox.prefix, str(sandbox.cap), f"o{number}", str(each)),
            stdin=subprocess.DEVNULL,
        )
        for number in range(launchers)
    ]
    running = list(orchestrators)
    # An attempt outlives its orchestrator: its agent may speak, and has to be let go, after the last of them ended.
    while running or _under_way(sandbox):
        try:
            name, _ = sandbox.hear(0.2)
        except TimeoutError:
            running = [process for process in running if process.poll() is None]
            continue
        if name == "standing":
            raise AssertionError(f"an agent found none of {sandbox.cap} seats free")
        if name.startswith(sandbox.prefix) and not _kill_somebody(sandbox, name, running, choice):
            free.append(rogues.let_go(os.path.join(sandbox.work, "seats"), name))
    for process in orchestrators:
        process.wait()
    seen = _take_stock(sandbox)
    for descriptor in free:
        os.close(descriptor)
    return seen


def _kill_somebody(sandbox: Sandbox, name: str, running: list[subprocess.Popen[bytes]], choice: random.Random) -> bool:
    """Whether it was the supervisor of this attempt."""
    draw = choice.random()
    if draw < 0.3:
        supervisor = attempts.inspect(os.path.join(sandbox.root, name)).get("supervisor")
        if supervisor is not None and processes.alive(supervisor):
            os.kill(supervisor["pid"], signal.SIGKILL)
            return True
    elif draw < 0.35 and len(running) > 1:
        victim = choice.choice(running)
        victim.kill()
    return False


def _directories(sandbox: Sandbox) -> list[str]:
    return [os.path.join(sandbox.root, name) for name in sorted(os.listdir(sandbox.root))]


def _under_way(sandbox: Sandbox) -> bool:
    """Asked when every orchestrator has ended. One that was killed in the middle of a launch may have started a
    supervisor that is on no record yet: either such an attempt is void for ever, or the supervisor has its claim."""
    directories = _directories(sandbox)
    for directory in directories:
        if attempts.inspect(directory).get("stalled"):
            attempts.void(directory)
    return len(attempts.wait_any(directories, 0)) < len(directories)


def _take_stock(sandbox: Sandbox) -> Counter[str]:
    seen: Counter[str] = Counter(status["state"] for status in sandbox.rest(*_directories(sandbox)))
    if attempts.sweep(sandbox.root)["unproven"]:
        raise AssertionError("what killed supervisors left could not be ended")
    if left := sandbox.alive():
        raise AssertionError(f"still alive: {[(process.pid, process.name) for process in left]}")
    return seen
