"""Context packs: what a phase needs to know from the artifacts before it, with a receipt for each artifact.

    make_pack(artifacts, phase, needs, max_tokens, unread) -> Pack
    render_pack(pack) -> Markdown          render_receipts(pack) -> RECEIPT lines

Rules
- Which artifacts feed which phase is the table PHASES. Full: returned whole whatever the budget. Whole: returned whole,
  gives way to a budget. Sections: what condense/sections.py chooses, or the whole artifact, flagged.
- A row marked `instead` is looked into where the rows above it are not stored or lack a kind that the phase needs, and
  where it is asked for by name.
- A revision stands for what it revises where it has all of its headings and is not shorter. Else both are in the pack,
  the older one first. A row marked `original` always has both.
- Text is returned word for word and in its order. Lines of code that were left out are counted where they stood.
- A budget drops whole sections, the least useful first, and says so: asides, then what names no kind that the phase
  needs, then the later kinds before the earlier ones; of these the end of a text before its beginning. Later rows go
  before earlier ones; feedback of an audit outlives them all. Where no section would be left, the most useful one is
  cut between two of its paragraphs, lists, tables or code blocks. Full parts are never dropped.
- A receipt stands for every artifact, also for those that the phase does not read. Tokens in and left out are together
  those of the artifact.

A token is a quarter of the UTF-8 bytes, rounded up. No model's tokenizer is asked: they differ from each other, change
with every model, and are slow to load. For English prose and code a quarter of the bytes is within a fifth of what they
count, and the same text always gives the same number.

Pure: texts in, texts out. Never reads a file and never hashes.
"""

from __future__ import annotations

from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, TypedDict

    from tenuto.knowledge.condense import Block, Choice, Document

    Manner = Literal["full", "whole", "sections"]
    Heading = tuple[int, str]  # the number of its section, and its lines

    class Artifact(TypedDict):
        name: str  # a need of PHASES: architect, spec, implementation, ...
        path: str
        text: str
        sha256: str

    class Unread(TypedDict):
        """An artifact that exists and that the phase does not read, or that is too large to be read."""

        name: str
        path: str
        sha256: str
        size: int  # in bytes
        reason: str

    class Part(TypedDict):
        artifact: str  # its name
        path: str
        heading: str  # the section's title; empty for a whole artifact
        headings: list[Heading]  # around it and its own, outermost first
        kind: str  # the kind of part that it was kept for; empty for none in particular; "aside"
        manner: Manner
        blocks: list[Block]  # paragraphs, lists, tables, code blocks; together they are its text

    class Dropped(TypedDict):
        artifact: str
        path: str
        heading: str
        tokens: int

    class Receipt(TypedDict):
        artifact: str
        path: str
        sha256: str
        tokens_in: int  # in the pack
        tokens_left_out: int  # of the artifact, not in the pack
        note: str  # in what manner it was taken, or why not; what was left out

    class Pack(TypedDict):
        phase: str
        parts: list[Part]
        dropped: list[Dropped]
        receipts: list[Receipt]
        missing: list[str]  # needs without an artifact
        notes: dict[str, str]  # by path: how the artifact was taken
        max_tokens: int  # 0: no limit


BYTES_PER_TOKEN = 4
LARGEST = 1 << 20  # bytes of a text that is read section by section
_SHORTEST_NOTE = 16


def estimate_tokens(text: str) -> int:
    """0 for nothing, else at least 1."""
    return tokens_of(_size(text))


def tokens_of(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _size(text: str) -> int:
    # A text read from a damaged file can hold lone surrogates; they are counted, not refused.
    return len(text.encode("utf-8", "surrogatepass"))


# ---- phases ----------------------------------------------------------------------------------------


class Row:
    def __init__(
        self,
        need: str,
        manner: Manner,
        kinds: tuple[str, ...] = (),
        instead: bool = False,
        original: bool = False,
    ) -> None:
        self.need = need
        self.manner = manner
        self.kinds = kinds  # the most useful first
        self.instead = instead
        self.original = original


DESIGN = ("decisions", "files", "constraints")
CONTRACT = ("signatures", "types", "edge-cases", "files")
CHECKS = ("signatures", "types", "edge-cases", "behaviors")

PHASES: dict[str, tuple[Row, ...]] = {
    "design-audit": (
        Row("architect", "full"),
        Row("design-audit", "whole"),  # the previous one; the caller has none in the first iteration
    ),
    "spec": (Row("architect", "sections", DESIGN),),
    "implementation": (
        Row("spec", "sections", CONTRACT),
        Row("architect", "sections", CONTRACT, instead=True),
    ),
    "testing": (
        Row("spec", "sections", CHECKS),
        Row("architect", "sections", CHECKS, instead=True),
        Row("implementation", "sections", ("signatures",)),
    ),
    "impl-audit": (
        Row("architect", "full", original=True),
        Row("spec", "full"),
        Row("implementation", "whole"),
        Row("tests", "whole"),
        Row("test-results", "whole"),
        Row("impl-audit", "whole"),
    ),
    "revision": (
        Row("architect", "full", original=True),
        Row("design-audit", "whole"),
    ),
    "fix": (
        Row("impl-audit", "whole"),
        Row("test-results", "full"),  # what fails has to be known, whatever the budget
        Row("implementation", "whole"),
        Row("tests", "whole"),
    ),
    "graduate": (
        Row("architect", "full"),
        Row("implementation", "whole"),
        Row("debt", "full"),
        Row("manifest", "full"),  # the task's metadata: mode and status
    ),
    "resume": (Row("manifest", "full"),),
}
MEMORY = Row("memory", "full")
FEEDBACK = ("design-audit", "impl-audit")

# Other names users of that system write for the same things.
SAME_AS = {
    "architect-output": "architect",
    "architect-signatures": "architect",
    "architect-revision": "architect",
    "spec-signatures": "spec",
    "spec-output": "spec",
    "implementations": "implementation",
    "implementation-output": "implementation",
    "implementation-fix": "implementation",
    "test": "tests",
    "test-output": "tests",
    "design-audit-feedback": "design-audit",
    "impl-audit-feedback": "impl-audit",
    "metadata": "manifest",
}
EVERYTHING = "all"


class UnknownName(BadInput, ValueError):
    """A phase or a need that the table does not have; `allowed` are those it has."""

    def __init__(self, what: str, name: str, allowed: tuple[str, ...], where: str = "") -> None:
        self.name, self.allowed = name, allowed
        super().__init__(
            f"unknown-{what}",
            f"Unknown {what}: {name}{where}. Use {', '.join(allowed)}",
            f"use one of: {', '.join(allowed)}",
            name=name,
            allowed=list(allowed),
        )


def rows_for(phase: str, needs: tuple[str, ...]) -> list[Row]:
    """The rows of a phase that `needs` select; all of them if it selects none or says `all`."""
    if phase not in PHASES:
        raise UnknownName("phase", phase, tuple(PHASES))
    rows = [*PHASES[phase], MEMORY]
    allowed = tuple(row.need for row in rows)
    asked = {SAME_AS.get(need, need) for need in needs}
    for need in needs:
        if SAME_AS.get(need, need) not in {*allowed, EVERYTHING}:
            raise UnknownName("need", need, allowed, f" for phase {phase}")
    everything = EVERYTHING in asked or not asked
    chosen = [row for row in rows if row.need in asked or (everything and row is not MEMORY)]
    # Who names a row wants it, whatever the rows above it yield.
    return [Row(row.need, row.manner, row.kinds, row.instead and row.need not in asked, row.original) for row in chosen]


# ---- making a pack ---------------------------------------------------------------------------------


def make_pack(
    artifacts: Sequence[Artifact],
    phase: str,
    needs: Sequence[str] = (),
    max_tokens: int | None = None,
    unread: Sequence[Unread] = (),
) -> Pack:
    """The pack for a phase; `needs` selects among the phase's artifacts, none given means all of them. Artifacts of
    one name come in the order in which they were written. `unread` are named in the receipts only."""
    if max_tokens is not None and max_tokens < 1:
        raise BadInput("bad-budget", f"max_tokens must be 1 or more, not {max_tokens}", "leave it out for no limit")
    rows = rows_for(phase, tuple(needs))
    limit = max_tokens or 0
    pack: Pack = {
        "phase": phase,
        "parts": [],
        "dropped": [],
        "receipts": [],
        "missing": [],
        "notes": {artifact["path"]: "not for this phase, or not asked for" for artifact in artifacts},
        "max_tokens": limit,
    }
    lacking: set[str] = set()
    for row in rows:
        stored = [artifact for artifact in artifacts if SAME_AS.get(artifact["name"], artifact["name"]) == row.need]
        if not stored and not row.instead:
            pack["missing"].append(row.need)
            lacking |= set(row.kinds)
        kinds = tuple(kind for kind in row.kinds if kind in lacking) if row.instead else row.kinds
        if row.instead and not kinds:
            pack["notes"].update({artifact["path"]: "the artifacts above have all kinds" for artifact in stored})
            continue
        for artifact in stored if row.original else _standing(pack, stored):
            lacking |= _add(pack, artifact, row, kinds)
    if limit:
        _fit(pack, limit, rows)
    pack["receipts"] = [_receipt(pack, artifact) for artifact in artifacts]
    pack["receipts"] += [_unread(artifact) for artifact in unread]
    return pack


def _standing(pack: Pack, stored: list[Artifact]) -> list[Artifact]:
    """Without designs that a later one stands for: it has all of their headings, and is not shorter."""
    if len(stored) < 2 or stored[0]["name"] != "architect":
        return stored
    from tenuto.knowledge.condense import titles_of

    first = 0
    titles, size = titles_of(stored[0]["text"]), _size(stored[0]["text"])
    for number, artifact in enumerate(stored[1:], 1):
        own, own_size = titles_of(artifact["text"]), _size(artifact["text"])
        if titles and titles <= own and size <= own_size:
            first = number
        titles, size = titles | own, max(size, own_size)
    for artifact in stored[:first]:
        pack["notes"][artifact["path"]] = f"{stored[first]['path']} has all of it"
    return stored[first:]


def _add(pack: Pack, artifact: Artifact, row: Row, kinds: tuple[str, ...]) -> set[str]:
    """Add an artifact's parts to the pack; the kinds that it lacks."""
    notes, path = pack["notes"], artifact["path"]
    if not artifact["text"].strip():
        notes[path] = "empty"
        return set(kinds)
    if row.manner == "full" or (row.manner == "whole" and not pack["max_tokens"]):
        notes[path] = row.manner
        pack["parts"].append(_whole_part(artifact, row.manner))
        return set()
    if _size(artifact["text"]) > LARGEST:
        notes[path] = f"whole: it is larger than {LARGEST >> 10} KB"
        pack["parts"].append(_whole_part(artifact, "whole"))
        return set()
    # Loaded here: what is returned whole needs none of it, and it is most of what a process would load.
    from tenuto.knowledge.condense import AROUND, DISCARDED, Choice, choose, read

    document = read(artifact["text"])
    if row.manner == "whole":
        notes[path] = "whole"
        pack["parts"] += _sections(artifact, document, Choice(set(range(len(document.sections))), set(), "all"), row)
        return set()
    choice = choose(document, kinds, AROUND if pack["phase"] == "spec" else AROUND | DISCARDED)
    notes[path] = _manner(document, choice)
    pack["parts"] += _sections(artifact, document, choice, row)
    return set(choice.missing)


def _manner(document: Document, choice: Choice) -> str:
    if choice.whole:
        return f"whole: {choice.whole}"
    sections = document.sections
    left_out = [one.title for number, one in enumerate(sections) if number not in choice.kept and one.title]
    bodies = sum(len(sections[number].bodies) for number in choice.kept)
    left_out += [f"code inside {bodies} bodies"] if bodies else []
    return f"condensed; left out: {'; '.join(left_out)}" if left_out else "whole"


def _sections(artifact: Artifact, document: Document, choice: Choice, row: Row) -> list[Part]:
    """A part for each section that is kept; one for all of the text where there are none."""
    from tenuto.knowledge.condense import blocks_of, heading_of

    if not document.sections:
        return [_whole_part(artifact, "whole")]
    parts: list[Part] = []
    for number in sorted(choice.kept):
        section = document.sections[number]
        kinds = section.kinds().union(*(document.sections[parent].names for parent in section.parents))
        kind = next((kind for kind in row.kinds if kind in kinds), "")
        parts.append(
            {
                "artifact": artifact["name"],
                "path": artifact["path"],
                "heading": section.title,
                "headings": [heading_of(document, one) for one in (*section.parents, number)],
                "kind": "aside" if number in choice.asides else kind,
                "manner": "sections",
                "blocks": blocks_of(document, section, bodies=bool(choice.whole)),
            }
        )
    return parts


def _whole_part(artifact: Artifact, manner: Manner) -> Part:
    # Where nothing is known about a text, it may be cut at blank lines.
    blocks: list[Block] = []
    for line in artifact["text"].splitlines(keepends=True):
        text, size = blocks.pop() if blocks and line.strip() else ("", 0)
        blocks.append((text + line, size + _size(line)))
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "heading": "",
        "headings": [],
        "kind": "",
        "manner": manner,
        "blocks": blocks,
    }


def _receipt(pack: Pack, artifact: Artifact) -> Receipt:
    size = sum(_part_size(part) for part in pack["parts"] if part["path"] == artifact["path"])
    note = pack["notes"][artifact["path"]]
    dropped = [part["heading"] or "the text" for part in pack["dropped"] if part["path"] == artifact["path"]]
    note += f"; dropped for max_tokens: {'; '.join(dropped)}" if dropped else ""
    total = estimate_tokens(artifact["text"])
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "sha256": artifact["sha256"],
        "tokens_in": tokens_of(size),
        "tokens_left_out": total - tokens_of(size),
        "note": note,
    }


def _unread(artifact: Unread) -> Receipt:
    return {
        "artifact": artifact["name"],
        "path": artifact["path"],
        "sha256": artifact["sha256"],
        "tokens_in": 0,
        "tokens_left_out": tokens_of(artifact["size"]),
        "note": artifact["reason"],
    }


def part_text(part: Part) -> str:
    return "".join(text for text, _ in part["blocks"])


def _part_size(part: Part) -> int:
    return sum(size for _, size in part["blocks"])


# ---- budget ----------------------------------------------------------------------------------------


def _fit(pack: Pack, limit: int, rows: list[Row]) -> None:
    if estimate_tokens(render_pack(pack)) <= limit:
        return
    parts = pack["parts"]
    spare = [number for number in range(len(parts)) if parts[number]["manner"] != "full"]
    spare.sort(key=lambda number: _rank(parts, number, rows), reverse=True)

    def drop(count: int, blocks: int = 0) -> bool:
        """Drop the `count` least useful, but keep the first `blocks` of the last of them. Does it fit?"""
        pack["parts"], pack["dropped"] = [], []
        gone = set(spare[:count])
        for number, part in enumerate(parts):
            beginning = part["blocks"][:blocks] if number == spare[count - 1] else []
            kept = {**part, "blocks": beginning} if number in gone else part
            if kept["blocks"]:
                pack["parts"].append(kept)
            if number in gone and (size := _part_size(part) - _part_size(kept)):
                pack["dropped"].append(_dropped(part, tokens_of(size)))
        return estimate_tokens(render_pack(pack)) <= limit

    count = _first(1, len(spare), drop)
    if spare and drop(count) and count == len(spare):
        # The first number of blocks that is one too many, less that one.
        blocks = len(parts[spare[-1]]["blocks"])
        drop(count, _first(1, blocks, lambda number: not drop(count, number)) - 1)


def _first(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The smallest number from `low` for which it fits, found by halving; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def _rank(parts: list[Part], number: int, rows: list[Row]) -> tuple[int, int, int]:
    part = parts[number]
    need = SAME_AS.get(part["artifact"], part["artifact"])
    place = next(index for index, row in enumerate(rows) if row.need == need)
    kinds = (*rows[place].kinds, "", "aside")
    return -1 if need in FEEDBACK else place, kinds.index(part["kind"]), number


def _dropped(part: Part, tokens: int) -> Dropped:
    return {"artifact": part["artifact"], "path": part["path"], "heading": part["heading"], "tokens": tokens}


# ---- rendering -------------------------------------------------------------------------------------


def render_pack(pack: Pack) -> str:
    rendered: list[str] = []
    parts = [part for part in pack["parts"] if part_text(part).strip()]
    shown: list[Heading] = []  # those that the text so far stands below
    for number, part in enumerate(parts):
        if number == 0 or parts[number - 1]["path"] != part["path"]:
            manner = pack["notes"][part["path"]].partition(";")[0]
            rendered.append(f"=== {part['artifact']}: {part['path']} ({manner}) ===")
            shown = []
        # A heading whose own text was left out still says where the text below it belongs.
        rendered += [heading[1].rstrip("\r\n") for heading in part["headings"][:-1] if heading not in shown]
        shown = part["headings"]
        text = part_text(part)
        last = number + 1 == len(parts) or parts[number + 1]["path"] != part["path"]
        rendered.append(text.strip("\r\n") if last else text.lstrip("\r\n").removesuffix("\n"))
        if last:
            rendered += [*_closing_fence(text), f"=== end of {part['artifact']} ==="]
    return "\n".join(rendered + _notes(pack))


def _closing_fence(text: str) -> list[str]:
    """A fence that the artifact never closed must not swallow what follows it in the pack."""
    open_ = ""
    for line in text.splitlines():
        line = line.strip("> \t")
        mark = line[: len(line) - len(line.lstrip(line[:1]))] if line.startswith(("```", "~~~")) else ""
        if mark and not open_:
            open_ = mark
        elif mark.startswith(open_) and mark == line:
            open_ = ""
    return [open_] if open_ else []


def _notes(pack: Pack) -> list[str]:
    if not pack["dropped"]:
        return []
    limit = pack["max_tokens"]
    named = [f"{part['heading'] or part['artifact']} ({part['tokens']})" for part in pack["dropped"]]
    text = f"DROPPED for max_tokens {limit}: {'; '.join(named)}"
    if estimate_tokens(text) > max(limit // 4, _SHORTEST_NOTE):
        total = sum(part["tokens"] for part in pack["dropped"])
        text = f"DROPPED for max_tokens {limit}: {len(named)} sections, {total} tokens"
    return [text]


def render_receipts(pack: Pack) -> list[str]:
    return [
        f"RECEIPT: {receipt['path'] or receipt['artifact']} sha256:{receipt['sha256']}"
        f" tokens in: {receipt['tokens_in']}, left out: {receipt['tokens_left_out']} ({receipt['note']})"
        for receipt in pack["receipts"]
    ]
