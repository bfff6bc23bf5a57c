"""The running text of a plan: tables, headings, lists and fields that speak about items.

    read_text(text)              every mention in a plan, and the notes about waves, files and order
    read_item_file(name, text)   the one mention that an item's own file is

Where items stand. A section belongs to the wave (or phase) that its heading names, until a heading of the same rank.
A list entry that begins with an id is an item under a wave, a phase or a heading like "Tasks", or where it says what
it depends on. A heading is an item when it says "Task 3", or when fields (`**depends_on:** 01`) follow it. Each row of
a table with a column for the task, or for its id, is an item, if another column says what it depends on, its wave,
its agent, its files or its size.

What is said of them. A column, a label (`**Files:**`), a bracket `(depends_on: 01)`, the end of a line ("; needs 01",
"← 01"), a sentence ("02 depends on 01"), arrows ("01 -> 02") and `mermaid` graphs. Other code says nothing: dependency
graphs are drawn there, and drawings are not read.

Every line from which something was taken is in `trace`, with what it was; so is what looks like ours and is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tenuto.knowledge.markdown import Heading, Item, Line, Row, Table, find_code, plain, read
from tenuto.knowledge.plans.fields import (
    arrow_pieces,
    fields_of,
    front_matter,
    graph_line,
    is_label,
    sentence_of,
    set_field,
    split_fields,
    split_notes,
    waits_for,
)
from tenuto.knowledge.plans.mentions import (
    GROUP,
    ID,
    TASK,
    WAVE,
    Dependency,
    Mention,
    amount_in,
    dropped_by_status,
    dropped_by_title,
    drops_all,
    files_in,
    files_in_prose,
    files_of_title,
    is_marked,
    is_plain_number,
    is_ticked,
    largest_number,
    role_of_column,
    role_of_label,
    split_id,
    stem_of,
    value_in,
)


class Trace(NamedTuple):
    line: int
    mention: Mention | None
    what: str  # "item", a role of mentions.py, "section", "arrow", "order", "waves", "file", or "ignored"
    value: str


class WaveNote(NamedTuple):
    """The text that names the items of a wave."""

    label: str
    text: str
    line: int
    table: int = 0


class Order(NamedTuple):
    """Somebody waits for something, in the plan's words."""

    who: str
    what: str
    line: int


class Arrows(NamedTuple):
    """`01 -> 02, 03 -> 04`: each piece names items; which end comes first is seen from all arrows of a block."""

    pieces: list[str]
    line: int
    block: int
    label: str
    drawn: bool


@dataclass
class PlanText:
    """Everything that one plan says, unmerged."""

    mentions: list[Mention] = field(default_factory=list)
    boxed: list[Mention] = field(default_factory=list)  # entries of checklists that begin with an id
    loose: list[Mention] = field(default_factory=list)  # entries under a wave or task heading that carry no id
    nodes: list[Mention] = field(default_factory=list)  # of a mermaid graph
    wave_notes: list[WaveNote] = field(default_factory=list)
    file_notes: list[tuple[list[str], str, int]] = field(default_factory=list)  # files, text that names items, line
    orders: list[Order] = field(default_factory=list)
    arrows: list[Arrows] = field(default_factory=list)
    trace: list[Trace] = field(default_factory=list)
    counted: dict[int, bool] = field(default_factory=dict)  # table -> whether its column of files holds amounts only

    def note(self, line: int, what: str, value: str = "", mention: Mention | None = None) -> None:
        self.trace.append(Trace(line, mention, what, value))


# ---- tables ----------------------------------------------------------------------------------------

_ABOUT = ("depends", "after", "blocks", "wave", "agent", "files", "lines", "effort")
_ORDERING = ("depends", "after", "blocks", "wave", "agent")

Columns = dict[str, int]


def columns(table: Table) -> Columns:
    found: Columns = {}
    for at, cell in enumerate(table.header):
        role = role_of_column(cell)
        # `#` counts rows where another column holds the ids proper.
        if role and (role not in found or (role == "id" and plain(table.header[found["id"]]).strip() in ("#", "No."))):
            found[role] = at
    if "id" not in found and "ordinal" in found and "task" in found:
        found["id"] = found["ordinal"]
    if found.get("agent") == 0 and not any(role in found for role in ("id", "task", "title")):
        del found["agent"]  # each agent is the item: its name is what others depend on
    if "id" in found and "task" not in found and "title" not in found and "description" in found:
        found["title"] = found["description"]
    return found


def defines_items(table: Table, has: Columns) -> bool:
    if "foreign" in has or maps_files(table, has) or lists_waves(has):
        return False
    if "task" in has:
        return "id" in has or any(role in has for role in _ABOUT)
    if "id" in has:
        return any(role in has for role in (*_ORDERING, "files"))
    return ("depends" in has or "after" in has) and "wave" in has


def maps_files(table: Table, has: Columns) -> bool:
    tasks = has.get("tasks", has.get("task"))
    return (
        "files" in has
        and tasks is not None
        and has["files"] < tasks
        and not any(role in has for role in ("id", "foreign", *_ORDERING))
    )


def lists_waves(has: Columns) -> bool:
    return "wave" in has and "tasks" in has and not any(role in has for role in ("id", "task", "foreign"))


def wave_headings(table: Table) -> dict[int, str]:
    """`| Wave 1 | Wave 2 |`: the columns that are waves."""
    found = {at: label for at, cell in enumerate(table.header) if (label := wave_of(plain(cell))[0])}
    return found if len(found) > 1 else {}


def rows_of(table: Table, has: Columns, out: PlanText) -> list[Mention]:
    """The items of a table that defines items."""
    made: list[Mention] = []
    for row in table.rows:
        mention = _mention(table, row, has)
        if mention:
            made.append(mention)
            _note_row(out, table, row, has, mention)
    cells = [row.cells[has["files"]] for row in table.rows if "files" in has and len(row.cells) > has["files"]]
    out.counted[table.number] = bool(cells) and all(amount_in(cell) is not None for cell in cells)
    return made


def _note_row(out: PlanText, table: Table, row: Row, has: Columns, mention: Mention) -> None:
    out.note(row.number, "item", "", mention)
    for role, at in has.items():
        if role not in ("id", "task", "title", "description", "ordinal") and at < len(row.cells) and row.cells[at]:
            out.note(row.number, role, plain(row.cells[at]), mention)


def _mention(table: Table, row: Row, has: Columns) -> Mention | None:
    cells = {role: row.cells[at] for role, at in has.items() if at < len(row.cells)}
    if len([cell for cell in row.cells if cell.strip()]) < 2:
        return None  # a heading inside the table
    naming = [cells.get(role, "") for role in ("id", "task", "title")]
    if not any(naming):
        naming = [row.cells[0]]
    name, title = _named(cells, row, plain(table.header[has["ordinal"]]).casefold() if "ordinal" in has else "")
    if not name and not title:
        return None
    files, count = files_in(cells.get("files", ""))
    made = Mention(
        id=name,
        title=title,
        kind="table",
        block=table.number,
        line=row.number,
        stem=next((stem for cell in naming if (stem := stem_of(cell))), ""),
        files=files,
        file_count=count,
        agent=value_in(cells.get("agent", "")),
        wave=value_in(cells.get("wave", "")),
        effort=value_in(cells.get("effort", "")),
        lines=largest_number(cells.get("lines", "")),
        description=plain(cells.get("description", "")),
    )
    for role, target in (("depends", made.depends), ("after", made.depends), ("blocks", made.blocks)):
        if role in cells:
            target.append(Dependency(plain(cells[role]), row.number, role == "after", table.number))
    if any(dropped_by_title(cell) for cell in naming if cell) or dropped_by_status(cells.get("status", "")):
        made.dropped = f"line {row.number} says so"
    return made


def _named(cells: dict[str, str], row: Row, kind: str) -> tuple[str, str]:
    """The id and the title of a row, from whichever columns hold them."""
    title = plain(cells.get("title", "")).strip("~") or ""
    if "id" in cells and value_in(cells["id"]):
        name, rest = split_id(cells["id"])
        task = plain(cells.get("task", "")).strip("~")
        if cells.get("ordinal") == cells["id"] and cells["id"].strip().isdigit():
            name = f"{kind}-{name}"  # the others say "Phase 3" when they depend on it
        return (name or plain(cells["id"])), (title or task or rest)
    source = cells.get("task", cells.get("title", row.cells[0]))
    name, rest = split_id(source)
    return name, (title if title and "task" in cells else rest)


# ---- sections --------------------------------------------------------------------------------------

T = TypeVar("T")

_WAVE = re.compile(
    rf"^(?:[\d.]+\s+)?\W{{0,3}}(?:(?i:execution|implementation|parallel)\s+)?(?i:{WAVE})(?:\s*[#-]\s*|\s+|(?=\d))(\d+[a-z]?|[A-Z])\b(.*)$"
)
_WAVE_COUNTED = re.compile(r"^第\s*(\d+)\s*波次?(.*)$")
_GROUP = re.compile(rf"^(?:[\d.]+\s+)?\W{{0,3}}((?i:{GROUP}))\s*[#:-]?\s*(\d+[a-z]?|[A-Z])\b")
_TASK_LIST = re.compile(
    r"^(?:[\d.]+\s*)?(?:ordered |implementation |detailed )?(?:tasks?|work items?|aufgaben|tareas|tâches|tarefas|任务)"
    r"(?: (?:list|index|breakdown|overview|definitions?|details|descriptions?))?$|^(?:[\d.]+\s*)?implementation "
    r"(?:steps|order)$",
    re.IGNORECASE,
)
_LISTED = re.compile(
    rf"^(?:(?:tasks?|items?)(?:\s*\([^)]*\))?\s*:\s*(?=\S*\d)(.+)|((?:#?{ID}\s*,\s*)+#?{ID}))$", re.IGNORECASE
)
_NOT_A_TITLE = re.compile(
    r"^(?:→|->|-->|=>|←|⇒|depends?\b|blocks?\b|blocked\b|requires?\b|needs\b|comes?\b)", re.IGNORECASE
)


def wave_of(text: str) -> tuple[str, str]:
    """`Wave 2 — Templates` -> ("2", " — Templates")."""
    found = _WAVE.match(text) or _WAVE_COUNTED.match(text)
    return (found.group(1), found.group(2)) if found else ("", "")


class _Reader:
    """Where in the plan we are: the wave, the phase, the item, the field."""

    def __init__(self) -> None:
        self.out = PlanText()
        self.taken: set[int] = set()  # the mentions that are in it, by their identity
        self.wave: tuple[str, int] | None = None  # label, rank of its heading
        self.wave_depends: list[Dependency] = []
        self.group: tuple[str, int] | None = None
        self.tasks: int | None = None  # rank of a heading that announces tasks
        self.dropped: tuple[str, int] | None = None  # a section of tasks that are not to be done
        self.owner: tuple[Mention, int] | None = None  # the item whose section this is
        self.entry: tuple[Mention, int] | None = None  # the list entry that is an item, and its indent
        self.section = 0  # the line of the last heading
        self.list_start = 0
        self.open: tuple[Mention, str, int] | None = None  # a label whose values stand in the list below; its indent

    def heading(self, block: Heading) -> None:
        title = plain(block.text)
        role = role_of_label(title.strip(" :")) if self.owner and block.level > self.owner[1] else ""
        if self.owner and role not in ("", "id", "title"):
            self.open = (self.owner[0], role, -1)
            return
        self.open, self.entry, self.list_start, self.section = None, None, 0, block.number
        self.wave = _unless_left(self.wave, block.level)
        self.group = _unless_left(self.group, block.level)
        self.owner = _unless_left(self.owner, block.level)
        self.dropped = _unless_left(self.dropped, block.level)
        if self.tasks is not None and block.level <= self.tasks:
            self.tasks = None
        group = _GROUP.match(title)
        label, _ = wave_of(title)
        if label:
            self._open_wave(label, block.level, title, block.number)
        elif group:
            self.group = (f"{group.group(1)} {group.group(2)}".lower(), block.level)
            self.out.note(block.number, "section", self.group[0])
        elif _TASK_LIST.match(title):
            self.tasks = block.level
            self.out.note(block.number, "section", "a list of tasks")
        elif drops_all(title):
            self.dropped = (title, block.level)
            self.out.note(block.number, "section", "tasks that are not to be done")
        elif split_id(block.text)[0]:
            self._heading_item(block)

    def _open_wave(self, label: str, level: int, title: str, number: int) -> None:
        self.wave = (label, level)
        self.out.note(number, "section", f"wave {label}")
        notes = [value for role, value in split_notes(title)[1] if role in ("depends", "after")]
        # That a wave comes after the one before it needs no edges.
        own = [value for value in notes if not re.search(rf"\b(?:{WAVE})s?\b|\b(?:{GROUP})s?\b", value, re.IGNORECASE)]
        self.wave_depends = [Dependency(value, number, weak=True, inherited=True) for value in own]
        for value in notes:
            what = "depends" if value in own else "ignored"
            self.out.note(number, what, value if value in own else "the order of the waves says that already")

    def _heading_item(self, block: Heading) -> None:
        bare, notes = split_notes(plain(block.text))
        name, title = split_id(bare)
        mention = self._mention(name, title, "heading", block)
        mention.stem = stem_of(block.text)
        if dropped_by_title(block.text):
            mention.dropped = f"line {block.number} says so"
        for role, value in notes:
            set_field(mention, role, value, block.number)
            self.out.note(block.number, role, value, mention)
        self.owner = (mention, block.level)
        # Under a wave, or where tasks were announced, every heading with a number is one.
        announced = self.wave is not None or self.tasks is not None
        words = re.sub(r"^(?:\[[^\]]*\]\s*|\W)*", "", plain(block.text))
        if announced or re.match(rf"(?i)(?:{TASK})(?![a-z])", words) or re.match(r"0\d+-[a-z]", name):
            self._take(mention, block.number)

    def _take(self, mention: Mention, line: int) -> None:
        self.taken.add(id(mention))
        self.out.mentions.append(mention)
        self.out.note(line, "item", "", mention)

    def _mention(self, name: str, title: str, kind: str, block: Heading | Item | Line) -> Mention:
        made = Mention(
            name, title, "heading" if kind == "heading" else "list", self.list_start or block.number, block.number
        )
        self._place(made)
        return made

    def _place(self, made: Mention) -> None:
        made.wave = made.wave or (self.wave[0] if self.wave else None)
        made.group = self.group[0] if self.group else None
        made.depends += self.wave_depends if self.wave else []
        if self.dropped:
            made.dropped = made.dropped or f"it stands under '{self.dropped[0]}'"

    def table(self, block: Table) -> None:
        self.open, self.entry, self.list_start = None, None, 0
        has, waves = columns(block), wave_headings(block)
        if waves:
            for row in block.rows:
                for at, label in waves.items():
                    if at < len(row.cells) and row.cells[at]:
                        self._wave_note(label, plain(row.cells[at]), row.number, block.number)
        elif lists_waves(has):
            for row in block.rows:
                if len(row.cells) > max(has["wave"], has["tasks"]):
                    label, tasks = plain(row.cells[has["wave"]]), plain(row.cells[has["tasks"]])
                    self._wave_note(label, tasks, row.number, block.number)
        elif maps_files(block, has):
            self._file_map(block, has)
        elif defines_items(block, has):
            made = rows_of(block, has, self.out)
            for mention in made:
                self._place(mention)
            self.out.mentions.extend(made)
            named = {at: role for role, at in has.items() if role not in ("ignored", "amount", "ordinal")}
            roles = [f"'{plain(cell)}' {named[at]}" for at, cell in enumerate(block.header) if at in named]
            unread = [f"'{plain(cell)}'" for at, cell in enumerate(block.header) if cell and at not in named]
            self.out.note(block.number, "section", f"a table of tasks: {', '.join(roles)}")
            if unread:
                self.out.note(block.number, "ignored", f"columns that are not read: {', '.join(unread)}")
        elif self.owner and len(block.header) == 2:
            for number, cells in [(block.number, block.header), *((row.number, row.cells) for row in block.rows)]:
                if len(cells) == 2:
                    self._take_fields(f"{cells[0]}: {cells[1]}", number)
        else:
            foreign = [plain(cell) for cell in block.header if role_of_column(cell) == "foreign"]
            why = f"it has a column '{foreign[0]}'" if foreign else "no column says which task, and what of it"
            self.out.note(block.number, "ignored", f"a table that lists no tasks: {why}")

    def _file_map(self, block: Table, has: Columns) -> None:
        tasks = has.get("tasks", has.get("task", 0))
        for row in block.rows:
            if len(row.cells) > tasks and (files := files_in(row.cells[has["files"]])[0]):
                self.out.file_notes.append((files, plain(row.cells[tasks]), row.number))
                self.out.note(row.number, "file", plain(row.cells[tasks]))

    def _wave_note(self, label: str, text: str, line: int, table: int = 0) -> None:
        self.out.wave_notes.append(WaveNote(label, text, line, table))
        self.out.note(line, "waves", label)

    def line(self, block: Line) -> None:
        self.entry, self.list_start = None, 0
        text = plain(block.text)
        if self._wave_line(block, text) or self._wave_list(text, block.number):
            return
        sure = any(role == "depends" for role, _ in split_notes(text)[1])
        if sure and split_id(text)[0] and not arrow_pieces(text)[1]:
            self.open = None
            self._list_item(Item(block.number, block.text, 0, "-"), text)
        elif not self._take_fields(block.text, block.number):
            self.open = None
            self._order(text, block.number)

    def _wave_line(self, block: Line | Item, text: str) -> bool:
        """`**Wave 1:**` opens a wave; `Wave 1 (parallel): 01, 02` fills one."""
        label, rest = wave_of(text)
        if not label:
            return False
        head, colon, tail = rest.replace("：", ":").partition(":")
        if tail.strip():
            self._wave_note(label, tail.strip(), block.number)
            return True
        if colon or (block.text.startswith("**") and len(head) < 80):
            self._open_wave(label, 7, head, block.number)
            return True
        return False

    def _wave_list(self, text: str, number: int) -> bool:
        """`Tasks: 01, 02` under a wave's heading."""
        listed = _LISTED.match(text) if self.wave and len(text) < 2000 else None
        if self.wave and listed:
            self._wave_note(self.wave[0], listed.group(1) or listed.group(2), number)
        return listed is not None

    def file_item(self, block: Item) -> None:
        if not self._take_fields(block.text, block.number, block.indent):
            self._add_value(block.text, block.number, block.indent)

    def file_line(self, block: Line) -> None:
        """A line below a heading that is a label is its value: `## Agent`, then `implementer`."""
        if self._take_fields(block.text, block.number):
            return
        if self._add_value(block.text, block.number, 0):
            self.open = None

    def item(self, block: Item) -> None:
        text = plain(block.text)
        if self._wave_line(block, text):
            return
        below = self.entry is not None and block.indent > self.entry[1] and not self._begins_part(block)
        if below or not (self._wave_list(text, block.number) or self._list_item(block, text)):
            self._below(block, text)

    def _begins_part(self, block: Item) -> bool:
        """`3.1` below `3`: a part of it, with an id of its own."""
        name, above = split_id(block.text)[0], self.entry[0].id if self.entry else ""
        return bool(above) and name.startswith(f"{above}.") and is_plain_number(name)

    def _below(self, block: Item, text: str) -> None:
        """An entry that is no item: a field, a value of the label above, or a sentence about the order."""
        if self._take_fields(block.text, block.number, block.indent):
            return
        if self._add_value(block.text, block.number, block.indent):
            return
        waiting = waits_for(text)
        target = self.entry[0] if self.entry else None
        if waiting and target:
            set_field(target, *waiting, block.number)
            self.out.note(block.number, *waiting, target)
        else:
            self._order(text, block.number)

    def _list_item(self, block: Item, text: str) -> bool:
        """An entry that is an item becomes one; True when it did."""
        entry, fields = split_fields(block.text)
        bare, notes = split_notes(plain(entry))
        notes += fields
        annotated = any(role == "depends" for role, _ in notes)
        name, title = split_id(bare)
        in_list = self.wave is not None or self.tasks is not None or self.dropped is not None
        in_section = self.owner is not None and id(self.owner[0]) in self.taken
        if (not annotated and (self._is_value(block) or in_section)) or _NOT_A_TITLE.match(title):
            return False
        listed = in_list or (self.group is not None and is_marked(bare))
        boxed = bool(name) and not listed and not annotated and block.text.lstrip().startswith("[")
        if not (entry and (annotated or (listed and bool(name)) or boxed) and (name or annotated)):
            if entry and in_list and not name and block.indent == 0 and not self.dropped:
                self._loose(block, text)
            return False
        self.open = None
        if not self.list_start:
            self.list_start = block.number
        mention = self._mention(name, title, "list", block)
        mention.stem = stem_of(block.text)
        mention.files = files_in_prose(bare if annotated else block.text)
        mention.ticked = is_ticked(block.text)
        if dropped_by_title(plain(block.text)):
            mention.dropped = f"line {block.number} says so"
        if boxed:
            self.taken.add(id(mention))
            self.out.boxed.append(mention)
            self.out.note(block.number, "item", "", mention)
        else:
            self._take(mention, block.number)
        for role, value in notes:
            set_field(mention, role, value, block.number)
            self.out.note(block.number, role, value, mention)
        self.entry = (mention, block.indent)
        return True

    def _loose(self, block: Item, text: str) -> None:
        number = block.mark.rstrip(".)") if block.mark[0].isdigit() else ""
        if not self.list_start:
            self.list_start = block.number
        mention = self._mention(number, text, "list", block)
        mention.files = files_in_prose(block.text)
        self.out.loose.append(mention)
        self.out.note(block.number, "item", "", mention)

    def _is_value(self, block: Item) -> bool:
        return self.open is not None and block.indent > self.open[2] and not is_label(block.text)

    def _add_value(self, text: str, line: int, indent: int) -> bool:
        """A value of the label above. What is a label itself, or stands no deeper than it, ends the list."""
        if self.open is None:
            return False
        target, role, depth = self.open
        if indent <= depth or is_label(text):
            self.open = None
            return False
        set_field(target, role, text, line)
        self.out.note(line, role, plain(text), target)
        return True

    def _take_fields(self, text: str, line: int, indent: int = -1) -> bool:
        """Fields of the item around: `**depends_on:** 01`. A first field makes a heading an item."""
        found = fields_of(text)
        target = self.entry[0] if self.entry else self.owner[0] if self.owner else None
        if not found or target is None:
            if target is not None and is_label(text):
                self.out.note(line, "ignored", f"'{plain(text).partition(':')[0]}' is left to the agent")
            return False
        for role, value in found:
            if value or role not in ("depends", "after", "blocks"):
                set_field(target, role, value, line)
                self.out.note(line, role, plain(value), target)
        self.open = None if found[-1][1] else (target, found[-1][0], indent)
        telling = any(role in ("depends", "agent", "wave", "files") for role, _ in found)
        orders = any(role == "depends" for role, _ in found)
        section = is_plain_number(target.id) and self.group is None and not orders
        if telling and not section and id(target) not in self.taken:
            self._take(target, target.line)
        return True

    def _order(self, text: str, line: int) -> None:
        label, pieces = arrow_pieces(text)
        if pieces:
            self.out.arrows.append(Arrows(pieces, line, self.section, label, drawn=False))
            self.out.note(line, "arrow", "")
            return
        sentence = sentence_of(text)
        if sentence:
            self.out.orders.append(Order(*sentence, line))
            self.out.note(line, "order", "")


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
    _read_graphs(text, reader.out)
    for mention in [*reader.out.mentions, *reader.out.boxed]:
        mention.files = mention.files or files_of_title(mention.title)
        if mention.kind != "table":
            reader.out.note(mention.line, "files", ", ".join(mention.files), mention)
    return reader.out


def _read_graphs(text: str, out: PlanText) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for code in (block for block in find_code(lines)[0] if block["language"] == "mermaid"):
        body = range(code["first"], code["last"])
        if not re.match(r"\s*(?:graph|flowchart)\b", next((lines[at] for at in body if lines[at].strip()), "")):
            continue
        block = code["start"] + 1
        names: dict[str, str] = {}  # node -> the id in its label, else its own
        for at in body:
            pieces = graph_line(lines[at])
            for node, label in (node for piece in pieces for node in piece):
                name, title = split_id(label)
                if node not in names:
                    out.nodes.append(Mention(name or node, title or label or node, "note", block, at + 1))
                names[node] = name or names.get(node, node)
            if len(pieces) > 1:
                chain = [", ".join(names[node] for node, _ in piece) for piece in pieces]
                out.arrows.append(Arrows(chain, at + 1, block, "", drawn=True))
                out.note(at + 1, "arrow", "")


def read_item_file(name: str, text: str) -> tuple[Mention, list[Trace]]:
    """An item's own file is one section about one item."""
    stem = name.rsplit("/", 1)[-1].removesuffix(".md")
    entries, body = front_matter(text)
    mention = Mention(stem, "", "file", 0, 1, stem=stem, text=text)
    reader = _Reader()
    for role, value in entries:
        set_field(mention, role, value, 1)
        reader.out.note(1, role, value, mention)
    reader.taken.add(id(mention))
    reader.out.mentions.append(mention)
    for block in read(body):
        reader.owner = (mention, 0)
        match block:
            case Heading(level=1) if not mention.title:
                mention.title = split_id(block.text)[1] or plain(block.text)
                if dropped_by_title(block.text):
                    mention.dropped = f"{name} says so in line {block.number}"
            case Heading():
                reader.open = None
                role = role_of_label(plain(block.text).strip(" :"))
                if role not in ("", "id", "title"):
                    reader.open = (mention, role, -1)
            case Table():
                reader.table(block)
            case Item():
                reader.file_item(block)
            case Line():
                reader.file_line(block)
                shouted = re.match(r"\W*([A-Z]{5,})\b", plain(block.text))
                if block.number < 12 and shouted and dropped_by_status(shouted.group(1)):
                    mention.dropped = f"{name} says so in line {block.number}"
    return mention, reader.out.trace
