"""`tenuto setup`: let an agent program call Tenuto.

`tenuto adopt`: files that other programs wrote become runs, where they stand.

ADOPTERS is the list of what can be adopted: where such files lie, and who reads them. A dialect joins with a row.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple, NotRequired, TypedDict

import click

from tenuto.dialects import dialect_named
from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.terminal import Part, show
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.hooks.setup import HOSTS
from tenuto.names import file_key

if TYPE_CHECKING:
    from tenuto.hooks.setup import Plan
    from tenuto.workspace.workspace import Workspace


_DONE = {"create": "made", "change": "changed", "remove": "removed", "none": "as it was"}
_AFTERWARDS = {
    "claude": ["sessions that start from now on call Tenuto; the plugin does the same, so use one of the two"],
    "codex": ["Codex asks you to review new hooks: start it and type /hooks"],
    "copilot": ["sessions that start from now on call Tenuto"],
    "gemini": ["sessions that start from now on call Tenuto; in a project, only where you trust the folder"],
}


@click.command(
    "setup",
    cls=Command,
    examples=[
        ("tenuto setup claude", "shows what would change in ~/.claude/settings.json, then asks"),
        ("tenuto setup codex --dry-run", "only shows it"),
        ("tenuto setup gemini --project --yes", "in this repository, without a question"),
        ("tenuto setup claude --undo", "takes out what setup put in, and nothing else"),
    ],
)
@click.argument("host", metavar="claude|codex|copilot|gemini", type=click.Choice(HOSTS))
@click.option("--undo", "taking_out", is_flag=True, help="Take out what setup put in.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--user/--project", "of_user", default=True, help="For all you do (default), or for this repository.")
@click.option(
    "--mcp/--no-mcp", "servers", default=None, help="The MCP server, too (default: if its extra is installed)."
)
def setup(host: str, taking_out: bool, dry_run: bool, yes: bool, of_user: bool, servers: bool | None) -> Answer:
    """Let an agent program call Tenuto on its events.

    Writes hooks (and the MCP server, where the program keeps it in a file) into the program's settings, with absolute
    commands that start quickly. Entries are marked; whatever is not marked stays as it is, to the byte. Nothing is
    changed before you saw it.
    """
    from tenuto.hooks.setup import compile_bytecode, places, plan, write
    from tenuto.workspace.guard import require_person, who_calls

    scope = "user" if of_user else "project"
    if servers is None:
        servers = find_spec("mcp") is not None
    plans = plan(host, scope, places(_root()), servers, taking_out)
    words = f"tenuto setup {host}{' --undo' if taking_out else ''}{'' if of_user else ' --project'}"
    changing = any(one.change != "none" for one in plans)
    asked = changing and not dry_run and not yes
    if asked:
        if not sys.stdin.isatty() or not sys.stderr.isatty():
            raise Refused(
                "not-confirmed", f"{_counted(plans)} would change", f"look: {words} --dry-run; then: {words} --yes"
            )
        show(_diffs(plans))
    written = changing and not dry_run and (yes or click.confirm("change this?", err=True))
    if written:
        require_person(who_calls(), "change hook settings", words)
        write(plans)
        if not taking_out:
            compile_bytecode()
    data = {
        "host": host,
        "scope": scope,
        "written": written,
        "files": [{"path": one.file.path, "change": one.change, "diff": "\n".join(one.diff())} for one in plans],
    }
    last = (
        []
        if taking_out
        else [*_AFTERWARDS[host], *(_by_hand() if (host, scope, servers) == ("claude", "user", True) else [])]
    )
    return Answer(data, _lines(plans, written, shown=asked, last=last))


def _by_hand() -> list[str]:
    """Claude Code keeps a user's servers in a file that it rewrites all the time: it is asked to do that itself."""
    from tenuto.hooks.setup import find_launch

    return [f"for the MCP server: claude mcp add --scope user tenuto -- {find_launch().python} -I -m tenuto mcp"]


def _root() -> str:
    from tenuto.workspace.locate import locate

    return locate(".")[0]


def _counted(plans: list[Plan]) -> str:
    return ", ".join(one.file.path for one in plans if one.change != "none")


def _diffs(plans: list[Plan]) -> Iterator[Part]:
    for one in plans:
        yield from one.diff()


def _lines(plans: list[Plan], written: bool, shown: bool, last: list[str]) -> Iterator[Part]:
    if not shown:
        yield from _diffs(plans)
    for one in plans:
        done = _DONE[one.change] if written or one.change == "none" else f"not {_DONE[one.change]}"
        yield f"{done:<12} {one.file.path}"
        if one.file.shared and written and one.change in ("create", "change"):
            yield (
                "             (others get it with the repository; "
                "where Tenuto is not at this place, its hooks do nothing)"
            )
    if written:
        yield from last
        if last and shutil.which(plans[0].file.host) is None:
            yield f"({plans[0].file.host} itself is not on the PATH)"


# ---- adopt ------------------------------------------------------------


class Adopter(NamedTuple):
    dialect: str
    where: str
    """A path with `*` for the part that names the run."""


class Row(TypedDict):
    """What became, or would become, of one file."""

    path: str
    dialect: str
    state: Literal["known", "adoptable", "adopted", "refused"]
    run: NotRequired[str]
    code: NotRequired[str]
    message: NotRequired[str]
    hint: NotRequired[str]


ADOPTERS = (
    Adopter("flow", ".ai-workspace/*/flow-state.json"),
    Adopter("staged", ".agents/tmp/state.json"),
    Adopter("feature_state", ".feature-state.json"),
    Adopter("context", "docs/orchestrator/context/tasks/*/manifest.json"),
    Adopter("context", "docs/orchestrator/context/tasks/*/metadata.json"),
)


@click.command(
    "adopt",
    cls=Command,
    examples=[
        ("tenuto adopt", "every state file in this repository that Tenuto can read"),
        ("tenuto adopt .agents/tmp/state.json", "this one"),
        ("tenuto adopt --look", "what would be adopted; no file is changed"),
    ],
)
@click.argument("paths", nargs=-1)
@click.option("--look", is_flag=True, help="Only say what is there.")
def adopt(paths: tuple[str, ...], look: bool) -> Answer:
    """Take over state files that were here before Tenuto.

    Each becomes a run and goes on where it is: nothing in it is lost, and its first bytes are kept by their hash. A
    file that only looks like one, but belongs to another tool, is named, refused and left as it is.
    """
    workspace = open_here()
    found = [_named(workspace, path) for path in paths] if paths else list(_all(workspace))
    rows = [_adopted(workspace, adopter, path, look) for adopter, path in found]
    lines = [f"{row['path']}  {_words(row)}" for row in rows]
    states = {row["state"] for row in rows}
    # 4 says that nothing was written
    status = (TenutoError if "adopted" in states else Refused).exit_code if "refused" in states else 0
    return Answer({"files": rows}, lines or ["there is nothing to adopt"], status)


def _all(workspace: Workspace) -> Iterator[tuple[Adopter, str]]:
    files = workspace.files()
    taken: set[str] = set()
    for adopter in ADOPTERS:
        before, star, after = adopter.where.partition("*")
        for name in files.names(before.rstrip("/")) if star else [""]:
            path = f"{before}{name}{after}"
            run = f"{adopter.dialect}/{name}"
            if files.changed_at(path) is not None and run not in taken:
                taken.add(run)  # where both exist, the manifest wins over the legacy file
                yield adopter, path


def _named(workspace: Workspace, path: str) -> tuple[Adopter, str]:
    import os

    inside = os.path.relpath(os.path.abspath(path), workspace.root)
    for adopter in ADOPTERS:
        before, star, after = adopter.where.partition("*")
        if inside == adopter.where or (star and inside.startswith(before) and inside.endswith(after)):
            return adopter, inside
    known = ", ".join(adopter.where for adopter in ADOPTERS)
    raise BadInput("not-a-state-file", f"{path} is none of the files that can be adopted", f"one of {known}", path=path)


def _adopted(workspace: Workspace, adopter: Adopter, path: str, look: bool) -> Row:
    dialect = adopter.dialect
    known = _known(workspace, path)
    if known:
        return {"path": path, "dialect": dialect, "state": "known", "run": known}
    try:
        body = workspace.files().read(path)
        if body is None:
            raise NotFound("no-such-file", f"there is no {path}", path=path)
        with workspace.turn() as turn:
            run = dialect_named(dialect).adopt(turn, path, body)
            if look:
                raise _Looked(run)
    except _Looked as seen:
        return {"path": path, "dialect": dialect, "state": "adoptable", "run": seen.run}
    except TenutoError as error:
        return {
            "path": path,
            "dialect": dialect,
            "state": "refused",
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
        }
    return {"path": path, "dialect": dialect, "state": "adopted", "run": run}


class _Looked(Exception):
    """Not an error: it takes the turn back."""

    def __init__(self, run: str) -> None:
        self.run = run


def _known(workspace: Workspace, path: str) -> str:
    """The run that shows itself in this file already; empty where none does."""
    with workspace.journal.read() as reader:
        key = file_key(workspace.tree, path)
        renders = reader.renders(key, 1)
        if renders:
            return renders[0][2]
        if path.startswith("docs/orchestrator/"):
            return path.split("/")[-2] if reader.version(path.split("/")[-2]) else ""
    return ""


def _words(row: Row) -> str:
    match row["state"]:
        case "refused":
            return f"refused [{row['code']}]: {row['message']}"
        case "known":
            return f"is run {row['run']} already"
        case "adoptable":
            return f"can be adopted as run {row['run']}"
    return f"is run {row['run']} now"
