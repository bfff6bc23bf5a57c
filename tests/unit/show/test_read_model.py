"""The command line and the MCP server look at a run through tenuto.show, and in no other way.

The rule, as far as the source shows it: a name or a call that holds a whole Run is handed on (to tenuto.show, to the
engine, to `--json`), never looked into. A Run is what a parameter is annotated with, or what a function returns whose
annotation says so; both are read off the source of the package. And no module there imports what folds events.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "tenuto"
FOLDERS = ("entrypoints/cli", "entrypoints/mcp")
FOLDING = ("tenuto.core.fold", "tenuto.core.todo", "tenuto.core.decide")


def is_run(annotation: ast.expr | None) -> bool:
    """Run, Run | None"""
    match annotation:
        case ast.Name(id="Run"):
            return True
        case ast.BinOp(left=left, right=right):
            return is_run(left) or is_run(right)
    return False


def returning() -> dict[str, int | None]:
    """Functions and methods of the package that return a Run: by name, None, or the place of the Run in the tuple."""
    found: dict[str, int | None] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            match node.returns:
                case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=parts)):
                    places = [place for place, part in enumerate(parts) if is_run(part)]
                    if places:
                        found[node.name] = places[0]
                case annotation if is_run(annotation):
                    found[node.name] = None
    return found


def of_modules() -> set[tuple[str, str]]:
    """(module, function) of the package's functions that return something else."""
    return {
        (path.stem, node.name)
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not is_run(node.returns)
    }


OTHERS = of_modules()


def called(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if (module, name) in OTHERS:
            return ""
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def aliases(tree: ast.Module) -> dict[str, str]:
    """`from x import start as begin`: begin -> start"""
    return {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }


def held(function: ast.FunctionDef, functions: dict[str, int | None], renamed: dict[str, str]) -> set[str]:
    """The names that hold a Run in this function."""
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = {one.arg for one in parameters if is_run(one.annotation)}
    for node in ast.walk(function):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if is_run(annotation):
                names.add(name)
            case ast.Assign(targets=[target], value=value) if renamed.get(called(value), called(value)) in functions:
                place = functions[renamed.get(called(value), called(value))]
                match target:
                    case ast.Name(id=name) if place is None:
                        names.add(name)
                    case ast.Tuple(elts=parts) if place is not None:
                        part = parts[place]
                        if isinstance(part, ast.Name):
                            names.add(part.id)
    return names


def looks(source: str, functions: dict[str, int | None]) -> Iterator[str]:
    tree = ast.parse(source)
    renamed = aliases(tree)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and not is_run(node.returns)}
    functions = {name: place for name, place in functions.items() if name not in own}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module) if module and module.startswith(FOLDING):
                yield f"{node.lineno}: imports {module}"
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        names = held(function, functions, renamed)
        for node in ast.walk(function):
            match node:
                case ast.Subscript(value=inner) | ast.Attribute(value=inner, attr="get" | "items" | "values" | "keys"):
                    name = renamed.get(called(inner), called(inner))
                    in_a_name = isinstance(inner, ast.Name) and inner.id in names
                    if in_a_name or (name in functions and functions[name] is None):
                        yield f"{node.lineno}: looks into a run"


FUNCTIONS = returning()


@pytest.mark.parametrize("path", [path for folder in FOLDERS for path in sorted((PACKAGE / folder).glob("*.py"))])
def test_nobody_looks_into_a_run_without_the_read_model(path: Path) -> None:
    assert list(looks(path.read_text(), FUNCTIONS)) == [], path.relative_to(PACKAGE)


def test_the_functions_that_return_runs_are_known() -> None:
    assert {"load", "existing", "decide_gate", "fork", "engage", "start"} <= set(FUNCTIONS)
    assert FUNCTIONS["load"] is None and FUNCTIONS["hand_out"] == 0


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(run: Run): return run['status']", 1),
        ("def f(run: Run | None): return run.get('gate')", 1),
        ("def f(w):\n run = w.load('r')\n return run['gate']", 1),
        ("def f(w): return w.load('r')['gate']", 1),
        ("def f(w):\n run, works = hand_out(w)\n return run['status'], works[0]['prompt']", 1),
        ("from tenuto.engine.begin import start as begin\ndef f(w):\n run = begin(w)\n return run['id']", 1),
        ("from tenuto.core.fold import fold", 1),
        ("def f(w):\n view = run_view(w.load('r'))\n return view['status']", 0),
        ("def f(run: Run): return Answer({**run, 'gates': level_of(run)})", 0),
        ("def f(run: str): return known[run]", 0),
    ],
)
def test_the_rule_itself(source: str, count: int) -> None:
    assert len(list(looks(source, FUNCTIONS))) == count


def test_the_read_model_prints_nothing() -> None:
    """Data out, rendering elsewhere: neither click nor rich nor the MCP SDK is imported in show/."""
    for path in (PACKAGE / "show").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.partition(".")[0] for name in names} & {"click", "rich", "mcp", "mcp_types"}, path
