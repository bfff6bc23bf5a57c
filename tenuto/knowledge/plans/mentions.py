"""One place in a plan that speaks about an item, and the small notations found there.

A plan names an item several times: in an index table, in a list under its wave, under a heading
of its own, in a file. Each is a Mention, with exactly what was written in that place; merge.py
puts the mentions of one item together.

None means "this place says nothing about it", which is not the same as saying "none".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from tenuto.knowledge.markdown import link_targets, plain

Kind = Literal["table", "list", "heading", "file", "wave-note"]


@dataclass
class Mention:
    id: str  # as written; empty where only a title is given
    title: str
    kind: Kind
    block: int  # the line at which its table, list or section begins
    line: int
    stem: str = ""  # of a linked or own file
    depends: str | None = None  # as written
    blocks: str = ""
    files: list[str] = field(default_factory=list)
    file_count: int | None = None
    agent: str | None = None
    wave: str | None = None
    group: str | None = None  # phase, stage and the like that it stands under
    effort: str | None = None
    lines: int | None = None
    description: str = ""
    text: str = ""  # of the item's own file


# ---- ids -------------------------------------------------------------------------------------------

# TASK-001, T1, 01, 1.2, W1A, P01-T07, 01-parser, HPC-INT-1, A1.1.b
ID = (
    r"(?:[A-Za-z]{1,12}[-_]?(?:[A-Za-z]{1,8}[-_])?)?\d+[A-Za-z]?"
    r"(?:\.[A-Za-z]{0,2}\d+|\.[a-z]\b|-[A-Za-z]{0,3}\d+)*(?:-[a-z][\w-]*)?"
)
_ORDINAL = re.compile(
    rf"^(?:task|item|todo|step|phase)(?:\s*[#:]\s*|\s+)({ID}|(?-i:[A-Z])(?=\s*(?:[:.)—–-]|$)))(?![\w%])\s*[:.)—–-]*\s*(.*)$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(rf"^[#\[(]?({ID})[\])]?(?![\w%/])(?:\s*[:)—–]\s*|\s+-\s+|\.\s+|\.?$|(\s+))(.*)$")
_SLUG = re.compile(r"^([a-z][a-z0-9]*(?:[-_][a-z0-9]+)+)(?:\s*[:—–(]\s*|\s+-\s+|\s*$)(.*)$")
_BOX = re.compile(r"^\[[ xX~-]\]\s*")


def split_id(text: str) -> tuple[str, str]:
    """`Task 3: Parser` -> ("3", "Parser"). The id is empty where the text begins with none."""
    said = _BOX.sub("", plain(text)).strip()
    for shape in (_ORDINAL, _NUMBERED, _SLUG):
        found = shape.match(said)
        if found and not _is_amount(found):
            return found.group(1), (found.group(found.re.groups) or "").strip(" :—–-")
    return "", said


def _is_amount(found: re.Match[str]) -> bool:
    """`3 files` begins with an amount, `03 parser` and `T3 parser` with an id."""
    return found.re is _NUMBERED and bool(found.group(2)) and re.fullmatch(r"[1-9]\d*", found.group(1)) is not None


def is_plain_number(name: str) -> bool:
    return bool(re.fullmatch(r"\d+(?:\.\d+)*", name))


def is_marked(text: str) -> bool:
    """Whether a text begins with `Task 3` or with an id that is more than a number."""
    said = _BOX.sub("", plain(text)).strip()
    if _ORDINAL.match(said):
        return True
    name, _ = split_id(text)
    return bool(name) and not is_plain_number(name)


# ---- files, numbers --------------------------------------------------------------------------------

_PATH = re.compile(
    r"(?:[\w.@~*{}\[\]-]+/)*[\w.@~*{}\[\]-]*\.[A-Za-z]\w{0,11}|(?:[\w.@~-]+/)+[\w.@~*-]*|Makefile|Dockerfile"
)
_COUNTED = re.compile(r"^\s*(\d+)\s*(?:\(([^)]*)\)|new|modified|files?|changed|created)?", re.IGNORECASE)


def files_in(cell: str) -> tuple[list[str], int | None]:
    """The files that a cell names, and how many it says there are."""
    counted = _COUNTED.match(plain(cell))
    count = int(counted.group(1)) if counted else None
    if counted and counted.group(2):
        names = [name.strip().split(" ")[0] for name in counted.group(2).split(",")]
        return [name for name in names if name], count
    coded = [code for code in re.findall(r"`([^`]+)`", cell) if _is_path(code)]
    if coded:
        return list(dict.fromkeys(_clean(path) for path in coded)), None
    words = [
        word.strip("()[],;\"'") for word in re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("<br>", " ").split()
    ]
    return list(dict.fromkeys(_clean(word) for word in words if _is_path(word))), count


def files_in_prose(text: str) -> list[str]:
    """Paths in a sentence: in code marks, or with both a folder and an ending."""
    coded = [code for code in re.findall(r"`([^`]+)`", text) if _is_path(code)]
    words = [word.strip("()[],;:\"'.") for word in text.split() if "`" not in word and "/" in word]
    return list(
        dict.fromkeys(
            _clean(path) for path in (*coded, *(w for w in words if _is_path(w) and "." in w.rsplit("/", 1)[-1]))
        )
    )


def _is_path(text: str) -> bool:
    text = re.sub(r"(?::\d+(?:[-–]\d+)?|#L\d+.*)$", "", text.strip())
    return " " not in text and bool(_PATH.fullmatch(text)) and not re.fullmatch(r"[a-z]\.[a-z]\.?", text)


def _clean(path: str) -> str:
    return re.sub(r"(?::\d+(?:[-–]\d+)?|#L\d+.*)$", "", path.strip()).removeprefix("./")


def largest_number(cell: str) -> int | None:
    """`~120`, `100-150`, `1,200 lines`: the upper end."""
    found = [int(number.replace(",", "")) for number in re.findall(r"\d{1,3}(?:,\d{3})+|\d+", cell)]
    return max(found) if found else None


def stem_of(cell: str) -> str:
    """The name of the Markdown file that a cell links to."""
    for target in link_targets(cell):
        name = target.rsplit("/", 1)[-1].partition("#")[0]
        if name.endswith(".md"):
            return name.removesuffix(".md")
    return ""


def said(cell: str) -> str | None:
    """What a cell says; None for an empty one or a dash."""
    text = plain(cell)
    return None if text in ("", "-", "–", "—", "?", "TBD", "n/a", "N/A") else text
