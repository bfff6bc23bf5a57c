"""Where the code is in a text: fenced blocks of any notation.

Rules: a fence is closed by one of its own kind and at least its own length. One that is never
closed ends before the next heading that follows a blank line, so that a slip of the pen does not
turn the rest of a document into code. A `markdown` fence around (nearly) the whole text is
wrapping paper and is looked through; a small one is an example and is left alone.

Never decides what code means: that is declarations.py.
"""

from __future__ import annotations

import re
from typing import TypedDict

# Fences that hold Markdown themselves: their inner fences must not close them.
MARKDOWN = {"markdown", "md", "mdx"}

_OPEN = re.compile(r"^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})\s*([^`]*)$")
_CLOSE = re.compile(r"^[\s>]*(`{3,}|~{3,})\s*$")
_HEADING = re.compile(r"^#{1,6}\s+\S")
_LANGUAGE = re.compile(r"[A-Za-z][\w+#-]*")

# Other notations: opening line, closing line. Group 1 of the opening line is the language.
_NOTATIONS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (re.compile(r"^\s*#\+begin_(?:src|example)\s*(\w*)", re.I), re.compile(r"^\s*#\+end_(?:src|example)", re.I)),
    (re.compile(r"^\s*\{code(?::(\w*))?[^}]*\}\s*$", re.I), re.compile(r"^\s*\{code\}\s*$", re.I)),
    (re.compile(r"^\s*<pre\b[^>]*?(?:lang(?:uage)?[=-]\"?(\w+))?[^>]*>", re.I), re.compile(r"</pre>", re.I)),
)
_ASCIIDOC = re.compile(r"^\[source(?:,\s*(\w*))?[^\]]*\]\s*$", re.I)
_DIRECTIVE = re.compile(r"^(\s*)\.\.\s+(?:code-block|code|sourcecode)::\s*(\w*)", re.I)


class CodeBlock(TypedDict):
    """Lines `start` up to `end`, delimiters included; the code itself is `first` up to `last`."""

    start: int
    end: int
    first: int
    last: int
    language: str


def find_code(lines: list[str]) -> tuple[list[CodeBlock], set[int]]:
    """Every code block, in order, and the lines that are wrapping paper."""
    blocks: list[CodeBlock] = []
    wrapping: set[int] = set()
    at = 0
    while at < len(lines):
        if at in wrapping:
            at += 1
            continue
        block = _fence_at(lines, at) or _directive_at(lines, at) or _notation_at(lines, at)
        if block is None:
            at += 1
        elif block["language"] in MARKDOWN and block["last"] - block["first"] > 0.6 * len(lines):
            wrapping.add(block["start"])
            wrapping.update(range(block["last"], block["end"]))
            at = block["first"]
        else:
            blocks.append(block)
            at = block["end"]
    return blocks, wrapping


def _fence_at(lines: list[str], at: int) -> CodeBlock | None:
    if "```" not in lines[at] and "~~~" not in lines[at]:
        return None
    opening = _OPEN.match(lines[at].rstrip())
    if not opening:
        return None
    mark, info = opening.groups()
    word = _LANGUAGE.search(info)
    language = word.group().lower() if word else ""
    depth = 1
    for line in range(at + 1, len(lines)):
        closing = _CLOSE.match(lines[line].rstrip())
        if closing and closing.group(1)[0] == mark[0] and len(closing.group(1)) >= len(mark):
            depth -= 1
            if depth == 0:
                return _block(at, line + 1, at + 1, line, language)
        elif language in MARKDOWN and _OPEN.match(lines[line].rstrip()):
            depth += 1
    end = _where_text_resumes(lines, at + 1)
    return _block(at, end, at + 1, end, language)


def _where_text_resumes(lines: list[str], at: int) -> int:
    for line in range(at + 1, len(lines)):
        if _HEADING.match(lines[line]) and not lines[line - 1].strip():
            return line
    return len(lines)


def _notation_at(lines: list[str], at: int) -> CodeBlock | None:
    if lines[at].lstrip()[:1] not in {"#", "{", "<", "["}:
        return None
    asciidoc = _ASCIIDOC.match(lines[at])
    if asciidoc and at + 1 < len(lines) and re.match(r"^-{4,}\s*$", lines[at + 1]):
        return _closed(lines, at, at + 2, re.compile(r"^-{4,}\s*$"), asciidoc.group(1))
    for opening, closing in _NOTATIONS:
        found = opening.match(lines[at])
        if found and not closing.search(lines[at][found.end() :]):
            return _closed(lines, at, at + 1, closing, found.group(1))
    return None


def _closed(lines: list[str], at: int, first: int, closing: re.Pattern[str], language: str | None) -> CodeBlock | None:
    for line in range(first, len(lines)):
        if closing.search(lines[line]):
            return _block(at, line + 1, first, line, (language or "").lower())
    return None


def _directive_at(lines: list[str], at: int) -> CodeBlock | None:
    """reStructuredText: the code is what is indented below the directive."""
    found = _DIRECTIVE.match(lines[at])
    if not found:
        return None
    end = at + 1
    for line in range(at + 1, len(lines)):
        if not lines[line].strip():
            continue
        if len(lines[line]) - len(lines[line].lstrip()) <= len(found.group(1)):
            break
        end = line + 1
    return _block(at, end, at + 1, end, found.group(2).lower())


def _block(start: int, end: int, first: int, last: int, language: str) -> CodeBlock:
    return {"start": start, "end": end, "first": first, "last": last, "language": language}
