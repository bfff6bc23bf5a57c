"""The project's own commands, run by us: set-up of a work tree, build, tests. Supervised like agents.

    result = run_command(place, name, command)    {"name", "command", "exit", "reason", "log", "tail"}

The time limit binds the whole process tree, nothing outlives the command, output is bounded and kept, and an engine that
died meanwhile takes up the same run of it. The environment is the agents' allow-list: what runs here may be what an agent wrote.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tenuto.supervise import attempts
from tenuto.supervise.watching import wait_any

LIMIT = 1800.0  # seconds, where nothing else is said
_GRACE = 1.5
_KEPT = 4 << 20  # bytes of output
_TAIL = 2000  # characters of it that a receipt quotes


class Where(NamedTuple):
    attempt: str  # what the command's processes are marked with
    workdir: str
    folder: str  # its output lies below
    environment: dict[str, str]
    pool: str


def run_command(where: Where, name: str, command: str, limit: float | None = None) -> dict[str, Any]:
    directory, result = _supervised(where, name, command, limit or LIMIT)
    reason = ""
    if result["timed_out"]:
        reason = f"the time limit of {limit or LIMIT:g} s was reached"
    elif result["error"]:
        reason = str(result["error"])
    elif result["signal"] is not None:
        reason = f"signal {result['signal']}"
    elif result["exit_code"]:
        reason = f"exit status {result['exit_code']}"
    log = f"{directory}/stdout"
    return {
        "name": name, "command": command, "exit": 124 if result["timed_out"] else result["exit_code"], "reason": reason,
        "log": log, "tail": _tail(log),
    }  # fmt: skip


def _supervised(where: Where, name: str, command: str, limit: float) -> tuple[str, Any]:
    """Started once; one whose supervisor was killed is started anew, in a directory of its own."""
    number = 1
    while True:
        directory = f"{where.folder}/check-{name}-{number}"
        state = attempts.inspect(directory)
        if state["state"] == "finished":
            return directory, state["result"]
        if state["state"] in ("lost", "void"):
            attempts.sweep(where.folder)
            number += 1
            continue
        if state["state"] == "absent" or state.get("stalled"):
            os.makedirs(where.folder, exist_ok=True)
            attempts.launch(directory, {
                "attempt": f"{where.attempt}.check-{name}-{number}", "argv": ["sh", "-c", f"exec 2>&1\n{command}"], "cwd": where.workdir,
                "stdin": None, "env": where.environment, "limit": limit, "grace": _GRACE, "output_cap": _KEPT, "pool": where.pool,
                "cap": 4,
            })  # fmt: skip
        wait_any([directory])


def _tail(log: str) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.path.getsize(log) - 4 * _TAIL))
            return file.read().decode("utf-8", "replace")[-_TAIL:].strip()
    except OSError:
        return ""
