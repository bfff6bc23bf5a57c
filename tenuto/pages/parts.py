"""The parts that pages are made of: marks, words for states, moments, lengths, commands to copy, facts, tables.

A state is shown by a mark with a shape of its own, a word, and a colour last. Every moment stands there in full
(`<time datetime>`); the script turns it into "6m ago" where there is one, so the same record makes the same HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import htpy as h

Tone = Literal["well", "work", "you", "bad", "idle"]

# ---- marks: 24 x 24, drawn with one pen; no font has all of them

_MARKS: dict[str, tuple[str, ...]] = {
    "fermata": ("M3 17a9 9 0 0 1 18 0", "."),
    "question": ("M8.5 9a3.5 3.5 0 1 1 5.2 3c-1.1.7-1.7 1.3-1.7 2.6", "M12 18.6v.1", "M12 2a10 10 0 1 0 .01 0"),
    "pause": ("M9 6v12", "M15 6v12"),
    "blocked": ("M12 2a10 10 0 1 0 .01 0", "M5 5l14 14"),
    "cross": ("M6 6l12 12", "M18 6L6 18"),
    "check": ("M4.5 12.5l5 5 10-11",),
    "work": ("M12 3a9 9 0 1 1-9 9", "M12 8v4l3 2"),
    "clock": ("M12 2.5a9.5 9.5 0 1 0 .01 0", "M12 7v5l4 2"),
    "alone": ("M12 2.5a9.5 9.5 0 1 0 .01 0", "M12 7v6", "M12 17v.1"),
    "pending": (
        "M12 4v.1",
        "M20 12v.1",
        "M12 20v.1",
        "M4 12v.1",
        "M6.3 6.3v.1",
        "M17.7 6.3v.1",
        "M17.7 17.7v.1",
        "M6.3 17.7v.1",
    ),
    "left-out": ("M5 12h4", "M15 12h4"),
    "again": ("M4 10h10a5 5 0 0 1 0 10h-3", "M8 6l-4 4 4 4"),
    "lost": ("M4 12h3", "M10 12h.1", "M14 12h.1", "M17 12h3"),
    "lock": ("M6 11h12v9H6z", "M8.5 11V8a3.5 3.5 0 0 1 7 0v3"),
    "seal": ("M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z", "M9 12l2 2 4-4"),
    "document": ("M6 3h8l4 4v14H6z", "M14 3v4h4", "M9 12h6", "M9 16h6"),
    "look": (
        "M2.5 12s3.5-6 9.5-6 9.5 6 9.5 6-3.5 6-9.5 6-9.5-6-9.5-6z",
        "M12 9.5a2.5 2.5 0 1 0 .01 0",
    ),
    "theme": ("M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",),
    "bell": ("M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15z", "M10.5 21h3"),
}


def strokes(name: str) -> list[h.Element]:
    """The lines of a mark, for a drawing that has a pen of its own."""
    return [
        h.circle(".solid", cx="12", cy="16", r="2.2") if line == "." else h.path(d=line)
        for line in _MARKS.get(name, _MARKS["alone"])
    ]


def mark(name: str, label: str = "", tone: Tone | None = None) -> h.Element:
    """Without a label it is an ornament: the word beside it says the same."""
    named = {"role": "img", "aria-label": label} if label else {"aria-hidden": "true"}
    classes = ["mark", *([tone, "toned"] if tone else [])]
    return h.svg({"viewBox": "0 0 24 24"}, named, class_=" ".join(classes))[strokes(name)]


# ---- states


class State(NamedTuple):
    tone: Tone
    mark: str
    words: str


STATES: dict[str, State] = {
    "created": State("work", "work", "just begun"),
    "running": State("work", "work", "running"),
    "restarting": State("work", "again", "starting anew"),
    "poc-complete": State("well", "check", "proof of concept done"),
    "waiting_gate": State("you", "fermata", "waits for your decision"),
    "paused": State("you", "pause", "paused"),
    "stopped": State("you", "pause", "stopped"),
    "parked": State("idle", "clock", "parked"),
    "blocked": State("bad", "blocked", "blocked"),
    "completed": State("well", "check", "completed"),
    "graduated": State("well", "check", "graduated"),
    "completed with failures": State("bad", "alone", "completed with failures"),
    "poc-complete with failures": State("bad", "alone", "proof of concept done, with failures"),
    "graduated with failures": State("bad", "alone", "graduated with failures"),
    "cancelled": State("idle", "cross", "cancelled"),
    "failed": State("bad", "cross", "failed"),
    # what a step, an attempt or an item may be besides
    "success": State("well", "check", "done"),
    "done": State("well", "check", "done"),
    "skipped": State("idle", "left-out", "left out"),
    "left-out": State("idle", "left-out", "left out"),
    "pending": State("idle", "pending", "to come"),
    "dispatched": State("work", "work", "handed out"),
    "in_progress": State("work", "work", "at work"),
    "waiting": State("you", "fermata", "waits"),
    "lost": State("idle", "lost", "lost"),
    "error": State("bad", "cross", "error"),
    "stalled": State("you", "alone", "running, and nobody drives it"),
    "DONE": State("well", "check", "DONE"),
    "NEEDS_REVISION": State("you", "again", "NEEDS_REVISION"),
    "ERROR": State("bad", "cross", "ERROR"),
}


def state_of(status: str) -> State:
    """A status that this page does not know is shown by its own word, never hidden."""
    return STATES.get(status) or State("idle", "alone", status or "unknown")


def badge(state: State) -> h.Element:
    return h.span(class_=f"badge {state.tone}")[mark(state.mark), state.words]


def verdict(word: str | None, status: str = "") -> h.Element:
    state = state_of(word or status)
    return h.span(class_=f"verdict {state.tone}")[mark(state.mark), state.words]


# ---- moments, lengths, amounts


def moment(at: str | None, ago: bool = False) -> h.Node:
    """2026-11-18T20:23:10.123Z as 18 Nov 20:23:10; with `ago`, a script says how long ago that was."""
    if not at:
        return None
    date, _, clock = at.partition("T")
    months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    year, _, rest = date.partition("-")
    month, _, day = rest.partition("-")
    known = year.isdigit() and month.isdigit() and 1 <= int(month) <= 12 and day.isdigit()
    shown = f"{int(day)} {months[int(month) - 1]} {clock[:5]}" if known else at
    if ago:
        return h.time(datetime=at, data_ago="1")[shown]
    return h.time(datetime=at, title=f"{at[:19].replace('T', ' ')} UTC")[shown]


def clock(at: str) -> h.Element:
    return h.time(datetime=at, title=f"{at[:19].replace('T', ' ')} UTC")[at[11:19] or at]


def short_hash(digest: str | None) -> h.Node:
    return h.span(class_="seal", title=f"SHA-256 {digest}")[digest[:12]] if digest else None


def path_words(path: str) -> h.Node:
    """A path that may be broken behind each slash, and nowhere else."""
    return [[part, "/", h.wbr] for part in path.split("/")[:-1]] + [path.rpartition("/")[2]]


def size(count: int) -> str:
    if count < 1000:
        return f"{count} bytes" if count != 1 else "1 byte"
    return f"{count / 1000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def counted(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


# ---- pieces


def command(line: str) -> h.Element:
    """A command for a terminal; the script adds what copies it."""
    return h.span(class_="command")[
        h.code[line], h.button(".copy", type="button", data_copy=line, aria_label=f"copy: {line}")["copy"]
    ]


def facts(entries: Iterable[tuple[str, h.Node]]) -> h.Element:
    return h.dl(class_="facts")[(h.div[h.dt[name], h.dd[value]] for name, value in entries)]


def empty(name: str, title: str, *more: h.Node) -> h.Element:
    return h.div(class_="empty")[mark(name), h.h2[title], more]


def band(tone: Tone, sign: str, *words: h.Node, role: str | None = None) -> h.Element:
    return h.div(class_=f"band {tone}", role=role)[mark(sign), h.div[words]]


def crumbs(*places: tuple[str, str], last: str = "") -> h.Element:
    links: list[h.Node] = [[h.a(href=address)[name], " / "] for name, address in places]
    return h.nav(class_="crumbs", aria_label="where you are")[links, h.span[last]]


Row = list[h.Node]


class Column(NamedTuple):
    name: str
    number: bool = False
    narrow: bool = True
    """Shown on a phone, too."""


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[h.Node]], classes: str = "") -> h.Element:
    kinds = [
        " ".join([*(["num"] if c.number else []), *([] if c.narrow else ["narrow-hide"])]) or None for c in columns
    ]
    return h.div(class_="wide", role="region", aria_label=caption, tabindex="0")[
        h.table(class_=classes or None)[
            h.caption(class_="hidden")[caption],
            h.thead[h.tr[(h.th(scope="col", class_=kind)[c.name] for c, kind in zip(columns, kinds, strict=True))]],
            h.tbody[(h.tr[(h.td(class_=kind)[cell] for cell, kind in zip(row, kinds, strict=True))] for row in rows)],
        ]
    ]


def tabs(label: str, entries: Iterable[tuple[str, str, bool]]) -> h.Element:
    """(name, address, is it shown)"""
    return h.nav(class_="tabs", aria_label=label)[
        (h.a(href=address, aria_current="page" if here else None)[name] for name, address, here in entries)
    ]


def pills(label: str, entries: Iterable[tuple[str, str, bool]]) -> h.Element:
    return h.nav(class_="pills", aria_label=label)[
        (h.a(href=address, aria_current="true" if here else None)[name] for name, address, here in entries)
    ]


def hidden(values: Mapping[str, str]) -> list[h.VoidElement]:
    return [h.input(type="hidden", name=name, value=value) for name, value in values.items()]


def meter(label: str, used: float, reserved: float, limit: float, words: str) -> h.Element:
    """What is spent, and hatched what is promised to agents at work."""
    whole = max(limit, used + reserved, 1e-9)
    spent, held = 100 * used / whole, 100 * reserved / whole
    tone: Tone = "bad" if used + reserved >= limit else "you" if used + reserved >= 0.8 * limit else "work"
    return h.div(class_="meter")[
        h.span[label],
        h.svg(
            {"viewBox": "0 0 100 10", "preserveAspectRatio": "none"},
            role="img",
            aria_label=f"{label}: {words}",
            class_=tone,
        )[
            h.rect(class_="spent", width=f"{spent:.2f}", height="10"),
            h.rect(fill="url(#reserved)", x=f"{spent:.2f}", width=f"{held:.2f}", height="10") if held else None,
        ],
        h.span(class_="value")[words],
    ]
