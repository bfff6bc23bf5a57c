"""`tenuto queue` and `tenuto up`: requests that wait for their turn, and the loop that works them off."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tenuto.core.times import between, milliseconds
from tenuto.encoding import escape_terminal
from tenuto.entrypoints.cli import run as running
from tenuto.entrypoints.cli.frame import Answer, Command, Group, home, open_existing, open_here
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, counted, say, when
from tenuto.errors import BadInput, Refused, TenutoError
from tenuto.hooks.sessions import START
from tenuto.show.figures import BY, CostsBy, CostsView, CostView, costs_csv, costs_view
from tenuto.show.inbox import EntryView, InboxEntry, InboxView, QueueView, inbox_view, queue_view
from tenuto.show.measures import amount, number, span

if TYPE_CHECKING:
    from tenuto.core.records.run import ParamValue, QueueEntry, Wanted
    from tenuto.engine.many.queue import Up
    from tenuto.workspace.workspace import Turn, Workspace

_PACKAGE = __file__.rpartition("/tenuto/")[0]
_LOOK_AGAIN = 0.5
_SHORT = 60  # characters of a request in a table


@click.group(
    "queue",
    cls=Group,
    invoke_without_command=True,
    examples=[
        ("tenuto queue", "what waits, what has begun, what comes again and when"),
        ("tenuto queue add 'Mend the typo' --pipeline quick", "behind the others; tenuto up works it off"),
        ("tenuto queue remove 3", "one that has not begun"),
    ],
)
@click.pass_context
def queue(ctx: click.Context) -> object:
    """Requests that wait for their turn. `tenuto up` begins each in a tree of its own."""
    if ctx.invoked_subcommand is not None:
        return None
    with list_.make_context("list", [], parent=ctx) as inner:
        return list_.invoke(inner)


@queue.command("list", cls=Command, examples=[("tenuto queue list --json", "the same for a program")])
def list_() -> Answer:
    """What waits, what has begun, what comes again, and who works it off."""
    view = queue_view(open_here())
    return Answer(view, _parts(view))


def _parts(view: QueueView) -> Iterator[Part]:
    if view["entries"]:
        yield Table(("NUMBER", "STANDS", "RUN", "SINCE", "REQUEST"), [_row(one) for one in view["entries"]])
    else:
        yield "no request waits"
    for one in view["entries"]:
        if one["problem"]:
            yield f"  {one['entry']}: {one['problem'].splitlines()[-1]}"
            yield f"    try: tenuto queue retry {one['entry']}   (or: remove; all of it: {one['log']})"
    if view["schedules"]:
        yield ""
        yield Table(
            ("SCHEDULE", "EVERY", "NEXT", "ZONE", "REQUEST"),
            [
                (one["schedule"], one["every"], when(one["next"]), one["zone"], _short(one["request"]))
                for one in view["schedules"]
            ],
        )
    for left in view["budget"]:
        span = "in all" if left["span"] == "ever" else f"today ({view['zone']})"
        used = amount(left["unit"], left["used"])
        yield f"{span}: {used} used or promised of {amount(left['unit'], left['limit'])}"
    if view["problem"]:
        yield f"the settings cannot be read: {view['problem']}"
    if view["worked_off"]:
        yield f"tenuto up works it off on this machine, {counted(view['at_once'], 'run')} at a time"
    elif view["entries"] or view["schedules"]:
        yield "nobody works it off: tenuto up"


def _row(one: EntryView) -> tuple[str, ...]:
    stands = f"{one['standing']}, {one['status']}" if one["status"] else one["standing"]
    driven = one["driven"]
    if driven is not None and driven["by"] == "nobody" and driven["command"]:
        stands = f"{stands}, nobody drives"
    by = f" (schedule {one['schedule']})" if one["schedule"] else ""
    return one["entry"], stands, one["run"] or "-", when(one["queued_at"]), f"{_short(one['request'])}{by}"


def _short(request: str) -> str:
    line = " ".join(request.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


@queue.command(
    "add",
    cls=Command,
    examples=[
        ("tenuto queue add 'Add dark mode' --agent claude", "as tenuto run would begin it"),
        ("tenuto queue add 'Fix login' --pipeline ticket --limit money=5", "with a limit of its own"),
    ],
)
@click.argument("request")
@click.option("--pipeline", default="", help="Which pipeline; else the settings say it, else it is eight-step.")
@click.option("--agent", default="", help="Who does the work; else the settings say it, when it begins.")
@click.option("--role-agent", multiple=True, metavar="ROLE=AGENT", help="Another agent for one role.")
@click.option("--name", default="", help="What the run is called; made from the request otherwise.")
@click.option("--approval", is_flag=True, help="Switch the approval gates on.")
@click.option("--switch", multiple=True, metavar="NAME=on|off", help="Any other switch of the pipeline.")
@click.option("--param", multiple=True, metavar="NAME=VALUE", help=running.PARAM_HELP)
@click.option("--params-file", default=None, metavar="FILE", help="Parameters as a mapping, in YAML or JSON.")
@click.option("--limit", multiple=True, metavar="UNIT=N", help=running.LIMIT_HELP)
def add(
    request: str,
    pipeline: str,
    agent: str,
    role_agent: tuple[str, ...],
    name: str,
    approval: bool,
    switch: tuple[str, ...],
    param: tuple[str, ...],
    params_file: str | None,
    limit: tuple[str, ...],
) -> Answer:
    """Queue a request behind the others. What is wrong with it is said now."""
    from tenuto.core.decisions.engine import refuse_switches
    from tenuto.core.pipeline.params import values
    from tenuto.engine.attempt import define
    from tenuto.engine.many.queue import add as put
    from tenuto.workspace.settings import read_settings

    workspace = open_here()
    settings = read_settings(workspace.root, workspace.state)
    chosen = pipeline or settings.get("pipeline", running.USUAL)
    switches, limits = running.switches_of(approval, switch), running.limits_of(limit)
    params = running.params_of(workspace, chosen, param, params_file)
    checked = define(chosen, workspace.root)["pipeline"]
    if checked["starts_from"] != "new":
        raise BadInput(
            "not-new", f"{chosen} goes on from another run, and cannot be queued", "tenuto run --run RUN ..."
        )
    refuse_switches(checked, switches)
    given: dict[str, ParamValue] = values(checked["name"], checked["params"], params)
    roster = running.roster_of(workspace, settings, agent, role_agent)
    wanted: Wanted = {
        "request": running.request_of(request),
        "pipeline": pipeline,
        "name": name,
        "agent": agent,
        "roles": dict(roster.choice.get("roles", {})),
        "switches": switches,
        "params": {one: given[one] for one in params if one in given},
        "limits": {**limits.run},
        "steps": {step: {**own} for step, own in limits.steps.items()},
    }
    entry = put(workspace, wanted)
    view = queue_view(workspace)
    lines: list[Part] = [f"request {entry['id']} is queued"]
    if not view["worked_off"]:
        lines.append("  nobody works off the queue: tenuto up")
    return Answer(entry, lines)


@queue.command("remove", cls=Command, examples=[("tenuto queue remove 3", "a request that has not begun")])
@click.argument("entry")
@click.option("--reason", default="", help="Words for the record.")
def remove(entry: str, reason: str) -> Answer:
    """Take a request out of the queue. One that has begun is a run: tenuto cancel."""
    from tenuto.engine.many.queue import drop

    drop(open_existing(), entry, reason)
    return Answer({"entry": entry}, [f"request {entry} is out of the queue"])


@queue.command("retry", cls=Command, examples=[("tenuto queue retry 3", "what kept it back is mended")])
@click.argument("entry")
def retry(entry: str) -> Answer:
    """Let a request that was refused wait for its turn again."""
    from tenuto.engine.many.queue import renew

    renew(open_existing(), entry)
    return Answer({"entry": entry}, [f"request {entry} waits for its turn again"])


@queue.command(
    "start",
    cls=Command,
    examples=[("tenuto queue start 3", "begin it now, here, in a tree of its own, and drive it until it rests")],
)
@click.argument("entry")
def start(entry: str) -> Answer:
    """Begin a request now, or go on with its run, until the run rests. This is what tenuto up does with each."""
    workspace = open_existing()
    known = _entry(workspace, entry)
    try:
        return _go_on(workspace, known["run"]) if known["run"] else _begin(workspace, known)
    except TenutoError as problem:
        if not problem.retryable and problem.code not in ("already-begun", "interrupted"):
            from tenuto.engine.many.queue import refuse

            refuse(workspace, entry, f"{problem.message}{f' ({problem.hint})' if problem.hint else ''}")
        raise


def _entry(workspace: Workspace, entry: str) -> QueueEntry:
    with workspace.journal.read() as reader:
        found = reader.load_repo()["queue"].get(entry)
    if found is None:
        raise Refused("no-such-request", f"there is no request {entry!r} in the queue", "tenuto queue", entry=entry)
    return found


def _begin(workspace: Workspace, entry: QueueEntry) -> Answer:
    from tenuto.engine.begin import Place
    from tenuto.workspace.settings import read_settings

    wanted, settings = entry["wanted"], read_settings(workspace.root, workspace.state)
    roles = tuple(f"{role}={agent}" for role, agent in wanted["roles"].items())
    roster = running.roster_of(workspace, settings, wanted["agent"], roles)

    def note(turn: Turn, run: str) -> None:
        turn.do_repo({"do": "BeginRequest", "entry": entry["id"], "run": run})

    limits = running.Limits(_numbers(wanted["limits"]), {step: _numbers(own) for step, own in wanted["steps"].items()})
    pipeline = wanted["pipeline"] or settings.get("pipeline", running.USUAL)
    asked = running.New(
        wanted["request"], pipeline, wanted["name"], wanted["switches"], {**wanted["params"]}, limits, current=False
    )
    there, run = running.begin(workspace, asked, roster, Place(settings.get("workspace", ""), own_tree=""), note)
    return running.drive(there, run, roster, waits=True)


def _numbers(limits: dict[str, int | None]) -> dict[str, int]:
    return {unit: limit for unit, limit in limits.items() if limit is not None}


def _go_on(workspace: Workspace, run: str) -> Answer:
    from tenuto.workspace.settings import read_settings

    there = home(workspace, run)
    roster = running.roster_of(there, read_settings(there.root, there.state), "", (), run)
    return running.drive(there, run, roster, waits=True)


# ---- up ------------------------------------------------------------------


@click.command(
    "up",
    cls=Command,
    examples=[
        ("tenuto up", "work off the queue and the schedules, until you end it"),
        ("tenuto up --once", "what is due now, and then end: for cron"),
        ("tenuto up --unit systemd > ~/.config/systemd/user/tenuto.service", "a service of yours that keeps it up"),
    ],
)
@click.option("--once", is_flag=True, help="End when nothing is left to do now.")
@click.option(
    "--unit", type=click.Choice(["systemd", "cron"]), default=None, help="Print a unit for it; start nothing."
)
def up(once: bool, unit: str | None) -> Answer:
    """Work off the queue: each request in a git work tree of its own, so many at once as the settings say.

    Schedules are queued when their time has come. Parked runs are waited for. It may be ended, or killed, at any time:
    runs that are under way go on until they rest, and the next `tenuto up` takes over. A second one waits.
    """
    workspace = open_here()
    if unit is not None:
        text = _unit(unit, workspace.root)
        return Answer({"unit": unit, "text": text}, raw=text.encode())
    from tenuto.engine.many.queue import Up, alone
    from tenuto.engine.many.timetable import schedules_of, zone_name
    from tenuto.workspace.guard import require_person
    from tenuto.workspace.settings import read_settings

    require_person(workspace.caller, "work off the queue", "tenuto up")
    settings = read_settings(workspace.root, workspace.state)
    schedules_of(settings)  # what is wrong with one is said before anything starts
    _refuse_untrusted(workspace)
    with alone(workspace, wait=False) as ours:
        if ours:
            say(f"working off the queue; times are meant in {zone_name(settings.get('zone', ''))}")
            return _work_off(workspace, Up(workspace, lambda entry, log: _drive(workspace, entry, log), say), once)
    if once:
        return Answer({"worked_off": "elsewhere"}, ["another tenuto up works off the queue"])
    say("another tenuto up works off the queue; this one waits, and takes over when that one is gone")
    with alone(workspace, wait=True):
        say("taking over")
        return _work_off(workspace, Up(workspace, lambda entry, log: _drive(workspace, entry, log), say), once)


def _refuse_untrusted(workspace: Workspace) -> None:
    from tenuto.workspace import trust
    from tenuto.workspace.settings import read_settings

    settings = read_settings(workspace.root, workspace.state)
    trust.require(workspace, trust.of_settings(settings, workspace.root))


def _work_off(workspace: Workspace, work: Up, once: bool) -> Answer:
    from tenuto.core.status import BADLY

    while True:
        try:
            moved = work.step()
        except TenutoError as problem:
            if not problem.retryable:
                raise
            moved = False  # another program writes: the next look comes in a moment
        if once and not moved and work.is_idle:
            break
        if not moved:
            time.sleep(_LOOK_AGAIN)
    view = queue_view(workspace)
    bad = any(status in BADLY for _, status in work.ended) or any(one["problem"] for one in view["entries"])
    waits = any(one["standing"] == "begun" for one in view["entries"])
    data = {"ended": [{"run": run, "status": status} for run, status in work.ended], "queue": view}
    return Answer(data, _parts(view), 1 if bad else 5 if waits else 0)


def _drive(workspace: Workspace, entry: str, log: str) -> subprocess.Popen[bytes]:
    """A process of its own, which outlives this one: it drives one run until that rests."""
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "ab") as file:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", START, _PACKAGE, "-C", workspace.root, "queue", "start", "--", entry],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=workspace.root,
            start_new_session=True,
            close_fds=True,
        )


_SYSTEMD = """\
# systemctl --user daemon-reload && systemctl --user enable --now tenuto
# It also runs while you are not logged in after: loginctl enable-linger
[Unit]
Description=Tenuto works off the queue of {root}

[Service]
WorkingDirectory={root}
ExecStart={command}
Restart=on-failure
RestartSec=30
# To stop it ends this process alone: agents and engines that are at work go on until their runs rest.
KillMode=process
Environment=PATH={path}

[Install]
WantedBy=default.target
"""
_CRON = """\
# crontab -e: every ten minutes what is due; where another one is at work, it ends at once.
PATH={path}
*/10 * * * * cd {root} && {command} --once >> {log} 2>&1
"""


def _unit(kind: str, root: str) -> str:
    if any(character in root for character in "\n%"):
        raise BadInput("bad-folder", f"a unit cannot name {escape_terminal(root)}", "move the repository")
    command = f"{shlex.quote(sys.executable)} -m tenuto up"
    path = os.environ.get("PATH", os.defpath)
    if kind == "systemd":
        return _SYSTEMD.format(root=root, command=command, path=path)
    log = shlex.quote(f"{root}/.git/tenuto/up.log" if os.path.isdir(f"{root}/.git") else f"{root}/.tenuto/up.log")
    return _CRON.format(root=shlex.quote(root), command=command, path=path, log=log)


# ---- all runs, and what they cost --------------------------------------------


@click.command(
    "runs",
    cls=Command,
    examples=[
        ("tenuto runs", "what needs you, what is under way, in which tree, driven by whom, at what cost"),
        ("tenuto runs --all", "and what has ended"),
    ],
)
@click.option("--all", "ended", is_flag=True, help="The latest that have ended, too.")
def runs(ended: bool) -> Answer:
    """All runs of this repository and of its trees at a glance: what needs you first."""
    workspace = open_here()
    view = inbox_view(workspace)
    return Answer(view, _glance(workspace, view, ended))


def _glance(workspace: Workspace, view: InboxView, ended: bool) -> Iterator[Part]:
    now = workspace.clock()
    groups = [("needs you", view["needs_you"]), ("under way", view["under_way"])]
    groups += [("ended", view["recent"])] if ended else []
    shown = [(title, entries) for title, entries in groups if entries]
    if not shown:
        yield "no run waits or is under way" if view["recent"] else "no runs here"
    for title, entries in shown:
        if title != shown[0][0]:
            yield ""
        yield Heading(f"{title}: {counted(len(entries), 'run')}")
        yield Table(
            ("RUN", "STATUS", "STEP", "DRIVEN", "TREE", "COST", "AGE", "WAITS FOR"),
            [_entry_row(workspace, one, now) for one in entries],
        )
        for one in entries:
            if one["driven"]["command"]:
                yield f"  try: {one['driven']['command']}"


def _entry_row(workspace: Workspace, one: InboxEntry, now: str) -> tuple[str, ...]:
    figures = one["figures"]
    cost = amount("micro_usd", figures["micro_usd"]) if figures and figures["micro_usd"] is not None else "-"
    waits = one["waits"]["text"] if one["waits"] else one["error"]
    tree = one["tree"] or "-"
    shown = os.path.relpath(tree, workspace.root) if tree != "-" else tree
    age = span(between(one["created_at"], now))
    return (
        one["run"],
        one["status"],
        one["position"] or "-",
        one["driven"]["by"],
        shown,
        cost,
        age,
        _short(waits) or "-",
    )


@click.command(
    "costs",
    cls=Command,
    examples=[
        ("tenuto costs", "by week, and what is left of the budget of all runs"),
        ("tenuto costs --by model --since 2026-11-01", "by model, from that day on"),
        ("tenuto costs --by day --csv > costs.csv", "for a spreadsheet"),
    ],
)
@click.option("--by", type=click.Choice(BY), default="week", help="What a line stands for.")
@click.option("--since", default="", metavar="DAY", help="Only what ended on this day or later: 2026-11-01.")
@click.option("--csv", "as_csv", is_flag=True, help="For a spreadsheet.")
def costs(by: CostsBy, since: str, as_csv: bool) -> Answer:
    """What all runs have cost, by what their agents' programs have reported."""
    if since and (milliseconds(f"{since}T00:00:00Z") is None or len(since) != len("2026-11-01")):
        raise BadInput("bad-day", f"'{since}' is no day", "--since 2026-11-01")
    view = costs_view(open_here(), by, since)
    return Answer(view, _costs(view), raw=costs_csv(view).encode() if as_csv else None)


def _costs(view: CostsView) -> Iterator[Part]:
    if not view["rows"]:
        yield "no attempt has ended" + (f" since {view['since']}" if view["since"] else "")
    else:
        heads = (view["by"].upper(), "COST", "TOKENS", "RUNS", "ATTEMPTS", "UNREPORTED", "TIME")
        rows = [_cost_row(one, one["name"] or "(not said)") for one in view["rows"]]
        yield Table(heads, [*rows, _cost_row(view["all"], "all")])
        if view["all"]["unreported"]:
            yield "unreported: attempts whose agent did not say what they cost; nothing is counted for them"
        if view["by"] in ("day", "week"):
            yield f"days are meant in {view['zone']}"
    for left in view["budget"]:
        of = "in all" if left["span"] == "ever" else "today"
        used = amount(left["unit"], left["used"])
        yield f"budget {of}: {used} used or promised of {amount(left['unit'], left['limit'])}"


def _cost_row(one: CostView, name: str) -> tuple[str, ...]:
    money = amount("micro_usd", one["micro_usd"]) if one["micro_usd"] is not None else "-"
    tokens = number(one["tokens"]) if one["tokens"] is not None else "-"
    return name, money, tokens, str(one["runs"]), str(one["attempts"]), str(one["unreported"]), span(one["ms"])
