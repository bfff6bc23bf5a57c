"""Print for people: lines, headings, tables.

Everything printed here passes through `escape_terminal`, so no caller can forget it. Tables fit the
terminal and have colours there (unless NO_COLOR is set); anywhere else they are plain columns,
whole and uncut, for grep and awk. rich is loaded for a terminal only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenuto.encoding import escape_terminal

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {
    "running": "cyan",
    "restarting": "cyan",
    "dispatched": "cyan",
    "created": "cyan",
    "completed": "green",
    "graduated": "green",
    "poc-complete": "green",
    "success": "green",
    "ok": "green",
    "completed with failures": "red",
    "poc-complete with failures": "red",
    "graduated with failures": "red",
    "failed": "red",
    "lost": "red",
    "damage": "red",
    "problem": "red",
    "waiting_gate": "yellow",
    "paused": "yellow",
    "parked": "yellow",
    "stopped": "yellow",
    "blocked": "yellow",
    "note": "yellow",
    "behind": "yellow",
    "cancelled": "dim",
    "pending": "dim",
    "skipped": "dim",
}


class Heading(NamedTuple):
    text: str


class Table(NamedTuple):
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Marked(NamedTuple):
    """A line that begins with a status."""

    status: str
    text: str


Part = str | Heading | Marked | Table


def show(parts: Iterable[Part]) -> None:
    console = _console() if sys.stdout.isatty() else None
    for part in parts:
        if isinstance(part, Table):
            _show_table(part, console)
        elif console is not None:
            _show_line(part, console)
        else:
            sys.stdout.write(escape_terminal(_text(part)) + "\n")


def say(text: str) -> None:
    """Talk: to standard error, never mixed with data."""
    sys.stderr.write(escape_terminal(text) + "\n")


def when(at: str | None) -> str:
    """2025-11-15T08:12:11.000Z as people read it; UTC, and it says so."""
    return f"{at[:10]} {at[11:19]}Z" if at and len(at) > 19 else at or "-"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _text(part: str | Heading | Marked) -> str:
    if isinstance(part, Marked):
        return f"{part.status:<8} {part.text}"
    return part.text if isinstance(part, Heading) else part


def _show_line(part: str | Heading | Marked, console: Console) -> None:
    from rich.text import Text

    line = Text(escape_terminal(_text(part)), style="bold" if isinstance(part, Heading) else "")
    if isinstance(part, Marked):
        line.stylize(COLOURS.get(part.status, ""), 0, len(part.status))
    console.print(line, soft_wrap=True)


def _console() -> Console:
    from rich.console import Console

    bare = bool(os.environ.get("NO_COLOR"))
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, color_system=None if bare else "auto")


def _show_table(table: Table, console: Console | None) -> None:
    rows = [tuple(escape_terminal(cell) for cell in row) for row in table.rows]
    if console is None:
        _show_plainly(table.heads, rows)
        return
    from rich.cells import cell_len
    from rich.text import Text

    natural = [max(cell_len(cell) for cell in column) for column in zip(table.heads, *rows, strict=True)]
    widths = _fitted(natural, console.width)
    coloured = table.heads.index("STATUS") if "STATUS" in table.heads else -1
    for row in (table.heads, *rows):
        line = Text(style="bold" if row is table.heads else "")
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            shown = Text(cell, style=COLOURS.get(cell, "") if number == coloured else "")
            shown.truncate(width, overflow="ellipsis", pad=number < len(widths) - 1)
            line.append("  " if number else "").append_text(shown)
        console.print(line, no_wrap=True, crop=False, soft_wrap=True)


def _fitted(natural: list[int], width: int) -> list[int]:
    """The last column gives way first, down to a third of the line; then the widest of the others."""
    room = width - 2 * (len(natural) - 1)
    widths = [min(cells, width) for cells in natural]
    while sum(widths) > room and max(widths) > 1:
        last = len(widths) - 1
        widths[last if widths[last] > room // 3 else widths.index(max(widths))] -= 1
    return widths


def _show_plainly(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(_cells, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        line = "  ".join(cell + " " * (width - _cells(cell)) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")


def _cells(text: str) -> int:
    """How wide a terminal draws it."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
