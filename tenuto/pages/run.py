"""The page of one run: its state in words, who drives it, what it asks, the score, what it made, what happened.

The first words answer what somebody wants to know who comes back after an hour: is it done, does it need me, what has
it cost. A card for the decision comes next, then the score. `?at=N` shows the run as it was behind event N, with the
same parts; a form moves between events where there is no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import htpy as h

from tenuto.core.budget import money
from tenuto.core.parts import is_refuted
from tenuto.core.times import between
from tenuto.pages import addresses
from tenuto.pages.card import card, decisions, failure
from tenuto.pages.page import Page, Section, Site
from tenuto.pages.parts import (
    STATES,
    Column,
    Row,
    State,
    badge,
    clock,
    command,
    counted,
    facts,
    hidden,
    mark,
    meter,
    moment,
    path_words,
    short_hash,
    size,
    state_of,
    strokes,
    table,
    verdict,
)
from tenuto.pages.score import drawing, kind_of, lane_state, legend
from tenuto.show.measures import amount, number, span

if TYPE_CHECKING:
    from tenuto.pages.card import Level
    from tenuto.show.changes import DecisionView, GateFile
    from tenuto.show.run_page import HistoryPage, ItemNode, RunPage, SealView
    from tenuto.show.score import LaneView, ScoreView
    from tenuto.show.views import ArtifactView, AttemptView, RunView

_UNITS = {"micro_usd": "cost", "wall_clock": "time", "tokens": "tokens", "attempts": "attempts"}
_ENDED = ("completed", "failed", "skipped")
_MOST_ROWS = 200  # attempts of one step
_MOST_ARTIFACTS = 12  # before the rest is folded
_MOST_DRAWN = 60  # items; more make no picture that anybody reads
_WIDE, _HIGH, _APART, _BELOW = 210, 46, 64, 14
_MOST_LINES = 40  # of the history; the past has the others


class Asked(NamedTuple):
    """What the address asks for besides the run."""

    window: tuple[int, int] | None = None
    step: str = ""
    level: Level = "guarded"
    """How decisions of this run are protected."""
    decisions: Sequence[DecisionView] = ()
    """That were made up to here."""


_NOTHING_MORE = Asked()


def run_page(view: RunPage, site: Site, shown: Sequence[GateFile] = (), asked: Asked = _NOTHING_MORE) -> Page:
    run, at = view["run"], view["at"]
    waiting = None if view["is_past"] else card(view, site, shown, asked.level)
    sections = [
        Section("head", _heading(view, site)),
        Section("asks", [waiting, None if view["is_past"] else failure(view, site)]),
        Section("facts", [_figures(view), _budget(view)]),
        Section("past", _past(run["run"], at, view["history"]["count"])),
        Section("score", _score(view, asked.window)),
        Section("step", _attempts_of_step(run, asked.step) if asked.step else None),
        Section("items", _items(view)),
        Section("decisions", decisions(asked.decisions, run["run"])),
        Section("artifacts", _artifacts(run)),
        Section("history", _history(run["run"], view["history"])),
        Section("seal", _seal(view["seal"])),
    ]
    return Page(run["name"] or run["run"], "runs", sections, run["run"], view["is_past"])


# ---- in words


def state_in_words(view: RunPage) -> State:
    run = view["run"]
    known = state_of(run["status"])
    refuted = sum(1 for one in run["attempts"] if is_refuted(one["said"], one["found"]))
    if run["phase"] == "under_way":
        return STATES["stalled"] if view["driven"]["by"] == "nobody" and not view["is_past"] else known
    if view["waiting"] and view["waiting"]["kind"] == "question":
        return State("you", "question", "asks you")
    if known.tone == "well" and refuted:
        return State(known.tone, known.mark, f"{known.words}, {counted(refuted, 'claim')} refuted on the way")
    return known


def kind(attempt: AttemptView) -> str:
    return kind_of(attempt["status"], attempt["verdict"], is_refuted(attempt["said"], attempt["found"]))


def _heading(view: RunPage, site: Site) -> h.Node:
    run = view["run"]
    origin: h.Node = None
    if run["fork"]:
        source = h.a(href=addresses.run(run["fork"]["source"]))[run["fork"]["source"]]
        origin = h.span["forked from ", source, f" at {run['fork']['step']}"]
    return [
        h.div(class_="row-of")[h.h1[run["name"] or run["run"]], badge(state_in_words(view))],
        h.p(class_="more soft")[
            h.span[run["run"]],
            h.span[run["pipeline"] or "no pipeline"],
            h.span["begun ", moment(run["created_at"], ago=not view["is_past"])],
            h.span["ended ", moment(run["stopped_at"], ago=True)] if run["stopped_at"] else None,
            h.span[f"branch {run['branch']}"] if run["branch"] else None,
            origin,
        ],
        _request(run),
        _driver(view),
        None if view["is_past"] else _ways(view, site),
    ]


def _ways(view: RunPage, site: Site) -> h.Node:
    """What else can be done with a run, whatever it is doing."""
    run = view["run"]
    pause: h.Node = None
    if site.may_decide and run["phase"] == "under_way" and run["driver"] == "engine":
        pause = h.form(method="post", action=addresses.answer(run["run"]))[
            hidden({"token": site.form_token}),
            h.button(type="submit", name="answer", value="pause")[mark("pause"), "Pause"],
        ]
    others = h.a(".button", href=addresses.compare(a=run["run"]))["Compare, fork, what if"]
    return h.div(class_="row-of ways")[pause, others]


def _request(run: RunView) -> h.Node:
    """The first line may be the name: then the rest of it."""
    text = run["request"].strip()
    text = text.removeprefix(run["name"]).strip() if run["name"] else text
    if not text:
        return None
    first, _, rest = text.partition("\n")
    if rest.strip() or len(first) > 220:
        return h.details(class_="request")[h.summary[first[:220]], h.div(class_="lines")[text]]
    return h.p[first]


def _driver(view: RunPage) -> h.Node:
    """Who carries out what is due. A run that says running, and that nobody drives, is the trap of every such page."""
    run, driven = view["run"], view["driven"]
    if view["is_past"]:
        due = ", ".join(f"{one['act']} {one['what'] or one['step']}".strip() for one in view["due"][:6])
        why = "; ".join(view["why_not_more"])
        there = run["position"]
        fork: h.Node = None
        if there:
            address = f"{addresses.compare(a=run['run'], step=there)}#another-way"
            fork = h.p[h.a(href=address)[f"Another way from {there}"]]
        return [
            h.p[h.strong["Due then: "], due] if due else None,
            h.p[h.strong["Not more: "], why] if why else None,
            fork,
        ]
    if run["phase"] == "ended":
        return None
    if driven["by"] == "engine":
        why = "; ".join(view["why_not_more"])
        return h.p(class_="small soft")[mark("check", tone="well"), f" {driven['words']}", f" · {why}" if why else None]
    if driven["by"] != "nobody" or run["phase"] == "waiting":
        line = command(driven["command"]) if driven["command"] else None
        return h.p(class_="small soft")[driven["words"], " ", line] if line or driven["by"] != "nobody" else None
    return h.div(class_="band you")[
        mark("alone"),
        h.div(class_="row-of")[
            h.span[h.strong["Nobody drives it."], " What is due stays due until somebody goes on:"],
            command(driven["command"]) if driven["command"] else None,
        ],
    ]


def _figures(view: RunPage) -> h.Element:
    run = view["run"]
    again = sum(1 for one in run["attempts"] if one["number"] > 1)
    refuted = sum(1 for one in run["attempts"] if is_refuted(one["said"], one["found"]))
    ended = sum(1 for one in run["items"] if one["status"] in _ENDED)
    cost, tokens = run["spent"].get("micro_usd"), run["spent"].get("tokens")
    unknown = h.small["not reported"]
    return facts(
        [
            ("at work", span(view["score"]["busy_ms"])),
            ("attempts", [number(len(run["attempts"])), h.small[f" {again} again"] if again else None]),
            ("refuted claims", h.span(class_="toned bad")[str(refuted)] if refuted else "0"),
            ("sent back", f"{sum(run['routes'].values())}×"),
            ("cost", money(cost) if isinstance(cost, int | float) else unknown),
            ("tokens", number(tokens) if isinstance(tokens, int | float) else unknown),
            *([("items", f"{ended}/{len(run['items'])}")] if run["items"] else []),
            *([("commits", number(run["commits"]))] if run["commits"] else []),
        ]
    )


def _budget(view: RunPage) -> h.Node:
    rows: list[h.Node] = []
    for entry in view["budget"]:
        if entry["limit"] is None:
            continue
        label = _UNITS.get(entry["unit"], entry["unit"]) + (f" of {entry['step']}" if entry["step"] else "")
        used = (
            number(entry["spent"]) if entry["unit"] in ("attempts", "tokens") else amount(entry["unit"], entry["spent"])
        )
        words = f"{used} of {amount(entry['unit'], entry['limit'])}"
        if entry["reserved"]:
            words += f", {amount(entry['unit'], entry['reserved'])} reserved"
        rows.append(meter(label, entry["spent"], entry["reserved"], entry["limit"], words))
    return h.div(class_="budget")[rows] if rows else None


# ---- the score, and the table that says the same


def _score(view: RunPage, window: tuple[int, int] | None) -> h.Node:
    run, score = view["run"], view["score"]
    if not score["lanes"]:
        return None
    closer: h.Node = None
    if window:
        closer = h.div(class_="band idle")[
            mark("look"), h.p["A part of the score. ", h.a(href=addresses.run(run["run"]) + "#score")["The whole run"]]
        ]
    chain = f", critical path {span(score['critical_ms'])}" if score["critical_ms"] else ""
    return [
        h.h2["Score", h.small[f"{span(score['real_ms'])} from begin to end{chain}"]],
        closer,
        h.div(class_="score")[
            h.div(class_="music", tabindex="0", role="region", aria_label="the score; the table below says the same")[
                drawing(run["run"], score, window)
            ],
            legend(),
            h.div(class_="steps")[_steps_table(run, score)],
        ],
    ]


def _steps_table(run: RunView, score: ScoreView) -> h.Node:
    by_step: dict[str, list[AttemptView]] = {}
    for one in run["attempts"]:
        by_step.setdefault(one["step"], []).append(one)
    rows = [_step_row(run["run"], lane, by_step.get(lane["step"], [])) for lane in score["lanes"]]
    columns = [
        Column("step"),
        Column("state"),
        Column("attempts", True, False),
        Column("not well"),
        Column("took", True),
    ]
    return h.details(open=len(rows) <= 16)[
        h.summary["The same as a table"], table("the steps of the run", columns, rows)
    ]


def _step_row(run: str, lane: LaneView, mine: Sequence[AttemptView]) -> Row:
    state = lane_state(lane)
    kinds = [kind(one) for one in mine]
    wrong = ", ".join(f"{kinds.count(one)} {words}" for one, words in _WRONG.items() if one in kinds)
    took = sum(between(one["started_at"], one["ended_at"]) for one in mine if one["ended_at"])
    waited = sum(rest["waited_ms"] for rest in lane["rests"])
    decided = ", ".join(f"{rest['decision']} by {rest['who']}" for rest in lane["rests"] if rest["decision"])
    name: h.Node = lane["step"]
    if mine:
        name = h.a(href=addresses.run(run, step=lane["step"]) + "#step")[lane["step"]]
    return [
        [mark(state.mark, tone=state.tone), " ", name, f" ×{lane['visits']}" if lane["visits"] > 1 else None],
        [state.words, h.span(class_="soft")[f": {lane['reason']}"] if lane["reason"] else None],
        number(len(mine)) if mine else "–",
        wrong or decided or "–",
        span(took) if mine else f"waited {span(waited)}" if waited else "–",
    ]


_WRONG = {"refuted": "refuted", "failed": "failed", "again": "sent back", "lost": "lost"}


def _attempts_of_step(run: RunView, step: str) -> h.Node:
    mine = [one for one in run["attempts"] if one["step"] == step]
    rows: list[Row] = [
        [
            h.a(href=addresses.attempt(run["run"], one["attempt"]))[one["place"] or one["attempt"]],
            str(one["visit"]),
            str(one["number"]),
            verdict("refuted" if is_refuted(one["said"], one["found"]) else one["verdict"], one["status"]),
            one["summary"].partition("\n")[0],
            span(between(one["started_at"], one["ended_at"])) if one["ended_at"] else "at work",
        ]
        for one in mine[-_MOST_ROWS:]
    ]
    columns = [
        Column("attempt"),
        Column("visit", True, False),
        Column("try", True, False),
        Column("verdict"),
        Column("in its words", narrow=False),
        Column("took", True),
    ]
    left = len(mine) - _MOST_ROWS
    return [
        h.h2[f"Attempts of {step}", h.small[number(len(mine))]],
        h.div(class_="sheet")[table(f"attempts of {step}", columns, rows)] if mine else h.p(class_="soft")["None yet."],
        h.p(class_="soft")[f"{number(left)} earlier ones are not shown."] if left > 0 else None,
    ]


# ---- the items: a column for each wave, a line for each dependency, and why each one waits


def _items(view: RunPage) -> h.Node:
    nodes = view["items"]
    if not nodes:
        return None
    waves = max(one["wave"] for one in nodes)
    told = f"{counted(len(nodes), 'item')} in {counted(waves, 'wave')}" if waves else counted(len(nodes), "item")
    rows = [_item_row(view["run"]["run"], one) for one in nodes]
    columns = [Column("item"), Column("state"), Column("waits for", narrow=False), Column("attempts")]
    return [
        h.h2["Items", h.small[told]],
        h.div(class_="sheet")[
            h.div(class_="wide narrow-hide", tabindex="0", role="region", aria_label="the graph of items")[
                _graph(nodes)
            ]
            if len(nodes) <= _MOST_DRAWN
            else None,
            table("items", columns, rows),
        ],
    ]


def _item_row(run: str, one: ItemNode) -> Row:
    state = state_of(one["status"])
    tries: list[h.Node] = []
    for count, name in enumerate(one["attempts"][-4:], max(1, len(one["attempts"]) - 3)):
        tries += [h.a(".whole", href=addresses.attempt(run, name), title=name)[f"try {count}"], " "]
    return [
        [h.strong[one["item"]], h.span(class_="soft")[f" {one['title']}"] if one["title"] else None],
        [
            h.span(class_="whole")[mark(state.mark, tone=state.tone), f" {state.words}"],
            h.div(class_="small soft")[one["blocked_by"]] if one["blocked_by"] else None,
        ],
        ", ".join(one["depends_on"]) or "–",
        tries or "–",
    ]


def _graph(nodes: Sequence[ItemNode]) -> h.Element:
    column = _columns(nodes)
    rows: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for one in sorted(nodes, key=lambda node: column[node["item"]]):
        at = column[one["item"]]
        places[one["item"]] = (at * (_WIDE + _APART) + 4, rows.get(at, 0) * (_HIGH + _BELOW) + 24)
        rows[at] = rows.get(at, 0) + 1
    width = (max(column.values()) + 1) * (_WIDE + _APART) - _APART + 8
    height = max(rows.values()) * (_HIGH + _BELOW) + 24
    return h.svg(
        {"viewBox": f"0 0 {width} {height}"}, class_="graph", width=str(width), height=str(height), aria_hidden="true"
    )[
        (
            h.text(x=str(at * (_WIDE + _APART) + 4), y="12", class_="faint")[f"wave {at + 1}"]
            for at in sorted(rows)
            if any(one["wave"] for one in nodes)
        ),
        (
            h.path(class_="edge", d=_edge(places[before], places[one["item"]]))
            for one in nodes
            for before in one["depends_on"]
            if before in places
        ),
        (_box(one, *places[one["item"]]) for one in nodes),
    ]


def _columns(nodes: Sequence[ItemNode]) -> Mapping[str, int]:
    """Of those in a wave, the wave; of others, one behind what they wait for."""
    found: dict[str, int] = {one["item"]: one["wave"] - 1 for one in nodes if one["wave"]}
    for one in nodes:  # an item comes after those that it depends on; otherwise it stands in front
        found.setdefault(one["item"], max((found.get(name, -1) + 1 for name in one["depends_on"]), default=0))
    return found


def _edge(before: tuple[int, int], after: tuple[int, int]) -> str:
    x, y = before[0] + _WIDE, before[1] + _HIGH // 2
    to, down = after[0], after[1] + _HIGH // 2
    bend = max(24, (to - x) // 2)
    return f"M{x} {y}C{x + bend} {y} {to - bend} {down} {to} {down}"


def _box(one: ItemNode, x: int, y: int) -> h.Element:
    state = state_of(one["status"])
    waits = " wait" if one["blocked_by"] else ""
    words = one["blocked_by"] or state.words
    return h.g(class_=state.tone)[
        h.title[f"{one['item']} {one['title']}: {words}"],
        h.rect(class_=f"box{waits}", x=str(x), y=str(y), width=str(_WIDE), height=str(_HIGH), rx="8"),
        h.g(class_="glyph", transform=f"translate({x + 10} {y + 13}) scale(.8)")[strokes(state.mark)],
        h.text(x=str(x + 38), y=str(y + 20))[_cut(one["item"], 22)],
        h.text(x=str(x + 38), y=str(y + 36), class_="faint")[
            _cut(words if one["blocked_by"] else one["title"] or words, 27)
        ],
    ]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# ---- what it made, and what happened


def _artifacts(run: RunView) -> h.Node:
    made = run["artifacts"]
    if not made:
        return None
    known = {one["attempt"] for one in run["attempts"]}
    columns = [
        Column("artifact"),
        Column("step", narrow=False),
        Column("made by"),
        Column("size", True),
        Column("SHA-256", narrow=False),
    ]
    rows = [_artifact_row(run["run"], one, known) for one in reversed(made)]
    rest = rows[_MOST_ARTIFACTS:]
    more = (
        h.details[h.summary[f"{len(rest)} earlier ones"], table("earlier artifacts", columns, rest)] if rest else None
    )
    return [
        h.h2["Artifacts", h.small[number(len(made))]],
        h.div(class_="sheet")[table("artifacts", columns, rows[:_MOST_ARTIFACTS]), more],
    ]


def _artifact_row(run: str, one: ArtifactView, known: set[str]) -> Row:
    return [
        h.a(href=addresses.artifact(run, one["name"]))[path_words(one["name"])],
        one["step"] or "–",
        h.a(href=addresses.attempt(run, one["by"]))[one["by"]] if one["by"] in known else one["by"],
        size(one["size"]),
        short_hash(one["sha256"]),
    ]


def _history(run: str, page: HistoryPage) -> h.Node:
    lines = list(reversed(page["lines"]))[:_MOST_LINES]
    earlier: h.Node = None
    if lines and lines[-1]["seq"] > 1:
        earlier = h.p[h.a(".button", href=addresses.run(run, at=lines[-1]["seq"] - 1) + "#history")["Earlier"]]
    return [
        h.h2["What happened", h.small[f"{counted(page['count'], 'event')}, the latest first"]],
        h.ol(class_="history")[
            (
                h.li[
                    h.a(".seq", href=addresses.run(run, at=line["seq"]), title="the run at this event")[
                        str(line["seq"])
                    ],
                    clock(line["at"]),
                    h.span(class_="by soft")[line["by"]],
                    h.span[line["text"]],
                ]
                for line in lines
            )
        ],
        earlier,
    ]


def _past(run: str, at: int, last: int) -> h.Node:
    """A slider that needs no script: a form with a button."""
    here = addresses.run(run)
    return h.form(class_="past", method="get", action=here, data_slider="1")[
        h.label(for_="at")[f"event {at} of {last}"],
        h.input("#at", type="range", name="at", min="1", max=str(last), value=str(at)),
        h.span(class_="row-of")[
            h.button(type="submit")["Show"],
            h.a(".button.now", href=here)["Now"],
        ],
    ]


def _seal(seal: SealView) -> h.Node:
    return h.p(class_="seal")[
        mark("seal"),
        f" {counted(seal['events'], 'event')}, chained; the last link is {seal['head'][:16]}. Check it: ",
        command("tenuto verify"),
    ]
