"""What of a code block is kept where no heading promised anything: what it declares, or a tree of files.

Rules: code that is data, a drawing or a console session declares nothing; neither does code in a section that
shows what was rejected or how to call something. A function whose head is in already is not repeated.
"""

from __future__ import annotations

from tenuto.knowledge.condense import places
from tenuto.knowledge.condense.declarations import find_declarations
from tenuto.knowledge.condense.keywords import undressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.condense.claims import Found
    from tenuto.knowledge.condense.declarations import Declared
    from tenuto.knowledge.condense.outline import Block, Document

DECLARATIONS = {"signatures", "types"}
DATA = set("json jsonc json5 yaml yml toml ini xml csv env html css scss properties hcl".split())
CONSOLE = set("bash sh shell console zsh fish powershell ps1 cmd bat diff log output".split())
DRAWING = set("mermaid plantuml dot graphviz ascii d2 markdown md mdx math latex".split())
UNREAL = {"examples", "discarded"}


def claim_code(document: Document, block: Block, topics: frozenset[str], kinds: tuple[str, ...], found: Found) -> None:
    if block["kind"] != "code":
        return
    code = document["lines"][block["first"] : block["last"]]
    if places.is_file_tree(code):
        if "files" in kinds and not topics & UNREAL:
            found.claim(set(range(block["start"], block["end"])), "files", "fence")
        return
    if block["language"] in DATA | CONSOLE | DRAWING or topics & UNREAL:
        return
    declared = find_declarations(code)
    if not DECLARATIONS & set(kinds):
        if "edge-cases" in kinds:
            found.claim(fenced(block, declared.notes), "edge-cases", "fence")
        return
    fresh = _unseen(code, declared, found)
    tests = declared.tests if {"checks", "tests"} & set(kinds) else set()
    lines = fenced(block, fresh | declared.types | declared.notes | tests)
    if found.claim(lines, "signatures" if fresh else "types", "fence"):
        found.kinds.update(declared_kinds(declared))


def declared_kinds(declared: Declared) -> list[str]:
    told = {"signatures": declared.functions, "types": declared.types, "edge-cases": declared.notes}
    return [kind for kind, lines in told.items() if lines]


def _bare_head(line: str) -> str:
    return undressed(line).rstrip(" ;{:=")


def remember(code: list[str], declared: Declared, found: Found) -> None:
    found.heads.update(head for line in declared.functions if len(head := _bare_head(code[line])) > 8)


def _unseen(code: list[str], declared: Declared, found: Found) -> set[int]:
    fresh = {line for line in declared.functions if _bare_head(code[line]) not in found.heads}
    remember(code, declared, found)
    return fresh


def fenced(block: Block, lines: set[int]) -> set[int]:
    """Numbers inside the code as lines of the document, with the fence around them."""
    if not lines:
        return set()
    delimiters = {*range(block["start"], block["first"]), *range(block["last"], block["end"])}
    return {block["first"] + line for line in lines} | delimiters
