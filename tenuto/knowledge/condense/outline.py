"""A text as a tree of sections and a row of blocks.

    split_document(text) -> Document    lines, regions (what a heading or label covers), blocks

Rules: lines are split at "\\n" only and never changed, so every line number means the same line of
the artifact. Each line belongs to at most one block; each block knows the innermost region around
it and the block it hangs on (an item's parent item, a table row's header).

Never judges: what a region is about is topics.py, what code declares is declarations.py.
"""

from __future__ import annotations

from bisect import bisect_right

from tenuto.knowledge.condense.headings import ITEM, find_headings, indent_of, is_counted, key_of, label_of, unquoted
from tenuto.knowledge.condense.keywords import is_declaration
from tenuto.knowledge.fences import find_code
from tenuto.knowledge.patterns import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypedDict

    from tenuto.knowledge.fences import CodeBlock

    BlockKind = Literal["heading", "paragraph", "item", "header", "row", "code", "data"]

    class Region(TypedDict):
        """What a heading or a label covers: its own `line`, then `start` up to `end`."""

        title: str
        line: int
        start: int
        end: int
        parent: int  # the region around it, -1 at the top
        label: bool

    class Block(TypedDict):
        """Lines `start` up to `end`; of code, `first` up to `last` without its delimiters."""

        kind: BlockKind
        start: int
        end: int
        first: int
        last: int
        language: str
        region: int
        parent: int  # the block it hangs on, -1 for none

    class Document(TypedDict):
        lines: list[str]
        regions: list[Region]
        blocks: list[Block]
        owners: list[int]  # of each line, the innermost region


_SEPARATOR = pattern(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_SIMPLE_RULE = pattern(r"^\s*=+(?:\s+=+)+\s*$|^\s*\+(?:[-=]+\+)+\s*$")
_RULE = pattern(r"^\s{0,3}([-*_=])(?:\s*\1){2,}\s*$")


def split_document(text: str) -> Document:
    lines = text.split("\n")
    code, wrapping = find_code(lines)
    if not code and _is_json(text):
        code = [{"start": 0, "end": len(lines), "first": 0, "last": len(lines), "language": "json"}]
    matter = _front_matter(lines)
    code = _with_indented(lines, [block for block in code if block["start"] >= matter])
    code = _with_unmarked(lines, code)
    taken = {line for block in code for line in range(block["start"], block["end"])} | wrapping | set(range(matter))
    regions, owners = _section_regions(lines, taken)
    _add_labels(lines, taken, regions, owners)
    data = [block for block in code if _is_keyed(lines, block)]
    for block in data:
        _add_keys(lines, block, regions, owners)
    document: Document = {"lines": lines, "regions": regions, "blocks": [], "owners": owners}
    _add_blocks(document, taken, code, data)
    return document


def path_of(document: Document, region: int) -> list[int]:
    """A region and those around it, outermost first."""
    path: list[int] = []
    while region >= 0:
        path.append(region)
        region = document["regions"][region]["parent"]
    return path[::-1]


def _is_json(text: str) -> bool:
    stripped = text.strip()
    return stripped[:1] in {"{", "["} and stripped[-1:] in {"}", "]"} and '"' in stripped


def _front_matter(lines: list[str]) -> int:
    if lines[0].strip() not in {"---", "+++"}:
        return 0
    for line in range(1, min(len(lines), 60)):
        if lines[line].strip() == lines[0].strip():
            return line + 1
    return 0


def _with_indented(lines: list[str], code: list[CodeBlock]) -> list[CodeBlock]:
    """Runs of lines indented by four or more, after a blank line and outside lists."""
    fenced = {line for block in code for line in range(block["start"], block["end"])}
    found = list(code)
    listed, at = False, 0
    marked = any(line.startswith(("# ", "## ", "== ")) for line in lines)
    while at < len(lines):
        line = lines[at]
        if at in fenced or not line.strip():
            listed = listed and at not in fenced
        elif indent_of(line) >= 4 and not listed and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and end not in fenced and (not lines[end].strip() or indent_of(lines[end]) >= 4):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            found.append({"start": at, "end": end, "first": at, "last": end, "language": ""})
            at = end
            continue
        elif ITEM.match(line):
            # In a text without marked headings, "3. Header" alone may be one, with code below it.
            listed = marked or not is_counted(lines, at)
        elif indent_of(line) == 0:
            listed = False
        at += 1
    return sorted(found, key=lambda block: block["start"])


def _with_unmarked(lines: list[str], code: list[CodeBlock]) -> list[CodeBlock]:
    """Paragraphs that are code without any sign of it: from a declaration to where text goes on."""
    marked = {line for block in code for line in range(block["start"], block["end"])}
    found = list(code)
    at = 0
    while at < len(lines):
        fresh = at not in marked and indent_of(lines[at]) < 4 and (at == 0 or not lines[at - 1].strip())
        if not fresh or not is_declaration(lines[at]) or ITEM.match(lines[at]):
            at += 1
            continue
        end = at + 1
        while end < len(lines) and end not in marked and (lines[end].strip() or _is_code_below(lines, end)):
            end += 1
        found.append({"start": at, "end": end, "first": at, "last": end, "language": ""})
        at = end
    return sorted(found, key=lambda block: block["start"])


def _is_code_below(lines: list[str], blank: int) -> bool:
    below = lines[blank + 1] if blank + 1 < len(lines) else ""
    return indent_of(below) >= 2 or below.strip()[:1] in {"}", ")"}


def _section_regions(lines: list[str], taken: set[int]) -> tuple[list[Region], list[int]]:
    headings = find_headings(lines, taken)
    regions: list[Region] = []
    owners = [-1] * len(lines)
    open_: list[tuple[int, int]] = []  # level, region
    for heading in headings:
        while open_ and (open_[-1][0] >= heading.level or regions[open_[-1][1]]["end"] <= heading.line):
            open_.pop()
        end = heading.end if heading.end >= 0 else len(lines)
        parent = open_[-1][1] if open_ else -1
        if parent >= 0:
            end = min(end, regions[parent]["end"])
        regions.append(_region(heading.title, heading.line, heading.start, end, parent, False))
        open_.append((heading.level, len(regions) - 1))
    _close(regions, [heading.level for heading in headings])
    for index, region in enumerate(regions):
        owners[region["line"] : region["end"]] = [index] * (region["end"] - region["line"])
    return regions, owners


def _close(regions: list[Region], levels: list[int]) -> None:
    """A section ends where the next one begins that is not below it."""
    for index, region in enumerate(regions):
        for later in range(index + 1, len(regions)):
            if regions[later]["line"] >= region["end"]:
                break
            if levels[later] <= levels[index]:
                region["end"] = regions[later]["line"]
                break


def _region(title: str, line: int, start: int, end: int, parent: int, label: bool) -> Region:
    return {"title": title, "line": line, "start": start, "end": end, "parent": parent, "label": label}


def _add_labels(lines: list[str], taken: set[int], regions: list[Region], owners: list[int]) -> None:
    starts = [region["line"] for region in regions]
    headed = set(starts)
    spans = []
    for at, line in enumerate(lines):
        if line.strip() and at not in taken and at not in headed and "|" not in line[:2] and (label := label_of(line)):
            limit = regions[owners[at]]["end"] if owners[at] >= 0 else len(lines)
            limit = min([limit, *starts[(later := bisect_right(starts, at)) : later + 1]])
            spans.append((at, _label_end(lines, at, limit, bool(label.rest.strip(" :")), taken), label))
    for at, end, label in spans:
        regions.append(_region(label.title, at, at, end, owners[at], True))
        owners[at:end] = [len(regions) - 1] * (end - at)


def _label_end(lines: list[str], at: int, limit: int, beside: bool, taken: set[int]) -> int:
    """How far a label reaches: what is indented below it, else the list, table or paragraph that follows."""
    depth = indent_of(unquoted(lines[at]))
    item = bool(ITEM.match(unquoted(lines[at])))
    end, blank, listed, told = at + 1, False, False, beside
    for line in range(at + 1, limit):
        text = unquoted(lines[line])
        if not text.strip():
            blank = True
            continue
        marked = bool(ITEM.match(text)) or text.lstrip().startswith("|")
        if indent_of(text) <= depth and line not in taken:
            if item or (label_of(text) and not marked):
                break
            if blank and (beside or (told and not (listed and marked))):
                break
        elif line in taken and blank and (beside or listed) and indent_of(text) <= depth:
            break
        listed, told, blank, end = listed or marked, True, False, line + 1
    return end


def _is_keyed(lines: list[str], block: CodeBlock) -> bool:
    """JSON with one member per line: its members are labels."""
    if block["language"] not in {"json", "jsonc", "json5"}:
        return False
    return sum(key_of(lines[line]) is not None for line in range(block["first"], block["last"])) >= 2


def _add_keys(lines: list[str], block: CodeBlock, regions: list[Region], owners: list[int]) -> None:
    for at in range(block["first"], block["last"]):
        if not (key := key_of(lines[at])):
            continue
        depth, end = indent_of(lines[at]), at + 1
        while end < block["last"] and (not lines[end].strip() or indent_of(lines[end]) > depth):
            end += 1
        closing = end < block["last"] and end > at + 1 and lines[end].lstrip()[:1] in {"]", "}"}
        end += closing
        regions.append(_region(key.title, at, at, end, owners[at], True))
        owners[at:end] = [len(regions) - 1] * (end - at)


def _add_blocks(document: Document, taken: set[int], code: list[CodeBlock], data: list[CodeBlock]) -> None:
    lines, owners = document["lines"], document["owners"]
    opening = {block["start"]: block for block in code}
    headings = {region["line"]: region["start"] for region in document["regions"] if not region["label"]}
    labels = {region["line"] for region in document["regions"] if region["label"]}
    at = 0
    while at < len(lines):
        if at in headings:
            end = headings[at]
            _add(document, "heading", at, end)
        elif at in opening:
            end = opening[at]["end"]
            kind: BlockKind = "data" if opening[at] in data else "code"
            # A text that is JSON has no fence whose place could be asked.
            region = owners[at] if kind == "code" or opening[at]["first"] > at else -1
            _add(document, kind, at, end, code=opening[at], region=region)
        elif at in taken or not lines[at].strip() or _RULE.match(unquoted(lines[at])):
            end = at + 1
        elif _is_table_at(lines, at, taken):
            end = _add_table(document, at, taken)
        elif _SIMPLE_RULE.match(lines[at]):
            end = _add_ruled_table(document, at)
        else:
            end = _text_end(lines, at, taken, headings, labels)
            _add(document, "item" if ITEM.match(unquoted(lines[at])) else "paragraph", at, end)
        at = end
    _hang_items(document)


def _add(
    document: Document,
    kind: BlockKind,
    start: int,
    end: int,
    parent: int = -1,
    code: CodeBlock | None = None,
    region: int | None = None,
) -> None:
    block: Block = {
        "kind": kind,
        "start": start,
        "end": end,
        "first": code["first"] if code else start,
        "last": code["last"] if code else end,
        "language": code["language"] if code else "",
        "region": document["owners"][start] if region is None else region,
        "parent": parent,
    }
    document["blocks"].append(block)


def _is_table_at(lines: list[str], at: int, taken: set[int]) -> bool:
    below = lines[at + 1] if at + 1 < len(lines) and at + 1 not in taken else ""
    return "|" in lines[at] and "|" in below and bool(_SEPARATOR.match(unquoted(below)))


def _add_table(document: Document, at: int, taken: set[int]) -> int:
    lines = document["lines"]
    _add(document, "header", at, at + 2)
    header = len(document["blocks"]) - 1
    end = at + 2
    while end < len(lines) and end not in taken and "|" in lines[end] and lines[end].strip():
        _add(document, "row", end, end + 1, header)
        end += 1
    return end


def _add_ruled_table(document: Document, at: int) -> int:
    """reStructuredText: rules above and below the header, a line or more per row, a rule at the end."""
    lines = document["lines"]
    end = next((line for line in range(at, len(lines)) if not lines[line].strip()), len(lines))
    rules = [line for line in range(at, end) if _SIMPLE_RULE.match(lines[line])]
    if len(rules) < 2:
        return at + 1
    start = rules[1] + 1 if len(rules) > 2 else at + 1
    _add(document, "header", at, start)
    header = len(document["blocks"]) - 1
    for line in range(start, end):
        if line not in rules:
            _add(document, "row", line, line + 1, header)
    return end


def _text_end(lines: list[str], at: int, taken: set[int], headings: dict[int, int], labels: set[int]) -> int:
    end = at + 1
    while end < len(lines) and end not in taken and end not in headings and end not in labels:
        text = unquoted(lines[end])
        if not text.strip() or ITEM.match(text) or _RULE.match(text) or _is_table_at(lines, end, taken):
            break
        end += 1
    return end


def _hang_items(document: Document) -> None:
    """Nested items, paragraphs and code inside an item hang on it."""
    stack: list[tuple[int, int]] = []  # indentation, block
    for index, block in enumerate(document["blocks"]):
        if block["kind"] in {"heading", "row", "header", "data"}:
            stack = []
            continue
        depth = indent_of(unquoted(document["lines"][block["start"]]))
        while stack and stack[-1][0] >= depth:
            stack.pop()
        block["parent"] = stack[-1][1] if stack else -1
        if block["kind"] == "item":
            stack.append((depth, index))
