"""The parts of a text that a phase asks for, as line numbers.

    find_parts(document, kinds) -> Found      which lines belong to which kind of part, and why

A line is claimed once, by the first of these that wants it:

1. its heading or label: the section is about one of the kinds (sections.py, answers.py);
2. its code block: it declares something, or draws a tree of files (listings.py);
3. the line itself: it reads like an edge case, a signature, a place (edges.py, mentions.py, places.py, statements.py).

Then what gives claimed lines their sense is added: the label above a list, the item a nested one hangs on,
a table's header. Sections of background are believed only where they speak like a specification.
"""

from __future__ import annotations

from tenuto.knowledge.condense import mentions, places, statements
from tenuto.knowledge.condense.claims import Found
from tenuto.knowledge.condense.edges import sentences, tells_an_edge_case
from tenuto.knowledge.condense.headings import ITEM, unquoted
from tenuto.knowledge.condense.listings import DECLARATIONS, claim_code
from tenuto.knowledge.condense.outline import path_of
from tenuto.knowledge.condense.sections import claim_section, column_topics, effective_topics, topics_at
from tenuto.knowledge.condense.topics import ASIDE, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.condense.edges import Manner
    from tenuto.knowledge.condense.outline import Block, Document

# What people write down everywhere, whatever sections there are.
_EVERYWHERE = DECLARATIONS | {"edge-cases", "files"}
# The share of a list, a table or a section's paragraphs that makes it one of edge cases.
_SHARE = {"item": 0.5, "row": 0.5, "paragraph": 0.6}
_LONGEST_LABEL = 160
_LONGEST_PARENT = 300


def find_parts(document: Document, kinds: tuple[str, ...], rest: str = "") -> Found:
    """`rest`: the kind that everything unclaimed belongs to, asides excepted, once anything was found."""
    topics = effective_topics(document)
    found = Found()
    headed: set[int] = set()
    for number, block in enumerate(document["blocks"]):
        if claim_section(document, block, topics_at(topics, block), kinds, found):
            headed.add(number)
    for aside in (False, True):
        for number, block in enumerate(document["blocks"]):
            if number not in headed and bool(topics_at(topics, block) & ASIDE) == aside:
                claim_code(document, block, topics_at(topics, block), kinds, found)
    # Who has a section for a kind of part tells it there: elsewhere wording is not asked, except for what people
    # write down everywhere, and of that a sentence of prose needs clearer words.
    told = {claim.kind for claim in found.claims.values() if claim.by == "heading"}
    asked = [kind for kind in kinds if kind in _EVERYWHERE or kind not in told]
    # In running text two names in code make a type only where they do not make a case.
    asked.sort(key=lambda kind: kind == "types")
    for number, block in enumerate(document["blocks"]):
        if number not in headed:
            _claim_text(document, block, topics_at(topics, block), asked, found, "edge-cases" in told)
    if "edge-cases" in kinds:
        _complete(document, topics, found)
    if rest and found.claims:
        _claim_rest(document, topics, rest, found)
    _add_context(document, found)
    return found


def _claim_text(
    document: Document, block: Block, topics: frozenset[str], kinds: list[str], found: Found, told: bool
) -> None:
    if block["kind"] in {"code", "data", "header"}:
        return
    lines = document["lines"][block["start"] : block["end"]]
    prose = block["kind"] == "paragraph"
    pieces = sentences(lines) if prose else [(0, len(lines) - 1, _unmarked(lines))]
    if block["kind"] == "row":
        topics = topics | column_topics(document, block)
    aside = bool(topics) and topics <= ASIDE
    manner: Manner = "doubtful" if topics & ASIDE or (told and prose) else "prose" if prose else "item"
    edges = 0
    for first, last, text in pieces:
        for kind in kinds:
            if _reads_like(kind, text, block["kind"], aside, manner):
                by = "fence" if kind in DECLARATIONS else "line"
                found.claim(set(range(block["start"] + first, block["start"] + last + 1)), kind, by)
                edges += kind == "edge-cases"
                break
    # A paragraph that is mostly about edge cases is so in its other sentences too.
    if edges >= 2 and edges >= 0.4 * len(pieces) and manner == "prose":
        found.claim(set(range(block["start"], block["end"])), "edge-cases", "line")


def _unmarked(lines: list[str]) -> str:
    """An item's text without its bullet or number."""
    text = " ".join(lines)
    marker = ITEM.match(unquoted(text))
    return unquoted(text)[marker.end() :] if marker else text


def _reads_like(kind: str, text: str, shape: str, aside: bool, manner: Manner) -> bool:
    leading = shape in {"item", "row", "heading"}
    if kind == "signatures":
        return not aside and mentions.shows_a_signature(text, leading)
    if kind == "types":
        return not aside and mentions.shows_a_type(text)
    if kind == "files":
        return not aside and places.places_a_file(text)
    if shape == "heading":
        return False
    if kind == "edge-cases":
        return tells_an_edge_case(text, manner)
    if kind == "checks":
        return leading and statements.is_scenario(text)
    if aside:
        return False
    return statements.states(kind, text)


def _claim_rest(document: Document, topics: list[frozenset[str]], kind: str, found: Found) -> None:
    for block in document["blocks"]:
        summed_up = block["region"] >= 0 and "summary" in words_of(document["regions"][block["region"]]["title"])
        aside = bool(topics_at(topics, block)) and topics_at(topics, block) <= ASIDE
        text = " ".join(document["lines"][block["start"] : block["end"]])
        if block["kind"] == "heading":
            wanted = statements.gives_a_verdict(text)
        else:
            wanted = block["kind"] != "data" and (summed_up or not aside)
        if wanted:
            lines = {line for line in range(block["start"], block["end"]) if document["lines"][line].strip()}
            found.claim(lines, kind, "line")


def _complete(document: Document, topics: list[frozenset[str]], found: Found) -> None:
    """A list, a table, or the paragraphs of a section: where most tell edge cases, the others do too."""
    runs: dict[tuple[int, int, str], list[Block]] = {}
    for block in document["blocks"]:
        aside = bool(topics_at(topics, block)) and topics_at(topics, block) <= ASIDE
        if block["kind"] in _SHARE and not aside:
            runs.setdefault((_around(document, block), block["parent"], block["kind"]), []).append(block)
    for (region, _, kind), run in runs.items():
        claims = [found.claims.get(line) for block in run for line in (block["start"],)]
        telling = [claim for claim in claims if claim and claim.kind == "edge-cases" and claim.by == "line"]
        enough = len(telling) >= _SHARE[kind] * len(run) and (kind != "paragraph" or (region >= 0 and len(run) > 2))
        for block in run if telling and enough else []:
            found.claim(set(range(block["start"], block["end"])), "edge-cases", "line")


def _around(document: Document, block: Block) -> int:
    """The region an item stands in; not the one that its own label makes."""
    region = block["region"]
    own = region >= 0 and document["regions"][region]["label"] and document["regions"][region]["line"] == block["start"]
    return document["regions"][region]["parent"] if own else region


def _add_context(document: Document, found: Found) -> None:
    """Labels, parent items and table headers of what was claimed."""
    lines, claims = document["lines"], found.claims
    for block in reversed(document["blocks"]):
        claim = next((claims[line] for line in range(block["start"], block["end"]) if line in claims), None)
        if claim is None:
            continue
        parent = document["blocks"][block["parent"]] if block["parent"] >= 0 else None
        if parent and parent["kind"] in {"item", "header"}:
            end = parent["end"] if parent["kind"] == "header" else parent["start"] + 1
            for line in range(parent["start"], end):
                if len(lines[line]) <= _LONGEST_PARENT:
                    claims.setdefault(line, claim)
        for number in path_of(document, block["region"]):
            region = document["regions"][number]
            if region["label"] and block["kind"] != "data" and len(lines[region["line"]]) <= _LONGEST_LABEL:
                claims.setdefault(region["line"], claim)
