"""The score: a run as a drawing, made here, bounded by pixels and never by attempts.

Each lane is a step of the pipeline, in its order; each block a visit; each bar an attempt; a fermata a gate. A step to
come is dotted, one that was left out is dashed. A claim that was refuted is dashed red, work sent back is hatched, and
the critical path is outlined, so no meaning is in a colour alone. Stretches in which nothing was under way are folded
to a break that says how long they were. Bars of one row that would be under two pixels wide become one.

The drawing is an ornament to programs that read pages aloud: the table that always stands below it says the same.
Places on the axis come from show/score.py, where stretches of nothing take up little of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import htpy as h

from tenuto.core.times import between
from tenuto.pages import addresses
from tenuto.pages.parts import State, state_of, strokes
from tenuto.show.measures import span

if TYPE_CHECKING:
    from tenuto.show.score import BarView, BlockView, FoldView, LaneView, RestView, ScoreView

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 1120, 196, 14, 30, 8
_BAR, _ROW, _LANE = 11, 14, 26
_ROWS = 12  # of one lane; what does not fit stands in the last
_THIN = 2.0  # pixels
_IN_FLIGHT = ("dispatched", "running")
_KINDS = {
    "done": ("well", "DONE"),
    "again": ("you", "sent back"),
    "refuted": ("bad", "its claim was refuted"),
    "failed": ("bad", "failed"),
    "lost": ("idle", "lost"),
    "in-flight": ("work", "at work"),
}
_WORST = ("refuted", "failed", "in-flight", "again", "lost", "done")
_FAINT = ("pending", "left-out")


class _Bar(NamedTuple):
    """One attempt, or a crowd of them that are too thin to tell apart."""

    left: float  # pixels
    right: float
    kind: str
    label: str
    href: str
    is_critical: bool


class _Scale:
    """Places on the score's axis to pixels; what lies outside the window stands at its edge."""

    def __init__(self, left: int, right: int) -> None:
        self.left, self.right = left, max(right, left + 1)
        self._pixels = (_WIDTH - _LEFT - _RIGHT) / (self.right - self.left)

    def x(self, place: float) -> float:
        return _LEFT + (min(max(place, self.left), self.right) - self.left) * self._pixels

    def holds(self, left: int, right: int) -> bool:
        return right >= self.left and left <= self.right


def kind_of(status: str, verdict: str | None, is_refuted: bool) -> str:
    """What an attempt is drawn as."""
    if status in _IN_FLIGHT:
        return "in-flight"
    if status == "lost":
        return "lost"
    if is_refuted:
        return "refuted"
    return {"DONE": "done", "NEEDS_REVISION": "again"}.get(verdict or "", "failed")


# ---- the drawing


def drawing(run: str, view: ScoreView, window: tuple[int, int] | None = None) -> h.Element:
    """`run`: where its links lead; empty: nowhere, in a file of its own."""
    scale = _Scale(*(window or (0, view["width"])))
    folds = [fold for fold in view["folds"] if scale.holds(fold["left"], fold["right"])]
    staves: list[h.Node] = []
    drawn: list[h.Node] = []
    top = _TOP
    for lane in view["lanes"]:
        bars = [bar for bar in lane["bars"] if scale.holds(bar["left"], bar["right"])]
        rows = min(max((bar["lane"] + 1 for bar in bars), default=1), _ROWS)
        height = max(_LANE, rows * _ROW + 9)
        staves.append(_staff(run, lane, top, height))
        drawn.append(_lane(run, lane, bars, rows, top, height, scale))
        top += height
    size = {"viewBox": f"0 0 {_WIDTH} {top + _BOTTOM}"}
    return h.svg(
        size, class_="sheet-music", aria_hidden="true", data_left=str(scale.left), data_right=str(scale.right)
    )[
        _ticks(view, scale, top),
        staves,
        (_fold(fold, scale, top) for fold in folds),
        drawn,
    ]


def _ticks(view: ScoreView, scale: _Scale, bottom: int) -> Iterator[h.Node]:
    """Moments since the start, in the time that really passed; none where a stretch is folded."""
    yield _words(_LEFT, 16, "start" if scale.left == 0 else "", "tick")
    step = next((one for one in _STEPS if scale.x(scale.left + one) - _LEFT >= 92), _STEPS[-1])
    taken = [(_LEFT - 20.0, _LEFT + 20.0)]
    taken += [(scale.x(fold["left"]) - 30, scale.x(fold["right"]) + 30) for fold in view["folds"]]
    at, hidden = 0, 0  # the end of the last fold on the axis, and what the folds before it hide
    for end, more in [*((fold["left"], fold) for fold in view["folds"]), (view["width"], None)]:
        first = -(-(max(at, scale.left) + hidden) // step)
        for moment in range(first * step, min(end, scale.right) + hidden + 1, step):
            x = scale.x(moment - hidden)
            if not any(a < x + 22 and x - 22 < b for a, b in taken):
                taken.append((x - 30, x + 30))
                yield h.path(class_="grid", d=f"M{x:.1f} {_TOP - 8}V{bottom}")
                yield _words(x, 16, f"+{_moment(moment)}", "tick", "middle")
        if more:
            at = more["right"]
            hidden += more["ms"] - (more["right"] - more["left"])


_STEPS = [
    number * unit
    for unit, numbers in (
        (1, (100, 200, 500)),
        (1000, (1, 2, 5, 10, 15, 30)),
        (60_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000, (1, 2, 6, 12)),
        (86_400_000, (1, 2, 7, 30, 90)),
    )
    for number in numbers
]


def _staff(run: str, lane: LaneView, top: int, height: int) -> h.Node:
    faint = lane["state"] if lane["state"] in _FAINT else ""
    middle = top + height / 2
    times = f" ×{lane['visits']}" if lane["visits"] > 1 else ""
    name = lane["step"] if len(lane["step"]) <= 20 else lane["step"][:19] + "…"
    line = f"M{_LEFT} {middle if faint else top + height:.1f}H{_WIDTH - _RIGHT}"
    words = _words(30, middle + 4.5, name + times, f"name {faint}".strip())
    return [
        _glyph(lane_state(lane), 6, middle - 8),
        _link(run, addresses.run(run, step=lane["step"]) + "#step")[words] if lane["bars"] else words,
        h.path(class_=f"staff {faint}".strip(), d=line)[h.title[lane["reason"]] if lane["reason"] else None],
    ]


def lane_state(lane: LaneView) -> State:
    if lane["state"] == "here":
        return (
            State("you", "fermata", "waits")
            if any(not rest["decision"] for rest in lane["rests"])
            else state_of("running")
        )
    return state_of(lane["state"])


def _lane(
    run: str, lane: LaneView, bars: Sequence[BarView], count: int, top: int, height: int, scale: _Scale
) -> h.Node:
    rows: dict[int, list[BarView]] = {}
    for bar in bars:
        rows.setdefault(min(bar["lane"], _ROWS - 1), []).append(bar)
    inset = top + (height - count * _ROW) / 2 + (_ROW - _BAR) / 2
    return [
        (
            _block(run, lane, block, top, height, scale)
            for block in lane["blocks"]
            if lane["bars"] and not block["item"]
        ),
        (_rest(rest, top, height, scale) for rest in lane["rests"] if scale.holds(rest["left"], rest["right"])),
        (_bar(bar, inset + row * _ROW) for row, mine in rows.items() for bar in _merged(run, mine, scale)),
    ]


def _block(run: str, lane: LaneView, block: BlockView, top: int, height: int, scale: _Scale) -> h.Node:
    if not scale.holds(block["left"], block["right"]):
        return None
    a, b = scale.x(block["left"]), scale.x(block["right"])
    closer = addresses.run(run, **{"from": block["left"], "to": block["right"]}) + "#score"
    return _link(run, closer)[
        h.rect(".visit", x=_n(a - 2), y=str(top + 2), width=_n(max(b - a, 1) + 4), height=str(height - 4), rx="5")[
            h.title[f"{lane['step']}, visit {block['visit']}: look closer"]
        ]
    ]


def _bar(bar: _Bar, y: float) -> h.Node:
    tone, words = _KINDS[bar.kind]
    classes = {
        "refuted": "bar refuted-bar",
        "lost": "bar lost",
        "again": "again",
        "in-flight": f"bar in-flight {tone}",
    }.get(bar.kind, f"bar {tone}")
    width = max(_THIN, bar.right - bar.left - 0.6)
    rounded = "3" if width > 6 else "1"
    fill = "url(#again)" if bar.kind == "again" else None  # in a style, it would be looked for in the style's file
    shape = h.rect(x=_n(bar.left), y=_n(y), width=_n(width), class_=classes, height=str(_BAR), rx=rounded, fill=fill)
    outline = None
    if bar.is_critical:
        outline = h.rect(
            ".critical", x=_n(bar.left - 1.5), y=_n(y - 1.5), width=_n(width + 3), height=str(_BAR + 3), rx="4"
        )
    cross = None
    if bar.kind in ("failed", "refuted") and width > 16:
        x, middle = bar.left + width / 2, y + _BAR / 2
        sign = "bar-sign" if bar.kind == "failed" else "bar-sign bad-sign"
        cross = h.path(class_=sign, d=f"M{x - 3:.1f} {middle - 3:.1f}l6 6m0-6l-6 6")
    return _link(bar.href, bar.href)[shape[h.title[f"{bar.label}: {words}"]], outline, cross]


def _merged(run: str, row: Sequence[BarView], scale: _Scale) -> Iterator[_Bar]:
    """Neighbours that would be too thin to tell apart become one; the worst of them gives it its kind."""
    crowd: list[_Bar] = []
    for view in row:
        bar = _single(run, view, scale)
        if crowd and (bar.right - crowd[0].left >= 2 * _THIN or bar.left - crowd[-1].right >= _THIN):
            yield _joined(crowd)
            crowd = []
        crowd.append(bar)
    if crowd:
        yield _joined(crowd)


def _single(run: str, view: BarView, scale: _Scale) -> _Bar:
    took = f", {span(between(view['started_at'], view['ended_at']))}" if view["ended_at"] else ""
    return _Bar(
        scale.x(view["left"]),
        scale.x(view["right"]),
        kind_of(view["status"], view["verdict"], view["is_refuted"]),
        f"{view['attempt']}{took}",
        addresses.attempt(run, view["attempt"]) if run else "",
        view["is_critical"],
    )


def _joined(crowd: Sequence[_Bar]) -> _Bar:
    worst = min(crowd, key=lambda bar: _WORST.index(bar.kind))
    if len(crowd) == 1:
        return worst
    label = f"{len(crowd)} attempts, among them {worst.label}"
    right = max(bar.right for bar in crowd)
    return _Bar(crowd[0].left, right, worst.kind, label, worst.href, any(bar.is_critical for bar in crowd))


def _rest(rest: RestView, top: int, height: int, scale: _Scale) -> h.Node:
    a, b = scale.x(rest["left"]), scale.x(rest["right"])
    a = min(a, _WIDTH - _RIGHT - 24)
    width = max(b - a, 24)
    outcome = f"{rest['decision']} by {rest['who']}" if rest["decision"] else "it waits for a decision"
    label = f"{rest['gate']}: {outcome}, after {span(rest['waited_ms'])}"
    return h.g[
        h.title[label],
        h.rect(".held", x=_n(a), y=str(top + 3), width=_n(width), height=str(height - 6), rx="4"),
        _glyph(State("you", "fermata", ""), a + 3, top + height / 2 - 10, 0.75),
    ]


def _fold(fold: FoldView, scale: _Scale, bottom: int) -> h.Node:
    a, b = scale.x(fold["left"]), scale.x(fold["right"])
    return h.g[
        h.title[f"{span(fold['ms'])} in which nothing was under way"],
        h.rect(".fold", x=_n(a + 3), y=str(_TOP - 8), width=_n(max(b - a - 6, 1)), height=str(bottom - _TOP + 8)),
        (h.path(class_="fold-line", d=_wave(x, _TOP - 8, bottom)) for x in (a + 3, b - 3)),
        _words((a + b) / 2, 16, _moment(fold["ms"]), "fold-text", "middle"),
    ]


def _link(run: str, address: str) -> h.Element:
    """Not a stop of the Tab key: the table below has the same links."""
    return h.a(href=address, tabindex="-1") if run else h.g


def _n(number: float) -> str:
    return f"{number:.1f}"


def _wave(x: float, top: int, bottom: int) -> str:
    bends = max(1, (bottom - top) // 16)
    return f"M{x:.1f} {top}" + "q4 4 0 8t0 8" * bends


def _glyph(state: State, x: float, y: float, scale: float = 0.68) -> h.Element:
    return h.g(class_=f"glyph {state.tone}", transform=f"translate({x:.1f} {y:.1f}) scale({scale})")[
        strokes(state.mark)
    ]


def _words(x: float, y: float, words: str, classes: str, anchor: str = "") -> h.Element:
    return h.text({"text-anchor": anchor} if anchor else {}, x=f"{x:.1f}", y=f"{y:.1f}", class_=classes)[words]


def _moment(milliseconds: float) -> str:
    """10m, 1h 05m, 2.5s: short enough for a tick."""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.0f}s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s" if rest else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours // 24}d {hours % 24}h" if hours >= 48 else f"{hours}h {minutes:02d}m" if minutes else f"{hours}h"


def patterns() -> h.Element:
    """Hatchings that the drawings use, once in a page."""
    hatch = {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    return h.svg(width="0", height="0", class_="hidden", aria_hidden="true")[
        h.defs[
            h.pattern(hatch, id="again", width="5", height="5")[
                h.rect(".again-wash", width="5", height="5"), h.path(class_="again-line", d="M1.5 0v5")
            ],
            h.pattern(id="reserved", width="3", height="10", patternUnits="userSpaceOnUse")[
                h.path(class_="stripe", d="M0 0v10")
            ],
        ]
    ]


def legend() -> h.Element:
    entries: tuple[tuple[str, str], ...] = (
        ("bar well", "done"),
        ("again", "sent back"),
        ("bar refuted-bar", "refuted claim"),
        ("bar bad", "failed"),
        ("bar work", "at work"),
        ("critical", "critical path"),
    )
    return h.p(class_="legend")[
        (
            h.span[
                h.svg({"viewBox": "0 0 24 12"}, aria_hidden="true")[
                    h.rect(
                        class_=classes,
                        x="1",
                        y="1",
                        width="22",
                        height="10",
                        rx="3",
                        fill="url(#again)" if classes == "again" else None,
                    )
                ],
                words,
            ]
            for classes, words in entries
        ),
        h.span[
            h.svg({"viewBox": "0 0 24 12"}, aria_hidden="true")[
                h.g(".glyph.you", transform="translate(6 0) scale(.55)")[strokes("fermata")]
            ],
            "waited for a person",
        ],
    ]
