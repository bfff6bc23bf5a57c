"""Reviews and coverage of a run that a person or a program leads along a schedule.

A review counts for the stay in its step, and for that stay only. Not approved, it leads to the next of these that is left:

    supplementary   the first failure, under `on-issues`: the same review once more, by a second reviewer
    fix             a fix and a new review, `maxFixAttempts` times
    restart         the stage begins again, `maxStageRestarts` times; counters and outputs of the stage are void
    blocked         a person has to look at it

Coverage below the threshold goes back to the step that writes tests, a bounded number of times that no restart gives back.

Never fail open: a review that cannot be read is not approved, a figure that is none is below every threshold, and a
limit that is no number is the default. What counts as approved is rules.py's.
"""

from __future__ import annotations

from tenuto.core.decisions.steps import entry_of, refuse_engine, restarted
from tenuto.core.rules import review as judge
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.decide import Case
    from tenuto.core.records import Json, Run

POLICY = {"minBlockSeverity": "LOW", "maxFixAttempts": 10, "maxStageRestarts": 3}
THRESHOLD = 90
COVERAGE_ROUNDS = 20
_OPEN = ("created", "running", "restarting")


def record_review(case: Case, c: Any) -> list[Any]:
    run, step = case.run, c["step"]
    entry = _reviewed_here(run, step, "review")
    said = judge(plain(c["review"]), str(policy(run, "minBlockSeverity")))
    before = run["reviews"].get(step, {})
    changes: Json = {
        "approved": said["approved"], "visit": run["steps"][step]["iteration"], "answer": c["review"],
        "reason": said["reason"], "next": "", "sha256": c.get("sha256", ""),
    }  # fmt: skip
    if said["approved"]:
        return [case.event("ReviewRecorded", step=step, changes=changes)]
    fixes, stage = before.get("fix_attempts", 0), entry.get("stage", "")
    restarts = sum(1 for restart in run["restarts"] if restart["stage"] == stage)
    after: list[Any] = []
    if run["settings"].get("supplementaryPolicy", "on-issues") == "on-issues" and not before.get("supplementary"):
        changes |= {"next": "supplementary", "supplementary": True}
    elif fixes < _limit(run, "maxFixAttempts"):
        changes |= {"next": "fix", "fix_attempts": fixes + 1}
    elif stage and restarts < _limit(run, "maxStageRestarts"):
        changes["next"] = "restart"
        after = restarted(case, stage, f"review of {step} failed: {said['reason']}")
    else:
        changes["next"] = "blocked"
        reason = f"Review of phase {step} failed after {fixes} fix attempts and {restarts} restarts: {said['reason']}"
        after = [case.event("Blocked", reason=reason, stage=stage or None, missing=[])]
    return [case.event("ReviewRecorded", step=step, changes=changes), *after]


def count_review(case: Case, c: Any) -> list[Any]:
    """Others count fixes and dispatches, too. A counter that could go back would lift its limit."""
    known = case.run["reviews"].get(c["step"], {})
    changes = {}
    for counter in ("fix_attempts", "dispatch_retries"):
        value, before = c.get(counter), known.get(counter, 0)
        if value is None or value == before:
            continue
        if type(value) is not int or value < before:
            message = f"{counter} of {c['step']} is {before}; it cannot become {value!r}"
            raise Refused("counter-back", message, "counters only grow", step=c["step"], counter=counter)
        changes[counter] = value
    return [case.event("ReviewRecorded", step=c["step"], changes=changes)] if changes else []


def record_coverage(case: Case, c: Any) -> list[Any]:
    run, step, percent = case.run, c["step"], c.get("percent")
    entry = _reviewed_here(run, step, "coverage")
    threshold = run["settings"].get("coverageThreshold")
    wanted = threshold if _is_number(threshold) else THRESHOLD
    changes: Json = {"coverage": percent}
    if _is_number(percent) and percent >= wanted:
        return [case.event("ReviewRecorded", step=step, changes=changes)]
    changes["approved"] = False
    back, most = entry["coverage"]["back_to"], entry["coverage"].get("at_most", COVERAGE_ROUNDS)
    counter = f"{step}.coverage"
    used = run["routes"].get(counter, 0)
    told = f"coverage {percent}% is below {wanted}%" if _is_number(percent) else "no coverage figure"
    if used >= most:
        reason = f"{told[0].upper()}{told[1:]} after {used} rounds"
        blocked = case.event("Blocked", reason=reason, stage=entry.get("stage"), missing=[])
        return [case.event("ReviewRecorded", step=step, changes=changes), blocked]
    again = run["steps"].get(back, {"iteration": 0})["iteration"] + 1
    return [
        case.event("ReviewRecorded", step=step, changes=changes),
        case.event("RouteTaken", route=counter, queue=[], resets=[], carry={}, reason=told),
        case.event("StepEnded", step=step, item=None, status="failed", verdict="LOW_COVERAGE", summary=told, because=[]),
        case.event("StepStarted", step=back, item=None, iteration=again, hop={}),
    ]  # fmt: skip


def policy(run: Run, name: str) -> Any:
    own = run["settings"].get("reviewPolicy")
    return own[name] if isinstance(own, dict) and name in own else POLICY[name]


def plain(review: Any) -> Any:
    """Reviewers also answer with the bare word, or with `approved: true`."""
    if isinstance(review, str):
        return {"status": review}
    if isinstance(review, dict) and "status" not in review and isinstance(review.get("approved"), bool):
        return {**review, "status": "approved" if review["approved"] else "needs_revision"}
    return review


def _limit(run: Run, name: str) -> int:
    value = policy(run, name)
    return value if type(value) is int and value >= 0 else int(POLICY[name])  # type: ignore[call-overload]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e9 < value < 1e9  # NaN is none


def _reviewed_here(run: Run, step: str, what: str) -> Any:
    refuse_engine(run)
    entry = entry_of(run, step)
    if entry is None or (entry.get("type") != "review" if what == "review" else "coverage" not in entry):
        raise Refused(f"no-{what}", f"{step!r} of run {run['id']} takes no {what}", "", step=step)
    gate_only = run["status"] == "blocked" and run["blocked"] is not None and run["blocked"]["missing"]
    if run["status"] not in _OPEN and not gate_only:
        message = f"cannot record a {what} of {step!r} in run {run['id']}: it is {run['status']}"
        raise Refused("not-running", message, f"tenuto status {run['id']}", status=run["status"], step=step)
    if step != run["position"]:
        message = f"run {run['id']} is in {run['position']!r}; a {what} of {step!r} is not asked for now"
        raise Refused("wrong-step", message, f"advance to {step} first", step=step, position=run["position"])
    return entry


DECIDERS = {"RecordReview": record_review, "CountReview": count_review, "RecordCoverage": record_coverage}
