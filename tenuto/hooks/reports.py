"""What the state file's own users report, in its own payloads; and files that agents write.

    phase_completed   {"agentName": "spec-writer", "completedPhase": "spec", "nextPhase": "plan", ...}
    task_update       {"type": "task_update", "taskId": 2, "newStatus": "completed", ...}
    tool_used         a file was created: an artifact of the phase it was created in

Silent: nothing is printed. The first two need the state file, and say so when it is not there.

What went wrong in a hook is kept where `tenuto doctor` finds it; the host never sees more than a line.

<state folder>/hook.log      one JSON object a line; at MOST_BYTES it becomes hook.log.1
<state folder>/blocking      who declared a blocking gate ("@": the repository, else a run): while it is
                             there, a question that cannot be answered is answered with no
"""

from __future__ import annotations

import posix

from tenuto.core.status import ENDED
from tenuto.dialects.feature_progress import completed, task_changed
from tenuto.encoding import NotJson, dumps, loads_strict
from tenuto.errors import NotFound, TenutoError
from tenuto.hooks.parse import run_of
from tenuto.views.feature_state import FILE, NOT_FOUND, OUTPUTS, owner_key, phase_of, tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Json, Run
    from tenuto.hooks.parse import HookCall
    from tenuto.workspace.workspace import Turn, Workspace


def phase_completed(workspace: Workspace, call: HookCall) -> str:
    with workspace.turn() as turn:
        completed(turn, required_feature(turn), call["payload"])
    return ""


def task_update(workspace: Workspace, call: HookCall) -> str:
    with workspace.turn() as turn:
        task_changed(turn, required_feature(turn), call["payload"])
    return ""


def required_feature(turn: Turn) -> Run:
    run = feature_here(turn, required=True)
    if run is None:
        raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
    return run


def feature_here(turn: Turn, required: bool) -> Run | None:
    """The feature of this work tree; a state file from before Tenuto is taken over."""
    body = turn.workspace.files().read(FILE)
    if body is None and owner_key(turn.workspace.tree) not in turn.repo["owners"]:
        return None
    from tenuto.dialects.feature import current

    try:
        run = turn.existing(current(turn))
        return run if run["status"] not in ENDED else None
    except TenutoError:
        if required:
            raise
        return None


def tool_used(workspace: Workspace, call: HookCall) -> str:
    if call["tool"] != "edit" or not _created(call):
        return ""
    with workspace.journal.read() as reader:
        if not reader.open_runs():
            return ""
    with workspace.turn() as turn:
        run = run_of(turn, call)
        if run is None or "feature_state" not in run["dialects"]:
            return ""
        attempt = run["attempts"].get(call["agent"])
        phase = attempt["step"] if attempt else phase_of(run)
        for path in call["paths"]:
            path = path.removeprefix(workspace.root + "/")
            if path.startswith(("/", "../")) or path == FILE or path in run["artifacts"]:
                continue
            try:
                turn.keep_file(run["id"], path, path, step=phase, attempt=call["agent"] or None)
            except TenutoError as refusal:
                workspace.warn(f"{path} is not recorded: {refusal.message}")
                continue
            busy = [key for key, item in tasks(run) if item["status"] == "running"]
            if len(busy) == 1 and phase not in OUTPUTS.values():
                turn.do(run["id"], {"do": "ChangeItem", "item": busy[0], "status": "running", "files": [path]})
    return ""


def _created(call: HookCall) -> bool:
    """A whole file was written, and the program does not say that it was there before."""
    response = call["payload"].get("tool_response")
    if isinstance(response, dict) and response.get("type") == "update":
        return False
    tool = call["payload"].get("tool_name") or call["payload"].get("toolName")
    return tool in ("Write", "create", "write_file", "apply_patch")


# ---- failing ------------------------------------------------------------


MOST_BYTES = 256 * 1024
_LONGEST = 1000


def log(state: str, at: str, event: str, level: str, code: str, message: str) -> None:
    """Best effort: a log that cannot be written (no state folder, no right, no room) breaks nothing."""
    path = state + "/hook.log"
    line = dumps({"at": at, "event": event[:64], "level": level, "code": code, "message": message[:_LONGEST]}) + "\n"
    try:
        file = posix.open(
            path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC | posix.O_NOFOLLOW, 0o644
        )
        try:
            posix.write(file, line.encode("utf-8", "replace"))
            full = posix.fstat(file).st_size > MOST_BYTES
        finally:
            posix.close(file)
        if full:
            posix.replace(path, path + ".1")
    except (OSError, ValueError):
        pass


def read_log(state: str, last: int = 100) -> list[Json]:
    """The newest entries, oldest first."""
    entries: list[Json] = []
    for name in ("hook.log.1", "hook.log"):
        try:
            with open(f"{state}/{name}", "rb") as file:
                lines = file.read(2 * MOST_BYTES).splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                entry = loads_strict(line)
            except NotJson:
                continue
            if isinstance(entry, dict):
                entries.append(entry)
    return entries[-last:]


def mark(state: str, who: str, blocking: bool) -> None:
    """Remember (or forget) outside the journal that `who` declared a blocking gate."""
    path = state + "/blocking"
    try:
        with open(path, encoding="utf-8") as file:
            declared = file.read(1 << 20).split("\n")
    except OSError:
        declared = []
    blockers = [name for name in declared if name and name != who] + ([who] if blocking else [])
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("".join(name + "\n" for name in blockers))
        file.flush()
        posix.fsync(file.fileno())
    posix.replace(path + ".new", path)
