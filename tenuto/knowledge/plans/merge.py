"""Which mentions are one item, and what that item is.

Two mentions are one item when their ids are the same but for prefix and zeros, when one is the
number of the other (`01` and `01-parser`), when both link to one file, or, where one carries no id,
when their titles are equal.

Rule: two rows of one table, or two entries of one list, are two items, whatever they are called.
An id used twice there stays used twice, for core/waves.py to refuse by name. Numbers that begin
anew in each wave are told apart by their wave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tenuto.core import items as core_items
from tenuto.core.items import directory, same_file
from tenuto.core.names import slug
from tenuto.knowledge.plans.mentions import Mention

if TYPE_CHECKING:
    from tenuto.core.items import Directory, PlannedItem

Group = list[Mention]

# Every name is compared with many others.
key_of = lru_cache(4096)(core_items.key_of)
number_of = lru_cache(4096)(core_items.number_of)
words_of = lru_cache(4096)(core_items.words_of)


def group_mentions(mentions: Iterable[Mention]) -> list[Group]:
    """In the order in which the plan first names them."""
    groups: list[Group] = []
    known: dict[str, list[int]] = {}  # any part of a name -> the groups that have it
    for mention in mentions:
        near = sorted({at for part in _parts(mention) for at in known.get(part, ())})
        same = [at for at in near if _is_same(groups[at], mention)]
        exact = [at for at in same if any(key_of(m.id) == key_of(mention.id) for m in groups[at])]
        chosen = exact or same
        # A bare number that fits two items is neither of them.
        if len(chosen) == 1:
            groups[chosen[0]].append(mention)
        else:
            groups.append([mention])
        for part in _parts(mention):
            known.setdefault(part, []).append(chosen[0] if len(chosen) == 1 else len(groups) - 1)
    return groups


def _parts(mention: Mention) -> list[str]:
    """Everything by which two mentions of one item can be recognised."""
    forms = [form for form in (mention.id, mention.stem) if form]
    parts = [part for form in forms for part in (key_of(form), number_of(form), words_of(form))]
    return list(dict.fromkeys(part for part in (*parts, key_of(mention.title)) if part))


def _is_same(group: Group, mention: Mention) -> bool:
    if any(_are_apart(other, mention) for other in group):
        return False
    if not mention.id or not any(other.id for other in group):
        title = key_of(mention.title)
        return bool(title) and any(key_of(other.title) == title for other in group)
    forms = [form for other in group for form in (other.id, other.stem) if form]
    own = [form for form in (mention.id, mention.stem) if form]
    if any(key_of(a) == key_of(b) for a in forms for b in own):
        return True
    if any(number_of(a) == number_of(b) != "" for a in forms for b in own):
        words = dict.fromkeys(words_of(form) for form in forms if words_of(form))
        others = [words_of(form) for form in own if words_of(form)]
        is_its_file = mention.kind == "file" and all(other.kind != "file" for other in group)
        return not words or not others or is_its_file
    return any(words_of(a) == key_of(b) or key_of(a) == words_of(b) for a in forms for b in own)


def _are_apart(a: Mention, b: Mention) -> bool:
    """Two entries of one list; or of two waves that both count from 1."""
    if a.kind != b.kind or not a.title or not b.title or a.title == b.title:
        return a.kind == b.kind == "file"
    if a.block == b.block:
        return True
    return a.wave != b.wave and None not in (a.wave, b.wave) and not words_of(a.id) and a.id == b.id


# ---- one item --------------------------------------------------------------------------------------


def items_of(groups: list[Group]) -> list[PlannedItem]:
    items = [_item(group) for group in groups]
    named: dict[str, list[Group]] = {}
    for item, group in zip(items, groups, strict=True):
        named.setdefault(key_of(item["id"]), []).append(group)
    for item, group in zip(items, groups, strict=True):
        twins = [other for other in named[key_of(item["id"])] if other is not group]
        waves = [m.wave for m in group if m.wave]
        if waves and any(all(m.wave not in waves for m in other) for other in twins):
            item["id"] = f"wave-{waves[0]}-{item['id']}"
    return items


def _item(group: Group) -> PlannedItem:
    name = _name(group)
    lines = [m.lines for m in group if m.lines is not None]
    counts = [m.file_count for m in group if m.file_count is not None]
    # An item's own file is asked first: it is what the agent will work from.
    trusted = sorted(group, key=lambda m: m.kind != "file")
    item: PlannedItem = {
        "id": name,
        "title": _first(_titles(group)) or words_of(name) or name,
        "files": united(file for m in group for file in m.files),
        "depends_on": [],
        "agent": _first(m.agent or "" for m in trusted) or None,
        "wave": None,
        "description": _first(m.description for m in trusted),
        "effort": _first(m.effort or "" for m in trusted) or None,
        "lines": max(lines) if lines else None,
    }
    if counts:
        item["file_count"] = max(counts)
    source = _first(m.stem for m in group if m.kind == "file")
    if source:
        item["source"] = f"{source}.md"
    return item


def _titles(group: Group) -> Iterator[str]:
    yield from (m.title for m in sorted(group, key=lambda m: m.kind == "list"))
    yield from (m.description for m in group if len(m.description) <= 100)


def _name(group: Group) -> str:
    """The most telling form: a file's name with words, any id with words, the first id, the title's words."""
    stems = [m.stem for m in sorted(group, key=lambda m: m.kind != "file") if m.stem]
    ids = [m.id for m in group if m.id]
    telling = [form for form in (*stems, *ids) if words_of(form)]
    if telling or ids or stems:
        return (telling or ids or stems)[0]
    return slug(group[0].title)[:60].strip("-")


def _first(values: Iterable[str]) -> str:
    return next((value for value in values if value), "")


def united(files: Iterable[str]) -> list[str]:
    """Each file once, under the longest path that was written for it."""
    kept: list[str] = []
    for file in files:
        single = "*" not in file and not file.endswith("/")
        twin = next(
            (at for at, other in enumerate(kept) if other == file or (single and _is_single_twin(other, file))), None
        )
        if twin is None:
            kept.append(file)
        elif len(file) > len(kept[twin]):
            kept[twin] = file
    return kept


def _is_single_twin(a: str, b: str) -> bool:
    if "*" in a or a.endswith("/"):
        return False
    # `spec` and `agents/spec.agent.md`: plans shorten names that everybody knows.
    short, long = sorted((a, b), key=len)
    shortened = "." not in short and "/" not in short and long.rsplit("/", 1)[-1].startswith(f"{short}.")
    return shortened or same_file(a, b)


def names_of(items: list[PlannedItem], groups: list[Group]) -> Directory:
    """All names of all items, also those that did not become the id."""
    names = directory(items)
    for item, group in zip(items, groups, strict=True):
        for written in dict.fromkeys(form for m in group for form in (m.id, m.stem) if form):
            for tier, entry in (("exact", written.lower()), ("key", key_of(written)), ("words", words_of(written))):
                found = names[tier].setdefault(entry, [])
                if entry and item["id"] not in found:
                    found.append(item["id"])
    return names
