"""`tenuto context`: the context manager's commands, from arguments or standard input.

    tenuto context 'INIT task: Dark mode'              one command
    tenuto context INIT task: Dark mode                the same, words unquoted
    tenuto context -                                   commands on standard input, one per line
    tenuto context 'STORE phase: spec' --content-file spec.md
    tenuto context --json LIST

Prints the seed's blocks; an error prints STATUS: error and its text, and the exit status is 1. After an error
the commands that follow are not run. Warnings go to standard error.
"""

from __future__ import annotations

import posix
import sys

from tenuto.dialects.context.answers import failed, perform, plain, printed
from tenuto.dialects.context.language import COMMANDS, parse, split
from tenuto.entrypoints.opening import open_here
from tenuto.errors import SchemaSkew, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tenuto.workspace.turn import Workspace

FAILED = 1
_HELP = (__doc__ or "").partition("\n\n")[2].rpartition("\n\n")[0]


def main(words: list[str]) -> int:
    words, as_json, content_file = _options(words)
    if words in (["--help"], ["-h"], []):
        sys.stdout.write(f"{_HELP}\n\n" + "".join(f"    {usage}\n" for _, _, usage in COMMANDS.values()))
        return 0 if words else 2
    workspace = open_here(_who())
    status = 0
    try:
        for command, file in _commands(words, content_file, workspace):
            status = _answer(workspace, command, file, as_json)
            if status and words == ["-"]:
                sys.stderr.write("note: commands are run up to the first error; what follows it was not run\n")
            if status:
                break
    except TenutoError as error:
        status = _say_error(error, as_json)
    for warning in workspace.warnings:
        sys.stderr.write(f"warning: {_inert(warning)}\n")
    return status


def _who() -> str:
    """Decisions are recorded with a name."""
    name = posix.environ.get(b"USER") or posix.environ.get(b"LOGNAME") or b"user"
    return name.decode("utf-8", "replace")


def _answer(workspace: Workspace, command: str, content_file: str, as_json: bool) -> int:
    try:
        record = perform(workspace.context, parse(command), content_file)
    except TenutoError as error:
        return _say_error(error, as_json)
    if as_json:
        from tenuto.entrypoints.envelope import success

        sys.stdout.write(success(plain(record)) + "\n")
    else:
        sys.stdout.write(_inert(printed(record)) + "\n")
    return 0


def _say_error(error: TenutoError, as_json: bool) -> int:
    if isinstance(error, SchemaSkew):
        raise error
    if as_json:
        from tenuto.entrypoints.envelope import failure

        sys.stdout.write(failure(error) + "\n")
    else:
        sys.stdout.write(_inert(failed(error.message)) + "\n")
    return FAILED


def _inert(text: str) -> str:
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from tenuto.entrypoints.inert import inert

    return inert(text, keep="\n\t")


# ---- arguments -------------------------------------------------------------------------------------


def _options(words: list[str]) -> tuple[list[str], bool, str]:
    """Options stand before or after the command, never inside it: a content may well hold `--json`."""
    rest, as_json, file = list(words), False, ""
    for end in (0, -1):
        while rest:
            if rest[end] == "--json":
                as_json = True
                rest.pop(end)
            elif end == 0 and rest[0] == "--content-file" and len(rest) > 1:
                file = rest[1]
                rest = rest[2:]
            elif end == -1 and len(rest) > 1 and rest[-2] == "--content-file":
                file = rest[-1]
                rest = rest[:-2]
            elif rest[end].startswith("--content-file="):
                file = rest.pop(end).partition("=")[2]
            else:
                break
    if rest[:1] == ["--"]:
        rest = rest[1:]
    return rest, as_json, file


def _commands(words: list[str], content_file: str, workspace: Any) -> Iterator[tuple[str, str]]:
    """(command, content file) one after the other; from standard input as they come."""
    if words == ["-"]:
        from tenuto.entrypoints.intake import read_commands

        yield from read_commands(sys.stdin.buffer, workspace.state)
        return
    texts = words if len(words) > 1 and all(_is_command(word) for word in words) else [" ".join(words)]
    commands = [command for text in texts for command in split(text)]
    if content_file == "-":
        from tenuto.entrypoints.intake import spooled

        with spooled(sys.stdin.buffer, workspace.state) as file:
            for command in commands or [""]:
                yield command, file
        return
    for command in commands or [""]:
        yield command, content_file


def _is_command(word: str) -> bool:
    """A whole command in one argument, beside others."""
    name = word.split(None, 1)[0].upper() if word.strip() else ""
    return name in COMMANDS and (" " in word.strip() or name in ("LIST", "SUMMARY", "HISTORY", "METRICS"))
