"""`tenuto init`: start a journal in this repository. `tenuto config`: which settings count, and what is wrong.

`tenuto trust`: look at what this repository brings that would run, and say that it may. What counts, where it is
written down and who may say so: workspace/trust.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenuto.encoding import dumps, escape_terminal
from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, counted, say, show
from tenuto.errors import BadInput, NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenuto.knowledge.sources import Reference
    from tenuto.workspace.config_file import ConfigProblem, Shown
    from tenuto.workspace.trust import Power
    from tenuto.workspace.workspace import Workspace

_ADDRESS = "ADDRESS[@COMMIT]"


@click.command(
    "init",
    cls=Command,
    examples=[
        ("tenuto init", "start a journal in this repository; offers the checks that it finds"),
        ("tenuto -C ../other init --checks", "in another one, with those checks, without a question"),
        (
            "tenuto init --template github.com/our-org/agents",
            "begin with a copy of a team's pipelines, roles and settings",
        ),
        ("tenuto init --uses github.com/our-org/agents", "use them where they are, pinned by the commit of today"),
    ],
)
@click.option("--checks/--no-checks", "wanted", default=None, help="Write the checks that are found into the settings.")
@click.option("--template", default="", metavar=_ADDRESS, help="Copy pipelines, roles and settings of this repository.")
@click.option("--uses", default="", metavar=_ADDRESS, help="Use those of this repository, pinned by a commit.")
@click.option("--yes", is_flag=True, help="Fetch it without asking.")
def init(wanted: bool | None, template: str, uses: str, yes: bool) -> Answer:
    """Start a journal in this repository.

    Makes .tenuto/ for your own pipelines and roles (commit it), and the journal in the git directory, where `git clean`
    does not reach it. What is there already stays as it is.

    The engine runs a project's build and tests itself only where the settings name them (`checks`). What Makefile,
    package.json, pyproject.toml and the like say is offered at a terminal, and written down with --checks.
    """
    from tenuto.knowledge.project import proposed
    from tenuto.workspace.config_file import init_repository

    workspace = open_here()
    if template and uses:
        raise BadInput("bad-usage", "--template copies, and --uses does not", "one of the two")
    shared = _fetched(workspace, template or uses, yes) if template or uses else None
    copied = _copied(workspace, shared) if shared and template else []
    found = {} if _says_checks(workspace) else proposed(Path(workspace.root))
    agreed = found if found and (wanted or (wanted is None and _agreed(found))) else {}
    created = [*copied, *init_repository(workspace, agreed)]
    if shared and uses:
        from tenuto.workspace.config_file import pin

        pin(workspace.root, shared)
    if agreed and wanted is None:
        _trust(workspace, agreed)
    data = {
        "root": workspace.root,
        "journal": workspace.journal.location,
        "created": created,
        "checks": {"found": found, "written": agreed},
        "uses": shared.text if shared and uses else "",
    }
    fresh = [path for path in created if path != "journal"]
    lines = [
        f"journal   {data['journal']}" + ("" if "journal" in created else "  (was there already)"),
        f"settings  {workspace.root}/.tenuto/" + (f"  (made {', '.join(fresh)})" if fresh else "  (as it was)"),
    ]
    if shared and uses:
        lines += [f"uses      {shared.text}", "  try: tenuto trust   (shows what it would run, then asks)"]
    return Answer(data, [*lines, *_about_checks(found, agreed, bool(created))])


def _about_checks(found: Mapping[str, str], agreed: Mapping[str, str], fresh: bool) -> Iterator[str]:
    for name, command in agreed.items():
        yield f"check     {name}: {escape_terminal(command)}"
    if found and not agreed:
        listed = ", ".join(f"{name}: {escape_terminal(command)}" for name, command in found.items())
        yield f"checks    none: the engine would run no build and no tests (found: {listed})"
        yield "  try: tenuto init --checks   (writes them into .tenuto/config.yaml)"


def _says_checks(workspace: Workspace) -> bool:
    from tenuto.knowledge.plain_data import is_file, source_of

    path = Path(workspace.root) / ".tenuto/config.yaml"
    data = source_of(path).data if is_file(path) else None
    return isinstance(data, dict) and bool(data.get("checks"))


def _agreed(found: Mapping[str, str]) -> bool:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    say("The engine can run these after an agent says that it is done, and believe no word of it otherwise:")
    for name, command in found.items():
        say(f"  {name}: {escape_terminal(command)}")
    return click.confirm("Write them into .tenuto/config.yaml as checks?", default=True, err=True)


def _trust(workspace: Workspace, agreed: Mapping[str, str]) -> None:
    """A person has read exactly these commands, and said that they may run."""
    from tenuto.workspace import trust

    trust.say_so(workspace, trust.of_settings({"checks": dict(agreed)}, workspace.root))


def _fetched(workspace: Workspace, text: str, yes: bool) -> Reference:
    from tenuto.knowledge import sources
    from tenuto.workspace import shared
    from tenuto.workspace.guard import require_person

    require_person(workspace.caller, "fetch a repository", "tenuto init")
    one = shared.pinned(text)
    if not sources.is_fetched(one):
        if not yes and (not sys.stdin.isatty() or not sys.stderr.isatty()):
            raise Refused("not-confirmed", f"{one.text} would be fetched", "look at it, then: --yes")
        if not yes and not click.confirm(f"Fetch {escape_terminal(one.text)}?", default=False, err=True):
            raise Refused("not-confirmed", "nothing was fetched", "tenuto init   (without it)")
        shared.fetch([one])
    sources.fetched(one)  # a folder in it that is not there is refused, before anything is written
    return one


def _copied(workspace: Workspace, one: Reference) -> list[str]:
    from tenuto.workspace import shared

    made = shared.copy_into(workspace.root, one)
    if not made:
        say(f"note: nothing of {one.text} was copied: it has no pipelines, roles or settings that are not here already")
    return made


# ---- config


@click.command(
    "config",
    cls=Command,
    examples=[
        ("tenuto config", "every setting: its value, and which file says so"),
        ("tenuto config checks", "one of them"),
        ("tenuto config --check", "only what is wrong, as FILE:LINE:COLUMN; nothing where all is well"),
        ("tenuto config --template", "all settings with comments, to begin from"),
    ],
)
@click.argument("name", required=False, metavar="[SETTING]")
@click.option("--check", "only_check", is_flag=True, help="Only say what is wrong.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the file, for an editor.")
@click.option("--template", is_flag=True, help="Print a file with every setting and what it is for.")
def config(name: str | None, only_check: bool, schema: bool, template: bool) -> Answer:
    """Which settings count here, from where, and what is wrong with them.

    They come from .tenuto/config.yaml, then from the repositories that it `uses`, then from your own
    ~/.config/tenuto/config.yaml. Nothing is started or written. Ends with 2 when something is wrong.
    """
    from tenuto.workspace import config_file

    if schema or template:
        path = config_file.SCHEMA if schema else config_file.TEMPLATE
        text = path.read_text(encoding="utf-8")
        return Answer({"text": text}, raw=text.encode())
    workspace = open_here()
    wrong = config_file.problems(workspace.root)
    if wrong:
        lines = [_in_words(one, workspace.root) for one in wrong]
        count = f"{len(lines)} problem{'s' if len(lines) > 1 else ''}"
        message = f"the settings have {count}:\n  " + "\n  ".join(lines)
        raise BadInput("bad-settings", message, "correct them; until then nothing starts here", problems=wrong)
    if only_check:
        return Answer({"problems": []}, ["the settings are in order"])
    rows = config_file.shown(workspace.root)
    if name is not None:
        rows = [_one(rows, name)]
    return Answer({"settings": rows, "problems": []}, _table(rows, workspace.root, name is not None))


def _one(rows: list[Shown], name: str) -> Shown:
    from tenuto.core.pipeline.values import did_you_mean

    found = next((one for one in rows if one["name"] == name), None)
    if found is None:
        hint = did_you_mean(name, [one["name"] for one in rows])
        raise NotFound("no-such-setting", f"there is no setting {name!r}", hint)
    return found


def _table(rows: list[Shown], root: str, alone: bool) -> Iterator[Part]:
    listed = [(one["name"], _value(one["value"]), _where(one, root)) for one in rows]
    yield Table(("SETTING", "VALUE", "FROM"), [tuple(map(escape_terminal, row)) for row in listed])
    if alone:
        yield f"  {rows[0]['shape']}; docs/reference/settings.md#{rows[0]['name']}"


def _value(value: object) -> str:
    return "-" if value is None else value if isinstance(value, str) else dumps(value)


def _where(one: Shown, root: str) -> str:
    return "default" if one["origin"] == "default" else f"{_short(one['file'], root)}:{one['line']}"


def _short(file: str, root: str) -> str:
    return file.removeprefix(f"{root}/")


def _in_words(one: ConfigProblem, root: str) -> str:
    hint = f" ({one['hint']})" if one["hint"] else ""
    return f"{_short(one['file'], root)}:{one['line']}:{one['column']}: [{one['code']}] {one['message']}{hint}"


# ---- trust


@click.command(
    "trust",
    cls=Command,
    examples=[
        ("tenuto trust", "shows what this repository would run, then asks"),
        ("tenuto trust --show", "only shows it; ends with 5 while somebody has to look"),
        ("tenuto trust --pipeline ci/release.yaml", "and a pipeline that lies elsewhere in the repository"),
        ("tenuto trust --undo", "nothing of this repository runs any more"),
    ],
)
@click.option("--show", "only_look", is_flag=True, help="Only show it.")
@click.option("--yes", is_flag=True, help="Without a question: for a script of yours that sets up a machine.")
@click.option("--pipeline", default="", metavar="FILE", help="A pipeline that does not lie in .tenuto/pipelines, too.")
@click.option("--undo", is_flag=True, help="Take it back.")
def trust(only_look: bool, yes: bool, pipeline: str, undo: bool) -> Answer:
    """Look at what this repository brings that would run, and say that it may.

    Commands, programs, options of agents and variables that .tenuto/ names run only after a person has looked at them
    here, once; when they change, what is new is shown and asked for again. Prompts, gates and limits need nobody's
    word. The answer is kept in your own folder of state, not in the repository.
    """
    from tenuto.workspace import trust as trusting
    from tenuto.workspace.guard import require_person

    workspace = open_here()
    if undo:
        return _taken_back(trusting.take_back(workspace))
    waiting = _fetched_first(workspace, yes, only_look)
    if waiting is not None:
        return waiting
    powers = trusting.of_repository(workspace.root) + (_of_file(workspace, pipeline) if pipeline else [])
    new, gone = trusting.missing(workspace, powers), _gone(workspace, powers)
    data = {
        "repository": workspace.root,
        "powers": _powers_named(powers),
        "new": _powers_named(new),
        "gone": _powers_named(gone),
    }
    if not new:
        line = "all of it is trusted" if powers else "this repository brings nothing that would run"
        return Answer({**data, "trusted": True}, [*(_powers_shown(powers, "would run") if only_look else []), line])
    title = "new, would run" if len(new) < len(powers) else "would run"
    parts = [*_powers_shown(gone, "no longer there"), *_powers_shown(new, title)]
    if only_look:
        hint = "  try: tenuto trust"
        return Answer({**data, "trusted": False}, [*parts, "", "nobody has said yet that this may run", hint], 5)
    require_person(workspace.caller, "trust a repository", "tenuto trust")
    if not yes and not _agreed_to(parts):
        return Answer({**data, "trusted": False}, ["nothing was changed"], 5)
    trusting.say_so(workspace, powers)
    return Answer({**data, "trusted": True}, [f"trusted: {counted(len(powers), 'line')}, in {workspace.root}"])


def _fetched_first(workspace: Workspace, yes: bool, only_look: bool) -> Answer | None:
    """Shared repositories first: what they bring can be shown only when it is here. None: all of them are."""
    from tenuto.workspace import shared
    from tenuto.workspace.guard import require_person

    wanted = shared.unfetched(workspace.root)
    if not wanted:
        return None
    parts: list[Part] = [
        Heading("used here, and not fetched yet:"),
        *(f"  {escape_terminal(one.text)}" for one in wanted),
    ]
    data = {"repository": workspace.root, "trusted": False, "unfetched": [one.text for one in wanted]}
    if only_look:
        return Answer(data, [*parts, "", "what it brings is shown when it is here", "  try: tenuto trust"], 5)
    require_person(workspace.caller, "trust a repository", "tenuto trust")
    if not yes and not _agreed_to(parts, "Fetch it?"):
        return Answer(data, ["nothing was fetched, and nothing was changed"], 5)
    shared.fetch(wanted)
    return None


def _taken_back(was_there: bool) -> Answer:
    line = "nothing of this repository runs any more" if was_there else "nothing here was trusted"
    return Answer({"trusted": False}, [line])


def _of_file(workspace: Workspace, pipeline: str) -> list[Power]:
    from tenuto.engine.attempt import define
    from tenuto.workspace.trust import of_definition

    if "/" not in pipeline and "." not in pipeline:
        raise BadInput("bad-usage", f"'{pipeline}' is no file", "tenuto trust --pipeline ci/release.yaml")
    return of_definition(define(pipeline, workspace.root))


def _gone(workspace: Workspace, powers: list[Power]) -> list[Power]:
    from tenuto.workspace.trust import last_look

    return [one for one in last_look(workspace) if one not in powers]


def _powers_named(powers: list[Power]) -> list[dict[str, str]]:
    return [{"kind": kind, "where": where, "what": what} for kind, where, what in powers]


def _powers_shown(powers: list[Power], title: str) -> Iterator[Part]:
    """All of it, whatever its length: what is not shown must not be trusted."""
    if not powers:
        return
    yield Heading(f"{title}:")
    for kind, where, what in powers:
        yield f"  {kind}, {escape_terminal(where)}"
        yield from (f"      {escape_terminal(line)}" for line in what.splitlines() or [""])


def _agreed_to(parts: list[Part], question: str = "May this run here, as you?") -> bool:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        hint = "in a terminal: tenuto trust; in CI, on purpose: tenuto run --trust"
        raise Refused("not-confirmed", "somebody has to look at what would run, and nobody is at a terminal", hint)
    show(parts)
    return click.confirm(question, default=False, err=True)
