"""`tenuto pause`, `resume`, `cancel`, `retry`, `answer`: steer a run that is under way or rests."""

from __future__ import annotations

from typing import Any

import click

from tenuto.entrypoints.cli.driving import LIMIT_HELP, crew_of, drive, ended, limits_of
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import chosen, open_existing, run_argument


def _ask(run: str | None, asked: Any) -> Answer:
    from tenuto.drivers.persons import command

    workspace = open_existing()
    found = command(workspace, chosen(workspace, run), asked)
    return Answer(found, [f"{found['id']}: {found['status']}"])


@click.command("pause", cls=Command, examples=[("tenuto pause", "no further agent starts; those under way end")])
@run_argument
@click.option("--reason", default="a person asked for it", help="Words for the record.")
def pause(run: str | None, reason: str) -> Answer:
    """Start nothing more until somebody resumes the run."""
    return _ask(run, {"do": "Pause", "kind": "person", "reason": reason, "recommendations": ["resume"]})


@click.command(
    "release",
    cls=Command,
    examples=[
        ("tenuto release dark-mode", "from here by hand: tenuto context, flow, staged, feature"),
        ("tenuto run --run dark-mode", "and back: the engine goes on where the run stands"),
    ],
)
@run_argument
def release(run: str | None) -> Answer:
    """Let go of a run: from here somebody leads it by hand."""
    from tenuto.drivers.engage import release as let_go

    workspace = open_existing()
    found = let_go(workspace, chosen(workspace, run))
    return Answer(found, [f"{found['id']}: {found['status']}, led by hand"])


@click.command(
    "resume",
    cls=Command,
    examples=[
        ("tenuto resume", "go on with the current run"),
        ("tenuto resume dark-mode --limit attempts=80", "with a higher limit"),
        ("tenuto resume dark-mode --now", "a parked one, before its time"),
    ],
)
@run_argument
@click.option("--agent", default="", help="Who does the work from here on.")
@click.option("--limit", multiple=True, metavar="UNIT=N", help=LIMIT_HELP)
@click.option("--now", is_flag=True, help="A parked run: do not wait for its time.")
@click.option("--give-up", is_flag=True, help="Give up what was handed out (tenuto next) and never reported.")
@click.option("--no-drive", is_flag=True, help="Only clear the pause; do not drive the run.")
def resume(run: str | None, agent: str, limit: tuple[str, ...], now: bool, give_up: bool, no_drive: bool) -> Answer:
    """Go on: after a pause, a crash, a decision."""
    from tenuto.drivers.persons import command
    from tenuto.drivers.settings import read_settings

    workspace = open_existing()
    run_id, settings = chosen(workspace, run), read_settings(workspace.root)
    crew = None if no_drive else crew_of(workspace, settings, agent, (), run_id)
    if give_up:
        from tenuto.drivers.guided import give_up as lose

        lose(workspace, run_id)
    if limit:
        limits = limits_of(limit)
        command(workspace, run_id, {"do": "ChangeBudget", "limits": limits.run, "steps": limits.steps})
    status = workspace.load(run_id)["status"]
    if status in ("paused", "stopped") or (status == "parked" and now):
        command(workspace, run_id, {"do": "Resume", "decision": "retry", "early": now})
    if crew is None:
        return ended(workspace.load(run_id))
    return drive(workspace, run_id, crew, settings)


@click.command(
    "cancel", cls=Command, examples=[("tenuto cancel dark-mode --reason 'not needed'", "its agents are ended")]
)
@run_argument
@click.option("--reason", default="", help="Words for the record.")
def cancel(run: str | None, reason: str) -> Answer:
    """End a run for good. Agents under way are ended with everything they started."""
    from tenuto.drivers.cancelling import cancel as end

    workspace = open_existing()
    found = end(workspace, chosen(workspace, run), reason)
    return Answer(found, [f"{found['id']}: {found['status']}"])


@click.command("retry", cls=Command, examples=[("tenuto retry dark-mode design", "from there on again")])
@click.argument("run")
@click.argument("step")
def retry(run: str, step: str) -> Answer:
    """Go back to a step, and on from there."""
    return _ask(run, {"do": "RetryStep", "step": step})


@click.command(
    "answer",
    cls=Command,
    examples=[("tenuto answer dark-mode 'PostgreSQL 16'", "an agent asked; it goes on with this")],
)
@click.argument("run")
@click.argument("text")
def answer(run: str, text: str) -> Answer:
    """Answer an agent's question."""
    from tenuto.drivers.persons import answer_question

    found = answer_question(open_existing(), run, text)
    return Answer(found, [f"{run}: the answer is recorded", "  try: tenuto run   (go on)"])
