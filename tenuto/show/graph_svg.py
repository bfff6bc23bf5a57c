"""A pipeline's graph as SVG: one file, no script, no font of its own, the same bytes for the same graph.

    as_svg(graph) -> text

The steps stand in one column, from top to bottom. On the left, lanes lead back; on the right stands in words what
follows each outcome. Colours fit a light and a dark page; no meaning is in the colour alone. A screen reader gets a
title and a description that says all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import NamedTuple

from tenuto.show.graph import Edge, Graph, Node, told

_BOX, _LANE, _GAP, _LINE, _NOTE = 300, 16, 26, 17, 62
_MARKS = {"on": "→", "back": "↩", "left-out": "⤵", "pause": "‖", "block": "■", "fail": "✕", "finish": "✓"}
_KINDS = {
    "agent": "agent",
    "cluster": "side by side",
    "waves": "item by item",
    "gate": "a person decides",
    "action": "the engine",
    "command": "command",
}
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1e293b }
.page { fill: #ffffff }
.box { fill: #f8fafc; stroke: #64748b; stroke-width: 1.5 }
.gate { fill: #fef3c7; stroke: #b45309 }
.aside { stroke-dasharray: 6 4 }
.title { font-weight: 600; font-size: 14px }
.faint { fill: #64748b; font-size: 11.5px }
.name { font-weight: 700; font-size: 17px }
.line { fill: none; stroke: #64748b; stroke-width: 1.5 }
.back { stroke: #1d4ed8 }
.head { fill: #64748b }
.back-head { fill: #1d4ed8 }
.m-back { fill: #1d4ed8 } .m-fail { fill: #b91c1c } .m-pause, .m-block { fill: #b45309 } .m-finish { fill: #15803d }
@media (prefers-color-scheme: dark) {
  text { fill: #e2e8f0 }
  .page { fill: #0f172a }
  .box { fill: #1e293b; stroke: #94a3b8 }
  .gate { fill: #422006; stroke: #f59e0b }
  .faint { fill: #94a3b8 }
  .line { stroke: #94a3b8 }
  .back { stroke: #93c5fd }
  .head { fill: #94a3b8 }
  .back-head { fill: #93c5fd }
  .m-back { fill: #93c5fd } .m-fail { fill: #fca5a5 } .m-pause, .m-block { fill: #fbbf24 } .m-finish { fill: #86efac }
}
""".strip()


class _Row(NamedTuple):
    node: Node
    lines: list[str]  # below its title
    notes: list[tuple[str, str]]  # mark's class and text; the class is "" for a line that goes on
    top: int
    height: int  # of the box

    @property
    def middle(self) -> int:
        return self.top + self.height // 2


def as_svg(shown: Graph) -> str:
    rows = list(_rows(shown))
    places = {row.node["id"]: row for row in rows}
    lanes = _lanes([edge for edge in shown["edges"] if edge["kind"] == "back"], places)
    left = 28 + _LANE * max((lane for _, lane in lanes), default=0)
    widest = max((_width(text) for row in rows for _, text in row.notes), default=0)
    width = max(left + _BOX + 40 + widest + 24, 520)
    bottom = max(row.top + max(row.height, _LINE * len(row.notes)) for row in rows)
    height = bottom + 50
    parts = [
        _opening(width, height),
        f'<title id="title">{_safe("The pipeline " + shown["name"])}</title>',
        f'<desc id="desc">{_safe(described(shown))}</desc>',
        f"<style>{_STYLE}</style>",
        "<defs>",
        *(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            f'<path class="{name}" d="M0 0 8 4 0 8z"/></marker>'
            for name in ("head", "back-head")
        ),
        "</defs>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        _text(24, 34, shown["name"], "name"),
        _text(24, 54, _cut(shown["description"], width // 7), "faint"),
        *_ways_on(rows, left),
        *_ways_back(lanes, places, left),
        *(part for row in rows for part in _drawn(row, left)),
        _text(left, height - 16, _summary(shown), "faint"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _opening(width: int, height: int) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">'


def _rows(shown: Graph) -> Iterator[_Row]:
    top = 78
    following = {one["id"]: two["id"] for one, two in pairwise(shown["nodes"])}
    for node in shown["nodes"]:
        lines = [part for worker in node["workers"] for part in wrap(worker, 42)[:2]]
        condition = wrap(f"only where {node['condition']}", 46)[:2] if node["condition"] else []
        notes: list[tuple[str, str]] = []
        for edge in shown["edges"]:
            plain = edge["kind"] == "on" and edge["outcomes"] in (["DONE"], ["approve"])
            if edge["source"] != node["id"] or (plain and edge["target"] == following.get(node["id"])):
                continue
            first, *rest = wrap(told(edge), _NOTE, break_on_hyphens=False) or [""]
            notes += [(edge["kind"], first), *(("", line) for line in rest)]
        height = 46 + 16 * (len(lines) + len(condition))
        yield _Row(node, [*lines, *condition], notes, top, height)
        top += max(height, _LINE * len(notes)) + _GAP


def _lanes(edges: list[Edge], places: dict[str, _Row]) -> list[tuple[Edge, int]]:
    """Each way back in the innermost lane that is free between its two steps."""
    taken: dict[int, list[tuple[int, int]]] = {}
    found: list[tuple[Edge, int]] = []
    for edge in sorted(edges, key=lambda one: places[one["source"]].top - places[one["target"]].top):
        low, high = sorted((places[edge["target"]].middle, places[edge["source"]].middle))
        lane = 1
        while any(low <= other[1] and other[0] <= high for other in taken.get(lane, ())):
            lane += 1
        taken.setdefault(lane, []).append((low, high))
        found.append((edge, lane))
    return found


def _ways_on(rows: list[_Row], left: int) -> Iterator[str]:
    on = [row for row in rows if not row.node["aside"]]
    x = left + _BOX // 2
    for row, after in pairwise(on):
        if rows.index(after) == rows.index(row) + 1:
            yield _path(f"M{x} {row.top + row.height}V{after.top - 1}", "line", "head")
        else:  # steps aside stand between the two
            right = left + _BOX + 12
            yield _path(
                f"M{left + _BOX} {row.middle}H{right}V{after.top - _GAP // 2}H{x}V{after.top - 1}", "line", "head"
            )


def _ways_back(lanes: list[tuple[Edge, int]], places: dict[str, _Row], left: int) -> Iterator[str]:
    for edge, lane in lanes:
        source, target = places[edge["source"]], places[edge["target"]]
        x = left - _LANE * lane
        down, up = (0, 0) if source is not target else (10, -10)
        start, end = source.middle + 8 + down, target.middle - 8 + up
        yield _path(f"M{left} {start}H{x}V{end}H{left - 1}", "line back", "back-head")


def _drawn(row: _Row, left: int) -> Iterator[str]:
    node = row.node
    classes = " ".join(["box", *(["gate"] if node["kind"] == "gate" else []), *(["aside"] if node["aside"] else [])])
    yield f'<rect class="{classes}" x="{left}" y="{row.top}" width="{_BOX}" height="{row.height}" rx="6"/>'
    yield _text(left + 12, row.top + 20, _cut(node["title"], 38), "title")
    kind = _KINDS.get(node["kind"], node["kind"]) + (", only by a route" if node["aside"] else "")
    most = f", at most {node['attempts']} attempts" if node["attempts"] else ""
    yield _text(left + 12, row.top + 36, f"{kind}{most}", "faint")
    for number, line in enumerate(row.lines):
        yield _text(left + 12, row.top + 53 + 16 * number, line, "")
    for number, (mark, line) in enumerate(row.notes):
        y = row.top + 14 + _LINE * number
        if mark:
            yield _text(left + _BOX + 22, y, _MARKS[mark], f"m-{mark}")
        yield _text(left + _BOX + 40, y, line, "")


def described(shown: Graph) -> str:
    """All of the picture, in sentences."""
    parts = [f"{shown['description']} {_summary(shown)}."]
    for node in shown["nodes"]:
        edges = [told(edge) for edge in shown["edges"] if edge["source"] == node["id"]]
        workers = f", {'; '.join(node['workers'])}" if node["workers"] else ""
        parts.append(f"{node['title']} ({_KINDS.get(node['kind'], node['kind'])}{workers}): {'; '.join(edges)}.")
    return " ".join(part.strip() for part in parts)


def _summary(shown: Graph) -> str:
    bound = shown["bound"]
    items = f" for {bound['items']} items" if any(node["kind"] == "waves" for node in shown["nodes"]) else ""
    return f"At most {bound['attempts']} attempts{items}, {shown['cap']} at a time"


def _path(line: str, classes: str, marker: str) -> str:
    return f'<path class="{classes}" d="{line}" marker-end="url(#{marker})"/>'


def _text(x: int, y: int, words: str, classes: str) -> str:
    named = f' class="{classes}"' if classes else ""
    return f'<text x="{x}" y="{y}"{named}>{_safe(words)}</text>'


def _width(text: str) -> int:
    """An upper bound of what 13 px of any usual font take."""
    return int(
        sum(9.6 if letter.isupper() or letter in "_%@" else 14.0 if ord(letter) > 0x2FF else 7.1 for letter in text)
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _safe(text: str) -> str:
    """XML has no place for most control characters, even escaped."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))
