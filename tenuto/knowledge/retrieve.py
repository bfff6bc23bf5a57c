"""Context packs: what a phase needs to know from the artifacts before it, in few tokens, with a receipt.

    make_pack(artifacts, phase, needs, max_tokens) -> Pack
    render_pack(pack) -> Markdown          render_receipts(pack) -> RECEIPT lines

Rules
- A part is a run of lines of its artifact, word for word, in the artifact's order.
- An artifact in which nothing is found is returned whole and flagged; never nothing.
- A budget drops what is least useful first: the last kind of the phase's row, there what was found by its
  wording before what stood under a heading, there the end of the text before its beginning. The part at
  the edge is cut between two lines. What was dropped is named with its size. Full parts stay.
- The budget counts what render_pack prints, the note about dropped parts included.
- Receipts count tokens of the artifact: in the pack, and left out; together they are the artifact.

Pure: texts in, texts out. Never reads a file and never hashes; the caller knows where artifacts are.
"""

from __future__ import annotations

import re
from typing import NotRequired, TypedDict

from tenuto.errors import BadInput
from tenuto.knowledge.condense.outline import Document, path_of, split_document
from tenuto.knowledge.condense.parts import Found, find_parts
from tenuto.knowledge.phases import FULL, SAME_AS, WHOLE, Row, rows_for
from tenuto.knowledge.tokens import estimate_tokens

BETWEEN = " › "
_MARKUP = re.compile(r"<[^>]*>|\{#[^}]*\}|[`*_]{2,}|^\W*#+\s*|\s*#+$")


class Artifact(TypedDict):
    name: str
    path: str
    text: str
    sha256: str


class Part(TypedDict):
    artifact: str  # its name
    path: str
    heading: str
    kind: str
    text: str
    whole: bool  # returned whole because nothing in it matched
    by: str  # full, whole, heading, fence, line
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
    tokens_in: int
    tokens_left_out: int


class Pack(TypedDict):
    phase: str
    parts: list[Part]
    dropped: list[Dropped]
    receipts: list[Receipt]
    missing: list[str]  # needs without an artifact
    absent: list[str]  # kinds of part that no artifact had, as "artifact: kind"
    max_tokens: NotRequired[int]


def make_pack(
    artifacts: list[Artifact], phase: str, needs: tuple[str, ...] = (), max_tokens: int | None = None
) -> Pack:
    if max_tokens is not None and max_tokens < 1:
        raise BadInput(
            "bad-budget", f"max_tokens must be 1 or more, not {max_tokens}", "leave max_tokens out for no limit"
        )
    pack: Pack = {"phase": phase, "parts": [], "dropped": [], "receipts": [], "missing": [], "absent": []}
    given: dict[str, set[str]] = {}
    used: list[Artifact] = []
    for row in rows_for(phase, needs):
        chosen = [artifact for artifact in artifacts if SAME_AS.get(artifact["name"], artifact["name"]) == row.need]
        if not chosen:
            pack["missing"] += [] if row.instead else [row.need]
        for artifact in chosen:
            used += [artifact] if _add_artifact(pack, artifact, row, given) else []
    order = {row.need: row.parts for row in rows_for(phase, needs)}
    if max_tokens is not None:
        pack["max_tokens"] = max_tokens
        _fit(pack, max_tokens, order)
    pack["receipts"] = [_receipt(pack, artifact) for artifact in used]
    return pack


# --- parts ----------------------------------------------------------------------------------------------


def _add_artifact(pack: Pack, artifact: Artifact, row: Row, given: dict[str, set[str]]) -> bool:
    """Add an artifact's parts; False if it was looked into for nothing."""
    if row.parts in (FULL, WHOLE):
        pack["parts"] += [_whole_part(artifact, row.parts[0], False)] if artifact["text"].strip() else []
        return True
    before = set().union(*given.values()) if row.instead and given else set()
    kinds = tuple(kind for kind in row.parts if kind not in before)
    if not kinds:
        return False
    document = split_document(artifact["text"])
    found = find_parts(document, kinds)
    given.setdefault(row.need, set()).update(found.kinds)
    if not found.claims:
        if row.instead and before:
            return False
        if artifact["text"].strip():
            pack["parts"].append(_whole_part(artifact, row.parts[0], True))
        return True
    pack["parts"] += _without_repeats(pack, _cut_parts(document, found, artifact))
    pack["absent"] += [f"{artifact['name']}: {kind}" for kind in kinds if kind not in found.kinds]
    return True


def _whole_part(artifact: Artifact, kind: str, flagged: bool) -> Part:
    return _part(artifact, "", kind, artifact["text"], flagged, "whole" if kind != "full" else "full", 1)


def _part(artifact: Artifact, heading: str, kind: str, text: str, whole: bool, by: str, line: int) -> Part:
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "heading": heading,
        "kind": kind,
        "text": text,
        "whole": whole,
        "by": by,
        "line": line,
        "tokens": estimate_tokens(text),
    }


def _cut_parts(document: Document, found: Found, artifact: Artifact) -> list[Part]:
    """Claimed lines in order, a new part where the heading, the kind or the reason changes."""
    parts: list[Part] = []
    run: list[int] = []
    belongs: tuple[str, str, str] | None = None
    headings = _heading_paths(document)
    for line in sorted(found.claims):
        claim = found.claims[line]
        place = (headings[line], claim.kind, claim.by)
        if place != belongs and run and belongs:
            parts.append(_part(artifact, *belongs[:2], _text_of(document, run), False, belongs[2], run[0] + 1))
            run = []
        belongs = place
        run.append(line)
    if run and belongs:
        parts.append(_part(artifact, *belongs[:2], _text_of(document, run), False, belongs[2], run[0] + 1))
    return parts


def _heading_paths(document: Document) -> list[str]:
    """Of each line, the headings over it; the title over everything is left out."""
    names: dict[int, str] = {-1: ""}
    regions = document["regions"]
    for number in range(len(regions)):
        titles = [
            _MARKUP.sub("", regions[step]["title"]).strip()
            for step in path_of(document, number)
            if not regions[step]["label"] and not _is_title(document, step)
        ]
        names[number] = BETWEEN.join(title for title in titles if title)
    return [names[owner] for owner in document["owners"]]


def _is_title(document: Document, number: int) -> bool:
    region = document["regions"][number]
    inner = any(other["parent"] == number and not other["label"] for other in document["regions"])
    return inner and region["parent"] < 0 and region["end"] - region["line"] > 0.9 * len(document["lines"])


def _text_of(document: Document, run: list[int]) -> str:
    """The lines, with one blank line kept where only blank lines were between two of them."""
    lines = document["lines"]
    kept: list[str] = []
    for position, line in enumerate(run):
        if position and line - run[position - 1] > 1 and not lines[run[position - 1] + 1].strip():
            between = lines[run[position - 1] + 1 : line]
            kept += between[:1] if not any(text.strip() for text in between) else []
        kept.append(lines[line])
    return "\n".join(kept)


def _without_repeats(pack: Pack, parts: list[Part]) -> list[Part]:
    """Without parts whose every line stands already in a part of another artifact."""
    known: dict[str, set[str]] = {}
    for part in pack["parts"]:
        known.setdefault(part["kind"], set()).update(line.strip() for line in part["text"].split("\n"))
    kept = []
    for part in parts:
        if {line.strip() for line in part["text"].split("\n")} <= known.get(part["kind"], set()):
            pack["dropped"].append(_dropped(part, part["tokens"], "already in the pack"))
        else:
            kept.append(part)
    return kept


# --- budget ---------------------------------------------------------------------------------------------


def _dropped(part: Part, tokens: int, reason: str) -> Dropped:
    return {
        "artifact": part["artifact"],
        "path": part["path"],
        "heading": part["heading"],
        "kind": part["kind"],
        "tokens": tokens,
        "reason": reason,
    }


def _fit(pack: Pack, limit: int, order: dict[str, tuple[str, ...]]) -> None:
    """Drop the least useful parts until the rendered pack fits; cut the last one dropped to what still fits."""
    needs = list(order)

    def usefulness(number: int) -> tuple[int, int, int, int]:
        part = pack["parts"][number]
        need = SAME_AS.get(part["artifact"], part["artifact"])
        rank = order[need].index(part["kind"]) if part["kind"] in order[need] else 0
        return rank, ("full", "whole", "heading", "fence", "line").index(part["by"]), needs.index(need), number

    spared = sorted(range(len(pack["parts"])), key=usefulness)
    sizes = estimate_tokens(render_pack(pack))
    while sizes > limit and spared:
        number = spared.pop()
        part = pack["parts"][number]
        if part["by"] == "full":
            continue
        pack["dropped"].append(_dropped(part, part["tokens"], "budget"))
        text = part["text"]
        part["text"] = ""
        sizes = estimate_tokens(render_pack(pack))
        if sizes < limit:
            _restore(pack, part, text, limit)
    pack["parts"] = [part for part in pack["parts"] if part["text"]]


def _restore(pack: Pack, part: Part, text: str, limit: int) -> None:
    """Put back as many of a dropped part's first lines as fit, by halving."""
    lines = text.split("\n")
    low, high = 0, len(lines) - 1
    total, note = part["tokens"], pack["dropped"][-1]
    while low < high:
        middle = (low + high + 1) // 2
        part["text"] = "\n".join(lines[:middle])
        note["tokens"] = total - estimate_tokens(part["text"])
        if estimate_tokens(render_pack(pack)) <= limit:
            low = middle
        else:
            high = middle - 1
    part["text"] = "\n".join(lines[:low])
    if not part["text"].strip():
        part["text"] = ""
    note["tokens"] = total - estimate_tokens(part["text"])
    if part["text"]:
        part["tokens"] = estimate_tokens(part["text"])
        note["reason"] = "budget: its end"


# --- rendering ------------------------------------------------------------------------------------------


def render_pack(pack: Pack) -> str:
    """The pack as Markdown: each artifact between two lines of `===`, its headings as headings."""
    rendered: list[str] = []
    parts = [part for part in pack["parts"] if part["text"].strip()]
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else None
        first = before is None or (before["artifact"], before["path"]) != (part["artifact"], part["path"])
        if first:
            rendered.append(f"=== {part['artifact']}: {part['path']} ({_manner(part)}) ===")
        last = "" if first or before is None else before["heading"]
        if part["heading"] and part["heading"] != last:
            rendered.append(_heading_line(last, part["heading"]))
        rendered += [part["text"].strip("\n"), *_closing_fence(part["text"])]
        after = parts[number + 1] if number + 1 < len(parts) else None
        if after is None or (after["artifact"], after["path"]) != (part["artifact"], part["path"]):
            rendered.append(f"=== end of {part['artifact']} ===")
    return "\n".join(rendered + _notes(pack))


def _manner(part: Part) -> str:
    if part["whole"]:
        return "whole: nothing in it matched"
    return part["kind"] if part["by"] in {"full", "whole"} else "condensed"


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
        found = re.match(r"^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})([^`]*)$", line.rstrip())
        if found and not mark:
            mark = found.group(1)
        elif found and found.group(1)[0] == mark[0] and len(found.group(1)) >= len(mark) and not found.group(2).strip():
            mark = ""
    return [mark] if mark else []


def _notes(pack: Pack) -> list[str]:
    """What was dropped for the budget, and what was looked for in vain; short, for it costs tokens too."""
    notes = []
    dropped = [part for part in pack["dropped"] if part["reason"] != "already in the pack"]
    if dropped:
        total = sum(part["tokens"] for part in dropped)
        named = [f"{part['heading'] or part['artifact']} [{part['kind']}] ({part['tokens']})" for part in dropped]
        limit = pack.get("max_tokens", 0)
        text = f"DROPPED for max_tokens {limit}: {'; '.join(named)}"
        if estimate_tokens(text) > max(limit // 8, 40):
            text = f"DROPPED for max_tokens {limit}: {len(dropped)} parts, {total} tokens"
        notes.append(text)
    if pack["absent"]:
        notes.append(f"NOT FOUND: {'; '.join(pack['absent'])}")
    return notes


def render_receipts(pack: Pack) -> list[str]:
    return [
        f"RECEIPT: {receipt['path'] or receipt['artifact']} sha256:{receipt['sha256']}"
        f" tokens in: {receipt['tokens_in']}, left out: {receipt['tokens_left_out']}"
        for receipt in pack["receipts"]
    ]


def _receipt(pack: Pack, artifact: Artifact) -> Receipt:
    total = estimate_tokens(artifact["text"])
    texts = [
        part["text"]
        for part in pack["parts"]
        if (part["artifact"], part["path"]) == (artifact["name"], artifact["path"]) and part["text"]
    ]
    taken = min(total, estimate_tokens("\n".join(texts)))
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "sha256": artifact["sha256"],
        "tokens_in": taken,
        "tokens_left_out": total - taken,
    }
