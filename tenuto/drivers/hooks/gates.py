"""May this agent be called, may this file be edited, may this session stop?

Asked before it happens, answered by core/boundaries.py from what the user declared:

    settings.hooks.gate    "block": no agent is called while the run waits for a person
    settings.hooks.files   patterns, patterns by step, or "items": no edit outside them
    settings.hooks.stop    "block": a session that owns a run is reminded once before it stops

Nothing declared: nothing is in anybody's way (but agents do not call agents without end). A look takes no lock.
"""

from __future__ import annotations

from posix import stat

from tenuto.core.boundaries import MAX_DEPTH, closed, depth_of, outside, settings_of
from tenuto.drivers.hooks import find, owns
from tenuto.hosts.answers import block, deny

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Json, Run
    from tenuto.hosts.hearing import Heard
    from tenuto.workspace.turn import Workspace


def tool_asked(workspace: Workspace, heard: Heard) -> str:
    if not heard["tool"]:
        return ""
    run, declared = _look(workspace, heard)
    if run is None:
        return ""
    reason = (
        _no_call(run, declared, heard) if heard["tool"] == "dispatch" else _no_edit(workspace, run, declared, heard)
    )
    return deny(heard, reason) if reason else ""


def delegation_asked(workspace: Workspace, heard: Heard) -> str:
    """A program without an event for an agent's start: the call is the start, unless it is denied."""
    denied = tool_asked(workspace, heard)
    if not denied:
        from tenuto.drivers.hooks.delegations import started

        started(workspace, heard)
    return denied


def stop_asked(workspace: Workspace, heard: Heard) -> str:
    """Never in the way of a session that owns no run, that waits for its own agents, or that was held before."""
    if heard["again"] or heard["busy"] or heard["agent"]:
        return ""
    run, declared = _look(workspace, heard)
    if run is None or declared.get("stop") != "block" or not owns(run, heard):
        return ""
    if run["status"] not in ("created", "running", "restarting") or closed(run, run["position"]):
        return ""  # it rests, or a person has to decide: stopping is right
    if any(attempt["status"] in ("dispatched", "running") for attempt in run["attempts"].values()):
        return ""
    return block(
        heard, f"run {run['id']} is not finished: it is in {run['position']!r}. Go on, or: tenuto status {run['id']}"
    )


def _look(workspace: Workspace, heard: Heard) -> tuple[Run | None, Json]:
    with workspace.journal.read() as reader:
        name = find(reader, workspace, heard)
        run = reader.load(name) if name else None
        declared = settings_of(reader.load_repo()["settings"], run)
    if (declared.get("gate") == "block" or declared.get("files")) and not _is_marked(workspace.state):
        from tenuto.drivers.hooks.declaring import mark_again

        mark_again(workspace, name or "")
    return run, declared


def _is_marked(state: str) -> bool:
    try:
        return stat(state + "/blocking").st_size > 0
    except OSError:
        return False


def _no_call(run: Run, declared: Json, heard: Heard) -> str | None:
    if depth_of(run, heard["parent"]) > MAX_DEPTH:
        return f"agents of run {run['id']} already call each other {MAX_DEPTH} deep; do this work yourself"
    if declared.get("gate") != "block":
        return None
    from tenuto.drivers.hooks.delegations import phase_for

    reason = closed(run, phase_for(run, heard["role"]) or run["position"])
    return f"{reason}. A person decides: tenuto status {run['id']}" if reason else None


def _no_edit(workspace: Workspace, run: Run, declared: Json, heard: Heard) -> str | None:
    if not declared.get("files"):
        return None
    if not heard["paths"]:
        return "it cannot be told which file this would edit, and only some may be"
    for path in heard["paths"]:
        reason = outside(run, declared["files"], below(workspace.root, heard["cwd"], path))
        if reason:
            return reason
    return None


def below(root: str, cwd: str, path: str) -> str:
    """The path from the root of the work tree, with every link on the way followed."""
    from os.path import join, realpath, relpath

    return relpath(realpath(join(cwd or root, path)), realpath(root))
