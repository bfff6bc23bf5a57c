"""The pages themselves: what `tenuto ui` answers, how fast a browser has it, and what the server costs.

first      the first page with all that it loads, in bytes
paint      the demo's run, until something of it is seen
inbox, run, past, log    the first byte of the answer, at the sizes of looks.py
live       from a commit in another process to the change in the browser
memory, idle             of the server, when all that has been asked for, and while one page is open

It is the real server, as a process, which only shows; and Debian's chromium, without which two lines are left out.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import tenuto
from bench.looks import ATTEMPTS, EVENTS, RUNS, attempts, begun, event, log, many, one
from bench.measured import Figure, Section, Table, folder, git_repository, number
from tenuto.demo import RUN, Demo
from tenuto.workspace.workspace import Workspace

ROUNDS = 9
COMMITS = 20
IDLE = 8.0  # seconds
CHROMIUM = "/usr/bin/chromium"
_AROUND = {**os.environ, "PYTHONPATH": str(Path(tenuto.__file__).resolve().parents[1]), "PYTHONSAFEPATH": "1"}
_LOADED = re.compile(r'(?:href|src)="(/static/[^"]+)"|from "\./([^"]+)"')


class Server(NamedTuple):
    """One that only shows: programs of the same user need no session."""

    root: Path
    process: subprocess.Popen[str]
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str) -> tuple[float, bytes]:
        """Milliseconds until the first byte, and the body."""
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.connect()
        asked = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        taken = (time.perf_counter() - asked) * 1000
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}: {body[-500:]!r}")
        return taken, body

    def first_bytes(self, paths: Sequence[str]) -> list[float]:
        """One for each; the first look at a page, which fills caches, is not counted."""
        self.ask(paths[0])
        return [self.ask(path)[0] for path in paths]

    def megabytes(self) -> float:
        return int(self._of("VmRSS")) / 1024

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _of(self, name: str) -> str:
        found = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text(), re.MULTILINE)
        return found[1] if found else "0"


@contextmanager
def serving(root: Path) -> Iterator[Server]:
    words = [sys.executable, "-m", "tenuto", "ui", "--look-only", "--port", "0"]
    process = subprocess.Popen(
        words, cwd=root, env=_AROUND, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        said = ""
        while process.stderr is not None and (found := re.search(r"http://127\.0\.0\.1:(\d+)", said)) is None:
            line = process.stderr.readline()
            if not line:
                raise RuntimeError(f"the server did not start: {said}")
            said += line
        assert found is not None
        yield Server(root, process, int(found[1]))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _opened(root: Path) -> Iterator[Workspace]:
    workspace = tenuto.open(str(root))
    try:
        yield workspace
    finally:
        workspace.journal.close()


def measure() -> Section:
    figures: list[Figure] = []
    missing: list[str] = []
    with folder() as place:
        for name in ("many", "wide", "long", "demo"):
            (place / name).mkdir()
        figures += _many(git_repository(place / "many"))
        figures += _wide(git_repository(place / "wide"))
        figures += _long(git_repository(place / "long"))
        if os.path.exists(CHROMIUM):
            figures += _seen(place / "demo")
        else:
            missing.append("first paint, and from a commit to the browser: chromium is not installed")
    rows = [[one.what, number(one.value, f" {one.unit}"), f"{one.target:g} {one.unit}"] for one in figures]
    text = (
        f"The real server as a process, asked over HTTP; medians of {ROUNDS} rounds. What `looks` measures is inside."
    )
    return Section("Pages", text, figures, [Table("Pages", ["what", "found", "target"], rows)], missing=missing)


def _many(root: Path) -> Iterator[Figure]:
    with _opened(root) as workspace:
        many(workspace)
    with serving(root) as server:
        yield Figure("the first page with all that it loads", _loaded(server) / 1000, 60, "kB")
        yield Figure(f"the inbox of {RUNS:,} runs, first byte", _median(server, ["/"] * ROUNDS), 100, "ms")
        found = ["/runs?q=r77&status=failed"] * ROUNDS
        yield Figure("the same, searched for words", _median(server, found), 100, "ms")
        yield Figure("memory of the server behind it", server.megabytes(), 100, "MB")
        yield Figure("its processor while a page is open and nothing happens", _idle(server), 0.5, "%")


def _wide(root: Path) -> Iterator[Figure]:
    with _opened(root) as workspace:
        one(workspace, [begun("r", 0), *attempts(ATTEMPTS)])
        kept = Path(workspace.state) / "attempts" / "r" / "a-0" / "1"
    kept.mkdir(parents=True)
    log(kept / "stdout")
    with serving(root) as server:
        yield Figure(f"a run of {ATTEMPTS:,} attempts, first byte", _median(server, ["/runs/r"] * ROUNDS), 300, "ms")
        page = server.ask("/runs/r")[1]
        yield Figure("the same, compressed", len(gzip.compress(page)) / 1000, 60, "kB")
        shown = ["/runs/r/attempts/a-0?of=output"] * ROUNDS
        yield Figure("an attempt with a log of 200 MB, first byte", _median(server, shown), 100, "ms")
        lines = server.ask(shown[0])[1].count(b"\n")
        yield Figure("lines of that log in the page", lines, 5000, "lines")
        yield Figure("memory of the server behind these", server.megabytes(), 100, "MB")


def _long(root: Path) -> Iterator[Figure]:
    with _opened(root) as workspace:
        one(workspace, [begun("r", 0), *(event("Noted", at, text="n", extra={}) for at in range(1, EVENTS))])
    with serving(root) as server:
        server.ask(f"/runs/r?at={EVENTS - 1}")
        steps = [f"/runs/r?at={at}&parts&have=" for at in range(EVENTS - 1, 0, -EVENTS // (3 * ROUNDS))]
        yield Figure(f"a step of the slider in {EVENTS:,} events", _median(server, steps), 60, "ms")


def _median(server: Server, paths: Sequence[str]) -> float:
    return statistics.median(server.first_bytes(paths))


def _loaded(server: Server) -> int:
    """Bytes as they are sent, without compression: the page, and what it and its scripts name."""
    page = server.ask("/")[1]
    wanted, got = [*_named(page)], dict[str, int]()
    while wanted:
        path = wanted.pop()
        if path not in got:
            body = server.ask(path)[1]
            got[path] = len(body)
            wanted += _named(body) if path.endswith(".js") else []
    return len(page) + sum(got.values())


def _named(body: bytes) -> Iterator[str]:
    for whole, beside in _LOADED.findall(body.decode()):
        yield whole or f"/static/{beside}"


def _idle(server: Server) -> float:
    """Per cent of a core."""
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/live")
    connection.getresponse().readline()
    used, since = server.cpu_seconds(), time.monotonic()
    time.sleep(IDLE)
    share = (server.cpu_seconds() - used) / (time.monotonic() - since)
    connection.close()
    return 100 * share


def _seen(home: Path) -> Iterator[Figure]:
    from playwright.sync_api import sync_playwright

    demo = Demo(home)
    with redirect_stdout(StringIO()):
        demo.play(stays=True)
    paints: list[float] = []
    with serving(demo.root) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(ROUNDS):
            context = browser.new_context()
            page = context.new_page()
            page.goto(f"{server.address}/runs/{RUN}")
            painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
            page.wait_for_timeout(100)
            paints.append(float(page.evaluate(painted)))
            context.close()
        page = browser.new_page()
        page.goto(f"{server.address}/runs/{RUN}")
        page.locator("html[data-live=on]").wait_for(state="attached")
        took: list[float] = []
        with _opened(demo.root) as workspace:
            for count in range(COMMITS):
                with workspace.turn() as turn:
                    turn.do(RUN, {"do": "Note", "text": f"seen {count}."})
                since = time.perf_counter()
                page.get_by_text(f"seen {count}.").first.wait_for()
                took.append((time.perf_counter() - since) * 1000)
        browser.close()
    shutil.rmtree(home, ignore_errors=True)
    yield Figure("the demo's run, first paint", statistics.median(paints), 400, "ms")
    yield Figure("from a commit to the browser, median", statistics.median(took), 150, "ms")
    yield Figure("the same, 19 of 20", statistics.quantiles(took, n=20)[-1], 300, "ms")
