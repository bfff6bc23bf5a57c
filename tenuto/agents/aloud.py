"""A program's events as lines that a person can read while it works.

    aloud("claude:model=opus", line)   -> what this line of its output says; [] where that is nothing worth a line

Words as they were said; what it does in square brackets. A line that is no event is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tenuto.agents import streams

_TELLING = ("file_path", "command", "pattern", "path", "url", "query", "description", "skill")
_LONGEST = 200


def aloud(agent: str, line: str) -> list[str]:
    speak = _SPEAKERS.get(agent.partition(":")[0])
    if speak is None:
        return [line]
    found = streams.read(line)
    if not found.events:
        return [line] if line.strip() else []
    return [part for event in found.events for part in speak(event)]


def _claude(event: dict[str, Any]) -> Iterator[str]:
    indent = "  " if event.get("parent_tool_use_id") else ""
    kind, message = event.get("type"), event.get("message")
    if kind == "assistant" and isinstance(message, dict):
        for block in message.get("content") or []:
            if isinstance(block, dict) and block.get("type") == "text":
                yield from (indent + line for line in str(block.get("text", "")).splitlines())
            elif isinstance(block, dict) and block.get("type") == "tool_use":
                yield indent + _does(str(block.get("name")), block.get("input"))
    elif kind == "system" and event.get("subtype") == "api_retry":
        yield f"[the model does not answer ({event.get('error_status') or event.get('error')}): asked again]"
    elif kind == "result" and event.get("is_error"):
        yield f"[it failed: {event.get('result') or event.get('errors')}]"


def _does(name: str, given: Any) -> str:
    said = next((given[word] for word in _TELLING if isinstance(given.get(word), str)), "") if isinstance(given, dict) else ""
    first = said.strip().partition("\n")[0]
    return f"[{name} {first[:_LONGEST]}]" if first else f"[{name}]"


def _codex(event: dict[str, Any]) -> Iterator[str]:
    item = event.get("item")
    if event.get("type") == "item.completed" and isinstance(item, dict):
        match item.get("type"):
            case "agent_message":
                yield from str(item.get("text", "")).splitlines()
            case "command_execution":
                yield _does("run", {"command": str(item.get("command", ""))})
            case "file_change":
                changes = [str(one.get("path", "")) for one in item.get("changes") or [] if isinstance(one, dict)]
                yield _does("change", {"path": ", ".join(changes)})
            case "mcp_tool_call":
                yield _does(str(item.get("tool", "a tool")), item.get("arguments"))
    elif event.get("type") in ("error", "turn.failed"):
        error = event.get("error")
        yield f"[it failed: {event.get('message') or (error.get('message') if isinstance(error, dict) else error)}]"


def _acp(event: dict[str, Any]) -> Iterator[str]:
    match event.get("type"):
        case "message":
            yield from str(event.get("text", "")).splitlines()
        case "tool":
            yield _does(str(event.get("kind") or "tool"), {"description": str(event.get("title", ""))})
        case "permission" if not event.get("allowed"):
            yield _does("not permitted:", {"description": str(event.get("title", ""))})
        case "error":
            yield f"[it failed: {event.get('text')}]"


_SPEAKERS: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {"claude": _claude, "codex": _codex, "acp": _acp}
