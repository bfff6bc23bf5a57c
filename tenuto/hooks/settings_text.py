"""Entries of Tenuto's in another program's settings file: put in, taken out again, every other byte left alone.

    read(text)                 JSON: what stands where; refused with a BadInput where it is no JSON
    add(text, chain, piece)    the text with one more entry at the end of a container
    drop(text, chain, index)   the text without that entry; None where nothing is left
    with_block, without_block  TOML: a block of whole lines at the end, between two comment lines that name its owner

Taking out what was added gives the same bytes back. JSON has no room for a note, so a space at the end of the line
that opens a container tells that the container was there, empty, before something was added to it: `{ ` stays, `{`
goes away with its last entry. In front of a block of TOML one line break is added (none in an empty file), and is
taken away with it.

The standard library reads the file, and decides what is JSON or TOML; here it is only noted where things stand.
Comments (`//`, `/* */`) are blanks where the program that owns the file takes them for blanks, too. A file that is not
understood is not changed.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import NamedTuple

from tenuto.errors import BadInput

MOST_DEPTH = 100
_SPACE = " \t\r\n"
_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]|[^\s{{}}\[\],:\"]+", re.DOTALL)
_MEND = "mend the file first"


class Entry(NamedTuple):
    key: str | None
    start: int
    """Where the key begins; of an element, the value."""
    node: Node


class Node(NamedTuple):
    value: object
    """What it means; of a container, without what is in it: {} or []."""
    start: int
    end: int
    entries: list[Entry]

    def named(self, key: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.key == key]


def read(text: str, comments: bool = False) -> Node:
    """What stands where. `comments`: the program that owns the file reads comments, too."""
    body = _COMMENT.sub(_blank, text) if comments else text
    body = " " + body[1:] if body.startswith("\ufeff") else body
    try:
        json.loads(body, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise BadInput("not-json", f"line {error.lineno}: {error.msg}", _MEND) from None
    except RecursionError:
        raise BadInput("not-json", f"line 1: more than {MOST_DEPTH} levels deep", _MEND) from None
    return _places(body)


def plain(node: Node) -> object:
    """The value with everything in it."""
    if isinstance(node.value, dict):
        return {entry.key: plain(entry.node) for entry in node.entries}
    if isinstance(node.value, list):
        return [plain(entry.node) for entry in node.entries]
    return node.value


def _blank(match: re.Match[str]) -> str:
    """A string stays; a comment becomes blanks, so that everything stands where it stood."""
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])


def _refuse_constant(word: str) -> object:
    raise json.JSONDecodeError(f"{word} is no JSON", "", 0)


class _Container:
    """One that is still open."""

    def __init__(self, start: int, value: object) -> None:
        self.start = start
        self.value = value
        self.entries: list[Entry] = []
        self.key: str | None = None
        self.key_start = 0

    def take(self, node: Node) -> None:
        self.entries.append(Entry(self.key, node.start if self.key is None else self.key_start, node))
        self.key = None


def _places(text: str) -> Node:
    """Of a text that is JSON."""
    around = _Container(0, [])  # holds the whole document, as if it were the only element of a list
    open_ones = [around]
    for token in _TOKEN.finditer(text):
        inner = open_ones[-1]
        if token[0] in "{[":
            if len(open_ones) > MOST_DEPTH:
                line = text.count("\n", 0, token.start()) + 1
                raise BadInput("not-json", f"line {line}: more than {MOST_DEPTH} levels deep", _MEND)
            open_ones.append(_Container(token.start(), {} if token[0] == "{" else []))
        elif token[0] in "}]":
            open_ones.pop()
            open_ones[-1].take(Node(inner.value, inner.start, token.end(), inner.entries))
        elif inner.value == {} and inner.key is None:
            inner.key, inner.key_start = json.loads(token[0]), token.start()
        else:
            inner.take(Node(json.loads(token[0]), token.start(), token.end(), []))
    return around.entries[0].node


def add(text: str, chain: list[Node], piece: object, key: str | None = None) -> str:
    """One more entry at the end of the last container of the chain (the whole document is its first)."""
    node, depth = chain[-1], len(chain) - 1
    line = "\r\n" if "\r\n" in text else "\n"
    step = (_own_indent(text, chain[0].entries[0].start) if chain[0].entries else None) or "  "
    inner = _own_indent(text, node.entries[-1].start) if node.entries else None
    inner = step * (depth + 1) if inner is None else inner
    added = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    added += json.dumps(piece, indent=step, ensure_ascii=False).replace("\n", line + inner)
    if node.entries:
        last = node.entries[-1].node.end
        gap = text[last : node.end - 1]
        kept = gap.rstrip(_SPACE)
        return f"{text[:last]},{kept}{line}{inner}{added}{gap[len(kept) :]}{text[node.end - 1 :]}"
    inside = text[node.start + 1 : node.end - 1]
    return f"{text[: node.start + 1]}{inside} {line}{inner}{added}{line}{step * depth}{text[node.end - 1 :]}"


def drop(text: str, chain: list[Node], index: int) -> str | None:
    """Without entry `index` of the last container of the chain (the whole document is its first). Containers
    that were made for it go with it; None: the document was one of them."""
    node, entry = chain[-1], chain[-1].entries[index]
    if index:
        before = node.entries[index - 1].node.end
        return text[:before] + _without_comma(text[before : entry.start]) + text[entry.node.end :]
    if len(node.entries) > 1:
        return text[: entry.start] + text[node.entries[1].start :]
    head, tail = text[node.start + 1 : entry.start], text[entry.node.end : node.end - 1]
    inside = _line_off(head)
    noted = tail.strip(_SPACE)  # a comment of the user's
    if noted or head.strip(_SPACE) or (inside.endswith(" ") and inside != head):
        return text[: node.start + 1] + inside.removesuffix(" ") + (tail if noted else "") + text[node.end - 1 :]
    if len(chain) == 1:
        return None
    above = chain[-2]
    place = next(at for at, found in enumerate(above.entries) if found.node.start == node.start)
    return drop(text, chain[:-1], place)


def _without_comma(gap: str) -> str:
    """What stands between two entries, without the comma and without the line the second was put on."""
    at = 0
    while gap[at] != ",":
        if gap.startswith("//", at):
            at = gap.index("\n", at)
        elif gap.startswith("/*", at):
            at = gap.index("*/", at) + 2
        else:
            at += 1
    return _line_off(gap[:at] + gap[at + 1 :])


def _line_off(gap: str) -> str:
    """Without its last line break and the indentation after it; as it is where there is none."""
    rest = gap.rstrip(" \t")
    if not rest.endswith("\n"):
        return gap
    return rest[:-2] if rest.endswith("\r\n") else rest[:-1]


def _own_indent(text: str, at: int) -> str | None:
    """The white space in front of something that begins its line."""
    begin = text.rfind("\n", 0, at) + 1
    return text[begin:at] if begin and not text[begin:at].strip(" \t") else None


# ---- a block of TOML ------------------------------------------------------

BEGIN = "# >>> tenuto setup (tenuto setup codex --undo takes this out)\n"
WHOLE = "# this file was made by tenuto setup\n"
END = "# <<< tenuto setup\n"


def with_block(text: str | None, lines: str) -> str:
    """`lines`: whole lines of TOML, tables of their own. None: there is no file."""
    if text is None:
        return BEGIN + WHOLE + lines + END
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput("not-toml", str(error), _MEND) from None
    added = ("\n" if text else "") + BEGIN + lines + END
    try:
        tomllib.loads(text + added)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(
            "cannot-add", f"what is to be added does not fit into this file: {error}", "add it by hand, or clean up"
        ) from None
    return text + added


def without_block(text: str) -> str | None:
    """As it was before; None where the file was made for the block."""
    begin = text.find(BEGIN)
    if begin < 0:
        return text
    end = text.find(END, begin)
    if end < 0:
        raise BadInput("cut-block", "the block of tenuto setup has no end", "take it out by hand")
    whole = text.startswith(WHOLE, begin + len(BEGIN))
    before, after = text[:begin], text[end + len(END) :]
    rest = before.removesuffix("\n") + after
    return None if whole and not rest else rest
