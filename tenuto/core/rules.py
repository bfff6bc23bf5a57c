"""What agents' words amount to: members of a cluster, reviews, audits, claims about items, flags of a ticket.

    over_members(rule, members)        the members of a cluster -> DONE, NEEDS_REVISION or ERROR
    worse(a, b)                        the aggregator's word and the rule: the worse of the two stands
    review(answer, ...)                a JSON review -> approved or not
    coverage(answer)                   the coverage figure in a JSON review, whatever its form
    audit(answer)                      a JSON audit -> PASS, DESIGN_FLAW, IMPLEMENTATION_FLAW or ESCALATE
    after_audit(verdict, taken)        what an audit leads to: on, once more, or to a person
    answers_for_item(seat)             is there nothing else by which the work of this seat could be known?
    unproven(run, attempt, seat, ...)  why a DONE for an item does not count; what is said where it does
    current_step, next_actions, flags  what follows in a run that a person leads from phase to phase

Rule 1: the rows of a rule are tried from the top; the first that holds decides. No row: DONE.

Rule 2: an aggregator can be stricter than the rule, never more lenient.

Rule 3: never fail open. A severity that the scale does not have counts as its worst. A word that is no verdict, and a
verdict that is missing, is ERROR. An answer that cannot be read approves nothing.

Rule 4: a member that is not allowed to ask for a revision (`no_revision`) and does so has failed. Its findings count
all the same.

Rule 5: an item names the files that it is about. They are what its agent delivers, unless that agent has outputs of
its own: then it is held to those. A DONE for an item whose files nobody changed is judged by these rows:

    it changed something                                          counts
    the files are not as they were when the run began             counts, and is said: somebody else did the work
    an earlier DONE for the item came with changes                counts, and is said: nothing may be left to do
    none of the files exists                                      does not count
    it says `nothing to do`                                       counts, and is said: verification holds it to that
    nobody knows how the files were when the run began            counts, and is said
    otherwise                                                     does not count

Rule 6: a flaw that an audit finds sends the work back at most twice. Then, and whenever an audit cannot be read or asks
for it, the run pauses and a person decides. Minor findings send nothing back.

Rule 7: the flags of a ticket follow from events. A claim that the events do not bear out is refused
(decisions/records.py). Where no event speaks of one, what an adopted file said of it stands; any other flag is the
caller's.

    requirements_clear, codebase_analyzed   research completed
    implementation_planned                  planning completed
    step_N_complete                         a commit of step N; false once the step is known
    tests_passing, code_reviewed            what the last validation found
    mr_ready                                integration approved

Any agent name is accepted. What kind of work it does is told by its name, else by its task, else by its phase.
"""

from __future__ import annotations

from tenuto.core.pipeline.values import ITEM_FILES
from tenuto.core.status import SEVERITY, VERDICTS, WELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from tenuto.core.records.run import Attempt, Decision, Json, Run


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, TypedDict

    from tenuto.core.pipeline.records import Verdict, Weight

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

    class Coverage(TypedDict):
        """What a review says about coverage."""

        percent: float | None  # None: there is no figure, or none that can be read
        met: bool  # False: the reviewer says that it is not enough

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


def worse(*verdicts: str | None) -> Verdict:
    """The worst of them. What is missing or no verdict is ERROR; so is nothing at all."""
    return VERDICTS[max((SEVERITY.get(verdict or "", 2) for verdict in verdicts), default=2)]


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
AUDIT_VERDICTS: tuple[AuditVerdict, ...] = ("PASS", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE")


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


# What stands beside the word, or inside its object, where the figure of a whole is meant: the first that is there.
_FIGURES = (
    "current", "final", "percent", "percentage", "pct", "percentcovered", "coveredpercent", "value", "actual", "after",
)  # fmt: skip
_WHOLES = ("total", "totals", "overall")
_PARTS = ("lines", "line", "statements", "test", "tests", "code")
# (what is covered, of how many): lcov, cobertura, coverage.py, istanbul
_COUNTS = (
    ("covered", "total"), ("lh", "lf"), ("linescovered", "linesvalid"), ("linescovered", "linestotal"),
    ("coveredlines", "numstatements"), ("coveredlines", "totallines"), ("hit", "found"),
)  # fmt: skip
_DEPTH = 4


def needs_coverage(answer: object) -> bool:
    """A review whose only complaint is that too little is covered."""
    status = str(answer.get("status") or "") if isinstance(answer, dict) else ""
    return "".join(c for c in status.casefold() if c.isalpha()) == "needscoverage"


def coverage(answer: object) -> Coverage | None:
    """What a review says about coverage; None where it says nothing about it. What cannot be read is no figure."""
    level = [answer]
    for _ in range(_DEPTH):
        objects = [value for value in level if isinstance(value, dict)]
        figures = [value for review in objects for name, value in review.items() if _is_coverage(name)]
        met = [value for review in objects for name, value in review.items() if _letters(name) == "coveragemet"]
        if figures or met:
            percents = [_percent(value) for value in figures]
            known = [percent for percent in percents if percent is not None]
            inside = [value["met"] for value in figures if isinstance(value, dict) and "met" in value]
            whole = len(known) == len(percents) and known
            return {"percent": min(known) if whole else None, "met": all(_is_true(word) for word in (*met, *inside))}
        level = [value for review in objects for value in review.values()]
    return None


def _is_coverage(name: str) -> bool:
    """`coverage`, `coveragePercent`, `total_coverage`, `coverageFinal`; not `coverageThreshold`, which is no result."""
    letters = _letters(name)
    before, word, after = letters.partition("coverage")
    return bool(word) and all(part in ("", *_FIGURES, *_WHOLES, *_PARTS) for part in (before, after))


def _letters(name: object) -> str:
    return "".join(c for c in str(name).casefold() if c.isalnum())


def _is_true(word: object) -> bool:
    return word is True or (isinstance(word, str) and word.strip().casefold() == "true")


def _percent(value: object, depth: int = _DEPTH) -> float | None:
    """A number, a text that tells one, or the figure of the whole inside an object."""
    if isinstance(value, dict):
        inside = {_letters(name): inner for name, inner in value.items()}
        counted = _counted(inside)
        if counted is not None and not any(name in inside for name in _FIGURES):
            return counted if counted <= 100 else None
        name = next((name for name in (*_FIGURES, *_WHOLES, "coverage", *_PARTS) if name in inside), None)
        return _percent(inside[name], depth - 1) if name is not None and depth else None
    if isinstance(value, str):
        value = _told(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= 100 else None  # not a number at all, or one that is no share of a whole


def _counted(inside: Json) -> float | None:
    """So many of so many, and cobertura's rate, which is 1 for everything."""
    rate = inside.get("linerate")
    if isinstance(rate, (int, float)) and 0 <= rate <= 1:
        return 100.0 * rate
    for part, whole in _COUNTS:
        covered, total = inside.get(part), inside.get(whole)
        if type(covered) is int and type(total) is int and covered >= 0 and total > 0:
            return 100.0 * covered / total
    return None


def _told(text: str) -> float | None:
    """`87.3%`, `87.3`, `coverage: 87.3% of statements`; of a table, its line for the total. Two figures are none."""
    total = "\n".join(line for line in text.splitlines() if line.strip().casefold().startswith("total"))
    for told in (text if "%" in text else f"{text}%", total):
        words = told.replace("%", " % ").split()
        figures = {before.lstrip("(") for before, word in zip(["", *words], words, strict=False) if word == "%"}
        if len(figures) == 1:
            return _number(figures.pop())
    return None


def audit(answer: object) -> Audit:
    """The auditor's verdict, corrected by what it found: minor issues loop nothing, worse ones do not pass."""
    if not isinstance(answer, dict):
        return {"verdict": "ESCALATE", "reason": "the audit is not a JSON object"}
    said = str(answer.get("verdict") or "").strip().upper().replace("-", "_").replace(" ", "_")
    verdict = next((known for known in AUDIT_VERDICTS if known == said), None)
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


def _flaw(answer: Json) -> AuditVerdict:
    kind = str(answer.get("audit_type") or "").casefold()
    return next((flaw for word, flaw in _FLAWS if word in kind), "ESCALATE")


# ---- claims ------------------------------------------------------------


if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.core.pipeline.records import Seat
    from tenuto.core.records.run import Run

    class Seen(TypedDict):
        said: str  # the words after DONE:
        changed: bool  # did it certainly change something besides documents?
        there: bool  # is one of the item's files there now?
        since_start: bool | None  # does one of them differ from what it was when the run began? None: nobody knows


NOTHING_TO_DO = "nothing to do"


def answers_for_item(seat: Seat) -> bool:
    return ITEM_FILES in seat["touches"] and not seat["out"]


def unproven(run: Run, attempt: str, seat: Seat, seen: Seen) -> dict[str, str]:
    item = run["attempts"][attempt]["item"]
    files = ", ".join(run["items"][item]["files"]) if item in run["items"] else ""
    if not item or not files or seen["changed"]:
        return {"problem": "", "note": ""}
    note = f"{attempt} says DONE and changed none of its item's files: {files}"
    if not answers_for_item(seat) or seen["since_start"] or _worked_on(run, item):
        return {"problem": "", "note": note}
    if not seen["there"]:
        return {"problem": f"none of its item's files exists: {files}", "note": ""}
    if seen["said"].strip().casefold().startswith(NOTHING_TO_DO):
        return {"problem": "", "note": f"{note}; it says: {seen['said'].strip()}"}
    if seen["since_start"] is None:
        return {"problem": "", "note": note}
    hint = f"where the work was there before, the word is `DONE: {NOTHING_TO_DO}: ...`"
    return {"problem": f"none of its item's files changed since the run began: {files} ({hint})", "note": ""}


def _worked_on(run: Run, item: str) -> bool:
    """What an attempt that failed has changed may lie on a branch of its own, or where it must not."""
    earlier = [one for one in run["attempts"].values() if one["item"] == item and one["verdict"] == "DONE"]
    return any(one["receipt"].get("touched") for one in earlier)


# ---- feedback ------------------------------------------------------------


MOST_LOOPS = 2
_AUDIT_FLAWS = ("DESIGN_FLAW", "IMPLEMENTATION_FLAW")


def after_audit(verdict: str, taken: int) -> Literal["on", "again", "pause"]:
    """`taken`: how often the work went back for this kind of flaw so far."""
    if verdict == "PASS":
        return "on"
    return "again" if verdict in _AUDIT_FLAWS and taken < MOST_LOOPS else "pause"


# ---- tickets ------------------------------------------------------------


PIPELINE = "ticket"
PHASES = ("understanding", "planning", "execution", "integration")
COMPLETE = "complete"
_KINDS = (
    ("commit", ("commit",)),
    ("validation", ("validat", "verif", "review", "test", "lint", "audit", "check")),
    ("research", ("research", "analy", "explor", "investigat", "understand")),
    ("planning", ("plan", "design", "architect")),
    ("execution", ("execut", "implement", "develop", "coder")),
)
_KIND_OF_PHASE = {
    "understanding": "research",
    "planning": "planning",
    "execution": "execution",
    "integration": "integration",
}
_GOOD = (
    "pass",
    "passed",
    "passing",
    "ok",
    "success",
    "successful",
    "succeeded",
    "true",
    "yes",
    "clean",
    "approved",
    "done",
    "green",
)
_IN_FLIGHT = ("dispatched", "running")


def phase_of(run: Run) -> str:
    """Where the run is. `complete` is behind the last phase."""
    if run["status"] in WELL:
        return COMPLETE
    entry = next((entry for entry in run["schedule"] if entry["step"] == run["position"]), None)
    for word in (run["position"], entry.get("stage") if entry else None, (run["position"] or "").rpartition("-")[0]):
        if word in PHASES:
            return str(word)
    return PHASES[0] if run["position"] is None else "execution"


def current_step(run: Run) -> str:
    last = next(reversed(run["attempts"].values()), None)
    return (last["task"] or last["role"]) if last else ""


# ---- what is to be done ----------------------------------------------------------------------------


def next_actions(run: Run) -> list[str]:
    match run["status"]:
        case "completed" | "failed" | "cancelled" | "graduated" | "poc-complete":
            return []
        case "waiting_gate":
            return ["get_user_approval"]
        case "paused" | "blocked":
            return ["retry", "skip", "abort"]
    waiting = [f"wait_for_{attempt['role']}" for attempt in run["attempts"].values() if attempt["status"] in _IN_FLIGHT]
    if waiting:
        return list(dict.fromkeys(waiting))
    here = phase_of(run)
    last = next((a for a in reversed(run["attempts"].values()) if _phase(run, a) == here), None)
    word = next((d for d in reversed(run["decisions"]) if here in (d["step"], d["name"])), None)
    if word is not None and (not word["approved"] or word.get("stays")) and _is_latest(run, word, last):
        return ["proceed_to_next_step" if word["approved"] else "address_feedback"]
    if last is None:
        return ["proceed_to_next_step"]
    if last["status"] != "completed":
        return ["retry", "skip", "abort"]
    return ["get_user_approval", "proceed_to_next_step"] if here == "execution" else ["get_user_approval"]


def _is_latest(run: Run, word: Decision, last: Attempt | None) -> bool:
    """Nothing was delegated since that word. A clock that was set back does not matter where the word knows its
    place."""
    if last is None:
        return True
    if "attempts" in word:
        return not any(attempt is last for attempt in list(run["attempts"].values())[word["attempts"] :])
    return (last["ended_at"] or "") <= word["at"]


# ---- what may be called true -----------------------------------------------------------------------


def flags(run: Run) -> Json:
    """Every flag, in the order its readers know: those that follow, then the caller's."""
    following = _following(run)
    shown = {name: run["flags"].get(name) is True if value is None else value for name, value in following.items()}
    return shown | {name: value for name, value in run["flags"].items() if name not in shown}


def follows(name: str) -> bool:
    """Whether a flag of this name follows from events."""
    return name in _FOLLOWING or step_number(name.removesuffix("_complete"), whole=True) is not None


def open_steps(run: Run) -> list[int]:
    """The steps of a ticket's execution that are known and have no commit yet."""
    if run["pipeline"]["name"] != "ticket" or run["position"] != "execution":
        return []
    return [number for number, done in _steps(run, list(run["attempts"].values())).items() if not done]


def step_number(text: object, whole: bool = False, leading: bool = False) -> int | None:
    """implement_step_3, step_3_auth_middleware -> 3. `whole`: nothing may stand around `step_3`. `leading`: of what can
    only be a step, so 3_auth_middleware is one, too."""
    words = str(text).lower().replace("-", "_").replace(" ", "_").split("_")
    if leading and words[0].isdecimal():
        return int(words[0])
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "step" and following.isdecimal() and (not whole or len(words) == 2):
            return int(following)
        if word.startswith("step") and word[4:].isdecimal() and not whole:
            return int(word[4:])
    return None


_FOLLOWING = (
    "requirements_clear",
    "codebase_analyzed",
    "implementation_planned",
    "tests_passing",
    "code_reviewed",
    "mr_ready",
)


def _following(run: Run) -> dict[str, bool | None]:
    attempts = list(run["attempts"].values())
    researched, planned = _done(run, attempts, "research"), _done(run, attempts, "planning")
    validation = next((a for a in reversed(attempts) if _kind(run, a) == "validation" and a["ended_at"]), None)
    words = [d for d in run["decisions"] if "integration" in (d["step"], d["name"])]
    approved = any(word["approved"] and not word.get("stays") for word in words)
    return {
        "requirements_clear": researched,
        "codebase_analyzed": researched,
        "implementation_planned": planned,
        **{f"step_{number}_complete": done for number, done in _steps(run, attempts).items()},
        "tests_passing": _found(validation, ("test",)),
        "code_reviewed": _found(validation, ("review", "quality")),
        "mr_ready": True if approved else None,
    }


def _done(run: Run, attempts: list[Attempt], kind: str) -> bool | None:
    return True if any(a["status"] == "completed" and _kind(run, a) == kind for a in attempts) else None


def _steps(run: Run, attempts: list[Attempt]) -> dict[int, bool | None]:
    """Known from what was delegated, committed or told; true by its commit alone."""
    known = [step_number(name.removesuffix("_complete"), whole=True) for name in run["flags"]]
    for attempt in attempts:
        told = [attempt["extra"][field] for field in ("step_number", "commit_checkpoint") if field in attempt["extra"]]
        known += [step_number(one, leading=True) for one in told] if told else [step_number(attempt["task"])]
    committed = [step_number(commit["step"], leading=True) for commit in run["commits"]]
    numbers = sorted({number for number in [*known, *committed] if number is not None})
    return {number: True if number in committed else None for number in numbers}


def _found(validation: Attempt | None, words: tuple[str, ...]) -> bool | None:
    """What the last validation says of this. Not completed, or with blocking issues: nothing is good."""
    if validation is None:
        return None
    extra = validation["extra"]
    if (
        validation["status"] != "completed"
        or validation["verdict"] not in (None, "DONE")
        or extra.get("blocking_issues")
    ):
        return False
    results = extra.get("validation_results")
    told = {str(name).lower(): value for name, value in results.items()} if isinstance(results, dict) else {}
    if any(_counts_faults(name) and _number(value) for name, value in told.items()):
        return False
    # `tests: 12` says nothing good; `test_count: 12` is a measure of something else.
    about = {name: value for name, value in told.items() if any(word in name for word in words)}
    judged = [value for name, value in about.items() if _number(value) is None or name.rstrip("s") in words]
    if judged:
        return all(map(_is_good, judged))
    whole = results if isinstance(results, (bool, str)) else extra.get("integration_ready", True)
    return _is_good(extra.get("validation_passed", whole))


def _counts_faults(name: str) -> bool:
    return any(word in name for word in ("fail", "error", "critical", "block"))


def _number(value: object) -> float | None:
    """12, `12`, `85%`: a measure, which says by itself neither good nor bad."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value.strip().removesuffix("%") if isinstance(value, str) else value)
    except ValueError:
        return None


def _is_good(value: object) -> bool:
    """true, `passed`, {"passed": 12, "failed": 0}. What cannot be understood is not good."""
    if isinstance(value, dict):
        lowered = {str(name).lower(): entry for name, entry in value.items()}
        if any(_counts_faults(name) and entry not in ("", "0") and entry for name, entry in lowered.items()):
            return False
        told = next(
            (
                lowered[name]
                for name in ("status", "result", "passed", "passing", "success", "total")
                if name in lowered
            ),
            None,
        )
        return _is_good(told) if not isinstance(told, int) else told > 0
    if isinstance(value, str):
        return value.strip().lower() in _GOOD
    return value is True


def _phase(run: Run, attempt: Attempt) -> str:
    """The phase that an attempt ran in: its step, or the stage that the step belongs to."""
    entry = next((entry for entry in run["schedule"] if entry["step"] == attempt["step"]), None)
    stage = entry.get("stage") if entry else None
    return str(stage) if stage in PHASES else attempt["step"]


def _kind(run: Run, attempt: Attempt) -> str:
    for text in (attempt["role"], attempt["task"]):
        for kind, words in _KINDS:
            if isinstance(text, str) and any(word in text.lower() for word in words):  # others may write anything there
                return kind
    return _KIND_OF_PHASE.get(_phase(run, attempt), "")
