"""Any agent that speaks the Agent Client Protocol: Gemini CLI, OpenCode, Copilot CLI, the bridges to Claude Code and
Codex.

    acp:gemini                              a program that is known, with the words it needs
    acp:./my-agent --acp                    any command
    acp:permit=all model=m1 opencode acp    options stand before the command

    permit    what it may do when it asks: edits (below the work directory, the default), all, none; the rules are in
              acp_program.py
    model, mode     as the agent names them; auth    the way to log in, where it wants to be told

The conversation is held by a program of our own (acp_program.py), which the supervisor starts; this module says what to
start, and what came of it. An attempt that goes on with an interrupted one takes up its session, where the agent can.

Rule 1: only a turn that the agent ended by itself has a reply: its last message. A turn that was cut (by a limit of
tokens or of requests, by a refusal) is an ERROR, whatever was said.
Rule 2: what a program tells of its use is charged; a unit is promised only for programs that are known to tell all of
it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tenuto.agents import command
from tenuto.agents.acp_program import PERMITS
from tenuto.agents.command import (
    CommandAgent,
    Event,
    broken,
    cut_short,
    error,
    judge,
    mapping,
    narrate_events,
    narrate_tool,
    read_events,
    replied,
)
from tenuto.agents.reply import parse_verdict
from tenuto.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.agents.command import Options, Shape
    from tenuto.core.pipeline.records import Role
    from tenuto.core.records.action import Ending, Launch, Reply
    from tenuto.ports import Assignment

OPTIONS: dict[str, Shape] = {"permit": PERMITS, "model": str, "mode": str, "auth": str}
_EVERYWHERE = ("*_PROXY", "*_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_*", "XDG_*")
_LOGIN = -32000  # the protocol's code for "log in first"
_SHORT = 1000  # characters: a bridge may hand on a model's refusal as if the agent had said it
_STOPS = {
    "max_tokens": "the model's limit of tokens was reached",
    "max_turn_requests": "the agent's limit of requests in a turn was reached",
    "refusal": "the model refused to go on",
    "cancelled": "it was cancelled",
}


class Known(NamedTuple):
    """A program that is known by its name."""

    words: tuple[str, ...]  # what makes it speak the protocol
    environment: tuple[str, ...]
    reports: tuple[str, ...]


PROGRAMS = {
    "gemini": Known(("--acp",), ("GEMINI_*", "GOOGLE_*"), ("tokens",)),
    # OpenCode tells the tokens of the last request of a turn only: that is no measure.
    "opencode": Known(("acp",), ("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*", "GEMINI_*", "GOOGLE_*"), ()),
    "copilot": Known(("--acp",), ("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"), ("tokens",)),
    "claude-agent-acp": Known((), ("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "IS_SANDBOX"), ("tokens", "micro_usd")),
    "codex-acp": Known((), ("CODEX_*", "OPENAI_*", "NO_BROWSER"), ("tokens",)),
}


class AcpAgent(CommandAgent):
    # Marks of an agent that we may run inside.
    barred: tuple[str, ...] = (
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_SESSION*",
        "CLAUDE_CODE_CHILD*",
        "CLAUDE_CODE_REMOTE*",
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_PLUGIN_*",
        "CODEX_SANDBOX*",
        "CODEX_THREAD_ID",
        "GEMINI_CLI",
        "GEMINI_SESSION_ID",
        "COPILOT_AGENT_SESSION_ID",
        "OPENCODE_PID",
        "OPENCODE_PROCESS_ROLE",
        "OPENCODE_RUN_ID",
        "OPENCODE_SERVER_*",
        "OPENCODE_SESSION_ID",
    )

    def __init__(self, words: str) -> None:
        if not words.strip():
            raise BadInput("bad-agent", "acp: needs a program", f"for example acp:gemini; known: {', '.join(PROGRAMS)}")
        super().__init__(words)
        self.name = f"acp:{words}"
        given = []
        while self.argv and "=" in self.argv[0] and "/" not in self.argv[0].partition("=")[0]:
            given.append(self.argv.pop(0))
        self.options = command.read("acp", ",".join(given), OPTIONS)
        if not self.argv:
            raise BadInput(
                "bad-agent", f"'{self.name}' names no program", f"for example acp:gemini; known: {', '.join(PROGRAMS)}"
            )
        known = PROGRAMS.get(os.path.basename(self.argv[0]))
        if known and len(self.argv) == 1:
            self.argv += known.words
        self.environment = (*_EVERYWHERE, *(known.environment if known else ()))
        self.reports = known.reports if known else ()
        self.charges = known.reports if known else ("tokens", "micro_usd")

    def can_go_on(self, earlier: str) -> bool:
        return bool(self._session(earlier))

    def check(self, role: Role | None) -> None:
        """Refuse a role whose wishes cannot be met, before anything starts."""
        self._options(role)

    def _options(self, role: Role | None) -> Options:
        return command.for_role("acp", self.options, role, OPTIONS)

    def launch(self, plan: Assignment) -> Launch:
        follows = self._session(plan.earlier)
        # Whether the session is still there only the agent knows: the whole prompt comes along, for a fresh one.
        again = plan.going_on() if follows else ""
        conversation = {
            "permit": "edits",
            **self._options(plan.role),
            "argv": self.argv,
            "follows": follows,
            "again": len(again),
        }
        program = str(Path(__file__).with_name("acp_program.py"))
        return {
            "argv": [sys.executable, "-I", "-S", program, json.dumps(conversation)],
            "stdin": again + plan.prompt(),
            "env": {},
        }

    def _session(self, earlier: str) -> str:
        """The session that this program was in when it was interrupted."""
        sessions = [one for one in read_events(earlier).of("session") if one.get("program") == self.argv[0]]
        return str(sessions[-1].get("id", "")) if sessions else ""

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        stream = read_events(output)
        ends = [*stream.of("end"), *stream.of("error")]
        last = ends[-1] if ends else {}
        messages = [str(one.get("text", "")) for one in stream.of("message")]
        reply = cut_short(ending) or self._judged(plan, ending, last)
        rejected = last.get("rejected")
        if reply["verdict"] == "ERROR" and rejected and isinstance(rejected, list):
            reply["summary"] += _rejections(rejected, command.word(self._options(plan.role), "permit", "edits"))
        amounts = mapping(last.get("usage"))
        usage = {unit: amount for unit in self.charges if isinstance(amount := amounts.get(unit), int)}
        return {**reply, "usage": usage, "text": messages[-1] if messages else ""}

    def _judged(self, plan: Assignment, ending: Ending, last: Event) -> Reply:
        match last.get("type"):
            case "end":
                return _ended(ending, str(last.get("stop", "")), str(last.get("text", "")))
            case "error":
                return self._failed(plan, ending, last)
        if ending["signal"] is not None:  # from outside: it may go on
            return error(f"the conversation was ended by signal {ending['signal']}", transient=True)
        return broken(ending) or error("the conversation was cut off before its end")

    def _failed(self, plan: Assignment, ending: Ending, last: Event) -> Reply:
        program, why = self.argv[0], str(last.get("text", ""))
        if last.get("code") == _LOGIN:
            return error(f"{program} wants a login first ({why}): start it once by hand, or set its key")
        if last.get("where") == "start":
            return error(f"the program could not be started: {why}")
        if last.get("code") is None and plan.errors.strip():
            why += f": {plan.errors.strip().rpartition(chr(10))[2]}"
        return judge(f"{program}, at {last.get('where')}: {why}{_details(last.get('data'))}", ending["ended"])

    @staticmethod
    def narrate(line: str) -> list[str]:
        return narrate_events(line, _narrate)


def _narrate(event: Event) -> Iterator[str]:
    match event.get("type"):
        case "message":
            yield from str(event.get("text", "")).splitlines()
        case "tool":
            yield narrate_tool(str(event.get("kind") or "tool"), {"description": str(event.get("title", ""))})
        case "permission" if not event.get("allowed"):
            yield narrate_tool("not permitted:", {"description": str(event.get("title", ""))})
        case "error":
            yield f"[it failed: {event.get('text')}]"


def _ended(ending: Ending, stop: str, text: str) -> Reply:
    if stop != "end_turn":
        return error(_STOPS.get(stop, f"it stopped with '{stop}'"))
    reply = replied(text)
    own_word = reply["verdict"] != "ERROR" or "problem" not in parse_verdict(text) or bool(reply.get("parked_until"))
    if own_word or not 0 < len(text) < _SHORT:
        return reply
    refusal = judge(text, ending["ended"])
    if refusal["transient"] or refusal.get("parked_until"):
        return refusal
    return error(f"{reply['summary']}; it said: {' '.join(text.split())}")


def _details(data: object) -> str:
    if isinstance(data, dict):
        data = data.get("details") or data.get("message") or ""
    return f" ({data})" if data and isinstance(data, str) else ""


def _rejections(titles: list[object], permit: str) -> str:
    many = f"{len(titles)} requests, the first" if len(titles) > 1 else "a request"
    return f" [permit={permit} rejected {many}: {str(titles[0])[:120]}]"
