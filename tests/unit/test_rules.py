"""The rules over members, reviews and audits. Test names are the rows of the tables."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.rules import RULES, audit, is_severity, over_members, review, severity_rank, worse

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Weight
    from tenuto.core.rules import Member


def member(name: str, verdict: str | None = "DONE", *severities: str) -> Member:
    weights: dict[str, Weight] = {"r-security": "blocking", "r-knowledge": "never-blocks"}
    return {
        "name": name,
        "verdict": verdict,
        "weight": weights.get(name, "normal"),
        "first": name == "v-build",
        "severities": list(severities),
    }


def ct(*verdicts: str | None, found: str = "") -> str:
    names = ("ct-security", "ct-scalability", "ct-maintainability", "ct-strategy")
    members = [member(name, verdict) for name, verdict in zip(names, verdicts, strict=True)]
    members[0]["severities"] = found.split()
    return over_members("ct", members)["verdict"]


def v(build: str | None, tests: str | None, tasks: str | None, feature: str | None) -> str:
    names = ("v-build", "v-tests", "v-tasks", "v-feature")
    members = [member(name, said) for name, said in zip(names, (build, tests, tasks, feature), strict=True)]
    return over_members("v", members)["verdict"]


def r(**said: str | None) -> str:
    names = ("quality", "security", "testing", "knowledge")
    return over_members("r", [member(f"r-{name}", said.get(name, "DONE")) for name in names])["verdict"]


# ---- CT --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ("", "DONE"),
        ("Low Medium Low", "DONE"),
        ("Low High", "NEEDS_REVISION"),
        ("Critical", "NEEDS_REVISION"),
        ("critical", "NEEDS_REVISION"),
        ("Catastrophic", "NEEDS_REVISION"),
        ("Blocker", "NEEDS_REVISION"),
    ],
)
def test_ct_any_critical_or_high_is_needs_revision(found: str, verdict: str) -> None:
    """Medium and Low do not send a design back; a word that the scale does not have does."""
    assert ct("DONE", "DONE", "DONE", "DONE", found=found) == verdict


def test_ct_fewer_than_two_outputs_is_error() -> None:
    """Two of four are enough, one is not."""
    assert ct("DONE", "DONE", "ERROR", None) == "DONE"
    assert ct("DONE", "ERROR", "ERROR", None) == "ERROR"
    assert ct(None, None, None, None) == "ERROR"


def test_ct_needs_revision_from_a_member_counts_as_its_error() -> None:
    """CT members answer DONE or ERROR only; what they found counts all the same."""
    assert ct("NEEDS_REVISION", "DONE", "DONE", "DONE") == "DONE"
    assert ct("NEEDS_REVISION", "NEEDS_REVISION", "NEEDS_REVISION", "DONE") == "ERROR"
    assert ct("NEEDS_REVISION", "DONE", "DONE", "DONE", found="High") == "NEEDS_REVISION"


# ---- V ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", ["ERROR", None, "NEEDS_REVISION"])
def test_v_build_error_is_error(build: str | None) -> None:
    """Nothing can be said about a thing that was not built; v-build has no NEEDS_REVISION."""
    assert v(build, None, None, None) == "ERROR"
    assert v(build, "DONE", "DONE", "DONE") == "ERROR"


def test_v_two_or_more_missing_or_error_is_error() -> None:
    """Missing counts like ERROR."""
    assert v("DONE", "ERROR", "ERROR", "DONE") == "ERROR"
    assert v("DONE", None, "ERROR", "DONE") == "ERROR"
    assert v("DONE", None, None, "DONE") == "ERROR"


def test_v_any_error_together_with_any_needs_revision_is_error() -> None:
    """One failed while another asks for work: nobody knows how much."""
    assert v("DONE", "ERROR", "NEEDS_REVISION", "DONE") == "ERROR"
    assert v("DONE", None, "NEEDS_REVISION", "DONE") == "ERROR"


def test_v_any_needs_revision_or_a_single_error_alone_is_needs_revision() -> None:
    """The two mild cases."""
    assert v("DONE", "NEEDS_REVISION", "DONE", "DONE") == "NEEDS_REVISION"
    assert v("DONE", "NEEDS_REVISION", "NEEDS_REVISION", "NEEDS_REVISION") == "NEEDS_REVISION"
    assert v("DONE", "ERROR", "DONE", "DONE") == "NEEDS_REVISION"
    assert v("DONE", "DONE", "DONE", None) == "NEEDS_REVISION"
    assert v("DONE", "DONE", "DONE", "DONE") == "DONE"


# ---- R ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("security", ["ERROR", None, "done", "gibberish"])
def test_r_security_missing_or_error_is_error(security: str | None) -> None:
    """Everybody else being content does not help."""
    assert r(security=security) == "ERROR"


@pytest.mark.parametrize("found", ["Blocker", "blocker", "Critical", "CRITICAL", "Severe", "Minor Blocker"])
def test_r_security_with_blocker_or_critical_is_error(found: str) -> None:
    """Also when r-security itself says DONE; an unknown word counts as the worst."""
    members = [
        member("r-quality"),
        member("r-security", "DONE", *found.split()),
        member("r-testing"),
        member("r-knowledge"),
    ]
    outcome = over_members("r", members)
    assert outcome["verdict"] == "ERROR"
    assert outcome["because"] == ["r-security"]


def test_r_two_or_more_of_the_others_missing_or_error_is_error() -> None:
    """r-quality and r-testing; one of them alone is not enough."""
    assert r(quality="ERROR", testing=None) == "ERROR"
    assert r(quality="ERROR") == "DONE"
    assert r(testing=None) == "DONE"


@pytest.mark.parametrize("knowledge", ["ERROR", None, "NEEDS_REVISION"])
def test_r_knowledge_never_counts(knowledge: str | None) -> None:
    """Its failure blocks nothing, alone or beside another's."""
    assert r(knowledge=knowledge) == "DONE"
    assert r(quality="ERROR", knowledge=knowledge) == "DONE"


@pytest.mark.parametrize("name", ["r-quality", "r-testing", "r-knowledge"])
@pytest.mark.parametrize("found", ["Blocker", "Major", "Unheard-of"])
def test_r_blocker_or_major_anywhere_is_needs_revision(name: str, found: str) -> None:
    """Whoever found it."""
    others = [other for other in ("r-quality", "r-security", "r-testing", "r-knowledge") if other != name]
    members = [member(name, "DONE", "Minor", found), *(member(other) for other in others)]
    assert over_members("r", members)["verdict"] == "NEEDS_REVISION"


def test_r_major_in_security_is_needs_revision_not_error() -> None:
    """Only Blocker and Critical stop the run there."""
    members = [member("r-quality"), member("r-security", "NEEDS_REVISION", "Major"), member("r-testing")]
    assert over_members("r", members)["verdict"] == "NEEDS_REVISION"


def test_r_without_findings_the_verdicts_decide() -> None:
    """No finding at all, but a reviewer asks for a revision."""
    assert r(quality="NEEDS_REVISION") == "NEEDS_REVISION"
    assert r() == "DONE"


# ---- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        (("DONE", "DONE"), "DONE"),
        (("DONE", "NEEDS_REVISION"), "NEEDS_REVISION"),
        (("ERROR", "NEEDS_REVISION"), "ERROR"),
        (("DONE", None), "ERROR"),
        (("DONE", "done"), "ERROR"),
        ((), "ERROR"),
    ],
)
def test_an_aggregator_can_be_stricter_never_more_lenient(verdicts: tuple[str | None, ...], worst: str) -> None:
    """The worse of its word and the rule stands; no word at all is ERROR."""
    assert worse(*verdicts) == worst
    assert worse(*reversed(verdicts)) == worst


ORDER = {"DONE": 0, "NEEDS_REVISION": 1, "ERROR": 2}
answers = st.sampled_from(["DONE", "NEEDS_REVISION", "ERROR", None])
words = st.lists(st.sampled_from(["Critical", "High", "Medium", "Low", "Blocker", "Major", "Minor", "odd"]), max_size=3)


@given(st.sampled_from(sorted(RULES)), st.lists(st.tuples(answers, words), min_size=4, max_size=4), st.integers(0, 3))
def test_more_findings_never_make_an_outcome_better(
    rule: str, said: list[tuple[str | None, list[str]]], at: int
) -> None:
    """Never fail open: adding the worst finding to any member, or losing its answer, cannot help."""
    names = ["r-security", "v-build", "a", "r-knowledge"]
    members = [member(name, verdict, *found) for name, (verdict, found) in zip(names, said, strict=True)]
    before = ORDER[over_members(rule, members)["verdict"]]
    members[at]["severities"].append("no such word")
    assert ORDER[over_members(rule, members)["verdict"]] >= before
    if members[at]["verdict"] == "DONE":
        members[at]["verdict"] = None
        assert ORDER[over_members(rule, members)["verdict"]] >= before


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_combination_of_answers_has_an_outcome_with_a_reason(rule: str) -> None:
    """All 4^4 of them; anything but DONE says why, and about whom."""
    for said in product(["DONE", "NEEDS_REVISION", "ERROR", None], repeat=4):
        names = ["r-security", "v-build", "a", "b"]
        outcome = over_members(rule, [member(name, verdict) for name, verdict in zip(names, said, strict=True)])
        assert (outcome["verdict"] == "DONE") == (not outcome["reason"])
        assert outcome["because"] or outcome["verdict"] == "DONE" or rule == "ct"


def test_a_blocking_member_blocks_in_every_rule() -> None:
    """A user's own cluster may give any member that weight."""
    for rule in RULES:
        members: list[Member] = [member(name) for name in ("a", "b", "c")]
        members[1]["verdict"], members[1]["weight"] = "ERROR", "blocking"
        assert over_members(rule, members)["verdict"] == "ERROR"
        members[1]["weight"] = "never-blocks"
        assert over_members(rule, members)["verdict"] == "DONE"


@pytest.mark.parametrize("word", ["", "  ", "Sehr hoch", "P1", "High!", "none"])
def test_an_unknown_severity_counts_as_the_worst(word: str) -> None:
    """On every scale, an empty word included."""
    assert severity_rank(word, ["Critical", "High"]) == 0


# ---- the staged review -----------------------------------------------------------------------------


def reviewed(status: object = "approved", *severities: object, limit: str = "LOW") -> bool:
    issues: list[Any] = [{"severity": severity, "issue": "x"} for severity in severities]
    return review({"status": status, "issues": issues}, limit)["approved"]


def test_review_approved_without_issues_is_approved() -> None:
    """The good case, in any case of letters, with or without the list."""
    assert reviewed("approved")
    assert reviewed("APPROVED")
    assert review({"status": "approved"})["approved"]


@pytest.mark.parametrize(
    ("limit", "severity", "approved"),
    [
        ("LOW", "LOW", False),
        ("LOW", "low", False),
        ("MEDIUM", "LOW", True),
        ("MEDIUM", "Medium", False),
        ("HIGH", "MEDIUM", True),
        ("HIGH", "HIGH", False),
        ("high", "medium", True),
        ("HIGH", "nitpick", False),
        ("HIGH", "", False),
        ("HIGH", None, False),
        ("nonsense", "LOW", False),
        ("Critical", "LOW", False),
    ],
)
def test_review_approved_with_blocking_issues_is_not_approved(limit: str, severity: object, approved: bool) -> None:
    """HIGH, MEDIUM, LOW in any case; unknown or missing is HIGH; an unknown limit lets nothing through."""
    assert reviewed("approved", severity, limit=limit) is approved


@pytest.mark.parametrize("status", ["blocked", "needs_revision", "NEEDS_REVISION", "", None, "ok", "approve", 1])
def test_review_any_other_status_blocks_even_with_no_issues(status: object) -> None:
    """Only the word itself approves."""
    assert not reviewed(status)


@pytest.mark.parametrize("answer", [None, [], "approved", 3, {}, {"status": "approved", "issues": "none"}])
def test_review_that_cannot_be_read_approves_nothing(answer: object) -> None:
    """And says why."""
    found = review(answer)
    assert not found["approved"]
    assert found["reason"]


def test_review_names_the_issues_that_block() -> None:
    """These go to the fix pass; an entry that is only text has no severity, so it is HIGH."""
    issues: list[Any] = [{"severity": "LOW"}, {"severity": "HIGH"}, "look at this"]
    assert review({"status": "approved", "issues": issues}, "MEDIUM")["blocking"] == issues[1:]


# ---- the audit -------------------------------------------------------------------------------------


def audited(verdict: object, *severities: str, kind: str = "design") -> str:
    issues = [{"severity": severity} for severity in severities]
    return audit({"audit_type": kind, "verdict": verdict, "iteration": 1, "issues": issues})["verdict"]


@pytest.mark.parametrize("word", ["PASS", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE"])
def test_audit_verdicts_are_what_they_say(word: str) -> None:
    """Without issues the word stands."""
    assert audited(word) == word
    assert audited(word.lower()) == word


def test_audit_minor_findings_never_trigger_a_loop() -> None:
    """A flaw whose issues are all minor passes; to escalate is not a loop and stays."""
    assert audited("DESIGN_FLAW", "minor", "Minor") == "PASS"
    assert audited("IMPLEMENTATION_FLAW", "minor") == "PASS"
    assert audited("DESIGN_FLAW", "minor", "major") == "DESIGN_FLAW"
    assert audited("ESCALATE", "minor") == "ESCALATE"


def test_audit_pass_with_a_serious_issue_does_not_pass() -> None:
    """It becomes the flaw of its kind; without a kind a person looks at it."""
    assert audited("PASS", "critical", kind="design-audit") == "DESIGN_FLAW"
    assert audited("PASS", "major", kind="impl-audit") == "IMPLEMENTATION_FLAW"
    assert audited("PASS", "horrible", kind="design") == "DESIGN_FLAW"
    assert audited("PASS", "major", kind="") == "ESCALATE"
    assert audited("PASS", "minor") == "PASS"


@pytest.mark.parametrize("answer", [None, "PASS", [], {}, {"verdict": "GREAT"}, {"verdict": "PASS", "issues": "none"}])
def test_audit_that_cannot_be_read_goes_to_a_person(answer: object) -> None:
    """ESCALATE, with the reason."""
    found = audit(answer)
    assert found["verdict"] == "ESCALATE"
    assert found["reason"]


def test_audit_without_issues_or_a_verdict() -> None:
    assert audit({"verdict": "PASS"}) == {"verdict": "PASS", "reason": ""}
    assert audit({"issues": []}) == {"verdict": "ESCALATE", "reason": "the audit's verdict is ''"}


def test_a_reason_names_those_it_is_about() -> None:
    members: Any = [
        {"name": name, "verdict": verdict, "weight": "normal", "first": False, "severities": []}
        for name, verdict in (("a", "ERROR"), ("b", None), ("c", "DONE"))
    ]
    assert over_members("v", members)["reason"] == "a, b failed or did not answer"


@pytest.mark.parametrize(
    ("word", "yes"),
    [("High", True), (" blocker ", True), ("minor", True), ("CRITICAL", True), ("odd", False), ("", False)],
)
def test_which_words_are_severities(word: str, yes: bool) -> None:
    assert is_severity(word) is yes
