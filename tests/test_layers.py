"""Who may import whom.

A module imports from its own folder and from layers below it, never from above and never
from a sibling folder of the same layer. That holds for imports inside functions and for
imports made for types only, too: a dependency that is hidden is still a dependency.

core/ is pure besides: it imports a short list of harmless modules and calls nothing that
reads the world, so that a journal replays to the same run on every machine, for ever.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tenuto"

# Lowest first. A name is a folder or module directly under tenuto/; "tenuto" is the public API itself.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("encoding",),
    ("core",),
    ("ports",),
    ("agents", "dialects", "files", "hosts", "knowledge", "metrics", "stores", "supervise"),
    ("workspace",),
    ("drivers",),
    ("tenuto",),
    ("entrypoints",),
    ("__main__", "testing"),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

# What core/ may import from outside Tenuto: no clock, no file, no environment, no random number, no network.
PURE = {"__future__", "bisect", "heapq", "itertools", "math", "operator", "unicodedata"}
# What it may name in annotations only, under TYPE_CHECKING or in a module that others import that way.
FOR_TYPES = {"collections.abc", "types", "typing"}
TYPE_MODULES = {"commands.py", "engine_records.py", "events.py", "pipeline_records.py", "records.py"}
# Built-ins that touch the world, or differ from process to process (`hash` of a text does).
IMPURE_CALLS = {"breakpoint", "eval", "exec", "hash", "id", "input", "open", "print"}


class Import(NamedTuple):
    module: str
    line: int
    for_types: bool


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py")) if folder.is_dir() else []


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def component(module: str) -> str:
    """The folder or module under tenuto/ that a dotted name belongs to."""
    first, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    known = part in RANK or (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").is_file()
    return part if part and known else first


def _is_type_guard(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _named_by(node: ast.AST, package: str) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, level=level, names=names):
            start = ".".join(package.split(".")[: len(package.split(".")) - level + 1]) if level else ""
            source = ".".join(part for part in (start, module) if part)
            return [f"{source}.{alias.name}" for alias in names] if source == "tenuto" else [source]
        case ast.Call(func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"), args=[name, *_]):
            return [_written_part(name)]
    return []


def _written_part(name: ast.expr) -> str:
    """A module's name as far as the source tells it: all of a literal, the beginning of an f-string."""
    match name:
        case ast.Constant(value=str(text)) | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.rstrip(".")
    return "a name made at run time"


def imports(path: Path) -> Iterator[Import]:
    """Every import of a module, wherever it stands in the file."""
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]

    def visit(node: ast.AST, for_types: bool) -> Iterator[Import]:
        for module in _named_by(node, package):
            yield Import(module, getattr(node, "lineno", 0), for_types)
        guarded = node.body if isinstance(node, ast.If) and _is_type_guard(node.test) else []
        for child in ast.iter_child_nodes(node):
            yield from visit(child, for_types or child in guarded)

    yield from visit(ast.parse(path.read_text(), str(path)), False)


def breaches(path: Path) -> Iterator[str]:
    own = component(dotted(path))
    for found in imports(path):
        if found.module.partition(".")[0] != "tenuto":
            continue
        other = component(found.module)
        where = f"{path.relative_to(ROOT)}:{found.line}: {own} imports {found.module}"
        if other == own:
            continue
        if RANK[other] > RANK[own]:
            yield f"{where}, which is above it"
        elif RANK[other] == RANK[own]:
            yield f"{where}, its sibling: what both need belongs below, or goes through ports.py"


def impurities(path: Path) -> Iterator[str]:
    """What core/ must not do, by import, by call, or by leaving an order to chance."""
    where = path.relative_to(ROOT)
    for found in imports(path):
        allowed = PURE | FOR_TYPES if found.for_types or path.name in TYPE_MODULES else PURE
        if found.module.partition(".")[0] != "tenuto" and found.module not in allowed:
            yield f"{where}:{found.line}: core imports {found.module}"
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield f"{where}:{node.lineno}: core calls {name}()"
            case ast.Call(
                func=ast.Name(id="list" | "tuple" | "enumerate" | "iter" | "next"), args=[ast.expr() as over, *_]
            ):
                if _is_set(over):
                    yield f"{where}:{node.lineno}: core takes a set's order as it comes; sort it"
            case ast.For(iter=over) | ast.comprehension(iter=over) if _is_set(over):
                yield f"{where}:{over.lineno}: core iterates over a set; sort it"


def _is_set(node: ast.expr) -> bool:
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
    return False


def test_every_folder_has_its_place() -> None:
    """A new folder or module under tenuto/ is put into a layer before it is used."""
    unplaced = {component(dotted(path)) for path in modules(PACKAGE)} - RANK.keys()
    assert not unplaced, (
        f"give {sorted(unplaced)} a place in LAYERS, with a reason in docs/decisions/ if it is a new idea"
    )


def test_imports_point_downwards() -> None:
    """Nothing imports from above, and siblings do not know each other."""
    found = [breach for path in modules(PACKAGE) if component(dotted(path)) in RANK for breach in breaches(path)]
    assert not found, "\n".join(found)


def test_core_is_pure() -> None:
    """Rules are decided without clock, file, environment, random number or network."""
    found = [impurity for path in modules(PACKAGE / "core") for impurity in impurities(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("place", "source", "complaint"),
    [
        ("core/rule.py", "import time", "core imports time"),
        ("core/rule.py", "def f():\n    from os import environ", "core imports os"),
        ("core/rule.py", "from tenuto.stores import sqlite", "which is above it"),
        ("core/rule.py", "if TYPE_CHECKING:\n    from ..stores.sqlite import Journal", "which is above it"),
        ("core/rule.py", "typing = __import__('typing')", "core imports typing"),
        ("core/rule.py", "module = __import__(name)", "core imports a name made at run time"),
        ("core/rule.py", "module = __import__(f'tenuto.stores.{name}')", "which is above it"),
        ("core/rule.py", "module = __import__(f'tenuto.core.rules.{name}')", ""),
        ("core/rule.py", "for x in {1, 2}: pass", "iterates over a set"),
        ("core/rule.py", "order = list(set(names))", "takes a set's order"),
        ("core/rule.py", "key = hash('a')", "core calls hash()"),
        ("core/rule.py", "import math\nif TYPE_CHECKING:\n    from typing import Any", ""),
        ("stores/sqlite.py", "from tenuto import dialects", "its sibling"),
        ("stores/sqlite.py", "from tenuto import not_there_yet", "which is above it"),
        ("workspace/turn.py", "import tenuto.knowledge.search", ""),
        ("stores/sqlite.py", "from tenuto import open", "which is above it"),
        ("stores/sqlite.py", "from .memory import Journal\nimport os\nfrom tenuto.core import fold", ""),
        ("drivers/local.py", "import importlib\nimportlib.import_module('tenuto.entrypoints')", "which is above it"),
        ("entrypoints/hook.py", "from tenuto import open\nfrom tenuto.drivers import local", ""),
    ],
)
def test_the_rule_sees_what_it_forbids(
    place: str, source: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way of breaking a layer is found, and the ways that are fine are left alone."""
    package = tmp_path / "tenuto"
    for name in ("core", "stores", "dialects", "workspace", "drivers", "entrypoints"):
        (package / name).mkdir(parents=True)
    (package / place).write_text(source)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", package)
    found = [*breaches(package / place), *(impurities(package / place) if place.startswith("core") else [])]
    assert complaint in "\n".join(found)
    assert bool(found) == bool(complaint)
