"""What an engine and a person do for a run, each as a process that is killed before any of its lines (crashing.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import tenuto

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support import crashing
sys.exit(crashing.run("kill", int(sys.argv[2]), sys.argv[1] + "/tenuto/", "tests.support.steps_at_work", *sys.argv[3:]))
"""


def command(line: int, function: str, *given: str) -> list[str]:
    """Killed before this line; 0: never."""
    return [sys.executable, "-c", _PROGRAM, str(_ROOT), str(line), function, *given]


def drive(root: str, run: str, script: str) -> int:
    """Until the run rests."""
    from tenuto.agents.roster import Roster
    from tenuto.engine.rest import drive_until_rest

    drive_until_rest(tenuto.open(root), run, Roster(f"scripted:{script}"), {})
    return 0


def approve(root: str, run: str, env: str) -> int:
    from tenuto.engine.gates import decide_gate

    workspace = tenuto.open(root)
    if workspace.load(run)["status"] == "waiting_gate":
        decide_gate(workspace, run, "approve", "", {}, answers={"env": env})
    return 0
