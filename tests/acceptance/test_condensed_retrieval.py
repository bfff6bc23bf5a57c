"""Packs are small and complete: on artifacts of many styles and languages, asserted against lists written by hand.

Beside each artifact in tests/data/retrieve stands `<name>.must.txt`: every signature, type, edge case and file a
reader of it must not miss, one per line. The first six were there while the code was written; the others were
written afterwards, to see what it does with texts it was not made for.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenuto.knowledge.retrieve import make_pack, render_pack
from tenuto.knowledge.tokens import estimate_tokens

DATA = Path(__file__).parent.parent / "data" / "retrieve"

FIRST = {
    "saved_filters.md": "TypeScript, # headings, labels in bold",
    "rate_limiter.md": "Python, underlined and numbered headings",
    "webhooks.md": "Go, headings in bold",
    "segment_log.txt": "Rust, HEADINGS IN CAPITALS, indented code",
    "invoice_import.md": "Java, HTML headings with emoji, edge cases in a table",
    "shift_planner.md": "C# and SQL, no headings at all",
}
LATER = {
    "offline_notes.adoc": "Kotlin and Swift, AsciiDoc",
    "coupons.rst": "Ruby, reStructuredText with a table",
    "ringbuf.txt": "C, plain numbered headings, indented code",
    "feature_flags.md": "PHP and TypeScript, an architect's JSON answer",
    "ledger.md": "Elixir and Haskell, functions as headings",
    "thumbnails.txt": "Python, a mail without headings and fences",
    "orderbook.md": "C++, numbered # headings",
    "habit_tracker.md": "Dart, emoji, front matter, signatures in a table",
    "search_index.md": "Scala, no headings",
    "image_pipeline.md": "PHP, lettered headings, signatures in a list",
    "appointments.md": "Java, methods as headings, edge cases below each",
    "csv_import.md": "Python, edge cases in docstrings only",
    "quota.md": "Go, edge cases as paragraphs under an odd heading",
    "date_picker.md": "TypeScript, edge cases in one sentence after another",
    "vue_table.md": "JavaScript, types in comments",
    "backup_tool.md": "Rust, SQL and a command line",
    "playlist.md": "Kotlin, numbered requirements, a test matrix",
    "keychain.md": "Swift, semantics in prose",
    "surveys.txt": "TypeScript without any fence",
    "loyalty.md": "C# and SQL, a table of contents",
    "geocoder.md": "Go, a note without headings, indented code",
}
AT_MOST = 0.40
# Shorter texts have little besides their contract; no less of them can be left out, only not so much.
ORDINARY_LINES = 150


def pack_of(name: str, phase: str) -> tuple[str, str]:
    text = (DATA / name).read_text()
    pack = make_pack([{"name": "spec", "path": f"docs/{name}", "text": text, "sha256": "0" * 64}], phase)
    assert not any(part["whole"] for part in pack["parts"])
    return text, render_pack(pack)


def wanted(name: str) -> list[str]:
    lines = (DATA / name).with_suffix(".must.txt").read_text().splitlines()
    return [line for line in lines if line.strip() and not re.fullmatch(r"# (signatures|types|edge cases|files)", line)]


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", [*FIRST, *LATER])
def test_nothing_that_matters_is_left_out(name: str) -> None:
    """Every signature, type, edge case and file of the artifact is in its pack for the implementation."""
    pack = plain(pack_of(name, "implementation")[1])
    assert [line for line in wanted(name) if plain(line) not in pack] == []


@pytest.mark.parametrize("name", [*FIRST, *LATER])
def test_a_tester_gets_the_same_contract(name: str) -> None:
    """The pack for testing has every signature, type and edge case too; only files are the implementer's."""
    pack = plain(pack_of(name, "testing")[1])
    lost = [line for line in wanted(name) if plain(line) not in pack]
    assert [line for line in lost if not re.search(r"[\w*]+/|\.\w+$", line)] == []


def share_of(names: list[str]) -> float:
    packs = [pack_of(name, "implementation") for name in names]
    return sum(estimate_tokens(pack) for _, pack in packs) / sum(estimate_tokens(text) for text, _ in packs)


def test_packs_together_are_a_fraction_of_the_texts() -> None:
    """What is printed, headings and delimiters included, is at most 40 % of the full texts' tokens."""
    ordinary = [name for name in FIRST | LATER if len((DATA / name).read_text().splitlines()) >= ORDINARY_LINES]
    assert set(FIRST) < set(ordinary)
    assert share_of(list(FIRST)) <= AT_MOST
    assert share_of(ordinary) <= AT_MOST


@pytest.mark.parametrize("name", [*FIRST, *LATER])
def test_every_pack_is_shorter_than_its_text(name: str) -> None:
    assert share_of([name]) < 0.75


def test_a_specification_writer_gets_the_design_without_its_history() -> None:
    """From an architect's document: decisions, placement, constraints and patterns; not context, code or dates."""
    text = (DATA / "architect" / "notifications.md").read_text()
    pack = make_pack([{"name": "architect", "path": "docs/architect.md", "text": text, "sha256": "0" * 64}], "spec")
    rendered = render_pack(pack)
    for line in (
        "1. **One service owns preferences.** The mailer and the app ask it; nobody else stores an answer.",
        "4. **Changes are events.** The provider's list is a projection that can be rebuilt at any time.",
        "- `services/mailer/audience.py` asks the service instead of the table",
        "- `jobs/nightly_provider_sync.py` is removed",
        "- The service being away must not stop transactional mail.",
        "- Hexagonal layout as in `services/addresses/`",
    ):
        assert line in rendered
    assert not re.search(r"def nightly|consent platform|nobody has looked at|Four million|until the tenth", rendered)
    assert pack["absent"] == []
    assert estimate_tokens(rendered) <= AT_MOST * estimate_tokens(text)
