"""A pipeline as a graph: its steps, what leads from where to where, and how often at most.

    graph(pipeline, items)     -> nodes, edges and the worst case: the one read model of a definition
    as_mermaid(graph)          -> for Markdown: GitHub and others draw it
    told(edge)                 -> what an edge says, in words

Pure: a checked pipeline in, data or text out. graph_svg.py draws the picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypedDict

from tenuto.core.budget import worst_case
from tenuto.core.pipeline import conditions, ways
from tenuto.core.pipeline.check import seats

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Bound, Leg, Pipeline, Seat, Step
    from tenuto.core.pipeline.ways import Way

EdgeKind = Literal["on", "back", "left-out", "pause", "block", "fail", "finish"]


class Node(TypedDict):
    id: str
    kind: str  # of the step; "command" where only commands work in it
    title: str
    workers: list[str]  # who works in it, or what is asked
    condition: str  # in words; "" where it always runs
    aside: bool
    attempts: int | None  # the most that the worst case has; None where nobody works


class Edge(TypedDict):
    way: str
    source: str
    target: str  # a step, or an end: paused, blocked, failed, completed, ...
    kind: EdgeKind
    outcomes: list[str]
    after: str
    legs: list[str]  # of a way back: every step of it, in order
    at_most: int | None  # of a way back; None: as often as a person asks
    words: str  # the reason that is written for an end


class Graph(TypedDict):
    name: str
    description: str
    cap: int
    nodes: list[Node]
    edges: list[Edge]
    bound: Bound


def graph(pipeline: Pipeline, items: int = 5) -> Graph:
    bound = worst_case(pipeline, items)
    most = {line["step"]: line["attempts"] for line in bound["steps"]}
    return {
        "name": pipeline["name"],
        "description": " ".join(pipeline["description"].split()),
        "cap": pipeline["cap"],
        "nodes": [_node(step, most) for step in pipeline["steps"]],
        "edges": [edge for step in pipeline["steps"] for edge in _edges(step)],
        "bound": bound,
    }


def _node(step: Step, most: dict[str, int]) -> Node:
    every = list(seats(step))
    only_commands = bool(every) and all(seat["command"] for seat in every)
    when = step["when"]
    return {
        "id": step["id"],
        "kind": "command" if only_commands and step["kind"] == "agent" else step["kind"],
        "title": step["name"] or step["id"],
        "workers": list(_workers(step, every)),
        "condition": "" if when == conditions.ALWAYS else conditions.in_words(when),
        "aside": step["aside"],
        "attempts": most.get(step["id"]),
    }


def _workers(step: Step, every: list[Seat]) -> Iterator[str]:
    if step["kind"] == "gate":
        yield step["gate"]["prompt"]
    elif step["kind"] == "action":
        yield ", ".join(step["action"]) or (f"end of {step['ends']}" if step.get("ends") else "begin")
    elif step["kind"] == "cluster":
        yield " | ".join(_called(seat) for seat in step["cluster"]["members"])
        if step["aggregate"]:
            yield f"then {_called(step['aggregate'])}"
    elif step["kind"] == "waves":
        yield f"each item: {', '.join(_called(seat) for seat in every)}"
    elif step["kind"] == "agent":
        yield _called(step["agent"])
    else:
        yield ", ".join(_called(seat) for seat in every)


def _called(seat: Seat) -> str:
    if seat["command"]:
        return " ".join(seat["command"]["run"])
    return seat["role"] if seat["id"] == seat["role"] else f"{seat['id']} ({seat['role']})"


def _edges(step: Step) -> Iterator[Edge]:
    for way in ways.of_step(step):
        outcome = way["leads_to"]
        if outcome is None:
            if way["part"] == ways.LEFT_OUT:
                done = step["on"]["DONE"]
                yield _edge(way, done["to"] if done["do"] == "go_on" else "completed", "left-out")
            continue
        match outcome["do"]:
            case "go_on":
                yield _edge(way, outcome["to"], "on")
            case "route":
                edge = _edge(way, outcome["route"][0]["step"], "back")
                edge["legs"] = [_leg(leg) for leg in outcome["route"]]
                edge["at_most"] = outcome["at_most"]
                yield edge
            case "finish":
                yield _edge(way, outcome["as"], "finish")
            case "pause":
                yield _edge(way, "paused", "pause", outcome["reason"])
            case "block":
                yield _edge(way, "blocked", "block", outcome["reason"])
            case "fail":
                yield _edge(way, "failed", "fail", outcome["reason"])


def _edge(way: Way, target: str, kind: EdgeKind, words: str = "") -> Edge:
    return {
        "way": way["key"],
        "source": way["step"],
        "target": target,
        "kind": kind,
        "outcomes": way["outcomes"],
        "after": way["after"],
        "legs": [],
        "at_most": None,
        "words": words,
    }


def _leg(leg: Leg) -> str:
    words = [leg["mode"], *(f"only {name}" for name in leg["only"])]
    words += [f"{leg['items']} items"] if leg["items"] not in ("", "due") else []
    manner = ", ".join(filter(None, words))
    return f"{leg['step']} ({manner})" if manner else leg["step"]


def told(edge: Edge) -> str:
    """What an edge says, for people: NEEDS_REVISION, after 2 x: waits for a person (tests fail)"""
    when = ", ".join(filter(None, (" or ".join(edge["outcomes"]), edge["after"])))
    reason = f": {edge['words']}" if edge["words"] else ""
    match edge["kind"]:
        case "on":
            return f"{when}: on to {edge['target']}"
        case "back":
            often = "whenever a person asks" if edge["at_most"] is None else f"at most {edge['at_most']} x"
            return f"{when}: back to {' > '.join(edge['legs'])}, {often}"
        case "left-out":
            return f"left out: on to {edge['target']}"
        case "pause":
            return f"{when}: waits for a person{reason}"
        case "block":
            return f"{when}: blocked{reason}"
        case "fail":
            return f"{when}: the run fails{reason}"
        case "finish":
            return f"{when}: {edge['target']}"


# ---- Mermaid ---------------------------------------------------------------------------------------

_SHAPES = {
    "agent": ("[", "]"),
    "cluster": ("[[", "]]"),
    "waves": ("[/", "/]"),
    "gate": ("{{", "}}"),
    "action": ("(", ")"),
    "command": (">", "]"),
}


def as_mermaid(shown: Graph) -> str:
    """Steps are s1, s2, ...: no id can be taken for a word of Mermaid's."""
    ids = {node["id"]: f"s{number}" for number, node in enumerate(shown["nodes"], 1)}
    ends = list(dict.fromkeys(edge["target"] for edge in shown["edges"] if edge["target"] not in ids))
    ids |= {end: f"e{number}" for number, end in enumerate(ends, 1)}
    lines = ["flowchart TD"]
    for node in shown["nodes"]:
        left, right = _SHAPES.get(node["kind"], ("[", "]"))
        words = [node["title"], *node["workers"], *([f"only where {node['condition']}"] if node["condition"] else [])]
        lines.append(f'  {ids[node["id"]]}{left}"{"<br/>".join(_mermaid_text(word) for word in words)}"{right}')
    lines += [f'  {ids[end]}(["{_mermaid_text(end)}"])' for end in ends]
    for edge in shown["edges"]:
        said = _mermaid_label(edge)
        arrow = "-.->" if edge["kind"] in ("back", "left-out") else "-->"
        label = f'|"{_mermaid_text(said)}"|' if said else ""
        lines.append(f"  {ids[edge['source']]} {arrow}{label} {ids[edge['target']]}")
    return "\n".join(lines) + "\n"


def _mermaid_label(edge: Edge) -> str:
    if edge["kind"] == "left-out":
        return "left out"
    if edge["kind"] in ("on", "finish") and edge["outcomes"] == ["DONE"]:
        return ""
    often = f"at most {edge['at_most']} x" if edge["kind"] == "back" and edge["at_most"] is not None else ""
    return ", ".join(filter(None, (" or ".join(edge["outcomes"]), edge["after"], often, edge["words"])))


def _mermaid_text(text: str) -> str:
    """Mermaid reads entities with # in the place of &, and Markdown marks in quotes."""
    return "".join(f"#{ord(letter)};" if letter in '"#<>&`*_{}|\\' else letter for letter in " ".join(text.split()))
