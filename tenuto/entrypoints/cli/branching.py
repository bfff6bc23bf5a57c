"""`tenuto fork` and `tenuto replay`: another way from here, and what another pipeline would have made of it.

`tenuto clean`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import (
    Answer,
    Command,
    RunName,
    complete_pipeline,
    complete_step,
    load,
    open_existing,
)
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, counted
from tenuto.show.runs import recorded
from tenuto.show.views import run_view

if TYPE_CHECKING:
    from tenuto.engine.replay import Replay, Trace
    from tenuto.engine.worktrees import Leftover


@click.command(
    "fork",
    cls=Command,
    examples=[
        ("tenuto fork dark-mode --at planning", "a new run that goes on from there, with everything made before"),
        ("tenuto fork dark-mode --at review --pipeline eight-step", "with the pipeline as its file is now"),
    ],
)
@click.argument("run", type=RunName())
@click.option(
    "--at",
    "step",
    required=True,
    metavar="STEP",
    shell_complete=complete_step,
    help="The first step that is done again.",
)
@click.option("--name", default="", help="What the new run is called; made from the old name and the step otherwise.")
@click.option(
    "--pipeline",
    default="",
    shell_complete=complete_pipeline,
    help="Another pipeline; otherwise the definition that the run is bound to.",
)
def fork(run: str, step: str, name: str, pipeline: str) -> Answer:
    """A new run from a step of another. The old run and the work tree stay as they are."""
    from tenuto.engine import begin

    new = begin.fork(open_existing(), run, step, name=name, pipeline=pipeline)
    view = run_view(new)
    count = counted(len(view["artifacts"]), "artifact")
    lines = [
        f"{view['run']}: forked from {run} at {step}, {count} carried over",
        "  try: tenuto run   (go on with it)",
    ]
    return Answer(new, lines)


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
@click.option(
    "--pipeline",
    default="",
    shell_complete=complete_pipeline,
    help="Which pipeline; the run's own, as its file is now, otherwise.",
)
@click.option("--exit-code", is_flag=True, help="End with 1 when anything differs.")
def replay(run: str, pipeline: str, exit_code: bool) -> Answer:
    """What an edited pipeline would have made of a run. No agent is started, nothing is written."""
    from tenuto.engine.attempt import define
    from tenuto.engine.replay import refuse_unreplayable
    from tenuto.engine.replay import replay as play

    workspace = open_existing()
    record = workspace.load(run)
    refuse_unreplayable(record)
    chosen = pipeline or run_view(record)["pipeline"]
    events = [entry["event"] for entry in recorded(workspace, run)["events"]]
    result = play(define(chosen, workspace.root)["pipeline"], record, events)
    data = {"run": run, "pipeline": chosen, **result}
    return Answer(data, _shown(run, chosen, result), 1 if exit_code and result["differences"] else 0)


def _shown(run: str, pipeline: str, data: Replay) -> Iterator[Part]:
    then, now = data["then"], data["now"]
    yield Heading(f"{run} against {pipeline}")
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


def _verdicts(trace: Trace, step: str) -> str:
    return ", ".join(verdict for one, verdict in trace["visits"] if one == step) or "-"


def _why(trace: Trace) -> str:
    return f": {trace['why']}" if trace["why"] else ""


# ---- clean ------------------------------------------------------------


@click.command(
    "clean",
    cls=Command,
    examples=[
        ("tenuto clean --dry-run", "what attempts left behind, and what would go"),
        ("tenuto clean", "remove what is merged or recorded, of every run"),
        ("tenuto clean dark-mode", "of one run"),
    ],
)
@click.argument("run", required=False, type=RunName())
@click.option("--dry-run", is_flag=True, help="Say what would go and what would stay; remove nothing.")
def clean(run: str | None, dry_run: bool) -> Answer:
    """Remove work trees and branches of attempts that are over, and trees of runs that are merged.

    A work tree goes when everything done in it is on a branch; a branch of an attempt goes when another branch has
    everything that is on it; the tree of a run (`run --tree`) when the run is over and merged. All else stays, with the
    reason: nothing is removed that is not merged or recorded.
    """
    from tenuto.engine.many import own_tree
    from tenuto.engine.worktrees import look, sweep

    workspace = open_existing()
    only = run_view(load(workspace, run))["run"] if run is not None else ""
    leftovers = [*look(workspace, only), *own_tree.look(workspace, only)]
    if not dry_run:
        sweep(workspace, leftovers)
    going, staying = [one for one in leftovers if one["goes"]], [one for one in leftovers if not one["goes"]]
    data = {
        "dry_run": dry_run,
        "removed": [] if dry_run else going,
        "would_remove": going if dry_run else [],
        "kept": staying,
    }
    if not leftovers:
        return Answer(
            data, ["nothing is left of any attempt" if run is None else f"nothing is left of the attempts of {run}"]
        )
    parts = [*_listed("would remove" if dry_run else "removed", going), *_listed("kept", staying)]
    return Answer(data, parts)


def _listed(what: str, entries: list[Leftover]) -> list[Part]:
    if not entries:
        return []
    lines: list[Part] = [Heading(f"{what}: {counted(len(entries), 'thing')}")]
    for one in entries:
        lines += [f"  {one['kind']} {one['name']}", f"    {one['item'] or one['attempt'] or one['run']}: {one['why']}"]
    return lines
