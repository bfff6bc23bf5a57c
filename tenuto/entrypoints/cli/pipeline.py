"""`tenuto pipeline new | list | check | show | test`: making a pipeline of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from tenuto.entrypoints.cli.frame import Answer, Command, Group, open_here
from tenuto.entrypoints.cli.terminal import Heading, Marked, Part, Table, counted, say
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.knowledge import definitions

if TYPE_CHECKING:
    from tenuto.knowledge.definitions import LocatedProblem
    from tenuto.rehearsal.stage import Played, Rehearsal, Went
    from tenuto.show.graph import Graph

SCHEMA = Path(__file__).parents[2] / "schemas" / "pipeline.schema.json"
FIRST_LINE = "# yaml-language-server: $schema=../pipeline.schema.json\n"
_NOTHING = Path(__file__).parents[2] / "cookbook" / "from-nothing"


class Checked(TypedDict):
    """One file, and what is wrong with it."""

    file: str
    problems: list[LocatedProblem]
    unreadable: str  # why it cannot be read at all; "" where it can


@click.group(
    "pipeline",
    cls=Group,
    examples=[
        ("tenuto pipeline new release", "begin one of your own"),
        ("tenuto pipeline check release", "what is wrong with it, with line and column"),
        ("tenuto pipeline show release --as svg -o release.svg", "a picture of it"),
        ("tenuto pipeline test release", "run its cases without agents"),
    ],
)
def pipeline() -> None:
    """Make a pipeline of your own: begin it, check it, look at it, try it out without agents."""


def _root() -> Path:
    return Path(open_here().root)


def _found(name: str, root: Path) -> Path:
    """A file, a pipeline of the repository, a shipped one, or one of the cookbook."""
    if name.endswith(definitions.SUFFIXES):
        for path in (Path(name), root / name):
            if path.is_file():
                return path
        raise NotFound("no-pipeline", f"there is no file {name}", "tenuto pipeline list")
    beside = definitions.COOKBOOK / f"{name}.yaml"
    try:
        return definitions.find(name, root)
    except NotFound as missing:
        if beside.is_file():
            return beside
        from tenuto.core.pipeline.values import did_you_mean

        known = [one["name"] for one in definitions.available(root)] + definitions.cookbook()
        raise NotFound(missing.code, missing.message, did_you_mean(name, known)) from None


def _shown_path(path: Path, root: Path) -> str:
    resolved = path.resolve()
    return str(resolved.relative_to(root.resolve())) if resolved.is_relative_to(root.resolve()) else str(path)


def _modes(path: Path, root: Path) -> dict[str, list[str] | None]:
    """The roles that are known to a pipeline: the cookbook's lie beside it."""
    from tenuto.knowledge import roles

    beside: dict[str, list[str] | None] = {role.stem: None for role in (path.parent / "roles").glob("*.md")}
    return {**beside, **roles.modes(root)}


# ---- new


@pipeline.command(
    "new",
    cls=Command,
    examples=[
        ("tenuto pipeline new release", "from nothing, with comments"),
        ("tenuto pipeline new our-fix --from bug-fix", "from a shipped one, or from the cookbook"),
    ],
)
@click.argument("name")
@click.option("--from", "source", default="", metavar="NAME", help="Begin with this pipeline; tenuto pipeline list.")
def new(name: str, source: str) -> Answer:
    """Begin a pipeline of your own, in .tenuto/pipelines/, with cases that try it out.

    Without --from it is a small one with comments: what each line does, and what else there is. Its first line tells
    editors where the schema is, so that they complete keys and mark mistakes; the schema is put beside it. Nothing
    that exists is replaced.
    """
    from tenuto import names

    names.check(name, "pipeline")
    if not re.fullmatch(r"[^\W_][\w.-]*", name) or name.endswith((".test", *definitions.SUFFIXES)):
        message = f"a pipeline cannot be called '{name}'"
        raise BadInput("bad-name", message, "letters, digits, '-', '_' and '.'; no ending: release")
    root = _root()
    begun = _found(source, root) if source else _NOTHING / "pipeline.yaml"
    if begun.suffix == ".json":
        raise BadInput("no-yaml", f"{begun} is JSON, which keeps no comments", "copy the file yourself")
    target = root / definitions.OWN / f"{name}.yaml"
    cases = target.with_name(name + definitions.CASES)
    for path in (target, cases):
        if path.exists() or path.is_symlink():
            raise Refused("exists", f"{_shown_path(path, root)} is there already", "choose another name, or remove it")
    text = _renamed(begun.read_text(encoding="utf-8"), name)
    tried = begun.with_name(begun.stem + definitions.CASES)
    target.parent.mkdir(parents=True, exist_ok=True)
    (target.parent.parent / SCHEMA.name).write_bytes(SCHEMA.read_bytes())
    target.write_text(text, encoding="utf-8")
    made = [_shown_path(target, root)]
    if tried.is_file():
        cases.write_text(re.sub(r"(?m)^pipeline:.*\n", "", tried.read_text(encoding="utf-8")), encoding="utf-8")
        made.append(_shown_path(cases, root))
    made += [_shown_path(path, root) for path in _copy_roles(begun, target.parent.parent / "roles")]
    lines = [f"made {path}" for path in made]
    lines += [
        f"  try: tenuto pipeline {word} {name}" for word in ("check", "show", *(["test"] if tried.is_file() else []))
    ]
    return Answer({"name": name, "from": source, "files": made}, lines)


def _copy_roles(source: Path, folder: Path) -> Iterator[Path]:
    """Those of the cookbook that the pipeline names; one that is there already stays."""
    from tenuto.core.pipeline.check import seats

    pipeline = definitions.load(str(source))
    wanted = dict.fromkeys(seat["role"] for step in pipeline["steps"] for seat in seats(step))
    for role in wanted:
        page, target = source.parent / "roles" / f"{role}.md", folder / f"{role}.md"
        if page.is_file() and not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            target.write_bytes(page.read_bytes())
            yield target


def _renamed(text: str, name: str) -> str:
    body = text.removeprefix(FIRST_LINE)
    return FIRST_LINE + re.sub(r"(?m)^name:.*$", f"name: {name}", body, count=1)


# ---- list


@pipeline.command("list", cls=Command, examples=[("tenuto pipeline list", "yours, those that ship, the cookbook")])
def list_() -> Answer:
    """Which pipelines there are: the repository's own, those that ship, and the cookbook's, to begin from."""
    return _all_pipelines()


def _all_pipelines() -> Answer:
    from tenuto.core.budget import fewest

    rows = []
    for listed in definitions.available(_root()):
        agents = "-" if listed["problems"] else str(fewest(definitions.load(listed["file"]), 3))
        words = listed["description"] or f"{counted(listed['problems'], 'problem')}: tenuto pipeline check"
        rows.append((listed["name"], listed["origin"], agents, " ".join(words.split())))
    for name in definitions.cookbook():
        known = definitions.load(str(definitions.COOKBOOK / f"{name}.yaml"))
        rows.append((name, "cookbook", str(fewest(known, 3)), " ".join(known["description"].split())))
    data = [dict(zip(("name", "origin", "agents", "description"), row, strict=True)) for row in rows]
    note = "AGENTS: when all goes well, with three items. From the cookbook: tenuto pipeline new NAME --from bug-fix"
    return Answer({"pipelines": data}, [Table(("NAME", "ORIGIN", "AGENTS", "WHAT IT IS FOR"), rows), "", note])


@click.command("pipelines", cls=Command, examples=[("tenuto pipelines", "the same as `tenuto pipeline list`")])
def pipelines() -> Answer:
    """Which pipelines there are: the repository's own, those that ship, and the cookbook's, to begin from."""
    return _all_pipelines()


@click.command("roles", cls=Command, examples=[("tenuto roles", "what a pipeline may name as `role`")])
def roles() -> Answer:
    """Which roles there are, and whose. A role of yours stands in the place of one that ships with the same name."""
    from tenuto.knowledge.roles import available

    found = available(_root())
    rows = [(role["name"], role["origin"], " ".join(role["description"].split())) for role in found]
    data = [dict(zip(("name", "origin", "description"), row, strict=True)) for row in rows]
    return Answer({"roles": data}, [Table(("NAME", "ORIGIN", "WHAT IT IS FOR"), rows)])


# ---- check


@pipeline.command(
    "check",
    cls=Command,
    examples=[
        ("tenuto pipeline check", "every pipeline of this repository"),
        ("tenuto pipeline check release docs/other.yaml", "by name, or by file"),
    ],
)
@click.argument("pipelines", nargs=-1, metavar="[NAME|FILE]...")
def check(pipelines: tuple[str, ...]) -> Answer:
    """What is wrong with a pipeline, as FILE:LINE:COLUMN, and the nearest word that would be right.

    The roles that it names are looked for, and the cases beside it are read, too. Nothing is started or written. Ends
    with 0 when all is well, with 2 when something is wrong, with 3 when there is no such pipeline.
    """
    root = _root()
    own = [Path(one["file"]) for one in definitions.available(root) if one["origin"] == "repository"]
    paths = [_found(name, root) for name in pipelines] or own
    if not paths:
        raise NotFound("no-pipeline", f"there is no pipeline in {definitions.OWN}", "tenuto pipeline new NAME")
    files = [checked for path in paths for checked in _checked(path, root)]
    wrong = sum(len(one["problems"]) or bool(one["unreadable"]) for one in files)
    return Answer({"files": files, "problems": wrong}, _checks_shown(files, root), 2 if wrong else 0)


def _checked(path: Path, root: Path) -> Iterator[Checked]:
    from tenuto.rehearsal.cases import file_for, read_cases

    if not path.name.endswith(definitions.CASES):
        try:
            yield {
                "file": str(path),
                "problems": definitions.read(path, _modes(path, root), root=root)[1],
                "unreadable": "",
            }
        except BadInput as error:
            yield {"file": str(path), "problems": [], "unreadable": error.message}
    cases = path if path.name.endswith(definitions.CASES) else file_for(path)
    if cases.is_file():
        try:
            read_cases(cases)
        except BadInput as error:
            yield {"file": str(cases), "problems": [], "unreadable": error.message}


def _checks_shown(files: list[Checked], root: Path) -> Iterator[Part]:
    for one in files:
        for problem in one["problems"]:
            yield definitions.in_words({**problem, "file": _shown_path(Path(problem["file"]), root)})
        if one["unreadable"]:
            yield from one["unreadable"].replace(f"{root}/", "").splitlines()
    wrong = [one["file"] for one in files if one["problems"] or one["unreadable"]]
    for one in files:
        if one["file"] not in wrong:
            yield Marked("ok", _shown_path(Path(one["file"]), root))


# ---- show


@pipeline.command(
    "show",
    cls=Command,
    examples=[
        ("tenuto pipeline show quick", "as text"),
        ("tenuto pipeline show quick --as mermaid", "for a Markdown page"),
        ("tenuto pipeline show quick --as svg -o quick.svg", "as a picture"),
    ],
)
@click.argument("name", metavar="NAME|FILE")
@click.option("--as", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", help="As what; text.")
@click.option("--items", type=click.IntRange(0, 100_000), default=5, help="Items, for the worst case; 5.")
@click.option("-o", "--output", default=None, metavar="FILE", help="Write it to this file.")
def show(name: str, form: str, items: int, output: str | None) -> Answer:
    """A pipeline: its steps, who works in each, what follows each outcome, how often at most.

    The picture stands alone: readable on a light and on a dark page, with a description for screen readers, and the
    same bytes for the same pipeline.
    """
    from tenuto.show.graph import as_mermaid, graph
    from tenuto.show.graph_svg import as_svg

    root = _root()
    path = _found(name, root)
    shown = graph(definitions.load(str(path.resolve()), root, _modes(path, root)), items)
    if form == "text":
        lines = list(_outlined(shown, path, root))
        text = "".join((part.text if isinstance(part, Heading) else str(part)) + "\n" for part in lines)
        if output is None:
            return Answer(shown, lines)
    else:
        text = as_mermaid(shown) if form == "mermaid" else as_svg(shown)
    if output is None:
        return Answer(shown, raw=text.encode())
    Path(output).write_text(text, encoding="utf-8")
    return Answer({**shown, "written": output}, [f"written: {output}"])


def _outlined(shown: Graph, path: Path, root: Path) -> Iterator[Part]:
    from tenuto.core.pipeline.params import as_text
    from tenuto.entrypoints.cli.plan import outline

    definition = definitions.load(str(path.resolve()), root)
    yield Heading(f"{shown['name']}: {shown['description']}")
    for name, param in definition["params"].items():
        if param.get("fixed"):
            continue
        needed = "must be given" if param.get("required", True) else "may be left out"
        default = needed if param["default"] is None else f"default: {as_text(param['default'])}"
        described = f": {' '.join(param['description'].split())}" if param["description"] else ""
        yield f"  --param {name}=...  {param['type']}, {default}{described}"
    yield ""
    # Neither switches nor parameters are given here: both ways of every condition are shown.
    yield from outline(definition, None)
    yield ""
    items = (
        f" for {counted(shown['bound']['items'], 'item')}" if any(n["kind"] == "waves" for n in shown["nodes"]) else ""
    )
    yield f"At most {counted(shown['bound']['attempts'], 'attempt')}{items}, {shown['cap']} at a time"


# ---- test


@pipeline.command(
    "test",
    cls=Command,
    examples=[
        ("tenuto pipeline test release", "the cases in .tenuto/pipelines/release.test.yaml"),
        ("tenuto pipeline test docs/other.test.yaml --case 'all goes well'", "a file of cases, one of them"),
        ("tenuto pipeline test release --every-way", "and fail when a way was not gone"),
    ],
)
@click.argument("tests", nargs=-1, metavar="[NAME|FILE]...")
@click.option("--case", "only", default="", metavar="NAME", help="Only the case of this name.")
@click.option("--every-way", is_flag=True, help="Ends with 1 also when no case went a way that the pipeline has.")
def test(tests: tuple[str, ...], only: str, every_way: bool) -> Answer:
    """Run a pipeline's cases without agents, and say which of its ways no case went.

    Beside NAME.yaml lies NAME.test.yaml with cases: answers in the place of agents and commands, decisions at gates,
    and what is expected. Each case runs in a new repository with the real engine. A way is an outcome with what it
    leads to, a choice at a gate, or a condition that holds or does not.

    Ends with 0 when every case passes, with 1 when one does not, with 2 when a file is wrong.
    """
    from tenuto.rehearsal.cases import file_for, read_cases
    from tenuto.rehearsal.stage import rehearse
    from tenuto.workspace.trust import of_cases, require

    root = _root()
    paths = [_cases(name, root) for name in tests]
    if not tests:
        own = [file_for(Path(one["file"])) for one in definitions.available(root) if one["origin"] == "repository"]
        paths = [path for path in own if path.is_file()]
        if not paths:
            raise NotFound("no-cases", f"there are no cases in {definitions.OWN}", "tenuto pipeline new NAME")
    read = [read_cases(path) for path in paths]
    if only and not any(case["name"] == only for one in read for case in one["cases"]):
        known = ", ".join(case["name"] for one in read for case in one["cases"])
        raise NotFound("no-case", f"there is no case '{only}'", f"cases: {known}")
    require(open_here(), [power for path in paths for power in of_cases(str(path), str(root))])
    done = []
    for one in read:
        if len(read) > 1:
            say(f"{one['file']} ...")
        done.append(rehearse(one, root, only))
    failed = any(case["problems"] for one in done for case in one["cases"])
    missed = any(untried(one) for one in done)
    status = 1 if failed or (every_way and missed and not only) else 0
    return Answer({"rehearsals": done}, (part for one in done for part in _rehearsed(one, bool(only))), status)


def _cases(name: str, root: Path) -> Path:
    from tenuto.rehearsal.cases import file_for

    path = _found(name, root)
    cases = path if path.name.endswith(definitions.CASES) else file_for(path)
    if not cases.is_file():
        hint = f"write {cases.name} beside it: docs/howto/try-a-pipeline-out.md"
        raise NotFound("no-cases", f"{_shown_path(path, root)} has no cases", hint)
    return cases


def untried(done: Rehearsal) -> list[Went]:
    return [went for went in done["ways"] if went["way"]["written"] and not went["cases"]]


def _rehearsed(done: Rehearsal, partly: bool) -> Iterator[Part]:
    yield Heading(f"{done['pipeline']}: {counted(len(done['cases']), 'case')}")
    for case in done["cases"]:
        yield from _case_shown(case)
    if partly:
        return
    counted_ways = [went for went in done["ways"] if went["way"]["written"]]
    left = untried(done)
    yield ""
    yield Heading(f"{len(counted_ways) - len(left)} of {counted(len(counted_ways), 'way')} gone")
    yield Table(("WAY", "LEADS TO", "CASES"), [_way_row(went) for went in counted_ways])
    if left:
        yield ""
        yield f"no case went: {', '.join(went['way']['key'] for went in left)}"


def _case_shown(case: Played) -> Iterator[Part]:
    passed = not case["problems"]
    ended = f"{case['end']}, {counted(case['attempts'], 'attempt')}" if case["end"] else "it did not begin"
    yield Marked("ok" if passed else "failed", f"{case['name']} ({ended})")
    yield from (f"{'':<8} {line}" for problem in case["problems"] for line in problem.splitlines())


def _way_row(went: Went) -> tuple[str, str, str]:
    from tenuto.entrypoints.cli.plan import follows

    way = went["way"]
    leads_to = (
        follows(way["leads_to"])[0] if way["leads_to"] else {"runs": "it runs"}.get(way["part"], "it is left out")
    )
    return way["key"], leads_to, str(len(went["cases"])) if went["cases"] else "none"
