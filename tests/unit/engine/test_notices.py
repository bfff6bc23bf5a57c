"""`notify:` in the settings: somebody is told when a run waits, fails or finishes, and the run does not depend on
it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tenuto.core.status import MOMENTS
from tenuto.encoding import loads
from tenuto.notices import delivery
from tests.support.leash import Leash
from tests.support.terminal import start_at_terminal
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
    (waiting,) = told()
    assert (waiting["repository"], waiting["run"], waiting["moment"]) == ("project", "add-it", "gate")
    assert (waiting["status"], waiting["step"], waiting["prompt"]) == ("waiting_gate", "agreed", "Good so?")
    assert (waiting["error"], waiting["link"], waiting["cost"]["attempts"]) == ("", "", 3)
    assert waiting["title"] == "project: add-it waits for a decision"
    assert waiting["text"] == "Good so?\nstep: agreed\ncost: 3 attempts\ntenuto status add-it"
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
    monkeypatch.setattr(delivery, "SECONDS", 1)
    with Leash(tmp_path / "leash") as leash:
        told(f"{{command: 'exec 9> {leash.path}; sleep 4244; true'}}")
        done = say("run", "Add it", "--pipeline", "small", "--agent", script())
        assert done.status == 0 and "took longer than 1 seconds" in done.err
        assert leash.is_let_go()


def finish(say: Say, script: Any, *words: str) -> Any:
    return say("run", "Add it", "--pipeline", "small", "--agent", script(), *words)


def test_each_target_chooses_its_moments(say: Say, script: Any, told: Any) -> None:
    told(f'[{{command: "{APPEND}", on: [completed]}}, {{command: "{APPEND}", on: [gate]}}]')
    agent = script()
    say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    assert [one["moment"] for one in told()] == ["gate"]
    say("approve")
    say("run", "--agent", agent)
    assert [one["moment"] for one in told()] == ["gate", "completed"]


@pytest.mark.parametrize(
    "wrong",
    [
        "{on: [gate]}",
        "{desktop: false}",
        "{command: x, on: [sometimes]}",
        "{command: x, on: gate}",
        "{command: x, on: []}",
        "{command: x, page: 'javascript:1'}",
        "{apprise: []}",
        "{apprise: ['']}",
        "{desktop: yes please}",
        "[{mail: x}]",
    ],
)
def test_a_target_that_nobody_could_serve_is_refused(
    say: Say, script: Any, told: Any, repository: Path, wrong: str
) -> None:
    (repository / ".tenuto/config.yaml").write_text(f"notify: {wrong}\n")
    said = finish(say, script, "--json")
    assert (said.status, said.error["code"]) == (2, "bad-settings") and "'notify' must be" in said.error["message"]


def test_the_schema_for_editors_names_every_moment_and_every_channel() -> None:
    schema = loads((Path(delivery.__file__).parents[1] / "schemas/config.schema.json").read_text())
    target = schema["$defs"]["target"]
    assert tuple(target["properties"]["on"]["items"]["enum"]) == MOMENTS
    assert list(target["properties"]) == list(delivery.Target.__annotations__)


def test_a_chat_is_told_through_apprise_with_a_link_to_the_page(
    say: Say, script: Any, told: Any, posted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address comes from a variable: no file holds its token."""
    address, found = posted
    monkeypatch.setenv("TEAM_CHAT", address.replace("http://", "json://"))
    told("{apprise: '${TEAM_CHAT}', page: 'https://ci.example.org/'}")
    done = finish(say, script)
    assert done.status == 0 and "nobody was notified" not in done.err
    (one,) = found
    assert (one["title"], one["type"]) == ("project: add-it is completed", "success")
    assert one["message"] == "cost: 3 attempts\nhttps://ci.example.org/runs/add-it"


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("{apprise: 'slack://${NO_SUCH_TOKEN}'}", "by apprise slack://: the variable NO_SUCH_TOKEN is not set"),
        ("{apprise: 'pigeon://my-password'}", "by apprise pigeon://: apprise ended with exit status 1"),
        ("{apprise: 'json://user:${CHAT_TOKEN}@127.0.0.1:9'}", "by apprise json://: apprise ended with exit status 1"),
        ("{url: 'http://127.0.0.1:9/${CHAT_TOKEN}'}", "by url: "),
    ],
)
def test_what_fails_is_in_the_history_and_tells_no_secret(
    say: Say, script: Any, told: Any, setting: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_TOKEN", "hunter2-hunter2")
    told(setting)
    done = finish(say, script)
    assert done.status == 0 and f"nobody was notified {why}" in done.err
    history = say("history", "add-it").out
    assert f"nobody was notified {why}" in history
    for text in (done.err, history):
        assert "hunter2" not in text and "my-password" not in text


def test_without_apprise_the_way_to_it_is_said(
    say: Say, script: Any, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [one for one in sys.path if "site-packages" not in one])
    monkeypatch.delitem(sys.modules, "apprise", raising=False)
    told("{apprise: 'slack://a/b/c'}")
    assert "pip install 'tenuto[notify]'" in finish(say, script).err


def test_nobody_is_told_before_the_repository_is_trusted(
    say: Say, script: Any, told: Any, posted: Any, repository: Path
) -> None:
    address, found = posted
    local = address.replace("http://", "json://")
    (repository / ".tenuto/config.yaml").write_text(
        f"notify: [{{apprise: ['{local}'], page: 'https://evil.example'}}]\n"
    )
    said = finish(say, script, "--json")
    assert said.error["code"] == "not-trusted" and "notify.apprise" in said.error["message"]
    assert "notify.page: https://evil.example" in said.error["message"] and found == []


def test_a_desktop_shows_it_and_takes_none_of_it_for_markup(
    say: Say, script: Any, told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "notify-send"
    program.write_text(f'#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "[$word]"; done > {tmp_path}/shown\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    told("{desktop: true}")
    say(
        "run",
        "Add it",
        "--pipeline",
        "small",
        "--agent",
        script("answers: [{for: {role: designer}, reply: 'ERROR: <b>no</b> idea'}]"),
    )
    shown = (tmp_path / "shown").read_text()
    assert shown.startswith("[--urgency=critical]\n[--app-name=Tenuto]\n[--]\n[project: add-it has failed]\n[")
    assert "&lt;b&gt;no&lt;/b&gt; idea" in shown


def test_a_machine_without_a_desktop_says_so(
    say: Say, script: Any, told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told("{desktop: true}")
    agent = script()
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(subprocess.check_output(["sh", "-c", f"command -v {name}"], text=True).strip())
    monkeypatch.setenv("PATH", str(programs))
    done = say("run", "Add it", "--pipeline", "small", "--agent", agent)
    assert done.status == 0 and "notify-send is not installed" in done.err


def test_a_terminal_rings_and_says_the_words_and_nothing_else_of_it() -> None:
    """Control characters of a name reach no terminal."""
    code = (
        "from tenuto.notices.delivery import deliver; "
        "print(deliver({'terminal': True}, {'run': 'r', 'prompt': '', 'error': '', 'step': '', 'until': '', "
        "'cost': {'attempts': 0, 'tokens': 0, 'micro_usd': 0}, 'command': 'c', 'title': 'a\\x1b]0;b\\x07c'}, '/'))"
    )
    program, terminal = start_at_terminal([sys.executable, "-c", code], cwd=Path(__file__).parents[3])
    seen = b""
    try:
        while more := os.read(terminal, 4096):
            seen += more
    except OSError:
        pass  # the other end is closed
    os.close(terminal)
    assert program.wait() == 0
    assert seen == b"\a\x1b]9;Tenuto: a]0;bc\a[]\r\n"


def test_an_engine_without_a_terminal_says_so() -> None:
    code = "from tenuto.notices import delivery; delivery._on_terminal({'title': 'x'})"
    done = subprocess.run(
        [sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True, check=False
    )
    assert "the engine runs at no terminal" in done.stderr
