"""What a sentence of a design or an audit states: a decision, a constraint, a finding, a failing test.

Asked only where no heading says so. Patterns are compiled when they are first asked for: most retrievals
need none of them, and a process pays for each.
"""

from __future__ import annotations

import re

# By kind of part; the texts are matched in lower case, except where a pattern asks for capitals.
_PATTERNS = {
    "decisions": r"\b(?:decided|decision|chose|chosen|choose|we (?:will|use|keep|store|adopt)|will use|instead of|rather than|"
    r"selected|prefer|opted|adopt(?:ed)?|settled on|agreed|picked)\b",
    "constraints": r"\b(?:must|shall|never|cannot|can't|may not|required|forbidden|at (?:most|least)|only|"
    r"no (?:more|less|new|other|external|third)|limit(?:ed)? to|not allowed|prohibited|mandatory|budget|within \d)\b",
    "patterns": r"\b(?:patterns?|conventions?|naming|idiom|factory|adapter|facade|observer|decorator|middleware|follows? the|"
    r"consistent with|same (?:way|style|shape)|reuse|dependency injection)\b",
    "issues": r"(?:\[|\*\*|\(|^|\|\s*|:\s*)(?:critical|major|minor|blocker|blocking|high|medium|low)\b\s*(?:\]|\*\*|\)|:|\||-|—)|"
    r"\w\.\w{1,5}:\d+|\bseverity\b|\b(?:must|should|needs? to) (?:be )?(?:fix|address|chang|add|remov|split|defin|replac)|"
    r"\bverdict\b|design_flaw|implementation_flaw|escalate",
    "failures": r"\bfail(?:ed|ing|ures?)?\b|[✗❌✘×]|error\b|panicked|traceback|\bexpected\b.*\b(?:got|but|received)\b",
    "tests": r"\btest_\w+|[\w/.-]+(?:\.test|\.spec|_test|_spec|tests?|spec)\.\w{1,5}\b|\btests?/|\b(?:pytest|jest|vitest|go test|"
    r"cargo test|npm (?:run )?test|dotnet test|gradle\w* test|mvn|rspec|phpunit|swift test|mix test|ctest|make test)\b",
    "verdict": r"\bverdict\b|design_flaw|implementation_flaw|\bescalate\b|\bpass(?:ed)?\b|\bfail(?:ed)?\b",
    "scenario": r"^\W*(?:given|when|then|and|but|scenario|scenario outline|feature|example)\W*\s",
}
_COMPILED: dict[str, re.Pattern[str]] = {}


def states(kind: str, text: str) -> bool:
    """False for kinds that have no wording of their own."""
    if kind not in _PATTERNS:
        return False
    if kind not in _COMPILED:
        _COMPILED[kind] = re.compile(_PATTERNS[kind])
    return bool(_COMPILED[kind].search(text.lower()))


def gives_a_verdict(text: str) -> bool:
    return states("verdict", text)


def is_scenario(text: str) -> bool:
    return states("scenario", text)
