"""For promise 7: whoever knows the journal well writes to its database, past every command."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import tenuto
from prove import gated
from prove.gated import RUN
from tenuto.core.fold import FOLD_VERSION, apply
from tenuto.encoding import dumps
from tenuto.engine import gates
from tenuto.workspace.checkup import examine


def is_seen(workspace: Any, signers: str) -> bool:
    """What `tenuto verify --signers` looks at."""
    bad = [one for one in examine(workspace, RUN)["findings"] if one["severity"] == "damage"]
    return bool(bad or list(gates.forgeries(workspace, RUN, signers)))


def write(root: Path, chance: random.Random, stock: dict[str, str]) -> str:
    what = chance.choice(["approved", "walked around", "not open", "kept state", "unlevelled", "raw", "removed"])
    proof = chance.choice(
        [
            {},
            {"level": "guarded"},
            {"level": "signed"},
            {"level": "signed", "signature": chance.choice([*stock.values()]), "signer": "ada"},
        ]
    )
    decided = gated.approval(proof, chance.choice(["ada", "mallory", ""]))
    begun: dict[str, Any] = {
        "type": "StepStarted",
        "step": "build",
        "item": None,
        "iteration": 1,
        "leg": None,
        "key": "k",
    }
    if what == "approved":
        gated.forge(root, decided, *([begun] if chance.random() < 0.3 else []))
    elif what == "walked around":
        gated.forge(root, begun)
    elif what == "not open":
        gated.forge(root, {**decided, "gate": f"gate-{chance.randrange(2, 9)}"})
    elif what == "kept state":
        _keep_another_state(root, decided)
    elif what == "unlevelled":
        gated.forge(root, {"type": "SettingsChanged", "changes": {"gate_protection": None}}, decided)
    elif what == "raw":
        _raw(root, chance)
    else:
        _raw(root, chance, "DELETE FROM event WHERE run='x' AND seq=(SELECT max(seq) FROM event WHERE run='x')")
    return f"{what}, {sorted(proof)}"


def _keep_another_state(root: Path, decided: dict[str, Any]) -> None:
    workspace = tenuto.open(str(root))
    with workspace.journal.write() as tx:
        run = tx.load(RUN)
        assert run is not None
        version = run["version"]
        apply(run, {"v": 2, "at": run["updated_at"], "by": "ada", **decided})
        run["version"] = version
        tx._db.execute("UPDATE state SET seq=?, fold=?, body=? WHERE run=?", (version, FOLD_VERSION, dumps(run), RUN))  # type: ignore[attr-defined]
    workspace.journal.close()


def _raw(root: Path, chance: random.Random, statement: str = "") -> None:
    """Into the text of an event, without a thought for its digest."""
    workspace = tenuto.open(str(root))
    with workspace.journal.write() as tx:
        db = tx._db  # type: ignore[attr-defined]
        if statement:
            db.execute(statement)
        else:
            seqs = [seq for (seq,) in db.execute("SELECT seq FROM event WHERE run=? ORDER BY seq", (RUN,))]
            seq = chance.choice(seqs)
            db.execute("UPDATE event SET body=replace(body, '\"by\"', '\"who\"') WHERE run=? AND seq=?", (RUN, seq))
    workspace.journal.close()
