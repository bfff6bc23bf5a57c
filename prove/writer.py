"""One of the writers of promise 2, as a process of its own: `python writer.py ROOT NAME BEGIN COUNT OWN [broken]`.

Says the number of each update once it was answered. Of its updates, one in OWN goes through the command line and one in OWN
through the hook, as processes; the others go through the library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, HOME)

import tenuto
from tenuto.stores import tables
from tenuto.workspace import turn as turns

SESSION = "prove"


def break_the_promise() -> None:
    """Whoever read before another wrote, writes all the same."""
    append = tables.SqliteTransaction.append

    def careless(self: tables.SqliteTransaction, run: str, expected: int, events: list[object], state: object) -> None:
        append(self, run, self.version(run), events, state)

    def stale(self: turns.Turn, name: str) -> object:
        return self.workspace.remembered.get(name)

    tables.SqliteTransaction.append = careless  # type: ignore[method-assign]
    turns.Turn._remembered = stale  # type: ignore[method-assign]
    workspace_turn = turns.Workspace.turn
    turns.Workspace.turn = lambda self, remember=False: workspace_turn(self, True)  # type: ignore[method-assign]


def call(words: list[str], text: str = "") -> None:
    environment = {**os.environ, "PYTHONPATH": HOME}
    done = subprocess.run([sys.executable, *words], input=text, text=True, env=environment, capture_output=True, check=False)
    if done.returncode or "error" in done.stderr:
        sys.exit(f"{words}: {done.stdout}{done.stderr}")


def main(root: str, name: str, begin: int, count: int, own: int) -> None:
    os.chdir(root)
    workspace = tenuto.open(root)
    hook = f"{HOME}/tenuto/entrypoints/hook.py"
    for number in range(begin, count):
        kind = number % own
        if kind == own - 1:
            call(["-m", "tenuto", "staged", "update", json.dumps({"writers": {name: number}})])
        elif kind == own - 2:
            told = {"session_id": SESSION, "agent_id": f"{name}-{number}", "agent_type": "explorer", "cwd": root}
            call(["-I", "-S", hook, "SubagentStart"], json.dumps(told | {"hook_event_name": "SubagentStart"}))
        else:
            workspace.staged.update({"writers": {name: number}})
        os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    if sys.argv[6:] == ["broken"]:
        break_the_promise()
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
    os._exit(0)
