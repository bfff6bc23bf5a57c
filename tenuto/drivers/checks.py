"""The project's own commands, run by us: set-up of a work tree, build, tests. Supervised like agents.

    told = pursue(where, "check-1-tests", "make test")    started, or looked after: its result, or UnderWay
    told = settled(lambda: pursue(...))                   for those who have nothing else to do meanwhile

Nobody waits inside: whoever pursues a command asks again when its directory has come to rest, and gets the result from there. So an
engine goes on with everything else, and one that died meanwhile takes up the same run of the command. The time limit binds
the whole process tree, nothing outlives the command, output is bounded and kept. The environment is the agents'
allow-list: what runs here may be what an agent wrote.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tenuto.core.names import slug
from tenuto.errors import BadInput
from tenuto.supervise import attempts
from tenuto.supervise.watching import wait_any

LIMIT = 1800.0  # seconds, where nothing else is said
OUT_OF_TIME = "the time that the run may use is over"
GRACE = 1.0  # seconds between SIGTERM and SIGKILL, for agents too: a time limit binds within two, and those that flee take a while
_KEPT = 4 << 20  # bytes of output
_TAIL = 2000  # characters of it that a receipt quotes
_TOGETHER = 4

Told = TypeVar("Told")


class UnderWay(NamedTuple):
    """Ask again when this attempt directory has come to rest."""

    directory: str


class Where(NamedTuple):
    attempt: str  # what the command's processes are marked with
    workdir: str
    folder: str  # its output lies below
    environment: dict[str, str]
    pool: str
    left: float | None = None  # seconds that the run may still use
    masked: tuple[str, ...] = ()  # variables whose values are kept out of its output


def titled(kind: str, number: int, name: str = "") -> str:
    """A name that two commands of one attempt never share, and that is a file's name whatever the pipeline calls it."""
    try:
        return f"{kind}-{number}-{slug(name)[:40]}" if name else f"{kind}-{number}"
    except BadInput:
        return f"{kind}-{number}"


def pursue(where: Where, name: str, command: str, limit: float | None = None) -> dict[str, Any] | UnderWay:
    """{"command", "exit", "reason", "log", "tail"} where it has ended. One whose supervisor was killed is started anew, beside it."""
    number = 1
    while True:
        directory = f"{where.folder}/{name}-{number}"
        state = attempts.inspect(directory)
        if state["state"] == "finished":
            return _result(directory, command, state["result"], limit or LIMIT)
        if state["state"] == "absent":
            _launch(where, f"{name}-{number}", directory, command, limit or LIMIT)
            return UnderWay(directory)
        if state["state"] in ("queued", "running") or (state["state"] == "launching" and not state.get("stalled")):
            return UnderWay(directory)
        if state["state"] == "lost":
            attempts.sweep(where.folder)
        elif not attempts.void(directory):  # somebody claimed it after all
            continue
        number += 1


def settled(ask: Callable[[], Told | UnderWay]) -> Told:
    while isinstance(told := ask(), UnderWay):
        wait_any([told.directory])
    return told


def end_all(folder: str) -> None:
    """Whatever is under way of an attempt, its starts and its commands: ended, with everything they started. A first start that
    is about to happen finds that it may not."""
    for number in [name for name in _names(folder) if name.isdigit()] or ["1"]:
        attempts.cancel(f"{folder}/{number}")
    for name in _names(f"{folder}/checks"):
        attempts.cancel(f"{folder}/checks/{name}")


def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def _launch(where: Where, name: str, directory: str, command: str, limit: float) -> None:
    os.makedirs(where.folder, exist_ok=True)
    attempts.launch(directory, {
        "attempt": f"{where.attempt}.{name}", "argv": ["sh", "-c", f"exec 2>&1\n{command}"], "cwd": where.workdir, "stdin": None,
        "env": where.environment, "limit": limit if where.left is None else min(limit, max(where.left, 0.1)), "grace": GRACE,
        "output_cap": _KEPT, "pool": where.pool, "cap": _TOGETHER,
        **({"masked": list(where.masked)} if where.masked else {}),  # type: ignore[typeddict-item]
    })  # fmt: skip


def _result(directory: str, command: str, result: Any, limit: float) -> dict[str, Any]:
    reason = ""
    if result["cancelled"]:
        reason = "it was cancelled"
    elif result["timed_out"]:
        reason = f"the time limit of {limit:g} s was reached" if result["duration"] >= limit else OUT_OF_TIME
    elif result["error"]:
        reason = str(result["error"])
    elif result["signal"] is not None:
        reason = f"signal {result['signal']}"
    elif result["exit_code"]:
        reason = f"exit status {result['exit_code']}"
    log = f"{directory}/stdout"
    return {
        "command": command, "exit": 124 if result["timed_out"] else result["exit_code"], "reason": reason, "log": log, "tail": _tail(log),
    }  # fmt: skip


def _tail(log: str) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.path.getsize(log) - 4 * _TAIL))
            return file.read().decode("utf-8", "replace")[-_TAIL:].strip()
    except OSError:
        return ""
