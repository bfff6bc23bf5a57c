"""Gates: stops that only a person's decision opens.

A decision is for exactly what was shown: when an artifact's hash is another by then, the
decision is void and the gate stays; an engine shows it anew, as another one. A gate is decided once.
Reject ends the run. Revise opens the gate for work on the feedback, never for what lies behind it.
"""

from __future__ import annotations

from tenuto.core.decisions.steps import go_on, refuse_engine
from tenuto.core.fold import running_visits
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.decide import Case

OPTIONS = ["approve", "reject", "revise"]


def open_gate(case: Case, c: Any) -> list[Any]:
    run = case.run
    own = run["stay"]["step"] if run["stay"] else None  # a gate of the pipeline is a step itself
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
        return [] if gate["shown"] == c.get("shown", []) else [_opened(case, c, f"{gate['id'].partition('.')[0]}.{run['version'] + 1}")]
    if run["status"] not in ("created", "running", "restarting", "poc-complete"):
        raise Refused(
            "not-running",
            f"cannot open a gate in run {run['id']}: it is {run['status']}",
            f"tenuto status {run['id']}",
            status=run["status"],
        )
    return [_opened(case, c, f"gate-{len(run['decisions']) + 1}")]


def _opened(case: Case, c: Any, name: str) -> Any:
    return case.event(
        "GateOpened", gate=name, name=c["name"], prompt=c["prompt"], options=c.get("options", OPTIONS), shown=c.get("shown", []),
        completes=c.get("completes", False),
    )  # fmt: skip


def decide_gate(case: Case, c: Any) -> list[Any]:
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
    decided = case.event(
        "GateDecided", gate=gate["id"], name=gate["name"], step=run["position"], decision=decision,
        approved=decision == "approve", feedback=c.get("feedback", ""), who=c["who"], proof=c.get("proof", {}),
    )  # fmt: skip
    if decision == "reject":
        error = f"gate {gate['name']!r} was rejected" + (f": {c['feedback']}" if c.get("feedback") else "")
        return [decided, case.event("Failed", step=run["position"], error=error, context=None)]
    if decision == "approve" and gate["completes"] and gate["resting"] != "poc-complete":
        return [decided, case.event("Finished", outcome="completed")]
    return [decided]


def checkpoint(case: Case, c: Any) -> list[Any]:
    """A person's word on the step a run with an order is in. Approval leads to the next step."""
    run, step = case.run, c["step"]
    refuse_engine(run)
    if run["status"] not in ("created", "running", "restarting", "blocked"):
        raise Refused(
            "not-running", f"run {run['id']} has no step to approve: it is {run['status']}", status=run["status"]
        )
    if step != run["position"]:
        raise Refused(
            "wrong-checkpoint", f"run {run['id']} is in {run['position']!r}; there is no {step!r} to approve now",
            f"decide on {run['position']}", step=step, position=run["position"],
        )  # fmt: skip
    decided = case.event(
        "GateDecided", gate=f"checkpoint-{len(run['decisions']) + 1}", name=step, step=step,
        decision="approve" if c["approved"] else "revise", approved=c["approved"],
        feedback=c.get("feedback", ""), who=c["who"], proof=c.get("proof", {}),
    )  # fmt: skip
    if not c["approved"]:
        return [decided]
    return [decided, *go_on(case, None, c.get("facts", {}), approval=True)]


def _refuse_passed_on(case: Case, c: Any) -> None:
    """A word that a model passes on counts where a person switched that on. The switch stands in the journal: settings lie where a model writes."""
    run, by = case.run, c.get("proof", {}).get("passed_on")
    if by and by not in case.repo["settings"].get("passed_on", ()):
        message = f"decisions are not passed on over {by} here: only a person opens the gates of run {run['id']}"
        raise Refused("not-switched-on", message, f"in a terminal of your own: tenuto {c['decision']} {run['id']}")


def _refuse_weak(case: Case, c: Any) -> None:
    """Only what began protected has anything to look at: most runs are asked nothing here."""
    if "gate_protection" not in case.run["settings"]:
        return
    from tenuto.core.approvals import weakness

    why = weakness(case.run, c.get("proof", {}))
    if why:
        raise Refused("not-signed", why, f"tenuto {c['decision']} {case.run['id']} --sign-with KEY --as NAME")


def _refuse_stale(case: Case, c: Any) -> None:
    gate = case.run["gate"]
    now = {entry["path"]: entry["sha256"] for entry in c.get("shown", [])}
    then = {entry["path"]: entry["sha256"] for entry in (gate["shown"] if gate else [])}
    # What is not told counts as changed; so does what has come to it since.
    changed = [path for path, sha in then.items() if sha is not None and now.get(path) != sha]
    changed += [path for path in now if path not in then]
    if changed:
        message = f"what gate {gate['name'] if gate else ''!r} showed has changed since: {', '.join(changed)}"
        hint = "tenuto run   (shows it anew; then decide), or: tenuto revise" if case.run["stay"] else "look again: revise, or open the gate anew"
        raise Refused("gate-stale", message, hint, paths=changed)


DECIDERS = {"OpenGate": open_gate, "DecideGate": decide_gate, "Checkpoint": checkpoint}
