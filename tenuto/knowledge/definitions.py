"""Find, read and check pipeline definitions.

    load("eight-step", root)   -> the checked pipeline, or BadInput with every problem as file:line:column
    available(root)            -> what there is: the repository's own, shared ones, the user's, shipped ones

A repository's own pipelines lie in .tenuto/pipelines/ (NAME.yaml, .yml or .json); sources.py says where else some lie
and which of the same name counts. A path that ends in one of these is read as it is. What a pipeline *means* is
decided in core/pipeline/; here is only where it comes from and where in the text a problem stands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from tenuto import names
from tenuto.core.pipeline import nested, params
from tenuto.core.pipeline.check import MOST_STEPS, check
from tenuto.core.pipeline.records import Param, ParamValue, Pipeline, Problem
from tenuto.core.pipeline.values import View, did_you_mean
from tenuto.core.records.run import Json
from tenuto.errors import BadInput, NotFound, TenutoError
from tenuto.knowledge.plain_data import Source, YamlPath, is_file, source_of
from tenuto.knowledge.sources import Origin, origins

SHIPPED = Path(__file__).parent.parent / "pipelines"
OWN = Path(".tenuto") / "pipelines"
COOKBOOK = Path(__file__).parent.parent / "cookbook"  # to begin one's own from: tenuto pipeline new --from
SUFFIXES = (".yaml", ".yml", ".json")
CASES = ".test.yaml"  # how the file with a pipeline's cases ends, which lies beside it
# Without a profile: all fifteen phases, as in the state that its seed begins with and as `tenuto staged init` does.
ALIASES = {"staged": "staged-thorough"}
Roles = Collection[str] | Mapping[str, Collection[str] | None] | None


class LocatedProblem(TypedDict):
    file: str
    line: int
    column: int
    problem: Problem


Origins = dict[YamlPath, tuple["Source", YamlPath]]  # what is written in another place than where it stands, and where


class Listed(TypedDict):
    name: str
    description: str
    origin: str  # repository, shared, user or shipped
    file: str
    problems: int


def load(
    name: str,
    root: Path | None = None,
    roles: Roles = None,
    settings: dict[str, object] | None = None,
    given: Mapping[str, ParamValue] | None = None,
) -> Pipeline:
    """`settings` are merged over the definition's own before it is checked. `given`: the values of its parameters;
    without them it is filled with their defaults, or something of their type."""
    path = find(name, root)
    pipeline, problems = read(path, roles, settings, given, root)
    if pipeline is None:
        lines = [in_words(problem) for problem in problems]
        count = f"{len(lines)} problem{'s' if len(lines) > 1 else ''}"
        raise BadInput(
            "bad-pipeline",
            f"the pipeline in {path} has {count}:\n  " + "\n  ".join(lines),
            "correct them; nothing was started",
            problems=problems,
        )
    return pipeline


def find(name: str, root: Path | None = None) -> Path:
    if name.endswith(SUFFIXES):
        path = (root or Path()) / name
        if not path.is_file():
            raise NotFound("no-pipeline", f"there is no file {name}", "give a path, or one of: " + ", ".join(shipped()))
        return path
    names.check(name, "pipeline")
    for origin in origins(root):
        folder = origin.folder / "pipelines"
        candidates = [path for suffix in SUFFIXES if is_file(path := folder / (name + suffix))]
        if len(candidates) > 1:
            found = ", ".join(path.name for path in candidates)
            message = f"{origin.name}/pipelines holds '{name}' more than once: {found}"
            raise BadInput("two-pipelines", message, "keep one of them")
        if candidates:
            return candidates[0]
    path = SHIPPED / (ALIASES.get(name, name) + ".yaml")
    if not path.is_file():
        known = ", ".join(dict.fromkeys([*(path.stem for _, path in brought(root)), *shipped()]))
        raise NotFound("no-pipeline", f"there is no pipeline '{name}'", f"known: {known}")
    return path


def read(
    path: Path,
    roles: Roles = None,
    settings: dict[str, object] | None = None,
    given: Mapping[str, ParamValue] | None = None,
    root: Path | None = None,
) -> tuple[Pipeline | None, list[LocatedProblem]]:
    """Unreadable text is BadInput; text that says something wrong is a list of problems. `root`: the repository, where
    its pipelines are looked for, beside those in the folder of this one."""
    found = _Reader(path.parent, root, roles).read(path, settings, given)
    located = sorted(
        found.problems, key=lambda one: (one["file"] != str(path), one["file"], one["line"], one["column"])
    )
    return found.pipeline, located


class _Read(NamedTuple):
    pipeline: Pipeline | None  # None: there are problems
    problems: list[LocatedProblem]
    origins: Origins


class _Reader:
    """One definition with the sub-pipelines that its steps name."""

    def __init__(self, folder: Path, root: Path | None, roles: Roles) -> None:
        self.folder = folder
        self.root = root
        self.roles = roles
        self.sources: dict[Path, Source] = {}
        self.wrong: list[Path] = []  # whose problems were told; they are not looked for again

    def read(
        self,
        path: Path,
        settings: dict[str, object] | None = None,
        given: Mapping[str, ParamValue] | None = None,
        trail: tuple[Path, ...] = (),
    ) -> _Read:
        """`trail`: the pipelines that this one is a step of."""
        source = self.source(path)
        raw = source.data
        if settings and isinstance(raw, dict):
            raw = {**raw, "settings": _merged(raw.get("settings") or {}, settings)}
        raw, problems, documents = _filled(raw, given)
        raw, origins, unread = _with_schemas(raw, path.parent)
        whole = self.with_sub_pipelines(raw, source, origins, (*trail, path))
        located = [*_located(source, origins, [*problems, *unread]), *whole.problems]
        if whole.problems:
            return _Read(None, located, whole.origins)
        raw = whole.raw
        if documents and isinstance(raw, dict):
            existing = raw.get("existing") or []
            raw = {**raw, "existing": [*(existing if isinstance(existing, list) else [existing]), *documents]}
        pipeline, wrong = check(raw, self.roles)
        if pipeline is not None and pipeline["name"] != path.stem:
            message = f"the file is called {path.stem} and the pipeline '{pipeline['name']}'"
            wrong = [{"path": ["name"], "code": "other-name", "message": message, "hint": "call both the same"}]
        located += _located(source, whole.origins, wrong)
        return _Read(None if located else pipeline, located, whole.origins)

    def source(self, path: Path) -> Source:
        if path not in self.sources:
            self.sources[path] = source_of(path)
        return self.sources[path]

    def with_sub_pipelines(self, raw: object, source: Source, origins: Origins, trail: tuple[Path, ...]) -> _Whole:
        """The definition with the steps of sub-pipelines in place of those that name them."""
        steps = raw.get("steps") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(steps, list) or not any(_names_one(step) for step in steps):
            return _Whole(raw, origins, [])
        problems: list[Problem] = []
        top, whole = View(raw, (), problems), _Whole({**raw, "steps": []}, {}, [])
        for index, step in enumerate(steps):
            view = top.get("steps").at(index, step)
            if not _names_one(step):
                whole.add(step, source, ("steps", index), origins)
            elif len(whole.steps) <= MOST_STEPS and (read := self.sub_pipeline(view, trail)) is not None:
                child, given = read
                if child.pipeline is None:
                    whole.problems.extend(one for one in child.problems if one not in whole.problems)
                else:
                    embedded = nested.embed(view, child.pipeline, given, index + 1, top)
                    whole.take(embedded, child, self.source(self.find(nested.name_in(step))), source, ("steps", index))
        _refuse_taken_names(top.get("steps"))
        whole.problems.extend(_located(source, origins, problems))
        return whole

    def sub_pipeline(self, view: View, trail: tuple[Path, ...]) -> tuple[_Read, nested.HandedIn] | None:
        """The pipeline that a step names, filled with what it is handed; None where it cannot be had."""
        named = view.get("pipeline")
        name = named.text("the pipeline")
        try:
            path = self.find(name) if name else None
        except TenutoError as refused:
            named.note(refused.code, refused.message, refused.hint or "")
            return None
        if path is None or path in self.wrong:
            return None
        if path in trail:
            way = " > ".join(one.stem for one in (*trail, path))
            named.note("recursion", f"'{name}' leads back to itself: {way}", "a pipeline cannot be a step of itself")
            return None
        if len(trail) >= nested.DEEPEST:
            message = f"pipelines are nested deeper than {nested.DEEPEST}"
            named.note("too-deep", message, "say the steps of one of them in the other")
            return None
        raw = self.source(path).data
        declared = params.read(View(raw.get("params") if isinstance(raw, dict) else None, ("params",), []))
        before = len(view.problems)
        given = nested.handed_in(view, name, declared)
        if len(view.problems) > before:
            return None
        found = self.read(path, None, given["values"], trail)
        self.wrong += [path] if found.pipeline is None else []
        return found, given

    def find(self, name: str) -> Path:
        """Beside the definition that is read, then among those of the repository and the shipped ones."""
        names.check(name, "pipeline")
        beside = [path for suffix in SUFFIXES if is_file(path := self.folder / (name + suffix))]
        try:
            return beside[0] if beside else find(name, self.root)
        except NotFound:
            known = dict.fromkeys(path.stem for path in [*_in(self.folder), *(path for _, path in brought(self.root))])
            message = f"there is no pipeline '{name}'"
            raise NotFound("no-pipeline", message, did_you_mean(name, [*known, *shipped()])) from None


class _Whole:
    """A definition while sub-pipelines are put into it."""

    def __init__(self, raw: object, origins: Origins, problems: list[LocatedProblem]) -> None:
        self.raw = raw
        self.origins = origins
        self.problems = problems
        self.top: Json = raw if isinstance(raw, dict) else {}
        steps = self.top.get("steps")
        self.steps: list[object] = steps if isinstance(steps, list) else []

    def add(self, step: object, source: Source, place: YamlPath, origins: Origins) -> YamlPath:
        """`place`: where the step stood. What was known of parts of it is known where it stands now."""
        here: YamlPath = ("steps", len(self.steps))
        self.steps.append(step)
        self.origins[here] = origins.get(place, (source, place))
        for way, origin in origins.items():
            if way[:2] == place and len(way) > 2:
                self.origins[(*here, *way[2:])] = origin
        return here

    def take(self, embedded: nested.Embedded, child: _Read, childs: Source, source: Source, place: YamlPath) -> None:
        for part in embedded["parts"]:
            if part["of"] is None:
                here = self.add(part["step"], source, place, {})
            else:
                here = self.add(part["step"], childs, ("steps", part["of"]), child.origins)
            for way, there in part["borrowed"].items():
                self.origins[(*here, *way)] = (source, (*place, *there))
        for key, more in (("params", embedded["params"]), ("switches", embedded["switches"])):
            own = self.top.get(key)
            if more and isinstance(own, dict | None):
                self.top[key] = {**(own or {}), **more}
        own = self.top.get("setup") or {}
        if child.pipeline and isinstance(own, dict):
            setup = child.pipeline["setup"]
            for key, entries in (("run", setup["run"]), ("copy", setup["copy"])):
                before = View(own.get(key), (), []).words("a command")
                if entries:
                    self.top["setup"] = own = {**own, key: list(dict.fromkeys([*before, *entries]))}


def _names_one(step: object) -> bool:
    return isinstance(step, dict) and step.get("pipeline") is not None


def _refuse_taken_names(steps: View) -> None:
    """Names that begin like those of a sub-pipeline would be taken for steps of it."""
    taken = [str(one.get("id").value) for one in steps.entries() if _names_one(one.value) and not one.has("each")]
    for entry in steps.entries():
        own = entry.get("id")
        for name in taken:
            if isinstance(own.value, str) and own.value.startswith(f"{name}."):
                own.note("bad-id", f"the names that begin with '{name}.' are those of its sub-pipeline", "rename it")


def _located(source: Source, origins: Origins, problems: Sequence[Problem]) -> list[LocatedProblem]:
    found: list[LocatedProblem] = []
    for problem in problems:
        there, way = _whose(source, origins, problem["path"])
        line, column = there.place(way)
        found.append({"file": there.name, "line": line, "column": column, "problem": problem})
    return found


def _filled(raw: object, given: Mapping[str, ParamValue] | None) -> tuple[object, list[Problem], list[str]]:
    """Where no values are given, with something of their type; an optional one that nobody gave has none. Also the
    documents that parameters hand in."""
    if not isinstance(raw, dict):
        return raw, [], []
    declared = params.read(View(raw.get("params"), ("params",), []))  # what is wrong with them, check() says
    needed = declared if given is None else {name: one for name, one in declared.items() if one.get("required", True)}
    values = {**params.samples(needed), **(given or {})}
    return *params.fill(raw, declared, values), _documents(declared, values)


def _documents(declared: Mapping[str, Param], values: Mapping[str, object]) -> list[str]:
    """What parameters of type file name, where it can be the name of a document."""
    found = [values.get(name) for name, one in declared.items() if one["type"] == "file" and not one.get("fixed")]
    return [path for path in found if isinstance(path, str) and _may_be_a_document(path)]


def _may_be_a_document(path: str) -> bool:
    try:
        return bool(names.check_path(path))
    except BadInput:
        return False


def _with_schemas(raw: object, folder: Path) -> tuple[object, Origins, list[Problem]]:
    """A copy with every `result: {schema: FILE}` replaced by what the file holds: a run never changes under an edited
    file. Also the files, by where they stand now, and what cannot be read."""
    found: Origins = {}
    problems: list[Problem] = []

    def look(value: object, way: YamlPath) -> object:
        if isinstance(value, list):
            return [look(entry, (*way, index)) for index, entry in enumerate(value)]
        if not isinstance(value, dict):
            return value
        return {
            key: asked(entry, (*way, key)) if key == "result" else look(entry, (*way, key))
            for key, entry in value.items()
        }

    def asked(value: object, way: YamlPath) -> object:
        if not isinstance(value, dict) or not isinstance(value.get("schema"), str):
            return value
        here = (*way, "schema")
        try:
            schema = _schema_in(folder, value["schema"])
        except BadInput as refused:
            hint = refused.hint or ""
            problems.append({"path": list(here), "code": refused.code, "message": refused.message, "hint": hint})
            return {**value, "schema": {}}
        found[here] = (schema, ())
        return {**value, "schema": schema.data}

    filled = {**raw, "steps": look(raw.get("steps"), ("steps",))} if isinstance(raw, dict) and raw.get("steps") else raw
    return filled, found, problems


def _schema_in(folder: Path, name: str) -> Source:
    try:
        names.check_path(name, "schema")
    except BadInput as refused:
        raise BadInput(refused.code, refused.message, "use a path below the folder of the pipeline") from None
    path = folder / name
    if not is_file(path):
        hint = f"it is looked for beside the pipeline, as {path}"
        raise BadInput("no-schema", f"there is no file '{name}'", hint)
    source = source_of(path)
    if not isinstance(source.data, dict):
        raise BadInput("wrong-type", f"{path} holds no mapping, and a schema is one", "for example {type: object}")
    return source


def _whose(source: Source, origins: Origins, path: Sequence[str | int]) -> tuple[Source, YamlPath]:
    """The file in which this place stands, and the way to it there."""
    way = tuple(path)
    for length in range(len(way), 0, -1):
        if way[:length] in origins:
            there, root = origins[way[:length]]
            return there, (*root, *way[length:])
    return source, way


def in_words(located: LocatedProblem) -> str:
    problem = located["problem"]
    hint = f" ({problem['hint']})" if problem["hint"] else ""
    return f"{located['file']}:{located['line']}:{located['column']}: [{problem['code']}] {problem['message']}{hint}"


def shipped() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def available(root: Path | None = None) -> list[Listed]:
    """The strongest of each name; one that cannot be read is listed with what is wrong, not left out."""
    found: dict[str, Listed] = {}
    for origin, path in [
        *((origin.kind, path) for origin, path in brought(root)),
        *(("shipped", path) for path in sorted(SHIPPED.glob("*.yaml"))),
    ]:
        if path.stem in found:
            continue
        try:
            pipeline, problems = read(path, root=root)
        except BadInput:
            pipeline, problems = None, []
        found[path.stem] = {
            "name": path.stem,
            "description": pipeline["description"] if pipeline else "",
            "origin": origin,
            "file": str(path),
            "problems": 0 if pipeline else max(1, len(problems)),
        }
    return list(found.values())


def own(root: Path | None) -> list[Path]:
    """The repository's own files of pipelines."""
    return _in(root / OWN) if root else []


def brought(root: Path | None) -> list[tuple[Origin, Path]]:
    """All that are not shipped, the strongest first."""
    return [(origin, path) for origin in origins(root) for path in _in(origin.folder / "pipelines")]


def _in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES and not path.name.endswith(CASES))


def cookbook() -> list[str]:
    return sorted(path.stem for path in COOKBOOK.glob("*.yaml") if not path.name.endswith(CASES))


def _merged(base: object, over: dict[str, object]) -> dict[str, object]:
    made: dict[str, object] = dict(base) if isinstance(base, dict) else {}
    for key, value in over.items():
        made[key] = _merged(made[key], value) if isinstance(value, dict) and isinstance(made.get(key), dict) else value
    return made
