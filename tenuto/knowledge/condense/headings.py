"""What stands as a heading in a text, in whatever notation its author had in mind.

Two sorts. A *heading* opens a section that lasts until the next heading of its level or above:
`## Types`, underlined titles, `<h2>`, `= Types`, a line in bold or in CAPITALS, `1.2 Types`, a
`<types>` tag. A *label* names what stands beside and directly below it: `**Edge cases:**` with its
list, `Files:`, `"edgeCases": [` in a JSON answer.

Rules: a notation with its own sign of depth (number of `#`, of `=`, `h3`) has that level; signs
without one come below them, bold below capitals, so that mixed documents nest the way they look.

Never reads a meaning into a title: that is topics.py.
"""

from __future__ import annotations

import re

from tenuto.knowledge.patterns import pattern

# Levels of the notations that carry none themselves.
TAG, CAPITALS, NUMBERED, BANNER, BOLD = 7, 7, 7, 7, 9

ITEM = pattern(
    r"^(\s*)(?:[-*+•‣◦▪–]|\d{1,3}[.)]|[a-z][.)]|\(\d{1,3}\)|[A-Z]{1,4}-?\d{1,3}(?:\.\d{1,3})?[.):])\s+(?:\[[ xX]\]\s+)?(?=\S)"
)
_QUOTE = pattern(r"^\s{0,3}(?:>\s?)+")

_ATX = pattern(r"^ {0,3}(#{1,9})(?:\s+(.*?))?(?:\s+#+)?$|^ {0,3}(#{2,9})([^\s#].*)$")
_HTML = pattern(r"^\s*<h([1-6])\b[^>]*>(.*?)(?:</h\d>)?\s*$", re.I)
_SUMMARY = pattern(r"<summary\b[^>]*>(.*?)(?:</summary>|$)", re.I)
_ASCIIDOC = pattern(r"^(={1,6})\s+(\S.*?)(?:\s+=+)?$")
_ORG = pattern(r"^(\*{2,6})\s+(\S.*)$")
_WIKI = pattern(r"^h([1-6])\.\s+(\S.*)$")
# By what they begin with, so that most lines try none of them.
_MARKED = (("#", _ATX), ("<h", _HTML), ("<H", _HTML), ("=", _ASCIIDOC), ("h", _WIKI), ("**", _ORG))
_BANNER = pattern(r"^([-=#*~_])\1+\s+(\S.*?)\s+\1{2,}$")
_TAG = pattern(r"^\s*<([A-Za-z][\w-]*)(?:\s[^<>]*)?>\s*$")
_BOLD = pattern(r"^ {0,3}(\*\*\*|\*\*|__|\*|_)(?=\S)(.+?)(?<=\S)\1$")
_CAPITALS = pattern(r"^ {0,3}(?:\d+(?:\.\d+)*[.)]?\s+)?[A-Z][A-Z0-9 &/,'()-]*:?$")
_OUTLINE = pattern(r"^(\d+(?:\.\d+)+)\.?\s+([A-Z`].*)$")
_COUNTED = pattern(r"^(\d{1,2})[.)]\s+([A-Z`].*)$")
_UNDERLINE = pattern(r"^ {0,3}([=\-~^\"*+#`.:_])\1+\s*$")
_BULLETS = {"- ", "* ", "+ ", "• "}
_HTML_NAMES = set(
    "a abbr article aside b blockquote body br center code col dd del details div dl dt em figure footer form head "
    "header hr html i iframe img input ins kbd li link main meta nav ol p pre s script section small span strong style "
    "sub summary sup svg table tbody td tfoot th thead title tr u ul video".split()
)

_BOLD_LABEL = pattern(
    r"^(?:\W{1,4}\s)?(\*\*|__|\*)(?=\S)([^*]{1,70}?)(?:\s*:\s*\1|\1\s*(?:\([^()]*\)\s*)?(?::|[—–]|-(?=\s)))\s*(.*)$"
)
# Set into its paragraph, as in books: `*Edge cases.* An empty list is ...`
_RUN_IN_LABEL = pattern(r"^(\*\*|__|\*|_)(?=\w)([^*_.:]{1,50})\.\1(?:\s+(.*))?$")
_PLAIN_LABEL = pattern(r"^((?:[A-Za-z`(][^\s:]*)(?:\s[^\s:]+){0,6}):(?:\s+(.*))?$")
_KEY = pattern(r'^\s*"([A-Za-z_][\w .-]*)"\s*:\s*(.*)$')


class Heading:
    """Stands on `line`, its section begins at `start`; `end` is set where a closing sign ends it."""

    def __init__(self, line: int, start: int, level: int, title: str, end: int = -1) -> None:
        self.line = line
        self.start = start
        self.level = level
        self.title = title
        self.end = end


class Label:
    """A label on a line: its words, and what follows on the same line."""

    def __init__(self, title: str, rest: str) -> None:
        self.title = title
        self.rest = rest


def unquoted(line: str) -> str:
    """A line without the signs of a block quote and without what trails."""
    line = line.rstrip()
    return _QUOTE.sub("", line) if line.lstrip().startswith(">") else line


def indent_of(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def find_headings(lines: list[str], taken: set[int]) -> list[Heading]:
    """Every heading outside the lines that are taken (by code, by front matter)."""
    found: list[Heading] = []
    shapes: list[str] = []  # underline signs in the order of their first use are levels
    at = 0
    while at < len(lines):
        heading = None if at in taken or not lines[at].strip() else _heading_at(lines, at, taken, shapes)
        if heading:
            found.append(heading)
        at = heading.start if heading else at + 1
    return found if any(heading.level < CAPITALS for heading in found) else _with_counted(lines, taken, found)


def _heading_at(lines: list[str], at: int, taken: set[int], shapes: list[str]) -> Heading | None:
    line = unquoted(lines[at])
    for sign, marked in _MARKED:
        if line.lstrip().startswith(sign) and (found := marked.match(line)):
            depth, *title = [group for group in found.groups() if group]
            level = int(depth) if depth.isdigit() else len(depth)
            return Heading(at, at + 1, level, title[0]) if title else None
    if "<" in line and (found := _SUMMARY.search(line)):
        return Heading(at, at + 1, BOLD, found.group(1))
    return _underlined_at(lines, at, taken, shapes) or _unmarked_at(lines, at, taken, line)


def _underlined_at(lines: list[str], at: int, taken: set[int], shapes: list[str]) -> Heading | None:
    line = unquoted(lines[at])
    if at + 1 >= len(lines) or at + 1 in taken or not _begins_paragraph(lines, at, taken):
        return None
    below = unquoted(lines[at + 1])
    mark = _UNDERLINE.match(below)
    if not mark or len(line) > 100 or line.lstrip()[:2] in _BULLETS or "|" in line or _UNDERLINE.match(line):
        return None
    sign = mark.group(1)
    if sign not in "=-" and len(below.strip()) < len(line.strip()) - 1:
        return None
    if len(below.strip()) < 2 + (sign == "-"):
        return None
    if sign not in shapes:
        shapes.append(sign)
    level = {"=": 1, "-": 2}.get(sign, shapes.index(sign) + 1)
    return Heading(at, at + 2, level, line.strip())


def _unmarked_at(lines: list[str], at: int, taken: set[int], line: str) -> Heading | None:
    """Headings that are only a way of writing: they begin a paragraph and are short."""
    text = line.strip()
    if not text or len(text) > 100 or not _begins_paragraph(lines, at, taken):
        return None
    if text.startswith("<") and (found := _TAG.match(line)):
        name = found.group(1)
        closing = f"</{name}>"
        if name.lower() not in _HTML_NAMES:
            for end in range(at + 1, len(lines)):
                if lines[end].strip() == closing:
                    return Heading(at, at + 1, TAG, name, end + 1)
        return None
    if text[0] in "-=#*~_" and text[-1] == text[0] and (found := _BANNER.match(text)):
        return Heading(at, at + 1, BANNER, found.group(2))
    if text[0] in "*_" and (found := _BOLD.match(line)) and not found.group(2).rstrip().endswith((":", ".", ",", ";")):
        plain = found.group(2)
        return Heading(at, at + 1, BOLD, plain) if found.group(1) not in plain else None
    if (
        text.upper() == text
        and _CAPITALS.match(line)
        and sum(letter.isalpha() for letter in text) >= 4
        and len(text) <= 70
    ):
        return Heading(at, at + 1, CAPITALS, text.rstrip(":"))
    if (
        text[0].isdigit()
        and (found := _OUTLINE.match(line))
        and text[-1] not in ".;,"
        and len(text) <= 80
        and _stands_alone(lines, at)
    ):
        return Heading(at, at + 1, NUMBERED + found.group(1).count("."), text)
    return None


def _begins_paragraph(lines: list[str], at: int, taken: set[int]) -> bool:
    if at == 0 or at - 1 in taken:
        return True
    before = unquoted(lines[at - 1]).strip()
    return not before or bool(_ATX.match(before) or _UNDERLINE.match(before) or _TAG.match(before))


def _stands_alone(lines: list[str], at: int) -> bool:
    return at + 1 >= len(lines) or not lines[at + 1].strip()


def _with_counted(lines: list[str], taken: set[int], found: list[Heading]) -> list[Heading]:
    """`1. Overview` is a heading where nothing better is, and no list item follows it directly."""
    counted = []
    for at, line in enumerate(lines):
        number = _COUNTED.match(line)
        if number and at not in taken and is_counted(lines, at):
            below = next((line for line in range(at + 1, len(lines)) if lines[line].strip()), at)
            nested = lines[below].startswith((" ", "\t")) and below not in taken
            if below > at and not nested and not _COUNTED.match(lines[below]):
                counted.append(Heading(at, at + 1, NUMBERED, number.group(2)))
    known = {heading.line for heading in found}
    fresh = [heading for heading in counted if heading.line not in known]
    return sorted([*found, *fresh], key=lambda heading: heading.line) if len(counted) > 1 else found


def is_counted(lines: list[str], at: int) -> bool:
    """A line like `3. Header` that stands alone between blank lines."""
    line = lines[at].rstrip()
    if not _COUNTED.match(line) or len(line) > 70 or line[-1] in ".;,":
        return False
    return (at == 0 or not lines[at - 1].strip()) and _stands_alone(lines, at)


def label_of(line: str) -> Label | None:
    """The label a line begins with, list markers and quotes aside."""
    text = unquoted(line)
    item = ITEM.match(text)
    text = (text[item.end() :] if item else text).strip()
    if found := _BOLD_LABEL.match(text):
        return Label(found.group(2), found.group(3))
    if (found := _RUN_IN_LABEL.match(text)) and len(found.group(2).split()) < 6:
        return Label(found.group(2), found.group(3) or "")
    if ":" in text[:72] and (found := _PLAIN_LABEL.match(text)):
        title, rest = found.group(1), found.group(2) or ""
        if len(title) <= 60 and (not rest or (title[0].isupper() and len(title.split()) <= 4)):
            return Label(title, rest)
    return None


def key_of(line: str) -> Label | None:
    """The member a line of JSON begins."""
    found = _KEY.match(line.rstrip())
    return Label(found.group(1), found.group(2)) if found else None
