"""One sitting with a run: drive it until it rests, ask the person where one is there, tell what happened.

    rest = sit(workspace, run_id, crew, settings, ...)

Without anybody to ask, a gate is not passed: the run waits. `approve` as an answer given in advance is recorded as such.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from typing import Any

from tenuto.core.decisions.runs import ENDED
from tenuto.core.records import Run
from tenuto.drivers.bound import definition_of, pipeline_of
from tenuto.drivers.local import Engine
from tenuto.drivers.notices import notify
from tenuto.drivers.persons import decide_gate, hash_of
from tenuto.drivers.protection import proof
from tenuto.drivers.start import check_crew
from tenuto.workspace.guard import refuse_attempts, require_person
from tenuto.workspace.turn import Turn, Workspace

Ask = Callable[[Run], tuple[str, str] | None]
"""Shows the gate to a person: (decision, feedback), or None where nobody answers."""


def sit(
    workspace: Workspace, name: str, crew: Any, settings: dict[str, Any], *, watcher: Any = None, ask: Ask | None = None,
    in_advance: str = "",
) -> Run:  # fmt: skip
    if in_advance:
        require_person(f"{in_advance} gates in advance", f"tenuto run --no-input={in_advance}")
    refuse_attempts(workspace.state, "drive a run")
    _check(workspace, name, crew)
    with workspace.turn() as turn:
        remember(turn, name, crew)
    engine = Engine(workspace, name, crew, settings, watcher)
    while True:
        run = engine.drive()
        if run["status"] != "waiting_gate":
            break
        if in_advance:
            run = _decide_in_advance(workspace, name, in_advance, settings)
            continue
        told = ask(run) if ask is not None else None
        if told is None:
            break
        decide_gate(workspace, name, told[0], told[1], settings, gate=run["gate"]["id"] if run["gate"] else "")
    notify(workspace, run, settings)
    return run


def is_driven(workspace: Workspace, name: str) -> bool:
    """Whether an engine of this machine is at work on the run."""
    try:
        lock = os.open(f"{workspace.state}/attempts/{name}/engine.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(lock)


def _check(workspace: Workspace, name: str, crew: Any) -> None:
    """Also when others go on with the run: who reports nothing does not work under a limit in money."""
    run = workspace.load(name)
    with workspace.journal.read() as reader:
        definition = definition_of(reader, run)
    of_steps = {step: account["limits"] for step, account in run["budget"]["steps"].items()}
    check_crew(definition, run["budget"]["limits"], of_steps, crew)


def remember(turn: Turn, name: str, crew: Any) -> None:
    """Who was asked for goes on with the run, until somebody else is asked for: after a kill nobody has to say it again."""
    run, said = turn.existing(name), getattr(crew, "said", {})
    known = run["settings"].get("crew", {})
    if run["status"] not in ENDED and any(known.get(word) != value for word, value in said.items()):
        turn.do(name, {"do": "ChangeSettings", "changes": {"crew": said}})


def _decide_in_advance(workspace: Workspace, name: str, decision: str, settings: dict[str, Any]) -> Run:
    with workspace.turn() as turn:
        run = turn.existing(name)
        proof(workspace.root, run, decision, "", settings, "", "")  # refused where decisions are signed, by the run or by now
        gate = run["gate"]
        shown = [
            {"path": e["path"], "sha256": hash_of(workspace.root, e["path"])} for e in (gate["shown"] if gate else [])
        ]
        said = f"given in advance: --no-input={decision}"
        decided: Any = {
            "do": "DecideGate",
            "decision": decision,
            "who": said,
            "shown": shown,
            "proof": {"level": "in advance"},
        }
        turn.do(name, decided, pipeline_of(turn.tx, run))
        return run
