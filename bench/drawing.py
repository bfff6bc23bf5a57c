"""Plots as small SVG files, without a plotting library: bars of ratios to a limit, and curves of growth."""

from __future__ import annotations

import math
from html import escape
from itertools import cycle

from bench.measured import Bars, Curves, number

WIDTH, LEFT, RIGHT = 720, 210, 90
OURS, OTHERS, INK, FAINT, WARN = "#0f766e", "#94a3b8", "#1e293b", "#cbd5e1", "#b45309"
GREENS = (OURS, "#059669", "#65a30d")
PALETTE = ("#7c3aed", "#b45309", "#475569", "#be123c")


def draw(plot: Bars | Curves) -> str:
    return draw_bars(plot) if isinstance(plot, Bars) else draw_curves(plot)


def draw_bars(plot: Bars) -> str:
    height = 70 + 30 * len(plot.rows)
    largest = max([value for _, value in plot.rows] + [plot.target or 1.0, 1.0])
    left = max(LEFT, 30 + int(6.9 * max(len(name.removeprefix("Tenuto: ")) for name, _ in plot.rows)))
    span = WIDTH - left - RIGHT
    logarithmic = largest > 12

    def at(value: float) -> float:
        if logarithmic:
            return left + span * max(0.0, math.log10(max(value, 0.5) / 0.5)) / math.log10(largest / 0.5)
        return left + span * value / largest

    parts = [text(16, 26, plot.title, 15, weight="bold")]
    for row, (name, value) in enumerate(plot.rows):
        y = 46 + 30 * row
        colour = OURS if name.startswith("Tenuto") else OTHERS
        parts.append(text(left - 10, y + 15, name.removeprefix("Tenuto: "), 13, anchor="end"))
        parts.append(
            f'<rect x="{left}" y="{y}" width="{max(1.0, at(value) - left):.1f}" height="20" rx="2" fill="{colour}"/>'
        )
        place = at(value) + 6
        for line in (1.0, plot.target or 1.0):  # beside a line, not across it
            place = at(line) + 6 if place - 2 < at(line) < place + 32 else place
        parts.append(text(place, y + 15, number(value), 13))
    bottom = 46 + 30 * len(plot.rows)
    parts.append(mark(at(1.0), bottom, plot.one, INK))
    if plot.target is not None:
        parts.append(mark(at(plot.target), bottom, f"target {plot.target:g}", WARN, dashed=True))
    if logarithmic:
        parts.append(text(WIDTH - 16, bottom + 16, "logarithmic", 11, anchor="end"))
    return framed(height, parts)


def mark(x: float, bottom: float, words: str, colour: str, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    # Limit and target may stand close together: one is named to the left of its line, one to the right.
    side = text(x + 4, bottom + 16, words, 11, colour) if dashed else text(x - 4, bottom + 16, words, 11, colour, "end")
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="38" y2="{bottom + 6}" stroke="{colour}" stroke-width="1.5"{dash}/>{side}'
    )


def draw_curves(plot: Curves) -> str:
    height, top, bottom, left = 340, 50, 290, 80
    values = [value for found in plot.series.values() for value in found if value > 0] + [plot.target or 1.0] * (
        plot.target is not None
    )
    low, high = math.floor(math.log10(min(values) * 0.8)), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    first, last = math.log10(plot.x[0]), math.log10(plot.x[-1])
    right = WIDTH - 220

    def across(value: float) -> float:
        return left + (right - left) * (math.log10(value) - first) / (last - first)

    def up(value: float) -> float:
        return bottom - (bottom - top) * (math.log10(value) - low) / (high - low)

    parts = [text(16, 26, plot.title, 15, weight="bold")]
    for power in range(low, high + 1):
        y = up(10.0**power)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{FAINT}"/>')
        parts.append(text(left - 8, y + 4, f"{10.0**power:g}", 11, anchor="end"))
    for value in plot.x:
        parts.append(text(across(value), bottom + 18, f"{value:,.0f}", 11, anchor="middle"))
    parts.append(text((left + right) / 2, bottom + 38, plot.across, 12, anchor="middle"))
    parts.append(text(WIDTH - 16, bottom + 38, "both axes logarithmic", 11, anchor="end"))
    parts.append(text(left - 64, top - 8, plot.up, 11))
    shades = {True: cycle(GREENS), False: cycle(PALETTE)}
    labels: list[tuple[float, str, str]] = []
    for name, found in sorted(plot.series.items(), key=lambda pair: -pair[1][-1]):
        colour = next(shades[name.startswith("Tenuto")])
        points = [(across(x), up(y)) for x, y in zip(plot.x, found, strict=False) if y > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        labels.append((points[-1][1] + 4, name, colour))
    if plot.target is not None:
        y = up(plot.target)
        parts.append(
            f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{WARN}" stroke-width="1.5" '
            'stroke-dasharray="5 4"/>'
        )
        parts.append(text(16, bottom + 38, f"- - target of {plot.targeted}: {plot.target:g} {plot.up}", 11, WARN))
    parts += [text(right + 12, y, name, 12, colour) for y, name, colour in apart(labels, bottom + 2)]
    return framed(height, parts)


def apart(labels: list[tuple[float, str, str]], lowest: float) -> list[tuple[float, str, str]]:
    """From the top down: none across another, none among the words of the axis."""
    placed: list[float] = []
    for y, _, _ in labels:
        placed.append(max(y, placed[-1] + 16 if placed else 0.0))
    for place in reversed(range(len(placed))):
        placed[place] = min(placed[place], lowest)
        lowest = placed[place] - 16
    return [(y, name, colour) for y, (_, name, colour) in zip(placed, labels, strict=True)]


def text(
    x: float, y: float, words: str, size: int, colour: str = INK, anchor: str = "start", weight: str = "normal"
) -> str:
    bold = f' font-weight="{weight}"' if weight != "normal" else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{side}{bold}>{escape(words)}</text>'


def framed(height: int, parts: list[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" role="img">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff" stroke="{FAINT}"/>\n{body}\n</svg>\n'
    )
