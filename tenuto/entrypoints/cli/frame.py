"""What all commands have in common: an Answer, `--json`, help that leads with examples.

A command is a function that returns an Answer; this module prints it. Data goes to standard
output, talk (the workspace's warnings) to standard error. The names of runs complete in a shell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from tenuto.entrypoints import speak
from tenuto.entrypoints.cli.terminal import Part, say, show
from tenuto.entrypoints.speak import success
from tenuto.errors import BadInput, NotFound, TenutoError
from tenuto.show import runs

if TYPE_CHECKING:
    from tenuto.core.records.run import Run
    from tenuto.show.views import RunView
    from tenuto.workspace.workspace import Workspace

Function = TypeVar("Function", bound=Callable[..., object])

JSON = "tenuto.json"
_opened: list[Workspace] = []


class Answer(NamedTuple):
    data: object
    """What `--json` shows."""
    parts: Iterable[Part] = ()
    """The same for people."""
    status: int = 0
    raw: bytes | None = None
    """A file's own bytes instead of parts."""


class Command(click.Command):
    """`examples`: (command line, what it does), shown before anything else in its help."""

    def __init__(self, *args: Any, examples: Iterable[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = list(examples)
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Answer with one JSON object."))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: click.Context) -> int:
        as_json = ctx.meta[JSON] = ctx.params.pop("as_json", False) or ctx.meta.get(JSON, False)
        try:
            answer: Answer = super().invoke(ctx)
        finally:
            say_warnings()
        if as_json:
            sys.stdout.write(success(answer.data) + "\n")
        elif answer.raw is not None:
            _write_raw(answer.raw)
        else:
            show(answer.parts)
        return answer.status


class Group(click.Group):
    """A command with commands of its own: `tenuto pipeline check`."""

    def __init__(self, *args: Any, examples: Iterable[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = list(examples)
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Answer with one JSON object."))

    def invoke(self, ctx: click.Context) -> object:
        ctx.meta[JSON] = ctx.params.pop("as_json", False) or ctx.meta.get(JSON, False)
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one uses them."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            import difflib

            near = difflib.get_close_matches(args[0], self.commands, n=1)
            hint = f"tenuto {self.name} {near[0]}" if near else f"tenuto {self.name} --help"
            raise BadInput("unknown-command", f"tenuto {self.name} has no command {args[0]!r}", hint)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)
        super().format_help(ctx, formatter)


def write_examples(examples: list[tuple[str, str]], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            formatter.write_dl(examples)
        formatter.write_paragraph()


def open_here() -> Workspace:
    """The repository around the current folder. It stays open until the process ends: see launch."""
    workspace = speak.open_here()
    _opened.append(workspace)
    return workspace


def keep_open(workspace: Workspace) -> None:
    """Another work tree of the same repository: it stays open as well, and says its warnings."""
    _opened.append(workspace)


def home(workspace: Workspace, run: str, known: Run | None = None) -> Workspace:
    """Where the run works: the tree that was made for it, or here."""
    from tenuto.engine.gates import at_home

    with suppress(NotFound):  # it is known by another name, or only lies in a folder so far
        there = at_home(workspace, known or workspace.load(run))
        if there is not workspace:
            keep_open(there)
            say(f"in its own tree: {there.root}")
        return there
    return workspace


def say_warnings() -> None:
    for workspace in _opened:
        for warning in workspace.warnings:
            say(f"note: {warning}")
        workspace.warnings.clear()


def release() -> None:
    """Close what was opened. For callers inside one process (tests); the program itself just ends."""
    while _opened:
        _opened.pop().journal.close()


def _write_raw(body: bytes) -> None:
    from tenuto.encoding import escape_terminal

    if sys.stdout.isatty():
        sys.stdout.write(escape_terminal(body.decode("utf-8", "backslashreplace"), keep="\n\t"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(body)


# ---- runs as words on the command line


if TYPE_CHECKING:
    Word = click.ParamType[str]
else:
    Word = click.ParamType  # older releases of click cannot be subscripted


class RunName(Word):
    name = "run"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """No run has a name that is no text: the journal need not be asked."""
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotFound("no-such-run", f"there is no run {value!r}", "tenuto list") from None
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known = runs.summaries(open_here())
        return [CompletionItem(one["id"], help=one["status"]) for one in known if one["id"].startswith(incomplete)]


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(words: Callable[[click.Context], Iterable[tuple[str, str]]]) -> Complete:
    """`shell_complete` of a parameter: (word, what it is) of those that begin as what was typed does."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(word, help=what) for word, what in words(ctx) if word.startswith(incomplete)]
        except TenutoError:  # a shell has no place for an explanation: the command itself will give it
            return []

    return complete


def _view(ctx: click.Context) -> RunView:
    from tenuto.show.views import run_view

    return run_view(load(open_here(), ctx.params.get("run")))


def _steps(ctx: click.Context) -> Iterable[tuple[str, str]]:
    return dict.fromkeys((visit["step"], "") for visit in _view(ctx)["visits"])


def _attempts(ctx: click.Context) -> Iterable[tuple[str, str]]:
    return [(one["attempt"], one["status"]) for one in reversed(_view(ctx)["attempts"])]


def _artifacts(ctx: click.Context) -> Iterable[tuple[str, str]]:
    return [(one["name"], one["path"]) for one in _view(ctx)["artifacts"]]


def _pipelines(ctx: click.Context) -> Iterable[tuple[str, str]]:
    from tenuto.knowledge import definitions

    return [(one["name"], one["description"]) for one in definitions.available(Path(open_here().root))]


def _agents(ctx: click.Context) -> Iterable[tuple[str, str]]:
    from tenuto.agents.roster import INSTALLED, KINDS

    return [(word, "") for word in dict.fromkeys(["auto", *KINDS, *INSTALLED.values()])]


complete_step, complete_attempt, complete_artifact = completing(_steps), completing(_attempts), completing(_artifacts)
complete_pipeline, complete_agent = completing(_pipelines), completing(_agents)


def run_argument(function: Function) -> Function:
    return click.argument("run", required=False, type=RunName())(function)


def open_existing() -> Workspace:
    """A look creates nothing: where there is no journal, that is the answer."""
    workspace = open_here()
    if not runs.has_journal(workspace):
        raise NotFound("no-journal", f"there is no journal for {workspace.root}", "tenuto init")
    return workspace


def load(workspace: Workspace, run: str | None) -> Run:
    """The run that was named, or the current one. What is to be known of it, tenuto.show says."""
    return runs.load(workspace, runs.chosen(workspace, run))
