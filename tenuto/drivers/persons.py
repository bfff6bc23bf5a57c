"""What only a person may do: decide a gate, answer a question, let a paused run go on, end it.

Levels of protection, honestly: *guarded* refuses a decision when any process above this one is a supervisor (a mistake-proof
default; the same user can still go around it). *signed* needs an ssh signature over the gate and the hashes of what was
shown: forgery is detectable. *isolated* says that agents run as another user or in a sandbox, which is the
administrator's doing; Tenuto checks what guarded checks.
"""

from __future__ import annotations

import getpass
import os
import subprocess
import tempfile
from typing import Any

from tenuto.core.records import Run
from tenuto.drivers.bound import pipeline_of
from tenuto.encoding import dumps
from tenuto.errors import Refused
from tenuto.supervise.attempts import enclosing_attempt
from tenuto.workspace.objects import hash_at
from tenuto.workspace.turn import Turn, Workspace

NAMESPACE = "tenuto-gate"


def who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def refuse_agents(what: str) -> None:
    attempt = enclosing_attempt()
    if attempt is not None:
        raise Refused(
            "agent-decides",
            f"attempt {attempt} cannot {what}: only a person can",
            "leave it to the person who runs Tenuto",
            attempt=attempt,
        )


def decide_gate(
    workspace: Workspace,
    name: str,
    decision: str,
    feedback: str,
    settings: dict[str, Any],
    signature: str = "",
    signer: str = "",
) -> Run:
    """Once, for exactly what was shown. The engine goes on with it when it is next driven."""
    refuse_agents(f"{decision} a gate")
    with workspace.turn() as turn:
        run = turn.existing(name)
        proof = _proof(workspace, run, decision, settings, signature, signer)
        shown = [
            {"path": entry["path"], "sha256": hash_at(workspace.root, entry["path"])}
            for entry in (run["gate"] or {"shown": []})["shown"]
        ]
        decided: Any = {
            "do": "DecideGate",
            "decision": decision,
            "feedback": feedback,
            "who": signer or who(),
            "shown": shown,
            "proof": proof,
        }
        turn.do(name, decided, _pipeline(turn, run))
        return run


def statement(run: Run, decision: str) -> str:
    """What is signed: the run, the gate, the decision, and the hash of everything shown."""
    gate = run["gate"]
    if gate is None:
        raise Refused("no-gate", f"run {run['id']} waits for no gate", f"tenuto status {run['id']}")
    return (
        dumps(
            {"run": run["id"], "gate": gate["id"], "name": gate["name"], "decision": decision, "shown": gate["shown"]}
        )
        + "\n"
    )


def _proof(
    workspace: Workspace, run: Run, decision: str, settings: dict[str, Any], signature: str, signer: str
) -> dict[str, Any]:
    level = settings.get("gates", "guarded")
    if level != "signed":
        return {"level": level}
    signers = os.path.join(workspace.root, settings.get("signers", ".tenuto/signers"))
    if not signature or not signer:
        raise Refused(
            "not-signed", "decisions in this repository are signed", "tenuto approve RUN --sign-with KEY --as NAME"
        )
    if not verify_signature(statement(run, decision), signature, signer, signers):
        raise Refused("bad-signature", f"the signature is not {signer}'s over what this gate shows", "sign it again")
    return {"level": level, "signature": signature, "signer": signer, "statement": statement(run, decision)}


def sign(text: str, key: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(
            ["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", NAMESPACE, file.name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Refused("cannot-sign", f"ssh-keygen cannot sign with {key}: {done.stderr.strip()}", "check the key")
        path = file.name + ".sig"
        try:
            with open(path, encoding="ascii") as signed:
                return signed.read()
        finally:
            os.unlink(path)


def verify_signature(text: str, signature: str, signer: str, signers: str) -> bool:
    with tempfile.NamedTemporaryFile("w", suffix=".sig") as file:
        file.write(signature)
        file.flush()
        done = subprocess.run(
            ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", signer, "-n", NAMESPACE, "-s", file.name],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
    return done.returncode == 0


def answer_question(workspace: Workspace, name: str, text: str) -> Run:
    refuse_agents("answer a question")
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
    refuse_agents(asked["do"].lower())
    with workspace.turn() as turn:
        run = turn.existing(name)
        turn.do(name, asked, _pipeline(turn, run))
        return run


def _pipeline(turn: Turn, run: Run) -> Any:
    return pipeline_of(turn.tx, run) if run["pipeline"]["hash"] else None
