"""Two runs side by side; one run against an edited pipeline; another way from one of its steps; and what another cap
or another order would have made of its items.

Ghost bars are reckoned from measured lengths (show/score.py): the same items, dependencies and lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import htpy as h

from tenuto.core.budget import money
from tenuto.core.parts import is_refuted
from tenuto.core.times import between
from tenuto.pages import addresses
from tenuto.pages.page import Page, Section, Site
from tenuto.pages.parts import Column, Row, badge, band, command, counted, empty, hidden, mark, moment, state_of, table
from tenuto.pages.run import kind
from tenuto.pages.score import drawing, legend
from tenuto.show.measures import number, span

if TYPE_CHECKING:
    from tenuto.engine.replay import Replay, Trace
    from tenuto.show.figures import CompareView, ForkPreview
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
    visits: Sequence[tuple[str, int]] = ()
    """Those that have items: step and number."""


class Replayed(NamedTuple):
    """A run against a pipeline as its file is now."""

    pipelines: Sequence[str]
    """That can be chosen."""
    pipeline: str
    found: Replay | None = None
    refused: str = ""


class Comparison(NamedTuple):
    choices: Sequence[Choice]
    a: RunPage | None = None
    b: RunPage | None = None
    differences: CompareView | None = None
    what_if: WhatIf | None = None
    replayed: Replayed | None = None
    fork: ForkPreview | None = None


def compare_page(view: Comparison, site: Site) -> Page:
    a, b = view.a, view.b
    sections = [Section("choose", _choose(view.choices, a, b))]
    if a and b:
        differing = _differing(view.differences) if view.differences else None
        sections += [Section("both", _both(a, b)), Section("differing", differing)]
        sections.append(Section("scores", [_score(a), _score(b)]))
    elif a:
        sections += [Section("scores", _score(a))]
    if a:
        sections += [
            Section("what-if", _what_if(a, view.what_if)),
            Section("ghosts", _ghosts(view.what_if)),
            Section("replay", _replay(a, view.replayed)),
            Section("another-way", _another_way(a, view.fork, site)),
        ]
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
    if more >= 900:
        return f"{1 + more / 100:.0f} times"
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


_SHORT = 12  # characters of a hash
_MOST_TOLD = 6  # lines, before they are folded


def _differing(view: CompareView) -> h.Node:
    """What was given to each, and what each made, where that is not the same."""
    sides = view["sides"]
    rows: list[Row] = [[name, a or "–", b or "–"] for name, a, b in view["params"]]
    rows += [
        [h.span(class_="mono small")[name], _seal(sides[0]["run"], name, a), _seal(sides[1]["run"], name, b)]
        for name, a, b in view["artifacts"]
    ]
    if not rows:
        return None
    columns = [Column("parameter or artifact"), Column(sides[0]["run"]), Column(sides[1]["run"])]
    return [
        h.h2["What differs", h.small["in what was given, and in what was made"]],
        h.div(class_="sheet")[table("what differs", columns, rows)],
    ]


def _seal(run: str, name: str, sha: str) -> h.Node:
    return h.a(".seal", href=addresses.artifact(run, name, sha=sha))[sha[:_SHORT]] if sha else "–"


# ---- what if


def _what_if(a: RunPage, what_if: WhatIf | None) -> h.Node:
    """What is asked. The answer is a section of its own, so that it changes while this form is used."""
    if what_if is None:
        return None
    asked = what_if.asked
    most = max(16, asked["cap"], what_if.measured["cap"])
    here = f"{asked['step']}:{asked['visit']}"
    return [
        h.h2["What if", h.small["the same items, with the lengths that were measured"]],
        h.form(class_="filters", method="get", action=addresses.COMPARE + "#what-if", data_live="1")[
            hidden({"a": a["run"]["run"]}),
            h.label(class_="choose")[
                "items of",
                h.select(name="visit")[
                    (
                        h.option(value=f"{step}:{number}", selected=f"{step}:{number}" == here)[
                            f"{step}, visit {number}"
                        ]
                        for step, number in what_if.visits
                    )
                ],
            ]
            if len(what_if.visits) > 1
            else hidden({"visit": here}),
            h.label(class_="choose")[
                "agents at a time",
                h.input(type="range", name="cap", min="1", max=str(most), value=str(asked["cap"])),
                h.output[str(asked["cap"])],
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
            h.button(".unscripted", type="submit")["Reckon"],
        ],
    ]


def _ghosts(what_if: WhatIf | None) -> h.Node:
    if what_if is None:
        return None
    asked, measured = what_if.asked, what_if.measured
    saved = measured["reckoned_ms"] - asked["reckoned_ms"]
    words = f"{span(abs(saved))} {'less' if saved > 0 else 'more'} than" if saved else "as long as"
    end = max(asked["reckoned_ms"], measured["reckoned_ms"], 1)
    return h.div(class_="score")[
        h.p[
            f"With {counted(asked['cap'], 'agent')} at a time, {_ORDERS[asked['order']]}: ",
            f"{span(asked['reckoned_ms'])}, ",
            h.strong[words],
            f" with {measured['cap']}, {_ORDERS[measured['order']]}.",
        ],
        h.div(class_="music", tabindex="0", role="region", aria_label="as it was, and as it would be")[
            _bars(measured, end, "bar work", "as it was"), _bars(asked, end, "ghost", "as it would be")
        ],
    ]


_ORDERS = {"waves": "wave by wave", "rolling": "each as soon as it may"}


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


# ---- against an edited pipeline


def _replay(a: RunPage, view: Replayed | None) -> h.Node:
    """Recorded answers, no agent, nothing written: what the pipeline would make of them as its file is now."""
    if view is None:
        return None
    run = a["run"]["run"]
    own = [] if view.pipeline == a["run"]["pipeline"] else ["--pipeline", view.pipeline]
    return [
        h.h2["Against an edited pipeline", h.small["the recorded answers, and no agent"]],
        h.form(class_="filters", method="get", action=addresses.COMPARE + "#replay")[
            hidden({"a": run}),
            h.label(class_="choose")[
                "the same answers through",
                h.select(name="pipeline")[
                    (h.option(value=one, selected=one == view.pipeline)[one] for one in view.pipelines)
                ],
            ],
            h.button(type="submit")[mark("again"), "Replay"],
            command(addresses.shell("tenuto", "replay", run, *own)),
        ],
        band("bad", "cross", view.refused, role="alert") if view.refused else None,
        _found(view.found) if view.found else None,
    ]


def _found(found: Replay) -> h.Node:
    then, now = found["then"], found["now"]
    steps = dict.fromkeys(step for step, _ in [*then["visits"], *now["visits"]])
    rows: list[Row] = [[step, *_verdicts(then, now, step)] for step in steps]
    rows.append([h.strong["the run"], _ended(then), _ended(now)])
    return [
        _differences(found["differences"]),
        _listed("No recorded answer, taken as DONE", found["assumed"]),
        _listed("Recorded, and not asked for any more", found["unused"]),
        h.div(class_="sheet")[table("then and now", [Column("step"), Column("then"), Column("now")], rows)],
    ]


def _differences(lines: Sequence[str]) -> h.Node:
    if not lines:
        return band("well", "check", h.strong["Nothing differs. "], "The pipeline would have gone the same way.")
    told = h.ul[(h.li[line] for line in lines)]
    head = h.summary[h.strong["What differs: "], counted(len(lines), "line")]
    return band("you", "alone", h.details(open=len(lines) <= _MOST_TOLD)[head, told])


def _listed(title: str, names: Sequence[str]) -> h.Node:
    if not names:
        return None
    return h.details[
        h.summary[f"{title}: {counted(len(names), 'attempt')}"], h.p(class_="soft small")[", ".join(names)]
    ]


def _verdicts(then: Trace, now: Trace, step: str) -> Row:
    before, after = (", ".join(word for one, word in trace["visits"] if one == step) or "–" for trace in (then, now))
    return [before, after if after == before else h.strong[after]]


def _ended(trace: Trace) -> str:
    why = f": {trace['why']}" if trace["why"] else ""
    return f"{state_of(trace['status']).words}, {counted(len(trace['attempts']), 'attempt')}{why}"


# ---- another way


def _another_way(a: RunPage, view: ForkPreview | None, site: Site) -> h.Node:
    """A new run that begins at a step of this one; what came before stays as it was."""
    if view is None:
        return None
    run = a["run"]["run"]
    cost = f", {money(view['micro_usd'])}" if view["micro_usd"] is not None else ""
    again = ", ".join(view["again"])
    act: h.Node = command(view["command"])
    if site.may_decide:
        act = h.form(class_="filters", method="post", action=f"{addresses.run(run)}/fork")[
            hidden({"token": site.form_token, "step": view["step"]}),
            h.button(".first.work", type="submit")[mark("again"), f"Fork at {view['step']}"],
            act,
        ]
    return [
        h.h2["Another way", h.small["a new run that begins at a step of this one, which stays as it is"]],
        h.div(class_="sheet")[
            h.form(class_="filters", method="get", action=addresses.COMPARE + "#another-way")[
                hidden({"a": run}),
                h.label(class_="choose")[
                    "from the step",
                    h.select(name="step")[
                        (h.option(value=one, selected=one == view["step"])[one] for one in view["steps"])
                    ],
                ],
                h.button(type="submit")["Look"],
            ],
            h.p[h.strong["Takes over: "], ", ".join(view["kept"]) or "no document"],
            h.p[h.strong["Does again: "], again, f" ({counted(view['attempts'], 'attempt')}{cost} the last time)"],
            act,
        ],
    ]
