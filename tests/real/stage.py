"""A repository in which one agent plays one role, driven by the real command line.

    stage = Stage(folder, environment)               a pipeline of one step, `work`: role worker, one output, out.md
    stage.run("--agent", "claude")                   `tenuto run ...`, to its end: a Ran with status, attempts, out, err
    with stage.begin("--agent", "claude") as engine: the same in the background; engine.wait() -> Ran
    stage.attempts(), stage.events(), stage.kill()   what the journal says; kill -9 of the engine's supervisors and
                                                     agents

The role's text holds [[script:work]], so a scripted model knows which script is meant.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tenuto
from tenuto.supervise import attempts
from tests.support.trusting import trust

ROLE = "---\nname: worker\ntools: [read, search, write, run]\n{more}---\nDo the work. [[script:work]]\n"
PIPELINE = """name: one
documents: .
steps:
  - id: work
    agent: {{role: worker, out: out.md, optional: half.md}}
    verdicts: [DONE, NEEDS_REVISION, ERROR]
    retry: {{LOST: 1, ERROR: 0}}
    {more}
"""


@dataclass
class Ran:
    status: str
    attempts: dict[str, Any]
    code: int
    out: str
    err: str
    run: Any

    @property
    def only(self) -> Any:
        assert len(self.attempts) == 1, (list(self.attempts), self.out, self.err)
        return next(iter(self.attempts.values()))


class Stage:
    def __init__(self, folder: Path, environment: dict[str, str], seat: str = "transient: 1", role: str = "") -> None:
        self.root = folder / "repository"
        self.environment = environment
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        for name, text in {
            "pipelines/one.yaml": PIPELINE.format(more=seat),
            "roles/worker.md": ROLE.format(more=role),
        }.items():
            path = self.root / ".tenuto" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.root / "README.md").write_text("hello\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "begin")
        trust(self.root)

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    @property
    def output(self) -> Path:
        return self.root / "out.md"

    def configure(self, text: str) -> None:
        (self.root / ".tenuto" / "config.yaml").write_text(text)
        trust(self.root)

    def run(self, *words: str) -> Ran:
        with self.begin(*words) as engine:
            return engine.wait()

    def go_on(self, *words: str) -> Ran:
        """`tenuto run` without a request: whatever run there is goes on."""
        with Playing(self, ["run", *words]) as engine:
            return engine.wait()

    def begin(self, *words: str) -> Playing:
        request = ["Do it"] if "--pipeline" in words else ["Do it", "--pipeline", "one", "--name", "task"]
        return Playing(self, ["run", *request, *words])

    def tenuto(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tenuto", *words]
        return subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False, timeout=280
        )

    def load(self, name: str = "task") -> Any:
        return tenuto.open(str(self.root)).load(name)

    def current(self, otherwise: str) -> str:
        with tenuto.open(str(self.root)).journal.read() as reader:
            found = reader.load_repo()["current"]
        assert found, otherwise
        return str(found)

    def events(self, kind: str, name: str = "task") -> list[Any]:
        with tenuto.open(str(self.root)).journal.read() as reader:
            return [event for event in reader.events(name) if event["type"] == kind]

    def folder(self, attempt: str, start: int = 1, name: str = "task") -> Path:
        return Path(tenuto.open(str(self.root)).state) / "attempts" / name / attempt / str(start)

    def kill(self, attempt: str, start: int = 1) -> None:
        """kill -9 of the supervisor and of the agent, as a machine that runs out of memory does it."""
        status = attempts.inspect(str(self.folder(attempt, start)))
        assert status["state"] == "running" and status["supervisor"] and status["started"], status
        for who in (status["supervisor"], status["started"]["agent"]):
            assert who is not None
            os.kill(who["pid"], signal.SIGKILL)


class Playing:
    def __init__(self, stage: Stage, words: list[str]) -> None:
        self.stage, self.words = stage, words

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tenuto", *self.words],
            cwd=self.stage.root,
            env=self.stage.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()

    def wait(self) -> Ran:
        out, err = self.process.communicate(timeout=280)
        run = self.stage.load(self.stage.current(out + err))
        return Ran(run["status"], run["attempts"], self.process.returncode, out, err, run)

    def kill(self) -> None:
        """kill -9 of the orchestrator alone."""
        self.process.kill()
        self.process.wait()
