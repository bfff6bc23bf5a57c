"""Whether a sentence tells an edge case, judged by its words.

    tells_an_edge_case(text, manner) -> bool      sentences(lines) -> the sentences of a paragraph

People write edge cases down everywhere, not only under a heading. A sentence tells one if it has a fixed
phrase ("must handle", "raises ValueError"), or an unusual *state* (empty, missing, expired) together with a
*condition* (if, when) or an *outcome* (returns, rejects, falls back), or a condition with an outcome in a
weaker state (already, twice, more than).

The manner says how much is needed: an *item* of a list needs the least; in *prose* a norm (must, never) is
enough, but a story (we, was, asked) needs more; a *doubtful* sentence, in a section of background or where the
text has a section for edge cases, must have all three, in the voice of a specification.

Word lists, no grammar and no model: the same sentence always gets the same answer.
"""

from __future__ import annotations

from tenuto.knowledge.condense.places import names_a_file
from tenuto.knowledge.patterns import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Manner = Literal["item", "prose", "doubtful"]

_WORD = pattern(r"[a-z0-9][a-z0-9'’]*")

_CONDITION = set(
    """if when whenever unless once while given where otherwise else without until after before during except wherever upon
    case cases attempting trying""".split()
)
# Words that open a condition where they open the text: any noun phrase does in an item.
_OPENING: dict[str, set[str]] = {
    "item": set("on for with a an any all two no the only at same each every".split()),
    "prose": {"on", "for", "with", "no"},
    "doubtful": set(),
}
_STATE = set(
    """empty null nil none undefined zeros missing absent invalid malformed corrupt corrupted corruption duplicate duplicates
    duplicated zero negative nan infinite infinity overflow overflows overflowing underflow exceed exceeds exceeding exceeded
    expired expires expire expiry timeout timeouts timed unavailable unreachable offline fail fails failed failing failure
    failures error errors unauthorized unauthorised unauthenticated forbidden denied concurrent concurrently race races
    simultaneous simultaneously cancelled canceled cancels cancellation abort aborts aborted interrupted disconnect
    disconnects disconnected unknown unsupported unrecognized unrecognised unexpected blank whitespace truncated stale
    conflict conflicts conflicting cycle cycles cyclic circular oversized unreadable unparsable unparseable unparsed
    incomplete inconsistent mismatch mismatches mismatched mismatching wrong bad illegal crash crashes crashed killed
    exhausted throttled unicode emoji bom unset unspecified omitted revoked disabled nonexistent nonempty orphan orphaned
    dangling reentrant deadlock starved unresolved lost garbage non rejected refused outside beyond unterminated unclosed
    unbalanced ambiguous tie ties unwritable readonly dead idle divide division oom panic panics reordered backwards leap
    dst skew drift partial partially overlapping overlap unpaid unsigned unverified unmatched undeliverable
    tampered""".split()
)
_WEAK_STATE = set(
    """already same identical twice full closed locked more longer shorter larger smaller greater fewer less least most
    limit limits maximum minimum max min boundary exactly no not cannot without single last first old older newer
    unchanged late early again still only too deleted removed nested deep trailing leading optional default odd even
    0 1 100 other another itself self restart restarts restarted mixed multiple many several below above under over past
    future between equal equals retry retries retried collision collide collides drops dropped exists exist ends never
    midnight""".split()
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
    store stores stored save saves saved use uses used count nothing raising returning skipping ignoring rejecting remove
    removes removed""".split()
)
_STATUS = set(
    """400 401 402 403 404 405 406 408 409 410 412 413 415 416 422 423 424 425 426 428 429 431 500 501 502 503 504
    507""".split()
)
_OUTCOME |= _STATUS
_DENIAL = {"not", "never", "nothing", "no"}
# Outcomes only a specification states; the past tense is a story.
_SPEC_VOICE = set(
    """return returns raise raises throw throws reject rejects refuse refuses must shall never ignore ignores ignored skip
    skips skipped clamp clamps clamped truncates truncated falls defaults treated rejected responds exits respond 400 401
    403 404 409 410 412 413 415 422 423 429 500 502 503 504 noop idempotent""".split()
)
# The voice of a story: what people did, said and wanted. The second is only a hint of it.
_STORY = set(
    "we us our i was were had been asked told said thought wanted agreed learned expect expects would meeting talked decided".split()
)
_ANECDOTE = set(
    """she her he his somebody nobody everybody anybody someone anyone people teams team customer customers colleague colleagues prototype benchmark
    benchmarks approximately roughly about around percent median rollout week weeks month months year years""".split()
)
_NORM = {"must", "shall", "never", "always", "cannot"}
_OPENS_CONDITION = {"if", "when", "whenever", "unless", "in", "where", "should", "once", "after", "given", "while"}

# The texts these are tried on are in lower case.
_PHRASE = pattern(
    r"\b(?:edge|corner|boundary|degenerate|special) cases?\b|\bmust (?:handle|reject|refuse|not (?:crash|panic|throw|fail|block|"
    r"hang|lose|corrupt|leak|overwrite|be (?:lost|called|retried)))|\bno-?op\b|\bout[- ]of[- ](?:range|bounds|order|memory|space)|"
    r"\brace condition|\bidempotent|\b(?:is|are|be) (?:rejected|refused|an error|ignored|skipped|clamped|truncated)\b|"
    r"\bfails? with\b|@throws|@raises|\bpanics? (?:if|when|on)\b|\berr\(|"
    r"\breturns? (?:an? )?[`\"']?(?:null|none|nil|undefined|empty|false|zero|err|\w+error|\w+exception|error|0\b|-1\b|\[\]|\{\}|\"\"|''|nothing|4\d\d|5\d\d)|"
    r"\bno effect\b|\bnothing happens\b|\bdo(?:es)? nothing\b|\b(?:\d|null|none|nil|empty|zero|blank|undefined)[`\"']? means\b|"
    r"\b(?:does|do|must|may|can|will)(?: not|n't) (?:throw|raise|panic|crash)|\bnever (?:throw|raise|panic|block|fail|return|crash)|"
    r"\bfalls? back\b|\bat[- ](?:most|least)[- ]once\b|"
    r"\bhandles? (?:the )?(?:case|missing|empty|invalid|null|error|fail|legacy|duplicate|partial|time)"
)
_STATE_PHRASE = pattern(
    r"\btimes? out\b|\bnot (?:found|allowed|permitted|supported|valid|a valid|a number|in the|exist|match|fit|known|set|given)\b|"
    r"\balready exists?\b|\b(?:does|do)(?: not|n't) (?:exist|match|fit|parse|end|contain|have)\b|\bno longer\b|"
    r"\btoo (?:long|large|big|short|small|many|few|old|deep|late|early)\b"
)
_COMPARISON = pattern(
    r"\b(?:longer|larger|greater|more|fewer|less|older|smaller|shorter|bigger|higher|lower) (?:\w+ ){0,2}than\b|[<>≤≥]=?\s?\d|"
    r"\b(?:above|below|over|under) (?:the |a |an |\d|`)"
)
_HARD_PHRASE = pattern(
    r"\b(?:edge|corner) cases?:|\bmust (?:handle|reject|refuse|not)\b|\b(?:raise|throw)s?\b.{0,20}\w(?:error|exception)\b|"
    r"\breturns? (?:an? )?[`\"']?(?:null|none|nil|undefined|empty|-1\b|err\b|4\d\d)|\bfails? with\b|\bpanics? (?:if|when|on)\b"
)
# This one needs to see capitals: what is raised is a type.
_RAISES = pattern(r"\b(?:[Rr]aise|[Tt]hrow)s?\b.{0,20}[`\"'\s][A-Z]\w+")
_CASE_AND_ANSWER = pattern(r"^[^:.]{3,80}(?::|\s[–—-])\s+\S")
_ARROW = pattern(r"\S\s*(?:->|→|=>|⇒|⟶|➜)\s*\S")
_SENTENCE_END = pattern(r"(?<=[.!?])[)\"'”]*\s+(?=[A-Z`\"'(\[*_“])|;\s+")
_COMPLETE = pattern(r"[.!?;][)\"'”*`]*$")


def tells_an_edge_case(text: str, manner: Manner = "prose") -> bool:
    """Whether one sentence, item or comment says what happens in an unusual case."""
    lower = text.lower()
    words = _WORD.findall(lower)
    if len(words) < 2:
        return False
    known = set(words)
    states, outcomes = known & _STATE, known & _OUTCOME
    if _STATE_PHRASE.search(lower):
        states.add("")
    condition = not known.isdisjoint(_CONDITION) or words[0] in _OPENING[manner]
    # "Removing an unknown id ..." is a condition in other words.
    condition = condition or (len(words[0]) > 5 and words[0].endswith("ing"))
    if manner == "doubtful":
        return _is_told_beyond_doubt(lower, known, bool(states), condition)
    compared = bool(_COMPARISON.search(lower))
    # One word that is both ("closed", "failed") is one sign, not two.
    both = bool(states) and bool(outcomes) and len(states | outcomes) > 1
    weak = compared or not known.isdisjoint(_WEAK_STATE)
    if manner == "item":
        condition = condition or bool(_CASE_AND_ANSWER.match(text))
        # What is not done is an outcome too, if something else makes the case.
        answered = bool(outcomes - _STATUS) or "may" in known or (compared and not known.isdisjoint(_DENIAL))
        weak = weak or not known.isdisjoint(_STATUS)
        strong = both or (bool(states) and condition) or (weak and condition and answered)
        strong = strong or not known.isdisjoint(_NORM)
        return strong or _has_phrase(text, lower) or (bool(outcomes or states or weak) and _is_mapping(text))
    if not known.isdisjoint(_STORY):
        return _is_told_beyond_doubt(lower, known, bool(states), condition)
    if words[0] in _OPENS_CONDITION and (states or weak):
        return True
    if not known.isdisjoint(_ANECDOTE):
        return _is_told_beyond_doubt(lower, known, bool(states), condition)
    condition = condition or compared
    strong = both or (bool(states) and condition) or not known.isdisjoint(_NORM) or _has_phrase(text, lower)
    return strong or (weak and condition and bool(outcomes - _WEAK_STATE))


def _is_told_beyond_doubt(lower: str, known: set[str], state: bool, condition: bool) -> bool:
    if _HARD_PHRASE.search(lower):
        return True
    return state and condition and not known.isdisjoint(_SPEC_VOICE) and known.isdisjoint(_STORY)


def _has_phrase(text: str, lower: str) -> bool:
    return bool(_PHRASE.search(lower) or _RAISES.search(text))


def _is_mapping(text: str) -> bool:
    """`null input → default`, but not one path to another."""
    return bool(_ARROW.search(text)) and not names_a_file(text)


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
            if index < len(pieces) - 1 or (number + 1 < len(lines) and _COMPLETE.search(piece)):
                found.append((start, number, begun))
                begun = ""
    if begun:
        found.append((start, len(lines) - 1, begun))
    return found
