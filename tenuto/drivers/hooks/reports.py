"""What the state file's own users report, in its own payloads; and files that agents write.

    phase_completed   {"agentName": "spec-writer", "completedPhase": "spec", "nextPhase": "plan", ...}
    task_update       {"type": "task_update", "taskId": 2, "newStatus": "completed", ...}
    tool_used         a file was created: an artifact of the phase it was created in

Silent: nothing is printed. The first two need the state file, and say so when it is not there.
"""

from __future__ import annotations

from tenuto.dialects.feature_state import FILE, NOT_FOUND, OUTPUTS, owner_key, phase_of, tasks
from tenuto.dialects.feature_state.progress import completed, task_changed
from tenuto.drivers.hooks import found
from tenuto.errors import NotFound, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.hosts.hearing import Heard
    from tenuto.workspace.turn import Turn, Workspace


def phase_completed(workspace: Workspace, heard: Heard) -> str:
    with workspace.turn() as turn:
        completed(turn, required_feature(turn), heard["payload"])
    return ""


def task_update(workspace: Workspace, heard: Heard) -> str:
    with workspace.turn() as turn:
        task_changed(turn, required_feature(turn), heard["payload"])
    return ""


def required_feature(turn: Turn) -> Run:
    run = feature_here(turn, required=True)
    if run is None:
        raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
    return run


def feature_here(turn: Turn, required: bool) -> Run | None:
    """The feature of this work tree; a state file from before Tenuto is taken over."""
    owner = turn.repo["owners"].get(owner_key(turn.workspace.tree))
    if owner is not None:
        run = turn.existing(owner)
        return run if run["status"] not in ("completed", "failed", "cancelled") else None
    body = turn.workspace.files().read(FILE)
    if body is None:
        return None
    from tenuto.dialects.feature_state.adoption import adopt

    try:
        return turn.existing(adopt(turn, FILE, body))
    except TenutoError:
        if required:
            raise
        return None


def tool_used(workspace: Workspace, heard: Heard) -> str:
    if heard["tool"] != "edit" or not _created(heard):
        return ""
    with workspace.journal.read() as reader:
        if not reader.open_runs():
            return ""
    with workspace.turn() as turn:
        run = found(turn, heard)
        if run is None or "feature_state" not in run["dialects"]:
            return ""
        attempt = run["attempts"].get(heard["agent"])
        phase = attempt["step"] if attempt else phase_of(run)
        for path in heard["paths"]:
            path = path.removeprefix(workspace.root + "/")
            if path.startswith(("/", "../")) or path == FILE or path in run["artifacts"]:
                continue
            try:
                turn.keep_file(run["id"], path, path, step=phase, attempt=heard["agent"] or None)
            except TenutoError as refusal:
                workspace.warn(f"{path} is not recorded: {refusal.message}")
                continue
            busy = [key for key, item in tasks(run) if item["status"] == "running"]
            if len(busy) == 1 and phase not in OUTPUTS.values():
                turn.do(run["id"], {"do": "ChangeItem", "item": busy[0], "status": "running", "files": [path]})
    return ""


def _created(heard: Heard) -> bool:
    """A whole file was written, and the program does not say that it was there before."""
    said = heard["payload"].get("tool_response")
    if isinstance(said, dict) and said.get("type") == "update":
        return False
    tool = heard["payload"].get("tool_name") or heard["payload"].get("toolName")
    return tool in ("Write", "create", "write_file", "apply_patch")
