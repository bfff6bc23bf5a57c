"""Packs are complete: no line that a person marked as needed is lost, and no paragraph, list or table is torn.

Two collections: tests/data/packs (its README says what the marks mean) and tests/data/retrieve, where beside each text
stands `<name>.must.txt`: every signature, type, edge case and file that a reader of it must not miss, one per line.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.packs import Packed, pack_all
from tenuto.knowledge.packs import estimate_tokens, make_pack, render_pack

DATA = Path(__file__).parent.parent / "data"
TEXTS = sorted(path for path in (DATA / "retrieve").iterdir() if path.is_file() and not path.name.endswith(".must.txt"))
PACKED = pack_all(DATA / "packs")[0]


@pytest.mark.parametrize("one", PACKED, ids=lambda one: f"{one.document}-{one.phase}")
def test_no_marked_line_is_lost_and_nothing_is_torn(one: Packed) -> None:
    assert one.lost == []
    assert one.torn == 0


def wanted(path: Path) -> list[str]:
    lines = path.with_name(f"{path.stem}.must.txt").read_text().splitlines()
    return [line for line in lines if line.strip() and not re.fullmatch(r"# (signatures|types|edge cases|files)", line)]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("phase", ["implementation", "testing"])
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_nothing_that_matters_is_left_out(path: Path, phase: str) -> None:
    """Specifications in many styles of heading and many programming languages."""
    text = path.read_text()
    pack = render_pack(make_pack([{"name": "spec", "path": path.name, "text": text, "sha256": ""}], phase))
    assert [line for line in wanted(path) if flat(line) not in flat(pack)] == []


@pytest.mark.parametrize("name", ["saved_filters.md", "rate_limiter.md", "vue_table.md"])
def test_a_specification_with_known_headings_is_condensed(name: str) -> None:
    """Background and the bodies of functions go where every kind that the phase needs has a heading."""
    text = (DATA / "retrieve" / name).read_text()
    pack = make_pack([{"name": "spec", "path": name, "text": text, "sha256": ""}], "implementation")
    assert pack["notes"][name].startswith("condensed; left out: ")
    assert estimate_tokens(render_pack(pack)) < 0.9 * estimate_tokens(text)


def test_a_specification_writer_gets_the_design_without_its_timeline() -> None:
    text = (DATA / "retrieve" / "architect" / "notifications.md").read_text()
    pack = make_pack([{"name": "architect", "path": "architect.md", "text": text, "sha256": "0" * 64}], "spec")
    rendered = render_pack(pack)
    for line in (
        "1. **One service owns preferences.** The mailer and the app ask it; nobody else stores an answer.",
        "- `services/mailer/audience.py` asks the service instead of the table",
        "- The service being away must not stop transactional mail.",
        "- Hexagonal layout as in `services/addresses/`",
        "## Alternatives considered",
    ):
        assert line in rendered
    assert "## Timeline" not in rendered
