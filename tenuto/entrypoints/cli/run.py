"""`tenuto run`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from tenuto.entrypoints.cli.driving import (
    LIMIT_HELP,
    Limits,
    crew_of,
    drive,
    ended,
    limits_of,
    switches_of,
)
from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.runs import RunName
from tenuto.errors import BadInput, Refused

if TYPE_CHECKING:
    from tenuto.workspace.turn import Workspace


@click.command(
    "run",
    cls=Command,
    examples=[
        ("tenuto run 'Add dark mode' --agent auto", "research to final review, with the agent that is installed"),
        ("tenuto run 'Add dark mode' --agent 'command:./my-agent'", "with a program of your own"),
        ("tenuto run 'Add dark mode' --approval", "stop for a person after research and after planning"),
        ("tenuto run", "go on with the current run: after a crash, a gate, a pause"),
        ("tenuto run 'Fix login' --pipeline ticket --limit attempts=40", "another pipeline, a budget"),
        ("tenuto run --run dark-mode --pipeline orchestrate", "drive a task that was led by hand so far"),
    ],
)
@click.argument("request", required=False)
@click.option("--pipeline", default="", help="Which pipeline; eight-step unless the settings say otherwise.")
@click.option("--agent", default="", help="Who does the work: auto, claude, codex, acp:PROGRAM, command:PROGRAM, scripted:FILE.")
@click.option("--role-agent", multiple=True, metavar="ROLE=AGENT", help="Another agent for one role.")
@click.option("--run", "existing", default=None, type=RunName(), help="Take over this run, which was led by hand so far.")
@click.option("--at", default="", metavar="STEP", help="With --run: begin with this step.")
@click.option("--name", default="", help="What the run is called; made from the request otherwise.")
@click.option("--approval", is_flag=True, help="Switch the approval gates on.")
@click.option("--switch", multiple=True, metavar="NAME=on|off", help="Any other switch of the pipeline.")
@click.option("--limit", multiple=True, metavar="UNIT=N", help=LIMIT_HELP)
@click.option(
    "--no-input", type=click.Choice(["approve"]), default=None, help="Decide every gate in advance; recorded as such."
)
@click.option(
    "--workspace", "kind", type=click.Choice(["shared", "worktree"]), default=None,
    help="Agents share this work tree, or each parallel item gets its own; as the pipeline says otherwise.",
)
@click.option("--branch", is_flag=True, help="Work on a branch of its own, tenuto/RUN (a worktree run always does).")
@click.option(
    "--dirty", type=click.Choice(["refuse", "stash"]), default=None,
    help="Changes that are not committed: refuse to start (so on a branch of its own), or stash them first.",
)
@click.option("--start-only", is_flag=True, help="Record the run, and let somebody else drive it.")
def command(
    request: str | None, pipeline: str, agent: str, role_agent: tuple[str, ...], existing: str | None, at: str, name: str, approval: bool, switch: tuple[str, ...],
    limit: tuple[str, ...], no_input: str | None, kind: str | None, branch: bool, dirty: str | None, start_only: bool,
) -> Answer:  # fmt: skip
    """Take a request through a pipeline, or go on with the current run."""
    from tenuto.drivers.settings import read_settings

    workspace = open_here()
    settings = read_settings(workspace.root)
    goes_on = (existing or _current(workspace)) if request is None else existing or ""
    crew = None if start_only else crew_of(workspace, settings, agent, role_agent, goes_on)
    if request is None:
        _refuse_late({"--name": name, "--workspace": kind, "--branch": branch, "--dirty": dirty})
    if existing is not None or at or (request is None and pipeline):
        run_id = _take_over(workspace, existing or _current(workspace), pipeline, switches_of(approval, switch), limits_of(limit), crew, at)
    elif request is None:
        run_id = _keep_to(workspace, _current(workspace), limits_of(limit), switches_of(approval, switch))
    else:
        switches, limits = switches_of(approval, switch), limits_of(limit)
        where = (kind or settings.get("workspace", ""), branch, dirty or "")
        run_id = _begin(workspace, settings, request, pipeline, name, switches, limits, crew, where)
    if crew is None:
        return ended(workspace.load(run_id))
    return drive(workspace, run_id, crew, settings, no_input or "")


def _take_over(
    workspace: Workspace, run: str, pipeline: str, switches: Any, limits: Limits, crew: Any, at: str
) -> str:  # fmt: skip
    from tenuto.drivers.engage import engage

    run_id = engage(
        workspace, run, pipeline, switches=switches, limits=limits.run, of_steps=limits.steps, crew=crew, at=at
    )["id"]
    return _keep_to(workspace, run_id, limits, switches)


def _refuse_late(given: dict[str, Any]) -> None:
    """What is settled when a run begins is not left out silently when it goes on."""
    late = [option for option, value in given.items() if value]
    if late:
        message = f"{', '.join(late)} is for a new run, and no request is given"
        raise BadInput("only-new-runs", message, "tenuto run 'what you want' ..., or leave it out to go on")


def _keep_to(workspace: Workspace, run_id: str, limits: Limits, switches: dict[str, bool]) -> str:
    """A run that goes on: limits hold from here; what it was begun with is not switched any more."""
    from tenuto.drivers.persons import command

    found = workspace.load(run_id)
    known, budget = found["switches"], found["budget"]
    late = [name for name, on in switches.items() if known.get(name, False) != on]
    if late:
        told = ", ".join(f"{name} {'on' if known.get(name) else 'off'}" for name in late)
        message = f"run {run_id} began with {told}"
        raise Refused("switched-late", message, "tenuto fork, or begin a new run with it", run=run_id)
    of_steps = {step: budget["steps"].get(step, {"limits": {}})["limits"] for step in limits.steps}
    if any(budget["limits"].get(unit) != limit for unit, limit in limits.run.items()) or of_steps != limits.steps:
        command(workspace, run_id, {"do": "ChangeBudget", "limits": limits.run, "steps": limits.steps})
    return run_id


def _begin(
    workspace: Workspace, settings: Any, request: str, pipeline: str, name: str, switches: Any, limits: Limits, crew: Any,
    where: tuple[str, bool, str],
) -> str:  # fmt: skip
    from tenuto.drivers.session import remember
    from tenuto.drivers.start import Place, start

    text = sys.stdin.read() if request == "-" else request
    if not text.strip():
        raise BadInput("no-request", "the request is empty", "tenuto run 'what you want'")
    run = start(
        workspace, text, pipeline or settings.get("pipeline", "eight-step"), switches=switches, limits=limits.run,
        of_steps=limits.steps, name=name, crew=crew, place=Place(*where),
        then=lambda turn, new: remember(turn, new, crew),
    )  # fmt: skip
    return run["id"]


def _current(workspace: Workspace) -> str:
    from tenuto.entrypoints.cli.runs import chosen

    return chosen(workspace, None)
