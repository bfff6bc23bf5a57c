"""What a page is: named sections inside one frame.

A live page asks for the sections that changed: each has a digest of its HTML, and only sections whose digest the
browser does not have are sent again. So a section holds what changes together, and its name is its id in the document.

Everything passes `_rendered` at the end: htpy has escaped what is markup, and there every character that a browser
would obey without showing it (reversed writing, controls) is spelled out. No page can forget it. This is the one module
that takes markup as it is (Markup): what htpy has just made of a section, and the style of a page that is one file.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict

import htpy as h
from markupsafe import Markup

from tenuto.encoding import escape_terminal
from tenuto.pages import addresses
from tenuto.pages.parts import mark
from tenuto.pages.score import patterns

Place = Literal["inbox", "runs", "compare", "figures", "machine"]

_PLACES: dict[Place, tuple[str, str]] = {
    "inbox": (addresses.INBOX, "Inbox"),
    "runs": (addresses.RUNS, "Runs"),
    "compare": (addresses.COMPARE, "Compare"),
    "figures": (addresses.FIGURES, "Figures"),
    "machine": (addresses.MACHINE, "Machine"),
}
_KEYS = (
    ("g i", "inbox"),
    ("g r", "runs"),
    ("j  k", "next, previous"),
    ("Enter", "open it"),
    ("Esc", "up, or close"),
    ("/", "find"),
    ("f", "failed only"),
    ("l", "log"),
    ("d", "difference"),
    ("[  ]", "event back, forth"),
    ("a", "to the card (decides nothing)"),
    ("c", "copy the command"),
    ("t", "light or dark"),
    ("?", "these keys"),
)


class Site(NamedTuple):
    """What every page of one server says, whatever it shows."""

    repository: str
    """The name of the work tree's folder."""
    needs_you: int
    """How many runs wait for a person: counted in the title and on the icon."""
    may_decide: bool
    """Forms are live; otherwise the server only shows."""
    form_token: str = ""


class Section(NamedTuple):
    name: str
    body: h.Node


class Page(NamedTuple):
    title: str
    place: Place
    sections: Sequence[Section]
    run: str = ""
    """The run that it shows: a live page looks again when something happens there. Empty: any run."""
    is_past: bool = False
    """It shows an earlier state: nothing on it changes any more."""


class ChangedSection(TypedDict):
    name: str
    digest: str
    html: str  # what stands inside the section


def document(page: Page, site: Site) -> str:
    """The whole page, as a server answers it."""
    waiting = f"({site.needs_you}) " if site.needs_you else ""
    return _rendered(
        h.html(".plain", lang="en")[
            h.head[
                _metas(),
                h.title[f"{waiting}{page.title} · tenuto"],
                h.link(rel="icon", type="image/svg+xml", href=_icon(site.needs_you)),
                h.link(rel="stylesheet", href="/static/tenuto.css"),
                h.script(src="/static/theme.js"),
                h.script(type="module", src="/static/tenuto.js"),
                h.script(type="module", src="/static/page.js"),
            ],
            h.body(
                data_run=page.run,
                data_needs_you=str(site.needs_you),
                data_live=None if page.is_past else "1",
                class_="is-past" if page.is_past else None,
            )[
                h.a(".skip", href="#main")["To the content"],
                h.header[
                    h.a(class_="brand", href="/")[mark("fermata"), "tenuto"],
                    h.span(class_="repository", title="the repository")[site.repository],
                    h.nav(aria_label="pages")[_entries(page.place, site.needs_you)],
                    h.div(class_="tools")[
                        h.span("#live.live", role="status")[h.span["not live" if page.is_past else "connecting"]],
                        h.button("#notify.bare", type="button", hidden=True, title="tell me when a run needs me")[
                            mark("bell", "tell me when a run needs me")
                        ],
                        h.button("#theme.bare", type="button", aria_label="light or dark", title="light or dark (t)")[
                            mark("theme")
                        ],
                        h.button(".bare", type="button", popovertarget="keys", aria_label="keys", title="keys (?)")[
                            "?"
                        ],
                    ],
                ],
                h.main("#main", tabindex="-1")[
                    None if site.may_decide else _only_shows(),
                    (_section(section) for section in page.sections),
                ],
                patterns(),
                _keys(),
            ],
        ]
    )


def lone_document(title: str, body: h.Node) -> str:
    """A page before a session, or instead of one: it says nothing about the repository."""
    return _rendered(
        h.html(".plain", lang="en")[
            h.head[
                _metas(),
                h.title[f"{title} · tenuto"],
                h.link(rel="icon", type="image/svg+xml", href=_icon(0)),
                h.link(rel="stylesheet", href="/static/tenuto.css"),
                h.script(src="/static/theme.js"),
                h.script(type="module", src="/static/tenuto.js"),
            ],
            h.body[h.main("#main")[body]],
        ]
    )


def file_document(page: Page, foot: h.Node) -> str:
    """The same sections as one file: no script, nothing to load, and only its own style is allowed."""
    style = (Path(__file__).parent / "static" / "tenuto.css").read_text("utf-8")
    allowed = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'"
    return _rendered(
        h.html(".plain", lang="en")[
            h.head[
                _metas(),
                h.meta({"http-equiv": "Content-Security-Policy"}, content=policy),
                h.title[f"{page.title} · tenuto"],
                h.style[Markup(style)],
            ],
            h.body(".file")[
                patterns(), h.main("#main")[(_section(section) for section in page.sections)], h.footer[foot]
            ],
        ]
    )


def changed(page: Page, have: Mapping[str, str]) -> list[ChangedSection]:
    """The sections whose digest the browser does not have, in the page's order."""
    made = [(section.name, _rendered(h.fragment[section.body])) for section in page.sections]
    digested: list[ChangedSection] = [{"name": name, "digest": digest(html), "html": html} for name, html in made]
    return [one for one in digested if have.get(one["name"]) != one["digest"]]


def digest(html: str) -> str:
    return hashlib.sha256(html.encode()).hexdigest()[:16]


def _icon(needs_you: int) -> str:
    """A fermata; with a number on it, where runs wait for a person."""
    return f"/static/icon-{min(needs_you, 10)}.svg"


def _metas() -> list[h.Node]:
    return [
        h.meta(charset="utf-8"),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.meta(name="color-scheme", content="light dark"),
        h.meta(name="referrer", content="same-origin"),
    ]


def _rendered(node: h.Renderable) -> str:
    """Also of text that was cut in the middle of a character."""
    html = str(node)
    if html.replace("\n", "").replace("\t", "").isprintable():
        return html
    return escape_terminal(html, keep="\n\t")


def _section(section: Section) -> h.Element:
    """Its digest stands in it: the script tells the server which ones it has."""
    body = _rendered(h.fragment[section.body])
    return h.section(id=section.name, data_digest=digest(body))[Markup(body)]  # as htpy has just written it


def _only_shows() -> h.Element:
    return h.div(class_="band idle")[
        mark("look"), h.p["This server only shows. Decide at a terminal: every card says with which command."]
    ]


def _entries(here: Place, needs_you: int) -> list[h.Element]:
    return [
        h.a(href=address, aria_current="page" if place == here else None)[
            name,
            h.span(class_="count")[str(needs_you), h.span(class_="hidden")[" need you"]]
            if place == "inbox" and needs_you
            else None,
        ]
        for place, (address, name) in _PLACES.items()
    ]


def _keys() -> h.Element:
    return h.div("#keys.keys", popover="auto")[
        h.h2["Keys"],
        h.dl[([h.dt[(h.kbd[key] for key in keys.split("  "))], h.dd[words]] for keys, words in _KEYS)],
        h.button(type="button", popovertarget="keys", popovertargetaction="hide")["Close"],
    ]
