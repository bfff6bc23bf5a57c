"""Mechanical mutants of a module: one small change in one function each.

    mutants(module, source) -> Mutant...

    compare    == for !=, < for <=, in for not in, is for is not        logic      and for or; one side left out
    not        taken away; a condition turned around                     number     one more; True for False
    word       a word that is compared with, another one                 sum        + for -, // for *
    return     None instead of a value                                   drop       a statement left out, a refusal too
    choice     min for max, any for all                                  filter     a comprehension's condition left out

What an error says is left alone: whether it is raised is a rule, its words are not.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

ANNOTATIONS = 0x1000000  # from __future__ import annotations
COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
SUMS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
CHOICES = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    module: str
    function: str  # its qualified name
    line: int
    kind: str
    was: str
    now: str
    time: int  # the how-many-th such change in the function
    body: ast.FunctionDef

    @property
    def name(self) -> str:
        """The same as long as the function is: lines may move."""
        return f"{self.module}:{self.function}:{self.kind}:{self.was} -> {self.now}" + (
            f" #{self.time}" if self.time > 1 else ""
        )

    def key(self) -> str:
        return hashlib.sha256(f"{self.module}:{self.function}:{ast.unparse(self.body)}".encode()).hexdigest()[:24]

    def code(self) -> CodeType:
        """Of the function alone; its names are looked up where it is put."""
        made = compile(ast.Module([self.body], []), self.module, "exec", flags=ANNOTATIONS, dont_inherit=True)
        return next(one for one in made.co_consts if isinstance(one, CodeType))


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Outermost functions and methods; what is nested in them is part of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def mutants(module: str, source: str) -> Iterator[Mutant]:
    for name, function in functions(ast.parse(source)):
        function.decorator_list = []
        seen: Counter[tuple[str, str, str]] = Counter()
        for path, kind, new in _changes(function):
            changed = copy.deepcopy(function)
            was, now = _put(changed, path, new)
            if was != now:
                seen[kind, was, now] += 1
                line = getattr(_at(function, path), "lineno", function.lineno)
                yield Mutant(
                    module, name, line, kind, was, now, seen[kind, was, now], ast.fix_missing_locations(changed)
                )


Path = tuple[tuple[str, int | None], ...]
New = ast.AST | None


def _changes(function: ast.FunctionDef) -> Iterator[tuple[Path, str, New]]:
    words = _words_of_refusals(function)
    for path, node in _walk(function, words):
        for kind, new in _of(node):
            yield path, kind, new


def _words_of_refusals(function: ast.FunctionDef) -> set[str]:
    """Names that are used in what is raised, and nowhere else."""
    said = {
        name.id
        for node in ast.walk(function)
        if isinstance(node, ast.Raise)
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    }
    inside = {id(name) for node in ast.walk(function) if isinstance(node, ast.Raise) for name in ast.walk(node)}
    used = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inside
    }
    return said - used


def _walk(node: ast.AST, words: set[str], path: Path = ()) -> Iterator[tuple[Path, ast.AST]]:
    """Every node with the way to it; not into docstrings, types, what a raise says, or formatted texts."""
    if isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Name) and target.id in words for target in node.targets
    ):
        return
    if path:
        yield path, node
    if isinstance(node, (ast.Raise, ast.JoinedStr)):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args") and isinstance(
            node, (ast.FunctionDef, ast.arg, ast.AnnAssign, ast.Lambda)
        ):
            continue
        if isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, ast.AST) and not (field == "body" and _is_text(one)):
                    yield from _walk(one, words, (*path, (field, index)))
        elif isinstance(value, ast.AST):
            yield from _walk(value, words, (*path, (field, None)))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _of(node: ast.AST) -> Iterator[tuple[str, New]]:
    match node:
        case ast.Compare():
            yield from _compares(node)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "logic", ast.BoolOp(other, node.values)
            for index in range(len(node.values)):
                rest = node.values[:index] + node.values[index + 1 :]
                yield "logic", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node.operand
        case ast.If() | ast.IfExp() | ast.While():
            if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
                new = copy.copy(node)
                new.test = ast.UnaryOp(ast.Not(), node.test)
                yield "not", new
        case ast.Constant(value=bool(value)):
            yield "number", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "number", ast.Constant(value + 1)
        case ast.BinOp() if type(node.op) in SUMS:
            yield "sum", ast.BinOp(node.left, SUMS[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in SUMS:
            yield "sum", ast.AugAssign(node.target, SUMS[type(node.op)](), node.value)
            yield "drop", ast.Pass()
        case ast.Return(value=ast.expr()) if not (
            isinstance(node.value, ast.Constant) and node.value.value in (None, True, False)
        ):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Call(func=ast.Name(id=name)) if name in CHOICES:
            yield "choice", ast.Call(ast.Name(CHOICES[name], ast.Load()), node.args, node.keywords)
        case ast.comprehension(ifs=[_, *_]):
            yield "filter", ast.comprehension(node.target, node.iter, [], node.is_async)
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield "drop", ast.Pass()
        case ast.Expr() | ast.Assign():
            yield "drop", ast.Pass()


def _compares(node: ast.Compare) -> Iterator[tuple[str, New]]:
    for index, op in enumerate(node.ops):
        for other in COMPARED.get(type(op), ()):
            yield (
                "compare",
                ast.Compare(node.left, [*node.ops[:index], other(), *node.ops[index + 1 :]], node.comparators),
            )
    for index, side in enumerate(node.comparators):
        words = side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]
        for at, word in enumerate(words):
            if isinstance(word, ast.Constant) and isinstance(word.value, str):
                odd = ast.Constant("no such word")
                new: ast.expr = odd
                if isinstance(side, (ast.Tuple, ast.List, ast.Set)):
                    new = copy.copy(side)
                    new.elts = [*words[:at], odd, *words[at + 1 :]]
                yield (
                    "word",
                    ast.Compare(node.left, node.ops, [*node.comparators[:index], new, *node.comparators[index + 1 :]]),
                )


def _at(node: ast.AST, path: Path) -> ast.AST:
    for field, index in path:
        value = getattr(node, field)
        node = value if index is None else value[index]
    return node


def _put(function: ast.FunctionDef, path: Path, new: New) -> tuple[str, str]:
    *way, (field, index) = path
    parent = _at(function, tuple(way))
    old = getattr(parent, field) if index is None else getattr(parent, field)[index]
    new = copy.deepcopy(new)
    if index is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[index] = new
    return _shown(old), _shown(new)


def _shown(node: ast.AST | None) -> str:
    if node is None:
        return ""
    if isinstance(node, ast.comprehension):
        return " if ".join([ast.unparse(node.iter), *map(ast.unparse, node.ifs)])
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 160 else text[:157] + "..."
