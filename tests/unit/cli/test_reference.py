"""Pages about the command line, the language of pipelines and MCP are what the code says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "reference"
SCHEMA = json.loads((ROOT / "tenuto" / "schemas" / "pipeline.schema.json").read_text())


@pytest.mark.parametrize("page", ["cli", "mcp", "pipeline"])
def test_the_page_is_up_to_date(page: str) -> None:
    """After a change of a command, a tool, or the language: docs/reference/write-PAGE"""
    script = [sys.executable, str(PAGES / f"write-{page}"), "--print"]
    made = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    assert made == (PAGES / f"{page}.md").read_text(), f"run: docs/reference/write-{page}"


def told(value: Any) -> bool:
    """Itself, or what it refers to, says what it is."""
    named = [one for one in (value, *value.get("anyOf", ())) if "$ref" in one]
    return "description" in value or any(told(SCHEMA["$defs"][one["$ref"].rpartition("/")[2]]) for one in named)


def untold(where: str, found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for key, value in found.get("properties", {}).items():
            if not told(value):
                yield f"{where}.{key}"
        for key, value in found.items():
            yield from untold(f"{where}.{key}" if key not in ("properties", "anyOf", "items") else where, value)
    elif isinstance(found, list):
        for one in found:
            yield from untold(where, one)


def test_every_key_of_the_language_says_what_it_is() -> None:
    """An editor shows it, and the page is made from it."""
    assert not list(untold("pipeline", SCHEMA))
