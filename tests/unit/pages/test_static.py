"""What lies beside the pages: small, without what the policy of the pages forbids."""

from __future__ import annotations

import gzip
from pathlib import Path

import tenuto.pages
from tenuto.pages.inbox import inbox_page
from tenuto.pages.page import document
from tests.unit.pages.records import SITE
from tests.unit.pages.test_hostile import inbox

STATIC = Path(next(iter(tenuto.pages.__path__))) / "static"


def packed(*names: str) -> int:
    return sum(len(gzip.compress((STATIC / name).read_bytes())) for name in names)


def test_style_and_script_keep_to_their_budgets() -> None:
    assert packed("tenuto.css") <= 10_000
    assert packed(*(one.name for one in STATIC.glob("*.js"))) <= 8_000


def test_the_first_page_keeps_to_its_budget_with_all_that_it_loads() -> None:
    loaded = sum(len(one.read_bytes()) for one in STATIC.iterdir() if one.suffix in (".css", ".js"))
    assert loaded + len(document(inbox_page(inbox(), SITE), SITE).encode()) <= 60_000


def test_nothing_is_loaded_from_elsewhere_and_no_text_becomes_code() -> None:
    for one in STATIC.glob("*.css"):
        text = one.read_text("utf-8")
        assert "url(" not in text and "@import" not in text
    for one in STATIC.glob("*.js"):
        text = one.read_text("utf-8")
        for word in ("eval(", "new Function", "document.write", "outerHTML", "insertAdjacentHTML"):
            assert word not in text, f"{one.name}: {word}"


def test_an_icon_for_every_number_of_runs_that_need_you() -> None:
    for number in range(11):
        text = (STATIC / f"icon-{number}.svg").read_text("utf-8")
        assert ("<text" in text) == (number > 0)
        assert number == 0 or (f">{number}<" in text or ">9+<" in text)
