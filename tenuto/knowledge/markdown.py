"""Markdown as agents write it, in the few shapes that carry meaning here.

    read(text) -> [Heading, Item, Table, Line, ...], each with its line number

Rules: code blocks and HTML comments are not text; `keep_code` makes every code block text, for
readers who must not overlook anything. A table needs no `|---|` line and no outer pipes. An
indented line below a list item belongs to that item.

Never interprets: what a heading or a column means is decided by whoever reads plans or findings.

Where the code is in a text: fenced blocks of any notation.

Rules: a fence is closed by one of its own kind and at least its own length. One that is never
closed ends before the next heading that follows a blank line, so that a slip of the pen does not
turn the rest of a document into code. Tildes as long as the title above them underline it. A `markdown` fence around
(nearly) the whole text is wrapping paper and is looked through; a small one is an example and is left alone.

Never decides what code means: that is declarations.py.

Regular expressions that are compiled when they are first tried.

Compiling costs more than matching a short text, and most texts need few of the patterns that reading
agents' Markdown takes: a process that retrieves once should not pay for all of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class _Uncompiled:
    """Stands for a compiled pattern and becomes one, method by method, as they are asked for."""

    def __init__(self, text: str, flags: int) -> None:
        self.pattern = text
        self.flags = flags

    def __getattr__(self, name: str) -> Callable[..., object]:
        # Reached once for each method: what is found is kept on the instance.
        method: Callable[..., object] = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, method)
        return method


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    return _Uncompiled(text, flags)  # type: ignore[return-value]


# ---- markdown ------------------------------------------------------------


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
_UNDERLINED = pattern(r"^#{1,6}\s+\S")
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
        if _UNDERLINED.match(lines[line]) and not lines[line - 1].strip():
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


# ---- markdown ------------------------------------------------------------


class Heading(NamedTuple):
    number: int
    text: str
    level: int


class Item(NamedTuple):
    """One entry of a list. `mark` is its bullet or its number; `indent` in columns."""

    number: int
    text: str
    indent: int
    mark: str


class Row(NamedTuple):
    number: int
    cells: list[str]


class Table(NamedTuple):
    number: int
    header: list[str]
    rows: list[Row]


class Line(NamedTuple):
    """Any other line that is not blank."""

    number: int
    text: str


Block = Heading | Item | Table | Line

_HEADING = re.compile(r"^(#{1,6}) (.*?)(?: #+)?$")
_ITEM = re.compile(r"^([-*+•]|\d{1,4}[.)]) (.*)$")
_RULER = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_DELIMITER = re.compile(r"^\s*\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)*\|?\s*$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_QUOTE = re.compile(r"^\s{0,3}(?:>\s?)+")
_PIPE = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\(([^()\s]{0,500})[^()]{0,300}\)")


def read(text: str, *, keep_code: bool = False) -> list[Block]:
    lines = _without_code(text, keep_code)
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if _begins_table(lines, at):
            table, at = _table(lines, at)
            blocks.append(table)
            continue
        if line.strip() and not _RULER.match(line):
            _add(blocks, at, line, follows=at > 0 and bool(lines[at - 1].strip()))
        at += 1
    return blocks


def _add(blocks: list[Block], at: int, line: str, follows: bool) -> None:
    indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    # Runs of blanks carry no meaning, and cost every pattern that looks at them.
    line = " ".join(line.split())
    heading, item = _HEADING.match(line), _ITEM.match(line)
    if heading and indent < 4:
        blocks.append(Heading(at + 1, heading.group(2), len(heading.group(1))))
    elif item:
        blocks.append(Item(at + 1, item.group(2), indent, item.group(1)))
    elif follows and indent and blocks and isinstance(last := blocks[-1], Item):
        blocks[-1] = last._replace(text=f"{last.text} {line}")
    else:
        blocks.append(Line(at + 1, line))


def _without_code(text: str, keep_code: bool) -> list[str]:
    text = _COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = text.split("\n")
    blocks, wrapping = find_code(lines)
    hidden = {line for line in range(len(lines)) if line in wrapping}
    for block in blocks:
        hidden.update([block["start"], block["end"] - 1] if keep_code else range(block["start"], block["end"]))
    return ["" if at in hidden else _QUOTE.sub("", line) for at, line in enumerate(lines)]


# ---- tables ----------------------------------------------------------------------------------------


def _begins_table(lines: list[str], at: int) -> bool:
    line = lines[at].strip()
    if at + 1 >= len(lines) or "|" not in line or not lines[at + 1].strip():
        return False
    if _DELIMITER.match(lines[at + 1]) and "-" in lines[at + 1]:
        return "|" in lines[at + 1] or line.startswith("|")
    return line.startswith("|") and line.endswith("|") and lines[at + 1].strip().startswith("|")


def _table(lines: list[str], at: int) -> tuple[Table, int]:
    table = Table(at + 1, cells_of(lines[at]), [])
    at += 1
    while at < len(lines) and "|" in lines[at]:
        if not _DELIMITER.match(lines[at]):
            table.rows.append(Row(at + 1, cells_of(lines[at])))
        at += 1
    return table, at


def cells_of(line: str) -> list[str]:
    """The cells of a row; a pipe in code or behind a backslash does not divide."""
    shielded = re.sub(r"`[^`]*`", lambda code: code.group().replace("|", "\0"), line.strip())
    shielded = shielded.removeprefix("|")
    if shielded.endswith("|") and not shielded.endswith("\\|"):
        shielded = shielded[:-1]
    return [" ".join(cell.replace("\0", "|").replace("\\|", "|").split()) for cell in _PIPE.split(shielded)]


# ---- decoration ------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Without emphasis, code marks and link targets: what a person reads."""
    text = _LINK.sub(lambda link: link.group(1), text)
    return re.sub(r"\*\*|`|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])", "", text).strip()


def link_targets(text: str) -> list[str]:
    return [link.group(2) for link in _LINK.finditer(text)]
