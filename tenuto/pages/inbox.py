"""The inbox and the list of runs: what needs a person first, then what is under way, then what has ended.

A row is one link. Its mark, its word and its colour say the same three times. Where there is nothing, the page says
with which command something begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import htpy as h

from tenuto.core.budget import money
from tenuto.pages import addresses
from tenuto.pages.page import Page, Section, Site
from tenuto.pages.parts import State, command, counted, empty, hidden, mark, moment, pills, state_of
from tenuto.show.measures import number, span

if TYPE_CHECKING:
    from tenuto.show.inbox import InboxEntry, InboxView, Need

_NEEDS: dict[Need, State] = {
    "gate": State("you", "fermata", "waits for your decision"),
    "form": State("you", "fermata", "asks you to fill in a form"),
    "question": State("you", "question", "asks you"),
    "limit": State("you", "pause", "met a limit"),
    "pause": State("you", "pause", "paused"),
    "blocked": State("bad", "blocked", "blocked"),
    "stalled": State("you", "alone", "should go on, and nobody drives it"),
    "failed": State("bad", "cross", "failed"),
}
_MOST_NEEDS = 50  # rows of the inbox
_MOST_SHOWN = 8  # of the other groups
_MOST_LISTED = 200
_FILTERS = (
    ("", "all"),
    ("running", "running"),
    ("waiting_gate", "waiting"),
    ("paused", "paused"),
    ("blocked", "blocked"),
    ("failed", "failed"),
    ("completed", "completed"),
)


def inbox_page(view: InboxView, site: Site) -> Page:
    if view["empty"] in ("no-journal", "no-runs"):
        return Page("Inbox", "inbox", [Section("inbox", _beginning(view["empty"]))])
    return Page(
        "Inbox",
        "inbox",
        [
            Section("finding", _find_form("", "")),
            Section("needs-you", _needs_you(view, site)),
            Section("running", _running(view["under_way"])),
            Section("recent", _recent(view, addresses.RUNS)),
        ],
    )


def runs_page(view: InboxView) -> Page:
    """Every run, filtered by words and status, page by page."""
    if view["empty"] in ("no-journal", "no-runs"):
        return Page("Runs", "runs", [Section("runs", _beginning(view["empty"]))])
    unfinished = [*view["needs_you"], *view["under_way"]]
    known = {entry["run"] for entry in unfinished}
    entries = [*unfinished, *(entry for entry in view["recent"] if entry["run"] not in known)]
    left = len(entries) - _MOST_LISTED
    body: h.Node = [
        h.ul(class_="list")[(_row(entry) for entry in entries[:_MOST_LISTED])],
        h.p(class_="soft")[f"{left:,} more are not shown: look for words, or for a status."] if left > 0 else None,
    ]
    if not entries:
        body = h.div(class_="sheet")[
            empty(
                "look", "No run fits.", h.p["Look for fewer words, or at ", h.a(href=addresses.RUNS)["all runs"], "."]
            )
        ]
    more = (
        h.p[
            h.a(".button", href=addresses.runs(q=view["words"], status=view["status"], after=view["next"]))[
                "Earlier runs"
            ]
        ]
        if view["next"]
        else None
    )
    return Page("Runs", "runs", [Section("finding", _find(view)), Section("runs", [body, more])])


def _find(view: InboxView) -> h.Node:
    here = view["status"]
    return [
        h.h1["Runs"],
        _find_form(view["words"], here),
        h.div(class_="filters")[
            pills(
                "which runs",
                ((words, addresses.runs(q=view["words"], status=status), status == here) for status, words in _FILTERS),
            )
        ],
    ]


def _find_form(words: str, status: str) -> h.Element:
    return h.form(class_="filters", method="get", action=addresses.RUNS, role="search")[
        h.input("#find", type="search", name="q", value=words, placeholder="Find a run", aria_label="find a run"),
        hidden({"status": status}) if status else None,
        h.button(type="submit")["Find"],
    ]


def _needs_you(view: InboxView, site: Site) -> h.Node:
    entries = view["needs_you"]
    if not entries:
        return [
            h.h1["Needs you"],
            h.p(class_="calm")[mark("check", tone="well"), " Nothing waits for you."],
        ]
    return [
        h.h1["Needs you ", h.small[str(len(entries))]],
        h.ul(class_="list needs")[(_need(entry, site) for entry in entries[:_MOST_NEEDS])],
        _more(len(entries) - _MOST_NEEDS),
    ]


def _need(entry: InboxEntry, site: Site) -> h.Element:
    state = _NEEDS[entry["needs"] or "pause"]
    waits = entry["waits"]
    asked = (waits["text"] if waits else "") or entry["error"] or entry["name"]
    if entry["needs"] == "stalled":
        asked = f"{entry['name']}: nobody drives it"
    since = (waits["since"] if waits else None) or entry["updated_at"]
    aside: h.Node = None
    if entry["needs"] == "failed" and site.may_decide:
        aside = h.form(method="post", action=f"{addresses.run(entry['run'])}/seen")[
            hidden({"token": site.form_token}), h.button(".bare", type="submit", title="put it aside")["Seen"]
        ]
    elif entry["needs"] == "stalled":
        aside = command(entry["driven"]["command"])
    return h.li(class_=f"item {state.tone}")[
        mark(state.mark, state.words),
        h.a(".title", href=_where(entry))[asked],
        h.span(class_="more")[
            h.span[entry["name"] or entry["run"]] if asked != entry["name"] else None,
            h.span[state.words],
            h.span["asked ", moment(since, ago=True)],
            h.span[counted(waits["documents"], "document")] if waits and waits["documents"] else None,
            _figures(entry),
        ],
        h.span(class_="side")[aside] if aside else None,
    ]


def _where(entry: InboxEntry) -> str:
    """Of what asks for something, to its card."""
    return addresses.run(entry["run"]) + ("#card" if entry["needs"] not in (None, "failed", "stalled") else "")


def _running(entries: Sequence[InboxEntry]) -> h.Node:
    if not entries:
        return None
    return [
        h.h2["Running", h.small[str(len(entries))]],
        h.ul(class_="list")[(_row(entry) for entry in entries[:_MOST_SHOWN])],
        _more(len(entries) - _MOST_SHOWN),
    ]


def _more(left: int) -> h.Node:
    """A page is bounded, however many runs there are."""
    return h.p[f"and {left:,} more: ", h.a(href=addresses.RUNS)["all runs"]] if left > 0 else None


def _recent(view: InboxView, more: str) -> h.Node:
    if not view["recent"]:
        return None
    return [
        h.h2["Recent"],
        h.ul(class_="list")[(_row(entry) for entry in view["recent"][:_MOST_SHOWN])],
        h.p(class_="row-of")[
            h.a(".button", href=more)["All runs"],
            pills(
                "which runs", ((words, addresses.runs(status=status), False) for status, words in _FILTERS if status)
            ),
        ],
    ]


def _row(entry: InboxEntry) -> h.Element:
    state = _NEEDS[entry["needs"]] if entry["needs"] else state_of(entry["status"])
    refuted = entry["figures"]["refuted"] if entry["figures"] else 0
    words = f"{state.words}, {refuted} refuted" if refuted and state.tone == "well" else state.words
    progress = entry["progress"]
    return h.li(class_=f"item {state.tone}")[
        mark(state.mark, words),
        h.a(".title", href=_where(entry))[entry["name"] or entry["run"]],
        h.span(class_="more")[
            h.span(class_="toned")[words],
            h.span[entry["pipeline"]] if entry["pipeline"] else None,
            h.span[f"in {entry['position']}"] if entry["position"] and state.tone == "work" else None,
            h.span[f"wave {progress['wave']}/{progress['waves']}"] if progress and progress["waves"] else None,
            _bar(progress["items_ended"], progress["items"]) if progress and progress["items"] else None,
            h.span[entry["error"]] if entry["error"] else None,
            _figures(entry),
        ],
        h.span(class_="side")[moment(entry["updated_at"], ago=True)],
    ]


def _bar(ended: int, items: int) -> h.Element:
    return h.span[
        h.svg(".small-meter", {"viewBox": "0 0 60 8"}, role="img", aria_label=f"{ended} of {items} items")[
            h.rect(".rail", width="60", height="8", rx="4"),
            h.rect(".fill", width=f"{60 * ended / max(items, 1):.1f}", height="8", rx="4"),
        ],
        f" {ended}/{items} items",
    ]


def _figures(entry: InboxEntry) -> h.Node:
    known = entry["figures"]
    if known is None:
        return None
    return [
        h.span[counted(known["attempts"], "attempt")] if known["attempts"] else None,
        h.span[span(known["busy_ms"])] if known["busy_ms"] else None,
        h.span[money(known["micro_usd"])] if known["micro_usd"] is not None else None,
        h.span[f"{number(known['tokens'])} tokens"] if known["tokens"] and known["micro_usd"] is None else None,
    ]


def _beginning(why: str) -> h.Node:
    """Where there is nothing, how something begins."""
    if why == "no-journal":
        return h.div(class_="sheet")[
            empty(
                "fermata",
                "Nothing is recorded here yet",
                h.p["Tenuto keeps what happens in this repository in a journal beside its files. Begin one:"],
                h.p[command("tenuto init")],
                h.p["Then ask for something:"],
                h.p[command("tenuto run 'what you want' --agent auto")],
            )
        ]
    return h.div(class_="sheet")[
        empty(
            "fermata",
            "No runs yet",
            h.p["A run is one request going through one pipeline. Start one; this page follows it."],
            h.p[command("tenuto run 'what you want' --agent auto")],
            h.p(class_="small")["Which pipelines there are: ", command("tenuto pipeline list")],
        )
    ]
