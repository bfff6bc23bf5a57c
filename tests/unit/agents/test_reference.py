"""docs/reference/agents.md says what the code does: every kind, every option, the words that each may be, what is
reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenuto.agents import acp, claude, codex
from tenuto.agents.roster import INSTALLED, KINDS, Roster

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "agents.md").read_text()
SHAPES = {"claude": claude.OPTIONS, "codex": codex.OPTIONS, "acp": acp.OPTIONS}


def section(kind: str) -> str:
    return PAGE.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]


def rows(text: str) -> dict[str, str]:
    """Of the first table: what stands in backquotes in the first column -> the second column."""
    table = text.partition("| option |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([\w-]+)` \| (.*?) \|", table, re.MULTILINE))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_section_and_stands_in_the_table(kind: str) -> None:
    assert section(kind).strip()
    assert f"(#{kind})" in PAGE.partition("\nOptions stand")[0]


@pytest.mark.parametrize("kind", SHAPES)
def test_every_option_is_there_with_the_words_it_may_be(kind: str) -> None:
    known = SHAPES[kind]
    described = rows(section(kind))
    assert list(described) == list(known)
    for name, shape in known.items():
        if isinstance(shape, tuple):
            assert [word for word in shape if word not in described[name]] == [], name


@pytest.mark.parametrize(("kind", "units"), [("claude", ("tokens", "micro_usd")), ("codex", ("tokens",))])
def test_what_is_reported_is_told(kind: str, units: tuple[str, ...]) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| [`{kind}`]"))
    told = row.split("|")[4]
    assert Roster(kind).named(kind).reports == units
    assert ("tokens" in told, "money" in told) == ("tokens" in units, "micro_usd" in units)


def test_auto_names_the_programs_in_their_order() -> None:
    named = re.findall(r"`(\w+)`", section("auto").partition("that is on")[0].partition("first of")[2])
    assert named == list(INSTALLED)


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_the_variables_of_a_kind_are_told(kind: str) -> None:
    told = section(kind).partition("Variables:")[2]
    for pattern in Roster(kind).named(kind).environment:
        general = any(word in pattern.lower() for word in ("proxy", "ssl_cert", "ca_certs"))
        assert general or f"`{pattern}`" in told, pattern
