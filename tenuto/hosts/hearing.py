"""A hook's payload, whoever sends it -> one record.

    hear("SubagentStop", payload) -> {"host": "claude", "event": "SubagentStop", "session": ..., "agent": ..., ...}

Programs spell the same things differently, sometimes within one program: Claude Code and Codex write
`session_id`, Copilot `sessionId` or, for plugins made for Claude Code, either; Gemini has names of its
own for the events. The tables below are all that is known about that. Whatever a table does not
name is left alone: an event that is not here is heard as "" and nobody acts on it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from tenuto.core.records import Json

    class Heard(TypedDict):
        host: str  # claude, codex, copilot, gemini; seed: the state file's own payloads
        event: str  # our name for it; "" where it means nothing to us
        name: str  # the host's name for it
        session: str
        parent: str  # the session or agent that called this agent
        agent: str  # the id of the subagent this is about, or that the tool runs in
        role: str  # its type, without the plugin's name
        text: str  # its last words, or the user's prompt
        source: str  # SessionStart: startup, resume, compact, clear; PreCompact: auto, manual
        tool: str  # dispatch, edit, or "" for all others
        paths: list[str]  # what an edit touches
        again: bool  # the agent goes on because a hook sent it back before
        busy: bool  # something of this session is still at work in the background
        cwd: str
        told: str  # the host's own time, "" where it gives none
        run: str  # the run that this happens in an attempt of; "" in somebody's own session
        payload: Json


EVENTS = {
    "SessionStart": "SessionStart", "sessionStart": "SessionStart",
    "PreCompact": "PreCompact", "preCompact": "PreCompact", "PreCompress": "PreCompact",
    "SubagentStart": "SubagentStart", "subagentStart": "SubagentStart",
    "SubagentStop": "SubagentStop", "subagentStop": "SubagentStop",
    "PreToolUse": "PreToolUse", "preToolUse": "PreToolUse", "BeforeTool": "PreToolUse",
    "PostToolUse": "PostToolUse", "postToolUse": "PostToolUse", "AfterTool": "PostToolUse",
    "Stop": "Stop", "agentStop": "Stop", "AfterAgent": "Stop",
    "UserPromptSubmit": "Prompt", "userPromptSubmitted": "Prompt", "BeforeAgent": "Prompt",
    "task_update": "TaskUpdate", "TaskUpdate": "TaskUpdate",
}  # fmt: skip

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
    "Agent": "subagent_type", "Task": "subagent_type", "spawn_agent": "agent_type", "task": "agent_type",
    "invoke_agent": "agent_name", "delegate_to_agent": "agent_name",
}  # fmt: skip
# Tools that write files, and where they name them.
EDIT = {
    "Write": ("file_path", "path"), "Edit": ("file_path", "path"), "MultiEdit": ("file_path",),
    "NotebookEdit": ("notebook_path",), "apply_patch": (), "create": ("path",), "edit": ("path", "file_path"),
    "str_replace_editor": ("path",), "write_file": ("file_path",), "replace": ("file_path",),
}  # fmt: skip


def hear(named: str, payload: Json) -> Heard:
    name = named if named in EVENTS else str(payload.get("hook_event_name") or payload.get("hookName") or named)
    host = _host(name, payload)
    tool, given = _text(payload, _TOOL), _first(payload, _INPUT)
    heard: Heard = {
        "host": host, "event": EVENTS.get(name, ""), "name": name, "session": _id(payload, _SESSION),
        "parent": _id(payload, _PARENT), "agent": _id(payload, _AGENT), "role": _role(_text(payload, _ROLE)),
        "text": _text(payload, _TEXT), "source": _text(payload, _SOURCE), "tool": "", "paths": [],
        "again": payload.get("stop_hook_active") is True,
        "busy": bool(payload.get("background_tasks") or payload.get("session_crons")),
        "cwd": _text(payload, ("cwd",)), "told": _told(payload), "run": "", "payload": payload,
    }  # fmt: skip
    if heard["event"] in ("PreToolUse", "PostToolUse"):
        _hear_tool(heard, tool, given if isinstance(given, dict) else {})
        if not heard["tool"]:
            heard["event"] = ""  # most tools: nobody asks about them, and nothing is even opened
    if host == "seed" and payload.get("type") == "task_update":
        heard["event"] = "TaskUpdate"
    return heard


def _host(name: str, payload: Json) -> str:
    if name in _GEMINI:
        return "gemini"
    if not _text(payload, _SESSION):
        return "claude" if "hook_event_name" in payload else "seed"
    if "sessionId" in payload:
        return "copilot"
    if "timestamp" in payload:  # only these two tell the time
        return "gemini" if "transcript_path" in payload and name.startswith("Session") else "copilot"
    return "codex" if "/rollout-" in str(payload.get("transcript_path")) else "claude"


def _hear_tool(heard: Heard, tool: str, given: Json) -> None:
    if tool in DISPATCH:
        heard["tool"] = "dispatch"
        # Inside a subagent, `agent` is the one that calls; the one that is called has no id yet.
        heard["parent"] = heard["agent"] or heard["parent"]
        called = given.get(DISPATCH[tool]) or given.get("agent_type")
        heard["role"] = _role(called) if isinstance(called, str) else ""
        if heard["host"] == "gemini":  # it has no events for subagents: calling the tool is the start, its end the stop
            heard["event"] = "Delegation" if heard["event"] == "PreToolUse" else "SubagentStop"
            heard["text"] = _gemini_reply(heard["payload"])
    elif tool in EDIT:
        heard["tool"] = "edit"
        paths = [given.get(field) for field in EDIT[tool]]
        heard["paths"] = [path for path in paths if isinstance(path, str) and path][:1]
        if tool == "apply_patch":
            heard["paths"] = _patched(given)


def _patched(given: Json) -> list[str]:
    """The files that a patch in Codex's format touches."""
    text = given.get("command") or given.get("input") or given.get("patch")
    marks = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    lines = text.splitlines() if isinstance(text, str) else ()
    return [line[len(mark) :].strip() for line in lines for mark in marks if line.startswith(mark)]


def _gemini_reply(payload: Json) -> str:
    said = payload.get("tool_response")
    content = said.get("llmContent") if isinstance(said, dict) else None
    if isinstance(content, list):
        content = "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return content.partition("Result:\n")[2] or content if isinstance(content, str) else ""


def _role(agent_type: str) -> str:
    return agent_type.rpartition(":")[2]


def _told(payload: Json) -> str:
    told = payload.get("timestamp")
    if isinstance(told, str):
        return told if len(told) <= 64 else ""
    if isinstance(told, int) and 0 < told < 1 << 48:
        from tenuto.core.times import iso

        return iso(told)
    return ""


def _id(payload: Json, names: tuple[str, ...]) -> str:
    """Half a character names nobody: it cannot be looked for."""
    value = _text(payload, names)
    try:
        value.encode()
    except UnicodeEncodeError:
        return ""
    return value


def _text(payload: Json, names: tuple[str, ...]) -> str:
    value = _first(payload, names)
    return value if isinstance(value, str) else ""


def _first(payload: Json, names: tuple[str, ...]) -> Any:
    for name in names:
        if name in payload:
            return payload[name]
    return None
