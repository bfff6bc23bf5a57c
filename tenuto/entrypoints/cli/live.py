"""A run while it goes on: a picture that changes, on a terminal; lines anywhere else. Talk, so on standard error.

    with progress(workspace, run) as view:
        sit(..., watcher=view.heard, ask=view.asking(ask))
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tenuto.entrypoints.cli.frame import open_here
from tenuto.entrypoints.cli.picture import MARKS, PLAIN_MARKS, Line, picture
from tenuto.entrypoints.cli.telling import Telling
from tenuto.entrypoints.cli.terminal import COLOURS, say
from tenuto.entrypoints.inert import inert

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace

    Ask = Callable[[Run], tuple[str, str] | None] | None

_PER_SECOND = 5


@contextmanager
def progress(workspace: Workspace, run: str) -> Iterator[Plain | Moving]:
    if not sys.stderr.isatty():
        yield Plain(workspace, run)
        return
    view = Moving(run)
    with view.shown():
        yield view


class Plain:
    """A line for whatever happened since the last turn of the engine."""

    def __init__(self, workspace: Workspace, run: str) -> None:
        with workspace.journal.read() as reader:
            self._telling = Telling(workspace, run, reader.version(run))

    def heard(self, run: Run, fresh: list[str]) -> None:
        for line in self._telling.lines():
            say(line)

    def asking(self, ask: Ask) -> Ask:
        return ask


class Moving:
    """The picture, drawn again by a thread that looks at the journal through a connection of its own."""

    def __init__(self, run: str) -> None:
        self.name = run
        self.workspace = open_here()
        self._console = _console()
        self._plain = (sys.stderr.encoding or "").lower().replace("-", "") != "utf8"
        self._version = -1
        self._run: Any = None
        self._pipeline: Any = None
        self._live: Any = None

    def heard(self, run: Run, fresh: list[str]) -> None:
        pass

    def asking(self, ask: Ask) -> Ask:
        """A question is asked on a still screen."""
        if ask is None:
            return None

        def quietly(run: Run) -> tuple[str, str] | None:
            self._live.stop()
            try:
                return ask(run)
            finally:
                self._live.start()

        return quietly

    @contextmanager
    def shown(self) -> Iterator[None]:
        from rich.live import Live

        self._live = Live(
            console=self._console, get_renderable=self.render, refresh_per_second=_PER_SECOND, vertical_overflow="ellipsis"
        )
        with self._live:
            yield

    def render(self) -> Text:
        from rich.text import Text

        with suppress(Exception):  # a look that fails must not stop the run; the next one comes in a moment
            self._look()
        lines = picture(self._run, self._pipeline, self.workspace.clock()) if self._run else ()
        return Text("\n").join([drawn(line, self._console.width, self._plain) for line in lines])

    def _look(self) -> None:
        from tenuto.drivers.bound import pipeline_of

        with self.workspace.journal.read() as reader:
            version = reader.version(self.name)
            if version != self._version:
                self._run, self._version = reader.load(self.name), version
                if self._run and self._run["pipeline"]["hash"]:
                    self._pipeline = pipeline_of(reader, self._run)


def _console() -> Console:
    from rich.console import Console

    bare = "NO_COLOR" in os.environ
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False, color_system=None if bare else "auto")


def drawn(line: Line, width: int, plain: bool = False) -> Text:
    from rich.text import Text

    mark = MARKS.get(line.status, "")
    mark = PLAIN_MARKS.get(mark, mark) if plain else mark
    colour = COLOURS.get(line.status, "")
    text = Text("  " * line.depth, no_wrap=True)
    text.append(f"{mark} " if mark else "", style=colour)
    text.append(inert(line.text), style="bold" if not line.depth else colour if line.status in ("running", "pending") else "")
    if line.aside:
        text.append(f"  {inert(line.aside)}", style="dim")
    text.truncate(width, overflow="ellipsis")
    return text
