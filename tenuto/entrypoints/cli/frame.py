"""What all commands have in common: an Answer, `--json`, help that leads with examples.

A command is a function that returns an Answer; this module prints it. Data goes to standard
output, talk (the workspace's warnings) to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tenuto.entrypoints.cli.terminal import Part, say, show
from tenuto.entrypoints.envelope import success

if TYPE_CHECKING:
    from tenuto.workspace.turn import Workspace

JSON = "tenuto.json"
_opened: list[Workspace] = []


class Answer(NamedTuple):
    data: Any
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


def write_examples(examples: list[tuple[str, str]], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            formatter.write_dl(examples)
        formatter.write_paragraph()


def open_here() -> Workspace:
    """The repository around the current folder. It stays open until the process ends: see launch."""
    from tenuto.entrypoints import opening

    workspace = opening.open_here()
    _opened.append(workspace)
    return workspace


def say_warnings() -> None:
    for workspace in _opened:
        for warning in workspace.warnings:
            say(f"note: {warning}")
        workspace.warnings.clear()


def release() -> None:
    """Close what was opened. For callers inside one process (tests); the program itself just ends."""
    while _opened:
        _opened.pop().journal.close()  # type: ignore[attr-defined]


def _write_raw(body: bytes) -> None:
    from tenuto.entrypoints.inert import inert

    if sys.stdout.isatty():
        sys.stdout.write(inert(body.decode("utf-8", "backslashreplace"), keep="\n\t"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
