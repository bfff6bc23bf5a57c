"""Drive a run until it rests, and what belongs to its rest: notices, and the end for good.

    run = drive_until_rest(workspace, run_id, roster, settings, ...)
    run = wait_for_time(workspace, run)       a parked run is waited for, by a process that any other may replace
    notify(workspace, run, settings)
    cancel(workspace, "dark-mode", "not needed")

Without a person to ask, a gate is not passed: the run waits. `approve` as an answer given in advance is recorded as
such. A run that is parked goes on when its time has come, where whoever drives it waits for that: by the clock of the
wall, looked at again and again, so that a machine that slept goes on as soon as it is awake. Who decides otherwise
meanwhile (resume --now, cancel) is heard at once.

A notice says that a run waits, has failed or has finished, to whom the settings name for that moment (core/status.py
has the moments, notices/ delivers). It is never in the way of the run: one that cannot be delivered is a warning and a
line in the run's history, and the others are delivered all the same. Traces and metrics (telemetry/) are sent at the
same time, where the environment names a collector.

cancel ends a run's agents, the project's commands that run for them, and everything they started. The journal records
it first: an engine that is about to start something finds that it may not. Where no engine drives the run, what its
attempts left is collected here: none stays under way in a run that is over, and in work trees nothing is lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tenuto.agents.roster import NOBODY, Choice, Roster
from tenuto.core.approvals import protection
from tenuto.core.decisions.runs import too_early
from tenuto.core.pipeline.params import missing
from tenuto.core.records.run import Run
from tenuto.core.status import ENDED, MOMENTS, moment_of
from tenuto.engine.attempt import definition_of, pipeline_of
from tenuto.engine.begin import check_roster, limits_of_all
from tenuto.engine.boundary import refuse_beside
from tenuto.engine.gates import (
    at_home,
    command,
    decide_gate,
    proof,
    refuse_elsewhere,
    refuse_forged,
    refuse_open,
    refuse_untrusted,
    shown_now,
)
from tenuto.engine.loop import Engine, refuse_handed_out
from tenuto.engine.receipts import end_all
from tenuto.errors import Refused, TenutoError
from tenuto.notices.delivery import Failure, deliver
from tenuto.notices.notice import notice_of
from tenuto.supervise.attempts import is_out_of_reach
from tenuto.supervise.records import FileLock, is_locked, make_directory
from tenuto.telemetry.export import export, is_collected
from tenuto.telemetry.trace import spans_of
from tenuto.workspace.guard import refuse_attempts, require_person
from tenuto.workspace.locate import main_root
from tenuto.workspace.settings import settings_of, targets
from tenuto.workspace.workspace import Turn, Workspace

if TYPE_CHECKING:
    from tenuto.core.records.commands import DecideGate
    from tenuto.core.records.run import Moment
    from tenuto.engine.judge import Whose
    from tenuto.engine.loop import Watcher
    from tenuto.workspace.settings import Settings

_LOOK_AGAIN = 1.0  # seconds: how late a run that was parked goes on at most


def notify(workspace: Workspace, run: Run, settings: Settings, moment: Moment | None = None) -> None:
    """`moment`: None: the one that the run rests at."""
    said = moment or moment_of(run)
    wanted = [target for target in targets(settings) if said in target.get("on", _UNASKED)]
    if not wanted:
        return
    try:
        refuse_untrusted(workspace, run)
    except TenutoError as problem:
        workspace.warn(f"nobody was notified: {problem.message}")
        return
    repository = os.path.basename(main_root(workspace.root, workspace.tree, workspace.state) or workspace.root)
    masked = workspace.secrets.value(notice_of(run, repository, said))
    failures = [one for target in wanted for one in deliver(target, masked, workspace.root)]
    _record(workspace, run["id"], said, failures)


_UNASKED = tuple(moment for moment in MOMENTS if moment != "asks")  # who is asked at a terminal sits before it


def _record(workspace: Workspace, name: str, moment: Moment, failures: list[Failure]) -> None:
    """A notice that reached nobody is a warning now, and a line in the history for whoever waited for it."""
    for channel, why in failures:
        text = str(workspace.secrets.value(f"nobody was notified by {channel}: {why}"))
        workspace.warn(text)
        try:
            with workspace.turn() as turn:
                turn.do(name, {"do": "Note", "text": text, "extra": {"notice": moment, "channel": channel}})
        except TenutoError as problem:
            workspace.warn(f"that is not in the history: {problem.message}")


def send_telemetry(workspace: Workspace, run: Run) -> None:
    """What has ended, to the collector that the environment names. Like a notice: never in the way of the run."""
    if not is_collected(os.environ):
        return
    spans = [workspace.secrets.value(span) for span in spans_of(run)]
    why = export(spans, f"{workspace.state}/attempts/{run['id']}/telemetry")
    if why:
        workspace.warn(str(workspace.secrets.value(f"telemetry was not sent: {why}")))


# ---- driving


class Decided(NamedTuple):
    """A person's word at a gate."""

    decision: str
    feedback: str = ""
    answers: Mapping[str, object] | None = None  # by field, of an approval
    signature: str = ""
    signer: str = ""


Ask = Callable[[Run], Decided | None]
"""Shows the gate to a person; None where there is no answer."""
Wait = Callable[[Run], None]
"""Is told that the run is parked, before it is waited for."""


class MakeEngine(Protocol):
    """What drives a run: Engine, or one whose attempts are carried out elsewhere."""

    def __call__(
        self, workspace: Workspace, run: str, roster: Roster, settings: Settings, watcher: Watcher | None = None
    ) -> Engine: ...


def refuse_to_drive(workspace: Workspace, name: str, settings: Settings, given_up: bool = False) -> None:
    """Whatever an engine would refuse at its start, before anything is recorded on its behalf. `given_up`: what was
    handed out is about to be."""
    refuse_attempts(workspace.caller, workspace.state, "drive a run")
    run = workspace.load(name)
    workspace = at_home(workspace, run)
    refuse_elsewhere(workspace, run)
    refuse_untrusted(workspace, run)
    refuse_open(workspace, protection(run)["level"], settings)
    refuse_beside(workspace, name)
    if not given_up:
        refuse_handed_out(run)
    refuse_forged(workspace, run)


def drive_until_rest(
    workspace: Workspace,
    name: str,
    roster: Roster,
    settings: Settings,
    *,
    engine: MakeEngine = Engine,
    watcher: Watcher | None = None,
    ask: Ask | None = None,
    in_advance: str = "",
    wait: Wait | None = None,
    whose: Whose | None = None,
) -> Run:
    """`wait`: a parked run is waited for, and goes on; None: it is a rest like any other. `whose`: a person is there,
    who can say that they changed a file themselves."""
    if in_advance:
        require_person(workspace.caller, f"{in_advance} gates in advance", f"tenuto run --no-input={in_advance}")
    workspace = at_home(workspace, workspace.load(name))
    refuse_to_drive(workspace, name, settings)
    _check(workspace, name, roster)
    with workspace.turn() as turn:
        remember(turn, name, roster)
    driver, has_waited = engine(workspace, name, roster, settings, watcher), False
    driver.whose = whose
    while True:
        run = _drive_in_turn(driver) if has_waited else driver.drive()
        if run["status"] == "parked" and wait is not None:
            notify(workspace, run, settings)
            wait(run)
            wait_for_time(workspace, run)
            has_waited = True
            continue
        if run["status"] != "waiting_gate":
            break
        if in_advance:
            lacking = _not_given(run)
            if lacking:
                workspace.warn(f"{run['id']} waits: nobody can answer {', '.join(lacking)} in advance")
                break
            run = _decide_in_advance(workspace, name, in_advance, settings)
            continue
        if ask is not None:
            notify(workspace, run, settings, "asks")
        answer = ask(run) if ask is not None else None
        if answer is None:
            if workspace.load(name)["status"] == "waiting_gate":
                break
            continue  # somebody else decided meanwhile
        shown = run["gate"]["id"] if run["gate"] else ""
        decision, feedback, answers, signature, signer = answer
        decide_gate(workspace, name, decision, feedback, settings, signature, signer, gate=shown, answers=answers)
    send_telemetry(workspace, run)
    notify(workspace, run, settings)
    return run


def _drive_in_turn(engine: Engine) -> Run:
    """After a wait another run may be at work in this work tree: it comes first."""
    while True:
        try:
            return engine.drive()
        except Refused as refusal:
            if refusal.code != "tree-driven":
                raise
        time.sleep(_LOOK_AGAIN)


def wait_for_time(workspace: Workspace, run: Run) -> None:
    """Until its time has come, or it is not parked any more."""
    until, pulse = run["pause"]["until"] if run["pause"] else "", ""
    path = _waiting_lock(workspace, run["id"])
    make_directory(os.path.dirname(path), 0o777)
    with FileLock(path):
        while too_early(until, workspace.clock()):
            now = workspace.journal.pulse()
            if now != pulse:
                pulse, standing = now, workspace.load(run["id"])
                if standing["status"] != "parked":
                    return
                until = standing["pause"]["until"] if standing["pause"] else ""
            time.sleep(_LOOK_AGAIN)


def is_driven(workspace: Workspace, name: str) -> bool:
    """Whether an engine of this machine is at work on the run."""
    path = f"{workspace.state}/attempts/{name}/engine.lock"
    return os.path.exists(path) and is_locked(path)


def is_waited_for(workspace: Workspace, name: str) -> bool:
    """Whether a process of this machine goes on with a parked run when its time has come."""
    return is_locked(_waiting_lock(workspace, name))


def _waiting_lock(workspace: Workspace, name: str) -> str:
    return f"{workspace.state}/attempts/{name}/waiting.lock"


def _check(workspace: Workspace, name: str, roster: Roster) -> None:
    """Also when other agents go on with the run: one that reports nothing does not work under a limit in money."""
    run = workspace.load(name)
    with workspace.journal.read() as reader:
        definition = definition_of(reader, run)
    of_steps = {step: account["limits"] for step, account in run["budget"]["steps"].items()}
    of_all = limits_of_all(settings_of(workspace.root, run, workspace.state))
    check_roster(definition, {**of_all, **run["budget"]["limits"]}, of_steps, roster)


def remember(turn: Turn, name: str, roster: Roster | None) -> None:
    """The run remembers the agents that were asked for: after a kill they need not be named again."""
    run, choice = turn.existing(name), roster.choice if roster else Choice()
    known = run["settings"].get("crew", {})
    if run["status"] not in ENDED and any(known.get(word) != value for word, value in choice.items()):
        turn.do(name, {"do": "ChangeSettings", "changes": {"crew": choice}})


def _not_given(run: Run) -> list[str]:
    """The fields of its gate that only a person can answer: they have no default."""
    return missing(run["gate"].get("fields", {}), {}) if run["gate"] else []


def _decide_in_advance(workspace: Workspace, name: str, decision: str, settings: Settings) -> Run:
    with workspace.turn() as turn:
        run = turn.existing(name)
        proof(workspace.root, run, decision, "", settings, "", "")  # refused where decisions are signed
        command: DecideGate = {
            "do": "DecideGate",
            "decision": decision,
            "who": f"given in advance: --no-input={decision}",
            "shown": shown_now(workspace.root, run),
            "proof": {"level": "in advance"},
        }
        turn.do(name, command, pipeline_of(turn.tx, run))
        return run


# ---- the end for good


def cancel(workspace: Workspace, name: str, reason: str = "", engine: MakeEngine = Engine) -> Run:
    workspace = at_home(workspace, workspace.load(name))
    _refuse_out_of_reach(workspace, name)
    run = command(workspace, name, {"do": "Cancel", "reason": reason})
    in_flight = list(workspace.load(name)["in_flight"])
    for attempt in in_flight:
        end_all(f"{workspace.state}/attempts/{name}/{attempt}")
    ours = [attempt for attempt in in_flight if run["attempts"][attempt]["agent"] != "guided"]
    if ours and run["driver"] == "engine" and not is_driven(workspace, name):
        _collect(workspace, name, engine)
    return workspace.load(name)


def _refuse_out_of_reach(workspace: Workspace, name: str) -> None:
    """A run whose agents go on is not cancelled."""
    run = workspace.load(name)
    if run["in_flight"]:
        refuse_elsewhere(workspace, run)
    for attempt in list(run["in_flight"]) if run is not None else []:
        folder = f"{workspace.state}/attempts/{name}/{attempt}"
        starts = [one for one in sorted(os.listdir(folder)) if one.isdigit()] if os.path.isdir(folder) else []
        if any(is_out_of_reach(f"{folder}/{start}") for start in starts):
            message = f"{attempt} runs where this process sees nothing: in another container, or PID namespace"
            raise Refused("out-of-reach", message, f"there: tenuto cancel {name}", attempt=attempt)


def _collect(workspace: Workspace, name: str, engine: MakeEngine) -> None:
    try:
        settings = settings_of(workspace.root, workspace.load(name), workspace.state)
        engine(workspace, name, Roster(NOBODY), settings).drive()
    except TenutoError as problem:
        workspace.warn(f"what the attempts of {name} left was not collected: {problem.message}")
