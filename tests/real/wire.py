"""The four protocols in which programs talk to models: a request read, an answer written.

    READ[protocol](body) -> Said                            who said what, in order
    WRITE[protocol](body, turn, number) -> {"whole", "events"}      the answer whole, and as (name, data) events of a
                                                                    stream

protocol: anthropic (Messages), responses and chat (OpenAI), gemini (generateContent).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Said:
    items: list[tuple[str, str]]
    """("user" | "model" | "tool" | "note", text): one "model" for each turn of the model."""
    tools: list[str]
    system: str = ""


def protocol_of(path: str) -> str | None:
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/chat/completions"):
        return "chat"
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part for part in content or [] if isinstance(part, dict)]
    return "\n".join(
        part["text"] for part in parts if isinstance(part.get("text"), str) and part.get("type") != "thinking"
    )


# ---- requests


def read_anthropic(body: Any) -> Said:
    items = []
    for message in body["messages"]:
        content = message["content"]
        if message["role"] != "user":
            items.append(("model" if message["role"] == "assistant" else "note", _text(content)))
            continue
        for part in content if isinstance(content, list) else []:
            if part.get("type") == "tool_result":
                items.append(("tool", _text(part.get("content"))))
        if _text(content):
            items.append(("user", _text(content)))
    return Said(items, [tool.get("name", "") for tool in body.get("tools") or []], _text(body.get("system")))


def read_responses(body: Any) -> Said:
    items: list[tuple[str, str]] = []
    asked = body.get("input") or []
    for item in [{"role": "user", "content": asked}] if isinstance(asked, str) else asked:
        kind, role = item.get("type", "message"), item.get("role")
        if kind == "message" and role != "assistant":
            items.append(("user" if role == "user" else "note", _text(item.get("content"))))
        elif kind.endswith("_output"):
            output = item.get("output") or item.get("tools")
            items.append(("tool", _text(output) if isinstance(output, (str, list)) else json.dumps(output)))
        elif items and items[-1][0] == "model":  # one turn may be several items
            items[-1] = ("model", items[-1][1] + _text(item.get("content")))
        else:
            items.append(("model", _text(item.get("content"))))
    tools = [tool.get("name") or tool.get("type", "") for tool in body.get("tools") or []]
    return Said(items, tools, body.get("instructions") or "")


def read_chat(body: Any) -> Said:
    who = {"assistant": "model", "tool": "tool", "user": "user"}
    items = [(who.get(one["role"], "note"), _text(one.get("content"))) for one in body["messages"]]
    system = "\n".join(text for kind, text in items if kind == "note")
    return Said(items, [tool["function"]["name"] for tool in body.get("tools") or []], system)


def read_gemini(body: Any) -> Said:
    items = []
    for content in body.get("contents") or []:
        parts = content.get("parts") or []
        if content.get("role") == "model":
            items.append(("model", _text(parts)))
            continue
        items += [
            ("tool", json.dumps(part["functionResponse"].get("response")))
            for part in parts
            if "functionResponse" in part
        ]
        if _text(parts):
            items.append(("user", _text(parts)))
    tools = [one["name"] for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
    return Said(items, tools, _text((body.get("systemInstruction") or {}).get("parts")))


# ---- answers


def _usage(turn: Any) -> tuple[int, int]:
    told = turn.get("usage", {})
    return told.get("input_tokens", 100), told.get("output_tokens", 20)


def write_anthropic(body: Any, turn: Any, number: str) -> dict[str, Any]:
    blocks: list[Any] = []
    for place, one in enumerate(turn["say"]):
        if isinstance(one, str):
            blocks.append({"type": "text", "text": one})
        elif "thinking" in one:
            blocks.append({"type": "thinking", "thinking": one["thinking"], "signature": "c2ln"})
        else:
            blocks.append(
                {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": one["tool"], "input": one["input"]}
            )
    calls = any(block["type"] == "tool_use" for block in blocks)
    read, written = _usage(turn)
    usage = {
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "input_tokens": read,
        "output_tokens": written,
    }
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    whole = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": blocks,
        "usage": usage,
        **stop,
    }
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[Any] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        opened, deltas = _anthropic_block(block)
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
    return {"whole": whole, "events": [(event["type"], event) for event in events]}


def _anthropic_block(block: Any) -> tuple[Any, list[Any]]:
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


def write_responses(body: Any, turn: Any, number: str) -> dict[str, Any]:
    output: list[Any] = []
    for place, one in enumerate(turn["say"]):
        name = f"{number}_{place}"
        if isinstance(one, str):
            content = [{"type": "output_text", "text": one, "annotations": []}]
            output.append(
                {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed", "content": content}
            )
        elif "thinking" in one:
            summary = [{"type": "summary_text", "text": one["thinking"]}]
            output.append({"type": "reasoning", "id": f"rs_{name}", "summary": summary, "encrypted_content": None})
        elif "search" in one:
            found = {"type": "tool_search_call", "execution": "client", "arguments": {"query": one["search"]}}
            output.append({**found, "id": f"ts_{name}", "call_id": f"call_{name}", "status": "completed"})
        else:
            call = (
                {"type": "custom_tool_call", "input": one.get("raw")}
                if "raw" in one
                else {"type": "function_call", "arguments": json.dumps(one["input"])}
            )
            call |= {"namespace": one["namespace"]} if "namespace" in one else {}
            output.append(
                {**call, "id": f"fc_{name}", "call_id": f"call_{name}", "name": one["tool"], "status": "completed"}
            )
    read, written = _usage(turn)
    usage = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
    whole = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": body.get("model"),
        "status": "completed",
        "output": output,
        "usage": usage,
        "error": None,
    }
    events: list[Any] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    ]
    for index, item in enumerate(output):
        opened = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
        events.append({"type": "response.output_item.added", "output_index": index, "item": opened})
        if item["type"] == "message":
            text = item["content"][0]["text"]
            events.append(
                {
                    "type": "response.output_text.delta",
                    "item_id": item["id"],
                    "output_index": index,
                    "content_index": 0,
                    "delta": text,
                }
            )
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return {"whole": whole, "events": [(event["type"], event) for event in events]}


def write_chat(body: Any, turn: Any, number: str) -> dict[str, Any]:
    text = "".join(one for one in turn["say"] if isinstance(one, str))
    calls = [
        {
            "index": place,
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": one["tool"], "arguments": json.dumps(one["input"])},
        }
        for place, one in enumerate(one for one in turn["say"] if isinstance(one, dict) and "tool" in one)
    ]
    read, written = _usage(turn)
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    reason = "tool_calls" if calls else "stop"
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": body.get("model")}
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    whole = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage,
    }
    deltas: list[tuple[Any, str | None]] = [({"role": "assistant", "content": text}, None)]
    deltas += [({"tool_calls": [call]}, None) for call in calls]
    deltas.append(({}, reason))
    head["object"] = "chat.completion.chunk"
    chunks: list[Any] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas
    ]
    chunks.append({**head, "choices": [], "usage": usage})
    return {"whole": whole, "events": [("", chunk) for chunk in chunks] + [("", "[DONE]")]}


def write_gemini(body: Any, turn: Any, number: str) -> dict[str, Any]:
    parts: list[Any] = []
    for place, one in enumerate(turn["say"]):
        if isinstance(one, str):
            parts.append({"text": one})
        elif "tool" in one:
            call = {"id": f"fc_{number}_{place}", "name": one["tool"], "args": one["input"]}
            parts.append({"functionCall": call, "thoughtSignature": "c2ln"})
    read, written = _usage(turn)
    usage = {"promptTokenCount": read, "candidatesTokenCount": written, "totalTokenCount": read + written}
    whole = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "responseId": f"g{number}",
    }
    return {"whole": whole, "events": [("", whole)]}


READ = {"anthropic": read_anthropic, "responses": read_responses, "chat": read_chat, "gemini": read_gemini}
WRITE = {"anthropic": write_anthropic, "responses": write_responses, "chat": write_chat, "gemini": write_gemini}
