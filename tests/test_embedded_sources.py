"""Programs that tests, provers and figures keep in strings name what is there.

No tool that renames looks into a string. An attack whose import fails attacks nothing, and a prover that counts what it
survived would not notice.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IMPORT = re.compile(r"\bfrom ((?:tenuto|tests|prove)(?:\.\w+)*) import (\w+(?:, *\w+)*)")
# Sources that are broken on purpose, for what is said about them.
OF_TEST_LAYERS = ROOT / "tests" / "test_layers.py"


def embedded(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import in the strings of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in IMPORT.findall(node.value):
                yield from ((module, name.strip()) for name in names.split(","))


def is_there(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ImportError:
        return False


@pytest.mark.parametrize("folder", ["bench", "prove", "tests"])
def test_what_a_source_in_a_string_imports_is_there(folder: str) -> None:
    files = [path for path in sorted((ROOT / folder).rglob("*.py")) if path != OF_TEST_LAYERS]
    named = {(str(path.relative_to(ROOT)), *one) for path in files for one in embedded(path)}
    assert named, "no file of this folder has any"
    assert [one for one in sorted(named) if not is_there(*one[1:])] == []
