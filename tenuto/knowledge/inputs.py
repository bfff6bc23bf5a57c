"""What an agent is told besides its documents, within a budget, with a receipt of what was left out.

    entries = [Entry("the change since the run's start", [Piece("src/a.py", "diff ...")], ...)]
    selection = fit(entries, tokens)  its texts: name -> text; its receipt: a line for each entry

Rule 1: an entry is made of pieces: the files of a change, the findings of a review. A piece is taken whole or left out.
Rule 2: what is too much is left out piece by piece, of the last entry first: the largest piece of it, or its last one.
Every entry keeps one piece while it can.
Rule 3: whole entries are dropped last, later ones first. One that could never fit goes before them; where it may be cut
(a change, notes), it is cut between two lines instead, and says so. JSON is never cut.
Rule 4: the receipt names everything that was left out, by its tokens. A token is a quarter of the bytes (packs.py).

    handed_in(reply)       the last fenced block of a reply, as text; or why there is none
    split_diff(diff)       what `git diff` printed, file by file
    listed(findings)       findings as lines

Pure: texts in, texts out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenuto.knowledge.findings import Finding
from tenuto.knowledge.markdown import find_code
from tenuto.knowledge.packs import BYTES_PER_TOKEN, estimate_tokens

_MOST_NAMES = 20  # that a receipt lists of one entry
_READ = 4 << 20  # characters of a reply, from its end
_CUT = "[cut here: the rest is more than the budget of this context]"


class Piece(NamedTuple):
    name: str
    text: str


class Entry(NamedTuple):
    name: str
    pieces: list[Piece]
    may_be_cut: bool = False
    largest_first: bool = False  # what is left out; otherwise the last
    where: str = ""  # where all of it is, for who misses something
    head: str = ""  # stands above the pieces while there is one


class Selection(NamedTuple):
    texts: dict[str, str]
    receipt: list[str]


class _Kept:
    """An entry, and what is left of it."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.take(entry.pieces)
        self.cut = False

    def take(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)
        self.sizes = [_size(piece.text) + 1 for piece in pieces]

    def size(self) -> int:
        return sum(self.sizes)

    def text(self) -> str:
        head = [self.entry.head] if self.entry.head else []
        return "\n".join([*head, *(piece.text for piece in self.pieces)])

    def drop_one(self) -> int:
        """The size of what was dropped; of two equal ones the last."""
        gone = len(self.sizes) - 1
        if self.entry.largest_first:
            gone -= self.sizes[::-1].index(max(self.sizes))
        del self.pieces[gone]
        return self.sizes.pop(gone)

    def cut_to(self, room: int) -> None:
        """Between two lines; nothing is left where not even one fits."""
        name, text = self.pieces[0]
        lines, taken = [], _size(_CUT) + 2
        for line in text.splitlines():
            taken += _size(line) + 1
            if taken > room:
                break
            lines.append(line)
        self.take([Piece(name, "\n".join([*lines, _CUT]))] if lines else [])
        self.cut = bool(lines)


def fit(entries: Sequence[Entry], tokens: int) -> Selection:
    kept, most = [_Kept(entry) for entry in entries], tokens * BYTES_PER_TOKEN
    total = sum(one.size() for one in kept)
    for one in reversed(kept):
        while total > most and len(one.pieces) > 1:
            total -= one.drop_one()
    for one in kept:
        if one.size() > most and one.entry.may_be_cut:
            others = sum(other.size() for other in kept if other is not one)
            one.cut_to(max(most - others, most // 2))
        elif one.size() > most:
            one.take([])
    for one in reversed(kept):
        if sum(other.size() for other in kept) > most:
            one.take([])
    texts = {one.entry.name: one.text() for one in kept if one.pieces}
    used = estimate_tokens("".join(texts.values()))
    head = f"{used} of at most {tokens} tokens"
    return Selection(texts, [head, *(_receipt(one) for one in kept)])


def _receipt(one: _Kept) -> str:
    """`name: whole, 120 tokens`, or what of it is missing."""
    name, every = one.entry.name, one.entry.pieces
    tokens = estimate_tokens("\n".join(piece.text for piece in one.pieces))
    if len(one.pieces) == len(every) and not one.cut:
        return f"{name}: whole, {tokens} tokens"
    where = f"; all of it: {one.entry.where}" if one.entry.where else ""
    if not one.pieces:
        whole = estimate_tokens("\n".join(piece.text for piece in every))
        return f"{name}: left out, {whole} tokens{where}"
    taken = [piece.name for piece in one.pieces]
    missing = [piece for piece in every if piece.name not in taken]
    named = [f"{piece.name} ({estimate_tokens(piece.text)} tokens)" for piece in missing[:_MOST_NAMES]]
    more = [f"and {len(missing) - _MOST_NAMES} more"] if len(missing) > _MOST_NAMES else []
    said = f"; left out: {', '.join([*named, *more])}" if missing else ""
    cut = f"; {taken[0]} was cut" if one.cut else ""
    return f"{name}: {len(one.pieces)} of {len(every)}, {tokens} tokens{said}{cut}{where}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


# ---- texts -----------------------------------------------------------------------------------------


def handed_in(reply: str) -> tuple[str, str]:
    """(the text in the last fenced block, where it stands), or ("", why there is none)."""
    before, text = (reply[:-_READ], reply[-_READ:]) if len(reply) > _READ else ("", reply)
    lines = text.split("\n")
    blocks = [block for block in find_code(lines)[0] if lines[block["start"]].lstrip(" >").startswith(("```", "~~~"))]
    if not blocks:
        return "", "the reply has no fenced block"
    last = blocks[-1]
    code = "\n".join(lines[last["first"] : last["last"]]).strip()
    where = f"the last fenced block of the reply (line {before.count(chr(10)) + last['start'] + 1})"
    return (code, where) if code else ("", f"{where} is empty")


def split_diff(diff: str) -> list[Piece]:
    """By file; what stands before the first one is nobody's."""
    pieces: list[Piece] = []
    lines: list[str] = []
    for line in [*diff.split("\n"), "diff --git "]:
        if line.startswith("diff --git "):
            if lines and lines[0].startswith("diff --git "):
                name = lines[0].rpartition(" b/")[2].strip('"') or "a file"
                pieces.append(Piece(name, "\n".join(lines).rstrip("\n")))
            lines = []
        lines.append(line)
    return pieces


def listed(findings: Sequence[Finding]) -> list[Piece]:
    """A line each: severity, what, where."""
    pieces = []
    for number, one in enumerate(findings, 1):
        line = f":{one['file_line']}" if one["file_line"] else ""
        where = f" ({one['file']}{line})" if one["file"] else ""
        said = " ".join(one["text"].split())
        pieces.append(Piece(f"finding {number}", f"- [{one['severity'] or 'no severity'}] {said}{where}"))
    return pieces
