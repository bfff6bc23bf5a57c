"""Documents marked by hand, and what a pack made from them lacks. The format is in tests/data/packs/README.md.

read_marks(folder) -> the marks of every document      by_task(marks) -> those that are stored together
read_list(list, folder) -> the marks of documents that are not in this repository
lost_lines(text, ranges, pack) -> marked lines that are not in the pack, in their order
torn_units(text, pack) -> paragraphs, lists, tables that are partly there
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple, NotRequired, TypedDict

from markdown_it import MarkdownIt

Ranges = list[tuple[int, int]] | Literal["whole"]
FENCE = re.compile(r"^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
DECORATION = re.compile(r"[#*`=\s]+")
UNITS = {"paragraph_open", "bullet_list_open", "ordered_list_open", "table_open", "blockquote_open"}


class Source(TypedDict):
    registry: Literal["debian", "npm"]
    package: str
    version: str
    path: str
    sha256: str


class Marks(TypedDict):
    document: str
    stored_as: str
    why: str
    needs: dict[str, Ranges]
    task: NotRequired[str]
    units: NotRequired[bool]
    source: NotRequired[Source]


class Line(NamedTuple):
    number: int
    text: str


def read_marks(folder: Path) -> list[Marks]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.marks.json"))]


def read_list(path: Path, folder: Path) -> tuple[list[Marks], list[str]]:
    """Marks of documents elsewhere that lie in a folder, and the names of those that are not there or differ."""
    marks: list[Marks] = json.loads(path.read_text())
    present = [mark for mark in marks if _is_that(folder / mark["document"], mark["source"]["sha256"])]
    return present, [mark["document"] for mark in marks if mark not in present]


def _is_that(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def by_task(marks: list[Marks]) -> list[list[Marks]]:
    """Documents that are stored together; most are alone."""
    tasks: dict[str, list[Marks]] = {}
    for mark in marks:
        tasks.setdefault(mark.get("task", mark["document"]), []).append(mark)
    return list(tasks.values())


def marked_lines(text: str, ranges: Ranges) -> list[Line]:
    lines = text.splitlines()
    spans = [(1, len(lines))] if ranges == "whole" else ranges
    return [Line(number, lines[number - 1]) for first, last in spans for number in range(first, last + 1)]


def lost_lines(text: str, ranges: Ranges, pack: str) -> list[Line]:
    """Marked lines that do not stand in the pack after the marked line before them."""
    packed = [_flat(line) for line in pack.splitlines()]
    headings = {number for number, line in enumerate(packed) if line.startswith(("#", "==="))}
    titles = [DECORATION.sub(" ", line).strip() for line in packed]
    lost: list[Line] = []
    place = 0
    for line in marked_lines(text, ranges):
        if not _counts(line.text):
            continue
        wanted = _flat(line.text)
        is_heading = wanted.startswith(("#", "=="))
        if is_heading:
            title = DECORATION.sub(" ", wanted).strip()
            # The pack may put a heading that several parts share above all of them.
            found = next((at for at in range(place, len(packed)) if at in headings and title in titles[at]), None)
            found = place if found is None and any(title in titles[at] for at in headings) else found
        else:
            wanted = wanted.removesuffix("{").rstrip()
            found = next((at for at in range(place, len(packed)) if wanted in packed[at]), None)
        if found is None:
            lost.append(line)
        else:
            # Several headings may stand on one line of the pack; other lines stand on their own.
            place = found if is_heading else found + 1
    return lost


def torn_units(text: str, pack: str) -> list[tuple[Line, Line]]:
    """(a line that is in the pack, a line of the same unit that is not), one pair for each unit."""
    lines = text.splitlines()
    times = Counter(_flat(line) for line in lines)
    packed = {_flat(line) for line in pack.splitlines()}
    torn = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.level or token.type not in UNITS or token.map is None:
            continue
        # A line that stands twice in the document says nothing about this unit.
        unit = [
            Line(number + 1, lines[number])
            for number in range(*token.map)
            if number < len(lines) and _counts(lines[number]) and times[_flat(lines[number])] == 1
        ]
        there, gone = [[line for line in unit if (_flat(line.text) in packed) is present] for present in (True, False)]
        if there and gone:
            torn.append((there[0], gone[0]))
    return torn


def _counts(line: str) -> bool:
    return any(map(str.isalnum, line)) and not FENCE.match(line)


def _flat(line: str) -> str:
    return " ".join(line.split())
