"""`notify:` in the settings: somebody is told when a run waits, fails or finishes, and the run does not depend on it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tenuto.drivers import notices
from tenuto.encoding import loads
from tests.unit.engine.conftest import SMALL, reopen

Say = Callable[..., Any]
GATED = SMALL.replace("name: small", "name: gated") + "  - {id: agreed, gate: {prompt: 'Good so?', show: [design.md]}}\n"
APPEND = "cat >> ../told; echo >> ../told"


@pytest.fixture
def told(repository: Path) -> Callable[..., list[Any]]:
    """Write the settings, or read what arrived."""
    (repository / ".tenuto/pipelines/gated.yaml").write_text(GATED)

    def look(settings: str = "") -> list[Any]:
        if settings:
            (repository / ".tenuto/config.yaml").write_text(f"notify: {settings}\n")
        found = repository.parent / "told"
        return [loads(line) for line in found.read_text().splitlines()] if found.exists() else []

    return look


@pytest.fixture
def posted() -> Iterator[tuple[str, list[Any]]]:
    """An address of this machine, and what is posted to it."""
    found: list[Any] = []

    class Hears(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.append(loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hears)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", found
    server.shutdown()
    server.server_close()


def test_a_command_is_told_when_a_run_waits_and_when_it_finishes(say: Say, script: Any, told: Any) -> None:
    told(f'{{command: "{APPEND}"}}')
    agent = script()
    assert say("run", "Add it", "--pipeline", "gated", "--agent", agent).status == 5
    assert told() == [{"run": "add-it", "status": "waiting_gate", "step": "agreed", "prompt": "Good so?", "error": ""}]
    say("approve")
    assert say("run", "--agent", agent).status == 0
    assert [one["status"] for one in told()] == ["waiting_gate", "completed"]


def test_an_address_is_told_when_a_run_fails(say: Say, script: Any, told: Any, posted: Any) -> None:
    address, found = posted
    told(f"{{url: '{address}'}}")
    agent = script("answers: [{for: {role: designer}, reply: 'ERROR: no idea'}]")
    assert say("run", "Add it", "--pipeline", "small", "--agent", agent).status == 1
    assert [(one["run"], one["status"]) for one in found] == [("add-it", "failed")] and "no idea" in found[0]["error"]


def test_a_notice_that_cannot_be_delivered_is_said_and_changes_nothing(say: Say, script: Any, told: Any, posted: Any, repository: Path) -> None:
    """And whoever else is to be told is told."""
    address, found = posted
    told(f"{{command: 'echo no such thing >&2; exit 3', url: '{address}'}}")
    done = say("run", "Add it", "--pipeline", "small", "--agent", script())
    assert done.status == 0 and "exit status 3: no such thing" in done.err
    assert [one["status"] for one in found] == ["completed"]
    assert reopen(repository).load("add-it")["status"] == "completed"


def test_nobody_waits_for_what_a_command_leaves_behind(say: Say, script: Any, told: Any) -> None:
    told(f'{{command: "{APPEND}; sleep 3 &"}}')
    assert say("run", "Add it", "--pipeline", "small", "--agent", script()).status == 0
    assert [one["status"] for one in told()] == ["completed"]


def test_a_command_that_does_not_end_is_ended(say: Say, script: Any, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_SECONDS", 1)
    told("{command: 'sleep 4244; true'}")
    done = say("run", "Add it", "--pipeline", "small", "--agent", script())
    assert done.status == 0 and "took longer than 1 seconds" in done.err
    assert b"sleep\0004244" not in b"".join(_words(one) for one in Path("/proc").glob("[0-9]*/cmdline"))


def _words(cmdline: Path) -> bytes:
    try:
        return cmdline.read_bytes()
    except OSError:  # it has ended
        return b""


def work_on(say: Say, repository: Path) -> None:
    """Whatever is handed out is made and reported, until nothing is."""
    while work := say("next", "--json").data["work"]:
        for one in work:
            for path in one["outputs"]:
                (repository / path).parent.mkdir(parents=True, exist_ok=True)
                (repository / path).write_text("# made\n")
            say("report", "add-it", one["attempt"], "--verdict", "DONE")


def test_a_guided_run_on_a_branch_of_its_own_ends_with_its_summary(say: Say, repository: Path) -> None:
    assert say("run", "Add it", "--pipeline", "small", "--branch", "--start-only").status == 0
    work_on(say, repository)
    files = subprocess.run(["git", "ls-tree", "-r", "--name-only", "tenuto/add-it"], cwd=repository, check=True, capture_output=True, text=True).stdout
    assert "docs/add-it/summary.md" in files and "docs/add-it/pull-request.md" in files


def test_a_run_that_somebody_else_dispatches_for_tells_the_same_and_each_thing_once(say: Say, told: Any, repository: Path) -> None:
    """It waits, goes on, asks, fails: asking again what is to be done tells nobody anything new."""
    told(f'{{command: "{APPEND}"}}')
    say("run", "Add it", "--pipeline", "gated", "--start-only")
    say("next")
    assert told() == []
    work_on(say, repository)
    assert told() == [{"run": "add-it", "status": "waiting_gate", "step": "agreed", "prompt": "Good so?", "error": ""}]
    assert say("next").status == 5 and len(told()) == 1, "known already"
    say("approve")
    assert say("next").status == 0
    assert [one["status"] for one in told()] == ["waiting_gate", "completed"]
    say("next")
    assert len(told()) == 2


def test_a_proof_of_concept_that_is_finished_rests(say: Say, told: Any, repository: Path) -> None:
    made = "name: rough\ndocuments: .\nmode: poc\nfinish: poc-complete\nsteps: [{id: a, agent: {role: designer, out: a.md}}]\n"
    (repository / ".tenuto/pipelines/rough.yaml").write_text(made)
    told(f'{{command: "{APPEND}"}}')
    say("run", "Add it", "--pipeline", "rough", "--start-only")
    work_on(say, repository)
    assert [one["status"] for one in told()] == ["poc-complete"]


def test_a_report_that_makes_the_run_wait_tells_it(say: Say, told: Any, repository: Path) -> None:
    (repository / ".tenuto/pipelines/asking.yaml").write_text("name: asking\ndocuments: .\nsteps: [{id: a, agent: {role: designer, out: a.md, questions: 1}}]\n")
    told(f'{{command: "{APPEND}"}}')
    say("run", "Add it", "--pipeline", "asking", "--start-only")
    [work] = say("next", "--json").data["work"]
    say("report", "add-it", work["attempt"], "--verdict", "QUESTION", "--summary", "Which one?")
    assert [(one["status"], one["prompt"]) for one in told()] == [("paused", "Which one?")]
