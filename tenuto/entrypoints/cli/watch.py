"""`tenuto watch`; and a run while a command drives it: a picture that changes on a terminal, lines anywhere else.

It is talk, so it goes to standard error.

    with progress(workspace, run) as view:
        drive_until_rest(..., watcher=view.on_turn, ask=view.asking(ask))

`tenuto logs`
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from tenuto.encoding import escape_terminal
from tenuto.entrypoints.cli.frame import (
    Answer,
    Command,
    complete_attempt,
    load,
    open_existing,
    open_here,
    run_argument,
)
from tenuto.entrypoints.cli.look import ended
from tenuto.entrypoints.cli.terminal import COLOURS, Heading, Part, Table, say, when
from tenuto.errors import NotFound
from tenuto.show.attempts import LogFile, LogKind, log_after, log_files
from tenuto.show.inbox import driven_view
from tenuto.show.measures import number, span
from tenuto.show.picture import MARKS, PLAIN_MARKS, Line, picture
from tenuto.show.runs import ProgressLines, attempts_of, chosen, pipeline_in
from tenuto.show.views import AttemptView, RunView, run_view

if TYPE_CHECKING:
    from tenuto.workspace.workspace import Workspace


if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import Run
    from tenuto.engine.judge import Whose
    from tenuto.engine.rest import Decided
    from tenuto.workspace.workspace import Workspace

    Ask = Callable[[Run], Decided | None] | None

_LOOK_AGAIN = 0.25
_PER_SECOND = 5


@click.command(
    "watch",
    cls=Command,
    examples=[
        ("tenuto watch", "the current run, live: steps, waves, attempts, retries, cost, what waits for you"),
        ("tenuto watch dark-mode", "another one"),
        ("tenuto watch dark-mode > run.log 2>&1", "not a terminal: one line for each thing that happens"),
    ],
)
@run_argument
def watch(run: str | None) -> Answer:
    """A run while it goes on, until it ends or waits for a person."""
    workspace = open_existing()
    name = chosen(workspace, run)
    record = workspace.load(name)
    if sys.stderr.isatty():
        with Moving(name).shown():
            record = until_rest(workspace, name, None, _pause)
    else:
        record = until_rest(workspace, name, ProgressLines(workspace, name), _pause)
    view = run_view(record)
    driven = driven_view(workspace, name, view["status"], view["driver"])
    if view["phase"] == "under_way" and driven["command"]:
        say(f"{driven['words']}; try: {driven['command']}")
    return ended(record)


def _pause() -> None:
    time.sleep(_LOOK_AGAIN)


def until_rest(workspace: Workspace, name: str, lines: ProgressLines | None, rest: Callable[[], None]) -> Run:
    while True:
        is_driven = is_followed(workspace, name)  # before the look: what it did last is seen
        record = workspace.load(name)
        for line in lines.lines() if lines else ():
            say(line)
        view = run_view(record)
        goes_on = view["phase"] == "under_way" or view["in_flight"] or view["status"] == "parked"
        if not is_driven or not goes_on:
            return record
        rest()


def is_followed(workspace: Workspace, name: str) -> bool:
    """Somebody moves it: an engine, one that waits for its time, a person by hand, or another orchestrator."""
    view = run_view(workspace.load(name))
    return driven_view(workspace, name, view["status"], view["driver"])["by"] not in ("nobody", "parked")


# ---- while a command drives


@contextmanager
def progress(workspace: Workspace, run: str) -> Iterator[Plain | Moving]:
    if not sys.stderr.isatty():
        yield Plain(workspace, run)
        return
    view = Moving(run)
    with view.shown():
        yield view


class Plain:
    """A line for everything that happened since the last turn of the engine."""

    def __init__(self, workspace: Workspace, run: str) -> None:
        self._lines = ProgressLines.from_now_on(workspace, run)

    def on_turn(self, run: Run, fresh: list[str]) -> None:
        for line in self._lines.lines():
            say(line)

    def asking(self, ask: Ask) -> Ask:
        return ask

    def wondering(self, whose: Whose | None) -> Whose | None:
        return whose

    def waiting(self, run: Run) -> None:
        waiting = run_view(run)["waiting"]
        until = waiting["until"] if waiting else ""
        say(f"{self._lines.name} is parked, and goes on at {when(until)}; this waits for it")


class Moving:
    """The picture, drawn again by a thread that looks at the journal through a connection of its own."""

    def __init__(self, run: str) -> None:
        self.name = run
        self.workspace = open_here()
        self._console = _console()
        self._plain = (sys.stderr.encoding or "").lower().replace("-", "") != "utf8"
        self._version = -1
        self._run: Run | None = None
        self._pipeline: Pipeline | None = None
        self._live: Live | None = None

    def on_turn(self, run: Run, fresh: list[str]) -> None:
        pass

    def waiting(self, run: Run) -> None:
        """The picture says until when."""

    def asking(self, ask: Ask) -> Ask:
        """A question is asked on a still screen."""
        if ask is None:
            return None

        def quietly(run: Run) -> Decided | None:
            with self._still():
                return ask(run)

        return quietly

    def wondering(self, whose: Whose | None) -> Whose | None:
        """The same for whose doing a change was."""
        if whose is None:
            return None

        def quietly(attempt: str, paths: list[str]) -> bool:
            with self._still():
                return whose(attempt, paths)

        return quietly

    @contextmanager
    def _still(self) -> Iterator[None]:
        if self._live is None:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:  # a new picture below what was said: the old one would be drawn over it
            self._live = self._moving()
            self._live.start()

    @contextmanager
    def shown(self) -> Iterator[None]:
        self._live = self._moving()
        self._live.start()
        try:
            yield
        finally:
            self._live.stop()

    def _moving(self) -> Live:
        from rich.live import Live

        return Live(
            console=self._console,
            get_renderable=self.render,
            refresh_per_second=_PER_SECOND,
            vertical_overflow="ellipsis",
        )

    def render(self) -> Text:
        from rich.text import Text

        with suppress(Exception):  # a look that fails must not stop the run; the next one comes in a moment
            self._look()
        lines = picture(self._run, self._pipeline, self.workspace.clock()) if self._run else ()
        return Text("\n").join([drawn(line, self._console.width, self._plain) for line in lines])

    def _look(self) -> None:
        with self.workspace.journal.read() as reader:
            version = reader.version(self.name)
            if version != self._version:
                self._run, self._version = reader.load(self.name), version
                self._pipeline = pipeline_in(reader, self._run) if self._run else None


def _console() -> Console:
    from rich.console import Console

    bare = "NO_COLOR" in os.environ
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False, color_system=None if bare else "auto")


def drawn(line: Line, width: int, plain: bool = False) -> Text:
    from rich.text import Text

    mark = MARKS.get(line.status, "")
    mark = PLAIN_MARKS.get(mark, mark) if plain else mark
    colour = COLOURS.get(line.status, "")
    style = "bold" if not line.depth else colour if line.status in ("running", "pending") else ""
    text = Text("  " * line.depth, no_wrap=True)
    text.append(f"{mark} " if mark else "", style=colour)
    text.append(escape_terminal(line.text), style=style)
    if line.aside:
        text.append(f"  {escape_terminal(line.aside)}", style="dim")
    text.truncate(width, overflow="ellipsis")
    return text


def whose(workspace: Workspace) -> Whose | None:
    """Asks a person at the terminal whether a change was their own; None where none is there."""
    from tenuto.entrypoints.cli.values import at_terminal
    from tenuto.workspace.guard import Person

    if not at_terminal() or not isinstance(workspace.caller, Person):
        return None

    def ask(attempt: str, paths: list[str]) -> bool:
        say("")
        say(f"while {attempt} was at work, this changed, and it may not change it:")
        for path in paths:
            say(f"  {escape_terminal(path)}")
        return click.confirm("Did you change all of it yourself? (it stays, and costs no attempt)", err=True)

    return ask


# ---- logs ------------------------------------------------------------


_LOGS_LOOK_AGAIN = 0.2
_STREAMS: dict[str, LogKind] = {
    "reply": "reply",
    "stdout": "output",
    "stderr": "errors",
    "prompt": "prompt",
    "checks": "checks",
}


@click.command(
    "logs",
    cls=Command,
    examples=[
        ("tenuto logs", "every attempt of the current run: its verdict, how long it took, how much it wrote"),
        ("tenuto logs design-1-designer-1", "what that one of the current run replied"),
        ("tenuto logs dark-mode design-1-designer-1", "what that one replied"),
        ("tenuto logs dark-mode design-1-designer-1 --of prompt", "what it was told"),
        ("tenuto logs dark-mode --follow", "what all agents write, as they write it"),
    ],
)
@run_argument
@click.argument("attempt", required=False, shell_complete=complete_attempt)
@click.option(
    "--of",
    "stream",
    type=click.Choice(list(_STREAMS)),
    default="reply",
    help="Its reply; all it printed; its errors, its prompt, the checks.",
)
@click.option("--follow", is_flag=True, help="Go on until it has ended.")
def logs(run: str | None, attempt: str | None, stream: str, follow: bool) -> Answer:
    """What agents were told and what they said. One word alone is a run, or an attempt of the current run."""
    workspace = open_existing()
    record, attempt = _meant(workspace, run, attempt)
    view = run_view(record)
    if follow:
        return _follow(workspace, record, attempt, stream)
    if attempt is None:
        return Answer({"run": view["run"], "attempts": attempts_of(record)}, _listed(workspace, record, view))
    one = _named(view, attempt)
    texts = [(file, _text(file["path"])) for file in log_files(workspace, record, one["attempt"], _STREAMS[stream])]
    starts = [{"file": file["path"], "text": text} for file, text in texts]
    return Answer({"attempt": one["attempt"], "stream": stream, "starts": starts}, _printed(one, texts, stream))


def _meant(workspace: Workspace, run: str | None, attempt: str | None) -> tuple[Run, str | None]:
    """The run, and the attempt if one was named. A word alone that is no run may be an attempt of the current run."""
    try:
        return load(workspace, run), attempt
    except NotFound:
        if run is None or attempt is not None:
            raise
        try:
            current = load(workspace, None)
        except NotFound:
            current = None
        if current is None or not any(one["attempt"].startswith(run) for one in run_view(current)["attempts"]):
            raise
        return current, run


def _named(view: RunView, wanted: str) -> AttemptView:
    """The attempt of this name, or the only one whose name begins so."""
    exact = [one for one in view["attempts"] if one["attempt"] == wanted]
    near = exact or [one for one in view["attempts"] if one["attempt"].startswith(wanted)]
    if len(near) == 1:
        return near[0]
    names = ", ".join(one["attempt"] for one in near[:8])
    hint = f"did you mean: {names}" if near else f"tenuto logs {view['run']}"
    raise NotFound("no-such-attempt", f"run {view['run']} has no attempt {wanted!r}", hint, attempt=wanted)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _listed(workspace: Workspace, record: Run, view: RunView) -> Iterator[Part]:
    from tenuto.core.times import between

    rows = []
    for one in view["attempts"]:
        size = sum(file["size"] for file in log_files(workspace, record, one["attempt"], "output"))
        took = span(between(one["started_at"], one["ended_at"])) if one["ended_at"] else "-"
        rows.append((one["attempt"], one["status"], one["verdict"] or "-", took, number(size), one["summary"]))
    yield (
        Table(("ATTEMPT", "STATUS", "VERDICT", "TOOK", "BYTES", "SUMMARY"), rows)
        if rows
        else f"{view['run']} has started nothing yet"
    )


def _printed(attempt: AttemptView, texts: list[tuple[LogFile, str]], stream: str) -> Iterator[Part]:
    if not texts:
        yield f"{attempt['attempt']}: nothing of its {stream} is kept on this machine"
    for position, (file, text) in enumerate(texts, 1):
        if stream == "checks":
            yield Heading(file["name"])
        elif len(texts) > 1:
            yield Heading(f"start {position} of {len(texts)}")
        yield from _readable(attempt["agent"], text) if file["is_narrated"] else text.splitlines()
    if attempt["found"] and attempt["found"]["problem"] and stream == "reply":
        first, *rest = attempt["found"]["problem"].splitlines()
        yield Heading(f"what the receipt says: {first}")
        yield from rest


def _readable(agent: str, text: str) -> Iterator[str]:
    """Events of a program as what they say; `--of stdout` shows them as they came."""
    from tenuto.agents.roster import narrate

    for line in text.splitlines():
        yield from narrate(agent, line)


# ---- following -------------------------------------------------------------------------------------


def _follow(workspace: Workspace, record: Run, attempt: str | None, stream: str) -> Answer:
    view = run_view(record)
    only = _named(view, attempt)["attempt"] if attempt else None
    run, kind = view["run"], "output" if stream == "reply" else _STREAMS[stream]

    def in_flight() -> list[str]:
        now = run_view(workspace.load(run))
        return [name for name in now["in_flight"] if only in (None, name)]

    def files(name: str) -> list[str]:
        return [file["path"] for file in log_files(workspace, record, name, kind)]

    if only is None and not in_flight():
        say("nothing is under way")
    for name, line in follow(in_flight, files, [only] if only else [], lambda: time.sleep(_LOGS_LOOK_AGAIN)):
        agent = next(one["agent"] for one in run_view(workspace.load(run))["attempts"] if one["attempt"] == name)
        for part in _readable(agent, line) if stream == "reply" else [line]:
            sys.stdout.write(escape_terminal(part if only else f"{name}: {part}") + "\n")
        sys.stdout.flush()
    return Answer({"run": run, "attempt": only})


def follow(
    in_flight: Callable[[], list[str]],
    files: Callable[[str], list[str]],
    begin: list[str],
    rest: Callable[[], None],
) -> Iterator[tuple[str, str]]:
    """Lines as they appear, of everything under way; what ended is read once more before it is let go. Of a file, only
    what came since the last look is read."""
    read: dict[str, int] = {}  # by file, how many bytes
    watched = list(begin)
    while True:
        under_way = in_flight()
        watched += [name for name in under_way if name not in watched]
        for name in watched:
            for path in files(name):
                # A line that is not finished yet waits, as long as its agent is at work.
                while (part := log_after(path, read.get(path, 0), unfinished=name not in under_way))["text"]:
                    yield from ((name, line) for line in part["text"].splitlines())
                    read[path] = part["last"]
        if not under_way:
            return
        watched = [name for name in watched if name in under_way]
        rest()
