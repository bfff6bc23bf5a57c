"""Claude Code: the user's own `claude -p`, one program per attempt, its events on standard output.

    claude
    claude:model=opus,effort=high,permission-mode=acceptEdits,max-turns=40,budget=2.50,tools=Read,Edit,Bash

The same options in a role's front matter count for that role, where they are not spelled out. Its `tools` become Claude's:
what the role does not name is not there, and what it names is not asked for.

Sessions are named by us, the same after a restart. An attempt that goes on with an interrupted one resumes its session; where
that session is gone, the work starts over.

Rule 1: the last `result` event counts, by `is_error` and `terminal_reason`; not the exit status, and not `subtype`. No such event:
an ERROR, whatever was said.
Rule 2: a reply counts when nothing it started is still at work: with agents in the background it is the last of several.
Rule 3: a usage limit that says when it ends parks; an overloaded or unreachable model may be tried again; anything else is an ERROR.
Rule 4: tokens and money are the sum over all models since the program started, subagents included, as Claude Code counts them.
"""

from __future__ import annotations

import os
import re
import uuid
from typing import Any

from tenuto.agents import options, streams
from tenuto.agents.command import CommandAgent
from tenuto.agents.ending import ending, error, told
from tenuto.agents.limits import judge, resets
from tenuto.agents.reply import heard
from tenuto.core.times import iso, milliseconds

OPTIONS = {
    "model": str, "effort": ("low", "medium", "high", "xhigh", "max"),
    "permission-mode": ("acceptEdits", "auto", "bypassPermissions", "default", "manual", "dontAsk", "plan"),
    "tools": list, "allow": list, "max-turns": int, "budget": float, "program": str,
}  # fmt: skip
_TOOLS = {
    "read": ("Read",), "search": ("Grep", "Glob"), "write": ("Write", "Edit"), "run": ("Bash",),
    "web": ("WebFetch", "WebSearch"), "agents": ("Agent",),
}  # fmt: skip
_NAMESPACE = uuid.UUID("6f0f4f0e-3d0c-5d8a-9a53-7e0c1b7a4f21")
_GONE = "No conversation found"
_LIMIT = re.compile(r"limit reached|hit your [\w -]*limit", re.IGNORECASE)
_OLD_LIMIT = re.compile(r"limit reached\|(\d{10})")
_STATUS = re.compile(r"API Error: (?:[^(\d]*\()?(\d{3})\b")
_PASSING = (408, 409, 429, 500, 502, 503, 504, 529)
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_*", "NODE_EXTRA_CA_CERTS")
# Logins of other clouds are handed over only where Claude Code is told to use that cloud.
_CLOUDS = {"CLAUDE_CODE_USE_BEDROCK": ("AWS_*",), "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_*", "CLOUD_ML_*", "VERTEX_*")}


class ClaudeAgent(CommandAgent):
    reports = ("tokens", "micro_usd")
    # Marks of a Claude Code that we may run inside: a program that finds them takes itself for a part of it.
    barred = (
        "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION*", "CLAUDE_CODE_CHILD*", "CLAUDE_CODE_REMOTE*",
        "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_*", "CLAUDE_ENV_FILE", "CLAUDE_AGENT_SDK*",
    )  # fmt: skip

    def __init__(self, words: str) -> None:
        self.name = f"claude:{words}" if words else "claude"
        self.options = options.read("claude", words, OPTIONS)
        clouds = [name for switch, names in _CLOUDS.items() if os.environ.get(switch) for name in names]
        own = ("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "IS_SANDBOX", "API_TIMEOUT_MS", "MAX_*_TOKENS", "BASH_*", "MCP_*")
        self.environment = (*own, *_NETWORK, *clouds)

    def check(self, role: Any) -> None:
        """Refuse a role whose wishes cannot be met, before anything starts."""
        self._options(role)

    def program(self, role: Any) -> str:
        return str(self._options(role).get("program", "claude"))

    def _options(self, role: Any) -> dict[str, Any]:
        return options.for_role("claude", self.options, role, OPTIONS)

    def can_go_on(self, earlier: str) -> bool:
        return bool(session_of(earlier))

    def launch(self, job: Any) -> dict[str, Any]:
        chosen = self._options(job.role)
        session = session_of(job.earlier)
        argv = [chosen.get("program", "claude"), "-p", "--output-format", "stream-json", "--verbose"]
        argv += ["--resume", session] if session else ["--session-id", session_for(job)]
        argv += ["--permission-mode", chosen.get("permission-mode", "acceptEdits")]
        for name, flag in (("model", "--model"), ("effort", "--effort"), ("max-turns", "--max-turns")):
            if name in chosen:
                argv += [flag, str(chosen[name])]
        dollars = _dollars(chosen, job)
        argv += ["--max-budget-usd", dollars] if dollars else []
        argv += _tools(chosen, job.role)
        return {"argv": argv, "stdin": job.going_on() if session else job.prompt(), "env": {"DISABLE_AUTOUPDATER": "1"}}

    def read(self, job: Any, result: dict[str, Any], reply: str) -> dict[str, Any]:
        stream = streams.read(reply)
        ends = stream.of("result")
        said = str(ends[-1].get("result") or "") if ends else ""
        found = ending(result) or (self._judged(stream, ends[-1], said, result) if ends else _cut(job, result, stream))
        return {**found, "usage": spent(ends), "reply": said, "denied": _denied(ends[-1]) if ends else []}

    def _judged(self, stream: streams.Stream, end: dict[str, Any], said: str, result: dict[str, Any]) -> dict[str, Any]:
        if end.get("is_error"):
            return _failed(stream, end, said, result["ended"])
        if end.get("terminal_reason", "completed") not in ("completed", None):
            return error(f"Claude Code ended early: {end['terminal_reason']}")
        if not said and str(end.get("subtype")).startswith("error_"):  # older versions, for limits of their own
            return error(f"Claude Code ended early: {end['subtype']}")
        busy = _at_work(stream)
        if busy:
            return error(f"Claude Code ended while agents were at work in the background: {', '.join(busy)}")
        return told(**heard(said))


def session_for(job: Any) -> str:
    """The same for the same start of the same attempt, wherever the orchestrator was restarted; never the same for another."""
    place = [job.root, job.run["id"], job.run["created_at"], job.name, str(job.start)]
    return str(uuid.uuid5(_NAMESPACE, "\n".join(place)))


def session_of(earlier: str) -> str:
    """The session that these events belong to; "" where none began, or it is gone."""
    stream = streams.read(earlier)
    if any(_GONE in str(end.get("errors")) for end in stream.of("result")):
        return ""
    begun = stream.of("system", "init")
    found = str(begun[-1].get("session_id", "")) if begun else ""
    return found if re.fullmatch(r"[0-9a-f-]{36}", found) else ""


def spent(ends: list[dict[str, Any]]) -> dict[str, int]:
    """A resumed session's totals hold what was spent before; newer versions say what is new since the last result."""
    if not ends:
        return {}
    fresh = [end.get("model_usage_since_last_result") for end in ends]
    counted = fresh if all(isinstance(one, dict) for one in fresh) else [ends[-1].get("modelUsage")]
    rows = [row for one in counted if isinstance(one, dict) for row in one.values() if isinstance(row, dict)]
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    tokens = sum(_number(row.get(name)) for row in rows for name in names)
    return {"tokens": int(tokens), "micro_usd": round(sum(_number(row.get("costUSD")) for row in rows) * 1_000_000)}


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else 0


def _failed(stream: streams.Stream, end: dict[str, Any], said: str, at: str) -> dict[str, Any]:
    errors = end.get("errors")
    reasons = [said, *map(str, errors if isinstance(errors, list) else []), str(end.get("terminal_reason") or "")]
    why = next(filter(None, reasons), "Claude Code failed and does not say why")
    if _GONE in why:
        return error("the session to go on with is gone", transient=True)
    status = end.get("api_error_status")
    if not isinstance(status, int):  # older versions have it in their words only
        found = _STATUS.match(said)
        status = int(found.group(1)) if found else None
    until = _until(stream, said, at) if status in (429, None) else ""
    if until:
        return error(why, parked_until=until)
    if status is not None or _LIMIT.search(said):
        return error(why, transient=status is None or status in _PASSING, limited=status in (429, None))
    of_model = end.get("terminal_reason") == "api_error" or said.startswith("API Error")
    return judge(why, at) if of_model else error(why)


def _until(stream: streams.Stream, said: str, at: str) -> str:
    """When the usage limit ends; "" where that is not told, or it is over."""
    now = milliseconds(at) or 0
    for event in reversed(stream.of("rate_limit_event")):
        info = event.get("rate_limit_info")
        if isinstance(info, dict) and info.get("status") == "rejected" and isinstance(info.get("resetsAt"), int):
            return iso(info["resetsAt"] * 1000) if info["resetsAt"] * 1000 > now else ""
    found = _OLD_LIMIT.search(said)
    if found:
        return iso(int(found.group(1)) * 1000) if int(found.group(1)) * 1000 > now else ""
    return resets(said, at) if _LIMIT.search(said) else ""


def _denied(end: dict[str, Any]) -> list[str]:
    """What it wanted to do and was not permitted: often why an output is missing."""
    found = end.get("permission_denials")
    denied: dict[str, None] = {}
    for row in found if isinstance(found, list) else []:
        if isinstance(row, dict):
            given = row.get("tool_input")
            words = [str(given[word]) for word in ("file_path", "command") if word in given] if isinstance(given, dict) else []
            denied[" ".join([str(row.get("tool_name")), *words]).partition("\n")[0][:300]] = None
    return list(denied)


def _at_work(stream: streams.Stream) -> list[str]:
    changes = stream.of("system", "background_tasks_changed")
    tasks = changes[-1].get("tasks") if changes else None
    return [str(task.get("description", task.get("task_id"))) for task in tasks or [] if isinstance(task, dict)]


def _cut(job: Any, result: dict[str, Any], stream: streams.Stream) -> dict[str, Any]:
    """No result. Killed from outside, it may go on; else what it printed is wrong, or it could not even begin."""
    if result["signal"] is not None:
        return error(f"Claude Code was ended by signal {result['signal']}", transient=True)
    if stream.events:
        return error("what Claude Code printed ends without a result")
    why = job.errors.strip()[-400:]
    if stream.strange:
        return error(f"what Claude Code printed is no stream of events{': ' if why else ''}{why}")
    return error(f"Claude Code ended with exit status {result['exit_code']} and said nothing{': ' if why else ''}{why}")


def _tools(chosen: dict[str, Any], role: Any) -> list[str]:
    """Which tools there are, and which of them need no permission."""
    if "tools" in chosen:
        names = [] if chosen["tools"] == ["default"] else _whole(chosen["tools"])
    else:
        own = [word for word in role["tools"] if word[:1].isupper() or word.startswith("mcp__")]
        names = [*(name for word in role["tools"] for name in _TOOLS.get(word, ())), *own]
    allowed = list(dict.fromkeys([*names, *_whole(chosen.get("allow", []))]))
    built_in = [name.partition("(")[0] for name in names if not name.startswith("mcp__")]
    argv = ["--tools", ",".join(dict.fromkeys(built_in))] if built_in else []
    return [*argv, *(["--allowedTools", *allowed] if allowed else [])]


def _whole(pieces: list[str]) -> list[str]:
    """Commas inside brackets belong to the name: Bash(git log, git diff)."""
    return [name.strip() for name in re.findall(r"(?:[^,(]|\([^)]*\))+", ",".join(pieces)) if name.strip()]


def _dollars(chosen: dict[str, Any], job: Any) -> str:
    """The least of what is given and what the pipeline sets aside for one attempt: a limit then holds while the agent works."""
    figure = job.step["budget"]["attempt_micro_usd"] or job.pipeline["budget"]["attempt_micro_usd"]
    amounts = [chosen["budget"]] if "budget" in chosen else []
    amounts += [figure / 1_000_000] if figure else []
    return f"{min(amounts):.6f}".rstrip("0").rstrip(".") if amounts else ""

