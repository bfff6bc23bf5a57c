"""Claude Code: the user's own `claude -p`, one program per attempt, its events on standard output.

    claude
    claude:model=opus,effort=high,permission-mode=acceptEdits,max-turns=40,budget=2.50,tools=Read,Edit,Bash

The same options in a role's front matter count for that role, where they are not spelled out. Its `tools` become
Claude's: what the role does not name is not there, and what it names is not asked for.

Sessions are named by us, the same after a restart. An attempt that goes on with an interrupted one resumes its session;
where that session is gone, the work starts over.

Rule 1: the last `result` event counts, by `is_error` and `terminal_reason`; not the exit status, and not `subtype`. No
such event: an ERROR, whatever was said.
Rule 2: a reply counts when nothing it started is still at work: with agents in the background it is the last of
several.
Rule 3: a usage limit that says when it ends parks; an overloaded or unreachable model may be tried again; anything
else is an ERROR.
Rule 4: tokens and money are the sum over all models since the program started, subagents included, as Claude Code
counts them.
"""

from __future__ import annotations

import os
import re
import uuid
from typing import TYPE_CHECKING

from tenuto.agents import command
from tenuto.agents.command import (
    AgentProgram,
    Event,
    Stream,
    cut_short,
    error,
    judge,
    mapping,
    mappings,
    narrate_events,
    narrate_tool,
    read_events,
    replied,
    resets,
)
from tenuto.core.times import iso, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.agents.command import Options, Shape
    from tenuto.core.pipeline.records import Role
    from tenuto.core.records.action import Ending, Launch, Reply
    from tenuto.core.records.run import Usage
    from tenuto.ports import Assignment

OPTIONS: dict[str, Shape] = {
    "model": str,
    "effort": ("low", "medium", "high", "xhigh", "max"),
    "permission-mode": ("acceptEdits", "auto", "bypassPermissions", "default", "manual", "dontAsk", "plan"),
    "tools": list,
    "allow": list,
    "max-turns": int,
    "budget": float,
    "program": str,
}
_TOOLS = {
    "read": ("Read",),
    "search": ("Grep", "Glob"),
    "write": ("Write", "Edit"),
    "run": ("Bash",),
    "web": ("WebFetch", "WebSearch"),
    "agents": ("Agent",),
}
_NAMESPACE = uuid.UUID("6f0f4f0e-3d0c-5d8a-9a53-7e0c1b7a4f21")
_GONE = "No conversation found"
_LIMIT = re.compile(r"limit reached|hit your [\w -]*limit", re.IGNORECASE)
_OLD_LIMIT = re.compile(r"limit reached\|(\d{10})")
_STATUS = re.compile(r"API Error: (?:[^(\d]*\()?(\d{3})\b")
_PASSING = (408, 409, 429, 500, 502, 503, 504, 529)
_NETWORK = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_*",
    "NODE_EXTRA_CA_CERTS",
)
# Logins of other clouds are handed over only where Claude Code is told to use that cloud.
_CLOUDS = {"CLAUDE_CODE_USE_BEDROCK": ("AWS_*",), "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_*", "CLOUD_ML_*", "VERTEX_*")}


class ClaudeAgent(AgentProgram):
    reports: tuple[str, ...] = ("tokens", "micro_usd")
    # Marks of a Claude Code that we may run inside: a program that finds them takes itself for a part of it.
    barred: tuple[str, ...] = (
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_SESSION*",
        "CLAUDE_CODE_CHILD*",
        "CLAUDE_CODE_REMOTE*",
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_PLUGIN_*",
        "CLAUDE_ENV_FILE",
        "CLAUDE_AGENT_SDK*",
    )

    def __init__(self, words: str) -> None:
        self.name = f"claude:{words}" if words else "claude"
        self.options = command.read("claude", words, OPTIONS)
        clouds = [name for switch, names in _CLOUDS.items() if os.environ.get(switch) for name in names]
        own = (
            "ANTHROPIC_*",
            "CLAUDE_*",
            "DISABLE_*",
            "IS_SANDBOX",
            "API_TIMEOUT_MS",
            "MAX_*_TOKENS",
            "BASH_*",
            "MCP_*",
        )
        self.environment = (*own, *_NETWORK, *clouds)

    def check(self, role: Role | None) -> None:
        """Refuse a role whose wishes cannot be met, before anything starts."""
        self._options(role)

    def program(self, role: Role | None) -> str:
        return command.word(self._options(role), "program", "claude")

    def _options(self, role: Role | None) -> Options:
        return command.for_role("claude", self.options, role, OPTIONS)

    def can_go_on(self, earlier: str) -> bool:
        return bool(session_of(earlier))

    def launch(self, plan: Assignment) -> Launch:
        chosen = self._options(plan.role)
        session = session_of(plan.earlier)
        argv = [command.word(chosen, "program", "claude"), "-p", "--output-format", "stream-json", "--verbose"]
        argv += ["--resume", session] if session else ["--session-id", session_for(plan)]
        argv += ["--permission-mode", command.word(chosen, "permission-mode", "acceptEdits")]
        for name, flag in (("model", "--model"), ("effort", "--effort"), ("max-turns", "--max-turns")):
            if name in chosen:
                argv += [flag, str(chosen[name])]
        dollars = _dollars(chosen, plan)
        argv += ["--max-budget-usd", dollars] if dollars else []
        argv += _tools(chosen, plan.role)
        prompt = plan.going_on() if session else plan.prompt()
        return {"argv": argv, "stdin": prompt, "env": {"DISABLE_AUTOUPDATER": "1"}}

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        stream = read_events(output)
        ends = stream.of("result")
        last = ends[-1] if ends else {}
        text = str(last.get("result") or "")
        judged = self._judged(stream, last, text, ending) if ends else _cut(plan, ending, stream)
        reply = cut_short(ending) or judged
        return {**reply, "usage": spent(ends), "text": text, "denied": _denied(last)}

    def _judged(self, stream: Stream, end: Event, text: str, ending: Ending) -> Reply:
        if end.get("is_error"):
            return _failed(stream, end, text, ending["ended"])
        if end.get("terminal_reason", "completed") not in ("completed", None):
            return error(f"Claude Code ended early: {end['terminal_reason']}")
        if not text and str(end.get("subtype")).startswith("error_"):  # older versions, for limits of their own
            return error(f"Claude Code ended early: {end['subtype']}")
        busy = _at_work(stream)
        if busy:
            return error(f"Claude Code ended while agents were at work in the background: {', '.join(busy)}")
        return replied(text)

    @staticmethod
    def narrate(line: str) -> list[str]:
        return narrate_events(line, _narrate)


def _narrate(event: Event) -> Iterator[str]:
    indent = "  " if event.get("parent_tool_use_id") else ""
    kind = event.get("type")
    if kind == "assistant":
        for block in mappings(mapping(event.get("message")).get("content")):
            if block.get("type") == "text":
                yield from (indent + line for line in str(block.get("text", "")).splitlines())
            elif block.get("type") == "tool_use":
                yield indent + narrate_tool(str(block.get("name")), block.get("input"))
    elif kind == "system" and event.get("subtype") == "api_retry":
        yield f"[the model does not answer ({event.get('error_status') or event.get('error')}): asked again]"
    elif kind == "result" and event.get("is_error"):
        yield f"[it failed: {event.get('result') or event.get('errors')}]"


def session_for(plan: Assignment) -> str:
    """The same for the same start of the same attempt, wherever the orchestrator was restarted; never the same for
    another."""
    place = [plan.root, plan.run["id"], plan.run["created_at"], plan.name, str(plan.start)]
    return str(uuid.uuid5(_NAMESPACE, "\n".join(place)))


def session_of(earlier: str) -> str:
    """The session that these events belong to; "" where none began, or it is gone."""
    stream = read_events(earlier)
    if any(_GONE in str(end.get("errors")) for end in stream.of("result")):
        return ""
    begun = stream.of("system", "init")
    session = str(begun[-1].get("session_id", "")) if begun else ""
    return session if re.fullmatch(r"[0-9a-f-]{36}", session) else ""


def spent(ends: list[Event]) -> Usage:
    """A resumed session's totals hold what was spent before; newer versions say what is new since the last result."""
    if not ends:
        return {}
    fresh = [end.get("model_usage_since_last_result") for end in ends]
    counted = fresh if all(isinstance(one, dict) for one in fresh) else [ends[-1].get("modelUsage")]
    rows = [row for one in counted if isinstance(one, dict) for row in one.values() if isinstance(row, dict)]
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    tokens = sum(_number(row.get(name)) for row in rows for name in names)
    return {"tokens": int(tokens), "micro_usd": round(sum(_number(row.get("costUSD")) for row in rows) * 1_000_000)}


def _number(value: object) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else 0


def _failed(stream: Stream, end: Event, text: str, at: str) -> Reply:
    errors = end.get("errors")
    reasons = [text, *map(str, errors if isinstance(errors, list) else []), str(end.get("terminal_reason") or "")]
    why = next(filter(None, reasons), "Claude Code failed and does not say why")
    if _GONE in why:
        return error("the session to go on with is gone", transient=True)
    status = end.get("api_error_status")
    if not isinstance(status, int):  # older versions have it in their words only
        match = _STATUS.match(text)
        status = int(match.group(1)) if match else None
    until = _until(stream, text, at) if status in (429, None) else ""
    if until:
        return error(why, parked_until=until)
    if status is not None or _LIMIT.search(text):
        return error(why, transient=status is None or status in _PASSING, limited=status in (429, None))
    of_model = end.get("terminal_reason") == "api_error" or text.startswith("API Error")
    return judge(why, at) if of_model else error(why)


def _until(stream: Stream, text: str, at: str) -> str:
    """When the usage limit ends; "" where the program does not say it, or it is over."""
    now = milliseconds(at) or 0
    for event in reversed(stream.of("rate_limit_event")):
        info = mapping(event.get("rate_limit_info"))
        resets_at = info.get("resetsAt")
        if info.get("status") == "rejected" and isinstance(resets_at, int):
            return iso(resets_at * 1000) if resets_at * 1000 > now else ""
    match = _OLD_LIMIT.search(text)
    if match:
        return iso(int(match.group(1)) * 1000) if int(match.group(1)) * 1000 > now else ""
    return resets(text, at) if _LIMIT.search(text) else ""


def _denied(end: Event) -> list[str]:
    """What it wanted to do and was not permitted: often why an output is missing."""
    denied: dict[str, None] = {}
    for row in mappings(end.get("permission_denials")):
        given = mapping(row.get("tool_input"))
        words = [str(given[word]) for word in ("file_path", "command") if word in given]
        denied[" ".join([str(row.get("tool_name")), *words]).partition("\n")[0][:300]] = None
    return list(denied)


def _at_work(stream: Stream) -> list[str]:
    changes = stream.of("system", "background_tasks_changed")
    tasks = mappings(changes[-1].get("tasks")) if changes else []
    return [str(task.get("description", task.get("task_id"))) for task in tasks]


def _cut(plan: Assignment, ending: Ending, stream: Stream) -> Reply:
    """No result. Killed from outside, it may go on; else what it printed is wrong, or it could not even begin."""
    if ending["signal"] is not None:
        return error(f"Claude Code was ended by signal {ending['signal']}", transient=True)
    if stream.events:
        return error("what Claude Code printed ends without a result")
    why = plan.errors.strip()[-400:]
    if stream.strange:
        return error(f"what Claude Code printed is no stream of events{': ' if why else ''}{why}")
    return error(f"Claude Code ended with exit status {ending['exit_code']} and said nothing{': ' if why else ''}{why}")


def _tools(chosen: Options, role: Role) -> list[str]:
    """Which tools there are, and which of them need no permission. Where `allow` says which uses of one do, the others
    do not."""
    if "tools" in chosen:
        given = command.words(chosen, "tools")
        names = [] if given == ["default"] else _whole(given)
    else:
        own = [word for word in role["tools"] if word[:1].isupper() or word.startswith("mcp__")]
        names = [*(name for word in role["tools"] for name in _TOOLS.get(word, ())), *own]
    uses = _whole(command.words(chosen, "allow"))
    narrowed = [use.partition("(")[0] for use in uses if "(" in use]
    allowed = list(dict.fromkeys([*(name for name in names if name not in narrowed), *uses]))
    built_in = [name.partition("(")[0] for name in names if not name.startswith("mcp__")]
    argv = ["--tools", ",".join(dict.fromkeys(built_in))] if built_in else []
    return [*argv, *(["--allowedTools", *allowed] if allowed else [])]


def _whole(pieces: list[str]) -> list[str]:
    """Commas inside brackets belong to the name: Bash(git log, git diff)."""
    return [name.strip() for name in re.findall(r"(?:[^,(]|\([^)]*\))+", ",".join(pieces)) if name.strip()]


def _dollars(chosen: Options, plan: Assignment) -> str:
    """The least of what is given and what the pipeline sets aside for one attempt: a limit then holds while the
    agent works."""
    figure = plan.step["budget"]["attempt_micro_usd"] or plan.pipeline["budget"]["attempt_micro_usd"]
    amounts = [float(command.word(chosen, "budget"))] if "budget" in chosen else []
    amounts += [figure / 1_000_000] if figure else []
    return f"{min(amounts):.6f}".rstrip("0").rstrip(".") if amounts else ""
