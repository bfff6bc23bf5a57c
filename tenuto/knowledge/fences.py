"""Where the code is in a text: fenced blocks of any notation.

Rules: a fence is closed by one of its own kind and at least its own length. One that is never
closed ends before the next heading that follows a blank line, so that a slip of the pen does not
turn the rest of a document into code. Tildes as long as the title above them underline it. A `markdown` fence around (nearly) the whole text is
wrapping paper and is looked through; a small one is an example and is left alone.

Never decides what code means: that is declarations.py.
"""

from __future__ import annotations

import re

from tenuto.knowledge.patterns import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class CodeBlock(TypedDict):
        """Lines `start` up to `end`, delimiters included; the code itself is `first` up to `last`."""

        start: int
        end: int
        first: int
        last: int
        language: str


# Fences that hold Markdown themselves: their inner fences must not close them.
MARKDOWN = {"markdown", "md", "mdx"}

_OPEN = pattern(r"^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})\s*([^`]*)$")
_CLOSE = pattern(r"^[\s>]*(`{3,}|~{3,})\s*$")
_HEADING = pattern(r"^#{1,6}\s+\S")
_LANGUAGE = pattern(r"[A-Za-z][\w+#-]*")

# Other notations: how they begin, opening line, closing line. Group 1 of the opening line is the language.
_NOTATIONS: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = (
    ("#+begin", pattern(r"^\s*#\+begin_(?:src|example)\s*(\w*)", re.I), pattern(r"^\s*#\+end_(?:src|example)", re.I)),
    ("{code", pattern(r"^\s*\{code(?::(\w*))?[^}]*\}\s*$", re.I), pattern(r"^\s*\{code\}\s*$", re.I)),
    ("<pre", pattern(r"^\s*<pre\b[^>]*?(?:lang(?:uage)?[=-]\"?(\w+))?[^>]*>", re.I), pattern(r"</pre>", re.I)),
)
_LISTING = pattern(r"^-{4,}\s*$")
_ASCIIDOC = pattern(r"^\[source(?:,\s*(\w*))?[^\]]*\]\s*$", re.I)
_DIRECTIVE = pattern(r"^(\s*)\.\.\s+(?:code-block|code|sourcecode)::\s*(\w*)", re.I)


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
    if not opening or _is_underline(lines, at):
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


def _is_underline(lines: list[str], at: int) -> bool:
    """reStructuredText underlines titles with tildes, as long as the title."""
    if at == 0 or not lines[at].startswith("~~~~") or lines[at].strip("~\r "):
        return False
    title = lines[at - 1].strip()
    alone = at == 1 or not lines[at - 2].strip()
    return alone and bool(title) and abs(len(title) - len(lines[at].strip())) <= 2


def _where_text_resumes(lines: list[str], at: int) -> int:
    for line in range(at + 1, len(lines)):
        if _HEADING.match(lines[line]) and not lines[line - 1].strip():
            return line
    return len(lines)


def _notation_at(lines: list[str], at: int) -> CodeBlock | None:
    if lines[at].lstrip()[:1] not in {"#", "{", "<", "["}:
        return None
    asciidoc = _ASCIIDOC.match(lines[at]) if lines[at].startswith("[") else None
    if asciidoc and at + 1 < len(lines) and _LISTING.match(lines[at + 1]):
        return _closed(lines, at, at + 2, _LISTING, asciidoc.group(1))
    for sign, opening, closing in _NOTATIONS:
        found = opening.match(lines[at]) if lines[at].lstrip()[: len(sign)].lower() == sign else None
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
    found = _DIRECTIVE.match(lines[at]) if lines[at].lstrip().startswith("..") else None
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
