"""What only a person may do: decide a gate, answer a question, let a paused run go on, end it.

Who asks is looked at in workspace/guard.py; what a decision must bring along is said in protection.py, and in core.
"""

from __future__ import annotations

import getpass
import os
from typing import Any

from tenuto.core.approvals import PASSED_ON, standing
from tenuto.core.pipeline import documents_of
from tenuto.core.records import Run
from tenuto.core.visits import step_of
from tenuto.drivers.bound import pipeline_of
from tenuto.drivers.jobs import existing
from tenuto.drivers.protection import proof
from tenuto.encoding import digest
from tenuto.errors import Refused
from tenuto.workspace.guard import refuse_agents, require_person
from tenuto.workspace.turn import Turn, Workspace

# To start nothing more is never wrong: a person's interactive agent may do that for them.
_HARMLESS = ("Pause", "Cancel")


def who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def exhibits(root: str, pipeline: Any, run: Run, step: str) -> list[Any]:
    """What a gate of the pipeline shows, as it is now: every file that its patterns name, by hash."""
    folder = documents_of(pipeline, run)
    gate: Any = step_of(pipeline, step)
    names = [name.replace("{slug}", run["id"]).replace("{iteration}", "*") for name in gate["gate"]["show"]]
    paths = [path for name in names for path in existing(root, os.path.normpath(f"{folder}/{name}"))]
    return [{"path": path, "sha256": hash_of(root, path)} for path in dict.fromkeys(paths)]


def hash_of(root: str, path: str) -> str | None:
    """Of what somebody reads there, also through a link; None where there is nothing to read."""
    full = os.path.join(root, path)
    try:
        with open(full if os.path.isfile(full) else "", "rb") as file:
            return digest(file.read())
    except OSError:
        return None


def decide_gate(
    workspace: Workspace,
    name: str,
    decision: str,
    feedback: str,
    settings: dict[str, Any],
    signature: str = "",
    signer: str = "",
    passed_on: str = "",
    gate: str = "",
) -> Run:
    """Once, for exactly what was shown. The engine goes on with it when it is next driven.

    `gate`: the one that the person saw, where it is known; a decision that comes late is not for the next one.

    `passed_on`: by what a model passes a person's word on, where a person allowed that (let_pass_on).
    """
    if passed_on:
        refuse_agents(f"{decision} a gate")
    else:
        require_person(f"{decision} a gate", f"tenuto {decision} {name}")
    with workspace.turn() as turn:
        run = turn.existing(name)
        given = proof(workspace.root, run, decision, feedback, settings, signature, signer)
        pipeline, stay = _pipeline(turn, run), run["stay"]
        shown = [
            {"path": entry["path"], "sha256": hash_of(workspace.root, entry["path"])}
            for entry in (run["gate"] or {"shown": []})["shown"]
        ]
        if pipeline is not None and stay is not None and step_of(pipeline, stay["step"])["kind"] == "gate":
            seen = [entry["path"] for entry in shown]
            shown += [entry for entry in exhibits(workspace.root, pipeline, run, stay["step"]) if entry["path"] not in seen]
        decided: Any = {
            "do": "DecideGate",
            "decision": decision,
            "feedback": feedback,
            "who": signer or who(),
            "shown": shown,
            "proof": {**given, "passed_on": passed_on} if passed_on else given,
        } | ({"gate": gate} if gate else {})
        turn.do(name, decided, pipeline)
        return run


def let_pass_on(workspace: Workspace, over: str, on: bool) -> None:
    """From now on, in this repository: a model may pass a person's decisions on over this, or may not."""
    word = "on" if on else "off"
    require_person(f"switch {word} that decisions are passed on", f"tenuto {over} --approve {word}")
    with workspace.turn() as turn:
        others = [one for one in turn.repo["settings"].get(PASSED_ON, ()) if one != over]
        turn.do_repo({"do": "ChangeSettings", "changes": {PASSED_ON: [*others, over] if on else others}})


def is_passed_on(workspace: Workspace, over: str) -> bool:
    with workspace.journal.read() as reader:
        return over in reader.load_repo()["settings"].get(PASSED_ON, ())


def answer_question(workspace: Workspace, name: str, text: str) -> Run:
    require_person("answer a question", f"tenuto answer {name} '...'")
    with workspace.turn() as turn:
        run = turn.existing(name)
        pause = run["pause"]
        if pause is None or pause["kind"] != "question":
            raise Refused("no-question", f"run {name} asks nothing", f"tenuto status {name}")
        seat = run["attempts"][pause["last_feedback"]]["extra"]["seat"]
        turn.do(name, {"do": "RecordAnswers", "answers": {f"question:{seat}": text}})
        turn.do(name, {"do": "Resume", "decision": "retry"})
        return run


def command(workspace: Workspace, name: str, asked: Any) -> Run:
    """Pause, resume, cancel, retry a step, raise a limit: asked by a person, decided by core."""
    if asked["do"] in _HARMLESS:
        refuse_agents(asked["do"].lower())
    else:
        require_person(asked["do"].lower(), f"tenuto {'retry' if asked['do'] == 'RetryStep' else 'resume'} {name} ...")
    with workspace.turn() as turn:
        run = turn.existing(name)
        pipeline = _pipeline(turn, run)
        if asked["do"] == "RetryStep" and pipeline is not None:
            asked = {**asked, "approved": standing(pipeline, turn.tx.events(name))}
        turn.do(name, asked, pipeline)
        return run


def _pipeline(turn: Turn, run: Run) -> Any:
    return pipeline_of(turn.tx, run) if run["pipeline"]["hash"] else None
