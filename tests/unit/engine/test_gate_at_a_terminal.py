"""A run that waits for a word at a terminal: what may be typed there, and what was decided elsewhere meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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


SHOWING = """\
name: asked
documents: docs/{slug}
steps:
  - id: write
    agent: {role: designer, out: design.md}
  - id: agree
    gate: {name: agree, prompt: Go on?, show: [design.md], revise: write}
"""
ANSWERS = """\
answers:
  - {for: {try: 1, visit: 1}, files: {"{out}": "first line\\nsecond line\\n"}}
  - {for: {visit: 2}, files: {"{out}": "first line\\nanother line\\n"}}
"""


class Terminal:
    """A run at a terminal, and what it prints there. A text that never comes ends the test with the program."""

    def __init__(self, repository: Path, pipeline: str, answers: str = "{}\n", settings: str = "") -> None:
        (repository / ".tenuto/pipelines").mkdir(parents=True, exist_ok=True)
        (repository / ".tenuto/pipelines/asked.yaml").write_text(pipeline)
        if settings:
            (repository / ".tenuto/config.yaml").write_text(settings)
        (repository / "answers.yaml").write_text(answers)
        package = str(Path(tenuto.__file__).parents[1])
        inner = {"PATH": os.environ["PATH"], "HOME": str(repository), "PYTHONPATH": package, "TERM": "dumb"}
        words = ["run", "x", "--name", "x", "--pipeline", "asked", "--agent", "scripted:answers.yaml", "--trust"]
        self.program, self.ours = start_at_terminal([sys.executable, "-m", "tenuto", *words], cwd=repository, env=inner)
        self.unread = ""

    def hears(self, text: str) -> str:
        """What was printed before it."""
        while text not in self.unread:
            try:
                self.unread += os.read(self.ours, 4096).decode("utf-8", "replace")
            except OSError:
                raise AssertionError(f"ended without {text!r}: {self.unread}") from None
        before, _, self.unread = self.unread.partition(text)
        return before

    def types(self, line: str) -> None:
        os.write(self.ours, line.encode() + b"\n")


@contextmanager
def at_terminal(repository: Path, pipeline: str, answers: str = "{}\n", settings: str = "") -> Iterator[Terminal]:
    terminal = Terminal(repository, pipeline, answers, settings)
    try:
        yield terminal
    finally:
        terminal.program.kill()
        terminal.program.wait()
        os.close(terminal.ours)


def test_a_decision_made_elsewhere_ends_the_question_and_the_run_goes_on(repository: Path, say: Say) -> None:
    """It waited for a line that nobody had to type any more."""
    with at_terminal(repository, PIPELINE) as terminal:
        terminal.hears("Go on?")
        terminal.hears("[later]: ")
        assert say("approve", "x").status == 0
        terminal.hears("it was decided elsewhere")
        terminal.hears("Really?")
        terminal.hears("[later]: ")
        terminal.types("approve")
        terminal.hears("x: completed")
        assert terminal.program.wait() == 0


@pytest.mark.parametrize("word", ["y", "Yes", "APPROVE", "a", " approve "])
def test_yes_is_an_approval_however_it_is_typed(word: str, repository: Path) -> None:
    with at_terminal(repository, PIPELINE) as terminal:
        for _ in range(2):
            terminal.hears("[later]: ")
            terminal.types(word)
        terminal.hears("x: completed")


def test_a_word_that_means_nothing_is_asked_again_and_nothing_is_later(repository: Path, say: Say) -> None:
    with at_terminal(repository, PIPELINE) as terminal:
        terminal.hears("[later]: ")
        terminal.types("sure")
        terminal.hears("'sure' is none of them")
        terminal.hears("[later]: ")
        terminal.types("")
        terminal.hears("x: waiting_gate")
        assert terminal.program.wait() == 5


def test_what_is_decided_on_can_be_read_there_and_what_changed(repository: Path) -> None:
    with at_terminal(repository, SHOWING, ANSWERS) as terminal:
        terminal.hears("[later]: ")
        terminal.types("v")
        assert "second line" in terminal.hears("[later]: ")
        terminal.types("d")
        assert "for the first time" in terminal.hears("[later]: ")
        terminal.types("revise")
        terminal.hears("what should change")
        terminal.types("")
        terminal.hears("say what should change")
        terminal.hears("what should change")
        terminal.types("the second line")
        terminal.hears("[later]: ")
        terminal.types("d")
        printed = terminal.hears("[later]: ")
        assert "-second line" in printed and "+another line" in printed
        terminal.types("y")
        terminal.hears("x: completed")


@pytest.mark.needs("ssh-keygen")
def test_a_signed_gate_asks_for_the_signature(repository: Path, tmp_path: Path, say: Say) -> None:
    """The question could not be answered: every word but `later` was refused."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (repository / ".tenuto").mkdir(exist_ok=True)
    (repository / ".tenuto/signers").write_text(f"ada {key.with_suffix('.pub').read_text()}")
    with at_terminal(repository, PIPELINE, settings="gates: signed\n") as terminal:
        terminal.hears("[later]: ")
        terminal.types("y")
        terminal.hears("list of signers")
        terminal.types("ada")
        terminal.hears("the ssh key")
        terminal.types(str(key))
        terminal.hears("Really?")
        terminal.hears("[later]: ")
        terminal.types("y")
        terminal.hears("list of signers")
        terminal.types("")
        terminal.hears("try: tenuto approve x --sign-with KEY --as NAME")
        assert terminal.program.wait() == 5
    assert "sound" in say("verify").out


@pytest.mark.parametrize("words", [["revise", "x"], ["revise", "x", "--feedback", "  "]])
def test_a_step_is_not_sent_back_without_words(words: list[str], repository: Path, say: Say) -> None:
    """An agent was paid to do the same again."""
    with at_terminal(repository, SHOWING, ANSWERS) as terminal:
        terminal.hears("[later]: ")
        refused = say(*words, "--json")
        assert (refused.status, refused.error["code"]) == (2, "no-feedback")
    assert say("status", "x", "--json").data["status"] == "waiting_gate"


def test_the_terminal_rings_before_it_asks_where_that_moment_was_chosen(repository: Path) -> None:
    """And not again for the same gate, unless it is left for later."""
    settings = "notify: {terminal: true, on: [asks, completed]}\n"
    with at_terminal(repository, PIPELINE, settings=settings) as terminal:
        rings = [terminal.hears("Go on?")]
        terminal.types("y")
        rings.append(terminal.hears("Really?"))
        terminal.types("y")
        rings.append(terminal.hears("x: completed"))
    asked = "\a\x1b]9;Tenuto: project: x asks for a decision\a"
    assert [one.count(asked) for one in rings] == [1, 1, 0]
    assert [one.count("\a") for one in rings[:2]] == [2, 2] and "x is completed" in rings[2]
