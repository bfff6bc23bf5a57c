"""What is refused is not written: neither in the journal nor in any file, whichever command it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.entrypoints.cli.program import COMMANDS, SPOKEN
from tests.support.refused import everything

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
    ("plan", "Add x", "--pipeline", "no-such-pipeline"),
    ("release", "nobody"),
    ("answer", "nobody", "yes"),
    ("mcp", "--no-such-option"),
    ("list", "--limit", "many"),
    ("status", "nobody"),
    ("watch", "nobody"),
    ("ui", "--port", "none"),
    ("page", "nobody", "-o", "run.html"),
    ("history", "nobody"),
    ("metrics", "nobody"),
    ("logs", "nobody"),
    ("artifacts", "nobody"),
    ("show", "nobody"),
    ("init", "elsewhere"),
    ("export", "nobody", "-o", "backup.jsonl"),
    ("clean", "nobody"),
    ("trust", "nobody", "--undo"),
    ("setup", "no-such-program"),
    ("verify", "--signers", "no-such-file"),
    ("doctor", "nobody"),
    ("completion", "no-such-shell"),
    ("demo", "--no-such-option"),
    ("help", "no-such-command"),
    ("pipelines", "--no-such-option"),
    ("roles", "--no-such-option"),
)


@pytest.fixture
def begun(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").touch()
    monkeypatch.chdir(root)
    assert say("context", "INIT task: Dark mode").status == 0
    assert say("context", "START_PHASE phase: spec").status == 0
    return root


@pytest.mark.parametrize("name", [*COMMANDS, *SPOKEN])
@pytest.mark.parametrize(
    "words", [("--no-such-option",), ("dark-mode", "--no-such-option=1", "--json"), ("", "", "", "")]
)
def test_nor_is_what_a_wrong_command_line_says(begun: Path, say: Say, name: str, words: tuple[str, ...]) -> None:
    """`say` itself holds each refusal of each test against what was there before it."""
    before = everything(begun)
    if say(name, *words).status != 0:
        assert everything(begun) == before


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_is_refused_is_not_written(begun: Path, say: Say, words: tuple[str, ...]) -> None:
    before = everything(begun)
    assert say(*words).status not in (0, 5)
    assert everything(begun) == before
