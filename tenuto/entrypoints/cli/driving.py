"""What the commands that drive or steer a run share: words to settings, a narrator, an honest end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tenuto.core.budget import UNITS
from tenuto.core.records import Run
from tenuto.entrypoints.cli.frame import Answer
from tenuto.entrypoints.cli.terminal import say, when
from tenuto.entrypoints.inert import inert
from tenuto.errors import BadInput, NotFound

if TYPE_CHECKING:
    from tenuto.workspace.turn import Workspace

LIMIT_FORM = "--limit attempts=40, --limit money=2.50, --limit attempts@design=3"
LIMIT_HELP = "A budget: attempts, tokens, money (dollars), wall_clock (seconds); UNIT@STEP for one step."
_WAITS = ("waiting_gate", "paused", "parked", "stopped", "blocked")


def crew_of(workspace: Workspace, settings: dict[str, Any], agent: str, role_agent: tuple[str, ...], run: str = "") -> Any:
    """What is said now; else what the run was begun with, which its journal knows; else the settings."""
    from tenuto.agents.crew import Crew
    from tenuto.knowledge import roles

    known = _remembered(workspace, run)
    default = agent or known.get("agent", "") or settings.get("agent", "")
    if not default:
        raise BadInput(
            "no-agent",
            "nobody is there to do the work",
            "--agent auto (whatever is installed), --agent 'command:./my-agent', or agent: in .tenuto/config.yaml",
        )
    given = _pairs(role_agent, "--role-agent ROLE=AGENT")
    by_role = {**settings.get("roles", {}), **known.get("roles", {}), **given}
    if workspace.secrecy is not None:  # it is recorded, and would be started without the value
        workspace.secrecy.refuse("\n".join([default, *by_role.values()]).encode("utf-8", "surrogatepass"), "the command of an agent")
    for role in by_role:
        roles.find(role, Path(workspace.root))
    crew = Crew(default, by_role, settings.get("fallback"))
    crew.elsewhere = bool(settings.get("isolation"))
    crew.said = {"agent": crew.named(default).name} if agent else {}
    if given:
        crew.said["roles"] = {role: crew.named(spelling).name for role, spelling in given.items()}
    if default == "auto":
        say(f"agent: {crew.default} (auto: the first that is installed)")
    elif not agent and known.get("agent"):
        say(f"agent: {default} (as before)")
    return crew


def _remembered(workspace: Workspace, run: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = workspace.load(run)["settings"].get("crew", {}) if run else {}
    except NotFound:
        return {}  # it is known by another name, or only lies in a folder so far
    return found


def switches_of(approval: bool, given: tuple[str, ...]) -> dict[str, bool]:
    words = {"on": True, "off": False, "true": True, "false": False}
    made = {"approval": True} if approval else {}
    for name, value in _pairs(given, "--switch NAME=on").items():
        if value.lower() not in words:
            raise BadInput("bad-switch", f"the switch {name} is on or off, not {value!r}", f"--switch {name}=on")
        made[name] = words[value.lower()]
    return made


class Limits(NamedTuple):
    run: dict[str, int]
    steps: dict[str, dict[str, int]]


def limits_of(given: tuple[str, ...]) -> Limits:
    """attempts=40, money=2.50, tokens@design=100000: of the run, or of one step."""
    found = Limits({}, {})
    for word, value in _pairs(given, LIMIT_FORM).items():
        unit, at, step = word.partition("@")
        if at and not step:
            raise BadInput("bad-limit", f"'{word}={value}' names no step", LIMIT_FORM)
        limits = found.steps.setdefault(step, {}) if step else found.run
        if unit == "money":
            limits["micro_usd"] = _micro_usd(word, value)
        elif unit in UNITS and value.isdecimal():
            limits[unit] = int(value)
        else:
            known = ", ".join((*UNITS, "money"))
            raise BadInput("bad-limit", f"'{word}={value}' is no limit", f"units: {known}; a whole number")
    return found


def _micro_usd(word: str, value: str) -> int:
    whole, _, cents = value.removeprefix("$").partition(".")
    if not (whole + cents).isdecimal() or len(cents) > 6:
        raise BadInput("bad-limit", f"'{word}={value}' is no amount of dollars", "--limit money=2.50")
    return int(whole or "0") * 1_000_000 + int(cents.ljust(6, "0"))


def _pairs(given: tuple[str, ...], form: str) -> dict[str, str]:
    made = {}
    for word in given:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise BadInput("bad-usage", f"'{word}' is not of the form {form}", form)
        made[name] = value
    return made


def drive(workspace: Workspace, run: str, crew: Any, settings: dict[str, Any], in_advance: str = "") -> Answer:
    """Until the run rests, shown while it goes on."""
    from tenuto.drivers.session import sit
    from tenuto.entrypoints.cli.live import progress

    try:
        with progress(workspace, run) as view:
            found = sit(workspace, run, crew, settings, watcher=view.heard, ask=view.asking(on_terminal()), in_advance=in_advance)
            view.heard(found, [])
    except KeyboardInterrupt:
        _say_what_goes_on(workspace, run)
        raise
    return ended(found)


def _say_what_goes_on(workspace: Workspace, run: str) -> None:
    """Whoever stops the engine does not stop its agents: they are taken up, or ended, with another command."""
    flying = workspace.load(run)["flying"]
    if flying:
        say(f"still at work: {', '.join(flying)}")
        say(f"  try: tenuto run   (takes them up and goes on), or: tenuto cancel {run}   (ends them)")


def on_terminal() -> Any:
    """Asks a person at a gate; None where nobody is there, and then the run waits."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(run: Run) -> tuple[str, str] | None:
        gate = run["gate"]
        if gate is None:
            return None
        say("")
        say(inert(gate["prompt"], keep="\n"))
        for entry in gate["shown"]:
            say(f"  {inert(entry['path'])}")
        decision = click.prompt(f"{', '.join(gate['options'])} (or later)", default="later", err=True)
        if decision not in gate["options"]:
            return None
        feedback = click.prompt("what should change", default="", err=True) if decision == "revise" else ""
        return decision, feedback

    return ask


def ended(run: Run) -> Answer:
    """How a run rests, and the exit status that says so."""
    status = run["status"]
    lines: list[Any] = [f"{run['id']}: {status}"]
    code = 0
    if run["gate"]:
        lines += [f"  {run['gate']['prompt']}", *(f"  - {entry['path']}" for entry in run["gate"]["shown"])]
        lines.append(f"  try: tenuto approve {run['id']}   (or: reject, revise --feedback '...')")
    elif run["pause"]:
        until = f"until {when(run['pause']['last_feedback'])}: " if status == "parked" else ""
        lines += [f"  {until}{run['pause']['reason']}", f"  try: {_way_on(run)}"]
    elif run["blocked"]:
        lines += [
            f"  {run['blocked']['reason']} {', '.join(run['blocked']['missing'])}".rstrip(),
            f"  try: tenuto retry {run['id']} STEP",
        ]
    lines += _left(run)
    if status in _WAITS:
        code = 5
    elif status in ("failed", "cancelled"):
        code = 1
        lines.append(f"ERROR: {run['failure']['error'] if run['failure'] else 'cancelled'}")
    return Answer(run, lines, code)


def _left(run: Run) -> list[str]:
    """What somebody should know once a run has ended: what was not done, its branch, what was stashed."""
    if run["status"] in _WAITS or run["status"] in ("running", "created", "restarting"):
        return []
    from tenuto.drivers.summary import unfinished, unresolved

    settings = run["settings"]
    told = {"went on without a DONE of": unresolved(run), "failed": unfinished(run, "failed"), "never started": unfinished(run)}
    lines = [f"  {what}: {', '.join(names)}" for what, names in told.items() if names]
    if settings.get("branch"):
        text = run["artifacts"].get("pull-request.md", {"path": ""})["path"]
        lines.append(f"  branch {settings['branch']}" + (f", pull-request text in {text}" if text else ""))
    if settings.get("stash"):
        lines.append(f"  your changes from before: git stash apply {settings['stash'][:12]}")
    return lines


def _way_on(run: Run) -> str:
    if run["pause"] and run["pause"]["kind"] == "question":
        return f"tenuto answer {run['id']} 'your answer'"
    if run["pause"] and run["pause"]["kind"] == "budget":
        return f"{run['pause']['recommendations'][0]}   (or: tenuto cancel {run['id']})"
    if run["status"] == "parked":
        return f"tenuto run   (after that time it goes on by itself; before it: tenuto resume {run['id']} --now)"
    return f"tenuto resume {run['id']}   (or: tenuto cancel {run['id']})"
