"""`tenuto next` and `tenuto report`: another orchestrator dispatches, Tenuto keeps the rules and the books.

`tenuto mcp`
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenuto.core.status import VERDICTS
from tenuto.entrypoints.cli.frame import (
    Answer,
    Command,
    RunName,
    complete_attempt,
    open_existing,
    open_here,
    run_argument,
)
from tenuto.entrypoints.cli.look import ended
from tenuto.entrypoints.cli.run import settings_for
from tenuto.entrypoints.cli.terminal import Heading, Part
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.show.runs import chosen
from tenuto.show.views import run_view

if TYPE_CHECKING:
    from tenuto.engine.guided import Report, Work


@click.command(
    "next",
    cls=Command,
    examples=[
        ("tenuto run 'Add dark mode' --start-only && tenuto next --json", "begin a run, and ask what is to be done"),
        ("tenuto next dark-mode", "the same for people: each prompt in full"),
        (
            "tenuto report dark-mode ATTEMPT --reply reply.md && tenuto next --json",
            "hand in what came of it, and ask again",
        ),
    ],
)
@run_argument
@click.option(
    "--again",
    multiple=True,
    metavar="ATTEMPT",
    shell_complete=complete_attempt,
    help="Its agent is gone, though nobody said so: hand it out anew.",
)
def next_(run: str | None, again: tuple[str, ...]) -> Answer:
    """What is to be done now, with the full prompt, the paths and the environment of each attempt.

    Engine actions (pruning memory, reading the plan, gates) are done on the way. Asking again hands out the same
    attempts again, until they are reported; one that an agent is known to be at work on says since when, and has no
    prompt. A run that waits for a person answers with 5.
    """
    from tenuto.engine.guided import hand_out

    workspace = open_existing()
    name = chosen(workspace, run)
    record, works = hand_out(workspace, name, settings_for(workspace, name), again)
    data = {"run": name, "status": run_view(record)["status"], "work": works}
    if not works:
        rest = ended(record)
        return Answer(data, rest.parts, rest.status)
    return Answer(data, _shown(name, works))


def _shown(run: str, works: list[Work]) -> Iterator[Part]:
    for work in works:
        item = f" on {work['item']}" if work["item"] else ""
        yield Heading(f"{work['attempt']}: {work['role']}{item}, in {work['workdir']}")
        yield from (f"  {line}" for line in work["prompt"].splitlines())
        yield f"  when it is done: tenuto report {run} {work['attempt']} --reply FILE"
        yield ""


@click.command(
    "report",
    cls=Command,
    examples=[
        ("tenuto report dark-mode spec-1-spec-1 --reply reply.md", "the agent's reply, with its last line"),
        ("tenuto report dark-mode spec-1-spec-1 --verdict DONE --summary 'specified'", "in your own words"),
        ("my-agent < prompt | tenuto report dark-mode spec-1-spec-1 --reply -", "from a pipe"),
        ("tenuto report dark-mode spec-1-spec-1 --verdict DONE --usage tokens=5200", "with what it used"),
    ],
)
@click.argument("run", type=RunName())
@click.argument("attempt")
@click.option(
    "--reply",
    default=None,
    metavar="FILE",
    help="The reply, or a JSON object: verdict, summary, usage. - is standard input.",
)
@click.option(
    "--verdict",
    default=None,
    type=click.Choice([*VERDICTS, "QUESTION"]),
    help="Instead of a reply.",
)
@click.option("--summary", default="", help="With --verdict: one sentence.")
@click.option("--usage", multiple=True, metavar="UNIT=N", help="tokens or micro_usd that the attempt used.")
def report(
    run: str, attempt: str, reply: str | None, verdict: str | None, summary: str, usage: tuple[str, ...]
) -> Answer:
    """Take in what came of an attempt that was handed out. DONE is checked as ever: outputs, boundaries, checks."""
    from tenuto.engine.guided import accept

    if (reply is None) == (verdict is None):
        raise BadInput("bad-usage", "give either --reply FILE or --verdict WORD", "tenuto report --help")
    workspace = open_existing()
    handed_in = _read(reply) if reply is not None else _in_words(str(verdict), summary)
    if usage:
        handed_in["usage"] = {**handed_in.get("usage", {}), **_usage(usage)}
    result, words, receipt = accept(workspace, run, attempt, handed_in, settings_for(workspace, run))
    data = {"run": run, "attempt": attempt, "verdict": result, "summary": words, "receipt": receipt}
    return Answer(data, [f"{attempt}: {result}: {words}".rstrip(": "), f"  try: tenuto next {run}"])


def _read(path: str) -> Report:
    from tenuto.engine.guided import read_report

    if path == "-":
        return read_report(sys.stdin.read())
    try:
        return read_report(Path(path).read_text("utf-8", "replace"))
    except OSError as error:
        raise NotFound("no-reply", f"{path}: {error.strerror}", "give a file that holds the reply") from None


def _in_words(verdict: str, summary: str) -> Report:
    return {"verdict": verdict, "summary": summary, "reply": f"{verdict}: {summary}\n"}


def _usage(given: tuple[str, ...]) -> dict[str, int]:
    usage = {}
    for word in given:
        unit, _, amount = word.partition("=")
        if unit not in ("tokens", "micro_usd") or not amount.isdecimal():
            raise BadInput("bad-usage", f"'{word}' is no amount", "--usage tokens=5200, --usage micro_usd=41000")
        usage[unit] = int(amount)
    return usage


# ---- mcp ------------------------------------------------------------


@click.command(
    "mcp",
    cls=Command,
    examples=[
        ("claude mcp add tenuto -- tenuto mcp", "let Claude Code use it, in this project"),
        ("tenuto -C ~/project mcp", "for another repository than the current folder's"),
        ("tenuto mcp --approve on", "from now on a model may pass on what you decide at a gate; serves nothing"),
    ],
)
@click.option(
    "--approve",
    type=click.Choice(["on", "off"]),
    help="Serve nothing; switch for this repository whether `approve` is among the tools.",
)
def mcp_(approve: str | None) -> Answer:
    """Serve the runs of this repository over the Model Context Protocol, on standard input and output.

    For programs: they start it themselves and speak JSON-RPC with it until they close its input. It needs the extra
    `mcp`.

    Gates are opened by persons. `--approve on` lets a model pass on what a person told it to decide; only a person can
    switch that.
    """
    if approve is not None:
        return _switch(approve == "on")
    if find_spec("mcp") is None:
        raise Refused(
            "extra-missing",
            "the MCP server needs the extra 'mcp', which is not installed",
            "pip install '.[mcp]' in a checkout of Tenuto",
        )
    from tenuto.entrypoints.mcp.server import serve

    serve()
    return Answer(None)


def _switch(on: bool) -> Answer:
    from tenuto.engine.gates import let_pass_on

    let_pass_on(open_here(), "mcp", on)
    line = (
        "a model may pass on what you decide at a gate; servers that run already list `approve` when they start again"
    )
    return Answer({"approve": on}, [line if on else "over MCP no gate is opened any more"])
