"""A pack cut to a number of tokens: the least useful goes first, and is named.

    fit(pack, limit, rows)

The order of usefulness, from what is spared longest: full parts, which are never dropped; feedback of an audit;
then the phase's rows in their order, in a row its kinds in their order, of a kind what stands under a heading
before what is code before what only reads like it, and of these the beginning of a text before its end. Of the
part at the edge the first lines are kept that still fit.

What counts is what render_pack prints, the note about dropped parts included. Where even that note does not
fit, or full parts alone are larger, the pack is as small as it gets.
"""

from __future__ import annotations

from tenuto.knowledge.packs import render_pack
from tenuto.knowledge.phases import FEEDBACK, SAME_AS
from tenuto.knowledge.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.knowledge.packs import Dropped, Pack, Part
    from tenuto.knowledge.phases import Row

_REASONS = ("full", "whole", "heading", "fence", "line")


def dropped(part: Part, reason: str) -> Dropped:
    return {
        "artifact": part["artifact"],
        "path": part["path"],
        "heading": part["heading"],
        "kind": part["kind"],
        "tokens": part["tokens"],
        "reason": reason,
    }


def fit(pack: Pack, limit: int, rows: list[Row]) -> None:
    pack["max_tokens"] = limit
    if _size(pack) <= limit:
        return
    parts, before = pack["parts"], pack["dropped"]
    spare = [number for number in range(len(parts)) if parts[number]["by"] != "full"]
    spare.sort(key=lambda number: _rank(parts, number, rows), reverse=True)

    def drop(count: int, lines: int = 0) -> bool:
        """Drop the `count` least useful, but keep the first `lines` of the last of them. Does it fit?"""
        gone = {number: dropped(parts[number], "budget") for number in spare[:count]}
        kept = {number: part for number, part in enumerate(parts) if number not in gone}
        if lines and (part := _beginning(parts[spare[count - 1]], lines)):
            kept[spare[count - 1]] = part
            gone[spare[count - 1]]["tokens"] -= part["tokens"]
            gone[spare[count - 1]]["reason"] = "budget: its end"
        pack["parts"] = [kept[number] for number in sorted(kept)]
        pack["dropped"] = [*before, *(gone[number] for number in sorted(gone))]
        return _size(pack) <= limit

    count = _first(1, len(spare), drop)
    if spare and drop(count):
        # The first number of lines that is one too many, less that one.
        lines = len(parts[spare[count - 1]]["text"].split("\n"))
        drop(count, _first(1, lines, lambda number: not drop(count, number)) - 1)


def _first(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The smallest number from `low` for which it fits, found by halving; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def _beginning(part: Part, lines: int) -> Part | None:
    text = "\n".join(part["text"].split("\n")[:lines])
    return {**part, "text": text, "tokens": estimate_tokens(text)} if text.strip() else None


def _size(pack: Pack) -> int:
    return estimate_tokens(render_pack(pack))


def _rank(parts: list[Part], number: int, rows: list[Row]) -> tuple[int, int, int, int]:
    part = parts[number]
    need = SAME_AS.get(part["artifact"], part["artifact"])
    place = next(index for index, row in enumerate(rows) if row.need == need)
    kinds = rows[place].parts
    kind = kinds.index(part["kind"]) if part["kind"] in kinds else 0
    return -1 if kinds == FEEDBACK else place, kind, _REASONS.index(part["by"]), number
