"""A JSON text with the place of everything in it: add an entry, take it out again, leave every other byte alone.

    document = read(text)                       Node: what stands where
    add(text, chain, piece, key)             -> text with one more entry at the end of a container
    drop(text, chain, index)                 -> text without that entry; None where nothing is left

Taking out what was added gives the same bytes back. JSON has no room for notes, so whether a container
was there (empty) before something was added to it is told by a space at the end of the line that opens
it: `{ ` was there, `{` was not and goes away with its last entry.

Comments (`//`, `/* */`) are read where the program that owns the file reads them, too. Anything else
that is no JSON is refused: a file that is not understood is not changed.
"""

from __future__ import annotations

import json
from json.decoder import scanstring  # type: ignore[attr-defined]  # what json itself reads strings with
from typing import Any, NamedTuple

from tenuto.errors import BadInput

MOST_DEPTH = 100
_SPACE = " \t\r\n"


class Entry(NamedTuple):
    key: str | None
    start: int
    """Where the key begins; of an element, the value."""
    node: Node


class Node(NamedTuple):
    value: Any
    """What it means; of a container, without what is in it: {} or []."""
    start: int
    end: int
    entries: list[Entry]

    def named(self, key: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.key == key]


def read(text: str, comments: bool = False) -> Node:
    reader = _Reader(text, comments)
    at = reader.skip(1 if text.startswith("\ufeff") else 0)
    node = reader.value(at, 0)
    rest = reader.skip(node.end)
    if rest != len(text):
        raise reader.wrong(rest, "nothing more")
    return node


def plain(node: Node) -> Any:
    """The value with everything in it."""
    if isinstance(node.value, dict):
        return {entry.key: plain(entry.node) for entry in node.entries}
    if isinstance(node.value, list):
        return [plain(entry.node) for entry in node.entries]
    return node.value


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self.text = text
        self.comments = comments

    def wrong(self, at: int, wanted: str) -> BadInput:
        line = self.text.count("\n", 0, at) + 1
        found = repr(self.text[at : at + 1]) if at < len(self.text) else "the end"
        return BadInput("not-json", f"line {line}: {wanted} should be here, not {found}", "mend the file first")

    def skip(self, at: int) -> int:
        while at < len(self.text):
            if self.text[at] in _SPACE:
                at += 1
            elif self.comments and self.text.startswith(("//", "/*"), at):
                at = self._comment(at)
            else:
                break
        return at

    def _comment(self, at: int) -> int:
        if self.text[at + 1] == "/":
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            return end - 1 if self.text[end - 1] == "\r" else end
        end = self.text.find("*/", at + 2)
        if end < 0:
            raise self.wrong(len(self.text), "the end of a comment")
        return end + 2

    def value(self, at: int, depth: int) -> Node:
        if depth > MOST_DEPTH:
            raise BadInput("not-json", f"more than {MOST_DEPTH} levels deep", "mend the file first")
        first = self.text[at : at + 1]
        if first == "{":
            return self._container(at, depth, {}, "}")
        if first == "[":
            return self._container(at, depth, [], "]")
        if first == '"':
            told, end = self._string(at)
            return Node(told, at, end, [])
        end = at
        while end < len(self.text) and (self.text[end].isalnum() or self.text[end] in "+-."):
            end += 1
        try:
            told = json.loads(self.text[at:end], parse_constant=_no_constant)
        except ValueError:
            raise self.wrong(at, "a value") from None
        return Node(told, at, end, [])

    def _container(self, start: int, depth: int, empty: Any, close: str) -> Node:
        entries: list[Entry] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != close:
            if entries:
                if self.text[at : at + 1] != ",":
                    raise self.wrong(at, f"a comma or {close}")
                at = self.skip(at + 1)
            begin, key = at, None
            if close == "}":
                key, at = self._key(at)
            node = self.value(at, depth + 1)
            entries.append(Entry(key, begin, node))
            at = self.skip(node.end)
        return Node(empty, start, at + 1, entries)

    def _key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] != '"':
            raise self.wrong(at, "a name in quotes")
        key, end = self._string(at)
        end = self.skip(end)
        if self.text[end : end + 1] != ":":
            raise self.wrong(end, "a colon")
        return key, self.skip(end + 1)

    def _string(self, at: int) -> tuple[str, int]:
        try:
            told, end = scanstring(self.text, at + 1, True)
        except ValueError:
            raise self.wrong(at, "a whole string") from None
        return told, end


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def add(text: str, chain: list[Node], piece: Any, key: str | None = None) -> str:
    """One more entry at the end of the last container of the chain (the whole document is its first)."""
    node, depth = chain[-1], len(chain) - 1
    line = "\r\n" if "\r\n" in text else "\n"
    step = (_own_indent(text, chain[0].entries[0].start) if chain[0].entries else None) or "  "
    inner = _own_indent(text, node.entries[-1].start) if node.entries else None
    inner = step * (depth + 1) if inner is None else inner
    told = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    told += json.dumps(piece, indent=step, ensure_ascii=False).replace("\n", line + inner)
    if node.entries:
        last = node.entries[-1].node.end
        gap = text[last : node.end - 1]
        kept = gap.rstrip(_SPACE)
        return f"{text[:last]},{kept}{line}{inner}{told}{gap[len(kept) :]}{text[node.end - 1 :]}"
    inside = text[node.start + 1 : node.end - 1]
    return f"{text[: node.start + 1]}{inside} {line}{inner}{told}{line}{step * depth}{text[node.end - 1 :]}"


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
    noted = tail.strip(_SPACE)  # somebody wrote a comment here
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
