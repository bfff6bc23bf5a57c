"""What a review found, and what was learned on the way.

    findings(text)         every finding of a review, in Markdown or JSON
    failing(texts, items)  the items that a verifier's words name as not good
    lessons(text)          its `Issue → Resolution` lines
    answer(text)           the JSON object that a text is, or holds in a code block
    verdict_in(text, ...)  the verdict that a report in prose names

A finding is a table row with a Severity column, a list item or heading with `[Word]` or
`Severity: Word`, or an entry of a JSON answer's `issues`. Nothing else is: a text without such
lines has no findings, and the verdicts decide.

Rule 1: nothing is overlooked that could be a finding. Code blocks are read too (whole reviews come
wrapped in one); a severity word that nobody knows is kept as it is, for the rules to count as the
worst; an empty one as well, where something was said beside it.

Rule 2: not everything in brackets is a severity. A task box, a link, a status (`[PASS]`), an id, a
tally that says 0 and a legend of the scale are not findings.

Which items fail. Verifiers name them in verdict lines, lists, tables, headings, boxes and prose, beside items that are
well. Every mention of an item is good, bad or open:

    in a sentence      by the word for it that comes next; behind `Failed:` by that label; `not` and `no` turn a word
    in a table row     by its cell under Status, Result or the like; a row with a severity is bad; else as a sentence
    otherwise          by what it stands under: a heading, the entry of a list above it; a box that is not ticked is bad
    under a heading    that names an item, what is said of nobody else is said of that item; its Status line decides

Rule 3: an item that is bad anywhere fails. Where no item is bad, those fail that are named and nowhere called good: in
another language every mention is open.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from tenuto.core.items import directory, names_in
from tenuto.core.records.run import Json, PlannedItem
from tenuto.core.rules import is_severity
from tenuto.encoding import NotJson, loads_strict
from tenuto.knowledge.markdown import Block, Heading, Item, Line, Table, find_code, plain, read

if TYPE_CHECKING:
    from tenuto.core.items import Directory


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
    around = _Around(blocks)
    found: list[Finding] = []
    for at, block in enumerate(blocks):
        if isinstance(block, Table):
            found.extend(_of_table(block))
        elif (word := _severity_of(block)) is not None:
            found.append(_finding(word, around.subject(at), block.number, around.place(at)))
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


class _Around:
    """What stands around each block, found in one walk: a long review may be one section of a thousand findings."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self._above: list[int] = []  # the heading, or the entry of a list, that each block stands under; -1: none
        self._sections: list[int] = []  # the heading of its section; 0 before the first
        self._places: dict[int, str] = {}  # of a section -> what its first `Location:` says
        heading, section, entries = -1, 0, list[int]()
        for at, block in enumerate(blocks):
            section = at if isinstance(block, Heading) else section
            self._sections.append(section)
            while isinstance(block, Item) and entries and self._indent(entries[-1]) >= block.indent:
                entries.pop()
            self._above.append(entries[-1] if isinstance(block, Item) and entries else heading)
            if isinstance(block, (Heading, Table)):
                heading, entries = (at if isinstance(block, Heading) else -1), []
            elif isinstance(block, Item):
                entries.append(at)

    def _indent(self, at: int) -> int:
        block = self.blocks[at]
        return block.indent if isinstance(block, Item) else -1

    def subject(self, at: int) -> str:
        """What the finding is about. A line that only says how bad it is belongs to what stands above it."""
        block = self.blocks[at]
        assert not isinstance(block, Table)
        said = plain(block.text)
        labelled = _SEVERITY.search(said)
        if not labelled or isinstance(block, Heading) or len(_VALUE.findall(said[: labelled.start()])) > 1:
            return said
        above = self.blocks[self._above[at]] if self._above[at] >= 0 else block
        return said if isinstance(above, Table) else plain(above.text)

    def place(self, at: int) -> str:
        """The finding's own line, else a `Location:` line that belongs to it."""
        block = self.blocks[at]
        assert not isinstance(block, Table)
        own, subject = plain(block.text), self.subject(at)
        if _place(own)[0]:
            return own
        if isinstance(block, Item) and subject == own:
            return _first_place(self._below(at, block.indent)) or subject
        section = self._sections[at]
        if section not in self._places:
            self._places[section] = _first_place(self._below(section, -1))
        return self._places[section] or subject

    def _below(self, at: int, indent: int) -> Iterator[Item | Line]:
        """The lines of a heading's section (-1), or what is indented below an entry of a list."""
        for number in range(at + 1, len(self.blocks)):
            near = self.blocks[number]
            if isinstance(near, (Heading, Table)) or (
                indent >= 0 and (not isinstance(near, Item) or near.indent <= indent)
            ):
                return
            yield near


def _first_place(lines: Iterator[Item | Line]) -> str:
    labelled = (_LABEL.match(plain(near.text)) for near in lines)
    return next((found.group(1) for found in labelled if found and _place(found.group(1))[0]), "")


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


def answer(text: str, having: tuple[str, ...] = ()) -> Json | None:
    """The JSON object that the text is, or the last one in its code blocks; None when there is none.

    `having`: one that has any of these keys.
    """
    for candidate in _candidates(text):
        try:
            value = loads_strict(candidate)
        except NotJson:
            continue
        if isinstance(value, dict) and (not having or any(key in value for key in having)):
            return value
    return None


def verdict_in(text: str, known: Collection[str]) -> str:
    """The known word that a `Verdict:` line or heading says; empty where none does, or where two say different ones."""
    lines = [stripped for line in text.split("\n") if (stripped := line.replace("*", "").strip(" \t\r#>-_`|"))]
    said: set[str] = set()
    for at, line in enumerate(lines):
        label, _, value = line.partition(":") if ":" in line else line.partition(" is ")
        if label.casefold().split()[-1:] == ["verdict"] and len(label.split()) < 3:
            value = value.strip(" `_") or " ".join(lines[at + 1 : at + 2])
            words = re.findall(r"[A-Z]+", value.upper().replace("_", " "))
            said |= {word for word in known if words[: word.count("_") + 1] == word.split("_")}
    return said.pop() if len(said) == 1 else ""


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


def _of_answer(value: Json) -> list[Finding]:
    issues = value.get("issues")
    if not isinstance(issues, list):
        return []
    return [_of_issue(issue) for issue in issues]


def _of_issue(issue: object) -> Finding:
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


# ---- failing items ---------------------------------------------------------------------------------

Tone = Literal["good", "bad", "open"]


class _Mention(NamedTuple):
    item: str
    tone: Tone


class _Above(NamedTuple):
    """What a line stands under: a heading, or an entry of a list above it."""

    depth: int
    items: list[str]
    tone: Tone
    lists_items: bool  # it announces items: a bare number below it is one


_GOOD = re.compile(
    r"pass(?:e[sd]|ing)?|verified|done|complete[d]?|ok(?:ay)?|success(?:ful)?|succeed(?:s|ed)?|satisf(?:y|ies|ied)"
    r"|met|works?|working|correct|fine|good|green|clean|resolved|approved|accepted|✅|✓|✔|☑|🟢|\[x\]",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"fail(?:s|ed|ing|ures?)?|errors?|broken|breaks?|missing|misses|lacks?|incomplete|unfinished|wrong|incorrect|invalid"
    r"|blocked|blocks|rejected|partial(?:ly)?|unverified|unmet|issues?|problems?|bugs?|defects?|regress(?:es|ed|ions?)?"
    r"|crash(?:es|ed)?|needs?|needs_revision|must|should|fix(?:es)?|revise|revision|rework|redo|todo|actionable"
    r"|open|pending|❌|✗|✘|⛔|🔴|⚠|\[ \]",
    re.IGNORECASE,
)
_TURN = re.compile(r"not|no|never|without|none|nothing|0|zero|cannot|[a-z]+n['’]t|doesnt|isnt", re.IGNORECASE)
_STATE = re.compile(r"status|state|result|verdict|outcome|pass(?:ed)?(?:/fail(?:ed)?)?|passes|ok", re.IGNORECASE)
_ITEM_COLUMN = re.compile(r"(?:failing |failed )?(?:tasks?|items?)(?: ids?)?|ids?", re.IGNORECASE)
_STATE_LINE = re.compile(r"^(?:status|state|result|verdict|outcome)\s*[:=]\s*(.*)", re.IGNORECASE)
_LISTS_ITEMS = re.compile(r"\b(?:tasks?|items?|ids?)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|\s+(?:but|while|whereas|however)\s+", re.IGNORECASE)
_PIECE = re.compile(r"\[[ xX]\]|[^\W_](?:[\w./'’-]*\w)?|[^\s\w]")
_NOTHING_OF_IT = re.compile(r"nothing|none|no|0|n/a", re.IGNORECASE)
_REACH = 3  # words that a negation reaches over


def failing(texts: Sequence[str], items: Sequence[PlannedItem]) -> list[str]:
    """In the order of the items."""
    names = directory(items)
    tones: dict[str, set[Tone]] = {one["id"]: set() for one in items}
    for text in texts:
        whole = answer(text)
        for mention in (whole and list(_mentions_in_answer(whole, names))) or _mentions(text, names):
            tones[mention.item].add(mention.tone)
    bad = [name for name, found in tones.items() if "bad" in found]
    return bad or [name for name, found in tones.items() if found and "good" not in found]


def _mentions(text: str, names: Directory) -> Iterator[_Mention]:
    above: list[_Above] = []
    decided: list[int] = []  # depths of headings whose Status line has spoken
    for block in read(text, keep_code=True):
        if isinstance(block, Table):
            yield from _mentions_in_table(block, names, above)
            continue
        depth = block.level if isinstance(block, Heading) else 10 + block.indent if isinstance(block, Item) else 9
        above = [one for one in above if one.depth < depth]
        decided = [one for one in decided if one < depth]
        said, box = plain(block.text), block.mark if isinstance(block, Item) else ""
        found = list(_mentions_in_words(said, names, above))
        ticked = _box(block.text, box)
        if ticked != "open":
            found = [mention._replace(tone=ticked) for mention in found]
        yield from found if not isinstance(block, Heading) else [one for one in found if one.tone != "open"]
        yield from _said_of_the_heading(said, ticked, found, above, decided)
        if isinstance(block, (Heading, Item)) or said.endswith(":"):  # what follows stands under it
            tone = ticked if ticked != "open" else _tone_of(said)
            inherited: Tone = next((one.tone for one in reversed(above) if one.tone != "open"), "open")
            named = list(dict.fromkeys(mention.item for mention in found))
            if isinstance(block, Heading) and not named and tone == "open":
                inherited = "open"  # another subject
            above.append(_Above(depth, named, tone if tone != "open" else inherited, _lists(said, above)))


def _lists(said: str, above: list[_Above]) -> bool:
    return bool(_LISTS_ITEMS.search(said)) or any(one.lists_items for one in above[-1:])


def _box(text: str, mark: str) -> Tone:
    box = re.match(r"\s*(?:[-*+]\s+)?\[([ xX])\]", text) or re.match(r"\s*\[([ xX])\]", mark)
    return "open" if box is None else "bad" if box[1] == " " else "good"


def _said_of_the_heading(
    said: str, ticked: Tone, found: list[_Mention], above: list[_Above], decided: list[int]
) -> Iterator[_Mention]:
    """Of the item whose section this is, where the line names nobody."""
    section = next((one for one in reversed(above) if one.items and one.depth < 10), None)
    if found or section is None or section.depth in decided:
        return
    state = _STATE_LINE.match(said)
    tone = _tone_of(state[1]) if state else ticked if ticked != "open" else _tone_of(said)
    if state and tone != "open":
        decided.append(section.depth)
    elif tone == "good" or section.tone != "open":
        return  # a criterion that is met says nothing of the rest; and the heading itself has spoken
    for item in section.items if tone != "open" else ():
        yield _Mention(item, tone)


def _mentions_in_table(table: Table, names: Directory, above: list[_Above]) -> Iterator[_Mention]:
    header = [plain(cell).strip() for cell in table.header]
    bad_rows = [row["line"] for row in _of_table(table)]
    states = [at for at, name in enumerate(header) if _STATE.fullmatch(name)]
    own = [at for at, name in enumerate(header) if _ITEM_COLUMN.fullmatch(name)]
    for row in table.rows:
        cells = [plain(cell) for cell in row.cells]
        named = [name for at in own if at < len(cells) for name in names_in(f"task {cells[at]}", names)]
        tone: Tone = next((_tone_of(cells[at]) for at in states if at < len(cells)), "open")
        if row.number in bad_rows and tone == "open":
            tone = "bad"
        whole = list(_mentions_in_words(" | ".join(cells), names, above))
        if tone == "open" and named:
            others = " | ".join(cell for at, cell in enumerate(cells) if at not in own)
            tone = _tone_of(others)
            tone = tone if tone != "open" else next((m.tone for m in whole if m.item in named), "open")
        for name in dict.fromkeys(named):
            yield _Mention(name, tone)
        if not named:
            yield from (mention if tone == "open" else mention._replace(tone=tone) for mention in whole)


def _mentions_in_words(said: str, names: Directory, above: list[_Above]) -> Iterator[_Mention]:
    default: Tone = next((one.tone for one in reversed(above) if one.tone != "open"), "open")
    for sentence in _SENTENCE.split(said):
        listed = any(one.lists_items for one in above[-1:])
        label: Tone = "open"
        before: Tone = "open"
        for words, tone, is_label in _parts(sentence):
            chosen = label if label != "open" else tone if tone != "open" and not is_label else before
            named = names_in(f"tasks {words}" if listed else words, names)
            listed = listed or (bool(named) and bool(_LISTS_ITEMS.search(words)))
            for name in named:
                yield _Mention(name, chosen if chosen != "open" else default)
            label, before = tone if is_label else label, tone


def _parts(sentence: str) -> list[tuple[str, Tone, bool]]:
    """The sentence, cut at its words for good and bad: what stands before each, and is it a label (`Failed:`)?"""
    parts: list[tuple[str, Tone, bool]] = []
    start, turned = 0, 0  # the words that a negation still reaches over
    pieces = list(_PIECE.finditer(sentence))
    words = [piece.group() for piece in pieces]
    skipped = -1
    for number, piece in enumerate(pieces):
        if number == skipped:
            continue
        following = words[number + 1 : number + 4]
        if _TURN.fullmatch(piece.group()):
            later = (words[at] for at in range(number + 1, len(words)))
            reached = islice((word for word in later if word[0].isalnum() or _word_tone(word) != "open"), _REACH)
            turned = _REACH if any(_word_tone(word) != "open" for word in reached) else 0
            if turned:
                continue
            tone: Tone = "bad"  # `does not`, `not started`
        else:
            tone = _word_tone(piece.group())
            if tone == "open":
                turned -= piece.group()[0].isalnum() and turned > 0
                continue
            if turned:
                tone, turned = _opposite(tone), 0
        is_label = following[:1] in ([":"], ["="])
        value = following[1:] if is_label else following
        if tone == "bad" and value and _NOTHING_OF_IT.fullmatch(value[0]) and (not is_label or len(value) == 1):
            tone, skipped = "good", number + (2 if is_label else 1)  # `needs nothing`, `Issues: none`
        parts.append((sentence[start : piece.start()], tone, is_label))
        start = piece.end()
    return [*parts, (sentence[start:], "open", False)]


def _opposite(tone: Tone) -> Tone:
    return "good" if tone == "bad" else "bad"


def _word_tone(word: str) -> Tone:
    """`partially-verified` is partial."""
    if any(_BAD.fullmatch(one) for one in (word, word.partition("-")[0])):
        return "bad"
    return "good" if _GOOD.fullmatch(word) else "open"


def _tone_of(said: str) -> Tone:
    """Bad, where anything in it is."""
    tones = [tone for sentence in _SENTENCE.split(said) for _, tone, _ in _parts(sentence)]
    return "bad" if "bad" in tones else "good" if "good" in tones else "open"


def _mentions_in_answer(value: Json, names: Directory) -> Iterator[_Mention]:
    """In a JSON answer: what stands under a key, by what the key says."""
    for key, entry in value.items():
        listed = entry if isinstance(entry, list) else [entry]
        words = ", ".join(one for one in listed if isinstance(one, str))
        for name in names_in(f"tasks {words}", names) if words else ():
            yield _Mention(name, _tone_of(key.replace("_", " ")))
        for one in listed:
            if isinstance(one, dict):
                state = [_tone_of(str(held)) for name, held in one.items() if _STATE.fullmatch(name)]
                text = " ".join(str(held) for name, held in one.items() if _ITEM_COLUMN.fullmatch(name))
                tone = next(iter(state), "bad" if "severity" in one else _tone_of(key.replace("_", " ")))
                yield from (_Mention(name, tone) for name in names_in(f"task {text}", names))


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
