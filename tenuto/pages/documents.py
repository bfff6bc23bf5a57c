"""Text that agents and people wrote, as elements: Markdown, source, logs, differences.

No markup of theirs gets through. Markdown is read into tokens by markdown-it with HTML switched off, and each token
becomes an element here; an image is its words; a link leads to http or https, and its host stands beside it. Colours
of a terminal become classes; every other escape of a log is left out. What is too long is cut, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import htpy as h

from tenuto.pages import addresses

if TYPE_CHECKING:
    from markdown_it.token import Token

    from tenuto.show.changes import DiffLine, DiffView, FileDiff

MOST_LINES = 5_000  # of a log or a source in one page
_MOST_COLOURED = 200_000  # characters; Pygments takes 0.3 s for 2,300 lines
_DEEPEST = 40  # blocks in blocks, of Markdown

# ---- Markdown

_BLOCKS: dict[str, h.Element] = {
    "paragraph_open": h.p,
    "blockquote_open": h.blockquote,
    "bullet_list_open": h.ul,
    "ordered_list_open": h.ol,
    "list_item_open": h.li,
    "table_open": h.table,
    "thead_open": h.thead,
    "tbody_open": h.tbody,
    "tr_open": h.tr,
    "th_open": h.th,
    "td_open": h.td,
    "em_open": h.em,
    "strong_open": h.strong,
    "s_open": h.s,
}
# The page, its section and the name of the document are above them.
_HEADINGS: dict[str, h.Element] = {"h1": h.h4(".large"), "h2": h.h4, "h3": h.h5, "h4": h.h6, "h5": h.h6, "h6": h.h6}


def markdown(text: str) -> h.Element:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": _DEEPEST}).enable("table")
    body = text
    front = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
    head: h.Node = None
    if front:
        head, body = h.pre(class_="raw")[h.code[front[1]]], text[front.end() :]
    return h.div(class_="doc")[head, _nodes(iter(reader.parse(body)))]


def _nodes(tokens: Iterator[Token]) -> list[h.Node]:
    """Everything up to the end of the block that is open."""
    found: list[h.Node] = []
    for token in tokens:
        if token.nesting < 0:
            return found
        found.append(_node(token, tokens))
    return found


def _node(token: Token, tokens: Iterator[Token]) -> h.Node:
    kind = token.type
    if kind == "inline":
        return _nodes(iter(token.children or ()))
    if kind == "heading_open":
        return _HEADINGS[token.tag][_nodes(tokens)]
    if kind == "paragraph_open" and token.hidden:  # of a tight list
        return _nodes(tokens)
    if kind in _BLOCKS:
        return _BLOCKS[kind][_nodes(tokens)]
    if kind == "link_open":
        return _link(str(token.attrGet("href") or ""), _nodes(tokens))
    if kind == "image":
        return h.span(class_="image")[f"image: {token.content or token.attrGet('src')}"]
    if kind in ("fence", "code_block"):
        language = token.info.split()[0] if token.info.strip() else ""
        return h.pre[h.code[coloured(token.content, language)]]
    if kind == "code_inline":
        return h.code[token.content]
    if kind == "hr":
        return h.hr
    if kind == "hardbreak":
        return h.br
    if kind == "softbreak":
        return "\n"
    if token.nesting > 0:
        return _nodes(tokens)
    return token.content


def _link(address: str, words: list[h.Node]) -> h.Node:
    href, host = addresses.outward(address)
    if not href:
        return [words, h.span(class_="host")[f" ({address})"] if address else None]
    return [h.a(href=href, rel="noopener noreferrer")[words], h.span(class_="host")[f" ({host})"]]


# ---- source

_CLASSES = (
    ("Token.Keyword", "k"),
    ("Token.Literal.String", "s"),
    ("Token.Comment", "c"),
    ("Token.Literal.Number", "n"),
    ("Token.Name.Function", "f"),
    ("Token.Name.Class", "f"),
    ("Token.Name.Tag", "k"),
    ("Token.Name.Attribute", "f"),
)


def coloured(text: str, language: str = "", path: str = "") -> list[h.Node]:
    """Its words with classes; plain where the language is not known, or the text is too long."""
    return [h.span(class_=name)[value] if name else value for name, value in _pieces(text, language, path)]


def _pieces(text: str, language: str, path: str) -> list[tuple[str, str]]:
    """(class, text), neighbours of one class joined"""
    if len(text) > _MOST_COLOURED or not (language or path):
        return [("", text)]
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        options = {"stripnl": False, "ensurenl": False}
        lexer = get_lexer_by_name(language, **options) if language else get_lexer_for_filename(path, **options)
    except ClassNotFound:
        return [("", text)]
    pieces: list[tuple[str, str]] = []
    for kind, value in lexer.get_tokens(text):
        name = next((short for long, short in _CLASSES if str(kind).startswith(long)), "")
        if pieces and pieces[-1][0] == name:
            pieces[-1] = (name, pieces[-1][1] + value)
        else:
            pieces.append((name, value))
    return pieces


def numbered(lines: Sequence[str], prefix: str = "", first: int = 1) -> h.Element:
    """Lines that can be pointed at. `prefix`: the file, where several stand in a page and lines are commented."""
    shown = lines[:MOST_LINES]
    return h.ol(class_="numbered")[
        (
            h.li(id=f"{prefix}L{number}", data_line=f"{prefix}:{number}" if prefix else None)[
                h.a(
                    ".no",
                    href=f"#{quote(prefix, errors='replace')}L{number}",
                    tabindex="-1",
                    aria_label=f"line {number}",
                )[str(number)],
                h.span[line or "\u00a0"],
            ]
            for number, line in enumerate(shown, first)
        ),
        cut(len(lines) - len(shown)),
    ]


def source(text: str, path: str) -> h.Element:
    """A file as it stands, coloured line by line where its kind is known."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    shown = lines[:MOST_LINES]
    rows: list[list[h.Node]] = [[]]
    for piece in _pieces("\n".join(shown), "", path):
        for number, part in enumerate(piece[1].split("\n")):
            if number:
                rows.append([])
            if part:
                rows[-1].append(h.span(class_=piece[0])[part] if piece[0] else part)
    return h.ol(class_="numbered")[
        (
            h.li(id=f"L{number}")[
                h.a(".no", href=f"#L{number}", tabindex="-1", aria_label=f"line {number}")[str(number)],
                h.span[row or "\u00a0"],
            ]
            for number, row in enumerate(rows, 1)
        ),
        cut(len(lines) - len(shown)),
    ]


def cut(left_out: int) -> h.Node:
    return h.li(class_="soft")[h.span, h.span[f"{left_out:,} more lines are not shown"]] if left_out > 0 else None


# ---- differences


_SIGNS = {"+": "plus", "-": "minus"}


def difference(view: DiffView) -> h.Node:
    """File by file, as many lines as a page holds."""
    if not view["files"]:
        return h.p(class_="soft")[
            "Nothing changed." if view["source"] != "none" else f"Nothing to compare: {view['of']}."
        ]
    left = MOST_LINES
    shown: list[h.Node] = []
    for file in view["files"]:
        lines = sum(len(hunk["lines"]) for hunk in file["hunks"])
        if lines > left:
            return [shown, h.p(class_="soft")["The rest is too long for a page."]]
        left -= lines
        shown.append(_file(file))
    return [shown, h.p(class_="soft")["There is more than is shown here."] if view["is_cut"] else None]


def _file(file: FileDiff) -> h.Element:
    what = "new" if not file["before"] else "removed" if not file["after"] else ""
    if file["before"] and file["after"] and file["before"] != file["after"]:
        what = f"was {file['before']}"
    return h.div(class_="diff", role="region", aria_label=f"what changed in {file['path']}")[
        h.div(class_="path")[
            file["path"],
            h.span(class_="toned well")[f"+{file['added']}"],
            h.span(class_="toned bad")[f"-{file['removed']}"],
            h.span(class_="soft")[what] if what else None,
        ],
        h.p(class_="hunk")["It is no text, or too long to compare."] if file["is_binary"] else None,
        h.ol(tabindex="0", aria_label="lines")[
            ([h.li(class_="hunk")[hunk["header"]], (_line(line) for line in hunk["lines"])] for hunk in file["hunks"])
        ]
        if file["hunks"]
        else None,
    ]


def _line(line: DiffLine) -> h.Element:
    return h.li(class_=_SIGNS.get(line["mark"]))[
        h.span(class_="no")[str(line["old"]) if line["old"] else None],
        h.span(class_="no")[str(line["new"]) if line["new"] else None],
        h.span(class_="sign")[line["mark"]],
        h.span[line["text"] or "\u00a0"],
    ]


# ---- logs

_ESCAPE = re.compile(
    r"\x1b(?:\[([0-9;:]*)m|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
_SHOWN = {1, 2, 3, 4, 9, *range(30, 38), *range(90, 98)}
_ENDED_BY = {22: {1, 2}, 23: {3}, 24: {4}, 29: {9}, 39: {*range(30, 38), *range(90, 98)}}


def log(text: str) -> list[h.Node]:
    """A log as a terminal would leave it: colours as classes, a line that was written over only as it was last."""
    found: list[h.Node] = []
    on: set[int] = set()
    for line in text.replace("\r\n", "\n").split("\n"):
        if found:
            found.append("\n")
        found += _styled(line.rstrip("\r").rpartition("\r")[2], on)
    return found


def _styled(line: str, on: set[int]) -> Iterable[h.Node]:
    """`on`: what is switched on, from line to line."""
    at = 0
    for escape in _ESCAPE.finditer(line):
        if at < escape.start():
            yield _piece(line[at : escape.start()], on)
        at = escape.end()
        if escape[1] is not None:
            _switch(escape[1], on)
    if at < len(line):
        yield _piece(line[at:], on)


def _switch(codes: str, on: set[int]) -> None:
    numbers = [int(code) if code.isdigit() and len(code) < 4 else 0 for code in codes.replace(":", ";").split(";")]
    while numbers:
        code = numbers.pop(0)
        if code in (38, 48, 58):  # one of 256 colours, or of 16 million: not ours
            numbers = numbers[2 if numbers[:1] == [5] else 4 :]
        elif code == 0:
            on.clear()
        elif code in _ENDED_BY:
            on -= _ENDED_BY[code]
        elif code in _SHOWN:
            if code >= 30:
                on -= _ENDED_BY[39]
            on.add(code)


def _piece(text: str, on: set[int]) -> h.Node:
    return h.span(class_=" ".join(f"a{code}" for code in sorted(on)))[text] if on else text
