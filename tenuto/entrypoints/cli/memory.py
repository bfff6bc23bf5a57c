"""`tenuto memory`"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import chosen, open_existing
from tenuto.entrypoints.cli.terminal import Heading, Part
from tenuto.errors import BadInput, NotFound

if TYPE_CHECKING:
    from tenuto.workspace.turn import Workspace

_KINDS = ("decision", "pattern")
_FILES = {"decisions": "docs/orchestrator/memory/decisions.md", "patterns": "docs/orchestrator/memory/patterns.md"}


@click.command(
    "memory",
    cls=Command,
    examples=[
        ("tenuto memory", "what the current run remembers, and what the project does"),
        ("tenuto memory dark-mode", "another run's"),
        ("tenuto memory add decision 'Colours are variables' --rationale 'one place'", "for every later run"),
        ("tenuto memory add pattern 'Settings live in one store'", "the same, for how code is written here"),
    ],
)
@click.argument("words", nargs=-1, metavar="[RUN] | add decision|pattern TEXT")
@click.option("--title", default="", help="With add: its heading; the first line of the text otherwise.")
@click.option("--rationale", default="", help="With add: why.")
def command(words: tuple[str, ...], title: str, rationale: str) -> Answer:
    """What a run remembers, and what the project does; add to the project's."""
    if words[:1] == ("add",):
        return _add(words[1:], title, rationale)
    if len(words) > 1 or title or rationale:
        raise BadInput("bad-usage", f"'{' '.join(words)}' names no run", "tenuto memory [RUN], or: tenuto memory add decision TEXT")
    workspace = open_existing()
    try:
        run: Any = workspace.load(chosen(workspace, words[0] if words else None))
    except NotFound:
        if words:
            raise
        run = None  # no run was named and none is current: the project's memory is still there
    project = {name: _project(workspace, path) for name, path in _FILES.items()}
    data = {"run": run["id"] if run else None, "memory": run["memory"] if run else None, "project": project}
    return Answer(data, _shown(data))


def _add(words: tuple[str, ...], title: str, rationale: str) -> Answer:
    if len(words) != 2 or words[0] not in _KINDS or not words[1].strip():
        raise BadInput("bad-usage", "what is to be remembered, and as what?", "tenuto memory add decision|pattern 'TEXT'")
    workspace = open_existing()
    done = workspace.context.remember(words[0], words[1], title=title, rationale=rationale)
    files = ", ".join(done["files_touched"])
    return Answer(done, [f"{done['data']}{f' in {files}' if files else ''}"])


def _project(workspace: Workspace, path: str) -> str:
    return (workspace.files().read(path) or b"").decode("utf-8", "replace").strip()


def _shown(data: Any) -> Iterator[Part]:
    memory = data["memory"]
    if memory is not None:
        yield Heading(f"{data['run']} remembers")
        for entry in memory["index"]:
            yield f"  {entry['artifact']}  {entry['sections']}  ({entry['who']})"
        for kind in ("decisions", "lessons", "updates"):
            yield f"  {kind}: {len(memory[kind]) or 'none'}"
            for entry in memory[kind]:
                void = f" [invalidated: {entry['invalidated']}]" if entry["invalidated"] else ""
                yield f"    [{entry['who']}, step {entry['step']}] {entry['text']}{void}"
        yield ""
    yield Heading("The project remembers")
    for name, text in data["project"].items():
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]
        yield f"  {name}: {'' if lines else 'none yet'}".rstrip()
        yield from (f"    {line}" for line in lines)
