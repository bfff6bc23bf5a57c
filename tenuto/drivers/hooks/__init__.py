"""Hooks inside agent programs as a driver: what they report is recorded, what they ask is answered.

    answer(workspace, heard) -> what to print ("" says: go ahead)

The run is found by what is nearest: the attempt that it happens in, else the session that reports, else the work tree it
reports from, else the only run that has not ended; where that leaves a choice, nothing is found and nothing
happens. Everything is decided by core/; whatever goes wrong is thrown, and the entry point
keeps it away from the host.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.hosts.hearing import Heard
    from tenuto.ports import Reader
    from tenuto.workspace.turn import Turn, Workspace

_HANDLERS = {
    "SubagentStart": ("delegations", "started"),
    "SubagentStop": ("delegations", "stopped"),
    "TaskUpdate": ("reports", "task_update"),
    "PreToolUse": ("gates", "tool_asked"),
    "Delegation": ("gates", "delegation_asked"),
    "PostToolUse": ("reports", "tool_used"),
    "Stop": ("gates", "stop_asked"),
    "SessionStart": ("sessions", "session_started"),
    "PreCompact": ("sessions", "compaction_ahead"),
    "Prompt": ("sessions", "prompt_given"),
}


def answer(workspace: Workspace, heard: Heard) -> str:
    handler = _HANDLERS.get(heard["event"])
    if handler is None:
        return ""
    module, name = handler
    if heard["host"] == "seed" and heard["event"] == "SubagentStop":
        module, name = "reports", "phase_completed"
    act: Any = getattr(__import__(f"tenuto.drivers.hooks.{module}", fromlist=[name]), name)
    return str(act(workspace, heard))


def find(reader: Reader, workspace: Workspace, heard: Heard) -> str | None:
    """The run this is about."""
    opened = dict(reader.open_runs())
    if not opened:
        return None
    if heard["run"]:
        return heard["run"] if heard["run"] in opened else None
    for session in (heard["session"], heard["parent"]):
        bound = reader.note(f"session:{session}") if session else None
        if bound in opened:
            return bound
    here = [run for run, tree in opened.items() if tree == workspace.tree]
    if len(here) == 1:
        return here[0]
    if here:  # several: the one that this work tree's own files show, or that the user chose
        repo = reader.load_repo()
        shown = [run for path, run in repo["owners"].items() if _tree(path) == workspace.tree]
        candidates = [run for run in here if run in shown] or here
        if len(candidates) == 1:
            return candidates[0]
        return repo["current"] if repo["current"] in candidates else None
    return next(iter(opened)) if len(opened) == 1 else None


def _tree(path: str) -> str:
    return path.partition("//")[0] if "//" in path else ""


def found(turn: Turn, heard: Heard) -> Run | None:
    """The same inside a turn: with others' edits of its files absorbed."""
    name = find(turn.tx, turn.workspace, heard)
    return turn.run(name) if name else None


def owns(run: Run, heard: Heard) -> bool:
    """Is this a session that the run knows?"""
    return heard["session"] in run["sessions"] or (bool(heard["parent"]) and heard["parent"] in run["sessions"])
