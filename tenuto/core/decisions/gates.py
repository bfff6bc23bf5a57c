"""Gates and reviews: where the judgement of a person or a reviewer decides how a run goes on.

Gates are stops that only a person's decision opens. A decision is for exactly what was shown: when an artifact's hash
is another by then, the decision is void and the gate stays; an engine shows it anew, as another one. A gate is decided
once. Reject ends the run. Revise opens the gate for work on the feedback, never for what lies behind it. Where the gate
has a form, an approval brings its answers, all of them (pipeline/forms.py).

Reviews and coverage belong to runs that a person or a program leads along a schedule. A review counts for the stay in
its step, and for that stay only. Not approved, it leads to the next of these that is left:

    supplementary   the first failure, under `on-issues`: the same review once more, by a second reviewer
    fix             a fix and a new review, `maxFixAttempts` times
    restart         the stage begins again, `maxStageRestarts` times; counters and outputs of the stage are void
    blocked         a person has to look at it

Coverage below the threshold goes back to the step that writes tests, a bounded number of times that no restart gives
back. The figure stands in the review, or is recorded by itself. A review that asks for coverage (`needs_coverage`) and
has no blocking issue goes back, too; a review that says nothing of coverage is judged without it.

Never fail open: a review that cannot be read is not approved, a figure that is none is below every threshold, and a
limit that is no number is the default. What counts as approved is rules.py's.
"""

from __future__ import annotations

from tenuto.core.decisions import new_event
from tenuto.core.decisions.steps import entry_of, go_on, refuse_engine, restarted
from tenuto.core.fold import running_visits
from tenuto.core.rules import coverage, needs_coverage, open_steps
from tenuto.core.rules import review as judge
from tenuto.core.status import ACTIVE, UNDER_WAY
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict, TypeGuard

    from tenuto.core.decide import Case
    from tenuto.core.records import commands
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Gate, Json, ParamValue, Run, ScheduledStep


OPTIONS = ["approve", "reject", "revise"]


def open_gate(case: Case, c: commands.OpenGate) -> list[Event]:
    run = case.run
    own = run["current_visit"]["step"] if run["current_visit"] else None  # a gate of the pipeline is a step itself
    visits = [visit for visit in running_visits(run) if visit["step"] != own]
    if visits:
        names = [visit["step"] for visit in visits]
        raise Refused(
            "steps-running",
            f"cannot open a gate in run {run['id']}: {', '.join(names)} not ended",
            "end them first",
            steps=names,
        )
    gate = run["gate"]
    if gate is not None and own is not None and gate["name"] == c["name"]:
        return (
            []
            if gate["shown"] == c.get("shown", [])
            else [_opened(case, c, f"{gate['id'].partition('.')[0]}.{run['version'] + 1}")]
        )
    if run["status"] not in ACTIVE:
        raise Refused(
            "not-running",
            f"cannot open a gate in run {run['id']}: it is {run['status']}",
            f"tenuto status {run['id']}",
            status=run["status"],
        )
    return [_opened(case, c, f"gate-{len(run['decisions']) + 1}")]


def _opened(case: Case, c: commands.OpenGate, name: str) -> Event:
    return new_event.gate_opened(
        case.command,
        gate=name,
        name=c["name"],
        prompt=c["prompt"],
        options=c.get("options", OPTIONS),
        shown=c.get("shown", []),
        completes=c.get("completes", False),
        fields=c.get("fields") or None,
    )


def decide_gate(case: Case, c: commands.DecideGate) -> list[Event]:
    run, decision = case.run, c["decision"]
    gate = run["gate"]
    if gate is None:
        raise Refused(
            "no-gate",
            f"run {run['id']} waits for no gate; it is {run['status']}",
            f"tenuto status {run['id']}",
            status=run["status"],
        )
    if decision not in gate["options"]:
        allowed = ", ".join(gate["options"])
        raise Refused(
            "bad-decision",
            f"gate {gate['name']!r} takes {allowed}, not {decision!r}",
            "use one of those",
            decision=decision,
        )
    seen = c.get("gate", gate["id"])
    if seen != gate["id"]:
        message = f"the decision is for {seen}, and run {run['id']} waits for {gate['id']} ({gate['name']}) now"
        raise Refused("gate-stale", message, f"look again: tenuto status {run['id']}", gate=gate["id"])
    _refuse_passed_on(case, c)
    _refuse_weak(case, c)
    if decision == "approve":
        _refuse_stale(case, c)
    answers = _answers(run, gate, c)
    decided = new_event.gate_decided(
        case.command,
        gate=gate["id"],
        name=gate["name"],
        step=run["position"],
        decision=decision,
        approved=decision == "approve",
        feedback=c.get("feedback", ""),
        who=c["who"],
        proof=c.get("proof", {}),
        answers=answers,
    )
    if decision == "reject":
        error = f"gate {gate['name']!r} was rejected" + (f": {c['feedback']}" if c.get("feedback") else "")
        return [decided, new_event.failed(case.command, step=run["position"], error=error, context=None)]
    if decision == "approve" and gate["completes"] and gate["resting"] != "poc-complete":
        return [decided, new_event.finished(case.command, outcome="completed")]
    return [decided]


def _answers(run: Run, gate: Gate, c: commands.DecideGate) -> dict[str, ParamValue] | None:
    """Of an approval, whole and checked; None where the gate has no form. What nobody asked for is refused, not
    dropped: who sends it believes that it counts."""
    given, fields = c.get("answers") or {}, gate.get("fields", {})
    if given and not fields:
        message = f"gate {gate['name']!r} asks for no fields, and {', '.join(given)} would count for nothing"
        raise Refused("no-form", message, "decide without answers", fields=list(given))
    if given and c["decision"] != "approve":
        message = f"answers belong to an approval; {c['decision']} takes feedback"
        raise Refused("answers-unused", message, f"tenuto {c['decision']} {run['id']} --feedback '...'")
    if not fields or c["decision"] != "approve":
        return None
    from tenuto.core.pipeline.forms import complete

    return complete(gate["name"], fields, given, run["id"])


def checkpoint(case: Case, c: commands.Checkpoint) -> list[Event]:
    """A person's word on the step a run with an order is in. Approval leads to the next step, unless it stays."""
    run, step = case.run, c["step"]
    refuse_engine(run)
    if run["status"] not in (*UNDER_WAY, "blocked"):
        raise Refused(
            "not-running", f"run {run['id']} has no step to approve: it is {run['status']}", status=run["status"]
        )
    if step != run["position"]:
        raise Refused(
            "wrong-checkpoint",
            f"run {run['id']} is in {run['position']!r}; there is no {step!r} to approve now",
            f"decide on {run['position']}",
            step=step,
            position=run["position"],
        )
    stays = c["approved"] and _stays(run, c.get("stays"))
    decided = new_event.gate_decided(
        case.command,
        gate=f"checkpoint-{len(run['decisions']) + 1}",
        name=step,
        step=step,
        decision="approve" if c["approved"] else "revise",
        approved=c["approved"],
        feedback=c.get("feedback", ""),
        who=c["who"],
        proof=c.get("proof", {}),
        stays=stays,
    )
    if stays or not c["approved"]:
        return [decided]
    return [decided, *go_on(case, None, c.get("facts", {}), approval=True)]


def _stays(run: Run, said: bool | None) -> bool:
    """Nobody says whether an approval leads on: it does not while steps of the work under way are open."""
    if said is not None:
        return said
    return bool(open_steps(run))


def _refuse_passed_on(case: Case, c: commands.DecideGate) -> None:
    """A word that a model passes on counts where a person switched that on. The switch stands in the journal:
    settings lie where a model writes."""
    run, by = case.run, c.get("proof", {}).get("passed_on")
    if by and by not in case.repo["settings"].get("passed_on", ()):
        message = f"decisions are not passed on over {by} here: only a person opens the gates of run {run['id']}"
        raise Refused("not-switched-on", message, f"in a terminal of your own: tenuto {c['decision']} {run['id']}")


def _refuse_weak(case: Case, c: commands.DecideGate) -> None:
    """Only what began protected has anything to look at: most runs are asked nothing here."""
    if "gate_protection" not in case.run["settings"]:
        return
    from tenuto.core.approvals import weakness

    why = weakness(case.run, c.get("proof", {}))
    if why:
        raise Refused("not-signed", why, f"tenuto {c['decision']} {case.run['id']} --sign-with KEY --as NAME")


def _refuse_stale(case: Case, c: commands.DecideGate) -> None:
    gate = case.run["gate"]
    now = {entry["path"]: entry["sha256"] for entry in c.get("shown", [])}
    then = {entry["path"]: entry["sha256"] for entry in (gate["shown"] if gate else [])}
    # What is not told counts as changed; so does what has come to it since.
    changed = [path for path, sha in then.items() if sha is not None and now.get(path) != sha]
    changed += [path for path in now if path not in then]
    if changed:
        message = f"what gate {gate['name'] if gate else ''!r} showed has changed since: {', '.join(changed)}"
        hint = (
            "tenuto run   (shows it anew; then decide), or: tenuto revise"
            if case.run["current_visit"]
            else "look again: revise, or open the gate anew"
        )
        raise Refused("gate-stale", message, hint, paths=changed)


POLICY = {"minBlockSeverity": "LOW", "maxFixAttempts": 10, "maxStageRestarts": 3}
THRESHOLD = 90
COVERAGE_ROUNDS = 20


def record_review(case: Case, c: commands.RecordReview) -> list[Event]:
    run, step = case.run, c["step"]
    entry = _reviewed_here(run, step, "review")
    answer = plain(c["review"])
    judgement = judge(answer, str(policy(run, "minBlockSeverity")))
    before = run["reviews"].get(step, {})
    changes: Json = {
        "approved": judgement["approved"],
        "visit": run["steps"][step]["iteration"],
        "answer": c["review"],
        "reason": judgement["reason"],
        "next": "",
        "sha256": c.get("sha256", ""),
    }
    lacking = needs_coverage(answer)
    if "coverage" in entry and (judgement["approved"] or (lacking and not judgement["blocking"])):
        figure = coverage(answer)
        if lacking or figure is not None:
            percent = figure["percent"] if figure else None
            met = not lacking and bool(figure and figure["met"])
            return _covered(case, entry, percent, met, changes)
    if judgement["approved"]:
        return [new_event.review_recorded(case.command, step=step, changes=changes)]
    fixes, stage = before.get("fix_attempts", 0), entry.get("stage", "")
    restarts = sum(1 for restart in run["restarts"] if restart["stage"] == stage)
    after: list[Event] = []
    if run["settings"].get("supplementaryPolicy", "on-issues") == "on-issues" and not before.get("supplementary"):
        changes |= {"next": "supplementary", "supplementary": True}
    elif fixes < _limit(run, "maxFixAttempts"):
        changes |= {"next": "fix", "fix_attempts": fixes + 1}
    elif stage and restarts < _limit(run, "maxStageRestarts"):
        changes["next"] = "restart"
        after = restarted(case, stage, f"review of {step} failed: {judgement['reason']}")
    else:
        changes["next"] = "blocked"
        reason = (
            f"Review of phase {step} failed after {fixes} fix attempts and {restarts} restarts: {judgement['reason']}"
        )
        after = [new_event.blocked(case.command, reason=reason, stage=stage or None, missing=[])]
    return [new_event.review_recorded(case.command, step=step, changes=changes), *after]


def of_this_visit(run: Run, name: str, sha256: str) -> bool:
    """Whether a review's file counts for the visit that its step is in: not, where it was recorded before that visit
    began and holds the same words still."""
    artifact = run["artifacts"].get(name)
    if artifact is None or "visit" not in artifact or artifact["sha256"] != sha256:
        return True
    return artifact["visit"] == run["steps"][str(artifact["step"])]["iteration"]


def count_review(case: Case, c: commands.CountReview) -> list[Event]:
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
    return [new_event.review_recorded(case.command, step=c["step"], changes=changes)] if changes else []


def record_coverage(case: Case, c: commands.RecordCoverage) -> list[Event]:
    entry = _reviewed_here(case.run, c["step"], "coverage")
    return _covered(case, entry, c.get("percent"), c.get("met", True), {})


def _covered(case: Case, entry: ScheduledStep, percent: object, met: bool, changes: Json) -> list[Event]:
    """Enough: it is recorded. Below the threshold, or not enough by the reviewer's word: back to the step that writes
    tests."""
    run, step = case.run, entry["step"]
    threshold = run["settings"].get("coverageThreshold")
    wanted = threshold if _is_number(threshold) else THRESHOLD
    changes = {**changes, "coverage": percent}
    if met and _is_number(percent) and percent >= wanted:
        return [new_event.review_recorded(case.command, step=step, changes=changes)]
    back, most = entry["coverage"]["back_to"], entry["coverage"].get("at_most", COVERAGE_ROUNDS)
    counter = f"{step}.coverage"
    used = run["routes"].get(counter, 0)
    if not _is_number(percent):
        reason = "no coverage figure"
    elif percent < wanted:
        reason = f"coverage {percent}% is below {wanted}%"
    else:
        reason = f"coverage {percent}% is not enough, says the review"
    changes |= {"approved": False}
    if "answer" in changes:
        changes |= {"reason": reason, "next": "coverage"}
    if used >= most:
        message = f"{reason[0].upper()}{reason[1:]} after {used} rounds"
        blocked = new_event.blocked(case.command, reason=message, stage=entry.get("stage"), missing=[])
        return [new_event.review_recorded(case.command, step=step, changes=changes), blocked]
    again = run["steps"].get(back, {"iteration": 0})["iteration"] + 1
    return [
        new_event.review_recorded(case.command, step=step, changes=changes),
        new_event.route_taken(case.command, route=counter, queue=[], resets=[], carry={}, reason=reason),
        new_event.step_ended(
            case.command, step=step, item=None, status="failed", verdict="LOW_COVERAGE", summary=reason, because=[]
        ),
        new_event.step_started(case.command, step=back, item=None, iteration=again, leg=None),
    ]


def policy(run: Run, name: str) -> object:
    own = run["settings"].get("reviewPolicy")
    return own[name] if isinstance(own, dict) and name in own else POLICY[name]


def plain(review: object) -> object:
    """Reviewers also answer with the bare word, or with `approved: true`."""
    if isinstance(review, str):
        return {"status": review}
    if isinstance(review, dict) and "status" not in review and isinstance(review.get("approved"), bool):
        return {**review, "status": "approved" if review["approved"] else "needs_revision"}
    return review


def _limit(run: Run, name: str) -> int:
    value = policy(run, name)
    return value if type(value) is int and value >= 0 else int(POLICY[name])  # type: ignore[call-overload]


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e9 < value < 1e9  # NaN is none


def _reviewed_here(run: Run, step: str, what: str) -> ScheduledStep:
    refuse_engine(run)
    entry = entry_of(run, step)
    if entry is None or (entry.get("type") != "review" if what == "review" else "coverage" not in entry):
        raise Refused(f"no-{what}", f"{step!r} of run {run['id']} takes no {what}", "", step=step)
    gate_only = run["status"] == "blocked" and run["blocked"] is not None and run["blocked"]["missing"]
    if run["status"] not in UNDER_WAY and not gate_only:
        message = f"cannot record a {what} of {step!r} in run {run['id']}: it is {run['status']}"
        raise Refused("not-running", message, f"tenuto status {run['id']}", status=run["status"], step=step)
    if step != run["position"]:
        message = f"run {run['id']} is in {run['position']!r}; a {what} of {step!r} is not asked for now"
        raise Refused("wrong-step", message, f"advance to {step} first", step=step, position=run["position"])
    return entry


if TYPE_CHECKING:

    class Deciders(TypedDict):
        OpenGate: Callable[[Case, commands.OpenGate], list[Event]]
        DecideGate: Callable[[Case, commands.DecideGate], list[Event]]
        Checkpoint: Callable[[Case, commands.Checkpoint], list[Event]]
        RecordReview: Callable[[Case, commands.RecordReview], list[Event]]
        CountReview: Callable[[Case, commands.CountReview], list[Event]]
        RecordCoverage: Callable[[Case, commands.RecordCoverage], list[Event]]


DECIDERS: Deciders = {
    "OpenGate": open_gate,
    "DecideGate": decide_gate,
    "Checkpoint": checkpoint,
    "RecordReview": record_review,
    "CountReview": count_review,
    "RecordCoverage": record_coverage,
}
