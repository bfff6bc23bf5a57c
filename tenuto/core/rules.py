"""What the words of several agents, or of one reviewer, amount to.

    over_members(rule, members)   the members of a cluster -> DONE, NEEDS_REVISION or ERROR
    worse(a, b)                   the aggregator's word and the rule: the worse of the two stands
    review(answer, ...)           a JSON review -> approved or not
    audit(answer)                 a JSON audit -> PASS, DESIGN_FLAW, IMPLEMENTATION_FLAW or ESCALATE

Rule 1: the rows of a rule are tried from the top; the first that holds decides. No row: DONE.

Rule 2: an aggregator can be stricter than the rule, never more lenient.

Rule 3: never fail open. A severity that the scale does not have counts as its worst. A word that
is no verdict, and a verdict that is missing, is ERROR. An answer that cannot be read approves
nothing.

Rule 4: a member that is not allowed to ask for a revision (`no_revision`) and does so has failed.
Its findings count all the same: whoever found something, it was found.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal, TypedDict

    from tenuto.core.pipeline_records import Verdict, Weight

    class Member(TypedDict):
        """One member of a cluster, after its retries."""

        name: str
        verdict: str | None  # None: no answer, or never run
        weight: Weight
        first: bool  # the gate agent that ran before the others
        severities: list[str]  # of its findings, as written

    class Outcome(TypedDict):
        verdict: Verdict
        reason: str  # empty for DONE
        because: list[str]  # the members that the reason is about

    AuditVerdict = Literal["PASS", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE"]

    class Audit(TypedDict):
        verdict: AuditVerdict
        reason: str

    class Review(TypedDict):
        approved: bool
        blocking: list[Any]  # the issues that block, as they were given
        reason: str

    Row = tuple[str, int | str, Verdict]


# ---- severities ------------------------------------------------------------------------------------

# Worst first.
SCALES: dict[str, tuple[str, ...]] = {
    "ct": ("Critical", "High", "Medium", "Low"),
    "v": ("Critical", "High", "Medium", "Low"),
    "r": ("Blocker", "Major", "Minor"),
    "review": ("HIGH", "MEDIUM", "LOW"),
    "audit": ("critical", "major", "minor"),
}


def severity_rank(word: str, scale: Sequence[str]) -> int:
    """0 is the worst, and every word that the scale does not have."""
    plain = word.strip().strip("`*_[]()").casefold()
    for rank, known in enumerate(scale):
        if plain == known.casefold():
            return rank
    return 0


def at_least(word: str, limit: str, scale: Sequence[str]) -> bool:
    """Whether a severity is as bad as the limit, or worse."""
    return severity_rank(word, scale) <= [known.casefold() for known in scale].index(limit.casefold())


def is_severity(word: str) -> bool:
    """Whether any scale has this word."""
    plain = word.strip().casefold()
    return any(plain == known.casefold() for scale in SCALES.values() for known in scale)


# ---- clusters --------------------------------------------------------------------------------------

# (what must hold, how much of it, the verdict). See _CONDITIONS for the left column.
RULES: dict[str, tuple[Row, ...]] = {
    "ct": (
        ("outputs below", 2, "ERROR"),
        ("blocking failed", 1, "ERROR"),
        ("any finding from", "High", "NEEDS_REVISION"),
    ),
    "v": (
        ("first failed", 1, "ERROR"),
        ("blocking failed", 1, "ERROR"),
        ("failed", 2, "ERROR"),
        ("failed beside revisions", 1, "ERROR"),
        ("revisions", 1, "NEEDS_REVISION"),
        ("failed", 1, "NEEDS_REVISION"),
    ),
    "r": (
        ("blocking failed", 1, "ERROR"),
        ("blocking finding from", "Blocker", "ERROR"),
        ("normal failed", 2, "ERROR"),
        ("any finding from", "Major", "NEEDS_REVISION"),
        ("revisions", 1, "NEEDS_REVISION"),
    ),
}
# Whose row in the expectations table calls NEEDS_REVISION "N/A": it counts as that row's ERROR.
NO_REVISION: dict[str, Callable[[Member], bool]] = {
    "ct": lambda member: True,
    "v": lambda member: member["first"],
    "r": lambda member: member["weight"] == "never-blocks",
}
# Whose failure counts at all.
_COUNTED = ("blocking", "normal")
_ORDER: dict[str, int] = {"DONE": 0, "NEEDS_REVISION": 1, "ERROR": 2}


def worse(*verdicts: str | None) -> Verdict:
    """The worst of them. What is missing or no verdict is ERROR; so is nothing at all."""
    ranks = [_ORDER.get(verdict or "", 2) for verdict in verdicts]
    names: tuple[Verdict, ...] = ("DONE", "NEEDS_REVISION", "ERROR")
    return names[max(ranks, default=2)]


def over_members(rule: str, members: Sequence[Member]) -> Outcome:
    for condition, measure, verdict in RULES[rule]:
        names = _CONDITIONS[condition](rule, members, measure)
        if names is not None:
            return {"verdict": verdict, "reason": _said(condition, measure, names), "because": names}
    return {"verdict": "DONE", "reason": "", "because": []}


def has_failed(rule: str, member: Member) -> bool:
    """No answer, ERROR, a word that is no verdict, or a revision that it may not ask for."""
    if member["verdict"] == "NEEDS_REVISION":
        return NO_REVISION[rule](member)
    return member["verdict"] != "DONE"


def _failed(rule: str, members: Sequence[Member], *weights: str) -> list[str]:
    return [
        member["name"]
        for member in members
        if has_failed(rule, member) and (not weights or member["weight"] in weights)
    ]


def _revisions(rule: str, members: Sequence[Member]) -> list[str]:
    return [m["name"] for m in members if m["verdict"] == "NEEDS_REVISION" and not has_failed(rule, m)]


def _with_finding(rule: str, members: Sequence[Member], limit: int | str, *weights: str) -> list[str]:
    scale = SCALES[rule]
    return [
        member["name"]
        for member in members
        if (not weights or member["weight"] in weights)
        and any(at_least(word, str(limit), scale) for word in member["severities"])
    ]


def _outputs_below(rule: str, members: Sequence[Member], limit: int | str) -> list[str] | None:
    failed = _failed(rule, members)
    return failed if len(members) - len(failed) < int(limit) else None


def _enough(names: list[str], limit: int | str) -> list[str] | None:
    return names if len(names) >= (limit if isinstance(limit, int) else 1) else None


def _beside(rule: str, members: Sequence[Member]) -> list[str]:
    failed, revisions = _failed(rule, members, *_COUNTED), _revisions(rule, members)
    return [*failed, *revisions] if failed and revisions else []


_CONDITIONS: dict[str, Callable[[str, Sequence[Member], int | str], list[str] | None]] = {
    "outputs below": _outputs_below,
    "failed": lambda rule, members, n: _enough(_failed(rule, members, *_COUNTED), n),
    "first failed": lambda rule, members, n: _enough(_failed(rule, [m for m in members if m["first"]]), n),
    "blocking failed": lambda rule, members, n: _enough(_failed(rule, members, "blocking"), n),
    "normal failed": lambda rule, members, n: _enough(_failed(rule, members, "normal"), n),
    "failed beside revisions": lambda rule, members, n: _enough(_beside(rule, members), n),
    "revisions": lambda rule, members, n: _enough(_revisions(rule, members), n),
    "any finding from": lambda rule, members, limit: _enough(_with_finding(rule, members, limit), 1),
    "blocking finding from": lambda rule, members, limit: _enough(_with_finding(rule, members, limit, "blocking"), 1),
}
_SENTENCES = {
    "outputs below": "fewer than {measure} members have an output",
    "failed": "{names} failed or did not answer",
    "first failed": "{names} failed, which the others wait for",
    "blocking failed": "{names} failed or did not answer, and must not",
    "normal failed": "{names} failed or did not answer",
    "failed beside revisions": "{names}: one failed while another asks for a revision",
    "revisions": "{names} asked for a revision",
    "any finding from": "{names} found something of severity {measure} or worse",
    "blocking finding from": "{names} found something of severity {measure} or worse",
}


def _said(condition: str, measure: int | str, names: Sequence[str]) -> str:
    return _SENTENCES[condition].format(measure=measure, names=", ".join(names) or "nobody")


# ---- reviews and audits ----------------------------------------------------------------------------

_FLAWS: tuple[tuple[str, AuditVerdict], ...] = (("design", "DESIGN_FLAW"), ("impl", "IMPLEMENTATION_FLAW"))
_AUDIT_VERDICTS: tuple[AuditVerdict, ...] = ("PASS", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE")


def review(answer: object, min_block_severity: str = "LOW") -> Review:
    """Approved only by the word `approved` with nothing in it that blocks."""
    if not isinstance(answer, dict):
        return {"approved": False, "blocking": [], "reason": "the review is not a JSON object"}
    issues = answer.get("issues") or []
    if not isinstance(issues, list):
        return {"approved": False, "blocking": [], "reason": "the review's issues are not a list"}
    scale = SCALES["review"]
    wanted = min_block_severity.strip().upper()
    limit = wanted if wanted in scale else scale[-1]
    blocking = [issue for issue in issues if at_least(_severity(issue), limit, scale)]
    status = str(answer.get("status") or "").strip().casefold()
    if status != "approved":
        return {"approved": False, "blocking": blocking, "reason": f"the review's status is '{status}'"}
    if blocking:
        said = f"approved, but {len(blocking)} of {len(issues)} issues are {limit} or worse"
        return {"approved": False, "blocking": blocking, "reason": said}
    return {"approved": True, "blocking": [], "reason": ""}


def audit(answer: Mapping[str, Any] | object) -> Audit:
    """The auditor's verdict, corrected by what it found: minor issues loop nothing, worse ones do not pass."""
    if not isinstance(answer, dict):
        return {"verdict": "ESCALATE", "reason": "the audit is not a JSON object"}
    said = str(answer.get("verdict") or "").strip().upper().replace("-", "_").replace(" ", "_")
    verdict = next((known for known in _AUDIT_VERDICTS if known == said), None)
    if verdict is None:
        return {"verdict": "ESCALATE", "reason": f"the audit's verdict is '{said}'"}
    issues = answer.get("issues") or []
    if not isinstance(issues, list):
        return {"verdict": "ESCALATE", "reason": "the audit's issues are not a list"}
    scale = SCALES["audit"]
    serious = [issue for issue in issues if at_least(_severity(issue), "major", scale)]
    if verdict == "PASS" and serious:
        return {"verdict": _flaw(answer), "reason": f"PASS, but {len(serious)} issues are major or worse"}
    if verdict in ("DESIGN_FLAW", "IMPLEMENTATION_FLAW") and issues and not serious:
        return {"verdict": "PASS", "reason": f"{verdict}, but with minor issues only"}
    return {"verdict": verdict, "reason": ""}


def _severity(issue: object) -> str:
    return str(issue.get("severity") or "") if isinstance(issue, dict) else ""


def _flaw(answer: Mapping[str, Any]) -> AuditVerdict:
    kind = str(answer.get("audit_type") or "").casefold()
    return next((flaw for word, flaw in _FLAWS if word in kind), "ESCALATE")
