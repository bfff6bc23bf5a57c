"""An orchestrator may die at any moment; the next one inspects, waits for and collects what it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenuto.errors import Damaged
from tenuto.supervise import attempts, processes, records
from tests.support import rogues
from tests.support.sandbox import DEADLINE, Sandbox, lives, python

PACKAGE = str(Path(attempts.__file__).parents[2])

ORCHESTRATOR = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.support.sandbox import DEADLINE, Sandbox
sandbox = Sandbox(sys.argv[2], prefix=sys.argv[3])
directory = sandbox.launch("a", [sys.executable, "-I", "-S", "-c", '''
import os, sys
ear = os.open(sys.argv[1], os.O_RDONLY)
mouth = os.open(sys.argv[2], os.O_WRONLY)
os.write(mouth, b"agent %d" % os.getpid() + b"\\\\n")
os.read(ear, 1)
print("DONE: after all")
''', sys.argv[4], sandbox.fifo])
sandbox.rest(directory)
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(str(tmp_path)) as made:
        yield made


def test_an_agent_outlives_its_orchestrator_and_is_adopted(sandbox: Sandbox, tmp_path: Path) -> None:
    """The orchestrator is killed while its agent works. Another process finds it running, waits for it
    without having started it, and collects the result; the agent never noticed."""
    orchestrator = subprocess.Popen(python(ORCHESTRATOR, PACKAGE, str(tmp_path), sandbox.prefix, sandbox.gate))
    _, agent = sandbox.hear()
    orchestrator.kill()
    orchestrator.wait()
    directory = sandbox.directory("a")
    assert attempts.inspect(directory)["state"] == "running"
    assert attempts.wait_any([directory], timeout=0) == []
    assert lives(agent)
    sandbox.go_on()
    assert attempts.wait_any([directory], timeout=DEADLINE) == [directory]
    assert attempts.inspect(directory)["result"]["exit_code"] == 0
    assert Path(directory, "stdout").read_text() == "DONE: after all\n"


def test_waiting_returns_those_that_rest_and_only_those(sandbox: Sandbox) -> None:
    """Of many under way, the one that ended is returned, as soon as it has."""
    slow = sandbox.launch_rogue("slow", "linger")
    quick = sandbox.launch_rogue("quick", "obey")
    assert attempts.wait_any([slow, quick], timeout=DEADLINE) == [quick]
    assert attempts.wait_any([], timeout=DEADLINE) == []
    assert attempts.wait_any([sandbox.directory("never")]) == [sandbox.directory("never")]
    attempts.cancel(slow)
    assert attempts.wait_any([slow], timeout=DEADLINE) == [slow]


def test_a_supervisor_that_dies_wakes_whoever_waits(sandbox: Sandbox) -> None:
    """Lost is an end, too: nobody waits for a result that will never come."""
    directory = sandbox.launch_rogue("a", "linger")
    sandbox.hear()
    supervisor = attempts.inspect(directory)["supervisor"]
    assert supervisor is not None
    killer = subprocess.Popen(["sh", "-c", f"kill -9 {supervisor['pid']}"])
    assert attempts.wait_any([directory], timeout=DEADLINE) == [directory]
    assert attempts.inspect(directory)["state"] == "lost"
    killer.wait()


SAY_STATE = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support import crashing
sys.exit(crashing.run(sys.argv[2], int(sys.argv[3]), sys.argv[4], "tests.support.killing", "say_state", sys.argv[5]))
"""


def test_an_attempt_that_ends_while_it_is_inspected_is_not_called_lost(sandbox: Sandbox) -> None:
    """Whoever inspects stands still at one line after the other while the attempt finishes behind its back."""
    answers = set()
    for line in range(1, 1000, 4):
        ear = os.path.join(sandbox.work, f"ear-{line}")
        os.mkfifo(ear)
        directory = sandbox.launch(str(line), ["sh", "-c", f"read word < {ear}"])
        with open(ear, "wb", buffering=0) as agent:  # opens when the agent does
            asking = python(
                SAY_STATE, PACKAGE, sandbox.pause(), str(line), os.path.dirname(attempts.__file__), directory
            )
            inspector = subprocess.Popen(asking, stdout=subprocess.PIPE, text=True)
            paused = sandbox.hear_or_end(inspector.pid)
            agent.write(b"go\n")
        assert sandbox.result(directory)["exit_code"] == 0
        sandbox.await_supervisors()
        sandbox.go_on()
        answers.add(inspector.communicate()[0].strip())
        if paused is None:
            break
    assert answers == {"running", "finished"}


def test_a_finished_attempt_is_never_run_again(sandbox: Sandbox) -> None:
    """Launching it a second time, or a hundred times at once, changes nothing."""
    directory = sandbox.launch_rogue("a", "obey")
    first = sandbox.result(directory)
    before = Path(directory, "result.json").read_bytes()
    for _ in range(10):
        sandbox.launch_rogue("a", "obey")
    sandbox.await_supervisors()
    assert Path(directory, "result.json").read_bytes() == before
    assert sandbox.result(directory) == first
    assert sandbox.hear()[0] == "agent"
    with pytest.raises(TimeoutError):
        sandbox.hear(within=0)


def test_a_launch_that_never_came_to_a_claim_is_stalled_and_can_be_voided(sandbox: Sandbox) -> None:
    """The orchestrator died between writing the specification and starting the supervisor."""
    directory = sandbox.directory("a")
    attempts.prepare(directory, sandbox.spec("a", rogues.command("obey", sandbox.fifo)))
    status = attempts.inspect(directory)
    assert (status["state"], status["stalled"]) == ("launching", True)
    assert attempts.wait_any([directory], timeout=DEADLINE) == [directory]
    assert attempts.void(directory)
    assert attempts.inspect(directory)["state"] == "void"
    sandbox.launch_rogue("a", "obey")
    sandbox.await_supervisors()
    assert attempts.inspect(directory)["state"] == "void"
    with pytest.raises(TimeoutError):
        sandbox.hear(within=0)


def test_a_claim_of_another_boot_is_lost_whatever_its_pid_says(sandbox: Sandbox) -> None:
    """After a restart of the machine a pid belongs to somebody else, and what ran cannot be ruled out."""
    directory = sandbox.launch_rogue("a", "linger")
    sandbox.hear()
    claim = records.read(os.path.join(directory, "claim"))
    claim["supervisor"]["boot"] = "another"
    os.unlink(os.path.join(directory, "claim"))
    records.publish(os.path.join(directory, "claim"), claim)
    os.unlink(os.path.join(directory, "started.json"))
    status = attempts.inspect(directory)
    assert (status["state"], status["may_have_run"]) == ("lost", True)
    claim["supervisor"]["boot"] = processes.boot()
    records.publish(os.path.join(directory, "claim"), claim)
    attempts.cancel(directory)
    sandbox.result(directory)


def test_a_pid_that_was_given_to_somebody_else_is_not_the_supervisor(sandbox: Sandbox) -> None:
    """The claim names a living pid with another start time: lost, and cancel signals nobody."""
    directory = sandbox.directory("a")
    records.make_directory(directory)
    me = processes.identify(os.getpid())
    assert me is not None
    me["start"] = str(int(me["start"]) - 1)
    claim = {"state": "claimed", "attempt": sandbox.prefix + "a", "at": "", "supervisor": me, "cgroup": None}
    records.publish(os.path.join(directory, "claim"), claim)
    assert attempts.inspect(directory)["state"] == "lost"
    attempts.cancel(directory)  # SIGTERM would end this test


def test_a_supervisor_in_another_container_is_not_taken_for_dead(sandbox: Sandbox) -> None:
    """Its pid means nothing here; the lock on its claim, held by the kernel, does."""
    directory = sandbox.directory("a")
    records.make_directory(directory)
    me = processes.identify(os.getpid())
    assert me is not None
    me["space"] = "pid:[elsewhere]"
    claim = {"state": "claimed", "attempt": sandbox.prefix + "a", "at": "", "supervisor": me, "cgroup": None}
    held = records.create_once(os.path.join(directory, "claim"), claim)
    assert held is not None
    assert attempts.inspect(directory)["state"] == "queued"
    assert attempts.sweep(sandbox.root) == {"ended": {}, "unproven": []}
    os.close(held)
    assert attempts.inspect(directory)["state"] == "lost"
    assert attempts.sweep(sandbox.root)["unproven"] == [directory]  # its tree cannot be seen from here


@pytest.mark.parametrize(
    "text", ["", "\0" * 40, '{"state": "clai', "[]"], ids=["empty", "zeros", "torn", "another shape"]
)
@pytest.mark.parametrize("name", ["claim", "result.json"])
def test_a_damaged_record_is_named_and_never_guessed_at(sandbox: Sandbox, name: str, text: str) -> None:
    directory = sandbox.launch_rogue("a", "obey")
    sandbox.result(directory)
    Path(directory, name).write_text(text)
    with pytest.raises(Damaged, match=name) as caught:
        attempts.inspect(directory)
    assert caught.value.hint


@pytest.mark.parametrize("handed", [b"", b'{"TOKEN": "a', b'{"OTHER": ""}'], ids=["nothing", "half", "another"])
def test_a_launcher_that_dies_while_it_hands_over_the_environment_starts_nothing(
    sandbox: Sandbox, handed: bytes
) -> None:
    """An agent gets the whole of its environment or does not run: the attempt stays unclaimed, and says why."""
    directory = sandbox.directory("a")
    attempts.prepare(directory, sandbox.spec("a", rogues.command("obey", sandbox.fifo), env={"TOKEN": "abc"}))
    supervisor = [sys.executable, "-I", "-S", processes.SUPERVISOR, directory]
    done = subprocess.run(supervisor, input=handed, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"not claimed" in done.stderr
    assert attempts.inspect(directory)["state"] == "launching"
    assert attempts.void(directory)
