"""What a sentence tells, judged by its words: an edge case, a place in the tree, a decision, a finding.

Rules for edge cases, which people write down everywhere and not only under a heading: a sentence tells
one if it has a fixed phrase ("must handle", "raises ValueError"), or an unusual *state* (empty, missing,
expired, too long) together with a *condition* (if, when) or an *outcome* (returns, rejects, falls back), or
a condition with an outcome in a weaker state (already, twice, more than). An item of a list needs less than a
sentence of prose; in prose a norm (must, never) is enough, but a story (we, was, asked) needs more. Where a section is background, or
the text has a section for edge cases, a sentence is *doubtful*: it must have all three, in a specification's voice.

Word lists, no grammar and no model: the same sentence always gets the same answer.
"""

from __future__ import annotations

import re
from typing import Literal

_WORD = re.compile(r"[a-z0-9][a-z0-9'’]*")

_CONDITION = set(
    "if when whenever unless once while given where otherwise else without until after before during except "
    "wherever upon case cases attempting trying".split()
)
Manner = Literal["item", "prose", "doubtful"]
# Words that open a condition where they open the text: any noun phrase does in an item.
_OPENING: dict[Manner, set[str]] = {
    "item": set("on for with a an any all two no the only at same each every".split()),
    "prose": {"on", "for", "with", "no"},
    "doubtful": set(),
}
_STATE = set(
    """empty null nil none undefined missing absent invalid malformed corrupt corrupted corruption duplicate duplicates
    duplicated zero negative nan infinite infinity overflow overflows overflowing underflow exceed exceeds exceeding exceeded
    expired expires expire expiry timeout timeouts timed unavailable unreachable offline fail fails failed failing failure
    failures error errors unauthorized unauthorised unauthenticated forbidden denied concurrent concurrently race races
    simultaneous simultaneously cancelled canceled cancels cancellation abort aborts aborted interrupted disconnect
    disconnects disconnected unknown unsupported unrecognized unrecognised unexpected blank whitespace truncated stale
    conflict conflicts conflicting cycle cycles cyclic circular oversized unreadable unparsable unparseable unparsed
    incomplete inconsistent mismatch mismatches mismatched mismatching wrong bad illegal crash crashes crashed killed
    exhausted throttled unicode emoji bom unset unspecified omitted revoked disabled nonexistent nonempty orphan orphaned
    dangling reentrant deadlock starved unresolved unreachable lost garbage non rejected refused outside beyond
    unterminated unclosed unbalanced ambiguous tie ties absent unwritable unreadable readonly dead idle divide division
    oom panic panics reordered backwards leap dst skew drift partial partially inverted reversed overlapping overlap
    unpaid unsigned unverified unmatched undeliverable tampered""".split()
)
_WEAK_STATE = set(
    """already same identical twice full closed locked more longer shorter larger smaller greater fewer less least most
    limit limits maximum minimum max min boundary exactly no not cannot without single last first old older newer older
    unchanged late early again still only too deleted removed nested deep trailing leading optional default odd even
    restart restarts restarted mixed multiple many several below above under over past future between equal equals
    retry retries retried collision collide collides drops dropped exists exist ends never midnight""".split()
)
_OUTCOME = set(
    """return returns returned raise raises raised throw throws thrown reject rejects rejected refuse refuses refused error
    errors panic panics abort aborts exit exits respond responds answer answers answered yield yields produce produces emit
    emits log logs logged warn warns warning ignore ignores ignored skip skips skipped drop drops dropped discard discards
    discarded clamp clamps clamped truncate truncates truncated cap caps capped wrap wraps rounds rounded fallback falls fall
    default defaults treat treats treated retry retries retried requeue requeued requeues wait waits block blocks blocked
    queue queued merge merges merged dedupe deduped deduplicated overwrite overwrites overwritten replace replaces replaced
    keep keeps kept preserve preserves preserved stop stops stopped close closes closed rollback rolled cancel cancels must
    never shall should cannot allowed accept accepts accepted noop idempotent unchanged becomes become reset resets
    restore restores restored split splits deny denies denied report reports reported record records recorded counts
    counted fails fail succeed succeeds sort sorted sorts leave leaves left write writes written delete deletes deleted
    send sends sent show shows shown display displays resolve resolves resolved disable disabled trim trimmed trims
    strip strips stripped escape escapes escaped normalize normalized normalise normalised saturate saturates win wins
    raising returning skipping ignoring rejecting 400 401 402 403 404 405 406 408 409 410 412 413 415 416 422 423 424
    425 426 428 429 431 500 501 502 503 504 507""".split()
)
# Outcomes only a specification states; the past tense is a story.
_SPEC_VOICE = set(
    """return returns raise raises throw throws reject rejects refuse refuses must shall never ignore ignores ignored skip
    skips skipped clamp clamps clamped truncates truncated falls defaults treated rejected responds exits respond 400 401
    403 404 409 410 412 413 415 422 423 429 500 502 503 504 noop idempotent""".split()
)
_PHRASE = re.compile(
    r"\b(?:edge|corner|boundary|degenerate|special) cases?\b|\bmust (?:handle|reject|refuse|not (?:crash|panic|throw|fail|block|"
    r"hang|lose|corrupt|leak|overwrite|be (?:lost|called|retried)))|\bno-?op\b|\bout[- ]of[- ](?:range|bounds|order|memory|space)|"
    r"\brace condition|\bidempotent|\b(?:is|are|be) (?:rejected|refused|an error|ignored|skipped|clamped|truncated)\b|"
    r"\bfails? with\b|\b(?:raises?|throws?)\b.{0,20}[`\"']?[A-Z]\w+|@throws|@raises|\bpanics? (?:if|when|on)\b|\bErr\(|"
    r"\breturns? (?:an? )?[`\"']?(?:null|none|nil|undefined|empty|false|zero|err\b|error|0\b|-1\b|\[\]|\{\}|\"\"|''|nothing|404|4\d\d|5\d\d)|"
    r"\b(?:does|do|must|may|can|will)(?: not|n't) (?:throw|raise|panic|crash)|\bnever (?:throws?|raises?|panics?|"
    r"blocks?|fails?|returns?|crash(?:es)?)\b|\bfalls? back\b|\bat[- ](?:most|least)[- ]once\b|\bhandles? (?:the )?(?:case|missing|empty|"
    r"invalid|null|error|fail|legacy|duplicate|partial|time)",
    re.I,
)
_STATE_PHRASE = re.compile(
    r"\btimes? out\b|\bnot (?:found|allowed|permitted|supported|valid|a valid|a number|in the|exist|match|fit|known|set|given)\b|"
    r"\balready exists?\b|\b(?:does|do)(?: not|n't) (?:exist|match|fit|parse|end|contain|have)\b|\bno longer\b|"
    r"\btoo (?:long|large|big|short|small|many|few|old|deep|late|early)\b",
    re.I,
)
_COMPARISON = re.compile(
    r"\b(?:longer|larger|greater|more|fewer|less|older|smaller|shorter|bigger|higher|lower) than\b|[<>≤≥]=?\s?\d|\b(?:above|below|over|under) "
    r"(?:the |a |an |\d|`)",
    re.I,
)
# The voice of a story: what people did, said and wanted. The second is only a hint of it.
_STORY = re.compile(
    r"\b(?:we|us|our|i|was|were|had|been|asked|told|said|thought|wanted|agreed|learned|expects?|would|meeting|talked|decided)\b",
    re.I,
)
_ANECDOTE = re.compile(r"\b(?:she|her|he|his|somebody|nobody|everybody|people|team|customers?|colleagues?)\b", re.I)
_OPENS_CONDITION = re.compile(r"^\W*(?:if|when|whenever|unless|in case|where|should|once|after|given|while)\b", re.I)
_NORM = re.compile(r"\b(?:must|shall|never|always|cannot|may not|only if|only when)\b", re.I)
_HARD_PHRASE = re.compile(
    r"\b(?:edge|corner) cases?:|\bmust (?:handle|reject|refuse|not)\b|\b(?:raises?|throws?)\b.{0,20}[`\"']?[A-Z]\w+(?:Error|Exception)|"
    r"\breturns? (?:an? )?[`\"']?(?:null|none|nil|undefined|empty|-1\b|err\b|404|4\d\d)|\bfails? with\b|\bpanics? (?:if|when|on)\b",
    re.I,
)
_ARROW = re.compile(r"\S\s*(?:->|→|=>|⇒|⟶|➜)\s*\S")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'”]*\s+(?=[A-Z`\"'(\[*_“])|;\s+")

_ENDINGS = (
    "tsx?|jsx?|mjs|cjs|pyi?|go|rs|java|kts?|cs|swift|rb|php|c|h|cc|cpp|hpp|m|mm|hs|mli?|scala|exs?|erl|sql|proto|graphql|gql|vue|"
    "svelte|s?css|less|html?|jsonc?|ya?ml|toml|md|mdx|rst|txt|sh|bash|ps1|tf|lua|dart|zig|clj[sc]?|r|jl|nim|p[lm]|sol|prisma|xml|"
    "gradle|cfg|ini|lock|env|cmake|mk|csproj|fs|fsx|vb|elm|adoc|snap|wasm|sum|mod"
)
_FILE = re.compile(
    r"(?:^|[\s`\"'(|*\[])(?:(?:[\w.@~+-]+/)+[\w.@*+{}<>\[\]-]+\.(?:"
    + _ENDINGS
    + r")\b|[\w@+-][\w.@+-]*\.(?:"
    + _ENDINGS
    + r")\b(?!\()|"
    r"(?:[\w.@~+-]+/){2,}[\w.@*-]*|(?:[\w.@~+-]+/)+(?=[\s`\"'),]|$))"
)
_PLACING = set(
    """create creates created creating modify modifies modified add adds added new update updates updated edit edits edited
    extend extends extended delete deletes deleted remove removes removed rename renames renamed move moves moved lives live
    placed place goes go put belongs file files module path touch touches touched change changes changed write under inside
    register registers wire""".split()
)
_DECISION = re.compile(
    r"\b(?:decided|decision|chose|chosen|choose|we (?:will|use|keep|store|adopt)|will use|instead of|rather than|selected|prefer|opted|"
    r"adopt(?:ed)?|settled on|agreed|picked)\b",
    re.I,
)
_CONSTRAINT = re.compile(
    r"\b(?:must|shall|never|cannot|can't|may not|required|forbidden|at (?:most|least)|no (?:more|less|new|other|external|third)|only|"
    r"limit(?:ed)? to|not allowed|prohibited|mandatory|budget|within \d)\b",
    re.I,
)
_PATTERN = re.compile(
    r"\b(?:patterns?|conventions?|naming|idiom|factory|adapter|repository pattern|facade|strategy pattern|observer|decorator|middleware|"
    r"follows? the|consistent with|same (?:way|style|shape)|reuse|dependency injection)\b",
    re.I,
)
_FINDING = re.compile(
    r"(?:\[|\*\*|\(|^|\|\s*|:\s*)(?:critical|major|minor|blocker|blocking|high|medium|low)\b\s*(?:\]|\*\*|\)|:|\||-|—)|\w\.\w{1,5}:\d+|"
    r"\bseverity\b|\b(?:must|should|needs? to) (?:be )?(?:fix|address|chang|add|remov|split|defin|replac)|\bverdict\b|DESIGN_FLAW|"
    r"IMPLEMENTATION_FLAW|ESCALATE",
    re.I,
)
_FAILURE = re.compile(
    r"\bFAIL(?:ED|URES?)?\b|[✗❌✘×]|\b(?:failed|failing)\b|Error\b|panicked|Traceback|\bexpected\b.*\b(?:got|but|received)\b",
    re.I,
)
_TEST = re.compile(
    r"\btest_\w+|\bTest[A-Z]\w+|[\w/.-]+(?:\.test|\.spec|_test|_spec|Test|Tests|Spec)\.\w{1,5}\b|\btests?/|\b(?:pytest|jest|vitest|go test|"
    r"cargo test|npm (?:run )?test|dotnet test|gradle\w* test|mvn|rspec|phpunit|swift test|mix test|ctest|make test)\b"
)
_SCENARIO = re.compile(
    r"^\W*(?:\*\*)?(?:given|when|then|and|but|scenario|scenario outline|feature|background|example)(?:\*\*)?:?\s", re.I
)


def tells_an_edge_case(text: str, manner: Manner = "prose") -> bool:
    """Whether one sentence, item or comment says what happens in an unusual case."""
    words = _WORD.findall(text.lower())
    if len(words) < 2:
        return False
    known = set(words)
    states, outcomes = known & _STATE, known & _OUTCOME
    if _STATE_PHRASE.search(text):
        states.add("")
    condition = not known.isdisjoint(_CONDITION) or words[0] in _OPENING[manner]
    if manner == "doubtful":
        spoken = not known.isdisjoint(_SPEC_VOICE)
        return bool(_HARD_PHRASE.search(text)) or bool(states and spoken and condition and not _STORY.search(text))
    # One word that is both ("closed", "failed") is one sign, not two.
    both = bool(states) and bool(outcomes) and len(states | outcomes) > 1
    weak = not known.isdisjoint(_WEAK_STATE) or bool(_COMPARISON.search(text))
    if manner == "item":
        arrow = bool(_ARROW.search(text)) and bool(outcomes or states or weak) and not names_a_file(text)
        return (
            bool(_PHRASE.search(text))
            or both
            or bool(states and condition)
            or (weak and condition and bool(outcomes))
            or arrow
        )
    if _STORY.search(text):
        return tells_an_edge_case(text, "doubtful")
    if _OPENS_CONDITION.match(text) and (states or weak):
        return True
    if _ANECDOTE.search(text):
        return tells_an_edge_case(text, "doubtful")
    strong = bool(_PHRASE.search(text)) or both or bool(states and condition) or bool(_NORM.search(text))
    return strong or (weak and bool(outcomes - _WEAK_STATE) and (condition or bool(_COMPARISON.search(text))))


def sentences(lines: list[str]) -> list[tuple[int, int, str]]:
    """The sentences of a paragraph: first line, last line (both counted from 0), text."""
    found: list[tuple[int, int, str]] = []
    begun, start = "", 0
    for number, line in enumerate(lines):
        pieces = _SENTENCE_END.split(line.strip())
        for index, piece in enumerate(pieces):
            if not begun:
                start = number
            begun = f"{begun} {piece}".strip()
            if index < len(pieces) - 1 or (number + 1 < len(lines) and re.search(r"[.!?;][)\"'”*`]*$", piece)):
                found.append((start, number, begun))
                begun = ""
    if begun:
        found.append((start, len(lines) - 1, begun))
    return found


def names_a_file(text: str) -> bool:
    return ("." in text or "/" in text) and bool(_FILE.search(text))


def places_a_file(text: str) -> bool:
    """Names a file and says what becomes of it, or is an item that begins with one."""
    if not names_a_file(text):
        return False
    found = _FILE.search(text)
    begins = found is not None and not _WORD.search(text[: found.start()].lower())
    return begins or not _PLACING.isdisjoint(_WORD.findall(text.lower()))


def is_file_tree(code: list[str]) -> bool:
    drawn = sum(any(sign in line for sign in ("├", "└", "|--", "+--", "`--")) for line in code)
    if drawn >= 2:
        return True
    named = [line for line in code if line.strip()]
    return len(named) >= 2 and all(
        len(line.split("#")[0].split()) <= 3 and re.match(r"^\s*[\w.@*/{}\[\]-]+(?:/|\.\w+)(?:\s|$)", line)
        for line in named
    )


def states_a_decision(text: str) -> bool:
    return bool(_DECISION.search(text))


def states_a_constraint(text: str) -> bool:
    return bool(_CONSTRAINT.search(text))


def states_a_pattern(text: str) -> bool:
    return bool(_PATTERN.search(text))


def states_a_finding(text: str) -> bool:
    return bool(_FINDING.search(text))


def reports_a_failure(text: str) -> bool:
    return bool(_FAILURE.search(text))


def names_a_test(text: str) -> bool:
    return bool(_TEST.search(text))


def is_scenario(text: str) -> bool:
    return bool(_SCENARIO.match(text))
