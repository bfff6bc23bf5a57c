"""An agent's reply -> its verdict. The one place where an agent's words become a fact.

    verdict(text)    {"verdict": "DONE" | "NEEDS_REVISION" | "ERROR", "summary", "reason"?}
    question(text)   what it asks a person, if it ends with `QUESTION: ...`
    parked(text)     (when, why), if it ends with `PARKED: 2026-11-15T12:00:00Z why`: it may not work before then
    heard(text)      all of this at once, as an adapter tells it
    task_ids(text)   the items named in `NEEDS_REVISION: 2 tasks failed verification — task IDs: a,b`

Rule 1: the last line that starts with `DONE:`, `NEEDS_REVISION:` or `ERROR:` is the verdict.
No such line, two different ones in its paragraph, or an empty reply: ERROR, with our reason.

Rule 2: Markdown around the word is tolerated (`**DONE:** ...`, `- DONE: ...`, `## DONE: ...`), because
agents decorate. But it is weaker than a bare line: where a bare line exists, a decorated one below
it can only make the verdict worse; where none does, all decorated ones must agree. A quoted line
(`> DONE: ...`) is somebody else's word.

Rule 3: capitals, the underscore and the colon are part of the word. `Error: ENOENT` in a log,
`done: 3` in a list and `DONE` without a colon say nothing.

A verdict is a claim. Whether a DONE is true is for the receipt to show, not for this module.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, NotRequired, TypedDict

Word = Literal["DONE", "NEEDS_REVISION", "ERROR"]


class Reply(TypedDict):
    verdict: Word
    summary: str
    reason: NotRequired[str]  # there when the ERROR is our judgement, not the agent's word


class _Claim(NamedTuple):
    line: int
    word: Word
    summary: str
    bare: bool


_SEVERITY: dict[str, int] = {"DONE": 0, "NEEDS_REVISION": 1, "ERROR": 2}
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\ufeff\u200b-\u200f\u2060]")
_MARKUP = r"(?:(?:[-*+•]|\d{1,3}[.)]|#{1,6})\s+)*[*_`~]*"
_CLAIM = re.compile(rf"^\s*({_MARKUP})(DONE|NEEDS\\?_REVISION|ERROR)([*_`~]*):([*_`~]*)(.*)$")
_QUESTION = re.compile(rf"^\s*{_MARKUP}QUESTION[*_`~]*:[*_`~]*(.*)$")
_PARKED = re.compile(r"^\s*PARKED:\s*(\S+)(.*)$")
_READ = 1 << 20  # characters from the end: an agent that floods its output does not hold up those who wait for it
_TASK_IDS = re.compile(r"\btask[\s_-]*ids?\b\s*[:=]?\s*([^\n]*)", re.IGNORECASE)


def verdict(text: str) -> Reply:
    lines = _lines(text)
    if not any(line.strip() for line in lines):
        return _judged("the reply is empty")
    claims = [claim for number, line in enumerate(lines) if (claim := _claim(number, line))]
    if not claims:
        return _judged("no line of the reply starts with DONE:, NEEDS_REVISION: or ERROR:")
    bare = [claim for claim in claims if claim.bare]
    last = (bare or claims)[-1]
    for other in claims:
        if other.word != last.word and _contradicts(lines, last, other):
            said = f"{other.word} in line {other.line + 1} and {last.word} in line {last.line + 1}"
            return _judged(f"the reply contradicts itself: {said}")
    return {"verdict": last.word, "summary": last.summary}


def question(text: str) -> str | None:
    """The question in the reply's last paragraph, to its end; None when it asks nothing or has a verdict after it."""
    lines = _lines(text)
    while lines and not lines[-1].strip():
        lines.pop()
    for number in range(len(lines) - 1, -1, -1):
        if not lines[number].strip() or _claim(number, lines[number]):
            return None
        found = _QUESTION.match(lines[number])
        if found:
            first = found.group(1).strip().rstrip("*`~").strip()
            return "\n".join([first, *(line.rstrip() for line in lines[number + 1 :])]).strip() or None
    return None


def parked(text: str) -> tuple[str, str] | None:
    """A usage limit, told by a program that knows when it ends. The time is not judged here."""
    last = next((line for line in reversed(_lines(text)) if line.strip()), "")
    found = _PARKED.match(last)
    return (found.group(1), found.group(2).strip() or "a usage limit was reached") if found else None


def heard(text: str) -> dict[str, str]:
    """verdict (also QUESTION), summary, and parked_until where it may not work before a time."""
    waits, asked = parked(text), question(text)
    if waits is not None:
        return {"verdict": "ERROR", "summary": waits[1], "parked_until": waits[0]}
    if asked is not None:
        return {"verdict": "QUESTION", "summary": asked}
    said = verdict(text)
    return {"verdict": said["verdict"], "summary": said["summary"] or said.get("reason", "")}


def task_ids(text: str) -> list[str]:
    """The ids after `task IDs:`, each once, as written."""
    named: dict[str, None] = {}
    for found in _TASK_IDS.finditer(text):
        listed = re.split(r"[;)\]]|\s[—–-]\s|\.(?:\s|$)", found.group(1).lstrip(" [("))[0]
        for name in re.split(r",|\s+and\s+|&|\s+", listed):
            if name.strip("`*'\"[]()#. "):
                named[name.strip("`*'\"[]()#. ")] = None
    return list(named)


def _lines(text: str) -> list[str]:
    return re.split(r"\r\n|\n|\r", _TERMINAL.sub("", text[-_READ:]))


def _claim(number: int, line: str) -> _Claim | None:
    found = _CLAIM.match(line) if ":" in line else None
    if not found:
        return None
    before, word, closing, after, rest = found.groups()
    decoration = f"{before}{closing}{after}".strip()
    summary = rest.strip()
    if decoration:
        # `**DONE: all good**` and `DONE: all good` say the same.
        summary = summary.rstrip("*_`~").strip() if not (closing or after) else summary
    known: dict[str, Word] = {"DONE": "DONE", "NEEDS_REVISION": "NEEDS_REVISION", "ERROR": "ERROR"}
    return _Claim(number, known[word.replace("\\", "")], summary, not decoration)


def _contradicts(lines: list[str], last: _Claim, other: _Claim) -> bool:
    if not last.bare:
        return True
    if other.bare:
        return _same_paragraph(lines, other.line, last.line)
    return other.line > last.line and _SEVERITY[other.word] > _SEVERITY[last.word]


def _same_paragraph(lines: list[str], a: int, b: int) -> bool:
    return all(line.strip() for line in lines[min(a, b) : max(a, b) + 1])


def _judged(reason: str) -> Reply:
    return {"verdict": "ERROR", "summary": reason, "reason": reason}
