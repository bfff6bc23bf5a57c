"""A git repository with a small pipeline of its own, and `tenuto` as a function over it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tenuto
from tenuto.encoding import loads
from tenuto.entrypoints.cli import frame
from tenuto.entrypoints.launch import answer
from tests.support.refused import everything, hold_unwritten

SMALL = """\
name: small
documents: docs/{slug}
cap: 2
steps:
  - id: look
    cluster:
      members:
        - {role: researcher, mode: focused, focus: architecture, out: a.md}
        - {role: researcher, mode: focused, focus: impact, out: b.md}
      quorum: 1
      retry: {ERROR: 1}
  - id: write
    agent: {role: designer, in: [a.md, b.md], out: design.md}
    retry: {ERROR: 1, LOST: 1}
"""


class Said(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return loads(self.out)["data"]

    @property
    def error(self) -> Any:
        return loads(self.out)["error"]


@pytest.fixture
def say(capsysbinary: pytest.CaptureFixture[bytes]) -> Iterator[Callable[..., Said]]:
    def call(*words: str) -> Said:
        here = Path.cwd()
        before = everything(here)
        capsysbinary.readouterr()
        status = answer(list(words))
        sys.stdout.flush()
        out, err = capsysbinary.readouterr()
        frame.release()
        hold_unwritten(words, status, before, here)
        return Said(status, out.decode(), err.decode())

    yield call
    frame.release()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = make_repository(tmp_path / "project")
    monkeypatch.chdir(made)
    return made


def make_repository(made: Path) -> Path:
    own = made / ".tenuto" / "pipelines"
    own.mkdir(parents=True)
    (own / "small.yaml").write_text(SMALL)
    (made / "README.md").write_text("hello\n")
    git = ["git", "-C", str(made)]
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "begin"], check=True)
    return made


@pytest.fixture
def script(repository: Path, tmp_path: Path) -> Callable[[str], str]:
    """Write answers; returns the agent that gives them."""

    def write(text: str = "answers: []\n") -> str:
        path = tmp_path / "answers.yaml"
        path.write_text(text)
        return f"scripted:{path}"

    return write


def reopen(repository: Path) -> tenuto.Workspace:
    return tenuto.open(str(repository))
