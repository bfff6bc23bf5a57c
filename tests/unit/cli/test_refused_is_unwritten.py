"""What is refused is not written: neither in the journal nor in any file, whichever command it was."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto

Say = Callable[..., Any]
# Refused at different depths: by the words, by what is there, by the rules.
REFUSED: tuple[tuple[str, ...], ...] = (
    ("approve", "dark-mode"),
    ("approve", "nobody"),
    ("reject", "dark-mode", "--feedback", "no"),
    ("revise", "dark-mode", "--feedback", "again"),
    ("resume", "nobody"),
    ("retry", "dark-mode", "--at", "nowhere"),
    ("cancel", "nobody"),
    ("pause", "nobody"),
    ("fork", "dark-mode", "--at", "nowhere"),
    ("replay", "dark-mode"),
    ("report", "dark-mode", "nobody", "--verdict", "DONE"),
    ("next", "nobody"),
    ("run", "Add x", "--pipeline", "no-such-pipeline", "--agent", "command:true"),
    ("run", "Add x", "--pipeline", "quick", "--agent", "no-such-agent"),
    ("run", "Add x", "--pipeline", "quick", "--agent", "command:true", "--limit", "money=1"),
    ("run", "Add x", "--pipeline", "quick", "--agent", "command:true", "--switch", "nothing=on"),
    ("run", "Add x", "--pipeline", "quick", "--agent", "command:true", "--param", "nothing=1"),
    ("run", "--run", "nobody", "--pipeline", "quick", "--agent", "command:true"),
    ("import", "/dev/null/x"),
    ("forget", "--event", "dark-mode:4711"),
    ("forget", "--event", "nobody:1"),
    ("adopt", "no-such-file.json"),
    ("repair", "--restore", "no-such-file"),
    ("memory", "add", "pattern"),
    ("pipeline", "new", "../x"),
    ("context", "STORE phase: spec"),
    ("context", "STORE phase: ../x content: y"),
    ("context", "END_PHASE phase: spec status: maybe"),
    ("context", "RESUME decision: perhaps"),
    ("context", "RETRIEVE for_phase: nothing"),
    ("flow", "update_delegation", "T-9", "--agent", "a", "--task", "t"),
    ("flow", "update_user_checkpoint", "T-9", "--phase", "x", "--approved", "true"),
    ("staged", "advance"),
    ("staged", "update", "{"),
    ("staged", "update", '{"version": 99}'),
    ("feature", "done", "spec"),
    ("feature", "answer", "nothing", "x"),
    ("hook", "declare", "no-such-key=1"),
)


def everything(root: Path) -> dict[str, str]:
    """Every file but locks, which hold nothing, and the log of hooks, and the events of every run."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_file() and "/tenuto/journal.db" not in name and not name.endswith(("lock", "/queue", "hook.log")):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    workspace = tenuto.open(str(root))
    with workspace.journal.read() as reader:
        for name in ["@", *(run["id"] for run in reader.runs())]:
            found[f"run {name}"] = str(reader.version(name))
    workspace.journal.close()
    return found


@pytest.fixture
def begun(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").touch()
    monkeypatch.chdir(root)
    assert say("context", "INIT task: Dark mode").status == 0
    assert say("context", "START_PHASE phase: spec").status == 0
    return root


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_is_refused_is_not_written(begun: Path, say: Say, words: tuple[str, ...]) -> None:
    before = everything(begun)
    assert say(*words).status not in (0, 5)
    assert everything(begun) == before
