"""The pages of an attempt and an artifact."""

from __future__ import annotations

from typing import Any

from tenuto.pages.documents import MOST_LINES
from tenuto.pages.evidence import Kept, artifact_page, attempt_page
from tenuto.pages.page import document
from tests.unit.pages.others import artifact, attempt, log_part
from tests.unit.pages.records import SITE, Markup, difference


def html_of(kept: Kept, **more: Any) -> str:
    return document(attempt_page("r", "A run", attempt(**more), kept), SITE)


def test_what_it_said_stands_beside_what_was_found() -> None:
    html = html_of(Kept("reply"))
    assert "It said" in html and "all tests pass" in html
    assert "The receipt found" in html and "exit status 1" in html
    assert "its claim was refuted" in html


def test_a_part_of_a_log_leads_to_the_parts_before_and_behind_it() -> None:
    hrefs = [one["href"] for one in Markup(html_of(Kept("output", 0, log_part(first=100, size=900)))).all("a")]
    assert any("before=100" in href for href in hrefs) and any("after=108" in href for href in hrefs)
    assert any(href.endswith("/log?of=output&file=0") for href in hrefs)
    whole = [one["href"] for one in Markup(html_of(Kept("output", 0, log_part(first=0, size=8)))).all("a")]
    assert not any("before=" in href or "after=" in href for href in whole)


def test_no_page_holds_more_lines_of_a_log_than_a_browser_likes() -> None:
    text = "line\n" * (MOST_LINES * 3)
    html = html_of(Kept("output", 0, log_part(text, 0, len(text))))
    assert html.count("line\n") <= MOST_LINES and "earlier lines of this part are not shown" in html


def test_an_artifact_shows_its_document_its_versions_and_a_difference() -> None:
    html = document(artifact_page("r", "A run", artifact()), SITE)
    assert ">Plan</h4>" in html and "planning-1-planner-1" in html and "against=" in html
    html = document(artifact_page("r", "A run", artifact(against="cd" * 32, diff=difference())), SITE)
    assert "# Old" in html and "# New" in html


def test_what_is_no_text_can_be_downloaded() -> None:
    gone: Any = {"sha256": "ab" * 32, "size": 9, "text": None, "why_not": "it is no text"}
    html = document(artifact_page("r", "A run", artifact(document=gone)), SITE)
    assert "it is no text. Download it" in html and "/runs/r/raw/plan.md" in html
