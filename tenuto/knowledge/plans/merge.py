"""Which mentions are one item, and what that item is.

Two mentions are one item when their ids are the same but for prefix and zeros, when one is the
number of the other (`01` and `01-parser`), when both link to one file, or, where one carries no id,
when their titles are equal.

Rule: two rows of one table, or two entries of one list, are two items, whatever they are called.
An id used twice there stays used twice, for core/items.py to refuse by name. Numbers that begin
anew in each wave are told apart by their wave.

What a plan writes behind "depends on", as ids.

    parts("01, 02 — must match both")   -> ["01", "02"]
    resolve("Tasks 1-3", ...)           -> the items meant, and what could not be understood

Known notations: lists with commas, `and`, `&`, `+`; ranges (`01-03`, `TASK-001–003`, `P1-T3..P1-T7`,
`T1 through T4`); `Wave 1`; `all`; remarks in parentheses or behind a dash; `none` in many words.

Rule: a dependency that cannot be resolved is returned in the plan's own words. Nobody may drop it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tenuto.core import items as core_items
from tenuto.core.items import directory, look_up, same_file
from tenuto.core.items import key_of as items_key_of
from tenuto.knowledge.plans.mentions import GROUP, ID, TASK, WAVE, Mention
from tenuto.names import slug

if TYPE_CHECKING:
    from tenuto.core.items import Directory
    from tenuto.core.records.run import PlannedItem


Group = list[Mention]

# Every name is compared with many others.
key_of = lru_cache(4096)(core_items.key_of)
number_of = lru_cache(4096)(core_items.number_of)
words_of = lru_cache(4096)(core_items.words_of)


def group_mentions(mentions: Iterable[Mention]) -> list[Group]:
    """In the order in which the plan first names them."""
    groups: list[Group] = []
    known: dict[Part, list[int]] = {}  # any part of a name -> the groups that have it
    for mention in mentions:
        near = sorted({at for part in _asked(mention) for at in known.get(part, ())})
        same = [at for at in near if _is_same(groups[at], mention)]
        exact = [at for at in same if any(key_of(m.id) == key_of(mention.id) for m in groups[at])]
        chosen = exact or same
        # A bare number that fits two items is neither of them.
        if len(chosen) == 1:
            groups[chosen[0]].append(mention)
        else:
            groups.append([mention])
        for part in _shown(mention):
            known.setdefault(part, []).append(chosen[0] if len(chosen) == 1 else len(groups) - 1)
    return groups


Part = tuple[str, str]
"""What of a name, and how it reads."""


def _shown(mention: Mention) -> dict[Part, None]:
    """Everything by which another mention can recognise this one as its own item (see _is_same)."""
    forms = [form for form in (mention.id, mention.stem) if form]
    found = [("title", key_of(mention.title)), *([] if mention.id else [("title alone", key_of(mention.title))])]
    for form in forms:
        found += [("key", key_of(form)), ("words", words_of(form)), ("number", number_of(form))]
    if not any(words_of(form) for form in forms):
        found += [("number alone", number_of(form)) for form in forms]
    return dict.fromkeys(part for part in found if part[1])


def _asked(mention: Mention) -> dict[Part, None]:
    """What another one must show. Names that share only a word, or a number beside different words, are not the
    same: in a long plan there are too many of them to look at each."""
    forms = [form for form in (mention.id, mention.stem) if form]
    found = [("title" if not mention.id else "title alone", key_of(mention.title))]
    worded = any(words_of(form) for form in forms) and mention.kind != "file"
    for form in forms:
        found += [("key", key_of(form)), ("words", key_of(form)), ("key", words_of(form))]
        found.append(("number alone" if worded else "number", number_of(form)))
    return dict.fromkeys(part for part in found if part[1])


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


def without_parents(groups: list[Group]) -> tuple[list[Group], dict[str, list[Group]]]:
    """An entry whose number others continue (`2` over `2.1`, `2.2`) is the heading over them. What it waits for, they
    wait for; whoever waits for it, waits for all of them."""
    keys = [
        next((key for m in group if (key := key_of(m.id)) and re.fullmatch(r"[\d.]+", key)), "") for group in groups
    ]
    below: dict[str, list[Group]] = {key: [] for key in keys if key}
    for own, group in zip(keys, groups, strict=True):
        for at in (at for at, c in enumerate(own[:LONGEST]) if c == "." and own[:at] in below):
            below[own[:at]].append(group)
    parents = {key: parts for key, parts in below.items() if parts}
    for key, parent in zip(keys, groups, strict=True):
        for part in parents.get(key, ()):
            part[0].depends += [dependency for mention in parent for dependency in mention.depends]
    return [group for key, group in zip(keys, groups, strict=True) if key not in parents], parents


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
    known = {(tier, entry, name) for tier in names for entry, found in names[tier].items() for name in found}
    for item, group in zip(items, groups, strict=True):
        for written in dict.fromkeys(form for m in group for form in (m.id, m.stem) if form):
            for tier, entry in (("exact", written.lower()), ("key", key_of(written)), ("words", words_of(written))):
                found = names[tier].setdefault(entry, [])
                if entry and (tier, entry, item["id"]) not in known:
                    known.add((tier, entry, item["id"]))
                    found.append(item["id"])
    return names


# ---- references ------------------------------------------------------------


LONGEST = 200  # no name of an item, and no range, is longer

_NONE = re.compile(
    r"^(?:none|no|nothing|nil|n/?a|null|independent|root|foundation(?:al)?|standalone|keine?[rs]?|nichts|ningun[ao]|nada|"
    r"aucune?|rien|nenhuma?|nessun[ao]|нет|无|なし|없음|no (?:deps|dependenc(?:y|ies)|prerequisites?)|[-–—∅ø]+|"
    r"\[\]|\{\})(?=$|[\s.,;:(—–-])",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\([^()]*\)|[✓✔✅☑🟢🟡🔴⬜]️?")
_ASIDE = re.compile(r"\s+(?:[—–]|--?)\s+(?=\D)|\s*;\s+(?=[a-z]{3,})|\.\s+(?=[A-Z])")
_JOINTS = re.compile(
    r"\s*(?:,|;|&|\+|、|，|<br\s*/?>|\n|(?<=\d)\s*/\s*(?=[A-Za-z#-]*\d))\s*|\s+(?:and|und|plus|y|et)\s+", re.IGNORECASE
)
_LABEL = re.compile(
    rf"^(?:all\s+(?:of\s+)?)?(?:agent\s+)?(?:(?:{TASK})[sn]?|steps?)\s*(?:ids?)?\s*[:#]?\s*(?=[\s#]\S*\d|(?<=[任务])\d)\s*",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"^({ID}|\d+)\s*(?:-|–|—|\.\.\.?|…|\bto\b|\bthrough\b|\bthru\b)\s*({ID}|\d+)$", re.IGNORECASE)
_GROUP = re.compile(
    rf"^(?:all\s+)?(?:of\s+)?(?:tasks?\s+(?:of|in|from)\s+)?({WAVE}|{GROUP})s?\s*[#:]?\s*(\d+[a-z]?)"
    r"(?:\s*[-–]\s*(\d+))?(?:\s+(?:tasks?|items?|complete[d]?|done))*$",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"^(?:all|everything)(?:\s+(?:of\s+the\s+)?(?:other|previous|prior|above|preceding|earlier))?"
    r"(?:\s+(?:tasks?|items?|steps?|phases?|waves?))?(?:\s+(?:above|before))?$",
    re.IGNORECASE,
)
_CARRIED = re.compile(rf"^({WAVE}|{GROUP})s?\s+\d+$", re.IGNORECASE)
_LEADING = re.compile(rf"^({ID})\s+\D")


class Resolved(NamedTuple):
    ids: list[str]
    unknown: list[str]  # in the plan's own words
    gaps: list[str]  # numbers inside a range that no item has


def parts(text: str) -> list[str]:
    """The single references in a text, without remarks; empty when it says that there are none."""
    said = text.strip().strip("`*").strip()
    if said.startswith("(") and said.endswith(")"):
        said = said[1:-1]
    if said.startswith("[") and said.endswith("]"):
        said = said[1:-1]
    said = _REMARK.sub(" ", said).strip()
    none = _NONE.match(said)
    if not said or (none and not re.search(r"\d", _ASIDE.split(said)[0][none.end() :])):
        return []
    said = _ASIDE.split(said[none.end() :] if none else said)[0]
    found: list[str] = []
    carried = ""  # `Phase 3, 4` means two phases
    for piece in (piece.strip(" .:`*~'\"[]") for piece in _JOINTS.split(said)):
        label = _CARRIED.match(piece)
        carried = label.group(1) if label else carried if piece.isdigit() else ""
        if piece and not _NONE.fullmatch(piece):
            found.append(f"{carried} {piece}" if carried and not label else piece)
    return found


def resolve(
    text: str,
    names: Directory,
    order: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    own: str,
) -> Resolved:
    """`order`: all ids as the plan has them. `groups`: "wave 1" -> its ids. `own` is whose dependency it is."""
    found: dict[str, None] = {}
    unknown: list[str] = []
    gaps: list[str] = []
    for piece in [text.strip()] if _is_one_name(text, names) else parts(text):
        ids, missing = _one(piece, names, order, groups, own)
        if ids is None:
            unknown.append(piece)
        else:
            found.update(dict.fromkeys(ids))
            gaps.extend(missing)
    return Resolved(list(found), unknown, gaps)


def _is_one_name(text: str, names: Directory) -> bool:
    """A title may hold commas and "and"; `1 and 2` is no name of item 1."""
    key = key_of(text)
    tiers = (("exact", text.strip().lower()), ("key", key), ("title", key))
    found = next((names[tier][entry] for tier, entry in tiers if entry and entry in names[tier]), [])
    return len(found) == 1 and not _NONE.match(text.strip())


def _one(
    piece: str, names: Directory, order: Sequence[str], groups: Mapping[str, Sequence[str]], own: str
) -> tuple[list[str] | None, list[str]]:
    if len(piece) > LONGEST:
        return None, []
    group = _GROUP.match(piece)
    members = _members(group, groups) if group else groups.get(f"part {key_of(_LABEL.sub('', piece))}")
    if members:
        return [name for name in members if name != own], []
    if _ALL.match(piece):
        return [name for name in order[: order.index(own)] if name != own] if own in order else None, []
    for reading in dict.fromkeys((piece, _LABEL.sub("", piece))):
        exact = look_up(names, reading)
        if len(exact) == 1:
            return exact, []
        span = _RANGE.match(reading)
        if span and (expanded := _expand(span.group(1), span.group(2), names, order, own)):
            return expanded
        leading = _LEADING.match(reading)
        if leading and len(found := look_up(names, leading.group(1))) == 1:
            return found, []
    return None, []


def _members(group: re.Match[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    kind, first, last = group.group(1).lower(), group.group(2).lower(), group.group(3)
    kind = "wave" if re.fullmatch(WAVE, kind) else kind
    labels = [str(n) for n in range(int(first), int(last) + 1)] if last and first.isdigit() else [first]
    return [name for label in labels for name in groups.get(f"{kind} {label}", ())]


def _expand(
    first: str, last: str, names: Directory, order: Sequence[str], own: str
) -> tuple[list[str], list[str]] | None:
    low, high = look_up(names, first), look_up(names, last)
    if len(low) != 1 or len(high) != 1:
        return None
    (series, start), (other, end) = series_of(low[0]), series_of(high[0])
    if series != other or start is None or end is None or start > end:
        return None
    numbered = {
        number: name for name in order if (number := series_of(name)[1]) is not None and series_of(name)[0] == series
    }
    wanted = [name for number, name in sorted(numbered.items()) if start <= number <= end and name != own]
    gaps = [str(number) for number in range(start, min(end, start + 500) + 1) if number not in numbered]
    return wanted, gaps


@lru_cache(4096)
def series_of(name: str) -> tuple[str, int | None]:
    """`TASK-007` is number 7 of the series "task"; `P01-T03` number 3 of "p01-t"; `1.2` number 2 of "1."."""
    key = items_key_of(name)
    leading = re.match(r"^(\d+)(?:-[a-z].*)?$", key)
    if leading:
        return "", int(leading.group(1))
    found = re.match(r"^(.*\D)(\d+)$", key) or re.match(r"^(.*?\D)(\d+)-[a-z].*$", key)
    return (found.group(1), int(found.group(2))) if found else (key, None)
