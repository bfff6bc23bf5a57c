"""A supervisor may die at any line: nothing runs twice, nothing is left, no slot is used too early."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenuto.supervise import attempts, processes, records
from tenuto.supervise.attempts import wait_any
from tests.support import rogues
from tests.support.killing import cancel_before_lines, die_after_the_agent, die_before_lines, orphan_the_newborn
from tests.support.sandbox import Sandbox, await_end, lives, python


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(str(tmp_path), cap=1) as made:
        yield made


def kill_supervisor(directory: str) -> None:
    supervisor = attempts.inspect(directory)["supervisor"]
    assert supervisor is not None
    os.kill(supervisor["pid"], signal.SIGKILL)
    await_end(supervisor["pid"])


@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "walk"])
def test_a_supervisor_may_die_before_any_of_its_lines(sandbox: Sandbox, cgroup: bool) -> None:
    """An attempt is finished and ran once, or is lost and ran at most once, or was never claimed and
    never ran; an agent never starts while anything of the one before it lives. Every thirteenth line here,
    every line in `make prove`."""
    seen = die_before_lines(sandbox, range(1, 1000, 13), cgroup)
    assert set(seen) == {"launching", "lost", "finished"}
    assert sandbox.result(sandbox.launch_rogue("last", "obey"))["exit_code"] == 0
    attempts.sweep(sandbox.root)
    assert sandbox.alive() == []


@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "walk"])
def test_what_an_agent_did_is_on_record_when_its_supervisor_dies(sandbox: Sandbox, cgroup: bool) -> None:
    """A supervisor that stands still at any line while its agent works, and is killed then: the attempt is
    finished, or lost and may have run. It is never said of an agent that ran that it did not."""
    seen = die_after_the_agent(sandbox, range(1, 1000, 29), cgroup)
    assert set(seen) == {"launching", "lost", "finished"}


def test_a_cancel_never_loses_an_attempt(sandbox: Sandbox) -> None:
    """SIGTERM may come at any line: before the claim nothing was started, after it there is a result."""
    seen = cancel_before_lines(sandbox, range(1, 500, 37), cgroup=True)
    assert seen["finished"] > seen["launching"] > 0


def test_an_agent_does_not_start_when_its_supervisor_is_gone(sandbox: Sandbox) -> None:
    """Between fork and exec there is nobody above it any more: it ends without having been an agent."""
    seen = orphan_the_newborn(sandbox, range(1, 200, 2), cgroup=False)
    assert set(seen) == {"lost", "became an agent"}


def test_an_agent_dies_with_its_supervisor_and_the_rest_is_swept(sandbox: Sandbox) -> None:
    """The agent gets the parent-death signal; its deaf daemon does not, and lives until the sweep."""
    directory = sandbox.launch_rogue("a", "daemonise_and_linger")
    (_, daemon), (_, agent) = sandbox.hear(), sandbox.hear()
    kill_supervisor(directory)
    await_end(agent.pid)
    [status] = sandbox.rest(directory)
    assert (status["state"], status["may_have_run"], status["swept"]) == ("lost", True, False)
    assert lives(daemon)
    report = attempts.sweep(sandbox.root)
    assert not lives(daemon)
    assert report["unproven"] == []
    assert [gone["pid"] for gone in report["ended"][directory]] == [daemon.pid]
    assert attempts.inspect(directory)["swept"]
    assert attempts.sweep(sandbox.root) == {"ended": {}, "unproven": []}


def test_a_damaged_claim_does_not_keep_the_others_from_being_swept(sandbox: Sandbox) -> None:
    """It is reported as unproven; what it stands for cannot be known."""
    directory = sandbox.launch_rogue("b", "daemonise_and_linger")
    (_, daemon), _ = sandbox.hear(), sandbox.hear()
    kill_supervisor(directory)
    damaged = Path(sandbox.directory("a"))
    damaged.mkdir()
    (damaged / "claim").write_text("{")
    report = attempts.sweep(sandbox.root)
    assert report["unproven"] == [str(damaged)]
    assert list(report["ended"]) == [directory]
    assert not lives(daemon)


def test_a_killed_supervisors_slot_waits_for_its_tree(sandbox: Sandbox) -> None:
    """Nobody swept: whoever is next in the queue ends what is left before it starts its own agent."""
    first = sandbox.launch_rogue("first", "daemonise_and_linger", cgroup=False)
    (_, daemon), _ = sandbox.hear(), sandbox.hear()
    second = sandbox.launch_rogue("second", "obey")
    kill_supervisor(first)
    name, _ = sandbox.hear()
    assert name == "agent"
    assert not lives(daemon)
    assert sandbox.result(second)["exit_code"] == 0


def test_a_daemon_without_environment_is_found_in_its_cgroup(sandbox: Sandbox) -> None:
    """The mark can be thrown away, the cgroup cannot. Without a cgroup this one would not be found."""
    hide_and_stay = f"{shlex.join(rogues.command('hide', sandbox.fifo))}; kill -STOP $$"
    directory = sandbox.launch("a", ["sh", "-c", hide_and_stay], env={"PATH": "/usr/bin:/bin"})
    _, daemon = sandbox.hear()
    if records.read(os.path.join(directory, "claim"))["cgroup"] is None:
        pytest.skip("needs a cgroup v2 that this user may write")
    kill_supervisor(directory)
    assert lives(daemon)
    assert attempts.sweep(sandbox.root)["unproven"] == []
    assert not lives(daemon)


def test_what_hides_below_an_orphan_is_ended_with_it(sandbox: Sandbox) -> None:
    """No cgroup and no mark of its own, but a parent that has one."""
    directory = sandbox.launch_rogue("a", "hide_below", cgroup=False)
    _, hidden = sandbox.hear()
    kill_supervisor(directory)
    assert lives(hidden)
    assert attempts.sweep(sandbox.root)["unproven"] == []
    assert not lives(hidden)


@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "walk"])
def test_one_that_forks_and_ends_all_the_time_does_not_get_away(sandbox: Sandbox, cgroup: bool) -> None:
    """Whoever a walk over the process table finds is gone already: that nothing was found proves nothing."""
    directory = sandbox.launch_rogue("a", "flee_and_linger", cgroup=cgroup)
    sandbox.hear()
    kill_supervisor(directory)
    assert sandbox.is_held()
    assert attempts.sweep(sandbox.root)["unproven"] == []
    assert not sandbox.is_held()


def test_a_sweep_leaves_an_attempt_of_the_same_name_alone(tmp_path: Path) -> None:
    """Two repositories may use the same attempt id; a living supervisor's tree is never an orphan."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with Sandbox(str(tmp_path / "one")) as one, Sandbox(str(tmp_path / "two")) as two:
        two.prefix = one.prefix
        dead = one.launch_rogue("same", "daemonise_and_linger", cgroup=False)
        (_, orphan), _ = one.hear(), one.hear()
        living = two.launch_rogue("same", "daemonise_and_linger", cgroup=False)
        others = [two.hear()[1] for _ in range(2)]
        kill_supervisor(dead)
        report = attempts.sweep(one.root)
        assert not lives(orphan)
        assert report["unproven"] == []
        assert all(lives(process) for process in others)
        attempts.cancel(living)
        assert two.result(living)["cancelled"]


def test_an_orphan_below_a_living_outer_supervisor_is_still_an_orphan(sandbox: Sandbox) -> None:
    """Supervisors nest: what an inner one leaves is inherited by the outer one, and swept all the same."""
    source = f"""
import sys
sys.path.insert(0, {str(Path(attempts.__file__).parents[2])!r})
from tests.support.sandbox import Sandbox
inner = Sandbox(sys.argv[1])
inner.prefix = {sandbox.prefix!r}
inner.fifo = sys.argv[2]
inner.rest(inner.launch_rogue("inner", "daemonise_and_linger", cgroup=False))
inner.hear()
"""
    place = Path(sandbox.work, "inner")
    place.mkdir()
    outer = sandbox.launch("outer", python(source, str(place), sandbox.fifo), cgroup=False)
    (_, daemon), _ = sandbox.hear(), sandbox.hear()
    inner = os.path.join(place, "attempts", sandbox.prefix + "inner")
    kill_supervisor(inner)
    assert lives(daemon)
    assert attempts.sweep(os.path.join(place, "attempts"))["unproven"] == []
    assert not lives(daemon)
    attempts.cancel(outer)
    assert sandbox.result(outer)["cancelled"]


def test_nobody_waits_for_a_supervisor_that_died_before_it_was_known(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between its start and the note of who it is: the attempt has come to rest, also for the one who started
    it."""
    ordinary = processes.identify

    def slow(pid: int) -> Any:
        if pid != os.getpid():
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return ordinary(pid)

    monkeypatch.setattr(processes, "identify", slow)
    directory, spec = sandbox.directory("stillborn"), sandbox.spec("stillborn", ["true"])
    attempts.prepare(directory, spec)
    attempts.start_supervisor(directory, spec["env"], ["true"])
    assert wait_any([directory], 0) == [directory]
    assert attempts.void(directory)
