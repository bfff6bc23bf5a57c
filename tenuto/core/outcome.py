"""What came of a stay: the outcome that its step's `on` table is asked with.

    outcome(pipeline, run) -> {"name", "because", "reason"}

An aggregator can be stricter than the rule over its members, never more lenient. Too few outputs, no answer, an answer
that is not what the rule needs: never DONE.
"""

from __future__ import annotations

from tenuto.core import rules
from tenuto.core.visits import agent_seat, item_word, members_of, outputs_of, step_of, word_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.pipeline_records import Pipeline
    from tenuto.core.records import Run, Stay

_GATE = {"approve": "DONE", "revise": "NEEDS_REVISION", "reject": "ERROR"}


def outcome(pipeline: Pipeline, run: Run) -> Any:
    stay = run["stay"]
    if stay is None:
        raise ValueError("no stay, no outcome")
    step: Any = step_of(pipeline, stay["step"])
    match step["kind"]:
        case "agent":
            return _agent(step, run, stay)
        case "cluster":
            return _cluster(step, stay)
        case "waves":
            return _waves(step, run, stay)
        case "gate":
            return _told(_GATE.get(stay["decision"] or "", "ERROR"))
        case _:
            return _told("DONE")


def _told(name: str, because: list[str] | None = None, reason: str = "") -> Any:
    return {"name": name, "because": because or [], "reason": reason}


def _agent(step: Any, run: Run, stay: Stay) -> Any:
    seat = agent_seat(step, stay)
    state = stay["seats"].get(seat["id"])
    word = word_of(seat, state) or "ERROR"
    answer = state["answer"] if state else None
    if word == "ERROR" or step["rule"] == "word":
        return _told(word, [seat["id"]] if word != "DONE" else [])
    if step["rule"] == "audit":
        judged = rules.audit(answer)
        return _told("DONE" if judged["verdict"] == "PASS" else judged["verdict"], [seat["id"]], judged["reason"])
    policy = run["settings"].get("reviewPolicy", {}).get("minBlockSeverity") or step["review"]["min_block_severity"]
    review = rules.review(answer, policy)
    if not review["approved"]:
        return _told("NEEDS_REVISION", [seat["id"]], review["reason"])
    return _coverage(step, run, answer) or _told("DONE")


def _coverage(step: Any, run: Run, answer: Any) -> Any:
    if step["coverage"] is None:
        return None
    wanted = run["settings"].get("coverageThreshold", step["coverage"]["threshold"])
    found = answer.get("coverage") if isinstance(answer, dict) else None
    figure = found.get("percent", found.get("lines")) if isinstance(found, dict) else found
    if isinstance(figure, (int, float)) and not isinstance(figure, bool) and figure >= wanted:
        return None
    said = "no coverage figure" if not isinstance(figure, (int, float)) else f"coverage {figure} is below {wanted}"
    return _told("LOW_COVERAGE", [], said)


def _cluster(step: Any, stay: Stay) -> Any:
    members = members_of(step)
    if outputs_of(step, stay) < step["cluster"]["quorum"]:
        failed = [seat["id"] for seat in members if word_of(seat, stay["seats"].get(seat["id"])) in (None, "ERROR")]
        return _told("ERROR", failed, f"fewer than {step['cluster']['quorum']} outputs")
    if step["rule"] not in ("ct", "v", "r"):
        aggregate = step["aggregate"]
        word = word_of(aggregate, stay["seats"].get(aggregate["id"])) if aggregate else "DONE"
        return _told(word or "ERROR")
    judged = rules.over_members(step["rule"], [_member(step, stay, seat) for seat in members])
    aggregate = step["aggregate"]
    if aggregate is None:
        return _told(judged["verdict"], judged["because"], judged["reason"])
    word = word_of(aggregate, stay["seats"].get(aggregate["id"]))
    name = rules.worse(word, judged["verdict"])
    if name == judged["verdict"]:
        return _told(name, judged["because"], judged["reason"])
    return _told(name, [aggregate["id"]], f"{aggregate['id']} says {word or 'nothing'}")


def _member(step: Any, stay: Stay, seat: Any) -> Any:
    state = stay["seats"].get(seat["id"])
    return {
        "name": seat["id"], "verdict": word_of(seat, state), "weight": seat["weight"],
        "first": seat is step["cluster"]["first"],
        "severities": state["severities"] if state else [],
    }  # fmt: skip


def _waves(step: Any, run: Run, stay: Stay) -> Any:
    bad = [item for item in stay["stopped_by"] if item in stay["wave_of"]]
    if not bad:
        return _told("DONE") if not stay["left"] else _told("ERROR", stay["left"], "items never started")
    words = [item_word(step, run, stay, item) for item in bad]
    name = "NEEDS_REVISION" if all(word == "NEEDS_REVISION" for word in words) else "ERROR"
    return _told(name, bad, f"failed: {', '.join(bad)}")
