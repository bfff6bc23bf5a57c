"""May this agent be called, may this file be edited, may this session stop? And: what the user declares about that.

Asked before it happens, answered by core/approvals.py from what the user declared, for the repository or for one run:

    gate=block        no agent is called while the run waits for a person      (off)
    files=PATTERN,..  no edit outside these; files=items: the items under way  (off)
    verdicts=on       an agent's answer ends with a verdict line               (off)
    stop=block        a session that owns a run is reminded before it stops    (off)

`key=off` takes a declaration back. A run's own declaration counts before the repository's. Where nothing is declared,
nothing is in the way, except that agents do not call agents without end. To look takes no lock.
"""

from __future__ import annotations

from posix import stat

from tenuto.core.approvals import MAX_DEPTH, closed, depth_of, outside, settings_of
from tenuto.core.status import UNDER_WAY
from tenuto.errors import BadInput, TenutoError
from tenuto.hooks.parse import block, deny, find_run, owns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Json, Run
    from tenuto.hooks.parse import HookCall
    from tenuto.workspace.workspace import Workspace


def tool_asked(workspace: Workspace, call: HookCall) -> str:
    if not call["tool"]:
        return ""
    run, declared = _look(workspace, call)
    if run is None:
        return ""
    reason = _no_call(run, declared, call) if call["tool"] == "dispatch" else _no_edit(workspace, run, declared, call)
    return deny(call, reason) if reason else ""


def delegation_asked(workspace: Workspace, call: HookCall) -> str:
    """A program without an event for an agent's start: the call is the start, unless it is denied."""
    denied = tool_asked(workspace, call)
    if not denied:
        from tenuto.hooks.delegations import started

        started(workspace, call)
    return denied


def stop_asked(workspace: Workspace, call: HookCall) -> str:
    """Never in the way of a session that owns no run, that waits for its own agents, or that was held before."""
    if call["again"] or call["busy"] or call["agent"]:
        return ""
    run, declared = _look(workspace, call)
    if run is None or declared.get("stop") != "block" or not owns(run, call):
        return ""
    if run["status"] not in UNDER_WAY or closed(run, run["position"]):
        return ""  # it rests, or a person has to decide: stopping is right
    if any(attempt["status"] in ("dispatched", "running") for attempt in run["attempts"].values()):
        return ""
    return block(
        call, f"run {run['id']} is not finished: it is in {run['position']!r}. Go on, or: tenuto status {run['id']}"
    )


def _look(workspace: Workspace, call: HookCall) -> tuple[Run | None, Json]:
    with workspace.journal.read() as reader:
        name = find_run(reader, workspace, call)
        run = reader.load(name) if name else None
        declared = settings_of(reader.load_repo()["settings"], run)
    if (declared.get("gate") == "block" or declared.get("files")) and not _is_marked(workspace.state):
        mark_again(workspace, name or "")
    return run, declared


def _is_marked(state: str) -> bool:
    try:
        return stat(state + "/blocking").st_size > 0
    except OSError:
        return False


def _no_call(run: Run, declared: Json, call: HookCall) -> str | None:
    if depth_of(run, call["parent"]) > MAX_DEPTH:
        return f"agents of run {run['id']} already call each other {MAX_DEPTH} deep; do this work yourself"
    if declared.get("gate") != "block":
        return None
    from tenuto.hooks.delegations import phase_for

    reason = closed(run, phase_for(run, call["role"]) or run["position"])
    return f"{reason}. A person decides: tenuto status {run['id']}" if reason else None


def _no_edit(workspace: Workspace, run: Run, declared: Json, call: HookCall) -> str | None:
    if not declared.get("files"):
        return None
    if not call["paths"]:
        return "it cannot be told which file this would edit, and only some may be"
    for path in call["paths"]:
        reason = outside(run, declared["files"], below(workspace.root, call["cwd"], path))
        if reason:
            return reason
    return None


def below(root: str, cwd: str, path: str) -> str:
    """The path from the root of the work tree, with every link on the way followed."""
    from os.path import join, realpath, relpath

    return relpath(realpath(join(cwd or root, path)), realpath(root))


# ---- what the user declares -----------------------------------------------

_OFF = ("off", "no", "false", "")


def parse(pairs: list[str]) -> Json:
    declared: Json = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in ("gate", "files", "verdicts", "stop"):
            raise BadInput(
                "bad-declaration", f"{pair!r} declares nothing", "gate=block files=src/** verdicts=on stop=block"
            )
        declared[key] = _value(key, value)
    return declared


def _value(key: str, value: str) -> bool | str | list[str] | None:
    if value.lower() in _OFF:
        return False if key == "verdicts" else "off" if key in ("gate", "stop") else None
    if key == "verdicts":
        if value.lower() not in ("on", "true", "yes", "1"):
            raise BadInput("bad-declaration", f"verdicts is on or off, not {value!r}", "verdicts=on")
        return True
    if key == "files":
        return "items" if value == "items" else [pattern.strip() for pattern in value.split(",") if pattern.strip()]
    if value != "block":
        raise BadInput("bad-declaration", f"{key} is block or off, not {value!r}", f"{key}=block")
    return value


def declare(workspace: Workspace, declared: Json, run: str = "") -> Json:
    """Record it; returns everything that is declared now."""
    from tenuto.hooks.reports import mark

    changes: Json = {"hooks": declared}
    with workspace.turn() as turn:
        target = turn.existing(run) if run else None
        if _blocks(declared):
            # Before it is recorded: killed in between, the gate is closed too early, not too late.
            mark(workspace.state, run or "@", True)
        if run:
            turn.do(run, {"do": "ChangeSettings", "changes": changes})
            now = settings_of(turn.repo["settings"], target)
        else:
            turn.do_repo({"do": "ChangeSettings", "changes": changes})
            now = settings_of(turn.repo["settings"], None)
        recorded = (target or turn.repo)["settings"]["hooks"]
    remember(workspace, recorded, run)
    return now


def remember(workspace: Workspace, declared: Json, run: str = "") -> None:
    """What must hold even when the journal cannot be asked."""
    if "gate" in declared or "files" in declared:
        from tenuto.hooks.reports import mark

        workspace.journal.lock()
        try:
            mark(workspace.state, run or "@", _blocks(declared))
        finally:
            workspace.journal.unlock()


def mark_again(workspace: Workspace, run: str) -> None:
    """A process may have been killed before it marked what it declared, or a backup was read in. Best effort: the
    journal answers now."""
    from tenuto.hooks.reports import mark

    try:
        workspace.journal.lock()  # a declaration is taken back under the lock, too
        try:
            with workspace.journal.read() as reader:
                found = reader.load(run) if run else None
                declarations = {
                    "@": reader.load_repo()["settings"].get("hooks"),
                    run: found["settings"].get("hooks") if found else None,
                }
            for who, declared in declarations.items():
                if declared and _blocks(declared):
                    mark(workspace.state, who, True)
        finally:
            workspace.journal.unlock()
    except (OSError, TenutoError):
        pass


def _blocks(declared: Json) -> bool:
    return declared.get("gate") == "block" or bool(declared.get("files"))
