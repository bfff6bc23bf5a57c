"""A pipeline as text: its steps in order, who works in each, and what follows which outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tenuto.core.pipeline_records import Outcome, Pipeline, Seat


def outline(pipeline: Pipeline, switches: Mapping[str, bool]) -> Iterator[str]:
    on = {**pipeline["switches"], **switches}
    width = max(len(step["id"]) for step in pipeline["steps"])
    following = {one["id"]: two["id"] for one, two in zip(pipeline["steps"], pipeline["steps"][1:], strict=False)}
    for step in pipeline["steps"]:
        off = step["when"] != "always" and not on.get(step["when"])
        mark = "-" if off else "?" if step["kind"] == "gate" else "o"
        aside = "  (only by a route)" if step["aside"] else ""
        skipped = f"  (left out: {step['when']} is off)" if off else ""
        yield f"  {mark} {step['id']:<{width}}  {_what(step)}{skipped}{aside}"
        if off:
            continue
        margin = f"  |   {'':<{width}}"
        for line in (*_acts(step), *_limits(step)):
            yield f"{margin}{line}"
        for words, outcome in _told(step, following.get(step["id"])):
            first, *rest = follows(outcome)
            yield f"{margin}{words}: {first}"
            yield from (f"{margin}    {line}" for line in rest)


def _told(step: Any, following: str | None) -> Iterator[tuple[str, Outcome]]:
    """Outcomes that lead to the same thing in one line; not the plain way on, and nothing that cannot come of this step."""
    same: dict[str, tuple[list[str], Outcome]] = {}
    for name, outcome in step["on"].items():
        if name == "DONE" and outcome["do"] == "go_on" and outcome["to"] == following:
            continue
        if name == "DONE" or step["kind"] != "action":
            same.setdefault("\n".join(follows(outcome)), ([], outcome))[0].append(name)
    for names, outcome in same.values():
        yield ", ".join(names), outcome


def _what(step: Any) -> str:
    match step["kind"]:
        case "agent":
            modes = f" (modes: {', '.join(step['modes'])})" if step["modes"] else ""
            return f"{_seat(step['agent'])}{modes}{_writes(step['agent'])}"
        case "cluster":
            cluster = step["cluster"]
            first = f"{_seat(cluster['first'])}, then " if cluster["first"] else ""
            last = f", then {_seat(step['aggregate'])}{_writes(step['aggregate'])}" if step["aggregate"] else ""
            quorum = f" (quorum {cluster['quorum']})" if cluster["quorum"] else ""
            return f"{first}{_side_by_side(cluster['members'])}{quorum}{last}"
        case "waves":
            waves = step["waves"]
            order = "in rolling order" if waves["order"] == "rolling" else "in waves"
            return f"items of {', '.join(waves['plan'])} {order}: {', '.join(_seat(seat) for seat in waves['seats'])}"
        case "gate":
            return f"a person decides: {step['gate']['prompt']}"
        case _:
            return f"the engine: {', '.join(step['action'])}"


def _seat(seat: Seat) -> str:
    words = [word for word in (seat["mode"], seat["focus"]) if word]
    weight = {"blocking": " [blocks]", "never-blocks": " [never blocks]"}.get(seat["weight"], "")
    return f"{seat['role']}{_bracketed(words)}{weight}"


def _bracketed(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _side_by_side(members: list[Seat]) -> str:
    roles = {member["role"] for member in members}
    if len(roles) == 1 and len(members) > 1:
        focuses = ", ".join(member["focus"] or member["id"] for member in members)
        return f"{len(members)} x {members[0]['role']} ({focuses})"
    return " | ".join(_seat(member) for member in members)


def _writes(seat: Seat) -> str:
    return f" -> {', '.join(seat['out'])}" if seat["out"] else ""


def _acts(step: Any) -> Iterator[str]:
    for when in ("before", "between", "after"):
        if step.get(when):
            yield f"{when}: {', '.join(step[when])}"


def _limits(step: Any) -> Iterator[str]:
    given = [f"{amount} {unit}" for unit, amount in step["budget"].items() if amount is not None]
    if given:
        yield f"at most {', '.join(given)}"


def follows(outcome: Outcome | None) -> list[str]:
    """What follows, and in lines of their own what follows when that is used up."""
    if outcome is None:
        return ["nothing"]
    match outcome["do"]:
        case "go_on":
            carried = f", findings as {outcome['carry']}" if outcome["carry"] else ""
            return [f"on to {outcome['to']}{carried}"]
        case "route":
            return _route(outcome)
        case "finish":
            return [f"the run is {outcome['as']}"]
        case "pause":
            return [_with_reason("pause for a person", outcome["reason"])]
        case "block":
            return [_with_reason("blocked", outcome["reason"])]
        case _:
            return [_with_reason("the run fails", outcome["reason"])]


def _with_reason(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what


def _route(route: Any) -> list[str]:
    hops = " > ".join(_hop(hop) for hop in route["route"])
    because = f"because of {route['because']}: " if route["because"] else ""
    if route["at_most"] is None:
        return [f"{because}back to {hops}, as often as a person asks"]
    lines = [f"{because}back to {hops}, at most {route['at_most']} x"]
    beyond = follows(route["then"])
    otherwise = follows(route["otherwise"]) if route["because"] and route["otherwise"] else beyond
    if route["because"] and otherwise == beyond:
        return [*lines, f"then, or because of others: {beyond[0]}", *beyond[1:]]
    lines += [f"then {beyond[0]}", *beyond[1:]]
    return lines + ([f"because of others: {otherwise[0]}", *otherwise[1:]] if route["because"] else [])


def _hop(hop: Any) -> str:
    words = [*([hop["mode"]] if hop["mode"] else []), *(f"only {name}" for name in hop["only"])]
    words += [f"{hop['items']} items"] if hop["items"] and hop["items"] != "due" else []
    return f"{hop['step']}{_bracketed(words)}"
