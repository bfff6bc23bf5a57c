"""A small agent that speaks the Agent Client Protocol and plays one scene: acp_player.py SCENE.

It writes what it was sent to the file `heard.jsonl`, one message per line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

SESSION = "session-1"


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def take() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with open("heard.jsonl", "a", encoding="utf-8") as file:
        file.write(line)
    message: dict[str, Any] = json.loads(line)
    return message


def expect(method: str, **result: Any) -> dict[str, Any]:
    message = take()
    assert message["method"] == method, message
    send(id=message["id"], result=result)
    return message


def update(news: str, **facts: Any) -> None:
    send(method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": news, **facts}})


def talk(text: str, **more: Any) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text}, **more)


def ask(number: int, method: str, **params: Any) -> dict[str, Any]:
    send(id=number, method=method, params={"sessionId": SESSION, **params})
    return take()


def begin(**capabilities: Any) -> None:
    expect(
        "initialize", protocolVersion=1, agentCapabilities=capabilities, agentInfo={"name": "player", "version": "1"}
    )


def prompted() -> int:
    message = take()
    assert message["method"] == "session/prompt", message
    number: int = message["id"]
    return number


def open_session(**more: Any) -> int:
    begin()
    expect("session/new", sessionId=SESSION, **more)
    return prompted()


def end(number: int, stop: str = "end_turn", **more: Any) -> None:
    send(id=number, result={"stopReason": stop, **more})


OPTIONS = [
    {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]


def works() -> None:
    number = open_session()
    talk("I will ")
    talk("write it.")
    update("tool_call", toolCallId="t1", title="Write a.txt", kind="edit", status="pending")
    update("usage_update", used=10, size=100, cost={"amount": 0.0123, "currency": "USD"})
    asked = {"toolCallId": "t1", "locations": [{"path": f"{os.getcwd()}/a.txt"}]}
    answer = ask(7, "session/request_permission", toolCall=asked, options=OPTIONS)
    if answer["result"]["outcome"].get("optionId") == "yes":
        ask(8, "fs/write_text_file", path=f"{os.getcwd()}/deep/a.txt", content="written\n")
    update("tool_call_update", toolCallId="t1", status="completed")
    talk("All ", messageId="m2")
    talk("is done.\n\nDONE: written", messageId="m2")
    end(number, usage={"totalTokens": 1234, "inputTokens": 1000, "outputTokens": 234})


def asks() -> None:
    number = open_session()
    answers: list[Any] = [
        ask(1, "fs/write_text_file", path="/somewhere-else.txt", content="x"),
        ask(2, "fs/write_text_file", path=".git/config", content="x"),
        ask(3, "fs/read_text_file", path="present.txt", line=2, limit=1),
        ask(4, "fs/read_text_file", path="absent.txt"),
        ask(5, "terminal/create", command="ls"),
        ask(
            6,
            "session/request_permission",
            toolCall={"toolCallId": "x", "kind": "execute", "title": "clean up", "rawInput": {"command": "rm -r src"}},
            options=OPTIONS,
        ),
        ask(7, "session/request_permission", toolCall="odd", options="odd"),
    ]
    talk(json.dumps(answers))
    end(number)


def garbage() -> None:
    sys.stdout.write("loading...\n\n[1, 2]\n{broken\n")
    number = open_session()
    sys.stdout.write("\x1b[31mwarning\x1b[0m\n")
    send(method="session/update", params="odd")
    send(method="session/update", params={"update": {"sessionUpdate": "agent_message_chunk", "content": "odd"}})
    send(method="_vendor/news", params={})
    send(id=99, result={})
    send(id=None, result={})
    talk("DONE: in spite of it")
    other = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "ERROR: said by a helper of the agent"},
    }
    send(method="session/update", params={"sessionId": "a helper's", "update": other})
    end(number)


def dies() -> None:
    open_session()
    talk("DONE: almost")
    os._exit(3)


def refuses() -> None:
    begin()
    message = take()
    send(id=message["id"], error={"code": -32000, "message": "Authentication required"})
    take()


def older() -> None:
    expect("initialize", protocolVersion=0)
    take()


def waits() -> None:
    number = open_session()
    talk("thinking")
    message = take()
    assert message["method"] == "session/cancel", message
    end(number, "cancelled")


def deaf() -> None:
    open_session()
    while take():
        pass


def continues() -> None:
    begin(loadSession=True)
    message = take()
    if message["method"] == "session/load" and message["params"]["sessionId"] == SESSION:
        talk("DONE: what was said before")
        send(id=message["id"], result={})
    else:
        send(
            id=message["id"],
            error={"code": -32603, "message": "Internal error", "data": {"details": "no such session"}},
        )
        expect("session/new", sessionId=SESSION)
    number = prompted()
    talk("DONE: now")
    end(number)


def chooses() -> None:
    begin()
    choice = {"id": "the-model", "category": "model", "type": "select", "options": []}
    expect("session/new", sessionId=SESSION, configOptions=[choice])
    expect("session/set_mode")
    expect("session/set_config_option")
    end(prompted())


def says() -> None:
    number = open_session()
    talk("First.")
    update("tool_call", toolCallId="t1", title="Look", kind="read", status="in_progress")
    talk("Info: looking")
    update("tool_call_update", toolCallId="t1", status="completed")
    talk("DONE: seen")
    end(number)


def stops() -> None:
    number = open_session()
    talk("DONE: half of it")
    end(number, "max_tokens")


def floods() -> None:
    number = open_session()
    for _ in range(3000):
        update(
            "tool_call_update",
            toolCallId="t",
            content=[{"type": "content", "content": {"type": "text", "text": "x" * 300}}],
        )
    answer = ask(1, "fs/read_text_file", path="big.txt")
    talk(f"DONE: {len(answer['result']['content'])}")
    end(number)


SCENES: dict[str, Callable[[], None]] = {
    scene.__name__: scene
    for scene in (works, asks, garbage, dies, refuses, older, waits, deaf, continues, chooses, says, stops, floods)
}

if __name__ == "__main__":
    SCENES[sys.argv[1]]()
    while sys.stdin.readline():
        pass
