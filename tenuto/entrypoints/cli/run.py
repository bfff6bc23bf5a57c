"""`tenuto run`; and what other commands that drive, steer or plan a run need: agents, switches and limits as words."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tenuto.core.budget import UNITS
from tenuto.encoding import escape_terminal
from tenuto.entrypoints.cli import values as typed
from tenuto.entrypoints.cli.change import note_issue, requested, take_issue
from tenuto.entrypoints.cli.frame import (
    Answer,
    Command,
    RunName,
    complete_agent,
    complete_pipeline,
    home,
    keep_open,
    open_here,
)
from tenuto.entrypoints.cli.look import ended, say_what_is_unchecked
from tenuto.entrypoints.cli.terminal import say
from tenuto.entrypoints.cli.watch import progress, whose
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.show.figures import sizes_of_pipelines
from tenuto.show.inbox import unfinished_of
from tenuto.show.runs import chosen
from tenuto.show.views import AgentsView, run_view, waiting_of
from tenuto.workspace.settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenuto.agents.roster import Roster
    from tenuto.core.records.run import Run, Waiting
    from tenuto.engine.begin import Place
    from tenuto.engine.rest import Ask, Decided
    from tenuto.show.changes import DocumentView
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Turn, Workspace


LIMIT_FORM = "--limit attempts=40, --limit money=2.50, --limit attempts@design=3"
USUAL = "eight-step"
PARAM_HELP = "A parameter of the pipeline; a list takes several, or parts with commas."
TRUST_HELP = "What this repository brings may run, this once, unseen: for CI (tenuto trust is for you)."
ON_HELP = "Attempts are carried out by the workers of a pool, on any machine (tenuto worker)."
WAIT_HELP = "A parked run (a usage limit): wait for its time and go on, or end. At a terminal it waits."
LIMIT_HELP = "A budget: attempts, tokens, money (dollars), wall_clock (seconds); UNIT@STEP for one step."


def roster_of(
    workspace: Workspace, settings: Settings, agent: str, role_agent: tuple[str, ...], run: str = ""
) -> Roster:
    """The agents that are named now; else those that the run was begun with, by its journal; else the settings'."""
    from tenuto.agents.roster import Roster
    from tenuto.knowledge import roles

    known = _remembered(workspace, run)
    default = agent or known["agent"] or settings.get("agent", "")
    if not default:
        raise BadInput(
            "no-agent",
            "nobody is there to do the work",
            "--agent auto (whatever is installed), --agent 'command:./my-agent', or agent: in .tenuto/config.yaml",
        )
    given = _pairs(role_agent, "--role-agent ROLE=AGENT")
    by_role = {**settings.get("roles", {}), **known["roles"], **given}
    # It is recorded, and would be started without the value.
    workspace.secrets.refuse_name("\n".join([default, *by_role.values()]), "the command of an agent")
    for role in by_role:
        roles.find(role, Path(workspace.root))
    roster = Roster(default, by_role, settings.get("fallback"))
    roster.elsewhere = bool(settings.get("isolation"))
    roster.choice = {"agent": roster.named(default).name} if agent else {}
    if given:
        roster.choice["roles"] = {role: roster.named(spelling).name for role, spelling in given.items()}
    if default == "auto":
        say(f"agent: {roster.default} (auto: the first that is installed)")
    elif not agent and known["agent"]:
        say(f"agent: {default} (as before)")
    return roster


def _remembered(workspace: Workspace, run: str) -> AgentsView:
    if run:
        with suppress(NotFound):  # it is known by another name, or only lies in a folder so far
            return run_view(workspace.load(run))["agents"]
    return {"agent": "", "roles": {}}


def switches_of(approval: bool, given: tuple[str, ...]) -> dict[str, bool]:
    words = {"on": True, "off": False, "true": True, "false": False}
    switches = {"approval": True} if approval else {}
    for name, value in _pairs(given, "--switch NAME=on").items():
        if value.lower() not in words:
            raise BadInput("bad-switch", f"the switch {name} is on or off, not {value!r}", f"--switch {name}=on")
        switches[name] = words[value.lower()]
    return switches


def params_of(
    workspace: Workspace, pipeline: str, given: tuple[str, ...], file: str | None, ask: bool = True
) -> dict[str, object]:
    """The values of the pipeline's parameters, as far as they are given; at a terminal, what is missing is asked
    for."""
    from tenuto.core.pipeline.params import missing
    from tenuto.engine.attempt import define

    declared = define(pipeline, workspace.root)["pipeline"]["params"]
    values = typed.given(declared, given, file, typed.PARAMS)
    if ask and typed.at_terminal():
        typed.ask(declared, missing(declared, values), values)
    return values


def choose_pipeline(workspace: Workspace, settings: Settings) -> str:
    """What the settings say; else a person is asked, once; without a terminal the usual one, and that is said."""
    if "pipeline" in settings:
        return settings["pipeline"]
    if not typed.at_terminal():
        say(f"pipeline: {USUAL} (neither --pipeline nor the settings name one; for a small change: --pipeline quick)")
        return USUAL
    sizes = sorted(sizes_of_pipelines(workspace), key=lambda size: size.agents)
    width = max(len(size.name) for size in sizes)
    say("Which pipeline? The number: its agents when all goes well, with three items where a plan makes items.")
    if not any(size.cost for size in sizes):
        say("What they cost is not known yet: no agent has reported it in this repository.")
    for size in sizes:
        say(f"  {size.name:<{width}}  {size.agents:>3}  {size.description}{size.cost}")
    choice = click.Choice([size.name for size in sizes])
    name: str = click.prompt("pipeline", default="quick", type=choice, show_choices=False, err=True)
    if click.confirm(f"Remember {name} in .tenuto/config.yaml?", default=False, err=True):
        _remember_pipeline(workspace, name)
    return name


def _remember_pipeline(workspace: Workspace, name: str) -> None:
    path = Path(workspace.root) / ".tenuto" / "config.yaml"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.parent.mkdir(exist_ok=True)
    line = "\n" if before and not before.endswith("\n") else ""
    path.write_text(f"{before}{line}pipeline: {name}\n", encoding="utf-8")
    say(f"remembered in {path}")


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
    pairs = {}
    for word in given:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise BadInput("bad-usage", f"'{word}' is not of the form {form}", form)
        pairs[name] = value
    return pairs


def trust_all(workspace: Workspace, command: str, said: bool) -> None:
    """--trust: what the repository brings may run, for this one command."""
    from tenuto.workspace import shared
    from tenuto.workspace.guard import require_person

    if not said:
        return
    require_person(workspace.caller, "trust a repository", f"tenuto {command} --trust")
    workspace.trusts = True
    shared.fetch(shared.unfetched(workspace.root))


def settings_for(workspace: Workspace, run: str) -> Settings:
    """What the run began with, where that is another thing than the settings say now; and that is said."""
    from tenuto.workspace.settings import changed_since

    record = workspace.load(run)
    changed = changed_since(workspace.root, record, workspace.state)
    if changed:
        say(f"note: {', '.join(changed)} in .tenuto/config.yaml changed since {run} began, and does not count for it")
        say(f"  try: tenuto resume {run} --new-settings   (takes over what stands there now)")
    return settings_of(workspace.root, record, workspace.state)


def refuse_early(workspace: Workspace, run: str, settings: Settings | None = None, given_up: bool = False) -> None:
    """What an engine would refuse, before the command that starts it writes anything."""
    from tenuto.engine.rest import refuse_to_drive
    from tenuto.workspace.settings import settings_of

    record = workspace.load(run)
    if run_view(record)["is_bound"]:
        own = settings or settings_of(workspace.root, record, workspace.state)
        refuse_to_drive(workspace, run, own, given_up)


def drive(workspace: Workspace, run: str, roster: Roster, in_advance: str = "", waits: bool | None = None) -> Answer:
    """Until the run rests, shown while it goes on. `waits`: a parked run is waited for; None: at a terminal."""
    from tenuto.cluster.driver import engine_for
    from tenuto.engine.rest import drive_until_rest

    settings = settings_for(workspace, run)

    try:
        with progress(workspace, run) as view:
            record = drive_until_rest(
                workspace,
                run,
                roster,
                settings,
                engine=engine_for(workspace, run),
                watcher=view.on_turn,
                ask=view.asking(on_terminal(workspace)),
                whose=view.wondering(whose(workspace)),
                in_advance=in_advance,
                wait=view.waiting if (typed.at_terminal() if waits is None else waits) else None,
            )
            view.on_turn(record, [])
    except KeyboardInterrupt:
        _say_what_goes_on(workspace, run)
        raise
    return ended(record)


def _say_what_goes_on(workspace: Workspace, run: str) -> None:
    """The agents outlive an engine that is stopped: another command takes them up, or ends them."""
    in_flight = run_view(workspace.load(run))["in_flight"]
    if in_flight:
        say(f"still at work: {', '.join(in_flight)}")
        say(f"  try: tenuto run   (takes them up and goes on), or: tenuto cancel {run}   (ends them)")


_LOOK_AGAIN = 0.25


def on_terminal(workspace: Workspace) -> Ask | None:
    """Asks a person at a gate; None without a terminal, and then the run waits. A decision that is made elsewhere
    meanwhile ends the question."""
    if not typed.at_terminal():
        return None
    from tenuto.engine.rest import Decided

    def ask(run: Run) -> Decided | None:
        waiting = waiting_of(run)
        if waiting is None or waiting["kind"] != "gate":
            return None
        say("")
        say(escape_terminal(waiting["reason"], keep="\n"))
        for entry in waiting["shown"]:
            say(f"  {escape_terminal(entry['path'])}")
        decision = _word(workspace, run, waiting)
        if decision is None:
            return None
        feedback = typed.ask_feedback() if decision == "revise" else ""
        answers: dict[str, object] = {}
        if decision == "approve":
            fields = typed.fields_of(waiting)
            typed.ask(fields, fields, answers)
        return _signed(workspace, run, Decided(decision, feedback, answers))

    return ask


# What people type at a gate, besides the decisions themselves.
_SHORT = {"a": "approve", "y": "approve", "yes": "approve", "n": "reject", "no": "reject", "r": "revise"}


def _word(workspace: Workspace, run: Run, waiting: Waiting) -> str | None:
    """The decision that was typed; None: later, or it was decided elsewhere. `v` and `d` show what is decided on."""
    name, options = run_view(run)["run"], waiting["options"]
    looks = "; v: view, d: differences from before" if waiting["shown"] else ""
    while True:
        click.echo(f"{', '.join(options)}, later{looks} [later]: ", nl=False, err=True)
        if not _is_answered(workspace, name, waiting["gate"]):
            say("")
            say("it was decided elsewhere")
            return None
        typed_word = click.prompt("", prompt_suffix="", default="later", show_default=False, err=True).strip()
        word = _SHORT.get(typed_word.casefold(), typed_word.casefold())
        if word in options:
            return word
        if word == "later":
            return None
        if word in ("v", "view", "d", "diff") and waiting["shown"]:
            for line in _shown_at(workspace, run, word[0]):
                say(line)
        else:
            say(f"{escape_terminal(typed_word)!r} is none of them")


def _shown_at(workspace: Workspace, run: Run, which: str) -> Iterator[str]:
    """The files that a gate shows, or how they differ from what it showed the last time."""
    from tenuto.show.changes import gate_files

    for file in gate_files(workspace, run):
        yield f"--- {escape_terminal(file['path'])}"
        if file["changed"] is not None:
            yield "    (what lies there now is another version: nothing can be decided before it is as shown)"
        if which == "v":
            yield from _document(file["document"])
        elif not file["before"]:
            yield "    (this gate shows it for the first time)"
        elif file["diff"] is None:
            yield "    (as it was)"
        else:
            for hunk in (hunk for one in file["diff"]["files"] for hunk in one["hunks"]):
                yield hunk["header"]
                yield from (line["mark"] + escape_terminal(line["text"]) for line in hunk["lines"])


def _document(document: DocumentView) -> Iterator[str]:
    text = document["text"]
    yield from escape_terminal(text, keep="\n\t").splitlines() if text is not None else [f"    ({document['why_not']})"]


def _signed(workspace: Workspace, run: Run, decided: Decided) -> Decided | None:
    """With a signature, where decisions are signed. No key is named: later."""
    from tenuto.engine.gates import level_of, sign, text_to_sign

    if level_of(run, settings_of(workspace.root, run, workspace.state)) != "signed":
        return decided
    signer = click.prompt("decisions are signed here. Your name in the list of signers", default="", err=True)
    key = click.prompt("the ssh key that signs it (a file)", default="", err=True) if signer else ""
    if not key:
        say(f"  try: tenuto {decided.decision} {run_view(run)['run']} --sign-with KEY --as NAME")
        return None
    text = text_to_sign(run, decided.decision, decided.feedback, decided.answers)
    return decided._replace(signature=sign(text, os.path.expanduser(key)), signer=signer)


def _is_answered(workspace: Workspace, run: str, gate: str) -> bool:
    """Until a line was typed; False where the gate is not open any more."""
    pulse = ""
    while not select.select([sys.stdin], [], [], _LOOK_AGAIN)[0]:
        now = workspace.journal.pulse()
        if now != pulse:
            pulse, waiting = now, waiting_of(workspace.load(run))
            if waiting is None or waiting["gate"] != gate:
                return False
    return True


@click.command(
    "run",
    cls=Command,
    examples=[
        ("tenuto run 'Mend the typo' --pipeline quick --agent auto", "plan, change, your checks, one review"),
        ("tenuto run 'Add dark mode' --agent auto", "with the agent that is installed; asks which pipeline"),
        ("tenuto run 'Add dark mode' --agent 'command:./my-agent'", "with a program of your own"),
        ("tenuto run 'Add dark mode' --approval", "stop for a person after research and after planning"),
        ("tenuto run 'Add dark mode' --tree", "beside other runs: in a git work tree of its own"),
        ("tenuto run", "go on with the current run: after a crash, a gate, a pause"),
        ("tenuto run 'Fix login' --pipeline ticket --limit attempts=40", "another pipeline, a budget"),
        ("tenuto run --issue 123 --agent auto", "what an issue asks for"),
        ("tenuto run --run dark-mode --pipeline orchestrate", "drive a task that was led by hand so far"),
    ],
)
@click.argument("request", required=False)
@click.option(
    "--pipeline",
    default="",
    shell_complete=complete_pipeline,
    help="Which pipeline; else the settings say it, else you are asked, else (no terminal) it is eight-step.",
)
@click.option(
    "--agent",
    default="",
    shell_complete=complete_agent,
    help="Who does the work: auto, claude, codex, acp:PROGRAM, command:PROGRAM, scripted:FILE.",
)
@click.option("--role-agent", multiple=True, metavar="ROLE=AGENT", help="Another agent for one role.")
@click.option(
    "--run", "existing", default=None, type=RunName(), help="Take over this run, which was led by hand so far."
)
@click.option("--at", default="", metavar="STEP", help="With --run: begin with this step.")
@click.option("--name", default="", help="What the run is called; made from the request otherwise.")
@click.option("--approval", is_flag=True, help="Switch the approval gates on.")
@click.option("--switch", multiple=True, metavar="NAME=on|off", help="Any other switch of the pipeline.")
@click.option("--param", multiple=True, metavar="NAME=VALUE", help=PARAM_HELP)
@click.option("--params-file", default=None, metavar="FILE", help="Parameters as a mapping, in YAML or JSON.")
@click.option("--limit", multiple=True, metavar="UNIT=N", help=LIMIT_HELP)
@click.option(
    "--no-input", type=click.Choice(["approve"]), default=None, help="Decide every gate in advance; recorded as such."
)
@click.option(
    "--workspace",
    "kind",
    type=click.Choice(["shared", "worktree"]),
    default=None,
    help="Agents share this work tree, or each parallel item gets its own; as the pipeline says otherwise.",
)
@click.option("--branch", is_flag=True, help="Work on a branch of its own, tenuto/RUN (a worktree run always does).")
@click.option("--tree", is_flag=True, help="In a git work tree of its own, made for this run: .tenuto/runs/RUN.")
@click.option(
    "--dirty",
    type=click.Choice(["refuse", "stash"]),
    default=None,
    help="Changes that are not committed: refuse to start (so on a branch of its own), or stash them first.",
)
@click.option("--on", "place", default="", metavar="cluster[:POOL]", help=ON_HELP)
@click.option("--wait/--no-wait", "waits", default=None, help=WAIT_HELP)
@click.option(
    "--issue",
    default=None,
    metavar="NUMBER|ADDRESS|FILE",
    expose_value=False,
    callback=take_issue,
    help="The request is this issue: of GitHub (gh), GitLab (glab), or a file. Its text is quoted, as data.",
)
@click.option("--start-only", is_flag=True, help="Record the run, and let somebody else drive it.")
@click.option("--trust", "trusted", is_flag=True, help=TRUST_HELP)
def run_(
    request: str | None,
    pipeline: str,
    agent: str,
    role_agent: tuple[str, ...],
    existing: str | None,
    at: str,
    name: str,
    approval: bool,
    switch: tuple[str, ...],
    param: tuple[str, ...],
    params_file: str | None,
    limit: tuple[str, ...],
    no_input: str | None,
    kind: str | None,
    branch: bool,
    tree: bool,
    dirty: str | None,
    place: str,
    waits: bool | None,
    start_only: bool,
    trusted: bool,
) -> Answer:
    """Take a request through a pipeline, or go on with the current run."""
    from tenuto.workspace.settings import read_settings

    workspace = open_here()
    trust_all(workspace, "run", trusted)
    request, settings = requested(workspace, request), read_settings(workspace.root)
    goes_on = (existing or _current(workspace)) if request is None else existing or ""
    roster = None if start_only else roster_of(workspace, settings, agent, role_agent, goes_on)
    if request is None:
        if roster is not None:
            refuse_early(workspace, goes_on)
        _refuse_late({"--name": name, "--workspace": kind, "--branch": branch})
        _refuse_late({"--tree": tree, "--dirty": dirty, "--on": place})
        if not pipeline:
            _refuse_late({"--param": bool(param), "--params-file": params_file})
    chosen_pipeline = pipeline or (choose_pipeline(workspace, settings) if request is not None else "")
    params = params_of(workspace, chosen_pipeline, param, params_file) if chosen_pipeline else {}
    switches, limits = switches_of(approval, switch), limits_of(limit)
    if existing is not None or at or (request is None and pipeline):
        known = existing or _current(workspace)
        run_id = _take_over(workspace, known, pipeline, switches, params, limits, roster, at)
    elif request is None:
        run_id = _keep_to(workspace, _current(workspace), limits, switches)
    else:
        asked = New(request_of(request), chosen_pipeline, name, switches, params, limits)
        pool = _pool_of(workspace, place, kind)
        where = _place("worktree" if pool else kind or settings.get("workspace", ""), branch, tree, dirty or "")
        run_id = _same_request(workspace, asked) or begin(workspace, asked, roster, where, pool=pool)[1]
    workspace = home(workspace, run_id)
    if roster is None:
        return ended(workspace.load(run_id))
    return drive(workspace, run_id, roster, no_input or "", waits)


def _place(kind: str, branch: bool, tree: bool, dirty: str) -> Place:
    from tenuto.engine.begin import Place

    if tree and dirty:
        message = "--tree leaves what is not committed where it is, and --dirty says what becomes of it"
        raise BadInput("bad-usage", message, "tenuto run ... --tree, without --dirty")
    return Place(kind, branch, dirty, "" if tree else None)


def request_of(word: str) -> str:
    text = sys.stdin.read() if word == "-" else word
    if not text.strip():
        raise BadInput("no-request", "the request is empty", "tenuto run 'what you want'")
    return text


def _same_request(workspace: Workspace, asked: New) -> str:
    """A run of this very request that has not ended, where a person says that they meant that one; "" otherwise."""
    known = unfinished_of(workspace, workspace.secrets.text(asked.request), asked.pipeline)
    if known is None:
        return ""
    run, driven = known
    stands = f"run {run['id']} has this very request, and is {run['status']} ({driven['words']})"
    if not typed.at_terminal():
        say(f"note: {stands}; this is a new one")
        status = f"tenuto status {run['id']}"
        say(f"  try: {driven['command'] or status}   (for that one)")
        return ""
    say(stands)
    return run["id"] if click.confirm("Go on with that one, instead of a new run?", default=True, err=True) else ""


def _take_over(
    workspace: Workspace,
    run: str,
    pipeline: str,
    switches: dict[str, bool],
    params: dict[str, object],
    limits: Limits,
    roster: Roster | None,
    at: str,
) -> str:
    from tenuto.engine.begin import engage

    record = engage(
        workspace,
        run,
        pipeline,
        switches=switches,
        params=params,
        limits=limits.run,
        of_steps=limits.steps,
        roster=roster,
        at=at,
    )
    return _keep_to(workspace, run_view(record)["run"], limits, switches)


def _refuse_late(given: dict[str, str | bool | None]) -> None:
    """What is settled when a run begins is not left out silently when it goes on."""
    late = [option for option, value in given.items() if value]
    if late:
        message = f"{', '.join(late)} is for a new run, and no request is given"
        raise BadInput("only-new-runs", message, "tenuto run 'what you want' ..., or leave it out to go on")


def _keep_to(workspace: Workspace, run_id: str, limits: Limits, switches: dict[str, bool]) -> str:
    """A run that goes on: limits hold from here; what it was begun with is not switched any more."""
    from tenuto.engine.gates import command as ask_core

    view = run_view(workspace.load(run_id))
    known = view["switches"]
    late = [name for name, on in switches.items() if known.get(name, False) != on]
    if late:
        began = ", ".join(f"{name} {'on' if known.get(name) else 'off'}" for name in late)
        message = f"run {run_id} began with {began}"
        raise Refused("switched-late", message, "tenuto fork, or begin a new run with it", run=run_id)
    held: dict[str, dict[str, int | None]] = {}
    for one in view["limits"]:
        held.setdefault(one["step"], {})[one["unit"]] = one["limit"]
    of_run, of_steps = held.get("", {}), {step: held.get(step, {}) for step in limits.steps}
    if any(of_run.get(unit) != limit for unit, limit in limits.run.items()) or of_steps != limits.steps:
        ask_core(
            workspace,
            run_id,
            {
                "do": "ChangeBudget",
                "limits": {**limits.run},
                "steps": {step: {**own} for step, own in limits.steps.items()},
            },
        )
    return run_id


class New(NamedTuple):
    """What a new run is asked for with."""

    request: str
    pipeline: str
    name: str
    switches: dict[str, bool]
    params: dict[str, object]
    limits: Limits
    current: bool = True  # commands that name no run mean it from now on


def begin(
    workspace: Workspace,
    asked: New,
    roster: Roster | None,
    where: Place,
    then: Callable[[Turn, str], None] | None = None,
    pool: str = "",
) -> tuple[Workspace, str]:
    """The run, and the workspace that it works in: this one, or the tree that is made for it."""
    from tenuto.engine.begin import short, start
    from tenuto.engine.many import own_tree
    from tenuto.engine.rest import remember
    from tenuto.files import git

    here = workspace
    _refuse_to_begin(here, where.own_tree is None and roster is not None)
    if where.own_tree is not None:
        workspace = own_tree.make(here, asked.name or short(here.secrets.text(asked.request)))
        where = where._replace(own_tree=git.branch(here.root), run=workspace.root.rpartition("/")[2])
        keep_open(workspace)

    def note(turn: Turn, new: str) -> None:
        from tenuto.cluster.driver import remember_pool

        remember(turn, new, roster)
        note_issue(turn, new)
        if pool:
            remember_pool(turn, new, pool)
        if then is not None:
            then(turn, new)

    try:
        record = start(
            workspace,
            asked.request,
            asked.pipeline,
            switches=asked.switches,
            params=asked.params,
            limits=asked.limits.run,
            of_steps=asked.limits.steps,
            name=asked.name,
            roster=roster,
            place=where,
            then=note,
            current=asked.current,
        )
    except BaseException:
        if workspace is not here:
            own_tree.discard(here, workspace.root)
        raise
    say_what_is_unchecked(workspace, record)
    if where.own_tree is None and typed.at_terminal():
        say("agents share this work tree: you are asked about what changes here meanwhile; with --tree it stays yours")
    return workspace, run_view(record)["run"]


def _refuse_to_begin(workspace: Workspace, drives_here: bool) -> None:
    """Before anything is recorded."""
    from tenuto.engine.boundary import refuse_beside
    from tenuto.workspace.guard import refuse_attempts

    refuse_attempts(workspace.caller, workspace.state, "begin a run")
    if drives_here:
        refuse_beside(workspace, "")


def _pool_of(workspace: Workspace, place: str, kind: str | None) -> str:
    """The pool that `--on` names; refused, before anything is recorded, where its attempts could not travel."""
    if not place:
        return ""
    where, _, pool = place.partition(":")
    if where != "cluster":
        raise BadInput("bad-place", f"attempts are not carried out on '{place}'", "--on cluster, or --on cluster:POOL")
    if kind == "shared":
        message = "on other machines every attempt has a work tree of its own"
        raise BadInput("bad-place", message, "leave out --workspace shared")
    from tenuto.cluster.driver import refuse_unready

    return refuse_unready(workspace, pool or "default")


def _current(workspace: Workspace) -> str:
    return chosen(workspace, None)
