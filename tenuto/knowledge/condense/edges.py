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

from itertools import pairwise

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

# Two words that tell an edge case wherever they stand together.
_PAIRS = {
    *((kind, noun) for kind in ("edge", "corner", "boundary", "degenerate", "special") for noun in ("case", "cases")),
    *(("must", verb) for verb in ("handle", "reject", "refuse")),
    *((verb, "with") for verb in ("fail", "fails")),
    *((verb, "back") for verb in ("fall", "falls")),
    *((verb, word) for verb in ("panic", "panics") for word in ("if", "when", "on")),
    *((word, done) for word in ("is", "are", "be") for done in "rejected refused ignored skipped clamped truncated".split()),
    *((word, verb) for word in ("not", "never") for verb in "throw throws raise raises panic panics crash crashes".split()),
    *(("never", verb) for verb in "block blocks fail fails return returns".split()),
    *(("of", noun) for noun in ("range", "bounds", "order", "memory", "space")),
    *((verb, noun) for verb in ("handle", "handles") for noun in "missing empty invalid null errors legacy partial".split()),
    ("no", "op"), ("race", "condition"), ("an", "error"), ("no", "effect"), ("nothing", "happens"),
    ("does", "nothing"), ("do", "nothing"), ("most", "once"), ("least", "once"),
}  # fmt: skip
_STATE_PAIRS = {
    *(("not", word) for word in "found allowed permitted supported valid known set given exist match fit parse end".split()),
    *(("not", word) for word in ("contain", "have", "in")),
    *(("too", word) for word in "long large big short small many few old deep late early".split()),
    ("time", "out"), ("times", "out"), ("already", "exists"), ("already", "exist"), ("no", "longer"), ("a", "number"),
}  # fmt: skip
_HARD_PAIRS = {("must", "not"), *(pair for pair in _PAIRS if pair[0] in {"must", "fail", "fails", "panic", "panics"})}
_COMPARED = set("longer larger greater more fewer less older smaller shorter bigger higher lower".split())
_BEYOND = {"above", "below", "over", "under"}
_RETURNED = set("null none nil undefined empty false zero error 0 1 nothing err".split())
_MEANINGLESS = set("null none nil empty zero blank undefined".split())
_RAISING = {"raise", "raises", "throw", "throws"}

# What is raised is a type, and types have capitals.
_RAISES = pattern(r"\b(?:[Rr]aise|[Tt]hrow)s?\b.{0,20}[`\"'\s][A-Z]\w+")
_CASE_AND_ANSWER = pattern(r"^[^:.]{3,80}(?::|\s[–—-])\s+\S")
_ARROWS = ("->", "→", "=>", "⇒", "⟶", "➜")
_SENTENCE_END = pattern(r"(?<=[.!?])[)\"'”]*\s+(?=[A-Z`\"'(\[*_“])|;\s+")
_ENDINGS = (".", "!", "?", ";")


def tells_an_edge_case(text: str, manner: Manner = "prose") -> bool:
    """Whether one sentence, item or comment says what happens in an unusual case."""
    words = _WORD.findall(text.lower())
    if len(words) < 2:
        return False
    known, pairs = set(words), set(pairwise(words))
    states, outcomes = known & _STATE, known & _OUTCOME
    if not pairs.isdisjoint(_STATE_PAIRS):
        states.add("")
    # "Removing an unknown id ..." is a condition in other words.
    condition = not known.isdisjoint(_CONDITION) or words[0] in _OPENING[manner]
    condition = condition or (len(words[0]) > 5 and words[0].endswith("ing"))
    story = not known.isdisjoint(_STORY)
    if manner == "doubtful":
        return _is_told_beyond_doubt(words, pairs, bool(states) and condition and not story)
    compared = _compares(words, text)
    # One word that is both ("closed", "failed") is one sign, not two.
    both = bool(states) and bool(outcomes) and len(states | outcomes) > 1
    weak = compared or not known.isdisjoint(_WEAK_STATE)
    phrase = not known.isdisjoint(_NORM) or _has_phrase(text, words, pairs)
    if manner == "item":
        condition = condition or bool(_CASE_AND_ANSWER.match(text))
        # What is not done is an outcome too, if something else makes the case.
        answered = bool(outcomes - _STATUS) or "may" in known or (compared and not known.isdisjoint(_DENIAL))
        weak = weak or not known.isdisjoint(_STATUS)
        strong = both or (bool(states) and condition) or (weak and condition and answered)
        return strong or phrase or (bool(outcomes or states or weak) and _is_mapping(text))
    if not story and words[0] in _OPENS_CONDITION and (states or weak):
        return True
    if story or not known.isdisjoint(_ANECDOTE):
        return _is_told_beyond_doubt(words, pairs, bool(states) and condition and not story)
    condition = condition or compared
    return both or phrase or (bool(states) and condition) or (weak and condition and bool(outcomes - _WEAK_STATE))


def _is_told_beyond_doubt(words: list[str], pairs: set[tuple[str, str]], stated: bool) -> bool:
    if not pairs.isdisjoint(_HARD_PAIRS) or _returns(words, _RETURNED - {"false", "zero", "error", "0"}):
        return True
    known = set(words)
    if not known.isdisjoint(_RAISING) and any(word.endswith(("error", "exception")) for word in words):
        return True
    return stated and not known.isdisjoint(_SPEC_VOICE)


def _has_phrase(text: str, words: list[str], pairs: set[tuple[str, str]]) -> bool:
    if not pairs.isdisjoint(_PAIRS) or "idempotent" in words or "noop" in words or _returns(words, _RETURNED):
        return True
    if "means" in words[1:]:
        before = words[words.index("means", 1) - 1]
        return before in _MEANINGLESS or before.isdigit()
    return not set(words).isdisjoint(_RAISING) and bool(_RAISES.search(text))


def _returns(words: list[str], what: set[str]) -> bool:
    for number, word in enumerate(words[:-1]):
        if word in {"return", "returns"}:
            told = words[number + 1] if words[number + 1] not in {"a", "an"} else words[min(number + 2, len(words) - 1)]
            if told in what or told in _STATUS or told.startswith("err") or told.endswith(("error", "exception")):
                return True
    return False


def _compares(words: list[str], text: str) -> bool:
    """`more than`, `fewer cells than`, `above 100`, `< 0`."""
    for number, word in enumerate(words):
        if word in _COMPARED and "than" in words[number + 1 : number + 4]:
            return True
        if word in _BEYOND and (words[number + 1 : number + 2] or [""])[0][:1].isdigit():
            return True
        if word in _BEYOND and (words[number + 1 : number + 2] or [""])[0] in {"the", "a", "an"}:
            return True
    return any(sign in text for sign in "<>≤≥") and any(
        sign in "<>≤≥" and text[place + 1 : place + 3].strip("= ")[:1].isdigit() for place, sign in enumerate(text)
    )


def _is_mapping(text: str) -> bool:
    """`null input → default`, but not one path to another."""
    return any(arrow in text for arrow in _ARROWS) and not names_a_file(text)


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
            if index < len(pieces) - 1 or (number + 1 < len(lines) and piece.rstrip(")\"'”*`").endswith(_ENDINGS)):
                found.append((start, number, begun))
                begun = ""
    if begun:
        found.append((start, len(lines) - 1, begun))
    return found
