"""JSON that is an answer of an agent: its members are what headings are in a text.

    answer_keys(document, block) -> members and their topics, empty for JSON that is an example of something
    keyed_lines(document, block, keys, kinds) -> of each kind, its lines

Rules: an answer is known by members only answers have (verdict, taskBreakdown), or by being the whole text. Its
lines are kept as they stand, so an answer in one line is kept or left out as one.
"""

from __future__ import annotations

from tenuto.knowledge.condense.headings import indent_of, key_of
from tenuto.knowledge.condense.outline import path_of
from tenuto.knowledge.condense.topics import ASIDE, topics_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.condense.outline import Block, Document

# Members that only answers have, in lower case and without underscores.
_KNOWN = {"taskbreakdown", "verdict", "kickbackcontext", "designdecisions", "edgecases", "audittype"}


def answer_keys(document: Document, block: Block) -> dict[int, frozenset[str]]:
    """Of a JSON answer, the topics of its members; empty for JSON that is an example of something."""
    keys = {
        number: topics_of(region["title"])
        for number, region in enumerate(document["regions"])
        if region["label"] and block["first"] <= region["line"] < block["last"]
    }
    titles = {document["regions"][number]["title"].lower().replace("_", "") for number in keys}
    told = {topic for topics in keys.values() for topic in topics - ASIDE}
    whole = block["end"] - block["start"] >= 0.8 * len(document["lines"])
    return keys if titles & _KNOWN or (whole and len(told) >= 2) else {}


def keyed_lines(
    document: Document, block: Block, keys: dict[int, frozenset[str]], kinds: tuple[str, ...]
) -> dict[str, set[int]]:
    """Each line goes with the innermost list or object whose name is asked for, else with its own name."""
    chosen: dict[str, set[int]] = {kind: set() for kind in kinds}
    for line in range(block["first"], block["last"]):
        path = path_of(document, document["owners"][line])
        told = [region for region in path if keys.get(region, frozenset()) & set(kinds)]
        if not told:
            continue
        wide = [region for region in told if _is_list_or_object(document, region)]
        region = max(wide) if wide else told[0]
        kind = next(kind for kind in kinds if kind in keys[region])
        chosen[kind].add(line)
        if key_of(document["lines"][line]) and (name := _name_above(document, block, line)) >= 0:
            chosen[kind].add(name)
    return chosen


def _name_above(document: Document, block: Block, line: int) -> int:
    """The member that says what the object around a line is called; -1 if none does."""
    lines = document["lines"]
    depth = indent_of(lines[line])
    for above in range(line - 1, block["first"] - 1, -1):
        if indent_of(lines[above]) < depth:
            break
        if indent_of(lines[above]) == depth and (key := key_of(lines[above])) and key.title in {"name", "title"}:
            return above
    return -1


def _is_list_or_object(document: Document, number: int) -> bool:
    region = document["regions"][number]
    return region["end"] > region["line"] + 1 or document["lines"][region["line"]].rstrip(" ,\r")[-1:] in {"]", "}"}
