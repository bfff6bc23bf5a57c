"""What a review found, and what was learned on the way.

    findings(text)   every finding of a review, in Markdown or JSON
    lessons(text)    its `Issue → Resolution` lines
    answer(text)     the JSON object that a text is, or holds in a code block

A finding is a table row with a Severity column, a list item or heading with `[Word]` or
`Severity: Word`, or an entry of a JSON answer's `issues`. Nothing else is: a text without such
lines has no findings, and the verdicts decide.

Rule 1: nothing is overlooked that could be a finding. Code blocks are read too (whole reviews come
wrapped in one); a severity word that nobody knows is kept as it is, for the rules to count as the
worst; an empty one as well, where something was said beside it.

Rule 2: not everything in brackets is a severity. A task box, a link, a status (`[PASS]`), an id, a
tally that says 0 and a legend of the scale are not findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypedDict

from tenuto.core.rules import is_severity
from tenuto.encoding import NotJson, loads_strict
from tenuto.knowledge.fences import find_code
from tenuto.knowledge.markdown import Block, Heading, Item, Line, Table, plain, read


class Finding(TypedDict):
    severity: str  # as written; empty when nothing was
    text: str
    file: str | None
    file_line: int | None
    line: int  # of the review; 0 for a JSON answer


class Lesson(TypedDict):
    issue: str
    resolution: str
    line: int


_STATUSES = {"pass", "passed", "ok", "okay", "done", "fixed", "resolved", "none", "na", "yes", "x"}
_NOTHING = {
    "",
    "-",
    "–",
    "—",
    "none",
    "n/a",
    "na",
    "nil",
    "no",
    "no findings",
    "no issues",
    "no issues found",
    "none found",
}
_SUMS = {"total", "totals", "sum", "all", "overall"}
_LEGEND = {"meaning", "definition", "criteria", "when to use", "explanation"}
_PLACES = ("location", "file", "files", "path", "where", "file:line", "file / line")
_TEXTS = (
    "finding",
    "issue",
    "description",
    "problem",
    "title",
    "summary",
    "message",
    "text",
    "what",
    "detail",
    "details",
)

_TAG = re.compile(r"\[([^\]\n]{1,40})\](?![(:\[])")
_WORD = re.compile(r"[^\W\d_][^\W\d_]+|[PS]\d|SEV-?\d", re.IGNORECASE)
_SEVERITY = re.compile(r"\bseverity(?:\s+(?:level|rating))?\s*[:=]\s*(.*)", re.IGNORECASE)
_VALUE = re.compile(r"[^\W_][\w/-]*")
_PLACE = re.compile(r"(?:[\w.@~-]+/)*[\w@~-][\w.@~-]*\.[A-Za-z]\w{0,9}(?=[:#]|$)(?:(?::|#L)(\d+))?")
_LABEL = re.compile(r"^(?:location|file|path|where)s?\s*[:=]\s*(.*)", re.IGNORECASE)


# ---- findings --------------------------------------------------------------------------------------


def findings(text: str) -> list[Finding]:
    whole = answer(text)
    if whole is not None and _stripped(text).startswith(("{", "[")):
        return _of_answer(whole)
    blocks = read(text, keep_code=True)
    found: list[Finding] = []
    for at, block in enumerate(blocks):
        if isinstance(block, Table):
            found.extend(_of_table(block))
        elif (word := _severity_of(block)) is not None:
            found.append(_finding(word, _subject(blocks, at), block.number, _place_near(blocks, at)))
    found = _without_repeats(found)
    return [*found, *_of_answer(whole)] if whole is not None else found


def _finding(severity: str, text: str, line: int, place: str) -> Finding:
    file, file_line = _place(place)
    return {"severity": severity, "text": text, "file": file, "file_line": file_line, "line": line}


def _place(text: str) -> tuple[str | None, int | None]:
    """The word that is most clearly a file: one with a line, else one with a folder, else the first."""
    words = [word.strip("()[]{},;\"'!?") for word in text.split()]
    found: list[tuple[bool, bool, str, int | None]] = []
    for at, word in enumerate(words):
        place = _PLACE.match(word.rstrip(".:")) if len(word) < 400 else None
        if place and word.casefold().rstrip(".") not in ("e.g", "i.e"):
            digits = place.group(1) or _line_after(words[at + 1 : at + 3])
            path = place.group().partition(":")[0].partition("#")[0]
            found.append((bool(digits), "/" in path, path, int(digits) if digits else None))
    if not found:
        return None, None
    best = max(found, key=lambda place: place[:2])
    return best[2], best[3]


def _line_after(words: list[str]) -> str:
    """`src/a.py line 12`."""
    return words[1] if len(words) == 2 and words[0].casefold() in ("line", "lines") and words[1].isdecimal() else ""


def _severity_of(block: Block) -> str | None:
    """The severity that a list item or heading carries; a bare `Severity: Word` line carries one as well."""
    assert not isinstance(block, Table)
    said = plain(block.text)
    labelled = _SEVERITY.search(said)
    if labelled and (not isinstance(block, Line) or labelled.start() == 0):
        value = _VALUE.search(labelled.group(1))
        word = value.group() if value else ""
        return None if word.casefold() in _NOTHING - {""} else word
    return None if isinstance(block, Line) else _tag_of(said)


def _tag_of(said: str) -> str | None:
    """The severity among the tags: a known word anywhere, any other word where tags begin or end the line."""
    words: list[str] = []
    for tag in _TAG.finditer(said):
        word = tag.group(1).strip()
        if not _WORD.fullmatch(word) or word.casefold() in _STATUSES:
            continue
        before = re.sub(r"\[[^\[\]]{0,100}\]|[\s\W\d]", "", said[: tag.start()])
        after = said[tag.end() :].strip(" .:;*")
        if is_severity(word):
            return word
        if (not before or not after) and (tag.start() == 0 or not said[tag.start() - 1].isalnum()):
            words.append(word)
    return words[0] if words else None


def _subject(blocks: list[Block], at: int) -> str:
    """What the finding is about. A line that only says how bad it is belongs to what stands above it."""
    block = blocks[at]
    assert not isinstance(block, Table)
    said = plain(block.text)
    labelled = _SEVERITY.search(said)
    if not labelled or isinstance(block, Heading) or len(_VALUE.findall(said[: labelled.start()])) > 1:
        return said
    for above in reversed(blocks[:at]):
        if isinstance(above, Heading) or (
            isinstance(above, Item) and isinstance(block, Item) and above.indent < block.indent
        ):
            return plain(above.text)
        if isinstance(above, Table):
            break
    return said


def _place_near(blocks: list[Block], at: int) -> str:
    """The finding's own line, else a `Location:` line that belongs to it."""
    block = blocks[at]
    assert not isinstance(block, Table)
    own = plain(block.text)
    if _place(own)[0]:
        return own
    for near in _belonging(blocks, at):
        labelled = _LABEL.match(plain(near.text))
        if labelled and _place(labelled.group(1))[0]:
            return labelled.group(1)
    return _subject(blocks, at)


def _belonging(blocks: list[Block], at: int) -> Iterator[Item | Line]:
    """The lines of a heading's section, or what is indented below a list item."""
    block = blocks[at]
    assert not isinstance(block, Table)
    indent = block.indent if isinstance(block, Item) and _subject(blocks, at) == plain(block.text) else None
    start = at
    while indent is None and start > 0 and not isinstance(blocks[start], Heading):
        start -= 1
    for near in blocks[start + 1 :]:
        if isinstance(near, (Heading, Table)) or (
            indent is not None and (not isinstance(near, Item) or near.indent <= indent)
        ):
            return
        yield near


def _without_repeats(found: list[Finding]) -> list[Finding]:
    """A heading with `[High]` and the `Severity: High` line below it are one finding."""
    seen: dict[tuple[str, str], Finding] = {}
    kept: list[Finding] = []
    for finding in found:
        bare = re.sub(r"\[[^\[\]]{0,100}\]", "", finding["text"]).strip()
        if (finding["severity"].casefold(), bare) not in seen:
            seen[finding["severity"].casefold(), bare] = finding
            kept.append(finding)
    return kept


# ---- tables ----------------------------------------------------------------------------------------


def _of_table(table: Table) -> Iterator[Finding]:
    header = [plain(cell).casefold() for cell in table.header]
    column = next((at for at, name in enumerate(header) if name.startswith("severity")), None)
    others = [name for at, name in enumerate(header) if at != column]
    if column is None or (others and all(name in _LEGEND for name in others)):
        return
    for row in table.rows:
        cells = [plain(cell) for cell in row.cells] + [""] * (len(header) - len(row.cells))
        rest = [cell for at, cell in enumerate(cells) if at != column]
        said = [cell for cell in rest if cell.casefold() not in _NOTHING]
        word = cells[column].strip("[]() ")
        if not said and word.casefold() in _NOTHING:
            continue
        if said and all(cell.isdigit() for cell in said) and (not any(map(int, said)) or word.casefold() in _SUMS):
            continue  # a tally: none of this kind, or the sum of rows that were read already
        value = _VALUE.search(word)
        yield _finding(
            value.group() if value else "", _row_text(header, cells, column), row.number, _row_place(header, cells)
        )


def _row_text(header: list[str], cells: list[str], severity: int) -> str:
    for name in _TEXTS:
        if name in header and cells[header.index(name)]:
            return cells[header.index(name)]
    return " | ".join(cell for at, cell in enumerate(cells) if at != severity and cell)


def _row_place(header: list[str], cells: list[str]) -> str:
    for name in _PLACES:
        if name in header:
            place = cells[header.index(name)]
            if "line" in header and name != "line" and re.fullmatch(r"\d+", cells[header.index("line")]):
                return f"{place}:{cells[header.index('line')]}"
            if place:
                return place
    return " ".join(cells)


# ---- JSON answers ----------------------------------------------------------------------------------


def answer(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is, or the last one in its code blocks; None when there is none."""
    for candidate in _candidates(text):
        try:
            value = loads_strict(candidate)
        except NotJson:
            continue
        if isinstance(value, dict):
            return value
    return None


def _stripped(text: str) -> str:
    return text.removeprefix("\ufeff").strip()


def _candidates(text: str) -> Iterator[str]:
    whole = _stripped(text)
    if whole.startswith("{"):
        yield whole
    lines = text.split("\n")
    blocks, _ = find_code(lines)
    for block in reversed(blocks):
        code = "\n".join(lines[block["first"] : block["last"]]).strip()
        if code.startswith("{"):
            yield code
    # Prose around a bare object: from its first brace to its last.
    if "{" in whole and not whole.startswith("{"):
        yield whole[whole.index("{") : whole.rindex("}") + 1] if "}" in whole else ""


def _of_answer(value: dict[str, Any]) -> list[Finding]:
    issues = value.get("issues")
    if not isinstance(issues, list):
        return []
    return [_of_issue(issue) for issue in issues]


def _of_issue(issue: Any) -> Finding:
    if not isinstance(issue, dict):
        return _finding("", str(issue), 0, str(issue))
    text = next((str(issue[name]) for name in _TEXTS if issue.get(name)), "")
    place = next((str(issue[name]) for name in ("location", "file", "path") if issue.get(name)), "")
    found = _finding(str(issue.get("severity") or ""), text, 0, place)
    line = issue.get("line")
    if found["file"] is None and place:
        bare, _, digits = place.rpartition(":")
        found["file"], found["file_line"] = (bare, int(digits)) if bare and digits.isdecimal() else (place, None)
    if found["file_line"] is None and isinstance(line, int) and not isinstance(line, bool):
        found["file_line"] = line
    return found


# ---- lessons ---------------------------------------------------------------------------------------

_ARROW = re.compile(r"\s*(?:→|⇒|➜|=>|->)\s*")
_SPOKEN_ARROW = re.compile(r"(?<=\s)(?:→|⇒|➜|=>|->)(?=\s)")
_ENTRY = re.compile(r"^\[[^\]]*\]\s*")
_LESSON_LABEL = re.compile(r"^(?:lessons?(?:\s+learned)?|learned)\s*:\s*", re.IGNORECASE)
_SIDE_LABEL = re.compile(r"^(?:issue|problem|resolution|fix|solution)\s*:\s*", re.IGNORECASE)


def lessons(text: str) -> list[Lesson]:
    """Each once. In a section about lessons every line with one arrow; elsewhere only what reads as a sentence."""
    found: dict[tuple[str, str], Lesson] = {}
    in_section = False
    for block in read(text):
        if isinstance(block, Heading):
            in_section = "lesson" in block.text.casefold()
        elif not isinstance(block, Table) and (lesson := _lesson(block.text, block.number, in_section)):
            found.setdefault((lesson["issue"], lesson["resolution"]), lesson)
    return list(found.values())


def _lesson(text: str, number: int, in_section: bool) -> Lesson | None:
    if not _SPOKEN_ARROW.search(re.sub(r"`[^`]*`", "`code`", text)):
        return None
    said = _ENTRY.sub("", re.sub(r"\*\*", "", text).strip())
    labelled = bool(_LESSON_LABEL.match(said))
    sides = _ARROW.split(_LESSON_LABEL.sub("", said))
    if len(sides) != 2:
        return None
    issue, resolution = (_SIDE_LABEL.sub("", side).strip() for side in sides)
    if not issue or not resolution or (issue, resolution.rstrip(".")) == ("Issue", "Resolution"):
        return None
    fewest = 1 if in_section or labelled else 2
    if any(len(re.findall(r"[^\W\d_]{2,}", side)) < fewest for side in (issue, resolution)):
        return None
    return {"issue": issue, "resolution": resolution, "line": number}
