"""A git repository for many runs at once, and `tenuto` there as real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenuto
from tests.support.trusting import trust

TENUTO = [sys.executable, "-m", "tenuto"]
ENOUGH = 120.0  # seconds, after which a test gives up on a machine that does nothing
PIPELINE = """\
name: small
documents: docs/{slug}
steps:
  - id: write
    agent: {role: designer, out: design.md}
    retry: {ERROR: 0, LOST: 3}
"""
GATED = """\
name: gated
documents: docs/{slug}
steps:
  - id: write
    agent: {role: designer, out: design.md}
  - id: agree
    gate: {prompt: Go on?, show: [design.md]}
"""


class House:
    def __init__(self, folder: Path, settings: str = "") -> None:
        self.root = folder / "project"
        self.folder = folder
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        (self.root / "README.md").write_text("hello\n")
        own = self.root / ".tenuto" / "pipelines"
        own.mkdir(parents=True)
        (own / "small.yaml").write_text(PIPELINE)
        (own / "gated.yaml").write_text(GATED)
        if settings:
            (self.root / ".tenuto" / "config.yaml").write_text(settings)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "begin")
        trust(self.root)

    def git(self, *words: str) -> str:
        names = ("-c", "user.name=user", "-c", "user.email=user@localhost")
        done = subprocess.run(["git", *names, *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def script(self, text: str = "answers: []\n", name: str = "answers.yaml") -> str:
        path = self.folder / name
        path.write_text(text)
        return f"scripted:{path}"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(Path(tenuto.__file__).parents[1])}

    def say(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TENUTO, *words],
            cwd=cwd or self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=ENOUGH,
        )

    def data(self, *words: str, cwd: Path | None = None) -> Any:
        done = self.say(*words, "--json", cwd=cwd)
        answer = json.loads(done.stdout)
        assert answer["ok"], done.stdout
        return answer["data"]

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*TENUTO, *words],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, name: str) -> Any:
        workspace = tenuto.open(str(self.root))
        try:
            return workspace.load(name)
        finally:
            workspace.journal.close()

    def events(self, name: str) -> list[Any]:
        workspace = tenuto.open(str(self.root))
        try:
            with workspace.journal.read() as reader:
                return list(reader.events(name))
        finally:
            workspace.journal.close()


def until(holds: Callable[[], object]) -> None:
    """Looks again and again; nothing is concluded from how long it took."""
    end = time.monotonic() + ENOUGH
    while not holds():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.02)


def kill(program: subprocess.Popen[str]) -> None:
    """The program alone: what it started goes on."""
    program.send_signal(signal.SIGKILL)
    program.wait()
    if program.stdout:
        program.stdout.close()
