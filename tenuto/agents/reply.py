"""An agent's words -> its verdict. This is the only parser of verdicts: agents, guided runs and hooks use it.

    parse_reply(text)      verdict (also QUESTION), summary, and parked_until where the agent may not work before a time
    parse_verdict(text)    {"verdict": "DONE" | "NEEDS_REVISION" | "ERROR", "summary", "problem"?}
    parse_question(text)   what it asks a person, if it ends with `QUESTION: ...`
    parse_parked(text)     (when, why), if it ends with `PARKED: 2026-11-15T12:00:00Z why`

Rule 1: the last line that starts with `DONE:`, `NEEDS_REVISION:` or `ERROR:` is the verdict.
No such line, two different ones in its paragraph, or an empty reply: ERROR, and `problem` says which of these it is.

Rule 2: Markdown around the word is tolerated (`**DONE:** ...`, `- DONE: ...`, `## DONE: ...`), because
agents decorate. But it is weaker than a bare line: where a bare line exists, a decorated one below
it can only make the verdict worse; where none does, all decorated ones must agree. A quoted line
(`> DONE: ...`) repeats what another agent wrote, and does not count.

Rule 3: capitals, the underscore and the colon are part of the word. `Error: ENOENT` in a log,
`done: 3` in a list and `DONE` without a colon say nothing.

A verdict is a claim. Whether a DONE is true is for the receipt to show, not for this module.
Hooks read verdicts, too, so nothing here imports what makes a hook slow.
"""

from __future__ import annotations

from tenuto.core.status import SEVERITY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, NotRequired, TypedDict

    from tenuto.core.records.run import Verdict

    Problem = Literal["empty", "missing", "contradictory"]

    class Claim(TypedDict):
        verdict: Verdict
        summary: str
        problem: NotRequired[Problem]  # there when the ERROR is our judgement, not the agent's word

    class Parsed(TypedDict):
        verdict: Literal["DONE", "NEEDS_REVISION", "ERROR", "QUESTION"]
        summary: str
        parked_until: NotRequired[str]

    _Line = tuple[int, Verdict, str, bool]  # its number, its word, the summary, whether it is bare


_SPELLINGS: dict[str, Verdict] = {
    "DONE": "DONE",
    "NEEDS_REVISION": "NEEDS_REVISION",
    "NEEDS\\_REVISION": "NEEDS_REVISION",
    "ERROR": "ERROR",
}
_MARKUP = "*_`~"
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060"
_READ = 1 << 20  # characters from the end: an agent that floods its output does not hold up those who wait for it


def parse_reply(text: str) -> Parsed:
    parked, question = parse_parked(text), parse_question(text)
    if parked is not None:
        return {"verdict": "ERROR", "summary": parked[1], "parked_until": parked[0]}
    if question is not None:
        return {"verdict": "QUESTION", "summary": question}
    claim = parse_verdict(text)
    return {"verdict": claim["verdict"], "summary": claim["summary"]}


def parse_verdict(text: str) -> Claim:
    lines = _lines(text)
    if not any(line.strip() for line in lines):
        return _error("empty", "the reply is empty")
    claims = [claim for number, line in enumerate(lines) if (claim := _claim(number, line))]
    if not claims:
        return _error("missing", "no line of the reply starts with DONE:, NEEDS_REVISION: or ERROR:")
    bare = [claim for claim in claims if claim[3]]
    last = (bare or claims)[-1]
    for other in claims:
        if other[1] != last[1] and _contradicts(lines, last, other):
            both = f"{other[1]} in line {other[0] + 1} and {last[1]} in line {last[0] + 1}"
            return _error("contradictory", f"the reply contradicts itself: {both}")
    return {"verdict": last[1], "summary": last[2]}


def parse_question(text: str) -> str | None:
    """The question in the reply's last paragraph, to its end; None when it asks nothing or has a verdict after it."""
    lines = _lines(text)
    while lines and not lines[-1].strip():
        lines.pop()
    for number in range(len(lines) - 1, -1, -1):
        if not lines[number].strip() or _claim(number, lines[number]):
            return None
        found = _after_word(lines[number], "QUESTION")
        if found is not None:
            first = found[1].strip().rstrip("*`~").strip()
            return "\n".join([first, *(line.rstrip() for line in lines[number + 1 :])]).strip() or None
    return None


def parse_parked(text: str) -> tuple[str, str] | None:
    """A usage limit, from a program that knows when it ends. The time is not judged here."""
    last = next((line for line in reversed(_lines(text)) if line.strip()), "").strip()
    when, *why = last.removeprefix("PARKED:").split(maxsplit=1) or [""]
    if not last.startswith("PARKED:") or not when:
        return None
    return when, why[0].strip() if why else "a usage limit was reached"


def _lines(text: str) -> list[str]:
    text = text[-_READ:]
    if "\x1b" in text:
        import re  # colours are rare, and this module is costly for a hook

        text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", "", text)
    for sign in _INVISIBLE:
        text = text.replace(sign, "")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _claim(number: int, line: str) -> _Line | None:
    for spelling, word in _SPELLINGS.items() if ":" in line else ():
        found = _after_word(line, spelling)
        if found is not None:
            decoration, rest, open_ended = found
            summary = rest.strip()
            if decoration and open_ended:
                # `**DONE: all good**` and `DONE: all good` say the same.
                summary = summary.rstrip(_MARKUP).strip()
            return number, word, summary, not decoration
    return None


def _after_word(line: str, word: str) -> tuple[str, str, bool] | None:
    """(decoration around the word, what follows its colon, no decoration closes the word), where the line starts
    with it."""
    start = line.lstrip()
    text = _without_marks(start)
    plain = text.lstrip(_MARKUP)
    if not plain.startswith(word):
        return None
    opening = start[: len(start) - len(plain)].strip()
    behind = plain[len(word) :].lstrip(_MARKUP)
    if not behind.startswith(":"):
        return None
    closing = plain[len(word) : len(plain) - len(behind)]
    rest = behind[1:].lstrip(_MARKUP)
    after = behind[1 : len(behind) - len(rest)]
    return opening + closing + after, rest, not (closing or after)


def _without_marks(text: str) -> str:
    """Without the marks of lists and headings in front: `-`, `3.`, `##`."""
    while True:
        mark = text.split(maxsplit=1)[0] if text.strip() else ""
        number = mark[:-1]
        is_mark = (
            mark in ("-", "*", "+", "•")
            or (mark[-1:] in (".", ")") and number.isdecimal() and len(number) <= 3)
            or (0 < len(mark) <= 6 and not mark.strip("#"))
        )
        rest = text[len(mark) :]
        if not is_mark or not rest[:1].isspace():
            return text
        text = rest.lstrip()


def _contradicts(lines: list[str], last: _Line, other: _Line) -> bool:
    if not last[3]:
        return True
    if other[3]:
        return _same_paragraph(lines, other[0], last[0])
    return other[0] > last[0] and SEVERITY[other[1]] > SEVERITY[last[1]]


def _same_paragraph(lines: list[str], a: int, b: int) -> bool:
    return all(line.strip() for line in lines[min(a, b) : max(a, b) + 1])


def _error(problem: Problem, reason: str) -> Claim:
    return {"verdict": "ERROR", "summary": reason, "problem": problem}
