"""An orchestrator may die at any moment; the next one inspects, waits for and collects what it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenuto.errors import Damaged
from tenuto.supervise import attempts, identity, processes, records, watching
from tenuto.testing import rogues
from tenuto.testing.yard import Yard, lives, python

PACKAGE = str(Path(attempts.__file__).parents[2])

ORCHESTRATOR = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tenuto.testing.yard import Yard
yard = Yard(sys.argv[2], prefix=sys.argv[3])
directory = yard.launch("a", [sys.executable, "-I", "-S", "-c", '''
import os, sys
ear = os.open(sys.argv[1], os.O_RDONLY)
mouth = os.open(sys.argv[2], os.O_WRONLY)
os.write(mouth, b"agent %d" % os.getpid() + b"\\\\n")
os.read(ear, 1)
print("DONE: after all")
''', sys.argv[4], yard.fifo])
yard.rest(directory)
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with Yard(str(tmp_path)) as made:
        yield made


def test_an_agent_outlives_its_orchestrator_and_is_adopted(yard: Yard, tmp_path: Path) -> None:
    """The orchestrator is killed while its agent works. Another process finds it running, waits for it
    without having started it, and collects the result; the agent never noticed."""
    orchestrator = subprocess.Popen(python(ORCHESTRATOR, PACKAGE, str(tmp_path), yard.prefix, yard.gate))
    _, agent = yard.hear()
    orchestrator.kill()
    orchestrator.wait()
    directory = yard.directory("a")
    assert attempts.inspect(directory)["state"] == "running"
    assert watching.wait_any([directory], timeout=0) == []
    assert lives(agent)
    yard.go_on()
    assert watching.wait_any([directory], timeout=60) == [directory]
    assert attempts.inspect(directory)["result"]["exit_code"] == 0
    assert Path(directory, "stdout").read_text() == "DONE: after all\n"


def test_waiting_returns_those_that_rest_and_only_those(yard: Yard) -> None:
    """Of many under way, the one that ended is returned, as soon as it has."""
    slow = yard.launch_rogue("slow", "linger")
    quick = yard.launch_rogue("quick", "obey")
    assert watching.wait_any([slow, quick], timeout=60) == [quick]
    assert watching.wait_any([], timeout=60) == []
    assert watching.wait_any([yard.directory("never")]) == [yard.directory("never")]
    attempts.cancel(slow)
    assert watching.wait_any([slow], timeout=60) == [slow]


def test_a_supervisor_that_dies_wakes_whoever_waits(yard: Yard) -> None:
    """Lost is an end, too: nobody waits for a result that will never come."""
    directory = yard.launch_rogue("a", "linger")
    yard.hear()
    supervisor = attempts.inspect(directory)["supervisor"]
    assert supervisor is not None
    killer = subprocess.Popen(["sh", "-c", f"kill -9 {supervisor['pid']}"])
    assert watching.wait_any([directory], timeout=60) == [directory]
    assert attempts.inspect(directory)["state"] == "lost"
    killer.wait()


SAY_STATE = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.testing import crashing
sys.exit(crashing.run(sys.argv[2], int(sys.argv[3]), sys.argv[4], "tenuto.testing.killing", "say_state", sys.argv[5]))
"""


def test_an_attempt_that_ends_while_it_is_inspected_is_not_called_lost(yard: Yard) -> None:
    """Whoever inspects stands still at one line after the other while the attempt finishes behind its back."""
    answers = set()
    for line in range(1, 1000, 4):
        ear = os.path.join(yard.work, f"ear-{line}")
        os.mkfifo(ear)
        directory = yard.launch(str(line), ["sh", "-c", f"read word < {ear}"])
        with open(ear, "wb", buffering=0) as agent:  # opens when the agent does
            asking = python(SAY_STATE, PACKAGE, yard.pause(), str(line), os.path.dirname(attempts.__file__), directory)
            inspector = subprocess.Popen(asking, stdout=subprocess.PIPE, text=True)
            paused = yard.hear_or_end(inspector.pid)
            agent.write(b"go\n")
        assert yard.result(directory)["exit_code"] == 0
        yard.await_supervisors()
        yard.go_on()
        answers.add(inspector.communicate()[0].strip())
        if paused is None:
            break
    assert answers == {"running", "finished"}


def test_a_finished_attempt_is_never_run_again(yard: Yard) -> None:
    """Launching it a second time, or a hundred times at once, changes nothing."""
    directory = yard.launch_rogue("a", "obey")
    first = yard.result(directory)
    before = Path(directory, "result.json").read_bytes()
    for _ in range(10):
        yard.launch_rogue("a", "obey")
    yard.await_supervisors()
    assert Path(directory, "result.json").read_bytes() == before
    assert yard.result(directory) == first
    assert yard.hear()[0] == "agent"
    with pytest.raises(TimeoutError):
        yard.hear(within=0)


def test_a_launch_that_never_came_to_a_claim_is_stalled_and_can_be_voided(yard: Yard) -> None:
    """The orchestrator died between writing the specification and starting the supervisor."""
    directory = yard.directory("a")
    attempts.prepare(directory, yard.spec("a", rogues.command("obey", yard.fifo)))
    status = attempts.inspect(directory)
    assert (status["state"], status["stalled"]) == ("launching", True)
    assert watching.wait_any([directory], timeout=60) == [directory]
    assert attempts.void(directory)
    assert attempts.inspect(directory)["state"] == "void"
    yard.launch_rogue("a", "obey")
    yard.await_supervisors()
    assert attempts.inspect(directory)["state"] == "void"
    with pytest.raises(TimeoutError):
        yard.hear(within=0)


def test_a_claim_of_another_boot_is_lost_whatever_its_pid_says(yard: Yard) -> None:
    """After a restart of the machine a pid belongs to somebody else, and what ran cannot be ruled out."""
    directory = yard.launch_rogue("a", "linger")
    yard.hear()
    claim = records.read(os.path.join(directory, "claim"))
    claim["supervisor"]["boot"] = "another"
    os.unlink(os.path.join(directory, "claim"))
    records.publish(os.path.join(directory, "claim"), claim)
    os.unlink(os.path.join(directory, "started.json"))
    status = attempts.inspect(directory)
    assert (status["state"], status["may_have_run"]) == ("lost", True)
    claim["supervisor"]["boot"] = identity.boot()
    records.publish(os.path.join(directory, "claim"), claim)
    attempts.cancel(directory)
    yard.result(directory)


def test_a_pid_that_was_given_to_somebody_else_is_not_the_supervisor(yard: Yard) -> None:
    """The claim names a living pid with another start time: lost, and cancel signals nobody."""
    directory = yard.directory("a")
    records.make_directory(directory)
    me = identity.identify(os.getpid())
    assert me is not None
    me["start"] = str(int(me["start"]) - 1)
    claim = {"state": "claimed", "attempt": yard.prefix + "a", "at": "", "supervisor": me, "cgroup": None}
    records.publish(os.path.join(directory, "claim"), claim)
    assert attempts.inspect(directory)["state"] == "lost"
    attempts.cancel(directory)  # SIGTERM would end this test


def test_a_supervisor_in_another_container_is_not_taken_for_dead(yard: Yard) -> None:
    """Its pid means nothing here; the lock on its claim, held by the kernel, does."""
    directory = yard.directory("a")
    records.make_directory(directory)
    me = identity.identify(os.getpid())
    assert me is not None
    me["space"] = "pid:[elsewhere]"
    claim = {"state": "claimed", "attempt": yard.prefix + "a", "at": "", "supervisor": me, "cgroup": None}
    held = records.create_once(os.path.join(directory, "claim"), claim)
    assert held is not None
    assert attempts.inspect(directory)["state"] == "queued"
    assert attempts.sweep(yard.root) == {"ended": {}, "unproven": []}
    os.close(held)
    assert attempts.inspect(directory)["state"] == "lost"
    assert attempts.sweep(yard.root)["unproven"] == [directory]  # its tree cannot be seen from here


@pytest.mark.parametrize(
    "text", ["", "\0" * 40, '{"state": "clai', "[]"], ids=["empty", "zeros", "torn", "another shape"]
)
@pytest.mark.parametrize("name", ["claim", "result.json"])
def test_a_damaged_record_is_named_and_never_guessed_at(yard: Yard, name: str, text: str) -> None:
    directory = yard.launch_rogue("a", "obey")
    yard.result(directory)
    Path(directory, name).write_text(text)
    with pytest.raises(Damaged, match=name) as caught:
        attempts.inspect(directory)
    assert caught.value.hint


@pytest.mark.parametrize("handed", [b"", b'{"TOKEN": "a', b'{"OTHER": ""}'], ids=["nothing", "half", "another"])
def test_a_launcher_that_dies_while_it_hands_over_the_environment_starts_nothing(yard: Yard, handed: bytes) -> None:
    """An agent gets the whole of its environment or does not run: the attempt stays unclaimed, and says why."""
    directory = yard.directory("a")
    attempts.prepare(directory, yard.spec("a", rogues.command("obey", yard.fifo), env={"TOKEN": "abc"}))
    supervisor = [sys.executable, "-I", "-S", processes.SUPERVISOR, directory]
    done = subprocess.run(supervisor, input=handed, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"not claimed" in done.stderr
    assert attempts.inspect(directory)["state"] == "launching"
    assert attempts.void(directory)
