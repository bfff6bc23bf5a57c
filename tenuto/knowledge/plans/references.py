"""What a plan writes behind "depends on", as ids.

    parts("01, 02 — must match both")   -> ["01", "02"]
    resolve("Tasks 1-3", ...)           -> the items meant, and what could not be understood

Known notations: lists with commas, `and`, `&`, `+`; ranges (`01-03`, `TASK-001–003`, `P1-T3..P1-T7`,
`T1 through T4`); `Wave 1`; `all`; remarks in parentheses or behind a dash; `none` in many words.

Rule: a dependency that cannot be resolved is returned in the plan's own words. Nobody may drop it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenuto.core.items import key_of, look_up
from tenuto.knowledge.plans.mentions import ID

if TYPE_CHECKING:
    from tenuto.core.items import Directory

LONGEST = 200  # no name of an item, and no range, is longer

_NONE = re.compile(
    r"^(?:none|no|nothing|nil|n/?a|null|independent|root|foundation(?:al)?|standalone|keine|ninguna|aucune|"
    r"no (?:deps|dependenc(?:y|ies)|prerequisites?)|[-–—∅ø]+|\[\]|\{\})(?=$|[\s.,;:(—–-])",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\([^()]*\)|[✓✔✅☑🟢🟡🔴⬜]️?")
_ASIDE = re.compile(r"\s+(?:[—–]|--?)\s+(?=\D)|\s*;\s+(?=[a-z]{3,})|\.\s+(?=[A-Z])")
_JOINTS = re.compile(r"\s*(?:,|;|&|\+|<br\s*/?>|\n)\s*|\s+(?:and|und|plus)\s+", re.IGNORECASE)
_LABEL = re.compile(
    r"^(?:all\s+(?:of\s+)?)?(?:tasks?|items?|steps?|todos?)\s*(?:ids?)?\s*[:#]?\s+(?=\S*\d)", re.IGNORECASE
)
_RANGE = re.compile(rf"^({ID}|\d+)\s*(?:-|–|—|\.\.\.?|…|\bto\b|\bthrough\b|\bthru\b)\s*({ID}|\d+)$", re.IGNORECASE)
_GROUP = re.compile(
    r"^(?:all\s+)?(?:of\s+)?(?:tasks?\s+(?:of|in|from)\s+)?(wave|phase|stage|batch)s?\s*[#:]?\s*(\d+[a-z]?)"
    r"(?:\s*[-–]\s*(\d+))?(?:\s+(?:tasks?|items?|complete[d]?|done))*$",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"^(?:all|everything)(?:\s+(?:of\s+the\s+)?(?:other|previous|prior|above|preceding|earlier))?"
    r"(?:\s+(?:tasks?|items?|steps?|phases?|waves?))?(?:\s+(?:above|before))?$",
    re.IGNORECASE,
)
_CARRIED = re.compile(r"^(wave|phase|stage|batch)s?\s+\d+$", re.IGNORECASE)
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
    for piece in (piece.strip(" .:`*'\"[]") for piece in _JOINTS.split(said)):
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
    whole = look_up(names, text) if text.strip() and not _NONE.match(text.strip()) else []
    for piece in [text.strip()] if len(whole) == 1 else parts(text):
        ids, missing = _one(piece, names, order, groups, own)
        if ids is None:
            unknown.append(piece)
        else:
            found.update(dict.fromkeys(ids))
            gaps.extend(missing)
    return Resolved(list(found), unknown, gaps)


def _one(
    piece: str, names: Directory, order: Sequence[str], groups: Mapping[str, Sequence[str]], own: str
) -> tuple[list[str] | None, list[str]]:
    if len(piece) > LONGEST:
        return None, []
    group = _GROUP.match(piece)
    if group and (members := _members(group, groups)):
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


def series_of(name: str) -> tuple[str, int | None]:
    """`TASK-007` is number 7 of the series "task"; `P01-T03` number 3 of "p01-t"; `1.2` number 2 of "1."."""
    key = key_of(name)
    leading = re.match(r"^(\d+)(?:-[a-z].*)?$", key)
    if leading:
        return "", int(leading.group(1))
    found = re.match(r"^(.*\D)(\d+)$", key) or re.match(r"^(.*?\D)(\d+)-[a-z].*$", key)
    return (found.group(1), int(found.group(2))) if found else (key, None)
