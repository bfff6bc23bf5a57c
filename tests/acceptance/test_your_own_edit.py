"""You edit a file while an agent works in your tree: you are asked, it stays, and it costs no attempt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.houses import TENUTO, House, until
from tests.support.terminal import start_at_terminal


class Session:
    """`tenuto run` at a terminal, with an agent that works until it is told to end."""

    def __init__(self, folder: Path) -> None:
        self.house = House(folder)
        self.at_work, self.go = folder / "at-work", folder / "go"
        agent = self.house.script(
            f"answers:\n  - run: 'touch {self.at_work}; until [ -e {self.go} ]; do sleep 0.02; done'\n"
        )
        words = ["run", "Dark mode", "--pipeline", "small", "--agent", agent]
        inner = {**self.house.environment, "TERM": "xterm", "COLUMNS": "200"}
        self.program, self.terminal = start_at_terminal([*TENUTO, *words], cwd=self.house.root, env=inner)
        self.heard = ""

    def hear(self, words: str) -> None:
        while words not in self.heard:
            self.heard += os.read(self.terminal, 4096).decode("utf-8", "replace")

    def answer(self, word: str) -> int:
        self.hear("Did you change all of it yourself?")
        os.write(self.terminal, f"{word}\n".encode())
        self.hear("dark-mode: ")
        status = self.program.wait()
        os.close(self.terminal)
        return status


@pytest.fixture
def session(tmp_path: Path) -> Session:
    begun = Session(tmp_path)
    until(begun.at_work.exists)
    (begun.house.root / "README.md").write_text("my own line\n")
    begun.go.touch()
    return begun


def test_what_you_say_is_yours_stays_and_costs_no_attempt(session: Session) -> None:
    assert session.answer("y") == 0
    assert "README.md" in session.heard and "agents share this work tree" in session.heard
    run = session.house.run("dark-mode")
    assert run["status"] == "completed" and len(run["attempts"]) == 1
    assert (session.house.root / "README.md").read_text() == "my own line\n"
    receipt = next(iter(run["attempts"].values()))["receipt"]
    assert "README.md" not in receipt["touched"] and receipt["touched"] == ["docs/dark-mode/design.md"]
    noted = [event["text"] for event in session.house.events("dark-mode") if event["type"] == "Noted"]
    assert noted == ["a person changed README.md while write-1-designer-1 was at work"]


def test_what_is_not_yours_fails_the_attempt_and_is_kept_aside(session: Session) -> None:
    assert session.answer("n") == 1
    run = session.house.run("dark-mode")
    assert "files outside the boundary were changed: README.md" in next(iter(run["attempts"].values()))["summary"]
    assert (session.house.root / "README.md").read_text() == "hello\n"
    kept = list((session.house.root / ".git/tenuto/quarantine").rglob("README.md"))
    assert [path.read_text() for path in kept] == ["my own line\n"]
