"""Who may import whom.

A module imports from its own folder and from layers below it, never from above and never
from a sibling folder of the same layer. That holds for imports inside functions and for
imports made for types only, too: a dependency that is hidden is still a dependency.

Inside a folder, modules form no circle; imports inside functions count, imports made for types only do not.

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
    ("names",),
    ("secrets",),
    ("core",),
    ("ports",),
    ("agents", "files", "knowledge", "metrics", "notices", "stores", "supervise", "telemetry", "views"),
    ("workspace",),
    ("dialects",),
    ("repository",),
    ("engine",),
    ("cluster",),
    ("forge", "hooks"),
    ("rehearsal", "show"),
    ("pages",),
    ("tenuto",),
    ("entrypoints",),
    ("__main__", "demo"),
    ("demo_machines",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

# What core/ may import from outside Tenuto: no clock, no file, no environment, no random number, no network.
PURE = {"__future__", "bisect", "heapq", "itertools", "math", "operator", "unicodedata"}
# What it may name in annotations only, under TYPE_CHECKING or in a module that others import that way.
FOR_TYPES = {"collections.abc", "types", "typing"}
TYPE_MODULES = {
    "core/records/action.py",
    "core/records/commands.py",
    "core/records/events.py",
    "core/records/run.py",
    "core/pipeline/records.py",
}
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


def circles(package: Path) -> list[list[str]]:
    """One circle for each module that is in one and was not in a circle before: the shortest way back to it."""
    paths = {dotted(path): path for path in modules(package)}
    needs = {name: sorted(_needed(path, paths) - {name}) for name, path in paths.items()}
    found: list[list[str]] = []
    for name in paths:
        if not any(name in circle for circle in found):
            way = _way_back(name, needs)
            found += [way] if way else []
    return found


def _needed(path: Path, paths: dict[str, Path]) -> set[str]:
    """The modules that this one loads. `from package import module` loads the module, any other name the package."""
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    needed: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and _is_type_guard(node.test):
            return
        if isinstance(node, ast.ImportFrom):
            start = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (start, node.module) if part)
            for alias in node.names:
                full = f"{source}.{alias.name}"
                needed.add(full if full in paths else source)
        else:
            needed.update(_named_by(node, package))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(), str(path)))
    return needed & paths.keys()


def _way_back(name: str, needs: dict[str, list[str]]) -> list[str]:
    ways = [[name]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for following in needs[way[-1]]:
            if following == name:
                return [*way, name]
            if following not in seen:
                seen.add(following)
                ways.append([*way, following])
    return []


def impurities(path: Path) -> Iterator[str]:
    """What core/ and views/ must not do, by import, by call, or by leaving an order to chance."""
    where, own = path.relative_to(ROOT), component(dotted(path))
    for found in imports(path):
        allowed = PURE | FOR_TYPES if found.for_types or path.relative_to(PACKAGE).as_posix() in TYPE_MODULES else PURE
        if found.module.partition(".")[0] != "tenuto" and found.module not in allowed:
            yield f"{where}:{found.line}: {own} imports {found.module}"
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield f"{where}:{node.lineno}: {own} calls {name}()"
            case ast.Call(
                func=ast.Name(id="list" | "tuple" | "enumerate" | "iter" | "next"), args=[ast.expr() as over, *_]
            ):
                if _is_set(over):
                    yield f"{where}:{node.lineno}: {own} takes a set's order as it comes; sort it"
            case ast.For(iter=over) | ast.comprehension(iter=over) if _is_set(over):
                yield f"{where}:{over.lineno}: {own} iterates over a set; sort it"


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


def test_modules_form_no_circle() -> None:
    """Each module can be read without the ones that need it; a lazy import hides a circle, and does not open it."""
    found = circles(PACKAGE)
    assert not found, "\n".join(" -> ".join(circle) for circle in found)


@pytest.mark.parametrize(
    ("modules", "circle"),
    [
        ({"a": "from tenuto.core import b", "b": "from tenuto.core.c import f", "c": ""}, []),
        ({"a": "from tenuto.core import b", "b": "from tenuto.core.a import f"}, ["a", "b", "a"]),
        ({"a": "import tenuto.core.b", "b": "def f():\n    from tenuto.core import a"}, ["a", "b", "a"]),
        ({"a": "from .b import f", "b": "from . import c", "c": "from ..core import a"}, ["a", "b", "c", "a"]),
        ({"a": "from tenuto.core import b", "b": "if TYPE_CHECKING:\n    from tenuto.core.a import T"}, []),
        ({"__init__": "def f():\n    from tenuto.core.a import g", "a": "from tenuto.core import NAME"}, ["", "a", ""]),
        ({"__init__": "def f():\n    from tenuto.core import a", "a": "from tenuto.core.b import g", "b": ""}, []),
    ],
)
def test_the_rule_sees_a_circle(
    modules: dict[str, str], circle: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Circles are found however the import is written, also those that only a function makes."""
    folder = tmp_path / "tenuto" / "core"
    folder.mkdir(parents=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "tenuto")
    names = [f"tenuto.core.{name}" if name else "tenuto.core" for name in circle]
    assert circles(tmp_path / "tenuto") == ([names] if circle else [])


def test_only_stores_know_what_a_journal_is_made_of() -> None:
    """Another store fits in where this one is: nothing else names its file, its language or its locks."""
    wanted = {"PRAGMA": "stores", "journal.db": "stores", "_sqlite3": "stores", "connection()": "stores"}
    wanted |= {"flock(": "stores or supervise"}  # a supervisor's records are files, on every machine
    found = [
        f"{path.relative_to(ROOT)} says {word}, which is for {place}"
        for path in modules(PACKAGE)
        for word, place in wanted.items()
        if component(dotted(path)) not in place.split(" or ") and word in path.read_text()
    ]
    assert not found, "\n".join(found)


def test_core_is_pure() -> None:
    """Rules are decided without clock, file, environment, random number or network."""
    found = [impurity for path in modules(PACKAGE / "core") for impurity in impurities(path)]
    assert not found, "\n".join(found)


def test_views_are_pure() -> None:
    """What a file shows follows from the run, and what an edit asks for from the edit."""
    found = [impurity for path in modules(PACKAGE / "views") for impurity in impurities(path)]
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
        ("stores/sqlite.py", "from tenuto import views", "its sibling"),
        ("stores/sqlite.py", "from tenuto import dialects", "which is above it"),
        ("views/flow.py", "from os import getpid", "views imports os"),
        ("views/flow.py", "text = open('state.json').read()", "views calls open()"),
        ("views/flow.py", "from tenuto.workspace.workspace import Turn", "which is above it"),
        ("dialects/flow.py", "from tenuto.workspace.workspace import Turn\nfrom tenuto.views import flow", ""),
        ("stores/sqlite.py", "from tenuto import not_there_yet", "which is above it"),
        ("workspace/workspace.py", "import tenuto.knowledge.search", ""),
        ("stores/sqlite.py", "from tenuto import open", "which is above it"),
        ("stores/sqlite.py", "from .memory import Journal\nimport os\nfrom tenuto.core import fold", ""),
        ("engine/loop.py", "import importlib\nimportlib.import_module('tenuto.entrypoints')", "which is above it"),
        ("entrypoints/hook.py", "from tenuto import open\nfrom tenuto.engine import loop", ""),
    ],
)
def test_the_rule_sees_what_it_forbids(
    place: str, source: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way of breaking a layer is found, and the ways that are fine are left alone."""
    package = tmp_path / "tenuto"
    for name in ("core", "stores", "views", "dialects", "workspace", "engine", "entrypoints"):
        (package / name).mkdir(parents=True)
    (package / place).write_text(source)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", package)
    found = [*breaches(package / place), *(impurities(package / place) if place.startswith(("core", "views")) else [])]
    assert complaint in "\n".join(found)
    assert bool(found) == bool(complaint)
