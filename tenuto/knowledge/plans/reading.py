"""plan.md and tasks/*.md -> items, with their waves and dependencies resolved.

    read_plan(text, item_files)

The other modules of this folder say what was written where (tables, sections, fields, records), what
a reference means (references) and which mentions are one item (merge). Here the places of a plan
are compared: waves are numbered from 1, dependencies become ids, and every difference between two
places, every hole and every doubt becomes a warning. The rules are in the folder's own docstring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from tenuto.core.items import named_in
from tenuto.core.waves import PlanRefused, arrange, shared_files
from tenuto.encoding import digest, dumps
from tenuto.knowledge.plans.mentions import ID, Mention, split_id
from tenuto.knowledge.plans.merge import Group, group_mentions, items_of, names_of, united
from tenuto.knowledge.plans.records import read_records
from tenuto.knowledge.plans.references import parts, resolve
from tenuto.knowledge.plans.sections import PlanText, read_item_file, read_text

if TYPE_CHECKING:
    from tenuto.core.items import Directory, PlannedItem


class PlanWarning(TypedDict):
    code: str
    message: str
    items: list[str]


class Plan(TypedDict):
    items: list[PlannedItem]
    warnings: list[PlanWarning]


def read_plan(text: str, item_files: Mapping[str, str] | None = None) -> Plan:
    """`item_files`: file name -> text."""
    found = read_text(text)
    warnings: list[PlanWarning] = []
    files = {name: body for name, body in (item_files or {}).items() if _is_item_file(name)}
    mentions = [*found.mentions, *(read_item_file(name, files[name]) for name in sorted(files))]
    groups = group_mentions(mentions or _from_wave_notes(found) or read_records(text)) or _from_loose(found, warnings)
    items = items_of(groups)
    names = names_of(items, groups)
    sections = _set_waves(items, groups, found, warnings)
    _set_dependencies(items, groups, found, names, sections, warnings)
    _add_files(items, found, names)
    _note_sources(items, groups, bool(files), bool(found.mentions), warnings)
    _note_shared_files(items, warnings)
    for item, group in zip(items, groups, strict=True):
        item["digest"] = digest_of(item, "".join(mention.text for mention in group))
    if not items:
        _warn(warnings, "no-items", "no item was found in the plan")
    return {"items": items, "warnings": warnings}


def _warn(warnings: list[PlanWarning], code: str, message: str, *items: str) -> None:
    warnings.append({"code": code, "message": message, "items": list(items)})


def _is_item_file(name: str) -> bool:
    file = name.rsplit("/", 1)[-1]
    return file.endswith(".md") and not re.match(r"(?i)(?:readme|index|template|overview|plan)\b|[._]", file)


def digest_of(item: PlannedItem, text: str) -> str:
    """Of everything but the wave: to run later is not to be another item."""
    said = {name: value for name, value in item.items() if name not in ("wave", "digest")}
    return digest(dumps([said, text]).encode("utf-8", "surrogatepass"))


# ---- plans that name items only in passing ---------------------------------------------------------


def _from_wave_notes(found: PlanText) -> list[Mention]:
    """`Wave 1: 01-a, 02-b` and nothing else: what is listed there is the plan."""
    made: list[Mention] = []
    for label, text, line in found.wave_notes:
        for piece in parts(text):
            name, title = split_id(piece)
            if name:
                made.append(Mention(name, title, "wave-note", line, line, wave=label))
    return made


def _from_loose(found: PlanText, warnings: list[PlanWarning]) -> list[Group]:
    """Entries without ids: their numbers if these are unique, else their words become ids."""
    numbers = [mention.id for mention in found.loose]
    if not all(numbers) or len(dict.fromkeys(numbers)) < len(numbers):
        for mention in found.loose:
            mention.id = ""
    if found.loose:
        _warn(warnings, "no-ids", "the plan's items carry no ids; they are named by their number or their words")
    return [[mention] for mention in found.loose]


# ---- waves -----------------------------------------------------------------------------------------


def _set_waves(
    items: list[PlannedItem], groups: list[Group], found: PlanText, warnings: list[PlanWarning]
) -> dict[str, list[str]]:
    """Number the written waves from 1. Returns what "wave 1" and "phase 2" stand for in dependencies."""
    labels = [[m.wave for m in group if m.wave] for group in groups]
    noted = [(label, _listed(text, items)) for label, text, _ in found.wave_notes]
    for at, item in enumerate(items):
        labels[at] += [label for label, named in noted if item["id"] in named]
    phases = [next((m.group for m in group if m.group), None) for group in groups]
    sections: dict[str, list[str]] = {}
    for item, phase in zip(items, phases, strict=True):
        if phase:
            sections.setdefault(phase, []).append(item["id"])
    if not any(labels) and len(sections) > 1 and len({phase.split()[0] for phase in sections}) == 1:
        labels = [[phase.split()[1]] if phase else [] for phase in phases]
        _warn(warnings, "phases", f"no waves are written; {', '.join(sections)} are read as waves")
    numbers = _numbers([label for own in labels for label in own])
    for item, own in zip(items, labels, strict=True):
        waves = list(dict.fromkeys(numbers[label] for label in own if numbers.get(label)))
        for label in dict.fromkeys(label for label in own if not numbers.get(label)):
            _warn(warnings, "wave-unreadable", f"item {item['id']} is in wave '{label}', which is no wave", item["id"])
        if waves:
            item["wave"] = max(waves)
        if len(waves) > 1:
            said = " and ".join(str(wave) for wave in waves)
            _warn(warnings, "waves-differ", f"item {item['id']} is in wave {said}; the later one counts", item["id"])
        for label in own:
            sections.setdefault(f"wave {_short(label)}", []).append(item["id"])
    return {name: list(dict.fromkeys(ids)) for name, ids in sections.items()}


def _listed(text: str, items: Sequence[PlannedItem]) -> list[str]:
    """The items in a list behind a wave's label; "(3 tasks)" and "4 items in parallel" are amounts."""
    said = re.sub(r"\([^()]*\)|\b\d+\s+(?:\w+\s+)?(?:tasks?|items?|files?|agents?)\b", " ", text)
    return named_in(f"tasks: {said}", items)


def _short(label: str) -> str:
    found = re.search(r"\d+\s*[a-z]?\b|\b[a-z]\b", label.lower())
    return found.group().replace(" ", "") if found else ""


def _numbers(labels: Sequence[str]) -> dict[str, int]:
    """Whole numbers stay what they are (counted from 1); `1a`, `1b` and letters are ranked."""
    keys: dict[str, tuple[int, str]] = {}
    for label in labels:
        short = _short(label)
        digits = re.match(r"\d+", short)
        if digits:
            keys[label] = (int(digits.group()), short[digits.end() :])
        elif short:
            keys[label] = (ord(short) - ord("a") + 1, "")
    if any(letter for _, letter in keys.values()):
        ranks = {key: rank for rank, key in enumerate(sorted(dict.fromkeys(keys.values())), start=1)}
        return {label: ranks[key] for label, key in keys.items()}
    shift = 1 if any(number == 0 for number, _ in keys.values()) else 0
    return {label: number + shift for label, (number, _) in keys.items()}


# ---- dependencies ----------------------------------------------------------------------------------


def _set_dependencies(
    items: list[PlannedItem],
    groups: list[Group],
    found: PlanText,
    names: Directory,
    sections: Mapping[str, Sequence[str]],
    warnings: list[PlanWarning],
) -> None:
    order = [item["id"] for item in items]
    by_id = {item["id"]: item for item in items}
    for item, group in zip(items, groups, strict=True):
        said: list[list[str]] = []
        for text in (mention.depends for mention in group if mention.depends is not None):
            result = resolve(text, names, order, sections, item["id"])
            said.append([*result.ids, *result.unknown])
            for gap in result.gaps:
                _warn(warnings, "gap", f"item {item['id']} depends on '{text}', which has no item {gap}", item["id"])
            for word in result.unknown:
                _warn(
                    warnings,
                    "unknown-dependency",
                    f"item {item['id']} depends on '{word}', which is no item",
                    item["id"],
                )
        item["depends_on"] = list(dict.fromkeys(name for names_ in said for name in names_))
        if any(sorted(other) != sorted(said[0]) for other in said):
            both = "; ".join(", ".join(names_) or "none" for names_ in said)
            _warn(
                warnings, "dependencies-differ", f"item {item['id']} depends on: {both}; all of them count", item["id"]
            )
    for item, group in zip(items, groups, strict=True):
        for text in (mention.blocks for mention in group if mention.blocks):
            for follower in resolve(text, names, order, sections, item["id"]).ids:
                _add_dependency(by_id[follower], item["id"])
    for who, what in (*found.order_notes, *_arrows(found)):
        followers = resolve(who, names, order, sections, "")
        for follower in followers.ids if not followers.unknown else ():
            for name in resolve(what, names, order, sections, follower).ids:
                _add_dependency(by_id[follower], name)


def _add_dependency(item: PlannedItem, name: str) -> None:
    if name not in item["depends_on"] and name != item["id"]:
        item["depends_on"].append(name)


def _arrows(found: PlanText) -> list[tuple[str, str]]:
    """`Wave 2: #7 (←6)`."""
    shape = re.compile(rf"({ID})\s*\(\s*←\s*([^)]*)\)")
    return [(who, what.partition(";")[0]) for _, text, _ in found.wave_notes for who, what in shape.findall(text)]


# ---- files and remarks -----------------------------------------------------------------------------


def _add_files(items: list[PlannedItem], found: PlanText, names: Directory) -> None:
    by_id = {item["id"]: item for item in items}
    for files, who in found.file_notes:
        for name in resolve(re.sub(r"\s*(?:→|->)\s*", ", ", who), names, list(by_id), {}, "").ids:
            by_id[name]["files"] = united([*by_id[name]["files"], *files])


def _note_sources(
    items: list[PlannedItem], groups: list[Group], has_files: bool, has_plan: bool, warnings: list[PlanWarning]
) -> None:
    for item, group in zip(items, groups, strict=True):
        name, kinds = item["id"], [mention.kind for mention in group]
        agents = list(dict.fromkeys(mention.agent for mention in group if mention.agent))
        if len(agents) > 1:
            _warn(
                warnings,
                "agents-differ",
                f"item {name} names the agents {', '.join(agents)}; {item['agent']} counts",
                name,
            )
        if has_files and "file" not in kinds:
            _warn(warnings, "no-item-file", f"item {name} has no file of its own", name)
        if has_plan and all(kind == "file" for kind in kinds):
            _warn(
                warnings,
                "not-in-plan",
                f"{name} has a file, but the plan does not name it; it counts all the same",
                name,
            )


def _note_shared_files(items: list[PlannedItem], warnings: list[PlanWarning]) -> None:
    try:
        waves = arrange(items)["waves"]
    except PlanRefused:
        return  # said where the plan is used, with all names
    for file, names in shared_files(waves, items):
        _warn(warnings, "shared-file", f"{' and '.join(names)} run side by side and both change {file}", *names)
