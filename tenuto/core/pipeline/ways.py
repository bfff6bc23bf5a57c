"""The ways of a pipeline: everything that can follow in it, one by one.

    every(pipeline)                -> its ways, in the order of the definition
    taken(rule, because, routes, holds)  -> which part of what is written for an outcome holds now
    key_of(step, outcome, part)    -> what a way is called: review.NEEDS_REVISION, review.NEEDS_REVISION.then

A way is an outcome of a step with what it leads to; the `then` of a route that is used up, its `otherwise`; a choice
at a gate; a step that runs, or is left out, by its condition.

Rule 1: outcomes that lead to the very same thing are one way. NOT_DONE, and a NEEDS_REVISION that nobody wrote, are.
Rule 2: what no agent of the step can answer is no way.
Rule 3: an ERROR for which nothing is written fails the run. That is a way, but not `written`: no case has to go it.
"""

from __future__ import annotations

from tenuto.core.pipeline import conditions
from tenuto.core.pipeline.check import seats
from tenuto.core.pipeline.routes import possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import TypedDict

    from tenuto.core.pipeline.records import Fail, Outcome, Pipeline, Route, Step, When

    class Way(TypedDict):
        key: str
        step: str
        outcomes: list[str]  # as people say them: a gate's are its choices; [] for a condition
        part: str  # "": what is written for the outcome itself; then, otherwise, then.then, ...; runs, left-out
        after: str  # for people: "after 2 x"; "" where nothing has to come before it
        leads_to: Outcome | None  # None: a condition
        written: bool


CHOICES = {"DONE": "approve", "NEEDS_REVISION": "revise", "ERROR": "reject"}
RUNS, LEFT_OUT = "runs", "left-out"
FAIL: Fail = {"do": "fail", "reason": ""}


def taken(
    rule: Outcome, because: Collection[str], routes: Mapping[str, int], holds: Callable[[When], bool]
) -> tuple[str, Outcome]:
    """The part that holds, and what it says. `routes`: how often each counter was used."""
    parts: list[str] = []
    while rule["do"] == "route":
        if (rule["because"] and rule["because"] not in because) or not holds(rule["when"]):
            parts.append("then" if rule["otherwise"] in (None, rule["then"]) else "otherwise")
            rule = rule["otherwise"] or rule["then"] or FAIL
        elif rule["at_most"] is not None and routes.get(rule["counter"], 0) >= rule["at_most"]:
            parts.append("then")
            rule = rule["then"] or FAIL
        else:
            break
    return ".".join(parts), rule


def rule_for(step: Step, outcome: str) -> Outcome:
    for name in (outcome, "ERROR"):
        for written, rule in step["on"].items():
            if written == name:
                return rule
    return FAIL


def key_of(step: Step, outcome: str, part: str = "") -> str:
    """Outcomes that lead to the same thing are called by the first of them."""
    first = next((names[0] for names, _ in _grouped(step) if outcome in names), outcome)
    word = CHOICES.get(first, first) if step["kind"] == "gate" else first
    return ".".join(filter(None, (step["id"], word, part)))


def condition_key(step: str, part: str) -> str:
    return f"{step}.{part}"


def every(pipeline: Pipeline) -> list[Way]:
    return [way for step in pipeline["steps"] for way in of_step(step)]


def of_step(step: Step) -> Iterator[Way]:
    if step["when"] != conditions.ALWAYS:
        for part in (RUNS, LEFT_OUT):
            key = condition_key(step["id"], part)
            yield {
                "key": key,
                "step": step["id"],
                "outcomes": [],
                "part": part,
                "after": "",
                "leads_to": None,
                "written": True,
            }
    for names, rule in _grouped(step):
        outcomes = [CHOICES[name] if step["kind"] == "gate" else name for name in names]
        written = step["kind"] == "gate" or not (rule["do"] == "fail" and not rule["reason"])
        for part, after, leads_to in _parts(rule):
            yield {
                "key": key_of(step, names[0], part),
                "step": step["id"],
                "outcomes": outcomes,
                "part": part,
                "after": after,
                "leads_to": leads_to,
                "written": written,
            }


def _grouped(step: Step) -> list[tuple[list[str], Outcome]]:
    found: list[tuple[list[str], Outcome]] = []
    for name in _outcomes(step):
        rule = rule_for(step, name)
        same = next((names for names, other in found if other == rule and name != "DONE" and "DONE" not in names), None)
        if same is None or step["kind"] == "gate":
            found.append(([name], rule))
        else:
            same.append(name)
    return found


def _parts(rule: Outcome, part: str = "", after: str = "") -> Iterator[tuple[str, str, Outcome]]:
    yield part, after, rule
    if rule["do"] != "route":
        return
    if rule["at_most"] is not None:
        yield from _parts(
            rule["then"] or FAIL, _joined(part, "then"), _joined_words(after, f"after {rule['at_most']} x")
        )
    bound = rule["because"] or rule["when"] != conditions.ALWAYS
    if bound and rule["otherwise"] is not None and rule["otherwise"] != rule["then"]:
        words = _joined_words(after, f"not {in_words(rule)}")
        yield from _parts(rule["otherwise"], _joined(part, "otherwise"), words)


def in_words(route: Route) -> str:
    """What the route is bound to: "because of security", "where depth is more than 2"; "" where it is not."""
    because = f"because of {route['because']}" if route["because"] else ""
    when = f"where {conditions.in_words(route['when'])}" if route["when"] != conditions.ALWAYS else ""
    return " and ".join(filter(None, (because, when)))


def _joined(part: str, more: str) -> str:
    return f"{part}.{more}" if part else more


def _joined_words(words: str, more: str) -> str:
    return f"{words}, then {more}" if words else more


def _outcomes(step: Step) -> Iterator[str]:
    """What the step can end with."""
    for name in possible(step):
        if step["kind"] == "action":
            if name == "DONE":
                yield name
        elif step["kind"] == "gate":
            if CHOICES[name] in step["gate"]["options"]:
                yield name
        elif name != "NEEDS_REVISION" or _may_ask_for_revision(step):
            yield name


def _may_ask_for_revision(step: Step) -> bool:
    if step["rule"] in ("word", "quorum"):
        deciding = list(seats(step))
        if step["kind"] == "cluster":
            deciding = [step["aggregate"]] if step["aggregate"] else []
        return any("NEEDS_REVISION" in seat["verdicts"] for seat in deciding)
    return True
