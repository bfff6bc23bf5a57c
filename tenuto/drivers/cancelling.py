"""End a run for good: its agents, the project's commands that run for them, and everything they started.

    cancel(workspace, "dark-mode", "not needed")

The journal hears of it first: an engine that is about to start something finds that it may not. Where no engine drives the run,
what its attempts left is collected here: none stays under way in a run that is over, and in work trees nothing is lost.
"""

from __future__ import annotations

from tenuto.agents.crew import Crew
from tenuto.core.decisions.attempts import in_flight
from tenuto.core.records import Run
from tenuto.drivers.checks import end_all
from tenuto.drivers.local import Engine
from tenuto.drivers.persons import command
from tenuto.drivers.session import is_driven
from tenuto.drivers.settings import read_settings
from tenuto.errors import TenutoError
from tenuto.workspace.turn import Workspace

_NOBODY = "command:true"  # nothing is dispatched; the agents of attempts are known by their recorded names


def cancel(workspace: Workspace, name: str, reason: str = "") -> Run:
    run = command(workspace, name, {"do": "Cancel", "reason": reason})
    flying = in_flight(workspace.load(name))
    for attempt in flying:
        end_all(f"{workspace.state}/attempts/{name}/{attempt}")
    ours = [attempt for attempt in flying if run["attempts"][attempt]["agent"] != "guided"]
    if ours and run["driver"] == "engine" and not is_driven(workspace, name):
        _collect(workspace, name)
    return workspace.load(name)


def _collect(workspace: Workspace, name: str) -> None:
    try:
        Engine(workspace, name, Crew(_NOBODY), read_settings(workspace.root)).drive()
    except TenutoError as problem:
        workspace.warn(f"what the attempts of {name} left was not collected: {problem.message}")
