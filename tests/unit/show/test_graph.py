"""A pipeline as a graph: one read model, drawn for Markdown and as a picture."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import pytest

from tenuto.core.pipeline.check import check
from tenuto.knowledge import definitions
from tenuto.show.graph import as_mermaid, graph, told
from tenuto.show.graph_svg import as_svg, described

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'end "]; click <script>alert(1)</script> & \x1b[31m #quot; `x`'


def hostile() -> Any:
    steps = [
        {"id": "end", "name": HOSTILE, "agent": {"role": "worker", "focus": HOSTILE, "out": "a.md"}},
        {"id": "graph", "gate": {"prompt": HOSTILE, "revise": "end"}},
    ]
    checked, problems = check({"name": "p", "description": HOSTILE, "documents": "docs/{slug}", "steps": steps})
    assert not problems, problems
    return checked


def edges(found: Any, source: str) -> list[str]:
    return [told(edge) for edge in found["edges"] if edge["source"] == source]


def test_steps_edges_and_bounds_of_quick() -> None:
    found = graph(definitions.load("quick"))
    assert [node["id"] for node in found["nodes"]] == ["plan", "agree", "change", "review"]
    assert found["nodes"][1]["condition"] == "approval is on" and found["nodes"][1]["attempts"] is None
    assert edges(found, "review") == [
        "DONE: completed",
        "NEEDS_REVISION: back to change > review, at most 2 x",
        "NEEDS_REVISION, after 2 x: waits for a person: The review still has findings after two rounds",
        "ERROR: waits for a person: The change could not be reviewed",
    ]
    assert "left out: on to change" in edges(found, "agree")
    assert found["bound"]["attempts"] == sum(node["attempts"] or 0 for node in found["nodes"])


@pytest.mark.parametrize("name", [*definitions.shipped(), *definitions.cookbook()])
def test_every_pipeline_is_drawn_the_same_twice_with_all_of_it_in_words(name: str) -> None:
    path = definitions.COOKBOOK / f"{name}.yaml"
    pipeline = definitions.load(str(path) if path.is_file() else name)
    found = graph(pipeline)
    picture = as_svg(found)
    assert picture == as_svg(graph(pipeline))
    root = ElementTree.fromstring(picture)
    assert root.get("role") == "img" and root.get("aria-labelledby") == "title desc"
    assert root.findtext(f"{SVG}title") == f"The pipeline {name}"
    assert root.findtext(f"{SVG}desc") == described(found)
    assert "prefers-color-scheme: dark" in picture
    boxes = [one for one in root.iter(f"{SVG}rect") if "box" in (one.get("class") or "")]
    assert len(boxes) == len(pipeline["steps"])
    drawn = as_mermaid(found)
    assert drawn.startswith("flowchart TD\n")
    assert sum(line.startswith("  s") and ("-->" in line or "-.->" in line) for line in drawn.splitlines()) == len(
        found["edges"]
    )


def test_boxes_do_not_overlap_and_words_stay_inside() -> None:
    root = ElementTree.fromstring(as_svg(graph(definitions.load("orchestrate"))))
    width = float(root.get("width", "0"))
    boxes = [one for one in root.iter(f"{SVG}rect") if "box" in (one.get("class") or "")]
    places = [(float(one.get("y", "0")), float(one.get("height", "0"))) for one in boxes]
    assert all(top + height < after for (top, height), (after, _) in itertools.pairwise(places))
    # 9.6 is a capital letter of 13 px in a wide font; the rest is narrower.
    for text in root.iter(f"{SVG}text"):
        letters = text.text or ""
        widest = sum(9.6 if letter.isupper() else 7.1 for letter in letters)
        assert float(text.get("x", "0")) + widest <= width + 8 or "faint" in (text.get("class") or ""), letters


def test_hostile_texts_stay_texts() -> None:
    found = graph(hostile())
    root = ElementTree.fromstring(as_svg(found))
    assert not list(root.iter(f"{SVG}script")) and "\x1b" not in as_svg(found)
    for line in as_mermaid(found).splitlines()[1:]:
        inside = line.split('"')[1::2]
        assert len(inside) <= 1 and not any(mark in "".join(inside).replace("<br/>", "") for mark in '<>&`"')
