"""Promise 7: gates fail closed, are decided once, by a person, for exactly what was shown.

    signed     decisions with signatures that are nobody's, or somebody's over something else, or without any, past the
               drivers too
    stale      approvals after what was shown was changed, even by a byte: by a person, over MCP, in advance, and by
               hand
    racing     many decide at once: one of them counts
    surfaces   an agent at work in the same repository tries everything that Tenuto offers, and edits its state files,
               in disguise (attacker.py);
               a model in a person's own session tries everything as well (sessions.py)
    written    at level signed, whoever knows the journal well writes to the database directly (database.py): found out,
               not carried on

At the end of each, what is right is accepted, once: what refuses everything would prove nothing.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenuto
from prove import attacker, database, gated, sessions
from prove.frame import Amount, Progress, Result, dice, place, repository, require, silent
from prove.gated import RUN, SHOWN
from tenuto.encoding import digest
from tenuto.engine import gates as protection
from tenuto.engine import rest
from tenuto.engine.gates import decide_gate, let_pass_on
from tenuto.errors import TenutoError
from tenuto.workspace.settings import read_settings

FULL = {"signed": 2_600, "stale": 5_600, "by hand": 1_000, "racing": 110, "written": 300}
SAMPLE = {"signed": 40, "stale": 120, "by hand": 30, "racing": 3, "written": 14}
SAID = "as was said"  # what a decision says; a step is not sent back without words
RACERS = 8


def prove(amount: Amount, tell: Progress) -> Result:
    require("ssh-keygen")
    wanted = FULL if amount.full else SAMPLE
    with place() as folder:
        signed, guarded = gated.make(folder, "signed"), gated.make(folder, "guarded")
        parts: dict[str, Callable[[Progress], list[str]]] = {
            "signed": lambda step: _signed(signed, wanted["signed"], step),
            "stale": lambda step: _stale(guarded, wanted["stale"], step),
            "by hand": lambda step: _by_hand(folder, wanted["by hand"], step),
            "racing": lambda step: _racing(guarded, wanted["racing"], step),
            "written": lambda step: _written(signed, wanted["written"], step),
        }
        tries, in_sessions = attacker.tries(amount.full), sessions.tries(amount.full)
        surfaces = len(tries) + len(in_sessions)
        total = sum(wanted.values()) + surfaces
        done, violations = 0, list[str]()
        for name, part in parts.items():
            violations += part(lambda now, of, before=done: tell(before + now, total))  # type: ignore[misc]
            done += wanted[name]
        violations += attacker.attack(guarded, tries) + sessions.attack(guarded, in_sessions)
        tell(total, total)
    decisions = wanted["signed"] + wanted["stale"] + wanted["by hand"] + wanted["racing"] * RACERS
    figures = {
        "decisions": f"{decisions:,}",
        "surfaces": f"{surfaces:,}",
        "database writes": f"{wanted['written']:,}",
        "accepted or undetected": str(len(violations)),
    }
    return Result(decisions + surfaces + wanted["written"], violations, figures)


def control(amount: Amount) -> Result:
    """Signatures that are not looked at, and hashes that are not compared."""
    from tenuto.core.decisions import gates

    require("ssh-keygen")
    kept = protection.is_signed, gates._refuse_stale
    protection.is_signed, gates._refuse_stale = lambda *_: True, lambda *_: None
    try:
        with place() as folder:
            signed = gated.make(folder, "signed")
            found = _signed(signed, 12, silent) + _stale(gated.make(folder, "guarded"), 5, silent)
            return Result(17, found, {})
    finally:
        protection.is_signed, gates._refuse_stale = kept


# ---- signatures ------------------------------------------------------------------------------------


def _signed(made: Path, count: int, tell: Progress) -> list[str]:
    """Every one of them must be refused. Signatures of things that were really signed are made once and used often."""
    root = gated.copy(made, "signed")
    workspace, settings = tenuto.open(str(root)), read_settings(str(root))
    run = workspace.load(RUN)
    stock = _stock(run, made.parent)
    found: list[str] = []
    for number in range(count):
        chance = dice("signed", number)
        decision, feedback, signature, signer, what = _forgery(chance, stock)
        try:
            decide_gate(workspace, RUN, decision, feedback, settings, signature, signer)
        except TenutoError:
            pass
        else:
            found.append(f"signed {number}: accepted: {what}")
            workspace.journal.close()
            root = gated.copy(made, f"signed-{number}")
            workspace = tenuto.open(str(root))
        tell(number + 1, count)
    found += _unsigned(workspace)
    workspace.journal.close()
    found += [f"signed: {words}" for words in gated.passed(root)]
    return found + [f"signed: {words}" for words in _true_one(root, made.parent)]


def _unsigned(workspace: Any) -> list[str]:
    """Straight to the rules, as a driver would that forgot to ask for a signature. One that says *signed* and brings
    none is believed there, and found out by whoever looks at the journal: see written."""
    found, shown = [], workspace.load(RUN)["gate"]["shown"]
    for decision in ("approve", "revise", "reject"):
        for proof in (
            {},
            {"level": ""},
            {"level": "guarded"},
            {"level": "isolated"},
            {"signature": "s", "signer": "ada"},
        ):
            try:
                with workspace.turn() as turn:
                    turn.do(
                        RUN, {"do": "DecideGate", "decision": decision, "who": "ada", "shown": shown, "proof": proof}
                    )
                found.append(f"signed: {decision} with {proof} for a proof was accepted")
            except TenutoError as refusal:
                found += (
                    []
                    if refusal.code == "not-signed"
                    else [f"signed: {decision} with {proof}: refused for another reason: {refusal}"]
                )
    return found


def _true_one(root: Path, folder: Path) -> list[str]:
    """The signature that is right is taken; the same one again is not, nor at the gate that comes after a revision."""
    workspace, settings = tenuto.open(str(root)), read_settings(str(root))
    approved, sent_back = (
        (word, protection.sign(protection.text_to_sign(workspace.load(RUN), word, SAID), str(folder / "ada")))
        for word in ("approve", "revise")
    )
    found = []
    for number, (word, signature, wanted) in enumerate(
        (
            (*sent_back, True),
            (*sent_back, False),
            (*approved, False),
            (*approved, False),
            (*sent_back, False),
        )
    ):
        try:
            decide_gate(workspace, RUN, word, SAID, settings, signature, "ada")
            if not wanted:
                found.append(f"a true signature was replayed ({word}, {number}), and accepted")
        except TenutoError as refusal:
            if wanted:
                found.append(f"a true signature was refused: {refusal}")
        if number == 1:
            gated.go_on(workspace, folder)  # to the next gate, which shows something else
    if workspace.load(RUN)["gate"] is None:
        found.append("after the replays no gate is open")
    else:
        anew = protection.sign(protection.text_to_sign(workspace.load(RUN), "approve", SAID), str(folder / "ada"))
        found += _counts_once(lambda: decide_gate(workspace, RUN, "approve", SAID, settings, anew, "ada"))
    workspace.journal.close()
    return found


def _stock(run: Any, folder: Path) -> dict[str, str]:
    """True signatures, each over something else than what is to be decided; and true words, signed by somebody else."""
    gate = run["gate"]
    others: dict[str, Any] = {
        "another run": {**run, "id": "y"},
        "another gate": {**run, "gate": {**gate, "id": "gate-0"}},
        "another name": {**run, "gate": {**gate, "name": "look2"}},
        "other files": {
            **run,
            "gate": {**gate, "shown": [{**one, "sha256": digest(b"other")} for one in gate["shown"]]},
        },
        "no files": {**run, "gate": {**gate, "shown": []}},
    }
    made = {
        what: protection.sign(protection.text_to_sign(other, "approve", SAID), str(folder / "ada"))
        for what, other in others.items()
    }
    made["a rejection"] = protection.sign(protection.text_to_sign(run, "reject", SAID), str(folder / "ada"))
    made["other words"] = protection.sign(protection.text_to_sign(run, "approve", "but"), str(folder / "ada"))
    made["mallory"] = protection.sign(protection.text_to_sign(run, "approve", SAID), str(folder / "mallory"))
    return made


def _forgery(chance: random.Random, stock: dict[str, str]) -> tuple[str, str, str, str, str]:
    what = chance.choice([*stock, *stock, "nothing", "nobody", "garbage", "damaged"])
    signature = stock.get(what, "")
    signer = "ada"
    if what == "nobody":
        signature, signer = (
            stock["other words"],
            chance.choice(["", "bob", "mallory", "*", "ada,bob", "ada\nbob", "-f"]),
        )
    elif what == "garbage":
        signature = "".join(chr(chance.randrange(32, 127)) for _ in range(chance.randrange(1, 400)))
    elif what == "damaged":
        # Some of the last digits of base64 stand for nothing; the middle is always part of what is signed.
        text = list(stock["mallory"])
        at = chance.randrange(60, len(text) - 60)
        text[at] = "A" if text[at] != "A" else "B"
        signature = "".join(text)
    decision = "revise" if what == "a rejection" else "approve"
    return decision, SAID, signature, signer, what


# ---- what was shown --------------------------------------------------------------------------------


def _stale(made: Path, count: int, tell: Progress) -> list[str]:
    root = gated.copy(made, "stale")
    workspace = tenuto.open(str(root))
    let_pass_on(workspace, "mcp", True)
    path = root / SHOWN
    shown = path.read_bytes()
    found: list[str] = []
    for number in range(count):
        chance = dice("stale", number)
        what = _change(path, shown, chance)
        name, approve = chance.choice(APPROVALS)
        try:
            approve(workspace)
        except TenutoError:
            pass
        else:
            found.append(f"stale {number}: approved {name} though what was shown was {what}")
            workspace.journal.close()
            root = gated.copy(made, f"stale-{number}")
            workspace, path = tenuto.open(str(root)), root / SHOWN
            let_pass_on(workspace, "mcp", True)
        _put_back(path, shown)
        tell(number + 1, count)
    for decision in ("approve", "reject", "revise"):
        try:
            decide_gate(workspace, RUN, decision, SAID, {}, gate="gate-0")
            found.append(f"{decision} for a gate that is not the open one was accepted")
        except TenutoError:
            pass
    found += [f"stale: {words}" for words in gated.passed(root)]
    found += _counts_once(lambda: chance.choice(APPROVALS)[1](workspace))
    workspace.journal.close()
    return found


def _over_mcp(workspace: Any) -> None:
    from tenuto.entrypoints.mcp.calls import approve

    approve(workspace, {"run": RUN, "decision": "approve"})


APPROVALS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("by a person", lambda workspace: decide_gate(workspace, RUN, "approve", "", {})),
    ("by a person who saw it", lambda workspace: decide_gate(workspace, RUN, "approve", "", {}, gate="gate-1")),
    ("over MCP", _over_mcp),
    ("in advance", lambda workspace: rest._decide_in_advance(workspace, RUN, "approve", {})),
)


def _counts_once(approve: Callable[[], Any]) -> list[str]:
    """Unchanged, it is approved; and then not again."""
    try:
        approve()
    except TenutoError as refusal:
        return [f"what is as it was shown is refused as well: {refusal}"]
    try:
        approve()
    except TenutoError:
        return []
    return ["approved twice"]


def _by_hand(folder: Path, count: int, tell: Progress) -> list[str]:
    """The same for a task that is led by hand, whose gate the context manager's RESUME decides."""
    root = repository(folder / "by-hand")
    path, shown = root / "docs" / "design.md", b"# All of it\n\nAnd colours.\n"
    path.parent.mkdir()
    path.write_bytes(shown)
    workspace: Any = tenuto.open(str(root))
    workspace.context.init("By hand")
    workspace.context.set_gate("design", "Is it good?", ["docs/design.md"], task="by-hand")
    found: list[str] = []
    for number in range(count):
        what = _change(path, shown, dice("by hand", number))
        try:
            workspace.context.resume("approve", task="by-hand")
            found.append(f"by hand {number}: approved though what was shown was {what}")
            workspace.context.set_gate("design", "Is it good?", ["docs/design.md"], task="by-hand")
        except TenutoError:
            pass
        _put_back(path, shown)
        tell(number + 1, count)
    found += [
        f"by hand: {words}" for words in _counts_once(lambda: workspace.context.resume("approve", task="by-hand"))
    ]
    workspace.journal.close()
    return found


def _change(path: Path, shown: bytes, chance: random.Random) -> str:
    kind = chance.choice(["flipped", "flipped", "cut", "longer", "gone", "a folder", "a link", "a pipe", "empty"])
    text = bytearray(shown)
    if kind == "flipped":
        text[chance.randrange(len(text))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(text))
    elif kind in ("cut", "empty"):
        path.write_bytes(shown[: chance.randrange(len(shown)) if kind == "cut" else 0])
    elif kind == "longer":
        path.write_bytes(shown + chance.randbytes(chance.randrange(1, 9)))
    else:
        path.unlink()
        if kind == "a folder":
            path.mkdir()
        elif kind == "a pipe":
            os.mkfifo(path)
        elif kind == "a link":
            (path.parent / "other.md").write_bytes(shown + b"and more")
            path.symlink_to("other.md")
    return kind


def _put_back(path: Path, shown: bytes) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    elif path.is_symlink() or path.is_fifo():
        path.unlink()
    path.write_bytes(shown)


# ---- at once ---------------------------------------------------------------------------------------


def _racing(made: Path, count: int, tell: Progress) -> list[str]:
    """Each round, eight processes decide; the journal must show one decision, and one of them must be told that it
    counts."""
    found: list[str] = []
    for number in range(count):
        root = gated.copy(made, f"race-{number}")
        words = [dice("racing", number, racer).choice(["approve", "revise", "reject"]) for racer in range(RACERS)]
        told = _race(root, words)
        workspace = tenuto.open(str(root))
        with workspace.journal.read() as reader:
            decided = [event["decision"] for event in reader.events(RUN) if event["type"] == "GateDecided"]
        workspace.journal.close()
        accepted = [word for word, status in zip(words, told, strict=True) if status == 0]
        if len(decided) != 1 or accepted != decided:
            found.append(
                f"racing {number}: {words}: the journal says {decided}, and {accepted} were told that it counts"
            )
        tell(number + 1, count)
    return found


def _race(root: Path, words: list[str]) -> list[int]:
    readable, writable = os.pipe()
    pids = []
    for word in words:
        pid = os.fork()
        if pid == 0:
            status = 3
            try:
                workspace = tenuto.open(str(root))
                os.close(writable)
                os.read(readable, 1)  # until all are there
                decide_gate(workspace, RUN, word, SAID, {})
                status = 0
            except TenutoError:
                status = 1
            finally:
                os._exit(status)
        pids.append(pid)
    os.close(readable)
    os.close(writable)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


# ---- the database ----------------------------------------------------------------------------------


def _written(made: Path, count: int, tell: Progress) -> list[str]:
    """Whatever was written: an engine does not go on past the gate, and a look finds it."""
    found: list[str] = []
    stock = _stock(_load(made), made.parent)
    for number in range(count):
        root = gated.copy(made, f"written-{number}")
        chance = dice("written", number)
        what = database.write(root, chance, stock)
        workspace = tenuto.open(str(root))
        try:
            status = gated.go_on(workspace, made.parent)["status"]
            if (root / gated.BEHIND).exists() or status not in ("waiting_gate", "failed"):
                found.append(f"written {number}: {what}: the engine went on; the run is {status}")
        except TenutoError:
            pass
        signers = (made / ".tenuto" / "signers").read_text()
        if not database.is_seen(workspace, signers):
            found.append(f"written {number}: {what}: not found out")
        workspace.journal.close()
        tell(number + 1, count)
    return found


def _load(root: Path) -> Any:
    workspace = tenuto.open(str(root))
    try:
        return workspace.load(RUN)
    finally:
        workspace.journal.close()
