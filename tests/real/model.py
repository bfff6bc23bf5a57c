"""A model that says what a script tells it to: one server on this machine for every agent program.

    with Model({"greet": [
        [{"tool": "Write", "input": {"file_path": "a.txt", "content": "hi"}}],     # first turn: a tool call
        ["DONE: greeted"],                                                        # second turn: text
    ]}) as model:
        ...start a program with model.url and a prompt that holds [[script:greet]]...
        model.wait_for("greet", 1)       # until turn 1 was asked for; then: model.requests, model.count("greet", 1)

It speaks Anthropic Messages (`url`), OpenAI Responses and Chat (`url + "/v1"`) and Gemini (`url`), streamed or whole.

Nothing is remembered of a conversation. The newest user text with a marker `[[script:NAME]]` names the script, the
number of model turns after it is the turn: requests that are sent again, resumed sessions and parallel agents all get
the right one. `choose(text)` may name the script instead, for prompts that hold no marker.

A script is a list of turns, or a function `(Asked) -> turn`. A turn is a list of blocks, a function, or a record:

    say      blocks: a string, {"tool", "input"} (a tool call), {"tool", "raw"} (Codex: arguments as text),
             {"thinking"},
             {"search"} and {"tool", "namespace", "input"} (Codex: tools of servers)
    until    answer when this file exists
    usage    {"input_tokens", "output_tokens"}
    fail     {"status", "type"?, "message"?, "more"?, "headers"?, "times"?}: an error instead; `times`: only the first
             so many
    cut      True: the connection ends half-way through the answer
    garbage  True: what comes is nothing that the protocol knows
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.real import wire

_MARK = re.compile(r"\[\[script:([\w.-]+)\]\]")
_PATIENCE = 280.0


@dataclass
class Asked:
    """What a request says, whatever its protocol."""

    script: str
    turn: int
    text: str
    """The user text that names the script."""
    results: list[str]
    """What tools answered since the beginning, oldest first."""
    tools: list[str]
    """Names of the tools that may be called; empty: a side call, for a title or the like."""
    system: str = ""
    latest: str = ""
    """The newest user text."""


@dataclass
class Request:
    protocol: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    asked: Asked
    time: int = field(default=1)
    """The how-many-th request for this turn."""


class Model:
    def __init__(self, scripts: dict[str, Any], choose: Callable[[str], str | None] | None = None) -> None:
        self.scripts = scripts
        self.choose = choose or _marked
        self.requests: list[Request] = []
        self._news = threading.Condition()
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def count(self, script: str, turn: int | None = None) -> int:
        """How often a turn (any turn) of a script was asked for."""
        asked = [one.asked for one in list(self.requests)]
        return sum(one.script == script and turn in (None, one.turn) for one in asked)

    def wait_for(self, script: str, turn: int = 0, times: int = 1) -> Request:
        """Until the turn was asked for that often; the request."""
        with self._news:
            if not self._news.wait_for(lambda: self.count(script, turn) >= times, _PATIENCE):
                seen = [(one.asked.script, one.asked.turn) for one in self.requests]
                raise TimeoutError(f"turn {turn} of {script} was not asked for; these were: {seen}")
        found = [one for one in self.requests if (one.asked.script, one.asked.turn) == (script, turn)]
        return found[times - 1]

    def wait_until_asked(self, fits: Callable[[Request], bool]) -> Request:
        """Until a request that fits was made; the request."""
        with self._news:
            if not self._news.wait_for(lambda: any(fits(one) for one in self.requests), _PATIENCE):
                raise TimeoutError(f"nothing that fits was asked for, in {len(self.requests)} requests")
        return next(one for one in self.requests if fits(one))

    def take(self, protocol: str, path: str, headers: dict[str, str], body: dict[str, Any]) -> Request:
        said = wire.READ[protocol](body)
        asked = self._understood(said)
        with self._news:
            request = Request(protocol, path, headers, body, asked, self.count(asked.script, asked.turn) + 1)
            self.requests.append(request)
            self._news.notify_all()
        return request

    def _understood(self, said: wire.Said) -> Asked:
        users = [number for number, (who, _) in enumerate(said.items) if who == "user"]
        results = [text for who, text in said.items if who == "tool"]
        latest = said.items[users[-1]][1] if users else ""
        for number in reversed(users):
            script = self.choose(said.items[number][1])
            if script is not None:
                turn = sum(who == "model" for who, _ in said.items[number:])
                return Asked(script, turn, said.items[number][1], results, said.tools, said.system, latest)
        return Asked("", 0, latest, results, said.tools, said.system, latest)

    def answer(self, request: Request) -> dict[str, Any]:
        """The turn that this request gets, as a record."""
        asked = request.asked
        script = self.scripts.get(asked.script, [["OK"]] if not asked.script else None)
        if script is None:
            return {"say": [f"ERROR: there is no script {asked.script}"]}
        turn = script
        if isinstance(script, list):
            turn = (
                script[asked.turn] if asked.turn < len(script) else [f"ERROR: {asked.script} has no turn {asked.turn}"]
            )
        if callable(turn):
            turn = turn(asked)
        record: dict[str, Any] = (
            dict(turn) if isinstance(turn, dict) else {"say": turn if isinstance(turn, list) else [turn]}
        )
        record.setdefault("say", [])
        if "fail" in record and request.time > record["fail"].get("times", request.time):
            del record["fail"]
        if not asked.tools:
            record["say"] = [one for one in record["say"] if "tool" not in one] or ["a title"]
        return record

    def wait_until(self, path: str | Path) -> None:
        while not Path(path).exists() and not self._closed.wait(0.02):
            pass


def _marked(text: str) -> str | None:
    found = _MARK.findall(text)
    return found[-1] if found else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._whole(200, None)

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/models"):
            self._whole(200, {"object": "list", "has_more": False, "data": []})
        else:
            self._whole(404, {"error": {"message": f"there is nothing at {self.path}"}})

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            number = len(json.dumps(body)) // 4
            self._whole(200, {"input_tokens": number, "totalTokens": number})
            return
        protocol = wire.protocol_of(path)
        if protocol is None:
            self._whole(404, {"error": {"message": f"there is nothing at {path}"}})
            return
        body.setdefault("stream", ":streamGenerateContent" in path)
        request = self.model.take(protocol, path, dict(self.headers.items()), body)
        turn = self.model.answer(request)
        if "until" in turn:
            self.model.wait_until(turn["until"])
        try:
            self._reply(request, turn)
        except OSError:  # the program was killed while it waited for us
            self.close_connection = True

    def _reply(self, request: Request, turn: dict[str, Any]) -> None:
        if "fail" in turn:
            fail = turn["fail"]
            error = {
                "type": fail.get("type", "api_error"),
                "message": fail.get("message", "a scripted failure"),
                **fail.get("more", {}),
            }
            self._whole(fail["status"], {"type": "error", "error": error}, fail.get("headers", {}))
            return
        number = len(self.model.requests)
        frames = wire.WRITE[request.protocol](request.body, turn, f"{number:05d}")
        if not request.body["stream"]:
            self._unstreamed(turn, json.dumps(frames["whole"]))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        events = frames["events"]
        if turn.get("garbage"):
            events = [("message_start", "{this is not what was agreed on")]
        elif turn.get("cut"):
            events = events[: len(events) // 2]
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
        self.wfile.flush()

    def _unstreamed(self, turn: dict[str, Any], text: str) -> None:
        """Programs ask again without a stream when one broke: that breaks, too."""
        if turn.get("garbage"):
            text = "{this is not what was agreed on"
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[: len(text) // 2 if turn.get("cut") else None].encode())
        self.close_connection = bool(turn.get("cut"))

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _whole(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        text = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        for name, said in (headers or {}).items():
            self.send_header(name, said)
        self.end_headers()
        self.wfile.write(text)
