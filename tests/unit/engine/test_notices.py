"""`notify:` in the settings: somebody is told when a run waits, fails or finishes, and the run does not depend on
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tenuto.encoding import loads
from tenuto.engine import rest
from tests.support.leash import Leash
from tests.support.trusting import trust
from tests.unit.engine.conftest import SMALL, reopen

Say = Callable[..., Any]
GATED = (
    SMALL.replace("name: small", "name: gated") + "  - {id: agreed, gate: {prompt: 'Good so?', show: [design.md]}}\n"
)
APPEND = "cat >> ../told; echo >> ../told"


@pytest.fixture
def told(repository: Path) -> Callable[..., list[Any]]:
    """Write the settings, or read what arrived."""
    (repository / ".tenuto/pipelines/gated.yaml").write_text(GATED)

    def look(settings: str = "") -> list[Any]:
        if settings:
            (repository / ".tenuto/config.yaml").write_text(f"notify: {settings}\n")
            trust(repository)
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


def test_a_notice_that_cannot_be_delivered_is_said_and_changes_nothing(
    say: Say, script: Any, told: Any, posted: Any, repository: Path
) -> None:
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


def test_a_command_that_does_not_end_is_ended(
    say: Say, script: Any, told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything it started."""
    monkeypatch.setattr(rest, "_SECONDS", 1)
    with Leash(tmp_path / "leash") as leash:
        told(f"{{command: 'exec 9> {leash.path}; sleep 4244; true'}}")
        done = say("run", "Add it", "--pipeline", "small", "--agent", script())
        assert done.status == 0 and "took longer than 1 seconds" in done.err
        assert leash.is_let_go()
