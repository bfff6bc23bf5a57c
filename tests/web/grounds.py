"""A repository whose run waits at a gate, and the real server over it, as a process of its own at a terminal.

with Served(root) as served:            the judge of who asks is injected: everybody is a person
    served.address, served.code()
    served.hear("second time")          until the terminal says that

Served(root, judge="real")              as it is; judge="unseen": nobody can be seen
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import tenuto
from tenuto.core.records.run import Run
from tests.support.terminal import start_at_terminal
from tests.support.trusting import trust

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 120.0  # for what must happen; reaching it is a failure, never a result
GATED = """\
name: gated
documents: docs/{slug}
steps:
  - id: draft
    agent: {role: designer, out: design.md}
  - id: look
    gate: {name: look, show: [design.md], prompt: "Is the design good?", revise: draft}
  - id: build
    agent: {role: implementer, out: built.md}
"""
FORM = GATED.replace(
    "revise: draft}",
    "revise: draft, fields: {env: {of: [staging, prod]}, copies: 2, why: {type: text, required: false}}}",
)
RUN = "dark-mode"


def program(root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    around = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-m", "tenuto", *words],
        cwd=root,
        env=around,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def make(root: Path, pipeline: str = GATED, name: str = "Dark mode", config: str = "") -> Path:
    """A repository with one run that waits at its gate."""
    (root / ".tenuto/pipelines").mkdir(parents=True)
    (root / ".tenuto/pipelines/gated.yaml").write_text(pipeline)
    (root / ".tenuto/config.yaml").write_text("agent: scripted:answers.yaml\n" + config)
    (root / "answers.yaml").write_text("answers: []\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    trust(root)
    done = program(root, "run", name, "--pipeline", "gated")
    assert done.returncode == 5, done
    return root


def copied(made: Path, root: Path) -> Path:
    shutil.copytree(made, root, symlinks=True)
    trust(root)
    return root


def run_of(root: Path) -> Run:
    workspace = tenuto.open(str(root))
    try:
        return workspace.load(RUN)
    finally:
        workspace.journal.close()


class Served:
    def __init__(self, root: Path, *words: str, judge: str = "person", **environment: str) -> None:
        self.root = root
        program = "tests.web.as_person" if judge != "real" else "tenuto"
        first = [judge] if judge != "real" else ["ui"]
        around = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        port = [] if "--port" in words else ["--port", "0"]
        self.process, self._ours = start_at_terminal(
            [sys.executable, "-m", program, *first, *port, *words], cwd=root, env=around
        )
        self.said = ""
        self.session = ""

    def __enter__(self) -> Self:
        self.address = self.hear(r"(http://127\.0\.0\.1:\d+)")[1]
        self.port = int(self.address.rpartition(":")[2])
        self.hear(r"Ctrl-C ends it")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        status = self.process.wait(DEADLINE)
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1
        return status

    def hear(self, words: str) -> re.Match[str]:
        """Until the terminal has said that."""
        deadline = time.monotonic() + DEADLINE
        while (found := re.search(words, self.said)) is None:
            if not select.select([self._ours], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"{words!r} was not said: {self.said}")
            try:
                part = os.read(self._ours, 1 << 16)
            except OSError:
                part = b""
            if not part:
                raise EOFError(f"{words!r} was not said: {self.said}")
            self.said += part.decode()
        return found

    def press_enter(self) -> None:
        self.said = ""
        os.write(self._ours, b"\n")

    def code(self) -> str:
        return self.hear(r"/in#([0-9A-Z]{10})")[1]

    # ---- as a program that speaks HTTP

    def ask(
        self,
        path: str,
        form: dict[str, str] | list[tuple[str, str]] | bytes | None = None,
        method: str = "",
        told: Mapping[str, str] | None = None,
        **more: str,
    ) -> Answer:
        headers = {"Host": f"127.0.0.1:{self.port}"}
        if self.session:
            headers["Cookie"] = self.session
        body: bytes | None = None
        if form is not None:
            body = form if isinstance(form, bytes) else urlencode(form).encode()
            headers |= {"Origin": self.address, "Content-Type": "application/x-www-form-urlencoded"}
        for name, value in {**(told or {}), **more}.items():
            headers[name.replace("_", "-")] = value
        connection = HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            connection.putrequest(method or ("POST" if body is not None else "GET"), path, True, True)
            for name, value in headers.items():
                if value:
                    connection.putheader(name, value)
            if body is not None and "Content_Length" not in more:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def enter(self) -> Answer:
        answer = self.ask("/in", {"code": self.code()})
        assert answer.status == 303, answer.text
        self.session = answer.header("set-cookie").partition(";")[0]
        return answer

    def fields(self, page: str = f"/runs/{RUN}") -> dict[str, str]:
        """The hidden fields of the card's form."""
        text = self.ask(page).text
        found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text)
        assert found, text
        return dict(found)


class Answer:
    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.getheaders()
        self.text = response.read().decode()

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")
