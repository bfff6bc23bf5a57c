"""`tenuto logs`"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tenuto.entrypoints.cli.amounts import number, span
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import RunName, load, open_existing
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, say
from tenuto.entrypoints.inert import inert
from tenuto.errors import NotFound

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace

_LOOK_AGAIN = 0.2
_STREAMS = ("reply", "stdout", "stderr", "prompt", "checks")


@click.command(
    "logs",
    cls=Command,
    examples=[
        ("tenuto logs dark-mode", "every attempt: its verdict, how long it took, how much it wrote"),
        ("tenuto logs dark-mode design-1-designer-1", "what that one replied"),
        ("tenuto logs dark-mode design-1-designer-1 --of prompt", "what it was told"),
        ("tenuto logs dark-mode --follow", "what all agents write, as they write it"),
    ],
)
@click.argument("run", type=RunName())
@click.argument("attempt", required=False)
@click.option("--of", "stream", type=click.Choice(_STREAMS), default="reply", help="Its reply; all it printed; its errors, its prompt, the checks.")
@click.option("--follow", is_flag=True, help="Go on until it has ended.")
def command(run: str, attempt: str | None, stream: str, follow: bool) -> Answer:
    """What agents were told and what they said."""
    workspace = open_existing()
    found = load(workspace, run)
    if follow:
        return _follow(workspace, found, attempt, stream)
    if attempt is None:
        return Answer({"run": found["id"], "attempts": found["attempts"]}, _listed(workspace, found))
    name = _named(found, attempt)
    files = _files(workspace, found["id"], name, stream)
    texts = [(path, _text(path)) for path in files]
    data = {"attempt": name, "stream": stream, "starts": [{"file": path, "text": text} for path, text in texts]}
    return Answer(data, _printed(found, name, texts, stream))


def _named(run: Run, wanted: str) -> str:
    """The attempt of this name, or the only one whose name begins so."""
    if wanted in run["attempts"]:
        return wanted
    near = [name for name in run["attempts"] if name.startswith(wanted)]
    if len(near) == 1:
        return near[0]
    hint = f"did you mean: {', '.join(near[:8])}" if near else f"tenuto logs {run['id']}"
    raise NotFound("no-such-attempt", f"run {run['id']} has no attempt {wanted!r}", hint, attempt=wanted)


def _files(workspace: Workspace, run: str, attempt: str, stream: str) -> list[str]:
    """One per start, the first first."""
    folder = f"{workspace.state}/attempts/{run}/{attempt}"
    starts = sorted((entry for entry in os.listdir(folder) if entry.isdigit()), key=int) if os.path.isdir(folder) else []
    found: list[str] = []
    for start in starts:
        names = sorted(os.listdir(f"{folder}/{start}"))
        if stream == "checks":
            wanted = [name for name in names if name.startswith("check-")]
        elif stream == "reply":  # of a program that prints events, its last words lie beside them
            wanted = ["reply" if "reply" in names else "stdout"]
        else:
            wanted = [stream]
        found += [f"{folder}/{start}/{name}" for name in wanted if name in names]
    return found


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _listed(workspace: Workspace, run: Run) -> Iterator[Part]:
    from tenuto.core.times import between

    rows = []
    for name, attempt in run["attempts"].items():
        size = sum(os.path.getsize(path) for path in _files(workspace, run["id"], name, "stdout"))
        took = span(between(attempt["started_at"], attempt["ended_at"])) if attempt["ended_at"] else "-"
        rows.append((name, attempt["status"], attempt["verdict"] or "-", took, number(size), attempt["summary"]))
    yield Table(("ATTEMPT", "STATUS", "VERDICT", "TOOK", "BYTES", "SUMMARY"), rows) if rows else f"{run['id']} has started nothing yet"


def _printed(run: Run, name: str, texts: list[tuple[str, str]], stream: str) -> Iterator[Part]:
    attempt = run["attempts"][name]
    if not texts:
        yield f"{name}: nothing of its {stream} is kept on this machine"
    for position, (path, text) in enumerate(texts, 1):
        if stream == "checks":
            yield Heading(os.path.basename(path))
        elif len(texts) > 1:
            yield Heading(f"start {position} of {len(texts)}")
        yield from _readable(attempt["agent"], text) if stream == "reply" and path.endswith("/stdout") else text.splitlines()
    problem = attempt["receipt"].get("problem")
    if problem and stream == "reply":
        first, *rest = problem.splitlines()
        yield Heading(f"what the receipt says: {first}")
        yield from rest


def _readable(agent: str, text: str) -> Iterator[str]:
    """Events of a program as what they say; `--of stdout` shows them as they came."""
    from tenuto.agents.aloud import aloud

    for line in text.splitlines():
        yield from aloud(agent, line)


# ---- following -------------------------------------------------------------------------------------


def _follow(workspace: Workspace, run: Run, attempt: str | None, stream: str) -> Answer:
    only = _named(run, attempt) if attempt else None

    def flying() -> list[str]:
        now = workspace.load(run["id"])
        return [name for name in now["flying"] if only in (None, name)]

    def parts(name: str) -> list[tuple[str, str]]:
        return [(path, _text(path)) for path in _files(workspace, run["id"], name, "stdout" if stream == "reply" else stream)]

    if only is None and not flying():
        say("nothing is under way")
    for name, line in follow(flying, parts, [only] if only else [], lambda: time.sleep(_LOOK_AGAIN)):
        for part in _readable(workspace.load(run["id"])["attempts"][name]["agent"], line) if stream == "reply" else [line]:
            sys.stdout.write(inert(part if only else f"{name}: {part}") + "\n")
        sys.stdout.flush()
    return Answer({"run": run["id"], "attempt": only})


def follow(
    flying: Callable[[], list[str]], parts: Callable[[str], list[tuple[str, Any]]], begin: list[str], rest: Callable[[], None]
) -> Iterator[tuple[str, str]]:
    """Lines as they appear, of everything under way; what ended is read once more before it is let go."""
    told: dict[str, int] = {}
    watched = list(begin)
    while True:
        under_way = flying()
        watched += [name for name in under_way if name not in watched]
        for name in watched:
            for path, text in parts(name):
                seen = told.get(path, 0)
                # A line that is not finished yet waits, unless nobody is left to finish it.
                end = len(text) if name not in under_way else text.rfind("\n") + 1
                if end > seen:
                    yield from ((name, line) for line in text[seen:end].splitlines())
                    told[path] = end
        if not under_way:
            return
        watched = [name for name in watched if name in under_way]
        rest()
