"""What somebody else wrote is never more than text, on any page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tenuto.pages
from tenuto.pages import addresses, documents
from tenuto.pages.door import digits_page, refusal_page, signing_page
from tenuto.pages.inbox import inbox_page, runs_page
from tenuto.pages.page import Page, Section, document, file_document
from tenuto.pages.run import Asked, run_page
from tests.unit.pages.others import other_pages
from tests.unit.pages.records import HOSTILE, SITE, at_gate, complaints, hostile, page_of, played, shown


def entry(**more: Any) -> Any:
    return {
        "run": "r",
        "name": "A run",
        "summary": "words",
        "pipeline": "eight-step",
        "status": "waiting_gate",
        "position": "spec",
        "created_at": "2026-11-15T10:00:00.000Z",
        "updated_at": "2026-11-15T10:00:00.000Z",
        "needs": None,
        "waits": {
            "kind": "gate",
            "since": "2026-11-15T10:00:00.000Z",
            "until": "",
            "text": "Go on?",
            "documents": 2,
            "fields": 0,
        },
        "driven": {"by": "nobody", "words": "it rests", "command": "tenuto resume r"},
        "progress": {"wave": 1, "waves": 2, "items": 4, "items_ended": 1},
        "figures": {"attempts": 3, "refuted": 1, "micro_usd": 10_000, "tokens": 5, "busy_ms": 1200},
        "error": "it broke",
        **more,
    }


def inbox(**more: Any) -> Any:
    needs = [
        entry(needs=need) for need in ("gate", "form", "question", "limit", "pause", "blocked", "stalled", "failed")
    ]
    return {
        "has_journal": True,
        "needs_you": needs,
        "under_way": [entry(status="running")],
        "recent": [entry(status=status) for status in ("completed", "failed", "cancelled")],
        "next": "r",
        "words": "words",
        "status": "",
        "empty": "",
        **more,
    }


def pages(text: str) -> list[Page]:
    gate: Any = hostile(page_of(at_gate()), text)
    ended: Any = hostile(page_of(played()), text)
    at_work: Any = hostile(page_of(played(60)), text)
    documents_shown: Any = hostile(shown(), text)
    failed: Any = {**ended, "run": {**ended["run"], "phase": "ended", "failure": {"step": text, "error": text}}}
    return [
        inbox_page(hostile(inbox(), text), SITE),
        runs_page(hostile(inbox(), text)),
        run_page(gate, SITE, documents_shown),
        run_page(gate, SITE, documents_shown, Asked(level="signed", step=text)),
        run_page(ended, SITE),
        run_page(at_work, SITE),
        run_page(failed, SITE),
        *other_pages(text),
    ]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_text_in_every_field_is_text_on_every_page(number: int) -> None:
    text = HOSTILE[number]
    for page in pages(text):
        html = document(page, SITE._replace(repository=text))
        assert complaints(html) == []
        assert "<script>" not in html and "\u202e" not in html and "\x1b" not in html and "\x00" not in html
        html.encode()  # half a character does not get this far


def test_the_lists_are_bounded_however_many_runs_wait_or_run() -> None:
    many = inbox(needs_you=[entry(needs="gate")] * 10_000, under_way=[entry(status="running")] * 10_000)
    for page in (inbox_page(many, SITE), runs_page(many)):
        html = document(page, SITE)
        assert len(html) < 200_000 and re.search(r"(9,9\d\d|19,8\d\d) more", html), "and it says how many are left out"


def test_no_id_stands_twice_on_a_page() -> None:
    """A label, a key or a link that leads to an id would lead to the wrong one."""
    fields = [("gate", "g")]
    door = [digits_page("approve", "/a", fields, was_wrong=True), signing_page("r", "approve", "words", fields)]
    for page in [*pages("words"), *door, refusal_page(409, "late", "too late", "look again", "kept")]:
        ids = re.findall(r'\sid="([^"]*)"', document(page, SITE))
        assert len(ids) == len(set(ids)), sorted(one for one in set(ids) if ids.count(one) > 1)


def test_the_rule_sees_what_it_is_there_for() -> None:
    for wrong in (
        '<a style="x">',
        "<p onclick=x>",
        "<a href='javascript:x'>",
        "<iframe>",
        "<script>",
        "<a href='//x'>",
    ):
        assert complaints(wrong), wrong


def test_a_page_as_a_file_has_no_script_and_loads_nothing() -> None:
    html = file_document(run_page(page_of(played()), SITE), "foot")
    assert "<script" not in html and "/static/" not in html
    assert "default-src &#39;none&#39;" in html


def test_only_the_frame_takes_markup_as_it_is() -> None:
    folder = Path(next(iter(tenuto.pages.__path__)))
    raw = {one.name for one in folder.glob("*.py") if "Markup(" in one.read_text("utf-8")}
    assert raw == {"page.py"}


def test_links_of_documents_lead_to_http_only_and_show_their_host() -> None:
    html = str(documents.markdown("[a](https://example.org/x) [b](javascript:alert(1)) [c](//evil.example)"))
    assert html.count("<a ") == 1 and "(example.org)" in html
    assert addresses.outward("https://user@example.org/") == ("", "")


def test_the_name_of_a_run_stays_one_part_of_an_address() -> None:
    assert addresses.run("a/../b?c#d") == "/runs/a%2F..%2Fb%3Fc%23d"
    assert addresses.run("..") == "/runs/%2E%2E"


def test_colours_of_a_log_are_classes_and_its_other_escapes_are_left_out() -> None:
    import htpy as h

    html = document(
        Page("t", "inbox", [Section("s", h.pre[documents.log("\x1b[31mred\x1b[0m\x1b]0;title\x07 10%\r20%")])]), SITE
    )
    assert "<pre>20%</pre>" in html
    html = str(h.pre[documents.log("\x1b[1;31mred\x1b[0m plain\x1b[2J\x1b]8;;http://evil.example\x07link\x1b]8;;\x07")])
    assert html == '<pre><span class="a1 a31">red</span> plainlink</pre>'
