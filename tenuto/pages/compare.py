"""Two runs side by side; and what another cap or another order would have made of one run's items.

Ghost bars are reckoned from measured lengths (show/score.py): the same items, dependencies and lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import htpy as h

from tenuto.core.parts import is_refuted
from tenuto.core.times import between
from tenuto.pages import addresses
from tenuto.pages.page import Page, Section, Site
from tenuto.pages.parts import Column, Row, badge, command, counted, empty, hidden, mark, moment, state_of, table
from tenuto.pages.run import kind
from tenuto.pages.score import drawing, legend
from tenuto.show.measures import money, number, span

if TYPE_CHECKING:
    from tenuto.show.run_page import RunPage
    from tenuto.show.score import GhostView
    from tenuto.show.views import AttemptView

_WIDTH, _LEFT, _ROW, _BAR = 1120, 14, 20, 15


class Choice(NamedTuple):
    """A run that can be chosen."""

    run: str
    name: str


class WhatIf(NamedTuple):
    """The items of one visit as they were, and in another order or under another cap."""

    asked: GhostView
    measured: GhostView


def compare_page(
    choices: Sequence[Choice], a: RunPage | None, b: RunPage | None, what_if: WhatIf | None, site: Site
) -> Page:
    sections = [Section("choose", _choose(choices, a, b))]
    if a and b:
        sections += [Section("both", _both(a, b)), Section("scores", [_score(a), _score(b)])]
    elif a:
        sections += [Section("scores", _score(a))]
    if a:
        sections += [Section("what-if", _what_if(a, what_if)), Section("another-way", _another_way(a, site))]
    return Page("Compare", "compare", sections)


def _choose(choices: Sequence[Choice], a: RunPage | None, b: RunPage | None) -> h.Node:
    if not choices:
        return [
            h.h1["Compare"],
            h.div(class_="sheet")[
                empty("look", "No runs to compare yet", h.p[command("tenuto run 'what you want' --agent auto")])
            ],
        ]
    return [
        h.h1["Compare"],
        h.form(class_="filters", method="get", action=addresses.COMPARE)[
            _select("a", "this run", choices, a["run"]["run"] if a else choices[0].run),
            _select("b", "with", choices, b["run"]["run"] if b else choices[min(1, len(choices) - 1)].run),
            h.button(type="submit")["Compare"],
        ],
    ]


def _select(name: str, label: str, choices: Sequence[Choice], chosen: str) -> h.Element:
    return h.label(class_="choose")[
        label,
        h.select(name=name)[
            (
                h.option(value=one.run, selected=one.run == chosen)[
                    one.run if one.name in ("", one.run) else f"{one.run}: {one.name}"
                ]
                for one in choices
            )
        ],
    ]


# ---- side by side


def _both(a: RunPage, b: RunPage) -> h.Node:
    rows: list[Row] = [
        [words, one, other, h.strong[_difference(more)] if more is not None else "–"]
        for words, one, other, more in _figures(a, b)
    ]
    names = [Column(""), Column(a["run"]["run"], True), Column(b["run"]["run"], True), Column("difference", True)]
    return [
        h.div(class_="grid-2")[(_named(one) for one in (a, b))],
        h.div(class_="sheet")[table("figures of both", names, rows)],
        h.h2["Step by step"],
        h.div(class_="sheet")[_steps(a, b)],
    ]


def _named(page: RunPage) -> h.Element:
    run = page["run"]
    return h.p[
        h.a(href=addresses.run(run["run"]))[h.strong[run["name"] or run["run"]]],
        " ",
        badge(state_of(run["status"])),
        " ",
        h.span(class_="soft small")[run["pipeline"], " · ", moment(run["created_at"])],
    ]


def _figures(a: RunPage, b: RunPage) -> list[tuple[str, str, str, float | None]]:
    """(what, here, there, how much more there in per cent; None: unknown)"""
    found: list[tuple[str, str, str, float | None]] = []
    for words, one, other, told in (
        ("at work", a["score"]["busy_ms"], b["score"]["busy_ms"], span),
        ("from begin to end", a["score"]["real_ms"], b["score"]["real_ms"], span),
        ("critical path", a["score"]["critical_ms"], b["score"]["critical_ms"], span),
        ("attempts", len(a["run"]["attempts"]), len(b["run"]["attempts"]), number),
        ("refuted claims", _refuted(a), _refuted(b), number),
        ("sent back", sum(a["run"]["routes"].values()), sum(b["run"]["routes"].values()), number),
        ("cost", _spent(a, "micro_usd"), _spent(b, "micro_usd"), money),
        ("tokens", _spent(a, "tokens"), _spent(b, "tokens"), number),
    ):
        more = 100 * (other - one) / one if one and other is not None else None
        found.append(
            (words, "unknown" if one is None else told(one), "unknown" if other is None else told(other), more)
        )
    return found


def _difference(more: float) -> str:
    return "the same" if abs(more) < 0.5 else f"{more:+.0f} %"


def _refuted(page: RunPage) -> int:
    return sum(1 for one in page["run"]["attempts"] if is_refuted(one["said"], one["found"]))


def _spent(page: RunPage, unit: str) -> float | None:
    spent = page["run"]["spent"].get(unit)
    return spent if isinstance(spent, int | float) else None


def _steps(a: RunPage, b: RunPage) -> h.Element:
    names = list(dict.fromkeys(lane["step"] for page in (a, b) for lane in page["score"]["lanes"]))
    rows: list[Row] = []
    for name in names:
        row: Row = [name]
        for page in (a, b):
            mine = [one for one in page["run"]["attempts"] if one["step"] == name]
            row += [_told(mine), span(_length(mine)) if mine else "–"]
        rows.append(row)
    columns = [
        Column("step"),
        Column(a["run"]["run"]),
        Column("took", True),
        Column(b["run"]["run"]),
        Column("took", True),
    ]
    return table("step by step", columns, rows)


def _told(mine: Sequence[AttemptView]) -> h.Node:
    kinds = [kind(one) for one in mine]
    wrong = [f"{kinds.count(one)} {one}" for one in ("refuted", "failed", "again", "lost") if one in kinds]
    return ", ".join([counted(len(mine), "attempt"), *wrong]) if mine else "–"


def _length(mine: Sequence[AttemptView]) -> int:
    return sum(between(one["started_at"], one["ended_at"]) for one in mine if one["ended_at"])


def _score(page: RunPage) -> h.Node:
    run = page["run"]
    return [
        h.h2[run["name"] or run["run"]],
        h.div(class_="score")[
            h.div(class_="music", tabindex="0", role="region", aria_label=f"the score of {run['run']}")[
                drawing(run["run"], page["score"])
            ],
            legend(),
        ],
    ]


# ---- what if


def _what_if(a: RunPage, what_if: WhatIf | None) -> h.Node:
    if what_if is None:
        return None
    asked, measured = what_if
    saved = measured["reckoned_ms"] - asked["reckoned_ms"]
    words = "as long" if not saved else f"{span(abs(saved))} {'less' if saved > 0 else 'more'}"
    end = max(asked["reckoned_ms"], measured["reckoned_ms"], 1)
    return [
        h.h2[
            "What if",
            h.small[f"the items of {asked['step']}, visit {asked['visit']}, with the lengths that were measured"],
        ],
        h.form(class_="filters", method="get", action=addresses.COMPARE)[
            hidden({"a": a["run"]["run"]}),
            h.label(class_="choose")[
                "agents at a time",
                h.input(type="number", name="cap", min="1", max="64", value=str(asked["cap"])),
            ],
            h.fieldset(class_="row-of")[
                h.legend(class_="hidden")["order"],
                (
                    h.label(class_="option")[
                        h.input(type="radio", name="order", value=order, checked=order == asked["order"]), told
                    ]
                    for order, told in (("waves", "wave by wave"), ("rolling", "each as soon as it may"))
                ),
            ],
            h.button(type="submit")["Reckon"],
        ],
        h.div(class_="score")[
            h.p[
                f"With {counted(asked['cap'], 'agent')} at a time, ",
                "each as soon as it may" if asked["order"] == "rolling" else "wave by wave",
                f": {span(asked['reckoned_ms'])}, ",
                h.strong[words],
                f" than with {measured['cap']}, {'rolling' if measured['order'] == 'rolling' else 'wave by wave'}.",
            ],
            _bars(measured, end, "bar work", "as it was"),
            _bars(asked, end, "ghost", "as it would be"),
        ],
    ]


def _bars(view: GhostView, end: int, classes: str, label: str) -> h.Element:
    height = max(view["rows"], 1) * _ROW + 24
    scale = (_WIDTH - 2 * _LEFT) / end
    told = "; ".join(f"{bar['item']} from {span(bar['left'])} to {span(bar['right'])}" for bar in view["bars"][:40])
    return h.svg({"viewBox": f"0 0 {_WIDTH} {height}"}, class_="ghosts", role="img", aria_label=f"{label}: {told}")[
        h.text(x=str(_LEFT), y="12", class_="tick")[f"{label}, {span(view['reckoned_ms'])}"],
        (
            h.g[
                h.rect(
                    class_=classes,
                    x=f"{_LEFT + bar['left'] * scale:.1f}",
                    y=str(20 + bar["lane"] * _ROW),
                    width=f"{max((bar['right'] - bar['left']) * scale - 1, 2):.1f}",
                    height=str(_BAR),
                    rx="3",
                )[h.title[f"{bar['item']}, {span(bar['right'] - bar['left'])}"]],
                h.text(
                    x=f"{_LEFT + bar['left'] * scale + 5:.1f}",
                    y=str(20 + bar["lane"] * _ROW + 12),
                    class_=f"in-{classes[:3]}",
                )[bar["item"][: int((bar["right"] - bar["left"]) * scale / 8)]],
            ]
            for bar in view["bars"]
        ),
    ]


def _another_way(a: RunPage, site: Site) -> h.Node:
    """A new run that begins at a step of this one; what came before stays as it was."""
    run = a["run"]["run"]
    steps = [lane["step"] for lane in a["score"]["lanes"] if lane["state"] in ("done", "failed", "here")]
    replay = h.p["The same run against an edited pipeline: ", command(addresses.shell("tenuto", "replay", run))]
    if not steps:
        return None
    form: h.Node = command(addresses.shell("tenuto", "fork", run, "--at", steps[-1]))
    if site.may_decide:
        form = h.form(class_="filters", method="post", action=f"{addresses.run(run)}/fork")[
            hidden({"token": site.form_token}),
            h.label(class_="choose")[
                "from the step", h.select(name="step")[(h.option(value=one)[one] for one in steps)]
            ],
            h.button(type="submit")[mark("again"), "Fork"],
            form,
        ]
    return [h.h2["Another way from here"], form, replay]
