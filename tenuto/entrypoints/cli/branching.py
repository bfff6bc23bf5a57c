"""`tenuto fork` and `tenuto replay`: another way from here, and what another pipeline would have made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import RunName, open_existing
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, counted


@click.command(
    "fork",
    cls=Command,
    examples=[
        ("tenuto fork dark-mode --at planning", "a new run that goes on from there, with everything made before"),
        ("tenuto fork dark-mode --at review --pipeline eight-step", "with the pipeline as its file is now"),
    ],
)
@click.argument("run", type=RunName())
@click.option("--at", "step", required=True, metavar="STEP", help="The first step that is done again.")
@click.option("--name", default="", help="What the new run is called; made from the old name and the step otherwise.")
@click.option("--pipeline", default="", help="Another pipeline; otherwise the definition that the run is bound to.")
def fork(run: str, step: str, name: str, pipeline: str) -> Answer:
    """A new run from a step of another. The old run and the work tree stay as they are."""
    from tenuto.drivers import fork as forks

    made = forks.fork(open_existing(), run, step, name=name, pipeline=pipeline)
    carried = counted(len(made["artifacts"]), "artifact")
    lines = [f"{made['id']}: forked from {run} at {step}, {carried} carried over", "  try: tenuto run   (go on with it)"]
    return Answer(made, lines)


@click.command(
    "replay",
    cls=Command,
    examples=[
        ("tenuto replay dark-mode", "recorded answers against the pipeline as its file is now"),
        ("tenuto replay dark-mode --pipeline .tenuto/pipelines/strict.yaml", "against another one"),
        ("tenuto replay dark-mode --exit-code", "1 where the way would be another"),
    ],
)
@click.argument("run", type=RunName())
@click.option("--pipeline", default="", help="Which pipeline; the run's own, as its file is now, otherwise.")
@click.option("--exit-code", is_flag=True, help="End with 1 when anything differs.")
def replay(run: str, pipeline: str, exit_code: bool) -> Answer:
    """What an edited pipeline would have made of a run. No agent is started, nothing is written."""
    from tenuto.drivers.bound import define
    from tenuto.drivers.replay import refuse_unreplayable
    from tenuto.drivers.replay import replay as play

    workspace = open_existing()
    found = workspace.load(run)
    refuse_unreplayable(found)
    chosen = pipeline or found["pipeline"]["name"]
    with workspace.journal.read() as reader:
        events = list(reader.events(run))
    told = play(define(chosen, workspace.root)["pipeline"], found, events)
    data = {"run": run, "pipeline": chosen, **told}
    return Answer(data, _shown(data), 1 if exit_code and told["differences"] else 0)


def _shown(data: Any) -> Iterator[Part]:
    then, now = data["then"], data["now"]
    yield Heading(f"{data['run']} against {data['pipeline']}")
    steps = list(dict.fromkeys(step for step, _ in [*then["visits"], *now["visits"]]))
    yield Table(("STEP", "THEN", "NOW"), [(step, _verdicts(then, step), _verdicts(now, step)) for step in steps])
    yield f"  then {then['status']}, {counted(len(then['attempts']), 'attempt')}{_why(then)}"
    yield f"  now  {now['status']}, {counted(len(now['attempts']), 'attempt')}{_why(now)}"
    if data["assumed"]:
        yield f"  no recorded answer, taken as DONE: {', '.join(data['assumed'])}"
    if data["unused"]:
        yield f"  not asked for any more: {', '.join(data['unused'])}"
    yield ""
    yield Heading("nothing differs" if not data["differences"] else "what differs")
    yield from (f"  {line}" for line in data["differences"])


def _verdicts(trace: Any, step: str) -> str:
    return ", ".join(verdict for one, verdict in trace["visits"] if one == step) or "-"


def _why(trace: Any) -> str:
    return f": {trace['why']}" if trace["why"] else ""
