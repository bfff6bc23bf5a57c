"""Options of an agent: `model=opus,max-turns=40` behind its name, and the same words in a role's front matter.

    read("claude", "model=opus,tools=Read,Edit", KNOWN)   -> {"model": "opus", "tools": ["Read", "Edit"]}
    for_role("claude", given, role, KNOWN)                -> what is given, and what the role says where nothing is given
    agent_of(role)                                        -> the agent that a role names; "" where it names none

    agent: claude                  in a role: who plays it, unless somebody says otherwise
    model: opus                    of that agent; a role that names another agent says nothing to this one
    max-turns: 40                  any option of that agent

A role that names no agent: its model is for whoever plays it. But models that only Claude Code knows by these names are Claude
Code's alone, and so is what agents of Claude Code and of Copilot (their own files) say: each of its own program. Other options of such
a role are Claude Code's.

A piece without `=` belongs to the list before it. What is spelled out counts more than what a role says. An option that
nobody knows, or a value of the wrong kind, is refused with a hint; a role's other front matter is not ours to judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tenuto.core.definition.values import did_you_mean
from tenuto.errors import BadInput

_CLAUDES = re.compile(r"default|best|opusplan|(?:opus|sonnet|haiku)(?:\[\w+\])?|claude-.*", re.IGNORECASE)

Known = Mapping[str, Any]
"""Option -> str, int, float, list, or a tuple of the words that it may be."""


def read(kind: str, words: str, known: Known) -> dict[str, Any]:
    given: dict[str, str] = {}
    last = ""
    for piece in words.split(",") if words else []:
        name, sign, value = piece.partition("=")
        name = name.strip()
        if last and known[last] is list and name not in known:
            given[last] += f",{piece}"
            continue
        if name not in known or not sign:
            hint = did_you_mean(name, list(known)) if name not in known else f"{kind}:{name}=..."
            raise BadInput("bad-agent", f"'{piece.strip()}' is no option of {kind}", hint)
        if name in given:
            raise BadInput("bad-agent", f"{kind}: {name} is given twice", "once is enough")
        given[name], last = value, name
    return {name: _value(f"{kind}: {name}", value, known[name]) for name, value in given.items()}


def agent_of(role: Any) -> str:
    found = role["extra"].get("agent", "") if role else ""
    if not isinstance(found, str):
        raise BadInput("bad-role", f"{role['file']}: `agent` is the name of an agent", "agent: claude")
    return found


def for_role(kind: str, given: Mapping[str, Any], role: Any, known: Known) -> dict[str, Any]:
    found = dict(given)
    named = agent_of(role).partition(":")[0]
    if role is None or named not in ("", kind):
        return found
    said = {_plain(name): value for name, value in role["extra"].items()} if kind in (named, "claude") else {}
    if role["model"] and role["model"] != "inherit" and (named or _is_meant(role, kind)):
        said["model"] = role["model"]
    for name, shape in known.items():
        if name not in found and _plain(name) in said:
            found[name] = _value(f"{role['file']}: {name}", said[_plain(name)], shape)
    return found


def _is_meant(role: Any, kind: str) -> bool:
    """Is the model of a role that names no agent one for this kind?"""
    if kind == "claude":
        return bool(role.get("origin") != "github")
    return role.get("origin") not in ("claude", "github") and not _CLAUDES.fullmatch(role["model"])


def _plain(name: str) -> str:
    """Other programs write permissionMode for permission-mode."""
    return name.replace("-", "").replace("_", "").lower()


def _value(what: str, value: Any, shape: Any) -> Any:
    if shape is list:
        words = value.split(",") if isinstance(value, str) else value
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return [word.strip() for word in words if word.strip()]
        raise BadInput("bad-agent", f"{what} is a list of words", "for example Read,Edit,Bash")
    text = str(value).strip()
    if shape in (int, float):
        try:
            number = shape(text.removeprefix("$"))
        except ValueError:
            number = 0
        if not 0 < number < 1_000_000_000:
            raise BadInput("bad-agent", f"{what} is a number above 0, not '{text}'", "for example 40")
        return number
    if isinstance(shape, tuple) and text not in shape:
        raise BadInput("bad-agent", f"{what} cannot be '{text}'", f"one of {', '.join(shape)}")
    if not text:
        raise BadInput("bad-agent", f"{what} is empty", "leave it out, or say what it is")
    return text
