"""Markdown as agents write it, in the few shapes that carry meaning here.

    read(text) -> [Heading, Item, Table, Line, ...], each with its line number

Rules: code blocks and HTML comments are not text; `keep_code` makes every code block text, for
readers who must not overlook anything. A table needs no `|---|` line and no outer pipes. An
indented line below a list item belongs to that item.

Never interprets: what a heading or a column means is decided by whoever reads plans or findings.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tenuto.knowledge.fences import find_code


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
