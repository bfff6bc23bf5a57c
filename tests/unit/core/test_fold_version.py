"""FOLD_VERSION names the shape that fold gives a run: who changes the one changes the other."""

from __future__ import annotations

import ast
from pathlib import Path

from tenuto.core.fold import FOLD_VERSION
from tenuto.encoding import digest

CORE = Path(__file__).resolve().parents[3] / "tenuto" / "core"
SOURCES = ("fold.py", "parts.py", "times.py")
# When this fails: raise FOLD_VERSION in fold.py, and put the pair that the failure shows here. A state row that an
# older
# fold wrote must not be read as one of the new.
KNOWN = (18, "e39a2a3efb7618a5")


def code_of(path: Path) -> str:
    """The code alone: comments, docstrings and layout change nothing in what fold yields."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "FOLD_VERSION" for t in node.targets
        ):
            node.value = ast.Constant(0)
    return shape_of(tree)


def shape_of(node: object) -> str:
    """What `ast.dump` tells, in one form for all Pythons: each version has fields of its own, which are empty in our
    code."""
    if isinstance(node, list):
        return f"[{', '.join(map(shape_of, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if value or name == "value"]
    return f"{type(node).__name__}({', '.join(f'{name}={shape_of(value)}' for name, value in fields)})"


def test_a_change_of_fold_needs_a_new_fold_version() -> None:
    found = digest("".join(code_of(CORE / name) for name in SOURCES).encode())[:16]
    assert (FOLD_VERSION, found) == KNOWN
