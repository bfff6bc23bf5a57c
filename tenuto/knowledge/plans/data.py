"""Plans that are data.

    read_block(text, item_files)   the form that the shipped planner is asked for: a fence `tenuto-plan`
    read_records(text)             a YAML or JSON document, or one in a code block, with a list of tasks

The block is YAML, one entry per task:

    ```tenuto-plan
    - id: 01-parser
      wave: 1
      depends_on: []
      files: [src/parser.py]
      agent: implementer
    ```

Where it stands, it is the plan, and nothing else of the text is read. It is held to its form: every problem is named
with its line, what is wrong, and what is wanted. `id` and `wave` are required; `title`, `depends_on`, `files`, `agent`,
`effort`, `lines` and `description` may be given. A task depends on tasks of earlier waves only.

Other data is read only where the text itself names no item; a document that cannot be read is no plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from tenuto.core.items import PlanRefused
from tenuto.core.pipeline.values import did_you_mean
from tenuto.encoding import digest, dumps
from tenuto.errors import BadInput
from tenuto.knowledge.markdown import find_code
from tenuto.knowledge.plain_data import Source, read_yaml
from tenuto.knowledge.plans.fields import in_line, set_field
from tenuto.knowledge.plans.mentions import Mention, role_of_label

if TYPE_CHECKING:
    from tenuto.core.records.run import PlannedItem

FENCE = "tenuto-plan"
_LISTS = ("tasks", "items", "work_items", "todos", "steps")
_NAMES = ("id", "task_id", "key")
_TITLES = ("title", "name", "task", "summary")


def digest_of(item: PlannedItem, text: str) -> str:
    """Of everything but the wave: to run later is not to be another item."""
    content = {name: value for name, value in item.items() if name not in ("wave", "digest")}
    return digest(dumps([content, text]).encode("utf-8", "surrogatepass"))


# ---- the planner's own form ------------------------------------------------------------------------

_KINDS: dict[str, tuple[str, str]] = {
    "id": ("a word or a number", "id: 01-parser"),
    "wave": ("a whole number from 1 on", "wave: 1"),
    "title": ("text", "title: Write the parser"),
    "depends_on": ("a list of ids", "depends_on: [01-parser]"),
    "files": ("a list of paths", "files: [src/parser.py]"),
    "agent": ("text", "agent: implementer"),
    "effort": ("text", "effort: Low"),
    "lines": ("a whole number", "lines: 120"),
    "description": ("text", "description: What to do"),
}


class BlockItem(NamedTuple):
    item: PlannedItem
    line: int
    places: dict[str, int]  # field -> line


def read_block(text: str, item_files: Mapping[str, str], name: str) -> list[BlockItem] | None:
    """None where the plan has no such block; PlanRefused with every problem where it is not in order."""
    lines = text.replace("\r\n", "\n").split("\n")
    blocks = [block for block in find_code(lines)[0] if _is_ours(lines[block["start"]])]
    if not blocks:
        return None
    first = blocks[0]["first"] + 1
    if len(blocks) > 1:
        _refuse([(blocks[1]["start"] + 1, f"there is a second {FENCE} block; write all tasks into one")], [], name)
    try:
        source = read_yaml("\n".join(lines[blocks[0]["first"] : blocks[0]["last"]]), name, first)
    except BadInput as wrong:
        place = wrong.details.get("line")
        message = wrong.message.partition(": ")[2] or wrong.message
        _refuse([(place if isinstance(place, int) else first, f"{message}; {wrong.hint}")], [], name)
    found = _Block(source, first)
    if found.items and not found.problems:
        found.check_order()
        found.check_files(item_files)
    if found.problems:
        _refuse(found.problems, [one.item["id"] for one in found.items], name)
    return found.items


def _is_ours(line: str) -> bool:
    return re.match(rf"[\s>]*(?:`{{3,}}|~{{3,}})\s*(?:ya?ml\s+)?{FENCE}\b", line) is not None


def _refuse(problems: list[tuple[int, str]], names: list[str], file: str) -> NoReturn:
    shown = "\n".join(f"{file}:{line}: {problem}" for line, problem in sorted(problems))
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    raise PlanRefused("bad-plan", f"the {FENCE} block has {count}:\n{shown}", names, "correct these lines")


class _Block:
    def __init__(self, source: Source, first: int) -> None:
        self.source, self.first = source, first
        self.items: list[BlockItem] = []
        self.problems: list[tuple[int, str]] = []
        data = source.data
        if not isinstance(data, list) or not data:
            self.problems.append((first, "the block is no list of tasks; begin each with '- id: 01-slug'"))
        for at, entry in enumerate(data if isinstance(data, list) else []):
            if isinstance(entry, dict):
                self._read(at, entry)
            else:
                self._say((at,), "a task is a mapping with id and wave; begin it with '- id: 01-slug'")

    def _say(self, path: tuple[str | int, ...], problem: str) -> None:
        self.problems.append((self.source.place(path)[0], problem))

    def _read(self, at: int, entry: Mapping[str, object]) -> None:
        before = len(self.problems)
        for key in entry:
            if key not in _KINDS:
                self._say((at, key), f"no field is called '{key}'; {did_you_mean(key, list(_KINDS))}")
        for key in ("id", "wave"):
            if key not in entry:
                self._say((at,), f"this task has no {key}; add '{_KINDS[key][1]}'")
        for key, (wanted, example) in _KINDS.items():
            if key in entry and not _fits(wanted, entry[key]):
                self._say((at, key), f"{key} must be {wanted}, and is {entry[key]!r}; write for example '{example}'")
        name = str(entry.get("id")).strip()
        if any(name == other.item["id"] for other in self.items):
            self._say((at, "id"), f"the id '{name}' is there twice; give every task an id of its own")
        if len(self.problems) == before:
            places = {key: self.source.place((at, key))[0] for key in entry}
            self.items.append(BlockItem(_planned(entry), self.source.place((at,))[0], places))

    def check_order(self) -> None:
        waves = {one.item["id"]: one.item["wave"] or 1 for one in self.items}
        for one in self.items:
            line = one.places.get("depends_on", one.line)
            for name in one.item["depends_on"]:
                if name not in waves:
                    self.problems.append((line, f"no task is called '{name}'; {did_you_mean(name, list(waves))}"))
                elif waves[name] >= waves[one.item["id"]]:
                    own = f"{one.item['id']} (wave {waves[one.item['id']]}) depends on {name} (wave {waves[name]})"
                    self.problems.append((line, f"{own}; a task depends on tasks of earlier waves only"))

    def check_files(self, item_files: Mapping[str, str]) -> None:
        names = [file.rsplit("/", 1)[-1] for file in item_files]
        for one in self.items:
            own = f"{one.item['id']}.md"
            if own in names:
                one.item["source"] = own
            elif names:
                self.problems.append((one.line, f"there is no task file {own}; write it, or correct the id"))


def _fits(wanted: str, value: object) -> bool:
    match wanted:
        case "a word or a number":
            return (isinstance(value, str) and len(value.split()) == 1) or (
                isinstance(value, int) and value is not True
            )
        case "text":
            return isinstance(value, str) and bool(value.strip()) and "\n" not in value.strip()
        case "a list of ids":
            return isinstance(value, list) and all(_fits("a word or a number", one) for one in value)
        case "a list of paths":
            return isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)
        case "a whole number":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case _:
            return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _planned(entry: Mapping[str, object]) -> PlannedItem:
    def texts(name: str) -> list[str]:
        value = entry.get(name)
        return [str(one).strip() for one in value] if isinstance(value, list) else []

    def text(name: str) -> str:
        return str(entry.get(name) or "").strip()

    wave, lines = entry.get("wave"), entry.get("lines")
    return {
        "id": text("id"),
        "title": text("title") or text("id"),
        "files": texts("files"),
        "depends_on": list(dict.fromkeys(texts("depends_on"))),
        "agent": text("agent") or None,
        "wave": wave if isinstance(wave, int) else None,
        "description": text("description"),
        "effort": text("effort") or None,
        "lines": lines if isinstance(lines, int) else None,
    }


# ---- other data ------------------------------------------------------------------------------------


# Blanks and marks of the same line only: from every line on, all that follow would be looked at again.
_LISTING = re.compile(r"^[^\w\n]*(?:tasks|items|waves|work_items|todos|steps|task_?breakdown|id)\b", re.I | re.M)


def read_records(text: str) -> list[Mention]:
    """The tasks of the first document in the text that has any."""
    for document in _documents(text):
        found = list(_mentions(document, document.data, (), None))
        if found:
            return found
    return []


def _documents(text: str) -> Iterator[Source]:
    lines = text.split("\n")
    codes = [
        (block["first"] + 1, "\n".join(lines[block["first"] : block["last"]]))
        for block in find_code(lines)[0]
        if block["language"] in ("yaml", "yml", "json", "")
    ]
    for first, code in [*codes, (1, text)]:
        if not _LISTING.search(code):
            continue
        try:
            yield read_yaml(code, "plan.json" if code.lstrip().startswith("{") else "plan.yaml", first)
        except BadInput:
            continue


def _mentions(source: Source, value: object, path: tuple[str | int, ...], wave: str | None) -> Iterator[Mention]:
    if len(path) > 6:
        return
    if isinstance(value, list):
        for at, entry in enumerate(value):
            if isinstance(entry, dict) and not any(isinstance(entry.get(name), list) for name in _LISTS):
                mention = _mention(entry, wave, source.place((*path, at))[0])
                if mention:
                    yield mention
            else:
                yield from _mentions(source, entry, (*path, at), wave)
    elif isinstance(value, dict):
        label = next((str(value[name]) for name in ("wave", "number") if isinstance(value.get(name), (int, str))), wave)
        for name, entry in value.items():
            if str(name).lower() in (*_LISTS, "waves", "plan", "taskbreakdown", "task_breakdown", "phases"):
                yield from _mentions(source, entry, (*path, name), label)


def _mention(entry: Mapping[str, object], wave: str | None, line: int) -> Mention | None:
    name = next((str(entry[key]) for key in _NAMES if isinstance(entry.get(key), (int, str))), "")
    title = next((str(entry[key]) for key in _TITLES if isinstance(entry.get(key), str)), "")
    if not name and not title:
        return None
    made = Mention(name, title, "data", 1, line, wave=wave)
    for key, value in entry.items():
        role = role_of_label(key)
        if role not in ("", "id", "title"):
            set_field(made, role, in_line(value) or ("none" if role == "depends" else ""), line)
    return made
