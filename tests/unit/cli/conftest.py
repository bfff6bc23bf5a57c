"""A repository with runs in it, and `tenuto` as a function: words in; exit status, data and talk out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import tenuto
from tenuto.core.times import iso
from tenuto.encoding import loads, loads_strict, pretty
from tenuto.entrypoints.cli import frame
from tenuto.entrypoints.launch import answer
from tenuto.errors import Refused
from tests.support.refused import everything, hold_unwritten

START = 1_763_194_331_000


class Said(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        told = loads(self.out)
        assert set(told) == {"schema_version", "ok", "data"}, told
        assert told["ok"] is True
        return told["data"]

    @property
    def error(self) -> Any:
        told = loads(self.out)
        assert set(told) == {"schema_version", "ok", "error"}, told
        assert told["ok"] is False
        assert {"code", "message", "hint", "retryable"} <= set(told["error"])
        return told["error"]


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


def ticking() -> Callable[[], str]:
    ticks = iter(range(1 << 30))
    return lambda: iso(START + 1000 * next(ticks))


def render(run: Any, repo: Any) -> dict[str, bytes]:
    shown = {"status": run["status"], "summary": run["summary"], "flags": run["flags"]}
    return {f"docs/{run['id']}.json": pretty(shown).encode()}


def read(run: Any, path: str, before: bytes, after: bytes, around: Any) -> list[Any]:
    old, new = loads_strict(before), loads_strict(after)
    if new.get("status") != old.get("status"):
        raise Refused("not-yours", "the status is changed by commands only")
    return [{"do": "SetFlags", "flags": new["flags"]}, {"do": "AbsorbEdit", "extra": {}}]


def log(run: Any, events: list[Any]) -> dict[str, bytes]:
    lines = [f"- {event['type']} {event.get('text', event.get('summary', ''))}".rstrip() for event in events]
    return {"docs/history.md": "".join(line + "\n" for line in lines).encode()}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty git repository (to Tenuto a `.git` folder with a HEAD is one), with a small dialect called plain."""
    plain = SimpleNamespace(
        name="plain",
        missing="rewrite",
        stand_in={},
        dispensable=(),
        render=render,
        read=read,
        log=log,
        paths=lambda run, repo: list(render(run, repo)),
    )
    monkeypatch.setattr("tenuto.workspace.workspace.Views", lambda: {"plain": plain})
    home = tmp_path / "project"
    (home / ".git").mkdir(parents=True)
    (home / ".git" / "HEAD").touch()
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def workspace(repository: Path) -> Iterator[tenuto.Workspace]:
    opened = tenuto.open(str(repository), clock=ticking(), by="ada")
    yield opened
    opened.journal.close()


def start(workspace: tenuto.Workspace, run: str, *, shown: bool = True, **told: Any) -> None:
    dialects = {"plain": {"tree": ""}} if shown else {}
    with workspace.turn() as turn:
        begin: Any = {"do": "StartRun", "run": run, "name": run, "pipeline": {"name": "poc", "hash": None}}
        begin |= {"dialects": dialects, **told}
        turn.do(run, begin)
        turn.do_repo({"do": "MakeCurrent", "run": run})


@pytest.fixture
def run(workspace: tenuto.Workspace) -> str:
    """A run called dark-mode that has built something and waits at a gate."""
    start(workspace, "dark-mode", summary="Dark mode")
    with workspace.turn() as turn:
        turn.do("dark-mode", {"do": "StartStep", "step": "build"})
    with workspace.turn() as turn:
        turn.store("dark-mode", "plan", "docs/plan.md", b"# Plan\n")
        turn.do("dark-mode", {"do": "EndStep", "step": "build", "status": "success", "verdict": "DONE"})
        turn.do("dark-mode", {"do": "OpenGate", "name": "design", "prompt": "Ship it?"})
    return "dark-mode"
