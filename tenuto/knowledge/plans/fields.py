"""The small notations in which a plan says something of an item.

    fields_of("**Agent:** x · **Wave:** 2")     labels with their values, in a line, a list entry, a cell
    split_notes("01-a (depends_on: 02)")         brackets and the end of a line: "; needs 02", "← 02"
    front_matter(text)                           the entries at the top of an item's file
    sentence_of("02 depends on 01")              who waits for what: ("02", "01")
    arrow_pieces("01 -> 02, 03 -> 04")           chains of arrows
    graph_line("A[01: x] --> B & C")             the same in a `mermaid` graph: its nodes and their labels

Every label is judged by its words (mentions.py): one of which we know only a part is left to the agent.
"""

from __future__ import annotations

import re

from tenuto.errors import BadInput
from tenuto.knowledge.markdown import plain
from tenuto.knowledge.plain_data import read_yaml
from tenuto.knowledge.plans.mentions import (
    Dependency,
    Mention,
    dropped_by_status,
    files_in,
    largest_number,
    role_of_label,
    value_in,
)
from tenuto.knowledge.roles import split as split_front_matter

# ---- fields ----------------------------------------------------------------------------------------

_SEVERAL = re.compile(r"\s+[·•|]\s+|(?<=\S)\s+(?=\*\*[^*:]{2,30}:\*\*)")
_BOLD = re.compile(r"^\s*(?:\[[ xX]\]\s*)?(?:\*\*|__)[^*:：]{1,60}(?:[:：]\s*\*\*|\*\*\s*(?:\([^)]*\)\s*)?[:：])")


def is_label(text: str) -> bool:
    """`**Notes:** ...`, known or not."""
    return _BOLD.match(text) is not None


def fields_of(text: str) -> list[tuple[str, str]]:
    """The fields in one line, as (role, value); the value is as written. Empty when the line is no field line."""
    pieces = [text] if _SEVERAL.search(text) is None else _SEVERAL.split(text)
    found = [field for piece in pieces if (field := _field(piece))]
    return found if _field(pieces[0]) or (found and ":" in pieces[0]) else []


def split_fields(text: str) -> tuple[str, list[tuple[str, str]]]:
    """`**02-b**: text **Agent:** x` -> what stands before the first field, and the fields."""
    first, *rest = _SEVERAL.split(text)
    if _field(first):
        return "", fields_of(text)
    return (first, found) if (found := [field for piece in rest if (field := _field(piece))]) else (text, [])


def _field(text: str) -> tuple[str, str] | None:
    label, colon, rest = text.replace("：", ":", 1).partition(":")
    if not colon:
        label, colon, rest = text.partition("=")
    role = role_of_label(label) if colon else ""
    if not role:
        return None
    # Decoration around the label goes; the value keeps its code marks, which say what a file is.
    value = rest.lstrip("*_ ")
    if label.lstrip().startswith("`") and "`" not in label.strip()[1:]:
        value = value.removeprefix("`")
    return role, value.strip()


def set_field(mention: Mention, role: str, value: str, line: int = 0) -> None:
    """What is said twice adds up for lists; for single values the first word counts."""
    match role:
        case "depends" | "after":
            mention.depends.append(Dependency(value, line, role == "after"))
        case "blocks":
            mention.blocks.append(Dependency(value, line))
        case "files":
            files, count = files_in(value)
            mention.files.extend(file for file in files if file not in mention.files)
            mention.file_count = mention.file_count if count is None else count
        case "agent":
            mention.agent = mention.agent or value_in(value)
        case "wave":
            mention.wave = mention.wave or value_in(value)
        case "effort":
            mention.effort = mention.effort or value_in(value)
        case "lines":
            mention.lines = mention.lines or largest_number(value)
        case "title":
            mention.title = mention.title or plain(value)
        case "description":
            mention.description = mention.description or plain(value)
        case "status" if dropped_by_status(value):
            mention.dropped = f"its status is '{plain(value)}'"


# ---- behind an entry -------------------------------------------------------------------------------

_BRACKETS = re.compile(r"[(（]((?:[^()（）]|\([^()]*\))*)[)）]|\[([^\[\]]*)\]")
_DEPENDS_WORDS = (
    r"depends?[\s_-]*on|dependent on|deps?|dependenc(?:y|ies)|blocked[\s_-]by|prerequisites?|abhängig von|hängt ab von|"
    r"depende de|dépend de|dipende da|bloquead[ao] por|зависит от|依赖(?:于)?"
)
_AFTER_WORDS = (
    r"requires?|needs?|after|waits? (?:for|on)|(?:comes?|starts?|runs?) after|follows|nach|braucht|après|después de|"
    r"depois de|dopo|после"
)
_DEPENDS = re.compile(
    rf"^(?:(?P<sure>{_DEPENDS_WORDS}|←|⇐)|(?P<weak>{_AFTER_WORDS}))(?!\w)\s*[:：]?\s*(?P<what>.*)$", re.IGNORECASE
)
_TRAILING = re.compile(
    rf"(?:[—–;,|.]|(?<=\s)-)\s*(?:(?P<sure>depends[\s_-]*on\s*:?|(?:dep(?:s|ends|endency|endencies)|blocked by)\s*:|"
    rf"blocked by)|(?P<weak>(?:{_AFTER_WORDS})\s*:?))\s+(?P<what>[^—–;]+)$",
    re.IGNORECASE,
)
_POINTED = re.compile(rf"\s*(?:←|⇐|<--?|<=)\s*(?:(?:{_DEPENDS_WORDS})\s*:?\s*)?(?P<what>[^—–;]+)$", re.IGNORECASE)
_NEXT_FIELD = re.compile(r"\s*[,;|·]\s*(?=[A-Za-z][A-Za-z _-]{1,20}:\s)")


def waits_for(text: str) -> tuple[str, str] | None:
    """`needs 01, 02` -> ("after", "01, 02")."""
    found = _DEPENDS.match(text)
    return ("depends" if found.group("sure") else "after", found.group("what")) if found else None


def split_notes(text: str) -> tuple[str, list[tuple[str, str]]]:
    """`01-a (depends_on: 02, agent: implementer)` -> the text without it, and what it says."""
    found: list[tuple[str, str]] = []
    cuts: list[tuple[int, int]] = []
    for bracket in _BRACKETS.finditer(text):
        first, *others = _NEXT_FIELD.split((bracket.group(1) or bracket.group(2) or "").strip())
        fields = [field for piece in others for field in fields_of(piece)]
        if waiting := waits_for(first):
            fields.insert(0, waiting)
        elif leading := fields_of(first):
            fields = [*leading, *fields]
        else:
            continue
        found += [field for field in fields if field[0] not in ("id", "title", "description")]
        cuts.append(bracket.span())
    if not found and (trailing := _POINTED.search(text) or _TRAILING.search(text)):
        weak = trailing.re is _TRAILING and trailing.group("weak")
        found.append(("after" if weak else "depends", trailing.group("what").strip(" .")))
        cuts.append(trailing.span())
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text.strip(" ,;—–-"), found


# ---- front matter ----------------------------------------------------------------------------------


def front_matter(text: str) -> tuple[list[tuple[str, str]], str]:
    """The fields at the top of a file, lists joined by commas, and the text below (lines keep their numbers)."""
    head, body = split_front_matter(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    try:
        data = read_yaml(head).data if head else None
    except BadInput:
        data = None
    if not isinstance(data, dict):
        return [], text
    found = [(role, in_line(value)) for name, value in data.items() if (role := role_of_label(str(name)))]
    return found, "\n" * (text.count("\n") - body.count("\n")) + body


def in_line(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(in_line(entry) for entry in value)
    if isinstance(value, dict):
        return str(next((value[key] for key in ("id", "path", "file", "name") if key in value), ""))
    return "" if value is None else str(value)


# ---- order -----------------------------------------------------------------------------------------

_ARROW = re.compile(r"\s*(?:-{1,2}>|={1,2}>|→|⟶|⇒|➜|➔)\s*")
_AFTER = re.compile(
    r"^(?P<who>.{1,80}?)\s+(?:also\s+|must\s+)?(?:depends?\s+(?:up)?on|rel(?:y|ies)\s+(?:up)?on|(?:(?:is|are)\s+)?blocked\s+by|"
    r"needs?|requires?|(?:comes?|starts?|runs?|goes)\s+after|waits?\s+(?:for|on)|follows?|depende[n]?\s+de|"
    r"dépend(?:ent)?\s+de|(?:hängt|hängen)\s+(?:ab\s+)?von)\s+(?P<what>.+)$",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"^(?P<what>.{1,80}?)\s+(?:must\s+)?(?:blocks?|unblocks?|(?:comes?|starts?|runs?|goes)\s+before|precedes?)\s+"
    r"(?P<who>.+)$",
    re.IGNORECASE,
)
_EDGE = re.compile(r"\s*(?:--[^->|]*-->|==[^=>|]*==>|-\.[^->|]*\.->|-{2,}>|={2,}>|-\.+->|--[xo])\s*(?:\|[^|]*\|)?\s*")
_NODE = re.compile(r"^([\w.-]+)\s*(?:[\[({>]+\s*\"?(.*?)\"?\s*[\])}]+)?(?::::\w+)?$")
_NO_NODE = ("graph", "flowchart", "subgraph", "end", "style", "classDef", "class", "direction", "linkStyle", "click")


def sentence_of(text: str) -> tuple[str, str] | None:
    """Who waits, and for what, in the words of the sentence."""
    for shape in (_AFTER, _BEFORE):
        found = shape.match(text.rstrip("."))
        if found:
            return found.group("who").strip(" -*•:"), found.group("what").strip(" -*•:")
    return None


def arrow_pieces(text: str) -> tuple[str, list[str]]:
    """The label before a chain of arrows, and its pieces; no pieces where there is no chain."""
    first = _ARROW.search(text)
    if not first:
        return "", []
    label, colon, rest = text.partition(":")
    if not colon or first.start() < len(label):
        label, rest = "", text
    *pieces, last = _ARROW.split(rest)
    last = re.split(r"[:：(]|\s+[—–-]\s|;|\.\s|\.$", last, maxsplit=1)[0]
    pieces = [re.sub(r"\([^()]*\)", " ", piece).strip(" `*.") for piece in (*pieces, last)]
    return label.strip(" *"), pieces if all(pieces) else []


def graph_line(text: str) -> list[list[tuple[str, str]]]:
    """The nodes between the arrows of one line, each with its label; empty where the line names none."""
    pieces = [
        [_NODE.match(part.strip()) for part in piece.split("&")] for piece in _EDGE.split(text.strip().rstrip(";"))
    ]
    nodes = [[(node.group(1), node.group(2) or "") for node in piece if node] for piece in pieces]
    return nodes if all(nodes) and nodes[0][0][0] not in _NO_NODE else []
