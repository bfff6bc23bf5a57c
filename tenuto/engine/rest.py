"""Drive a run until it rests, and what belongs to its rest: notices, and the end for good.

    run = drive_until_rest(workspace, run_id, roster, settings, ...)
    run = wait_for_time(workspace, run)       a parked run is waited for, by a process that any other may replace
    notify(workspace, run, settings)
    cancel(workspace, "dark-mode", "not needed")

Without a person to ask, a gate is not passed: the run waits. `approve` as an answer given in advance is recorded as
such. A run that is parked goes on when its time has come, where whoever drives it waits for that: by the clock of the
wall, looked at again and again, so that a machine that slept goes on as soon as it is awake. Who decides otherwise
meanwhile (resume --now, cancel) is heard at once.

A notice says that a run waits, has failed or has finished: a command is run, a URL is posted to. It is never in the way
of the run. A notice that cannot be delivered is a warning, and the other one is delivered all the same. What a command
leaves in the background is not waited for, and what takes longer than its time is ended with everything it started.

cancel ends a run's agents, the project's commands that run for them, and everything they started. The journal records
it first: an engine that is about to start something finds that it may not. Where no engine drives the run, what its
attempts left is collected here: none stays under way in a run that is over, and in work trees nothing is lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tenuto.agents.roster import NOBODY, Choice, Roster
from tenuto.core.approvals import protection
from tenuto.core.decisions.runs import too_early
from tenuto.core.pipeline.params import missing
from tenuto.core.records.run import Run
from tenuto.core.status import ENDED, open_ends, shown_status_of, waits_for
from tenuto.encoding import dumps
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
from tenuto.supervise.attempts import is_out_of_reach
from tenuto.supervise.records import FileLock, is_locked, make_directory
from tenuto.workspace.guard import refuse_attempts, require_person
from tenuto.workspace.settings import settings_of
from tenuto.workspace.workspace import Turn, Workspace

if TYPE_CHECKING:
    from tenuto.core.records.commands import DecideGate
    from tenuto.engine.loop import Watcher
    from tenuto.workspace.settings import Settings

_SECONDS = 20
_LOOK_AGAIN = 1.0  # seconds: how late a run that was parked goes on at most


def notify(workspace: Workspace, run: Run, settings: Settings) -> None:
    wanted = settings.get("notify", {})
    if not wanted:
        return
    try:
        refuse_untrusted(workspace, run)
    except TenutoError as problem:
        workspace.warn(f"nobody was notified: {problem.message}")
        return
    waiting, ends = waits_for(run), open_ends(run)
    notice: dict[str, object] = {
        "run": run["id"],
        "status": shown_status_of(run),
        "step": run["position"],
        "prompt": waiting["reason"] if waiting else "",
        "error": run["failure"]["error"] if run["failure"] else "",
    }
    left = [*ends["failed"], *ends["never_started"], *ends["not_done"], *ends["checks"]]
    if left:
        notice["open_ends"] = left
    body = dumps(workspace.secrets.value(notice)).encode()
    for target, deliver in ((wanted.get("command"), _run), (wanted.get("url"), _post)):
        if target is not None:
            try:
                deliver(workspace, target, body)
            except Exception as error:  # noqa: BLE001  # every failure is a warning, and changes nothing
                workspace.warn(f"nobody was notified: {error}")


def _run(workspace: Workspace, command: str, notice: bytes) -> None:
    with tempfile.TemporaryFile() as errors:
        begun = subprocess.Popen(
            command,
            shell=True,
            cwd=workspace.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            begun.communicate(notice, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(begun.pid, signal.SIGKILL)
            begun.wait()
            raise RuntimeError(f"{command!r} took longer than {_SECONDS} seconds") from None
        if begun.returncode != 0:
            errors.seek(0)
            why = errors.read()[-300:].decode("utf-8", "replace").strip()
            raise RuntimeError(f"{command!r} ended with exit status {begun.returncode}{f': {why}' if why else ''}")


def _post(workspace: Workspace, url: str, notice: bytes) -> None:
    from urllib.request import Request, urlopen

    with urlopen(Request(url, notice, {"Content-Type": "application/json"}), timeout=_SECONDS):
        pass


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
) -> Run:
    """`wait`: a parked run is waited for, and goes on; None: it is a rest like any other."""
    if in_advance:
        require_person(workspace.caller, f"{in_advance} gates in advance", f"tenuto run --no-input={in_advance}")
    workspace = at_home(workspace, workspace.load(name))
    refuse_to_drive(workspace, name, settings)
    _check(workspace, name, roster)
    with workspace.turn() as turn:
        remember(turn, name, roster)
    driver, has_waited = engine(workspace, name, roster, settings, watcher), False
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
        answer = ask(run) if ask is not None else None
        if answer is None:
            if workspace.load(name)["status"] == "waiting_gate":
                break
            continue  # somebody else decided meanwhile
        shown = run["gate"]["id"] if run["gate"] else ""
        decision, feedback, answers, signature, signer = answer
        decide_gate(workspace, name, decision, feedback, settings, signature, signer, gate=shown, answers=answers)
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
