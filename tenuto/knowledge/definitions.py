"""Find, read and check pipeline definitions.

    load("eight-step", root)   -> the checked pipeline, or BadInput with every problem as file:line:column
    available(root)            -> what there is: shipped, and the repository's own

A repository's own pipelines lie in .tenuto/pipelines/ (NAME.yaml, .yml or .json) and win over shipped
ones of the same name. A path that ends in one of these is read as it is. What a pipeline *means* is
decided in core/pipeline.py; here is only where it comes from and where in the text a problem stands.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypedDict

from tenuto.core import names
from tenuto.core.pipeline import check
from tenuto.core.pipeline_records import Pipeline, Problem
from tenuto.errors import BadInput, NotFound
from tenuto.knowledge import yaml_data

SHIPPED = Path(__file__).parent.parent / "pipelines"
OWN = Path(".tenuto") / "pipelines"
SUFFIXES = (".yaml", ".yml", ".json")
# Without a profile: all fifteen phases, as in the state that its seed begins with and as `tenuto staged init` does.
ALIASES = {"staged": "staged-thorough"}
Roles = Collection[str] | Mapping[str, Collection[str] | None] | None


class LocatedProblem(TypedDict):
    file: str
    line: int
    column: int
    problem: Problem


class Listed(TypedDict):
    name: str
    description: str
    origin: str  # shipped or repository
    file: str
    problems: int


def load(name: str, root: Path | None = None, roles: Roles = None, settings: dict[str, Any] | None = None) -> Pipeline:
    """`settings` are merged over the definition's own before it is checked."""
    path = find(name, root)
    pipeline, problems = read(path, roles, settings)
    if pipeline is None:
        lines = [in_words(problem) for problem in problems]
        count = f"{len(lines)} problem{'s' if len(lines) > 1 else ''}"
        raise BadInput(
            "bad-pipeline", f"the pipeline in {path} has {count}:\n  " + "\n  ".join(lines), "correct them; nothing was started",
            problems=problems,
        )  # fmt: skip
    return pipeline


def find(name: str, root: Path | None = None) -> Path:
    if name.endswith(SUFFIXES):
        path = (root or Path()) / name
        if not path.is_file():
            raise NotFound("no-pipeline", f"there is no file {name}", "give a path, or one of: " + ", ".join(shipped()))
        return path
    names.check(name, "pipeline")
    own = [path for suffix in SUFFIXES if root and is_file(path := root / OWN / (name + suffix))]
    if len(own) > 1:
        found = ", ".join(path.name for path in own)
        raise BadInput("two-pipelines", f"{OWN} holds '{name}' more than once: {found}", "keep one of them")
    path = own[0] if own else SHIPPED / (ALIASES.get(name, name) + ".yaml")
    if not path.is_file():
        own_names = sorted(path.stem for path in (root / OWN).glob("*") if path.suffix in SUFFIXES) if root else []
        known = ", ".join(dict.fromkeys([*own_names, *shipped()]))
        raise NotFound("no-pipeline", f"there is no pipeline '{name}'", f"known: {known}")
    return path


def read(
    path: Path, roles: Roles = None, settings: dict[str, Any] | None = None
) -> tuple[Pipeline | None, list[LocatedProblem]]:
    """Unreadable text is BadInput; text that says something wrong is a list of problems."""
    source = source_of(path)
    raw = source.data
    if settings and isinstance(raw, dict):
        raw = {**raw, "settings": _merged(raw.get("settings") or {}, settings)}
    pipeline, problems = check(raw, roles)
    if pipeline is not None and pipeline["name"] != path.stem:
        message = f"the file is called {path.stem} and the pipeline '{pipeline['name']}'"
        problems = [{"path": ["name"], "code": "other-name", "message": message, "hint": "call both the same"}]
    located: list[LocatedProblem] = []
    for problem in problems:
        line, column = source.place(problem["path"])
        located.append({"file": str(path), "line": line, "column": column, "problem": problem})
    located.sort(key=lambda one: (one["line"], one["column"]))
    return (None if problems else pipeline), located


def is_file(path: Path) -> bool:
    """What lies there and is no file is refused, not passed over: gates that its owner believes in would be missing."""
    if path.is_file():
        return True
    if os.path.lexists(path):
        kind = "a link to nothing that can be read" if path.is_symlink() else "no file"
        raise BadInput("not-a-file", f"{path} is {kind}", "put the file there, or remove it")
    return False


def source_of(path: Path) -> yaml_data.Source:
    if path.stat().st_size > yaml_data.LARGEST:
        raise BadInput("too-large", f"{path} is larger than {yaml_data.LARGEST // 1024} KB", "split it")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise BadInput("not-text", f"{path} is not UTF-8 at byte {wrong.start}", "save it as UTF-8") from None
    return yaml_data.read(text, str(path))


def in_words(located: LocatedProblem) -> str:
    problem = located["problem"]
    hint = f" ({problem['hint']})" if problem["hint"] else ""
    return f"{located['file']}:{located['line']}:{located['column']}: [{problem['code']}] {problem['message']}{hint}"


def shipped() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def available(root: Path | None = None) -> list[Listed]:
    """The repository's own first; one that cannot be read is listed with what is wrong, not left out."""
    found: dict[str, Listed] = {}
    own = sorted(path for path in (root / OWN).glob("*") if path.suffix in SUFFIXES) if root else []
    for origin, path in [
        *(("repository", path) for path in own),
        *(("shipped", path) for path in sorted(SHIPPED.glob("*.yaml"))),
    ]:
        if path.stem in found:
            continue
        try:
            pipeline, problems = read(path)
        except BadInput:
            pipeline, problems = None, []
        found[path.stem] = {
            "name": path.stem, "description": pipeline["description"] if pipeline else "", "origin": origin,
            "file": str(path), "problems": 0 if pipeline else max(1, len(problems)),
        }  # fmt: skip
    return list(found.values())


def _merged(base: Any, over: dict[str, Any]) -> dict[str, Any]:
    made = dict(base) if isinstance(base, dict) else {}
    for key, value in over.items():
        made[key] = _merged(made[key], value) if isinstance(value, dict) and isinstance(made.get(key), dict) else value
    return made
