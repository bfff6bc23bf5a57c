"""`command:` agents: what any program gets, how it is ended with its run, and a gate that is decided in advance."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.encoding import loads
from tests.support.leash import Leash
from tests.unit.engine.conftest import reopen

Say = Callable[..., Any]
PIPELINE = """\
name: one
documents: docs/{slug}
steps:
  - {id: plan, agent: {role: planner, out: plan.md}}
  - {id: agreed, gate: {when: approval, prompt: "Go on?", show: [plan.md]}}
  - {id: build, waves: {plan: plan.md, roles: [{role: implementer, out: "{item}.md", optional: [notes.md]}]}}
"""
AGENT = """\
import json, os, pathlib, sys
prompt = sys.stdin.read()
pathlib.Path("..", os.environ["TENUTO_ROLE"] + ".json").write_text(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "prompt": prompt}))
for name in os.environ["TENUTO_OUTPUTS"].splitlines():
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).write_text("- 01-a (depends_on: none)\\n")
print("DONE:", sys.argv[1])
"""  # noqa: E501
ALWAYS = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "NO_COLOR",
}


@pytest.fixture
def agent(repository: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (repository / ".tenuto/pipelines/one.yaml").write_text(PIPELINE)
    (repository / "agent.py").write_text(AGENT)
    return f"command:{sys.executable} ./agent.py 'two words'"


def test_a_program_gets_its_prompt_its_place_and_nothing_of_yours(
    say: Say, repository: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    monkeypatch.setenv("TENUTO_MOOD", "good")
    told = say("run", "Add it", "--pipeline", "one", "--name", "r", "--agent", agent, "--json")
    assert told.status == 0, told.err
    assert told.data["attempts"]["plan-1-planner-1"]["summary"] == "two words"
    seen = loads((repository.parent / "implementer.json").read_text())
    root, given = str(repository), {name: value for name, value in seen["env"].items() if name.startswith("TENUTO_")}
    assert given == {
        "TENUTO_RUN": "r",
        "TENUTO_STEP": "build",
        "TENUTO_ROLE": "implementer",
        "TENUTO_ITEM": "01-a",
        "TENUTO_WORKDIR": root,
        "TENUTO_ATTEMPT": "r.build-1-implementer.01-a-1.1",
        "TENUTO_OUTPUTS": "docs/r/01-a.md\ndocs/r/notes.md",
    }
    assert seen["cwd"] == root and "Add it" in seen["prompt"]
    assert set(seen["env"]) - set(given) <= ALWAYS | {"LC_CTYPE"}, "the rest is allow-listed"


def test_cancelling_ends_the_agent_with_everything_it_started(say: Say, repository: Path, agent: str) -> None:
    """Its engine is another process, and ends with the run."""
    (repository / "agent.py").write_text(
        "import subprocess\nleash = open('../leash', 'w')\n"
        "child = subprocess.Popen(['sleep', '4245'], pass_fds=[leash.fileno()])\n"
        "leash.write('x')\nleash.flush()\nchild.wait()\n"
    )
    words = [sys.executable, "-m", "tenuto", "run", "Add it", "--pipeline", "one", "--name", "r", "--agent", agent]
    with Leash(repository.parent / "leash") as leash:
        engine = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        leash.hear(engine)
        assert leash.is_held()
        assert say("cancel", "r", "--reason", "not needed").status == 0
        assert engine.wait() == 1
        assert not leash.is_held()
    run = reopen(repository).load("r")
    assert run["status"] == "cancelled" and not run["in_flight"]


@pytest.mark.parametrize("in_advance", [False, True])
def test_a_gate_that_cannot_ask_fails_closed_unless_it_was_decided_in_advance(
    say: Say, repository: Path, agent: str, in_advance: bool
) -> None:
    """The seed's "proceed autonomously" only where somebody asked for it, and recorded as that."""
    more = ["--no-input", "approve"] if in_advance else []
    told = say("run", "Add it", "--pipeline", "one", "--name", "r", "--approval", "--agent", agent, *more)
    run = reopen(repository).load("r")
    if not in_advance:
        assert (told.status, run["status"], run["decisions"]) == (5, "waiting_gate", [])
        return
    assert (told.status, run["status"]) == (0, "completed")
    (decision,) = run["decisions"]
    assert decision["who"] == "given in advance: --no-input=approve" and decision["proof"] == {"level": "in advance"}
