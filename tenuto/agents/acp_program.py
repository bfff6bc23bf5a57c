"""The process behind AcpAgent: one conversation with an agent that speaks the Agent Client Protocol.

    acp_program.py '{"argv": ["gemini", "--acp"], "permit": "edits", "follows": "", "again": 0, "model": "", ...}'  <prompt

`follows`: a session to take up; the first `again` characters of the input are what is said then, the rest is the whole prompt.

What it tells on its standard output, one JSON object per line:

    session     the session's id, before anything is asked of it; `continued`: an earlier one was taken up
    message     what the agent said, a whole message each
    tool        a tool call it announced              permission   what it asked for, and the answer
    note        something that went another way than asked for
    end         why the turn ended, its last message, what it cost, what it was not allowed to do
    error       there is no such end, and why; `code` is the protocol's, `where` the request that failed

It decides nothing about verdicts. It serves files below the work directory only, offers no terminal, and on SIGTERM
cancels the turn before it goes.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tenuto.agents.acp_wire import NO_METHOD, NOT_FOUND, REFUSED, Failed, Gone, Peer, Stopped
from tenuto.agents.permits import allowed, choose, inside

PROTOCOL = 1


class Conversation:
    """With one agent, about one prompt, below one directory."""

    def __init__(self, told: dict[str, Any], prompts: str, root: str, environment: dict[str, str]) -> None:
        self.told = told
        self.again, self.prompt = prompts[: told["again"]], prompts[told["again"] :]
        self.root = root
        self.session = ""
        self.where = "start"
        self.listening = False  # a session that is taken up again repeats what was said before
        self.message: Any = None  # its id, where the agent gives one
        self.words: list[str] = []
        self.last = ""
        self.calls: dict[str, dict[str, Any]] = {}
        self.rejected: list[str] = []
        self.usage: dict[str, int] = {}
        self.peer = Peer(told["argv"], {**environment, "PWD": root}, self.answer, self.hear)
        self.peer.stopping = self.cancel

    def hold(self) -> dict[str, Any]:
        """From the first word to the end of the turn."""
        # Writes pass through us, where they are bounded. Reading is not offered: there is no unsaved text here, and
        # some agents take "no such file" through the protocol for a failure.
        able = {"fs": {"readTextFile": False, "writeTextFile": self.told["permit"] != "none"}, "terminal": False}
        agent = self.call("initialize", protocolVersion=PROTOCOL, clientCapabilities=able, clientInfo=_ourselves())
        if agent.get("protocolVersion") != PROTOCOL:
            raise Gone(f"it speaks version {agent.get('protocolVersion')} of the protocol, and Tenuto version {PROTOCOL}")
        if self.told.get("auth"):
            self.call("authenticate", methodId=self.told["auth"])
        continued = self.take_up(agent.get("agentCapabilities") or {})
        opened = continued if continued is not None else self.begin()
        facts = {"program": self.told["argv"][0], "agent": agent.get("agentInfo") or {}}
        say("session", id=self.session, continued=continued is not None, **facts)
        self.adjust(opened)
        self.listening = True
        text = self.again if continued is not None else self.prompt
        done = self.call("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text}])
        self.finish_message()
        self.count(done)
        return done

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.where = method
        return self.peer.call(method, params)

    def begin(self) -> dict[str, Any]:
        opened = self.call("session/new", cwd=self.root, mcpServers=[])
        self.session = str(opened.get("sessionId", ""))
        return opened

    def take_up(self, able: dict[str, Any]) -> dict[str, Any] | None:
        """The session of an attempt that was interrupted; None where there is none, or it cannot be taken up."""
        earlier = self.told.get("follows")
        if not earlier:
            return None
        resumes = "resume" in (able.get("sessionCapabilities") or {})
        if not resumes and not able.get("loadSession"):
            say("note", text="this agent cannot take up a session: it starts over")
            return None
        self.session = earlier
        try:
            way = "session/resume" if resumes else "session/load"
            return self.call(way, sessionId=earlier, cwd=self.root, mcpServers=[])
        except Failed as problem:
            why = _part({"data": problem.data}, "data").get("details") or problem.message
            say("note", text=f"session {earlier} cannot be taken up ({why}): it starts over")
            self.session = ""
            return None

    def adjust(self, opened: dict[str, Any]) -> None:
        """The mode and the model that were asked for. What the agent does not offer is its error to tell, not ours to skip."""
        if self.told.get("mode"):
            self.call("session/set_mode", sessionId=self.session, modeId=self.told["mode"])
        model = self.told.get("model")
        if not model:
            return
        for option in opened.get("configOptions") or []:
            if option.get("category") == "model" or option.get("id") == "model":
                name = option["id"]
                self.call("session/set_config_option", sessionId=self.session, configId=name, value=model)
                return
        self.call("session/set_model", sessionId=self.session, modelId=model)

    def cancel(self) -> None:
        if self.session:
            self.peer.tell("session/cancel", {"sessionId": self.session})

    # ---- what it tells

    def hear(self, method: str, params: dict[str, Any]) -> None:
        update = params.get("update")
        if method != "session/update" or not isinstance(update, dict):
            return
        if self.listening and params.get("sessionId") != self.session:
            return  # an agent of the agent's own: it reports to that one, not to us
        match update.get("sessionUpdate"):
            case "agent_message_chunk" if self.listening:
                content = _part(update, "content")
                if update.get("messageId") != self.message:
                    self.finish_message()
                    self.message = update.get("messageId")
                self.words.append(str(content.get("text", "")) if content.get("type") == "text" else "")
            case "tool_call" | "tool_call_update" as news:
                self.note_call(update)
                if self.listening and (news == "tool_call" or update.get("status") in ("completed", "failed")):
                    self.finish_message()  # what is said after a tool was used is another message
                if self.listening and news == "tool_call":
                    say("tool", title=update.get("title", ""), kind=update.get("kind", ""))
            case "usage_update":
                cost = _part(update, "cost")
                if cost.get("currency") == "USD" and isinstance(cost.get("amount"), int | float):
                    self.usage["micro_usd"] = round(cost["amount"] * 1_000_000)

    def note_call(self, update: dict[str, Any]) -> dict[str, Any]:
        """What is known of a call so far: later news say only what is new."""
        name = str(update.get("toolCallId", ""))
        fresh = {key: value for key, value in update.items() if value not in (None, [], {})}
        self.calls[name] = {**self.calls.get(name, {}), **fresh}
        return self.calls[name]

    def finish_message(self) -> None:
        said = "".join(self.words)
        self.words.clear()
        if said.strip():
            self.last = said
            say("message", text=said)

    def count(self, done: dict[str, Any]) -> None:
        """Tokens, where they are told: in the protocol's place, or in Gemini's."""
        told = _part(done, "usage").get("totalTokens")
        if told is None:
            spent = _part(_part(_part(done, "_meta"), "quota"), "token_count")
            told = sum(spent[name] for name in ("input_tokens", "output_tokens") if isinstance(spent.get(name), int))
        if isinstance(told, int) and told > 0:
            self.usage["tokens"] = told

    # ---- what it asks

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "session/request_permission":
                return {"outcome": self.permit(params)}
            case "fs/read_text_file":
                return {"content": self.read(params)}
            case "fs/write_text_file":
                self.write(params)
                return {}
        raise Failed(NO_METHOD, f"{method} is not offered")

    def permit(self, params: dict[str, Any]) -> dict[str, Any]:
        self.finish_message()
        asked = params.get("toolCall")
        call = self.note_call(asked) if isinstance(asked, dict) else {}
        yes = allowed(self.told["permit"], call, self.root)
        command = _part(call, "rawInput").get("command")
        title = command if isinstance(command, str) else str(call.get("title") or call.get("kind") or "a tool")
        if not yes:
            self.rejected.append(title)
        say("permission", title=title, kind=call.get("kind", ""), allowed=yes)
        return choose(params.get("options"), yes)

    def read(self, params: dict[str, Any]) -> str:
        path = self.place(params)
        try:
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
        except FileNotFoundError:
            raise Failed(NOT_FOUND, f"ENOENT: there is no file {params['path']}") from None
        except (OSError, UnicodeDecodeError) as problem:
            raise Failed(REFUSED, f"{params['path']} cannot be read as text: {problem}") from None
        line, limit = params.get("line"), params.get("limit")
        if line is None and limit is None:
            return text
        lines = text.splitlines(keepends=True)[max(0, (line or 1) - 1) :]
        return "".join(lines if limit is None else lines[:limit])

    def write(self, params: dict[str, Any]) -> None:
        path = self.place(params)
        if self.told["permit"] == "none":
            raise Failed(REFUSED, "this agent may not write files")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(params.get("content", ""))

    def place(self, params: dict[str, Any]) -> str:
        path = inside(str(params.get("path", "")), self.root)
        if path is None:
            self.rejected.append(f"the file {params.get('path')}")
            raise Failed(REFUSED, f"{params.get('path')} is outside of the work directory")
        return path


def say(what: str, **facts: Any) -> None:
    data = json.dumps({"type": what, **facts}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _part(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _ourselves() -> dict[str, str]:
    return {"name": "tenuto", "title": "Tenuto", "version": "1"}


def main(told: dict[str, Any]) -> int:
    prompts = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        talk = Conversation(told, prompts, os.getcwd(), dict(os.environ))
    except OSError as problem:
        say("error", where="start", code=None, text=f"cannot start {told['argv'][0]!r}: {problem.strerror}")
        return 0
    facts: dict[str, Any] = {}
    try:
        done = talk.hold()
        say("end", stop=done.get("stopReason", ""), text=talk.last, usage=talk.usage, rejected=talk.rejected)
    except Failed as problem:
        facts = {"code": problem.code, "text": problem.message, "data": problem.data}
    except Gone as problem:
        facts = {"code": None, "text": str(problem)}
    except Stopped:
        facts = {"code": None, "text": "it did not end its turn when it was asked to"}
    if facts:
        talk.finish_message()
        say("error", where=talk.where, usage=talk.usage, rejected=talk.rejected, **facts)
    talk.peer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
