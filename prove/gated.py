"""A run that waits at a gate between two agents, in a repository that can be copied: made once, attacked often."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import tenuto
from prove.frame import repository
from tenuto.agents.roster import Roster
from tenuto.core.fold import apply
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine
from tenuto.workspace.settings import read_settings

GATED = """\
name: gated
documents: docs/{slug}
shown_as: feature_docs
steps:
  - id: draft
    agent: {role: designer, out: design.md}
  - id: look
    gate: {name: look, show: [design.md], prompt: "Is the design good?", revise: draft}
  - id: build
    agent: {role: implementer, out: built.md}
"""
RUN = "x"
SHOWN = f"docs/{RUN}/design.md"
BEHIND = f"docs/{RUN}/built.md"
AGENT = """#!/bin/sh
cat > /dev/null
echo "$TENUTO_OUTPUTS" | while read path; do mkdir -p "$(dirname "$path")"; echo "# $TENUTO_ROLE, $TENUTO_ATTEMPT" > "$path"; done
echo "DONE: written"
"""  # noqa: E501


def make(folder: Path, level: str) -> Path:
    """A repository whose run has come to its gate; `ada`, who may sign, has her key beside it."""
    root = repository(folder / f"made-{level}")
    (root / ".tenuto" / "pipelines").mkdir(parents=True)
    (root / ".tenuto" / "pipelines" / "gated.yaml").write_text(GATED)
    for name in ("ada", "mallory"):
        if not (folder / name).exists():
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
            subprocess.run(words, check=True)
    (root / ".tenuto" / "signers").write_text("ada " + (folder / "ada.pub").read_text())
    (root / ".tenuto" / "config.yaml").write_text(f"gates: {level}\n")
    agent = folder / "agent.sh"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    workspace = tenuto.open(str(root))
    workspace.trusts = True
    start(workspace, "Add x", "gated", name=RUN, settings=dict(read_settings(str(root))))
    found = go_on(workspace, folder)
    assert found["status"] == "waiting_gate", found["status"]
    workspace.journal.close()
    return root


def go_on(workspace: Any, folder: Path) -> Any:
    workspace.trusts = True  # as with --trust: copies lie elsewhere, where nobody has looked at them
    return Engine(workspace, RUN, Roster(f"command:{folder}/agent.sh"), read_settings(workspace.root)).drive()


def copy(root: Path, name: str) -> Path:
    return Path(shutil.copytree(root, root.parent / name, symlinks=True))


def forge(root: Path, *events: dict[str, Any]) -> None:
    """As somebody would who knows the journal well: digests, chain, head and kept state are all right."""
    workspace = tenuto.open(str(root))
    with workspace.journal.write() as tx:
        run = tx.load(RUN)
        assert run is not None
        made: list[Any] = [{"v": 2, "at": run["updated_at"], "by": "ada", **event} for event in events]
        expected = run["version"]
        for event in made:
            apply(run, event)
        tx.append(RUN, expected, made, run)
    workspace.journal.close()


def approval(proof: dict[str, Any], who: str) -> dict[str, Any]:
    return {
        "type": "GateDecided",
        "gate": "gate-1",
        "name": "look",
        "step": "look",
        "decision": "approve",
        "approved": True,
        "feedback": "",
        "who": who,
        "proof": proof,
    }


def passed(root: Path) -> list[str]:
    """What shows that the gate was passed, or decided."""
    workspace = tenuto.open(str(root))
    with workspace.journal.read() as reader:
        events = list(reader.events(RUN))
        run = reader.load(RUN)
    workspace.journal.close()
    assert run is not None
    found = [
        f"{event['type']} by {event['by']}"
        for event in events
        if event["type"] in ("GateDecided", "StageRestarted", "Finished")
    ]
    found += [
        f"{event['step']} began" for event in events if event["type"] == "StepStarted" and event["step"] == "build"
    ]
    if (root / BEHIND).exists():
        found.append(f"{BEHIND} was written")
    return found if found or run["gate"] is not None else [*found, f"the gate is gone; the run is {run['status']}"]


def tenuto_words(*words: str) -> list[str]:
    return [sys.executable, "-m", "tenuto", *words]
