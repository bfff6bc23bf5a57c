"""A run that waits for a word at a terminal, and is decided elsewhere meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import tenuto
from tests.support.terminal import start_at_terminal
from tests.unit.engine.conftest import Said

Say = Callable[..., Said]
PIPELINE = """\
name: asked
documents: docs/{slug}
steps:
  - id: agree
    gate: {prompt: Go on?}
  - id: really
    gate: {prompt: Really?}
"""


def test_a_decision_made_elsewhere_ends_the_question_and_the_run_goes_on(repository: Path, say: Say) -> None:
    """It waited for a line that nobody had to type any more."""
    (repository / ".tenuto/pipelines").mkdir(parents=True, exist_ok=True)
    (repository / ".tenuto/pipelines/asked.yaml").write_text(PIPELINE)
    inner = {"PATH": os.environ["PATH"], "HOME": str(repository), "PYTHONPATH": str(Path(tenuto.__file__).parents[1])}
    words = ["run", "x", "--name", "x", "--pipeline", "asked", "--agent", "scripted:answers.yaml"]
    (repository / "answers.yaml").write_text("{}\n")
    program, terminal = start_at_terminal([sys.executable, "-m", "tenuto", *words], cwd=repository, env=inner)
    unread = ""

    def hears(text: str) -> None:
        nonlocal unread
        while text not in unread:
            unread += os.read(terminal, 4096).decode("utf-8", "replace")
        unread = unread.partition(text)[2]

    hears("Go on?")
    hears("[later]: ")
    assert say("approve", "x").status == 0
    hears("it was decided elsewhere")
    hears("Really?")
    hears("[later]: ")
    os.write(terminal, b"approve\n")
    hears("x: completed")
    assert program.wait() == 0
    os.close(terminal)
