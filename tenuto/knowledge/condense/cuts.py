"""A text condensed: the pieces of it that a phase asks for, each under its heading.

    condense(text, kinds, rest) -> Condensed

Rules: a piece is a run of lines of the text, word for word and in order; a new one begins where the heading,
the kind or the reason changes. Blank lines between two lines that are kept are kept as one. The title over
the whole text is not part of any heading path: it says the same everywhere.
"""

from __future__ import annotations

from itertools import pairwise

from tenuto.knowledge.condense.outline import path_of, split_document
from tenuto.knowledge.condense.parts import find_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.knowledge.condense.claims import Claim
    from tenuto.knowledge.condense.outline import Document

    class Piece(TypedDict):
        heading: list[str]  # outermost first
        kind: str
        by: str  # heading, fence, line
        line: int  # where it begins, from 1
        text: str

    class Condensed(TypedDict):
        pieces: list[Piece]
        kinds: set[str]  # the kinds that were found at all


def condense(text: str, kinds: tuple[str, ...], rest: str = "") -> Condensed:
    """`rest`: the kind that everything else belongs to as well, asides excepted, once anything was found."""
    document = split_document(text)
    found = find_parts(document, kinds, rest)
    pieces: list[Piece] = []
    run: list[int] = []
    headings = _heading_paths(document)
    for line in sorted(found.claims):
        if run and not _continues(found.claims[run[-1]], found.claims[line], headings[run[-1]] == headings[line]):
            pieces.append(_piece(document, headings[run[0]], found.claims[run[0]], run))
            run = []
        run.append(line)
    if run:
        pieces.append(_piece(document, headings[run[0]], found.claims[run[0]], run))
    return {"pieces": pieces, "kinds": found.kinds}


def _continues(last: Claim, this: Claim, same_heading: bool) -> bool:
    return same_heading and (last.kind, last.by) == (this.kind, this.by)


def _piece(document: Document, heading: list[str], claim: Claim, run: list[int]) -> Piece:
    text = _text_of(document["lines"], run)
    return {"heading": heading, "kind": claim.kind, "by": claim.by, "line": run[0] + 1, "text": text}


def _text_of(lines: list[str], run: list[int]) -> str:
    kept = [lines[run[0]]]
    for last, line in pairwise(run):
        between = lines[last + 1 : line]
        if between and not any(text.strip() for text in between):
            kept.append(between[0])
        kept.append(lines[line])
    return "\n".join(kept)


def _heading_paths(document: Document) -> list[list[str]]:
    """Of each line, the headings over it."""
    regions = document["regions"]
    around = {region["parent"] for region in regions if not region["label"]}
    tall = 0.9 * len(document["lines"])
    titles = {
        number
        for number in around
        if number >= 0 and regions[number]["parent"] < 0 and regions[number]["end"] - regions[number]["line"] > tall
    }
    paths: dict[int, list[str]] = {-1: []}
    for number in range(len(regions)):
        steps = [step for step in path_of(document, number) if not regions[step]["label"] and step not in titles]
        paths[number] = [regions[step]["title"].strip() for step in steps if regions[step]["title"].strip()]
    return [paths[owner] for owner in document["owners"]]
