"""The process behind AcpAgent: one conversation with an agent that speaks the Agent Client Protocol.

    acp_program.py '{"argv": ["gemini", "--acp"], "permit": "edits", "follows": "", "again": 0, ...}'  <prompt

`follows`: a session to take up; the first `again` characters of the input are what is said then, the rest is the whole
prompt.

It prints one JSON object per line on its standard output:

    session     the session's id, before anything is asked of it; `continued`: an earlier one was taken up
    message     what the agent said, a whole message each
    tool        a tool call it announced              permission   what it asked for, and the answer
    note        something that went another way than asked for
    end         why the turn ended, its last message, what it cost, what it was not allowed to do
    error       there is no such end, and why; `code` is the protocol's, `where` the request that failed

It decides nothing about verdicts. It serves files below the work directory only and offers no terminal. On SIGTERM it
cancels the turn, and then it ends.

The agent asks before it uses a tool. No person is there to answer, so the option `permit` decides:

    none     nothing
    edits    read, search and change files below the work directory; no commands, no network
    all      whatever it asks for

Rule 1: a call is judged by its kind and by every path that it names. A change that names no path is rejected: it cannot
be shown to stay inside.
Rule 2: inside is where the path really leads: links are followed. The folders that hold the repository's history and
Tenuto's own settings are never inside.
Rule 3: an unknown kind is rejected. Only `all` allows it.

The wire below is JSON-RPC over the program's standard input and output, one message per line, in one thread. It has no
time limits, because the supervisor of this process has one. A line that is no message is copied to standard error.

This module imports nothing of Tenuto: it is started as a file, without the packages of the installation.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NotRequired, TypedDict

PROTOCOL = 1
Message = dict[str, object]
"""A JSON object of the protocol: a request, an answer, or a part of one."""


class Order(TypedDict):
    """What this process is asked to do: its only argument."""

    argv: list[str]
    permit: str
    follows: str
    again: int
    model: NotRequired[str]
    mode: NotRequired[str]
    auth: NotRequired[str]


PERMITS = ("none", "edits", "all")
_CHANGES = ("edit", "delete", "move")
_LOOKS = ("read", "search", "think")
_PATHS = ("path", "file_path", "filePath", "filepath", "filename", "fileName", "absolute_path", "notebook_path")
_CLOSED = (".git", ".tenuto")


def allowed(permit: str, call: Message, root: str) -> bool:
    if permit != "edits":
        return permit == "all"
    paths = named_paths(call)
    kind = call.get("kind")
    if kind not in _LOOKS and (kind not in _CHANGES or not paths):
        return False
    return all(inside(path, root) is not None for path in paths)


def choose(options: object, allow: bool) -> Message:
    """Once, where that is offered: a later call is judged for itself."""
    wanted = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict) and option.get("kind") == kind and "optionId" in option:
                return {"outcome": "selected", "optionId": option["optionId"]}
    return {"outcome": "cancelled"}


def named_paths(call: Message) -> list[str]:
    """Every path of a tool call: where it says it works, what it shows as a change, what its input says."""
    found: list[object] = [one.get("path") for one in _mappings(call.get("locations"))]
    found += [one.get("path") for one in _mappings(call.get("content")) if one.get("type") == "diff"]
    given = call.get("rawInput")
    for one in [given, *(_mappings(given.get("changes")) if isinstance(given, dict) else [])]:
        if isinstance(one, dict):
            found += [one[name] for name in _PATHS if name in one]
    if isinstance(given, dict) and isinstance(given.get("changes"), dict):
        found += list(given["changes"])
    return list(dict.fromkeys(path for path in found if isinstance(path, str) and path))


def inside(path: str, root: str) -> str | None:
    if "\0" in path:
        return None
    top = os.path.realpath(root)
    real = os.path.realpath(os.path.join(top, path))
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        return None
    if any(part.lower() in _CLOSED for part in os.path.relpath(real, top).split("/")):
        return None
    return real


def _mappings(value: object) -> list[Message]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


# ---- the wire

NOT_FOUND, NO_METHOD, INTERNAL, REFUSED = -32002, -32601, -32603, -32602
_LONGEST = 64 << 20  # bytes of one message
_MOMENT = 1.0  # seconds for the program to wind up after it was asked to stop
_CLOSING = 0.4  # seconds for it to go by itself when its input has ended, and again when it was told to
_CHUNK = 1 << 16


class Failed(Exception):
    """The other side answered with an error, or our own answer is one."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Gone(Exception):
    """The program ended, or cannot be understood any more."""


class Stopped(Exception):
    """We were asked to stop, and the program did not wind up in time."""


class Peer:
    def __init__(
        self,
        argv: list[str],
        environment: dict[str, str],
        answer: Callable[[str, Message], Message],
        hear: Callable[[str, Message], None],
    ) -> None:
        self.answer = answer
        self.hear = hear
        self.stopping: Callable[[], None] = lambda: None
        self._deadline: float | None = None  # there once we were asked to stop
        self._number = 0
        self._results: dict[int, Message] = {}
        self._arrived = b""
        self._leaving = b""
        self._asked, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake)
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._into, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._into, False)
        self._select = selectors.DefaultSelector()
        self._select.register(self._out, selectors.EVENT_READ)
        self._select.register(self._asked, selectors.EVENT_READ)

    def call(self, method: str, params: Message) -> Message:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        while number not in self._results:
            self._turn()
        reply = self._results.pop(number)
        if "error" in reply:
            raise _failure(reply["error"])
        result = reply.get("result")
        return result if isinstance(result, dict) else {}

    def tell(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    def close(self) -> None:
        """Its input ends, then it is told to go; what is still there then is the supervisor's."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(_CLOSING)
            except subprocess.TimeoutExpired:
                pass

    def _turn(self) -> None:
        """Wait for whatever comes next, and deal with it."""
        left = None if self._deadline is None else self._deadline - time.monotonic()
        if left is not None and left <= 0:
            raise Stopped
        for key, mask in self._select.select(left):
            if key.fd == self._asked:
                self._stop()
            elif mask & selectors.EVENT_WRITE:
                self._flush()
            elif key.fd == self._out:
                self._read()

    def _stop(self) -> None:
        if signal.SIGTERM in os.read(self._asked, 64) and self._deadline is None:
            self._deadline = time.monotonic() + _MOMENT
            self.stopping()

    def _send(self, message: Message) -> None:
        self._leaving += json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        """As much as the pipe takes now: the program may be waiting for us to read before it reads."""
        try:
            while self._leaving:
                self._leaving = self._leaving[os.write(self._into, self._leaving[:_CHUNK]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._leaving = b""  # it has ended, or will: reading tells
        known = self._into in self._select.get_map()
        if self._leaving and not known:
            self._select.register(self._into, selectors.EVENT_WRITE)
        elif known and not self._leaving:
            self._select.unregister(self._into)

    def _read(self) -> None:
        chunk = os.read(self._out, _CHUNK)
        if not chunk:
            raise Gone(self._ending())
        *lines, self._arrived = (self._arrived + chunk).split(b"\n")
        if len(self._arrived) > _LONGEST:
            raise Gone("it sent a line that does not end")
        for line in lines:
            self._take(line)

    def _ending(self) -> str:
        try:
            status = self.process.wait(_MOMENT)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        return f"it was ended by signal {-status}" if status < 0 else f"it ended with exit status {status}"

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            if line.strip():
                sys.stderr.buffer.write(line + b"\n")
                sys.stderr.buffer.flush()
        elif "method" not in message:
            # An error without a number is about what we asked last.
            number = message.get("id") if "error" not in message else message.get("id") or self._number
            if isinstance(number, int):
                self._results[number] = message
        elif "id" in message:
            self._send({"id": message["id"], **self._reply(message)})
        else:
            self.hear(str(message["method"]), _params(message))

    def _reply(self, message: Message) -> Message:
        try:
            return {"result": self.answer(str(message["method"]), _params(message))}
        except Failed as problem:
            return {"error": {"code": problem.code, "message": problem.message}}
        except Exception as problem:  # noqa: BLE001 - a request that we cannot deal with must not end the conversation
            return {"error": {"code": INTERNAL, "message": f"it cannot be answered: {problem}"}}


def _params(message: Message) -> Message:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def _failure(error: object) -> Failed:
    if not isinstance(error, dict):
        return Failed(INTERNAL, str(error))
    code = error.get("code")
    return Failed(code if isinstance(code, int) else INTERNAL, str(error.get("message", "")), error.get("data"))


# ---- the conversation


class Conversation:
    """With one agent, about one prompt, below one directory."""

    def __init__(self, order: Order, prompts: str, root: str, environment: dict[str, str]) -> None:
        self.order = order
        self.again, self.prompt = prompts[: order["again"]], prompts[order["again"] :]
        self.root = root
        self.session = ""
        self.where = "start"
        self.listening = False  # a session that is taken up again repeats what was said before
        self.message: object = None  # its id, where the agent gives one
        self.words: list[str] = []
        self.last = ""
        self.calls: dict[str, Message] = {}
        self.rejected: list[str] = []
        self.usage: dict[str, int] = {}
        self.peer = Peer(order["argv"], {**environment, "PWD": root}, self.answer, self.hear)
        self.peer.stopping = self.cancel

    def hold(self) -> Message:
        """From the first word to the end of the turn."""
        # Writes pass through us, where they are bounded. Reading is not offered: there is no unsaved text here, and
        # some agents take "no such file" through the protocol for a failure.
        able = {"fs": {"readTextFile": False, "writeTextFile": self.order["permit"] != "none"}, "terminal": False}
        agent = self.call("initialize", protocolVersion=PROTOCOL, clientCapabilities=able, clientInfo=_ourselves())
        if agent.get("protocolVersion") != PROTOCOL:
            raise Gone(
                f"it speaks version {agent.get('protocolVersion')} of the protocol, and Tenuto version {PROTOCOL}"
            )
        if self.order.get("auth"):
            self.call("authenticate", methodId=self.order["auth"])
        continued = self.take_up(_part(agent, "agentCapabilities"))
        opened = continued if continued is not None else self.begin()
        facts = {"program": self.order["argv"][0], "agent": agent.get("agentInfo") or {}}
        say("session", id=self.session, continued=continued is not None, **facts)
        self.adjust(opened)
        self.listening = True
        text = self.again if continued is not None else self.prompt
        done = self.call("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text}])
        self.finish_message()
        self.count(done)
        return done

    def call(self, method: str, **params: object) -> Message:
        self.where = method
        return self.peer.call(method, params)

    def begin(self) -> Message:
        opened = self.call("session/new", cwd=self.root, mcpServers=[])
        self.session = str(opened.get("sessionId", ""))
        return opened

    def take_up(self, able: Message) -> Message | None:
        """The session of an attempt that was interrupted; None where there is none, or it cannot be taken up."""
        earlier = self.order.get("follows")
        if not earlier:
            return None
        resumes = "resume" in _part(able, "sessionCapabilities")
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

    def adjust(self, opened: Message) -> None:
        """The mode and the model that were asked for. What the agent does not offer is its error to tell, not ours
        to skip."""
        if self.order.get("mode"):
            self.call("session/set_mode", sessionId=self.session, modeId=self.order["mode"])
        model = self.order.get("model")
        if not model:
            return
        for option in _mappings(opened.get("configOptions")):
            if option.get("category") == "model" or option.get("id") == "model":
                name = option["id"]
                self.call("session/set_config_option", sessionId=self.session, configId=name, value=model)
                return
        self.call("session/set_model", sessionId=self.session, modelId=model)

    def cancel(self) -> None:
        if self.session:
            self.peer.tell("session/cancel", {"sessionId": self.session})

    # ---- what it reports

    def hear(self, method: str, params: Message) -> None:
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
                amount = cost.get("amount")
                if cost.get("currency") == "USD" and isinstance(amount, int | float):
                    self.usage["micro_usd"] = round(amount * 1_000_000)

    def note_call(self, update: Message) -> Message:
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

    def count(self, done: Message) -> None:
        """Tokens, where the agent reports them: in the protocol's place, or in Gemini's."""
        total = _part(done, "usage").get("totalTokens")
        if total is None:
            spent = _part(_part(_part(done, "_meta"), "quota"), "token_count")
            amounts = [spent.get(name) for name in ("input_tokens", "output_tokens")]
            total = sum(amount for amount in amounts if isinstance(amount, int))
        if isinstance(total, int) and total > 0:
            self.usage["tokens"] = total

    # ---- what it asks

    def answer(self, method: str, params: Message) -> Message:
        match method:
            case "session/request_permission":
                return {"outcome": self.permit(params)}
            case "fs/read_text_file":
                return {"content": self.read(params)}
            case "fs/write_text_file":
                self.write(params)
                return {}
        raise Failed(NO_METHOD, f"{method} is not offered")

    def permit(self, params: Message) -> Message:
        self.finish_message()
        asked = params.get("toolCall")
        call = self.note_call(asked) if isinstance(asked, dict) else {}
        yes = allowed(self.order["permit"], call, self.root)
        command = _part(call, "rawInput").get("command")
        title = command if isinstance(command, str) else str(call.get("title") or call.get("kind") or "a tool")
        if not yes:
            self.rejected.append(title)
        say("permission", title=title, kind=call.get("kind", ""), allowed=yes)
        return choose(params.get("options"), yes)

    def read(self, params: Message) -> str:
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
        first = line if isinstance(line, int) else 1
        lines = text.splitlines(keepends=True)[max(0, (first or 1) - 1) :]
        return "".join(lines[:limit] if isinstance(limit, int) else lines)

    def write(self, params: Message) -> None:
        path = self.place(params)
        if self.order["permit"] == "none":
            raise Failed(REFUSED, "this agent may not write files")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(str(params.get("content", "")))

    def place(self, params: Message) -> str:
        path = inside(str(params.get("path", "")), self.root)
        if path is None:
            self.rejected.append(f"the file {params.get('path')}")
            raise Failed(REFUSED, f"{params.get('path')} is outside of the work directory")
        return path


def say(what: str, **facts: object) -> None:
    data = json.dumps({"type": what, **facts}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _part(value: Message, name: str) -> Message:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _ourselves() -> dict[str, str]:
    return {"name": "tenuto", "title": "Tenuto", "version": "1"}


def main(order: Order) -> int:
    prompts = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        talk = Conversation(order, prompts, os.getcwd(), dict(os.environ))
    except OSError as problem:
        say("error", where="start", code=None, text=f"cannot start {order['argv'][0]!r}: {problem.strerror}")
        return 0
    facts: Message = {}
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
