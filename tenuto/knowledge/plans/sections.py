"""The running text of a plan: headings, lists and fields that speak about items.

    read_text(text)          every mention in a plan, and the notes about waves, files and order
    read_item_file(name, text)   the one mention that an item's own file is

A section belongs to the wave (or phase) that its heading names, until a heading of the same rank.
A list entry is an item under a wave, or where it says what it depends on. A heading is an item
when it says "Task 3", or when fields (`**depends_on:** 01`) follow it. Code blocks say nothing:
dependency graphs are drawn there, and drawings are not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

from tenuto.knowledge.markdown import Heading, Item, Line, Table, plain, read
from tenuto.knowledge.plans import tables
from tenuto.knowledge.plans.fields import FieldReader, fields_of, front_matter, set_field, split_fields, split_notes
from tenuto.knowledge.plans.mentions import ID, Mention, files_in_prose, is_marked, is_plain_number, split_id, stem_of

T = TypeVar("T")

_WAVE = re.compile(
    r"^(?:[\d.]+\s+)?\W{0,3}(?:(?i:execution|implementation|parallel)\s+)?(?i:wave)(?:\s*[#-]\s*|\s+|(?=\d))(\d+[a-z]?|[A-Z])\b(.*)$"
)
_GROUP = re.compile(r"^(?:[\d.]+\s+)?\W{0,3}((?i:phase|stage|batch|sprint|milestone))\s*[#:-]?\s*(\d+[a-z]?|[A-Z])\b")
_TASK_LIST = re.compile(
    r"^(?:[\d.]+\s*)?(?:ordered |implementation |detailed )?(?:tasks?|work items?)"
    r"(?: (?:list|index|breakdown|overview|definitions?|details|descriptions?))?$|^(?:[\d.]+\s*)?implementation (?:steps|order)$",
    re.IGNORECASE,
)
_LISTED = re.compile(
    rf"^(?:(?:tasks?|items?)(?:\s*\([^)]*\))?\s*:\s*(?=\S*\d)(.+)|((?:#?{ID}\s*,\s*)+#?{ID}))$", re.IGNORECASE
)
_NOT_A_TITLE = re.compile(r"^(?:→|->|=>|←|⇒|depends?\b|blocks?\b|requires?\b)", re.IGNORECASE)
_PROSE = re.compile(r"^(.{1,80}?)\s+(?:depends?|rel(?:y|ies))\s+(?:up)?on\s+(.+)$", re.IGNORECASE)


@dataclass
class PlanText:
    """Everything that one plan says, unmerged."""

    mentions: list[Mention] = field(default_factory=list)
    wave_notes: list[tuple[str, str, int]] = field(default_factory=list)  # label, text that names items, line
    file_notes: list[tuple[list[str], str]] = field(default_factory=list)  # files, text that names items
    order_notes: list[tuple[str, str]] = field(default_factory=list)  # who, depends on what
    loose: list[Mention] = field(default_factory=list)  # entries under a wave or task heading that carry no id


class _Reader:
    """Where in the plan we are: the wave, the phase, the item, the field."""

    def __init__(self) -> None:
        self.out = PlanText()
        self.wave: tuple[str, int] | None = None  # label, rank of its heading
        self.group: tuple[str, int] | None = None
        self.tasks: int | None = None  # rank of a heading that announces tasks
        self.owner: tuple[Mention, int] | None = None  # the item whose section this is
        self.entry: tuple[Mention, int] | None = None  # the list entry that is an item, and its indent
        self.list_start = 0
        self.fields = FieldReader()

    def heading(self, block: Heading) -> None:
        title = plain(block.text)
        if self.owner and block.level > self.owner[1] and self.fields.open_by_heading(title, self.owner[0]):
            return
        self.fields.close()
        self.entry, self.list_start = None, 0
        self.wave = _unless_left(self.wave, block.level)
        self.group = _unless_left(self.group, block.level)
        self.owner = _unless_left(self.owner, block.level)
        if self.tasks is not None and block.level <= self.tasks:
            self.tasks = None
        wave, group = _WAVE.match(title), _GROUP.match(title)
        if wave:
            self.wave = (wave.group(1), block.level)
        elif group:
            self.group = (f"{group.group(1)} {group.group(2)}".lower(), block.level)
        elif _TASK_LIST.match(title):
            self.tasks = block.level
        elif split_id(block.text)[0]:
            self._heading_item(block)

    def _heading_item(self, block: Heading) -> None:
        name, title = split_id(block.text)
        mention = self._mention(name, title, "heading", block)
        mention.stem = stem_of(block.text)
        self.owner = (mention, block.level)
        # Under a wave, or where tasks were announced, every heading with a number is one.
        announced = self.wave is not None or self.tasks is not None
        if announced or re.match(r"(?i)(?:task|item|todo)\b", plain(block.text)) or re.match(r"0\d+-[a-z]", name):
            self.out.mentions.append(mention)

    def _mention(self, name: str, title: str, kind: str, block: Heading | Item | Line) -> Mention:
        made = Mention(
            name, title, "heading" if kind == "heading" else "list", self.list_start or block.number, block.number
        )
        made.wave = self.wave[0] if self.wave else None
        made.group = self.group[0] if self.group else None
        return made

    def table(self, block: Table) -> None:
        self.fields.close()
        self.entry, self.list_start = None, 0
        wave = self.wave[0] if self.wave else None
        if tables.lists_waves(block):
            self.out.wave_notes.extend(tables.wave_rows(block))
        elif tables.maps_files(block):
            self.out.file_notes.extend(tables.file_map(block))
        elif tables.defines_items(block):
            self.out.mentions.extend(tables.mentions(block, wave, self.group[0] if self.group else None))
        elif self.owner and len(block.header) == 2:
            for cells in [block.header, *(row.cells for row in block.rows)]:
                if len(cells) == 2:
                    self._take_fields(f"{cells[0]}: {cells[1]}")

    def line(self, block: Line) -> None:
        self.entry, self.list_start = None, 0
        text = plain(block.text)
        wave = _WAVE.match(text)
        if wave and self._wave_line(wave, block):
            return
        if self._wave_list(text, block.number):
            return
        if any(role == "depends" for role, _ in split_notes(text)[1]) and split_id(text)[0]:
            self.fields.close()
            self._list_item(Item(block.number, block.text, 0, "-"), text)
        elif not self._take_fields(block.text):
            self.fields.close()
            self._order_note(text)

    def _wave_line(self, wave: re.Match[str], block: Line | Item) -> bool:
        """`**Wave 1:**` opens a wave; `Wave 1 (parallel): 01, 02` fills one."""
        head, colon, rest = wave.group(2).partition(":")
        if rest.strip():
            self.out.wave_notes.append((wave.group(1), rest.strip(), block.number))
            return True
        if colon or (block.text.startswith("**") and len(head) < 80):
            self.wave = (wave.group(1), 7)
            return True
        return False

    def _wave_list(self, text: str, number: int) -> bool:
        """`Tasks: 01, 02` under a wave's heading."""
        listed = _LISTED.match(text) if self.wave and len(text) < 2000 else None
        if self.wave and listed:
            self.out.wave_notes.append((self.wave[0], listed.group(1) or listed.group(2), number))
        return listed is not None

    def file_item(self, block: Item) -> None:
        if not self._take_fields(block.text):
            self.fields.add(block.text)

    def file_line(self, block: Line) -> None:
        """A line below a heading that is a label is its value: `## Agent`, then `implementer`."""
        if self._take_fields(block.text):
            return
        if self.fields.add(block.text):
            self.fields.close()

    def item(self, block: Item) -> None:
        text = plain(block.text)
        wave = _WAVE.match(text)
        if wave and self._wave_line(wave, block):
            return
        if self.entry and block.indent > self.entry[1]:
            if not self._take_fields(block.text) and not self.fields.add(block.text):
                self._order_note(text)
            return
        if self._wave_list(text, block.number) or self._list_item(block, text):
            return
        if not self._take_fields(block.text) and not self.fields.add(block.text):
            self._order_note(text)

    def _list_item(self, block: Item, text: str) -> bool:
        """An entry that is an item becomes one; True when it did."""
        entry, fields = split_fields(block.text)
        bare, notes = split_notes(plain(entry))
        notes += fields
        annotated = any(role == "depends" for role, _ in notes)
        name, title = split_id(bare)
        in_list = self.wave is not None or self.tasks is not None
        in_section = self.owner is not None and self.owner[0] in self.out.mentions
        if (not annotated and (self.fields.is_open or in_section)) or _NOT_A_TITLE.match(title):
            return False
        wanted = annotated or (in_list and bool(name)) or (self.group is not None and is_marked(bare))
        if not (entry and wanted and (name or annotated)):
            if entry and in_list and not name and block.indent == 0:
                self._loose(block, text)
            return False
        if not self.list_start:
            self.list_start = block.number
        mention = self._mention(name, title, "list", block)
        mention.stem = stem_of(block.text)
        mention.files = files_in_prose(bare if annotated else block.text)
        for role, value in notes:
            set_field(mention, role, value)
        self.out.mentions.append(mention)
        self.entry = (mention, block.indent)
        return True

    def _loose(self, block: Item, text: str) -> None:
        number = block.mark.rstrip(".)") if block.mark[0].isdigit() else ""
        if not self.list_start:
            self.list_start = block.number
        mention = self._mention(number, text, "list", block)
        mention.files = files_in_prose(block.text)
        self.out.loose.append(mention)

    def _take_fields(self, text: str) -> bool:
        """Fields of the item around: `**depends_on:** 01`. A first field makes a heading an item."""
        found = fields_of(text)
        target = self.entry[0] if self.entry else self.owner[0] if self.owner else None
        if not found or target is None:
            return False
        for role, value in found:
            set_field(target, role, value)
        self.fields.open(target, found[-1][0], found[-1][1])
        telling = any(role in ("depends", "agent", "wave", "files") for role, _ in found)
        section = is_plain_number(target.id) and self.group is None and not _orders(found)
        if telling and not section and target not in self.out.mentions:
            self.out.mentions.append(target)
        return True

    def _order_note(self, text: str) -> None:
        prose = _PROSE.match(text)
        if prose and re.search(r"\d", prose.group(1)):
            self.out.order_notes.append((prose.group(1).strip(" -*•"), prose.group(2)))


def _orders(found: list[tuple[str, str]]) -> bool:
    return any(role == "depends" for role, _ in found)


def _unless_left(context: tuple[T, int] | None, level: int) -> tuple[T, int] | None:
    return context if context and context[1] < level else None


def read_text(text: str) -> PlanText:
    reader = _Reader()
    for block in read(text):
        match block:
            case Heading():
                reader.heading(block)
            case Table():
                reader.table(block)
            case Item():
                reader.item(block)
            case Line():
                reader.line(block)
    return reader.out


def read_item_file(name: str, text: str) -> Mention:
    """An item's own file is one section about one item."""
    stem = name.rsplit("/", 1)[-1].removesuffix(".md")
    entries, body = front_matter(text)
    mention = Mention(stem, "", "file", 0, 1, stem=stem, text=text)
    for label, value in entries.items():
        for role, found in fields_of(f"{label}: {value}"):
            set_field(mention, role, found)
    reader = _Reader()
    reader.out.mentions.append(mention)
    for block in read(body):
        reader.owner = (mention, 0)
        match block:
            case Heading(level=1) if not mention.title:
                mention.title = split_id(block.text)[1] or plain(block.text)
            case Heading():
                reader.fields.close()
                reader.fields.open_by_heading(plain(block.text), mention)
            case Table():
                reader.table(block)
            case Item():
                reader.file_item(block)
            case Line():
                reader.file_line(block)
    return mention
