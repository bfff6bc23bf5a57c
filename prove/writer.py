"""One of the writers of promise 2, as a process of its own: `python writer.py ROOT NAME BEGIN COUNT OWN [WRITERS]`.

Says the number of each update once it was answered. Of its updates, one in OWN goes through the command line and one in
OWN through the hook, as processes; the others go through the library. WRITERS: the promise is broken, and each of so
many has tried its first update before any makes its second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, HOME)

import tenuto
from tenuto.core.records.run import Run
from tenuto.stores import tables
from tenuto.workspace import workspace as turns
from tenuto.workspace.workspace import Workspace

SESSION = "prove"


def break_the_promise() -> None:
    """Whoever read before another wrote, writes all the same."""
    append = tables.TableTransaction.append

    def careless(self: tables.TableTransaction, run: str, expected: int, events: Any, state: Any) -> None:
        append(self, run, self.version(run), events, state)

    def stale(self: turns.Turn, name: str) -> Run | None:
        return self.workspace.remembered_runs.get(name)

    tables.TableTransaction.append = careless  # type: ignore[method-assign]
    turns.Turn._remembered = stale  # type: ignore[method-assign]
    workspace_turn = Workspace.turn
    Workspace.turn = lambda self, remember=False, by="": workspace_turn(self, True, by)  # type: ignore[method-assign]


def call(words: list[str], text: str = "") -> None:
    environment = {**os.environ, "PYTHONPATH": HOME}
    done = subprocess.run(
        [sys.executable, *words], input=text, text=True, env=environment, capture_output=True, check=False
    )
    if done.returncode or "error" in done.stderr:
        sys.exit(f"{words}: {done.stdout}{done.stderr}")


def begun(root: str) -> str:
    """A folder of those who have tried their first update."""
    return os.path.join(root, ".git", "begun")


def meet(root: str, writers: int) -> None:
    """Wait for the others: each of them then goes on from what it read before they wrote."""
    while len(os.listdir(begun(root))) < writers:
        time.sleep(0.005)


def main(root: str, name: str, begin: int, count: int, own: int, broken: int = 0) -> None:
    os.chdir(root)
    workspace = tenuto.open(root)
    hook = f"{HOME}/tenuto/entrypoints/hook.py"
    for number in range(begin, count):
        kind = number % own
        if kind == own - 1:
            call(["-m", "tenuto", "staged", "update", json.dumps({"extra": {"writers": {name: number}}})])
        elif kind == own - 2:
            told = {"session_id": SESSION, "agent_id": f"{name}-{number}", "agent_type": "explorer", "cwd": root}
            call(["-I", "-S", hook, "SubagentStart"], json.dumps(told | {"hook_event_name": "SubagentStart"}))
        else:
            try:
                workspace.staged.update({"writers": {name: number}})
            finally:
                if broken:
                    os.makedirs(os.path.join(begun(root), name), exist_ok=True)
        os.write(1, b"%d\n" % number)
        if broken and number == begin:
            meet(root, broken)


if __name__ == "__main__":
    if sys.argv[6:]:
        break_the_promise()
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
    os._exit(0)
