"""Which tables of a plan are about items, and what their columns mean.

    items of a table       each row is an item: an id or a task, and something about it
    files of a table       each row is a file and the tasks that touch it
    waves of a table       each row is a wave and the tasks in it

Plans hold many tables that look alike: success criteria, risks, pre-mortems, tests. A column
that only those have excludes a table; without an id or a task column there are no items.
"""

from __future__ import annotations

import re

from tenuto.knowledge.markdown import Row, Table, plain
from tenuto.knowledge.plans.mentions import Mention, files_in, largest_number, said, split_id, stem_of

# First match decides. A heading is compared in lower case, without what stands in parentheses.
_ROLES: tuple[tuple[str, str], ...] = (
    ("foreign", r"failure.*|likelihood|mitigation.*|criterion|covered by.*|severity|probability|test id|test name|pair"),
    ("blocks", r"blocks|unblocks|dependents|downstream|required by|needed by"),
    ("ignored", r"files? read.*|read.?only.*|.*\bnot\b.*"),
    ("depends", r".*depend(s|ency|encies|s.on)?\b.*|deps?|blocked.by|requires?|prereq.*|after|predecessors?|needs|waits? (for|on)"),
    ("id", r"#|no\.?|nr\.?|num|number|id|task (id|#|no\.?|number)|item (id|#)|key|ref"),
    ("task", r"task|item|work item|todo|task name|task title|task description"),
    ("tasks", r"tasks|items|task ids|created by|modified by|used by|plan tasks?"),
    ("ordinal", r"step|phase|stage"),
    ("wave", r"waves?|wave #|execution wave|batch|parallel group"),
    ("agent", r"(assigned |task |sub)?agent|agent type|assigned to"),
    ("lines", r".*\blines\b.*|(est\.? )?loc"),
    ("files", r".*\bfiles?\b.*|paths?|outputs?|touch(es)?|modif(ies|y)|creates?|owns|artifacts?|deliverables?"),
    ("effort", r"(est\.?(imated)? )?(effort|complexity|size|scope)|estimate"),
    ("title", r"title|name|summary|feature|component"),
    ("description", r"description|details?|objective|goal|changes?|responsibility|what"),
)  # fmt: skip
_ABOUT = ("depends", "blocks", "wave", "agent", "files", "lines", "effort")
_ORDERING = ("depends", "wave", "agent")

Columns = dict[str, int]


def columns(table: Table) -> Columns:
    found: Columns = {}
    for at, cell in enumerate(table.header):
        name = re.sub(r"\([^)]*\)", "", plain(cell).casefold().replace("(s)", "s")).strip(" :*")
        role = next((role for role, shape in _ROLES if re.fullmatch(shape, name)), "")
        # `#` counts rows where another column holds the ids proper.
        if role and (role not in found or (role == "id" and plain(table.header[found["id"]]).strip() in ("#", "No."))):
            found[role] = at
    if "id" not in found and "ordinal" in found and "task" in found:
        found["id"] = found["ordinal"]
    if found.get("agent") == 0 and not any(role in found for role in ("id", "task", "title")):
        del found["agent"]  # each agent is the item: its name is what others depend on
    if (
        "id" in found
        and "task" not in found
        and plain(table.header[found["id"]]).strip() == "#"
        and "title" not in found
    ):
        found["title"] = found.get("description", found["id"])
    return found


def defines_items(table: Table) -> bool:
    has = columns(table)
    if "foreign" in has or maps_files(table) or lists_waves(table):
        return False
    if "task" in has:
        return "id" in has or any(role in has for role in _ABOUT)
    if "id" in has:
        return any(role in has for role in _ORDERING)
    return "depends" in has and "wave" in has


def maps_files(table: Table) -> bool:
    has = columns(table)
    tasks = has.get("tasks", has.get("task"))
    return (
        "files" in has
        and tasks is not None
        and has["files"] < tasks
        and not any(role in has for role in ("id", "foreign", *_ORDERING))
    )


def lists_waves(table: Table) -> bool:
    has = columns(table)
    return "wave" in has and "tasks" in has and not any(role in has for role in ("id", "task", "foreign"))


def mentions(table: Table, wave: str | None, group: str | None) -> list[Mention]:
    """The items of a table that defines items; `wave` and `group` are those of the section around it."""
    has = columns(table)
    found = [mention for row in table.rows if (mention := _mention(table, row, has))]
    for mention in found:
        mention.wave = mention.wave or wave
        mention.group = group
    return found


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
    return Mention(
        id=name,
        title=title,
        kind="table",
        block=table.number,
        line=row.number,
        stem=next((stem for cell in naming if (stem := stem_of(cell))), ""),
        depends=plain(cells["depends"]) if "depends" in cells else None,
        blocks=plain(cells.get("blocks", "")),
        files=files,
        file_count=count,
        agent=said(cells.get("agent", "")),
        wave=said(cells.get("wave", "")),
        effort=said(cells.get("effort", "")),
        lines=largest_number(cells.get("lines", "")),
        description=plain(cells.get("description", "")),
    )


def _named(cells: dict[str, str], row: Row, kind: str) -> tuple[str, str]:
    """The id and the title of a row, from whichever columns hold them."""
    title = plain(cells.get("title", "")) or ""
    if "id" in cells and said(cells["id"]):
        name, rest = split_id(cells["id"])
        task = plain(cells.get("task", ""))
        if cells.get("ordinal") == cells["id"] and cells["id"].strip().isdigit():
            name = f"{kind}-{name}"  # the others say "Phase 3" when they depend on it
        return (name or plain(cells["id"])), (title or task or rest)
    source = cells.get("task", cells.get("title", row.cells[0]))
    name, rest = split_id(source)
    return name, (title if title and "task" in cells else rest)


def file_map(table: Table) -> list[tuple[list[str], str]]:
    """Files, and the text that names their tasks."""
    has = columns(table)
    tasks = has.get("tasks", has.get("task", 0))
    return [
        (files, plain(row.cells[tasks]))
        for row in table.rows
        if len(row.cells) > tasks and (files := files_in(row.cells[has["files"]])[0])
    ]


def wave_rows(table: Table) -> list[tuple[str, str, int]]:
    """Each wave's label, the text that names its tasks, and the line."""
    has = columns(table)
    last = max(has["wave"], has["tasks"])
    return [
        (plain(row.cells[has["wave"]]), plain(row.cells[has["tasks"]]), row.number)
        for row in table.rows
        if len(row.cells) > last
    ]
