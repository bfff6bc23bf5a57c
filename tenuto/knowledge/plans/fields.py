"""Fields that a plan or an item's file gives to an item: `**depends_on:** 01, 02`.

Known shapes: bold, plain or code labels, in a line, a list entry, a two-column table, front matter,
several in one line (`**agent:** implementer · **wave:** 2`), and a label or heading with its values
in the list below. A label that is not in the table below is left to the reader of the file.
"""

from __future__ import annotations

import re

from tenuto.knowledge.markdown import plain
from tenuto.knowledge.plans.mentions import Mention, files_in, largest_number, said

_LABELS: tuple[tuple[str, str], ...] = (
    ("depends", r"depends?[\s_-]*on|dependenc(?:y|ies)|deps|blocked[\s_-]by|prerequisites?|prereqs?"),
    ("blocks", r"blocks|unblocks"),
    ("agent", r"(?:assigned[\s_-]|task[\s_-]|sub)?agent|assigned[\s_-]to"),
    ("wave", r"(?:execution[\s_-])?wave"),
    (
        "files",
        (r"(?:target|output|key|new|modified)?[\s_-]*(?:files?|file\(s\)|file[\s_-]paths?)"
        r"(?:[\s_-](?:likely[\s_-])?(?:touched|to[\s_-](?:modify|create|change|touch|edit)|modified|created|changed|affected|owned))?"
        r"(?:/\w+)?|outputs?|touch(?:es)?|owns|modifies|creates|modify|create"),
    ),
    ("effort", r"(?:estimated[\s_-]|est\.?\s)?(?:effort|complexity|size)|estimated[\s_-]scope"),
    ("lines", r"(?:estimated[\s_-]|est\.?\s|max\.?\s)?(?:lines|loc|production lines)(?:[\s_-]of[\s_-]code)?(?:[\s_-]changed)?"),
    ("title", r"title|task[\s_-](?:name|title)"),
    ("id", r"(?:task[\s_-])?id"),
    ("description", r"description|objective|goal|summary"),
)  # fmt: skip
_FIELD = re.compile(
    r"^(?:"
    + "|".join(f"(?P<{role}>{shape})" for role, shape in _LABELS)
    + r")\s*(?:\([^)]*\)\s*)?[:=]\s*(?P<value>.*)$",
    re.IGNORECASE,
)
_HEADED = re.compile(r"^(?:" + "|".join(f"(?P<{role}>{shape})" for role, shape in _LABELS) + r")$", re.IGNORECASE)
_SEVERAL = re.compile(r"\s+[·•|]\s+|(?<=\S)\s+(?=\*\*[^*:]{2,30}:\*\*)")


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
    label, colon, rest = text.partition(":")
    if not colon:
        return None
    # Decoration around the label goes; the value keeps its code marks, which say what a file is.
    value = rest.lstrip("* ")
    if label.lstrip().startswith("`") and "`" not in label.strip()[1:]:
        value = value.removeprefix("`")
    bare = f"{plain(label).strip('*_` ')}: {value}"
    found = _FIELD.match(bare)
    if not found or found.lastgroup is None:
        return None
    role = next(role for role, _ in _LABELS if found.group(role) is not None)
    return role, found.group("value").strip()


def set_field(mention: Mention, role: str, value: str) -> None:
    """What is said twice adds up for lists; for single values the first word counts."""
    match role:
        case "depends":
            mention.depends = (
                value if not mention.depends else f"{mention.depends}, {value}" if value else mention.depends
            )
        case "blocks":
            mention.blocks = f"{mention.blocks}, {value}".strip(", ")
        case "files":
            files, count = files_in(value)
            mention.files.extend(file for file in files if file not in mention.files)
            mention.file_count = mention.file_count if count is None else count
        case "agent":
            mention.agent = mention.agent or said(value)
        case "wave":
            mention.wave = mention.wave or said(value)
        case "effort":
            mention.effort = mention.effort or said(value)
        case "lines":
            mention.lines = mention.lines or largest_number(value)
        case "title":
            mention.title = mention.title or plain(value)
        case "description":
            mention.description = mention.description or plain(value)


class FieldReader:
    """A label without a value, whose values stand in the list below it."""

    def __init__(self) -> None:
        self._target: Mention | None = None
        self._role = ""

    @property
    def is_open(self) -> bool:
        return self._target is not None

    def open(self, target: Mention, role: str, value: str) -> None:
        self._target, self._role = (None, "") if value else (target, role)

    def open_by_heading(self, title: str, target: Mention) -> bool:
        found = _HEADED.match(title.strip(" :"))
        if not found or found.lastgroup in (None, "id", "title"):
            return False
        self._target, self._role = target, str(found.lastgroup)
        return True

    def add(self, text: str) -> bool:
        if self._target is None:
            return False
        set_field(self._target, self._role, text)
        return True

    def close(self) -> None:
        self._target, self._role = None, ""


# ---- behind an entry -------------------------------------------------------------------------------

_BRACKETS = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)|\[([^\[\]]*)\]")
_DEPENDS = re.compile(
    r"^(?:depends?[\s_-]*on|deps?|dependencies|←)\s*:?\s*(?P<any>.*)$"
    r"|^(?:after|requires?|needs|blocked[\s_-]by)\s*:?\s+(?P<task>(?:task\s*)?[#A-Za-z]{0,8}-?\d.*)$",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"[—–;,|-]\s*(?:depends[\s_-]*on\s*:?|dep(?:s|ends|endency|endencies)\s*:)\s+(.+)$", re.IGNORECASE
)
_NEXT_FIELD = re.compile(r"\s*[,;|·]\s*(?=[A-Za-z][A-Za-z _-]{1,20}:\s)")


def split_notes(text: str) -> tuple[str, list[tuple[str, str]]]:
    """`01-a (depends_on: 02, agent: implementer)` -> the text without it, and what it says."""
    found: list[tuple[str, str]] = []
    cuts: list[tuple[int, int]] = []
    for bracket in _BRACKETS.finditer(text):
        first, *others = _NEXT_FIELD.split((bracket.group(1) or bracket.group(2) or "").strip())
        depends = _DEPENDS.match(first)
        fields = [field for piece in others for field in fields_of(piece)]
        if depends:
            said = depends.group("any") if depends.group("any") is not None else depends.group("task")
            fields.insert(0, ("depends", said))
        elif leading := fields_of(first):
            fields = [*leading, *fields]
        else:
            continue
        found += [field for field in fields if field[0] not in ("id", "title", "description")]
        cuts.append(bracket.span())
    trailing = _TRAILING.search(text) if not found else None
    if trailing:
        found.append(("depends", trailing.group(1)))
        cuts.append(trailing.span())
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text.strip(" ,;—–-"), found


# ---- front matter ----------------------------------------------------------------------------------

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^([A-Za-z_][\w -]*)\s*:\s*(.*)$")


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The entries at the top of a file, lists joined by commas, and the text below (lines kept in number)."""
    found = _FRONT.match(text.replace("\r\n", "\n"))
    if not found:
        return {}, text
    entries: dict[str, str] = {}
    name = ""
    for line in found.group(1).split("\n"):
        entry = _ENTRY.match(line)
        if entry:
            name = entry.group(1).strip()
            entries[name] = _scalar(entry.group(2))
        elif name and (value := _scalar(line.strip().removeprefix("-").strip())) and line[:1] in " -\t":
            entries[name] = f"{entries[name]}, {value}" if entries[name] else value
    body = text.replace("\r\n", "\n")[found.end() :]
    return entries, "\n" * found.group().count("\n") + body


def _scalar(text: str) -> str:
    value = re.sub(r"\s+#.*$", "", text.strip())
    if value.startswith("[") and value.endswith("]"):
        return ", ".join(part.strip().strip("'\"") for part in value[1:-1].split(",") if part.strip())
    return "" if value in ("|", ">", "|-", ">-", "~", "null") else value.strip("'\"")
