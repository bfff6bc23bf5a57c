"""How the gates of a run are protected against agents that decide, and what is done about it.

*guarded*: a decision is refused in an agent's process (workspace/guard.py). It keeps mistakes out; whoever works as the
same user can go around it.

*signed*: a decision carries an ssh signature over the gate and the hashes of what was shown. Who writes to the database
directly can still write one without: no engine goes on with it, and `tenuto verify` names it.

*isolated*: every agent is started through a command of yours (another user, a sandbox), and before the first one starts
it is tried whether the journal can be written from in there.

What a run began with holds to its end: .tenuto/config.yaml lies where agents can write, the run's own settings do not.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from tenuto.core.approvals import PROTECTION, decided, doubts, protection, standing, statement
from tenuto.core.records import Run
from tenuto.drivers.bound import pipeline_of
from tenuto.encoding import dumps
from tenuto.errors import Damaged, Refused
from tenuto.stores.verify import verify_run
from tenuto.workspace.turn import Workspace

NAMESPACE = "tenuto-gate"
_PROBE = 'if [ -w "$1" ] || [ -w "$2" ]; then echo open; else echo shut; fi'


def of_new_run(root: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What a run that begins now is bound to; no level where guarded, which is checked for every run."""
    level = settings.get("gates", "guarded")
    if level == "guarded":
        return {}
    signers = ""
    if level == "signed":
        path = settings.get("signers", ".tenuto/signers")
        try:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                signers = file.read()
        except (OSError, UnicodeDecodeError):
            pass
        if not signers.strip():
            hint = f"write lines `NAME ssh-ed25519 AAAA...` to {path}, as in ssh's allowed_signers"
            raise Refused("no-signers", f"decisions are signed here, but {path} names nobody who may", hint)
    return {PROTECTION: {"level": level, "signers": signers}}


def level_of(run: Run, settings: dict[str, Any]) -> str:
    """The stricter of what the run began with and what holds now."""
    both = (protection(run)["level"], settings.get("gates", "guarded"))
    return next((level for level in ("signed", "isolated") if level in both), "guarded")


# ---- signed ----------------------------------------------------------------------------------------


def proof(
    root: str, run: Run, decision: str, feedback: str, settings: dict[str, Any], signature: str, signer: str
) -> dict[str, Any]:
    level = level_of(run, settings)
    if level != "signed":
        return {"level": level}
    hint = f"tenuto {decision} {run['id']} --sign-with KEY --as NAME"
    if not signature or not signer:
        raise Refused("not-signed", "decisions in this repository are signed", hint)
    signers = protection(run)["signers"] or of_new_run(root, settings)[PROTECTION]["signers"]
    text = said(run, decision, feedback)
    if not is_signed(text, signature, signer, signers):
        raise Refused("bad-signature", f"the signature is not {signer}'s over what this gate shows", "sign it again")
    return {"level": level, "signature": signature, "signer": signer}


def said(run: Run, decision: str, feedback: str) -> str:
    """The text that is signed."""
    if run["gate"] is None:
        raise Refused("no-gate", f"run {run['id']} waits for no gate", f"tenuto status {run['id']}")
    return _text(statement(run["id"], run["gate"], decision, feedback))


def _text(told: dict[str, Any]) -> str:
    return dumps(told) + "\n"


def sign(text: str, key: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/decision"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = _ssh_keygen("-q", "-Y", "sign", "-f", key, "-n", NAMESPACE, path)
        if done.returncode != 0:
            raise Refused("cannot-sign", f"ssh-keygen cannot sign with {key}: {done.stderr.strip()}", "check the key")
        with open(path + ".sig", encoding="ascii") as signed:
            return signed.read()


def is_signed(text: str, signature: str, signer: str, signers: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("signers", signers), ("signature", signature)):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(content)
        asked = ("-Y", "verify", "-f", f"{folder}/signers", "-I", signer, "-n", NAMESPACE, "-s", f"{folder}/signature")
        return _ssh_keygen(*asked, given=text).returncode == 0


def _ssh_keygen(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=given, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Refused("no-ssh-keygen", "ssh-keygen is not installed, and decisions are signed", "install OpenSSH's client") from None


def forgeries(workspace: Workspace, name: str, signers: str = "") -> Iterator[str]:
    """What stands in the journal of a run that takes signed decisions, and was decided by nobody.

    `signers`: who may decide, from a place of your own; without it, those the run began with.
    """
    with workspace.journal.read() as reader:
        run = reader.load(name)
        if run is None or not (signers or protection(run)["level"] == "signed"):
            return
        events = list(reader.events(name))
        pipeline = pipeline_of(reader, run) if run["pipeline"]["hash"] else None
        persons = signers or protection(run)["signers"]
        carried = [(event, name) for event in events for name in _unvouched(reader, event, persons, ())]
    if pipeline is not None:
        yield from doubts(pipeline, run, events)
    for event, told in decided(name, events):
        given = event["proof"]
        if not given.get("signature"):
            yield f"gate {event['name']!r} was decided ({event['decision']}) without a signature"
        elif not _is_true(event, told, persons):
            yield f"the signature under {event['decision']} at gate {event['name']!r} is not {given.get('signer')}'s"
    for event, gate in carried:
        yield f"the approval of gate {gate!r} was carried over from {event['source']}, where no signed one stands"


def approved(reader: Any, name: str, pipeline: Any, signers: str, until: int | None = None, above: tuple[str, ...] = ()) -> list[str]:
    """The gates that stand approved in a run. With `signers`: by one of them, and their signature is a true one.

    `pipeline`: for a run that was led by hand. `until`: as many of its events. `above`: the forks that ask for it.
    """
    run = reader.load(name)
    if run is None or name in above:
        return []
    events = list(reader.events(name))[:until]
    if run["pipeline"]["hash"]:
        pipeline = pipeline_of(reader, run)
    if signers:
        true = [id(event) for event, told in decided(name, events) if _is_true(event, told, signers)]
        events = [event for event in events if event["type"] != "GateDecided" or id(event) in true]
        events = [{**event, "approved": _vouched(reader, event, signers, (*above, name))} if event["type"] == "Forked" else event for event in events]
    return standing(pipeline, events)


def _vouched(reader: Any, forked: Any, signers: str, above: tuple[str, ...]) -> list[str]:
    missing = _unvouched(reader, forked, signers, above)
    return [gate for gate in forked.get("approved", ()) if gate not in missing]


def _unvouched(reader: Any, event: Any, signers: str, above: tuple[str, ...]) -> list[str]:
    """Of the approvals that a fork took over: those that its source does not hold."""
    if event["type"] != "Forked" or not event.get("approved"):
        return []
    held = approved(reader, event["source"], {"steps": []}, signers, event["at_version"], above)
    return [gate for gate in event["approved"] if gate not in held]


def _is_true(event: Any, told: Any, signers: str) -> bool:
    given = event["proof"]
    return bool(given.get("signature")) and is_signed(_text(told), given["signature"], given.get("signer", ""), signers)


def refuse_forged(workspace: Workspace, run: Run) -> None:
    """Before anything of a run with signed decisions is carried on."""
    if protection(run)["level"] != "signed":
        return
    with workspace.journal.read():
        db = workspace.journal.connection()  # type: ignore[attr-defined]
        found = [f"{bad['where']}: {bad['message']}" for bad in verify_run(db, run["id"])]
    found += forgeries(workspace, run["id"])
    if found:
        message = f"the journal of run {run['id']} holds what nobody decided: {'; '.join(found)}"
        raise Damaged("forged-decision", message, "tenuto verify, then restore a backup or fork the run before that")


# ---- isolated --------------------------------------------------------------------------------------


def prefix(settings: dict[str, Any]) -> list[str]:
    """What every agent is started through."""
    return list(settings.get("isolation", []))


def refuse_open(workspace: Workspace, run: Run, settings: dict[str, Any]) -> None:
    """From where agents will be, the journal must not be writable."""
    if "isolated" not in (protection(run)["level"], settings.get("gates")):
        return
    words = prefix(settings)
    hint = "isolation: [setpriv, --reuid=agent, --regid=agent, --clear-groups, --]   in .tenuto/config.yaml"
    if not words:
        raise Refused("not-isolated", "agents are to be isolated, and `isolation` does not say how", hint)
    journal = f"{workspace.state}/journal.db"
    try:
        done = subprocess.run(
            [*words, "/bin/sh", "-c", _PROBE, "sh", journal, workspace.state], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise Refused("not-isolated", f"{words[0]} cannot be started: {error.strerror}", hint) from None
    told = done.stdout.strip()
    if told != "shut":
        why = f"the journal can be written through {' '.join(words)}" if told == "open" else done.stderr.strip() or "it said nothing"
        raise Refused("not-isolated", f"agents would not be isolated: {why}", "see docs/howto/protect-gates.md")
