"""Context packs as records, and as the text an agent is given.

    render_pack(pack) -> Markdown
    render_receipts(pack) -> RECEIPT lines      render_dropped(pack) -> DROPPED lines

Rules: each artifact stands between two lines of `===` that name it, its path and how much of it is there;
its headings stand as headings, once. What was dropped for a budget, and what was looked for in vain, is said
at the end, in a line each, shortened where it would take a quarter of the budget.
"""

from __future__ import annotations

from tenuto.knowledge.patterns import pattern
from tenuto.knowledge.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class Artifact(TypedDict):
        name: str  # a need of phases.py: architect, spec, implementation, ...
        path: str
        text: str
        sha256: str

    class Part(TypedDict):
        artifact: str  # its name
        path: str
        heading: str
        kind: str
        text: str  # lines of the artifact, word for word
        whole: bool  # returned whole because nothing in it matched
        by: str  # full, whole, heading, fence, line: what made it part of the pack
        line: int  # where it begins, from 1
        tokens: int

    class Dropped(TypedDict):
        artifact: str
        path: str
        heading: str
        kind: str
        tokens: int
        reason: str

    class Receipt(TypedDict):
        artifact: str
        path: str
        sha256: str
        tokens_in: int  # in the pack
        tokens_left_out: int  # of the artifact, not in the pack

    class Pack(TypedDict):
        phase: str
        parts: list[Part]
        dropped: list[Dropped]
        receipts: list[Receipt]
        missing: list[str]  # needs without an artifact
        absent: list[str]  # kinds of part that were not found, as "artifact: kind"
        max_tokens: NotRequired[int]


BETWEEN = " › "
_SHORTEST_NOTE = 16
REPEATED = "already in the pack"
_MARKUP = pattern(r"<[^>]*>|\{#[^}]*\}|[`*_]{2,}|^\W*#+\s*|\s*#+$")
_FENCE = pattern(r"^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})([^`]*)$")


def heading_text(titles: list[str]) -> str:
    plain = (_MARKUP.sub("", title).strip() for title in titles)
    return BETWEEN.join(title for title in plain if title)


def render_pack(pack: Pack) -> str:
    rendered: list[str] = []
    parts = [part for part in pack["parts"] if part["text"].strip()]
    for number, part in enumerate(parts):
        before = parts[number - 1] if number and _same_artifact(parts[number - 1], part) else None
        if before is None:
            rendered.append(f"=== {part['artifact']}: {part['path']} ({_manner(part)}) ===")
        last = before["heading"] if before else ""
        heading = _heading_above(part)
        if heading and not (last + BETWEEN).startswith(heading + BETWEEN):
            rendered.append(_heading_line(last, heading))
        rendered += [part["text"].strip("\n"), *_closing_fence(part["text"])]
        if number + 1 == len(parts) or not _same_artifact(part, parts[number + 1]):
            rendered.append(f"=== end of {part['artifact']} ===")
    return "\n".join(rendered + _notes(pack))


def _same_artifact(one: Part, other: Part) -> bool:
    return (one["artifact"], one["path"]) == (other["artifact"], other["path"])


def _manner(part: Part) -> str:
    if part["whole"]:
        return "whole: nothing in it matched"
    return part["kind"] if part["by"] in {"full", "whole"} else "condensed"


def _heading_above(part: Part) -> str:
    """The part's headings, without its own where that is the first line of its text already."""
    above, _, own = part["heading"].rpartition(BETWEEN)
    return above if own and own in _MARKUP.sub("", part["text"].split("\n", 1)[0]) else part["heading"]


def _heading_line(last: str, heading: str) -> str:
    """Only the part of the path that is new, at its depth."""
    old, new = last.split(BETWEEN), heading.split(BETWEEN)
    same = 0
    while same < min(len(old), len(new) - 1) and old[same] == new[same]:
        same += 1
    return "#" * min(6, same + 2) + " " + BETWEEN.join(new[same:])


def _closing_fence(text: str) -> list[str]:
    """A fence that the artifact never closed must not swallow what follows it in the pack."""
    mark = ""
    for line in text.split("\n"):
        found = _FENCE.match(line.rstrip())
        if found and not mark:
            mark = found.group(1)
        elif found and found.group(1).startswith(mark) and not found.group(2).strip():
            mark = ""
    return [mark] if mark else []


def _notes(pack: Pack) -> list[str]:
    notes = []
    dropped = [part for part in pack["dropped"] if part["reason"] != REPEATED]
    if dropped:
        limit = pack.get("max_tokens", 0)
        named = [f"{part['heading'] or part['artifact']} [{part['kind']}] ({part['tokens']})" for part in dropped]
        text = f"DROPPED for max_tokens {limit}: {'; '.join(named)}"
        if estimate_tokens(text) > max(limit // 4, _SHORTEST_NOTE):
            total = sum(part["tokens"] for part in dropped)
            text = f"DROPPED for max_tokens {limit}: {len(dropped)} parts, {total} tokens"
        notes.append(text)
    if pack["absent"]:
        notes.append(f"NOT FOUND: {'; '.join(pack['absent'])}")
    return notes


def render_dropped(pack: Pack) -> list[str]:
    """Every part that is not in the pack, with its size: for a reader with more patience than the agent has."""
    return [
        f"DROPPED: {part['path'] or part['artifact']}{BETWEEN if part['heading'] else ''}{part['heading']}"
        f" [{part['kind']}] tokens: {part['tokens']} ({part['reason']})"
        for part in pack["dropped"]
    ]


def render_receipts(pack: Pack) -> list[str]:
    return [
        f"RECEIPT: {receipt['path'] or receipt['artifact']} sha256:{receipt['sha256']}"
        f" tokens in: {receipt['tokens_in']}, left out: {receipt['tokens_left_out']}"
        for receipt in pack["receipts"]
    ]
