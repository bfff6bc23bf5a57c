"""One matcher of path patterns: the engine's boundary, the hooks' boundary and the plan's files read a pattern
alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenuto.core import approvals
from tenuto.engine.attempt import allows, existing
from tests.unit.core.by_command import Asked

TABLE = [
    # a plain path is one file
    ("a.py", "a.py", True),
    ("a.py", "b.py", False),
    ("a.py", "src/a.py", False),
    ("src/a.py", "src/a.py", True),
    ("./src/a.py", "src/a.py", True),
    ("src", "src/a.py", False),
    ("src/a.py", "src", False),
    # `*` stays inside one folder
    ("*", "a.py", True),
    ("*", "src/a.py", False),
    ("*.py", "a.py", True),
    ("*.py", "src/a.py", False),
    ("src/*.py", "src/a.py", True),
    ("src/*.py", "src/a/b.py", False),
    ("src/*", "src/a/b.py", False),
    ("src/*/b.py", "src/a/b.py", True),
    ("src/*/b.py", "src/b.py", False),
    ("src/*/b.py", "src/a/c/b.py", False),
    ("*test*", "a_test.py", True),
    ("*test*", "tests/a.py", False),
    ("src/*.py", "src/.py", True),
    ("src/*.py", "src/.hidden.py", True),
    # `**` is any number of folders, also none
    ("**", "a.py", True),
    ("**", "src/a/b.py", True),
    ("src/**", "src/a.py", True),
    ("src/**", "src/a/b.py", True),
    ("src/**", "srcs/a.py", False),
    ("**/a.py", "a.py", True),
    ("**/a.py", "src/x/a.py", True),
    ("**/a.py", "src/ba.py", False),
    ("**/*.md", "README.md", True),
    ("**/*.md", "docs/howto/a.md", True),
    ("**/*test*", "src/a_test.py", True),
    ("**/*test*", "tests/a.py", False),
    ("**/tests/**", "tests/a.py", True),
    ("**/tests/**", "src/tests/unit/a.py", True),
    ("**/tests/**", "src/contests/a.py", False),
    ("src/**/b.py", "src/b.py", True),
    ("src/**/b.py", "src/x/y/b.py", True),
    ("src/**/b.py", "lib/b.py", False),
    # `**` beside other characters of one part is `*`
    ("src/**.py", "src/a.py", True),
    ("src/**.py", "src/a/b.py", False),
    # a path that ends in a slash is everything below that folder
    ("src/", "src/a.py", True),
    ("src/", "src/a/b.py", True),
    ("src/", "srcs/a.py", False),
    ("./src/", "src/a.py", True),
    ("*/", "src/a.py", True),
    ("**/tests/", "src/tests/a.py", True),
    # every other character is itself
    ("a?.py", "ab.py", False),
    ("a?.py", "a?.py", True),
    ("[ab].py", "a.py", False),
    ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
    ("app/[id]/page.tsx", "app/i/page.tsx", False),
    ("A.py", "a.py", False),
]


def engine_allows(pattern: str, path: str) -> bool:
    return allows({"files": [], "patterns": [pattern], "documents": ""}, path)


def hook_allows(pattern: str, path: str) -> bool:
    return approvals.outside(Asked().run, [pattern], path) is None


@pytest.mark.parametrize(("pattern", "path", "fits"), TABLE)
def test_the_engine_holds_an_agent_to_the_pattern(pattern: str, path: str, fits: bool) -> None:
    assert engine_allows(pattern, path) is fits


@pytest.mark.parametrize(("pattern", "path", "fits"), TABLE)
def test_the_hooks_hold_an_agent_to_the_same_pattern(pattern: str, path: str, fits: bool) -> None:
    assert hook_allows(pattern, path) is fits


def test_engine_and_hooks_agree_on_every_pattern_and_every_path() -> None:
    patterns, paths = sorted({row[0] for row in TABLE}), sorted({row[1] for row in TABLE})
    apart = [
        (pattern, path)
        for pattern in patterns
        for path in paths
        if engine_allows(pattern, path) is not hook_allows(pattern, path)
    ]
    assert apart == []


@pytest.mark.parametrize(("pattern", "path", "fits"), [row for row in TABLE if not row[0].endswith("/")])
def test_outputs_are_looked_for_by_the_same_rules(tmp_path: Path, pattern: str, path: str, fits: bool) -> None:
    """But a file whose name begins with a dot is an output only where it is named."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    assert [Path(name).as_posix() for name in existing(str(tmp_path), pattern)] == (
        [path] if fits and "/." not in path else []
    )


def test_a_boundary_of_the_engine_holds_its_named_files_and_never_its_own_settings() -> None:
    boundary: Any = {"files": ["docs/run/report.md"], "patterns": ["**"], "documents": "docs/run"}
    assert allows(boundary, "docs/run/report.md") and allows(boundary, "src/a.py")
    assert not allows(boundary, "docs/run/design.md") and not allows(boundary, ".tenuto/config.yaml")
