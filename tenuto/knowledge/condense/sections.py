"""What a section is about, and what of it belongs to that.

    effective_topics(document) -> of each region, its topics and those around it
    claim_section(document, block, topics, kinds, found)

Rules: prose kinds (decisions, edge cases, findings) take a section as it stands; of a section about files,
signatures or types only what names, declares or lists them is taken. A table is about what its header says. An
aside inside a section (background, examples, what was discarded) is not part of it.
"""

from __future__ import annotations

from tenuto.knowledge.condense import mentions, places
from tenuto.knowledge.condense.answers import answer_keys, keyed_lines
from tenuto.knowledge.condense.declarations import find_declarations
from tenuto.knowledge.condense.edges import tells_an_edge_case
from tenuto.knowledge.condense.listings import CONSOLE, DATA, DECLARATIONS, DRAWING, declared_kinds, fenced, remember
from tenuto.knowledge.condense.topics import ASIDE, topics_of, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.condense.claims import Found
    from tenuto.knowledge.condense.outline import Block, Document

_PROSE = set("decisions constraints patterns edge-cases behaviors checks issues fix preserve tests failures".split())
_SHORT_CODE = 20
_SHORT_DATA = 40

# A table is about what its header says.
_COLUMNS: dict[str, set[str]] = {
    "edge-cases": set(
        "case cases condition conditions scenario situation error errors failure when trigger input".split()
    ),
    "signatures": set("function method signature endpoint call verb route operation command returns".split()),
    "types": set("field fields column property prop attribute member variant key".split()),
    "files": set("file files path location module".split()),
    "decisions": set("decision choice".split()),
    "behaviors": set("expected behavior".split()),
    "checks": set("test given then".split()),
    "issues": set("severity issue finding".split()),
    "background": set(
        "option alternative pros cons metric date owner milestone likelihood quarter cost baseline before today version "
        "ticket name role who term meaning definition p50 p95 p99 current dashboard alert".split()
    ),
}


def topics_at(topics: list[frozenset[str]], block: Block) -> frozenset[str]:
    return topics[block["region"]] if block["region"] >= 0 else frozenset()


def effective_topics(document: Document) -> list[frozenset[str]]:
    """A region's own topics and those of the regions around it, unless it is an aside."""
    result: list[frozenset[str]] = []
    regions = document["regions"]
    inner = {region["parent"] for region in regions if not region["label"]}
    for number, region in enumerate(regions):
        around = result[region["parent"]] if region["parent"] >= 0 else frozenset()
        own = topics_of(region["title"])
        # A title over the whole text names the feature, not a part of it.
        if number in inner and region["end"] - region["line"] > 0.7 * len(document["lines"]):
            own = frozenset()
        if region["label"] and own <= ASIDE and around - ASIDE:
            own = frozenset()
        if not own and not region["label"] and tells_an_edge_case(region["title"]):
            own = frozenset({"edge-cases"})
        result.append(own if own and own <= ASIDE else own | (around if not own else around - ASIDE))
    return result


def claim_section(
    document: Document, block: Block, topics: frozenset[str], kinds: tuple[str, ...], found: Found
) -> bool:
    if block["kind"] == "heading":
        return False
    if block["kind"] == "data" and (keys := answer_keys(document, block)):
        chosen = keyed_lines(document, block, keys, kinds)
        claimed = [found.claim(chosen[kind], kind, "heading") for kind in kinds]
        return any(claimed)
    if block["kind"] in {"row", "header"}:
        topics = topics | column_topics(document, block)
    for kind in kinds:
        if kind in topics and not (topics <= ASIDE):
            lines = _of_kind(document, block, kind, found)
            if lines and found.claim(lines, kind, "heading"):
                return True
    return False


def _of_kind(document: Document, block: Block, kind: str, found: Found) -> set[int]:
    """What of a block in a section about `kind` belongs to it."""
    lines = document["lines"]
    whole = {line for line in range(block["start"], block["end"]) if lines[line].strip()}
    if block["kind"] in {"code", "data"}:
        return _code_of_kind(document, block, kind, whole, found)
    if kind in _PROSE:
        return whole
    texts = [lines[line] for line in range(block["start"], block["end"])]
    text = " ".join(texts)
    if kind == "files":
        return whole if block["kind"] in {"item", "row"} or places.names_a_file(text) else set()
    if block["kind"] in {"item", "row"}:
        return whole if mentions.shows_a_field(text) else set()
    return whole if mentions.shows_a_signature(text, False) or mentions.shows_a_type(text) else set()


def _code_of_kind(document: Document, block: Block, kind: str, whole: set[int], found: Found) -> set[int]:
    code = document["lines"][block["first"] : block["last"]]
    language = block["language"]
    if kind == "files":
        named = sum(places.names_a_file(line) for line in code)
        return whole if places.is_file_tree(code) or named >= 0.5 * len(code) else set()
    if kind in DECLARATIONS:
        if places.is_file_tree(code) or language in DRAWING - {"mermaid"}:
            return set()
        if block["kind"] == "data" or language in DATA | CONSOLE | {"mermaid"}:
            return whole if len(code) <= (_SHORT_CODE // 2 if language in CONSOLE else _SHORT_DATA) else set()
        declared = find_declarations(code, generous=True)
        remember(code, declared, found)
        found.kinds.update(declared_kinds(declared))
        return fenced(block, declared.lines()) or whole
    if len(code) <= _SHORT_CODE:
        return whole
    declared = find_declarations(code)
    return fenced(block, declared.lines() | declared.tests)


def column_topics(document: Document, block: Block) -> frozenset[str]:
    at = document["blocks"][block["parent"]]["start"] if block["parent"] >= 0 else block["start"]
    title = next((line for line in document["lines"][at : at + 2] if any(sign.isalnum() for sign in line)), "")
    cells = [words_of(cell) for cell in title.replace("  ", "|").split("|")]
    words = {word for cell in cells for word in cell if len(cell) <= 3}
    found = {topic for topic, names in _COLUMNS.items() if words & names}
    if "type" in words and not found - {"background"}:
        found.add("types")
    return frozenset(found - {"background"} if found - {"background"} else found)
