"""Figures over runs, and the machine that they were made on.

Figures: cost, time, refuted claims, retries and waiting for people, by pipeline, week, role and agent.

A chart is drawn here, and the numbers stand in a table below it. What nobody reported is unknown, and never zero.

Machine: what doctor says, what verify found, the settings as they count, and which versions are at work. Nothing there
can be changed in a browser: every line says with which command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import htpy as h

from tenuto.core.budget import money
from tenuto.encoding import dumps
from tenuto.pages import addresses
from tenuto.pages.page import Page, Section
from tenuto.pages.parts import Column, Row, State, Tone, band, command, counted, empty, facts, mark, table
from tenuto.show.measures import amount, number, span

if TYPE_CHECKING:
    from tenuto.ports import Check
    from tenuto.show.figures import FiguresView, ForecastView, GroupView, MachineView, SettingView, WorkerView
    from tenuto.workspace.checkup import Report

_WIDTH, _HEIGHT, _SIDE, _FOOT = 540, 190, 8, 26
_MOST_WEEKS = 12
_UNKNOWN = "unknown"


class Bar(NamedTuple):
    label: str
    amount: float | None
    words: str
    tone: Tone = "work"


def figures_page(view: FiguresView) -> Page:
    if not view["all"]["runs"]:
        nothing = empty(
            "look",
            "No figures yet",
            h.p["They are reckoned from runs that were made here."],
            h.p[command("tenuto run 'what you want' --agent auto")],
        )
        return Page("Figures", "figures", [Section("figures", [h.h1["Figures"], h.div(class_="sheet")[nothing]])])
    return Page(
        "Figures",
        "figures",
        [
            Section("all", _all(view)),
            Section("weeks", _weeks(view["by_week"])),
            Section("pipelines", _groups("By pipeline", view["by_pipeline"])),
            Section("roles", _workers("By role", view["by_role"], view["latest"])),
            Section("agents", _workers("By agent", view["by_agent"], view["latest"])),
            Section("forecast", _forecast(view["forecasts"])),
        ],
    )


def _all(view: FiguresView) -> h.Node:
    whole, waiting = view["all"], view["waiting"]
    return [
        h.div(class_="row-of spread")[
            h.h1["Figures"], h.a(".button", href=addresses.FIGURES_CSV, download=True)["As CSV"]
        ],
        facts(
            [
                ("runs", [number(whole["runs"]), h.small[f" {whole['well']} ended well"]]),
                ("cost", _money(whole["micro_usd"])),
                ("at work", span(whole["busy_ms"])),
                ("attempts", number(whole["attempts"])),
                ("refuted claims", h.span(class_="toned bad" if whole["refuted"] else None)[number(whole["refuted"])]),
                ("decisions of people", number(waiting["decisions"])),
                ("waited for one", _span(waiting["median_ms"])),
            ]
        ),
        h.p(class_="soft small")[f"Of {counted(whole['unknown'], 'older run')} no figures are kept: unknown, not zero."]
        if whole["unknown"]
        else None,
    ]


def _weeks(weeks: Sequence[GroupView]) -> h.Node:
    shown = list(reversed(weeks[:_MOST_WEEKS]))
    if not shown:
        return None
    return [
        h.h2["By week", h.small["named by its Monday"]],
        h.div(class_="grid-2")[
            h.div(class_="sheet")[
                h.h3["Cost"],
                chart("cost by week", [Bar(_day(w), w["micro_usd"], _money(w["micro_usd"])) for w in shown]),
            ],
            h.div(class_="sheet")[
                h.h3["Refuted claims"],
                chart(
                    "refuted claims by week",
                    [Bar(_day(w), _known(w, w["refuted"]), number(w["refuted"]), "bad") for w in shown],
                ),
            ],
        ],
        h.details[h.summary["The weeks as a table"], _table_of("weeks", weeks)],
    ]


def _known(group: GroupView, figure: float) -> float | None:
    return None if group["unknown"] == group["runs"] else figure


def _day(week: GroupView) -> str:
    return week["name"][5:] or "?"


def _groups(title: str, groups: Sequence[GroupView]) -> h.Node:
    whole = sum(one["latest"] for one in groups)
    told = f"tried again, and waited for people: of the latest {counted(whole, 'run')}"
    small = h.small[told] if whole < sum(one["runs"] for one in groups) else None
    return [h.h2[title, small], h.div(class_="sheet")[_table_of(title, groups)]]


def _table_of(title: str, groups: Sequence[GroupView]) -> h.Element:
    rows: list[Row] = [
        [
            one["name"] or "–",
            number(one["runs"]),
            number(one["well"]),
            number(one["failed"]),
            number(one["attempts"]),
            number(one["retries"]) if one["latest"] else _UNKNOWN,
            number(one["refuted"]),
            _money(one["micro_usd"]),
            span(one["busy_ms"]),
            span(one["waited_ms"]) if one["latest"] else _UNKNOWN,
        ]
        for one in groups
    ]
    columns = [
        Column(""),
        Column("runs", True),
        Column("well", True, False),
        Column("failed", True),
        Column("attempts", True, False),
        Column("again", True, False),
        Column("refuted", True),
        Column("cost", True),
        Column("at work", True, False),
        Column("waited for people", True, False),
    ]
    return table(title, columns, rows)


def _workers(title: str, workers: Sequence[WorkerView], latest: int) -> h.Node:
    if not workers:
        return None
    rows: list[Row] = [
        [
            one["name"] or "–",
            number(one["attempts"]),
            number(one["retries"]),
            number(one["refuted"]),
            _money(one["micro_usd"]),
            number(one["tokens"]) if one["tokens"] is not None else _UNKNOWN,
            _span(one["median_ms"]),
        ]
        for one in workers
    ]
    columns = [
        Column(""),
        Column("attempts", True),
        Column("again", True, False),
        Column("refuted", True),
        Column("cost", True),
        Column("tokens", True, False),
        Column("usually takes", True, False),
    ]
    most = max((one["micro_usd"] or 0 for one in workers), default=0)
    if most:
        columns.insert(5, Column("", narrow=False))
        for row, one in zip(rows, workers, strict=True):
            row.insert(5, _share((one["micro_usd"] or 0) / most))
    return [
        h.h2[title, h.small[f"of the latest {counted(latest, 'run')}"]],
        h.div(class_="sheet")[table(title, columns, rows)],
    ]


def _share(of_the_most: float) -> h.Element:
    """An ornament beside the number that it draws."""
    return h.svg(".small-meter", {"viewBox": "0 0 60 8", "preserveAspectRatio": "none"}, aria_hidden="true")[
        h.rect(".fill", width=f"{max(60 * of_the_most, 1):.1f}", height="8", rx="2")
    ]


def _forecast(forecasts: Sequence[ForecastView]) -> h.Node:
    known = [one for one in forecasts if any(value is not None for value in one["likely"].values())]
    if not known:
        return None
    units = ("attempts", "tokens", "micro_usd", "ms")
    rows: list[Row] = []
    for one in known:
        likely, worst = one["likely"], one["worst"]
        row: Row = [one["pipeline"], number(one["runs"])]
        rows.append([*row, *(_likely(unit, likely.get(unit), worst.get(unit)) for unit in units)])
    columns = [
        Column("pipeline"),
        Column("of runs", True, False),
        Column("attempts", True, False),
        Column("tokens", True, False),
        Column("cost", True),
        Column("time", True),
    ]
    told = "likely: the median of runs that ended well; in brackets at worst"
    return [h.h2["The next run", h.small[told]], h.div(class_="sheet")[table("forecast", columns, rows)]]


def _likely(unit: str, likely: float | None, worst: float | None) -> h.Node:
    def told(figure: float | None) -> str:
        if figure is None:
            return _UNKNOWN
        return number(figure) if unit in ("attempts", "tokens") else amount(unit, figure)

    return [told(likely), h.small(class_="soft")[f" ({told(worst)})"]]


def _money(micro_usd: float | None) -> str:
    return _UNKNOWN if micro_usd is None else money(micro_usd)


def _span(milliseconds: float | None) -> str:
    return _UNKNOWN if milliseconds is None else span(milliseconds)


# ---- the chart


def chart(title: str, bars: Sequence[Bar]) -> h.Element:
    """A column for each; what is unknown is a dotted line."""
    most = max((bar.amount for bar in bars if bar.amount is not None), default=0) or 1
    step = (_WIDTH - 2 * _SIDE) / max(len(bars), 1)
    wide = min(step * 0.7, 56)
    words = "; ".join(f"{bar.label}: {bar.words}" for bar in bars)
    return h.svg({"viewBox": f"0 0 {_WIDTH} {_HEIGHT}"}, class_="chart", role="img", aria_label=f"{title}. {words}")[
        h.path(class_="axis", d=f"M{_SIDE} {_HEIGHT - _FOOT}H{_WIDTH - _SIDE}"),
        (_column(bar, bar.words, _SIDE + step * (place + 0.5), step, wide, most) for place, bar in enumerate(bars)),
    ]


def _column(bar: Bar, words: str, middle: float, step: float, wide: float, most: float) -> h.Element:
    base = _HEIGHT - _FOOT
    tall = (base - 24) * (bar.amount or 0) / most
    shape = h.path(class_="unknown", d=f"M{middle - wide / 2:.1f} {base - 3}h{wide:.1f}")
    if bar.amount is not None:
        place = {"x": f"{middle - wide / 2:.1f}", "y": f"{base - tall:.1f}"}
        shape = h.rect(place, class_=f"bar {bar.tone}", width=f"{wide:.1f}", height=f"{max(tall, 1):.1f}", rx="3")
    most_letters = max(3, int(step / 6.2))
    label = bar.label if len(bar.label) <= most_letters else bar.label[: most_letters - 1] + "…"
    centred = {"text-anchor": "middle", "x": f"{middle:.1f}"}
    return h.g[
        h.title[f"{bar.label}: {words}"],
        shape,
        h.text(centred, y=f"{base - tall - 6:.1f}")[words if len(words) <= most_letters + 2 else None],
        h.text(centred, y=str(_HEIGHT - 8))[label],
    ]


# ---- the machine

_CHECKED = {
    "ok": State("well", "check", "ok"),
    "note": State("you", "alone", "note"),
    "problem": State("bad", "cross", "problem"),
}
_WORST_FIRST = ("problem", "note", "ok")


def machine_page(view: MachineView, verified: Report | None = None) -> Page:
    """`verified`: what verify found; None: nobody asked for it."""
    known: list[tuple[str, h.Node]] = [
        ("tenuto", view["version"]),
        ("Python", view["python"]),
        ("system", view["system"]),
        ("gates", view["gates"]),
        ("journal", h.span(class_="mono small")[view["journal"]]),
    ]
    return Page(
        "Machine",
        "machine",
        [
            Section("head", [h.h1["Machine"], facts(known)]),
            Section("doctor", _doctor(view["checks"])),
            Section("verify", _verify(verified)),
            Section("settings", _settings_of(view["settings"], view["problem"])),
        ],
    )


def _doctor(checks: Sequence[Check]) -> h.Node:
    ordered = sorted(checks, key=lambda one: _WORST_FIRST.index(one["status"]) if one["status"] in _CHECKED else 0)
    problems = sum(1 for one in checks if one["status"] == "problem")
    return [
        h.h2["Doctor", h.small["all is well" if not problems else counted(problems, "problem")]],
        h.ul(class_="list")[(_check(one) for one in ordered)],
        h.p(class_="small")[command("tenuto doctor")],
    ]


def _check(one: Check) -> h.Element:
    state = _CHECKED.get(one["status"], _CHECKED["note"])
    return h.li(class_=f"item {state.tone}")[
        mark(state.mark, state.words),
        h.strong[one["name"]],
        h.span(class_="more")[h.span[one["message"]]],
        h.span(class_="side")[command(one["fix"])] if one["fix"].startswith("tenuto ") else _hint(one["fix"]),
    ]


def _hint(fix: str) -> h.Node:
    return h.span(class_="side soft")[fix] if fix else None


def _verify(report: Report | None) -> h.Node:
    body: h.Node
    if report is None:
        body = h.form(class_="row-of", method="get", action=addresses.MACHINE)[
            h.input(type="hidden", name="verify", value="1"),
            h.button(type="submit")["Verify now"],
            h.span(class_="soft small")["reads every event and every stored file once"],
            command("tenuto verify"),
        ]
    elif not report["findings"]:
        told = f"{counted(report['events'], 'event')} of {counted(report['runs'], 'run')} are as they were written."
        body = band("well", "check", h.strong["Sound. "], told)
    else:
        rows: list[Row] = [
            [one["severity"], one["run"] or "–", one["where"], one["message"], one["fix"]] for one in report["findings"]
        ]
        names = [
            Column("what"),
            Column("run"),
            Column("where", narrow=False),
            Column(""),
            Column("what now", narrow=False),
        ]
        body = h.div(class_="sheet")[table("findings", names, rows)]
    return [h.h2["Verify"], body]


def _settings_of(settings: Sequence[SettingView], problem: str) -> h.Node:
    rows: list[Row] = [
        [
            h.code(class_="whole")[one["name"]],
            h.code(class_="lines")[_text(one["value"])]
            if one["value"] is not None
            else h.span(class_="soft")["not set"],
            h.span(class_="soft small")[one["shape"]],
        ]
        for one in sorted(settings, key=lambda one: one["value"] is None)
    ]
    columns = [Column("setting"), Column("value"), Column("what it may be", narrow=False)]
    return [
        h.h2["Settings", h.small["read from .tenuto/config.yaml; change them there"]],
        band("bad", "cross", problem, role="alert") if problem else None,
        h.div(class_="sheet")[table("settings", columns, rows)],
    ]


def _text(value: object) -> str:
    return value if isinstance(value, str) else dumps(value)
