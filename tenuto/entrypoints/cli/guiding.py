"""`tenuto next` and `tenuto report`: another orchestrator does the dispatching, Tenuto keeps the rules and the books."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenuto.entrypoints.cli.driving import ended
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import RunName, chosen, open_existing, run_argument
from tenuto.entrypoints.cli.terminal import Heading, Part
from tenuto.errors import BadInput, NotFound

if TYPE_CHECKING:
    from tenuto.drivers.guided import Report


@click.command(
    "next",
    cls=Command,
    examples=[
        ("tenuto run 'Add dark mode' --start-only && tenuto next --json", "begin a run, and ask what is to be done"),
        ("tenuto next dark-mode", "the same for people: each prompt in full"),
        ("tenuto report dark-mode ATTEMPT --reply reply.md && tenuto next --json", "hand in what came of it, and ask again"),
    ],
)
@run_argument
def next_(run: str | None) -> Answer:
    """What is to be done now, with the full prompt, the paths and the environment of each attempt.

    Engine actions (pruning memory, reading the plan, gates) are done on the way. Asking again hands out the same attempts again,
    until they are reported. A run that waits for a person answers with 5.
    """
    from tenuto.drivers.guided import hand_out
    from tenuto.drivers.settings import read_settings

    workspace = open_existing()
    name = chosen(workspace, run)
    found, works = hand_out(workspace, name, read_settings(workspace.root))
    if not works:
        rest = ended(found)
        return Answer({"run": name, "status": found["status"], "work": []}, rest.parts, rest.status)
    return Answer({"run": name, "status": found["status"], "work": works}, _shown(name, works))


def _shown(run: str, works: list[Any]) -> Iterator[Part]:
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
@click.option("--reply", default=None, metavar="FILE", help="The reply, or a JSON object: verdict, summary, usage. - is standard input.")
@click.option("--verdict", default=None, type=click.Choice(["DONE", "NEEDS_REVISION", "ERROR", "QUESTION"]), help="Instead of a reply.")
@click.option("--summary", default="", help="With --verdict: one sentence.")
@click.option("--usage", multiple=True, metavar="UNIT=N", help="tokens or micro_usd that the attempt used.")
def report(run: str, attempt: str, reply: str | None, verdict: str | None, summary: str, usage: tuple[str, ...]) -> Answer:
    """Take in what came of an attempt that was handed out. DONE is checked as ever: outputs, boundaries, checks."""
    from tenuto.drivers.guided import accept
    from tenuto.drivers.settings import read_settings

    if (reply is None) == (verdict is None):
        raise BadInput("bad-usage", "give either --reply FILE or --verdict WORD", "tenuto report --help")
    workspace = open_existing()
    told = _read(reply) if reply is not None else _said(str(verdict), summary)
    if usage:
        told["usage"] = {**told.get("usage", {}), **_usage(usage)}
    verdict_, said, receipt = accept(workspace, run, attempt, told, read_settings(workspace.root))
    data = {"run": run, "attempt": attempt, "verdict": verdict_, "summary": said, "receipt": receipt}
    return Answer(data, [f"{attempt}: {verdict_}: {said}".rstrip(": "), f"  try: tenuto next {run}"])


def _read(path: str) -> Report:
    from tenuto.drivers.guided import read_report

    if path == "-":
        return read_report(sys.stdin.read())
    try:
        return read_report(Path(path).read_text("utf-8", "replace"))
    except OSError as error:
        raise NotFound("no-reply", f"{path}: {error.strerror}", "give a file that holds the reply") from None


def _said(verdict: str, summary: str) -> Report:
    return {"verdict": verdict, "summary": summary, "reply": f"{verdict}: {summary}\n"}


def _usage(given: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for word in given:
        unit, _, amount = word.partition("=")
        if unit not in ("tokens", "micro_usd") or not amount.isdecimal():
            raise BadInput("bad-usage", f"'{word}' is no amount", "--usage tokens=5200, --usage micro_usd=41000")
        found[unit] = int(amount)
    return found
