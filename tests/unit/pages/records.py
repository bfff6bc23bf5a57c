"""Records that pages are made of, from runs that the engine's own rules played; and the same ones made hostile."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from tenuto.core.todo import todo
from tenuto.pages.page import Site
from tenuto.show.changes import DiffLine, DiffView, FileDiff, GateFile
from tenuto.show.run_page import RunPage, budget_of, items_of
from tenuto.show.score import score_view
from tenuto.show.sentences import sentence
from tenuto.show.views import run_view
from tenuto.show.waiting import Surroundings, waiting_view
from tests.property.rehearsal import Rehearsal, item

NOW = "2026-11-15T23:00:00.000Z"
SITE = Site("notes", 2, True, "token")
LOOK_ONLY = Site("notes", 0, False)
SHOWN = [{"path": "docs/plan.md", "sha256": "ab" * 32}]

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "[click](javascript:alert(1)) ![x](https://evil.example/x.png) [d](data:text/html,x)",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "{{constructor.constructor('alert(1)')()}}${alert(1)}",
    "<!--<script>--><base href=//evil.example/>",
    "\u202egnp.exe\u2066\x1b[31m\x00\x07",
    "<a href='&#106;avascript:alert(1)' style='position:fixed'>x</a>\ud800",
)


def played(steps: int = 10_000, **more: Any) -> Rehearsal:
    """The eight steps; a review sends the design back once, and one claim does not hold."""
    told: dict[str, int] = {}

    def answer(attempt: Any) -> Any:
        told[attempt["role"]] = told.get(attempt["role"], 0) + 1
        return "NEEDS_REVISION" if attempt["role"] == "ct-aggregator" and told["ct-aggregator"] == 1 else "DONE"

    play = Rehearsal("eight-step", answer, [item("01"), item("02"), item("03", "01", "02")], **more)
    for _ in range(steps):
        if not play.step():
            break
    return play


def at_gate(**more: Any) -> Rehearsal:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")], {"approval": True}, lambda gate: None)
    while play.run["position"] != "post-research":
        assert play.step()
    play.say({"do": "OpenGate", "name": "post-research", "prompt": "Go on?", "shown": SHOWN, **more})
    return play


def page_of(play: Rehearsal, is_past: bool = False) -> RunPage:
    run, pipeline = play.run, play.pipeline
    due = todo(pipeline, run, NOW)
    lines: Any = [
        {"seq": seq, "at": event["at"], "by": event["by"], "type": event["type"], "text": sentence(event)}
        for seq, event in enumerate(play.journal, 1)
    ]
    return {
        "run": run_view(run, pipeline),
        "at": run["version"],
        "is_past": is_past,
        "driven": {"by": "nobody", "words": "nobody drives it", "command": "tenuto resume r"},
        "waiting": waiting_view(run, Surroundings(pipeline, play.repo, NOW)),
        "budget": budget_of(run),
        "score": score_view(run, pipeline, NOW),
        "items": list(items_of(run, pipeline)),
        "due": [],
        "why_not_more": ["the cap: at most 4 agents work at a time"] if due else [],
        "history": {"lines": lines[-100:], "first": max(1, len(lines) - 99), "last": len(lines), "count": len(lines)},
        "seal": {"run": "r", "events": len(lines), "head": "ab" * 32},
    }


def difference(text: str = "# New") -> DiffView:
    lines: list[DiffLine] = [
        {"mark": "-", "old": 1, "new": 0, "text": "# Old"},
        {"mark": "+", "old": 0, "new": 1, "text": text},
    ]
    file: FileDiff = {
        "path": "docs/plan.md",
        "before": "docs/plan.md",
        "after": "docs/plan.md",
        "added": 1,
        "removed": 1,
        "is_binary": False,
        "hunks": [{"header": "@@ -1 +1 @@", "lines": lines}],
    }
    return {"source": "stored", "of": "two versions", "files": [file], "is_cut": False}


def shown(has_changed: bool = False) -> list[GateFile]:
    sha = "ab" * 32
    return [
        {
            "path": "docs/plan.md",
            "sha256": sha,
            "now": "cd" * 32 if has_changed else sha,
            "is_as_shown": not has_changed,
            "document": {"sha256": sha, "size": 16, "text": "# Plan\n\nWords.\n", "why_not": ""},
            "before": "ef" * 32,
            "diff": difference(),
            "changed": difference() if has_changed else None,
        }
    ]


# What a closed set of words stands in, or a moment: everything else may hold what somebody else wrote.
_OURS = set(
    "status mark source phase kind state act needs empty driver mode type cause started_at since ended_at created_at "
    "updated_at stopped_at until at".split()
)


def hostile(record: Any, text: str, key: str = "") -> Any:
    """The same record with this text in every place that anybody but Tenuto may fill, keys of tables included."""
    match record:
        case dict():
            return {name: hostile(value, text, name) for name, value in record.items()}
        case tuple():
            return type(record)(*(hostile(one, text, key) for one in record))
        case list():
            return [hostile(one, text, key) for one in record]
        case str() if key == "by" and record in ("engine", "orchestrator", "person", "nobody", "parked"):
            return record
        case str() if key == "verdict" and record:
            return record
        case str():
            return record if key in _OURS else text
    return record


class Markup(HTMLParser):
    """Every element and attribute of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.found if name == tag)


_ADDRESSES = (
    "href",
    "src",
    "action",
    "formaction",
    "xlink:href",
    "poster",
    "data",
    "cite",
    "background",
    "ping",
    "srcset",
)
_NEVER = {
    "iframe",
    "object",
    "embed",
    "base",
    "img",
    "style",
    "link",
    "frame",
    "math",
    "foreignobject",
    "use",
    "animate",
}


def complaints(html: str) -> list[str]:
    """What the thin rule refuses: style=, on*, an odd scheme, an element that no page has, a script of no page."""
    wrong = []
    for tag, attributes in Markup(html).found:
        if tag in _NEVER - {"link"}:
            wrong.append(f"<{tag}>")
        if tag == "script" and not attributes.get("src", "").startswith("/static/"):
            wrong.append(f"<script> {attributes}")
        if tag == "link" and not attributes.get("href", "").startswith("/static/"):
            wrong.append(f"<link> {attributes}")
        for name, value in attributes.items():
            if name == "style" or name.startswith("on") or name in ("srcdoc", "nonce"):
                wrong.append(f"<{tag} {name}={value!r}>")
            if name in _ADDRESSES and not value.startswith(("/", "#", "?", "https://", "http://")):
                wrong.append(f"<{tag} {name}={value!r}>")
            if name in _ADDRESSES and value.startswith("//"):
                wrong.append(f"<{tag} {name}={value!r}>")
    return wrong
