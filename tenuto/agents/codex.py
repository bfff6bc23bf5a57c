"""OpenAI's Codex: the user's own `codex exec --json`, one program per attempt, its events on standard output.

    codex
    codex:model=gpt-5.5,effort=high,sandbox=workspace-write,network=on,profile=work

An attempt that goes on with an interrupted one resumes its thread. Codex names its threads itself, in the first event;
where the thread's file is gone, the work starts over.

Rule 1: only a turn that Codex completed has a reply: the last message of it. A stream that ends before is an ERROR,
whatever was said.
Rule 2: why a turn failed is said in words; command.py knows what they mean.
Rule 3: tokens are those of the whole thread, as Codex counts them; what an earlier attempt of the thread reported is
taken off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tenuto.agents import command
from tenuto.agents.command import (
    AgentProgram,
    Event,
    broken,
    cut_short,
    error,
    explained,
    judge,
    mapping,
    mappings,
    narrate_events,
    narrate_tool,
    read_events,
    replied,
)

if TYPE_CHECKING:
    from tenuto.agents.command import Options, Shape
    from tenuto.core.pipeline.records import Role
    from tenuto.core.records.action import Ending, Launch, Reply
    from tenuto.core.records.run import Usage
    from tenuto.ports import Assignment

OPTIONS: dict[str, Shape] = {
    "model": str,
    "effort": ("minimal", "low", "medium", "high", "xhigh"),
    "sandbox": ("read-only", "workspace-write", "danger-full-access"),
    "network": ("on", "off"),
    "profile": str,
    "program": str,
}


_PROTECTED = (".agents", ".codex")


class Thread(NamedTuple):
    """What the events say, as far as they came."""

    name: str
    reply: str
    tokens: tuple[int, int] | None  # read and written; None: not reported
    failure: str
    completed: bool


class CodexAgent(AgentProgram):
    reports: tuple[str, ...] = ("tokens",)
    environment: tuple[str, ...] = ("CODEX_*", "OPENAI_*", "*_PROXY", "*_proxy", "SSL_CERT_*")
    barred: tuple[str, ...] = ("CODEX_SANDBOX*", "CODEX_THREAD_ID", "CODEX_CI")  # of a Codex that we may run inside

    def __init__(self, words: str) -> None:
        self.name = f"codex:{words}" if words else "codex"
        self.options = command.read("codex", words, OPTIONS)

    def check(self, role: Role | None) -> None:
        """Refuse a role whose wishes cannot be met, before anything starts."""
        self._options(role)

    def program(self, role: Role | None) -> str:
        return command.word(self._options(role), "program", "codex")

    def _options(self, role: Role | None) -> Options:
        return command.for_role("codex", self.options, role, OPTIONS)

    def can_go_on(self, earlier: str) -> bool:
        thread = follow(earlier).name
        return bool(thread) and is_kept(thread, os.environ)

    def launch(self, plan: Assignment) -> Launch:
        chosen, thread, goes_on = self._options(plan.role), follow(plan.earlier).name, self.can_go_on(plan.earlier)
        words = ["exec", *(["-p", command.word(chosen, "profile")] if "profile" in chosen else [])]
        words += ["--json", "--skip-git-repo-check", *_settings(chosen), *_opened(chosen, plan)]
        words += ["resume", thread, "-"] if goes_on else ["-"]  # older versions know their options before `resume` only
        prompt = plan.going_on() if goes_on else plan.prompt()
        return {"argv": [command.word(chosen, "program", "codex"), *words], "stdin": prompt, "env": {}}

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        thread = follow(output)
        reply = cut_short(ending) or _judged(plan, ending, thread)
        return {**reply, "text": thread.reply, "usage": _usage(thread, follow(plan.earlier))}

    @staticmethod
    def narrate(line: str) -> list[str]:
        return narrate_events(line, _narrate)


def _narrate(event: Event) -> Iterator[str]:
    if event.get("type") == "item.completed":
        item = mapping(event.get("item"))
        match item.get("type"):
            case "agent_message":
                yield from str(item.get("text", "")).splitlines()
            case "command_execution":
                yield narrate_tool("run", {"command": str(item.get("command", ""))})
            case "file_change":
                paths = [str(change.get("path", "")) for change in mappings(item.get("changes"))]
                yield narrate_tool("change", {"path": ", ".join(paths)})
            case "mcp_tool_call":
                yield narrate_tool(str(item.get("tool", "a tool")), item.get("arguments"))
    elif event.get("type") in ("error", "turn.failed"):
        problem = event.get("error")
        why = mapping(problem).get("message") if isinstance(problem, dict) else problem
        yield f"[it failed: {event.get('message') or why}]"


def _settings(chosen: Options) -> Iterator[str]:
    """As settings, which a thread that is resumed takes, too."""
    if "model" in chosen:
        yield from ("-m", command.word(chosen, "model"))
    yield from ("-c", f'sandbox_mode="{chosen.get("sandbox", "workspace-write")}"')
    if "network" in chosen:
        allowed = "true" if chosen["network"] == "on" else "false"
        yield from ("-c", f"sandbox_workspace_write.network_access={allowed}")
    if "effort" in chosen:
        yield from ("-c", f'model_reasoning_effort="{chosen["effort"]}"')


def _opened(chosen: Options, plan: Assignment) -> list[str]:
    """Some folders are read-only in the sandbox, wherever they lie: those of them that hold files the attempt is to
    write are named."""
    protected = [path for path in plan.boundary()["files"] if path.partition("/")[0] in _PROTECTED]
    if not protected or chosen.get("sandbox", "workspace-write") != "workspace-write":
        return []
    folders = [os.path.join(plan.workdir, os.path.dirname(path.partition("*")[0])) for path in protected]
    return ["-c", f"sandbox_workspace_write.writable_roots={json.dumps(list(dict.fromkeys([*_writable(), *folders])))}"]


def _writable() -> list[str]:
    """What the user has named: a list on the command line replaces theirs."""
    import tomllib

    try:
        with open(_home(os.environ) / "config.toml", "rb") as file:
            found = tomllib.load(file).get("sandbox_workspace_write", {}).get("writable_roots", [])
    except (OSError, ValueError, AttributeError):
        return []
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []


def _judged(plan: Assignment, ending: Ending, thread: Thread) -> Reply:
    if thread.failure:
        return judge(thread.failure, ending["ended"])
    if ending["signal"] is not None and thread.name:
        return error(f"Codex was ended by signal {ending['signal']}", transient=True)  # from outside: it may go on
    failure = broken(ending)
    if failure:
        return explained(failure, plan.errors)
    if not thread.name:
        return error("what it printed are no events of a thread: Tenuto needs Codex 0.60 or newer")
    if not thread.completed:
        return error("what it printed ends before its turn was completed")
    return replied(thread.reply)


def follow(text: str) -> Thread:
    name, reply, failure, tokens, completed = "", "", "", None, False
    for event in read_events(text).events:
        match event.get("type"):
            case "thread.started":
                name = str(event.get("thread_id", ""))
            case "turn.started":
                failure, completed = "", False
            case "item.completed":
                item = mapping(event.get("item"))
                if item.get("type") == "agent_message":
                    reply = str(item.get("text", ""))
            case "turn.completed":
                completed, tokens = True, _tokens(event.get("usage"))
            case "turn.failed":
                problem = event.get("error")
                failure = str(problem.get("message") or problem) if isinstance(problem, dict) else str(problem)
            case "error":  # a warning ("Reconnecting..."), where the turn is completed after all
                failure = str(event.get("message", "it failed"))
    return Thread(name, reply, tokens, "" if completed else failure, completed)


def _tokens(usage: object) -> tuple[int, int] | None:
    """What was read from a cache is part of the input, what was thought is part of the output."""
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("input_tokens"), usage.get("output_tokens")
    return (read, written) if isinstance(read, int) and isinstance(written, int) else None


def _usage(thread: Thread, earlier: Thread) -> Usage:
    if thread.tokens is None:
        return {}
    before = earlier.tokens if earlier.tokens and earlier.name == thread.name else (0, 0)
    # Old versions count each turn for itself: less than before is such a count.
    whole = all(now >= then for now, then in zip(thread.tokens, before, strict=True))
    return {"tokens": sum(thread.tokens) - (sum(before) if whole else 0)}


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CODEX_HOME") or Path(environment.get("HOME", "/")) / ".codex")


def is_kept(thread: str, environment: Mapping[str, str]) -> bool:
    """Does Codex still have this thread on disk? It refuses to resume what it does not have."""
    if any(not (sign.isalnum() or sign == "-") for sign in thread):
        return False
    home = _home(environment)
    return any(next((home / folder).rglob(f"*{thread}*"), None) for folder in ("sessions", "archived_sessions"))
