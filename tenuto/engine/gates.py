"""What only a person may do: decide a gate, answer a question, let a paused run go on, end it.

workspace/guard.py judges who asks. What a decision must bring along follows from how the gates of the run are
protected:

guarded    a decision is refused in an agent's process (workspace/guard.py). This keeps mistakes out; a program that
           works as
           the same user can go around it.
signed     a decision carries an ssh signature over the gate, the answers and the hashes of what was shown. A program
           that writes to the database directly can still write one without: no engine goes on with it, and `tenuto
           verify` names it.
isolated   every agent is started through a command of yours (another user, a sandbox), and before the first one starts
           the
           engine tries whether the journal can be written from in there.

What a run began with holds to its end: .tenuto/config.yaml lies where agents can write, the run's own settings do not.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tenuto.core.approvals import (
    PASSED_ON,
    PROTECTION,
    decided,
    doubts,
    identity,
    law,
    protection,
    standing,
    statement,
)
from tenuto.core.pipeline import forms
from tenuto.core.pipeline.check import documents_of
from tenuto.core.pipeline.params import wrong
from tenuto.core.records.run import Run
from tenuto.core.visit import step_of
from tenuto.encoding import digest, dumps
from tenuto.engine.attempt import definition_of, existing, pipeline_of
from tenuto.errors import BadInput, Damaged, NotFound, Refused
from tenuto.files.git_start import program_folders
from tenuto.workspace import trust
from tenuto.workspace.edits import tree_of
from tenuto.workspace.guard import Person, refuse_agents, require_person
from tenuto.workspace.locate import locate
from tenuto.workspace.settings import bound_in, read_settings, settings_of, stricter
from tenuto.workspace.workspace import Turn, Workspace, open_at

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Param, Pipeline
    from tenuto.core.records.commands import Command, DecideGate
    from tenuto.core.records.run import Json, PipelineRef, Shown
    from tenuto.ports import Reader
    from tenuto.workspace.settings import Settings

NAMESPACE = "tenuto-gate"
# Tried, not asked: whoever owns a file can give themselves the right to write it, and whoever may change the folder
# that it lies in can put another one in its place. To give a file its own time changes nothing, and only who owns it
# may; a folder that is not empty cannot be removed, and only who could is told so.
_PROBE = r"""
export LC_ALL=C
say() { echo "open $1"; exit 0; }
journal=$1 state=$2 trusted=$3
shift 3
for path in "$@"; do
  [ -r "$path" ] && say "$path can be read, which opens the journal"
done
for path in "$journal" "$journal-wal" "$journal-shm" "$state" "$state/trust-mark" "$trusted"; do
  [ -e "$path" ] || continue
  [ -w "$path" ] && say "$path can be written"
  touch -c -r "$path" "$path" 2>/dev/null && say "$path can be made writable"
done
folder=$state
while [ ! -e "$folder" ] && [ -n "$folder" ]; do folder=${folder%/*}; done
[ -w "${folder:-/}" ] && say "${folder:-/} can be written"
while [ -n "$folder" ]; do
  told=$(rmdir -- "$folder" 2>&1) && say "$folder can be removed"
  above=${folder%/*}
  case $told in
    *"not empty"*) say "$folder can be put elsewhere";;
    *busy*) ;;
    *) touch -c -r "${above:-/}" "${above:-/}" 2>/dev/null && say "${above:-/} can be made writable";;
  esac
  folder=$above
done
echo shut
"""


def of_new_run(root: str, settings: Settings) -> Json:
    """What a run that begins now is bound to: the commands of the settings, and how its gates are protected; no level
    where guarded, which is checked for every run."""
    level = settings.get("gates", "guarded")
    bound = bound_in(settings)
    if level == "guarded":
        return bound
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
    return {**bound, PROTECTION: {"level": level, "signers": signers, "instance": os.urandom(16).hex()}}


def level_of(run: Run, settings: Settings) -> str:
    """The stricter of what the run began with and what holds now."""
    return stricter(protection(run)["level"], settings.get("gates", "guarded"))


# ---- signed ----------------------------------------------------------------------------------------


def proof(
    root: str,
    run: Run,
    decision: str,
    feedback: str,
    settings: Settings,
    signature: str,
    signer: str,
    answers: Mapping[str, object] | None = None,
) -> Json:
    level = level_of(run, settings)
    if level != "signed":
        return {"level": level}
    hint = f"tenuto {decision} {run['id']} --sign-with KEY --as NAME"
    if not signature or not signer:
        raise Refused("not-signed", "decisions in this repository are signed", hint)
    signers = protection(run)["signers"] or of_new_run(root, settings)[PROTECTION]["signers"]
    text = text_to_sign(run, decision, feedback, answers)
    if not is_signed(text, signature, signer, signers):
        raise Refused("bad-signature", f"the signature is not {signer}'s over what this gate shows", "sign it again")
    return {"level": level, "signature": signature, "signer": signer}


def text_to_sign(run: Run, decision: str, feedback: str, answers: Mapping[str, object] | None = None) -> str:
    """`answers`: as they are given; signed are those that will be recorded, defaults included."""
    gate = run["gate"]
    if gate is None:
        raise Refused("no-gate", f"run {run['id']} waits for no gate", f"tenuto status {run['id']}")
    fields = gate.get("fields", {}) if decision == "approve" else {}
    whole = forms.complete(gate["name"], fields, answers or {}, run["id"]) if fields else None
    about = identity(run["settings"], run["pipeline"]["hash"])
    return _text(statement(run["id"], gate, decision, feedback, whole, about))


def _text(signed: Json) -> str:
    return dumps(signed) + "\n"


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
    """Never one that lies in the work tree, whatever PATH says."""
    program = shutil.which("ssh-keygen", path=os.pathsep.join(program_folders(locate(".")[0])))
    if program is None:
        raise Refused(
            "no-ssh-keygen", "ssh-keygen is not installed, and decisions are signed", "install OpenSSH's client"
        )
    return subprocess.run([program, *words], input=given, capture_output=True, text=True, check=False)


def forgeries(workspace: Workspace, name: str, signers: str = "") -> Iterator[str]:
    """What stands in the journal of a run that takes signed decisions, though no person decided it.

    `signers`: who may decide, from a place of your own; without it, those the run began with.
    """
    with workspace.journal.read() as reader:
        run = reader.load(name)
        if run is not None and (signers or protection(run)["level"] == "signed"):
            yield from _forgeries(reader, run, signers)


def _forgeries(reader: Reader, run: Run, signers: str = "") -> Iterator[str]:
    name = run["id"]
    events = list(reader.events(name))
    first = law(events).definition
    persons = signers or protection(run)["signers"]
    unvouched = [(event, name) for event in events for name in _unvouched(reader, event, persons, ())]
    if first.get("hash"):
        bound: PipelineRef = {"name": first["name"], "hash": first["hash"]}
        yield from doubts(pipeline_of(reader, {**run, "pipeline": bound}), events)
    for event, signed in decided(name, events):
        given = event["proof"]
        if not given.get("signature"):
            yield f"gate {event['name']!r} was decided ({event['decision']}) without a signature"
        elif not _is_true(event, signed, persons):
            yield f"the signature under {event['decision']} at gate {event['name']!r} is not {given.get('signer')}'s"
    for event, gate in unvouched:
        yield f"the approval of gate {gate!r} was carried over from {event['source']}, where no signed one stands"


def approved(
    reader: Reader,
    name: str,
    pipeline: Pipeline | None,
    signers: str,
    until: int | None = None,
    above: tuple[str, ...] = (),
) -> list[str]:
    """The gates that stand approved in a run. With `signers`: by one of them, and their signature is a true one.

    `pipeline`: for a run that was led by hand; None: none is known. `until`: as many of its events. `above`: the forks
    that ask for it.
    """
    run = reader.load(name)
    if run is None or name in above:
        return []
    events = list(reader.events(name))[:until]
    if run["pipeline"]["hash"]:
        pipeline = pipeline_of(reader, run)
    if signers:
        true = [id(event) for event, signed in decided(name, events) if _is_true(event, signed, signers)]
        events = [event for event in events if event["type"] != "GateDecided" or id(event) in true]
        events = [
            {**event, "approved": _vouched(reader, event, signers, (*above, name))}
            if event["type"] == "Forked"
            else event
            for event in events
        ]
    return standing(pipeline, events)


def _vouched(reader: Reader, forked: Json, signers: str, above: tuple[str, ...]) -> list[str]:
    missing = _unvouched(reader, forked, signers, above)
    return [gate for gate in forked.get("approved", ()) if gate not in missing]


def _unvouched(reader: Reader, event: Json, signers: str, above: tuple[str, ...]) -> list[str]:
    """Of the approvals that a fork took over: those that its source does not hold."""
    if event["type"] != "Forked" or not event.get("approved"):
        return []
    held = approved(reader, event["source"], None, signers, event["at_version"], above)
    given = _answers_in(list(reader.events(event["source"]))[: event["at_version"]])
    if any(given.get(step) != own for step, own in event.get("answers", {}).items()):
        held = []  # what was answered there is another thing
    return [gate for gate in event["approved"] if gate not in held]


def _answers_in(events: list[Json]) -> Json:
    """By the ids of the gates' steps, as forms.known reads them from a run."""
    found: Json = {}
    for event in events:
        if event["type"] == "Forked":
            found |= event.get("answers", {})
        elif event["type"] == "GateDecided" and event["approved"] and "answers" in event:
            found[event["step"]] = event["answers"]
    return found


def _is_true(event: Json, signed: Json, signers: str) -> bool:
    given = event["proof"]
    return bool(given.get("signature")) and is_signed(
        _text(signed), given["signature"], given.get("signer", ""), signers
    )


def refuse_forged_start(turn: Turn, run: Run) -> None:
    """Before anything is dispatched: what stands in the journal now, also since the engine took the run up."""
    if protection(run)["level"] == "signed":
        _refuse(run, list(_forgeries(turn.tx, run)))


def refuse_forged(workspace: Workspace, run: Run) -> None:
    """Before anything of a run with signed decisions is carried on."""
    if protection(run)["level"] != "signed":
        return
    with workspace.journal.read() as reader:
        found = [f"{bad['where']}: {bad['message']}" for bad in reader.verify_run(run["id"])]
    _refuse(run, [*found, *forgeries(workspace, run["id"])])


def _refuse(run: Run, found: list[str]) -> None:
    if found:
        message = f"the journal of run {run['id']} holds what nobody decided: {'; '.join(found)}"
        raise Damaged("forged-decision", message, "tenuto verify, then restore a backup or fork the run before that")


# ---- trusted ---------------------------------------------------------------------------------------


def refuse_untrusted(workspace: Workspace, run: Run) -> None:
    """Before anything that the repository brought is started for this run (workspace/trust.py)."""
    if not run["pipeline"]["hash"]:
        return  # led by hand: nothing is started
    with workspace.journal.read() as reader:
        definition = definition_of(reader, run)
    trust.require_bound(workspace, settings_of(workspace.root, run, workspace.state), definition)


def take_settings(workspace: Workspace, name: str) -> None:
    """From here on a run works with the commands that the settings have now: a person says so, and is asked to look."""
    words = f"tenuto resume {name} --new-settings"
    require_person(workspace.caller, "change the commands that a run works with", words)
    settings = read_settings(workspace.root, workspace.state)
    trust.require(workspace, trust.of_settings(settings, workspace.root))
    with workspace.turn() as turn:
        run = turn.existing(name)
        if protection(run)["level"]:
            message = f"run {name} began with its commands under the protection {protection(run)['level']}"
            raise Refused("protected", message, f"tenuto fork {name} --at STEP: the fork takes over the new ones")
        turn.do(name, {"do": "ChangeSettings", "changes": bound_in(settings)})


# ---- in its own work tree ----------------------------------------------------------------------------


def refuse_elsewhere(workspace: Workspace, run: Run) -> None:
    """A run belongs to the work tree that it began in, and to the checkout that drives it: there its files lie, and
    there people see what a gate shows."""
    if workspace.journal.home:
        with workspace.journal.read() as reader:
            at = reader.marker(f"home:{run['id']}")
        _refuse_other_home(run, at, workspace.journal.home)
    tree = run["settings"].get("work_tree") or tree_of(run)
    if tree == workspace.tree:
        return
    place = workspace.root_of(tree)
    if place is not None:  # where the tree is gone, nobody else can go on with it
        message = f"run {run['id']} belongs to the work tree {place}, and this is {workspace.root}"
        raise Refused("other-tree", message, f"cd {place}, then the same again", run=run["id"])


def opened(workspace: Workspace, root: str, tree: str, state: str) -> Workspace:
    """Another tree of the same repository, for the same caller."""
    there = open_at(root, tree, state, clock=workspace.clock, by=workspace.by)
    there.door, there.trusts, there.warnings = workspace.door, workspace.trusts, workspace.warnings
    return there


def at_home(workspace: Workspace, run: Run) -> Workspace:
    """The tree that was made for the run (many/own_tree.py), opened; the same workspace where it has none."""
    tree = run["settings"].get("work_tree", "")
    place = workspace.root_of(tree) if run["settings"].get("own_tree") and tree != workspace.tree else None
    return opened(workspace, place, tree, workspace.state) if place is not None else workspace


def claim_home(workspace: Workspace, run: Run) -> None:
    """Of a journal that several checkouts share: from now on the run is driven here, and nowhere else."""
    home = workspace.journal.home
    if home:
        with workspace.journal.write() as tx:
            at = tx.marker(f"home:{run['id']}")
            if at is None or run["settings"].get("on"):
                tx.put_marker(f"home:{run['id']}", home)
        _refuse_other_home(run, at, home)


def _refuse_other_home(run: Run, at: str | None, home: str) -> None:
    """Its attempts, work trees and files are there. Another engine would take its agents for lost; where workers carry
    them out, they are in no checkout, and whoever has the run may drive it (cluster/driver.py)."""
    if at not in (None, home) and not run["settings"].get("on"):
        hint = f"go on there; or, when nothing of it is in flight: tenuto join --take {run['id']}"
        raise Refused("other-checkout", f"run {run['id']} is driven in {at}, and this is {home}", hint, run=run["id"])


# ---- isolated --------------------------------------------------------------------------------------


def isolation(settings: Settings, workspace: Workspace) -> list[str]:
    """The words that agents, checks and set-up commands are started through. {root}: the work tree that the run belongs
    to; {git}: the folder that holds the journal's, which is to be shut."""
    known = {"{root}": workspace.root, "{git}": os.path.dirname(workspace.state)}
    words = list(settings.get("isolation", []))
    for name, path in known.items():
        words = [word.replace(name, path) for word in words]
    return words


def refuse_open(workspace: Workspace, level: str, settings: Settings) -> None:
    """From where agents will be, the journal must not be writable, and nothing else may be put in its place.

    `level`: of the run, where it has begun.
    """
    if "isolated" not in (level, settings.get("gates")):
        return
    words = isolation(settings, workspace)
    hint = "isolation: [setpriv, --reuid=agent, --regid=agent, --clear-groups, --]   in .tenuto/config.yaml"
    if not words:
        raise Refused("not-isolated", "agents are to be isolated, and `isolation` does not say how", hint)
    journal = workspace.journal
    places = [journal.location, workspace.state, trust.folder(), *journal.logins()]
    probe = ["/bin/sh", "-c", _PROBE, "sh", *places]
    try:
        done = subprocess.run([*words, *probe], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Refused("not-isolated", f"{words[0]} cannot be started: {error.strerror}", hint) from None
    answer = done.stdout.strip()
    if answer != "shut":
        open_there = answer.removeprefix("open ")
        why = f"{open_there} through {' '.join(words)}" if answer != open_there else done.stderr.strip()
        why = why or "it said nothing"
        raise Refused("not-isolated", f"agents would not be isolated: {why}", "see docs/howto/protect-gates.md")


# ---- decisions


# To start nothing more is never wrong: a person's interactive agent may do that for them.
_HARMLESS = ("Pause", "Cancel")


def who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def shown_files(root: str, pipeline: Pipeline, run: Run, step: str) -> list[Shown]:
    """What a gate of the pipeline shows, as it is now: every file that its patterns name, by hash."""
    folder = documents_of(pipeline, run)
    gate = step_of(pipeline, step)
    patterns = gate["gate"]["show"] if gate["kind"] == "gate" else []
    names = [name.replace("{slug}", run["id"]).replace("{iteration}", "*") for name in patterns]
    paths = [path for name in names for path in existing(root, os.path.normpath(f"{folder}/{name}"))]
    return [{"path": path, "sha256": hash_of(root, path)} for path in dict.fromkeys(paths)]


def hash_of(root: str, path: str) -> str | None:
    """Of what a person reads there, also through a link; None where there is nothing to read."""
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
    settings: Settings,
    signature: str = "",
    signer: str = "",
    passed_on: str = "",
    gate: str = "",
    answers: Mapping[str, object] | None = None,
    over: str = "",
) -> Run:
    """Once, for exactly what was shown. The engine goes on with it when it is next driven.

    `gate`: the one that the person saw, where it is known; a decision that comes late is not for the next one.

    `answers`: by field, of an approval, where the gate has a form.

    `over`: through which door a person came, other than a terminal: web. It stands in the proof.

    `passed_on`: by what a model passes a person's word on, where a person allowed that (let_pass_on).
    """
    if decision == "revise" and not feedback.strip():
        hint = f"tenuto revise {name} --feedback 'what should change'"
        raise BadInput("no-feedback", "a step is sent back with words: what should change?", hint)
    before = workspace.load(name)
    workspace = at_home(workspace, before)
    refuse_elsewhere(workspace, before)
    caller = workspace.caller
    if passed_on:
        refuse_agents(caller, f"{decision} a gate")
    else:
        require_person(caller, f"{decision} a gate", f"tenuto {decision} {name}")
    beyond = {**(caller.proof if isinstance(caller, Person) else {}), **({"over": over} if over else {})}
    with workspace.turn() as turn:
        run = turn.existing(name)
        given = beyond | proof(workspace.root, run, decision, feedback, settings, signature, signer, answers)
        if run["gate"]:
            refuse_no_files(workspace.root, run["gate"].get("fields", {}), answers or {}, "--set")
        pipeline, current_visit = _pipeline(turn, run), run["current_visit"]
        shown = shown_now(workspace.root, run)
        if pipeline is not None and current_visit is not None:
            seen = [entry["path"] for entry in shown]
            files = shown_files(workspace.root, pipeline, run, current_visit["step"])
            shown += [entry for entry in files if entry["path"] not in seen]
        command: DecideGate = {
            "do": "DecideGate",
            "decision": decision,
            "feedback": feedback,
            "who": signer or who(),
            "shown": shown,
            "proof": {**given, "passed_on": passed_on} if passed_on else given,
        }
        if gate:
            command["gate"] = gate
        if answers:
            command["answers"] = answers
        turn.do(name, command, pipeline)
        return run


def refuse_no_files(root: str, declared: Mapping[str, Param], given: Mapping[str, object], option: str) -> None:
    """A field or a parameter of type file names one that is there. What is no path below the repository is the core's
    to refuse."""
    for name, param in declared.items():
        value = given.get(name)
        if param["type"] != "file" or not isinstance(value, str) or wrong(param, value):
            continue
        if not os.path.isfile(os.path.join(root, value)):
            raise NotFound("no-file", f"'{name}': there is no file {value} in the repository", f"{option} {name}=PATH")


def shown_now(root: str, run: Run) -> list[Shown]:
    """What the open gate shows, with the hashes that its files have now."""
    shown = run["gate"]["shown"] if run["gate"] else []
    return [{"path": entry["path"], "sha256": hash_of(root, entry["path"])} for entry in shown]


def let_pass_on(workspace: Workspace, over: str, on: bool) -> None:
    """From now on, in this repository: a model may pass a person's decisions on over this, or may not."""
    word = "on" if on else "off"
    require_person(workspace.caller, f"switch {word} that decisions are passed on", f"tenuto {over} --approve {word}")
    with workspace.turn() as turn:
        others = [one for one in turn.repo["settings"].get(PASSED_ON, ()) if one != over]
        turn.do_repo({"do": "ChangeSettings", "changes": {PASSED_ON: [*others, over] if on else others}})


def is_passed_on(workspace: Workspace, over: str) -> bool:
    with workspace.journal.read() as reader:
        return over in reader.load_repo()["settings"].get(PASSED_ON, ())


def answer_question(workspace: Workspace, name: str, text: str) -> Run:
    require_person(workspace.caller, "answer a question", f"tenuto answer {name} '...'")
    with workspace.turn() as turn:
        run = turn.existing(name)
        pause = run["pause"]
        if pause is None or pause["kind"] != "question":
            raise Refused("no-question", f"run {name} asks nothing", f"tenuto status {name}")
        seat = run["attempts"][pause["question_of"]]["extra"]["seat"]
        turn.do(name, {"do": "RecordAnswers", "answers": {f"question:{seat}": text}})
        turn.do(name, {"do": "Resume", "decision": "retry"})
        return run


def command(workspace: Workspace, name: str, asked: Command) -> Run:
    """Pause, resume, cancel, retry a step, raise a limit: asked by a person, decided by core."""
    what = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in asked["do"]).strip()
    if asked["do"] in _HARMLESS:
        refuse_agents(workspace.caller, what, harmless=True)
    else:
        require_person(
            workspace.caller,
            what,
            f"tenuto {'retry' if asked['do'] == 'RetryStep' else 'resume'} {name} ...",
        )
    with workspace.turn() as turn:
        run = turn.existing(name)
        pipeline = _pipeline(turn, run)
        if asked["do"] == "RetryStep" and pipeline is not None:
            asked = {**asked, "approved": standing(pipeline, turn.tx.events(name))}
        turn.do(name, asked, pipeline)
        return run


def _pipeline(turn: Turn, run: Run) -> Pipeline | None:
    return pipeline_of(turn.tx, run) if run["pipeline"]["hash"] else None
