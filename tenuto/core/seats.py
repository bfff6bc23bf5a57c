"""Seats: whether one may be taken again, what its last word is, and those that work together.

    attempts_left, exhausted, word_of   one seat, and what became of it in the current visit
    team_of(step, visit), team_for(step, item)  those that work together: in a cluster, or on one item of waves
    turn_of(team, states, only)         whose turn it is among them
    concluded(team, states)             what came of it

A seat is exhausted when its last result is DONE, or when no attempt is left for that kind of result. A team works in
three turns: the first alone, then the members side by side, then the aggregator, where enough of them delivered.
"""

from __future__ import annotations

from tenuto.core import rules
from tenuto.core.status import ANSWERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    from tenuto.core.pipeline.records import ClusterStep, OutcomeName, Rule, Seat, Verdict, WavesStep
    from tenuto.core.records.action import Outcome
    from tenuto.core.records.run import CurrentVisit, SeatState
    from tenuto.core.rules import Member

    class Team(TypedDict):
        """Those who work together: of a cluster, or of one item."""

        first: Seat | None
        members: list[Seat]
        aggregate: Seat | None
        quorum: int
        rule: Rule
        item: str | None


def key_for(seat: Seat, item: str | None) -> str:
    return seat["id"] if item is None else f"{seat['id']}@{item}"


def result_of(seat: Seat, result: str) -> str:
    if result in ("LOST", "QUESTION"):
        return result
    return result if result in seat["verdicts"] else "ERROR"


def attempts_left(seat: Seat, state: SeatState | None) -> bool:
    """May this seat be taken (again)? Not while an attempt is in flight."""
    if state is None or not state["results"]:
        return state is None or state["open"] is None
    if state["open"] is not None:
        return False
    results = [result_of(seat, result) for result in state["results"]]
    last, retry = results[-1], seat["retry"]
    if last == "DONE":
        return False
    if last == "QUESTION":
        return results.count(last) <= seat["questions"]
    if last == "NEEDS_REVISION":
        return results.count(last) <= retry["NEEDS_REVISION"]
    beyond = results.count("LOST") - retry["LOST"]
    if last == "LOST" and beyond <= 0:
        return True
    return results.count("ERROR") + max(beyond, 0) <= retry["ERROR"]


def lost_its_tries(seat: Seat, state: SeatState | None) -> bool:
    """Has it failed only because attempts of it were lost? Its errors alone would have left it another try."""
    results = [result_of(seat, result) for result in state["results"]] if state else []
    return word_of(seat, state) == "ERROR" and "LOST" in results and results.count("ERROR") <= seat["retry"]["ERROR"]


def exhausted(seat: Seat, state: SeatState | None) -> bool:
    return state is not None and state["open"] is None and bool(state["results"]) and not attempts_left(seat, state)


def word_of(seat: Seat, state: SeatState | None) -> Verdict | None:
    """The last verdict of a seat; None where it never answered."""
    if state is None or not state["results"]:
        return None
    last = state["results"][-1]
    return next((verdict for verdict in seat["verdicts"] if verdict == last), "ERROR")


def team_of(step: ClusterStep, current_visit: CurrentVisit) -> Team:
    """Without the members whose condition did not hold when the visit began."""
    cluster, left_out = step["cluster"], current_visit["leg"].get("without", [])
    first = cluster["first"]
    return {
        "first": first if first and first["id"] not in left_out else None,
        "members": [seat for seat in cluster["members"] if seat["id"] not in left_out],
        "aggregate": step["aggregate"],
        "quorum": cluster["quorum"],
        "rule": step["rule"],
        "item": None,
    }


def team_for(step: WavesStep, item: str) -> Team | None:
    """Those who work together on an item; None where each seat works by itself."""
    cluster, every = step["waves"]["cluster"], step["waves"]["seats"]
    if cluster is None:
        return None
    return {
        "first": next((seat for seat in every if seat["id"] == cluster["first"]), None),
        "members": [seat for seat in every if seat["id"] not in (cluster["first"], cluster["aggregate"])],
        "aggregate": next((seat for seat in every if seat["id"] == cluster["aggregate"]), None),
        "quorum": cluster["quorum"],
        "rule": cluster["rule"],
        "item": item,
    }


def state_of(team: Team, states: Mapping[str, SeatState], seat: Seat) -> SeatState | None:
    return states.get(key_for(seat, team["item"]))


def _working(team: Team) -> list[Seat]:
    """All but the aggregator."""
    return [*([team["first"]] if team["first"] else []), *team["members"]]


def outputs_of(team: Team, states: Mapping[str, SeatState]) -> int:
    """Members that delivered: anything but an ERROR."""
    words = [word_of(seat, state_of(team, states, seat)) for seat in _working(team)]
    return sum(1 for word in words if word in ANSWERS)


def turn_of(team: Team, states: Mapping[str, SeatState], only: list[str]) -> list[Seat]:
    """Whose turn it is: the first alone, then the members, then the aggregator."""
    first = team["first"]
    if first and (not only or first["id"] in only) and not exhausted(first, state_of(team, states, first)):
        return [first]
    skip = first is not None and word_of(first, state_of(team, states, first)) == "ERROR"
    members = [] if skip else [m for m in team["members"] if not only or m["id"] in only]
    if not all(exhausted(member, state_of(team, states, member)) for member in members):
        return members
    if team["aggregate"] is None or outputs_of(team, states) < team["quorum"]:
        return []
    return [team["aggregate"]]


def told(name: OutcomeName, because: list[str] | None = None, reason: str = "") -> Outcome:
    return {"name": name, "because": because or [], "reason": reason}


def concluded(team: Team, states: Mapping[str, SeatState]) -> Outcome:
    members, aggregate = _working(team), team["aggregate"]
    if outputs_of(team, states) < team["quorum"]:
        failed = [seat["id"] for seat in members if word_of(seat, state_of(team, states, seat)) in (None, "ERROR")]
        return told("ERROR", failed, f"fewer than {team['quorum']} outputs")
    if team["rule"] not in ("ct", "v", "r"):
        word = word_of(aggregate, state_of(team, states, aggregate)) if aggregate else "DONE"
        return told(word or "ERROR")
    judged = rules.over_members(team["rule"], [_member(team, states, seat) for seat in members])
    if aggregate is None:
        return told(judged["verdict"], judged["because"], judged["reason"])
    word = word_of(aggregate, state_of(team, states, aggregate))
    name = rules.worse(word, judged["verdict"])
    if name == judged["verdict"]:
        return told(name, judged["because"], judged["reason"])
    return told(name, [aggregate["id"]], f"{aggregate['id']} says {word or 'nothing'}")


def _member(team: Team, states: Mapping[str, SeatState], seat: Seat) -> Member:
    state = state_of(team, states, seat)
    return {
        "name": seat["id"],
        "verdict": word_of(seat, state),
        "weight": seat["weight"],
        "first": seat is team["first"],
        "severities": state["severities"] if state else [],
    }
