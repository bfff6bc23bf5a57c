"""The parts of a text that a phase asks for, as line numbers.

    find_parts(document, kinds) -> Found      which lines belong to which kind of part, and why

A line is claimed once, by the first of these that wants it:

1. its heading or label: the section is about one of the kinds (topics.py);
2. its code block: it declares something (declarations.py), or draws a tree of files;
3. the line itself: it reads like an edge case, a signature, a place (passages.py, mentions.py).

Then what gives claimed lines their sense is added: the label above a list, the item a nested one hangs on,
a table's header, the fence around code. Sections of background are believed only where they speak like a
specification; code in sections that show what was rejected, or how to call something, declares nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tenuto.knowledge.condense import mentions, passages
from tenuto.knowledge.condense.declarations import Declared, find_declarations
from tenuto.knowledge.condense.outline import Block, Document, path_of
from tenuto.knowledge.condense.topics import topics_of, words_of

# Kinds whose sections are taken as they stand; of the others only what fits the kind is.
PROSE = {
    "decisions",
    "constraints",
    "patterns",
    "edge-cases",
    "behaviors",
    "issues",
    "fix",
    "preserve",
    "tests",
    "failures",
}
DECLARATIONS = {"signatures", "types"}
ASIDE = frozenset({"background", "examples", "discarded"})

# Code that is data, a drawing or a console session declares nothing by itself.
DATA = {
    "json",
    "jsonc",
    "json5",
    "yaml",
    "yml",
    "toml",
    "ini",
    "xml",
    "csv",
    "env",
    "html",
    "css",
    "scss",
    "properties",
    "hcl",
}
CONSOLE = {"bash", "sh", "shell", "console", "zsh", "fish", "powershell", "ps1", "cmd", "bat", "diff", "log", "output"}
DRAWING = {"mermaid", "plantuml", "dot", "graphviz", "ascii", "d2", "markdown", "md", "mdx", "math", "latex"}
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
    "behaviors": set("expected behavior test given then".split()),
    "issues": set("severity issue finding".split()),
    "background": set(
        "option alternative pros cons metric date owner milestone likelihood quarter cost baseline before today version "
        "ticket name role who term meaning definition p50 p95 p99 current dashboard alert".split()
    ),
}


class Claim(NamedTuple):
    kind: str
    by: str  # heading, fence, line


class Found(NamedTuple):
    claims: dict[int, Claim]
    kinds: set[str]  # the kinds that were found at all


def find_parts(document: Document, kinds: tuple[str, ...]) -> Found:
    topics = _effective_topics(document)
    found = Found({}, set())
    seen: set[str] = set()  # heads of functions, so that an implementation does not repeat the interface
    headed: set[int] = set()
    for number, block in enumerate(document["blocks"]):
        if _claim_section(document, block, _topics(topics, block), kinds, found, seen):
            headed.add(number)
    for aside in (False, True):
        for number, block in enumerate(document["blocks"]):
            if number not in headed and bool(_topics(topics, block) & ASIDE) == aside:
                _claim_code(document, block, _topics(topics, block), kinds, found, seen)
    # Who has a section for edge cases tells them there; elsewhere a sentence of prose needs clearer words.
    told = any(claim == Claim("edge-cases", "heading") for claim in found.claims.values())
    for number, block in enumerate(document["blocks"]):
        if number not in headed:
            _claim_text(document, block, _topics(topics, block), kinds, found, told)
    _complete_lists(document, found)
    _add_context(document, found)
    return found


def _topics(topics: list[frozenset[str]], block: Block) -> frozenset[str]:
    return topics[block["region"]] if block["region"] >= 0 else frozenset()


def _effective_topics(document: Document) -> list[frozenset[str]]:
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
        if not own and not region["label"] and passages.tells_an_edge_case(region["title"]):
            own = frozenset({"edge-cases"})
        result.append(own if own and own <= ASIDE else (own - ASIDE) | (around if not own else around - ASIDE))
    return result


def _claim(found: Found, lines: set[int], kind: str, by: str) -> bool:
    fresh = {line for line in lines if line not in found.claims}
    for line in sorted(fresh):
        found.claims[line] = Claim(kind, by)
    if fresh:
        found.kinds.add(kind)
    return bool(fresh)


# --- by heading -----------------------------------------------------------------------------------------


def _claim_section(
    document: Document, block: Block, topics: frozenset[str], kinds: tuple[str, ...], found: Found, seen: set[str]
) -> bool:
    if block["kind"] == "heading":
        return False
    if block["kind"] == "data" and (keys := _answer_keys(document, block)):
        claimed = [_claim(found, _keyed_lines(document, block, keys, kind), kind, "heading") for kind in kinds]
        return any(claimed)
    if block["kind"] in {"row", "header"}:
        topics = topics | _column_topics(document, block)
    for kind in kinds:
        if kind in topics and not (topics <= ASIDE):
            lines = _of_kind(document, block, kind, seen, found)
            if lines and _claim(found, lines, kind, "heading"):
                return True
    return False


def _of_kind(document: Document, block: Block, kind: str, seen: set[str], found: Found) -> set[int]:
    """What of a block in a section about `kind` belongs to it."""
    lines = document["lines"]
    whole = {line for line in range(block["start"], block["end"]) if lines[line].strip()}
    if block["kind"] in {"code", "data"}:
        return _code_of_kind(document, block, kind, whole, seen, found)
    if kind in PROSE:
        return whole
    texts = [lines[line] for line in range(block["start"], block["end"])]
    text = " ".join(texts)
    if kind == "files":
        return whole if block["kind"] in {"item", "row"} or passages.names_a_file(text) else set()
    if block["kind"] in {"item", "row"}:
        return whole if mentions.shows_a_field(text) else set()
    return whole if mentions.shows_a_signature(text, False) or mentions.shows_a_type(text) else set()


def _code_of_kind(
    document: Document, block: Block, kind: str, whole: set[int], seen: set[str], found: Found
) -> set[int]:
    code = document["lines"][block["first"] : block["last"]]
    language = block["language"]
    if kind == "files":
        return whole if passages.is_file_tree(code) else set()
    if kind in DECLARATIONS:
        if passages.is_file_tree(code) or language in DRAWING - {"mermaid"}:
            return set()
        if block["kind"] == "data" or language in DATA | CONSOLE | {"mermaid"}:
            return whole if len(code) <= (_SHORT_CODE // 2 if language in CONSOLE else _SHORT_DATA) else set()
        declared = find_declarations(code, generous=True)
        _remember(code, declared, seen)
        found.kinds.update(_declared_kinds(declared))
        return _fenced(block, declared.lines()) or whole
    if len(code) <= _SHORT_CODE:
        return whole
    declared = find_declarations(code)
    return _fenced(block, declared.lines() | declared.tests)


def _fenced(block: Block, lines: set[int]) -> set[int]:
    """Numbers inside the code as lines of the document, with the fence around them."""
    if not lines:
        return set()
    delimiters = {*range(block["start"], block["first"]), *range(block["last"], block["end"])}
    return {block["first"] + line for line in lines} | delimiters


def _column_topics(document: Document, block: Block) -> frozenset[str]:
    at = document["blocks"][block["parent"]]["start"] if block["parent"] >= 0 else block["start"]
    cells = [words_of(cell) for cell in document["lines"][at].strip().strip("|").split("|")]
    words = {word for cell in cells for word in cell if len(cell) <= 3}
    found = {topic for topic, names in _COLUMNS.items() if words & names}
    if "type" in words and not found - {"background"}:
        found.add("types")
    return frozenset(found - {"background"} if found - {"background"} else found)


def _answer_keys(document: Document, block: Block) -> dict[int, frozenset[str]]:
    """Of a JSON answer, the topics of its members; empty for JSON that is an example of something."""
    keys = {
        number: topics_of(region["title"])
        for number, region in enumerate(document["regions"])
        if region["label"] and block["first"] <= region["line"] < block["last"]
    }
    titles = {document["regions"][number]["title"].lower().replace("_", "") for number in keys}
    told = {topic for topics in keys.values() for topic in topics - ASIDE}
    known = titles & {"taskbreakdown", "verdict", "kickbackcontext", "designdecisions", "edgecases", "audittype"}
    whole = block["end"] - block["start"] >= 0.8 * len(document["lines"])
    return keys if known or (whole and len(told) >= 2) else {}


def _keyed_lines(document: Document, block: Block, keys: dict[int, frozenset[str]], kind: str) -> set[int]:
    lines = set()
    for line in range(block["first"], block["last"]):
        path = path_of(document, document["owners"][line])
        if any(kind in keys.get(region, ()) for region in path):
            lines.add(line)
    return lines


# --- by fence -------------------------------------------------------------------------------------------


def _claim_code(
    document: Document, block: Block, topics: frozenset[str], kinds: tuple[str, ...], found: Found, seen: set[str]
) -> None:
    if block["kind"] != "code":
        return
    code = document["lines"][block["first"] : block["last"]]
    if passages.is_file_tree(code):
        if "files" in kinds and not topics & {"examples", "discarded"}:
            _claim(found, set(range(block["start"], block["end"])), "files", "fence")
        return
    if block["language"] in DATA | CONSOLE | DRAWING:
        return
    declared = find_declarations(code)
    told = "behaviors" in kinds or "tests" in kinds
    if topics & {"examples", "discarded"} or not DECLARATIONS & set(kinds):
        lines = declared.notes & set() if topics & {"examples", "discarded"} else declared.notes
        if "edge-cases" in kinds and lines:
            _claim(found, _fenced(block, lines), "edge-cases", "fence")
        return
    fresh = _unseen(code, declared, seen)
    lines = _fenced(block, fresh | declared.types | declared.notes | (declared.tests if told else set()))
    kind = "signatures" if fresh and "signatures" in kinds else "types"
    if lines and _claim(found, lines, kind if kind in kinds else "signatures", "fence"):
        found.kinds.update(_declared_kinds(declared))


def _declared_kinds(declared: Declared) -> list[str]:
    told = {"signatures": declared.functions, "types": declared.types, "edge-cases": declared.notes}
    return [kind for kind, lines in told.items() if lines]


def _bare_head(line: str) -> str:
    return re.sub(r"^(?:export|default|public|pub|async|abstract|static|\s)+|[\s;{:=]+$", "", line)


def _remember(code: list[str], declared: Declared, seen: set[str]) -> None:
    seen.update(head for line in declared.functions if len(head := _bare_head(code[line])) > 8)


def _unseen(code: list[str], declared: Declared, seen: set[str]) -> set[int]:
    fresh = {line for line in declared.functions if _bare_head(code[line]) not in seen}
    _remember(code, declared, seen)
    return fresh


# --- by line --------------------------------------------------------------------------------------------


def _claim_text(
    document: Document, block: Block, topics: frozenset[str], kinds: tuple[str, ...], found: Found, told: bool
) -> None:
    if block["kind"] in {"code", "data", "header"}:
        return
    lines = document["lines"][block["start"] : block["end"]]
    prose = block["kind"] == "paragraph"
    pieces = passages.sentences(lines) if prose else [(0, len(lines) - 1, " ".join(lines))]
    aside = bool(topics & ASIDE) and not topics - ASIDE
    manner: passages.Manner = "doubtful" if aside or (told and prose) else "prose" if prose else "item"
    edges = 0
    for first, last, text in pieces:
        for kind in kinds:
            if _reads_like(kind, text, block["kind"], aside, manner):
                _claim(found, set(range(block["start"] + first, block["start"] + last + 1)), kind, "line")
                edges += kind == "edge-cases"
                break
    # A paragraph that is mostly about edge cases is so in its other sentences too.
    if edges >= 2 and edges >= 0.4 * len(pieces) and manner == "prose":
        _claim(found, set(range(block["start"], block["end"])), "edge-cases", "line")


def _reads_like(kind: str, text: str, shape: str, aside: bool, manner: passages.Manner) -> bool:
    leading = shape in {"item", "row", "heading"}
    if kind == "signatures":
        return not aside and mentions.shows_a_signature(text, leading)
    if kind == "types":
        return not aside and mentions.shows_a_type(text)
    if kind == "files":
        return not aside and passages.places_a_file(text)
    if shape == "heading":
        return False
    if kind == "edge-cases":
        return passages.tells_an_edge_case(text, manner)
    if kind == "behaviors":
        return leading and passages.is_scenario(text)
    if aside:
        return False
    reads = {
        "decisions": passages.states_a_decision,
        "constraints": passages.states_a_constraint,
        "patterns": passages.states_a_pattern,
        "issues": passages.states_a_finding,
        "failures": passages.reports_a_failure,
        "tests": passages.names_a_test,
    }.get(kind)
    return bool(reads and reads(text))


def _complete_lists(document: Document, found: Found) -> None:
    """A list or table of which most entries tell edge cases is one of edge cases."""
    runs: dict[tuple[int, int, str], list[Block]] = {}
    for block in document["blocks"]:
        if block["kind"] in {"item", "row"}:
            runs.setdefault((block["region"], block["parent"], block["kind"]), []).append(block)
    for run in runs.values():
        telling = [block for block in run if found.claims.get(block["start"]) == Claim("edge-cases", "line")]
        if len(telling) >= 2 and len(telling) >= 0.5 * len(run):
            for block in run:
                _claim(found, set(range(block["start"], block["end"])), "edge-cases", "line")


# --- context --------------------------------------------------------------------------------------------


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
                if len(lines[line]) <= 300:
                    claims.setdefault(line, claim)
        for number in path_of(document, block["region"]):
            region = document["regions"][number]
            if region["label"] and block["kind"] != "data" and len(lines[region["line"]]) <= 160:
                claims.setdefault(region["line"], claim)
