"""Who decides is judged at the door, and passed on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tenuto
from tenuto.errors import Refused
from tenuto.workspace.guard import (
    Host,
    Person,
    Supervised,
    is_in_attempt,
    refuse_agents,
    refuse_attempts,
    require_person,
    who_calls,
)
from tests.support.sandbox import Sandbox

if TYPE_CHECKING:
    from tenuto.workspace.guard import Caller

AGENT = Supervised(("/elsewhere/attempts/run/a1/1",))
MODEL = Host("Codex", "CODEX_THREAD_ID")


@pytest.mark.parametrize(
    ("caller", "passes"), [(Person(), True), (Person("browser"), True), (AGENT, False), (MODEL, False)]
)
def test_only_a_person_does_what_persons_do(caller: Caller, passes: bool) -> None:
    if passes:
        require_person(caller, "approve a gate", "tenuto approve x")
        return
    with pytest.raises(Refused) as refusal:
        require_person(caller, "approve a gate", "tenuto approve x")
    assert refusal.value.code == "agent-decides"


def test_a_model_in_a_session_may_do_what_only_our_own_agents_may_not() -> None:
    refuse_agents(MODEL, "pause")
    refuse_agents(Person(), "pause")
    with pytest.raises(Refused, match="An agent cannot pause"):
        refuse_agents(AGENT, "pause")


def test_who_may_be_one_of_ours_decides_nothing_and_may_still_stop_things() -> None:
    """In a container, while agents are at work: nobody can tell."""
    perhaps = Supervised((), known=False)
    refuse_agents(perhaps, "pause", harmless=True)
    with pytest.raises(Refused, match="it cannot be told from inside this container"):
        refuse_agents(perhaps, "approve")
    with pytest.raises(Refused, match="it cannot be told from inside this container"):
        require_person(perhaps, "approve", "tenuto approve")


def test_an_attempt_of_another_repository_is_not_one_of_this() -> None:
    assert is_in_attempt(AGENT, "/elsewhere")
    refuse_attempts(AGENT, "/here", "begin a run")
    with pytest.raises(Refused) as refusal:
        refuse_attempts(AGENT, "/elsewhere", "begin a run")
    assert refusal.value.code == "agent-leads"


def test_a_process_is_judged_by_what_programs_leave_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENUTO_ATTEMPT", "x")
    assert isinstance(who_calls(), Supervised)


def test_another_door_brings_its_own_judgement(tmp_path: Path) -> None:
    """A browser's request is judged by what the browser proves, not by the process that serves it."""
    workspace = tenuto.open(str(tmp_path))
    workspace.door = lambda: MODEL
    assert workspace.caller is MODEL
    workspace.door = lambda: Person("browser", {"session": "s"})
    caller = workspace.caller
    assert isinstance(caller, Person)
    assert (caller.door, caller.proof) == ("browser", {"session": "s"})


DEEP = """
import os, sys
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.execve(sys.executable, [sys.executable, "-I", "-c", sys.argv[2], sys.argv[3]], {})
"""
ASK = """
import sys; sys.path.insert(0, sys.argv[1])
from tenuto.workspace.guard import who_calls
print(type(who_calls()).__name__)
"""


@pytest.mark.parametrize("depth", [0, 20, 300])
def test_an_agent_is_known_however_deep_below_its_supervisor_it_asks(tmp_path: Path, depth: int) -> None:
    """And with an empty environment: what it was started from is seen, not what it says of itself."""
    package = str(Path(tenuto.__file__).parents[1])
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.launch("a", [sys.executable, "-I", "-c", DEEP, str(depth), ASK, package])
        assert sandbox.result(directory)["exit_code"] == 0
    assert Path(directory, "stdout").read_text() == "Supervised\n"
