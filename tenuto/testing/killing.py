"""Matrices of kills: what is killed, at which points, and what must hold after each.

    die_before_lines   a supervisor dies before one line of its own after the other
    kill_while_full    many launchers, one small pool, supervisors and launchers killed at random

Each raises AssertionError at the first promise that does not hold, and returns what it saw.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess

from tenuto.supervise import attempts, identity
from tenuto.testing import rogues
from tenuto.testing.yard import Yard, await_end, python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenuto.supervise.shapes import Status

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def die_before_lines(yard: Yard, lines: Iterable[int], cgroup: bool) -> dict[str, int]:
    """How often each state was found. With a pool of one slot, each supervisor inherits what the last one left."""
    log = os.path.join(yard.work, "log")
    agent = rogues.command("record_and_daemonise", yard.fifo, log, os.path.join(yard.work, "seat"))
    seen: dict[str, int] = {}
    for line in lines:
        name = f"line-{line}"
        directory = yard.launch_to_crash(name, line, agent, cgroup=cgroup)
        [status] = yard.rest(directory)
        supervisor = status.get("supervisor")
        if supervisor is not None:
            await_end(supervisor["pid"])
        seen[status["state"]] = seen.get(status["state"], 0) + 1
        # Every other time the library sweeps; in between it is left to the next in the queue.
        if line % 2 == 0 and attempts.sweep(yard.root)["unproven"]:
            raise AssertionError(f"line {line}: what the supervisor left could not be ended")
        starts = _lines(log)
        if "standing" in starts:
            raise AssertionError(f"line {line}: an agent started while the one before it was not gone")
        _check(line, directory, status, starts.count(yard.prefix + name))
        if any("reached its end" in text for text in _lines(os.path.join(directory, "supervisor.log"))):
            break
    return seen


def _check(line: int, directory: str, status: Status, starts: int) -> None:
    match status["state"]:
        case "finished":
            right = starts == 1 and status["result"]["exit_code"] == 0
        case "lost":
            right = starts <= 1 and (status["may_have_run"] or starts == 0)
        case "launching":
            right = starts == 0 and attempts.void(directory)
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


LAUNCHER = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.testing.killing import launch_one_after_the_other
launch_one_after_the_other(*sys.argv[2:])
"""


def launch_one_after_the_other(root: str, prefix: str, cap: str, me: str, count: str) -> None:
    """What an orchestrator does, as a process of its own: launch, wait, launch the next."""
    with Yard(root, int(cap), prefix) as yard:
        for number in range(int(count)):
            cgroup = number % 2 == 0
            seats = os.path.join(yard.work, "seats")
            yard.rest(yard.launch_rogue(f"{me}-{number}", "sit", seats, cap, cgroup=cgroup))


def kill_while_full(yard: Yard, launchers: int, each: int, seed: int) -> dict[str, int]:
    """How often each state was found. Every agent takes one of `cap` seats, which it and its daemon hold while
    they live: one that finds none proves that there were more than `cap` of them."""
    choice = random.Random(seed)
    os.makedirs(os.path.join(yard.work, "seats"))
    root = os.path.dirname(yard.root)
    orchestrators = [
        subprocess.Popen(
            python(LAUNCHER, _PACKAGE, root, yard.prefix, str(yard.cap), f"o{number}", str(each)),
            stdin=subprocess.DEVNULL,
        )
        for number in range(launchers)
    ]
    running = list(orchestrators)
    while running:
        try:
            name, _ = yard.hear(0.2)
        except TimeoutError:
            running = [process for process in running if process.poll() is None]
            continue
        if name == "standing":
            raise AssertionError(f"an agent found none of {yard.cap} seats free")
        if name.startswith(yard.prefix):
            _kill_somebody(yard, name, running, choice)
    for process in orchestrators:
        process.wait()
    return _take_stock(yard)


def _kill_somebody(yard: Yard, name: str, running: list[subprocess.Popen[bytes]], choice: random.Random) -> None:
    draw = choice.random()
    if draw < 0.3:
        supervisor = attempts.inspect(os.path.join(yard.root, name)).get("supervisor")
        if supervisor is not None and identity.alive(supervisor):
            os.kill(supervisor["pid"], signal.SIGKILL)
    elif draw < 0.35 and len(running) > 1:
        victim = choice.choice(running)
        victim.kill()


def _take_stock(yard: Yard) -> dict[str, int]:
    directories = [os.path.join(yard.root, name) for name in sorted(os.listdir(yard.root))]
    seen: dict[str, int] = {}
    for status in yard.rest(*directories):
        seen[status["state"]] = seen.get(status["state"], 0) + 1
    if attempts.sweep(yard.root)["unproven"]:
        raise AssertionError("what killed supervisors left could not be ended")
    if left := yard.alive():
        raise AssertionError(f"still alive: {[(process.pid, process.name) for process in left]}")
    return seen
