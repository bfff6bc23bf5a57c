"""A hook's payload becomes one record, the run that it is about is found, and replies are put into the host's words.

    call = parse_hook("SubagentStop", payload)   {"host": "claude", "event": "SubagentStop", "session": ..., ...}
    find_run(reader, workspace, call)            the name of the run that the call is about, or None
    deny, block, context, tell                   what is printed for the host

Agent programs spell the same things differently: Claude Code and Codex write `session_id`, Copilot writes
`sessionId` or, for plugins made for Claude Code, either; Gemini has its own names for the events. The tables
below are all that Tenuto knows about that. An event that no table names becomes "", and nothing acts on it.

The run is the one that is nearest to the call: the run of the attempt that the call happens in; else, of the runs of
this work tree or, where it has none, of all, the one
that knows the session; else the only open run of the work tree; else the only open run. Where that leaves a
choice, no run is found and nothing happens.

A reply:

    deny      PreToolUse: this tool call does not happen, and why
    block     Stop, SubagentStop: go on, and with what
    context   SessionStart: what to know from now on
    tell      a line for the user

An empty reply means "go ahead" to every host, so nothing to say is said with nothing.
"""

from __future__ import annotations

from tenuto.encoding import digest, dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal, TypedDict

    from tenuto.core.records.run import Run
    from tenuto.ports import Reader
    from tenuto.workspace.workspace import Turn, Workspace

    Host = Literal["claude", "codex", "copilot", "gemini", "seed"]
    Event = Literal[
        "",
        "Delegation",
        "PostToolUse",
        "PreCompact",
        "PreToolUse",
        "Prompt",
        "SessionStart",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "TaskUpdate",
    ]
    Payload = dict[str, object]

    class HookCall(TypedDict):
        host: Host  # seed: the state file's own payloads
        event: Event  # Tenuto's name for it; "" where it means nothing to Tenuto
        name: str  # the host's name for it
        session: str
        parent: str  # the session or agent that called this agent
        agent: str  # the id of the subagent that this is about, or that the tool runs in
        role: str  # its type, without the plugin's name
        text: str  # its last words, or the user's prompt
        source: str  # SessionStart: startup, resume, compact, clear; PreCompact: auto, manual
        tool: Literal["", "dispatch", "edit"]  # "": any other tool
        paths: list[str]  # what an edit touches
        again: bool  # the agent goes on because a hook sent it back before
        busy: bool  # something of this session is still at work in the background
        cwd: str
        reported_at: str  # the host's own time, "" where it gives none
        run: str  # the run of the attempt that this happens in; "" in a person's own session
        payload: Payload

    Handler = Callable[[Workspace, HookCall], str]


EVENTS: dict[str, Event] = {
    "SessionStart": "SessionStart",
    "sessionStart": "SessionStart",
    "PreCompact": "PreCompact",
    "preCompact": "PreCompact",
    "PreCompress": "PreCompact",
    "SubagentStart": "SubagentStart",
    "subagentStart": "SubagentStart",
    "SubagentStop": "SubagentStop",
    "subagentStop": "SubagentStop",
    "PreToolUse": "PreToolUse",
    "preToolUse": "PreToolUse",
    "BeforeTool": "PreToolUse",
    "PostToolUse": "PostToolUse",
    "postToolUse": "PostToolUse",
    "AfterTool": "PostToolUse",
    "Stop": "Stop",
    "agentStop": "Stop",
    "AfterAgent": "Stop",
    "UserPromptSubmit": "Prompt",
    "userPromptSubmitted": "Prompt",
    "BeforeAgent": "Prompt",
    "task_update": "TaskUpdate",
    "TaskUpdate": "TaskUpdate",
}

_GEMINI = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "PreCompress", "BeforeModel", "AfterModel")

# Where each of our fields may stand, in any program's payload.
_SESSION = ("session_id", "sessionId")
_AGENT = ("agent_id", "agentId")
_ROLE = ("agent_type", "agentType")
_PARENT = ("parent_agent_id", "parentAgentId")
_TEXT = ("last_assistant_message", "response", "prompt_response", "prompt")
_TOOL = ("tool_name", "toolName")
_INPUT = ("tool_input", "toolArgs", "toolInput")
_SOURCE = ("source", "trigger")

# Tools that call another agent, and where they name its type.
DISPATCH = {
    "Agent": "subagent_type",
    "Task": "subagent_type",
    "spawn_agent": "agent_type",
    "task": "agent_type",
    "invoke_agent": "agent_name",
    "delegate_to_agent": "agent_name",
}
# Tools that write files, and where they name them.
EDIT = {
    "Write": ("file_path", "path"),
    "Edit": ("file_path", "path"),
    "MultiEdit": ("file_path",),
    "NotebookEdit": ("notebook_path",),
    "apply_patch": (),
    "create": ("path",),
    "edit": ("path", "file_path"),
    "str_replace_editor": ("path",),
    "write_file": ("file_path",),
    "replace": ("file_path",),
}


def parse_hook(named: str, payload: Payload) -> HookCall:
    name = named if named in EVENTS else str(payload.get("hook_event_name") or payload.get("hookName") or named)
    host = _host(name, payload)
    tool, given = _text(payload, _TOOL), _first(payload, _INPUT)
    call: HookCall = {
        "host": host,
        "event": EVENTS.get(name, ""),
        "name": name,
        "session": _id(payload, _SESSION),
        "parent": _id(payload, _PARENT),
        "agent": _id(payload, _AGENT),
        "role": _role(_text(payload, _ROLE)),
        "text": _text(payload, _TEXT),
        "source": _text(payload, _SOURCE),
        "tool": "",
        "paths": [],
        "again": payload.get("stop_hook_active") is True,
        "busy": bool(payload.get("background_tasks") or payload.get("session_crons")),
        "cwd": _text(payload, ("cwd",)),
        "reported_at": _reported_at(payload),
        "run": "",
        "payload": payload,
    }
    if call["event"] in ("PreToolUse", "PostToolUse"):
        _parse_tool(call, tool, given if isinstance(given, dict) else {})
        if not call["tool"]:
            call["event"] = ""  # most tools: nothing asks about them, and no journal is opened
    if host == "seed" and payload.get("type") == "task_update":
        call["event"] = "TaskUpdate"
    return call


def _host(name: str, payload: Payload) -> Host:
    if name in _GEMINI:
        return "gemini"
    if not _text(payload, _SESSION):
        return "claude" if "hook_event_name" in payload else "seed"
    if "sessionId" in payload:
        return "copilot"
    if "timestamp" in payload:  # only these two tell the time
        return "gemini" if "transcript_path" in payload and name.startswith("Session") else "copilot"
    return "codex" if "/rollout-" in str(payload.get("transcript_path")) else "claude"


def _parse_tool(call: HookCall, tool: str, given: Mapping[str, object]) -> None:
    if tool in DISPATCH:
        call["tool"] = "dispatch"
        # Inside a subagent, `agent` is the one that calls; the one that is called has no id yet.
        call["parent"] = call["agent"] or call["parent"]
        role = given.get(DISPATCH[tool]) or given.get("agent_type")
        call["role"] = _role(role) if isinstance(role, str) else ""
        if call["host"] == "gemini":  # it has no events for subagents: calling the tool is the start, its end the stop
            call["event"] = "Delegation" if call["event"] == "PreToolUse" else "SubagentStop"
            call["text"] = _gemini_reply(call["payload"])
    elif tool in EDIT:
        call["tool"] = "edit"
        paths = [given.get(field) for field in EDIT[tool]]
        call["paths"] = [path for path in paths if isinstance(path, str) and path][:1]
        if tool == "apply_patch":
            call["paths"] = _patched(given)


def _patched(given: Mapping[str, object]) -> list[str]:
    """The files that a patch in Codex's format touches."""
    text = given.get("command") or given.get("input") or given.get("patch")
    marks = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    lines = text.splitlines() if isinstance(text, str) else ()
    return [line[len(mark) :].strip() for line in lines for mark in marks if line.startswith(mark)]


def _gemini_reply(payload: Payload) -> str:
    response = payload.get("tool_response")
    content = response.get("llmContent") if isinstance(response, dict) else None
    if isinstance(content, list):
        content = "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return content.partition("Result:\n")[2] or content if isinstance(content, str) else ""


def _role(agent_type: str) -> str:
    return agent_type.rpartition(":")[2]


def _reported_at(payload: Payload) -> str:
    stamp = payload.get("timestamp")
    if isinstance(stamp, str):
        return stamp if len(stamp) <= 64 else ""
    if isinstance(stamp, int) and 0 < stamp < 1 << 48:
        from tenuto.core.times import iso

        return iso(stamp)
    return ""


def _id(payload: Payload, names: tuple[str, ...]) -> str:
    """Half a character cannot be looked for, so it names no session and no agent."""
    value = _text(payload, names)
    try:
        value.encode()
    except UnicodeEncodeError:
        return ""
    return value


def _text(payload: Payload, names: tuple[str, ...]) -> str:
    value = _first(payload, names)
    return value if isinstance(value, str) else ""


def _first(payload: Payload, names: tuple[str, ...]) -> object:
    for name in names:
        if name in payload:
            return payload[name]
    return None


# ---- which run ----------------------------------------------------------


def find_run(reader: Reader, workspace: Workspace, call: HookCall) -> str | None:
    """The name of the run that this call is about."""
    open_runs = dict(reader.open_runs())
    if not open_runs:
        return None
    if call["run"]:
        return call["run"] if call["run"] in open_runs else None
    here = [run for run, tree in open_runs.items() if tree == workspace.tree]
    for session in (call["session"], call["parent"]):
        bound = reader.marker(f"session:{session}") if session else None
        if bound in here or (bound in open_runs and not here):  # a session may work in several work trees
            return bound
    if len(here) == 1:
        return here[0]
    if here:  # several: the one that this work tree's own files show, or that the user chose
        from tenuto.names import split_file_key

        repo = reader.load_repo()
        shown = [run for path, run in repo["owners"].items() if split_file_key(path)[0] == workspace.tree]
        candidates = [run for run in here if run in shown] or here
        if len(candidates) == 1:
            return candidates[0]
        return repo["current"] if repo["current"] in candidates else None
    return next(iter(open_runs)) if len(open_runs) == 1 else None


def run_of(turn: Turn, call: HookCall) -> Run | None:
    """The same inside a turn: other programs' edits of the run's files are taken in."""
    name = _begun_in_file(turn) or find_run(turn.tx, turn.workspace, call)
    return turn.run(name) if name else None


def _begun_in_file(turn: Turn) -> str | None:
    """Another feature, that an agent began by writing it into the file of the one before."""
    from tenuto.files.exchange import read_file
    from tenuto.names import file_key

    path = ".feature-state.json"
    key = file_key(turn.workspace.tree, path)
    owner, root = turn.repo["owners"].get(key), turn.workspace.root_of(turn.workspace.tree)
    body = read_file(root, path) if owner is not None and root is not None else None
    if body is None or owner is None or digest(body) in [render[0] for render in turn.tx.renders(key, 1)]:
        return None
    from tenuto.dialects.feature import take_up

    return take_up(turn, owner, turn.workspace.without_secrets(body, path))


def owns(run: Run, call: HookCall) -> bool:
    """Is this a session that the run knows?"""
    return call["session"] in run["sessions"] or (bool(call["parent"]) and call["parent"] in run["sessions"])


# ---- replies --------------------------------------------------------------


def deny(call: HookCall, reason: str) -> str:
    if call["host"] == "gemini":
        return dumps({"decision": "deny", "reason": reason})
    decision: Payload = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    reply: Payload = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}
    # Copilot's own hooks want it at the top; hooks of a plugin made for Claude Code inside. Others allow no more keys.
    return dumps({**decision, **reply} if call["host"] == "copilot" else reply)


def block(call: HookCall, reason: str) -> str:
    return dumps({"decision": "deny" if call["host"] == "gemini" else "block", "reason": reason})


def context(call: HookCall, text: str) -> str:
    name = call["name"] if call["name"] == "BeforeAgent" else "SessionStart"
    reply: Payload = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    return dumps({"additionalContext": text, **reply} if call["host"] == "copilot" else reply)


def tell(call: HookCall, text: str) -> str:
    return text.rstrip("\n") if call["host"] == "seed" else dumps({"systemMessage": text.rstrip("\n")})
